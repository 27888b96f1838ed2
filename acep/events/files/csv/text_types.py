"""Infer the type of a column of texts as Arrow's CSV reader does, joined over blocks so that it does not depend on the
place where a block ends."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from acep.events.buffers import join_chunks
from acep.events.columns import UNIT_NS
from acep.events.files.csv.cell_sorts import INTEGER, Rows, distinct_texts, first_match, longest_length, zero_rows
from acep.events.files.csv.csv_values import convert_texts, infer_values
from acep.events.files.far_times import check_reach

__all__ = [
    "BIG",
    "FAR",
    "NUMBERS",
    "PADDED",
    "TIMES",
    "ZEROS",
    "Block",
    "block_of",
    "far_rows",
    "first_odd",
    "type_of_looks",
]

ZEROS, BIG = "zeros", "big"  # integers with a leading zero or a plus sign, and those of more than 64 bits
PADDED = "padded"  # dates with blanks beside them, which Arrow reads; it does not read such times
NUMBERS = {"int", "float", ZEROS, BIG}
TIMES = ("date", "s", "us", "ns", "s+", "us+", "ns+")  # a plus sign: with a zone
FAR = {"ns": "far", "ns+": "far+"}
"""The look of times that nanoseconds do not reach, beside that of times that need nanoseconds."""
MOST_NS = 2**63 - 1
DAY = len("2024-01-31")
TYPES: dict[str, pa.DataType] = {
    "int": pa.int64(),
    "float": pa.float64(),
    "bool": pa.bool_(),
    "time": pa.time32("s"),
    "date": pa.date32(),
    "text": pa.string(),
    **{unit: pa.timestamp(unit) for unit in ("s", "us", "ns")},
    **{f"{unit}+": pa.timestamp(unit, "UTC") for unit in ("s", "us", "ns")},
}


@dataclass(frozen=True)
class Block:
    """The ``looks`` of a block of a column of texts, and its ``values`` unless it is of texts."""

    looks: set[str]
    values: pa.ChunkedArray | None = None


def type_of_looks(looks: AbstractSet[str]) -> pa.DataType:
    """Return the type that represents all ``looks``.

    >>> type_of_looks({"int", "float"}), type_of_looks({"float", "zeros"})
    (DataType(double), DataType(string))
    >>> type_of_looks({"date", "us"}), type_of_looks({"s", "s+"})
    (TimestampType(timestamp[us]), DataType(string))
    """
    if not looks:
        return pa.null()
    if looks <= NUMBERS:
        if ZEROS in looks:
            return pa.string()
        return pa.float64() if "float" in looks else pa.string() if BIG in looks else pa.int64()
    if PADDED in looks:
        return pa.date32() if looks <= {PADDED, "date", FAR["ns"]} else pa.string()
    for order in (TIMES[:4], TIMES[4:]):
        finest = order[-1]
        if looks <= {*order, FAR[finest]}:
            look = max(looks - {FAR[finest]}, key=order.index)
            return pa.string() if look == finest and FAR[finest] in looks else TYPES[look]
    return TYPES[next(iter(looks))] if len(looks) == 1 else pa.string()


def block_of(texts: pa.ChunkedArray, earlier_looks: AbstractSet[str] = frozenset()) -> Block:
    """Return what the texts of a block look like; ``earlier_looks`` are those of earlier blocks.

    >>> [block_of(pa.chunked_array([texts])).looks for texts in (["1", None, "007"], ["2024-01-31"], ["true", "x"])]
    [{'zeros'}, {'date'}, {'text'}]
    """
    values = _as_before(texts, earlier_looks)
    if values is None:
        values = infer_values(texts)
    column_type = values.type
    if pa.types.is_null(column_type):
        return Block(set())
    if pa.types.is_string(column_type):
        return Block({"text"})
    if pa.types.is_integer(column_type):
        return Block({ZEROS if len(zero_rows(texts, hexadecimal=True)) else "int"}, values)
    if pa.types.is_floating(column_type):
        return Block(_looks_of_floats(texts, earlier_looks), values)
    if pa.types.is_boolean(column_type):
        has_digits = any(len(text.strip()) == 1 for text in distinct_texts(texts))
        return Block({"text"}) if has_digits else Block({"bool"}, values)
    if not pa.types.is_temporal(column_type) or pa.types.is_time(column_type):
        return Block({next(look for look, look_type in TYPES.items() if look_type == column_type)}, values)
    zone = "+" if getattr(column_type, "tz", None) else ""
    look = "date" if pa.types.is_date(column_type) else column_type.unit + zone
    if look == "date" and longest_length(texts) > DAY:
        look = PADDED
    if look.startswith("ns") and _in_microseconds(texts, column_type.tz):
        look = f"us{zone}"
    return Block({look} | ({f"far{zone}"} if len(far_rows(values)) else set()), values)


def far_rows(times: pa.ChunkedArray) -> Rows:
    """Return the rows of dates and times that nanoseconds do not reach.

    >>> far_rows(pa.chunked_array([["2024-01-01", "9999-01-01"]]).cast(pa.timestamp("s"))).tolist()
    [1]
    """
    unit = "d" if pa.types.is_date(times.type) else times.type.unit
    ticks, is_null = join_chunks(times)
    is_far = np.abs(ticks) > MOST_NS // UNIT_NS[unit]
    return np.flatnonzero(is_far if is_null is None else is_far & ~is_null)


def _in_microseconds(texts: pa.ChunkedArray, zone: str | None) -> bool:
    """Return whether Arrow reads all texts as times in microseconds; it does not for more than six digits."""
    try:
        convert_texts(texts, pa.timestamp("us", zone))
    except pa.ArrowInvalid:
        return False
    return True


def _looks_of_floats(texts: pa.ChunkedArray, earlier_looks: AbstractSet[str]) -> set[str]:
    looks = {ZEROS} if len(zero_rows(texts)) else set[str]()
    if "float" in earlier_looks or first_match(texts, INTEGER, inverse=True) is not None:
        return looks | {"float"}
    return looks or {BIG}


def _as_before(texts: pa.ChunkedArray, earlier_looks: AbstractSet[str]) -> pa.ChunkedArray | None:
    """Return the values of the type of earlier blocks; ``None`` if a quick check does not show that they are."""
    value_type = type_of_looks(earlier_looks)
    if (
        not (pa.types.is_date(value_type) or pa.types.is_timestamp(value_type) or earlier_looks <= {"int", "float"})
        or not earlier_looks
    ):
        return None
    try:
        return check_reach(texts, texts.cast(value_type))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None


def first_odd(texts: pa.ChunkedArray) -> int | None:
    """Return the row of the first text that is an integer with a leading zero or a plus sign."""
    if not pa.types.is_string(texts.type):
        return None
    rows = zero_rows(texts)
    return int(rows[0]) if len(rows) else None
