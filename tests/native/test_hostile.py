"""The native boundary: whatever tables, columns or states it is given, it refuses them or works."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from copy import deepcopy
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import acep
from acep.events.batch import Batch, batch_of_events
from acep.events.records import Events
from acep.native import _native
from acep.native.session import NativeSession
from acep.plan.choice import alone
from acep.plan.compile import Plan, compile_query
from acep.plan.lower.tables import PlanTables
from acep.plan.schema import Kind, Schema
from acep.shedding.partition_sampler import PartitionSampler
from acep.storage.sealing import seal, unseal
from tests.native.spoilt import ODD, REFUSED, spoilt

SCHEMA = Schema((("k", Kind.INT), ("x", Kind.INT), ("y", Kind.FLOAT), ("s", Kind.STRING)))
QUERIES = (
    "PATTERN SEQ(A a, B b, C c) WHERE [k] AND a.x < b.x AND c.y > b.y WITHIN 9",
    "PATTERN SEQ(A+ a[], B b) WHERE skip_till_next_match { a[i].x > avg(a[..i-1].x) AND b.y < sum(a[].y) } WITHIN 9",
    "PATTERN SEQ(A+ a[], (B b | C b), A d) WHERE b.x > a.x AND a[2].y = d.y WITHIN 12 EVENTS",
    "PATTERN SEQ(A a, B+ b[]) WHERE partition_contiguity(a, b[]) { [k] AND min(b[].x) > a.x }",
    "PATTERN SEQ(A a, ANY b, C c) WHERE a.s = c.s AND b.s LIKE 'x%' AND max(a.s) <= c.s WITHIN 9",
    "PATTERN SEQ(A a, ~D d, B b, ~C c) WHERE d.x > a.x HAVING sum(b.x) > 2 RETURN a.s AS s, avg(b.y) AS y WITHIN 9",
    "PATTERN SEQ(A a, B b) WITHIN 9 OUTPUT NON OVERLAP",
    "PATTERN SEQ(A+ a[], B b, C? c) WITHIN 30",
)


def plan(text: str, errors: int) -> Plan:
    contiguous = "contiguity" in text
    return compile_query(acep.parse(text, errors=min(errors, 1) if contiguous else errors), SCHEMA)


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


class Spoilt(NativeSession):
    """A session that gives the core tables with some words changed."""

    def __init__(self, one: Plan, rng: Random, times: int, engine: str = "nodes") -> None:
        self.rng, self.times = rng, times
        super().__init__([one], [engine])

    def _arrays(self, table: PlanTables) -> dict[str, Any]:
        arrays = super()._arrays(table)
        names = sorted(arrays)
        for _ in range(self.times):
            name = self.rng.choice(names)
            array = arrays[name].copy()
            if len(array) and self.rng.random() < 0.85:
                i = self.rng.randrange(len(array))
                near = int(array[i]) + self.rng.choice((-1, 1))
                array[i] = self.rng.choice((*ODD, near, near, near, *(int(v) for v in array[:3])))
            elif self.rng.random() < 0.5:
                array = array[: self.rng.randrange(len(array) + 1)]
            else:
                array = np.append(array, np.int64(self.rng.choice(ODD)))
            arrays[name] = array
        return arrays


@pytest.mark.parametrize("text", QUERIES)
def test_tables_that_make_no_sense_are_refused_or_run(text: str, cases: Any) -> None:
    refused = ran = 0
    for seed in range(cases(300)):
        rng = Random(seed)
        try:
            session = Spoilt(plan(text, rng.randrange(3)), rng, rng.choice((1, 1, 2, 5)))
        except REFUSED:
            refused += 1
            continue
        try:
            session.push(stream(rng, 40))
            session.take(0)
            session.finish()
            session.take(0)
        except REFUSED:
            refused += 1
        ran += 1
    assert refused
    assert ran


@pytest.mark.parametrize("text", QUERIES)
def test_states_that_make_no_sense_are_refused_or_run(text: str, cases: Any) -> None:
    refused = ran = 0
    for seed in range(cases(200)):
        rng = Random(seed)
        one = plan(text, rng.randrange(3))
        session = NativeSession([one], ["nodes"])
        session.push(stream(rng, 40))
        state = spoilt(session._session.dump(), rng)
        other = NativeSession([one], ["nodes"])
        try:
            other._session.load(state)
            ran += 1
            other.push(stream(rng, 40, 60))
            other.finish()
            other.take(0)
        except REFUSED:
            refused += 1
    assert refused
    assert ran


PLAIN = "PATTERN SEQ(A a, B+ b[], C c) WHERE skip_till_any_match { [k] } WITHIN 9"
KINDS = ("nodes", "merged", "count", "ends", "points", "bundles", "compressed")
UNITS = ("units+merged", "units+points", "units+count", "windows+units+bundles")
ENGINES = (*KINDS, *(f"windows+{kind}" for kind in KINDS), *UNITS)


def running(one: Plan, engine: str) -> NativeSession:
    """An engine that runs a plan, if it is given units with less than it needs."""
    return NativeSession([one], [engine], {0: PartitionSampler(0, 0.3)} if engine in UNITS else {})


def emptied(session: NativeSession, engine: str) -> None:
    """Takes all that an engine has to give."""
    kind = alone(engine)
    session.take(0)
    if kind == "compressed":
        one = session.take_compressed(0)
        one.count()
        one.sample(3, 1)
        one.cursor().next(50)
    elif kind not in ("nodes", "merged"):
        session.take_counts(0, last=True)
        session.total(0)


@pytest.mark.parametrize("engine", ENGINES)
def test_tables_that_make_no_sense_are_refused_or_run_by_every_engine(engine: str, cases: Any) -> None:
    refused = ran = 0
    for seed in range(cases(200)):
        rng = Random(seed)
        try:
            session = Spoilt(plan(PLAIN, rng.randrange(3)), rng, rng.choice((1, 1, 2, 5)), engine)
            ran += 1
            session.push(stream(rng, 40))
            session.finish()
            emptied(session, engine)
        except REFUSED:
            refused += 1
    assert refused
    assert ran


@pytest.mark.parametrize("engine", ENGINES)
def test_states_that_make_no_sense_are_refused_or_run_by_every_engine(engine: str, cases: Any) -> None:
    refused = ran = 0
    for seed in range(cases(200)):
        rng = Random(seed)
        one = plan(PLAIN, rng.randrange(3))
        session = running(one, engine)
        session.push(stream(rng, 40))
        state = spoilt(session._session.dump(), rng)
        other = running(one, engine)
        try:
            other._session.load(state)
            ran += 1
            other.push(stream(rng, 40, 60))
            other.finish()
            emptied(other, engine)
        except REFUSED:
            refused += 1
    assert refused
    assert ran


PUSHES = 3
"""So many of the calls push arrays with rows in them, whatever they hold: the first of them."""


def calls(session: NativeSession, engine: str, rng: Random) -> tuple[Callable[[], object], ...]:
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
        lambda: core.more(0, 5),
        lambda: core.take_compressed(0, False),
        session.finish,
        lambda: emptied(session, engine),
        lambda: core.load(core.dump()),
        lambda: core.push(ts[:0], types[:0], None, None, [(words[:0], None) for words, _ in columns]),
    )


@pytest.mark.parametrize("engine", ENGINES)
def test_any_calls_in_any_order_are_refused_or_run(engine: str, cases: Any) -> None:
    """Times that go back or are as extreme as can be, calls that come too early, too late or twice."""
    pushed = accepted = 0
    for seed in range(max(cases(200), 40)):
        rng = Random(seed)
        session = NativeSession([plan(PLAIN, rng.randrange(3))], [engine])
        for _ in range(rng.randrange(2, 12)):
            made = calls(session, engine, rng)
            number = rng.randrange(len(made))
            pushed += number < PUSHES
            with suppress(*REFUSED):
                made[number]()
                accepted += number < PUSHES
    assert accepted > 0.2 * pushed


@pytest.mark.parametrize("clock", [2**63 - 2, 2**63 - 1, 2**63])
def test_time_may_pass_to_its_end(clock: int) -> None:
    session = NativeSession([plan(QUERIES[0], 0)], ["nodes"])
    session.push(stream(Random(1), 40))
    session.advance(clock)
    assert session.clock == 2**63 - 1
    session.finish()


@pytest.mark.parametrize("engine", ENGINES)
def test_columns_that_do_not_fit_are_refused(engine: str) -> None:
    made = NativeSession([plan(PLAIN if engine != "nodes" else QUERIES[0], 0)], [engine])
    session, n = made._session, len(made._shared.columns)
    ts, good = np.arange(3), [(np.zeros(3, np.int64), None)] * n
    session.push(ts, ts, None, ts, good)
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


@pytest.mark.parametrize("text", [QUERIES[0], PLAIN])
def test_sealed_states_that_make_no_sense_are_refused_or_run(text: str, cases: Callable[[int], int]) -> None:
    """Snapshots whose checksums fit: ``restore`` refuses them as such, or goes on."""
    rng = Random(4)
    columns = {"ts": range(60), "type": [rng.choice("ABC") for _ in range(60)]}
    columns |= {name: [rng.randrange(3) for _ in range(60)] for name in "kxy"}
    table = pa.table({name: list(values) for name, values in columns.items()})
    first = acep.Matcher(acep.parse(text), engine="native")
    first.push(table.slice(0, 40))
    assert first._tables.stream is not None
    of_matcher, of_stream = first._tables.fingerprint, first._tables.stream.fingerprint
    outer = unseal(first.snapshot(), of_matcher)
    inner = unseal(outer["stream"], of_stream)
    refused = ran = 0
    for _ in range(max(cases(200), 40)):
        spoilt = deepcopy(inner)
        core = bytearray(spoilt["native"]["core"])
        for _ in range(rng.choice((0, 1, 1, 4))):
            at = 8 * rng.randrange(len(core) // 8)
            core[at : at + 8] = rng.choice(ODD).to_bytes(8, "little", signed=True)
        spoilt["native"]["core"] = bytes(core)
        if rng.random() < 0.5:
            part = rng.choice((spoilt, spoilt["native"]))
            part[rng.choice(sorted(part))] = rng.choice((None, -1, "x", [], {}, [[1]], [None], 2**70, 0.5, True))
        stream_ = seal(spoilt, of_stream)
        other = acep.Matcher(acep.parse(text), engine="native")
        try:
            other.restore(seal(outer | {"stream": stream_}, of_matcher))
        except acep.SnapshotError:
            refused += 1
            continue
        ran += 1
        with suppress(acep.AcepError, *REFUSED):
            other.push(table.slice(40))
            other.finish()
    assert refused
    assert ran


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
