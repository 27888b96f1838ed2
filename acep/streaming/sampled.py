"""Estimate the recall of a stream of which only whole sampling units travelled to the workers: plain data, no Spark."""

from __future__ import annotations

import zlib
from base64 import b64decode, b64encode
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from acep.events.columns import ticks_of
from acep.learning.estimation.recall import Tally
from acep.matches.records import Counts
from acep.matches.report import Report
from acep.runtime.stream import SEVERAL
from acep.streaming.admission import CELLS
from acep.streaming.batch_log import Carried
from acep.streaming.job import Job
from acep.streaming.utility import SEPARATOR

__all__ = ["POINTS", "points_by_cell", "points_in", "points_told", "tally_of", "with_shed"]

POINTS = "points "
"""How a text begins that :func:`points_told` gives."""


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
) -> tuple[NDArray[np.int64], int] | None:
    """Count by cell what a bucket was given and what it found in a micro-batch.

    Returns an array of shape ``(4, CELLS)``: events, keys that have match points, points, and the sum over keys of the
    squares of their points; and the sum over all points of the mean length of matches, in ticks, which is negative
    where the result does not tell it. ``keys`` are the partition attributes; without them all is in the first cell.
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
    return cells.T, lengths


def _cells_of(rows: pa.Table, keys: Sequence[str]) -> NDArray[np.int64]:
    """Give the cell of each row; the first one without keys."""
    if not keys:
        return np.zeros(len(rows), np.int64)
    columns = (rows.column(name).cast(pa.string()) for name in keys)
    texts = pc.binary_join_element_wise(*columns, SEPARATOR).cast(pa.binary()).to_pylist()
    return np.fromiter(map(zlib.crc32, texts), np.int64, len(rows)) % CELLS


def points_told(every: Sequence[tuple[NDArray[np.int64], int] | None]) -> str:
    """Tell the sums over some buckets of :func:`points_by_cell`, in few bytes, as :func:`points_in` reads them."""
    known = [one for one in every if one is not None]
    if len(known) < len(every):
        return POINTS
    counts = np.sum([counts for counts, _ in known], axis=0).astype("<i8")
    return f"{POINTS}{sum(length for _, length in known)} {b64encode(zlib.compress(counts.tobytes())).decode()}"


def points_in(told: Sequence[str]) -> tuple[NDArray[np.int64], int, bool]:
    """Give the sums over all buckets of :func:`points_by_cell` in a micro-batch, and whether they are known."""
    counts, lengths = np.zeros((4, CELLS), np.int64), 0
    every = [text.removeprefix(POINTS) for text in told if text.startswith(POINTS)]
    for length, data in (text.split() for text in every if text):
        counts += np.frombuffer(zlib.decompress(b64decode(data)), "<i8").reshape(counts.shape)
        lengths += int(length)
    return counts, lengths, bool(every) and all(every)


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
