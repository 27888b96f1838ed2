"""Random small queries over typed tables, each with an evaluation of its own in Python's exact arithmetic.

Nothing of acep is imported here: what a query means is said once more, by ``docs/reference/types.md``.
"""

from __future__ import annotations

import math
import operator
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any

from tests.types.typed_tables import LIMIT, TypedColumn, TypedTable

__all__ = ["Case", "Term", "random_case"]

Rows = dict[str, list[int]]  # variable: its rows
COMPARE = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
LITERALS = [
    "0",
    "1",
    "-1",
    "2",
    "7",
    "0.5",
    "1.1",
    "1.10",
    "1.105",
    "-0.01",
    "2.5",
    "100",
    "1e3",
    "9007199254740992",
    "9007199254740993",
    "9007199254740993.0",
    "90071992547409930.02",
    "9223372036854775807",
    "0.1",
    "1e-9",
    "1e300",
    "9223372036854775808.5",
    "1.0000000000000000000000001",
]


@dataclass(frozen=True)
class Term:
    """A piece of a query: its text, its kind (as of columns, or ``literal``), and its value for some rows.

    ``columns``: those that it reads. ``refused``: acep must refuse it.
    """

    text: str
    kind: str
    run: Callable[[Rows], Any]
    scale: int = 0
    columns: tuple[TypedColumn, ...] = ()
    shown: int | None = None  # the places in which a decimal is given back, if not its scale
    refused: bool = False
    literal: Fraction | None = None
    whole: bool = False  # of a literal: an integer without a decimal point


@dataclass(frozen=True)
class Case:
    """A query, the matches that it has (rows of x, row of y, values of RETURN), and whether it must be refused."""

    text: str
    expected: list[tuple[tuple[int, ...], int, tuple[Any, ...]]]
    returns: tuple[Term, ...]
    refused: bool


def random_case(table: TypedTable, rng: random.Random) -> Case:
    """A query over a table."""
    kleene = rng.random() < 0.3
    make = _Maker(table, rng)
    condition = make.condition(2, "y" if kleene else None)
    tie = rng.choice(list(table.columns.values())) if rng.random() < 0.3 else None
    returns = tuple(make.returned(kleene) for _ in range(rng.randint(0, 4)))
    asked = ", ".join(f"{term.text} AS v{i}" for i, term in enumerate(returns))
    where = " AND ".join(
        ([f"[{tie.name}]"] if tie else []) + [f"({condition.text})" if rng.random() < 0.5 else condition.text]
    )
    pattern = "SEQ(a+ x[], b y)" if kleene else "SEQ(a x, b y)"
    text = f"PATTERN {pattern} WHERE {where}" + (f" RETURN {asked}" if asked else "")
    refused = condition.refused or any(term.refused for term in returns) or (tie is not None and tie.refused)
    expected = []
    for rows in () if refused else _bindings(table, kleene):
        bound = [*rows["x"], *rows["y"]]
        keys = {_key(tie.values[row]) for row in bound} if tie else {0}
        if len(keys) == 1 and None not in keys and condition.run(rows) is True:
            expected.append((tuple(rows["x"]), rows["y"][0], tuple(term.run(rows) for term in returns)))
    return Case(text, expected, returns, refused)


def _key(value: Any) -> Any:
    return None if value is None else (value, type(value) is bool)


def _bindings(table: TypedTable, kleene: bool) -> Iterator[Rows]:
    first = [row for row, kind in enumerate(table.types) if kind == "a"]
    for last, kind in enumerate(table.types):
        if kind == "b":
            before = [row for row in first if row < last]
            for many in range(1, (len(before) if kleene else 1) + 1):
                for rows in combinations(before, many):
                    yield {"x": list(rows), "y": [last]}


def whole(value: int | Fraction | None) -> Any:
    """What fits into 64 bits, else null."""
    return value if value is not None and -LIMIT <= value < LIMIT else None


def exactly(value: Any) -> Any:
    """A number that compares exactly with any other."""
    return value if isinstance(value, float) and math.isinf(value) else Fraction(value)


def as_float(value: Any) -> float:
    """A number as the nearest double."""
    return float(value)


class _Maker:
    def __init__(self, table: TypedTable, rng: random.Random) -> None:
        self.table, self.rng = table, rng

    # Numbers.

    def number(self, depth: int, only: str | None) -> Term:
        columns = self.table.of_kind("int", "decimal", "float")
        if not columns:
            return _literal("1")
        chance = self.rng.random()
        if depth == 0 or chance < 0.5:
            return self.reference(self.rng.choice(columns), only)
        if chance < 0.85:
            left = self.number(depth - 1, only)
            right = self.number(depth - 1, only) if self.rng.random() < 0.6 else _literal(self.rng.choice(LITERALS))
            if left.literal is not None:
                return left
            return arithmetic(self.rng.choice("+-*/%"), left, right)
        return function(self.rng.choice(["-", "abs", "sign", "floor", "ceil", "round"]), self.number(depth - 1, only))

    def reference(self, column: TypedColumn, only: str | None) -> Term:
        var = only or self.rng.choice("xy")
        text = f"{var}.{column.name}"
        return Term(text, column.kind, lambda rows: column.values[rows[var][-1]], column.scale, (column,), column.shown)

    def one_of(self, kind: str, only: str | None) -> Term | None:
        columns = self.table.of_kind(kind)
        return self.reference(self.rng.choice(columns), only) if columns else None

    # Conditions.

    def condition(self, depth: int, only: str | None) -> Term:
        chance = self.rng.random()
        if depth and chance < 0.3:
            op = self.rng.choice(["AND", "OR"])
            left, right = self.condition(depth - 1, only), self.condition(depth - 1, only)
            return _both(op, left, right)
        if depth and chance < 0.36:
            inner = self.condition(depth - 1, only)
            return _derived(f"NOT ({inner.text})", [inner], lambda v: not v)
        if chance < 0.4 and (unusable := [c for c in self.table.columns.values() if c.refused]):
            column = self.rng.choice(unusable)
            return Term(f"{only or 'x'}.{column.name} IS NULL", "bool", lambda _: None, refused=True)
        return self.atom(only)

    def atom(self, only: str | None) -> Term:
        kind = self.rng.choice(["number"] * 5 + ["text", "time", "bool", "null"])
        if kind == "number":
            return self.numbers(only)
        if kind == "null" and (columns := [c for c in self.table.columns.values() if not c.refused]):
            term = self.reference(self.rng.choice(columns), only)
            return Term(f"{term.text} IS NULL", "bool", lambda rows: term.run(rows) is None)
        x = self.one_of(kind, only)
        if x is None:
            return self.numbers(only)
        y = self.one_of(kind, only)
        assert y is not None
        op = self.rng.choice([*COMPARE])
        if kind == "bool":
            return self.compared(self.rng.choice(["=", "!="]), x, y)
        if kind == "text":
            if self.rng.random() < 0.4:
                text = self.rng.choice(["", "a", "é", "e\u0301", "01", "zz"])
                y = Term(f"'{text}'", "text", lambda _: text)
            return self.compared(op, x, y)
        if self.table.timed and self.rng.random() < 0.4:
            y = Term("TIMESTAMP '2024-03-31 01:00:00'", "time", lambda _: 1711846800 * 10**9)
        return self.compared(op, x, y)

    def numbers(self, only: str | None) -> Term:
        x = self.number(1, only)
        chance = self.rng.random()
        if x.literal is not None or chance < 0.6:
            y = self.number(1, only) if self.rng.random() < 0.55 else _literal(self.rng.choice(LITERALS))
            return self.compared(self.rng.choice([*COMPARE]), x, y)
        others = [
            self.number(0, only) if self.rng.random() < 0.4 else _literal(self.rng.choice(LITERALS))
            for _ in range(self.rng.randint(2, 4))
        ]
        negated = self.rng.random() < 0.3
        word = "NOT " if negated else ""
        if chance < 0.8:
            parts = [compared("=", x, y) for y in others]
            inside = ", ".join(y.text for y in others)
            found = Term(
                f"{x.text} {word}IN ({inside})",
                "bool",
                lambda rows: _or([p.run(rows) for p in parts]),
                refused=x.refused or any(y.refused for y in others),
            )
        else:
            low, high = compared(">=", x, others[0]), compared("<=", x, others[1])
            found = Term(
                f"{x.text} {word}BETWEEN {others[0].text} AND {others[1].text}",
                "bool",
                lambda rows: _and([low.run(rows), high.run(rows)]),
                refused=low.refused or high.refused,
            )
        return _derived(found.text, [found], lambda v: not v) if negated else found

    def compared(self, op: str, x: Term, y: Term) -> Term:
        # Equalities between references at the top are closed under each other: they mean more than each says.
        found = compared(op, x, y)
        return _derived(f"({found.text}) = TRUE", [found], lambda v: v) if op == "=" else found

    # Values of RETURN.

    def returned(self, kleene: bool) -> Term:
        usable = [c for c in self.table.columns.values() if not c.refused]
        if not usable:
            return _literal("1")
        if kleene and self.rng.random() < 0.7:
            return self.aggregate(self.rng.choice(usable))
        if self.rng.random() < 0.3:
            return self.reference(self.rng.choice(usable), None if not kleene else "y")
        if self.rng.random() < 0.2:
            return self.same(kleene)
        return self.number(2, "y" if kleene else None)

    def aggregate(self, column: TypedColumn) -> Term:
        name = self.rng.choice(["count", "first", "last", "min", "max", "sum", "avg", "sum", "avg"])
        if (column.kind == "bool" and name in ("min", "max")) or (
            column.kind not in ("int", "decimal", "float") and name in ("sum", "avg")
        ):
            name = "count"
        kind = {"count": "int", "avg": "float"}.get(name, column.kind)
        shown = None if name == "sum" else column.shown
        text = f"{name}(x[].{column.name})"
        return Term(text, kind, lambda rows: _aggregate(name, column, rows["x"]), column.scale, shown=shown)

    def same(self, kleene: bool) -> Term:
        """least, greatest or coalesce."""
        x = self.number(0, "y" if kleene else None)
        y = self.number(0, "y" if kleene else None)
        name = self.rng.choice(["least", "greatest", "coalesce"])
        kinds = {x.kind, y.kind}
        if x.literal is not None:
            return x
        if kinds == {"int", "float"}:
            y = x
        floats = "float" in kinds and "decimal" in kinds
        scale = max(x.scale, y.scale)

        def run(rows: Rows) -> Any:
            known = [v for v in (x.run(rows), y.run(rows)) if v is not None]
            if not known:
                return None
            if floats:
                known = [as_float(v) for v in known]
            elif "decimal" in kinds and any(whole(v * 10**scale) is None for v in known):
                return None
            return known[0] if name == "coalesce" else (min if name == "least" else max)(known, key=exactly)

        text = f"{name}({x.text}, {y.text})"
        kind = "float" if floats else "decimal" if "decimal" in kinds else x.kind
        return Term(text, kind, run, scale, refused=x.refused or y.refused)


def _literal(text: str) -> Term:
    number = Fraction(text)
    plain = text.lstrip("-").isdecimal()
    return Term(text, "literal", lambda _: number, literal=number, whole=plain)


def _derived(text: str, parts: list[Term], function: Callable[..., Any]) -> Term:
    def run(rows: Rows) -> Any:
        values = [part.run(rows) for part in parts]
        return None if None in values else function(*values)

    return Term(text, "bool", run, refused=any(part.refused for part in parts))


def _and(values: list[Any]) -> Any:
    return False if False in values else None if None in values else True


def _or(values: list[Any]) -> Any:
    return True if True in values else None if None in values else False


def _both(op: str, x: Term, y: Term) -> Term:
    join = _and if op == "AND" else _or
    return Term(
        f"(({x.text}) {op} ({y.text}))",
        "bool",
        lambda rows: join([x.run(rows), y.run(rows)]),
        refused=x.refused or y.refused,
    )


def compared(op: str, x: Term, y: Term) -> Term:
    """A comparison: of numbers exactly, but a number that is written with a point is a double beside one."""
    other = y.kind if x.literal is not None else x.kind

    def value(term: Term, rows: Rows) -> Any:
        found = term.run(rows)
        if found is None or isinstance(found, str | bool) or term.kind == "time":
            return found
        if term.literal is not None and not term.whole and other in ("float", "literal"):
            found = float(found)
        return exactly(found)

    def run(rows: Rows) -> Any:
        a, b = value(x, rows), value(y, rows)
        return None if a is None or b is None else COMPARE[op](a, b)

    return Term(f"{x.text} {op} {y.text}", "bool", run, refused=x.refused or y.refused)


def arithmetic(op: str, x: Term, y: Term) -> Term:
    """Arithmetic: of doubles if there is one, else of integers and decimals, exactly; ``/`` gives a double."""
    text = f"({x.text} {op} {y.text})"
    refused = x.refused or y.refused
    exact = "decimal" in (x.kind, y.kind)
    if "float" in (x.kind, y.kind) or (not exact and y.literal is not None and not y.whole):
        return Term(text, "float", lambda rows: _doubles(op, x.run(rows), y.run(rows)), refused=refused)
    scales = [_places(term.literal) if term.literal is not None else term.scale for term in (x, y)]
    if op == "/":
        refused = refused or (exact and _too_long(y, scales[1]))
        return Term(text, "float", lambda rows: _quotient(x.run(rows), y.run(rows)), refused=refused)
    scale = sum(scales) if op == "*" else max(scales)
    own = scales[1] if op == "*" else scale
    refused = refused or (exact and (scale > 18 or _too_long(y, own)))

    def run(rows: Rows) -> Any:
        a, b = x.run(rows), y.run(rows)
        if a is None or b is None:
            return None
        if op in "+-%" and (whole(a * 10**scale) is None or whole(b * 10**scale) is None):
            return None  # both are given one scale first
        if op == "%":
            if b == 0:
                return None
            found = abs(a) % abs(b) * (-1 if a < 0 else 1)
        else:
            found = {"+": a + b, "-": a - b, "*": a * b}[op]
        return found if whole(found * 10**scale) is not None else None

    return Term(text, "decimal" if exact else "int", run, scale if exact else 0, refused=refused)


def _places(number: Fraction) -> int:
    return next(places for places in range(400) if (number * 10**places).denominator == 1)


def _too_long(term: Term, scale: int) -> bool:
    return term.literal is not None and (_places(term.literal) > 18 or whole(term.literal * 10**scale) is None)


def _doubles(op: str, a: Any, b: Any) -> Any:
    if a is None or b is None:
        return None
    a, b = as_float(a), as_float(b)
    try:
        found = {
            "+": lambda: a + b,
            "-": lambda: a - b,
            "*": lambda: a * b,
            "/": lambda: a / b,
            "%": lambda: math.fmod(a, b),
        }[op]()
    except (ZeroDivisionError, ValueError):
        return None
    return None if math.isnan(found) else found


def _quotient(a: Any, b: Any) -> Any:
    return None if a is None or b is None or b == 0 else float(Fraction(a) / Fraction(b))


def function(name: str, x: Term) -> Term:
    """A function of one number."""
    text = f"(-{x.text})" if name == "-" else f"{name}({x.text})"
    kind, scale = x.kind, x.scale
    if x.literal is not None or (name == "round" and kind == "float"):
        return x
    if name in ("sign", "floor", "ceil"):
        kind, scale = "int", 0

    def run(rows: Rows) -> Any:
        v = x.run(rows)
        if v is None:
            return None
        if name == "-":
            v = -v
        elif name == "abs":
            v = abs(v)
        elif name == "sign":
            v = (v > 0) - (v < 0)
        elif name == "round":
            v = Fraction(math.floor(abs(v) + Fraction(1, 2)) * (1 if v > 0 else -1)) if kind == "decimal" else v
        elif isinstance(v, float) and math.isinf(v):
            return None
        else:
            v = math.floor(v) if name == "floor" else math.ceil(v)
        return v if isinstance(v, float) or whole(v * 10**scale) is not None else None

    return Term(text, kind, run, scale, refused=x.refused)


def _aggregate(name: str, column: TypedColumn, rows: list[int]) -> Any:
    values = [column.values[row] for row in rows]
    if name in ("first", "last"):
        return values[0 if name == "first" else -1]
    known = [value for value in values if value is not None]
    if name == "count":
        return len(known)
    if not known:
        return None
    if name in ("min", "max"):
        return (min if name == "min" else max)(known)
    total = known[0]
    for value in known[1:]:
        total += value
    if column.kind == "float":
        total = total if name == "sum" else total / len(known)
        return None if math.isnan(total) else total
    if name == "avg":
        return float(Fraction(total) / len(known))
    return total if whole(total * 10**column.scale) is not None else None
