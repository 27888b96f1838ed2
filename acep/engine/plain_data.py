"""Plain data with NumPy arrays in it, as JSON-like data and back: how the state of a policy goes into a snapshot."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np

__all__ = ["from_json", "to_json"]

ARRAY = "array"
KINDS = ("<i8", "<f8", "|u1", "|b1", "<u8", "|i1", "<f4", "<i4")


def to_json(value: Any) -> Any:
    """Numbers, texts, truth values, ``None``, lists, dicts with texts as keys, and arrays of numbers.

    Raises :class:`TypeError` for anything else.

    >>> to_json({"a": np.arange(2)})
    {'a': {'array': '<i8', 'shape': [2], 'data': 'AAAAAAAAAAABAAAAAAAAAA=='}}
    """
    if isinstance(value, np.ndarray):
        if value.dtype.str not in KINDS:
            raise TypeError(f"an array of {value.dtype} is no plain data")
        data = base64.b64encode(np.ascontiguousarray(value).tobytes()).decode("ascii")
        return {ARRAY: value.dtype.str, "shape": list(value.shape), "data": data}
    if isinstance(value, dict):
        if not all(isinstance(key, str) for key in value) or ARRAY in value:
            raise TypeError("keys of plain data are texts, and none is `array`")
        return {key: to_json(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(one) for one in value]
    if isinstance(value, np.bool_ | np.integer | np.floating):
        return value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"{type(value).__name__} is no plain data")


def from_json(value: Any) -> Any:
    """What :func:`to_json` was given; tuples come back as lists. Raises :class:`ValueError` for what it did not give.

    >>> from_json(to_json({"a": np.array([1.5])}))["a"].tolist()
    [1.5]
    """
    if isinstance(value, list):
        return [from_json(one) for one in value]
    if not isinstance(value, dict):
        return value
    if ARRAY not in value:
        return {key: from_json(one) for key, one in value.items()}
    kind, shape, data = value[ARRAY], value.get("shape"), value.get("data")
    if kind not in KINDS or not isinstance(shape, list) or not isinstance(data, str):
        raise ValueError("no array")
    if not all(isinstance(n, int) and n >= 0 for n in shape):
        raise ValueError("no shape of an array")
    return np.frombuffer(base64.b64decode(data, validate=True), kind).reshape(shape).copy()
