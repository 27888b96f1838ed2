"""Cases by hand: navigation, RUNNING and FINAL, aggregates, CLASSIFIER, and conditions on what was bound before."""

from __future__ import annotations

from collections.abc import Mapping

from tests.row_patterns import expressions as x
from tests.row_patterns import tree
from tests.row_patterns.expressions import Expression, Value
from tests.row_patterns.short_forms import (
    HandCase,
    agg,
    alt,
    col,
    compare,
    eq,
    first,
    last,
    measure,
    next_,
    opt,
    permute,
    plus,
    prev,
    seq,
    star,
    table,
    text,
    times,
)

__all__ = ["VALUE_CASES"]

TRUE = x.Literal(True)
LABEL = measure(c=x.Classifier())
COUNT_U = agg("count(U.v)", "FINAL")
SUM_OF_DISTINCT = agg("sum(DISTINCT A.v)")
U_IS_A_B = (tree.Subset("U", ("A", "B")),)


def values(
    name: str,
    pattern: tree.Pattern | str,
    conditions: Mapping[str, Expression],
    measures: tuple[tree.Measure, ...],
    numbers: tuple[Value, ...],
    expected: list[tuple[Value, ...]],
    subsets: tuple[tree.Subset, ...] = (),
) -> HandCase:
    """Return a case over rows ``i`` (1, 2, ..) and ``v``; what is expected is ``i``, the measures, and ``v``."""
    root = tree.Variable(pattern) if isinstance(pattern, str) else pattern
    definitions = tuple(tree.Definition(*definition) for definition in conditions.items())
    order = (tree.OrderKey("i"),)
    clause = tree.Clause(root, definitions, measures, order=order, rows=tree.SHOW_EMPTY, subsets=subsets)
    rows = table("i v", *enumerate(numbers, 1))
    return HandCase(name, clause, rows, tuple((*row, numbers[int(str(row[0])) - 1]) for row in expected))


def labels(
    name: str,
    pattern: tree.Pattern | str,
    conditions: Mapping[str, Expression],
    numbers: tuple[Value, ...],
    expected: str,
    subsets: tuple[tree.Subset, ...] = (),
) -> HandCase:
    """Return a case whose matches follow each other from the first row on; the labels are expected."""
    return values(name, pattern, conditions, LABEL, numbers, list(enumerate(expected, 1)), subsets)


def ages(condition: Expression) -> dict[str, Expression]:
    return {"A": TRUE, "B": condition}


TENS = (10, 20, 30, 40, 50)
FINAL_LAST = last("A.v", 0, "FINAL")
TAIL = next_(last(x.Classifier("U"), 2, "RUNNING"), 3)
BY_VALUE = {name: eq("v", i) for i, name in enumerate("ABCDEF", 1)}

VALUE_CASES = [
    values(
        "FIRST and LAST with RUNNING see nothing after the row",
        plus("A"),
        {"A": TRUE},
        measure(f=first("v", 1), l=last("v", 1)),
        TENS,
        [(1, None, None), (2, 20, 10), (3, 20, 20), (4, 20, 30), (5, 20, 40)],
    ),
    values(
        "FINAL sees the match to its end",
        plus("A"),
        {"A": TRUE},
        measure(f=first("v", 1, "FINAL"), l=last("v", 1, "FINAL"), m=last("A.v", None, "FINAL"), r=last("v")),
        (10, 20, 30),
        [(1, 20, 20, 30, 10), (2, 20, 20, 30, 20), (3, 20, 20, 30, 30)],
    ),
    values(
        "FIRST and LAST keep nulls",
        plus("A"),
        {"A": TRUE},
        measure(f=first("A.v"), l=last("A.v"), m=first("A.v", 1)),
        (None, 10, None),
        [(1, None, None, None), (2, None, 10, 10), (3, None, None, 10)],
    ),
    values(
        "an offset beyond the rows is null",
        plus("A"),
        {"A": TRUE},
        measure(f=first("v", 7), l=last("v", 2)),
        (1, 2, 3),
        [(1, None, None), (2, None, None), (3, None, 1)],
    ),
    values(
        "a column of a variable is that of its last row so far",
        seq("A", plus("B")),
        {"A": eq("v", 0), "B": compare("v", ">", 0)},
        measure(a=col("A.v"), b=col("B.v"), u=col("v")),
        (0, 5, 6),
        [(1, 0, None, 0), (2, 0, 5, 5), (3, 0, 6, 6)],
    ),
    values(
        "a navigation without its row is null whatever it reads",
        seq(opt("A"), "B"),
        {"A": compare("v", "<", 0), "B": TRUE},
        measure(c=x.Coalesce((first("A.v"), col(7))), f=first(x.Coalesce((col("A.v"), col(7))))),
        (1,),
        [(1, 7, None)],
    ),
    values(
        "a navigation reads an expression where it arrives",
        plus("A"),
        {"A": TRUE},
        measure(f=first(x.Case(((x.IsNull(col("A.v")), col(99)),))), l=last(compare("A.v", "*", "A.v"), 1)),
        (None, 3, 4),
        [(1, 99, None), (2, 99, None), (3, 99, 9)],
    ),
    values(
        "PREV and NEXT leave the match, not the partition",
        seq("A", "B"),
        {"B": eq("v", prev("v"))},
        measure(p2=prev("B.v", 2), p4=prev("B.v", 4), n1=next_("B.v"), n2=next_("B.v", 2), p0=prev("v", 0)),
        (10, 20, 30, 30, 40),
        [(3, None, None, None, None, 30), (4, 20, None, 40, None, 30)],
    ),
    values(
        "PREV and NEXT of FIRST and LAST",
        plus("A"),
        {"A": TRUE},
        measure(n=next_(first("v"), 2), p=prev(first("v"), 10), b=prev(last("v", 1), 1), f=prev(FINAL_LAST)),
        (10, 20, 30, 40),
        [(1, 30, None, None, 30), (2, 30, None, None, 30), (3, 30, None, 10, 30), (4, 30, None, 20, 30)],
    ),
    values(
        "an expression in a nested navigation is read where that ends",
        seq(plus("A"), "B"),
        {"A": compare("v", "<", 9), "B": eq("v", 9)},
        measure(m=prev(last(compare("A.v", "+", "A.i"), 1), 1)),
        (1, 2, 3, 9),
        [(1, None), (2, None), (3, 2), (4, 2)],
    ),
    labels("PREV of the own variable is the row before", seq("A", "B"), ages(eq(prev("B.v"), 1)), (1, 5), "AB"),
    labels("PREV of a variable that comes later is null", seq("A", "B", "C"), ages(eq(prev("C.v"), 1)), (1, 5, 1), ""),
    labels("LAST of the own variable is the row", seq("A", "B"), ages(compare("v", ">", last("B.v"))), (1, 2), ""),
    labels("LAST of another variable", seq("A", plus("B")), ages(compare("v", ">", last("A.v"))), (3, 4, 5, 2), "ABB"),
    labels("NEXT looks past the match", plus("A"), {"A": compare(next_("v"), ">", "v")}, (1, 2, 3, 1), "AA"),
    labels("a variable without rows is unknown", seq("A", "B"), {"A": compare("B.v", ">", 0)}, (1, 2), ""),
    labels("FIRST is fixed", plus("A"), {"A": compare("v", "<", compare(first("v"), "+", 2))}, (1, 2), "AA"),
    labels("the average counts the row", plus("A"), {"A": compare("v", ">=", agg("avg(v)"))}, (10, 16, 13, 9), "AAAA"),
    values(
        "matches by a running average",
        plus("A"),
        {"A": compare("v", ">=", agg("avg(A.v)"))},
        measure(n=x.MatchNumber()),
        (10, 16, 13, 9),
        [(1, 1), (2, 1), (3, 1), (4, 2)],
    ),
    values(
        "a running count ends a match",
        plus("A"),
        {"A": compare(agg("count(*)"), "<=", 2)},
        measure(n=x.MatchNumber()),
        (1, 2, 3, 4),
        [(1, 1), (2, 1), (3, 2), (4, 2)],
    ),
    labels(
        "a row that is given back leaves the minimum",
        seq(times("A", 1, 2), plus("B")),
        ages(compare(agg("min(B.v)"), ">", 0)),
        (8, 11, -2),
        "AB",
    ),
    labels("an average of another variable", star(alt("A", "B")), {"A": eq(agg("avg(B.v)"), 5)}, (4, 6, 0), "BBA"),
    labels("an average of its own", star(alt("A", "B")), {"A": eq(agg("avg(A.v)"), 5)}, (4, 6, 0, 5), "BBBA"),
    labels(
        "two sums in balance",
        star(alt("A", "B")),
        {"A": compare(compare(agg("sum(A.v)"), "-", "A.v"), "<=", agg("sum(B.v)"))},
        (4, 6, 10, 1, 1, 1, 10, 5, 1),
        "BABAAAABA",
    ),
    labels("back to one alternative", seq(star(alt("A", "B")), "X"), {"X": eq("v", "A.v")}, (1, 1), "AX"),
    labels("back to the other alternative", seq(star(alt("A", "B")), "X"), {"X": eq("v", "B.v")}, (1, 1), "BX"),
    labels(
        "navigations in a sum",
        seq(star(alt("A", "B")), "X"),
        {"X": eq("v", compare(compare(prev(last("A.v"), 3), "+", first("A.v")), "+", prev(last("B.v"), 2)))},
        (1, 2, 3, 4, 5, 6),
        "BAAABX",
    ),
    labels(
        "labels of a subset in a condition",
        seq(star(alt("A", "B")), "X", "$"),
        {
            "X": compare(
                compare(eq(prev(x.Classifier("U"), 1), text("A")), "AND", eq(last(x.Classifier(), 3), text("B"))),
                "AND",
                eq(first(x.Classifier("U")), text("B")),
            )
        },
        (1, 2, 3, 4, 5),
        "BBAAX",
        U_IS_A_B,
    ),
    labels(
        "the condition of a permutation reads what came before",
        permute("A", "B"),
        {"A": compare("v", ">", agg("max(B.v)"))},
        (1, 2),
        "BA",
    ),
    values(
        "CLASSIFIER of a variable and of a subset",
        seq("A", plus("B"), "C"),
        {"A": eq("v", 1), "B": eq("v", 2)},
        measure(a=x.Classifier("A"), u=x.Classifier("U"), b=x.Classifier("B"), f=first(x.Classifier(), 1)),
        (1, 2, 2, 3),
        [(1, "A", "A", None, None), (2, "A", "B", "B", "B"), (3, "A", "B", "B", "B"), (4, "A", "B", "B", "B")],
        U_IS_A_B,
    ),
    values(
        "labels after the row",
        seq(*"ABCDEF"),
        BY_VALUE,
        measure(t=TAIL, n=next_(x.Classifier()), p=prev(x.Classifier())),
        (1, 2, 3, 4, 5, 6),
        [(1, None, "B", None), (2, None, "C", "A"), (3, "D", "D", "B"), (4, "D", "E", "C"), (5, "D", "F", "D"),
         (6, "D", None, "E")],
        (tree.Subset("U", ("A", "B", "C")),),
    ),
    values(
        "counts",
        seq("A", "B", "C", "D"),
        {"A": TRUE},
        measure(n=agg("count(*)"), c=agg("count(C.*)"), u=agg("count(U.*)"), a=agg("count(v)"), f=COUNT_U),
        (1, None, 3, 4),
        [(1, 1, 0, 0, 1, 1), (2, 2, 0, 1, 1, 1), (3, 3, 1, 1, 2, 1), (4, 4, 1, 2, 3, 1)],
        (tree.Subset("U", ("B", "D")),),
    ),
    values(
        "aggregates over nothing, and over nulls",
        seq("A", opt("B")),
        {"A": TRUE, "B": TRUE},
        measure(s=agg("sum(B.v)"), a=agg("avg(v)"), m=agg("max(A.v)"), n=agg("min(v)", "FINAL"), c=agg("count(B.v)")),
        (None, 4),
        [(1, None, None, None, 4, 0), (2, 4, 4.0, None, 4, 1)],
    ),
    values(
        "aggregates of expressions",
        plus("A"),
        {"A": TRUE},
        measure(s=x.Aggregate("sum", compare("A.v", "*", "A.i")), d=agg("count(DISTINCT v)"), t=SUM_OF_DISTINCT),
        (2, 2, 3),
        [(1, 2, 1, 2), (2, 6, 1, 2), (3, 15, 2, 5)],
    ),
]  # fmt: skip
