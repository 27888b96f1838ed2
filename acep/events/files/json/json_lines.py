"""Read JSON Lines in blocks: with Arrow's reader if that is exact, else line by line, which locates each mistake."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from acep.errors import DataError
from acep.events.buffers import buffer, nulls
from acep.events.fields import column_at
from acep.events.files.casts import as_cast
from acep.events.files.finding import EventFile
from acep.events.files.json.json_rows import is_deeper, object_of, table_of
from acep.events.files.json.json_shapes import EXACT, AttributeLimit, JsonShape, KindError, LinePlace
from acep.events.files.json.line_blocks import count_lines, cut, line_blocks, lines_of, parts_of, rows_at_once
from acep.events.files.json.used_names import Used, part_within
from acep.events.files.long_numbers import long_runs
from acep.events.files.options import BadLines, Options
from acep.events.files.text_bytes import VALUE, check_expansion
from acep.events.nested import path_to

__all__ = ["JsonFile", "columns_of"]

BLOCK = 4 << 20
MAX_DEPTH = 100  # of objects and lists inside each other
FIRST = 1_000  # lines at the beginning that are parsed one by one

Shapes = dict[str, JsonShape]


def columns_of(shapes: Shapes, options: Options) -> dict[str, pa.DataType]:
    """Return the columns of a stream of JSON Lines by its ``shapes``, in the types in which they are read.

    If a column that is used is missing, all names that were seen are among them, so that the error can be explained.
    """
    read = {name: shape.type(name, options.casts) for name, shape in shapes.items() if not shape.unread}
    if options.columns is None:
        return read
    schema, columns = pa.schema(list(read.items())), dict[str, pa.DataType]()
    has_missing = False
    for name in options.columns:
        if (path := path_to(schema, name)) is not None:
            columns[name] = path.type
        elif name not in options.casts and not (name == options.type == "type"):
            has_missing = True
    if has_missing:
        for root, shape in shapes.items():
            for name in shape.names(root):
                columns.setdefault(name, read.get(name, pa.null()))
    return columns


class JsonFile:
    """One file of JSON Lines; ``shapes`` has the shape of each attribute over all files of the stream, and ``limit``
    how many may be read.

    Raises :class:`DataError` for a file that cannot be read.
    """

    def __init__(
        self, source: EventFile, options: Options, bad: BadLines, shapes: Shapes, limit: AttributeLimit
    ) -> None:
        self.source, self.options, self.bad, self.shapes, self.limit = source, options, bad, shapes, limit
        self.skipped: set[int] = set()
        self._used = Used(options.columns)
        self._n_rows = 0  # of the first pass so far

    def survey_blocks(self) -> Iterator[pa.Table]:
        """Yield blocks of rows with types that may still change, and record shapes and bad lines."""
        is_first = True
        for number, block in self._blocks(counts=True):
            head, tail = cut(block, FIRST) if is_first else (b"", block)
            yield from self._read_by_line(number, head)
            is_first = False
            for part_line, part in parts_of(tail, number + head.count(b"\n"), self.limit.n_read):
                n_lines, roots = count_lines(part), self._roots()
                self._check_values(n_lines)
                table = self._read_with_arrow(part, n_lines, roots, is_first=True)
                if table is None or not self._is_exact(table, part, part_line):
                    yield from self._read_by_line(part_line, part)
                else:
                    self._n_rows += table.num_rows
                    yield self._select_columns(table)

    def values(self, types: Mapping[str, pa.DataType]) -> Iterator[pa.Table]:
        """Yield blocks of rows of ``types``, which are those of :func:`columns_of`."""
        roots = self._roots()
        for number, raw_block in self._blocks():
            block = self._without_skipped(number, raw_block) if self.skipped else raw_block
            for part_line, part in parts_of(block, number, self.limit.n_read):
                table = self._read_with_arrow(part, count_lines(part), roots)
                if table is None:
                    table = table_of(
                        [self._object(line_number, line) for line_number, line in lines_of(part, part_line)], roots
                    )
                if table.num_rows:
                    yield self._select_columns(table, types)

    def place_of(self, row: int) -> str:
        """Return the words for the place of a row; rows count from 0, without those that are skipped."""
        for number, block in self._blocks():
            lines = [line_number for line_number, _ in lines_of(block, number) if line_number not in self.skipped]
            if row < len(lines):
                return f"`{self.source.name}`, line {lines[row]}"
            row -= len(lines)
        raise AssertionError("the file has become shorter")

    def as_written(self, text: str) -> str:
        """Return a text as it is in the file: itself."""
        return text

    def is_in_list(self, name: str) -> bool:
        """Return whether a name that is used is of something inside a list."""
        path = path_to(pa.schema(list(self._roots().items())), name) if "[" in name else None
        return path is not None and path.through_list

    # Columns ------------------------------------------------------------------------------------

    def _roots(self) -> dict[str, pa.DataType]:
        """Return the attributes that are read, with their types as far as they are known."""
        casts = self.options.casts
        return {name: shape.type(name, casts) for name, shape in self.shapes.items() if not shape.unread}

    def _select_columns(self, table: pa.Table, types: Mapping[str, pa.DataType] | None = None) -> pa.Table:
        """Return the columns that are used, of the attributes of a table; without ``types`` those that it has."""
        columns: dict[str, Any] = {}
        for name in types or self.options.columns or table.column_names:
            column = column_at(table, name)
            if column is None and types is not None:
                column = pa.chunked_array([pa.nulls(table.num_rows, types[name])])
            if column is not None:
                columns[name] = column
        return pa.Table.from_arrays([*columns.values()], names=[*columns]) if columns else table.select([])

    # Blocks -------------------------------------------------------------------------------------

    def _blocks(self, *, counts: bool = False) -> Iterator[tuple[int, bytes]]:
        """Yield blocks of whole lines, each with the number of its first line (from 1). With ``counts`` lines that are
        too long are refused, or counted; else they are empty."""

        def refuse(wrong: DataError) -> None:
            if counts and not self.options.skip_bad_lines:
                raise wrong
            if counts:
                self.bad.add(wrong.message)

        yield from line_blocks(self.source, self.options, BLOCK, refuse)

    def _without_skipped(self, number: int, block: bytes) -> bytes:
        lines = block.split(b"\n")
        return b"\n".join(
            b"" if line_number in self.skipped else line for line_number, line in enumerate(lines, number)
        )

    # Arrow's reader -----------------------------------------------------------------------------

    def _read_with_arrow(
        self, block: bytes, n_lines: int, roots: Mapping[str, pa.DataType], *, is_first: bool = False
    ) -> pa.Table | None:
        """Read a block with Arrow's reader; ``None`` if that is not possible, or not exact."""
        from pyarrow import json as arrow_json

        casts = self.options.casts
        if not roots or not n_lines or any(self.shapes[name].needs_lines(name, casts) for name in roots):
            return None
        is_all = is_first and self._used.everything
        try:
            block.decode()
            table = arrow_json.read_json(
                io.BytesIO(block),
                read_options=arrow_json.ReadOptions(use_threads=False, block_size=len(block) + 1),
                parse_options=arrow_json.ParseOptions(
                    explicit_schema=pa.schema(list(roots.items())),
                    unexpected_field_behavior="error" if is_all else "ignore",
                ),
            )
        except MemoryError:
            raise
        except (pa.ArrowException, UnicodeDecodeError, OSError):
            return None
        return table.select(list(roots)) if table.num_rows == n_lines else None

    def _is_exact(self, table: pa.Table, block: bytes, number: int) -> bool:
        """Return whether all numbers are exact, and record integers that no float equals and numbers with too many
        digits."""
        from acep.events.files.exponents import has_long_exponents  # files of other formats do not need it

        if has_long_exponents(block):
            return False
        doubles = False
        for name in table.column_names:
            for shape, array in self._leaves(name, self.shapes[name], table.column(name)):
                data_type = array.type
                if pa.types.is_floating(data_type):
                    doubles = doubles or shape.long is None
                    if any((np.abs(values) >= EXACT).any() for values in _numbers(array)):
                        return False
                elif pa.types.is_integer(data_type) and not shape.inexact:
                    for values in _numbers(array):
                        for value in values[np.abs(values) > EXACT].tolist()[:1]:
                            shape.see_integer(value, f"`{self.source.name}`, line {number} or below")
        if doubles:
            self._note_long(block, number)
        return True

    def _leaves(self, name: str, shape: JsonShape, array: Any) -> Iterator[tuple[JsonShape, Any]]:
        """Yield the shapes and values of an attribute that is not cast, or to doubles, and of what is inside it."""
        data_type = array.type
        cast = self.options.casts.get(name)
        if (cast is not None and not pa.types.is_floating(cast.type)) or pa.types.is_null(data_type):
            return
        if pa.types.is_struct(data_type):
            for field, inner in zip(data_type, array.flatten(), strict=True):
                yield from self._leaves(f"{name}.{field.name}", shape.fields[field.name], inner)
        elif pa.types.is_list(data_type):
            for chunk in array.chunks if isinstance(array, pa.ChunkedArray) else [array]:
                if shape.items is not None:
                    yield from self._leaves(f"{name}[]", shape.items, chunk.flatten())
        else:
            yield shape, array

    def _note_long(self, block: bytes, number: int) -> None:
        """Record the numbers with too many digits, line by line."""
        counted_to, seen_to = 0, -1
        for start in long_runs(block):
            if start < seen_to:
                continue
            number += block.count(b"\n", counted_to, start)
            counted_to, seen_to = start, block.find(b"\n", start) % (len(block) + 1)
            self._see(self._object(number, block[block.rfind(b"\n", 0, start) + 1 : seen_to].strip()), number)

    # Line by line -------------------------------------------------------------------------------

    def _read_by_line(self, number: int, block: bytes) -> Iterator[pa.Table]:
        rows, lines = [], []
        for line_number, line in lines_of(block, number):
            try:
                row = self._object(line_number, line)
                self._see(row, line_number)
            except DataError as wrong:
                if not self.options.skip_bad_lines:
                    raise
                self.bad.add(wrong.message)
                self.skipped.add(line_number)
            else:
                rows.append(row)
                lines.append(line)
        self._check_values(len(rows))
        self._n_rows += len(rows)
        roots, n_at_once = self._roots(), rows_at_once(self.limit.n_read)
        for start in range(0, len(rows), n_at_once):
            stop = min(start + n_at_once, len(rows))
            # Arrow's reader makes the table if possible, because pa.array of Python values may import pandas.
            table = self._read_with_arrow(b"\n".join([*lines[start:stop], b""]), stop - start, roots)
            yield self._select_columns(table_of(rows[start:stop], roots) if table is None else table)

    def _check_values(self, n_rows: int) -> None:
        """Raise :class:`DataError` if there are too many values for the size of the file once ``n_rows`` more are read:
        few bytes may make many, as each line may have attributes of its own."""
        check_expansion(self.source, self.options, (self._n_rows + n_rows) * self.limit.n_read * VALUE, "read")

    def _see(self, row: dict[str, Any], line_number: int) -> None:
        """Record the shapes of the attributes of a line. Raises :class:`DataError`; with bad lines that are skipped, no
        shape has changed then."""
        place, casts = LinePlace(self.source.name, line_number), self.options.casts
        attributes = [(name, value, used) for name, value in row.items() if (used := self._used.used_part(name))]
        for name, value, _ in attributes:
            if is_deeper(value, MAX_DEPTH):
                raise DataError(
                    f"{place}: `{name}` is nested too deeply",
                    hint=f"attributes have at most {MAX_DEPTH} objects and lists inside each other",
                    code="data_value",
                )
        try:
            for name, value, used in attributes if self.options.skip_bad_lines else ():
                # By itself first: the elements of a list may be of several kinds.
                JsonShape().see(name, value, place, used, AttributeLimit(casts, self.options.max_columns))
                if name in self.shapes:
                    self.shapes[name].check_kinds(name, value, place, used, casts)
            for name, value, used in attributes:
                shape = self.shapes.get(name)
                if shape is None:
                    self.limit.take(place)
                    shape = self.shapes[name] = JsonShape()
                shape.see(name, value, place, used, self.limit)
        except KindError as wrong:
            name = str(wrong).split("`")[1]
            hint = f"give it one type, or cast it: {as_cast(name, 'string')}"
            within = part_within(self.options.columns or (), f"{name}[]" if wrong.is_of_element else name)
            if name in (self.options.ts, self.options.seq):
                hint = "give it one type"
            elif within is not None:
                hint = f"`{within}` is used; write all lines alike"
            elif wrong.is_of_element:
                hint = (
                    f"give all elements one type, or make texts of them: {as_cast(f'{name}[]', 'string')};"
                    f" {as_cast(name, 'string')} makes one text of the list, which has no elements"
                )
            raise DataError(f"{place}: {wrong}", hint=hint, code="data_value") from None
        if len(attributes) < len(row) and len(self.shapes) < self.options.max_columns:
            for name in row:
                if self._used.used_part(name) is None:
                    self.shapes.setdefault(name, JsonShape(unread=True))

    def _object(self, line_number: int, line: bytes) -> dict[str, Any]:
        return object_of(line, f"`{self.source.name}`, line {line_number}")


def _numbers(array: Any) -> Iterator[Any]:
    """Yield the non-null numbers of 64-bit values, one array per chunk."""
    for chunk in array.chunks if isinstance(array, pa.ChunkedArray) else [array]:
        if len(chunk) > chunk.null_count:
            yield buffer(chunk)[~nulls(chunk)]
