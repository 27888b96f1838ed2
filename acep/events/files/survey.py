"""Make the first pass over a stream of files: find the types of its columns over all rows, whether it is in order of
time, and its errors."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa

from acep.errors import DataError, suggest
from acep.events.buffers import joined
from acep.events.columns import UNIT_NS
from acep.events.fields import null_error
from acep.events.files.casts import Cast, as_cast, bad_rows, cast_column, finer
from acep.events.files.csv_files import CsvFile, marked
from acep.events.files.finding import EventFile
from acep.events.files.json_lines import JsonFile, table_type
from acep.events.files.json_shapes import JsonShape
from acep.events.files.long_numbers import first_long, refuse
from acep.events.files.options import BadLines, Options
from acep.events.files.parquet_files import ParquetFile
from acep.events.files.text_types import NUMBERS, TIMES, fits, inferred, looks, resolved, typed

__all__ = ["SMALL", "Part", "Survey", "survey"]

SMALL = 16 << 20
"""The size in bytes of columns up to which a stream is read at once."""
INTEGER = re.compile(r"\s*[+-]?\d+\s*")

File = CsvFile | JsonFile | ParquetFile


@dataclass
class Part:
    """One file of the stream: its reader, the rows that are skipped, and its number of rows."""

    file: File
    dropped: list[int] = field(default_factory=list)
    rows: int = 0


@dataclass
class Survey:
    """The result of the first pass: the ``parts``, the ``types`` of all columns, whether the rows are ``ordered`` by
    time (``None`` for a small stream, for which this is not checked), the first row that goes ``back`` in time, the
    number of ``rows``, the ``bad`` lines, and whether the ids are ``rising`` integers."""

    parts: list[Part]
    types: dict[str, pa.DataType]
    ordered: bool | None
    back: int
    rows: int
    bad: BadLines
    rising: bool


class _Looking:
    """The state of the first pass."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.bad = BadLines()
        self.seen: dict[str, dict[str, set[str]]] = {"csv": {}, "jsonl": {}, "parquet": {}}  # looks of text columns
        self.shapes: dict[str, JsonShape] = {}
        self.zoned: dict[str, bool] = {}  # whether the times of a column that is cast have a zone
        self.long: dict[str, tuple[str, str]] = {}  # by column, the place and text of the first number too long
        self.last: tuple[int, ...] | None = None
        self.back = -1
        self.rows = 0
        self.rising = True  # the ids are rising integers, so that each occurs once
        self.last_id: int | None = None

    # Types --------------------------------------------------------------------------------------

    def texts(self, table: pa.Table, source: EventFile, before: int) -> None:
        """Record the types that the columns of texts look like. In JSON a text is never a number, but may be a time.
        ``before`` is the number of earlier rows of the file."""
        options = self.options
        roles = (options.ts, options.seq, options.id)  # these are never doubles
        for name in table.column_names:
            if name in (options.type, *options.casts) or not pa.types.is_string(table.column(name).type):
                continue
            known = self.seen[source.form].setdefault(name, set())
            look = _times if source.form == "jsonl" else looks
            more = look(table.column(name), known)
            if (
                name in (options.ts, options.seq)
                and "odd" in more
                and pa.types.is_integer(inferred(table.column(name)))
            ):
                more = {"int"}  # a leading zero does not change a time
            if name == options.ts and (known | more) and pa.types.is_string(resolved(known | more)):
                _no_time(table.column(name), name, known, before, source.name)
            known |= more
            looked = source.form != "csv" or name in {*self.long, *roles} or not known <= NUMBERS
            if not looked and (long := first_long(table.column(name))) is not None:
                self.long[name] = f"`{source.name}`, row {before + long[0]} (rows count from 0)", long[1]

    def type_of(self, name: str, held: pa.DataType, form: str) -> pa.DataType:
        """Return the type of a column as far as it is known."""
        if name in self.options.casts:
            wanted = self.options.casts[name].type
            return pa.timestamp(wanted.unit, "UTC") if self.zoned.get(name) else wanted
        seen = self.seen[form].get(name)
        return held if seen is None else resolved(seen)

    # Rows ---------------------------------------------------------------------------------------

    def check(self, table: pa.Table, part: Part, *, deep: bool) -> None:
        """Check the casts and nulls of a block and, if ``deep``, its order and ids."""
        options, name = self.options, part.file.source.name
        wrong: dict[int, str] = {}  # one error for each bad row
        for column, cast in list(options.casts.items()):
            if column in table.column_names:
                wrong = self._broken(table.column(column), column, cast) | wrong
        if options.skip_bad_lines:
            for role in (options.ts, options.seq, options.id):
                if role is not None and role in table.column_names and table.column(role).null_count:
                    rows = [i for i, value in enumerate(table.column(role).to_pylist()) if value is None]
                    wrong = dict.fromkeys(rows, f"`{role}` is null") | wrong
            if isinstance(part.file, CsvFile):
                wrong = dict.fromkeys(marked(table), "no UTF-8 text") | wrong
        if wrong:
            first = min(wrong)
            where = f"`{name}`, row {part.rows + first} (rows count from 0): {wrong[first]}"
            if not options.skip_bad_lines:
                hint = "mend it, cast to another type, or leave such rows out: skip_bad_lines=True"
                raise DataError(where, hint=hint, code="data_value")
            kinds = Counter(said for text in wrong.values() if (said := text.split(": ")[0]) != text)
            self.bad.add(where, len(wrong), kinds)
            part.dropped += [part.rows + row for row in sorted(wrong)]
        part.rows += table.num_rows
        if wrong:
            table = without(table, sorted(wrong))
        if deep:
            self._order(table, part.file.source.form)
            self._check_ids(table, part.file.source.form)
        self.rows += table.num_rows

    def _broken(self, column: pa.ChunkedArray, name: str, cast: Cast) -> dict[int, str]:
        """Return the rows whose value a cast cannot represent, with their error messages."""
        try:
            made = cast_column(column, cast)
        except DataError as wrong:
            hint = f"{as_cast(name, 'timestamp(s)')}, or (ms), (us), (ns)"
            raise DataError(f"`{name}`: {wrong.message}", hint=hint, code="data_value") from None
        except (pa.ArrowException, ValueError, OverflowError):
            other = finer(cast)
            rows = bad_rows(column, lambda some: cast_column(some, other or cast))
            if other is not None and rows != bad_rows(column, lambda some: cast_column(some, cast)):
                self.options.casts[name] = other
            elif pa.types.is_timestamp(cast.type):
                rest = np.delete(np.arange(len(column)), rows)
                try:
                    self._zone(name, cast_column(column.take(pa.array(rest)), self.options.casts[name]))
                except pa.ArrowException:  # each of them is a time
                    raise _two_kinds_of_times(name) from None
            return {row: f"`{name}` is no {cast.text}: {column[row].as_py()!r}" for row in rows}
        self._zone(name, made)
        return {}

    def _zone(self, name: str, made: pa.ChunkedArray) -> None:
        """Record whether the times of a column that is cast have a zone."""
        if pa.types.is_timestamp(made.type) and made.null_count < len(made):
            zoned = made.type.tz is not None
            if self.zoned.setdefault(name, zoned) is not zoned:
                raise _two_kinds_of_times(name)

    def _order(self, table: pa.Table, form: str) -> None:
        if self.back >= 0 or not table.num_rows:
            return
        keys = [self.ticks(table, name, form) for name in (self.options.ts, self.options.seq) if name is not None]
        known = [key for key in keys if key is not None]
        if len(known) < len(keys):
            return
        ts, *rest = (values for values, _ in known)
        back = ts[1:] < ts[:-1]
        for order in rest:
            back |= (ts[1:] == ts[:-1]) & (order[1:] < order[:-1])
        first, last = (tuple(int(values[at]) * unit for values, unit in known) for at in (0, -1))
        if self.last is not None and first < self.last:
            self.back = self.rows
        elif back.any():
            self.back = self.rows + int(np.argmax(back)) + 1
        self.last = last

    def _check_ids(self, table: pa.Table, form: str) -> None:
        """Check whether the ids of a block rise further."""
        if self.options.id is None or not self.rising or not table.num_rows:
            return
        try:
            found = self.ticks(table, self.options.id, form)
        except DataError:
            found = None
        if found is None:
            self.rising = False
            return
        values, _ = found
        above = self.last_id is None or int(values[0]) > self.last_id
        self.rising = above and bool(np.all(values[1:] > values[:-1]))
        self.last_id = int(values[-1])

    def ticks(self, table: pa.Table, name: str, form: str) -> tuple[Any, int] | None:
        """Return a column of times or integers as numbers, and the size of their unit; ``None`` for other columns."""
        if name not in table.column_names:
            return None
        column = table.column(name)
        if name in self.options.casts:
            column = cast_column(column, self.options.casts[name])
        elif name in self.seen[form]:
            column = values_of(column, resolved(self.seen[form][name]))
        held = column.type
        if pa.types.is_dictionary(held):
            column = column.cast(held.value_type)
            held = held.value_type
        if column.null_count:
            row = next(i for i, value in enumerate(column.to_pylist()) if value is None)
            raise null_error(name, self.rows + row)
        if pa.types.is_date32(held):
            return joined(column)[0], UNIT_NS["d"]
        if pa.types.is_timestamp(held) or pa.types.is_date64(held):
            return joined(column)[0], UNIT_NS["ms" if pa.types.is_date64(held) else held.unit]
        if pa.types.is_integer(held):
            try:
                return joined(column.cast(pa.int64()))[0], 1
            except pa.ArrowInvalid:
                return None  # beyond 64 bits, which is rejected later
        return None


def _two_kinds_of_times(name: str) -> DataError:
    return DataError(
        f"`{name}` has times with a zone and times without one",
        hint=f"give all of them a zone, or none; {as_cast(name, 'string')} shows them as they are",
        code="data_value",
    )


def survey(sources: list[EventFile], options: Options) -> Survey:
    """Make a first pass over all files of a stream.

    Raises :class:`DataError` for files that cannot be read, or do not fit together.
    """
    looking = _Looking(options)
    parts: list[Part] = []
    waiting: list[tuple[pa.Table, Part]] = []
    size = 0
    for part, table in _tables(sources, looking, parts):
        waiting.append((table, part))
        size += table.nbytes
        if size > SMALL:
            for one, of in waiting:
                looking.check(one, of, deep=True)
            waiting = []
    for one, of in waiting:
        looking.check(one, of, deep=False)
    _check_names(looking.shapes, options)
    if options.casts_are_there:
        _check_casts([name for part in parts for name in getattr(part.file, "names", looking.shapes)], options)
    types = _types(parts, looking)
    for name, (where, text) in looking.long.items():
        if types.get(name) == pa.float64():
            raise refuse(where, name, text)
    for name, shape in looking.shapes.items():
        if name in types and name not in options.casts:
            shape.check(name, options.columns)
    ordered = None if size <= SMALL else looking.back < 0
    return Survey(parts, types, ordered, looking.back, looking.rows, looking.bad, looking.rising)


def _check_casts(there: Sequence[str], options: Options) -> None:
    """Raise :class:`DataError` for a cast of a column that no file has; files without rows may have none."""
    for name in options.casts if there else ():
        if name not in there and name.partition(".")[0] not in there:
            raise DataError(
                f"cast: there is no column `{name}`", hint=suggest(name, dict.fromkeys(there)), code="data_column"
            )


def _check_names(shapes: Mapping[str, JsonShape], options: Options) -> None:
    """Raise :class:`DataError` if a used name is that of an attribute in some lines and of a field in others."""
    for name in shapes if options.columns is None else options.columns:
        outer, _, path = name.partition(".")
        held = shapes.get(outer) if path and name in shapes else None
        for part in path.split("."):
            held = None if held is None else held.fields.get(part)
        if held is not None:
            raise DataError(
                f"`{name}` is an attribute of some lines and a field of `{outer}` in others",
                hint="write all of them alike",
                code="data_column",
            )


def _tables(sources: list[EventFile], looking: _Looking, parts: list[Part]) -> Iterator[tuple[Part, pa.Table]]:
    for source in sources:
        part = Part(_file(source, looking))
        parts.append(part)
        file, rows = part.file, 0
        if isinstance(file, CsvFile | JsonFile):
            for table in file.texts() if isinstance(file, CsvFile) else file.look():
                looking.texts(table, source, rows)
                rows += table.num_rows
                yield part, table
        else:
            options = looking.options
            needed = {options.ts, options.seq, options.id, *options.casts} & set(file.schema.names)
            for table in file.values([n for n in file.schema.names if n in needed]):
                yield part, table


def _file(source: EventFile, looking: _Looking) -> File:
    if source.form == "csv":
        return CsvFile(source, looking.options, looking.bad)
    if source.form == "jsonl":
        return JsonFile(source, looking.options, looking.bad, looking.shapes)
    return ParquetFile(source, looking.options)


def _types(parts: list[Part], looking: _Looking) -> dict[str, pa.DataType]:
    """Return the types of all columns, which must be the same in all files."""
    types: dict[str, pa.DataType] = {}
    where: dict[str, str] = {}
    columns: list[tuple[str, dict[str, pa.DataType], bool]] = []
    for part in parts:
        file = part.file
        if isinstance(file, CsvFile):
            held = {name: looking.type_of(name, pa.null(), "csv") for name in file.wanted}
            if looking.options.type in held and looking.options.type not in looking.options.casts:
                held[looking.options.type] = pa.string()
        elif isinstance(file, JsonFile):
            held = {
                name: looking.type_of(name, table_type(name, shape, looking.options), "jsonl")
                for name, shape in looking.shapes.items()
                if looking.options.columns is None or name in looking.options.wanted([*looking.shapes])
            }
        else:
            held = {f.name: looking.type_of(f.name, f.type, "parquet") for f in file.schema}
        columns.append((file.source.name, held, isinstance(file, JsonFile)))
        for name, one in held.items():
            before = types.get(name)
            if before is None or pa.types.is_null(before):
                types[name], where[name] = one, file.source.name
            elif not pa.types.is_null(one) and _plain(one) != _plain(before):
                raise DataError(
                    f"column `{name}` is {one} in `{file.source.name}`, {before} in `{where[name]}`",
                    hint=f"cast it: {as_cast(name, 'string')}, or another type",
                    code="data_type",
                )
    for name in types:
        for file_name, held, lenient in columns:
            if name not in held and not lenient:
                field = next((one for one in held if one.startswith(f"{name}.")), None)
                raise DataError(
                    f"`{file_name}` has no column `{name}`, which `{where[name]}` has",
                    hint=f"it has `{field}` as a column: write all files alike, or match each kind by itself"
                    if field
                    else None,
                    code="data_column",
                )
    for name, cast in looking.options.casts.items():
        if name not in types and looking.options.columns is not None and name in looking.options.columns:
            if not any(isinstance(part.file, JsonFile) for part in parts):
                continue
            types[name] = cast.type
    return types


def _plain(held: pa.DataType) -> pa.DataType:
    return held.value_type if pa.types.is_dictionary(held) else held


def _times(texts: pa.ChunkedArray, known: set[str]) -> set[str]:
    """Return what texts of JSON look like: kinds of times, or text."""
    if "text" in known or len(texts) == texts.null_count or (known and fits(texts, known)):
        return set()
    found = looks(texts)
    if found and found <= set(TIMES) and typed(texts, resolved(found)).null_count == texts.null_count:
        return found
    return {"text"}


def _no_time(column: pa.ChunkedArray, name: str, known: set[str], before: int, file: str) -> None:
    """Raise :class:`DataError` for the first text in a time column that is not a time, or not like earlier ones."""
    integers: bool | None = "int" in known or None
    zoned = None if not known - {"int"} else any(one.endswith("+") for one in known)
    for row, text in enumerate(column.to_pylist()):
        if text is None:
            continue
        if zoned is None and INTEGER.fullmatch(text) and integers is not False:
            integers = True
            continue
        try:
            time = datetime.fromisoformat(text)
        except ValueError:
            time = None
        if integers or time is None or (zoned is not None and zoned != (time.tzinfo is not None)):
            raise DataError(
                f"`{file}`: `{name}` is not a time in row {before + row} (rows count from 0): {text!r}",
                hint="integers, or ISO 8601 such as 2024-01-31T10:00:00, all with a zone or all without; "
                f"{as_cast(name, 'timestamp')} says that they are times, and then skip_bad_lines=True skips others",
                code="data_value",
            )
        zoned, integers = time.tzinfo is not None, False
    values = [text for text in column.to_pylist() if text is not None]
    raise DataError(
        f"`{file}`: the texts of `{name}` are not all times of one kind, such as {values[0]!r}",
        hint="integers, or ISO 8601 such as 2024-01-31T10:00:00, all with a zone or all without",
        code="data_value",
    )


# Tables -----------------------------------------------------------------------------------------


def values_of(column: pa.ChunkedArray, held: pa.DataType) -> pa.ChunkedArray:
    """Convert a column of texts to values of the type that they look like."""
    if pa.types.is_string(held) or column.type == held:
        return column
    if pa.types.is_null(held):
        return pa.chunked_array([pa.nulls(len(column))])
    try:
        return column.cast(held)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return typed(column, held)


def without(table: pa.Table, rows: list[int]) -> pa.Table:
    """Return the table without the given rows."""
    keep = np.ones(table.num_rows, bool)
    keep[rows] = False
    return table.filter(pa.array(keep))
