"""Counts, match points and bundles with the report of their run: what is incomplete says so, and keeps saying so."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from random import Random
from typing import Any

import pytest

import acep
from acep import Budget, Bundle, Bundles, Count, DataError, Matches, Point, Points, QueryError, Report
from acep.events.tables import to_table
from acep.matching.one_table import whole_result
from acep.runtime.options import StreamOptions
from acep.tables.table_stream import TableStream
from tests.thinned import thinned

pytest.importorskip("acep.native._native")

PART = Report(shed=5, matches=1904, recall=None, interval=(0.18, 0.25))
UNSURE = Report(shed=5, recall=None, interval=(0.0, 1.0), unknown="too little was watched")
POINTS = [Point({}, 5, 0), Point({}, 7, 1)]
BUNDLES = [Bundle({}, 5, 7, 2, 0)]


def test_an_exact_count_is_as_good_as_an_integer() -> None:
    count = Count(7, Report(matches=7))
    assert (count.exact, repr(count), str(count), f"{count:>4,}", f"{count}") == (True, "7", "7", "   7", "7")
    assert count == 7 == count
    assert count != 8
    assert count != "7"
    assert {count: 1}[7] == 1  # type: ignore[index]
    assert 6 < count <= 7 <= count < 7.5
    assert sorted([9, count, 3.5]) == [3.5, 7, 9]
    assert (bool(count), bool(Count(0)), list(range(count)), float(count)) == (True, False, [*range(7)], 7.0)
    assert (count - 1, 10 - count, count * 2, count / 2, 14 / count, count // 2, count % 4, 2**count, -count) == (
        *(6, 3, 14, 3.5, 2.0, 3, 3, 128, -7),
    )
    assert (count / Count(14), count + 0.5, Fraction(1, 7) * count) == (0.5, 7.5, 1)
    assert json.dumps(int(count)) == "7"
    with pytest.raises(AttributeError):
        count.number = 8  # type: ignore[misc]
    with pytest.raises(TypeError):
        count < "7"  # noqa: B015
    with pytest.raises(TypeError):
        count + "7"


def test_an_incomplete_count_says_so_and_so_does_each_sum() -> None:
    count = Count(1904, PART)
    assert not count.exact
    assert count == 1904 == int(count)
    assert repr(count) == "Count(at least 1904; between 18 % and 25 % of the match points were found)"
    assert (str(count), f"{count:,}") == ("at least 1904", "at least 1,904")
    assert repr(Count(3, UNSURE)) == "Count(at least 3; matches may be missing: too little was watched)"
    for total in (count + 6, 6 + count, count + Count(6), Count(6) + count, sum([count, Count(6)]), sum([6, count])):
        assert isinstance(total, Count)
        assert (total, total.exact) == (1910, False)
        assert repr(total).startswith("Count(at least 1910; ")
    assert sum([Count(1, Report(matches=1)), Count(2, Report(matches=2))]).report == Report(matches=3)
    both = (count + count).report
    assert (both.matches, both.shed, both.recall, both.interval) == (2 * 1904, 10, None, (0.0, 1.0))
    assert "several runs" in both.unknown
    for name in ("sub", "mul", "truediv", "floordiv", "mod", "pow"):
        for one, other in ((count, 2), (Count(2), count), (count, count)):
            with pytest.raises(DataError, match="at least 1904"):
                getattr(one, f"__{name}__")(other)
        with pytest.raises(DataError, match="not exact"):
            getattr(count, f"__r{name}__")(2)
    with pytest.raises(DataError, match="not exact"):
        count + 0.5
    with pytest.raises(TypeError):
        json.dumps(count)  # rather than a number without its report


def test_of_bundles_the_points_are_told_where_nothing_else_is_known() -> None:
    some = replace(PART, bundle_recall=None, bundle_interval=(0.0, 1.0))
    told = "1 match bundle; not exact: between {} of the {} were found\n"
    assert repr(Bundles(BUNDLES, some)).startswith(told.format("18 % and 25 %", "match points"))
    known = replace(some, bundle_interval=(0.25, 0.5))
    assert repr(Bundles(BUNDLES, known)).startswith(told.format("25 % and 50 %", "match bundles"))


def test_a_count_that_may_be_too_large_is_not_told_as_a_least_one() -> None:
    chosen = Count(5, Report(shed=1, chosen=True, recall=None, interval=(0.0, 1.0), unknown="they are chosen"))
    assert repr(chosen) == "Count(5 (not exact); matches may be missing: they are chosen)"
    assert repr(Count(5, Report(late=2))) == "Count(5 (not exact); 2 events came too late)"
    assert Count(5, Report(chosen=True)).exact


@pytest.mark.parametrize(("of", "given"), [(Points, POINTS), (Bundles, BUNDLES)])
def test_points_and_bundles_are_lists_with_a_report(of: Any, given: Sequence[Any]) -> None:
    exact, part = of(given), of(given, PART)
    lines = ["  match point 5  best=0", "  match point 7  best=1"]
    if of is Bundles:
        lines = ["  match points 5..7  2 matches  best=0"]
    assert exact == given == exact == part == given
    assert exact != given[:0]
    assert exact != tuple(given)
    assert repr(exact).splitlines() == [f"{len(given)} {of.of if len(given) > 1 else of.of[:-1]}", *lines]
    assert list(part) == given
    assert (len(part), part[0], part[-1], given[0] in part, part.index(given[0])) == (
        *(len(given), given[0], given[-1], True, 0),
    )
    assert part.count(given[0]) == 1
    assert bool(part)
    assert not of()
    for some in (part[:1], part[::-1], part + given, given + part, part + exact, exact + part):
        assert isinstance(some, of)
        assert not some.exact
        assert f"{of.of[:-1]}{'s' * (len(some) > 1)}; not exact: " in repr(some).splitlines()[0]
    assert part + given == [*given, *given]
    assert (exact + exact).exact
    with pytest.raises(TypeError):
        hash(part)
    with pytest.raises(TypeError):
        part + 5


# Of every engine and output --------------------------------------------------------------------------


def events(n: int = 800) -> dict[str, list[Any]]:
    random = Random(1)
    columns: dict[str, list[Any]] = {"ts": list(range(n)), "type": random.choices("abc", k=n)}
    columns["ts"] = [ts // 2 for ts in columns["ts"]]  # matches of several events end at one time
    return columns | {"x": [random.random() for _ in range(n)], "k": random.choices("uvw", k=n)}


ANY = "WHERE skip_till_any_match(p, q, s)"
QUERIES: dict[str, Any] = {
    "tied": acep.parse(f"PATTERN SEQ(a p, b q, c s) {ANY} {{ q.x > p.x AND s.x > q.x }} WITHIN 9"),
    "free": acep.regex("abc", within=9, by=["k"]),
    "with errors": acep.regex("abc", within=9, errors=1),
    "weighted": acep.parse(
        f"PATTERN SEQ(a p, b q, c s) {ANY} {{ q.x > p.x }} WITHIN 9", errors=1, weights={"p": 0.5, "q": 0.7}
    ),
    "repeated": acep.parse("PATTERN SEQ(a p, b+ q[], c s) WHERE skip_till_any_match(p, q[], s) WITHIN 4"),
    "next": acep.parse("PATTERN SEQ(a p, b q, c s) WHERE skip_till_next_match(p, q, s) { q.x > p.x } WITHIN 9"),
    "strict": acep.parse("PATTERN SEQ(a p, b q, c s) WHERE strict_contiguity(p, q, s) WITHIN 9"),
    "chosen": acep.parse(f"PATTERN SEQ(a p, b q, c s) {ANY} {{ q.x > p.x }} WITHIN 9 OUTPUT NON OVERLAP"),
    "having": acep.parse(f"PATTERN SEQ(a p, b q, c s) {ANY} {{ q.x > p.x }} WITHIN 9 HAVING p.x + s.x > 0.7"),
    "negated": acep.parse("PATTERN SEQ(a p, b q, ~c n) WHERE skip_till_any_match(p, q) { q.x > p.x } WITHIN 9"),
    "positions": acep.parse(f"PATTERN SEQ(a p, b q, c s) {ANY} {{ q.x > p.x }} WITHIN 9 EVENTS"),
    "composed": acep.parse(
        "FROM (PATTERN SEQ(a p, b q) WHERE skip_till_any_match(p, q) { q.x > p.x } WITHIN 4 RETURN p.x AS x) AS T "
        "PATTERN SEQ(T t, T u) WHERE skip_till_any_match(t, u) { u.x > t.x } WITHIN 4"
    ),
}
OUTPUTS = [
    *(("matches", True), ("count", True), ("points", True), ("points", False), ("bundles", True), ("bundles", False)),
]
BUDGETS = [
    *((None, "auto"), (None, "reference"), (Budget(work=1e6), "auto"), (Budget(work=0.7), "auto")),
    *((Budget(work=2), "auto"), (Budget(memory="1 MB"), "auto"), (Budget(work=5, recover=0.5), "auto")),
]


def in_order(given: Any) -> Any:
    """What was given, where points and bundles of one time may come in any order."""
    return sorted(map(str, given)) if isinstance(given, Points | Bundles) else given


def reported(table: Any, query: Any, *, output: str, counts: bool, **how: Any) -> tuple[Any, Report]:
    """What is given of a whole table, and the report of the run."""
    tables = TableStream(query, StreamOptions(**how))
    return whole_result(tables, to_table(table), output, counts=counts), tables.report


@pytest.mark.parametrize("name", thinned([*QUERIES], 4))
def test_the_report_of_every_engine_and_output_agrees_with_what_is_given(name: str) -> None:
    query, table, told = QUERIES[name], events(400), 0
    exact = acep.match(table, query, engine="reference")
    truth = {"matches": exact, "count": exact.count(), "points": exact.points(), "bundles": exact.bundles()}
    for budget, engine in BUDGETS:
        for output, counts in OUTPUTS:
            how: dict[str, Any] = {"budget": budget, "engine": engine, "output": output, "counts": counts}
            try:
                given, whole = reported(table, query, **how)
            except acep.AcepError:
                assert budget is not None, (name, how)
                assert budget.recover or budget.memory, (name, how)
                continue
            assert type(given) is {"matches": Matches, "count": Count, "points": Points, "bundles": Bundles}[output]
            report = given.report
            assert (report, given.exact) == (whole, report.exact), (name, how)
            number = int(given) if output == "count" else len(given)
            if output in ("matches", "count"):
                assert (report.matches, report.points, report.bundles) == (number, None, None), (name, how)
            elif output == "points":
                assert (report.points, report.bundles) == (number, None), (name, how)
                assert report.matches is None or report.matches >= number
            else:
                assert (report.points, report.bundles) == (None, number), (name, how)
                if counts:
                    assert report.matches == sum(bundle.matches for bundle in given), (name, how)
            if given.exact:
                assert len(exact) in (report.matches, len(exact) if report.matches is None else -1)
                if counts:
                    assert in_order(given) == in_order(truth[output]), (name, how)
            else:
                told += 1
                assert "not exact" in str(report)
                assert "not exact" in repr(given) or "at least" in repr(given), (name, how)
                if report.at_least and output == "count":
                    assert number <= len(exact), (name, how)
                if report.at_least and output == "points":
                    assert {str((p.key, p.point)) for p in given} <= {str((p.key, p.point)) for p in truth["points"]}
    assert told >= 4, name


@pytest.mark.parametrize("name", QUERIES)
def test_what_a_stream_gives_agrees_with_its_report(name: str) -> None:
    table, query = events(), QUERIES[name]
    for budget in (None, Budget(work=0.2)):
        matcher, number = acep.Matcher(query, budget=budget), 0
        for start in range(0, len(table["ts"]), 250):
            given = matcher.push({column: values[start : start + 250] for column, values in table.items()})
            number += len(given)
            assert given.report.matches == matcher.report.matches == number
            assert given[:1].exact == given.exact == given.report.exact
        last = matcher.finish()
        assert matcher.report.matches == number + len(last)
        other = acep.Matcher(query, budget=budget)
        other.restore(matcher.snapshot())
        assert other.report.exact == matcher.report.exact == last.exact
        assert last.exact == (budget is None)


def test_several_queries_have_a_report_each() -> None:
    asked = {name: QUERIES[name] for name in ("tied", "free", "with errors")}
    for output, counts in OUTPUTS:
        for budget in (None, Budget(work=0.02)):
            given, whole = reported(events(), asked, output=output, counts=counts, budget=budget)
            numbers = {name: int(one) if output == "count" else len(one) for name, one in given.items()}
            if output in ("matches", "count"):
                assert {name: one.report.matches for name, one in given.items()} == numbers
                assert whole.matches == sum(numbers.values())
            else:
                assert {name: getattr(one.report, output) for name, one in given.items()} == numbers
                assert getattr(whole, output) == sum(numbers.values())
            assert whole.exact == all(one.exact for one in given.values()) == (budget is None)


def test_what_becomes_of_incomplete_matches_is_incomplete() -> None:
    given = acep.match(events(), QUERIES["tied"], budget=Budget(work=1))
    assert not given.exact
    for one in (given[:2], given.count(), given.count(given[0]), given.points(), given.bundles(), given.points()[:1]):
        assert not one.exact
    first, *_ = repr(given).splitlines()
    assert "; not exact: " in first
    assert "not exact" in given._repr_html_()
    assert json.loads(given.to_arrow().schema.metadata[b"acep"])["exact"] is False
    assert given.to_pandas().attrs["acep"] == {"exact": False, "report": given.report.missing()}
    assert len(given.points()) == given.points().report.points
    whole = acep.match(events(), QUERIES["tied"])
    assert "exact" not in repr(whole)
    assert json.loads(whole[:2].to_arrow().schema.metadata[b"acep"]) == {"exact": True, "report": "nothing is missing"}
    assert (whole.exact, whole.count().exact, whole.points().exact, whole.bundles().exact) == (True,) * 4


def test_a_limit_that_is_reached_says_that_there_may_be_more() -> None:
    every = acep.match(events(), QUERIES["tied"])
    some = acep.match(events(), QUERIES["tied"], limit=3)
    assert (len(some), some.exact, some.report.matches) == (3, False, 3)
    assert repr(some.count()) == "Count(at least 3; no more were asked for)"
    whole = acep.match(events(), QUERIES["tied"], limit=len(every) + 1)
    assert (whole, whole.exact, whole.report.matches) == (every, True, len(every))


# Composed queries ------------------------------------------------------------------------------------

INNER = "FROM (PATTERN SEQ(a p, b q) WHERE skip_till_any_match(p, q) { q.x > p.x } WITHIN 4) AS P "


@pytest.mark.parametrize(
    ("outer", "why"),
    [
        ("PATTERN SEQ(P u, P v) WHERE skip_till_next_match(u, v) { v.start > u.end } WITHIN 9", "skip till next match"),
        ("PATTERN SEQ(P u, P v) WHERE strict_contiguity(u, v) { v.start > u.end } WITHIN 9", "strict contiguity"),
        ("PATTERN SEQ(P u, ~P n, P v) WHERE skip_till_any_match(u, v) { v.start > u.end + 1 } WITHIN 9", "a negation"),
        ("PATTERN SEQ(P u, P v) WHERE skip_till_any_match(u, v) { v.start > u.end } WITHIN 9 EVENTS", "of events"),
    ],
)
def test_a_composed_query_that_would_invent_matches_keeps_to_no_budget(outer: str, why: str) -> None:
    query = acep.parse(INNER + outer)
    assert acep.match(events(), query).exact
    with pytest.raises(QueryError, match=why):
        acep.match(events(), query, budget=Budget(work=1))


def test_a_composed_query_under_a_budget_invents_no_match() -> None:
    query = acep.parse(INNER + "PATTERN SEQ(P u, P v) WHERE skip_till_any_match(u, v) { v.start > u.end } WITHIN 9")
    every = Counter((m.start, m.end) for m in acep.match(events(), query))
    for work in (1, 0.5, 0.25):
        given = acep.match(events(), query, budget=Budget(work=work))
        assert not given.exact
        assert Counter((m.start, m.end) for m in given) < every
