"""Measure the utility of a set of partial matches, and choose greedily which to keep under a budget.

This is the offline algorithm with the proved ratio. No module of the product imports it yet.

Two partial matches of one partition may end in the same bundle, so the second adds less utility than the first. Let
``p[v, b]`` be the probability that a partial match of vector ``v`` reaches a bundle like ``b``, and ``share[b]`` the
share of future bundles like ``b``. The utility of a set S in one partition is the expected share of distinct bundles,

    f(S) = sum over b of share[b] * (1 - product over x in S of (1 - p[v(x), b])),

and the utilities of partitions add up. f is monotone and submodular; docs/explanation/choice.md proves the bound of
greedy. Partial matches of one vector are interchangeable, so S is given by *counts*: how many of each vector.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Quotas", "gains", "missing", "quotas", "value"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Quotas:
    """The number of partial matches to keep, with their utility and cost."""

    keep: Ints
    """int64[partitions, vectors]: how many of the live partial matches to keep."""
    value: float
    cost: float
    threshold: float
    """Utility threshold: gain per cost of the last one kept. 0 if the budget refused none that gains."""

    def probabilities(self, live: Ints) -> Floats:
        """Return the quotas as keep probabilities, float64[partitions, vectors]; 1 where nothing is live."""
        return np.divide(self.keep, live, out=np.ones(self.keep.shape), where=live > 0)


def missing(p: Floats, counts: Ints) -> Floats:
    """Return the probability that a bundle is not found, float64[..., B], for counts int64[..., V] and p float64[V, B].

    >>> missing(np.array([[0.5, 0.0], [1.0, 0.5]]), np.array([2, 1])).tolist()
    [0.0, 0.5]
    """
    has_any = np.asarray(counts)[..., None] > 0
    # A count of 0 gives the factor 1 even for p = 1: 0 ** 0 is 1.
    powers = np.where(has_any, (1 - p) ** np.asarray(counts, dtype=np.float64)[..., None], 1.0)
    missed: Floats = np.prod(powers, axis=-2)
    return missed


def value(p: Floats, share: Floats, counts: Ints) -> float:
    """Return the utility f: the sum over partitions for counts int64[P, V], or of one partition for int64[V].

    >>> value(np.array([[0.5, 0.0], [1.0, 0.5]]), np.array([0.25, 0.75]), np.array([2, 1]))
    0.625
    """
    return float(np.sum(share * (1 - missing(p, counts))))


def gains(p: Floats, share: Floats, missed: Floats) -> Floats:
    """Return what one more of each vector adds, float64[..., V]; ``missed`` (float64[..., B]) is :func:`missing`.

    >>> p, share = np.array([[0.5, 0.0], [1.0, 0.5]]), np.array([0.25, 0.75])
    >>> gains(p, share, missing(p, np.array([1, 0]))).tolist()
    [0.0625, 0.5]
    """
    added: Floats = (share * missed) @ p.T
    return added


def quotas(p: Floats, share: Floats, costs: Floats, live: Ints, budget: float) -> Quotas:
    """Choose greedily by gain per cost how many ``live`` partial matches (int64[P, V]) to keep within ``budget``.

    ``costs`` (float64[V]) is the cost per vector, such as the expected number of further transition evaluations. The
    gains of a partition are computed again only after its best offer was taken or no longer fits, as nothing else
    changes them. If a single one has more utility than the greedy choice, only that one is kept. The result has at
    least (1 - 1/e) / 2 of the best utility, and 1 - exp(c - 1) of it if none costs more than ``c`` of the budget.
    Partial matches without gain are not kept.

    ``ValueError`` for wrong shapes, probabilities not in 0 to 1, negative shares or budget, costs not above 0.

    >>> p = np.array([[0.5, 0.5, 0.0], [0.0, 0.0, 0.4]])
    >>> quotas(p, np.array([0.4, 0.3, 0.3]), np.ones(2), np.array([[3, 3]]), budget=3).keep.tolist()
    [[2, 1]]
    """
    p, share, costs, live = _check_arguments(p, share, costs, live)
    if not budget >= 0:
        raise ValueError(f"a budget is not negative, as {budget}")
    keep = np.zeros_like(live)
    missing_share = np.tile(share, (len(live), 1))  # share[b] times the probability that b is missing, by partition
    alone = p @ share
    spent = threshold = 0.0
    refused = False

    def offer(part: int, rows: Ints) -> tuple[float, int, int] | None:
        """Return the best fit of a partition: minus its gain per cost, the partition and the vector."""
        nonlocal refused
        density = np.where(keep[part, rows] < live[part, rows], p[rows] @ missing_share[part] / costs[rows], 0.0)
        fits = spent + costs[rows] <= budget
        refused |= bool(np.any(density[~fits] > 0))
        density[~fits] = 0.0
        best = int(np.argmax(density))
        return (-float(density[best]), part, int(rows[best])) if density[best] > 0 else None

    members = [np.flatnonzero(row) for row in (live > 0) & (alone > 0)]
    # Largest first; ties by partition and vector, so that the result is deterministic.
    heap = [entry for part, rows in enumerate(members) if len(rows) and (entry := offer(part, rows))]
    heapq.heapify(heap)
    while heap:
        density, part, v = heap[0]
        if spent + costs[v] <= budget:
            keep[part, v] += 1
            spent += float(costs[v])
            threshold = -density
            missing_share[part] *= 1 - p[v]
        renewed = offer(part, members[part])
        if renewed:
            heapq.heapreplace(heap, renewed)
        else:
            heapq.heappop(heap)
    # Subtracted term by term, so never negative, and 0 where nothing is kept.
    total = float((share - missing_share).sum())
    single = np.where((live > 0) & (costs <= budget), alone, 0.0)
    if single.max(initial=0.0) > total:
        part, v = (int(index) for index in np.unravel_index(np.argmax(single), single.shape))
        keep[:] = 0
        keep[part, v] = 1
        spent, total, threshold = float(costs[v]), float(alone[v]), float(alone[v] / costs[v])
    return Quotas(keep, total, spent, threshold if refused else 0.0)


def _check_arguments(p: Floats, share: Floats, costs: Floats, live: Ints) -> tuple[Floats, Floats, Floats, Ints]:
    p, share, costs = (np.asarray(array, dtype=np.float64) for array in (p, share, costs))
    live = np.asarray(live, dtype=np.int64)
    if p.ndim != 2 or share.shape != p.shape[1:] or costs.shape != p.shape[:1] or live.shape[1:] != costs.shape:
        raise ValueError(f"shapes do not fit: p {p.shape}, share {share.shape}, costs {costs.shape}, live {live.shape}")
    if not np.all((p >= 0) & (p <= 1)):
        raise ValueError("a probability is not between 0 and 1")
    if not (
        np.all((share >= 0) & np.isfinite(share)) and np.all((costs > 0) & np.isfinite(costs)) and np.all(live >= 0)
    ):
        raise ValueError("shares and counts are not negative, costs are above 0, and none is infinite")
    return p, share, costs, live
