"""Group matches by partition and match bundle, or by partition and match point."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from acep.matches.counted import Counted
from acep.matches.found_columns import FoundColumns, unscaled
from acep.matches.records import Found
from acep.pattern.expressions import Value
from acep.plan.schema import Kind

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Group", "group_number", "grouped", "groups_of_counts"]


@dataclass(frozen=True)
class Group:
    """A group of matches of one partition: its ``key``, the ``first`` and ``last`` match point (ticks), the number
    of ``matches``, and the least error among them (``best``)."""

    key: tuple[Value, ...]
    first: int
    last: int
    matches: int
    best: int | Fraction


def grouped(found: Sequence[Found], by: str) -> list[Group]:
    """Return the groups of matches with equal key and equal ``by`` (``"bundle"`` or ``"end"``), sorted by ``by``.

    >>> grouped([Found((), 1, end, error, (), 5) for end, error in ((5, 1), (7, 0))], "bundle")
    [Group(key=(), first=5, last=7, matches=2, best=0)]
    """
    if isinstance(found, FoundColumns):
        return _groups_of_columns(found, by)
    groups: dict[tuple[tuple[Value, ...], int], list[Any]] = {}
    for one in found:
        group = groups.setdefault((one.key, getattr(one, by)), [one.end, 0, one.error])
        group[0] = max(group[0], one.end)
        group[1] += 1
        group[2] = min(group[2], one.error)
    return [Group(key, first, *rest) for (key, first), rest in sorted(groups.items(), key=lambda item: item[0][1])]


def groups_of_counts(counted: Counted, by: str) -> list[Group]:
    """Return the same groups for counted matches. ``by`` is ``"end"`` where rows are match points, and ``"bundle"``
    where they are bundles, or match points without a number of matches."""
    if by == "bundle" and len(counted.matches):
        rows = sorted(counted.rows(), key=lambda row: row.bundle)
        return [Group(row.key, row.bundle, row.last, row.matches, row.error) for row in rows]
    none = np.zeros(len(counted) + 1, np.int64)
    numbers = (counted.first, counted.last, counted.bundle, counted.error, counted.scale)
    found = FoundColumns(*numbers, counted.keys, none, none[:0], none[:0].astype(np.uint16), variables=())
    return grouped(found, by)


def group_number(found: Sequence[Found]) -> int:
    """Return the number of bundles."""
    if isinstance(found, FoundColumns):
        table, names = _keyed(found, "bundle")
        return int(table.group_by(names, use_threads=False).aggregate([]).num_rows)
    return len({(one.key, one.bundle) for one in found})


def _groups_of_columns(found: FoundColumns, by: str) -> list[Group]:
    table, names = _keyed(found, by)
    wanted = [("last", "max"), ("last", "count"), ("error", "min"), ("row", "min")]
    groups = table.group_by(names, use_threads=False).aggregate(wanted)
    first, last, number, error, row = (
        groups.column(name).to_numpy() for name in ("by", "last_max", "last_count", "error_min", "row_min")
    )
    order = np.lexsort((row, first))
    keys = [column.at(row[order]).to_list() for column in found.keys]
    rows = zip(*(c[order].tolist() for c in (first, last, number, error)), strict=True)
    return [
        Group(tuple(k[i] for k in keys), begin, end, many, unscaled(best, found.scale))
        for i, (begin, end, many, best) in enumerate(rows)
    ]


def _keyed(found: FoundColumns, by: str) -> tuple[pa.Table, list[str]]:
    """Return a table of ``by``, numbered keys, ``last``, ``error`` and ``row``, and the columns to group by."""
    import pyarrow as pa

    columns = {"by": pa.array(getattr(found, by))}
    for i, column in enumerate(found.keys):
        values: Any = column.values
        if column.kind is Kind.STRING:
            places: dict[str, int] = {}
            codes = np.array([places.setdefault(text, len(places)) for text in column.texts or ()], np.int64)
            values = codes[values] if len(codes) else values
        elif column.kind is Kind.FLOAT:
            values = values + 0.0  # -0.0 equals 0.0
        columns[f"key{i}"] = pa.array(values, mask=None if column.valid is None else column.valid == 0)
    names = list(columns)
    columns |= {"last": pa.array(found.end), "error": pa.array(found.error), "row": pa.array(np.arange(len(found)))}
    return pa.table(columns), names
