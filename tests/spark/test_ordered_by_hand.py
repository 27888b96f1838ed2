"""Chosen matches found in their order are on Spark, in batches and in streams with restarts, those of one process."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pyarrow as pa
import pytest

import acep
from acep.streaming.buckets import Bucket
from tests.case_counts import CaseCounts
from tests.runtime.random_ordered import ordered_draws
from tests.spark.by_hand import as_rows, batch, numbered, rows_that_differ, stream, the_job
from tests.spark.by_hand_files import FileStream


@pytest.mark.filterwarnings("ignore::acep.DataWarning")
@pytest.mark.parametrize("kind", ["runs", "intervals"])
def test_random_queries_are_one_process(kind: str, cases: CaseCounts, tmp_path: Path) -> None:
    seen: Counter[str] = Counter()
    seeds = (f"{kind} {number}" for number in range(cases(60)))
    for rng, text, query, drawn, _ in ordered_draws(kind, seeds, 14):
        if "[k]" not in text or len(drawn["ts"]) < 5 or sorted(drawn["ts"]) != drawn["ts"]:
            continue
        events = {name: values for name, values in drawn.items() if name not in ("id", "seq")}
        expected = as_rows(acep.match(events, query))
        table = numbered(pa.table(events))
        job = the_job(table, query)
        where = (text, events)
        assert rows_that_differ(batch(job, table), expected) == "", where
        sizes = [slice(begin, begin + 3) for begin in range(0, table.num_rows, 3)]
        parts = [table.slice(part.start, 3) for part in sizes]
        assert rows_that_differ(stream(job, parts, 7, rng=rng)[0], expected) == "", where
        folder = Path(mkdtemp(dir=tmp_path))
        assert rows_that_differ(FileStream(job, folder, 7, rng=rng).stream(parts)[0], expected) == "", where
        seen["matches"] += len(expected) > 0
    cases.expect(seen, "matches", least=3)


def test_without_ids_events_have_their_places_in_their_partition() -> None:
    query = acep.parse(
        "PATTERN ANY+ e[] WHERE partition_contiguity(e[]) { [k] AND e[i].ts - e[i-1].ts < 5 } OUTPUT NON OVERLAP"
    )
    table = numbered(pa.table({"ts": [1, 2, 3, 20, 21, 22], "k": [1, 2, 1, 2, 1, 1]}))
    job: Any = the_job(table, query, id=None, type=None)
    (part,) = job.passes
    bucket = Bucket(job, part)
    rows = []
    for begin in range(6):
        bucket.add(table.slice(begin, 1))
        rows += bucket.advance(begin and int(table["ts"][begin - 1].as_py()) + 1)
        bucket = Bucket.loads(job, part, bucket.dumps())
    rows += bucket.finish()
    found = [row for part_rows in rows for row in part_rows.to_pylist()]
    bound = sorted((dict(row["key"])["k"], dict(row["bindings"])["e"]) for row in found)
    assert bound == [(1, [0]), (1, [1]), (1, [2]), (1, [3]), (2, [0]), (2, [1])]
