"""Parse expressions of MEASURES, DEFINE, PARTITION BY and ORDER BY with sqlglot, which has no RUNNING and FINAL."""

from __future__ import annotations

import re
from typing import Any

from acep.errors import QueryError, check_installed
from acep.pattern.expressions import Span, error_at
from acep.pattern.sql.clause_tree import SqlExpression
from acep.pattern.sql.scanner import scan

__all__ = ["parse_expression"]

_CALL = re.compile(r"(\w+)\s*\(")
MOST_SIGNS = 20_000
MOST_DEPTH = 120


def parse_expression(text: str, span: Span) -> SqlExpression:
    """Parse the expression that stands at ``span`` of a text.

    Raises :class:`QueryError` where sqlglot finds none, or one that is nested too deep.

    >>> parse_expression("x > FINAL LAST(y)", Span(0, 17)).tree.expression.name
    '$final'
    """
    part = text[span.start : span.end]
    if not part.strip():
        raise error_at(
            "an expression is missing", span, "write one, or leave out the comma before", code="query_syntax"
        )
    _check_depth(part, span)
    check_installed("sqlglot", "MATCH_RECOGNIZE", "sql")
    from sqlglot.errors import SqlglotError

    from acep.pattern.sql.row_dialect import RowPatternDialect

    try:
        trees = RowPatternDialect().parse(_with_apart_exponents(part))
    except SqlglotError as error:
        raise _locate_error(error, part, span) from None
    except RecursionError:
        raise error_at(
            "this expression is nested too deep", span, "compute parts of it as columns before", code="query_size"
        ) from None
    if len(trees) != 1 or trees[0] is None:
        raise error_at("this is not one expression", span, "is an operator or a comma missing?", code="query_syntax")
    return SqlExpression(trees[0], span, part)


def _with_apart_exponents(part: str) -> str:
    """Return an expression with a blank behind each number with an exponent: sqlglot reads `1e0-1` as one number.

    >>> _with_apart_exponents("1e0-x || '1e0-1'")
    "1e0 -x || '1e0-1'"
    """
    pieces: list[str] = []
    begin = 0
    for token in scan(part) if "e" in part.lower() else ():
        if token.kind == "number" and "e" in token.value.lower() and part[token.end : token.end + 1] in ("-", "+"):
            pieces.append(part[begin : token.end])
            begin = token.end
    return " ".join([*pieces, part[begin:]])


def _check_depth(part: str, span: Span) -> None:
    """Refuse an expression that a parser by recursion could not take."""
    if len(part) > MOST_SIGNS:
        raise error_at(
            f"an expression has at most {MOST_SIGNS} characters",
            span,
            "compute parts of it as columns before",
            code="query_size",
        )
    depth = 0
    for sign in part:
        depth += (sign in "([{") - (sign in ")]}")
        if depth > MOST_DEPTH:
            raise error_at(
                f"parentheses are nested deeper than {MOST_DEPTH}",
                span,
                "leave out those that change nothing",
                code="query_size",
            )


def _locate_error(error: Any, part: str, span: Span) -> QueryError:
    details = getattr(error, "errors", None) or [{}]
    marked = str(details[0].get("highlight") or "")
    lines = part.split("\n")
    line, column = details[0].get("line"), details[0].get("col")
    error_span = span
    if marked and line and column and line <= len(lines):
        end = span.start + sum(len(before) + 1 for before in lines[: line - 1]) + column
        start = max(span.start, end - len(marked))
        error_span = Span(start, max(start + 1, min(end, span.end)))
    description = str(details[0].get("description") or "")
    calls = _CALL.findall(part[: error_span.end - span.start])
    if calls and "missing for" in description:
        hint = "is an argument missing between its parentheses?"
        return error_at(f"{calls[-1].upper()} has too few arguments", error_span, hint, code="query_syntax")
    if calls and "number of provided arguments" in description:
        hint = "is one of its arguments too many?"
        return error_at(f"{calls[-1].upper()} has too many arguments", error_span, hint, code="query_syntax")
    return error_at(
        "this is not an expression of SQL",
        error_span,
        "see docs/reference/sql.md for what there is",
        code="query_syntax",
    )
