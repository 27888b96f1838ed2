"""Random versions of queries, and an oracle that knows no automaton: what a query that is replaced accepts."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

import acep
from acep.pattern.tree import Query

Row = dict[str, Any]
Conditions = frozenset[tuple[str, str, str]]
Versions = list[tuple[int, "Chain"]]


@dataclass(frozen=True, order=True)
class Negated:
    """A negation behind so many variables, with conditions on its event: (comparison, variable). Each event that breaks
    it costs 1 if it is ``cheap``."""

    place: int
    name: str
    type: str
    conditions: frozenset[tuple[str, str]]
    cheap: bool


@dataclass(frozen=True)
class Chain:
    """A sequence of variables with their types, with conditions on them: (variable, comparison, other variable)."""

    letters: tuple[tuple[str, str], ...]
    conditions: Conditions
    negations: tuple[Negated, ...] = ()

    def text(self, within: int | None, output: str = "") -> str:
        """The query."""
        items = []
        for place in range(len(self.letters) + 1):
            items += [f"~({one.type} {one.name})" for one in self.negations if one.place == place]
            items += [f"{t} {v}" for v, t in self.letters[place : place + 1]]
        told = [f"{one}.x {op} {other}.x" for one, op, other in sorted(self.conditions)]
        told += [f"{one.name}.x {op} {other}.x" for one in self.negations for op, other in sorted(one.conditions)]
        where = f" WHERE {' AND '.join(told)}" if told else ""
        end = "" if within is None else f" WITHIN {within}"
        return f"PATTERN SEQ({', '.join(items)}){where}{end}{output and f' OUTPUT {output}'}"

    def query(self, within: int | None, output: str, errors: int) -> Query | str:
        """The query with an error budget, of which only negations take."""
        text = self.text(within, output)
        if not errors:
            return text
        weights: dict[str, float] = {name: math.inf for name, _ in self.letters}
        weights |= {one.name: 1 if one.cheap else math.inf for one in self.negations}
        return acep.parse(text, errors=errors, weights=weights)

    @property
    def edges(self) -> bool:
        """Whether a negation stands at the beginning or the end."""
        return any(one.place in (0, len(self.letters)) for one in self.negations)

    def holds(self, bound: dict[str, Row]) -> bool:
        """Whether the conditions on the variables that are bound hold."""
        both = [one for one in self.conditions if one[0] in bound and one[2] in bound]
        return all(compared(bound[one]["x"], op, bound[other]["x"]) for one, op, other in both)

    def unweighed(self) -> Chain:
        """The chain with no negation that is ``cheap``."""
        return replace(self, negations=tuple(replace(one, cheap=False) for one in self.negations))

    def same(self, one: Negated, before: Chain) -> bool:
        """Whether the version before has an equal negation: variable, type, conditions and weight are equal, and both
        stand at the beginning, at the end or between."""
        ends = (one.place == 0, one.place == len(self.letters))
        return any(
            (two.name, two.type, two.conditions, two.cheap) == (one.name, one.type, one.conditions, one.cheap)
            and (two.place == 0, two.place == len(before.letters)) == ends
            for two in before.negations
        )

    def shared(self, other: Chain, many: int) -> bool:
        """Whether partial matches with so many events are in the same state of another chain: they have the same
        variables, conditions and negations, and are compared with later events by the same variables."""
        if self.letters[:many] != other.letters[:many] or many >= len(self.letters) or many >= len(other.letters):
            return False
        names = {name for name, _ in self.letters[:many]}
        mine, theirs = ([c for c in q.conditions if {c[0], c[2]} <= names] for q in (self, other))
        kept, also = ({v for c in q.conditions if not {c[0], c[2]} <= names for v in (c[0], c[2]) if v in names}
                      for q in (self, other))  # fmt: skip
        passed, past = ({one for one in q.negations if one.place < many} for q in (self, other))
        read, looked = ({v for one in q.negations for _, v in one.conditions if v in names} for q in (self, other))
        return set(mine) == set(theirs) and kept == also and passed == past and read == looked


def compared(one: int | None, op: str, other: int | None) -> bool:
    """Whether a comparison holds; with null it does not."""
    return one is not None and other is not None and (one > other if op == ">" else one <= other)


def random_chain(rng: Random, like: Chain | None = None, *, edges: bool = True) -> Chain:
    """Draw a chain; one that is ``like`` another often begins as it does. ``edges``: a negation may stand at its
    beginning or end."""
    letters = [(name, rng.choice("AABBC")) for name in "abcd"[: rng.randrange(2, 5)]]
    kept = 0
    if like is not None and rng.random() < 0.9:
        kept = rng.randrange(1, len(like.letters) + 1)
        letters[:kept] = like.letters[:kept]
    names = [name for name, _ in letters]
    drawn = [(one, rng.choice((">", "<=")), other) for one in names for other in names if one < other]
    conditions = {one for one in drawn if rng.random() < 0.3}
    old = set(names[:kept])
    if like is not None and rng.random() < 0.7:
        conditions = {c for c in conditions if not {c[0], c[2]} <= old}
        conditions |= {c for c in like.conditions if {c[0], c[2]} <= old}
    negations = []
    for name in ("n", "m"):
        known = [one for one in like.negations if one.name == name] if like is not None else []
        known = [one for one in known if one.place <= len(names) and {v for _, v in one.conditions} <= {*names}]
        if known and rng.random() < 0.7:
            negations += known
        elif rng.random() < 0.6:
            place = rng.randrange(len(names) + 1)
            on = rng.sample(names, rng.choice((0, 0, 1, 1, 2)))
            told = frozenset((rng.choice((">", "<=")), other) for other in on)
            negations.append(Negated(place, name, rng.choice("ABC"), told, rng.random() < 0.5))
    negations = [one for one in negations if edges or 0 < one.place < len(names)]
    return Chain(tuple(letters), frozenset(conditions), tuple(negations))


@dataclass(frozen=True)
class Accepted:
    """A match: the row of each variable, and the events that break its negations."""

    bound: dict[str, Row]
    error: int

    def told(self) -> str:
        """The variables with the ids of their events, and the error."""
        return told_of({v: (r["id"],) for v, r in self.bound.items()}, self.error)


def told_of(bindings: dict[str, tuple[Any, ...]], error: int) -> str:
    """The variables of a match with the ids of their events, and its error, as a text."""
    return f"{sorted((v, ids[0]) for v, ids in bindings.items())} {error}"


@dataclass
class Oracle:
    """The versions of a query, each with the time from which on it holds, over rows in stream order. ``seen`` counts
    what occurred."""

    versions: Versions
    rows: list[Row]
    within: int | None
    errors: int = 0
    seen: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        if not self.errors:  # the text of a query has no weights
            self.versions = [(since, chain.unweighed()) for since, chain in self.versions]

    def all(self) -> list[Accepted]:
        """All matches: partial matches go along the chain of the time of each event, as long as they are shared."""
        found = list[Accepted]()
        # The bound events, the version in which each was bound, and the version whose state is shared so far.
        runs: list[tuple[dict[str, int], tuple[int, ...], int]] = []
        for place, row in enumerate(self.rows):
            now = max(i for i, (since, _) in enumerate(self.versions) if row["ts"] >= since)
            chain, going = self.versions[now][1], []
            for bound, made, version in runs:
                steps = [(self.versions[i][1], self.versions[i + 1][1]) for i in range(version, now)]
                if all(old.shared(new, len(bound)) for old, new in steps):
                    going.append((bound, made, now))
            runs = list(going)
            for bound, made, _ in [*going, ({}, (), now)]:
                name, type_ = chain.letters[len(bound)]
                longer = bound | {name: place}
                first = self.rows[next(iter(longer.values()))]
                fits = self.within is None or row["ts"] - first["ts"] <= self.within
                if row["type"] != type_ or not fits or not chain.holds(self._rows(longer)):
                    continue
                if len(longer) < len(chain.letters):
                    runs.append((longer, (*made, now), now))
                    continue
                error = self._error(longer, (*made, now))
                if error is not None and error <= self.errors:
                    found.append(Accepted(self._rows(longer), error))
                    self.seen["went on"] += made[:1] not in ((), (now,))
        return found

    def _rows(self, bound: dict[str, int]) -> dict[str, Row]:
        return {name: self.rows[place] for name, place in bound.items()}

    def _error(self, bound: dict[str, int], made: tuple[int, ...]) -> int | None:
        """The cost of the events that break negations, each of which is of the version of the event bound after it, or
        at the end before it; ``None``: it is infinite."""
        total = 0
        for number in range(len(made) + 1):
            version = made[min(number, len(made) - 1)]
            for one in self.versions[version][1].negations:
                if one.place != number:
                    continue
                broken = self._broken(one, version, bound, made)
                if broken and not one.cheap:
                    return None
                total += broken
        return total

    def _broken(self, one: Negated, version: int, bound: dict[str, int], made: tuple[int, ...]) -> int:
        """How many events break a negation of a version."""
        places, begun = [*bound.values()], version
        while begun and self.versions[begun][1].same(one, self.versions[begun - 1][1]):
            begun -= 1
        low = -1 if one.place == 0 else places[one.place - 1]
        high = len(self.rows) if one.place == len(places) else places[one.place]
        first, last = (self.rows[places[i]]["ts"] for i in (0, -1))
        broken = 0
        for row in self.rows[low + 1 : high]:
            if one.place == 0 and self.within is not None and row["ts"] < last - self.within:
                continue
            if one.place == len(places) and self.within is not None and row["ts"] > first + self.within:
                continue
            if row["type"] != one.type:
                continue
            if not all(compared(row["x"], op, self.rows[bound[v]]["x"]) for op, v in one.conditions):
                continue
            if row["ts"] < self.versions[begun][0]:
                self.seen["before it began"] += 1
                continue
            broken += 1
            self.seen["broken"] += 1
            self.seen["of an older version"] += version < made[-1]
            self.seen["of a newer version"] += version > made[0]
            self.seen["of a version before"] += begun < version and row["ts"] < self.versions[version][0]
            ended = version + 1 < len(self.versions) and row["ts"] >= self.versions[version + 1][0]
            self.seen["after its version"] += one.place == len(places) and ended
        return broken

    def chosen(self, output: str) -> list[Accepted]:
        """The matches that are given with this OUTPUT."""
        found, place = self.all(), {row["id"]: n for n, row in enumerate(self.rows)}

        def at(one: Accepted) -> dict[str, int]:
            return {v: place[row["id"]] for v, row in one.bound.items()}

        if output == "NON OVERLAP":
            given = list[Accepted]()
            for one in sorted(found, key=_rank):
                if all(min(at(one).values()) > max(at(g).values()) or max(at(one).values()) < min(at(g).values())
                       for g in given):  # fmt: skip
                    given.append(one)
            return given
        if output == "EARLIEST MAXIMAL":
            return [one for one in found if not any(_beaten(at(one), at(by)) for by in found)]
        return found


def _rank(one: Accepted) -> tuple[Any, ...]:
    rows = sorted(one.bound.items(), key=lambda item: (item[1]["ts"], item[0]))
    ids = [row["id"] for _, row in rows]
    return one.error, rows[-1][1]["ts"], rows[0][1]["ts"], ids, [name for name, _ in rows]


def _beaten(one: dict[str, int], by: dict[str, int]) -> bool:
    """Whether another match with the same first event begins a variable earlier, or has one more event."""
    if min(one.values()) != min(by.values()):
        return False
    if one.items() < by.items() and len(by) == len(one) + 1:
        return True
    differ = [v for v in one.keys() | by.keys() if one.get(v) != by.get(v)]
    return len(differ) == 1 and differ[0] in one and differ[0] in by and by[differ[0]] < one[differ[0]]


def accepted(versions: Versions, rows: list[Row], within: int | None) -> Counter[str]:
    """All matches of versions over rows in stream order."""
    return Counter(one.told() for one in Oracle(versions, rows, within).all())
