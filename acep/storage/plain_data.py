"""Convert plain data with NumPy arrays to JSON-like data or bytes and back, and restore dataclasses of numbers."""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, replace
from math import prod
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = ["from_bytes", "from_json", "numbers_like", "restore_numbers", "to_bytes", "to_json", "to_plain"]

T = TypeVar("T")

ARRAY = "array"
KINDS = ("<i8", "<f8", "|u1", "|b1", "<u8", "|i1", "<f4", "<i4")
LENGTH = struct.Struct("<Q")


def to_json(value: Any) -> Any:
    """Convert numbers, texts, booleans, ``None``, lists, dicts with text keys and number arrays to JSON-like data.

    Raises :class:`TypeError` for anything else.

    >>> to_json({"a": np.arange(2)})
    {'a': {'array': '<i8', 'shape': [2], 'data': 'AAAAAAAAAAABAAAAAAAAAA=='}}
    """
    return _encode(value, lambda array: {"data": base64.b64encode(array.tobytes()).decode("ascii")})


def to_plain(value: Any) -> Any:
    r"""Convert like :func:`to_json`, but with array data as bytes, as :func:`acep.storage.snapshot.seal` takes them.

    >>> to_plain(np.zeros(1, np.uint8))
    {'array': '|u1', 'shape': [1], 'data': b'\x00'}
    """
    return _encode(value, lambda array: {"data": array.tobytes()})


def from_json(value: Any) -> Any:
    """Return what :func:`to_json` or :func:`to_plain` was given; tuples come back as lists. Raises
    :class:`ValueError` for other data.

    >>> from_json(to_json({"a": np.array([1.5])}))["a"].tolist()
    [1.5]
    """

    def data_of(array_form: Any, size: int) -> bytes:
        data = array_form.get("data")
        if not isinstance(data, str | bytes):
            raise ValueError("no array")
        content = data if isinstance(data, bytes) else base64.b64decode(data, validate=True)
        if len(content) != size:
            raise ValueError("an array of another size")
        return content

    return _read(value, data_of)


def to_bytes(value: Any) -> bytes:
    """Convert the same data to bytes, arrays in binary. Raises :class:`TypeError` as :func:`to_json` does.

    >>> from_bytes(to_bytes({"a": np.array([1.5, 2.5]), "b": [None, "x"]}))
    {'a': array([1.5, 2.5]), 'b': [None, 'x']}
    """
    arrays: list[bytes] = []

    def put(array: NDArray[Any]) -> dict[str, Any]:
        arrays.append(array.tobytes())
        return {}

    head = json.dumps(_encode(value, put), separators=(",", ":")).encode()
    return LENGTH.pack(len(head)) + head + b"".join(arrays)


def from_bytes(data: bytes) -> Any:
    """Return what :func:`to_bytes` was given; tuples come back as lists. Raises :class:`ValueError` for other bytes."""
    if len(data) < LENGTH.size:
        raise ValueError("no plain data")
    offset = LENGTH.size + LENGTH.unpack_from(data)[0]
    if offset > len(data):
        raise ValueError("no plain data")

    def next_of(_: Any, size: int) -> bytes:
        nonlocal offset
        if size > len(data) - offset:
            raise ValueError("fewer bytes than the arrays need")
        offset += size
        return data[offset - size : offset]

    try:
        value = _read(json.loads(data[LENGTH.size : offset]), next_of)
    except RecursionError:
        raise ValueError("plain data that is too deep") from None
    if offset != len(data):
        raise ValueError("more bytes than the arrays need")
    return value


def numbers_like(template: object, names: Iterable[str], data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the numbers and truth values of ``data`` with these names, of the types that they have in ``template``.

    Raises :class:`ValueError`, :class:`KeyError` or :class:`TypeError` for other data.
    """
    numbers = {}
    for name in names:
        kind = type(getattr(template, name))
        if kind is bool and not isinstance(data[name], bool):
            raise ValueError(name)
        numbers[name] = kind(data[name])
    return numbers


def restore_numbers(template: T, data: Mapping[str, Any]) -> T:
    """Return a dataclass like ``template`` with the numbers and truth values that :func:`dataclasses.asdict` gave.

    Raises :class:`ValueError`, :class:`KeyError` or :class:`TypeError` for other data.
    """
    return replace(template, **numbers_like(template, [f.name for f in fields(template)], data))  # type: ignore[type-var, arg-type]


def _encode(value: Any, put: Callable[[NDArray[Any]], dict[str, Any]]) -> Any:
    if isinstance(value, np.ndarray):
        if value.dtype.str not in KINDS:
            raise TypeError(f"an array of {value.dtype} is no plain data")
        return {ARRAY: value.dtype.str, "shape": list(value.shape), **put(value)}
    if isinstance(value, dict):
        if not all(isinstance(key, str) for key in value) or ARRAY in value:
            raise TypeError("keys of plain data are texts, and none is `array`")
        return {key: _encode(element, put) for key, element in value.items()}
    if isinstance(value, list | tuple):
        return [_encode(element, put) for element in value]
    if isinstance(value, np.bool_ | np.integer | np.floating):
        return value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"{type(value).__name__} is no plain data")


def _read(value: Any, data_of: Callable[[Any, int], bytes]) -> Any:
    if isinstance(value, list):
        return [_read(element, data_of) for element in value]
    if not isinstance(value, dict):
        return value
    if ARRAY not in value:
        return {key: _read(element, data_of) for key, element in value.items()}
    kind, shape = value[ARRAY], value.get("shape")
    if kind not in KINDS or not isinstance(shape, list) or not all(type(n) is int and 0 <= n < 2**40 for n in shape):
        raise ValueError("no array")
    return np.frombuffer(data_of(value, prod(shape) * np.dtype(kind).itemsize), kind).reshape(shape).copy()
