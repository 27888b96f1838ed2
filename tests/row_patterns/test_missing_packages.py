"""Where sqlglot or DuckDB is missing, the error names it and the extra that brings it."""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest

import acep

STATEMENTS = {
    "sqlglot": "SELECT * FROM t MATCH_RECOGNIZE (MEASURES x AS y PATTERN (A))",
    "duckdb": "SELECT y + 1 FROM t MATCH_RECOGNIZE (MEASURES x AS y PATTERN (A))",
}


@pytest.mark.parametrize(("package", "statement"), STATEMENTS.items())
def test_a_missing_package_is_named(package: str, statement: str, monkeypatch: pytest.MonkeyPatch) -> None:
    find_spec = importlib.util.find_spec

    def find_others(name: str, *arguments: Any) -> Any:
        return None if name == package else find_spec(name, *arguments)

    monkeypatch.setattr(importlib.util, "find_spec", find_others)
    with pytest.raises(acep.EngineError, match=rf"(?s){package} is not installed.*acep\[sql\]"):
        acep.sql(statement, t={"x": [1]})
