"""Compile a row pattern to states: a Thompson automaton whose choices are ordered by preference.

An iteration that maps no row may stand where the lower bound still needs it. Behind that it ends the loop, and the
match goes on behind the loop (ISO/IEC 19075-5, section 7.2.8). So each part of a loop is compiled twice: for an
iteration that has mapped no row yet, which leaves the loop at its end, and for one that has, which begins the next
iteration. No way without rows leads in a circle then.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from itertools import permutations
from math import factorial

from acep.errors import QueryError
from acep.pattern.sql.clause_tree import (
    Alternation,
    Anchor,
    Concatenation,
    Empty,
    Exclusion,
    Permutation,
    Quantified,
    RowPattern,
    RowVariable,
    variables_of,
)

__all__ = ["MOST_STATES", "PatternStates", "StateBuilder", "StateKind", "compile_pattern", "renumber"]

MANY_PERMUTED = 8  # patterns of PERMUTE, whose orders alone may be too many
MOST_STATES = 200_000


class StateKind(IntEnum):
    """The act of a state; the numbers are those of the native core."""

    ROW = 0
    SPLIT = 1
    JUMP = 2
    START = 3
    END = 4
    ACCEPT = 5


@dataclass(frozen=True)
class PatternStates:
    """The states of a pattern; the search starts at state 0.

    ``states`` are (kind, next, other): a ROW maps a row to the label ``other`` and goes on at ``next``; a SPLIT prefers
    ``next`` to ``other``; START and END go on at ``next`` at the ends of the partition. ``labels`` are (variable,
    whether it is excluded); variables by their folded names. ``missing_rows``: how many rows of the pattern are missing
    in a match with each label; empty, if none may be.
    """

    states: tuple[tuple[int, int, int], ...]
    labels: tuple[tuple[str, bool], ...]
    missing_rows: tuple[int, ...] = ()

    def lines(self) -> list[str]:
        """Return a readable listing, one state a line.

        >>> a = RowVariable("A", None)
        >>> for line in compile_pattern(Quantified(a, 0, None)).lines():
        ...     print(line)
        0: prefer 1, else 2
        1: row a, then 0
        2: accept
        """
        return [f"{number}: {self._text(*state)}" for number, state in enumerate(self.states)]

    def _text(self, kind: int, following: int, other: int) -> str:
        match StateKind(kind):
            case StateKind.ROW:
                name, is_excluded = self.labels[other]
                return f"row {'{- ' + name + ' -}' if is_excluded else name}, then {following}"
            case StateKind.SPLIT:
                return f"prefer {following}, else {other}"
            case StateKind.JUMP:
                return f"go to {following}"
            case StateKind.START:
                return f"only at the start, then {following}"
            case StateKind.END:
                return f"only at the end, then {following}"
            case StateKind.ACCEPT:
                return "accept"


def compile_pattern(pattern: RowPattern) -> PatternStates:
    """Compile a pattern.

    Raises :class:`QueryError` if it has more than :data:`MOST_STATES` states.
    """
    builder = StateBuilder()
    accept = builder.add(StateKind.ACCEPT)
    start = builder.build(pattern, accept, accept, False)
    return renumber(builder.states, start, list(builder.labels))


@dataclass
class StateBuilder:
    """States that are being made of a pattern."""

    states: list[tuple[int, int, int]] = field(default_factory=list)
    labels: dict[tuple[str, bool], int] = field(default_factory=dict)
    nullable: dict[int, bool] = field(default_factory=dict)
    built: dict[tuple[int, int, int, bool], int] = field(default_factory=dict)
    items: list[RowPattern] = field(default_factory=list)  # keeps the items whose ids are keys above
    too_many_hint: str = "its quantifiers are too large"

    def add(self, kind: int, following: int = 0, other: int = 0) -> int:
        """Add a state and return its number. Raises :class:`QueryError` if there are too many."""
        if len(self.states) >= MOST_STATES:
            raise QueryError(
                f"the pattern has more than {MOST_STATES} states",
                hint=self.too_many_hint,
                code="query_size",
            )
        self.states.append((int(kind), following, other))
        return len(self.states) - 1

    def _split(self, more: int, fewer: int, is_reluctant: bool) -> int:
        return self.add(StateKind.SPLIT, fewer, more) if is_reluctant else self.add(StateKind.SPLIT, more, fewer)

    def build(self, item: RowPattern, empty: int, full: int, is_excluded: bool) -> int:
        """Return the state from which ``item`` is matched; it goes on at ``full`` if it has mapped a row, else at
        ``empty``."""
        key = (id(item), empty, full, is_excluded)
        if key not in self.built:
            self.items.append(item)
            self.built[key] = self._build(item, empty, full, is_excluded)
        return self.built[key]

    def _build(self, item: RowPattern, empty: int, full: int, is_excluded: bool) -> int:
        match item:
            case RowVariable(name=name):
                label = self.labels.setdefault((name.casefold(), is_excluded), len(self.labels))
                return self.add(StateKind.ROW, full, label)
            case Empty():
                return empty
            case Anchor(is_start=is_start):
                return self.add(StateKind.START if is_start else StateKind.END, empty)
            case Concatenation(items=items):
                return self._build_row(items, empty, full, is_excluded)[0]
            case Alternation(items=items):
                starts = [self.build(alternative, empty, full, is_excluded) for alternative in items]
                return self._prefer(starts)
            case Permutation(items=items):
                if len(items) >= MANY_PERMUTED:
                    orders = f"{factorial(len(items)):,}" if len(items) <= 20 else "too many"
                    self.too_many_hint = f"PERMUTE of {len(items)} patterns has {orders} orders"
                return self._build_permutation(items, empty, full, is_excluded)
            case Exclusion(item=inner):
                return self.build(inner, empty, full, True)
            case Quantified():
                return self._build_repeated(item, empty, full, is_excluded)

    def _prefer(self, starts: list[int]) -> int:
        state = starts[-1]
        for start in reversed(starts[:-1]):
            state = self.add(StateKind.SPLIT, start, state)
        return state

    def _build_row(self, items: Iterable[RowPattern], empty: int, full: int, is_excluded: bool) -> tuple[int, int]:
        """Return the states from which the items are matched one after another: where no row has been mapped yet, and
        where one has."""
        for item in reversed(tuple(items)):
            both = self.build(item, full, full, is_excluded)
            empty = both if empty == full else self.build(item, empty, full, is_excluded)
            full = both
        return empty, full

    def _build_permutation(self, items: tuple[RowPattern, ...], empty: int, full: int, is_excluded: bool) -> int:
        """Return the state of the alternation of all orders; the orders share the states of their ends."""
        return self._prefer([self._build_row(order, empty, full, is_excluded)[0] for order in permutations(items)])

    def _build_repeated(self, item: Quantified, empty: int, full: int, is_excluded: bool) -> int:
        body, is_reluctant, low, high = item.item, item.is_reluctant, item.low, item.high
        if not variables_of(body):  # it maps no rows: a second iteration changes nothing
            low, high = min(low, 1), 1
        end_empty, end_full = empty, full
        if high is None:
            split = self.add(StateKind.SPLIT)  # where a row has been mapped before this iteration
            more = self.build(body, full, split, is_excluded)
            targets = (full, more) if is_reluctant else (more, full)
            self.states[split] = (int(StateKind.SPLIT), *targets)
            if low == 0 and empty != full:
                empty = self._split(self.build(body, empty, split, is_excluded), empty, is_reluctant)
            else:
                empty = split
            full = split
        else:
            for _ in range(high - low):
                more_full = self.build(body, end_full, full, is_excluded)
                more_empty = more_full if end_empty == end_full else self.build(body, end_empty, full, is_excluded)
                following = self._split(more_full, end_full, is_reluctant)
                empty = following if end_empty == end_full else self._split(more_empty, end_empty, is_reluctant)
                full = following
        for iteration in range(low):
            # The iteration that reaches the lower bound ends the loop, too, if it maps no row.
            after_empty, after_full = (end_empty, end_full) if iteration == 0 else (empty, full)
            both = self.build(body, after_full, full, is_excluded)
            empty = both if after_empty == after_full else self.build(body, after_empty, full, is_excluded)
            full = both
        return empty


def renumber(
    states: Sequence[tuple[int, int, int]],
    start: int,
    labels: Sequence[tuple[str, bool]],
    missing_rows: Sequence[int] = (),
) -> PatternStates:
    """Return the states that can be reached, numbered from the start on in the order of a walk by preference."""
    numbers: dict[int, int] = {}
    pending = [start]
    while pending:
        state = pending.pop()
        if state in numbers:
            continue
        numbers[state] = len(numbers)
        kind, following, other = states[state]
        if kind == StateKind.SPLIT:
            pending.append(other)
        if kind != StateKind.ACCEPT:
            pending.append(following)
    moved = []
    for state in numbers:
        kind, following, other = states[state]
        target = 0 if kind == StateKind.ACCEPT else numbers[following]
        moved.append((kind, target, numbers[other] if kind == StateKind.SPLIT else other))
    return PatternStates(tuple(moved), tuple(labels), tuple(missing_rows))
