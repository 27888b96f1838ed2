"""A followed folder gives, micro-batch by micro-batch, what a stream on Spark gives whose state is in files."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

from tests.random_cases import random_case
from tests.runner.streams import Stream, fast_disk
from tests.spark.by_hand import numbered, rows_of, the_job
from tests.spark.by_hand_files import FileStream


def bound(rows: list[dict[str, object]]) -> list[str]:
    """The ids that the matches of some rows bind, and what they cost."""
    return sorted(json.dumps([row["bindings"], float(str(row["error"]))], sort_keys=True) for row in rows)


def test_micro_batches_are_those_of_spark_with_late_events_too(cases: Callable[[int], int], tmp_path: Path) -> None:
    late = matches = 0
    for seed in range(max(10, cases(40))):
        case, rng = random_case(seed), random.Random(seed)
        delay, number = rng.randint(0, 6), case.table().num_rows
        order = sorted(range(number), key=lambda row: (row + rng.uniform(0, 8), row))
        table = case.table().take(pa.array(order, pa.int64()))
        sizes = [rng.randint(1, 1 + number // 4) for _ in range(3)]
        plain = {name: value for name, value in case.stream.items() if name not in ("seq", "id")}
        together = numbered(table, **{name: value for name, value in plain.items() if name != "unit"})
        spark = {}
        for buckets in (1, 3):
            job = the_job(together, case.query(), buckets=buckets, **plain)
            ms = -(-delay * job.tick_ms[0] // job.tick_ms[1])
            spark[buckets] = FileStream(job, tmp_path / f"{seed}-{buckets}", ms)
        follower = Stream(tmp_path / str(seed), case.query(), watermark=delay, into_format="parquet", **plain)
        parts = [part for part in rows_of(together, range(number), sizes) if part.num_rows]
        given: dict[int, list[str]] = {1: [], 3: []}
        with fast_disk():
            for i, part in enumerate([*parts, None]):
                if part is not None:
                    follower.put(f"{i}.parquet", part.select(table.column_names))
                done = follower.follow(end=part is None)
                for buckets, stream in spark.items():
                    given[buckets] += bound(stream.push(part) if part is not None else stream.end())
                assert bound(follower.lines()) == sorted(given[1]), case.paste()
        assert sorted(given[3]) == sorted(given[1]), case.paste()
        # A row whose key is null travels on Spark for its time alone.
        assert done.report.late >= sum(one["late"] for one in spark[1].told.values())
        late, matches = late + done.report.late, matches + done.report.matches
    assert late > 0
    assert matches > 0
