"""Patterns of Flink CEP, by the row or task of the page about it, and the queries that are to find the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.flink import ANY, STRICT, Condition, Event, Step, kind

A, B, C, CD = kind("A"), kind("B"), kind("C"), kind("C", "D")
PC, NEXT = "partition_contiguity", "skip_till_next_match"
LONGEST = "OUTPUT LONGEST NON OVERLAP"


def both(*conditions: Condition) -> Condition:
    return lambda event, context: all(one(event, context) for one in conditions)


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
        [a, Step("b", B, low=1, high=99), c],
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
        "`.oneOrMore()`", "(~B n, B b)+", "SEQ(A a, (~B n, B b)+, ~C m, C c) WHERE [k]", [a, Step("b", B, high=99), c]
    ),
    Case("`.oneOrMore()`", "(~B n, B b)+", "SEQ(A a, (~B n, B b)+) WHERE [k]", [a, Step("b", B, high=99)]),
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
        [a, Step("b", B, low=0, high=99), c],
    ),
    Case(
        "`.oneOrMore()`",
        "B b, (~B n, B b2)*",
        "SEQ(B b, (~B n, B b2)*, ~C m, C c) WHERE [k]",
        [Step("b", B, high=99), c],
    ),
    Case(
        "`.oneOrMore()`",
        "B b, (~B n, B b2)*",
        "SEQ(A a, B b, (~B n, B b2)*, ~C m, C c) WHERE [k]",
        [a, Step("b", B, ANY, high=99), c],
    ),
    Case(
        "`.timesOrMore(2)",
        "B b, (~ANY n, B b2)+",
        "SEQ(B b, (~ANY n, B b2)+, ~C m, C c) WHERE [k]",
        [Step("b", B, low=2, high=99, inner=STRICT), c],
    ),
    Case(
        "`.timesOrMore(2)",
        "~B o, B b, (~ANY n, B b2)+",
        "SEQ(A a, ~B o, B b, (~ANY n, B b2)+, ~C m, C c) WHERE [k]",
        [a, Step("b", B, low=2, high=99, inner=STRICT), c],
    ),
    Case(
        "`.timesOrMore(2)",
        "B{2,} b[]",
        f"B{{2,}} b[] WHERE {PC} {{ [k] }}",
        [Step("b", B, low=2, high=99, inner=STRICT)],
    ),
    Case(
        "`.allowComb",
        "~B n, B b, B* b2[]",
        "SEQ(A a, ~B n, B b, B* b2[], ~C m, C c) WHERE [k]",
        [a, Step("b", B, high=99, inner=ANY), c],
    ),
    Case(
        "`.greedy()`",
        "(~B n, B b)+, ~(B|C) m, C c",
        "SEQ(A a, (~B n, B b)+, ~(B|C) m, C c) WHERE [k]",
        [a, Step("b", B, high=99, greedy=True), c],
    ),
    Case(
        "`.greedy()`",
        "~(B|C) m, C c",
        "SEQ(B b, (~B n, B b2)*, ~(B|C) m, C c) WHERE [k]",
        [Step("b", B, high=99, greedy=True), c],
    ),
    Case(
        "`.until",
        "(~(B|D) n, B b)+",
        "SEQ(A a, (~(B|D) n, B b)+, ~C m, C c) WHERE [k]",
        [a, Step("b", B, high=99, until=kind("D")), c],
    ),
    Case(
        "`.greedy()`",
        "",
        "SEQ(A a, (~(B|C) n, (B|C) b)+, ~(B|C) m, C c) WHERE [k]",
        [a, Step("b", kind("B", "C"), high=99, greedy=True), Step("c", kind("C", "D"))],
        differs=True,
    ),
    Case(
        "`.greedy()`",
        "~(B|C) m, C c",
        "SEQ(A a, (~B n, B b){2,4}, ~(B|C) m, C c) WHERE [k]",
        [a, Step("b", B, low=2, high=4, greedy=True), c],
    ),
    Case(
        "`.until",
        "(~(B|D) n, B b)+",
        "SEQ(A a, (~(B|D) n, B b)+) WHERE [k]",
        [a, Step("b", B, high=99, until=kind("D"))],
    ),
    Case("`.or(", "~(B|C) n, (B|C) b", "SEQ(A a, ~(B|C) n, (B|C) b) WHERE [k]", [a, Step("b", kind("B", "C"))]),
    Case(
        "an `Iter",
        "HAVING count(DISTINCT b[].",
        "SEQ(A a, (~B n, B b)+, ~C m, C c) WHERE [k] HAVING count(DISTINCT b[].x) > 1",
        [a, Step("b", B, high=99), Step("c", both(C, many))],
    ),
    Case(
        "an `Iter",
        "",
        "SEQ(A a, (~B n, B b)+, ~C m, C c) WHERE [k] HAVING count(DISTINCT b[].x) > c.x",
        [a, Step("b", B, high=99), Step("c", both(C, more))],
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
    Case(
        "`skipPast",
        LONGEST,
        f"SEQ(A a, ~B n, B b, ~C m, C c) WHERE [k] WITHIN 9 {LONGEST}",
        [a, b, c],
        {"within": 10, "skip": "past"},
    ),
    Case(
        "`skipPast",
        LONGEST,
        f"SEQ(A a, ~B n, B b) WHERE [k] AND n.x = a.x AND b.x = a.x WITHIN 9 {LONGEST}",
        [a, Step("b", both(B, same("a")))],
        {"within": 10, "skip": "past"},
    ),
    Case(
        "`skipPast",
        "",
        "SEQ(A a, ~B n, B b) WHERE [k] AND n.x = a.x AND b.x = a.x WITHIN 9 OUTPUT NON OVERLAP",
        [a, Step("b", both(B, same("a")))],
        {"within": 10, "skip": "past"},
        differs=True,
    ),
    Case(
        "`skipPast",
        LONGEST,
        f"SEQ(A a, ~B n, B b) WHERE [k] WITHIN 9 {LONGEST}",
        [a, Step("b", B, high=99)],
        {"within": 10, "skip": "past"},
    ),
    Case(
        "`skipPast",
        LONGEST,
        f"SEQ(A a, (~B n, B b)+, ~ANY m, C c) WHERE [k] WITHIN 9 {LONGEST}",
        [a, Step("b", B, high=99), Step("c", C, STRICT)],
        {"within": 10, "skip": "past"},
        differs=True,
    ),
    Case(
        "`skipToNext",
        "",
        "SEQ(A a, ~B n, B b, ~C m, C c) WHERE [k] WITHIN 9",
        [a, b, c],
        {"within": 10, "skip": "next"},
    ),
    Case(
        "`skipToNext",
        "",
        "SEQ(A a, ~B n, B b) WHERE [k] WITHIN 9",
        [a, Step("b", B, high=99)],
        {"within": 10, "skip": "next"},
    ),
    Case(
        "`skipToNext",
        "",
        "SEQ(A a, (~B n, B b)+, ~ANY m, C c) WHERE [k] WITHIN 9",
        [a, Step("b", B, high=99), Step("c", C, STRICT)],
        {"within": 10, "skip": "next"},
        differs=True,
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
    (5, 0): ([Step("p", both(PAY, grows), low=3, high=99)], {"within": 60}),
    (6, 0): ([Step("l", LOGIN), Step("p", PAY, high=99, until=kind("logout"))], {}),
    (7, 0): ([Step("l", LOGIN), Step("p", PAY)], {"within": 10}),
    (7, 1): ([Step("l", LOGIN)], {"within": 10, "not_at_end": PAY}),
    (8, 0): ([Step("p", PAY), Step("q", PAY)], {"within": 60, "skip": "past"}),
}
