"""Equalities that follow from others, and the attributes that partition a stream."""

from __future__ import annotations

import pytest

import acep
from acep.errors import QueryError
from acep.pattern.closure import close_equalities, tied_attributes
from acep.pattern.printing import expression_text

ABC = "SEQ(A a, B b, C c)"

# pattern, conditions: what follows
CLOSED: list[tuple[str, str, list[str]]] = [
    (ABC, "a.id = b.id AND b.id = c.id", ["a.id = c.id"]),
    (ABC, "a.id = b.id AND c.id = b.id", ["a.id = c.id"]),
    (ABC, "a.id = b.id AND b.id = c.id AND a.id = c.id", []),
    (ABC, "a.id = b.id AND b.id = c.id AND c.id = a.id", []),
    (ABC, "a.x = b.y AND b.y = c.z", ["a.x = c.z"]),
    (ABC, "a.x = b.y AND b.x = c.y", []),
    (ABC, "a.x = b.x AND b.y = c.y", []),
    (ABC, "a.x = 5 AND a.x = b.x", ["b.x = 5"]),
    (ABC, "5 = a.x AND b.x = 5", ["a.x = b.x"]),
    (ABC, "a.x = 1 AND b.x = TRUE", []),
    (ABC, "a.x = 1 AND b.x = 1.0", ["a.x = b.x"]),
    (ABC, "a.x = 'k' AND b.x = 'k' AND c.x = 'l'", ["a.x = b.x"]),
    (ABC, "a.x = 5 AND a.x = 6 AND b.x = 5", ["a.x = b.x", "b.x = 6"]),
    (ABC, "a.x = a.x AND a.x = b.x", []),
    (ABC, "a.x = a.y AND a.y = b.x", ["a.x = b.x"]),
    # not top-level, not an equality, not a reference: no part of a class
    (ABC, "(a.x = b.x OR a.x = 1) AND b.x = c.x", []),
    (ABC, "NOT a.x = b.x AND b.x = c.x", []),
    (ABC, "a.x + 0 = b.x AND b.x = c.x", []),
    (ABC, "a.x <= b.x AND b.x = c.x", []),
    (ABC, "abs(a.x) = b.x AND b.x = c.x", []),
    # a[1] and a[a.LEN] of one event are that event
    (ABC, "a[1].x = b.x AND a[a.LEN].x = c.x", ["b.x = c.x"]),
    # repetitions: each event is in the class, so all of them are equal
    ("SEQ(A+ a[], B b)", "a.id = b.id", ["a[i].id = a[1].id"]),
    ("SEQ(A+ a[], B b)", "a[i].id = b.id", ["a[i].id = a[1].id"]),
    ("SEQ(A+ a[], B b)", "a[i].id = a[1].id", []),
    ("SEQ(A+ a[], B b)", "a[i].id = a[1].id AND a[1].id = b.id", ["a.id = b.id"]),
    ("SEQ(A+ a[], B b)", "a[1].id = b.id", []),
    ("SEQ(A+ a[], B b, C c)", "a[1].id = b.id AND b.id = c.id", ["a[1].id = c.id"]),
    ("SEQ(A+ a[], B b, C c)", "a[a.LEN].id = b.id AND b.id = c.id", ["a[a.LEN].id = c.id"]),
    ("SEQ(A+ a[], B b, C c)", "a[2].id = b.id AND b.id = c.id", []),
    ("SEQ(A+ a[], B b, C c)", "a[i].id = a[i-1].id AND a.id = c.id", ["a[i].id = a[1].id"]),
    ("SEQ(A+ a[], B b)", "a.id = 5 AND b.id = 5", ["a.id = b.id"]),
    ("SEQ(A+ a[], B+ b[])", "a.id = b.id", ["a[i].id = a[1].id", "b[i].id = b[1].id"]),
    ("{A+ a[], B b}", "a.id = b.id", ["a[i].id = a[1].id"]),
    # in a repeated group a variable means the current iteration: no equality among iterations
    ("SEQ((A a, B b)+, C c)", "a.id = b.id AND b.id = c.id", ["a.id = c.id"]),
    ("SEQ((A+ a[], B b)+, C c)", "a.id = b.id", []),
    # negated variables are in the class; a condition on two of them says nothing
    ("SEQ(A a, ~N n, B b)", "a.id = n.id AND n.id = b.id", []),
    ("SEQ(A a, ~N n, ~M m, B b)", "a.id = n.id AND a.id = m.id", []),
]


@pytest.mark.parametrize(("pattern", "conditions", "implied"), CLOSED)
def test_closure(pattern: str, conditions: str, implied: list[str]) -> None:
    query = acep.parse(f"PATTERN {pattern} WHERE {conditions}")
    closed = close_equalities(query)
    assert closed[: len(query.where)] == query.where
    assert [expression_text(e) for e in closed[len(query.where) :]] == implied


def test_ties_imply_no_conjuncts() -> None:
    query = acep.parse(f"PATTERN {ABC} WHERE [id] AND a.x > 1")
    assert close_equalities(query) == query.where


def test_a_class_that_is_too_large() -> None:
    many = range(300)
    pattern = ", ".join(f"A a{i}" for i in many)
    chain = " AND ".join(f"a{i}.x = a{i + 1}.x" for i in many[:-1])
    with pytest.raises(QueryError, match="too many equalities follow from each other"):
        acep.parse(f"PATTERN SEQ({pattern}) WHERE {chain}")


TIED: list[tuple[str, str, tuple[str, ...]]] = [
    (ABC, "[id]", ()),
    (ABC, "a.id = b.id AND b.id = c.id", ("id",)),
    (ABC, "NOT a.id != b.id AND c.id IN (b.id)", ("id",)),
    (ABC, "NOT NOT a.id = b.id AND NOT c.id NOT IN (b.id)", ("id",)),
    (ABC, "NOT NOT NOT a.id != b.id AND NOT NOT c.id IN (b.id)", ("id",)),
    (ABC, "a.id NOT IN (b.id) AND NOT a.id IN (c.id) AND NOT NOT b.id != c.id", ()),
    (ABC, "NOT a.id = b.id AND b.id = c.id", ()),
    (ABC, "a.id NOT IN (b.id) AND b.id = c.id", ()),
    (ABC, "a.id IN (b.id, 5) AND b.id = c.id", ()),
    (ABC, "(a.id = b.id OR a.x = 1) AND b.id = c.id", ()),
    (ABC, "a.id = b.id", ()),
    (ABC, "a.x = b.x AND b.x = c.x AND [id] AND a.y = b.y AND a.y = c.y", ("x", "y")),
    (ABC, "a.x = b.x AND b.x = c.x AND [x]", ()),
    (ABC, "a.x = b.y AND b.y = c.x AND b.x = a.x", ("x",)),
    (ABC, "a.x = b.y AND b.y = c.z", ()),
    (ABC, "a.id = 5 AND b.id = 5 AND c.id = 5", ()),
    ("A a", "a.id = 5", ()),
    ("A a", "a.id = a.key", ()),
    ("A+ a[]", "a.id = a.key", ()),
    ("A a", "a.id = a.id", ()),
    ("A+ a[]", "a[i].id = a[1].id", ("id",)),
    ("A+ a[]", "a[i].id = a[i-1].id", ("id",)),
    ("A+ a[]", "NOT a[i-1].id != a[i].id", ("id",)),
    ("A+ a[]", "prev(a.id) = a.id", ("id",)),
    ("A+ a[]", "a[i].id = a[i-2].id", ()),
    ("A+ a[]", "a[i].id = a[i-1].key", ()),
    ("A+ a[]", "a[1].id = a[a.LEN].id", ()),
    ("SEQ(A+ a[], B b)", "a.id = b.id", ("id",)),
    ("SEQ(A+ a[], B b)", "a[i].id = b.id", ("id",)),
    ("SEQ(A+ a[], B b)", "a[1].id = b.id", ()),
    ("SEQ(A+ a[], B b)", "a[i].id = a[i-1].id AND a[1].id = b.id", ("id",)),
    ("SEQ(A+ a[], B b)", "a[i].id = a[i-1].id AND a[a.LEN].id = b.id", ()),  # decided when the repetition is left
    ("SEQ(A+ a[], B b)", "a[i].id = a[i-1].id AND a[2].id = b.id", ()),
    ("SEQ(A+ a[], B+ b[])", "a[i].id = a[i-1].id AND b[i].id = b[i-1].id", ()),
    ("SEQ(A+ a[], B+ b[])", "a[i].id = a[i-1].id AND b[i].id = b[i-1].id AND a[1].id = b[1].id", ("id",)),
    ("SEQ(A a, B b)", "a[1].id = b[b.LEN].id", ("id",)),
    ("SEQ(A a, ~N n, B b)", "a.id = b.id", ()),
    ("SEQ(A a, ~N n, B b)", "a.id = b.id AND n.id = a.id", ("id",)),
    ("SEQ((A a, B b)+, C c)", "a.id = b.id AND b.id = c.id", ()),
    ("SEQ((A a, B b)?, C c)", "a.id = b.id AND b.id = c.id", ("id",)),
    ("SEQ((A a, B b)+, C c)", "[id]", ()),
    # the three queries of Figure 1
    ("SEQ(Shelf a, ~(Register b), Exit c)", "a.tag_id = b.tag_id and a.tag_id = c.tag_id", ("tag_id",)),
    ("SEQ(Alert a, Shipment+ b[])", "b[1].from = a.site and b[i].from = b[i-1].to", ()),
    ("SEQ(Stock+ a[], Stock b)", "[symbol] and a[1].volume > 1000", ()),
    # Example 12 of the 2012 paper
    ("{c, p+}, {b}", "c.PID = p.PID AND p.PID = b.PID AND c.L = 'C' AND p.L = 'P' AND b.L = 'B'", ("PID",)),
]


@pytest.mark.parametrize(("pattern", "conditions", "attributes"), TIED)
def test_tied_attributes(pattern: str, conditions: str, attributes: tuple[str, ...]) -> None:
    assert tied_attributes(acep.parse(f"PATTERN {pattern} WHERE {conditions}")) == attributes


def test_letters_are_partitioned_by_what_is_asked_for() -> None:
    assert acep.regex("ab", within=5, by=["user", "symbol"]).ties == ("user", "symbol")
    assert acep.regex("ab", within=5).ties == ()
