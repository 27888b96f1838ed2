"""Match a stream in foreachBatch, and shed events before they travel to the workers if time is short."""

from __future__ import annotations

import copy
import dataclasses
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from acep.budget import Budget
from acep.errors import DataError, EngineError, QueryError
from acep.matches.flat import check_flat
from acep.overload.batch_log import Decision
from acep.pattern.tree import Query
from acep.runtime.options import RevisedKeywords
from acep.spark.flat_results import flatten_result
from acep.spark.foreach.foreach_batch_run import BatchCall, call_of
from acep.spark.listening import report_progress
from acep.spark.query_start import can_announce, prepare_queries
from acep.spark.session import needs_pyspark
from acep.spark.state_choice import check_batch_state
from acep.spark.watched_runs import count_progress, warn_of_run
from acep.streaming.progress import Progress, RunCounts
from acep.streaming.query_versions import NewVersion, RunningQueries, Times, text_of_version

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["ForEachBatch", "for_each_batch"]

GAPS = 8  # recent pauses between micro-batches; the shortest is Spark's own time
PROPERTIES = ("sql.streaming.queryId", "spark.jobGroup.id")


def for_each_batch(
    query: Any,
    sink: Callable[[Any, int], None],
    *,
    on_driver: bool = False,
    state: str | os.PathLike[str] | None = None,
    watermark: Any = None,
    budget: Budget | None = None,
    progress: Callable[[Progress], None] | None = None,
    flat: bool = False,
    **options: Any,
) -> ForEachBatch:
    """Match a stream for ``writeStream.foreachBatch``, and hand each micro-batch of matches to a sink.

    ``sink(found, batch)`` is called once for each micro-batch, with a DataFrame of its matches (the columns are those
    of :func:`acep.spark.match`) and its number. After a failure it is called again with the same matches and the same
    number; so a sink that replaces what it has of that number stores each match exactly once. As in every
    ``foreachBatch``, each use of the DataFrame computes it anew: a sink that needs the matches twice calls
    ``found.persist()`` first.

    ``query``, ``watermark``, ``state``, ``budget``, ``flat`` and the ``options`` are those of
    :func:`acep.spark.match`. The state is always in files: without ``state`` and the setting in the folder ``acep`` of
    the checkpoint, if all workers certainly reach it, as on one machine; elsewhere ``state`` has to be given.

    Only events that some query can use, by their types and by conditions on one event alone, travel to the workers, if
    that leaves the result as it is (docs/reference/spark_sinks.md).

    ``Budget(latency=)`` is the time of a micro-batch in seconds, the sink included. ``Budget(cpu=)`` is a share of a
    core against the clock of the events; a micro-batch counts as holding all cores of the session while it runs. If the
    time is not sufficient, events are shed before they travel to the workers, by whole sampling units
    (docs/explanation/spark_overload.md). If the query does not allow that, the workers shed, as in
    :func:`acep.spark.match`, with a warning. Under ``latency`` both shed if the strategy is skip till any match. There
    a ``history`` may say which single events matter; then the others are shed in place of whole units.

    With ``on_driver`` the events of a micro-batch are collected as Arrow and matched in the driver's process, in
    threads, without a shuffle or a Python worker. This is for one machine and micro-batches that fit in memory.
    ``sink`` then gets a ``pyarrow.Table``. A stream may be restarted with or without it.

    With ``dynamic`` a query may be replaced while the stream runs: :meth:`ForEachBatch.replace`. All columns and events
    travel then.

    ``progress`` is called after each micro-batch with the progress so far, and the counts of the run in ``run``; and so
    are listeners of :func:`acep.spark.listener` that the session has.

    Raises :class:`QueryError`, :class:`DataError` or :class:`EngineError`.
    """
    needs_pyspark()
    from pyspark.sql import SparkSession, is_remote

    if is_remote():
        raise EngineError(
            "for_each_batch needs a driver in this process, and a session of Spark Connect has none",
            hint="acep.spark.match(df, query, state=...) works there",
            code="engine_unable",
        )
    if not callable(sink):
        raise DataError(
            "sink= is called with the matches of each micro-batch",
            hint="give a function (found, batch)",
            code="option_invalid",
        )
    if progress is not None and not callable(progress):
        raise DataError(
            "progress= is called after each micro-batch", hint="give a function of one argument", code="option_invalid"
        )
    check_flat(flat, dynamic=bool(options.get("dynamic")))
    option_names = {*RevisedKeywords.__annotations__, "output", "buckets", "latest", "late", "dynamic"} - {"budget"}
    if unknown := sorted(set(options) - option_names):
        raise QueryError(
            f"for_each_batch has no option {unknown[0]}=",
            hint=f"there are {', '.join(sorted(option_names))}",
            code="option_invalid",
        )
    session = SparkSession.getActiveSession()
    check_batch_state(session, state, on_driver=on_driver)
    if session is not None and can_announce(session):
        prepare_queries(session)
    return ForEachBatch(query, sink, state, watermark, budget, progress, options, on_driver=on_driver, flat=flat)


class ForEachBatch:
    """The function for foreachBatch that matches each micro-batch; :func:`for_each_batch` creates it."""

    def __init__(
        self,
        query: Any,
        sink: Callable[[Any, int], None],
        state: str | os.PathLike[str] | None,
        watermark: Any,
        budget: Budget | None,
        progress: Callable[[Progress], None] | None,
        options: Mapping[str, Any],
        *,
        on_driver: bool,
        flat: bool = False,
    ) -> None:
        self._arguments = (query, state, watermark, budget, dict(options), on_driver)
        self._sink, self._progress, self._flat = sink, progress, flat
        self._call: BatchCall | None = None
        self._ended: float | None = None
        self._gaps: list[float] = []
        self._behind = False
        self._counts = RunCounts()
        self._waiting: list[tuple[str, str]] = []  # names and texts of new versions of queries
        self._queries: RunningQueries | None = None  # with all versions that were recorded
        self._times: Times = (None, None, None)  # of versions that come with the next micro-batch
        self._lock = threading.Lock()

    def replace(self, new: Query | str | Path, *, query: str = "") -> None:
        """Replace a query by another version from the next micro-batch on, while the stream runs.

        ``new`` is a query or its text, or for an automaton the text or the path of its TOML; ``query`` is the name of
        the query if there are several. The version holds from the first millisecond after the latest event of earlier
        micro-batches. It is recorded before its first micro-batch, so that a retry or a restart uses it again. The
        rules for changes are those of :meth:`acep.Matcher.replace`.

        Raises :class:`QueryError` or :class:`DataError`, and replaces nothing, without ``dynamic`` or for a query that
        cannot take the place of the last version. Before the first micro-batch the columns are not known, and the time
        of a version may pass before the next one: a version that does not fit then stops the stream, and is not
        recorded.
        """
        if not self._arguments[4].get("dynamic"):
            raise QueryError(
                "these queries do not change", hint="for_each_batch(..., dynamic=True)", code="query_change"
            )
        text = text_of_version(new)
        with self._lock:
            waiting = [*self._waiting, (query, text)]
            if self._queries is not None:
                copy.copy(self._queries).take(_number_versions(waiting, self._queries.newest), *self._times)
            self._waiting = waiting

    def _with_versions(self, call: BatchCall, batch: int, decision: Decision) -> Decision:
        """Return a decision with the versions that wait, which must fit the queries."""
        with self._lock:
            if self._queries is None or self._waiting:
                self._queries, self._times = call.queries(batch, decision)
            new_versions = _number_versions(self._waiting, self._queries.newest)
            self._waiting = []
            self._queries.take(new_versions, *self._times)
        return dataclasses.replace(decision, versions=tuple(new_versions), version=self._queries.newest)

    def __call__(self, frame: DataFrame, batch: int) -> None:
        """Match one micro-batch, and hand the matches to the sink."""
        began = time.monotonic()
        if self._ended is not None:
            self._gaps = [*self._gaps, began - self._ended][-GAPS:]
        query, run = _ids_of_run(frame.sparkSession)
        if self._call is None or self._call.ids != (query, run):
            self._call = call_of(frame, (query, run), *self._arguments)
            self._gaps, fresh, self._queries = [], True, None
        else:
            fresh = False
        call = self._call
        decision = call.log.read_begin(batch)
        if decision is None:
            decision = (call.log.read_end(batch - 1) if batch else None) or Decision(admission=call.shedding.admission)
            if fresh:
                decision = dataclasses.replace(decision, load=decision.load.begin_run())
            if call.job.dynamic:
                decision = self._with_versions(call, batch, decision)
            decision = call.log.begin(batch, call.decide_admission(decision))
        sink = self._flat_sink(call) if self._flat else self._sink
        seen, metrics = call.run(frame, batch, decision, sink)
        self._ended = time.monotonic()
        seconds = self._ended - began + min(self._gaps, default=0.0)
        outcome = call.log.end(batch, call.shedding.next_decision(decision, seen, metrics, seconds))
        with self._lock:
            self._times = call.times(outcome.carried.seen)
        behind = call.shedding.is_behind(outcome)
        if behind and not self._behind:
            warn_of_run(call.shedding.behind_text(outcome, seconds))
        self._behind = behind
        progress = call.progress(batch, outcome.carried, metrics, seen, seconds)
        self._counts = (RunCounts() if fresh else self._counts).add(progress)
        count_progress(run, progress)
        report_progress(run, progress)
        if self._progress is not None:
            self._progress(dataclasses.replace(progress, run=self._counts))

    def _flat_sink(self, call: BatchCall) -> Callable[[Any, int], None]:
        return lambda matches, batch: self._sink(flatten_result(matches, call.job), batch)


def _number_versions(waiting: Sequence[tuple[str, str]], newest: int) -> list[NewVersion]:
    return [NewVersion(newest + 1 + i, name, text) for i, (name, text) in enumerate(waiting)]


def _ids_of_run(spark: SparkSession) -> tuple[str, str]:
    """Return the ids of the streaming query and of its run. Raises :class:`EngineError` outside of foreachBatch."""
    context = getattr(spark, "sparkContext", None)
    query, run = (None if context is None else context.getLocalProperty(name) for name in PROPERTIES)
    if query is None or run is None:
        raise EngineError(
            "for_each_batch was called outside of a streaming query",
            hint="frame.writeStream.foreachBatch(acep.spark.for_each_batch(query, sink, state=...))",
        )
    return query, run
