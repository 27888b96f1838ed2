"""Count outcomes by event class and place in the window: shared by the policies that shed events."""

from __future__ import annotations

import numpy as np

from acep.learning.policies.counting import Table
from acep.learning.policy_context import PolicyContext
from acep.learning.shedding_table import STEPS, Bytes
from acep.learning.trajectories.match_vectors import Floats, Grid, Ints

__all__ = ["ENOUGH", "NOISE", "add_faded", "admission_of", "makers", "place_of", "sum_by_place", "takers"]

ENOUGH = 20.0  # least number of successes to learn from
NOISE = 2 * STEPS  # so that not all events of a class and place are shed at once


def add_faded(sums: Table, forget: float, added: Table) -> Table:
    """Add ``added`` to sums that fade by ``forget``."""
    return {name: forget * total + added[name] for name, total in sums.items()}


def makers(context: PolicyContext) -> Floats:
    """Return float64[states, states, classes]: by source and target state of a partial match, the probability of each
    class of the event that made it."""
    takes: Floats = np.zeros((context.states, context.states, max(context.classes, 1)))
    for source, arcs in enumerate(context.takes):
        for event_class, target in arcs:
            takes[source, target, event_class] = 1.0
    takes /= np.maximum(takes.sum(axis=2, keepdims=True), 1.0)
    return takes


def takers(context: PolicyContext) -> Floats:
    """Return float64[states, classes]: the classes of events that a state can bind, in equal shares."""
    takes = (makers(context).sum(axis=1) > 0).astype(np.float64)
    shares: Floats = takes / np.maximum(takes.sum(axis=1, keepdims=True), 1.0)
    return shares


def place_of(grid: Grid, start: Ints, now: Ints) -> Ints:
    """Return the bin of the window that times fall into, counted from the start."""
    return grid.windows - 1 - grid.remaining(start, now)


def sum_by_place(grid: Grid, place: Ints, likely: Floats) -> Floats:
    """Return the sums of shares (float64[n, classes]) by class and place."""
    return np.array([np.bincount(place, shares, grid.windows) for shares in likely.T])


def admission_of(context: PolicyContext, levels: Bytes) -> Bytes:
    """Return the table of admission, empty (admit all) where skipping an event could create other matches."""
    return levels if context.loses_only and context.classes else np.zeros((0, 1), np.uint8)
