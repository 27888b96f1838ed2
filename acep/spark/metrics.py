"""What a streaming query has done so far, from its progress: events in, late ones, matches, rows held, state, work."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql.streaming.listener import StreamingQueryListener

__all__ = ["Progress", "listener", "progress_of"]


@dataclass(frozen=True)
class Progress:
    """After micro-batch ``batch`` of a stream, over all its buckets: ``events`` taken in, ``late`` ones refused and
    ``matches`` found since the stream began, restarts included; rows ``held`` back now; ``state`` in bytes; the
    ``watermark`` (ISO 8601, "" if there is none); how many buckets the ``reference`` engine ran now, as their worker
    has no native core; and what this micro-batch alone took, ``rows`` and ``seconds``. Since the stream began: match
    nodes ``made``, nodes and events ``shed`` for want of budget, ``work`` in touches, and the ``allowance`` of touches
    that a budget gave for the events that were matched (0: there is none)."""

    batch: int
    events: int
    late: int
    matches: int
    held: int
    state: int
    watermark: str
    reference: int
    rows: int
    seconds: float
    made: int = 0
    shed: int = 0
    work: int = 0
    allowance: int = 0


def progress_of(progress: Any) -> Progress | None:
    """From a ``StreamingQueryProgress`` (``query.lastProgress``), ``None`` where no bucket was called.

    Where a stream holds several calls of :func:`acep.spark.match`, their counts are added up.
    """
    if progress is None:
        return None
    observed = [_named(row) for name, row in progress["observedMetrics"].items() if name.startswith("acep_")]
    if not any(row["buckets"] for row in observed):
        return None

    def total(name: str) -> int:
        return sum(int(row[name]) for row in observed)

    durations = progress["durationMs"]
    return Progress(
        batch=int(progress["batchId"]),
        events=total("events"),
        late=total("late"),
        matches=total("matches"),
        held=total("held"),
        state=total("state"),
        watermark=str(progress["eventTime"].get("watermark", "")),
        reference=total("reference"),
        rows=int(progress["numInputRows"] or 0),
        seconds=float(durations.get("triggerExecution", 0)) / 1000,
        made=total("made"),
        shed=total("shed"),
        work=total("work"),
        allowance=total("allowance"),
    )


def _named(row: Any) -> dict[str, Any]:
    """An observed row by its columns; Spark Connect gives its values and its schema, as if these were columns."""
    columns: dict[str, Any] = row.asDict()
    if set(columns) == {"values", "schema"}:
        names = [field["name"] for field in columns["schema"]["fields"]]
        return dict(zip(names, columns["values"], strict=True))
    return columns


def listener(tell: Callable[[Progress], None]) -> StreamingQueryListener:
    """A listener for ``spark.streams.addListener`` that calls ``tell`` after each micro-batch."""
    from pyspark.sql.streaming.listener import StreamingQueryListener

    class Listener(StreamingQueryListener):
        """Passes on what a query of acep has done."""

        def onQueryStarted(self, event: Any) -> None:  # noqa: N802 - Spark's name
            """Nothing has been done yet."""

        def onQueryProgress(self, event: Any) -> None:  # noqa: N802 - Spark's name
            """A micro-batch is done."""
            done = event.progress
            told = progress_of(
                {
                    "observedMetrics": done.observedMetrics,
                    "batchId": done.batchId,
                    "eventTime": done.eventTime,
                    "numInputRows": done.numInputRows,
                    "durationMs": done.durationMs,
                }
            )
            if told is not None:
                tell(told)

        def onQueryTerminated(self, event: Any) -> None:  # noqa: N802 - Spark's name
            """The last micro-batch has told all."""

    return Listener()
