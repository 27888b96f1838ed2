"""Find the types of columns of texts over all blocks of a stream, with the values that decide them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

import numpy as np
import pyarrow as pa

from acep.events.files.csv.cell_sorts import (
    DIGITS,
    FINE,
    INTEGER,
    NUMBERS,
    UNZONED,
    ZONED,
    Rows,
    cell_sorts,
    first_match,
    matching,
    valid_rows,
    zero_rows,
)
from acep.events.files.csv.csv_files import CsvFile
from acep.events.files.csv.csv_values import convert_texts
from acep.events.files.csv.text_types import (
    BIG,
    FAR,
    PADDED,
    TIMES,
    ZEROS,
    Block,
    block_of,
    far_rows,
    type_of_looks,
)
from acep.events.files.csv.text_types import (
    NUMBERS as NUMBER_LOOKS,
)
from acep.events.files.exponents import first_beyond
from acep.events.files.far_times import check_reach
from acep.events.files.json.json_lines import JsonFile
from acep.events.files.long_numbers import first_inexact, first_long, large_rows, refuse, refuse_beyond, refuse_inexact
from acep.events.files.odd_values import Cell, Mixture, OddColumn, Unreached, no_integer, no_time, odd_column
from acep.events.files.options import Options

__all__ = ["TextColumns", "values_of"]

FAMILY = {"csv": "csv", "tsv": "csv", "jsonl": "jsonl", "parquet": "parquet"}
"""The forms of which texts are read alike, by form."""
SORTS = {
    **dict.fromkeys(("int", "float"), NUMBERS),
    **dict.fromkeys((ZEROS, BIG), DIGITS),
    "bool": "truth values",
    "time": "times of day",
    PADDED: UNZONED,
    **{look: ZONED if look.endswith("+") else UNZONED for look in TIMES},
}
"""The name of values of each look."""

TextFile = CsvFile | JsonFile


class TextColumns:
    """The columns of texts of a stream: the ``looks`` of each, by the family of the form and by name; the first number
    of each that is too ``long`` for a double, an integer that is ``inexact`` as one, or ``beyond`` all doubles."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.looks: dict[str, dict[str, set[str]]] = {family: {} for family in FAMILY.values()}
        self.long: dict[str, Cell] = {}
        self.inexact: dict[str, Cell] = {}
        self.beyond: dict[str, Cell] = {}
        self.decimals: dict[str, Cell] = {}  # the first number of each column that is not written as an integer
        self._mixtures: dict[tuple[str, str], Mixture] = {}
        self._far: dict[tuple[str, str], Cell] = {}
        self._fine: dict[tuple[str, str], Cell] = {}

    def see(self, table: pa.Table, file: TextFile, n_before: int) -> None:
        """Record the types that the columns of texts look like. In JSON a text is never a number, but may be a time,
        unless it is in a list. ``n_before`` is the number of earlier rows of the file."""
        family = FAMILY[file.source.form]
        for name, column in _texts_in(table, {self.options.type, *self.options.casts, *self.options.texts}):
            if isinstance(file, JsonFile) and file.is_in_list(name):
                continue
            earlier_looks = self.looks[family].setdefault(name, set())
            if column.null_count < len(column):
                self._see_column(name, _one_chunk(column), earlier_looks, file, n_before)

    def _see_column(
        self, name: str, texts: pa.StringArray, earlier_looks: set[str], file: TextFile, n_before: int
    ) -> None:
        """Record what a block of a column looks like, and what is to be known of its values."""
        family, column = FAMILY[file.source.form], pa.chunked_array([texts])
        options = self.options
        is_order = name in (options.ts, options.seq)
        block = Block({"text"}) if "text" in earlier_looks else block_of(column, earlier_looks)
        if family == "jsonl" and not block.looks <= {*TIMES, *FAR.values()}:
            block = Block({"text"})
        looks, values = block.looks, block.values
        if is_order and ZEROS in looks and values is not None and pa.types.is_integer(values.type):
            # A leading zero does not change a time.
            looks = looks if len(zero_rows(column, hexadecimal=True)) > len(zero_rows(column)) else {"int"}
        if values is None or looks & {ZEROS, BIG, PADDED}:
            sorts = cell_sorts(texts, only_times=family == "jsonl", zeros_count=not is_order)
            if values is None and len(sorts) == 1 and (sort := next(iter(sorts))) in (UNZONED, ZONED):
                looks = looks_of_times(texts, zoned=sort == ZONED)
        else:
            sorts = {SORTS[next(look for look in looks if look in SORTS)]: valid_rows(texts)}
        mixture = self._mixtures.setdefault((family, name), Mixture())
        for sort, rows in sorts.items():
            mixture.add(sort, rows, column, file, n_before)
        self._note_extremes((family, name), looks, column, file, n_before)
        earlier_looks |= looks
        is_role = is_order or name == options.id  # these are never doubles
        if is_role and "float" in looks and name not in self.decimals:
            row = first_match(column, INTEGER, inverse=True)
            if row is not None:
                self.decimals[name] = Cell(file, n_before + row, column[row].as_py())
        if family == "csv" and earlier_looks <= NUMBER_LOOKS and not is_role:
            self._note_numbers(name, column, values, file, n_before)

    def _note_extremes(
        self, key: tuple[str, str], looks: set[str], column: pa.ChunkedArray, file: TextFile, n_before: int
    ) -> None:
        """Record the first time that nanoseconds do not reach, and the first that needs them."""
        for finest, far in FAR.items():
            if far in looks and key not in self._far:
                row = int(_far_rows(column.chunk(0), zoned=finest.endswith("+"))[0])
                self._far[key] = Cell(file, n_before + row, column[row].as_py())
            if finest in looks and key not in self._fine and (row_or_none := first_match(column, FINE)) is not None:
                self._fine[key] = Cell(file, n_before + row_or_none, column[row_or_none].as_py())

    def _note_numbers(
        self, name: str, column: pa.ChunkedArray, values: pa.ChunkedArray | None, file: TextFile, n_before: int
    ) -> None:
        """Record the first numbers that a double would not hold."""
        if values is not None and pa.types.is_integer(values.type) and not len(large_rows(values)):
            return
        for cells, first_of in ((self.long, first_long), (self.beyond, first_beyond)):
            if name not in cells and (number := first_of(column)) is not None:
                cells[name] = Cell(file, n_before + number[0], number[1])
        if name not in self.inexact and (row := first_inexact(column, values)) is not None:
            self.inexact[name] = Cell(file, n_before + row, column[row].as_py())

    def type_of(self, name: str, value_type: pa.DataType, form: str) -> pa.DataType:
        """Return the type of a column as far as it is known; ``value_type`` for one that is not of texts, with the
        types of texts in the fields of a struct."""
        if pa.types.is_struct(value_type):
            return pa.struct(
                [inner.with_type(self.type_of(f"{name}.{inner.name}", inner.type, form)) for inner in value_type]
            )
        looks = self.looks[FAMILY[form]].get(name)
        return value_type if looks is None else type_of_looks(looks)

    def check_roles(self) -> None:
        """Raise :class:`DataError` for a time column that is not one of times, and for times, an order or ids that have
        decimals, with the first value that is wrong."""
        ts = self.options.ts
        for family, columns in self.looks.items():
            if pa.types.is_string(type_of_looks(columns.get(ts, set()))):
                raise no_time(ts, self._mixtures[family, ts], self._unreached_cells((family, ts)))
            for name, cell in self.decimals.items():
                if pa.types.is_floating(type_of_looks(columns.get(name, set()))):
                    raise no_integer(name, cell.place, repr(cell.shown), is_id=name == self.options.id)

    def check_numbers(self, types: Mapping[str, pa.DataType]) -> None:
        """Raise :class:`DataError` for a column of doubles with a number that no double holds."""
        for cells, error in ((self.long, refuse), (self.inexact, refuse_inexact), (self.beyond, refuse_beyond)):
            for name, cell in cells.items():
                if types.get(name) == pa.float64():
                    raise error(cell.place, name, cell.text, written=cell.written)

    def odd_columns(self, types: Mapping[str, pa.DataType]) -> dict[str, OddColumn]:
        """Return the columns that are used and are read as texts because of few values: of ``types`` they would have
        had others without them."""
        columns = {}
        for (family, name), mixture in self._mixtures.items():
            if name in self.options.casts or not pa.types.is_string(types.get(name, pa.null())):
                continue
            column = odd_column(name, mixture, self._unreached_cells((family, name)))
            if column is not None:
                columns[name] = column
        return columns

    def _unreached_cells(self, key: tuple[str, str]) -> Unreached | None:
        return Unreached(self._far[key], self._fine[key]) if key in self._far and key in self._fine else None


def _texts_in(table: pa.Table, unread: Collection[str | None]) -> Iterator[tuple[str, pa.ChunkedArray]]:
    """Yield the columns of texts, and such fields of structs, with their names, but for those that are ``unread``."""
    columns = [(name, table.column(name)) for name in reversed(table.column_names)]
    while columns:
        name, column = columns.pop()
        if name in unread:
            continue
        if pa.types.is_struct(column.type):
            inner = [(f"{name}.{field.name}", part) for field, part in zip(column.type, column.flatten(), strict=True)]
            columns += [(label, part) for label, part in reversed(inner) if label not in table.column_names]
        elif pa.types.is_string(column.type):
            yield name, column


def _one_chunk(column: pa.ChunkedArray) -> pa.StringArray:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)


def looks_of_times(texts: pa.StringArray, *, zoned: bool) -> set[str]:
    """Return the looks of texts that are all times, although no type holds all of them, or Arrow tries none that does:
    for fractions it tries nanoseconds, and nothing else."""
    zone = "+" if zoned else ""
    looks = {f"us{zone}"}
    if matching(texts, FINE).any():
        looks |= {f"ns{zone}"}
    return looks | ({f"far{zone}"} if len(_far_rows(texts, zoned=zoned)) else set())


def _far_rows(texts: pa.StringArray, *, zoned: bool) -> Rows:
    """Return the rows of times that nanoseconds do not reach."""
    rows = np.flatnonzero(~matching(texts, FINE))
    times = pa.chunked_array([texts.take(pa.array(rows))]).cast(pa.timestamp("us", "UTC" if zoned else None))
    return rows[far_rows(times)]


def values_of(column: pa.ChunkedArray, value_type: pa.DataType) -> pa.ChunkedArray:
    """Convert a column of texts to values of the type that they look like."""
    if pa.types.is_string(value_type) or column.type == value_type:
        return column
    if pa.types.is_null(value_type):
        return pa.chunked_array([pa.nulls(len(column))])
    try:
        values = column.cast(value_type)
        return check_reach(column, values) if pa.types.is_string(column.type) else values
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return convert_texts(column, value_type)
