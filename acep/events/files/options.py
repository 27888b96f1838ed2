"""Define the options for reading files: the columns that are used, casts, the format, and skipping of bad lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from acep.errors import DataError, printable, suggest
from acep.events.fields import check_names
from acep.events.files.casts import Cast, cast_of
from acep.events.files.formats import NAMES

__all__ = ["BadLines", "Options", "options_of"]


@dataclass(frozen=True)
class Options:
    """Options for reading events. ``columns`` are those that are used (``None``: all). ``ts``, ``type``, ``seq`` and
    ``id`` are names of columns. ``casts`` are by column; the first pass changes a cast to microseconds to one to
    nanoseconds if these are needed. ``format`` is for files whose names have no known suffix (``None``: no format).
    With ``skip_bad_lines`` lines that cannot be read are counted and skipped. ``casts_are_there``: each column that is
    cast must be in some file. ``drop_duplicates``: rows whose ids came before are left out, else they are refused."""

    columns: tuple[str, ...] | None = None
    ts: str = "ts"
    type: str | None = "type"
    seq: str | None = None
    id: str | None = None
    casts: dict[str, Cast] = field(default_factory=dict)
    format: str | None = None
    skip_bad_lines: bool = False
    casts_are_there: bool = True
    drop_duplicates: bool = False

    def wanted(self, names: Sequence[str], file: str = "") -> list[str]:
        """Return the columns of a file to read. If a column that is used is missing, return all, so that the error can
        be explained. ``a.b`` may be a field of a column ``a``.

        Raises :class:`DataError` if the file has two such columns of one name.
        """
        there, found = set(names), dict[str, None]()
        for name in names if self.columns is None else self.columns:
            outer = name.partition(".")[0]
            if name in there or outer in there:
                found.setdefault(name if name in there else outer)
            elif name not in self.casts and not (name == self.type == "type"):
                found = dict.fromkeys(names)
                break
        if twice := [name for name in found if names.count(name) > 1]:
            raise DataError(
                f"two columns of `{file}` are called `{twice[0]}`", hint="rename one of them", code="data_column"
            )
        return list(found)


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
) -> Options:
    """Check a user's options; ``unit`` is the unit of numbers in ``ts`` if that is cast to a timestamp.

    Raises :class:`DataError` for an unknown type or format, or an argument of the wrong type.

    >>> options_of(cast={"price": "decimal(10,2)"}).casts["price"].type
    Decimal128Type(decimal128(10, 2))
    """
    if format is not None and (not isinstance(format, str) or format not in NAMES):
        raise DataError(
            f"there is no format {format!r} of events", hint=suggest(str(format), NAMES), code="option_invalid"
        )
    check_names(ts=ts, type=type, seq=seq, id=id)
    if columns is not None and not (
        isinstance(columns, Sequence) and not isinstance(columns, str) and all(isinstance(one, str) for one in columns)
    ):
        raise DataError(
            "columns= takes a list of names of columns", hint='columns=["ts", "type"]', code="option_invalid"
        )
    if cast is not None and not isinstance(cast, Mapping):
        raise DataError(
            f"cast= takes a dict of columns and types, not {cast.__class__.__name__}", code="option_invalid"
        )
    if not isinstance(skip_bad_lines, bool):
        raise DataError(f"skip_bad_lines= is True or False, not {skip_bad_lines!r}", code="option_invalid")
    casts = {name: cast_of(name, text, unit if name == ts else None) for name, text in (cast or {}).items()}
    used = None if columns is None else tuple(dict.fromkeys(columns))
    form = None if format is None else NAMES[format]
    return Options(used, ts, type, seq, id, casts, form, skip_bad_lines, drop_duplicates=drop_duplicates)


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

    def add(self, where: str, many: int = 1, values: Mapping[str, int] | None = None) -> None:
        """Count ``many`` bad lines, the first of them at ``where``."""
        if not self.count:
            self.first = where
        self.count += many
        self.values.update(values or {})

    def __str__(self) -> str:
        lines = "1 bad line was" if self.count == 1 else f"{self.count:,} bad lines were"
        told = [f"; in {many:,} of them {what}" for what, many in self.values.most_common(2) if self.count > 1]
        return printable(f"{lines} skipped; the first: {self.first}{''.join(told)}")
