"""``acep.spark.for_each_batch``: match a stream in foreachBatch, and shed before events travel where time is short."""

from __future__ import annotations

import dataclasses
import json
import os
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from acep.budget import Budget
from acep.errors import DataError, EngineError, QueryError
from acep.spark.fields import with_fields
from acep.spark.interpreter import check_workers
from acep.spark.job import SentJob, job_of
from acep.spark.matching import state_in, warn_of
from acep.spark.metrics import Progress, progress_of
from acep.spark.observed import PATIENCE, Observed, run_whole
from acep.spark.one_hop import Place, call_name, versions_of
from acep.spark.row_columns import RowColumns, cell_keys, row_columns
from acep.spark.running import in_files, marks_of, place_of
from acep.spark.times import DELAY_KEY, delay_of
from acep.streaming.admission import CELLS, Admission, span_of, why_not_before
from acep.streaming.batch_log import BatchLog, Carried, Decision, decide
from acep.streaming.folders import folder_of
from acep.streaming.job import EXACT, plans_of
from acep.streaming.latest import Latest
from acep.streaming.load import Measured
from acep.streaming.needed import uses_of
from acep.streaming.sampled import points_in, tally_of, with_shed
from acep.streaming.times import before, passed
from acep.streaming.totals import TOLD
from acep.streaming.utility import share_of
from acep.streaming.versions import Versions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

__all__ = ["ForEachBatch", "for_each_batch"]

GAPS = 8  # between micro-batches, the least of which is what Spark itself takes
PROPERTIES = ("sql.streaming.queryId", "spark.jobGroup.id")


def for_each_batch(
    query: Any,
    sink: Callable[[DataFrame, int], None],
    *,
    state: str | os.PathLike[str],
    watermark: Any = None,
    budget: Budget | None = None,
    progress: Callable[[Progress], None] | None = None,
    **options: Any,
) -> ForEachBatch:
    """Match a stream for ``writeStream.foreachBatch``, and hand each micro-batch of matches to a sink.

    ``sink(found, batch)`` is called once for each micro-batch, with a DataFrame of its matches (the columns are those
    of :func:`acep.spark.match`) and its number. After a failure it is called again with the same matches and the same
    number; so a sink that replaces what it has of that number stores each match exactly once. As in every
    ``foreachBatch``, each use of the DataFrame computes it anew: a sink that needs the matches twice calls
    ``found.persist()`` first.

    ``query``, ``watermark``, ``state``, ``budget`` and the ``options`` are those of :func:`acep.spark.match`. Only
    events travel that some query can use, by their types and by conditions on one event alone, where that leaves the
    answer as it is (docs/spark.md).

    ``Budget(latency=)`` is the time of a micro-batch in seconds, the sink included. Where it does not suffice,
    events are shed before they travel to the workers, by whole sampling units (docs/spark_overload.md). Where the
    query does not allow that, they are shed where they are matched, as by :func:`acep.spark.match`, with a warning.

    ``progress`` is called after each micro-batch, with what was done so far.

    Raises :class:`QueryError`, :class:`DataError` or :class:`EngineError`.
    """
    if not callable(sink):
        raise DataError("sink= is called with the matches of each micro-batch", hint="give a function (found, batch)")
    if progress is not None and not callable(progress):
        raise DataError("progress= is called after each micro-batch", hint="give a function of one argument")
    if state is None:
        raise DataError("for_each_batch keeps its state in files", hint="state= names a folder for it")
    known = {"ts", "type", "seq", "id", "unit", "output", "engine", "buckets", "policy", "seed", "history", "latest"}
    if unknown := sorted(set(options) - known):
        raise QueryError(f"for_each_batch has no option {unknown[0]}=", hint=f"there are {', '.join(sorted(known))}")
    return ForEachBatch(query, sink, state, watermark, budget, progress, options)


class ForEachBatch:
    """Match the micro-batches that foreachBatch hands over; :func:`for_each_batch` makes one."""

    def __init__(
        self,
        query: Any,
        sink: Callable[[DataFrame, int], None],
        state: str | os.PathLike[str],
        watermark: Any,
        budget: Budget | None,
        progress: Callable[[Progress], None] | None,
        options: Mapping[str, Any],
    ) -> None:
        self._asked = (query, state, watermark, budget, dict(options))
        self._sink, self._progress = sink, progress
        self._call: _Call | None = None
        self._ended: float | None = None
        self._gaps: list[float] = []
        self._behind = False

    def __call__(self, frame: DataFrame, batch: int) -> None:
        """Match one micro-batch, and hand what was found to the sink."""
        began = time.monotonic()
        if self._ended is not None:
            self._gaps = [*self._gaps, began - self._ended][-GAPS:]
        query, run = _streaming(frame.sparkSession)
        if self._call is None or self._call.ids != (query, run):
            self._call = _call_of(frame, (query, run), *self._asked)
            self._gaps, fresh = [], True
        else:
            fresh = False
        call = self._call
        decision = call.log.begun(batch)
        if decision is None:
            decision = (call.log.done(batch - 1) if batch else None) or Decision(admission=call.admission)
            if fresh:
                decision = dataclasses.replace(decision, load=decision.load.restarted())
            decision = call.log.begin(batch, call.decided(decision))
        both, observed = call.matched(frame, batch, decision)
        if call.once:
            both.persist()
            run_whole(both)
        try:
            self._sink(call.given(both, decision), batch)
        finally:
            if call.once:
                both.unpersist()
        seen, told = call.told(frame, batch, decision, observed)
        self._ended = time.monotonic()
        seconds = self._ended - began + min(self._gaps, default=0.0)
        done = call.log.end(batch, call.after(decision, seen, told, seconds))
        if call.target is not None:
            self._say(call, done)
        if self._progress is not None:
            self._progress(call.progress(batch, done.carried, told, seen, seconds))

    def _say(self, call: _Call, done: Decision) -> None:
        """Warn when micro-batches begin to take too long though what can be shed is shed."""
        assert call.target is not None
        behind = call.admission is not None and done.load.behind(call.target)
        if behind and not self._behind:
            fixed, read, _ = done.load.costs()
            least = fixed + read * done.load.last[-1].rows
            warnings.warn(
                f"the stream falls behind latency={call.target:g}: a micro-batch takes {least:.2g} s though nothing is"
                " matched (fewer events a micro-batch, or more cores)",
                stacklevel=3,
            )
        self._behind = behind


@dataclasses.dataclass(frozen=True)
class _Call:
    """One call in one run of a streaming query: ``ids`` are those of the query and the run. ``target`` seconds are for
    a micro-batch, where ``admission`` can shed. ``latest`` bounds the times of events."""

    ids: tuple[str, str]
    job: SentJob
    result: StructType
    place: Place
    versions: Versions
    log: BatchLog
    admission: Admission | None
    target: float | None
    columns: RowColumns
    marks: DataFrame
    latest: Latest | None

    def decided(self, decision: Decision) -> Decision:
        """Decide what is admitted from now on."""
        share = 1.0
        if self.admission is not None and self.target is not None:
            last = decision.admission or self.admission
            share = decision.load.share(self.target, share_of(last.now, last.favoured[-1], decision.utility.events))
        decided = decide(decision, self.admission, share, _delay_ticks(self.job, self.place.delay_ms))
        bound = None if self.latest is None else self.latest.bound(round(time.time() * 1000), self.job.tick_ms)
        return dataclasses.replace(decided, latest=bound)

    @property
    def once(self) -> bool:
        """Whether a micro-batch must be matched only once: if it is matched again other events may be shed."""
        return self.job.timed

    def matched(self, frame: DataFrame, batch: int, decision: Decision) -> tuple[DataFrame, Observed]:
        """Give the result of a micro-batch with the texts that buckets tell, and observations of both."""
        from pyspark.sql import Observation

        columns, observed = self.columns, Observed(Observation(), Observation())
        sampled, seen = decision.admission is not None, decision.carried.seen
        wide = columns.made(with_fields(frame, self.job.columns), self.job, decision)
        late = before(passed(seen, self.place.delay_ms, self.job.tick_ms), self.job.tick_ms)
        rows = wide.observe(observed.rows, *columns.counted(late, decision.latest)).where(columns.kept)
        place = dataclasses.replace(self.place, seen=seen, sampled=sampled, known=(batch, *self.ids))
        both = in_files(rows, self.job, self.result, place, columns.sent, self.marks)
        return both.observe(observed.buckets, *columns.told), observed

    def told(
        self, frame: DataFrame, batch: int, decision: Decision, observed: Observed
    ) -> tuple[Mapping[str, Any], Sequence[str]]:
        """Give the counts of rows and the texts of buckets. A sink that did not read all matches leaves buckets that
        have not been stepped; the micro-batch is then run again, as a whole."""
        told = observed.told(self.job.buckets, PATIENCE if self.versions.written(batch) else 0.0)
        if told is None:
            both, observed = self.matched(frame, batch, decision)
            run_whole(both)
            told = observed.told(self.job.buckets, PATIENCE)
        if told is None:
            raise EngineError(
                f"Spark did not tell what was counted in micro-batch {batch}", hint="start the stream again"
            )
        return told

    def given(self, both: DataFrame, decision: Decision) -> DataFrame:
        """Give what the sink is given."""
        from pyspark.sql import functions as sf

        found = both.where(sf.col(TOLD).isNull()).drop(TOLD)
        if self.admission is None:
            return found
        whole = decision.carried.shed == 0 and decision.admission is not None and decision.admission.whole
        exact = sf.lit(whole) & sf.col(EXACT) if EXACT in found.columns else sf.lit(whole)
        return found.withColumn(EXACT, exact)

    def after(self, decision: Decision, seen: Mapping[str, Any], told: Sequence[str], seconds: float) -> Decision:
        """Give what the next micro-batch begins with."""
        so_far, went = decision.carried, int(seen["carried"])
        shed, greatest, late = int(seen["needed"]) - went, seen["seen"], int(seen.get("late", 0))
        counts, length, known = points_in(told)
        events, _, points, _ = counts
        chances = np.ones(CELLS)
        if decision.admission is not None and greatest is not None:
            middle = greatest if so_far.seen is None else (so_far.seen + greatest) // 2
            chances = decision.admission.chances(middle)
        tally = tally_of(counts, chances, int(seen["needed"]), self._crossing(int(points.sum()), length))
        carried = Carried(
            rows=so_far.rows + int(seen["rows"]),
            events=so_far.events + int(seen["events"]),
            idle=so_far.idle + int(seen["events"]) - int(seen["needed"]) - late,
            shed=so_far.shed + shed,
            seen=max((one for one in (so_far.seen, greatest) if one is not None), default=None),
            points=so_far.points + tally,
            known=so_far.known and known,
            late=so_far.late + late,
            ahead=so_far.ahead + int(seen.get("ahead", 0)),
        )
        load = decision.load.after(Measured(int(seen["rows"]), int(seen["needed"]), went, seconds))
        utility = decision.utility.after(events, points, chances) if self.place.cells else decision.utility
        return Decision(decision.admission, load, carried, utility)

    def _crossing(self, points: int, length: int) -> float:
        """Give the chance that a match reaches from one unit into the next, from the sum of the lengths of matches."""
        if self.admission is None or not points:
            return 0.0
        usual = self.admission.span / 2 if length < 0 else length / points
        return min(usual / self.admission.length, 1.0)

    def progress(
        self, batch: int, carried: Carried, told: Sequence[str], seen: Mapping[str, Any], seconds: float
    ) -> Progress:
        """Tell what was done so far, with what was shed before events travelled."""
        row = {"told": "\n".join(told), "names": json.dumps(self.job.names)}
        done = progress_of(
            {
                "observedMetrics": {"acep_": _Row(row)},
                "batchId": batch,
                "eventTime": {},
                "numInputRows": seen["rows"],
                "durationMs": {"triggerExecution": seconds * 1000},
            }
        )
        assert done is not None
        more = carried.idle + carried.shed
        if not more + carried.late + carried.ahead:
            return done
        several = self.job.several
        report = with_shed(done.report, carried, several=several)
        reports = {name: with_shed(one, carried, several=several) for name, one in done.reports.items()}
        return dataclasses.replace(
            done,
            events=done.events + more,
            late=done.late + carried.late,
            ahead=done.ahead + carried.ahead,
            late_now=done.late_now + int(seen.get("late", 0)),
            shed=done.shed + carried.shed,
            report=report,
            reports=reports,
        )


class _Row(dict[str, Any]):
    """A row as :func:`progress_of` reads it."""

    def asDict(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """As a dict."""
        return dict(self)


def _streaming(spark: SparkSession) -> tuple[str, str]:
    """Tell the ids of the streaming query and of its run. Raises :class:`EngineError` outside of foreachBatch."""
    context = getattr(spark, "sparkContext", None)
    query, run = (None if context is None else context.getLocalProperty(name) for name in PROPERTIES)
    if query is None or run is None:
        raise EngineError(
            "for_each_batch was called outside of a streaming query",
            hint="frame.writeStream.foreachBatch(acep.spark.for_each_batch(query, sink, state=...))",
        )
    return query, run


def _call_of(
    frame: DataFrame,
    ids: tuple[str, str],
    query: Any,
    state: Any,
    watermark: Any,
    budget: Budget | None,
    options: Mapping[str, Any],
) -> _Call:
    job, result = job_of(frame.schema, query, budget=budget, **options)
    plans = plans_of(job.queries, job.schema)
    admission = target = None
    if budget is not None and budget.latency is not None:
        target = budget.latency
        if why := why_not_before(plans, ids=job.schema.id is not None):
            warnings.warn(f"events are shed behind the shuffle, which saves less time: {why}", stacklevel=4)
        else:
            # Time is kept by what travels; the workers have only the other bounds.
            job, result = job_of(frame.schema, query, budget=dataclasses.replace(budget, latency=None), **options)
            admission = Admission(span_of(plans), seed=job.seed)
    warn_of(job)
    latest, job = job.latest, dataclasses.replace(job, latest=None)  # the driver keeps to it
    spark = frame.sparkSession
    check_workers(spark, job.engine)
    delay = _delay_ms(frame, job, watermark)
    if admission is not None:
        admission = dataclasses.replace(admission, delay=_delay_ticks(job, delay))
    folder = state_in(frame, state)
    wide = with_fields(frame, job.columns)
    place = dataclasses.replace(place_of(spark, job, folder, delay), cells=cell_keys(wide, job))
    log = BatchLog(folder_of(folder), ids[0], call_name(job))
    versions = versions_of(job, place, *ids)
    uses = uses_of(plans, ids=job.schema.id is not None, budget=job.budget)
    columns = row_columns(wide, job, uses)
    marks = marks_of(columns.made(wide, job, Decision()), place, columns.sent)
    return _Call(ids, job, result, place, versions, log, admission, target, columns, marks, latest)


def _delay_ms(frame: DataFrame, job: SentJob, watermark: Any) -> int:
    """The delay of the watermark. Raises :class:`DataError` if there is none, or two."""
    known = (frame.schema[job.schema.ts].metadata or {}).get(DELAY_KEY) if "." not in job.schema.ts else None
    if watermark is None:
        if known is None:
            raise DataError("a stream needs a watermark", hint='say how late events may come: watermark="10 minutes"')
        return int(known)
    if known is not None:
        raise DataError(f"`{job.schema.ts}` has a watermark already", hint="leave watermark= out")
    clock = frame.sparkSession.readStream.format("rate").load()
    marked = clock.withWatermark("timestamp", delay_of(watermark, job.schema))
    return int(marked.schema["timestamp"].metadata[DELAY_KEY])


def _delay_ticks(job: SentJob, delay_ms: int) -> int:
    return -(-delay_ms * job.tick_ms[1] // job.tick_ms[0])
