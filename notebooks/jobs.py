"""The stream of the notebooks: recorded jobs of a cluster, or, where the notebooks stand alone, jobs made by chance."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

__all__ = ["jobs"]

RECORDED = "cluster_jobs.parquet"
SHIPPED = Path(__file__).resolve().parents[1] / "examples" / "data"
DAY = 24 * 3600.0


def jobs(events: int, seed: int = 5) -> pa.Table:
    """Return the first ``events`` events in order of time: ``ts`` (microseconds), ``type`` (SUBMIT, SCHEDULE, FINISH,
    FAIL or KILL), ``user`` and ``job_id``. They are recorded ones, from the folder ``ACEP_DATA`` or else
    ``examples/data``; if both lack the stream, they are generated.

    >>> jobs(100).num_rows
    100
    """
    files = [Path(folder) / RECORDED for folder in (os.environ.get("ACEP_DATA") or ".", SHIPPED)]
    file = next((file for file in files if file.is_file()), None)
    table = recorded(file) if file is not None else made(events // 3 + 1, seed)
    return table.slice(0, events)


def recorded(file: Path) -> pa.Table:
    """Return all events of the file."""
    table = pq.read_table(file, columns=["ts", "type", "user", "job_id", "arrival_seq"])
    return table.sort_by([("ts", "ascending"), ("arrival_seq", "ascending")]).drop_columns(["arrival_seq"])


def made(count: int, seed: int) -> pa.Table:
    """Generate the three events of each of ``count`` jobs. A few users have most jobs, and a few have most failures."""
    random = np.random.default_rng(seed)
    user = (24 * random.random(count) ** 2).astype(np.int64)
    failing = np.where(np.arange(24) % 6 == 1, 0.3, 0.02)[user]
    drawn = random.random(count)
    end = np.where(drawn < failing, "FAIL", np.where(drawn > 0.8, "KILL", "FINISH"))
    submit = np.sort(random.random(count)) * count * DAY / 30_000
    schedule = submit + random.exponential(5.0, count)
    ended = schedule + random.exponential(300.0, count)
    seconds = np.concatenate([submit, schedule, ended])
    order = np.argsort(seconds, kind="stable")
    return pa.table(
        {
            "ts": pa.array((seconds[order] * 1e6).astype(np.int64), pa.timestamp("us")),
            "type": np.concatenate([np.full(count, "SUBMIT"), np.full(count, "SCHEDULE"), end])[order],
            "user": np.array([f"user {u}" for u in range(24)])[np.tile(user, 3)[order]],
            "job_id": np.tile(np.arange(count), 3)[order],
        }
    )
