"""Write many columnar matches, match points or bundles as JSON or CSV lines: texts are made a column at a time."""

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

from acep.events.tables import keys_to_input, ticks_to_input
from acep.matches.answer_columns import NUMBERS
from acep.matches.arrow import split_matches
from acep.matches.found_columns import FoundColumns, unscale_error
from acep.matches.matches import error_number
from acep.output.formulas import quoted_formula
from acep.output.json_records import json_text, plain
from acep.plan.schema import Kind

if TYPE_CHECKING:
    from acep.events.batch import Column
    from acep.matches.answer_columns import AnswerColumns
    from acep.matches.matches import Matches
    from acep.plan.schema import Schema

__all__ = ["group_lines", "lines_of"]

BLOCK = 1 << 16


def lines_of(matches: Matches, form: str, zoned: Collection[str], *, quote_formulas: bool = False) -> Iterator[str]:
    r"""Yield the lines of :func:`acep.output.writing.write_matches`, some thousands at a time; ``form`` is
    ``"jsonl"`` or ``"csv"`` (without the header line). ``quote_formulas``: no text in CSV begins as a formula does.

    >>> from acep.matches.match_form import MatchForm
    >>> from acep.matches.matches import Matches
    >>> from acep.plan.schema import Schema
    >>> ones, trail = np.array([1]), {"offsets": np.array([0, 2]), "ids": np.array([7, 9])}
    >>> trail |= {"vars": np.array([0, 1], np.uint16), "variables": ("a", "b")}
    >>> records = FoundColumns(ones, ones, ones, ones, 1, (), **trail)
    >>> "".join(lines_of(Matches(records, MatchForm(Schema(()))), "jsonl", ()))
    '{"key": {}, "start": 1, "end": 1, "error": 1, "bindings": {"a": [7], "b": [9]}, "bundle": 1}\n'
    """
    cell = _quoted_cell if quote_formulas else _cell
    for part in split_matches(matches.found, BLOCK):
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


def group_lines(
    answers: AnswerColumns[Any], form: str, zoned: Collection[str], *, quote_formulas: bool = False
) -> Iterator[str]:
    """Yield the lines of match points or bundles as :func:`lines_of` does."""
    cell = _quoted_cell if quote_formulas else _cell
    for begin in range(0, len(answers), BLOCK):
        keys, fields = _group_texts(answers[begin : begin + BLOCK], zoned, json_text if form == "jsonl" else cell)
        if form == "jsonl":
            named = [piece for name, texts in fields.items() for piece in (f', "{name}": ', texts)]
            pieces = ['{"key": ', *_object(answers.keys, keys), *named, "}"]
        else:
            pieces = [piece for texts in (*keys, *fields.values()) for piece in (texts, ",")][:-1]
        yield "".join(pc.binary_join_element_wise(*pieces, "\n", "").to_pylist())


def _group_texts(
    part: AnswerColumns[Any], zoned: Collection[str], dump: Callable[[Any], str]
) -> tuple[list[pa.Array], dict[str, pa.Array]]:
    """Return the texts of the key attributes and of the fields after the key."""
    groups, schema = part.groups, part.schema
    fields = {}
    for name in part.heads:
        if name == "best":
            fields[name] = _error_texts(groups.error, groups.scale, dump)
        elif name in NUMBERS:
            fields[name] = pa.array([str(number) for number in groups.matches.tolist()])
        else:
            fields[name] = _time_texts(groups.first if name == "start" else groups.last, schema, zoned, dump)
    return _key_texts(groups.keys, part.keys, schema, zoned, dump), fields


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
    values = [
        _value_texts(column, partial(_return_values, matches, number), f"values.{name}" in zoned, dump)
        for number, (column, name) in enumerate(zip(part.values, matches.returns, strict=False))
    ]
    times = [_time_texts(ticks, schema, zoned, dump) for ticks in (part.start, part.end, part.bundle)]
    keys = _key_texts(part.keys, matches.keys, schema, zoned, dump)
    return keys, times, _error_texts(part.error, part.scale, dump), values


def _return_values(matches: Matches, number: int, values: list[Any]) -> list[Any]:
    return [matches.form.value_to_input(number, value) for value in values]


def _key_texts(
    columns: Sequence[Column],
    names: tuple[str, ...],
    schema: Schema,
    zoned: Collection[str],
    dump: Callable[[Any], str],
) -> list[pa.Array]:
    def in_input(name: str, values: list[Any]) -> list[Any]:
        return keys_to_input([values], (name,), schema)[name]

    named = zip(columns, names, strict=True)
    return [_value_texts(column, partial(in_input, name), f"key.{name}" in zoned, dump) for column, name in named]


def _value_texts(
    column: Column, in_input: Callable[[list[Any]], list[Any]], is_zoned: bool, dump: Callable[[Any], str]
) -> pa.Array:
    if column.kind is Kind.STRING:
        distinct, places = np.arange(len(column.texts or ())), column.values
    else:  # the bits of floats, as -0.0 and 0.0 are written differently
        words, places = np.unique(column.values.view(np.int64), return_inverse=True)
        distinct = words.view(column.values.dtype)
    values = type(column)(column.kind, distinct, None, column.texts).to_list()
    if column.valid is not None:
        places, values = np.where(column.valid == 0, len(values), places), [*values, None]
    return _take_texts([dump(plain(value, is_zoned)) for value in in_input(values)], places)


def _time_texts(
    ticks: npt.NDArray[np.int64], schema: Schema, zoned: Collection[str], dump: Callable[[Any], str]
) -> pa.Array:
    if not schema.instants:
        return pa.array(ticks).cast(pa.string())
    distinct, places = np.unique(ticks, return_inverse=True)
    return _take_texts(
        [dump(plain(time, "start" in zoned)) for time in ticks_to_input(distinct.tolist(), schema)], places
    )


def _error_texts(errors: npt.NDArray[np.int64], scale: int, dump: Callable[[Any], str]) -> pa.Array:
    distinct, places = np.unique(errors, return_inverse=True)
    return _take_texts([dump(error_number(unscale_error(error, scale))) for error in distinct.tolist()], places)


def _bindings(part: FoundColumns) -> pa.Array:
    """Return the bindings of each match as JSON."""
    part = part.by_variable()
    codes = part.vars.astype(np.int64)
    first = np.zeros(len(codes) + 1, bool)
    first[part.offsets] = True
    new = first[:-1].copy()
    new[1:] |= codes[1:] != codes[:-1]
    # The text before each id: a comma, or the name of a new variable; the first variable opens the object.
    n_variables = len(part.variables)
    heads = [f"{json_text(name)}: [" for name in part.variables]
    texts_before = [", ", *("{" + head for head in heads), *("], " + head for head in heads)]
    text_numbers = np.where(new, 1 + codes + np.where(first[:-1], 0, n_variables), 0)
    if part.ids.dtype == object:
        ids = pa.array([json_text(text) for text in part.ids.tolist()], pa.string())
    else:
        ids = pa.array(part.ids).cast(pa.string())
    pieces = pc.binary_join_element_wise(pa.array(texts_before).take(pa.array(text_numbers)), ids, "")
    offsets = pa.array(part.offsets).cast(pa.int32())
    bound = pc.binary_join(pa.ListArray.from_arrays(offsets, pieces), "")
    return pc.if_else(pc.equal(bound, ""), "{}", pc.binary_join_element_wise(bound, "]}", ""))


def _take_texts(texts: list[str], places: Any) -> pa.Array:
    return pa.array(texts, pa.string()).take(pa.array(places))


def _cell(value: Any) -> str:
    """Return a value as one CSV cell of several (a lone empty cell would be quoted)."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\r\n").writerow([value, 0])
    return out.getvalue()[:-4]


def _quoted_cell(value: Any) -> str:
    return _cell(quoted_formula(value))
