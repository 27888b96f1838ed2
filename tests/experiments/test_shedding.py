"""Overload on Spark: the harness runs small, and its page says what its rows say."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from experiments import streams
from experiments.overload.workload import Overload
from experiments.spark import shedding, single_events, units
from experiments.spark.shedding import Trial, main, write_body

pytestmark = pytest.mark.long

TIED = "PATTERN SEQ(A a, B b, C c) WHERE skip_till_any_match(a, b, c) { [key] AND b.value > a.value } WITHIN 300"


class Skewed(Overload):
    """Letters of a hundred keys, a fifth of which have matches."""

    def events(self) -> pa.Table:
        """In order of time."""
        table = streams.letters(keys=100).slice(0, 30_000)
        dull = pc.greater_equal(table["key"], 20)
        return table.set_column(1, "type", pc.if_else(dull, "D", table["type"].cast(pa.string())))


@pytest.mark.whole
def test_a_query_runs_exactly_under_a_budget_and_with_events_dropped(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shedding, "BETWEEN", (0.5,))
    monkeypatch.setattr(shedding, "PARTS", {"rise": ()})
    arguments = ["--queries", "rise", "--batches", "2", "--scale", "0.02", "--output", str(tmp_path)]
    before = "seq,exact,0.0,2.5,1.0,7,1.0,1.0\nseq,floor,0.0,1.5,0.0,0,0.0,-1.0\nrise,of before,0.0,1.0,1.0,1,1.0,1.0\n"
    (tmp_path / "shedding.csv").write_text("query,way,target,seconds,carried,points,recall,told\n" + before)
    assert main(arguments, spark) == 0
    lines = (tmp_path / "shedding.csv").read_text(encoding="utf-8").splitlines(keepends=True)
    assert "".join(lines[1:3]) == before[: before.index("rise")]  # a query that was not measured stays
    rows = {row["way"]: row for row in csv.DictReader(lines) if row["query"] == "rise"}
    assert "of before" not in rows
    assert {"exact", "floor", "budget"} <= set(rows)
    assert float(rows["exact"]["recall"]) == 1
    assert int(rows["exact"]["points"]) > 100
    assert (float(rows["floor"]["carried"]), int(rows["floor"]["points"])) == (0, 0)
    page = (tmp_path / "shedding.md").read_text(encoding="utf-8")
    assert page.index("## seq") < page.index("## rise")


def test_the_page_says_how_near_a_budget_came() -> None:
    found = [
        Trial("rise", "exact", 0, 2.0, 1.0, 1000, 1.0, 1.0),
        Trial("rise", "floor", 0, 1.0, 0.0, 0, 0.0, 0.0),
        Trial("rise", "budget", 1.5, 1.65, 0.55, 500, 0.5, 0.52),
    ]
    assert "| budget | 1.50 | 1.65 | 1.10 | 0.55 | 0.500 | 0.520 | 0.400 |" in write_body(found)


def test_what_travels_is_compared_with_random_events_and_keys(tmp_path: Path) -> None:
    workloads = {one.name: one for one in (Skewed("skewed", "a test", "none", TIED),)}
    assert units.main(["skewed", "--seeds", "2", "--output", str(tmp_path)], workloads) == 0
    with (tmp_path / "units.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2 * len(units.SHARES) * len(units.WAYS)
    recall = {way: [float(row["recall"]) for row in rows if row["way"] == way] for way in units.WAYS}
    carried = {way: [float(row["carried"]) for row in rows if row["way"] == way] for way in units.WAYS}
    assert carried["utility"] == carried["events"]
    assert all(0.05 < one < 0.8 for one in carried["utility"])
    assert sum(recall["utility"]) > 1.2 * sum(recall["equal"])
    assert all(one > other for one, other in zip(recall["equal"], recall["events"], strict=True))
    page = (tmp_path / "units.md").read_text(encoding="utf-8")
    assert "| skewed | none |" in page
    assert "| events | +" in page


def test_single_events_that_matter_find_more_than_their_share(tmp_path: Path) -> None:
    few = TIED.replace("b.value > a.value", "a.value > 500000 AND b.value > 500000 AND c.value > 500000").replace(
        "300", "30000"
    )
    workloads = {one.name: one for one in (Skewed("few", "a test", "none", few), Skewed("all", "a test", "none", TIED))}
    assert single_events.main(["few", "all", "--output", str(tmp_path)], workloads) == 0
    with (tmp_path / "single_events.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2 * len(single_events.SHARES)
    (half,) = (row for row in rows if (row["workload"], row["share"]) == ("few", "0.5"))
    assert half["ordered"] == "True"
    assert float(half["recall"]) > 0.85 > 0.5 >= float(half["kept"])
    assert "| few | none |" in (tmp_path / "single_events.md").read_text(encoding="utf-8")
