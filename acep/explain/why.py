"""Explain why a key of a table has no match: :func:`why`, made of :mod:`acep.explain.closest_partial`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa

from acep.errors import DataError, suggest
from acep.events.tables import events_of, key_to_input, schema_of, to_table
from acep.explain.closest_partial import Furthest, furthest
from acep.explain.event_lines import event_lines
from acep.pattern.asked import query_of
from acep.pattern.automata import Automaton
from acep.pattern.expressions import Value
from acep.pattern.tree import Query
from acep.plan.compile import Plan, compile_query

__all__ = ["Furthest", "explained", "why"]

Key = tuple[Value, ...]


def why(
    events: Any,
    query: Query | Automaton | str,
    *,
    key: Mapping[str, Any] | None = None,
    ts: str = "ts",
    type: str | None = "type",
    seq: str | None = None,
    id: str | None = None,
    unit: str | None = None,
) -> Furthest:
    """Find how far the events of one key came, and what failed there.

    ``key`` gives each partition attribute its value, as in the table (a text that looks the same will do); leave it
    out if the query has no partition attributes. The other arguments are those of :func:`acep.match`.

    Raises :class:`QueryError` or :class:`DataError`, also for a key that no event has.

    >>> import acep
    >>> rows = {"ts": [1, 2, 3], "type": ["A", "B", "A"], "k": ["u", "u", "v"], "x": [5, 4, 3]}
    >>> query = acep.parse("PATTERN SEQ(A a, B b) WHERE [k] AND b.x > a.x WITHIN 9")
    >>> print(why(rows, query, key={"k": "u"}))
    k=u: 2 events, no match
    furthest: a=0; b is needed next
      event 1 is no b: b.x > a.x does not hold (b.x = 4, a.x = 5)
    then the stream ended
      event 0: ts=1, type=A, k=u, x=5
      event 1: ts=2, type=B, k=u, x=4
    """
    query = query_of(query)
    if key is not None and not isinstance(key, Mapping):
        raise DataError(
            f"key= is a dict of attributes and values, not {key.__class__.__name__}",
            hint='key={"k": 1}',
            code="option_invalid",
        )
    names: dict[str, Any] = {"ts": ts, "type": type, "seq": seq, "id": id, "unit": unit}
    return explained(to_table(events), query, lambda plan, there: _key(key or {}, plan, there), **names)


def explained(table: pa.Table, query: Query, choose: Callable[[Plan, list[Key]], Key], **columns: Any) -> Furthest:
    """Find how far the events of one key of a table came. ``choose`` returns this key, given the plan and all keys in
    the table. ``columns`` are the arguments of :func:`acep.events.tables.schema_of`."""
    schema = schema_of(table.schema, **columns)
    plan = compile_query(query, schema)
    events = events_of(table, schema, tuple(dict.fromkeys([*plan.columns, *plan.keys])))
    there = dict.fromkeys(zip(*(events.values(name, schema) for name in plan.keys), strict=True))
    key = choose(plan, [one for one in there if None not in one])
    found = furthest(plan, events, key)
    lines = tuple(event_lines(table, schema, plan, sorted(set(found.ids), key=str if schema.id else None)))
    return replace(found, key=key_to_input(key, plan.keys, schema), shown=() if found.matches else lines)


def _key(key: Mapping[str, Any], plan: Plan, there: list[Key]) -> Key:
    """Return the values of the partition attributes as the engine has them."""
    for name in key:
        if name not in plan.keys:
            hint = suggest(str(name), plan.keys) or "the query has no partition attribute: leave key out"
            raise DataError(f"`{name}` is no partition attribute", hint=hint, code="option_invalid")
    if not plan.keys:
        return ()
    shown = {one: key_to_input(one, plan.keys, plan.schema) for one in there}
    some = ", ".join(str(values) for values in list(shown.values())[:3])
    missing = [name for name in plan.keys if name not in key]
    if missing:
        raise DataError(
            f"the key needs a value for {' and '.join(missing)}",
            hint=f"such as {some}" if some else None,
            code="option_invalid",
        )
    for same in (_equal, lambda a, b: str(a) == str(b)):
        for one, values in shown.items():
            if all(same(values[name], key[name]) for name in plan.keys):
                return one
    named = ", ".join(f"{name}={key[name]}" for name in plan.keys)
    raise DataError(f"there is no event with {named}", hint=f"such as {some}" if some else None, code="option_invalid")


def _equal(value: Any, given: Any) -> bool:
    try:
        return bool(value == given)
    except (TypeError, ValueError):  # an array, or pandas' NA
        return False
