"""Find ids that come twice, and rows that are equal where there are no ids."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from hashlib import blake2b

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acep.events.buffers import selectable
from acep.events.fields import fields_of, named_column
from acep.events.tables import batch_of
from acep.events.times import value_of
from acep.linting.changed_matches import numbers_text
from acep.linting.report import Hit
from acep.linting.tried_matches import match_number
from acep.linting.view import LintView
from acep.plan.lint.finding import ANOTHER, EACH_ANOTHER

__all__ = ["id_twice", "rows_twice"]

MANY_AGAIN = 0.01  # share of rows that are equal to others
VALUES = 1 << 16  # Python's values that are made at once
ROW = "__row"


def id_twice(view: LintView) -> Iterator[Hit]:
    """Find ids that come twice."""
    name = view.plan.schema.id
    if name is None:
        return
    ids = selectable(pa.table({name: named_column(view.table, name)}))[name]
    counts = pc.value_counts(ids)
    twice = counts.filter(pc.greater(pc.struct_field(counts, "counts"), 1))
    if len(twice):
        first_id = twice[0]["values"].as_py()
        yield Hit(
            "error",
            f"{len(twice):,} ids of `{name}` come more than once, such as {first_id!r}",
            'acep refuses such events: duplicates="drop" leaves out what comes again; or leave id= out, so that each '
            f"row is an event: {EACH_ANOTHER}",
        )


def rows_twice(view: LintView) -> Iterator[Hit]:
    """Find rows that are equal to one before them in all columns, where no id says which events are the same."""
    if view.plan.schema.id is not None or not view.complete:
        return
    repeated_rows = _rows_again(view.table)
    repeated = len(repeated_rows)
    if repeated:
        fewer = view.table.take(np.setdiff1d(np.arange(len(view)), repeated_rows))
        schema, names = view.without_ids.schema, dict.fromkeys([*view.plan.columns, *view.plan.keys])
        number = match_number(view.without_ids, batch_of(fewer, schema, tuple(names)))
        are_equal = "is equal to one before it" if repeated == 1 else "are equal to one before them"
        yield Hit(
            "warning" if repeated >= MANY_AGAIN * len(view) else "note",
            f"{repeated:,} of {len(view):,} rows {are_equal} in every column",
            'each row is an event: if the source repeats events, name an id= column, with duplicates="drop": '
            f"{ANOTHER}{numbers_text(view, {'these rows dropped': number})}",
        )


def _rows_again(table: pa.Table) -> list[int]:
    """Return the rows that are equal to one before them."""
    nested = [field.name for field in table.schema if pa.types.is_nested(field.type)]
    plain = table.drop_columns(nested)
    # A column of which no value comes again is a fast answer, and the usual one.
    if not all(map(_values_again, plain.columns)):
        return []
    if not plain.column_names:
        return _seen_before(range(len(table)), _digests(table))
    try:
        groups = plain.append_column(ROW, pa.array(np.arange(len(table)))).group_by(plain.column_names)
        groups = groups.aggregate([(ROW, "list"), (ROW, "count")])
    except pa.ArrowNotImplementedError:  # a column of a type whose values are not compared
        return []
    groups = groups.filter(pc.greater(groups.column(f"{ROW}_count"), 1))
    sizes, rows = groups.column(f"{ROW}_count").to_numpy(), groups.column(f"{ROW}_list").combine_chunks().flatten()
    numbers = np.repeat(np.arange(len(sizes)), sizes)
    order = np.argsort(rows.to_numpy(), kind="stable")  # so that the first row of a group comes first
    rows, numbers = rows.take(pa.array(order)), numbers[order]
    if not nested:
        return _seen_before(rows.to_pylist(), numbers.tolist())
    inner = _digests(table.select(nested).take(rows))
    return _seen_before(rows.to_pylist(), zip(numbers.tolist(), inner, strict=True))


def _seen_before(rows: Iterable[int], values: Iterable[Hashable]) -> list[int]:
    """Return the rows whose value a row before them has."""
    seen, repeated_rows = set[Hashable](), []
    for row, value in zip(rows, values, strict=True):
        if value in seen:
            repeated_rows.append(row)
        seen.add(value)
    return repeated_rows


def _digests(table: pa.Table) -> Iterator[bytes]:
    """Yield a digest of each row: rows of nested columns may be long, and one of Python's takes much memory."""
    n_at_once = max(VALUES // max(len(fields_of(table.schema)), 1), 1)
    for start in range(0, len(table), n_at_once):
        part = table.slice(start, n_at_once)
        for row in zip(*([repr(value_of(scalar)) for scalar in column] for column in part.columns), strict=True):
            yield blake2b(repr(row).encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _values_again(column: pa.ChunkedArray) -> int:
    """Return how many values of a column are equal to one before them; at most, where that is not known."""
    try:
        return len(column) - int(pc.count_distinct(column, mode="all").as_py())
    except pa.ArrowNotImplementedError:
        return len(column)
