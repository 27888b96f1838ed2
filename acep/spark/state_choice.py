"""Choose where the state of a stream is kept: in files of a folder, in its checkpoint, or in Spark's own store."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from acep.bucket_state.folders import folder_of, state_folder
from acep.errors import AcepError, DataError, EngineError
from acep.spark.checkpoint import checkpoint_of_batch
from acep.spark.query_start import can_announce

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = [
    "CHECKPOINT",
    "SETTING",
    "SPARK",
    "StateChoice",
    "check_batch_state",
    "choose_state",
    "state_in",
    "state_of_batch",
]

SPARK, CHECKPOINT = "spark", "checkpoint"
"""The values of ``state=`` that name no folder."""
SETTING = "spark.acep.state"
"""The setting of a session that takes the place of ``state=``."""
CHECKPOINTS = "spark.sql.streaming.checkpointLocation"


@dataclass(frozen=True)
class StateChoice:
    """Where the state of a stream is kept: in files below ``folder``, in files of its checkpoint (``folder`` is
    ``None``), or in Spark's own store (``in_spark``); and the ``reason``."""

    folder: str | None
    in_spark: bool
    reason: str

    def __str__(self) -> str:
        """Return the choice and its reason in one line."""
        place = (
            "Spark's own store" if self.in_spark else f"files of {self.folder or 'the checkpoint (its folder `acep`)'}"
        )
        return f"state in {place}: {self.reason}"


def choose_state(frame: DataFrame, state: Any, watermark: Any) -> StateChoice:
    """Choose where the state of a stream is kept, by ``state=``, else by the setting :data:`SETTING` of its session,
    else by what can be known of its checkpoint. ``watermark`` is ``None`` if the stream has one already.

    Files are faster, and so they are the choice wherever all workers certainly reach a folder. Raises
    :class:`DataError` for a folder that cannot be used.
    """
    if state is not None:
        return _named_choice(frame, state, "state= says so")
    spark = frame.sparkSession
    if setting := spark.conf.get(SETTING, None):
        return _named_choice(frame, setting, f"the setting {SETTING} says so")
    if not can_announce(spark):
        return StateChoice(None, True, "on Spark Connect the checkpoint is not known: state= or the setting names one")
    if watermark is None and count_watermarks(frame) > 1:
        return StateChoice(None, True, "the stream has several watermarks, of which Spark knows the slowest")
    if reason := _why_reached(spark):
        return StateChoice(None, False, reason)
    where = spark.conf.get("spark.master", "") or "a cluster"
    reason = f"on {where} no folder is known that all workers reach: state= or {SETTING} names one"
    return StateChoice(None, True, reason)


def check_batch_state(spark: SparkSession | None, state: Any, *, on_driver: bool) -> None:
    """Raise :class:`DataError` or :class:`EngineError` if for_each_batch cannot keep its state where ``state`` says:
    without a folder it has to learn the checkpoint of its stream, which workers have to reach, too, unless the driver
    matches. ``spark`` is the session of the stream, as far as there is one yet."""
    place = _place_of_batch(spark, state)
    if place == SPARK:
        raise DataError(
            "for_each_batch keeps its state in files of a folder",
            hint="state= names the folder: a path, or a URI",
            code="option_invalid",
        )
    if place is not None and place != CHECKPOINT:
        return
    if spark is None or not can_announce(spark):
        why = "without a session" if spark is None else "in this session"
    elif place is None and not on_driver and not _why_reached(spark):
        why = f"on {spark.conf.get('spark.master', '') or 'a cluster'}"
    else:
        return
    raise EngineError(
        f"for_each_batch keeps its state in files of a folder, and {why} no checkpoint is known that all workers reach",
        hint='state= names the folder: a path, or a URI; "checkpoint" is that of the stream',
        code="engine_unable",
    )


def state_of_batch(frame: DataFrame, state: Any, *, on_driver: bool) -> str:
    """Return the folder where for_each_batch keeps its state, in the first micro-batch of a run: what ``state=`` or the
    setting names, else a folder of the checkpoint.

    Raises :class:`DataError` or :class:`EngineError` as :func:`check_batch_state` does, and for an unusable folder.
    """
    check_batch_state(frame.sparkSession, state, on_driver=on_driver)
    place = _place_of_batch(frame.sparkSession, state)
    is_named = place is not None and place != CHECKPOINT
    return state_in(frame, place if is_named else checkpoint_of_batch(frame.sparkSession).state_folder)


def _place_of_batch(spark: SparkSession | None, state: Any) -> Any:
    """Return what is said of the place of the state, by ``state=`` or by the setting; ``None`` if nothing is."""
    return state if state is not None or spark is None else spark.conf.get(SETTING, None) or None


def _why_reached(spark: SparkSession) -> str:
    """Return why all workers certainly reach the checkpoints of a session; an empty text if that is not known."""
    if (spark.conf.get("spark.master", "") or "").split("[")[0] == "local":
        return "all workers are on this machine"
    if (root := spark.conf.get(CHECKPOINTS, None)) and _is_reached(_with_scheme(spark, root)):
        return f"checkpoints are in {root}, which Python reaches"
    return ""


def _named_choice(frame: DataFrame, state: Any, reason: str) -> StateChoice:
    if state == SPARK:
        return StateChoice(None, True, reason)
    if state == CHECKPOINT:
        if not can_announce(frame.sparkSession):
            raise EngineError(
                "the checkpoint of a stream is not known on Spark Connect",
                hint="give a folder that the workers reach: state=",
                code="engine_unable",
            )
        return StateChoice(None, False, reason)
    return StateChoice(state_in(frame, state), False, reason)


def _with_scheme(spark: SparkSession, root: str) -> str:
    """Return a folder of Spark's as an absolute path, or as a URI: a path without a scheme is one of the file system
    that Hadoop has by default."""
    default = spark.sparkContext._jsc.hadoopConfiguration().get("fs.defaultFS") or "file:///"
    if ":" in root:
        return root
    return str(Path(root).absolute()) if default.startswith("file:") else f"{default.rstrip('/')}/{root.lstrip('/')}"


def _is_reached(root: str) -> bool:
    """Return whether files in a folder of Spark's can be listed from Python, too."""
    try:
        folder_of(root).names("")
    except AcepError:
        return False
    return True


def count_watermarks(frame: DataFrame) -> int:
    """Return the number of watermarks in the plan of a stream."""
    return str(frame._jdf.queryExecution().analyzed()).count("EventTimeWatermark")


def state_in(frame: DataFrame, state: Any) -> str:
    """Return the folder for state. Raises :class:`DataError` if it is unusable; on Spark Connect it is not checked."""
    remote = type(frame).__module__.startswith("pyspark.sql.connect")
    return os.fspath(state) if remote and isinstance(state, str | os.PathLike) else state_folder(state)
