"""Build a Spark expression that selects the events that some query can use.

Only conditions with exactly the same meaning in Spark are translated: comparisons of integers, doubles, texts and truth
values of one event with each other and with constants, joined by AND, OR and NOT. Any other part of a condition is
assumed to be true. The expression cannot fail under any settings of the session.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from acep.overload.needed_events import Use
from acep.pattern.expressions import Attribute, Between, Binary, Expr, In, IsNull, Literal, Unary
from acep.plan.decimals import EXCHANGED, HIGHEST, LOWEST
from acep.spark.columns.fields import quote_name

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.types import StructType

__all__ = ["filter_column"]

MAX_COMPARISONS: Final = 40
"""Most comparisons in all; further conditions are assumed to be true, because Spark plans each micro-batch anew."""

KINDS: Final = {
    "byte": "integer", "short": "integer", "integer": "integer", "long": "integer",
    "float": "double", "double": "double", "string": "text", "boolean": "truth",
}  # fmt: skip
COMPARE: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def filter_column(columns: StructType, uses: Sequence[Use] | None, type: str | None) -> Column | None:
    """Build a column that is true for each event that has some use, and never null; ``None`` if all events travel.

    ``columns`` are those that the queries see; ``type`` is the name of the type column.
    """
    from pyspark.sql import functions as sf

    if uses is None:
        return None
    if any(use.types for use in uses) and (type is None or _kind(columns, type) != "text"):
        return None
    of_type = sf.col(quote_name(type or ""))
    parts: list[tuple[tuple[str, ...], list[Column]]] = []
    n_left = MAX_COMPARISONS
    for use in uses:
        conditions = []
        for condition in use.conditions:
            size = _comparisons(condition.expr, columns)
            if size <= n_left and (column := _translate_condition(True, condition.expr, columns)) is not None:
                conditions.append(column)
                n_left -= size
        if not use.types and not conditions:
            return None
        parts.append((use.types, conditions))
    free = {name for types, conditions in parts if not conditions for name in types}
    alternatives = [of_type.isin(sorted(free))] if free else []
    for types, conditions in parts:
        other_types = sorted(set(types) - free)
        if conditions and (other_types or not types):
            alternatives.append(
                _join_balanced(operator.and_, [*([of_type.isin(other_types)] if other_types else []), *conditions])
            )
    return sf.coalesce(_join_balanced(operator.or_, alternatives), sf.lit(False))


def _comparisons(expr: Expr, columns: StructType) -> int:
    match expr:
        case Unary(op="not", operand=operand):
            return _comparisons(operand, columns)
        case Binary(op="and" | "or", left=left, right=right):
            return _comparisons(left, columns) + _comparisons(right, columns)
        case In(values=values):
            return len(values) if _lookup_constants(expr, columns) is None else 1
        case Between():
            return 2
    return 1


def _join_balanced(join: Callable[[Any, Any], Any], parts: Sequence[Column]) -> Column:
    """Join columns as a balanced tree, because Spark traverses it by recursion."""
    half = len(parts) // 2
    return join(_join_balanced(join, parts[:half]), _join_balanced(join, parts[half:])) if half else parts[0]


def _translate_condition(wanted: bool, expr: Expr, columns: StructType) -> Column | None:
    """Build a column that is true for all events where the condition equals ``wanted``; ``None`` if that is unknown.

    A null in it counts as false. Since only AND and OR join such columns, this holds for all of them.
    """
    from pyspark.sql import functions as sf

    column: Column | None
    match expr:
        case Unary(op="not", operand=operand):
            return _translate_condition(not wanted, operand, columns)
        case Binary(op="and" | "or" as op, left=left, right=right):
            return _join_parts(op, wanted, [left, right], columns)
        case In(operand=Attribute(name=name), negated=negated) if (
            constants := _lookup_constants(expr, columns)
        ) is not None:
            column, wanted = _value(name, columns).isin(constants), wanted != negated
        case In(operand=operand, values=values, negated=negated):
            return _join_parts("or", wanted != negated, [Binary("=", operand, value) for value in values], columns)
        case Between(operand=operand, low=low, high=high, negated=negated):
            inside = [Binary(">=", operand, low), Binary("<=", operand, high)]
            return _join_parts("and", wanted != negated, inside, columns)
        case IsNull(operand=Attribute(name=name), negated=negated):
            if _kind(columns, name) is None:
                return None
            return _value(name, columns).isNull() if wanted != negated else _value(name, columns).isNotNull()
        case Binary(op=op, left=left, right=right) if op in COMPARE:
            column = _compare(op, left, right, columns)
        case Attribute(name=name) if _kind(columns, name) == "truth":
            column = _value(name, columns)
        case Literal(value=constant):
            return sf.lit(constant is wanted)
        case _:
            return None
    return column if column is None or wanted else ~column


def _join_parts(op: str, wanted: bool, parts: Sequence[Expr], columns: StructType) -> Column | None:
    """Join the columns of ``parts`` by De Morgan's laws: NOT (x AND y) is NOT x OR NOT y."""
    translated = [_translate_condition(wanted, part, columns) for part in parts]
    translatable = [column for column in translated if column is not None]
    if (op == "and") == wanted:
        return _join_balanced(operator.and_, translatable) if translatable else None
    return _join_balanced(operator.or_, translatable) if len(translatable) == len(translated) else None


def _lookup_constants(expr: In, columns: StructType) -> list[Any] | None:
    """Return the constants among which an integer or a text is looked up; ``None`` for anything else.

    Spark would compare doubles by their bits, which differ between 0.0 and -0.0.
    """
    kind = _kind(columns, expr.operand.name) if isinstance(expr.operand, Attribute) else None
    if kind not in ("integer", "text"):
        return None
    constants = [
        _constant(kind, "=", literal.value) if isinstance(literal, Literal) else None for literal in expr.values
    ]
    return None if None in constants else constants


def _compare(op: str, left: Expr, right: Expr, columns: StructType) -> Column | None:
    if isinstance(left, Literal):
        op, left, right = EXCHANGED[op], right, left
    if not isinstance(left, Attribute) or (kind := _kind(columns, left.name)) is None:
        return None
    operand: Any = None
    if isinstance(right, Literal):
        operand = _constant(kind, op, right.value)
    elif isinstance(right, Attribute) and _kind(columns, right.name) == kind:
        operand = _value(right.name, columns)
    return None if operand is None else COMPARE[op](_value(left.name, columns), operand)


def _kind(columns: StructType, name: str) -> str | None:
    # A column that a function of the user's own gives is none of Spark.
    return KINDS.get(columns[name].dataType.typeName()) if name in columns.names else None


def _value(name: str, columns: StructType) -> Column:
    """Return the value of a column of a known kind, with NaN as null."""
    from pyspark.sql import functions as sf

    kind, column = _kind(columns, name), sf.col(quote_name(name))
    if kind == "integer":
        return column.cast("long")
    return sf.when(~sf.isnan(column), column.cast("double")) if kind == "double" else column


def _constant(kind: str, op: str, value: Any) -> Any:
    """Return the constant for a comparison with a column of this kind; ``None`` if Spark has no exact equivalent."""
    if isinstance(value, bool):
        return value if kind == "truth" else None
    if isinstance(value, str):
        is_valid_text = value == value.encode(errors="ignore").decode()  # no half of a surrogate pair
        return value if kind == "text" and is_valid_text else None
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return None
    if kind == "integer":
        bound = math.ceil(value) if op in ("<", ">=") else math.floor(value)
        fits = LOWEST <= bound <= HIGHEST and (bound == value or op not in ("=", "!="))
        return bound if fits else None
    return float(value) if kind == "double" and float(value) == value else None
