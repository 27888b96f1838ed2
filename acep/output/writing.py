"""Write matches, bundles and match points as JSON Lines, CSV or Parquet; a file is written whole or not at all.

A line of JSON has the keys of ``docs/reference/command_line.md``, in that order; times are ISO 8601 texts.
"""

from __future__ import annotations

import contextlib
import csv
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from acep.errors import DataError
from acep.events.times import value_of
from acep.matches.answer_columns import columns_of
from acep.matches.flat import FlatColumn, Layout, flat_columns, flat_record, flat_table, layout_of
from acep.matches.found_columns import FoundColumns
from acep.matches.zoned_times import zoned_names
from acep.output.formulas import check_quoting, quoted_formula
from acep.output.json_records import group_record, json_line, json_text, match_record, plain

if TYPE_CHECKING:
    import pyarrow as pa

    from acep.matches.matches import Bundle, Matches, Point
    from acep.plan.schema import Schema

__all__ = [
    "group_writer",
    "match_writer",
    "open_output",
    "output_format",
    "record_writer",
    "rows_of",
    "write_matches",
    "write_rows",
    "write_table",
]

FORMATS = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
}
Target = str | os.PathLike[str] | IO[Any]
FEW = 1_000  # for fewer matches, columns of texts are not worth the import of pyarrow.compute


def output_format(path: str | os.PathLike[str]) -> str:
    """Return the format of an output file by its name: ``"jsonl"``, ``"parquet"`` or ``"csv"``; a device or a pipe,
    such as ``/dev/null``, takes JSON Lines.

    Raises :class:`DataError` for any other name.
    """
    form = FORMATS.get(Path(path).suffix.lower())
    if form is None and is_special(path):
        return "jsonl"
    if form is None:
        raise DataError(
            f"no format of output is named like `{path}`", hint="use .jsonl, .parquet or .csv", code="file_write"
        )
    return form


def is_special(path: str | os.PathLike[str]) -> bool:
    """Return whether a path exists and is neither file nor folder: it can be written to, but not replaced."""
    try:
        return Path(path).exists() and not (Path(path).is_file() or Path(path).is_dir())
    except (OSError, ValueError):
        return False


def write_matches(matches: Matches, target: Target, form: str | None = None, *, quote_formulas: bool = False) -> None:
    """Write matches to a path, whose name tells the format, or to an open stream.

    ``form``: ``"jsonl"``, ``"csv"`` (a column ``key.x`` and ``values.x`` for each key attribute and value of
    RETURN, the bindings as JSON) or ``"parquet"`` (the table of :meth:`~acep.matches.matches.Matches.to_arrow`,
    without ``key`` if there are no key attributes). A stream is of text, for Parquet of bytes. ``quote_formulas``: no
    text in CSV begins as a formula does (:func:`~acep.output.formulas.quoted_formula`).

    Raises :class:`DataError` if the file cannot be written; an earlier file of that name is then still there.
    """

    with match_writer(target, form, matches, quote_formulas=quote_formulas) as write:
        write(matches)


@contextlib.contextmanager
def match_writer(
    target: Target,
    form: str | None,
    like: Matches,
    *,
    fractional: bool | None = None,
    flat: bool = False,
    quote_formulas: bool = False,
) -> Iterator[Callable[[Matches], None]]:
    """Yield a function that writes matches as :func:`write_matches` does. It may be called more than once, in
    output order; ``like`` are any matches of the same query. ``fractional``: whether errors are floats in Parquet
    (``None``: this follows from the matches, which must then come at once). ``flat``: with plain columns only, those of
    ``to_arrow(flat=True)``, in all formats. ``quote_formulas`` is that of :func:`write_matches`."""
    heads = [*(f"key.{k}" for k in like.keys), "start", "end", "error", "bindings", "bundle"]
    heads += [f"values.{name}" for name in like.returns]
    zoned = like.form.zoned_names()
    layout = layout_of(like) if flat else Layout((), frozenset())
    names = ["key", "start", "end", "error", "bindings", "bundle", *(["values"] if like.returns else [])]
    columns = flat_columns(names, {"key": [*like.keys], "values": [*like.returns]}, layout) if flat else None
    fractional = layout.fractional if flat else fractional

    def table(matches: Matches) -> pa.Table:
        from acep.matches.arrow import matches_table

        table_of_all = matches_table(matches, fractional=fractional)
        if flat:
            return flat_table(table_of_all, layout)
        return table_of_all if like.keys else table_of_all.drop_columns(["key"])

    def lines(matches: Matches) -> Callable[[str], Iterable[str]] | None:
        if flat or not isinstance(matches.found, FoundColumns) or len(matches) <= FEW:
            return None
        from acep.output.lines import lines_of

        return partial(lines_of, matches, zoned=zoned, quote_formulas=quote_formulas)

    with _sink(target, form, heads, lambda: table(like.with_found([])), columns, quote_formulas) as sink:

        def write(matches: Matches) -> None:
            sink.write((match_record(m, zoned=zoned) for m in matches), partial(table, matches), lines(matches))

        yield write


@contextlib.contextmanager
def group_writer(
    target: Target,
    form: str | None = None,
    *,
    heads: Sequence[str],
    schema: Schema,
    keys: tuple[str, ...],
    flat: bool = False,
    quote_formulas: bool = False,
) -> Iterator[Callable[[Sequence[Bundle] | Sequence[Point]], None]]:
    """Yield a function that writes bundles or match points, as :func:`match_writer` does for matches; ``heads`` are the
    fields after the key."""
    zoned = zoned_names(schema, keys, {})
    layout = Layout((), frozenset())
    columns = flat_columns(["key", *heads], {"key": [*keys]}, layout) if flat else None

    def table(groups: Sequence[Bundle] | Sequence[Point]) -> pa.Table:
        from acep.matches.arrow import groups_table

        table_of_all = groups_table(groups, schema, keys, heads)
        if flat:
            return flat_table(table_of_all, layout)
        return table_of_all if keys else table_of_all.drop_columns(["key"])

    def lines(groups: Sequence[Bundle] | Sequence[Point]) -> Callable[[str], Iterable[str]] | None:
        answers = columns_of(groups)
        if flat or answers is None or answers.heads != [*heads] or len(groups) <= FEW or answers.groups.has_objects:
            return None
        from acep.output.lines import group_lines

        return partial(group_lines, answers, zoned=zoned, quote_formulas=quote_formulas)

    names = [*(f"key.{key}" for key in keys), *heads]
    with _sink(target, form, names, lambda: table([]), columns, quote_formulas) as sink:

        def write(groups: Sequence[Bundle] | Sequence[Point]) -> None:
            sink.write((group_record(g, zoned=zoned) for g in groups), partial(table, groups), lines(groups))

        yield write


@contextlib.contextmanager
def record_writer(
    target: Target,
    form: str | None,
    heads: Sequence[str],
    empty: Callable[[], pa.Table],
    *,
    quote_formulas: bool = False,
) -> Iterator[Callable[[Iterable[dict[str, Any]], Callable[[], pa.Table]], None]]:
    """Yield a function that writes records, which JSON can hold, or in Parquet the table that its second argument
    makes; it may be called more than once. ``heads`` are the columns in CSV, and ``empty`` makes a table without rows.
    ``target``, ``form`` and ``quote_formulas`` are those of :func:`write_matches`."""
    with _sink(target, form, [*heads], empty, None, quote_formulas) as sink:
        yield sink.write


def write_table(
    table: pa.Table,
    target: Target,
    form: str | None = None,
    *,
    flat: Layout | None = None,
    quote_formulas: bool = False,
) -> None:
    """Write matches in a table with the columns of :meth:`~acep.matches.matches.Matches.to_arrow` (``key`` may be
    left out), as :func:`write_matches` does. ``flat``: with plain columns only, for matches of this layout."""
    if flat is not None:
        table = flat_table(table, flat)
    heads, zoned = [], set[str]()
    for field in table.schema:
        nested = field.name in ("key", "values") and flat is None
        parts = (
            {f"{field.name}.{inner.name}": inner.type for inner in field.type} if nested else {field.name: field.type}
        )
        heads += [*parts]
        zoned |= {name for name, value_type in parts.items() if getattr(value_type, "tz", None) is not None}
    rows = rows_of(table)
    columns = None if flat is None else flat_columns(heads, {}, Layout((), frozenset()))
    with _sink(target, form, heads, lambda: table, columns, quote_formulas) as sink:
        sink.write(map(partial(_row_record, zoned=zoned, flat=flat is not None), rows), lambda: table)


def write_rows(table: pa.Table, target: Target, form: str | None = None, *, quote_formulas: bool = False) -> None:
    """Write a table whose columns may have any name, such as the result of a clause, as :func:`write_matches` does."""
    zoned = {field.name for field in table.schema if getattr(_value_type(field.type), "tz", None) is not None}
    heads = table.column_names
    columns = [FlatColumn(head, "", head) for head in heads]
    records = ({name: plain(value, name in zoned) for name, value in row.items()} for row in rows_of(table))
    with _sink(target, form, heads, lambda: table, columns, quote_formulas) as sink:
        sink.write(records, lambda: table)


def _value_type(value_type: pa.DataType) -> pa.DataType:
    """Return the type of the values of a list, or else the type itself."""
    import pyarrow as pa

    is_list = pa.types.is_list(value_type) or pa.types.is_large_list(value_type)
    return _value_type(value_type.value_type) if is_list else value_type


def rows_of(table: pa.Table) -> Iterator[dict[str, Any]]:
    """Yield the rows of a table as values of Python; times that Python does not reach are NumPy's."""
    return (row for batch in table.to_batches() for row in _rows_of_batch(batch))


def _rows_of_batch(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    try:
        return list(batch.to_pylist())
    except (OverflowError, ValueError):  # some times are NumPy's
        columns = [[value_of(scalar) for scalar in column] for column in batch.columns]
        return [dict(zip(batch.schema.names, row, strict=True)) for row in zip(*columns, strict=True)]


def _row_record(row: dict[str, Any], *, zoned: Collection[str], flat: bool) -> dict[str, Any]:
    record: dict[str, Any] = {} if flat else {"key": {}}
    for name, value in row.items():
        if value is None:
            record[name] = None
        elif name == "bindings" and not flat:
            record[name] = {var: list(ids) for var, ids in value}
        elif name in ("error", "best"):
            record[name] = int(value) if value == int(value) else value
        elif isinstance(value, dict):
            record[name] = {inner: plain(v, f"{name}.{inner}" in zoned) for inner, v in value.items()}
        else:
            record[name] = plain(value, name in zoned)
    return record


class _UnixLines:
    """A stream of text for lines that end with CR and LF, of which it leaves out the CR."""

    def __init__(self, stream: IO[Any]) -> None:
        self.stream = stream

    def write(self, line: str) -> None:
        """Write one line."""
        self.stream.write(line[:-2] + "\n")


class _Sink:
    """An output stream in one format, written part by part. ``columns``: those of a flat table. ``quote_formulas``:
    no text in CSV begins as a formula does."""

    def __init__(
        self,
        stream: IO[Any],
        form: str,
        heads: list[str],
        columns: Sequence[FlatColumn] | None,
        quote_formulas: bool,
    ) -> None:
        heads = heads if columns is None else [column.name for column in columns]
        self.stream, self.form, self.columns, self.heads = stream, form, columns, heads
        self.quote_formulas = quote_formulas
        self.parquet: Any = None
        if form == "csv":
            self.cells([heads])

    def write(
        self,
        records: Iterable[dict[str, Any]],
        table: Callable[[], pa.Table],
        lines: Callable[[str], Iterable[str]] | None = None,
    ) -> None:
        """Write a part; ``lines``: makes the lines of a text format without records."""
        if (columns := self.columns) is not None:
            records = (flat_record(record, columns) for record in records)
        if self.form == "parquet":
            self.rows(table())
        elif lines is not None:
            self.stream.writelines(lines(self.form))
        elif self.form == "csv":
            cell = _cell if self.columns is None else _flat_cell
            self.cells([cell(record, head) for head in self.heads] for record in records)
        else:
            self.stream.writelines(json_line(record) + "\n" for record in records)

    def cells(self, rows: Iterable[list[Any]]) -> None:
        """Write rows of cells as CSV."""
        quoted = (map(quoted_formula, row) for row in rows) if self.quote_formulas else rows
        # With this end of a line, cells with a carriage return are quoted; readers take one for the end of a line.
        csv.writer(_UnixLines(self.stream), lineterminator="\r\n").writerows(quoted)

    def rows(self, table: pa.Table) -> None:
        """Write a part as Parquet."""
        import pyarrow.parquet as pq

        if self.parquet is None:
            self.parquet = pq.ParquetWriter(self.stream, table.schema)
        self.parquet.write_table(table.cast(self.parquet.schema))


@contextlib.contextmanager
def _sink(
    target: Target,
    form: str | None,
    heads: list[str],
    empty: Callable[[], pa.Table],
    columns: Sequence[FlatColumn] | None,
    quote_formulas: bool,
) -> Iterator[_Sink]:
    """Open an output; ``empty`` makes a table with its columns, for Parquet without any part."""
    if form is None:
        if not isinstance(target, str | os.PathLike):
            raise DataError("a stream needs a format", hint='form="jsonl", "csv" or "parquet"', code="option_invalid")
        form = output_format(target)
    if form not in FORMATS.values():
        raise DataError(f"there is no format {form!r}", hint="jsonl, csv or parquet", code="option_invalid")
    check_quoting(quote_formulas, form)
    with open_output(target, binary=form == "parquet") as stream:
        sink = _Sink(stream, form, heads, columns, quote_formulas)
        yield sink
        if form == "parquet":
            if sink.parquet is None:
                sink.rows(empty())
            sink.parquet.close()


def _flat_cell(record: dict[str, Any], head: str) -> Any:
    value = record[head]
    return json_text(value) if isinstance(value, dict | list) else value


def _cell(record: dict[str, Any], head: str) -> Any:
    part, dot, name = head.partition(".")
    value = record[part]
    value = value[name] if dot and value is not None else value
    return json_text(value) if isinstance(value, dict | list) else value


@contextlib.contextmanager
def open_output(target: Target, *, binary: bool) -> Iterator[IO[Any]]:
    """Open a stream to write to; a file appears under its name only once it is whole."""
    if not isinstance(target, str | os.PathLike):
        yield target
        return
    mode, encoding = ("xb", None) if binary else ("x", "utf-8")
    if Path(target).is_dir():
        raise DataError(f"`{target}` is a directory, not a file", code="file_write")
    if is_special(target):
        try:
            with Path(target).open(mode.replace("x", "w"), encoding=encoding, newline=None if binary else "") as stream:
                yield stream
        except BrokenPipeError:
            raise
        except OSError as bad:
            raise DataError(f"`{target}` cannot be written: {bad.strerror or bad}", code="file_write") from None
        return
    path = Path(os.path.realpath(target))
    draft = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        try:
            with draft.open(mode, encoding=encoding, newline=None if binary else "") as stream:
                yield stream
            draft.replace(path)
        except OSError as bad:
            raise DataError(f"`{target}` cannot be written: {bad.strerror or bad}", code="file_write") from None
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
