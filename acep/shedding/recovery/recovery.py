"""Recover whole match bundles: if one match survives shedding, the events around it are matched again, exactly.

Under a budget one partial match stands for others (a *proxy*): when it is complete, its bundle is found. Its other
matches are searched exactly, in the events of the partition from two windows before the first match point on. Each
earlier or later match point that this finds extends the search by a window (2016 paper, section 3.2).
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from acep.events.pushed_rows import Pushed
from acep.learning.policy_context import PolicyContext
from acep.learning.shedding_table import SheddingTable
from acep.matches.found_columns import FoundColumns, concatenate
from acep.shedding.recovery.cost import RecoveryCost
from acep.shedding.recovery.pending import ALWAYS, NEVER, PendingPartition, select_matches
from acep.shedding.recovery.recent import Recent
from acep.shedding.recovery.reconcile import Reconciliation
from acep.shedding.recovery.rematch import AskedMatches, Rematch, rematch
from acep.storage.plain_data import from_json, numbers_like, to_plain

if TYPE_CHECKING:
    from acep.shedding.native_protocol import PlanSession

__all__ = ["CUT", "Recovery"]

Ints = npt.NDArray[np.int64]
Key = tuple[int, ...]

CUT = 1024  # events between two checks for bundles to recover
KEPT_WINDOWS = 12  # windows of the stream that are kept
LONG = 4  # windows of an unfinished bundle that are recovered at a time
CARRIED = 16_384  # events whose unused share is carried over at most
QUIET = 8192  # events without a bundle too costly, after which the bank may have plenty
PLENTY_SHARE = 1 / 8  # share of a full bank that is plenty
EAGER = 0.5  # share of the bank that a bundle's expected cost may take
NUMBERS = ("bank", "lent", "spent", "n_given", "recovered", "unrecovered", "full", "denied")
STORED_NAMES = {"n_given": "given"}  # names of numbers in stored state, where they differ


@dataclass
class Recovery:
    """The recovery of one plan's match bundles. ``share``: of the allowance; ``rate``: that share in touches per
    event (``None``: given with each stretch of events). ``bank``: touches that may be spent. ``lent``: the bank has
    plenty, so the share goes to ordinary matching."""

    share: float
    rate: float | None
    bank: float = 0.0
    lent: bool = False
    spent: int = 0
    n_given: int = 0
    recovered: int = 0
    unrecovered: int = 0
    costs: RecoveryCost = field(default_factory=RecoveryCost)
    full: float = 0.0  # the most that the bank holds
    denied: int = 0  # number of events when a bundle was last too costly
    was_too_costly: bool = False  # whether some bundle was, in the last check
    partitions: dict[Key, PendingPartition] = field(default_factory=dict)
    checks: list[tuple[int, str, Key]] = field(default_factory=list)
    marks: deque[tuple[int, int]] = field(default_factory=lambda: deque([(NEVER, 0)]))  # time, shed until then
    out: list[FoundColumns] = field(default_factory=list)
    session: PlanSession = field(init=False)
    number: int = field(init=False)
    span: int = field(init=False)
    shedding_table: dict[str, Any] = field(init=False)
    recent: Recent = field(init=False)
    reconciliation: Reconciliation = field(init=False)

    def start(self, session: PlanSession, number: int, keys: Sequence[int], span: int, context: PolicyContext) -> None:
        """Start before the first event. ``keys``: positions of the partition attributes among the columns of the
        session; ``span``: the window in ticks."""
        self.session, self.number, self.span = session, number, span
        self.recent = Recent(keys)
        table = list(session.key_tables).index(tuple(keys))
        self.reconciliation = Reconciliation(table, len(keys), KEPT_WINDOWS * span)
        self.shedding_table = SheddingTable.flat(context).for_native_core(context)

    # The stream ------------------------------------------------------------------------------------

    def events_left(self, events: int) -> int:
        """Return how many events remain until the next check."""
        return CUT - events % CUT

    def allow(self, rate: float, events: int) -> float:
        """Bank the share of ``rate`` touches for each of the next ``events``; return the rate left for other work."""
        if self.rate is not None:
            rate = min(rate, self.rate / self.share)
        self.grant(rate, events)
        return rate if self.lent else rate * (1 - self.share)

    def grant(self, rate: float, events: int) -> None:
        """Add the share of ``rate`` touches for each of ``events`` to the bank, unless it is lent."""
        if not self.lent:
            self.full = rate * self.share * CARRIED
            self.bank = min(self.bank + rate * self.share * events, max(self.full, self.bank))

    def add_events(self, rows: Pushed, events: int, matches: FoundColumns, keys: Ints, shed: int) -> None:
        """Add events, up to event number ``events``, and the matches found in them, with the words of their keys."""
        self.recent.add(rows)
        self._hold_matches(matches, keys)
        if events % CUT == 0:
            clock = int(rows[0][-1])
            # Bundles that were open at the last check go on from there.
            self.recent.cut(self.marks[-1][0] - KEPT_WINDOWS * self.span)
            if self._settle(clock - 1, shed):
                self.denied = events
            self.marks.append((clock, shed))
            while len(self.marks) > 1 and self.marks[1][0] < clock - KEPT_WINDOWS * self.span:
                self.marks.popleft()
            # With plenty in the bank, the share is of more use elsewhere.
            plenty = self.bank >= PLENTY_SHARE * self.full and events - self.denied >= QUIET
            self.lent = self.full > 0 and (plenty or self.bank >= self.full)

    def finish(self, matches: FoundColumns, keys: Ints, shed: int) -> None:
        """End the stream and give out the remaining bundles."""
        self._hold_matches(matches, keys)
        self.recent.cut(NEVER)
        self._settle(ALWAYS, shed)
        self.reconciliation.ended = True

    def take(self) -> FoundColumns | None:
        """Return the matches whose bundles have ended since the last call; ``None``: there are none."""
        out, self.out = self.out, []
        return concatenate(out) if out else None

    # Bundles ---------------------------------------------------------------------------------------

    def _hold_matches(self, matches: FoundColumns, keys: Ints) -> None:
        if not len(matches):
            return
        if not self.recent.keys:
            self._add((), matches)
            return
        distinct, key_index = np.unique(keys.reshape(len(matches), -1), axis=0, return_inverse=True)
        order = np.argsort(key_index.ravel(), kind="stable")
        edges = np.searchsorted(key_index.ravel()[order], np.arange(len(distinct) + 1))
        for k, words in enumerate(distinct.tolist()):
            self._add(tuple(words), matches.take(order[edges[k] : edges[k + 1]]))

    def _add(self, key: Key, matches: FoundColumns) -> None:
        pending = self.partitions.get(key)
        if pending is None:
            name = repr([column.take(slice(0, 1)).to_list() for column in matches.keys])
            pending = self.partitions[key] = PendingPartition(name)
        pending.add(matches)
        self._schedule(key, pending)

    def _schedule(self, key: Key, pending: PendingPartition) -> None:
        if pending.open or len(pending.points):
            base = pending.until if pending.open else int(pending.points[0])
            begin = pending.last if pending.open else base
            assert begin is not None
            assert base is not None
            check_time = min(pending.chain(begin, self.span, ALWAYS), base + (LONG - 1) * self.span) + self.span
        else:  # nothing waits: the partition is forgotten then
            check_time = (pending.until or 0) + KEPT_WINDOWS * self.span
        if check_time != pending.check_time:
            pending.check_time = check_time
            heapq.heappush(self.checks, (check_time, pending.name, key))

    def _settle(self, now: int, shed: int) -> bool:
        """Give out the bundles due by ``now``, up to which all events have come. Return whether one was too costly."""
        self.was_too_costly = False
        while self.checks and self.checks[0][0] <= now:
            check_time, _, key = heapq.heappop(self.checks)
            pending = self.partitions.get(key)
            if pending is None or pending.check_time != check_time:
                continue
            pending.check_time = ALWAYS + 1
            if not pending.open and not len(pending.points):
                del self.partitions[key]
                continue
            self._bundle(key, pending, now, shed)
            self._schedule(key, pending)
        return self.was_too_costly

    def _bundle(self, key: Key, pending: PendingPartition, now: int, shed: int) -> None:
        """Give out the matches of the earliest bundle of a partition, as far as it has come."""
        span = self.span
        if pending.open:
            assert pending.until is not None
            assert pending.last is not None
            begin = first = pending.until + 1
            last = pending.chain(pending.last, span, now)
        else:
            first = int(pending.points[0])
            begin = first - span
            last = pending.chain(first, span, now)
        continues = (
            pending.until is not None and pending.last is not None and first - pending.last <= span and not pending.open
        )
        if self._nothing_shed(begin - span, shed):
            exact_until = min(last + span, now)
            self._give(pending, pending.take(last), first, last, continues)
            pending.until, pending.open, pending.is_complete = (
                exact_until,
                exact_until < last + span,
                pending.is_complete or not continues,
            )
            return
        parts, exact_until, reached, is_complete = self._recover(key, pending, begin, first, last, now, continues)
        if not is_complete:
            self._give_partly(key, pending, parts, first, max(last, min(reached, exact_until)), exact_until, continues)
            return
        pending.take(exact_until)
        lowest = min((int(part.end.min()) for part in parts if len(part)), default=first)
        self._give(pending, parts, lowest, reached, continues)
        for part in parts:
            self.reconciliation.add_recovered(key, part.end)
        pending.until, pending.open, pending.is_complete = exact_until, exact_until < reached + span, True
        if not pending.open:
            self.recovered += 1

    def _nothing_shed(self, since: int, shed: int) -> bool:
        """Return whether nothing has been shed since a time."""
        shed_before = 0
        for clock, count in self.marks:
            if clock >= since:
                break
            shed_before = count
        return shed_before == shed

    def _recover(
        self, key: Key, pending: PendingPartition, begin: int, first: int, last: int, now: int, continues: bool
    ) -> tuple[list[FoundColumns], int, int, bool]:
        """Return the matches of a bundle from ``begin`` on, the time up to which they are complete, the last match
        point, and whether none is missing (its events may be gone, its start given out, or the cost too high)."""
        span = self.span
        if continues:  # its beginning was given out incomplete
            return [], NEVER, last, False
        wanted_begin, begin = begin, self._floor(pending, begin)
        if begin > wanted_begin and (pending.open or not pending.known_before(wanted_begin, begin)):
            return [], NEVER, last, False
        events = self.recent.count(key, begin - span, min(last + span, now))
        matches = sum(int(np.count_nonzero(part.end <= last)) for part in pending.waiting)
        # With a full bank any bundle is tried, so that costs are learned anew.
        if self.bank < self.full and self.costs.cost(events, matches) > self.bank * EAGER:
            self.was_too_costly = True
            return [], NEVER, last, False
        spent_before = self.spent
        recovered = self._widen(key, pending, begin, first, last, now)
        parts, exact_until, _, enough = recovered
        n_recovered = sum(len(part) for part in parts)
        n_known = sum(int(np.count_nonzero(part.end <= exact_until)) for part in pending.waiting)
        self.costs.learn(events, matches, self.spent - spent_before, enough=enough, found_more=n_recovered > n_known)
        return recovered

    def _widen(
        self, key: Key, pending: PendingPartition, begin: int, first: int, last: int, now: int
    ) -> tuple[list[FoundColumns], int, int, bool]:
        """Return the matches of a bundle, as :meth:`_recover` does, searched a window at a time."""
        span = self.span
        run = self._match_again(key, begin, now, last)
        parts = [] if run.matches is None else [run.matches]
        if not run.enough or pending.open:
            return parts, run.exact_until, run.last, run.enough
        # Search backward, a window at a time, as long as an earlier match point is found.
        lowest, searched_from = min([first, *(int(part.end.min()) for part in parts if len(part))]), begin
        while (wanted_begin := lowest - span) < searched_from:
            start = self._floor(pending, wanted_begin)
            if not pending.known_before(wanted_begin, start):
                return parts, run.exact_until, run.last, False
            if start >= searched_from:
                break
            run_before = self._match_again(key, start, searched_from - 1, ALWAYS)
            if not run_before.enough:
                return parts, run.exact_until, run.last, False
            searched_from = start
            if run_before.matches is not None and len(run_before.matches):
                parts.append(run_before.matches)
                lowest = min(lowest, int(run_before.matches.end.min()))
        return parts, run.exact_until, run.last, True

    def _floor(self, pending: PendingPartition, begin: int) -> int:
        """Return the earliest time, not before ``begin``, from which matches not yet given out can be found."""
        if pending.until is not None:
            begin = max(begin, pending.until + 1)
        return begin if self.recent.floor is None else max(begin, self.recent.floor + self.span)

    def _give_partly(
        self,
        key: Key,
        pending: PendingPartition,
        parts: list[FoundColumns],
        first: int,
        last: int,
        exact_until: int,
        continues: bool,
    ) -> None:
        """Give out the matches of a bundle that is not recovered: exact up to ``exact_until``,
        then those found before."""
        waiting = pending.take(max(last, exact_until))
        inexact = [select_matches(part, part.end > exact_until) for part in waiting]
        exact = [select_matches(part, part.end <= exact_until) for part in parts if exact_until > NEVER]
        for part in exact:
            self.reconciliation.add_recovered(key, part.end)
        lowest = min((int(part.end.min()) for part in exact if len(part)), default=first)
        self._give(pending, exact + inexact, lowest, last, continues or pending.open)
        if not continues:
            self.unrecovered += 1
        pending.until, pending.open, pending.is_complete = max(last, exact_until), False, False

    def _give(
        self, pending: PendingPartition, parts: Sequence[FoundColumns], first: int, last: int, continues: bool
    ) -> None:
        pending.first = pending.first if continues or pending.open else first
        pending.last = last
        for part in parts:
            if len(part):
                self.n_given += len(part)
                self.out.append(replace(part, bundle=np.full(len(part), pending.first, np.int64), in_order=False))

    def _match_again(self, key: Key, begin: int, stop: int, last: int) -> Rematch:
        """Return the matches that end from ``begin`` to ``stop``, exactly, but no later than a window after the
        last of them; ``last``: a known match point."""
        events = self.recent.events_of(key, begin - self.span, stop)
        asked = AskedMatches(begin, stop, last, self.span)
        run = rematch(self.session, self.number, self.shedding_table, events, asked, int(self.bank))
        self.spent += run.spent
        self.bank -= run.spent
        self.was_too_costly |= not run.enough
        return run

    # State -----------------------------------------------------------------------------------------

    def dump(self) -> dict[str, Any]:
        """Return the state as JSON-like data; all matches given out must have been taken."""
        return {
            **{STORED_NAMES.get(name, name): getattr(self, name) for name in NUMBERS},
            "settling": self.reconciliation.dump(),
            "worth": to_plain(self.costs.sums),
            "areas": to_plain([[list(key), pending.dump()] for key, pending in self.partitions.items()]),
            "marks": [list(mark) for mark in self.marks],
            "recent": to_plain(self.recent.dump()),
        }

    def load(self, data: Any) -> None:
        """Restore :meth:`dump`. Raises :class:`ValueError`, :class:`KeyError` or :class:`TypeError` for other data."""
        numbers = {name: data[STORED_NAMES.get(name, name)] for name in NUMBERS}
        vars(self).update(numbers_like(self, NUMBERS, numbers))
        if not (np.isfinite([self.bank, self.full]).all() and min(self.bank, self.spent) >= 0):
            raise ValueError("allowance")
        self.reconciliation.load(data["settling"])
        self.costs = self.costs.with_sums(from_json(data["worth"]))
        self.marks = deque((int(clock), int(count)) for clock, count in data["marks"])
        self.recent.load(from_json(data["recent"]), self.session.width)
        self.partitions, self.checks = {}, []
        for words, state in from_json(data["areas"]):
            key = tuple(int(word) for word in words)
            if len(key) != len(self.recent.keys):
                raise ValueError("partition")
            pending = self.partitions[key] = PendingPartition.from_data(
                state, self.session.plans[self.number].variables
            )
            self._schedule(key, pending)
