"""MATCH_RECOGNIZE as Spark's workers run it, without a JVM: the corpus in batch, and random streams in buckets."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from acep.errors import AcepError, DataError
from acep.events.fields import column_at
from acep.events.tables import attribute_tick, schema_of
from acep.row_patterns.match_rows import match_table, plan_clause, row_columns
from acep.row_patterns.row_values import Evaluator
from acep.row_patterns.stream_time import time_column
from acep.runtime.options import StreamOptions
from acep.spark.clauses.row_pattern_worker import add_keys, match_sorted
from acep.spark.clauses.row_patterns import SparkClause, plan_for_spark
from acep.spark.columns.types import spark_schema
from acep.streaming.clause_description import JobClause, without_trees
from acep.streaming.clause_job import clause_job
from acep.streaming.computed_buckets import bucket_codes
from acep.streaming.job import Job
from acep.streaming.step import add_rows, final_rows, make_bucket
from acep.streaming.time_spent import Stopwatch
from acep.streaming.times import first_end_tick
from tests.case_counts import CaseCounts
from tests.each_case import by_file
from tests.row_patterns.corpus.cases import Case
from tests.row_patterns.test_corpus import CLAUSES, compare
from tests.row_patterns.test_streams import disordered, random_batches, random_streams, texts_of

N_RANDOM, N_PARTS = 600, 3


def travelling_rows(planned: SparkClause, table: pa.Table) -> pa.Table:
    """Return the columns that travel, under the names that they have then."""
    columns = [column_at(table, name).cast(field.type) for name, field in zip(
        planned.sent.columns, planned.travelling, strict=True)]  # fmt: skip
    return pa.table(columns, names=[f"c{i}" for i in range(len(columns))])


def result_of(case: Case) -> pa.Table:
    """Return what the workers give for the rows of a case, in batches of three rows."""
    planned = plan_for_spark(spark_schema(case.table.schema), case.text)
    rows = travelling_rows(planned, case.table)
    if max(planned.sent.keys, default=-1) >= rows.num_columns:
        rows = pa.Table.from_batches([*add_keys(planned.sent, rows.to_batches())] or [rows])
    if rows.num_rows and planned.sent.keys:
        keys = [(f"c{place}", "ascending") for place in planned.sent.keys]
        rows = rows.take(pc.sort_indices(rows, sort_keys=keys))
    batches = list(match_sorted(planned.sent, rows.to_batches(max_chunksize=3)))
    names = list(planned.result.names)
    if not batches:
        return match_table(planned.sent.plan, case.table.slice(0, 0)).rename_columns(names)
    return pa.Table.from_batches(batches).rename_columns(names)


NO_FLOATS = [case for case in CLAUSES if not any(pa.types.is_floating(of) for of in case.table.schema.types)]


TRAVELLING = [case for case in NO_FLOATS if case.table.num_columns]


@by_file(TRAVELLING[::2])
def test_corpus(case: Case) -> None:
    compare(case, result_of(case))


@pytest.mark.long
@by_file(TRAVELLING[1::2])
def test_the_other_half_of_the_corpus(case: Case) -> None:
    compare(case, result_of(case))


def job_of(text: str, table: pa.Table, **options: Any) -> Job:
    """Return the job of a clause over the columns of a table."""
    plan = plan_clause(table.schema, text)
    ts = time_column(plan)
    schema = schema_of(table.schema, ts=ts, type=None, seq=options.get("seq"), id=options.get("id"))
    columns = tuple(name for name in table.column_names if name != "seq")
    plan = plan_clause(table.select(columns).schema, text)
    result = match_table(plan, table.select(columns).slice(0, 0)).schema
    casts = (None,) * len(result)
    clause = JobClause(text, without_trees(plan), columns, None, casts, tuple(result.names))
    return clause_job(
        clause, schema, StreamOptions(lateness="inf", **options), keys=(), buckets=None,
        end=first_end_tick(table.schema.field(ts).type, schema), latest=None, result=result,
    )  # fmt: skip


def bucket_results(job: Job, batches: list[pa.Table], delay: int) -> Iterator[pa.Table]:
    """Yield what a bucket gives in each micro-batch and at the end; its state goes through bytes each time."""
    data, watermark = None, 0
    for number, rows in enumerate(batches):
        bucket = make_bucket(job, 0, data)
        bucket.begin(0)
        add_rows(bucket, rows, watermark, None, Stopwatch(0))
        yield from final_rows(bucket, watermark, delay, ended=number == len(batches) - 1)
        greatest = bucket.hold_back.greatest
        watermark = 0 if greatest is None else max(watermark, greatest - delay)
        data = bucket.dumps()


@pytest.mark.parametrize("part", range(N_PARTS))
def test_random_streams(part: int, cases: CaseCounts) -> None:
    """With disorder, and with rows that are taken back: all in all the rows of one table."""
    for rng, text, rows in random_streams(part, cases(N_RANDOM)):
        if not pa.types.is_integer(rows.schema.field("ts").type) or not rows.num_rows:
            continue
        expected = whole_result(text, rows)
        shuffled, lateness = disordered(rng, rows.append_column("seq", pa.array(range(rows.num_rows), pa.int64())))
        batches = [*random_batches(rng, shuffled), shuffled.slice(0, 0)]
        for speculation in (0, "inf") if expected is not None else ():
            job = job_of(text, shuffled, speculation=speculation, seq="seq")
            current_rows: list[str] = []
            for result in bucket_results(job, batches, lateness):
                collect(current_rows, result)
            assert sorted(current_rows) == sorted(expected or ()), text


def whole_result(text: str, rows: pa.Table) -> list[str] | None:
    """Return the rows that a clause gives for a table; ``None`` where a match cannot be answered for."""
    try:
        return texts_of(match_table(plan_clause(rows.schema, text), rows))
    except DataError:
        return None


def collect(current_rows: list[str], result: pa.Table) -> None:
    """Add rows that come, and remove those that are taken back."""
    ops = result.column("op").to_pylist() if "op" in result.column_names else [1] * result.num_rows
    for sign, row in zip(ops, texts_of(result.select([n for n in result.column_names if n != "op"])), strict=True):
        if sign > 0:
            current_rows.append(row)
        else:
            current_rows.remove(row)


def test_a_state_of_another_clause_is_refused() -> None:
    table = pa.table({"ts": [1, 2], "x": [3, 4]})
    texts = [f"ORDER BY ts MEASURES LAST(x) AS x PATTERN (A{sign} B) DEFINE B AS x > 3" for sign in "+*"]
    first, second = (job_of(text, table) for text in texts)
    bucket = make_bucket(first, 0, None)
    add_rows(bucket, table, 0, None, Stopwatch(0))
    data = bucket.dumps()
    assert make_bucket(first, 0, data).hold_back.rows is not None
    with pytest.raises(AcepError, match="another query"):
        make_bucket(second, 0, data)
    damaged = bytearray(data)
    damaged[Random(1).randrange(len(data) // 2, len(data))] ^= 255
    with pytest.raises(AcepError, match="damaged"):
        make_bucket(first, 0, bytes(damaged))


@pytest.mark.parametrize("keys", ["upper(k)", "x % 3", "upper(k), x + 0.5", "d + INTERVAL '1' DAY"])
def test_rows_are_spread_by_keys_that_are_computed(keys: str) -> None:
    """Rows of one partition are in one bucket, wherever a batch is cut; partitions are in several."""
    rows = pa.table(
        {
            "ts": range(60),
            "k": ["a", "A", None, "b", "c", "C"] * 10,
            "x": pa.array([*range(20)] * 3, pa.int64()),
            "d": pa.array([*range(5), None] * 10, pa.timestamp("us")),
        }
    )
    plan = plan_clause(rows.schema, f"PARTITION BY {keys} ORDER BY ts MEASURES count(*) AS n PATTERN (A+)")
    codes = bucket_codes(plan, rows, 4).tolist()
    assert len({*codes}) > 1
    assert codes == [code for start in range(60) for code in bucket_codes(plan, rows.slice(start, 1), 4).tolist()]
    values = row_columns(plan, rows, Evaluator(attribute_tick(plan.schema)))
    keys_of_rows = zip(*(values[name].to_list() for name in plan.partition), strict=True)
    codes_of_key: dict[tuple[Any, ...], set[int]] = {}
    for key, code in zip(keys_of_rows, codes, strict=True):
        codes_of_key.setdefault(key, set()).add(code)
    assert all(len(some) == 1 for some in codes_of_key.values())


@pytest.mark.parametrize(("order", "n_early"), [("ts", 5), ("ts, n", 3)])
def test_rows_of_the_newest_time_of_a_bucket_wait_under_a_speculation_where_there_are_more_keys(
    order: str, n_early: int
) -> None:
    rows = pa.table({"k": ["a", "a", "b", "a", "b"], "ts": [1, 2, 2, 3, 3], "n": [1, 2, 3, 4, 5]})
    job = job_of(f"PARTITION BY k ORDER BY {order} MEASURES LAST(n) AS n PATTERN (A)", rows, speculation="inf")
    current_rows: list[str] = []
    counts = []
    for result in bucket_results(job, [rows, rows.slice(0, 0)], 10):
        collect(current_rows, result)
        counts.append(len(current_rows))
    assert (counts[0], counts[-1]) == (n_early, 5)
