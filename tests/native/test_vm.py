"""Block programs give what the expressions in Python give, to the bit; hostile words are refused."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from acep.pattern.evaluation import CASE
from acep.pattern.expressions import Between, Binary, Call, Expr, In, IsNull, Literal, Unary
from acep.plan.lower.bytecode import CannotLower, program_lines
from acep.plan.lower.bytecode_words import READS, Op
from acep.plan.schema import Kind
from tests.native.columns import FLOATS, INTS, KINDS, LEAVES, MOMENTS, TEXTS, Loaded, expression, random_columns, same
from tests.native.expressions import ARITHMETIC, COMPARING, EXPRESSIONS
from tests.thinned import thinned

native = pytest.importorskip("acep.native._native")


@pytest.fixture(scope="module")
def grid() -> Loaded:
    """Every pair of extreme values, and nulls among them."""
    rng = random.Random(3)
    columns = random_columns(2600, rng)
    for left, right, pool in (("i", "j", INTS), ("f", "g", FLOATS), ("s", "t", TEXTS), ("u", "v", MOMENTS)):
        pairs: list[tuple[Any, Any]] = [(x, y) for x in [*pool, None] for y in [*pool, None]]
        rng.shuffle(pairs)
        for row, (x, y) in zip(range(2600), pairs, strict=False):
            columns[left][row], columns[right][row] = x, y
    return Loaded(native, columns, frozenset(), rng)


WHOLE, OTHER, REAL = (leaf for name in "ijf" for leaf in LEAVES if leaf.name == name)
PLACES = (0, 1, 2, 17, 18)
DECIMALS = [
    *(Call("decimal order", (WHOLE, OTHER, Literal(p), Literal(q))) for p in PLACES for q in PLACES),
    *(Call("decimal order", (WHOLE, REAL, Literal(p), Literal(0))) for p in PLACES),
    *(Call("decimal quotient", (WHOLE, OTHER, Literal(p))) for q in PLACES for p in (q, -q)),
    *(Call(f"decimal {name}", (WHOLE, Literal(p))) for name in ("floor", "ceil") for p in PLACES),
]


@pytest.mark.parametrize("text", thinned([*EXPRESSIONS, *DECIMALS], 3), ids=str)
def test_program_gives_what_python_gives(text: str | Expr, grid: Loaded) -> None:
    expr = expression(text) if isinstance(text, str) else text
    wanted = grid.expected(expr)
    program = grid.lower(expr)
    for block in (256, 7, 1):
        got = grid.values(program, block)
        wrong = [row for row in range(grid.rows) if not same(got[row], wanted[row], program.result)]
        assert not wrong, [(wrong[0], got[wrong[0]], wanted[wrong[0]]), program_lines(program)]
        assert grid.passed(program, block) == [value is True for value in wanted]


def test_every_operation_occurs(grid: Loaded) -> None:
    programs = [grid.lower(expr) for expr in [*map(expression, EXPRESSIONS), *DECIMALS]]
    met = Counter(line.split()[2] for p in programs for line in program_lines(p)[:-1])
    assert set(met) == {op.name for op in Op} - {"RETURN"}


SINGLES = ("", "iftup", "jgsvq", "ijfgstuvpq")
OPERANDS = {"numbers": ("i", "j", "f", "g"), "texts": ("s", "t"), "moments": ("u", "v"), "truths": ("p", "q")}
CHOOSING = ("least({}, {})", "greatest({}, {})", "coalesce({}, {})")
OPERATIONS = {
    # The choice of an integer and a float is a program only where it is compared.
    "numbers": (*(f"{{}} {op} {{}}" for op in ARITHMETIC), "power({}, {})", *(f"{choice} > 3" for choice in CHOOSING)),
    "texts": CHOOSING,
    "moments": CHOOSING,
    "truths": ("{} AND {}", "{} OR {}", *CHOOSING),
}


@pytest.mark.parametrize("single", SINGLES)
@pytest.mark.parametrize("kind", OPERANDS)
def test_each_operation_takes_one_value_or_a_column_on_each_side(kind: str, single: str) -> None:
    """The core has code of its own for one value, for a column, and for each type of numbers."""
    rng = random.Random(kind)
    forms = (*OPERATIONS[kind], *(f"{{}} {op} {{}}" for op in COMPARING))
    for nulls in (0.0, 0.3):
        loaded = Loaded(native, random_columns(70, rng, nulls), frozenset(single), rng)
        for form, left, right in product(forms, OPERANDS[kind], OPERANDS[kind]):
            expr = expression(form.format(f"a.{left}", f"a.{right}"))
            program = loaded.lower(expr)
            values, wanted = loaded.values(program, 32), loaded.expected(expr)
            assert all(map(same, values, wanted, [program.result] * 70)), (form, left, right, values, wanted)


def test_both_sides_have_the_same_operations() -> None:
    assert native.operations() == [(op.name, READS[op]) for op in Op]


def test_conjunctions_of_comparisons_take_the_short_way(grid: Loaded) -> None:
    for text, short in (
        ("a.i > 3", True),
        ("a.p", True),
        ("a.i > a.j AND a.s = 'a' AND a.p AND a.i <= a.f", True),
        ("a.i BETWEEN 3 AND a.j", True),
        ("a.i + 1 > 3", False),  # it is null where the sum is, for great values
        ("a.i + 1 != 3", False),
        ("a.i + a.j < 3", False),
        ("a.i + 1 < a.j", False),
        ("a.i + 1 < 3", True),
        ("a.i - 1 >= 3", True),
        ("1 + a.i = 3 AND a.j - 2 > 0", True),
        ("a.i > 3 OR a.p", False),
        ("a.s > 'a'", False),
        ("a.i", False),
    ):
        assert grid.build(grid.lower(expression(text))).short_way == short, text


def test_the_truth_of_a_sum_is_not_that_of_its_input() -> None:
    code = [Op.LEAF, 0, 0, Op.CONST, 1, 1, Op.ADD_I, 2, 0, 1, Op.TRUTH, 3, 2, Op.RETURN, 3]
    program = native.BlockProgram(np.array(code, np.int64), 4, 1)
    assert program.test(3, [(np.array([-1, 0, 1]), None)], native.Texts()).tolist() == [0, 1, 1]


# Random expressions, by kind of value.


def _leaf(*names: str) -> st.SearchStrategy[Expr]:
    return st.sampled_from([leaf for leaf in LEAVES if leaf.name in names])


ints = st.one_of(st.sampled_from(INTS), st.integers(-5, 5)).map(Literal)
floats = st.one_of(st.sampled_from([x for x in FLOATS if math.isfinite(x)]), st.floats(-9, 9)).map(Literal)
texts = st.sampled_from(TEXTS).map(Literal)


NULL = st.just(Literal(None))


def calls(names: tuple[str, ...], *args: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    return st.builds(Call, st.sampled_from(names), st.tuples(*args))


def choices(part: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    names = st.sampled_from(("least", "greatest", "coalesce"))
    return st.builds(Call, names, st.lists(part, min_size=2, max_size=4).map(tuple))


def cases_of(part: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    whens = st.one_of(_leaf("p", "q"), NULL, st.builds(Binary, st.sampled_from(COMPARING), _leaf("i", "f"), _leaf("j")))
    pairs = st.lists(st.tuples(whens, part), min_size=1, max_size=3)
    return st.builds(lambda pairs, other: Call(CASE, (*(x for pair in pairs for x in pair), other)), pairs, part)


def bigger_texts(part: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    return st.one_of(choices(part), cases_of(part))


def bigger_numbers(part: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    return st.one_of(
        st.builds(Binary, st.sampled_from(ARITHMETIC), part, part),
        st.builds(Unary, st.just("-"), part),
        calls(("abs", "floor", "ceil", "round", "sign", "sqrt", "exp", "ln", "log10"), part),
        calls(("round",), part, st.one_of(st.integers(-20, 20).map(Literal), _leaf("k"))),
        calls(("power",), part, part),
        calls(("hour", "day", "month", "dayofweek"), _leaf("u", "i")),
        choices(part),
        cases_of(part),
    )


numbers = st.recursive(
    st.one_of(_leaf("i", "j", "k"), _leaf("f", "g"), ints, floats, _leaf("n"), NULL), bigger_numbers, max_leaves=6
)
strings = st.recursive(st.one_of(_leaf("s", "t"), texts, NULL), bigger_texts, max_leaves=3)
moments = st.recursive(st.one_of(_leaf("u", "v"), NULL), bigger_texts, max_leaves=3)
bools = st.one_of(_leaf("p", "q"), st.sampled_from([True, False, None]).map(Literal))


def conditions_of(part: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    return st.one_of(
        st.builds(Binary, st.sampled_from(COMPARING), part, part),
        st.builds(In, part, st.lists(part, min_size=1, max_size=12).map(tuple), st.booleans()),
        st.builds(Between, part, part, part, st.booleans()),
        st.builds(IsNull, part, st.booleans()),
    )


conditions = st.recursive(
    st.one_of(bools, conditions_of(numbers), conditions_of(numbers), conditions_of(strings), conditions_of(moments)),
    lambda part: st.one_of(
        st.builds(Binary, st.sampled_from(("and", "or")), part, part),
        st.builds(Unary, st.just("not"), part),
        st.builds(Binary, st.sampled_from(COMPARING), part, part),
        choices(part),
    ),
    max_leaves=6,
)


@settings(max_examples=settings().max_examples * 10)
@given(
    expr=st.one_of(conditions, conditions, numbers, strings, moments),
    seed=st.integers(0, 2**32),
    rows=st.one_of(st.integers(1, 20), st.sampled_from([255, 256, 257, 400])),
    block=st.one_of(st.just(1), st.integers(1, 256), st.just(256)),
    single=st.frozensets(st.sampled_from(sorted(KINDS)), max_size=len(KINDS)),
)
def test_random_programs(expr: Expr, seed: int, rows: int, block: int, single: frozenset[str]) -> None:
    rng = random.Random(seed)
    loaded = Loaded(native, random_columns(rows, rng), single, rng)
    try:
        program = loaded.lower(expr)
    except CannotLower as error:
        # Both depend on what is drawn; nothing else is refused.
        if "integer in some rows" not in error.reason and "digits" not in error.reason:
            raise
        assume(False)
    wanted = loaded.expected(expr)
    got = loaded.values(program, block)
    assert [row for row in range(rows) if not same(got[row], wanted[row], program.result)] == []
    assert loaded.passed(program, block) == [value is True for value in wanted]


# Hostile words.

small_words = st.one_of(st.integers(-3, 80), st.sampled_from([-(2**63), 2**63 - 1, 2**31, 2**32, 1 << 20]))


def runs_or_is_refused(code: list[int], slots: int, leaves: int, grid: Loaded) -> bool:
    """Whether the words are a program; if they are, it runs over whatever is in the columns."""
    try:
        program = native.BlockProgram(np.array(code, np.int64), slots, leaves)
    except ValueError:
        return False
    rng = np.random.default_rng(len(code))
    for rows in (1, 300):
        words = rng.integers(-(2**63), 2**63 - 1, (leaves, rows), np.int64)
        inputs = [(row, rng.integers(0, 2, rows, np.uint8) if i % 2 else None) for i, row in enumerate(words)]
        program.test(rows, inputs, grid.texts)
        program.value(rows, inputs, grid.texts)
    return True


@settings(max_examples=settings().max_examples * 10)
@given(st.lists(small_words, max_size=40), st.integers(-2, 2000), st.integers(-2, 12))
def test_random_words(code: list[int], slots: int, leaves: int) -> None:
    loaded = Loaded(native, random_columns(2, random.Random(0)), frozenset(), random.Random(0))
    runs_or_is_refused(code, slots, leaves, loaded)


@settings(max_examples=settings().max_examples * 10)
@given(st.data())
def test_spoiled_programs(data: st.DataObject) -> None:
    loaded = Loaded(native, random_columns(2, random.Random(0)), frozenset(), random.Random(0))
    program = loaded.lower(expression(data.draw(st.sampled_from(EXPRESSIONS))))
    code, slots = list(program.code), program.slots
    for _ in range(data.draw(st.integers(1, 3))):
        match data.draw(st.sampled_from(["word", "cut", "more", "slots"])):
            case "word":
                code[data.draw(st.integers(0, len(code) - 1))] = data.draw(small_words)
            case "cut":
                del code[data.draw(st.integers(1, len(code))) :]
            case "more":
                code.insert(data.draw(st.integers(0, len(code))), data.draw(small_words))
            case "slots":
                slots = data.draw(st.integers(-1, 3000))
    runs_or_is_refused(code, slots, len(LEAVES), loaded)


@pytest.mark.long
def test_no_shortened_program_is_accepted(grid: Loaded) -> None:
    for text in EXPRESSIONS:
        program = grid.lower(expression(text))
        for length in range(len(program.code)):
            assert not runs_or_is_refused(list(program.code[:length]), program.slots, program.leaves, grid)
        assert not runs_or_is_refused([*program.code, 0], program.slots, program.leaves, grid)


@pytest.mark.parametrize(
    ("code", "slots", "leaves"),
    [
        ([], 1, 0),
        ([Op.RETURN, 0], 1, 0),
        ([Op.LEAF, 0, 1, Op.RETURN, 0], 1, 1),
        ([Op.LEAF, 1, 0, Op.RETURN, 1], 1, 1),
        ([Op.CONST, 0, 1, Op.NOT, 1, 0, Op.RETURN, 1], 2, 0),
        ([Op.CONST, 0, 1, Op.NEG_I, 0, 0, Op.RETURN, 0], 2, 0),
        ([Op.CONST, 0, 1, Op.IN_I, 1, 0, 2**40, 1, Op.RETURN, 1], 2, 0),
        ([Op.CONST, 0, 1, Op.PART, 1, 0, 7, 1, 1, Op.RETURN, 1], 2, 0),
        ([Op.CONST, 0, 1, Op.PART, 1, 0, 0, 1, 0, Op.RETURN, 1], 2, 0),
        ([Op.CONST, 0, 1, Op.RETURN, 0], 2**40, 0),
        ([Op.CONST, 0, 1, Op.RETURN, 0], 0, 0),
        ([Op.CONST, 0, 1, Op.RETURN, 0], 1, -1),
        ([len(Op), 0, 1, Op.RETURN, 0], 1, 0),
    ],
)
def test_words_that_are_no_program(code: list[int], slots: int, leaves: int) -> None:
    with pytest.raises(ValueError, match="block program"):
        native.BlockProgram(np.array(code, np.int64), slots, leaves)


def test_inputs_that_do_not_fit(grid: Loaded) -> None:
    program = grid.build(grid.lower(expression("a.i > a.j")))
    good = grid.inputs
    for inputs in (
        good[:-1],
        [(np.zeros(3, np.int64), None), *good[1:]],
        [(good[0][0], np.ones(3, np.uint8)), *good[1:]],
    ):
        with pytest.raises(ValueError, match="leaves"):
            program.test(grid.rows, inputs, grid.texts)
    with pytest.raises(ValueError, match="block"):
        program.value(grid.rows, good, grid.texts, 257)


# Numbers and texts.

wide = st.one_of(
    st.integers(-(2**126), 2**126),
    st.builds(lambda m, e, d: (m << e) + d, st.integers(-(2**54), 2**54), st.integers(0, 70), st.integers(-2, 2)),
)


@settings(max_examples=settings().max_examples * 20)
@given(wide, st.one_of(st.sampled_from(INTS), st.integers(-(2**63), 2**63 - 1), st.integers(1, 1000)))
def test_quotients_are_rounded_as_in_python(numerator: int, denominator: int) -> None:
    assume(denominator != 0)
    got = native.divide(numerator >> 64, numerator & (2**64 - 1), denominator)
    wanted = numerator / denominator
    assert (got, math.copysign(1, got)) == (wanted, math.copysign(1, wanted))


def test_texts_keep_their_codes_until_they_are_released() -> None:
    kept = native.Texts()
    codes = kept.intern_all(TEXTS)
    assert sorted(codes.tolist()) == list(range(len(TEXTS))) == sorted(kept.intern_all(TEXTS).tolist())
    assert [kept.text(int(code)) for code in codes] == TEXTS
    assert sorted(TEXTS) == [kept.text(c) for c in sorted(range(len(TEXTS)), key=Rank(kept))]
    kept.release(codes[2:4])
    assert len(kept) == len(TEXTS) - 2
    for code in (int(codes[2]), -1, len(TEXTS), 2**63 - 1):
        with pytest.raises(ValueError, match="texts"):
            kept.text(code)
        with pytest.raises(ValueError, match="texts"):
            kept.release(np.array([code]))
    assert {kept.intern("new"), kept.intern("newer")} == set(codes[2:4].tolist())
    assert kept.intern("newest") == kept.capacity - 1 == len(TEXTS)


class Rank:
    """Sorts codes by the order of their texts."""

    def __init__(self, kept: Any) -> None:
        self.kept = kept

    def __call__(self, code: int) -> int:
        return sum(self.kept.order(other, code) < 0 for other in range(self.kept.capacity))


def test_ever_new_texts_need_no_more_room(cases: Callable[[int], int]) -> None:
    kept = native.Texts()
    for turn in range(cases(200)):
        kept.release(kept.intern_all([f"text {turn} {i}" for i in range(50)]))
    assert (len(kept), kept.capacity) == (0, 50)


@pytest.mark.long
def test_columns_hold_every_kind() -> None:
    assert set(KINDS.values()) == set(Kind)
