"""Find fields of structs and parts of lists by name (``dev.id``, ``tags[1]``), first among types, then in columns."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from acep.events.buffers import decode, plain_type
from acep.pattern.list_parts import ListPart, list_part, source_name

if TYPE_CHECKING:
    from acep.pattern.key_calls import KeyCall

__all__ = [
    "ColumnPath",
    "Element",
    "Field",
    "has_list",
    "has_text",
    "is_list",
    "path_to",
    "place_of",
    "roots_with",
]

INDEX = re.compile(r"\[([1-9]\d{0,8})\]")


class Field(NamedTuple):
    """The field of a struct, by its place."""

    place: int


class Element(NamedTuple):
    """An element of a list, by its number from 1."""

    number: int


Step: TypeAlias = "Field | Element | ListPart | KeyCall"


@dataclass(frozen=True)
class ColumnPath:
    """The path to a value inside a column: the ``root`` column, the steps from there, and the ``type`` of the value."""

    root: str
    steps: tuple[Step, ...]
    type: pa.DataType

    @property
    def through_list(self) -> bool:
        """Return whether the value is a part of a list."""
        return any(not isinstance(step, Field) for step in self.steps)

    def values(self, column: pa.ChunkedArray) -> pa.ChunkedArray:
        """Return the values at the end of the path, null where something on it is null."""
        chunks = column.chunks
        for step in self.steps:
            chunks = [_step(chunk, step) for chunk in chunks]
        return pa.chunked_array(chunks, self.type)


def is_list(value_type: pa.DataType) -> bool:
    """Return whether a column of a type has lists."""
    is_ = pa.types
    return bool(
        is_.is_list(value_type)
        or is_.is_large_list(value_type)
        or is_.is_fixed_size_list(value_type)
        or is_.is_list_view(value_type)
        or is_.is_large_list_view(value_type)
    )


def has_list(value_type: pa.DataType) -> bool:
    """Return whether values of a type have lists, themselves or in their fields.

    >>> has_list(pa.struct({"dev": pa.struct({"tags": pa.list_(pa.string())})})), has_list(pa.string())
    (True, False)
    """
    value_type = plain_type(value_type)
    return is_list(value_type) or (pa.types.is_struct(value_type) and any(has_list(field.type) for field in value_type))


def place_of(schema: pa.Schema, name: str) -> int | None:
    """Return the place of a column, of the first if there are several of this name, ``None`` if there is none; the time
    that this takes does not grow with the number of columns.

    >>> place_of(pa.schema([("a", pa.int64()), ("a", pa.string())]), "a"), place_of(pa.schema({}), "a")
    (0, None)
    """
    try:
        place = schema.get_field_index(name)
    except UnicodeEncodeError:  # half a surrogate pair, which no column's name can be
        return None
    return place if place >= 0 else min(schema.get_all_field_indices(name), default=None)


def path_to(schema: pa.Schema, name: str) -> ColumnPath | None:
    """Return the path to a column, a field or a part of a list, ``None`` if there is none of this name.

    A column goes before a field of the same name.

    >>> schema = pa.schema({"dev": pa.struct({"tags": pa.list_(pa.string())})})
    >>> [str(path_to(schema, name).type) for name in ("dev.tags[1]", "contains(dev.tags, 'x')", "text(dev.tags)")]
    ['string', 'bool', 'string']
    >>> path_to(schema, "dev.id"), path_to(schema, "contains(dev.tags, 5)")
    (None, None)
    """
    if (place := place_of(schema, name)) is not None:
        return ColumnPath(name, (), schema.field(place).type)
    if (part := list_part(name)) is not None:
        path = path_to(schema, part.name)
        if path is None or not is_list(plain_type(path.type)):
            return None
        element_type = plain_type(plain_type(path.type).value_type)
        if part.value is None:
            return ColumnPath(path.root, (*path.steps, part), pa.string()) if has_text(element_type) else None
        return ColumnPath(path.root, (*path.steps, part), pa.bool_()) if _may_contain(element_type, part) else None
    if name.endswith(")"):
        from acep.events.key_values import KEY_TYPES  # few queries have such keys
        from acep.pattern.key_calls import key_call

        if (call := key_call(name)) is not None:
            path = path_to(schema, call.name)
            if path is None or not _is_text(plain_type(path.type)):
                return None
            return ColumnPath(path.root, (*path.steps, call), KEY_TYPES[call.gives])
    return next(_paths_into(schema, name), None)


def roots_with(schema: pa.Schema, name: str) -> list[str]:
    """Return the columns in which a name means something: the column of this name, and those with such a field.

    >>> roots_with(pa.schema({"dev": pa.struct({"id": pa.int64()}), "dev.id": pa.int64()}), "dev.id")
    ['dev.id', 'dev']
    """
    inner = source_name(name) if place_of(schema, name) is None else name
    columns = [inner] if place_of(schema, inner) is not None else []
    return columns + [path.root for path in _paths_into(schema, inner)]


def _paths_into(schema: pa.Schema, name: str) -> Iterator[ColumnPath]:
    """Yield the paths to fields and elements of columns that a name may mean."""
    for end in (i for i, sign in enumerate(name) if sign in ".[" and i):
        if (place := place_of(schema, name[:end])) is not None:
            below = _find_steps(schema.field(place).type, name[end:])
            if below is not None:
                yield ColumnPath(name[:end], below[0], below[1])


def _find_steps(value_type: pa.DataType, path: str) -> tuple[tuple[Step, ...], pa.DataType] | None:
    """Return the steps from a type to what the rest of a name says, and the type there."""
    if not path:
        return (), value_type
    value_type = plain_type(value_type)
    if is_list(value_type) and (index := INDEX.match(path)) is not None:
        step: Step = Element(int(index[1]))
        below = _find_steps(value_type.value_type, path[index.end() :])
        return None if below is None else ((step, *below[0]), below[1])
    if pa.types.is_struct(value_type) and path.startswith("."):
        for place, field in enumerate(value_type):
            end = len(field.name) + 1
            if path[1:end] == field.name and path[end : end + 1] in ("", ".", "["):
                below = _find_steps(field.type, path[end:])
                if below is not None:
                    return (Field(place), *below[0]), below[1]
    return None


def has_text(element_type: pa.DataType) -> bool:
    """Return whether elements of a type can be written as JSON, so that it says all of them exactly."""
    is_ = pa.types
    if is_list(element_type):
        return has_text(plain_type(element_type.value_type))
    if is_.is_struct(element_type):
        return all(has_text(plain_type(field.type)) for field in element_type)
    return _is_text(element_type) or bool(
        is_.is_integer(element_type)
        or is_.is_floating(element_type)
        or is_.is_boolean(element_type)
        or is_.is_null(element_type)
    )


def _is_text(value_type: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(value_type) or pa.types.is_large_string(value_type) or pa.types.is_string_view(value_type)
    )


def _may_contain(element_type: pa.DataType, part: ListPart) -> bool:
    """Return whether elements of a type can be compared with a value."""
    if pa.types.is_null(element_type):
        return True
    if part.is_number:
        return bool(pa.types.is_integer(element_type) or pa.types.is_floating(element_type))
    return bool(pa.types.is_boolean(element_type)) if isinstance(part.value, bool) else _is_text(element_type)


# Values -----------------------------------------------------------------------------------------


def _step(array: pa.Array, step: Step) -> pa.Array:
    """Return the values that a step leads to from those of an array."""
    value_type = array.type
    if value_type != plain_type(value_type):
        array = decode(pa.chunked_array([array])).combine_chunks()
        array = array if isinstance(array, pa.Array) else array.chunk(0)
    if isinstance(step, Field):
        return array.flatten()[step.place]  # with the nulls of the struct
    if not isinstance(step, Element | ListPart):
        from acep.events.key_values import key_values

        return key_values(array, step)
    if isinstance(step, ListPart) and step.value is None:
        from acep.events.json_texts import json_text

        return pa.array([json_text(value) for value in array.to_pylist()], pa.string())
    values, starts, stops = _spans(array)
    if isinstance(step, Element):
        places = starts + (step.number - 1)
        return values.take(pa.array(places, pa.int64(), mask=places >= stops))
    return _contains(array, values, starts, stops, step)


def _spans(array: pa.Array) -> tuple[pa.Array, npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the elements of all lists, and where those of each list begin and end; a null has none."""
    value_type = array.type
    if pa.types.is_fixed_size_list(value_type):
        starts = (array.offset + np.arange(len(array), dtype=np.int64)) * value_type.list_size
        stops = starts + value_type.list_size
    elif pa.types.is_list_view(value_type) or pa.types.is_large_list_view(value_type):
        starts = np.asarray(array.offsets).astype(np.int64)
        stops = starts + np.asarray(array.sizes).astype(np.int64)
    else:
        offsets = np.asarray(array.offsets).astype(np.int64)
        starts, stops = offsets[:-1], offsets[1:]
    if array.null_count:
        stops = np.where(np.asarray(array.is_null()), starts, stops)
    return array.values, starts, stops


def _contains(
    array: pa.Array, values: pa.Array, starts: npt.NDArray[np.int64], stops: npt.NDArray[np.int64], part: ListPart
) -> pa.Array:
    """Return whether each list has an element equal to a value; null if it has not, but has nulls, or NaN."""
    values = decode(pa.chunked_array([values])).combine_chunks()
    values = values if isinstance(values, pa.Array) else pa.concat_arrays(values.chunks)
    if pa.types.is_floating(values.type):
        values = values.cast(pa.float64())
    equal, null = _is_equal(values, part), np.asarray(values.is_null(nan_is_null=True))
    n_equal, n_null = (np.concatenate(([0], np.cumsum(mask))) for mask in (equal & ~null, null))
    has_value = n_equal[stops] > n_equal[starts]
    unknown = ~has_value & (n_null[stops] > n_null[starts])
    if array.null_count:
        unknown |= np.asarray(array.is_null())
    return pa.array(has_value, pa.bool_(), mask=unknown)


def _is_equal(values: pa.Array, part: ListPart) -> npt.NDArray[np.bool_]:
    """Return which elements are equal to a value; those that are null are arbitrary."""
    import pyarrow.compute as pc

    value_type = values.type
    if pa.types.is_null(value_type):
        return np.zeros(len(values), bool)
    value: Any = part.value
    if part.is_number:
        exact = Fraction(str(value))
        if pa.types.is_integer(value_type) and (exact.denominator != 1 or not _fits(int(exact), value_type)):
            return np.zeros(len(values), bool)
        value = int(exact) if pa.types.is_integer(value_type) else float(exact)
    return np.asarray(pc.fill_null(pc.equal(values, pa.scalar(value, values.type)), False))


def _fits(number: int, value_type: pa.DataType) -> bool:
    """Return whether a type of integers has a number."""
    bits = int(value_type.bit_width)
    if pa.types.is_unsigned_integer(value_type):
        return 0 <= number < 1 << bits
    return -(1 << bits - 1) <= number < 1 << bits - 1
