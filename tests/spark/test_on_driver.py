"""``for_each_batch(on_driver=True)``: a micro-batch matched in the driver's process is the one that workers match."""

from __future__ import annotations

import json
import threading
import warnings
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import acep
from acep.errors import DataError
from acep.overload.early_shedding import EarlyShedding
from acep.spark import error_in, for_each_batch
from acep.spark.chunks import ORDER
from acep.spark.foreach import foreach_batch_run
from acep.spark.metrics import Progress
from acep.spark.workers.file_state_worker import _on_cores
from tests.spark.streams import Folder, as_dicts
from tests.spark.test_for_each import OPTIONS, QUERY, exact, idle_in, many_keys, pretend, run, same_bindings

pytestmark = pytest.mark.long


def quiet(stream: Folder, sink: Any, query: Any = QUERY, *, here: bool = True, **options: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return for_each_batch(query, sink, on_driver=here, **OPTIONS | {"state": stream.path / "state"} | options)


def test_it_gives_what_workers_give_and_either_goes_on_where_the_other_stopped(spark: Any) -> None:
    table = many_keys(600, disorder=2)
    stream, told, seen = Folder(spark, table, 100), list[Progress](), dict[int, list[list[str]]]()
    fails = [(1, True), (3, False)]
    schemas = []

    def sink(found: Any, batch: int) -> None:
        assert isinstance(found, pa.Table) == here
        rows = found.to_pylist(maps_as_pydicts="strict") if here else as_dicts(found)
        schemas.append(found.schema if here else found.toArrow().schema)
        seen.setdefault(batch, []).append(sorted(json.dumps(row, default=str) for row in rows))
        if (batch, here) in fails:
            raise RuntimeError("the sink fails")

    for here in (True, False):
        with pytest.raises(Exception, match="the sink fails"):
            run(stream, quiet(stream, sink, here=here, progress=told.append))
    here = True
    run(stream, quiet(stream, sink, here=here, progress=told.append))
    assert [len(tries) for _, tries in sorted(seen.items())] == [1, 2, 1, 2, 1, 1, 1]
    assert all(one == tries[0] for tries in seen.values() for one in tries)
    wanted = exact(table)
    rows = [row for tries in seen.values() for row in tries[0]]
    assert sorted(rows) == sorted(json.dumps(row, default=str) for row in wanted)
    assert (told[-1].events, told[-1].late, told[-1].matches) == (600, 0, len(wanted))
    assert all(one.equals(schemas[0]) for one in schemas)


def test_several_queries_have_a_column_that_says_whose_a_match_is(spark: Any) -> None:
    table = many_keys(400)
    queries = {"one": QUERY, "other": acep.parse("PATTERN SEQ(b p, a q) WHERE [k] WITHIN 9 seconds")}
    stream, out = Folder(spark, table, 200), list[dict[str, Any]]()
    run(stream, quiet(stream, lambda found, _: out.extend(found.to_pylist(maps_as_pydicts="strict")), queries))
    wanted = acep.match(table.sort_by(ORDER), queries, seq=ORDER, id="__row")
    assert all(sum(row["query"] == name for row in out) == len(matches) for name, matches in wanted.items())
    assert len(out) == sum(map(len, wanted.values())) > 9


def test_events_that_no_query_can_use_are_not_collected(spark: Any) -> None:
    table = many_keys(400)
    stream, out = Folder(spark, table, 200), list[dict[str, Any]]()
    query = acep.parse("PATTERN SEQ(a p, a q) WHERE [k] AND p.x > 6 AND q.x > 6 WITHIN 90 seconds")
    run(stream, quiet(stream, lambda found, _: out.extend(found.to_pylist(maps_as_pydicts="strict")), query))
    assert len(out) == len(exact(table, query)) > 0
    assert idle_in(stream) > 300


def test_rows_that_all_travel_are_counted_here_as_spark_observes_them(spark: Any) -> None:
    table = many_keys(400, disorder=2)
    keys = [
        None if row % 50 == 49 else key for row, key in enumerate(table["k"].to_pylist())
    ]  # the last of a file, too
    table = table.set_column(table.column_names.index("k"), "k", pa.array(keys, pa.int64()))
    query = acep.parse("PATTERN SEQ(a p, b q) WHERE partition_contiguity(p, q) { [k] } WITHIN 20 seconds")
    counted, decided = list[list[Any]](), list[list[Any]]()
    after = EarlyShedding.next_decision
    for observed in (False, True):
        told, stream = list[Progress](), Folder(spark, table, 100)
        empty = table.slice(0, 0)
        pq.write_table(empty, stream.path / "events" / "000001a.parquet")
        decided.append([])

        def kept(*given: Any, to: list[Any] = decided[-1]) -> Any:
            done = after(*given)
            to.append((done.carried.rows, done.carried.events, done.carried.idle, done.carried.shed, done.carried.seen))
            return done

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(EarlyShedding, "next_decision", kept)
            if observed:
                patch.setattr(foreach_batch_run.BatchCall, "_counts_itself", lambda *_: False)
            else:
                patch.setattr(
                    foreach_batch_run.Observed, "read_counts", lambda *_: pytest.fail("Spark observed the rows")
                )
            run(stream, quiet(stream, lambda *_: None, query, progress=told.append))
        counted.append([(one.batch, one.rows, one.events, one.late, one.matches, one.report.events) for one in told])
    assert counted[0] == counted[1]
    assert decided[0] == decided[1]
    assert counted[0][-1][2] == 392
    assert len(counted[0]) > 5


@pytest.mark.whole
def test_what_it_sheds_loses_matches_and_invents_none(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    table = many_keys(12_000)
    stream, told, out = Folder(spark, table, 1_000), list[Progress](), list[dict[str, Any]]()
    shares = pretend(monkeypatch, 0.2, 0.8)
    sink = lambda found, _: out.extend(found.to_pylist(maps_as_pydicts="strict"))  # noqa: E731
    run(stream, quiet(stream, sink, budget=acep.Budget(latency=0.6), progress=told.append))
    assert told[-1].shed > 1_000
    assert not told[-1].report.exact
    assert shares[-2] < 0.7
    wanted = exact(table)
    assert 0 < len(out) < len(wanted)
    assert same_bindings(out, wanted)
    assert [row["exact"] for row in (out[0], out[-1])] == [True, False]
    assert told[-1].report.interval[0] < told[-1].report.interval[1] < 1


def test_a_mistake_in_the_events_is_one_line(spark: Any) -> None:
    table = many_keys(40)
    rows = table.to_pylist()
    rows[7]["ts"] = None
    stream = Folder(spark, table, 40, end=False)
    pq.write_table(pa.Table.from_pylist(rows, table.schema), stream.path / "events" / "000001.parquet")
    with pytest.raises(Exception, match="null in some event") as failed:
        run(stream, quiet(stream, lambda *_: None))
    error = error_in(failed.value)
    assert isinstance(error, DataError)
    assert "\n" not in error.message


def test_each_core_takes_its_own_buckets_and_the_order_is_kept() -> None:
    begun = threading.Barrier(2, timeout=60)

    def taken(number: int, core: int) -> tuple[int, int, str]:
        if number < 2:
            begun.wait()  # only two threads get past it
        return number, core, threading.current_thread().name

    steps = list(_on_cores(taken, range(7), 2))
    assert [(number, core) for number, core, _ in steps] == [(number, number % 2) for number in range(7)]
    assert len({(core, name) for _, core, name in steps}) == 2
    alone = list(_on_cores(lambda number, core: (number, core, threading.current_thread()), range(3), 1))
    assert alone == [(number, 0, threading.current_thread()) for number in range(3)]


def test_an_error_of_one_bucket_is_given_where_its_result_would_be() -> None:
    def taken(number: int, _: int) -> int:
        if number == 3:
            raise DataError("a bad event")
        return number

    for cores in (1, 2):
        steps = _on_cores(taken, range(6), cores)
        assert [next(steps) for _ in range(3)] == [0, 1, 2]
        with pytest.raises(DataError, match="a bad event"):
            next(steps)


@pytest.mark.parametrize("why", ["a function", "a bound of time"])
def test_one_core_matches_where_threads_would_do_harm(spark: Any, why: str) -> None:
    table = many_keys(60)
    stream, cores = Folder(spark, table, 30), list[int]()
    options: dict[str, Any] = {"budget": acep.Budget(latency=10.0)} if why == "a bound of time" else {}
    query: Any = "PATTERN SEQ(a p, b q) WHERE skip_till_any_match(p, q) { [k] } WITHIN 9 seconds"
    if why == "a function":

        @acep.function(version="1", returns="integer")
        def same(x: Any) -> Any:
            return x

        query = acep.parse("PATTERN SEQ(a p, b q) WHERE [k] AND same(q.x) > 0 WITHIN 9 seconds", functions=[same])
    call = quiet(stream, lambda found, batch: None, query, **options)
    before = foreach_batch_run.step_in_files

    def watched(job: Any, place: Any, batches: Any, many: int) -> Any:
        cores.append(many)
        return before(job, place, batches, many)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(foreach_batch_run, "step_in_files", watched)
        run(stream, call)
    assert cores
    assert set(cores) == {1}
