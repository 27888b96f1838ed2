"""The policy ``history``: learns utilities of partial matches from outcomes of similar ones
(docs/explanation/best_effort.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from acep.errors import AcepError
from acep.learning.estimation.drift import Proof
from acep.learning.estimation.register_terms import FittedTerm, candidates, fit_terms
from acep.learning.estimation.temporal_differences import steps, update_values
from acep.learning.estimation.utility import (
    CompleteTrajectories,
    Sums,
    age_buckets,
    chances,
    complete_trajectories,
    stays,
    thin_out,
)
from acep.learning.policies.exploration import Pending, Watch
from acep.learning.policy import Epoch
from acep.learning.policy_context import PolicyContext
from acep.learning.shedding_table import AGES, HIGHEST, SheddingTable, Term, ThresholdTrial, as_utility_buckets
from acep.learning.trajectories.log import stack_rows
from acep.learning.trajectories.match_vectors import Floats, Grid
from acep.learning.trajectories.targets import Targets
from acep.sketches.dense import DenseMemory
from acep.sketches.memories import read_memory
from acep.sketches.protocol import VectorMemory
from acep.storage.plain_data import numbers_like, restore_numbers

__all__ = ["HistoryPolicy", "ScoringConfiguration"]

REMEMBERED = 16_384  # trajectories that terms are fitted to
AHEAD = 1 << 20  # the same when learning ahead
VISITS = 1 << 18  # most visits of match vectors that all learned ahead counts for
ANEW = 4  # fit again once a quarter of the visits is new
LEAST_TRUST = 1 / 8  # in what was learned, after drift
DOUBTED = 4096.0  # visits that it counts for then
ENOUGH = 20.0  # least number of successes to learn from
LEAST_WORTH = 1e-9
WINDOWS, WAITS = 8, 6  # bins of match vectors
Terms = tuple[tuple[FittedTerm, ...], ...]  # by state
NUMBERS = ("visits", "best", "trusted", "fresh")  # saved in the state
FARTHEST = 3.0  # octaves that the best utility may move until buckets are rescaled


@dataclass(frozen=True)
class ScoringConfiguration:
    """A scoring configuration, which turns statistics into utility buckets. ``temper``: the power applied to utility
    per cost; a small one keeps something in all partitions and states, since the partial matches of one state find much
    the same. ``decay``: buckets by which each further partial match of a partition and state has less. ``noise``:
    random buckets. ``hashed``: whether texts and keys are distinguished; they may change over time. ``clears``: whether
    a match point ends all earlier partial matches of its partition, as those would end in its bundle.
    """

    temper: float = 0.5
    decay: float = 8.0
    noise: int = 4
    hashed: bool = True
    clears: bool = False

    def __post_init__(self) -> None:
        if not (0 <= self.temper <= 1 and 0 <= self.decay < np.inf and 0 <= self.noise <= HIGHEST):
            raise ValueError("a way to choose")

    @property
    def rule(self) -> bool:
        """Return whether it is a fixed rule, which uses no statistics."""
        return self.temper == 0

    def trust(self, term: Term) -> float:
        """Return the power applied to a term."""
        return self.temper if self.hashed or not term.hashed else 0.0


TEMPERS_AND_DECAYS = ((0.25, 8.0), (0.5, 4.0), (0.5, 8.0), (0.5, 16.0), (1.0, 4.0))  # temper and decay
CONFIGURATIONS = (
    *(ScoringConfiguration(t, d, hashed=h) for h in (True, False) for t, d in TEMPERS_AND_DECAYS),
    ScoringConfiguration(clears=True),
    ScoringConfiguration(0.0, 4.0, noise=0, hashed=False, clears=True),
    ScoringConfiguration(0.0, 4.0, noise=0, hashed=False),
)
"""The configurations that learning ahead tries; the last two are the rules clear and newest-per-state."""


@dataclass
class HistoryPolicy:
    """The policy ``history``: keeps the partial matches that lead to the most targets per cost by its statistics.

    ``target``: ``"points"`` or ``"bundles"``. ``configuration``: the first scoring configuration. ``tries``: whether
    learning ahead chooses among ``CONFIGURATIONS``. ``terms``, ``ages``, ``costs``: whether registers, the number of
    later partial matches, and costs are taken into account. ``forget``: the least factor for old counts in an epoch;
    less is forgotten if less is new. ``differences``: whether the value of a vector is learned by temporal differences
    (acep.learning.estimation.temporal_differences) instead of counted.
    """

    target: str = "points"
    configuration: ScoringConfiguration = ScoringConfiguration()
    tries: bool = True
    terms: bool = True
    ages: bool = False
    costs: bool = True
    forget: float = 0.9
    differences: bool = False
    name: str = "history"
    context: PolicyContext = field(init=False)

    def begin(self, context: PolicyContext, seed: int) -> SheddingTable:  # noqa: ARG002 - chance is the core's
        """Begin without statistics: keep as many of the newest starts of each partition and state as possible."""
        self.context = context
        self.grid: Grid = context.grid(windows=WINDOWS, waits=WAITS)
        logged = candidates(context) if self.terms else ()
        self.fitted = tuple(tuple(map(FittedTerm, state)) for state in logged)
        self.sums: VectorMemory = DenseMemory(columns=3, ring=0)
        self.pending = Pending(Targets(gap=0 if self.target == "points" else context.span))
        self.trajectories = CompleteTrajectories.empty()
        self.values = np.zeros((0, 0))
        self.watch, self.proof = Watch(), Proof()
        self.to_come = np.zeros(self.grid.vectors if self.differences else 0)
        self.fresh, self.best, self.visits, self.trusted = 0.0, 0.0, 0.0, 1.0
        self.trials: tuple[ThresholdTrial, ...] = ()
        self.table = self._make_table(self.configuration, self.fitted)
        return self._shedding_table()

    def learn(self, epoch: Epoch) -> SheddingTable:
        """Learn from the log of an epoch."""
        ahead = epoch.allowance is None
        doubted = self.proof.doubt
        self.proof, changed = self.proof.add_epoch(epoch.log.kept, drifted=epoch.drifted)
        self.trusted = min(1.0, 2 * self.trusted)
        if changed:
            self._begin_anew()
        self._add_epoch(epoch, AHEAD if ahead else REMEMBERED)
        if changed or epoch.drifted:
            self.watch = self.watch.explore_more()
        elif doubted and not self.proof.doubt:
            self.watch = self.watch.explore_less()
        self.watch = self.watch.add_epoch(epoch)
        # A fit to many trajectories is not repeated for a few. Without a bound nothing depends on it.
        if not ahead and self.fresh * ANEW >= self.visits:
            self.table, self.fresh = self._make_table(self.configuration, self._fit_terms()), 0.0
        return self._shedding_table()

    def _begin_anew(self) -> None:
        """Begin again after drift: give old statistics little trust, which grows again with each epoch."""
        self.trusted = LEAST_TRUST
        self._scale(min(1.0, DOUBTED / max(self.visits, 1.0)))
        self.trajectories, self.values, self.fresh = CompleteTrajectories.empty(), np.zeros((0, 0)), self.visits
        self.fitted = tuple(tuple(term.weaken(LEAST_TRUST) for term in state) for state in self.fitted)

    def tables_to_try(self) -> list[SheddingTable]:
        """Return the shedding table of each scoring configuration that is to be tried."""
        fitted_terms = self._fit_terms()
        return [
            self._make_table(configuration, fitted_terms)
            for configuration in (CONFIGURATIONS if self.tries else [self.configuration])
        ]

    def rule_numbers(self) -> list[int]:
        """Return the numbers of the configurations that are fixed rules."""
        return (
            [number for number, configuration in enumerate(CONFIGURATIONS) if configuration.rule] if self.tries else []
        )

    def choose(self, number: int, trials: Sequence[ThresholdTrial]) -> None:
        """Use the scoring configuration ``number`` from now on, which reached ``trials`` when it was tried."""
        self.configuration = CONFIGURATIONS[number] if self.tries else self.configuration
        # A rule uses nothing that was learned, so drift need not be detected.
        rule = self.configuration.rule
        self.trials = tuple((rate, threshold, 0.0 if rule else points) for rate, threshold, points in trials)

    def _shedding_table(self) -> SheddingTable:
        if self.configuration.rule:  # a rule learns nothing, so it needs no samples
            return self.table.watching(sample=0.0, shadow=0.0)
        return self.table.watching(sample=self.watch.sample, shadow=self.watch.shadow)

    def _make_table(self, configuration: ScoringConfiguration, fitted_terms: Terms) -> SheddingTable:
        sums = self._sums()
        none = np.zeros((self.context.states, AGES), np.int8)
        if configuration.rule or sums.won.sum() < ENOUGH:
            flat = SheddingTable.flat(self.context, grid=self.grid)
            terms = tuple(tuple(term.to_term(0.0) for term in state) for state in fitted_terms)
            flat = replace(flat, decay=np.full(self.context.states, 4.0), terms=terms)
            return replace(flat, clears=configuration.clears, prices=self.trials) if configuration.rule else flat
        won, paid = self._to_come(sums)
        utility = won / paid if self.costs else won
        temper = self.trusted * configuration.temper
        top = float(utility.max())
        if not self.best or abs(np.log2(top / self.best)) > FARTHEST:
            self.best = top
        aged = age_buckets(self.grid, self.trajectories, won, paid) if self.ages else none
        return SheddingTable(
            self.grid,
            as_utility_buckets(np.maximum(utility, top * LEAST_WORTH) ** temper, best=self.best**temper),
            np.full(self.context.states, configuration.decay),
            (temper * aged).astype(np.int8),
            terms=tuple(
                tuple(term.to_term(self.trusted * configuration.trust(term.term)) for term in state)
                for state in fitted_terms
            ),
            noise=configuration.noise,
            clears=configuration.clears,
            prices=self.trials,
        )

    def _add_epoch(self, epoch: Epoch, max_rows: int) -> None:
        self.pending, finished = self.pending.add_log(epoch.log)
        if not len(finished.trajectories.made):
            return
        trajectories, rows = complete_trajectories(*finished, shared=self.target == "points")
        values = finished.extra.values[rows]
        if not len(trajectories):
            return
        if self.differences:
            self.to_come = update_values(self.to_come, steps(self.grid, finished.trajectories))
        new_sums = stays(self.grid, trajectories)
        visited = np.flatnonzero(new_sums.visits)
        if epoch.allowance is not None:  # forget no more than is new
            share = float(new_sums.visits.sum()) / max(self.visits, 1.0)
            self._scale(max(self.forget, 1 - share))
        self.visits += float(new_sums.visits.sum())
        self.fresh += float(new_sums.visits.sum())
        columns = [column[visited] for column in (new_sums.visits, new_sums.won, new_sums.paid)]
        self.sums.add(visited, np.stack(columns, axis=1))
        trajectories, values = self.trajectories.append(trajectories), stack_rows(self.values, values)
        self.trajectories, self.values = thin_out(trajectories, values, max_rows)

    def _scale(self, factor: float) -> None:
        self.sums.scale(factor)
        self.visits *= factor

    def visits_and_targets(self) -> tuple[Floats, Floats]:
        """Return how often partial matches were seen, by state and bin of the remaining window, and how many targets
        they led to, float64[states, windows] each. Errors and times since the last event are summed up."""
        vectors = np.arange(self.grid.vectors)
        parts, sums = self.grid.parts(vectors), self._sums()
        cells = []
        for column in (sums.visits, sums.won):
            cell = np.zeros((self.grid.states, self.grid.windows))
            np.add.at(cell, (parts.state, parts.remaining), column)
            cells.append(cell)
        return cells[0], cells[1]

    def _sums(self) -> Sums:
        return Sums(*self.sums.look(np.arange(self.grid.vectors)).T)

    def _to_come(self, sums: Sums) -> tuple[Floats, Floats]:
        won, paid = chances(self.grid, sums)
        return self.to_come if self.differences else won, paid

    def _fit_terms(self) -> Terms:
        """Return the terms, fitted to the remembered trajectories."""
        trajectories, sums = self.trajectories, self._sums()
        if not len(trajectories) or sums.won.sum() < ENOUGH:
            return self.fitted
        won, paid = self._to_come(sums)
        vector = self.grid.number(
            trajectories.state, trajectories.error, trajectories.start, trajectories.made_at, trajectories.made_at
        )
        terms = []
        for state, state_terms in enumerate(self.fitted):
            rows = np.flatnonzero(trajectories.state == state)
            row_vectors = vector[rows]
            columns = (
                trajectories.gain[rows],
                trajectories.touches[rows],
                won[row_vectors],
                paid[row_vectors],
                trajectories.weight[rows],
            )
            terms.append(fit_terms(state_terms, self.values[rows, : len(state_terms)], *columns))
        return tuple(terms)

    def state(self) -> Mapping[str, Any]:
        """Return all that was learned, as arrays and numbers."""
        return {
            "sums": np.frombuffer(self.sums.to_bytes(), np.uint8),
            "visits": self.visits,
            "pending": self.pending.to_arrays(),
            "watch": self.watch.to_data(),
            "proof": self.proof.to_data(),
            "known": self.trajectories.to_arrays(),
            "values": self.values,
            "to_come": self.to_come,
            "told": [[term.to_data() for term in state] for state in self.fitted],
            "way": asdict(self.configuration),
            "best": self.best,
            "trusted": self.trusted,
            "fresh": self.fresh,
            "chosen": self.table.to_arrays(),
        }

    def learned(self) -> Mapping[str, Any]:
        """Return the state for another stream: the fitted terms and sums, without the trajectories."""
        self.fitted = self._fit_terms()
        self.trajectories, self.values, self.fresh = CompleteTrajectories.empty(), np.zeros((0, 0)), 0.0
        self.trusted = 1.0
        self._scale(min(1.0, VISITS / max(self.visits, 1.0)))
        self.table = self._make_table(self.configuration, self.fitted)
        anew = {"pending": self.pending.for_new_stream().to_arrays(), "watch": self.watch.for_new_stream().to_data()}
        return {**self.state(), **anew, "proof": Proof().to_data()}

    def restore(self, state: Mapping[str, Any]) -> SheddingTable:
        """Restore :meth:`state`. Raises :class:`ValueError` for other data."""
        try:
            sums = read_memory(state["sums"].tobytes())
            trajectories, values = (
                CompleteTrajectories.from_arrays(state["known"]),
                np.asarray(state["values"], np.float64),
            )
            pending, watch = self.pending.with_arrays(state["pending"]), Watch.from_data(state["watch"])
            to_come, proof = np.asarray(state["to_come"], np.float64), Proof.from_data(state["proof"])
            fitted_terms = tuple(tuple(map(FittedTerm.from_data, terms)) for terms in state["told"])
            configuration = restore_numbers(ScoringConfiguration(), state["way"])
            numbers, table = numbers_like(self, NUMBERS, state), SheddingTable.from_arrays(self.grid, state["chosen"])
        except (AcepError, KeyError, TypeError, AttributeError, ValueError) as error:
            raise ValueError(f"no state of this policy: {error}") from None
        fits = to_come.shape == self.to_come.shape and bool(np.isfinite(to_come).all())
        fits &= values.ndim == 2 and len(values) == len(trajectories) and sums.columns == 3
        if not (fits and all(0 <= number < np.inf for number in numbers.values()) and 0 < numbers["trusted"] <= 1):
            raise ValueError("no state of this policy")
        if [[t.term.kind for t in terms] for terms in fitted_terms] != [
            [t.term.kind for t in terms] for terms in self.fitted
        ]:
            raise ValueError("terms of another query")
        if len(trajectories) and not (trajectories.state.min() >= 0 and trajectories.state.max() < self.context.states):
            raise ValueError("a state of another query")
        self.sums, self.pending, self.watch, self.proof = sums, pending, watch, proof
        self.trajectories, self.values, self.fitted, self.to_come = trajectories, values, fitted_terms, to_come
        self.configuration, self.table, self.trials = configuration, table, table.prices
        vars(self).update(numbers)
        return self._shedding_table()
