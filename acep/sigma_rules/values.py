"""Say as a condition what a Sigma rule asks of the value of one field."""

from __future__ import annotations

from sigma.types import (
    CompareOperators,
    SigmaBool,
    SigmaCasedString,
    SigmaCIDRExpression,
    SigmaCompareExpression,
    SigmaExists,
    SigmaExpansion,
    SigmaFieldReference,
    SigmaNull,
    SigmaNumber,
    SigmaRegularExpression,
    SigmaRegularExpressionFlag,
    SigmaString,
    SigmaTimestampPart,
    SigmaType,
    SpecialChars,
)

from acep.pattern import expressions as ex
from acep.regular_expressions import check_pattern
from acep.sigma_rules.refusals import checked_text, excerpt, refusal
from acep.sigma_rules.settings import SigmaSettings

__all__ = ["field_attribute", "join_conditions", "value_condition"]

_COMPARISONS = {
    CompareOperators.LT: "<",
    CompareOperators.LTE: "<=",
    CompareOperators.GT: ">",
    CompareOperators.GTE: ">=",
}
_FLAGS = {
    SigmaRegularExpressionFlag.IGNORECASE: "i",
    SigmaRegularExpressionFlag.MULTILINE: "m",
    SigmaRegularExpressionFlag.DOTALL: "s",
}
_WILDCARDS = {SpecialChars.WILDCARD_MULTI: "%", SpecialChars.WILDCARD_SINGLE: "_"}
_FIRST_INEXACT = 1 << 53
"""The first integer from which on a double, which pySigma makes of a number, no longer holds each one."""


def join_conditions(operator: str, conditions: list[ex.Expr]) -> ex.Expr:
    """Return conditions join_conditions by ``and`` or ``or``. Several equalities of one operand become an IN."""
    if operator == "or":
        conditions = _with_lists(conditions)
    while len(conditions) > 1:  # in pairs, so that the tree of a long list is not deep
        pairs = [conditions[start : start + 2] for start in range(0, len(conditions), 2)]
        conditions = [ex.Binary(operator, pair[0], pair[1]) if len(pair) == 2 else pair[0] for pair in pairs]
    return conditions[0]


def _with_lists(conditions: list[ex.Expr]) -> list[ex.Expr]:
    lists = dict[ex.Expr, list[ex.Expr]]()
    further_conditions = list[ex.Expr]()
    for condition in conditions:
        match condition:
            case ex.Binary(op="=", left=operand, right=ex.Literal() as constant):
                lists.setdefault(operand, []).append(constant)
            case _:
                further_conditions.append(condition)
    equalities: list[ex.Expr] = [
        ex.In(operand, tuple(constants)) if len(constants) > 1 else ex.Binary("=", operand, constants[0])
        for operand, constants in lists.items()
    ]
    return equalities + further_conditions


def field_attribute(field: str, variable: str, settings: SigmaSettings) -> ex.Attribute:
    """Return a field of the events of a variable, as the column that the settings give it.

    Raises :class:`QueryError` for a field that is the name of no column.
    """
    column = checked_text(settings.fields.get(field, field), f"the name of the field `{excerpt(field)}`")
    if not column.strip() or not column.isprintable() or any(sign in column for sign in "()[]"):
        raise refusal(
            f"the field `{excerpt(field)}` is the name of no column", "say in [fields] of sigma.toml what its column is"
        )
    return ex.Attribute(variable, None, column)


def value_condition(field: str, value: SigmaType, variable: str, settings: SigmaSettings) -> ex.Expr:
    """Return the condition that a field has a value. It may be null where the field is null.

    Raises :class:`QueryError` for a value that cannot be said exactly.
    """
    attribute = field_attribute(field, variable, settings)
    match value:
        case SigmaExpansion(values=values):
            return join_conditions("or", [value_condition(field, part, variable, settings) for part in values])
        case SigmaNull():
            return ex.IsNull(attribute)
        case SigmaExists(exists=exists):
            return ex.IsNull(attribute, negated=exists)
        case SigmaBool(boolean=boolean):
            return ex.Binary("=", attribute, ex.Literal(boolean))
        case SigmaTimestampPart():
            raise refusal(
                f"`{excerpt(field)}` is asked for a part of a time, and Sigma does not say in which zone",
                "write a rule of acep, with hour(a.x), minute(a.x), ...",
            )
        case SigmaNumber(number=number):
            return ex.Binary("=", attribute, _number(field, number))
        case SigmaCompareExpression(number=SigmaNumber(number=number), op=op) if op in _COMPARISONS:
            return ex.Binary(_COMPARISONS[op], attribute, _number(field, number))
        case SigmaCIDRExpression(network=network):
            return ex.Call("ip_in", (attribute, ex.Literal(str(network))))
        case SigmaRegularExpression():
            return ex.Call("regexp_like", (attribute, ex.Literal(_pattern(field, value))))
        case SigmaFieldReference(field=other, starts_with=False, ends_with=False):
            return ex.Binary("=", attribute, field_attribute(other, variable, settings))
        case SigmaFieldReference():
            raise refusal(f"`{excerpt(field)}` is compared with a part of another field: `fieldref` goes alone here")
        case SigmaString():
            return _text_condition(field, attribute, value)
    raise refusal(f"the value of `{excerpt(field)}` is of a kind that acep does not know: {type(value).__name__}")


def _number(field: str, number: float) -> ex.Literal:
    if abs(number) >= _FIRST_INEXACT:
        raise refusal(f"the number of `{excerpt(field)}` has more digits than pySigma holds exactly")
    return ex.Literal(number)


def _pattern(field: str, value: SigmaRegularExpression) -> str:
    if value.contains_placeholder():
        raise _placeholder_refusal(field)
    flags = "".join(sorted(_FLAGS[flag] for flag in value.flags))
    pattern = checked_text((f"(?{flags})" if flags else "") + str(value.regexp), f"`{excerpt(field)}`")
    check_pattern(pattern)
    return pattern


def _text_condition(field: str, attribute: ex.Attribute, value: SigmaString) -> ex.Expr:
    """Return the condition that a field has a text, which may have wildcards. Case counts if it is ``cased``."""
    if value.contains_placeholder():
        raise _placeholder_refusal(field)
    operand: ex.Expr = attribute
    parts = [part for part in value.s if isinstance(part, str | SpecialChars)]
    if not isinstance(value, SigmaCasedString):
        operand = ex.Call("lower", (attribute,))
        parts = [_lower(field, part) if isinstance(part, str) else part for part in parts]
    for part in parts:
        checked_text(part if isinstance(part, str) else "", f"the value of `{excerpt(field)}`")
    if not any(isinstance(part, SpecialChars) for part in parts):
        return ex.Binary("=", operand, ex.Literal("".join(part for part in parts if isinstance(part, str))))
    return ex.Like(operand, "".join(_escape(part) if isinstance(part, str) else _WILDCARDS[part] for part in parts))


def _lower(field: str, text: str) -> str:
    """Return a text in small letters. Raises :class:`QueryError` if some of its letters depend on their neighbours."""
    if any(sign > "\x7f" and not sign.lower() == sign.upper() == sign.casefold() for sign in text):
        raise refusal(
            f"`{excerpt(field)}` has a letter beyond ASCII, and Sigma does not say what ignores its case",
            "add the modifier `cased`, or write a regular expression: `re|i`",
        )
    return text.lower()


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


def _placeholder_refusal(field: str) -> Exception:
    return refusal(
        f"`{excerpt(field)}` has a placeholder (`expand`), whose values are said elsewhere", "write its values instead"
    )
