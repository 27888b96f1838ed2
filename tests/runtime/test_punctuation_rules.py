"""The rules of punctuations of a key or a type, one by one (docs/reference/semantics.md, "Late events")."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import acep
from acep.arrivals.arrivals import Arrivals
from acep.errors import DataError, QueryError
from acep.events.tables import schema_of

ENGINES = ("auto", "reference")
QUERY = "PATTERN SEQ(a p, ~n x, b q) WHERE skip_till_next_match(p, q) { [k] } WITHIN 5"
OTHER = "PATTERN SEQ(c p, d q) WHERE skip_till_next_match(p, q) { [u] } WITHIN 5"
LATER: dict[str, Any] = {"lateness": "inf", "speculation": "inf"}


@pytest.fixture(autouse=True)
def _forget_with_every_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("acep.revision.revised_plan.SELDOM", 1)


def rows(*given: tuple[Any, ...], names: str = "ts type k") -> list[dict[str, Any]]:
    return [dict(zip(names.split(), row, strict=True)) for row in given]


def told(matches: Any) -> list[tuple[Any, ...]]:
    return [(m.op, m.start, m.end) for m in matches]


def begun(query: Any = QUERY, **options: Any) -> acep.Matcher[Any]:
    """A matcher that has seen an event of each type for two keys."""
    matcher = acep.Matcher(query, **{**LATER, **options})
    matcher.push(rows((1, "a", "x"), (2, "b", "x"), (1, "a", "y"), (2, "n", "y"), (3, "b", "y")))
    return matcher


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("speculation", [0, 3, "inf"])
def test_an_event_that_comes_though_its_key_is_final_is_late(engine: str, speculation: Any) -> None:
    matcher = begun(engine=engine, speculation=speculation)
    matcher.advance(4, key={"k": "x"})
    matcher.push(rows((4, "n", "x"), (4, "a", "y"), (5, "a", "x")))
    assert matcher.late.to_pylist() == rows((4, "n", "x"))
    matcher.push(rows((5, "b", "x")))
    assert matcher.late.num_rows == 0
    assert matcher.report.late == 1
    assert not matcher.report.exact


@pytest.mark.parametrize("engine", ENGINES)
def test_a_condition_of_a_key_and_a_type_says_nothing_of_others(engine: str) -> None:
    matcher = begun(engine=engine)
    matcher.advance(9, key={"k": "x"}, type=["a", "n"])
    matcher.push(rows((4, "b", "x"), (4, "a", "y"), (4, "a", "x"), (4, "n", "x")))
    assert matcher.late.to_pylist() == rows((4, "a", "x"), (4, "n", "x"))


@pytest.mark.parametrize("engine", ENGINES)
def test_a_key_frees_the_events_of_its_partition_at_once(engine: str) -> None:
    matcher = begun(engine=engine)
    assert matcher.held == 5
    assert told(matcher.advance(100, key={"k": "x"})) == []
    assert matcher.held == 3
    assert matcher.final is None
    matcher.advance(100, key={"k": "y"})
    assert matcher.held == 0


@pytest.mark.parametrize("engine", ENGINES)
def test_types_free_memory_once_all_that_change_a_match_are_final(engine: str) -> None:
    matcher = begun(engine=engine)
    matcher.advance(100, type=["a", "b", "z"])
    assert matcher.held == 5  # an n may still come
    matcher.advance(100, type="n")
    assert matcher.held == 0


@pytest.mark.parametrize("engine", ENGINES)
def test_the_types_of_a_key_are_counted_for_that_key(engine: str) -> None:
    matcher = begun(engine=engine)
    matcher.advance(100, type=["a", "b"])
    matcher.advance(100, key={"k": "x"}, type="n")
    assert matcher.held == 3


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "query",
    [
        QUERY.replace("skip_till_next_match", "partition_contiguity"),
        QUERY.replace("WITHIN 5", "WITHIN 2 EVENTS"),
        QUERY.replace("~n x", "~ANY x"),
        acep.Automaton(
            [acep.arc("s", "t", "e.type = 'a'"), acep.arc("t", "u", "e.type = 'b'")], final="u", keys="k", window=5
        ),
    ],
)
def test_where_every_event_counts_types_free_nothing_and_keys_do(engine: str, query: Any) -> None:
    matcher = begun(query, engine=engine)
    matcher.advance(100, type=["a", "b", "n"])
    assert matcher.held == 5
    matcher.advance(100, key={"k": "x"})
    assert matcher.held < 5
    matcher.push(rows((4, "n", "x"), (4, "z", "y")))
    assert matcher.report.late == 1


@pytest.mark.parametrize("engine", ENGINES)
def test_under_strict_contiguity_a_key_decides_lateness_only(engine: str) -> None:
    matcher = begun(QUERY.replace("skip_till_next_match", "strict_contiguity"), engine=engine)
    matcher.advance(100, key={"k": "x"})
    matcher.push(rows((4, "n", "x"), (4, "n", "y")))
    assert (matcher.held, matcher.report.late) == (6, 1)


def test_under_a_budget_a_key_decides_lateness_only() -> None:
    matcher = begun(budget=acep.Budget(work=100))
    matcher.advance(100, key={"k": "x"})
    assert matcher.held == 5
    matcher.push(rows((4, "b", "x")))
    assert matcher.late.num_rows == 1


@pytest.mark.parametrize("engine", ENGINES)
def test_without_a_window_nothing_is_freed(engine: str) -> None:
    matcher = begun(QUERY.replace(" WITHIN 5", ""), engine=engine)
    matcher.advance(100, key={"k": "x"})
    assert matcher.held == 5


@pytest.mark.parametrize("engine", ENGINES)
def test_one_of_two_partition_attributes_frees_all_partitions_that_have_it(engine: str) -> None:
    query = QUERY.replace("[k]", "[k] AND [u]")
    matcher = acep.Matcher(query, engine=engine, **LATER)
    names = "ts type k u"
    matcher.push(rows((1, "a", 1, 1), (1, "a", 1, 2), (1, "a", 2, 1), (1, "a", 2, 2), names=names))
    matcher.advance(100, key={"u": 1})
    assert matcher.held == 2
    matcher.advance(100, key={"k": 2, "u": 2})
    assert matcher.held == 1


@pytest.mark.parametrize("engine", ENGINES)
def test_without_speculation_a_key_decides_lateness_only(engine: str) -> None:
    matcher = begun(engine=engine, speculation=0)
    assert told(matcher.advance(100, key={"k": "x"})) == []
    assert (matcher.held, matcher.final) == (5, None)
    matcher.push(rows((2, "n", "x")))
    assert matcher.report.late == 1
    assert told(matcher.finish()) == [(1, 1, 2)]


@pytest.mark.parametrize("engine", ENGINES)
def test_without_speculation_events_are_due_once_all_types_that_count_are_final(engine: str) -> None:
    matcher = begun(engine=engine, speculation=0)
    assert told(matcher.advance(100, type=["a", "b"])) == []
    assert told(matcher.advance(2, type="n")) == [(1, 1, 2)]
    assert (matcher.held, matcher.final) == (1, 2)
    assert told(matcher.push(rows((1, "z", "x"), (2, "n", "x"), (3, "z", "x")))) == []
    assert matcher.late.to_pylist() == rows((2, "n", "x"))
    assert told(matcher.finish()) == []
    assert (matcher.report.events, matcher.report.matches) == (7, 1)


@pytest.mark.parametrize("engine", ENGINES)
def test_an_event_that_no_query_reacts_to_may_be_taken_back_after_its_place_has_passed(engine: str) -> None:
    options: dict[str, Any] = {"lateness": "inf", "id": "id", "op": "op", "engine": engine}
    matcher, names = acep.Matcher("PATTERN SEQ(a p, b q) WITHIN 5", **options), "ts type id op"
    matcher.push(rows((1, "a", 1, 1), (2, "z", 2, 1), (3, "b", 3, 1), names=names))
    assert told(matcher.advance(9, type=["a", "b"])) == [(1, 1, 3)]
    matcher.push(rows((2, "z", 4, 1), (2, "z", 2, -1), (3, "b", 3, -1), names=names))
    assert matcher.late.to_pylist() == rows((3, "b", 3, -1), names=names)
    matcher.push(rows((2, "z", 4, -1), names=names))
    matcher.finish()
    assert (matcher.report.events, matcher.report.matches) == (2, 1)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_retraction_of_a_final_key_is_late(engine: str) -> None:
    names, options = "ts type k id op", {**LATER, "id": "id", "op": "op", "engine": engine}
    matcher = acep.Matcher(QUERY, **options)
    matcher.push(rows((1, "a", "x", 1, 1), (2, "b", "x", 2, 1), (1, "a", "y", 3, 1), names=names))
    matcher.advance(100, key={"k": "x"})
    assert told(matcher.push(rows((2, "b", "x", 2, -1), names=names))) == []
    assert matcher.report.late == 1


@pytest.mark.parametrize("engine", ENGINES)
def test_a_retraction_with_another_key_takes_no_final_event_back(engine: str) -> None:
    names, options = "ts type k id op", {**LATER, "id": "id", "op": "op", "engine": engine}
    matcher = acep.Matcher(QUERY, **options)
    matcher.push(rows((1, "a", "x", 1, 1), (2, "b", "x", 2, 1), names=names))
    matcher.advance(100, key={"k": "x"})
    assert told(matcher.push(rows((2, "b", "y", 2, -1), names=names))) == []
    with pytest.warns(acep.DataWarning, match="1 retractions name events that never came or were final"):
        matcher.advance(100)
    assert matcher.report.matches == 1


@pytest.mark.parametrize("engine", ENGINES)
def test_a_retraction_that_waits_is_given_up_when_its_key_is_final(engine: str) -> None:
    names, options = "ts type k id op", {**LATER, "id": "id", "op": "op", "engine": engine}
    matcher = acep.Matcher(QUERY, **options)
    matcher.push(rows((1, "a", "x", 1, 1), (2, "b", "x", 2, -1), names=names))
    with pytest.warns(acep.DataWarning, match="first id 2"):
        matcher.advance(100, key={"k": "x"})
    assert told(matcher.push(rows((101, "b", "x", 2, 1), names=names))) == []  # the id is free again
    assert matcher.report.events == 2


def test_of_several_queries_those_that_have_the_attribute_forget() -> None:
    matcher = acep.Matcher({"one": QUERY, "two": OTHER}, **LATER)
    names = "ts type k u"
    matcher.push(rows((1, "a", 1, 1), (2, "b", 1, 1), (1, "c", 1, 2), names=names))
    matcher.advance(100, key={"k": 1})
    assert matcher.held == 3  # the most that a query holds, and the second one holds all
    assert told(matcher.push(rows((2, "d", 1, 2), (2, "d", 2, 2), names=names))["two"]) == [(1, 1, 2)]
    assert matcher.report.late == 1
    matcher.advance(100, key={"u": 1})
    matcher.advance(100, key={"u": 2})
    assert matcher.held == 1  # the one of k=2


def test_of_several_queries_without_speculation_the_types_of_all_must_be_final() -> None:
    matcher = acep.Matcher([QUERY, OTHER], lateness="inf")
    matcher.push(rows((1, "a", 1, 1), (2, "b", 1, 1), names="ts type k u"))
    assert [*map(told, matcher.advance(9, type=["a", "b", "n", "c"]))] == [[], []]
    assert [*map(told, matcher.advance(9, type="d"))] == [[(1, 1, 2)], []]


def test_queries_over_matches_of_others_take_punctuations_of_the_events() -> None:
    query = f"FROM ({QUERY}) AS T PATTERN SEQ(T t) WHERE [k] WITHIN 9"
    matcher = acep.Matcher(query, lateness="inf")
    matcher.push(rows((1, "a", "x"), (2, "b", "x"), (7, "b", "x")))
    matcher.advance(3, key={"k": "x"})
    matcher.advance(7, type=["a", "b", "n"])
    matcher.push(rows((3, "n", "x"), (3, "z", "y")))
    assert matcher.report.late == 1
    assert told(matcher.finish()) == []
    assert matcher.report.matches == 1


def refusals() -> list[tuple[dict[str, Any], str]]:
    return [
        ({"key": {"x": 1}}, "`x` is no partition attribute of the queries"),
        ({"key": {"k": "x", "type": "a"}}, "`type` is no partition attribute of the queries"),
        ({"key": {}}, "names no columns"),
        ({"key": "x"}, "names no columns"),
        ({"key": {"k": None}}, "column `k` is null in no partition"),
        ({"key": {"k": 5}}, "5 is no value of column `k`, which is string"),
        ({"type": []}, "names no event types"),
        ({"type": 5}, "names no event types"),
        ({"type": ["a", None]}, "names no event types"),
        ({"type": "a", "ts": "noon"}, "'noon' is no time"),
    ]


@pytest.mark.parametrize(("given", "message"), refusals())
def test_a_punctuation_that_says_nothing_is_refused_in_one_line(given: dict[str, Any], message: str) -> None:
    matcher = begun()
    with pytest.raises((QueryError, DataError), match=message) as error:
        matcher.advance(**{"ts": 9, **given})
    assert "\n" not in error.value.args[0]
    assert matcher.held == 5


def test_a_punctuation_with_a_condition_needs_columns_that_are_known() -> None:
    matcher = acep.Matcher(QUERY, **LATER)
    with pytest.raises(QueryError, match="not known before the first events"):
        matcher.advance(9, type="a")
    with pytest.raises(QueryError, match="may come late"):
        acep.Matcher(QUERY).advance(9, type="a")
    untyped = acep.Matcher(acep.Automaton([acep.arc("s", "t", "e.k > 1")], final="t"), type=None, **LATER)
    untyped.push({"ts": [1], "k": [1]})
    with pytest.raises(QueryError, match="no type column"):
        untyped.advance(9, type="a")
    with pytest.raises(QueryError, match="`k` is no partition attribute"):
        untyped.advance(9, key={"k": 1})


def test_a_punctuation_after_the_end_says_nothing() -> None:
    matcher = begun()
    matcher.finish()
    assert told(matcher.advance(9, key={"k": "x"})) == []


def test_with_numbers_of_all_events_a_condition_is_refused() -> None:
    matcher = acep.Matcher(QUERY, seq="n", seq_gaps=True)
    matcher.push({"ts": [1], "type": ["a"], "k": ["x"], "n": [0]})
    with pytest.raises(QueryError, match="final by their numbers"):
        matcher.advance(9, key={"k": "x"})


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("speculation", [0, "inf"])
def test_a_snapshot_holds_punctuations(engine: str, speculation: Any) -> None:
    matcher = begun(engine=engine, speculation=speculation)
    matcher.advance(3, key={"k": "x"}, type=["n", "a"])
    matcher.advance(3, type=["a", "b", "n"])
    matcher.push(rows((1, "z", "x")))
    state, matcher = matcher.snapshot(), acep.Matcher(QUERY, **{**LATER, "speculation": speculation, "engine": engine})
    matcher.restore(state)
    matcher.push(rows((2, "n", "x"), (2, "b", "y"), (4, "n", "x"), (2, "z", "y")))
    assert matcher.late.to_pylist() == rows((2, "n", "x"), (2, "b", "y"))
    matcher.finish()
    assert matcher.report.events == 8


def test_a_state_from_before_there_were_conditions_is_read() -> None:
    arrow = pa.schema({"ts": pa.int64(), "type": pa.string(), "k": pa.string(), "id": pa.int64(), "op": pa.int64()})
    schema = schema_of(arrow, id="id")
    first, second = (Arrivals(arrow, schema, "inf", "op", "inf") for _ in range(2))
    for one in (first, second):
        one.conditions(("k",), None)
    names = "ts type k id op"
    first.push(pa.Table.from_pylist(rows((1, "a", "x", 1, 1), names=names), arrow))
    state = first.dump()
    del state["at"]
    assert not {"said", "unseen"} & {*state}
    second.load(state)
    with pytest.raises(DataError, match="does not say of which key and type"):
        second.promise(5, {"k": "x"}, None)
    second.advance(1)
    second.promise(5, {"k": "x"}, None)
    second.push(pa.Table.from_pylist(rows((3, "a", "x", 1, 1), names=names), arrow))
    assert second.late is not None
    assert second.late.num_rows == 1


@pytest.mark.long
def test_punctuations_that_the_time_has_passed_are_dropped() -> None:
    matcher = acep.Matcher(QUERY, lateness=10, speculation="inf")
    many = 0
    for ts in range(1000):
        matcher.push(rows((ts, "a", f"k{ts}")))
        matcher.advance(ts, key={"k": f"k{ts}"})
        many = max(many, len(matcher._tables.arrivals.punctuations))
    assert 11 <= many <= 2 * 11 + 17


@pytest.mark.parametrize("engine", ENGINES)
def test_keys_have_the_form_of_their_column(engine: str) -> None:
    columns = {
        "int": [1, 2], "float": [1.5, 2.0], "text": ["x", "y"], "bool": [True, False],
        "time": [datetime(2020, 1, 1), datetime(2020, 1, 2)], "decimal": [Decimal("1.50"), Decimal("2.00")],
    }  # fmt: skip
    for name, (one, _) in columns.items():
        query = f"PATTERN SEQ(a p, b q) WHERE [{name}] WITHIN 5"
        matcher = acep.Matcher(query, engine=engine, **LATER)
        matcher.push({"ts": [1, 1], "type": ["a", "a"], **columns})
        matcher.advance(9, key={name: one})
        state, matcher = matcher.snapshot(), acep.Matcher(query, engine=engine, **LATER)
        matcher.restore(state)
        assert matcher.held == 1, name
        found = matcher.push({"ts": [2, 2], "type": ["b", "b"], **columns})
        assert told(found) == [(1, 1, 2)], name
        assert matcher.report.late == 1


@pytest.mark.parametrize("engine", ENGINES)
def test_a_key_may_be_a_field_of_a_struct(engine: str) -> None:
    matcher = acep.Matcher("PATTERN SEQ(a p, b q) WHERE [dev.id] WITHIN 5", engine=engine, lateness="inf")
    events = pa.table({"ts": [1, 1], "type": ["a", "a"], "dev": [{"id": 1}, {"id": 2}]})
    matcher.push(events)
    matcher.advance(9, key={"dev.id": 2})
    matcher.push(events)
    assert matcher.late.to_pylist() == events.slice(1).to_pylist()


@pytest.mark.parametrize("engine", ENGINES)
def test_a_query_that_may_change_is_not_freed_by_types(engine: str) -> None:
    """The next version may bind other types."""
    query = "PATTERN SEQ(a p, b q) WHERE skip_till_any_match(p, q) { [k] } WITHIN 5"
    matcher = acep.Matcher(query, engine=engine, dynamic=True, **LATER)
    matcher.push(rows((1, "a", "x"), (1, "a", "y")))
    matcher.advance(100, type=["a", "b"])
    assert matcher.held == 2
    matcher.advance(100, key={"k": "y"})
    assert matcher.held == 1
    matcher.replace(query.replace("b q", "c q"))
    assert told(matcher.push(rows((3, "c", "x")))) == [(1, 1, 3)]
    with pytest.raises(QueryError, match="of some key or type are final"):
        matcher.revise(query, since=2)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_match_that_waits_keeps_its_events_until_it_is_decided(engine: str) -> None:
    query = "PATTERN SEQ(a p, ~n x) WHERE skip_till_next_match(p) { [k] } WITHIN 5"
    matcher = acep.Matcher(query, engine=engine, **LATER)
    matcher.push(rows((1, "a", "x")))
    matcher.advance(100, key={"k": "x"})
    assert matcher.held == 1
    state, matcher = matcher.snapshot(), acep.Matcher(query, engine=engine, **LATER)
    matcher.restore(state)
    assert told(matcher.push(rows((20, "z", "y")))) == [(1, 1, 1)]
    assert matcher.held == 1


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("window", ["5", "5 EVENTS"])
def test_a_match_that_is_forgotten_is_not_given_again_when_its_partition_is_matched_again(
    engine: str, window: str
) -> None:
    """Its events are kept, as a match that may still change looks at them for its negation; and the change of another
    partition in the same push reaches back further."""
    query = f"PATTERN SEQ(~n x, a p, b q) WHERE skip_till_next_match(p, q) {{ [k] }} WITHIN {window}"
    matcher = acep.Matcher(query, engine=engine, **LATER)
    first = [(ts, "z", "x") for ts in (5, 6, 12, 13, 14, 15)] if window == "5 EVENTS" else []
    found = matcher.push(rows(*first, (10, "a", "x"), (11, "b", "x"), (1, "a", "y"), (30, "z", "y")))
    assert told(found) == [(1, 10, 11)]
    matcher.advance(17, key={"k": "x"})
    assert told(matcher.push(rows((20, "a", "x"), (12, "a", "y")))) == []
    assert matcher.report.matches == 1


@pytest.mark.parametrize("engine", ENGINES)
def test_where_positions_are_counted_the_events_stay_that_a_later_one_may_match(engine: str) -> None:
    query = "PATTERN SEQ(a p, b q) WHERE skip_till_next_match(p, q) { [k] } WITHIN 3 EVENTS"
    matcher = acep.Matcher(query, engine=engine, **LATER)
    matcher.push(rows((1, "z", "x"), (20, "a", "x"), (30, "z", "x"), (100, "z", "y")))
    matcher.advance(30, key={"k": "x"})
    assert matcher.held == 3
    assert told(matcher.push(rows((40, "b", "x")))) == [(1, 20, 40)]


@pytest.mark.parametrize("engine", ENGINES)
def test_where_positions_are_counted_the_events_stay_that_a_negation_looks_at(engine: str) -> None:
    query = "PATTERN SEQ(~n x, a p, b q) WHERE skip_till_next_match(p, q) { [k] } WITHIN 3 EVENTS"
    matcher = acep.Matcher(query, engine=engine, **LATER)
    assert told(matcher.push(rows((1, "n", "x"), (20, "a", "x"), (30, "b", "x"), (100, "z", "y")))) == []
    matcher.advance(30, key={"k": "x"})
    assert matcher.held == 4
    assert told(matcher.push(rows((40, "z", "x")))) == []


def test_blocks_take_punctuations_too() -> None:
    matcher = acep.Matcher(QUERY, lateness="inf")
    assert [*matcher.blocks(pa.Table.from_pylist(rows((1, "a", "x"), (2, "b", "x"))))] == []
    matcher.advance(1, type=["a", "b", "n"])
    given = [m for some in matcher.blocks(pa.Table.from_pylist(rows((1, "z", "x"), (2, "z", "x")))) for m in some]
    assert given == []
    assert told(matcher.advance(2, type=["a", "b", "n"])) == [(1, 1, 2)]
    assert matcher.report.events == 4
