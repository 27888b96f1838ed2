"""Convert plain values to Arrow arrays fast, without ``pa.array``, which imports pandas if it is installed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

__all__ = ["array_of"]

INTS = {f"{sign}{bits}": f"{name}{bits * 8}" for sign, name in (("i", "int"), ("u", "uint")) for bits in (1, 2, 4, 8)}
NUMBERS = INTS | {"f4": "float", "f8": "double"}


def array_of(values: Any) -> pa.Array | None:
    """Return values as an Arrow array, or ``None`` for values that only ``pa.array`` understands.

    A NumPy array may hold numbers, truth values or times; a list integers, floats, truth values, texts and ``None``.

    >>> array_of(["a", None]).to_pylist(), array_of([1, 2.5]).to_pylist(), array_of([1, "a"])
    (['a', None], [1.0, 2.5], None)
    """
    if isinstance(values, np.ndarray):
        return _from_numpy(values) if values.ndim == 1 and values.dtype.isnative else None
    if isinstance(values, list | tuple):
        return _from_list(values)
    return None


def _from_numpy(values: np.ndarray[Any, Any]) -> pa.Array | None:
    dtype = values.dtype
    if dtype.kind == "b":
        return _array(pa.bool_(), np.packbits(values, bitorder="little"), len(values), None)
    if dtype.kind == "M":
        unit, step = np.datetime_data(dtype)
        if unit not in ("s", "ms", "us", "ns") or step != 1:
            return None
        return _array(pa.timestamp(unit), values.view(np.int64), len(values), ~np.isnat(values))
    name = NUMBERS.get(f"{dtype.kind}{dtype.itemsize}")
    return _array(pa.type_for_alias(name), values, len(values), None) if name else None


def _from_list(values: Sequence[Any]) -> pa.Array | None:
    kinds = set(map(type, values))
    nulls = type(None) in kinds
    kinds.discard(type(None))
    if not kinds:
        return pa.nulls(len(values))
    if kinds == {str}:
        builder = pa.lib.StringBuilder()
        try:
            builder.append_values(list(values))
        except UnicodeEncodeError:
            return None
        return builder.finish()
    valid = np.array([v is not None for v in values]) if nulls else None
    if nulls:
        values = [0 if v is None else v for v in values]
    if kinds == {bool}:
        return _array(pa.bool_(), np.packbits(np.array(values, bool), bitorder="little"), len(values), valid)
    try:
        if kinds == {int}:
            return _array(pa.int64(), np.array(values, np.int64), len(values), valid)
        # A double may not hold a greater integer exactly.
        if kinds <= {int, float} and not any(type(v) is int and abs(v) > 2**53 for v in values):
            return _array(pa.float64(), np.array(values, np.float64), len(values), valid)
    except OverflowError:
        pass
    return None


def _array(
    data_type: pa.DataType, data: np.ndarray[Any, Any], size: int, valid: np.ndarray[Any, Any] | None
) -> pa.Array:
    mask = None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.Array.from_buffers(data_type, size, [mask, pa.py_buffer(np.ascontiguousarray(data))])
