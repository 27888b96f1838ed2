"""Run the command line: ``acep match``, ``follow``, ``explain``, ``lint``, ``why``, ``tune``, ``replay``, ``learn``,
``sql``, ``sigma``, ``state``, ``completion`` and ``history`` (docs/reference/command_line.md).

Only argparse is imported here; each command imports its modules when it runs.
"""

from __future__ import annotations

import argparse
import importlib
import os
import re
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NoReturn

from acep.address_space import check_address_space, is_short_of_address_space, too_small
from acep.cli.help_examples import examples_text
from acep.cli.stopping import Stopped, stops_when_asked
from acep.cli.terminal import say
from acep.errors import AcepError, memory_error, printable, slip

__all__ = ["main"]

SUMMARY = "Find patterns in event streams, approximately."
QUERY_HELP = "a query: its text, a file that holds it, or a letter expression such as 're:a(b|c)db'"
POLICY_HELP = (
    "who chooses what is kept: history (default), random, newest, oldest, newest-per-state, clear, input, state, "
    "hybrid, experts, or trained-on-test, which wants a --history of the same events"
)
FORMULAS_HELP = "in CSV, write an apostrophe before each text that a spreadsheet may take for a formula"
FLAT_HELP = "plain columns only: one for each key, value and variable (the first and last event of those that repeat)"
EVENTS_HELP = "files of events (.csv, .tsv, .jsonl, .parquet; .gz, .zst), globs, folders, or - for standard input"
READERS = ("match", "follow", "lint", "why", "tune", "learn", "sql")
"""The commands that read events in this process."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line (``sys.argv`` by default) and return its exit status.

    0: success, with or without matches; 1: ``acep lint --strict`` found something, or ``--fail-on-match`` a match;
    2: bad input, explained on stderr; 4, or 5 with 1: a rule was left out, or a bad file; 130: interrupted. A signal
    that asks to stop ends the process.
    """
    words = sys.argv[1:] if argv is None else [*argv]
    args = _parser(has_rules=any(re.match("--rules(=|$)", word) for word in words)).parse_args(words)
    try:
        from acep.cli.logs import log_to_stderr

        with log_to_stderr(args.log_level), stops_when_asked():
            if args.command in READERS:
                check_address_space()
            status = _command(args.command)(args)
            sys.stdout.flush()
    except AcepError as error:
        return _print_error(error)
    except BrokenPipeError:
        # The reader has closed the output; the rest of the buffer must not fail again at exit.
        with suppress(OSError, ValueError, AttributeError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        sys.stderr.write("acep: interrupted\n")
        return 130
    except Stopped as stopped:
        sys.stderr.write("acep: stopped\n")
        return stopped.end_process()
    except MemoryError:
        return _print_error(memory_error())
    except Exception:
        if not is_short_of_address_space():
            raise
        return _print_error(too_small())
    return status or 0


def _print_error(error: AcepError) -> int:
    """Print an error in the words of the command line, and return the exit status."""
    from acep.cli.spelling import as_typed

    error.message, error.hint = as_typed(error.message), error.hint and as_typed(error.hint)
    say(f"acep: {error.render()}")
    return 2


def _command(name: str) -> Callable[[argparse.Namespace], int | None]:
    if name != "replay" and "numpy" not in sys.modules:
        # Only NumPy's arrays are needed. Starting its threads for linear algebra, one per core, takes longer than
        # matching a small file. For Spark the setting is left alone.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    run: Callable[[argparse.Namespace], int | None] = importlib.import_module(f"acep.cli.{name}").run
    return run


# Arguments --------------------------------------------------------------------------------------


def _parser(*, has_rules: bool = False) -> argparse.ArgumentParser:
    """Return the parser. ``has_rules``: a folder of rules takes the place of the query."""
    parser = _ArgumentParser(prog="acep", description=SUMMARY, allow_abbrev=False)
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    _add_match_command(commands, has_rules=has_rules)
    _add_follow_command(commands, has_rules=has_rules)
    _add_replay_command(commands)
    _add_explain_command(commands)
    _add_lint_command(commands)
    _add_why_command(commands)
    _add_tune_command(commands)
    _add_learn_command(commands)
    _add_sql_command(commands)
    _add_sigma_command(commands)
    _add_state_options(_command_parser(commands, "state", "show the state of a stream, and take a stopped one back"))
    completion = _command_parser(commands, "completion", "print a script that completes command lines in a shell")
    completion.add_argument("shell", metavar="SHELL", choices=("bash", "zsh", "fish"), help="bash, zsh or fish")
    completion.set_defaults(parser=parser)
    _add_history_command(commands)
    return parser


def _add_match_command(commands: Any, *, has_rules: bool) -> None:
    text = "find the matches of a query, or of rules, in files of events"
    match = _subcommand(commands, "match", text, events=True, has_rules=has_rules)
    _add_rule_options(match)
    _add_output_options(match)
    text = "exit with status 1 if there is a match"
    match.add_argument("--fail-on-match", action="store_true", help=text)
    _add_plot_options(match)
    _add_engine_option(match)
    _add_threads_option(match)
    _add_budget_options(match)


def _add_follow_command(commands: Any, *, has_rules: bool) -> None:
    follow = _subcommand(
        commands, "follow", "match the files that come into a folder, as they come", has_rules=has_rules
    )
    _add_rule_options(follow)
    follow.add_argument(
        "folder", metavar="FOLDER", help="where files of events (.csv, .tsv, .jsonl, .parquet) are moved to; or a log"
    )
    _add_follow_options(follow)
    _add_watch_option(follow)
    _add_budget_options(follow)
    _add_engine_option(follow)


def _add_replay_command(commands: Any) -> None:
    text = "take files of events as a stream, at the pace of their clock if asked"
    replay = _subcommand(commands, "replay", text, events=True)
    _add_stream_options(replay)
    _add_watch_option(replay)
    _add_budget_options(replay, paces=True)
    _add_output_options(replay, kinds=False, count=True)
    _add_engine_option(replay)


def _add_explain_command(commands: Any) -> None:
    text = "show what becomes of a query: tree, automaton, plan, and what is costly"
    explain = _subcommand(commands, "explain", text)
    explain.add_argument("--events", metavar="FILE", help="check the query against the columns of a file of events")
    explain.add_argument("--svg", metavar="FILE", help="draw the automaton")


def _add_lint_command(commands: Any) -> None:
    text = "say what looks wrong with a query and its events together"
    lint = _subcommand(commands, "lint", text)
    events_help = f"{EVENTS_HELP}; of a statement of SQL its tables, NAME=FILE, if there are any"
    lint.add_argument("events", metavar="EVENTS", nargs="*", help=events_help)
    group = lint.add_argument_group("the findings")
    group.add_argument("--strict", action="store_true", help="exit with status 1 if there are any")
    group.add_argument("--json", metavar="FILE", help="write them here too")


def _add_why_command(commands: Any) -> None:
    text = "say why events are no match: how far they came, and what failed there"
    key = "a value of the partition attribute, or x=1,y=2 where there are several (default: that which came nearest)"
    why = _subcommand(commands, "why", text, events=True, key=key)
    text = "say why exactly these events are no match: their ids, such as 3,9,12 (row numbers from 0, without --id)"
    why.add_argument("--rows", metavar="ID,...", help=text)
    why.add_argument("--many", action="store_true", help="say what multiplies the matches, and what would reduce them")


def _add_tune_command(commands: Any) -> None:
    text = "replay a sample of the events, and recommend budgets, a policy and a cheaper query"
    tune = _subcommand(commands, "tune", text, events=True)
    _add_tune_options(tune)
    _add_engine_option(tune)


def _add_learn_command(commands: Any) -> None:
    text = "learn from a file of events which partial matches of a query are worth it"
    learn = _subcommand(commands, "learn", text, events=True)
    group = learn.add_argument_group("what is learned")
    group.add_argument("--output", metavar="FILE", required=True, help="write the history here, as to history.acep")
    group.add_argument("--from", dest="old", metavar="FILE", help="go on from another history of the query")
    _add_policy_options(group)


def _add_sql_command(commands: Any) -> None:
    text = "run a statement of SQL with MATCH_RECOGNIZE over files"
    sql = _command_parser(commands, "sql", text)
    sql.add_argument("statement", metavar="STATEMENT", help="the text of the statement, or a file that holds it")
    sql.add_argument("tables", metavar="NAME=FILE", nargs="*", help="a table, by its name in the statement")
    sql.add_argument("--explain", action="store_true", help="print what becomes of the clauses, and no rows")
    _add_file_options(sql)
    _add_output_options(sql, kinds=False, flat=False)


def _add_sigma_command(commands: Any) -> None:
    sigma = _command_parser(commands, "sigma", "show the rules that the Sigma files of a folder become")
    sigma.add_argument("folder", metavar="FOLDER", help="a folder with files of Sigma rules (.yml, .yaml)")
    text = "write each rule into a file of this folder, which ends in .rule, and print none"
    sigma.add_argument("--save", metavar="FOLDER", help=text)


def _add_history_command(commands: Any) -> None:
    history = _command_parser(commands, "history", "show what a history knows of partial matches, and draw its graph")
    history.add_argument("file", metavar="FILE", help="a history: a file such as history.acep")
    history.add_argument("--svg", metavar="FILE", help="draw the graph")
    history.add_argument("--limit", type=_number, metavar="N", help="of the N most visited vectors (default 24)")


def _subcommand(
    commands: Any, name: str, summary: str, *, events: bool = False, key: str | None = None, has_rules: bool = False
) -> argparse.ArgumentParser:
    """Return the parser of a command about a query, with ``events`` also about files of events; ``key`` is the help of
    an option for one key of them. ``has_rules``: there is no query, but a folder of rules."""
    parser = _command_parser(commands, name, summary)
    parser.set_defaults(query=None)
    if not has_rules:
        parser.add_argument("query", metavar="QUERY", help=QUERY_HELP)
    if events:
        parser.add_argument("events", metavar="EVENTS", nargs="+", help=EVENTS_HELP)
    if key is not None:
        parser.add_argument("--key", metavar="KEY", help=key)
    _add_query_options(parser)
    _add_column_options(parser)
    _add_duplicates_option(parser)
    return parser


def _command_parser(commands: Any, name: str, summary: str) -> argparse.ArgumentParser:
    text = summary[0].upper() + summary[1:] + "."
    form = argparse.RawDescriptionHelpFormatter
    about: Any = {"description": text, "epilog": examples_text(name), "formatter_class": form}
    parser: argparse.ArgumentParser = commands.add_parser(name, help=summary, allow_abbrev=False, **about)
    text = "show no progress on stderr; it is shown on a terminal, from the third second on"
    parser.add_argument("--no-progress", action="store_true", help=text)
    levels = ("debug", "info", "warning", "error")
    text = "which messages come to stderr: debug, info, warning (default) or error, which leaves warnings out"
    parser.add_argument("--log-level", default="warning", choices=levels, metavar="LEVEL", help=text)
    return parser


def _add_rule_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("rules")
    text = "a folder of rules, files that end in .rule (of Sigma: .yml), in place of QUERY; all are matched in one pass"
    group.add_argument("--rules", metavar="FOLDER", help=text)
    text = "stop at a rule that cannot run; without it the others run, and the exit status says so"
    group.add_argument("--strict", action="store_true", help=text)


def _add_query_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("the query")
    group.add_argument("--errors", metavar="K", help="how much of the pattern may be missing (default 0)")
    text = "what a missing letter costs, if not 1; inf: never missing"
    group.add_argument("--weights", metavar="a=2,b=0.5", help=text)
    text = "what an event costs that is surplus under contiguity, if there may be any"
    group.add_argument("--surplus", metavar="W", help=text)
    text = "the value of :NAME in the query: 3, 'text', 5 min, (1, 2)"
    group.add_argument("--set", action="append", metavar="NAME=VALUE", help=text)
    group.add_argument("--within", metavar="W", help="window of a letter expression: 5, '1 hour', '5 events' or none")
    group.add_argument("--by", metavar="COL,...", help="columns that all events of a letter expression's match share")
    group.add_argument("--strategy", metavar="NAME", help="event selection strategy of a letter expression")


def _add_column_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("the columns")
    group.add_argument("--ts", default="ts", metavar="COL", help="the time (default ts)")
    text = "the event type (default type); none: there is none"
    group.add_argument("--type", default="type", metavar="COL", help=text)
    group.add_argument("--seq", metavar="COL", help="the order among equal times (default: that of the file)")
    group.add_argument("--id", metavar="COL", help="the ids of events (default: row numbers from 0)")
    group.add_argument("--unit", metavar="U", help="the unit of an integer time: ns, us, ms, s, min, h or d")
    _add_file_options(parser)


def _add_file_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("the files")
    text = (
        "give a column another type: int, float, string, bool, date, timestamp, timestamptz, timestamp(s), decimal(p,s)"
    )
    group.add_argument("--cast", action="append", metavar="COL=TYPE", help=text)
    group.add_argument("--format", metavar="F", help="csv, tsv, zeek, jsonl or parquet, where a name does not tell it")
    text = "leave out lines that cannot be read, and count them"
    group.add_argument("--skip-bad-lines", action="store_true", help=text)
    text = "the share of lines that may be left out: 0.05 or 5%% (default 1%%); more are an error"
    group.add_argument("--max-skipped", type=_share_of_lines, metavar="SHARE", help=text)
    group.add_argument(
        "--delimiter", metavar="S", help="what stands between cells: ';', '|' or tab (default by the name)"
    )
    group.add_argument("--quote", metavar="Q", help="none: quotation marks are text, and cells never stand in them")
    group.add_argument("--decimal", metavar="S", help="the sign before decimal places: , (default .)")
    text = "a text that stands for null in CSV, such as NA; may be given several times"
    group.add_argument("--null", action="append", metavar="TEXT", help=text)
    text = "let cells of CSV hold lines that look like rows; else a mark that is not closed is suspected"
    group.add_argument("--multiline-cells", action="store_true", help=text)
    group.add_argument("--max-line", metavar="SIZE", help="the longest line or row (default 16 MB)")
    text = "how many times its size a compressed file may have (default 200; 64 MB are always allowed)"
    group.add_argument("--max-expansion", type=float, metavar="X", help=text)
    text = "the columns, or attributes of JSON, that a file may have (default 10000)"
    group.add_argument("--max-columns", type=_number, metavar="N", help=text)


def _add_duplicates_option(parser: argparse.ArgumentParser) -> None:
    text = "events whose --id came before: refuse (default), or drop, which leaves them out and counts them"
    group = parser.add_argument_group("events that come twice")
    group.add_argument("--duplicates", choices=("refuse", "drop"), default="refuse", metavar="HOW", help=text)


def _add_stream_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("the stream")
    group.add_argument("--chunk", type=_number, metavar="N", help="events a micro-batch (default a twentieth of all)")
    group.add_argument("--watermark", metavar="D", help="replay in the order of the file, with events late by up to D")
    group.add_argument("--latest", metavar="T", help="refuse events beyond: 9000, '2030-01-01', or '1 hour' from now")
    group.add_argument("--versions", metavar="FOLDER", help="newer versions of the query: 0002-lower.sase, ...")
    group.add_argument("--checkpoint", metavar="FOLDER", help="where the run can be taken up from after a crash")
    group.add_argument("--spark", action="store_true", help="through Spark Structured Streaming, as fast as it can")


def _add_follow_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("the stream")
    group.add_argument("--state", metavar="FOLDER", required=True, help="where the state is kept, for a later start")
    group.add_argument("--watermark", metavar="D", default="0", help="how late events may come: 600, '10 minutes'")
    group.add_argument("--latest", metavar="T", help="refuse events beyond: 9000, '2030-01-01', or '1 hour' from now")
    text = "match events so long before they are final, and take matches back: 600, '1 minute', inf"
    group.add_argument("--speculation", metavar="D", default="0", help=text)
    group.add_argument("--late", action="store_true", help="write late events too, as rows of kind late")
    group.add_argument("--op", metavar="COL", help="the column with 1 for an event, -1 where it is taken back by --id")
    group.add_argument("--versions", metavar="FOLDER", help="newer versions of the query: 0002-lower.sase, ...")
    group.add_argument("--max-files", type=_number, metavar="N", help="files a micro-batch (default 100)")
    text = "the files grow, as logs do: take new lines, over rotation; FOLDER may be one such file"
    group.add_argument("--growing", action="store_true", help=text)
    text = "bytes a micro-batch of files that grow (default 64 MB)"
    group.add_argument("--max-bytes", metavar="SIZE", help=text)
    text = "a file that cannot be read: stop (default), or aside, which moves it away with the reason"
    group.add_argument("--bad-files", choices=("stop", "aside"), default="stop", metavar="HOW", help=text)
    group.add_argument("--bad-folder", metavar="FOLDER", help="where bad files are moved (default FOLDER.bad)")
    group.add_argument("--poll", type=float, metavar="S", help="seconds between two looks at the folder (default 1)")
    group.add_argument("--once", action="store_true", help="stop when all files are done")
    group.add_argument("--end", action="store_true", help="the same, and decide what waits for the end of the stream")
    text = "let the row that acep.spark.punctuation writes end the stream; without it no row does"
    group.add_argument("--end-marker", action="store_true", help=text)
    group = parser.add_argument_group("the output")
    group.add_argument("--output", metavar="FOLDER", required=True, help="write a file for each micro-batch here")
    group.add_argument("--output-format", metavar="F", default="jsonl", help="jsonl (default), parquet or csv")
    group.add_argument("--flat", action="store_true", help=FLAT_HELP)
    group.add_argument("--quote-formulas", action="store_true", help=FORMULAS_HELP)
    _add_kinds(group, count="how many matches each micro-batch has")


def _add_state_options(parser: argparse.ArgumentParser) -> None:
    text = "a checkpoint of Spark, or a folder that was given as state= or to acep follow; a path or a URI"
    parser.add_argument("folder", metavar="FOLDER", help=text)
    parser.add_argument(
        "--state", metavar="FOLDER", help="the folder of state of a checkpoint (default its folder acep)"
    )
    parser.add_argument("--check", action="store_true", help="read all files of state, not only the newest")
    parser.add_argument("--json", action="store_true", help="print JSON")
    group = parser.add_argument_group("going back")
    text = "take a stopped query back to the beginning of micro-batch N of its checkpoint"
    group.add_argument("--go-back", type=_number, metavar="N", help=text)
    group.add_argument("--dry-run", action="store_true", help="only say what would be removed, or written")
    group.add_argument("--yes", action="store_true", help="the query is stopped, and files may be removed: do not ask")
    group = parser.add_argument_group("going on in another form")
    text = "let a stopped query go on with N buckets, where it is; start it with buckets=N"
    group.add_argument("--buckets", type=_number, metavar="N", help=text)
    text = "let another query, a text or a file, go on in place of a stopped one; or say what a replay needs"
    group.add_argument("--replace", metavar="QUERY", help=text)
    group.add_argument("--call", metavar="ID", help="the call whose state it is, where a checkpoint has several")


def _add_watch_option(parser: argparse.ArgumentParser) -> None:
    text = "show the stream live on stderr: rate, lag, partial matches, matches, late events, what is shed"
    parser.add_argument("--watch", action="store_true", help=text)
    text = "serve the figures of the stream to Prometheus, on this machine alone unless HOST says otherwise"
    parser.add_argument("--metrics", metavar="[HOST:]PORT", help=text)
    text = "serve a live page of the stream; its address, with a token, comes to stderr (default any free port)"
    parser.add_argument("--serve", nargs="?", const="0", metavar="[HOST:]PORT", help=text)


def _add_output_options(
    parser: argparse.ArgumentParser, *, kinds: bool = True, flat: bool = True, count: bool = False
) -> None:
    group = parser.add_argument_group("the output")
    group.add_argument("--output", metavar="FILE", help="write to a .jsonl, .parquet or .csv file, not to stdout")
    group.add_argument("--limit", type=_number, metavar="N", help="give at most the first N")
    if flat:
        group.add_argument("--flat", action="store_true", help=FLAT_HELP)
    group.add_argument("--quote-formulas", action="store_true", help=FORMULAS_HELP)
    if count:
        group.add_argument("--count", action="store_true", help="print only how many matches there are")
    if not kinds:
        return
    _add_kinds(group, count="how many matches there are", exists="whether there is a match")
    group.add_argument("--no-counts", action="store_true", help="bundles without the number of their matches: faster")


def _add_plot_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("the plot")
    text = "draw the matches over time, and a few over a column of numbers: a .html, .svg or .png file"
    group.add_argument("--plot", metavar="FILE", help=text)
    text = "this column (default: the first of numbers that the query's predicates name)"
    group.add_argument("--plot-value", metavar="COL", help=text)
    text = "an interactive page of the matches, their rows and near misses: a .html file that needs no network"
    group.add_argument("--page", metavar="FILE", help=text)


def _add_kinds(group: Any, **more_kinds: str) -> None:
    """Add the options for other outputs than matches: those of all commands, and ``more_kinds`` with their help."""
    bundles = "matches that end within a window of each other, as one"
    kinds = {"bundles": bundles, "points": "the times at which matches end"}
    kind = group.add_mutually_exclusive_group()
    for name, text in (kinds | more_kinds).items():
        kind.add_argument(f"--{name}", dest="kind", action="store_const", const=name, default="matches", help=text)


def _add_engine_option(parser: argparse.ArgumentParser) -> None:
    text = "what runs the query: auto (default; native where it can), native or reference"
    parser.add_argument("--engine", default="auto", metavar="NAME", help=text)


def _add_threads_option(parser: argparse.ArgumentParser) -> None:
    text = "how many threads may match, or all: one for each core (default 1); the result is the same"
    parser.add_argument("--threads", type=_threads, default=1, metavar="N", help=text)


def _add_budget_options(parser: argparse.ArgumentParser, *, paces: bool = False) -> None:
    group = parser.add_argument_group("the budget")
    group.add_argument("--work", type=float, metavar="N", help="touches an event, on average; what is best is kept")
    group.add_argument("--cpu", type=float, metavar="X", help="share of a core, against the clock of the events")
    text = "how many times as fast as its clock a recorded stream comes, for --cpu (default 1)"
    if paces:
        text = "let events come X times as fast as their clock (default: as fast as they can be matched)"
    group.add_argument("--speed", type=float, metavar="X", help=text)
    group.add_argument("--latency", type=float, metavar="S", help="seconds that a batch may take")
    group.add_argument("--memory", metavar="SIZE", help="what the query may hold, in bytes or as in 512K, 64M or 1G")
    text = "of bundles that are found, find all matches, for a share of the work"
    group.add_argument("--recover", nargs="?", type=_share, const=True, default=False, metavar="SHARE", help=text)
    group.add_argument("--history", metavar="FILE", help="begin with what `acep learn` learned")
    _add_policy_options(group)


def _add_tune_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("the tuning")
    group.add_argument("--sample", metavar="N|SHARE", help="events of the sample, or their share (default 50000)")
    text = "the share of match points that a budget is to find (default 0.9)"
    group.add_argument("--target-recall", type=float, default=0.9, metavar="R", help=text)
    text = "of what: points (default) or bundles"
    group.add_argument("--of", default="points", metavar="WHAT", help=text)
    group.add_argument("--cpu", type=float, nargs="+", default=[], metavar="F", help="what these shares of a core find")
    text = "touches that all replays together may take (default 40000000)"
    group.add_argument("--effort", type=_number, metavar="N", help=text)
    group.add_argument("--json", metavar="FILE", help="write everything that was measured here")
    _add_policy_options(group)


def _add_policy_options(group: Any) -> None:
    group.add_argument("--policy", default="history", metavar="NAME", help=POLICY_HELP)
    group.add_argument("--seed", type=_number, default=0, metavar="N", help="for what is left to chance (default 0)")


def _share(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        why = f"{text!r} is no share; without one, write it after the query and the events"
        raise argparse.ArgumentTypeError(why) from None


def _share_of_lines(text: str) -> float:
    try:
        return float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no share, such as 0.05 or 5%") from None


def _number(text: str) -> int:
    if not (text.isdecimal() and text.isascii()):
        is_negative = text.startswith("-") and text[1:].isdecimal() and text.isascii()
        raise argparse.ArgumentTypeError(f"{text!r} is below 0" if is_negative else f"{text!r} is not a number")
    return int(text)


def _threads(text: str) -> int | str:
    return text if text == "all" else _number(text)


class _ArgumentParser(argparse.ArgumentParser):
    """A parser whose messages have the code of a wrong option, and the option or command that was meant."""

    def error(self, message: str) -> NoReturn:
        message = printable(" ".join(message.splitlines()))  # an argument may have several lines
        hint = self._spelling_hint(message)
        super().error(f"{message} [option_invalid]" + (f"\nhint: {hint}" if hint else ""))

    def _spelling_hint(self, message: str) -> str | None:
        if match := re.match(r"unrecognized arguments: (--[\w-]+)", message):
            subparsers = (action for action in self._actions if isinstance(action, argparse._SubParsersAction))
            commands = [command for action in subparsers for command in action.choices.values()]
            options = {option for command in commands for option in command._option_string_actions}
            # If it is among them, it is an option of another command.
            return None if match[1] in options else slip(match[1], sorted(options))
        if match := re.search(r"invalid choice: '(.*?)' \(choose from (.*)\)", message):
            return slip(match[1], re.findall(r"[\w-]+", match[2]))
        return None


class _Version(argparse.Action):
    """The action that prints the version, so that ``acep`` is imported only if necessary."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any, **__: Any) -> None:
        import acep

        sys.stdout.write(f"acep {acep.__version__}\n")
        parser.exit(0)
