"""Automata that change while the stream runs: which partial matches go on, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import acep
from acep.errors import QueryError, SnapshotError
from acep.storage.snapshot import seal, unseal
from tests.runtime.automaton_steps import count_core_calls

ENGINES = ("auto", "reference")


def steps(*text: str) -> acep.Automaton:
    """An automaton that accepts events of these types after each other."""
    arcs = [acep.arc((text[:n] and "".join(text[:n])) or "0", "".join(text[: n + 1]), f"e.type = '{one}'", bind=one)
            for n, one in enumerate(text)]  # fmt: skip
    return acep.Automaton(arcs, final="".join(text), start="0")


@pytest.mark.parametrize("engine", ENGINES)
def test_an_arc_that_has_ended_holds_for_events_that_come_late(engine: str) -> None:
    arcs = [acep.arc("s", "t", "e.type = 'a'", until=4), acep.arc("s", "t", "e.type = 'b'")]
    asked = {"dynamic": True, "lateness": "inf", "speculation": "inf", "engine": engine}
    matcher = acep.Matcher(acep.Automaton(arcs, final="t", start="s"), **asked)
    assert not matcher.push({"ts": [4], "type": ["a"]})
    matcher.change([acep.arc("s", "t", "e.type = 'c'")])
    assert [m.bindings for m in matcher.push({"ts": [3], "type": ["a"]})] == [{"events": (1,)}]


@pytest.mark.parametrize("engine", ENGINES)
def test_what_an_ignorable_arc_let_pass_stays_passed_once_the_arc_has_ended(engine: str) -> None:
    arcs = [acep.arc("s", "t", "e.type = 'a'"), acep.arc("t", "t", ignorable=True, until=3)]
    arcs.append(acep.arc("t", "u", "e.type = 'b'"))
    automaton = acep.Automaton(arcs, final="u", start="s", keys="k")
    matcher = acep.Matcher(automaton, dynamic=True, engine=engine)
    assert not matcher.push({"ts": [1, 2, 3], "type": ["a", "x", "x"], "k": [0, 0, 1]})
    matcher.change([acep.arc("s", "u", "e.type = 'z'")])
    assert [m.bindings for m in matcher.push({"ts": [4], "type": ["b"], "k": [0]})] == [{"events": (0, 3)}]


@pytest.mark.parametrize("engine", ENGINES)
def test_partial_matches_go_on_in_states_that_both_versions_have(engine: str) -> None:
    matcher = acep.Matcher(steps("a", "b", "c"), dynamic=True, engine=engine)
    assert not matcher.push({"ts": [1, 2], "type": ["a", "b"]})
    assert matcher.replace(steps("a", "b", "d")) == 1
    assert [m.bindings for m in matcher.push({"ts": [3], "type": ["d"]})] == [{"a": (0,), "b": (1,), "d": (2,)}]
    found = matcher.push({"ts": [4, 5, 6, 7], "type": ["a", "b", "c", "d"]})
    assert not found
    assert matcher.replace(steps("a", "c")) == 0
    assert [m.values["state"] for m in matcher.push({"ts": [8, 9], "type": ["a", "c"]})] == ["ac"]
    assert not matcher.push({"ts": [10, 11, 12], "type": ["a", "b", "d"]})


@pytest.mark.parametrize("engine", ENGINES)
def test_an_event_at_the_time_of_a_change_takes_the_old_arcs(engine: str) -> None:
    matcher = acep.Matcher(steps("a"), dynamic=True, engine=engine)
    matcher.push({"ts": [5], "type": ["x"]})
    matcher.replace(steps("b"))
    assert [m.end for m in matcher.push({"ts": [5, 5, 6, 6], "type": ["a", "b", "a", "b"]})] == [5, 6]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("lateness", [None, 5])
def test_a_change_before_the_first_event_holds_for_all(engine: str, lateness: int | None) -> None:
    options = {} if lateness is None else {"lateness": lateness, "speculation": "inf"}
    matcher = acep.Matcher(steps("a"), dynamic=True, engine=engine, **options)
    assert matcher.replace(steps("b")) == 0
    state, matcher = matcher.snapshot(), acep.Matcher(steps("a"), dynamic=True, engine=engine, **options)
    matcher.restore(state)
    assert [m.end for m in matcher.push({"ts": [-3, 6], "type": ["b", "a"]})] == [-3]
    state, matcher = matcher.snapshot(), acep.Matcher(steps("a"), dynamic=True, engine=engine, **options)
    matcher.restore(state)
    assert [m.end for m in [*matcher.push({"ts": [7], "type": ["b"]}), *matcher.finish()]] == [7]


def test_one_of_several_automata_changes() -> None:
    matcher = acep.Matcher({"one": steps("a"), "two": steps("b")}, dynamic=True)
    matcher.push({"ts": [1], "type": ["x"]})
    matcher.replace(steps("c"), query="two")
    found = matcher.push({"ts": [2, 3, 4], "type": ["a", "b", "c"]})
    assert {name: [m.end for m in some] for name, some in found.items()} == {"one": [2], "two": [4]}
    with pytest.raises(QueryError, match="there is no query `three`"):
        matcher.change(query="three")


@pytest.mark.parametrize("engine", ENGINES)
def test_new_columns_and_texts_are_read_from_then_on(engine: str) -> None:
    matcher = acep.Matcher(steps("a"), dynamic=True, engine=engine)
    matcher.push({"ts": [1], "type": ["x"], "name": ["u"]})
    matcher.change([acep.arc("0", "named", "e.name LIKE 'v%' OR e.name = 'w'", bind="named")], final="named")
    found = matcher.push({"ts": [2, 3, 4], "type": ["x", "x", "a"], "name": ["vv", "u", "w"]})
    assert [(m.end, m.values["state"]) for m in found] == [(2, "named"), (4, "a"), (4, "named")]
    state, matcher = matcher.snapshot(), acep.Matcher(steps("a"), dynamic=True, engine=engine)
    matcher.restore(state)
    assert [m.end for m in matcher.push({"ts": [5, 6], "type": ["x", "x"], "name": ["q", "w"]})] == [6]


def test_removed_arcs_do_not_pile_up() -> None:
    matcher = acep.Matcher(steps("a"), dynamic=True)
    for ts in range(50):
        matcher.push({"ts": [ts], "type": ["a"]})
        matcher.replace(steps("ab"[ts % 2]))
    graph = matcher._tables.query_set.queries[0].graph
    assert graph is not None
    assert len(graph.arcs) <= 3


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("push", [1, 3, 40])
def test_changes_that_are_declared_ahead_hold_from_their_times_on(engine: str, push: int) -> None:
    arcs = {name: acep.arc("0", "1", f"e.type = '{name}'") for name in "ab"}
    matcher, now = acep.Matcher(acep.Automaton([arcs["a"]], final="1"), dynamic=True, engine=engine), "a"
    found = list(matcher.push({"ts": [0], "type": ["a"]}))
    for since in range(5, 40, 5):
        old, now = now, "ab"[now == "a"]
        matcher.change([arcs[now]], [arcs[old]], since=since)
        if since == 20:
            state, matcher = matcher.snapshot(), acep.Matcher(matcher.query, dynamic=True, engine=engine)
            matcher.restore(state)
    for at in range(1, 41, push):
        times = [ts for ts in range(at, at + push) for _ in "ab"]
        found += matcher.push({"ts": times, "type": list("ab") * push})
    assert [m.start for m in found if m.start <= 40] == list(range(41))
    # Of each time, event 2 ts - 1 has type a and event 2 ts type b.
    assert all(m.bindings["events"][0] % 2 == 1 - m.start // 5 % 2 for m in found if 0 < m.start < 40)


def test_changes_of_arcs_that_are_known_compile_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    many = count_core_calls(monkeypatch)
    matcher = acep.Matcher(acep.Automaton([A], final="1"), dynamic=True)
    matcher.push({"ts": [0], "type": ["x"]})
    for since in range(1, 9):
        new, old = (B, A) if since % 2 else (A, B)
        matcher.change([new], [old], since=since)
    assert [m.start for m in matcher.push({"ts": [*range(9)], "type": [*"ababababa"]})] == [*range(9)]
    assert many == {"change": 0, "extend": 1, "renew": 8}
    matcher.snapshot()
    assert many == {"change": 1, "extend": 1, "renew": 8}


def test_changes_of_more_than_arcs_are_compiled_once_with_the_next_events(monkeypatch: pytest.MonkeyPatch) -> None:
    many = count_core_calls(monkeypatch)
    matcher = acep.Matcher(acep.Automaton([A], final="1"), dynamic=True)
    matcher.push({"ts": [0], "type": ["x"]})
    for state in "23":
        matcher.change([acep.arc("0", state, f"e.type = '{state}'")], final=state)
    assert many["change"] == 0
    assert [m.values["state"] for m in matcher.push({"ts": [1, 2], "type": ["2", "3"]})] == ["2", "3"]
    assert many == {"change": 1, "extend": 0, "renew": 0}


@pytest.mark.long
def test_arcs_that_are_valid_no_more_do_not_pile_up_in_the_core(monkeypatch: pytest.MonkeyPatch) -> None:
    many, most = count_core_calls(monkeypatch), 0
    matcher, last = acep.Matcher(acep.Automaton([A], final="1"), dynamic=True), A
    for ts in range(700):  # each with an arc of a form that never comes again
        last, old = acep.arc("0", "1", f"e.x = {ts}"), last
        assert len(matcher.push({"ts": [ts], "type": ["b"], "x": [ts - 1]})) == (ts > 0)
        matcher.change([last], [old])
        for _ in range(3):  # valid at no time
            matcher.change([B])
            matcher.change([], [B])
        known = matcher._tables._automaton(0).in_core
        most = max(most, 0 if known is None else known.arc_count)
    assert 100 < most < 600
    assert 1 <= many["change"] < 10


def test_a_change_can_be_declared_before_the_first_event() -> None:
    matcher = acep.Matcher(acep.Automaton([A], final="1"), dynamic=True)
    matcher.change([B], [A], since=3)
    assert [m.start for m in matcher.push({"ts": [1, 2, 3, 4], "type": ["a", "b", "a", "b"]})] == [1, 4]
    matcher = acep.Matcher(acep.Automaton([A], final="1"), dynamic=True)
    matcher.change([B], [A], since="2026-01-01")
    with pytest.raises(QueryError, match="the times of this stream are integers"):
        matcher.push({"ts": [1], "type": ["a"]})


def test_a_version_gives_up_the_changes_that_were_declared_for_later() -> None:
    matcher = acep.Matcher(acep.Automaton([A], final="1"), dynamic=True)
    matcher.push({"ts": [0], "type": ["x"]})
    matcher.change([B], [A], since=5)
    matcher.replace(acep.Automaton([A], final="1"))
    assert [m.start for m in matcher.push({"ts": [1, 6, 7], "type": ["a", "b", "a"]})] == [1, 7]


def test_a_version_has_no_arc_of_the_one_before_that_was_to_end_later() -> None:
    ending = acep.arc("0", "1", "e.type = 'a'", until=9)
    matcher = acep.Matcher(acep.Automaton([ending, B], final="1"), dynamic=True)
    matcher.push({"ts": [0], "type": ["x"]})
    matcher.replace(acep.Automaton([B], final="1"))
    assert [m.start for m in matcher.push({"ts": [1, 2], "type": ["a", "b"]})] == [2]


@pytest.mark.parametrize("since", [7, "2026-01-01", 1.5])
def test_a_change_cannot_begin_at_a_time_that_has_come(since: Any) -> None:
    matcher = acep.Matcher(acep.Automaton([A], final="1"), dynamic=True)
    matcher.push({"ts": [7], "type": ["x"]})
    with pytest.raises(QueryError, match=r"is not after all events|are integers|is no time"):
        matcher.change([B], since=since)
    assert not matcher.push({"ts": [9], "type": ["b"]})


A, B = acep.arc("0", "1", "e.type = 'a'"), acep.arc("0", "1", "e.type = 'b'")
REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"remove": [B]}, "there is no arc"),
    ({"remove": [A, A]}, "there is no arc"),
    ({"add": [acep.arc("0", "1", since=3)]}, "begins before the change"),
    ({"add": [acep.arc("0", "1", transfer={"n": "1"})]}, "there is no register `n`"),
    ({"add": [acep.arc("0", "1", "e.missing > 1")]}, "unknown column `missing`"),
    ({"add": [acep.arc("0", "1", "e.type > 1")]}, "cannot be compared"),
    ({"add": [acep.arc("1", "2", epsilon=True), acep.arc("2", "1", epsilon=True)]}, "form a cycle"),
    ({"final": "0"}, "state `0` is not new"),
]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("change", "message"), REFUSED, ids=range(len(REFUSED)))
def test_a_change_that_is_refused_changes_nothing(engine: str, change: dict[str, Any], message: str) -> None:
    matcher = acep.Matcher(acep.Automaton([A], final="1"), dynamic=True, engine=engine)
    matcher.push({"ts": [7], "type": ["x"]})
    with pytest.raises(QueryError, match=message):
        matcher.change(**change)
    assert [m.end for m in matcher.push({"ts": [8, 9], "type": ["a", "b"]})] == [8]


def test_what_cannot_change_says_so() -> None:
    one = acep.Automaton([A], final="1")
    with pytest.raises(QueryError, match="do not change"):
        acep.Matcher(one).change([B])
    with pytest.raises(QueryError, match="a letter expression cannot change"):
        acep.Matcher(acep.regex("ab", within=5), dynamic=True)
    with pytest.raises(QueryError, match="dynamic='yes' is not true or false"):
        acep.Matcher(one, dynamic="yes")  # type: ignore[arg-type]
    with pytest.raises(QueryError, match="no budget"):
        acep.Matcher(one, dynamic=True, budget=acep.Budget(work=1))
    matcher = acep.Matcher(one, dynamic=True)
    for other, message in (
        (acep.regex("ab", within=5), "only an automaton can replace an automaton"),
        (acep.Automaton([A], final="1", window=5), "another value of `window`"),
        (acep.Automaton([A], final="1", registers={"n": 0}), "another value of `registers`"),
        (acep.Automaton([A, acep.arc("1", "2")], final="2"), "state `1` is final in one of both only"),
    ):
        with pytest.raises(QueryError, match=message):
            matcher.replace(other)
    matcher.push({"ts": [1], "type": ["a"]})
    matcher.finish()
    with pytest.raises(acep.DataError, match="nothing can change any more"):
        matcher.change([B])


SPOILT: list[Callable[[dict[str, Any]], Any]] = [
    lambda data: data.pop("graphs"),
    lambda data: data["graphs"].append(data["graphs"][0]),
    lambda data: data["graphs"][0].pop("arcs"),
    lambda data: data["graphs"][0].update(named=[1]),
    lambda data: data["graphs"][0].update(arcs=[["0", "1"]]),
    lambda data: data["graphs"][0]["arcs"][0].__setitem__(2, "e.missing > 1"),
    lambda data: data["graphs"][0]["arcs"][0].__setitem__(2, "e.x >"),
    lambda data: data["graphs"][0]["arcs"][0].__setitem__(3, {"n": "1"}),
    lambda data: data["graphs"][0]["arcs"][0].__setitem__(7, ["Literal", "x"]),
    lambda data: data["graphs"][0]["arcs"][0].__setitem__(7, ["Timestamp", 5]),
    lambda data: data.update(read=[["missing"]]),
    lambda data: data.update(read=[]),
]


@pytest.mark.parametrize("number", range(len(SPOILT)))
def test_a_snapshot_of_another_form_is_refused(number: int) -> None:
    matcher = acep.Matcher(steps("a"), dynamic=True)
    matcher.push({"ts": [1], "type": ["x"]})
    matcher.replace(steps("b"))
    fingerprint = matcher._tables.fingerprint
    payload = unseal(matcher.snapshot(), fingerprint)
    SPOILT[number](payload)
    with pytest.raises(SnapshotError):
        matcher.restore(seal(payload, fingerprint))
    assert [m.end for m in matcher.push({"ts": [2, 3], "type": ["a", "b"]})] == [3]
