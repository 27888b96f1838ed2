"""Partial matches that are alike, made by different events, are one (SASE+ 2008, section 5.2.2): how many there are,
and that matches, windows and state are as without."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from acep.events.batch import Batch
from acep.pattern.tree import Output
from acep.plan.compile import Plan
from acep.reference.runtime import ReferenceRuntime
from experiments import counting, streams
from tests.case_counts import CaseCounts
from tests.complaints import case_text, difference, fail_if_wrong_on_rows
from tests.native.harness import ANY, NEXT, Run, letters, pieces, plan_of, reference, session_of, shown, whole

pytest.importorskip("acep.native._native")

TIED = "PATTERN SEQ(A a, B b, C c) WHERE a.x = c.x WITHIN {}"
QUERIES = [
    TIED.format(30),
    "PATTERN SEQ(A a, B b, C c) WHERE a.s = c.s AND a.x <= c.x WITHIN 30 EVENTS",
    "PATTERN SEQ(A a, B b, C c) WHERE a.y = c.y WITHIN 30",
    f"PATTERN SEQ(A a, B b, C c) WHERE {NEXT}(a, b, c) {{ a.x = c.x }} WITHIN 60",
    f"PATTERN SEQ(A a, B b, D d, C c) WHERE {NEXT}(a, b, d, c) {{ d.x >= a.x AND b.x = c.x }} WITHIN 40",
    f"PATTERN SEQ(A a, B+ b[], C c) WHERE {ANY}(a, b[], c) {{ b[i].x > b[i-1].x AND c.x = a.x }} WITHIN 16",
    f"PATTERN SEQ(A+ a[], B b, C c) WHERE {ANY}(a[], b, c) {{ a[i].x > a[i-1].x AND sum(a[].x) = c.x }} WITHIN 16",
    f"PATTERN SEQ(A+ a[], B b, C c) WHERE {ANY}(a[], b, c) {{ a[i].x < c.x AND count(a[]) < 3 }} WITHIN 9",
    f"PATTERN SEQ(A a, ~D d, B b, C c) WHERE {ANY}(a, b, c) {{ d.x = a.x AND a.x = c.x }} WITHIN 30",
    "PATTERN SEQ({A a, B b}, C c) WHERE a.x = c.x WITHIN 30 HAVING b.x > 1 RETURN b.x + c.x AS n",
    "PATTERN SEQ(A a, B b, C c, D d) WHERE a.x = d.x WITHIN 20 OUTPUT EARLIEST MAXIMAL",
    "PATTERN SEQ(A a, (B b | D d), C c) WHERE a.x = c.x",
]


def drawn(rng: Random, n: int, values: int) -> pa.Table:
    """A random stream, two events a tick, whose columns have so many values."""
    xs = [None if rng.random() < 0.05 else rng.randrange(values) for _ in range(n)]
    halves, texts = ([None if x is None else of(x) for x in xs] for of in (lambda x: x / 2, lambda x: f"t{x}"))
    return letters(rng.choices("ABCD", k=n), ts=[i // 2 for i in range(n)], x=xs, y=halves, s=texts)


def touches(plan: Plan, batch: Batch) -> int:
    """Those of the reference runtime, which keeps every run apart."""
    core = ReferenceRuntime(plan)
    core.push(batch.events)
    return core.counts.touches


@pytest.mark.parametrize("text", QUERIES)
@pytest.mark.parametrize("errors", [0, 1])
def test_matches_are_those_of_runs_kept_apart(text: str, errors: int, cases: CaseCounts) -> None:
    seen, plan = Counter[str](), plan_of(text, errors=errors)
    for seed in range(cases(8)):
        rng = Random(seed)
        n = 110 if "WITHIN" in text and not errors else 50
        table, size = drawn(rng, n, rng.choice([2, 4, 12, 40])), rng.choice([7, 40, n])
        text_of = case_text(f"seed_{seed}", text, table.schema, errors=errors)
        complaint_of = partial(complaint_of_batches, plan, table.schema, size, seen)
        fail_if_wrong_on_rows(table.to_pylist(), f"# seed {seed}, in batches of {size}", complaint_of, text_of)
    cases.expect(seen, "matches")
    assert seen["touches of merged ones"] < seen["touches"] or plan.query.output is not Output.ALL


def complaint_of_batches(plan: Plan, schema: pa.Schema, size: int, seen: Counter[str], rows: Sequence[Any]) -> str:
    """Say how the matches differ from those of the reference runtime; count them, and the touches of both."""
    batch = whole(plan, pa.Table.from_pylist(rows, schema))
    run = Run(lambda: session_of(plan, "nodes"))
    for number, part in enumerate(pieces(batch, size)):
        run.push(part)
        if number % 3 == 2:
            run.restart()
    matches = shown(run.finish().found)
    seen["matches"] += len(matches)
    seen["touches of merged ones"] += run.session.counts(0).touches
    seen["touches"] += touches(plan, batch)
    return difference(matches, shown(reference(plan, batch)), ("nodes", "reference"))


def test_partial_matches_are_as_many_as_registers_that_differ() -> None:
    """Kept apart, those that wait for a last event would be |a| * |b|. It finds those that are equal by their key."""
    plan = plan_of(TIED.format(1000))
    batch = whole(plan, letters("A" * 60 + "B" * 50 + "C", x=[i % 20 for i in range(111)]))
    session = session_of(plan, "nodes")
    session.push(batch.take(slice(0, 110)))
    b_state = 2
    assert session.live_in(0, [b_state]) == 20
    before = session.counts(0).touches
    (matches,) = session.push(batch.take(slice(110, 111)))
    assert session.counts(0).touches - before == 1
    assert len(matches) == 3 * 50
    assert touches(plan, batch) >= 60 * 50


def test_each_match_keeps_its_own_start() -> None:
    """A partial match is kept for its latest start; an earlier one falls out of the window on its own. Once all starts
    have expired, a like partial match begins anew."""
    plan = plan_of(TIED.format(10))
    times, values = (0, 5, 6, 8, 10, 11, 15, 16, 40, 41, 42, 43), (1, 1, 7, 7, 1, 1, 1, 1, 1, 7, 1, 2)
    batch = whole(plan, letters("AABBCCCCABCC", ts=times, x=values))
    for size in (1, len(batch)):
        found = Run(lambda: session_of(plan, "nodes")).all(pieces(batch, size)).found
        assert shown(found) == shown(reference(plan, batch))
    assert sorted((f.start, f.end) for f in found) == [
        *[(0, 10)] * 2, *[(5, 10)] * 2, *[(5, 11)] * 2, *[(5, 15)] * 2, (40, 42),
    ]  # fmt: skip


@pytest.mark.long
def test_merging_is_tried_again_after_a_time_without_like_partial_matches() -> None:
    """First every key is another, then there are ten: matches are as many as counted, and in the end nodes are one."""
    within = 300
    first, last = streams.letters(30_000, keys=1 << 40), streams.letters(60_000, keys=10).slice(30_000)
    table = pa.concat_tables([first, last])
    plan = plan_of(f"PATTERN SEQ(A a, B b) WHERE a.key <= b.key AND a.key >= b.key WITHIN {within}", table)
    session = session_of(plan, "nodes")
    touches, matches = [0], 0
    for part in pieces(whole(plan, table), 6_000):
        matches += len(session.push(part)[0])
        touches.append(session.counts(0).touches)
    assert matches == counting.count_any_sequences(table, "AB", within, "key")
    assert touches[-1] - touches[-2] < (touches[2] - touches[1]) / 3
