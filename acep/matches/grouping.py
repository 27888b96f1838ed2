"""Group matches by partition and match bundle, or by partition and match point."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import repeat
from typing import TYPE_CHECKING, Any

import numpy as np

from acep.matches.counted import Counted
from acep.matches.found_columns import FoundColumns, unscaled
from acep.matches.records import Found
from acep.pattern.expressions import Value
from acep.plan.schema import Kind

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Group", "group_number", "grouped", "groups_of_counts", "point_changes"]


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


def point_changes(found: Sequence[Found]) -> list[Group]:
    """Return how many more matches of each partition, match point and error there are after matches that come and go.
    ``matches`` of a group is this difference, and ``best`` the error; groups without a difference are left out. They
    are sorted by match point.

    >>> point_changes([Found((), 1, 5, 0, (("a", (i,)),), 5, op=op) for i, op in ((1, -1), (2, -1), (3, 1))])
    [Group(key=(), first=5, last=5, matches=-1, best=0)]
    """
    changes: dict[tuple[tuple[Value, ...], int, int | Fraction], int] = {}
    for key, end, error, op in _ends(found):
        changes[key, end, error] = changes.get((key, end, error), 0) + op
    some = [Group(key, end, end, change, error) for (key, end, error), change in changes.items() if change]
    return sorted(some, key=lambda group: group.first)


def _ends(found: Sequence[Found]) -> Iterable[tuple[tuple[Value, ...], int, int | Fraction, int]]:
    """Return the key, match point, error and op of each match."""
    if not isinstance(found, FoundColumns):
        return ((one.key, one.end, one.error, one.op) for one in found)
    keys = zip(*(column.to_list() for column in found.keys), strict=True) if found.keys else repeat((), len(found))
    errors = [unscaled(error, found.scale) for error in found.error.tolist()]
    ops = repeat(1, len(found)) if found.ops is None else found.ops.tolist()
    return zip(keys, found.end.tolist(), errors, ops, strict=True)


def groups_of_counts(counted: Counted, by: str) -> list[Group]:
    """Return the same groups for counted matches. ``by`` is ``"end"`` where rows are match points, and ``"bundle"``
    where they are bundles, or match points without a number of matches."""
    if by == "bundle" and len(counted.matches):
        bundles: dict[tuple[tuple[Value, ...], int], Group] = {}
        for key, _, last, bundle, error, number in sorted(counted.rows(), key=lambda row: row.bundle):
            group = bundles.setdefault((key, bundle), Group(key, bundle, last, 0, error))
            bundles[key, bundle] = Group(
                key, bundle, max(last, group.last), group.matches + number, min(error, group.best)
            )
        return list(bundles.values())
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
