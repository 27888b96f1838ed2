"""Which engine is chosen, what is said of it, and that the choice never changes what is found."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

import acep
from acep.events.tables import to_table
from acep.explain.stages import explain
from acep.native import compiled
from acep.plan import choice
from acep.plan.assume import assumed_plan
from acep.plan.choice import COUNTED, WINDOWS, choose
from acep.plan.compile import Plan
from acep.plan.lower.tables import TableLowering
from acep.plan.prefilter import LARGE_SET, PrefilterGain, necessary, prefilter_gain, reason_against
from tests.case_counts import CaseCounts
from tests.complaints import difference, fail_if_wrong
from tests.random_cases import Case, random_case

SET = "PATTERN {A a, B b, C c, D d, E e}"
OUTPUTS = ("matches", *COUNTED, "compressed")
PRUNED = ("nodes", "nodes", "dominance", "nodes", "nodes")
"""What runs for each of them where runs keep registers, and nothing looks at a whole run."""
WINDOWED = tuple(WINDOWS + name for name in PRUNED)
SEARCHED = ("windows+nodes", "windows+nodes", "search", "windows+nodes", "windows+nodes")
"""The engines where matches have few forms, and a run may pass over any event."""


EVENTS = {"ts": [1, 2, 3], "type": ["A", "B", "B"], "x": [1, 2, 0], "s": ["u", "v", "u"]}


@pytest.fixture
def lowered_plans(monkeypatch: pytest.MonkeyPatch) -> list[Plan]:
    """The plans that are lowered from now on."""
    plans, begin = list[Plan](), TableLowering.__init__

    def count(lowering: TableLowering, plan: Plan, *arguments: Any) -> None:
        plans.append(plan)
        begin(lowering, plan, *arguments)

    monkeypatch.setattr(TableLowering, "__init__", count)
    return plans


@pytest.mark.parametrize(
    ("text", "engines"),
    [
        ("PATTERN SEQ(A a, B b) WHERE a.x > 5 WITHIN 9", ("merged", *COUNTED, "compressed")),
        ("PATTERN SEQ(A a, B b) WHERE a.x < b.x", PRUNED),
        ("PATTERN SEQ(A a, B b) WHERE a.x < b.x WITHIN 9", SEARCHED),
        ("PATTERN SEQ(A a, B b) WHERE skip_till_next_match(a, b) { a.x < b.x } WITHIN 9", WINDOWED),
        ("PATTERN SEQ(A+ a[], A b) WHERE a[i].x > a[i-1].x WITHIN 9 EVENTS", PRUNED),
        ("PATTERN SEQ(A a, ~C c, B b) WITHIN 9", ("nodes",) * 5),
        ("PATTERN SEQ(A a, B b) WITHIN 9 HAVING count(a[]) > 0", ("windows+nodes",) * 5),
        ("PATTERN SEQ(A a, B b) WITHIN 9 OUTPUT NON OVERLAP", ("nodes",) * 5),
        ("PATTERN SEQ(A a, B b) WHERE partition_contiguity { [k] } WITHIN 9", ("merged", *COUNTED, "compressed")),
        (f"{SET} WITHIN 9", tuple(WINDOWS + name for name in ("merged", *COUNTED, "compressed"))),
        (f"{SET} WHERE a.x < b.x WITHIN 9", WINDOWED),
        (SET, ("merged", *COUNTED, "compressed")),
        ("PATTERN {A a, B b, C c, D d} WITHIN 9", ("merged", *COUNTED, "compressed")),
        ("FROM (PATTERN SEQ(A a, B b) WITHIN 5) AS T PATTERN SEQ(T x, T y) WITHIN 50", ("reference",) * 5),
    ],
)
def test_the_choice(text: str, engines: tuple[str, ...]) -> None:
    plan = assumed_plan(acep.parse(text))
    assert tuple(choose(plan, output).engine for output in OUTPUTS) == engines
    assert all(choose(plan, output).why for output in OUTPUTS)


def test_windows_before_what_merges_need_a_large_set() -> None:
    for size in range(2, LARGE_SET + 2):
        items = ", ".join(f"T{i} v{i}" for i in range(size))
        for pattern, large in ((f"{{{items}}}", size >= LARGE_SET), (f"SEQ({items})", False)):
            plan = assumed_plan(acep.parse(f"PATTERN {pattern} WITHIN 9"))
            assert {prefilter_gain(plan, engine).is_useful for engine in ("merged", *COUNTED, "compressed")} == {large}
            assert prefilter_gain(plan).is_useful


# What explain says -------------------------------------------------------------------------------


def engine_lines(text: str, **arguments: Any) -> list[str]:
    """What explain says from the engine on."""
    said = [line.strip() for line in explain(acep.parse(text), **arguments).splitlines()]
    start = next(i for i, line in enumerate(said) if line.startswith("engine:"))
    return said[start : said.index("", start)]


def test_explain_tells_engine_events_and_windows() -> None:
    assert engine_lines(f"{SET} WHERE a.x > 5 WITHIN 9") == [
        "engine: merged, behind match windows: " + choose(assumed_plan(acep.parse(f"{SET} WITHIN 9"))).why,
        f"count, points, bundles, bundles without counts, exists: {choose(assumed_plan(acep.parse(SET)), 'count').why}",
        "compressed: no predicate ties its events together, so that matches share their pasts",
        "under a budget: the same; where it does not suffice, stretches of single partitions are skipped",
        "events that come to it: a (A AND a.x > 5); b (B); c (C); d (D); e (E)",
        "match windows: used: a set of 5 variables has 2^5 places at which runs may stand; by counters,",
        "a window can hold a match only with 5 events or more, and",
        "1. a, b, c, d, e, in any order",
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("PATTERN SEQ(A a, B b) WHERE a.x < b.x WITHIN 9", "count, bundles, compressed: made from the matches"),
        ("PATTERN SEQ(A a, B b) WHERE a.x < b.x WITHIN 9", "points, bundles without counts, exists: predicates tie"),
        ("PATTERN SEQ(A a, B b) WHERE a.x < b.x", "state 1: no greater a[last].x"),
        ("PATTERN SEQ(A a, B b, C c) WHERE a.x = c.x AND b.y < c.y WITHIN 9", "from c back: a by equal x, then each b"),
        ("PATTERN SEQ(A a, B b) WHERE abs(b.x - a.x) < 2 WITHIN 9", "from b back: a by near x"),
        (
            "PATTERN SEQ(A a, ~C c, B b) WHERE a.x < b.x WITHIN 9",
            "count, points, bundles, bundles without counts, exists",
        ),
        ("PATTERN SEQ(A a, B b) WHERE a.x < b.x", "match windows: not used: there is no window"),
        ("PATTERN SEQ(A a, ~C c, B b) WHERE c.x > 1 AND c.x > a.x WITHIN 9", "c (C AND c.x > 1)"),
        ("PATTERN SEQ(A+ a[], B b) WHERE a[1].x > 5 WITHIN 9", "events that come to it: a (A); b (B)"),
        ("PATTERN SEQ(ANY a, B b) WHERE a.x > 5 WITHIN 9", "events that come to it: a (ANY AND a.x > 5); b (B)"),
        ("PATTERN SEQ(A a, ~B b) WITHIN 5 EVENTS", "events that come to it: all"),
    ],
)
def test_explain_tells_why(text: str, said: str) -> None:
    assert any(said in line for line in engine_lines(text))


def test_explain_tells_each_source() -> None:
    said = explain(acep.parse("FROM (PATTERN SEQ(A a, B b) WITHIN 5) AS T PATTERN SEQ(T x, T y) WITHIN 50"))
    engines = [line.strip() for line in said.splitlines() if "engine:" in line]
    assert [line.split(":")[1].split(",")[0] for line in engines] == [" merged", " reference"]
    late = explain(acep.parse("FROM (PATTERN SEQ(A a, ~B b) WITHIN 5) AS T PATTERN SEQ(T x, T y) WITHIN 50"))
    assert late.count("engine: reference") == 2


def test_explain_where_there_is_no_core() -> None:
    assert engine_lines(f"{SET} WITHIN 9", missing="it is gone") == [
        "engine: reference, which runs every query: it is gone"
    ]


# What is found -----------------------------------------------------------------------------------


def wherever_possible(plan: Any, engine: str = "nodes") -> PrefilterGain:  # noqa: ARG001 - as `worth`
    """Match windows before every engine that can stand behind them."""
    return PrefilterGain(reason_against(plan) is None and necessary(plan) is not None, "a test wants it")


def answer(table: pa.Table, query: acep.Query, output: str, stream: dict[str, Any]) -> Any:
    """What is found, as something that can be compared."""
    found = acep.match(table, query, output=output, engine="native", **stream)
    if output == "matches":
        return [(m.key, m.start, m.end, m.error, m.bindings, m.bundle) for m in found]
    return sorted(str(m) for m in found) if output == "compressed" else found


@pytest.mark.long
@pytest.mark.skipif(compiled.why_not() is not None, reason="there is no native core")
def test_match_windows_never_change_what_is_found(cases: CaseCounts, monkeypatch: pytest.MonkeyPatch) -> None:
    seen, tries = Counter[str](), cases(400)

    def answers(case: Case) -> dict[str, Any]:
        return {output: answer(case.table(), case.query(), output, case.stream) for output in OUTPUTS}

    def complaint_of(case: Case) -> str:
        try:
            wanted = answers(case)
        except acep.EngineError:  # not for the native core
            return ""
        with monkeypatch.context() as patch:
            patch.setattr(choice, "prefilter_gain", wherever_possible)
            matcher = acep.Matcher(case.query(), engine="native", **case.stream)
            matcher.push(to_table(case.table()).slice(0, 1))
            assert matcher._tables.stream is not None
            seen["windows"] += any(name.startswith(WINDOWS) for name in matcher._tables.stream._natives.engines)
            return difference(answers(case), wanted, ("behind windows", "without them"))

    for seed in range(tries):
        fail_if_wrong(random_case(seed), complaint_of)
    cases.expect(seen, "windows", least=tries // 20 + 1)


@pytest.mark.skipif(compiled.why_not() is not None, reason="there is no native core")
@pytest.mark.parametrize("output", ["matches", "count", "points", "bundles", "exists", "batches"])
@pytest.mark.parametrize(
    "text",
    [
        "PATTERN SEQ(A a, B b) WITHIN 9",
        "PATTERN SEQ(A a, B b) WHERE a.s = 'u' AND a.x < b.x WITHIN 9",
        "PATTERN SEQ(A a, B b) WHERE a.s = b.s WITHIN 9",
        "PATTERN SEQ(A a, B b) WHERE a.s IN ('v', 'u') WITHIN 9 OUTPUT NON OVERLAP",
    ],
)
def test_a_plan_is_lowered_once(text: str, output: Any, lowered_plans: list[Plan]) -> None:
    result = acep.match(EVENTS, text, output=output)
    assert output != "batches" or list(result)
    assert len(lowered_plans) == 1


@pytest.mark.skipif(compiled.why_not() is not None, reason="there is no native core")
def test_plans_of_one_stream_are_lowered_once_each(lowered_plans: list[Plan]) -> None:
    texts = {
        "equal": "PATTERN SEQ(A a, B b) WHERE a.s = 'u' AND b.s IN ('w', 'v', 'u') WITHIN 9",
        "rising": "PATTERN SEQ(A a, B b) WHERE a.s IN ('z', 'u') AND a.x < b.x WITHIN 9",
        "other": "PATTERN SEQ(A a, B b) WHERE b.s != 'v' WITHIN 9",
    }
    alone = {name: list(acep.match(EVENTS, text, engine="reference")) for name, text in texts.items()}
    assert not lowered_plans
    assert {name: list(matches) for name, matches in acep.match(EVENTS, texts, engine="native").items()} == alone
    assert len(lowered_plans) == len({id(plan) for plan in lowered_plans}) == 3
    assert all(alone.values())


@pytest.mark.skipif(compiled.why_not() is not None, reason="there is no native core")
@pytest.mark.parametrize("more", ["", " AND a.x < b.x"])
def test_a_snapshot_behind_match_windows(more: str) -> None:
    types = [("ABCDE" * 3 + "XYZ")[i * 7 % 18] for i in range(400)]
    rows = pa.table(
        {"ts": range(400), "type": types, "k": [i % 2 for i in range(400)], "x": [i % 5 for i in range(400)]}
    )
    query = acep.parse(f"{SET} WHERE [k]{more} WITHIN 14")
    whole = list(acep.match(rows, query, engine="reference"))
    assert whole
    matcher, found = acep.Matcher(query), []
    for at in range(0, 400, 37):
        found += list(matcher.push(rows.slice(at, 37)))
        assert matcher._tables.stream is not None
        (engine,) = matcher._tables.stream._natives.engines
        assert engine.startswith(WINDOWS)
        data = matcher.snapshot()
        matcher = acep.Matcher(query)
        matcher.restore(data)
    found += list(matcher.finish())
    told = [sorted((m.end, sorted(m.bindings.items()), m.error) for m in one) for one in (whole, found)]
    assert told[0] == told[1]
