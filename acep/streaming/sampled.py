"""Estimate the recall of a stream of which only whole sampling units travelled to the workers: plain data, no Spark."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from acep.engine.found import Counts
from acep.engine.report import Report
from acep.engine.stream import SEVERAL
from acep.learning.recall import Tally
from acep.streaming.admission import CELLS
from acep.streaming.batch_log import Carried

__all__ = ["points_in", "tally_of", "with_shed"]


def with_shed(report: Report, carried: Carried, *, several: bool) -> Report:
    """Add to a report of the workers what did not travel, and what it may have held."""
    events, late = report.events + carried.idle + carried.shed, report.late + carried.late
    report = replace(report, events=events, late=late)
    if not carried.shed:
        return report
    counts = Counts(known=(carried.points, None))
    if several:
        counts = Counts(unknown=SEVERAL)
    elif report.shed:
        counts = Counts(unknown="events were shed before and behind the shuffle")
    elif not carried.known:
        counts = Counts(unknown="match points were not counted by key")
    counts.shed = report.shed + carried.shed
    estimated = Report.of(counts)
    return replace(
        report,
        shed=counts.shed,
        recall=estimated.recall,
        interval=estimated.interval,
        bundle_recall=estimated.bundle_recall,
        bundle_interval=estimated.bundle_interval,
        unknown=estimated.unknown,
    )


def points_in(told: Sequence[str]) -> tuple[NDArray[np.int64], int, bool]:
    """Give what buckets counted in a micro-batch: by cell the events that were carried, keys with match points, points,
    and their squares by key, of shape ``(4, CELLS)``; the lengths of matches; and whether they are known."""
    every = [json.loads(text).get("points") for text in told]
    counts = np.zeros((4, CELLS), np.int64)
    for cell, *numbers in (row for one in every if one is not None for row in one["cells"]):
        counts[:, cell] += numbers
    return counts, sum(one["length"] for one in every if one is not None), None not in every


def tally_of(counts: NDArray[np.int64], chances: NDArray[np.float64], needed: int, crossing: float) -> Tally:
    """Sums for the recall of match points of which so many were found where units had these ``chances``.

    ``needed`` events were there: what the chances say of them is put right by it. A match that is ``crossing`` into the
    next unit needs both.
    """
    some = chances > 0
    (events, keys, points, squares), chances = counts[:, some], chances[some]
    likely = float((events / chances).sum())
    ratio = needed / likely if likely else 1.0
    per = ratio / (chances * (1 - (1 - chances) * crossing))
    return Tally(
        units=float(keys.sum()),
        x=float((per * points).sum()),
        y=float(points.sum()),
        xx=float((per**2 * (1 - chances) * squares).sum()),
        whole=float((per**2 * squares).sum()),
    )
