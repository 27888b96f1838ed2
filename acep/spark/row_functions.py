"""Make functions of Spark from some integers of each row to a mark, which are called once for each task."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

__all__ = ["row_function"]

Parts: TypeAlias = Iterable[Sequence[npt.NDArray[np.int64]]]
"""The rows of a task in parts, each a sequence of columns without nulls."""
Marks: TypeAlias = Iterable[npt.NDArray[Any]]


def row_function(name: str, mark_rows: Callable[[Parts], Marks], result_type: str, n_columns: int) -> Any:
    """Return the function of Spark for ``n_columns`` columns of 64-bit integers without nulls. ``mark_rows`` gets all
    rows of a task and yields an array of marks, of the Spark type ``result_type``, for each part. Plans show ``name``.
    """
    from pyspark.sql import functions as sf

    if hasattr(sf, "arrow_udf"):  # from PySpark 4.1 on: half of the time of a function of pandas

        def mark_arrays(parts: Any) -> Any:
            return map(pa.array, mark_rows(_columns_of(parts)))

        series, make = pa.Array, sf.arrow_udf
        function: Any = mark_arrays
    else:
        import pandas as pd

        def mark_series(parts: Any) -> Any:
            return map(pd.Series, mark_rows(_columns_of(parts)))

        series, make = pd.Series, sf.pandas_udf  # type: ignore[attr-defined]
        function = mark_series
    function.__name__ = name
    # These types tell Spark that the function is called once for each task, with all parts. They are set here, since
    # annotations are texts where evaluation is postponed, and Spark does not find the names in them then.
    rows: Any = series if n_columns == 1 else tuple[(series,) * n_columns]  # type: ignore[misc]
    function.__annotations__ = {"parts": Iterator[rows], "return": Iterator[series]}  # type: ignore[valid-type]
    # Spark may neither call it twice for a row nor leave out rows before it.
    return make(function, result_type).asNondeterministic()


def _columns_of(parts: Any) -> Iterator[list[npt.NDArray[np.int64]]]:
    """Yield the columns of each part, which are arrays of Arrow or series of pandas; a single one stands by itself."""
    for part in parts:
        yield [column.to_numpy() for column in (part if isinstance(part, tuple) else (part,))]
