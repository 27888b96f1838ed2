"""Policies that sum up outcomes of trajectories and make a shedding table by a scheme
(acep.learning.policies.schemes)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from acep.errors import AcepError
from acep.learning.policies.exploration import FinishedTrajectories, Pending, Watch
from acep.learning.policy import Epoch
from acep.learning.policy_context import PolicyContext
from acep.learning.shedding_table import SheddingTable
from acep.learning.trajectories.match_vectors import Floats, Grid
from acep.learning.trajectories.targets import Targets

__all__ = ["CountingPolicy", "Scheme", "Table"]

Table = Mapping[str, Floats]
"""Sums by name, each a float64 array of a fixed shape."""


@dataclass(frozen=True)
class Scheme:
    """The sums of a policy, and how its shedding table follows from them.

    ``grid``: the match vectors it distinguishes. ``empty``: the initial sums. ``taught``: the sums after more finished
    trajectories, with the old sums multiplied by a factor. ``shedding_table``: the shedding table (``None``: too few
    data).
    """

    grid: Callable[[PolicyContext], Grid]
    empty: Callable[[PolicyContext, Grid], Table]
    taught: Callable[[PolicyContext, Grid, Table, FinishedTrajectories, float], Table]
    shedding_table: Callable[[PolicyContext, Grid, Table], SheddingTable | None]


@dataclass
class CountingPolicy:
    """A scheme as a policy (:class:`acep.learning.policy.Policy`). ``target``: what is to be found, ``"points"`` or
    ``"bundles"``. ``forget``: the factor by which old sums are multiplied in each epoch. Until enough is known it keeps
    as many of the newest starts of each partition and state as the allowance permits."""

    name: str
    scheme: Scheme
    target: str = "points"
    forget: float = 0.9
    context: PolicyContext = field(init=False)

    def begin(self, context: PolicyContext, seed: int) -> SheddingTable:  # noqa: ARG002 - chance is the core's
        """Begin with empty sums."""
        self.context = context
        self.grid = self.scheme.grid(context)
        self.pending = Pending(Targets(gap=0 if self.target == "points" else context.span))
        self.watch = Watch()
        self.sums = dict(self.scheme.empty(context, self.grid))
        return self._shedding_table()

    def learn(self, epoch: Epoch) -> SheddingTable:
        """Add the log of an epoch to the sums."""
        self.pending, finished = self.pending.add_log(epoch.log)
        if len(finished.trajectories.made):
            self.sums = dict(self.scheme.taught(self.context, self.grid, self.sums, finished, self.forget))
        self.watch = self.watch.add_epoch(epoch)
        return self._shedding_table()

    def _shedding_table(self) -> SheddingTable:
        table = self.scheme.shedding_table(self.context, self.grid, self.sums)
        if table is None:
            flat = SheddingTable.flat(self.context, grid=self.grid)
            table = replace(flat, decay=np.full(self.context.states, 4.0))
        return table.watching(sample=self.watch.sample, shadow=self.watch.shadow)

    def state(self) -> Mapping[str, Any]:
        """Return all that was learned, as arrays and numbers."""
        return {"sums": self.sums, "pending": self.pending.to_arrays(), "watch": self.watch.to_data()}

    def learned(self) -> Mapping[str, Any]:
        """Return the state for another stream."""
        return {
            "sums": self.sums,
            "pending": self.pending.for_new_stream().to_arrays(),
            "watch": self.watch.for_new_stream().to_data(),
        }

    def restore(self, state: Mapping[str, Any]) -> SheddingTable:
        """Restore :meth:`state`. Raises :class:`ValueError` for other data."""
        try:
            pending, watch = self.pending.with_arrays(state["pending"]), Watch.from_data(state["watch"])
            sums = {name: np.asarray(column, np.float64) for name, column in state["sums"].items()}
        except (AcepError, KeyError, TypeError, AttributeError, ValueError) as error:
            raise ValueError(f"no state of this policy: {error}") from None
        shapes = {name: column.shape for name, column in self.scheme.empty(self.context, self.grid).items()}
        if {name: column.shape for name, column in sums.items()} != shapes:
            raise ValueError("a state of another policy or query")
        if not all(np.isfinite(column).all() for column in sums.values()):
            raise ValueError("sums that are no numbers")
        self.sums, self.pending, self.watch = sums, pending, watch
        return self._shedding_table()
