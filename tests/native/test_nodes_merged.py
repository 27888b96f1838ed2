"""Nodes that are alike, made by different events, are one (SASE+ 2008, section 5.2.2): how many there are, and that
matches, windows and state are as without."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pyarrow as pa
import pytest

import acep
from acep.events.batch import batch_of_events
from acep.events.records import Events
from acep.events.tables import batch_of, schema_of
from acep.matches.records import Found
from acep.pattern.expressions import Value
from acep.pattern.tree import Output
from acep.plan.compile import Plan, compile_query
from acep.plan.schema import Kind, Schema
from acep.reference.runtime import ReferenceRuntime
from experiments import counting, streams

pytest.importorskip("acep.native._native")

from acep.native.session import NativeSession

SCHEMA = Schema((("x", Kind.INT), ("f", Kind.FLOAT), ("s", Kind.STRING)))
ANY, NEXT = "skip_till_any_match", "skip_till_next_match"
TIED = "PATTERN SEQ(A a, B b, C c) WHERE a.x = c.x WITHIN 10"
QUERIES = [
    "PATTERN SEQ(A a, B b, C c) WHERE a.x = c.x WITHIN 30",
    "PATTERN SEQ(A a, B b, C c) WHERE a.s = c.s AND a.x <= c.x WITHIN 30 EVENTS",
    "PATTERN SEQ(A a, B b, C c) WHERE a.f = c.f WITHIN 30",
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


def stream(rng: Random, n: int, values: int) -> Events:
    xs: list[Value] = [None if rng.random() < 0.05 else rng.randrange(values) for _ in range(n)]
    columns: dict[str, list[Value]] = {
        "x": xs,
        "f": [None if x is None else float(x) / 2 for x in xs],
        "s": [None if x is None else f"t{x}" for x in xs],
    }
    return Events([i // 2 for i in range(n)], [rng.choice("ABCD") for _ in range(n)], list(range(n)), columns)


def rows(events: Events, start: int, end: int) -> Events:
    assert events.ids is not None
    columns = {name: values[start:end] for name, values in events.columns.items()}
    return Events(events.ts[start:end], events.types[start:end], events.ids[start:end], columns)


def told(found: list[Found]) -> list[str]:
    return sorted(repr((f.start, f.end, f.error, f.trail, f.bundle, f.values)) for f in found)


def reference(plan: Plan, events: Events) -> tuple[list[str], int]:
    """Matches, and touches: those of every run alone."""
    core = ReferenceRuntime(plan)
    return told(core.push(events) + core.finish()), core.counts.touches


def native(plan: Plan, events: Events, step: int) -> tuple[list[str], int]:
    """The same by the node engine, whose state is dumped and loaded after every third batch."""
    session = NativeSession([plan], ["nodes"])
    found: list[Found] = []
    for number, start in enumerate(range(0, len(events), step)):
        session.push(batch_of_events(rows(events, start, start + step), plan.schema))
        found += session.take(0)
        if number % 3 == 2:
            state = session.dump()
            session = NativeSession([plan], ["nodes"])
            session.load(state)
    session.finish()
    return told(found + list(session.take(0))), session.counts(0).touches


@pytest.mark.parametrize("text", QUERIES)
@pytest.mark.parametrize("errors", [0, 1])
def test_matches_are_those_of_runs_alone(text: str, errors: int, cases: Callable[[int], int]) -> None:
    matches = merged = alone = 0
    for seed in range(cases(8)):
        rng = Random(seed)
        plan = compile_query(acep.parse(text, errors=errors), SCHEMA)
        n = 110 if "WITHIN" in text and not errors else 50
        events = stream(rng, n, rng.choice([2, 4, 12, 40]))
        wanted, without = reference(plan, events)
        found, touches = native(plan, events, rng.choice([7, 40, n]))
        assert found == wanted, (text, errors, seed)
        matches, merged, alone = matches + len(found), merged + touches, alone + without
    assert matches
    assert merged < alone or plan.query.output is not Output.ALL


def test_live_nodes_are_as_many_as_registers_that_differ() -> None:
    """Each touch of a last event is a node that waits for it; alone they would be |a| * |b|."""
    plan = compile_query(acep.parse(TIED.replace("10", "1000")), SCHEMA)
    xs: list[Value] = [i % 20 for i in range(111)]
    columns: dict[str, list[Value]] = {"x": xs, "f": [None] * 111, "s": [None] * 111}
    kinds: list[str | None] = [*"A" * 60, *"B" * 50, "C"]
    events = Events(list(range(111)), kinds, list(range(111)), columns)
    session = NativeSession([plan], ["nodes"])
    session.push(batch_of_events(rows(events, 0, 110), SCHEMA))
    before = session.counts(0).touches
    session.push(batch_of_events(rows(events, 110, 111), SCHEMA))
    assert session.counts(0).touches - before == 20
    assert len(session.take(0)) == 3 * 50
    assert reference(plan, events)[1] >= 60 * 50


def test_each_match_keeps_its_own_start() -> None:
    """A node lives as long as its latest start; what began earlier falls out of the window on its own. Once all has
    expired, a like node begins anew."""
    plan = compile_query(acep.parse(TIED), SCHEMA)
    given = [(0, "A", 1), (5, "A", 1), (6, "B", 7), (8, "B", 7), (10, "C", 1), (11, "C", 1), (15, "C", 1), (16, "C", 1)]
    given += [(40, "A", 1), (41, "B", 7), (42, "C", 1), (43, "C", 2)]
    ts, kinds, xs = ([row[k] for row in given] for k in range(3))
    columns: dict[str, list[Value]] = {"x": xs, "f": [None] * len(given), "s": [None] * len(given)}  # type: ignore[dict-item]
    events = Events(ts, kinds, list(range(len(given))), columns)  # type: ignore[arg-type]
    found, _ = native(plan, events, 1)
    assert found == reference(plan, events)[0]
    session = NativeSession([plan], ["nodes"])
    session.push(batch_of_events(events, SCHEMA))
    assert sorted((f.start, f.end) for f in session.take(0)) == [
        *[(0, 10)] * 2, *[(5, 10)] * 2, *[(5, 11)] * 2, *[(5, 15)] * 2, (40, 42),
    ]  # fmt: skip


def test_where_nothing_is_alike_for_long_it_is_tried_again() -> None:
    """First every key is another, then there are ten: matches are as many as counted, and in the end nodes are one."""
    within = 300
    first, last = streams.letters(30_000, keys=1 << 40), streams.letters(60_000, keys=10).slice(30_000)
    table = pa.concat_tables([first, last])
    text = f"PATTERN SEQ(A a, B b) WHERE a.key <= b.key AND a.key >= b.key WITHIN {within}"
    plan = compile_query(acep.parse(text), schema_of(table.schema))
    session = NativeSession([plan], ["nodes"])
    touches, matches = [0], 0
    for start in range(0, table.num_rows, 6_000):
        session.push(batch_of(table.slice(start, 6_000), plan.schema, plan.columns, base=start))
        matches += len(session.take(0))
        touches.append(session.counts(0).touches)
    assert matches == counting.any_sequences(table, "AB", within, "key")
    assert touches[-1] - touches[-2] < (touches[2] - touches[1]) / 3
