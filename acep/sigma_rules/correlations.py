"""Say a Sigma correlation as a query."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from sigma.correlations import (
    CorrelationConditionAND,
    SigmaCorrelationCondition,
    SigmaCorrelationConditionOperator,
    SigmaCorrelationRule,
    SigmaCorrelationType,
    SigmaExtendedCorrelationCondition,
    SigmaRuleReference,
)
from sigma.rule import SigmaRule

from acep.pattern import expressions as ex
from acep.pattern.spelling import condition_text, expression_text, is_reserved, name_text, tie_text
from acep.sigma_rules.conditions import event_conditions
from acep.sigma_rules.overlaps import are_disjoint, ways_to_share
from acep.sigma_rules.refusals import excerpt, refusal
from acep.sigma_rules.settings import SigmaSettings
from acep.sigma_rules.values import field_attribute, join_conditions

__all__ = ["QueryText", "correlation_query", "event_query"]

MOST_VALUES = 101
"""How many different values a query may count: a condition looks back at most 100 events."""
MOST_EVENTS = 10_000
_UNITS = {"s": "s", "m": "min", "h": "h", "d": "d", "w": "w"}
_EACH = "each"
"""The variable of conditions that are compared with one another, whatever their event is called."""


@dataclass(frozen=True)
class QueryText:
    """The ``text`` of a query, with what its alerts give: the ``variables`` that bind events, and attributes of them
    that are the group (``group_fields``) where that is no key."""

    text: str
    variables: tuple[str, ...]
    group_fields: tuple[str, ...] = ()


@dataclass(frozen=True)
class CorrelationGroup:
    """The attributes that events of a group share: the ``columns`` that are the key for all rules, and the columns that
    are one for each of the rules (``aliases``, by their numbers)."""

    columns: tuple[str, ...]
    aliases: tuple[tuple[str, ...], ...]


def event_query(rule: SigmaRule, settings: SigmaSettings) -> QueryText:
    """Return the query of a rule by itself, which matches each of its events. Raises :class:`QueryError`."""
    variable = variable_names([rule.name or "event"])[0]
    return QueryText(_query(f"ANY {name_text(variable)}", [], event_conditions(rule, variable, settings)), (variable,))


def correlation_query(
    correlation: SigmaCorrelationRule, rules: Mapping[str, SigmaRule], settings: SigmaSettings
) -> QueryText:
    """Return the query of a correlation of rules, by their references.

    Raises :class:`QueryError` for what cannot be said exactly.
    """
    if not rules:
        raise refusal("it refers to no rule")
    if len({id(rule) for rule in rules.values()}) < len(correlation.rules or rules):
        raise refusal("a rule is named twice in `rules`")
    window = _window(correlation)
    group = _group(correlation, rules, settings)
    match correlation.type:
        case SigmaCorrelationType.EVENT_COUNT:
            return _event_count(correlation, rules, group, window, settings)
        case SigmaCorrelationType.VALUE_COUNT:
            return _value_count(correlation, rules, group, window, settings)
        case SigmaCorrelationType.TEMPORAL:
            _check_all_rules(correlation, rules)
            return _temporal(rules, group, window, settings)
        case SigmaCorrelationType.TEMPORAL_ORDERED:
            _check_all_rules(correlation, rules)
            return _temporal_ordered(rules, group, window, settings)
    raise refusal(f"correlations of the type `{excerpt(correlation.type.name.lower())}` have no counterpart")


# The kinds --------------------------------------------------------------------------------------


def _event_count(
    correlation: SigmaCorrelationRule,
    rules: Mapping[str, SigmaRule],
    group: CorrelationGroup,
    window: str,
    settings: SigmaSettings,
) -> QueryText:
    condition = _count_condition(correlation)
    if condition.fieldref is not None:
        raise refusal("`field` is not for `event_count`", "use value_count")
    count = _least_count(condition, MOST_EVENTS)
    _check_one_key(group, "event_count")
    return _count_query(count, group, _any_of(rules, "events", settings), window)


def _value_count(
    correlation: SigmaCorrelationRule,
    rules: Mapping[str, SigmaRule],
    group: CorrelationGroup,
    window: str,
    settings: SigmaSettings,
) -> QueryText:
    condition = _count_condition(correlation)
    fields = [condition.fieldref] if isinstance(condition.fieldref, str) else condition.fieldref
    if not fields or len(fields) != 1 or not isinstance(fields[0], str):
        raise refusal("`value_count` counts the values of several fields together", "name one field")
    count = _least_count(condition, MOST_VALUES)
    _check_one_key(group, "value_count")
    value = _aliased_column(correlation, fields[0], rules, settings)
    conditions = _any_of(rules, "events", settings)
    conditions.append(ex.IsNull(ex.Attribute("events", None, value), negated=True))
    for back in range(1, count):
        other = ex.Attribute("events", f"i-{back}", value)
        conditions.append(ex.Binary("!=", ex.Attribute("events", "i", value), other))
    return _count_query(count, group, conditions, window)


def _count_query(count: int, group: CorrelationGroup, conditions: Sequence[ex.Expr], window: str) -> QueryText:
    """Return the query of so many events of a group."""
    pattern = f"ANY{{{count}}} events[]" if count > 1 else "ANY events"
    return QueryText(_query(pattern, [*group.columns], conditions, window), ("events",))


def _temporal_ordered(
    rules: Mapping[str, SigmaRule], group: CorrelationGroup, window: str, settings: SigmaSettings
) -> QueryText:
    variables = variable_names([rule.name or f"event{number}" for number, rule in enumerate(rules.values(), 1)])
    conditions = list[ex.Expr]()
    for variable, rule in zip(variables, rules.values(), strict=True):
        conditions += event_conditions(rule, variable, settings)
    members = [((number,), variable) for number, variable in enumerate(variables)]
    conditions += _alias_conditions(group, members)
    steps = ", ".join(f"ANY {name_text(variable)}" for variable in variables)
    pattern = f"SEQ({steps})" if len(variables) > 1 else steps
    text = _query(pattern, [*group.columns], conditions, window, chooses=not group.aliases)
    return QueryText(text, tuple(variables), _alias_fields(group, members))


def _temporal(
    rules: Mapping[str, SigmaRule], group: CorrelationGroup, window: str, settings: SigmaSettings
) -> QueryText:
    """Return the query of events in any order. One event may fulfil several rules: each way is an alternative."""
    of_each = [event_conditions(rule, _EACH, settings) for rule in rules.values()]
    may_share = [
        (first, second)
        for first, second in combinations(range(len(of_each)), 2)
        if not are_disjoint(of_each[first], of_each[second])
    ]
    ways = ways_to_share(len(of_each), may_share)
    names = [rule.name or f"event{number}" for number, rule in enumerate(rules.values(), 1)]
    shared = [*dict.fromkeys(numbers for way in ways for numbers in way)]
    variables = dict(
        zip(
            shared,
            variable_names(["_and_".join(names[number] for number in numbers) for numbers in shared]),
            strict=True,
        )
    )
    conditions = list[ex.Expr]()
    for numbers, variable in variables.items():
        for number in numbers:
            rule = [*rules.values()][number]
            conditions += event_conditions(rule, variable, settings)
    conditions += _alias_conditions(group, [*variables.items()])
    alternatives = [_set_text([variables[numbers] for numbers in way]) for way in ways]
    pattern = alternatives[0] if len(alternatives) == 1 else f"({' | '.join(alternatives)})"
    text = _query(pattern, [*group.columns], [*dict.fromkeys(conditions)], window, chooses=not group.aliases)
    return QueryText(text, tuple(variables.values()), _alias_fields(group, [*variables.items()][: len(rules)]))


def _set_text(variables: Sequence[str]) -> str:
    members = ", ".join(f"ANY {name_text(variable)}" for variable in variables)
    return f"{{{members}}}" if len(variables) > 1 else members


# Common parts ---------------------------------------------------------------------------------------


def _query(
    pattern: str, columns: Sequence[str], conditions: Sequence[ex.Expr], window: str = "", *, chooses: bool = True
) -> str:
    """Return the text of a query. ``chooses``: its matches do not overlap."""
    parts = [f"[{', '.join(tie_text(column) for column in columns)}]"] if columns else []
    parts += [condition_text(condition) for condition in conditions]
    where = "\n    AND ".join(parts)
    if not window:
        return f"PATTERN {pattern}\nWHERE {where}"
    text = f"PATTERN {pattern}\nWHERE skip_till_next_match {{\n    {where} }}\nWITHIN {window}"
    return f"{text}\nOUTPUT NON OVERLAP" if chooses else text


def _any_of(rules: Mapping[str, SigmaRule], variable: str, settings: SigmaSettings) -> list[ex.Expr]:
    """Return the conditions that an event fulfils one of several rules."""
    of_each = [event_conditions(rule, variable, settings) for rule in rules.values()]
    return (
        of_each[0]
        if len(of_each) == 1
        else [join_conditions("or", [join_conditions("and", conditions) for conditions in of_each])]
    )


def _window(correlation: SigmaCorrelationRule) -> str:
    unit = correlation.timespan.unit
    if unit not in _UNITS:
        raise refusal(
            f"the timespan `{correlation.timespan.spec}` is in months or years, which differ in length",
            "write it in days",
        )
    return f"{correlation.timespan.count} {_UNITS[unit]}"


def _count_condition(correlation: SigmaCorrelationRule) -> SigmaCorrelationCondition:
    if not isinstance(correlation.condition, SigmaCorrelationCondition):
        raise refusal("the condition is no count")
    return correlation.condition


def _least_count(condition: SigmaCorrelationCondition, limit: int) -> int:
    """Return how many a condition asks for at least. Raises :class:`QueryError` if it asks for a few, or for exactly
    so many: that asks for events that do not come."""
    offset = {SigmaCorrelationConditionOperator.GTE: 0, SigmaCorrelationConditionOperator.GT: 1}.get(condition.op)
    name = condition.op.name.lower()
    if offset is None:
        raise refusal(f"`{name}` asks for what does not come; a count may be `gte` or `gt`")
    if not isinstance(condition.count, int) or not 1 <= condition.count + offset <= limit:
        raise refusal(f"`{name}: {condition.count}` is not a whole number from 1 to {limit:,} here")
    return condition.count + offset


def _check_all_rules(correlation: SigmaCorrelationRule, rules: Mapping[str, SigmaRule]) -> None:
    """Raise :class:`QueryError` unless the condition asks for all rules."""
    condition = correlation.condition
    if isinstance(condition, SigmaExtendedCorrelationCondition):
        tree = condition.parsed
        parts = tree.args if isinstance(tree, CorrelationConditionAND) else [tree]
        if not all(isinstance(part, SigmaRuleReference) for part in parts):
            raise refusal("a condition of rules may only join them by `and`")
        return
    number = {"gte": len(rules), "eq": len(rules), "gt": len(rules) - 1}.get(condition.op.name.lower())
    if number is None or condition.count != number or condition.fieldref is not None:
        criterion = f"{condition.op.name.lower()}: {condition.count}"
        raise refusal(f"the condition `{criterion}` does not ask for all {len(rules)} rules")


def _check_one_key(group: CorrelationGroup, kind: str) -> None:
    if group.aliases:
        raise refusal(f"an alias that is another column for each rule has no counterpart in `{kind}`")


def variable_names(names: Sequence[str]) -> list[str]:
    """Return a variable for each name, no two equal.

    >>> variable_names(["failed logon", "where", "4625", "failed-logon"])
    ['failed_logon', 'where_event', 'event_4625', 'failed_logon_2']
    """
    variables = list[str]()
    for name in names:
        plain = re.sub(r"[^A-Za-z0-9_]+", "_", name)[:60].strip("_") or "event"
        plain = f"event_{plain}" if plain[0].isdigit() else f"{plain}_event" if is_reserved(plain) else plain
        number, variable = 1, plain
        while variable in variables:
            number += 1
            variable = f"{plain}_{number}"
        variables.append(variable)
    return variables


# Groups ------------------------------------------------------------------------------------------


def _group(
    correlation: SigmaCorrelationRule, rules: Mapping[str, SigmaRule], settings: SigmaSettings
) -> CorrelationGroup:
    columns, aliases = list[str](), list[tuple[str, ...]]()
    for field in correlation.group_by or ():
        of_rules = _columns(correlation, field, rules, settings)
        if len({*of_rules}) == 1:
            columns.append(of_rules[0])
        else:
            aliases.append(of_rules)
    return CorrelationGroup(tuple(dict.fromkeys(columns)), tuple(dict.fromkeys(aliases)))


def _columns(
    correlation: SigmaCorrelationRule, field: str, rules: Mapping[str, SigmaRule], settings: SigmaSettings
) -> tuple[str, ...]:
    """Return the column that a field, or an alias, is in the events of each rule."""
    alias = correlation.aliases.aliases.get(field)
    fields = [field] * len(rules)
    if alias is not None:
        by_rule = {id(reference.rule): name for reference, name in alias.mapping.items() if hasattr(reference, "rule")}
        for number, rule in enumerate(rules.values()):
            name = by_rule.get(id(rule))
            if not isinstance(name, str):
                raise refusal(f"the alias `{excerpt(field)}` names no field of `{excerpt(rule.name or rule.title)}`")
            fields[number] = name
    return tuple(field_attribute(name, _EACH, settings).name for name in fields)


def _aliased_column(
    correlation: SigmaCorrelationRule, field: str, rules: Mapping[str, SigmaRule], settings: SigmaSettings
) -> str:
    columns = {*_columns(correlation, field, rules, settings)}
    if len(columns) > 1:
        raise refusal(f"the alias `{excerpt(field)}`, whose values are counted, is another column for each rule")
    return columns.pop()


def _alias_conditions(group: CorrelationGroup, members: Sequence[tuple[tuple[int, ...], str]]) -> list[ex.Expr]:
    """Return the equalities of the events of a group: within one that fulfils several rules, and of two."""
    conditions = list[ex.Expr]()
    for columns in group.aliases:
        for numbers, variable in members:
            first = ex.Attribute(variable, None, columns[numbers[0]])
            further_columns = dict.fromkeys(columns[number] for number in numbers[1:])
            conditions += [
                ex.Binary("=", first, ex.Attribute(variable, None, other))
                for other in further_columns
                if other != first.name
            ]
        for (numbers, variable), (other_numbers, other_variable) in combinations(members, 2):
            if not {*numbers} & {*other_numbers}:
                first = ex.Attribute(variable, None, columns[numbers[0]])
                second = ex.Attribute(other_variable, None, columns[other_numbers[0]])
                conditions.append(ex.Binary("=", first, second))
    return conditions


def _alias_fields(group: CorrelationGroup, members: Sequence[tuple[tuple[int, ...], str]]) -> tuple[str, ...]:
    if not group.aliases:
        return ()
    return tuple(
        expression_text(ex.Attribute(variable, None, columns[numbers[0]]))
        for columns in group.aliases
        for numbers, variable in members
    )
