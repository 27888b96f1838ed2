"""Read JSON Lines in blocks: with Arrow's reader if that is exact, else line by line, which locates each mistake."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from acep.errors import DataError
from acep.events.buffers import buffer, nulls
from acep.events.files.casts import as_cast
from acep.events.files.finding import EventFile
from acep.events.files.formats import reason_of
from acep.events.files.json_shapes import EXACT, JsonShape, KindError, Raw
from acep.events.files.long_numbers import long_runs
from acep.events.files.options import BadLines, Options

__all__ = ["JsonFile", "table_type"]

BLOCK = 4 << 20
FIRST = 1_000  # lines at the beginning that are parsed one by one

Lines = list[tuple[int, bytes]]


class JsonFile:
    """One file of JSON Lines; ``shapes`` has the shape of each attribute over all files of the stream.

    Raises :class:`DataError` for a file that cannot be read.
    """

    def __init__(self, source: EventFile, options: Options, bad: BadLines, shapes: dict[str, JsonShape]) -> None:
        self.source, self.options, self.bad, self.shapes = source, options, bad, shapes
        self.skipped: set[int] = set()
        self.rows = 0

    def look(self) -> Iterator[pa.Table]:
        """Yield blocks of rows with types that may still change, and record shapes and bad lines."""
        begun = False
        for number, block in self._blocks():
            head, rest = (block, b"") if begun else _cut(block, FIRST)
            if begun:
                table = self._fast(block, _count(block))
                if table is not None and self._exact(table, block, number):
                    self.rows += table.num_rows
                    yield table
                    continue
            begun = True
            for at, part in ((number, head), (number + head.count(b"\n"), rest)):
                if part:
                    table = self._slow(at, part)
                    self.rows += table.num_rows
                    yield table
        if not self.rows and not self.shapes and not self.skipped:
            raise DataError(f"`{self.source.name}` holds no objects", hint="one JSON object a line", code="file_read")

    def values(self, types: Mapping[str, pa.DataType]) -> Iterator[pa.Table]:
        """Yield blocks of rows of ``types`` (columns of times or with a cast keep the type of their JSON values)."""
        for number, whole in self._blocks():
            block = self._without_skipped(number, whole) if self.skipped else whole
            table = self._fast(block, _count(block), types)
            if table is None:
                lines = [(at, line) for at, line in _lines(block, number)]
                rows = [self._object(at, line) for at, line in lines]
                table = _table(rows, types, self.options)
            if table.num_rows:
                yield table

    # Blocks -------------------------------------------------------------------------------------

    def _blocks(self) -> Iterator[tuple[int, bytes]]:
        """Yield blocks of whole lines, each with the number of its first line (from 1)."""
        number, rest, first = 1, b"", True
        try:
            with self.source.open() as stream:
                while data := stream.read(BLOCK):
                    if first:
                        data, first = data.removeprefix(b"\xef\xbb\xbf"), False
                    end = data.rfind(b"\n") + 1
                    if not end:
                        rest += data
                        continue
                    block, rest = rest + data[:end], data[end:]
                    yield number, block
                    number += block.count(b"\n")
        except (OSError, pa.ArrowException) as wrong:
            raise DataError(
                f"`{self.source.name}` cannot be read: {reason_of(wrong)}", hint="is it whole?", code="file_read"
            ) from None
        if rest.strip():
            yield number, rest + b"\n"

    def _without_skipped(self, number: int, block: bytes) -> bytes:
        lines = block.splitlines(keepends=True) if b"\r" not in block else _split(block)
        return b"".join(line for at, line in enumerate(lines, number) if at not in self.skipped)

    # Arrow's reader -----------------------------------------------------------------------------

    def _fast(self, block: bytes, many: int, types: Mapping[str, pa.DataType] | None = None) -> pa.Table | None:
        """Read a block with Arrow's reader; ``None`` if that is not possible, or not exact."""
        from pyarrow import json as arrow_json

        given = self._types() if types is None else types
        if any(self._needs_text(name) for name in given):
            return None
        plain = {name: held for name, held in given.items() if not (pa.types.is_list(held) or self.shapes[name].unread)}
        if not plain or not many:
            return None
        try:
            block.decode()
            table = arrow_json.read_json(
                io.BytesIO(block),
                read_options=arrow_json.ReadOptions(use_threads=False, block_size=len(block) + 1),
                parse_options=arrow_json.ParseOptions(
                    explicit_schema=pa.schema(list(plain.items())),
                    unexpected_field_behavior="error" if self.options.columns is None and not types else "ignore",
                ),
            )
        except (pa.ArrowException, UnicodeDecodeError, OSError):
            return None
        if table.num_rows != many:
            return None
        columns = [
            table.column(name) if name in plain else pa.chunked_array([pa.nulls(many, held)])
            for name, held in given.items()
        ]
        return pa.Table.from_arrays(columns, names=list(given))

    def _types(self) -> dict[str, pa.DataType]:
        """Return the columns to read, and their types as far as they are known."""
        names = self.options.wanted([*self.shapes])
        return {name: table_type(name, self.shapes[name], self.options) for name in names}

    def _needs_text(self, name: str) -> bool:
        """Return whether the text of a number is needed, which Arrow's reader does not provide."""
        cast, shape = self.options.casts.get(name), self.shapes.get(name)
        if cast is None or shape is None or shape.kind not in ("number", "text"):
            return False
        if shape.mixed:
            return not pa.types.is_decimal(cast.type)
        return shape.kind == "number" and pa.types.is_string(cast.type) and (shape.fraction or bool(shape.big))

    def _exact(self, table: pa.Table, block: bytes, number: int) -> bool:
        """Return whether all numbers are exact, and record integers that no float equals and numbers with too many
        digits."""
        doubles = [
            name
            for name in table.column_names
            if pa.types.is_floating(table.schema.field(name).type) and name not in self.options.casts
        ]
        if any(self.shapes[name].long is None for name in doubles):
            self._note_long(block, number)
        for name in table.column_names:
            held = table.schema.field(name).type
            shape = self.shapes[name]
            if pa.types.is_struct(held):
                if _has_numbers(held):
                    return False  # numbers in fields are checked line by line
            elif pa.types.is_floating(held) and any((np.abs(v) >= EXACT).any() for v in _numbers(table.column(name))):
                return False
            elif pa.types.is_integer(held) and not shape.inexact:
                for values in _numbers(table.column(name)):
                    for value in values[np.abs(values) > EXACT].tolist()[:1]:
                        shape.see_integer(value, f"`{self.source.name}`, line {number} or below")
        return True

    def _note_long(self, block: bytes, number: int) -> None:
        """Record the numbers with too many digits, line by line."""
        at, seen = 0, -1
        for start in long_runs(block):
            if start < seen:
                continue
            number += block.count(b"\n", at, start)
            at, seen = start, block.find(b"\n", start) % (len(block) + 1)
            self._see(self._object(number, block[block.rfind(b"\n", 0, start) + 1 : seen].strip()), number)

    # Line by line -------------------------------------------------------------------------------

    def _slow(self, number: int, block: bytes) -> pa.Table:
        rows, lines = [], []
        for at, line in _lines(block, number):
            try:
                row = self._object(at, line)
                self._see(row, at)
            except DataError as wrong:
                if not self.options.skip_bad_lines:
                    raise
                self.bad.add(wrong.message)
                self.skipped.add(at)
            else:
                rows.append(row)
                lines.append(line)
        # Arrow's reader makes the table if possible, because pa.array of Python values may import pandas.
        table = self._fast(b"\n".join([*lines, b""]), len(lines))
        return _table(rows, self._types(), self.options) if table is None else table

    def _see(self, row: dict[str, Any], at: int) -> None:
        wanted = self.options.columns
        where = f"`{self.source.name}`, line {at}"
        fresh: dict[str, JsonShape] = {}
        for name, value in row.items():
            if wanted is not None and not _is_wanted(name, wanted):
                fresh[name] = self.shapes.get(name, JsonShape(unread=True))
                continue
            shape = self.shapes.get(name, JsonShape())
            if self.options.skip_bad_lines:  # a rejected line must not change any shape
                shape = shape.copy()
            try:
                shape.see(name, value, at, self.source.name, mixing=name in self.options.casts)
            except KindError as wrong:
                hint = f"give it one type, or cast it: {as_cast(name, 'string')}"
                raise DataError(f"{where}: {wrong}", hint=hint, code="data_value") from None
            fresh[name] = shape
        self.shapes.update(fresh)

    def _object(self, at: int, line: bytes) -> dict[str, Any]:
        where = f"`{self.source.name}`, line {at}"
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
            raise DataError(
                f"{where}, column {bad.colno}: broken JSON: {bad.msg}", hint=hint, code="data_value"
            ) from None
        except RecursionError:
            raise DataError(
                f"{where} is nested too deeply", hint="attributes are single values", code="data_value"
            ) from None
        except ValueError as bad:
            raise DataError(f"{where}: broken JSON: {bad}", hint=hint, code="data_value") from None
        return row


def table_type(name: str, shape: JsonShape, options: Options) -> pa.DataType:
    """Return the type in which an attribute is read, before it is cast."""
    cast = options.casts.get(name)
    held = shape.type()
    if cast is None or shape.kind not in ("number", "text"):
        return held
    if pa.types.is_decimal(cast.type):
        return cast.type
    if pa.types.is_string(cast.type) and held == pa.float64():
        return pa.string()
    return held


def _is_wanted(name: str, wanted: Iterable[str]) -> bool:
    return any(one == name or one.startswith(name + ".") for one in wanted)


def _no_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    row = dict(pairs)
    if len(row) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"`{next(name for name in names if names.count(name) > 1)}` is there twice")
    return row


def _table(rows: list[dict[str, Any]], types: Mapping[str, pa.DataType], options: Options) -> pa.Table:
    """Return objects as a table; numbers that become texts keep their original text."""
    arrays = []
    for name, held in types.items():
        values: list[Any] = [row.get(name) for row in rows]
        if pa.types.is_list(held) or pa.types.is_null(held):
            values = [None] * len(rows)
        elif pa.types.is_string(held) and name in options.casts:
            values = [v.text if isinstance(v, Raw) else v if v is None else str(v) for v in values]
        elif pa.types.is_decimal(held):
            arrays.append(_decimals(values, held))
            continue
        elif pa.types.is_floating(held):
            values = [None if v is None else _float(v) for v in values]
        arrays.append(pa.array(values, held))
    return pa.Table.from_arrays(arrays, names=list(types))


def _float(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf  # rejected later, as no float is equal to it


def _decimals(values: list[Any], held: pa.DataType) -> pa.Array:
    texts = [None if v is None else v.text if isinstance(v, Raw) else str(v) for v in values]
    try:
        return pa.array(texts, pa.string()).cast(held)
    except pa.ArrowInvalid:
        return pa.array(texts, pa.string())  # the cast rejects it later, with the row


def _numbers(column: pa.ChunkedArray) -> Iterator[Any]:
    """Yield the non-null numbers of a column of 64-bit values, one array per chunk."""
    for chunk in column.chunks:
        if len(chunk) > chunk.null_count:
            yield buffer(chunk)[~nulls(chunk)]


def _has_numbers(held: pa.DataType) -> bool:
    if pa.types.is_struct(held):
        return any(_has_numbers(field.type) for field in held)
    return bool(pa.types.is_floating(held) or pa.types.is_integer(held))


# Lines ------------------------------------------------------------------------------------------


def _split(block: bytes) -> list[bytes]:
    return [line + b"\n" for line in block.split(b"\n")[:-1]]


def _lines(block: bytes, number: int) -> Iterator[tuple[int, bytes]]:
    for at, line in enumerate(block.split(b"\n"), number):
        if stripped := line.strip():
            yield at, stripped


def _count(block: bytes) -> int:
    """Count the lines of a block that are not blank."""
    if b"\n\n" in block or b"\r\n" in block or block[:1] in b"\r\n \t" or b"\n " in block or b"\n\t" in block:
        return sum(1 for line in block.split(b"\n") if line.strip())
    return block.count(b"\n")


def _cut(block: bytes, lines: int) -> tuple[bytes, bytes]:
    at = -1
    for _ in range(lines):
        at = block.find(b"\n", at + 1)
        if at < 0:
            return block, b""
    return block[: at + 1], block[at + 1 :]
