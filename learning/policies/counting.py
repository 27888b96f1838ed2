"""Policies that sum up outcomes of trajectories and make a shedding table by a scheme
(acep.learning.policies.schemes)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from acep.errors import AcepError
from acep.learning.policies.exploration import Pending, Settled, Watch
from acep.learning.policy import Epoch
from acep.learning.policy_context import Setting
from acep.learning.shedding_table import Orders
from acep.learning.trajectories.match_vectors import Floats, Grid
from acep.learning.trajectories.targets import Targets

__all__ = ["Counted", "Scheme", "Table"]

Table = Mapping[str, Floats]
"""Sums by name, each a float64 array of a fixed shape."""


@dataclass(frozen=True)
class Scheme:
    """The sums of a policy, and how its shedding table follows from them.

    ``grid``: the match vectors it distinguishes. ``empty``: the initial sums. ``taught``: the sums after more finished
    trajectories, with the old sums multiplied by a factor. ``orders``: the shedding table (``None``: too few data).
    """

    grid: Callable[[Setting], Grid]
    empty: Callable[[Setting, Grid], Table]
    taught: Callable[[Setting, Grid, Table, Settled, float], Table]
    orders: Callable[[Setting, Grid, Table], Orders | None]


@dataclass
class Counted:
    """A scheme as a policy (:class:`acep.learning.policy.Policy`). ``target``: what is to be found, ``"points"`` or
    ``"bundles"``. ``forget``: the factor by which old sums are multiplied in each epoch. Until enough is known it keeps
    as many of the newest starts of each partition and state as the allowance permits."""

    name: str
    scheme: Scheme
    target: str = "points"
    forget: float = 0.9
    setting: Setting = field(init=False)

    def begin(self, setting: Setting, seed: int) -> Orders:  # noqa: ARG002 - chance is the core's
        """Begin with empty sums."""
        self.setting = setting
        self.grid = self.scheme.grid(setting)
        self.pending = Pending(Targets(gap=0 if self.target == "points" else setting.span))
        self.watch = Watch()
        self.sums = dict(self.scheme.empty(setting, self.grid))
        return self._orders()

    def learn(self, epoch: Epoch) -> Orders:
        """Add the log of an epoch to the sums."""
        self.pending, settled = self.pending.take_in(epoch.log)
        if len(settled.lives.made):
            self.sums = dict(self.scheme.taught(self.setting, self.grid, self.sums, settled, self.forget))
        self.watch = self.watch.after(epoch)
        return self._orders()

    def _orders(self) -> Orders:
        chosen = self.scheme.orders(self.setting, self.grid, self.sums)
        if chosen is None:
            flat = Orders.flat(self.setting, grid=self.grid)
            chosen = replace(flat, decay=np.full(self.setting.states, 4.0))
        return chosen.watching(sample=self.watch.sample, spared=self.watch.spared)

    def state(self) -> Mapping[str, Any]:
        """Return all that was learned, as arrays and numbers."""
        return {"sums": self.sums, "pending": self.pending.to_arrays(), "watch": self.watch.to_data()}

    def learned(self) -> Mapping[str, Any]:
        """Return the state for another stream."""
        return {"sums": self.sums, "pending": self.pending.anew().to_arrays(), "watch": self.watch.anew().to_data()}

    def restore(self, state: Mapping[str, Any]) -> Orders:
        """Restore :meth:`state`. Raises :class:`ValueError` for other data."""
        try:
            pending, watch = self.pending.with_arrays(state["pending"]), Watch.from_data(state["watch"])
            sums = {name: np.asarray(held, np.float64) for name, held in state["sums"].items()}
        except (AcepError, KeyError, TypeError, AttributeError, ValueError) as error:
            raise ValueError(f"no state of this policy: {error}") from None
        shapes = {name: held.shape for name, held in self.scheme.empty(self.setting, self.grid).items()}
        if {name: held.shape for name, held in sums.items()} != shapes:
            raise ValueError("a state of another policy or query")
        if not all(np.isfinite(held).all() for held in sums.values()):
            raise ValueError("sums that are no numbers")
        self.sums, self.pending, self.watch = sums, pending, watch
        return self._orders()
