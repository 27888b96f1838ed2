"""``acep match``: the matches of a query in a file of events, as JSON lines or in a file; under a budget also what was
given up for it, on stderr."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from acep.cli.inputs import budget_options, column_names, load_events, load_query
from acep.cli.progress import progress
from acep.errors import QueryError

HEADS = {"bundles": ("start", "end", "matches", "best"), "points": ("point", "best")}


def run(args: argparse.Namespace) -> None:
    """Match, and write what was asked for."""
    if args.kind in ("count", "exists") and (args.output is not None or args.limit is not None):
        said = "one number" if args.kind == "count" else "true or false"
        raise QueryError(f"--{args.kind} prints {said}", hint="leave out --output and --limit")
    if args.no_counts and args.kind != "bundles":
        raise QueryError("--no-counts is about the matches of bundles", hint="give it with --bundles")
    query = load_query(args)
    if args.output is not None:
        from acep.engine.writing import output_format

        output_format(args.output)  # a wrong name is said before the work is done
    from acep.engine.api import reported

    with progress(f"reading {args.events}"):
        table = load_events(args.events, query, args)
    names = column_names(args)
    who = budget_options(args)
    how = {"output": args.kind, "counts": not args.no_counts, "engine": args.engine}
    with progress(f"matching {table.num_rows:,} events"):
        result: Any
        result, report = reported(table, query, **who, **how, **names)
    if who["budget"].limited:
        sys.stderr.write(f"{report}\n")
    if args.kind in ("count", "exists"):
        sys.stdout.write(f"{str(result).lower()}\n")
        return
    if args.limit is not None:
        result = result[: args.limit]
    target, form = (sys.stdout, "jsonl") if args.output is None else (args.output, None)
    if args.kind == "matches":
        from acep.engine.writing import write_matches

        write_matches(result, target, form)
        return
    from acep.engine.tables import schema_of
    from acep.engine.writing import write_groups
    from acep.plan.compile import compile_query

    schema = schema_of(table.schema, **names)
    keys = compile_query(query, schema).keys
    heads = [head for head in HEADS[args.kind] if head != "matches" or not args.no_counts]
    write_groups(result, target, form, heads=heads, schema=schema, keys=keys)
