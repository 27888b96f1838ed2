"""Choose among runs as OUTPUT says, in time linear in the events and those of the matches."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from acep.events.batch import Batch
from acep.ordered.interval_matches import ChosenIntervals
from acep.ordered.partition_rows import RowsByPartition, ids_rise
from acep.ordered.run_rows import RunRows, rows_of_runs
from acep.pattern.tree import Output, SkipTarget
from acep.plan.chosen.query_runs import RunsPlan
from acep.plan.compile import Plan
from acep.row_patterns.row_values import Evaluator

__all__ = ["choose_runs", "find_runs"]

Ints = npt.NDArray[np.int64]


def find_runs(
    runs: RunsPlan,
    plan: Plan,
    batch: Batch,
    *,
    may_continue: bool,
    rows: RowsByPartition | None = None,
    evaluator: Evaluator | None = None,
) -> ChosenIntervals | None:
    """Return the matches that are runs of one variable; ``None`` if the order of ids decides between matches, and is
    not that of the stream. ``may_continue``: events may come after those of the batch. ``rows``: those to look at;
    ``None``: all. ``evaluator``: that of a stream, which lowers conditions once."""
    return choose_runs(runs, rows_of_runs(runs, plan, batch, rows, evaluator), batch, may_continue=may_continue)


def choose_runs(runs: RunsPlan, rows: RunRows, batch: Batch, *, may_continue: bool) -> ChosenIntervals | None:
    """Do the same for events whose runs are known."""
    if runs.needs_order and not ids_rise(batch, rows.events, of_one_time=runs.needs_order == "time"):
        return None
    if runs.output is Output.NON_OVERLAP:
        firsts, lasts = _first_ending_runs(rows)
    else:
        ends = _longest_ends(rows) if runs.output.is_longest else _shortest_ends(rows)
        firsts, lasts = _runs_by_start(rows, ends, runs.skip)
    open_from = np.searchsorted(rows.reach, rows.events.edges[1:] - 1) if may_continue else None
    sizes = lasts - firsts + 1
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    places = np.arange(offsets[-1]) + np.repeat(firsts - offsets[:-1], sizes)
    return ChosenIntervals(rows.events, offsets, places, np.zeros(len(places), np.uint16), open_from, len(rows))


def _runs_by_start(rows: RunRows, ends: Ints, skip: SkipTarget | None) -> tuple[Ints, Ints]:
    """Return the first and the last event of the chosen runs: the one from the first start, then that from the next
    start that ``skip`` leaves. ``ends``: the last event of the run from each start."""
    size = len(rows)
    starts = np.flatnonzero(rows.is_start & (ends >= 0))
    lasts = ends[starts]
    is_behind = starts[1:] > lasts[:-1]
    if skip is None and (is_behind | (lasts[1:] == lasts[:-1])).all():  # runs that overlap end together, as sessions do
        is_chosen = np.ones(len(starts), bool)
        is_chosen[1:] = is_behind
        return starts[is_chosen], lasts[is_chosen]
    following = np.searchsorted(starts, np.arange(size + 1)).tolist()
    next_starts = ends[starts] + 1
    if skip is not None:  # the first event of the variable is that of the run
        next_starts = np.maximum(starts + 1, ends[starts] if skip.place == "last" else 0)
    chosen: list[int] = []
    place = 0
    after = next_starts.tolist()
    while place < len(after):
        chosen.append(place)
        place = following[after[place]]
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


def _shortest_ends(rows: RunRows) -> Ints:
    """Return the last event of the shortest match from each event; -1 if there is none."""
    size = len(rows)
    latest, reach = rows.latest.tolist(), rows.reach.tolist()
    ends = np.full(size, -1, np.int64)
    end = 0  # the first event that may end a match from here on
    for start in range(size):
        while end < size and latest[end] < start:
            end += 1
        if end <= reach[start]:
            ends[start] = end
    return ends


def _first_ending_runs(rows: RunRows) -> tuple[Ints, Ints]:
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
