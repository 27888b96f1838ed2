"""Keep the plans of a session to their budgets: events are pushed in stretches, and policies learn between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from acep.budget.pace import Pace
from acep.errors import DataWarning, SnapshotError, warn_caller
from acep.events.batch import Batch
from acep.events.pushed_rows import Pushed, rows_of
from acep.matches.records import Counts
from acep.native import _native
from acep.native.decoding import Decoder
from acep.native.encoding import Encoder
from acep.shedding.controller import SheddingController
from acep.shedding.partition_sampler import PartitionSampler
from acep.shedding.policy_context import no_recall
from acep.shedding.recovery.recovery import Recovery
from acep.shedding.recovery.rematch import SHED

if TYPE_CHECKING:
    from acep.shedding.search_sampler import SearchSampler

    Effort = SheddingController | PartitionSampler | SearchSampler

__all__ = ["SessionBudget"]

BLOCK = 256  # events between two places where policies follow, wherever batches end
BESIDE = 8  # texts and ids get one part in so many of the memory
ROUNDS = 8  # attempts to shed partial matches to make room for texts
MATCH_LIMIT = 2**62  # matches
USED = 0.9  # share of an allowance from which on it counts as used up
LISTS_PER_EVENT = 4  # a session far from its bound is weighed after one event for so many of its lists
NOT_ESTIMATED = "how many is not estimated where matches may be taken back"


@dataclass
class SessionBudget:
    """The budgets of a session. ``efforts`` keep plans to their budgets, ``pace`` keeps all of them to a time budget.
    ``memory``: the most bytes, in equal shares, that the session may hold after a call. ``recoveries`` recover the
    match bundles of some plans. ``revisable``: partitions may be matched again."""

    core: _native.Session
    encoder: Encoder
    decoders: Sequence[Decoder]
    efforts: Mapping[int, Effort]
    pace: Pace | None
    memory: int | None
    recoveries: Mapping[int, Recovery]
    revisable: bool = False
    left_out: int = 0  # late events that were shed
    match_memory: int = 0  # the most bytes of matches in a stretch of events, before the state was taken
    starved: int = 0  # events for which there was not the time of one touch each, though more was needed: in no sample
    peak_after_calls: int = 0  # bytes after a call
    next_weighing: int = 0  # the number of the event after which bytes are counted next
    is_warned: bool = False  # that the budget of time is not kept

    def __post_init__(self) -> None:
        self.choosing = {n: effort for n, effort in self.efforts.items() if isinstance(effort, SheddingController)}
        if self.memory is not None:
            for effort in self.choosing.values():
                effort.bound_memory(self.core, (self.memory - self.memory // BESIDE) // len(self.efforts))
        for number, recovery in self.recoveries.items():
            self.choosing[number].reconciliation = recovery.reconciliation

    def push(self, batch: Batch, *, last: bool = False) -> None:
        """Push events in stretches, each up to the next time that a policy or a recovery has something to do. ``last``:
        no event comes after them."""
        if self.pace is not None:
            self.pace.begin(len(batch), int(batch.ts[0]))
        before = self.encoder.arrived
        self._push(self.encoder.words(batch), 0, before, last=last)
        if self.pace is not None and self.pace.remark and not self.is_warned:
            self.is_warned = True
            warn_caller(self.pace.remark, DataWarning)

    def revise(self, words: Pushed, n_rematched: int, n_fresh: int, removed: int) -> None:
        """Push events, the first ``n_rematched`` of which are of partitions that were reset; ``n_fresh`` of these come
        for the first time, and ``removed`` others were taken back.

        The work is charged to the allowance of all events, and grants nothing, except that time is granted for the
        events ``removed`` too.
        """
        n_rows = len(words[0])
        if self.pace is not None:
            if not any(effort.rate for effort in self.efforts.values()):
                n_fresh += removed
            self.pace.begin(max(1, n_fresh + n_rows - n_rematched), int(words[0][-1]))
        self.encoder.repeated += n_rematched - n_fresh
        before = self.encoder.arrived - (n_rows - n_rematched) - n_fresh
        self._look_at_late_events(before, before + n_fresh)
        if n_rematched:
            self.core.begin_again(n_fresh)
            rematched = rows_of(words, slice(0, n_rematched))
            if self.pace is None:
                self.core.push(*rematched, hold=True, again=n_rematched)
            else:
                now = int(rematched[0][-1]) if self.pace.clock is None else max(self.pace.clock, int(rematched[0][-1]))
                rate, matches = self.pace.rate(max(1, n_fresh), now, learns=False)
                touches, walked = self._touches, self.walked
                self.allow(rate, max(1, n_fresh), matches)
                self.core.push(*rematched, hold=True, again=n_rematched)
                self.pace.record_stretch(n_rematched, self._touches - touches, 0.0, matches=self.walked - walked)
        self._push(words, n_rematched, before + n_fresh)

    def leave_out(self, n_rematched: int, n_fresh: int) -> bool:
        """Return whether to shed ``n_fresh`` late events instead of matching ``n_rematched`` for them, and do so.

        A late event should bring as many matches as one that ends matches, at each of its places in the pattern. So
        that is what it may cost, in allowances of an event, while partial matches are shed.
        """
        for number, effort in self.efforts.items():
            rate = effort.mean_rate(self.encoder.arrived)
            touches_per_event = effort.touches(self.core) / max(1, self.encoder.events)
            if rate is None or not effort.short(self.core):
                return False
            if n_rematched * touches_per_event <= rate * n_fresh * len(self.decoders[number].plan.variables):
                return False
        before = self.encoder.arrived
        self.encoder.repeated -= n_fresh
        self.core.begin_again(n_fresh)
        self._look_at_late_events(before, before + n_fresh)
        self.left_out += n_fresh
        return True

    def _look_at_late_events(self, seen: int, last: int) -> None:
        """Let policies look at the events up to number ``last`` that come at once, after event number ``seen``."""
        while (seen := min(seen + effort.events_left(seen) for effort in self.efforts.values())) <= last:
            for effort in self.efforts.values():
                if effort.is_due(seen):
                    effort.look(self.core, seen)

    def _push(self, words: Pushed, row: int, n_before: int, *, last: bool = False) -> None:
        """Push the rows from ``row`` on; ``n_before`` events have come before these. ``last``: none comes after."""
        n_rows, n_before = len(words[0]), n_before - row
        observers = [*self.efforts.values(), *self.recoveries.values()]
        while row < n_rows:
            end = min([n_rows, *(row + observer.events_left(n_before + row) for observer in observers)])
            end = end if self.pace is None else min(end, row + self.pace.stretch)
            # Policies follow wherever pushes end.
            if self.choosing and (n_rows - row < BLOCK or not self._is_shedding_idle):
                end = min(end, row + BLOCK - (n_before + row) % BLOCK)
            end = self._push_stretch(words, slice(row, end), n_before, last=last)
            for number, recovery in self.recoveries.items():
                self._recover(number, recovery, rows_of(words, slice(row, end)), n_before + end)
            row = end
        if self.memory is not None:
            self._fit_memory(self.memory)

    def _push_stretch(self, words: Pushed, rows: slice, n_before: int, *, last: bool) -> int:
        """Push some rows of a batch, whose row 0 has ``n_before`` events before it; policies whose epoch ends there
        learn. Return the row at which it ended, as policies follow where tokens run short."""
        core, row = self.core, int(rows.start)
        if self.pace is None:
            end = core.push(*words, row, last=last, stop=rows.stop, alert=True)
            self._look_after(end + n_before)
            return end
        n_rows, events = int(rows.stop - rows.start), n_before + rows.stop
        learns = any(effort.ends(events) for effort in self.choosing.values())
        is_resting = self._is_shedding_idle
        rate, matches = self.pace.rate(n_rows, int(words[0][rows.stop - 1]), learns=learns and not is_resting)
        touches, walked = self._touches, self.walked
        self.allow(rate, n_rows, matches, ahead=is_resting)
        end = core.push(*words, row, last=last, stop=rows.stop, alert=True)
        size = end - row
        touches, walked, learning = self._touches - touches, self.walked - walked, self.learning
        if rate < 1 and touches >= USED * rate * size:
            self.starved += size
        self._look_after(end + n_before)
        self.pace.record_stretch(size, touches, self.learning - learning, matches=walked)
        return end

    def _look_after(self, events: int) -> None:
        """Let policies look after ``events`` in all, if they are due, and follow where tokens have run short."""
        for effort in self.efforts.values():
            if effort.is_due(events):
                effort.look(self.core, events)
        if self.revisable or events % BLOCK == 0:
            for effort in self.choosing.values():
                effort.follow(self.core, events)

    def _recover(self, number: int, recovery: Recovery, rows: Pushed, events: int) -> None:
        """Pass the matches found in some rows, the last being event number ``events``, to the recovery of bundles."""
        rate = recovery.rate if self.pace is None else None  # a budget of time grants the touches itself
        if rate is not None:
            recovery.grant(rate / recovery.share, len(rows[0]))
        arrays = self.core.take(number)
        before = recovery.lent
        recovery.add_events(
            rows, events, self.decoders[number].decode_matches(arrays), arrays["keys"], self._shed_count(number)
        )
        if rate is not None and recovery.lent != before:
            self.choosing[number].lend(self.core, rate if recovery.lent else 0.0)

    def finish(self) -> None:
        """Pass the matches that the end of the stream has decided to the recovery of bundles."""
        for number, recovery in self.recoveries.items():
            arrays = self.core.take(number)
            recovery.finish(self.decoders[number].decode_matches(arrays), arrays["keys"], self._shed_count(number))

    def learn(self) -> None:
        """End the epoch here: each policy learns from the events since the last one."""
        for effort in self.choosing.values():
            if effort.events < self.encoder.arrived:
                effort.learn(self.core, self.encoder.arrived)

    @property
    def _is_shedding_idle(self) -> bool:
        """Return whether no plan's partial matches are watched, as there is enough allowance."""
        return all(isinstance(e, SheddingController) and e.is_shedding_idle(self.core) for e in self.efforts.values())

    def allow(self, rate: float, events: int, matches: float, *, ahead: bool = False) -> None:
        """Allow all plans together ``rate`` touches for each of the next ``events``, and so many ``matches``.
        ``ahead``: half of the touches are there at once."""
        match_allowance = int(min(matches / len(self.efforts), MATCH_LIMIT)) if self.efforts else 0
        for number, effort in self.efforts.items():
            plan_rate = rate / len(self.efforts)
            if number in self.recoveries:
                plan_rate = self.recoveries[number].allow(plan_rate, events)
            if isinstance(effort, SheddingController):
                effort.allow(self.core, plan_rate, events, ahead=ahead)
            else:
                effort.allow(self.core, plan_rate, events)
            self.core.allow_matches(number, match_allowance)

    @property
    def walked(self) -> int:
        """Return how many matches were made under a budget, before any choice among them."""
        return sum(self.core.walked(number) for number in self.efforts)

    @property
    def learning(self) -> float:
        """Return the seconds in which policies have learned in this session."""
        return sum(effort.seconds for effort in self.choosing.values())

    def epochs(self, events: int) -> int:
        """Return how many epochs of policies end within the next ``events``."""
        return sum(effort.epochs(self.encoder.arrived + events) for effort in self.choosing.values())

    @property
    def _touches(self) -> int:
        return sum(effort.touches(self.core) for effort in self.efforts.values())

    def _shed_count(self, plan: int) -> int:
        """Return how many partial matches, events and matches of match points a plan under a budget has given up."""
        shedding_counts = self.core.shedding_counts(plan)
        return sum(int(shedding_counts[name]) for name in SHED)

    def count(self, plan: int, counts: Counts) -> None:
        """Set in the counts of a plan what was shed and recovered, and what is known of its recall."""
        effort = self.efforts.get(plan)
        if effort is not None and not isinstance(effort, SheddingController):
            effort.fill_counts(self.core, counts)
        elif effort is not None:
            shedding_counts = self.core.shedding_counts(plan)
            counts.withheld, counts.skipped = int(shedding_counts["withheld"]), int(shedding_counts["passed_over"])
            counts.shed = int(shedding_counts["refused"]) + int(shedding_counts["dropped"]) + counts.skipped
            counts.touches, counts.deciding = int(shedding_counts["spent"]), int(shedding_counts["deciding"])
            counts.match_memory = self._match_memory
            counts.unknown = no_recall(self.decoders[plan].plan)
            if not counts.unknown and not self.revisable:
                turned_away = int(shedding_counts["turned_away"]) + self.starved
                unsampled_share = min(1.0, turned_away / max(self.encoder.events + 1, 1))
                counts.tallies = effort.recall(self.core, unsampled_share)
                counts.unknown = "too little was watched to say how many"
        if self.revisable and effort is not None:
            counts.shed, counts.skipped = counts.shed + self.left_out, counts.skipped + self.left_out
            counts.tallies, counts.unknown = (None, None), NOT_ESTIMATED
        if plan in self.recoveries:
            recovery = self.recoveries[plan]
            counts.matches, counts.touches = recovery.n_given, counts.touches + recovery.spent
            counts.recovering, counts.recovered = recovery.spent, recovery.recovered
            counts.unrecovered = recovery.unrecovered

    # Memory -----------------------------------------------------------------------------------------

    def _fit_memory(self, memory: int) -> None:
        """Fit texts and ids into the memory after a batch: drop those that nothing needs, and take what is still
        beyond their share from the memory of the partial matches."""
        share = memory // BESIDE
        for _ in range(ROUNDS):
            if self.encoder.bytes > share:
                self.encoder.forget_unused()
            excess = max(0, self.encoder.bytes - share) // len(self.efforts)
            if all(effort.beside >= excess for effort in self.choosing.values()):
                break
            for effort in self.choosing.values():
                effort.set_beside(self.core, excess)
        if excess == 0:
            for effort in self.choosing.values():
                effort.set_beside(self.core, 0)
        self._weigh()

    def _weigh(self) -> None:
        """Count the bytes; where the bound is distant only now and then, as that takes a look at each list."""
        if self._is_shedding_idle:
            if self.encoder.arrived < self.next_weighing:
                return
            n_lists = sum(map(self.core.weigh, self.choosing))
            self.next_weighing = self.encoder.arrived + n_lists // LISTS_PER_EVENT
        self.peak_after_calls = max(self.peak_after_calls, self.core.bytes + self.held)

    @property
    def held(self) -> int:
        """Return the bytes that policies hold; under a memory bound also those of texts and ids."""
        byte_count = sum(effort.policy_bytes for effort in self.choosing.values())
        return byte_count + (0 if self.memory is None else self.encoder.bytes)

    @property
    def peak(self) -> int:
        """Return the most bytes held after an event; 0 where memory has no bound."""
        if self.memory is None:
            return 0
        if self._is_shedding_idle:
            self._weigh()
        cores = sum(int(self.core.shedding_counts(number)["peak"]) for number in self.efforts)
        return max(self.peak_after_calls, cores)

    @property
    def _match_memory(self) -> int:
        """Return the most bytes of the matches of a stretch of events, of the plan with the most."""
        if self.memory is None:
            return 0
        peaks = (int(self.core.shedding_counts(number)["given_peak"]) for number in self.efforts)
        return max(self.match_memory, *peaks)

    # State ------------------------------------------------------------------------------------------

    def dump(self) -> dict[str, Any]:
        """Return the state as JSON-like data, with bytes."""
        return {
            "efforts": {str(number): effort.dump() for number, effort in self.efforts.items()},
            "pace": None if self.pace is None else self.pace.dump(),
            "recoveries": {str(number): recovery.dump() for number, recovery in self.recoveries.items()},
            "watching": {str(number): self.core.watching_state(number) for number in self.choosing},
            **({"again": [self.encoder.repeated, self.left_out]} if self.revisable else {}),
            # States of before have none of these.
            **({"starved": self.starved} if self.starved else {}),
            **({"match_memory": self._match_memory} if self._match_memory else {}),
        }

    def check(self, data: Any) -> None:
        """Raise :class:`SnapshotError` for the data of :meth:`dump` under another budget."""
        for name, members in (("efforts", self.efforts), ("recoveries", self.recoveries)):
            if set(data[name]) != {str(number) for number in members}:
                raise SnapshotError(
                    "the snapshot was taken under another budget",
                    hint="restore it with the budget= that it was taken with",
                    code="state_other",
                )

    def load(self, data: Any) -> None:
        """Restore :meth:`dump`. Raises :class:`ValueError`, :class:`TypeError` or :class:`KeyError` for other data."""
        for number, effort in self.efforts.items():
            effort.load(self.core, data["efforts"][str(number)])
        for number, recovery in self.recoveries.items():
            recovery.load(data["recoveries"][str(number)])
        for number in self.choosing if "watching" in data else []:  # states of before have none
            self.core.load_watching_state(number, data["watching"][str(number)])
        self.starved, self.match_memory = int(data.get("starved", 0)), int(data.get("match_memory", 0))
        if not 0 <= self.starved <= self.encoder.events or self.match_memory < 0:
            raise ValueError("starved")
        if self.revisable:
            self.encoder.repeated, self.left_out = map(int, data["again"])
            if self.left_out < 0 or not -self.left_out <= self.encoder.repeated <= self.encoder.events:
                raise ValueError("events that came again")
            self.core.repeated(self.encoder.repeated)
        if (self.pace is None) != (data["pace"] is None):
            raise ValueError("pace")
        if self.pace is not None:
            self.pace.load(data["pace"])
