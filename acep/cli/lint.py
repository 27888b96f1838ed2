"""Run ``acep lint``: print what looks wrong with a query and its events together, or with a statement of SQL."""

from __future__ import annotations

import argparse
import json
import re
from typing import TYPE_CHECKING

from acep.cli.inputs import (
    casts_of,
    column_names,
    file_options,
    files_text,
    load_query,
    query_text,
    reading_options,
    say_bad_lines,
    say_duplicates,
    write_text,
)
from acep.cli.progress import progress
from acep.cli.spelling import as_typed
from acep.cli.sql import paths_by_name
from acep.cli.terminal import show
from acep.errors import QueryError

if TYPE_CHECKING:
    from acep.linting.report import Findings


def run(args: argparse.Namespace) -> int:
    """Print the findings; return 1 if there are any and ``--strict`` is given, else 0."""
    statement = query_text(args.query)
    if re.search(r"\bMATCH_RECOGNIZE\b", statement, re.IGNORECASE):
        return _show(args, _findings_of_statement(args, statement))
    if not args.events:
        raise QueryError("acep lint needs the events of the query", hint="name their files behind it",
                         code="option_invalid")  # fmt: skip
    query = load_query(args)
    from acep.events.duplicates import check_duplicates
    from acep.linting.lint import findings as find
    from acep.linting.reading import read_whole

    check_duplicates(args.duplicates, args.id)
    with progress(args, f"reading {files_text(args.events)}"):
        table, complete, bad = read_whole(args.events, reading_options(args, [query]))
        say_bad_lines(bad)
    with progress(args, "looking at the events"):
        table_findings = find(table, query, column_names(args), complete=complete, duplicates=args.duplicates)
        say_duplicates(table.num_rows - table_findings.events)
    return _show(args, table_findings)


def _findings_of_statement(args: argparse.Namespace, statement: str) -> Findings:
    """Return the findings of a statement with MATCH_RECOGNIZE, over the tables that are given as NAME=FILE."""
    from acep.events.files.reading import read_events
    from acep.linting.clause_lint import lint_statement

    options = {**file_options(args), "cast": casts_of(args)}
    tables = {name: read_events(path, type=None, **options) for name, path in paths_by_name(args.events).items()}
    return lint_statement(statement, **tables)


def _show(args: argparse.Namespace, findings: Findings) -> int:
    if args.json is not None:
        write_text(
            args.json, json.dumps([finding.to_dict() for finding in findings], indent=2, ensure_ascii=False) + "\n"
        )
    lines = [as_typed(line) if line.startswith("hint: ") else line for line in str(findings).splitlines()]
    show("\n".join(lines))
    return int(args.strict and len(findings) > 0)
