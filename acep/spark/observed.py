"""Observe a micro-batch while the sink's own action matches it, so that none of ours is needed."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import Observation

__all__ = ["PATIENCE", "Observed", "run_whole"]

PATIENCE = 10.0
"""Seconds after an action in which Spark tells what it has observed; usually a few milliseconds."""
PAUSE = 0.002


@dataclass(frozen=True)
class Observed:
    """Observations of one DataFrame: of the ``rows`` that come in, of the texts that ``buckets`` tell, and of those on
    match ``points``. They come one by one, as the driver gets more than 8 KB at once some 40 ms later."""

    rows: Observation
    buckets: Observation
    points: Observation

    def counted(self, patience: float) -> Mapping[str, Any] | None:
        """Give what was observed of the rows alone, as :meth:`told` does."""
        until = time.monotonic() + patience
        while not _succeeded(self.rows):
            if time.monotonic() >= until:
                return None
            time.sleep(PAUSE)
        return self.rows.get

    def told(self, size: int, patience: float) -> tuple[Mapping[str, Any], Sequence[str]] | None:
        """Give the counts of rows and all texts, if the first action over the DataFrame has succeeded and went over all
        buckets (``size`` of them).

        ``patience``: seconds to wait for Spark to tell it. ``Observation.get`` would wait for an action for ever.
        """
        until = time.monotonic() + patience
        while not all(map(_succeeded, (self.rows, self.buckets, self.points))):
            if time.monotonic() >= until:
                return None
            time.sleep(PAUSE)
        texts = str(self.buckets.get["told"]).split("\n")
        points = str(self.points.get["told"]).split("\n")
        return (self.rows.get, [*texts, *filter(None, points)]) if len(texts) == size else None


def run_whole(frame: Any) -> None:
    """Run all of a DataFrame, and keep nothing of it."""
    frame.write.format("noop").mode("overwrite").save()


def _succeeded(observation: Observation) -> bool:
    # PySpark has no name for it: the future of the observation in the JVM.
    future: Any = observation._jo.future()  # type: ignore[union-attr]
    return bool(future.isCompleted() and future.value().get().isSuccess())
