"""Tell the workers of a streaming query where its checkpoint is, so that they can keep state in it.

Spark names the checkpoint of a query only when the query starts. A listener is called in the query's own thread before
its first micro-batch; it writes the folder down as a property of the thread, which Spark sends with each task.
"""

from __future__ import annotations

import atexit
import json
from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from acep.spark.checkpoint import PROPERTY, checkpoint_at
from acep.spark.listening import progress_of_event
from acep.spark.session import SIZES, UNBOUNDED
from acep.spark.shed_batches import account_for_batch, end_shedding, remember_folder
from acep.spark.watched_runs import begin_run, count_progress, end_run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.listener import StreamingQueryListener

__all__ = [
    "STEP_IN_FILES",
    "STEP_IN_SPARK",
    "await_listeners",
    "can_announce",
    "prepare_queries",
]

STEP_IN_FILES, STEP_IN_SPARK = (f"acep_match_with_state_in_{place}" for place in ("files", "spark"))
"""The names of a step of acep in plans of Spark."""
FOREACH_BATCH = "ForeachBatchSink"
"""Spark's class of the sink of foreachBatch. Its plan does not show what the function does with a micro-batch."""
_ENDING = ("AvailableNow", "OneTime")  # triggers under which a run ends by itself
_ANNOUNCING: set[str] = set()  # sessions of the JVM that have a listener


def can_announce(spark: SparkSession) -> bool:
    """Return whether a query of this session can learn its checkpoint: the driver is in this process, and each thread
    of Python has a thread of the JVM of its own, as is usual."""
    from pyspark.errors import PySparkException

    if type(spark).__module__.startswith("pyspark.sql.connect"):
        return False
    try:
        gateway = spark.sparkContext._gateway
    except (AttributeError, RuntimeError, PySparkException):  # a session that hides its context
        return False
    return type(gateway).__name__ == "ClientServer"


def prepare_queries(spark: SparkSession) -> None:
    """Let each query that this session starts from now on tell its workers where its checkpoint is, and have its runs
    watched (:mod:`acep.spark.watched_runs`)."""
    session = str(spark._jsparkSession.sessionUUID())
    if not _ANNOUNCING:
        atexit.register(await_listeners, spark)
    if session not in _ANNOUNCING:
        spark.streams.addListener(_make_listener(spark))
        _ANNOUNCING.add(session)


def await_listeners(spark: SparkSession, seconds: float = 5.0) -> None:
    """Wait until listeners have heard of all micro-batches so far: a program may end right after a run, whose last
    micro-batch then would not be counted, and whose warnings would be lost."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]

    # A session that was stopped has no context, and has waited for listeners itself; slow listeners are left alone.
    with suppress(Py4JError, AttributeError, OSError):
        spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty(round(seconds * 1000))


def _make_listener(spark: SparkSession) -> StreamingQueryListener:
    from pyspark.sql.streaming.listener import StreamingQueryListener

    class QueryListener(StreamingQueryListener):
        """Announce the checkpoint of each query that has a step of acep or is for foreachBatch, and watch its runs."""

        def onQueryStarted(self, event: Any) -> None:  # noqa: N802 - Spark's name
            """Write the checkpoint down, in the thread of the query."""
            query = spark.streams.get(str(event.id))
            assert query is not None
            execution = query._jsq.streamingQuery()
            ends = execution.trigger().getClass().getSimpleName().startswith(_ENDING)
            begin_run(str(event.runId), str(event.name or event.id), ends_by_itself=ends)
            plan = execution.analyzedPlan().toString()
            has_step = STEP_IN_FILES in plan or STEP_IN_SPARK in plan
            if not has_step and execution.sink().getClass().getSimpleName() != FOREACH_BATCH:
                return
            checkpoint = checkpoint_at(execution.resolvedCheckpointRoot())
            spark.sparkContext.setLocalProperty(PROPERTY, json.dumps(asdict(checkpoint)))
            if not has_step:
                return
            remember_folder(str(event.runId), checkpoint.state_folder)
            own_settings = execution.sparkSessionForStream().conf()  # only this query has them
            if not own_settings.contains(SIZES):
                own_settings.set(SIZES, UNBOUNDED)

        def onQueryProgress(self, event: Any) -> None:  # noqa: N802 - Spark's name
            """Count a micro-batch."""
            account_for_batch(event.progress, str(event.progress.name or event.progress.id))
            if (progress := progress_of_event(event.progress)) is not None:
                count_progress(str(event.progress.runId), progress)

        def onQueryIdle(self, event: Any) -> None:  # noqa: N802 - Spark's name
            """Do nothing, as no rows came."""

        def onQueryTerminated(self, event: Any) -> None:  # noqa: N802 - Spark's name
            """Warn of rows that a run leaves behind."""
            end_shedding(str(event.runId))
            end_run(str(event.runId), failed=event.exception is not None)

    return QueryListener()
