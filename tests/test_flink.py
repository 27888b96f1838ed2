"""The page about Flink CEP: on random streams its queries give the matches of an independent account of Flink."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

import pytest

import acep
from tests.corpus_text import table_of_rows
from tests.flink import Bound, Event, Step, matches
from tests.flink_cases import CASES, PUBLISHED, SKIPPED, TASKS, UNTIL, Case
from tests.test_other_languages import HOWTO, table_of

STREAMS = 300
# How a row says in which cases it is not the same.
DIFFERS = re.compile(
    r"differs|not there|same cases|single steps|contiguity|one tick less|Flink finds nothing|each event begins"
)
# Rows about functions, results, late events and changes, and of what is not there.
NO_PATTERN = ("a condition", "`select", "`sideOutput", "`DynamicPattern")
PAGE = (HOWTO / "from_flink_cep.md").read_text(encoding="utf-8")


def streams(types: Sequence[str], key: str, value: str) -> list[list[Event]]:
    """Small streams, one after another, each with a key of its own."""
    made: list[list[Event]] = []
    draw, ts = random.Random(7), 0
    for number in range(STREAMS):
        made.append([])
        for _ in range(draw.randint(4, 12)):
            ts += draw.randint(1, 3)
            made[-1].append({"ts": ts, "type": draw.choice(types), value: draw.randint(0, 2), key: number})
        ts += 1000
    return made


def ours(query: str, made: Sequence[Sequence[Event]]) -> list[set[Bound]]:
    """Return the events that a query binds in each stream, by the first letter of the variable and their places."""
    events = [event for stream in made for event in stream]
    places = [(number, place) for number, stream in enumerate(made) for place in range(len(stream))]
    found: list[set[Bound]] = [set() for _ in made]
    for match in acep.match({name: [event[name] for event in events] for name in events[0]}, f"PATTERN {query}"):
        pairs = sorted((int(at), name[0]) for name, ids in match.bindings.items() for at in ids if name != "o")
        (number,) = {places[at][0] for at, _ in pairs}
        found[number].add(tuple((name, places[at][1]) for at, name in pairs))
    return found


def different(ours: list[set[Bound]], theirs: list[set[Bound]], made: list[list[Event]]) -> str:
    """Return the first stream whose matches are not the same, as text; "" if there is none."""
    for mine, flinks, events in zip(ours, theirs, made, strict=True):
        if mine != flinks:
            return f"{table_of_rows(events)}\nonly acep {sorted(mine - flinks)}, only Flink {sorted(flinks - mine)}"
    return ""


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.row.strip('`')} {case.query}")
def test_a_row_finds_what_flink_finds(case: Case) -> None:
    made = streams("AABBBCCD", "k", "x")
    theirs = [matches(case.steps, events, **case.how) for events in made]
    assert sum(map(len, theirs)) >= 20
    differences = different(ours(case.query, made), theirs, made)
    assert bool(differences) == case.differs, differences


def test_each_case_is_what_its_row_shows() -> None:
    rows = table_of("from_flink_cep")
    alone = [first for first, _ in rows if not any(first.startswith(case.row) for case in CASES)]
    assert [first for first in alone if not first.startswith(NO_PATTERN)] == []
    for case in CASES:
        (shown,) = (second.replace("\\|", "|") for first, second in rows if first.startswith(case.row))
        assert case.shown in shown
        assert case.shown in case.query
        assert not case.differs or DIFFERS.search(shown)


@pytest.mark.parametrize(("task", "number"), TASKS)
def test_a_task_finds_what_flink_finds(task: int, number: int) -> None:
    part = PAGE[PAGE.index(f"### {task}. ") :].split("\n### ")[0].replace("\n... ", "\n")
    query = re.findall(r"PATTERN ([^\"]+)", part)[number]
    made = streams(["login", "fail", "fail", "fail", "view", "pay", "pay", "pay", "logout"], "user", "n")
    steps, how = TASKS[task, number]
    theirs = [matches(steps, events, **how) for events in made]
    assert sum(map(len, theirs)) >= 8
    assert different(ours(query, made), theirs, made) == ""


@pytest.mark.parametrize(
    ("steps", "types", "expected"), [case[1:] for case in PUBLISHED], ids=[case[0] for case in PUBLISHED]
)
def test_the_account_of_flink_gives_what_flink_publishes(steps: list[Step], types: str, expected: str) -> None:
    events = [{"ts": ts, "type": type} for ts, type in enumerate(types)]
    assert places_of(matches(steps, events)) == sorted(expected.split())


@pytest.mark.parametrize(
    ("skip", "steps", "types", "expected"), [case[1:] for case in SKIPPED], ids=[case[0] for case in SKIPPED]
)
def test_the_account_of_flink_skips_as_flink_does(skip: str, steps: list[Step], types: str, expected: str) -> None:
    events = [{"ts": ts, "type": type} for ts, type in enumerate(types)]
    assert places_of(matches(steps, events, skip=skip)) == expected.split()


def places_of(bound: set[Bound]) -> list[str]:
    return sorted("".join(str(place) for _, place in match) for match in bound)


def test_until_ends_a_loop_that_has_begun() -> None:
    # Before the first event of the loop Flink leaves the event of until out, as any other.
    events = [{"ts": ts, "type": type, "k": 0, "x": 0} for ts, type in enumerate("ADBBDB")]
    assert ours(f"SEQ(A a, {UNTIL}) WHERE [k]", [events]) == [{(("a", 0), ("b", 2)), (("a", 0), ("b", 2), ("b", 3))}]
