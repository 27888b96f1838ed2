"""Best effort in the native core, on random cases: no match is invented, no allowance is exceeded, batches and restarts
make no difference, and an ample allowance changes nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import acep
from acep.budget.policies import POLICIES as BY_NAME
from acep.events.batch import Batch
from acep.events.tables import batch_of
from acep.learning.policies.baselines import Rule
from acep.learning.policy import Epoch, Policy
from acep.learning.policy_context import PolicyContext
from acep.learning.shedding_table import SheddingTable
from acep.learning.trajectories.log import Log
from acep.pattern.tree import Output
from acep.plan.compile import Plan, compile_query
from acep.plan.dominance import reason_against
from acep.plan.lower.tables import NotNativeError
from acep.plan.prefilter import necessary
from acep.plan.schema import Kind, Schema
from acep.shedding.controller import SheddingController
from tests.native.merged_cases import planned
from tests.native.test_every_engine import in_order
from tests.random_cases import Case

pytest.importorskip("acep.native._native")

from acep.native.session import NativeSession

CHUNKS = 10
SEEDS = 2_000
EPOCH = 5  # events: the first one
POLICIES: tuple[Callable[[], Policy], ...] = tuple(BY_NAME.values())
LEAST = {"nodes": 1_000, "dominance": 300, "windows+nodes": 60}


class Run:
    """A plan on one engine under an allowance, batch by batch."""

    def __init__(self, plan: Plan, engine: str, maker: Callable[[], Policy], rate: float | None) -> None:
        self.plan, self.engine, self.maker, self.rate = plan, engine, maker, rate
        self.effort = SheddingController(maker(), 0, rate, length=EPOCH)
        self.session = NativeSession([plan], [engine], {0: self.effort})
        self.found: Counter[Any] = Counter()
        self.errors: dict[Any, Any] = {}

    def push(self, batch: Batch) -> None:
        self.session.push(batch)
        self._take()

    def finish(self) -> None:
        self.session.finish()
        self._take()

    def restart(self) -> None:
        data = self.session.dump()
        self.effort = SheddingController(self.maker(), 0, self.rate, length=EPOCH)
        self.session = NativeSession([self.plan], [self.engine], {0: self.effort})
        self.session.load(data)

    def spent(self) -> int:
        return int(self.session._session.shedding_counts(0)["spent"])

    def _take(self) -> None:
        if self.engine.endswith("dominance"):
            counted = self.session.take_points(0)
            for row in range(len(counted.first)):
                self._note((tuple(c.to_list()[row] for c in counted.keys), int(counted.first[row])), counted.error[row])
            return
        for one in self.session.take(0):
            self._note((one.key, one.trail), one.error)

    def _note(self, found: Any, error: Any) -> None:
        self.found[found] += 1
        self.errors[found] = min(self.errors.get(found, error), error)


def engines_of(plan: Plan) -> list[str]:
    names = ["nodes", "dominance"] if reason_against(plan) is None else ["nodes"]
    return [*names, *(f"windows+{name}" for name in names)] if necessary(plan) is not None else names


def whole(case: Case, plan: Plan) -> Batch:
    return batch_of(case.table(), plan.schema, plan.columns, base=0)


def given(chunk: int, seeds: int) -> Iterator[tuple[int, Plan, Batch, Random, str]]:
    """Of a chunk of so many seeds those whose case keeps all matches: plan, events, and every engine for it."""
    for seed in range(chunk * seeds // CHUNKS, (chunk + 1) * seeds // CHUNKS):
        case = in_order(seed)
        if case is None or case.query().output is not Output.ALL:
            continue
        plan = planned(case.query(), case.table(), **case.stream)
        batch, random = whole(case, plan), Random(seed)
        for engine in engines_of(plan):
            yield seed, plan, batch, random, engine


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_what_is_found_under_a_budget_is_found_without_one(chunk: int, cases: Callable[[int], int]) -> None:
    ran: Counter[str] = Counter()
    lost = 0
    for seed, plan, batch, random, engine in given(chunk, cases(SEEDS)):
        maker = random.choice(POLICIES)
        rate = random.choice((0.3, 1.0, 2.0, 5.0, 25.0, 60.0))
        try:
            exact = Run(plan, engine, maker, None)
        except NotNativeError:
            continue
        run = Run(plan, engine, maker, rate)
        cut = Run(plan, engine, maker, rate)
        sufficient = Run(plan, engine, maker, 1e9)
        for one in (exact, sufficient, run):
            one.push(batch)
            one.finish()
        events = 0
        for part in batch.parts(random.choice((1, 3, 7))):
            cut.push(part)
            events += len(part)
            assert cut.spent() <= rate * events, (seed, engine)
            if random.random() < 0.2:
                cut.restart()
        cut.finish()
        assert set(run.found) <= set(exact.found), (seed, engine)
        assert all(run.errors[one] >= exact.errors[one] for one in run.found), (seed, engine)
        assert (sufficient.found, sufficient.errors) == (exact.found, exact.errors), (seed, engine)
        assert cut.found == run.found, (seed, engine)
        ran[engine] += 1
        lost += run.found != exact.found
    assert lost > 0
    for engine, least in LEAST.items():
        assert ran[engine] >= int(least / CHUNKS * cases(SEEDS) / SEEDS / 2), ran


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("level", np.zeros(3, np.uint8)),
        ("level", np.zeros(0, np.int64)),
        ("decay", np.full(4, -1.0)),
        ("decay", np.full(4, np.nan)),
        ("later", np.zeros(5, np.int8)),
        ("errors", 0),
        ("windows", 256),
        ("waits", 9),
        ("error_step", 0),
        ("ties", 3),
        ("noise", -1),
        ("sample", 2**32 + 1),
        ("admit", np.zeros(1, np.uint8)),
        ("terms", [[]]),
        ("terms", [[], [(0, 7, 0, False, False, np.zeros(0), np.zeros(2, np.float32))], [], []]),
        ("terms", [[], [(0, 0, 0, False, False, np.array([2.0, 1.0]), np.zeros(4, np.float32))], [], []]),
        ("terms", [[], [(9, 0, 0, False, False, np.zeros(0), np.zeros(2, np.float32))], [], []]),
        ("terms", [[], [(0, 0, 0, False, False, np.zeros(0), np.zeros(5, np.float32))], [], []]),
    ],
)
def test_orders_that_make_no_sense_are_refused(name: str, value: Any) -> None:
    query = acep.parse("PATTERN SEQ(A a, B b, C c) WHERE a.x < c.x WITHIN 9")
    run = Run(compile_query(query, Schema((("x", Kind.INT),))), "nodes", BY_NAME["random"], 1.0)
    shedding_table = run.effort.shedding_table.for_native_core(run.effort.context)
    run.session._session.set_shedding_table(0, shedding_table)
    with pytest.raises((ValueError, TypeError, RuntimeError)):
        run.session._session.set_shedding_table(0, shedding_table | {name: value})
    assert run.session._session.shedding_counts(0)["spent"] == 0


class Doorkeeper(Rule):
    """Lets no event of type C come in, and logs what begins in spared units."""

    def begin(self, context: PolicyContext, seed: int) -> SheddingTable:
        flat = super().begin(context, seed)
        takes = {taken for arcs in context.takes for taken, target in arcs if not context.takes[target]}
        admit = np.array([[1 if one in takes else 254] for one in range(context.classes)], np.uint8)
        self.logs: list[Log] = []
        self._shedding_table = replace(flat, level=np.full_like(flat.level, 254), admit=admit, noise=0, shadow=0.1)
        return self._shedding_table

    def learn(self, epoch: Epoch) -> SheddingTable:
        self.logs.append(epoch.log)
        return self._shedding_table.watching(sample=0.0, shadow=0.1)


def test_what_is_kept_out_comes_in_where_units_are_spared() -> None:
    keys, rounds, quiet = 40, 900, 200  # at first something is laid by, so that a price suffices
    rows = [(n, "x" if n < quiet else "accccc"[n % 6], key) for n in range(rounds) for key in range(keys)]
    table = pa.table(dict(zip(("ts", "type", "k"), map(list, zip(*rows, strict=True)), strict=True)))
    plan = planned(acep.regex("ac", within=12, by="k"), table)
    batch = batch_of(table, plan.schema, plan.columns, base=0)
    found = []
    for rate in (1e9, 0.8):
        maker = Doorkeeper("random")
        run = Run(plan, "nodes", lambda maker=maker: maker, rate)
        run.push(batch)
        run.finish()
        run.session.budget.learn()
        when, kept = (np.concatenate([getattr(log, name) for log in maker.logs]) for name in ("when", "kept"))
        found.append((Counter(when.tolist()), kept))
        counts = run.session._session.shedding_counts(0)
    (exact, all_kept), (points, kept) = found

    assert counts["passed_over"] > 1000
    assert counts["dropped"] == counts["refused"] == 0, "nothing is lost but what was kept out"
    assert all_kept.all()
    # Where units are spared all is found; a node that is one with later ones is told for one window longer.
    assert points <= exact
    assert points.total() > 0.97 * exact.total()
    assert 100 < np.count_nonzero(kept) < len(kept) - 100


@dataclass
class Asked(Rule):
    """As the newest stay, with all that could be watched watched; counts how often it is asked to learn."""

    asked: int = 0
    trajectories: int = 0

    def begin(self, context: PolicyContext, seed: int) -> SheddingTable:
        return super().begin(context, seed).watching(sample=1.0, shadow=0.05)

    def learn(self, epoch: Epoch) -> SheddingTable:
        self.asked += 1
        self.trajectories += len(epoch.log.trajectories.made)
        return super().learn(epoch).watching(sample=1.0, shadow=0.05)


def _rising(events: int, crowd: int) -> pa.Table:
    """A quiet stream, and a crowded one after it."""
    random = Random(5)
    times = np.concatenate([np.arange(0, 10 * events, 10), 10 * events + np.arange(events) * 10 // crowd])
    types = [random.choice("abcx") for _ in times]
    return pa.table({"ts": times, "type": types, "v": [random.randrange(100) for _ in times]})


RISING = "PATTERN SEQ(a a, b b, c c) WHERE skip_till_any_match(a, b, c) { a.v < b.v AND b.v < c.v } WITHIN 60"


def _ran(plan: Plan, batch: Batch, rate: float | None, policy: Asked | None) -> tuple[int, int, Counter[Any]]:
    """Touches, nodes, and what was found."""
    efforts = {} if policy is None else {0: SheddingController(policy, 0, rate)}
    session = NativeSession([plan], ["nodes"], efforts)
    session.push(batch)
    session.finish()
    counts = session.counts(0)
    return counts.touches, counts.nodes, Counter((one.key, one.trail) for one in session.take(0))


def test_an_ample_allowance_costs_no_touch_and_nothing_is_watched_or_learned() -> None:
    events = _rising(4_000, 2)
    plan = compile_query(acep.parse(RISING), Schema((("v", Kind.INT),)))
    batch = batch_of(events, plan.schema, plan.columns, base=0)
    exact = _ran(plan, batch, None, None)
    policy = Asked("newest")
    assert _ran(plan, batch, 1e6, policy) == exact
    assert (policy.asked, policy.trajectories) == (0, 0)


def test_what_is_ample_no_more_is_learned_of_from_then_on() -> None:
    quiet = 6_000
    events = _rising(quiet, 30)
    plan = compile_query(acep.parse(RISING), Schema((("v", Kind.INT),)))
    batch = batch_of(events, plan.schema, plan.columns, base=0)
    first = batch_of(events.slice(0, quiet), plan.schema, plan.columns, base=0)
    exact, before = _ran(plan, batch, None, None), _ran(plan, first, None, None)
    rate = 8 * before[0] / quiet
    assert exact[0] > 1.2 * rate * 2 * quiet, "it does not suffice for the crowd"
    policy = Asked("newest")
    assert _ran(plan, first, rate, policy)[2] == before[2]
    assert policy.asked <= 1, "until something is left over"
    touches, _, found = _ran(plan, batch, rate, policy := Asked("newest"))
    assert before[2] <= found < exact[2]
    assert touches <= rate * 2 * quiet
    assert policy.asked >= 1
    assert policy.trajectories > 0
