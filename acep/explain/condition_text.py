"""Say that a condition does not hold, with the values that it looked at as they are in the input."""

from __future__ import annotations

from typing import Any

from acep.events.tables import key_to_input, time_types
from acep.events.times import value_text
from acep.functions.aggregates import AGGREGATES
from acep.output.json_records import plain
from acep.pattern import expressions as ex
from acep.pattern.evaluation import Compiled
from acep.pattern.printing import expression_text
from acep.pattern.walk import means_each, steps_back
from acep.plan.compile import Plan
from acep.reference.bindings import aggregate, failing_values
from acep.reference.engine import Event

__all__ = ["failed_condition_text", "input_value"]

Bound = dict[str, list[Event]]


def failed_condition_text(plan: Plan, condition: Compiled, bound: Bound, var: str = "") -> str:
    """Return that a condition does not hold, with its values. ``bound``: the events of each variable, with the one
    that was bound to ``var`` last.

    >>> from acep.events.tables import schema_of, to_table
    >>> from acep.pattern.text.sase import parse
    >>> from acep.plan.compile import compile_query
    >>> schema = schema_of(to_table({"ts": [1], "type": ["A"], "x": [5]}).schema)
    >>> plan = compile_query(parse("PATTERN SEQ(A a, B b) WHERE a.x < b.x WITHIN 9"), schema)
    >>> failed_condition_text(plan, plan.predicates[0], {"a": [Event(0, 1, 0, (5,))], "b": [Event(1, 2, 1, (4,))]})
    'a.x < b.x does not hold (a.x = 5, b.x = 4)'
    """
    values = [_last_value(plan, leaf, bound, var) for leaf in condition.leaves]
    places: dict[str, int] = {}
    if condition.run(values) is True:  # it fails for other events of a repetition than the last ones
        values, places = failing_values(plan, condition, bound) or (values, places)
    value_texts = [
        f"{_leaf_text(leaf, places)} = {_value_text(_as_input(plan, leaf, value))}"
        for leaf, value in zip(condition.leaves, values, strict=True)
    ]
    values_text = f" ({', '.join(value_texts)})" if value_texts else ""
    return f"{expression_text(condition.written)} does not hold{values_text}"


def input_value(plan: Plan, name: str, value: Any) -> Any:
    """Return a value of a column as it is in the input."""
    length = plan.schema.counts_ticks(name) is True and value is not None
    if not isinstance(value, int) and not length:
        return value
    (original,) = key_to_input((value,), (name,), plan.schema).values()
    if length:
        return value_text(original)
    time = time_types(plan.schema).get(name)
    return original if time is None else plain(original, getattr(time, "tz", None) is not None)


def _as_input(plan: Plan, leaf: ex.Leaf, value: Any) -> Any:
    if not isinstance(leaf, ex.Attribute | ex.Aggregate) or leaf.name is None:
        return value
    if isinstance(leaf, ex.Aggregate) and AGGREGATES[leaf.function].gives == "integer":
        return value
    return input_value(plan, leaf.name, value)


def _last_value(plan: Plan, leaf: ex.Leaf, bound: Bound, var: str) -> Any:
    """Return the value of a reference to the events that were bound last."""
    events = bound.get(leaf.var, [])
    match leaf:
        case ex.Length():
            return len(events)
        case ex.Attribute(index=index, name=name):
            position = index - 1 if isinstance(index, int) else -1 - steps_back(index)
            return events[position].row[plan.row.index(name)] if -len(events) <= position < len(events) else None
        case ex.Aggregate(function=function, scope=scope, name=name):
            if scope == "before" and leaf.var == var:
                events = events[:-1]
            if name is None:
                return len(events)
            return aggregate(function, [e.row[plan.row.index(name)] for e in events], plan.schema.scale(name) or 0)


def _leaf_text(leaf: ex.Leaf, places: dict[str, int]) -> str:
    """Return a reference as text; one to each event of a repetition with the number of the event."""
    if isinstance(leaf, ex.Attribute) and leaf.var in places and means_each(leaf):
        return expression_text(ex.Attribute(leaf.var, places[leaf.var] + 1 - steps_back(leaf.index), leaf.name))
    return expression_text(leaf)


def _value_text(value: Any) -> str:
    return "null" if value is None else str(value)
