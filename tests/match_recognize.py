"""Match SQL:2016 row patterns (MATCH_RECOGNIZE) by backtracking over the rows of one partition, without an automaton.

A part of a pattern is a function of the rows, the place and the rows bound so far. It yields each way to go on, the
preferred one first. So the first way through the whole pattern is the match of SQL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any

Row = Mapping[str, Any]
Bound = tuple[tuple[str, int], ...]  # variable and place of each row, in order


@dataclass(frozen=True)
class Seen:
    """The rows as a condition of DEFINE sees them: the current row at ``at``, and the rows ``bound`` with it."""

    rows: Sequence[Row]
    at: int
    bound: Bound
    define: Mapping[str, Callable[[Seen], bool | None]]

    def __getitem__(self, name: str) -> Any:
        """The value of the current row."""
        return self.rows[self.at][name]

    def prev(self, name: str, n: int = 1) -> Any:
        """PREV: of the row n places before in the partition, in the match or not; null before the first row."""
        return self.rows[self.at - n][name] if 0 <= self.at - n < len(self.rows) else None

    def next(self, name: str, n: int = 1) -> Any:
        return self.prev(name, -n)

    def of(self, var: str, name: str) -> list[Any]:
        """The values of the rows of a variable so far, with the current row."""
        return [self.rows[place][name] for bound, place in self.bound if bound == var]

    def first(self, var: str, name: str) -> Any:
        return next(iter(self.of(var, name)), None)

    def last(self, var: str, name: str) -> Any:
        return next(reversed(self.of(var, name)), None)

    def avg(self, var: str, name: str) -> float | None:
        values = [value for value in self.of(var, name) if value is not None]
        return sum(values) / len(values) if values else None


Define = Mapping[str, Callable[[Seen], bool | None]]
Part = Callable[[Seen], Iterator[Seen]]  # `at` is the next row here


def row(var: str) -> Part:
    """One row that the condition of the variable takes; a variable without a condition takes any."""

    def go(seen: Seen) -> Iterator[Seen]:
        if seen.at < len(seen.rows):
            now = Seen(seen.rows, seen.at, (*seen.bound, (var, seen.at)), seen.define)
            if var not in seen.define or seen.define[var](now):
                yield Seen(seen.rows, seen.at + 1, now.bound, seen.define)

    return go


def seq(*parts: Part) -> Part:
    def go(seen: Seen) -> Iterator[Seen]:
        if not parts:
            yield seen
            return
        for one in parts[0](seen):
            yield from seq(*parts[1:])(one)

    return go


def alt(*parts: Part) -> Part:
    """The first alternative is preferred, whatever its length."""

    def go(seen: Seen) -> Iterator[Seen]:
        for part in parts:
            yield from part(seen)

    return go


def rep(part: Part, least: int, most: int = 99, *, greedy: bool = True) -> Part:
    """Greedy: another time is preferred; reluctant: the end is. An optional time that takes no row is not walked."""

    def go(seen: Seen) -> Iterator[Seen]:
        if least == 0 and not greedy:
            yield seen
        if most > 0:
            for one in part(seen):
                if one.at > seen.at or least > 0:
                    yield from rep(part, max(0, least - 1), most - 1, greedy=greedy)(one)
        if least == 0 and greedy:
            yield seen

    return go


def permute(*parts: Part) -> Part:
    return alt(*(seq(*order) for order in permutations(parts)))


def begin(seen: Seen) -> Iterator[Seen]:
    """The anchor ``^``."""
    if seen.at == 0:
        yield seen


def end(seen: Seen) -> Iterator[Seen]:
    """The anchor ``$``."""
    if seen.at == len(seen.rows):
        yield seen


HIDDEN = "-"


def exclude(part: Part) -> Part:
    """``{- part -}``: its rows belong to the match, and are not shown. Conditions must not speak of them here."""

    def go(seen: Seen) -> Iterator[Seen]:
        for one in part(seen):
            new = tuple((HIDDEN + var, place) for var, place in one.bound[len(seen.bound) :])
            yield Seen(one.rows, one.at, (*seen.bound, *new), one.define)

    return go


def recognize(rows: Sequence[Row], pattern: Part, define: Define, skip: tuple[str, ...] = ("past",)) -> list[Bound]:
    """Return the matches; ``skip``: ("past",), ("next",), ("first", var) or ("last", var). Empty ones are left out."""
    found: list[Bound] = []
    at = 0
    while at < len(rows):
        best = next(pattern(Seen(rows, at, (), define)), None)
        if best is None or not best.bound:
            at += 1
            continue
        found.append(best.bound)
        if skip[0] in ("past", "next"):
            at = best.at if skip[0] == "past" else at + 1
        else:
            places = [place for var, place in best.bound if var == skip[1]]
            to = places[0 if skip[0] == "first" else -1]
            if to == at:
                raise ValueError("SQL refuses to skip to the row at which the match begins")
            at = to
    return found


def shown(bound: Bound) -> dict[str, tuple[int, ...]]:
    """The places of the rows of each variable, without those that are excluded."""
    names = dict.fromkeys(var for var, _ in bound if not var.startswith(HIDDEN))
    return {name: tuple(place for var, place in bound if var == name) for name in names}
