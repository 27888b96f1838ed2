"""What a run on Spark has done: reports, with the estimated recall; of a stream its progress, rows held and state."""

from __future__ import annotations

import datetime as dt
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from acep.engine.found import Counts
from acep.engine.report import Report
from acep.engine.stream import SEVERAL
from acep.streaming.spent import Spent, spent_of
from acep.streaming.totals import COUNTS, counts_in, summed, told_in

if TYPE_CHECKING:
    from pyspark.sql import Observation
    from pyspark.sql.streaming.listener import StreamingQueryListener

__all__ = ["Progress", "listener", "progress_of", "report_of", "reports_of"]

SKEWED = 0.5  # of the rows of a micro-batch, beyond which one bucket does most of the work
FEW = 1_000  # rows, of which such a share may be chance


@dataclass(frozen=True)
class Progress:
    """Hold what a stream tells after micro-batch ``batch``, over all its buckets; ``str`` of it is one line.

    Since the stream began, restarts included: ``events`` taken in, ``late`` ones refused, ``matches`` found, match
    nodes ``made``, nodes and events ``shed`` for want of budget, ``work`` in touches, and the ``allowance`` of touches
    that a budget gave for the events that were matched (0: there is none). ``report`` is what
    :attr:`acep.Matches.report` is in one process, without seconds, with the estimated recall; ``reports`` has one for
    each query, by its name ("" if it is the only one).

    Now: rows ``held`` back, ``live`` partial matches (those that the engine holds as one count as one), ``state`` in
    bytes, the ``watermark`` (ISO 8601, "" if there is none), and how many buckets the ``reference`` engine ran, as
    their worker has no native core. ``lag``: seconds of event time from the bucket that is furthest behind to the
    newest event (0 once the stream has ended, ``None`` while there is no watermark; a tick of unknown length counts as
    a millisecond). ``age``: seconds from the watermark of that bucket to the beginning of the micro-batch, by Spark's
    clock, where ``ts`` is a timestamp or date, and ``None`` elsewhere.

    Of this micro-batch alone: ``rows``, ``seconds``, where those were ``spent``, and the share of its rows in the
    ``fullest`` bucket (0: it had none)."""

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
    live: int = 0
    lag: float | None = None
    age: float | None = None
    spent: Spent = field(default_factory=Spent)
    fullest: float = 0.0

    def __str__(self) -> str:
        speed = f" ({self.rows / self.seconds:,.0f}/s)" if self.rows and self.seconds else ""
        parts = [
            f"{self.events:,} events{speed}",
            f"{self.held:,} held",
            f"{self.live:,} live",
            f"{self.matches:,} matches",
            *([f"{self.late:,} late"] if self.late else []),
            *([] if self.lag is None else [f"lag {self.lag:,.6g} s"]),
            f"state {self.state / 1e6:,.2f} MB",
        ]
        if self.allowance:
            parts += [f"{self.shed:,} shed", f"{self.work / self.allowance:.0%} of the allowance"]
        if self.skewed:
            parts.append(f"one bucket has {self.fullest:.0%} of the rows")
        return f"{', '.join(parts)}; {self.spent}"

    @property
    def skewed(self) -> bool:
        """Whether one bucket has more than half of the rows of the micro-batch, and these are no few."""
        return self.fullest > SKEWED and self.rows >= FEW


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
    told = [told_in(row) for row in rows]
    seconds = float(progress["durationMs"].get("triggerExecution", 0)) / 1000
    lags, watermarks = [_lag(one) for one in told], [one for some in told if (one := _behind(some)) is not None]
    known = all(one["instants"] for some in told for one in some)
    return Progress(
        batch=int(progress["batchId"]),
        events=report.events,
        late=report.late,
        matches=report.matches or 0,
        held=_sum(sums, "held"),
        state=_sum(sums, "state"),
        watermark=str(progress["eventTime"].get("watermark") or _reached(max(one["watermark"] for one in sums))),
        reference=_sum(sums, "reference"),
        rows=_rows_read(progress),
        seconds=seconds,
        made=report.made,
        shed=report.shed,
        work=report.work,
        allowance=_sum(sums, "allowance"),
        report=report,
        reports=reports,
        live=_sum(sums, "live"),
        lag=max((lag for lag in lags if lag is not None), default=None),
        age=_age(progress.get("timestamp"), min(watermarks)) if known and watermarks else None,
        spent=spent_of([one for some in told for one in some], seconds),
        fullest=max((_fullest(one) for one in told), default=0.0),
    )


def _rows_read(progress: Any) -> int:
    """How many rows all sources gave; Spark Connect says it of each."""
    rows = progress["numInputRows"]
    return int(sum(source["numInputRows"] for source in progress["sources"]) if rows is None else rows)


def _behind(told: Sequence[Mapping[str, Any]]) -> int | None:
    """The watermark, in milliseconds, of the bucket that is furthest behind, of those that have one and go on."""
    return min((one["watermark"] for one in told if one["watermark"] > 0 and not one["ended"]), default=None)


def _lag(told: Sequence[Mapping[str, Any]]) -> float | None:
    if all(one["ended"] for one in told):
        return 0.0
    behind = _behind(told)
    newest = max((one["newest"] for one in told if one["newest"] is not None), default=None)
    return None if behind is None or newest is None else max(0, newest - behind) / 1000


def _age(moment: str | None, watermark: int) -> float | None:
    """Seconds from a watermark in milliseconds to a moment, as Spark writes one."""
    if moment is None:
        return None
    return dt.datetime.fromisoformat(moment).timestamp() - watermark / 1000


def _fullest(told: Sequence[Mapping[str, Any]]) -> float:
    """The greatest share of one bucket of the rows of a pass."""
    rows: dict[int, list[int]] = {}
    for one in told:
        rows.setdefault(one["pass"], []).append(one["rows"])
    return max((max(some) / sum(some) for some in rows.values() if any(some)), default=0.0)


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
