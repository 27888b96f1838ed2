"""Run ``acep replay``: replay files of events as a stream, in this process or on Spark, with a summary at the end."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from acep.cli.inputs import (
    budget_options,
    column_names,
    file_options,
    files_text,
    load_events,
    load_query,
    ticks_or_text,
)
from acep.cli.keys import KeyPause
from acep.cli.metrics import serve_metrics
from acep.cli.progress import progress
from acep.cli.serve import serve_page
from acep.cli.terminal import say, show
from acep.cli.watch import LiveView, line_view
from acep.errors import DataError

if TYPE_CHECKING:
    from acep.following.replay import Replayed


def run(args: argparse.Namespace) -> None:
    """Replay, write the matches as ``acep match`` does, and print a summary on stderr."""
    query, options = load_query(args), budget_options(args, is_paced=not args.spark)
    from acep.events.files.finding import check_output
    from acep.matches.flat import check_flat
    from acep.output.formulas import check_quoting
    from acep.output.writing import output_format, write_table

    if args.output is not None:
        output_format(args.output)  # report a wrong name before the work
        check_output(args.output, args.events, args.format)
    if args.count and (args.output is not None or args.limit is not None or args.flat):
        raise DataError("--count prints a number", hint="leave --output, --limit and --flat out", code="option_invalid")
    check_quoting(args.quote_formulas, None if args.output is None else output_format(args.output))
    check_flat(args.flat, dynamic=args.versions is not None)
    if args.spark:
        pass  # report a missing PySpark before the work

    plain = len(args.events) == 1 and Path(args.events[0]).is_file()
    plain = plain and not args.cast and not any(file_options(args).values())
    with progress(args, f"reading {files_text(args.events)}"):
        events = (
            args.events[0] if plain else load_events(args.events, query, args, checks_ids=args.duplicates == "refuse")
        )
    options |= column_names(args)
    options |= {"chunk": args.chunk, "watermark": ticks_or_text(args.watermark), "latest": ticks_or_text(args.latest)}
    options |= {"versions": args.versions, "engine": args.engine, "duplicates": args.duplicates}
    live = LiveView(sys.stderr) if args.watch else None
    with tempfile.TemporaryDirectory(prefix="acep-replay-") as folder:
        run_replay: Any = _replay_on_spark if args.spark else _replay_here
        try:
            summary = run_replay(args, query, events, live, options | {"checkpoint": args.checkpoint or folder})
        finally:
            if live is not None:
                live.finish()
        if args.count:
            show(str(summary.matches))
        else:
            target, form = (sys.stdout, "jsonl") if args.output is None else (args.output, None)
            layout = summary.layout if args.flat else None
            write_table(summary.table(args.limit), target, form, flat=layout, quote_formulas=args.quote_formulas)
    sys.stdout.flush()
    say(str(summary))


def _replay_on_spark(
    args: argparse.Namespace, query: Any, events: Any, live: LiveView | None, options: dict[str, Any]
) -> Any:
    from acep.spark.replay import replay

    shows_lines = False if args.no_progress or live is not None else None
    with serve_metrics(args, None if live is None else live.tell) as tell, serve_page(args) as page:
        return replay(query, events, progress=shows_lines, tell=tell, page=page, **options)


def _replay_here(
    args: argparse.Namespace, query: Any, events: Any, live: LiveView | None, options: dict[str, Any]
) -> Replayed:
    from acep.following.replay import replay

    if live is None:
        tell, end_line = (None, None) if args.no_progress or not sys.stderr.isatty() else line_view()
        try:
            with serve_metrics(args, tell) as tell_batch, serve_page(args) as page:
                return replay(query, events, speed=args.speed, tell=tell_batch, page=page, **options)
        finally:
            if end_line is not None:
                end_line()
    with (
        serve_metrics(args, live.tell) as tell_batch,
        serve_page(args) as page,
        KeyPause(live.show_note, page=page) as pause,
    ):
        return replay(query, events, speed=args.speed, tell=tell_batch, wait=pause.wait, page=page, **options)
