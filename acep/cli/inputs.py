"""Read the inputs that commands share: the query, the names of columns, the budget, and the events."""

from __future__ import annotations

import argparse
import dataclasses
import re
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from acep.cli.terminal import say
from acep.errors import DataError, DataWarning, QueryError, warn_caller

if TYPE_CHECKING:
    import pyarrow as pa

    from acep.events.files.options import BadLines, Options
    from acep.pattern.tree import Query

__all__ = [
    "LEFT_OUT",
    "budget_options",
    "casts_of",
    "clause_options",
    "column_names",
    "file_options",
    "files_text",
    "load_events",
    "load_query",
    "query_text",
    "reading_options",
    "say_bad_lines",
    "say_duplicates",
    "write_text",
]

LEFT_OUT = 4
"""The number that the exit status gets more if a rule was left out, or could not be read."""

LETTERS = "re:"
TOML = ".toml"
EVENTS_NAME = re.compile(r"\.(csv|tsv|json|jsonl|ndjson|parquet|gz|zst)$", re.IGNORECASE)
FILE_NAME = re.compile(r"\S*(?:[/\\]\S*|\.(?:acep|sase|sql|txt|query|q|toml))")


def load_query(args: argparse.Namespace) -> Query:
    """Return the query of the arguments, with its error budget.

    Raises :class:`QueryError` or :class:`DataError` for a query that cannot be read, and for weights without errors.
    """
    query = _query(args)
    if args.weights is not None and not query.errors:
        raise QueryError(
            "--weights says what errors cost, and there may be none",
            hint="allow some: --errors K",
            code="option_invalid",
        )
    return query


def _query(args: argparse.Namespace) -> Query:
    text = query_text(args.query)
    if args.query.endswith(TOML):
        return _automaton(text, args)
    from acep.pattern.query_arguments import is_clause

    if is_clause(text):
        raise QueryError(
            "this is a clause of SQL, and no query of acep",
            hint="acep sql runs it, acep sql --explain shows what becomes of it, and acep follow takes it",
            code="query_syntax",
        )
    errors, weights, surplus = _errors(args.errors), _weights(args.weights), _surplus(args.surplus)
    parameters = _parameters(args.set or [])
    if text.startswith(LETTERS):
        if parameters:
            raise QueryError(
                "--set is not for letter expressions",
                hint="write the query as text: PATTERN SEQ(A a, B b)",
                code="option_invalid",
            )
        return _letters(text[len(LETTERS) :], args, errors, weights, surplus)
    bare = not re.search(r"\s|pattern", text, re.IGNORECASE)
    marked = f"a letter expression is marked by {LETTERS}, as in '{LETTERS}{text[:40]}'"
    for option in ("within", "by", "strategy"):
        if getattr(args, option) is not None:
            raise QueryError(
                f"--{option} is for letter expressions ({LETTERS}...)",
                hint=marked if bare else f"say it in the query: {_IN_TEXT[option]}",
                code="option_invalid",
            )
    from acep.pattern.text.sase import parse

    try:
        return parse(text, errors=errors, weights=weights, surplus=surplus, parameters=parameters)
    except QueryError as error:
        if bare:
            error.hint = marked
        raise


_IN_TEXT = {
    "within": "... WITHIN 1 hour",
    "by": "... WHERE [column]",
    "strategy": "... WHERE skip_till_next_match() {...}",
}


def query_text(source: str) -> str:
    """Return the text itself, or the contents of the file of that name."""
    if source.startswith(LETTERS):
        return source
    path = Path(source)
    try:
        is_file = path.is_file()
    except (OSError, ValueError):  # a long text is not a file name
        is_file = False
    if is_file and EVENTS_NAME.search(source):
        raise DataError(
            f"`{source}` is a file of events, not a query",
            hint="the query comes first, then the events",
            code="file_read",
        )
    if not is_file:
        if FILE_NAME.fullmatch(source):
            raise DataError(f"there is no file `{source}` with a query", code="file_read")
        return source
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError as bad:
        raise DataError(f"`{source}` cannot be read: {bad.strerror}", code="file_read") from None
    except UnicodeDecodeError:
        raise DataError(
            f"`{source}` is not a text in UTF-8", hint="a query comes first, then the events", code="file_read"
        ) from None


def _automaton(text: str, args: argparse.Namespace) -> Query:
    """Return the hand-written automaton of a TOML file."""
    from acep.pattern.automata import Automaton

    for option in ("errors", "weights", "surplus", "set", "within", "by", "strategy"):
        if getattr(args, option) is not None:
            raise QueryError(
                f"--{option} is not for hand-written automata",
                hint="say in the file what it shall do",
                code="option_invalid",
            )
    return Automaton.from_toml(text).query


def _letters(
    text: str, args: argparse.Namespace, errors: Fraction, weights: dict[str, Any], surplus: Fraction | None
) -> Query:
    from acep.pattern.text.letters import regex

    if args.within is None:
        raise QueryError("a letter expression needs --within", hint="--within 5, --within '1 hour', or --within none")
    return regex(
        text,
        within=_window(args.within),
        errors=errors,
        by=[name.strip() for name in args.by.split(",")] if args.by is not None else None,
        weights=weights,
        surplus=surplus,
        **({"strategy": args.strategy} if args.strategy is not None else {}),
    )


def _window(text: str) -> Fraction | str | None:
    if text.strip().lower() == "none":
        return None
    number = _number(text)
    return text if number is None else number


def _number(text: str) -> Fraction | None:
    """Return a number exactly as it is written, or ``None``; exponents are not accepted."""
    if not re.fullmatch(r"\s*[+-]?\d{1,30}(\.\d{1,30})?(/\d{1,30})?\s*", text):
        return None
    try:
        return Fraction(text.strip())
    except (ValueError, ZeroDivisionError):
        return None


def _errors(text: str | None) -> Fraction:
    if text is None:
        return Fraction(0)
    number = _number(text)
    if number is None or number < 0:
        raise QueryError(
            f"--errors {text} is not a number of errors",
            hint="a number that is not negative, such as 2 or 0.5",
            code="option_invalid",
        )
    return number


def _surplus(text: str | None) -> Fraction | None:
    if text is None or text.strip().lower() == "inf":
        return None
    number = _number(text)
    if number is None or number <= 0:
        raise QueryError(
            f"--surplus {text} is no weight",
            hint="a positive number: what each event costs that is surplus under contiguity",
            code="option_invalid",
        )
    return number


def _weights(text: str | None) -> dict[str, Fraction | None]:
    weights: dict[str, Fraction | None] = {}
    for part in text.split(",") if text is not None else ():
        name, equals, value = (piece.strip() for piece in part.partition("="))
        number = _number(value)
        if not name or not equals or (number is None and value.lower() != "inf"):
            raise QueryError(
                f"--weights {text}: `{part}` is no weight",
                hint="as in --weights a=2,b=0.5,c=inf",
                code="option_invalid",
            )
        weights[name] = number
    return weights


def _parameters(pairs: list[str]) -> dict[str, Any]:
    from acep.pattern.text.parameters import parameter_of_text

    parameters: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        name = name.strip().removeprefix(":")
        if not name or not equals:
            raise QueryError(f"--set {pair}: no value", hint="as in --set threshold=3", code="option_invalid")
        if name in parameters:
            raise QueryError(f"--set gives `{name}` twice", code="option_invalid")
        parameters[name] = parameter_of_text(value)
    return parameters


# The budget --------------------------------------------------------------------------------------


def budget_options(args: argparse.Namespace, *, is_paced: bool = False) -> dict[str, Any]:
    """Return the budget, policy, seed and history, as arguments of ``acep.match``. ``is_paced``: the speed is one at
    which events come, with or without a bound that goes by their clock."""
    from acep.budget import Budget
    from acep.budget.budget import speed_error

    bounds = {name: getattr(args, name) for name in ("work", "cpu", "latency", "memory", "recover")}
    if args.speed is not None and not (is_paced and args.cpu is None):
        if args.cpu is None:
            raise speed_error()
        bounds["speed"] = args.speed
    budget = Budget(**bounds)
    if args.seed and not budget.limited:
        raise QueryError(
            "--seed serves a run under a budget",
            hint="set a bound on what may be spent, such as --work",
            code="option_invalid",
        )
    return {"budget": budget, "policy": args.policy, "seed": args.seed, "history": args.history}


def clause_options(args: argparse.Namespace) -> dict[str, Any]:
    """Return the arguments that a clause of SQL has beyond those of its rows: a budget.

    Raises :class:`QueryError` for options that are of queries."""
    of_queries = ("errors", "weights", "surplus", "set", "within", "by", "strategy", "recover", "speed", "history")
    for name in of_queries:
        if getattr(args, name) not in (None, False):
            raise QueryError(f"--{name} is not for MATCH_RECOGNIZE", hint="leave it out", code="option_invalid")
    if args.type not in ("type", "none"):
        raise QueryError("--type is not for MATCH_RECOGNIZE", hint="leave it out", code="option_invalid")
    return budget_options(args)


# Events -----------------------------------------------------------------------------------------


def column_names(args: argparse.Namespace) -> dict[str, Any]:
    """Return the column arguments of ``acep.match``, for events after their casts."""
    names = {name: getattr(args, name) for name in ("ts", "type", "seq", "id", "unit")}
    if names["type"] == "none":
        names["type"] = None
    if casts_of(args).get(args.ts, "").lower().startswith(("timestamp", "date")):
        names["unit"] = None  # the cast uses it already
    return names


def reading_options(
    args: argparse.Namespace, queries: Sequence[Query], other: str | None = None, *, every: bool = False
) -> Options:
    """Return the options for reading events: the columns that the queries use (and an ``other``; ``every``: all),
    casts, the format, and bad lines.

    Raises :class:`DataError` for an unknown cast or format, and for a cast of the times to what is none.
    """
    from acep.events.files.casts import check_time_cast
    from acep.events.files.options import options_of
    from acep.pattern.query_arguments import columns_read

    names = column_names(args)
    roles = [names[role] for role in ("ts", "type", "seq", "id") if names[role] is not None]
    other_names = [] if other is None else [other]
    used_names = [name for query in queries for name in columns_read(query)]
    options = options_of(
        columns=None if every else [*dict.fromkeys([*roles, *used_names, *other_names])],
        **{role: names[role] for role in ("ts", "type", "seq", "id")},
        cast=casts_of(args),
        unit=args.unit,
        **file_options(args),
    )
    check_time_cast(options.ts, options.casts)
    return options


def file_options(args: argparse.Namespace) -> dict[str, Any]:
    """Return the arguments of ``acep.read_events`` that say how files are written, and bound them."""
    if args.max_skipped is not None and not args.skip_bad_lines:
        from acep.events.files.options import skipped_error

        raise skipped_error()
    options = {"format": args.format, "skip_bad_lines": args.skip_bad_lines, "multiline_cells": args.multiline_cells}
    for name in ("max_skipped", "delimiter", "quote", "decimal", "max_line", "max_expansion", "max_columns"):
        if getattr(args, name) is not None:
            options[name] = getattr(args, name)
    if args.null is not None:
        options["nulls"] = args.null
    return options


def load_events(
    paths: str | list[str], query: Query, args: argparse.Namespace, *, every: bool = False, checks_ids: bool = True
) -> pa.Table:
    """Read the events of some files, with the columns that a query reads (or all, if one is missing, or ``every``).
    Rows whose ids came before are refused, or left out and counted, unless ids are not to be looked at."""
    from acep.events.duplicates import check_duplicates, settle_duplicates
    from acep.events.empty_schema import with_usable_types
    from acep.events.files.stream import open_events

    check_duplicates(args.duplicates, args.id)

    options = dataclasses.replace(reading_options(args, [query], every=every), checks_ids=False)
    try:
        with open_events(paths, options) as events:
            table = events.read_all()
            size = table.num_rows
            if checks_ids:
                table = settle_duplicates(table, args.id, args.duplicates, events.place_of)
            say_duplicates(size - table.num_rows)
            say_bad_lines(events.bad)
    except DataError as wrong:
        if not every or "-" in paths:  # standard input can be read once
            raise
        # The mistake may be in a column that is not used.
        table = load_events(paths, query, args, checks_ids=checks_ids)
        warn_caller(f"only the columns that the query names are read: {wrong.message}", DataWarning)
    return with_usable_types(table, [query], column_names(args))


def say_bad_lines(bad: BadLines) -> None:
    """Report the skipped lines on stderr."""
    if bad.count:
        say(str(bad))


def say_duplicates(n_rows: int) -> None:
    """Report on stderr how many rows were left out because their ids came before."""
    if n_rows:
        rows = "1 row was" if n_rows == 1 else f"{n_rows:,} rows were"
        say(f"acep: {rows} left out, as events with their ids had come before")


def write_text(path: str, text: str) -> None:
    """Write a file. Raises :class:`DataError` if that is not possible."""
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as bad:
        raise DataError(f"`{path}` cannot be written: {bad.strerror or bad}", code="file_write") from None


def files_text(paths: list[str]) -> str:
    """Return a short text for some files."""
    return paths[0] if len(paths) == 1 else f"{paths[0]} and {len(paths) - 1} more"


def ticks_or_text(text: str | None) -> int | str | None:
    """Read a time or a span; a number means ticks.

    >>> ticks_or_text("600"), ticks_or_text("10 minutes")
    (600, '10 minutes')
    """
    return int(text) if text is not None and text.isdecimal() and text.isascii() else text


def casts_of(args: argparse.Namespace) -> dict[str, str]:
    """Return the target types of casts by column. Raises :class:`DataError` for an invalid cast."""
    casts: dict[str, str] = {}
    for text in args.cast or ():
        name, equals, type_name = text.rpartition("=")
        if not equals or not name or not type_name:
            raise DataError(
                f"--cast {text} is no cast", hint="a column and a type, as in --cast zip=string", code="option_invalid"
            )
        if casts.setdefault(name, type_name) != type_name:
            raise DataError(f"--cast gives `{name}` two types", hint="cast it once", code="option_invalid")
    return casts
