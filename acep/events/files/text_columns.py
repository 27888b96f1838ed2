"""Find the types of columns of texts over all blocks of a stream, with the values that decide them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

import pyarrow as pa

from acep.errors import DataError
from acep.events.files.casts import as_cast
from acep.events.files.csv_files import CsvFile
from acep.events.files.exponents import first_beyond
from acep.events.files.far_times import in_reach
from acep.events.files.json_lines import JsonFile
from acep.events.files.long_numbers import first_long
from acep.events.files.options import Options
from acep.events.files.text_types import NULLS, NUMBERS, ODD, TIMES, fits, inferred, looks, resolved, typed

__all__ = ["Cell", "TextColumns", "values_of"]

FAMILY = {"csv": "csv", "tsv": "csv", "jsonl": "jsonl", "parquet": "parquet"}
"""The forms of which texts are read alike, by form."""
INTEGER = re.compile(r"\s*[+-]?\d+\s*")
SAMPLE = 50
TEXT, DIGITS, COMMAS = "texts", "digits that are no plain numbers", "numbers with a comma"
FEW_VALUES = 3
"""So many values of a column, all unlike, are no names of kinds."""
SORTS = {
    **dict.fromkeys(NUMBERS, "numbers"),
    ODD: DIGITS,
    "bool": "truth values",
    "time": "times of day",
    "text": TEXT,
    **{look: "times with a zone" if look.endswith("+") else "times" for look in TIMES},
}
"""The name of values of each look."""
EXCHANGE = str.maketrans(".,", ",.")
COMMA = re.compile(r"\s*[+-]?\d+,\d+\s*")
NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+|inf(inity)?)([eE][+-]?\d+)?\s*", re.IGNORECASE)
DAY = re.compile(r"\s*\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d)?(\.\d+)?(?P<zone>\s*(Z|[+-]\d\d(:?\d\d)?))?)?\s*")
CLOCK = re.compile(r"\s*\d\d:\d\d(:\d\d)?\s*")

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


@dataclass
class Mixture:
    """How many values of a column there are of each sort, and the first of each; also up to two ``texts``, and some
    ``values`` that are no texts."""

    counts: Counter[str] = field(default_factory=Counter)
    firsts: dict[str, Cell] = field(default_factory=dict)
    texts: set[str] = field(default_factory=set)
    values: set[str] = field(default_factory=set)

    def add(self, sort: str, text: str) -> None:
        """Count a value."""
        self.counts[sort] += 1
        if sort == TEXT and len(self.texts) < 2:
            self.texts.add(text)
        elif sort != TEXT and len(self.values) < FEW_VALUES:
            self.values.add(text)

    @property
    def usual(self) -> str | None:
        """Return the sort of which all values seem to be that are no mistake: that of most, or of all but one text that
        stands for no value, such as ``-``. ``None``: texts, or it is not clear."""
        counts = self.counts.copy()
        if len(self.texts) == 1 and len(self.values) >= FEW_VALUES:
            del counts[TEXT]
        n_all = counts.total()
        sort, number = max(counts.items(), key=lambda pair: (pair[1], pair[0] != TEXT))
        is_even = 2 * number == n_all and TEXT not in counts
        return None if sort in (TEXT, DIGITS) or 2 * number < n_all or is_even else sort


class TextColumns:
    """The columns of texts of a stream: the ``looks`` of each, by the family of the form and by name; the first number
    of each that is too ``long`` for a double, or ``beyond`` all doubles."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.looks: dict[str, dict[str, set[str]]] = {family: {} for family in FAMILY.values()}
        self.long: dict[str, Cell] = {}
        self.beyond: dict[str, Cell] = {}
        self._mixtures: dict[tuple[str, str], Mixture] = {}

    def see(self, table: pa.Table, file: TextFile, before: int) -> None:
        """Record the types that the columns of texts look like. In JSON a text is never a number, but may be a time.
        ``before`` is the number of earlier rows of the file.

        Raises :class:`DataError` for a time column with a text that is no time.
        """
        options, family = self.options, FAMILY[file.source.form]
        for name in table.column_names:
            column = table.column(name)
            if name in (options.type, *options.casts) or not pa.types.is_string(column.type):
                continue
            earlier = self.looks[family].setdefault(name, set())
            more = _times(column, earlier) if family == "jsonl" else looks(column, earlier)
            is_order = name in (options.ts, options.seq)
            if is_order and ODD in more and pa.types.is_integer(inferred(column)):
                more = {"int"}  # a leading zero does not change a time
            if name == options.ts and (earlier | more) and pa.types.is_string(resolved(earlier | more)):
                _no_time(column, name, earlier, file, before)
            self._count(name, column, more or earlier, file, before)
            earlier |= more
            if family == "csv" and earlier <= NUMBERS:
                self._numbers(name, column, file, before)

    def type_of(self, name: str, value_type: pa.DataType, form: str) -> pa.DataType:
        """Return the type of a column as far as it is known; ``value_type`` for one that is not of texts."""
        seen = self.looks[FAMILY[form]].get(name)
        return value_type if seen is None else resolved(seen)

    def remarks(self, types: Mapping[str, pa.DataType]) -> list[str]:
        """Return a warning for each column that is used and is read as texts because of few values: of ``types`` it
        would have had another one without them."""
        texts = []
        for (_, name), mixture in self._mixtures.items():
            if name in self.options.casts or not pa.types.is_string(types.get(name, pa.null())):
                continue
            usual = mixture.usual
            is_plain = len(mixture.counts) == 1
            if usual is None or (is_plain and usual != COMMAS):
                continue
            cells = mixture.firsts.items()
            cell = min((cell for sort, cell in cells if is_plain or sort != usual), key=lambda cell: cell.row)
            why = "" if is_plain else f", and {mixture.counts[usual]:,} values of the column are {usual}"
            comma = ', decimal="," that a comma stands before decimals' if COMMAS in mixture.counts else ""
            text = self._as_written(cell.text)[:60]
            texts.append(
                f"{cell.place}: `{name}` is {text!r}{why}; so all of them are read as texts, and compared as"
                f" such; {as_cast(name, 'string')} says that they are texts{comma}, another cast with"
                " skip_bad_lines=True leaves such rows out"
            )
        return texts

    def _as_written(self, text: str) -> str:
        """Return a text as it is in the file; points and commas of numbers are exchanged if a comma is for decimals."""
        return text.translate(EXCHANGE) if self.options.decimal == "," and COMMA.fullmatch(text) else text

    def _numbers(self, name: str, column: pa.ChunkedArray, file: TextFile, before: int) -> None:
        """Record the first number that is too long for a double, and the first that is beyond all doubles."""
        is_role = name in (self.options.ts, self.options.seq, self.options.id)  # these are never doubles
        for cells, first_of in ((self.long, first_long), (self.beyond, first_beyond)):
            if name not in cells and not is_role and (number := first_of(column)) is not None:
                cells[name] = Cell(file, before + number[0], number[1])

    def _count(self, name: str, column: pa.ChunkedArray, seen: set[str], file: TextFile, before: int) -> None:
        """Count the values of each sort in a block whose values look like ``seen``."""
        n_values = len(column) - column.null_count
        if not n_values or not seen:
            return
        family = FAMILY[file.source.form]
        mixture = self._mixtures.setdefault((family, name), Mixture())
        sorts = {SORTS[look] for look in seen}
        if len(sorts) == 1 and not sorts & {TEXT, DIGITS}:
            self._note(mixture, sorts.pop(), n_values, column, file, before)
            return
        sort_of = (
            _sort_of_json if family == "jsonl" else _sort_of_csv if self.options.decimal == "." else _sort_of_points
        )
        places = range(0, len(column), max(len(column) // SAMPLE, 1))
        sample = [(text, sort_of(text)) for place in places if (text := column[place].as_py()) is not None]
        texts = [text for text, sort in sample if sort == TEXT]
        if len(texts) * 2 > len(sample) and len(mixture.texts.union(texts)) > 1:
            mixture.texts |= set(texts[:2])
            self._note(mixture, TEXT, n_values, column, file, before)
            return
        sort_of_text: dict[str, str | None] = {}  # many values are alike
        for row, text in enumerate(column.to_pylist()):
            if text is None:
                continue
            if text not in sort_of_text:
                if len(sort_of_text) > SAMPLE:
                    sort_of_text.clear()
                sort_of_text[text] = sort_of(text)
            if sort := sort_of_text[text]:
                mixture.add(sort, text)
                if sort not in mixture.firsts:
                    mixture.firsts[sort] = Cell(file, before + row, text)

    def _note(
        self, mixture: Mixture, sort: str, n_values: int, column: pa.ChunkedArray, file: TextFile, before: int
    ) -> None:
        """Count a block of values of one sort."""
        mixture.counts[sort] += n_values
        if sort != TEXT and len(mixture.values) < FEW_VALUES:
            mixture.values |= {text for text in column.slice(0, SAMPLE).to_pylist() if text is not None}
        if sort not in mixture.firsts:
            row, text = next((row, text) for row, text in enumerate(column.to_pylist()) if text is not None)
            mixture.firsts[sort] = Cell(file, before + row, text)


def _sort_of_points(text: str) -> str | None:
    """Return what sort of value a cell is where commas stand before decimals; those are points here."""
    return _sort_of_csv(text) if COMMA.fullmatch(text) is None else TEXT


def _sort_of_csv(text: str) -> str | None:
    """Return what sort of value a cell is, ``None`` for one that stands for null."""
    plain = text.strip()
    if plain in NULLS:
        return None
    if NUMBER.fullmatch(plain):
        digits = plain.removeprefix("-")
        is_odd = INTEGER.fullmatch(plain) and ((len(digits) > 1 and digits[0] in "0+") or len(digits) > 19)
        return DIGITS if is_odd else "numbers"
    if plain.lower() in ("true", "false"):
        return "truth values"
    if COMMA.fullmatch(plain):
        return COMMAS
    return "times of day" if CLOCK.fullmatch(plain) else _sort_of_json(text)


def _sort_of_json(text: str) -> str | None:
    """Return what sort of value a text of JSON is."""
    day = DAY.fullmatch(text)
    return TEXT if day is None else "times with a zone" if day["zone"] else "times"


def _times(texts: pa.ChunkedArray, earlier: set[str]) -> set[str]:
    """Return what texts of JSON look like: kinds of times, or text."""
    if "text" in earlier or len(texts) == texts.null_count or (earlier and fits(texts, earlier)):
        return set()
    seen = looks(texts)
    if seen and seen <= set(TIMES) and typed(texts, resolved(seen)).null_count == texts.null_count:
        return seen
    return {"text"}


def _no_time(column: pa.ChunkedArray, name: str, earlier: set[str], file: TextFile, before: int) -> None:
    """Raise :class:`DataError` for the first text in a time column that is not a time, or not like earlier ones."""
    integers: bool | None = "int" in earlier or None
    zoned = None if not earlier - {"int"} else any(look.endswith("+") for look in earlier)
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
                f"{file.place_of(before + row)}: `{name}` is not a time: {text!r}",
                hint="integers, or ISO 8601 such as 2024-01-31T10:00:00, all with a zone or all without; "
                f"{as_cast(name, 'timestamp')} says that they are times, and then skip_bad_lines=True skips others",
                code="data_value",
            )
        zoned, integers = time.tzinfo is not None, False
    values = [text for text in column.to_pylist() if text is not None]
    raise DataError(
        f"`{file.source.name}`: the texts of `{name}` are not all times of one kind, such as {values[0]!r}",
        hint="integers, or ISO 8601 such as 2024-01-31T10:00:00, all with a zone or all without",
        code="data_value",
    )


def values_of(column: pa.ChunkedArray, value_type: pa.DataType) -> pa.ChunkedArray:
    """Convert a column of texts to values of the type that they look like."""
    if pa.types.is_string(value_type) or column.type == value_type:
        return column
    if pa.types.is_null(value_type):
        return pa.chunked_array([pa.nulls(len(column))])
    try:
        values = column.cast(value_type)
        return in_reach(column, values) if pa.types.is_string(column.type) else values
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return typed(column, value_type)
