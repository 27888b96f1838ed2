"""Lint MATCH_RECOGNIZE clauses and statements that have some: :func:`lint_clause`, :func:`lint_statement`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from acep.errors import QueryError
from acep.events.frames import to_table
from acep.linting import clause_rules
from acep.linting.clause_view import ClauseView
from acep.linting.report import DataFinding, Findings, Hit
from acep.pattern.expressions import Span
from acep.pattern.sql.clause_parser import parse_clause
from acep.pattern.sql.statement import split_statement
from acep.row_patterns.match_rows import plan_clause
from acep.statements.statements import planned_clauses

__all__ = ["CLAUSE_RULES", "lint_clause", "lint_statement"]

CLAUSE_RULES: tuple[Callable[[ClauseView], Iterator[Hit]], ...] = (
    clause_rules.condition_never,
    clause_rules.condition_always,
    clause_rules.null_compared,
    clause_rules.label_case,
    clause_rules.variable_unlike,
    clause_rules.pattern_empty,
    clause_rules.pattern_reluctant,
    clause_rules.order_missing,
    clause_rules.order_ties,
    clause_rules.partition_missing,
    clause_rules.rows_running,
    clause_rules.work_bound,
    clause_rules.state_unbounded,
    clause_rules.engine_slow,
)


def lint_clause(rows: Any, clause: str) -> Findings:
    """Find what looks wrong with a MATCH_RECOGNIZE clause over ``rows``, a table of any kind.

    The codes of the findings are the names of the rules in :data:`CLAUSE_RULES`. A clause that cannot run is a finding
    of code ``query``.

    >>> rows = {"day": [1, 2], "price": [5, 4]}
    >>> print(lint_clause(rows, "ORDER BY day MEASURES count(*) AS n PATTERN (A) DEFINE A AS price > LAST(A.price)")[0])
    error: this never holds: LAST(A.price) is of the row that is tested [condition_never] (line 1, column 61)
      ORDER BY day MEASURES count(*) AS n PATTERN (A) DEFINE A AS price > LAST(A.price)
                                                                  ^^^^^^^^^^^^^^^^^^^^^
    hint: PREV(price) is of the row before, LAST(A.price, 1) of the one before of A
    """
    table = to_table(rows)
    try:
        view = ClauseView(parse_clause(clause), plan_clause(table.schema, clause), table)
    except QueryError as error:
        return Findings([_of_error(error, clause)], table.num_rows)
    return Findings([*_findings(view)], table.num_rows)


def lint_statement(statement: str, /, **tables: Any) -> Findings:
    """Find what looks wrong with the clauses of a statement of SQL; without ``tables`` only what the text tells.

    >>> clause = "PARTITION BY k ORDER BY x PATTERN (A) DEFINE A AS x = NULL"
    >>> lint_statement(f"SELECT * FROM t MATCH_RECOGNIZE ({clause})").codes
    ['null_compared']
    """
    findings: list[DataFinding] = []
    row_count = 0
    try:
        split = split_statement(statement)
        if not tables:
            for clause in split.clauses:
                findings += _shift_spans(_findings(ClauseView(parse_clause(clause.clause))), clause.start, statement)
            return Findings(findings, 0)
        for clause, plan, source in planned_clauses(split, tables):
            view = ClauseView(plan.clause, plan, source)
            findings += _shift_spans(_findings(view), clause.start, statement)
            row_count += source.num_rows
    except QueryError as error:
        error.located(statement)
        findings.append(_of_error(error, statement))
    return Findings(findings, row_count)


def _findings(view: ClauseView) -> Iterator[DataFinding]:
    for rule in CLAUSE_RULES:
        for hit in rule(view):
            yield DataFinding(rule.__name__, hit.severity, hit.message, hit.hint, hit.span, view.clause.text)


def _of_error(error: QueryError, text: str) -> DataFinding:
    span = None if error.start is None else Span(error.start, error.end or error.start + 1)
    return DataFinding("query", "error", error.message, error.hint or "see acep sql --explain", span, text)


def _shift_spans(findings: Iterator[DataFinding], start: int, statement: str) -> list[DataFinding]:
    """Return findings of a clause with their places in the statement."""
    moved = []
    for finding in findings:
        span = finding.span
        moved_span = None if span is None else Span(span.start + start, span.end + start)
        moved.append(replace(finding, span=moved_span, text=statement))
    return moved
