"""Why a key of a table has no match: the key, the run that is shown, and whether what is said of it is true."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import acep
from acep.errors import DataError, QueryError
from acep.explain.why import Furthest, why
from tests.complaints import fail_if_wrong
from tests.random_cases import Case, random_case

NEXT = "WHERE skip_till_next_match WITHIN 50"


def look(pattern: str, types: str, **columns: list[Any]) -> Furthest:
    return why({"ts": list(range(len(types))), "type": list(types), **columns}, acep.parse(f"PATTERN {pattern}"))


# What is said -----------------------------------------------------------------------------------


def test_an_event_that_had_to_be_bound_ended_it() -> None:
    found = look(f"SEQ((A a, B b)+, C c) {NEXT}", "ABAC")
    assert found.bound == {"a": (0,), "b": (1,)}
    assert found.ended == "event 2 had to be bound to a, which led no further: skip till next match"
    assert look("SEQ((A a, B b)+, C c) WITHIN 50", "ABAC").matches == 1


def test_a_broken_negation_does_not_hide_the_condition_that_failed() -> None:
    rows = {"ts": [1, 2, 3], "type": list("acb"), "p": [10, 0, 1]}
    found = why(rows, acep.parse("PATTERN SEQ(a f, ~(c n), b m) WHERE m.p > f.p WITHIN 30"))
    assert [(failure.id, failure.arc, failure.reason) for failure in found.failed] == [
        (1, "~n", "no such c may come there"),
        (2, "m", "m.p > f.p does not hold (m.p = 1, f.p = 10)"),
    ]
    assert found.ended == "the stream ended"


def test_a_broken_negation_alone_is_named_and_what_did_not_come() -> None:
    found = look("SEQ(A f, ~(C n), B m) WITHIN 30", "ACC")
    assert [(failure.id, failure.arc) for failure in found.failed] == [(1, "~n")]
    assert found.ended == "no event of type B came before the stream ended"


def test_of_runs_equally_far_one_that_failed_is_shown() -> None:
    """The first one came as far, but nothing came for it before its window closed."""
    rows = {"ts": [1, 12, 13, 14], "type": list("AAXB"), "x": [1, 5, 2, 3]}
    found = why(rows, acep.parse("PATTERN SEQ(A a, B b) WHERE b.x > a.x WITHIN 3"))
    assert found.bound == {"a": (1,)}
    assert [failure.id for failure in found.failed] == [3]


def test_an_event_that_led_nowhere_is_not_said_to_be_missing() -> None:
    found = look("SEQ((A a, B b)+, C c) WITHIN 50", "ABA")
    assert found.bound == {"a": (0,), "b": (1,)}
    assert found.ended == "no event of type C came before the stream ended"


def test_a_budget_that_is_exceeded_is_named() -> None:
    query = acep.regex("abc", within=50, errors=1, strategy="strict_contiguity")
    found = why({"ts": [1, 2, 3, 4], "type": list("axxb")}, query)
    assert found.matches == 0
    assert "it would miss 2, and 1 may be missing" in str(found) or "came in between" in found.ended


def test_surplus_events_are_named_with_how_many_may_be_missing() -> None:
    rows = {"ts": [1, 2, 3, 4], "type": list("axxc")}
    query = "abcd"
    options: dict[str, Any] = {"within": 50, "strategy": "strict_contiguity", "weights": {"a": None, "d": None}}
    found = why(rows, acep.regex(query, errors=2, **options))
    assert found.bound == {"a": (0,)}
    said = [(failure.id, failure.arc, failure.reason) for failure in found.failed]
    assert said == [(3, "c", "1 of 2 events in between is surplus: 1 may be missing there")]
    paid = why(rows, acep.regex(query, errors=2, surplus=1, **options))
    assert paid.bound == {"a": (0,), "c": (3,)}


def test_a_found_match_is_said_to_be_there() -> None:
    found = look("SEQ(A a, B b) WITHIN 50", "AB")
    assert str(found).splitlines() == [
        "the stream: 2 events, 1 match",
        "  match: a=0 b=1",
        "every event that the pattern can bind is in a match",
    ]


def test_a_long_list_is_cut() -> None:
    found = look("SEQ(A a, B b) WHERE b.x > 100 WITHIN 99", "A" + "B" * 40, x=list(range(41)))
    lines = str(found).splitlines()
    assert lines[12] == "  ... and 30 more"
    assert lines[14:] == [f"  event {n}: ts={n}, type={'B' if n else 'A'}, x={n}" for n in range(11)]


# Keys -------------------------------------------------------------------------------------------

DAYS = [dt.date(2024, 1, 2), dt.date(2024, 1, 2), dt.date(2024, 1, 3)]
ROWS = {
    "ts": [1, 2, 3],
    "type": ["a", "b", "a"],
    "i": [7, 7, 8],
    "f": [0.5, 0.5, 1.5],
    "s": ["u", "u", "v"],
    "o": [True, True, False],
    "day": DAYS,
}


@pytest.mark.parametrize(
    "key",
    [
        {"i": 7},
        {"i": "7"},
        {"f": 0.5},
        {"s": "u"},
        {"o": True},
        {"o": "True"},
        {"day": DAYS[0]},
        {"day": "2024-01-02"},
        {"s": "u", "i": 7},
    ],
)
def test_a_key_is_what_the_table_holds(key: dict[str, Any]) -> None:
    found = why(ROWS, acep.regex("ab", within="9 s", by=list(key)), key=key, unit="s")
    assert (found.events, found.matches) == (2, 1)
    assert list(found.key) == list(key)
    assert all(str(found.key[name]) == str(value) for name, value in key.items())


@pytest.mark.parametrize(
    ("by", "key", "said"),
    [
        ("i", {"i": 9}, "there is no event with i=9"),
        ("i", {}, "the key needs a value for i"),
        (["i", "s"], {"i": 7}, "the key needs a value for s"),
        (None, {"i": 7}, "`i` is no partition attribute"),
        ("day", {"dya": 7}, "did you mean `day`"),
    ],
)
def test_a_key_that_is_none(by: Any, key: dict[str, Any] | None, said: str) -> None:
    with pytest.raises(DataError, match=said):
        why(ROWS, acep.regex("ab", within=9, by=by), key=key)


def test_columns_are_named_as_for_match() -> None:
    rows = {"time": [1, 2], "kind": ["A", "B"], "name": ["p", "q"]}
    query = acep.parse("PATTERN SEQ(A a, C c) WITHIN 1 min")
    found = why(rows, query, ts="time", type="kind", id="name", unit="s")
    assert found.bound == {"a": ("p",)}
    with pytest.raises(QueryError, match="how long a tick"):
        why(rows, query, ts="time", type="kind")


# Truth ------------------------------------------------------------------------------------------


def test_what_is_said_is_true(cases: Callable[[int], int]) -> None:
    for seed in range(cases(250)):
        case = random_case(seed)
        if not case.query().sources:
            fail_if_wrong(case, complaint_of_reports)


def complaint_of_reports(case: Case) -> str:
    """Say what is wrong with the report on one of the partitions."""
    query = case.query()
    matches = acep.match(case.table(), query, **case.stream)
    rows = sorted(case.events, key=lambda row: (row["ts"], row["seq"]) if "seq" in case.stream else row["ts"])
    names = [row["id"] if "id" in case.stream else case.events.index(row) for row in rows]
    keys = [()] if not matches.keys else dict.fromkeys(tuple(row[k] for k in matches.keys) for row in rows)
    for key in keys:
        if any(value is None or value != value for value in key):
            continue
        named = dict(zip(matches.keys, key, strict=True))
        report = why(case.table(), query, key=named, **case.stream)
        try:
            assert report.matches == sum(match.key == named for match in matches)
            if not report.matches:
                types = {
                    name: row["type"]
                    for name, row in zip(names, rows, strict=True)
                    if all(row[k] == v for k, v in named.items())
                }
                check(report, types, names)
        except AssertionError as error:
            return f"{error}\n{report}"
    return ""


def check(found: Furthest, types: dict[Any, str], order: list[Any]) -> None:
    """What can be told from the types of events alone. ``order`` are the ids of the whole stream."""
    place = {name: i for i, name in enumerate(order)}
    last = max((place[name] for ids in found.bound.values() for name in ids), default=-1)
    assert len(types) == found.events
    for failure in found.failed:
        assert failure.id in types
        assert place[failure.id] > last or failure.arc.startswith("~") or found.state == "everything is bound"
    claim = re.fullmatch(
        r"no event of type (.+) came before (?:the stream ended|the window .*event (\w+).*)", found.ended
    )
    if claim is not None:
        ends = [place[name] for name in order if str(name) == claim[2]] or [len(order)]
        wanted = set(claim[1].split(" or "))
        assert not [name for name, kind in types.items() if last < place[name] < ends[0] and kind in wanted]
    if found.ended.startswith("there is no event of type"):
        assert not set(found.ended.removeprefix("there is no event of type ").split(" or ")) & set(types.values())


@pytest.mark.parametrize(
    ("query", "key", "message"),
    [
        ("re:a", None, "a letter expression needs a window"),
        (5, None, "a query is a text, or what acep.parse, acep.regex or acep.Automaton gives, not int"),
        (acep.regex("a", within=5, by="k"), "k", "key= is a dict of attributes and values, not str"),
        (acep.regex("a", within=5, by="k"), 5, "key= is a dict"),
        (acep.regex("a", within=5, by="k"), {"k": np.array([1, 2])}, "there is no event with k="),
        (acep.regex("a", within=5, by="k"), {5: 5}, "`5` is no partition attribute"),
    ],
)
def test_what_is_no_query_or_key(query: Any, key: Any, message: str) -> None:
    with pytest.raises((QueryError, DataError), match=message):
        why({"ts": [1], "type": ["a"], "k": [1]}, query, key=key)


# Events as lines ----------------------------------------------------------------------------------


@pytest.mark.parametrize("id", [None, "name"])
def test_events_are_shown_with_what_the_query_reads(id: str | None) -> None:
    rows = {"ts": [3, 1], "type": ["B", "A"], "name": ["two", "one"], "day": DAYS[:2], "x": [None, 2], "other": [0, 0]}
    found = why(
        rows, acep.parse("PATTERN SEQ(A a, B b) WHERE [day] AND b.x > a.x WITHIN 9"), key={"day": DAYS[0]}, id=id
    )
    names = ("one", "two") if id else (1, 0)
    assert set(found.shown) == {
        f"event {names[0]}: ts=1, type=A, day=2024-01-02, x=2",
        f"event {names[1]}: ts=3, type=B, day=2024-01-02, x=null",
    }
    assert [f"  {line}" for line in found.shown] == str(found).splitlines()[-2:]
