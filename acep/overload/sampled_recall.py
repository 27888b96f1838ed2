"""Estimate the recall of a stream of which only some sampling units travelled to the workers (no Spark)."""

from __future__ import annotations

import zlib
from base64 import b64decode, b64encode
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from acep.events.columns import ticks_of
from acep.learning.estimation.recall import Tally
from acep.matches.records import Counts
from acep.matches.report import Report
from acep.overload.batch_log import RunningTotals
from acep.overload.event_choice import explored_in
from acep.overload.sampling_units import cells_of, hash_of_keys
from acep.overload.unit_admission import CELLS
from acep.runtime.stream import SEVERAL
from acep.streaming.job import Job

__all__ = ["POINTS", "pack_points", "points_by_cell", "points_in", "tally_of", "with_shed"]

POINTS = "points "
"""The prefix of the texts of :func:`pack_points`."""


def with_shed(report: Report, carried: RunningTotals, *, several: bool) -> Report:
    """Add the events that did not travel to a report of the workers, and the recall estimated without them."""
    events, late = report.events + carried.idle + carried.shed, report.late + carried.late
    report = replace(report, events=events, late=late, ahead=report.ahead + carried.ahead)
    if not carried.shed:
        return report
    explored = carried.explored.tally()
    counts = Counts(tallies=(carried.points + (explored or Tally()), None))
    if several:
        counts = Counts(unknown=SEVERAL)
    elif report.shed:
        counts = Counts(unknown="events were shed before and behind the shuffle")
    elif not carried.has_points_by_key:
        counts = Counts(unknown="match points were not counted by key")
    elif explored is None:
        counts = Counts(unknown="no unit was explored yet")
    counts.shed, counts.withheld = report.shed + carried.shed, report.withheld
    estimated = Report.of(counts)
    return replace(
        report,
        shed=counts.shed,
        skipped=report.skipped + carried.shed,
        recall=estimated.recall,
        interval=estimated.interval,
        bundle_recall=estimated.bundle_recall,
        bundle_interval=estimated.bundle_interval,
        unknown=estimated.unknown,
    )


def points_by_cell(
    job: Job, keys: Sequence[str], carried: pa.Table | None, result_tables: Sequence[pa.Table]
) -> tuple[NDArray[np.int64], int] | None:
    """Count the events and the match points of a bucket in a micro-batch by cell of their key.

    Returns an array of shape ``(4, CELLS)`` and an integer. The array has events, keys with match points, match points,
    and the sum over keys of their squared points. The integer is the points times the mean length of a match in ticks;
    it is negative if the result has no lengths. ``keys`` are the partition attributes; without them all falls into the
    first cell. Returns ``None`` if the ``result_tables`` have no key per match point.
    """
    if job.output in ("count", "bundles"):
        return None
    cells, lengths = np.zeros((CELLS, 4), np.int64), 0
    if carried is not None and not keys:
        cells[0, 0] = len(carried)
    elif carried is not None:
        events = carried.group_by(list(keys)).aggregate([([], "count_all")])
        np.add.at(cells[:, 0], _cells_of(events, keys), events.column("count_all").to_numpy())
    for rows in result_tables:
        key = rows.column("key").combine_chunks()
        names = [f"k{i}" for i in range(key.type.num_fields)]
        when = rows.column("point" if job.output == "points" else "end")
        query = rows.column("query") if job.several else pa.nulls(len(rows), pa.string())
        table = pa.table([*key.flatten(), query, when], [*names, "query", "when"])
        points = table.group_by([*names, "query", "when"]).aggregate([]).group_by(names).aggregate([([], "count_all")])
        key_points = points.column("count_all").to_numpy()
        length = -1.0
        if job.output == "matches":
            last, first = (ticks_of(name, rows.column(name), job.schema.tick_ns or 1)[0] for name in ("end", "start"))
            length = float((last - first).mean())
        key_columns = [f"k{key.type.get_field_index(name)}" for name in keys]
        np.add.at(
            cells,
            _cells_of(points, key_columns),
            np.stack([0 * key_points, key_points**0, key_points, key_points**2], axis=1),
        )
        lengths += round(length * key_points.sum())
    return cells.T, lengths


def _cells_of(rows: pa.Table, keys: Sequence[str]) -> NDArray[np.int64]:
    """Return the cell of each row; without keys, the first cell."""
    if not keys:
        return np.zeros(len(rows), np.int64)
    return cells_of(hash_of_keys([rows.column(name) for name in keys]))


def pack_points(counts_by_bucket: Sequence[tuple[NDArray[np.int64], int] | None], explored: NDArray[np.int64]) -> str:
    """Sum :func:`points_by_cell` over some buckets, and pack the sums into a short text for :func:`points_in`, with
    the counts of :meth:`acep.overload.event_choice.Exploring.counts`."""
    counted = [sums for sums in counts_by_bucket if sums is not None]
    if len(counted) < len(counts_by_bucket):
        return POINTS
    counts = np.sum([counts for counts, _ in counted], axis=0)
    return f"{POINTS}{sum(length for _, length in counted)} {_pack(counts)} {_pack(explored)}"


def points_in(texts: Sequence[str]) -> tuple[NDArray[np.int64], int, NDArray[np.int64], bool]:
    """Return the sums of :func:`points_by_cell` over all buckets of a micro-batch, those of the explored units, and
    whether they are known."""
    counts, lengths, explored = np.zeros((4, CELLS), np.int64), 0, explored_in([])
    texts_of_points = [text.removeprefix(POINTS) for text in texts if text.startswith(POINTS)]
    for length, first, second in (text.split() for text in texts_of_points if text):
        counts += _unpack(first).reshape(counts.shape)
        explored = explored + _unpack(second)
        lengths += int(length)
    return counts, lengths, explored, bool(texts_of_points) and all(texts_of_points)


def _pack(counts: NDArray[np.int64]) -> str:
    return b64encode(zlib.compress(counts.astype("<i8").tobytes())).decode()


def _unpack(text: str) -> NDArray[np.int64]:
    return np.frombuffer(zlib.decompress(b64decode(text)), "<i8")


def tally_of(counts: NDArray[np.int64], chances: NDArray[np.float64], needed: int, crossing: float) -> Tally:
    """Return the sums that estimate the recall of match points, from ``counts`` by cell and the ``chances`` of cells.

    ``needed`` is the true number of events, which corrects the estimate from the chances. A share ``crossing`` of the
    matches reaches into the next sampling unit and needs both units.
    """
    has_chance = chances > 0
    (events, keys, points, squares), chances = counts[:, has_chance], chances[has_chance]
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
