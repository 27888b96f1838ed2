"""Find types, attributes and keys that do not fit a query, and events out of order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acep.errors import AcepError, suggest
from acep.events.columns import ticks_of
from acep.events.fields import named_column
from acep.events.tables import batch_of, schema_of
from acep.linting.changed_matches import numbers_text
from acep.linting.report import Hit
from acep.linting.tried_matches import match_number
from acep.linting.view import Bools, LintView
from acep.pattern.expressions import Attribute, Span
from acep.pattern.tree import Negation, Strategy
from acep.pattern.walk import leaves_of
from acep.plan.compile import compile_query
from acep.plan.lint.finding import ANOTHER, EACH_ANOTHER
from acep.plan.schema import Kind
from acep.tables.absent_inputs import lacking_types

__all__ = [
    "attribute_null",
    "key_dominant",
    "key_null",
    "key_unique",
    "negation_never",
    "null_breaks",
    "numbers_as_text",
    "out_of_order",
    "type_never",
]

MANY_NULLS = 0.1  # share of events with a null key
DOMINANT = 0.9
FEW = 20  # events below which shares say nothing


def type_never(view: LintView) -> Iterator[Hit]:
    """Find types of the pattern that no event has."""
    if view.batch.types is None or not len(view):
        return
    absent = {name for part in view.parts for name in part.types if name not in view.types}
    needed = lacking_types(view.plan.query.pattern, absent)
    for name in dict.fromkeys(name for part in view.parts if not isinstance(part, Negation) for name in part.types):
        if name not in absent:
            continue
        hint = suggest(name, view.types) or "the events have no types"
        if name not in needed:
            yield Hit("warning", f"no event is of type `{name}`", hint, view.place(name))
        elif view.plan.query.errors:
            yield Hit(
                "warning", f"no event is of type `{name}`: it is missing from every match", hint, view.place(name)
            )
        else:
            yield Hit("error", f"no event is of type `{name}`, so that nothing matches", hint, view.place(name))


def negation_never(view: LintView) -> Iterator[Hit]:
    """Find negations that no event can break, as none has their type."""
    if view.batch.types is None or not len(view):
        return
    for part in view.parts:
        if isinstance(part, Negation) and part.types and not any(name in view.types for name in part.types):
            names = " or ".join(f"`{name}`" for name in part.types)
            hint = suggest(part.types[0], view.types) or "the events have no types"
            yield Hit(
                "warning", f"no event is of type {names}: the negation is never broken", hint, view.place(part.var)
            )


def attribute_null(view: LintView) -> Iterator[Hit]:
    """Find attributes that are null in all events of their variable."""
    schema = view.plan.schema
    reported = set[tuple[str, str]]()
    for leaf in _attributes(view):
        name = schema.column_name(leaf.name)
        if (leaf.var, name) in reported or name in (schema.ts, schema.type):
            continue
        reported.add((leaf.var, name))
        rows = view.of_variable(leaf.var)
        if rows.any() and view.null(leaf.name)[rows].all():
            yield Hit(
                "warning",
                f"`{leaf.var}.{leaf.name}` is null in all {int(rows.sum()):,} events that `{leaf.var}` can bind: "
                "a comparison with it is never true",
                f"look for the attribute in another column, or say what holds without it: IS NULL: {EACH_ANOTHER}",
                leaf.span,
            )


def null_breaks(view: LintView) -> Iterator[Hit]:
    """Find attributes that are null in some events of their variable, where such an event ends a match."""
    schema, reported = view.plan.schema, set[tuple[str, str]]()
    if view.plan.query.strategy not in (Strategy.STRICT_CONTIGUITY, Strategy.PARTITION_CONTIGUITY):
        return
    for leaf in (leaf for expr in view.plan.query.where for leaf in leaves_of(expr) if isinstance(leaf, Attribute)):
        name = schema.column_name(leaf.name)
        if (leaf.var, name) in reported or name in (schema.ts, schema.type):
            continue
        reported.add((leaf.var, name))
        rows = view.of_variable(leaf.var)
        n_null, n_rows = int(view.null(name)[rows].sum()), int(rows.sum())
        if 0 < n_null < n_rows:
            dropped = _number_without(view, rows & view.null(name))
            yield Hit(
                "warning",
                f"`{leaf.var}.{leaf.name}` is null in {n_null:,} of {n_rows:,} events that `{leaf.var}` can bind: "
                "a comparison with null is not true, so that each of them ends a run of events",
                "drop these rows first, or say what holds without the value, as by IS NULL: "
                f"{EACH_ANOTHER}{numbers_text(view, {'these rows dropped': dropped})}",
                leaf.span,
            )


def numbers_as_text(view: LintView) -> Iterator[Hit]:
    """Find texts that are compared by size though all of them are numbers."""
    reported = set[str]()
    for expr in view.plan.query.where:
        for leaf in _compared_by_size(expr):
            column = view.batch.columns.get(leaf.name)
            if column is None or column.kind is not Kind.STRING or leaf.name in reported:
                continue
            reported.add(leaf.name)
            used = [text for text in column.texts or () if text][:1000]
            if used and all(map(_is_number, used)):
                yield Hit(
                    "warning",
                    f"`{leaf.name}` is a text, and texts are compared letter by letter: '10' < '9'",
                    f'all its values are numbers: give it a numeric type, as by cast={{"{leaf.name}": "float"}}: '
                    f"{ANOTHER}{numbers_text(view, {'numbers': _number_with_floats(view, leaf.name)})}",
                    leaf.span,
                )


def key_null(view: LintView) -> Iterator[Hit]:
    """Find partition attributes that are null in many of the events that the query can bind."""
    rows = view.bindable
    n_bindable = int(rows.sum())
    for name in view.plan.keys:
        n_null = int(view.null(name)[rows].sum())
        if n_bindable and n_null == n_bindable:
            text = f"the partition attribute `{name}` is null in every event that can be bound, so that nothing matches"
            yield Hit("error", text, "name another attribute", _key_place(view, name))
        elif n_null > MANY_NULLS * n_bindable and n_bindable >= FEW:
            text = (
                f"the partition attribute `{name}` is null in {n_null / n_bindable:.0%} of the events that can be bound"
            )
            yield Hit("warning", text, _without_key_hint(view, name), _key_place(view, name))


def key_unique(view: LintView) -> Iterator[Hit]:
    """Find keys, and attributes that equalities tie, of which no event has the same as another, where a match needs two
    events."""
    if view.shortest < 2:
        return
    for names in ([view.plan.keys] if view.plan.keys else []) + [(name,) for name in view.plan.tied]:
        numbers = view.numbers(names)
        key_numbers = numbers[view.bindable & (numbers >= 0)]
        if len(key_numbers) > 1 and len(np.unique(key_numbers)) == len(key_numbers):
            what = f"a value of {', '.join(names)} of its own, and a match needs {view.shortest} events with the same"
            yield Hit(
                "error", f"each event has {what}", "name an attribute that events share", _key_place(view, names[0])
            )


def key_dominant(view: LintView) -> Iterator[Hit]:
    """Find a key that most events have."""
    if not view.plan.keys:
        return
    key_numbers = view.partitions[view.bindable & (view.partitions >= 0)]
    if len(key_numbers) < FEW:
        return
    _, sizes = np.unique(key_numbers, return_counts=True)
    if sizes.max() >= DOMINANT * len(key_numbers):
        share = "all" if len(sizes) == 1 else f"{sizes.max() / len(key_numbers):.0%} of"
        yield Hit(
            "warning",
            f"one value of {', '.join(view.plan.keys)} has {share} the events that can be bound",
            "partitions save little, and on Spark one bucket has most of the work; is it a value such as 'unknown'?",
            _key_place(view, view.plan.keys[0]),
        )


def out_of_order(view: LintView) -> Iterator[Hit]:
    """Find events that are older than one before them."""
    schema = view.plan.schema
    if len(view) < 2:
        return
    ts = ticks_of(schema.ts, named_column(view.table, schema.ts), schema.tick_ns or 1)[0]
    late = np.maximum.accumulate(ts) - ts
    n_late, max_delay = int((late > 0).sum()), int(late.max())
    if n_late:
        are_older = "event is older than one before it" if n_late == 1 else "events are older than one before them"
        exactly = (
            ""
            if view.exact_length(max_delay) == view.rounded_length(max_delay)
            else f" ({view.exact_length(max_delay)})"
        )
        yield Hit(
            "note",
            f"{n_late:,} {are_older}, by up to {view.rounded_length(max_delay)}{exactly}",
            "acep match sorts files; a stream needs to know how late events may be: lateness=, or watermark=",
        )


def _without_key_hint(view: LintView, name: str) -> str:
    """Return what may be done with events without a key. Under strict contiguity they stand between others, so that
    the matches are others without them."""
    filled = f"fill `{name}` in where it is known: {ANOTHER}"
    if not view.plan.strict:
        return f"events without a key match nothing: to drop them changes no match; or {filled}"
    numbers = numbers_text(view, {"these events dropped": _number_without(view, view.null(name))})
    return (
        "events without a key match nothing, but break what they stand between: leave them where they are, or drop "
        f"them, or {filled.removesuffix(ANOTHER)}{EACH_ANOTHER}{numbers}"
    )


def _number_without(view: LintView, rows: Bools) -> int | None:
    """Return the number of matches without some events; ``None`` where counting takes too long."""
    return match_number(view.without_ids, view.batch.take(np.flatnonzero(~rows)))


def _number_with_floats(view: LintView, name: str) -> int | None:
    """Return the number of matches with a column of texts read as numbers; ``None`` where it cannot be counted."""
    index = view.table.schema.get_field_index(name)
    if index < 0:
        return None
    try:
        numbers = pc.cast(view.table.column(index), pa.float64())
        table, old = view.table.set_column(index, name, numbers), view.plan.schema
        columns: dict[str, Any] = {"ts": old.ts, "type": old.type, "seq": old.seq}
        plan = compile_query(view.plan.query, replace(schema_of(table.schema, **columns), tick_ns=old.tick_ns))
        return match_number(plan, batch_of(table, plan.schema, tuple(dict.fromkeys([*plan.columns, *plan.keys]))))
    except (AcepError, pa.ArrowException):
        return None


def _attributes(view: LintView) -> Iterator[Attribute]:
    for expr in (*view.plan.query.where, *view.plan.query.results):
        yield from (leaf for leaf in leaves_of(expr) if isinstance(leaf, Attribute))


def _compared_by_size(expr: object) -> Iterator[Attribute]:
    """Yield the attributes that are compared by size on their own."""
    from acep.pattern.expressions import Binary

    match expr:
        case Binary(op="and" | "or", left=left, right=right):
            yield from _compared_by_size(left)
            yield from _compared_by_size(right)
        case Binary(op="<" | "<=" | ">" | ">=", left=left, right=right):
            yield from (side for side in (left, right) if isinstance(side, Attribute))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _key_place(view: LintView, name: str) -> Span | None:
    """Return the place of a partition attribute in the query: ``[name]``, or an equality."""
    start = view.plan.query.text.find(f"[{name}]")
    if start >= 0:
        return Span(start + 1, start + 1 + len(name))
    return next((leaf.span for leaf in _attributes(view) if leaf.name == name and leaf.span is not None), None)
