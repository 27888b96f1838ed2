"""The expressions of MEASURES and DEFINE: plain frozen data, the kinds of their values, and a walk over them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields

__all__ = [
    "Abs",
    "Aggregate",
    "Arithmetic",
    "Between",
    "Case",
    "Classifier",
    "Coalesce",
    "Column",
    "Comparison",
    "Expression",
    "In",
    "IsNull",
    "Junction",
    "Literal",
    "Logical",
    "MatchNumber",
    "Not",
    "Physical",
    "Rows",
    "Value",
    "kind_of",
    "parts_of",
    "walk",
]

Value = None | bool | int | float | str


@dataclass(frozen=True)
class Column:
    """``A.x``, or ``x`` without a variable."""

    variable: str | None
    name: str


@dataclass(frozen=True)
class Literal:
    """A constant."""

    value: Value


@dataclass(frozen=True)
class Classifier:
    """``CLASSIFIER()`` or ``CLASSIFIER(A)``."""

    variable: str | None = None


@dataclass(frozen=True)
class MatchNumber:
    """``MATCH_NUMBER()``."""


@dataclass(frozen=True)
class Logical:
    """``FIRST`` or ``LAST``; ``semantics`` is RUNNING, FINAL or None, ``offset`` None is 0."""

    function: str
    argument: Expression
    offset: int | None = None
    semantics: str | None = None


@dataclass(frozen=True)
class Physical:
    """``PREV`` or ``NEXT`` of an expression or of a logical navigation; ``offset`` None is 1."""

    function: str
    argument: Expression
    offset: int | None = None


@dataclass(frozen=True)
class Rows:
    """The argument ``*`` or ``A.*`` of ``count``."""

    variable: str | None = None


@dataclass(frozen=True)
class Aggregate:
    """``count``, ``sum``, ``avg``, ``min`` or ``max``."""

    function: str
    argument: Expression | Rows
    is_distinct: bool = False
    semantics: str | None = None


@dataclass(frozen=True)
class Arithmetic:
    """``+``, ``-`` or ``*``."""

    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True)
class Comparison:
    """``=``, ``<>``, ``<``, ``<=``, ``>`` or ``>=``."""

    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True)
class Junction:
    """``AND`` or ``OR``."""

    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True)
class Not:
    """``NOT``."""

    operand: Expression


@dataclass(frozen=True)
class IsNull:
    """``IS NULL`` or ``IS NOT NULL``."""

    operand: Expression
    is_negated: bool = False


@dataclass(frozen=True)
class Between:
    """``BETWEEN`` or ``NOT BETWEEN``."""

    operand: Expression
    low: Expression
    high: Expression
    is_negated: bool = False


@dataclass(frozen=True)
class In:
    """``IN`` or ``NOT IN``."""

    operand: Expression
    choices: tuple[Expression, ...]
    is_negated: bool = False


@dataclass(frozen=True)
class Case:
    """``CASE WHEN condition THEN value .. ELSE default END``; default None: no ELSE."""

    branches: tuple[tuple[Expression, Expression], ...]
    default: Expression | None = None


@dataclass(frozen=True)
class Coalesce:
    """``COALESCE``."""

    operands: tuple[Expression, ...]


@dataclass(frozen=True)
class Abs:
    """``ABS``."""

    operand: Expression


Expression = (
    Column
    | Literal
    | Classifier
    | MatchNumber
    | Logical
    | Physical
    | Aggregate
    | Arithmetic
    | Comparison
    | Junction
    | Not
    | IsNull
    | Between
    | In
    | Case
    | Coalesce
    | Abs
)

COLUMN_KINDS = {"k": "text", "ts": "integer", "x": "integer", "y": "float", "s": "text"}


def kind_of(expression: Expression | Rows, columns: dict[str, str] = COLUMN_KINDS) -> str:
    """Return the kind of an expression's values: integer, float, text, boolean, or null for NULL alone."""
    match expression:
        case Column(name=name):
            return columns[name]
        case Literal(value):
            return _kind_of_value(value)
        case Classifier():
            return "text"
        case MatchNumber() | Aggregate("count") | Rows():
            return "integer"
        case Aggregate("avg"):
            return "float"
        case Logical(argument=argument) | Physical(argument=argument) | Aggregate(argument=argument) | Abs(argument):
            return kind_of(argument, columns)
        case Arithmetic(left=left, right=right):
            return _joint_kind((left, right), columns)
        case Case(branches, default):
            values = [value for _, value in branches]
            return _joint_kind(values if default is None else (*values, default), columns)
        case Coalesce(operands):
            return _joint_kind(operands, columns)
        case _:
            return "boolean"


def _kind_of_value(value: Value) -> str:
    if value is None:
        return "null"
    names = {bool: "boolean", int: "integer", float: "float", str: "text"}
    return names[type(value)]


def _joint_kind(expressions: tuple[Expression, ...] | list[Expression], columns: dict[str, str]) -> str:
    """Return the kind that can hold the values of all these expressions."""
    kinds = {kind_of(expression, columns) for expression in expressions} - {"null"}
    if kinds == {"integer", "float"}:
        return "float"
    (kind,) = kinds or {"null"}
    return kind


def parts_of(expression: Expression | Rows) -> Iterator[Expression | Rows]:
    """Yield the expressions directly in an expression."""
    for field in fields(expression):
        yield from _expressions_in(getattr(expression, field.name))


def _expressions_in(value: object) -> Iterator[Expression | Rows]:
    if isinstance(value, tuple):
        for item in value:
            yield from _expressions_in(item)
    elif isinstance(value, (Rows, Expression)):
        yield value


def walk(expression: Expression | Rows) -> Iterator[Expression | Rows]:
    """Yield an expression and all that are in it."""
    yield expression
    for part in parts_of(expression):
        yield from walk(part)
