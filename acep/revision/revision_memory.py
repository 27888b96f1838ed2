"""Bound the memory of the events and matches that a revision may need, by matching later where it is full.

Events that wait are not matched yet, so nothing depends on them. They are matched once there is room, or once they are
final, as without speculation (docs/internals/disorder.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from acep.arrivals.event_log import EventLog
from acep.events.batch import Batch
from acep.matches.found_columns import FoundColumns, concatenate, ops_of
from acep.matches.records import Found
from acep.revision.revocable_matches import RevocableColumns, differences, found_bytes
from acep.runtime.stream import Stream, in_output_order

__all__ = ["Room", "match_all_waiting", "match_waiting", "take_in_events"]

Ints = npt.NDArray[np.int64]
SLICE = 256  # events that are matched before the memory is looked at again
NO_NUMBERS = np.zeros(0, np.int64)


@dataclass
class Room:
    """The bytes for the events and matches of one plan that a revision may need: at most ``byte_limit``. ``waiting``:
    events that are not matched yet. ``last``: the place, by time and order, of the last event that was matched.
    ``blind``: events before this time were matched and not kept, so that they cannot be matched again (``None``: there
    are none). ``shed``: events and matches that were given up. ``peak``: the most bytes so far."""

    byte_limit: int
    waiting: EventLog
    last: tuple[int, int] | None = None
    blind: int | None = None
    shed: int = 0
    peak: int = 0

    def dump(self) -> dict[str, Any]:
        """Return the state, without the events that wait, as plain data."""
        return {"last": self.last, "blind": self.blind, "shed": self.shed, "peak": self.peak}

    def with_state(self, data: Mapping[str, Any], waiting: EventLog) -> Room:
        """Return the room with the state of :meth:`dump`. Raises :class:`ValueError`, :class:`KeyError` or
        :class:`TypeError` for other data."""
        last = None if data["last"] is None else (int(data["last"][0]), int(data["last"][1]))
        blind = None if data["blind"] is None else int(data["blind"])
        shed, peak = int(data["shed"]), int(data["peak"])
        if shed < 0 or peak < 0:
            raise ValueError("counts")
        return replace(self, waiting=waiting, last=last, blind=blind, shed=shed, peak=peak)


class Bounded(Protocol):
    """A plan over a stream that may be revised (:mod:`acep.revision.revised_plan`), as this module uses it."""

    log: EventLog
    revocable: RevocableColumns
    stream: Stream
    final: int | None

    def feed(self, batch: Batch | None, numbers: Ints, inserted: int, removed: Ints) -> Sequence[Found]:
        """Match events now."""

    def forget_final(self, final: int, *, now: bool) -> None:
        """Forget what only an event before ``final`` could change."""

    def reach(self, tick: int) -> tuple[int | None, int | None]:
        """Return the earliest start of a match that a change at ``tick`` concerns, and of an event to match again."""


def take_in_events(plan: Bounded, room: Room, batch: Batch | None, numbers: Ints, removed: Ints) -> Sequence[Found]:
    """Take in events, and remove others by their numbers; match those that change what was matched, and as many others
    as there is room for."""
    changes: list[Sequence[Found]] = []
    if len(removed):
        room.waiting.remove(removed)
    early = 0 if batch is None else _n_early(batch, room.last)
    if batch is not None and early < len(batch):
        room.waiting.add(batch.take(slice(early, None)), numbers[early:])
    first = None if batch is None or not early else batch.take(slice(0, early))
    if first is not None and room.blind is not None:
        # Nothing that was given and may change has a partial match or an event that such an event comes before.
        n_blind = int(np.count_nonzero(first.ts < room.blind))
        room.shed += n_blind
        early -= n_blind
        first, numbers = (first.take(slice(n_blind, None)) if early else None), numbers[n_blind:]
    if first is not None or len(removed):
        changes.append(plan.feed(first, numbers[:early], early, removed))
        changes.append(_fit(plan, room))
    changes.append(match_waiting(plan, room))
    return in_output_order(_net_changes(changes))


def match_waiting(plan: Bounded, room: Room) -> Sequence[Found]:
    """Match events that wait: those that are final, and others as long as there is room."""
    changes: list[Sequence[Found]] = []
    while (first := room.waiting.oldest) is not None:
        early = _may_go_early(plan, room)
        if not early and (plan.final is None or first >= plan.final):
            break
        batch, numbers = room.waiting.take(SLICE, None if early else plan.final)
        room.last = _place(batch, len(batch) - 1)
        matches = plan.feed(batch, numbers, 0, NO_NUMBERS)
        if early and (excess := _bytes(plan) - room.byte_limit) > 0 and len(matches):
            n_fitting = max(0, len(matches) - len(matches) * excess // max(1, found_bytes(matches)) - 1)  # type: ignore[arg-type]
            room.shed += len(matches) - n_fitting
            matches = plan.revocable.keep_last(n_fitting)
        changes.append(matches)
        changes.append(_fit(plan, room))
    return in_output_order(_net_changes(changes))


def match_all_waiting(plan: Bounded, room: Room) -> list[Sequence[Found]]:
    """Match all events that wait, as no event will come or go any more."""
    plan.log, plan.revocable = plan.log.empty(), RevocableColumns()
    matches: list[Sequence[Found]] = []
    while len(room.waiting):
        matches += plan.stream.push(room.waiting.take(SLICE, None)[0])
    return matches


def _may_go_early(plan: Bounded, room: Room) -> bool:
    """Return whether events may be matched before they are final: there is room, and all events are kept that a change
    may concern."""
    if room.blind is not None:
        begin = None if plan.final is None else plan.reach(plan.final)[1]
        if begin is None or begin < room.blind or plan.log.counted:
            return False
        room.blind = None
    if _bytes(plan) <= room.byte_limit // 2:
        return True
    _forget(plan)
    return _bytes(plan) <= room.byte_limit // 2


def _fit(plan: Bounded, room: Room) -> Sequence[Found]:
    """Fit what is kept into the room; return the matches that have to be taken back for that."""
    if _bytes(plan) > room.byte_limit:
        _forget(plan)
    retracted: Sequence[Found] = []
    if _bytes(plan) > room.byte_limit:
        retracted = _clear(plan, room)
    room.peak = max(room.peak, _bytes(plan))
    return retracted


def _clear(plan: Bounded, room: Room) -> Sequence[Found]:
    """Forget all that was kept. If some of it is not final, its matches are taken back, and its partial matches are
    given up, so that no change concerns them."""
    retracted: Sequence[Found] = []
    last = room.last
    assert last is not None
    if plan.final is None or last[0] >= plan.final:
        batch, _ = plan.log.all_events()
        room.shed += len(batch)
        if len(batch):
            plan.stream.revise(batch, batch.take(slice(0, 0)), 0)
        retracted = plan.revocable.not_before(plan.final)
    room.blind = last[0] + 1
    plan.log, plan.revocable = plan.log.empty(), RevocableColumns()
    return retracted


def _forget(plan: Bounded) -> None:
    """Forget all that no change can concern any more."""
    if plan.final is not None:
        plan.forget_final(plan.final, now=True)
    plan.log.compact()
    plan.revocable.compact()


def _bytes(plan: Bounded) -> int:
    return plan.log.bytes + plan.revocable.bytes


def _net_changes(changes: Sequence[Sequence[Found]]) -> Sequence[Found]:
    """Return what comes and goes in several steps, without the matches that came and went."""
    parts = [part for part in changes if isinstance(part, FoundColumns) and len(part)]
    if not parts:
        return []
    matches = concatenate(parts)
    if not 0 < matches.taken_back < len(matches):
        return matches
    signs = ops_of(matches)
    added, retracted = matches.take(np.flatnonzero(signs > 0)), matches.take(np.flatnonzero(signs < 0))
    lasting = [part.take(rows) for part, rows in zip((retracted, added), differences(retracted, added), strict=True)]
    return concatenate(lasting)


def _place(batch: Batch, row: int) -> tuple[int, int]:
    return int(batch.ts[row]), 0 if batch.order is None else int(batch.order[row])


def _n_early(batch: Batch, last: tuple[int, int] | None) -> int:
    """Return how many events of a batch come before a place; those of the same place came later."""
    if last is None:
        return 0
    n_before = int(np.searchsorted(batch.ts, last[0]))
    if batch.order is not None:
        end = int(np.searchsorted(batch.ts, last[0], "right"))
        n_before += int(np.searchsorted(batch.order[n_before:end], last[1]))
    return n_before
