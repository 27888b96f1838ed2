"""Learning ahead: a policy is told what becomes of all nodes of an exact run, and its ways to choose are tried."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from acep.errors import SnapshotError
from acep.events.batch import Batch
from acep.learning.container import write_sections
from acep.learning.history.graph import History
from acep.learning.policy import Epoch, Policy
from acep.learning.policy_context import Setting
from acep.learning.shedding_table import Orders, Price
from acep.learning.trajectories.match_vectors import Floats
from acep.learning.trajectories.trajectories import Lives, Made, roots
from acep.matches.counted import Counted
from acep.matches.found_columns import FoundColumns
from acep.native.session import NativeSession
from acep.plan.choice import alone
from acep.plan.compile import Plan
from acep.shedding.controller import BestEffort
from acep.shedding.history_file import SECTION, Learned, learned_by
from acep.training.match_points import Ints, Partitions, points_of, recall_of

__all__ = ["Standing", "Student", "study"]

LIVES = 12_288  # to be logged in an epoch: the core logs no more than 16,384 starts
MOST = 1 << 21  # lives that are all logged, of more a sample
LEAST_SAMPLE = 2.0**-20
KNOWN = 0.6  # of the events, from which is learned what is tried on the others
SHARES = (0.05, 0.1, 0.25)  # of the touches of the exact run, at which it is tried
PRICED = (0.02, 0.05, 0.1, 0.25, 0.5)  # at which the price is looked at
LEAST_PART, PART = 64, 4096  # events between two looks at what was found
ENOUGH = 30  # match points, without which nothing is tried
NEAR, AGAIN = 0.03, (1, 2)  # of recall: ways that come so near to the best are tried with other seeds too


def study(
    plan: Plan,
    engine: str,
    parts: Sequence[Batch],
    student: Student,
    *,
    seed: int = 0,
    learned: Mapping[str, Any] | None = None,
) -> None:
    """Runs a query exactly over ``parts`` and tells a student. A policy with ``ways`` (orders by each of its ways to
    choose), ``rules`` (the numbers of those that make no use of what was learned) and ``choose`` (a way's number, and
    the prices that it came to) is told which one found the most."""
    effort = BestEffort(student, seed, None, learned=learned, lives=LIVES)
    session = _session(plan, engine, effort)
    selective: Any = student.policy if hasattr(student.policy, "ways") else None
    events, known = sum(map(len, parts)), 0
    border, size = KNOWN * events, max(LEAST_PART, min(PART, events // 32))
    partitions, truth = Partitions(), []
    ways: Sequence[Orders] = ()
    rest: list[Batch] = []
    before = 0
    for part in (piece for whole in parts for piece in whole.parts(size)):
        if selective is not None and not rest and known >= border:
            session.learn()
            ways, before = selective.ways(), session.counts(0).touches
        session.push(part)
        found = points_of(_taken(session), partitions)
        known += len(part)
        if ways:
            rest.append(part)
            truth.append(found)
    session.finish()
    session.learn()
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


def _session(plan: Plan, engine: str, effort: BestEffort) -> NativeSession:
    """A run of which the match points are wanted: there may be very many matches, and none is made."""
    session = NativeSession([plan], [engine], {0: effort})
    if alone(engine) == "nodes":
        session.tally(0, "points")
    return session


def _taken(session: NativeSession) -> Counted | FoundColumns:
    """The match points that have been found since the last time."""
    found = session.take_tally(0, "points") if session.tallies else session.take(0)
    assert not isinstance(found, int)
    return found


@dataclass(frozen=True)
class Trial:
    """Events that orders are tried on, their match ``points`` (int64[n, 3]), and the touches an event of it exactly."""

    plan: Plan
    engine: str
    parts: Sequence[Batch]
    partitions: Partitions
    points: Ints
    exact: float
    seed: int

    def best(self, ways: Sequence[Orders], rules: Sequence[int] = ()) -> int:
        """The number of the way that is worth most, found with other seeds too where chance may tell."""
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

    def prices(self, way: Orders) -> list[Price]:
        """What a way comes to under rising allowances; none where no touch was made."""
        if self.exact <= 0:
            return []
        # Match points come many at a time: to expect one of each bundle is on the safe side.
        most = len(np.unique(self.points[:, [0, 2]], axis=0)) / sum(map(len, self.parts))
        tried = [(share * self.exact, *self.run(way, share)) for share in PRICED]
        found = [(rate, price, most * float(recall[1]) / rate) for rate, recall, price in tried]
        return [*found, (self.exact, 0.0, most / self.exact)]

    def _found(self, way: Orders, more: int = 0) -> Floats:
        return np.array([self.run(way, share, more)[0] for share in SHARES])

    def _worth(self, found: Floats, rules: Sequence[int]) -> Floats:
        """By way, the mean of the recalls ``found`` (by way, share and kind). What a rule finds more of one kind counts
        against it as well; and where there are few match points to tell by, a rule is believed first."""
        worth: Floats = found.mean((1, 2))
        if not rules:
            return worth
        lost = np.maximum(0.0, found[list(rules)].max(0) - found).mean((1, 2))
        learned = ~np.isin(np.arange(len(found)), rules)
        doubt = learned * np.sqrt(worth * (1 - worth) / len(self.points))
        return np.asarray(worth - lost - doubt, np.float64)

    def run(self, orders: Orders, share: float, more: int = 0) -> tuple[Floats, float]:
        """The recalls of match points and of bundles at a share of the exact touches, and the mean price. ``more`` is
        added to the seed."""
        effort = BestEffort(Standing(orders), self.seed + more, share * self.exact)
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
class Standing:
    """A policy of orders that stay."""

    orders: Orders
    name: str = "standing"

    def begin(self, setting: Setting, seed: int) -> Orders:  # noqa: ARG002
        """The orders."""
        return self.orders

    def learn(self, epoch: Epoch) -> Orders:  # noqa: ARG002
        """The orders."""
        return self.orders

    def state(self) -> Mapping[str, Any]:
        """Nothing."""
        return {}

    def restore(self, state: Mapping[str, Any]) -> Orders:  # noqa: ARG002
        """The orders."""
        return self.orders


@dataclass
class Student:
    """A policy that also tells a history graph what it is told, and is otherwise like the other one. All lives are
    logged, or a sample where they are very many."""

    policy: Policy
    history: History | None = None
    setting: Setting = field(init=False)
    sample: float = 1.0
    seen: float = 0.0
    name: str = field(init=False)

    def __post_init__(self) -> None:
        self.name = self.policy.name

    def begin(self, setting: Setting, seed: int) -> Orders:
        """Raises :class:`SnapshotError` for a history with other match vectors."""
        self.setting = setting
        if self.history is None:
            self.history = History(setting.grid(), names=setting.names, fingerprint=setting.fingerprint)
        if self.history.grid != setting.grid():
            raise SnapshotError("the history has other match vectors", hint="learn it again with this version of acep")
        self.history.begin()
        return self._logged(self.policy.begin(setting, seed))

    def learn(self, epoch: Epoch) -> Orders:
        """Tells both."""
        assert self.history is not None
        self.history.update(weighted(self.history.open.made, epoch.log.lives, 1 / self.sample))
        self.seen += len(epoch.log.lives.made) / self.sample
        self.sample = max(min(1.0, MOST / max(self.seen, 1.0)), LEAST_SAMPLE)
        return self._logged(self.policy.learn(epoch))

    def state(self) -> Mapping[str, Any]:
        """That of the other policy."""
        return self.policy.state()

    def restore(self, state: Mapping[str, Any]) -> Orders:
        """As the other policy."""
        return self._logged(self.policy.restore(state))

    def to_bytes(self) -> bytes:
        """The file; the stream has ended, so that what is still open is judged as far as it came."""
        assert self.history is not None
        most, self.history.most_open = self.history.most_open, 0
        self.history.update(Lives())
        self.history.most_open = most
        self.history.begin()
        state = getattr(self.policy, "learned", self.policy.state)()
        learned = Learned(self.setting.fingerprint, learned_by(self.policy), state)
        return write_sections({**self.history.to_sections(), SECTION: learned.to_bytes()})

    def _logged(self, orders: Orders) -> Orders:
        return orders.watching(sample=self.sample, spared=0.0)


def weighted(known: Made, lives: Lives, weight: float) -> Lives:
    """Lives with one over the probability with which their tree was logged: that of their first node, where it is
    ``known``, else ``weight``. (Nodes that became one are in the log if one of their trees is: they count for more than
    they should.) The graph has no bins of features.

    >>> from acep.learning.trajectories.trajectories import Made
    >>> weighted(Made.none(), Lives(), 2.0) == Lives()
    True
    """
    both = known.then(replace(lives.made, weight=np.full(len(lives.made), weight)))
    weights = both.weight[roots(both)][len(known) :]
    made = replace(lives.made, weight=weights, feature=np.zeros_like(lives.made.feature))
    return replace(lives, made=made)
