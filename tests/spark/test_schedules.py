"""Each run of a stream gives all that it makes certain, on every way: also of keys, and in buckets, without rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from tempfile import mkdtemp
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

import acep
from tests.complaints import difference, fail_if_wrong_on_rows
from tests.spark.schedules import WAYS, Step, certain_by_run, net, random_schedule, runs_of, table_of, text_of, way_of
from tests.thinned import thinned_product

DAY, HOUR, MINUTE = 86_400, 3_600, 60


class Asked(NamedTuple):
    """A query, how long it waits for a negation at its end, and the types of events that it needs ("": all)."""

    query: Any
    waits: int = 0
    needs: str = ""


QUERIES = (
    Asked(acep.parse("PATTERN SEQ(a x, b y) WHERE skip_till_next_match(x, y) { [k] } WITHIN 60"), needs="ab"),
    Asked(acep.parse("PATTERN SEQ(a x, ~b y) WHERE [k] WITHIN 10"), waits=10, needs="ab"),
    Asked(acep.parse("PATTERN SEQ(a x, c y, ~b z) WHERE partition_contiguity(x, y) { [k] } WITHIN 30"), waits=30),
    Asked(acep.parse("PATTERN SEQ(a x, b y) WHERE partition_contiguity(x, y) { [k] } WITHIN 60")),
    Asked(acep.regex("acb", within=40, errors=1, by="k"), needs="abc"),
    Asked(acep.parse("PATTERN SEQ(a x, ~b y) WITHIN 10"), waits=10, needs="ab"),
)


@pytest.mark.parametrize("way", WAYS)
def test_each_run_of_a_random_schedule_gives_what_is_certain(
    way: str, cases: Callable[[int], int], tmp_path: Path
) -> None:
    for seed in range(cases(400)):
        rng = Random(seed)
        asked, delay = QUERIES[seed % len(QUERIES)], rng.choice([0, 1, 10])

        def complaint_of(schedule: list[Step], asked: Asked = asked, delay: int = delay, seed: int = seed) -> str:
            folder = Path(mkdtemp(dir=tmp_path))
            run = way_of(way, asked.query, folder, delay, Random(seed), asked.needs)
            rows, certain = list[Mapping[str, Any]](), certain_by_run(asked.query, delay, asked.waits, schedule)
            for number, micro_batches in enumerate(runs_of(schedule)):
                rows += run(micro_batches)
                if complaint := difference(net(rows), certain[number], ("given", "certain")):
                    return f"after run {number}:\n{complaint}"
            return ""

        title = f"seed {seed}, {way}, delay {delay}: {asked.query.text}"
        fail_if_wrong_on_rows(random_schedule(rng, delay), title, complaint_of, text_of)


REVISED = (
    "PATTERN SEQ(a x, c+ y[], ~b z) WHERE skip_till_next_match(x, y[]) { [k] } WITHIN 30",
    "PATTERN SEQ(a x, ~b y, c z) WHERE skip_till_next_match(x, z) { [k] } WITHIN 40",
    "PATTERN SEQ(a x, ~b y) WHERE [k] WITHIN 10",
    "PATTERN SEQ(a x, b y) WHERE skip_till_any_match(x, y) { [k] } WITHIN 40 OUTPUT NON OVERLAP",
)
"""What depends on which matches come first is what a Matcher says."""
CORRECTIONS: tuple[dict[str, Any], ...] = (
    {},
    {"speculation": 5},
    {"speculation": "inf"},
    {"op": "op"},
    {"op": "op", "speculation": "inf"},
)


@pytest.mark.parametrize(("options", "way"), thinned_product(CORRECTIONS, WAYS, every=3), ids=str)
def test_what_may_be_taken_back_is_what_one_process_gives_after_each_run(
    way: str, options: dict[str, Any], cases: Callable[[int], int], tmp_path: Path
) -> None:
    for seed in range(cases(100)):
        rng = Random(seed)
        query, delay = acep.parse(REVISED[seed % len(REVISED)]), rng.choice([1, 10])

        def complaint_of(schedule: list[Step], query: Any = query, delay: int = delay, seed: int = seed) -> str:
            run = way_of(way, query, Path(mkdtemp(dir=tmp_path)), delay, Random(seed), **options)
            matcher = acep.Matcher(query, lateness=delay, seq="sent", id="n", **options)
            rows, wanted = list[Mapping[str, Any]](), list[Mapping[str, Any]]()
            for number, micro_batches in enumerate(runs_of(schedule)):
                for table in micro_batches:
                    wanted += matcher.push(table).to_arrow().to_pylist(maps_as_pydicts="strict")
                rows += run(micro_batches)
                if complaint := difference(net(rows), net(wanted), ("given", "certain")):
                    return f"after run {number}:\n{complaint}"
            return ""

        title = f"seed {seed}, {way}, delay {delay}, {options}: {query.text}"
        schedule = random_schedule(rng, delay, takes_back="op" in options)
        fail_if_wrong_on_rows(schedule, title, complaint_of, text_of)


# By name -------------------------------------------------------------------------------------------


def given_by_run(way: str, query: Any, days: list[list[tuple[Any, ...]]], folder: Path, needs: str = "ab") -> list[int]:
    """How many matches there are after each run; a run is a day, with one file of rows of (time, type, key)."""
    run, numbers, total = way_of(way, query, folder, HOUR, Random(1), needs), iter(range(10_000)), list[int]()
    for rows in days:
        table = table_of([{"ts": t, "type": kind, "k": key, "n": next(numbers)} for t, kind, key in rows])
        total.append(len(run([table])) + (total[-1] if total else 0))
    return total


FIRST = [(DAY + MINUTE * (u + 9 * j), "ab"[j], f"user {u}") for u in range(20) for j in range(2)]
"""On the first day each of 20 users does what is asked for."""


@pytest.mark.parametrize("way", WAYS)
def test_matches_of_quiet_users_come_with_the_next_file_of_whichever_user(way: str, tmp_path: Path) -> None:
    query = acep.parse(
        "PATTERN SEQ(a x, b y) WHERE skip_till_next_match(x, y) { [k] } WITHIN 1 hour".replace("1 hour", "3600")
    )
    days = [FIRST, *([((2 + day) * DAY, "a", "user 3")] for day in range(4))]
    assert given_by_run(way, query, days, tmp_path) == [0, 20, 20, 20, 20]


@pytest.mark.parametrize("way", WAYS)
def test_a_user_who_falls_silent_is_a_match_once_the_window_has_passed(way: str, tmp_path: Path) -> None:
    query = acep.parse("PATTERN SEQ(a x, ~b y) WHERE [k] WITHIN 600")
    days = [[(DAY, "a", "ann")], *([((2 + day) * DAY, "b", "bob")] for day in range(4))]
    assert given_by_run(way, query, days, tmp_path) == [0, 1, 1, 1, 1]


@pytest.mark.parametrize("kind", [None, "heartbeat"])
@pytest.mark.parametrize("way", WAYS)
def test_a_heartbeat_makes_certain_what_waits_for_all_users(way: str, kind: str | None, tmp_path: Path) -> None:
    query = acep.parse("PATTERN SEQ(a x, b y) WHERE skip_till_next_match(x, y) { [k] } WITHIN 3600")
    days = [FIRST, [(2 * DAY, kind, None)], [(3 * DAY, kind, None)]]
    assert given_by_run(way, query, days, tmp_path) == [0, 20, 20]


@pytest.mark.parametrize("way", WAYS)
def test_the_run_that_brings_the_events_gives_what_they_make_certain_themselves(way: str, tmp_path: Path) -> None:
    """The newest event is of one user, and a single micro-batch has all of them."""
    query = acep.parse("PATTERN SEQ(a x, b y) WHERE skip_till_next_match(x, y) { [k] } WITHIN 3600")
    days = [[*FIRST, (2 * DAY, "a", "user 3")]]
    assert given_by_run(way, query, days, tmp_path) == [20]


@pytest.mark.parametrize("way", WAYS)
def test_a_run_without_files_gives_nothing_twice(way: str, tmp_path: Path) -> None:
    query = acep.parse("PATTERN SEQ(a x, b y) WHERE skip_till_next_match(x, y) { [k] } WITHIN 3600")
    run = way_of(way, query, tmp_path, HOUR, Random(1), "ab")
    rows = [{"ts": t, "type": kind, "k": key, "n": n} for n, (t, kind, key) in enumerate(FIRST)]
    nothing: list[pa.Table] = []
    given = [run([table_of(rows)]), run(nothing), run([table_of([{"ts": 2 * DAY, "n": 99}])]), run(nothing)]
    assert [len(matches) for matches in given] == [0, 0, 20, 0]
