"""Keep rows of many partitions, each in its order, and take those of some partitions out again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

__all__ = ["KeptRows", "read_table", "table_bytes"]

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class KeptRows:
    """Rows with the codes of their partitions, in chunks that get smaller, so that adding rows costs little."""

    schema: pa.Schema
    chunks: tuple[tuple[pa.Table, Ints], ...] = ()

    def __len__(self) -> int:
        return sum(len(codes) for _, codes in self.chunks)

    def add(self, table: pa.Table, codes: Ints) -> KeptRows:
        """Return the rows with others behind them.

        >>> rows = KeptRows(pa.schema({"x": pa.int64()}))
        >>> for x in range(5):
        ...     rows = rows.add(pa.table({"x": [x]}), np.array([x % 2]))
        >>> [codes.tolist() for _, codes in rows.chunks]
        [[0, 1, 0, 1], [0]]
        """
        if not len(codes):
            return self
        chunks = [*self.chunks, (table, codes)]
        while len(chunks) > 1 and len(chunks[-2][1]) <= len(chunks[-1][1]):
            (earlier, earlier_codes), (later, later_codes) = chunks[-2:]
            merged = pa.concat_tables([earlier, later]).combine_chunks()
            chunks[-2:] = [(merged, np.concatenate([earlier_codes, later_codes]))]
        return KeptRows(self.schema, tuple(chunks))

    def take(self, is_taken: npt.NDArray[np.bool_]) -> tuple[pa.Table, Ints, KeptRows]:
        """Return the rows of the partitions whose codes have a flag, their codes, and the rows that stay."""
        taken, stay = [], list[tuple[pa.Table, Ints]]()
        for table, codes in self.chunks:
            flags = is_taken[codes]
            if not flags.any():
                stay.append((table, codes))
                continue
            taken.append((table.filter(pa.array(flags)), codes[flags]))
            if not flags.all():
                stay.append((table.filter(pa.array(~flags)), codes[~flags]))
        tables = [table for table, _ in taken] or [self.schema.empty_table()]
        all_codes = np.concatenate([np.zeros(0, np.int64), *(codes for _, codes in taken)])
        return pa.concat_tables(tables), all_codes, KeptRows(self.schema, tuple(stay))

    def whole(self) -> tuple[pa.Table, Ints]:
        """Return all rows, and their codes."""
        tables = [self.schema.empty_table(), *(table for table, _ in self.chunks)]
        return pa.concat_tables(tables), np.concatenate([np.zeros(0, np.int64), *(codes for _, codes in self.chunks)])


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
