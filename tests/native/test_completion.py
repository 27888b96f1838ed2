"""Complete runs on the node engine against the reference: negations, HAVING, RETURN, and which matches are given."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import numpy as np
import pytest

pytest.importorskip("acep.native._native")

import acep
from acep.events.records import Events
from acep.events.tables import events_of, schema_of, to_table
from acep.matches.records import Found
from acep.pattern.expressions import Value
from acep.pattern.tree import Output, Query
from acep.plan.compile import Plan, compile_query
from acep.plan.lower.tables_completion import COMPLETION, COMPLETION_LISTS, completes
from acep.plan.schema import Kind, Schema
from acep.reference.runtime import ReferenceRuntime
from tests import corpus
from tests.native.running import Running, Told, by_native, by_reference
from tests.native.spoilt import spoilt
from tests.random_cases import random_case

CHUNKS = 20
SEEDS = 4_600
"""Of so many random cases, more than 2,000 have something to be done with complete runs."""

STEPS = (None, 1, 2, 5)


def planned(query: Query, table: Any, stream: dict[str, Any]) -> tuple[Plan, Events]:
    table = to_table(table)
    schema = schema_of(table.schema, **stream)
    plan = compile_query(query, schema)
    return plan, events_of(table, schema, plan.columns)


def completed(case: corpus.Case) -> tuple[Plan, Events] | None:
    """What a case of the corpus runs, where something is done with its complete runs."""
    if case.raises is not None:
        return None
    options = dict(case.query_options)
    query = acep.regex(case.text, **{"within": None} | options) if case.letters else acep.parse(case.text, **options)
    plan, events = planned(query, case.table(), dict(case.stream_options))
    return (plan, events) if completes(plan) and not plan.sources else None


def of_corpus() -> list[Any]:
    found = ((case.id, completed(case)) for case in corpus.load_all())
    return [pytest.param(*one, id=name) for name, one in found if one is not None]


def ordered(told: list[Told]) -> list[Told]:
    return sorted(told, key=repr)


@pytest.mark.parametrize(("plan", "events"), of_corpus())
def test_cases_of_the_corpus(plan: Plan, events: Events) -> None:
    assert ordered(by_native(plan, events)) == ordered(by_reference(plan, events))


def random_plans(seeds: range) -> Iterator[tuple[int, Plan, Events]]:
    for seed in seeds:
        case = random_case(seed)
        plan, events = planned(case.query(), case.table(), case.stream)
        if completes(plan) and not plan.sources:
            yield seed, plan, events


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_the_reference_finds_the_same(chunk: int, cases: Callable[[int], int]) -> None:
    tried = matched = 0
    for seed, plan, events in random_plans(range(chunk, max(cases(SEEDS), 20 * CHUNKS), CHUNKS)):
        found = by_native(plan, events, STEPS[seed // CHUNKS % len(STEPS)], early=seed % 3 == 0)
        wanted = by_reference(plan, events)
        assert ordered(found) == ordered(wanted), random_case(seed).paste()
        tried += 1
        matched += bool(wanted)
    assert tried
    assert matched


def random_stream(rng: Random, n: int, first: int = 0, at: int = 0) -> Events:
    kinds: list[str | None] = [rng.choice("ABCD") for _ in range(n)]
    columns: dict[str, list[Value]] = {name: [rng.randrange(6) for _ in range(n)] for name in "kx"}
    return Events([at + i // 2 for i in range(n)], kinds, [first + i for i in range(n)], columns)


def told(found: list[Found]) -> list[Told]:
    return [(f.key, f.start, f.end, f.error, f.trail, f.bundle, f.values) for f in found]


def rows(events: Events, start: int, end: int) -> Events:
    columns = {name: values[start:end] for name, values in events.columns.items()}
    ids = None if events.ids is None else events.ids[start:end]
    return Events(events.ts[start:end], events.types[start:end], ids, columns)


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_nothing_comes_later_than_the_reference_gives_it(chunk: int, cases: Callable[[int], int]) -> None:
    """After each batch, each watermark, and a session put back from its bytes."""
    for seed, plan, events in random_plans(range(chunk, max(cases(1000), 5 * CHUNKS), CHUNKS)):
        core, running, step = ReferenceRuntime(plan), Running(plan), STEPS[1 + seed % 3] or 1
        wanted: set[Told] = set()
        found: set[Told] = set()
        for start in range(0, len(events), step):
            end = min(start + step, len(events))
            wanted.update(told(core.push(rows(events, start, end))))
            running.push(events, start, end)
            found.update(running.take(events))
            assert wanted <= found, random_case(seed).paste()
            if seed % 2 and end < len(events) and events.ts[end] > events.ts[end - 1]:
                wanted.update(told(core.advance(events.ts[end] - 1)))
                running.session.advance(events.ts[end])
                found.update(running.take(events))
                assert wanted <= found, random_case(seed).paste()
            if seed % 3 == 0:
                state = running.session.dump()
                running.begin()
                running.session.load(state)
        wanted.update(told(core.finish()))
        running.session.finish()
        found.update(running.take(events))
        assert wanted == found, random_case(seed).paste()


TYPED = Schema((("k", Kind.INT), ("x", Kind.INT)), id="n")

ANY, NEXT = "skip_till_any_match", "skip_till_next_match"
LONG = [
    f"PATTERN SEQ(A a, ~B b, C c) WHERE {NEXT}(a, c) {{ [k] AND b.x > a.x }} WITHIN 20",
    f"PATTERN SEQ(~B b, A a, C c) WHERE {ANY}(a, c) {{ [k] }} WITHIN 20",
    f"PATTERN SEQ(A a, C c, ~B b) WHERE {ANY}(a, c) {{ [k] AND b.x = c.x }} WITHIN 20",
    f"PATTERN SEQ(A a, ~B b, C c) WHERE {NEXT}(a, c) {{ [k] AND b.x > a.x }}",
    f"PATTERN SEQ(A a, C c, ~B b) WHERE {ANY}(a, c) WITHIN 20 EVENTS",
    f"PATTERN SEQ(A a, B b, C c) WHERE {ANY}(a, b, c) {{ [k] }} WITHIN 20 HAVING a.x < c.x RETURN a.x + c.x AS n",
    f"PATTERN SEQ(A a, B b, C c) WHERE {ANY}(a, b, c) {{ [k] }} WITHIN 20 OUTPUT NON OVERLAP",
    f"PATTERN SEQ({{A a, B b}}, C c) WHERE {ANY}(a, b, c) {{ [k] }} WITHIN 20 OUTPUT EARLIEST MAXIMAL",
]


@pytest.mark.parametrize("text", LONG)
def test_memory_stays_flat(text: str) -> None:
    running = Running(compile_query(acep.parse(text), TYPED))
    rng, n, held, found = Random(1), 2000, [], 0
    for batch in range(60):
        running.push(random_stream(rng, n, batch * n, batch * n // 2), 0, n)
        found += len(running.session.take(0)["start"])
        held.append(running.session.bytes)
    assert found > 1000
    assert max(held[30:]) <= 1.5 * max(held[:30])


GROUPS = """
    PATTERN SEQ((A+ a[], ~B b, C c)+, ~D d, A e)
    WHERE skip_till_any_match(a[], c, e) { b.x > a[i].x AND d.x < c.x AND d.x > avg(a[].x) }
    WITHIN 9 HAVING count(a[]) > 1 RETURN min(a[].x) AS low, c.x + e.x AS n"""
CHOSEN = f"PATTERN SEQ(A a, ~B b, C c, ~D d) WHERE {NEXT}(a, c) {{ [k] AND d.x > a.x }} WITHIN 9 OUTPUT NON OVERLAP"


@pytest.mark.parametrize("text", [GROUPS, CHOSEN], ids=["groups", "chosen"])
def test_hostile_tables_are_refused_or_harmless(text: str, cases: Callable[[int], int]) -> None:
    """Arrays that fit together by chance run to the end; all others are refused."""
    plan, rng = compile_query(acep.parse(text), TYPED), Random(2)
    n = 60
    events = random_stream(rng, n)
    names = [*COMPLETION, *COMPLETION_LISTS, *(f"{name}_at" for name in COMPLETION_LISTS), "firsts", "arc_history"]
    names += ["arc_crossings", "arc_resets", "accept_crossings", "crossing_negation", "crossing_entered"]
    running = Running(plan)
    sound = running.arrays
    refused = 0
    for _ in range(max(cases(400), 40)):
        arrays = dict(sound)
        for name in rng.sample(names, rng.randint(1, 2)):
            values = arrays[name].copy()
            if len(values) and rng.random() < 0.7:
                values[rng.randrange(len(values))] = rng.choice((-2, -1, 0, 1, 2, 3, 7, 11, 2**31, -(2**63), 2**63 - 1))
            else:
                values = values[: rng.randint(0, len(values))] if rng.random() < 0.5 else np.append(values, 1)
            arrays[name] = values
        running.arrays = arrays
        try:
            running.begin()
        except ValueError:
            refused += 1
            continue
        running.push(events, 0, n)
        running.session.finish()
        running.session.take(0)
    assert refused
    running.arrays = sound
    running.begin()
    running.push(events, 0, n)
    running.session.finish()
    assert ordered(running.take(events)) == ordered(by_reference(plan, events))


@pytest.mark.parametrize("text", [GROUPS, CHOSEN, *LONG])
def test_hostile_states_are_refused_or_harmless(text: str, cases: Callable[[int], int]) -> None:
    """Words of a state, spoilt one by one: what is not refused runs to the end."""
    running, rng = Running(compile_query(acep.parse(text), TYPED)), Random(3)
    events = random_stream(rng, 80)
    running.push(events, 0, 60)
    state = running.session.dump()
    refused = 0
    for _ in range(max(cases(150), 40)):
        running.begin()
        try:
            running.session.load(spoilt(state, rng))
        except ValueError:
            refused += 1
            continue
        running.push(events, 60, 80)
        running.session.finish()
        running.session.take(0)
    assert refused


def test_only_composed_queries_are_left_to_the_reference(cases: Callable[[int], int]) -> None:
    outputs = {Output.ALL: 0, Output.NON_OVERLAP: 0, Output.EARLIEST_MAXIMAL: 0}
    for _, plan, _ in random_plans(range(cases(600))):
        Running(plan)
        outputs[plan.query.output] += 1
    assert all(outputs.values())
