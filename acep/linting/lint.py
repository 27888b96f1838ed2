"""Lint a query and its events together: :func:`lint`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa

from acep.errors import AcepError, DataError, QueryError
from acep.events.duplicates import check_duplicates, settle_duplicates
from acep.events.empty_schema import with_usable_types
from acep.events.frames import is_partial
from acep.events.input_tables import are_paths, names_used
from acep.events.tables import batch_of, schema_of, to_table
from acep.linting import duplicate_rules, event_rules, match_rules, predicate_rules, repetition_rules, time_rules
from acep.linting.changed_matches import with_numbers
from acep.linting.report import DataFinding, Findings, Hit
from acep.linting.view import LintView
from acep.pattern.expressions import Span
from acep.pattern.query_arguments import query_of, read_queries
from acep.pattern.tree import Query
from acep.plan.compile import Plan, compile_query
from acep.plan.lint.finding import declarations, tokens_of
from acep.plan.lint.rules import lint_plan

__all__ = ["RULES", "findings", "lint"]

RULES: tuple[Callable[[LintView], Iterator[Hit]], ...] = (
    event_rules.type_never,
    event_rules.negation_never,
    event_rules.attribute_null,
    event_rules.null_breaks,
    event_rules.numbers_as_text,
    event_rules.key_null,
    event_rules.key_unique,
    event_rules.key_dominant,
    predicate_rules.predicate_never,
    predicate_rules.predicate_always,
    match_rules.equality_no_partition,
    match_rules.strict_over_all,
    match_rules.errors_lack,
    match_rules.condition_unasked,
    repetition_rules.first_free,
    time_rules.window_short,
    time_rules.window_long,
    time_rules.window_narrow,
    time_rules.ties_unordered,
    time_rules.time_in_utc,
    time_rules.unit_suspect,
    duplicate_rules.id_twice,
    duplicate_rules.rows_twice,
    event_rules.out_of_order,
)


def lint(
    events: Any,
    query: Query | str,
    *,
    ts: str = "ts",
    type: str | None = "type",
    seq: str | None = None,
    id: str | None = None,
    unit: str | None = None,
    duplicates: str = "refuse",
) -> Findings:
    """Find what looks wrong with a query and its events together.

    A query that cannot run on the events is a finding too: of code ``query`` or ``data``. The codes of the others are
    the names of the rules in :data:`RULES`, and of those of ``acep explain``. The arguments are those of
    :func:`acep.match`. With ``duplicates="drop"`` the events are looked at without those that come again; else ids that
    come twice are a finding.

    Raises :class:`DataError` for events that cannot be read, :class:`QueryError` for a text that is no query.

    >>> import acep
    >>> rows = {"ts": [1, 2, 3], "type": ["A", "b", "A"], "k": [1, 2, 3]}
    >>> print(lint(rows, "PATTERN SEQ(A a, B b) WHERE [k] WITHIN 5")[0])
    error: no event is of type `B`, so that nothing matches [type_never] (line 1, column 18)
      PATTERN SEQ(A a, B b) WHERE [k] WITHIN 5
                       ^
    hint: did you mean `b`?
    """
    parsed_query = query_of(query)
    columns: dict[str, Any] = {"ts": ts, "type": type, "seq": seq, "id": id, "unit": unit}
    check_duplicates(duplicates, id)
    used = names_used(read_queries(parsed_query), ts, type, seq, id)
    if not are_paths(events):
        table = to_table(events, used)
        return findings(table, parsed_query, columns, complete=not is_partial(table.schema), duplicates=duplicates)
    from acep.events.files.options import options_of
    from acep.linting.reading import read_whole

    options = options_of(columns=used, ts=ts, type=type)
    table, complete, _ = read_whole(events, options)
    return findings(table, parsed_query, columns, complete=complete, duplicates=duplicates)


def findings(
    table: pa.Table, query: Query, columns: dict[str, Any], *, complete: bool = True, duplicates: str = "refuse"
) -> Findings:
    """Find the same in a table with these names of ``columns``; ``complete``: with all columns of the events."""
    if duplicates == "drop":
        try:
            table = settle_duplicates(table, columns["id"], duplicates)
        except DataError as wrong:
            finding = DataFinding("data", "error", wrong.message, wrong.hint or "see acep explain", None, query.text)
            return Findings([finding], table.num_rows)
    return Findings([*dict.fromkeys(_findings(table, query, columns, complete=complete))], table.num_rows)


def _findings(table: pa.Table, query: Query, columns: dict[str, Any], *, complete: bool) -> Iterator[DataFinding]:
    try:
        table = with_usable_types(table, [query], columns)
        plan = compile_query(query, schema_of(table.schema, **columns))
        views = [*_views(plan, table, complete=complete)]
    except AcepError as error:
        code = "query" if isinstance(error, QueryError) else "data"
        span = None if error.start is None else Span(error.start, error.end or error.start + 1)
        yield DataFinding(code, "error", error.message, error.hint or "see acep explain", span, query.text)
        return
    if not table.num_rows:
        yield DataFinding("data", "warning", "there are no events, so that little can be said", "give some")
    for view in views:
        for rule in RULES:
            for hit in rule(view):
                yield DataFinding(rule.__name__, hit.severity, hit.message, hit.hint, hit.span, query.text)
    view_of = {id(view.plan.query): view for view in views}
    for finding in lint_plan(plan):
        view_of_query, hint = view_of.get(id(finding.query)), finding.hint
        if view_of_query is not None and finding.changes:
            hint = with_numbers(view_of_query, hint, finding.changes)
        yield DataFinding(finding.rule, "warning", finding.message, hint, finding.span, query.text)


def _views(plan: Plan, table: pa.Table, *, complete: bool) -> Iterator[LintView]:
    """Yield the plans over the events themselves with their events: the plan, or those of its sources."""
    tokens = tokens_of(plan.query)
    over = [plan] if not plan.sources else [inner for inner, _ in plan.sources if not inner.sources]
    for number, inner in enumerate(over):
        schema = replace(inner.schema, id=None)  # ids that come twice are a finding
        read = tuple(dict.fromkeys([*inner.columns, *inner.keys]))
        yield LintView(inner, table, batch_of(table, schema, read), declarations(tokens, number), complete)
