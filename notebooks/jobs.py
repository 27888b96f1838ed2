"""The stream of several notebooks: jobs of a computing cluster, of examples/data."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

__all__ = ["jobs"]

FILE = Path(__file__).resolve().parents[1] / "examples" / "data" / "cluster_jobs.parquet"


def jobs(events: int) -> pa.Table:
    """Return the first ``events`` events in order of time: ``ts`` (microseconds), ``type`` (SUBMIT, SCHEDULE, FINISH,
    FAIL or KILL), ``user`` and ``job_id``.

    >>> jobs(100).num_rows
    100
    """
    table = pq.read_table(FILE, columns=["ts", "type", "user", "job_id", "arrival_seq"])
    return table.sort_by([("ts", "ascending"), ("arrival_seq", "ascending")]).drop_columns(["arrival_seq"])[:events]
