"""Sequences of EQL, by the row or task of the page about it, and the queries that are to find the same."""

from __future__ import annotations

import fnmatch
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.eql import Step, kind, runs

NEXT = "skip_till_next_match"
TWO = "A a, ~(A|B) n, B b"
THREE = "A a, ~(A|B) n, B b, ~(A|C) m, (C c | A o, ~(B|C) p, C c)"
JOINED = "SEQ(A a, ~A n, ~B m, B b) WHERE b.x = a.x AND n.x = a.x AND m.x = a.x WITHIN 9"
CLAUSE = """
    PARTITION BY k ORDER BY ts MEASURES A.ts AS a, B.ts AS b, C.ts AS c AFTER MATCH SKIP TO NEXT ROW
    PATTERN (A N* B P* Q* C) WITHIN 9
    DEFINE A AS type = 'A', B AS type = 'B', C AS type = 'C', N AS type NOT IN ('A', 'B'), P AS type NOT IN ('A', 'C'),
        Q AS type NOT IN ('B', 'C')
"""
FROM_THREE = """
    FROM (PATTERN C c WHERE [k]) AS Third,
        (PATTERN SEQ(A a, ~(A|B) n, B b) WHERE [k] WITHIN 9 RETURN a.ts AS a, b.ts AS b) AS Two
    PATTERN SEQ(Two s, ~(Two|Third) n, Third c) WHERE [k] AND c.ts - s.a <= 9 RETURN s.a AS a, s.b AS b, c.ts AS c
"""
FROM_FOUR = """
    FROM (PATTERN D d WHERE [k]) AS Fourth,
        (FROM (PATTERN C c WHERE [k]) AS Third,
            (PATTERN SEQ(A a, ~(A|B) n, B b) WHERE [k] RETURN a.ts AS a, b.ts AS b) AS Two
        PATTERN SEQ(Two s, ~(Two|Third) n, Third c) WHERE [k] RETURN s.a AS a, s.b AS b, c.ts AS c) AS Three
    PATTERN SEQ(Three s, ~(Three|Fourth) n, Fourth d) WHERE [k] RETURN s.a AS a, s.b AS b, s.c AS c, d.ts AS d
"""
CLAUSE_FOUR = """
    PARTITION BY k ORDER BY ts MEASURES A.ts AS a, B.ts AS b, C.ts AS c, D.ts AS d AFTER MATCH SKIP TO NEXT ROW
    PATTERN (A N* B (P* C S* T* U* D | P* A2 Q* C T* U* D))
    DEFINE A AS type = 'A', A2 AS type = 'A', B AS type = 'B', C AS type = 'C', D AS type = 'D',
        N AS type NOT IN ('A', 'B'), P AS type NOT IN ('A', 'C'), Q AS type NOT IN ('B', 'C'),
        S AS type NOT IN ('A', 'D'), T AS type NOT IN ('B', 'D'), U AS type NOT IN ('C', 'D')
"""
FROM_RUNS = """
    FROM (PATTERN C c WHERE [k]) AS Last,
        (PATTERN SEQ(A a, ~(A|B) n, B b, ~B m, B b2) WHERE [k] RETURN a.ts AS a, b.ts AS b, b2.ts AS b2) AS Runs
    PATTERN SEQ(Runs s, ~(Runs|Last) n, Last c) WHERE [k] RETURN s.a AS a, s.b AS b, s.b2 AS b2, c.ts AS c
"""


FROM_OVERLAPPING = """
    FROM (PATTERN (B|C) c WHERE [k]) AS Third,
        (PATTERN SEQ(A a, ~(A|B) n, (A|B) b) WHERE [k] RETURN a.ts AS a, b.ts AS b) AS Two
    PATTERN SEQ(Two s, ~(Two|Third) n, Third c) WHERE [k] RETURN s.a AS a, s.b AS b, c.ts AS c
"""


def item(name: str, *types: str, x: int | None = None, by: tuple[str, ...] = ("k",), missing: bool = False) -> Step:
    """Return an item for events of types, or of any, with a value of x, or with any."""
    fits = kind(*(types or (name.upper(),)))
    return Step(name, lambda event: fits(event) and (x is None or event["x"] == x), by, missing)


def any_item(name: str, *values: int) -> Step:
    """Return an item for events of any type that have one of some values of x."""
    return Step(name, lambda event: event["x"] in values)


def no(*types: str) -> Step:
    return item("m", *types, missing=True)


@dataclass(frozen=True)
class Case:
    """A row of the page: what its second cell shows, a query that has this, and the sequence in EQL.

    The variable o is no part of the match. A query with RETURN, and a clause, give the times of the events. A case with
    ``differs`` is not the same on some stream; the row says so. ``head`` is the number of sequences that are given.
    """

    row: str
    shown: str
    query: str
    steps: Sequence[Step]
    how: dict[str, Any] = field(default_factory=dict)
    differs: bool = False
    head: int | None = None


a, b, c, d = item("a"), item("b"), item("c"), item("d")
AB, ABC = [a, b], [a, b, c]
SPAN = {"maxspan": 9}
BY_X = [item("a", by=("x",)), item("b", by=("x",))]
WHERE_X = [item("a", x=1), item("b", x=2)]
ON_D, ON_X = item("u", "D"), any_item("u", 2)
CASES = [
    Case("`process where", "ANY a", "ANY a WHERE [k] AND a.x = 1", [any_item("a", 1)]),
    Case("`sequence [A] [B]`", TWO, f"SEQ({TWO}) WHERE [k]", AB),
    Case("`sequence [A] [B]`", "", f"SEQ(A a, B b) WHERE {NEXT} {{ [k] }}", AB, differs=True),
    Case("`sequence [A] [B]`", "", "SEQ(ANY a, ~ANY n, ANY b) WHERE [k]", [any_item(name, 0, 1, 2) for name in "ab"]),
    Case("`sequence [A] [B] [C]`", THREE, f"SEQ({THREE}) WHERE [k]", ABC),
    Case("`sequence [A] [B] [C]`", THREE, f"SEQ({THREE}) WHERE [k] WITHIN 9", ABC, SPAN),
    Case("`sequence [A] [B] [C]`", "", CLAUSE, ABC, SPAN),
    Case("`sequence [A] [B] [C]`", "", FROM_THREE, ABC, SPAN),
    Case(
        "`sequence [A] [B] [C]`",
        "",
        "SEQ(A a, ~(A|B) n, (A|B) b, ~(A|C) m, (C c | A o, ~(A|B|C) p, C c)) WHERE [k]",
        [a, item("b", "A", "B"), c],
        differs=True,
    ),
    Case("four and more", "", FROM_FOUR, [a, b, c, d]),
    Case("four and more", "", CLAUSE_FOUR, [a, b, c, d]),
    Case("four and more", "", FROM_OVERLAPPING, [a, item("b", "A", "B"), item("c", "B", "C")]),
    Case("`sequence by", "", f"SEQ({TWO}) WHERE [k] AND [x]", [item("a", by=("k", "x")), item("b", by=("k", "x"))]),
    Case("`sequence by", "", f"SEQ({TWO}) WITHIN 9", [item("a", by=()), item("b", by=())], SPAN),
    Case("`[A] by", "~A n, ~B m", JOINED, BY_X, SPAN),
    Case(
        "`[A where",
        "~A n, ~B m",
        "SEQ(A a, ~A n, ~B m, B b) WHERE [k] AND a.x = 1 AND n.x = 1 AND b.x = 2 AND m.x = 2",
        WHERE_X,
    ),
    Case(
        "`[A where",
        "",
        "SEQ(ANY a, ~ANY n, ANY b) WHERE [k] AND a.x = 1 AND b.x = 2 AND n.x IN (1, 2)",
        [any_item("a", 1), any_item("b", 2)],
    ),
    Case("`with maxspan", "WITHIN", f"SEQ({TWO}) WHERE [k] WITHIN 4", AB, {"maxspan": 4}),
    Case("`until", "~(A|B|D) n", "SEQ(A a, ~(A|B|D) n, B b) WHERE [k]", AB, {"until": ON_D}),
    Case(
        "`until",
        "",
        "SEQ(A a, ~(A|B|D) n, B b, ~(A|C|D) m, (C c | A o, ~(B|C|D) p, C c)) WHERE [k] WITHIN 9",
        ABC,
        {"until": ON_D, **SPAN},
    ),
    Case(
        "`until", "~ANY u", "SEQ(A a, ~(A|B) n, ~ANY u, B b) WHERE [k] AND u.x = 2", AB, {"until": ON_X}, differs=True
    ),
    Case(
        "`until", "a.x != 2", "SEQ(A a, ~(A|B) n, ~ANY u, B b) WHERE [k] AND u.x = 2 AND a.x != 2", AB, {"until": ON_X}
    ),
    Case("`[A] with runs=3`", "A{3} a[]", f"A{{3}} a[] WHERE {NEXT} {{ [k] }} WITHIN 9", runs(a, 3), SPAN),
    Case(
        "`[A] with runs=3 [B]",
        "A{3} a[], ~(A|B) n, B b",
        f"SEQ(A{{3}} a[], ~(A|B) n, B b) WHERE {NEXT} {{ [k] }}",
        [*runs(a, 3), b],
    ),
    Case(
        "`[A] [B] with runs=3`",
        "A a, ~(A|B) n, B b, (~B m, B b2){2}",
        "SEQ(A a, ~(A|B) n, B b, (~B m, B b2){2}) WHERE [k]",
        [a, *runs(b, 3)],
    ),
    Case("four and more", "", FROM_RUNS, [a, *runs(b, 2), c]),
    Case("`![M]` between", "~M m", "SEQ(A a, ~(A|B) n, ~M m, B b) WHERE [k] WITHIN 9", [a, no("M"), b], SPAN),
    Case(
        "`![M]` between",
        "",
        "SEQ(A a, ~(A|B) n, B b, ~(A|C|M) m, (C c | A o, ~(B|C|M) p, C c)) WHERE [k] WITHIN 9",
        [a, b, no("M"), c],
        SPAN,
    ),
    Case("`![M]` at", "~M m", f"SEQ({TWO}, ~M m) WHERE [k] WITHIN 9", [a, b, no("M")], SPAN),
    Case("`![M]` at", "~M m", f"SEQ(~M m, {TWO}) WHERE [k] WITHIN 9", [no("M"), a, b], SPAN),
    Case("`![M]` at", "~M m", "SEQ(A a, ~M m) WHERE [k] WITHIN 4", [a, no("M")], {"maxspan": 4}),
    Case(
        "`![M]` at", "", "SEQ(~M m, A a, ~D d) WHERE [k] WITHIN 4", [no("M"), a, no("D")], {"maxspan": 4}, differs=True
    ),
    Case("`\\| head", "limit", f"SEQ({TWO}) WHERE [k]", AB, head=50),
]


def of_user(names: str, *more: str, missing: bool = False) -> list[Step]:
    """Return an item for each type among names, which are those of a user."""
    return [Step(name[0], kind(name), ("user", *more), missing) for name in names.split()]


# By task of the page and query of the task: the sequence in EQL, and maxspan or until.
LOGOUT = Step("u", kind("logout"), ("user",))
CHAIN = of_user("download run connect")
MINUTE = {"maxspan": 60}
TASKS: dict[tuple[int, int], tuple[Sequence[Step], dict[str, Any]]] = {
    (1, 0): (of_user("download run"), {"maxspan": 5}),
    (2, 0): ([*runs(of_user("fail")[0], 3), *of_user("login")], MINUTE),
    (3, 0): ([*of_user("login"), *of_user("logout", missing=True)], {"maxspan": 5}),
    (4, 0): (CHAIN, {"until": LOGOUT, **MINUTE}),
    (4, 1): (CHAIN, {"until": LOGOUT, **MINUTE}),
    (5, 0): ([*of_user("download", "path"), *of_user("run", "image")], MINUTE),
    (6, 0): ([*of_user("login"), *CHAIN], MINUTE),
    (6, 1): ([*of_user("login"), *CHAIN], MINUTE),
}


@dataclass(frozen=True)
class Condition:
    """A row of the page about conditions: what its second cell shows, a condition of acep, and what EQL says of it."""

    row: str
    shown: str
    query: str
    holds: Callable[[str, int], bool]


def like(text: str, wildcards: str) -> bool:
    return fnmatch.fnmatchcase(text, wildcards)


# Of texts x, some of them null, and integers n: a condition with null is not true. No text has a bracket.
CONDITIONS = [
    Condition('`x == "a"', "a.x = 'a'", "a.x = 'a'", lambda x, n: x == "a"),
    Condition('`x == "a"', "a.x != 'a'", "a.x != 'a'", lambda x, n: x != "a"),
    Condition('`x : "cmd*"', "lower(a.x) LIKE 'cmd%'", "lower(a.x) LIKE 'cmd%'", lambda x, n: like(x.lower(), "cmd*")),
    Condition('`x : "cmd*"', "`_`", "lower(a.x) LIKE 'c_d'", lambda x, n: like(x.lower(), "c?d")),
    Condition('`x like "Cmd*"', "a.x LIKE 'Cmd%'", "a.x LIKE 'Cmd%'", lambda x, n: like(x, "Cmd*")),
    Condition(
        '`x like "Cmd*"', "\\_", "a.x LIKE 'a\\_%' OR a.x LIKE '%\\%'", lambda x, n: like(x, "a_*") or like(x, "*%")
    ),
    Condition("`x in (", "a.x IN ('a', 'b')", "a.x IN ('a', 'b')", lambda x, n: x in ("a", "b")),
    Condition("`x in (", "NOT IN", "a.x NOT IN ('a', 'b')", lambda x, n: x not in ("a", "b")),
    Condition("`x in~", "lower(a.x) IN ('a', 'b')", "lower(a.x) IN ('a', 'b')", lambda x, n: x.lower() in ("a", "b")),
    Condition(
        "`x regex",
        "regexp_like(a.x, '^(c[mn]d.*)$')",
        "regexp_like(a.x, '^(c[mn]d.*)$')",
        lambda x, n: bool(re.fullmatch("c[mn]d.*", x)),
    ),
    Condition(
        "`x regex",
        "'(?i)^(",
        "regexp_like(a.x, '(?i)^(c[mn]d|a)$')",
        lambda x, n: bool(re.fullmatch("c[mn]d|a", x, re.IGNORECASE)),
    ),
    Condition("`cidrMatch", "ip_in(a.x, '10.0.0.0/8')", "ip_in(a.x, '10.0.0.0/8')", lambda x, n: x.startswith("10.")),
    Condition("`length", "length(a.x)", "length(a.x) = 3", lambda x, n: len(x) == 3),
    Condition("`startsWith", "a.x LIKE 'c%'", "a.x LIKE 'c%'", lambda x, n: x.startswith("c")),
    Condition("`startsWith", "LIKE '%c'", "a.x LIKE '%c'", lambda x, n: x.endswith("c")),
    Condition("`startsWith", "LIKE '%c%'", "lower(a.x) LIKE '%c%'", lambda x, n: "c" in x.lower()),
    Condition("`substring", "substring(a.x, 2, 3)", "substring(a.x, 2, 3) = 'md.'", lambda x, n: x[1:4] == "md."),
    Condition(
        "`concat",
        "concat(a.x, '-', CAST(a.n AS text))",
        "concat(a.x, '-', CAST(a.n AS text)) = 'a--1'",
        lambda x, n: f"{x}-{n}" == "a--1",
    ),
    Condition(
        "`string(n)`", "CAST(a.n AS text)", "CAST(a.n AS text) = '-1' AND a.x != ''", lambda x, n: x != "" and n == -1
    ),
    Condition("`string(n)`", "CAST(a.x AS float)", "CAST(a.x AS float) > 1", lambda x, n: x in ("7", "1.5")),
    Condition("`add(n, 1)`", "a.n + 1", "a.n + 1 = 3", lambda x, n: n + 1 == 3),
    Condition("`add(n, 1)`", "a.n % 3", "a.n % 3 = -1", lambda x, n: math.fmod(n, 3) == -1),
    Condition(
        "`divide(n, 2)`", "floor(a.n / 2)", "floor(a.n / 2) = 1 AND a.x != ''", lambda x, n: n // 2 == 1 and x != ""
    ),
]


# Series of events with what they give, as Elastic's own tests have them (sequences.series-spec): for each step its
# events; the number is the time, and the letter before the bar the key.
PUBLISHED: dict[str, tuple[tuple[str, ...], str]] = {
    "trivialSequence": (("A1", "B2"), "A1 B2"),
    "trivialSequenceWithLeftoverPrevStage": (("A1 A3", "B2"), "A1 B2"),
    "trivialSequenceWithLeftoverCurrentStage": (("A2", "B1 B3"), "A2 B3"),
    "basicSequenceOneAfterTheOther": (("A1 A3", "B2 B4"), "A1 B2, A3 B4"),
    "basicSequenceMergingPreviousStage": (("A1 A2", "B3"), "A2 B3"),
    "basicSequenceMergingLastStage": (("A1", "B2 B3 B4"), "A1 B2"),
    "basicSequenceWithDualMergingPreviousStage": (("A1 A2 A4 A5 A6 A8 A9", "B3 B7"), "A2 B3, A6 B7"),
    "basicSequenceWithMultipleLeftoverEvents": (("A1 A3 A4", "B2"), "A1 B2"),
    "basicSequenceWithMultipleLeftoverEventsOnCurrentStage": (("A3 A5 A6", "B1 B2 B4"), "A3 B4"),
    "basicSequenceMergingCurrentStage": (("A1 A2", "B3 B4"), "A2 B3"),
    "basicSequenceWithMergingCurrentStageAndLeftOverInPreviousStage": (("A1 A2 A5", "B3 B4"), "A2 B3"),
    "basicSequenceWithMergingOnBothStagesAndLeftoverInPreviousStage": (("A1 A2 A4 A7", "B3 B5 B6"), "A2 B3, A4 B5"),
    "threeStageBasicSequence": (("A1 A4", "B2 B5", "C3 C6"), "A1 B2 C3, A4 B5 C6"),
    "threeStageWithOverridingSequence": (("A1 A3", "B2 B4", "C5"), "A3 B4 C5"),
    "threeStageWithOverridingSequenceOnSecondStage": (("A1", "B2 B4", "C3"), "A1 B2 C3"),
    "threeStageWithNoise": (("A4 A6", "B2 B5", "C1 C3 C7"), "A4 B5 C7"),
    "threeStageWithIntermittentUpdates": (("A1 A4", "B3 B5", "C2 C6"), "A4 B5 C6"),
    "threeStageWithMoreIntermittentUpdates": (("A1 A4 A6", "B3 B5 B7 B8", "C2 C9"), "A6 B7 C9"),
    "threeStageWithReverseMatch": (("A3 A5 A8", "B2 B7", "C1 C4 C6 C9"), "A5 B7 C9"),
    "threeStageWithLeftoversOnTheLastStage": (("A1 A3 A5", "B2 B4 B6", "C7 C8 C9 C10"), "A5 B6 C7"),
    "threeStageWithOverlap": (("A1 A3", "B2 B5", "C4 C6"), "A1 B2 C4, A3 B5 C6"),
    "fourStageBasic": (("A1 A5", "B2 B6", "C3 C7", "D4 D8"), "A1 B2 C3 D4, A5 B6 C7 D8"),
    "fourStageIncomplete": (("A1 A5", "B2 B6", "C3 C7", "D8"), "A5 B6 C7 D8"),
    "fourStageOverlapping": (("A1 A4", "B2 B5", "C3 C7", "D6 D8"), "A1 B2 C3 D6, A4 B5 C7 D8"),
    "exampleWithTwoStagesAndKeyFromTheDocs": (
        ("r|A1 r|A2 u|A6 r|A7", "u|B3 r|B4 r|B5 u|B8", "r|C9 u|C10 r|C11"),
        "A2 B4 C9, A6 B8 C10",
    ),
    # The example of the documentation, "How sequence queries handle matches", and the one on until.
    "documentation": (("r|A1 r|A2 u|A6 r|A7", "u|B3 r|B4 r|B5 u|B8", "r|C9 u|C10 r|C11"), "A2 B4 C9, A6 B8 C10"),
}
UNTIL: dict[str, str] = {"AB": "A1 B2", "ABD": "A1 B2", "ADB": ""}
