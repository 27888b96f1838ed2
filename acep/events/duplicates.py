"""Find the rows of a table whose ids came before: refuse them, or leave them out."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from acep.errors import QueryError
from acep.events.buffers import selectable
from acep.events.fields import check_names, column_at, repeat_error
from acep.events.seen_ids import SeenIds

__all__ = ["DUPLICATES", "check_duplicates", "settle_duplicates"]

DUPLICATES = ("refuse", "drop")
"""The ways to treat events that come twice."""


def check_duplicates(duplicates: object, id: object) -> None:
    """Raise :class:`QueryError` for a wrong ``duplicates``, and for one that drops rows without ids."""
    if not isinstance(duplicates, str) or duplicates not in DUPLICATES:
        raise QueryError(
            f"duplicates={duplicates!r} says nothing of events that come twice",
            hint=" or ".join(f'"{name}"' for name in DUPLICATES),
            code="option_invalid",
        )
    if duplicates == "drop" and id is None:
        raise QueryError(f"duplicates={duplicates!r} knows events by their ids", hint="name id=", code="option_invalid")


def settle_duplicates(
    table: pa.Table, name: str | None, duplicates: str = "refuse", place_of: Callable[[int], str] | None = None
) -> pa.Table:
    """Return a table without the rows whose ids came before (``"drop"``). ``name``: the column of ids (``None``: there
    is none). ``place_of`` gives the words for the place of a row; without it rows count from 0.

    Raises :class:`DataError` for the first such row (``"refuse"``), and for ids that are null, or neither integers nor
    texts.

    >>> settle_duplicates(pa.table({"n": [2, 1, 2]}), "n", "drop").column("n").to_pylist()
    [2, 1]
    """
    check_names(id=name)
    column = None if name is None or not table.num_rows else column_at(table, name)
    if name is None or column is None:
        return table
    repeats = SeenIds(name).see(column, np.zeros(table.num_rows, np.int64))
    if not repeats.any():
        return table
    if duplicates == "refuse":
        row = int(np.argmax(repeats))
        raise repeat_error(name, column[row].as_py(), row, "" if place_of is None else place_of(row))
    return selectable(table).filter(pa.array(~repeats))
