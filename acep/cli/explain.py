"""``acep explain``: what becomes of a query, stage by stage, and what in it is costly."""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from acep.cli.inputs import column_names, load_events, load_query
from acep.errors import DataError

if TYPE_CHECKING:
    from acep.pattern.tree import Query
    from acep.plan.compile import Plan

WIDTH = 100


def run(args: argparse.Namespace) -> None:
    """Print the stages, and draw the automaton if that is asked for."""
    query = load_query(args)
    plan = None
    if args.events is not None:
        from acep.engine.tables import schema_of
        from acep.plan.compile import compile_query

        table = load_events(args.events, query, args)
        plan = compile_query(query, schema_of(table.schema, **column_names(args)))
    if args.svg is not None:
        _draw(query, args.svg)
    sys.stdout.writelines(line + "\n" for line in explanation(query, plan))


def explanation(query: Query, plan: Plan | None = None) -> Iterator[str]:
    """The lines that are printed: tokens, tree, Thompson automaton, arcs, with a plan what it adds, and the lint."""
    from acep.automaton.arcs import compose
    from acep.automaton.printing import arcs_lines, program_lines, thompson_lines
    from acep.automaton.thompson import build
    from acep.pattern.printing import tree_lines
    from acep.plan.lint import lint

    automaton = build(query)
    yield from _section("tokens", textwrap.wrap("  ".join(_tokens(query)), WIDTH, break_long_words=False))
    yield from _section("tree", tree_lines(query))
    yield from _section("Thompson automaton", thompson_lines(automaton))
    yield from _section("arcs", arcs_lines(compose(automaton), automaton))
    if plan is not None:
        yield from _section("plan", _plan_lines(plan))
        yield from _section("program", program_lines(plan.program, [p.expr for p in plan.predicates]))
    for source in query.sources:
        yield from _section(f"source {source.type}", list(explanation(source.query)))
    findings = lint(query)
    lines = [line for finding in findings for line in f"* {finding}".splitlines()]
    yield from _section("costly", lines or ["nothing that stands out"], last=True)


def _section(title: str, lines: list[str], *, last: bool = False) -> Iterator[str]:
    yield f"# {title}"
    yield from (f"  {line}" if line else line for line in lines)
    if not last:
        yield ""


def _tokens(query: Query) -> Iterator[str]:
    """The words of the query as the grammar reads them."""
    from acep.pattern.syntax import grammar

    parser = grammar("letters" if query.letters else "sase").parse_interactive(query.text)
    return (str(token) for token in parser.iter_parse())


def _plan_lines(plan: Plan) -> list[str]:
    window, schema = plan.window, plan.schema
    if window.span is None:
        span = "none"
    elif window.counted:
        span = f"{window.span + 1} events"
    else:
        span = f"{window.span} ticks of {schema.ts}"
        if schema.tick_ns is not None:
            from acep.pattern.times import duration_text

            span += f" ({duration_text(window.span * schema.tick_ns)})"
    columns = dict.fromkeys([schema.ts, *([schema.type] if schema.type else []), *plan.columns])
    return [
        f"partitions: {', '.join(plan.keys) or 'none: the stream is one'}",
        f"window: {span}",
        f"columns read: {', '.join(columns)}",
    ]


def _draw(query: Query, path: str) -> None:
    from acep.automaton.svg import query_svg

    try:
        Path(path).write_text(query_svg(query), encoding="utf-8")
    except OSError as bad:
        raise DataError(f"`{path}` cannot be written: {bad.strerror or bad}") from None
