"""SASE+ text to trees: patterns, clauses, expressions, spans."""

from __future__ import annotations

import dataclasses
from fractions import Fraction
from typing import cast

import pytest

import acep
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
from acep.pattern.printing import canonical
from acep.pattern.tree import (
    Choice,
    Component,
    EventSet,
    Negation,
    Node,
    Output,
    Query,
    Repeat,
    Sequence,
    Source,
    Strategy,
    Within,
)

HOUR = Fraction(3_600_000_000_000)

# Figure 1 of the 2008 paper, as printed there.
QUERY_1 = """
PATTERN SEQ(Shelf a, ~(Register b), Exit c)
WHERE skip_till_next_match(a, b, c) {
        a.tag_id = b.tag_id
      and
        a.tag_id = c.tag_id
        /* equivalently, [tag_id] */ }
WITHIN  12 hours
"""
QUERY_2 = """
PATTERN SEQ(Alert a, Shipment+ b[])
WHERE   skip_till_any_match(a, b[]) {
          a.type = 'contaminated'
      and
          b[1].from = a.site
      and
          b[i].from = b[i-1].to }
WITHIN  3 hours
"""
QUERY_3 = """
PATTERN SEQ(Stock+ a[], Stock b)
WHERE skip_till_next_match(a[], b) {
        [symbol]
      and
        a[1].volume > 1000
      and
        a[i].price > avg(a[..i-1].price)
      and
        b.volume < 80%*a[a.LEN].volume }
WITHIN  1 hour
"""


def c(var: str, *types: str) -> Component:
    return Component(var, types)


def plus(item: Node, low: int = 1, high: int | None = None) -> Repeat:
    return Repeat(item, low, high)


def seq(*items: Node) -> Sequence:
    return Sequence(items)


def at(var: str, name: str, index: int | str | None = None) -> Attribute:
    return Attribute(var, index, name)  # type: ignore[arg-type]


def bare(expr: Expr) -> Expr:
    """The expression without its spans."""

    def strip(value: object) -> object:
        if isinstance(value, tuple):
            return tuple(strip(v) for v in value)
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            kept = {f.name: strip(getattr(value, f.name)) for f in dataclasses.fields(value) if f.name != "span"}
            return type(value)(**kept)
        return value

    return cast("Expr", strip(expr))


def where(condition: str, pattern: str = "SEQ(A+ a[], B b)") -> tuple[Expr, ...]:
    return tuple(bare(e) for e in acep.parse(f"PATTERN {pattern} WHERE {condition}").where)


# ---- Figure 1


def test_query_1_of_figure_1() -> None:
    query = acep.parse(QUERY_1)
    assert query.pattern == seq(c("a", "Shelf"), Negation("b", ("Register",)), c("c", "Exit"))
    assert query.strategy is Strategy.SKIP_TILL_NEXT_MATCH
    assert [bare(e) for e in query.where] == [
        Binary("=", at("a", "tag_id"), at("b", "tag_id")),
        Binary("=", at("a", "tag_id"), at("c", "tag_id")),
    ]
    assert query.within == Within(12 * HOUR, "ns")
    assert query.text == QUERY_1


def test_query_2_of_figure_1() -> None:
    query = acep.parse(QUERY_2)
    assert query.pattern == seq(c("a", "Alert"), plus(c("b", "Shipment")))
    assert query.strategy is Strategy.SKIP_TILL_ANY_MATCH
    assert [bare(e) for e in query.where] == [
        Binary("=", at("a", "type"), Literal("contaminated")),
        Binary("=", at("b", "from", 1), at("a", "site")),
        Binary("=", at("b", "from", "i"), at("b", "to", "i-1")),
    ]
    assert query.within == Within(3 * HOUR, "ns")


def test_query_3_of_figure_1() -> None:
    query = acep.parse(QUERY_3)
    assert query.pattern == seq(plus(c("a", "Stock")), c("b", "Stock"))
    assert query.strategy is Strategy.SKIP_TILL_NEXT_MATCH
    assert query.ties == ("symbol",)
    assert [bare(e) for e in query.where] == [
        Binary(">", at("a", "volume", 1), Literal(1000)),
        Binary(">", at("a", "price", "i"), Aggregate("avg", "a", "before", "price")),
        Binary("<", at("b", "volume"), Binary("*", Literal(0.8), at("a", "volume", "last"))),
    ]
    assert query.within == Within(HOUR, "ns")


def test_the_pattern_of_the_2012_paper() -> None:
    query = acep.parse(
        "PATTERN {c, p+}, {b} WHERE c.L = 'C' AND p.L = 'P' AND b.L = 'B' AND c.PID = p.PID AND p.PID = b.PID "
        "AND prev(p.V) < p.V WITHIN 15 d OUTPUT EARLIEST MAXIMAL"
    )
    assert query.pattern == seq(EventSet((c("c"), plus(c("p")))), c("b"))
    assert bare(query.where[-1]) == Binary("<", at("p", "V", "i-1"), at("p", "V"))
    assert query.output is Output.EARLIEST_MAXIMAL


@pytest.mark.parametrize(
    "text",
    [
        # the workload of the 2008 paper, section 6
        """PATTERN(STOCK+ a[], STOCK b) where skip_till_next_match {
        [symbol] ∧ a[1].price %500==0 ∧ a[i].price > a[i-1].price ∧ b.volume <150} within 500""",
        """PATTERN SEQ(B+ a[]{3}, B b) WHERE [symbol] AND a[1].volume>5000 AND a[i].close>avg(a[..i-1].close)
        AND b.volume<0.2*a[a.LEN].volume WITHIN 30 min""",
        "PATTERN SEQ(KILL k, SUBMIT s, FINISH f) WHERE [logical_name] AND s.job!=k.job AND f.job=s.job WITHIN 30 min",
        "PATTERN SEQ(P+ p[]{4}) WHERE [key] AND p[i].acc>15 AND p[i].ts-p[i-1].ts>=250ms WITHIN 2 s",
        "PATTERN SEQ(U u, ~E e, B b) WHERE [symbol] WITHIN 1 d",
    ],
)
def test_queries_of_real_streams(text: str) -> None:
    acep.parse(text)


# ---- patterns

PATTERNS: dict[str, Node] = {
    "A a": c("a", "A"),
    "SEQ(A a)": c("a", "A"),
    "seq(A a, B b)": seq(c("a", "A"), c("b", "B")),
    "SEQ (A a,B b)": seq(c("a", "A"), c("b", "B")),
    "SEQ(A, B)": seq(c("A", "A"), c("B", "B")),
    "SEQ(A+ a[], B b)": seq(plus(c("a", "A")), c("b", "B")),
    "SEQ(A+ a, B b)": seq(plus(c("a", "A")), c("b", "B")),
    "A a[]+": plus(c("a", "A")),
    "A a+": plus(c("a", "A")),
    "A* a[]": plus(c("a", "A"), 0),
    "A? a": plus(c("a", "A"), 0, 1),
    "A{3} a[]": plus(c("a", "A"), 3, 3),
    "A{3,} a[]": plus(c("a", "A"), 3),
    "A{3,5} a[]": plus(c("a", "A"), 3, 5),
    "A{,5} a[]": plus(c("a", "A"), 0, 5),
    "A{2+} a[]": plus(c("a", "A"), 2),
    "A a[]{2,}": plus(c("a", "A"), 2),
    "A { 2 , 4 } a [ ]": plus(c("a", "A"), 2, 4),
    "A{1} a": c("a", "A"),
    "A{1,1} a": c("a", "A"),
    "A{10000} a[]": plus(c("a", "A"), 10_000, 10_000),
    "A+ a[]{3}": plus(c("a", "A"), 3),
    "A+ a[]{3,}": plus(c("a", "A"), 3),
    "A+ a[]{3,4}": plus(c("a", "A"), 3, 4),
    "A+ a[]{,4}": plus(c("a", "A"), 1, 4),
    "A+": plus(c("A", "A")),
    "ANY x": c("x"),
    "any+ x[]": plus(c("x")),
    "SEQ(ANY, A)": seq(c("ANY"), c("A", "A")),
    "(A|B) x": c("x", "A", "B"),
    "((A|B)|A) x": c("x", "A", "B"),
    "(A|ANY) x": c("x"),
    "(A|B)+ x[]": plus(c("x", "A", "B")),
    "('ER Triage'|B){2} x[]": plus(c("x", "ER Triage", "B"), 2, 2),
    "SEQ('ER Sepsis Triage' t, \"Release A\" r, `Admission NC` n)": seq(
        c("t", "ER Sepsis Triage"), c("r", "Release A"), c("n", "Admission NC")
    ),
    "'it''s' x": c("x", "it's"),
    "'ER Triage'": c("ER Triage", "ER Triage"),
    "A `my var`": c("my var", "A"),
    "Größe größe": c("größe", "Größe"),
    "(A a)+": plus(c("a", "A")),
    "((A a))+": plus(c("a", "A")),
    "(A a){1}": c("a", "A"),
    "(A a, B b)+": plus(seq(c("a", "A"), c("b", "B"))),
    "(A a, B b)": seq(c("a", "A"), c("b", "B")),
    "SEQ(A a, B b){2,3}": plus(seq(c("a", "A"), c("b", "B")), 2, 3),
    "SEQ(A a, SEQ(B b, C c), (D d))": seq(c("a", "A"), c("b", "B"), c("c", "C"), c("d", "D")),
    "(A a | B b)": Choice((c("a", "A"), c("b", "B"))),
    "A a | B b": Choice((c("a", "A"), c("b", "B"))),
    "SEQ(A a, B b) | C c": Choice((seq(c("a", "A"), c("b", "B")), c("c", "C"))),
    "(A|B)": Choice((c("A", "A"), c("B", "B"))),
    "(A a | (B b | C c))": Choice((c("a", "A"), c("b", "B"), c("c", "C"))),
    "(A a | B a)": Choice((c("a", "A"), c("a", "B"))),
    "(A a, B b | SEQ(C c, D d))": Choice((seq(c("a", "A"), c("b", "B")), seq(c("c", "C"), c("d", "D")))),
    "((A a | B b)+, C c)*": plus(seq(plus(Choice((c("a", "A"), c("b", "B")))), c("c", "C")), 0),
    "{C c, P+ p[]}": EventSet((c("c", "C"), plus(c("p", "P")))),
    "{C c, (P p){2}}": EventSet((c("c", "C"), plus(c("p", "P"), 2, 2))),
    "{C, P+}": EventSet((c("C", "C"), plus(c("P", "P")))),
    "{C c}": c("c", "C"),
    "{A a, B b}{2}": plus(EventSet((c("a", "A"), c("b", "B"))), 2, 2),
    "{A a, B b}, {C c, D d}": seq(EventSet((c("a", "A"), c("b", "B"))), EventSet((c("c", "C"), c("d", "D")))),
    "SEQ(X x, {A a, B b}, Y y)": seq(c("x", "X"), EventSet((c("a", "A"), c("b", "B"))), c("y", "Y")),
    "SEQ(A a, ~B b, C c)": seq(c("a", "A"), Negation("b", ("B",)), c("c", "C")),
    "SEQ(A a, ~(B b), C c)": seq(c("a", "A"), Negation("b", ("B",)), c("c", "C")),
    "SEQ(A a, !B b, C c)": seq(c("a", "A"), Negation("b", ("B",)), c("c", "C")),
    "SEQ(A a, NOT B b, C c)": seq(c("a", "A"), Negation("b", ("B",)), c("c", "C")),
    "SEQ(A a, ~B, C c)": seq(c("a", "A"), Negation("B", ("B",)), c("c", "C")),
    "SEQ(A a, ~(B|D) b, C c)": seq(c("a", "A"), Negation("b", ("B", "D")), c("c", "C")),
    "SEQ(A a, not ANY b, C c)": seq(c("a", "A"), Negation("b", ()), c("c", "C")),
    # a repetition of a repetition is one where no count in between is left out
    "(A+ a[])+": plus(c("a", "A")),
    "(A* a[])+": plus(c("a", "A"), 0),
    "(A+ a[])*": plus(c("a", "A"), 0),
    "(A? a)+": plus(c("a", "A"), 0),
    "(A? a)?": plus(c("a", "A"), 0, 1),
    "(A{2} a[]){3}": plus(c("a", "A"), 6, 6),
    "(A+ a[]){3}": plus(c("a", "A"), 3),
    "(A{2} a[])?": plus(plus(c("a", "A"), 2, 2), 0, 1),
    "(A{2} a[])+": plus(plus(c("a", "A"), 2, 2)),
    "(A{2,} a[])?": plus(plus(c("a", "A"), 2), 0, 1),
    "(A{2,3} a[]){2}": plus(plus(c("a", "A"), 2, 3), 2, 2),
}


@pytest.mark.parametrize("text", PATTERNS)
def test_pattern(text: str) -> None:
    assert acep.parse(f"PATTERN {text}").pattern == PATTERNS[text]


def test_a_repetition_that_the_predicates_speak_of_is_not_simplified() -> None:
    # In a group, a[i-1] speaks of one iteration.
    query = acep.parse("PATTERN (A+ a[])+ WHERE a[i].x > a[i-1].x")
    assert query.pattern == plus(plus(c("a", "A")))


def test_a_bare_name_in_a_set_is_a_type_unless_the_predicates_speak_of_it() -> None:
    query = acep.parse("PATTERN {c, P+}, {b} WHERE c.x = 1")
    assert query.pattern == seq(EventSet((c("c"), plus(c("P", "P")))), c("b", "b"))
    assert acep.parse("PATTERN SEQ(c, b) WHERE c.x = 1").pattern == seq(c("c", "c"), c("b", "b"))
    for clause in ("HAVING count(c[]) = 1", "RETURN c.x AS x", "WHERE c.x > 1"):
        assert acep.parse(f"PATTERN {{c, b}} {clause}").pattern == EventSet((c("c"), c("b", "b")))


# ---- clauses


@pytest.mark.parametrize(
    "text",
    [
        "PATTERN SEQ(A a, B b) WHERE skip_till_next_match(a, b) { [k] AND a.x = 1 } WITHIN 5 OUTPUT NON OVERLAP",
        "pattern seq(A a, B b) where SKIP_TILL_NEXT_MATCH(a, b) { [k] and a.x == 1 } within 5 output non_overlap",
        "PATTERN SEQ(A a, B b) WITHIN 5 WHERE skip_till_next_match(a,b) {[k] && a.x=1} NON-OVERLAP;",
        "PATTERN SEQ(A a, B b) OUTPUT NON OVERLAP WITHIN 5 WHERE skip_till_next_match() AND [k] AND a.x = 1",
        "PATTERN SEQ(A a, B b) WHERE skip_till_next_match AND [k] AND a.x = 1 WITHIN 5.0 OUTPUT NonOverlap",
        "PATTERN SEQ(A a, B b) WHERE skip_till_next_match(a) { [k] } AND a.x = 1 WITHIN 5 -- to the end\nNON OVERLAP",
        "PATTERN SEQ(A a, B b) // one line\nWHERE skip_till_next_match(b) {([k] AND (a.x = 1))} WITHIN 5 NON OVERLAP ;",
    ],
)
def test_spellings_of_one_query(text: str) -> None:
    query = acep.parse(text)
    assert canonical(query) == (
        "PATTERN SEQ(A a, B b) WHERE skip_till_next_match() {[k] AND a.x = 1} WITHIN 5 OUTPUT NON OVERLAP"
    )


def test_without_clauses() -> None:
    assert acep.parse("PATTERN A a") == Query(text="PATTERN A a", pattern=c("a", "A"))


@pytest.mark.parametrize("strategy", list(Strategy))
def test_strategies(strategy: Strategy) -> None:
    query = acep.parse(f"PATTERN SEQ(A+ a[], B b) WHERE {strategy.value}(a[], b)")
    assert (query.strategy, query.where) == (strategy, ())
    assert acep.parse(f"PATTERN SEQ(A+ a[], B b) WHERE {strategy.value}(a[], b) {{ }}").strategy is strategy


@pytest.mark.parametrize(
    ("text", "window"),
    [
        ("500", Within(Fraction(500), "ticks")),
        ("2.5", Within(Fraction(5, 2), "ticks")),
        ("500 EVENTS", Within(Fraction(500), "events")),
        ("1 event", Within(Fraction(1), "events")),
        ("250ms", Within(Fraction(250_000_000), "ns")),
        ("1.5 h", Within(HOUR * 3 / 2, "ns")),
        ("0.1 s", Within(Fraction(100_000_000), "ns")),
        ("2 Weeks", Within(24 * 14 * HOUR, "ns")),
        ("30 min", Within(HOUR / 2, "ns")),
        ("1e3 us", Within(Fraction(1_000_000), "ns")),
        ("7 µs", Within(Fraction(7_000), "ns")),
        ("3 /* long */ days", Within(72 * HOUR, "ns")),
    ],
)
def test_within(text: str, window: Within) -> None:
    assert acep.parse(f"PATTERN A a WITHIN {text}").within == window


@pytest.mark.parametrize(
    ("text", "output"),
    [
        ("", Output.ALL),
        ("OUTPUT ALL", Output.ALL),
        ("ALL", Output.ALL),
        ("EARLIEST MAXIMAL", Output.EARLIEST_MAXIMAL),
        ("output earliest_maximal", Output.EARLIEST_MAXIMAL),
    ],
)
def test_output(text: str, output: Output) -> None:
    assert acep.parse(f"PATTERN A a {text}").output is output


def test_having_and_return() -> None:
    query = acep.parse(
        "PATTERN A+ a[] HAVING count(a[]) > 2 RETURN avg(a[].x) AS mean, a[1].x - a.x AS 'first less last'"
    )
    assert query.having is not None
    assert bare(query.having) == Binary(">", Aggregate("count", "a", "all", None), Literal(2))
    assert [(n, bare(e)) for n, e in query.returns] == [
        ("mean", Aggregate("avg", "a", "all", "x")),
        ("first less last", Binary("-", at("a", "x", 1), at("a", "x"))),
    ]


def test_composition() -> None:
    text = (
        "FROM (PATTERN SEQ(A a, B b) WITHIN 5 RETURN a.x AS x) AS Rise, (PATTERN C c) AS Fall "
        "PATTERN SEQ(Rise r, Fall f) WHERE r.x > f.error"
    )
    query = acep.parse(text, errors=1)
    rise = Query(
        text=text,
        pattern=seq(c("a", "A"), c("b", "B")),
        within=Within(Fraction(5), "ticks"),
        returns=query.sources[0].query.returns,
    )
    assert query.sources == (Source(rise, "Rise"), Source(Query(text=text, pattern=c("c", "C")), "Fall"))
    assert query.errors == 1
    span = query.sources[0].query.returns[0][1].span
    assert span is not None
    assert text[span.start : span.end] == "a.x"


def test_errors_and_weights() -> None:
    query = acep.parse("PATTERN SEQ(A a, B b, C c)", errors=0.1, weights={"b": float("inf"), "a": 1.5, "c": None})
    assert query.errors == Fraction(1, 10)
    assert query.weights == (("a", Fraction(3, 2)), ("b", None), ("c", None))


# ---- expressions

A = at("a", "x")
B = at("b", "y")
ONE, TWO, THREE = Literal(1), Literal(2), Literal(3)

EXPRESSIONS: dict[str, Expr] = {
    "a.x = 1": Binary("=", A, ONE),
    "a.x == 1": Binary("=", A, ONE),
    "a.x != 1": Binary("!=", A, ONE),
    "a.x <> 1": Binary("!=", A, ONE),
    "a.x<=1": Binary("<=", A, ONE),
    "a.x ≤ 1": Binary("<=", A, ONE),
    "a.x≥1": Binary(">=", A, ONE),
    "a.x ≠ 1": Binary("!=", A, ONE),
    "¬a.x ∧ b.y": Unary("not", A),
    "a.x \N{LOGICAL OR} b.y": Binary("or", A, B),
    "1 + 2 * 3 > a.x": Binary(">", Binary("+", ONE, Binary("*", TWO, THREE)), A),
    "1 - 2 - 3 > a.x": Binary(">", Binary("-", Binary("-", ONE, TWO), THREE), A),
    "(1 + 2) * 3 > a.x": Binary(">", Binary("*", Binary("+", ONE, TWO), THREE), A),
    "a.x % 500 = 1": Binary("=", Binary("%", A, Literal(500)), ONE),
    "a.x %500 = 1": Binary("=", Binary("%", A, Literal(500)), ONE),
    "500 % a.x = 1": Binary("=", Binary("%", Literal(500), A), ONE),
    "500%(a.x) = 1": Binary("=", Binary("%", Literal(500), A), ONE),
    "500%a.x = 1": Binary("=", Binary("%", Literal(500), A), ONE),
    "a.x > 80%": Binary(">", A, Literal(0.8)),
    "a.x > 80% * b.y": Binary(">", A, Binary("*", Literal(0.8), B)),
    "a.x > 80%*b.y": Binary(">", A, Binary("*", Literal(0.8), B)),
    "a.x > 80%-b.y": Binary(">", A, Binary("-", Literal(0.8), B)),
    "a.x BETWEEN 10% AND 12.5%": Between(A, Literal(0.1), Literal(0.125)),
    "a.x > 80% AND b.y > 1": Binary(">", A, Literal(0.8)),
    "a.x > -1": Binary(">", A, Literal(-1)),
    "a.x > - 1.5": Binary(">", A, Literal(-1.5)),
    "a.x > +1": Binary(">", A, ONE),
    "a.x - -1 > 1": Binary(">", Binary("-", A, Literal(-1)), ONE),
    "-a.x > 1": Binary(">", Unary("-", A), ONE),
    "a.x > -9223372036854775808": Binary(">", A, Literal(-(2**63))),
    "a.x > 1e3": Binary(">", A, Literal(1000.0)),
    "a.x > .5": Binary(">", A, Literal(0.5)),
    "a.x > 1.0": Binary(">", A, Literal(1.0)),
    "a.x = 'it''s'": Binary("=", A, Literal("it's")),
    'a.x = "say ""so"""': Binary("=", A, Literal('say "so"')),
    "a.x = ''": Binary("=", A, Literal("")),
    "a.x = '/* no comment */ -- nor here'": Binary("=", A, Literal("/* no comment */ -- nor here")),
    "a.x = TRUE": Binary("=", A, Literal(True)),
    "a.x": A,
    "NOT a.x": Unary("not", A),
    "!a.x": Unary("not", A),
    "!(a.x = 1)": Unary("not", Binary("=", A, ONE)),
    "NOT a.x = 1": Unary("not", Binary("=", A, ONE)),
    "a.x = 1 OR b.y = 2": Binary("or", Binary("=", A, ONE), Binary("=", B, TWO)),
    "a.x = 1 || b.y = 2": Binary("or", Binary("=", A, ONE), Binary("=", B, TWO)),
    "(a.x = 1 AND b.y = 2) OR b.y = 3": Binary(
        "or", Binary("and", Binary("=", A, ONE), Binary("=", B, TWO)), Binary("=", B, THREE)
    ),
    "a.x = 1 AND b.y = 2 OR b.y = 3": Binary(
        "or", Binary("and", Binary("=", A, ONE), Binary("=", B, TWO)), Binary("=", B, THREE)
    ),
    "a.x OR a.x OR a.x OR a.x": Binary("or", Binary("or", A, A), Binary("or", A, A)),
    "a.x IN (1, 2)": In(A, (ONE, TWO)),
    "a.x NOT IN (1, b.y)": In(A, (ONE, B), negated=True),
    "a.x between 1 and b.y + 2": Between(A, ONE, Binary("+", B, TWO)),
    "a.x NOT BETWEEN 1 AND 2": Between(A, ONE, TWO, negated=True),
    "a.x LIKE 'a%_\\%'": Like(A, "a%_\\%"),
    "a.x NOT LIKE 'a'": Like(A, "a", negated=True),
    "a.x IS NULL": IsNull(A),
    "a.x + 1 IS NOT NULL": IsNull(Binary("+", A, ONE), negated=True),
    "a.x > 250ms": Binary(">", A, Duration(Fraction(250_000_000))),
    "a.ts - b.ts > 1.5 hours": Binary(">", Binary("-", at("a", "ts"), at("b", "ts")), Duration(HOUR * 3 / 2)),
    "a.x > -5 min": Binary(">", A, Duration(-HOUR / 12)),
    "a.ts > TIMESTAMP '1970-01-02 10:00'": Binary(">", at("a", "ts"), Timestamp(34 * int(HOUR))),
    "a.ts > timestamp '1970-01-01T00:00:00.25Z'": Binary(">", at("a", "ts"), Timestamp(250_000_000)),
    "a.ts > TIMESTAMP '1970-01-01 01:00:00+01:00'": Binary(">", at("a", "ts"), Timestamp(0)),
    "a.ts > TIMESTAMP '1969-12-31'": Binary(">", at("a", "ts"), Timestamp(-24 * int(HOUR))),
    "a.'odd name' = 1": Binary("=", at("a", "odd name"), ONE),
    'a."odd name" = 1': Binary("=", at("a", "odd name"), ONE),
    "a.`odd name` = 1": Binary("=", at("a", "odd name"), ONE),
    "a.from = a.where": Binary("=", at("a", "from"), at("a", "where")),
    "a.LEN > 3": Binary(">", Length("a"), THREE),
    'a."LEN" > 3': Binary(">", at("a", "LEN"), THREE),
    "a.len > 3": Binary(">", at("a", "len"), THREE),
    "a[1].x = a[2].x": Binary("=", at("a", "x", 1), at("a", "x", 2)),
    "a[i].x > a[i-1].x": Binary(">", at("a", "x", "i"), at("a", "x", "i-1")),
    "a [ i - 1 ] . x > 1": Binary(">", at("a", "x", "i-1"), ONE),
    "a[a.LEN].x > 1": Binary(">", at("a", "x", "last"), ONE),
    "a[a.Len].x > 1": Binary(">", at("a", "x", "last"), ONE),
    "prev(a.x) < a.x": Binary("<", at("a", "x", "i-1"), A),
    "prev(a[i].x) < a.x": Binary("<", at("a", "x", "i-1"), A),
    "prev(a.x, 12) < a.x": Binary("<", at("a", "x", "i-12"), A),
    "a[i-2].x < a.x": Binary("<", at("a", "x", "i-2"), A),
    "b.y > avg(a[..i-1].x)": Binary(">", B, Aggregate("avg", "a", "before", "x")),
    "count(a[..i-1]) < 5": Binary("<", Aggregate("count", "a", "before", None), Literal(5)),
    "count(a[]) < 5": Binary("<", Aggregate("count", "a", "all", None), Literal(5)),
    "count(a[].x) < 5": Binary("<", Aggregate("count", "a", "all", "x"), Literal(5)),
    "COUNT(a) < 5": Binary("<", Aggregate("count", "a", "all", None), Literal(5)),
    "sum(a[..a.LEN].x) < 5": Binary("<", Aggregate("sum", "a", "all", "x"), Literal(5)),
    "min(a[].x) < max(a.x)": Binary("<", Aggregate("min", "a", "all", "x"), Aggregate("max", "a", "all", "x")),
    "first(a[].x) < last(a[..i-1].x)": Binary(
        "<", Aggregate("first", "a", "all", "x"), Aggregate("last", "a", "before", "x")
    ),
    "mean(a[].x) < 5": Binary("<", Aggregate("avg", "a", "all", "x"), Literal(5)),
    "min(a.x, 1) = 1": Binary("=", Call("least", (A, ONE)), ONE),
    "max(a.x, b.y, 1) = 1": Binary("=", Call("greatest", (A, B, ONE)), ONE),
    "ABS(a.x) > 1": Binary(">", Call("abs", (A,)), ONE),
    "pow(a.x, 2) + length(substr(b.y, 1, 2)) > 1": Binary(
        ">",
        Binary("+", Call("power", (A, TWO)), Call("length", (Call("substring", (B, ONE, TWO)),))),
        ONE,
    ),
    "coalesce(a.x, NULL, 1) = 1": Binary("=", Call("coalesce", (A, Literal(None), ONE)), ONE),
}


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_expression(text: str) -> None:
    assert where(text)[0] == EXPRESSIONS[text]


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_the_text_of_an_expression_reads_as_the_same_expression(text: str) -> None:
    query = acep.parse(f"PATTERN SEQ(A+ a[], B b) WHERE {text}")
    again = acep.parse(canonical(query))
    assert [bare(e) for e in again.where] == [bare(e) for e in query.where]


def test_ties_and_conjuncts_are_split_at_top_level_ands() -> None:
    query = acep.parse("PATTERN SEQ(A a, B b) WHERE ([k] AND a.x = 1) AND (a.y = 2 AND ['two words', k, `z`])")
    assert query.ties == ("k", "two words", "z")
    assert [bare(e) for e in query.where] == [Binary("=", at("a", "x"), ONE), Binary("=", at("a", "y"), TWO)]


def test_words_of_the_language_are_names_after_a_dot_and_in_brackets() -> None:
    query = acep.parse("PATTERN SEQ(A a, B b) WHERE [from, type, order] AND a.within = b.pattern")
    assert query.ties == ("from", "type", "order")


def test_spans_point_into_the_text() -> None:
    text = 'PATTERN SEQ(A+ a[], B b)\nWHERE [k] AND (a[i].price > 2 * avg(a[..i-1].price)) AND b."x y" IN (1, a.LEN)'
    first, second = acep.parse(text).where

    def shown(expr: Expr) -> str:
        assert expr.span is not None
        return text[expr.span.start : expr.span.end]

    assert isinstance(first, Binary)
    assert isinstance(first.right, Binary)
    assert shown(first.left) == "a[i].price"
    assert shown(first.right) == "2 * avg(a[..i-1].price)"
    assert shown(first.right.right) == "avg(a[..i-1].price)"
    assert shown(first) == "a[i].price > 2 * avg(a[..i-1].price)"
    assert isinstance(second, In)
    assert shown(second.operand) == 'b."x y"'
    assert shown(second.values[1]) == "a.LEN"


def test_a_long_chain_of_ors_is_no_deep_tree() -> None:
    query = acep.parse("PATTERN A a WHERE " + " OR ".join(f"a.x = {i}" for i in range(2000)))
    assert len(query.where) == 1
    hash(query)
    assert canonical(query).count("OR") == 1999


def test_a_negative_number_keeps_its_digits() -> None:
    digits = "1234567890.123456789"
    (found,) = acep.parse(f"PATTERN A a WHERE a.x > -{digits}").where
    assert found.right.exact == -Fraction(digits)  # type: ignore[union-attr]
