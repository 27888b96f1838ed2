"""What a run on Spark has done: reports, with the estimated recall; of a stream its progress, rows held and state."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from acep.engine.found import Counts
from acep.engine.report import Report
from acep.engine.stream import SEVERAL
from acep.streaming.totals import COUNTS, counts_in, summed

if TYPE_CHECKING:
    from pyspark.sql import Observation
    from pyspark.sql.streaming.listener import StreamingQueryListener

__all__ = ["Progress", "listener", "progress_of", "report_of", "reports_of"]


@dataclass(frozen=True)
class Progress:
    """After micro-batch ``batch`` of a stream, over all its buckets: ``events`` taken in, ``late`` ones refused and
    ``matches`` found since the stream began, restarts included; rows ``held`` back now; ``state`` in bytes; the
    ``watermark`` (ISO 8601, "" if there is none); how many buckets the ``reference`` engine ran now, as their worker
    has no native core; and what this micro-batch alone took, ``rows`` and ``seconds``. Since the stream began: match
    nodes ``made``, nodes and events ``shed`` for want of budget, ``work`` in touches, and the ``allowance`` of touches
    that a budget gave for the events that were matched (0: there is none). ``report`` is what
    :attr:`acep.Matches.report` is in one process, without seconds, with the estimated recall; ``reports`` has one for
    each query, by its name ("" if it is the only one)."""

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
    report: Report = field(default_factory=Report)
    reports: Mapping[str, Report] = field(default_factory=dict)


def progress_of(progress: Any) -> Progress | None:
    """From a ``StreamingQueryProgress`` (``query.lastProgress``), ``None`` where no bucket was called.

    Where a stream holds several calls of :func:`acep.spark.match`, their counts are added up.
    """
    if progress is None:
        return None
    rows = [_named(row) for name, row in progress["observedMetrics"].items() if name.startswith("acep_")]
    sums = [summed(row) for row in rows]
    if not any(one["buckets"] for one in sums):
        return None
    report, reports = _reports(rows)
    durations = progress["durationMs"]
    return Progress(
        batch=int(progress["batchId"]),
        events=report.events,
        late=report.late,
        matches=report.matches or 0,
        held=_sum(sums, "held"),
        state=_sum(sums, "state"),
        watermark=str(progress["eventTime"].get("watermark") or _reached(max(one["watermark"] for one in sums))),
        reference=_sum(sums, "reference"),
        rows=int(progress["numInputRows"] or 0),
        seconds=float(durations.get("triggerExecution", 0)) / 1000,
        made=report.made,
        shed=report.shed,
        work=report.work,
        allowance=_sum(sums, "allowance"),
        report=report,
        reports=reports,
    )


def report_of(observation: Observation) -> Report:
    """The report of a batch, from the observation that was given to :func:`acep.spark.match`; of several queries
    together, whose recall :func:`reports_of` has.

    Like ``observation.get`` it waits for the first action on the result, and tells of what that has run.
    """
    return _reports([observation.get])[0]


def reports_of(observation: Observation) -> dict[str, Report]:
    """The same for each query, by its name ("" if it is the only one)."""
    return _reports([observation.get])[1]


def _reports(rows: Sequence[Mapping[str, Any]]) -> tuple[Report, dict[str, Report]]:
    """Of all queries together, and of each."""
    sums = [summed(row) for row in rows]
    each = [pair for row in rows for pair in counts_in(row)]
    every = each[0][1] if len(each) == 1 else Counts(unknown=SEVERAL)
    for name in ("events", "late", "memory"):
        setattr(every, name, _sum(sums, name))
    if len(each) > 1:
        for name in COUNTS:
            setattr(every, name, sum(getattr(one, name) for _, one in each))
    return Report.of(every), {name: Report.of(one) for name, one in each}


def _reached(watermark: int) -> str:
    """The watermark of a stream whose state is in files, as Spark writes one."""
    try:
        moment = dt.datetime(1970, 1, 1) + dt.timedelta(milliseconds=max(watermark, 0))
    except OverflowError:
        return ""
    return f"{moment.isoformat(timespec='milliseconds')}Z"


def _sum(sums: Sequence[Mapping[str, int]], name: str) -> int:
    return sum(one[name] for one in sums)


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
