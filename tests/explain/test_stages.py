"""What is said of a query, compared with the texts in ``tests/golden/``.

After a change that is meant, write the texts anew and read the difference::

    ACEP_GOLDEN=write python -m pytest tests/explain/test_stages.py
"""

from __future__ import annotations

import os
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest

import acep
from acep.errors import QueryError
from acep.explain.stages import explain
from acep.pattern.tree import Query
from acep.plan.schema import Kind, Schema
from tests.random_cases import random_case

GOLDEN = Path(__file__).parents[1] / "golden"
WRITE = os.environ.get("ACEP_GOLDEN") == "write"

# The queries of Figure 1 of the SASE+ paper (2008), the running examples of the papers of 2012 and 2016, and two more.
QUERIES: dict[str, Callable[[], Query]] = {
    "letters": lambda: acep.regex("a(b|c)db", within=5, errors=2),
    "shoplifting": lambda: acep.parse(
        """PATTERN SEQ(Shelf a, ~(Register b), Exit c)
WHERE skip_till_next_match(a, b, c) {
    a.tag_id = b.tag_id
    and a.tag_id = c.tag_id
    /* equivalently, [tag_id] */ }
WITHIN 12 hours"""
    ),
    "contamination": lambda: acep.parse(
        """PATTERN SEQ(Alert a, Shipment+ b[])
WHERE skip_till_any_match(a, b[]) {
    a.type = 'contaminated'
    and b[1].from = a.site
    and b[i].from = b[i-1].to }
WITHIN 3 hours"""
    ),
    "stock": lambda: acep.parse(
        """PATTERN SEQ(Stock+ a[], Stock b)
WHERE skip_till_next_match(a[], b) {
    [symbol]
    and a[1].volume > 1000
    and a[i].price > avg(a[..i-1].price)
    and b.volume < 80%*a[a.LEN].volume }
WITHIN 1 hour"""
    ),
    "chemotherapy": lambda: acep.parse(
        """PATTERN SEQ({C c, P+ p[]}, B b)
WHERE c.PID = p.PID AND p.PID = b.PID AND prev(p.V) < p.V
WITHIN 15 days"""
    ),
    "group_with_negation": lambda: acep.parse(
        """PATTERN SEQ((Order o, ~Cancel c, Ship+ s[])+, Pay p)
WHERE skip_till_next_match { [customer] AND c.order = o.order AND s.order = o.order AND p.amount >= sum(s[].amount) }
WITHIN 30 days
HAVING count(o[]) > 1
RETURN p.amount AS paid""",
        errors=1,
        weights={"o": 2, "c": Fraction(1, 2)},
    ),
    "contiguity_with_weights": lambda: acep.parse(
        """PATTERN SEQ(Up a, (Down b | Flat c, Down d), Up{2,} e[])
WHERE partition_contiguity { [symbol] }
WITHIN 20 EVENTS""",
        errors=2,
        weights={"a": None, "b": Fraction(1, 2)},
    ),
}


@pytest.mark.parametrize("name", QUERIES)
def test_the_text_is_the_one_kept(name: str) -> None:
    text = explain(QUERIES[name]()) + "\n"
    file = GOLDEN / f"{name}.txt"
    if WRITE:
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8")


def test_no_text_is_left_over() -> None:
    assert {file.stem for file in GOLDEN.glob("*.txt")} == set(QUERIES)


def test_with_the_columns_of_a_stream() -> None:
    query = acep.parse("PATTERN SEQ(A a, B b) WHERE a.x < b.x WITHIN 5 min")
    schema = Schema((("x", Kind.INT),), ts="time", type="kind", tick_ns=Fraction(10**9))
    text = explain(query, schema)
    assert "window: 300 ticks of time (5 min)" in text
    assert "columns read: time, kind, x" in text
    assert "assumed" not in text
    assert "assumed" in explain(query)
    with pytest.raises(QueryError, match="unknown column `x`"):
        explain(query, Schema((("y", Kind.INT),)))


def test_sources_are_explained() -> None:
    inner = "PATTERN SEQ(A a, ~B b, C c) WHERE [k] WITHIN 5 RETURN a.x AS x"
    text = explain(acep.parse(f"FROM ({inner}) AS T PATTERN SEQ(T t, T u) WHERE [k] AND t.x < u.x WITHIN 50"))
    assert "# source T\n  # tree\n" in text
    assert "  past n0 (no b) -> " in text
    assert text.count("# tokens") == text.count("# costly") == 1


def test_a_letter_expression_is_not_read_as_sase() -> None:
    assert explain(acep.regex("(a b)+", within=None)).startswith("# tokens\n  (  a  b  )  +\n")


def test_a_query_without_a_text_of_ours() -> None:
    query = acep.regex("ab", within=5)
    assert explain(Query("by hand", query.pattern, within=query.within)).startswith("# tree")


def test_random_queries_are_explained(cases: Callable[[int], int]) -> None:
    for seed in range(cases(100)):
        case = random_case(seed)
        assert explain(case.query()) == explain(case.query())


def test_only_queries_are_explained() -> None:
    assert explain("PATTERN A a") == explain(acep.parse("PATTERN A a"))
    with pytest.raises(acep.QueryError, match=r"a query is a text, or what .* gives, not int"):
        explain(5)  # type: ignore[arg-type]
