"""Look at a plan and the events of its stream together, as arrays."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from acep.events.batch import Batch, Column
from acep.events.hashes import hashes_of_columns
from acep.explain.recorder import cheapest_completions
from acep.linting.tried_matches import TriedMatches, match_number, tried_matches
from acep.pattern.expressions import Span
from acep.pattern.list_parts import text_name
from acep.pattern.times import duration_text, rounded_duration_text
from acep.pattern.tree import Component, Negation
from acep.pattern.walk import components
from acep.plan.compile import Plan, compile_query
from acep.plan.lint.finding import Declared
from acep.plan.schema import Kind

__all__ = ["Bools", "LintView"]

Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class LintView:
    """A plan over the events themselves, its events as a ``table`` in the order given and a ``batch`` in stream order,
    and the places of words in the query's text. ``complete``: whether the table has all columns of the events."""

    plan: Plan
    table: pa.Table
    batch: Batch
    places: dict[str, Declared]
    complete: bool = True

    def __len__(self) -> int:
        return len(self.batch)

    def place(self, name: str) -> Span | None:
        """Return the first place of a variable or type in the pattern."""
        return self.places[name].span if name in self.places else None

    @cached_property
    def parts(self) -> tuple[Component | Negation, ...]:
        """Return the components and negations of the pattern."""
        return components(self.plan.query.pattern)

    @cached_property
    def types(self) -> dict[str, int]:
        """Return the types that occur, with the numbers of their events."""
        column = self.batch.types
        if column is None:
            return {}
        codes = column.values if column.valid is None else column.values[column.valid != 0]
        numbers = np.bincount(codes, minlength=len(column.texts or ()))
        return {text: int(number) for text, number in zip(column.texts or (), numbers, strict=False) if number}

    def of_types(self, names: tuple[str, ...]) -> Bools:
        """Return which events have one of some types (none: any type), bool[n]."""
        column = self.batch.types
        if not names or column is None:
            return np.ones(len(self), bool)
        has_name = np.isin(np.array([*(column.texts or ()), ""], object), [*names])
        is_matching: Bools = has_name[column.values] if len(column.texts or ()) else np.zeros(len(self), bool)
        return is_matching if column.valid is None else is_matching & (column.valid != 0)

    def of_variable(self, var: str) -> Bools:
        """Return which events have a type of a variable."""
        types = [part.types for part in self.parts if part.var == var]
        return self.of_types(types[0] if types else ())

    def exact_length(self, ticks: int) -> str:
        """Write a length of time exactly."""
        tick = self.plan.schema.tick_ns
        return f"{ticks:,} ticks" if tick is None else duration_text(ticks * tick)

    def rounded_length(self, ticks: int) -> str:
        """Write a length of time that was measured: three digits say enough."""
        tick = self.plan.schema.tick_ns
        return f"{ticks:,} ticks" if tick is None else rounded_duration_text(ticks * tick)

    @cached_property
    def bindable(self) -> Bools:
        """Return which events have a type of some component that is not negated."""
        is_bindable = np.zeros(len(self), bool)
        components = [part for part in self.parts if isinstance(part, Component)]
        for component in components:
            is_bindable |= self.of_types(component.types)
        return is_bindable if components else np.ones(len(self), bool)

    def null(self, name: str) -> Bools:
        """Return which values of a column are null."""
        column = self.column(name)
        return np.zeros(len(self), bool) if column.valid is None else column.valid == 0

    def column(self, name: str) -> Column:
        """Return a column that the plan reads, by its name or that of an attribute."""
        name = self.plan.schema.column_name(name)
        if name == self.plan.schema.ts:
            return Column(Kind.INT, self.batch.ts)
        if name == self.plan.schema.type and self.batch.types is not None:
            return self.batch.types
        columns = self.batch.columns
        return columns[name] if name in columns else columns[text_name(name)]  # of a list, whose text is read

    @cached_property
    def partitions(self) -> Ints:
        """Return the number of the partition of each event, -1 where a partition attribute is null; int64[n]."""
        return self.numbers(self.plan.keys)

    def numbers(self, keys: tuple[str, ...]) -> Ints:
        """Return a number for the values that each event has in some columns, -1 where one is null; int64[n]."""
        if not keys or not len(self):
            return np.zeros(len(self), np.int64)
        hashes = hashes_of_columns([self.column(name) for name in keys], len(self))
        _, numbers = np.unique(hashes, return_inverse=True)
        numbers = numbers.ravel().astype(np.int64)
        for name in keys:
            numbers[self.null(name)] = -1
        return numbers

    @cached_property
    def tried(self) -> TriedMatches:
        """Return some first matches."""
        return tried_matches(self.without_ids, self.batch)

    @cached_property
    def n_matches(self) -> int | None:
        """Return the number of matches; ``None`` where counting takes too long."""
        return match_number(self.without_ids, self.batch)

    @cached_property
    def without_ids(self) -> Plan:
        """Return the plan for the batch, which has no ids: those that come twice are a finding."""
        return compile_query(self.plan.query, replace(self.plan.schema, id=None))

    @cached_property
    def shortest(self) -> int:
        """Return the least number of events of a match."""
        return min((count for _, count in cheapest_completions(self.plan)[0]), default=0)

    def gaps(self, rows: Bools) -> Ints:
        """Return the ticks between events of the same partition that follow each other among ``rows``, int64."""
        indices = np.flatnonzero(rows & (self.partitions >= 0))
        order = np.argsort(self.partitions[indices], kind="stable")
        times, numbers = self.batch.ts[indices][order], self.partitions[indices][order]
        same_partition = numbers[1:] == numbers[:-1]
        gaps: Ints = (times[1:] - times[:-1])[same_partition]
        return gaps
