"""Tell the workers of a streaming query where its checkpoint is, so that they can keep state in it.

Spark names the checkpoint of a query only when the query starts. A listener is called in the query's own thread before
its first micro-batch; it writes the folder down as a property of the thread, which Spark sends with each task.
"""

from __future__ import annotations

import atexit
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlparse

from acep.bucket_state.checkpoints import STATE_FOLDER
from acep.errors import EngineError, SnapshotError
from acep.spark.listening import progress_of_event
from acep.spark.session import SIZES, UNBOUNDED
from acep.spark.watched_runs import begin_run, count_progress, end_run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.listener import StreamingQueryListener

__all__ = [
    "STEP_IN_FILES",
    "STEP_IN_SPARK",
    "Checkpoint",
    "await_listeners",
    "can_announce",
    "checkpoint_of_task",
    "prepare_queries",
    "refuse_spark_state",
]

PROPERTY = "acep.checkpoint"
STEP_IN_FILES, STEP_IN_SPARK = (f"acep_match_with_state_in_{place}" for place in ("files", "spark"))
"""The names of a step of acep in plans of Spark."""
_ENDING = ("AvailableNow", "OneTime")  # triggers under which a run ends by itself
_ANNOUNCING: set[str] = set()  # sessions of the JVM that have a listener


@dataclass(frozen=True)
class Checkpoint:
    """The checkpoint of a streaming query: its folder ``root`` as a path or a URI, and whether Spark's own store has
    state in it (``has_spark_state``), while acep has none."""

    root: str
    has_spark_state: bool

    @property
    def state_folder(self) -> str:
        """The folder for the state of acep."""
        return f"{self.root}/{STATE_FOLDER}"


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
    try:
        spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty(round(seconds * 1000))
    except Exception:  # noqa: BLE001 - the session was stopped, which waits for listeners itself, or they are slow
        return


def checkpoint_of_task() -> Checkpoint:
    """Return the checkpoint of the query to which the task of this worker belongs.

    Raises :class:`EngineError` if the driver did not tell it.
    """
    from pyspark import TaskContext

    context = TaskContext.get()
    text = None if context is None else context.getLocalProperty(PROPERTY)
    if text is None:
        raise EngineError(
            "Spark did not say where the checkpoint of this stream is",
            hint='name a folder for the state: state="folder"; or state="spark" for Spark\'s own store',
            code="engine_unable",
        )
    return Checkpoint(**json.loads(text))


def refuse_spark_state(checkpoint: Checkpoint, batch: int) -> None:
    """Raise :class:`SnapshotError` if a stream goes on with a checkpoint whose state is in Spark's own store."""
    if batch and checkpoint.has_spark_state:
        raise SnapshotError(
            "the state of this checkpoint is in Spark's own store, and this stream would look for it in files",
            hint='go on with state="spark", as earlier versions of acep did unless state= was given, or begin a new'
            " checkpoint",
            code="state_version",
        )


def _make_listener(spark: SparkSession) -> StreamingQueryListener:
    from pyspark.sql.streaming.listener import StreamingQueryListener

    from acep.spark import shed_batches

    class QueryListener(StreamingQueryListener):
        """Announce the checkpoint of each query that has a step of acep, and watch its runs."""

        def onQueryStarted(self, event: Any) -> None:  # noqa: N802 - Spark's name
            """Write the checkpoint down, in the thread of the query."""
            query = spark.streams.get(str(event.id))
            assert query is not None
            execution = query._jsq.streamingQuery()
            ends = execution.trigger().getClass().getSimpleName().startswith(_ENDING)
            begin_run(str(event.runId), str(event.name or event.id), ends_by_itself=ends)
            plan = execution.analyzedPlan().toString()
            if STEP_IN_FILES not in plan and STEP_IN_SPARK not in plan:
                return
            checkpoint = _checkpoint_at(execution.resolvedCheckpointRoot())
            spark.sparkContext.setLocalProperty(PROPERTY, json.dumps(asdict(checkpoint)))
            shed_batches.account_for_run(str(event.runId), str(event.id), checkpoint.state_folder, plan)
            own_settings = execution.sparkSessionForStream().conf()  # only this query has them
            if not own_settings.contains(SIZES):
                own_settings.set(SIZES, UNBOUNDED)

        def onQueryProgress(self, event: Any) -> None:  # noqa: N802 - Spark's name
            """Count a micro-batch."""
            shed_batches.account_for_batch(event.progress, str(event.progress.name or event.progress.id))
            if (progress := progress_of_event(event.progress)) is not None:
                count_progress(str(event.progress.runId), progress)

        def onQueryIdle(self, event: Any) -> None:  # noqa: N802 - Spark's name
            """Do nothing, as no rows came."""

        def onQueryTerminated(self, event: Any) -> None:  # noqa: N802 - Spark's name
            """Warn of rows that a run leaves behind."""
            shed_batches.end_run(str(event.runId))
            end_run(str(event.runId), failed=event.exception is not None)

    return QueryListener()


def _checkpoint_at(root: str) -> Checkpoint:
    """Return the checkpoint at a URI of Spark's, such as ``file:/folder``."""
    if (uri := urlparse(root)).scheme not in ("file", ""):
        return Checkpoint(root, has_spark_state=False)
    folder = Path(unquote(uri.path))
    has_state = (folder / "state").is_dir() and not (folder / STATE_FOLDER).is_dir()
    return Checkpoint(str(folder), has_spark_state=has_state)
