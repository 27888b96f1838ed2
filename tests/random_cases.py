"""Random queries, as text, over random streams: deterministic by seed, and small enough for the oracle.

``random_case(seed)`` covers both front ends, every strategy, errors and weights, repetitions, groups, choices, sets,
negations, all the ways of referring to bound events, windows, HAVING and the outputs. Streams are planted with runs of
the pattern, so that matches do occur. ``shrink`` makes a failing case small.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from random import Random
from typing import Any, TypeVar

import pyarrow as pa

from acep.errors import AcepError
from acep.pattern import tree
from tests.corpus_text import corpus_text
from tests.read_queries import read_query

__all__ = ["Case", "events_of", "random_case", "shrink"]

Row = dict[str, Any]
T = TypeVar("T")
COLUMNS = {
    "ts": pa.int64(), "type": pa.string(), "k": pa.int64(), "x": pa.int64(), "y": pa.int64(), "f": pa.float64(),
    "s": pa.string(), "seq": pa.int64(), "id": pa.string(),
}  # fmt: skip
TYPES = "ABCDE"
STRATEGIES = ("strict_contiguity", "partition_contiguity", "skip_till_next_match", "skip_till_any_match")


@dataclass(frozen=True)
class Case:
    """A query's text with the options of its front end, and a stream with those of ``match``."""

    seed: int
    letters: bool
    text: str
    options: dict[str, Any]
    events: list[Row] = field(hash=False)
    stream: dict[str, Any] = field(default_factory=dict)

    def query(self) -> tree.Query:
        """The query, read by acep."""
        return read_query(self.text, self.options, letters=self.letters)

    def table(self, start: int = 0, end: int | None = None) -> pa.Table:
        """The stream, or rows of it."""
        return events_of(self.events[start:end])

    def paste(self) -> str:
        """The case as it would stand in the corpus, with the matches that the reference runtime gives."""
        words = re.findall(r"[a-z]+", f"{self.text} {self.options.get('by')}")
        words += ["ts", "type", *map(str, self.stream.values())]
        names = [
            name
            for name in COLUMNS
            if name in words or (name not in ("seq", "id") and any(row[name] is not None for row in self.events))
        ]
        table = self.table().select(names)
        for name in dict.fromkeys(name for row in self.events for name in row if name not in COLUMNS):
            table = table.append_column(name, pa.array([row.get(name) for row in self.events]))
        case_text = corpus_text(
            f"seed_{self.seed}", self.text, table, letters=self.letters, options=self.options, stream=self.stream
        )
        return f"# seed {self.seed}\n{case_text}"


def events_of(rows: Sequence[Row]) -> pa.Table:
    """Return rows as a table of the columns of random cases."""
    return pa.table({name: pa.array([row[name] for row in rows], kind) for name, kind in COLUMNS.items()})


# Patterns


@dataclass(frozen=True)
class Part:
    """A piece of a pattern: its text, and a way to sample the types of the events of one walk through it."""

    text: str
    sample: Callable[[Random], list[str]]


@dataclass(frozen=True)
class Var:
    """What a predicate needs to know of a variable."""

    name: str
    kleene: bool = False
    negated: bool = False
    grouped: bool = False


def chance(rng: Random, p: float) -> bool:
    return rng.random() < p


def pick(rng: Random, weighted: Mapping[T, float]) -> T:
    return rng.choices(list(weighted), list(weighted.values()))[0]


class Patterns:
    """Random patterns of the SASE+ language."""

    def __init__(self, rng: Random, size: int) -> None:
        self.rng = rng
        self.left = size
        self.vars: list[Var] = []
        self.edges = False  # whether a negation stands at an end, which needs a window

    def pattern(self) -> Part:
        parts: list[Part] = []
        rng = self.rng
        if chance(rng, 0.07):
            parts.append(self.negation(False))
            self.edges = True
        while self.left > 0:
            if parts and chance(rng, 0.17):
                parts.append(self.negation(False))
            parts.append(self.item(False, 0))
            if chance(rng, 0.12):
                break
        if chance(rng, 0.08):
            parts.append(self.negation(False))
            self.edges = True
        whole = sequence(parts)
        return Part(f"SEQ({whole.text})", whole.sample)

    def item(self, grouped: bool, depth: int) -> Part:
        kinds = {"component": 9, "kleene": 5, "optional": 1.5}
        if self.left > 1:
            kinds |= {"group": 2.5 if depth == 0 else 1.2 if depth == 1 else 0, "choice": 1.5, "set": 2.0}
        kind = pick(self.rng, kinds)
        match kind:
            case "group":
                return self.group(grouped, depth)
            case "choice":
                return self.choice(grouped, depth)
            case "set":
                return self.set(grouped)
            case _:
                return self.component(kind, grouped)

    def new(self, **known: bool) -> tuple[Var, str]:
        var = Var("abcdefghijklmn"[len(self.vars)], **known)
        self.vars.append(var)
        # Mostly a type of its own, so that events are not all alike; sometimes another's, or any.
        kind = TYPES[len(self.vars) - 1] if len(self.vars) <= len(TYPES) else "E"
        if chance(self.rng, 0.25):
            kind = self.rng.choice(TYPES[:3])
        if chance(self.rng, 0.04):
            kind = "ANY"
        return var, kind

    def types(self, kind: str) -> tuple[str, Callable[[Random], str]]:
        """A type as it is written, and the type of an event that it binds; now and then a union of two."""
        if kind == "ANY":
            return kind, lambda rng: "X"
        if chance(self.rng, 0.05):
            other = self.rng.choice(TYPES)
            return f"({kind}|{other})", lambda rng: rng.choice((kind, other))
        return kind, lambda rng: kind

    def component(self, kind: str, grouped: bool) -> Part:
        self.left -= 1
        rng = self.rng
        var, one = self.new(kleene=kind == "kleene", grouped=grouped)
        name, of = self.types(one)
        if kind == "component":
            return Part(f"{name} {var.name}", lambda rng: [of(rng)])
        if kind == "optional":
            return Part(f"{name}? {var.name}", lambda rng: [of(rng)] * rng.randint(0, 1))
        sign, low, high = pick(
            rng,
            {("+", 1, 3): 6, ("*", 0, 2): 2, ("{2}", 2, 2): 1.5, ("{1,2}", 1, 2): 1, ("{2,3}", 2, 3): 1,
             ("{2,}", 2, 3): 1, ("{0,2}", 0, 2): 0.5},
        )  # fmt: skip
        return Part(f"{name}{sign} {var.name}[]", lambda rng: [of(rng) for _ in range(rng.randint(low, high))])

    def negation(self, grouped: bool) -> Part:
        var, name = self.new(negated=True, grouped=grouped)
        return Part(f"~{name} {var.name}", lambda rng: [])

    def group(self, grouped: bool, depth: int) -> Part:
        sign, low, high = pick(
            self.rng,
            {("+", 1, 2): 5, ("*", 0, 2): 1, ("{2}", 2, 2): 3, ("?", 0, 1): 1.5, ("{1,2}", 1, 2): 1, ("{2,}", 2, 2): 1,
             ("{2,3}", 2, 3): 1},
        )  # fmt: skip
        inside = grouped or sign != "?"
        count = min(self.left, self.rng.choice((1, 2, 2, 2, 3)))
        reserved, self.left = self.left - count, count
        parts = []
        if chance(self.rng, 0.06) and depth == 0:
            parts.append(self.negation(inside))
            self.edges = True
        while self.left > 0:
            if parts and chance(self.rng, 0.15):
                parts.append(self.negation(inside))
            parts.append(self.item(inside, depth + 1))
        if chance(self.rng, 0.06) and depth == 0:
            parts.append(self.negation(inside))
            self.edges = True
        self.left = reserved
        whole = sequence(parts)

        def sample(rng: Random) -> list[str]:
            return [name for _ in range(rng.randint(low, high)) for name in whole.sample(rng)]

        return Part(f"({whole.text}){sign}", sample)

    def choice(self, grouped: bool, depth: int) -> Part:
        """Alternatives of one item or two; now and then repeated, now and then with one variable in both."""
        rng = self.rng
        sign, low, high = pick(rng, {("", 1, 1): 7, ("+", 1, 3): 1.5, ("?", 0, 1): 0.7, ("{2}", 2, 2): 0.8})
        inside = grouped or sign in ("+", "{2}")
        if chance(rng, 0.2):
            self.left -= 2
            var, left = self.new(grouped=inside)
            right = rng.choice(TYPES[:4])
            options = [Part(f"{left} {var.name}", lambda rng: [left]), Part(f"{right} {var.name}", lambda rng: [right])]
        else:
            options = []
            while len(options) < 2 or (self.left > 0 and chance(rng, 0.15)):
                parts = [self.item(inside, depth + 1)]
                if self.left > 0 and chance(rng, 0.3):
                    if chance(rng, 0.2):
                        parts.append(self.negation(inside))
                    parts.append(self.item(inside, depth + 1))
                options.append(sequence(parts))

        def sample(rng: Random) -> list[str]:
            return [name for _ in range(rng.randint(low, high)) for name in rng.choice(options).sample(rng)]

        return Part("(" + " | ".join(part.text for part in options) + ")" + sign, sample)

    def set(self, grouped: bool) -> Part:
        parts = []
        for _ in range(min(self.left, self.rng.choice((2, 2, 2, 3)))):
            kind = pick(self.rng, {"component": 6, "kleene": 3, "optional": 1})
            parts.append(self.component(kind, grouped))

        def sample(rng: Random) -> list[str]:
            names = [name for part in parts for name in part.sample(rng)]
            rng.shuffle(names)
            return names

        return Part("{" + ", ".join(part.text for part in parts) + "}", sample)


def sequence(parts: list[Part]) -> Part:
    return Part(", ".join(part.text for part in parts), lambda rng: [n for part in parts for n in part.sample(rng)])


# Predicates


class Predicates:
    """Random conjuncts over the variables of a pattern."""

    def __init__(self, rng: Random, variables: list[Var]) -> None:
        self.rng = rng
        self.vars = variables
        self.bound = [var for var in variables if not var.negated]
        self.kleene = [var for var in self.bound if var.kleene]

    def conjuncts(self) -> list[str]:
        rng = self.rng
        count = pick(rng, {0: 3, 1: 4, 2: 3, 3: 1.2})
        out = [self.conjunct() for _ in range(count)]
        if chance(rng, 0.12):
            out += self.equalities()
        for var in self.vars:
            if var.negated and chance(rng, 0.5):
                out.append(self.about(var))
        rng.shuffle(out)
        return out

    def equalities(self) -> list[str]:
        """A chain of equalities, perhaps through all variables, which makes a partition attribute."""
        rng = self.rng
        names = [var.name for var in self.vars]
        if chance(rng, 0.4):
            rng.shuffle(names)
            names = names[: rng.randint(2, max(2, len(names)))]
        column = pick(rng, {"k": 3, "x": 1, "y": 1})
        out = [f"{v}.{column} = {w}.{column}" for v, w in pairwise(names)]
        if chance(rng, 0.15):
            out.append(f"{names[0]}.{column} = {rng.randint(1, 2)}")
        # No condition can speak of two negated variables.
        negated = [f"{var.name}." for var in self.vars if var.negated]
        return [one for one in out if sum(name in one for name in negated) < 2]

    def conjunct(self) -> str:
        rng = self.rng
        kind = pick(
            rng, {"kleene": 6 if self.kleene else 0, "pair": 5 if len(self.bound) > 1 else 0, "single": 3, "or": 1.2}
        )
        if kind == "kleene":
            return self.of_kleene(rng.choice(self.kleene))
        if kind == "pair":
            return self.pair(*rng.sample(self.bound, 2))
        if kind == "single":
            return self.single(rng.choice(self.bound))
        left, right = self.plain(), self.plain()
        return f"({left} OR {right})" if chance(rng, 0.7) else f"NOT ({left} AND {right})"

    def plain(self) -> str:
        if len(self.bound) > 1 and chance(self.rng, 0.5):
            return self.pair(*self.rng.sample(self.bound, 2))
        return self.single(self.rng.choice(self.bound))

    def compare(self) -> str:
        return pick(self.rng, {"<": 1, "<=": 2.5, ">": 1, ">=": 2.5, "!=": 2, "=": 0.7})

    def column(self) -> str:
        return self.rng.choice(("x", "x", "x", "y", "y", "f"))

    def about(self, var: Var) -> str:
        """A conjunct of a negation."""
        rng = self.rng
        if self.bound and chance(rng, 0.65):
            if self.kleene and chance(rng, 0.6):
                return self.about_kleene(var, rng.choice(self.kleene))
            return self.pair(var, rng.choice(self.bound))
        return self.single(var)

    def about_kleene(self, negated: Var, var: Var) -> str:
        """A conjunct of a negation with the events of a repetition, perhaps with those of another variable."""
        rng, n, a, c, d, op = self.rng, negated.name, var.name, self.column(), self.column(), self.compare()
        bound = [v.name for v in self.bound if v is not var]
        b = f"{rng.choice(bound)}.{self.column()}" if bound else f"{n}.y"
        function = rng.choice(("avg", "sum", "min", "max", "count", "first", "last"))
        return pick(
            rng,
            {
                f"{n}.{c} {op} {a}[i-1].{d}": 3,
                f"{n}.{c} {op} {a}[i].{d} + {a}[i-1].{d}": 1,
                f"{n}.{c} + {b} {op} {a}[i-1].{d}": 1,
                f"{n}.{c} {op} {function}({a}[..i-1].{d})": 1,
                f"{n}.{c} {op} {function}({a}[].{d})": 1,
                f"{n}.{c} {op} {a}[{a}.LEN].{d}": 1,
                f"{n}.{c} {op} {a}[{rng.randint(1, 2)}].{d}": 1,
                f"{n}.{c} {op} {a}[i].{d} + {a}[2].{d}": 0.7,
                f"{n}.{c} {op} {a}.LEN": 0.5,
            },
        )

    def single(self, var: Var) -> str:
        rng, v, column = self.rng, var.name, self.column()
        n = rng.randint(0, 3)
        return pick(
            rng,
            {
                f"{v}.{column} {self.compare()} {n}": 5,
                f"{v}.{column} IN ({n}, {rng.randint(0, 3)})": 1,
                f"{v}.{column} NOT IN ({n}, {rng.randint(0, 3)})": 0.7,
                f"{v}.{column} BETWEEN {min(n, 1)} AND {n + 1}": 1,
                f"{v}.{column} NOT BETWEEN 3 AND {n + 3}": 0.5,
                f"{v}.{column} IS NULL": 0.4,
                f"{v}.{column} IS NOT NULL": 1,
                f"{v}.{column} % 2 = {n % 2}": 0.7,
                f"({v}.x + {v}.y) {self.compare()} {n}": 0.7,
                f"{v}.s = 'p'": 0.7,
                f"{v}.s LIKE 'p%'": 0.4,
                f"coalesce({v}.{column}, 1) {self.compare()} {n}": 0.4,
                # As of a repetition, of a variable that binds one event.
                f"{v}{self.whole(var)}": 0 if var.kleene or var.negated else 0.6,
            },
        )

    def whole(self, var: Var) -> str:
        """What can be said of a whole repetition, behind the variable's name."""
        column, op, n = self.column(), self.compare(), self.rng.randint(0, 3)
        return self.rng.choice(
            (
                f".LEN {op} 1",
                f"[1].{column} {op} {n}",
                f"[{var.name}.LEN].{column} {op} {n}",
                f".x {op} sum({var.name}[].y)",
            )
        )

    def pair(self, one: Var, two: Var) -> str:
        rng, v, w = self.rng, one.name, two.name
        c, d = self.column(), self.column()
        n = rng.randint(0, 3)
        return pick(
            rng,
            {
                f"{v}.{c} {self.compare()} {w}.{d}": 5,
                f"{v}.{c} = {w}.{d}": 1,
                f"{v}.{c} {self.compare()} {w}.{d} + {n}": 1,
                f"abs({v}.{c} - {w}.{d}) <= {n}": 1.2,
                f"{v}.{c} + {w}.{d} {self.compare()} {n}": 1,
                f"{v}.ts - {w}.ts <= {n}": 1,
                f"{v}.{c} {self.compare()} 2 * {w}.{d} - 1": 0.7,
                f"{v}.s = {w}.s": 0.5,
            },
        )

    def of_kleene(self, var: Var) -> str:
        """All the ways of referring to the events of a repetition."""
        rng, a, c = self.rng, var.name, self.column()
        n = rng.randint(0, 3)
        others = [v for v in self.bound if v is not var]
        w = f"{rng.choice(others).name}.{self.column()}" if others else str(n)
        function = rng.choice(("avg", "sum", "min", "max", "count", "first", "last"))
        op = self.compare()
        return pick(
            rng,
            {
                f"{a}[1].{c} {op} {n}": 1.5,
                f"{a}[2].{c} {op} {n}": 0.6,
                f"{a}[1].{c} {op} {w}": 1,
                f"{w} {op} {a}[{1 + n % 2}].{c}": 1.5,
                f"{a}[2].{c} {op} {a}[1].{c}": 0.7,
                f"{a}[i].{c} {op} {a}[2].{self.column()}": 0.5,
                f"{a}[i].{c} {op} {n}": 1,
                f"{a}[i].{c} {op} {w}": 1,
                f"{a}[i].{c} {op} {a}[i-1].{c}": 3,
                f"{a}.{c} {op} prev({a}.{c})": 0.7,
                f"{a}[i].{c} {op} {function}({a}[..i-1].{c})": 4,
                f"{a}[i].{c} {op} count({a}[..i-1])": 0.7,
                f"{a}[i].{c} >= {a}[1].{c}": 1,
                f"{a}[1].{c} {op} {a}[i].{self.column()}": 0.3,
                f"{a}[i-1].{c} {op} {w}": 0.6,
                f"({a}[i].{c} {op} {a}[i-1].{c} OR {a}[i].y = {n})": 0.7,
                f"{w} {op} {a}[{a}.LEN].{c}": 2,
                f"{a}[{a}.LEN].{c} {op} {a}[1].{c}": 0.7,
                f"{a}.LEN {op} {max(n, 1)}": 1,
                f"{function}({a}[].{c}) {op} {w}": 3,
                f"count({a}[]) <= {n + 1}": 0.7,
                f"{a}.{c} <= max({a}[].y)": 0.4,
            },
        )

    def having(self) -> str:
        rng, var = self.rng, self.rng.choice(self.bound)
        v, c, n = var.name, self.column(), rng.randint(0, 3)
        forms = {
            f"{v}.{c} {self.compare()} {n}": 2.0,
            f"{v}.{c} IS NOT NULL": 0.7,
            f"({v}.{c} IS NULL OR {v}.{c} {self.compare()} {n})": 0.7,
        }
        if var.kleene:
            function = rng.choice(("avg", "sum", "min", "max", "count", "first", "last"))
            forms |= {
                f"count({v}[]) {self.compare()} {n}": 2,
                f"{function}({v}[].{c}) {self.compare()} {n}": 2,
                f"{v}[1].{c} {self.compare()} {n}": 1,
                f"{v}[{v}.LEN].{c} {self.compare()} {v}[1].{c}": 1,
            }
        return pick(rng, forms)

    def returned(self) -> str:
        rng, var = self.rng, self.rng.choice(self.bound)
        forms = {f"{var.name}.{self.column()}": 2.0, f"{var.name}.ts": 1, f"count({var.name}[])": 1}
        if var.kleene:
            forms |= {f"{rng.choice(('avg', 'sum', 'max', 'first'))}({var.name}[].x)": 2, f"{var.name}.LEN": 0.5}
        return pick(rng, forms)


# Queries


def sase(rng: Random, seed: int) -> Case:
    kind = rng.random()
    if kind < 0.03:
        return composed(rng, seed)
    text, options, pattern = sase_text(rng) if kind > 0.08 else repetition_before_negation(rng)
    heavy = "any_match" in text or bool(options.get("errors"))
    size = rng.randint(4, 10 if heavy else 14)
    return with_stream_options(rng, Case(seed, False, text, options, random_stream(rng, pattern, size, TYPES + "X")))


def sase_text(rng: Random, size: int | None = None) -> tuple[str, dict[str, Any], Part]:
    """A query's text, its options, and its pattern."""
    patterns = Patterns(rng, size or pick(rng, {1: 0.7, 2: 2.5, 3: 4, 4: 2.5, 5: 1, 6: 0.5}))
    pattern = patterns.pattern()
    bound = [var for var in patterns.vars if not var.negated]
    strategy = rng.choice(STRATEGIES)
    predicates = Predicates(rng, patterns.vars)
    conjuncts = predicates.conjuncts()
    if chance(rng, 0.55 if strategy == "partition_contiguity" else 0.25):
        conjuncts.insert(0, pick(rng, {"[k]": 8, "[k, s]": 0.7, "[s]": 0.7}))
    text = f"PATTERN {pattern.text}\nWHERE {strategy}"
    if conjuncts:
        text += " { " + " AND ".join(conjuncts) + " }"
    within = random_window(rng, patterns.edges)
    if within:
        text += f"\nWITHIN {within}"
    if chance(rng, 0.12):
        text += f"\nHAVING {predicates.having()}"
    if chance(rng, 0.08):
        text += f"\nRETURN {predicates.returned()} AS r, {predicates.returned()} AS x"
    shares = {"": 8, "NON OVERLAP": 0.7, "LONGEST NON OVERLAP": 0.7, "EARLIEST MAXIMAL": 1.2, "after skip": 2.2}
    output = pick(rng, shares)
    if output == "after skip":
        output = random_output(rng, [var.name for var in bound])
    if output:
        text += f"\nOUTPUT {output}"
    options = random_errors(rng, [var.name for var in bound], [v.name for v in patterns.vars if v.negated])
    return text, options | random_surplus(rng, strategy, options), pattern


def random_output(rng: Random, variables: list[str]) -> str:
    """Return the choice among the matches of a query with these variables."""
    if rng.random() < 0.5:
        return rng.choice(["NON OVERLAP", "LONGEST NON OVERLAP", "SHORTEST NON OVERLAP"])
    variable = rng.choice(variables)
    target = rng.choice(["PAST LAST EVENT", "TO NEXT EVENT", f"TO FIRST {variable}", f"TO LAST {variable}"])
    return f"{rng.choice(['LONGEST', 'SHORTEST'])} AFTER MATCH SKIP {target}"


def repetition_before_negation(rng: Random) -> tuple[str, dict[str, Any], Part]:
    """A query's text, its options, and its pattern, in whose runs the negated event mostly stands where it may not."""
    patterns = Patterns(rng, 4)
    parts = [patterns.component("kleene", False)]
    if chance(rng, 0.4):
        parts.append(patterns.component(pick(rng, {"component": 2, "kleene": 1, "optional": 1}), False))
        rng.shuffle(parts)
    negation = patterns.negation(False)
    negated, kind = patterns.vars[-1], negation.text.partition(" ")[0].removeprefix("~").replace("ANY", "X")
    behind = patterns.component(pick(rng, {"component": 4, "kleene": 1}), False)
    predicates = Predicates(rng, patterns.vars)
    conjuncts = ["[k]"] if chance(rng, 0.3) else []
    conjuncts += [predicates.about_kleene(negated, rng.choice(predicates.kleene)) for _ in range(rng.choice((1, 1, 2)))]
    strategy = pick(rng, {"skip_till_any_match": 3, "skip_till_next_match": 2, "partition_contiguity": 0.5})
    text = f"PATTERN SEQ({sequence([*parts, negation, behind]).text})\nWHERE {strategy} {{ {' AND '.join(conjuncts)} }}"
    text += pick(rng, {"": 1, "\nWITHIN 6": 1, "\nWITHIN 10": 2, "\nWITHIN 7 EVENTS": 1})
    planted = Part(negation.text, lambda rng: [kind] if chance(rng, 0.7) else [])
    options = random_errors(rng, [var.name for var in predicates.bound], [negated.name]) if chance(rng, 0.5) else {}
    return text, options, sequence([*parts, planted, behind])


def composed(rng: Random, seed: int) -> Case:
    """A query over the matches of two others."""
    inner = [source(rng) for _ in range(2)]
    text, _, _ = sase_text(rng, rng.randint(1, 3))
    # Its types are those of the sources.
    text = re.sub(r"\b[C-E]\b", lambda found: "AB"[ord(found[0]) % 2], text)
    stream = random_stream(rng, sequence([pattern for _, pattern in inner]), rng.randint(5, 10), TYPES)
    return Case(seed, False, f"FROM ({inner[0][0]}) AS A, ({inner[1][0]}) AS B\n{text}", {}, stream)


def source(rng: Random) -> tuple[str, Part]:
    """A query whose matches have the attributes of the stream itself: k as its key, the others returned."""
    patterns = Patterns(rng, rng.randint(1, 2))
    pattern = patterns.pattern()
    predicates = Predicates(rng, patterns.vars)
    # An equality could make a key of an attribute that is returned as well.
    conjuncts = ["[k]"] + [one for one in predicates.conjuncts() if " = " not in one and chance(rng, 0.5)]
    text = f"PATTERN {pattern.text}\nWHERE {rng.choice(STRATEGIES)} {{ {' AND '.join(conjuncts)} }}"
    if window := random_window(rng, patterns.edges):
        text += f"\nWITHIN {window}"
    var = rng.choice(predicates.bound).name
    text += f"\nRETURN {var}.x AS x, count({var}[]) AS y, {var}.f AS f, {var}.s AS s"
    return text + (
        f"\nOUTPUT {rng.choice(('', 'LONGEST ', 'SHORTEST '))}NON OVERLAP" if chance(rng, 0.1) else ""
    ), pattern


def with_stream_options(rng: Random, case: Case) -> Case:
    """Sometimes with a column of ids, or with ties broken by a column."""
    stream: dict[str, str] = {}
    if chance(rng, 0.1):
        stream["id"] = "id"
    if chance(rng, 0.1):
        stream["seq"] = "seq"
    events = case.events
    if chance(rng, 0.1):
        events = rng.sample(events, len(events))
    return replace(case, stream=stream, events=events)


def random_window(rng: Random, needed: bool) -> str:
    kind = pick(rng, {"": 0 if needed else 3, "ticks": 4, "events": 3})
    if kind == "ticks":
        return str(rng.choice((0, 1, 2, 3, 4, 5, 6, 8, 10)))
    return f"{rng.randint(1, 8)} EVENTS" if kind else ""


def random_errors(rng: Random, bound: list[str], negated: list[str]) -> dict[str, Any]:
    errors: Any = pick(rng, {0: 5, 1: 3, 2: 1.6, 3: 0.5})
    out: dict[str, Any] = {}
    weights: dict[str, Any] = {}
    if chance(rng, 0.25):
        for var in bound:
            if chance(rng, 0.5):
                weights[var] = pick(rng, {0.5: 3, 2: 2, 1.5: 1, float("inf"): 1.5, 0.25: 0.3})
    for var in negated:
        if chance(rng, 0.3):
            weights[var] = pick(rng, {1: 2, 0.5: 2, 2: 1})
    if weights and errors and chance(rng, 0.3):
        errors = errors - 0.5
    if errors:
        out["errors"] = errors
    if weights:
        out["weights"] = weights
    return out


def random_surplus(rng: Random, strategy: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Sometimes what a surplus event costs, where there can be one."""
    if "contiguity" not in strategy or not options.get("errors") or not chance(rng, 0.5):
        return {}
    return {"surplus": pick(rng, {1: 4, 0.5: 2, 2: 1, 1.5: 0.5, 0.25: 0.3})}


def letters(rng: Random, seed: int) -> Case:
    part = expression(rng, pick(rng, {1: 0.3, 2: 2, 3: 4, 4: 3, 5: 1}), 0)
    strategy = rng.choice(STRATEGIES)
    options: dict[str, Any] = {"strategy": strategy}
    window = random_window(rng, False)
    options["within"] = window if "EVENTS" in window else int(window) if window else None
    if chance(rng, 0.25):
        options["by"] = "k"
    if chance(rng, 0.15):
        options["output"] = rng.choice(
            ("non_overlap", "earliest_maximal", "longest_non_overlap", "shortest_non_overlap")
        )
    names = sorted({c for c in part.text if c.isalpha()})
    options |= random_errors(rng, names, [])
    options |= random_surplus(rng, strategy, options)
    heavy = strategy == "skip_till_any_match" or bool(options.get("errors"))
    size = rng.randint(4, 10 if heavy else 14)
    return with_stream_options(rng, Case(seed, True, part.text, options, random_stream(rng, part, size, "abcdx")))


def expression(rng: Random, size: int, depth: int) -> Part:
    """A random letter expression with ``size`` letters."""
    parts = []
    while size > 0:
        kind = pick(
            rng,
            {"letter": 6, "group": 2 if size > 1 and depth < 2 else 0, "choice": 1.5 if size > 1 and depth < 2 else 0},
        )
        if kind == "letter":
            size -= 1
            parts.append(single_letter(rng))
        else:
            inner = rng.randint(2, min(size, 3))
            size -= inner
            if kind == "group":
                part = expression(rng, inner, depth + 1)
                text, sample = f"({part.text})", part.sample
            else:
                left, right = expression(rng, 1, depth + 1), expression(rng, inner - 1, depth + 1)
                text = f"({left.text}|{right.text})"
                sample = either(left, right)
            parts.append(repeated(rng, Part(text, sample), 0.5 if kind == "group" else 0.3))
    return Part("".join(part.text for part in parts), sequence(parts).sample)


def either(left: Part, right: Part) -> Callable[[Random], list[str]]:
    return lambda rng: rng.choice((left, right)).sample(rng)


def single_letter(rng: Random) -> Part:
    if chance(rng, 0.03):
        return repeated(rng, Part(".", lambda rng: ["x"]), 0.3)
    letter = rng.choice("aabbccd")
    return repeated(rng, Part(letter, lambda rng: [letter]), 0.3)


def repeated(rng: Random, part: Part, p: float) -> Part:
    if not chance(rng, p):
        return part
    sign, low, high = pick(
        rng, {("+", 1, 3): 4, ("*", 0, 2): 2, ("?", 0, 1): 2, ("{2}", 2, 2): 1.5, ("{1,2}", 1, 2): 1, ("{2,}", 2, 3): 1}
    )
    return Part(
        part.text + sign, lambda rng: [name for _ in range(rng.randint(low, high)) for name in part.sample(rng)]
    )


# Streams


def random_stream(rng: Random, pattern: Part, size: int, alphabet: str) -> list[Row]:
    """Runs of the pattern, one after another and into each other, with noise."""
    types: list[str] = []
    while len(types) < size:
        walk = pattern.sample(rng)
        if chance(rng, 0.25):
            # Into the one before.
            at = [rng.randint(0, len(types)) for _ in walk]
            for place, name in zip(sorted(at, reverse=True), reversed(walk), strict=True):
                types.insert(place, name)
        else:
            types += walk
        for _ in range(rng.choice((0, 0, 1, 1, 2))):
            types.insert(rng.randint(0, len(types)), rng.choice(alphabet))
    types = types[:size]
    keys = pick(rng, {1: 2, 2: 3, 3: 0.5})
    step = pick(rng, {(1,): 3, (0, 1): 2, (0, 1, 2): 2, (1, 2, 3): 1})
    trend = pick(rng, {"any": 3, "up": 1.5, "same": 1})
    ts, now, rows = rng.randint(0, 3), rng.randint(0, 3), []
    for i, name in enumerate(types):
        ts += rng.choice(step) if i else 0
        now = {"any": rng.randint(0, 3), "up": min(now + rng.randint(0, 1), 5), "same": now}[trend]
        rows.append(
            {
                "ts": ts,
                "type": name,
                "k": None if chance(rng, 0.03) else rng.randint(1, keys),
                "x": None if chance(rng, 0.06) else now,
                "y": None if chance(rng, 0.06) else rng.randint(0, 3),
                "f": pick(rng, {None: 0.5, float("nan"): 0.5, 0.5: 4, 1.0: 3, 2.25: 2}),
                "s": None if chance(rng, 0.05) else rng.choice(("p", "p", "pq", "r")),
                "seq": rng.randint(0, 3),
                "id": f"e{(i * 7) % 10}{i}",
            }
        )
    return rows


def random_case(seed: int) -> Case:
    """The case of a seed."""
    rng = Random(seed)
    return letters(rng, seed) if chance(rng, 0.25) else sase(rng, seed)


# Shrinking


PLAINEST = (("s", None), ("f", None), ("k", 1), ("k", None), ("y", 0), ("y", None), ("x", 0), ("x", None))
"""Values to which those of columns are shrunk: first to a plain one, then to null."""


def shrink(case: Case, fails: Callable[[Case], bool]) -> Case:
    """A case that still fails, from which nothing can be taken any more."""
    again = True
    while again:
        again = False
        for smaller in smaller_cases(case):
            try:
                failing = fails(smaller)
            except AcepError:  # a text that is no query any more
                failing = False
            if failing:
                case, again = smaller, True
                break
    return case


def smaller_cases(case: Case) -> Iterator[Case]:
    """The case with a little less: an event, a clause, a conjunct, an option, a part of the pattern, a value."""
    for i in reversed(range(len(case.events))):
        yield replace(case, events=case.events[:i] + case.events[i + 1 :])
    for name in case.stream:
        yield replace(case, stream={k: v for k, v in case.stream.items() if k != name})
    if case.events != sorted(case.events, key=lambda row: row["ts"]):
        yield replace(case, events=sorted(case.events, key=lambda row: row["ts"]))
    for name in case.options:
        yield replace(case, options={k: v for k, v in case.options.items() if k != name})
    if "weights" in case.options:
        for var in case.options["weights"]:
            less = {k: v for k, v in case.options["weights"].items() if k != var}
            yield replace(case, options={**case.options, "weights": less})
    if case.options.get("errors", 0) > 1:
        yield replace(case, options={**case.options, "errors": case.options["errors"] - 1})
    for text in smaller_texts(case.text, case.letters):
        gone = {w: v for w, v in case.options.get("weights", {}).items() if f"{w}" in text}
        options = {**case.options, "weights": gone} if "weights" in case.options else case.options
        yield replace(case, text=text, options=options)
    for i, row in enumerate(case.events):
        for name, plain in PLAINEST:
            if row[name] != plain and not (row[name] is None and plain is not None):
                rows = [*case.events]
                rows[i] = {**row, name: plain}
                yield replace(case, events=rows)
    tidy = [{**row, "ts": i} for i, row in enumerate(case.events)]
    if tidy != case.events and any(a["ts"] > b["ts"] for a, b in zip(case.events, tidy, strict=True)):
        yield replace(case, events=tidy)


def smaller_texts(text: str, is_letters: bool) -> Iterator[str]:
    if is_letters:
        for i in range(len(text)):
            for length in (1, 2, 3, 4):
                yield text[:i] + text[i + length :]
        for i, c in enumerate(text):
            # A pair of parentheses.
            if c == "(":
                deep = 0
                for j in range(i, len(text)):
                    deep += (text[j] == "(") - (text[j] == ")")
                    if deep == 0:
                        yield text[:i] + text[i + 1 : j] + text[j + 1 :]
                        break
        return
    clauses = text.split("\n")
    for i in range(1, len(clauses)):
        if not clauses[i].startswith("WHERE") or "{" not in clauses[i]:
            if not clauses[i].startswith("WHERE"):
                yield "\n".join(clauses[:i] + clauses[i + 1 :])
            continue
        head, _, body = clauses[i].partition(" { ")
        conjuncts = split_conjuncts(body.removesuffix(" }"))
        for j in range(len(conjuncts)):
            less = conjuncts[:j] + conjuncts[j + 1 :]
            clause = head + (" { " + " AND ".join(less) + " }" if less else "")
            yield "\n".join([*clauses[:i], clause, *clauses[i + 1 :]])
    pattern = clauses[0]
    rest = "\n".join(clauses[1:])
    spans = list(pieces(pattern))
    for start, end in spans:
        shorter = pattern[:start] + pattern[end:]
        for bad, good in (
            (", )", ")"),
            ("(, ", "("),
            (", , ", ", "),
            ("{, ", "{"),
            (", }", "}"),
            (" | )", ")"),
            ("( | ", "("),
        ):
            shorter = shorter.replace(bad, good)
        yield shorter + "\n" + rest
    for sign in ("+", "*", "?", "{2}", "{1,2}", "{2,3}", "{2,}", "{0,2}", "[]"):
        at = pattern.find(sign)
        while at >= 0:
            yield pattern[:at] + pattern[at + len(sign) :] + "\n" + rest
            at = pattern.find(sign, at + 1)


def split_conjuncts(body: str) -> list[str]:
    """Split at the top-level ANDs; the AND of BETWEEN is not one."""
    words, out, deep, between = body.split(" "), [""], 0, False
    for word in words:
        if word == "AND" and deep == 0 and not between:
            out.append("")
            continue
        if word == "AND" and deep == 0:
            between = False
        if word == "BETWEEN" and deep == 0:
            between = True
        deep += word.count("(") - word.count(")")
        out[-1] += (" " if out[-1] else "") + word
    return out


def pieces(pattern: str) -> Iterator[tuple[int, int]]:
    """The spans of components and of bracketed parts."""
    stack: list[int] = []
    for i, c in enumerate(pattern):
        if c in "({":
            stack.append(i)
        elif c in ")}":
            start = stack.pop()
            if pattern[start + 1 : i].replace(",", "").isdigit() or not stack:
                continue
            end = i + 1
            while end < len(pattern) and pattern[end] in "+*?":
                end += 1
            if pattern[end : end + 1] == "{":
                end = pattern.index("}", end) + 1
            yield start, end
    for i, c in enumerate(pattern):
        if c.isupper() or c == "~":
            if i and (pattern[i - 1].isalnum() or pattern[i - 1] == "~"):
                continue
            if pattern[i:].startswith(("PATTERN", "SEQ")):
                continue
            end = i
            deep = 0
            while end < len(pattern) and not (deep == 0 and pattern[end] in ",|)}"):
                deep += (pattern[end] == "{") - (pattern[end] == "}")
                end += 1
            yield i, end
