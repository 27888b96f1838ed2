"""Estimate the recall of a stream of which only whole sampling units travelled to the workers: plain data, no Spark."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from acep.engine.columns import ticks_of
from acep.engine.found import Counts
from acep.engine.report import Report
from acep.engine.stream import SEVERAL
from acep.learning.recall import Tally
from acep.streaming.admission import CELLS
from acep.streaming.batch_log import Carried
from acep.streaming.job import Job
from acep.streaming.utility import cell_of

__all__ = ["points_by_cell", "points_in", "tally_of", "with_shed"]


def with_shed(report: Report, carried: Carried, *, several: bool) -> Report:
    """Add to a report of the workers what did not travel, and what it may have held."""
    events, late = report.events + carried.idle + carried.shed, report.late + carried.late
    report = replace(report, events=events, late=late, ahead=report.ahead + carried.ahead)
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


def points_by_cell(
    job: Job, keys: Sequence[str], carried: pa.Table | None, found: Sequence[pa.Table]
) -> dict[str, Any] | None:
    """Count by cell what a bucket was given and what it found in a micro-batch, as :func:`points_in` reads it.

    ``cells`` are rows of a cell, events, keys that have match points, points, and the sum over keys of the squares of
    their points. ``length`` is the sum over all points of the mean length of matches, in ticks; it is negative where
    the result does not tell it. ``keys`` are the partition attributes; without them all is in the first cell.

    Returns ``None`` where the rows that were ``found`` do not tell of which keys the match points are.
    """
    if job.output in ("count", "bundles"):
        return None
    cells, lengths = np.zeros((CELLS, 4), np.int64), 0
    if carried is not None and not keys:
        cells[0, 0] = len(carried)
    elif carried is not None:
        events = carried.group_by(list(keys)).aggregate([([], "count_all")])
        np.add.at(cells[:, 0], _cells_of(events, keys), events.column("count_all").to_numpy())
    for rows in found:
        key = rows.column("key").combine_chunks()
        names = [f"k{i}" for i in range(key.type.num_fields)]
        when = rows.column("point" if job.output == "points" else "end")
        query = rows.column("query") if job.several else pa.nulls(len(rows), pa.string())
        table = pa.table([*key.flatten(), query, when], [*names, "query", "when"])
        points = table.group_by([*names, "query", "when"]).aggregate([]).group_by(names).aggregate([([], "count_all")])
        each = points.column("count_all").to_numpy()
        length = -1.0
        if job.output == "matches":
            last, first = (ticks_of(name, rows.column(name), job.schema.tick_ns or 1)[0] for name in ("end", "start"))
            length = float((last - first).mean())
        own = [f"k{key.type.get_field_index(name)}" for name in keys]
        np.add.at(cells, _cells_of(points, own), np.stack([0 * each, each**0, each, each**2], axis=1))
        lengths += round(length * each.sum())
    told = np.flatnonzero(cells.any(axis=1)).tolist()
    return {"cells": [[cell, *cells[cell].tolist()] for cell in told], "length": lengths}


def _cells_of(rows: pa.Table, keys: Sequence[str]) -> NDArray[np.int64]:
    """Give the cell of each row; the first one without keys."""
    if not keys:
        return np.zeros(len(rows), np.int64)
    every = zip(*(rows.column(name).to_pylist() for name in keys), strict=True)
    return np.fromiter(map(cell_of, every), np.int64, len(rows))


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
