"""Run a query over a stream in the order of its chosen matches, and give each as soon as no later event can change it.

The events of each partition are kept from the first one on with which a match may begin that later events extend. The
open matches are followed over new events alone. Only where one has ended, so that it may decide on a match, are the
kept events of its partition searched.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from acep.events.batch import Batch
from acep.events.batch_state import batch_of_plain, plain_of_batch
from acep.matches.found_columns import FoundColumns, concatenate, values_at
from acep.matches.records import Counts, Found
from acep.ordered.all_matches import choose_matches
from acep.ordered.interval_matches import ChosenIntervals, matches_of_intervals
from acep.ordered.kept_events import EventChunks, KeptEvents, columns_of, join_events, plain_columns
from acep.ordered.next_events import LATEST, NextEvents, OpenMatches, with_room
from acep.ordered.ordered_executor import OrderedExecutor
from acep.ordered.ordered_parts import final_matches
from acep.ordered.partition_rows import RowsByPartition, batch_column, rows_by_partition
from acep.ordered.stream_partitions import StreamPartitions
from acep.pattern.tree import Output
from acep.storage.plain_data import from_json, to_plain

if TYPE_CHECKING:
    from acep.matches.partials.partial_columns import PartialColumns

__all__ = ["ListPartials", "OrderedStreamExecutor"]

Ints = npt.NDArray[np.int64]
Bits = npt.NDArray[np.bool_]

FEW = 1 << 9
"""So many partitions and events are kept before those are forgotten that are not needed any more."""

ListPartials = Callable[[Batch, int, int, Sequence[int]], "PartialColumns"]
"""Lists partial matches in a batch: those before a time that are left, at most so many, in some states."""


@dataclass
class OrderedStreamExecutor(OrderedExecutor):
    """The executor of a plan over a stream. ``open``: its open matches. ``next_ts``: no event comes before this time.
    ``n_lasting``: the partitions that there were once those that are as new ones were forgotten. ``recent``: the last
    events of each partition, which conditions of new ones read. By code: ``decided``, a position
    up to which it is decided what is final, and ``pending``, the time of a match with which another one may still
    end."""

    open: OpenMatches = field(kw_only=True)
    list_partials: ListPartials = field(kw_only=True)
    partitions: StreamPartitions = field(default_factory=StreamPartitions)
    chunks: EventChunks = field(default_factory=EventChunks)
    recent: KeptEvents | None = None
    next_ts: int = -LATEST - 1
    n_lasting: int = 0
    has_ids: bool = True
    decided: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    pending: Ints = field(default_factory=lambda: np.zeros(0, np.int64))

    def push(self, batch: Batch) -> Sequence[Found]:
        """Take in events; return the matches that they decide."""
        if not len(batch):
            return []
        self.totals.events += len(batch)
        self.next_ts = max(self.next_ts, int(batch.ts[-1]))
        self.has_ids &= batch.ids is not None
        events = self._number_events(batch)
        if len(events):
            self._follow(events)
        matches = self._decide()
        active = self._active()
        if len(self.chunks) > 2 * int((self.partitions.sizes - self.partitions.begins)[active].sum()) + FEW:
            self.chunks = EventChunks().add(self.chunks.all_events(self.partitions.begins), self.partitions.begins)
        if len(self.partitions) > 2 * self.n_lasting + FEW + len(self.chunks) // 4:
            self._restore(self._state())  # without the partitions that are as new ones are
        return matches

    def advance(self, clock: int) -> Sequence[Found]:
        """Return the matches that are decided as no event comes at or before a time."""
        if clock < self.next_ts:
            return []
        self.next_ts = min(clock + 1, LATEST)
        return self._decide()

    def finish(self) -> Sequence[Found]:
        """Return all matches that are left."""
        events = self.chunks.all_events(self.partitions.begins)
        self.chunks, self.recent = EventChunks(), None
        self.partitions.begins = self.partitions.sizes.copy()
        if events is None:
            return []
        return concatenate([self._give_bundles(events, chosen) for chosen, _ in self._choose(events)])

    # New events ---------------------------------------------------------------------------------------

    def _number_events(self, batch: Batch) -> KeptEvents:
        """Return those of new events that matter, with their partitions and positions."""
        rows = rows_by_partition(self.plan, batch)
        edges = rows.edges
        firsts = rows.rows[edges[:-1]]
        columns = [values_at(batch_column(self.plan, batch, name), firsts) for name in self.plan.keys]
        of_partition = self.partitions.codes(list(zip(*columns, strict=True)) if columns else [()] * len(firsts))
        self._make_room()
        codes, positions = np.full(len(batch), -1, np.int64), np.zeros(len(batch), np.int64)
        codes[rows.rows] = np.repeat(of_partition, np.diff(edges))
        positions[rows.rows] = rows.positions + self.partitions.sizes[codes[rows.rows]]
        self.partitions.sizes[of_partition] += np.diff(edges)
        matters = np.flatnonzero(self.open.relevant(batch) & (codes >= 0))
        return KeptEvents(plain_columns(batch.take(matters), columns_of(self.plan)), codes[matters], positions[matters])

    def _make_room(self) -> None:
        size = len(self.partitions)
        self.open.make_room(size)
        room: Any = with_room
        self.decided, self.pending = room(self.decided, size, 0), room(self.pending, size, LATEST)

    def _follow(self, events: KeptEvents) -> None:
        """Follow the open matches over new events, and keep these."""
        begins, together = self.partitions.begins, events
        if self.recent is not None:
            self.recent = self.recent.from_positions(begins)
            is_touched = np.zeros(len(self.partitions), bool)
            is_touched[events.codes] = True
            together = join_events([self.recent.select_events(np.flatnonzero(is_touched[self.recent.codes])), events])
        is_new = np.arange(len(together)) >= len(together) - len(events)
        rows = RowsByPartition.of_codes(together.codes, together.positions)
        self.totals.touches += self.open.follow(together.batch, rows, together.codes, is_new, anew=False)
        self.chunks = self.chunks.add(events, begins)
        if self.open.n_before:
            recent = events if self.recent is None else join_events([self.recent, events])
            self.recent = recent.last_events(self.open.n_before)

    # Decided matches ----------------------------------------------------------------------------------

    def _active(self) -> Ints:
        """Return the codes of partitions of which events are kept."""
        size = len(self.partitions)
        return np.flatnonzero(self.partitions.begins[:size] < self.partitions.sizes[:size])

    def _decide(self) -> Sequence[Found]:
        """Return the matches that no later event can change, and forget the events that cannot be in others."""
        parts, codes = list[FoundColumns](), self._active()
        output = self.plan.query.output
        while len(codes):
            following = NextEvents(self.next_ts, self.partitions.sizes[codes])
            first = self.open.first_open(codes, following)
            has_ends, moves = self.open.has_ends[codes], first > self.decided[codes]
            if output.is_longest:
                is_due, waits = has_ends & moves, has_ends
            else:
                pending = self.pending[codes]
                waits = has_ends | (pending != LATEST)
                is_due = has_ends | (waits & moves)
                if output is Output.NON_OVERLAP:
                    is_due |= pending < self.next_ts
            is_due |= self.open.is_stale(codes, following)
            idle, first = codes[~(waits | is_due)], first[~(waits | is_due)]
            self.partitions.begins[idle] = np.maximum(self.partitions.begins[idle], first)
            is_closed = first == self.partitions.sizes[idle]
            self.decided[idle[is_closed]] = first[is_closed]
            self.open.forget(idle[is_closed])
            codes = self._search(codes[is_due], parts)
        return concatenate(parts) if parts else []

    def _search(self, codes: Ints, parts: list[FoundColumns]) -> Ints:
        """Search the kept events of partitions, add the matches that are final to parts, and return the partitions that
        have some."""
        if not len(codes):
            return codes
        is_wanted = np.zeros(len(self.partitions), bool)
        is_wanted[codes] = True
        events = self.chunks.of_partitions(is_wanted, self.partitions.begins)
        self.open.forget(codes)
        self.partitions.begins[codes] = self.partitions.sizes[codes]
        self.pending[codes] = LATEST
        changed = np.zeros(0, np.int64)
        if events is not None:
            settled_codes = [self._settle(events, *choice, parts) for choice in self._choose(events)]
            changed = np.concatenate(settled_codes)
        following = NextEvents(self.next_ts, self.partitions.sizes[codes])
        self.decided[codes] = self.open.first_open(codes, following)
        self.decided[changed] = self.partitions.begins[changed]
        return changed

    def _settle(self, events: KeptEvents, chosen: ChosenIntervals, ids_rise: bool, parts: list[FoundColumns]) -> Ints:
        """Add the matches that are final to parts, follow the events after them anew, and return the partitions that
        have such matches."""
        rows, batch = chosen.rows, events.batch
        edges = rows.edges
        codes = events.codes[rows.rows[edges[:-1]]]
        following = NextEvents(self.next_ts, self.partitions.sizes[codes])
        open_from = self.open.open_from(batch, rows, following)
        of_match = np.searchsorted(edges, chosen.firsts, "right") - 1
        chooses_by_end = self.plan.query.output is Output.NON_OVERLAP
        if chooses_by_end and not ids_rise:
            # Of one time another match may come first that begins later, and then one that this one has displaced.
            final, keep = final_matches(self.plan, batch, chosen, edges[:-1], self.next_ts)
            waits = np.bincount(of_match[chosen.firsts >= keep[of_match]], minlength=len(keep)) > 0
            keep = np.where(waits, keep, np.maximum(keep, open_from))
        else:
            precedes = self.open.precedes_longer(batch, chosen, open_from) if chooses_by_end else None
            final, keep = final_matches(self.plan, batch, chosen, open_from, self.next_ts, precedes)
        stays = np.arange(len(rows)) >= np.repeat(keep, np.diff(edges))
        has_rest = keep < edges[1:]
        self.partitions.begins[codes[has_rest]] = rows.positions[keep[has_rest]]
        is_kept = np.zeros(len(batch), bool)
        is_kept[rows.rows[stays]] = True
        left = rows.select_rows(is_kept)
        self.totals.touches += chosen.work
        self.totals.touches += self.open.follow(batch, left, events.codes, is_kept, anew=True)
        if not self.plan.query.output.is_longest:
            self.open.has_ends[codes] = False
            lasts = rows.rows[chosen.lasts[chosen.firsts >= keep[of_match]]]
            np.minimum.at(self.pending, events.codes[lasts], batch.ts[lasts])
        if len(final):
            parts.append(self._give_bundles(events, final))
        return np.unique(events.codes[rows.rows[final.firsts]])

    def _choose(self, events: KeptEvents) -> list[tuple[ChosenIntervals, bool]]:
        """Return the chosen matches of some events, as if no others came, and whether ids rise where it matters."""
        return choose_matches(self.plan, events, self.find, self.open.rows_to_search, self.run_otherwise)

    def _give_bundles(self, events: KeptEvents, chosen: ChosenIntervals) -> FoundColumns:
        """Return matches with their bundles."""
        matches, lasts = matches_of_intervals(self.plan, events.batch, chosen), chosen.rows.rows[chosen.lasts]
        self.totals.nodes += len(matches)
        self.totals.matches += len(matches)
        if len(matches):
            window = self.plan.window
            places = events.positions[lasts] if window.counted else matches.end
            self.partitions.chain(matches, events.codes[lasts], places, window.span)
        return matches

    # Kept state ---------------------------------------------------------------------------------------

    def live(self) -> int:
        """Return the number of partitions in which a match may be open."""
        return len(self._active())

    def live_in(self, states: Sequence[int]) -> int:  # noqa: ARG002
        """Return the same: states are not told apart."""
        return self.live()

    def partial_matches(self, limit: int, states: Sequence[int], *, apart: bool) -> PartialColumns:  # noqa: ARG002
        """Return partial matches, as the engine that makes them all lists them."""
        events = self.chunks.all_events(self.partitions.begins)
        if events is None:
            from acep.matches.partials.partial_columns import PartialColumns  # few matchers are asked for them

            return PartialColumns.of_rows((), 0)
        return self.list_partials(events.with_ids().batch, self.next_ts, limit, states)

    def dump(self) -> Any:
        """Return the state as JSON-like data."""
        return to_plain(self._state())

    def load(self, data: Any) -> None:
        """Restore the state of :meth:`dump`. Raises :class:`ValueError`, :class:`LookupError`, :class:`AttributeError`
        or :class:`TypeError` for other data."""
        self._restore(from_json(data))

    def _state(self) -> dict[str, Any]:
        """Return the state as plain data; open matches are found again in the events that are kept."""
        window = self.plan.window
        stays, partitions = self.partitions.without_idle(
            None if window.counted else self.next_ts, window.span, keeps_sizes=not self.has_ids
        )
        events = self.chunks.all_events(self.partitions.begins)
        totals = self.totals
        return {
            "partitions": partitions.dump(),
            "events": None if events is None else plain_of_batch(events.batch),
            "codes": None if events is None else (np.cumsum(stays) - 1)[events.codes],
            "positions": None if events is None else events.positions,
            "next_ts": self.next_ts,
            "has_ids": self.has_ids,
            "totals": [totals.events, totals.nodes, totals.touches, totals.matches],
        }

    def _restore(self, state: Any) -> None:
        """Restore the state of :meth:`_state`."""
        events, nodes, touches, matches = map(int, state["totals"])
        self.partitions = StreamPartitions.from_state(state["partitions"], len(self.plan.keys))
        self.n_lasting = len(self.partitions)
        self.next_ts, self.has_ids = int(state["next_ts"]), state["has_ids"] is True
        self.chunks, self.recent = EventChunks(), None
        self._make_room()
        self.open.forget(np.arange(self.n_lasting))
        self.decided[:], self.pending[:] = 0, LATEST
        if state["events"] is not None:
            sizes, batch = self.partitions.sizes[: self.n_lasting], batch_of_plain(state["events"])
            if tuple(sorted(batch.columns)) != columns_of(self.plan):
                raise ValueError("columns")
            self._follow(KeptEvents.from_state(batch, state["codes"], state["positions"], sizes))
        self.totals = Counts(events=events, nodes=nodes, touches=touches, matches=matches)
