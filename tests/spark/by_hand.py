"""The workers' functions called in this process, as Spark would call them: micro-batches, watermark, state, timeouts.

Much faster than Spark, so that whole corpora and random streams can go through.
"""

from __future__ import annotations

import datetime as dt
import json
import random
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any

import mmh3
import numpy as np
import pandas as pd
import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema

from acep.events.columns import ticks_of
from acep.events.fields import column_at
from acep.events.tables import schema_of
from acep.matches.matches import Match
from acep.spark.chunks import ORDER, ROW, for_spark, with_order
from acep.spark.job import SentJob, make_spark_job
from acep.spark.workers import spark_state_worker
from acep.spark.workers.spark_state_worker import VERSION, match_partition, pack, step, unpack
from acep.streaming import live_buckets
from acep.streaming.job import EXACT
from acep.streaming.punctuation_rows import are_punctuations
from acep.streaming.step import BUCKET
from acep.streaming.times import watermark_of
from acep.streaming.totals import METRICS_COLUMN
from tests.complaints import difference

__all__ = [
    "COUNTED",
    "FRAME",
    "State",
    "as_rows",
    "batch",
    "numbered",
    "rows_of",
    "rows_that_differ",
    "same",
    "spread",
    "stream",
    "the_job",
    "with_versions",
]


COUNTED = ("events", "late", "ahead", "duplicates")  # of what buckets tell
FRAME = ("rows", "ended", "newest")  # columns of what is packed


class State:
    """What a function of ``applyInPandasWithState`` sees of its group's state."""

    def __init__(self) -> None:
        self.data: tuple[bytes] | None = None
        self.watermark = 0
        self.timeout: int | None = None
        self.began = 0

    @property
    def exists(self) -> bool:
        return self.data is not None

    @property
    def get(self) -> tuple[bytes]:
        assert self.data is not None
        return self.data

    def update(self, data: tuple[bytes]) -> None:
        self.data = data

    def getCurrentWatermarkMs(self) -> int:  # noqa: N802 - Spark's name
        return self.watermark

    def getCurrentProcessingTimeMs(self) -> int:  # noqa: N802 - Spark's name
        return self.began

    def setTimeoutTimestamp(self, at: int) -> None:  # noqa: N802 - Spark's name
        assert at > self.watermark
        self.timeout = at


def numbered(table: pa.Table, **names: Any) -> pa.Table:
    """The table with its rows and their order numbered, as a stream where ties are by row."""
    table = for_spark(table)
    return with_order(table, schema_of(table.schema, **names), sort=False)


def the_job(table: pa.Table, query: Any, **options: Any) -> SentJob:
    """The job of a query over a numbered table, with ids by row unless an id is named."""
    options = {"seq": ORDER, "id": ROW} | options
    return make_spark_job(from_arrow_schema(table.schema, prefer_timestamp_ntz=True), query, **options)[0]


def spread(job: SentJob, table: pa.Table) -> pa.Table:
    """The columns of a job, with the numbers of buckets; hashed otherwise than Spark does, to no effect."""
    columns = {
        name: column_at(table, name) for name in {*job.columns, *(key for part in job.passes for key in part.keys)}
    }
    table = pa.table(columns)
    out = table.select(job.columns)
    marks = are_punctuations(table, job.schema)
    for i, part in enumerate(job.passes):
        keys = [table.column(key).to_pylist() for key in part.keys]
        numbers = []
        for row in range(table.num_rows):
            key = tuple(column[row] for column in keys)
            missing = marks[row] or any(v is None or v != v for v in key)
            numbers.append(None if missing else part.first + hash(tuple(map(_steady, key))) % part.size)
        out = out.append_column(f"{BUCKET}{i}", pa.array(numbers, pa.int32()))
    return out


def _steady(value: Any) -> Any:
    """The same for equal values, with a hash that is the same in every process."""
    return value if isinstance(value, int | float | Decimal) else mmh3.hash(repr(value))


def batch(job: SentJob, table: pa.Table) -> list[dict[str, Any]]:
    """Rows of the result over a batch, in one partition."""
    out = []
    wide = spread(job, table)
    parts = []
    for i in range(len(job.passes)):
        narrow = wide.select([*job.columns, f"{BUCKET}{i}"]).rename_columns([*job.columns, BUCKET])
        parts.append(narrow.filter(narrow.column(BUCKET).is_valid()))
    rows = pa.concat_tables(parts)
    rows = rows.sort_by([(BUCKET, "ascending"), (job.schema.ts, "ascending")])
    batches = rows.to_batches(max_chunksize=7)
    for found in match_partition(job, batches, at_once=20):
        out += found.to_pylist(maps_as_pydicts="strict")
    return out


def stream(
    job: SentJob,
    batches: Sequence[pa.Table],
    delay: int = 0,
    *,
    end: bool = True,
    rng: random.Random | None = None,
    states: dict[int, State] | None = None,
    versions: Sequence[Sequence[str]] = (),
    announces: bool = True,
) -> tuple[list[dict[str, Any]], dict[int, State], dict[str, int]]:
    """Rows of the result over a stream of micro-batches, the states, and the totals; ``delay`` is in ticks of ``ts``.
    ``versions`` of queries come as rows of the micro-batches. Without ``announces`` the watermark is one that the
    frame has already.

    With ``rng`` a micro-batch is sometimes run twice from the same state, as after a crash, and workers forget.
    """
    states = {} if states is None else states
    out: list[dict[str, Any]] = []
    totals: dict[str, int] = {}
    highest: int | None = None
    watermark = max((s.watermark for s in states.values()), default=0)
    frame = (*FRAME, "versions") if job.dynamic else FRAME
    late_ms = -(-delay * job.tick_ms[0] // job.tick_ms[1])

    def run(packed: pa.RecordBatch | None) -> None:
        frames: dict[int, list[pd.DataFrame]] = {}
        if packed is not None:
            for row in packed.to_pylist():
                frames.setdefault(row["bucket"], []).append(pd.DataFrame({n: [row[n]] for n in frame}))
        else:
            due = [b for b, s in states.items() if s.timeout is not None and s.timeout < watermark]
            frames = {b: [pd.DataFrame({n: [] for n in frame})] for b in due}  # as Spark calls after a timeout
        if frames:
            totals.update(dict.fromkeys((*COUNTED, "matches"), 0))
        for bucket, blobs in frames.items():
            state = states.setdefault(bucket, State())
            state.watermark, state.timeout = watermark, None
            before = state.data
            if rng is not None and rng.random() < 0.3:
                live_buckets.forget_live()
            (stepped,) = step(job, late_ms, (bucket,), iter(blobs), state)  # type: ignore[arg-type]
            if rng is not None and rng.random() < 0.3:
                after, state.data = state.data, before
                (again,) = step(job, late_ms, (bucket,), iter(blobs), state)  # type: ignore[arg-type]
                assert bytes(again["rows"][0]) == bytes(stepped["rows"][0])
                if rng.random() < 0.5:  # one state is as good as the other
                    state.data = after
            said = json.loads(stepped[METRICS_COLUMN][0])
            told = {name: said[name] for name in COUNTED}
            told["matches"] = sum(query["matches"] for query in said["queries"])
            totals.update({name: totals[name] + number for name, number in told.items()})
            for found in unpack([pa.RecordBatch.from_pydict({"rows": pa.array([stepped["rows"][0]], pa.binary())})]):
                out.extend(found.to_pylist(maps_as_pydicts="strict"))

    for number, table in enumerate(batches):
        rows = spread(job, table)
        if job.dynamic:
            rows = with_versions(rows, versions[number] if number < len(versions) else ())
        packed = list(pack(job, rows.to_batches(max_chunksize=5), announces=announces))
        run(pa.Table.from_batches(packed).combine_chunks().to_batches()[0])
        ticks, _ = ticks_of(job.schema.ts, table.column(job.schema.ts), job.schema.tick_ns or 1)
        bound = job.greatest_tick(0)
        ticks = ticks if bound is None else ticks[ticks <= bound]
        if len(ticks):
            highest = max(int(ticks.max()), highest if highest is not None else int(ticks.max()))
            watermark = max(watermark, watermark_of(highest, late_ms, job.tick_ms), 0)
        if rng is None or rng.random() < 0.5:
            run(None)
    for state in states.values():
        state.watermark = watermark  # Spark writes it down with the micro-batch
    if end:
        run(spark_state_worker._pack_blobs(job, {bucket: [] for bucket in range(job.buckets)}, 0.0, ended=True))
    return out, states, dict(totals)


def with_versions(rows: pa.Table, texts: Sequence[str]) -> pa.Table:
    """The rows with those of new versions of queries, as Spark unites them."""
    rows = rows.append_column(VERSION, pa.nulls(rows.num_rows, pa.string()))
    others = [pa.nulls(len(texts), field.type) for field in rows.schema][:-1]
    return pa.concat_tables([rows, pa.table([*others, pa.array(texts, pa.string())], rows.column_names)])


def as_rows(matches: Iterable[Match]) -> list[dict[str, Any]]:
    """Matches of one process as rows of a result on Spark."""
    out = []
    for match in matches:
        row = {name: getattr(match, name) for name in ("key", "start", "end", "error", "bindings", "bundle", "values")}
        row["bindings"] = {var: list(ids) for var, ids in match.bindings.items()}
        out.append({name: value for name, value in row.items() if value or name not in ("key", "values")})
    return out


def same(ours: list[dict[str, Any]], exact: list[dict[str, Any]]) -> bool:
    """Whether two lists hold the same rows, as ``rows_that_differ`` compares them."""
    return _bare(ours) == _bare(exact)


def rows_that_differ(
    ours: list[dict[str, Any]], exact: list[dict[str, Any]], names: tuple[str, str] = ("found", "wanted")
) -> str:
    """Say which rows only one of two lists holds, in whatever order; errors may be doubles, and zones UTC by any name.

    Whether a row is ``exact`` does not count: on a stream that is told as of the micro-batch in which it is given.
    """
    return difference(_bare(ours), _bare(exact), names)


def _bare(rows: list[dict[str, Any]]) -> list[str]:
    """Return rows in a form in which those that are the same are equal, in order."""

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: plain(v) for name, v in sorted(value.items())}
        if isinstance(value, dt.datetime) and value.tzinfo is not None:
            return value.astimezone(dt.UTC)
        return float(value) if isinstance(value, int) else value

    return sorted(repr(plain({name: v for name, v in row.items() if name != EXACT})) for row in rows)


def rows_of(table: pa.Table, order: Iterable[int], sizes: Iterable[int]) -> list[pa.Table]:
    """Micro-batches of these sizes from the rows in this order."""
    mixed = table.take(pa.array(np.fromiter(order, np.int64)))
    out, start = [], 0
    for size in sizes:
        out.append(mixed.slice(start, size))
        start += size
    return [*out, mixed.slice(start)]
