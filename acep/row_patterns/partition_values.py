"""Compute aggregates over all rows of each partition, as columns of the rows."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from acep.events.batch import Column
from acep.plan.ordered.ordered_plan import OrderedPlan
from acep.plan.ordered.row_references import RowAggregate
from acep.plan.schema import Kind
from acep.row_patterns.segment_aggregates import aggregate_values
from acep.row_patterns.sorted_rows import sort_rows

__all__ = ["partition_values"]


def partition_values(plan: OrderedPlan, columns: Mapping[str, Column], size: int) -> dict[str, Column]:
    """Return the columns of a plan's aggregates over partitions, for ``size`` rows in the order of the table."""
    rows = sort_rows(size, plan.partition, (), columns)
    lows, highs = rows.partitions[:-1], rows.partitions[1:]
    partition_of_row = np.empty(size, np.int64)
    partition_of_row[rows.order] = np.repeat(np.arange(len(lows)), highs - lows)
    values: dict[str, Column] = {}
    for window, _ in plan.windows:
        if window.column is None:
            values[window.name] = Column(Kind.INT, (highs - lows)[partition_of_row])
            continue
        reference = RowAggregate(window.function, window.column, None, texts=window.texts)
        ordered = columns[window.column].take(rows.order)
        values[window.name] = aggregate_values(reference, [ordered], lows, highs).take(partition_of_row)
    return values
