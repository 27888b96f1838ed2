"""Search rows for the preferred matches of a row pattern, by the letter and slowly: the twin of the native engine.

A depth-first search in the order of preference over the states of the pattern (acep/plan/ordered/pattern_states.py).
The first way that reaches the end is the match. A place from which there was no way is not tried again with the same
past.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from acep.errors import DataError
from acep.functions.aggregates import AGGREGATES, distinct_values
from acep.plan.ordered.pattern_states import StateKind
from acep.plan.ordered.row_references import (
    LABEL,
    NUMBER,
    MatchNumber,
    MissingRows,
    Navigation,
    RowAggregate,
    RowReference,
)

__all__ = ["FoundMatch", "MappedColumn", "RowTest", "SearchedRows", "find_matches", "skip_error"]

Run: TypeAlias = Callable[[Sequence[Any]], Any]


@dataclass(frozen=True)
class RowTest:
    """A condition of a label that reads more than the row: ``run`` takes the values of ``references``."""

    references: tuple[RowReference, ...]
    run: Run


@dataclass(frozen=True)
class MappedColumn:
    """A column of mapped rows: ``run`` takes the values of ``names``, which are columns of rows, the label and the
    number of the match."""

    names: tuple[str, ...]
    run: Run


@dataclass(frozen=True)
class SearchedRows:
    """The rows in order, and what is asked of them.

    ``partitions``: the first row of each partition, and the end. ``local``: for each label whether each row passes the
    conditions that read it and its neighbours alone (``None``: all do). ``tests``: the other conditions of each label.
    ``columns``: the values of columns that ``tests`` read, row by row; ``mapped`` are those of mapped rows. ``names``:
    the variable of each label, and ``spellings`` how CLASSIFIER gives it. ``times`` and ``width``: the window.
    ``starts``: for each partition how many rows stand before the first start, and before the first row that is none,
    and how many matches came before (empty: all rows are starts). A match whose last row has the ``open_label`` ends
    its partition, and is not given.
    """

    states: tuple[tuple[int, int, int], ...]
    partitions: Sequence[int]
    local: Sequence[Sequence[int] | None]
    tests: Sequence[Sequence[RowTest]]
    columns: dict[str, Sequence[Any]]
    names: Sequence[str]
    spellings: Sequence[str]
    times: Sequence[int] | None = None
    width: int = 0
    skip: str = "PAST LAST ROW"
    skip_to: frozenset[str] | None = None
    starts: Sequence[tuple[int, int, int]] = ()
    open_label: int | None = None
    mapped: Mapping[str, MappedColumn] = field(default_factory=dict)


@dataclass(frozen=True)
class FoundMatch:
    """A match: its partition, its number there, its first row and the labels of its rows."""

    partition: int
    number: int
    first: int
    labels: tuple[int, ...]


def find_matches(searched: SearchedRows, ends: list[tuple[int, int]] | None = None) -> Iterator[FoundMatch]:
    """Yield the matches in the order in which they start. ``ends`` takes for each partition how many rows stand before
    the next start, and how many matches came before it.

    Raises :class:`DataError` where AFTER MATCH SKIP leads nowhere (:func:`skip_error`)."""
    for partition in range(len(searched.partitions) - 1):
        begin, end = searched.partitions[partition], searched.partitions[partition + 1]
        first, stop, number = searched.starts[partition] if searched.starts else (0, end - begin, 0)
        row = begin + first
        failures: set[Any] = set()
        while row < begin + stop:
            if searched.times is not None or _reads_number(searched):
                failures.clear()
            labels = _first_way(searched, row, begin, end, number + 1, failures)
            if labels is None:
                row += 1
                continue
            if labels and labels[-1] == searched.open_label:
                break
            number += 1
            yield FoundMatch(partition, number, row, labels)
            row = _next_row(searched, row, labels)
        if ends is not None:
            ends.append((min(row - begin, stop), number))


def _reads_number(searched: SearchedRows) -> bool:
    """Return whether a condition reads the number of the match."""
    references = [reference for tests in searched.tests for test in tests for reference in test.references]
    columns = {name for reference in references if isinstance(reference, RowAggregate) for name in _columns(reference)}
    columns |= {name for column in columns & searched.mapped.keys() for name in searched.mapped[column].names}
    return NUMBER in columns or any(isinstance(reference, MatchNumber) for reference in references)


def _columns(reference: RowAggregate) -> tuple[str, ...]:
    """Return the columns that an aggregate reads."""
    return () if reference.column is None else (reference.column, *reference.arguments)


def _next_row(searched: SearchedRows, first: int, labels: tuple[int, ...]) -> int:
    if not labels or searched.skip == "TO NEXT ROW":
        return first + 1
    if searched.skip == "PAST LAST ROW":
        return first + len(labels)
    assert searched.skip_to is not None
    places = [i for i, label in enumerate(labels) if searched.names[label] in searched.skip_to]
    if not places:
        raise skip_error("unbound", searched.skip)
    place = places[0] if searched.skip == "TO FIRST" else places[-1]
    if place == 0:
        raise skip_error("first row", searched.skip)
    return first + place


def skip_error(kind: str, skip: str) -> DataError:
    """Return the error for a match after which the search cannot go on: no row is mapped to the variable of SKIP TO
    (``unbound``), or it is the first row of the match (``first row``), so that the same match would come again."""
    if kind == "unbound":
        message = f"AFTER MATCH SKIP {skip}: a match has no row of that variable"
    else:
        message = f"AFTER MATCH SKIP {skip}: the row is the first of the match, which would be found again"
    return DataError(message, hint="AFTER MATCH SKIP TO NEXT ROW always goes on", code="data_value")


def _first_way(
    searched: SearchedRows, first: int, begin: int, end: int, number: int, failures: set[Any]
) -> tuple[int, ...] | None:
    """Return the labels of the preferred match that starts at a row, or ``None``."""
    states, labels = searched.states, list[int]()
    past = _Past(searched, first, begin, end, number, labels)
    # (state, how many rows are mapped), and ways that are left: those below must fail before one is tried.
    ways: list[tuple[int, int, Any]] = [(0, 0, None)]
    while ways:
        state, count, mark = ways.pop()
        if mark is not None:  # all ways from this place have failed
            failures.add(mark)
            continue
        del labels[count:]
        key = (state, first + count, past.key())
        if key in failures:
            continue
        ways.append((state, count, key))
        kind, following, other = states[state]
        row = first + count
        if kind == StateKind.ACCEPT:
            return tuple(labels)
        if kind == StateKind.SPLIT:
            ways += [(other, count, None), (following, count, None)]
        elif (
            kind == StateKind.JUMP
            or (kind == StateKind.START and row == begin)
            or (kind == StateKind.END and row == end)
        ):
            ways.append((following, count, None))
        elif kind == StateKind.ROW and row < end and past.takes(row, other):
            ways.append((following, count + 1, None))
    return None


@dataclass
class _Past:
    """The rows that are mapped so far, and what conditions read of them."""

    searched: SearchedRows
    first: int
    begin: int
    end: int
    number: int
    labels: list[int]

    def __post_init__(self) -> None:
        references = [r for tests in self.searched.tests for test in tests for r in test.references]
        self.references = [r for r in dict.fromkeys(references) if not isinstance(r, MatchNumber | MissingRows)]

    def takes(self, row: int, label: int) -> bool:
        """Map a row to a label if its conditions hold there; return whether they do."""
        searched = self.searched
        local = searched.local[label]
        if local is not None and not local[row]:
            return False
        if searched.times is not None and searched.times[row] - searched.times[self.first] > searched.width:
            return False
        self.labels.append(label)
        for test in searched.tests[label]:
            if test.run([self.value(reference) for reference in test.references]) is not True:
                self.labels.pop()
                return False
        return True

    def rows_of(self, variables: frozenset[str] | None) -> list[int]:
        names = self.searched.names
        return [self.first + i for i, label in enumerate(self.labels) if variables is None or names[label] in variables]

    def value(self, reference: RowReference) -> Any:
        """Return the value of a reference at the last mapped row."""
        if isinstance(reference, MatchNumber | MissingRows):  # no condition reads the second
            return self.number
        rows = self.rows_of(reference.variables)
        if isinstance(reference, RowAggregate):
            return self.aggregate(reference, rows)
        if len(rows) <= reference.offset:
            return None
        row = rows[reference.offset if reference.is_first else -1 - reference.offset] + reference.shift
        if reference.column == LABEL:
            place = row - self.first
            return self.searched.spellings[self.labels[place]] if 0 <= place < len(self.labels) else None
        return self.searched.columns[reference.column][row] if self.begin <= row < self.end else None

    def aggregate(self, reference: RowAggregate, rows: list[int]) -> Any:
        """Return the value of an aggregate over rows."""
        if reference.column is None:
            return len(rows)
        values, *keys = self.columns_of(reference, rows)
        if reference.is_distinct:
            values = distinct_values(values)
        of_rows = AGGREGATES[reference.function].of_rows
        assert of_rows is not None
        return of_rows(values, keys, reference.texts)

    def columns_of(self, reference: RowAggregate, rows: list[int]) -> list[list[Any]]:
        """Return the values at rows of the columns that an aggregate reads; without nulls if it is one column."""
        columns = [[self.value_at(name, row) for row in rows] for name in _columns(reference)]
        return columns if len(columns) != 1 else [[value for value in columns[0] if value is not None]]

    def value_at(self, column: str, row: int) -> Any:
        """Return the value of a column at a mapped row."""
        if column == LABEL:
            return self.searched.spellings[self.labels[row - self.first]]
        if column == NUMBER:
            return self.number
        mapped = self.searched.mapped.get(column)
        if mapped is None:
            return self.searched.columns[column][row]
        return mapped.run([self.value_at(name, row) for name in mapped.names])

    def key(self) -> tuple[Any, ...]:
        """Return what decides the values of references from here on."""
        parts: list[Any] = []
        for reference in self.references:
            assert not isinstance(reference, MatchNumber | MissingRows)
            rows = self.rows_of(reference.variables)
            if isinstance(reference, Navigation):
                size = reference.offset + 1
                near = rows[:size] if reference.is_first else rows[-size:]
                labels = tuple(self.labels) if reference.column == LABEL else ()
                parts.append((tuple(near), labels))
            else:
                columns = self.columns_of(reference, rows)
                parts.append(tuple(map(tuple, columns)) if columns else len(rows))
        return tuple(parts)
