"""Convert events in any supported form (pandas, polars, Arrow, dicts) to Arrow tables.

pandas and polars are never imported here: a caller that passes one of their objects has imported them.
"""

from __future__ import annotations

import datetime as dt
import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from acep.errors import DataError, QueryError
from acep.events.arrow_arrays import array_of
from acep.events.row_dicts import columns_of_dicts, spread, too_many_fields
from acep.pattern.query_arguments import is_swapped

__all__ = ["is_partial", "to_table", "unread_columns", "unread_error", "with_unread"]

_UNREAD = b"acep.unread"
_PARTIAL = b"acep.partial"


def to_table(events: Any, used: Collection[str] | None = None) -> pa.Table:
    """Return events as an Arrow table, without copying where possible.

    ``events`` is a pandas or polars frame; a ``pyarrow`` Table, RecordBatch or RecordBatchReader; any object with
    ``__arrow_c_stream__`` or ``__arrow_c_array__``; a NumPy structured array; a list of dicts, one per row (a missing
    entry is null); or a dict of columns. A named index of a pandas frame counts as a column. A column that Arrow cannot
    hold, such as one that mixes types, is left out; :func:`unread_columns` says why.

    Few dicts may make very many cells, as each may have keys of its own. Of such rows only the columns that are
    ``used`` are read (:func:`is_partial`).

    Raises :class:`DataError` for anything else, and for such rows if it is not said which columns are used.

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
        return _read_guarded(events.read_all)
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
        return _from_polars(events)
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
        return _read_guarded(lambda: pa.RecordBatchReader.from_stream(events).read_all())
    if hasattr(events, "__arrow_c_array__"):
        return _read_guarded(lambda: pa.Table.from_batches([pa.record_batch(events)]))
    if isinstance(events, Mapping):
        return _from_columns(events)
    if isinstance(events, np.ndarray) and events.dtype.names:
        return _from_columns({name: events[name] for name in events.dtype.names})
    if isinstance(events, Iterable) and not isinstance(events, np.ndarray):
        return _from_rows(list(events), used)
    raise DataError(
        f"events cannot be read from a {type(events).__name__}",
        hint="give a pandas, polars or pyarrow table, a list of dicts, or a dict of columns",
        code="option_invalid",
    )


def _from_polars(frame: Any) -> pa.Table:
    unread = {name: _OBJECTS for name, dtype in frame.schema.items() if _has_objects(dtype)}
    try:
        return with_unread(frame.drop([*unread]).to_arrow(), unread)
    except (pa.ArrowException, TypeError, ValueError):  # integers of 128 bits
        unread |= {name: why for name in frame.columns if isinstance(why := _array(name, frame[name]), str)}
    return with_unread(_read_guarded(frame.drop([*unread]).to_arrow), unread)


def _read_guarded(read: Callable[[], pa.Table]) -> pa.Table:
    try:
        return read()
    except (pa.ArrowException, TypeError, ValueError) as bad:
        raise DataError(f"the events cannot be read: {_first_line(bad)}", code="file_read") from None


def unread_columns(schema: pa.Schema) -> dict[str, str]:
    """Return why columns were left out by :func:`to_table`, by name; behind ``; `` is what to do.

    >>> unread_columns(to_table({"ts": [1, 2], "x": [5, "five"]}).schema)
    {'x': 'mixes int and str; give it one type'}
    """
    reasons: dict[str, str] = json.loads((schema.metadata or {}).get(_UNREAD, b"{}"))
    return reasons


def is_partial(schema: pa.Schema) -> bool:
    """Return whether :func:`to_table` left out columns because they are not used."""
    return _PARTIAL in (schema.metadata or {})


def unread_error(name: str, reason: str) -> DataError:
    """Return the error for a column that was left out though it is needed."""
    reason_text, _, hint = reason.partition("; ")
    return DataError(f"column `{name}` {reason_text}", hint=hint or None, code="data_type")


def with_unread(table: pa.Table, unread: Mapping[str, str]) -> pa.Table:
    """Return a table that says why columns are left out of it, by name (:func:`unread_columns`)."""
    if not unread:
        return table
    return table.replace_schema_metadata((table.schema.metadata or {}) | {_UNREAD: json.dumps(unread)})


_OBJECTS = "holds Python objects; cast it to text or numbers"


def _has_objects(dtype: Any) -> bool:
    """Return whether a polars column has Python objects: some polars releases crash or hang when exporting one."""
    inside = [getattr(dtype, "inner", None), *(field.dtype for field in getattr(dtype, "fields", ()))]
    return str(dtype) == "Object" or any(part is not None and _has_objects(part) for part in inside)


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _from_pandas(frame: Any) -> pa.Table:
    names = _names(frame.columns, "rename one of them, or keep the first: df.loc[:, ~df.columns.duplicated()]")
    if not all(isinstance(name, str) for name in frame.columns):
        frame = frame.set_axis(names, axis=1)
    index = [name for name in frame.index.names if name is not None]
    unread: dict[str, str] = {}
    for name in frame.columns:
        if frame[name].dtype == object and (reason := _mixture(frame[name])):
            unread[name] = reason
    keep = bool(index) and not {str(name) for name in index} & set(names)
    try:
        table = pa.Table.from_pandas(frame.drop(columns=[*unread]), preserve_index=keep)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        for name in frame.columns:
            if isinstance(reason := _array(name, frame[name]), str):
                unread[name] = reason
        try:
            table = pa.Table.from_pandas(frame.drop(columns=[*unread]), preserve_index=keep)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            raise DataError("the frame cannot be read as a table", code="file_read") from None
    extra = [name for name in table.column_names if name.startswith("__index_level_")]
    table = table.drop_columns(extra) if extra else table
    for place, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type) and pa.types.is_null(field.type.value_type):  # no categories at all
            table = table.set_column(place, field.name, pa.nulls(table.num_rows))
    return with_unread(table, unread)


def _from_columns(columns: Mapping[Any, Any]) -> pa.Table:
    names = _names(columns)
    return _of_arrays({name: _array(name, values) for name, values in zip(names, columns.values(), strict=True)})


def _of_arrays(built: Mapping[str, pa.Array | pa.ChunkedArray | str]) -> pa.Table:
    arrays = {name: array for name, array in built.items() if not isinstance(array, str)}
    unread = {name: reason for name, reason in built.items() if isinstance(reason, str)}
    sizes = {name: len(array) for name, array in arrays.items()}
    if len(set(sizes.values())) > 1:
        listed = ", ".join(f"`{name}` {size}" for name, size in sizes.items())
        raise DataError(f"the columns differ in length: {listed}", code="data_type")
    return with_unread(pa.Table.from_arrays(list(arrays.values()), names=list(arrays)), unread)


def _from_rows(rows: list[Any], used: Collection[str] | None) -> pa.Table:
    columns, arrays = columns_of_dicts(rows, used), dict[str, pa.Array | pa.ChunkedArray | str]()
    for name, (key, values) in zip(_names(columns.values), columns.values.items(), strict=True):
        array = _array(name, values)
        is_sparse = key in columns.rows and not isinstance(array, str)
        arrays[name] = spread(array, columns.rows[key], len(rows)) if is_sparse else array
    table = _of_arrays(arrays | {_name(key): pa.nulls(len(rows)) for key in columns.unread})
    return (
        table.replace_schema_metadata((table.schema.metadata or {}) | {_PARTIAL: b""}) if columns.is_partial else table
    )


def _names(names: Iterable[Any], hint: str = "rename one of them") -> list[str]:
    """Return the names of columns as texts. Raises :class:`DataError` if two are the same text."""
    texts = [_name(name) for name in names]
    if len(set(texts)) < len(texts):
        twice = next(name for name, count in Counter(texts).items() if count > 1)
        raise DataError(f"two columns are called `{twice}`", hint=hint, code="data_column")
    return texts


def _name(name: Any) -> str:
    """Return the name of a column as text."""
    try:
        str(name).encode()
    except UnicodeEncodeError:
        raise DataError(
            f"the column name {str(name)!r} is no text", hint="rename the column", code="data_column"
        ) from None
    return str(name)


def _array(name: str, values: Any) -> pa.Array | pa.ChunkedArray | str:
    """Return the values of a column, or why Arrow cannot hold them."""
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    single = isinstance(values, np.ndarray) and not values.ndim
    if single or isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise DataError(f"column `{name}` is a {type(values).__name__}, not a list of values", code="data_type")
    built = array_of(values)
    if built is not None:
        return built
    values = values if hasattr(values, "__len__") else list(values)
    if reason := _mixture(values):
        return reason
    polars = type(values).__module__.partition(".")[0] == "polars"
    if polars and _has_objects(values.dtype):
        return _OBJECTS
    try:
        return values.to_arrow() if polars else pa.array(values, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as bad:
        return _why_not(values, bad)


def _why_not(values: Any, bad: BaseException) -> str:
    """Say why Arrow cannot hold the values of a column, in words of NumPy and Python; behind ``; `` is what to do.

    >>> _why_not(np.array([1j]), ValueError("Unsupported numpy type 15"))
    'is complex128, which Arrow does not have; cast it to text or numbers'
    """
    dtype, dimensions = getattr(values, "dtype", None), getattr(values, "ndim", 1)
    if dimensions != 1:
        return f"has {dimensions} dimensions; give one value for each row"
    if dtype is not None and dtype != np.dtype(object):
        return f"is {dtype}, which Arrow does not have; {_remedy(dtype)}"
    kinds = sorted({str(getattr(value, "dtype", type(value).__name__)) for value in values if value is not None})
    if len(kinds) > 1:
        return f"mixes {' and '.join(kinds)}; give it one type"
    if isinstance(bad, OverflowError):
        return "has an integer beyond 64 bits; make it text, or float"
    reason = _first_line(bad)
    if any(words in reason for words in ("did not recognize", "numpy type", "time unit")):
        return f"holds {kinds[0]}, which Arrow does not have; cast it to text or numbers"
    return f"cannot be read: {reason}".replace("; ", ", ")


def _remedy(dtype: Any) -> str:
    if "Int128" in str(dtype):
        return "cast it to Int64, or to text"
    if not isinstance(dtype, np.dtype):
        return "make it dense: to_dense()" if str(dtype).startswith("Sparse") else "cast it to text or numbers"
    if dtype.kind in "mM":
        return f"make it {dtype.name.partition('[')[0]}[s], [ms], [us] or [ns]"
    if not dtype.isnative:
        return "give its bytes the order of this machine: x.astype(x.dtype.newbyteorder('='))"
    return "cast it to text or numbers"


def _mixture(values: Collection[Any]) -> str | None:
    """Say why Arrow must not convert values to one type: they are times of which some have a zone and some none, or
    dates beside times, or dicts with too many different keys."""
    kinds = set(map(type, values))
    if any(issubclass(kind, Mapping) for kind in kinds) and (reason := too_many_fields(values)):
        return reason
    if not any(issubclass(kind, dt.date) for kind in kinds):
        return None
    sorts = {
        "dates" if not isinstance(value, dt.datetime) else f"times with{'out' if value.tzinfo is None else ''} a zone"
        for value in values
        if isinstance(value, dt.date) and value == value  # not pandas' NaT
    }
    return f"mixes {' and '.join(sorted(sorts))}; times all with a zone, or all without" if len(sorts) > 1 else None
