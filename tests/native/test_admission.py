"""What is told of a node before it is made: as much as would be known of it, and what is refused costs no touch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import acep
from acep.events.tables import batch_of
from acep.learning.estimation.register_terms import candidates
from acep.learning.policy import Epoch
from acep.learning.policy_context import PolicyContext
from acep.learning.shedding_table import STEPS, SheddingTable, Term
from acep.learning.trajectories.log import Log
from acep.plan.compile import Plan
from acep.shedding.controller import SheddingController
from tests.native.merged_cases import planned

pytest.importorskip("acep.native._native")

from acep.native.session import NativeSession

QUERY = """PATTERN SEQ(a a, b b, c c) WHERE skip_till_any_match(a, b, c)
{ [k] AND b.v > a.v AND c.v > b.v AND c.w != a.w AND c.t = a.t } WITHIN 500"""
MEANS = """PATTERN SEQ(a+ a[]{2}, b b, c c) WHERE skip_till_any_match(a[], b, c)
{ [k] AND a[i].w > avg(a[..i-1].w) AND b.w < avg(a[].w) AND c.w > b.w } WITHIN 60"""
LEVEL, PRICE = 100, 104


@dataclass
class Told:
    """Every life is logged; each bin of each term adds some levels, drawn by chance. ``bins``: of the features, of
    which more than one keep anything from being told before a node is made."""

    bins: int
    name: str = "told"
    logs: list[Log] = field(default_factory=list)

    def begin(self, context: PolicyContext, seed: int) -> SheddingTable:
        draw = np.random.default_rng(seed)
        grid = context.grid(windows=1, waits=1, features=self.bins)
        flat = SheddingTable.flat(context, level=LEVEL, grid=grid)
        self.terms = tuple(tuple(self._drawn(one, draw) for one in state) for state in candidates(context))
        self.shedding_table = replace(flat, terms=self.terms, prices=((1.0, float(PRICE), 0.0),)).watching(
            sample=1.0, shadow=0.0
        )
        return self.shedding_table

    def _drawn(self, term: Term, draw: np.random.Generator) -> Term:
        if not term.hashed:
            term = replace(term, bounds=np.array([-20.0, 0.0, 0.5, 1.0, 30.0, 70.0]))
        return replace(term, worth=draw.integers(-STEPS, STEPS, term.bins + 1).astype(np.float64))

    def learn(self, epoch: Epoch) -> SheddingTable:
        self.logs.append(epoch.log)
        return self.shedding_table

    def state(self) -> Mapping[str, Any]:
        return {}

    def restore(self, state: Mapping[str, Any]) -> SheddingTable:  # noqa: ARG002
        return self.shedding_table


def _events(size: int) -> pa.Table:
    random = Random(8)
    columns: dict[str, list[Any]] = {
        "ts": list(range(size)),
        "type": random.choices("abcx", k=size),
        "k": random.choices(["one", "two", "three"], k=size),
        "v": [random.choice([None, *range(100)]) for _ in range(size)],
        "w": [random.random() for _ in range(size)],
        "t": random.choices(["p", "q", None], k=size),
    }
    return pa.table(columns)


def _run(plan: Plan, table: pa.Table, engine: str) -> tuple[Told, NativeSession]:
    policy = Told(1)
    session = NativeSession([plan], [engine], {0: SheddingController(policy, 1, 1e6, length=10**6)})
    session.push(batch_of(table, plan.schema, plan.columns, base=0))
    session.budget.learn()
    session.finish()
    return policy, session


@pytest.mark.parametrize(
    ("query", "engine", "size"), [(QUERY, "nodes", 3_000), (QUERY, "dominance", 120), (MEANS, "nodes", 1_000)]
)
def test_what_is_told_before_is_what_the_registers_tell(query: str, engine: str, size: int) -> None:
    table = _events(size)  # with nodes, it is looked at first whether they become one
    plan = planned(acep.parse(query), table)
    policy, session = _run(plan, table, engine)
    counts = session._session.shedding_counts(0)
    price = counts["price"]
    assert price == PRICE or size > 128
    log = policy.logs[0]
    values, made = log.extra.values, log.trajectories.made
    assert len(made) > 20
    kept = 0
    for state, terms in enumerate(policy.terms):
        own = made.state == state
        total = sum((t.worth[t.bin(values[own, k])] for k, t in enumerate(terms)), start=np.zeros(own.sum()))
        assert (made.feature[own] == (128 + total).astype(int)).all()
        assert (LEVEL + made.feature[own] - 128 >= price).all()
        kept += int(own.sum())
    assert counts["refused"] > 20
    assert kept <= session.counts(0).nodes - counts["refused"]  # some are dominated


def test_what_is_refused_before_it_begins_is_not_touched() -> None:
    table = pa.table({"ts": range(100), "type": ["a"] * 100, "v": range(100), "k": ["x"] * 100, "w": [0.5] * 100})
    query = acep.parse("PATTERN SEQ(a a, b b) WHERE skip_till_any_match(a, b) { b.v > a.v AND b.w > a.w } WITHIN 500")
    plan = planned(query, table)
    for bins, touches in ((1, 0), (2, 100)):
        policy = Told(bins)
        effort = SheddingController(policy, 1, 1e6, length=10**6)
        session = NativeSession([plan], ["dominance"], {0: effort})
        shedding_table = replace(policy.shedding_table, level=np.full_like(policy.shedding_table.level, 1), terms=())
        session._session.set_shedding_table(0, shedding_table.for_native_core(effort.context, 1.0))
        session.push(batch_of(table, plan.schema, plan.columns, base=0))
        counts = session._session.shedding_counts(0)
        assert counts["refused"] == counts["decided"] == session.counts(0).nodes == 100
        assert session.counts(0).touches == touches + counts["deciding"]


@pytest.mark.parametrize(
    ("steps", "errors"),
    [("a a, b b, c c, d d", 1), ("a a, b b, c c", 1), ("b+ b[]{2}, a a, c c", 0)],
    ids=["never bound", "may end a match that has its a", "a mean"],
)
def test_what_is_not_known_before_a_node_is_made_does_not_keep_it_from_being_refused(steps: str, errors: int) -> None:
    table = pa.table({"ts": range(100), "type": ["b"] * 100, "v": range(100), "w": [0.5] * 100})
    own = "avg(b[].v)" if "+" in steps else "b.v"
    text = f"PATTERN SEQ({steps}) WHERE skip_till_any_match {{ c.v > a.v AND c.v > {own} }} WITHIN 9"
    plan = planned(acep.parse(text, errors=errors), table)
    policy = Told(1)
    effort = SheddingController(policy, 1, 1e6, length=10**6)
    session = NativeSession([plan], ["dominance"], {0: effort})
    assert any(policy.terms[state] for state, name in enumerate(effort.context.names) if name == "b")
    shedding_table = replace(policy.shedding_table, level=np.full_like(policy.shedding_table.level, 1))
    session._session.set_shedding_table(0, shedding_table.for_native_core(effort.context, 1.0))
    session.push(batch_of(table, plan.schema, plan.columns, base=0))
    counts = session._session.shedding_counts(0)
    assert counts["refused"] == counts["decided"] == 100
    assert session.counts(0).touches == counts["deciding"]


def _weighed(sample: float, seeds: tuple[int, int], saved: bool) -> list[tuple[Any, ...]]:
    """By part of a stream what is found and spent, as is what is refused and dropped; and how many nodes were weighed.

    First there is enough, and orders change meanwhile; then there is little."""
    table = _events(1200)
    plan = planned(acep.parse(QUERY), table)
    effort = SheddingController(Told(1), 1, 1e6, length=10**6)
    session = NativeSession([plan], ["nodes"], {0: effort})
    drawn = [Told(1).begin(effort.context, seed) for seed in seeds]
    core = session._session
    core.allow(0, 400.0, 20_000.0)
    core.least_memory(0)  # from now on nodes are watched
    told = []
    for part in range(6):
        if part in (0, 2):
            shedding_table = replace(drawn[part // 2], prices=(), noise=4, decay=np.full(effort.context.states, 2.0))
            shedding_table = shedding_table.watching(sample=sample, shadow=0.0)
            core.set_shedding_table(0, shedding_table.for_native_core(effort.context, 1.0))
        if part == 3:
            core.allow(0, 15.0, 100.0)
        if saved:
            core.dump()
        session.push(batch_of(table.slice(200 * part, 200), plan.schema, plan.columns, base=200 * part))
        counts, found = core.shedding_counts(0), session.take(0)
        told.append((counts.pop("weighed"), counts, session.counts(0), found.ids.tolist(), found.offsets.tolist()))
    return told


def test_registers_are_looked_at_once_there_is_a_price_and_by_the_orders_of_the_time() -> None:
    few = _weighed(0.0, (1, 2), saved=False)
    # What is logged is weighed when it is made, and what is saved when it is saved.
    for more in (_weighed(1.0, (1, 2), saved=False), _weighed(0.0, (1, 2), saved=True)):
        assert [result for _, *result in few] == [result for _, *result in more]
        assert 2 * few[2][0] < 2 * few[-1][0] < 3 * more[-1][0]
    assert [weighed for weighed, *_ in few[:2]] == [0, 0]
    assert few[2][1]["dropped"] == 0 < few[3][1]["dropped"]
    assert [result for _, *result in few] != [result for _, *result in _weighed(0.0, (2, 2), saved=False)]
