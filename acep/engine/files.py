"""Files of events in: CSV, Parquet and JSON Lines become Arrow tables, or an error that says what is wrong where.

Matches are written by :mod:`acep.engine.writing`.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from acep.engine.columns import kind_of
from acep.engine.writing import write_groups, write_matches
from acep.errors import DataError, suggest
from acep.plan.schema import Kind

__all__ = ["format_of", "read_events", "write_groups", "write_matches"]

SUFFIXES = {
    ".csv": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
}


def format_of(path: str | os.PathLike[str]) -> str:
    """The format of a file of events by its name: ``"csv"``, ``"parquet"`` or ``"jsonl"``.

    Raises :class:`DataError` for any other name.

    >>> format_of("day.csv.gz"), format_of("day.ndjson")
    ('csv', 'jsonl')
    """
    name = Path(path).name.lower()
    suffixes = [s for s in Path(name).suffixes if s != ".gz"]
    known = SUFFIXES.get(suffixes[-1]) if suffixes else None
    if known is None or (known == "parquet" and name.endswith(".gz")):
        listed = ".csv, .csv.gz, .parquet, .jsonl, .jsonl.gz"
        raise DataError(f"`{path}` is not named like a file of events", hint=f"its name must end in one of {listed}")
    return known


def read_events(
    path: str | os.PathLike[str],
    columns: Sequence[str] | None = None,
    *,
    ts: str = "ts",
    type: str | None = "type",
) -> pa.Table:
    """Read a file of events: CSV with a header, Parquet, or JSON Lines (one object a line), by its name.

    ``columns`` are the columns that will be used (``None``: all); if the file lacks one of them all are read, so
    that the mistake can be explained. The column ``type`` is read as text, and ISO 8601 texts in ``ts`` as timestamps.
    In CSV an empty cell is null. A file with a header and no rows holds no events.

    Raises :class:`DataError` for a file that is missing, empty, cut off, or not of its format.
    """
    if not isinstance(path, str | os.PathLike):
        raise DataError(f"a file is named by its path, not by {path.__class__.__name__}")
    file = Path(path)
    kind = format_of(file)
    _check_there(file)
    try:
        if kind == "parquet":
            table = _read_parquet(file, columns)
        elif kind == "csv":
            table = _read_csv(file, columns, type)
        else:
            table = _read_jsonl(file)
    except OSError as bad:
        raise DataError(f"`{path}` cannot be read: {_reason(bad)}", hint="is it whole?") from None
    if columns is not None and set(columns) <= set(table.column_names):
        table = table.select(list(dict.fromkeys(columns)))
    if ts in table.column_names and table.column_names.count(ts) == 1:
        table = _with_times(table, ts, file)
    return table


def _reason(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.split(". Detail:")[0]
    return (str(error).strip().splitlines() or ["?"])[0].rstrip(".")


def _check_there(file: Path) -> None:
    try:
        if file.is_dir():
            raise DataError(f"`{file}` is a directory, not a file")
        if file.is_file() and file.stat().st_size == 0:
            raise DataError(f"`{file}` is empty")
        if not file.exists():
            try:
                near = suggest(file.name, [p.name for p in file.parent.iterdir()])
            except OSError:
                near = None
            hint = near if near and near.startswith("did") else None
            raise DataError(f"there is no file `{file}`", hint=hint)
    except OSError as bad:
        raise DataError(f"`{file}` cannot be read: {_reason(bad)}") from None


# Parquet ----------------------------------------------------------------------------------------


def _read_parquet(file: Path, columns: Sequence[str] | None) -> pa.Table:
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(file) as opened:
            names = opened.schema_arrow.names
            wanted = list(dict.fromkeys(columns)) if columns is not None and set(columns) <= set(names) else None
            return opened.read(columns=wanted)
    except PermissionError:
        raise
    except (pa.ArrowException, OSError, UnicodeDecodeError) as bad:
        raise DataError(
            f"`{file}` is not a whole Parquet file: {_reason(bad)}",
            hint="it may have been cut off, or hold another format",
        ) from None


# CSV --------------------------------------------------------------------------------------------


def _read_csv(file: Path, columns: Sequence[str] | None, text: str | None) -> pa.Table:
    from pyarrow import csv

    def read(include: Sequence[str] | None, *, threads: bool = True) -> pa.Table:
        return csv.read_csv(
            file,
            read_options=csv.ReadOptions(use_threads=threads),
            parse_options=csv.ParseOptions(newlines_in_values=True),
            convert_options=csv.ConvertOptions(
                include_columns=list(dict.fromkeys(include)) if include is not None else None,
                column_types={text: pa.string()} if text is not None else {},
            ),
        )

    try:
        try:
            table = read(columns)
        except KeyError:  # a column that the file does not have
            table = read(None)
    except pa.ArrowInvalid as bad:
        reason = _reason(bad)
        if "Empty CSV" in reason:
            raise DataError(f"`{file}` is empty") from None
        if "Expected" in reason:
            try:
                read(None, threads=False)  # the rows are counted only without threads
            except pa.ArrowInvalid as again:
                reason = _reason(again)
        ragged = re.search(r"Row #(\d+): Expected (\d+) columns, got (\d+)", reason)
        if ragged:
            row, wanted, got = ragged.groups()
            cells = f"{got} cell{'s' if got != '1' else ''}"
            raise DataError(f"`{file}`, row {row} has {cells}, the header {wanted} (the header is row 1)") from None
        raise DataError(f"`{file}` cannot be read: {reason}") from None
    for at, field in enumerate(table.schema):
        if pa.types.is_binary(field.type):
            raise DataError(f"`{file}`: column `{field.name}` is not UTF-8 text", hint="save the file as UTF-8")
        if pa.types.is_string(field.type):
            table = table.set_column(at, field.name, _empty_to_null(table.column(at)))
    return table


def _empty_to_null(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Empty texts as nulls, by a new mask over the same buffers (pyarrow.compute takes long to import)."""
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


# JSON Lines -------------------------------------------------------------------------------------


def _read_jsonl(file: Path) -> pa.Table:
    from pyarrow import json as arrow_json

    try:
        table = arrow_json.read_json(file)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as bad:
        if "Empty JSON" in str(bad):
            raise DataError(f"`{file}` is empty") from None
        table = _read_slowly(file)
    if not table.column_names:
        raise DataError(f"`{file}` holds no objects", hint="one JSON object a line")
    return table


def _read_slowly(file: Path) -> pa.Table:
    """Line by line, which knows the line of a mistake and has no limit to the length of one."""
    rows: list[dict[str, Any]] = []
    seen: dict[str, tuple[str, int]] = {}
    for number, line in _lines(file):
        where = f"`{file}`, line {number}"
        try:
            row = json.loads(line)
        except ValueError as bad:
            what, at = (bad.msg, f", column {bad.colno}") if isinstance(bad, json.JSONDecodeError) else (str(bad), "")
            raise DataError(f"{where}{at}: broken JSON: {what}", hint="one JSON object a line") from None
        except RecursionError:
            raise DataError(f"{where} is nested too deeply", hint="attributes are single values") from None
        if not isinstance(row, dict):
            raise DataError(f"{where} is not a JSON object", hint="one JSON object a line")
        for name, value in row.items():
            kind = _json_kind(value)
            if kind is None:
                continue
            first, since = seen.setdefault(name, (kind, number))
            if kind != first:
                raise DataError(f"{where}: `{name}` is {kind}, but {first} in line {since}", hint="give it one type")
        rows.append(row)
    from acep.engine.frames import to_table

    return to_table(rows)


def _lines(file: Path) -> Iterator[tuple[int, str]]:
    import gzip

    with gzip.open(file, "rb") if file.name.lower().endswith(".gz") else file.open("rb") as stream:
        for number, line in enumerate(stream, 1):
            if line.strip():
                try:
                    yield number, line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip()
                except UnicodeDecodeError:
                    raise DataError(f"`{file}`, line {number} is not UTF-8 text") from None


def _json_kind(value: object) -> str | None:
    if value is None:
        return None
    if isinstance(value, bool):
        return "a truth value"
    if isinstance(value, int | float):
        return "a number"
    if isinstance(value, str):
        return "text"
    return "a list" if isinstance(value, list) else "an object"


# Times ------------------------------------------------------------------------------------------


def _with_times(table: pa.Table, ts: str, file: Path) -> pa.Table:
    """The table with texts in its time column read as timestamps."""
    column = table.column(ts)
    text = kind_of(column.type) is Kind.STRING
    inferred = pa.types.is_timestamp(column.type) and column.type.unit == "ns" and format_of(file) == "csv"
    if not text and not inferred:
        return table
    # Microseconds where they do: Python's datetime holds them, and their years reach further.
    zones = (None, "UTC") if text else (column.type.tz,)
    for held in (pa.timestamp(unit, zone) for unit in ("us", "ns") for zone in zones):
        try:
            times = column.cast(held)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            continue
        return table.set_column(table.column_names.index(ts), ts, times)
    row, found = _first_bad(column)
    raise DataError(
        f"`{file}`: `{ts}` is not a time in row {row} (rows count from 0): {found!r}",
        hint="integers, or ISO 8601 such as 2024-01-31T10:00:00, all with a zone or all without",
    )


def _first_bad(column: pa.ChunkedArray) -> tuple[int, str | None]:
    from datetime import datetime

    zoned: bool | None = None
    for row, text in enumerate(column.to_pylist()):
        if text is None:
            continue
        try:
            time = datetime.fromisoformat(text)
        except ValueError:
            return row, text
        if zoned is not None and zoned != (time.tzinfo is not None):
            return row, text
        zoned = time.tzinfo is not None
    return 0, column.to_pylist()[0] if len(column) else None
