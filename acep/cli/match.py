"""Run ``acep match``: write the matches of a query, or the alerts of a folder of rules, in files of events while these
are read, and with a budget a report on stderr."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from acep.cli.inputs import (
    LEFT_OUT,
    budget_options,
    column_names,
    files_text,
    load_query,
    reading_options,
    say_bad_lines,
    say_duplicates,
)
from acep.cli.progress import progress
from acep.cli.terminal import say, show
from acep.errors import DataError, DataWarning, QueryError, warn_caller

if TYPE_CHECKING:
    import pyarrow as pa

    from acep.alerting.rules import Rules
    from acep.cli.paging import MatchPage
    from acep.cli.plotting import MatchPlot
    from acep.events.files.options import Options
    from acep.events.files.stream import EventStream
    from acep.matching.batch_stream import Passing
    from acep.pattern.tree import Query

HEADS = {"bundles": ("start", "end", "matches", "best"), "points": ("point", "best")}


def run(args: argparse.Namespace) -> int:
    """Match, write the requested output, and return the exit status."""
    _check(args)
    rules = _load_rules(args)
    queries = [load_query(args)] if rules is None else list(rules.values())
    pictures = _pictures(args, queries[0])
    options = reading_options(args, queries, args.plot_value, every=args.page is not None)
    who = budget_options(args)
    options = dataclasses.replace(options, drop_duplicates=args.duplicates == "drop", in_threads=args.threads != 1)
    from acep.events.files.finding import check_output
    from acep.events.files.stream import ROW

    for output in (args.output, args.plot, args.page):
        if output is not None:
            check_output(output, args.events, args.format)
    with contextlib.ExitStack() as stack:
        with progress(args, f"reading {files_text(args.events)}"):
            events = _open(stack, args, queries, options)
        names = column_names(args)
        if events.sorted_on_disk:
            say(f"acep: row {events.back:,} is older than one before it: the events are sorted on disk")
            names["id"] = names["id"] or ROW
        for picture in pictures:
            picture.settle(events.schema, names)
        how = {"threads": args.threads, **names, **who}
        if args.id is not None:
            how["duplicates"] = args.duplicates
        passing = _passing(args, queries[0], rules, events, how)
        with progress(args, f"matching {events.rows:,} events", events.rows) as advance:
            batches = _count_batches(events.batches(), advance)
            n_matches = _write(passing, batches, args, pictures)
        for picture in pictures:
            with progress(args, f"drawing {picture.path}"):
                picture.write(events, names, passing.report)
        _sum_up(passing, events, who["budget"])
    n_left_out = 0 if rules is None else len(rules) - len(passing.tables.plans) + len(rules.problems)
    return int(args.fail_on_match and n_matches > 0) + (LEFT_OUT if n_left_out else 0)


def _open(
    stack: contextlib.ExitStack, args: argparse.Namespace, queries: Sequence[Query], options: Options
) -> EventStream:
    """Open the events. A page shows all columns; where these cannot be read, those that the query reads are enough."""
    from acep.events.files.stream import open_events

    try:
        return stack.enter_context(open_events(args.events, options))
    except DataError as wrong:
        if options.columns is not None or "-" in args.events:  # standard input can be read once
            raise
        used = reading_options(args, queries, args.plot_value).columns
        events = stack.enter_context(open_events(args.events, dataclasses.replace(options, columns=used)))
        warn_caller(f"only the columns that the query names are read: {wrong.message}", DataWarning)
        return events


def _load_rules(args: argparse.Namespace) -> Rules | None:
    """Return the rules that are asked for in place of a query. Their modules are imported for them alone."""
    if args.rules is None:
        return None
    from acep.cli.rules import check_rule_options, load_rules

    check_rule_options(args)
    return load_rules(args)


def _passing(
    args: argparse.Namespace, query: Query, rules: Rules | None, events: EventStream, how: dict[str, Any]
) -> Passing:
    """Return the pass of a query, or of rules, over events."""
    how = {"output": args.kind, "counts": not args.no_counts, "engine": args.engine, **how}
    if rules is None:
        from acep.matching.batch_stream import Passing

        return Passing(query, events.schema, events.rows, **how)
    from acep.cli.rules import make_pass

    return make_pass(args, rules, events, **how)


def _write(
    passing: Passing, batches: Iterator[pa.Table], args: argparse.Namespace, pictures: Sequence[MatchPlot | MatchPage]
) -> int:
    """Write the requested output, and return how many rows or matches it has."""
    if args.rules is not None:
        from acep.alerting.rule_pass import RulePass
        from acep.cli.rules import write_alerts

        assert isinstance(passing, RulePass)
        return write_alerts(passing, _parts(passing, batches), args)
    if args.kind in ("count", "exists"):
        return _print_one(passing, batches, args.kind)
    return _write_until_closed(passing, batches, args, pictures)


def _pictures(args: argparse.Namespace, query: Query) -> list[MatchPlot | MatchPage]:
    """Return the plot and the page that are asked for. Their modules are imported for them alone."""
    pictures: list[MatchPlot | MatchPage] = []
    if args.plot is not None:
        from acep.cli.plotting import MatchPlot, check

        check(args)
        pictures.append(MatchPlot(args, query))
    if args.page is not None:
        from acep.cli.paging import MatchPage, check_page_options

        check_page_options(args)
        pictures.append(MatchPage(args, query))
    return pictures


def _check(args: argparse.Namespace) -> None:
    """Raise :class:`QueryError` for options that do not go together, before any work is done."""
    from acep.events.duplicates import check_duplicates

    if args.kind in ("count", "exists") and (args.output is not None or args.limit is not None):
        said = "one number" if args.kind == "count" else "true or false"
        raise QueryError(f"--{args.kind} prints {said}", hint="leave out --output and --limit", code="option_invalid")
    if args.kind in ("count", "exists") and args.flat:
        raise QueryError(f"--{args.kind} has no columns", hint="leave out --flat", code="option_invalid")
    check_duplicates(args.duplicates, args.id)
    if args.fail_on_match and args.limit == 0:
        raise QueryError("--limit 0 looks for no match", hint="leave out --fail-on-match", code="option_invalid")
    if args.strict and args.rules is None:
        raise QueryError("--strict is about rules", hint="give it with --rules FOLDER", code="option_invalid")
    if args.no_counts and args.kind != "bundles":
        raise QueryError(
            "--no-counts is about the matches of bundles", hint="give it with --bundles", code="option_invalid"
        )
    if args.plot_value is not None and args.plot is None:
        raise QueryError("--plot-value is for a plot", hint="give it with --plot FILE.html", code="option_invalid")
    if args.output is not None or args.quote_formulas:
        from acep.output.formulas import check_quoting
        from acep.output.writing import output_format

        check_quoting(args.quote_formulas, None if args.output is None else output_format(args.output))


def _count_batches(batches: Iterator[pa.Table], advance: Callable[[int], None]) -> Iterator[pa.Table]:
    """Yield the batches, and count each once it has been matched."""
    for table in batches:
        yield table
        advance(table.num_rows)


def _parts(passing: Passing, batches: Iterator[pa.Table]) -> Iterator[Any]:
    """Yield the results that are certain after each batch, and at the end."""
    for table in batches:
        if table.num_rows:
            yield from passing.push(table)
    yield from passing.finish()


def _print_one(passing: Passing, batches: Iterator[pa.Table], kind: str) -> int:
    parts = _parts(passing, batches)
    total: int = any(parts) if kind == "exists" else sum(parts)
    show(str(total).lower())
    return total


def _write_until_closed(
    passing: Passing, batches: Iterator[pa.Table], args: argparse.Namespace, pictures: Sequence[MatchPlot | MatchPage]
) -> int:
    """Write all results, and return how many; if the reader closes the output before the end, say that nothing is
    drawn."""
    try:
        n_written = _write_all(passing, batches, args, pictures)
        sys.stdout.flush()
        return n_written
    except BrokenPipeError:
        for picture in pictures:
            say(f"acep: the output was closed before the end, so `{picture.path}` was not drawn")
        raise


def _write_all(
    passing: Passing, batches: Iterator[pa.Table], args: argparse.Namespace, pictures: Sequence[MatchPlot | MatchPage]
) -> int:
    n_written, limit = 0, args.limit
    for picture in pictures:
        picture.add(passing.like)
    with _writer(passing, args) as write:
        if limit == 0:
            return 0
        for part in _parts(passing, batches):
            matches = part if limit is None else part[: limit - n_written]
            if len(matches):
                write(matches)
                for picture in pictures:
                    picture.add(matches)
            n_written += len(matches)
            if n_written == limit:
                break
    return n_written


@contextlib.contextmanager
def _writer(passing: Passing, args: argparse.Namespace) -> Iterator[Callable[[Any], None]]:
    from acep.output.writing import group_writer, match_writer

    target, form = (sys.stdout, "jsonl") if args.output is None else (args.output, None)
    how = {"flat": args.flat, "quote_formulas": args.quote_formulas}
    if args.kind == "matches":
        with match_writer(target, form, passing.like, fractional=passing.fractional, **how) as write:
            yield write
        return
    heads = [head for head in HEADS[args.kind] if head != "matches" or not args.no_counts]
    like = passing.like
    with group_writer(target, form, heads=heads, schema=like.schema, keys=like.keys, **how) as write_groups:
        yield write_groups


def _sum_up(passing: Passing, events: EventStream, budget: Any) -> None:
    sys.stdout.flush()
    if budget.limited:
        from acep.cli.bounds import loose_bounds

        say(str(passing.report))
        for line in loose_bounds(budget, passing):
            say(f"acep: {line}")
    if (report := passing.report).fewer_threads:
        threads = "1 thread" if report.threads == 1 else f"{report.threads} threads"
        say(f"acep: matched by {threads}, and not more: {report.fewer_threads}")
    say_duplicates(events.duplicates)
    say_bad_lines(events.bad)
