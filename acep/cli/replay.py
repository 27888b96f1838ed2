"""Run ``acep replay``: replay files of events through Spark Structured Streaming, with a summary at the end."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from acep.cli.inputs import (
    budget_options,
    column_names,
    file_options,
    files_text,
    load_events,
    load_query,
    ticks_or_text,
)
from acep.cli.progress import progress
from acep.cli.terminal import say
from acep.cli.watch import LiveView


def run(args: argparse.Namespace) -> None:
    """Replay, write the matches as ``acep match`` does, and print a summary on stderr."""
    query, options = load_query(args), budget_options(args)
    from acep.matches.flat import check_flat
    from acep.output.formulas import check_quoting
    from acep.output.writing import output_format, write_table

    if args.output is not None:
        output_format(args.output)  # report a wrong name before the work
    check_quoting(args.quote_formulas, None if args.output is None else output_format(args.output))
    check_flat(args.flat, dynamic=args.versions is not None)
    from acep.spark.replay import replay

    plain = len(args.events) == 1 and Path(args.events[0]).is_file()
    plain = plain and not args.cast and not any(file_options(args).values())
    with progress(args, f"reading {files_text(args.events)}"):
        events = (
            args.events[0] if plain else load_events(args.events, query, args, checks_ids=args.duplicates == "refuse")
        )
    live = LiveView(sys.stderr) if args.watch else None
    with tempfile.TemporaryDirectory(prefix="acep-replay-") as folder:
        try:
            summary = replay(
                query,
                events,
                chunk=args.chunk,
                watermark=ticks_or_text(args.watermark),
                latest=ticks_or_text(args.latest),
                checkpoint=args.checkpoint or folder,
                versions=args.versions,
                progress=False if args.no_progress or live is not None else None,
                tell=None if live is None else live.tell,
                engine=args.engine,
                duplicates=args.duplicates,
                **column_names(args),
                **options,
            )
        finally:
            if live is not None:
                live.finish()
        target, form = (sys.stdout, "jsonl") if args.output is None else (args.output, None)
        layout = summary.layout if args.flat else None
        write_table(summary.table(args.limit), target, form, flat=layout, quote_formulas=args.quote_formulas)
    sys.stdout.flush()
    say(str(summary))
