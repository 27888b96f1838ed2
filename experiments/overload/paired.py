"""Compare a policy with the best of the others, with intervals: a paired bootstrap."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["Gain", "area", "compare_with_best"]

DRAWS = 5_000
Figures = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Gain:
    """``mean`` of the policy over workloads, and of the ``best`` of the others, whose mean is ``other``; the 90 % and
    95 % intervals of the difference; ``worst``: the least difference on one workload (``where``) to the best there."""

    mean: float
    best: str
    other: float
    interval90: tuple[float, float]
    interval95: tuple[float, float]
    worst: float
    where: str


def area(curve: Sequence[tuple[float, float]]) -> float:
    """Return the mean height of a curve, linear between its points, if x is drawn logarithmically, from its first x to
    its last.

    >>> area([(0.01, 0.0), (0.1, 1.0), (1.0, 1.0)])
    0.75
    """
    x, y = np.array(sorted(curve)).T
    log_x = np.log(x)
    return float(((y[1:] + y[:-1]) / 2 * np.diff(log_x)).sum() / (log_x[-1] - log_x[0]))


def compare_with_best(figures: Mapping[str, Mapping[str, Sequence[float]]], policy: str, seed: int = 0) -> Gain:
    """Return the gain of a policy. ``figures`` are those of each policy, by workload, one for each replicate (as many
    for all policies).

    Workloads are drawn with replacement and of each its replicates, the same for all policies; in each draw the policy
    is compared with whichever other has the greatest mean in that draw, so that the choice is paid for too.

    >>> comparison = compare_with_best({"a": {"x": [0.9], "y": [0.8]}, "b": {"x": [0.5], "y": [0.6]}}, "a")
    >>> comparison.best, round(comparison.worst, 2), comparison.where, comparison.interval95[0] > 0
    ('b', 0.2, 'y', True)
    """
    rivals = [name for name in figures if name != policy]
    workloads = list(figures[policy])
    means = {name: np.array([np.mean(figures[name][w]) for w in workloads]) for name in figures}
    best = max(rivals, key=lambda name: float(means[name].mean()))
    apart = means[policy] - np.max([means[name] for name in rivals], axis=0)
    random = np.random.default_rng(seed)
    replicates = {name: [np.asarray(figures[name][w], np.float64) for w in workloads] for name in figures}
    sums = {name: np.zeros(DRAWS) for name in figures}
    picks = random.integers(0, len(workloads), (DRAWS, len(workloads)))
    for number in range(len(workloads)):
        size = len(replicates[policy][number])
        for column in range(len(workloads)):
            draws = np.flatnonzero(picks[:, column] == number)
            rows = random.integers(0, size, (len(draws), size))
            for name in figures:
                sums[name][draws] += replicates[name][number][rows].mean(axis=1)
    drawn = (sums[policy] - np.max([sums[name] for name in rivals], axis=0)) / len(workloads)
    return Gain(
        mean=float(means[policy].mean()),
        best=best,
        other=float(means[best].mean()),
        interval90=_central_interval(drawn, 0.9),
        interval95=_central_interval(drawn, 0.95),
        worst=float(apart.min()),
        where=workloads[int(apart.argmin())],
    )


def _central_interval(drawn: Figures, share: float) -> tuple[float, float]:
    low, high = np.quantile(drawn, [(1 - share) / 2, (1 + share) / 2])
    return float(low), float(high)
