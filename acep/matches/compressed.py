"""Give all matches as one shared graph, which can be counted, sampled and enumerated later (compressed output)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Any, Protocol

import numpy as np

from acep.matches.found_columns import FoundColumns
from acep.matches.matches import Matches

__all__ = ["Compressed"]

BLOCK = 4096


class Graph(Protocol):
    """The graph in the native core (``acep.native._native.Compressed``)."""

    def count(self) -> int: ...
    def sample(self, n: int, seed: int) -> dict[str, Any]: ...
    def cursor(self, start: int = 0) -> Any: ...


@dataclass(eq=False, repr=False)
class Compressed:
    """All matches of one query as a compact graph, from which single matches are made on demand.

    Its size grows with the events and the pattern, never with the number of matches: ``SEQ(A+ a[], B b)`` on 200 A and
    a B has 2**200 - 1 of them. If predicates tie events together, there is nothing to share: the matches are then held
    one by one behind the same interface. After CORE (Bucchi et al., VLDB 2022).

    >>> import acep
    >>> events = {"ts": range(201), "type": ["A"] * 200 + ["B"]}
    >>> found = acep.match(events, acep.parse("PATTERN SEQ(A+ a[], B b) WITHIN 500"), output="compressed")
    >>> found.count() == 2**200 - 1, len(found.sample(3, seed=1)), len(found.matches(10**9, limit=5))
    (True, 3, 5)
    """

    _graph: Graph | None
    _expanded: Matches  # the matches themselves; with a graph, an empty template
    _columns: Callable[[dict[str, Any]], FoundColumns] | None = None

    def count(self) -> int:
        """Return the exact number of matches."""
        return len(self._expanded) if self._graph is None else self._graph.count()

    def sample(self, n: int, *, seed: int = 0) -> Matches:
        """Draw ``n`` matches uniformly with replacement, and return them in order of their number. The result is empty
        if there are no matches."""
        if self._graph is not None:
            return self._matches(self._graph.sample(n, seed))
        if not len(self._expanded):
            return self._expanded
        rng = Random(seed)  # noqa: S311
        drawn = sorted(rng.randrange(len(self._expanded)) for _ in range(n))
        records = self._expanded.found
        picked = records.take(np.array(drawn)) if isinstance(records, FoundColumns) else [records[i] for i in drawn]
        return self._expanded.with_found(picked)

    def matches(self, start: int = 0, *, limit: int) -> Matches:
        """Return at most ``limit`` matches from number ``start`` on (0 is the first), in order of match points.

        Those of one match point have an order of their own, the same in every run: that of other outputs is known only
        once all of them are made.
        """
        if self._graph is None:
            return self._expanded[start : start + limit]
        return self._matches(self._graph.cursor(start).next(limit))

    def __iter__(self) -> Iterator[Any]:
        """Iterate over all matches; they are made in blocks."""
        for block in self.blocks():
            yield from block

    def blocks(self, size: int = BLOCK) -> Iterator[Matches]:
        """Yield all matches in blocks of ``size``."""
        if self._graph is None:
            for start in range(0, len(self._expanded), size):
                yield self._expanded[start : start + size]
            return
        cursor = self._graph.cursor()
        while len(block := self._matches(cursor.next(size))):
            yield block

    def _matches(self, native_columns: dict[str, Any]) -> Matches:
        assert self._columns is not None
        return self._expanded.with_found(self._columns(native_columns))

    def __repr__(self) -> str:
        return f"Compressed({self.count():,} matches)"
