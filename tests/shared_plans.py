"""Compile a query once in a test that gives it to several matchers, where each of them would compile it anew."""

from __future__ import annotations

import pytest

from acep.pattern.tree import Query
from acep.plan.compile import Plan, compile_query
from acep.plan.schema import Schema
from acep.tables import table_stream

__all__ = ["SharedPlans", "share_plans"]


class SharedPlans:
    """The plans of some queries: one for each query and schema. They keep the engine chosen, and their tables."""

    def __init__(self) -> None:
        self._plans: dict[tuple[int, Schema], tuple[Query, Plan]] = {}

    def compile(self, query: Query, schema: Schema) -> Plan:
        """Return the plan of a query, compiled at the first call."""
        key = id(query), schema
        if key not in self._plans:
            self._plans[key] = query, compile_query(query, schema)  # the query stays, so that its id is of no other
        return self._plans[key][1]


def share_plans(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let matchers of one query share its plan until the end of the test."""
    monkeypatch.setattr(table_stream, "compile_query", SharedPlans().compile)
