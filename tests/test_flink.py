"""The page about Flink CEP: on random streams its queries give the matches of an independent account of Flink."""

from __future__ import annotations

import re

import pytest

from tests.flink import Bound, Step, matches
from tests.flink_cases import CASES, PUBLISHED, SKIPPED, TASKS, UNTIL, Case
from tests.small_streams import different, ours, streams
from tests.test_other_languages import HOWTO, table_of

# How a row says in which cases it is not the same.
DIFFERS = re.compile(
    r"differs|not there|same cases|single steps|contiguity|one tick less|Flink finds nothing|each event begins"
)
# Rows about functions, results, late events and changes, and of what is not there.
NO_PATTERN = ("a condition", "`select", "`sideOutput", "`DynamicPattern")
PAGE = (HOWTO / "from_flink_cep.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.row.strip('`')} {case.query}")
def test_a_row_finds_what_flink_finds(case: Case) -> None:
    made = streams("AABBBCCD", "k", "x")
    theirs = [matches(case.steps, events, **case.how) for events in made]
    assert sum(map(len, theirs)) >= 20
    differences = different(ours(case.query, made), theirs, made, "Flink")
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
    assert different(ours(query, made), theirs, made, "Flink") == ""


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
