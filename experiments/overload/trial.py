"""One run over a stream, exact or by a policy under an allowance of touches: what it found, and what it cost."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from acep.budget import Budget
from acep.events.batch import Batch
from acep.events.tables import batch_of
from acep.learning.policies.baselines import RULES
from acep.learning.policy import Policy
from acep.learning.policy_context import PolicyContext
from acep.native.session import NativeSession, SessionBounds
from acep.plan.choice import BY_POINTS, base_engine, choose, with_partial_matches
from acep.plan.compile import Plan
from acep.shedding.controller import SheddingController
from acep.shedding.history_file import learned_by
from acep.training.match_points import Partitions, points_of, recall_of
from acep.training.offline import Student, learn_offline
from experiments.overload.workload import Overload

__all__ = [
    "BATCH",
    "ESTIMATE",
    "REPEATS",
    "Exact",
    "Partitions",
    "Run",
    "Stream",
    "Timed",
    "Warm",
    "batches",
    "make_warm",
    "measure_exact",
    "run",
    "stream",
    "train_policy",
    "try_policy",
]

if TYPE_CHECKING:
    from acep.native._native import Session

Ints = npt.NDArray[np.int64]
Maker = Callable[[], Policy]

ESTIMATE = Budget().estimate
"""Of the allowance, what goes into estimating the recall, as in a user's run."""
BATCH = 5_000
REPEATS = 2
"""Runs of which the fastest counts."""
PARTS = 5
"""A replicate leaves out one of so many parts of the partitions."""


@dataclass(frozen=True)
class Stream:
    """The halves of a workload's stream, in batches, and the engine that makes its matches."""

    plan: Plan
    engine: str
    train: Sequence[Batch]
    test: Sequence[Batch]
    partitions: Partitions = field(default_factory=Partitions)

    @property
    def events(self) -> int:
        """Return the events of the test half."""
        return sum(map(len, self.test))


@dataclass(frozen=True)
class Run:
    """``points``: (n, 3) partition, time and bundle of the distinct match points; ``touches``: deciding included;
    ``cpu``: seconds of the processor, of which ``learning`` to learn and to make orders."""

    points: Ints
    matches: int
    touches: int
    nodes: int
    cpu: float
    learning: float = 0.0
    dropped: int = 0

    def restrict(self, start: int, end: int) -> Run:
        """Return the match points from a time to before another; matches are not distinguished."""
        when = self.points[:, 1]
        return replace(self, points=self.points[(when >= start) & (when < end)])

    def faster(self, other: Run) -> Run:
        """Return the faster of two runs over the same events."""
        return self if self.cpu <= other.cpu else other


@dataclass(frozen=True)
class Exact:
    """The exact cost of a question: the engine that answers it with the fewest touches, and its run."""

    engine: str
    run: Run

    def recall(self, other_run: Run) -> tuple[float, float, float]:
        """Return the shares of match points, of bundles, and of matches that another run found; a bundle is found with
        any of its points."""
        matches = other_run.matches / self.run.matches if self.run.matches else 1.0
        return (*recall_of(other_run.points, self.run.points), matches)

    def restrict(self, start: int, end: int) -> Exact:
        """Return the results from a time to before another."""
        return replace(self, run=self.run.restrict(start, end))

    @property
    def bundles(self) -> int:
        """Return the number of bundles."""
        return len({(int(p), int(b)) for p, _, b in self.run.points})

    def rate(self, share: float, events: int) -> float:
        """Return an allowance in touches per event: a share of those that the exact run makes."""
        return max(share * self.run.touches / max(events, 1), 1e-9)


def stream(workload: Overload, replicate: int = 0) -> Stream:
    """Return a workload's stream: all of it, or, as another sample, the rest without a part of its partitions."""
    train, test = (batches(workload.plan, _leave_out_part(half, workload, replicate)) for half in workload.halves())
    return Stream(workload.plan, workload.choice.engine, train, test)


def _leave_out_part(events: pa.Table, workload: Overload, replicate: int) -> pa.Table:
    if replicate == 0:
        return events
    keys = [*workload.plan.keys, workload.sampled]
    column = events[keys[0]].combine_chunks()
    encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    encoded = encoded.unify_dictionaries() if isinstance(encoded, pa.ChunkedArray) else encoded
    out = [crc32(str(text).encode()) % PARTS == replicate % PARTS for text in encoded.dictionary.to_pylist()]
    is_left = np.append(~np.array(out, np.bool_), True)[encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)]
    return events.filter(pc.equal(pa.array(is_left), True))


def batches(plan: Plan, events: pa.Table, size: int = BATCH) -> list[Batch]:
    """Return a table as an engine takes it, so that making batches is not measured."""
    starts = range(0, events.num_rows, size)
    return [batch_of(events.slice(first, size), plan.schema, plan.columns, base=first) for first in starts]


def run(halves: Stream, engine: str, controller: SheddingController | None = None) -> Run:
    """Run once over the test half; ``controller``: the policy and its allowance, none for an exact run."""
    by_points = base_engine(engine) in BY_POINTS
    return _run(_session(halves.plan, engine, controller), halves, controller, by_points=by_points)


def _session(plan: Plan, engine: str, controller: SheddingController | None) -> NativeSession:
    session = NativeSession([plan], [engine], SessionBounds({} if controller is None else {0: controller}))
    session.ignore_future()  # figures that do not depend on batches
    return session


def _run(session: NativeSession, halves: Stream, controller: SheddingController | None, *, by_points: bool) -> Run:
    rows: list[Ints] = [np.zeros((0, 3), np.int64)]
    matches, cpu = 0, 0.0
    for part in [*halves.test, None]:
        start = time.process_time()
        new_matches = (session.finish() if part is None else session.push(part))[0]
        found = session.take_points(0) if by_points else new_matches
        cpu += time.process_time() - start
        matches += len(found)
        if len(found):
            rows.append(points_of(found, halves.partitions))
    points = np.unique(np.concatenate(rows), axis=0)
    _, first = np.unique(points[:, :2], axis=0, return_index=True)
    counts = session.counts(0)
    if controller is None:
        return Run(points[first], matches, counts.touches, counts.nodes, cpu)
    shedding_counts = session._session.shedding_counts(0)
    dropped = int(shedding_counts["dropped"]) + int(shedding_counts["refused"])
    return Run(points[first], matches, int(shedding_counts["spent"]), counts.nodes, cpu, controller.seconds, dropped)


def measure_exact(halves: Stream, question: str, repeats: int = 3) -> Exact:
    """Measure the exact cost of a question (``"points"``, which includes bundles, or ``"matches"``) on the test half:
    by the engine that makes matches or, for points, by the one behind dominance if that makes fewer touches. Not by a
    search, as a budget decides about partial matches."""
    engines = [halves.engine]
    by_points = with_partial_matches(halves.plan, choose(halves.plan, "points")).engine
    if question == "points" and by_points.endswith("dominance"):
        engines.append(by_points)
    runs = []
    for engine in engines:
        try:
            runs.append(Exact(engine, run(halves, engine)))
        except MemoryError:  # an engine that needs more than there is does not answer
            continue
    best = min(runs, key=lambda candidate: candidate.run.touches)
    for _ in range(repeats - 1):
        best = Exact(best.engine, best.run.faster(run(halves, best.engine)))
    return best


def train_policy(halves: Stream, engine: str, maker: Maker, seed: int = 0) -> Mapping[str, Any] | None:
    """Return the state that ``acep learn`` gives a policy on the training half, by this engine; ``None``: a policy that
    never learns. A policy that has seen the test data learns on the test half."""
    policy = maker()
    if policy.name in RULES:
        return None
    learning_batches = halves.test if learned_by(policy) != policy.name else halves.train
    learn_offline(halves.plan, engine, learning_batches, Student(policy), seed=seed)
    state: Mapping[str, Any] = getattr(policy, "learned", policy.state)()
    return state


def try_policy(
    halves: Stream, truth: Exact, maker: Callable[[], Policy], share: float, *, seed: int = 0, repeats: int = REPEATS
) -> dict[str, Any]:
    """Run a policy under an allowance of a share of the exact touches; return what it found and spent, by name."""
    runs = []
    for _ in range(repeats):
        controller = Timed(maker(), seed, truth.rate(share, halves.events))
        runs.append(run(halves, truth.engine, controller))
    best = min(runs, key=lambda policy_run: policy_run.cpu)
    points, bundles, matches = truth.recall(best)
    return {
        "share": share,
        "work": best.touches / max(truth.run.touches, 1),
        "wall": best.cpu / truth.run.cpu,
        "learning": best.learning / best.cpu,
        "points": points,
        "bundles": bundles,
        "matches": matches,
        "cpu": best.cpu,
        "exact_touches": truth.run.touches,
        "exact_cpu": truth.run.cpu,
        "all_points": len(truth.run.points),
        "all_bundles": truth.bundles,
        "all_matches": truth.run.matches,
    }


def make_warm(halves: Stream, engine: str, maker: Callable[[], Policy], seed: int = 0) -> Callable[[], Policy]:
    """Return the function that makes a policy that has learned from the training half."""
    learned = train_policy(halves, engine, maker, seed)
    return maker if learned is None else (lambda: Warm(maker(), learned))


@dataclass
class Timed(SheddingController):
    """Told how much of the processor learning and making orders took: other processes make no difference. As under a
    user's budget, a part of the allowance goes into estimating the recall."""

    estimate: float = ESTIMATE

    def start(self, core: Session, number: int, context: PolicyContext) -> None:
        """Start with an earlier state of a policy, in the form in which a user gives it."""
        if type(self.policy) is Warm:
            self.policy, self.learned = self.policy.policy, self.policy.learned
        super().start(core, number, context)

    def learn(self, core: Session, events: int) -> None:
        """Learn, as the policy does."""
        before, start = self.seconds, time.process_time()
        super().learn(core, events)
        self.seconds = before + time.process_time() - start


@dataclass
class Warm:
    """A policy that goes on from what it learned before."""

    policy: Policy
    learned: Mapping[str, Any]

    def __post_init__(self) -> None:
        self.name = self.policy.name

    def begin(self, context: Any, seed: int) -> Any:
        """Return the shedding table in force."""
        self.policy.begin(context, seed)
        return self.policy.restore(self.learned)

    def learn(self, epoch: Any) -> Any:
        """Learn, as the policy does."""
        return self.policy.learn(epoch)

    def state(self) -> Mapping[str, Any]:
        """Return the state of the policy."""
        return self.policy.state()

    def restore(self, state: Mapping[str, Any]) -> Any:
        """Restore the policy."""
        return self.policy.restore(state)
