"""What dominance demands of registers: each rule, where it must not be used, and predicates tried out."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from random import Random

import pytest

import acep
from acep.pattern.evaluation import compile_expression
from acep.pattern.expressions import Attribute, Expr, Leaf
from acep.plan.assume import assumed_plan
from acep.plan.compile import Plan, compile_query
from acep.plan.dominance import demands, lines, reason_against
from acep.plan.monotone import MAX_INTEGER, Demand, Scene, demands_on, unite_demands
from acep.plan.schema import Kind, Schema
from tests.case_counts import CaseCounts
from tests.native.test_dominance import FLOATS, INTS, PREDICATES

KINDS = (
    ("ts", Kind.INT), ("type", Kind.STRING), ("n", Kind.INT), ("i", Kind.INT), ("f", Kind.FLOAT), ("g", Kind.FLOAT),
    ("s", Kind.STRING),
)  # fmt: skip
NEXT, ANY = "skip_till_next_match", "skip_till_any_match"


def planned(where: str, pattern: str = "SEQ(A a, B b)", strategy: str = ANY, within: str = "WITHIN 9") -> Plan:
    return compile_query(acep.parse(f"PATTERN {pattern} WHERE {strategy} {{ {where} }} {within}"), Schema(KINDS))


def signs(plan: Plan, state: int = 1) -> dict[str, int]:
    return {str(register): demand.sign for register, demand in demands(plan)[state].items()}


@pytest.mark.parametrize(
    ("where", "sign"),
    [
        ("b.n > a.n", -1),
        ("b.n < a.n", 1),
        ("a.f <= b.f", -1),
        ("NOT (b.n > a.n)", 1),
        ("NOT (b.n > a.n AND b.f = 1)", 1),
        ("b.f < 0.8 * a.f", 1),
        ("b.f < -0.8 * a.f", -1),
        ("b.f > a.f / -2", 1),
        ("b.f - a.f > 3", -1),
        ("a.f - b.f < 3", -1),
        ("b.f + a.f > 3", 1),
        ("b.f - a.f >= 3", -1),
        ("b.f - 2 * a.f > b.n", -1),
        ("b.f BETWEEN a.f AND 9", -1),
        ("b.f NOT BETWEEN a.f AND 9", 1),
        ("9 BETWEEN b.f AND a.f", 1),
        ("b.n > a.n OR b.f > a.n", -1),
        ("b.ts - a.ts >= 3", -1),
        ("a.ts - b.ts >= -3", 1),
        ("b.ts - a.ts >= b.n", -1),
        ("b.i > a.i + 5", -1),
    ],
)
def test_a_direction(where: str, sign: int) -> None:
    (found,) = signs(planned(where)).values()
    assert found == sign


@pytest.mark.parametrize(
    "where",
    [
        "b.n = a.n",
        "b.n != a.n",
        "b.s > a.s",
        "b.s = a.s",
        "a.n IS NULL OR b.n > 1",
        "b.n > abs(a.n)",
        "b.n > a.n % 3",
        "b.n > 3 / a.n",
        "b.n > a.n * b.f",
        "b.n > a.f * 0",
        "b.n - a.n > 3",  # may be beyond 64 bits
        "b.n > a.n * 9223372036854775807",
        "b.f - a.f >= b.g",  # infinities may be equal
        "b.f - a.f + b.g > 1",
        "b.n > a.n AND b.n < 2 * a.n",
        "b.f > a.n OR b.f < a.n",
        "b.n IN (a.n, 1)",
        "a.n - a.n < b.n",
        "(b.n > a.n) = (b.f > 1)",
    ],
)
def test_no_direction(where: str) -> None:
    assert set(signs(planned(where, "SEQ(A a, B b, C c)")).values()) == {0}


def test_time_has_a_direction_only_within_a_window_in_time() -> None:
    for within, sign in (("WITHIN 9", -1), ("WITHIN 9 EVENTS", 0), ("", 0)):
        assert signs(planned("b.ts - a.ts >= 3", within=within)) == {"a[last].ts": sign}


def test_arithmetic_with_integers_has_a_bound() -> None:
    bounds = {
        "b.i > a.i": MAX_INTEGER,
        "b.i > a.i + 5": MAX_INTEGER - 5,
        "b.i > 2 * (a.i - 1)": (MAX_INTEGER - 2) // 2,
        "b.i < -a.i": MAX_INTEGER - 1,
        "b.i > a.i / 3": MAX_INTEGER,
        "b.f > a.f + 5": MAX_INTEGER,
    }
    for where, bound in bounds.items():
        (found,) = (demand.bound for demand in demands(planned(where))[1].values())
        assert found == bound, where
    assert unite_demands(Demand(1, 5), Demand(1, 7)) == Demand(1, 5)
    assert unite_demands(Demand(1, 5), Demand(-1)) == Demand(0)


def test_demands_go_back_along_copies_and_end_where_a_register_is_read_last() -> None:
    plan = planned("b.n > a.n AND d.n < a.f AND c.f > b.f", "SEQ(A a, B b, C c, D d)")
    assert [signs(plan, state) for state in range(1, 5)] == [
        {"a[last].f": 1, "a[last].n": -1},
        {"a[last].f": 1, "b[last].f": -1},
        {"a[last].f": 1},
        {},
    ]
    assert signs(planned("b.n > 3")) == {}
    assert lines(planned("b.n > 3")) == ["  state 1: any registers"]


def test_under_skip_till_next_match_only_what_does_not_block_has_a_direction() -> None:
    for strategy, sign in ((ANY, -1), (NEXT, 0)):
        assert signs(planned("b.n > a.n", strategy=strategy)) == {"a[last].n": sign}
    kleene = planned("a[i].n > a[i-1].n AND b.n > a[1].f", "SEQ(A+ a[], B b)", NEXT)
    assert signs(kleene) == {"a[last].n": 0, "a[1].f": -1}  # the arc that leaves a repetition does not block
    # An arc that skips a letter does not block either.
    text = f"PATTERN SEQ(A a, B b, C c) WHERE {NEXT} {{ c.n > a.n }} WITHIN 9"
    assert signs(compile_query(acep.parse(text, errors=1), Schema(KINDS))) == {"a[last].n": 0}
    assert signs(planned("c.n > a.n", "SEQ(A a, B b, C c)", NEXT)) == {"a[last].n": 0}


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("b[i].n > b[i-1].n", {"b[last].n": -1}),
        ("b[i].f < avg(b[..i-1].f)", {"nonnull(b[].f)": 0, "sum(b[].f)": 0}),
        ("c.n > b[2].n", {"b[2].n": 0, "count(b[])": 0}),
        ("c.n > b[1].n", {"b[1].n": -1}),
        ("c.n > b[i].n", {"b[].frames(p0)": 0}),
        ("b[i].n >= max(b[..i-1].n)", {"max(b[].n)": 0}),
        ("b.LEN > 1", {"count(b[])": 0}),
    ],
)
def test_what_a_repetition_keeps(where: str, expected: dict[str, int]) -> None:
    assert signs(planned(where, "SEQ(A a, B+ b[], C c)"), 2) == expected


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("PATTERN SEQ(A a, ~C c, B b) WHERE b.n > a.n WITHIN 9", "negations"),
        ("PATTERN SEQ(A a, B b, ~C c) WHERE b.n > a.n WITHIN 9", "negations"),
        ("PATTERN SEQ(A+ a[], B b) WHERE b.n > a[1].n WITHIN 9 HAVING count(a[]) > 1", "HAVING"),
        ("PATTERN SEQ(A a, B b) WHERE b.n > a.n WITHIN 9 OUTPUT NON OVERLAP", "non overlap"),
        ("FROM (PATTERN SEQ(A a, B b) WITHIN 5) AS T PATTERN SEQ(T x, T y) WITHIN 50", "other queries"),
    ],
)
def test_where_it_is_refused(text: str, reason: str) -> None:
    assert reason in str(reason_against(assumed_plan(acep.parse(text))))


def test_returned_values_are_no_reason_against() -> None:
    assert (
        reason_against(assumed_plan(acep.parse("PATTERN SEQ(A a, B b) WHERE b.n > a.n WITHIN 9 RETURN a.n AS n")))
        is None
    )


# Predicates, tried out --------------------------------------------------------------------------


def meets(demand: Demand, mine: float | str | None, other: float | str | None) -> bool:
    if mine == other:
        return True
    if not demand.sign:
        return False
    if other is None or mine is None:
        return other is None
    assert not isinstance(mine, str)
    assert not isinstance(other, str)
    return (mine > other) is (demand.sign > 0) and (demand.bound == MAX_INTEGER or abs(mine) <= demand.bound)


def test_a_predicate_that_holds_for_one_holds_for_what_meets_the_demands(cases: CaseCounts) -> None:
    """All predicates of the random queries, over values at the ends of their ranges."""
    rng, seen = Random(5), Counter[str]()
    pools: dict[str, tuple[float | str | None, ...]] = {
        "n": (*INTS, None), "i": (*INTS, None), "f": (*FLOATS, None), "g": (*FLOATS, None), "s": ("p", "q", "P", None),
        "ts": tuple(range(10)),
    }  # fmt: skip
    for text in PREDICATES:
        expr: Expr = planned(text.replace("U.", "a.").replace("V.", "b."), "SEQ(A a, B b, C c)").predicates[0].expr
        compiled = compile_expression(expr)
        leaves = [leaf for leaf in compiled.leaves if isinstance(leaf, Attribute)]
        numbers: dict[Leaf, Kind] = {
            leaf: dict(KINDS)[leaf.name] for leaf in leaves if leaf.var == "a" and leaf.name != "s"
        }
        fixed = frozenset(leaf for leaf in leaves if leaf.var == "b")
        wanted: dict[Leaf, Demand] = {}
        for leaf, demand in demands_on(expr, Scene(lambda name: dict(KINDS)[name], None, numbers, fixed, "ts", 9)):
            wanted[leaf] = unite_demands(wanted.get(leaf), demand)
        for _ in range(cases(400)):
            other = {
                leaf: 9 if leaf in fixed and leaf.name == "ts" else rng.choice(pools[leaf.name]) for leaf in leaves
            }
            mine = {x: v if x in fixed else rng.choice((v, *pools[x.name])) for x, v in other.items()}
            if not all(leaf in fixed or meets(wanted[leaf], mine[leaf], other[leaf]) for leaf in leaves):
                continue
            seen["demands met"] += 1
            if compiled.run(list(other.values())) is True:
                seen["another value holds"] += mine != other
                assert compiled.run(list(mine.values())) is True, (text, other, mine)
    cases.expect(seen, "demands met", least=cases(2000) + 1)
    cases.expect(seen, "another value holds", least=seen["demands met"] / 20)


def test_the_pools_are_at_the_ends() -> None:
    assert all(a < b for a, b in pairwise(INTS))
    assert FLOATS[0] == -FLOATS[-1] == float("-inf")
