"""Read the files of a stream with the column types of its first micro-batch; a value that does not fit is an error."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from acep.errors import DataError, DataWarning, warn_caller
from acep.events.buffers import decode, plain_type
from acep.events.columns import kind_of
from acep.events.fields import column_at, fields_of
from acep.events.files.casts import Cast, as_cast, bad_rows, cast_column, cast_of
from acep.events.files.csv.decimal_comma import as_written
from acep.events.files.csv.text_types import first_odd
from acep.events.files.finding import warn_of_others, warn_of_refused
from acep.events.files.formats import NAMES, split_format
from acep.events.files.options import BadLines, Options
from acep.events.files.stream import open_events
from acep.events.files.survey import drop_rows
from acep.events.files.whole_numbers import cast_that_holds
from acep.events.nested import is_list
from acep.events.tables import InputSchema
from acep.events.times import quote_scalar, value_of
from acep.following.end_rows import end_markers
from acep.following.folder_files import Listing, list_arrivals
from acep.following.recent_ids import RecentIds
from acep.growing.stretches import FilePart
from acep.streaming.punctuation_rows import are_punctuations

__all__ = ["ROW", "Arrived", "Inbox", "Refuse", "StreamCounts"]

# A column with the number of the row in the whole stream. Ties of time are broken by columns in the order of their
# names, and a blank sorts before the usual first characters of names.
ROW = " row"

PlaceOf = Callable[[int], str]
Refuse = Callable[[FilePart, DataError], None]


@dataclasses.dataclass(frozen=True)
class Arrived:
    """The content of files: the ``rows`` of events, how many with recent ids were left out (``duplicates``), the
    ``punctuations``, of which only the time counts, whether a row ends the stream (``ends``), and the lines that were
    skipped (``bad``)."""

    rows: pa.Table
    duplicates: int
    punctuations: pa.Table
    ends: bool
    bad: BadLines


@dataclasses.dataclass(frozen=True)
class StreamCounts:
    """The totals of a stream so far: ``rows`` of events, and ``bad`` lines that were skipped."""

    rows: int
    bad: int = 0


@dataclasses.dataclass(frozen=True)
class _FileReading:
    """How files are read: the columns of the stream, what they are, and where skipped lines are counted."""

    options: Options
    schema: pa.Schema
    roles: InputSchema
    bad_lines: BadLines
    end_marker: bool


class Inbox:
    """The files of a folder, the options for reading them, and the number of files that a micro-batch takes."""

    def __init__(
        self,
        folder: Path,
        options: Options,
        max_files: int,
        *,
        end_marker: bool,
        is_growing: bool = False,
        refuse: Refuse | None = None,
    ) -> None:
        """``end_marker``: a row may end the stream (:mod:`acep.following.end_rows`). ``is_growing``: files grow.
        ``refuse`` is called with a file that cannot be read, and its error, before that is raised."""
        self.folder, self.options, self.max_files, self.end_marker = folder, options, max_files, end_marker
        self.is_growing, self._refuse = is_growing, refuse
        self._endings: set[str] = set()  # of files that are not read, where a warning was given
        self._refused: set[str] = set()  # names of what is no file, where a warning was given

    @property
    def about(self) -> dict[str, Any]:
        """The reading options that determine the rows of the files, as JSON."""
        options = self.options
        casts = {name: [column_cast.text, column_cast.counts] for name, column_cast in sorted(options.casts.items())}
        about: dict[str, Any] = {"cast": casts, "format": options.format, "skip_bad_lines": options.skip_bad_lines}
        # States from before there were these options have none of them.
        usual = Options()
        names = ("delimiter", "quotes", "decimal", "multiline_cells")
        about |= {"nulls": list(options.nulls)} if options.nulls else {}
        about |= {"growing": True} if self.is_growing else {}
        return about | {
            name: getattr(options, name) for name in names if getattr(options, name) != getattr(usual, name)
        }

    def list_files(self) -> Listing:
        """Return what is in the folder.

        Warns (:class:`DataWarning`) of files that are not read because of their names, once for each ending, and of
        what is no file, once for each name.
        """
        listing = list_arrivals(self.folder, self.options.format)
        unread = [name for name in listing.unread if Path(name).suffix not in self._endings]
        if unread:
            self._endings |= {Path(name).suffix for name in unread}
            warn_of_others(unread, f"the folder `{self.folder}`")
        refused = {name: why for name, why in listing.refused.items() if name not in self._refused}
        if refused:
            self._refused |= refused.keys()
            warn_of_refused(refused, f"the folder `{self.folder}`")
        return listing

    def settle(self, parts: Sequence[FilePart]) -> tuple[int, pa.Schema] | None:
        """Return how many files the first micro-batch has, and its columns; ``None`` if no file has rows.

        Files without rows do not determine columns, so they are taken together with the first file that has rows.
        """
        size = max(len(parts), 1) if self.is_growing else self.max_files
        while True:
            schema = self._settle_schema(parts[:size]) if parts else None
            if schema is not None:
                return size, schema
            if size >= len(parts):
                return None
            size *= 2

    def read(
        self,
        parts: Sequence[FilePart],
        schema: pa.Schema,
        roles: InputSchema,
        counts: StreamCounts,
        recent: RecentIds | None = None,
        *,
        end_marker: bool,
        check: Callable[[pa.Table, Path], None],
        is_planned: bool,
    ) -> Arrived:
        """Read files with the columns ``schema``, of which ``roles`` says what they are. Events are numbered after
        those of ``counts``, and ``check`` is called with those of each file. Events with ids that are ``recent`` are
        left out. Only with ``end_marker`` a row may end the stream. No file is refused that ``is_planned``.

        Warns (:class:`DataWarning`) of a row that would end the stream if it were permitted.

        Raises :class:`DataError` for a row with a recent id, if it is refused, and for more bad lines than may be
        skipped: of the micro-batch, or where files grow of all lines so far.
        """
        tables, punctuations, unread, size, ends = [], [], BadLines(), 0, False
        for part in parts:
            bad_lines = BadLines()
            reading = _FileReading(self.options, schema, roles, bad_lines, end_marker)
            try:
                rows, place_of, ends_here = _read_rows(part, reading)
                rows, place_of, moves = _split(rows, place_of, roles)
                check(rows, part.path)
                drop = self.options.drop_duplicates
                tables.append(rows if recent is None else recent.leave_out_repeats(rows, place_of, drop=drop))
                if self._refuse is not None and not is_planned:
                    bad_lines.check_share(rows.num_rows, self.options)
            except DataError as error:
                self._raise_for(part, error, is_planned=is_planned)
            if bad_lines.count:
                unread.add(bad_lines.first, bad_lines.count, bad_lines.values)
            ends = ends or ends_here
            punctuations.append(moves)
            size += rows.num_rows
        first = counts.rows
        if self.is_growing:
            if unread.count and not is_planned:  # without bad lines the share falls
                BadLines(counts.bad + unread.count, unread.first).check_share(first + size, self.options)
        else:
            unread.check_share(size, self.options)
        rows = pa.concat_tables(tables) if tables else schema.empty_table()
        numbered = rows.append_column(ROW, pa.array(np.arange(first, first + rows.num_rows)))
        moves = pa.concat_tables(punctuations) if punctuations else schema.empty_table()
        return Arrived(numbered, size - rows.num_rows, moves, ends, unread)

    def _settle_schema(self, parts: Sequence[FilePart]) -> pa.Schema | None:
        """Return the types of the columns of some files. The first file that does not fit is refused, if that is
        wanted."""
        try:
            return _settle_schema([part.path for part in parts], self.options)
        except DataError as error:
            if len(parts) > 1 and self._refuse is not None:
                for part in parts:
                    self._settle_schema([part])
                for n_parts in range(2, len(parts)):
                    self._settle_schema(parts[:n_parts])
            self._raise_for(parts[-1], error, is_planned=False)

    def _raise_for(self, part: FilePart, error: DataError, *, is_planned: bool) -> NoReturn:
        """Raise the error of a file, as one about what the user named."""
        is_of_file = str(part.path) in error.message  # and not, for instance, of a full disk
        if self._refuse is not None and not is_planned and is_of_file:
            self._refuse(part, error)
        if part.shown is None:
            raise error
        hint = None if error.hint is None else part.describe(error.hint)
        raise DataError(part.describe(error.message), hint=hint, code=error.code) from None


def _settle_schema(paths: Sequence[Path], options: Options) -> pa.Schema | None:
    """Return the types of the columns that are used, from some files; ``None`` if these have no rows.

    Raises :class:`DataError` for files that cannot be read, or do not fit together.
    """
    with open_events(list(paths), dataclasses.replace(options, seq=None, id=None)) as events:
        if not events.rows:
            return None
        types = fields_of(events.schema)
    # Those that a query can use, itself or in parts.
    names = [
        name
        for name, column_type in types.items()
        if kind_of(plain_type(column_type)) is not None or is_list(plain_type(column_type))
    ]
    columns = [(name, types[name]) for name in (names if options.columns is None else options.columns) if name in types]
    if ROW in dict(columns):
        raise DataError(f"a column is called `{ROW}`", hint="rename it", code="data_column")
    # Later times may have fractions of a second.
    return pa.schema([(name, _finer_type(plain_type(column_type))) for name, column_type in columns])


def _finer_type(column_type: pa.DataType) -> pa.DataType:
    return (
        pa.timestamp("us", column_type.tz)
        if pa.types.is_timestamp(column_type) and column_type.unit == "s"
        else column_type
    )


def _read_rows(part: FilePart, reading: _FileReading) -> tuple[pa.Table, PlaceOf, bool]:
    """Read the events and punctuations of a file with the columns of the stream, with what gives the words for the
    place of one, and whether a row ends the stream, which only ``end_marker`` permits. Skipped lines are counted in
    ``bad_lines``.

    Raises :class:`DataError` for a file that cannot be read, a column that it lacks, a value that does not fit, or a
    null in a column that says when an event was, or which.
    """
    path, options, schema, end_marker = part.path, reading.options, reading.schema, reading.end_marker
    bad_lines = reading.bad_lines
    form = split_format(path)[0] or NAMES[options.format or ""]
    is_csv = form in ("csv", "tsv")
    texts = [field.name for field in schema if pa.types.is_string(field.type)]
    as_settled = {name: cast_of(name, "string") for name in texts if is_csv}
    if part.shown is not None and options.skip_bad_lines:  # so that a value of another type makes a line a bad one
        as_settled |= _casts_to_types(schema)
    # The ids, and what breaks ties, are looked at once the rows are known that are events.
    as_written = dataclasses.replace(
        options,
        columns=tuple(schema.names),
        casts=as_settled | options.casts,
        texts=frozenset(texts),
        casts_are_there=False,
        remarks=False,
        max_skipped=1.0,
        seq=None,
        id=None,
    )
    besides = [name for name in (options.seq, options.id) if name is not None]
    with open_events(path, as_written) as events:
        table = events.read_all()
        if events.bad.count:
            bad_lines.add(part.describe(events.bad.first), events.bad.count, events.bad.values)
        marks = _end_marks(table, path, as_written, schema, besides)
        if marks.any() and not end_marker:
            row_place = part.describe(events.place_of(int(np.flatnonzero(marks)[0])))
            outcome = f"left out, as its `{besides[0]}` is null" if besides else "counted as ahead"
            warn_caller(
                f"{row_place}: a row with nothing but the last time ends the stream with end_marker=True only, and is"
                f" {outcome}",
                DataWarning,
            )
            marks &= bool(besides)
        row_indices = np.flatnonzero(~marks)

        def place_of(row: int) -> str:
            return events.place_of(int(row_indices[row]))

        events_of_file = drop_rows(table, np.flatnonzero(marks).tolist())
        rows = _in_schema(events_of_file, schema, path, form, place_of, options)
        for name in besides:  # a punctuation has nothing but its time
            nulls = np.flatnonzero(rows.column(name).is_null().to_numpy() & ~are_punctuations(rows, reading.roles))
            if not len(nulls):
                continue
            complaint = f"{place_of(int(nulls[0]))}: `{name}` is null"
            if not options.skip_bad_lines:
                hint = "fill it in, or leave such rows out: skip_bad_lines=True"
                raise DataError(complaint, hint=hint, code="data_null")
            bad_lines.add(part.describe(complaint), len(nulls))
            rows, row_indices = drop_rows(rows, nulls.tolist()), np.delete(row_indices, nulls)
    return rows, place_of, end_marker and bool(marks.any())


def _split(rows: pa.Table, place_of: PlaceOf, roles: InputSchema) -> tuple[pa.Table, PlaceOf, pa.Table]:
    """Split the rows of a file into events and punctuations; return both, and what gives the words for the place of an
    event."""
    is_punctuation = are_punctuations(rows, roles)
    if not is_punctuation.any():
        return rows, place_of, rows.slice(0, 0)
    row_indices = np.flatnonzero(~is_punctuation)
    events, moves = rows.filter(pa.array(~is_punctuation)), rows.filter(pa.array(is_punctuation))
    return events, lambda row: place_of(int(row_indices[row])), moves


def _end_marks(
    table: pa.Table, path: Path, options: Options, schema: pa.Schema, besides: Sequence[str]
) -> npt.NDArray[np.bool_]:
    """Return which rows of a file end the stream.

    In such a row all columns of the file are null but its time, also those that no query reads. These are read for a
    row that may be one alone. ``besides``: see :func:`acep.following.end_rows.end_markers`. Without a column of types
    no row ends the stream, as nothing tells one from an event with nulls.
    """
    if options.type is None:
        return np.zeros(table.num_rows, bool)
    marks = end_markers(table, options.ts, besides, schema.names)
    if marks.any():
        with open_events(path, dataclasses.replace(options, columns=None)) as events:
            all_columns = events.read_all()
        same = all_columns.num_rows == table.num_rows  # other lines may be bad where other columns are read
        marks &= end_markers(all_columns, options.ts, besides, schema.names) if same else False
    return marks


def _in_schema(
    table: pa.Table, schema: pa.Schema, path: Path, form: str, place_of: PlaceOf, options: Options
) -> pa.Table:
    """Return the rows of a file with the columns of the stream; lines of JSON may lack some."""
    columns = {}
    for field in schema:
        column = column_at(table, field.name)
        if column is None:
            if form != "jsonl" and table.num_rows:
                why = f"`{path}` has no column `{field.name}`, and the files before it have"
                raise DataError(why, code="data_column")
            column = pa.chunked_array([pa.nulls(table.num_rows, field.type)])
        columns[field.name] = _fit_column(column, field, place_of, options, form)
    return pa.table(columns, schema=schema)


def _fit_column(
    column: pa.ChunkedArray, field: pa.Field, place_of: PlaceOf, options: Options, form: str
) -> pa.ChunkedArray:
    """Convert a column to its type in the stream. Raises :class:`DataError` with the first row that does not fit."""
    column = decode(column)
    column_type = column.type
    if column_type == field.type:
        return column
    if pa.types.is_null(column_type):
        return pa.chunked_array([pa.nulls(len(column), field.type)])
    if _widens(column_type, field.type):
        try:
            return _cast(column, field.type)
        except MemoryError:
            raise
        except (pa.ArrowException, ValueError):
            pass
    zones = (
        pa.types.is_timestamp(column_type)
        and pa.types.is_timestamp(field.type)
        and (not column_type.tz) != (not field.type.tz)
    )
    bad_row_indices = (
        [0]
        if zones
        else bad_rows(column, lambda part: _cast(part, field.type))
        if _may_hold(column_type, field.type)
        else [0]
    )
    row = bad_row_indices[0] if bad_row_indices else first_odd(column) or 0
    common_type = _cast_for_both(column_type, field.type, value_of(column[row]))
    hint = f"begin a new state and output with a type that holds all values: {as_cast(field.name, common_type)}"
    counts = options.casts[field.name].counts if field.name in options.casts else None
    is_fine = pa.types.is_timestamp(column_type) and column_type.unit == "ns"
    if is_fine and ((counts is not None and common_type == "timestamp(ns)") or common_type == "timestamptz"):
        hint = "begin a new state and output with this file first"  # no cast says more than the file itself
    if field.name == options.ts and common_type == "string":
        hint = "write the times of all files as integers, or all as dates and times"
    has_comma = form in ("csv", "tsv") and options.decimal == ","
    shown = as_written(quote_scalar(column[row])) if has_comma else quote_scalar(column[row])
    raise DataError(
        f"{place_of(row)}: `{field.name}` is {column_type}, as {shown} is, and the files before it made it"
        f" {field.type}",
        hint="give all times a zone, or none" if zones else f"mend the file, or {hint}",
        code="data_type",
    )


def _cast_for_both(column_type: pa.DataType, wanted_type: pa.DataType, value: Any) -> str:
    """Return the cast to a type that can represent the values of both types, and a ``value`` that is of one only."""
    is_ = pa.types
    if _is_number(column_type) and _is_number(wanted_type):
        return cast_that_holds(value) or "float"
    if is_.is_temporal(column_type) and is_.is_temporal(wanted_type):
        return "timestamp(ns)" if is_.is_timestamp(column_type) and column_type.unit == "ns" else "timestamp"
    if not is_.is_null(wanted_type):
        return "string"
    names = {is_.is_boolean: "bool", is_.is_integer: "int", is_.is_floating: "float", is_.is_date: "date"}
    if is_.is_decimal(column_type):
        return f"decimal({column_type.precision},{column_type.scale})"
    if is_.is_timestamp(column_type):
        return "timestamptz" if column_type.tz else "timestamp(ns)" if column_type.unit == "ns" else "timestamp"
    return next((name for is_one, name in names.items() if is_one(column_type)), "string")


def _casts_to_types(schema: pa.Schema) -> dict[str, Cast]:
    """Return casts to the types that columns of numbers, truth values, dates and times have.

    >>> schema = pa.schema({"ts": pa.timestamp("us"), "n": pa.int64(), "user": pa.string()})
    >>> {name: cast.text for name, cast in _casts_to_types(schema).items()}
    {'ts': 'timestamp', 'n': 'int'}
    """
    is_ = pa.types
    names = {is_.is_boolean: "bool", is_.is_int64: "int", is_.is_float64: "float", is_.is_date32: "date"}
    casts = {}
    for field in schema:
        name = next((name for is_one, name in names.items() if is_one(field.type)), None)
        if is_.is_timestamp(field.type):
            name = _cast_for_both(field.type, field.type, None)
        if name is not None:
            casts[field.name] = cast_of(field.name, name)
    return casts


def _cast(column: pa.ChunkedArray, wanted_type: pa.DataType) -> pa.ChunkedArray:
    """Cast a column. Raises :class:`pyarrow.ArrowException` or :class:`ValueError` if a value does not fit exactly."""
    return cast_column(column, Cast(wanted_type, str(wanted_type)))


def _is_number(column_type: pa.DataType) -> bool:
    return bool(pa.types.is_integer(column_type) or pa.types.is_floating(column_type))


def _widens(column_type: pa.DataType, wanted_type: pa.DataType) -> bool:
    """Return whether values of one type have the same meaning in another, if they fit."""
    is_ = pa.types
    if is_.is_timestamp(wanted_type):
        return bool(is_.is_date(column_type) and wanted_type.tz is None) or bool(
            is_.is_timestamp(column_type) and column_type.tz == wanted_type.tz
        )
    if is_.is_floating(wanted_type):
        return bool(
            is_.is_integer(column_type)
            or (is_.is_floating(column_type) and column_type.bit_width <= wanted_type.bit_width)
        )
    return bool(
        (is_.is_integer(column_type) and (is_.is_integer(wanted_type) or is_.is_decimal(wanted_type)))
        or (is_.is_decimal(column_type) and is_.is_decimal(wanted_type))
        or (is_.is_duration(column_type) and is_.is_duration(wanted_type))
        or (is_.is_date(column_type) and is_.is_date(wanted_type))
    )


def _may_hold(column_type: pa.DataType, wanted_type: pa.DataType) -> bool:
    """Return whether some values of one type can be cast to another, so that the first bad row can be searched."""
    is_ = pa.types
    simple = (
        is_.is_string(column_type)
        or _is_number(column_type)
        or is_.is_decimal(column_type)
        or is_.is_timestamp(column_type)
        or is_.is_date(column_type)
    )
    return bool(simple and not is_.is_null(wanted_type) and not is_.is_string(wanted_type))
