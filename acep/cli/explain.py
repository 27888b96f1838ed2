"""Run ``acep explain``: print the stages of a query's compilation and its costly parts."""

from __future__ import annotations

import argparse

from acep.cli.inputs import column_names, load_events, load_query, write_text
from acep.cli.progress import progress
from acep.cli.spelling import as_typed
from acep.cli.terminal import show


def run(args: argparse.Namespace) -> None:
    """Print the stages, and draw the automaton if requested."""
    query = load_query(args)
    from acep.explain.stages import explain
    from acep.native.compiled import why_not

    schema = None
    if args.events is not None:
        from acep.events.tables import schema_of

        with progress(args, f"reading {args.events}"):
            table = load_events(args.events, query, args)
        schema = schema_of(table.schema, **column_names(args))
    text = explain(query, schema, missing=why_not())
    if args.svg is not None:
        from acep.explain.automaton_svg import query_svg

        write_text(args.svg, query_svg(query))
    lines = [as_typed(line) if line.lstrip().startswith("hint: ") else line for line in text.rstrip("\n").splitlines()]
    show("\n".join(lines))
