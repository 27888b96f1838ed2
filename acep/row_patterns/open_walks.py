"""Walk open matches of a stream on over new rows, so that they are not searched for anew from their first row."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from acep.native import compiled
from acep.plan.ordered.ordered_plan import OrderedPlan
from acep.plan.ordered.row_references import LABEL, Navigation
from acep.row_patterns.native_search import MEMORY, lower_plan, make_search
from acep.row_patterns.open_rows import OpenPartitions
from acep.row_patterns.row_values import Evaluator
from acep.row_patterns.search_limits import SearchLimits

__all__ = ["OpenWalks", "reads_labels"]

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


def reads_labels(plan: OrderedPlan) -> bool:
    """Return whether conditions read labels of rows, which are not kept of open matches."""
    references = (plan.references[number] for condition in plan.conditions for number in condition.references)
    return any(isinstance(reference, Navigation) and reference.column == LABEL for reference in references)


class OpenWalks:
    """The open matches of a stream that are walked on.

    Where conditions read rows and their neighbours alone, a match is the state at which it waits. Else ``bound`` keeps
    in the native core what its rows have bound, by the codes of partitions; the texts in it have the codes of
    ``evaluator``."""

    def __init__(self, plan: OrderedPlan, evaluator: Evaluator) -> None:
        self.plan, self.evaluator = plan, evaluator
        self.is_local = all(condition.is_local for condition in plan.conditions)
        self.bound: Any = None
        self._tables: Any = None  # of the plan, for ``bound``

    def begin(self, opened: OpenPartitions, limits: SearchLimits, behind: int, goes_on: Flags) -> Ints:
        """Take in the open matches of partitions with a flag; return the state at which each waits (-1: it does not
        wait). ``behind``: the rows before a match that conditions read."""
        if not (goes_on.any() or self.bound):
            return np.full(len(goes_on), -1, np.int64)
        if self.is_local:
            return self._states(opened, limits.next_starts, np.where(goes_on, 0, -1))
        if limits.open_labels is None:  # without a native core, or with conditions that it has not
            return np.full(len(goes_on), -1, np.int64)
        tables = lower_plan(self.plan, opened.columns, self.evaluator)
        assert tables is not None
        if tables is not self._tables or self.bound is None:
            from acep.native import _native

            self.bound, self._tables = _native.BoundWalks(make_search(tables)), tables
        waits: npt.NDArray[np.uint8] = self.bound.begin(
            tables.words(opened.columns),
            np.ascontiguousarray(opened.extended.partitions),
            self.evaluator.codes.texts,
            np.ascontiguousarray(opened.codes),
            np.where(goes_on, limits.next_starts, -1),
            behind,
            limits.last_numbers + 1,
            *limits.open_labels,
        )
        return waits.astype(np.int64) - 1

    def walk(self, opened: OpenPartitions, earlier: Ints, ahead: int, waits: Ints) -> Ints:
        """Walk on over rows of partitions, of which the first ``earlier`` ones came before; return the state at which
        each match waits (-1: it is decided, or must be searched for)."""
        if self.is_local:
            return self._states(opened, earlier - ahead, waits)
        still_open: npt.NDArray[np.uint8] = self.bound.walk(
            self._tables.words(opened.columns),
            [np.ascontiguousarray(opened.bits[name]) for name, _ in self.plan.states.labels],
            np.ascontiguousarray(opened.extended.partitions),
            self.evaluator.codes.texts,
            np.ascontiguousarray(opened.codes),
            np.ascontiguousarray(earlier),
            MEMORY,
        )
        return still_open.astype(np.int64) - 1

    def _states(self, opened: OpenPartitions, positions: Ints, states: Ints) -> Ints:
        """Return for each partition the state at which its open match waits, where it stood before a position at a
        state (-1: it is not walked)."""
        core = compiled.native()
        if core is None:
            return np.full(len(states), -1, np.int64)
        local = [np.ascontiguousarray(opened.bits[name]) for name, _ in self.plan.states.labels]
        places = list(zip(positions.tolist(), states.tolist(), strict=True))
        partitions = np.ascontiguousarray(opened.extended.partitions)
        waiting: Ints = core.walk_open(list(self.plan.states.states), local, partitions, places, MEMORY)
        return waiting
