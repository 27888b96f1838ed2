"""Cut the streams of this folder from the whole ones: ``python -m examples.data.make FOLDER``, the folder of these.

Rows keep their values and their order. Columns are left out, or all events of some keys, as :data:`SLICES` says. The
files are written in encodings that need less than half of the space.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

__all__ = ["SLICES", "Slice", "cut", "write"]

FOLDER = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Slice:
    """Say what is kept: columns other than ``without``, and all rows or those whose ``key`` is one of ``values``."""

    without: tuple[str, ...] = ()
    key: str | None = None
    values: tuple[str, ...] = ()


SLICES = {
    "cluster_jobs": Slice(without=("trace_us",)),
    "har_phone_watch": Slice(key="subject", values=("s07", "s08", "s09", "s10", "s11", "s12")),
    "stock_tweet_tokens": Slice(),
}
"""By the name of the stream."""


def cut(table: pa.Table, selection: Slice) -> pa.Table:
    """Return the part of a whole stream that is kept.

    >>> cut(pa.table({"a": [1, 2], "k": ["x", "y"]}), Slice(("a",), "k", ("y",))).to_pylist()
    [{'k': 'y'}]
    """
    if selection.key is not None:
        table = table.filter(pc.is_in(table[selection.key], pa.array(selection.values, table[selection.key].type)))
    return table.drop_columns([*selection.without])


def write(table: pa.Table, file: Path) -> None:
    """Write a stream in little space: integers and times as differences, the rest by dictionary."""
    counted = [field.name for field in table.schema if _in_order(field.type)]
    pq.write_table(
        table,
        file,
        compression="zstd",
        compression_level=19,
        use_dictionary=[name for name in table.column_names if name not in counted],
        column_encoding=dict.fromkeys(counted, "DELTA_BINARY_PACKED"),
    )


def _in_order(kind: pa.DataType) -> bool:
    return pa.types.is_timestamp(kind) or kind in (pa.int32(), pa.int64())


def main(folder: str) -> None:
    """Write all of them from the streams in a folder."""
    for name, selection in SLICES.items():
        file = FOLDER / f"{name}.parquet"
        write(cut(pq.read_table(Path(folder) / f"{name}.parquet"), selection), file)
        sys.stderr.write(f"{file.name}: {pq.read_metadata(file).num_rows:,} events, {file.stat().st_size:,} bytes\n")


if __name__ == "__main__":
    main(sys.argv[1])
