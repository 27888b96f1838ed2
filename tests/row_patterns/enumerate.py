"""The meaning of a MATCH_RECOGNIZE clause by enumeration, in the order of preference: slow, and by the letter.

From each row at which a match may start, all ways to bind the rows that follow to variables are tried, the preferred
one first; the first one that satisfies the conditions is the match. A condition is evaluated where its row is bound,
with the row counted as bound (RUNNING). An iteration of a loop that binds no row is the last one, unless the loop's
lower bound asks for more.

>>> from tests.row_patterns.expressions import Column, Comparison, Literal
>>> from tests.row_patterns.tree import Clause, Definition, Measure, Quantified, Variable
>>> is_small = Comparison("<", Column("A", "x"), Literal(3))
>>> clause = Clause(Quantified(Variable("A"), 1, None), (Definition("A", is_small),), (Measure(Column("A", "x"), "m"),))
>>> recognize(clause, [{"x": 1}, {"x": 2}, {"x": 3}, {"x": 0}]).rows
[(2,), (0,)]
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import permutations

from tests.row_patterns import tree
from tests.row_patterns.evaluate import Row, View, evaluate
from tests.row_patterns.expressions import Value

__all__ = ["Answer", "Match", "Partition", "RowPatternError", "TooManyStepsError", "recognize"]

MAX_STEPS = 20_000
OutputRow = tuple[Value, ...]


class RowPatternError(Exception):
    """An error of the run: ``kind`` is "unbound" (a variable to skip to has no row) or "first row" (it leads there).

    Where partitions end in different errors, ``kind`` has both, with "or" between them: any partition may come first.
    """

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.kind = kind


class TooManyStepsError(Exception):
    """The enumeration takes too long, so the case is of no use."""


@dataclass(frozen=True)
class Binding:
    """A row that is bound to a variable."""

    variable: str
    is_excluded: bool


Bindings = tuple[Binding, ...]


@dataclass(frozen=True)
class Match:
    """A match: its first row in the partition, its number, and the bindings of its rows."""

    first: int
    number: int
    bindings: Bindings

    @property
    def labels(self) -> tuple[str, ...]:
        """The variables of the rows."""
        return tuple(binding.variable for binding in self.bindings)


@dataclass
class Partition:
    """A partition: its rows in order, its matches, and its rows of the output."""

    key: OutputRow
    rows: list[Row]
    matches: list[Match] = field(default_factory=list)
    output: list[OutputRow] = field(default_factory=list)


@dataclass(frozen=True)
class Answer:
    """The output: names of columns, and partitions in the order in which their keys first occur in the input."""

    names: tuple[str, ...]
    partitions: list[Partition]

    @property
    def rows(self) -> list[OutputRow]:
        """The rows of all partitions."""
        return [row for partition in self.partitions for row in partition.output]


def recognize(
    clause: tree.Clause, rows: Sequence[Row], columns: Sequence[str] | None = None, max_steps: int = MAX_STEPS
) -> Answer:
    """Return the output of a clause over the rows of a table; ``columns`` are its names, if it may have no rows."""
    search = Search(clause, max_steps)
    names = output_names(clause, tuple(rows[0] if columns is None else columns))
    partitions = partitions_of(clause, rows)
    kinds = set()
    for partition in partitions:
        try:
            recognize_partition(search, partition, names)
        except RowPatternError as error:
            kinds.add(error.kind)
    if kinds:
        raise RowPatternError(" or ".join(sorted(kinds)))
    return Answer(names, partitions)


def output_names(clause: tree.Clause, columns: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names of the output's columns, for those of the input."""
    measures = [measure.name for measure in clause.measures]
    if clause.rows == tree.ONE_ROW:
        return (*clause.partition, *measures)
    keys = dict.fromkeys((*clause.partition, *(key.name for key in clause.order)))
    return (*keys, *measures, *(name for name in columns if name not in keys))


def partitions_of(clause: tree.Clause, rows: Sequence[Row]) -> list[Partition]:
    """Return the partitions of a table, their rows in order; rows that are tied stay as they come."""
    by_key: dict[OutputRow, Partition] = {}
    for row in rows:
        key = tuple(row[name] for name in clause.partition)
        by_key.setdefault(key, Partition(key, [])).rows.append(row)
    for partition in by_key.values():
        for order_key in reversed(clause.order):
            partition.rows = sort_rows(partition.rows, order_key)
    return list(by_key.values())


def sort_rows(rows: list[Row], key: tree.OrderKey) -> list[Row]:
    """Return rows in the order of one key."""
    missing = [row for row in rows if row[key.name] is None]
    values = [row for row in rows if row[key.name] is not None]
    values.sort(key=lambda row: row[key.name], reverse=key.is_descending)  # type: ignore[arg-type,return-value]
    return missing + values if key.nulls_first else values + missing


class Search:
    """The search of a clause, which ends after so many steps."""

    def __init__(self, clause: tree.Clause, max_steps: int) -> None:
        self.clause = clause
        self.conditions = {definition.variable: definition.condition for definition in clause.definitions}
        self.max_steps = max_steps
        self.n_steps = 0

    def find_match(self, rows: list[Row], first: int, number: int) -> Match | None:
        """Return the preferred match that starts at a row."""
        for bindings in self.extend(self.clause.pattern, Match(first, number, ()), rows, False):
            return bindings
        return None

    def extend(self, pattern: tree.Pattern, match: Match, rows: list[Row], is_excluded: bool) -> Iterator[Match]:
        """Yield each way to go on by a pattern, the preferred one first."""
        self.n_steps += 1
        if self.n_steps > self.max_steps:
            raise TooManyStepsError
        match pattern:
            case tree.Empty():
                yield match
            case tree.Anchor(at_start):
                if match.first + len(match.bindings) == (0 if at_start else len(rows)):
                    yield match
            case tree.Variable(name):
                longer = Match(match.first, match.number, (*match.bindings, Binding(name, is_excluded)))
                if self.is_allowed(longer, rows):
                    yield longer
            case tree.Alternation(items):
                for item in items:
                    yield from self.extend(item, match, rows, is_excluded)
            case tree.Concatenation(items):
                yield from self.extend_all(items, match, rows, is_excluded)
            case tree.Permute(items):
                for order in permutations(items):
                    yield from self.extend_all(order, match, rows, is_excluded)
            case tree.Exclusion(item):
                yield from self.extend(item, match, rows, True)
            case tree.Quantified():
                yield from self.repeat(pattern, 0, match, rows, is_excluded)

    def extend_all(
        self, items: tuple[tree.Pattern, ...], match: Match, rows: list[Row], is_excluded: bool
    ) -> Iterator[Match]:
        """Yield each way to go on by several patterns, one after the other."""
        if not items:
            yield match
            return
        for longer in self.extend(items[0], match, rows, is_excluded):
            yield from self.extend_all(items[1:], longer, rows, is_excluded)

    def repeat(
        self, loop: tree.Quantified, n_done: int, match: Match, rows: list[Row], is_excluded: bool
    ) -> Iterator[Match]:
        """Yield each way to go on by what is left of a loop, after so many iterations."""
        may_stop = n_done >= loop.low
        if may_stop and loop.is_reluctant:
            yield match
        if loop.high is None or n_done < loop.high:
            for longer in self.extend(loop.item, match, rows, is_excluded):
                is_empty = len(longer.bindings) == len(match.bindings)
                if is_empty and n_done + 1 >= loop.low:
                    yield longer
                else:
                    yield from self.repeat(loop, n_done + 1, longer, rows, is_excluded)
        if may_stop and not loop.is_reluctant:
            yield match

    def is_allowed(self, match: Match, rows: list[Row]) -> bool:
        """Say whether the last row of what was bound so far may be bound as it is."""
        row = match.first + len(match.bindings) - 1
        if row >= len(rows):
            return False
        if self.clause.within is not None:
            name = self.clause.order[0].name
            if rows[row][name] - rows[match.first][name] > self.clause.within.width:  # type: ignore[operator]
                return False
        condition = self.conditions.get(match.labels[-1])
        return condition is None or evaluate(condition, self.view(match, rows, len(match.bindings))) is True

    def view(self, match: Match, rows: list[Row], n_running: int) -> View:
        """Return what an expression sees at the row that is the ``n_running``-th of the match."""
        return View(self.clause, rows, match.first, match.labels, n_running, match.number)


def recognize_partition(search: Search, partition: Partition, names: tuple[str, ...]) -> None:
    """Find the matches of a partition, and its rows of the output."""
    clause = search.clause
    start, n_matched = 0, 0
    while start < len(partition.rows):
        match = search.find_match(partition.rows, start, len(partition.matches) + 1)
        if match is None:
            if clause.rows == tree.UNMATCHED and start >= n_matched:
                values = partition.rows[start] | dict.fromkeys(measure.name for measure in clause.measures)  # type: ignore[operator]
                partition.output.append(tuple(values[name] for name in names))
            start += 1
            continue
        partition.matches.append(match)
        partition.output += output_of(search, partition.rows, match, names)
        n_matched = max(n_matched, start + len(match.bindings))
        start = next_start(clause, match)


def output_of(search: Search, rows: list[Row], match: Match, names: tuple[str, ...]) -> Iterator[OutputRow]:
    """Yield the rows of the output that a match gives."""
    n_rows = len(match.bindings)
    if search.clause.rows == tree.ONE_ROW:
        yield output_row(search, rows, match, n_rows, names)
    elif n_rows == 0:
        if search.clause.rows != tree.OMIT_EMPTY:
            yield output_row(search, rows, match, 0, names)
    else:
        for i, binding in enumerate(match.bindings):
            if not binding.is_excluded:
                yield output_row(search, rows, match, i + 1, names)


def output_row(search: Search, rows: list[Row], match: Match, n_running: int, names: tuple[str, ...]) -> OutputRow:
    """Return a row of the output: the columns of the match's ``n_running``-th row, and the measures there."""
    view = search.view(match, rows, n_running)
    values = dict(rows[match.first + max(n_running - 1, 0)])
    for measure in search.clause.measures:
        values[measure.name] = evaluate(measure.expression, view)
    return tuple(values[name] for name in names)


def next_start(clause: tree.Clause, match: Match) -> int:
    """Return the row at which the next match may start."""
    n_rows = len(match.bindings)
    if n_rows == 0 or clause.skip.mode == tree.TO_NEXT:
        return match.first + 1
    if clause.skip.mode == tree.PAST_LAST:
        return match.first + n_rows
    members = clause.members_of(clause.skip.variable) or frozenset()
    offsets = [i for i, label in enumerate(match.labels) if label in members]
    if not offsets:
        raise RowPatternError("unbound")
    offset = offsets[0] if clause.skip.mode == tree.TO_FIRST else offsets[-1]
    if offset == 0:
        raise RowPatternError("first row")
    return match.first + offset
