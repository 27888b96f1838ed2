"""Select the complete matches to output: all choices of OUTPUT (docs/reference/semantics.md).

The functions take the waiting matches. They return those chosen now, and those that must wait longer because an
active partial match may still affect them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from acep.events.records import Id
from acep.pattern.expressions import Value
from acep.pattern.tree import Query, SkipTarget

__all__ = [
    "Complete",
    "Prospect",
    "choose_by_first_event",
    "choose_earliest_maximal",
    "choose_greedily",
    "choose_non_overlapping",
    "clusters",
    "next_start",
]


@dataclass(frozen=True, slots=True)
class Complete:
    """A complete match before the selection: its partition key, scaled error, RETURN values, and its events as
    (position, ts, id, variable)."""

    key: tuple[Value, ...]
    error: int
    values: tuple[Value, ...]
    events: tuple[tuple[int, int, Id, str], ...]

    @property
    def first(self) -> int:
        """Return the position of the first event."""
        return self.events[0][0]

    @property
    def last(self) -> int:
        """Return the position of the last event."""
        return self.events[-1][0]

    @property
    def point(self) -> int:
        """Return the match point."""
        return self.events[-1][1]

    def order(self) -> tuple[int, tuple[Id, ...], tuple[str, ...]]:
        """Return the sort key of the output: match point, ids, variables."""
        return self.point, tuple(e[2] for e in self.events), tuple(e[3] for e in self.events)


@dataclass(frozen=True, slots=True)
class Prospect:
    """A match that may still come: it begins at position ``first``, has the scaled ``error`` or a greater one, and ends
    at the time ``point`` or later."""

    first: int
    error: int
    point: int


def next_start(match: Complete, skip: SkipTarget | None) -> tuple[int, int]:
    """Return where the next match may begin after this one: the position of an event, and whether it is that event (0)
    or the one after it (1)."""
    after_first = (match.first, 1)
    if skip is None:
        return match.last, 1
    if skip.place == "next":
        return after_first
    targets = [event[0] for event in match.events if event[3] == skip.variable]
    target = targets[0 if skip.place == "first" else -1] if targets else match.first
    return max((target, 0), after_first)


def overlap(match: Complete, other: Complete, skip: SkipTarget | None = None) -> bool:
    """Return whether one of two matches begins before the next one may begin after the other."""
    return (match.first, 0) < next_start(other, skip) and (other.first, 0) < next_start(match, skip)


def choose_non_overlapping(waiting: list[Complete], prospects: list[Prospect]) -> tuple[list[Complete], list[Complete]]:
    """Choose for NON OVERLAP: go through the matches in the order (error, match point, start, ids).

    One is chosen once no match that may still come can stand before it and overlap it, nor one that waits. A match
    around another one that stands before it can never be chosen, as it overlaps whatever that one overlaps.
    """
    chosen: list[Complete] = []
    still_waiting: list[Complete] = []
    for match in sorted(waiting, key=_rank):
        around = any(match.first <= earlier.first and earlier.last <= match.last for earlier in still_waiting)
        if around or any(overlap(match, earlier) for earlier in chosen):
            continue
        rank = (match.error, match.point)
        may_overlap = [prospect for prospect in prospects if prospect.first <= match.last]
        certain = all(rank < (prospect.error, prospect.point) for prospect in may_overlap)
        is_free = not any(overlap(match, earlier) for earlier in still_waiting)
        (chosen if certain and is_free else still_waiting).append(match)
    return chosen, still_waiting


def choose_by_first_event(
    waiting: list[Complete], horizon: int | None, query: Query
) -> tuple[list[Complete], list[Complete]]:
    """Choose the longest or shortest matches greedily within each cluster of overlapping ones, in the order of
    :func:`choose_greedily`.

    ``horizon`` is the earliest position at which a future match may start (``None``: none will come). Clusters behind
    which the next match may begin there are decided; the others wait.
    """
    chosen: list[Complete] = []
    still_waiting: list[Complete] = []
    for cluster in clusters(waiting, query.skip):
        if horizon is not None and max(next_start(match, query.skip) for match in cluster) > (horizon, 0):
            still_waiting += cluster
        else:
            chosen += choose_greedily(cluster, query)
    return chosen, still_waiting


def choose_greedily(cluster: list[Complete], query: Query) -> list[Complete]:
    """Return the matches that are chosen of a cluster of overlapping ones."""
    chosen: list[Complete] = []
    in_order = _longest_first(cluster)
    if not query.output.is_longest:
        in_order = sorted(cluster, key=_shortest if query.output.is_shortest else _rank)
    for match in in_order:
        if not any(overlap(match, earlier, query.skip) for earlier in chosen):
            chosen.append(match)
    return chosen


def _rank(match: Complete) -> tuple[int, int, int, tuple[Id, ...], tuple[str, ...]]:
    point, ids, variables = match.order()
    return match.error, point, match.events[0][1], ids, variables


def _longest_first(cluster: list[Complete]) -> list[Complete]:
    order = sorted(cluster, key=lambda m: (-len(m.events), *m.order()[1:]))
    order.sort(key=lambda m: m.last, reverse=True)
    return sorted(order, key=lambda m: (m.error, m.first))


def _shortest(match: Complete) -> tuple[int, int, int, tuple[Id, ...], tuple[str, ...]]:
    return match.error, match.first, match.last, *match.order()[1:]


def clusters(waiting: list[Complete], skip: SkipTarget | None) -> Iterable[list[Complete]]:
    """Yield the matches in clusters, in order: those of one cluster overlap one another, directly or by others."""
    cluster: list[Complete] = []
    end: Any = None
    for match in sorted(waiting, key=lambda m: m.first):
        if cluster and (match.first, 0) >= end:
            yield cluster
            cluster = []
        end = max(end, next_start(match, skip)) if cluster else next_start(match, skip)
        cluster.append(match)
    if cluster:
        yield cluster


def choose_earliest_maximal(waiting: list[Complete], alive: set[int]) -> tuple[list[Complete], list[Complete]]:
    """Choose, for each first event, the matches that are earliest and maximal among all that begin there.

    ``alive``: the first positions of partial and undecided matches. Matches that begin at one of these wait.
    """
    groups: dict[int, list[Complete]] = {}
    for match in waiting:
        groups.setdefault(match.first, []).append(match)
    chosen: list[Complete] = []
    still_waiting: list[Complete] = []
    for first, group in groups.items():
        if first in alive:
            still_waiting += group
        else:
            chosen += _earliest_maximal_of(group)
    return chosen, still_waiting


def _earliest_maximal_of(group: list[Complete]) -> list[Complete]:
    pairs = [frozenset((e[0], e[3]) for e in m.events) for m in group]
    smaller = {p - {x} for p in pairs for x in p}
    starts = [_by_variable(m) for m in group]
    # The earliest first event of each variable, among matches equal in all other variables.
    remainders: dict[tuple[str, frozenset[tuple[int, str]]], int] = {}
    for p, bound in zip(pairs, starts, strict=True):
        for var, first in bound.items():
            remainder = (var, frozenset(x for x in p if x[1] != var))
            remainders[remainder] = min(first, remainders.get(remainder, first))
    chosen = []
    for match, p, bound in zip(group, pairs, starts, strict=True):
        earliest = all(remainders[var, frozenset(x for x in p if x[1] != var)] >= first for var, first in bound.items())
        if earliest and p not in smaller:
            chosen.append(match)
    return chosen


def _by_variable(match: Complete) -> dict[str, int]:
    first: dict[str, int] = {}
    for position, _, _, var in match.events:
        first.setdefault(var, position)
    return first
