"""Run plans without partitions over a whole table as one session, on several threads: each has a slice of the rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from acep.events.pushed_rows import Ints, Types, Valid, Words
from acep.native import _native
from acep.native.lanes import Lanes
from acep.plan.choice import COUNTED, base_engine

__all__ = ["Slices", "slices_of"]


@dataclass
class Slices(Lanes):
    """The slices of a table in place of its session, which is pushed once. Each is a session that gets the rows of a
    slice, and before them those of a window, ``span``, that matches of the slice may hold. What is found in the rows
    before is dropped: it is that of the slice before.

    ``engines`` are those of the plans. Matches must be decided by their last event, and not depend on others but by
    their bundles, which whoever takes them has to chain. ``used``: how many slices there were.
    """

    span: int = 0
    engines: Sequence[str] = ()
    used: int = 1
    before: list[list[tuple[int, int, int]]] = field(default_factory=list)  # the work for the rows before, by plan
    totals: list[list[tuple[int, int]]] = field(default_factory=list)  # what was counted there, by plan

    def __post_init__(self) -> None:
        """Do nothing: each session runs all partitions, of which there is one."""

    def push(self, ts: Ints, types: Types, valid: Valid, ids: Any, columns: list[Words], *, last: bool = False) -> None:
        """Push the table."""
        slices = slices_of(ts, self.span, len(self.cores) if len(ts) >= self.few else 1)
        self.used = len(slices)
        self.cores = self.cores[: self.used]

        def push(ranges: Sequence[tuple[int, int]]) -> None:
            _native.push_ranges(self.cores, self.threads, ranges, ts, types, valid, ids, columns, last)

        for core, (first, _, _) in zip(self.cores, slices, strict=True):
            core.begin_at(first)
        push([(first, begin) for first, begin, _ in slices])
        numbers = range(len(self.engines))
        self.before = [[core.work(number) for core in self.cores] for number in numbers]
        self.totals = [self._drop(number) for number in numbers]
        push([(begin, end) for _, begin, end in slices])

    def _drop(self, plan: int) -> list[tuple[int, int]]:
        """Drop what a plan has found so far; return the totals that it has counted, by error."""
        engine = base_engine(self.engines[plan])
        totals = [pair for core in self.cores for pair in core.count_totals(plan)] if engine in COUNTED else []
        for core in self.cores:
            core.take(plan)
            if engine in COUNTED:
                core.take_counts(plan, last=True)
            elif engine == "nodes":
                core.take_tally(plan)
        return totals

    def count_totals(self, plan: int) -> list[tuple[int, int]]:
        """Return pairs of an error and a number of matches, of which those in the rows before are taken off."""
        if not self.totals:
            return super().count_totals(plan)
        return [*super().count_totals(plan), *((error, -number) for error, number in self.totals[plan])]

    def work(self, plan: int) -> tuple[int, int, int]:
        """Return the work done for a plan in the rows of the slices."""
        nodes, touches, matches = self._sums(lambda core: core.work(plan))
        if not self.before:
            return nodes, touches, matches
        before = [sum(numbers) for numbers in zip(*self.before[plan], strict=True)]
        return nodes - before[0], touches - before[1], matches - before[2]


def slices_of(ts: Ints, span: int, limit: int) -> list[tuple[int, int, int]]:
    """Return at most ``limit`` slices of rows at rising times, which share them evenly: the first row that a window may
    hold that ends in the slice, the first row of the slice, and the one behind it.

    There are fewer where the rows before a slice would be more than half of its own.

    >>> slices_of(np.arange(100), span=10, limit=3), slices_of(np.arange(100), span=60, limit=3)
    ([(0, 0, 33), (23, 33, 66), (56, 66, 100)], [(0, 0, 100)])
    """
    for number in range(limit, 1, -1):
        begins = [len(ts) * k // number for k in range(number)]
        earliest = [max(int(ts[begin]) - span, -(2**63)) for begin in begins]
        firsts = [0, *np.searchsorted(ts, np.array(earliest[1:], np.int64)).tolist()]
        slices = [*zip(firsts, begins, [*begins[1:], len(ts)], strict=True)]
        if all(2 * (begin - first) <= end - begin for first, begin, end in slices):
            return slices
    return [(0, 0, len(ts))]
