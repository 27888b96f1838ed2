"""Patterns of Flink CEP, by the row or task of the page about it, and the queries that are to find the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.flink import ANY, MANY, STRICT, Condition, Event, Step, always, both, kind

A, B, C, CD = kind("A"), kind("B"), kind("C"), kind("C", "D")
PC, NEXT = "partition_contiguity", "skip_till_next_match"
PAST, TO_NEXT = "OUTPUT SHORTEST NON OVERLAP", "OUTPUT SHORTEST AFTER MATCH SKIP TO NEXT EVENT"
TO_FIRST, TO_LAST = "OUTPUT SHORTEST AFTER MATCH SKIP TO FIRST", "OUTPUT SHORTEST AFTER MATCH SKIP TO LAST"
SAME_X = "SEQ(A a, ~B n, B b) WHERE [k] AND n.x = a.x AND b.x = a.x WITHIN 9"
A_LOOP, A_ANY_B = "SEQ(A a, (~B n, B b)+) WHERE [k] WITHIN 9", "SEQ(A a, B b) WHERE [k] WITHIN 9"
LOOP_THEN_C = "SEQ(A a, (~B n, B b)+, ~ANY m, C c) WHERE [k] WITHIN 9"
BEFORE_B = "SEQ((A|B) a, (~B n, B b)+, ~ANY m, C c) WHERE [k] WITHIN 9"
UNTIL_LOOP = "(~(B|D) n, B b2)*"
UNTIL = f"~B o, B b, {UNTIL_LOOP}"
UNTIL_THEN_C = f"SEQ(A a, {UNTIL}, ~ANY m, C c) WHERE [k] WITHIN 9"


def same(name: str) -> Condition:
    """Have the x of the last event of a step."""
    return lambda event, context: bool(event["x"] == context(name)[-1]["x"])


def many(_: Event, context: Callable[[str], list[Event]]) -> bool:
    """Stand behind two different x of the loop."""
    return len({one["x"] for one in context("b")}) > 1


def more(event: Event, context: Callable[[str], list[Event]]) -> bool:
    """Stand behind more different x than its own x."""
    return bool(len({one["x"] for one in context("b")}) > event["x"])


def grows(event: Event, context: Callable[[str], list[Event]]) -> bool:
    """Be more than the mean of the payments before."""
    before = [one["n"] for one in context("p")]
    return not before or bool(event["n"] > sum(before) / len(before))


@dataclass(frozen=True)
class Case:
    """A row of the page: what its second cell shows, a query that has this, and the pattern in Flink.

    Variables b and b2 are of the step b. The variable o is no part of the match. A case with ``differs`` is not the
    same on some stream; the row says so.
    """

    row: str
    shown: str
    query: str
    steps: Sequence[Step]
    how: dict[str, Any] = field(default_factory=dict)
    differs: bool = False


a = Step("a", A)
b, c = Step("b", B), Step("c", C)
LOOP, UNTIL_D = Step("b", B, high=MANY), Step("b", B, high=MANY, until=kind("D"))
BC = Step("a", kind("A", "B"))
CASES = [
    Case("`keyBy", "", "SEQ(A a, B b) WHERE [k]", [a, Step("b", B, ANY)]),
    Case(
        '`begin("a")', "ANY a", "SEQ(ANY a, ~B n, B b) WHERE [k] AND a.x > 1", [Step("a", lambda e, _: e["x"] > 1), b]
    ),
    Case("`.subtype", "", "A a", [a]),
    Case(
        '`.next("b")`',
        "~ANY n, B b",
        "SEQ(A a, ~ANY n, B b) WHERE [k] AND b.x = a.x",
        [a, Step("b", both(B, same("a")), STRICT)],
    ),
    Case(
        '`.next("b")`',
        PC,
        f"SEQ(A a, B b) WHERE {PC}(a, b) {{ [k] AND NOT b.x != a.x }}",
        [a, Step("b", both(B, same("a")), STRICT)],
    ),
    Case(
        '`.next("b")`',
        PC,
        f"SEQ(A a, B b) WHERE {PC}(a, b) {{ [k] AND b.x = a.x }}",
        [a, Step("b", both(B, same("a")), STRICT)],
    ),
    Case('`.followedBy("b")`', "~B n, B b", "SEQ(A a, ~B n, B b, ~C m, C c) WHERE [k]", [a, b, c]),
    Case(
        '`.followedBy("b")`',
        "~B n, B b",
        "SEQ(A a, ~B n, B b) WHERE [k] AND n.x = a.x AND b.x = a.x",
        [a, Step("b", both(B, same("a")))],
    ),
    Case(
        '`.followedBy("b")`',
        NEXT,
        f"SEQ(A a, B{{2}} b[], C c) WHERE {NEXT} {{ [k] AND c.x = a.x }}",
        [a, Step("b", B, low=2, high=2), Step("c", both(C, same("a")))],
    ),
    Case(
        '`.followedBy("b")`',
        NEXT,
        f"SEQ(A a, B+ b[], C c) WHERE {NEXT} {{ [k] }}",
        [a, Step("b", B, low=1, high=MANY), c],
        differs=True,
    ),
    Case(
        '`.followedByAny("b")`',
        "SEQ(A a, B b)",
        "SEQ(A a, B b) WHERE [k] AND b.x > a.x",
        [a, Step("b", lambda e, of: e["type"] == "B" and e["x"] > of("a")[0]["x"], ANY)],
    ),
    Case(
        '`.notNext("b")',
        "~ANY n, (C c | ANY o, ~C m, C c)",
        "SEQ(A a, ~ANY n, (C c | ANY o, ~C m, C c)) WHERE [k] AND o.type NOT IN ('B', 'C')",
        [a, Step("c", C, not_next=B)],
    ),
    Case(
        '`.notFollowedBy("b").f',
        "~B b, ~C n, C c",
        "SEQ(A a, ~B b, ~C n, C c) WHERE [k]",
        [a, Step("c", C, not_followed=B)],
    ),
    Case(
        '`.notFollowedBy("b").within', "~B b", "SEQ(A a, ~B b) WHERE [k] WITHIN 5", [a], {"within": 6, "not_at_end": B}
    ),
    Case(
        "`.oneOrMore()`", "(~B n, B b)+", "SEQ(A a, (~B n, B b)+, ~C m, C c) WHERE [k]", [a, Step("b", B, high=MANY), c]
    ),
    Case("`.oneOrMore()`", "(~B n, B b)+", "SEQ(A a, (~B n, B b)+) WHERE [k]", [a, Step("b", B, high=MANY)]),
    Case(
        "`.oneOrMore()`",
        "(~B n, B b){2,4}",
        "SEQ(A a, (~B n, B b){2,4}, ~(C|D) m, (C|D) c) WHERE [k]",
        [a, Step("b", B, low=2, high=4), Step("c", CD)],
    ),
    Case("`.oneOrMore()`", "(~B n, B b)?", "SEQ(A a, (~B n, B b)?, ~C m, C c) WHERE [k]", [a, Step("b", B, low=0), c]),
    Case(
        "`.oneOrMore()`",
        "",
        "SEQ(A a, (~B n, B b)*, ~C m, C c) WHERE [k]",
        [a, Step("b", B, low=0, high=MANY), c],
    ),
    Case(
        "`.oneOrMore()`",
        "B b, (~B n, B b2)*",
        "SEQ(B b, (~B n, B b2)*, ~C m, C c) WHERE [k]",
        [Step("b", B, high=MANY), c],
    ),
    Case(
        "`.oneOrMore()`",
        "B b, (~B n, B b2)*",
        "SEQ(A a, B b, (~B n, B b2)*, ~C m, C c) WHERE [k]",
        [a, Step("b", B, ANY, high=MANY), c],
    ),
    Case(
        "`.timesOrMore(2)",
        "B b, (~ANY n, B b2)+",
        "SEQ(B b, (~ANY n, B b2)+, ~C m, C c) WHERE [k]",
        [Step("b", B, low=2, high=MANY, inner=STRICT), c],
    ),
    Case(
        "`.timesOrMore(2)",
        "~B o, B b, (~ANY n, B b2)+",
        "SEQ(A a, ~B o, B b, (~ANY n, B b2)+, ~C m, C c) WHERE [k]",
        [a, Step("b", B, low=2, high=MANY, inner=STRICT), c],
    ),
    Case(
        "`.timesOrMore(2)",
        "B{2,} b[]",
        f"B{{2,}} b[] WHERE {PC} {{ [k] }}",
        [Step("b", B, low=2, high=MANY, inner=STRICT)],
    ),
    Case(
        "`.allowComb",
        "~B n, B b, B* b2[]",
        "SEQ(A a, ~B n, B b, B* b2[], ~C m, C c) WHERE [k]",
        [a, Step("b", B, high=MANY, inner=ANY), c],
    ),
    Case(
        "`.greedy()`",
        "(~B n, B b)+, ~(B|C) m, C c",
        "SEQ(A a, (~B n, B b)+, ~(B|C) m, C c) WHERE [k]",
        [a, Step("b", B, high=MANY, greedy=True), c],
    ),
    Case(
        "`.greedy()`",
        "~(B|C) m, C c",
        "SEQ(B b, (~B n, B b2)*, ~(B|C) m, C c) WHERE [k]",
        [Step("b", B, high=MANY, greedy=True), c],
    ),
    Case(
        "`.until",
        UNTIL,
        f"SEQ(A a, {UNTIL}, ~C m, C c) WHERE [k]",
        [a, Step("b", B, high=MANY, until=kind("D")), c],
    ),
    Case(
        "`.until",
        UNTIL,
        f"SEQ(A a, {UNTIL}) WHERE [k]",
        [a, Step("b", B, high=MANY, until=kind("D"))],
    ),
    Case(
        "`.until",
        UNTIL_LOOP,
        f"SEQ(B b, {UNTIL_LOOP}) WHERE [k]",
        [Step("b", B, high=MANY, until=kind("D"))],
    ),
    Case(
        "`.until",
        UNTIL_LOOP,
        f"SEQ(A a, B b, {UNTIL_LOOP}) WHERE [k]",
        [a, Step("b", B, ANY, high=MANY, until=kind("D"))],
    ),
    Case(
        "`.until",
        UNTIL_LOOP,
        f"SEQ(A a, (~B o, B b, {UNTIL_LOOP})?, ~C m, C c) WHERE [k]",
        [a, Step("b", B, low=0, high=MANY, until=kind("D")), c],
    ),
    Case(
        "`.until",
        "",
        "SEQ(A a, ~B o, B b, (~(B|D) n, B b2)+) WHERE [k]",
        [a, Step("b", B, low=2, high=MANY, until=kind("D"))],
    ),
    Case(
        "`.until",
        "b.x != 2 AND b2.x != 2",
        "SEQ(A a, ~B o, B b, (~B n, B b2)*, ~C m, C c) WHERE [k] AND b.x != 2 AND b2.x != 2",
        [a, Step("b", B, high=MANY, until=lambda e, _: e["type"] == "B" and e["x"] == 2), c],
    ),
    Case(
        "`.until",
        "(~(B|D) n, B b)+",
        "SEQ(A a, (~(B|D) n, B b)+) WHERE [k]",
        [a, Step("b", B, high=MANY, until=kind("D"))],
        differs=True,
    ),
    Case(
        "`.greedy()`",
        "",
        "SEQ(A a, (~(B|C) n, (B|C) b)+, ~(B|C) m, C c) WHERE [k]",
        [a, Step("b", kind("B", "C"), high=MANY, greedy=True), Step("c", kind("C", "D"))],
        differs=True,
    ),
    Case(
        "`.greedy()`",
        "~(B|C) m, C c",
        "SEQ(A a, (~B n, B b){2,4}, ~(B|C) m, C c) WHERE [k]",
        [a, Step("b", B, low=2, high=4, greedy=True), c],
    ),
    Case("`.or(", "~(B|C) n, (B|C) b", "SEQ(A a, ~(B|C) n, (B|C) b) WHERE [k]", [a, Step("b", kind("B", "C"))]),
    Case(
        "an `Iter",
        "HAVING count(DISTINCT b[].",
        "SEQ(A a, (~B n, B b)+, ~C m, C c) WHERE [k] HAVING count(DISTINCT b[].x) > 1",
        [a, Step("b", B, high=MANY), Step("c", both(C, many))],
    ),
    Case(
        "an `Iter",
        "",
        "SEQ(A a, (~B n, B b)+, ~C m, C c) WHERE [k] HAVING count(DISTINCT b[].x) > c.x",
        [a, Step("b", B, high=MANY), Step("c", both(C, more))],
        differs=True,
    ),
    Case("`.within", "WITHIN", "SEQ(A a, ~B n, B b, ~C m, C c) WHERE [k] WITHIN 6", [a, b, c], {"within": 7}),
    Case(
        "`.within",
        "WITHIN",
        "SEQ(A a, ~B n, B b, ~C m, C c) WHERE [k] WITHIN 7",
        [a, b, c],
        {"within": 7},
        differs=True,
    ),
    Case(
        "time between",
        "b.ts - a.ts <",
        "SEQ(A a, ~B n, B b, ~C m, C c) WHERE [k] AND b.ts - a.ts < 5 AND c.ts - b.ts < 5",
        [a, b, c],
        {"pace": 5},
    ),
    Case("`noSkip", "", "SEQ(A a, ~B n, B b) WHERE [k]", [a, b]),
    *(
        Case(row, shown, f"{query} {output}", steps, {"within": 10, "skip": skip}, differs)
        for row, shown, query, output, steps, skip, differs in [
            ("`skipPast", PAST, "SEQ(A a, ~B n, B b, ~C m, C c) WHERE [k] WITHIN 9", PAST, [a, b, c], "past", False),
            ("`skipPast", PAST, SAME_X, PAST, [a, Step("b", both(B, same("a")))], "past", False),
            ("`skipPast", "", SAME_X, "OUTPUT NON OVERLAP", [a, Step("b", both(B, same("a")))], "past", True),
            ("`skipPast", PAST, A_LOOP, PAST, [a, LOOP], "past", False),
            ("`skipPast", PAST, LOOP_THEN_C, PAST, [a, LOOP, Step("c", C, STRICT)], "past", False),
            ("`skipPast", PAST, UNTIL_THEN_C, PAST, [a, UNTIL_D, Step("c", C, STRICT)], "past", False),
            (
                "`skipToNext",
                TO_NEXT,
                A_ANY_B,
                TO_NEXT,
                [a, Step("b", B, ANY)],
                "next",
                False,
            ),
            ("`skipToNext", TO_NEXT, A_LOOP, TO_NEXT, [a, LOOP], "next", False),
            ("`skipToNext", TO_NEXT, LOOP_THEN_C, TO_NEXT, [a, LOOP, Step("c", C, STRICT)], "next", False),
            ("`skipToFirst", TO_FIRST, LOOP_THEN_C, f"{TO_FIRST} b", [a, LOOP, Step("c", C, STRICT)], "first b", False),
            ("`skipToFirst", TO_FIRST, BEFORE_B, f"{TO_FIRST} b", [BC, LOOP, Step("c", C, STRICT)], "first b", False),
            ("`skipToFirst", TO_LAST, BEFORE_B, f"{TO_LAST} b", [BC, LOOP, Step("c", C, STRICT)], "last b", False),
        ]
    ),
    Case("`TimedOut", "~B b", "SEQ(A a, ~B b) WHERE [k] WITHIN 5", [a], {"within": 6, "not_at_end": B}),
]


# By task of the page and query of the task.
PAY, LOGIN = kind("pay"), kind("login")
TASKS: dict[tuple[int, int], tuple[Sequence[Step], dict[str, Any]]] = {
    (1, 0): ([Step("f", kind("fail"), low=3, high=3, inner=STRICT)], {}),
    (1, 1): ([Step("f", kind("fail"), low=2, high=2, inner=STRICT)], {}),
    (2, 0): ([Step("f", kind("fail"), low=3, high=3)], {"within": 10}),
    (3, 0): ([Step("p", PAY), Step("q", PAY, ANY)], {"within": 60}),
    (4, 0): ([Step("l", LOGIN)], {"within": 10, "not_at_end": PAY}),
    (5, 0): ([Step("p", both(PAY, grows), low=3, high=MANY)], {"within": 60}),
    (6, 0): ([Step("l", LOGIN), Step("p", PAY, high=MANY, until=kind("logout"))], {}),
    (6, 1): (
        [
            Step("l", LOGIN),
            Step("p", PAY, high=MANY, greedy=True, until=kind("logout")),
            Step("e", kind("logout")),
        ],
        {},
    ),
    (7, 0): ([Step("l", LOGIN), Step("p", PAY)], {"within": 10}),
    (7, 1): ([Step("l", LOGIN)], {"within": 10, "not_at_end": PAY}),
    (8, 0): ([Step("p", PAY), Step("q", PAY)], {"within": 60, "skip": "past"}),
}


# Results that Flink's own tests and its documentation expect: the steps, the types of the events, and the
# places that the matches bind. U is an event of the loop that ends it, such as an `a` whose price is that of `until`.
AU, U = kind("A", "U"), kind("U")
s = Step("s", kind("S"))
until = Step("b", AU, high=MANY, until=U)
PUBLISHED: list[tuple[str, Sequence[Step], str, str]] = [
    # The documentation on contiguity and on loops.
    ("strict", [a, Step("b", B, STRICT)], "AXB", ""),
    ("relaxed", [a, Step("b", B)], "AXBB", "02"),
    ("any", [a, Step("b", B, ANY)], "AXBB", "02 03"),
    ("strict loop", [a, Step("b", B, ANY, high=MANY, inner=STRICT), c], "ABXBXBC", "016 036 056"),
    ("relaxed loop", [a, Step("b", B, ANY, high=MANY), c], "ABXBXBC", "016 0136 01356 036 0356 056"),
    ("loop of any", [a, Step("b", B, ANY, high=MANY, inner=ANY), c], "ABXBXBC", "016 0136 0156 01356 036 0356 056"),
    ("consecutive", [a, Step("b", B, high=MANY, inner=STRICT), c], "AXBBBXBC", "027 0237 02347"),
    ("not consecutive", [a, Step("b", B, high=MANY), c], "AXBBBXBC", "027 0237 02347 023467"),
    (
        "combinations",
        [a, Step("b", B, high=MANY, inner=ANY), c],
        "AXBBBXBC",
        "027 0237 0247 0267 02347 02367 02467 023467",
    ),
    ("optional", [a, Step("b", B, low=0), c], "ABC", "012 02"),
    # `(a+ until b)` on a1 c a2 b a3.
    ("until, documented", [Step("a", A, high=MANY, until=B)], "ACABA", "02 0 2 4"),
    # UntilConditionITCase
    ("OneOrMore", [s, until, Step("e", U)], "SAAUA", "0123 013"),
    (
        "OneOrMoreCombinations",
        [s, Step("b", AU, high=MANY, inner=ANY, until=U), Step("e", U)],
        "SAAAUA",
        "01234 0124 0134 014",
    ),
    (
        "OneOrMoreConsecutive",
        [s, Step("b", AU, high=MANY, inner=STRICT, until=U), Step("e", U)],
        "SAAUA",
        "0123 013",
    ),
    ("ZeroOrMore", [s, Step("b", AU, low=0, high=MANY, until=U), Step("e", U)], "SAAUA", "0123 013 03"),
    (
        "ZeroOrMoreCombinations",
        [s, Step("b", AU, low=0, high=MANY, inner=ANY, until=U), Step("e", U)],
        "SAAAUA",
        "01234 0124 0134 014 04",
    ),
    (
        "ZeroOrMoreConsecutive",
        [s, Step("b", AU, low=0, high=MANY, inner=STRICT, until=U), Step("e", U)],
        "SAAUA",
        "0123 013 03",
    ),
    ("FollowedByAnyOneOrMore", [s, Step("b", AU, ANY, high=MANY, until=U)], "SAAUA", "012 01 02 04"),
    ("FollowedByAnyZeroOrMore", [s, Step("b", AU, ANY, low=0, high=MANY, until=U)], "SAAUA", "012 01 02 04 0"),
    ("EmptyWhere", [s, Step("b", always, high=MANY, until=U)], "SAADUA", "0123 012 01"),
    (
        "IterativeUntil",
        [s, Step("b", always, high=MANY, until=lambda _, of: len(of("b")) == 3)],
        "SAADAA",
        "0123 012 01",
    ),
    # GreedyITCase
    ("GreedyZeroOrMore", [s, Step("b", A, low=0, high=MANY, greedy=True), Step("e", kind("D"))], "SAAAD", "01234"),
    ("GreedyInBetween", [s, Step("b", A, low=0, high=MANY, greedy=True), Step("e", kind("D"))], "SXAXAXAD", "02467"),
    ("GreedyDummiesBefore", [s, Step("b", A, low=0, high=MANY, greedy=True), Step("e", kind("D"))], "SXD", "02"),
    (
        "GreedyBeforeOptional",
        [s, Step("b", A, low=0, high=MANY, greedy=True), Step("d", kind("D"), low=0), Step("e", kind("E"))],
        "SAADE",
        "0124 01234",
    ),
    (
        "GreedyUntilZeroOrMore",
        [s, Step("b", AU, low=0, high=MANY, greedy=True, until=U), Step("e", kind("D"))],
        "SAAAUD",
        "01235",
    ),
    (
        "GreedyUntilZeroOrMoreBefore",
        [s, Step("b", AU, low=0, high=MANY, greedy=True, until=U), Step("e", kind("D"))],
        "SUAAAD",
        "05",
    ),
    ("GreedyOneOrMoreBefore", [s, Step("b", A, high=MANY, greedy=True), Step("e", kind("D"))], "SXD", ""),
    (
        "GreedyUntilOneOrMore",
        [s, Step("b", AU, high=MANY, greedy=True, until=U), Step("e", kind("D"))],
        "SAAAUD",
        "01235",
    ),
    (
        "GreedyUntilOneOrMoreBefore",
        [s, Step("b", AU, high=MANY, greedy=True, until=U), Step("e", kind("D"))],
        "SUAAAD",
        "",
    ),
    ("EndWithZeroOrMoreGreedy", [s, Step("b", A, low=0, high=MANY, greedy=True)], "SAAXA", "0 01 012 0124"),
    (
        "EndWithConsecutiveGreedy",
        [s, Step("b", A, low=0, high=MANY, inner=STRICT, greedy=True)],
        "SAAXA",
        "0 01 012",
    ),
    ("EndWithGreedyTimesRange", [s, Step("b", A, low=2, high=5, greedy=True)], "SAAAAX", "012 0123 01234"),
    ("GreedyTimesRange", [s, Step("b", A, low=2, high=5, greedy=True), Step("e", kind("D"))], "SAAAAD", "012345"),
    # NotPatternITCase
    ("NotNext", [a, Step("c", C, ANY, not_next=B), Step("e", kind("D"))], "ACBCD", "014 034"),
    ("NotNextNoMatches", [a, Step("c", C, not_next=B), Step("e", kind("D"))], "ABCCD", ""),
    ("NotFollowedBy", [a, Step("c", C, ANY, not_followed=B), Step("e", kind("D"))], "ACBCD", "014"),
    ("TimesWithNotFollowedBy", [a, Step("b", B, ANY, 2, 2), Step("e", kind("D"), not_followed=C)], "ABCBD", ""),
    ("TimesWithNotFollowedByAfter", [a, Step("b", B, ANY, 2, 2), Step("e", kind("D"), not_followed=C)], "ADEBBCD", ""),
]
# AfterMatchSkipITCase, and `a b+`, `b+ c` and `(a|b|c) (b|c) c+ d` of the documentation, without a window.
ABC, GREEDY_C = Step("x", kind("A", "B", "C")), Step("c", C, STRICT, high=MANY, inner=STRICT, greedy=True)
B_IN_A_ROW, BC_NEXT = Step("b", B, high=MANY, inner=STRICT), Step("y", kind("B", "C"), STRICT)
D_NEXT = Step("d", kind("D"), STRICT)
SKIPPED: list[tuple[str, str, Sequence[Step], str, str]] = [
    ("NoSkip", "none", [Step("a", A, low=3, high=3)], "AAAAAA", "012 123 234 345"),
    ("SkipPastLast", "past", [Step("a", A, low=3, high=3)], "AAAAAA", "012 345"),
    ("NoSkipFollowedByAny", "none", [a, Step("b", B, ANY)], "ABAB", "01 03 23"),
    ("SkipToNextFollowedByAny", "next", [a, Step("b", B, ANY)], "ABAB", "01 23"),
    ("NoSkipLoopAtTheEnd", "none", [a, Step("b", B, STRICT, high=MANY)], "ABBB", "01 012 0123"),
    ("SkipToNextLoopAtTheEnd", "next", [a, Step("b", B, STRICT, high=MANY)], "ABBB", "01"),
    ("SkipToFirst", "first b", [B_IN_A_ROW, Step("c", C, STRICT)], "BBBC", "0123 123 23"),
    ("SkipToLast", "last b", [B_IN_A_ROW, Step("c", C, STRICT)], "BBBC", "0123 23"),
    (
        "SkipToFirstGreedy",
        "first c",
        [ABC, BC_NEXT, GREEDY_C, D_NEXT],
        "ABCCCD",
        "012345 2345",
    ),
    ("SkipPastLast3", "past", [a, Step("b", B, STRICT)], "ACAB", "23"),
]
