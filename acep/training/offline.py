"""Learn from an exact run: a policy sees the outcomes of all partial matches, and its configurations are tried."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from acep.errors import SnapshotError
from acep.events.batch import Batch
from acep.learning.history.graph import History
from acep.learning.policies.baselines import Rule
from acep.learning.policy import Epoch, Policy
from acep.learning.policy_context import PolicyContext
from acep.learning.shedding_table import SheddingTable, ThresholdTrial
from acep.learning.trajectories.match_vectors import Floats
from acep.learning.trajectories.trajectories import Made, Trajectories, roots
from acep.matches.counted import Counted
from acep.matches.found_columns import FoundColumns
from acep.native.session import NativeSession
from acep.plan.choice import base_engine
from acep.plan.compile import Plan
from acep.shedding.controller import SheddingController
from acep.shedding.history_file import SECTION, LearnedState, learned_by
from acep.storage.sections import write_sections
from acep.training.match_points import Ints, Partitions, points_of, recall_of

__all__ = ["Standing", "Student", "learn_offline"]

TRAJECTORIES = 12_288  # trajectories to be logged in an epoch: the core logs no more than 16,384 starts
MOST = 1 << 21  # trajectories up to which all are logged; of more, a sample is
LEAST_SAMPLE = 2.0**-20
KNOWN = 0.6  # share of the events to learn from before configurations are tried on the others
SHARES = (0.05, 0.1, 0.25)  # allowances of the trial, as shares of the touches of the exact run
PRICED = (0.02, 0.05, 0.1, 0.25, 0.5)  # the same, to measure the utility threshold
LEAST_PART, PART = 64, 4096  # events between two reads of match points
ENOUGH = 30  # match points needed for a trial
NEAR, AGAIN = 0.03, (1, 2)  # configurations within NEAR of the best recall are tried with other seeds too


def learn_offline(
    plan: Plan,
    engine: str,
    parts: Sequence[Batch],
    student: Student,
    *,
    seed: int = 0,
    learned: Mapping[str, Any] | None = None,
) -> None:
    """Run a query exactly over ``parts`` for a student to learn from. A policy may have ``ways`` (a shedding table
    for each scoring configuration) and ``rules`` (the numbers of those that use nothing learned). Its ``choose``
    then gets the number of the configuration that found the most, and the utility thresholds that it came to."""
    effort = SheddingController(student, seed, None, learned=learned, trajectories=TRAJECTORIES)
    session = _session(plan, engine, effort)
    selective: Any = student.policy if hasattr(student.policy, "ways") else None
    events, known = sum(map(len, parts)), 0
    border, size = KNOWN * events, max(LEAST_PART, min(PART, events // 32))
    partitions, truth = Partitions(), []
    ways: Sequence[SheddingTable] = ()
    rest: list[Batch] = []
    before = 0
    for part in (piece for whole in parts for piece in whole.parts(size)):
        if selective is not None and not rest and known >= border:
            session.budget.learn()
            ways, before = selective.ways(), session.counts(0).touches
        session.push(part)
        found = points_of(_taken(session), partitions)
        known += len(part)
        if ways:
            rest.append(part)
            truth.append(found)
    session.finish()
    session.budget.learn()
    if not rest:
        return
    truth.append(points_of(_taken(session), partitions))
    points = np.unique(np.concatenate(truth), axis=0)
    if len(points) < ENOUGH:
        return
    exact = (session.counts(0).touches - before) / sum(map(len, rest))
    trial = Trial(plan, engine, rest, partitions, points, exact, seed)
    best = trial.best(ways, selective.rules())
    selective.choose(best, trial.prices(ways[best]))


def _session(plan: Plan, engine: str, effort: SheddingController) -> NativeSession:
    """Make a session for match points alone: there may be very many matches, so none is made."""
    session = NativeSession([plan], [engine], {0: effort})
    session.ignore_future()  # what is learned serves streams in batches of any size
    if base_engine(engine) == "nodes":
        session.tally(0, "points")
    return session


def _taken(session: NativeSession) -> Counted | FoundColumns:
    """Return the match points found since the last call."""
    found = session.take_tally(0, "points") if session.tallies else session.take(0)
    assert not isinstance(found, int)
    return found


@dataclass(frozen=True)
class Trial:
    """Events to try shedding tables on, their match ``points`` (int64[n, 3]), and the exact run's touches per event."""

    plan: Plan
    engine: str
    parts: Sequence[Batch]
    partitions: Partitions
    points: Ints
    exact: float
    seed: int

    def best(self, ways: Sequence[SheddingTable], rules: Sequence[int] = ()) -> int:
        """Return the number of the best configuration; those close to it are tried with other seeds too."""
        if len(ways) == 1:
            return 0
        found = np.array([self._found(way) for way in ways])
        worth = self._worth(found, rules)
        near = np.flatnonzero(worth >= worth.max() - NEAR)
        if len(near) == 1:
            return int(near[0])
        for number in near:
            found[number] = np.mean([found[number], *(self._found(ways[int(number)], seed) for seed in AGAIN)], axis=0)
        return int(near[np.argmax(self._worth(found, rules)[near])])

    def prices(self, way: SheddingTable) -> list[ThresholdTrial]:
        """Return the utility thresholds of a configuration under rising allowances; none where no touch was made."""
        if self.exact <= 0:
            return []
        # Match points come many at a time: to expect one per bundle is on the safe side.
        most = len(np.unique(self.points[:, [0, 2]], axis=0)) / sum(map(len, self.parts))
        tried = [(share * self.exact, *self.run(way, share)) for share in PRICED]
        found = [(rate, price, most * float(recall[1]) / rate) for rate, recall, price in tried]
        return [*found, (self.exact, 0.0, most / self.exact)]

    def _found(self, way: SheddingTable, more: int = 0) -> Floats:
        return np.array([self.run(way, share, more)[0] for share in SHARES])

    def _worth(self, found: Floats, rules: Sequence[int]) -> Floats:
        """Return the score of each configuration: the mean of its recalls ``found`` (by configuration, share and kind),
        less what a rule finds more of any kind. With few match points, rules are preferred to what was learned."""
        worth: Floats = found.mean((1, 2))
        if not rules:
            return worth
        lost = np.maximum(0.0, found[list(rules)].max(0) - found).mean((1, 2))
        learned = ~np.isin(np.arange(len(found)), rules)
        doubt = learned * np.sqrt(worth * (1 - worth) / len(self.points))
        return np.asarray(worth - lost - doubt, np.float64)

    def run(self, shedding_table: SheddingTable, share: float, more: int = 0) -> tuple[Floats, float]:
        """Return the recalls of match points and bundles at a share of the exact touches, and the mean utility
        threshold. ``more`` is added to the seed."""
        effort = SheddingController(Standing("standing", shedding_table), self.seed + more, share * self.exact)
        session = _session(self.plan, self.engine, effort)
        found, prices = [], []
        for part in self.parts:
            session.push(part)
            found.append(points_of(_taken(session), self.partitions))
            prices.append(float(session.shed_counts(0)["price"]))
        session.finish()
        found.append(points_of(_taken(session), self.partitions))
        later = prices[len(prices) // 2 :]
        return np.array(recall_of(np.concatenate(found), self.points)), float(np.mean(later))


@dataclass
class Standing(Rule):
    """A policy whose shedding table never changes."""

    shedding_table: SheddingTable

    def begin(self, context: PolicyContext, seed: int) -> SheddingTable:  # noqa: ARG002
        """Return the shedding table."""
        return self.shedding_table


@dataclass
class Student:
    """A policy that does as another one and also updates a history graph. All trajectories are logged, or a sample
    if there are very many."""

    policy: Policy
    history: History | None = None
    context: PolicyContext = field(init=False)
    sample: float = 1.0
    seen: float = 0.0
    name: str = field(init=False)

    def __post_init__(self) -> None:
        self.name = self.policy.name

    def begin(self, context: PolicyContext, seed: int) -> SheddingTable:
        """Begin both. Raises :class:`SnapshotError` for a history with other match vectors."""
        self.context = context
        if self.history is None:
            self.history = History(context.grid(), names=context.names, fingerprint=context.fingerprint)
        if self.history.grid != context.grid():
            raise SnapshotError("the history has other match vectors", hint="learn it again with this version of acep")
        self.history.begin()
        return self._logged(self.policy.begin(context, seed))

    def learn(self, epoch: Epoch) -> SheddingTable:
        """Update both."""
        assert self.history is not None
        self.history.update(weighted(self.history.open.made, epoch.log.trajectories, 1 / self.sample))
        self.seen += len(epoch.log.trajectories.made) / self.sample
        self.sample = max(min(1.0, MOST / max(self.seen, 1.0)), LEAST_SAMPLE)
        return self._logged(self.policy.learn(epoch))

    def state(self) -> Mapping[str, Any]:
        """Return the state of the other policy."""
        return self.policy.state()

    def restore(self, state: Mapping[str, Any]) -> SheddingTable:
        """Restore the other policy."""
        return self._logged(self.policy.restore(state))

    def to_bytes(self, more: Mapping[str, bytes] = MappingProxyType({})) -> bytes:
        """Return the history file once the stream has ended, with ``more`` sections: trajectories still open are judged
        as far as they came."""
        assert self.history is not None
        most, self.history.most_open = self.history.most_open, 0
        self.history.update(Trajectories())
        self.history.most_open = most
        self.history.begin()
        state = getattr(self.policy, "learned", self.policy.state)()
        learned = LearnedState(self.context.fingerprint, learned_by(self.policy), state)
        return write_sections({**self.history.to_sections(), SECTION: learned.to_bytes(), **more})

    def _logged(self, shedding_table: SheddingTable) -> SheddingTable:
        return shedding_table.watching(sample=self.sample, shadow=0.0)


def weighted(known: Made, trajectories: Trajectories, weight: float) -> Trajectories:
    """Weight trajectories by one over the probability with which their tree was logged: that of its first partial
    match where this is ``known``, else ``weight``. (Merged partial matches are logged if one of their trees is:
    they count for more than they should.) The bins of features are set to 0, as the graph has none.

    >>> from acep.learning.trajectories.trajectories import Made
    >>> weighted(Made.none(), Trajectories(), 2.0) == Trajectories()
    True
    """
    both = known.then(replace(trajectories.made, weight=np.full(len(trajectories.made), weight)))
    weights = both.weight[roots(both)][len(known) :]
    made = replace(trajectories.made, weight=weights, feature=np.zeros_like(trajectories.made.feature))
    return replace(trajectories, made=made)
