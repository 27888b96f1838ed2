"""Keep rows of many partitions, each in its order, and take those of some partitions out again."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

__all__ = ["KeptRows"]

Ints = npt.NDArray[np.int64]


FEW = 256
"""Rows that take less time to copy than a chunk of their own costs."""
TAKEN = -1
"""The code of a row that was taken out and still stands in its chunk."""


@dataclass(frozen=True)
class KeptRows:
    """Rows with the codes of their partitions, in chunks that get smaller, so that adding rows costs little. Rows that
    were taken out stay where they are until they are more than half of a chunk, so that taking a few costs little."""

    schema: pa.Schema
    chunks: tuple[tuple[pa.Table, Ints], ...] = ()

    def __len__(self) -> int:
        return sum(int(np.count_nonzero(codes != TAKEN)) for _, codes in self.chunks)

    def size(self) -> int:
        """Return the bytes of the rows, those that were taken out and still stand in a chunk among them."""
        return sum(table.nbytes for table, _ in self.chunks)

    def compact(self) -> KeptRows:
        """Return the rows without those that were taken out and still stand in a chunk."""
        return KeptRows(self.schema, tuple(map(drop_taken, self.chunks)))

    def add(self, table: pa.Table, codes: Ints) -> KeptRows:
        """Return the rows with others behind them.

        >>> rows = KeptRows(pa.schema({"x": pa.int64()}))
        >>> for x in range(5):
        ...     rows = rows.add(pa.table({"x": [x] * 300}), np.full(300, x))
        >>> [np.unique(codes).tolist() for _, codes in rows.chunks]
        [[0, 1, 2, 3], [4]]
        """
        if not len(codes):
            return self
        chunks = [*self.chunks, (table, codes)]
        while len(chunks) > 1 and len(chunks[-2][1]) <= max(len(chunks[-1][1]), FEW):
            (earlier, earlier_codes), (later, later_codes) = map(drop_taken, chunks[-2:])
            merged = pa.concat_tables([earlier, later]).combine_chunks()
            chunks[-2:] = [(merged, np.concatenate([earlier_codes, later_codes]))]
        return KeptRows(self.schema, tuple(chunks))

    def take(self, is_taken: npt.NDArray[np.bool_]) -> tuple[pa.Table, Ints, KeptRows]:
        """Return the rows of the partitions whose codes have a flag, their codes, and the rows that stay.

        >>> rows = KeptRows(pa.schema({"x": pa.int64()})).add(pa.table({"x": [*range(5)]}), np.arange(5))
        >>> table, codes, rows = rows.take(np.arange(5) == 3)
        >>> table["x"].to_pylist(), codes.tolist(), len(rows), rows.all_rows()[1].tolist()
        ([3], [3], 4, [0, 1, 2, 4])
        """
        if not self.chunks:
            return self.schema.empty_table(), np.zeros(0, np.int64), self
        taken, stay = [], list[tuple[pa.Table, Ints]]()
        is_taken = np.append(is_taken, False)  # the last one: of rows that were taken before
        for table, codes in self.chunks:
            places = np.flatnonzero(is_taken[codes])
            if not len(places):
                stay.append((table, codes))
                continue
            taken.append((table.take(pa.array(places)), codes[places]))
            if len(codes) <= FEW:
                if len(places) < len(codes):
                    stays = ~is_taken[codes]
                    stay.append(drop_taken((table.filter(pa.array(stays)), codes[stays])))
                continue
            left = codes.copy()
            left[places] = TAKEN
            if 2 * np.count_nonzero(left == TAKEN) <= len(left):
                stay.append((table, left))
            elif (left != TAKEN).any():
                stay.append(drop_taken((table, left)))
        tables = [table for table, _ in taken] or [self.schema.empty_table()]
        all_codes = np.concatenate([np.zeros(0, np.int64), *(codes for _, codes in taken)])
        return pa.concat_tables(tables), all_codes, KeptRows(self.schema, tuple(stay))

    def all_rows(self) -> tuple[pa.Table, Ints]:
        """Return all rows, and their codes."""
        chunks = [drop_taken(chunk) for chunk in self.chunks]
        tables = [self.schema.empty_table(), *(table for table, _ in chunks)]
        return pa.concat_tables(tables), np.concatenate([np.zeros(0, np.int64), *(codes for _, codes in chunks)])


def drop_taken(chunk: tuple[pa.Table, Ints]) -> tuple[pa.Table, Ints]:
    """Return the rows of a chunk that were not taken out."""
    table, codes = chunk
    stays = codes != TAKEN
    return chunk if stays.all() else (table.filter(pa.array(stays)), codes[stays])
