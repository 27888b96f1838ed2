"""Find ids that come twice, and rows that are equal where there are no ids."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acep.events.buffers import selectable
from acep.events.fields import fields_of, named_column
from acep.events.times import value_of
from acep.linting.report import Hit
from acep.linting.view import LintView

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
            'acep refuses such events: duplicates="drop" leaves out what comes again, or leave id= out',
        )


def rows_twice(view: LintView) -> Iterator[Hit]:
    """Find rows that are equal to one before them in all columns, where no id says which events are the same."""
    if view.plan.schema.id is not None or not view.complete:
        return
    repeated = _rows_again(view.table)
    if repeated:
        are_equal = "is equal to one before it" if repeated == 1 else "are equal to one before them"
        yield Hit(
            "warning" if repeated >= MANY_AGAIN * len(view) else "note",
            f"{repeated:,} of {len(view):,} rows {are_equal} in every column",
            'each row is an event: if the source repeats events, name an id= column, with duplicates="drop"',
        )


def _rows_again(table: pa.Table) -> int:
    """Return how many rows are equal to one before them."""
    nested = [field.name for field in table.schema if pa.types.is_nested(field.type)]
    plain = table.drop_columns(nested)
    # A column of which no value comes again is a fast answer, and the usual one.
    if not all(map(_values_again, plain.columns)):
        return 0
    if not plain.column_names:
        return len(table) - len({*_digests(table)})
    try:
        groups = plain.append_column(ROW, pa.array(np.arange(len(table)))).group_by(plain.column_names)
        groups = groups.aggregate([(ROW, "list"), (ROW, "count")])
    except pa.ArrowNotImplementedError:  # a column of a type whose values are not compared
        return 0
    groups = groups.filter(pc.greater(groups.column(f"{ROW}_count"), 1))
    sizes, rows = groups.column(f"{ROW}_count").to_numpy(), groups.column(f"{ROW}_list").combine_chunks().flatten()
    if not nested:
        return len(rows) - len(sizes)
    inner = _digests(table.select(nested).take(rows))
    return len(rows) - len({*zip(np.repeat(np.arange(len(sizes)), sizes).tolist(), inner, strict=True)})


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
