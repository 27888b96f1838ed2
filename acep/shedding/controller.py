"""Connect a load shedding policy to the native core: epochs, shedding tables, and the budget of touches."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from acep.errors import AcepError, PolicyError, QueryError, SnapshotError
from acep.learning.estimation.drift import YieldMonitor
from acep.learning.estimation.recall import ALL, COLUMNS, Rows, SampledUnits, Tally
from acep.learning.policy import Epoch, Policy
from acep.learning.policy_context import PolicyContext
from acep.learning.shedding_table import SheddingTable
from acep.learning.trajectories.log import Log, log_of
from acep.learning.trajectories.match_vectors import Ints
from acep.shedding.recovery.reconcile import Reconciliation
from acep.shedding.shadow_sampler import ShadowSampler
from acep.storage.plain_data import from_json, numbers_like, to_plain

if TYPE_CHECKING:
    from acep.shedding.native_protocol import NativeCore

__all__ = ["SheddingController", "allowance"]

FIRST_EPOCH = 1024  # events
LEAST_EPOCH = 128
LAST_EPOCH = 65_536
LEARNED = 2  # factor on the length of all epochs of a policy that begins with a learned state
LOOK_EVENTS = 8192  # events between two checks of the yield
EPOCH_AFTER_DRIFT = 4096  # length of the epoch after detected drift,
SLOWLY = 4  # and each next one is longer by 1/SLOWLY
CALM_EPOCH = 32_768  # while tokens suffice, and nothing is dropped or logged
LEAST_RATE = 0.01  # the least touches per event reported to a policy
LEAST_POOL = 1 << 16  # bytes for partial matches
AMPLE_RATE = 1e9  # touches per event under which nothing is shed; the state of the native core has finite numbers alone
CARRIED = 16_384  # the most events whose unused budget is carried over
RESERVE = 8  # under a time budget, one part in so many of the events may have its unused budget carried over

NUMBERS = ("events", "length", "_longest", "_slowly", "spent", "_dropped", "_granted")
"""Numbers that are saved in the state, without the underscores of their names."""

# Errors that a policy may raise for an invalid state.
NONSENSE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


def allowance(work: float | None, rate: float, events: int) -> tuple[float, float]:
    """Return the touches allowed per event, and the most unused ones to carry over. ``rate``: touches that time permits
    for each of the next ``events``, infinite where nothing is to be shed; ``work``: the bound on touches per event
    (``None``: no bound).

    >>> allowance(None, math.inf, 80), allowance(4.0, math.inf, 80)
    ((1000000000.0, 10000000000.0), (4.0, 65536.0))
    """
    if work is not None and rate >= work:
        return work, work * CARRIED
    rate = min(rate, AMPLE_RATE)
    # Unused time already raises the next rate, so only a reserve is carried over.
    return rate, rate * min(events / RESERVE, CARRIED)


@dataclass
class SheddingController:
    """The policy of one plan at work. ``rate`` is the budget in touches per event (``None``: no bound). Epochs are
    counts of events, so that batches make no difference. ``learned``: the initial state. ``trajectories``: about how
    many trajectories to log in an epoch, for policies that log all."""

    policy: Policy
    seed: int
    rate: float | None
    learned: Mapping[str, Any] | None = None
    memory: int | None = None  # bytes for the policy, the partial matches and all else that waits
    policy_bytes: int = 0  # bytes that the policy's state takes
    beside: int = 0  # bytes of the memory that texts take
    trajectories: int | None = None
    estimate: float = 0.0  # share of the budget for shadow samples that estimate the recall
    credit: float = 0.0  # events whose budget is there before the first one
    context: PolicyContext = field(init=False)
    number: int = field(init=False)
    shedding_table: SheddingTable = field(init=False)
    _granted: float = 0.0  # touches granted in this epoch by a time budget
    events: int = 0  # at the end of the last epoch
    length: int = FIRST_EPOCH
    _longest: int = LAST_EPOCH
    _slowly: int = 1  # each epoch is longer than the last by 1/slowly
    spent: int = 0
    _dropped: int = 0
    shadow_sampler: ShadowSampler = field(default_factory=ShadowSampler)
    seconds: float = 0.0  # spent learning and choosing
    sampled_units: SampledUnits = field(init=False)
    _yield_monitor: YieldMonitor = field(default_factory=YieldMonitor)
    _drifted: bool = False  # drift was detected at this look
    _looked: tuple[int, int] = (0, 0)  # match points and touches until the last look
    reconciliation: Reconciliation | None = None  # only if match bundles are recovered
    _noted: Rows = field(
        default_factory=Rows
    )  # of shadow-sampled units in this epoch, as far as reports have read them

    def start(self, core: NativeCore, number: int, context: PolicyContext) -> None:
        """Begin the policy, once the session has its plans and before the first event."""
        self.number, self.context = number, context
        self.sampled_units = SampledUnits(context.span, context.counted)
        core.start_shedding(number, self.seed % 2**64)
        rate = self.rate or 0.0
        core.allow(number, -1.0 if self.rate is None else rate, rate * CARRIED, rate * self.credit)
        with self._blaming_policy("begin"):
            shedding_table = self.policy.begin(context, self.seed)
            if self.learned is None:
                return self._apply(core, shedding_table)
        self.length = self._longest = LEARNED * LAST_EPOCH
        try:
            with np.errstate(all="ignore"):
                self._apply(core, self.policy.restore(self.learned))
                if self.rate is not None:
                    self._yield_monitor = YieldMonitor(self.shedding_table.found(self.rate))
        except NONSENSE:
            raise SnapshotError(
                "the history is damaged: the state of its policy makes no sense", code="state_damaged"
            ) from None

    def bound_memory(self, core: NativeCore, memory: int) -> None:
        """Bound the memory to ``memory`` bytes: up to half for the policy, the rest for the native core.

        Raises :class:`QueryError` if that is too little, or if more than partial matches waits in the query."""
        self._weigh()
        needed = max(2 * self.policy_bytes, self.policy_bytes + 2 * (core.least_memory(self.number) + LEAST_POOL))
        if memory < needed:
            raise QueryError(
                f"a query has {memory:,} bytes of memory, and needs at least {needed:,} under {self.policy.name!r}",
                hint="more memory, or a policy that learns nothing, such as 'newest-per-state'",
                code="option_invalid",
            )
        self.memory = memory
        self.sampled_units = replace(self.sampled_units, max_rows=min(self.sampled_units.max_rows, memory >> 10))
        self._pass_on_bound(core)

    def set_beside(self, core: NativeCore, size: int) -> None:
        """Set how many bytes of the memory texts take."""
        if size != self.beside:
            self.beside = size
            self._pass_on_bound(core)

    def _weigh(self) -> None:
        """Update how many bytes the state of the policy and the sampled units take."""
        with self._blaming_policy("state"):
            self.policy_bytes = held_by(self.policy.state()) + self.sampled_units.rows.nbytes

    def _pass_on_bound(self, core: NativeCore) -> None:
        if self.memory is None:
            return
        self._weigh()
        if self.policy_bytes > self.memory // 2:  # no room for the learned state: begin anew
            with self._blaming_policy("begin"):
                self._apply(core, self.policy.begin(self.context, self.seed))
            self._weigh()
        try:
            core.bound_memory(self.number, max(0, self.memory - self.policy_bytes - self.beside))
        except ValueError:
            raise QueryError(
                "a bound on memory is not kept by queries with negations, HAVING, RETURN or a choice among matches",
                hint="leave memory out of the Budget, and bound the work",
                code="option_invalid",
            ) from None

    def allow(self, core: NativeCore, rate: float, events: int, *, ahead: bool = False) -> None:
        """Allow ``rate`` touches for each of the next ``events``, but no more than :attr:`rate`. ``ahead``: half of
        what time permits is there at once."""
        limit = rate
        rate, carried = allowance(self.rate, rate, events)
        if self.events == self._granted == 0 and self.shedding_table.prices:
            self._apply(core, self.shedding_table, rate)
            self._yield_monitor = YieldMonitor(self.shedding_table.found(rate))
        self._granted += rate * events if rate < AMPLE_RATE else math.inf
        if ahead and rate == limit:
            core.allow(self.number, rate / 2, rate * events, rate / 2 * events)
        else:
            core.allow(self.number, rate, carried)

    def lend(self, core: NativeCore, extra: float) -> None:
        """Allow ``extra`` touches per event beyond :attr:`rate` from now on."""
        assert self.rate is not None
        core.allow(self.number, self.rate + extra, (self.rate + extra) * CARRIED)

    def touches(self, core: NativeCore) -> int:
        """Return the touches spent so far, shedding decisions included."""
        return core.spent(self.number)

    def is_shedding_idle(self, core: NativeCore) -> bool:
        """Return whether partial matches are not watched, as there is enough allowance."""
        return core.is_shedding_idle(self.number)

    def short(self, core: NativeCore) -> bool:
        """Return whether the allowance is insufficient now, so that partial matches are shed."""
        return float(core.shedding_counts(self.number)["price"]) > 0

    def mean_rate(self, events: int) -> float | None:
        """Return the touches allowed per event, ``None`` without a bound."""
        return self._allowance(events) if events > self.events else self.rate

    def events_left(self, events: int) -> int:
        """Return how many events come before the next :meth:`look`."""
        n_events = events - self.events
        if self.events == 0 and n_events < LOOK_EVENTS:  # early looks, at 1,024, 2,048 and 4,096 events
            return min(self.length, FIRST_EPOCH << (n_events // FIRST_EPOCH).bit_length()) - n_events
        return min(self.length - n_events, LOOK_EVENTS - n_events % LOOK_EVENTS)

    def is_due(self, events: int) -> bool:
        """Return whether event number ``events`` is the last one before a :meth:`look`."""
        return self.events_left(events - 1) == 1

    def ends(self, events: int) -> bool:
        """Return whether an epoch ends with event number ``events``."""
        return events == self.events + self.length

    def look(self, core: NativeCore, events: int) -> None:
        """Look after ``events`` in all: learn if the epoch ends, also early because drift was detected."""
        counts = core.shedding_counts(self.number)
        self._drifted = (self.ends(events) or (events - self.events) % LOOK_EVENTS == 0) and self._detect_drift(counts)
        if self._drifted or self.ends(events):
            self.learn(core, events)
        elif not counts["calm"]:
            self._shadow_sample(events, counts)
            core.shadow_sample(self.number, round(self.share * ALL))
        self._drifted = False

    def _detect_drift(self, counts: Mapping[str, Any]) -> bool:
        previous, self._looked = self._looked, (int(counts["points"]), int(counts["spent"]))
        if counts["calm"] or (self.rate is None and not self._granted):  # nothing is shed
            return False
        self._yield_monitor, drifted = self._yield_monitor.add_counts(
            self._looked[0] - previous[0], self._looked[1] - previous[1]
        )
        return drifted

    def epochs(self, events: int) -> int:
        """Return how many epochs end at or before event number ``events``, if their lengths double."""
        count, end, length = 0, self.events + self.length, self.length
        while end <= events:
            length = min(2 * length, self._longest)
            count, end = count + 1, end + length
        return count

    def learn(self, core: NativeCore, events: int) -> None:
        """End the epoch after ``events`` in all: the policy learns from it."""
        began = time.process_time()
        if self.reconciliation is not None:
            self.reconciliation.note(core, core.shadow_points(self.number))
        core.forget_idle_partitions()
        counts = core.shedding_counts(self.number)
        points, clock = core.shadow_points(self.number), int(counts["clock"])
        rows = (points, clock) if self.reconciliation is None else self.reconciliation.release(clock)
        self.sampled_units = self.sampled_units.add_rows(*rows)
        if counts["calm"] and not counts["logged"]:  # there is nothing to learn
            self._begin_epoch(events, counts)
            self.length = min(2 * self.length, CALM_EPOCH)
            self._pass_on_bound(core)
            return
        epoch = Epoch(
            events=events - self.events,
            allowance=self._allowance(events),
            spent=int(counts["spent"]) - self.spent,
            dropped=dropped_in(counts) - self._dropped,
            price=float(counts["price"]),
            log=self._log(core, points),
            drifted=self._drifted,
        )
        self._noted = Rows()
        self._shadow_sample(events, counts)
        self._begin_epoch(events, counts)
        longest = self._longest
        if self.trajectories is not None:
            logged = max(len(epoch.log.trajectories.made), 1)
            longest = max(LEAST_EPOCH, min(longest, self.trajectories * epoch.events // logged))
        self._slowly = SLOWLY if self._drifted else 1 if self.length == self._longest else self._slowly
        self.length = EPOCH_AFTER_DRIFT if self._drifted else min(self.length + self.length // self._slowly, longest)
        with self._blaming_policy("learn"):
            self._apply(core, self.policy.learn(epoch))
        self._pass_on_bound(core)
        self.seconds += time.process_time() - began

    def follow(self, core: NativeCore, events: int) -> None:
        """Begin an epoch after ``events`` in all if tokens have run short, so that the policy soon learns."""
        if not core.woke(self.number) or self.events == 0:
            return
        counts = core.shedding_counts(self.number)
        self._begin_epoch(events, counts)
        self._looked = int(counts["points"]), int(counts["spent"])  # nothing was counted before
        self.length = min(self.length, self._longest, FIRST_EPOCH)

    def _log(self, core: NativeCore, points: Ints) -> Log:
        """Take the log of the epoch from the native core; ``points``: the match points in shadow-sampled units."""
        tables = core.take_trajectories(self.number)
        rows = [tables[name] for name in ("made", "ended", "found", "values")]
        return log_of(*rows, step=self.context.step, points=points)

    def _begin_epoch(self, events: int, counts: Mapping[str, Any]) -> None:
        self.events, self._granted = events, 0.0
        self.spent, self._dropped = int(counts["spent"]), dropped_in(counts)

    def _allowance(self, events: int) -> float | None:
        """Return the touches allowed per event in this epoch so far, ``None`` without a bound. A time budget that
        nothing can keep sheds nothing, and so grants without a bound, too."""
        is_bounded = 0 < self._granted < math.inf
        return max(self._granted / (events - self.events), LEAST_RATE) if is_bounded else self.rate

    def _shadow_sample(self, events: int, counts: Mapping[str, Any]) -> None:
        """Update the share of shadow-sampled units from what they have cost so far."""
        if self.estimate == 0:
            return
        allowed, touches = None if counts["price"] <= 0 else self._allowance(events), int(counts["watching"])
        self.shadow_sampler = self.shadow_sampler.update(events, touches, self.share, allowed, self.estimate)

    def recall(self, core: NativeCore, skipped: float) -> Callable[[], tuple[Tally, Tally]]:
        """Return a function that tallies the recall so far, of match points and of match bundles, whatever comes later.
        ``skipped``: the share of events that was not admitted."""
        clock = int(core.shedding_counts(self.number)["clock"])
        points = self._noted.append(core.shadow_points(self.number, self._noted.size // len(COLUMNS)))
        if self.reconciliation is not None:
            points, clock = self.reconciliation.so_far(core, points, clock)
        return partial(self.sampled_units.tallies_so_far, points, clock, skipped)

    def dump(self) -> dict[str, Any]:
        """Return the state as JSON-like data, with bytes. The native core saves its shedding table and counts."""
        with self._blaming_policy("state"):
            policy_state = to_plain(dict(self.policy.state()))
        return {
            "policy": self.policy.name,
            "state": policy_state,
            "seen": to_plain(self.sampled_units.to_arrays()),
            **{name.lstrip("_"): getattr(self, name) for name in NUMBERS},
            "yields": asdict(self._yield_monitor),
            "looked": self._looked,
            "sparing": self.shadow_sampler.to_data(),
        }

    def load(self, core: NativeCore, data: Any) -> None:
        """Restore :meth:`dump`. Raises :class:`ValueError`, :class:`KeyError` or :class:`TypeError` for other data."""
        if data["policy"] != self.policy.name:
            raise SnapshotError(
                f"the snapshot was of the policy {str(data['policy'])[:60]!r}, and here is {self.policy.name!r}",
                hint="restore it with the policy= that it was taken with",
                code="state_other",
            )
        stored = {name: data[name.lstrip("_")] for name in NUMBERS}
        vars(self).update(numbers_like(self, NUMBERS, stored))
        self.shadow_sampler = ShadowSampler.from_data(data["sparing"])
        lengths = 1 <= self.length <= self._longest <= LEARNED * LAST_EPOCH
        if not (lengths and self.events >= 0 and self._slowly >= 1 and self._granted >= 0):
            raise ValueError("epoch")
        points, touches = map(int, data["looked"])
        self._yield_monitor, self._looked = YieldMonitor.from_data(data["yields"]), (points, touches)
        self.sampled_units, self._noted = self.sampled_units.with_arrays(from_json(data["seen"])), Rows()
        self._apply(core, self.policy.restore(from_json(data["state"])))
        self._pass_on_bound(core)

    @property
    def share(self) -> float:
        """Return the share of shadow-sampled units, for the policy or for the estimate."""
        sampled = self.shadow_sampler.share if self.estimate > 0 else 0.0
        return max(self.shedding_table.shadow, sampled)

    @contextmanager
    def _blaming_policy(self, step: str) -> Iterator[None]:
        """Raise :class:`PolicyError` for an error of the policy's own code in ``step``."""
        try:
            yield
        except (AcepError, MemoryError):
            raise
        except Exception as error:
            first = (str(error).splitlines() or [""])[0][:200]
            raise PolicyError(
                f"the policy `{self.policy.name}` failed in {step}(): {type(error).__name__}: {first}",
                hint="acep.checks.check_policy tries a policy",
            ) from error

    def _apply(self, core: NativeCore, answer: Any, rate: float | None = None) -> None:
        if not isinstance(answer, SheddingTable):
            raise PolicyError(
                f"the policy `{self.policy.name}` gives a {type(answer).__name__}, not SheddingTable",
                hint="acep.checks.check_policy tries a policy",
            )
        self.shedding_table = answer
        shared = replace(answer, shadow=self.share)
        core.set_shedding_table(self.number, shared.for_native_core(self.context, self.rate if rate is None else rate))


def dropped_in(counts: Mapping[str, Any]) -> int:
    """Return how many partial matches were dropped or refused, by the counts of the native core."""
    return int(counts["dropped"]) + int(counts["refused"])


def held_by(state: Any) -> int:
    """Return the bytes of the arrays, texts and numbers of plain data.

    >>> held_by({"a": np.zeros(4), "b": [1, "xyz"]})
    85
    """
    if isinstance(state, Mapping):
        return sum(len(name) + 8 + held_by(value) for name, value in state.items())
    if isinstance(state, list | tuple):
        return sum(8 + held_by(value) for value in state)
    if isinstance(state, np.ndarray):
        return int(state.nbytes)
    return len(state) if isinstance(state, str | bytes) else 16
