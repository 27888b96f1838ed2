"""Define an automaton whose conditions are functions of rows, and copy its states where negations may be broken.

Between two bound rows a state leaves rows out. One that breaks a negation closes the arcs that pass it, until the next
row is bound. So a state has a copy for each set of negations that may be broken since.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from acep.pattern import expressions as ex
from acep.pattern.tree import Output, SkipTarget

__all__ = [
    "OF_FIRST",
    "Copies",
    "IntervalArc",
    "IntervalSkip",
    "IntervalStep",
    "IntervalsPlan",
    "RowCondition",
    "RowFilter",
]


OF_FIRST = -1
"""The distance of a value of the first row of the match."""


@dataclass(frozen=True)
class RowCondition:
    """A condition of a row, of rows before it, and of the first row of the match. ``reads``: for each attribute that
    ``expr`` reads, its name there, the column, and how many rows before it stands, or ``OF_FIRST``."""

    expr: ex.Expr
    reads: tuple[tuple[str, str, int], ...]

    @property
    def is_tied(self) -> bool:
        """Return whether it reads the first row of the match."""
        return any(distance == OF_FIRST for _, _, distance in self.reads)


@dataclass(frozen=True)
class RowFilter:
    """Passed by a row of one of the ``types`` (none: of any) for which all conditions are true."""

    types: tuple[str, ...]
    conditions: tuple[RowCondition, ...]


@dataclass(frozen=True)
class IntervalArc:
    """An arc of the automaton: it binds a row that passes the test."""

    source: int
    target: int
    variable: str
    test: RowFilter


@dataclass(frozen=True)
class IntervalSkip:
    """An arc that leaves out a row that passes none of ``failing`` and all of ``passing``."""

    source: int
    target: int
    failing: tuple[RowFilter, ...]
    passing: tuple[RowFilter, ...]


@dataclass(frozen=True)
class IntervalsPlan:
    """The automaton: state 0 is the start, ``ends`` are the states in which a match may end, with tests of its last
    row. ``output`` and ``skip`` are those of the query. ``needs_order``: the ids must rise in the order of the stream,
    ``"all"`` or only those of one ``"time"``, or need not (``""``)."""

    arcs: tuple[IntervalArc, ...]
    ends: tuple[tuple[int, RowFilter], ...]
    skips: tuple[IntervalSkip, ...]
    output: Output
    skip: SkipTarget | None
    needs_order: str

    @property
    def is_tied(self) -> bool:
        """Return whether a condition reads the first row of the match."""
        tests = [arc.test for arc in self.arcs] + [test for _, test in self.ends]
        tests += [test for skip in self.skips for test in (*skip.failing, *skip.passing)]
        return any(condition.is_tied for test in tests for condition in test.conditions)


@dataclass(frozen=True)
class IntervalStep:
    """An arc from state to state before states are copied, with the negations that it passes."""

    source: int
    target: int
    variable: str
    test: RowFilter
    passed: frozenset[int]


@dataclass
class Copies:
    """The copies of states, by state and broken negations. ``steps``: those of each state. ``blocking``: for each
    state the tests of rows that it must bind; ``None``: rows are not left out. ``breaking``: the rows that break a
    negation."""

    steps: Mapping[int, Sequence[IntervalStep]]
    blocking: Mapping[int, tuple[RowFilter, ...]] | None
    breaking: Sequence[RowFilter]
    numbers: dict[tuple[int, frozenset[int]], int] = field(default_factory=dict)
    arcs: list[IntervalArc] = field(default_factory=list)
    skips: list[IntervalSkip] = field(default_factory=list)

    def make(self, limit: int) -> bool:
        """Make the copies that can be reached, and their arcs. Return whether there are at most so many."""
        none = frozenset[int]()
        pending = [(0, none)]
        self.numbers[0, none] = 0
        while pending:
            state, broken = pending.pop()
            number = self.numbers[state, broken]
            for step in self._open_steps(state, broken):
                target = self._number(step.target, none, pending)
                self.arcs.append(IntervalArc(number, target, step.variable, step.test))
            if state and self.blocking is not None:
                for breaks, passes in self._choices(state, broken):
                    target = self._number(state, broken | breaks, pending)
                    failing = (*self.blocking[state], *(self.breaking[negation] for negation in sorted(passes)))
                    passing = tuple(self.breaking[negation] for negation in sorted(breaks))
                    self.skips.append(IntervalSkip(number, target, failing, passing))
            if len(self.numbers) > limit:
                return False
        return True

    def _number(self, state: int, broken: frozenset[int], pending: list[tuple[int, frozenset[int]]]) -> int:
        if (state, broken) not in self.numbers:
            self.numbers[state, broken] = len(self.numbers)
            pending.append((state, broken))
        return self.numbers[state, broken]

    def _open_steps(self, state: int, broken: frozenset[int]) -> list[IntervalStep]:
        return [step for step in self.steps.get(state, ()) if not step.passed & broken]

    def _choices(self, state: int, broken: frozenset[int]) -> Iterator[tuple[frozenset[int], frozenset[int]]]:
        """Yield the sets of negations that a row may break, and those that it then does not, if a step stays open."""
        unbroken = frozenset[int]().union(*(step.passed for step in self.steps.get(state, ()))) - broken
        for size in range(len(unbroken) + 1):
            for breaks in map(frozenset, combinations(sorted(unbroken), size)):
                if self._open_steps(state, broken | breaks):
                    yield breaks, unbroken - breaks
