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
from acep.native.session import NativeSession, SessionBounds
from acep.plan.choice import base_engine
from acep.plan.compile import Plan
from acep.shedding.controller import SheddingController
from acep.shedding.history_file import SECTION, LearnedState, learned_by
from acep.storage.sections import write_sections
from acep.training.match_points import Ints, Partitions, points_of, recall_of

__all__ = ["Standing", "Student", "learn_offline"]

TRAJECTORIES = 12_288  # trajectories to be logged in an epoch: the core logs no more than 16,384 starts
LOGGED_TRAJECTORIES = 1 << 21  # trajectories up to which all are logged; of more, a sample is
LEAST_SAMPLE = 2.0**-20
LEARNED_SHARE = 0.6  # share of the events to learn from before configurations are tried on the others
SHARES = (0.05, 0.1, 0.25)  # allowances of the trial, as shares of the touches of the exact run
PRICED = (0.02, 0.05, 0.1, 0.25, 0.5)  # the same, to measure the utility threshold
LEAST_PART, PART = 64, 4096  # events between two reads of match points
ENOUGH = 30  # match points needed for a trial
CLOSE, OTHER_SEEDS = 0.03, (1, 2)  # configurations within CLOSE of the best recall are tried with other seeds too


def learn_offline(
    plan: Plan,
    engine: str,
    parts: Sequence[Batch],
    student: Student,
    *,
    seed: int = 0,
    learned: Mapping[str, Any] | None = None,
) -> None:
    """Run a query exactly over ``parts`` for a student to learn from. A policy may have ``tables_to_try`` (a shedding
    table for each scoring configuration) and ``rule_numbers`` (the numbers of those that use nothing learned). Its
    ``choose`` then gets the number of the configuration that found the most, and the utility thresholds that it came
    to."""
    controller = SheddingController(student, seed, None, learned=learned, trajectories=TRAJECTORIES)
    session = _session(plan, engine, controller)
    selective: Any = student.policy if hasattr(student.policy, "tables_to_try") else None
    events, n_learned = sum(map(len, parts)), 0
    border, size = LEARNED_SHARE * events, max(LEAST_PART, min(PART, events // 32))
    partitions, truth = Partitions(), []
    configurations: Sequence[SheddingTable] = ()
    trial_parts: list[Batch] = []
    touches_before = 0
    for part in (piece for batch in parts for piece in batch.parts(size)):
        if selective is not None and not trial_parts and n_learned >= border:
            session.budget.learn()
            configurations, touches_before = selective.tables_to_try(), session.counts(0).touches
        session.push(part)
        new_points = points_of(_take_points(session), partitions)
        n_learned += len(part)
        if configurations:
            trial_parts.append(part)
            truth.append(new_points)
    session.finish()
    session.budget.learn()
    if not trial_parts:
        return
    truth.append(points_of(_take_points(session), partitions))
    points = np.unique(np.concatenate(truth), axis=0)
    if len(points) < ENOUGH:
        return
    exact = (session.counts(0).touches - touches_before) / sum(map(len, trial_parts))
    trial = Trial(plan, engine, trial_parts, partitions, points, exact, seed)
    best = trial.best(configurations, selective.rule_numbers())
    selective.choose(best, trial.threshold_trials(configurations[best]))


def _session(plan: Plan, engine: str, controller: SheddingController) -> NativeSession:
    """Make a session for match points alone: there may be very many matches, so none is made."""
    session = NativeSession([plan], [engine], SessionBounds({0: controller}))
    session.ignore_future()  # what is learned serves streams in batches of any size
    if base_engine(engine) == "nodes":
        session.tally(0, "points")
    return session


def _take_points(session: NativeSession) -> Counted:
    """Return the match points since the last call."""
    points = session.take_tally(0, "points") if session.tallies else session.take_points(0)
    assert isinstance(points, Counted)
    return points


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

    def best(self, configurations: Sequence[SheddingTable], rules: Sequence[int] = ()) -> int:
        """Return the number of the best configuration; those close to it are tried with other seeds too."""
        if len(configurations) == 1:
            return 0
        recalls = np.array([self._recalls(table) for table in configurations])
        scores = self._score(recalls, rules)
        close = np.flatnonzero(scores >= scores.max() - CLOSE)
        if len(close) == 1:
            return int(close[0])
        for number in close:
            recalls[number] = np.mean(
                [recalls[number], *(self._recalls(configurations[int(number)], seed) for seed in OTHER_SEEDS)],
                axis=0,
            )
        return int(close[np.argmax(self._score(recalls, rules)[close])])

    def threshold_trials(self, table: SheddingTable) -> list[ThresholdTrial]:
        """Return the utility thresholds of a configuration under rising allowances; none where no touch was made."""
        if self.exact <= 0:
            return []
        # Match points come many at a time: to expect one per bundle is on the safe side.
        bundles_per_event = len(np.unique(self.points[:, [0, 2]], axis=0)) / sum(map(len, self.parts))
        tried = [(share * self.exact, *self.run(table, share)) for share in PRICED]
        trials = [(rate, threshold, bundles_per_event * float(recall[1]) / rate) for rate, recall, threshold in tried]
        return [*trials, (self.exact, 0.0, bundles_per_event / self.exact)]

    def _recalls(self, table: SheddingTable, seed_offset: int = 0) -> Floats:
        return np.array([self.run(table, share, seed_offset)[0] for share in SHARES])

    def _score(self, recalls: Floats, rules: Sequence[int]) -> Floats:
        """Return the score of each configuration: the mean of its ``recalls`` (by configuration, share and kind),
        less what a rule finds more of any kind. With few match points, rules are preferred to what was learned."""
        scores: Floats = recalls.mean((1, 2))
        if not rules:
            return scores
        shortfalls = np.maximum(0.0, recalls[list(rules)].max(0) - recalls).mean((1, 2))
        learned = ~np.isin(np.arange(len(recalls)), rules)
        doubt = learned * np.sqrt(scores * (1 - scores) / len(self.points))
        return np.asarray(scores - shortfalls - doubt, np.float64)

    def run(self, shedding_table: SheddingTable, share: float, seed_offset: int = 0) -> tuple[Floats, float]:
        """Return the recalls of match points and bundles at a share of the exact touches, and the mean utility
        threshold. ``seed_offset`` is added to the seed."""
        controller = SheddingController(
            Standing("standing", shedding_table), self.seed + seed_offset, share * self.exact
        )
        session = _session(self.plan, self.engine, controller)
        parts, thresholds = [], []
        for part in self.parts:
            session.push(part)
            parts.append(points_of(_take_points(session), self.partitions))
            thresholds.append(float(session.shed_counts(0)["price"]))
        session.finish()
        parts.append(points_of(_take_points(session), self.partitions))
        later = thresholds[len(thresholds) // 2 :]
        return np.array(recall_of(np.concatenate(parts), self.points)), float(np.mean(later))


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
    n_trajectories: float = 0.0
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
        return self._log_sample(self.policy.begin(context, seed))

    def learn(self, epoch: Epoch) -> SheddingTable:
        """Update both."""
        assert self.history is not None
        self.history.update(weight_trajectories(self.history.open.made, epoch.log.trajectories, 1 / self.sample))
        self.n_trajectories += len(epoch.log.trajectories.made) / self.sample
        self.sample = max(min(1.0, LOGGED_TRAJECTORIES / max(self.n_trajectories, 1.0)), LEAST_SAMPLE)
        return self._log_sample(self.policy.learn(epoch))

    def state(self) -> Mapping[str, Any]:
        """Return the state of the other policy."""
        return self.policy.state()

    def restore(self, state: Mapping[str, Any]) -> SheddingTable:
        """Restore the other policy."""
        return self._log_sample(self.policy.restore(state))

    def to_bytes(self, more_sections: Mapping[str, bytes] = MappingProxyType({})) -> bytes:
        """Return the history file once the stream has ended, with ``more_sections``: trajectories still open are
        judged as far as they came."""
        assert self.history is not None
        most_open, self.history.most_open = self.history.most_open, 0
        self.history.update(Trajectories())
        self.history.most_open = most_open
        self.history.begin()
        state = getattr(self.policy, "learned", self.policy.state)()
        learned = LearnedState(self.context.fingerprint, learned_by(self.policy), state)
        return write_sections({**self.history.to_sections(), SECTION: learned.to_bytes(), **more_sections})

    def _log_sample(self, shedding_table: SheddingTable) -> SheddingTable:
        return shedding_table.watching(sample=self.sample, shadow=0.0)


def weight_trajectories(open_partials: Made, trajectories: Trajectories, weight: float) -> Trajectories:
    """Weight trajectories by one over the probability with which their tree was logged: that of its first partial
    match where this is ``open_partials``, else ``weight``. (Merged partial matches are logged if one of their trees is:
    they count for more than they should.) The bins of features are set to 0, as the graph has none.

    >>> from acep.learning.trajectories.trajectories import Made
    >>> weight_trajectories(Made.empty(), Trajectories(), 2.0) == Trajectories()
    True
    """
    partials = open_partials.append(replace(trajectories.made, weight=np.full(len(trajectories.made), weight)))
    weights = partials.weight[roots(partials)][len(open_partials) :]
    weighted_partials = replace(trajectories.made, weight=weights, feature=np.zeros_like(trajectories.made.feature))
    return replace(trajectories, made=weighted_partials)
