"""Split the time of a micro-batch into Spark, transfer of data to the engine and back, and matching."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

__all__ = ["Spent", "Stopwatch", "spent_of"]


class Stopwatch:
    """A stopwatch of one step of a bucket of a ``partition``. Its times are metrics and never part of a state, because
    a retry measures other times. ``rows`` counts the rows of the micro-batch, ``late``, ``ahead`` and ``duplicates``
    those that were not used, and ``went_on`` the partial matches that went on in new versions of queries. ``packed``
    has earlier spans, of sorting or packing rows."""

    def __init__(self, partition: int = 0) -> None:
        """Start the clock."""
        self.partition = partition
        self.rows = self.late = self.ahead = self.duplicates = self.went_on = 0
        self.packed: list[list[float]] = []
        self._matching = 0.0
        self.start()

    def start(self) -> None:
        """Start a span."""
        self._began, self._clock = time.time(), time.perf_counter()

    def stop(self) -> None:
        """End the span; another one may be started."""
        self.packed.append(self._span)

    @property
    def _span(self) -> list[float]:
        return [self._began, self._began + time.perf_counter() - self._clock]

    @contextmanager
    def matching(self) -> Iterator[None]:
        """Count the time inside this context as matching, not as transfer."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self._matching += time.perf_counter() - began

    def to_metrics(self) -> dict[str, Any]:
        """Return the metrics: ``spans`` (pairs of beginning and end in seconds since 1970), the seconds of ``matching``
        in them, the numbers of ``rows``, of rows that were not used and of partial matches that went on, and the
        ``partition``."""
        return {
            "spans": [*self.packed, self._span],
            "matching": self._matching,
            "rows": self.rows,
            "late_now": self.late,
            "ahead_now": self.ahead,
            "duplicates_now": self.duplicates,
            "went_on": self.went_on,
            "partition": self.partition,
        }


@dataclass(frozen=True)
class Spent:
    """Seconds of one or more micro-batches: those of ``spark`` alone, and those in which some bucket was at work, split
    into ``transfer`` (rows to the engine and back, state read and written) and ``matching``. Spark hands rows over
    while it reads them, so this counts as Spark's time. Without Spark, the first are those of the ``outside``: reading
    and writing files. ``busiest`` is the time of the slowest partition, transfer and matching together."""

    spark: float = 0.0
    transfer: float = 0.0
    matching: float = 0.0
    busiest: float = 0.0
    outside: str = "Spark"

    def __add__(self, other: Spent) -> Spent:
        """Add the seconds of other micro-batches."""
        return Spent(
            self.spark + other.spark,
            self.transfer + other.transfer,
            self.matching + other.matching,
            self.busiest + other.busiest,
            other.outside,
        )

    @property
    def carrying(self) -> float:
        """All but the seconds of matching.

        >>> Spent(spark=3, transfer=0.5, matching=0.5).carrying
        3.5
        """
        return self.spark + self.transfer

    def __str__(self) -> str:
        """Format the shares.

        >>> str(Spent(spark=3, transfer=0.5, matching=0.5))
        '75 % Spark, 12 % transfer, 12 % matching'
        >>> str(Spent(spark=1, matching=1, outside="files"))
        '50 % files, 0 % transfer, 50 % matching'
        """
        total = (self.spark + self.transfer + self.matching) or 1.0
        parts = {self.outside: self.spark, "transfer": self.transfer, "matching": self.matching}
        return ", ".join(f"{100 * seconds / total:.0f} % {name}" for name, seconds in parts.items())


def spent_of(metrics: Sequence[Mapping[str, Any]], seconds: float) -> Spent:
    """Split the ``seconds`` of a micro-batch by the spans of its buckets, which may overlap on several cores.

    >>> first = {"spans": [[0.0, 2.0]], "matching": 1.0, "partition": 0}
    >>> second = {"spans": [[1.0, 3.0]], "matching": 0.0, "partition": 1}
    >>> spent_of([first, second], 5.0)
    Spent(spark=2.0, transfer=2.25, matching=0.75, busiest=2.0, outside='Spark')
    """
    spans = sorted((begin, end) for bucket in metrics for begin, end in bucket["spans"])
    busy, upto = 0.0, float("-inf")
    for begin, end in spans:
        busy += max(0.0, end - max(begin, upto))
        upto = max(upto, end)
    work = sum(end - begin for begin, end in spans)
    busy = min(busy, seconds)
    matching = busy * min(1.0, sum(bucket["matching"] for bucket in metrics) / work) if work else 0.0
    partitions: dict[int, float] = {}
    for bucket in metrics:
        bucket_seconds = sum(end - begin for begin, end in bucket["spans"])
        partitions[bucket["partition"]] = partitions.get(bucket["partition"], 0.0) + bucket_seconds
    return Spent(seconds - busy, busy - matching, matching, max(partitions.values(), default=0.0))
