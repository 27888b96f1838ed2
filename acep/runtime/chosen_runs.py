"""Choose among runs for NON OVERLAP and LONGEST NON OVERLAP, in time linear in the events."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from acep.events.batch import Batch
from acep.plan.compile import Plan
from acep.plan.ordered.query_runs import RunsPlan
from acep.runtime.interval_matches import ChosenIntervals
from acep.runtime.partition_rows import RowsByPartition, ids_rise
from acep.runtime.run_rows import RunRows, rows_of_runs

__all__ = ["choose_runs", "find_runs", "first_ending_runs", "longest_runs"]

Ints = npt.NDArray[np.int64]


def find_runs(
    runs: RunsPlan, plan: Plan, batch: Batch, *, more: bool, rows: RowsByPartition | None = None
) -> ChosenIntervals | None:
    """Return the matches that are runs of one variable; ``None`` if the order of ids decides between matches, and is
    not that of the stream. ``more``: events may come after those of the batch. ``rows``: those to look at; ``None``:
    all."""
    return choose_runs(runs, rows_of_runs(runs, plan, batch, rows), batch, more=more)


def choose_runs(runs: RunsPlan, rows: RunRows, batch: Batch, *, more: bool) -> ChosenIntervals | None:
    """Do the same for events whose runs are known."""
    if runs.needs_order and not ids_rise(batch, rows.events, of_one_time=runs.needs_order == "time"):
        return None
    firsts, lasts = longest_runs(rows) if runs.is_longest else first_ending_runs(rows)
    open_from = np.searchsorted(rows.reach, rows.events.edges[1:] - 1) if more else None
    sizes = lasts - firsts + 1
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    places = np.arange(offsets[-1]) + np.repeat(firsts - offsets[:-1], sizes)
    return ChosenIntervals(rows.events, offsets, places, np.zeros(len(places), np.uint16), open_from, len(rows))


def longest_runs(rows: RunRows) -> tuple[Ints, Ints]:
    """Return the first and the last event of the runs of LONGEST NON OVERLAP: the longest one from the first start,
    then the next one that starts after it."""
    size = len(rows)
    ends = _longest_ends(rows)
    starts = np.flatnonzero(rows.is_start & (ends >= 0))
    following = np.searchsorted(starts, np.arange(size + 1)).tolist()
    first_events, last_events = starts.tolist(), ends[starts].tolist()
    chosen: list[int] = []
    place = 0
    while place < len(first_events):
        chosen.append(place)
        place = following[last_events[place] + 1]
    return starts[chosen], ends[starts[chosen]]


def _longest_ends(rows: RunRows) -> Ints:
    """Return the last event of the longest match from each event; -1 if there is none."""
    size = len(rows)
    numbers = np.arange(size)
    ends = np.where(rows.latest[rows.reach] >= numbers, rows.reach, -1)
    rises = (rows.latest[1:] >= rows.latest[:-1]) | (rows.events.begins[1:] == numbers[1:])
    if (ends >= 0).all() or rises.all():  # what fails at the end of the run fails before
        return ends
    latest, reach = rows.latest.tolist(), rows.reach.tolist()
    # The events that may end a match from here on, the last one on top. One that may not end it goes for good.
    stack: list[int] = []
    seen = 0
    for start in range(size):
        while seen <= reach[start]:
            stack.append(seen)
            seen += 1
        while stack and latest[stack[-1]] < start:
            stack.pop()
        ends[start] = stack[-1] if stack else -1
    return ends


def first_ending_runs(rows: RunRows) -> tuple[Ints, Ints]:
    """Return the first and the last event of the runs of NON OVERLAP: the one that ends first, and of these the one
    that starts first, then the next one that starts after it."""
    size = len(rows)
    starts = np.append(np.flatnonzero(rows.is_start), size)
    following = starts[np.searchsorted(starts, np.arange(size + 1))]
    earliest = following[np.searchsorted(rows.reach, np.arange(size))]  # whose longest run reaches each event
    ends = np.flatnonzero(earliest <= np.minimum(rows.latest, np.arange(size)))
    next_starts = following.tolist()
    chosen: list[tuple[int, int]] = []
    free = next_starts[0]  # the first start after the last match
    for end, start, latest in zip(ends.tolist(), earliest[ends].tolist(), rows.latest[ends].tolist(), strict=True):
        if free <= latest:
            chosen.append((max(free, start), end))
            free = next_starts[end + 1]
    pairs = np.array(chosen, np.int64).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]
