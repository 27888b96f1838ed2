"""Run a MATCH_RECOGNIZE clause on Spark's Python workers, over whole partitions of the clause at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from acep import __version__
from acep.events.tables import attribute_tick
from acep.native.compiled import sources
from acep.plan.ordered.ordered_plan import OrderedPlan
from acep.row_patterns.match_rows import match_tables, row_columns
from acep.row_patterns.result_table import arrow_values
from acep.row_patterns.row_values import Evaluator
from acep.spark.job import check_build

__all__ = ["SentClause", "add_keys", "match_sorted", "match_whole", "whole_partitions"]

AT_ONCE = 1 << 16
"""Rows that are matched at once, at least: Spark's Arrow batches have 10,000."""


@dataclass(frozen=True)
class SentClause:
    """A clause that is sent to Spark's workers. Its plan has no trees of sqlglot, which the workers may lack.

    ``columns``: the names of the columns that travel, in their order. ``keys``: the places of the columns that hold the
    keys of PARTITION BY. ``result``: the names of the result, each with the Arrow type to cast to (``None``: as it
    is). ``version`` and ``core`` are the build of the driver."""

    plan: OrderedPlan
    columns: tuple[str, ...]
    keys: tuple[int, ...]
    result: tuple[tuple[str, pa.DataType | None], ...]
    version: str = __version__
    core: str | None = field(default_factory=sources)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the clause on a worker, if it has the build of the driver."""
        check_build(state["version"], state["core"])
        self.__dict__.update(state)


def match_sorted(clause: SentClause, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the result of a clause over rows in which each partition of the clause is one stretch."""
    for table in whole_partitions(batches, clause.keys):
        yield from match_whole(clause, table)


def match_whole(clause: SentClause, table: pa.Table) -> Iterator[pa.RecordBatch]:
    """Yield the result of a clause over columns in the order in which they travel."""
    size = len(clause.columns)
    rows = table.select(range(size)).rename_columns([*clause.columns])
    for part in match_tables(clause.plan, rows):
        if part.num_rows:
            yield from _as_sent(clause, part).to_batches()


def _as_sent(clause: SentClause, part: pa.Table) -> pa.Table:
    """Return a result with the types that Spark expects, under names without signs that PySpark refuses."""
    arrays = [
        column if arrow_type is None or column.type == arrow_type else column.cast(arrow_type)
        for column, (_, arrow_type) in zip(part.columns, clause.result, strict=True)
    ]
    return pa.table(arrays, names=[f"c{i}" for i in range(len(arrays))])


def whole_partitions(batches: Iterable[pa.RecordBatch], keys: Sequence[int], size: int = AT_ONCE) -> Iterator[pa.Table]:
    """Yield tables that end where a partition ends, of at least ``size`` rows but for the last one.

    >>> rows = pa.RecordBatch.from_pydict({"k": [1, 1, 2, 3, 3]})
    >>> [table.column(0).to_pylist() for table in whole_partitions([rows, rows.slice(3)], [0], size=5)]
    [[1, 1, 2], [3, 3, 3, 3]]
    """
    pending: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        pending.append(batch)
        count += batch.num_rows
        if count < size or not keys:
            continue
        table = pa.Table.from_batches(pending)
        cut = _last_partition(table, keys)
        if cut:
            yield table.slice(0, cut)
            pending = table.slice(cut).to_batches()
            count -= cut
    if pending:
        yield pa.Table.from_batches(pending)


def _last_partition(table: pa.Table, keys: Sequence[int]) -> int:
    """Return the first row of the last partition, by bisection: its rows are the last ones."""
    columns = [table.column(key) for key in keys]
    last = [_comparable(column[table.num_rows - 1]) for column in columns]
    low, high = 0, table.num_rows - 1  # the last partition begins at ``low`` or later, and not after ``high``
    while low < high:
        middle = (low + high) // 2
        if all(_comparable(column[middle]) == value for column, value in zip(columns, last, strict=True)):
            high = middle
        else:
            low = middle + 1
    return low


def _comparable(value: Any) -> Any:
    """Return a value of Arrow that equals those of the same partition: NaN is null, and -0.0 is 0.0."""
    if not pa.types.is_floating(value.type):
        return value
    number = value.as_py()
    return None if number is None or number != number else number


def add_keys(clause: SentClause, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield rows with the values of the expressions of PARTITION BY as columns behind the others."""
    plan = clause.plan
    computed = dict(plan.computed)
    names = [name for name in dict.fromkeys(plan.partition) if name in computed]
    evaluator = Evaluator(attribute_tick(plan.schema))
    for batch in batches:
        rows = pa.Table.from_batches([batch]).rename_columns([*clause.columns])
        columns = row_columns(plan, rows, evaluator)
        arrays = [_key_values(arrow_values(columns[name], computed[name], evaluator)) for name in names]
        yield pa.RecordBatch.from_arrays(
            [*batch.columns, *arrays], names=[f"c{i}" for i in range(len(clause.columns) + len(names))]
        )


def _key_values(values: pa.Array) -> pa.Array:
    """Return values of a key of a type that Spark has; times count for themselves."""
    if pa.types.is_timestamp(values.type) or pa.types.is_duration(values.type):
        return values.cast(pa.int64())
    return values
