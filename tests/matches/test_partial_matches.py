"""The live partial matches of a Matcher, as a user lists them: names, order, tables, and what is refused."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import acep
from acep import EngineError, PartialMatch, PartialMatches, QueryError
from acep.events.tables import schema_of
from acep.plan.compile import compile_query
from acep.runtime.stream import Stream
from tests.native.harness import planned, whole
from tests.random_cases import events_of
from tests.runtime.test_several import QUERIES, part, stream

NEXT, ANY = "skip_till_next_match", "skip_till_any_match"
ENGINES = ("auto", "reference")
TIED = f"PATTERN SEQ(A a, B b, C c) WHERE {ANY} {{ [k] AND b.x > a.x AND c.x > b.x }} WITHIN 9"
ROWS = {
    "ts": [1, 2, 3, 5],
    "type": ["A", "A", "B", "A"],
    "k": ["u", "v", "u", None],
    "x": [1, 2, 3, 4],
    "id": ["e1", "e2", "e3", "e4"],
}


def filled(query: Any, rows: Any = ROWS, **options: Any) -> acep.Matcher[Any]:
    """A matcher that rows have been pushed to."""
    matcher: acep.Matcher[Any] = acep.Matcher(query, **options)
    matcher.push(rows)
    return matcher


@pytest.mark.parametrize("engine", ENGINES)
def test_each_has_its_state_key_times_and_events(engine: str) -> None:
    matcher = filled(TIED, id="id", engine=engine)
    partials = matcher.partial_matches()
    assert partials == [
        PartialMatch("", "1 (a)", {"k": "u"}, 1, 1, 10, 0, {"a": ("e1",)}),
        PartialMatch("", "1 (a)", {"k": "v"}, 2, 2, 11, 0, {"a": ("e2",)}),
        PartialMatch("", "2 (b)", {"k": "u"}, 1, 3, 10, 0, {"a": ("e1",), "b": ("e3",)}),
    ]
    assert (len(partials), partials.total, partials.query) == (3, 3, "")
    assert isinstance(partials[1:], PartialMatches)
    assert partials[1:] == list(partials)[1:] != list(partials)
    assert partials[-1] == partials[2] == [*partials][2]
    assert partials[::-1] == list(partials)[::-1]
    with pytest.raises(IndexError):
        partials[3]
    with pytest.raises(TypeError):
        partials[0] = partials[1]  # type: ignore[index]
    assert repr(partials) == (
        "3 partial matches\n"
        "  k=u  state 1 (a)  1..1  a=e1  until=10\n"
        "  k=v  state 1 (a)  2..2  a=e2  until=11\n"
        "  k=u  state 2 (b)  1..3  a=e1 b=e3  until=10"
    )
    assert str(partials[2]) == "k=u  state 2 (b)  1..3  a=e1 b=e3  until=10"
    assert all(text in partials._repr_html_() for text in ("3 partial matches", "2 (b)", "e3"))
    assert "state" in partials[0]._repr_html_()


@pytest.mark.parametrize("engine", ENGINES)
def test_the_states_are_those_of_explain(engine: str) -> None:
    query = acep.parse(TIED)
    names = {partial.state for partial in filled(query, id="id", engine=engine).partial_matches()}
    from acep.explain.automaton_text import arcs_lines

    plan = compile_query(query, schema_of(pa.table(ROWS).schema, id="id"))
    lines = arcs_lines(plan.arcs, plan.automaton)
    assert names == {"1 (a)", "2 (b)"}
    assert all(any(line.startswith(f"state {name}; ") for line in lines) for name in names)


@pytest.mark.parametrize("engine", ENGINES)
def test_tables(engine: str) -> None:
    partials = filled(TIED, id="id", engine=engine).partial_matches()
    table = partials.to_arrow()
    assert {field.name: str(field.type) for field in table.schema} == {
        "query": "string",
        "state": "string",
        "key": "struct<k: string>",
        "start": "int64",
        "end": "int64",
        "until": "int64",
        "error": "int64",
        "bindings": "map<string, list<item: string>>",
        "sequences": "int64",
        "utility": "int64",
    }
    assert table.num_rows == len(partials)
    assert table.slice(2).to_pylist() == [
        {
            "query": "",
            "state": "2 (b)",
            "key": {"k": "u"},
            "start": 1,
            "end": 3,
            "until": 10,
            "error": 0,
            "bindings": [("a", ["e1"]), ("b", ["e3"])],
            "sequences": 1,
            "utility": None,
        }
    ]
    frame = partials.to_pandas()
    assert list(frame.columns) == table.column_names
    assert frame["bindings"].tolist() == [partial.bindings for partial in partials]
    assert (str(frame["sequences"].dtype), str(frame["utility"].dtype)) == ("Int64", "Int64")
    assert partials.to_polars()["state"].to_list() == table["state"].to_pylist()
    empty = partials[:0]
    assert empty.to_arrow().schema == table.schema
    assert empty.to_pandas().shape == (0, len(table.column_names))
    assert repr(empty) == "no partial matches, of 3"


@pytest.mark.parametrize("engine", ENGINES)
def test_times_are_those_of_the_input(engine: str) -> None:
    noon = datetime(2024, 5, 1, 12, tzinfo=UTC)
    rows = pa.table({"ts": pa.array([noon], pa.timestamp("us", "UTC")), "type": ["A"]})
    matcher = filled("PATTERN SEQ(A a, B b) WITHIN 2 h", rows, engine=engine)
    (partial,) = matcher.partial_matches()
    assert (partial.start, partial.until) == (noon, noon + timedelta(hours=2))
    assert matcher.partial_matches().to_arrow()["until"].to_pylist() == [noon + timedelta(hours=2)]
    for window in ("", " WITHIN 5 EVENTS"):
        matcher = filled(f"PATTERN SEQ(A a, B b){window}", rows, engine=engine)
        assert [partial.until for partial in matcher.partial_matches()] == [None]
        assert matcher.partial_matches().to_arrow()["until"].to_pylist() == [None]
    late = pa.table({"ts": [2**63 - 3], "type": ["A"]})
    assert filled("PATTERN SEQ(A a, B b) WITHIN 2", late, engine=engine).partial_matches()[0].until == 2**63 - 1
    assert filled("PATTERN SEQ(A a, B b) WITHIN 3", late, engine=engine).partial_matches()[0].until is None


@pytest.mark.parametrize("engine", ENGINES)
def test_a_partial_match_is_listed_until_its_window_is_over(engine: str) -> None:
    matcher = filled("PATTERN SEQ(A a, B b) WITHIN 5", {"ts": [1], "type": ["A"]}, engine=engine, lateness=0)
    for time, number in ((5, 1), (6, 0)):
        matcher.advance(time)  # no event up to that time comes any more
        assert len(matcher.partial_matches()) == number
    matcher.push({"ts": [9], "type": ["A"]})
    matcher.advance(9)
    assert len(matcher.partial_matches()) == 1
    matcher.finish()
    assert matcher.partial_matches() == []
    assert matcher.partial_matches().to_arrow().num_rows == 0


@pytest.mark.parametrize("engine", ENGINES)
def test_errors_so_far(engine: str) -> None:
    query = acep.parse("PATTERN SEQ(A a, B b, C c, D d) WITHIN 9", errors=1, weights={"b": 0.5, "a": 1})
    partials = filled(query, {"ts": [1, 2], "type": ["A", "C"]}, engine=engine).partial_matches(apart=True)
    shown = {(partial.state, partial.error, len(partial.bindings)) for partial in partials}
    assert shown == {("1 (a)", 0, 1), ("3 (c)", 0.5, 2)}
    assert partials.to_arrow()["error"].to_pylist() == [0.0, 0.5]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("strategy", ["strict_contiguity", "partition_contiguity"])
def test_an_event_that_nothing_binds_ends_contiguity(engine: str, strategy: str) -> None:
    """It need not reach the engine. Under strict contiguity it may be one of another key."""
    query = f"PATTERN SEQ(A a, B b) WHERE {strategy}(a, b) {{ [k] }} WITHIN 9"
    for other in (1, 2):
        matcher = filled(query, {"ts": [1], "type": ["A"], "k": [1]}, engine=engine)
        assert len(matcher.partial_matches()) == 1
        matcher.push({"ts": [2], "type": ["X"], "k": [other]})
        assert len(matcher.partial_matches()) == (other == 2 and strategy == "partition_contiguity")


def test_one_of_the_core_may_stand_for_many_sequences() -> None:
    pytest.importorskip("acep.native._native")
    query, rows = "PATTERN SEQ(A a, B b, C c) WITHIN 9", {"ts": [1, 2, 3], "type": ["A", "A", "B"]}
    matcher, reference = filled(query, rows), filled(query, rows, engine="reference")
    (first, second) = matcher.partial_matches()
    assert (first.sequences, first.bindings, first.until) == (2, {"a": (1,)}, 11)
    assert (second.sequences, second.bindings, second.until) == (2, {"a": (1,), "b": (2,)}, 11)
    assert "sequences=2" in str(second)
    apart = matcher.partial_matches(apart=True)
    assert apart == reference.partial_matches() == reference.partial_matches(apart=True)
    assert (len(apart), apart.total, {partial.sequences for partial in apart}) == (4, 4, {1})
    many = filled("PATTERN SEQ(A+ a[], B b)", {"ts": list(range(70)), "type": ["A"] * 70})
    assert [partial.sequences for partial in many.partial_matches()] == [None]
    assert many.partial_matches().to_arrow()["sequences"].to_pylist() == [None]
    assert "sequences=more than 2^63" in repr(many.partial_matches())
    assert many.partial_matches(3, apart=True).total is None
    assert repr(many.partial_matches(3, apart=True)).startswith("3 partial matches, of more than 2^63\n")


@pytest.mark.long
@pytest.mark.parametrize("engine", ENGINES)
def test_of_many_the_latest_are_listed(engine: str) -> None:
    rows = {"ts": list(range(1100)), "type": ["A"] * 1100, "x": list(range(1100))}
    matcher = filled("PATTERN SEQ(A a, B b) WHERE b.x = a.x WITHIN 9999", rows, engine=engine)
    partials = matcher.partial_matches()
    assert (len(partials), partials.total) == (1000, 1100)
    assert [partial.start for partial in partials] == list(range(100, 1100))
    assert repr(partials).startswith("1,000 partial matches, of 1,100\n")
    assert [partial.start for partial in matcher.partial_matches(2)] == [1098, 1099]
    assert (len(matcher.partial_matches(0)), matcher.partial_matches(0).total) == (0, 1100)
    assert len(matcher.partial_matches(10**30)) == 1100
    for most in (-1, 1.5, None, True, "7"):
        with pytest.raises(QueryError, match="is not a number of partial matches") as caught:
            matcher.partial_matches(most)  # type: ignore[arg-type]
        assert caught.value.code == "option_invalid"


@pytest.mark.parametrize("engine", ENGINES)
def test_several_queries_give_what_each_alone_gives(engine: str) -> None:
    events, listed = stream(4), 0
    together: acep.Matcher[Any] = acep.Matcher(QUERIES, engine=engine)
    single: dict[str, acep.Matcher[Any]] = {name: acep.Matcher(one, engine=engine) for name, one in QUERIES.items()}
    numbered: acep.Matcher[Any] = acep.Matcher([*QUERIES.values()], engine=engine)
    assert [len(partials) for partials in together.partial_matches().values()] == [0] * len(QUERIES)
    for begin in range(0, 60, 7):
        rows = part(events, begin, begin + 7)
        for matcher in (together, numbered, *single.values()):
            matcher.push(rows)
        before = together.snapshot()
        partials = together.partial_matches(apart=True)
        assert together.snapshot() == before
        assert [*partials] == [*QUERIES]
        for number, (name, alone) in enumerate(single.items()):
            wanted = [(p.state, p.key, p.bindings, p.error) for p in alone.partial_matches(apart=True)]
            assert [(p.state, p.key, p.bindings, p.error) for p in partials[name]] == wanted
            assert {p.query for p in partials[name]} <= {name}
            assert partials[name].to_arrow()["query"].to_pylist() == [name] * len(wanted)
            assert numbered.partial_matches(apart=True)[number].query == str(number)
            listed += len(wanted)
        together.restore(before)
        assert together.partial_matches(apart=True) == partials
    assert listed > 150


def test_engines_list_alike() -> None:
    """Also where an equality that ties all events gives the core finer partitions."""
    tied = f"PATTERN SEQ(a p, b q, c r) WHERE {ANY} {{ p.k = q.k AND q.k = r.k AND r.v > p.v }} WITHIN 20"
    events = stream(8, 300)
    matchers = [acep.Matcher(tied, engine=engine) for engine in ENGINES]
    for begin in range(0, 300, 11):
        for matcher in matchers:
            matcher.push(part(events, begin, begin + 11))
        first, second = (matcher.partial_matches(apart=True) for matcher in matchers)
        assert first == second
        assert first[0].key == {}


@pytest.mark.parametrize("engine", ENGINES)
def test_matches_of_matches_are_the_bound_events_of_a_composed_query(engine: str) -> None:
    query = "FROM (PATTERN SEQ(A a, B b) WITHIN 3) AS P PATTERN SEQ(P p, P q) WITHIN 9"
    matcher = filled(query, {"ts": [1, 2, 3], "type": ["A", "B", "X"]}, engine=engine)
    assert [(partial.state, partial.bindings) for partial in matcher.partial_matches()] == [("1 (p)", {"p": (0,)})]
    assert matcher.partial_matches().to_arrow()["bindings"].to_pylist() == [[("p", [0])]]


@pytest.mark.long
def test_a_stream_that_is_revised_lists_those_of_the_corrected_stream() -> None:
    listed = 0
    for seed in range(20):
        rng = Random(seed)
        rows = [
            dict.fromkeys(("k", "x", "y", "f", "s", "seq"))
            | {"ts": ts, "type": rng.choice("ABC"), "k": rng.choice((1, 2)), "x": rng.randrange(5), "id": f"e{ts}"}
            for ts in range(30)
        ]
        shuffled = sorted(rows, key=lambda row: row["ts"] + rng.randrange(9))
        for engine in ENGINES:
            exact = filled(TIED, events_of(rows), id="id", engine=engine)
            revised = acep.Matcher(TIED, id="id", engine=engine, lateness="inf", speculation="inf")
            for begin in range(0, 30, 4):
                revised.push(events_of(shuffled[begin : begin + 4]))
            assert revised.partial_matches(apart=True) == exact.partial_matches(apart=True)
            listed += len(exact.partial_matches(apart=True))
            data = revised.snapshot()
            restored = acep.Matcher(TIED, id="id", engine=engine, lateness="inf", speculation="inf")
            restored.restore(data)
            assert restored.partial_matches(apart=True) == revised.partial_matches(apart=True)
    assert listed > 100


@pytest.mark.parametrize("engine", ENGINES)
def test_held_events_are_not_matched_yet(engine: str) -> None:
    matcher = filled("PATTERN SEQ(A a, B b) WITHIN 9", {"ts": [1, 5], "type": ["A", "A"]}, engine=engine, lateness=4)
    assert [partial.start for partial in matcher.partial_matches()] == []
    matcher.push({"ts": [6], "type": ["X"]})
    assert (matcher.held, [partial.start for partial in matcher.partial_matches()]) == (2, [1])


@pytest.mark.parametrize("engine", ENGINES)
def test_of_a_query_that_changed_those_that_go_on_are_listed(engine: str) -> None:
    before, after = ("PATTERN SEQ(A a, B b, C c) WITHIN 9", "PATTERN SEQ(A a, D d) WITHIN 9")
    matcher = filled(before, {"ts": [1, 2], "type": ["A", "B"]}, engine=engine, dynamic=True)
    assert [list(partial.bindings) for partial in matcher.partial_matches()] == [["a"], ["a", "b"]]
    number = matcher.replace(after)
    partials = matcher.partial_matches()
    assert number == len(partials) == partials.total == 1
    assert partials[0].bindings == {"a": (0,)}
    matcher.push({"ts": [3], "type": ["A"]})
    assert [partial.start for partial in matcher.partial_matches(apart=True)] == [1, 3]


@pytest.mark.parametrize("engine", ENGINES)
def test_states_of_automata_have_their_names(engine: str) -> None:
    arcs = [acep.arc("begin", "middle", "e.x > 1", bind="first"), acep.arc("middle", "end", "e.x > 2", bind="second")]
    matcher = filled(acep.Automaton(arcs, final="end", window=5), {"ts": [1], "x": [2]}, engine=engine, type=None)
    assert [(p.state, p.bindings) for p in matcher.partial_matches()] == [("2 (middle)", {"first": (0,)})]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_run_that_waits_for_its_trailing_negation_is_complete(engine: str) -> None:
    query, rows = "PATTERN SEQ(A a, B b, ~C c) WITHIN 9", {"ts": [1, 2], "type": ["A", "B"]}
    matcher = filled(query, rows, engine=engine)
    assert [partial.state for partial in matcher.partial_matches()] == ["1 (a)"]
    query = f"PATTERN SEQ(A a, ~C c, B b) WHERE {NEXT} WITHIN 9"
    matcher = filled(query, {"ts": [1, 2, 3], "type": ["A", "C", "A"]}, engine=engine)
    assert [partial.start for partial in matcher.partial_matches()] == [3]


@pytest.mark.parametrize("output", ["count", "points", "bundles", "exists"])
def test_engines_that_keep_no_events_say_so(output: str) -> None:
    pytest.importorskip("acep.native._native")
    table = pa.table({"ts": [1, 2], "type": ["A", "B"], "x": [1, 2]})
    for text in ("PATTERN SEQ(A a, B b) WITHIN 9", f"PATTERN SEQ(A a, B b) WHERE {ANY} {{ b.x > a.x }} WITHIN 9"):
        plan = planned(acep.parse(text), table)
        streamed = Stream([plan], output=output)
        streamed.push(whole(plan, table))
        engine = streamed._natives.engines[0]
        if engine.endswith("nodes"):
            continue
        with pytest.raises(EngineError, match="partial matches cannot be listed: the engine `") as caught:
            streamed.partial_matches(0, 10, apart=False)
        assert "Matcher" in (caught.value.hint or "")


def test_blocks_that_were_not_read_leave_nothing_to_list() -> None:
    rows = {"ts": list(range(4000)), "type": ["A", "B"] * 2000}
    matcher = acep.Matcher("PATTERN SEQ(A a, B b) WITHIN 999")
    next(iter(matcher.blocks(rows)))
    with pytest.raises(EngineError, match="not all blocks"):
        matcher.partial_matches()
