"""An expression as a list of SQL tokens, with spellings drawn at random."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TypeVar

from tests.row_patterns import expressions as x
from tests.row_patterns.expressions import Expression, Value

__all__ = ["ExpressionWriter"]

T = TypeVar("T")
OR, AND, NOT, PREDICATE, SUM, PRODUCT, PRIMARY = range(7)  # how tightly the operators bind


class ExpressionWriter:
    """Writes expressions; without a generator it always takes the plainest spelling."""

    def __init__(self, rng: Random | None) -> None:
        self.rng = rng

    def chance(self, share: float) -> bool:
        """Draw a yes with a probability; never without a generator."""
        return self.rng is not None and self.rng.random() < share

    def choose(self, choices: Sequence[T]) -> T:
        """Draw one of several; the first without a generator."""
        return choices[0] if self.rng is None else self.rng.choice(choices)

    def words(self, text: str) -> list[str]:
        """Return keywords, in any case."""
        return [self.choose((word, word, word.lower(), word.title())) for word in text.split()]

    def quoted(self, name: str) -> str:
        """Return a name in double quotes."""
        return f'"{name}"'

    def variable_name(self, name: str) -> str:
        """Return the name of a variable, which is in capitals unless it is folded."""
        return self.choose((name, name, name, name.lower(), self.quoted(name)))

    def column_name(self, name: str) -> str:
        """Return the name of a column, which is in small letters unless it is folded."""
        return self.choose((name, name, name, name.upper(), self.quoted(name)))

    def expression(self, expression: Expression, level: int = OR) -> list[str]:
        """Return the tokens of an expression, in parentheses if it binds less tightly than its place asks for."""
        tokens, own_level = self.operation(expression)
        return ["(", *tokens, ")"] if own_level < level or self.chance(0.04) else tokens

    def operation(self, expression: Expression) -> tuple[list[str], int]:
        """Return the tokens of an expression, and how tightly its operator binds."""
        match expression:
            case x.Junction(operator, left, right):
                own_level = AND if operator == "AND" else OR
                tokens = [*self.expression(left, own_level), *self.words(operator)]
                return tokens + self.expression(right, own_level + 1), own_level
            case x.Not(operand):
                return [*self.words("NOT"), *self.expression(operand, PREDICATE)], NOT
            case x.Comparison(operator, left, right):
                spelling = self.choose(("<>", "!=")) if operator == "<>" else operator
                return [*self.expression(left, SUM), spelling, *self.expression(right, SUM)], PREDICATE
            case x.IsNull(operand, is_negated):
                tokens = self.expression(operand, SUM)
                return tokens + self.words("IS NOT NULL" if is_negated else "IS NULL"), PREDICATE
            case x.Between(operand, low, high, is_negated):
                tokens = [*self.expression(operand, SUM), *self.words("NOT BETWEEN" if is_negated else "BETWEEN")]
                tokens += [*self.expression(low, SUM), *self.words("AND"), *self.expression(high, SUM)]
                return tokens, PREDICATE
            case x.In(operand, choices, is_negated):
                tokens = [*self.expression(operand, SUM), *self.words("NOT IN" if is_negated else "IN")]
                return [*tokens, *self.arguments(choices)], PREDICATE
            case x.Arithmetic(operator, left, right):
                own_level = PRODUCT if operator == "*" else SUM
                tokens = [*self.expression(left, own_level), operator]
                return tokens + self.expression(right, own_level + 1), own_level
            case x.Case(branches, default):
                return self.case(branches, default), PRIMARY
            case _:
                return self.call(expression), PRIMARY

    def arguments(self, expressions: Sequence[Expression]) -> list[str]:
        """Return the tokens of expressions in parentheses."""
        tokens = ["("]
        for i, expression in enumerate(expressions):
            tokens += [","] if i else []
            tokens += self.expression(expression)
        return [*tokens, ")"]

    def case(self, branches: Sequence[tuple[Expression, Expression]], default: Expression | None) -> list[str]:
        """Return the tokens of CASE; where all conditions compare one value, that may stand before them."""
        compared = compared_value(branches)
        is_simple = compared is not None and self.chance(0.6)
        tokens = self.words("CASE")
        tokens += self.expression(compared) if compared is not None and is_simple else []
        for condition, result in branches:
            shown = condition.right if is_simple and isinstance(condition, x.Comparison) else condition
            tokens += [*self.words("WHEN"), *self.expression(shown)]
            tokens += [*self.words("THEN"), *self.expression(result)]
        if default is not None:
            tokens += [*self.words("ELSE"), *self.expression(default)]
        return tokens + self.words("END")

    def call(self, expression: Expression) -> list[str]:
        """Return the tokens of a function, a column or a literal."""
        match expression:
            case x.Column(variable, name):
                column = self.column_name(name)
                return [column if variable is None else f"{self.variable_name(variable)}.{column}"]
            case x.Literal(value):
                return self.literal(value)
            case x.Classifier(variable):
                names = [] if variable is None else [self.variable_name(variable)]
                return [*self.words("CLASSIFIER"), "(", *names, ")"]
            case x.MatchNumber():
                return [*self.words("MATCH_NUMBER"), "(", ")"]
            case x.Logical(function, argument, offset, semantics):
                return [*self.words(semantics or ""), *self.navigation(function, argument, offset)]
            case x.Physical(function, argument, offset):
                return self.navigation(function, argument, offset)
            case x.Aggregate():
                return self.aggregate(expression)
            case x.Coalesce(operands):
                return [*self.words("COALESCE"), *self.arguments(operands)]
            case x.Abs(operand):
                return [*self.words("ABS"), *self.arguments([operand])]
        raise TypeError(type(expression).__name__)

    def navigation(self, function: str, argument: Expression, offset: int | None) -> list[str]:
        """Return the tokens of FIRST, LAST, PREV or NEXT; a navigation in another one stands in no parentheses."""
        is_nested = isinstance(argument, x.Logical)
        tokens = self.call(argument) if is_nested else self.expression(argument)
        return [*self.words(function), "(", *tokens, *([] if offset is None else [",", str(offset)]), ")"]

    def aggregate(self, aggregate: x.Aggregate) -> list[str]:
        """Return the tokens of an aggregate."""
        tokens = [*self.words(aggregate.semantics or ""), *self.words(aggregate.function.upper()), "("]
        tokens += self.words("DISTINCT") if aggregate.is_distinct else []
        if isinstance(aggregate.argument, x.Rows):
            variable = aggregate.argument.variable
            return [*tokens, "*" if variable is None else f"{self.variable_name(variable)}.*", ")"]
        return [*tokens, *self.expression(aggregate.argument), ")"]

    def literal(self, value: Value) -> list[str]:
        """Return the token of a constant."""
        if isinstance(value, str):
            return ["'" + value.replace("'", "''") + "'"]
        if isinstance(value, float):
            return [self.choose((repr(value), f"{value!r}e0"))]
        if value is None or isinstance(value, bool):
            return self.words({None: "NULL", True: "TRUE", False: "FALSE"}[value])
        return [str(value)]


def compared_value(branches: Sequence[tuple[Expression, Expression]]) -> Expression | None:
    """Return the value that all conditions of CASE compare with others for equality, None if they do not."""
    values = set()
    for condition, _ in branches:
        if not isinstance(condition, x.Comparison) or condition.operator != "=":
            return None
        values.add(condition.left)
    return values.pop() if len(values) == 1 else None
