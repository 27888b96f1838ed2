"""Count the sorts of values in a column of texts, and word what is said of an odd one: a warning, or an error."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

import pyarrow as pa

from acep.errors import DataError
from acep.events.files.casts import as_cast
from acep.events.files.csv.cell_sorts import COMMAS, DIGITS, NUMBERS, TEXTS, UNZONED, ZONED, Rows
from acep.events.files.csv.csv_files import CsvFile
from acep.events.files.json.json_lines import JsonFile
from acep.events.files.options import Options
from acep.events.times import quote_scalar

__all__ = [
    "Cell",
    "Mixture",
    "OddColumn",
    "Unreached",
    "no_integer",
    "no_time",
    "odd_column",
    "shown_value",
    "two_kinds_of_times",
]

FEW_VALUES = 3
"""So many values of a column, all unlike, are no names of kinds."""
SAMPLE = 50
SHOWN = 60  # characters of a cell
NO_VALUE = {"", "#N/A", "#NA", "-", ".", "?", "N/A", "NA", "NULL", "None", "n/a", "na", "none", "null"}
"""Texts that often stand for null."""
LEAVES_OUT = ", another cast with skip_bad_lines=True leaves such rows out"
TIMES_OF_ONE_KIND = "integers, or ISO 8601 such as 2024-01-31T10:00:00, all with a zone or all without"

TextFile = CsvFile | JsonFile


@dataclass(frozen=True)
class Cell:
    """A value of a file: its row, from 0, and its text."""

    file: TextFile
    row: int
    text: str

    @property
    def place(self) -> str:
        """The words for the place."""
        return self.file.place_of(self.row)

    @property
    def written(self) -> str:
        """The text as it is in the file."""
        return self.file.as_written(self.text)

    @property
    def shown(self) -> str:
        """The text as it is in the file, as far as it is shown."""
        return self.written[:SHOWN]


@dataclass
class Mixture:
    """How many values of a column there are of each sort, and the first of each; also up to two ``texts``, and some
    ``values`` that are no texts."""

    counts: Counter[str] = field(default_factory=Counter)
    firsts: dict[str, Cell] = field(default_factory=dict)
    texts: set[str] = field(default_factory=set)
    values: set[str] = field(default_factory=set)

    def add(self, sort: str, rows: Rows, column: pa.ChunkedArray, file: TextFile, before: int) -> None:
        """Count the rows of a block that are of one sort; ``before`` is the number of earlier rows of the file."""
        self.counts[sort] += len(rows)
        if sort not in self.firsts:
            row = int(rows[0])
            self.firsts[sort] = Cell(file, before + row, column[row].as_py())
        if sort == TEXTS and len(self.texts) < 2:
            self.texts |= set(column.take(pa.array(rows)).unique().slice(0, 2).to_pylist())
        elif sort != TEXTS and len(self.values) < FEW_VALUES:
            self.values |= {column[row].as_py() for row in rows[:SAMPLE].tolist()}

    @property
    def usual(self) -> str | None:
        """Return the sort of which all values seem to be that are no mistake: that of at least half of them, or of all
        but one text that stands for no value, such as ``-``. ``None``: texts, or it is not clear."""
        counts = self.counts.copy()
        if len(self.texts) == 1 and len(self.values) >= FEW_VALUES:
            del counts[TEXTS]
        sort, number = max(counts.items(), key=lambda pair: (pair[1], pair[0] not in (TEXTS, DIGITS)))
        return None if sort in (TEXTS, DIGITS) or 2 * number < counts.total() else sort

    @property
    def odd(self) -> Cell | None:
        """Return the first value that is not of the usual sort; ``None`` if there is none."""
        usual = self.usual
        cells = [cell for sort, cell in self.firsts.items() if sort != usual]
        return None if usual is None else next(iter(cells), None)


@dataclass(frozen=True)
class Unreached:
    """The first time of a column that nanoseconds do not reach (``far``), and the first that needs them (``fine``)."""

    far: Cell
    fine: Cell

    def __str__(self) -> str:
        return f"nanoseconds do not reach it, and {self.fine.text!r} needs them"


class OddColumn(NamedTuple):
    """Words about a column of texts that would be one of values but for few of them: its odd ``value`` with the place,
    and the ``advice``."""

    value: str
    advice: str

    def __str__(self) -> str:
        return f"{self.value}; so all of them are read as texts, and compared as such; {self.advice}"


def odd_column(name: str, mixture: Mixture, unreached: Unreached | None) -> OddColumn | None:
    """Return what is said of a column of texts that would be one of values but for few of them; ``None``: it would
    not."""
    usual, cell = mixture.usual, mixture.odd
    settings = ""
    if cell is not None and usual is not None:
        why = f", and {mixture.counts[usual]:,} values of the column are {usual}"
        if cell.text in NO_VALUE:
            settings = f', nulls=["{cell.text}"] that it stands for null'
    elif unreached is not None:
        cell, why = unreached.far, f"; {unreached}"
    elif usual == COMMAS:
        cell, why = mixture.firsts[COMMAS], ""
    else:
        return None
    if COMMAS in mixture.counts and cell.file.options.decimal == ".":
        settings += ', decimal="," that a comma stands before decimals'
    elif usual == COMMAS:
        settings += ', decimal="." that a point stands before decimals'
    advice = f"{as_cast(name, 'string')} says that they are texts{settings}"
    advice += "; else write all or none with a zone" if has_both_times(mixture) else LEAVES_OUT
    return OddColumn(f"{cell.place}: `{name}` is {cell.shown!r}{why}", advice)


def has_both_times(mixture: Mixture) -> bool:
    """Return whether a column has times with a zone and times without one, which no cast tells apart."""
    return {UNZONED, ZONED} <= mixture.counts.keys()


def no_time(name: str, mixture: Mixture, unreached: Unreached | None) -> DataError:
    """Return the error for a time column of which a text is no time, or a time of another kind."""
    usual = mixture.usual
    cell = mixture.odd or mixture.firsts.get(TEXTS)
    if cell is None and unreached is not None:
        return DataError(
            f"{unreached.far.place}: `{name}` is {unreached.far.shown!r}; {unreached}",
            hint="write all of them with six digits behind the second at most",
            code="data_value",
        )
    cell = cell or list(mixture.firsts.values())[-1]
    hint = TIMES_OF_ONE_KIND
    if usual in (NUMBERS, UNZONED, ZONED) and not has_both_times(mixture):
        cast, what = ("int", "integers") if usual == NUMBERS else ("timestamp", "times")
        hint += f"; {as_cast(name, cast)} says that they are {what}, and then skip_bad_lines=True skips others"
    return DataError(f"{cell.place}: `{name}` is not a time: {cell.shown!r}", hint=hint, code="data_value")


def no_integer(name: str, place: str, shown: str, *, is_id: bool) -> DataError:
    """Return the error for times, an order or ids that have a number with decimals, or an exponent."""
    return DataError(
        f"{place}: `{name}` is {shown}, which is not written as an integer" + ("" if is_id else ", and no time"),
        hint=f"{as_cast(name, 'string')} takes ids as texts"
        if is_id
        else f"{as_cast(name, 'timestamp(s)')} is for seconds since 1970, with decimals, and (ms), (us), (ns) for"
        f" others; {as_cast(name, 'int')} says that they are integers, and then skip_bad_lines=True skips others",
        code="data_value",
    )


def two_kinds_of_times(name: str, options: Options) -> DataError:
    """Return the error for a column that is cast and has times with a zone and times without one. The columns of times
    and of order cannot be texts."""
    as_texts = "" if name in (options.ts, options.seq) else f"; {as_cast(name, 'string')} shows them as they are"
    return DataError(
        f"`{name}` has times with a zone and times without one",
        hint=f"give all of them a zone, or none{as_texts}",
        code="data_value",
    )


def shown_value(value: pa.Scalar, file: object) -> str:
    """Return a value that a cast refuses as messages quote it; a text of CSV as it is in the file."""
    if isinstance(file, CsvFile) and pa.types.is_string(value.type):
        return repr(file.as_written(value.as_py()))
    return quote_scalar(value)
