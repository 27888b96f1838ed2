"""Register features of partial matches: the numbers computed from registers, and the factors by which each bin of such
a number changes the expected gain and cost, fitted to finished trajectories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from acep.learning.policy_context import PolicyContext
from acep.learning.shedding_table import STEPS, Term, TermKind, finite
from acep.learning.trajectories.match_vectors import Bools, Floats, Ints

__all__ = ["FittedTerm", "candidates", "fit_terms"]

BINS = 8
ROUNDS = 4
DOUBT = 2.5  # prior weight of "no difference": in successes, or in mean costs of a trajectory
MIN_TRAJECTORIES = 50  # trajectories of a state that it takes to fit
MOST_TERMS = 12
WITHIN_SUCCESS = (0.1, 0.25, 0.5, 0.75, 0.9)


def candidates(context: PolicyContext) -> tuple[tuple[Term, ...], ...]:
    """Return by state the terms to log: each number, the ratio or difference of any two of one column, text hashes, and
    the partition."""
    return tuple(_candidates_of_state(context, state) for state in range(context.states))


def _candidates_of_state(context: PolicyContext, state: int) -> tuple[Term, ...]:
    if state == 0:
        return ()
    terms = [Term(TermKind.PARTITION)] if context.keyed else []
    numbers = [r for r in context.registers[state] if r.kind != "text"]
    terms += [Term(TermKind.TEXT, r.slot) for r in context.registers[state] if r.kind == "text"]
    terms += [Term(TermKind.HELD, r.slot, floats=r.kind == "float") for r in numbers]
    for i, register in enumerate(numbers):
        for other in numbers[:i]:
            if register.column and register.column == other.column and register.kind == other.kind:
                kind = TermKind.RATIO if register.kind == "float" else TermKind.DIFFERENCE
                terms.append(Term(kind, register.slot, other.slot, floats=register.kind == "float"))
    return tuple(terms[:MOST_TERMS])


@dataclass(frozen=True)
class FittedTerm:
    """A term, with the binary logarithms of its factors on gain and cost by bin (empty: not fitted yet)."""

    term: Term
    gain: Floats = field(default_factory=lambda: np.zeros(0))
    cost: Floats = field(default_factory=lambda: np.zeros(0))

    def weaken(self, part: float) -> FittedTerm:
        """Return the term with its factors scaled to a part (in logarithms)."""
        return replace(self, gain=part * self.gain, cost=part * self.cost)

    def to_term(self, temper: float) -> Term:
        """Return the term for the native core, with factors to the power ``temper``; at 0 it is only logged.

        >>> terms = FittedTerm(Term(TermKind.HELD, bounds=np.array([5.0])), np.array([1.0, 0.0, 0.0]), np.zeros(3))
        >>> terms.to_term(0.5).worth.tolist(), terms.to_term(0.0).worth.tolist()
        ([4.0, 0.0, 0.0], [])
        """
        return replace(self.term, worth=temper * STEPS * (self.gain - self.cost) if temper else np.zeros(0))

    def to_data(self) -> list[Any]:
        """Return plain data."""
        return [*self.term.to_data(), self.gain.astype(np.float32), self.cost.astype(np.float32)]

    @classmethod
    def from_data(cls, data: Sequence[Any]) -> FittedTerm:
        """Read :meth:`to_data`. Raises :class:`ValueError` or :class:`TypeError` for other data."""
        *term_data, gain, cost = data
        term, gain, cost = Term.from_data(*term_data), finite(gain), finite(cost)
        if len(gain) not in (0, term.bins + 1):
            raise ValueError("factors that are none")
        if gain.shape != cost.shape or (np.diff(term.bounds) <= 0).any():
            raise ValueError("factors that are none")
        return cls(term, gain, cost)


def fit_terms(
    terms: Sequence[FittedTerm],
    numbers: Floats,
    gain: Floats,
    cost: Floats,
    expected: Floats,
    paid: Floats,
    weight: Floats,
) -> tuple[FittedTerm, ...]:
    """Return the terms of one state, fitted to more trajectories.

    ``numbers``: float64[n, terms] of n trajectories; ``gain`` and ``cost`` (transition evaluations): their outcomes;
    ``expected`` and ``paid``: the same, as estimated by their match vectors; ``weight``: how many trajectories each
    stands for. The factors of all terms are fitted in turns, starting from the current ones: each step makes the
    estimated sums by bin equal to the observed ones, up to the prior ``DOUBT``.
    """
    n = len(gain)
    succeeded = gain > 0
    if n < MIN_TRAJECTORIES or not succeeded.any():
        return tuple(terms)
    started = [t if len(t.gain) else _begin_term(t.term, numbers[:, k], succeeded) for k, t in enumerate(terms)]
    bins = [t.term.bin(numbers[:, k]) for k, t in enumerate(started)]
    for t, bin_index in zip(started, bins, strict=True):
        expected = expected * np.exp2(t.gain)[bin_index]
        paid = paid * np.exp2(t.cost)[bin_index]
    sizes = [t.term.bins + 1 for t in started]
    gains = _factors(bins, sizes, gain * weight, expected * weight, DOUBT * float(gain[succeeded].mean()))
    costs = _factors(bins, sizes, cost * weight, paid * weight, DOUBT * max(float(cost.mean()), 0.1))
    return tuple(replace(t, gain=t.gain + g, cost=t.cost + c) for t, g, c in zip(started, gains, costs, strict=True))


def _begin_term(term: Term, numbers: Floats, succeeded: Bools) -> FittedTerm:
    term = _set_bounds(term, numbers, succeeded)
    return FittedTerm(term, np.zeros(term.bins + 1), np.zeros(term.bins + 1))


def _set_bounds(term: Term, numbers: Floats, succeeded: Bools) -> Term:
    if term.hashed:
        return term
    is_finite = np.isfinite(numbers)
    if not is_finite.any():
        return replace(term, bounds=np.zeros(0))
    bounds = np.quantile(numbers[is_finite], np.arange(1, BINS) / BINS)
    if np.count_nonzero(is_finite & succeeded) >= BINS:
        bounds = np.append(bounds, np.quantile(numbers[is_finite & succeeded], WITHIN_SUCCESS))
    return replace(term, bounds=np.unique(bounds))


def _factors(
    bins: Sequence[Ints], sizes: Sequence[int], outcomes: Floats, expected: Floats, doubt: float
) -> list[Floats]:
    """Return log2 factors by bin of each term, which make the sums of ``expected`` equal to those of ``outcomes``."""
    expected = expected * (outcomes.sum() / max(float(expected.sum()), 1e-300))
    factors = [np.zeros(size) for size in sizes]
    for _ in range(ROUNDS):
        for k, (bin_index, size) in enumerate(zip(bins, sizes, strict=True)):
            observed = np.bincount(bin_index, outcomes, size) + doubt
            step = np.log2(observed / (np.bincount(bin_index, expected, size) + doubt))
            factors[k] += step
            expected = expected * np.exp2(step)[bin_index]
    return factors
