"""Turn dicts, one per row, into columns, and bound the cells that they make: each may have keys of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from acep.errors import DataError
from acep.events.fields import roots_of

__all__ = ["DictColumns", "columns_of_dicts", "spread", "too_many_fields"]

CELLS = 10_000_000  # rows times columns that are always read
CELLS_PER_ENTRY = 200  # of dicts with more entries
SPARSE = 4  # cells for each entry from which on only the entries are looked at


@dataclass(frozen=True)
class DictColumns:
    """The values of the columns of some dicts by name. ``rows`` has the row of each value, by name, of columns without
    a value in each row; ``is_partial``: columns that are not used are left out; ``unread`` are their names, if a column
    that is used is missing, so that the error can be explained."""

    values: dict[Any, list[Any]]
    rows: dict[Any, list[int]]
    is_partial: bool = False
    unread: Sequence[Any] = ()


def columns_of_dicts(dicts: Sequence[Any], used: Collection[str] | None = None) -> DictColumns:
    """Return the columns of dicts. If there are too many cells, only the columns that are ``used``.

    Raises :class:`DataError` for anything but dicts, and for too many cells in columns that are used, which are all
    where that is not said.

    >>> columns_of_dicts([{"ts": 1}, {"ts": 2, "x": 5}]).values
    {'ts': [1, 2], 'x': [None, 5]}
    """
    counts = Counter[Any]()
    for number, row in enumerate(dicts):
        if not isinstance(row, Mapping):
            raise DataError(
                f"row {number} of the events is a {type(row).__name__}, not a dict",
                hint="give a list of dicts, or a dict of columns",
                code="data_type",
            )
        counts.update(row.keys())
    names, n_entries, unread = [*counts], counts.total(), list[Any]()
    is_partial = used is not None and _are_too_many(len(dicts), len(names), n_entries)
    if is_partial:
        columns = {str(name): name for name in names}
        roots = {name: roots_of([name], columns) for name in used or ()}
        names = [*dict.fromkeys(columns[root] for roots_of_name in roots.values() for root in roots_of_name or ())]
        unread = [*(counts.keys() - set(names))] if None in roots.values() else []
    if _are_too_many(len(dicts), len(names), n_entries):
        raise DataError(
            f"{len(dicts):,} dicts with {len(names):,} different keys make {len(dicts) * len(names):,} cells, nearly "
            "all of them null",
            hint="leave out the keys that are not used, or make two columns: one of the keys, one of the values",
            code="data_column",
        )
    if len(dicts) * len(names) <= SPARSE * n_entries:
        return DictColumns({name: [row.get(name) for row in dicts] for name in names}, {}, is_partial, unread)
    values: dict[Any, list[Any]] = {name: [] for name in names}
    rows: dict[Any, list[int]] = {name: [] for name in names}
    for number, row in enumerate(dicts):
        for name, value in row.items():
            if name in values:
                values[name].append(value)
                rows[name].append(number)
    return DictColumns(values, rows, is_partial, unread)


def spread(array: pa.Array | pa.ChunkedArray, rows: Sequence[int], n_rows: int) -> pa.Array | pa.ChunkedArray:
    """Return the values of a column in the rows that they are of; other rows are null.

    >>> spread(pa.array([5, 6]), [0, 2], 4).to_pylist()
    [5, None, 6, None]
    """
    if pa.types.is_null(array.type):
        return pa.nulls(n_rows)
    places, is_null = np.zeros(n_rows, np.int64), np.ones(n_rows, bool)
    places[rows], is_null[rows] = np.arange(len(rows)), False
    return array.take(pa.array(places, mask=is_null))


def too_many_fields(values: Collection[Any]) -> str | None:
    """Say why dicts in a column are not read, as each may have fields of its own; ``None``: they can be."""
    names, n_entries = set[tuple[Any, ...]](), 0
    for value in values:
        if isinstance(value, Mapping):
            for path in _paths(value):
                names.add(path)
                n_entries += 1
    if not _are_too_many(len(values), len(names), n_entries):
        return None
    return f"has dicts with {len(names):,} different keys in {len(values):,} rows; leave out the keys that are not used"


def _are_too_many(n_rows: int, n_columns: int, n_entries: int) -> bool:
    return n_rows * n_columns > max(CELLS, CELLS_PER_ENTRY * n_entries)


def _paths(value: Mapping[Any, Any], prefix: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path to each value in a dict, through dicts inside it."""
    for name, inner in value.items():
        yield (*prefix, name)
        if isinstance(inner, Mapping):
            yield from _paths(inner, (*prefix, name))
