"""Points, bundles and counts after each run of a stream, and two queries with states of their own on one stream."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random
from tempfile import mkdtemp
from typing import Any

import pytest

import acep
from tests.complaints import difference, fail_if_wrong_on_rows
from tests.spark.schedules import WAYS, Step, Truth, net, random_schedule, runs_of, table_of, text_of, way_of
from tests.thinned import thinned_product

WINDOW = 40
WAITS = "PATTERN SEQ(a x, ~b y) WHERE [k] WITHIN 40"
"""A match is certain when its window has passed."""
QUERIES = (
    "PATTERN SEQ(a x, b y) WHERE skip_till_next_match(x, y) { [k] } WITHIN 40",
    "PATTERN SEQ(a x, ~c m, b y) WHERE [k] WITHIN 40",
    "PATTERN SEQ(a x, b y) WHERE partition_contiguity(x, y) { [k] } WITHIN 40",
    WAITS,
)


def groups(rows: Sequence[Mapping[str, Any]], output: str) -> list[tuple[Any, ...]]:
    """The points or bundles among rows of a result, in order."""
    names = ("point",) if output == "points" else ("start", "end")
    return sorted(((row.get("key") or {}).get("k"), *(row[name] for name in names)) for row in rows)


def truth_of(query: Any, delay: int) -> Truth:
    """The matches of a query that are certain."""
    return Truth(query, delay, WINDOW if query.text == WAITS else 0)


def certain(truth: Truth, output: str) -> list[tuple[Any, ...]]:
    """The points that are certain, and the bundles that no later point can prolong."""
    points = sorted({((row["key"] or {}).get("k"), row["end"]) for row in truth.matches()})
    if output == "points" or truth.newest is None:
        return points
    bundles = list[list[Any]]()
    for key, point in points:
        if bundles and bundles[-1][0] == key and point - bundles[-1][2] <= WINDOW:
            bundles[-1][2] = point
        else:
            bundles.append([key, point, point])
    return sorted(tuple(bundle) for bundle in bundles if bundle[2] + WINDOW + truth.waits < truth.newest - truth.delay)


@pytest.mark.parametrize(("way", "output"), thinned_product(WAYS, ["points", "bundles", "count"], every=2))
def test_each_run_gives_the_points_bundles_and_counts_that_are_certain(
    way: str, output: str, cases: Callable[[int], int], tmp_path: Path
) -> None:
    """Also those of keys, and in buckets, that have no rows in the run."""
    for seed in range(cases(100)):
        rng = Random(seed)
        query, delay = acep.parse(QUERIES[seed % len(QUERIES)]), rng.choice([0, 1, 10])

        def complaint_of(schedule: list[Step], query: Any = query, delay: int = delay, seed: int = seed) -> str:
            run = way_of(way, query, Path(mkdtemp(dir=tmp_path)), delay, Random(seed), output=output)
            truth, rows = truth_of(query, delay), list[Mapping[str, Any]]()
            for number, micro_batches in enumerate(runs_of(schedule)):
                for table in micro_batches:
                    truth.push(table)
                rows += run(micro_batches)
                if output == "count":
                    complaint = difference(
                        [sum(row["count"] for row in rows)], [len(truth.matches())], ("given", "sure")
                    )
                else:
                    complaint = difference(groups(rows, output), certain(truth, output), ("given", "certain"))
                if complaint:
                    return f"after run {number}:\n{complaint}"
            return ""

        title = f"seed {seed}, {way}, {output}, delay {delay}: {query.text}"
        fail_if_wrong_on_rows(random_schedule(rng, delay), title, complaint_of, text_of)


@pytest.mark.parametrize("way", WAYS)
def test_a_bundle_of_a_quiet_key_comes_with_the_run_that_closes_it(way: str, tmp_path: Path) -> None:
    run = way_of(way, acep.parse(QUERIES[0]), tmp_path, 0, Random(1), output="bundles")
    first = [{"ts": 1_000 + 10 * n, "type": "ab"[n % 2], "k": "quiet", "n": n} for n in range(4)]
    runs = [first, *([{"ts": 1_030 + later, "type": "z", "k": "loud", "n": 10 + later}] for later in (40, 41, 500))]
    assert [groups(run([table_of(rows)]), "bundles") for rows in runs] == [[], [], [("quiet", 1_010, 1_030)], []]


@pytest.mark.parametrize("way", WAYS)
def test_two_queries_with_states_of_their_own_do_not_meet(
    way: str, cases: Callable[[int], int], tmp_path: Path
) -> None:
    """They take the micro-batches of one stream by turns, in one process, with the same numbers."""
    for seed in range(cases(40)):
        rng = Random(seed)
        delay, queries = rng.choice([0, 10]), [acep.parse(text) for text in rng.sample(QUERIES, 2)]

        def complaint_of(schedule: list[Step], queries: Any = queries, delay: int = delay, seed: int = seed) -> str:
            folders = [Path(mkdtemp(dir=tmp_path)) for _ in queries]
            runs = [
                way_of(way, query, folder, delay, Random(seed)) for query, folder in zip(queries, folders, strict=True)
            ]
            truths, given = [truth_of(query, delay) for query in queries], [list[Mapping[str, Any]]() for _ in queries]
            for number, micro_batches in enumerate(runs_of(schedule)):
                for place, (run, truth) in enumerate(zip(runs, truths, strict=True)):
                    for table in micro_batches:
                        truth.push(table)
                    given[place] += run(micro_batches)
                    if complaint := difference(net(given[place]), net(truth.matches()), ("given", "certain")):
                        return f"after run {number}: {truth.query.text}\n{complaint}"
            return ""

        title = f"seed {seed}, {way}, delay {delay}: {', '.join(query.text for query in queries)}"
        fail_if_wrong_on_rows(random_schedule(rng, delay), title, complaint_of, text_of)
