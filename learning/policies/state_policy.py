"""The policy ``state``: shed partial matches by state and remaining window (pSPICE).

Slo, Bhowmik, Flaig and Rothermel, DEBS 2020. The utility of a partial match is the probability of completion over the
expected cost until then, extensions included.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from acep.learning.estimation.temporal_differences import steps, update_values
from acep.learning.estimation.utility import Sums, chances
from acep.learning.history.sums import SUMS, tally
from acep.learning.policies.counting import Scheme, Table
from acep.learning.policies.event_classes import ENOUGH, add_faded
from acep.learning.policies.exploration import FinishedTrajectories
from acep.learning.policy_context import PolicyContext
from acep.learning.shedding_table import SheddingTable, as_utility_buckets
from acep.learning.trajectories.match_vectors import Grid

__all__ = ["BINS", "add_sums", "empty_vector_sums", "state_scheme"]

BINS = 8  # bins of the remaining window


def _grid(context: PolicyContext) -> Grid:
    return context.grid(windows=BINS, waits=1)


def empty_vector_sums(names: tuple[str, ...], context: PolicyContext, grid: Grid) -> Table:  # noqa: ARG001
    """Return sums of zero by match vector."""
    return {name: np.zeros(grid.vectors) for name in names}


def add_sums(context: PolicyContext, grid: Grid, sums: Table, finished: FinishedTrajectories, forget: float) -> Table:  # noqa: ARG001
    """Add the sums of finished trajectories by match vector."""
    trajectories = finished.trajectories
    vector_sums = tally(grid, trajectories)
    columns = dict(zip(SUMS, vector_sums.sums.T, strict=True))
    available = {
        "visits": columns["visits"],
        "won": columns["reached"],
        "contributed": columns["targets"],
        "paid": columns["rest"],
        "consumed": columns["rest"] + columns["descendants"],
        "own": columns["own"],
    }
    added = {name: np.zeros(grid.vectors) for name in sums if name in available}
    for name, column in added.items():
        column[vector_sums.vectors] = available[name]
    new_sums = add_faded({name: sums[name] for name in added}, forget, added)
    if "value" in sums:
        new_sums = {**new_sums, "value": update_values(sums["value"], steps(grid, trajectories))}
    return new_sums


def _score(won: str, paid: str, context: PolicyContext, grid: Grid, sums: Table) -> SheddingTable | None:
    """Score by utility per cost. ``won`` and ``paid`` name the sums for utility and cost."""
    if sums["won"].sum() < ENOUGH:
        return None
    gain, cost = chances(grid, Sums(sums["visits"], sums["won"], sums[paid]))
    if won == "value":
        gain = sums["value"]
    return replace(SheddingTable.flat(context, grid=grid), level=np.maximum(as_utility_buckets(gain / cost), 1))


def state_scheme(won: str = "won", paid: str = "consumed") -> Scheme:
    """Build the scheme ``state``. ``won="value"`` takes probabilities from temporal differences; ``paid="paid"`` leaves
    out the cost of extensions."""
    names = dict.fromkeys(("visits", "won", paid, won))
    return Scheme(_grid, partial(empty_vector_sums, tuple(names)), add_sums, partial(_score, won, paid))
