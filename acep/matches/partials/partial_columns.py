"""Hold the live partial matches of a query as columns, as an engine lists them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from acep.matches.found_columns import FoundColumns
from acep.matches.records import Found

__all__ = ["PartialColumns", "sorted_columns"]

Ints = npt.NDArray[np.int64]

NONE = -1
"""In a column: there is no such number."""


@dataclass(frozen=True, eq=False)
class PartialColumns:
    """n partial matches, those last that were extended last.

    ``records`` has their keys, bound events and errors; the end of each is the time of its last event, and it has no
    bundle. ``states``: (n,) int64, the number of the state. ``sequences``: (n,) int64, for how many sequences of bound
    events each stands. ``utility``: (n,) int64, the utility bucket. ``total``: how many partial matches there are, of
    which these are the last. :data:`NONE` stands for a utility that there is not, and for numbers beyond 64 bits.
    """

    records: Sequence[Found]
    states: Ints
    sequences: Ints
    utility: Ints
    total: int

    def __len__(self) -> int:
        return len(self.states)

    @classmethod
    def of_rows(cls, rows: Sequence[tuple[Found, int]], total: int) -> PartialColumns:
        """Return partial matches that have one sequence each and no utility, as pairs of a record and a state."""
        states = np.array([state for _, state in rows], np.int64)
        single, no_utility = np.ones(len(rows), np.int64), np.full(len(rows), NONE)
        return cls([record for record, _ in rows], states, single, no_utility, total)

    def take(self, rows: slice | npt.NDArray[np.intp]) -> PartialColumns:
        """Return some of the partial matches."""
        if isinstance(rows, slice):
            records = self.records[rows]
        elif isinstance(self.records, FoundColumns):
            records = self.records.take(rows)
        else:
            records = [self.records[row] for row in rows.tolist()]
        columns = {name: getattr(self, name)[rows] for name in ("states", "sequences", "utility")}
        return replace(self, records=records, **columns)

    def with_keys(self, width: int) -> PartialColumns:
        """Return the same with the first ``width`` parts of the keys: those of a plan that runs as a finer one."""
        if isinstance(self.records, FoundColumns):
            return replace(self, records=replace(self.records, keys=self.records.keys[:width]))
        return replace(self, records=[replace(record, key=record.key[:width]) for record in self.records])


def sorted_columns(columns: PartialColumns, limit: int) -> PartialColumns:
    """Return the ``limit`` last partial matches, in the order of their last events, first events, ids and states."""
    errors = [record.error for record in columns.records]
    ends = [(record.end, record.start, record.trail) for record in columns.records]
    keys: list[Any] = list(zip(ends, columns.states.tolist(), errors, strict=True))
    rows = sorted(range(len(keys)), key=keys.__getitem__)
    return columns.take(np.array(rows[max(len(rows) - limit, 0) :], np.intp))
