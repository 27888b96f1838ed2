"""Make reports of runs on Spark, with the estimated recall, and report the progress of streams."""

from __future__ import annotations

from typing import TYPE_CHECKING

from acep.matches.report import Report
from acep.spark.listening import listener, progress_of
from acep.streaming.progress import Progress, reports_in

if TYPE_CHECKING:
    from pyspark.sql import Observation

__all__ = ["Progress", "listener", "progress_of", "report_of", "reports_of"]


def report_of(observation: Observation) -> Report:
    """Return the report of a batch from the observation that was given to :func:`acep.spark.match`. It sums up several
    queries; :func:`reports_of` has the recall of each.

    Like ``observation.get`` it waits for the first action on the result, and reports what that action has run.
    """
    return reports_in([observation.get])[0]


def reports_of(observation: Observation) -> dict[str, Report]:
    """Return the report of each query, by its name ("" if it is the only one)."""
    return reports_in([observation.get])[1]
