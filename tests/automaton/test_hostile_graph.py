"""Tables and states of hand-written automata that make no sense: the native core refuses them, or runs."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

import acep
from acep.changing.changeable_queries import as_dynamic
from acep.plan.compile import Plan, compile_query
from tests.case_counts import CaseCounts
from tests.native.harness import SCHEMA, session_of, take

native = pytest.importorskip("acep.native._native")

from tests.native.spoilt import ODD, refused_or_run, spoil_tables, spoilt  # noqa: E402 - they need the native core
from tests.native.test_hostile import empty, stream  # noqa: E402

ARCS = [
    acep.arc("begin", "up", "e.type = 'A' AND e.x > 0", {"last": "e.x", "who": "e.s"}, bind="a"),
    acep.arc("up", "up", "e.x >= r.last OR e.s = r.who", {"last": "e.x", "n": "r.n + 1", "mean": "r.mean / 2 + e.y"}),
    acep.arc("up", "up", "e.type = 'B' AND e.x < r.last", ignorable=True, since=3, until=50),
    acep.arc("up", "end", "e.type = 'C' AND r.n > 0 AND r.who < 'z'", {"who": "coalesce(e.s, r.who)"}, bind="c"),
    acep.arc("up", "other", "r.n > 2", epsilon=True),
]
REGISTERS = {"last": int, "n": 0, "mean": 1.0, "who": "x"}
TIED = acep.Automaton(ARCS, final=["end", "other"], registers=REGISTERS, keys="k", window=20)
PLAIN = acep.Automaton([replace(ARCS[0], transfer=()), acep.arc("up", "end", "e.type = 'C'")], final="end")
PLANS = (("nodes", TIED.query), ("nodes", as_dynamic(TIED.query)), ("merged", PLAIN.query))


@pytest.fixture(params=PLANS, ids=("tied", "dynamic", "plain"))
def engine_and_plan(request: pytest.FixtureRequest) -> tuple[str, Plan]:
    engine, query = request.param
    return engine, compile_query(query, SCHEMA)


def test_tables_are_refused_or_run(engine_and_plan: tuple[str, Plan], cases: CaseCounts) -> None:
    engine, plan = engine_and_plan

    def attempt(rng: Random) -> None:
        session = session_of(plan, engine)
        spoil_tables(session, rng)
        take(session, session.push(stream(rng, 40)))
        empty(session, session.finish())

    refused_or_run(cases, 400, attempt)


def test_states_are_refused_or_run(engine_and_plan: tuple[str, Plan], cases: CaseCounts) -> None:
    engine, plan = engine_and_plan

    def attempt(rng: Random) -> None:
        session, other = (session_of(plan, engine) for _ in range(2))
        session.push(stream(rng, 40))
        other._session.load(spoilt(session._session.dump(), rng))
        other.push(stream(rng, 40, 60))
        empty(other, other.finish())

    refused_or_run(cases, 400, attempt)


def test_changes_to_tables_that_make_no_sense_are_refused_or_run(cases: CaseCounts) -> None:
    plan = compile_query(as_dynamic(TIED.query), SCHEMA)

    def attempt(rng: Random) -> None:
        session = session_of(plan, "nodes")
        session.push(stream(rng, 40))
        arrays = {name: array.copy() for name, array in session._engine_tables[0][1].items()}
        name = rng.choice([name for name, array in sorted(arrays.items()) if len(array)])
        arrays[name][rng.randrange(len(arrays[name]))] = rng.choice(ODD)
        programs, classes, width, _ = session._core_arguments
        session._session.change(0, programs, classes, width, arrays)
        session.push(stream(rng, 40, 60))
        empty(session, session.finish())

    refused_or_run(cases, 400, attempt)


def test_arcs_and_times_that_make_no_sense_are_refused_or_run(cases: CaseCounts) -> None:
    query = as_dynamic(TIED.query)
    assert query.graph is not None
    plan = compile_query(query, SCHEMA)
    alone = replace(query.graph, arcs=tuple(ARCS[:2]), named=query.graph.states, bound=query.graph.variables)
    more = compile_query(replace(query, pattern=alone), SCHEMA)
    arcs = sum(map(len, plan.arcs.arcs))

    def attempt(rng: Random) -> None:
        session = session_of(plan, "nodes")
        session.push(stream(rng, 40))
        if rng.random() < 0.5:
            session.extend(0, more)
        elif rng.random() < 0.7:
            arrays = {name: array.copy() for name, array in session._engine_tables[0][1].items()}
            name = rng.choice([name for name, array in sorted(arrays.items()) if len(array)])
            arrays[name][rng.randrange(len(arrays[name]))] = rng.choice(ODD)
            programs, classes, width, _ = session._core_arguments
            session._session.change(0, programs, classes, width, arrays, True)
        words = [word for at in range(rng.randrange(4)) for word in (arcs + at, rng.randrange(arcs), 45, 2**63 - 1)]
        words += [word for _ in range(3) for word in (rng.randrange(arcs), 0, rng.randrange(50), rng.randrange(99))]
        if rng.random() < 0.5:
            words[rng.randrange(len(words))] = rng.choice((*ODD, arcs, arcs + 2))
        session._session.renew(0, words if rng.random() < 0.9 else words[1:], 50)
        session.push(stream(rng, 40, 60))
        empty(session, session.finish())

    refused_or_run(cases, 400, attempt)
