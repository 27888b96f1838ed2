"""Fingerprints of plans and jobs are parts of every state, so they never change: here are some, as they are."""

from __future__ import annotations

import pyarrow as pa
import pytest

import acep
from acep.events.tables import schema_of
from acep.plan.compile import compile_query
from acep.runtime.options import StreamOptions
from acep.streaming.job import make_job

COLUMNS = pa.schema(
    {
        "ts": pa.timestamp("us", "UTC"),
        "type": pa.string(),
        "n": pa.int64(),
        "x": pa.float64(),
        "flag": pa.bool_(),
        "when": pa.timestamp("us"),
        "price": pa.decimal128(12, 2),
        "empty": pa.null(),
    }
)
PLANS = {
    "PATTERN SEQ(A a, B b) WHERE [n, type] AND b.x > a.x AND a.flag = TRUE WITHIN 5 minutes": (
        "913755f6c1619e9573973881f1daf6ad"
    ),
    "PATTERN SEQ(A+ a[], ~(C c), B b) WHERE skip_till_next_match(a[], b) { [price] AND b.when > a[1].when } "
    "WITHIN 9 EVENTS": "159efd83e7f4210f86ca21f49590b2e4",
    "PATTERN SEQ(A a, A b) WHERE [empty] RETURN b.n AS n": "27c12729492bdb1566abac8f7a7b0b39",
}
JOBS = (
    (None, "519c56b0701d764afe1e4b2e2767dbcde751d722fcb7ca2ca2fe215c74d54ec0"),
    (acep.Budget(latency=2), "35f0c5cef8e789515f93c8de0f641bcbe2d7343453812464afcca35130bcd941"),
)


@pytest.mark.parametrize("query", PLANS)
def test_the_fingerprint_of_a_plan_stays(query: str) -> None:
    assert compile_query(acep.parse(query), schema_of(COLUMNS, id="n")).fingerprint == PLANS[query]


@pytest.mark.parametrize(("budget", "expected"), JOBS)
def test_the_fingerprint_of_a_job_stays(budget: acep.Budget | None, expected: str) -> None:
    queries = dict(zip("abc", map(acep.parse, PLANS), strict=True))
    options = StreamOptions(budget=budget, seed=7)
    job = make_job(queries, schema_of(COLUMNS, id="n"), options, end=2**62, ties=(), buckets=4)
    assert job.with_fingerprint().fingerprint == expected
