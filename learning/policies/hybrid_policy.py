"""The policy ``hybrid``: shed events and partial matches by one utility threshold.

Zhao, Hung and Weidlich, ICDE 2020. The utility of a partial match is its contribution over its consumption, extensions
included. Events that could only make partial matches below the threshold are skipped, so that the last transition
evaluation spent on either gains the same.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from acep.learning.estimation.utility import Sums, chances
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
from acep.learning.policies.state_policy import BINS, add_sums, empty_vector_sums
from acep.learning.policy_context import PolicyContext
from acep.learning.shedding_table import SheddingTable, as_utility_buckets
from acep.learning.trajectories.match_vectors import Grid

__all__ = ["HYBRID"]

NODES = ("visits", "contributed", "consumed", "own")


def _grid(context: PolicyContext) -> Grid:
    return context.grid(windows=BINS, waits=4)


def _empty_sums(context: PolicyContext, grid: Grid) -> Table:
    classes = max(context.classes, 1)
    sizes = {"born": grid.vectors, "won": grid.windows}
    return {
        **empty_vector_sums(NODES, context, grid),
        **{name: np.zeros((classes, size)) for name, size in sizes.items()},
    }


def _add_sums(context: PolicyContext, grid: Grid, sums: Table, finished: FinishedTrajectories, forget: float) -> Table:
    """Add by event class the partial matches made (``born``, by vector), and the targets ``won``, by place."""
    trajectories, reached = finished.trajectories, finished.reached
    partials = trajectories.made
    parent = partials.parents
    likely = (
        makers(context)[np.where(parent >= 0, partials.state[parent], 0), partials.state] * partials.weight[:, None]
    )
    vector = grid.number(partials.state, partials.error, partials.start, partials.made, partials.made)
    born = np.array([np.bincount(vector, shares, grid.vectors) for shares in likely.T])
    # A target counts once per event, even if several of its partial matches led there.
    of_event = np.stack([partials.partition[reached.row], partials.made[reached.row], reached.target])
    once = np.unique(of_event, axis=1, return_index=True)[1]
    row = reached.row[once]
    last = partials.find(trajectories.found.parent)
    ends = np.flatnonzero((last >= 0) & trajectories.found.first)
    last, when = last[ends], trajectories.found.when[ends]
    ending = takers(context)[partials.state[last]] * partials.weight[last][:, None]
    won = sum_by_place(grid, place_of(grid, partials.start[row], partials.made[row]), likely[row])
    added = {"born": born, "won": won + sum_by_place(grid, place_of(grid, partials.start[last], when), ending)}
    nodes = add_sums(context, grid, {name: sums[name] for name in NODES}, finished, forget)
    return {**nodes, **add_faded({name: sums[name] for name in added}, forget, added)}


def _score(context: PolicyContext, grid: Grid, sums: Table) -> SheddingTable | None:
    if sums["contributed"].sum() < ENOUGH:
        return None
    gain, cost = chances(grid, Sums(sums["visits"], sums["contributed"], sums["consumed"]))
    node = gain / cost
    parts = grid.parts(np.arange(grid.vectors))
    place = grid.windows - 1 - parts.remaining
    # An event costs the evaluations of waiting partial matches, and all that comes of those it makes.
    looks = sum_by_place(grid, place, takers(context)[parts.state] * sums["own"][:, None])
    costs = looks + sum_by_place(grid, place, (sums["born"] * cost).T)
    event = np.cumsum(sums["won"], axis=1) / np.maximum(np.cumsum(costs, axis=1), 1.0)
    levels = np.maximum(as_utility_buckets(np.concatenate([node, event.ravel()])), 1)
    return replace(
        SheddingTable.flat(context, grid=grid),
        level=levels[: len(node)],
        admit=admission_of(context, levels[len(node) :].reshape(event.shape)),
        noise=NOISE,
    )


HYBRID = Scheme(_grid, _empty_sums, _add_sums, _score)
