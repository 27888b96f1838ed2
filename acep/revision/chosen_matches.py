"""Choose matches that do not overlap again whenever a match comes or is taken back (docs/reference/semantics.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from acep.events.batch import Batch
from acep.events.records import Id
from acep.matches.records import Found
from acep.pattern.expressions import Value
from acep.pattern.tree import Query
from acep.reference.choosing import Complete, clusters, greedy, next_start

__all__ = ["ChosenMatches"]

Key = tuple[Value, ...]
Place = tuple[int, int, int]
"""The place of an event in the stream: its time, its order within that time, and its number."""


@dataclass
class _Partition:
    """All matches of a partition that may still change the choice, and those chosen and given, by their content."""

    matches: dict[Any, Complete] = field(default_factory=dict)
    found: dict[Any, Found] = field(default_factory=dict)
    given: set[Any] = field(default_factory=set)


class ChosenMatches:
    """The choice among the matches of a query, by its OUTPUT. ``together``: matches of all partitions may overlap.

    Matches are chosen by clusters of overlapping ones. A cluster is decided once every match that may still come begins
    where the next one may, or later.
    """

    def __init__(self, query: Query, *, together: bool) -> None:
        self._query, self._together = query, together
        self._partitions: dict[Key, _Partition] = {}
        self._places: dict[Id, Place] = {}

    def add(self, batch: Batch, numbers: Sequence[int]) -> None:
        """Record the places of events."""
        order = [0] * len(batch) if batch.order is None else batch.order.tolist()
        assert batch.ids is not None
        ids = batch.ids if isinstance(batch.ids, list | range) else batch.ids.tolist()
        places = dict(zip(ids, zip(batch.ts.tolist(), order, numbers, strict=True), strict=True))
        moved = {one for one, place in places.items() if self._places.get(one, place) != place}
        self._places |= places
        if moved:  # an event was taken back and came again, so matches that have it may be as they were
            self._place_again(moved)

    def revise(self, found: Sequence[Found], decided: Callable[[Key], int | None]) -> list[Found]:
        """Take in matches that come and go among all, and return those that come and go among the chosen ones.
        ``decided(key)``: the time from which matches of a partition may still begin (``None``: any time)."""
        for one in found:
            partition = self._partitions.setdefault(() if self._together else one.key, _Partition())
            content = _content(one)
            if one.op < 0:
                del partition.matches[content]
            else:
                partition.matches[content] = self._complete(one)
                partition.found[content] = one
        out: list[Found] = []
        for key, partition in self._partitions.items():
            out += self._chosen(partition, decided(key))
        return out

    def finish(self) -> list[Found]:
        """Decide everything, as no more matches will come."""
        return [one for partition in self._partitions.values() for one in self._chosen(partition, None, last=True)]

    def since(self, cut: int) -> int:
        """Return the time at which the first match begins that is still needed, if no match that begins before ``cut``
        changes: the first one of a cluster that ends at ``cut`` or later. Without such matches it is ``cut``."""
        return min([cut, *(self.since_in(key, cut) for key in self._partitions)])

    def since_in(self, key: Key, cut: int) -> int:
        """Return the same for one partition."""
        partition = self._partitions.get(key, _Partition())
        open_clusters = [cluster for cluster in self._clusters(partition) if self._end(cluster) >= cut]
        return min([cut, *(match.events[0][1] for cluster in open_clusters for match in cluster)])

    def forget(self, cut: int, begin: int) -> None:
        """Forget the clusters that end before ``cut``, and the places of events before ``begin``."""
        needed = self._forget(lambda _: cut)
        self._places = {one: place for one, place in self._places.items() if place[0] >= begin or one in needed}

    def forget_each(self, cuts: Callable[[Key], int], gone: Iterable[Id]) -> None:
        """Forget the clusters of each partition that end before a time of its own, and the places of events."""
        needed = self._forget(cuts)
        for one in gone:
            if one not in needed:
                self._places.pop(one, None)

    def _forget(self, cuts: Callable[[Key], int]) -> set[Id]:
        """Forget the clusters that end before a time, and return the events of the others."""
        for key, partition in self._partitions.items():
            for cluster in self._clusters(partition):
                if self._end(cluster) < cuts(key):
                    for one in cluster:
                        content = one.values[0]
                        del partition.matches[content], partition.found[content]
                        partition.given.discard(content)
        self._partitions = {key: one for key, one in self._partitions.items() if one.matches}
        return {e[2] for one in self._partitions.values() for match in one.matches.values() for e in match.events}

    def _clusters(self, partition: _Partition) -> list[list[Complete]]:
        return [*clusters([*partition.matches.values()], self._query.skip)]

    def _end(self, cluster: Sequence[Complete]) -> int:
        """Return the time of the last event at which a match of a cluster says where the next one may begin."""
        places: list[Any] = [next_start(match, self._query.skip)[0] for match in cluster]
        return max(place[0] for place in places)  # type: ignore[no-any-return]

    def _chosen(self, partition: _Partition, decided: int | None, *, last: bool = False) -> list[Found]:
        wanted: set[Any] = set()
        for cluster in self._clusters(partition):
            if last or (decided is not None and self._end(cluster) < decided):
                wanted.update(match.values[0] for match in greedy(cluster, self._query))
        taken = [replace(partition.found[content], op=-1) for content in partition.given - wanted]
        come = [partition.found[content] for content in wanted - partition.given]
        partition.given = wanted
        for content in [*partition.found.keys() - partition.matches.keys()]:
            del partition.found[content]
        return taken + come

    def _place_again(self, moved: set[Id]) -> None:
        for partition in self._partitions.values():
            for content, one in partition.matches.items():
                if any(event[2] in moved for event in one.events):
                    partition.matches[content] = self._complete(partition.found[content])

    def _complete(self, found: Found) -> Complete:
        """Return a match as the choice takes it, with the places of its events, and its content as its value."""
        events: Any = tuple((place := self._places[one], place[0], one, variable) for one, variable in found.trail)
        return Complete(found.key, found.error, (_content(found),), events)  # type: ignore[arg-type]


def _content(found: Found) -> Any:
    return found.key, found.trail, found.start, found.end, found.error, found.values
