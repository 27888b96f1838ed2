"""Queries as text: nothing that changes the meaning is lost, nothing else is in it."""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction
from importlib.resources import files
from itertools import combinations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import acep
from acep.errors import QueryError
from acep.functions.aggregates import AGGREGATES
from acep.pattern.expressions import (
    Aggregate,
    Attribute,
    Between,
    Binary,
    Call,
    Duration,
    Expr,
    In,
    IsNull,
    Length,
    Like,
    Literal,
    Timestamp,
    Unary,
)
from acep.pattern.printing import canonical, expression_text, pattern_text, tree_lines
from acep.pattern.spelling import name_text
from acep.pattern.times import UNITS, duration_text, exact_number, read_timestamp, read_window, timestamp_text
from acep.pattern.tree import Choice, Component, EventSet, Negation, Node, Query, Repeat, Sequence, Within
from acep.pattern.walk import variables_in
from tests.pattern.test_letters import EXPRESSIONS as LETTERS
from tests.pattern.test_sase import EXPRESSIONS, PATTERNS, QUERY_3, bare

BASE = "PATTERN SEQ(A a, B b) WHERE a.x = 1 WITHIN 5"

# Each differs from every other in its meaning.
DIFFERENT = [
    acep.parse(BASE),
    acep.parse(BASE, errors=1),
    acep.parse(BASE, errors=0.5),
    acep.parse(BASE, weights={"a": 2}),
    acep.parse(BASE, weights={"a": None}),
    acep.parse(BASE, weights={"b": 2}),
    acep.parse(BASE.replace("a.x = 1", "strict_contiguity { a.x = 1 }"), errors=1),
    acep.parse(BASE.replace("a.x = 1", "strict_contiguity { a.x = 1 }"), errors=1, surplus=1),
    acep.parse(BASE.replace("a.x = 1", "strict_contiguity { a.x = 1 }"), errors=1, surplus=0.5),
    acep.parse(BASE + " EVENTS"),
    acep.parse(BASE + " ns"),
    acep.parse(BASE + " us"),
    acep.parse(BASE + " OUTPUT NON OVERLAP"),
    acep.parse(BASE + " OUTPUT EARLIEST MAXIMAL"),
    acep.parse(BASE + " HAVING a.x = 1"),
    acep.parse(BASE + " RETURN a.x AS x"),
    acep.parse(BASE + " RETURN a.x AS y"),
    acep.parse(BASE + " RETURN b.x AS y"),
    acep.parse(BASE.replace("= 1", "= 1.0")),
    acep.parse(BASE.replace("= 1", "= TRUE")),
    acep.parse(BASE.replace("= 1", "= '1'")),
    acep.parse(BASE.replace("= 1", "= 1 ns")),
    acep.parse(BASE.replace("= 1", "= TIMESTAMP '1970-01-01'")),
    acep.parse(BASE.replace("a.x =", "[x] AND a.x =")),
    acep.parse(BASE.replace("a.x =", "[y] AND a.x =")),
    acep.parse(BASE.replace("WHERE", "WHERE skip_till_next_match(a, b) AND")),
    acep.parse(BASE.replace("WHERE", "WHERE strict_contiguity(a, b) AND")),
    acep.parse(BASE.replace("WHERE", "WHERE partition_contiguity(a, b) AND")),
    acep.parse(BASE.replace("A a", "C a")),
    acep.parse(BASE.replace("A a", "'A a' a")),
    acep.parse(BASE.replace("A a", "(A|C) a")),
    acep.parse(BASE.replace("A a", "ANY a")),
    acep.parse(BASE.replace("A a", "`ANY` a")),
    acep.parse("FROM (PATTERN A a) AS A, (PATTERN B b) AS B " + BASE),
    acep.parse("FROM (PATTERN A a) AS B, (PATTERN B b) AS A " + BASE),
    acep.regex("ab"),
    acep.regex("ab", by="x"),
    acep.regex("ab", within=5),
    acep.regex("ab", errors=1),
    acep.regex("a|b"),
    acep.regex("'ab'"),
    acep.regex("."),
    acep.regex("'.'"),
    *(
        acep.parse(f"PATTERN SEQ({p}, Z z)")
        for p in ["A+ a[]", "A* a[]", "A? a", "A{2} a[]", "A{2,} a[]", "A{2,3} a[]"]
    ),
    *(
        acep.parse(f"PATTERN {p}")
        for p in ["(A a, B b)+", "{A a, B b}", "{A a, B b}+", "(A a | B b)", "SEQ(A a, ~N n, B b)"]
    ),
]


def test_different_queries_have_different_texts() -> None:
    for one, other in combinations(DIFFERENT, 2):
        assert canonical(one) != canonical(other)


@pytest.mark.parametrize("query", DIFFERENT)
def test_the_canonical_text_has_no_places_in_it(query: Query) -> None:
    assert canonical(replace(query, text="something else")) == canonical(query)
    assert "span" not in canonical(query).lower()


@pytest.mark.parametrize("text", PATTERNS)
def test_the_text_of_a_pattern_reads_as_the_same_pattern(text: str) -> None:
    assert acep.parse(f"PATTERN {pattern_text(PATTERNS[text])}").pattern == PATTERNS[text]


def test_spellings_have_one_canonical_text() -> None:
    assert canonical(acep.parse(" ".join(QUERY_3.split()).replace("80%", "0.8").replace("and", "&&"))) == (
        canonical(acep.parse(QUERY_3))
    )


TREE = """
query, skip_till_next_match
  from, as T
    query, skip_till_any_match
      component a: A
      return x: a.x
  from, as `my type`
    query, skip_till_any_match
      component b: B
  sequence
    repeat 2 or more
      component t: T
    no n: ANY
    repeat any number
      choice
        component u: `my type`
        sequence
          component v: (T | `my type`)
          repeat 0 to 1
            component w: T
    set, in any order
      component x: T
      repeat 3
        component y: T
  tie [k]
  tie ["odd name"]
  where t[i].x > t[i-1].x
  where NOT (u.x = 1 OR v.x LIKE 'a%')
  within 90 min
  having count(t[]) > 2
  return n: t.LEN
  output earliest maximal
  errors 3/2
  weight t infinite
  weight u 2
"""


def test_tree() -> None:
    query = acep.parse(
        """
        FROM (PATTERN A a RETURN a.x AS x) AS T, (PATTERN B b) AS `my type`
        PATTERN SEQ(T+ t[]{2}, ~ANY n, (`my type` u | (T|'my type') v, T? w)*, {T x, T{3} y[]})
        WHERE skip_till_next_match() { [k, 'odd name'] AND t[i].x > t[i-1].x AND NOT (u.x = 1 OR v.x LIKE 'a%') }
        WITHIN 1.5 hours HAVING count(t[]) > 2 RETURN t.LEN AS n EARLIEST MAXIMAL
        """,
        errors=1.5,
        weights={"u": 2, "t": None},
    )
    assert "\n".join(tree_lines(query)) == TREE.strip()
    assert tree_lines(acep.regex("a+", within=5)) == [
        "query, skip_till_any_match",
        "  repeat 1 or more",
        "    component a: a",
        "  within 5",
    ]


# ---- random queries, from tree to text and back

NAMES = st.sampled_from(["x", "y", "odd name", 'say "so"', "LEN", "from", "ts", "größe", "`"])
ATTRIBUTES = st.one_of(
    st.builds(Attribute, st.just("a"), st.sampled_from([None, "i", "i-1", "i-12", "last", 1, 2]), NAMES),
    st.builds(Attribute, st.sampled_from(["b", "my var"]), st.just(None), NAMES),
)
WHOLE_ONLY = [name for name, entry in AGGREGATES.items() if entry.where == "matches"]
AGGREGATE_CALLS = st.builds(
    Aggregate, st.sampled_from(["avg", "sum", "count"]), st.just("a"), st.sampled_from(["all", "before"]), NAMES
)
WHOLES = st.builds(
    Aggregate,
    st.sampled_from(WHOLE_ONLY),
    st.just("a"),
    st.just("all"),
    NAMES,
)
NUMBERS = st.recursive(
    st.one_of(
        ATTRIBUTES,
        AGGREGATE_CALLS,
        st.builds(Length, st.just("a")),
        st.builds(Literal, st.integers(-(2**63), 2**63 - 1)),
        st.builds(Literal, st.floats(allow_nan=False, allow_infinity=False)),
    ),
    lambda inner: st.one_of(
        st.builds(Binary, st.sampled_from("+-*/%"), inner, inner),
        st.builds(Unary, st.just("-"), st.one_of(ATTRIBUTES, AGGREGATE_CALLS)),
        st.builds(Call, st.just("abs"), st.tuples(inner)),
        st.builds(Call, st.just("greatest"), st.tuples(inner, inner)),
        st.builds(Call, st.sampled_from(["cast integer", "cast float"]), st.tuples(inner)),
    ),
    max_leaves=6,
)
TEXTS = st.one_of(
    ATTRIBUTES, st.builds(Literal, st.text(max_size=8)), st.builds(Call, st.just("lower"), st.tuples(ATTRIBUTES))
)
CONDITIONS = st.recursive(
    st.one_of(
        st.builds(Binary, st.sampled_from(["=", "!=", "<", "<=", ">", ">="]), NUMBERS, NUMBERS),
        st.builds(Binary, st.sampled_from(["=", "<"]), TEXTS, TEXTS),
        st.builds(In, NUMBERS, st.lists(NUMBERS, min_size=1, max_size=3).map(tuple), st.booleans()),
        st.builds(Between, NUMBERS, NUMBERS, NUMBERS, st.booleans()),
        st.builds(Like, TEXTS, st.text(max_size=8), st.booleans()),
        st.builds(IsNull, NUMBERS, st.booleans()),
        st.builds(Binary, st.just(">"), ATTRIBUTES, st.builds(Duration, st.integers(-(10**18), 10**18).map(Fraction))),
        st.builds(Binary, st.just(">"), ATTRIBUTES, st.builds(Timestamp, st.integers(-(2**62), 2**62))),
    ),
    lambda inner: st.one_of(
        st.builds(Unary, st.just("not"), inner),
        st.builds(Call, st.just("case"), st.tuples(inner, inner, st.just(Literal(None)))),
        st.builds(Call, st.just("case"), st.tuples(inner, inner, inner, inner, inner)),
        st.builds(Binary, st.just("or"), inner, inner),
        st.builds(Binary, st.just("=" ), inner, inner),
    ),
    max_leaves=4,
)  # fmt: skip


@given(st.lists(CONDITIONS, max_size=3))
def test_random_conditions_are_read_as_they_are_written(conditions: list[Expr]) -> None:
    assume(all(variables_in(e) for e in conditions))
    pattern = Sequence((Repeat(Component("a", ("A",)), 1, None), Component("b", ("B",)), Component("my var", ())))
    query = Query("", pattern, where=tuple(conditions))
    again = acep.parse(canonical(query))
    assert canonical(again) == canonical(query)
    if not any(" OR " in expression_text(e) for e in conditions):  # a chain of ORs may be grouped in another way
        assert tuple(bare(e) for e in again.where) == query.where


@given(WHOLES)
def test_aggregates_of_complete_matches_are_read_as_they_are_written(whole: Expr) -> None:
    query = Query("", Repeat(Component("a", ("A",)), 1, None), having=Binary(">", whole, Literal(1)))
    again = acep.parse(canonical(query))
    assert again.having is not None
    assert bare(again.having) == query.having


TYPES = st.sampled_from([(), ("A",), ("A", "B"), ("my type",), ("where",)])
BOUNDS = st.sampled_from([(0, 1), (0, None), (1, None), (2, 2), (2, 5), (3, None), (0, 4)])


@st.composite
def patterns(draw: st.DrawFn) -> Node:
    """A pattern in its plain form: no sequence in a sequence, no choice in a choice, each variable once."""
    count = 0

    def component() -> Component:
        nonlocal count
        count += 1
        return Component(f"v{count}", draw(TYPES))

    def leaf() -> Component | Repeat:
        return Repeat(component(), *draw(BOUNDS)) if draw(st.booleans()) else component()

    def node(depth: int, without: str) -> Node:
        kinds = [k for k in ("leaf", "leaf", "sequence", "choice", "set", "group") if k != without]
        kind = draw(st.sampled_from(kinds)) if depth else "leaf"
        size = draw(st.integers(2, 3))
        match kind:
            case "sequence":
                items = [node(depth - 1, "sequence") for _ in range(size)]
                if draw(st.booleans()):
                    items.insert(1, Negation(component().var, draw(TYPES)))
                return Sequence(tuple(items))
            case "choice":
                return Choice(tuple(node(depth - 1, "choice") for _ in range(size)))
            case "set":
                return EventSet(tuple(leaf() for _ in range(size)))
            case "group":
                inner = draw(st.sampled_from(["sequence", "choice"]))
                part = node(depth - 1, "sequence")
                items = (part, node(depth - 1, inner)) if inner == "sequence" else (part,)
                whole = Sequence(items) if len(items) > 1 else part
                return whole if isinstance(whole, (Component, Repeat)) else Repeat(whole, *draw(BOUNDS))
            case _:
                return leaf()

    return node(3, "")


@given(patterns())
def test_random_patterns_are_read_as_they_are_written(pattern: Node) -> None:
    query = Query("", pattern, within=Within(Fraction(5), "ticks"))
    assert acep.parse(canonical(query)).pattern == pattern


# ---- names, units, times


@given(st.text(min_size=1), st.text(min_size=1), st.text(min_size=1))
def test_any_name_can_be_written(kind: str, var: str, attribute: str) -> None:
    query = acep.parse(f"PATTERN {name_text(kind)} {name_text(var)}")
    assert query.pattern == Component(var, (kind,))
    quoted = '"' + attribute.replace('"', '""') + '"'
    text = canonical(acep.parse(f"PATTERN {name_text(kind)} {name_text(var)} WHERE {name_text(var)}.{quoted} = 1"))
    assert canonical(acep.parse(text)) == text


@pytest.mark.parametrize(
    "word", ["all", "and", "Any", "NON", "non_overlap", "earliestmaximal", "seq", "where", "Skip_Till_Any_Match"]
)
def test_words_of_the_language_as_names(word: str) -> None:
    query = acep.parse(f"PATTERN SEQ(`{word}` `{word}`, B b) WHERE `{word}`.{word} = 1")
    assert canonical(acep.parse(canonical(query))) == canonical(query)


def test_the_grammar_knows_the_units_of_times() -> None:
    grammar = files("acep.pattern.text").joinpath("sase.lark").read_text(encoding="utf-8")
    (pattern,) = re.findall(r"^UNIT\.2: /(.*)\(\?!.*/$", grammar, re.MULTILINE)
    for name in [*UNITS, *(u + "s" for u in UNITS), "m", "mo", "y"]:
        assert (re.fullmatch(pattern, name) is not None) == (name in UNITS), name
    for name, ns in UNITS.items():
        window = acep.parse(f"PATTERN A a WITHIN 3 {name.upper() if name.isascii() else name}").within
        assert window is not None
        assert (window.amount, window.unit) == (3 * ns, "ns")


@given(st.fractions(min_value=0, max_value=10**15, max_denominator=10**6))
def test_durations_are_written_exactly(ns: Fraction) -> None:
    number, unit = duration_text(ns).split()
    if "/" not in number:
        assert exact_number(number) * UNITS[unit] == ns
    else:
        assert Fraction(number) == ns


@given(st.integers(-(2**63) + 1, 2**63 - 1))
def test_timestamps_are_written_exactly(ns: int) -> None:
    assert read_timestamp(timestamp_text(ns)) == ns


@given(st.lists(st.sampled_from(list(UNITS)), min_size=1, max_size=8), st.sampled_from(["", " "]), st.data())
def test_a_duration_of_several_units_is_their_sum(names: list[str], space: str, data: st.DataObject) -> None:
    units = sorted({UNITS[name]: name for name in names if name.isascii()}.items(), reverse=True)
    assume(units)
    numbers = [data.draw(st.integers(0, 99)) for _ in units]
    text = " ".join(f"{number}{space}{name}" for number, (_, name) in zip(numbers, units, strict=True))
    total = sum(number * ns for number, (ns, _) in zip(numbers, units, strict=True))
    query = acep.parse(f"PATTERN SEQ(A a, B b) WHERE b.x - a.x > {text.replace(' ', space)} WITHIN {text}")
    assert query.where[0].right.ns == total  # type: ignore[union-attr]
    assert query.within == Within(Fraction(total), "ns") == acep.regex("ab", within=text).within
    assert canonical(acep.parse(canonical(query))) == canonical(query)


def test_canonical_text_names_each_value_of_return() -> None:
    query = acep.parse('PATTERN A+ a[] RETURN a.price, count(a[]), a[1]."odd name"')
    end = 'RETURN a.price AS a_price, count(a[]) AS count_a, a[1]."odd name" AS a_1_odd_name'
    assert canonical(query).endswith(end)
    assert canonical(acep.parse(canonical(query))) == canonical(query)


@pytest.mark.parametrize("text", ["1 min 1 h", "1 h 2 h", "1 h 30", "1 h 5 EVENTS"])
def test_durations_of_several_units_that_make_no_sense(text: str) -> None:
    with pytest.raises(QueryError):
        acep.parse(f"PATTERN A a WITHIN {text}")
    with pytest.raises(QueryError):
        acep.regex("a", within=text)


@pytest.mark.parametrize(("amount", "unit"), [("0", "EVENTS"), ("1.5", "events"), ("1e300", "h"), ("9" * 401, None)])
def test_windows_that_make_no_sense(amount: str, unit: str | None) -> None:
    with pytest.raises(QueryError):
        read_window(amount, unit)


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_the_text_of_an_expression_is_stable(text: str) -> None:
    (first, *_) = acep.parse(f"PATTERN SEQ(A+ a[], B b) WHERE {text}").where
    once = expression_text(first)
    (again, *_) = acep.parse(f"PATTERN SEQ(A+ a[], B b) WHERE {once}").where
    assert expression_text(again) == once


@pytest.mark.parametrize("text", LETTERS)
def test_letter_expressions_are_stable(text: str) -> None:
    once = canonical(acep.regex(text)).removeprefix("LETTERS ")
    assert canonical(acep.regex(once)).removeprefix("LETTERS ") == once
