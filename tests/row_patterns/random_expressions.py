"""Random expressions for MEASURES and DEFINE, of the kind that their place asks for."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from tests.row_patterns import expressions as x
from tests.row_patterns.expressions import Expression

__all__ = ["ExpressionSource"]

COLUMNS = {"integer": ("x", "x", "x", "ts"), "float": ("y",), "text": ("s", "s", "k")}
COLUMNS_WITH_TIME = COLUMNS | {"integer": ("x",), "time": ("ts",)}
LITERALS: dict[str, tuple[int | float | str, ...]] = {
    "integer": (-1, 0, 1, 1, 2, 2, 3),
    "float": (0.5, 1.0, 1.5, -0.5),
    "text": ("a", "b", "c", "A"),
}
KINDS = ("integer", "integer", "float", "text")
NUMBERS = ("integer", "float")
COMPARISONS = ("=", "<>", "<", "<=", ">", ">=", "<=", ">=")
FREE = "any variable"
Scope = str | None


@dataclass
class ExpressionSource:
    """Draws expressions over variables and subsets; FINAL only if ``is_measure``.

    ``scope`` is ``FREE`` outside of navigation and aggregates; inside it is the one variable that may be read.
    """

    rng: Random
    names: tuple[str, ...]
    is_measure: bool
    has_time: bool = False

    @property
    def columns(self) -> dict[str, tuple[str, ...]]:
        """The columns of each kind."""
        return COLUMNS_WITH_TIME if self.has_time else COLUMNS

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of values to draw from."""
        return (*KINDS, "time") if self.has_time else KINDS

    def chance(self, share: float) -> bool:
        """Draw a yes with a probability."""
        return self.rng.random() < share

    def variable(self, scope: Scope) -> str | None:
        """Draw a variable to read."""
        names: tuple[Scope, ...] = (None, *self.names)
        return scope if scope != FREE else self.rng.choice(names)

    def draw(self, kind: str, depth: int = 2, scope: Scope = FREE) -> Expression:
        """Draw an expression of a kind."""
        if kind == "boolean":
            return self.condition(depth, scope)
        if depth <= 0 or self.chance(0.45):
            return self.column(kind, scope) if scope != FREE or self.chance(0.35) else self.term(kind, depth)
        return self.composite(kind, depth, scope)

    def column(self, kind: str, scope: Scope) -> Expression:
        """Draw a column, or now and then a constant."""
        if kind in LITERALS and self.chance(0.2):
            return x.Literal(self.rng.choice(LITERALS[kind]))
        return self.plain_column(kind, scope)

    def plain_column(self, kind: str, scope: Scope) -> Expression:
        """Draw a column, or for a text now and then a classifier."""
        if kind == "text" and self.chance(0.2):
            return x.Classifier(self.variable(scope))
        return x.Column(self.variable(scope), self.rng.choice(self.columns[kind]))

    def term(self, kind: str, depth: int) -> Expression:
        """Draw something that only stands outside of navigation and aggregates."""
        draw = self.rng.random()
        if draw < 0.4:
            return self.logical(kind, depth)
        if draw < 0.65:
            return self.physical(kind, depth)
        if draw < 0.93:
            return self.aggregate(kind, depth)
        if kind == "integer":
            return x.MatchNumber()
        return x.Classifier(self.variable(FREE)) if kind == "text" else self.plain_column(kind, FREE)

    def semantics(self) -> str | None:
        """Draw RUNNING, FINAL or neither."""
        choices: tuple[str | None, ...] = (None, None, "RUNNING")
        return self.rng.choice((*choices, "FINAL", "FINAL") if self.is_measure else choices)

    def argument(self, kind: str, depth: int) -> Expression:
        """Draw what a navigation or an aggregate reads: all columns of one variable, and at least one."""
        variable = self.variable(FREE)
        if self.chance(0.7):
            return self.plain_column(kind, variable)
        argument = self.draw(kind, min(depth - 1, 1), variable)
        reads = any(isinstance(part, (x.Column, x.Classifier)) for part in x.walk(argument))
        return argument if reads else self.plain_column(kind, variable)

    def logical(self, kind: str, depth: int) -> Expression:
        """Draw FIRST or LAST."""
        function = self.rng.choice(("FIRST", "LAST"))
        return x.Logical(
            function, self.argument(kind, depth), self.rng.choice((None, None, 0, 1, 1, 2)), self.semantics()
        )

    def physical(self, kind: str, depth: int) -> Expression:
        """Draw PREV or NEXT, of a navigation now and then."""
        function = self.rng.choice(("PREV", "PREV", "NEXT"))
        argument = self.logical(kind, depth) if self.chance(0.35) else self.argument(kind, depth)
        return x.Physical(function, argument, self.rng.choice((None, None, None, 0, 1, 2, 3)))

    def aggregate(self, kind: str, depth: int) -> Expression:
        """Draw an aggregate whose values are of a kind."""
        is_distinct, semantics = self.chance(0.2), self.semantics()
        if kind == "integer" and self.chance(0.3):
            return x.Aggregate("count", x.Rows(self.variable(FREE)), semantics=semantics)
        if kind == "integer" and self.chance(0.3):
            argument = self.argument(self.rng.choice(self.kinds), depth)
            return x.Aggregate("count", argument, is_distinct, semantics)
        if kind == "float" and self.chance(0.4):
            argument = self.argument(self.rng.choice(("integer", "float")), depth)
            return x.Aggregate("avg", argument, is_distinct, semantics)
        function = self.rng.choice(("sum", "sum", "min", "max") if kind in NUMBERS else ("min", "max"))
        return x.Aggregate(function, self.argument(kind, depth), is_distinct, semantics)

    def composite(self, kind: str, depth: int, scope: Scope) -> Expression:
        """Draw an expression that is made of others."""
        draw = self.rng.random()
        if kind in NUMBERS and draw < 0.5:
            left, right = self.operand(kind, depth - 1, scope), self.draw(kind, depth - 1, scope)
            return x.Arithmetic(self.rng.choice("+-*"), *self.rng.sample((left, right), 2))
        if kind in NUMBERS and draw < 0.6:
            return x.Abs(self.draw(kind, depth - 1, scope))
        if draw < 0.75:
            operands = [self.draw(kind, depth - 1, scope), self.operand(kind, depth - 1, scope)]
            if self.chance(0.2):
                operands.insert(self.rng.randrange(3), x.Literal(None))
            return x.Coalesce(tuple(operands))
        if self.chance(0.3):
            return self.simple_case(kind, depth, scope)
        n_branches = self.rng.choice((1, 1, 2))
        branches = [(self.condition(depth - 1, scope), self.draw(kind, depth - 1, scope)) for _ in range(n_branches)]
        default = self.rng.choice((None, x.Literal(None), self.operand(kind, depth - 1, scope)))
        return x.Case(tuple(branches), default)

    def simple_case(self, kind: str, depth: int, scope: Scope) -> Expression:
        """Draw a CASE that compares one value with constants."""
        compared_kind = self.rng.choice(KINDS)
        compared = self.draw(compared_kind, depth - 1, scope)
        constants = [x.Literal(self.rng.choice(LITERALS[compared_kind])) for _ in range(self.rng.choice((1, 2)))]
        branches = [
            (x.Comparison("=", compared, constant), self.draw(kind, depth - 1, scope)) for constant in constants
        ]
        return x.Case(tuple(branches), self.rng.choice((None, self.draw(kind, depth - 1, scope))))

    def operand(self, kind: str, depth: int, scope: Scope) -> Expression:
        """Draw a value that may stand beside one of a kind: a float beside integers, too."""
        return self.draw("integer" if kind == "float" and self.chance(0.2) else kind, depth, scope)

    def condition(self, depth: int, scope: Scope = FREE) -> Expression:
        """Draw a condition."""
        draw = self.rng.random()
        if depth > 0 and draw < 0.25:
            operator = self.rng.choice(("AND", "OR"))
            return x.Junction(operator, self.condition(depth - 1, scope), self.condition(depth - 1, scope))
        if depth > 0 and draw < 0.32:
            return x.Not(self.condition(depth - 1, scope))
        if draw < 0.35:
            return x.Literal(self.rng.choice((True, True, False, None)))
        kind = self.rng.choice(self.kinds)
        operand = self.draw(kind, depth - 1, scope)
        if draw < 0.43:
            return x.IsNull(operand, self.chance(0.5))
        if draw < 0.52:
            low, high = self.beside(kind, depth, scope), self.beside(kind, depth, scope)
            return x.Between(operand, low, high, self.chance(0.3))
        if draw < 0.61:
            choices = [self.beside(kind, depth, scope) for _ in range(self.rng.choice((1, 2, 3)))]
            if self.chance(0.15):
                choices.append(x.Literal(None))
            return x.In(operand, tuple(choices), self.chance(0.3))
        return x.Comparison(self.rng.choice(COMPARISONS), operand, self.beside(kind, depth, scope))

    def beside(self, kind: str, depth: int, scope: Scope) -> Expression:
        """Draw what a value is compared with: a constant, NULL now and then, or another expression."""
        if self.chance(0.02):
            return x.Literal(None)
        if kind in LITERALS and self.chance(0.45):
            return x.Literal(self.rng.choice(LITERALS[kind]))
        return self.operand(kind, depth - 1, scope)
