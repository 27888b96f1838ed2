"""Random row patterns over random rows, and a small slow search in them that is written to be read."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

__all__ = [
    "ACCEPT",
    "FIRST",
    "JUMP",
    "LAST",
    "ROW",
    "SPLIT",
    "Case",
    "Condition",
    "Match",
    "Ref",
    "expected", "long_case",
    "native_matches", "pivotal_case",
    "program",
    "random_case",
    "search_of",
    "start",
]  # fmt: skip

ROW, SPLIT, JUMP, FIRST, LAST, ACCEPT = range(6)
CURRENT, FIRST_ROW, LAST_ROW, COUNT, COUNT_VALID, SUM, LEAST, GREATEST, NUMBER, FIRST_LABEL, LAST_LABEL = range(11)
INTEGER, DOUBLE, TEXT = range(3)
WORDS = ["", "a", "ab", "b", "ü"]
COLUMN_TYPES = (INTEGER, DOUBLE, TEXT, TEXT)  # the last one is by label
COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "EQ": lambda x, y: x == y,
    "NE": lambda x, y: x != y,
    "LT": lambda x, y: x < y,
    "LE": lambda x, y: x <= y,
}


class Ref(NamedTuple):
    """What a condition reads; the fields are those of the native search."""

    kind: int
    set: int = 0
    offset: int = 0
    shift: int = 0
    column: int = 0
    type: int = INTEGER

    @property
    def result(self) -> int:
        """The type of its values."""
        return INTEGER if self.kind in (COUNT, COUNT_VALID, NUMBER) else self.type


@dataclass(frozen=True)
class Condition:
    """A comparison of the values of references, or of one reference and a constant."""

    label: int
    comparison: str
    references: tuple[int, ...]
    constant: Any = None


class Match(NamedTuple):
    """A match: its labels are those of the rows from ``first`` on."""

    partition: int
    number: int
    first: int
    labels: tuple[int, ...]


@dataclass(frozen=True)
class Case:
    """A pattern, and rows in partitions."""

    states: list[tuple[int, int, int]]
    labels: int
    offsets: list[int]
    local: list[list[int] | None]
    columns: list[list[Any]] = field(default_factory=list)
    sets: list[list[int]] = field(default_factory=list)
    references: list[Ref] = field(default_factory=list)
    conditions: list[Condition] = field(default_factory=list)
    times: list[int] | None = None
    width: int = 0
    skip: int = 0
    skip_set: int = 0


def next_states(state: tuple[int, int, int]) -> tuple[int, ...]:
    """The states that a state leads to."""
    op, a, b = state
    return () if op == ACCEPT else (a, b) if op == SPLIT else (a,)


def live(case: Case) -> list[list[int]]:
    """By state, the references that are read from there on."""
    reads = [
        {r for c in case.conditions if op == ROW and c.label == b for r in c.references} for op, _, b in case.states
    ]
    changed = True
    while changed:
        changed = False
        for state, move in enumerate(case.states):
            union = reads[state].union(*(reads[s] for s in next_states(move)))
            changed = changed or union != reads[state]
            reads[state] = union
    return [sorted(refs) for refs in reads]


def value(case: Case, ref: Ref, part: tuple[int, int], first: int, labels: Sequence[int], number: int) -> Any:
    """The value of a reference for the row bound last."""
    now = first + len(labels) - 1
    rows = [first + i for i, label in enumerate(labels) if label in case.sets[ref.set]] if case.sets else []
    column = case.columns[ref.column] if case.columns else []
    if ref.kind == NUMBER:
        return number
    if ref.kind == COUNT:
        return len(rows)
    if ref.kind in (COUNT_VALID, SUM, LEAST, GREATEST):
        values = [column[row] for row in rows if column[row] is not None]
        if ref.kind == COUNT_VALID:
            return len(values)
        return {SUM: sum, LEAST: min, GREATEST: max}[ref.kind](values) if values else None
    if ref.kind != CURRENT:
        if ref.offset >= len(rows):
            return None
        now = rows[ref.offset] if ref.kind in (FIRST_ROW, FIRST_LABEL) else rows[-1 - ref.offset]
    now += ref.shift
    if ref.kind in (FIRST_LABEL, LAST_LABEL):
        return column[labels[now - first]] if first <= now < first + len(labels) else None
    return column[now] if part[0] <= now < part[1] else None


def allows(case: Case, part: tuple[int, int], first: int, labels: Sequence[int], number: int) -> bool:
    """Whether the row bound last may have its label."""
    row, label = first + len(labels) - 1, labels[-1]
    bits = case.local[label]
    if bits is not None and not bits[row]:
        return False
    if case.times is not None and case.times[row] - case.times[first] > case.width:
        return False
    for condition in case.conditions:
        if condition.label != label:
            continue
        values = [value(case, case.references[r], part, first, labels, number) for r in condition.references]
        values += [condition.constant] * (2 - len(values))
        if None in values or not COMPARISONS[condition.comparison](*values):
            return False
    return True


def ways(case: Case, part: tuple[int, int], first: int, number: int) -> Iterator[tuple[int, ...]]:
    """The labels of all matches that begin at a row, in the order of preference."""

    def follow(state: int, labels: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        op, a, b = case.states[state]
        row = first + len(labels)
        if op == ACCEPT:
            yield labels
        elif op == SPLIT:
            yield from follow(a, labels)
            yield from follow(b, labels)
        elif op == ROW:
            if row < part[1] and allows(case, part, first, (*labels, b), number):
                yield from follow(a, (*labels, b))
        elif op == JUMP or (op == FIRST and row == part[0]) or (op == LAST and row == part[1]):
            yield from follow(a, labels)

    yield from follow(0, ())


def expected(case: Case) -> list[Match] | tuple[str, int, int]:
    """All matches, or the error of a skip: its kind, the partition, and the first row of the match."""
    matches = []
    for p, part in enumerate(zip(case.offsets, case.offsets[1:], strict=False)):
        first, number = part[0], 1
        while first < part[1]:
            labels = next(ways(case, part, first, number), None)
            if labels is None:
                first += 1
                continue
            matches.append(Match(p, number, first, labels))
            number += 1
            if not labels or case.skip == 1:
                first += 1
            elif case.skip == 0:
                first += len(labels)
            else:
                places = [i for i, label in enumerate(labels) if label in case.sets[case.skip_set]]
                if not places or not places[0 if case.skip == 2 else -1]:
                    return ("first row" if places else "unbound", p, first)
                first += places[0 if case.skip == 2 else -1]
    return matches


def column_of(texts: Any, values: Sequence[Any], kind: int) -> tuple[Any, Any]:
    """The words and the validity of a column."""
    if kind == TEXT:
        words = np.array([0 if v is None else texts.intern(v) for v in values], np.int64)
    else:
        plain = [0 if v is None else v for v in values]
        words = np.array(plain, np.float64 if kind == DOUBLE else np.int64).view(np.int64)
    valid = np.array([v is not None for v in values], np.uint8)
    return words, None if valid.all() else valid


def program(native: Any, texts: Any, comparison: str, kind: int, constant: Any = None) -> Any:
    """The program that compares two inputs, or one and a constant."""
    numbers = {name: number for number, (name, _) in enumerate(native.operations())}
    suffix = "IFS"[kind] if comparison in ("LT", "LE") or kind == DOUBLE else "I"
    code = [numbers["LEAF"], 0, 0]
    if constant is None:
        code += [numbers["LEAF"], 1, 1]
    else:
        code += [numbers["CONST"], 1, int(column_of(texts, [constant], kind)[0][0])]
    code += [numbers[f"{comparison}_{suffix}"], 2, 0, 1, numbers["RETURN"], 2]
    return native.BlockProgram(np.array(code, np.int64), 3, 1 if constant is not None else 2)


def search_of(native: Any, texts: Any, case: Case, memory: int = 1 << 24) -> Any:
    """The native search of a pattern."""
    conditions = []
    for c in case.conditions:
        kind = case.references[c.references[0]].result
        conditions.append((c.label, program(native, texts, c.comparison, kind, c.constant), list(c.references)))
    references = [tuple(ref) for ref in case.references]
    return native.OrderedSearch(
        case.states, case.labels, case.sets, references, conditions, live(case), case.skip, case.skip_set, memory
    )


def start(texts: Any, search: Any, case: Case) -> None:
    """Give a search the rows of a case."""
    columns = [column_of(texts, c, kind) for c, kind in zip(case.columns, COLUMN_TYPES, strict=False)]
    local = [None if bits is None else np.array(bits, np.uint8) for bits in case.local]
    times = None if case.times is None else np.array(case.times, np.int64)
    search.start(columns, local, np.array(case.offsets, np.int64), texts, times, case.width)


def native_matches(search: Any, rows: int) -> list[Match] | tuple[Any, ...]:
    """All matches that a search finds, or the error of a skip."""
    matches = []
    while True:
        try:
            batch = search.take(rows)
        except ValueError as error:
            return error.args
        if batch is None:
            return matches
        partition, number, first, offsets, labels = batch
        assert [a.dtype for a in batch] == [np.int64] * 4 + [np.uint16]
        for i in range(len(first)):
            bound = tuple(labels[offsets[i] : offsets[i + 1]].tolist())
            matches.append(Match(int(partition[i]), int(number[i]), int(first[i]), bound))


def random_states(rng: random.Random, labels: int) -> list[tuple[int, int, int]]:
    """States of which those that consume no row lead to later ones, in another order."""
    count = rng.randint(2, 9)
    places = [0, *rng.sample(range(1, count), count - 1)]
    states = [(ACCEPT, 0, 0)] * count
    for i in range(count - 1):
        later = rng.randrange(i + 1, count)
        other = rng.randrange(i + 1, count)
        op = rng.choices((ROW, SPLIT, JUMP, FIRST, LAST, ACCEPT), (10, 8, 1, 0.4, 0.4, 0.5))[0]
        if op == ROW:
            after = rng.randrange(count) if rng.random() < 0.4 else later
            states[places[i]] = (op, places[after], rng.randrange(labels))
        else:
            states[places[i]] = (op, places[later], places[other])
    return states


class Writer:
    """States of a pattern that is made of parts, written from its end."""

    def __init__(self) -> None:
        self.states: list[tuple[int, int, int]] = [(JUMP, 0, 0), (ACCEPT, 0, 0)]

    def add(self, op: int, a: int, b: int = 0) -> int:
        """Add a state, and return its number."""
        self.states.append((op, a, b))
        return len(self.states) - 1

    def split(self, a: int, b: int, *, greedy: bool = True) -> int:
        """Add a choice that prefers the first state, or if not greedy the second."""
        return self.add(SPLIT, a, b) if greedy else self.add(SPLIT, b, a)

    def repeated(self, label: int, after: int, *, least: int, greedy: bool = True) -> int:
        """Add `label*` or `label+` before a state."""
        choice = self.split(after, after)
        body = self.add(ROW, choice, label)
        self.states[choice] = (SPLIT, body, after) if greedy else (SPLIT, after, body)
        return body if least else choice

    def begin(self, state: int) -> list[tuple[int, int, int]]:
        """Let the pattern begin with a state, and return all of them."""
        self.states[0] = (JUMP, state, 0)
        return self.states

    def random(self, rng: random.Random, labels: Sequence[int], after: int, depth: int) -> int:
        """Add a random pattern, each iteration of whose loops consumes a row."""
        kind, greedy = rng.choice("rrrssalo" if depth else "r"), rng.random() < 0.7
        if kind == "s":
            return self.random(rng, labels, self.random(rng, labels, after, depth - 1), depth - 1)
        if kind == "a":
            either = (self.random(rng, labels, after, depth - 1) for _ in range(2))
            return self.split(*either)
        if kind == "o":
            return self.split(self.random(rng, labels, after, depth - 1), after, greedy=greedy)
        if kind == "l":
            choice = self.split(after, after)
            body = self.add(ROW, self.random(rng, labels, choice, depth - 1), rng.choice(labels))
            self.states[choice] = (SPLIT, body, after) if greedy else (SPLIT, after, body)
            return rng.choice((body, choice))
        return self.add(ROW, after, rng.choice(labels))


def random_reference(rng: random.Random, sets: int, *, labelled: bool) -> Ref:
    """A reference that fits the columns of random cases."""
    kinds = (CURRENT, FIRST_ROW, LAST_ROW, COUNT, COUNT_VALID, SUM, LEAST, GREATEST, NUMBER, FIRST_LABEL, LAST_LABEL)
    kind = rng.choices(kinds, (4, 4, 4, 2, 1, 2, 1, 1, 0.3, labelled, labelled))[0]
    column = rng.choice((0, 1) if kind == SUM else (0, 0, 1, 2))
    if kind in (FIRST_LABEL, LAST_LABEL):
        column = 3
    offset = rng.choice((0, 0, 0, 1, 2))
    shift = rng.choice((0, 0, 0, -1, 1, -2))
    return Ref(kind, rng.randrange(sets), offset, shift, column, COLUMN_TYPES[column])


def random_conditions(rng: random.Random, labels: int, references: list[Ref]) -> list[Condition]:
    """Comparisons of references of one type, or with constants."""
    conditions = []
    constants = {INTEGER: range(4), DOUBLE: (0.0, 1.0, 2.5, 4.0), TEXT: WORDS}
    for _ in range(rng.choice((0, 1, 1, 2, 3)) if references else 0):
        left = rng.randrange(len(references))
        kind = references[left].result
        others = [i for i, ref in enumerate(references) if ref.result == kind and i != left]
        label, comparison = rng.randrange(labels), rng.choice(("EQ", "NE", "LT", "LE", "LE"))
        if others and rng.random() < 0.7:
            conditions.append(Condition(label, comparison, (left, rng.choice(others))))
        else:
            conditions.append(Condition(label, comparison, (left,), rng.choice(constants[kind])))
    return conditions


def random_case(rng: random.Random) -> Case:
    """A small pattern over a few rows."""
    labels = rng.randint(1, 4)
    sizes = [rng.randint(1, 7) for _ in range(rng.choice((1, 1, 2)))]
    offsets = [0, *np.cumsum(sizes).tolist()]
    rows = offsets[-1]
    share = rng.choice((0.5, 0.8, 0.95))
    writer = Writer()
    parts = writer.begin(writer.random(rng, range(labels), 1, 4))
    bits = [[int(rng.random() < share) for _ in range(rows)] for _ in range(labels)]
    local = [None if rng.random() < 0.3 else b for b in bits]

    def values(pool: Sequence[Any], size: int) -> list[Any]:
        return [None if rng.random() < 0.1 else rng.choice(pool) for _ in range(size)]

    columns = [values(range(4), rows), values((0.0, 1.0, 1.5, 3.0), rows), values(WORDS, rows), values(WORDS, labels)]
    sets = [sorted(rng.sample(range(labels), rng.randint(1, labels))) for _ in range(2)]
    references = [random_reference(rng, len(sets), labelled=rng.random() < 0.5) for _ in range(rng.randint(0, 4))]
    states = parts if rng.random() < 0.7 else random_states(rng, labels)
    case = Case(states, labels, offsets, local, columns, sets, references)
    case = replace(case, conditions=random_conditions(rng, labels, references))
    case = replace(case, skip=rng.choice((0, 0, 1, 1, 2, 3)), skip_set=rng.randrange(2))
    if rng.random() < 0.25:
        steps = [sorted(rng.randint(0, 6) for _ in range(size)) for size in sizes]
        case = replace(case, times=[t for part in steps for t in part], width=rng.randint(0, 4))
    return case


def pivotal_states(rng: random.Random) -> list[tuple[int, int, int]]:
    """A pattern in which the labels 1, and sometimes 3, stand at one state, which most ways lead over."""
    writer = Writer()
    after = 1
    if rng.random() < 0.3:
        after = writer.add(ROW, writer.random(rng, (2,), after, 3), 3)
    after = writer.random(rng, (2, 3) if after == 1 else (2,), after, 3)
    after = writer.add(ROW, after, 1)
    if rng.random() < 0.2:
        after = writer.split(after, writer.random(rng, (0,), 1, 2))
    after = writer.random(rng, (0, 2), after, 3) if rng.random() < 0.9 else after
    return writer.begin(writer.add(ROW, after, 0) if rng.random() < 0.7 else after)


def pivotal_case(rng: random.Random, rows: int) -> Case:
    """A pattern whose conditions compare a row with one that was bound before it, over some rows."""
    share = rng.choice((0.3, 0.9))
    bits = [[int(rng.random() < s) for _ in range(rows)] for s in (share, 0.5, 0.9, 0.5)]
    local = [None if rng.random() < 0.2 else b for b in bits]
    rising = np.cumsum([rng.randint(0, 1) for _ in range(rows)]).tolist()
    integers = rising if rng.random() < 0.5 else [rng.randint(0, 9) for _ in range(rows)]
    columns = [integers, [float(rng.randint(0, 5)) for _ in range(rows)], [""] * rows]
    if rng.random() < 0.3:
        columns = [[None if rng.random() < 0.1 else value for value in column] for column in columns]
    bound = [Ref(rng.choice((FIRST_ROW, LAST_ROW)), number, shift=rng.choice((0, 0, 2, -1))) for number in range(3)]
    references = [Ref(CURRENT), *bound, Ref(CURRENT, shift=1), Ref(COUNT, 1), Ref(LEAST, 1), Ref(NUMBER)]
    conditions = []
    for _ in range(rng.randint(1, 3)):
        pair = rng.sample((0, rng.choice((1, 2, 2, 3, 5, 6, 7)) if rng.random() < 0.9 else 4), 2)
        comparison = rng.choice(("LT", "LE", "LE", "NE"))
        conditions.append(Condition(rng.choice((1, 2, 2, 3, 3)), comparison, tuple(pair)))
    times = [t // 2 for t in rising] if rng.random() < 0.2 else None
    offsets = [0, rows // 3, rows]
    return Case(pivotal_states(rng), 4, offsets, local, columns, [[0], [1], [3]], references, conditions, times,
                rng.choice((2, 30)), skip=rng.choice((0, 1, 1)))  # fmt: skip


def long_case(rng: random.Random, rows: int) -> Case:
    """A pattern whose conditions compare a row with the first one, mostly, over many rows."""
    labels = 4
    writer = Writer()
    after = writer.random(rng, range(labels), 1, 4)
    states = writer.begin(writer.add(ROW, after, 0) if rng.random() < 0.8 else after)
    bits = [[int(rng.random() < share) for _ in range(rows)] for share in (0.3, 0.9, 0.1, 0.5)]
    local = [None if rng.random() < 0.2 else b for b in bits]
    rising = np.cumsum([rng.randint(0, 2) for _ in range(rows)]).tolist()
    integers = rising if rng.random() < 0.6 else [rng.randint(0, 50) for _ in range(rows)]
    columns = [integers, [rng.random() * 10 for _ in range(rows)], [""] * rows]
    if rng.random() < 0.3:
        columns = [[None if rng.random() < 0.05 else value for value in column] for column in columns]
    references = [
        Ref(CURRENT),
        Ref(FIRST_ROW, shift=rng.choice((0, 5, 60))),
        Ref(CURRENT, shift=rng.choice((-1, 0, 2))),
    ]
    references += [Ref(CURRENT, column=1, type=DOUBLE), Ref(FIRST_ROW, column=1, type=DOUBLE)]
    pairs = ((0, 1), (0, 1), (2, 1), (1, 0), (3, 4), (4, 3))
    conditions = [
        Condition(rng.choice((0, 1, 2, 2, 3)), rng.choice(("LT", "LE", "LE", "NE")), rng.choice(pairs))
        for _ in range(rng.randint(1, 4))
    ]
    times = [t // 2 for t in rising] if rng.random() < 0.3 else None
    offsets = [0, rows // 3, rows]
    return Case(states, labels, offsets, local, columns, [[0]], references, conditions, times,
                rng.choice((5, 40)), skip=rng.choice((0, 1, 1)))  # fmt: skip
