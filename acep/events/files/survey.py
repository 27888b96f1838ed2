"""Make the first pass over a stream of files: find the types of its columns over all rows, whether it is in order of
time, and its errors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from acep.errors import DataError
from acep.events.buffers import join_chunks
from acep.events.columns import UNIT_NS
from acep.events.fields import fields_of
from acep.events.files.casts import Cast, as_cast, bad_rows, cast_column, with_nanoseconds
from acep.events.files.csv.csv_files import CsvFile, rows_with_marks
from acep.events.files.finding import EventFile
from acep.events.files.json.json_lines import JsonFile
from acep.events.files.json.json_shapes import AttributeLimit, JsonShape
from acep.events.files.odd_values import OddColumn, shown_value, two_kinds_of_times
from acep.events.files.options import BadLines, Options
from acep.events.files.parquet.parquet_files import ParquetFile
from acep.events.files.stream_types import casts_to_come, check_integers, check_stream, types_of_stream
from acep.events.files.text_columns import TextColumns, values_of
from acep.events.files.whole_numbers import reason_of_value
from acep.events.times import value_of

__all__ = ["SMALL", "Part", "Survey", "survey"]

SMALL = 16 << 20
"""The size in bytes of columns up to which a stream is read at once."""

File = CsvFile | JsonFile | ParquetFile


@dataclass
class Part:
    """One file of the stream: its reader, the rows that are skipped, and its number of rows."""

    file: File
    dropped: list[int] = field(default_factory=list)
    rows: int = 0

    def place_of(self, row: int) -> str:
        """Return the words for the place of a row; rows count from 0, without those in ``dropped``."""
        for dropped in self.dropped:
            row += dropped <= row
        return self.file.place_of(row)


@dataclass
class Survey:
    """The result of the first pass: the ``parts``, the ``types`` of all columns, whether the rows are ``ordered`` by
    time (``None`` for a small stream, for which this is not checked), the first row that goes ``back`` in time, the
    number of ``rows``, the ``bad`` lines, and whether the ids are ``rising`` integers. ``remarks`` are warnings.
    ``odd_columns`` are columns of texts that would have another type but for few of them."""

    parts: list[Part]
    types: dict[str, pa.DataType]
    ordered: bool | None
    back: int
    rows: int
    bad: BadLines
    rising: bool
    remarks: list[str]
    odd_columns: dict[str, OddColumn]


class _Looking:
    """The state of the first pass."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.bad = BadLines()
        self.text_columns = TextColumns(options)
        self.shapes: dict[str, JsonShape] = {}
        self.attributes = AttributeLimit(options.casts, options.max_columns)
        self.zoned: dict[str, bool] = {}  # whether the times of a column that is cast have a zone
        self.last: tuple[int, ...] | None = None
        self.back = -1
        self.rows = 0
        self.rising = True  # the ids are rising integers, so that each occurs once
        self.last_id: int | None = None

    def type_of(self, name: str, data_type: pa.DataType, form: str) -> pa.DataType:
        """Return the type of a column as far as it is known."""
        if name in self.options.casts:
            wanted = self.options.casts[name].type
            return pa.timestamp(wanted.unit, "UTC") if self.zoned.get(name) else wanted
        return self.text_columns.type_of(name, data_type, form)

    def check(self, table: pa.Table, part: Part, *, deep: bool) -> None:
        """Check the casts and nulls of a block and, if ``deep``, its order and ids."""
        options = self.options
        wrong: dict[int, str] = {}  # one error for each bad row
        for column, cast in list(options.casts.items()):
            if column in table.column_names:
                wrong = self._find_broken(table.column(column), column, cast, part.file) | wrong
        for role in (options.ts, options.seq, options.id):
            if role is not None and role in table.column_names and table.column(role).null_count:
                rows = np.flatnonzero(table.column(role).is_null().to_numpy()).tolist()
                wrong = dict.fromkeys(rows, f"`{role}` is null") | wrong
        if options.skip_bad_lines and isinstance(part.file, CsvFile):
            wrong = dict.fromkeys(rows_with_marks(table), "no UTF-8 text") | wrong
        if wrong:
            self._refuse_rows(wrong, part)
        part.rows += table.num_rows
        if wrong:
            table = drop_rows(table, sorted(wrong))
        if deep:
            self._order(table, part.file.source.form)
            self._check_ids(table, part.file.source.form)
        self.rows += table.num_rows

    def _refuse_rows(self, wrong: dict[int, str], part: Part) -> None:
        """Count bad rows, or raise :class:`DataError` for the first of them."""
        first = min(wrong)
        where = ""
        if not self.options.skip_bad_lines or not self.bad.count:
            where = f"{part.file.place_of(part.rows + first)}: {wrong[first]}"
        if not self.options.skip_bad_lines:
            null = wrong[first].endswith("is null")
            hint = "mend it, cast to another type, or leave such rows out: skip_bad_lines=True"
            raise DataError(
                where,
                hint="fill it in, or leave such rows out: skip_bad_lines=True" if null else hint,
                code="data_null" if null else "data_value",
            )
        kinds = Counter(what for text in wrong.values() if (what := text.split(": ")[0]) != text)
        self.bad.add(where, len(wrong), kinds)
        part.dropped += [part.rows + row for row in sorted(wrong)]

    def _find_broken(self, column: pa.ChunkedArray, name: str, cast: Cast, file: File) -> dict[int, str]:
        """Return the rows whose value a cast cannot represent, with their error messages."""
        try:
            values = cast_column(column, cast)
        except DataError as wrong:
            hint = f"{as_cast(name, 'timestamp(s)')}, or (ms), (us), (ns)"
            raise DataError(f"`{name}`: {wrong.message}", hint=hint, code="data_value") from None
        except MemoryError:
            raise
        except (pa.ArrowException, ValueError, OverflowError):
            finer_cast = with_nanoseconds(cast)
            rows = bad_rows(column, lambda values: cast_column(values, finer_cast or cast))
            if finer_cast is not None and rows != bad_rows(column, lambda values: cast_column(values, cast)):
                self.options.casts[name] = finer_cast
            elif pa.types.is_timestamp(cast.type):
                good_rows = np.delete(np.arange(len(column)), rows)
                try:
                    if len(good_rows):
                        self._zone(name, cast_column(column.take(pa.array(good_rows)), self.options.casts[name]))
                except pa.ArrowException:  # each of them is a time
                    raise two_kinds_of_times(name, self.options) from None
            reason_of_row = reason_of_value if pa.types.is_floating(cast.type) else lambda _: ""
            values = {row: column[row] for row in rows}
            return {
                row: f"`{name}` is no {cast.text}: {shown_value(value, file)}{reason_of_row(value_of(value))}"
                for row, value in values.items()
            }
        self._zone(name, values)
        return {}

    def _zone(self, name: str, values: pa.ChunkedArray) -> None:
        """Record whether the times of a column that is cast have a zone."""
        if pa.types.is_timestamp(values.type) and values.null_count < len(values):
            zoned = values.type.tz is not None
            if self.zoned.setdefault(name, zoned) is not zoned:
                raise two_kinds_of_times(name, self.options)

    def _order(self, table: pa.Table, form: str) -> None:
        if self.back >= 0 or not table.num_rows:
            return
        keys = [self._ticks(table, name, form) for name in (self.options.ts, self.options.seq) if name is not None]
        columns = [key for key in keys if key is not None]
        if len(columns) < len(keys):
            return
        ts, *orders = (values for values, _ in columns)
        goes_back = ts[1:] < ts[:-1]
        for order in orders:
            goes_back |= (ts[1:] == ts[:-1]) & (order[1:] < order[:-1])
        first, last = (tuple(int(values[row]) * unit for values, unit in columns) for row in (0, -1))
        if self.last is not None and first < self.last:
            self.back = self.rows
        elif goes_back.any():
            self.back = self.rows + int(np.argmax(goes_back)) + 1
        self.last = last

    def _check_ids(self, table: pa.Table, form: str) -> None:
        """Check whether the ids of a block rise further."""
        if self.options.id is None or not self.rising or not table.num_rows:
            return
        ids = self._ticks(table, self.options.id, form)
        if ids is None:
            self.rising = False
            return
        values, _ = ids
        above = self.last_id is None or int(values[0]) > self.last_id
        self.rising = above and bool(np.all(values[1:] > values[:-1]))
        self.last_id = int(values[-1])

    def _ticks(self, table: pa.Table, name: str, form: str) -> tuple[Any, int] | None:
        """Return a column of times or integers as numbers, and the size of their unit; ``None`` for other columns."""
        if name not in table.column_names:
            return None
        column = table.column(name)
        if name in self.options.casts:
            column = cast_column(column, self.options.casts[name])
        else:
            column = values_of(column, self.text_columns.type_of(name, column.type, form))
        data_type = column.type
        if pa.types.is_dictionary(data_type):
            column = column.cast(data_type.value_type)
            data_type = data_type.value_type
        if column.null_count:
            return None
        if pa.types.is_date32(data_type):
            return join_chunks(column)[0], UNIT_NS["d"]
        if pa.types.is_timestamp(data_type) or pa.types.is_date64(data_type):
            return join_chunks(column)[0], UNIT_NS["ms" if pa.types.is_date64(data_type) else data_type.unit]
        if pa.types.is_integer(data_type):
            try:
                return join_chunks(column.cast(pa.int64()))[0], 1
            except pa.ArrowInvalid:
                return None  # beyond 64 bits, which is rejected later
        return None


def survey(sources: list[EventFile], options: Options) -> Survey:
    """Make a first pass over all files of a stream.

    Raises :class:`DataError` for files that cannot be read, or do not fit together, and for more bad lines than may be
    skipped.
    """
    if options.casts_are_there:
        options.check_forms({source.form for source in sources})
    looking = _Looking(options)
    parts: list[Part] = []
    waiting: list[tuple[pa.Table, Part]] = []
    size = 0
    for part, table in _tables(sources, looking, parts):
        waiting.append((table, part))
        file = part.file
        size += int(file.width * table.num_rows) if isinstance(file, ParquetFile) else table.nbytes
        if size > SMALL:
            for block, block_part in waiting:
                looking.check(block, block_part, deep=True)
            waiting = []
    for block, block_part in waiting:
        looking.check(block, block_part, deep=False)
    looking.bad.check_share(looking.rows, options)
    files = [part.file for part in parts]
    check_stream(files, looking.shapes, options)
    looking.text_columns.check_roles()
    check_integers(looking.shapes, options)
    types = types_of_stream(files, looking.shapes, options, looking.type_of)
    looking.text_columns.check_numbers(types)
    for name, shape in looking.shapes.items():
        if not shape.unread:
            orders = (options.ts, options.seq or "")
            shape.check(name, options.casts, castable=True, fields_castable=options.columns is not None, orders=orders)
    ordered = None if size <= SMALL else looking.back < 0
    odd_columns = looking.text_columns.odd_columns(fields_of(pa.schema(list(types.items()))))
    remarks = [*map(str, odd_columns.values())]
    if options.casts_are_there:
        remarks += [
            f"no event has `{name}`, which is cast: it is null"
            for name in casts_to_come(files, looking.shapes, options)
        ]
    return Survey(parts, types, ordered, looking.back, looking.rows, looking.bad, looking.rising, remarks, odd_columns)


def _tables(sources: list[EventFile], looking: _Looking, parts: list[Part]) -> Iterator[tuple[Part, pa.Table]]:
    for source in sources:
        part = Part(_file(source, looking))
        parts.append(part)
        file, rows = part.file, 0
        if isinstance(file, CsvFile | JsonFile):
            for table in file.texts() if isinstance(file, CsvFile) else file.survey_blocks():
                looking.text_columns.see(table, file, rows)
                rows += table.num_rows
                yield part, table
        else:
            options = looking.options
            needed = {options.ts, options.seq, options.id, *options.casts} & set(file.schema.names)
            for table in file.values([n for n in file.schema.names if n in needed]):
                yield part, table


def _file(source: EventFile, looking: _Looking) -> File:
    if source.form in ("csv", "tsv"):
        return CsvFile(source, looking.options, looking.bad)
    if source.form == "jsonl":
        return JsonFile(source, looking.options, looking.bad, looking.shapes, looking.attributes)
    return ParquetFile(source, looking.options)


def drop_rows(table: pa.Table, rows: list[int]) -> pa.Table:
    """Return the table without the given rows."""
    keep = np.ones(table.num_rows, bool)
    keep[rows] = False
    return table.filter(pa.array(keep))
