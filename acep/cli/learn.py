"""Run ``acep learn``: run a query over known events, and write what was learned of its partial matches to a file."""

from __future__ import annotations

import argparse
from pathlib import Path

from acep.cli.inputs import column_names, files_text, load_events, load_query
from acep.cli.progress import progress
from acep.errors import DataError


def run(args: argparse.Namespace) -> None:
    """Learn, and write the history."""
    if Path(args.output).is_dir():  # report the error before the work
        raise DataError(f"`{args.output}` is a directory, not a file", code="file_write")
    query = load_query(args)
    from acep.events.files.finding import check_output
    from acep.output.writing import open_output
    from acep.training.learn import learn

    check_output(args.output, args.events, args.format)
    with progress(args, f"reading {files_text(args.events)}"):
        table = load_events(args.events, query, args)
    with progress(args, f"learning from {table.num_rows:,} events"):
        history = learn(table, query, policy=args.policy, seed=args.seed, history=args.old, **column_names(args))
    with open_output(args.output, binary=True) as stream:
        stream.write(history)
