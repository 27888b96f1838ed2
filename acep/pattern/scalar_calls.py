"""Make calls of scalar functions: check their constants, and write those with a formula as what they stand for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import islice

from acep.functions.lookup import find_scalar
from acep.functions.scalar_function import Formula, ScalarFunction
from acep.pattern import expressions as ex
from acep.pattern.walk import children, leaves_of, levels

__all__ = ["check_fixed", "scalar_call"]

_OPERATORS = ("+", "-", "*", "/", "%", "=", "!=", "<", "<=", ">", ">=", "and", "or")
_MOST_PARTS = 5_000


def scalar_call(entry: ScalarFunction, args: tuple[ex.Expr, ...], span: ex.Span | None) -> ex.Expr:
    """Return the call of a function, or the expression that its formula makes of the arguments.

    Raises :class:`QueryError` (without the text) if that is too large."""
    if entry.formula is None:
        return ex.Call(entry.name, args, span)
    expr = _expand(entry.formula, dict(zip(entry.arguments, args, strict=False)), span)
    if len([*islice(levels(expr, children), _MOST_PARTS)]) == _MOST_PARTS:  # nested calls may double each time
        raise ex.error_at(
            f"`{entry.name}` stands for an expression of more than {_MOST_PARTS} parts", span, code="query_size"
        )
    return expr


def _expand(formula: Formula, args: Mapping[str, ex.Expr], span: ex.Span | None) -> ex.Expr:
    match formula:
        case str(name):
            return args[name]
        case int() | float():
            written = Fraction(repr(formula))
            return ex.Literal(formula, span, None if written == Fraction(formula) else written)
        case (operator, left, right) if operator in _OPERATORS:
            return ex.Binary(operator, _expand(left, args, span), _expand(right, args, span), span)
        case ("-" | "not" as operator, operand):
            return ex.Unary(operator, _expand(operand, args, span), span)
        case _:
            name, *parts = formula
            operands = tuple(_expand(part, args, span) for part in parts)
            entry = find_scalar(name)
            return ex.Call(name, operands, span) if entry is None else scalar_call(entry, operands, span)


def check_fixed(entry: ScalarFunction, args: tuple[ex.Expr, ...], *, is_sql: bool = False) -> None:
    """Raise :class:`QueryError` (without the text) unless the arguments that are constants are such, and right.

    Of a function :attr:`ScalarFunction.of_one_attribute` the first one is of a single attribute of one event. With
    ``is_sql`` constants are only checked, if they are written as such.
    """
    constants = {place: arg for place, arg in enumerate(args) if place in entry.fixed}
    values = [arg.value if isinstance(arg, ex.Literal) else None for arg in constants.values()]
    for (place, arg), value in zip(constants.items(), values, strict=True):
        fixed = entry.fixed[place]
        if not isinstance(value, fixed.type) or isinstance(value, bool):
            if is_sql:
                return
            hint = f"{entry.example.call}, or a parameter"
            raise ex.error_at(f"`{entry.name}` needs {fixed.words}", arg, hint, code="query_type")
    if entry.of_one_attribute and not is_sql:
        _check_one_attribute(entry, args[0])
    for place, arg in constants.items():
        if is_sql and not entry.fixed[place].is_checked_in_sql:
            continue
        if arg.span is None:
            entry.fixed[place].check(*values)
            continue
        with ex.locate_errors(arg.span):
            entry.fixed[place].check(*values)


def _check_one_attribute(entry: ScalarFunction, operand: ex.Expr) -> None:
    leaves = {replace(leaf, span=None) for leaf in leaves_of(operand)}
    if len(leaves) != 1 or not all(isinstance(leaf, ex.Attribute) for leaf in leaves):
        hint = "write a condition for each attribute"
        raise ex.error_at(f"`{entry.name}` looks at one attribute of one event", operand, hint, code="query_type")
