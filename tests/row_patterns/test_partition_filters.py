"""Conditions around a clause that select whole partitions are tested before it, and make no difference to the rows."""

from __future__ import annotations

from random import Random
from typing import Any

import pyarrow as pa
import pytest

import acep
from acep.statements import statements
from tests.case_counts import CaseCounts

pytest.importorskip("duckdb")

CLAUSE = """MATCH_RECOGNIZE (PARTITION BY k, name ORDER BY i
    MEASURES count(*) AS n, MATCH_NUMBER() AS number, last(x) AS last_x {rows}
    PATTERN (A B*) DEFINE B AS x > PREV(x)) AS m"""
CONDITIONS = [
    "k = 3",
    "m.k IN (1, 2)",
    "k IS NULL",
    "NOT k = 1",
    "k BETWEEN 1 AND 2 OR k > 3",
    "name = 'u'",
    "name IN ('u', 'v')",
    "name IS NOT NULL AND k < 3",
    "k <> -1",
    "n > 1",
    "k + 1 = 3",
    "k = n",
    "name > 'u' AND n = 1",
    "k = '3'",
    "TRUE",
    "number = 1",
    "k = 2 AND number < 3",
    "name LIKE 'u%'",
]


def rows(random: Random, size: int) -> pa.Table:
    return pa.table(
        {
            "i": [*range(size)],
            "k": pa.array(random.choices([1, 2, 3, 4, None], k=size), pa.int64()),
            "name": random.choices(["u", "v", "3", None], k=size),
            "x": [random.randrange(9) for _ in range(size)],
        }
    )


def read_rows(monkeypatch: pytest.MonkeyPatch, text: str, table: pa.Table, *, filters: bool) -> tuple[list[Any], int]:
    """The rows of a statement, in an order, and how many rows its clause read."""
    sizes = list[int]()
    match_table = statements.match_table

    def counted(plan: Any, source: pa.Table) -> pa.Table:
        sizes.append(source.num_rows)
        return match_table(plan, source)

    with monkeypatch.context() as patch:
        patch.setattr(statements, "match_table", counted)
        if not filters:
            patch.setattr(statements, "filters_of", lambda *_: [])
        result = acep.sql(text, t=table)
    return sorted(map(repr, result.to_pylist())), sizes[0]


def test_filters_make_no_difference(monkeypatch: pytest.MonkeyPatch, cases: CaseCounts) -> None:
    n_smaller = 0
    for seed in range(cases(200)):
        random = Random(seed)
        table, shown = rows(random, 40), random.choice(["", "ALL ROWS PER MATCH"])
        conditions = " AND ".join(random.sample(CONDITIONS, random.randint(1, 2)))
        text = f"SELECT m.k, m.name, m.n, m.number FROM t {CLAUSE.format(rows=shown)} WHERE {conditions}"  # noqa: S608
        with_filters = read_rows(monkeypatch, text, table, filters=True)
        without = read_rows(monkeypatch, text, table, filters=False)
        assert with_filters[0] == without[0], (seed, text)
        n_smaller += with_filters[1] < without[1]
    assert n_smaller > cases(200) / 3


def test_a_condition_on_the_partition_is_tested_before_the_clause(monkeypatch: pytest.MonkeyPatch) -> None:
    table = rows(Random(0), 400)
    text = f"SELECT k, n FROM t {CLAUSE.format(rows='')} WHERE k = 3 AND n > 1"  # noqa: S608
    n_of_three = table["k"].to_pylist().count(3)
    assert read_rows(monkeypatch, text, table, filters=True)[1] == n_of_three
    assert acep.statements.statements.explain_statement(text, t=table).endswith(
        'rows: those of partitions with "k" = 3'
    )


@pytest.mark.parametrize(
    "around",
    [
        "SELECT * FROM t {} WHERE k = '3'",  # a cast, which may fail for other values
        "SELECT * FROM t {} WHERE k = n",
        "SELECT * FROM t {}, t AS other WHERE m.k = 3 AND other.i = 1",
        "SELECT * FROM (SELECT k, n + 1 AS n FROM t {}) WHERE k = 3",
        "SELECT * FROM t {} WHERE k = (SELECT 3)",
        "SELECT k, count(*) AS many FROM t {} GROUP BY k HAVING k = 3",
    ],
)
def test_other_conditions_stay_where_they_are(around: str, monkeypatch: pytest.MonkeyPatch) -> None:
    table = rows(Random(0), 100)
    text = around.format(CLAUSE.format(rows="")).replace(
        "SELECT *", "SELECT m.k, m.n" if "other" in around else "SELECT *"
    )
    assert read_rows(monkeypatch, text, table, filters=True) == read_rows(monkeypatch, text, table, filters=False)
