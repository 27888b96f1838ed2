"""The page about EQL: on random streams its queries give the sequences of an independent account of EQL."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from functools import cache
from typing import Any

import pyarrow as pa
import pytest

import acep
from tests.eql import Step, kind, matches
from tests.eql_cases import CASES, CONDITIONS, ON_D, PUBLISHED, TASKS, UNTIL, Case, Condition, a, b
from tests.small_streams import Bound, Event, by_stream, different, ours, pushed, streams, table_of_streams
from tests.test_other_languages import HOWTO, table_of

PAGE = (HOWTO / "from_elastic.md").read_text(encoding="utf-8")
# Rows that say that something is not there, or that another way of asking gives it.
NO_SEQUENCE = ("`by ?user`", "`\\| tail", "`sample", "`x == null`", "`between`", "`?field`")
TYPES = ["fail", "login", "download", "run", "connect", "logout"]
TEXTS = [
    "a", "A", "b", "c", "Cmd", "cmd.exe", "CMD.EXE", "cnd", "a_b", "axb", "5%", "", "7", "1.5", "abc",
    "10.0.0.7", "52.1.2.3", None,
]  # fmt: skip


@cache
def sequences(number: int) -> tuple[list[list[Event]], list[set[Bound]]]:
    """Return streams for a case, and what EQL finds in each, in the order of events."""
    case, made = CASES[number], streams("AABBCCDM", "k", "x")
    theirs = [matches(case.steps, events, **case.how) for events in made]
    if case.head is not None:
        order = sorted(
            (made[number][bound[-1][1]]["ts"], number, bound) for number, found in enumerate(theirs) for bound in found
        )
        theirs = [[bound for _, at, bound in order[: case.head] if at == number] for number in range(len(made))]
    return made, [set(found) for found in theirs]


def by_times(text: str, made: Sequence[Sequence[Event]], rows_of_a_push: int) -> list[set[Bound]]:
    """Return the events of what a query with RETURN, or a clause, gives: their times, under the names of the steps."""
    table = table_of_streams(made)
    place = {ts: at for at, ts in enumerate(table["ts"].to_pylist())}
    if rows_of_a_push:
        given = pushed(text, table, rows_of_a_push)
    else:
        given = acep.match_recognize(table, text).to_pylist() if "MEASURES" in text else list(acep.match(table, text))
    rows = [one if isinstance(one, dict) else one.values for one in given]
    bound = [sorted((place[ts], name[0]) for name, ts in row.items() if name not in ("k", "user")) for row in rows]
    return by_stream(bound, made)


@pytest.mark.parametrize("rows_of_a_push", [0, 19], ids=["table", "stream"])
@pytest.mark.parametrize(
    "number", range(len(CASES)), ids=[f"{case.row.strip('`')} {' '.join(case.query.split())[:80]}" for case in CASES]
)
def test_a_row_finds_what_eql_finds(number: int, rows_of_a_push: int) -> None:
    case, (made, theirs) = CASES[number], sequences(number)
    assert sum(map(len, theirs)) >= 20
    how = {"limit": case.head} if case.head is not None else {"rows_of_a_push": rows_of_a_push}
    differences = different(bound_by(case.query, made, **how), theirs, made, "EQL")
    assert bool(differences) == case.differs, differences


def bound_by(text: str, made: Sequence[Sequence[Event]], *, rows_of_a_push: int = 0, **how: Any) -> list[set[Bound]]:
    if "MEASURES" in text or "RETURN" in text:
        return by_times(text, made, rows_of_a_push)
    return ours(text.removeprefix("PATTERN "), made, rows_of_a_push=rows_of_a_push, **how)


def test_each_case_is_what_its_row_shows() -> None:
    rows = table_of("from_elastic")
    cases: list[Case | Condition] = [*CASES, *CONDITIONS]
    alone = [first for first, _ in rows if not any(first.startswith(case.row) for case in cases)]
    assert [first for first in alone if not first.startswith(NO_SEQUENCE)] == []
    for case in cases:
        (shown,) = (second.replace("\\|", "|") for first, second in rows if first.startswith(case.row))
        assert case.shown in shown
        assert case.shown in case.query or case.shown in ("limit", "`_`")
        assert not (isinstance(case, Case) and case.differs) or "differs" in shown


@pytest.mark.parametrize("rows_of_a_push", [0, 19], ids=["table", "stream"])
@pytest.mark.parametrize(("task", "number"), TASKS)
def test_a_task_finds_what_eql_finds(task: int, number: int, rows_of_a_push: int) -> None:
    part = PAGE[PAGE.index(f"### {task}. ") :].split("\n### ")[0].replace("\n... ", "\n")
    query = next_query(part, number)
    made = streams([type for type in TYPES if type in query] * 2 + ["logout"], "user", "path")
    made = [[{**event, "image": event["ts"] % 3} for event in events] for events in made]
    steps, how = TASKS[task, number]
    theirs = [set(matches(steps, events, **how)) for events in made]
    assert sum(map(len, theirs)) >= 8
    assert different(bound_by(query, made, rows_of_a_push=rows_of_a_push), theirs, made, "EQL") == ""


def next_query(part: str, number: int) -> str:
    """Return a query or a clause that a part of the page shows, each in quotation marks."""
    texts: list[tuple[str, str]] = re.findall(r'"""(.+?)"""|"(PATTERN [^"]+)"', part, re.DOTALL)
    return "".join(texts[number]).strip()


@pytest.mark.parametrize("condition", CONDITIONS, ids=lambda condition: condition.query)
def test_a_condition_holds_where_it_holds_in_eql(condition: Condition) -> None:
    draw = random.Random(3)
    rows = [(text, draw.randint(-4, 4)) for text in TEXTS * 30]
    events = {"ts": range(len(rows)), "type": ["A"] * len(rows), "x": [x for x, _ in rows], "n": [n for _, n in rows]}
    found = [match.start for match in acep.match(events, f"PATTERN A a WHERE {condition.query}")]
    known = [(at, x or "", n) for at, (x, n) in enumerate(rows) if x is not None or "a.x" not in condition.query]
    assert found == [at for at, x, n in known if condition.holds(x, n)]
    assert 0 < len(found) < len(rows) - 30


def test_a_null_joins_nothing() -> None:
    events = [{"ts": ts, "type": type, "k": None} for ts, type in enumerate("AB")]
    table = pa.Table.from_pylist(events, pa.schema({"ts": pa.int64(), "type": pa.string(), "k": pa.int64()}))
    assert matches([a, b], events) == []
    assert len(acep.match(table, "PATTERN SEQ(A a, ~(A|B) n, B b) WHERE [k]")) == 0


@pytest.mark.parametrize(("series", "expected"), PUBLISHED.values(), ids=PUBLISHED)
def test_the_account_of_eql_gives_what_elastic_publishes(series: tuple[str, ...], expected: str) -> None:
    events: list[Event] = []
    for event in " ".join(series).split():
        key, _, name = event.rpartition("|")
        events.append({"ts": int(name[1:]), "type": name[0], "k": key})
    events.sort(key=lambda event: event["ts"])
    steps = [Step(name, kind(name)) for name in "ABCD"[: len(series)]]
    assert named(matches(steps, events), events) == expected


@pytest.mark.parametrize(("types", "expected"), UNTIL.items())
def test_the_account_of_eql_ends_sequences_as_documented(types: str, expected: str) -> None:
    events = [{"ts": ts, "type": type, "k": 0} for ts, type in enumerate(types, 1)]
    assert named(matches([a, b], events, until=ON_D), events) == expected


def named(found: list[Bound], events: list[Event]) -> str:
    return ", ".join(" ".join(f"{name.upper()}{events[place]['ts']}" for name, place in bound) for bound in found)
