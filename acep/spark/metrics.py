"""What a run on Spark has done: reports, with the estimated recall; of a stream its progress, rows held and state."""

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
    """From a ``StreamingQueryProgress`` (``query.lastProgress``), ``None`` where no bucket was called.

    Where a stream holds several calls of :func:`acep.spark.match`, their counts are added up.
    """
    if progress is None:
        return None
    rows = [_named(row) for name, row in progress["observedMetrics"].items() if name.startswith("acep_")]
    return progress_in(
        rows,
        batch=int(progress["batchId"]),
        events=_rows_read(progress),
        seconds=float(progress["durationMs"].get("triggerExecution", 0)) / 1000,
        watermark=progress["eventTime"].get("watermark"),
        began=_seconds(progress.get("timestamp")),
    )


def _rows_read(progress: Any) -> int:
    """How many rows all sources gave; Spark Connect says it of each."""
    rows = progress["numInputRows"]
    return int(sum(source["numInputRows"] for source in progress["sources"]) if rows is None else rows)


def _seconds(moment: str | None) -> float | None:
    """Seconds since 1970, of a moment as Spark writes one."""
    return None if moment is None else dt.datetime.fromisoformat(moment).timestamp()


def report_of(observation: Observation) -> Report:
    """The report of a batch, from the observation that was given to :func:`acep.spark.match`; of several queries
    together, whose recall :func:`reports_of` has.

    Like ``observation.get`` it waits for the first action on the result, and tells of what that has run.
    """
    return reports_in([observation.get])[0]


def reports_of(observation: Observation) -> dict[str, Report]:
    """The same for each query, by its name ("" if it is the only one)."""
    return reports_in([observation.get])[1]


def _named(row: Any) -> dict[str, Any]:
    """An observed row by its columns; Spark Connect gives its values and its schema, as if these were columns."""
    columns: dict[str, Any] = row.asDict()
    if set(columns) == {"values", "schema"}:
        names = [field["name"] for field in columns["schema"]["fields"]]
        return dict(zip(names, columns["values"], strict=True))
    return columns


def listener(tell: Callable[[Progress], None] | None = None) -> StreamingQueryListener:
    """Make a listener for ``spark.streams.addListener`` that calls ``tell`` with the :class:`Progress` of each
    micro-batch of each query of :func:`acep.spark.match`, or else writes a line to stderr. It is called by a thread of
    Spark's, or of Spark Connect's, after the micro-batch; a query waits for nothing that ``tell`` does.
    """
    from pyspark.sql.streaming.listener import StreamingQueryListener

    names = ("observedMetrics", "batchId", "timestamp", "eventTime", "numInputRows", "durationMs")

    class Listener(StreamingQueryListener):
        """Passes on what a query of acep has done."""

        def onQueryStarted(self, event: Any) -> None:  # noqa: N802 - Spark's name
            """Nothing has been done yet."""

        def onQueryProgress(self, event: Any) -> None:  # noqa: N802 - Spark's name
            """A micro-batch is done."""
            done = event.progress
            told = progress_of({name: getattr(done, name) for name in names})
            if told is None:
                return
            if tell is not None:
                tell(told)
            else:
                sys.stderr.write(f"{done.name or done.id} {told.batch}: {told}\n")

        def onQueryIdle(self, event: Any) -> None:  # noqa: N802 - Spark's name
            """No rows came."""

        def onQueryTerminated(self, event: Any) -> None:  # noqa: N802 - Spark's name
            """The last micro-batch has told all."""

    return Listener()
