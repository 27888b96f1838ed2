"""Read the text of a row pattern that a stream is searched for: a clause, or a SELECT of columns of one clause."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from acep.errors import QueryError
from acep.pattern.expressions import Span, error_at
from acep.pattern.sql.scanner import closing_place, scan
from acep.pattern.sql.statement import split_statement
from acep.plan.ordered.ordered_plan import OrderedPlan
from acep.row_patterns.match_rows import plan_clause, select_columns

__all__ = ["StreamClause", "read_clause"]


@dataclass(frozen=True)
class StreamClause:
    """A ``clause`` that begins at ``start`` of a ``text``. ``columns``: those that a SELECT takes of its result, as
    (column or ``*``, name, place); ``None``: all. ``input_name``: what the input is called in the clause."""

    text: str
    clause: str
    start: int
    columns: tuple[tuple[str, str, Span], ...] | None
    input_name: str = ""

    def make_plan(self, schema: pa.Schema) -> OrderedPlan:
        """Return the plan for the columns of a table. Raises :class:`QueryError` with a place in the text."""
        try:
            return plan_clause(schema, self.clause, self.input_name)
        except QueryError as error:
            raise self.place_error(error) from None

    def place_error(self, error: QueryError) -> QueryError:
        """Return an error about the clause with its place in the text."""
        error.text = None
        if error.start is not None and error.end is not None:
            error.start, error.end = error.start + self.start, error.end + self.start
        error.located(self.text)
        return error

    def select(self, result: pa.Table) -> pa.Table:
        """Return the columns of the result that are asked for."""
        if self.columns is None:
            return result
        try:
            return select_columns(result, self.columns)
        except QueryError as error:
            error.located(self.text)
            raise


def read_clause(text: str) -> StreamClause:
    """Read the text of a clause, with MATCH_RECOGNIZE around it or without, or of a SELECT from one.

    Raises :class:`QueryError` for a SELECT of anything but columns: nothing is there to run the SQL around a clause.

    >>> read_clause("MATCH_RECOGNIZE (ORDER BY t PATTERN (a))").clause
    '(ORDER BY t PATTERN (a))'
    >>> read_clause("SELECT n AS size FROM t MATCH_RECOGNIZE (ORDER BY t PATTERN (a))").columns[0][:2]
    ('n', 'size')
    """
    try:
        tokens = scan(text)
        if tokens[0].is_word("SELECT", "WITH"):
            statement = split_statement(text)
            if statement.columns is None:
                hint = "SELECT * FROM events MATCH_RECOGNIZE (...), or the clause alone"
                raise error_at("on a stream a SELECT takes columns of one clause, and nothing else", tokens[0].span,
                               hint, code="query_invalid")  # fmt: skip
            (clause,) = statement.clauses
            return StreamClause(text, clause.clause, clause.start, statement.columns, clause.input_name)
        if not (tokens[0].is_word("MATCH_RECOGNIZE") and tokens[1].is_sign("(")):
            return StreamClause(text, text, 0, None)
        last = closing_place(tokens, 1)
        if tokens[last + 1].kind != "end":
            raise error_at(
                "the clause ends before",
                tokens[last + 1].span,
                "is a parenthesis missing at its end?",
                code="query_syntax",
            )
    except QueryError as error:
        error.located(text)
        raise
    start = tokens[1].start
    return StreamClause(text, text[start : tokens[last].end], start, None)
