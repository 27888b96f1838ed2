"""Say the detection of a Sigma rule as conditions on one event."""

from __future__ import annotations

from sigma.conditions import (
    ConditionAND,
    ConditionFieldEqualsValueExpression,
    ConditionNOT,
    ConditionOR,
    ConditionValueExpression,
)
from sigma.rule import SigmaRule
from sigma.rule.detection import SigmaDetection, SigmaDetectionItem

from acep.pattern import expressions as ex
from acep.pattern.walk import attributes
from acep.sigma_rules.refusals import excerpt, refusal
from acep.sigma_rules.settings import PARTS, SigmaSettings
from acep.sigma_rules.values import join_conditions, value_condition

__all__ = ["event_conditions"]

MOST_PARTS = 100_000
"""How many values the condition of a rule may name, each as often as its detection is named."""
LONGEST_CONDITION = 10_000


def event_conditions(rule: SigmaRule, variable: str, settings: SigmaSettings) -> list[ex.Expr]:
    """Return the conditions, all of which an event of a variable fulfils if the rule matches it.

    None of them is null where that makes a difference: what NOT is said of is false where a field is null, as in Sigma.

    Raises :class:`QueryError` for what cannot be said exactly.
    """
    source = rule.logsource
    if source.custom_attributes:
        raise refusal(f"logsource has `{excerpt(next(iter(source.custom_attributes)))}`, which acep does not know")
    parts = {part: value for part in PARTS if (value := getattr(source, part)) is not None}
    detection = _condition(_parsed_condition(rule), variable, settings)
    for column in settings.source_columns(parts).values():
        if column in attributes(detection):
            raise refusal(
                f"the detection asks for `{excerpt(column)}` itself, so that this column does not say the log source",
                "say in [[logsource]] of sigma.toml which events the log source has",
            )
    conditions = [*settings.source_conditions(parts, variable), *_conjuncts(detection)]
    return [*dict.fromkeys(conditions)]


def _parsed_condition(rule: SigmaRule) -> object:
    """Return the condition of a rule as the tree of pySigma, after a look at how large that becomes."""
    detection = rule.detection
    if "timeframe" in detection.detections:
        raise refusal("`timeframe` of a detection is of old Sigma", "write a correlation, with `timespan`")
    if len(detection.condition) != 1:
        raise refusal("the detection has several conditions", "join them by `or`")
    condition = detection.condition[0]
    if not isinstance(condition, str) or len(condition) > LONGEST_CONDITION:
        raise refusal(f"the condition is no text of at most {LONGEST_CONDITION:,} characters")
    n_values = sum(map(_count_values, detection.detections.values()))
    if n_values * len(condition.split()) > MOST_PARTS:
        raise refusal(f"the condition names more than {MOST_PARTS:,} values")
    return detection.parsed_condition[0].parsed


def _count_values(detection: SigmaDetection | SigmaDetectionItem) -> int:
    if isinstance(detection, SigmaDetectionItem):
        return max(len(detection.value), 1)
    return sum(map(_count_values, detection.detection_items))


def _condition(tree: object, variable: str, settings: SigmaSettings) -> ex.Expr:
    match tree:
        case ConditionAND(args=args):
            return join_conditions("and", [_condition(part, variable, settings) for part in args])
        case ConditionOR(args=args):
            return join_conditions("or", [_condition(part, variable, settings) for part in args])
        case ConditionNOT(args=[part]):
            return _negate(_condition(part, variable, settings))
        case ConditionFieldEqualsValueExpression(field=field, value=value):
            return value_condition(field, value, variable, settings)
        case ConditionValueExpression(value=value):
            raise refusal(
                f"the keyword `{excerpt(value)}` is looked for in whole events",
                "name the field: `Message|contains: ...`",
            )
    raise refusal("the condition has a part that says nothing")


def _negate(condition: ex.Expr) -> ex.Expr:
    """Return the condition that another one is not true: a field that is null fulfils it."""
    if isinstance(condition, ex.IsNull):
        return ex.IsNull(condition.operand, not condition.negated)
    return ex.Unary("not", ex.Call("coalesce", (condition, ex.Literal(False))))


def _conjuncts(condition: ex.Expr) -> list[ex.Expr]:
    if isinstance(condition, ex.Binary) and condition.op == "and":
        return [*_conjuncts(condition.left), *_conjuncts(condition.right)]
    return [condition]
