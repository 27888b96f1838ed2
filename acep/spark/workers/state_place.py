"""Say where the state of a job is and how it runs, and which micro-batch the task of a worker belongs to."""

from __future__ import annotations

from dataclasses import dataclass

from acep.bucket_state.state_files import StateFiles
from acep.errors import EngineError
from acep.overload.early_shedding import EarlyShedding
from acep.overload.event_choice import Exploring
from acep.spark.job import SentJob
from acep.spark.query_start import checkpoint_of_task, refuse_spark_state
from acep.streaming.job_description import describe_job
from acep.streaming.query_versions import NewVersion

__all__ = ["StatePlace", "TaskContext", "call_name", "context_of_task", "versions_of"]


@dataclass(frozen=True)
class StatePlace:
    """The place where a job runs. Its state is in ``folder`` (``None``: in the checkpoint of the query), which allows a
    restart at each of the last ``keep`` micro-batches. ``delay_ms`` is the delay of the watermark. Bucket ``n`` is in
    partition ``n % partitions``. ``seen`` is the greatest time, in ticks, of rows that did not travel in earlier
    micro-batches, and ``newest`` that of this micro-batch, if it is known before its rows are read. If ``sampled``,
    events may be shed before they travel, so match points are counted by key, in the cells of the attributes ``cells``,
    and in explored units, if single events may be shed (``exploring``). ``newer`` are versions of queries that come
    with the micro-batch. By ``shedding`` the workers themselves choose the events that travel; in foreachBatch, the
    driver does.

    In foreachBatch the driver has the number of the micro-batch and the ids of the query and its run (``batch_ids``),
    and a sink may do anything with the result. If there are several partitions, each of them then has a marking row
    that gives its number, because the task's own number changes behind a union."""

    folder: str | None
    keep: int
    delay_ms: int
    partitions: int
    seen: int | None = None
    newest: int | None = None
    sampled: bool = False
    cells: tuple[str, ...] = ()
    exploring: Exploring | None = None
    batch_ids: tuple[int, str, str] | None = None
    newer: tuple[NewVersion, ...] = ()
    shedding: EarlyShedding | None = None


@dataclass(frozen=True)
class TaskContext:
    """The number of the micro-batch to which a task belongs, Spark's id of the query, the number of the task's
    partition, and the ``versions`` of the state in a ``folder``."""

    batch: int
    query: str
    partition: int
    versions: StateFiles
    folder: str


def context_of_task(job: SentJob, place: StatePlace) -> TaskContext:
    """Return the context of the task of this worker. Raises :class:`EngineError` or :class:`SnapshotError`."""
    batch, query, run, partition = _ids_of_task() if place.batch_ids is None else (*place.batch_ids, 0)
    folder = place.folder
    if folder is None:
        checkpoint = checkpoint_of_task()
        refuse_spark_state(checkpoint, batch)
        folder = checkpoint.state_folder
    return TaskContext(batch, query, partition, versions_of(job, place, folder, query, run), folder)


def versions_of(job: SentJob, place: StatePlace, folder: str, query: str, run: str) -> StateFiles:
    """Return the versions of a job in a folder for a run of a streaming query, both given by Spark's ids."""
    names = {"query": query, "call": call_name(job), "run": run}
    return StateFiles(folder, **names, buckets=job.buckets, keep=place.keep, describe=lambda: describe_job(job))


def call_name(job: SentJob) -> str:
    """Return the name of a call within its streaming query."""
    return job.fingerprint[:32]


def _ids_of_task() -> tuple[int, str, str, int]:
    """Return Spark's ids of the micro-batch, the streaming query, its run and the partition."""
    from pyspark import TaskContext as SparkContextOfTask

    context = SparkContextOfTask.get()
    names = ("streaming.sql.batchId", "sql.streaming.queryId", "spark.jobGroup.id")
    batch, query, run = (None if context is None else context.getLocalProperty(name) for name in names)
    if context is None or batch is None or query is None or run is None:
        raise EngineError(
            "Spark did not say which micro-batch this is", hint="run it by writeStream, or leave state= out"
        )
    return int(batch), query, run, context.partitionId()
