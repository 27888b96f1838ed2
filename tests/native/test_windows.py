"""Match windows keep events back and pass others on. That an engine behind them finds what it finds alone, at the same
time, is a test of every engine (tests/native/test_every_engine.py)."""

from __future__ import annotations

from random import Random

import numpy as np
import pyarrow as pa
import pytest

from acep.matches.found_columns import sort_matches
from acep.native import session as native_session
from acep.native.session import NativeSession
from acep.plan.compile import Plan
from acep.plan.lower.tables import NotNativeError
from acep.plan.prefilter import lines, necessary, prefilter_gain, reason_against
from tests.case_counts import CaseCounts
from tests.native.harness import letters, pieces, plan_of, push_all, restarted, session_of, shown, stream, take, whole
from tests.native.spoilt import refused_or_run, spoil_tables
from tests.thinned import thinned

pytest.importorskip("acep.native._native")


def both(plan: Plan, table: pa.Table, engine: str = "nodes") -> tuple[NativeSession, int, int]:
    """A session after a stream on an engine (0) and on the same behind match windows (1), which find the same: how many
    events came, and how many passed the windows."""
    session = session_of(plan, engine, f"windows+{engine}")
    returned = push_all(session, [whole(plan, table)])
    found = take(session, returned, 0)
    assert shown(found) == shown(take(session, returned, 1))
    assert engine == "nodes" or found not in ([], [0])
    return session, *session.count_windowed(1)


@pytest.mark.parametrize(
    ("text", "errors", "word", "passed"),
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
def test_events_are_kept_back(text: str, errors: int, word: str, passed: int) -> None:
    _, _, handed = both(plan_of(text, errors=errors), letters(word, x=[i % 7 for i in range(len(word))]))
    assert handed == passed


@pytest.mark.long
def test_work_is_less_where_windows_hold_no_match(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native_session, "STRATEGIES", (0, 1))  # the known future, too, leaves out what windows do
    word = Random(1).choices("ABCDX", (30, 30, 30, 1, 9), k=20_000)
    session, came, passed = both(plan_of("PATTERN {A a, B b, C c, D d} WITHIN 10"), letters(word))
    assert came == sum(one != "X" for one in word)
    assert 0 < passed < came / 3
    alone, windowed = session.counts(0), session.counts(1)
    assert 0 < windowed.matches == alone.matches
    assert windowed.touches < alone.touches / 2
    assert windowed.nodes < alone.nodes / 2


@pytest.mark.parametrize(
    ("text", "table", "passed", "matches"),
    [
        ("PATTERN SEQ(A a, B b) WITHIN 0", letters("AABBA", ts=[1, 1, 1, 2, 2]), 3, 2),
        ("PATTERN SEQ(A a, B b) WHERE [k] WITHIN 9", letters("AABAB", k=[1, 2, 3, 3, 2]), 2, 1),
    ],
    ids=["an event at the same time is in the window", "partitions have windows of their own"],
)
def test_windows_of_time_and_of_partitions(text: str, table: pa.Table, passed: int, matches: int) -> None:
    session, _, handed = both(plan_of(text), table)
    assert (handed, session.counts(1).matches) == (passed, matches)


@pytest.mark.parametrize(
    "text", thinned(["SEQ(A a, B b) WHERE a.x < b.x", "SEQ(A a, B b) WHERE a.s = b.s AND [k]"], 2, pytest.mark.whole)
)
@pytest.mark.parametrize("stops", thinned([True, False], 2, pytest.mark.whole), ids=["with restarts", "at once"])
@pytest.mark.long
def test_events_pass_unfiltered_where_match_windows_do_not_pay(text: str, stops: bool) -> None:
    """There are phases in which windows nearly always hold a match, and phases in which they hardly ever do."""
    rng, size = Random(7), 100_000
    dense, rare = (rng.choices("AB", weights, k=size) for weights in ((1, 1), (300, 1)))
    n = 4 * size
    table = letters([*dense, *rare] * 2, k=[rng.randrange(2) for _ in range(n)], x=[i % 7 for i in range(n)])
    table = table.append_column("s", pa.array(["pqr"[i % 3] for i in range(n)]))
    plan = plan_of(f"PATTERN {text} WITHIN 30")

    def begin() -> NativeSession:
        session = session_of(plan, "nodes", "windows+nodes")
        session.ignore_future()  # else events pass where it is known
        return session

    session, shares, before = begin(), [], (0, 0)
    for part in pieces(whole(plan, table), 20_000):
        first, second = map(sort_matches, session.push(part))
        for name in ("start", "end", "ids", "offsets"):
            assert np.array_equal(getattr(first, name), getattr(second, name))
        came, passed = session.count_windowed(1)
        shares.append((passed - before[1]) / (came - before[0]))
        before = came, passed
        session = restarted(session, begin) if stops else session
    assert shares[1] == 1.0
    assert min(shares[5:10]) < 0.2
    assert shares[14] == 1.0
    assert min(shares[15:]) < 0.2


@pytest.mark.parametrize("engine", ["merged", "count", "ends", "points"])
@pytest.mark.parametrize("within", ["6", "12 EVENTS"])
@pytest.mark.parametrize("errors", [0, 1])
def test_any_engine_runs_behind_match_windows(engine: str, within: str, errors: int) -> None:
    plan = plan_of(f"PATTERN SEQ(A a, {{B b, C c}}, D+ d[]) WHERE [k] WITHIN {within}", errors=errors)
    _, came, passed = both(plan, stream(3000, errors, "AAAABBBCCDXXXX", k=3), engine)
    assert passed < came


@pytest.mark.parametrize(
    "text",
    [
        "PATTERN SEQ(A a, B b)",
        "PATTERN SEQ(A a, B b) WHERE partition_contiguity(a, b) { [k] } WITHIN 9",
        "PATTERN SEQ(A a, ~C c, B b) WITHIN 9",
        "PATTERN SEQ(A a, B b) WITHIN 9 OUTPUT NON OVERLAP",
        "PATTERN SEQ(A? a, B? b) WITHIN 9",
    ],
)
def test_plans_that_depend_on_other_events_are_refused(text: str) -> None:
    plan = plan_of(text)
    assert not prefilter_gain(plan).is_useful
    assert necessary(plan) is None
    assert lines(plan) == [reason_against(plan) or "a window needs no event in particular"]
    with pytest.raises(NotNativeError):
        session_of(plan, "windows+nodes")


def test_needs_that_make_no_sense_are_refused_or_run(cases: CaseCounts) -> None:
    plan = plan_of("PATTERN SEQ({A a, B{2,} b[]}, C c) WHERE a.x < c.x WITHIN 9", errors=1)

    def attempt(rng: Random) -> None:
        session = session_of(plan, "windows+nodes")
        spoil_tables(session, rng, "need")
        session.push(whole(plan, stream(60, rng.randrange(1_000), x=7)))
        session.finish()

    refused_or_run(cases, 400, attempt)


def test_events_that_have_left_the_window_are_not_kept() -> None:
    plan = plan_of("PATTERN SEQ(A a, B b) WHERE [k] AND a.x < b.x WITHIN 50")
    session, held, size = session_of(plan, "windows+nodes"), [], 2_000
    for part in range(40):
        number = np.arange(part * size, (part + 1) * size)
        session.push(whole(plan, letters("A" * size, ts=number, k=number % 500, x=number % 7)))
        held.append(session._session.bytes)
    assert session.count_windowed(0) == (80_000, 0)
    assert held[-1] <= 2 * held[4]  # what is idle is forgotten at every 256th event
