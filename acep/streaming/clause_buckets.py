"""A bucket of a MATCH_RECOGNIZE clause: all partitions that share a hash."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from acep.arrivals.arrivals import Arrivals
from acep.errors import SnapshotError
from acep.events.buffers import selectable
from acep.row_patterns.clause_stream import ClauseStream
from acep.row_patterns.partition_choice import ClauseBudget
from acep.row_patterns.revised_clause import RevisedClause
from acep.storage.snapshot import seal, unseal
from acep.streaming.buckets import Bucket
from acep.streaming.job import Job
from acep.streaming.revised_rows import sort_by_arrival

__all__ = ["ClauseBucket", "ClauseRows"]

BEGINNING = -(2**62)  # before all times


class ClauseRows:
    """The stream of a bucket, in place of a :class:`acep.runtime.stream.Stream`. The columns of the first rows are
    ``arrow``. ``data``: a snapshot to go on with."""

    def __init__(self, job: Job, data: bytes | None = None) -> None:
        assert job.clause is not None
        self.job, self.clause = job, job.clause
        self.arrow: pa.Schema | None = None
        self.revised: RevisedClause | None = None
        if data is not None:
            self._load(unseal(data, job.fingerprint))

    def begin(self, arrow: pa.Schema) -> RevisedClause:
        """Start with rows of these columns."""
        job = self.job
        self.arrow = arrow.remove_metadata()
        columns = selectable(pa.schema([self.arrow.field(name) for name in self.clause.columns]).empty_table()).schema
        duplicates = None if job.op is None else job.duplicates
        arrivals = Arrivals(self.arrow, job.schema, "inf", job.op, duplicates=duplicates)  # the watermark says the rest
        plan, choice = self.clause.plan, None
        if job.budget is not None:
            choice = ClauseBudget(job.budget, job.policy, job.seed).make_choice(plan, job.schema)
        self.revised = RevisedClause(ClauseStream(plan, columns, choice), arrivals, job.ahead, self._select)
        return self.revised

    def _select(self, rows: pa.Table) -> pa.Table:
        return self.clause.select(rows)

    @property
    def live(self) -> int:
        """Return the number of rows that matches may still need."""
        return 0 if self.revised is None else len(self.revised.stream)

    @property
    def changes(self) -> tuple[int, int]:
        """Return how many rows of the result have come and were not taken back, and how many were."""
        return (0, 0) if self.revised is None else (self.revised.matches, self.revised.retracted)

    def snapshot(self) -> bytes:
        """Return the state as bytes."""
        state: dict[str, Any] = {"arrow": None}
        if self.revised is not None and self.arrow is not None:
            state |= {"arrow": bytes(self.arrow.serialize().to_pybytes()), "revised": self.revised.dump()}
        return seal(state, self.job.fingerprint)

    def _load(self, state: Any) -> None:
        try:
            if state["arrow"] is not None:
                self.begin(pa.ipc.read_schema(pa.py_buffer(state["arrow"]))).load(state["revised"])
        except (KeyError, TypeError, ValueError, AttributeError, pa.ArrowException, OSError):
            raise SnapshotError("the state of a bucket does not hold rows of a clause", code="state_damaged") from None


class ClauseBucket(Bucket):
    """The state of one bucket of a job with a clause."""

    rows_of_clause: ClauseRows

    def _make_stream(self, engine: bytes | None) -> Any:
        self.rows_of_clause = ClauseRows(self.job, engine)
        return self.rows_of_clause

    def advance(self, before: int | None) -> list[pa.Table]:
        """Return the rows of the result that are certain once no row with ``ts < before`` (ticks) can come."""
        if self.ended:
            return []
        self._leave_out_repeats()
        self._checked = len(self.hold_back)
        if before is None or (self.hold_back.released is not None and before <= self.hold_back.released):
            return []
        rows = self.hold_back.release(before)
        self._checked = len(self.hold_back)
        return self._search(rows, before, at_once=False)

    def revise(self, before: int | None, *, at_once: bool) -> list[pa.Table]:
        """Return the rows of the result that come and go with the rows that were added, of a ``revised`` job."""
        if self.ended:
            return []
        self._leave_out_repeats()
        rows = self.hold_back.drain()
        self._checked = 0
        return self._search(rows, before, at_once=at_once)

    def _search(self, rows: pa.Table | None, before: int | None, *, at_once: bool) -> list[pa.Table]:
        """Take in rows, and the time before which no more come (``None``: any may)."""
        source, job = self.rows_of_clause, self.job
        if rows is not None and job.op is not None:
            rows, duplicates = sort_by_arrival(job, self.part.keys, rows)
            self.totals.duplicates += duplicates
            self.totals.events -= duplicates
        revised = source.revised
        if revised is None and rows is None:
            return []
        if revised is None:
            assert rows is not None
            revised = source.begin(rows.schema)
        if job.revised and job.ahead is not None:
            revised.ahead = None if at_once else job.ahead
        if rows is not None:
            late, duplicates = revised.arrivals.late_count, revised.arrivals.duplicates
            revised.arrivals.push(rows)  # nothing is due before time has passed
            late, duplicates = revised.arrivals.late_count - late, revised.arrivals.duplicates - duplicates
            self.totals.late, self.totals.duplicates = self.totals.late + late, self.totals.duplicates + duplicates
            self.totals.events -= late + duplicates
            if job.budget is not None and job.budget.work is not None:
                self.totals.allowance += job.budget.work * (rows.num_rows - late - duplicates)
        due = revised.arrivals.advance((BEGINNING if before is None else before) - 1)
        return self._count_rows(revised.push(due, before))

    def finish(self) -> list[pa.Table]:
        """End the stream and return the remaining rows of the result."""
        if self.ended:
            return []
        self._leave_out_repeats()
        rows, self._checked = self.hold_back.drain(), 0
        out = self._search(rows, None, at_once=True) if rows is not None else []
        if self.rows_of_clause.revised is not None:
            out += self._count_rows(self.rows_of_clause.revised.finish())
        self.stream = self._make_stream(None)
        self.ended = True
        return out

    def _count_rows(self, rows: pa.Table) -> list[pa.Table]:
        counts, (matches, retracted) = self.totals.queries[0], self.rows_of_clause.changes
        counts.matches, counts.retracted = matches, retracted
        revised = self.rows_of_clause.revised
        if revised is not None and revised.stream.choice is not None:
            self.totals.queries[0] = counts = revised.stream.choice.add_to(counts)
            self.totals.memory = max(self.totals.memory, counts.memory)
        return [rows] if rows.num_rows else []
