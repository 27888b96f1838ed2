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
from acep.reference.choosing import Complete, choose_greedily, clusters, next_start

__all__ = ["ChosenMatches"]

Key = tuple[Value, ...]
Place = tuple[int, int, int]
"""The place of an event in the stream: its time, its order within that time, and its number."""


@dataclass
class _Partition:
    """All matches of a partition that may still change the choice, and those chosen and given, by their content."""

    matches: dict[Any, Complete] = field(default_factory=dict)
    records: dict[Any, Found] = field(default_factory=dict)
    chosen: set[Any] = field(default_factory=set)


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
        moved = {event_id for event_id, place in places.items() if self._places.get(event_id, place) != place}
        self._places |= places
        if moved:  # an event was taken back and came again, so matches that have it may be as they were
            self._update_places(moved)

    def revise(self, matches: Sequence[Found], open_since: Callable[[Key], int | None]) -> list[Found]:
        """Take in matches that come and go among all, and return those that come and go among the chosen ones.
        ``open_since(key)``: the time from which matches of a partition may still begin (``None``: any time)."""
        for match in matches:
            partition = self._partitions.setdefault(() if self._together else match.key, _Partition())
            content = _content(match)
            if match.op < 0:
                del partition.matches[content]
            else:
                partition.matches[content] = self._complete(match)
                partition.records[content] = match
        changes: list[Found] = []
        for key, partition in self._partitions.items():
            changes += self._choose(partition, open_since(key))
        return changes

    def finish(self) -> list[Found]:
        """Decide everything, as no more matches will come."""
        return [match for partition in self._partitions.values() for match in self._choose(partition, None, last=True)]

    def first_needed_start(self, cut: int) -> int:
        """Return the time at which the first match begins that is still needed, if no match that begins before ``cut``
        changes: the first one of a cluster that ends at ``cut`` or later. Without such matches it is ``cut``."""
        return min([cut, *(self.first_needed_start_in(key, cut) for key in self._partitions)])

    def first_needed_start_in(self, key: Key, cut: int) -> int:
        """Return the same for one partition."""
        partition = self._partitions.get(key, _Partition())
        open_clusters = [cluster for cluster in self._clusters(partition) if self._end_of(cluster) >= cut]
        return min([cut, *(match.events[0][1] for cluster in open_clusters for match in cluster)])

    def forget(self, cut: int, begin: int) -> None:
        """Forget the clusters that end before ``cut``, and the places of events before ``begin``."""
        needed = self._forget(lambda _: cut)
        self._places = {
            event_id: place for event_id, place in self._places.items() if place[0] >= begin or event_id in needed
        }

    def forget_each(self, cuts: Callable[[Key], int], event_ids: Iterable[Id]) -> None:
        """Forget the clusters of each partition that end before a time of its own, and the places of events."""
        needed = self._forget(cuts)
        for event_id in event_ids:
            if event_id not in needed:
                self._places.pop(event_id, None)

    def _forget(self, cuts: Callable[[Key], int]) -> set[Id]:
        """Forget the clusters that end before a time, and return the events of the others."""
        for key, partition in self._partitions.items():
            for cluster in self._clusters(partition):
                if self._end_of(cluster) < cuts(key):
                    for match in cluster:
                        content = match.values[0]
                        del partition.matches[content], partition.records[content]
                        partition.chosen.discard(content)
        self._partitions = {key: partition for key, partition in self._partitions.items() if partition.matches}
        return {
            e[2]
            for partition in self._partitions.values()
            for match in partition.matches.values()
            for e in match.events
        }

    def _clusters(self, partition: _Partition) -> list[list[Complete]]:
        return [*clusters([*partition.matches.values()], self._query.skip)]

    def _end_of(self, cluster: Sequence[Complete]) -> int:
        """Return the time of the last event at which a match of a cluster says where the next one may begin."""
        places: list[Any] = [next_start(match, self._query.skip)[0] for match in cluster]
        return max(place[0] for place in places)  # type: ignore[no-any-return]

    def _choose(self, partition: _Partition, open_since: int | None, *, last: bool = False) -> list[Found]:
        wanted: set[Any] = set()
        for cluster in self._clusters(partition):
            if last or (open_since is not None and self._end_of(cluster) < open_since):
                wanted.update(match.values[0] for match in choose_greedily(cluster, self._query))
        taken_back = [replace(partition.records[content], op=-1) for content in partition.chosen - wanted]
        new_matches = [partition.records[content] for content in wanted - partition.chosen]
        partition.chosen = wanted
        for content in [*partition.records.keys() - partition.matches.keys()]:
            del partition.records[content]
        return taken_back + new_matches

    def _update_places(self, moved: set[Id]) -> None:
        for partition in self._partitions.values():
            for content, match in partition.matches.items():
                if any(event[2] in moved for event in match.events):
                    partition.matches[content] = self._complete(partition.records[content])

    def _complete(self, match: Found) -> Complete:
        """Return a match as the choice takes it, with the places of its events, and its content as its value."""
        events: Any = tuple(
            (place := self._places[event_id], place[0], event_id, variable) for event_id, variable in match.trail
        )
        return Complete(match.key, match.error, (_content(match),), events)  # type: ignore[arg-type]


def _content(match: Found) -> Any:
    return match.key, match.trail, match.start, match.end, match.error, match.values
