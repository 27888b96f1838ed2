"""An equality that ties all variables is a condition: the answer is the same however it is written.

It is that of an evaluation which infers nothing: the oracle, and the reference runtime. The native core keeps events of
different values apart where that is the same (:attr:`acep.plan.compile.Plan.finer`), in each output, in one piece and
in batches, and over restarts.
"""

from __future__ import annotations

import math
import warnings
from collections import Counter
from decimal import Decimal
from functools import partial
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import acep
from acep.matches.matches import Matches
from acep.pattern.state_text import state_text
from tests.case_counts import CaseCounts
from tests.complaints import difference, fail_if_wrong
from tests.oracle import TooManyStepsError
from tests.random_cases import Case
from tests.runtime.test_revisions import checked
from tests.test_random import ENGINES, complaint_of_engine, judged, manageable, told
from tests.tied_cases import tied_cases

pytestmark = pytest.mark.usefixtures("shared_plans")
SEEDS = 3_000
CHUNKS = 10


def judged_or_nothing(case: Case) -> list[Any]:
    """Return what the oracle says of a case, or nothing if it is too large."""
    try:
        return judged(case)
    except TooManyStepsError:
        return []


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_each_spelling_has_the_same_answer(chunk: int, cases: CaseCounts) -> None:
    seen: Counter[str] = Counter()
    for seed in range(chunk, cases(SEEDS), CHUNKS):
        first, *others = tied_cases(seed)
        case, wanted = manageable(first)
        for other in (first, *others):
            spelled = Case(seed, False, other.text, other.options, case.events, case.stream)
            judgement = judged_or_nothing(spelled)
            for engine in ENGINES:
                fail_if_wrong(spelled, partial(complaint_of_engine, engine, spelled, judgement))
            if judgement != wanted:
                pytest.fail(f"{case.paste()}\nis not\n{spelled.paste()}", pytrace=False)
            seen["matches"] += bool(wanted)
            seen[first.query().strategy.value] += bool(wanted)
            seen[first.query().output.value] += bool(wanted)
    cases.expect(seen, "matches", "strict_contiguity", "partition_contiguity", "non_overlap", "longest_non_overlap")


def ends_of(groups: Any) -> list[Any]:
    """Return keys and times of match points or bundles. Those of one time come in any order of their keys."""
    return sorted(repr((one.key, one.point if isinstance(one, acep.Point) else (one.start, one.end))) for one in groups)


def rows_of(answer: Any) -> list[Any]:
    """Return what an output gives as plain values."""
    if isinstance(answer, Matches):
        return told(answer)
    return sorted(map(repr, answer)) if isinstance(answer, acep.Points | acep.Bundles) else [answer]


@pytest.mark.long
def test_each_output_is_that_of_the_reference(cases: CaseCounts) -> None:
    def complaint_of(case: Case) -> str:
        query, table, stream = case.query(), case.table(), case.stream
        matches = acep.match(table, query, engine="reference", **stream)
        wanted: dict[str, Any] = {
            "points": matches.points(),
            "bundles": matches.bundles(),
            "count": len(matches),
            "exists": len(matches) > 0,
            "compressed": len(matches),
        }
        complaints = []
        for output, answer in wanted.items():
            given = acep.match(table, query, output=output, **stream)
            given = given.count() if output == "compressed" else int(given) if output == "count" else given
            complaints.append(difference(rows_of(given), rows_of(answer), (output, "reference")))
        for output in ("points", "bundles"):
            given = acep.match(table, query, output=output, counts=False, **stream)
            bare = matches.points() if output == "points" else matches.bundles(counts=False)
            complaints.append(difference(ends_of(given), ends_of(bare), (f"bare {output}", "reference")))
        every = acep.match(table, query, output="compressed", **stream)
        compressed = told(every.matches(limit=10**6))
        points = [end for _, _, end, *_ in compressed]
        if points != sorted(points):
            complaints.append(f"compressed matches are not in the order of match points: {points}")
        # Those of one match point come in any order.
        answers = sorted(compressed, key=repr), sorted(told(matches), key=repr)
        complaints.append(difference(*answers, ("compressed", "reference")))
        batches = [row for batch in acep.match(table, query, output="batches", **stream) for row in batch.to_pylist()]
        complaints.append(difference(batches, matches.to_arrow().to_pylist(), ("batches", "reference")))
        return "\n".join(filter(None, complaints))

    for seed in range(cases(600)):
        fail_if_wrong(manageable(tied_cases(seed)[seed % 3])[0], complaint_of)


def test_compressed_matches_come_in_the_order_of_match_points() -> None:
    """Those of one match point have another order than in other outputs, the same one each time."""
    rows = {"ts": [0, 1, 2], "type": ["A", "B", "B"], "y": [0, 0, 0]}
    for condition in ("NOT (b[1].y <> a.y) AND b[i-1].y == b[i].y", "[y]"):
        query = f"PATTERN SEQ(A? a, B{{1,2}} b[]) WHERE skip_till_next_match {{ {condition} }}"
        matches = told(acep.match(rows, query))
        compressed = acep.match(rows, query, output="compressed")
        enumerated = told(compressed.matches(limit=9))
        assert [end for _, _, end, *_ in enumerated] == [end for _, _, end, *_ in matches] == [1, 1, 2, 2, 2]
        assert sorted(enumerated, key=repr) == sorted(matches, key=repr)
        assert [match for start in range(5) for match in told(compressed.matches(start, limit=1))] == enumerated
        assert told(acep.match(rows, query, output="compressed").matches(limit=9)) == enumerated


@pytest.mark.long
def test_a_stream_finds_the_same_over_restarts(cases: CaseCounts) -> None:
    def complaint_of(case: Case) -> str:
        rng = Random(case.seed)
        # A stream comes in order, and ids must not depend on batches.
        events = sorted(case.events, key=lambda row: (row["ts"], row["seq"] if "seq" in case.stream else 0))
        case = Case(case.seed, False, case.text, case.options, events, case.stream)
        wanted = told(acep.match(case.table(), case.query(), engine="reference", **case.stream))
        answers = []
        for engine in ("reference", "auto"):
            matcher = acep.Matcher(case.query(), engine=engine, **case.stream)
            given, at = [], 0
            while at < len(events):
                until = at + rng.randint(1, 4)
                given += told(matcher.push(case.table(at, until)))
                at = until
                if rng.random() < 0.3:
                    state, matcher = matcher.snapshot(), acep.Matcher(case.query(), engine=engine, **case.stream)
                    matcher.restore(state)
            given += told(matcher.finish())
            answers.append(difference(sorted(given, key=repr), sorted(wanted, key=repr), (engine, "whole")))
        return "\n".join(filter(None, answers))

    for seed in range(cases(1_000)):
        fail_if_wrong(manageable(tied_cases(seed)[seed % 3])[0], complaint_of)


WAITING = (
    "PATTERN SEQ(~A a, C b) WHERE skip_till_next_match { NOT a.k != b.k } WITHIN 3 OUTPUT EARLIEST MAXIMAL",
    "PATTERN SEQ(C b, ~A a) WHERE a.k = b.k WITHIN 3",
    "PATTERN SEQ(A? a, C b, ~A n) WHERE [s] AND a.k = b.k AND n.k = b.k WITHIN 3 RETURN b.k AS k, b.s AS s",
    "PATTERN C+ b[] WHERE b[i].k = b[i-1].k WITHIN 3 RETURN count(b[]) AS n OUTPUT EARLIEST MAXIMAL",
)


@pytest.mark.parametrize("text", WAITING)
@pytest.mark.parametrize("id_column", [None, "id"])
def test_a_match_of_an_event_with_a_null_waits_over_restarts(text: str, id_column: str | None) -> None:
    """It waits with matches of the native core, whose partitions have one key more."""
    rng, size = Random(3), 20
    rows = {
        "ts": list(range(size)),
        "type": rng.choices("AC", k=size),
        "k": rng.choices([1, 2, None], k=size),
        "s": rng.choices("xy", k=size),
        "id": [f"e{n}" for n in range(size)],
    }
    table, query = pa.table(rows), acep.parse(text)
    wanted = told(acep.match(table, query, engine="reference", id=id_column))
    matcher, matches = acep.Matcher(query, id=id_column), []
    for row in range(size):
        matches += told(matcher.push(table.slice(row, 1)))
        state, matcher = matcher.snapshot(), acep.Matcher(query, id=id_column)
        matcher.restore(state)
    assert matches + told(matcher.finish()) == wanted


@pytest.mark.long
def test_events_that_come_late_or_are_taken_back(cases: CaseCounts) -> None:
    for seed in range(cases(800)):
        case = manageable(tied_cases(seed)[seed % 3])[0]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", acep.DataWarning)
            fail_if_wrong(case, lambda smaller, seed=seed: checked(smaller, smaller.query(), seed))


PASSES = {
    "ts": list(range(1, 10)),
    "type": ["pass", "pass", "pass", "pass", "pass", "pass", "shot", "pass", "shot"],
    "team": ["a", "a", "b", "a", "a", "a", "a", "b", "b"],
}
ONE_TEAM = (
    "p[i].team = p[i-1].team AND s.team = p[1].team",
    "p[i].team = p[1].team AND s.team = p[1].team",
    "NOT p.team != s.team",
    "p.team = s.team",
    "p.team IN (s.team)",
)


@pytest.mark.parametrize("condition", ONE_TEAM)
@pytest.mark.parametrize("engine", ["reference", "native"])
@pytest.mark.parametrize(
    ("contiguity", "tie"),
    [("partition_contiguity", ""), ("strict_contiguity", ""), ("partition_contiguity", "[team] AND ")],
)
def test_passes_and_a_shot_of_one_team(condition: str, engine: str, contiguity: str, tie: str) -> None:
    """Two passes and a shot that follow each other. Only ``[team]`` ignores what the other team does in between."""
    query = f"PATTERN SEQ(pass{{2}} p[], shot s) WHERE {contiguity}(p[], s) {{ {tie}{condition} }} WITHIN 99"
    found = acep.match(PASSES, query, engine=engine)
    if tie:
        assert [(match.key, match.end) for match in found] == [({"team": "a"}, 7), ({"team": "b"}, 9)]
    else:
        assert [(match.key, match.end) for match in found] == [({}, 7)]


WORK = {
    "plain": "a.k = b.k AND b.k = c.k",
    "negated": "NOT a.k != b.k AND NOT a.k != c.k",
    "in": "b.k IN (a.k) AND c.k IN (b.k)",
}


@pytest.mark.parametrize("strategy", ["skip_till_any_match", "skip_till_next_match"])
@pytest.mark.parametrize("output", ["matches", "points", "bundles", "count"])
def test_an_equality_that_ties_all_takes_the_work_of_a_partition(strategy: str, output: str) -> None:
    rng = Random(5)
    rows = {"ts": list(range(2_000)), "type": rng.choices("ABC", k=2_000), "k": rng.choices(range(50), k=2_000)}
    text = "PATTERN SEQ(A a, B b, C c) WHERE {} {{ {} }} WITHIN 300"
    parted = acep.match(rows, text.format(strategy, "[k]"), output=output)
    for condition in WORK.values():
        tied = acep.match(rows, text.format(strategy, condition), output=output)
        assert tied.report.work == parted.report.work
        assert tied.report.made == parted.report.made


INNER = (
    "PATTERN SEQ(A a, B? b) WHERE a.k = b.k WITHIN 5 RETURN a.x AS m",  # with a null, of one event
    "PATTERN A{1,2} a[] WHERE a[i].k = a[1].k WITHIN 4 RETURN sum(a[].x) AS m",
    "PATTERN SEQ(A a, B b) WHERE NOT a.k != b.k WITHIN 5 RETURN a.x AS m OUTPUT EARLIEST MAXIMAL",
    "PATTERN SEQ(A a, B b, ~A n) WHERE a.k = b.k AND n.k = b.k WITHIN 5 RETURN b.x AS m",
    "PATTERN SEQ(A a, B b) WHERE a.k = b.k WITHIN 5 RETURN a.x AS m OUTPUT NON OVERLAP",
)
OUTER = (
    "PATTERN SEQ(T t, T u) WITHIN 8",
    "PATTERN SEQ(T t, T u) WHERE t.m = u.m WITHIN 8",
    "PATTERN SEQ(T t, ~T n, T u) WHERE skip_till_next_match { t.m <= u.m } WITHIN 9",
)


def test_a_query_over_matches_of_equal_events(cases: CaseCounts) -> None:
    seen: Counter[str] = Counter()
    for seed in range(cases(300)):
        rng = Random(seed)
        size = rng.randint(8, 16)
        rows = {
            "ts": sorted(rng.choices(range(20), k=size)),
            "type": [*"AB", *rng.choices("AB", k=size - 2)],
            "k": rng.choices([1, 2, None], k=size),
            "x": [float(rng.randint(0, 3)) for _ in range(size)],
            "id": [f"e{n}" for n in range(size)],
        }
        inner, outer = rng.choice(INNER), rng.choice(OUTER)
        query, table = f"FROM ({inner}) AS T {outer}", pa.table(rows)
        wanted = told(acep.match(table, query, engine="reference", id="id"))
        assert told(acep.match(table, query, id="id")) == wanted, (rows, query)
        matcher = acep.Matcher(query, id="id")
        given = [one for at in range(0, size, 3) for one in told(matcher.push(table.slice(at, 3)))]
        given += told(matcher.finish())
        assert sorted(map(repr, given)) == sorted(map(repr, wanted)), (rows, query)
        seen[inner] += bool(wanted)
    cases.expect(seen, *INNER)


VALUES: dict[str, pa.Array] = {
    "float": pa.array([0.0, -0.0, 1.5, math.nan, None, 2.0**53]),
    "integer": pa.array([0, -1, 2**63 - 1, -(2**63), None, 0]),
    "truth": pa.array([True, False, None, True, False, None]),
    "text": pa.array(["", "a", "A", "\u00e9", None, "a "]),
    "category": pa.array(["x", "y", None, "x", "z", "y"]).dictionary_encode(),
    "instant": pa.array([0, 1, 10**15, None, 0, 1], pa.timestamp("us", "UTC")),
    "decimal": pa.array([Decimal("1.10"), Decimal("1.1"), Decimal("-2.00"), None, Decimal(0), Decimal("0.00")]),
    "byte": pa.array([0, 255, None, 0, 7, 255], pa.uint8()),
    "struct": pa.array([{"id": 1}, {"id": 2}, {"id": None}, None, {"id": 1}, {"id": 3}]),
}


@pytest.mark.parametrize("kind", [*VALUES, "ts", "type"])
def test_an_equality_of_each_type_of_values(kind: str) -> None:
    """Zeros are equal whatever their sign, decimals whatever their scale; NaN and null are equal to nothing."""
    rng = Random(4)
    rows = 48
    values = {name: column.take(pa.array(rng.choices(range(6), k=rows))) for name, column in VALUES.items()}
    table = pa.table({"ts": [n // 2 for n in range(rows)], "type": rng.choices("AB", k=rows)} | values)
    name = f"{kind}.id" if kind == "struct" else kind
    for pattern, condition in (
        ("SEQ(ANY a, ANY b)", f"a.{name} = b.{name}"),
        ("SEQ(A+ a[], B b)", f"NOT a.{name} != b.{name}"),
        ("SEQ(A a, ~B n, A c)", f"a.{name} = n.{name} AND c.{name} IN (n.{name}) AND a.{name} = c.{name}"),
    ):
        for errors in (0, 1):
            query = acep.parse(f"PATTERN {pattern} WHERE {condition} WITHIN 6", errors=errors)
            matches = acep.match(table, query, engine="reference")
            assert told(acep.match(table, query)) == told(matches)
            assert int(acep.match(table, query, output="count")) == len(matches)
            assert matches or (kind == "type" and "B" in pattern)
            assert {one.point for one in acep.match(table, query, output="points")} == {one.end for one in matches}


def test_a_repetition_of_equal_events_is_counted_and_not_enumerated() -> None:
    """There are 2^60 matches and more, of the events of either user."""
    rows = {"ts": list(range(120)), "type": ["fail"] * 120, "user": ["u", "v"] * 60}
    for condition in ("f[i].user = f[1].user", "NOT f[i].user != f[i-1].user", "prev(f.user) = f.user"):
        query = f"PATTERN fail+ f[] WHERE {condition} WITHIN 500"
        assert int(acep.match(rows, query, output="count")) == 2 * (2**60 - 1)
        assert acep.match(rows, query, output="compressed").count() == 2 * (2**60 - 1)


def test_without_a_user_an_event_matches_alone() -> None:
    rows = {"ts": [1, 2, 3, 4], "type": ["fail"] * 4, "user": ["u", None, "u", None]}
    query = "PATTERN fail+ f[] WHERE f[i].user = f[i-1].user WITHIN 500"
    found = acep.match(rows, query)
    assert [one.bindings["f"] for one in found] == [(0,), (1,), (0, 2), (2,), (3,)]
    assert {one.bundle for one in found} == {1}
    for output in ("count", "points", "bundles"):
        assert len(rows_of(acep.match(rows, query, output=output))) == {"count": 1, "points": 4, "bundles": 1}[output]
    assert int(acep.match(rows, query, output="count")) == 5
    assert [one.matches for one in acep.match(rows, query, output="bundles")] == [5]


@pytest.mark.parametrize(
    "pattern",
    [
        "PATTERN SEQ(A? a, D d) WHERE d.k = a.k",  # counted without matches
        "PATTERN SEQ(A? a, D d) WHERE d.k = a.k AND d.x > a.x",  # only the partial matches that may be needed
        "PATTERN SEQ(A? a, ~B n, D d) WHERE d.k = a.k AND n.k = d.k",  # each match counted when it is made
    ],
)
def test_a_match_of_an_event_with_a_null_is_counted_with_the_others(pattern: str) -> None:
    rows = {"ts": [0, 1, 2], "type": ["A", "D", "D"], "k": [1, 1, None], "x": [1, 2, 3]}
    query = acep.parse(pattern)
    matches = acep.match(rows, query, engine="reference")
    assert [match.end for match in matches] == [1, 1, 2]
    assert int(acep.match(rows, query, output="count")) == 3
    for counts in (True, False):
        bundles = acep.match(rows, query, output="bundles", counts=counts)
        assert rows_of(bundles) == rows_of(matches.bundles(counts=counts))
        assert rows_of(acep.match(rows, query, output="points", counts=counts)) == rows_of(matches.points())


def test_an_older_state_in_which_an_equality_was_a_partition_is_refused() -> None:
    query = acep.parse("PATTERN SEQ(A a, B b) WHERE a.k = b.k WITHIN 9")
    assert "no keys: k" in state_text(query)
    assert "no keys" not in state_text(acep.parse("PATTERN SEQ(A a, B b) WHERE [k] WITHIN 9"))
    contiguous = "PATTERN SEQ(A a, B b) WHERE strict_contiguity"
    assert "errors pay for missing events" in state_text(acep.parse(contiguous, errors=1))
    assert "errors" not in state_text(acep.parse(contiguous))
