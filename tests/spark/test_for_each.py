"""``acep.spark.for_each_batch``: exact into a database whatever fails, and what it sheds before events travel."""

from __future__ import annotations

import datetime as dt
import json
import random
import sqlite3
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import acep
from acep.errors import AcepError, DataError, EngineError, QueryError
from acep.overload.batch_log import Decision, RunningTotals
from acep.overload.early_shedding import EarlyShedding
from acep.overload.sampling_units import cells_of, hash_of_keys
from acep.overload.unit_admission import ALL, UnitAdmission
from acep.spark import error_in, for_each_batch
from acep.spark.chunks import ORDER, ROW
from acep.spark.early_shedding import cell_keys
from acep.spark.foreach import foreach_batch_run, row_columns
from acep.spark.foreach.foreach_batch import ForEachBatch
from acep.spark.job import make_spark_job
from acep.spark.metrics import Progress
from acep.spark.session import SIZES, UNBOUNDED
from acep.spark.shed_columns import cell_column, hash_of_key, unit_hash
from tests.spark.by_hand import as_rows, rows_that_differ, same
from tests.spark.streams import Folder, as_dicts, events_table, quiet_match, shuffled
from tests.thinned import thinned

pytestmark = pytest.mark.long

QUERY = acep.parse("PATTERN SEQ(a p, b q) WHERE skip_till_next_match(p, q) { [k] } WITHIN 20 seconds RETURN p.x AS x")
OPTIONS: dict[str, Any] = {"seq": ORDER, "id": ROW, "watermark": "3 seconds", "buckets": 4}


def many_keys(size: int = 2_000, keys: int = 80, disorder: float = 0.0) -> pa.Table:
    """Events of two types, ten a second."""
    rng = random.Random(5)
    start = dt.datetime(2024, 3, 31, tzinfo=dt.UTC)
    table = pa.table(
        {
            "ts": pa.array([start + dt.timedelta(seconds=i // 10) for i in range(size)], pa.timestamp("us", "UTC")),
            "type": pa.array(rng.choices("ab", k=size)),
            "k": pa.array(rng.choices(range(keys), k=size), pa.int64()),
            "x": pa.array(rng.choices(range(9), k=size), pa.int64()),
            ORDER: pa.array(range(size), pa.int64()),
            ROW: pa.array(range(size), pa.int64()),
        }
    )
    return table.take(shuffled([i / 10 for i in range(size)], disorder, rng)) if disorder else table


def run(stream: Folder, step: Any) -> None:
    """Run a stream to the end of what is there, with a checkpoint of its own."""
    writer = stream.frame().writeStream.foreachBatch(step).trigger(availableNow=True)
    writer.option("checkpointLocation", str(stream.path / "each-checkpoint")).start().awaitTermination()


def quiet(stream: Folder, sink: Callable[[Any, int], None], query: Any = QUERY, **options: Any) -> ForEachBatch:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return for_each_batch(query, sink, **OPTIONS | {"state": stream.path / "state"} | options)


def exact(table: pa.Table, query: Any = QUERY) -> list[dict[str, Any]]:
    return as_rows(acep.match(table.sort_by(ORDER), query, seq=ORDER, id=ROW))


def test_the_driver_gives_tables_of_which_spark_makes_dataframes(spark: Any) -> None:
    """Also where no event of a micro-batch comes to it."""
    sizes = list[int]()

    def sink(matches: pa.Table, _: int) -> None:
        sizes.append(spark.createDataFrame(matches).count())

    events = many_keys(40)
    unused = events.set_column(1, "type", pa.array(["c"] * 40))
    stream = Folder(spark, unused, 20)
    run(stream, quiet(stream, sink, on_driver=True))
    assert sizes == [0] * 3


class Database:
    """A sink that stores each match once: it replaces what it has of a micro-batch. It fails when it is told to."""

    def __init__(self, path: Path) -> None:
        self.path, self.fails, self.seen = path, set[tuple[int, str]](), dict[int, list[list[str]]]()
        with sqlite3.connect(path) as opened:
            opened.execute("CREATE TABLE IF NOT EXISTS matches (batch INTEGER, row TEXT)")

    def __call__(self, found: Any, batch: int) -> None:
        rows = sorted(json.dumps(row, default=str) for row in as_dicts(found))
        assert found.count() == len(rows)
        self.seen.setdefault(batch, []).append(rows)
        self._fail(batch, "before")
        with sqlite3.connect(self.path) as opened:
            opened.execute("DELETE FROM matches WHERE batch = ?", (batch,))
            opened.executemany("INSERT INTO matches VALUES (?, ?)", [(batch, row) for row in rows])
        self._fail(batch, "after")

    def _fail(self, batch: int, when: str) -> None:
        if (batch, when) in self.fails:
            self.fails.remove((batch, when))
            raise RuntimeError("the sink fails")

    def rows(self) -> list[str]:
        """All that is stored."""
        with sqlite3.connect(self.path) as opened:
            return sorted(row for (row,) in opened.execute("SELECT row FROM matches"))


def test_each_match_reaches_a_database_once_whatever_fails(spark: Any, tmp_path: Path) -> None:
    table = many_keys(600, disorder=2)
    stream, sink, told = Folder(spark, table, 100), Database(tmp_path / "matches.db"), list[Progress]()
    sink.fails = {(1, "after"), (3, "before"), (5, "after")}
    step = quiet(stream, sink, progress=told.append)
    for fails in reversed(range(4)):
        if fails:
            with pytest.raises(Exception, match="the sink fails"):
                run(stream, step)
            step = quiet(stream, sink, progress=told.append)  # as a driver that was started again
        else:
            run(stream, step)
    wanted = exact(table)
    assert sink.rows() == sorted(json.dumps(row, default=str) for row in wanted)
    assert len(wanted) > 50
    assert [len(tries) for tries in sink.seen.values()] == [1, 2, 1, 2, 1, 2, 1]
    assert all(one == tries[0] for tries in sink.seen.values() for one in tries)
    assert (told[-1].events, told[-1].late, told[-1].matches) == (600, 0, len(wanted))
    assert told[-1].report.exact
    assert told[-1].report.recall == 1


def test_types_that_no_query_names_stay_where_they_are_but_count(spark: Any) -> None:
    table = events_table(480, types="abcdef", disorder=60)
    stream, told, out = Folder(spark, table, 96), list[Progress](), list[dict[str, Any]]()
    step = quiet(stream, lambda found, _: out.extend(as_dicts(found)), progress=told.append)
    run(stream, step)
    wanted, other = stream.run(quiet_match(stream.frame(), QUERY, **OPTIONS, state=stream.path / "whole"))
    assert rows_that_differ(out, wanted) == ""
    assert len(out) > 9
    assert (told[-1].events, told[-1].late) == (other[-1].events, other[-1].late)
    assert (told[-1].report.events, told[-1].report.late) == (told[-1].events, told[-1].late)
    assert told[-1].late > 40
    assert idle_in(stream) > 50, "all rows travelled"


def idle_in(stream: Folder) -> int:
    """How many events stayed where they were, as no query can use them."""
    logs = (stream.path / "state").rglob("done")
    return max(json.loads(path.read_text())["carried"]["idle"] for path in logs)


OWN = {
    "a negation": acep.parse(
        "PATTERN SEQ(a p, ~c n, b q) WHERE skip_till_next_match(p, q) { [k] AND p.x > 1 AND n.l = 1.5 AND n.x >= p.x }"
        " WITHIN 30 seconds RETURN p.x AS x"
    ),
    "an error": acep.parse(
        "PATTERN SEQ(a p, b q, c r) WHERE [k] AND p.x > 2 AND q.l IS NOT NULL AND r.x IN (2, 1152921504606846977)"
        " WITHIN 20 seconds OUTPUT NON OVERLAP",
        errors=1,
    ),
}
OWN["alternatives and a repetition, of several"] = {
    "one": acep.parse(
        "PATTERN SEQ(a p, (b q | c r)) WHERE skip_till_next_match(p, q, r) { [k] AND q.x = 1 AND r.x > 2 AND p.l > 1 }"
        " WITHIN 60 seconds"
    ),
    "other": acep.parse(
        "PATTERN SEQ(c+ p[], c q) WHERE skip_till_next_match(p[], q)"
        " { [k] AND p[i].x >= 2 AND NOT (q.l > 1 OR q.x = 1) } WITHIN 60 seconds"
    ),
}


@pytest.mark.parametrize("query_name", thinned([*OWN], 3, pytest.mark.whole))
def test_events_that_no_query_can_use_stay_where_they_are(spark: Any, query_name: str) -> None:
    table, query = events_table(400), OWN[query_name]
    stream, told, out = Folder(spark, table, 200), list[Progress](), list[dict[str, Any]]()
    run(stream, quiet(stream, lambda found, _: out.extend(as_dicts(found)), query=query, progress=told.append))
    wanted = acep.match(table.sort_by(ORDER), query, seq=ORDER, id=ROW)
    for name, matches in wanted.items() if isinstance(query, dict) else [(None, wanted)]:
        rows = [row for row in out if row.get("query") == name]
        found = [{key: value for key, value in row.items() if key != "query"} for row in rows]
        assert rows_that_differ(found, as_rows(matches)) == ""
        assert len(matches) > 9
    keyed = [kind for kind, key in zip(*(table.column(n).to_pylist() for n in ("type", "k")), strict=True) if key]
    assert (told[-1].events, told[-1].late) == (len(keyed), 0)
    assert idle_in(stream) > keyed.count("d") + 40, "only types were left behind"


def test_under_a_budget_of_work_the_answer_is_that_of_every_route(spark: Any) -> None:
    table, budget = events_table(400, types="abcdef"), acep.Budget(work=0.05)
    stream, told, out = Folder(spark, table, 200), list[Progress](), list[dict[str, Any]]()
    run(stream, quiet(stream, lambda found, _: out.extend(as_dicts(found)), budget=budget, progress=told.append))
    whole = quiet_match(stream.frame(), QUERY, **OPTIONS, state=stream.path / "whole", budget=budget)
    wanted, other = stream.run(whole)
    assert rows_that_differ(out, wanted) == ""
    assert told[-1].shed == other[-1].shed > 0
    assert idle_in(stream) == 0


def same_bindings(found: list[dict[str, Any]], every: list[dict[str, Any]]) -> bool:
    """Whether all that was found is among all that there is to find."""
    known = {str(sorted(row["bindings"].items())) for row in every}
    return {str(sorted(row["bindings"].items())) for row in found} <= known


def nothing(found: Any) -> None:
    """Use nothing of what was found."""


def some(found: Any) -> None:
    """Use a part of it."""
    found.limit(1).collect()


def twice(found: Any) -> None:
    """Use it again and again, beside itself too."""
    rows = sorted(map(str, as_dicts(found)))
    assert sorted(map(str, as_dicts(found.coalesce(1)))) == rows
    assert sorted(map(str, as_dicts(found.unionAll(found)))) == sorted(2 * rows)
    assert found.alias("a").join(found.alias("b"), ["key", "start", "end"]).count() >= len(rows)


def beside(found: Any) -> None:
    """Use it in threads of the sink's own."""
    with ThreadPoolExecutor(2) as pool:
        one, other = pool.map(as_dicts, [found, found.filter("true")])
    assert rows_that_differ(one, other) == ""


def kept(found: Any) -> None:
    """Look whether there is any, then use it."""
    found = found.persist()
    found.isEmpty()
    found.collect()
    found.unpersist()


def failing(found: Any) -> None:
    """Fail once, and go on."""

    def fails(batches: Any) -> Any:
        yield from batches
        raise ValueError("a part of the sink")

    with suppress(Exception):
        found.mapInArrow(fails, found.schema).collect()


USES = (nothing, some, twice, beside, kept, failing)


def test_a_micro_batch_is_done_however_much_of_it_a_sink_uses(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(foreach_batch_run, "PATIENCE", 1.0)
    table = many_keys(1_000)
    stream, told, out = Folder(spark, table, 125), list[Progress](), list[dict[str, Any]]()

    def sink(found: Any, batch: int) -> None:
        if batch < len(USES):
            USES[batch](found)
        else:
            out.extend(as_dicts(found))

    run(stream, quiet(stream, sink, progress=told.append))
    wanted = exact(table)
    assert [one.events for one in told] == [*range(125, 1_001, 125), 1_000]
    assert told[-1].matches == len(wanted)
    assert 0 < len(out) < len(wanted)
    assert same_bindings(out, wanted)


def pretend(monkeypatch: pytest.MonkeyPatch, fixed: float, carry: float) -> list[float]:
    """Let micro-batches seem to take ``fixed`` seconds and ``carry`` more by the share that travels."""
    after, shares = EarlyShedding.next_decision, list[float]()

    def pretended(call: Any, decision: Any, seen: Any, told: Any, _: float) -> Any:
        shares.append(seen["carried"] / (seen["needed"] or 1))
        return after(call, decision, seen, told, fixed + carry * shares[-1])

    monkeypatch.setattr(EarlyShedding, "next_decision", pretended)
    return shares


@pytest.mark.parametrize("output", thinned(["matches", "points", "bundles", "count"], 4, pytest.mark.whole))
def test_what_is_shed_before_the_shuffle_loses_matches_and_invents_none(
    spark: Any, monkeypatch: pytest.MonkeyPatch, output: str
) -> None:
    table = many_keys(24_000)
    stream, told, out = Folder(spark, table, table.num_rows // 12), list[Progress](), list[dict[str, Any]]()
    shares = pretend(monkeypatch, 0.2, 0.8)
    step = quiet(
        stream,
        lambda found, _: out.extend(as_dicts(found)),
        budget=acep.Budget(latency=0.6),
        output=output,
        progress=told.append,
    )
    run(stream, step)
    last, report = told[-1], told[-1].report
    assert (last.events, last.late) == (table.num_rows, 0)
    assert last.shed == report.shed > table.num_rows / 10
    assert not report.exact
    # Half of what can be saved must be: the share settles at (0.6 - 0.2) / 0.8.
    assert all(abs(share - 0.5) < 0.12 for share in shares[6:-1]), shares
    whole = exact(table)
    flags = [row["exact"] for row in out]
    assert flags[0]
    assert not flags[-1]
    if output in ("bundles", "count"):
        many = "count" if output == "count" else "matches"
        assert 0.3 * len(whole) < sum(row[many] for row in out) < len(whole)
        assert report.recall is None
        assert "not counted by key" in report.unknown
        return
    assert report.interval[0] < report.interval[1] < 1
    if output == "matches":
        found = [{name: value for name, value in row.items() if name not in ("exact", "bundle")} for row in out]
        every = [{name: value for name, value in row.items() if name != "bundle"} for row in whole]
        kept = [row for row in every if row in found]
        assert same(found, kept), "a match was invented"
        points = [len({(str(row["key"]), row["end"]) for row in rows}) for rows in (found, every)]
        assert report.interval[0] <= points[0] / points[1] <= report.interval[1]
        assert report.recall == pytest.approx(points[0] / points[1], abs=0.1)


ANY = acep.parse(
    "PATTERN SEQ(a p, b q, a r) WHERE skip_till_any_match(p, q, r) { [k] AND p.x + q.x <= 2 * r.x } WITHIN 100 seconds"
    " RETURN p.x AS x"
)
"""Many partial matches: matching is the cost."""


@pytest.mark.whole
def test_where_partial_matches_multiply_the_workers_shed_and_all_events_travel(
    spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = many_keys(6_000)
    stream, told, out = Folder(spark, table, 600), list[Progress](), list[dict[str, Any]]()
    shares = pretend(monkeypatch, 0.01, 0.0)
    budget = acep.Budget(latency=0.06)
    run(stream, quiet(stream, lambda found, _: out.extend(as_dicts(found)), ANY, budget=budget, progress=told.append))
    assert shares[:10] == [1.0] * 10
    whole = exact(table, ANY)
    assert 0 < len(out) < len(whole)
    assert same_bindings(out, whole), "a match was invented"
    assert told[-1].report.shed > 0
    assert not told[-1].report.exact
    assert told[-1].report.unknown == "too little was watched to say how many"
    # Each bucket says it of itself: once it has shed, it is exact no more. On a busy machine no match may come later.
    for key in {str(row["key"]) for row in out}:
        flags = [row["exact"] for row in out if str(row["key"]) == key]
        assert flags == sorted(flags, reverse=True)


@pytest.mark.whole
def test_where_spark_takes_the_time_too_units_are_shed_before_the_workers_shed(
    spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = many_keys(6_000)
    stream, told, out = Folder(spark, table, 500), list[Progress](), list[dict[str, Any]]()
    shares = pretend(monkeypatch, 2.0, 8.0)
    step = quiet(
        stream,
        lambda found, _: out.extend(as_dicts(found)),
        ANY,
        budget=acep.Budget(latency=6.0),
        progress=told.append,
    )
    run(stream, step)
    # What Spark alone seems to take is 2 + 8 * share, less the little time of the workers.
    assert all(abs(share - 0.5) < 0.12 for share in shares[6:-1]), shares
    assert told[-1].shed > 1_000
    assert same_bindings(out, exact(table, ANY)), "a match was invented"
    # Without the budget it goes on: what was shed stays shed.
    run(stream, quiet(stream, lambda found, _: out.extend(as_dicts(found)), ANY, progress=told.append))
    assert not told[-1].report.exact


@pytest.mark.whole
def test_a_share_of_the_cores_is_kept_by_what_travels(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    table = many_keys(24_000)
    stream, told = Folder(spark, table, 2_000), list[Progress]()
    shares = pretend(monkeypatch, 0.2, 0.8)
    # While 2,000 events come, 0.6 seconds of all cores.
    clock = (table["ts"][2_000].as_py() - table["ts"][0].as_py()).total_seconds()
    budget = acep.Budget(cpu=0.6 * spark.sparkContext.defaultParallelism / clock)
    run(stream, quiet(stream, lambda *_: None, budget=budget, progress=told.append))
    assert all(abs(share - 0.5) < 0.12 for share in shares[6:-1]), shares
    assert told[-1].events == 24_000
    assert told[-1].shed == told[-1].report.shed > 2_400


@pytest.mark.whole
def test_integers_are_shed_too_and_the_row_that_ends_their_stream_is_none_of_them(
    spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = many_keys(8_000)
    table = table.set_column(0, "ts", pa.array([i // 10 for i in range(8_000)], pa.int64()))
    stream, told = Folder(spark, table, 700), list[Progress]()
    pretend(monkeypatch, 0.2, 0.8)
    run(
        stream,
        quiet(stream, lambda *_: None, budget=acep.Budget(latency=0.4), progress=told.append, unit="s"),
    )
    assert told[-1].events == 8_000
    assert told[-1].shed > 500


@pytest.mark.whole
def test_of_several_queries_the_recall_is_not_told(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    stream, told = Folder(spark, many_keys(6_000), 700), list[Progress]()
    pretend(monkeypatch, 0.2, 0.8)
    queries = {"one": QUERY, "other": acep.parse("PATTERN SEQ(b p, a q) WHERE [k] WITHIN 9 seconds")}
    run(stream, quiet(stream, lambda *_: None, queries, budget=acep.Budget(latency=0.4), progress=told.append))
    assert told[-1].shed > 500
    assert all(one.recall is None and one.unknown for one in (told[-1].report, *told[-1].reports.values()))


@pytest.mark.parametrize("keys", [("k",), ("name", "k"), ("x",)])
def test_spark_admits_the_rows_that_the_thresholds_admit(spark: Any, keys: tuple[str, ...]) -> None:
    from pyspark.sql import functions as sf

    frame = spark.range(3_000).selectExpr(
        "id", "id AS ts", "'a' AS type", "id % 37 - 5 AS k", "concat('\u00e9', id % 5) AS name", "id % 7 / 2.0D AS x"
    )
    query = f"PATTERN SEQ(a p, a q) WHERE skip_till_next_match(p, q) {{ [{', '.join(keys)}] }} WITHIN 9"
    job, _ = make_spark_job(frame.schema, query, seq="id", id="id", buckets=4)
    admission, known = UnitAdmission(9, seed=3, delay=2), cell_keys(frame, job)
    assert known == (() if keys == ("x",) else tuple(sorted(keys)))
    cells = np.unique(cells_of(hash_of_keys(frame.select(*known).toArrow().columns))).tolist() if known else []
    favoured = (None, None, tuple(sorted(cells[::3])), None)
    for seen, share, some in zip((1_380, 1_400, 1_430, 1_460), (0.4, 0.5, 0.1, 0.3), favoured, strict=True):
        admission = admission.with_threshold(seen, int(share * ALL), some if known else None)
    assert admission.changing == bool(known)
    columns = row_columns.row_columns(frame, job, None, 0)
    rows = columns.compute_columns(frame, job, Decision(admission, carried=RunningTotals(seen=1_460))).where(
        "ts > 1458 AND ts < 1600"
    )
    hashed = unit_hash(frame.schema, 3, sorted(keys), sf.col("__begin0")).alias("hashed")
    cell_number = (cell_column(hash_of_key(frame.schema, known)) if known else sf.lit(0)).alias("cell")
    going, went = sf.col("__going0").isNotNull(), []
    for row in rows.select("*", hashed, cell_number, going.alias("went")).collect():
        cell = row["cell"]
        told = admission.admits(hashed=row["hashed"], begin=row["__begin0"], tick=row["ts"], cell=cell)
        assert row["went"] == told
        assert not known or row["__cell"] == cell
        went.append(told)
    assert 0.05 < sum(went) / len(went) < 0.6


@pytest.mark.whole
def test_where_nothing_can_be_saved_nothing_is_shed(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    stream, told = Folder(spark, many_keys(24_000), 2_000), list[Progress]()
    shares = pretend(monkeypatch, 2.0, 0.0)
    step = quiet(stream, lambda *_: None, budget=acep.Budget(latency=0.5), progress=told.append)
    with pytest.warns(UserWarning, match="falls behind latency=0.5"):
        run(stream, step)
    assert shares[6:-1].count(1.0) >= 3, shares
    assert told[-1].events == 24_000


@pytest.mark.whole
def test_a_micro_batch_ends_under_the_budget_that_it_began_with(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    table = many_keys(12_000)
    stream, told, out = Folder(spark, table, 1_000), list[Progress](), list[dict[str, Any]]()
    pretend(monkeypatch, 0.2, 0.8)
    stop, budget = [7], acep.Budget(latency=0.4)

    def sink(found: Any, batch: int) -> None:
        out.extend(as_dicts(found))
        if batch in stop:
            stop.remove(batch)
            raise RuntimeError("the sink fails")

    with pytest.raises(Exception, match="the sink fails"):
        run(stream, quiet(stream, sink, budget=budget, progress=told.append))
    assert told[-1].shed > 0
    first = [row for row in out if "exact" in row]
    run(stream, quiet(stream, sink, progress=told.append))  # without the budget: what was cut short stays so
    assert told[-1].events == 12_000
    assert not told[-1].report.exact
    assert not first[-1]["exact"]
    (seventh,) = (json.loads(path.read_text()) for path in (stream.path / "state").rglob("7/begun"))
    (eighth,) = (json.loads(path.read_text()) for path in (stream.path / "state").rglob("8/begun"))
    assert seventh["admission"]["thresholds"][-1] < ALL
    assert eighth["admission"]["thresholds"][-1] == ALL > min(eighth["admission"]["thresholds"])
    assert same_bindings(out, exact(table)), "a match was invented"


def test_where_a_query_does_not_allow_it_events_are_shed_behind_the_shuffle(spark: Any) -> None:
    table = many_keys(200)
    stream = Folder(spark, table, 100)
    query = acep.parse("PATTERN SEQ(a p, ~b q) WHERE skip_till_next_match(p) { [k] } WITHIN 20 seconds")
    out: list[dict[str, Any]] = []
    step = for_each_batch(
        query,
        lambda found, _: out.extend(as_dicts(found)),
        **OPTIONS | {"state": stream.path / "state", "budget": acep.Budget(latency=60)},
    )
    with pytest.warns(UserWarning, match="shed behind the shuffle, which saves less time: a negation stands"):
        run(stream, step)
    assert rows_that_differ([{n: v for n, v in row.items() if n != "exact"} for row in out], exact(table, query)) == ""


@pytest.mark.whole
def test_a_query_of_counted_events_gets_all_of_them(spark: Any) -> None:
    table = many_keys(300, keys=3).drop_columns([ROW])
    stream, out = Folder(spark, table, 60), list[dict[str, Any]]()
    query = acep.parse("PATTERN SEQ(a p, a q) WHERE partition_contiguity(p, q) { [k] } WITHIN 5 EVENTS")
    run(stream, quiet(stream, lambda found, _: out.extend(as_dicts(found)), query=query, id=None))
    wanted = as_rows(acep.match(table, query, seq=ORDER))
    # Without ids events are numbered within their partition, so that only the places are the same.
    places = [sorted((row["key"]["k"], row["start"], row["end"]) for row in rows) for rows in (out, wanted)]
    assert places[0] == places[1] != []


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"sink": None}, DataError, "sink= is called"),
        ({"progress": 3}, DataError, "progress= is called"),
        ({"state": "spark"}, DataError, "keeps its state in files of a folder"),
        ({"observation": 1}, QueryError, "no option observation="),
    ],
)
def test_wrong_arguments(options: dict[str, Any], kind: type[AcepError], message: str) -> None:
    told: dict[str, Any] = {"sink": print, "state": "/nowhere"} | options
    with pytest.raises(kind, match=message):
        for_each_batch(QUERY, **told)


@pytest.mark.parametrize(("own", "there"), [(None, UNBOUNDED), ("64MB", "64MB")])
def test_the_bytes_of_a_batch_are_left_unbounded_for_this_stream_alone(spark: Any, own: str | None, there: str) -> None:
    seen, before = [], spark.conf.get(SIZES)
    stream = Folder(spark, many_keys(80), 40)
    try:
        spark.conf.unset(SIZES) if own is None else spark.conf.set(SIZES, own)
        session = spark.conf.get(SIZES)
        run(stream, quiet(stream, lambda found, _: seen.append(found.sparkSession.conf.get(SIZES))))
        assert set(seen) == {there}
        assert spark.conf.get(SIZES) == session != UNBOUNDED
    finally:
        spark.conf.set(SIZES, before)


def test_outside_of_a_stream_it_is_refused(spark: Any, tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="outside of a streaming query"):
        for_each_batch(QUERY, print, state=tmp_path, **OPTIONS)(spark.range(3), 0)


def test_a_stream_without_a_watermark_is_refused_in_one_line(spark: Any) -> None:
    stream = Folder(spark, many_keys(40), 40)
    with pytest.raises(Exception, match="needs a watermark") as failed:
        run(stream, quiet(stream, lambda *_: None, watermark=None))
    error = error_in(failed.value)
    assert isinstance(error, DataError)
    assert error.hint


def test_a_damaged_log_is_refused(spark: Any) -> None:
    stream = Folder(spark, many_keys(80), 40, end=False)
    run(stream, quiet(stream, lambda *_: None))
    for path in (stream.path / "state").rglob("done"):
        path.write_text('{"format": 1, "carried": 3}')
    stream.end()
    with pytest.raises(Exception, match="state is damaged"):
        run(stream, quiet(stream, lambda *_: None))
