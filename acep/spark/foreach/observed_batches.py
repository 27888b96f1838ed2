"""Observe a micro-batch while the sink's own action matches it, so that acep needs no action of its own."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from acep.overload.load import SENT

if TYPE_CHECKING:
    from pyspark.sql import Observation

__all__ = ["PATIENCE", "Observed", "all_counts", "run_whole"]

PATIENCE = 10.0
"""Seconds to wait after an action for Spark's observations; usually they take a few milliseconds."""
PAUSE = 0.002


@dataclass(frozen=True)
class Observed:
    """Observations of one DataFrame: of the input ``rows``, of the metrics of ``buckets``, and of the texts on match
    ``points``. They are separate, because more than 8 KB at once reach the driver some 40 ms later."""

    rows: Observation
    buckets: Observation
    points: Observation

    def read_counts(self, patience: float) -> Mapping[str, Any] | None:
        """Return the counts of rows alone; ``None`` if they do not arrive within ``patience`` seconds."""
        until = time.monotonic() + patience
        while not _has_succeeded(self.rows):
            if time.monotonic() >= until:
                return None
            time.sleep(PAUSE)
        return all_counts(self.rows.get)

    def read_all(self, size: int, patience: float) -> tuple[Mapping[str, Any], Sequence[str]] | None:
        """Return the counts of rows and all texts, if the first action over the DataFrame has succeeded and covered all
        buckets (``size`` of them); otherwise ``None``.

        ``patience`` is the number of seconds to wait for Spark; ``Observation.get`` would wait without a limit.
        """
        until = time.monotonic() + patience
        while not all(map(_has_succeeded, (self.rows, self.buckets, self.points))):
            if time.monotonic() >= until:
                return None
            time.sleep(PAUSE)
        texts = str(self.buckets.get["told"]).split("\n")
        points = str(self.points.get["told"]).split("\n")
        return (all_counts(self.rows.get), [*texts, *filter(None, points)]) if len(texts) == size else None


def all_counts(counted: Mapping[str, Any]) -> Mapping[str, Any]:
    """Add the counts that Spark need not count, where every event is needed, and where all needed events travel."""
    needed = counted.get("needed", counted["events"])
    return {"needed": needed, SENT: needed, **counted}


def run_whole(frame: Any) -> None:
    """Compute all of a DataFrame and discard it."""
    frame.write.format("noop").mode("overwrite").save()


def _has_succeeded(observation: Observation) -> bool:
    # PySpark does not expose the future of an observation in the JVM.
    future: Any = observation._jo.future()  # type: ignore[union-attr]
    return bool(future.isCompleted() and future.value().get().isSuccess())
