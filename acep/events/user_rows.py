"""Keep hold of the rows that a user passed, and find events among them again by position or by id."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from acep.errors import DataError
from acep.events.buffers import selectable
from acep.events.columns import column_of, kind_of
from acep.events.fields import column_at, roots_of
from acep.events.frames import is_partial, to_table
from acep.plan.schema import Kind

__all__ = ["OwnRows", "column_names", "narrow", "own_rows", "places_of", "rows_of_frame", "rows_of_paths", "take_rows"]

Ints = npt.NDArray[np.int64]
Stamps = list[tuple[str, int, int, int]]

GIVE = "found.events(match, frame) takes the events themselves"


@dataclass(eq=False)
class OwnRows:
    """The rows that a user passed, by reference: a pandas or polars frame or an Arrow table (``None``: they can be read
    only once). ``index`` is the index that a pandas frame had: another one means that its rows have changed. Files have
    their ``paths``, their ``stamps`` and the ``options`` of reading, and are read again when they are asked for.
    ``first``: of rows with one id the first is the event, as duplicates were dropped; ``is_partial``: of the rows only
    the columns were read that are used."""

    rows: Any = None
    index: Any = None
    paths: Any = None
    stamps: Stamps = field(default_factory=list)
    options: Mapping[str, Any] = field(default_factory=dict)
    first: bool = False
    is_partial: bool = False

    def frame(self) -> Any:
        """Return the rows. Raises :class:`DataError` if there are none any more, or if they are others now."""
        if self.paths is not None and self.rows is None:
            from acep.events.files.options import options_of
            from acep.events.files.stream import open_events

            with open_events(self.paths, replace(options_of(**self.options), remarks=False)) as events:
                table = events.read_all()
            if _stamps(self.paths) != self.stamps:
                raise DataError(
                    "the files have changed since they were matched",
                    hint=f"match them again, or {GIVE}",
                    code="file_read",
                )
            self.rows = table
        if self.is_partial:
            raise DataError(
                "these events have very many different keys, and were not kept",
                hint=f"{GIVE}, with the columns that are needed",
                code="data_column",
            )
        if self.rows is None:
            raise DataError("these events could be read only once, and were not kept", hint=GIVE, code="file_read")
        if self.index is not None and not self.index.is_(self.rows.index):
            raise changed_error("the index is another")
        return self.rows


def changed_error(reason: str) -> DataError:
    """Return the error for events that are not those of the matches."""
    return DataError(
        f"these are not the events that were matched: {reason}",
        hint=f"match them again; {GIVE}, for a Matcher all of its batches in one",
    )


# Keeping -----------------------------------------------------------------------------------------


def own_rows(events: Any, table: pa.Table) -> OwnRows:
    """Return hold of a table that a user passed; ``table`` is what :func:`acep.events.frames.to_table` made of it.

    Frames and Arrow tables are kept by reference, a polars frame as a clone that shares its data. Of dicts, lists and
    NumPy arrays the Arrow table is kept. Streams, readers and lazy frames are not kept.

    >>> own_rows({"ts": [1]}, pa.table({"ts": [1]})).frame().num_rows
    1
    """
    form = _form(events)
    if form == "pandas":
        return OwnRows(events, events.index)
    if form == "polars":
        return OwnRows(events.clone())
    if is_partial(table.schema):
        return OwnRows(is_partial=True)
    once = isinstance(events, pa.RecordBatchReader) or hasattr(events, "collect")
    if isinstance(events, pa.Table | pa.RecordBatch):
        return OwnRows(table)
    return OwnRows(None if once or hasattr(events, "__arrow_c_stream__") else table)


def rows_of_paths(paths: Any, **options: Any) -> OwnRows:
    """Return hold of files, before they are read; pipes and standard input can be read only once."""
    stamps = _stamps(paths)
    return OwnRows() if stamps is None else OwnRows(paths=paths, stamps=stamps, options=options)


def _stamps(paths: Any) -> Stamps | None:
    from acep.events.files.finding import regular_files

    files = regular_files(paths)
    if files is None:
        return None
    try:
        states = [(path, path.stat()) for path in files]
    except OSError:
        return []
    return [(str(path.absolute()), s.st_size, s.st_mtime_ns, s.st_ino) for path, s in states]


def rows_of_frame(frame: Any) -> Any:
    """Return rows that a user gives: a pandas or polars frame as it is, anything else as an Arrow table."""
    return frame if _form(frame) != "arrow" else to_table(frame)


# Finding -----------------------------------------------------------------------------------------


def _form(rows: Any) -> str:
    home = type(rows).__module__.partition(".")[0]
    if home == "pandas" and hasattr(rows, "columns"):
        return "pandas"
    return "polars" if home == "polars" and hasattr(rows, "to_arrow") and hasattr(rows, "columns") else "arrow"


def column_names(rows: Any) -> list[str]:
    """Return the names of the columns, with those of the index of a pandas frame."""
    if _form(rows) == "arrow":
        return list(rows.column_names)
    names = [str(name) for name in rows.columns]
    return names + ([str(n) for n in rows.index.names if n is not None] if _form(rows) == "pandas" else [])


def narrow(rows: Any, name: str, places: Ints | None = None) -> pa.ChunkedArray:
    """Return one column, which may be a field of a struct (``dev.id``); ``places``: only of these rows.

    Raises :class:`DataError` if there is no such column.

    >>> narrow(pa.table({"x": [1, 2], "dev": [{"id": 5}, {"id": 6}]}), "dev.id", np.array([1])).to_pylist()
    [6]
    """
    wanted = roots_of([name], column_names(rows)) or []
    form = _form(rows)
    if form == "pandas":
        part = rows.loc[:, [str(column) in wanted for column in rows.columns]]
        table = to_table(part if places is None else part.iloc[places])
    elif form == "polars":
        part = rows.select(wanted)
        table = to_table(part if places is None else part[places])
    else:
        part = rows.select([i for i, column in enumerate(rows.column_names) if column in wanted])
        table = part if places is None else selectable(part).take(pa.array(places))
    column_values = column_at(table, name)
    if column_values is None:
        raise changed_error(f"there is no column `{name}`")
    return column_values


def places_of(rows: Any, ids: Sequence[Any] | npt.NDArray[Any], column: str | None, *, first: bool = False) -> Ints:
    """Return the positions of events among rows; ``column`` has their ids (``None``: ids are positions).

    Raises :class:`DataError` for an event that is not there, or there twice, unless the ``first`` one counts.

    >>> places_of(pa.table({"name": ["p", "q", "r"]}), ["r", "p", "r"], "name")
    array([2, 0, 2])
    """
    if column is None:
        places = np.asarray(ids, np.int64)
        outside = (places < 0) | (places >= len(rows))
        if outside.any():
            raise changed_error(f"there is no row {places[np.argmax(outside)]}, but {len(rows):,} rows")
        return places
    numbers: dict[Any, int] = {}
    wanted = np.array([numbers.setdefault(event_id, len(numbers)) for event_id in _as_list(ids)], np.int64)
    row_numbers = _numbers_of_ids(narrow(rows, column), numbers)
    matching_rows = np.flatnonzero(row_numbers >= 0)
    counts = np.bincount(row_numbers[matching_rows], minlength=len(numbers))
    for is_bad, reason in ((counts == 0, "is not there"), ((counts > 1) & (not first), "is there more than once")):
        if is_bad.any():
            raise changed_error(f"event {[*numbers][int(np.argmax(is_bad))]!r} of column `{column}` {reason}")
    row_of_number = np.zeros(len(numbers), np.int64)
    row_of_number[row_numbers[matching_rows[::-1]]] = matching_rows[::-1]
    return row_of_number[wanted]


def _as_list(ids: Sequence[Any] | npt.NDArray[Any]) -> list[Any]:
    return ids.tolist() if isinstance(ids, np.ndarray) else list(ids)


def _numbers_of_ids(id_column: pa.ChunkedArray, numbers: dict[Any, int]) -> Ints:
    """Return for each row the number of its id, -1 for other ids."""
    kind = kind_of(id_column.type)
    if kind not in (Kind.INT, Kind.STRING):
        return np.full(len(id_column), -1, np.int64)
    values = column_of("id", id_column, kind, 1)
    if kind is Kind.STRING:
        of_text = np.array([numbers.get(text, -1) for text in values.texts or ()], np.int64)
        row_numbers = of_text[values.values] if len(of_text) else np.full(len(id_column), -1, np.int64)
    else:
        sorted_ids = np.array(sorted(event_id for event_id in numbers if isinstance(event_id, int)), np.int64)
        if not len(sorted_ids):
            return np.full(len(id_column), -1, np.int64)
        ranks = np.minimum(np.searchsorted(sorted_ids, values.values), len(sorted_ids) - 1)
        order = np.array([numbers[event_id] for event_id in sorted_ids.tolist()], np.int64)
        row_numbers = np.where(sorted_ids[ranks] == values.values, order[ranks], -1)
    return row_numbers if values.valid is None else np.where(values.valid != 0, row_numbers, -1)


def take_rows(rows: Any, places: Ints, extra_columns: Mapping[str, Any]) -> Any:
    """Return some rows in the form in which they are, pandas frames with their index, with ``extra_columns``:
    Arrow arrays by name.

    >>> take_rows(pa.table({"x": [7, 8]}), np.array([1, 1]), {"variable": pa.array(["a", "b"])}).to_pylist()
    [{'x': 8, 'variable': 'a'}, {'x': 8, 'variable': 'b'}]
    """
    form = _form(rows)
    if form == "pandas":
        return rows.iloc[places].assign(**{name: array.to_pandas().to_numpy() for name, array in extra_columns.items()})
    if form == "polars":
        import polars as pl

        added = [pl.Series(name, pl.from_arrow(array)) for name, array in extra_columns.items()]
        return rows[places].with_columns(added)
    table = selectable(rows).take(pa.array(places))
    for name, array in extra_columns.items():
        table = table.append_column(name, array)
    return table
