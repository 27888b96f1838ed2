"""Decide on a worker what a micro-batch sheds before its events travel: the first task that asks writes it down."""

from __future__ import annotations

import time

from acep.bucket_state.folders import folder_of
from acep.errors import SnapshotError
from acep.overload.batch_log import BatchLog, Decision
from acep.overload.early_shedding import EarlyShedding
from acep.spark.job import SentJob
from acep.spark.workers.state_place import StatePlace, TaskContext, call_name
from acep.streaming.step import MicroBatch

__all__ = ["decide_batch", "refuse_open_gaps"]

PATIENCE, PAUSE = 5.0, 0.005  # seconds to wait for the counts of the micro-batch before, and between two looks


def decide_batch(job: SentJob, place: StatePlace, shedding: EarlyShedding, context: TaskContext) -> Decision:
    """Return the decision of the micro-batch of a task.

    The driver counts a micro-batch when Spark reports it, which may be after the next one has begun.
    """
    log, batch = BatchLog(folder_of(context.folder), context.query, call_name(job)), context.batch
    if (begun := log.read_begin(batch)) is not None:
        return begun
    until = time.monotonic() + PATIENCE
    while batch and log.read_begin(batch - 1) and not log.read_end(batch - 1) and time.monotonic() < until:
        time.sleep(PAUSE)
    old_versions = context.versions.begin_batch(batch)
    micro_batch = MicroBatch(job, context.versions, batch, old_versions, place.delay_ms, None)
    return shedding.begin_batch(log, batch, micro_batch.greatest)


def refuse_open_gaps(job: SentJob, context: TaskContext) -> None:
    """Raise :class:`SnapshotError` if a run without a bound of time goes on with a state from which events are being
    shed by whole units: a gap that ends too early could create a match."""
    if not context.batch or context.versions.has_begun:
        return
    log = BatchLog(folder_of(context.folder), context.query, call_name(job))
    last = log.read_end(context.batch - 1) or log.read_begin(context.batch - 1)
    if last is not None and last.admission is not None and not last.admission.admits_all:
        raise SnapshotError(
            "events of this stream are being shed by whole units, and this call has no bound of time",
            hint="go on with a budget, such as Budget(latency=3600), which sheds no more; it may be left out once"
            " nothing has been shed for eight windows",
            code="state_used",
        )
