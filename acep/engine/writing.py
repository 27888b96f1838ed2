"""Matches, bundles and match points out: JSON Lines, CSV and Parquet; a file is there whole or not at all.

A line of JSON has the keys of ``docs/command_line.md``, in that order; times are ISO 8601 texts.
"""

from __future__ import annotations

import contextlib
import csv
import datetime as dt
import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from acep.engine.found_columns import FoundColumns
from acep.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa

    from acep.engine.matches import Bundle, Match, Matches, Point
    from acep.plan.schema import Schema

__all__ = [
    "group_record",
    "json_line",
    "match_record",
    "opened",
    "output_format",
    "plain",
    "write_groups",
    "write_matches",
    "write_table",
]

FORMATS = {".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet", ".pq": "parquet", ".csv": "csv"}
Target = str | os.PathLike[str] | IO[Any]
FEW = 1_000  # for fewer matches columns of texts do not pay the import of pyarrow.compute


def output_format(path: str | os.PathLike[str]) -> str:
    """The format of an output file by its name: ``"jsonl"``, ``"parquet"`` or ``"csv"``.

    Raises :class:`DataError` for any other name.
    """
    found = FORMATS.get(Path(path).suffix.lower())
    if found is None:
        raise DataError(f"no format of output is named like `{path}`", hint="use .jsonl, .parquet or .csv")
    return found


# Records ----------------------------------------------------------------------------------------


def match_record(match: Match, *, query: str | None = None, zoned: bool = False) -> dict[str, Any]:
    """A match as what JSON can hold; ``values`` only if the query has RETURN, ``query`` only if given.

    ``zoned`` says that the times have a zone, which those in nanoseconds do not show.

    >>> from acep.engine.matches import Match
    >>> print(json_line(match_record(Match({"symbol": "AAPL"}, 1, 9, 0, {"a": (0, 3), "b": (7,)}, 9))))
    {"key": {"symbol": "AAPL"}, "start": 1, "end": 9, "error": 0, "bindings": {"a": [0, 3], "b": [7]}, "bundle": 9}
    """
    record: dict[str, Any] = {} if query is None else {"query": query}
    record["key"] = {name: plain(value) for name, value in match.key.items()}
    record["start"] = plain(match.start, zoned)
    record["end"] = plain(match.end, zoned)
    record["error"] = match.error
    record["bindings"] = {var: list(ids) for var, ids in match.bindings.items()}
    record["bundle"] = plain(match.bundle, zoned)
    if match.values:
        record["values"] = {name: plain(value) for name, value in match.values.items()}
    return record


def group_record(group: Bundle | Point, *, zoned: bool = False) -> dict[str, Any]:
    """A bundle or a match point as what JSON can hold.

    >>> from acep.engine.matches import Bundle
    >>> json_line(group_record(Bundle({}, 5, 9, 3, 0.5)))
    '{"key": {}, "start": 5, "end": 9, "matches": 3, "best": 0.5}'
    """
    # Matches that were not counted are left out.
    record = {name: plain(value, zoned) for name, value in vars(group).items() if value is not None}
    record["key"] = {name: plain(value) for name, value in group.key.items()}
    return record


def json_line(record: dict[str, Any]) -> str:
    """A record as one line of JSON, without the end of the line."""
    return json.dumps(record, ensure_ascii=False)


def plain(value: Any, zoned: bool = False) -> Any:
    """A value as JSON holds it: times as ISO 8601, what is no finite number as null; ``zoned`` as in
    :func:`match_record`.

    >>> plain(Fraction(1, 2)), plain(float("inf")), plain(dt.date(2024, 1, 2))
    (0.5, None, '2024-01-02')
    """
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dt.date):
        return value.isoformat()
    if isinstance(value, Fraction):
        return int(value) if value.denominator == 1 else float(value)
    text = str(value)  # numpy.datetime64
    if "." in text:
        text = text.rstrip("0") if text.endswith("000000000") else text.removesuffix("000")
    return text.removesuffix(".") + ("+00:00" if zoned else "")


# Files ------------------------------------------------------------------------------------------


def write_matches(matches: Matches, target: Target, form: str | None = None) -> None:
    """Write matches to a path (of which the name tells the format) or an open stream.

    ``form``: ``"jsonl"``, ``"csv"`` (a column ``key.x`` and ``values.x`` for each key attribute and value of RETURN,
    the bindings as JSON) or ``"parquet"`` (the table of :meth:`~acep.engine.matches.Matches.to_arrow`, without ``key``
    where there are no key attributes). A stream is of text, for Parquet of bytes.

    Raises :class:`DataError` where the file cannot be written; then what was there before is still there.
    """

    def table() -> pa.Table:
        whole = matches.to_arrow()
        return whole if matches.keys else whole.drop_columns(["key"])

    heads = [*(f"key.{k}" for k in matches.keys), "start", "end", "error", "bindings", "bundle"]
    heads += [f"values.{name}" for name in matches.returns]
    zoned = _is_zoned(matches.schema)
    lines = None
    if isinstance(matches.found, FoundColumns) and len(matches) > FEW:
        from acep.engine.lines import lines_of

        lines = partial(lines_of, matches, zoned=zoned)
    _write((match_record(m, zoned=zoned) for m in matches), heads, table, target, form, lines)


def write_groups(
    groups: Sequence[Bundle] | Sequence[Point],
    target: Target,
    form: str | None = None,
    *,
    heads: Sequence[str],
    schema: Schema,
    keys: tuple[str, ...],
) -> None:
    """Write bundles or match points, as :func:`write_matches` does; ``heads`` are the fields after the key."""

    def table() -> pa.Table:
        from acep.engine.arrow import groups_table

        whole = groups_table(groups, schema, keys, heads)
        return whole if keys else whole.drop_columns(["key"])

    zoned = _is_zoned(schema)
    _write((group_record(g, zoned=zoned) for g in groups), [*(f"key.{k}" for k in keys), *heads], table, target, form)


def write_table(table: pa.Table, target: Target, form: str | None = None) -> None:
    """Write matches that are a table with the columns of :meth:`~acep.engine.matches.Matches.to_arrow` (``key`` may be
    left out), as :func:`write_matches` does."""
    heads = []
    for field in table.schema:
        named = [inner.name for inner in field.type] if field.name in ("key", "values") else None
        heads += [field.name] if named is None else [f"{field.name}.{name}" for name in named]
    rows = (row for batch in table.to_batches() for row in batch.to_pylist())
    _write(map(_row_record, rows), heads, lambda: table, target, form)


def _row_record(row: dict[str, Any]) -> dict[str, Any]:
    record: dict[str, Any] = {"key": {}}
    for name, value in row.items():
        if name == "bindings":
            record[name] = {var: list(ids) for var, ids in value}
        elif name == "error":
            record[name] = int(value) if value == int(value) else value
        elif isinstance(value, dict):
            record[name] = {inner: plain(v) for inner, v in value.items()}
        else:
            record[name] = plain(value)
    return record


def _is_zoned(schema: Schema) -> bool:
    from acep.engine.tables import time_types

    return getattr(time_types(schema)[schema.ts], "tz", None) is not None


def _write(
    records: Iterable[dict[str, Any]],
    heads: list[str],
    table: Any,
    target: Target,
    form: str | None,
    lines: Callable[[str], Iterable[str]] | None = None,
) -> None:
    """``lines``: of a text format, where they need no records."""
    if form is None:
        if not isinstance(target, str | os.PathLike):
            raise DataError("a stream needs a format", hint='form="jsonl", "csv" or "parquet"')
        form = output_format(target)
    if form not in FORMATS.values():
        raise DataError(f"there is no format {form!r}", hint="jsonl, csv or parquet")
    with opened(target, binary=form == "parquet") as stream:
        if form == "parquet":
            import pyarrow.parquet as pq

            pq.write_table(table(), stream)
            return
        if form == "csv":
            writer = csv.writer(stream, lineterminator="\n")
            writer.writerow(heads)
        if lines is not None:
            stream.writelines(lines(form))
        elif form == "csv":
            writer.writerows([_cell(record, head) for head in heads] for record in records)
        else:
            stream.writelines(json_line(record) + "\n" for record in records)


def _cell(record: dict[str, Any], head: str) -> Any:
    part, dot, name = head.partition(".")
    value = record[part][name] if dot else record[part]
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict) else value


@contextlib.contextmanager
def opened(target: Target, *, binary: bool) -> Iterator[IO[Any]]:
    """A stream to write to; a file appears under its name only once it is whole."""
    if not isinstance(target, str | os.PathLike):
        yield target
        return
    mode, encoding = ("xb", None) if binary else ("x", "utf-8")
    if Path(target).is_dir():
        raise DataError(f"`{target}` is a directory, not a file")
    if Path(target).exists() and not Path(target).is_file():  # a device or a pipe cannot be replaced
        with Path(target).open(mode.replace("x", "w"), encoding=encoding, newline=None if binary else "") as stream:
            yield stream
        return
    path = Path(os.path.realpath(target))
    draft = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        try:
            with draft.open(mode, encoding=encoding, newline=None if binary else "") as stream:
                yield stream
            draft.replace(path)
        except OSError as bad:
            raise DataError(f"`{target}` cannot be written: {bad.strerror or bad}") from None
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
