"""The recall of a run that gives up match nodes, estimated from units in which nothing is given up.

**Sample.** A *unit* is eight windows of one partition; a hash of its key, its number and the seed chooses it with a
probability ``p``. There the core also follows, apart, whatever would be there without a budget. So of each match point
in the last seven windows of a unit it is known whether what was kept found it: all runs that end there began in the
unit. That is Poisson sampling of clusters, and nothing is assumed of how points lie in them.

**Ratio.** With ``x`` the points of a unit, ``y`` those that were found, both over ``p``, the recall is
``r = sum(y) / sum(x)``, and its variance about ``V = n / (n - 1) * sum((1 - p) * (y - r * x)**2) / sum(x)**2``
(linearised; Särndal, Swensson, Wretman, Model Assisted Survey Sampling, 1992, sections 3.5 and 5.6).

**Few units.** ``V`` is unsure where they are few, and 0 where all or nothing was found. So it is computed as if there
were one unit more, as large as the others (``sum(x**2) / sum(x)``), of which half was found wholly and half was missed
wholly. The variance becomes an effective sample size ``r * (1 - r) / V``, and the interval is Wilson's (1927), with the
quantile of t for ``m = sum(x)**2 / sum(x**2)`` degrees of freedom in place of the normal one (after Korn and Graubard,
Survey Methodology 24, 1998). Where all was found it tells no more than ``m + 1`` draws would.

**Bundles.** One whose first point lies in a unit, two windows or more from its beginning, is known to begin there. It
is found by its first point that was found; it is missed if none is when a window has passed since its last point. What
is not decided when the unit ends is left out, and what took ``e`` of the ``R`` ticks in which a bundle might have begun
counts as ``R / (R - e)``: so likely it was to be seen, wherever it began (inverse probability of censoring). After two
thirds of ``R`` it counts as half found, and the interval allows for both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from acep.learning.trajectories.match_vectors import Bools, Floats, Ints

__all__ = ["ALL", "COLUMNS", "Estimate", "Rows", "Seen", "Tally", "distinct"]

UNIT = 8  # windows
ALL = 2.0**32  # shares are counted in so many parts
COLUMNS = ("partition", "begin", "when", "ts", "kind", "blind", "share")
ENDED, LOST, WHOLE, KEPT = -2, -1, 0, 1
NEVER = np.iinfo(np.int64).min
LEVEL_90 = 1.6448536269514722  # of the normal distribution, 5 % lie beyond
MOST_ROWS = 1 << 15  # of units that have not ended; where there are more these are taken for ended


@dataclass(frozen=True)
class Estimate:
    """A recall with an interval that has it with a confidence of 90 %."""

    recall: float
    low: float
    high: float


@dataclass(frozen=True)
class Tally:
    """Sums over ``units`` with something in them, of what there was (``x``) and what of it was found (``y``), each over
    the unit's probability; ``half``: what of ``y`` is not sure. The squares and the product are those of a unit's sums,
    times one less its probability, but for ``whole``. Those of several streams, or buckets, add up."""

    units: float = 0.0
    x: float = 0.0
    y: float = 0.0
    half: float = 0.0
    xx: float = 0.0
    xy: float = 0.0
    yy: float = 0.0
    whole: float = 0.0  # the squares of x

    @classmethod
    def of(cls, x: Floats, y: Floats, half: Floats, chance: Floats) -> Tally:
        """From the sums of units, which are taken with a ``chance``.

        >>> Tally.of(np.array([2.0, 4.0]), np.array([1.0, 4.0]), np.zeros(2), np.full(2, 0.5)).x
        12.0
        """
        some = x > 0
        x, y, half, chance = (np.asarray(one)[some] for one in (x, y, half, chance))
        x, y, half, rest = x / chance, y / chance, half / chance, 1 - chance
        sums = (x, y, half, rest * x * x, rest * x * y, rest * y * y, x * x)
        return cls(float(len(x)), *(float(one.sum()) for one in sums))

    def __add__(self, other: Tally) -> Tally:
        return Tally(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    def beside(self, share: float) -> Tally:
        """With what a ``share`` (below 1) of the events may have held that was not let in: nothing of it was found.

        >>> Tally.of(np.array([4.0]), np.array([4.0]), np.zeros(1), np.ones(1)).beside(0.5).x
        8.0
        """
        more = self.x * share / (1 - share)
        return replace(self, x=self.x + more, half=self.half + more / 2)

    def to_arrays(self) -> dict[str, float]:
        """As plain data: numbers that may be added up."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    @classmethod
    def from_arrays(cls, data: Mapping[str, Any]) -> Tally:
        """Raises :class:`ValueError`, :class:`KeyError` or :class:`TypeError` for what is none."""
        found = cls(*(float(data[f.name]) for f in fields(cls)))
        if not all(np.isfinite(getattr(found, f.name)) and getattr(found, f.name) >= 0 for f in fields(cls)):
            raise ValueError("sums of a recall")
        return found

    def estimate(self) -> Estimate | None:
        """``None``: nothing was seen.

        >>> Tally().estimate()
        >>> x = np.full(400, 10.0)
        >>> found = Tally.of(x, np.tile([4.0, 6.0], 200), 0 * x, np.full(400, 0.01)).estimate()
        >>> round(found.recall, 3), round(found.low, 2), round(found.high, 2)
        (0.5, 0.49, 0.51)
        """
        if self.x <= 0:
            return None
        likely, unsure = min(self.y / self.x, 1.0), min(self.half / self.x, 1.0)
        size = self.whole / self.x
        m = self.x / size
        drawn = (likely * m + 0.5) / (m + 1)
        squares = max(self.yy - 2 * drawn * self.xy + drawn**2 * self.xx, 0.0)
        squares *= self.units / max(self.units - 1, 1.0)
        squares += size**2 * (drawn**2 + (1 - drawn) ** 2) / 2
        variance = squares / (self.x + size) ** 2
        low, high = _wilson(likely, drawn * (1 - drawn) / variance, _quantile(max(m, 1.0)))
        # Rounding must not put the recall outside.
        return Estimate(likely, max(0.0, min(low - unsure, likely)), min(1.0, max(high + unsure, likely)))


def _quantile(degrees: float) -> float:
    """Of Student's t, what 5 % lie beyond (Abramowitz and Stegun, 26.7.5).

    >>> round(_quantile(10.0), 3)
    1.812
    """
    z, n = LEVEL_90, degrees
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + (z**3 + z) / (4 * n) + second / n**2 + third / n**3


def _wilson(share: float, tries: float, z: float) -> tuple[float, float]:
    """The interval of a share among so many tries."""
    middle = (share + z * z / (2 * tries)) / (1 + z * z / tries)
    half = z / (1 + z * z / tries) * np.sqrt(share * (1 - share) / tries + z * z / (4 * tries * tries))
    return max(0.0, float(middle - half)), min(1.0, float(middle + half))


def distinct(rows: Ints) -> tuple[Ints, Bools]:
    """Of rows of :data:`COLUMNS` (n, 7) the match points, by partition, unit and time: their rows, of which ``when`` is
    the first and ``blind`` the last one, and whether what was kept found them.

    >>> rows = np.array([[0, 0, 9, 9, 0, 1, 5], [0, 0, 9, 9, 1, 1, 5], [0, 0, 3, 3, 0, 1, 5]])
    >>> points, kept = distinct(rows)
    >>> points[:, 2].tolist(), kept.tolist()
    ([3, 9], [False, True])
    """
    rows = rows[rows[:, 4] >= WHOLE]
    if not len(rows):
        return rows, np.zeros(0, np.bool_)
    rows = rows[np.lexsort((rows[:, 2], rows[:, 3], rows[:, 1], rows[:, 0]))]
    new = np.append(True, (np.diff(rows[:, [0, 1, 3]], axis=0) != 0).any(axis=1))
    starts = np.flatnonzero(new)
    points = rows[starts].copy()
    points[:, 5] = np.maximum.reduceat(rows[:, 5], starts)
    return points, np.maximum.reduceat(rows[:, 4], starts) == KEPT


class Rows:
    """Numbers one after the other, more and more of them; who has those so far keeps them without a copy.

    >>> rows = Rows()
    >>> first = rows.more(np.array([1, 2]))
    >>> rows.more(np.array([3])).tolist(), first.tolist(), rows.size
    ([1, 2, 3], [1, 2], 3)
    """

    def __init__(self) -> None:
        self.size = 0
        self._held: Ints = np.zeros(0, np.int64)

    def more(self, new: Ints) -> Ints:
        """All of them, the ``new`` ones last."""
        end = self.size + len(new)
        if end > len(self._held):
            self._held = np.concatenate([self._held[: self.size], np.zeros(2 * end - self.size, np.int64)])
        self._held[self.size : end] = new
        self.size = end
        return self._held[:end]


@dataclass(frozen=True)
class Seen:
    """What was seen of the units of one query with the window ``span`` (``counted``: in positions; ``None``: without
    one): the tallies of units that have ended, and the ``rows`` of the core of those that have not."""

    span: int | None
    counted: bool
    points: Tally = field(default_factory=Tally)
    bundles: Tally = field(default_factory=Tally)
    rows: Ints = field(default_factory=lambda: np.zeros((0, len(COLUMNS)), np.int64))
    most: int = MOST_ROWS

    def then(self, rows: Ints, clock: int) -> Seen:
        """With more rows, one after the other in a flat array; no more will come with times before ``clock``."""
        if not len(self.rows) and not len(rows):
            return self
        rows = np.concatenate([self.rows, rows.reshape(-1, len(COLUMNS))])
        if self.span is None:
            ended = np.zeros(len(rows), np.bool_)
        elif self.counted:  # positions of a partition, whose units do not end together
            _, unit = np.unique(rows[:, :2], axis=0, return_inverse=True)
            ended = np.isin(unit.ravel(), unit.ravel()[rows[:, 4] == ENDED])
        else:
            ended = rows[:, 1] <= clock - self._length
        forced = bool(len(rows) - np.count_nonzero(ended) > self.most)
        if forced:
            ended = np.ones(len(rows), np.bool_)
        points, bundles = self._tallies(rows[ended], clock, lasting=forced)
        return replace(self, points=self.points + points, bundles=self.bundles + bundles, rows=rows[~ended])

    def tallies(self, clock: int) -> tuple[Tally, Tally]:
        """Of match points and of match bundles, units that have not ended among them."""
        points, bundles = self._tallies(self.rows, clock, lasting=True)
        return self.points + points, self.bundles + bundles

    def so_far(self, rows: Ints, clock: int, away: float) -> tuple[Tally, Tally]:
        """The same with more rows, and with a share ``away`` of the events that was not let in."""
        points, bundles = self.then(rows, clock).tallies(clock)
        return points.beside(away), bundles.beside(away)

    @property
    def _length(self) -> int:
        return UNIT * ((self.span or 0) + 1)

    def _tallies(self, rows: Ints, clock: int, *, lasting: bool) -> tuple[Tally, Tally]:
        """``lasting``: units of positions may go on."""
        points, kept = distinct(rows)
        if not len(points):
            return Tally(), Tally()
        new = np.append(True, (np.diff(points[:, :2], axis=0) != 0).any(axis=1))
        unit = np.cumsum(new) - 1
        many = int(unit[-1]) + 1
        chance = np.zeros(many)
        np.maximum.at(chance, unit, points[:, 6] / ALL)

        def tally(of: Ints, x: Floats, y: Floats, half: Floats) -> Tally:
            sums = [np.bincount(of, one, many).astype(np.float64) for one in (x, y, half)]
            return Tally.of(sums[0], sums[1], sums[2], chance)

        known = self._since(points, 1) <= points[:, 2]
        ones = np.ones(len(points))
        of_points = tally(unit[known], ones[known], kept[known].astype(np.float64), 0 * ones[known])
        if self.span is None:
            return of_points, self._whole(unit, known, kept, tally)
        return of_points, self._bundles(rows, points, kept, unit, clock, tally, lasting=lasting)

    def _since(self, points: Ints, windows: int) -> Ints:
        """Since when all is known that began so many windows before, in the unit."""
        span = (self.span or 0) * windows
        begin, blind = points[:, 1], points[:, 5]
        since = np.where(blind == NEVER, NEVER, np.maximum(blind, NEVER + 1) + span + 1)
        if self.span is None:
            return np.where(blind == NEVER, NEVER, np.iinfo(np.int64).max)
        if self.counted:  # before position 0 there was nothing
            begin = np.where(begin <= 0, -span, begin)
        return np.maximum(since, begin + span)

    def _whole(self, unit: Ints, known: Bools, kept: Bools, tally: Any) -> Tally:
        """Without a window a partition is one unit and one bundle."""
        of, first = np.unique(unit[known], return_index=True)
        found = np.zeros(int(unit[-1]) + 1)
        np.maximum.at(found, unit, kept)
        result: Tally = tally(of, np.ones(len(first)), found[of], np.zeros(len(first)))
        return result

    def _bundles(
        self, rows: Ints, points: Ints, kept: Bools, unit: Ints, clock: int, tally: Any, *, lasting: bool
    ) -> Tally:
        span, when = self.span or 0, points[:, 2]
        opens = np.append(True, (np.diff(unit) != 0) | (np.diff(when) > span))
        first = np.flatnonzero(opens)
        last = np.append(first[1:], len(points)) - 1
        chain = np.cumsum(opens) - 1
        since = self._since(points[first], 2)
        goes_on = lasting and self.counted
        until = self._until(rows, points, first, unit, clock, goes_on=goes_on)
        begins = when[first]
        room = (until - np.maximum(since, points[first, 1])).astype(np.float64)
        took = np.full(len(first), np.inf)  # until it was found
        np.minimum.at(took, chain[kept], (when[kept] - begins[chain[kept]]).astype(np.float64))
        ended = (when[last] + span - begins).astype(np.float64)
        cut = np.floor(room * 2 / 3)
        decided = np.minimum(np.minimum(took, ended), cut)
        # Of a key that has no more events only what was found would ever be decided: so all counts there.
        decided = until - 1 - begins if goes_on else decided
        seen = (begins >= since) & (begins + decided < until) & (decided >= 0)
        weight = np.ones(np.count_nonzero(seen)) if goes_on else room[seen] / (room[seen] - decided[seen])
        found = (took[seen] <= decided[seen]).astype(np.float64)
        unsure = ((decided[seen] < ended[seen]) & (found == 0)).astype(np.float64) / 2
        result: Tally = tally(unit[first][seen], weight, weight * (found + unsure), weight * unsure)
        return result

    def _until(self, rows: Ints, points: Ints, first: Ints, unit: Ints, clock: int, *, goes_on: bool) -> Ints:
        """Up to when, not included, all is known after the ``first`` points of bundles."""
        until: Ints = points[first, 1] + self._length
        if goes_on:
            last = points[np.append(np.flatnonzero(np.diff(unit)), len(points) - 1), 2]
            until = np.minimum(until, last[unit[first]] + 1)
        elif not self.counted:
            until = np.minimum(until, clock)
        # The next loss of the same unit: units and times become ranks, and both one number that sorts as they do.
        lost = rows[rows[:, 4] == LOST, :3]
        both = np.concatenate([lost, points[first, :3]])
        _, of = np.unique(both[:, :2], axis=0, return_inverse=True)
        times, at = np.unique(both[:, 2], return_inverse=True)
        place = of.ravel() * len(times) + at.ravel()
        losses, places = np.unique(place[: len(lost)]), place[len(lost) :]
        following = np.append(losses, NEVER)[np.searchsorted(losses, places, side="right")]
        cut = following // len(times) == places // len(times)
        until[cut] = np.minimum(until[cut], times[following[cut] % len(times)])
        return until

    def to_arrays(self) -> dict[str, Any]:
        """As plain data, without the window."""
        return {"points": self.points.to_arrays(), "bundles": self.bundles.to_arrays(), "rows": self.rows}

    def with_arrays(self, data: Mapping[str, Any]) -> Seen:
        """The state of :meth:`to_arrays`. Raises :class:`ValueError`, :class:`KeyError` or :class:`TypeError` for what
        is none."""
        rows = np.asarray(data["rows"])
        if rows.dtype != np.int64 or rows.ndim != 2 or rows.shape[1] != len(COLUMNS):
            raise ValueError("rows of points")
        points, bundles = Tally.from_arrays(data["points"]), Tally.from_arrays(data["bundles"])
        return replace(self, points=points, bundles=bundles, rows=rows)
