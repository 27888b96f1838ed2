"""Run ``acep follow``: match files as they arrive in a folder, with results in a folder and progress on stderr."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from acep.cli.inputs import (
    LEFT_OUT,
    budget_options,
    casts_of,
    clause_options,
    file_options,
    load_query,
    query_text,
    ticks_or_text,
)
from acep.cli.metrics import serve_metrics
from acep.cli.serve import serve_page
from acep.cli.terminal import say
from acep.cli.watch import line_view
from acep.errors import QueryError
from acep.pattern.query_arguments import is_clause

if TYPE_CHECKING:
    from acep.streaming.progress import Progress


def run(args: argparse.Namespace) -> int:
    """Follow the folder, print a summary on stderr at the end, and return the exit status."""
    query: Any = None if args.rules is not None else query_text(args.query)
    if args.rules is not None:
        from acep.cli.rules import check_rule_options

        check_rule_options(args)
        options = {"rules": args.rules, "strict": args.strict, **budget_options(args)}
    elif args.strict:
        raise QueryError("--strict is about rules", hint="give it with --rules FOLDER", code="option_invalid")
    elif is_clause(query):
        options = clause_options(args)
    else:
        query, options = load_query(args), budget_options(args)
    from acep.following.follow import MAX_BYTES, MAX_FILES, POLL, follow

    tell, finish = _live_view() if args.watch else _no_view() if args.no_progress else line_view()
    try:
        with serve_metrics(args, tell) as tell_batch, serve_page(args) as page:
            summary = follow(
                args.folder,
                query,
                state=args.state,
                into=args.output,
                into_format=args.output_format,
                quote_formulas=args.quote_formulas,
                **{name: getattr(args, name) for name in ("ts", "seq", "id", "unit", "op", "engine", "duplicates")},
                **file_options(args),
                type=None if args.type == "none" else args.type,
                cast=casts_of(args),
                output=args.kind,
                watermark=ticks_or_text(args.watermark),
                latest=ticks_or_text(args.latest),
                speculation=ticks_or_text(args.speculation),
                late=args.late,
                flat=args.flat,
                versions=args.versions,
                max_files=MAX_FILES if args.max_files is None else args.max_files,
                growing=args.growing,
                max_bytes=MAX_BYTES if args.max_bytes is None else args.max_bytes,
                bad_files=args.bad_files,
                bad_folder=args.bad_folder,
                poll=POLL if args.poll is None else args.poll,
                once=args.once,
                end=args.end,
                end_marker=args.end_marker,
                tell=tell_batch,
                page=page,
                **options,
            )
    finally:
        finish()
    say(str(summary))
    if summary.bad.count:
        say(str(summary.bad))
    return LEFT_OUT if summary.problems or summary.bad_files or summary.gaps else 0


def _live_view() -> tuple[Callable[[Progress], None], Callable[[], None]]:
    from acep.cli.watch import LiveView

    live = LiveView(sys.stderr)
    return live.tell, live.finish


def _no_view() -> tuple[Callable[[Progress], None], Callable[[], None]]:
    return lambda _: None, lambda: None
