"""The value of an expression in a match: three-valued logic, navigation, aggregates, RUNNING and FINAL.

A ``View`` says what an expression can see: the rows of the partition, which of them the match has bound to which
variable, and how many of those RUNNING may see. Outside of a navigation or an aggregate a column stands for its
variable's last row that RUNNING sees. Inside, every column stands for the row to which the navigation went.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.row_patterns import expressions as x
from tests.row_patterns.expressions import Expression, Value
from tests.row_patterns.tree import Clause

__all__ = ["Row", "View", "evaluate"]

Row = Mapping[str, Value]


@dataclass(frozen=True)
class View:
    """What an expression of a clause can see: ``labels`` are the variables of the rows from ``first`` on."""

    clause: Clause
    rows: Sequence[Row]
    first: int
    labels: tuple[str, ...]
    n_running: int
    number: int

    def positions(self, variable: str | None, semantics: str | None) -> list[int]:
        """Return where the visible rows of a variable, of a subset, or of all (None) are in the partition."""
        members = self.clause.members_of(variable)
        visible = self.labels if semantics == "FINAL" else self.labels[: self.n_running]
        return [self.first + i for i, label in enumerate(visible) if members is None or label in members]

    def label_at(self, position: int | None) -> str | None:
        """Return the variable of a row of the partition, None if the match has not bound it."""
        if position is None or not 0 <= position - self.first < len(self.labels):
            return None
        return self.labels[position - self.first]


def evaluate(expression: Expression, view: View, position: int | None = None) -> Value:
    """Return an expression's value; inside of a navigation, at the row of the partition to which that went."""
    match expression:
        case x.Column(variable, name):
            row = _last(view.positions(variable, None)) if position is None else position
            return None if row is None else view.rows[row][name]
        case x.Classifier(variable):
            return view.label_at(_last(view.positions(variable, None)) if position is None else position)
        case x.Literal(value):
            return value
        case x.MatchNumber():
            return view.number
        case x.Logical() | x.Physical():
            assert position is None, "a navigation in a navigation that is no PREV or NEXT"
            target = _position_of(expression, view)
            return None if target is None else evaluate(_innermost(expression), view, target)
        case x.Aggregate():
            return _aggregate(expression, view)
        case _:
            return _compute(expression, lambda part: evaluate(part, view, position))


def _last(positions: Sequence[int]) -> int | None:
    return positions[-1] if positions else None


def _innermost(navigation: Expression) -> Expression:
    """Return the expression that a navigation reads where it arrives."""
    while isinstance(navigation, (x.Logical, x.Physical)):
        navigation = navigation.argument
    return navigation


def _position_of(navigation: x.Logical | x.Physical, view: View) -> int | None:
    """Return where a navigation arrives in the partition, None where there is no such row."""
    if isinstance(navigation, x.Logical):
        positions = view.positions(_variable_of(navigation.argument), navigation.semantics)
        offset = navigation.offset or 0
        if offset >= len(positions):
            return None
        return positions[offset] if navigation.function == "FIRST" else positions[-1 - offset]
    if isinstance(navigation.argument, x.Logical):
        start = _position_of(navigation.argument, view)
    else:
        start = _last(view.positions(_variable_of(navigation.argument), None))
    if start is None:
        return None
    distance = 1 if navigation.offset is None else navigation.offset
    target = start - distance if navigation.function == "PREV" else start + distance
    return target if 0 <= target < len(view.rows) else None


def _variable_of(argument: Expression | x.Rows) -> str | None:
    """Return the one variable whose rows an argument reads."""
    variables = {part.variable for part in x.walk(argument) if isinstance(part, (x.Column, x.Classifier, x.Rows))}
    assert len(variables) <= 1, "several variables in one argument"
    return next(iter(variables), None)


def _aggregate(aggregate: x.Aggregate, view: View) -> Value:
    argument = aggregate.argument
    positions = view.positions(_variable_of(argument), aggregate.semantics)
    if isinstance(argument, x.Rows):
        return len(positions)
    values: list[Any] = [value for row in positions if (value := evaluate(argument, view, row)) is not None]
    if aggregate.is_distinct:
        values = list(dict.fromkeys(values))
    if aggregate.function == "count":
        return len(values)
    if not values:
        return None
    functions: dict[str, Callable[[list[Any]], Value]] = {
        "sum": _sum,
        "min": min,
        "max": max,
        "avg": lambda numbers: sum(numbers) / len(numbers),
    }
    return functions[aggregate.function](values)


def _sum(numbers: list[Any]) -> Value:
    """Return the sum; of integers beyond 64 bits there is none."""
    total = sum(numbers)
    return None if isinstance(total, int) and not -(2**63) <= total <= 2**63 - 1 else total


def _compute(expression: Expression, value_of: Callable[[Expression], Value]) -> Value:
    """Return the value of an expression that is made of others' values."""
    match expression:
        case x.Arithmetic(operator, left, right):
            return _calculate(operator, value_of(left), value_of(right))
        case x.Comparison(operator, left, right):
            return _compare(operator, value_of(left), value_of(right))
        case x.Junction(operator, left, right):
            return _join(operator, (value_of(left), value_of(right)))
        case x.Not(operand):
            return _negate(value_of(operand), True)
        case x.IsNull(operand, is_negated):
            return (value_of(operand) is None) != is_negated
        case x.Between(operand, low, high, is_negated):
            value = value_of(operand)
            inside = (_compare(">=", value, value_of(low)), _compare("<=", value, value_of(high)))
            return _negate(_join("AND", inside), is_negated)
        case x.In(operand, choices, is_negated):
            value = value_of(operand)
            return _negate(_join("OR", [_compare("=", value, value_of(choice)) for choice in choices]), is_negated)
        case x.Case(branches, default):
            for condition, result in branches:
                if value_of(condition) is True:
                    return value_of(result)
            return None if default is None else value_of(default)
        case x.Coalesce(operands):
            return next((value for operand in operands if (value := value_of(operand)) is not None), None)
        case x.Abs(operand):
            number: Any = value_of(operand)
            return None if number is None else abs(number)
    raise TypeError(type(expression).__name__)


def _calculate(operator: str, left: Any, right: Any) -> Value:
    if left is None or right is None:
        return None
    results: dict[str, Value] = {"+": left + right, "-": left - right, "*": left * right}
    return results[operator]


def _compare(operator: str, left: Any, right: Any) -> bool | None:
    if left is None or right is None:
        return None
    match operator:
        case "=":
            return bool(left == right)
        case "<>":
            return bool(left != right)
        case "<":
            return bool(left < right)
        case "<=":
            return bool(left <= right)
        case ">":
            return bool(left > right)
        case ">=":
            return bool(left >= right)
    raise ValueError(operator)


def _join(operator: str, values: Iterable[Value]) -> Value:
    """Return AND or OR of truth values, of which None is unknown."""
    decisive = operator == "OR"
    truths = list(values)
    if decisive in truths:
        return decisive
    return None if None in truths else not decisive


def _negate(value: Value, is_negated: bool) -> Value:
    return value if value is None or not is_negated else not value
