"""Write many columnar matches as JSON or CSV lines: texts are made a column at a time, without single records."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from acep.events.tables import key_to_input, ticks_to_input
from acep.matches.arrow import parts
from acep.matches.formulas import quoted_formula
from acep.matches.found_columns import FoundColumns, unscaled
from acep.matches.json_records import json_text, plain
from acep.matches.matches import whole
from acep.plan.schema import Kind

if TYPE_CHECKING:
    from acep.events.batch import Column
    from acep.matches.matches import Matches
    from acep.plan.schema import Schema

__all__ = ["lines_of"]

BLOCK = 1 << 16


def lines_of(matches: Matches, form: str, zoned: Collection[str], *, quote_formulas: bool = False) -> Iterator[str]:
    r"""Yield the lines of :func:`acep.matches.writing.write_matches`, some thousands at a time; ``form`` is
    ``"jsonl"`` or ``"csv"`` (without the header line). ``quote_formulas``: no text in CSV begins as a formula does.

    >>> from acep.matches.matches import Matches
    >>> from acep.plan.schema import Schema
    >>> one, trail = np.array([1]), {"offsets": np.array([0, 2]), "ids": np.array([7, 9])}
    >>> found = FoundColumns(one, one, one, one, 1, (), **trail, vars=np.array([0, 1], np.uint16), variables=("a", "b"))
    >>> "".join(lines_of(Matches(found, schema=Schema(())), "jsonl", ()))
    '{"key": {}, "start": 1, "end": 1, "error": 1, "bindings": {"a": [7], "b": [9]}, "bundle": 1}\n'
    """
    cell = _quoted_cell if quote_formulas else _cell
    for part in parts(matches.found, BLOCK):
        assert isinstance(part, FoundColumns)
        pieces = _json_pieces(part, matches, zoned) if form == "jsonl" else _csv_pieces(part, matches, zoned, cell)
        yield "".join(pc.binary_join_element_wise(*pieces, "\n", "").to_pylist())


def _json_pieces(part: FoundColumns, matches: Matches, zoned: Collection[str]) -> list[Any]:
    keys, times, error, values = _texts(part, matches, zoned, json_text)
    pieces: list[Any] = ['{"key": ', *_object(matches.keys, keys)]
    pieces += [', "start": ', times[0], ', "end": ', times[1], ', "error": ', error]
    pieces += [', "bindings": ', _bindings(part), ', "bundle": ', times[2]]
    if matches.returns:
        pieces += [', "values": ', *_object(matches.returns, values)]
    return [*pieces, "}"]


def _csv_pieces(part: FoundColumns, matches: Matches, zoned: Collection[str], cell: Callable[[Any], str]) -> list[Any]:
    keys, times, error, values = _texts(part, matches, zoned, cell)
    bound = _bindings(part)
    doubled = pc.binary_join_element_wise('"', pc.replace_substring(bound, '"', '""'), '"', "")
    cells = [*keys, times[0], times[1], error, pc.if_else(pc.equal(bound, "{}"), bound, doubled), times[2], *values]
    return [piece for texts in cells for piece in (texts, ",")][:-1]


def _object(names: Sequence[str], texts: list[pa.Array]) -> list[Any]:
    if not names:
        return ["{}"]
    heads = [("{" if i == 0 else ", ") + json_text(name) + ": " for i, name in enumerate(names)]
    return [x for pair in zip(heads, texts, strict=True) for x in pair] + ["}"]


def _texts(
    part: FoundColumns, matches: Matches, zoned: Collection[str], dump: Callable[[Any], str]
) -> tuple[list[pa.Array], list[pa.Array], pa.Array, list[pa.Array]]:
    """Return the texts of the key attributes, of start, end and bundle, of the error, and of the values of RETURN."""
    schema = matches.schema

    def times_of(ticks: npt.NDArray[np.int64]) -> pa.Array:
        if not schema.instants:
            return pa.array(ticks).cast(pa.string())
        distinct, places = np.unique(ticks, return_inverse=True)
        return _placed(
            [dump(plain(time, "start" in zoned)) for time in ticks_to_input(distinct.tolist(), schema)], places
        )

    def values_of(column: Column, of: Callable[[Any], Any], name: str) -> pa.Array:
        if column.kind is Kind.STRING:
            distinct, places = np.arange(len(column.texts or ())), column.values
        else:  # the bits of floats, as -0.0 and 0.0 are written differently
            words, places = np.unique(column.values.view(np.int64), return_inverse=True)
            distinct = words.view(column.values.dtype)
        numbers = type(column)(column.kind, distinct, None, column.texts).to_list()
        if column.valid is not None:
            places, numbers = np.where(column.valid == 0, len(numbers), places), [*numbers, None]
        return _placed([dump(plain(of(value), name in zoned)) for value in numbers], places)

    keys = [
        values_of(column, partial(_key_value, name=name, schema=schema), f"key.{name}")
        for column, name in zip(part.keys, matches.keys, strict=True)
    ]
    values = [
        values_of(column, partial(matches.given, number), f"values.{name}")
        for number, (column, name) in enumerate(zip(part.values, matches.returns, strict=False))
    ]
    errors, places = np.unique(part.error, return_inverse=True)
    error = _placed([dump(whole(unscaled(e, part.scale))) for e in errors.tolist()], places)
    return keys, [times_of(ticks) for ticks in (part.start, part.end, part.bundle)], error, values


def _key_value(value: Any, name: str, schema: Schema) -> Any:
    return key_to_input((value,), (name,), schema)[name]


def _bindings(part: FoundColumns) -> pa.Array:
    """Return the bindings of each match as JSON."""
    part = part.by_variable()
    codes = part.vars.astype(np.int64)
    first = np.zeros(len(codes) + 1, bool)
    first[part.offsets] = True
    new = first[:-1].copy()
    new[1:] |= codes[1:] != codes[:-1]
    # The text before each id: a comma, or the name of a new variable; the first variable opens the object.
    many = len(part.variables)
    heads = [f"{json_text(name)}: [" for name in part.variables]
    before = [", ", *("{" + head for head in heads), *("], " + head for head in heads)]
    which = np.where(new, 1 + codes + np.where(first[:-1], 0, many), 0)
    if part.ids.dtype == object:
        ids = pa.array([json_text(text) for text in part.ids.tolist()], pa.string())
    else:
        ids = pa.array(part.ids).cast(pa.string())
    pieces = pc.binary_join_element_wise(pa.array(before).take(pa.array(which)), ids, "")
    offsets = pa.array(part.offsets).cast(pa.int32())
    bound = pc.binary_join(pa.ListArray.from_arrays(offsets, pieces), "")
    return pc.if_else(pc.equal(bound, ""), "{}", pc.binary_join_element_wise(bound, "]}", ""))


def _placed(texts: list[str], places: Any) -> pa.Array:
    return pa.array(texts, pa.string()).take(pa.array(places))


def _cell(value: Any) -> str:
    """Return a value as one CSV cell of several (a lone empty cell would be quoted)."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\r\n").writerow([value, 0])
    return out.getvalue()[:-4]


def _quoted_cell(value: Any) -> str:
    return _cell(quoted_formula(value))
