"""The admission of partial matches: decided before one is made, from as much as would be known of it; what is refused
costs no touch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from acep.learning.estimation.register_terms import candidates
from acep.learning.policy import Epoch
from acep.learning.policy_context import PolicyContext
from acep.learning.shedding_table import STEPS, SheddingTable, Term
from acep.learning.trajectories.log import Log
from acep.native.session import NativeSession
from acep.plan.compile import Plan
from tests.native.harness import ANY, controlled, letters, pieces, plan_of, stream, whole

pytest.importorskip("acep.native._native")

QUERY = f"""PATTERN SEQ(a a, b b, c c) WHERE {ANY}(a, b, c)
{{ [k] AND b.v > a.v AND c.v > b.v AND c.w != a.w AND c.t = a.t }} WITHIN 500"""
MEANS = f"""PATTERN SEQ(a+ a[]{{2}}, b b, c c) WHERE {ANY}(a[], b, c)
{{ [k] AND a[i].w > avg(a[..i-1].w) AND b.w < avg(a[].w) AND c.w > b.w }} WITHIN 60"""
BUCKET, THRESHOLD = 100, 104


@dataclass
class DrawnTerms:
    """A policy that logs every trajectory. Each bin of each term adds a random number to the utility bucket. With more
    than one of ``bins`` of the features, not all of it is known before a partial match is made."""

    bins: int
    name: str = "drawn terms"
    logs: list[Log] = field(default_factory=list)

    def begin(self, context: PolicyContext, seed: int) -> SheddingTable:
        draw = np.random.default_rng(seed)
        grid = context.grid(windows=1, waits=1, features=self.bins)
        flat = SheddingTable.flat(context, level=BUCKET, grid=grid)
        self.terms = tuple(tuple(self._drawn(one, draw) for one in state) for state in candidates(context))
        self.shedding_table = replace(flat, terms=self.terms, prices=((1.0, float(THRESHOLD), 0.0),)).watching(
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


def events(size: int) -> pa.Table:
    columns = {"k": ("one", "two", "three"), "v": (None, *range(100)), "w": float, "t": ("p", "q", None)}
    return stream(size, 11, "abcx", **columns)


def begun(plan: Plan, engine: str, policy: DrawnTerms) -> NativeSession:
    """A session under a budget that suffices, without an end of an epoch."""
    return controlled(plan, engine, policy, 1e6, seed=1, length=10**6)


def apply(session: NativeSession, table: SheddingTable) -> None:
    session._session.set_shedding_table(0, table.for_native_core(session.budget.efforts[0].context, 1.0))


@pytest.mark.parametrize(
    ("query", "engine", "size"), [(QUERY, "nodes", 3_000), (QUERY, "dominance", 120), (MEANS, "nodes", 1_000)]
)
def test_utilities_are_the_same_before_a_partial_match_is_made(query: str, engine: str, size: int) -> None:
    plan = plan_of(query, table := events(size))  # the node engine looks first whether partial matches become one
    policy = DrawnTerms(1)
    session = begun(plan, engine, policy)
    session.push(whole(plan, table))
    session.budget.learn()
    session.finish()
    counts = session.shed_counts(0)
    assert counts["price"] == THRESHOLD or size > 128
    (log,) = policy.logs
    values, made = log.extra.values, log.trajectories.made
    assert len(made) > 20
    kept = 0
    for state, terms in enumerate(policy.terms):
        own = made.state == state
        total = sum((t.worth[t.bin(values[own, k])] for k, t in enumerate(terms)), start=np.zeros(own.sum()))
        assert (made.feature[own] == (128 + total).astype(int)).all()
        assert (BUCKET + made.feature[own] - 128 >= counts["price"]).all()
        kept += int(own.sum())
    assert counts["refused"] > 20
    assert kept <= session.counts(0).nodes - counts["refused"]  # some are dominated


@pytest.mark.parametrize(("bins", "touches"), [(1, 0), (2, 100)])
def test_partial_matches_that_are_refused_before_they_begin_cost_no_touch(bins: int, touches: int) -> None:
    table = letters("a" * 100, v=range(100), k=["x"] * 100, w=[0.5] * 100)
    plan = plan_of(f"PATTERN SEQ(a a, b b) WHERE {ANY}(a, b) {{ b.v > a.v AND b.w > a.w }} WITHIN 500", table)
    policy = DrawnTerms(bins)
    session = begun(plan, "dominance", policy)
    apply(session, replace(policy.shedding_table, level=np.full_like(policy.shedding_table.level, 1), terms=()))
    session.push(whole(plan, table))
    counts = session.shed_counts(0)
    assert counts["refused"] == counts["decided"] == session.counts(0).nodes == 100
    assert session.counts(0).touches == touches + counts["deciding"]


@pytest.mark.parametrize(
    ("steps", "errors"),
    [("a a, b b, c c, d d", 1), ("a a, b b, c c", 1), ("b+ b[]{2}, a a, c c", 0)],
    ids=["never bound", "may end a match that has its a", "a mean"],
)
def test_partial_matches_are_refused_without_what_is_known_only_later(steps: str, errors: int) -> None:
    own = "avg(b[].v)" if "+" in steps else "b.v"
    text = f"PATTERN SEQ({steps}) WHERE {ANY} {{ c.v > a.v AND c.v > {own} }} WITHIN 9"
    plan = plan_of(text, table := letters("b" * 100, v=range(100)), errors=errors)
    policy = DrawnTerms(1)
    session = begun(plan, "dominance", policy)
    context = session.budget.efforts[0].context
    assert any(policy.terms[state] for state, name in enumerate(context.names) if name == "b")
    apply(session, replace(policy.shedding_table, level=np.full_like(policy.shedding_table.level, 1)))
    session.push(whole(plan, table))
    counts = session.shed_counts(0)
    assert counts["refused"] == counts["decided"] == 100
    assert session.counts(0).touches == counts["deciding"]


def results(sample: float, seeds: tuple[int, int], saved: bool) -> tuple[list[int], list[tuple[Any, ...]]]:
    """By part of a stream: how many utilities were computed; and what is found, spent, refused and dropped.

    The allowance is sufficient at first, while the shedding table changes, and insufficient later."""
    plan = plan_of(QUERY, table := events(1200))
    session = begun(plan, "nodes", DrawnTerms(1))
    context, core = session.budget.efforts[0].context, session._session
    drawn = [DrawnTerms(1).begin(context, seed) for seed in seeds]
    core.allow(0, -1.0, 0.0)  # without a bound partial matches are watched
    computed, found = [], []
    for number, part in enumerate(pieces(whole(plan, table), 200)):
        if number in (0, 2):
            new = replace(drawn[number // 2], prices=(), noise=4, decay=np.full(context.states, 2.0))
            apply(session, new.watching(sample=sample, shadow=0.0))
        if number == 1:
            core.allow(0, 400.0, 1e9)
        if number == 3:
            core.allow(0, 15.0, 100.0)
        if saved:
            core.dump()
        (matches,) = session.push(part)
        counts = session.shed_counts(0)
        assert not counts["calm"]
        computed.append(counts.pop("weighed"))
        del counts["logged"]
        found.append((counts, session.counts(0), matches.ids.tolist(), matches.offsets.tolist()))
    return computed, found


def test_utilities_are_computed_once_there_is_a_threshold_and_by_the_table_of_the_time() -> None:
    few, found = results(0.0, (1, 2), saved=False)
    # For the log they are computed when a partial match is made, for a snapshot when it is saved.
    for more, same in (results(1.0, (1, 2), saved=False), results(0.0, (1, 2), saved=True)):
        assert found == same
        assert 2 * few[2] < 2 * few[-1] < 3 * more[-1]
    assert few[:2] == [0, 0]
    assert found[2][0]["dropped"] == 0 < found[3][0]["dropped"]
    assert found != results(0.0, (2, 2), saved=False)[1]
