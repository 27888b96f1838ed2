"""The policy ``input``: shed events by class and place in the window (eSPICE).

Slo, Bhowmik and Rothermel, Middleware 2019. The utility of an event is the share of partial matches made there that
led to a target. Each start opens a window.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from acep.learning.policies.counting import Scheme, Table
from acep.learning.policies.event_classes import (
    ENOUGH,
    NOISE,
    add_faded,
    admission_of,
    makers,
    place_of,
    sum_by_place,
    takers,
)
from acep.learning.policies.exploration import FinishedTrajectories
from acep.learning.policy_context import PolicyContext
from acep.learning.shedding_table import HIGHEST, SheddingTable, as_utility_buckets
from acep.learning.trajectories.match_vectors import Grid
from acep.learning.trajectories.trajectories import MERGED

__all__ = ["INPUT"]

PLACES = 16  # bins of the window


def _grid(context: PolicyContext) -> Grid:
    """Return a grid with many bins of waiting time, to distinguish new partial matches from all others."""
    return context.grid(windows=PLACES, waits=8)


def _empty_sums(context: PolicyContext, grid: Grid) -> Table:
    return {name: np.zeros((max(context.classes, 1), grid.windows)) for name in ("made", "useful")}


def _add_sums(context: PolicyContext, grid: Grid, sums: Table, finished: FinishedTrajectories, forget: float) -> Table:
    """Count by class and place the partial matches made, and the useful ones; a completed match is always useful."""
    trajectories = finished.trajectories
    partials = trajectories.made
    useful, is_counted = np.zeros(len(partials), np.bool_), np.ones(len(partials), np.bool_)
    useful[finished.reached.row] = True
    merged = partials.find(trajectories.ended.trajectory[trajectories.ended.how == MERGED])
    is_counted[merged[merged >= 0]] = False
    parent = partials.parents
    likely = (
        makers(context)[np.where(parent >= 0, partials.state[parent], 0), partials.state]
        * (partials.weight * is_counted)[:, None]
    )
    last = partials.find(trajectories.found.parent)
    last, when = last[last >= 0], trajectories.found.when[last >= 0]
    ending = takers(context)[partials.state[last]] * partials.weight[last][:, None]
    place, end = place_of(grid, partials.start, partials.made), place_of(grid, partials.start[last], when)
    ends = sum_by_place(grid, end, ending)
    added = {"made": sum_by_place(grid, place, likely), "useful": sum_by_place(grid, place, likely * useful[:, None])}
    return add_faded(sums, forget, {name: counts + ends for name, counts in added.items()})


def _score(context: PolicyContext, grid: Grid, sums: Table) -> SheddingTable | None:
    """Score a new partial match by its event and place; one that was kept is always kept."""
    n_made, useful = sums["made"], sums["useful"]
    if useful.sum() < ENOUGH:
        return None
    of_class = (useful.sum(axis=1) + 1) / (n_made.sum(axis=1) + 2)
    levels = as_utility_buckets((useful + 4 * of_class[:, None]) / (n_made + 4))
    makes = (makers(context).sum(axis=0) > 0).T  # by class and state
    parts = grid.parts(np.arange(grid.vectors))
    of_node = np.where(makes[:, parts.state], levels[:, grid.windows - 1 - parts.remaining], 1).max(axis=0)
    return replace(
        SheddingTable.flat(context, grid=grid),
        level=np.where(parts.since == int(grid.since_bins(0, 0)), of_node, HIGHEST).astype(np.uint8),
        # An event has one place in each open window; the best one counts.
        admit=admission_of(context, np.maximum.accumulate(levels, axis=1)),
        noise=NOISE,
    )


INPUT = Scheme(_grid, _empty_sums, _add_sums, _score)
