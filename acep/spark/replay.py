"""Replay past events through Spark Structured Streaming, with micro-batches, a checkpoint, progress and a summary."""

from __future__ import annotations

import dataclasses
import hashlib
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

from acep.budget import tolerant
from acep.display import rate_text
from acep.errors import DataError
from acep.events.buffers import table_bytes
from acep.events.duplicates import settle_duplicates
from acep.events.empty_schema import choose_types
from acep.events.fields import column_at
from acep.events.files.options import options_of
from acep.events.files.stream import open_events
from acep.events.tables import schema_of, to_table
from acep.matches.flat import Layout
from acep.matches.report import Report
from acep.native.compiled import REFERENCE
from acep.pattern import query_arguments
from acep.pattern.printing import canonical
from acep.pattern.query_arguments import query_of
from acep.pattern.tree import Query
from acep.plan.compile import compile_query
from acep.runtime.options import StreamKeywords, StreamOptions, lists_options
from acep.spark.chunks import ORDER, ROW, end_row, for_spark, with_order, write_chunks
from acep.spark.columns.types import spark_schema
from acep.spark.failures import error_in
from acep.spark.job_descriptions import describe_jobs
from acep.spark.matching import match
from acep.spark.metrics import Progress, progress_of
from acep.spark.session import get_session, needs_pyspark
from acep.streaming.job import all_columns, columns_read
from acep.streaming.progress import length_text
from acep.streaming.time_spent import Spent

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

__all__ = ["Replay", "replay"]

CHUNKS = 20
SMALLEST = 2_000
POLL = 0.2


@dataclass(eq=False)
class Replay:
    """The result of a replay: its metrics and its matches.

    ``events`` accepted, ``late`` events refused, ``matches`` and ``bundles`` found, micro-``batches`` and ``seconds``
    of this run, and the split ``spent`` of their time. ``report`` corresponds to :attr:`acep.Matches.report`, and
    ``allowance`` is the number of transition evaluations that a budget allowed (0: no budget). The maxima over all
    micro-batches are bytes of ``state``, ``live`` partial matches and seconds of ``lag``. ``folder`` has the matches as
    Parquet files; read by Spark, they are without leftovers of a crash. ``layout`` says which columns their flat table
    has.
    """

    events: int
    late: int
    matches: int
    bundles: int
    batches: int
    seconds: float
    folder: Path
    report: Report
    allowance: int
    spent: Spent = field(default_factory=Spent)
    state: int = 0
    live: int = 0
    lag: float = 0.0
    layout: Layout = field(repr=False, default=Layout((), frozenset()))
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

    def __str__(self) -> str:
        rate = rate_text(self.events, self.seconds) if self.batches else ""
        speed = f" ({rate} events/s)" if rate else ""
        late = f"; {self.report.refused}" if self.report.refused else ""
        late += f"; {self.report.duplicates:,} came twice" if self.report.duplicates else ""
        text = (
            f"{self.events:,} events in {self.batches} micro-batches, {self.seconds:.1f} s{speed}{late}\n"
            f"{self.matches:,} matches in {self.bundles:,} bundles"
        )
        if self.batches:
            text += (
                f"\nat most {self.state / 1e6:,.2f} MB of state, {self.live:,} live partial matches and a lag of"
                f" {length_text(self.lag)}\ntime of micro-batches: {self.spent}"
            )
        return f"{text}\n{self.report.effort}" if self.allowance else text


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
    progress of each micro-batch soon after it. ``engine``, ``budget``, ``policy``, ``seed`` and ``history`` are those
    of :func:`acep.spark.match`.

    Raises :class:`QueryError`, :class:`DataError`, :class:`EngineError`, or :class:`SnapshotError` if the checkpoint is
    of other events, another query or another engine.
    """
    needs_pyspark()
    stream_options = StreamOptions.from_keywords("replay", options)
    ts, budget = stream_options.ts, stream_options.budget
    query = tolerant(query_of(query), budget)
    source = str(Path(events).resolve()) if isinstance(events, str | os.PathLike) else ""
    table = _table_of(events, query, stream_options, reads_all=versions is not None) if source else to_table(events)
    if tell is not None and not callable(tell):
        raise DataError(
            "tell= is called after each micro-batch", hint="give a function of one argument", code="option_invalid"
        )
    if chunk is not None and chunk < 1:
        raise DataError(f"chunk={chunk} is not a positive number of events", code="option_invalid")
    schema = schema_of(table.schema, **stream_options.columns)
    plan = compile_query(query, schema)
    read = sorted(columns_read([plan], schema) | ({*all_columns(schema)} if versions is not None else set()))
    table = pa.table({name: column_at(table, name) for name in read})  # a field of a struct as a column of its own
    size = chunk or max(SMALLEST, -(-table.num_rows // CHUNKS))
    about = {
        "events": f"{source} {_identify_events(source, table)}",
        "query": canonical(query),
        "columns": repr([(name, str(table.schema.field(name).type)) for name in read]),
        "names": repr((schema.ts, schema.type, schema.seq, schema.id, stream_options.unit)),
        "chunk": size,
        "watermark": str(watermark),
        "buckets": buckets,
        "state": "in files",
    }
    if versions is not None:
        about["dynamic"] = True
    if latest is not None:
        about["latest"] = str(latest)
    if budget is not None and budget.limited:
        about["budget"] = repr((budget.work, budget.memory, stream_options.policy, stream_options.seed))
    table = with_order(for_spark(table), schema, sort=watermark is None)
    folder = Path(tempfile.mkdtemp(prefix="acep-replay-") if checkpoint is None else os.fspath(checkpoint)).resolve()
    chunks = write_chunks(table, folder / "events", size, end_row(schema, table.schema.field(ts).type), about)

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
            query,
            buckets=buckets,
            watermark=watermark,
            state=folder / "state",
            latest=latest,
            versions=versions,
            **options,
        )
    writer = _progress_writer(chunks) if progress or (progress is None and sys.stderr.isatty()) else None
    try:
        result = _run(spark, matches, folder, [listener for listener in (writer, tell) if listener is not None])
        result.layout = Layout.of_plans([plan])
        if writer is not None and result.batches:
            sys.stderr.write("\n")
    except BaseException:
        if checkpoint is None:
            shutil.rmtree(folder, ignore_errors=True)
        raise
    if checkpoint is None:
        _keep_matches(folder, spark)
    return result


def _keep_matches(folder: Path, session: Any) -> None:
    """Remove what a replay needs no more, and its matches with the session: frames are read when the result is gone."""
    for part in folder.iterdir():
        if part.is_file():
            part.unlink()
        elif part.name != "matches":
            shutil.rmtree(part, ignore_errors=True)
    weakref.finalize(session, shutil.rmtree, folder, ignore_errors=True)


def _table_of(path: Any, query: Query, options: StreamOptions, *, reads_all: bool) -> pa.Table:
    """Read a file of events with the columns that the query reads, or with all of them (``reads_all``).

    Raises :class:`DataError` for a row whose id came before, with its place, unless such rows are left out later.
    """
    roles = [name for name in (options.ts, options.type, options.seq, options.id) if name is not None]
    names = None if reads_all else [*dict.fromkeys([*roles, *query_arguments.columns_read(query)])]
    reading = options_of(columns=names, ts=options.ts, type=options.type, id=options.id)
    with open_events(path, dataclasses.replace(reading, checks_ids=False)) as opened:
        table = opened.read_all()
        if options.duplicates == "refuse":
            table = settle_duplicates(table, options.id, place_of=opened.place_of)
    if table.num_rows:
        return table
    # Spark needs a type of the times; choose_types() replaces one that cannot be theirs.
    fields = [pa.field(f.name, pa.float64() if pa.types.is_null(f.type) else f.type) for f in table.schema]
    return choose_types(pa.schema(fields), [query], options.columns).empty_table()


def _identify_events(source: str, table: pa.Table) -> str:
    """Identify events by the size and modification time of their file, or by a digest of the table."""
    if source:
        stat = Path(source).stat()
        return f"{stat.st_size} {stat.st_mtime_ns}"
    return hashlib.blake2b(table_bytes(table), digest_size=16).hexdigest()


def _run(spark: SparkSession, frame: DataFrame, folder: Path, tell: Sequence[Callable[[Progress], None]]) -> Replay:
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
            seen = _watch(running, tell)
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
        batches=len(seen),
        seconds=seconds,
        folder=matches,
        report=report,
        allowance=allowance,
        spent=sum((progress.spent for progress in seen), Spent()),
        state=max((progress.state for progress in seen), default=0),
        live=max((progress.live for progress in seen), default=0),
        lag=max((progress.lag or 0.0 for progress in seen), default=0.0),
        _session=spark,
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
