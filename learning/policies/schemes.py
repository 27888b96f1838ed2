"""Load shedding policies from the literature: of events, of partial matches, and of both.

``input``: eSPICE (Slo, Bhowmik, Rothermel, Middleware 2019). The utility of an event depends on its class and its
position in the window: it is the share of partial matches made there that led to a target. Each start opens a window.

``state``: pSPICE (Slo, Bhowmik, Flaig, Rothermel, DEBS 2020). The utility of a partial match depends on its state and
the remaining window: it is the probability of completion over the expected cost until then, extensions included.

``hybrid``: Zhao, Hung, Weidlich (ICDE 2020). The utility of a partial match is its contribution over its consumption,
extensions included. Events that could only make partial matches below the utility threshold are skipped. Both kinds
have one threshold, so that the last transition evaluation spent on either gains the same; this keeps the most.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import numpy as np

from acep.learning.estimation.temporal_differences import learned, steps
from acep.learning.estimation.utility import Sums, chances
from acep.learning.history.sums import SUMS, tally
from acep.learning.policies.counting import Scheme, Table
from acep.learning.policies.exploration import FinishedTrajectories
from acep.learning.policy_context import PolicyContext
from acep.learning.shedding_table import HIGHEST, STEPS, Bytes, SheddingTable, as_utility_buckets
from acep.learning.trajectories.match_vectors import Floats, Grid, Ints
from acep.learning.trajectories.trajectories import MERGED

__all__ = ["SCHEMES"]

PLACES = 16  # bins of the window, for events
BINS = 8  # bins of the remaining window, for partial matches
ENOUGH = 20.0  # least number of successes to learn from
NOISE = 2 * STEPS  # so that not all events of a class and place are shed at once


def _plus(sums: Table, forget: float, more: Table) -> Table:
    return {name: forget * held + more[name] for name, held in sums.items()}


def _makers(context: PolicyContext) -> Floats:
    """Return float64[states, states, classes]: by source and target state of a partial match, the probability of each
    class of the event that made it."""
    takes: Floats = np.zeros((context.states, context.states, max(context.classes, 1)))
    for source, arcs in enumerate(context.takes):
        for taken, target in arcs:
            takes[source, target, taken] = 1.0
    takes /= np.maximum(takes.sum(axis=2, keepdims=True), 1.0)
    return takes


def _takers(context: PolicyContext) -> Floats:
    """Return float64[states, classes]: the classes of events that a state can bind, in equal shares."""
    takes = (_makers(context).sum(axis=1) > 0).astype(np.float64)
    found: Floats = takes / np.maximum(takes.sum(axis=1, keepdims=True), 1.0)
    return found


def _place(grid: Grid, start: Ints, now: Ints) -> Ints:
    return grid.windows - 1 - grid.remaining(start, now)


def _by_place(grid: Grid, place: Ints, likely: Floats) -> Floats:
    """Return the sums of shares (float64[n, classes]) by class and place."""
    return np.array([np.bincount(place, of, grid.windows) for of in likely.T])


def _let_in(context: PolicyContext, levels: Bytes) -> Bytes:
    """Return the table of admission, empty (admit all) where skipping an event could create other matches."""
    return levels if context.loses_only and context.classes else np.zeros((0, 1), np.uint8)


# Events by class and place ------------------------------------------------------------------------


def _fine(context: PolicyContext) -> Grid:
    """Return a grid with many bins of waiting time, to distinguish new partial matches from all others."""
    return context.grid(windows=PLACES, waits=8)


def _no_events(context: PolicyContext, grid: Grid) -> Table:
    return {name: np.zeros((max(context.classes, 1), grid.windows)) for name in ("made", "useful")}


def _of_events(context: PolicyContext, grid: Grid, sums: Table, finished: FinishedTrajectories, forget: float) -> Table:
    """Count by class and place the partial matches made, and the useful ones; a completed match is always useful."""
    trajectories = finished.trajectories
    made = trajectories.made
    useful, own = np.zeros(len(made), np.bool_), np.ones(len(made), np.bool_)
    useful[finished.reached.row] = True
    merged = made.find(trajectories.ended.trajectory[trajectories.ended.how == MERGED])
    own[merged[merged >= 0]] = False
    parent = made.parents
    likely = _makers(context)[np.where(parent >= 0, made.state[parent], 0), made.state] * (made.weight * own)[:, None]
    last = made.find(trajectories.found.parent)
    last, when = last[last >= 0], trajectories.found.when[last >= 0]
    ending = _takers(context)[made.state[last]] * made.weight[last][:, None]
    place, end = _place(grid, made.start, made.made), _place(grid, made.start[last], when)
    ends = _by_place(grid, end, ending)
    more = {"made": _by_place(grid, place, likely), "useful": _by_place(grid, place, likely * useful[:, None])}
    return _plus(sums, forget, {name: counted + ends for name, counted in more.items()})


def _by_events(context: PolicyContext, grid: Grid, sums: Table) -> SheddingTable | None:
    """Score a new partial match by its event and place; one that was kept is always kept."""
    made, useful = sums["made"], sums["useful"]
    if useful.sum() < ENOUGH:
        return None
    of_class = (useful.sum(axis=1) + 1) / (made.sum(axis=1) + 2)
    levels = as_utility_buckets((useful + 4 * of_class[:, None]) / (made + 4))
    makes = (_makers(context).sum(axis=0) > 0).T  # by class and state
    parts = grid.parts(np.arange(grid.vectors))
    of_node = np.where(makes[:, parts.state], levels[:, grid.windows - 1 - parts.remaining], 1).max(axis=0)
    return replace(
        SheddingTable.flat(context, grid=grid),
        level=np.where(parts.since == int(grid.since(0, 0)), of_node, HIGHEST).astype(np.uint8),
        # An event has one place in each open window; the best one counts.
        admit=_let_in(context, np.maximum.accumulate(levels, axis=1)),
        noise=NOISE,
    )


# Partial matches by state and window --------------------------------------------------------------


def _plain(context: PolicyContext) -> Grid:
    return context.grid(windows=BINS, waits=1)


def _no_nodes(names: tuple[str, ...], context: PolicyContext, grid: Grid) -> Table:  # noqa: ARG001
    return {name: np.zeros(grid.vectors) for name in names}


def _of_nodes(context: PolicyContext, grid: Grid, sums: Table, finished: FinishedTrajectories, forget: float) -> Table:  # noqa: ARG001
    trajectories = finished.trajectories
    told = tally(grid, trajectories)
    columns = dict(zip(SUMS, told.sums.T, strict=True))
    wanted = {
        "visits": columns["visits"],
        "won": columns["reached"],
        "contributed": columns["targets"],
        "paid": columns["rest"],
        "consumed": columns["rest"] + columns["descendants"],
        "own": columns["own"],
    }
    more = {name: np.zeros(grid.vectors) for name in sums if name in wanted}
    for name, column in more.items():
        column[told.vectors] = wanted[name]
    found = _plus({name: sums[name] for name in more}, forget, more)
    if "value" in sums:
        found = {**found, "value": learned(sums["value"], steps(grid, trajectories))}
    return found


def _by_nodes(won: str, paid: str, context: PolicyContext, grid: Grid, sums: Table) -> SheddingTable | None:
    """Score by utility per cost. ``won`` and ``paid`` name the sums for utility and cost."""
    if sums["won"].sum() < ENOUGH:
        return None
    gain, cost = chances(grid, Sums(sums["visits"], sums["won"], sums[paid]))
    if won == "value":
        gain = sums["value"]
    return replace(SheddingTable.flat(context, grid=grid), level=np.maximum(as_utility_buckets(gain / cost), 1))


# Both ---------------------------------------------------------------------------------------------

NODES = ("visits", "contributed", "consumed", "own")


def _waiting(context: PolicyContext) -> Grid:
    return context.grid(windows=BINS, waits=4)


def _no_both(context: PolicyContext, grid: Grid) -> Table:
    classes = max(context.classes, 1)
    sizes = {"born": grid.vectors, "won": grid.windows}
    return {**_no_nodes(NODES, context, grid), **{name: np.zeros((classes, size)) for name, size in sizes.items()}}


def _of_both(context: PolicyContext, grid: Grid, sums: Table, finished: FinishedTrajectories, forget: float) -> Table:
    """Add by event class the partial matches made (``born``, by vector), and the targets ``won``, by place."""
    trajectories, reached = finished.trajectories, finished.reached
    made = trajectories.made
    parent = made.parents
    likely = _makers(context)[np.where(parent >= 0, made.state[parent], 0), made.state] * made.weight[:, None]
    vector = grid.number(made.state, made.error, made.start, made.made, made.made)
    born = np.array([np.bincount(vector, of, grid.vectors) for of in likely.T])
    # A target counts once per event, even if several of its partial matches led there.
    of_event = np.stack([made.partition[reached.row], made.made[reached.row], reached.target])
    once = np.unique(of_event, axis=1, return_index=True)[1]
    row = reached.row[once]
    last = made.find(trajectories.found.parent)
    ends = np.flatnonzero((last >= 0) & trajectories.found.first)
    last, when = last[ends], trajectories.found.when[ends]
    ending = _takers(context)[made.state[last]] * made.weight[last][:, None]
    won = _by_place(grid, _place(grid, made.start[row], made.made[row]), likely[row])
    more = {"born": born, "won": won + _by_place(grid, _place(grid, made.start[last], when), ending)}
    nodes = _of_nodes(context, grid, {name: sums[name] for name in NODES}, finished, forget)
    return {**nodes, **_plus({name: sums[name] for name in more}, forget, more)}


def _by_both(context: PolicyContext, grid: Grid, sums: Table) -> SheddingTable | None:
    if sums["contributed"].sum() < ENOUGH:
        return None
    gain, cost = chances(grid, Sums(sums["visits"], sums["contributed"], sums["consumed"]))
    node = gain / cost
    parts = grid.parts(np.arange(grid.vectors))
    place = grid.windows - 1 - parts.remaining
    # An event costs the evaluations of waiting partial matches, and all that comes of those it makes.
    looks = _by_place(grid, place, _takers(context)[parts.state] * sums["own"][:, None])
    costs = looks + _by_place(grid, place, (sums["born"] * cost).T)
    event = np.cumsum(sums["won"], axis=1) / np.maximum(np.cumsum(costs, axis=1), 1.0)
    levels = np.maximum(as_utility_buckets(np.concatenate([node, event.ravel()])), 1)
    return replace(
        SheddingTable.flat(context, grid=grid),
        level=levels[: len(node)],
        admit=_let_in(context, levels[len(node) :].reshape(event.shape)),
        noise=NOISE,
    )


def _state(won: str = "won", paid: str = "consumed") -> Scheme:
    """Build the scheme ``state``. ``won="value"`` takes probabilities from temporal differences; ``paid="paid"`` leaves
    out the cost of extensions."""
    names = dict.fromkeys(("visits", "won", paid, won))
    return Scheme(_plain, partial(_no_nodes, tuple(names)), _of_nodes, partial(_by_nodes, won, paid))


SCHEMES: Mapping[str, Scheme] = {
    "input": Scheme(_fine, _no_events, _of_events, _by_events),
    "state": _state(),
    "state by differences": _state(won="value"),
    "hybrid": Scheme(_waiting, _no_both, _of_both, _by_both),
}
"""The schemes by name; ``state by differences`` is ``state`` with temporal-difference learning."""
