"""Rows of foreachBatch observed as they come, and with computed columns: the same counts, and the same rows travel."""

from __future__ import annotations

import datetime as dt
import random
from typing import Any

import pytest
from pyspark.sql.functions import lit

import acep
from acep.overload.batch_log import Decision
from acep.overload.needed_events import uses_of
from acep.spark.columns.needed_filter import filter_column
from acep.spark.columns.times import end_column
from acep.spark.foreach.observed_batches import all_counts
from acep.spark.foreach.row_columns import row_columns
from acep.spark.job import make_spark_job
from acep.spark.job_run import sent_rows

pytestmark = pytest.mark.long

START = dt.datetime(2024, 3, 31)
RISING = "PATTERN SEQ(A+ a[], B b) WHERE skip_till_next_match(a[], b) { [k] AND a[i].x > a[i-1].x } WITHIN 9 seconds"
QUERIES = {
    "some types": RISING,
    "all events": "PATTERN SEQ(A a, B b) WHERE partition_contiguity(a, b) { [k] } WITHIN 9 seconds",
    "a key that may be NaN": "PATTERN SEQ(A a, B b) WHERE skip_till_any_match(a, b) { [x] } WITHIN 9 seconds",
    "no key": "PATTERN SEQ(A a, B b) WHERE skip_till_next_match(a, b) WITHIN 9 seconds",
    "two groups": {"k": RISING, "x": "PATTERN SEQ(B b, C c) WHERE skip_till_next_match(b, c) { [x] } WITHIN 9 seconds"},
}


def some_rows(spark: Any, size: int = 600) -> Any:
    """Rows with nulls in each column, with NaN, and with one that ends the stream."""
    rng = random.Random(7)

    def often(value: Any) -> Any:
        return None if rng.random() < 0.1 else value

    rows = [
        (
            often(START + dt.timedelta(milliseconds=rng.randrange(60_000))),
            often(rng.choice("ABCDE")),
            often(rng.randrange(5)),
            often(rng.choice([0.0, 1.5, float("nan")])),
            number,
        )
        for number in range(size)
    ]
    frame = spark.createDataFrame(rows, "ts timestamp, type string, k long, x double, n long")
    return frame.unionAll(spark.range(1).select(end_column(frame.schema["ts"].dataType), *[lit(None)] * 4))


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_rows_as_they_come_give_the_counts_and_rows_of_computed_columns(spark: Any, query: Any) -> None:
    frame = some_rows(spark).cache()
    parsed = acep.parse(query) if isinstance(query, str) else {name: acep.parse(one) for name, one in query.items()}
    job, _ = make_spark_job(frame.schema, parsed, seq="n", id="n", buckets=4)
    uses = uses_of(job.plans, ids=True, budget=job.budget)
    assert (filter_column(frame.schema, uses, "type") is None) == (query == QUERIES["all events"])
    columns, decision = row_columns(frame, job, uses, 0), Decision()
    assert columns.all_travel(decision)
    made, unshed = columns.compute_columns(frame, job, decision), columns.unshed
    middle = frame.selectExpr("unix_micros(min(ts)) + 30000000 AS tick").first()["tick"]
    for before in (None, middle):
        counted = made.agg(*columns.counting_columns(before, None)).first().asDict()
        given = frame.agg(*unshed.counting_columns(before)).first().asDict()
        assert {"late": 0, **all_counts(given)} == {"late": 0, **counted}
        assert counted["rows"] == 601
        assert columns.needs_all or before is None or counted["late"] > 0
    some = frame if unshed.travels is None else frame.where(unshed.travels)
    travel = [sent_rows(made.where(columns.travels), columns.sent), sent_rows(some, unshed.sent)]
    one, other = (sorted(map(str, rows.collect())) for rows in travel)
    assert one == other
    assert len(one) > 40
    frame.unpersist()
