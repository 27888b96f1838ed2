"""Make reports of runs on Spark, with the estimated recall, and report the progress of streams."""

from __future__ import annotations

import datetime as dt
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from acep.matches.report import Report
from acep.streaming.progress import Progress, progress_in, reports_in

if TYPE_CHECKING:
    from pyspark.sql import Observation
    from pyspark.sql.streaming.listener import StreamingQueryListener

__all__ = ["Progress", "listener", "progress_of", "report_of", "reports_of"]


def progress_of(progress: Any) -> Progress | None:
    """Return the progress of a ``StreamingQueryProgress`` (``query.lastProgress``); ``None`` if no bucket ran.

    If a stream has several calls of :func:`acep.spark.match`, their counts are added up.
    """
    if progress is None:
        return None
    rows = [_columns_of_row(row) for name, row in progress["observedMetrics"].items() if name.startswith("acep_")]
    return progress_in(
        rows,
        batch=int(progress["batchId"]),
        events=_rows_read(progress),
        seconds=float(progress["durationMs"].get("triggerExecution", 0)) / 1000,
        watermark=progress["eventTime"].get("watermark"),
        began=_seconds(progress.get("timestamp")),
    )


def _rows_read(progress: Any) -> int:
    """Return the number of rows of all sources; Spark Connect reports only that of each source."""
    rows = progress["numInputRows"]
    return int(sum(source["numInputRows"] for source in progress["sources"]) if rows is None else rows)


def _seconds(moment: str | None) -> float | None:
    """Convert a moment in Spark's format to seconds since 1970."""
    return None if moment is None else dt.datetime.fromisoformat(moment).timestamp()


def report_of(observation: Observation) -> Report:
    """Return the report of a batch from the observation that was given to :func:`acep.spark.match`. It sums up several
    queries; :func:`reports_of` has the recall of each.

    Like ``observation.get`` it waits for the first action on the result, and reports what that action has run.
    """
    return reports_in([observation.get])[0]


def reports_of(observation: Observation) -> dict[str, Report]:
    """Return the report of each query, by its name ("" if it is the only one)."""
    return reports_in([observation.get])[1]


def _columns_of_row(row: Any) -> dict[str, Any]:
    """Return an observed row by its columns; Spark Connect has two columns instead, ``values`` and ``schema``."""
    columns: dict[str, Any] = row.asDict()
    if set(columns) == {"values", "schema"}:
        names = [field["name"] for field in columns["schema"]["fields"]]
        return dict(zip(names, columns["values"], strict=True))
    return columns


def listener(tell: Callable[[Progress], None] | None = None) -> StreamingQueryListener:
    """Create a listener for ``spark.streams.addListener`` that calls ``tell`` with the :class:`Progress` of each
    micro-batch of each query of :func:`acep.spark.match`. Without ``tell`` it writes a line to stderr. A thread of
    Spark or Spark Connect calls it after the micro-batch; queries do not wait for it.
    """
    from pyspark.sql.streaming.listener import StreamingQueryListener

    names = ("observedMetrics", "batchId", "timestamp", "eventTime", "numInputRows", "durationMs")

    class Listener(StreamingQueryListener):
        """Report the progress of queries of acep."""

        def onQueryStarted(self, event: Any) -> None:  # noqa: N802 - Spark's name
            """Do nothing."""

        def onQueryProgress(self, event: Any) -> None:  # noqa: N802 - Spark's name
            """Report a micro-batch."""
            spark_progress = event.progress
            progress = progress_of({name: getattr(spark_progress, name) for name in names})
            if progress is None:
                return
            if tell is not None:
                tell(progress)
            else:
                sys.stderr.write(f"{spark_progress.name or spark_progress.id} {progress.batch}: {progress}\n")

        def onQueryIdle(self, event: Any) -> None:  # noqa: N802 - Spark's name
            """Do nothing, as no rows came."""

        def onQueryTerminated(self, event: Any) -> None:  # noqa: N802 - Spark's name
            """Do nothing, as all micro-batches have been reported."""

    return Listener()
