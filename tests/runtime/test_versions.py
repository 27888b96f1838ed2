"""Queries that are replaced while the stream runs: which partial matches go on, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

import acep
from acep.errors import DataError, EngineError, QueryError, SnapshotError
from acep.storage.snapshot import seal, unseal
from tests.runtime.test_revisions import net
from tests.runtime.version_steps import matches_by_text

ENGINES = ("auto", "reference")
ABC, ABD = "PATTERN SEQ(A a, B b, C c) WITHIN 9", "PATTERN SEQ(A a, B b, D d) WITHIN 9"


@pytest.mark.parametrize("engine", ENGINES)
def test_partial_matches_go_on_where_both_versions_agree(engine: str) -> None:
    matcher = acep.Matcher(ABC, dynamic=True, engine=engine)
    assert not matcher.push({"ts": [1, 2], "type": ["A", "B"]})
    assert matcher.replace(ABD) == 2
    assert [m.bindings for m in matcher.push({"ts": [3, 4], "type": ["C", "D"]})] == [{"a": (0,), "b": (1,), "d": (3,)}]
    assert matcher.replace("PATTERN SEQ(B b, D d) WITHIN 9") == 0
    assert [m.bindings for m in matcher.push({"ts": [5, 6], "type": ["B", "D"]})] == [{"b": (4,), "d": (5,)}]


@pytest.mark.parametrize("engine", ENGINES)
def test_conditions_are_the_same_wherever_they_are_written(engine: str) -> None:
    matcher = acep.Matcher("PATTERN SEQ(A a, B b, C c) WHERE a.x < b.x WITHIN 9", dynamic=True, engine=engine)
    matcher.push({"ts": [1, 2], "type": ["A", "B"], "x": [1, 2]})
    assert matcher.replace("PATTERN SEQ(A a, B b, (C | D) c) WHERE c.x > 2 AND a.x < b.x WITHIN 9") == 2
    assert len(matcher.push({"ts": [3, 4], "type": ["D", "C"], "x": [3, 2]})) == 1


@pytest.mark.parametrize("engine", ENGINES)
def test_a_query_that_keeps_other_values_begins_anew(engine: str) -> None:
    matcher = acep.Matcher(ABC, dynamic=True, engine=engine)
    matcher.push({"ts": [1, 2], "type": ["A", "B"], "x": [1, 2]})
    assert matcher.replace("PATTERN SEQ(A a, B b, D d) WHERE d.x > a.x WITHIN 9") == 0
    assert matcher.replace(ABC) == 0


@pytest.mark.parametrize("engine", ENGINES)
def test_the_same_query_again_changes_nothing(engine: str) -> None:
    text = "PATTERN SEQ(A a, B+ b[], C c) WHERE a.s LIKE 'x%' AND b[i].x > b[i-1].x AND c.x > avg(b[].x) WITHIN 9"
    data = {"ts": [1, 2, 3, 4, 5], "type": ["A", "B", "B", "C", "C"], "x": [0, 1, 2, 3, 4], "s": ["xy"] * 5}
    matcher = acep.Matcher(text, dynamic=True, engine=engine)
    found = list(matcher.push({name: column[:3] for name, column in data.items()}))
    assert matcher.replace(text) == 4
    found += matcher.push({name: column[3:] for name, column in data.items()})
    assert [m.bindings for m in found] == [m.bindings for m in acep.match(data, text)]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("PATTERN SEQ(A a, B b) WITHIN 8", "another value of `WITHIN`"),
        ("PATTERN SEQ(A a, B b) WHERE skip_till_next_match(a, b) WITHIN 9", "another value of `strategy`"),
        ("PATTERN SEQ(A a, B b) WITHIN 9 RETURN a.x AS x", "another value of `RETURN`"),
        ("PATTERN SEQ(A a, B b) WITHIN 9 HAVING a.x > 1", "another value of `HAVING`"),
        ("PATTERN SEQ(A a, B b) WHERE [x] WITHIN 9", "other partition attributes"),
        ("PATTERN SEQ(A a, B b) WITHIN 9 OUTPUT NON OVERLAP", "another value of `OUTPUT`"),
        ("FROM (PATTERN A a) AS A PATTERN A a WITHIN 9", "over the matches of others"),
        (acep.regex("ab", within=9), "letter expression"),
    ],
)
def test_what_may_not_change_is_refused_and_changes_nothing(text: Any, reason: str) -> None:
    matcher = acep.Matcher(ABC, dynamic=True)
    matcher.push({"ts": [1, 2], "type": ["A", "B"], "x": [1, 2]})
    with pytest.raises(QueryError, match=reason):
        matcher.replace(text)
    assert len(matcher.push({"ts": [3], "type": ["C"], "x": [1]})) == 1
    if "partition" not in reason and "another" not in reason:
        with pytest.raises(QueryError, match=reason):
            acep.Matcher(text, dynamic=True)


def test_changes_need_their_options() -> None:
    with pytest.raises(QueryError, match="do not change"):
        acep.Matcher(ABC).replace(ABD)
    with pytest.raises(QueryError, match="only arcs of hand-written automata"):
        acep.Matcher(ABC, dynamic=True).change()
    with pytest.raises(QueryError, match="only an automaton can replace an automaton"):
        acep.Matcher(acep.Automaton([acep.arc("s", "t")], final="t"), dynamic=True).replace(ABC)
    with pytest.raises(QueryError, match="hand-written"):
        acep.Matcher(ABC, dynamic=True).replace(acep.Automaton([acep.arc("s", "t")], final="t"))
    with pytest.raises(QueryError, match="keep to no budget"):
        acep.Matcher(ABC, dynamic=True, budget=acep.Budget(work=3))
    matcher = acep.Matcher(ABC, dynamic=True)
    matcher.finish()
    with pytest.raises(DataError, match="finished"):
        matcher.replace(ABD)


def test_a_version_that_the_native_core_cannot_run_is_refused_and_changes_nothing() -> None:
    names = "stuvwxyz"
    sums = " + ".join(f"b[i].{name}" for name in names)
    wide = f"PATTERN SEQ(A a, B+ b[], C c) WHERE {sums} > c.x WITHIN 9"
    one, two = ({"ts": [n], "type": [kind], **{name: [1] for name in names}} for n, kind in ((1, "A"), (2, "C")))
    matcher, other = (acep.Matcher("PATTERN SEQ(A a, C c) WITHIN 9", dynamic=True, engine=each) for each in ENGINES)
    for each in (matcher, other):
        each.push(one)
    with pytest.raises(EngineError, match="the native core cannot run this version"):
        matcher.replace(wide)
    assert [m.end for m in matcher.push(two)] == [2]
    assert other.replace(wide) == 1


def bound(matches: Any) -> list[str]:
    """The ids of the events of each match, in the order of time."""
    return ["".join(str(i) for ids in one.bindings.values() for i in ids) for one in matches]


def rows(text: str, first: int = 1) -> dict[str, Any]:
    """An event for each letter, one tick after another, with its time as its id and its value."""
    times = range(first, first + len(text))
    return {"ts": times, "type": list(text), "id": [str(ts) for ts in times], "x": times}


SEQ = "PATTERN SEQ({}) WITHIN 9"


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("old", "before", "new", "after", "given"),
    [
        # A negation between events is of the version of the event after it, and looks at events from its beginning on.
        ("A a, C c", "AX", "A a, ~(X x), C c", "CAXC", ["13"]),
        ("A a, C c", "A", "A a, ~(X x), C c", "XC", []),
        ("A a, ~(X x), C c", "AX", "A a, C c", "C", ["13"]),
        ("A a, ~(X x), C c", "AX", "A a, ~(X x), D d", "D", []),
        ("A a, ~(X x), C c", "AX", "A a, ~(Y x), D d", "D", ["13"]),
        # A partial match goes on only if the same negations were passed on its way.
        ("A a, ~(X x), B b, C c", "AB", "A a, ~(X x), B b, D d", "D", ["123"]),
        ("A a, ~(X x), B b, C c", "AXB", "A a, ~(X x), B b, D d", "D", []),
        ("A a, ~(X x), B b, C c", "AB", "A a, B b, D d", "D", []),
        ("A a, B b, ~(X x), C c", "AB", "A a, B b, D d", "D", ["123"]),
        # A negation at the end is of the version of the last event, also after its end.
        ("A a, B b, ~(X x)", "AB", "A a, C c", "X", []),
        ("A a, B b, ~(X x)", "AB", "A a, C c", "C", ["12", "13"]),
        ("A a, B b", "AB", "A a, B b, ~(X x)", "X", ["12"]),
        # A negation at the beginning looks back to the beginning of the first of successive versions that have it.
        ("A a, B b", "X", "~(X x), A a, B b", "AB", ["23"]),
        ("~(X x), A a, B b", "X", "~(X x), A a, C c", "AC", []),
        ("~(X x), A a, B b", "X", "~(X y), A a, C c", "AC", ["23"]),
    ],
)
def test_a_negation_is_of_the_version_that_passes_it(
    old: str, before: str, new: str, after: str, given: list[str], engine: str
) -> None:
    matcher = acep.Matcher(SEQ.format(old), dynamic=True, id="id", engine=engine)
    found = list(matcher.push(rows(before)))
    matcher.replace(SEQ.format(new))
    again = acep.Matcher(SEQ.format(old), dynamic=True, id="id", engine=engine)
    again.restore(matcher.snapshot())
    rest = [[*one.push(rows(after, len(before) + 1)), *one.finish()] for one in (matcher, again)]
    found += rest[0]
    assert bound(found) == given
    assert bound(rest[0]) == bound(rest[1])
    late: dict[str, Any] = {"lateness": "inf", "speculation": "inf", "id": "id", "engine": engine}
    revised = acep.Matcher(SEQ.format(old), dynamic=True, **late)
    every = [*revised.push(rows(before + after)), *revised.revise(SEQ.format(new), since=len(before) + 1)]
    every += revised.finish()
    assert sorted(net(every).values()) == [1] * len(given)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_negation_that_compares_with_other_values_begins_anew(engine: str) -> None:
    matcher = acep.Matcher("PATTERN SEQ(A a, B b, C c) WITHIN 9", dynamic=True, engine=engine)
    matcher.push(rows("AB"))
    assert matcher.replace("PATTERN SEQ(A a, B b, ~(X x), D d) WHERE x.x > b.x WITHIN 9") == 1
    assert [m.end for m in matcher.push(rows("DABD", 3))] == [6, 6]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_negation_without_a_window_forgets_nothing_that_may_break_it(engine: str) -> None:
    matcher = acep.Matcher("PATTERN SEQ(A a, B b, C c)", dynamic=True, engine=engine)
    matcher.push(rows("A"))
    assert matcher.replace("PATTERN SEQ(A a, ~(X x), B b, C c)") == 1
    matcher.push(rows("Y" * 200, 2))
    assert matcher.replace("PATTERN SEQ(A a, ~(X x), B b, D d)") == 1
    matcher.push(rows("X" * 200 + "A", 300))
    assert bound(matcher.push(rows("BD", 600))) == ["401402403"]


@pytest.mark.parametrize("engine", ENGINES)
def test_matches_of_all_versions_are_chosen_among(engine: str) -> None:
    text = "PATTERN SEQ(A a, {} b) WITHIN 9 OUTPUT NON OVERLAP"
    matcher = acep.Matcher(text.format("C"), dynamic=True, id="id", engine=engine)
    found = [*matcher.push(rows("AAC"))]
    matcher.replace(text.format("B"))
    found += [*matcher.push(rows("BAB", 4)), *matcher.finish()]
    assert bound(found) == ["13", "56"]
    text = "PATTERN SEQ(A a, {} b[]) WITHIN 9 OUTPUT EARLIEST MAXIMAL"
    matcher = acep.Matcher(text.format("B+"), dynamic=True, id="id", engine=engine)
    found = [*matcher.push(rows("ABB"))]
    matcher.replace(text.format("B+"))
    found += [*matcher.push(rows("B", 4)), *matcher.finish()]
    assert bound(found) == ["1234"]


@pytest.mark.parametrize("engine", ENGINES)
def test_variables_that_come_with_a_version_are_those_of_its_matches(engine: str) -> None:
    text = "PATTERN SEQ(A a, {}) WITHIN 9 RETURN a.x AS x"
    matcher = acep.Matcher(text.format("B b"), dynamic=True, engine=engine)
    matcher.push({name: values for name, values in rows("A").items() if name != "id"})
    letters = ", ".join(f"{kind} v{n}" for n, kind in enumerate("BCBCBCBC"))
    assert matcher.replace(text.format(f"{letters}, D d")) == 1
    (found,) = matcher.push({name: values for name, values in rows("BCBCBCBCD", 2).items() if name != "id"})
    assert found.values == {"x": 1}
    assert found.bindings["d"] == (9,)


def test_matches_of_two_versions_are_taken_back_and_given_together() -> None:
    told = []
    for engine in ENGINES:
        options = {"lateness": 20, "speculation": "inf", "dynamic": True, "engine": engine}
        matcher = acep.Matcher("PATTERN SEQ(A b, B c, C d) WITHIN 9", **options)
        given = [*matcher.push({"ts": [1, 2, 4, 5], "type": ["A", "B", "C", "D"]})]
        # `a` is a variable that the first version does not have, and the first one by its name.
        given += matcher.revise("PATTERN SEQ(A b, B c, D a) WITHIN 9", since=3)
        given += matcher.push({"ts": [3, 6, 1], "type": ["B", "D", "A"]})
        told.append([(one.op, one.end, one.bindings) for one in given])
    assert told[0] == told[1]
    assert {op for op, *_ in told[0]} == {-1, 1}


@pytest.mark.parametrize("engine", ENGINES)
def test_a_version_may_read_more_columns_than_events_before_it_have(engine: str) -> None:
    text = "PATTERN SEQ(A a, B b{}) WITHIN 9 RETURN a.x AS x"
    matcher = acep.Matcher(text.format(""), dynamic=True, engine=engine)
    matcher.push({"ts": [1], "type": ["A"], "x": [1], "y": [2]})
    more = text.format(", C c").replace(" WITHIN", " WHERE c.y > 1 WITHIN")
    assert matcher.replace(more) == 1
    again = acep.Matcher(text.format(""), dynamic=True, engine=engine)
    again.restore(matcher.snapshot())
    rest = {"ts": [2, 3], "type": ["B", "C"], "x": [1, 1], "y": [2, 2]}
    assert [m.values for m in again.push(rest)] == [m.values for m in matcher.push(rest)] == [{"x": 1}]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_stream_that_goes_on_with_an_older_state_takes_no_negation(engine: str) -> None:
    matcher = acep.Matcher(ABC, dynamic=True, engine=engine)
    matcher.push({"ts": [1, 2], "type": ["A", "B"]})
    matcher.replace(ABD)
    print_ = matcher._tables.fingerprint
    payload = unseal(matcher.snapshot(), print_)
    old = acep.Matcher(ABC, dynamic=True, engine=engine)
    old.restore(seal(payload | {"graphs": [payload["graphs"][0][1:]]}, print_))
    again = acep.Matcher(ABC, dynamic=True, engine=engine)
    again.restore(old.snapshot())
    for each in (old, again):
        with pytest.raises(QueryError, match="goes on with an older state"):
            each.replace("PATTERN SEQ(A a, ~(X x), B b, D d) WITHIN 9")
        assert len(each.push({"ts": [3], "type": ["D"]})) == 1


@pytest.mark.parametrize("engine", ENGINES)
def test_an_event_is_taken_back_from_the_versions_that_used_it(engine: str) -> None:
    asked = {"id": "id", "op": "op", "lateness": "inf", "speculation": "inf", "engine": engine}
    matcher = acep.Matcher(ABC, dynamic=True, **asked)
    types, ids = ["A", "B", "C"], ["a", "b", "c"]
    given = list(matcher.push({"ts": [1, 2, 3], "type": types, "id": ids, "op": [1, 1, 1]}))
    matcher.replace(ABD)
    given += matcher.push({"ts": [4, 5], "type": ["C", "D"], "id": ["e", "d"], "op": [1, 1]})
    assert [(m.op, m.bindings["b"], m.end) for m in given] == [(1, ("b",), 3), (1, ("b",), 5)]
    given += matcher.push({"ts": [2, 2], "type": ["B", "B"], "id": ["b", "x"], "op": [-1, 1]})
    given += matcher.finish()
    assert matches_by_text(net(given)) == {
        "[('a', 'a'), ('b', 'x'), ('c', 'c')] 0": 1,
        "[('a', 'a'), ('b', 'x'), ('d', 'd')] 0": 1,
    }


def test_one_of_several_queries_changes() -> None:
    matcher = acep.Matcher({"one": ABC, "two": ABC}, dynamic=True)
    matcher.push({"ts": [1, 2], "type": ["A", "B"]})
    assert matcher.replace(ABD, query="two") == 2
    found = matcher.push({"ts": [3, 4], "type": ["C", "D"]})
    assert [m.end for m in found["one"]] == [3]
    assert [m.end for m in found["two"]] == [4]
    with pytest.raises(QueryError, match="there is no query `three`"):
        matcher.replace(ABC, query="three")


@pytest.mark.long
def test_a_query_has_at_most_a_hundred_versions() -> None:
    matcher = acep.Matcher(ABC, dynamic=True)
    for number in range(99):
        matcher.push({"ts": [number], "type": ["A"]})
        matcher.replace(ABD if number % 2 else ABC)
    with pytest.raises(QueryError, match="100 versions in one stream"):
        matcher.replace(ABC)
    restored = acep.Matcher(ABC, dynamic=True)
    restored.restore(matcher.snapshot())
    rest = {"ts": [100, 101], "type": ["B", "C"]}
    assert [m.bindings for m in restored.push(rest)] == [m.bindings for m in matcher.push(rest)] != []


@pytest.mark.parametrize(
    "spoilt",
    [
        {},
        [2, ["PATTERN A a"]],
        [2, [ABD, "2"]],
        [2, [ABD, 2**63]],
        [2, [ABD, 5], [ABC, 4]],
        [2, ["x", 1]],
        3,
        [[ABD]],
    ],
)
def test_a_spoilt_list_of_versions_is_refused(spoilt: Any) -> None:
    matcher = acep.Matcher(ABC, dynamic=True)
    matcher.push({"ts": [1, 2], "type": ["A", "B"]})
    matcher.replace(ABD)
    print_ = matcher._tables.fingerprint
    payload = unseal(matcher.snapshot(), print_)
    for graphs in ([spoilt], []):
        with pytest.raises(SnapshotError, match="does not hold a state of this query"):
            acep.Matcher(ABC, dynamic=True).restore(seal(payload | {"graphs": graphs}, print_))


@pytest.mark.parametrize("engine", ENGINES)
def test_errors_so_far_count_for_the_next_version(engine: str) -> None:
    budget = acep.Budget(errors=1, weights={"a": 1})
    matcher = acep.Matcher(ABC, dynamic=True, budget=budget, engine=engine)
    assert not matcher.push({"ts": [1], "type": ["B"]})
    assert matcher.replace(ABD) == 1
    state = matcher.snapshot()
    matcher = acep.Matcher(ABC, dynamic=True, budget=budget, engine=engine)
    matcher.restore(state)
    found = matcher.push({"ts": [2, 3], "type": ["C", "D"]})
    assert [(m.bindings, m.error) for m in found] == [({"b": (0,), "d": (2,)}, 1)]


def test_a_query_is_not_revised_from_a_time_that_is_yet_to_come() -> None:
    matcher = acep.Matcher(ABC, dynamic=True, lateness=20, speculation="inf")
    matcher.push({"ts": [1, 2], "type": ["A", "B"]})
    with pytest.raises(QueryError, match="no event has come at 4 or later"):
        matcher.revise(ABD, since=4)
    assert len(matcher.push({"ts": [3], "type": ["C"]})) == 1


@pytest.mark.parametrize("engine", ENGINES)
def test_a_query_is_revised_when_all_events_are_taken_back(engine: str) -> None:
    matcher = acep.Matcher(
        ABC, id="id", op="op", lateness="inf", speculation="inf", dynamic=True, seq="seq", engine=engine
    )
    matcher.push({"ts": [1, 1], "type": ["A", "A"], "id": ["x", "x"], "seq": [0, 0], "op": [1, -1]})
    assert list(matcher.revise(ABD, 2)) == []
    more = {"ts": [3, 4, 5], "type": ["A", "B", "D"], "id": ["a", "b", "d"], "seq": [1, 2, 3], "op": [1, 1, 1]}
    assert len(matcher.push(more)) == 1


def test_a_revision_that_the_native_core_refuses_changes_nothing() -> None:
    names = "stuvwxyz"
    sums = " + ".join(f"b[i].{name}" for name in names)
    wide = f"PATTERN SEQ(A a, B+ b[], C c) WHERE {sums} > c.x WITHIN 9"
    row = {name: [1] for name in names}
    query = f"PATTERN SEQ(A a, C c) WHERE {' + '.join(f'a.{name}' for name in names)} > 0 WITHIN 9"
    matcher = acep.Matcher(query, dynamic=True, engine="native", lateness=20, speculation="inf")
    matcher.push({"ts": [1], "type": ["A"], **row})
    with pytest.raises(EngineError, match="the native core cannot run this version"):
        matcher.revise(wide, since=1)
    assert [(m.op, m.end) for m in matcher.push({"ts": [2], "type": ["C"], **row})] == [(1, 2)]
    assert matcher.report.matches == 1


def test_a_query_with_errors_of_its_own_is_restored_with_its_versions() -> None:
    query, other = (acep.parse(f"PATTERN SEQ(A a, B b, {last} c) WITHIN 9", errors=1) for last in "CD")
    matcher = acep.Matcher(query, dynamic=True)
    matcher.push({"ts": [1], "type": ["A"]})
    matcher.replace(other)
    again = acep.Matcher(query, dynamic=True)
    again.restore(matcher.snapshot())
    assert [m.error for m in again.push({"ts": [3], "type": ["D"]})] == [1]
