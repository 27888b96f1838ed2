"""The examples on Spark: the queries of a stream in one pass over some of its keys, and one by one in one process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import acep
from acep.spark import match
from examples import examples
from examples.data import MORE
from tests.walks import read

pytestmark = pytest.mark.long

# The attribute by which a stream is cut, and which of its values, in their order, or by name, are taken: those with
# matches of every query, and few enough events for an engine in plain Python. Stand-ins are short, and taken whole.
PARTS = {
    "stock_min_bars": ("symbol", slice(15, 16)),
    "stock_tweets": ("symbol", slice(31, None, 42)),
    "stock_tweet_tokens": ("symbol", slice(31, None, 20)),
    "cluster_jobs": ("logical_name", slice(0, None, 10)),
    "har_phone_watch": ("key", ("s11_sp", "s11_sw")),
    "sepsis": ("patient", slice(0, None, 3)),
    "hospital_bpic11": ("patient", slice(0, None, 5)),
}


def part(path: Path, attribute: str, which: slice | tuple[str, ...]) -> pa.Table:
    table = read(path)
    # Spark makes instants of an Arrow table's times.
    table = table.set_column(0, "ts", table["ts"].cast(pa.timestamp("us", "UTC")))
    known = sorted(value for value in table[attribute].unique().to_pylist() if value is not None)
    values = which if isinstance(which, tuple) else known if path.parent in MORE else known[which]
    return table.filter(pc.is_in(table[attribute], pa.array(values, table[attribute].type)))


def rows_of(found: Any) -> list[tuple[Any, ...]]:
    """Matches in an order of their own; what has another query's name in the key is left out."""
    rows = [
        (
            tuple(sorted((name, value) for name, value in row["key"].items() if value is not None)),
            row["start"],
            row["end"],
            row["error"],
            tuple(sorted((var, tuple(ids)) for var, ids in row["bindings"].items())),
            row["bundle"],
        )
        for row in found.to_pylist(maps_as_pydicts="strict")
    ]
    return sorted(rows, key=repr)


# Tweets are put together from letters of the whole stream: one bucket, which acep says.
@pytest.mark.filterwarnings("ignore:.*must see the whole stream in one place")
@pytest.mark.parametrize("stream", PARTS)
def test_spark_finds_what_one_process_finds(stream: str, spark: Any, data: Callable[[str], Path]) -> None:
    table = part(data(stream), *PARTS[stream])
    queries = {example.name: example.query for example in examples() if example.stream == stream}
    found = match(spark.createDataFrame(table), queries, seq="arrival_seq", id="row").toArrow()
    for name, query in queries.items():
        expected = rows_of(acep.match(table, query, seq="arrival_seq", id="row").to_arrow())
        assert expected, f"{name} finds nothing in this part"
        assert rows_of(found.filter(pc.equal(found["query"], name))) == expected
