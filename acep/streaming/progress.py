"""Report the progress of a stream after a micro-batch, from the metrics of its buckets."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from acep.display import rate_text
from acep.matches.records import Counts
from acep.matches.report import Report
from acep.runtime.stream import SEVERAL
from acep.streaming.time_spent import Spent, spent_of
from acep.streaming.totals import COUNTS, counts_in, metrics_in, sum_metrics

__all__ = [
    "Progress",
    "RunCounts",
    "length_text",
    "moment_text",
    "mostly_late",
    "mostly_late_text",
    "progress_in",
    "reports_in",
]

SKEWED = (
    0.75  # share of the rows of a micro-batch above which one bucket does most of the work; two even ones have 0.5 each
)
FEW = 1_000  # rows below which such a share may be chance
COUNTS_NOW = ("late_now", "ahead_now", "duplicates_now")
FEWEST = 10  # rows below which most may be late by chance


@dataclass(frozen=True)
class RunCounts:
    """Counts of one run of a stream since it was started or taken up again: ``rows`` read, and of these rows that came
    ``late``, were too far ``ahead``, were left out as ``duplicates``, or have no partition attribute (``null_keys``).
    ``held_back``: rows that wait after its last micro-batch."""

    rows: int = 0
    late: int = 0
    ahead: int = 0
    duplicates: int = 0
    null_keys: int = 0
    held_back: int = 0

    def add(self, progress: Progress) -> RunCounts:
        """Return the counts after one more micro-batch of the run.

        >>> first = Progress(0, 5, 1, 0, held=3, state=0, watermark="", reference=0, rows=6, seconds=1, late_now=1)
        >>> RunCounts().add(first)
        RunCounts(rows=6, late=1, ahead=0, duplicates=0, null_keys=0, held_back=3)
        """
        return RunCounts(
            self.rows + progress.rows,
            self.late + progress.late_now,
            self.ahead + progress.ahead_now,
            self.duplicates + progress.duplicates_now,
            self.null_keys + progress.null_keys_now,
            progress.held,
        )

    @property
    def unused(self) -> str:
        """The rows that were not used, in words; "" if there are none.

        >>> RunCounts(rows=9, late=1, null_keys=2).unused
        '1 came late, 2 have no partition attribute'
        """
        counts = (
            (self.late, "came late"),
            (self.ahead, "were too far ahead"),
            (self.duplicates, "came twice"),
            (self.null_keys, "have no partition attribute"),
        )
        return ", ".join(f"{count:,} {words}" for count, words in counts if count)


@dataclass(frozen=True)
class Progress:
    """The metrics of a stream after micro-batch ``batch``, over all its buckets; ``str`` of it is one line.

    Since the stream began, restarts included: ``events`` accepted, ``late`` events and events too far ``ahead`` that
    were refused, ``matches`` found, match nodes ``made``, partial matches and events ``shed`` to keep the budget,
    ``work`` in transition evaluations, and the ``allowance`` of them by a budget for the events that were matched (0:
    no budget). ``report`` is :attr:`acep.Matches.report` without seconds, with the estimated recall; ``reports`` has
    one for each query, by its name ("" if it is the only one).

    Now: rows ``held`` back, ``live`` partial matches (those that the engine holds as one count as one), ``state`` in
    bytes, the ``watermark`` (ISO 8601, "" if there is none), and the number of buckets that the ``reference`` runtime
    ran, because their worker has no native core. ``lag``: seconds of event time from the bucket that is furthest behind
    to the newest event (0 once the stream has ended, ``None`` while there is no watermark; a tick of unknown length
    counts as a millisecond). ``age``: seconds from the watermark of that bucket to the beginning of the micro-batch, by
    its clock, where ``ts`` is a timestamp or date, and ``None`` elsewhere.

    ``version``: the number of the newest version of a query (0: there was none). Of this micro-batch alone: how many
    partial matches ``went_on`` as versions came, ``rows``, ``seconds``, how these were ``spent``, the share of its rows
    in the ``fullest`` bucket (0: it had no rows), and the numbers of rows that were late (``late_now``), too far ahead
    (``ahead_now``), came twice (``duplicates_now``), or have no partition attribute (``null_keys_now``).

    ``bad_files``: how many files this run of a follower has moved aside so far; ``gaps``: how often lines of growing
    files could not be read any more.

    ``route``: where the state of the stream is kept on Spark, and why; "" elsewhere. ``run``: the counts of this run,
    for those who are told of each micro-batch."""

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
    ahead: int = 0
    late_now: int = 0
    ahead_now: int = 0
    duplicates_now: int = 0
    null_keys_now: int = 0
    version: int = 0
    went_on: int = 0
    route: str = ""
    run: RunCounts | None = field(default=None, compare=False)
    bad_files: int = 0
    gaps: int = 0

    def __str__(self) -> str:
        return f"{self.line}; {self.spent}"

    @property
    def line(self) -> str:
        """The line without the split of the time."""
        rate = rate_text(self.rows, self.seconds) if self.rows else ""
        speed = f" ({rate}/s)" if rate else ""
        parts = [
            f"{self.events:,} events{speed}",
            f"{self.held:,} held",
            f"{self.live:,} live",
            f"{self.matches:,} {'match' if self.matches == 1 else 'matches'}",
            *([f"{self.late:,} late"] if self.late else []),
            *([f"{self.ahead:,} too far ahead"] if self.ahead else []),
            *([f"{self.report.duplicates:,} came twice"] if self.report.duplicates else []),
            *([] if self.lag is None else [f"lag {length_text(self.lag)}"]),
            f"state {self.state / 1e6:,.2f} MB",
            *([f"{self.bad_files:,} bad {'file' if self.bad_files == 1 else 'files'} aside"] if self.bad_files else []),
            *([f"{self.gaps:,} {'gap' if self.gaps == 1 else 'gaps'}: lines could not be read"] if self.gaps else []),
            *([f"version {self.version}"] if self.version else []),
            *([f"{self.went_on:,} went on"] if self.went_on else []),
        ]
        if self.allowance:
            parts += [f"{self.shed:,} shed", f"{self.work / self.allowance:.0%} of the allowance"]
        if self.skewed:
            parts.append(f"one bucket has {self.fullest:.0%} of the rows")
        if mostly_late(self.late_now, self.rows):
            parts.append("most rows are late: did one come from far ahead? (latest=)")
        return ", ".join(parts)

    @property
    def skewed(self) -> bool:
        """Whether one bucket has more than three quarters of the rows of the micro-batch, of at least 1,000 rows."""
        return self.fullest > SKEWED and self.rows >= FEW


def mostly_late(late: int, rows: int) -> bool:
    """Return whether most rows of a micro-batch came late, of at least 10 rows.

    >>> mostly_late(6, 11), mostly_late(5, 5)
    (True, False)
    """
    return late > rows / 2 and rows >= FEWEST


def mostly_late_text(reached: str | int) -> str:
    """Return the warning for a stream most of whose rows come late, as time has ``reached`` so far."""
    return (
        f"most events come too late, as time has come to {reached}: has an event come from far ahead? latest= says"
        " which times are too far"
    )


def length_text(seconds: float) -> str:
    """Format a length of time.

    >>> length_text(2.5), length_text(508_620)
    ('2.5 s', '5 days, 21:17:00')
    """
    return f"{seconds:.6g} s" if seconds < 60 else str(dt.timedelta(seconds=round(seconds)))


def progress_in(
    rows: Sequence[Mapping[str, Any]],
    *,
    batch: int,
    events: int,
    seconds: float,
    null_keys: int = 0,
    packing: Sequence[Sequence[float]] = (),
    watermark: str | None = None,
    began: float | None = None,
) -> Progress | None:
    """Return the progress after a micro-batch of so many ``events``, of which ``null_keys`` have no partition
    attribute, and ``seconds``; ``None`` without bucket metrics.

    Each row belongs to one call of match: ``told`` holds the metrics of its buckets, one line of JSON each, ``names``
    the names of its queries as JSON, and ``route`` says where it keeps its state. ``watermark`` is that of the stream
    if it is known; otherwise the greatest one of the buckets is used. ``packing`` has the spans in which rows were
    packed before, and ``began`` is when the micro-batch began, in seconds since 1970.
    """
    sums = [sum_metrics(row) for row in rows]
    if not any(totals["buckets"] for totals in sums):
        return None
    report, reports = reports_in(rows)
    metrics_by_call = [metrics_in(row) for row in rows]
    buckets = [bucket for metrics in metrics_by_call for bucket in metrics]
    lags, watermarks = map(_lag, metrics_by_call), map(_least_watermark, metrics_by_call)
    watermarks_ms = [watermark_ms for watermark_ms in watermarks if watermark_ms is not None]
    has_instants = all(bucket["instants"] for bucket in buckets)
    return Progress(
        batch=batch,
        events=report.events,
        late=report.late,
        ahead=report.ahead,
        **{name: sum(bucket.get(name, 0) for bucket in buckets) for name in COUNTS_NOW},
        null_keys_now=null_keys,
        version=max((bucket.get("version", 0) for bucket in buckets), default=0),
        went_on=sum(bucket.get("went_on", 0) for bucket in buckets),
        matches=report.matches or 0,
        held=_sum(sums, "held"),
        state=_sum(sums, "state"),
        watermark=str(watermark or moment_text(max(totals["watermark"] for totals in sums))),
        reference=_sum(sums, "reference"),
        rows=events,
        seconds=seconds,
        made=report.made,
        shed=report.shed,
        work=report.work,
        allowance=_sum(sums, "allowance"),
        report=report,
        reports=reports,
        live=_sum(sums, "live"),
        lag=max((lag for lag in lags if lag is not None), default=None),
        age=began - min(watermarks_ms) / 1000 if has_instants and watermarks_ms and began is not None else None,
        spent=spent_of([*buckets, {"spans": packing, "matching": 0.0, "partition": 0}], seconds),
        fullest=max(map(_greatest_share, metrics_by_call), default=0.0),
        route="; ".join(sorted({row["route"] for row in rows if row.get("route")})),
    )


def _least_watermark(metrics: Sequence[Mapping[str, Any]]) -> int | None:
    """Return the least watermark, in milliseconds, of the buckets that have one and have not ended."""
    return min(
        (bucket["watermark"] for bucket in metrics if bucket["watermark"] > 0 and not bucket["ended"]), default=None
    )


def _lag(metrics: Sequence[Mapping[str, Any]]) -> float | None:
    if all(bucket["ended"] for bucket in metrics):
        return 0.0
    behind = _least_watermark(metrics)
    newest = max((bucket["newest"] for bucket in metrics if bucket["newest"] is not None), default=None)
    return None if behind is None or newest is None else max(0, newest - behind) / 1000


def _greatest_share(metrics: Sequence[Mapping[str, Any]]) -> float:
    """Return the greatest share that one bucket has of the rows of its pass."""
    rows: dict[int, list[int]] = {}
    for bucket in metrics:
        rows.setdefault(bucket["pass"], []).append(bucket["rows"])
    return max((max(counts) / sum(counts) for counts in rows.values() if any(counts)), default=0.0)


def reports_in(rows: Sequence[Mapping[str, Any]]) -> tuple[Report, dict[str, Report]]:
    """Return the report of all queries together, and that of each query by its name."""
    sums = [sum_metrics(row) for row in rows]
    counts_by_query = [pair for row in rows for pair in counts_in(row)]
    total_counts = counts_by_query[0][1] if len(counts_by_query) == 1 else Counts(unknown=SEVERAL)
    for name in ("events", "late", "ahead", "duplicates", "memory"):
        setattr(total_counts, name, _sum(sums, name))
    if len(counts_by_query) > 1:
        for name in COUNTS:
            setattr(total_counts, name, sum(getattr(counts, name) for _, counts in counts_by_query))
    return Report.of(total_counts), {name: Report.of(counts_of_query) for name, counts_of_query in counts_by_query}


def moment_text(watermark: int) -> str:
    """Format a moment in milliseconds since 1970 as Spark formats a watermark; return "" beyond the year 9999."""
    try:
        moment = dt.datetime(1970, 1, 1) + dt.timedelta(milliseconds=max(watermark, 0))
    except OverflowError:
        return ""
    return f"{moment.isoformat(timespec='milliseconds')}Z"


def _sum(sums: Sequence[Mapping[str, int]], name: str) -> int:
    return sum(totals[name] for totals in sums)
