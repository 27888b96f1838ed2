"""Read lines of JSON one by one as objects, and make tables of them: numbers that become texts keep theirs."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from acep.errors import DataError
from acep.events.files.json.json_shapes import Raw

__all__ = ["is_deeper", "object_of", "table_of"]

VALUES = 1 << 16  # Python's values that are made at once


def object_of(line: bytes, where: str) -> dict[str, Any]:
    """Return the object of a line; ``where`` says which line it is.

    Raises :class:`DataError` for a line that is no object, not UTF-8, or nested too deeply.

    >>> object_of(b'{"n": 1}', "line 7")
    {'n': 1}
    """
    hint = "one JSON object a line"
    try:
        text = line.decode()
    except UnicodeDecodeError:
        raise DataError(f"{where} is not UTF-8 text", hint="save the file as UTF-8", code="data_value") from None
    try:
        row = json.loads(text, object_pairs_hook=_no_twins, parse_float=Raw, parse_constant=float)
        if not isinstance(row, dict):
            raise DataError(f"{where} is not a JSON object", hint=hint, code="data_value")
        if "\\u" in text:
            json.dumps(row, ensure_ascii=False).encode()
    except DataError:
        raise
    except UnicodeEncodeError:
        raise DataError(f"{where} has half of a surrogate pair, which is no text", code="data_value") from None
    except json.JSONDecodeError as bad:
        raise DataError(f"{where}, column {bad.colno}: broken JSON: {bad.msg}", hint=hint, code="data_value") from None
    except RecursionError:
        raise DataError(
            f"{where} is nested too deeply", hint="attributes are single values", code="data_value"
        ) from None
    except ValueError as bad:
        raise DataError(f"{where}: broken JSON: {bad}", hint=hint, code="data_value") from None
    return row


def is_deeper(value: Any, depth: int) -> bool:
    """Return whether a value of JSON has more than so many objects and lists inside each other.

    >>> is_deeper([{"a": []}], 2), is_deeper([{"a": []}], 3), is_deeper(7, 0)
    (True, False, False)
    """
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(depth):
        if not level:
            return False
        below = (inner for outer in level for inner in (outer.values() if isinstance(outer, dict) else outer))
        level = [inner for inner in below if isinstance(inner, dict | list)]
    return bool(level)


def _no_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    row = dict(pairs)
    if len(row) < len(pairs):
        name = next(name for name, number in Counter(name for name, _ in pairs).items() if number > 1)
        raise ValueError(f"`{name}` is there twice")
    return row


def table_of(rows: list[dict[str, Any]], roots: Mapping[str, pa.DataType]) -> pa.Table:
    """Return objects as a table of some attributes; numbers that become texts keep their original text."""
    arrays = []
    for name, root_type in roots.items():
        plain = _without_decimals(root_type)
        n_at_once = max(VALUES // _n_values(plain), 1)
        chunks = [
            pa.array([_value(row.get(name), plain) for row in rows[start : start + n_at_once]], plain)
            for start in range(0, len(rows), n_at_once)
        ]
        arrays.append(pa.chunked_array(chunks, plain))
    return pa.Table.from_arrays(arrays, names=list(roots))


def _n_values(read: pa.DataType) -> int:
    """Return how many values one of a type has, of which each takes memory where it is null, too."""
    return sum((_n_values(field.type) for field in read), 1) if pa.types.is_struct(read) else 1


def _without_decimals(read: pa.DataType) -> pa.DataType:
    """Return a type with texts for decimals: they are cast later, which refuses a value that does not fit."""
    if pa.types.is_decimal(read):
        return pa.string()
    if pa.types.is_struct(read):
        return pa.struct([field.with_type(_without_decimals(field.type)) for field in read])
    return pa.list_(_without_decimals(read.value_type)) if pa.types.is_list(read) else read


def _value(value: Any, wanted: pa.DataType) -> Any:
    """Return a value of JSON as Arrow takes it for a type."""
    if value is None or pa.types.is_null(wanted):
        return None
    if pa.types.is_string(wanted):
        return value if isinstance(value, str) else _text(value)
    if pa.types.is_floating(wanted):
        return _float(value)
    if pa.types.is_struct(wanted):
        return {field.name: _value(value.get(field.name), field.type) for field in wanted}
    return [_value(element, wanted.value_type) for element in value] if pa.types.is_list(wanted) else value


def _text(value: Any) -> str:
    """Return a value that is no text as one: as JSON, without blanks."""
    from acep.events.json_texts import json_text  # few files have such values

    return value.text if isinstance(value, Raw) else json_text(value) or ""


def _float(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf  # rejected later, as no float is equal to it
