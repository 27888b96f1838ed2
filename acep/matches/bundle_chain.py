"""Chain the match points of partitions to bundles, where an engine has kept finer partitions apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from acep.events.batch import Column
from acep.matches.counted import Counted
from acep.matches.found_columns import FoundColumns, values_at
from acep.matches.records import Found
from acep.matches.rows_by_key import Ints, order_by_words, words_of_keys
from acep.pattern.expressions import Value

__all__ = ["BundleChain", "PointBundles", "with_keys"]

Key = tuple[Value, ...]


def with_keys(matches: Sequence[Found], width: int) -> Sequence[Found]:
    """Return matches with the first ``width`` of their keys only."""
    if isinstance(matches, FoundColumns):
        return replace(matches, keys=matches.keys[:width])
    return [replace(match, key=match.key[:width]) for match in matches]


class BundleChain:
    """The bundles of partitions of which matches come in the order of their match points, over several calls.

    Matches have the keys of finer partitions; the first ``width`` of them are those of the partition. ``span`` is the
    window in ticks (``None``: there is none). The state is the first and the last match point of the newest bundle of
    each partition, by its key.

    >>> chain, zero = BundleChain(0, span=5), np.zeros(3, np.int64)
    >>> points = zero + [1, 10, 4]
    >>> chain.bundles([], points, points).tolist(), chain.bundles([], zero + 12, zero + 12).tolist()
    ([1, 10, 1], [10, 10, 10])
    """

    def __init__(self, width: int, span: int | None) -> None:
        self.width, self.span = width, span
        self._newest: dict[Key, tuple[int, int]] = {}
        self._latest: int | None = None
        self._kept = 64

    def matches(self, matches: Sequence[Found]) -> Sequence[Found]:
        """Return matches with the key of their partition, and the bundles of these."""
        if not len(matches):
            return matches
        if isinstance(matches, FoundColumns):
            keys = matches.keys[: self.width]
            bundle = self.bundles(keys, matches.end, matches.end)
            return FoundColumns(**vars(matches) | {"keys": keys, "bundle": bundle})  # in less time than replace
        numbers: dict[Key, int] = {}
        of_key = np.array([numbers.setdefault(match.key[: self.width], len(numbers)) for match in matches], np.int64)
        end = np.array([match.end for match in matches], np.int64)
        bundles = self._bundles(of_key, list(numbers), end, end).tolist()
        return [
            replace(match, key=match.key[: self.width], bundle=bundle)
            for match, bundle in zip(matches, bundles, strict=True)
        ]

    def chain_counts(self, counted: Counted) -> Counted:
        """Return rows of counts with the key of their partition, and its bundles. Rows of finer partitions may be
        several for one match point or bundle, as those of several calls may."""
        if not len(counted):
            return replace(counted, keys=counted.keys[: self.width])
        keys = counted.keys[: self.width]
        return replace(counted, keys=keys, bundle=self.bundles(keys, counted.first, counted.last))

    def bundles(self, keys: Sequence[Column], first: Ints, last: Ints) -> Ints:
        """Return the bundle of each row, whose match points chain from ``first`` to ``last``."""
        bundles = self._of_points(keys, last) if first is last else None
        if bundles is not None:
            return bundles
        of_key, key_of_number = _number_keys(keys, len(first))
        return self._bundles(of_key, key_of_number, first, last)

    def _of_points(self, keys: Sequence[Column], points: Ints) -> Ints | None:
        """Do the same for match points in time linear in their number; ``None`` where they are out of order."""
        if not keys and (common := self._of_one_bundle(points)) is not None:
            return np.full(len(points), common)
        if (points[1:] < points[:-1]).any():
            return None
        order, edges = order_by_words(words_of_keys(keys), len(points))
        points = points[order]
        begins = np.zeros(len(points), bool)
        if self.span is not None:  # a difference of two ticks may exceed 63 bits
            begins[1:] = (points[1:] - points[:-1]).view(np.uint64) > np.uint64(self.span)
        begins[edges[:-1]] = True
        rows = np.flatnonzero(begins)  # the first one of each bundle
        bundle = points[rows]
        groups = np.searchsorted(rows, edges)  # the first bundle of each key
        bundle_rows, firsts, lasts = groups.tolist(), points[edges[:-1]].tolist(), points[edges[1:] - 1].tolist()
        rows_of_keys = order[edges[:-1]]
        values = zip(*(values_at(key, rows_of_keys) for key in keys), strict=True) if keys else [()]
        of_key = [(key, self._newest.get(key)) for key in values]
        for (_, newest), place, point in zip(of_key, bundle_rows[:-1], firsts, strict=True):
            if newest is None:
                continue
            if point < newest[1]:
                return None
            if self.span is None or point - newest[1] <= self.span:
                bundle[place] = newest[0]
        begun = bundle[groups[1:] - 1].tolist()
        for (key, _), begin, point in zip(of_key, begun, lasts, strict=True):
            self._newest[key] = begin, point
        self._forget(max(lasts))
        bundles = np.empty(len(points), np.int64)
        bundles[order] = np.repeat(bundle, np.diff(rows, append=len(points)))
        return bundles

    def _of_one_bundle(self, points: Ints) -> int | None:
        """Return the bundle of match points that have no key, if they are in order and it is one for all."""
        if self.span is not None:  # a difference of two ticks may exceed 63 bits, and one that falls is above each span
            if (points[1:] - points[:-1]).view(np.uint64).max(initial=0) > self.span:
                return None
        elif (points[1:] < points[:-1]).any():
            return None
        begin, end = int(points[0]), int(points[-1])
        newest = self._newest.get(())
        if newest is not None and begin < newest[1]:
            return None
        if newest is not None and self.span is not None and begin - newest[1] > self.span:
            newest = None
        bundle = begin if newest is None else newest[0]
        self._newest[()] = bundle, end
        self._latest = end
        return bundle

    def _bundles(self, of_key: Ints, keys: Sequence[Key], first: Ints, last: Ints) -> Ints:
        """Do the same; ``of_key`` is the number of each row's key in ``keys``."""
        begun = [(number, *self._newest[key]) for number, key in enumerate(keys) if key in self._newest]
        newest = np.array(begun, np.int64).reshape(-1, 3)
        of_key = np.concatenate([newest[:, 0], of_key])
        first, last = np.concatenate([newest[:, 1], first]), np.concatenate([newest[:, 2], last])
        order = np.lexsort((np.arange(len(first)) >= len(newest), first, of_key))
        part, begin, end = of_key[order], first[order], last[order]
        times, rank = np.unique(end, return_inverse=True)
        reach = times[np.maximum.accumulate(part * len(times) + rank.ravel()) % len(times)]
        starts = np.append(True, part[1:] != part[:-1])
        if self.span is not None:
            gap = (begin[1:] - reach[:-1]).view(np.uint64)  # a difference of two ticks may exceed 63 bits
            starts[1:] |= (begin[1:] > reach[:-1]) & (gap > np.uint64(self.span))
        bundles = np.empty(len(order), np.int64)
        bundles[order] = begin[np.maximum.accumulate(np.where(starts, np.arange(len(order)), 0))]
        for row in np.flatnonzero(np.append(part[1:] != part[:-1], True)).tolist():
            self._newest[keys[part[row]]] = int(bundles[order[row]]), int(reach[row])
        self._forget(int(times[-1]))
        return bundles[len(newest) :]

    def _forget(self, latest: int) -> None:
        """Forget bundles that no later match point can join."""
        self._latest = latest if self._latest is None else max(latest, self._latest)
        if self.span is None or len(self._newest) <= 2 * self._kept:
            return
        oldest = self._latest - self.span
        self._newest = {key: points for key, points in self._newest.items() if points[1] >= oldest}
        self._kept = max(64, len(self._newest))

    def dump(self) -> Any:
        """Return the state as JSON-like data."""
        return [[list(key), *newest] for key, newest in self._newest.items()]

    def load(self, data: Any) -> None:
        """Restore the state of :meth:`dump`. Raises :class:`ValueError`, :class:`LookupError` or :class:`TypeError` for
        other data."""
        self._newest = {}
        for key, first, last in data:
            if len(key) != self.width or int(first) > int(last):
                raise ValueError("bundle")
            self._newest[tuple(key)] = int(first), int(last)
        self._latest = max((last for _, last in self._newest.values()), default=None)


def _number_keys(keys: Sequence[Column], rows: int) -> tuple[Ints, list[Key]]:
    """Return the number of each row's key, and the keys."""
    if not keys:
        return np.zeros(rows, np.int64), [()]
    if not rows:
        return np.zeros(0, np.int64), []
    order, edges = order_by_words(words_of_keys(keys), rows)
    number = np.empty(rows, np.int64)
    number[order] = np.repeat(np.arange(len(edges) - 1), np.diff(edges))
    first_rows = order[edges[:-1]]
    return number, [*zip(*(values_at(key, first_rows) for key in keys), strict=True)]


class PointBundles:
    """The bundles of all match points of a stream that has ended, by the first ``width`` keys of ``counted`` points."""

    def __init__(self, counted: Counted, width: int) -> None:
        self.width = width
        self._of_key: dict[Key, tuple[Ints, Ints]] = {}
        number, keys = _number_keys(counted.keys[:width], len(counted))
        order = np.lexsort((counted.last, number))
        edges = np.flatnonzero(np.diff(number[order])) + 1
        for rows in np.split(order, edges) if len(order) else ():
            self._of_key[keys[number[rows[0]]]] = counted.last[rows], counted.bundle[rows]

    def matches(self, matches: FoundColumns) -> FoundColumns:
        """Return matches with these keys only, and with their bundles."""
        keys = matches.keys[: self.width]
        number, values = _number_keys(keys, len(matches))
        bundle = np.zeros(len(matches), np.int64)
        for place, key in enumerate(values if len(matches) else ()):
            points, bundles = self._of_key[key]
            rows = number == place
            bundle[rows] = bundles[np.searchsorted(points, matches.end[rows])]
        return replace(matches, keys=keys, bundle=bundle)
