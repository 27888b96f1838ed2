"""The recall experiment: what an ample allowance finds, how recall is counted, replicates, and what is written."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

pytest.importorskip("acep.native._native")

from acep.budget.policies import POLICIES
from acep.checks.watched import digest
from experiments import streams
from experiments.overload import recall
from experiments.overload.paired import area, compare_with_best
from experiments.overload.trial import (
    Exact,
    Run,
    Stream,
    make_warm,
    measure_exact,
    run,
    stream,
    train_policy,
    try_policy,
)
from experiments.overload.workload import Overload
from experiments.overload.workloads import OVERLOADS

TIED = """PATTERN SEQ(A a, B b, C c)
WHERE skip_till_any_match(a, b, c) { [key] AND b.value > a.value AND c.value > a.value AND c.value < b.value }
WITHIN 400"""


class Letters(Overload):
    """A generated stream."""

    def events(self) -> pa.Table:
        """Few, of ten partitions."""
        return streams.letters(keys=10).slice(0, 8_000)


LETTERS = Letters("letters", "a test", "none", TIED)


@cache
def held() -> Stream:
    return stream(LETTERS)


@pytest.mark.parametrize("question", ["points", "matches"])
def test_an_ample_allowance_finds_all(question: str) -> None:
    truth = measure_exact(held(), question, repeats=1)
    for maker in (POLICIES["random"], make_warm(held(), truth.engine, POLICIES["history"])):
        found = try_policy(held(), truth, maker, 1e6, repeats=1)
        assert [found[what] for what in recall.MEASURES] == [1, 1, 1]


def test_work_is_counted_against_the_cheapest_engine_for_the_question() -> None:
    points, matches = measure_exact(held(), "points", repeats=1), measure_exact(held(), "matches", repeats=1)
    assert points.engine.endswith("dominance")
    assert points.run.touches < matches.run.touches
    np.testing.assert_array_equal(points.run.points, matches.run.points)


def test_less_work_finds_less() -> None:
    rows = list(recall.measure_recall(LETTERS, {"random": POLICIES["random"]}, shares=(0.5, 0.25), repeats=1))
    half, little = (row for row in rows if row.question == "points")
    assert 0 < little.points < half.points < 1
    assert little.work <= 0.25
    assert half.work <= 0.5


def test_a_bundle_is_found_with_any_of_its_points() -> None:
    truth = Exact("nodes", Run(np.array([[0, 1, 1], [0, 3, 1], [0, 9, 9], [1, 3, 3]]), 8, 10, 10, 1.0))
    found = Run(np.array([[0, 3, 3], [1, 3, 3]]), 2, 5, 5, 1.0)
    assert truth.recall(found) == (0.5, pytest.approx(2 / 3), 0.25)


def test_a_replicate_leaves_out_partitions_in_both_halves() -> None:
    whole, part = stream(LETTERS), stream(LETTERS, 1)
    left = [sum(map(len, half)) for half in (part.train, part.test)]
    assert 0 < left[0] < sum(map(len, whole.train))
    assert 0 < left[1] < whole.events
    runs = [run(one, one.engine) for one in (whole, part)]
    assert set(part.partitions.numbers) < set(whole.partitions.numbers)
    assert 0 < len(runs[1].points) < len(runs[0].points)


def test_areas_and_intervals() -> None:
    assert area([(0.02, 0.5), (0.1, 0.5), (0.5, 0.5)]) == pytest.approx(0.5)
    same = {"x": [0.5, 0.6], "y": [0.7, 0.9]}
    better = {name: [value + 0.05 for value in values] for name, values in same.items()}
    told = compare_with_best({"history": better, "random": same}, "history")
    assert told.best == "random"
    assert told.interval95 == pytest.approx((0.05, 0.05))
    mixed = {"x": [0.4, 0.5], "y": [0.9, 1.0]}
    low, high = compare_with_best({"history": mixed, "random": same}, "history").interval90
    assert low < 0 < high


@pytest.mark.long
def test_what_is_measured_is_written(tmp_path: Path, data: Callable[[str], Path]) -> None:
    data("sepsis")
    assert "labs-k1-28d" in OVERLOADS
    command = ["labs-k1-28d", "--policies", "random", "history", "--shares", "0.5", "0.1", "--repeats", "1"]
    assert recall.main([*command, "--output", str(tmp_path)]) == 0
    with (tmp_path / "recall.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2 * 2 * 2
    assert all(0 <= float(row["points"]) <= 1 and float(row["work"]) <= float(row["share"]) for row in rows)
    page = (tmp_path / "recall.md").read_text(encoding="utf-8")
    assert "![" in page
    assert "## Points at 10% of the work" in page
    picture = (tmp_path / "recall.svg").read_text(encoding="utf-8")
    assert picture.count("<polyline") == 2 * 2 * 3


@pytest.mark.long
def test_who_has_seen_the_future_learned_from_the_test_half() -> None:
    exact_engine = measure_exact(held(), "points", repeats=1).engine
    histories = [
        train_policy(one, exact_engine, POLICIES["history"]) for one in (held(), replace(held(), train=held().test))
    ]
    seen = train_policy(held(), exact_engine, POLICIES["trained-on-test"])
    assert seen is not None
    assert [one is not None and digest(one) == digest(seen) for one in histories] == [False, True]


@pytest.mark.long
def test_no_policy_is_compared_with_one_that_has_seen_the_future() -> None:
    policies = ("random", "trained-on-test", "history")
    rows = [row for one in policies for row in recall.measure_recall(LETTERS, {one: POLICIES[one]}, 0, (0.1,), 1)]
    body = recall.write_body([*rows, *(replace(row, workload="another") for row in rows)])
    told = body.split("## History against the best of the others")[1].split("\n## ")[0]
    assert "random" in told
    assert "trained-on-test" not in told
    assert "trained-on-test" in body
