"""Store a sketch as bytes: integers and arrays by name in a frame (:mod:`acep.storage.frame`).

Sizes and types in the table are checked, and each reader checks the conditions on its own arrays (:func:`check`).
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acep.errors import SnapshotError
from acep.storage.frame import FileFrame

__all__ = ["Stored", "check", "pack", "unpack"]

FRAME = FileFrame(b"ACEPSKCH", 1, "sketch", "use what to_bytes() gave")
KINDS = frozenset({"<i8", "<u8", "<f8", "<f4"})


@dataclass(frozen=True)
class Stored:
    """Unpacked content of stored bytes: the kind of sketch, its integers by name, and its arrays by name."""

    kind: str
    numbers: dict[str, int]
    arrays: dict[str, NDArray[Any]]

    def number(self, name: str, minimum: int, maximum: int) -> int:
        """Return a number by name; raise :class:`SnapshotError` if it is missing or out of bounds."""
        number = self.numbers.get(name)
        check(number is not None and minimum <= number <= maximum)
        assert number is not None
        return number

    def array(self, name: str, dtype: str, shape: tuple[int, ...]) -> NDArray[Any]:
        """Return an array by name; raise :class:`SnapshotError` if it is missing, or of another dtype or shape."""
        array = self.arrays.get(name)
        check(array is not None and array.dtype == np.dtype(dtype).newbyteorder("=") and array.shape == shape)
        assert array is not None
        return array


def check(holds: bool | np.bool_) -> None:
    """Raise :class:`SnapshotError` if a condition on the content of bytes with a valid checksum does not hold."""
    if not holds:
        raise SnapshotError("the sketch is damaged: its content makes no sense", code="state_damaged")


def pack(kind: str, numbers: Mapping[str, int], arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Pack a sketch into bytes. Arrays are of 64-bit numbers or of single-precision floats.

    >>> stored = unpack(pack("count-min", {"seed": 7}, {"table": np.eye(2)}), "count-min")
    >>> stored.number("seed", 0, 9), stored.array("table", "<f8", (2, 2)).tolist()
    (7, [[1.0, 0.0], [0.0, 1.0]])
    """
    little = {name: np.ascontiguousarray(a, dtype=a.dtype.newbyteorder("<")) for name, a in arrays.items()}
    table = {
        "kind": kind,
        "numbers": dict(numbers),
        "arrays": [[name, array.dtype.str, array.shape] for name, array in little.items()],
    }
    array_bytes = b"".join(array.tobytes() for array in little.values())
    return FRAME.write(json.dumps(table, separators=(",", ":")).encode(), array_bytes)


def unpack(data: bytes, *kinds: str) -> Stored:
    """Read the arguments of :func:`pack` back. Raise :class:`SnapshotError` for bytes that are no sketch of these
    kinds, are damaged, or are of another format version.
    """
    table, array_bytes = FRAME.read(data)
    try:
        stored = _read(table, array_bytes)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError):
        raise SnapshotError("the sketch is damaged: its content cannot be read", code="state_damaged") from None
    if stored.kind not in kinds:
        raise SnapshotError(f"these bytes hold a sketch of kind {stored.kind[:40]!r}, not {' or '.join(kinds)}")
    return stored


def _read(table: bytes, array_bytes: bytes) -> Stored:
    """Read header and arrays; raise one of the errors that :func:`unpack` catches if they are inconsistent."""
    content = json.loads(table)
    kind, numbers, arrays, offset = content["kind"], content["numbers"], {}, 0
    if not isinstance(kind, str) or not all(type(number) is int for number in numbers.values()):
        raise ValueError("a header of other types")
    for name, dtype, shape in content["arrays"]:
        if dtype not in KINDS or not all(type(size) is int and 0 <= size < 2**40 for size in shape):
            raise ValueError("no array of numbers")
        count = math.prod(shape)
        # The conversion copies, so that the array is writable and aligned.
        arrays[name] = (
            np.frombuffer(array_bytes, dtype, count, offset).reshape(shape).astype(np.dtype(dtype).newbyteorder("="))
        )
        offset += np.dtype(dtype).itemsize * count
    if offset != len(array_bytes):
        raise ValueError("more or fewer bytes than the arrays need")
    return Stored(kind, numbers, arrays)
