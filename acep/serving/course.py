"""Keep the course of a stream as a bounded number of points, each of half a second or more."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, replace

from acep.streaming.progress import Progress

__all__ = ["MOST_POINTS", "Course", "CoursePoint"]

MOST_POINTS = 600
EVERY = 0.5
"""The least seconds between two points."""
LONGEST = 5.0
"""The most seconds over which the rate of one point is averaged, unless its micro-batches took longer."""


@dataclass(frozen=True)
class CoursePoint:
    """The course of a stream until ``at``, in seconds since the page began: ``rate`` in events per second of the clock,
    ``lag`` in seconds of event time, ``live`` partial matches, ``share`` of the allowance that was spent so far, and
    the estimated ``recall`` with its interval. ``None`` stands for an unknown figure."""

    number: int
    at: float
    rate: float
    lag: float | None
    live: int
    share: float | None
    recall: float | None
    low: float | None
    high: float | None

    def to_list(self) -> list[float | None]:
        """Return the point as JSON holds it, in the order of the fields."""
        values = (self.at, self.rate, self.lag, self.live, self.share, self.recall, self.low, self.high)
        return [self.number, *(None if value is None else _round_figure(value) for value in values)]


def _round_figure(value: float) -> float | None:
    return float(f"{value:.6g}") if math.isfinite(value) else None


class Course:
    """The last points of a stream. Micro-batches that end within half a second of a point belong to the next one."""

    def __init__(self) -> None:
        self.points: deque[CoursePoint] = deque(maxlen=MOST_POINTS)
        self._open: CoursePoint | None = None
        self._rows, self._seconds, self._at = 0, 0.0, 0.0

    def add(self, progress: Progress, at: float, number: int) -> None:
        """Add a micro-batch that ended ``at`` so many seconds after the page began. ``number`` is greater than before.

        >>> course = Course()
        >>> for at, rows in ((1.0, 30), (1.2, 50), (2.0, 50), (60.0, 100)):
        ...     course.add(Progress(0, 0, 0, 0, 0, 0, "", 0, rows, 0.1), at, number=int(at))
        >>> [(point.at, point.rate) for point in course.points]
        [(1.0, 30.0), (2.0, 100.0), (55.0, 0.0), (60.0, 20.0)]
        """
        self._rows, self._seconds = self._rows + progress.rows, self._seconds + progress.seconds
        report = progress.report
        has_interval = report.interval != (0.0, 1.0)
        self._open = CoursePoint(
            number,
            at,
            0.0,
            progress.lag,
            progress.live,
            progress.work / progress.allowance if progress.allowance else None,
            report.recall,
            report.interval[0] if has_interval else None,
            report.interval[1] if has_interval else None,
        )
        if at - self._at >= EVERY or not self.points:
            self.close()

    def close(self) -> None:
        """Make a point of the micro-batches since the last one."""
        if self._open is None:
            return
        point = self._open
        gap = max(point.at - self._at, 1e-3)
        length = max(min(gap, LONGEST), self._seconds)
        if gap > length and self.points:
            # Nothing came for a while: the line falls to zero before this point.
            idle = replace(self.points[-1], number=point.number, at=point.at - length, rate=0.0)
            self.points.append(idle)
        self.points.append(replace(point, rate=self._rows / length))
        self._open, self._rows, self._seconds, self._at = None, 0, 0.0, point.at
