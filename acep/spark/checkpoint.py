"""Know the checkpoint of a streaming query: the driver tells each task where it is, by a property of Spark's."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlparse

from acep.bucket_state.checkpoints import STATE_FOLDER
from acep.errors import EngineError, SnapshotError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["PROPERTY", "Checkpoint", "checkpoint_at", "checkpoint_of_batch", "checkpoint_of_task", "refuse_spark_state"]

PROPERTY = "acep.checkpoint"
"""The local property of Spark with the checkpoint, as JSON."""


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


def checkpoint_of_task() -> Checkpoint:
    """Return the checkpoint of the query to which the task of this worker belongs.

    Raises :class:`EngineError` if the driver did not tell it.
    """
    from pyspark import TaskContext

    context = TaskContext.get()
    return _read_checkpoint(None if context is None else context.getLocalProperty(PROPERTY))


def checkpoint_of_batch(spark: SparkSession) -> Checkpoint:
    """Return the checkpoint of the query whose micro-batch this thread has got from foreachBatch.

    Raises :class:`EngineError` if it was not told.
    """
    return _read_checkpoint(spark.sparkContext.getLocalProperty(PROPERTY))


def _read_checkpoint(text: str | None) -> Checkpoint:
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


def checkpoint_at(root: str) -> Checkpoint:
    """Return the checkpoint at a URI of Spark's, such as ``file:/folder``."""
    if (uri := urlparse(root)).scheme not in ("file", ""):
        return Checkpoint(root, has_spark_state=False)
    folder = Path(unquote(uri.path))
    has_state = (folder / "state").is_dir() and not (folder / STATE_FOLDER).is_dir()
    return Checkpoint(str(folder), has_spark_state=has_state)
