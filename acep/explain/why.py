"""Explain why events of a table are no match: :func:`why`, made of :mod:`acep.explain.closest_partial`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from acep.errors import DataError, suggest
from acep.events.batch import Batch
from acep.events.duplicates import check_duplicates, settle_duplicates
from acep.events.empty_schema import with_usable_types
from acep.events.input_tables import input_table
from acep.events.records import Id
from acep.events.tables import batch_of, key_to_input, schema_of
from acep.events.times import value_text
from acep.explain.closest_partial import Furthest, Key, check_sources, furthest, nearest_key
from acep.explain.event_lines import event_lines
from acep.explain.named_rows import rows_in_order
from acep.pattern.automata import Automaton
from acep.pattern.query_arguments import query_of, read_queries
from acep.pattern.tree import Query
from acep.plan.compile import Plan, compile_query
from acep.tables.absent_inputs import Absent

__all__ = ["Furthest", "explain_table", "why"]


def why(
    events: Any,
    query: Query | Automaton | str,
    *,
    key: Mapping[str, Any] | None = None,
    rows: Any = None,
    ts: str = "ts",
    type: str | None = "type",
    seq: str | None = None,
    id: str | None = None,
    unit: str | None = None,
    duplicates: str = "refuse",
) -> Furthest:
    """Find out why events are no match: how far the nearest miss came, and what failed there.

    ``key`` gives each partition attribute its value, as in the table (a text that looks the same will do). Without it
    the key is taken that came nearest. If the key has matches, they are listed, and the nearest miss of the other
    events is shown.

    ``rows``: the ids of the events that were expected to be one match, as a match has them (row numbers from 0, or the
    values of the ``id`` column), or a truth value for each row of the table. Matches that bind exactly these are shown;
    if there is none, those that bind them "and others". Else it is said why exactly these are no match: a partial match
    is followed that binds them one after the other.

    The nearest miss lacks the fewest events; of equal ones the fewest conditions failed on an event that was tried, and
    then the most held. After 300,000 looks at partial matches no further events are taken. The other arguments
    are those of :func:`acep.match`, ``duplicates`` among them.

    Raises :class:`QueryError` or :class:`DataError`, also for a key or a row that no event has.

    >>> import acep
    >>> table = {"ts": [1, 2, 3, 4], "type": ["A", "B", "B", "A"], "k": ["u", "u", "u", "v"], "x": [5, 4, 9, 3]}
    >>> query = acep.parse("PATTERN SEQ(A a, B b) WHERE [k] AND b.x > a.x WITHIN 9")
    >>> print(acep.why(table, query, rows=[0, 1]))
    k=u: 3 events, no match of rows 0, 1
    furthest: a=0; b (type B) is needed next
      event 1 is no b: b.x > a.x does not hold (b.x = 4, a.x = 5)
    then event 1, the next row that was named, could not be bound
      event 0: ts=1, type=A, k=u, x=5
      event 1: ts=2, type=B, k=u, x=4
    >>> acep.why(table, query, key={"k": "u"}).examples
    ({'a': (0,), 'b': (2,)},)
    """
    parsed_query = query_of(query)
    if key is not None and not isinstance(key, Mapping):
        raise DataError(
            f"key= is a dict of attributes and values, not {key.__class__.__name__}",
            hint='key={"k": 1}',
            code="option_invalid",
        )
    names: dict[str, Any] = {"ts": ts, "type": type, "seq": seq, "id": id, "unit": unit}
    check_duplicates(duplicates, id)
    table, _ = input_table(events, read_queries(parsed_query), **names, duplicates=duplicates)
    table = settle_duplicates(table, id, duplicates)
    choose = None if key is None else lambda plan, keys: _key(key, plan, keys)
    return explain_table(table, parsed_query, choose, rows, **names)


def explain_table(
    table: pa.Table, query: Query, choose: Callable[[Plan, list[Key]], Key] | None, rows: Any = None, **columns: Any
) -> Furthest:
    """Find out why events of a table are no match. ``choose`` returns the key, given the plan and all keys in the
    table. ``columns`` are the arguments of :func:`acep.events.tables.schema_of`."""
    table = with_usable_types(table, [query], columns)
    schema = schema_of(table.schema, **columns)
    plan = compile_query(query, schema)
    check_sources(plan)
    batch = batch_of(table, schema, tuple(dict.fromkeys([*plan.columns, *plan.keys])))
    absent = Absent([plan])
    absent.record_batch(batch)
    events = batch.events
    key_of_event: list[Key] = [*zip(*(events.values(name, schema) for name in plan.keys), strict=True)]
    keys: list[Key] = [*dict.fromkeys(key for key in key_of_event if None not in key)] if plan.keys else [()]
    key = None if choose is None else choose(plan, keys)
    named = () if rows is None else rows_in_order(rows, table, schema, events)
    report = _explain_key(plan, batch, key, keys, named, key_of_event)
    index_of_id = {identity: index for index, identity in enumerate(events.ids or ())}
    lines = event_lines(table, schema, plan, sorted(set(report.ids), key=index_of_id.__getitem__))
    return replace(report, notes=(*absent.lines(), *report.notes), shown=tuple(lines))


def _explain_key(
    plan: Plan, batch: Batch, key: Key | None, keys: list[Key], rows: tuple[Id, ...], key_of_event: list[Key]
) -> Furthest:
    nearest_of, notes = 0, tuple[str, ...]()
    if rows and plan.keys:
        key_of_id = dict(zip(batch.events.ids or (), key_of_event, strict=True))
        row_keys = {identity: key_of_id[identity] for identity in rows}
        if apart := _reason_for_keys(plan, rows, row_keys, key):
            return Furthest(len(rows), 0, apart, {}, (), "", rows=rows)
        key = row_keys[rows[0]]
    elif key is None:
        if not keys:
            names = " and ".join(plan.keys)
            return Furthest(len(batch), 0, f"nothing is bound: no event has a value of {names}", {}, (), "")
        nearest_of = len(keys)
        nearest, n_seen = nearest_key(plan, batch) if len(keys) > 1 else (None, len(batch))
        key = nearest or keys[0]
        if n_seen < len(batch):
            notes = (f"to find the nearest key, only the first {n_seen:,} of {len(batch):,} events were looked at",)
    report = furthest(plan, batch, key, rows)
    return replace(report, key=key_to_input(key, plan.keys, plan.schema), keys=nearest_of, notes=notes)


def _reason_for_keys(plan: Plan, rows: Sequence[Id], row_keys: dict[Id, Key], key: Key | None) -> str:
    """Return why rows are not of one key, or "" if they are."""
    names = " and ".join(plan.keys)
    for identity in rows:
        if None in row_keys[identity]:
            return f"nothing is bound: event {identity} has no value of {names}, and such events match nothing"
    if key is not None and key != row_keys[rows[0]]:
        row_key = _key_text(row_keys[rows[0]], plan)
        return f"nothing is bound: event {rows[0]} is of {row_key}, not of {_key_text(key, plan)}"
    first = {row_key: identity for identity, row_key in reversed(row_keys.items())}
    if len(first) == 1:
        return ""
    key_texts = ", ".join(
        f"{_key_text(row_key, plan)} (event {identity})" for row_key, identity in [*reversed(first.items())][:3]
    )
    return f"nothing is bound: all events of a match have one value of {names}, and the rows have several: {key_texts}"


def _key_text(key: Key, plan: Plan) -> str:
    return ", ".join(f"{name}={value_text(value)}" for name, value in key_to_input(key, plan.keys, plan.schema).items())


def _key(key: Mapping[str, Any], plan: Plan, keys: list[Key]) -> Key:
    """Return the values of the partition attributes as the engine has them."""
    for name in key:
        if name not in plan.keys:
            hint = suggest(str(name), plan.keys) or "the query has no partition attribute: leave key out"
            raise DataError(f"`{name}` is no partition attribute", hint=hint, code="option_invalid")
    if not plan.keys:
        return ()
    input_keys = {engine_key: key_to_input(engine_key, plan.keys, plan.schema) for engine_key in keys}
    examples = ", ".join(str(values) for values in list(input_keys.values())[:3])
    missing = [name for name in plan.keys if name not in key]
    if missing:
        raise DataError(
            f"the key needs a value for {' and '.join(missing)}",
            hint=f"such as {examples}" if examples else None,
            code="option_invalid",
        )
    for are_equal in (_equal, lambda a, b: str(a) == str(b)):
        for candidate, values in input_keys.items():
            if all(are_equal(values[name], key[name]) for name in plan.keys):
                return candidate
    named = ", ".join(f"{name}={key[name]}" for name in plan.keys)
    raise DataError(
        f"there is no event with {named}", hint=f"such as {examples}" if examples else None, code="option_invalid"
    )


def _equal(value: Any, other: Any) -> bool:
    try:
        return bool(value == other)
    except (TypeError, ValueError):  # an array, or pandas' NA
        return False
