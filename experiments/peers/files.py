"""A stream as the Java peers read it: little-endian 64-bit integers, the number of events, then column after column."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from experiments.streams import positions

__all__ = ["write_events"]


def write_events(table: pa.Table, file: Path) -> None:
    """Write ts, type (its place in the alphabet of the column), key or symbol, price, volume (0 where there is none),
    and the position of each event among those of its key."""
    names = table.schema.names
    kinds = np.unique(np.asarray(table["type"].to_pylist()), return_inverse=True)[1]
    keys = np.asarray(table["symbol" if "symbol" in names else "key"])
    nothing = np.zeros(table.num_rows, np.int64)
    columns = [
        np.asarray(table["ts"]),
        kinds,
        keys,
        *(np.asarray(table[name]) if name in names else nothing for name in ("price", "volume")),
        positions(keys),
    ]
    np.concatenate([[table.num_rows], *columns]).astype("<i8").tofile(file)
