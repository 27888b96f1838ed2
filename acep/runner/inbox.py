"""Read the files of a stream with the column types of its first micro-batch; a value that does not fit is an error."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from acep.errors import DataError
from acep.events.buffers import decoded, plain_type
from acep.events.columns import kind_of
from acep.events.fields import column_at, fields_of
from acep.events.files.casts import Cast, as_cast, bad_rows, cast_column, cast_of
from acep.events.files.finding import warn_of_others
from acep.events.files.formats import NAMES, split_format
from acep.events.files.options import BadLines, Options
from acep.events.files.stream import open_events
from acep.runner.arrivals import Arrival, arrivals
from acep.runner.recent_ids import RecentIds

__all__ = ["ROW", "Inbox"]

# A column with the number of the row in the whole stream. Ties of time are broken by columns in the order of their
# names, and a blank sorts before the usual first characters of names.
ROW = " row"


class Inbox:
    """The files of a folder, the options for reading them, and the number of files that a micro-batch takes."""

    def __init__(self, folder: Path, options: Options, max_files: int) -> None:
        self.folder, self.options, self.max_files = folder, options, max_files
        self._endings: set[str] = set()  # of files that are not read, where a warning was given

    @property
    def about(self) -> dict[str, Any]:
        """The reading options that determine the rows of the files, as JSON."""
        options = self.options
        casts = {name: [one.text, one.counts] for name, one in sorted(options.casts.items())}
        return {"cast": casts, "format": options.format, "skip_bad_lines": options.skip_bad_lines}

    def there(self) -> list[Arrival]:
        """Return the files of the folder, in their order.

        Warns (:class:`DataWarning`) of files that are not read because of their names, once for each ending.
        """
        files, others = arrivals(self.folder, self.options.format)
        new = [name for name in others if Path(name).suffix not in self._endings]
        if new:
            self._endings |= {Path(name).suffix for name in new}
            warn_of_others(new, f"the folder `{self.folder}`")
        return files

    def settle(self, files: list[Arrival]) -> tuple[list[Arrival], pa.Schema] | None:
        """Return the files of the first micro-batch and its columns, or ``None`` if no file has rows.

        Files without rows do not determine columns, so they are taken together with the first file that has rows.
        """
        size = self.max_files
        while True:
            schema = _settled([self.folder / one.name for one in files[:size]], self.options) if files else None
            if schema is not None:
                return files[:size], schema
            if size >= len(files):
                return None
            size *= 2

    def read(
        self, files: tuple[Arrival, ...], schema: pa.Schema, first: int, bad: BadLines, recent: RecentIds | None = None
    ) -> tuple[pa.Table, int]:
        """Read files, with the rows numbered from ``first``, and return how many rows with ids that are ``recent`` were
        left out, too. Raises :class:`DataError` for such a row, if it is refused."""
        tables, size = [], 0
        for one in files:
            path = self.folder / one.name
            rows = _read_rows(path, self.options, schema, bad)
            size += rows.num_rows
            drop = self.options.drop_duplicates
            tables.append(rows if recent is None else recent.once(rows, str(path), drop=drop))
        rows = pa.concat_tables(tables) if tables else schema.empty_table()
        return rows.append_column(ROW, pa.array(np.arange(first, first + rows.num_rows))), size - rows.num_rows


def _settled(paths: Sequence[Path], options: Options) -> pa.Schema | None:
    """Return the types of the columns that are used, from some files; ``None`` if these have no rows.

    Raises :class:`DataError` for files that cannot be read, or do not fit together.
    """
    with open_events(list(paths), dataclasses.replace(options, id=None)) as events:
        if not events.rows:
            return None
        there = fields_of(events.schema)
    names = [name for name in there if kind_of(plain_type(there[name])) is not None]  # those that a query can use
    found = [(name, there[name]) for name in (names if options.columns is None else options.columns) if name in there]
    if ROW in dict(found):
        raise DataError(f"a column is called `{ROW}`", hint="rename it", code="data_column")
    # Later times may have fractions of a second.
    return pa.schema([(name, _finer(plain_type(held))) for name, held in found])


def _finer(held: pa.DataType) -> pa.DataType:
    return pa.timestamp("us", held.tz) if pa.types.is_timestamp(held) and held.unit == "s" else held


def _read_rows(path: Path, options: Options, schema: pa.Schema, bad: BadLines) -> pa.Table:
    """Read a file with the columns of the stream; skipped lines are counted in ``bad``.

    Raises :class:`DataError` for a file that cannot be read, a column that it lacks, a value that does not fit, or a
    time that is null.
    """
    form = split_format(path)[0] or NAMES[options.format or ""]
    texts = {f.name: cast_of(f.name, "string") for f in schema if pa.types.is_string(f.type) and form == "csv"}
    # The ids are looked at once the rows are known that are events.
    own = dataclasses.replace(options, casts=texts | options.casts, casts_are_there=False, id=None)
    with open_events(path, own) as events:
        table = events.whole()
        if events.bad.count:
            bad.add(events.bad.first, events.bad.count, events.bad.values)
    columns = {}
    for field in schema:
        column = column_at(table, field.name)
        if column is None:
            if form != "jsonl" and table.num_rows:
                raise DataError(
                    f"`{path}` has no column `{field.name}`, and the files before it have", code="data_column"
                )
            column = pa.chunked_array([pa.nulls(table.num_rows, field.type)])
        columns[field.name] = _fitted(column, field, path)
    rows = pa.table(columns, schema=schema)
    for name in (options.ts, options.seq, options.id):
        if name is not None and rows.column(name).null_count:
            row = rows.column(name).is_null().index(True).as_py()
            where = f"`{path}`, row {row} (rows count from 0)"
            raise DataError(f"{where}: column `{name}` is null", hint="fill it in, or drop the row", code="data_null")
    return rows


def _fitted(column: pa.ChunkedArray, field: pa.Field, path: Path) -> pa.ChunkedArray:
    """Convert a column to its type in the stream. Raises :class:`DataError` with the first row that does not fit."""
    column = decoded(column)
    held = column.type
    if held == field.type:
        return column
    if pa.types.is_null(held):
        return pa.chunked_array([pa.nulls(len(column), field.type)])
    if _widens(held, field.type):
        try:
            return _cast(column, field.type)
        except (pa.ArrowException, ValueError):
            pass
    zones = pa.types.is_timestamp(held) and pa.types.is_timestamp(field.type) and (not held.tz) != (not field.type.tz)
    wrong = (
        [0] if zones else bad_rows(column, lambda part: _cast(part, field.type)) if _may_hold(held, field.type) else [0]
    )
    row = wrong[0] if wrong else 0
    raise DataError(
        f"`{path}`, row {row} (rows count from 0): column `{field.name}` is {held}, as {column[row].as_py()!r} is, and"
        f" the files before it made it {field.type}",
        hint="give all times a zone, or none"
        if zones
        else "mend the file, or begin a new state and output with a type that holds all values:"
        f" {as_cast(field.name, _for_both(held, field.type))}",
        code="data_type",
    )


def _for_both(held: pa.DataType, wanted: pa.DataType) -> str:
    """Return the cast to a type that can represent the values of both types."""
    if _number(held) and _number(wanted):
        return "float"
    return "timestamp" if all(pa.types.is_temporal(one) for one in (held, wanted)) else "string"


def _cast(column: pa.ChunkedArray, wanted: pa.DataType) -> pa.ChunkedArray:
    """Cast a column. Raises :class:`pyarrow.ArrowException` or :class:`ValueError` if a value does not fit exactly."""
    return cast_column(column, Cast(wanted, str(wanted)))


def _number(held: pa.DataType) -> bool:
    return bool(pa.types.is_integer(held) or pa.types.is_floating(held))


def _widens(held: pa.DataType, wanted: pa.DataType) -> bool:
    """Return whether values of one type have the same meaning in another, if they fit."""
    is_ = pa.types
    if is_.is_timestamp(wanted):
        return bool(is_.is_date(held) and wanted.tz is None) or bool(is_.is_timestamp(held) and held.tz == wanted.tz)
    if is_.is_floating(wanted):
        return bool(is_.is_integer(held) or (is_.is_floating(held) and held.bit_width <= wanted.bit_width))
    return bool(
        (is_.is_integer(held) and (is_.is_integer(wanted) or is_.is_decimal(wanted)))
        or (is_.is_decimal(held) and is_.is_decimal(wanted))
        or (is_.is_duration(held) and is_.is_duration(wanted))
        or (is_.is_date(held) and is_.is_date(wanted))
    )


def _may_hold(held: pa.DataType, wanted: pa.DataType) -> bool:
    """Return whether some values of one type can be cast to another, so that the first bad row can be searched."""
    is_ = pa.types
    simple = is_.is_string(held) or _number(held) or is_.is_decimal(held) or is_.is_timestamp(held) or is_.is_date(held)
    return bool(simple and not is_.is_null(wanted) and not is_.is_string(wanted))
