"""Run a MATCH_RECOGNIZE clause over a stream: each match is given once no row that may still come can change it.

Of each partition the rows are kept from the earliest start on whose match is not decided, and those before it that
conditions and measures read (docs/internals/row_patterns.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from acep.errors import QueryError
from acep.events.batch import Column
from acep.events.tables import attribute_tick
from acep.pattern.expressions import error_at
from acep.pattern.sql.clause_tree import RowsMode
from acep.plan.ordered.open_matches import add_open_matches, has_state, reach_ahead, reach_behind, reads_number
from acep.plan.ordered.ordered_plan import OrderedPlan
from acep.plan.ordered.pattern_states import StateKind
from acep.row_patterns.match_batch import MatchBatch
from acep.row_patterns.match_rows import SortedTable, match_table, result_tables, row_columns
from acep.row_patterns.partition_states import NEVER, PartitionStates
from acep.row_patterns.row_search import search_rows, window_of
from acep.row_patterns.row_values import Evaluator
from acep.row_patterns.search_limits import SearchLimits
from acep.row_patterns.sorted_rows import PartitionedRows, sort_rows

__all__ = ["ClauseStream", "check_stream", "time_column"]

Ints = npt.NDArray[np.int64]


def time_column(plan: OrderedPlan) -> str:
    """Return the column of event times: the first key of ORDER BY.

    Raises :class:`QueryError` if it is none on a stream."""
    check_stream(plan)
    return plan.order[0].column


def check_stream(plan: OrderedPlan) -> None:
    """Raise :class:`QueryError` for a clause that no stream can be searched for."""
    if not plan.order:
        hint = "add ORDER BY with the column of event times"
        raise QueryError("on a stream rows come in the order of time, and the clause has no ORDER BY", hint=hint,
                         code="query_invalid")  # fmt: skip
    key, written = plan.order[0], plan.clause.order[0]
    if key.is_descending or key.column not in plan.names:
        error = error_at("on a stream the first key of ORDER BY is the column of event times, ascending",
                         written.expression.span, "ORDER BY ts", code="query_invalid")  # fmt: skip
        error.located(plan.clause.text)
        raise error


class ClauseStream:
    """A clause over rows that come in the order of time. ``plan``: that of the clause; ``arrow``: the columns.

    Rows of the same time are in the order of the other keys, so they wait until time has passed where there are such
    keys."""

    def __init__(self, plan: OrderedPlan, arrow: pa.Schema) -> None:
        self.time = time_column(plan)
        self.plan = add_open_matches(plan)
        self.arrow = arrow
        self.behind, self.ahead = reach_behind(plan), reach_ahead(plan)
        self.ends_matter = has_state(plan, StateKind.END)
        self.numbers_matter = reads_number(plan)
        self.waiting = arrow.empty_table()
        self.kept = arrow.empty_table()  # rows that matches may still need, in the order of each partition
        self.kept_codes: Ints = np.zeros(0, np.int64)
        self.partitions = PartitionStates()

    def __len__(self) -> int:
        return self.waiting.num_rows + self.kept.num_rows

    def copy(self) -> ClauseStream:
        """Return a stream in the same state, which goes on alone."""
        other = ClauseStream.__new__(ClauseStream)
        vars(other).update(vars(self))
        other.partitions = self.partitions.copy()
        return other

    def empty_result(self) -> pa.Table:
        """Return the columns of the result, without rows."""
        return match_table(self.plan, self.arrow.empty_table())

    def push(self, rows: pa.Table | None, clock: int) -> pa.Table:
        """Take in the next rows, in the order of time; return the rows of matches that are decided. ``clock``: the
        earliest time, in ticks of the plan, that a row after these may have."""
        evaluator = Evaluator(attribute_tick(self.plan.schema))
        if rows is None or not rows.num_rows:
            fresh = self.arrow.empty_table()
        else:
            fresh = rows
        if len(self.plan.order) > 1:
            fresh = pa.concat_tables([self.waiting, fresh])
            times = row_columns(self.plan, fresh, evaluator)[self.time].values
            is_later = np.asarray(times) >= clock
            self.waiting, fresh = fresh.filter(pa.array(is_later)), fresh.filter(pa.array(~is_later))
        return self._search(fresh, evaluator, clock)

    def finish(self) -> pa.Table:
        """End the stream; return the rows of all matches that are left."""
        fresh, self.waiting = self.waiting, self.waiting.slice(0, 0)
        return self._search(fresh, Evaluator(attribute_tick(self.plan.schema)), None)

    def _search(self, fresh: pa.Table, evaluator: Evaluator, clock: int | None) -> pa.Table:
        """Search the partitions of fresh rows, and those whose windows are over (``clock`` ``None``: all, for the last
        time)."""
        plan = self.plan
        fresh_columns = row_columns(plan, fresh, evaluator)
        fresh_codes = self.partitions.add(plan.partition, fresh_columns, fresh.num_rows)
        touched = self.partitions.touched(fresh_codes, clock)
        is_searched = touched[self.kept_codes]
        if not fresh.num_rows and not is_searched.any():
            return self.empty_result()
        table = pa.concat_tables([self.kept.filter(pa.array(is_searched)), fresh])
        codes = np.concatenate([self.kept_codes[is_searched], fresh_codes])
        columns = row_columns(plan, table, evaluator) if table.num_rows > fresh.num_rows else fresh_columns
        rows = sort_rows(table.num_rows, plan.partition, plan.order, columns)
        sizes = np.diff(rows.partitions)
        partition_codes = codes[rows.order[rows.partitions[:-1]]]
        extended, open_rows, stops = self._with_open_rows(rows, sizes, clock)
        ordered = self._columns_in_order(columns, extended, open_rows, clock)
        limits = SearchLimits(
            self.partitions.starts[partition_codes], stops, self.partitions.numbers[partition_codes], open_rows
        )
        batches = list(search_rows(plan, extended, ordered, evaluator, limits))
        covered, covered_ends = self._covered(extended, partition_codes, limits, batches)
        tables = list(result_tables(plan, table, SortedTable(extended, ordered), evaluator, batches, covered))
        self._keep(table, rows, extended, partition_codes, is_searched, limits, covered_ends,
                   (*window_of(plan, ordered, evaluator.tick_ns), clock))  # fmt: skip
        return pa.concat_tables(tables)

    def _with_open_rows(
        self, rows: PartitionedRows, sizes: Ints, clock: int | None
    ) -> tuple[PartitionedRows, Ints, Ints]:
        """Return the rows with an open row in each partition, the places of these, and how many rows stand before each.

        It stands behind the rows of a partition, or in the place of the first of the last rows that are needed only as
        neighbours. At the end of the stream there is none."""
        begins, ends = rows.partitions[:-1], rows.partitions[1:]
        if clock is None:
            return rows, np.zeros(0, np.int64), sizes
        if self.ahead:
            stops = np.maximum(sizes - self.ahead, 0)
            return rows, begins + stops, stops
        order = np.insert(rows.order, ends, rows.order[ends - 1])
        partitions = rows.partitions + np.arange(len(rows.partitions))
        return PartitionedRows(order, partitions), partitions[1:] - 1, sizes

    def _columns_in_order(
        self, columns: dict[str, Column], rows: PartitionedRows, open_rows: Ints, clock: int | None
    ) -> dict[str, Column]:
        """Return the columns in the order of the rows. An open row that is none of the table has the least time that a
        row may have. The end of a partition may come at any time: where it matters, the window does not end."""
        ordered = {name: column.at(rows.order) for name, column in columns.items()}
        if clock is not None and not self.ahead and not self.ends_matter:
            column = ordered[self.time]
            times = np.asarray(column.values).copy()
            times[open_rows] = np.maximum(times[open_rows], clock)
            ordered[self.time] = replace(column, values=times)
        return ordered

    def _covered(
        self, rows: PartitionedRows, codes: Ints, limits: SearchLimits, batches: Sequence[MatchBatch]
    ) -> tuple[npt.NDArray[np.bool_], Ints]:
        """Return which rows WITH UNMATCHED ROWS does not give now, and how many rows of each partition stand before the
        end of its matches so far."""
        begins = rows.partitions[:-1]
        before = self.partitions.covered[codes]
        ends = before.copy()
        if self.plan.rows is not RowsMode.UNMATCHED:
            return np.zeros(len(rows), bool), ends
        covered = np.ones(len(rows), bool)
        firsts = begins + np.maximum(limits.starts, before)
        lasts = begins + limits.next_starts
        steps = np.zeros(len(rows) + 1, np.int64)
        np.add.at(steps, firsts, firsts < lasts)
        np.add.at(steps, lasts, -(firsts < lasts).astype(np.int64))
        covered[np.cumsum(steps[:-1]) > 0] = False
        for batch in batches:
            np.maximum.at(ends, batch.partition, batch.first + np.diff(batch.offsets) - begins[batch.partition])
        return covered, ends

    def _keep(
        self,
        table: pa.Table,
        rows: PartitionedRows,
        extended: PartitionedRows,
        codes: Ints,
        is_searched: npt.NDArray[np.bool_],
        limits: SearchLimits,
        covered_ends: Ints,
        window: tuple[Ints | None, int, int | None],
    ) -> None:
        """Keep the rows that later matches may need."""
        sizes = np.diff(rows.partitions)
        times, width, clock = window
        first_kept = sizes if clock is None else np.maximum(limits.next_starts - self.behind, 0)
        counts = sizes - first_kept
        places = np.arange(len(rows)) - np.repeat(rows.partitions[:-1] + first_kept, sizes) >= 0
        stays = ~is_searched
        self.kept = pa.concat_tables([self.kept.filter(pa.array(stays)), table.take(pa.array(rows.order[places]))])
        self.kept_codes = np.concatenate([self.kept_codes[stays], np.repeat(codes, counts)])
        deadlines = np.full(len(codes), NEVER)
        if times is not None and not self.ahead and not self.ends_matter and clock is not None:
            open_starts = limits.next_starts < sizes
            starts = extended.partitions[:-1] + limits.next_starts
            deadlines[open_starts] = np.minimum(times[starts[open_starts]], NEVER - width) + width
        self.partitions.settle(
            codes, limits.next_starts - first_kept, limits.last_numbers, np.maximum(covered_ends - first_kept, 0),
            deadlines, (counts == 0) & (not self.numbers_matter or clock is None),
        )  # fmt: skip

    def dump(self) -> dict[str, Any]:
        """Return the state as JSON-like data with bytes."""
        return {
            "waiting": table_bytes(self.waiting),
            "kept": table_bytes(self.kept),
            "codes": np.ascontiguousarray(self.kept_codes, "<i8").tobytes(),
            "partitions": self.partitions.dump(),
        }

    def load(self, data: Mapping[str, Any]) -> None:
        """Read the state of :meth:`dump`. Raises :class:`ValueError`, :class:`KeyError`, :class:`TypeError` or
        :class:`pyarrow.ArrowException` for other data."""
        waiting, kept = (read_table(data[name]).cast(self.arrow) for name in ("waiting", "kept"))
        codes = np.frombuffer(data["codes"], "<i8").astype(np.int64)
        partitions = PartitionStates.load(data["partitions"])
        counts = np.bincount(codes, minlength=len(partitions.starts)) if codes.min(initial=0) >= 0 else codes
        if len(codes) != kept.num_rows or len(counts) > len(partitions.starts) or (partitions.starts > counts).any():
            raise ValueError("codes")
        self.waiting, self.kept, self.kept_codes, self.partitions = waiting, kept, codes, partitions


def table_bytes(table: pa.Table) -> bytes:
    """Return a table as an Arrow IPC stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table.combine_chunks())
    return bytes(sink.getvalue().to_pybytes())


def read_table(data: Any) -> pa.Table:
    """Return the table of :func:`table_bytes`."""
    if not isinstance(data, bytes):
        raise ValueError("bytes")
    return pa.ipc.open_stream(data).read_all()
