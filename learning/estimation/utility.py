"""Estimate the utility and the cost of partial matches from their logged trajectories."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from acep.learning.shedding_table import AGES, STEPS
from acep.learning.trajectories.columns import Table
from acep.learning.trajectories.log import Ages, Extra
from acep.learning.trajectories.match_vectors import Floats, Grid, Ints
from acep.learning.trajectories.targets import Reached
from acep.learning.trajectories.trajectories import MERGED, Trajectories
from acep.learning.trajectories.trees import with_extensions

__all__ = ["CompleteTrajectories", "Sums", "age_buckets", "chances", "complete_trajectories", "stays", "thin_out"]

DOUBT = 4.0  # prior weight, in visits, of the coarser vector
AGED_TRAJECTORIES = 4096  # trajectories used to learn the effect of age
FREE = 0.05  # least cost in touches, since even an idle partial match is looked at


@dataclass(frozen=True, eq=False)
class CompleteTrajectories(Table):
    """Complete trajectories, one row each: parts of the match vector, the end (``until``), the ``touches`` of the
    partial match and all its descendants, the number of targets it led to (``gain``), and the last time at which it
    still led to one (``useful``; before ``made_at``: never). ``ends`` and ``last`` are how many partial matches had
    been made after it in its partition and state by these two times (``last``: -1 for never)."""

    state: Ints
    error: Ints
    start: Ints
    made_at: Ints
    until: Ints
    touches: Floats
    gain: Floats
    useful: Ints
    ends: Ints
    last: Ints
    weight: Floats


def complete_trajectories(
    trajectories: Trajectories, reached: Reached, extra: Extra, ages: Ages, *, shared: bool
) -> tuple[CompleteTrajectories, Ints]:
    """Return the trajectories that ended other than by merging, and their rows in ``trajectories.made``. ``extra`` is
    by row. ``shared``: the gain is the number of targets that a trajectory leads to; otherwise it is 1 if there are
    any."""
    partials, ended = trajectories.made, trajectories.ended
    ended_rows = partials.find(ended.trajectory)
    is_judged = (ended_rows >= 0) & (ended.how != MERGED)
    rows = ended_rows[is_judged]
    touches = np.zeros(len(partials), np.int64)
    touches[rows] = ended.touches[is_judged]
    when, touches = ended.when[is_judged], with_extensions(partials.parents, touches)[0][rows]
    useful = np.full(len(partials), np.iinfo(np.int64).min)
    np.maximum.at(useful, reached.row, reached.until)
    gain = np.bincount(reached.row, minlength=len(partials)).astype(np.float64)
    # The last useful age: of the last child that led to a target, or of the last complete run.
    last = np.full(len(partials), -1)
    parent = partials.parents
    child = np.flatnonzero((gain > 0) & (parent >= 0))
    np.maximum.at(last, parent[child], extra.age[child])
    finder = partials.find(ages.parent)
    np.maximum.at(last, finder[finder >= 0], ages.finds[finder >= 0])
    last[gain == 0] = -1
    ends = np.zeros(len(partials), np.int64)
    ender = partials.find(ages.trajectory)
    ends[ender[ender >= 0]] = ages.ends[ender >= 0]
    if not shared:
        gain = np.minimum(gain, 1.0)
    order = np.argsort(rows)
    rows = rows[order]
    end_times, last = np.maximum(when[order], partials.made[rows]), last[rows]
    parts = (partials.state[rows], partials.error[rows], partials.start[rows], partials.made[rows], end_times)
    outcome = (touches[order].astype(np.float64), gain[rows], useful[rows], np.maximum(ends[rows], last), last)
    return CompleteTrajectories(*parts, *outcome, partials.weight[rows]), rows


def thin_out(trajectories: CompleteTrajectories, values: Floats, max_rows: int) -> tuple[CompleteTrajectories, Floats]:
    """Return at most ``max_rows`` trajectories, with their rows of ``values``. Drop every second unsuccessful one and
    double the weight of the other unsuccessful ones, as often as needed; once these are few, do so with all.

    >>> columns = {name: np.zeros(6, np.int64) for name in CompleteTrajectories.__annotations__}
    >>> trajectories = CompleteTrajectories(**columns | {"gain": np.array([0, 0, 1, 0, 0, 0.0]), "weight": np.ones(6)})
    >>> fewer, _ = thin_out(trajectories, np.zeros((6, 0)), 4)
    >>> fewer.gain.tolist(), fewer.weight.tolist()
    ([0.0, 1.0, 0.0, 0.0], [2.0, 1.0, 2.0, 2.0])
    """
    while len(trajectories) > max_rows:
        is_halved = trajectories.gain == 0
        if 2 * np.count_nonzero(is_halved) <= max_rows:
            is_halved = np.ones(len(trajectories), np.bool_)
        remaining = np.flatnonzero(~is_halved | (np.cumsum(is_halved) % 2 == 1))
        weight = np.where(is_halved, 2 * trajectories.weight, trajectories.weight)
        trajectories, values = replace(trajectories, weight=weight).rows(remaining), values[remaining]
    return trajectories, values


@dataclass(frozen=True)
class Sums:
    """Sums by match vector, float64[vectors]: ``visits``, and the gain ``won`` and touches ``paid`` after them."""

    visits: Floats
    won: Floats
    paid: Floats


def stays(grid: Grid, rows: CompleteTrajectories) -> Sums:
    """Sum the visits, gain and touches by vector. Assume that touches are spread evenly over a trajectory."""
    zeros = np.zeros_like(rows.state)
    passage = grid.passage(rows.state, rows.error, rows.start, rows.made_at, rows.until, zeros)
    row = passage.row
    weight = rows.weight[row]
    won = weight * rows.gain[row] * (rows.useful[row] >= passage.begin)
    length = (rows.until - rows.made_at + 1)[row]
    paid = weight * rows.touches[row] * (rows.until[row] - passage.begin + 1) / length
    columns: list[Any] = [np.bincount(passage.vector, column, grid.vectors) for column in (weight, won, paid)]
    return Sums(*columns)


def chances(grid: Grid, sums: Sums) -> tuple[Floats, Floats]:
    """Return the expected gain and touches of a partial match at each vector, float64[vectors] each. If visits are
    few, back off to coarser vectors: without the time since the last event, then the remaining window, and so on."""
    parts = np.arange(grid.vectors)
    won, paid = np.zeros(grid.vectors), np.zeros(grid.vectors)
    prior = 0.0
    for level in (4, 3, 2, 1, 0):
        key = grid.coarse(parts, level)
        visits = np.bincount(key, sums.visits, grid.vectors)[key]
        own_won = np.bincount(key, sums.won, grid.vectors)[key]
        own_paid = np.bincount(key, sums.paid, grid.vectors)[key]
        won = (own_won + prior * won) / np.maximum(visits + prior, 1e-300)
        paid = (own_paid + prior * paid) / np.maximum(visits + prior, 1e-300)
        prior = DOUBT
    return won, paid + FREE


def age_buckets(grid: Grid, rows: CompleteTrajectories, won: Floats, paid: Floats) -> Floats:
    """Return the utility buckets that age adds to those of the vectors, float64[states, AGES]. Age is the number of
    partial matches made since in the same list, in bins 0, 1, 2 to 3, ...; bin 0 adds nothing. New partial matches are
    assumed to come evenly over a trajectory."""
    buckets = np.zeros((grid.states, AGES))
    rows = rows.rows(np.arange(0, len(rows), max(1, -(-len(rows) // AGED_TRAJECTORIES))))
    succeeded = np.maximum(np.bincount(rows.state, rows.gain > 0, grid.states), 1)
    doubt = np.maximum(np.bincount(rows.state, rows.gain, grid.states) / succeeded, 1e-9)
    for age in range(AGES):
        min_age = 0 if age == 0 else 1 << (age - 1)
        aged = rows.rows(np.flatnonzero(rows.ends >= min_age))
        if not len(aged):
            break
        share = min_age / np.maximum(aged.ends, 1)
        now = aged.made_at + ((aged.until - aged.made_at) * share).astype(np.int64)
        vector = grid.number(aged.state, aged.error, aged.start, aged.made_at, now)
        columns = (
            aged.gain * (aged.last >= min_age),
            won[vector],
            aged.touches * (1 - share),
            paid[vector],
        )
        observed, expected, cost, usual = (np.bincount(aged.state, c * aged.weight, grid.states) for c in columns)
        ratio = (observed + doubt) / (expected + doubt) / ((cost + 5.0) / (usual + 5.0))
        buckets[:, age] = np.where(expected > 0, STEPS * np.log2(ratio), buckets[:, max(age - 1, 0)])
    return np.clip(buckets - buckets[:, :1], -127, 127)
