"""Give matches as Arrow record batches, made one at a time on demand, in bounded memory."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from acep.errors import memory_errors
from acep.matches.arrow import record_batch, split_matches
from acep.matches.matches import Matches, Report
from acep.matches.records import Counts, Found

__all__ = ["ROWS", "Batches", "Blocks"]

ROWS = 1 << 14  # about how many matches are given at a time

Blocks = Iterator[tuple[Sequence[Found], Counts]]


class Batches(Iterator[pa.RecordBatch]):
    """The matches of one query, batch by batch, in output order; they can be read once.

    ``schema`` is that of every batch: the columns of :meth:`Matches.to_arrow`, with ``error`` as float64 if weights
    are fractional. ``report`` says what the run has done so far. Any reader of Arrow streams can read this object
    (``pyarrow.RecordBatchReader.from_stream``, polars, DuckDB). The memory of a released batch is used again.

    >>> import acep
    >>> rows = {"ts": range(200), "type": ["a", "b"] * 100}
    >>> batches = acep.match(rows, acep.regex("ab", within=150), output="batches")
    >>> sum(batch.num_rows for batch in batches), batches.report.matches
    (4725, 4725)
    """

    def __init__(self, blocks: Blocks, like: Matches, fractional: bool) -> None:
        self._like = like
        self._fractional = fractional
        self._counts = Counts()
        self._seconds = 0.0
        self.schema: pa.Schema = record_batch([], like, fractional).schema
        self._batches = self._make_batches(blocks)

    def __next__(self) -> pa.RecordBatch:
        started = time.perf_counter()
        try:
            with memory_errors():
                return next(self._batches)
        finally:
            self._seconds += time.perf_counter() - started

    @property
    def report(self) -> Report:
        """Return the report of the work done so far."""
        return Report.of(self._counts, self._seconds)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return pa.RecordBatchReader.from_batches(self.schema, self).__arrow_c_stream__(requested_schema)

    def _make_batches(self, blocks: Blocks) -> Iterator[pa.RecordBatch]:
        for records, self._counts in blocks:
            for start in range(0, len(records), 2 * ROWS):
                for part in split_matches(records[start : start + 2 * ROWS], 1 << 22):
                    batch = record_batch(part, self._like, self._fractional)
                    yield batch if batch.schema == self.schema else batch.cast(self.schema)
