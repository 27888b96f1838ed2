"""Run ``acep sql``: write the result of a statement with MATCH_RECOGNIZE over files, or what becomes of it."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from acep.cli.inputs import casts_of, file_options, files_text
from acep.cli.progress import progress
from acep.cli.terminal import show
from acep.errors import DataError, QueryError

if TYPE_CHECKING:
    import pyarrow as pa


def run(args: argparse.Namespace) -> None:
    """Read the tables, run the statement, and write its rows."""
    text = _statement(args.statement)
    paths = paths_by_name(args.tables)
    from acep.events.files.finding import check_output
    from acep.events.files.reading import read_events
    from acep.output.formulas import check_quoting
    from acep.output.writing import output_format, write_rows
    from acep.statements.statements import explain_statement, sql

    if args.explain and (args.output is not None or args.limit is not None or args.quote_formulas):
        raise QueryError("--explain gives no rows", hint="leave out --output, --limit and --quote-formulas",
                         code="option_invalid")  # fmt: skip
    form = "jsonl" if args.output is None else output_format(args.output)
    check_quoting(args.quote_formulas, form)
    if args.output is not None:
        check_output(args.output, [*paths.values()], args.format)
    options = {**file_options(args), "cast": casts_of(args)}
    tables: dict[str, pa.Table] = {}
    for name, path in paths.items():
        with progress(args, f"reading {files_text([path])}"):
            tables[name] = read_events(path, type=None, **options)
    if args.explain:
        show(explain_statement(text, **tables))
        return
    with progress(args, "matching"):
        result = sql(text, **tables)
    if args.limit is not None:
        result = result.slice(0, args.limit)
    target = sys.stdout if args.output is None else args.output
    write_rows(result, target, form, quote_formulas=args.quote_formulas)


def _statement(text: str) -> str:
    """Return the statement: the text itself, or what the file of that name holds."""
    statement = text
    if text and not any(sign.isspace() for sign in text):
        try:
            statement = Path(text).read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise DataError(f"`{text}` cannot be read: {reason}", code="file_read") from None
    if not statement.strip():
        raise QueryError("the statement is empty",
                         hint="as in acep sql 'SELECT * FROM ticks MATCH_RECOGNIZE (...)' ticks=ticks.csv",
                         code="query_syntax")  # fmt: skip
    return statement


def paths_by_name(tables: list[str]) -> dict[str, str]:
    """Return the paths of tables by name."""
    paths: dict[str, str] = {}
    for table in tables:
        name, equals, path = table.partition("=")
        if not equals or not name or not path:
            hint = "a name, an equals sign and a file: ticks=ticks.csv"
            raise QueryError(f"{table!r} names no table", hint=hint, code="option_invalid")
        if name in paths:
            raise QueryError(f"there are two tables `{name}`", hint="give them other names", code="option_invalid")
        paths[name] = path
    return paths
