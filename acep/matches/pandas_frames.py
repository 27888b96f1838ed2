"""Make pandas frames of tables of matches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from acep.errors import DataError
from acep.events.times import value_of, value_text

__all__ = ["exact_frame_of", "frame_of", "pandas_of"]

FIRST, LAST = np.datetime64("0001-01-01"), np.datetime64("9999-12-31T23:59:59.999999")  # that Python has
# Columns of a flat table that are never null.
CERTAIN = {"start", "end", "error", "op", "match", "position"}


def frame_of(table: pa.Table, **options: Any) -> Any:
    """Return a table as a pandas frame.

    Raises :class:`DataError` for a time that neither Python nor pandas holds in a column of its type.
    """
    try:
        return table.to_pandas(**options)
    except (OverflowError, ValueError):
        leaves = table
        while any(pa.types.is_struct(field.type) for field in leaves.schema):
            leaves = leaves.flatten()
        for name, column in zip(leaves.column_names, leaves.columns, strict=True):
            for scalar in column if pa.types.is_temporal(column.type) else ():
                if isinstance(value := value_of(scalar), np.datetime64) and not FIRST <= value <= LAST:
                    raise DataError(
                        f"`{name}` has the time {value_text(value)}, and Python has dates of the years 1 to 9999 only",
                        hint="to_arrow() gives all times",
                        code="data_value",
                    ) from None
        raise


def exact_frame_of(table: pa.Table) -> Any:
    """Return a table as a pandas frame, with the types of pandas for integers and truth values where some are null.

    Without them pandas makes doubles of the integers, which are not exact beyond 2**53.

    Raises :class:`DataError` as :func:`frame_of` does.
    """
    frame = frame_of(table)
    for field in table.schema:
        is_whole = pa.types.is_integer(field.type) or pa.types.is_boolean(field.type)
        if is_whole and table[field.name].null_count:
            frame[field.name] = pandas_of(table.select([field.name]))[field.name].array
    return frame


def pandas_of(table: pa.Table) -> Any:
    """Return a flat table as a pandas frame, with the types of pandas for integers and booleans that may be null."""
    import pandas as pd

    def kind(value_type: pa.DataType) -> Any:
        if pa.types.is_integer(value_type):
            return pd.api.types.pandas_dtype(str(value_type).replace("i", "I").replace("u", "U"))
        return pd.BooleanDtype() if pa.types.is_boolean(value_type) else None

    frame = frame_of(table, types_mapper=kind)
    certain = [field for field in table.schema if field.name in CERTAIN and pa.types.is_integer(field.type)]
    return frame.astype({field.name: str(field.type) for field in certain})
