"""Events are shed before they travel behind ``acep.spark.match``: no match is invented, and the loss is reported."""

from __future__ import annotations

import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import Row
from pyspark.sql.types import StructType

import acep
from acep.bucket_state.folders import folder_of
from acep.errors import QueryError
from acep.overload.batch_log import BatchLog, Decision, RunningTotals
from acep.overload.early_shedding import EarlyShedding, decision_in, pack_decision
from acep.overload.event_choice import Exploring
from acep.overload.sampling_units import are_explored, cells_of, hash_of_keys, unit_begins, unit_hashes
from acep.overload.time_bound import TimeBound
from acep.overload.unit_admission import ALL, UnitAdmission
from acep.spark import error_in, shed_batches
from acep.spark.job import make_spark_job
from acep.spark.listening import COUNTS, SHED
from acep.spark.query_start import await_listeners
from acep.spark.shed_columns import (
    GOING,
    NUMBER,
    TICKS,
    cell_column,
    hash_of_key,
    is_explored,
    unit_begin,
    unit_hash,
    with_admission,
)
from acep.spark.workers.state_place import StatePlace, call_name
from tests.spark.streams import Folder, quiet_match
from tests.spark.test_for_each import OPTIONS, QUERY, exact, many_keys, pretend, same_bindings
from tests.thinned import thinned

QUERY_TEXT = "PATTERN SEQ(a p, b q) WHERE [k] WITHIN 9"
MATCH_OPTIONS = {name: value for name, value in OPTIONS.items() if name != "state"}


def run_stream(folder: Folder, query: Any = QUERY, **options: Any) -> tuple[list[dict[str, Any]], list[Any]]:
    """Run ``acep.spark.match`` over what is there: its rows, and the progress of each micro-batch."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows_and_progresses = folder.run(quiet_match(folder.frame(), query, **(MATCH_OPTIONS | options)))
    await_listeners(folder.spark)
    return rows_and_progresses


# The choice of rows ---------------------------------------------------------------------------------------------------


@given(st.data())
def test_rows_are_admitted_as_each_row_by_itself(data: st.DataObject) -> None:
    span, times = data.draw(st.integers(0, 20)), st.integers(-300, 300)
    admission = UnitAdmission(span, delay=data.draw(st.integers(0, 9)))
    cells = st.frozensets(st.integers(0, 7), max_size=3)
    seen = None
    for tick in sorted(data.draw(st.lists(times, max_size=6))):
        seen, favoured = tick, data.draw(st.none() | cells)
        allowed = None if favoured is None or admission.changing else tuple(sorted(favoured))
        admission = admission.with_threshold(seen, data.draw(st.integers(0, ALL)), allowed)
    rows = data.draw(st.lists(st.tuples(st.integers(0, ALL - 1), times, st.integers(0, 200), st.integers(0, 7))))
    hashes, begins, offsets, keys = (np.array([row[i] for row in rows], np.int64) for i in range(4))
    ticks = begins + offsets
    expected = [
        admission.admits(hashed=hashed, begin=begin, tick=tick, cell=cell)
        for hashed, begin, tick, cell in zip(*(a.tolist() for a in (hashes, begins, ticks, keys)), strict=True)
    ]
    assert admission.admit_rows(hashes, begins, ticks, keys).tolist() == expected


def test_a_decision_comes_back_from_its_text() -> None:
    admission = UnitAdmission(9).with_threshold(5, ALL // 2, (1, 2))
    decision = Decision(admission, carried=RunningTotals(rows=7, shed=3, seen=5, uncounted=1))
    back = decision_in(["{}", pack_decision(decision)])
    assert back is not None
    assert (back.admission, back.carried) == (admission, decision.carried)
    assert decision_in(["{}"]) is None


@pytest.fixture
def as_a_task(spark: Any) -> Any:
    """Let tasks of static DataFrames seem to be those of a micro-batch of a stream."""
    names = ("streaming.sql.batchId", "sql.streaming.queryId", "spark.jobGroup.id")
    values = ("1", str(uuid4()), str(uuid4()))
    context = spark.sparkContext
    for name, value in zip(names, values, strict=True):
        context.setLocalProperty(name, value)
    yield values
    for name in names:
        context.setLocalProperty(name, None)


@pytest.mark.long
@pytest.mark.parametrize("keys", thinned([("k",), ("name", "k"), ("x",)], 3, pytest.mark.long))
def test_workers_admit_the_rows_that_the_thresholds_admit(
    spark: Any, as_a_task: tuple[str, str, str], tmp_path: Path, keys: tuple[str, ...]
) -> None:
    from pyspark.sql import functions as sf

    frame = spark.range(3_000).selectExpr(
        "id", "id AS ts", "'a' AS type", "id % 37 - 5 AS k", "concat('\u00e9', id % 5) AS name", "id % 7 / 2.0D AS x"
    )
    query = f"PATTERN SEQ(a p, a q) WHERE skip_till_next_match(p, q) {{ [{', '.join(keys)}] }} WITHIN 9"
    job, _ = make_spark_job(frame.schema, query, seq="id", id="id", buckets=4)
    admission = UnitAdmission(9, seed=3, delay=2)
    for seen, share in ((1_380, 0.4), (1_400, 0.5), (1_430, 0.1)):
        admission = admission.with_threshold(seen, int(share * ALL))
    place = StatePlace(str(tmp_path), 9, 0, 2)
    log = BatchLog(folder_of(str(tmp_path)), as_a_task[1], call_name(job))
    log.begin(1, Decision(admission, carried=RunningTotals(seen=1_430)))
    shedding = EarlyShedding(UnitAdmission(9, seed=3, delay=2), None, paced=False, delay=2)
    rows, _ = with_admission(frame, job, place, shedding, None, "counts")
    travelling = {row[0]: row[1] == row[2] for row in rows.select(TICKS, f"{GOING}0", f"{NUMBER}0").collect()}
    hashed = hash_of_key(frame.schema, job.passes[0].keys)
    begin = unit_begin(admission.length, 3, hashed, sf.col("ts"))
    unit = unit_hash(frame.schema, 3, job.passes[0].keys, begin)
    went = []
    for tick, start, hashed_unit in frame.where("ts > 1390").select("ts", begin, unit).collect():
        went.append(admission.admits(hashed=hashed_unit, begin=start, tick=tick))
        assert travelling.get(tick, False) == went[-1]
    assert 0.05 < sum(went) / len(went) < 0.6


@pytest.mark.parametrize("keys", ["tiny", "whole", "big, name", "name", "x", "price", "day, moment", "yes"])
def test_spark_and_workers_find_the_same_units_cells_and_explored_units(spark: Any, keys: str) -> None:
    from pyspark.sql import functions as sf

    frame = spark.range(500).selectExpr(
        "CAST(id % 100 - 50 AS TINYINT) AS tiny",
        "CAST(id AS INT) AS whole",
        "if(id % 7 = 0, NULL, -id * 3000000000) AS big",
        "repeat('\u00e9x', CAST(id % 30 AS INT)) AS name",
        "id % 7 / 2.0D AS x",
        "CAST(id / 100 AS DECIMAL(12, 2)) AS price",
        "date_add(DATE '2020-01-01', CAST(id AS INT)) AS day",
        "timestamp_micros(id * 1234567) AS moment",
        "id % 2 = 0 AS yes",
        "(id - 250) * 37 AS ticks",
    )
    names, length, seed = keys.split(", "), 240, 11
    exploring = Exploring(None, tuple(names), length, 29, seed)  # type: ignore[arg-type]
    hashed = hash_of_key(frame.schema, names)
    begin = unit_begin(length, seed, hashed, sf.col("ticks"))
    unit = unit_hash(frame.schema, seed, names, begin)
    explored = is_explored(frame.schema, exploring, sf.col("ticks"))
    columns = frame.select("*", hashed, begin, unit, cell_column(hashed), explored).toArrow()
    hashes, begins, units, cells, is_explored_ = (column.to_numpy() for column in columns.columns[-5:])
    ticks = columns["ticks"].to_numpy()
    own_hashes = hash_of_keys([columns[name] for name in names])
    own_begins = unit_begins(length, seed, own_hashes, ticks)
    assert np.array_equal(own_hashes, hashes)
    assert np.array_equal(own_begins, begins)
    assert np.array_equal(unit_hashes(seed, own_hashes, own_begins), units)
    assert np.array_equal(cells_of(own_hashes), cells)
    assert np.array_equal(are_explored(seed, own_hashes, ticks - ticks % length), is_explored_)
    assert ((begins <= ticks) & (ticks < begins + length)).all()
    assert is_explored_.any() or len(np.unique(hashes)) < 100


# The account of the driver -----------------------------------------------------------------------------------------


def report_batch(query: str, run: str, key: str, batch: int) -> None:
    """Let Spark report a micro-batch of ten rows, all of which travelled, to the driver."""
    counts = Row(rows=10, events=10, needed=10, carried=10, late=0, seen=batch)
    observed = {f"{COUNTS}{key}": counts, f"{SHED}{key}": Row(texts="")}
    progress = {"runId": run, "id": query, "batchId": batch, "observedMetrics": observed}
    shed_batches.account_for_batch(SimpleNamespace(**progress, durationMs={"triggerExecution": 1000}), "name")


def shed_call(folder: Path) -> tuple[str, BatchLog, str]:
    """Register a call whose state is in a folder; return its key, its log, and the id of its query."""
    job, _ = make_spark_job(
        StructType().add("ts", "long").add("type", "string").add("k", "long"), QUERY_TEXT, buckets=4
    )
    shedding = EarlyShedding(UnitAdmission(9), TimeBound(1.0), paced=False, delay=0)
    query = str(uuid4())
    key = shed_batches.register_call(job, StatePlace(str(folder), 9, 0, 2, shedding=shedding))
    return key, BatchLog(folder_of(str(folder)), query, call_name(job)), query


def test_calls_of_one_job_are_counted_apart(tmp_path: Path) -> None:
    """The same query may run twice in a session, with its state in two folders, under two budgets."""
    calls = [shed_call(tmp_path / name) for name in ("first", "second")]
    for key, log, query in calls:
        log.begin(0, Decision(UnitAdmission(9)))
        report_batch(query, str(uuid4()), key, 0)
        outcome = log.read_end(0)
        assert outcome is not None
        assert outcome.carried.rows == 10


def test_a_micro_batch_that_is_tried_again_is_counted(tmp_path: Path) -> None:
    """The driver was killed within it. The first micro-batches of each run tell no costs: Spark is just starting."""
    key, log, query = shed_call(tmp_path)
    for run, batches in (("one", range(4)), ("other", range(4, 6))):
        for batch in batches:
            before = log.read_end(batch - 1) if batch else None
            log.begin(batch, before or Decision(UnitAdmission(9)))
            report_batch(query, run, key, batch)
        log.begin(batches[-1] + 1, log.read_end(batches[-1]) or Decision())  # and the driver is killed
        shed_batches.end_shedding(run)
    outcome = log.read_end(5)
    assert outcome is not None
    assert (outcome.carried.rows, outcome.carried.uncounted) == (60, 0)
    assert (outcome.load.run, len(outcome.load.last)) == (2, 2)


# Streams --------------------------------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("output", thinned(["matches", "points", "bundles", "count"], 4, pytest.mark.whole))
def test_a_stream_that_sheds_loses_matches_and_invents_none(
    spark: Any, monkeypatch: pytest.MonkeyPatch, output: str
) -> None:
    table = many_keys(18_000)
    folder = Folder(spark, table, 2_000)
    shares = pretend(monkeypatch, 0.2, 0.8)
    rows, progresses = run_stream(folder, output=output, budget=acep.Budget(latency=0.6))
    last, report = progresses[-1], progresses[-1].report
    assert (last.events, last.late) == (table.num_rows, 0)
    assert last.shed == report.shed > table.num_rows / 10
    assert not report.exact
    assert all(abs(share - 0.5) < 0.15 for share in shares[6:-1]), shares
    flags = {row["exact"] for row in rows}
    assert flags == {True, False}
    every = exact(table)
    if output == "matches":
        assert same_bindings(rows, every)
        points = [len({(str(row["key"]), row["end"]) for row in part}) for part in (rows, every)]
        assert report.interval[0] <= points[0] / points[1] <= report.interval[1]
    elif output == "points":
        assert 0.3 < len(rows) / len({(str(row["key"]), row["end"]) for row in every}) < 1
    else:
        many = "count" if output == "count" else "matches"
        assert 0.3 * len(every) < sum(row[many] for row in rows) < len(every)
        assert report.recall is None


@pytest.mark.long
def test_a_target_below_what_spark_takes_sheds_nothing_and_warns_once(
    spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = many_keys(24_000)
    folder = Folder(spark, table, 1_500)
    shares = pretend(monkeypatch, 0.5, 0.4)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        folder.run(quiet_match(folder.frame(), QUERY, **MATCH_OPTIONS, budget=acep.Budget(latency=0.4)))
        await_listeners(spark)
    assert min(shares) < 0.5, "costs are not known before something is shed"
    assert shares[-4:-1] == [1.0] * 3
    behind = [text for warning in caught if "falls behind" in (text := str(warning.message))]
    assert len(behind) == 1
    assert "of which Spark alone takes" in behind[0]
    assert "nothing is shed" in behind[0]


@pytest.mark.long
def test_a_stream_falls_behind_rather_than_lose_more_than_it_may(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    table = many_keys(24_000)
    shares = pretend(monkeypatch, 0.1, 0.8)
    budget = acep.Budget(latency=0.3, min_recall=0.7)
    rows, progresses = run_stream(Folder(spark, table, 2_000), output="points", budget=budget)
    assert 0.5 < min(shares[:-1]) < 0.8
    points = len({(str(row["key"]), row["end"]) for row in exact(table)})
    assert 0.6 < len(rows) / points < 1
    assert progresses[-1].shed > 0


@pytest.mark.parametrize(
    ("budget", "query", "message"),
    [
        (acep.Budget(latency=1, min_recall=0.5), "PATTERN SEQ(a p, b q) WITHIN 9 seconds", "cannot be"),
        (
            acep.Budget(latency=1, min_recall=0.5),
            "PATTERN SEQ(a p, b q) WHERE [k] WITHIN 9 seconds NON OVERLAP",
            "chosen",
        ),
    ],
)
def test_a_floor_for_the_recall_is_refused_where_events_cannot_be_shed_early(
    spark: Any, budget: acep.Budget, query: str, message: str
) -> None:
    folder = Folder(spark, many_keys(100), 50)
    with pytest.raises(QueryError, match=message):
        quiet_match(folder.frame(), query, **MATCH_OPTIONS, budget=budget)


def test_a_floor_for_the_recall_is_refused_in_a_batch_and_in_sparks_store(spark: Any) -> None:
    folder, budget = Folder(spark, many_keys(100), 50), acep.Budget(cpu=1, min_recall=0.5)
    with pytest.raises(QueryError, match="min_recall= is of a stream"):
        quiet_match(spark.read.parquet(str(folder.path / "events")), QUERY, budget=budget)
    with pytest.raises(QueryError, match="needs state in files"):
        quiet_match(folder.frame(), QUERY, **MATCH_OPTIONS, budget=budget, state="spark")


def test_a_floor_for_the_recall_is_refused_in_one_process() -> None:
    with pytest.raises(QueryError, match="min_recall= is of a stream on Spark"):
        acep.match(many_keys(50), QUERY, budget=acep.Budget(latency=1, min_recall=0.5))
    for bounds, message in (({"min_recall": 0.5}, "bound of time"), ({"latency": 1, "min_recall": 1.5}, "no share")):
        with pytest.raises(QueryError, match=message):
            acep.Budget(**bounds)


@pytest.mark.long
def test_a_stream_goes_on_shedding_after_a_restart(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second run goes on with the thresholds and the counts of the first, even though the last micro-batch of the
    first was not counted; without a budget it is refused, as gaps that end too early could create a match."""
    table = many_keys(24_000)
    folder = Folder(spark, table, 2_000)
    later = sorted((folder.path / "events").iterdir())[8:]
    for path in later:
        path.rename(folder.path / path.name)
    pretend(monkeypatch, 0.2, 0.8)
    budget = acep.Budget(latency=0.6)
    _, before = run_stream(folder, budget=budget)
    assert before[-1].shed > 0
    (done,) = (folder.path / "out-checkpoint" / "acep").rglob(f"{before[-1].batch}/done")
    done.unlink()
    for path in later:
        (folder.path / path.name).rename(path)
    with pytest.raises(Exception, match="shed") as failure:
        run_stream(folder)
    assert "go on with a budget" in str(error_in(failure.value))
    rows, after = run_stream(folder, budget=budget)
    assert after[-1].shed > before[-1].shed - 2_000
    assert after[-1].report.events < table.num_rows
    assert same_bindings(rows, exact(table))


@pytest.mark.long
def test_events_without_a_use_stay_behind_and_are_counted(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """All events count as such; those without a use are not shed, whatever the target."""
    table = many_keys(6_000)
    shares = pretend(monkeypatch, 0.1, 0.1)
    query = acep.parse("PATTERN SEQ(a p, b q) WHERE [k] AND p.x > 3 WITHIN 20 seconds")
    rows, progresses = run_stream(Folder(spark, table, 1_000), query, budget=acep.Budget(latency=9))
    assert set(shares[:-1]) == {1.0}
    assert (progresses[-1].events, progresses[-1].shed) == (table.num_rows, 0)
    assert {row.pop("exact") for row in rows} == {True}
    assert same_bindings(rows, every := exact(table, query))
    assert len(rows) == len(every)


@pytest.mark.long
def test_a_driver_that_does_not_see_the_state_warns_once(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the second micro-batch on its workers would wait for it in each."""
    monkeypatch.setattr(BatchLog, "read_begin", lambda *_: None)
    folder = Folder(spark, many_keys(300), 300, end=False)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        folder.run(quiet_match(folder.frame(), QUERY, **MATCH_OPTIONS, budget=acep.Budget(latency=9)))
        await_listeners(spark)
    messages = [text for warning in caught if "no access to the state" in (text := str(warning.message))]
    assert len(messages) == 1
    assert "does not see what the workers write" in messages[0]
