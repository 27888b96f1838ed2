"""Check that a policy keeps its contract (acep.learning.policy), on small streams and queries."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from statistics import median
from typing import Any

import numpy as np

from acep.budget.policies import POLICIES, policy_of
from acep.checks.cases import Case, cases
from acep.checks.watched import Refused, Watched
from acep.errors import PolicyError
from acep.events.batch import Batch
from acep.learning.policy import Epoch, Policy
from acep.learning.shedding_table import SheddingTable
from acep.learning.trajectories.log import Extra, Log
from acep.learning.trajectories.trajectories import EXPIRED, Ended, Trajectories
from acep.matches.found_columns import FoundColumns
from acep.native.session import NativeSession, SessionBounds
from acep.shedding.controller import SheddingController
from acep.shedding.history_file import learned_by
from acep.shedding.limits import checked_seed
from acep.storage.plain_data import from_json

__all__ = ["Checked", "check_policy"]

LENGTH = 16  # events of the first epoch
SHARES = (0.6, 0.25, 0.08)  # budgets, as shares of the exact work
SUFFICIENT = 1e9
REPEATED = 64  # epochs in the check that a state stops growing
TRAJECTORIES = 2048  # least number of trajectories of each of them
GROWN = 512  # bytes that a state may grow nevertheless, besides 2 %
A_TRAJECTORY, AN_EPOCH = 400e-6, 0.25  # seconds that learning may take for a trajectory, and for an epoch


@dataclass(frozen=True)
class Checked:
    """The result of a check: the number of ``cases`` (``refused`` of them by the policy), ``runs`` and ``epochs``, the
    greatest size of a ``state`` in bytes, and the ``seconds`` of processor time that learning took per trajectory."""

    policy: str
    cases: int
    refused: int
    runs: int
    epochs: int
    state: int
    seconds: float

    def __str__(self) -> str:
        return (
            f"{self.policy}: {self.cases} queries ({self.refused} refused), {self.runs} runs, {self.epochs:,} epochs; "
            f"a state of at most {self.state:,} bytes, {1e6 * self.seconds:.0f} us of learning a life"
        )


def check_policy(policy: Any, *, seed: int = 0) -> Checked:
    """Check a policy, a name in :data:`acep.budget.policies.POLICIES` or an object, against its contract.

    The checks use small generated streams and several budgets. Shedding tables must be valid. The same seed must give
    the same run. All matches must be matches without a budget too. The work must stay within the budget. A sufficient
    budget, batches and restarts must not change the result. The epoch's arrays must not be modified. The state must be
    plain data and must not grow with the stream. The time of learning must be linear in the number of trajectories. The
    policy must not use a clock or a global random generator. It may refuse some queries, but not all of them, by an
    :class:`AcepError` in ``begin``. Needs the native core.
    Raises :class:`PolicyError` for a violation, :class:`QueryError` for an object that is not a policy.

    >>> check_policy("newest").refused
    0
    """
    maker, seed = policy_of(policy), checked_seed(seed)
    watches: list[Watched] = []
    refused, served = [], 0
    for case in cases(seed):
        try:
            _check(case, maker, seed, watches)
            served += 1
        except Refused as error:
            refused.append(f"{case.name}: {error}")
    if not served:
        raise PolicyError(f"the policy serves none of the queries; {refused[0]}", hint="it should serve some of them")
    return Checked(
        policy=watches[0].name,
        cases=served + len(refused),
        refused=len(refused),
        runs=len(watches),
        epochs=sum(watched.epochs for watched in watches),
        state=max(size for watched in watches for size in watched.sizes),
        seconds=max((_middle(watched) for watched in watches if watched.situation.endswith(LONG)), default=0.0),
    )


LONG = "on a long stream"
LONG_CASES = ("skip till any match, partitions, registers", "skip till any match, errors", "partition contiguity")


@dataclass
class Run:
    """A run of a case with a policy; ``length`` is the length of the first epoch in events."""

    case: Case
    maker: Callable[[], Policy]
    rate: float | None
    seed: int
    watches: list[Watched]
    learned: Mapping[str, Any] | None = None
    length: int = LENGTH

    def __post_init__(self) -> None:
        self.matches: Counter[Any] = Counter()
        self.errors: dict[Any, Any] = {}
        spent = "without a bound" if self.rate is None else f"under {self.rate:.3g} touches an event"
        self.watched = Watched(self.maker(), f"{self.case.name}, {spent}")
        self.watches.append(self.watched)
        self.controller = SheddingController(
            self.watched, self.seed, self.rate, learned=self.learned, length=self.length
        )
        self.session = NativeSession([self.case.plan], [self.case.engine], SessionBounds({0: self.controller}))
        self.session.ignore_future()  # so that batches make no difference

    def run_parts(self, parts: Iterable[Batch]) -> Run:
        """Run the events, which come in these parts."""
        for part in parts:
            self._count(self.session.push(part)[0])
        self._count(self.session.finish()[0])
        return self

    def run_all(self) -> Run:
        """Run all events at once."""
        return self.run_parts([self.case.batch])

    def _count(self, matches: FoundColumns) -> None:
        for match in matches:
            self.matches[match.key, match.trail] += 1
            self.errors[match.key, match.trail] = match.error
        if self.rate is not None and self.spent > self.rate * self.events:
            raise self.watched.violation(f"spends {self.spent} touches on {self.events} events", "a mistake of acep")

    @property
    def spent(self) -> int:
        """The touches so far."""
        return int(self.session.shed_counts(0)["spent"])

    @property
    def events(self) -> int:
        """The events so far."""
        return self.session.counts(0).events


def _check(case: Case, maker: Callable[[], Policy], seed: int, watches: list[Watched]) -> None:
    learned = _learn_state(case, maker(), seed)
    run = partial(Run, case, maker, seed=seed, watches=watches, learned=learned)
    with _chance(1):
        exact = run(None).run_all()
        sufficient = run(SUFFICIENT).run_all()
    if (sufficient.matches, sufficient.errors) != (exact.matches, exact.errors):
        raise sufficient.watched.violation(
            "loses matches under an ample budget", "is an event or a node refused by level 0?"
        )
    for share in SHARES:
        rate = max(0.2, share * exact.session.counts(0).touches / len(case.batch))
        with _chance(1):
            first = run(rate).run_all()
        with _chance(2):
            second = run(rate).run_all()
        watched = first.watched
        if first.watched.digests != second.watched.digests or first.matches != second.matches:
            raise watched.violation(
                "does another thing when it does the same again",
                "the same stream must have the same answer: no clock, no chance but that made from `seed`",
            )
        if not set(first.matches) <= set(exact.matches) or any(
            first.errors[x] < exact.errors[x] for x in first.matches
        ):
            raise watched.violation("finds what is no match", "are events kept out where Setting.loses_only is false?")
        cut = run(rate).run_parts(case.batch.parts(7))
        if cut.matches != first.matches or cut.watched.digests != first.watched.digests:
            raise watched.violation("does another thing in small batches", "it may go by nothing but what it is told")
        _check_restarts(first.watched, maker, seed)
    if case.name in LONG_CASES:
        _check_long_stream(case, maker, seed, watches, learned)


def _check_restarts(watched: Watched, maker: Callable[[], Policy], seed: int) -> None:
    """Check that a restored policy continues in the same way after each epoch."""
    assert watched.states is not None
    shedding_table = watched.digests[-len(watched.states) - 1 :]  # the tables before the first epoch, and after each
    for number, (_, state) in enumerate(watched.states):
        other = Watched(maker(), watched.situation, epochs=number + 1)
        other.begin(watched.context, seed)
        other.restore(from_json(json.loads(json.dumps(state))))
        if other.digests[-1] != shedding_table[number + 1]:
            raise other.violation(
                "gives other orders after `restore` than those that were in force when its state was taken",
                "`state` must hold all that orders are made of, and `restore` must take all of it",
            )
        if number + 1 < len(watched.states):
            other.learn(watched.states[number + 1][0])
            if other.digests[-1] != shedding_table[number + 2]:
                raise other.violation(
                    "goes on otherwise after `restore` than it would have done",
                    "`state` must hold all that it goes by, and `restore` must take all of it",
                )


def _learn_state(case: Case, policy: Policy, seed: int) -> Mapping[str, Any] | None:
    """Return the initial state of a policy that does not learn itself, learned from the same events."""
    if learned_by(policy) == policy.name:
        return None
    run = Run(case, POLICIES[learned_by(policy)], None, seed, [])
    run.run_all().session.budget.learn()
    state: Mapping[str, Any] = getattr(run.watched.policy, "learned", run.watched.policy.state)()
    return state


# A long stream ----------------------------------------------------------------------------------


@dataclass
class Recorder:
    """A policy that has all trajectories logged, and stores the log."""

    policy: Policy
    log: Log | None = None

    def __post_init__(self) -> None:
        self.name = self.policy.name
        self.state = self.policy.state

    def begin(self, context: Any, seed: int) -> SheddingTable:
        """Begin with all trajectories logged."""
        return self.policy.begin(context, seed).watching(sample=1.0, shadow=0.0)

    def restore(self, state: Mapping[str, Any]) -> SheddingTable:
        """Restore a state with all trajectories logged."""
        return self.policy.restore(state).watching(sample=1.0, shadow=0.0)

    def learn(self, epoch: Epoch) -> SheddingTable:
        """Learn, and store the log."""
        self.log = epoch.log
        return self.policy.learn(epoch).watching(sample=1.0, shadow=0.0)


def _check_long_stream(
    case: Case, maker: Callable[[], Policy], seed: int, watches: list[Watched], learned: Mapping[str, Any] | None
) -> None:
    """Repeat the same epoch, and check the size of the state and the time of learning."""
    recorder: Any = Recorder(maker())
    recorded = Run(case, lambda: recorder, None, seed, [], learned, length=2 * len(case.batch)).run_all()
    recorded.session.budget.learn()
    context = recorded.watched.context
    log = recorder.log
    copies = -(-TRAJECTORIES // max(len(log.trajectories.made), 1))
    watched = Watched(maker(), f"{case.name}, {LONG}", states=None)
    watches.append(watched)
    watched.begin(context, seed)
    if learned is not None:
        watched.restore(learned)
    first = Epoch(0, 1.0, 0, 0, 1.0, _repeat_log(log, 0, 0, case))
    watched.learn(first)
    trajectories = copies * len(log.trajectories.made)
    for number in range(REPEATED):
        watched.learn(
            Epoch(len(case.batch), 1.0, len(case.batch), 1, 8.0, _repeat_log(log, number * copies, copies, case))
        )
        if number == 2 and min(watched.seconds[-3:]) > AN_EPOCH + A_TRAJECTORY * trajectories:
            raise watched.violation(
                f"learns for {watched.seconds[-1]:.2f} s from {trajectories:,} trajectories",
                "learning is paid for by the budget: a few array operations an epoch, no loop over trajectories",
            )
    half, end = watched.sizes[REPEATED // 4 : REPEATED // 2], watched.sizes[-REPEATED // 4 :]
    if max(end) > 1.02 * max(half) + GROWN:
        raise watched.violation(
            f"has a state that grows with the stream: {max(half):,} bytes, and after as many epochs again {max(end):,}",
            "forget what is old, or keep sums in place of what they are of",
        )
    watched.seconds = [seconds / max(trajectories, 1) for seconds in watched.seconds]


def _middle(watched: Watched) -> float:
    return median(watched.seconds[-REPEATED // 4 :])


def _repeat_log(log: Log, number: int, copies: int, case: Case) -> Log:
    """Return the log of a stretch of events that occurred ``number`` times before and now occurs ``copies`` times."""
    trajectories, extra, none = Trajectories(), Extra(), np.zeros(0, np.int64)
    partition, when, is_found = [none], [none], [none.astype(np.bool_)]
    length = int(case.batch.ts[-1]) + 1 + (case.plan.window.span or 0)
    last = int(log.trajectories.made.trajectory.max(initial=-1)) + 1
    for copy in range(number, number + copies):
        trajectories = trajectories.append(
            _shift_log(log.trajectories, copy * length, copy * last, case.plan.window.span or 0)
        )
        extra = extra.append(replace(log.extra, trajectory=log.extra.trajectory + copy * last))
        partition.append(log.partition)
        when.append(log.when + copy * length)
        is_found.append(log.kept)
    return Log(trajectories, extra, log.ages, np.concatenate(partition), np.concatenate(when), np.concatenate(is_found))


def _shift_log(trajectories: Trajectories, time: int, number: int, span: int) -> Trajectories:
    """Return the same trajectories with later times and numbers; those that were open have expired."""
    partials, ended, runs = trajectories.made, trajectories.ended, trajectories.found
    open_partials = partials.rows(~np.isin(partials.trajectory, ended.trajectory))
    zeros = np.zeros(len(open_partials), np.int64)
    expiry = np.maximum(open_partials.start + span, open_partials.made)
    ended = ended.append(Ended(open_partials.trajectory, expiry, zeros + EXPIRED, zeros))
    parents = [np.where(table.parent >= 0, table.parent + number, table.parent) for table in (partials, runs)]
    numbers, start, made_at = partials.trajectory + number, partials.start + time, partials.made + time
    return Trajectories(
        replace(partials, trajectory=numbers, parent=parents[0], start=start, made=made_at),
        replace(ended, trajectory=ended.trajectory + number, when=ended.when + time),
        replace(runs, parent=parents[1], when=runs.when + time),
    )


@contextmanager
def _chance(seed: int) -> Iterator[None]:
    """Seed the global random generators, and restore them afterwards."""
    python, numpy = random.getstate(), np.random.get_state()
    random.seed(seed)
    np.random.seed(seed)
    try:
        yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)
