"""Estimate the recall of a run under shedding, from a sample of units that are also matched without shedding.

**Sample.** A *unit* is eight windows of one partition. A hash of its key, its number and the seed selects it with
probability ``p``. In selected units the native core also follows all partial matches, without shedding (shadow sample).
So for each match point in the last seven windows of a unit it is certain whether the shedding run found it: all runs
that end there began in the unit. This is Poisson sampling of clusters, without assumptions on the points within them.

**Ratio.** Let ``x`` be the points of a unit and ``y`` those found, both divided by ``p``. The recall is
``r = sum(y) / sum(x)``, with variance about ``V = n / (n - 1) * sum((1 - p) * (y - r * x)**2) / sum(x)**2``
(linearised; Särndal, Swensson, Wretman, Model Assisted Survey Sampling, 1992, sections 3.5 and 5.6).

**Few units.** ``V`` is unreliable for few units, and 0 where all or nothing was found. So it is computed with one unit
more, as large as the others (``sum(x**2) / sum(x)``): half a unit fully found and half a unit fully missed. The
variance becomes an effective sample size ``r * (1 - r) / V``. The interval is Wilson's (1927), with the quantile of t
for ``m = sum(x)**2 / sum(x**2)`` degrees of freedom instead of the normal quantile (after Korn and Graubard, Survey
Methodology 24, 1998). If all was found, the interval is no narrower than that of ``m + 1`` draws.

**Bundles.** A bundle is known to begin in a unit if its first point lies two windows or more after the unit's start. It
is found once one of its points is found, and missed if none was found when a window has passed since its last point. A
bundle not decided when the unit ends is left out. One decided after ``e`` of the ``R`` ticks in which it might have
begun counts ``R / (R - e)`` times (inverse probability of censoring). After two thirds of ``R`` it counts as half
found, and the interval allows for both outcomes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, astuple, dataclass, field, replace
from typing import Any

import numpy as np

from acep.learning.trajectories.match_vectors import Bools, Floats, Ints
from acep.storage.plain_data import restore_numbers

__all__ = ["ALL", "COLUMNS", "Estimate", "Rows", "SampledUnits", "Tally", "distinct"]

UNIT = 8  # windows
ALL = 2.0**32  # shares are integers in units of 1 / ALL
COLUMNS = ("partition", "begin", "when", "ts", "kind", "blind", "share")
ENDED, LOST, EXACT, FOUND_SHEDDING = -2, -1, 0, 1  # kinds of rows; the last two: who found the match point
NEVER = np.iinfo(np.int64).min
LEVEL_90 = 1.6448536269514722  # quantile of the normal distribution: 5 % lie above
MOST_ROWS = 1 << 15  # of units that have not ended; with more rows they are treated as ended


@dataclass(frozen=True)
class Estimate:
    """An estimated recall with its 90 % confidence interval."""

    recall: float
    low: float
    high: float


@dataclass(frozen=True)
class Tally:
    """Sums over the ``units`` that are not empty: all points or bundles (``x``) and those found (``y``), divided by the
    unit's probability p; ``half``: the uncertainty of ``y``. ``xx``, ``xy`` and ``yy`` sum products of the unit
    sums, times 1 - p; ``whole`` sums squares of x without that factor. Tallies of several streams or buckets add up."""

    units: float = 0.0
    x: float = 0.0
    y: float = 0.0
    half: float = 0.0
    xx: float = 0.0
    xy: float = 0.0
    yy: float = 0.0
    whole: float = 0.0  # the squares of x

    @classmethod
    def from_units(cls, x: Floats, y: Floats, half: Floats, chance: Floats) -> Tally:
        """Build the tally from sums by unit, each sampled with probability ``chance``.

        >>> Tally.from_units(np.array([2.0, 4.0]), np.array([1.0, 4.0]), np.zeros(2), np.full(2, 0.5)).x
        12.0
        """
        nonempty = x > 0
        x, y, half, chance = (np.asarray(column)[nonempty] for column in (x, y, half, chance))
        x, y, half, unsampled = x / chance, y / chance, half / chance, 1 - chance
        sums = (x, y, half, unsampled * x * x, unsampled * x * y, unsampled * y * y, x * x)
        return cls(float(len(x)), *(float(total.sum()) for total in sums))

    def __add__(self, other: Tally) -> Tally:
        return Tally(*(left + right for left, right in zip(astuple(self), astuple(other), strict=True)))

    def add_skipped(self, share: float) -> Tally:
        """Add what a skipped ``share`` (below 1) of the events may have held, of which nothing was found.

        >>> Tally.from_units(np.array([4.0]), np.array([4.0]), np.zeros(1), np.ones(1)).add_skipped(0.5).x
        8.0
        """
        skipped = self.x * share / (1 - share)
        return replace(self, x=self.x + skipped, half=self.half + skipped / 2)

    def to_arrays(self) -> dict[str, float]:
        """Return plain data: numbers that may be added up."""
        return asdict(self)

    @classmethod
    def from_arrays(cls, data: Mapping[str, Any]) -> Tally:
        """Read the sums. Raises :class:`ValueError`, :class:`KeyError` or :class:`TypeError` for other data."""
        tally = restore_numbers(cls(), data)
        if not all(np.isfinite(total) and total >= 0 for total in astuple(tally)):
            raise ValueError("sums of a recall")
        return tally

    def estimate(self) -> Estimate | None:
        """Return the estimated recall, or ``None`` if nothing was seen.

        >>> Tally().estimate()
        >>> x = np.full(400, 10.0)
        >>> estimate = Tally.from_units(x, np.tile([4.0, 6.0], 200), 0 * x, np.full(400, 0.01)).estimate()
        >>> round(estimate.recall, 3), round(estimate.low, 2), round(estimate.high, 2)
        (0.5, 0.49, 0.51)
        """
        if self.x <= 0:
            return None
        likely, unsure = min(self.y / self.x, 1.0), min(self.half / self.x, 1.0)
        size = self.whole / self.x
        m = self.x / size
        shrunk = (likely * m + 0.5) / (m + 1)
        squares = max(self.yy - 2 * shrunk * self.xy + shrunk**2 * self.xx, 0.0)
        squares *= self.units / max(self.units - 1, 1.0)
        squares += size**2 * (shrunk**2 + (1 - shrunk) ** 2) / 2
        variance = squares / (self.x + size) ** 2
        low, high = _wilson(likely, shrunk * (1 - shrunk) / variance, _quantile(max(m, 1.0)))
        # Rounding must not put the recall outside its interval.
        return Estimate(likely, max(0.0, min(low - unsure, likely)), min(1.0, max(high + unsure, likely)))


def _quantile(degrees: float) -> float:
    """Return the quantile of Student's t above which 5 % lie (Abramowitz and Stegun, 26.7.5).

    >>> round(_quantile(10.0), 3)
    1.812
    """
    z, n = LEVEL_90, degrees
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + (z**3 + z) / (4 * n) + second / n**2 + third / n**3


def _wilson(share: float, tries: float, z: float) -> tuple[float, float]:
    """Return Wilson's interval for a share among this many tries."""
    middle = (share + z * z / (2 * tries)) / (1 + z * z / tries)
    half = z / (1 + z * z / tries) * np.sqrt(share * (1 - share) / tries + z * z / (4 * tries * tries))
    return max(0.0, float(middle - half)), min(1.0, float(middle + half))


def distinct(rows: Ints) -> tuple[Ints, Bools]:
    """Return the distinct match points in rows of :data:`COLUMNS` (n, 7), by partition, unit and time: a row for each,
    with its first ``when`` and its last ``blind``, and whether the shedding run found it.

    >>> rows = np.array([[0, 0, 9, 9, 0, 1, 5], [0, 0, 9, 9, 1, 1, 5], [0, 0, 3, 3, 0, 1, 5]])
    >>> points, is_found = distinct(rows)
    >>> points[:, 2].tolist(), is_found.tolist()
    ([3, 9], [False, True])
    """
    rows = rows[rows[:, 4] >= EXACT]
    if not len(rows):
        return rows, np.zeros(0, np.bool_)
    rows = rows[np.lexsort((rows[:, 2], rows[:, 3], rows[:, 1], rows[:, 0]))]
    new = np.append(True, (np.diff(rows[:, [0, 1, 3]], axis=0) != 0).any(axis=1))
    starts = np.flatnonzero(new)
    points = rows[starts].copy()
    points[:, 5] = np.maximum.reduceat(rows[:, 5], starts)
    return points, np.maximum.reduceat(rows[:, 4], starts) == FOUND_SHEDDING


class Rows:
    """A growing array of numbers. Views returned earlier stay valid without a copy.

    >>> rows = Rows()
    >>> first = rows.append(np.array([1, 2]))
    >>> rows.append(np.array([3])).tolist(), first.tolist(), rows.size
    ([1, 2, 3], [1, 2], 3)
    """

    def __init__(self) -> None:
        self.size = 0
        self._numbers: Ints = np.zeros(0, np.int64)

    def append(self, new: Ints) -> Ints:
        """Append the ``new`` numbers, and return all of them."""
        end = self.size + len(new)
        if end > len(self._numbers):
            self._numbers = np.concatenate([self._numbers[: self.size], np.zeros(2 * end - self.size, np.int64)])
        self._numbers[self.size : end] = new
        self.size = end
        return self._numbers[:end]


@dataclass(frozen=True)
class SampledUnits:
    """The sampled units of one query with the window ``span`` (``counted``: in positions; ``None``: no window): the
    tallies of units that have ended, and the ``rows`` from the native core of those that have not."""

    span: int | None
    counted: bool
    points: Tally = field(default_factory=Tally)
    bundles: Tally = field(default_factory=Tally)
    rows: Ints = field(default_factory=lambda: np.zeros((0, len(COLUMNS)), np.int64))
    max_rows: int = MOST_ROWS

    def add_rows(self, rows: Ints, clock: int) -> SampledUnits:
        """Add more rows, in a flat array; no later ones will have times before ``clock``."""
        if not len(self.rows) and not len(rows):
            return self
        rows = np.concatenate([self.rows, rows.reshape(-1, len(COLUMNS))])
        if self.span is None:
            ended = np.zeros(len(rows), np.bool_)
        elif self.counted:  # positions of a partition: units end at different times
            _, unit = np.unique(rows[:, :2], axis=0, return_inverse=True)
            ended = np.isin(unit.ravel(), unit.ravel()[rows[:, 4] == ENDED])
        else:
            ended = rows[:, 1] <= clock - self._length
        forced = bool(len(rows) - np.count_nonzero(ended) > self.max_rows)
        if forced:
            ended = np.ones(len(rows), np.bool_)
        points, bundles = self._tallies(rows[ended], clock, lasting=forced)
        return replace(self, points=self.points + points, bundles=self.bundles + bundles, rows=rows[~ended])

    def tallies(self, clock: int) -> tuple[Tally, Tally]:
        """Return the tallies of match points and of match bundles, including units that have not ended."""
        points, bundles = self._tallies(self.rows, clock, lasting=True)
        return self.points + points, self.bundles + bundles

    def tallies_so_far(self, rows: Ints, clock: int, skipped: float) -> tuple[Tally, Tally]:
        """Return the tallies with more rows; a share ``skipped`` of the events was skipped."""
        points, bundles = self.add_rows(rows, clock).tallies(clock)
        return points.add_skipped(skipped), bundles.add_skipped(skipped)

    @property
    def _length(self) -> int:
        return UNIT * ((self.span or 0) + 1)

    def _tallies(self, rows: Ints, clock: int, *, lasting: bool) -> tuple[Tally, Tally]:
        """Return the tallies of match points and bundles in ``rows``; ``lasting``: units of positions may continue."""
        points, is_found = distinct(rows)
        if not len(points):
            return Tally(), Tally()
        new = np.append(True, (np.diff(points[:, :2], axis=0) != 0).any(axis=1))
        unit = np.cumsum(new) - 1
        n_units = int(unit[-1]) + 1
        chance = np.zeros(n_units)
        np.maximum.at(chance, unit, points[:, 6] / ALL)

        def tally(unit_index: Ints, x: Floats, y: Floats, half: Floats) -> Tally:
            sums = [np.bincount(unit_index, column, n_units).astype(np.float64) for column in (x, y, half)]
            return Tally.from_units(sums[0], sums[1], sums[2], chance)

        is_known = self._known_since(points, 1) <= points[:, 2]
        weights = np.ones(len(points))
        of_points = tally(
            unit[is_known], weights[is_known], is_found[is_known].astype(np.float64), 0 * weights[is_known]
        )
        if self.span is None:
            return of_points, self._tally_partitions(unit, is_known, is_found, tally)
        return of_points, self._tally_bundles(rows, points, is_found, unit, clock, tally, lasting=lasting)

    def _known_since(self, points: Ints, windows: int) -> Ints:
        """Return the time from which all is known that began in the unit up to so many windows earlier."""
        span = (self.span or 0) * windows
        begin, blind = points[:, 1], points[:, 5]
        known_since = np.where(blind == NEVER, NEVER, np.maximum(blind, NEVER + 1) + span + 1)
        if self.span is None:
            return np.where(blind == NEVER, NEVER, np.iinfo(np.int64).max)
        if self.counted:  # nothing precedes position 0
            begin = np.where(begin <= 0, -span, begin)
        return np.maximum(known_since, begin + span)

    def _tally_partitions(self, unit: Ints, is_known: Bools, is_found: Bools, tally: Any) -> Tally:
        """Return the tally of bundles without a window, where a partition is one unit and one bundle."""
        unit_index, first = np.unique(unit[is_known], return_index=True)
        found_by_unit = np.zeros(int(unit[-1]) + 1)
        np.maximum.at(found_by_unit, unit, is_found)
        result: Tally = tally(unit_index, np.ones(len(first)), found_by_unit[unit_index], np.zeros(len(first)))
        return result

    def _tally_bundles(
        self, rows: Ints, points: Ints, is_found: Bools, unit: Ints, clock: int, tally: Any, *, lasting: bool
    ) -> Tally:
        span, when = self.span or 0, points[:, 2]
        opens = np.append(True, (np.diff(unit) != 0) | (np.diff(when) > span))
        first = np.flatnonzero(opens)
        last = np.append(first[1:], len(points)) - 1
        chain = np.cumsum(opens) - 1
        known_since = self._known_since(points[first], 2)
        goes_on = lasting and self.counted
        known_until = self._known_until(rows, points, first, unit, clock, goes_on=goes_on)
        begins = when[first]
        observable = (known_until - np.maximum(known_since, points[first, 1])).astype(np.float64)
        took = np.full(len(first), np.inf)  # time until it was found
        np.minimum.at(took, chain[is_found], (when[is_found] - begins[chain[is_found]]).astype(np.float64))
        ended = (when[last] + span - begins).astype(np.float64)
        cut = np.floor(observable * 2 / 3)
        decided = np.minimum(np.minimum(took, ended), cut)
        # If a key gets no more events, only found bundles would be decided; so all bundles count here.
        decided = known_until - 1 - begins if goes_on else decided
        is_judged = (begins >= known_since) & (begins + decided < known_until) & (decided >= 0)
        weight = (
            np.ones(np.count_nonzero(is_judged))
            if goes_on
            else observable[is_judged] / (observable[is_judged] - decided[is_judged])
        )
        hits = (took[is_judged] <= decided[is_judged]).astype(np.float64)
        unsure = ((decided[is_judged] < ended[is_judged]) & (hits == 0)).astype(np.float64) / 2
        result: Tally = tally(unit[first][is_judged], weight, weight * (hits + unsure), weight * unsure)
        return result

    def _known_until(self, rows: Ints, points: Ints, first: Ints, unit: Ints, clock: int, *, goes_on: bool) -> Ints:
        """Return the exclusive end of complete knowledge after the ``first`` points of bundles."""
        known_until: Ints = points[first, 1] + self._length
        if goes_on:
            last = points[np.append(np.flatnonzero(np.diff(unit)), len(points) - 1), 2]
            known_until = np.minimum(known_until, last[unit[first]] + 1)
        elif not self.counted:
            known_until = np.minimum(known_until, clock)
        # Find the next loss in the same unit: the ranks of unit and time become one number with the same order.
        loss_rows = rows[rows[:, 4] == LOST, :3]
        unit_times = np.concatenate([loss_rows, points[first, :3]])
        _, unit_index = np.unique(unit_times[:, :2], axis=0, return_inverse=True)
        times, time_index = np.unique(unit_times[:, 2], return_inverse=True)
        ranks = unit_index.ravel() * len(times) + time_index.ravel()
        losses, point_ranks = np.unique(ranks[: len(loss_rows)]), ranks[len(loss_rows) :]
        following = np.append(losses, NEVER)[np.searchsorted(losses, point_ranks, side="right")]
        cut = following // len(times) == point_ranks // len(times)
        known_until[cut] = np.minimum(known_until[cut], times[following[cut] % len(times)])
        return known_until

    def to_arrays(self) -> dict[str, Any]:
        """Return plain data, without the window."""
        return {"points": self.points.to_arrays(), "bundles": self.bundles.to_arrays(), "rows": self.rows}

    def with_arrays(self, data: Mapping[str, Any]) -> SampledUnits:
        """Read the state of :meth:`to_arrays`. Raises :class:`ValueError`, :class:`KeyError` or :class:`TypeError` for
        other data."""
        rows = np.asarray(data["rows"])
        if rows.dtype != np.int64 or rows.ndim != 2 or rows.shape[1] != len(COLUMNS):
            raise ValueError("rows of points")
        points, bundles = Tally.from_arrays(data["points"]), Tally.from_arrays(data["bundles"])
        return replace(self, points=points, bundles=bundles, rows=rows)
