"""Compile a query once in a test that gives it to several matchers, where each of them would compile it anew."""

from __future__ import annotations

import pyarrow as pa
import pytest

from acep.pattern.tree import Query
from acep.plan.compile import Plan, compile_query
from acep.plan.ordered.ordered_plan import OrderedPlan
from acep.plan.schema import Schema
from acep.row_patterns import clause_text, match_rows
from acep.tables import table_stream

__all__ = ["SharedPlans", "share_plans"]

plan_clause = match_rows.plan_clause


class SharedPlans:
    """The plans of some queries and clauses: one for each and its schema. They keep the engine chosen, and their
    tables."""

    def __init__(self) -> None:
        self._plans: dict[tuple[int, Schema], tuple[Query, Plan]] = {}
        self._clause_plans: dict[tuple[pa.Schema, str, str], OrderedPlan] = {}

    def compile(self, query: Query, schema: Schema) -> Plan:
        """Return the plan of a query, compiled at the first call."""
        key = id(query), schema
        if key not in self._plans:
            self._plans[key] = query, compile_query(query, schema)  # the query stays, so that its id is of no other
        return self._plans[key][1]

    def plan_clause(self, schema: pa.Schema, clause: str, input_name: str = "") -> OrderedPlan:
        """Return the plan of a clause, made at the first call."""
        key = schema, clause, input_name
        if key not in self._clause_plans:
            self._clause_plans[key] = plan_clause(schema, clause, input_name)
        return self._clause_plans[key]


def share_plans(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let matchers of one query or clause share its plan until the end of the test."""
    plans = SharedPlans()
    monkeypatch.setattr(table_stream, "compile_query", plans.compile)
    for module in (clause_text, match_rows):
        monkeypatch.setattr(module, "plan_clause", plans.plan_clause)
