"""Infer the type of a column of texts as Arrow's CSV reader does, joined over blocks so that it does not depend on the
place where a block ends."""

from __future__ import annotations

import io
import re
from collections.abc import Set as AbstractSet
from contextlib import suppress

import numpy as np
import pyarrow as pa

__all__ = ["NUMBERS", "TIMES", "fits", "inferred", "looks", "resolved", "typed"]

ODD = "odd"  # digits that are not a plain integer: a leading zero, a plus sign, more than 64 bits
NUMBERS = {"int", "float", ODD}
TIMES = ("date", "s", "us", "ns", "s+", "us+", "ns+")  # a plus sign: with a zone
NULLS = {"", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "N/A", "NA", "NULL",
         "NaN", "n/a", "nan", "null"}  # fmt: skip
WHOLE = re.compile(r"\s*[+-]?\d+\s*")
DAY = re.compile(r"\s*\d{4}-\d\d-\d\d[T ]")
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


def resolved(seen: AbstractSet[str]) -> pa.DataType:
    """Return the type that represents all looks in ``seen``.

    >>> resolved({"int", "float"}), resolved({"int", "odd"}), resolved({"date", "us"}), resolved({"s", "s+"})
    (DataType(double), DataType(string), TimestampType(timestamp[us]), DataType(string))
    """
    if not seen:
        return pa.null()
    if seen <= NUMBERS:
        return pa.float64() if "float" in seen else pa.string() if ODD in seen else pa.int64()
    for order in (TIMES[:4], TIMES[4:]):
        if seen <= set(order):
            return TYPES[max(seen, key=order.index)]
    return TYPES[next(iter(seen))] if len(seen) == 1 else pa.string()


def looks(texts: pa.Array | pa.ChunkedArray, known: AbstractSet[str] = frozenset()) -> set[str]:
    """Return what the values of a column of texts look like, beyond what is ``known`` from earlier ones.

    >>> [looks(pa.array(texts)) for texts in (["1", None, "007"], ["2024-01-31", "NA"], ["true", "x"])]
    [{'odd'}, {'date'}, {'text'}]
    """
    if "text" in known or (known and fits(texts, known)):
        return set()
    held = inferred(texts)
    if pa.types.is_string(held):
        return {_far_times(texts) or "text"}
    if pa.types.is_null(held):
        return set()
    if pa.types.is_integer(held):
        return {ODD} if any_odd(texts) else {"int"}
    if pa.types.is_floating(held):
        values = (v for v in texts.to_pylist() if v is not None and v.strip() not in NULLS)
        return {ODD} if all(map(WHOLE.fullmatch, values)) else {"float"}
    if pa.types.is_boolean(held):
        digits = any(v is not None and len(v.strip()) == 1 for v in texts.to_pylist())
        return {"text"} if digits else {"bool"}
    if pa.types.is_timestamp(held):
        unit = held.unit if held.unit == "s" else "us" if _in_microseconds(texts, held) else "ns"
        return {unit + ("+" if held.tz else "")}
    return {next(name for name, one in TYPES.items() if one == held)}


def fits(texts: pa.Array | pa.ChunkedArray, known: AbstractSet[str]) -> bool:
    """Return whether texts are of the type of earlier ones, as far as a quick check can show it."""
    held = resolved(known)
    if "float" in known or pa.types.is_timestamp(held) or pa.types.is_date(held):
        wanted = held
    elif known == {"int"} and not any_odd(texts):
        wanted = pa.int64()
    else:
        return False
    try:
        texts.cast(wanted)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return False
    return True


def _far_times(texts: pa.Array | pa.ChunkedArray) -> str | None:
    """Return the look of times with fractions that nanoseconds do not reach, such as the year 9999; ``None`` if the
    texts are not all times. Arrow tries nanoseconds for fractions, and nothing else."""
    values = (value.as_py() for value in texts)
    first = next((text for text in values if text is not None and text.strip() not in NULLS), "")
    if not DAY.match(first):
        return None
    for look in ("us", "us+"):
        with suppress(pa.ArrowInvalid):
            typed(texts, TYPES[look])
            return look
    return None


def _in_microseconds(texts: pa.Array | pa.ChunkedArray, held: pa.DataType) -> bool:
    try:
        typed(texts, held).cast(pa.timestamp("us", held.tz))
    except pa.ArrowInvalid:
        return False
    return True


def any_odd(texts: pa.Array | pa.ChunkedArray) -> bool:
    """Return whether any text has a leading zero or a plus sign that is followed by more."""
    chunks = texts.chunks if isinstance(texts, pa.ChunkedArray) else [texts]
    return any(_odd(chunk) for chunk in chunks)


def _odd(chunk: pa.Array) -> bool:
    _, places, data = chunk.buffers()
    if not len(chunk) or data is None or not data.size:
        return False
    offsets = np.frombuffer(places, np.int32)[chunk.offset : chunk.offset + len(chunk) + 1].astype(np.int64)
    lengths = np.diff(offsets)
    starts = offsets[:-1][lengths > 1]
    if not len(starts):
        return False
    letters = np.frombuffer(data, np.uint8)
    first, second = letters[starts], letters[starts + 1]
    if (first <= ord(" ")).any():
        return any(v is not None and _is_odd(v.strip()) for v in chunk.to_pylist())
    long = lengths[lengths > 1] > 2
    odd = (first == ord("0")) | (first == ord("+")) | ((first == ord("-")) & (second == ord("0")) & long)
    return bool(odd.any())


def _is_odd(text: str) -> bool:
    digits = text.removeprefix("-")
    return len(digits) > 1 and digits[0] in "0+"


# Through Arrow's CSV reader ---------------------------------------------------------------------


def inferred(texts: pa.Array | pa.ChunkedArray) -> pa.DataType:
    """Return the type that Arrow's CSV reader infers for a column of texts."""
    return _read_back(texts, None).type


def typed(texts: pa.Array | pa.ChunkedArray, held: pa.DataType) -> pa.ChunkedArray:
    """Convert texts to values as cells of CSV are read. Raises :class:`pyarrow.ArrowInvalid`."""
    return _read_back(texts, held)


def _read_back(texts: pa.Array | pa.ChunkedArray, held: pa.DataType | None) -> pa.ChunkedArray:
    from pyarrow import csv

    if not len(texts):
        return pa.chunked_array([], held or pa.null())
    sink = io.BytesIO()
    csv.write_csv(pa.table({"x": texts}), sink, csv.WriteOptions(include_header=False))
    table = csv.read_csv(
        io.BytesIO(sink.getbuffer()),
        read_options=csv.ReadOptions(column_names=["x"], use_threads=False, block_size=max(len(sink.getbuffer()), 1)),
        parse_options=csv.ParseOptions(ignore_empty_lines=False, newlines_in_values=True),
        convert_options=csv.ConvertOptions(column_types={} if held is None else {"x": held}),
    )
    return table.column(0)
