"""Find windows, gaps, ties and units that do not fit each other."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import numpy as np

from acep.events.columns import UNIT_NS
from acep.events.tables import time_types
from acep.functions.lookup import is_time_part
from acep.linting.changed_matches import numbers_text
from acep.linting.report import Hit
from acep.linting.tried_matches import match_number
from acep.linting.view import LintView
from acep.pattern import expressions as ex
from acep.pattern.expressions import Span
from acep.pattern.walk import children, leaves_of, levels, positions
from acep.plan.compile import compile_query
from acep.plan.lint.finding import ANOTHER

__all__ = ["ties_unordered", "time_in_utc", "unit_suspect", "window_long", "window_narrow", "window_short"]

MANY_TIES = 0.1  # share of the events that have the time of the one before them in their partition
FEW = 20  # events below which shares say nothing
# Seconds since 1970 of about 1990 and 2100: whole numbers between these, times the ticks of a second, are such times.
EARLIEST, LATEST = 6.3e8, 4.2e9
UTC = ("UTC", "Etc/UTC", "+00:00", "Z", "GMT")
PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def window_short(view: LintView) -> Iterator[Hit]:
    """Find windows that are shorter than most gaps between two events of a key."""
    span = view.plan.window.span
    if span is None or view.plan.window.counted or view.shortest < 2:
        return
    gaps = view.gaps(view.bindable)
    if len(gaps) < FEW:
        return
    usual = int(np.median(gaps))
    min_gap = int(gaps.min())
    if min_gap > span:
        text = f"the window is {view.exact_length(span)}, and no two events of a key that can be bound are so near: "
        text += f"the least gap is {view.rounded_length(min_gap)}"
        yield Hit("error", text, _unit_hint(view), _window_place(view))
    elif usual > span and view.shortest > 1 and (gaps <= span).mean() < 0.1:
        text = f"the window is {view.exact_length(span)}, and the usual gap between two events of a key that can be "
        text += f"bound is {view.rounded_length(usual)}: {(gaps <= span).mean():.1%} of the gaps fit"
        yield Hit("warning", text, _unit_hint(view), _window_place(view))


def window_long(view: LintView) -> Iterator[Hit]:
    """Find windows that are longer than the whole stream."""
    span = view.plan.window.span
    if span is None or len(view) < FEW:
        return
    stream_length = len(view) if view.plan.window.counted else int(view.batch.ts[-1] - view.batch.ts[0])
    if span >= stream_length > 0:
        length_text = f"{len(view):,} events" if view.plan.window.counted else view.rounded_length(stream_length)
        text = f"the window is longer than the whole stream of {length_text}: no partial match ever expires"
        yield Hit("warning", text, _unit_hint(view), _window_place(view))


def window_narrow(view: LintView) -> Iterator[Hit]:
    """Find windows of fewer events than a match has."""
    span = view.plan.window.span
    if span is not None and view.plan.window.counted and span + 1 < view.shortest:
        text = f"a match has {view.shortest} events or more, and the window {span + 1}"
        yield Hit("error", text, "give a window of more events", _window_place(view))


def ties_unordered(view: LintView) -> Iterator[Hit]:
    """Find many events of one time whose order nothing says."""
    if view.plan.schema.seq is not None or positions(view.plan.query.pattern) < 2:
        return
    gaps = view.gaps(np.ones(len(view), bool) if view.plan.strict else view.bindable)
    if len(gaps) >= FEW and (gaps == 0).mean() >= MANY_TIES:
        what = "events of a key" if view.plan.keys else "events"
        yield Hit(
            "warning",
            f"{(gaps == 0).mean():.0%} of the {what} have the same `{view.plan.schema.ts}` as the one before them, and "
            "only the order of the rows decides which comes first",
            f"if a column has their order, name it as seq=: by another order {ANOTHER}",
        )


def time_in_utc(view: LintView) -> Iterator[Hit]:
    """Find parts of a time, such as its hour, and times without a zone that are compared with it, where the column is
    in another zone than UTC."""
    reported = set[tuple[str, str]]()
    expressions = (*view.plan.query.where, *view.plan.query.results)
    for part in (part for expr in expressions for part, _ in levels(expr, children)):
        constants = [child for child in children(part) if _has_no_zone(child, view)]
        if isinstance(part, ex.Call) and is_time_part(part.name):
            what, span = f"`{part.name}` is that of the time in UTC", part.span
            hint = f"for local times take the zone off before, by tz_localize(None) in pandas: {ANOTHER}"
        elif isinstance(part, ex.Binary | ex.In | ex.Between) and constants:
            what, span = "the time is in UTC", constants[0].span
            hint = f"if another zone is meant, give it, as in '2024-01-31 10:00:00+01:00': {ANOTHER}"
        else:
            continue
        for name, zone in _zones(part, view):
            if (what, name) not in reported:
                reported.add((what, name))
                yield Hit("warning", f"{what}, and `{name}` is in {zone}", hint, span)


def _zones(part: ex.Expr, view: LintView) -> Iterator[tuple[str, str]]:
    """Yield the columns in another zone than UTC that an expression is of, with the zones."""
    schema = view.plan.schema
    types = time_types(schema)
    leaves = leaves_of(part) if isinstance(part, ex.Call) else children(part)
    for leaf in leaves:
        name = schema.column_name(leaf.name) if isinstance(leaf, ex.Attribute) else ""
        zone = getattr(types.get(name), "tz", None)
        if zone not in (None, *UTC):
            yield name, str(zone)


def _has_no_zone(constant: ex.Expr, view: LintView) -> bool:
    """Return whether it is a time that is written without a zone, or a text that stands for one."""
    if isinstance(constant, ex.Timestamp):
        span = constant.span
        text = "" if span is None else view.plan.query.text[span.start : span.end].rstrip("'\" ")
    else:
        text = constant.value if isinstance(constant, ex.Literal) and isinstance(constant.value, str) else ""
    return bool(text) and re.search(r":.*([Zz]|[+-]\d\d(:?\d\d)?)$", text.strip()) is None


def unit_suspect(view: LintView) -> Iterator[Hit]:
    """Find integer times whose size speaks for another unit than the one that is given."""
    schema = view.plan.schema
    guess = guessed_unit(view)
    if guess is None or schema.instants or schema.tick_ns is None:
        return
    if schema.tick_ns != UNIT_NS[guess]:
        unit = next((name for name, ns in UNIT_NS.items() if ns == schema.tick_ns), "another unit")
        text = f"`{schema.ts}` looks like {guess} since 1970 ({int(view.batch.ts[0])}), and unit= says {unit}"
        plan = view.without_ids
        number = match_number(
            compile_query(plan.query, replace(plan.schema, tick_ns=Fraction(UNIT_NS[guess]))), view.batch
        )
        hint = f'if they are {guess}, give unit="{guess}": {ANOTHER}{numbers_text(view, {"it": number})}'
        yield Hit("warning", text, hint, _window_place(view))


def guessed_unit(view: LintView) -> str | None:
    """Return the unit in which integer times are times since 1970, or ``None`` if they are none."""
    if not len(view) or view.plan.schema.instants:
        return None
    low, high = int(view.batch.ts[0]), int(view.batch.ts[-1])
    for name, ticks in PER_SECOND.items():
        if EARLIEST * ticks <= low and high <= LATEST * ticks:
            return name
    return None


def _unit_hint(view: LintView) -> str:
    schema, within = view.plan.schema, view.plan.query.within
    guess = guessed_unit(view)
    if guess is not None and within is not None and within.unit == "ticks":
        return (
            f"a plain number is in ticks of `{schema.ts}`, which looks like {guess}: say WITHIN 5 s and the "
            f"unit: {ANOTHER}"
        )
    if schema.instants:
        return "check the length of the window"
    return "check the length of the window and the unit of the time"


def _window_place(view: LintView) -> Span | None:
    """Return the place of WITHIN in the query's text."""
    query = view.plan.query
    start = query.text.upper().rfind("WITHIN")
    return None if query.letters or query.within is None or start < 0 else Span(start, start + len("WITHIN"))
