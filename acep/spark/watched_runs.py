"""Watch the runs of streams on the driver: warn once for each cause, whatever the number of buckets."""

from __future__ import annotations

import threading
import warnings
from dataclasses import dataclass, field, replace

from acep.errors import DataWarning
from acep.streaming.progress import Progress, RunCounts, mostly_late, mostly_late_text

__all__ = ["begin_run", "count_progress", "end_run", "warn_of_run"]

PLACE = "<acep.spark>"
"""Where a warning of a run comes from. Python looks for no file of a name in such brackets."""


@dataclass(frozen=True)
class _WatchedRun:
    """A run of a stream: its ``name``, its ``counts``, the time that it has ``reached``, whether it ends by itself once
    it has read what is there, and whether most rows of its last micro-batch came late."""

    name: str
    ends_by_itself: bool
    counts: RunCounts = field(default_factory=RunCounts)
    reached: str = ""
    is_mostly_late: bool = False


_RUNS: dict[str, _WatchedRun] = {}
_LOCK = threading.Lock()  # listeners and foreachBatch have threads of their own


def begin_run(run: str, name: str, *, ends_by_itself: bool) -> None:
    """Watch a run with this id of Spark's. One that ``ends_by_itself`` may leave rows behind."""
    with _LOCK:
        _RUNS[run] = _WatchedRun(name, ends_by_itself)


def count_progress(run: str, progress: Progress) -> None:
    """Count a micro-batch of a run, and warn when most of its rows begin to come late."""
    with _LOCK:
        before = _RUNS.get(run)
        if before is None:
            return
        late = mostly_late(progress.late_now, progress.rows)
        counts = before.counts.add(progress)
        _RUNS[run] = replace(before, counts=counts, reached=progress.watermark, is_mostly_late=late)
    if late and not before.is_mostly_late:
        warn_of_run(f"stream {before.name}: {mostly_late_text(progress.watermark)}", DataWarning)


def end_run(run: str, *, failed: bool) -> None:
    """Forget a run, and warn of rows that it holds back, if it has ended by itself."""
    with _LOCK:
        ended = _RUNS.pop(run, None)
    if ended is None or failed or not ended.ends_by_itself or not ended.counts.held_back:
        return
    unused = f"; of {ended.counts.rows:,} rows {ended.counts.unused}" if ended.counts.unused else ""
    n_events = f"{ended.counts.held_back:,} event{'s' * (ended.counts.held_back != 1)}"
    warn_of_run(
        f"stream {ended.name}: the run has ended with {n_events} held, as earlier ones may still come: time has come to"
        f" {ended.reached or 'no event'}, the newest event less the delay of the watermark. The next run goes on with"
        " them; acep.spark.punctuation(df, until=...) in the source decides them now" + unused,
        DataWarning,
    )


def warn_of_run(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn from a thread of Spark's, where no line of the user's program is at work: a place that has no line is shown,
    and filters know this module."""
    warnings.warn_explicit(message, category, PLACE, 1, module=__name__)
