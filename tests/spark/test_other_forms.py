"""On Spark a stopped query goes on with other buckets and another query; the hash of keys is that of Spark."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import acep
import acep.spark
from acep.cli import main
from acep.runtime.key_hashes import hash_keys
from tests.spark.by_hand import rows_that_differ
from tests.spark.restarted import random_table
from tests.spark.streams import as_dicts
from tests.spark.test_other_query import rows_in_one_process

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = "ts long, type string, k string, x long, __order long, __row long"
OLD = "PATTERN SEQ(a p, b q) WHERE [k] WITHIN 20"
NEW = "PATTERN SEQ(c p, b q) WHERE [k] WITHIN 20"
LENGTHS = (0, 1, 3, 4, 5, 7, 8, 12, 16, 31, 32, 33, 40, 64, 70)


@pytest.mark.long
def test_a_query_goes_on_with_other_buckets_and_another_query(spark: SparkSession, tmp_path: Path) -> None:
    table = random_table(9, texts=True)
    (tmp_path / "in").mkdir()

    def run(begin: int, end: int, query: str, buckets: int) -> None:
        pq.write_table(table.slice(begin, end - begin), tmp_path / "in" / f"{begin:03}.parquet")
        stream = spark.readStream.schema(COLUMNS).parquet(str(tmp_path / "in"))
        places: dict[str, Any] = {"id": "__row", "seq": "__order", "watermark": 0, "buckets": buckets}
        rows = acep.spark.match(stream, query, **places)
        writer = rows.writeStream.format("parquet").option("path", str(tmp_path / "out")).trigger(availableNow=True)
        writer.option("checkpointLocation", str(tmp_path / "run")).start().awaitTermination()

    # Where the query changes, no event that only the new one can use is at the newest time: it would be missed.
    ticks, types = table.column("ts").to_pylist(), table.column("type").to_pylist()
    cut = next(n for n in range(120, 180) if "c" not in {types[i] for i in range(n) if ticks[i] == ticks[n - 1]})
    run(0, 60, OLD, 3)
    assert main(["state", str(tmp_path / "run"), "--buckets", "5"]) == 0
    run(60, cut, OLD, 5)
    assert main(["state", str(tmp_path / "run"), "--replace", NEW]) == 0
    run(cut, 180, NEW, 5)
    rows = as_dicts(spark.read.parquet(str(tmp_path / "out")))
    wanted = rows_in_one_process(table, [OLD, NEW], [max(ticks[:cut])])
    assert rows_that_differ(rows, [row for row in wanted if row["end"] < max(ticks)]) == ""
    assert any(row["end"] > max(ticks[:cut]) for row in rows)


@pytest.mark.long
def test_keys_are_hashed_as_on_spark(spark: SparkSession, cases: Callable[[int], int]) -> None:
    from pyspark.sql import functions as sf

    rng = random.Random(1)
    second, epoch = dt.timedelta(microseconds=1), dt.datetime(1970, 1, 1)
    draws: dict[str, tuple[str, Callable[[], Any]]] = {
        "boolean": ("boolean", lambda: rng.random() < 0.5),
        "byte": ("byte", lambda: rng.randint(-(2**7), 2**7 - 1)),
        "short": ("short", lambda: rng.randint(-(2**15), 2**15 - 1)),
        "int": ("int", lambda: rng.randint(-(2**31), 2**31 - 1)),
        "long": ("long", lambda: rng.choice([rng.randint(-(2**63), 2**63 - 1), rng.randint(-5, 5)])),
        "float": (
            "float",
            lambda: rng.choice([0.0, -0.0, 1.5, float("nan"), float("inf"), rng.randint(-999, 999) / 8]),
        ),
        "double": ("double", lambda: rng.choice([0.0, -0.0, float("nan"), float("-inf"), rng.gauss(0, 100)])),
        "text": ("string", lambda: "".join(rng.choices("abé€😀 \0", k=rng.choice(LENGTHS)))),
        "binary": ("binary", lambda: rng.randbytes(rng.choice(LENGTHS))),
        "date": ("date", lambda: dt.date(1970, 1, 1) + dt.timedelta(rng.randint(-30_000, 30_000))),
        "moment": ("timestamp_ntz", lambda: epoch + rng.randint(-(10**15), 10**16) * second),
        "instant": ("timestamp", lambda: (epoch + rng.randint(-(10**15), 10**16) * second).replace(tzinfo=dt.UTC)),
        "price": ("decimal(10,2)", lambda: Decimal(rng.randint(-(10**9), 10**9)).scaleb(-2)),
        "large": ("decimal(30,4)", lambda: Decimal(rng.randint(-(10 ** rng.randint(1, 28)), 10**28)).scaleb(-4)),
        "span": ("interval day to second", lambda: rng.randint(-(10**12), 10**12) * second),
    }
    rows = [tuple(None if rng.random() < 0.1 else draw() for _, draw in draws.values()) for _ in range(cases(400))]
    frame = spark.createDataFrame(rows, ", ".join(f"{name} {kind}" for name, (kind, _) in draws.items()))
    keys = [[name] for name in draws] + [["text", "long"], ["long", "text"], ["boolean", "double", "large", "price"]]
    table = frame.select("*", *(sf.xxhash64(*names).alias("hash" + "_".join(names)) for names in keys)).toArrow()
    for names in keys:
        hashes = hash_keys([table.column(name) for name in names])
        assert np.array_equal(hashes, table.column("hash" + "_".join(names)).to_numpy()), names
    as_codes = table.column("text").combine_chunks().dictionary_encode()
    assert np.array_equal(hash_keys([as_codes]), hash_keys([table.column("text")]))
    assert isinstance(as_codes, pa.DictionaryArray)
