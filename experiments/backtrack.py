"""The backtrack algorithm of SASE+ (2008), section 5.2.3, for the queries of its experiments 3 and 4.

One run of a partition is processed at a time, depth first: where a run could go two ways it proceeds to the next
component, and the other way is put on a stack, with the place of the event, to be read again from there. It gives the
matches of :func:`acep.match`; what it is here for is the number of events that it reads, ``touches``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from experiments.stock import LOW, ROUND, StockQuery

__all__ = ["Backtrack", "backtrack"]

Chain = tuple["Chain | None", int]  # the events bound, the last one first


@dataclass
class Backtrack:
    """The result of a run of the algorithm: for each match the rows of its events in stream order; the number of events
    that all runs read together; the number of postponed runs."""

    matches: list[tuple[int, ...]] = field(default_factory=list)
    touches: int = 0
    postponed: int = 0


@dataclass(frozen=True)
class _Run:
    """A postponed run: the position of its next event, the events bound, the price of the last a and the lowest one;
    ``closed``: b is bound."""

    position: int
    chain: Chain
    last: int
    lowest: int
    closed: bool = False


def backtrack(table: pa.Table, query: StockQuery) -> Backtrack:
    """Return all matches of a query on a :func:`~experiments.streams.ticker`, in the order of the symbols.

    With ``query.non_overlap`` those that :func:`acep.match` chooses: again and again the one that ends first.
    """
    outcome = Backtrack()
    symbols = np.asarray(table["symbol"])
    for symbol in np.unique(symbols):
        rows = np.flatnonzero(symbols == symbol)
        prices, volumes = np.asarray(table["price"])[rows].tolist(), np.asarray(table["volume"])[rows].tolist()
        positions = (
            _find_non_overlapping(prices, volumes, query, outcome)
            if query.non_overlap
            else _find_all(prices, volumes, query, outcome)
        )
        outcome.matches += [tuple(rows[list(match)].tolist()) for match in positions]
    return outcome


def _find_all(
    prices: list[int], volumes: list[int], query: StockQuery, outcome: Backtrack
) -> Iterator[tuple[int, ...]]:
    for start, price in enumerate(prices):
        outcome.touches += 1
        if price % ROUND == 0:
            yield from _find_from(start, [min(len(prices), start + query.window)], prices, volumes, query, outcome)


def _find_non_overlapping(
    prices: list[int], volumes: list[int], query: StockQuery, outcome: Backtrack
) -> Iterator[tuple[int, ...]]:
    """Yield the match that ends first, of those the one that begins first, then the one whose events come first."""
    free = 0
    while free < len(prices):
        best: tuple[int, ...] | None = None
        start = free
        while start < (len(prices) if best is None else best[-1]):
            outcome.touches += 1
            if prices[start] % ROUND == 0:
                # What ends later than the best one need not be looked for: its runs fail there.
                end = [min(len(prices), start + query.window, len(prices) if best is None else best[-1] + 1)]
                for match in _find_from(start, end, prices, volumes, query, outcome):
                    if best is None or (match[-1], match) < (best[-1], best):
                        best = match
                        end[0] = best[-1] + 1
            start += 1
        if best is None:
            return
        yield best
        free = best[-1] + 1


def _find_from(
    start: int, end: list[int], prices: list[int], volumes: list[int], query: StockQuery, outcome: Backtrack
) -> Iterator[tuple[int, ...]]:
    """Yield all matches that begin at a place and end before the place ``end[0]``, which the caller may lower
    meanwhile."""
    first, contiguous = prices[start], query.strategy == "s2"
    stack = [_Run(start + 1, (None, start), first, first)]
    while stack:
        run = stack.pop()
        position, chain, last, lowest, closed = run.position, run.chain, run.last, run.lowest, run.closed
        while position < end[0]:
            price = prices[position]
            outcome.touches += 1
            if closed:  # only c is missing
                if first < price < last:
                    yield _list_positions((chain, position))
                    break
                if contiguous:
                    break
                position += 1
                continue
            takes = (
                query.iterator == "p1"
                or (query.iterator == "p2" and price > last)
                or (query.iterator == "p3" and price > lowest)
            )
            stays = takes or not contiguous
            if volumes[position] < LOW:  # b: the run proceeds, and what else it could do is postponed
                if stays:
                    outcome.postponed += 1
                    later = _Run(position + 1, (chain, position), price, min(lowest, price)) if takes else None
                    stack.append(later or _Run(position + 1, chain, last, lowest))
                if not query.third:
                    yield _list_positions((chain, position))
                    break
                chain, closed = (chain, position), True
            elif takes:
                chain, last, lowest = (chain, position), price, min(lowest, price)
            elif not stays:
                break
            position += 1


def _list_positions(chain: Chain) -> tuple[int, ...]:
    positions: list[int] = []
    step: Chain | None = chain
    while step is not None:
        step, position = step
        positions.append(position)
    return tuple(reversed(positions))
