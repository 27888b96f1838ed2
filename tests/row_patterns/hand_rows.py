"""Cases by hand: rows and columns of the output, partitions, order, exclusions, empty matches, skips, logic."""

from __future__ import annotations

from tests.row_patterns import expressions as x
from tests.row_patterns import tree
from tests.row_patterns.expressions import Expression, Value
from tests.row_patterns.short_forms import (
    EMPTY,
    HandCase,
    agg,
    alt,
    col,
    compare,
    eq,
    exclude,
    first,
    last,
    measure,
    plus,
    prev,
    seq,
    star,
    table,
    text,
    times,
)
from tests.row_patterns.tree import Clause, Definition, OrderKey, Skip

__all__ = ["ROW_CASES"]

BY_I = (OrderKey("i"),)
NUMBER = measure(n=x.MatchNumber())
IS_A = (Definition("A", eq("s", text("a"))),)
ANY_A = (Definition("A", x.Literal(True)),)
RISES = (Definition("A", compare("v", ">", prev("v"))),)
PRICES = (50, 60, 49, 40, 35, 45, 45, 45, 43, 47, 52, 70, 60)
TICKS = (12, 17, 19, 21, 25, 12, 15, 20, 24, 25, 19, 15, 25, 25, 14, 12, 14, 24, 23, 22)
FALL_AND_RISE = (
    Definition("DOWN", compare("DOWN.v", "<", prev("DOWN.v"))),
    Definition("UP", compare("UP.v", ">", prev("UP.v"))),
)
B_FALLS_C_RISES = (
    Definition("B", compare("v", "<", prev("B.v"))),
    Definition("C", compare("v", ">", prev("C.v"))),
)
LETTERS = table("i s", (1, "a"), (2, "b"), (3, "a"), (4, "b"), (5, "c"))


def numbered(values: tuple[Value, ...]) -> tuple[tuple[str, ...], tuple[dict[str, Value], ...]]:
    """Return a table of ``i`` (1, 2, ..) and ``v``."""
    return ("i", "v"), tuple({"i": i, "v": value} for i, value in enumerate(values, 1))


def logic(name: str, condition: Expression, expected: str) -> HandCase:
    """Return a case of one condition over ``v`` 1, null and 3: true, false or unknown ("t", "f", "-") on each."""
    outcome = {"t": True, "f": False, "-": None}
    clause = Clause(plus("A"), ANY_A, measure(m=condition), order=BY_I, rows=tree.SHOW_EMPTY)
    rows = ((1, outcome[expected[0]], 1), (2, outcome[expected[1]], None), (3, outcome[expected[2]], 3))
    return HandCase(name, clause, numbered((1, None, 3)), rows)


V_SHAPE = Clause(
    seq("STRT", plus("DOWN"), plus("UP")),
    FALL_AND_RISE,
    measure(start=col("STRT.i"), bottom=last("DOWN.i"), end=last("UP.i")),
    order=BY_I,
    skip=Skip(tree.TO_LAST, "UP"),
)
EMPTIES = Clause(star("A"), RISES, (*NUMBER, *measure(c=x.Classifier(), k=agg("count(*)"))), order=BY_I)
UNMATCHED = Clause(
    seq("A", times("B", 2, 2)),
    (Definition("B", compare("v", "<", prev("v"))),),
    (*NUMBER, *measure(one=col(1))),
    order=BY_I,
    rows=tree.UNMATCHED,
    skip=Skip(tree.TO_NEXT),
)
PACKING = Clause(
    plus(alt("X", exclude("REST"))),
    (Definition("X", compare(agg("sum(X.v)"), "<=", 10)),),
    measure(n=agg("count(*)"), k=agg("count(X.*)")),
    order=BY_I,
    rows=tree.SHOW_EMPTY,
)
KEYS = table("v k i", (1, "p", 2), (2, None, 1), (3, "p", 1), (4, None, 2), (5, "q", 1))
TWO_KEYS = table("k i v", ("p", 1, 1), ("q", 1, 2), ("p", 2, 3))

ROW_CASES = [
    HandCase("the V shape", V_SHAPE, numbered(TICKS), ((5, 6, 10), (10, 12, 13), (14, 16, 18))),
    HandCase(
        "the V shape past its last row",
        Clause(V_SHAPE.pattern, FALL_AND_RISE, V_SHAPE.measures, order=BY_I),
        numbered(TICKS),
        ((5, 6, 10), (11, 12, 13), (14, 16, 18)),
    ),
    HandCase(
        "one row of each match: a column is that of its last row",
        Clause(plus("A"), IS_A, measure(i=col("i"), f=first("i"), n=agg("count(*)"))),
        table("i s", (1, "a"), (2, "a"), (3, "b"), (4, "a")),
        ((2, 1, 2), (4, 4, 1)),
    ),
    HandCase(
        "empty matches are numbered, and give a row",
        Clause(EMPTIES.pattern, RISES, EMPTIES.measures, order=BY_I, rows=tree.SHOW_EMPTY),
        numbered(PRICES[:6]),
        ((1, 1, None, 0, 50), (2, 2, "A", 1, 60), (3, 3, None, 0, 49), (4, 4, None, 0, 40), (5, 5, None, 0, 35),
         (6, 6, "A", 1, 45)),
    ),
    HandCase(
        "empty matches that are left out keep their numbers",
        Clause(EMPTIES.pattern, RISES, EMPTIES.measures, order=BY_I, rows=tree.OMIT_EMPTY),
        numbered(PRICES),
        ((2, 2, "A", 1, 60), (6, 6, "A", 1, 45), (10, 10, "A", 1, 47), (11, 10, "A", 2, 52), (12, 10, "A", 3, 70)),
    ),
    HandCase(
        "one row of an empty match",
        Clause(star("A"), IS_A, (*NUMBER, *measure(c=x.Classifier(), k=agg("count(*)"), s=agg("sum(i)")))),
        table("i s", (1, "b"), (2, "a"), (3, "a"), (4, "b")),
        ((1, None, 0, None), (2, "A", 2, 5), (3, None, 0, None)),
    ),
    HandCase(
        "measures of an empty match: constants stay, columns and navigations are null",
        Clause(alt(EMPTY, "A"), IS_A, measure(c=col(5), v=col("i"), p=prev("i"), f=first("A.i")), order=BY_I,
               rows=tree.SHOW_EMPTY),
        table("i s", (1, "a"), (2, "b")),
        ((1, 5, None, None, None, "a"), (2, 5, None, None, None, "b")),
    ),
    HandCase(
        "unmatched rows have null measures",
        UNMATCHED,
        numbered((100, 100, 90, 80, 70, 100)),
        ((1, None, None, 100), (2, 1, 1, 100), (3, 1, 1, 90), (4, 1, 1, 80), (3, 2, 1, 90), (4, 2, 1, 80),
         (5, 2, 1, 70), (6, None, None, 100)),
    ),
    HandCase(
        "a row at which an empty match starts is not unmatched",
        Clause(alt(seq("A", "A"), "^"), IS_A, NUMBER, order=BY_I,
               rows=tree.UNMATCHED),
        table("i s", (1, "b"), (2, "a"), (3, "a"), (4, "b")),
        ((1, 1, "b"), (2, 2, "a"), (3, 2, "a"), (4, None, "b")),
    ),
    HandCase(
        "a fall and a rise of prices",
        Clause(seq("A", plus("B"), plus("C")), B_FALLS_C_RISES,
               measure(a=col("A.v"), b=last("B.v"), c=last("C.v"), u=agg("avg(U.v)")), (), BY_I,
               subsets=(tree.Subset("U", ("A", "B", "C")),)),
        numbered(PRICES),
        ((60, 35, 45, 45.8), (45, 43, 70, 51.4)),
    ),
    HandCase(
        "FIRST and LAST of a variable that stands in three places",
        Clause(seq("A", "B", "A", "C", "A"), ANY_A,
               measure(f=first("A.v", 1, "FINAL"), l=last("A.v", 2, "FINAL"), m=last("A.v", 3, "FINAL")), (), BY_I),
        numbered((10, 20, 30, 40, 50)),
        ((30, 10, None),),
    ),
    HandCase("rows left out count", PACKING, numbered((6, 5, 3, 4, 1)), ((1, 1, 1, 6), (3, 3, 2, 3), (5, 5, 3, 1))),
    HandCase(
        "a match whose rows are all left out gives no row",
        Clause(exclude(plus("A")), IS_A, NUMBER, order=BY_I, rows=tree.SHOW_EMPTY),
        LETTERS,
        (),
    ),
    HandCase(
        "rows are left out where they are bound inside",
        Clause(plus(seq(exclude("A"), "B")), (*IS_A, Definition("B", eq("s", text("b")))), NUMBER, order=BY_I,
               rows=tree.OMIT_EMPTY),
        LETTERS,
        ((2, 1, "b"), (4, 1, "b")),
    ),
    HandCase(
        "one row of a match with rows left out",
        Clause(seq("A", exclude("B")), IS_A, measure(i=col("i"), n=agg("count(*)"))),
        LETTERS,
        ((2, 2), (4, 2)),
    ),
    HandCase(
        "a null key is a group, and partitions have numbers of their own",
        Clause(star("A"), ANY_A, (*NUMBER, *measure(s=agg("sum(v)"), f=first("v"))), ("k",), BY_I),
        KEYS,
        (("p", 1, 4, 3), (None, 1, 6, 2), ("q", 1, 5, 5)),
    ),
    HandCase(
        "columns: partition, order, measures, others",
        Clause(plus("A"), ANY_A, NUMBER, ("k",), BY_I, tree.SHOW_EMPTY),
        KEYS,
        (("p", 1, 1, 3), ("p", 2, 1, 1), (None, 1, 1, 2), (None, 2, 1, 4), ("q", 1, 1, 5)),
    ),
    HandCase(
        "PREV does not leave the partition",
        Clause(plus("A"), ANY_A, measure(p=prev("v")), ("k",), BY_I, tree.SHOW_EMPTY),
        TWO_KEYS,
        (("p", 1, None, 1), ("p", 2, 1, 3), ("q", 1, None, 2)),
    ),
    HandCase(
        "descending order",
        Clause(plus("A"), ANY_A, measure(n=agg("count(*)")), (), (OrderKey("i", True),), tree.SHOW_EMPTY),
        table("i", (1,), (3,), (2,)),
        ((3, 1), (2, 2), (1, 3)),
    ),
    HandCase(
        "ties stay as they come",
        Clause(plus("A"), ANY_A, measure(n=agg("count(*)")), (), BY_I, tree.SHOW_EMPTY),
        table("v i", (7, 2), (8, 1), (9, 2), (6, 1)),
        ((1, 1, 8), (1, 2, 6), (2, 3, 7), (2, 4, 9)),
    ),
    HandCase(
        "two keys, nulls first and last",
        Clause(plus("A"), ANY_A, measure(n=agg("count(*)")), (), (OrderKey("v", nulls_first=True),
               OrderKey("i", True, False)), tree.SHOW_EMPTY),
        table("i v", (1, 5), (None, None), (2, 5), (3, None), (None, 5)),
        ((None, 3, 1), (None, None, 2), (5, 2, 3), (5, 1, 4), (5, None, 5)),
    ),
    HandCase("no rows, no empty match", Clause(star("A"), ANY_A, NUMBER), table("i s"), ()),
    HandCase(
        "skip to the last row of a subset",
        Clause(seq("A", "B", "C"), (Definition("A", compare("i", ">=", 1)),), measure(a=col("A.i"), c=col("C.i")), (),
               BY_I, skip=Skip(tree.TO_LAST, "U"), subsets=(tree.Subset("U", ("A", "B")),)),
        LETTERS,
        ((1, 3), (2, 4), (3, 5)),
    ),
    HandCase(
        "merged ranges",
        Clause(seq(star("J"), "L"), (Definition("J", compare(x.Physical("NEXT", col("s")), "<=", agg("max(e)"))),),
               measure(s1=first("s"), e1=agg("max(e)"), n=agg("count(*)")), (), (OrderKey("s"), OrderKey("e"))),
        table("s e", (7, 9), (2, 5), (1, 3), (12, 13), (6, 7)),
        ((1, 5, 2), (6, 9, 2), (12, 13, 1)),
    ),
    logic("unknown OR true", compare(eq("v", 1), "OR", x.IsNull(col("v"))), "ttf"),
    logic("unknown AND false", compare(eq("v", 1), "AND", x.IsNull(col("v"), True)), "tff"),
    logic("NOT unknown", x.Not(eq("v", 1)), "f-t"),
    logic("NOT IN with a null", x.In(col("v"), (col(1), x.Literal(None)), True), "f--"),
    logic("BETWEEN with a null", x.Between(col("v"), col(2), x.Literal(None)), "f--"),
    logic("NOT BETWEEN", x.Between(col("v"), col(2), col(4), True), "t-f"),
    logic("CASE without ELSE", x.Case(((eq("v", 1), x.Literal(True)), (eq("v", 3), x.Literal(False)))), "t-f"),
    logic("COALESCE of a comparison", x.Coalesce((eq("v", 1), x.Literal(True))), "ttf"),
]  # fmt: skip
