"""Read CSV files in blocks of rows: first as texts to find the types, then as values of these types."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from acep.errors import DataError
from acep.events.files.casts import cast_of
from acep.events.files.csv.csv_dialect import dialect_of, fault_of
from acep.events.files.csv.csv_rows import RowCutter, RowPiece, count_lines
from acep.events.files.csv.decimal_comma import as_written, with_points
from acep.events.files.finding import EventFile
from acep.events.files.formats import reason_of
from acep.events.files.options import BadLines, Options
from acep.events.files.text_bytes import text_chunks

__all__ = ["CsvFile", "rows_with_marks"]

BLOCK = 1 << 20
HEADER = 1 << 16  # bytes that hold the header of a log of Zeek
MARK = "\U0010ffff"  # not a character; it replaces bytes that are not UTF-8
MARKING = "acep-mark"
TIME = re.compile(r"\s*([+-]?\d+(\.\d+)?|\d{4}-\d\d-\d\d.*)\s*")


class CsvFile:
    """One CSV file. ``names`` are its columns, ``wanted`` those that are read. A file without text has none.

    Raises :class:`DataError` for a file that cannot be read.
    """

    def __init__(self, source: EventFile, options: Options, bad: BadLines) -> None:
        self.source, self.options, self.bad = source, options, bad
        self.dialect = dialect_of(source, options, max(BLOCK, HEADER))
        self.names = self.dialect.names
        self.wanted = options.columns_to_read(self.names, source.name)
        for name in self.wanted:
            if name in self.dialect.casts:
                options.casts.setdefault(name, cast_of(name, self.dialect.casts[name]))
        delimiter = self.dialect.delimiter.encode()
        self._cutter = RowCutter(delimiter, options.max_line, self.dialect.quotes)
        if options.ts in self.names and not options.multiline_cells:
            self._cutter = replace(self._cutter, is_row=self._is_row)
        # Of a file whose every line was a row in the first pass, the stamp: its marks need no second look.
        self._stamp_of_lines: tuple[int, int] | None = None
        self._lines_are_rows = True

    def texts(self) -> Iterator[pa.Table]:
        """Yield blocks of rows as texts; an empty cell is null. This pass counts bad lines."""
        for table in self._tables(dict.fromkeys(self.wanted, pa.string()), is_first=True):
            yield with_points(table, self.wanted) if self.options.decimal == "," else table

    def values(self, types: Mapping[str, pa.DataType]) -> Iterator[pa.Table]:
        """Yield blocks of rows as values of ``types`` (text for columns that are cast later)."""
        casts = {name: cast for name, cast in self.options.casts.items() if name in types}
        for table in self._tables(dict(types), is_first=False):
            read = table
            if not self.dialect.is_zeek:
                read = pa.Table.from_arrays(list(map(_empty_to_null, table.columns)), names=table.column_names)
            if self.options.decimal == ",":
                read = with_points(read, [name for name, cast in casts.items() if not pa.types.is_string(cast.type)])
            yield read

    def place_of(self, row: int) -> str:
        """Return the words for the place of a row; rows count from 0, without those that are skipped."""
        for piece in self._pieces():
            lines = [n for n, data in self._cutter.rows(piece.data) if self._cutter.n_cells(data) == len(self.names)]
            if row < len(lines):
                return f"`{self.source.name}`, line {piece.line + lines[row]}"
            row -= len(lines)
        raise AssertionError("the file has become shorter")

    def as_written(self, text: str) -> str:
        """Return a text of :meth:`texts` as it is in the file."""
        return as_written(text) if self.options.decimal == "," else text

    def end_of_rows(self, data: bytes) -> int:
        """Return where the last whole row of some data ends, which begins with a row of the file."""
        return self._cutter.end_of_rows(data)

    # Pieces -------------------------------------------------------------------------------------

    def _is_row(self, line: bytes) -> bool:
        """Return whether a line inside a cell looks like a row of the file: it has as many cells, and a time."""
        cells = self._cutter.cells(line)
        if len(cells) != len(self.names):
            cells = line.decode("latin-1").split(self.dialect.delimiter)
        if len(cells) != len(self.names):
            return False
        return TIME.fullmatch(cells[self.names.index(self.options.ts)].strip('"')) is not None

    def _stamp(self) -> tuple[int, int]:
        status = self.source.path.stat()
        return status.st_size, status.st_mtime_ns

    def _pieces(self, *, counts: bool = False, by_lines: bool = False) -> Iterator[RowPiece]:
        """Yield the rows of the file. With ``counts`` lines at which no row begins are refused, or counted;
        ``by_lines``: each line is a row."""
        to_drop = self.dialect.header_lines
        cutter = replace(self._cutter, quotes=False) if by_lines else self._cutter
        for piece in cutter.pieces(text_chunks(self.source, self.options, BLOCK)):
            if to_drop and piece.why is None:  # the header
                end, n_lines = _end_of_lines(piece.data, to_drop)
                piece = RowPiece(piece.line + n_lines, piece.data[end:])  # noqa: PLW2901
                to_drop -= n_lines
            if piece.why is not None:
                self._lines_are_rows = False
                if counts:
                    wrong = fault_of(piece, self.source.name, self.options)
                    if not self.options.skip_bad_lines:
                        raise wrong
                    self.bad.add(wrong.message)
            elif self.dialect.is_zeek and (piece.data.startswith(b"#") or b"\n#" in piece.data):
                yield RowPiece(piece.line, self._without_comments(piece))
            elif _has_rows(piece.data):
                yield piece

    def _without_comments(self, piece: RowPiece) -> bytes:
        """Return rows of Zeek with an empty line for each line that begins with ``#``."""
        lines = piece.data.split(b"\n")
        for i, line in enumerate(lines):
            if line.startswith(b"#fields"):
                names = line.decode("utf-8", "replace").split(self.dialect.delimiter)[1:]
                if names != self.names:
                    raise DataError(
                        f"`{self.source.name}`, line {piece.line + i}: other fields begin here",
                        hint="make two files of it",
                        code="data_column",
                    )
            if line.startswith(b"#"):
                lines[i] = b""
        return b"\n".join(lines)

    # Tables -------------------------------------------------------------------------------------

    def _tables(self, types: dict[str, pa.DataType], *, is_first: bool) -> Iterator[pa.Table]:
        stamp = self._stamp()
        for piece in self._pieces(counts=is_first, by_lines=not is_first and stamp == self._stamp_of_lines):
            table = self._parse_rows(piece, types, is_first=is_first) if _has_rows(piece.data) else None
            if is_first and (table is None or table.num_rows != _n_lines(piece.data)):
                self._lines_are_rows = False
            if table is not None and table.num_rows:
                yield self._zeek_values(table) if self.dialect.is_zeek else table
        if is_first and self._lines_are_rows:
            self._stamp_of_lines = stamp

    def _parse_rows(self, piece: RowPiece, types: dict[str, pa.DataType], *, is_first: bool) -> pa.Table:
        """Read some rows. In the ``is_first`` pass bad lines are counted, and empty cells are null."""
        from pyarrow import csv

        skips, null, n_ragged = self.options.skip_bad_lines, self.dialect.null, 0

        def count(_: Any) -> str:
            nonlocal n_ragged
            n_ragged += 1
            return "skip"

        # Arrow passes rows to the handler as text, so the bytes must be valid UTF-8.
        data = _as_utf8(piece.data) if skips else piece.data
        nulls = [*self.options.nulls, *([] if null is None else [null])]
        try:
            table = csv.read_csv(
                pa.BufferReader(data),
                read_options=csv.ReadOptions(use_threads=False, block_size=len(data) + 1, column_names=self.names),
                parse_options=csv.ParseOptions(
                    delimiter=self.dialect.delimiter,
                    quote_char='"' if self.dialect.quotes else False,
                    newlines_in_values=True,
                    invalid_row_handler=count if skips else None,
                ),
                convert_options=csv.ConvertOptions(
                    include_columns=self.wanted,
                    column_types=types,
                    decimal_point=self.options.decimal,
                    null_values=["", *nulls],
                    strings_can_be_null=is_first or bool(nulls),
                ),
            )
        except MemoryError:  # Arrow has one, too, and the file may be a good one
            raise
        except (pa.ArrowException, OSError, UnicodeDecodeError) as wrong:
            raise self._error(wrong, piece) from None
        if is_first and n_ragged:
            self.bad.add("" if self.bad.count else self._describe_ragged(piece), n_ragged)
        return table

    def _zeek_values(self, table: pa.Table) -> pa.Table:
        """Return texts of Zeek as acep reads them: what is empty as an empty text, and truth values as words."""
        words = {name: {"T": "true", "F": "false"} for name, cast in self.dialect.casts.items() if cast == "bool"}
        for i, name in enumerate(table.column_names):
            column, replacements = table.column(i), words.get(name, {self.dialect.empty: ""})
            if pa.types.is_string(column.type):
                texts = [replacements.get(text, text) for text in column.to_pylist()]
                table = table.set_column(i, name, pa.array(texts, pa.string()))
        return table

    # Errors -------------------------------------------------------------------------------------

    def _describe_ragged(self, piece: RowPiece) -> str:
        """Describe the first row with too many or too few cells."""
        n_names = len(self.names)
        for n_lines, row in self._cutter.rows(piece.data):
            if (n_cells := self._cutter.n_cells(row)) != n_names:
                cells = f"{n_cells} cell{'s' if n_cells != 1 else ''}"
                return f"`{self.source.name}`, line {piece.line + n_lines} has {cells}, the header {n_names}"
        return f"`{self.source.name}`, a line from {piece.line} on has not as many cells as the header: {n_names}"

    def _error(self, wrong: BaseException, piece: RowPiece) -> DataError:
        name, reason = self.source.name, reason_of(wrong)
        if re.search(r"Expected \d+ columns, got \d+", reason):
            hint = "mend the row, or leave such rows out: skip_bad_lines=True"
            return DataError(self._describe_ragged(piece), hint=hint, code="data_value")
        if "invalid UTF8" in reason:
            for n_lines, row in self._cutter.rows(piece.data):
                for column, cell in zip(self.names, self._cutter.cells(row), strict=False):
                    if column in self.wanted and not _is_utf8(cell.encode("latin-1")):
                        message = f"`{name}`, line {piece.line + n_lines}: `{column}` is not UTF-8 text"
                        return DataError(message, hint="save the file as UTF-8", code="data_value")
        place = re.search(r"CSV column #(\d+): Row #(\d+): CSV conversion error to (.*): invalid value (.*)", reason)
        lines = [n for n, _ in self._cutter.rows(piece.data)] if place else []
        if place and int(place[2]) <= len(lines):
            line, column = piece.line + lines[int(place[2]) - 1], self.names[int(place[1])]
            return DataError(f"`{name}`, line {line}: `{column}` is no {place[3]}: {place[4]}", code="data_value")
        return DataError(f"`{name}` cannot be read: {reason}", code="file_read")


def _has_rows(data: bytes) -> bool:
    """Return whether some data has more than line ends."""
    return data[:1] not in (b"", b"\n", b"\r") or bool(data.strip(b"\r\n"))


def _n_lines(data: bytes) -> int:
    return count_lines(data) + (data[-1:] not in (b"\n", b"\r"))


def _end_of_lines(data: bytes, max_lines: int) -> tuple[int, int]:
    """Return the place after the first lines, and how many they are: ``max_lines``, unless there are fewer."""
    line_feed, end = b"\n" if b"\n" in data else b"\r", 0
    for i in range(max_lines):
        if end == len(data):
            return end, i
        end = data.find(line_feed, end) + 1 or len(data)
    return end, max_lines


# Bytes that are not UTF-8 -----------------------------------------------------------------------


def rows_with_marks(table: pa.Table) -> list[int]:
    """Return the rows with a text that was not UTF-8 in the file."""
    rows: set[int] = set()
    for column in table.columns:
        if pa.types.is_string(column.type) and any(MARK.encode() in memory(chunk) for chunk in column.chunks):
            rows |= {row for row, text in enumerate(column.to_pylist()) if text is not None and MARK in text}
    return sorted(rows)


def memory(chunk: pa.StringArray) -> bytes:
    """Return the bytes of an array of texts."""
    data = chunk.buffers()[2]
    return b"" if data is None else data.to_pybytes()


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _as_utf8(data: bytes) -> bytes:
    """Return bytes with a mark in place of those that are not UTF-8."""
    return data if _is_utf8(data) else data.decode("utf-8", MARKING).encode()


def _mark(wrong: UnicodeError) -> tuple[str, int]:
    assert isinstance(wrong, UnicodeDecodeError)
    return MARK, wrong.end


codecs.register_error(MARKING, _mark)


def _empty_to_null(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Replace empty texts by nulls, with a new mask over the same buffers (importing pyarrow.compute is slow)."""
    if not pa.types.is_string(column.type):
        return column
    chunks = []
    for chunk in column.chunks:
        if chunk.offset or not len(chunk) or chunk.null_count:
            chunk = pa.array([text or None for text in chunk.to_pylist()], pa.string())  # noqa: PLW2901
        else:
            _, offsets, data = chunk.buffers()
            filled = np.diff(np.frombuffer(offsets, np.int32)[: len(chunk) + 1]) > 0
            mask = pa.py_buffer(np.packbits(filled, bitorder="little"))
            chunk = pa.Array.from_buffers(pa.string(), len(chunk), [mask, offsets, data])  # noqa: PLW2901
        chunks.append(chunk)
    return pa.chunked_array(chunks, pa.string())
