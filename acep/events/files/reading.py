"""Read a stream of files as one Arrow table (``acep.read_events``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from acep.events.files.finding import Paths
from acep.events.files.options import MAX_COLUMNS, MAX_EXPANSION, MAX_LINE, MAX_SKIPPED, options_of
from acep.events.files.stream import open_events

__all__ = ["read_events"]


def read_events(
    paths: Paths,
    columns: Sequence[str] | None = None,
    *,
    ts: str = "ts",
    type: str | None = "type",
    cast: Mapping[str, str] | None = None,
    unit: str | None = None,
    format: str | None = None,
    skip_bad_lines: bool = False,
    max_skipped: float = MAX_SKIPPED,
    delimiter: str | None = None,
    quote: str | None = '"',
    decimal: str = ".",
    nulls: Sequence[str] = (),
    multiline_cells: bool = False,
    max_line: int | str = MAX_LINE,
    max_expansion: float = MAX_EXPANSION,
    max_columns: int = MAX_COLUMNS,
) -> pa.Table:
    r"""Read events from one or more files: CSV with a header, Parquet, or JSON Lines (one object per line).

    ``paths`` is a path, a glob, a folder (all files of events below it, by name), ``"-"`` for standard input, or a list
    of these, which are read one after the other. The suffix of a file gives its format; CSV and JSON Lines may be
    compressed (``.gz``, ``.zst``). ``format`` (``"csv"``, ``"tsv"``, ``"zeek"``, ``"jsonl"``, ``"parquet"``) is for
    files without a known suffix. ``columns`` are the columns that will be used (``None``: all), also fields of objects
    (``dev.id``) and parts of lists (``tags[1]``); if a file lacks one of them, all are read, so that the error can be
    explained.

    In CSV the column ``type`` is text, and an empty cell is null. A column of numbers is text if an integer among them
    has a leading zero or a plus sign, and one of integers if one of them has more than 64 bits. ISO 8601
    texts are times if all texts of the column are. ``cast`` gives a column another type: ``int``, ``float``,
    ``string``, ``bool``, ``date``, ``timestamp``, ``timestamptz`` (with a zone), ``timestamp(s)`` (or ``ms``, ``us``,
    ``ns``, ``100ns``: the unit of its numbers) or ``decimal(p,s)``; ``string`` makes of a list or an object its JSON.
    ``unit`` is the unit of numbers in ``ts`` if that is cast to ``timestamp``.

    With ``skip_bad_lines`` lines that cannot be read are skipped, up to the share ``max_skipped`` of all lines.

    CSV: ``delimiter`` stands between cells (``None``: a tabulator in ``.tsv`` files, else a comma). ``quote=None``
    takes quotation marks as text. ``decimal=","`` is for numbers such as ``1,5``. Cells with one of the texts
    ``nulls=["NA"]`` are null, in each column, and in quotation marks, too; without it only an empty cell is. A cell in
    quotation marks with a line that looks like a row is refused, as a mark may be missing, unless there are
    ``multiline_cells``.

    ``max_line`` is the longest line in bytes, or a text such as ``"64 MB"``. ``max_expansion`` is how many times its
    size a compressed file may have (64 MB are always allowed), ``max_columns`` how many columns, or attributes of JSON,
    a file may have.

    Warns (:class:`DataWarning`) of a column that is read as texts although half of its values or more are of another
    type, with the first that is not. Raises :class:`DataError` for a file that is missing, truncated, or not of its
    format, for files that do not fit together, for a value that a cast cannot represent, and for more than the bounds
    allow. A file without a byte has no events.

    >>> import acep, tempfile
    >>> with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
    ...     _ = file.write("ts,type,zip\n1,a,1234\n2,b,01234\n")
    ...     file.flush()
    ...     acep.read_events(file.name).column("zip").to_pylist()
    ['1234', '01234']
    """
    options = options_of(
        columns=columns,
        ts=ts,
        type=type,
        cast=cast,
        unit=unit,
        format=format,
        skip_bad_lines=skip_bad_lines,
        max_skipped=max_skipped,
        delimiter=delimiter,
        quote=quote,
        decimal=decimal,
        nulls=nulls,
        multiline_cells=multiline_cells,
        max_line=max_line,
        max_expansion=max_expansion,
        max_columns=max_columns,
    )
    with open_events(paths, options) as events:
        return events.read_all()
