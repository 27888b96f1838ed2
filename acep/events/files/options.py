"""Define the options for reading files: the columns that are used, casts, the format, and skipping of bad lines."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from numbers import Real

from acep.errors import DataError, QueryError, printable, suggest
from acep.events.fields import check_names
from acep.events.files.casts import Cast, casts_of
from acep.events.files.formats import NAMES
from acep.storage.sizes import size_in_bytes

__all__ = ["MAX_COLUMNS", "MAX_EXPANSION", "MAX_LINE", "MAX_SKIPPED", "BadLines", "Options", "options_of", "too_long"]

MAX_SKIPPED = 0.01
MAX_LINE = 16 << 20
MAX_EXPANSION = 200
MAX_COLUMNS = 10_000


@dataclass(frozen=True)
class Options:
    """Options for reading events. ``columns`` are those that are used (``None``: all). ``ts``, ``type``, ``seq`` and
    ``id`` are names of columns. ``casts`` are by column; the first pass changes a cast to microseconds to one to
    nanoseconds if these are needed. ``format`` is for files whose names have no known suffix (``None``: no format).
    With ``skip_bad_lines`` lines that cannot be read are counted and skipped, up to the share ``max_skipped``.
    ``texts`` are columns of JSON that stay texts, whatever they look like. ``casts_are_there``: each column that is
    cast must be in some file; ``remarks``: warnings are given.
    ``drop_duplicates``: rows whose ids came before are left out, else they are refused. Without ``checks_ids`` that is
    left to whoever matches the events. With ``in_threads`` the columns of Parquet are read side by side.

    Of CSV: the ``delimiter`` between cells (``None``: by the name of the file), whether cells may stand in ``quotes``,
    the sign before ``decimal`` places, the texts that are ``nulls`` beside the empty one, and whether cells may hold
    lines that look like rows (``multiline_cells``). The bounds: ``max_line`` bytes of a line or row, ``max_expansion``
    times the size of a compressed file, and ``max_columns``."""

    columns: tuple[str, ...] | None = None
    ts: str = "ts"
    type: str | None = "type"
    seq: str | None = None
    id: str | None = None
    casts: dict[str, Cast] = field(default_factory=dict)
    format: str | None = None
    skip_bad_lines: bool = False
    max_skipped: float = MAX_SKIPPED
    delimiter: str | None = None
    quotes: bool = True
    decimal: str = "."
    nulls: tuple[str, ...] = ()
    multiline_cells: bool = False
    max_line: int = MAX_LINE
    max_expansion: float = MAX_EXPANSION
    max_columns: int = MAX_COLUMNS
    texts: frozenset[str] = frozenset()
    casts_are_there: bool = True
    remarks: bool = True
    drop_duplicates: bool = False
    checks_ids: bool = True
    in_threads: bool = False

    def check_forms(self, forms: Collection[str]) -> None:
        """Raise :class:`DataError` for an option that says how CSV is written if no file is CSV. ``forms`` are those of
        the files."""
        if not forms or not {"csv", "tsv"}.isdisjoint(forms):
            return
        settings = {
            f"delimiter={self.delimiter!r}": self.delimiter is not None,
            "quote=None": not self.quotes,
            f"decimal={self.decimal!r}": self.decimal != ".",
            f"nulls={[*self.nulls[:1]]!r}".replace("'", '"'): bool(self.nulls),
            "multiline_cells=True": self.multiline_cells,
        }
        if (option := next((option for option, is_set in settings.items() if is_set), None)) is not None:
            raise DataError(
                f"{option} says how CSV is written, and no file is CSV",
                hint="leave it out; format= names the form of files whose names do not",
                code="option_invalid",
            )

    def columns_to_read(self, names: Sequence[str], file: str = "") -> list[str]:
        """Return the columns of a file to read. If a column that is used is missing, return all, so that the error can
        be explained. ``a.b`` may be a field of a column ``a``.

        Raises :class:`DataError` if the file has two such columns of one name.
        """
        numbers, wanted = Counter(names), dict[str, None]()
        for name in names if self.columns is None else self.columns:
            outer = name.partition(".")[0]
            if name in numbers or outer in numbers:
                wanted.setdefault(name if name in numbers else outer)
            elif name not in self.casts and not (name == self.type == "type"):
                wanted = dict.fromkeys(names)
                break
        if twice := [name for name in wanted if numbers[name] > 1]:
            raise DataError(
                f"two columns of `{file}` are called `{twice[0]}`", hint="rename one of them", code="data_column"
            )
        return list(wanted)


def options_of(
    *,
    columns: Sequence[str] | None = None,
    ts: str = "ts",
    type: str | None = "type",
    seq: str | None = None,
    id: str | None = None,
    cast: Mapping[str, str] | None = None,
    unit: str | None = None,
    format: str | None = None,
    skip_bad_lines: bool = False,
    drop_duplicates: bool = False,
    max_skipped: float = MAX_SKIPPED,
    delimiter: str | None = None,
    quote: str | None = '"',
    decimal: str = ".",
    nulls: Sequence[str] = (),
    multiline_cells: bool = False,
    max_line: int | str = MAX_LINE,
    max_expansion: float = MAX_EXPANSION,
    max_columns: int = MAX_COLUMNS,
) -> Options:
    """Check a user's options, as :func:`acep.read_events` describes them; ``unit`` is the unit of numbers in ``ts`` if
    that is cast to a timestamp.

    Raises :class:`DataError` for an unknown type or format, or an argument of the wrong type.

    >>> options_of(cast={"price": "decimal(10,2)"}).casts["price"].type
    Decimal128Type(decimal128(10, 2))
    """
    if format is not None and (not isinstance(format, str) or format not in NAMES):
        raise DataError(
            f"there is no format {format!r} of events", hint=suggest(str(format), NAMES), code="option_invalid"
        )
    check_names(ts=ts, type=type, seq=seq, id=id)
    _check_columns(columns)
    for name, flag in (("skip_bad_lines", skip_bad_lines), ("multiline_cells", multiline_cells)):
        if not isinstance(flag, bool):
            raise DataError(f"{name}= is True or False, not {flag!r}", code="option_invalid")
    share = _number("max_skipped", max_skipped, minimum=0, maximum=1)
    if share != MAX_SKIPPED and not skip_bad_lines:
        raise skipped_error()
    used = None if columns is None else tuple(dict.fromkeys(columns))
    return Options(
        used,
        ts,
        type,
        seq,
        id,
        casts_of(cast, ts, unit),
        None if format is None else NAMES[format],
        skip_bad_lines,
        share,
        _delimiter(delimiter),
        _quote(quote),
        _decimal(decimal, delimiter),
        _nulls(nulls),
        multiline_cells,
        _size("max_line", max_line),
        _number("max_expansion", max_expansion, minimum=1, maximum=10**12),
        int(_number("max_columns", max_columns, minimum=1, maximum=10**9)),
        drop_duplicates=drop_duplicates,
    )


def _check_columns(columns: object) -> None:
    if columns is not None and not (
        isinstance(columns, Sequence)
        and not isinstance(columns, str)
        and all(isinstance(column, str) for column in columns)
    ):
        raise DataError(
            "columns= takes a list of names of columns", hint='columns=["ts", "type"]', code="option_invalid"
        )


def skipped_error() -> DataError:
    """Return the error for a share of lines that may be skipped, where none are."""
    return DataError(
        "max_skipped= is the share of bad lines that may be skipped",
        hint="give skip_bad_lines=True too",
        code="option_invalid",
    )


def too_long(name: str, line: int, options: Options) -> DataError:
    """Return the error for a line that is longer than the options allow."""
    shown = f"{options.max_line >> 20} MB" if options.max_line >= 1 << 20 else f"{options.max_line:,} bytes"
    return DataError(
        f"`{name}`, line {line} is longer than {shown}",
        hint="is a line end or a quotation mark missing? max_line= allows longer lines",
        code="data_value",
    )


def _number(name: str, number: object, *, minimum: int, maximum: int) -> float:
    """Return a number of an option. Raises :class:`DataError` for one that is out of bounds, or none."""
    if isinstance(number, bool) or not isinstance(number, Real) or not minimum <= float(number) <= maximum:
        raise DataError(f"{name}={number!r} is no number from {minimum} to {maximum:,}", code="option_invalid")
    return float(number)


def _size(name: str, size: object) -> int:
    try:
        return size_in_bytes(size, name)
    except QueryError as wrong:
        raise DataError(wrong.message, hint=wrong.hint, code="option_invalid") from None


def _delimiter(delimiter: object) -> str | None:
    """Return the delimiter; ``"tab"`` and a backslash with a ``t`` are a tabulator."""
    if delimiter is None:
        return None
    sign = {"tab": "\t", "\\t": "\t"}.get(delimiter, delimiter) if isinstance(delimiter, str) else None
    if sign is None or len(sign) != 1 or not sign.isascii() or sign.isalnum() or sign in '"\r\n-+.\0':
        hint = 'a sign such as ";" or "|", or "tab"'
        raise DataError(f"delimiter={delimiter!r} cannot stand between cells", hint=hint, code="option_invalid")
    return sign


def _quote(quote: object) -> bool:
    if quote is not None and (not isinstance(quote, str) or quote not in ('"', "none")):
        raise DataError(
            f"quote={quote!r} is no quotation mark", hint="quote='\"', or quote=None", code="option_invalid"
        )
    return quote == '"'


def _decimal(decimal: object, delimiter: str | None) -> str:
    if not isinstance(decimal, str) or decimal not in (".", ","):
        raise DataError(f"decimal={decimal!r} is no decimal sign", hint='"." or ","', code="option_invalid")
    if decimal == "," and delimiter == ",":
        raise DataError(
            "a comma cannot stand between cells and before decimals", hint='delimiter=";"', code="option_invalid"
        )
    return str(decimal)


def _nulls(nulls: object) -> tuple[str, ...]:
    if not isinstance(nulls, Sequence) or isinstance(nulls, str) or not all(isinstance(text, str) for text in nulls):
        raise DataError("nulls= takes a list of texts", hint='nulls=["NA"]', code="option_invalid")
    return tuple(dict.fromkeys(nulls))


def _rounded_up(share: float) -> float:
    """Return a share with two digits that is not less."""
    step = 10 ** (math.floor(math.log10(share)) - 1)
    return min(float(f"{math.ceil(share / step) * step:.2g}"), 1.0)


@dataclass
class BadLines:
    """The lines that could not be read: their number, and the place and error of the first one. ``values`` counts those
    that hold a value that is not of its type, by the message.

    >>> bad = BadLines()
    >>> bad.add("`a.csv`, row 3 has 1 cell, the header 2")
    >>> bad.add("`a.csv`, row 5: `n` is no int: 'x'", 7, {"`n` is no int": 7})
    >>> print(bad)
    8 bad lines were skipped; the first: `a.csv`, row 3 has 1 cell, the header 2; in 7 of them `n` is no int
    """

    count: int = 0
    first: str = ""
    values: Counter[str] = field(default_factory=Counter)

    def add(self, where: str, n_lines: int = 1, values: Mapping[str, int] | None = None) -> None:
        """Count ``n_lines`` bad lines, the first of them at ``where``."""
        if not self.count:
            self.first = where
        self.count += n_lines
        self.values.update(values or {})

    def check_share(self, rows: int, options: Options) -> None:
        """Raise :class:`DataError` if more than the share of lines that may be skipped cannot be read; ``rows`` can."""
        lines = rows + self.count
        if self.count > Fraction(str(options.max_skipped)) * lines:
            raise DataError(
                f"{self.count:,} of {lines:,} lines cannot be read, and a share of {options.max_skipped:.10g} may be"
                f" skipped; the first: {self.first}",
                hint=f"mend them, or say how many there may be: max_skipped={_rounded_up(self.count / lines)}",
                code="data_value",
            )

    def __str__(self) -> str:
        lines = "1 bad line was" if self.count == 1 else f"{self.count:,} bad lines were"
        value_texts = [
            f"; in {n_lines:,} of them {what}" for what, n_lines in self.values.most_common(2) if self.count > 1
        ]
        return printable(f"{lines} skipped; the first: {self.first}{''.join(value_texts)}")
