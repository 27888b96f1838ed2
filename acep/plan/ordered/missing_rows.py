"""Let rows of a pattern be missing: the error budget of a clause (``ERRORS k``).

From each start the match with the fewest missing rows is preferred. Among those it is the one that the pattern prefers,
where a row that is there is preferred to one that is missing. So the pattern becomes a choice of copies: in copy e
exactly e rows are missing, and at least one is there. Each copy has labels of its own, so that the labels of a match
tell how many are missing in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from acep.pattern import expressions as ex
from acep.pattern.expressions import Span
from acep.pattern.walk import leaves_of
from acep.plan.ordered.clause_leaves import ClauseLeaves
from acep.plan.ordered.pattern_states import PatternStates, StateBuilder, StateKind, renumber
from acep.plan.ordered.row_references import RowAggregate, RowReference

__all__ = ["allow_missing", "and_parts", "leave_out_missing"]


def allow_missing(pattern: PatternStates, errors: int) -> PatternStates:
    """Return the states of a pattern of which up to ``errors`` rows may be missing.

    Raises :class:`QueryError` if it has more than :data:`MOST_STATES` states.

    >>> pattern = PatternStates(((0, 1, 0), (0, 2, 1), (5, 0, 0)), (("a", False), ("b", False)))
    >>> for line in allow_missing(pattern, 1).lines():
    ...     print(line)
    0: prefer 1, else 4
    1: row a, then 2
    2: row b, then 3
    3: accept
    4: prefer 5, else 7
    5: row a, then 6
    6: go to 3
    7: row b, then 3
    """
    if not errors:
        return pattern
    copies = [_Copy(pattern, missing) for missing in range(errors + 1)]
    builder = StateBuilder()
    accept = builder.add(StateKind.ACCEPT)
    starts = [start for copy in copies if (start := copy.add_to(builder, accept)) is not None]
    start = starts[-1]
    for before in reversed(starts[:-1]):
        start = builder.add(StateKind.SPLIT, before, start)
    labels = [label for _ in copies for label in pattern.labels]
    counts = [missing for missing in range(errors + 1) for _ in pattern.labels]
    return renumber(builder.states, start, labels, counts)


class _Copy:
    """A copy of the states of a pattern in which so many rows are missing.

    A place in it is (state, rows missing so far, whether a row is there)."""

    def __init__(self, pattern: PatternStates, missing: int) -> None:
        self.pattern, self.missing = pattern, missing
        self.following: dict[tuple[int, int, bool], list[tuple[int, int, bool]]] = {}
        pending = [self.first]
        while pending:
            place = pending.pop()
            if place not in self.following:
                self.following[place] = self._successors(place)
                pending += self.following[place]
        self.alive = self._alive()

    @property
    def first(self) -> tuple[int, int, bool]:
        return (0, 0, False)

    def _successors(self, place: tuple[int, int, bool]) -> list[tuple[int, int, bool]]:
        """Return the places that a place leads to, the preferred one first."""
        state, missing, is_there = place
        kind, following, other = self.pattern.states[state]
        if kind == StateKind.ACCEPT:
            return []
        if kind == StateKind.SPLIT:
            return [(following, missing, is_there), (other, missing, is_there)]
        if kind != StateKind.ROW:
            return [(following, missing, is_there)]
        absent = [(following, missing + 1, is_there)] if missing < self.missing else []
        return [(following, missing, True), *absent]

    def _is_end(self, place: tuple[int, int, bool]) -> bool:
        state, missing, is_there = place
        is_whole = missing == self.missing and (is_there or not self.missing)
        return self.pattern.states[state][0] == StateKind.ACCEPT and is_whole

    def _alive(self) -> set[tuple[int, int, bool]]:
        """Return the places from which the end can be reached."""
        before: dict[tuple[int, int, bool], list[tuple[int, int, bool]]] = {place: [] for place in self.following}
        for place, following in self.following.items():
            for target in following:
                before[target].append(place)
        pending = [place for place in self.following if self._is_end(place)]
        alive = set(pending)
        while pending:
            for place in before[pending.pop()]:
                if place not in alive:
                    alive.add(place)
                    pending.append(place)
        return alive

    def add_to(self, builder: StateBuilder, accept: int) -> int | None:
        """Add the copy to the states of a builder; return its start, ``None`` if its end cannot be reached."""
        if self.first not in self.alive:
            return None
        places = [place for place in self.following if place in self.alive]
        numbers = {place: accept if self._is_end(place) else builder.add(StateKind.JUMP) for place in places}
        size = len(self.pattern.labels)
        for place, number in numbers.items():
            kind, _, other = self.pattern.states[place[0]]
            targets = [numbers.get(target) for target in self.following[place]]
            if number == accept:
                continue
            if kind == StateKind.ROW:
                real, absent = (*targets, None)[:2]
                row = None if real is None else (int(StateKind.ROW), real, self.missing * size + other)
                if row is not None and absent is not None:
                    builder.states[number] = (int(StateKind.SPLIT), builder.add(*row), absent)
                else:
                    builder.states[number] = row or (int(StateKind.JUMP), absent or 0, 0)
            else:
                live_targets = [target for target in targets if target is not None]
                kind = kind if len(live_targets) == len(targets) else StateKind.JUMP
                builder.states[number] = (
                    int(kind),
                    live_targets[0],
                    live_targets[-1] if kind == StateKind.SPLIT else 0,
                )
        return numbers[self.first]


def and_parts(expr: ex.Expr) -> list[ex.Expr]:
    """Return the parts of a condition that AND joins."""
    pending, parts = [expr], list[ex.Expr]()
    while pending:
        part = pending.pop()
        if isinstance(part, ex.Binary) and part.op == "and":
            pending += [part.right, part.left]
        else:
            parts.append(part)
    return parts


def leave_out_missing(expr: ex.Expr, variable: str, leaves: ClauseLeaves) -> list[ex.Expr]:
    """Return the parts of the condition of a variable; each holds where a variable that it reads has no row."""
    parts = []
    for part in and_parts(expr):
        condition = part
        for variables, leaf in _variables_read(part, leaves.references, variable).items():
            count = leaves.add(RowAggregate("count", None, variables), leaf.span or Span(0, 0))
            condition = ex.Binary("or", ex.Binary("=", count, ex.Literal(0)), condition)
        parts.append(condition)
    return parts


def _variables_read(
    expr: ex.Expr, references: Sequence[RowReference], defined: str
) -> Mapping[frozenset[str], ex.Attribute]:
    """Return the variables other than the ``defined`` one that an expression reads, each set with a leaf that does."""
    sets: dict[frozenset[str], ex.Attribute] = {}
    for leaf in leaves_of(expr):
        if isinstance(leaf, ex.Attribute):
            variables = getattr(references[int(leaf.name[1:])], "variables", None)
            if variables is not None and defined not in variables:
                sets.setdefault(variables, leaf)
    return sets
