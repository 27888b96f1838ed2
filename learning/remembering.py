"""The policy ``history``: what became of nodes alike decides who stays (DESIGN of it in docs/best_effort.md)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from acep.errors import AcepError
from acep.learning.differences import learned, steps
from acep.learning.log import stacked
from acep.learning.orders import AGES, Orders, Term, as_levels
from acep.learning.policy import Epoch
from acep.learning.setting import Setting
from acep.learning.targets import Targets
from acep.learning.terms import candidates, fitted
from acep.learning.vectors import Floats, Grid
from acep.learning.watching import Pending, Watch
from acep.learning.worth import Lived, Sums, chances, later, lived, stays
from acep.sketches.dense import DenseMemory
from acep.sketches.memories import read_memory
from acep.sketches.protocol import VectorMemory

__all__ = ["Remembering"]

REMEMBERED = 16_384  # lives that terms are fitted to
ANEW = 4  # where a quarter of them are new, the fit is made anew
ENOUGH = 20.0  # successes without which nothing is believed
LEAST_WORTH = 1e-9
NONE = np.zeros(0, np.int64)
WINDOWS, WAITS = 8, 6  # bins of match vectors


@dataclass
class Remembering:
    """Keeps what its history says leads to the most targets for its cost.

    ``target``: ``"points"`` or ``"bundles"``. ``decay``: levels by which each further node of a partition and state is
    worth less. ``temper``: the power of worth for cost that is believed in: where it is small, all partitions and
    states keep something, as the nodes of one list find much the same. ``terms``, ``ages``, ``costs``: whether
    registers, the number of later nodes, and what a node costs are taken into account. ``forget``: what is left of
    old counts after an epoch. ``noise``: levels of chance. ``differences``: what is to come of a vector is not counted,
    but learned by temporal differences (acep.learning.differences).
    """

    target: str = "points"
    decay: float = 8.0
    temper: float = 0.25
    terms: bool = True
    ages: bool = True
    costs: bool = True
    forget: float = 0.9
    noise: int = 4
    differences: bool = False
    name: str = "history"
    setting: Setting = field(init=False)

    def begin(self, setting: Setting, seed: int) -> Orders:  # noqa: ARG002 - chance is the core's
        """Nothing is known yet: as many of the newest starts of each partition and state as can be afforded."""
        self.setting = setting
        self.grid: Grid = setting.grid(windows=WINDOWS, waits=WAITS)
        self.logged = candidates(setting) if self.terms else ()
        self.sums: VectorMemory = DenseMemory(columns=3, ring=1)
        self.pending = Pending(Targets(gap=0 if self.target == "points" else setting.span))
        self.known = Lived.none()
        self.values = np.zeros((0, 0))
        self.watch = Watch()
        self.to_come = np.zeros(self.grid.vectors if self.differences else 0)
        self.fresh = 0
        self.chosen = self._chosen()
        return self._orders()

    def learn(self, epoch: Epoch) -> Orders:
        """Takes in what became of the nodes that were watched."""
        self._take_in(epoch)
        self.watch = self.watch.after(epoch)
        # What is fitted to many lives is not changed by a few.
        if self.fresh * ANEW >= len(self.known):
            self.chosen, self.fresh = self._chosen(), 0
        return self._orders()

    def _orders(self) -> Orders:
        return self.chosen.watching(sample=self.watch.sample, spared=self.watch.spared)

    def _chosen(self) -> Orders:
        sums = Sums(*self.sums.look(np.arange(self.grid.vectors)).T)
        none = np.zeros((self.setting.states, AGES), np.int8)
        if sums.won.sum() < ENOUGH or not len(self.known):
            flat = Orders.flat(self.setting, grid=self.grid)
            return replace(flat, decay=np.full(self.setting.states, 4.0), terms=self.logged)
        won, paid = chances(self.grid, sums)
        won = self.to_come if self.differences else won
        worth = won / paid if self.costs else won
        return Orders(
            self.grid,
            as_levels(np.maximum(worth, worth.max() * LEAST_WORTH) ** self.temper),
            np.full(self.setting.states, self.decay),
            (self.temper * later(self.grid, self.known, won, paid)).astype(np.int8) if self.ages else none,
            terms=self._fit(won, paid),
            noise=self.noise,
        )

    def _take_in(self, epoch: Epoch) -> None:
        self.pending, settled = self.pending.take_in(epoch.log)
        lives, rows = lived(*settled, shared=self.target == "points")
        values = settled.extra.values[rows]
        if not len(lives):
            return
        if self.differences:
            self.to_come = learned(self.to_come, steps(self.grid, settled.lives))
        self.sums.scale(self.forget)
        counted = stays(self.grid, lives)
        seen = np.flatnonzero(counted.visits)
        self.sums.add(seen, np.stack([counted.visits[seen], counted.won[seen], counted.paid[seen]], axis=1))
        self.fresh += len(lives)
        self.known, self.values = self.known.then(lives), stacked(self.values, values)
        if len(self.known) > REMEMBERED:  # older ones are thinned out more often
            some = np.linspace(0, len(self.known) - 1, REMEMBERED).astype(np.int64)
            self.known, self.values = self.known.rows(some), self.values[some]

    def _fit(self, won: Floats, paid: Floats) -> tuple[tuple[Term, ...], ...]:
        if not self.logged:
            return ()
        lives = self.known
        vector = self.grid.number(lives.state, lives.error, lives.start, lives.made, lives.made)
        found = []
        for state, terms in enumerate(self.logged):
            own = np.flatnonzero(lives.state == state)
            numbers = self.values[own, : len(terms)]
            told = fitted(terms, numbers, lives.gain[own], lives.touches[own], won[vector[own]], paid[vector[own]])
            found.append(tuple(replace(term, worth=self.temper * term.worth) for term in told))
        return tuple(found)

    def state(self) -> Mapping[str, Any]:
        """All that it has learned, as arrays and numbers."""
        return {
            "sums": np.frombuffer(self.sums.to_bytes(), np.uint8),
            "pending": self.pending.to_arrays(),
            "watch": self.watch.to_data(),
            "known": self.known.to_arrays(),
            "values": self.values,
            "to_come": self.to_come,
            "fresh": self.fresh,
            "chosen": self.chosen.to_arrays(),
        }

    def learned(self) -> Mapping[str, Any]:
        """Its state for another stream."""
        return {**self.state(), "pending": self.pending.anew().to_arrays(), "watch": self.watch.anew().to_data()}

    def restore(self, state: Mapping[str, Any]) -> Orders:
        """Goes on as the policy would whose state this is."""
        try:
            sums = read_memory(state["sums"].tobytes())
            known, values = Lived.from_arrays(state["known"]), np.asarray(state["values"], np.float64)
            pending, watch = self.pending.with_arrays(state["pending"]), Watch.from_data(state["watch"])
            to_come = np.asarray(state["to_come"], np.float64)
            fresh, chosen = int(state["fresh"]), Orders.from_arrays(self.grid, state["chosen"])
        except (AcepError, KeyError, TypeError, AttributeError, ValueError) as error:
            raise ValueError(f"no state of this policy: {error}") from None
        fits = to_come.shape == self.to_come.shape and np.isfinite(to_come).all()
        if not (fits and values.ndim == 2 and len(values) == len(known) and sums.columns == 3 and fresh >= 0):
            raise ValueError("no state of this policy")
        if len(known) and not (known.state.min() >= 0 and known.state.max() < self.setting.states):
            raise ValueError("a state of another query")
        self.sums, self.pending, self.watch = sums, pending, watch
        self.known, self.values = known, values
        self.to_come, self.fresh, self.chosen = to_come, fresh, chosen
        return self._orders()
