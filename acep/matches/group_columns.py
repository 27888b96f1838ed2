"""Hold groups of matches (match points or bundles, in ticks) as columns; single records are made only on access."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NamedTuple, overload

import numpy as np

from acep.events.batch import Column
from acep.matches.found_columns import concatenate_columns, unscale_error, values_at
from acep.matches.rows_by_key import Ints, order_by_words, words_of_keys
from acep.pattern.expressions import Value
from acep.plan.schema import Kind

__all__ = ["Group", "Groups", "concatenate_groups", "merge_groups", "object_keys", "objects"]

BLOCK = 4096
NUMBERS = ("first", "last", "matches", "error")  # columns with a number for each group


class Group(NamedTuple):
    """A group of matches of one partition: its ``key``, the ``first`` and ``last`` match point (ticks), the number
    of ``matches``, and the least error among them (``best``)."""

    key: tuple[Value, ...]
    first: int
    last: int
    matches: int
    best: int | Fraction


@dataclass(frozen=True, eq=False)
class Groups(Sequence[Group]):
    """n groups, as a sequence of :class:`Group`.

    ``keys``: a column of n for each partition attribute. ``first``, ``last``: (n,) int64 ticks. ``matches``: (n,)
    int64, or objects (Python integers) if one is larger. ``error``: (n,) int64, ``scale`` times the user's error; or
    objects with a ``scale`` of 1, for groups of records.

    >>> Groups.from_records([Group((), 5, 7, 2, Fraction(1, 2))])[0]
    Group(key=(), first=5, last=7, matches=2, best=Fraction(1, 2))
    """

    keys: tuple[Column, ...]
    first: Ints
    last: Ints
    matches: Any
    error: Any
    scale: int

    @classmethod
    def from_records(cls, groups: Iterable[Group]) -> Groups:
        """Return records as columns."""
        groups = [*groups]
        first, last = (np.array([group[place] for group in groups], np.int64) for place in (1, 2))
        matches, best = (objects([group[place] for group in groups]) for place in (3, 4))
        return cls(object_keys([group.key for group in groups]), first, last, matches, best, 1)

    def __len__(self) -> int:
        return len(self.first)

    @overload
    def __getitem__(self, index: int) -> Group: ...
    @overload
    def __getitem__(self, index: slice) -> Groups: ...
    def __getitem__(self, index: int | slice) -> Group | Groups:
        if isinstance(index, slice):
            return self.take(index)
        (group,) = self.take(np.array([range(len(self))[operator.index(index)]]))
        return group

    def __iter__(self) -> Iterator[Group]:
        for begin in range(0, len(self), BLOCK):
            block = self.take(slice(begin, begin + BLOCK))
            keys = zip(*block.key_lists(), strict=True) if self.keys else [()] * len(block)
            numbers = (column.tolist() for column in (block.first, block.last, block.matches))
            yield from map(Group, keys, *numbers, block.errors())

    def take(self, rows: slice | Ints) -> Groups:
        """Return some groups."""
        keys = tuple(key.take(rows) for key in self.keys)
        return Groups(keys, self.first[rows], self.last[rows], self.matches[rows], self.error[rows], self.scale)

    def key_lists(self) -> list[list[Value]]:
        """Return the values of each partition attribute."""
        return [values_at(key, slice(None)) for key in self.keys]

    def errors(self) -> list[int | Fraction]:
        """Return the least error of each group in the user's unit."""
        errors = self.error.tolist()
        return errors if self.scale == 1 else [unscale_error(error, self.scale) for error in errors]

    @property
    def has_objects(self) -> bool:
        """Return whether keys or errors are Python values, as those of records are."""
        return any(column.dtype == object for column in (self.error, *(key.values for key in self.keys)))


def object_keys(keys: Sequence[tuple[Value, ...]]) -> tuple[Column, ...]:
    """Return keys of records as columns that hold their values as they are."""
    return tuple(Column(Kind.NULL, objects(values)) for values in zip(*keys, strict=True))


def objects(values: Sequence[Any]) -> Any:
    """Return Python values as an array of objects."""
    return np.array(values, object)


def concatenate_groups(parts: Sequence[Groups]) -> Groups:
    """Return groups of one plan one after another."""
    parts = [part for part in parts if len(part)] or [*parts[:1]]
    if len(parts) == 1:
        return parts[0]
    first = parts[0]
    forms = {(part.scale, tuple((key.kind, key.values.dtype) for key in part.keys)) for part in parts}
    if len(forms) > 1:
        return Groups.from_records(group for part in parts for group in part)
    keys = tuple(concatenate_columns(columns) for columns in zip(*(part.keys for part in parts), strict=True))
    numbers: dict[str, Any] = {name: np.concatenate([getattr(part, name) for part in parts]) for name in NUMBERS}
    return Groups(keys, **numbers, scale=first.scale)


def merge_groups(groups: Groups, *, apart: bool = False) -> Groups:
    """Unite groups with equal key and equal ``first``, and return them in the order of ``first``, those with an equal
    one in the order of their first rows. ``apart``: those of different errors stay apart."""
    words = _words(groups, apart)
    begins = _begins([groups.first, *words])
    if not begins.all():  # as matches that end with one event stand beside each other
        starts = np.flatnonzero(begins)
        groups, words = _unite(groups, slice(None), starts), [column[starts] for column in words]
    if not (groups.first[1:] < groups.first[:-1]).any():
        return _unite_ties(groups, words)
    by_time = np.argsort(groups.first, kind="stable")
    words = [column[by_time] for column in words]
    order, edges = order_by_words(words, len(groups))
    begins = _begins([groups.first[by_time[order]]])
    begins[edges[:-1]] = True
    starts = np.flatnonzero(begins)
    places = np.full(len(groups), -1)  # of the united groups, by their first rows in the order of time
    places[order[starts]] = np.arange(len(starts))
    return _unite(groups, by_time[order], starts).take(places[places >= 0])


def _unite_ties(groups: Groups, words: Sequence[Ints]) -> Groups:
    """Unite groups whose ``first`` does not fall: only those with one that another has may have to be united."""
    rises = groups.first[1:] > groups.first[:-1]
    if rises.all():
        return groups
    is_tied = np.zeros(len(groups), bool)
    is_tied[1:] = ~rises
    is_tied[:-1] |= ~rises
    rows = np.flatnonzero(is_tied)
    times = np.append(0, np.cumsum(rises))[rows]  # numbered
    order, edges = order_by_words([times, *(column[rows] for column in words)], len(rows))
    starts = edges[:-1]
    if len(starts) == len(rows):
        return groups
    rows = rows[order]
    united = _unite(groups, rows, starts)
    stays = ~is_tied
    stays[rows[starts]] = True
    columns: dict[str, Any] = {}
    for name in ("last", "matches", "error"):
        old_values, new_values = getattr(groups, name), getattr(united, name)
        columns[name] = column = old_values.astype(new_values.dtype)  # a copy
        column[rows[starts]] = new_values
    return replace(groups, **columns).take(np.flatnonzero(stays))


def _words(groups: Groups, apart: bool) -> list[Ints]:
    return words_of_keys([*groups.keys, *([Column(Kind.INT, groups.error)] if apart else [])])


def _begins(columns: Sequence[Ints]) -> Any:
    """Return for each row whether it differs from the one before it."""
    begins = np.ones(len(columns[0]), bool)
    begins[1:] = False
    for column in columns:
        begins[1:] |= column[1:] != column[:-1]
    return begins


def _unite(groups: Groups, order: slice | Ints, starts: Ints) -> Groups:
    """Unite the groups of each stretch of an order, which begin at ``starts``."""
    matches = groups.matches[order]
    if matches.dtype != object and int(matches.max()) > 2**62 // len(matches):
        matches = matches.astype(object)
    rows = starts if isinstance(order, slice) else order[starts]
    is_one_error = bool((groups.error == groups.error[0]).all())  # which is quick to see, and usual
    return Groups(
        tuple(key.take(rows) for key in groups.keys),
        groups.first[rows],
        np.maximum.reduceat(groups.last[order], starts),
        np.add.reduceat(matches, starts),
        groups.error[rows] if is_one_error else np.minimum.reduceat(groups.error[order], starts),
        groups.scale,
    )
