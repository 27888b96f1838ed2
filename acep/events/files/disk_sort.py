"""Sort tables on disk in bounded memory: write sorted runs as Arrow streams, and merge them some rows at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

__all__ = ["sort_on_disk"]

RUN = 24 << 20  # bytes of a run
ROWS = 1 << 14  # rows of a run that are in memory while runs are merged
FAN = 48  # runs that are merged at once


def sort_on_disk(tables: Iterator[pa.Table], keys: Sequence[str], folder: Path) -> Iterator[pa.Table]:
    """Yield the rows of tables of one schema in the order of ``keys``, which must be unique.

    >>> import tempfile
    >>> parts = [pa.table({"t": [3, 1], "row": [0, 1]}), pa.table({"t": [2, 1], "row": [2, 3]})]
    >>> with tempfile.TemporaryDirectory() as name:
    ...     [table.column("row").to_pylist() for table in sort_on_disk(iter(parts), ["t", "row"], Path(name))]
    [[1, 3, 2, 0]]
    """
    runs: list[Path] = []
    waiting_tables: list[pa.Table] = []
    size = n_runs = 0

    def write(sorted_tables: Iterator[pa.Table]) -> Path:
        nonlocal n_runs
        path = folder / f"run-{n_runs}.arrow"
        n_runs += 1
        writer: Any = None
        with pa.OSFile(str(path), "wb") as sink:
            for table in sorted_tables:
                writer = writer or pa.ipc.new_stream(sink, table.schema)
                writer.write_table(table, max_chunksize=ROWS)
            if writer is not None:
                writer.close()
        return path

    for table in tables:
        waiting_tables.append(table)
        size += table.nbytes
        if size > RUN:
            runs.append(write(iter([_sort_tables(waiting_tables, keys)])))
            waiting_tables, size = [], 0
    if not runs:
        if waiting_tables:
            yield _sort_tables(waiting_tables, keys)
        return
    if waiting_tables:
        runs.append(write(iter([_sort_tables(waiting_tables, keys)])))
        waiting_tables = []
    while len(runs) > FAN:
        runs = [*runs[FAN:], write(_merge_runs(runs[:FAN], keys))]
    yield from _merge_runs(runs, keys)


def _sort_tables(tables: list[pa.Table], keys: Sequence[str]) -> pa.Table:
    import pyarrow.compute as pc

    table = pa.concat_tables(tables).combine_chunks()
    return table.take(pc.sort_indices(table, sort_keys=[(key, "ascending") for key in keys]))


def _merge_runs(runs: Sequence[Path], keys: Sequence[str]) -> Iterator[pa.Table]:
    """Yield the rows of sorted runs in order, and remove the files afterwards."""
    with_files = [pa.OSFile(str(path), "rb") for path in runs]
    readers = [iter(pa.ipc.open_stream(file)) for file in with_files]
    first_batches: list[pa.Table | None] = [_next(reader) for reader in readers]
    try:
        while any(head is not None for head in first_batches):
            # No later row can come before the rows up to the least last row of all heads.
            bound = min(_key(head, head.num_rows - 1, keys) for head in first_batches if head is not None)
            due = []
            for i, head in enumerate(first_batches):
                if head is None:
                    continue
                n_due = _not_above(head, bound, keys)
                if n_due:
                    due.append(head.slice(0, n_due))
                first_batches[i] = head.slice(n_due) if n_due < head.num_rows else _next(readers[i])
            yield _sort_tables(due, keys)
    finally:
        for file in with_files:
            file.close()
        for path in runs:
            path.unlink(missing_ok=True)


def _next(reader: Iterator[pa.RecordBatch]) -> pa.Table | None:
    for batch in reader:
        if batch.num_rows:
            return pa.Table.from_batches([batch])
    return None


def _key(table: pa.Table, row: int, keys: Sequence[str]) -> tuple[Any, ...]:
    return tuple(_number(table.column(key)[row]) for key in keys)


def _number(value: Any) -> Any:
    """Return a value that can be compared with others of its column: times as integers."""
    return getattr(value, "value", None) if pa.types.is_temporal(value.type) else value.as_py()


def _not_above(table: pa.Table, bound: tuple[Any, ...], keys: Sequence[str]) -> int:
    """Count the rows of a sorted table that are not above a key."""
    low, high = 0, table.num_rows
    while low < high:
        middle = (low + high) // 2
        if _key(table, middle, keys) <= bound:
            low = middle + 1
        else:
            high = middle
    return low
