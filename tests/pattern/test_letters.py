"""Letter expressions to trees."""

from __future__ import annotations

import math
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import acep
from acep.errors import QueryError
from acep.pattern.printing import canonical
from acep.pattern.tree import Choice, Component, Node, Output, Query, Repeat, Sequence, Strategy, Within

ANY = Component(".", ())


def c(letter: str) -> Component:
    return Component(letter, (letter,))


def seq(*items: Node) -> Sequence:
    return Sequence(items)


def one_of(*items: Node) -> Choice:
    return Choice(items)


# Equation (1) of the 2016 paper: two or more tweets of one kind, then two or more of another.
EQUATION_1 = "[Sa(b|d|w|r)E]{2+} [Sa(g|e|u)E]{2+}"

EXPRESSIONS: dict[str, Node] = {
    "a": c("a"),
    "ab": seq(c("a"), c("b")),
    " a\n b ": seq(c("a"), c("b")),
    "aa": seq(c("a"), c("a")),
    "a(b|c)db": seq(c("a"), one_of(c("b"), c("c")), c("d"), c("b")),
    "a|b|c": one_of(c("a"), c("b"), c("c")),
    "ab|c": one_of(seq(c("a"), c("b")), c("c")),
    "a|(b|c)": one_of(c("a"), c("b"), c("c")),
    "a*b+c?": seq(Repeat(c("a"), 0, None), Repeat(c("b"), 1, None), Repeat(c("c"), 0, 1)),
    "a{2}b{2,}c{2,4}d{2+}e{,3}": seq(
        Repeat(c("a"), 2, 2),
        Repeat(c("b"), 2, None),
        Repeat(c("c"), 2, 4),
        Repeat(c("d"), 2, None),
        Repeat(c("e"), 0, 3),
    ),
    "a { 2 , 4 }": Repeat(c("a"), 2, 4),
    "a{1}": c("a"),
    "a2": seq(c("a"), c("2")),
    "äß7": seq(c("ä"), c("ß"), c("7")),
    ".": ANY,
    "a.*b": seq(c("a"), Repeat(ANY, 0, None), c("b")),
    "'SUBMIT''FAIL'": c("SUBMIT'FAIL"),
    "'SUBMIT' 'FAIL'+": seq(c("SUBMIT"), Repeat(c("FAIL"), 1, None)),
    '"ER Triage"`it``s`': seq(c("ER Triage"), c("it`s")),
    "'a'a": seq(c("a"), c("a")),
    "'.'.": seq(Component("'.'", (".",)), ANY),
    "(ab)+": Repeat(seq(c("a"), c("b")), 1, None),
    "[ab]+": Repeat(seq(c("a"), c("b")), 1, None),
    "(a|b)*c": seq(Repeat(one_of(c("a"), c("b")), 0, None), c("c")),
    "((a))+": Repeat(c("a"), 1, None),
    "(a+)*": Repeat(c("a"), 0, None),
    "(a{2})?": Repeat(Repeat(c("a"), 2, 2), 0, 1),
    "(ab)(c(d))": seq(c("a"), c("b"), c("c"), c("d")),
    EQUATION_1: seq(
        Repeat(seq(c("S"), c("a"), one_of(c("b"), c("d"), c("w"), c("r")), c("E")), 2, None),
        Repeat(seq(c("S"), c("a"), one_of(c("g"), c("e"), c("u")), c("E")), 2, None),
    ),
}


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_expression(text: str) -> None:
    query = acep.regex(text, within=5)
    assert query.pattern == EXPRESSIONS[text]
    assert query.letters
    assert query.text == text


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_the_canonical_text_reads_as_the_same_expression(text: str) -> None:
    once = canonical(acep.regex(text, within=5)).removeprefix("LETTERS ").removesuffix(" WITHIN 5")
    assert acep.regex(once, within=5).pattern == EXPRESSIONS[text]


@pytest.mark.parametrize(
    ("within", "window"),
    [
        (None, None),
        (5, Within(Fraction(5), "ticks")),
        (2.5, Within(Fraction(5, 2), "ticks")),
        (Fraction(1, 3), Within(Fraction(1, 3), "ticks")),
        (0, Within(Fraction(0), "ticks")),
        ("5", Within(Fraction(5), "ticks")),
        ("5 EVENTS", Within(Fraction(5), "events")),
        (" 1.5h ", Within(Fraction(5_400_000_000_000), "ns")),
        ("1 hour", Within(Fraction(3_600_000_000_000), "ns")),
        (timedelta(milliseconds=250), Within(Fraction(250_000_000), "ns")),
    ],
)
def test_within(within: Any, window: Within | None) -> None:
    assert acep.regex("ab", within=within).within == window


def test_options() -> None:
    query = acep.regex(
        "ab",
        within=5,
        errors=Decimal("1.5"),
        by=["user", "symbol", "user"],
        strategy="skip_till_next_match",
        weights={"a": 2, "b": math.inf},
        output="non overlap",
    )
    assert query == Query(
        text="ab",
        pattern=seq(c("a"), c("b")),
        strategy=Strategy.SKIP_TILL_NEXT_MATCH,
        ties=("user", "symbol"),
        within=Within(Fraction(5), "ticks"),
        output=Output.NON_OVERLAP,
        errors=Fraction(3, 2),
        weights=(("a", Fraction(2)), ("b", None)),
        letters=True,
    )
    assert acep.regex("ab", by="user").ties == ("user",)
    assert acep.regex("ab", strategy=Strategy.STRICT_CONTIGUITY).strategy is Strategy.STRICT_CONTIGUITY
    assert acep.regex("ab", output=Output.EARLIEST_MAXIMAL).output is Output.EARLIEST_MAXIMAL


@pytest.mark.parametrize(
    ("options", "message", "hint"),
    [
        ({"within": -1}, "WITHIN needs a positive length", None),
        ({"within": "x"}, "`x` is not a window", 'write "1 hour", "5 EVENTS" or a number'),
        ({"within": "5 huors"}, "unknown unit `huors`", "did you mean `hours`?"),
        ({"within": math.nan}, "within=nan is not a window", 'write "1 hour", "5 EVENTS" or a number'),
        ({"within": True}, "within=True is not a window", 'write "1 hour", "5 EVENTS" or a number'),
        ({"within": "1.5 EVENTS"}, "WITHIN needs a whole number of events", None),
        ({"errors": -1}, "errors=-1 is not an error budget", "a number, at least 0 and finite"),
        ({"errors": math.inf}, "errors=inf is not an error budget", "a number, at least 0 and finite"),
        ({"errors": "1"}, "errors='1' is not an error budget", "a number, at least 0 and finite"),
        ({"errors": True}, "errors=True is not an error budget", "a number, at least 0 and finite"),
        ({"by": 3}, "by=3 is not a list of attributes", 'by="symbol" or by=["symbol", "user"]'),
        ({"by": [""]}, "by=[''] is not a list of attributes", 'by="symbol" or by=["symbol", "user"]'),
        ({"strategy": "skip_till_nxt"}, "unknown strategy `skip_till_nxt`", "did you mean `skip_till_next_match`"),
        (
            {"output": "some"},
            "unknown output `some`",
            "known: `all`, `earliest_maximal`, `longest_non_overlap`, `non_overlap`",
        ),
        ({"weights": {"z": 2}}, "weights: unknown variable `z`", "known: `a`, `b`"),
        ({"weights": {"a": 0}}, "weights: 0 is no weight for `a`", "a positive number, or math.inf"),
        ({"weights": {"a": -math.inf}}, "weights: -inf is no weight for `a`", "a positive number, or math.inf"),
        ({"weights": [2]}, "weights=[2] is not a mapping", 'weights={"a": 2}'),
    ],
)
def test_bad_options(options: dict[str, Any], message: str, hint: str | None) -> None:
    with pytest.raises(QueryError) as caught:
        acep.regex("ab", **{"within": 5, **options})
    assert caught.value.message == message
    assert (caught.value.hint or "").startswith(hint or "")
    assert (caught.value.hint is None) == (hint is None)


def test_an_array_without_dimensions_is_no_list_of_attributes() -> None:
    with pytest.raises(acep.QueryError, match="is not a list of attributes"):
        acep.regex("a", within=5, by=np.array(1))  # type: ignore[arg-type]
