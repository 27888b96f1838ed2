"""Bring rows of a stream into the order of a clause, with an open row in each partition: it stands for all to come."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from acep.events.batch import Column
from acep.plan.ordered.ordered_plan import OrderedPlan
from acep.row_patterns.row_search import bits_with_open_rows, local_bits
from acep.row_patterns.row_values import Evaluator
from acep.row_patterns.sorted_rows import PartitionedRows

__all__ = ["OpenPartitions", "open_partitions"]

Ints = npt.NDArray[np.int64]
Bits = npt.NDArray[np.uint8]


@dataclass
class OpenPartitions:
    """``rows`` of p partitions with ``codes`` (p,), in order, and ``extended``, the same with open rows at
    ``open_rows``; ``stops`` (p,): how many rows of each partition stand before its open row. ``columns`` and ``bits``
    (by variable: whether each row passes) are in the order of the extended rows."""

    rows: PartitionedRows
    codes: Ints
    extended: PartitionedRows
    open_rows: Ints
    stops: Ints
    columns: dict[str, Column]
    bits: dict[str, Bits] = field(default_factory=dict)

    def set_times(self, name: str, clock: int) -> None:
        """Give the open rows the time at which the next rows may come."""
        column = self.columns[name]
        times = np.array(column.values, np.int64)
        times[self.open_rows] = np.maximum(times[self.open_rows], clock)
        self.columns[name] = replace(column, values=times)

    def add_bits(self, plan: OrderedPlan, evaluator: Evaluator) -> None:
        """Compute the conditions of single rows."""
        bits = local_bits(plan, self.extended, self.columns, evaluator)
        self.bits = bits_with_open_rows(plan, bits, self.open_rows, len(self.extended))

    def last_places(self, counts: Ints) -> Ints:
        """Return the places, among the rows, of the last ones of each partition, so many of each."""
        ends = self.rows.partitions[1:]
        steps = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
        return np.repeat(ends - counts, counts) + steps


def open_partitions(
    rows: PartitionedRows, codes: Ints, columns: Mapping[str, Column], *, ahead: int, is_last: bool
) -> OpenPartitions:
    """Return rows with open rows. ``codes``: (n,) the code of the partition of each row of the table.

    An open row stands behind the rows of its partition, or in the place of the first of the last ``ahead`` rows, which
    are read as neighbours only. At the end of the stream (``is_last``) there is none."""
    begins, ends = rows.partitions[:-1], rows.partitions[1:]
    sizes = ends - begins
    extended, stops = rows, sizes
    open_rows = np.zeros(0, np.int64)
    if not is_last and ahead:
        stops = np.maximum(sizes - ahead, 0)
        open_rows = begins + stops
    elif not is_last:
        partitions = rows.partitions + np.arange(len(rows.partitions))
        extended = PartitionedRows(np.insert(rows.order, ends, rows.order[ends - 1]), partitions)
        open_rows = partitions[1:] - 1
    ordered = {name: column.take(extended.order) for name, column in columns.items()}
    return OpenPartitions(rows, codes[rows.order[begins]], extended, open_rows, stops, ordered)
