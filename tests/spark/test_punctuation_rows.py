"""A row that moves time is no event on any route, whatever counts events: the matches are those of the stream without
it, and they come as early as it says."""

from __future__ import annotations

import random
import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import acep
from acep.events.tables import schema_of
from acep.streaming.punctuation_rows import PUNCTUATION, are_punctuations
from acep.streaming.times import tick_that_decides
from tests.case_counts import CaseCounts
from tests.complaints import difference
from tests.spark.by_hand import as_rows
from tests.spark.schedules import WAYS, Run, net, table_of, way_of
from tests.thinned import thinned_product

QUERIES = {
    "strict": "PATTERN SEQ(a x, b+ y[], c z) WHERE strict_contiguity(x, y[], z) WITHIN 40",
    "strict by key": "PATTERN SEQ(a x, b y) WHERE strict_contiguity(x, y) { [k] } WITHIN 40",
    "partition": "PATTERN SEQ(a x, b y) WHERE partition_contiguity(x, y) { [k] } WITHIN 40",
    "paid": "PATTERN SEQ(a x, b y, c z) WHERE strict_contiguity(x, y, z) WITHIN 40",
    "events": "PATTERN SEQ(a x, b y) WITHIN 3 EVENTS",
    "any between": "PATTERN SEQ(a x, ~ANY n, b y) WITHIN 40",
    "any at the end": "PATTERN SEQ(a x, b y, ~ANY n) WITHIN 8",
    "any": "PATTERN SEQ(ANY x, ANY y) WHERE strict_contiguity(x, y) WITHIN 40",
    "not the type": "PATTERN SEQ(a x, ANY y) WHERE y.k IS NULL WITHIN 40",
    "keyed": "PATTERN SEQ(a x, b y) WHERE skip_till_next_match(x, y) { [k] } WITHIN 40",
}
WAITS = {"any at the end": 8}  # these matches also wait for those that end before, as their bundles depend on them
DELAY = 5

Rows = list[dict[str, Any]]


def query_of(name: str) -> Any:
    return acep.parse(QUERIES[name], errors=1 if name == "paid" else 0)


def beat(until: int) -> dict[str, Any]:
    """The row that decides everything up to this time."""
    return {"ts": tick_that_decides(until, DELAY, (1, 1)), "type": PUNCTUATION, "op": None, "sent": None, "n": None}


def random_days(rng: random.Random) -> list[tuple[Rows, int]]:
    """Some days, each with its events in order of number, and the last time that it decides."""
    days, number, clock = [], 0, 100
    for _ in range(rng.randint(2, 4)):
        rows: Rows = []
        for _ in range(rng.randint(0, 12)):
            clock += rng.choice([0, 1, 1, 3])
            kind, key = rng.choice(["a", "b", "c", "a", "b", None]), rng.choice(["p", "q", None])
            rows.append({"ts": clock, "type": kind, "k": key, "n": number})
            number += 1
        clock += rng.choice([0, 2, 30])
        days.append((rows, clock))
        clock += 1
    return days


def certain_matches(rows: Rows, query: Any, decided: int, waits: int, *, numbered: bool) -> list[dict[str, Any]]:
    """The matches that no event after ``decided`` can change."""
    final = sorted((row for row in rows if row["ts"] <= decided), key=lambda row: (row["ts"], row["n"]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        matches = as_rows(acep.match(table_of(final), query, seq="sent", id=None if numbered else "n"))
    return [row for row in matches if not waits or row["start"] + waits <= decided]


def run_of(rng: random.Random, rows: Rows, until: int) -> Run:
    """The micro-batches of a day, in disorder within the delay. The row that moves time is in the last one of them, or
    comes alone, anywhere among its rows."""
    mixed = sorted(rows, key=lambda row: row["ts"] + rng.uniform(0, DELAY - 1))
    cut = rng.randint(0, len(mixed))
    last = mixed[cut:]
    run = [table_of(mixed[:cut])] if cut else []
    if rng.random() < 0.5:
        run, last = [*run, table_of(last)], []
    last.insert(rng.randint(0, len(last)), beat(until))
    return [*run, table_of(last)]


@pytest.mark.parametrize(("name", "way"), thinned_product([*QUERIES], WAYS, every=3))
def test_a_day_that_is_decided_gives_its_matches_and_no_event_more(
    name: str, way: str, cases: CaseCounts, tmp_path: Path
) -> None:
    query = query_of(name)
    for seed in range(cases(15)):
        rng = random.Random(seed)
        run = way_of(way, query, tmp_path / str(seed), DELAY, rng)
        events, given = Rows(), Rows()
        days, waits = random_days(rng), WAITS.get(name, 0)
        for number, (rows, until) in enumerate([*days, ([], days[-1][1] + 50)]):
            events += rows
            given += run(run_of(rng, rows, until))
            certain = net(certain_matches(events, query, until, waits, numbered=False))
            if waits and number < len(days):
                assert set(net(given)) <= set(certain), f"seed {seed}, day {number}"
            else:
                complaint = difference(net(given), certain, ("given", "certain"))
                assert not complaint, f"seed {seed}, day {number}\n{complaint}"


@pytest.mark.parametrize("way", ["store", "files", "follow"])
def test_it_takes_no_number_of_an_event(way: str, cases: CaseCounts, tmp_path: Path) -> None:
    query = query_of("strict")
    for seed in range(cases(15)):
        rng = random.Random(seed)
        run = way_of(way, query, tmp_path / str(seed), DELAY, rng, id=None)
        events, given = Rows(), Rows()
        for number, (rows, until) in enumerate(random_days(rng)):
            events += rows
            # Of a folder events are numbered as they come, so here in order.
            given += run([table_of([*rows, beat(until)])] if way == "follow" else run_of(rng, rows, until))
            certain = certain_matches(events, query, until, 0, numbered=True)
            complaint = difference(net(given), net(certain), ("given", "certain"))
            assert not complaint, f"seed {seed}, day {number}\n{complaint}"


@pytest.mark.parametrize("way", WAYS)
def test_events_of_a_day_that_is_decided_are_late(way: str, tmp_path: Path) -> None:
    run = way_of(way, query_of("keyed"), tmp_path, DELAY, random.Random(1))
    first = [{"ts": 10, "type": "a", "k": "p", "n": 0}, {"ts": 20, "type": "b", "k": "p", "n": 1}, beat(20)]
    assert [row["bindings"] for row in run([table_of(first)])] == [{"x": [0], "y": [1]}]
    late = [{"ts": 20, "type": "a", "k": "q", "n": 2}, {"ts": 21, "type": "a", "k": "p", "n": 3}]
    second = [*late, {"ts": 22, "type": "b", "k": "p", "n": 4}, {"ts": 23, "type": "b", "k": "q", "n": 5}, beat(30)]
    assert [row["bindings"] for row in run([table_of(second)])] == [{"x": [3], "y": [4]}]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["keyed", "strict"])
def test_no_bound_on_times_holds_for_it(way: str, name: str, tmp_path: Path) -> None:
    run = way_of(way, query_of(name), tmp_path, DELAY, random.Random(1), latest=22)
    kinds = "ab" if name == "keyed" else "abc"
    rows: Rows = [{"ts": 20 + n, "type": kind, "k": "p", "n": n} for n, kind in enumerate(kinds)]
    ahead: dict[str, Any] = {"ts": 1_000, "type": None, "k": None, "n": 9}
    assert run([table_of([*rows, ahead])]) == []
    assert len(run([table_of([beat(22)])])) == 1


def test_without_types_there_is_no_such_row() -> None:
    rows = pa.table({"ts": [1], "type": [PUNCTUATION]})
    assert are_punctuations(rows, schema_of(rows.schema)).all()
    assert not are_punctuations(rows, schema_of(rows.schema, type=None)).any()
    nulls = pa.table({"ts": [1], "type": [None]})
    assert not are_punctuations(nulls, schema_of(nulls.schema)).any()
