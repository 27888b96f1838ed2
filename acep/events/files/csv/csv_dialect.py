"""Find out how a CSV file is written: its columns, what stands between cells, and the headers of Zeek's logs."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import dataclass, field
from typing import Literal

from acep.errors import DataError
from acep.events.files.csv.csv_rows import NOT_CLOSED, ROWS_INSIDE, TOO_LONG, RowCutter, RowPiece, count_lines
from acep.events.files.finding import EventFile
from acep.events.files.options import Options, too_long
from acep.events.files.text_bytes import text_chunks

__all__ = ["ZEEK", "Dialect", "dialect_of", "fault_of"]

DELIMITERS = {"csv": ",", "tsv": "\t"}
ZEEK = b"#separator "
ZEEK_CASTS = {
    "time": "timestamp(s)", "interval": "float", "double": "float", "count": "int", "int": "int", "port": "int",
    "bool": "bool",
}  # fmt: skip
"""The casts of Zeek's types; those of all others are texts."""
HINTS = {
    NOT_CLOSED: "close it, or take quotation marks as text: quote=None",
    ROWS_INSIDE: "if the row ends with its line, take the mark away; if cells hold such lines: multiline_cells=True",
}
TWICE = "a quotation mark inside a cell is written twice; quote=None takes quotation marks as text"


@dataclass(frozen=True)
class Dialect:
    """How a file is written: the ``names`` of its columns, the ``delimiter`` between cells, whether cells may stand in
    ``quotes``, and the number of lines before the first row. Of Zeek's logs also the ``casts`` that go with the types
    in the header, the text of a ``null``, and that of what is ``empty``."""

    names: list[str]
    delimiter: str
    quotes: bool = True
    header_lines: int = 0
    casts: dict[str, str] = field(default_factory=dict)
    null: str | None = None
    empty: str | None = None

    @property
    def is_zeek(self) -> bool:
        """Return whether lines that begin with ``#`` are no rows."""
        return self.null is not None


def dialect_of(source: EventFile, options: Options, size: int) -> Dialect:
    """Return how a CSV file is written; ``size`` bytes are read at a time. A file without text has no names.

    Raises :class:`DataError` for a file that cannot be read, or has no header.
    """
    delimiter = options.delimiter or DELIMITERS[source.form]
    cutter = RowCutter(delimiter.encode(), options.max_line, options.quotes)
    for piece in cutter.pieces(text_chunks(source, options, size)):
        if piece.why is None and piece.data.startswith(ZEEK):
            return _zeek(piece.data, source.name)
        if piece.why is not None:
            raise fault_of(piece, source.name, options)
        for n_lines, row in cutter.rows(piece.data):
            header_lines = piece.line - 1 + n_lines + max(count_lines(row), 1)
            names = _names(row, delimiter, source.name, options)
            if piece.line + n_lines > 1 and len(set(names)) < len(names):  # is it a row?
                raise DataError(
                    f"`{source.name}`, line {piece.line + n_lines} is the header, as lines before it are empty, and"
                    " two of its names are equal",
                    hint="the first line names the columns",
                    code="data_column",
                )
            return Dialect(names, delimiter, options.quotes, header_lines)
    return Dialect([], delimiter, options.quotes)


def fault_of(piece: RowPiece, name: str, options: Options) -> DataError:
    """Return the error for a line of a file at which no row begins."""
    if piece.why == TOO_LONG:
        return too_long(name, piece.line, options)
    hint = HINTS.get(piece.why or "", TWICE)
    return DataError(f"`{name}`, line {piece.line}: {piece.why}", hint=hint, code="data_value")


def _names(row: bytes, delimiter: str, file: str, options: Options) -> list[str]:
    """Return the names of the columns."""
    quoting: Literal[0, 3] = csv.QUOTE_MINIMAL if options.quotes else csv.QUOTE_NONE
    try:
        names = next(csv.reader(io.StringIO(row.decode(), newline=""), delimiter=delimiter, quoting=quoting))
    except UnicodeDecodeError:
        raise DataError(
            f"`{file}`: the header is not UTF-8 text", hint="save the file as UTF-8", code="data_value"
        ) from None
    except csv.Error:
        raise DataError(f"`{file}`: the header has a name of more than 128 KB", code="data_column") from None
    if len(names) > options.max_columns:
        raise DataError(
            f"`{file}` has {len(names):,} columns, and {options.max_columns:,} are allowed",
            hint="is it what it seems? max_columns= allows more",
            code="data_column",
        )
    sign = next((sign for sign in "\t;|," if sign in names[0]), None) if len(names) == 1 else None
    if sign is not None and options.delimiter is None:
        shown = "tab" if sign == "\t" else sign
        raise DataError(
            f"`{file}` has one column, which is called {names[0]!r}",
            hint=f'if that stands between its cells: delimiter="{shown}"',
            code="data_column",
        )
    return names


def _zeek(data: bytes, file: str) -> Dialect:
    """Return the dialect of one of Zeek's logs, by the lines at its beginning."""
    lines = data.decode("utf-8", "replace").splitlines()
    escaped = lines[0].removeprefix(ZEEK.decode()).strip()
    delimiter = re.sub(r"\\x([0-9a-fA-F]{2})", lambda match: chr(int(match[1], 16)), escaped)
    header: dict[str, list[str]] = {}
    n_lines = 0
    for line in lines:
        if not line.startswith("#"):
            break
        n_lines += 1
        name, *values = line[1:].split(delimiter)
        header.setdefault(name, values)
    names, types = header.get("fields", []), header.get("types", [])
    if len(delimiter) != 1 or not names or len(names) != len(types):
        raise DataError(
            f"`{file}`: the header of Zeek has no `#fields` with their `#types`", hint="is it whole?", code="data_value"
        )
    casts = {name: ZEEK_CASTS.get(zeek_type, "string") for name, zeek_type in zip(names, types, strict=True)}
    null, empty = (
        "".join(header.get(key, [usual])) for key, usual in (("unset_field", "-"), ("empty_field", "(empty)"))
    )
    return Dialect(names, delimiter, quotes=False, header_lines=n_lines, casts=casts, null=null, empty=empty)
