"""Match windows: an engine behind them gives what it gives alone, at the same time; events are really kept back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import acep
from acep.events.batch import Batch, batch_of_events
from acep.events.records import Events
from acep.events.tables import batch_of
from acep.matches.found_columns import ordered
from acep.matches.records import Found, output_order
from acep.plan.compile import Plan, compile_query
from acep.plan.lower.tables import NotNativeError, SharedTables, lower
from acep.plan.prefilter import lines, necessary, reason_against, worth
from acep.plan.schema import Kind, Schema
from tests.corpus import load_all
from tests.native.merged_cases import merged_case, planned, reference
from tests.random_cases import Case, random_case, shrink
from tests.test_corpus import query_of, stream_rows

pytest.importorskip("acep.native._native")

from acep.native.session import NativeSession
from tests.native.spoilt import ODD, REFUSED, spoilt

CHUNKS = 20
SCHEMA = Schema((("k", Kind.INT), ("x", Kind.INT), ("s", Kind.STRING)))


def told(found: Sequence[Found]) -> list[tuple[object, ...]]:
    return [(f.key, f.start, f.end, f.error, f.bindings, f.bundle, f.trail) for f in sorted(found, key=output_order)]


def again(session: NativeSession, plan: Plan, engines: Sequence[str]) -> NativeSession:
    """A new session that goes on from the state of another."""
    other = NativeSession([plan] * len(engines), engines)
    other.load(session.dump())
    return other


def steps(plan: Plan, batches: Sequence[Batch], engine: str, *, stops: bool = False) -> list[list[tuple[object, ...]]]:
    """What an engine and match windows before it find, batch by batch: the first, if both find the same.

    Raises :class:`AssertionError` where they do not, :class:`NotNativeError` where the core cannot run the plan.
    """
    engines = (engine, f"windows+{engine}")
    session = NativeSession([plan, plan], engines)
    found = []
    for batch in [*batches, None]:
        if batch is None:
            session.finish()
        else:
            session.push(batch)
        alone, windowed = (told(list(session.take(number))) for number in range(2))
        assert windowed == alone
        found.append(alone)
        if stops:
            session = again(session, plan, engines)
    return found


def small_case(seed: int) -> Case | None:
    """The case of a seed, if its stream can come batch by batch and its events may be kept back."""
    case = merged_case(seed) if seed % 4 == 0 else random_case(seed)
    if case is None or set(case.stream) - {"id"} or case.events != sorted(case.events, key=lambda row: row["ts"]):
        return None
    plan = planned(case.query(), case.table(), **case.stream)
    return None if necessary(plan) is None else case


def cut(plan: Plan, table: pa.Table, size: int) -> list[Batch]:
    """A stream in batches."""
    return [
        batch_of(table.slice(at, size), plan.schema, plan.columns, base=at) for at in range(0, table.num_rows, size)
    ]


def differs(case: Case) -> bool:
    table = case.table()
    plan = planned(case.query(), table, **case.stream)
    if necessary(plan) is None:
        return False
    try:
        found = [
            steps(plan, cut(plan, table, max(table.num_rows, 1)), "nodes"),
            steps(plan, cut(plan, table, 1), "nodes", stops=True),
            steps(plan, cut(plan, table, 5), "nodes"),
        ]
    except NotNativeError:
        return False
    except AssertionError:
        return True
    expected = sorted(map(repr, told(reference(plan, table))))
    return any(sorted(repr(one) for given in given for one in given) != expected for given in found)


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_engines_give_the_same_behind_match_windows(chunk: int, cases: Callable[[int], int]) -> None:
    tried = 0
    for seed in range(chunk, max(cases(4000), 20 * CHUNKS), CHUNKS):
        case = small_case(seed)
        if case is None:
            continue
        tried += 1
        if differs(case):
            pytest.fail("match windows change what is found:\n" + shrink(case, differs).paste())
    assert tried


def test_the_corpus_is_the_same_behind_match_windows() -> None:
    tried = 0
    for case in load_all():
        if case.raises is not None:
            continue
        table = case.table().take(pa.array(stream_rows(case), pa.int64()))
        options = {name: value for name, value in case.stream_options.items() if name != "seq"}
        plan = planned(query_of(case), table, **options)
        if necessary(plan) is None:
            continue
        try:
            for size, stops in ((1, True), (len(case) or 1, False)):
                found = steps(plan, cut(plan, table, size), "nodes", stops=stops)
        except NotNativeError:
            continue
        tried += 1
        expected = sorted(map(repr, told(reference(plan, table))))
        assert sorted(repr(one) for given in found for one in given) == expected, case.id
    assert tried > 20


# Streams of one-letter types ---------------------------------------------------------------------


def planned_for(text: str, **options: Any) -> Plan:
    return compile_query(acep.parse(text, **options), SCHEMA)


def letters(word: str, ts: Sequence[int] | None = None, k: Sequence[int] | None = None) -> Batch:
    """Events of one-letter types, one a tick."""
    times = list(ts or range(len(word)))
    columns: dict[str, list[Any]] = {"k": list(k or [0] * len(word)), "x": [i % 7 for i in range(len(word))]}
    columns["s"] = ["pqr"[i % 3] for i in range(len(word))]
    return batch_of_events(Events(times, list(word), list(range(len(word))), columns), SCHEMA)


def both(plan: Plan, batch: Batch, engine: str = "nodes") -> NativeSession:
    """A session after a stream on an engine (0) and on the same behind match windows (1)."""
    session = NativeSession([plan, plan], [engine, f"windows+{engine}"])
    session.push(batch)
    session.finish()
    return session


@pytest.mark.parametrize(
    ("text", "errors", "word", "handed"),
    [
        ("PATTERN SEQ(A a, B b) WITHIN 2", 0, "AAAAAB", 3),
        ("PATTERN SEQ(A a, B b) WITHIN 2", 0, "BBABBAA", 4),
        ("PATTERN SEQ(A a, B b) WITHIN 3 EVENTS", 0, "AXXXBAB", 3),
        ("PATTERN {A a, B b, C c} WITHIN 5", 0, "AABBABXXXXXXCBXA", 3),
        ("PATTERN SEQ({A a, B b}, C c) WITHIN 9", 0, "CACBACC", 7),
        ("PATTERN SEQ({A a, B b}, {C c, D d}) WITHIN 9", 0, "ACBDCCAAD", 9),
        ("PATTERN SEQ({A a, B b}, {C c, D d}) WITHIN 9", 0, "ACBDAAAAD", 0),
        ("PATTERN SEQ(A{3} a[], B b) WITHIN 9", 0, "AABBBAAB", 8),
        ("PATTERN SEQ(A{3} a[], B b) WITHIN 9", 0, "AABBBXXXXXXAAB", 0),
        ("PATTERN SEQ(A a, (B b | C C), D d) WITHIN 9", 0, "ADACCDAD", 8),
        ("PATTERN SEQ(A a, (B b | C c), D d) WITHIN 9", 0, "ABBAAAAD", 8),
        ("PATTERN SEQ(A a, (B b | C c), D d) WITHIN 9", 0, "BADAAAAD", 0),
        ("PATTERN SEQ(A a, B? b, D d) WITHIN 9", 0, "BBAD", 4),
        ("PATTERN SEQ((A a, B b){2}, C c) WITHIN 9", 0, "AABBBCBC", 0),
        ("PATTERN SEQ((A a, B b){2}, C c) WITHIN 9", 0, "AABBABC", 7),
        ("PATTERN SEQ(A a, B b, C c) WITHIN 9", 1, "AXXXC", 2),
        ("PATTERN SEQ(A a, B b, C c) WITHIN 9", 1, "CBA", 0),
        ("PATTERN SEQ({A a, B b}, {C c, D d}) WITHIN 9", 1, "ACBDCCAAD", 9),
        ("PATTERN SEQ({A a, B b}, {C c, D d}) WITHIN 9", 1, "ACCXXXXXXXXAA", 0),
        ("PATTERN {ANY a, ANY b, ANY c} WITHIN 1", 0, "ABCDE", 0),
        ("PATTERN {ANY a, ANY b} WHERE a.x < 5 AND b.x > 3 WITHIN 1", 0, "ABCDEFG", 3),
        ("PATTERN {ANY a, ANY b} WHERE a.x < 5 AND b.x > 3 WITHIN 0", 0, "ABCDEFG", 0),
    ],
)
def test_events_are_kept_back(text: str, errors: int, word: str, handed: int) -> None:
    plan = planned_for(text, errors=errors)
    session = both(plan, letters(word))
    assert told(list(session.take(0))) == told(list(session.take(1)))
    assert session.windowed(1)[1] == handed


def test_work_is_less_where_windows_hold_no_match() -> None:
    rng = Random(1)
    word = "".join(rng.choices("ABCDX", (30, 30, 30, 1, 9), k=20_000))
    plan = planned_for("PATTERN {A a, B b, C c, D d} WITHIN 10")
    session = both(plan, letters(word))
    assert told(list(session.take(0))) == told(list(session.take(1)))
    came, handed = session.windowed(1)
    assert came == sum(one != "X" for one in word)
    assert 0 < handed < came / 3
    alone, windowed = session.counts(0), session.counts(1)
    assert 0 < windowed.matches == alone.matches
    assert windowed.touches < alone.touches / 2
    assert windowed.nodes < alone.nodes / 2


def test_an_event_at_the_same_time_is_in_the_window() -> None:
    plan = planned_for("PATTERN SEQ(A a, B b) WITHIN 0")
    session = both(plan, letters("AABBA", ts=[1, 1, 1, 2, 2]))
    assert session.windowed(1)[1] == 3
    assert len(session.take(1)) == len(session.take(0)) == 2


def test_partitions_have_windows_of_their_own() -> None:
    plan = planned_for("PATTERN SEQ(A a, B b) WHERE [k] WITHIN 9")
    session = both(plan, letters("AABAB", k=[1, 2, 3, 3, 2]))
    assert session.windowed(1)[1] == 2
    assert told(list(session.take(0))) == told(list(session.take(1)))


# Passing through ---------------------------------------------------------------------------------


def phases(rng: Random, size: int) -> str:
    """Phases in which windows nearly always hold a match, and phases in which they hardly ever do."""
    dense, rare = ("".join(rng.choices("AB", weights, k=size)) for weights in ((1, 1), (300, 1)))
    return dense + rare + dense + rare


@pytest.mark.parametrize("text", ["SEQ(A a, B b) WHERE a.x < b.x", "SEQ(A a, B b) WHERE a.s = b.s AND [k]"])
@pytest.mark.parametrize("stops", [False, True])
def test_where_it_does_not_pay_events_pass(text: str, stops: bool) -> None:
    plan = planned_for(f"PATTERN {text} WITHIN 30")
    rng = Random(7)
    word = phases(rng, 100_000)
    whole = letters(word, k=[rng.randrange(2) for _ in word])
    table = pa.table(
        {"ts": whole.ts, "type": list(word), "k": whole.columns["k"].values, "x": whole.columns["x"].values}
    )
    table = table.append_column("s", pa.array(["pqr"[i % 3] for i in range(len(word))]))
    engines = ("nodes", "windows+nodes")
    session = NativeSession([plan, plan], engines)
    shares, before = [], (0, 0)
    for at in range(0, len(word), 20_000):
        session.push(batch_of(table.slice(at, 20_000), plan.schema, plan.columns, base=at))
        first, second = (ordered(session.take(number)) for number in range(2))
        assert all(
            np.array_equal(getattr(first, name), getattr(second, name)) for name in ("start", "end", "ids", "offsets")
        )
        came, handed = session.windowed(1)
        shares.append((handed - before[1]) / (came - before[0]))
        before = came, handed
        if stops:
            session = again(session, plan, engines)
    assert shares[1] == 1.0
    assert min(shares[5:10]) < 0.2
    assert shares[14] == 1.0
    assert min(shares[15:]) < 0.2


# Other engines -----------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["merged", "count", "ends", "points"])
@pytest.mark.parametrize("within", ["6", "12 EVENTS"])
@pytest.mark.parametrize("errors", [0, 1])
def test_any_engine_runs_behind_match_windows(engine: str, within: str, errors: int) -> None:
    rng = Random(errors)
    plan = planned_for(f"PATTERN SEQ(A a, {{B b, C c}}, D+ d[]) WHERE [k] WITHIN {within}", errors=errors)
    word = "".join(rng.choices("ABCDX", (4, 3, 2, 1, 4), k=3000))
    session = both(plan, letters(word, k=[rng.randrange(3) for _ in word]), engine)
    if engine == "merged":
        found = told(list(session.take(0)))
        assert found == told(list(session.take(1)))
        assert found
    elif engine == "count":
        assert session.total(1) == session.total(0) > 0
    else:
        first, second = (session.take_counts(number, last=True) for number in range(2))
        assert len(first.last)
        assert np.array_equal(first.matches, second.matches)
        for name in ("first", "last", "bundle", "error"):
            assert np.array_equal(getattr(first, name), getattr(second, name))
    came, handed = session.windowed(1)
    assert handed < came


# The boundary ------------------------------------------------------------------------------------


def test_plans_whose_events_matter_otherwise_are_refused() -> None:
    for text in (
        "PATTERN SEQ(A a, B b)",
        "PATTERN SEQ(A a, B b) WHERE partition_contiguity(a, b) { [k] } WITHIN 9",
        "PATTERN SEQ(A a, ~C c, B b) WITHIN 9",
        "PATTERN SEQ(A a, B b) WITHIN 9 OUTPUT NON OVERLAP",
        "PATTERN SEQ(A? a, B? b) WITHIN 9",
    ):
        plan = planned_for(text)
        assert not worth(plan).worth
        assert necessary(plan) is None
        assert lines(plan) == [reason_against(plan) or "a window needs no event in particular"]
        with pytest.raises(NotNativeError):
            NativeSession([plan], ["windows+nodes"])


def test_needs_that_make_no_sense_are_refused_or_run(cases: Callable[[int], int]) -> None:
    plan = planned_for("PATTERN SEQ({A a, B{2,} b[]}, C c) WHERE a.x < c.x WITHIN 9", errors=1)
    good = necessary(plan)
    assert good is not None
    refused = ran = 0
    for seed in range(cases(400)):
        rng = Random(seed)
        session = NativeSession([plan], ["nodes"])
        arrays = session._arrays(lower(plan, SharedTables(), lambda _: 0))
        arrays |= {name: np.array(values, np.int64) for name, values in good.arrays(plan.variables).items()}
        name = rng.choice([name for name in arrays if name.startswith("need")])
        array = arrays[name].copy()
        if rng.random() < 0.7:
            array[rng.randrange(len(array))] = rng.choice(ODD)
        else:
            array = array[:-1] if rng.random() < 0.5 else np.append(array, np.int64(rng.choice(ODD)))
        try:
            session._session.add("windows+nodes", arrays | {name: array})
        except REFUSED:
            refused += 1
            continue
        session.push(letters("".join(rng.choices("ABC", k=60))))
        session.finish()
        ran += 1
    assert refused
    assert ran


@pytest.mark.parametrize("errors", [0, 1])
def test_states_that_make_no_sense_are_refused_or_run(errors: int, cases: Callable[[int], int]) -> None:
    plan = planned_for(
        "PATTERN SEQ({A a, B{2,} b[]}, C c) WHERE [k] AND a.x < c.x AND a.s = c.s WITHIN 9", errors=errors
    )
    refused = ran = 0
    for seed in range(cases(400)):
        rng = Random(seed)
        session = NativeSession([plan], ["windows+nodes"])
        word = "".join(rng.choices("AABBBBC", k=40))
        session.push(letters(word, k=[rng.randrange(2) for _ in word]))
        state = spoilt(session._session.dump(), rng)
        other = NativeSession([plan], ["windows+nodes"])
        try:
            other._session.load(state)
            ran += 1
            word = "".join(rng.choices("ABC", k=60))
            other.push(letters(word, ts=range(40, 100), k=[rng.randrange(2) for _ in word]))
            other.finish()
            other.take(0)
        except REFUSED:
            refused += 1
    assert refused
    assert ran


def test_what_has_left_the_window_is_not_kept() -> None:
    plan = planned_for("PATTERN SEQ(A a, B b) WHERE [k] AND a.x < b.x WITHIN 50")
    session = NativeSession([plan], ["windows+nodes"])
    held = []
    for part in range(40):
        word = "A" * 2_000
        ts = range(part * 2_000, (part + 1) * 2_000)
        session.push(letters(word, ts=ts, k=[(part * 2_000 + i) % 500 for i in range(2_000)]))
        held.append(session._session.bytes)
    assert session.windowed(0) == (80_000, 0)
    assert held[-1] <= 2 * held[4]  # what is idle is forgotten at every 256th event
