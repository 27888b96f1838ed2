"""Find constructs that make a query costly on any stream, and suggest remedies.

Each rule is a plain function; rules run in the order of ``RULES``. Findings are warnings, not errors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from acep.pattern.tree import Query
from acep.plan.assume import assumed_plan
from acep.plan.compile import Plan, compile_query
from acep.plan.lint import cost, distribution
from acep.plan.lint.finding import Finding, QueryView, Remark, declarations, tokens_of
from acep.plan.schema import Schema

__all__ = ["RULES", "Finding", "lint", "lint_plan"]

RULES: tuple[Callable[[QueryView], Iterator[Remark]], ...] = (
    cost.any_match_repetition,
    cost.last_repetition,
    cost.chosen_from_all,
    cost.repetitions_share_events,
    cost.no_window,
    distribution.no_partition,
    distribution.nearly_partitioned,
    distribution.one_order,
    cost.single_events_match,
    cost.begins_anywhere,
    cost.large_set,
    cost.many_states,
    cost.each_value_kept,
    cost.decided_late,
    cost.bare_name_in_set,
    distribution.leading_negation,
    distribution.trailing_negation,
    distribution.composed,
)


def lint(query: Query, schema: Schema | None = None) -> list[Finding]:
    """Return the costly constructs of a query, those of its sources first.

    Raise :class:`QueryError` if the query cannot be compiled for the columns of ``schema``, or without a schema for
    any columns.

    >>> from acep.pattern.text.letters import regex
    >>> [finding.rule for finding in lint(regex("ab*", within=None))]
    ['any_match_repetition', 'no_window', 'no_partition']
    >>> lint(regex("ab", within=5, by="user"))
    []
    """
    return lint_plan(assumed_plan(query) if schema is None else compile_query(query, schema))


def lint_plan(plan: Plan) -> list[Finding]:
    """Return the costly constructs of a compiled query."""
    tokens = tokens_of(plan.query)
    return [
        Finding(rule.__name__, *remark, query=part.query)
        for number, part in enumerate(_plans(plan))
        for rule in RULES
        for remark in rule(QueryView(part, declarations(tokens, number)))
    ]


def _plans(plan: Plan) -> Iterator[Plan]:
    """Yield the plans of the sources, then the plan itself, in the order of their patterns in the text."""
    for source, _ in plan.sources:
        yield from _plans(source)
    yield plan
