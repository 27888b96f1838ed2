"""Match a micro-batch of foreachBatch: choose the events that travel, match them, and collect the metrics."""

from __future__ import annotations

import dataclasses
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acep.bucket_state.folders import folder_of
from acep.bucket_state.state_files import StateFiles
from acep.budget import Budget
from acep.budget.pace import pace_of
from acep.errors import EngineError, warn_caller
from acep.learning.estimation.recall import Tally
from acep.overload.admission import CELLS, Admission, span_of, why_not_shed_early
from acep.overload.batch_log import BatchLog, Carried, Decision, decide
from acep.overload.event_choice import Explored, Exploring
from acep.overload.key_utility import share_of
from acep.overload.load import Measured
from acep.overload.needed_events import uses_of
from acep.overload.sampled_recall import POINTS, points_in, tally_of, with_shed
from acep.overload.time_bound import TimeBound
from acep.pattern.tree import Strategy
from acep.plan.compile import Plan
from acep.shedding.event_utility import EventUtility, is_sheddable
from acep.spark.fields import with_fields
from acep.spark.foreach.observed_batches import PATIENCE, Observed, run_whole
from acep.spark.foreach.row_columns import TICKS, RowColumns, cell_keys, row_columns
from acep.spark.interpreter import check_workers
from acep.spark.job import SentJob, make_spark_job
from acep.spark.job_descriptions import describe_jobs
from acep.spark.job_run import marks_of, process_in_files
from acep.spark.letter_case import ignores_case
from acep.spark.matching import warn_of
from acep.spark.newest_time import ANNOUNCES, announce_newest
from acep.spark.session import leave_unbounded
from acep.spark.state_choice import state_of_batch
from acep.spark.stream_run import place_of, watermark_delay
from acep.spark.workers.bucket_rows import count_rows
from acep.spark.workers.file_state_worker import StatePlace, call_name, step_in_files, versions_of
from acep.storage.sections import read_sections
from acep.streaming.job import EXACT
from acep.streaming.latest_time import Latest
from acep.streaming.progress import Progress, progress_in
from acep.streaming.query_versions import RunningQueries, Times
from acep.streaming.step import BUCKET, MicroBatch, bucket_of
from acep.streaming.time_spent import spent_of
from acep.streaming.times import begin_after, first_open_tick, watermark_of
from acep.streaming.totals import METRICS_COLUMN

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

__all__ = ["BatchCall", "call_of"]


@dataclasses.dataclass(frozen=True)
class BatchCall:
    """One call in one run of a streaming query; ``ids`` are those of the query and the run. ``bound`` is the time bound
    of a micro-batch: ``admission`` sheds events to keep it, and so do the workers if they are ``paced``. ``latest``
    bounds the times of events. With ``on_driver`` no worker is used."""

    ids: tuple[str, str]
    job: SentJob
    result: StructType
    place: StatePlace
    versions: StateFiles
    log: BatchLog
    admission: Admission | None
    bound: TimeBound | None
    paced: bool
    columns: RowColumns
    marks: DataFrame | None
    latest: Latest | None
    on_driver: bool

    def decide_admission(self, decision: Decision) -> Decision:
        """Decide which events are admitted from now on."""
        share, events = 1.0, dataclasses.replace(decision.events, n_cells=None)
        if self.admission is not None and self.bound is not None:
            last, exploring = decision.admission or self.admission, self.place.exploring
            now = share_of(last.newest, last.favoured[-1], decision.utility.events)
            now *= 1.0 if exploring is None else decision.events.share(exploring.utility)
            share = decision.load.share(self.bound.target(decision.core_time), now)
            if exploring is not None and share < 1:
                events = decision.events if share == now else events.choose(exploring.utility, share)
            if share != now:
                decision = dataclasses.replace(decision, load=decision.load.skip_next())
        decision = dataclasses.replace(decision, events=events)
        share = 1.0 if events.n_cells is not None else share
        decided = decide(decision, self.admission, share, _delay_ticks(self.job, self.place.delay_ms))
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
        result = pa.Table.from_batches(stepped, self.job.result.append(pa.field(METRICS_COLUMN, pa.string())))
        is_match = pc.is_null(result.column(METRICS_COLUMN))
        matches = result.filter(is_match).drop_columns([METRICS_COLUMN])
        if self.admission is not None:
            exact = pa.array([self._sheds_nothing(decision)] * len(matches), pa.bool_())
            if EXACT in matches.column_names:
                exact = pc.and_(matches.column(EXACT), exact)
                matches = matches.drop_columns([EXACT])
            matches = matches.append_column(EXACT, exact)
        sink(matches, batch)
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
        sampled = decision.admission is not None
        return dataclasses.replace(
            self.place,
            seen=decision.carried.seen,
            sampled=sampled,
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
        if self.admission is None:
            return matches
        is_exact = self._sheds_nothing(decision)
        exact = sf.lit(is_exact) & sf.col(EXACT) if EXACT in matches.columns else sf.lit(is_exact)
        return matches.withColumn(EXACT, exact)

    def _sheds_nothing(self, decision: Decision) -> bool:
        """Return whether no event has been shed before it travelled."""
        admits_all = (
            decision.admission is not None and decision.admission.admits_all and decision.events.n_cells is None
        )
        return admits_all and decision.carried.shed == 0

    def next_decision(
        self, decision: Decision, seen: Mapping[str, Any], metrics: Sequence[str], seconds: float
    ) -> Decision:
        """Return the decision with which the next micro-batch begins."""
        so_far, n_carried = decision.carried, int(seen["carried"])
        shed, greatest, late = int(seen["needed"]) - n_carried, seen["seen"], int(seen.get("late", 0))
        counts, length, explored, has_points_by_key = points_in(metrics)
        events_by_cell, _, points, _ = counts
        chances, single = np.ones(CELLS), decision.events.n_cells is not None
        if decision.admission is not None and greatest is not None:
            middle = greatest if so_far.seen is None else (so_far.seen + greatest) // 2
            chances = decision.admission.chances(middle)
        if single:
            sums = (float(seen["needed"]), float(points.sum()), *explored[-4:].tolist())
            tally, inside = Tally(), Explored(*sums)
        else:
            tally = tally_of(counts, chances, int(seen["needed"]), self._crossing_share(int(points.sum()), length))
            inside = Explored()
        carried = Carried(
            rows=so_far.rows + int(seen["rows"]),
            events=so_far.events + int(seen["events"]),
            idle=so_far.idle + int(seen["events"]) - int(seen["needed"]) - late,
            shed=so_far.shed + shed,
            seen=max((tick for tick in (so_far.seen, greatest) if tick is not None), default=None),
            points=so_far.points + tally,
            has_points_by_key=so_far.has_points_by_key and has_points_by_key,
            late=so_far.late + late,
            ahead=so_far.ahead + int(seen.get("ahead", 0)),
            explored=so_far.explored + inside,
        )
        carrying = seconds
        if self.paced:  # the workers bound the time of matching themselves
            lines = [json.loads(text) for text in metrics if not text.startswith(POINTS)]
            carrying = spent_of(lines, seconds).carrying
        load = decision.load.add_seconds(seconds) if self.paced else decision.load
        load = load.add_batch(Measured(int(seen["rows"]), int(seen["needed"]), n_carried, carrying))
        utility = decision.utility
        if self.place.cells and not single:
            utility = utility.add_batch(events_by_cell, points, chances)
        core_time = decision.core_time
        if self.bound is not None and greatest is not None:
            ticks = 0 if so_far.seen is None else max(0, greatest - so_far.seen)
            core_time = self.bound.account_for(core_time, ticks=ticks, seconds=seconds)
        events = decision.events.add_counts(explored)
        return Decision(
            decision.admission, load, carried, utility, core_time=core_time, events=events, version=decision.version
        )

    def _crossing_share(self, points: int, length: int) -> float:
        """Estimate the chance that a match crosses into the next sampling unit, from the sum of match lengths."""
        if self.admission is None or not points:
            return 0.0
        usual = self.admission.span / 2 if length < 0 else length / points
        return min(usual / self.admission.length, 1.0)

    def progress(
        self, batch: int, carried: Carried, metrics: Sequence[str], seen: Mapping[str, Any], seconds: float
    ) -> Progress:
        """Return the progress so far, including events that were shed before they travelled."""
        lines = [text for text in metrics if not text.startswith(POINTS)]
        row = {"told": "\n".join(lines), "names": json.dumps(self.job.names)}
        progress = progress_in(
            [row], batch=batch, events=seen["rows"], seconds=seconds, null_keys=int(seen["null_keys"])
        )
        assert progress is not None
        not_carried = carried.idle + carried.shed
        if not not_carried + carried.late + carried.ahead:
            return progress
        several = self.job.several
        report = with_shed(progress.report, carried, several=several)
        reports = {
            name: with_shed(query_report, carried, several=several) for name, query_report in progress.reports.items()
        }
        return dataclasses.replace(
            progress,
            events=progress.events + not_carried,
            late=progress.late + carried.late,
            ahead=progress.ahead + carried.ahead,
            late_now=progress.late_now + int(seen.get("late", 0)),
            ahead_now=progress.ahead_now + int(seen.get("ahead", 0)),
            shed=progress.shed + carried.shed,
            report=report,
            reports=reports,
        )


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
    job, result = make_spark_job(frame.schema, query, budget=budget, any_case=any_case, **options)
    plans, histories = job.plans, job.histories
    admission, bound, paced = None, None, False
    if budget is not None and (pace := pace_of(budget, job.schema.tick_ns)) is not None:
        cores = frame.sparkSession.sparkContext.defaultParallelism
        bound = TimeBound(pace.latency, pace.cpu, cores, pace.tick)
        if why := why_not_shed_early(plans, ids=job.schema.id is not None):
            warn_caller(f"events are shed behind the shuffle, which saves less time: {why}")
        else:
            admission = Admission(span_of(plans), seed=job.seed)
            # Under skip till any match, matching dominates, and shedding partial matches costs less recall than keys.
            paced = bound.cpu is None and all(plan.query.strategy is Strategy.SKIP_TILL_ANY_MATCH for plan in plans)
            if not paced:  # admission keeps the bound of time; the workers have only the other bounds
                other_bounds = dataclasses.replace(budget, latency=None, cpu=None)
                option_names = {name for name in options if other_bounds.limited or name not in ("policy", "history")}
                other_options = {name: options[name] for name in option_names}
                job, result = make_spark_job(
                    frame.schema, query, budget=other_bounds, any_case=any_case, **other_options
                )
    warn_of(job)
    latest, job = job.latest, dataclasses.replace(job, latest=None)  # the driver enforces it
    spark = frame.sparkSession
    if not on_driver:
        check_workers(spark, job.engine)
        leave_unbounded(spark)  # this session is a copy for this stream alone
    wide = with_fields(frame, job.columns)
    delay = watermark_delay(wide, job, watermark)
    if admission is not None:
        admission = dataclasses.replace(admission, delay=_delay_ticks(job, delay))
    folder = state_of_batch(frame, state, on_driver=on_driver)
    cells = cell_keys(wide, job)
    exploring = None if admission is None or not cells else _make_exploring(job, histories, plans[0], cells, admission)
    place = dataclasses.replace(place_of(spark, job, folder, delay), cells=cells, exploring=exploring)
    if on_driver:
        place = dataclasses.replace(place, partitions=1)
    log = BatchLog(folder_of(folder), ids[0], call_name(job))
    versions = versions_of(job, place, folder, *ids)
    needs_all = job.op is not None or job.late or job.dynamic
    uses = None if needs_all else uses_of(plans, ids=job.schema.id is not None, budget=job.budget)
    # One partition knows the newest time by itself if it gets all rows.
    keyless = not any(part.keys for part in job.passes)
    gets_all = place.partitions == 1 and keyless and uses is None and admission is None
    announced_to = 0 if on_driver or gets_all else place.partitions
    columns = row_columns(wide, job, uses, announced_to, exploring, gets_all=gets_all and not on_driver)
    names = wide.withColumn(ANNOUNCES, sf.lit(False))
    marks = marks_of(names, job, place, columns.unshed.sent) if place.partitions > 1 else None
    return BatchCall(ids, job, result, place, versions, log, admission, bound, paced, columns, marks, latest, on_driver)


def _make_exploring(
    job: SentJob, histories: Sequence[bytes], plan: Plan, keys: tuple[str, ...], admission: Admission
) -> Exploring | None:
    """Return how single events may be shed by the history of the query; ``None`` if its history does not say."""
    if job.output not in ("matches", "points") or not is_sheddable(plan):
        return None
    for data in histories:
        utility = EventUtility.from_sections(read_sections(data))
        if utility is not None and utility.fingerprint == plan.fingerprint:
            return Exploring.from_admission(utility, keys, admission)
    return None


def _metrics_error(batch: int) -> EngineError:
    return EngineError(f"Spark did not tell what was counted in micro-batch {batch}", hint="start the stream again")


def _delay_ticks(job: SentJob, delay_ms: int) -> int:
    return -(-delay_ms * job.tick_ms[1] // job.tick_ms[0])
