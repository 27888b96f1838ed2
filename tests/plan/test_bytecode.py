"""What block programs are made of: few operations, shared slots, and words for what cannot be said."""

from __future__ import annotations

from fractions import Fraction

import pytest

import acep
from acep.errors import QueryError
from acep.pattern.expressions import Attribute, Expr, In, Literal
from acep.pattern.walk import leaves_of
from acep.plan.lower.bytecode import BlockProgram, CannotLower, lower_expression, program_lines
from acep.plan.lower.bytecode_words import MOST_SLOTS
from acep.plan.schema import Kind

KINDS = {"i": Kind.INT, "j": Kind.INT, "f": Kind.FLOAT, "s": Kind.STRING, "p": Kind.BOOL, "u": Kind.TIMESTAMP}
TEXTS = {"x": 7, "y": 8}


def lowered(what: str | Expr, tick_ns: Fraction | None = Fraction(1000)) -> BlockProgram:
    if isinstance(what, str):
        ((_, what),) = acep.parse(f"PATTERN SEQ(ANY a) WITHIN 9 RETURN {what} AS z").returns
    leaves = [leaf for leaf in leaves_of(what) if isinstance(leaf, Attribute)]
    return lower_expression(what, leaves, [KINDS[leaf.name] for leaf in leaves], tick_ns, TEXTS.__getitem__)


def listing(what: str) -> str:
    """A program without its inputs, constants and slots."""
    names = [line.split()[2] for line in program_lines(lowered(what))[:-1]]
    return " ".join(name for name in names if name not in ("LEAF", "CONST"))


@pytest.mark.parametrize(
    ("text", "operations", "kind"),
    [
        ("a.i + 1 > a.j", "ADD_I LT_I", Kind.BOOL),
        ("a.i > 2.5", "LT_I", Kind.BOOL),  # which is a.i > 2
        ("a.f < 9007199254740993", "LE_F", Kind.BOOL),  # which no float is
        ("a.i < a.f", "LT_M", Kind.BOOL),
        ("a.f + a.i", "FLOAT ADD_F", Kind.FLOAT),
        ("a.i / a.j", "DIV_I", Kind.FLOAT),
        ("a.f > 1 + 1 AND 2 > 1", "LT_F", Kind.BOOL),
        ("a.f * a.f > a.f * a.f - 1", "MUL_F SUB_F LT_F", Kind.BOOL),  # the same product
        ("a.s = 'x'", "EQ_I", Kind.BOOL),
        ("a.s < 'x'", "LT_S", Kind.BOOL),
        ("a.s IN ('x', 'y')", "IN_I", Kind.BOOL),
        ("a.i IN (1, 1.0, 2.5, 3)", "IN_I", Kind.BOOL),
        ("a.p = TRUE", "EQ_I", Kind.BOOL),
        ("NOT a.p", "TRUTH NOT", Kind.BOOL),
        ("a.i IS NOT NULL", "IS_NULL NOT", Kind.BOOL),
        ("floor(a.i)", "", Kind.INT),
        ("a.u + 1 hour", "ADD_I", Kind.TIMESTAMP),
        ("a.u - TIMESTAMP '2024-01-01'", "SUB_I", Kind.INT),
        ("year(a.u)", "PART", Kind.INT),
        ("length('xy')", "", Kind.INT),
    ],
)
def test_operations(text: str, operations: str, kind: Kind) -> None:
    assert (listing(text), lowered(text).result) == (operations, kind)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("lower(a.s) = 'x'", "lower looks into texts"),
        ("length(a.s) > 3", "length looks into texts"),
        ("concat(a.s, 'x') = 'y'", "concat looks into texts"),
        ("a.s LIKE 'x%'", "LIKE looks into a text"),
        ("greatest(a.i, a.f)", "integer in some rows and a float in others"),
        ("a.i - 9223372036854775808", "beyond 64 bits"),
        ("round(a.f, 1.5)", "number of digits that is no integer"),
        ("hour(a.u + 1 ns)", "hour of a float"),
        ("a.s + 1", "a string and a int"),
        ("a.s > a.i", "a string compared with a int"),
        ("a.i AND a.p", "where a condition is needed"),
        ("coalesce(a.s, a.i)", "a string and a int as one value"),
        ("abs(a.s)", "abs of a string"),
        ("-a.p", "a minus sign of a bool"),
    ],
)
def test_what_cannot_be_lowered(text: str, reason: str) -> None:
    with pytest.raises(CannotLower, match=reason) as raised:
        lowered(text)
    assert reason in raised.value.reason


def test_an_integer_that_is_exact_as_a_float() -> None:
    assert lowered("greatest(a.f, 0)").result is Kind.FLOAT
    with pytest.raises(CannotLower):
        lowered("greatest(a.f, 9007199254740993)")


def test_a_conjunction_needs_few_slots() -> None:
    text = " AND ".join(f"a.f * {n}.5 > {n}" for n in range(1, 200))
    assert lowered(text).slots <= 12


def test_an_expression_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    leaves = [Attribute("a", None, f"f{n}") for n in range(MOST_SLOTS + 1)]
    wide = In(Literal(1.5), tuple(leaves))
    program = lower_expression(wide, leaves, [Kind.FLOAT] * len(leaves), None, TEXTS.__getitem__)
    assert program.slots < 10  # an input is looked at when it is needed
    monkeypatch.setattr("acep.plan.lower.bytecode_words.MOST_WORDS", len(program.code) - 1)
    with pytest.raises(CannotLower, match="too large"):
        lower_expression(wide, leaves, [Kind.FLOAT] * len(leaves), None, TEXTS.__getitem__)


def test_a_time_without_the_length_of_a_tick() -> None:
    with pytest.raises(QueryError, match="how long a tick"):
        lowered("a.u < 1 hour", None)
    with pytest.raises(QueryError, match="how long a tick"):
        lowered("hour(a.u) < 1", None)


def test_a_reference_written_twice_is_one_input() -> None:
    ((_, expr),) = acep.parse("PATTERN SEQ(ANY a) WITHIN 9 RETURN a.i < a.i AS z").returns
    assert len(leaves_of(expr)) == 2  # at two places of the text
    assert sum("LEAF" in line for line in program_lines(lowered(expr))) == 1
