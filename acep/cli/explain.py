"""Run ``acep explain``: print the stages of a query's compilation and its costly parts."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from acep.cli.inputs import column_names, load_events, load_query
from acep.cli.spelling import as_typed
from acep.errors import DataError


def run(args: argparse.Namespace) -> None:
    """Print the stages, and draw the automaton if requested."""
    query = load_query(args)
    from acep.explain.stages import explain
    from acep.native.compiled import why_not

    schema = None
    if args.events is not None:
        from acep.events.tables import schema_of

        schema = schema_of(load_events(args.events, query, args).schema, **column_names(args))
    text = explain(query, schema, missing=why_not())
    if args.svg is not None:
        from acep.explain.automaton_svg import query_svg

        try:
            Path(args.svg).write_text(query_svg(query), encoding="utf-8")
        except OSError as bad:
            raise DataError(f"`{args.svg}` cannot be written: {bad.strerror or bad}") from None
    lines = [as_typed(line) if line.lstrip().startswith("hint: ") else line for line in text.rstrip("\n").splitlines()]
    sys.stdout.write("\n".join(lines) + "\n")
