"""The native boundary: whatever tables, columns or states it is given, it refuses them or works."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from copy import deepcopy
from functools import cache
from random import Random
from typing import Any

import numpy as np
import pytest

import acep
from acep.events.batch import Batch, batch_of_events
from acep.events.records import Events
from acep.matches.found_columns import FoundColumns
from acep.native import _native
from acep.native.session import NativeSession, SessionBounds
from acep.plan.choice import base_engine
from acep.plan.compile import Plan
from acep.shedding.partition_sampler import PartitionSampler
from acep.shedding.search_sampler import SearchSampler
from acep.storage.snapshot import seal, unseal
from tests.case_counts import CaseCounts
from tests.native import harness
from tests.native.harness import ANY, SCHEMA, plan_of, session_of, take
from tests.native.spoilt import ODD, REFUSED, refused_or_run, spoil_tables, spoilt
from tests.native.test_memory import STEADY

TIED = "PATTERN SEQ(A a, B b, C c) WHERE [k] AND a.x < b.x AND c.y > b.y WITHIN 9"
QUERIES = (
    TIED,
    "PATTERN SEQ(A+ a[], B b) WHERE skip_till_next_match { a[i].x > avg(a[..i-1].x) AND b.y < sum(a[].y) } WITHIN 9",
    "PATTERN SEQ(A+ a[], (B b | C b), A d) WHERE b.x > a.x AND a[2].y = d.y WITHIN 12 EVENTS",
    "PATTERN SEQ(A a, B+ b[]) WHERE partition_contiguity(a, b[]) { [k] AND min(b[].x) > a.x }",
    "PATTERN SEQ(A a, ANY b, C c) WHERE a.s = c.s AND b.s LIKE 'x%' AND max(a.s) <= c.s WITHIN 9",
    "PATTERN SEQ(A a, ~D d, B b, ~C c) WHERE d.x > a.x HAVING sum(b.x) > 2 RETURN a.s AS s, avg(b.y) AS y WITHIN 9",
    "PATTERN SEQ(A a, B b) WITHIN 9 OUTPUT NON OVERLAP",
    "PATTERN SEQ(A+ a[], B b, C? c) WITHIN 30",
    f"""PATTERN SEQ((A+ a[], ~B b, C c)+, ~D d, A e)
        WHERE {ANY}(a[], c, e) {{ b.x > a[i].x AND d.x < c.x AND d.x > avg(a[].x) }}
        WITHIN 9 HAVING count(a[]) > 1 RETURN min(a[].x) AS low, c.x + e.x AS n""",
    "PATTERN SEQ(A a, ~B b, C c, ~D d) WHERE [k] AND d.x > a.x WITHIN 9 OUTPUT NON OVERLAP",
    "PATTERN SEQ(A a, B b, ~D d) WHERE d.y > 1e307 WITHIN 60",
)
PLAIN = "PATTERN SEQ(A a, B+ b[], C c) WHERE skip_till_any_match { [k] } WITHIN 9"
RISING = "PATTERN SEQ(A a, B b, C c) WHERE {} WITHIN 40"
KINDS = ("nodes", "merged", "count", "ends", "points", "bundles", "compressed")
UNITS = ("units+merged", "units+points", "units+count", "windows+units+bundles")
ENGINES = (*KINDS, *(f"windows+{kind}" for kind in KINDS), *UNITS)
PLANS = (
    *(("nodes", text) for text in QUERIES),
    *((engine, PLAIN) for engine in ENGINES),
    *((engine, "PATTERN SEQ(A+ a[], B b, C? c) WITHIN 30") for engine in ("count", "ends", "points", "bundles")),
    *(("dominance", RISING.format(f"b.x > a.x AND c.x > {last}")) for last in ("b.x", "0")),
    *(("dominance", RISING.format(f"b.k = a.k AND c.{last}")) for last in ("x > b.x", "x >= a.x", "y > b.y")),
    *(("search", RISING.format(f"b.k = a.k AND c.{last}")) for last in ("x > b.x", "x >= a.x", "y > b.y", "s = a.s")),
    ("search", RISING.format("abs(c.x - a.x) < 3 AND c.y > b.y")),
    *(("units+search", RISING.format(f"b.k = a.k AND c.{last}")) for last in ("x > b.x", "y > b.y", "s = a.s")),
    ("windows+search", "PATTERN SEQ(A a, (B b | D d), C c) WHERE a.s = c.s AND b.x > a.x AND d.y > 2 * a.y WITHIN 12"),
    ("windows+nodes", "PATTERN SEQ({A a, B{2,} b[]}, C c) WHERE [k] AND a.x < c.x AND a.s = c.s WITHIN 9"),
    *((engine.replace("merged", kind), text) for engine, text in STEADY for kind in ("merged", "compressed")),
)
each_plan = pytest.mark.parametrize(("engine", "text"), dict.fromkeys(PLANS))


@cache
def plan(text: str, errors: int) -> Plan:
    return plan_of(text, errors=min(errors, 1) if "contiguity" in text else errors)


def stream(rng: Random, size: int, first: int = 0) -> Batch:
    ts = sorted(first + rng.randrange(60) for _ in range(size))
    columns: dict[str, list[Any]] = {
        "k": [rng.choice((1, 2, None)) for _ in ts],
        "x": [rng.choice((*range(5), None, 2**63 - 1, -(2**63))) for _ in ts],
        "y": [rng.choice((0.5, 1.5, -0.0, 1e308, float("inf"), None)) for _ in ts],
        "s": [rng.choice(("x", "xy", "z", None)) for _ in ts],
    }
    types: list[str | None] = [rng.choice("ABCD") for _ in ts]
    return batch_of_events(Events(ts, types, list(range(first, first + size)), columns), SCHEMA)


def efforts_of(engine: str) -> dict[int, Any]:
    """The allowance of an engine that can keep to one."""
    if engine == "units+search":
        return {0: SearchSampler(0, 0.3, 0.1, ahead=0)}
    return {0: PartitionSampler(0, 0.3)} if engine in UNITS else {}


def empty(session: NativeSession, returned: Sequence[FoundColumns]) -> None:
    """Take all that an engine has to give after a step, which returned matches."""
    if base_engine(session._engine_tables[0][0]) == "compressed":
        graph = session.take_compressed(0)
        assert len(graph.sample(3, 1)["start"]) == (3 if graph.count() else 0)
        graph.cursor(graph.count() // 2).next(50)
    take(session, returned)


@each_plan
def test_tables_that_make_no_sense_are_refused_or_run(engine: str, text: str, cases: CaseCounts) -> None:
    def attempt(rng: Random) -> None:
        session = session_of(plan(text, rng.randrange(3)), engine)
        spoil_tables(session, rng)
        # A spoilt window may come out longer than it was. With 40 events there are millions of matches then.
        take(session, session.push(stream(rng, 25)))
        empty(session, session.finish())

    refused_or_run(cases, 200, attempt)


@each_plan
def test_states_that_make_no_sense_are_refused_or_run(engine: str, text: str, cases: CaseCounts) -> None:
    def attempt(rng: Random) -> None:
        one, lazy = plan(text, rng.randrange(3)), engine == "merged" and rng.random() < 0.5
        session, other = (session_of(one, engine, bounds=SessionBounds(efforts_of(engine))) for _ in range(2))
        if lazy:
            session._session.set_lazy(0, True)
        session.push(stream(rng, 40))
        if lazy:
            session._session.make_matches(0, 7)
        other._session.load(spoilt(session._session.dump(), rng))
        other.push(stream(rng, 40, 60))
        returned = other.finish()
        if lazy:
            other._session.make_matches(0, 10_000)
            returned = [other.columns(0, other._session.take(0))]
        empty(other, returned)

    refused_or_run(cases, 200, attempt)


@pytest.mark.parametrize("engine", ["nodes", "dominance"])
def test_states_of_a_bound_on_memory_that_make_no_sense_are_refused_or_run(engine: str, cases: CaseCounts) -> None:
    """The numbers of a bound that is far away are sums and products of the numbers of a state."""

    def attempt(rng: Random) -> None:
        one = plan("PATTERN SEQ(a x, b y, c z) WHERE skip_till_any_match { [k] } WITHIN 20", rng.randrange(3))
        session, other = (session_of(one, engine, bounds=SessionBounds(efforts_of(engine))) for _ in range(2))
        for begun in (session, other):
            begun._session.bound_memory(0, rng.choice([1 << 16, 1 << 20, 2**62]))
        session.push(stream(rng, 40))
        other._session.load(spoilt(session._session.dump(), rng))
        other.push(stream(rng, 40, 60))
        empty(other, other.finish())

    refused_or_run(cases, 400, attempt)


PUSHES = 3
"""So many of the calls push arrays with rows in them, whatever they hold: the first of them."""


def calls(session: NativeSession, rng: Random) -> tuple[Callable[[], object], ...]:
    """Calls with arrays and numbers that may be anything."""
    core, odd = session._session, rng.choice(ODD)
    n = rng.choice((1, 5, 40))

    def some(*of: int) -> Any:
        return np.array([rng.choice(of) for _ in range(n)], np.int64)

    ts = np.sort(some(odd, *range(60)))
    columns = [(some(*ODD), None) for _ in session._shared.columns]
    types, valid = some(*range(6)), some(0, 1, 255).astype(np.uint8)
    return (
        lambda: core.push(ts, types, valid, some(*ODD), columns),
        lambda: core.push(ts, types, None, None, columns),
        lambda: core.push(ts[::-1].copy(), types, None, ts, columns),
        lambda: session.push(stream(rng, 40, 100)),
        lambda: session.advance(odd),
        lambda: core.advance(odd),
        lambda: core.take(odd),
        lambda: core.take_counts(odd, True),
        lambda: core.set_lazy(0, True),
        lambda: core.make_matches(0, 5),
        lambda: core.take_compressed(0, False),
        session.finish,
        lambda: empty(session, session.advance(odd)),
        lambda: core.load(core.dump()),
        lambda: core.push(ts[:0], types[:0], None, None, [(words[:0], None) for words, _ in columns]),
    )


@pytest.mark.parametrize("engine", ENGINES)
def test_any_calls_in_any_order_are_refused_or_run(engine: str, cases: CaseCounts) -> None:
    """Times that go back or are as extreme as can be, calls that come too early, too late or twice."""
    seen = Counter[str]()
    for seed in range(cases(200)):
        rng = Random(seed)
        session = session_of(plan(PLAIN, rng.randrange(3)), engine)
        for _ in range(rng.randrange(2, 12)):
            made = calls(session, rng)
            number = rng.randrange(len(made))
            seen["pushed"] += number < PUSHES
            with suppress(*REFUSED):
                made[number]()
                seen["accepted"] += number < PUSHES
    cases.expect(seen, "accepted", least=max(1, 0.2 * seen["pushed"]))


@pytest.mark.parametrize("clock", [2**63 - 2, 2**63 - 1, 2**63])
def test_time_may_pass_to_its_end(clock: int) -> None:
    session = session_of(plan(TIED, 0), "nodes")
    session.push(stream(Random(1), 40))
    session.advance(clock)
    assert session.clock == 2**63 - 1
    session.finish()


@pytest.mark.parametrize("engine", ENGINES)
def test_columns_that_do_not_fit_are_refused(engine: str) -> None:
    made = session_of(plan(PLAIN if engine != "nodes" else TIED, 0), engine)
    session, n = made._session, len(made._shared.columns)
    ts, good = np.arange(3), [(np.zeros(3, np.int64), None)] * n
    session.push(ts, ts, None, ts, good)
    for width in (np.int8, np.int16, np.int32, np.int64):
        session.push(ts + 2, (ts.astype(width), ts), None, ts, good)
    for bad in (
        (ts, ts, None, ts, good[1:]),
        (ts, ts[:2], None, ts, good),
        (ts, ts, np.ones(2, np.uint8), ts, good),
        (ts, ts, None, ts[:1], good),
        (ts, ts, None, ts, [*good[1:], (np.zeros(2, np.int64), None)]),
        (ts, ts, None, ts, [*good[1:], (np.zeros(3, np.int64), np.ones(4, np.uint8))]),
        (ts, ts, None, ts, [*good[1:], (None, None)]),
        (ts.astype(float), ts, None, ts, good),
        (np.zeros((3, 3), np.int64), ts, None, ts, good),
        (np.arange(6)[::2], ts, None, ts, good),
        (ts, (ts.astype(np.int8), ts[:2]), None, ts, good),
        (ts, (ts.astype(np.int16) - 1, ts), None, ts, good),
        (ts, (ts.astype(np.int32)[:2], ts), None, ts, good),
        (ts, (ts.astype(np.uint8), ts), None, ts, good),
        (ts, (ts,), None, ts, good),
        (ts, ts, None, 2**63 - 2, good),
        (ts, ts, None, 2**64, good),
        (ts, ts, None, -(2**63), good),
    ):
        with pytest.raises((ValueError, TypeError, RuntimeError)):
            session.push(*bad)  # type: ignore[arg-type]
    for number in (1, -1, 2**40):
        with pytest.raises((IndexError, TypeError)):
            session.take(number)


@pytest.mark.parametrize("text", [TIED, PLAIN])
def test_sealed_states_that_make_no_sense_are_refused_or_run(text: str, cases: CaseCounts) -> None:
    """Snapshots whose checksums fit: ``restore`` refuses them as such, or goes on."""
    table = harness.stream(60, seed=4, k=3, x=3, y=3)
    first = acep.Matcher(acep.parse(text), engine="native")
    first.push(table.slice(0, 40))
    assert first._tables.stream is not None
    of_matcher, of_stream = first._tables.fingerprint, first._tables.stream.fingerprint
    outer = unseal(first.snapshot(), of_matcher)
    inner = unseal(outer["stream"], of_stream)

    def attempt(rng: Random) -> None:
        data = deepcopy(inner)
        core = bytearray(data["native"]["core"])
        for _ in range(rng.choice((0, 1, 1, 4))):
            at = 8 * rng.randrange(len(core) // 8)
            core[at : at + 8] = rng.choice(ODD).to_bytes(8, "little", signed=True)
        data["native"]["core"] = bytes(core)
        if rng.random() < 0.5:
            part = rng.choice((data, data["native"]))
            part[rng.choice(sorted(part))] = rng.choice((None, -1, "x", [], {}, [[1]], [None], 2**70, 0.5, True))
        other = acep.Matcher(acep.parse(text), engine="native")
        try:
            other.restore(seal(outer | {"stream": seal(data, of_stream)}, of_matcher))
        except acep.SnapshotError as error:
            raise ValueError from error
        with suppress(acep.AcepError, *REFUSED):
            other.push(table.slice(40))
            other.finish()

    refused_or_run(cases, 200, attempt)


def test_a_session_of_other_parts_is_refused() -> None:
    texts = _native.Texts()

    for programs, classes, columns, keys in (
        ([], [(None, [(0, np.zeros(0, np.int64))])], 0, []),
        ([], [(None,)], 0, []),
        ([], [], 0, [([0], True)]),
        ([None], [], 0, []),
        ([], [(np.zeros(1), [])], 0, []),
    ):
        with pytest.raises((ValueError, TypeError, RuntimeError)):
            _native.Session(texts, programs, classes, columns, keys)  # type: ignore[arg-type]
