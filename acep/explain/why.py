"""Explain why a key of a table has no match: :func:`why`, made of :mod:`acep.explain.closest_partial`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from acep.errors import DataError, suggest
from acep.events.records import Events
from acep.events.tables import events_of, key_to_input, schema_of, to_table
from acep.explain.closest_partial import Furthest, furthest
from acep.pattern.asked import query_of
from acep.pattern.expressions import Value
from acep.pattern.tree import Query
from acep.plan.compile import Plan, compile_query
from acep.plan.schema import Schema

__all__ = ["Furthest", "why"]


def why(
    events: Any,
    query: Query | str,
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
    """
    query = query_of(query)
    if key is not None and not isinstance(key, Mapping):
        raise DataError(f"key= is a dict of attributes and values, not {key.__class__.__name__}", hint='key={"k": 1}')
    table = to_table(events)
    schema = schema_of(table.schema, ts=ts, type=type, seq=seq, id=id, unit=unit)
    plan = compile_query(query, schema)
    rows = events_of(table, schema, tuple(dict.fromkeys([*plan.columns, *plan.keys])))
    wanted = _key(key or {}, plan, rows, schema)
    return replace(furthest(plan, rows, wanted), key=key_to_input(wanted, plan.keys, schema))


def _key(key: Mapping[str, Any], plan: Plan, events: Events, schema: Schema) -> tuple[Value, ...]:
    """Return the values of the partition attributes as the engine has them."""
    for name in key:
        if name not in plan.keys:
            hint = suggest(str(name), plan.keys) or "the query has no partition attribute: leave key out"
            raise DataError(f"`{name}` is no partition attribute", hint=hint)
    if not plan.keys:
        return ()
    columns = [_column(name, events, schema) for name in plan.keys]
    there = dict.fromkeys(one for one in zip(*columns, strict=True) if None not in one)
    shown = {one: key_to_input(one, plan.keys, schema) for one in there}
    some = ", ".join(str(values) for values in list(shown.values())[:3])
    missing = [name for name in plan.keys if name not in key]
    if missing:
        raise DataError(f"the key needs a value for {' and '.join(missing)}", hint=f"such as {some}" if some else None)
    for same in (_equal, lambda a, b: str(a) == str(b)):
        for one, values in shown.items():
            if all(same(values[name], key[name]) for name in plan.keys):
                return one
    named = ", ".join(f"{name}={key[name]}" for name in plan.keys)
    raise DataError(f"there is no event with {named}", hint=f"such as {some}" if some else None)


def _equal(value: Any, given: Any) -> bool:
    try:
        return bool(value == given)
    except (TypeError, ValueError):  # an array, or pandas' NA
        return False


def _column(name: str, events: Events, schema: Schema) -> list[Value]:
    if name == schema.ts:
        return list(events.ts)
    return list(events.types) if name == schema.type else events.columns[name]
