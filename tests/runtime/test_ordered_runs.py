"""The ordered engine gives the chosen matches of a whole table: those of the engine that makes all, in linear time."""

from __future__ import annotations

import sys
import tracemalloc
from collections import Counter
from collections.abc import Callable
from random import Random
from types import FrameType
from typing import Any

import pytest

import acep
from acep.errors import QueryError
from acep.explain.stages import explain
from acep.plan.assume import assumed_plan
from acep.plan.chosen.query_intervals import intervals_of, reason_against_intervals
from acep.plan.chosen.query_runs import reason_against_runs, runs_of
from tests.case_counts import CaseCounts
from tests.runtime.random_intervals import random_interval_events, random_interval_query
from tests.runtime.random_runs import random_events, random_query

SESSIONS = "PATTERN ANY+ e[] WHERE {strategy}(e[]) {{ [user] AND e[i].ts - e[i-1].ts < 30 }} OUTPUT LONGEST NON OVERLAP"
LONG_RUN = "PATTERN A+ a[] WHERE skip_till_next_match(a[]) OUTPUT LONGEST NON OVERLAP"
SPRAY = (
    "PATTERN fail+ f[] WHERE skip_till_next_match(f[]) { [ip] } HAVING count(DISTINCT f[].user) >= 3 OUTPUT NON OVERLAP"
)
V_SHAPE = """
    PATTERN SEQ(ANY top, ANY+ down[], ANY+ up[])
    WHERE partition_contiguity(top, down[], up[]) {
        down[1].price < top.price AND down[i].price < down[i-1].price
        AND up[1].price > down[down.LEN].price AND up[i].price > up[i-1].price }
    OUTPUT """
ALONE = ("skip_till_next_match", "skip_till_any_match", "partition_contiguity")


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::acep.DataWarning")
def test_runs_are_those_of_the_reference_engine(cases: CaseCounts) -> None:
    seen = compare_engines(cases(2_000), random_query, random_events, runs_of, "runs")
    cases.expect(seen, "runs", "matches", "several", least=400)
    cases.expect(seen, "others", least=100)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::acep.DataWarning")
def test_intervals_are_those_of_the_reference_engine(cases: CaseCounts) -> None:
    seen = compare_engines(cases(1_200), random_interval_query, random_interval_events, intervals_of, "intervals")
    cases.expect(seen, "intervals", "others", "matches", "several", least=100)
    cases.expect(seen, "tied", least=40)


def compare_engines(
    n_cases: int,
    draw_query: Callable[[Random], str],
    draw_events: Callable[[Random, int], tuple[Any, dict[str, Any]]],
    find_plan: Callable[[Any], Any],
    kind: str,
) -> Counter[str]:
    """Compare random queries with the reference engine; return how often they were of a ``kind``, and had matches."""
    seen: Counter[str] = Counter()
    for seed in range(n_cases):
        rng = Random(seed)
        text = draw_query(rng)
        try:
            query = acep.parse(text)
        except QueryError:
            seen["refused"] += 1
            continue
        events, options = draw_events(rng, 9 if "any" in text else 14)
        expected = acep.match(events, query, engine="reference", **options)
        matches = acep.match(events, query, **options)
        assert matches.to_arrow().to_pylist() == expected.to_arrow().to_pylist(), (seed, text, events, options)
        ordered = find_plan(assumed_plan(query))
        seen[kind if ordered else "others"] += 1
        seen["tied"] += getattr(ordered, "is_tied", False) and len(matches) > 0
        seen["matches"] += len(matches) > 0
        seen["several"] += len(matches) > 1
    return seen


@pytest.mark.parametrize("output", ["LONGEST NON OVERLAP", "NON OVERLAP"])
@pytest.mark.parametrize("shape", ["one", "many", "none"])
def test_the_rows_that_passes_meet_grow_with_the_rows(shape: str, output: str) -> None:
    work = []
    for n in (1_000, 2_000, 4_000, 8_000):
        rng = Random(n)
        prices = {
            "one": [abs(row - n // 2) for row in range(n)],
            "many": rng.choices(range(9), k=n),
            "none": [*range(n)],
        }
        report = acep.match({"ts": range(n), "price": prices[shape]}, V_SHAPE + output, type=None).report
        work.append(report.work / n)
    assert max(work) <= 1.1 * min(work)
    assert max(work) < 5


@pytest.mark.parametrize("output", ["LONGEST NON OVERLAP", "NON OVERLAP"])
@pytest.mark.parametrize("window", ["", " WITHIN 40", " WITHIN 400"])
@pytest.mark.parametrize(
    "pattern",
    [
        "SEQ(a x, b y, c z) WHERE skip_till_next_match",
        "SEQ(a+ x[], b y) WHERE skip_till_next_match { y.v = 0 }",
        "SEQ(a x, ANY+ y[], c z) WHERE skip_till_any_match { z.v = 0 }",
        "SEQ(a x, (~c n, b y)+, ~a m, c z) WHERE skip_till_any_match",
        "SEQ(a x, d y)",
    ],
)
def test_the_rows_that_passes_meet_grow_with_the_rows_where_some_are_skipped(
    pattern: str, window: str, output: str
) -> None:
    work = []
    for n in (2_000, 4_000, 8_000):
        rng = Random(1)
        events = {"ts": range(n), "type": rng.choices("abcx", k=n), "v": rng.choices(range(50), k=n)}
        events["type"][0] = "d"
        work.append(acep.match(events, f"PATTERN {pattern}{window} OUTPUT {output}").report.work / n)
    assert max(work) <= 1.2 * min(work)
    assert max(work) < 7


@pytest.mark.parametrize("strategy", ALONE)
def test_sessions_are_those_between_gaps(strategy: str) -> None:
    rng = Random(strategy)
    ts = [0]
    while len(ts) < 2_000:
        ts.append(ts[-1] + rng.choice([1, 5, 29, 30, 31]))
    users = rng.choices("ab", k=len(ts))
    matches = acep.match({"ts": ts, "user": users}, SESSIONS.format(strategy=strategy), type=None)
    sessions: dict[str, list[list[int]]] = {"a": [], "b": []}
    for row, user in enumerate(users):
        of_user = sessions[user]
        if of_user and ts[row] - ts[of_user[-1][-1]] < 30:
            of_user[-1].append(row)
        else:
            of_user.append([row])
    expected = sorted(tuple(session) for of_user in sessions.values() for session in of_user)
    assert sorted(match.bindings["e"] for match in matches) == expected


def large_events(n: int) -> dict[str, list[Any]]:
    rng = Random(n)
    return {"ts": list(range(n)), "type": rng.choices(["A", "fail"], [1, 3], k=n), "user": [1] * n, "ip": [1] * n}


QUERIES = [*(SESSIONS.format(strategy=strategy) for strategy in ALONE), LONG_RUN, SPRAY]


def lines_run(events: dict[str, list[Any]], query: str) -> int:
    """Count the lines of the modules of runs that run for a query: their work, apart from that over whole columns."""
    count = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal count
        if not frame.f_code.co_filename.endswith(("_runs.py", "run_rows.py")):
            return None
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        acep.match(events, query)
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize("query", [*QUERIES, LONG_RUN.replace(" OUTPUT", " HAVING a.user > 1 OUTPUT")])
def test_the_work_grows_with_the_events(query: str) -> None:
    counts = [lines_run(large_events(n), query) for n in (1_000, 2_000, 4_000)]
    assert counts[1] <= 2.2 * counts[0]
    assert counts[2] <= 2.2 * counts[1]


@pytest.mark.parametrize("query", QUERIES)
def test_memory_grows_with_the_events(query: str) -> None:
    peaks = []
    for n in (20_000, 40_000, 80_000):
        events = large_events(n)
        tracemalloc.start()
        acep.match(events, query)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] <= 2.2 * peaks[0]
    assert peaks[2] <= 2.2 * peaks[1]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("PATTERN a+ x[] WITHIN 9", "all of its matches are given"),
        ("PATTERN SEQ(a x, b y) WITHIN 9 OUTPUT NON OVERLAP", "it has more than one variable"),
        ("PATTERN a{1,3} x[] OUTPUT NON OVERLAP", "a longer run has more matches of the most events"),
        ("PATTERN a+ x[] WHERE strict_contiguity(x[]) { [k] } OUTPUT NON OVERLAP",
         "events of other partitions break its runs"),
        ("PATTERN a+ x[] WHERE skip_till_next_match(x[]) { x[i].v > x[i-1].v } OUTPUT NON OVERLAP",
         "a run may skip an event that fails a condition, and go on"),
        ("PATTERN a+ x[] WHERE x[i].ts - x[i-2].ts < 5 OUTPUT NON OVERLAP",
         "a condition of events that are not neighbours is not asked of a shorter run"),
        ("PATTERN a+ x[] WHERE partition_contiguity(x[]) { x[i].v > avg(x[..i-1].v) } OUTPUT NON OVERLAP",
         "a condition reads an aggregate of the events before each"),
        ("PATTERN a+ x[] WHERE partition_contiguity(x[]) { x[i].v > x[1].v } OUTPUT NON OVERLAP",
         "a condition ties each event to one that is not at a fixed distance"),
        ("PATTERN a+ x[] HAVING sum(x[].v) > 5 OUTPUT NON OVERLAP",
         "its HAVING may fail for a run and hold for a part of it"),
        ("PATTERN SEQ(a+ x[], ~b n) WITHIN 9 OUTPUT NON OVERLAP", "it has negations"),
    ],
)  # fmt: skip
def test_other_queries_have_a_reason(text: str, reason: str) -> None:
    assert reason_against_runs(assumed_plan(acep.parse(text))) == reason


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("PATTERN SEQ(a x, b y)", "all of its matches are given"),
        ("PATTERN SEQ(a x, b y) WHERE skip_till_next_match { y.v > x.v } OUTPUT NON OVERLAP",
         "the condition `y.v > x.v` compares events that are not at a fixed distance"),
        ("PATTERN SEQ(a x, b y, ~c n) WITHIN 9 OUTPUT NON OVERLAP", "a negation stands after the last event"),
        ("PATTERN SEQ(~c n, a x, b y) WITHIN 9 OUTPUT NON OVERLAP", "a negation stands before the first event"),
        ("PATTERN SEQ(a x, ~c n, b y) WHERE n.v = x.v OUTPUT NON OVERLAP", "the negation `n` compares events"),
        ("PATTERN SEQ(a x, b y) WHERE partition_contiguity HAVING y.v > 1 OUTPUT NON OVERLAP",
         "HAVING looks at whole matches"),
        ("PATTERN SEQ(a x, b y) WHERE strict_contiguity { [k] } OUTPUT NON OVERLAP",
         "events of other partitions break its matches"),
        ("PATTERN SEQ(a x, b+ y[], c z) WHERE partition_contiguity { z.v > x.v } OUTPUT NON OVERLAP",
         "the condition `z.v > x.v` compares events that are not at a fixed distance"),
        ("PATTERN SEQ(a{70} x[], c z) WHERE partition_contiguity OUTPUT NON OVERLAP", "it has more than 64 states"),
    ],
)  # fmt: skip
def test_other_patterns_have_a_reason(text: str, reason: str) -> None:
    assert reason_against_intervals(assumed_plan(acep.parse(text))) == reason


def test_explain_names_the_engine() -> None:
    told = explain(V_SHAPE + "NON OVERLAP")
    assert "engine of chosen matches: ordered: conditions are functions of the row" in told
    told = explain("PATTERN SEQ(a x, b y, ~c n) WITHIN 5 OUTPUT NON OVERLAP")
    assert "engine of chosen matches: the same, and not ordered: a negation stands after the last event" in told


def test_missing_events_are_a_reason() -> None:
    query = acep.parse("PATTERN a{2,} x[] OUTPUT NON OVERLAP", errors=1)
    assert reason_against_runs(assumed_plan(query)) == "events may be missing"


def test_ids_against_the_order_of_the_stream_decide_between_matches_of_one_time() -> None:
    events = {"ts": [1, 1, 1], "type": ["a"] * 3, "id": [3, 2, 1]}
    matches = acep.match(events, "PATTERN a{2} x[] WHERE partition_contiguity(x[]) OUTPUT NON OVERLAP", id="id")
    assert [match.bindings for match in matches] == [{"x": (2, 1)}]


def test_the_other_outputs_are_made_from_the_matches() -> None:
    events = {"ts": [1, 2, 50, 51, 90], "user": [1] * 5}
    text = SESSIONS.format(strategy="skip_till_next_match")
    assert acep.match(events, text, type=None, output="count") == 3
    assert [point.point for point in acep.match(events, text, type=None, output="points")] == [2, 51, 90]
    report = acep.match(events, text, type=None, threads=2).report
    assert (report.work, report.threads, report.fewer_threads) == (5, 1, "the ordered engine runs in one thread")


def test_bundles_of_matches_that_end_in_another_order_than_they_start() -> None:
    # From B1 the longest match ends with C4, from C2 with C2.
    query = "PATTERN SEQ(B* b[], C c) WHERE skip_till_any_match { c.x = 0 OR b[1].x = 1 } WITHIN 1"
    events = {"ts": [1, 2, 2, 9], "type": [*"BCCC"], "x": [1, 1, 0, 0]}
    for output in ("LONGEST AFTER MATCH SKIP TO NEXT EVENT", "SHORTEST AFTER MATCH SKIP TO FIRST b"):
        found, expected = (acep.match(events, f"{query} OUTPUT {output}", engine=e) for e in ("native", "reference"))
        assert found.to_arrow().to_pylist() == expected.to_arrow().to_pylist()


@pytest.mark.parametrize("output", ["SHORTEST NON OVERLAP", "LONGEST AFTER MATCH SKIP TO LAST y"])
def test_a_pass_from_a_start_ends_with_the_window(output: str) -> None:
    query = f"PATTERN SEQ(a x, ~b n, b y) WHERE [k] AND y.v > x.v AND n.v > x.v WITHIN 100 OUTPUT {output}"
    work = []
    for n in (4_000, 8_000, 16_000):
        rng = Random(1)
        events = {"ts": range(n), "type": rng.choices("abc", k=n), "v": rng.choices(range(50), k=n), "k": [1] * n}
        work.append(acep.match(events, query).report.work / n)
    assert max(work) <= 1.2 * min(work)
    assert max(work) < 20
