"""Hold match points and match bundles as columns; single ones are made only on access."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Generic, TypeVar, overload

from acep.events.tables import keys_to_input, ticks_to_input
from acep.matches.group_columns import BLOCK, Groups, concatenate_groups
from acep.matches.match import error_number
from acep.matches.zoned_times import has_far_time, zoned_names
from acep.plan.schema import Schema

__all__ = ["AnswerColumns", "columns_of", "join_answers", "values_of"]

NUMBERS = ("matches", "change")

Answer = TypeVar("Answer")


@dataclass(frozen=True, eq=False)
class AnswerColumns(Sequence[Answer], Generic[Answer]):
    """``groups`` as a sequence of match points or bundles, objects of ``answer_type``, with keys and times as in the
    input; ``counts``: and with their numbers of matches, which of match points are their changes.

    >>> from acep.matches.answers import Point
    >>> from acep.matches.group_columns import Group
    >>> AnswerColumns(Point, Groups.from_records([Group((), 5, 7, 2, 0)]), (), Schema(()), counts=False)[0]
    Point(key={}, point=7, best=0)
    """

    answer_type: type[Answer]
    groups: Groups
    keys: tuple[str, ...]
    schema: Schema
    counts: bool

    def __len__(self) -> int:
        return len(self.groups)

    @overload
    def __getitem__(self, index: int) -> Answer: ...
    @overload
    def __getitem__(self, index: slice) -> AnswerColumns[Answer]: ...
    def __getitem__(self, index: int | slice) -> Answer | AnswerColumns[Answer]:
        if isinstance(index, slice):
            return replace(self, groups=self.groups[index])
        row = range(len(self))[operator.index(index)]
        (answer,) = self._answers(self.groups[row : row + 1])
        return answer

    def __iter__(self) -> Iterator[Answer]:
        for begin in range(0, len(self), BLOCK):
            yield from self._answers(self.groups[begin : begin + BLOCK])

    @cached_property
    def fields(self) -> list[str]:
        """Return the names of the fields of the match points or bundles."""
        return [field.name for field in fields(self.answer_type)]  # type: ignore[arg-type]

    @property
    def heads(self) -> list[str]:
        """Return the names of the fields after the key that have values."""
        return [field for field in self.fields if field != "key" and (self.counts or field not in NUMBERS)]

    @cached_property
    def _zoned(self) -> frozenset[str]:
        return zoned_names(self.schema, self.keys, {})

    def _answers(self, groups: Groups) -> list[Answer]:
        columns = [self._values(field, groups) for field in self.fields]
        answers = list(map(self.answer_type, *columns))
        if self._zoned and any(map(has_far_time, (*columns, *self._key_columns(groups).values()))):
            for answer in answers:
                object.__setattr__(answer, "_zoned", self._zoned)
        return answers

    def values(self, field: str) -> list[Any]:
        """Return the values of a field of all match points or bundles."""
        return self._values(field, self.groups)

    def _values(self, field: str, groups: Groups) -> list[Any]:
        if field == "key":
            rows = zip(*self._key_columns(groups).values(), strict=True) if self.keys else [()] * len(groups)
            return [dict(zip(self.keys, row, strict=True)) for row in rows]
        if field == "best":
            return [error_number(error) for error in groups.errors()]
        if field in NUMBERS:
            return groups.matches.tolist() if self.counts else [None] * len(groups)
        return ticks_to_input((groups.first if field == "start" else groups.last).tolist(), self.schema)

    def _key_columns(self, groups: Groups) -> dict[str, list[Any]]:
        columns = groups.key_lists() if len(groups) else [[] for _ in self.keys]
        return keys_to_input(columns, self.keys, self.schema)


def join_answers(parts: Sequence[Sequence[Answer]]) -> Sequence[Answer]:
    """Return match points or bundles one after another, as columns if all are columns of one query."""
    parts = [part for part in parts if len(part)]
    columns = [part for part in parts if isinstance(part, AnswerColumns)]
    if not columns or len(columns) < len(parts) or len({(part.keys, part.schema, part.counts) for part in columns}) > 1:
        return [answer for part in parts for answer in part]
    return replace(columns[0], groups=concatenate_groups([part.groups for part in columns]))


def values_of(answers: Sequence[Any], field: str) -> list[Any]:
    """Return the values of a field of all match points or bundles."""
    columns = columns_of(answers)
    return [getattr(answer, field) for answer in answers] if columns is None else columns.values(field)


def columns_of(answers: Sequence[Any]) -> AnswerColumns[Any] | None:
    """Return the columns that hold match points or bundles; ``None``: they are objects."""
    answers = getattr(answers, "_answers", answers)  # of Points and Bundles
    return answers if isinstance(answers, AnswerColumns) else None
