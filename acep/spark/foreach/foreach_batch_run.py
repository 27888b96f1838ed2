"""Match a micro-batch of foreachBatch: choose the events that travel, match them, and collect the metrics."""

from __future__ import annotations

import dataclasses
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from acep.bucket_state.folders import folder_of
from acep.bucket_state.state_files import StateFiles
from acep.budget import Budget
from acep.errors import EngineError
from acep.overload.batch_log import BatchLog, Decision, RunningTotals
from acep.overload.early_shedding import EarlyShedding, sheds_nothing, with_carried
from acep.overload.needed_events import uses_of
from acep.overload.sampled_recall import POINTS
from acep.spark.columns.fields import with_fields
from acep.spark.columns.letter_case import ignores_case
from acep.spark.early_shedding import cell_keys, plan_early_shedding
from acep.spark.foreach.observed_batches import PATIENCE, Observed, run_whole
from acep.spark.foreach.row_columns import TICKS, RowColumns, row_columns
from acep.spark.interpreter import check_workers
from acep.spark.job import SentJob, make_spark_job
from acep.spark.job_descriptions import describe_jobs
from acep.spark.job_run import marks_of, process_in_files
from acep.spark.matching import warn_of
from acep.spark.newest_time import ANNOUNCES, announce_newest
from acep.spark.session import leave_unbounded
from acep.spark.state_choice import state_of_batch
from acep.spark.stream_run import place_of, watermark_delay
from acep.spark.workers.bucket_rows import count_rows
from acep.spark.workers.file_state_worker import step_in_files, with_exactness
from acep.spark.workers.state_place import StatePlace, call_name, versions_of
from acep.streaming.job import EXACT
from acep.streaming.latest_time import Latest
from acep.streaming.progress import Progress, progress_in
from acep.streaming.query_versions import RunningQueries, Times
from acep.streaming.step import BUCKET, MicroBatch, bucket_of
from acep.streaming.times import begin_after, first_open_tick, watermark_of
from acep.streaming.totals import METRICS_COLUMN

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

__all__ = ["BatchCall", "call_of"]


@dataclasses.dataclass(frozen=True)
class BatchCall:
    """One call in one run of a streaming query; ``ids`` are those of the query and the run. ``latest`` bounds the times
    of events. With ``on_driver`` no worker is used."""

    ids: tuple[str, str]
    job: SentJob
    result: StructType
    place: StatePlace
    versions: StateFiles
    log: BatchLog
    shedding: EarlyShedding
    columns: RowColumns
    marks: DataFrame | None
    latest: Latest | None
    on_driver: bool

    def decide_admission(self, decision: Decision) -> Decision:
        """Decide which events are admitted from now on."""
        decided = self.shedding.decide(decision)
        bound = None if self.latest is None else self.latest.greatest_tick(round(time.time() * 1000), self.job.tick_ms)
        return dataclasses.replace(decided, latest=bound)

    def queries(self, batch: int, decision: Decision) -> tuple[RunningQueries, Times]:
        """Return the queries of the stream with all versions before a micro-batch, and the times of versions that come
        with it."""
        old_versions, seen = self.versions.begin_batch(batch), decision.carried.seen
        micro_batch = MicroBatch(self.job, self.versions, batch, old_versions, self.place.delay_ms, None, seen)
        queries = bucket_of(micro_batch, 0).queries
        assert queries is not None
        return queries, (micro_batch.since, None, self.job.earliest_since(micro_batch.final))

    def times(self, seen: int | None) -> Times:
        """Return the times of versions that come with a micro-batch, if ``seen`` is the greatest tick before it."""
        final = first_open_tick(watermark_of(seen, self.place.delay_ms, self.job.tick_ms), self.job.tick_ms)
        return begin_after(seen, self.job.tick_ms), None, self.job.earliest_since(final)

    @property
    def _matches_once(self) -> bool:
        """Whether a micro-batch must be matched only once, because a second time other events may be shed."""
        return self.job.timed

    def run(
        self, frame: DataFrame, batch: int, decision: Decision, sink: Callable[[Any, int], None]
    ) -> tuple[Mapping[str, Any], Sequence[str]]:
        """Match a micro-batch, and hand the matches to the sink; return the counts of rows and the metrics of
        buckets."""
        if self.on_driver:
            return self._run_on_driver(frame, batch, decision, sink)
        result, observed = self._match(frame, batch, decision)
        if self._matches_once:
            result.persist()
            with describe_jobs(frame.sparkSession, "match the events"):
                run_whole(result)
        try:
            sink(self._matches_for_sink(result, decision), batch)
        finally:
            if self._matches_once:
                result.unpersist()
        return self._collect_metrics(frame, batch, decision, observed)

    def _run_on_driver(
        self, frame: DataFrame, batch: int, decision: Decision, sink: Callable[[Any, int], None]
    ) -> tuple[Mapping[str, Any], Sequence[str]]:
        """Run a micro-batch in this process; the sink gets a table."""
        rows, sent, observed = self._travelling_rows(frame, decision)
        with describe_jobs(frame.sparkSession, "collect the events"):
            arrived = rows.select(*sent).toArrow()
        events = arrived.filter(arrived.column(BUCKET).is_valid()) if arrived.column(BUCKET).null_count else arrived
        seen = count_rows(self.job, arrived) if observed is None else observed.read_counts(PATIENCE)
        if seen is None:
            raise _metrics_error(batch)
        place = dataclasses.replace(self._place(batch, decision), newest=seen["seen"])
        stepped = step_in_files(self.job, place, events.to_batches(), self._cores)
        columns = self.job.result.append(pa.field(METRICS_COLUMN, pa.string()))
        if self.shedding.admission is not None:
            is_exact = sheds_nothing(decision)
            stepped = (with_exactness(part, is_exact=is_exact) for part in stepped)
            columns = with_exactness(pa.RecordBatch.from_pylist([], columns), is_exact=is_exact).schema
        result = pa.Table.from_batches(stepped, columns)
        is_match = pc.is_null(result.column(METRICS_COLUMN))
        matches = result.filter(is_match).drop_columns([METRICS_COLUMN])
        # Without a chunk Spark would make no DataFrame of it.
        sink(matches if matches.num_rows else matches.schema.empty_table(), batch)
        return seen, result.column(METRICS_COLUMN).drop_null().to_pylist()

    @property
    def _cores(self) -> int:
        """The cores that match in this process: one where functions of the user's own are called, which may be unfit
        for threads, or where the buckets themselves keep a bound of time."""
        alone = self.job.timed or any(plan.computed for plan in self.job.plans)
        return 1 if alone else min(os.cpu_count() or 1, self.job.buckets)

    def _counts_itself(self, decision: Decision) -> bool:
        """Return whether all rows come to this process, each event for one bucket, so that it can count them."""
        return self.on_driver and decision.admission is None and self.columns.needs_all and self.columns.passes == 1

    def _travelling_rows(
        self, frame: DataFrame, decision: Decision
    ) -> tuple[DataFrame, Sequence[Column], Observed | None]:
        """Return the rows that travel, the columns that they have on the way, and the observations, unless this process
        counts the rows itself."""
        from pyspark.sql import Observation
        from pyspark.sql import functions as sf

        columns, observed = self.columns, Observed(Observation(), Observation(), Observation())
        late = first_open_tick(
            watermark_of(decision.carried.seen, self.place.delay_ms, self.job.tick_ms), self.job.tick_ms
        )
        frame = with_fields(frame, self.job.columns)
        if columns.all_travel(decision):
            unshed = columns.unshed
            if self._counts_itself(decision):
                return frame, unshed.sent, None
            frame = frame.observe(observed.rows, *unshed.counting_columns(late))
            frame = announce_newest(frame, unshed.ticks) if columns.announced_to else frame
            return (frame if unshed.travels is None else frame.where(unshed.travels)), unshed.sent, observed
        frame = columns.compute_columns(frame, self.job, decision)
        frame = frame.observe(observed.rows, *columns.counting_columns(late, decision.latest))
        frame = announce_newest(frame, sf.col(TICKS)) if columns.announced_to else frame
        return frame.where(columns.travels), columns.sent, observed

    def _place(self, batch: int, decision: Decision) -> StatePlace:
        return dataclasses.replace(
            self.place,
            seen=decision.carried.seen,
            sampled=decision.admission is not None,
            batch_ids=(batch, *self.ids),
            newer=decision.versions,
        )

    def _match(self, frame: DataFrame, batch: int, decision: Decision) -> tuple[DataFrame, Observed]:
        """Return the result of a micro-batch together with the metrics of buckets, and the observations of both."""
        rows, sent, observed = self._travelling_rows(frame, decision)
        assert observed is not None
        result = process_in_files(rows, self.job, self.result, self._place(batch, decision), sent, self.marks)
        result = result.observe(observed.buckets, *self.columns.metrics)
        return result.observe(observed.points, *self.columns.points), observed

    def _collect_metrics(
        self, frame: DataFrame, batch: int, decision: Decision, observed: Observed
    ) -> tuple[Mapping[str, Any], Sequence[str]]:
        """Return the counts of rows and the metrics of buckets. If the sink did not read all matches, some buckets have
        not been processed; the whole micro-batch is then run again."""
        observations = observed.read_all(self.job.buckets, PATIENCE if self.versions.has_written(batch) else 0.0)
        if observations is None:
            result, observed = self._match(frame, batch, decision)
            with describe_jobs(frame.sparkSession, "match what the sink did not read"):
                run_whole(result)
            observations = observed.read_all(self.job.buckets, PATIENCE)
        if observations is None:
            raise _metrics_error(batch)
        return observations

    def _matches_for_sink(self, result: DataFrame, decision: Decision) -> DataFrame:
        """Return the DataFrame for the sink."""
        from pyspark.sql import functions as sf

        matches = result.where(sf.col(METRICS_COLUMN).isNull()).drop(METRICS_COLUMN)
        if self.shedding.admission is None:
            return matches
        is_exact = sheds_nothing(decision)
        exact = sf.lit(is_exact) & sf.col(EXACT) if EXACT in matches.columns else sf.lit(is_exact)
        return matches.withColumn(EXACT, exact)

    def progress(
        self, batch: int, carried: RunningTotals, metrics: Sequence[str], counts: Mapping[str, Any], seconds: float
    ) -> Progress:
        """Return the progress so far, including events that were shed before they travelled."""
        lines = [text for text in metrics if not text.startswith(POINTS)]
        row = {"told": "\n".join(lines), "names": json.dumps(self.job.names)}
        progress = progress_in(
            [row], batch=batch, events=counts["rows"], seconds=seconds, null_keys=int(counts["null_keys"])
        )
        assert progress is not None
        return with_carried(progress, carried, counts, several=self.job.several)


def call_of(
    frame: DataFrame,
    ids: tuple[str, str],
    query: Any,
    state: Any,
    watermark: Any,
    budget: Budget | None,
    options: Mapping[str, Any],
    on_driver: bool,
) -> BatchCall:
    """Create the call of a run of a streaming query with these ids, from its first micro-batch and the user's options.

    Raises :class:`QueryError`, :class:`DataError` or :class:`EngineError`.
    """
    from pyspark.sql import functions as sf

    any_case = ignores_case(frame.sparkSession)
    bounds = budget if budget is None else dataclasses.replace(budget, min_recall=None)
    job, result = make_spark_job(frame.schema, query, budget=bounds, any_case=any_case, **options)
    wide, plans = with_fields(frame, job.columns), job.plans
    delay_ms = watermark_delay(wide, job, watermark)

    def remake(other_bounds: Budget) -> tuple[SentJob, StructType]:
        names = {name for name in options if other_bounds.limited or name not in ("policy", "history")}
        other_options = {name: options[name] for name in names}
        return make_spark_job(frame.schema, query, budget=other_bounds, any_case=any_case, **other_options)

    job, result, shedding = plan_early_shedding(frame, job, result, budget, delay_ms, remake)
    warn_of(job)
    latest, job = job.latest, dataclasses.replace(job, latest=None)  # the driver enforces it
    spark = frame.sparkSession
    if not on_driver:
        check_workers(spark, job.engine)
        leave_unbounded(spark)  # this session is a copy for this stream alone
    folder = state_of_batch(frame, state, on_driver=on_driver)
    place = dataclasses.replace(
        place_of(spark, job, folder, delay_ms),
        cells=cell_keys(wide, job),
        exploring=shedding.exploring,
    )
    if on_driver:
        place = dataclasses.replace(place, partitions=1)
    log = BatchLog(folder_of(folder), ids[0], call_name(job))
    versions = versions_of(job, place, folder, *ids)
    needs_all = job.op is not None or job.late or job.dynamic
    uses = None if needs_all else uses_of(plans, ids=job.schema.id is not None, budget=job.budget)
    # One partition knows the newest time by itself if it gets all rows.
    keyless = not any(part.keys for part in job.passes)
    gets_all = place.partitions == 1 and keyless and uses is None and shedding.admission is None
    announced_to = 0 if on_driver or gets_all else place.partitions
    columns = row_columns(wide, job, uses, announced_to, shedding.exploring, gets_all=gets_all and not on_driver)
    names = wide.withColumn(ANNOUNCES, sf.lit(False))
    marks = marks_of(names, job, place, columns.unshed.sent) if place.partitions > 1 else None
    return BatchCall(ids, job, result, place, versions, log, shedding, columns, marks, latest, on_driver)


def _metrics_error(batch: int) -> EngineError:
    return EngineError(f"Spark did not tell what was counted in micro-batch {batch}", hint="start the stream again")
