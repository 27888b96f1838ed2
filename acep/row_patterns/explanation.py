"""Explain a MATCH_RECOGNIZE clause: its parts, its states, what conditions read, and which bound of work holds."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from acep.errors import QueryError
from acep.events.frames import to_table
from acep.events.tables import attribute_tick
from acep.pattern.sql.clause_tree import Concatenation, RowPattern, RowVariable
from acep.plan.ordered.ordered_plan import Condition, OrderedPlan
from acep.plan.ordered.row_references import LABEL, MatchNumber, MissingRows, Navigation, RowReference
from acep.row_patterns.clause_stream import reach_of
from acep.row_patterns.match_rows import plan_clause, row_columns
from acep.row_patterns.row_values import Evaluator
from acep.row_patterns.stream_time import time_column

__all__ = ["bound_of_work", "engine_of", "explain_clause", "explain_plan", "work_of"]

MOST_STATES = 40
_BOUNDS = {
    "rows": "rows x states, and the rows of all matches; the search never turns back",
    "head": "for each start at most rows x states, as conditions read rows that are bound once at its beginning",
    "past": "rows x states x what conditions have read before; a place from which the search failed is not tried again"
    " with the same past",
}


def explain_clause(rows: Any, clause: str) -> str:
    """Return what becomes of a clause over the columns of ``rows``, a table of any kind: how rows are sorted, the
    states of the pattern, the conditions with what they read, the engine, and the bound of work.

    Raises :class:`QueryError` for a clause that is wrong, as :func:`match_recognize` does.

    >>> clause = "ORDER BY x PATTERN (A B+) DEFINE B AS x > PREV(x) AND x < A.x * 2"
    >>> print(explain_clause({"x": [1]}, clause))
    order: x
    given: ONE ROW PER MATCH, AFTER MATCH SKIP PAST LAST ROW; columns: none
    states: 4
      0: row a, then 1
      1: row b, then 2
      2: prefer 1, else 3
      3: accept
    conditions:
      B, of each row at once: x, PREV(x)
      B, in the search: x, LAST(A.x)
    engine: native
    work: for each start at most rows x states, as conditions read rows that are bound once at its beginning
    stream: x is the time; keeps the rows from the first open match on, and 1 before it: no time bounds them
    """
    table = to_table(rows)
    return explain_plan(plan_clause(table.schema, clause), table.schema)


def explain_plan(plan: OrderedPlan, schema: pa.Schema) -> str:
    """Return what :func:`explain_clause` does, for a plan over a table of a schema."""
    spellings = dict(plan.spellings)
    lines = []
    if plan.partition:
        lines.append(f"partitions: {', '.join(plan.partition)}")
    if plan.order:
        keys = [f"{key.column}{' DESC' if key.is_descending else ''}" for key in plan.order]
        lines.append(f"order: {', '.join(keys)}")
    skip = f"AFTER MATCH SKIP {plan.clause.skip.mode.value} {plan.clause.skip.variable or ''}".rstrip()
    lines.append(f"given: {plan.rows.value}, {skip}; columns: {', '.join(plan.output_names) or 'none'}")
    lines.append(f"states: {len(plan.states.states)}")
    listing = plan.states.lines()
    lines += [f"  {line}" for line in listing[:MOST_STATES]]
    if len(listing) > MOST_STATES:
        lines.append(f"  and {len(listing) - MOST_STATES} more")
    lines.append("conditions:" if plan.conditions else "conditions: none")
    for condition in plan.conditions:
        where = "of each row at once" if condition.is_local else "in the search"
        read = ", ".join(_reference_text(plan.references[number], spellings) for number in condition.references)
        lines.append(f"  {spellings[condition.variable]}, {where}: {read or 'a constant'}")
    engine = engine_of(plan, schema)
    lines.append(f"engine: {engine}")
    lines.append(f"work: {bound_of_work(plan)}")
    lines.append(f"stream: {stream_text(plan, is_native=engine == 'native')}")
    return "\n".join(lines)


def stream_text(plan: OrderedPlan, *, is_native: bool) -> str:
    """Return what a stream waits for and keeps, or why there is none (docs/reference/sql.md#streams)."""
    try:
        time = time_column(plan)
    except QueryError as error:
        return error.message
    reach = reach_of(plan)
    parts = [f"{time} is the time"]
    if reach.ahead:
        parts.append(f"waits for {reach.ahead} more {'row' if reach.ahead == 1 else 'rows'}")
    if reach.ends_matter:
        parts.append("waits for the end where the pattern has $")
    behind = f", and {reach.behind} before it" if reach.behind else ""
    bound = "WITHIN bounds them" if plan.width is not None else "no time bounds them"
    parts.append(f"keeps the rows from the first open match on{behind}: {bound}")
    if not (reach.walks and is_native):
        parts.append("searches an open match anew with each push")
    return "; ".join(parts)


def bound_of_work(plan: OrderedPlan) -> str:
    """Return the bound of work that holds for a plan."""
    return _BOUNDS[work_of(plan)]


def work_of(plan: OrderedPlan) -> str:
    """Return what conditions of the search read: nothing but rows and neighbours (``rows``), the first rows of the
    match too (``head``), or what was bound on the way (``past``)."""
    searched = [condition for condition in plan.conditions if not condition.is_local]
    if not searched:
        return "rows"
    return "head" if all(_reads_head(condition, plan) for condition in searched) else "past"


def _reads_head(condition: Condition, plan: OrderedPlan) -> bool:
    """Return whether a condition reads only its row, its neighbours, and the first row of the match."""
    head = _head(plan.clause.pattern)
    labels = [variable for variable, _ in plan.states.labels]
    is_single = head is not None and labels.count(head) == 1 and _count(plan.clause.pattern, head) == 1
    for number in condition.references:
        reference = plan.references[number]
        if not isinstance(reference, Navigation) or reference.column == LABEL or reference.offset:
            return False
        is_current = reference.variables is None and not reference.is_first
        is_first_row = reference.variables is None and reference.is_first
        is_head = is_single and reference.variables == frozenset((head,))
        if not (is_current or is_first_row or is_head):
            return False
    return True


def _head(pattern: RowPattern) -> str | None:
    """Return the variable of the first row of each match, if it is one variable outside of loops."""
    while isinstance(pattern, Concatenation):
        pattern = pattern.items[0]
    return pattern.name.casefold() if isinstance(pattern, RowVariable) else None


def _count(pattern: Any, name: str) -> int:
    """Return how many times a pattern names a variable."""
    if isinstance(pattern, RowVariable):
        return int(pattern.name.casefold() == name)
    inner = getattr(pattern, "items", None) or [part for part in (getattr(pattern, "item", None),) if part is not None]
    return sum(_count(item, name) for item in inner)


def _reference_text(reference: RowReference, spellings: dict[str, str]) -> str:
    if isinstance(reference, MatchNumber):
        return "MATCH_NUMBER()"
    if isinstance(reference, MissingRows):
        return "MISSING_ROWS()"
    names = "|".join(sorted(spellings[name] for name in reference.variables)) if reference.variables else ""
    column = "*" if reference.column is None else reference.column
    value = f"{names}.{column}" if names else column
    if not isinstance(reference, Navigation):
        return f"{reference.function}({'DISTINCT ' if reference.is_distinct else ''}{value})"
    if names or reference.is_first or reference.offset:
        offset = f", {reference.offset}" if reference.offset else ""
        value = f"{'FIRST' if reference.is_first else 'LAST'}({value}{offset})"
    if reference.shift:
        distance = f", {abs(reference.shift)}" if abs(reference.shift) > 1 else ""
        value = f"{'PREV' if reference.shift < 0 else 'NEXT'}({value}{distance})"
    return value


def engine_of(plan: OrderedPlan, schema: pa.Schema) -> str:
    """Return the engine that searches, and why it is not the native core."""
    evaluator = Evaluator(attribute_tick(plan.schema))
    if evaluator.codes is None:
        return "reference, slowly: there is no native core"
    from acep.row_patterns.native_search import lower_plan

    if lower_plan(plan, row_columns(plan, schema.empty_table(), evaluator), evaluator) is None:
        return "reference, slowly: the native core has no operation that a condition needs"
    return "native"
