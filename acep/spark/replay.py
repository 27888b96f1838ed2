"""Replay past events through Spark Structured Streaming, with micro-batches, a checkpoint, progress and a summary."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import sys
import tempfile
import time
import warnings
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import pyarrow as pa

from acep.following.replay_summary import ReplaySummary
from acep.following.replayed_events import ORDER, ROW, check_page, check_tell, record_events, with_order
from acep.matches.flat import Layout
from acep.matches.report import Report
from acep.native.compiled import REFERENCE
from acep.pattern.tree import Query
from acep.runtime.options import StreamKeywords, StreamOptions, lists_options
from acep.spark.chunks import end_row, for_spark, write_chunks
from acep.spark.columns.types import spark_schema
from acep.spark.failures import error_in
from acep.spark.job_descriptions import describe_jobs
from acep.spark.live_page import TOGETHER
from acep.spark.matching import match
from acep.spark.metrics import Progress, progress_of
from acep.spark.session import get_session, needs_pyspark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from acep.serving.live_page import LivePage

__all__ = ["Replay", "replay"]

POLL = 0.2
IN_THE_RESULT = "matches that Spark finds are in the result of the replay, and are not shown as they come"


@dataclass(eq=False, kw_only=True)
class Replay(ReplaySummary):
    """The result of a replay: its metrics (:class:`~acep.following.replay_summary.ReplaySummary`) and its matches.
    ``folder`` has the matches as Parquet files; read by Spark, they are without leftovers of a crash."""

    folder: Path
    _session: Any = field(repr=False, compare=False, default=None)

    def frame(self) -> DataFrame:
        """Return the matches as a DataFrame with the columns of :func:`acep.spark.match`."""
        frame: DataFrame = self._session.read.parquet(str(self.folder))
        return frame

    def table(self, limit: int | None = None) -> pa.Table:
        """Return all matches, or the first ``limit``, as an Arrow table by match point, bound ids and variables."""
        from pyspark.sql import functions as sf

        ids = sf.map_values("bindings")
        rows = self.frame().orderBy("end", sf.sort_array(sf.flatten(ids)), sf.map_keys("bindings"), ids)
        return (rows if limit is None else rows.limit(limit)).toArrow()


@lists_options(StreamKeywords)
def replay(
    query: Query,
    events: Any,
    *,
    chunk: int | None = None,
    watermark: Any = None,
    latest: Any = None,
    checkpoint: str | os.PathLike[str] | None = None,
    versions: str | os.PathLike[str] | None = None,
    buckets: int | None = None,
    progress: bool | None = None,
    tell: Callable[[Progress], None] | None = None,
    page: LivePage | None = None,
    session: SparkSession | None = None,
    **options: Unpack[StreamKeywords],
) -> Replay:
    """Replay events through Structured Streaming as if they arrived now, and find the matches of a query.

    ``events``: a file (CSV, Parquet, JSON Lines) or a table, as :func:`acep.match` takes. It is cut into micro-batches
    of ``chunk`` events (by default a twentieth of all, at least 2,000) in order of time. With ``watermark`` (such as
    "10 minutes") the order is that of the rows, and events that arrive too late are counted as late. An event beyond
    the ``latest`` time (see :func:`acep.spark.match`) is also counted and not used. Row numbers break ties and are the
    ids if no ``id`` is named, so the matches are those of :func:`acep.match`. A last row that is no event ends the
    stream.

    ``versions`` is a folder with newer versions of the query (see :func:`acep.follow`). Those that are there when the
    replay begins come with the first events, so each of them gives the time from which on it holds.

    ``checkpoint`` is a folder from which the run can be restarted after a crash, with the same arguments; no match is
    found twice. Without it a temporary folder is used, of which the matches stay as long as the Spark session.
    ``progress``: whether to write the progress to stderr (``None``: if that is a terminal). ``tell`` is called with the
    progress of each micro-batch soon after it, and a ``page`` (:class:`acep.LivePage`) shows it live. ``engine``,
    ``budget``, ``policy``, ``seed`` and ``history`` are those of :func:`acep.spark.match`.

    Raises :class:`QueryError`, :class:`DataError`, :class:`EngineError`, or :class:`SnapshotError` if the checkpoint is
    of other events, another query or another engine.
    """
    needs_pyspark()
    stream_options = StreamOptions.from_keywords("replay", options)
    check_tell(tell)
    recorded = record_events(
        query, events, stream_options, chunk=chunk, watermark=watermark, latest=latest, versions=versions
    )
    schema, about = recorded.schema, recorded.about | {"buckets": buckets, "state": "in files"}
    table = with_order(for_spark(recorded.table), schema, sort=watermark is None)
    folder = Path(tempfile.mkdtemp(prefix="acep-replay-") if checkpoint is None else os.fspath(checkpoint)).resolve()
    end = end_row(schema, table.schema.field(schema.ts).type)
    chunks = write_chunks(table, folder / "events", recorded.chunk, end, about)
    spark = session or get_session()
    if watermark is None:
        # Rows come in order, so a delay of one tick (or Spark's millisecond) is enough for ties across chunks.
        watermark = "1 millisecond" if schema.instants else 1
    stream = spark.readStream.schema(spark_schema(table.schema))
    frame = stream.option("maxFilesPerTrigger", 1).option("pathGlobFilter", "*.parquet").parquet(str(folder / "events"))
    options |= {"seq": ORDER, "id": stream_options.id or ROW}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=f"(?!{REFERENCE})")
        matches = match(
            frame,
            recorded.query,
            buckets=buckets,
            watermark=watermark,
            state=folder / "state",
            latest=latest,
            versions=versions,
            **options,
        )
    writer = _progress_writer(chunks) if progress or (progress is None and sys.stderr.isatty()) else None
    try:
        result = _run(spark, matches, folder, [writer, tell, _begin_page(page, recorded.query, stream_options)])
        result.layout = Layout.of_plans([recorded.plan])
        _end_page(page, result)
        if writer is not None and result.batches:
            sys.stderr.write("\n")
    except BaseException:
        if checkpoint is None:
            shutil.rmtree(folder, ignore_errors=True)
        raise
    if checkpoint is None:
        _keep_matches(folder, spark)
    return result


def _begin_page(page: LivePage | None, query: Query, options: StreamOptions) -> Callable[[Progress], None] | None:
    """Show a query on a live page, and return the function to which it wants the progress told."""
    check_page(page)
    if page is None:
        return None
    page.begin(query, rows_note=IN_THE_RESULT, partials_note=TOGETHER, history=options.history)
    return page.tell


def _end_page(page: LivePage | None, result: Replay) -> None:
    if page is not None:
        page.end(str(result).splitlines()[0])


def _keep_matches(folder: Path, session: Any) -> None:
    """Remove what a replay needs no more, and its matches with the session: frames are read when the result is gone."""
    for part in folder.iterdir():
        if part.is_file():
            part.unlink()
        elif part.name != "matches":
            shutil.rmtree(part, ignore_errors=True)
    weakref.finalize(session, shutil.rmtree, folder, ignore_errors=True)


def _run(
    spark: SparkSession, frame: DataFrame, folder: Path, tell: Sequence[Callable[[Progress], None] | None]
) -> Replay:
    from pyspark.errors import PySparkException
    from pyspark.sql import functions as sf

    began = time.monotonic()
    matches = folder / "matches"
    writer = frame.writeStream.format("parquet").option("path", str(matches))
    writer = writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True)
    writer = writer.queryName(f"acep replay in {folder}")  # Spark describes its jobs so
    try:
        running = writer.start()
        try:
            seen = _watch(running, [listener for listener in tell if listener is not None])
        finally:
            running.stop()
        running.awaitTermination()
    except PySparkException as failure:
        error = error_in(failure)
        if error is None:
            raise
        raise error from None
    seconds = time.monotonic() - began
    report, allowance = _final_report(folder / "totals.json", seen[-1] if seen else None)
    rows = spark.read.schema(frame.schema).parquet(str(matches)) if matches.exists() else frame.limit(0)
    keys = ["key"] if "key" in rows.columns else []
    with describe_jobs(spark, "count the matches of a replay"):
        number, bundles = rows.agg(sf.count(sf.lit(1)), sf.countDistinct(*keys, "bundle")).collect()[0]
    report = dataclasses.replace(report, matches=number, seconds=seconds)
    return Replay(
        events=report.events,
        late=report.late,
        matches=number,
        bundles=bundles,
        seconds=seconds,
        folder=matches,
        report=report,
        allowance=allowance,
        _session=spark,
        **ReplaySummary.maxima(seen),
    )


def _watch(running: StreamingQuery, tell: Sequence[Callable[[Progress], None]]) -> list[Progress]:
    """Follow a query to its end, and return the progress of each micro-batch."""
    seen: dict[int, Progress] = {}
    while True:
        active = running.isActive
        for spark_progress in running.recentProgress:
            if spark_progress["batchId"] not in seen and (progress := progress_of(spark_progress)) is not None:
                seen[progress.batch] = progress
                for listener in tell:
                    listener(progress)
        if not active:
            return list(seen.values())
        time.sleep(POLL)


def _final_report(path: Path, last: Progress | None) -> tuple[Report, int]:
    """Return the final report and allowance, of this run or of an earlier one if this one had nothing left to do."""
    if last is not None:
        totals = {"report": dataclasses.asdict(last.report), "allowance": last.allowance}
        path.write_text(json.dumps(totals), encoding="utf-8")
        return last.report, last.allowance
    try:
        totals = json.loads(path.read_text(encoding="utf-8"))
        fields: Any = {
            name: tuple(value) if isinstance(value, list) else value for name, value in totals["report"].items()
        }
        return Report(**fields), int(totals["allowance"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return Report(), 0


def _progress_writer(chunks: int) -> Callable[[Progress], None]:
    """Return a function that writes one line per micro-batch, over the previous one if stderr is a terminal."""
    terminal = sys.stderr.isatty()
    start, end = ("\r\x1b[K", "") if terminal else ("", "\n")

    def tell(progress: Progress) -> None:
        line = f"batch {min(progress.batch + 1, chunks)} of {chunks}: {progress}"
        if terminal:
            line = line[: shutil.get_terminal_size().columns - 1]  # only a single line can be overwritten
        sys.stderr.write(f"{start}{line}{end}")
        sys.stderr.flush()

    return tell
