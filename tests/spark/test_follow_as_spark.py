"""A followed folder gives, micro-batch by micro-batch, what a stream on Spark gives whose state is in files."""

from __future__ import annotations

import json
import random
from collections import Counter
from functools import partial
from pathlib import Path
from tempfile import mkdtemp

import pyarrow as pa

from tests.case_counts import CaseCounts
from tests.complaints import difference, fail_if_wrong
from tests.random_cases import Case, random_case
from tests.runner.streams import Stream, fast_disk
from tests.spark.by_hand import numbered, rows_of, the_job
from tests.spark.by_hand_files import FileStream


def bound(rows: list[dict[str, object]]) -> list[str]:
    """The ids that the matches of some rows bind, and what they cost."""
    return sorted(json.dumps([row["bindings"], float(str(row["error"]))], sort_keys=True) for row in rows)


def test_micro_batches_are_those_of_spark_with_late_events_too(cases: CaseCounts, tmp_path: Path) -> None:
    seen = Counter[str]()
    for seed in range(cases(40)):
        fail_if_wrong(random_case(seed), partial(complaint_of_follower, tmp_path, seen))
    cases.expect(seen, "late events", "matches")


def complaint_of_follower(folder: Path, seen: Counter[str], case: Case) -> str:
    """Say after which micro-batch a follower has not given what a stream of one bucket has, or at the end of three."""
    rng, root = random.Random(case.seed), Path(mkdtemp(dir=folder))
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
        spark[buckets] = FileStream(job, root / f"spark-{buckets}", ms)
    follower = Stream(root / "followed", case.query(), watermark=delay, into_format="parquet", **plain)
    parts = [part for part in rows_of(together, range(number), sizes) if part.num_rows]
    matches: dict[int, list[str]] = {1: [], 3: []}
    with fast_disk():
        for i, part in enumerate([*parts, None]):
            if part is not None:
                follower.put(f"{i}.parquet", part.select(table.column_names))
            done = follower.follow(end=part is None)
            for buckets, stream in spark.items():
                matches[buckets] += bound(stream.push(part) if part is not None else stream.end())
            complaint = difference(bound(follower.lines()), sorted(matches[1]), ("followed", "stream"))
            if complaint:
                return f"delay {delay}, rows in the order {order}, after micro-batch {i} of {sizes}:\n{complaint}"
    # A row whose key is null travels on Spark for its time alone.
    assert done.report.late >= sum(progress["late"] for progress in spark[1].told.values())
    seen["late events"] += done.report.late
    seen["matches"] += done.report.matches
    return difference(sorted(matches[3]), sorted(matches[1]), ("three buckets", "one"))
