"""Read CSV files in blocks of rows: first as texts to find the types, then as values of these types."""

from __future__ import annotations

import codecs
import contextlib
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from acep.errors import DataError
from acep.events.files.finding import EventFile
from acep.events.files.formats import reason_of
from acep.events.files.options import BadLines, Options

__all__ = ["CsvFile", "marked"]

BLOCK = 1 << 20
MARK = "\U0010ffff"  # not a character; it replaces bytes that are not UTF-8
MARKING = "acep-mark"


class CsvFile:
    """One CSV file. ``names`` are its columns, ``wanted`` those that are read.

    Raises :class:`DataError` for a file that cannot be read.
    """

    def __init__(self, source: EventFile, options: Options, bad: BadLines) -> None:
        self.source, self.options, self.bad = source, options, bad
        self.names: list[str] = []
        with self._open(None, {}) as reader, contextlib.suppress(UnicodeDecodeError):
            self.names = reader.schema.names
        if not self.names or any(MARK in name for name in self.names):
            raise DataError(
                f"`{source.name}`: the header is not UTF-8 text", hint="save the file as UTF-8", code="data_value"
            )
        self.wanted = options.wanted(self.names, source.name)

    def texts(self) -> Iterator[pa.Table]:
        """Yield blocks of rows as texts; an empty cell is null. This pass counts bad lines."""
        yield from self._blocks(dict.fromkeys(self.wanted, pa.string()), first=True)

    def values(self, types: Mapping[str, pa.DataType]) -> Iterator[pa.Table]:
        """Yield blocks of rows as values of ``types`` (text for columns that are cast later)."""
        for table in self._blocks(dict(types), first=False):
            filled = [_empty_to_null(column) if pa.types.is_string(column.type) else column for column in table.columns]
            yield pa.Table.from_arrays(filled, names=table.column_names)

    def _blocks(self, types: dict[str, pa.DataType], *, first: bool) -> Iterator[pa.Table]:
        with self._open(self.wanted, types, first=first) as reader:
            while True:
                try:
                    batch = reader.read_next_batch()
                except StopIteration:
                    return
                except (pa.ArrowException, OSError, UnicodeDecodeError) as wrong:
                    raise self._error(wrong) from None
                if batch.num_rows:
                    yield pa.Table.from_batches([batch])

    def _open(self, include: Sequence[str] | None, types: dict[str, pa.DataType], *, first: bool = False) -> Any:
        """Open the file. In the ``first`` pass bad lines are counted, and empty cells are null."""
        from pyarrow import csv

        # Arrow passes rows to the handler as text, so the bytes must be valid UTF-8.
        handler = None
        if self.options.skip_bad_lines:
            handler = self._counting if first else lambda row: "skip"
        null: dict[str, Any] = {"strings_can_be_null": True, "null_values": [""]} if first else {}
        try:
            stream = self.source.open()
            return csv.open_csv(
                pa.PythonFile(Marked(stream), "r") if self.options.skip_bad_lines else stream,
                read_options=csv.ReadOptions(use_threads=False, block_size=BLOCK),
                parse_options=csv.ParseOptions(newlines_in_values=True, invalid_row_handler=handler),
                convert_options=csv.ConvertOptions(include_columns=include, column_types=types, **null),
            )
        except (pa.ArrowException, OSError, UnicodeDecodeError) as wrong:
            raise self._error(wrong) from None

    def _counting(self, row: Any) -> str:
        said = _ragged(self.source.name, row.number, row.expected_columns, row.actual_columns)
        self.bad.add(said)
        return "skip"

    def _error(self, wrong: BaseException) -> DataError:
        name, reason = self.source.name, reason_of(wrong)
        if found := re.search(r"Row #(\d+): Expected (\d+) columns, got (\d+)", reason):
            said = _ragged(name, int(found[1]), int(found[2]), int(found[3]))
            return DataError(said, hint="mend the row, or leave such rows out: skip_bad_lines=True", code="data_value")
        if "Empty CSV" in reason:
            return DataError(f"`{name}` is empty", code="file_read")
        found = re.search(r"CSV column #(\d+): Row #(\d+): .*invalid UTF8", reason)
        if found and int(found[1]) < len(self.names):
            column, row = self.names[int(found[1])], found[2]
            where = f"`{name}`: column `{column}` is not UTF-8 text in row {row} (the header is row 1)"
            return DataError(where, hint="save the file as UTF-8", code="data_value")
        if "straddling" in reason:
            return DataError(
                f"`{name}` has a row longer than {BLOCK >> 20} MB",
                hint="is a quotation mark missing?",
                code="data_value",
            )
        if isinstance(wrong, OSError) and not isinstance(wrong, pa.ArrowException):
            return DataError(f"`{name}` cannot be read: {reason}", hint="is it whole?", code="file_read")
        return DataError(f"`{name}` cannot be read: {reason}", code="file_read")


def _ragged(name: str, number: int | None, wanted: int, got: int) -> str:
    at = "" if number is None else f", row {number}"
    return f"`{name}`{at} has {got} cell{'s' if got != 1 else ''}, the header {wanted} (the header is row 1)"


def marked(table: pa.Table) -> list[int]:
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


class Marked(io.RawIOBase):
    """A byte stream in which a mark replaces bytes that are not UTF-8."""

    def __init__(self, stream: pa.NativeFile) -> None:
        super().__init__()
        self.stream = stream
        self.decoder = codecs.getincrementaldecoder("utf-8")(MARKING)

    def readable(self) -> bool:
        """Return True: the stream can be read."""
        return True

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes, empty at the end."""
        while data := self.stream.read(size if size >= 0 else None):
            if text := self.decoder.decode(data):
                return text.encode()
        return self.decoder.decode(b"", final=True).encode()


def _mark(wrong: UnicodeError) -> tuple[str, int]:
    assert isinstance(wrong, UnicodeDecodeError)
    return MARK, wrong.end


codecs.register_error(MARKING, _mark)


def _empty_to_null(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Replace empty texts by nulls, with a new mask over the same buffers (importing pyarrow.compute is slow)."""
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
