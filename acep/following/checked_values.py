"""Check the values of the files of a micro-batch before its plan is recorded, so that a refused one leaves no trace."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from acep.errors import DataError
from acep.events.columns import column_of, ticks_of
from acep.events.fields import column_at
from acep.events.tables import attribute_tick
from acep.following.inbox import ROW
from acep.plan.schema import Kind
from acep.streaming.job import Job, columns_read

__all__ = ["check_values"]


def check_values(job: Job, rows: pa.Table, path: Path) -> None:
    """Raise :class:`DataError` for a value of a file that the job cannot compute with, such as an integer beyond 64
    bits."""
    try:
        if job.clause is not None:
            from acep.row_patterns.match_rows import check_values as check_clause_values

            check_clause_values(job.clause.plan, rows)
            return
        ticks_of(job.schema.ts, rows.column(job.schema.ts), job.schema.tick_ns or 1)
        tick = attribute_tick(job.schema) or 1
        names = {*job.columns} if job.has_rules else columns_read(job.plans, job.schema)
        for name in names - {job.schema.ts, ROW}:
            kind, column = job.schema.kind(name), column_at(rows, name)
            if kind not in (None, Kind.STRING) and column is not None:
                column_of(name, column, kind, tick, job.schema.scale(name))
    except DataError as error:
        raise DataError(f"{path}: {error.message}", hint=error.hint, code=error.code) from None
