"""Convert events in any supported form (pandas, polars, Arrow, dicts) to Arrow tables.

pandas and polars are never imported here: a caller that passes one of their objects has imported them.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from acep.errors import DataError, QueryError
from acep.events.building import array_of
from acep.pattern.asked import is_swapped

__all__ = ["to_table"]


def to_table(events: Any) -> pa.Table:
    """Return events as an Arrow table, without copying where possible.

    ``events`` is a pandas or polars frame; a ``pyarrow`` Table, RecordBatch or RecordBatchReader; any object with
    ``__arrow_c_stream__`` or ``__arrow_c_array__``; a NumPy structured array; a list of dicts, one per row (a missing
    entry is null); or a dict of columns. A named index of a pandas frame counts as a column.

    Raises :class:`DataError` for anything else, and for a column that mixes types.

    >>> to_table([{"ts": 1, "type": "a"}, {"ts": 2, "x": 0.5}]).column_names
    ['ts', 'type', 'x']
    >>> to_table({"ts": [1, 2], "type": ["a", "b"]}).num_rows
    2
    """
    if isinstance(events, pa.Table):
        return events
    if isinstance(events, pa.RecordBatch):
        return pa.Table.from_batches([events])
    if isinstance(events, pa.RecordBatchReader):
        return _guarded(events.read_all)
    if is_swapped(events):
        raise QueryError(
            "a query stands where the events should",
            hint="the events come first: acep.match(events, query)",
            code="option_invalid",
        )
    home = type(events).__module__.partition(".")[0]
    if home == "pandas" and hasattr(events, "columns"):
        return _from_pandas(events)
    if home == "polars" and hasattr(events, "collect"):
        events = events.collect()
    if home == "polars" and hasattr(events, "to_arrow") and hasattr(events, "columns"):
        for name, held in events.schema.items():
            _no_objects(name, held)
        return _guarded(events.to_arrow)
    if home == "pyspark":
        raise DataError(
            "these events are a Spark DataFrame", hint="use acep.spark.match(df, query)", code="option_invalid"
        )
    if isinstance(events, str | bytes) or hasattr(events, "__fspath__"):
        raise DataError(
            f"events are a table, not {type(events).__name__}",
            hint="acep.read_events(path) reads a file",
            code="option_invalid",
        )
    if hasattr(events, "__arrow_c_stream__"):
        return _guarded(lambda: pa.RecordBatchReader.from_stream(events).read_all())
    if hasattr(events, "__arrow_c_array__"):
        return _guarded(lambda: pa.Table.from_batches([pa.record_batch(events)]))
    if isinstance(events, Mapping):
        return _from_columns(events)
    if isinstance(events, np.ndarray) and events.dtype.names:
        return _from_columns({name: events[name] for name in events.dtype.names})
    if isinstance(events, Iterable) and not isinstance(events, np.ndarray):
        return _from_rows(list(events))
    raise DataError(
        f"events cannot be read from a {type(events).__name__}",
        hint="give a pandas, polars or pyarrow table, a list of dicts, or a dict of columns",
        code="option_invalid",
    )


def _guarded(read: Callable[[], pa.Table]) -> pa.Table:
    try:
        return read()
    except (pa.ArrowException, TypeError, ValueError) as bad:
        raise DataError(f"the events cannot be read: {_first_line(bad)}", code="file_read") from None


def _no_objects(name: str, held: Any) -> None:
    """Refuse a polars column of Python objects: some polars releases crash or hang when exporting one."""
    inside = [getattr(held, "inner", None), *(field.dtype for field in getattr(held, "fields", ()))]
    if str(held) == "Object":
        raise DataError(
            f"column `{name}` holds Python objects",
            hint="cast it to text or numbers, or leave it out",
            code="data_type",
        )
    for part in inside:
        if part is not None:
            _no_objects(name, part)


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _from_pandas(frame: Any) -> pa.Table:
    names = [_name(name) for name in frame.columns]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        hint = "rename one of them, or keep the first: df.loc[:, ~df.columns.duplicated()]"
        raise DataError(f"two columns are called `{twice}`", hint=hint, code="data_column")
    if not all(isinstance(name, str) for name in frame.columns):
        frame = frame.set_axis(names, axis=1)
    index = [name for name in frame.index.names if name is not None]
    for name in frame.columns:
        if len(set(names)) == len(names) and frame[name].dtype == object:
            _one_sort_of_time(name, frame[name])
    keep = bool(index) and not {str(name) for name in index} & set(names)
    try:
        table = pa.Table.from_pandas(frame, preserve_index=keep)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        for name in frame.columns:
            _array(name, frame[name])
        raise DataError("the frame cannot be read as a table", code="file_read") from None
    extra = [name for name in table.column_names if name.startswith("__index_level_")]
    return table.drop_columns(extra) if extra else table


def _from_columns(columns: Mapping[Any, Any]) -> pa.Table:
    arrays = {_name(name): _array(_name(name), values) for name, values in columns.items()}
    sizes = {name: len(array) for name, array in arrays.items()}
    if len(set(sizes.values())) > 1:
        listed = ", ".join(f"`{name}` {size}" for name, size in sizes.items())
        raise DataError(f"the columns differ in length: {listed}", code="data_type")
    return pa.Table.from_arrays(list(arrays.values()), names=list(arrays))


def _from_rows(rows: list[Any]) -> pa.Table:
    names: dict[Any, None] = {}
    for number, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise DataError(
                f"row {number} of the events is a {type(row).__name__}, not a dict",
                hint="give a list of dicts, or a dict of columns",
                code="data_type",
            )
        names.update(dict.fromkeys(row))
    arrays = [_array(_name(name), [row.get(name) for row in rows]) for name in names]
    return pa.Table.from_arrays(arrays, names=list(map(_name, names)))


def _name(name: Any) -> str:
    """Return the name of a column as text."""
    try:
        str(name).encode()
    except UnicodeEncodeError:
        raise DataError(
            f"the column name {str(name)!r} is no text", hint="rename the column", code="data_column"
        ) from None
    return str(name)


def _array(name: str, values: Any) -> pa.Array | pa.ChunkedArray:
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    single = isinstance(values, np.ndarray) and not values.ndim
    if single or isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise DataError(f"column `{name}` is a {type(values).__name__}, not a list of values", code="data_type")
    built = array_of(values)
    if built is not None:
        return built
    _one_sort_of_time(name, values)
    polars = type(values).__module__.partition(".")[0] == "polars"
    if polars:
        _no_objects(name, values.dtype)  # type: ignore[attr-defined]
    try:
        if polars:
            return values.to_arrow()  # type: ignore[attr-defined]
        return pa.array(values if hasattr(values, "__len__") else list(values), from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as bad:
        kinds = sorted({type(v).__name__ for v in values if v is not None})
        if len(kinds) > 1:
            raise DataError(
                f"column `{name}` mixes {' and '.join(kinds)}",
                hint="give it one type, or drop it if no query reads it",
                code="data_type",
            ) from None
        hint = "integers have 64 bits: make it text, or float" if isinstance(bad, OverflowError) else None
        raise DataError(f"column `{name}` cannot be read: {_first_line(bad)}", hint=hint, code="data_value") from None


def _one_sort_of_time(name: str, values: Iterable[Any]) -> None:
    """Refuse times that Arrow would convert to one type: with and without a zone, or dates beside times."""
    if not any(issubclass(kind, dt.date) for kind in set(map(type, values))):
        return
    sorts = {
        "dates" if not isinstance(value, dt.datetime) else f"times with{'out' if value.tzinfo is None else ''} a zone"
        for value in values
        if isinstance(value, dt.date) and value == value  # not pandas' NaT
    }
    if len(sorts) > 1:
        listed = " and ".join(sorted(sorts))
        raise DataError(
            f"column `{name}` mixes {listed}", hint="times all with a zone, or all without", code="data_type"
        )
