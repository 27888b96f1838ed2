"""Parts of lists on Spark: the same as in one process, in a batch and on a stream, or refused by name."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest

import acep
from acep.errors import AcepError, DataError
from tests.spark.streams import Folder, as_dicts, quiet_match

pytestmark = pytest.mark.long

TAGS: list[Any] = [["x", "y"], None, [], [None, "x"], [None], ["a\u00e4", 'say "x"\\'], ["\x1f\n", "/"]]
NUMBERS: list[Any] = [[1, 2], [2**53 + 1], [], None, [None, 3], [-1], [0]]
ROWS = [
    {
        "id": i,
        "ts": i,
        "type": "ab"[i % 2],
        "dev": {"tags": tags, "answers": [{"name": f"n{i % 3}", "ttl": i}] * (i % 3)},
        "n": numbers,
        "x": None if numbers is None else [None if n is None else n / 2 for n in numbers],
        "y": [[math.nan, 1.0], [math.nan, 2.0], [2.0], [], None, [None, math.nan], [math.inf]][i],
        "flags": [i % 2 == 0],
    }
    for i, (tags, numbers) in enumerate(zip(TAGS, NUMBERS, strict=True))
]
TABLE = pa.Table.from_pylist(ROWS)
TABLE = TABLE.append_column("f", TABLE["y"].cast(pa.list_(pa.float32())))
CONDITIONS = (
    "contains(p.dev.tags, 'x')",
    "NOT contains(p.dev.tags, 'x')",
    "contains(p.dev.tags, 'x') IS NULL",
    "p.dev.tags[2] IS NOT NULL",
    "p.dev.answers[1].name = 'n1'",
    "p.dev.answers[2].ttl > 2",
    "contains(p.n, 9007199254740993) OR contains(p.n, -1)",
    "NOT contains(p.n, 1.5)",
    "NOT contains(p.n, 99999999999999999999.0)",
    "contains(p.x, 1) OR contains(p.x, -0.5)",
    "contains(p.y, 1)",
    "NOT contains(p.y, 1)",
    "contains(p.y, 1) IS NULL",
    "contains(p.f, 1) IS NULL",
    "contains(p.flags, TRUE)",
    'CAST(p.dev.tags AS text) = \'["x","y"]\'',
    "CAST(p.dev.tags AS text) LIKE '%null%'",
)


def test_a_batch_gives_what_one_process_gives(spark: Any) -> None:
    frame = spark.createDataFrame(TABLE)
    returned = "RETURN p.dev.tags[1] AS first, CAST(p.dev.tags AS text) AS all, p.n[1] AS n, contains(p.n, 2) AS two"
    queries = {str(i): f"PATTERN ANY p WHERE {where} {returned}" for i, where in enumerate(CONDITIONS)}
    queries |= {"key": "PATTERN SEQ(ANY p, ANY q) WHERE [dev.answers[1].name] WITHIN 9"}
    rows = as_dicts(quiet_match(frame, queries, id="id", seq="id"))
    names = ("first", "all", "n", "two")
    matches = sorted(repr((r["query"], r["bindings"]["p"], [r["values"][name] for name in names])) for r in rows)
    exact = acep.match(TABLE, queries, id="id", seq="id")
    wanted = sorted(
        repr((query, [*match.bindings["p"]], [match.values.get(name) for name in names]))
        for query, result in exact.items()
        for match in result
    )
    assert matches == wanted
    assert all(exact.values())


def test_a_stream_gives_what_one_process_gives(spark: Any) -> None:
    query = "PATTERN SEQ(ANY p, ANY q) WHERE contains(p.dev.tags, 'x') AND q.n[1] >= p.ts AND [flags[1]] WITHIN 9"
    folder = Folder(spark, TABLE, 2)
    results = quiet_match(folder.frame(), query, id="id", seq="id", watermark=0, buckets=2)
    rows, _ = folder.run(results)
    exact = [{name: list(ids) for name, ids in m.bindings.items()} for m in acep.match(TABLE, query, id="id", seq="id")]
    assert sorted(map(str, (row["bindings"] for row in rows))) == sorted(map(str, exact))
    assert exact


def test_what_spark_writes_otherwise_is_refused(spark: Any) -> None:
    frame = spark.sql("select id ts, 'a' type, array(0.5D) x, array('A' collate UTF8_LCASE) t from range(2)")
    for condition, message in (
        ("CAST(p.x AS text) = ''", r"`x` is array<double>, whose text Spark writes otherwise"),
        ("contains(p.t, 'a')", "t"),
        ("p.x = 1", r"`x` is array<double>, and a predicate needs single values"),
        ("contains(p.x, 'a')", r"`x` is array<double>: it cannot contain 'a'"),
    ):
        with pytest.raises((AcepError, DataError), match=message):
            quiet_match(frame, f"PATTERN a p WHERE {condition}", seq="ts", id="ts").collect()
