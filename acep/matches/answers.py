"""Hold counts, match points and match bundles as a user gets them, each with the report of its run.

The types are the same whether the run was exact or not. An incomplete result says so when it is printed, and so does a
sum of incomplete counts.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, Self, TypeVar, overload

from acep.display import fields_text
from acep.errors import DataError
from acep.matches.answer_columns import AnswerColumns, join_answers
from acep.matches.group_columns import Groups
from acep.matches.rendering import group_line, group_page, groups_page, groups_text
from acep.matches.report import Report
from acep.plan.schema import Schema

__all__ = ["Bundle", "Bundles", "Count", "Point", "Points"]

Number = Any  # int, float, Fraction


@dataclass(frozen=True, repr=False)
class Bundle:
    """A match bundle: match points of the partition ``key`` with gaps no longer than the window.

    ``start`` and ``end`` are the first and the last match point: the times at which its first and its last match end.
    The first match began before ``start``, unlike the ``start`` of a match, which is the time of its first event.
    ``matches`` is the number of matches (``None``: not counted), ``best`` the least error among them."""

    key: dict[str, Any]
    start: Any
    end: Any
    matches: int | None
    best: int | float
    _zoned: ClassVar[frozenset[str]] = frozenset()  # no field: an object has its own where a time is far

    def __repr__(self) -> str:
        return fields_text(self)

    def __str__(self) -> str:
        return group_line(self)

    def _repr_html_(self) -> str:
        return group_page(self)


@dataclass(frozen=True, repr=False)
class Point:
    """A match point: a time ``point`` at which matches of the partition ``key`` end; ``best`` is their least error.

    Of matches that may be taken back, ``change`` says how many more matches with the error ``best`` end there than
    before, or (negative) how many fewer; else it is ``None``. There is a match point where the changes given so far add
    up to more than 0, and its least error is the least ``best`` for which they do."""

    key: dict[str, Any]
    point: Any
    best: int | float
    change: int | None = None
    _zoned: ClassVar[frozenset[str]] = frozenset()  # no field: an object has its own where a time is far

    def __repr__(self) -> str:
        return fields_text(self, ("key", "point", "best") if self.change is None else None)

    def __str__(self) -> str:
        return group_line(self)

    def _repr_html_(self) -> str:
        return group_page(self)


def _plain(other: object) -> Any:
    return other.number if isinstance(other, Count) else other


def _comparison(compare: Callable[[Any, Any], Any]) -> Callable[[Any, Any], bool]:
    """Return the method of a count that compares its number with another count or number."""
    return lambda self, other: bool(compare(self.number, _plain(other)))


def _arithmetic(sign: str, compute: Callable[[Any, Any], Any]) -> tuple[Callable[[Any, Any], Any], ...]:
    """Return the two methods of a count, on the left and on the right of ``sign``, that compute a plain number."""

    def compute_left(self: Count, other: Number) -> Any:
        return compute(self._exact_number(sign), other._exact_number(sign) if isinstance(other, Count) else other)

    def compute_right(self: Count, other: Number) -> Any:
        return compute(other, self._exact_number(sign))

    return compute_left, compute_right


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Count:
    """A number of matches, with the ``report`` of the run that counted them.

    It equals the integer ``number`` and is ordered and hashed like it; ``int(count)`` is the plain number, which JSON
    needs. A sum of counts and integers is a count, exact if all its parts are. Other arithmetic gives a plain number
    if the count is exact.

    Raises :class:`DataError` for other arithmetic with an inexact count, since the result could not say so.

    >>> exact, part = Count(7), Count(1904, Report(shed=5, recall=None, interval=(0.18, 0.25)))
    >>> exact, exact == 7, exact / 2
    (7, True, 3.5)
    >>> part, part.exact, int(part)
    (Count(at least 1904; between 18 % and 25 % of the match points were found), False, 1904)
    >>> print(f"{sum([exact, part]):,}", sum([exact, part]).exact)
    at least 1,911 False
    """

    number: int
    report: Report = field(default_factory=Report)

    @property
    def exact(self) -> bool:
        """Whether all matches were counted."""
        return self.report.exact

    def __int__(self) -> int:
        return self.number

    __index__ = __int__

    def __float__(self) -> float:
        return float(self.number)

    def __bool__(self) -> bool:
        return self.number != 0

    def __hash__(self) -> int:
        return hash(self.number)

    def __eq__(self, other: object) -> bool:
        return bool(self.number == _plain(other))

    __lt__ = _comparison(operator.lt)
    __le__ = _comparison(operator.le)
    __gt__ = _comparison(operator.gt)
    __ge__ = _comparison(operator.ge)

    def __add__(self, other: Number) -> Any:
        if isinstance(other, Count):
            return Count(self.number + other.number, self.report + other.report)
        if isinstance(other, int):
            return Count(self.number + other, self.report)
        return self._exact_number("+") + other

    __radd__ = __add__
    __sub__, __rsub__ = _arithmetic("-", operator.sub)
    __mul__, __rmul__ = _arithmetic("*", operator.mul)
    __truediv__, __rtruediv__ = _arithmetic("/", operator.truediv)
    __floordiv__, __rfloordiv__ = _arithmetic("//", operator.floordiv)
    __mod__, __rmod__ = _arithmetic("%", operator.mod)
    __pow__, __rpow__ = _arithmetic("**", operator.pow)

    def __neg__(self) -> int:
        return -self._exact_number("-")

    def _exact_number(self, sign: str) -> int:
        if not self.exact:
            raise DataError(
                f"`{sign}` would lose that the count is not exact: {self}",
                hint="int(count) is the number that was found; count.report says what may be missing",
            )
        return self.number

    def __format__(self, form: str) -> str:
        text = format(self.number, form)
        if self.exact:
            return text
        return f"at least {text}" if self.report.at_least else f"{text} (not exact)"

    def __str__(self) -> str:
        return format(self)

    def __repr__(self) -> str:
        return str(self.number) if self.exact else f"Count({self}; {self.report.missing()})"


Answer = TypeVar("Answer")


class _Given(Sequence[Answer], Generic[Answer]):
    """A read-only list of results of a run, with its ``report``. Those of an engine are held as columns; the objects
    are made each time that they are read. Sums hold their parts until they are read."""

    of: ClassVar[str]
    answer_type: ClassVar[type]

    def __init__(self, given: Sequence[Answer] = (), report: Report | None = None) -> None:
        self._parts: list[Sequence[Answer]] = [given if isinstance(given, AnswerColumns) else list(given)]
        self.report = report or Report()

    @classmethod
    def of_groups(
        cls, groups: Groups, keys: tuple[str, ...], schema: Schema, report: Report, *, counts: bool = False
    ) -> Self:
        """Return groups of matches of a plan; ``counts``: with their numbers of matches, or by how much they change."""
        return cls(AnswerColumns(cls.answer_type, groups, keys, schema, counts), report)

    @property
    def _answers(self) -> Sequence[Answer]:
        if len(self._parts) > 1:
            self._parts = [join_answers(self._parts)]
        return self._parts[0]

    @property
    def exact(self) -> bool:
        """Whether the list is complete."""
        return self.report.exact

    def __len__(self) -> int:
        return sum(map(len, self._parts))

    def __iter__(self) -> Iterator[Answer]:
        return iter(self._answers)

    def __reversed__(self) -> Iterator[Answer]:
        return iter(self._answers[::-1])

    def index(self, value: Any, start: int = 0, stop: int = sys.maxsize) -> int:
        """Return the first place of a value; raise :class:`ValueError` if it is not there."""
        return list(self).index(value, start, stop)

    @overload
    def __getitem__(self, index: int) -> Answer: ...
    @overload
    def __getitem__(self, index: slice) -> Self: ...
    def __getitem__(self, index: int | slice) -> Answer | Self:
        return type(self)(self._answers[index], self.report) if isinstance(index, slice) else self._answers[index]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, type(self) | list):
            return NotImplemented
        return len(self) == len(other) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __add__(self, other: Sequence[Answer]) -> Self:
        if isinstance(other, type(self)):
            return self._sum([*self._parts, *other._parts], self.report + other.report)
        return self._sum([*self._parts, list(other)], self.report) if isinstance(other, list) else NotImplemented

    def __radd__(self, other: Sequence[Answer]) -> Self:
        return self._sum([list(other), *self._parts], self.report) if isinstance(other, list) else NotImplemented

    def _sum(self, parts: list[Sequence[Answer]], report: Report) -> Self:
        total = type(self)((), report)
        total._parts = parts
        return total

    def __repr__(self) -> str:
        return groups_text(self)  # type: ignore[arg-type]

    def _repr_html_(self) -> str:
        return groups_page(self)  # type: ignore[arg-type]


class Points(_Given[Point]):
    """Match points in order: a read-only list of :class:`Point` with the ``report`` of the run. It equals a plain list
    of the same points; a slice or a sum is again ``Points``.

    If it is not exact, points may be missing, and the ``best`` error of a point may be too high. Those of matches that
    may be taken back are changes (:attr:`Point.change`).

    >>> Points([Point({}, 5, 0)]) == [Point({}, 5, 0)]
    True
    >>> Points([Point({}, 5, 0)], Report(shed=1, recall=None, interval=(0.25, 0.75)))
    1 match point; not exact: between 25 % and 75 % of the match points were found
      match point 5  best=0
    """

    of = "match points"
    answer_type = Point


class Bundles(_Given[Bundle]):
    """Match bundles in the order of their first match point: a read-only list of :class:`Bundle` with the ``report`` of
    the run. It equals a plain list of the same bundles; a slice or a sum is again ``Bundles``.

    If it is not exact, bundles and matches in them may be missing, and one bundle may appear as several because the
    points between were not found.

    >>> Bundles([Bundle({}, 5, 7, 2, 0)])
    1 match bundle
      match points 5..7  2 matches  best=0
    """

    of = "match bundles"
    answer_type = Bundle
