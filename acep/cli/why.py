"""Run ``acep why``: show how far events advanced in the pattern, those of a key or rows that the user names, and the
conditions that failed; or what multiplies the matches, if there are many."""

from __future__ import annotations

import argparse
import re
import sys
from dataclasses import replace
from datetime import datetime
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from acep.cli.inputs import column_names, files_text, load_events, load_query
from acep.cli.progress import progress
from acep.cli.terminal import show
from acep.errors import DataError, suggest

if TYPE_CHECKING:
    import pyarrow as pa

    from acep.explain.closest_partial import Key
    from acep.pattern.tree import Query
    from acep.plan.compile import Plan
    from acep.plan.schema import Schema
    from acep.tuning.many import ManyMatches


def run(args: argparse.Namespace) -> None:
    """Explain the events of a key, or some rows, and print the result."""
    query = load_query(args)
    if args.many and args.rows is not None:
        raise DataError("--many counts all matches, and --rows asks about one", code="option_invalid")
    if args.many:
        with progress(args, f"reading {files_text(args.events)}"):
            table = load_events(args.events, query, args, every=True)
        with progress(args, "counting matches"):
            reasons = _explain_many(table, query, args, args.key)
        show(str(reasons))
        return
    from acep.explain.why import explain_table
    from acep.tuning.many import MANY_MATCHES

    with progress(args, f"reading {files_text(args.events)}"):
        table = load_events(args.events, query, args)
    with progress(args, "matching the events of the key"):
        choose = None if args.key is None else lambda plan, keys: _key(args.key, plan, keys)
        rows = None if args.rows is None else [name.strip() for name in args.rows.split(",") if name.strip()]
        report = explain_table(table, query, choose, rows, **column_names(args))
    show(str(report))
    if report.matches >= MANY_MATCHES and rows is None:
        sys.stdout.flush()
        with progress(args, "counting matches"):
            reasons = _explain_many(table, query, args, args.key)
        show(f"\n{reasons}")


def _explain_many(table: pa.Table, query: Query, args: argparse.Namespace, key: str | None) -> ManyMatches:
    """Return what multiplies the matches: those of one key, if it is given."""
    from acep.events.buffers import selectable
    from acep.events.tables import events_of, schema_of
    from acep.plan.compile import compile_query
    from acep.tuning.many import many_matches

    names = column_names(args)
    if key is not None:
        schema = schema_of(table.schema, **names)
        plan = compile_query(query, schema)
        events = events_of(table, replace(schema, id=None), plan.keys)
        rows = [*zip(*(events.values(name, schema) for name in plan.keys), strict=True)]
        key_values = _key(key, plan, [row for row in dict.fromkeys(rows) if None not in row])
        assert events.ids is not None
        table = selectable(table).take(
            [row_number for row_number, row in zip(events.ids, rows, strict=True) if row == key_values]
        )
    return many_matches(table, query, names)


# Keys -------------------------------------------------------------------------------------------


def _key(text: str, plan: Plan, keys: list[Key]) -> Key:
    """Return the values of the partition attributes that the user means."""
    if not plan.keys:
        raise DataError("the query has no partition attribute", hint="leave out --key", code="option_invalid")
    from acep.events.tables import key_to_input
    from acep.events.times import value_text

    schema = plan.schema
    keys_by_text = {
        ", ".join(value_text(v) for v in key_to_input(key, plan.keys, schema).values()): key for key in keys
    }
    parts = _parts(text, plan.keys)
    values = tuple(_value(part, name, schema) for part, name in zip(parts, plan.keys, strict=True))
    if values not in keys:
        suggestion = suggest(", ".join(parts), keys_by_text)
        if len(plan.keys) == 1 and re.match(r"\s*\w+\s*=", parts[0]):
            suggestion = f"the partition attribute is `{plan.keys[0]}`: --key {plan.keys[0]}=..."
        named = ", ".join(f"{name}={part}" for name, part in zip(plan.keys, parts, strict=True))
        raise DataError(f"there is no event with {named}", hint=suggestion, code="option_invalid")
    return values


def _parts(text: str, keys: tuple[str, ...]) -> list[str]:
    """Return the value of each key, from ``x=1,y=2`` in any order, or from a bare value if there is one key."""
    named: dict[str, str] = {}
    pattern = "|".join(map(re.escape, keys))
    if re.match(rf"\s*({pattern})\s*=", text):
        assignments = [*re.finditer(rf"(?:^|,)\s*({pattern})\s*=", text)]
        ends = [assignment.start() for assignment in assignments[1:]] + [len(text)]
        named = {match[1]: text[match.end() : end].strip() for match, end in zip(assignments, ends, strict=True)}
    elif len(keys) == 1:
        named = {keys[0]: text}
    if set(named) != set(keys):
        example = ",".join(f"{key}=..." for key in keys)
        raise DataError(
            f"--key {text} does not name {' and '.join(keys)}", hint=f"write --key {example}", code="option_invalid"
        )
    return [named[key] for key in keys]


def _value(text: str, name: str, schema: Schema) -> Any:
    from acep.events.tables import attribute_tick
    from acep.pattern.times import ns_of
    from acep.plan.schema import Kind

    kind, scale = schema.engine_kind(name), schema.scale(name)
    try:
        if scale is not None:
            units = Fraction(text) * 10**scale
            return int(units) if units.denominator == 1 else units  # keys are integers, so this matches none
        if kind is Kind.INT:
            return int(text)
        if kind is Kind.FLOAT:
            return float(text)
        if kind is Kind.BOOL:
            return {"true": True, "false": False}[text.lower()]
        tick = attribute_tick(schema)
        if kind is Kind.TIMESTAMP and tick is not None:
            return int(Fraction(ns_of(datetime.fromisoformat(text))) / tick)
    except (ValueError, KeyError):
        raise DataError(f"--key: {text!r} is no {kind.value}", code="option_invalid") from None
    return text
