"""Read files of events as one stream: batches in the order of time, in bounded memory."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from acep.errors import DataError
from acep.events.fields import again_error, check_names, column_at, fields_of, null_error
from acep.events.files.casts import cast_column
from acep.events.files.csv_files import CsvFile
from acep.events.files.disk_sort import sorted_on_disk
from acep.events.files.finding import Paths, sources_of
from acep.events.files.formats import reason_of
from acep.events.files.json_lines import JsonFile, table_type
from acep.events.files.options import BadLines, Options
from acep.events.files.survey import Part, Survey, survey, values_of, without
from acep.events.files.text_types import typed

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
            yield self.whole()
            return
        blocks = self._blocks()
        if self.sorted_on_disk:
            keys = [name for name in (self._options.ts, self._options.seq) if name is not None]
            blocks = sorted_on_disk(_numbered(blocks), [*keys, ROW], self._folder)
        for table in blocks:
            for start in range(0, table.num_rows, ROWS):
                yield table.slice(start, ROWS)

    def whole(self) -> pa.Table:
        """Return all events, in the order of their rows."""
        tables = list(self._blocks())
        return pa.concat_tables(tables) if tables else self.schema.empty_table()

    def once(self) -> EventStream:
        """Return the events without the rows whose ids came before. The ids are sorted, on disk if necessary.

        Raises :class:`DataError` for an id that is null, and for one that came before if it is refused.
        """
        if not self._options.drop_duplicates:
            for _ in self._rows_again():
                pass
            return self
        rows, path = (self._folder / name for name in ("duplicates", "duplicates.int64"))
        rows.mkdir()
        again = (pa.table({ROW: numbers}) for numbers in self._rows_again())
        with path.open("wb") as file:
            for table in sorted_on_disk(again, [ROW], rows):
                file.write(table.column(ROW).to_numpy().tobytes())
        size = path.stat().st_size // 8
        if not size:
            return self
        return replace(self, rows=self.rows - size, duplicates=size, _left_out=np.memmap(path, np.int64, "r"))

    def _rows_again(self) -> Iterator[list[int]]:
        """Yield the numbers of the rows whose ids came before, in the order of the ids."""
        name, last, ids = self._options.id or "", None, self._folder / "ids"
        ids.mkdir()

        def columns() -> Iterator[pa.Table]:
            for table in _numbered(self._blocks()):
                column = column_at(table, name)
                assert column is not None
                if column.null_count:
                    row = table.column(ROW)[column.to_pylist().index(None)]
                    raise null_error(name, row.as_py())
                yield pa.table({"id": column, ROW: table.column(ROW)})

        for table in sorted_on_disk(columns(), ["id", ROW], ids):
            again = list[int]()
            for value, row in zip(table.column(0).to_pylist(), table.column(1).to_pylist(), strict=True):
                if value == last and not self._options.drop_duplicates:
                    raise again_error(name, value, row)
                if value == last:
                    again.append(row)
                last = value
            if again:
                yield again

    def _blocks(self) -> Iterator[pa.Table]:
        at = 0
        for part in self._survey.parts:
            for table in _kept(part, self._survey.types, self._options):
                size = table.num_rows
                yield _shaped(self._without_duplicates(table, at), self.schema)
                at += size

    def _without_duplicates(self, table: pa.Table, first: int) -> pa.Table:
        """Return the rows of a table, numbered from ``first``, without those that are left out."""
        if self._left_out is None:
            return table
        begin, end = np.searchsorted(self._left_out, [first, first + table.num_rows])
        if begin == end:
            return table
        return without(table, (self._left_out[begin:end] - first).tolist())


@contextmanager
def open_events(paths: Paths, options: Options) -> Iterator[EventStream]:
    """Open files of events: make a first pass over them, so that their batches can be read.

    Raises :class:`DataError` for files that are missing, damaged or do not fit together.
    """
    check_names(ts=options.ts, type=options.type, seq=options.seq, id=options.id)
    try:
        with tempfile.TemporaryDirectory(prefix="acep-events-") as name:
            folder = Path(name)
            found = survey(sources_of(paths, options.format, folder), options)
            disorder = found.ordered is False
            fields = [pa.field(name, held) for name, held in found.types.items()]
            if disorder:
                fields.append(pa.field(ROW, pa.int64()))
            small = found.ordered is None
            events = EventStream(
                pa.schema(fields), found.rows, small, disorder, found.back, found.bad, found, options, folder
            )
            has_ids = options.id is not None and options.id in fields_of(events.schema)
            # The ids of a small stream are looked at as it is matched, unless some rows are left out.
            if has_ids and (options.drop_duplicates if small else not found.rising):
                events = events.once()
            yield events
    except OSError as wrong:
        if isinstance(wrong, BrokenPipeError):
            raise
        raise DataError(
            f"the events cannot be read: {reason_of(wrong)}",
            hint="is there room for temporary files?",
            code="file_read",
        ) from None


def _kept(part: Part, types: Mapping[str, pa.DataType], options: Options) -> Iterator[pa.Table]:
    """Yield the rows of a file with their casts, without the rows that are skipped."""
    at, next_dropped = 0, 0
    for raw in _raw(part, types, options):
        table, size = raw, raw.num_rows
        stop = next_dropped
        while stop < len(part.dropped) and part.dropped[stop] < at + size:
            stop += 1
        if stop > next_dropped:
            table = without(table, [row - at for row in part.dropped[next_dropped:stop]])
        at, next_dropped = at + size, stop
        for name, cast in options.casts.items():
            if name in table.column_names:
                table = table.set_column(table.column_names.index(name), name, cast_column(table.column(name), cast))
        yield table


def _raw(part: Part, types: Mapping[str, pa.DataType], options: Options) -> Iterator[pa.Table]:
    file = part.file
    if isinstance(file, CsvFile):
        yield from file.values({n: pa.string() if n in options.casts else types[n] for n in file.wanted})
    elif isinstance(file, JsonFile):
        held = {n: table_type(n, file.shapes[n], options) for n in types if n in file.shapes}
        for table in file.values(held):
            for name, wanted in types.items():
                if name in held and name not in options.casts and wanted != held[name]:
                    place = table.column_names.index(name)
                    table = table.set_column(place, name, _texts_as(table.column(name), wanted))  # noqa: PLW2901
            yield table
    else:
        yield from file.values()


def _texts_as(column: pa.ChunkedArray, wanted: pa.DataType) -> pa.ChunkedArray:
    """Convert texts of JSON to times; for few texts use Arrow's CSV reader, which needs no further import."""
    return typed(column, wanted) if len(column) < ROWS else values_of(column, wanted)


def _shaped(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return the table with the columns of the whole stream."""
    if table.schema.names == schema.names and table.schema.types == schema.types:
        return table
    columns: dict[str, Any] = {}
    for field in schema:
        if field.name == ROW:
            continue
        column = table.column(field.name) if field.name in table.column_names else None
        if column is None:
            column = pa.chunked_array([pa.nulls(table.num_rows, field.type)])
        columns[field.name] = column if column.type == field.type else column.cast(field.type)
    return pa.table(columns)


def _numbered(blocks: Iterator[pa.Table]) -> Iterator[pa.Table]:
    row = 0
    for table in blocks:
        yield table.append_column(ROW, pa.array(range(row, row + table.num_rows), pa.int64()))
        row += table.num_rows
