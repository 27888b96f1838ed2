"""The ordered engine gives over a stream, in any cuts and over snapshots, what it gives over the whole table."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from random import Random
from typing import Any

import pytest

import acep
from acep.errors import SnapshotError
from acep.events.frames import to_table
from acep.ordered.ordered_stream import OrderedStreamExecutor
from acep.row_patterns import row_values
from acep.runtime.executors import NativeExecutors
from acep.runtime.stream import Stream
from acep.storage.plain_data import from_json, to_plain
from acep.storage.snapshot import seal, unseal
from tests.case_counts import CaseCounts
from tests.runtime.random_ordered import ordered_draws

pytestmark = pytest.mark.usefixtures("shared_plans")
Row = dict[str, Any]


def in_order(events: dict[str, list[Any]], options: dict[str, str]) -> dict[str, list[Any]]:
    """Return events in the order of the stream."""
    keys = [events["ts"], events[options["seq"]] if "seq" in options else [0] * len(events["ts"])]
    order = sorted(range(len(events["ts"])), key=lambda row: (keys[0][row], keys[1][row]))
    return {name: [values[row] for row in order] for name, values in events.items()}


def pushed(
    query: Any, events: dict[str, list[Any]], size: int, *, restores: bool = False, **options: Any
) -> list[list[Row]]:
    """Return the matches that each push of so many events gives, and then those of the end."""
    matcher, table = acep.Matcher(query, **options), to_table(events)
    steps = []
    for begin in range(0, table.num_rows, size):
        steps.append(matcher.push(table.slice(begin, size)))
        if restores:
            state, matcher = matcher.snapshot(), acep.Matcher(query, **options)
            matcher.restore(state)
    steps.append(matcher.finish())
    return [step.to_arrow().to_pylist() for step in steps]


def rows_of(steps: list[list[Row]]) -> list[str]:
    return sorted(str(row) for step in steps for row in step)


@pytest.mark.filterwarnings("ignore::acep.DataWarning")
@pytest.mark.parametrize("kind", ["runs", "intervals"])
def test_a_stream_gives_the_matches_of_its_table(kind: str, cases: CaseCounts) -> None:
    seen: Counter[str] = Counter()
    for _, text, query, drawn, options in ordered_draws(kind, range(cases(120)), 16, few=9):
        events = in_order(drawn, options)
        expected = acep.match(events, query, engine="reference", **options)
        where = (text, events, options)
        assert acep.match(events, query, **options).to_arrow().to_pylist() == expected.to_arrow().to_pylist(), where
        rows = rows_of([expected.to_arrow().to_pylist()])
        before = pushed(query, events, 1, engine="reference", **options)
        for size, restores in ((1, False), (1, True), (3, True), (7, False), (99, True)):
            steps = pushed(query, events, size, restores=restores, **options)
            assert rows_of(steps) == rows, (size, restores, where)
            if size == 1 and not {"id", "seq"} & options.keys():
                for step in range(len(steps)):
                    soon, late = Counter(rows_of(steps[: step + 1])), Counter(rows_of(before[: step + 1]))
                    assert soon >= late, (step, restores, where)
                    seen["sooner"] += soon > late
        seen["matches"] += len(rows) > 0
        seen["several"] += len(rows) > 1
        seen["before the end"] += bool(rows_of(steps[:-1]))
    cases.expect(seen, "matches", "several", "before the end", "sooner", least=12)


@pytest.mark.filterwarnings("ignore::acep.DataWarning")
@pytest.mark.parametrize("kind", ["runs", "intervals"])
def test_late_events_are_put_in_order(kind: str, cases: CaseCounts) -> None:
    seen: Counter[str] = Counter()
    seeds = (f"late {number}" for number in range(cases(60)))
    for rng, text, query, drawn, options in ordered_draws(kind, seeds, 14):
        order = sorted(range(len(drawn["ts"])), key=lambda row: drawn["ts"][row] + rng.choice([0, 0, 1, 2.9]))
        events = {name: [values[row] for row in order] for name, values in drawn.items()}
        expected = acep.match(events, query, engine="reference", **options).to_arrow().to_pylist()
        late: dict[str, Any] = {**options, "lateness": 3}
        for size in (1, 5):
            steps = pushed(query, events, size, restores=True, **late)
            found = [{name: row[name] for name in expected[0]} for step in steps for row in step if expected]
            assert rows_of([found]) == rows_of([expected]), (size, text, events, options)
            assert sum(map(len, steps)) == len(expected)
        seen["matches"] += len(expected) > 0
    cases.expect(seen, "matches", least=8)


GAP = "PATTERN ANY+ e[] WHERE {}(e[]) {{ [user] AND e[i].ts - e[i-1].ts < 30 }} OUTPUT LONGEST NON OVERLAP"
SESSION = GAP.format("skip_till_next_match")
SPRAY = (
    "PATTERN ANY+ f[] WHERE skip_till_next_match(f[]) HAVING count(DISTINCT f[].v) >= 60 AND max(f[].v) > 10"
    " OUTPUT NON OVERLAP"
)
V_SHAPE = """
    PATTERN SEQ(ANY top, ANY+ down[], ANY+ up[])
    WHERE partition_contiguity(top, down[], up[]) {
        down[1].v < top.v AND down[i].v < down[i-1].v AND up[1].v > down[down.LEN].v AND up[i].v > up[i-1].v }
    OUTPUT LONGEST NON OVERLAP"""
UP_AND_DOWN = (
    "PATTERN SEQ(ANY x, ANY+ b[], ANY y) WHERE skip_till_any_match { [user] AND x.v < 9 AND y.v > 40 } WITHIN 500"
    " OUTPUT NON OVERLAP"
)
SLIDING = "PATTERN ANY+ e[] WHERE skip_till_next_match(e[]) WITHIN 50 HAVING max(e[].v) > 99 OUTPUT LONGEST NON OVERLAP"


def long_stream(n: int) -> dict[str, list[Any]]:
    rng = Random(n)
    return {"ts": list(range(n)), "user": rng.choices([1, 2, 3], k=n), "v": rng.choices(range(50), k=n)}


@pytest.mark.parametrize("size", [pytest.param(1, marks=pytest.mark.long), 100])
@pytest.mark.parametrize("query", [SESSION, SPRAY, V_SHAPE, UP_AND_DOWN, SLIDING, GAP.format("partition_contiguity")])
def test_the_work_grows_with_the_events(query: str, size: int) -> None:
    work = []
    sizes = (250, 500) if size == 1 else (1_000, 2_000, 4_000)
    for n in sizes:
        matcher, events = acep.Matcher(query, type=None), long_stream(n)
        for begin in range(0, n, size):
            matcher.push({name: values[begin : begin + size] for name, values in events.items()})
        matcher.finish()
        work.append(matcher.report.work)
    assert all(later <= 2.2 * earlier for earlier, later in pairwise(work))
    assert work[0] < 8 * sizes[0]


@pytest.mark.parametrize("query", [SLIDING, UP_AND_DOWN.replace("y.v > 40", "y.v > 99")])
def test_the_events_that_are_kept_are_those_of_some_windows(query: str) -> None:
    matcher, events, sizes = acep.Matcher(query, type=None), long_stream(6_000), []
    for begin in range(0, 6_000, 50):
        matcher.push({name: values[begin : begin + 50] for name, values in events.items()})
        (executor,) = matcher._tables.stream._executors
        assert isinstance(executor, OrderedStreamExecutor)
        sizes.append(len(executor.chunks))
    assert max(sizes) < 5_000


def bound(matches: Any) -> list[Any]:
    return [match.bindings for match in matches]


def test_a_session_is_given_at_the_push_that_closes_it() -> None:
    matcher = acep.Matcher(SESSION, type=None, lateness=0)
    assert bound(matcher.push({"ts": [1, 2], "user": ["ann", "ann"]})) == []
    assert bound(matcher.push({"ts": [31], "user": ["bob"]})) == []
    assert bound(matcher.push({"ts": [32], "user": ["bob"]})) == [{"e": (0, 1)}]
    assert bound(matcher.push({"ts": [40, 80], "user": ["bob", "ann"]})) == [{"e": (2, 3, 4)}]
    assert bound(matcher.advance(108)) == []
    assert bound(matcher.advance(109)) == [{"e": (5,)}]
    assert bound(matcher.finish()) == []


def test_a_window_closes_a_match() -> None:
    query = "PATTERN SEQ(a x, b+ y[]) WHERE skip_till_next_match WITHIN 10 OUTPUT LONGEST NON OVERLAP"
    matcher = acep.Matcher(query)
    assert bound(matcher.push({"ts": [1, 2, 3], "type": ["a", "b", "b"]})) == []
    assert bound(matcher.push({"ts": [11], "type": ["c"]})) == []
    assert bound(matcher.push({"ts": [12], "type": ["c"]})) == [{"x": (0,), "y": (1, 2)}]


def test_what_ends_first_is_given_at_once_unless_another_match_may_end_at_the_same_time() -> None:
    query = "PATTERN SEQ(a x, (b y | SEQ(c z, d w))) WHERE skip_till_any_match OUTPUT NON OVERLAP"
    matcher = acep.Matcher(query)
    assert bound(matcher.push({"ts": [1, 2], "type": ["a", "b"]})) == [{"x": (0,), "y": (1,)}]
    assert bound(matcher.push({"ts": [3, 4, 4], "type": ["a", "c", "b"]})) == []
    assert bound(matcher.push({"ts": [5], "type": ["c"]})) == [{"x": (2,), "y": (4,)}]


def test_a_state_of_before_goes_on_by_making_all_matches(monkeypatch: pytest.MonkeyPatch) -> None:
    events = long_stream(60)
    expected = bound(acep.match(events, SESSION, type=None))
    with monkeypatch.context() as patch:
        patch.setattr(NativeExecutors, "_ordered_executor", lambda *_: None)
        before = acep.Matcher(SESSION, type=None)
        found = bound(before.push({name: values[:30] for name, values in events.items()}))
        state = before.snapshot()
    matcher = acep.Matcher(SESSION, type=None)
    matcher.restore(state)
    assert not matcher._tables.stream._natives.in_order
    found += bound(matcher.push({name: values[30:] for name, values in events.items()})) + bound(matcher.finish())
    assert sorted(found, key=str) == sorted(expected, key=str)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda state: state.pop("partitions"),
        lambda state: state.update(next_ts="now"),
        lambda state: state["partitions"]["keys"].append([1]),
        lambda state: state["partitions"]["bundles"].append([9, 1, 1]),
        lambda state: state.update(codes=state["positions"]),
        lambda state: state["events"].update(ts=None),
        lambda state: state["events"]["columns"].clear(),
        lambda state: state.update(totals=[1]),
    ],
)
def test_a_damaged_state_is_refused(spoil: Any) -> None:
    matcher = acep.Matcher(SESSION, type=None)
    matcher.push({"ts": [1, 2, 3], "user": [1, 1, 1], "v": [1, 1, 1]})
    stream = matcher._tables.stream
    payload = unseal(stream.snapshot(), stream.fingerprint)
    state = from_json(payload["cores"][0])
    spoil(state)
    payload["cores"][0] = to_plain(state)
    with pytest.raises(SnapshotError, match="does not hold a state of this query"):
        Stream.restore(stream.plans, seal(payload, stream.fingerprint))


def test_partial_matches_are_those_of_the_events_that_are_kept() -> None:
    listed = []
    for engine in ("auto", "reference"):
        matcher = acep.Matcher(V_SHAPE, type=None, engine=engine)
        matcher.push({"ts": [1, 2, 3, 4], "v": [1, 5, 4, 3]})
        listed.append([(partial.start, partial.end) for partial in matcher.partial_matches()])
    assert listed[0] == listed[1] != []


def test_other_streams_make_all_matches() -> None:
    def is_ordered(query: str = SESSION, **options: Any) -> bool:
        matcher = acep.Matcher(query, type=None, **options)
        matcher.push({"ts": [1], "user": [1], "v": [1]})
        tables: Any = matcher._tables
        stream = tables.stream if tables.revised is None else tables.revised._parts[0].stream
        return bool(stream._natives.in_order)

    assert is_ordered()
    assert is_ordered(lateness=5)
    assert not is_ordered(engine="reference")
    assert not is_ordered(lateness=5, speculation="inf")
    assert not is_ordered(dynamic=True)
    assert not is_ordered(SESSION.replace(" OUTPUT LONGEST NON OVERLAP", " WITHIN 9"))


def test_a_limit_ends_the_work() -> None:
    events = long_stream(6_000)
    few = acep.match(events, UP_AND_DOWN, type=None, limit=2)
    assert bound(few) == bound(acep.match(events, UP_AND_DOWN, type=None))[:2]
    assert few.report.work < 2_000


def test_of_one_time_a_lesser_id_that_comes_later_decides() -> None:
    events = {"ts": [1, 1, 1, 2], "type": ["a"] * 4, "id": ["i9", "i14", "i5", "i6"]}
    query = "PATTERN a{2} x[] WHERE partition_contiguity(x[]) WITHIN 0 OUTPUT NON OVERLAP"
    expected = acep.match(events, query, id="id", engine="reference").to_arrow().to_pylist()
    assert [row["bindings"] for row in expected] == [[("x", ["i14", "i5"])]]
    assert pushed(query, events, 1, id="id") == [[], [], [], expected, []]


@pytest.mark.parametrize(
    "query",
    [
        "PATTERN SEQ(e+ a[]) WHERE skip_till_next_match(a[]) { a[i].s != 'u77' } WITHIN 50 OUTPUT LONGEST NON OVERLAP",
        "PATTERN SEQ(e a, e b) WHERE skip_till_next_match(a, b) { b.s > 'u5' } WITHIN 50 OUTPUT SHORTEST NON OVERLAP",
    ],
)
def test_conditions_are_lowered_once_and_texts_of_earlier_events_are_forgotten(
    query: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_values, "MOST_TEXTS", 300)
    lowered = Counter[str]()
    lower_expression = row_values.lower_expression

    def count_and_lower(expr: Any, *rest: Any) -> Any:
        lowered[repr(expr)] += 1
        return lower_expression(expr, *rest)

    monkeypatch.setattr(row_values, "lower_expression", count_and_lower)
    matcher = acep.Matcher(query)
    for begin in range(0, 6_000, 100):
        rows = range(begin, begin + 100)
        matcher.push({"ts": rows, "type": ["e"] * 100, "s": [f"u{row}" for row in rows]})
        (executor,) = matcher._tables.stream._executors
        assert len(executor.open.evaluator.codes) < 600
    assert set(lowered.values()) == {2}  # to follow open matches, and to search
