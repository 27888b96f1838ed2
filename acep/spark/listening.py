"""Listen to the micro-batches of queries: those that Spark reports, and those of for_each_batch."""

from __future__ import annotations

import datetime as dt
import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from acep.overload.early_shedding import carried_after, decision_in, with_carried
from acep.streaming.progress import Progress, RunCounts, progress_in

if TYPE_CHECKING:
    from pyspark.sql.streaming.listener import StreamingQueryListener

__all__ = [
    "COUNTS",
    "METRICS",
    "NULL_KEYS",
    "PACKING",
    "SHED",
    "listener",
    "observations",
    "progress_of",
    "progress_of_event",
    "report_progress",
    "run_listener",
    "stop_listening",
]

METRICS, NULL_KEYS, COUNTS, SHED = "acep_", "acep-null-keys_", "acep-counts_", "acep-shed_"
"""The names of observations of Spark begin so: of the metrics of buckets, of rows without a partition attribute, and,
where events are shed before they travel, of all rows, and of texts of the workers on what was shed."""
PACKING = "acep-packing_"
"""The name of an observation of the spans in which rows were packed begins so."""
_FIELDS = ("observedMetrics", "batchId", "timestamp", "eventTime", "numInputRows", "durationMs")
_LISTENING: dict[str, list[Callable[[Progress], None]]] = {}  # what listeners do with the progress of each run


def progress_of(progress: Any) -> Progress | None:
    """Return the progress of a ``StreamingQueryProgress`` (``query.lastProgress``); ``None`` if no bucket ran.

    If a stream has several calls of :func:`acep.spark.match`, their counts are added up.
    """
    if progress is None:
        return None
    observed = progress["observedMetrics"]
    rows, null_keys, packing = (
        list(observations(observed, prefix).values()) for prefix in (METRICS, NULL_KEYS, PACKING)
    )
    progress_of_workers = progress_in(
        rows,
        null_keys=sum(row["null_keys"] for row in null_keys),
        packing=[json.loads(span) for row in packing for span in row["spans"].splitlines()],
        batch=int(progress["batchId"]),
        events=_rows_read(progress),
        seconds=float(progress["durationMs"].get("triggerExecution", 0)) / 1000,
        watermark=progress["eventTime"].get("watermark"),
        began=_seconds(progress.get("timestamp")),
    )
    return None if progress_of_workers is None else _with_shed(progress_of_workers, observed)


def observations(observed: Mapping[str, Any], prefix: str) -> dict[str, dict[str, Any]]:
    """Return the observed rows, by their columns, whose names begin with a prefix; by the rest of their names."""
    return {
        name.removeprefix(prefix): _columns_of_row(row) for name, row in observed.items() if name.startswith(prefix)
    }


def _with_shed(progress: Progress, observed: Mapping[str, Any]) -> Progress:
    """Return the progress with the events that were shed before they travelled."""
    texts_by_call = observations(observed, SHED)
    several = any(len(json.loads(row["names"])) > 1 for row in observations(observed, METRICS).values())
    for call, counts in observations(observed, COUNTS).items():
        texts = texts_by_call[call]["texts"].split("\n")
        if (decision := decision_in(texts)) is not None:
            carried = carried_after(decision, counts, texts)
            progress = with_carried(progress, carried, counts, several=several or len(texts_by_call) > 1)
    return progress


def _rows_read(progress: Any) -> int:
    """Return the number of rows of all sources; Spark Connect reports only that of each source."""
    rows = progress["numInputRows"]
    return int(sum(source["numInputRows"] for source in progress["sources"]) if rows is None else rows)


def _seconds(moment: str | None) -> float | None:
    """Convert a moment in Spark's format to seconds since 1970."""
    return None if moment is None else dt.datetime.fromisoformat(moment).timestamp()


def _columns_of_row(row: Any) -> dict[str, Any]:
    """Return an observed row by its columns; Spark Connect has two columns instead, ``values`` and ``schema``."""
    columns: dict[str, Any] = row.asDict()
    if set(columns) == {"values", "schema"}:
        names = [field["name"] for field in columns["schema"]["fields"]]
        return dict(zip(names, columns["values"], strict=True))
    return columns


def progress_of_event(spark_progress: Any) -> Progress | None:
    """Return the progress that Spark hands to a listener; ``None`` if no bucket of :func:`acep.spark.match` ran."""
    return progress_of({name: getattr(spark_progress, name) for name in _FIELDS})


def report_progress(run: str, progress: Progress) -> None:
    """Hand the progress of a micro-batch to the listeners that wait for a run, as for_each_batch does."""
    for hand_on in _LISTENING.get(run, ()):
        hand_on(progress)


def run_listener(run: str, tell: Callable[[Progress], None], end: Callable[[str], None]) -> StreamingQueryListener:
    """Create a listener to one run of a query, whose micro-batches ``tell`` gets, those of for_each_batch among them.
    ``end`` is called when the run has ended, with what Spark says of its failure ("": it has not failed)."""
    from pyspark.sql.streaming.listener import StreamingQueryListener

    _LISTENING.setdefault(run, []).append(tell)

    class RunListener(StreamingQueryListener):
        """Report the progress of one query."""

        def onQueryStarted(self, event: Any) -> None:  # noqa: N802 - Spark's name
            """Do nothing: another query has started."""

        def onQueryProgress(self, event: Any) -> None:  # noqa: N802 - Spark's name
            """Report a micro-batch."""
            if str(event.progress.runId) == run and (progress := progress_of_event(event.progress)) is not None:
                tell(progress)

        def onQueryIdle(self, event: Any) -> None:  # noqa: N802 - Spark's name
            """Do nothing, as no rows came."""

        def onQueryTerminated(self, event: Any) -> None:  # noqa: N802 - Spark's name
            """Forget the run, and say that it has ended."""
            if str(event.runId) == run:
                _LISTENING.pop(run, None)
                end(str(event.exception or ""))

    return RunListener()


def stop_listening(run: str, tell: Callable[[Progress], None]) -> None:
    """Let a run tell its micro-batches to others only."""
    if tell in _LISTENING.get(run, ()):
        _LISTENING[run].remove(tell)


def listener(tell: Callable[[Progress], None] | None = None) -> StreamingQueryListener:
    """Create a listener for ``spark.streams.addListener`` that calls ``tell`` with the :class:`Progress` of each
    micro-batch of each query of :func:`acep.spark.match` or :func:`acep.spark.for_each_batch`, which has the counts of
    the run in ``run``. Without ``tell`` it writes a line to stderr. A thread of Spark or Spark Connect calls it after
    the micro-batch; queries do not wait for it.
    """
    from pyspark.sql.streaming.listener import StreamingQueryListener

    counts_by_run: dict[str, RunCounts] = {}

    def hand_on(run: str, name: str, progress: Progress) -> None:
        counts_by_run[run] = counts_by_run.get(run, RunCounts()).add(progress)
        if tell is not None:
            tell(replace(progress, run=counts_by_run[run]))
        else:
            sys.stderr.write(f"{name} {progress.batch}: {progress}\n")

    class Listener(StreamingQueryListener):
        """Report the progress of queries of acep."""

        def onQueryStarted(self, event: Any) -> None:  # noqa: N802 - Spark's name
            """Expect the micro-batches of a run, which for_each_batch reports itself."""
            name = str(event.name or event.id)
            _LISTENING.setdefault(str(event.runId), []).append(
                lambda progress: hand_on(str(event.runId), name, progress)
            )

        def onQueryProgress(self, event: Any) -> None:  # noqa: N802 - Spark's name
            """Report a micro-batch."""
            spark_progress = event.progress
            if (progress := progress_of_event(spark_progress)) is not None:
                hand_on(str(spark_progress.runId), str(spark_progress.name or spark_progress.id), progress)

        def onQueryIdle(self, event: Any) -> None:  # noqa: N802 - Spark's name
            """Do nothing, as no rows came."""

        def onQueryTerminated(self, event: Any) -> None:  # noqa: N802 - Spark's name
            """Forget the run, all of whose micro-batches have been reported."""
            _LISTENING.pop(str(event.runId), None)
            counts_by_run.pop(str(event.runId), None)

    return Listener()
