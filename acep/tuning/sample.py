"""Draw a sample of a stream to replay: whole partitions by the hash of their key, or else the first events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from acep.errors import QueryError
from acep.events.buffers import selectable
from acep.events.hashes import hashes_of_columns
from acep.events.tables import batch_of
from acep.plan.compile import Plan

__all__ = ["SAMPLE", "Sample", "draw", "first_events"]

SAMPLE = 50_000
"""The events of a sample, where its size is not given."""

LARGEST = 1.5  # a last partition that makes the sample larger than this, in parts of its size, is left out

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Sample:
    """The events of a sample as a ``table`` in stream order, of a stream of ``whole`` events, and how it was drawn in
    words. ``partitions``: the number of whole partitions in it (0: it is the beginning of the stream). ``seconds``:
    what the clock of the whole stream says that an event takes on average (``None``: unknown)."""

    table: pa.Table
    whole: int
    how: str
    partitions: int = 0
    seconds: float | None = None

    @property
    def events(self) -> int:
        """Return the number of events."""
        return int(self.table.num_rows)

    def cut(self, events: int) -> Sample:
        """Return only the first events of the sample."""
        how = f"{self.how}, cut to the first {events:,} events, as all take too much work"
        return replace(self, table=self.table.slice(0, events), how=how)


def draw(table: pa.Table, plan: Plan, size: object = None) -> Sample:
    """Draw a sample of about ``size`` events (a whole number, or a share below 1; :data:`SAMPLE` by default).

    Partitions are taken whole, in the order of a hash of their key, so that each is as likely as another. The first
    events are taken where there are no partitions, where positions count the whole stream, in composed queries, and
    where one partition is larger than the sample. Raises :class:`QueryError` for a size that is none.

    >>> import acep
    >>> from acep.events.tables import schema_of
    >>> from acep.plan.compile import compile_query
    >>> table = pa.table({"ts": [3, 1, 2, 4], "type": list("abab"), "k": [1, 2, 1, 2]})
    >>> plan = compile_query(acep.parse("PATTERN SEQ(a x, b y) WHERE [k] WITHIN 5"), schema_of(table.schema))
    >>> drawn = draw(table, plan, 2)
    >>> drawn.how, drawn.events, len(set(drawn.table["k"].to_pylist()))
    ('1 of 2 partitions, whole, by the hash of k', 2, 1)
    """
    table, max_events = selectable(table), _size(size, table.num_rows)
    schema = replace(plan.schema, id=None)  # so that ids are row numbers
    keys = () if plan.sources else plan.keys
    batch = batch_of(table, schema, keys)
    order: Rows = np.asarray(batch.ids, np.int64)
    span = 0 if len(batch) < 2 else int(batch.ts[-1] - batch.ts[0])
    seconds = None if schema.tick_ns is None or not span else float(span * schema.tick_ns) / 1e9 / len(batch)
    if len(batch) <= max_events:
        return Sample(table.take(pa.array(order)), table.num_rows, "the whole stream", seconds=seconds)
    why = "the query has no partition attributes"
    if plan.sources:
        why = "the query is over the matches of others"
    elif plan.strict:
        why = "positions count the whole stream"
    elif keys:
        valid = np.ones(len(batch), bool)
        for name in keys:
            validity = batch.columns[name].valid
            valid &= True if validity is None else validity != 0
        rows, n_taken, n_partitions = _partitions([batch.columns[name] for name in keys], valid, max_events)
        if n_taken:
            how = f"{n_taken:,} of {n_partitions:,} partitions, whole, by the hash of {', '.join(keys)}"
            return Sample(table.take(pa.array(order[rows])), table.num_rows, how, n_taken, seconds)
        why = "the first partition by its hash is larger than the sample" if n_partitions else "every key is null"
    return Sample(
        table.take(pa.array(order[:max_events])), table.num_rows, f"the first events, as {why}", seconds=seconds
    )


def first_events(table: pa.Table, share: float) -> tuple[pa.Table, pa.Table]:
    """Return a table in two parts, the first with a ``share`` of the rows."""
    border = int(share * table.num_rows)
    return table.slice(0, border), table.slice(border)


def _partitions(columns: Sequence[Any], valid: npt.NDArray[np.bool_], max_events: int) -> tuple[Rows, int, int]:
    """Return the places of the events of whole partitions, the number of these, and that of all partitions."""
    hashes = hashes_of_columns(columns, len(valid))
    rows = np.flatnonzero(valid)
    if not len(rows):
        return rows, 0, 0
    _, partition, size = np.unique(hashes[rows], return_inverse=True, return_counts=True)  # rising hashes
    sizes_so_far = np.cumsum(size)
    n_taken = int(np.searchsorted(sizes_so_far, max_events, "right"))
    is_small = n_taken == 0 or sizes_so_far[n_taken - 1] < max_events / 2
    if n_taken < len(sizes_so_far) and is_small and sizes_so_far[n_taken] <= LARGEST * max_events:
        n_taken += 1
    return rows[partition.ravel() < n_taken], n_taken, len(size)


def _size(size: object, events: int) -> int:
    if size is None:
        return SAMPLE
    if not isinstance(size, bool) and isinstance(size, Integral) and int(size) > 0:
        return int(size)
    if not isinstance(size, bool) and isinstance(size, Real) and 0 < float(size) < 1:
        return max(1, int(float(size) * events))
    raise QueryError(
        f"sample={size!r} is no size of a sample", hint="a number of events, or a share below 1", code="option_invalid"
    )
