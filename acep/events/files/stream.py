"""Read files of events as one stream: batches in the order of time, in bounded memory."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from acep.errors import DataError, DataWarning, QueryError, warn_caller
from acep.events.duplicates import settle_duplicates
from acep.events.fields import check_names, column_at, fields_of, null_error, repeat_error
from acep.events.files.casts import as_cast, bad_rows, cast_column
from acep.events.files.csv.csv_files import CsvFile
from acep.events.files.csv.csv_values import convert_texts
from acep.events.files.disk_sort import sort_on_disk
from acep.events.files.finding import Paths, sources_of
from acep.events.files.formats import reason_of
from acep.events.files.json.json_lines import JsonFile, columns_of
from acep.events.files.odd_values import OddColumn
from acep.events.files.options import BadLines, Options
from acep.events.files.survey import Part, Survey, drop_rows, survey
from acep.events.files.text_columns import values_of
from acep.events.nested import place_of

__all__ = ["ROW", "EventStream", "open_events"]

ROW = "__row__"
"""The column with the position of each row in the input, present if events are sorted on disk."""
ROWS = 1 << 16

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class EventStream:
    """Events after a first pass over their files: their ``schema`` and number of ``rows``. A ``small`` stream is
    returned as one table in the order of the files. With ``sorted_on_disk`` the events are sorted first and have a
    column :data:`ROW`; ``back`` is then the first row that goes back in time. ``bad`` are the skipped lines.
    ``duplicates`` rows are left out, as their ids came before."""

    schema: pa.Schema
    rows: int
    small: bool
    sorted_on_disk: bool
    back: int
    bad: BadLines
    _survey: Survey
    _options: Options
    _folder: Path
    duplicates: int = 0
    _left_out: Ints | None = None  # the numbers of those rows, in a file

    def batches(self) -> Iterator[pa.Table]:
        """Yield the events in batches, in the order of (``ts``, ``seq``, row); a small stream as one table in the order
        of its rows."""
        if self.small:
            table = self.read_all()
            checked = self._options.checks_ids and not self._options.drop_duplicates
            yield settle_duplicates(table, self._options.id, place_of=self.place_of) if checked else table
            return
        blocks = self._blocks()
        if self.sorted_on_disk:
            keys = [name for name in (self._options.ts, self._options.seq) if name is not None]
            blocks = sort_on_disk(_number_rows(blocks), [*keys, ROW], self._folder)
        for table in blocks:
            for start in range(0, table.num_rows, ROWS):
                yield table.slice(start, ROWS)

    def read_all(self) -> pa.Table:
        """Return all events, in the order of their rows."""
        tables = list(self._blocks())
        return pa.concat_tables(tables) if tables else self.schema.empty_table()

    def settle_ids(self) -> EventStream:
        """Return the events without the rows whose ids came before. The ids are sorted, on disk if necessary.

        Raises :class:`DataError` for an id that is null, and for one that came before if it is refused.
        """
        if not self._options.drop_duplicates:
            for _ in self._rows_again():
                pass
            return self
        rows, path = (self._folder / name for name in ("duplicates", "duplicates.int64"))
        rows.mkdir()
        repeated_rows = (pa.table({ROW: numbers}) for numbers in self._rows_again())
        with path.open("wb") as file:
            for table in sort_on_disk(repeated_rows, [ROW], rows):
                file.write(table.column(ROW).to_numpy().tobytes())
        size = path.stat().st_size // 8
        if not size:
            return self
        return replace(self, rows=self.rows - size, duplicates=size, _left_out=np.memmap(path, np.int64, "r"))

    def place_of(self, row: int) -> str:
        """Return the words for the place of a row in its file; rows count from 0, in the order of the files."""
        if self._left_out is not None:
            row += int(np.searchsorted(self._left_out - np.arange(len(self._left_out)), row, side="right"))
        for part in self._survey.parts:
            n_kept = part.rows - len(part.dropped)
            if row < n_kept:
                return part.place_of(row)
            row -= n_kept
        raise AssertionError("there are not so many rows")

    def _rows_again(self) -> Iterator[list[int]]:
        """Yield the numbers of the rows whose ids came before, in the order of the ids."""
        name, last, ids = self._options.id or "", None, self._folder / "ids"
        ids.mkdir()

        def columns() -> Iterator[pa.Table]:
            for table in _number_rows(self._blocks()):
                column = column_at(table, name)
                assert column is not None
                if column.null_count:
                    row = table.column(ROW)[column.to_pylist().index(None)]
                    raise null_error(name, row.as_py(), self.place_of(row.as_py()))
                yield pa.table({"id": column, ROW: table.column(ROW)})

        for table in sort_on_disk(columns(), ["id", ROW], ids):
            repeated_rows = list[int]()
            for value, row in zip(table.column(0).to_pylist(), table.column(1).to_pylist(), strict=True):
                if value == last and not self._options.drop_duplicates:
                    raise repeat_error(name, value, row, self.place_of(row))
                if value == last:
                    repeated_rows.append(row)
                last = value
            if repeated_rows:
                yield repeated_rows

    def _blocks(self) -> Iterator[pa.Table]:
        first = 0
        for part in self._survey.parts:
            n_rows = 0
            for table in _read_rows(part, self._survey.types, self._options):
                size = table.num_rows
                yield self._without_duplicates(_fit_schema(table, self.schema, part, n_rows), first)
                first += size
                n_rows += size

    def _without_duplicates(self, table: pa.Table, first: int) -> pa.Table:
        """Return the rows of a table, numbered from ``first``, without those that are left out."""
        if self._left_out is None:
            return table
        begin, end = np.searchsorted(self._left_out, [first, first + table.num_rows])
        if begin == end:
            return table
        return drop_rows(table, (self._left_out[begin:end] - first).tolist())


@contextmanager
def open_events(paths: Paths, options: Options) -> Iterator[EventStream]:
    """Open files of events: make a first pass over them, so that their batches can be read.

    Raises :class:`DataError` for files that are missing, damaged or do not fit together. An error of types of a query
    that is raised inside names the odd values of the columns in the query.
    """
    odd_columns: dict[str, OddColumn] = {}
    check_names(ts=options.ts, type=options.type, seq=options.seq, id=options.id)
    try:
        with tempfile.TemporaryDirectory(prefix="acep-events-") as name:
            folder = Path(name)
            options = replace(options, casts=dict(options.casts))  # reading may add to them
            first_pass = survey(sources_of(paths, options, folder), options)
            odd_columns = first_pass.odd_columns
            for remark in first_pass.remarks if options.remarks else ():
                warn_caller(remark, DataWarning)
            disorder = first_pass.ordered is False
            types = first_pass.types
            if not types and options.columns is not None:  # there is no text in any file
                types = {
                    name: options.casts[name].type if name in options.casts else pa.null() for name in options.columns
                }
            fields = [pa.field(name, column_type) for name, column_type in types.items()]
            if disorder:
                fields.append(pa.field(ROW, pa.int64()))
            small = first_pass.ordered is None
            events = EventStream(
                pa.schema(fields),
                first_pass.rows,
                small,
                disorder,
                first_pass.back,
                first_pass.bad,
                first_pass,
                options,
                folder,
            )
            has_ids = options.checks_ids and options.id is not None and options.id in fields_of(events.schema)
            # The ids of a small stream are looked at as it is matched, unless some rows are left out.
            if has_ids and (options.drop_duplicates if small else not first_pass.rising):
                events = events.settle_ids()
            yield events
    except QueryError as wrong:
        names = [name for name in odd_columns if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", wrong.text or "")]
        if wrong.code == "query_type" and names:
            cells = "; ".join(f"{odd_columns[name].value}; so it is a column of texts" for name in names[:2])
            wrong.hint = cells if wrong.hint is None else f"{wrong.hint}; {cells}"
        raise
    except OSError as wrong:
        if isinstance(wrong, BrokenPipeError):
            raise
        raise DataError(
            f"the events cannot be read: {reason_of(wrong)}",
            hint="is there room for temporary files?",
            code="file_read",
        ) from None


def _read_rows(part: Part, types: Mapping[str, pa.DataType], options: Options) -> Iterator[pa.Table]:
    """Yield the rows of a file with their casts, without the rows that are skipped."""
    first_row, next_dropped = 0, 0
    for raw_table in _read_file(part, types, options):
        table, size = raw_table, raw_table.num_rows
        stop = next_dropped
        while stop < len(part.dropped) and part.dropped[stop] < first_row + size:
            stop += 1
        if stop > next_dropped:
            table = drop_rows(table, [row - first_row for row in part.dropped[next_dropped:stop]])
        first_row, next_dropped = first_row + size, stop
        for name, cast in options.casts.items():
            if name in table.column_names:
                table = table.set_column(table.column_names.index(name), name, cast_column(table.column(name), cast))
        yield table


def _read_file(part: Part, types: Mapping[str, pa.DataType], options: Options) -> Iterator[pa.Table]:
    file = part.file
    if isinstance(file, CsvFile):
        yield from file.values({n: pa.string() if n in options.casts else types[n] for n in file.wanted})
    elif isinstance(file, JsonFile):
        read_types = columns_of(file.shapes, options)
        for table in file.values(read_types):
            for name, wanted in types.items():
                if name in read_types and name not in options.casts and wanted != read_types[name]:
                    place = place_of(table.schema, name)
                    table = table.set_column(place, name, _texts_as(table.column(name), wanted))  # noqa: PLW2901
            yield table
    else:
        yield from file.values()


def _texts_as(column: pa.ChunkedArray, wanted: pa.DataType) -> pa.ChunkedArray:
    """Convert texts of JSON to times, also in the fields of structs; for few texts use Arrow's CSV reader, which needs
    no further import."""
    if column.type == wanted:
        return column
    if pa.types.is_struct(wanted):
        inner = [_texts_as(part, field.type) for field, part in zip(wanted, column.flatten(), strict=True)]
        fields = [pa.concat_arrays(part.chunks) for part in inner] if len(column) else [part.chunk(0) for part in inner]
        mask = pa.concat_arrays([chunk.is_null() for chunk in column.chunks])
        return pa.chunked_array([pa.StructArray.from_arrays(fields, fields=list(wanted), mask=mask)])
    return convert_texts(column, wanted) if len(column) < ROWS else values_of(column, wanted)


def _fit_schema(table: pa.Table, schema: pa.Schema, part: Part, n_rows: int) -> pa.Table:
    """Return the table with the columns of the whole stream; ``n_rows`` of its file came before."""
    if table.schema.names == schema.names and table.schema.types == schema.types:
        return table
    columns: dict[str, Any] = {}
    for field in schema:
        if field.name == ROW:
            continue
        place = place_of(table.schema, field.name)
        column = pa.chunked_array([pa.nulls(table.num_rows, field.type)]) if place is None else table.column(place)
        columns[field.name] = column if column.type == field.type else _as_field(column, field, part, n_rows)
    return pa.table(columns)


def _as_field(column: pa.ChunkedArray, field: pa.Field, part: Part, n_rows: int) -> pa.ChunkedArray:
    """Cast a column to its type in the stream. Raises :class:`DataError` for a time that this does not reach."""
    try:
        return column.cast(field.type)
    except pa.ArrowInvalid:
        row = bad_rows(column, lambda values: values.cast(field.type))[0]
        value = column.slice(row, 1).cast(pa.string())[0]
        raise DataError(
            f"{part.place_of(n_rows + row)}: `{field.name}` is {value}, which {field.type} does not reach, and other"
            " files have times that need it",
            hint=f"match the files one by one, or write their times in one unit; {as_cast(field.name, 'string')} shows"
            " them as they are",
            code="data_value",
        ) from None


def _number_rows(blocks: Iterator[pa.Table]) -> Iterator[pa.Table]:
    row = 0
    for table in blocks:
        yield table.append_column(ROW, pa.array(range(row, row + table.num_rows), pa.int64()))
        row += table.num_rows
