"""Run ``acep lint``: print what looks wrong with a query and its events together."""

from __future__ import annotations

import argparse
import json

from acep.cli.inputs import (
    column_names,
    load_query,
    reading_options,
    say_bad_lines,
    say_duplicates,
    shown,
    write_text,
)
from acep.cli.progress import progress
from acep.cli.spelling import as_typed
from acep.cli.terminal import show


def run(args: argparse.Namespace) -> int:
    """Print the findings; return 1 if there are any and ``--strict`` is given, else 0."""
    query = load_query(args)
    from acep.events.duplicates import check_duplicates
    from acep.linting.lint import findings
    from acep.linting.reading import read_whole

    check_duplicates(args.duplicates, args.id)
    with progress(args, f"reading {shown(args.events)}"):
        table, complete, bad = read_whole(args.events, reading_options(args, query))
        say_bad_lines(bad)
    with progress(args, "looking at the events"):
        found = findings(table, query, column_names(args), complete=complete, duplicates=args.duplicates)
        say_duplicates(table.num_rows - found.events)
    if args.json is not None:
        write_text(args.json, json.dumps([one.to_dict() for one in found], indent=2, ensure_ascii=False) + "\n")
    lines = [as_typed(line) if line.startswith("hint: ") else line for line in str(found).splitlines()]
    show("\n".join(lines))
    return int(args.strict and len(found) > 0)
