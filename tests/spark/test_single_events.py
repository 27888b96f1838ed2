"""``for_each_batch`` with a history that says which single events matter by type and values."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from random import Random
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pytest

import acep
from acep.overload.batch_log import Decision
from acep.overload.event_choice import EventChoice, Exploring
from acep.overload.unit_admission import UnitAdmission
from acep.shedding.event_utility import EventUtility
from acep.spark.chunks import ORDER, ROW
from acep.spark.foreach import foreach_batch_run, row_columns
from acep.spark.job import make_spark_job
from acep.spark.metrics import Progress
from tests.spark.streams import Folder, as_dicts
from tests.spark.test_for_each import OPTIONS, exact, pretend, quiet, run, same_bindings
from tests.thinned import thinned

pytestmark = pytest.mark.long

QUERY = acep.parse("PATTERN SEQ(a p, b q) WHERE skip_till_any_match(p, q) { [k] AND p.x + q.x > 16 } WITHIN 20 seconds")
EDGES = (-(2.0**53), 0.0, 3.0, 7.5)


def rising(size: int, seed: int) -> pa.Table:
    """Events of which those with a small ``x`` are hardly ever part of a match."""
    rng, start = np.random.default_rng(seed), dt.datetime(2024, 3, 31, tzinfo=dt.UTC)
    x = np.where(rng.random(size) < 0.3, rng.uniform(8, 10, size), rng.uniform(0, 8, size))
    return pa.table(
        {
            "ts": pa.array([start + dt.timedelta(seconds=i // 10) for i in range(size)], pa.timestamp("us", "UTC")),
            "type": np.where(rng.random(size) < 0.5, "a", "b"),
            "k": rng.integers(0, 60, size),
            "x": x,
            ORDER: np.arange(size),
            ROW: np.arange(size),
        }
    )


@pytest.mark.parametrize("kind", ["double", "bigint"])
def test_spark_keeps_the_events_that_the_history_keeps(spark: Any, kind: str) -> None:
    rng = Random(2)
    values = [None, -1.0, 0.0, 2.0, 3.0, 7.0, 8.0, 2.0**53]
    values += [-0.0, 7.5, float("nan"), float("inf"), -float("inf")] if kind == "double" else []
    rows = [(i - 300, rng.choice(("a", "b", "c", None)), rng.randrange(9), rng.choice(values)) for i in range(600)]
    columns = f"ts bigint, type string, k bigint, x {kind}"
    rows = [(*one[:3], one[3] if kind == "double" or one[3] is None else int(one[3])) for one in rows]
    frame = spark.createDataFrame(rows, columns).selectExpr("*", "ts + 300 AS id")
    order = [*range(15)]
    rng.shuffle(order)
    utility = EventUtility("", ("b", "a"), (("x", EDGES),), tuple(order), (1 / 15,) * 15, (), ())
    query = "PATTERN SEQ(a p, b q) WHERE skip_till_any_match(p, q) { [k] AND q.x > p.x } WITHIN 9"
    job, _ = make_spark_job(frame.schema, query, seq="id", id="id", buckets=4)
    exploring = Exploring.from_admission(utility, ("k",), UnitAdmission(9, seed=3))
    columns_of = row_columns.row_columns(frame, job, None, 0, exploring)
    table = frame.toArrow()
    chosen, _ = exploring.find_explored([table["k"]], table["ts"].to_numpy())
    cells = utility.cells(table, table["type"])
    assert len(set(cells.tolist())) == 15
    assert chosen.any()
    for kept in (0, 5, 15):
        made = columns_of.compute_columns(frame, job, Decision(events=EventChoice(kept)))
        went = {row["id"] for row in made.where("__going0 IS NOT NULL").select("id").collect()}
        wanted = chosen | np.isin(cells, order[:kept])
        assert went == set(table["id"].filter(pa.array(wanted)).to_pylist())


@pytest.mark.parametrize("here", thinned([True, False], 2, pytest.mark.whole), ids=["driver", "workers"])
def test_events_that_matter_travel_first(spark: Any, monkeypatch: pytest.MonkeyPatch, here: bool) -> None:
    history = acep.learn(rising(6_000, 1), QUERY, seq=ORDER, id=ROW)
    table = rising(24_000, 2)
    stream, told, out = Folder(spark, table, 2_000), list[Progress](), list[dict[str, Any]]()
    shares = pretend(monkeypatch, 0.2, 0.8)

    def sink(found: Any, batch: int) -> None:
        out.extend(found.to_pylist(maps_as_pydicts="strict") if here else as_dicts(found))
        if batch == 7 and fails:
            fails.pop()
            raise RuntimeError("the sink fails")

    fails, cores = [True], spark.sparkContext.defaultParallelism
    clock = (table["ts"][2_000].as_py() - table["ts"][0].as_py()).total_seconds()
    options: dict[str, Any] = {"history": history, "on_driver": here, "progress": told.append}
    budget = acep.Budget(cpu=0.6 * cores / clock)
    with pytest.raises(Exception, match="the sink fails"):
        run(stream, quiet(stream, sink, QUERY, budget=budget, **options))
    again = len(out)
    run(stream, quiet(stream, sink, QUERY, budget=budget, **options))
    report, every = told[-1].report, exact(table, QUERY)
    assert told[-1].events == 24_000
    assert told[-1].shed == report.shed > 6_000
    assert all(0.3 < share < 0.55 for share in shares[6:-1]), shares
    assert not report.exact
    assert not out[-1]["exact"]
    assert same_bindings(out, every), "a match was invented"
    points = [len({(str(row["key"]), row["end"]) for row in rows}) for rows in (out, every)]
    assert points[0] > 0.8 * points[1]  # equal chances would find about half
    assert report.interval[0] <= points[0] / points[1] <= report.interval[1]
    (seventh,) = (json.loads(path.read_text()) for path in (stream.path / "state").rglob("7/begun"))
    assert seventh["events"]["kept"]
    assert again > 0


@pytest.mark.parametrize(
    ("output", "single"), [("matches", True), ("points", True), ("bundles", False), ("count", False)]
)
def test_single_events_are_shed_where_match_points_can_be_counted(
    spark: Any, tmp_path: Path, output: str, single: bool
) -> None:
    frame = spark.createDataFrame(rising(10, 1).to_pandas())
    options = {name: value for name, value in OPTIONS.items() if name != "watermark"}
    options |= {"history": acep.learn(rising(6_000, 1), QUERY, seq=ORDER, id=ROW), "output": output}
    call = foreach_batch_run.call_of(
        frame, (str(uuid4()), str(uuid4())), QUERY, tmp_path, "3 seconds", acep.Budget(cpu=1.0), options, False
    )
    assert (call.place.exploring is not None) == single
