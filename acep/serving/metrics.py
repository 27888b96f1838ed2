"""Serve the figures of a stream in the format of Prometheus, on a port of this machine."""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from acep.errors import DataError, check_installed
from acep.streaming.progress import Progress

if TYPE_CHECKING:
    from prometheus_client.core import Metric

__all__ = ["FIGURES", "Metrics", "figures_of"]


class Figure(NamedTuple):
    """A figure of a stream: its ``name`` without the prefix ``acep_``, whether it only grows, and its meaning."""

    name: str
    grows: bool
    meaning: str


FIGURES = (
    Figure("batches", True, "Micro-batches of this run."),
    Figure("batch_seconds", True, "Seconds that the micro-batches of this run took."),
    Figure("events", True, "Events accepted since the stream began."),
    Figure("late_events", True, "Events refused since the stream began because they came late."),
    Figure("ahead_events", True, "Events refused since the stream began because their times were too far ahead."),
    Figure("duplicate_events", True, "Events left out since the stream began because they came twice."),
    Figure("matches", True, "Matches found since the stream began."),
    Figure("shed", True, "Partial matches and events given up since the stream began to keep a budget."),
    Figure("work", True, "Transition evaluations since the stream began."),
    Figure("allowed_work", True, "Transition evaluations that a budget has allowed since the stream began."),
    Figure("held_events", False, "Events that wait until time has passed them."),
    Figure("partial_matches", False, "Partial matches now."),
    Figure("state_bytes", False, "Size of the state."),
    Figure("lag_seconds", False, "Event time from the oldest event that waits to the newest one."),
    Figure("age_seconds", False, "Clock time since the watermark."),
    Figure("recall", False, "Estimated share of the match points that was found."),
    Figure("recall_low", False, "Lower bound of that share, with 90 % confidence."),
    Figure("recall_high", False, "Upper bound of that share, with 90 % confidence."),
    Figure("bad_files", True, "Files that this run of a follower has moved aside."),
    Figure("gaps", True, "Places of growing files where this run of a follower could not read lines any more."),
    Figure("version", False, "Number of the newest version of a query."),
)
"""All figures, in the order in which they are served."""


def figures_of(progress: Progress, batches: int = 1, seconds: float = 0.0) -> dict[str, float]:
    """Return the figures after a micro-batch by name, without those that are not known. ``batches`` and ``seconds`` are
    those of this run.

    >>> figures = figures_of(Progress(0, 5, 1, 2, held=3, state=40, watermark="", reference=0, rows=6, seconds=1))
    >>> figures["events"], figures["held_events"], "lag_seconds" in figures
    (5, 3, False)
    """
    report = progress.report
    figures: dict[str, float | None] = {
        "batches": batches,
        "batch_seconds": seconds,
        "events": progress.events,
        "late_events": progress.late,
        "ahead_events": progress.ahead,
        "duplicate_events": report.duplicates,
        "matches": progress.matches,
        "shed": progress.shed,
        "work": progress.work,
        "allowed_work": progress.allowance or None,
        "held_events": progress.held,
        "partial_matches": progress.live,
        "state_bytes": progress.state,
        "lag_seconds": progress.lag,
        "age_seconds": progress.age,
        "recall": report.recall,
        "recall_low": report.interval[0],
        "recall_high": report.interval[1],
        "bad_files": progress.bad_files,
        "gaps": progress.gaps,
        "version": progress.version,
    }
    return {name: figure for name, figure in figures.items() if figure is not None}


class Metrics:
    """The figures of a stream on ``http://HOST:PORT/metrics``, as a context manager; :meth:`tell` takes the progress of
    each micro-batch, as ``tell=`` of :func:`acep.follow` and :func:`acep.replay` gives it.

    ``port`` 0 is any free one; ``host`` is this machine alone unless another address is named. The figures can be read
    from every place that reaches the address. They have no texts of events or queries.

    Raises :class:`EngineError` if the client library of Prometheus is not installed, and :class:`DataError` if the port
    cannot be used.

    >>> from urllib.request import urlopen
    >>> with Metrics(0) as metrics:
    ...     metrics.tell(Progress(0, 5, 1, 2, held=3, state=40, watermark="", reference=0, rows=6, seconds=1))
    ...     lines = urlopen(metrics.url).read().decode().splitlines()
    >>> [line for line in lines if line.startswith("acep_events")]
    ['acep_events_total 5.0']
    """

    def __init__(self, port: int, host: str = "127.0.0.1") -> None:
        check_installed("prometheus_client", "a port for metrics", "metrics")
        if isinstance(port, bool) or not isinstance(port, int) or not 0 <= port < 65536:
            raise DataError(f"port={port!r} is no port", hint="a number up to 65535; 0: any", code="option_invalid")
        self._host, self._port = host, port
        self._figures: dict[str, float] = {}
        self._batches, self._seconds = 0, 0.0
        self._server: Any = None
        self._thread: Any = None

    def __enter__(self) -> Self:
        from prometheus_client import CollectorRegistry, start_http_server

        registry = CollectorRegistry()
        registry.register(self)
        try:
            self._server, self._thread = start_http_server(self._port, addr=self._host, registry=registry)
        except OSError as error:
            raise DataError(
                f"metrics cannot be served on {self._host}:{self._port}: {error.strerror or error}",
                hint="choose another port; 0 is any free one",
                code="option_invalid",
            ) from None
        self._port = self._server.server_port
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        """Return the address of the figures."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"http://{host}:{self._port}/metrics"

    def tell(self, progress: Progress) -> None:
        """Serve the figures after a micro-batch from now on."""
        self._batches += 1
        self._seconds += progress.seconds
        self._figures = figures_of(progress, self._batches, self._seconds)

    def collect(self) -> Iterator[Metric]:
        """Yield the figures, as the client library asks for them when they are fetched."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        figures = self._figures
        for figure in FIGURES:
            if figure.name in figures:
                family = CounterMetricFamily if figure.grows else GaugeMetricFamily
                yield family(f"acep_{figure.name}", figure.meaning, value=figures[figure.name])
