"""What makes sense and what does not; the messages themselves are in ``messages.txt``."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

import acep
from acep.errors import QueryError
from acep.pattern.check import (
    DEEPEST,
    MOST_POSITIONS,
    check_query,
    checked_errors,
    checked_surplus,
    checked_weights,
)
from acep.pattern.expressions import Attribute, Binary, Expr, Literal, Unary
from acep.pattern.tree import Choice, Component, Negation, Node, Query, Repeat, Sequence, Within
from acep.pattern.walk import (
    components,
    group_variables,
    kleene_variables,
    negated_variables,
    positions,
    variables,
)


@pytest.mark.parametrize(
    "text",
    [
        # one variable, one event: a[1], a[a.LEN] and aggregates mean that event
        "PATTERN SEQ(A a, B b) WHERE a[1].x > 1 AND a[a.LEN].x > 1 AND avg(a[].x) > 1 AND a.LEN = 1",
        "PATTERN SEQ(A a, B? b) WHERE b[1].x > a.x",
        # repetitions: [i] in all its forms
        "PATTERN A+ a[] WHERE a[i].x > a[i-1].x AND a.x > avg(a[..i-1].x) AND a[i].x < a[a.LEN].x",
        "PATTERN A{2} a[] WHERE a[i].x > 1",
        "PATTERN A{0,2} a[] WHERE a[i].x > 1",
        "PATTERN {A+ a[], B b} WHERE a[i].x > a[i-1].x",
        "PATTERN (A+ a[], B b)+ WHERE a[i].x > a[i-1].x",
        "PATTERN (A+ a[] | B a) WHERE a[i].x > 1",
        "PATTERN SEQ(A+ a[], B+ b[]) WHERE a[i].x > b.x AND b[i].x > b[i-1].x",
        "PATTERN SEQ(A+ a[], B+ b[]) WHERE a[i].x > avg(b[].x)",
        # a choice may declare a variable in each alternative
        "PATTERN SEQ((A a, X x | B a | (C c, D a)), E e) WHERE a.x = e.x",
        "PATTERN ((A a | B a) | C a)",
        # negations
        "PATTERN SEQ(~N n, A a, ~N m) WITHIN 5 WHERE n.x = a.x AND m.x = a.x",
        "PATTERN SEQ(A a, (~N n, B b)+, C c) WHERE n.x = b.x",
        "PATTERN (A a, ~N n, B b)+",
        "PATTERN SEQ(A a, (B b | ~N n, C c), D d)",
        "PATTERN SEQ(A a, ~N n, ~M m, B b) WHERE n.x = a.x AND m.x = a.x",
        # kinds that the columns decide
        "PATTERN SEQ(A a, B b) WHERE a.flag AND NOT b.flag AND a.x + 1 > b.x * 2 AND a.ts + 5 min > b.ts",
        "PATTERN SEQ(A a, B b) WHERE a.x - b.x > 1 hour AND (b.ts - a.ts) * 2 < 5 min AND 3 * 1 min > b.ts - a.ts",
        "PATTERN A a WHERE a.ts - TIMESTAMP '2024-01-01' > 1 d AND TIMESTAMP '2024-01-01' + 1 d < a.ts",
        "PATTERN A a WHERE 1 h / 1 s > a.x",
        "PATTERN A a WHERE 1 h % 1 min < a.x AND 1 h / 2 < a.x AND 1 h - 1 min < a.x AND 1 h + a.x > a.y",
        "PATTERN A a WHERE abs(a.ts - a.x) < 5 min AND abs(-5 min) > a.x AND least(a.x, 1, NULL) = 1 AND sign(a.x) > 0",
        "PATTERN A a WHERE coalesce(a.x, 'none') = 'x' AND a.x IN (1, NULL) AND hour(a.ts) = 5 AND length(a.x) > 3",
        "PATTERN A a WHERE greatest(a.x, a.y - 1, 1) > 0 AND greatest(a.y - 1, 1 h) > 1 min",
        "PATTERN A a WHERE (a.x > 1) = TRUE AND (a.x > 1) = (a.y > 1)",
        "PATTERN A+ a[] HAVING a.x > a[1].x AND a[2].x IS NULL AND a.LEN > 2 AND 1 = 1 AND count(a[]) > avg(a[].x)",
        "PATTERN A a RETURN a.x AS x, 1 AS one, NULL AS nothing, a.x > 1 AS large",
        # the earliest and maximal matches of any pattern
        "PATTERN SEQ(A a, B b) EARLIEST MAXIMAL",
        "PATTERN A* a[]",
    ],
)
def test_makes_sense(text: str) -> None:
    acep.parse(text)


def a(var: str = "a") -> Component:
    return Component(var, (var.upper(),))


def nested(depth: int) -> Node:
    node: Node = a()
    for i in range(depth):
        node = Repeat(Sequence((node, Component(f"v{i}", ()))), 1, None)
    return node


def deep(depth: int) -> Expr:
    expr: Expr = Attribute("a", None, "x")
    for _ in range(depth):
        expr = Unary("-", expr)
    return Binary(">", expr, Literal(1))


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (Query("", Negation("n", ())), "the pattern binds no event"),
        (Query("", nested(DEEPEST)), "the pattern is nested too deeply"),
        (Query("", a(), where=(deep(DEEPEST),)), "this expression is nested too deeply"),
        (Query("", a(), having=deep(DEEPEST)), "this expression is nested too deeply"),
        (Query("", Repeat(a(), 1, MOST_POSITIONS + 1)), "the pattern is too large"),
        (Query("", Sequence((a(), a()))), "`a` is declared twice"),
        (Query("", Choice((a(), Sequence((Negation("a", ()), a("b")))))), "`a` is both negated and not"),
        (Query("", a(), where=(Attribute("b", None, "x"),)), "unknown variable `b`"),
        (Query("", Sequence((a(), Negation("n", ())))), "no component stands after the negation of `n`"),
    ],
)
def test_trees_made_by_hand_are_checked_too(query: Query, message: str) -> None:
    with pytest.raises(QueryError) as caught:
        check_query(query)
    assert caught.value.message == message
    assert caught.value.start is None


def test_trees_made_by_hand_may_be_as_large_as_the_limits() -> None:
    check_query(Query("", nested(DEEPEST // 2 - 1), within=Within(Fraction(5), "ticks")))
    check_query(Query("", a(), where=(deep(DEEPEST - 2),)))
    check_query(Query("", Repeat(a(), 1, MOST_POSITIONS)))
    check_query(Query("", Sequence((a(), a())), letters=True))


@pytest.mark.parametrize(
    ("given", "number"),
    [
        (0, Fraction(0)),
        (2, Fraction(2)),
        (0.1, Fraction(1, 10)),
        (1e-7, Fraction(1, 10**7)),
        (Fraction(1, 3), Fraction(1, 3)),
        (Decimal("0.25"), Fraction(1, 4)),
    ],
)
def test_error_budgets_are_exact(given: Any, number: Fraction) -> None:
    assert checked_errors(given) == number
    assert acep.parse("PATTERN A a", errors=given).errors == number


@pytest.mark.parametrize(
    "given", [-1, -0.5, math.inf, math.nan, Decimal("NaN"), Decimal("Infinity"), "1", None, True, [1]]
)
def test_bad_error_budgets(given: Any) -> None:
    with pytest.raises(QueryError, match="is not an error budget"):
        checked_errors(given)


def test_weights() -> None:
    known = ("a", "b", "c")
    given = {"c": Decimal("Infinity"), "b": 0.1, "a": None}
    assert checked_weights(given, known) == (("a", None), ("b", Fraction(1, 10)), ("c", None))
    for bad in (0, -1, math.nan, "1", True, -math.inf, Decimal("-Infinity"), []):
        with pytest.raises(QueryError, match="is no weight for `a`"):
            checked_weights({"a": bad}, known)
    with pytest.raises(QueryError, match=r"unknown variable `volum`"):
        acep.parse("PATTERN SEQ(A volume, B b)", weights={"volum": 2})
    with pytest.raises(QueryError, match="is not a mapping"):
        acep.parse("PATTERN A a", weights=0)  # type: ignore[arg-type]


def test_the_weight_of_surplus_events() -> None:
    assert [checked_surplus(one) for one in (None, math.inf, Decimal("Infinity"))] == [None] * 3
    assert [checked_surplus(one) for one in (2, 0.1, Fraction(1, 3))] == [2, Fraction(1, 10), Fraction(1, 3)]
    for bad in (0, -1, math.nan, "1", True, -math.inf, Decimal("NaN"), [1]):
        with pytest.raises(QueryError, match="is no weight"):
            checked_surplus(bad)


STRICT = "PATTERN SEQ(A a, B b) WHERE strict_contiguity"


def test_a_weight_of_surplus_events_that_changes_nothing_is_refused() -> None:
    assert acep.parse(STRICT, errors=1, surplus=0.5).surplus == Fraction(1, 2)
    assert acep.regex("ab", strategy="strict_contiguity", errors=1, surplus=2).surplus == 2
    with pytest.raises(QueryError, match="surplus= is for contiguity: skip till any match skips events for nothing"):
        acep.parse("PATTERN SEQ(A a, B b) WITHIN 9", errors=1, surplus=1)
    with pytest.raises(QueryError, match="and there is none"):
        acep.parse(STRICT, surplus=1)
    with pytest.raises(QueryError, match="surplus= is for contiguity"):
        acep.regex("ab", errors=1, surplus=1)
    inner = acep.parse("FROM (PATTERN A a) AS A, (PATTERN B b) AS B " + STRICT, errors=2, surplus=1)
    assert (inner.surplus, inner.sources[0].query.surplus) == (1, None)


def test_a_budget_gives_the_weight_of_surplus_events() -> None:
    rows = {"ts": [1, 2, 3], "type": list("AXB")}
    query = acep.parse(STRICT, weights={"a": math.inf, "b": math.inf})
    both = {"a": (0,), "b": (2,)}
    assert [one.bindings for one in acep.match(rows, query, budget=acep.Budget(errors=1, surplus=1))] == [both]
    assert len(acep.match(rows, query, budget=acep.Budget(errors=1))) == 0
    tolerant = acep.parse(STRICT, errors=1, surplus=1, weights={"a": math.inf, "b": math.inf})
    assert len(acep.match(rows, tolerant, budget=acep.Budget(surplus=math.inf))) == 0
    assert len(acep.match(rows, tolerant, budget=acep.Budget(errors=1))) == 1  # what is not said stays
    with pytest.raises(QueryError, match="and there is none"):
        acep.match(rows, query, budget=acep.Budget(surplus=1))


def test_inner_queries_have_no_error_budget_of_their_own() -> None:
    query = acep.parse("FROM (PATTERN A a) AS T PATTERN T t", errors=2, weights={"t": 3})
    assert (query.errors, query.weights) == (2, (("t", Fraction(3)),))
    assert (query.sources[0].query.errors, query.sources[0].query.weights) == (0, ())


def test_what_is_in_a_pattern() -> None:
    groups = "(B b, C{2} c[], ~M m, D? d)+, {E e, F* f[]}, (G g)?, (H h, I i){1,1}, (J j, K k)?"
    node = acep.parse(f"PATTERN SEQ(A+ a[], ~N n, {groups})").pattern
    assert [c.var for c in components(node)] == list("anbcmdefghijk")
    assert variables(node) == tuple("anbcmdefghijk")
    assert negated_variables(node) == {"n", "m"}
    assert kleene_variables(node) == {"a", "c", "f"}
    assert group_variables(node) == {"b", "c", "m", "d"}
    assert positions(node) == 1 + 1 + (1 + 2 + 1 + 1) + (1 + 1) + 1 + 2 + 2
