"""Count the matches of a workload from the arrays alone: no automaton, no engine of acep.

Counts are exact; arithmetic is modulo 2**64 where an intermediate number may be larger than the count.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from experiments.stock import LOW, ROUND, StockQuery
from experiments.streams import positions

__all__ = [
    "count_any_sequences",
    "count_any_sets",
    "count_close_pairs",
    "count_next_sequences",
    "count_stock_runs",
    "count_tied_sequences",
    "count_valleys",
]

Ints = npt.NDArray[np.int64]


def count_any_sequences(table: pa.Table, word: Sequence[str], within: int, key: str | None = None) -> int:
    """Count the ways to pick events of the types ``word``, one after another, with last ts - first ts <= ``within``.

    From prefix sums: with F(w, x) the ways to pick w among the first x events, the ways to pick w after event i
    are F(w, x) - F(w, i) - the sum over w = uv of F(u, i) * ways(v, i, x).

    >>> count_any_sequences(pa.table({"ts": [0, 1, 2, 3], "type": ["A", "B", "B", "C"]}), "ABC", 9)
    2
    """
    total = np.uint64(0)
    later_types = tuple(word[1:])
    for ts, kinds in _parts(table, key):
        prefix: dict[Sequence[str], npt.NDArray[np.uint64]] = {}
        for start in range(len(later_types)):
            for stop in range(start + 1, len(later_types) + 1):
                before = prefix.get(later_types[start : stop - 1])
                hits = (kinds == later_types[stop - 1]).astype(np.uint64)
                prefix[later_types[start:stop]] = np.r_[
                    np.uint64(0), np.cumsum(hits if before is None else hits * before[:-1], dtype=np.uint64)
                ]
        first = np.flatnonzero(kinds == word[0])
        low, high = first + 1, np.searchsorted(ts, ts[first] + within, side="right")
        ways: dict[Sequence[str], npt.NDArray[np.uint64]] = {(): np.ones(len(first), np.uint64)}
        for start in range(len(later_types) - 1, -1, -1):
            suffix = later_types[start:]
            count = prefix[suffix][high] - prefix[suffix][low]
            for cut in range(start + 1, len(later_types)):
                count = count - prefix[later_types[start:cut]][low] * ways[later_types[cut:]]
            ways[suffix] = count
        total = total + ways[later_types].sum(dtype=np.uint64)
    return int(total)


def count_next_sequences(table: pa.Table, word: Sequence[str], within: int, key: str | None = None) -> int:
    """Count the events of type ``word[0]`` from which the next ``word[1]``, the next ``word[2]`` after it, and so on,
    lie within the window: skip till next match, if every type occurs once.

    >>> count_next_sequences(pa.table({"ts": [0, 1, 2, 3], "type": ["A", "A", "B", "C"]}), "ABC", 3)
    2
    """
    total = 0
    for ts, kinds in _parts(table, key):
        first = np.flatnonzero(kinds == word[0])
        last = first
        for letter in word[1:]:
            places = np.flatnonzero(kinds == letter)
            next_index = np.searchsorted(places, last, side="right")
            has_next = next_index < len(places)
            last, first = places[next_index[has_next]], first[has_next]
        total += int(np.count_nonzero(ts[last] - ts[first] <= within))
    return total


def count_any_sets(table: pa.Table, types: Sequence[str], within: int, key: str | None = None) -> int:
    """Count the ways to pick one event of each type, in any order, within the window. This sums, over the events that
    may come first, the product of the numbers of events of every other type that follow in time.

    >>> count_any_sets(pa.table({"ts": [0, 1, 2, 3], "type": ["A", "B", "B", "C"]}), "AB", 1)
    1
    """
    total = 0
    for ts, kinds in _parts(table, key):
        before = {kind: np.r_[0, np.cumsum(kinds == kind)] for kind in types}
        if any(counts[-1] == 0 for counts in before.values()):
            continue
        end = np.searchsorted(ts, ts + within, side="right")
        for first_type in types:
            first = np.flatnonzero(kinds == first_type)
            ways = np.ones(len(first), object)  # integers of any size
            for other in types:
                if other != first_type:
                    ways = ways * (before[other][end[first]] - before[other][first])
            total += int(ways.sum())
    return total


def count_tied_sequences(table: pa.Table, word: str, within: int) -> int:
    """Count the ways to pick events of three types, one after another within the window, the first and the last of one
    key.

    >>> table = pa.table({"ts": [0, 1, 2, 3], "type": ["A", "B", "B", "C"], "key": [5, 1, 2, 5]})
    >>> count_tied_sequences(table, "ABC", 9)
    2
    """
    ts, kinds, keys = np.asarray(table["ts"]), np.asarray(table["type"].to_pylist()), np.asarray(table["key"])
    middle = np.cumsum(kinds == word[1])
    total = 0
    for key in np.intersect1d(keys[kinds == word[0]], keys[kinds == word[2]]):
        first, last = (np.flatnonzero((kinds == kind) & (keys == key)) for kind in (word[0], word[2]))
        high, low = np.searchsorted(first, last), np.searchsorted(ts[first], ts[last] - within)
        before = np.r_[0, np.cumsum(middle[first])]
        total += int((middle[last] * (high - low) - (before[high] - before[low])).sum())
    return total


def count_close_pairs(table: pa.Table, word: str, within: int, apart: int) -> int:
    """Count the pairs of events of two types, one after the other within the window, whose values differ by less than
    ``apart``.

    >>> count_close_pairs(pa.table({"ts": [0, 1, 2], "type": ["A", "B", "B"], "value": [5, 9, 6]}), "AB", 9, 2)
    1
    """
    ts, kinds, value = np.asarray(table["ts"]), np.asarray(table["type"].to_pylist()), np.asarray(table["value"])
    second = np.flatnonzero(kinds == word[1])
    times, values = ts[second], value[second]
    total = 0
    for first in np.flatnonzero(kinds == word[0]):
        low, high = np.searchsorted(second, first), np.searchsorted(times, ts[first] + within, side="right")
        total += int(np.count_nonzero(np.abs(values[low:high] - value[first]) < apart))
    return total


def count_stock_runs(table: pa.Table, query: StockQuery) -> int:
    """Count the matches of the template of SASE+, section 6, with two components.

    Under skip till next match a run ignores what it cannot take, so it lives as long as its window: a match is a pair
    of a first event and a last one. Under partition contiguity it ends at the first event that it cannot take.
    """
    if query.third or query.non_overlap:
        raise ValueError("only all matches of two components can be counted")
    total = 0
    symbols = np.asarray(table["symbol"])
    for symbol in np.unique(symbols):
        is_of_symbol = symbols == symbol
        price, volume = np.asarray(table["price"])[is_of_symbol], np.asarray(table["volume"])[is_of_symbol]
        size = len(price)
        low = np.r_[0, np.cumsum(volume < LOW)]
        for first in np.flatnonzero(price % ROUND == 0).tolist():
            end = min(size, first + query.window)  # b stands before this place
            if query.strategy == "s2" and query.iterator != "p1":
                follows = price[first + 1 : end]
                continues = follows > (price[first : end - 1] if query.iterator == "p2" else price[first])
                stops = np.flatnonzero(~continues)
                end = min(end, first + 2 + int(stops[0])) if len(stops) else end
            total += int(low[end] - low[min(first + 1, size)])
    return total


def count_valleys(table: pa.Table, key: str = "symbol", value: str = "price") -> int:
    """Count the V shapes of the workload of that name: maximal falls followed at once by a rise that has ended, with an
    event before the fall that was not above its first."""
    total = 0
    keys = np.asarray(table[key])
    for key_value in np.unique(keys):
        steps = np.sign(np.diff(np.asarray(table[value])[keys == key_value]))
        edges = np.flatnonzero(np.r_[True, steps[1:] != steps[:-1]]) if len(steps) else np.zeros(0, np.int64)
        runs = steps[edges]
        # A fall has a step before it, at once a rise after it, and any step after that.
        total += int(np.count_nonzero((runs[1:-2] == -1) & (runs[2:-1] == 1))) if len(runs) > 3 else 0
    return total


def _parts(table: pa.Table, key: str | None) -> Sequence[tuple[Ints, npt.NDArray[np.object_]]]:
    """Return (ts, types) of each key, with times as integers."""
    ts, kinds = np.asarray(table["ts"]).astype(np.int64), np.asarray(table["type"].to_pylist())
    if key is None:
        return [(ts, kinds)]
    _, keys = np.unique(np.asarray(table[key].to_pylist()), return_inverse=True)
    order = np.lexsort((positions(keys), keys))
    cuts = np.flatnonzero(np.diff(keys[order])) + 1
    return [(ts[rows], kinds[rows]) for rows in np.split(order, cuts)]
