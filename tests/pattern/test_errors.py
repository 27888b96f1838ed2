"""What is said of queries that cannot be read: every message with its place, and that nothing else ever comes out.

``messages.txt`` holds query and message, one pair after another; ``re:`` marks a letter expression. A message that is
meant to change is changed there, by hand.
"""

from __future__ import annotations

import random
import re
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import acep
from acep.errors import QueryError
from acep.pattern.printing import canonical, tree_lines
from acep.pattern.text.syntax import LONGEST
from tests.pattern.test_sase import EXPRESSIONS, PATTERNS, QUERY_1, QUERY_2, QUERY_3
from tests.thinned import thinned

MESSAGES = [
    tuple(block.split("\n----\n"))
    for block in Path(__file__)
    .with_name("messages.txt")
    .read_text(encoding="utf-8")
    .removesuffix("\n")
    .split("\n====\n")
]


def read(text: str) -> acep.Query:
    if text.startswith("re:"):
        return acep.regex(text[3:], within=5)
    return acep.parse(text)


@pytest.mark.parametrize(("text", "message"), MESSAGES)
def test_message(text: str, message: str) -> None:
    with pytest.raises(QueryError) as caught:
        read(text)
    assert caught.value.render() == message
    assert (caught.value.line or 0) >= 1
    assert (caught.value.column or 0) >= 1


def test_each_message_is_written_once() -> None:
    assert len({text for text, _ in MESSAGES}) == len(MESSAGES)


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("PATTERN SEQ(A a,\n  B b)\nWHERE a.x = c.x", 3, 13),
        ("PATTERN SEQ(A a,\r\n\tB b)\r\nWHERE\ta..x = 1", 3, 9),
        ("PATTERN SEQ(Ä ä, B b) WHERE ö.x = 1", 1, 29),
        ("/* one\ntwo */ PATTERN A a\nWITHIN x", 3, 8),
        ("   \n ", 1, 1),
        ("PATTERN A a \x07", 1, 13),
    ],
)
def test_line_and_column(text: str, line: int, column: int) -> None:
    with pytest.raises(QueryError) as caught:
        acep.parse(text)
    assert (caught.value.line, caught.value.column) == (line, column)


def test_a_query_is_a_text() -> None:
    with pytest.raises(QueryError, match="a query is a text, not bytes"):
        acep.parse(b"PATTERN A a")  # type: ignore[arg-type]
    with pytest.raises(QueryError, match="a letter expression is a text, not NoneType"):
        acep.regex(None, within=5)  # type: ignore[arg-type]


@pytest.mark.parametrize("keyword", ["WHERE", "WITHIN", "skip_till_any_match", "5 sec", "min", "IS", "AND"])
def test_letters_that_only_look_like_a_keyword(keyword: str) -> None:
    for plain, other in (("s", "\N{LATIN SMALL LETTER LONG S}"), ("i", "\N{LATIN SMALL LETTER DOTLESS I}")):
        word = keyword.lower().replace(plain, other)
        for text in ("PATTERN A a WHERE a.x > 1 " + word, "PATTERN A a WHERE " + word, "PATTERN A a " + word + " 5"):
            settle(text)
            settle(text + " a.x > 1")


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (
            "PATTERN SEQ("
            + ", ".join(f"A a{i}" for i in range(100, 180))
            + ", B b) WHERE zz.x > 1"
            + " AND b.x > 1" * 100,
            [
                "unknown variable `zz` (line 1, column 664)",
                "  ..., A a175, A a176, A a177, A a178, A a179, B b) WHERE zz.x > 1"
                + (" AND b.x > 1" * 9)[:99]
                + "...",
                " " * 58 + "^^^^",
            ],
        ),
        (
            "PATTERN A a WHERE " + "b" * 90_000 + ".x > 1",
            [
                "unknown variable `" + "b" * 282 + " ... " + "b" * 99 + "` (line 1, column 19)",
                "  PATTERN A a WHERE " + "b" * 142 + "...",
                "  " + " " * 18 + "^" * 142,
            ],
        ),
        (
            "PATTERN A a WHERE a.s = '\x1b[31m\0' AND c.x = 1",
            [
                "unknown variable `c` (line 1, column 38)",
                "  PATTERN A a WHERE a.s = '\N{REPLACEMENT CHARACTER}[31m\N{REPLACEMENT CHARACTER}' AND c.x = 1",
                " " * 39 + "^^^",
            ],
        ),
    ],
    ids=["long line", "long name", "control characters"],
)
def test_a_message_is_for_its_reader(text: str, lines: list[str]) -> None:
    with pytest.raises(QueryError) as caught:
        acep.parse(text)
    assert caught.value.render(coded=False).splitlines()[:3] == lines


def test_names_in_messages_stay_on_their_line() -> None:
    error = QueryError("unknown column `a\nb\x1b`", hint="did you mean `a\tb`?")
    assert str(error) == "unknown column `a\\nb\\x1b` [query_invalid]\nhint: did you mean `a\\tb`?"
    assert len(str(QueryError("x" * 100_000))) < 1000


@pytest.mark.parametrize("text", ["PATTERN '\udc80' a", "PATTERN A `\ud800`", "re:'\udfff'", "\udc80"])
def test_half_of_a_character_pair_is_no_text(text: str) -> None:
    with pytest.raises(QueryError, match="is no character"):
        read(text)


# ---- hostile text: an error or a query, and soon

WHERE = "PATTERN SEQ(A a) WHERE "
MANY = 40_000

HOSTILE = {
    "too long": "x" * (LONGEST + 1),
    "open parentheses": WHERE + "(" * MANY,
    "parentheses": WHERE + "(" * (MANY // 2) + "a.x > 1" + ")" * (MANY // 2),
    "open groups": "PATTERN " + "(" * MANY,
    "groups": "PATTERN " + "(" * (MANY // 2) + "A a" + ")" * (MANY // 2),
    "not": WHERE + "NOT " * (MANY // 4) + "a.x",
    "bang": WHERE + "!" * MANY + "a.x",
    "tilde": "PATTERN SEQ(" + "~" * MANY,
    "minus": WHERE + "a.x > " + "- " * (MANY // 2) + "1",
    "sum": WHERE + "a.x > " + "1+" * (MANY // 2) + "1",
    "products": WHERE + "a.x > " + "1*(" * (MANY // 4) + "1" + ")" * (MANY // 4),
    "and": WHERE + " and ".join(["a.x>1"] * (MANY // 10)),
    "or": WHERE + " or ".join(["a.x>1"] * (MANY // 10)),
    "components": "PATTERN SEQ(" + ",".join(f"A a{i}" for i in range(9_999)) + ")",
    "too many components": "PATTERN SEQ(" + ",".join(f"A a{i}" for i in range(10_001)) + ")",
    "alternatives": "PATTERN (" + "|".join("A a" for i in range(9_999)) + ")",
    "repetitions of repetitions": "PATTERN " + "SEQ(" * 20 + "A{100} a[]" + "){100}" * 20,
    "compositions": "FROM (" * (MANY // 6),
    "nested compositions": "FROM (" * 60 + "PATTERN A a" + ") AS T PATTERN T t" * 60,
    "digits": WHERE + "a.x > " + "9" * MANY,
    "decimals": WHERE + "a.x > 0." + "0" * MANY,
    "exponent": WHERE + "a.x > 1e" + "9" * MANY,
    "small exponent": WHERE + "a.x > 1e-99999999",
    "window": "PATTERN A a WITHIN " + "9" * MANY,
    "large window": "PATTERN A a WITHIN 1e400 h",
    "bound": "PATTERN A{" + "9" * MANY + "} a[]",
    "index": WHERE + "a[" + "9" * MANY + "].x = 1",
    "text": WHERE + "a.x > '" + "''" * (MANY // 2),
    "quotes": WHERE + "'" * MANY,
    "backquotes": "`" * MANY,
    "names": "PATTERN " + "A" * (MANY // 2) + " " + "a" * (MANY // 2),
    "unknown name": WHERE + "b" * MANY + ".x > 1",
    "unknown among many": "PATTERN SEQ(" + ",".join(f"A a{i}" for i in range(7000)) + ") WHERE b77777.x > 1",
    "comments": "PATTERN A a " + "/* */" * (MANY // 5),
    "open comments": "PATTERN A a " + "/* " * (MANY // 3),
    "percents": WHERE + "a.x > " + "80% " * (MANY // 4),
    "spaces": WHERE + "a.x > 80%" + " " * MANY,
    "lines": "\n" * MANY,
    "words": "PATTERN " + "abc " * (MANY // 4),
    "wheres": "PATTERN A a WHERE skip_til_nxt_match " + "where skip_til_nxt_match " * (MANY // 25),
    "equalities": "PATTERN SEQ("
    + ",".join(f"A a{i}" for i in range(2000))
    + ") WHERE "
    + " and ".join(f"a{i}.x=a{i + 1}.x" for i in range(1999)),
    "calls": WHERE + "abs(" * (MANY // 4),
    "closed calls": WHERE + "abs(" * 140 + "a.x" + ")" * 140 + " > 1",
    "values": WHERE + "a.x in (" + ",".join("1" for _ in range(MANY // 2)) + ")",
    "ties": WHERE + "[" + ",".join(f"k{i}" for i in range(15_000)) + "]",
    "strategy": WHERE + "skip_till_any_match(" + ",".join("a" for _ in range(MANY // 2)) + ")",
    "returns": "PATTERN A a RETURN " + ",".join(f"a.x as k{i}" for i in range(7000)),
    "brackets": "PATTERN SEQ(A a " + "[(" * (MANY // 2),
    "re: open": "re:" + "(" * MANY,
    "re: groups": "re:" + "(" * (MANY // 2) + "a" + ")" * (MANY // 2),
    "re: letters": "re:" + "a" * MANY,
    "re: alternatives": "re:" + "|".join("a" * (MANY // 2)),
    "re: repetitions": "re:(((a{100}b){100}c){100}d){100}",
    "re: nested": "re:" + "(" * 100 + "a" + ")+" * 100,
    "re: quotes": "re:" + "'" * MANY,
    "re: bound": "re:a{" + "9" * MANY + "}",
}


@pytest.mark.parametrize("name", thinned([*HOSTILE], 4))
def test_hostile_text(name: str) -> None:
    begin = time.process_time()
    try:
        query = read(HOSTILE[name])
    except QueryError as error:
        error.render()
    else:
        hash(query)
        canonical(query)
        tree_lines(query)
    assert time.process_time() - begin < 20


# ---- random text

VALID = [
    QUERY_1,
    QUERY_2,
    QUERY_3,
    *(f"PATTERN {p}" for p in PATTERNS),
    *(f"PATTERN SEQ(A+ a[], B b) WHERE {e} WITHIN 5 min" for e in EXPRESSIONS),
    "FROM (PATTERN SEQ(A a, B b) WITHIN 5 RETURN a.x AS x) AS T PATTERN {t, T+ u[]} HAVING count(u[]) > 2 OUTPUT ALL",
]
SOUP = [
    *sorted(set(re.findall(r"\w+|[^\w\s]", " ".join(VALID)))),
    *["a[i].x", "a[i-1].x", "a.x", "b.y", "a[]", "1 hour", "500 EVENTS", "TIMESTAMP '2024-01-01'", "'x'", '"y"', "`z`"],
    *["", "''", "/* c */", "/*", "--", "\n", "&&", "||", "==", "#", "\N{RIGHT SINGLE QUOTATION MARK}", "\x00"],
]


def settle(text: str) -> None:
    """Only a query or a :class:`QueryError` may come out; what is read is read alike once more."""
    try:
        query = read(text)
    except QueryError as error:
        error.render()
        return
    tree_lines(query)
    once = canonical(query)
    if not query.letters:
        again = acep.parse(once, errors=query.errors, weights=dict(query.weights), surplus=query.surplus)
        assert canonical(again) == once
        assert again.pattern == query.pattern


@given(st.text(max_size=60))
def test_random_text(text: str) -> None:
    settle(text)
    settle("PATTERN " + text)
    settle("PATTERN SEQ(A+ a[], B b) WHERE " + text)
    settle("re:" + text)


@given(st.lists(st.sampled_from(SOUP), max_size=25), st.sampled_from(["", " "]))
def test_random_tokens(tokens: list[str], between: str) -> None:
    settle(between.join(tokens))
    settle("PATTERN SEQ(" + between.join(tokens))
    settle("PATTERN SEQ(A+ a[], B b) WHERE " + between.join(tokens))


@given(st.sampled_from(VALID), st.integers(0, 2**32), st.integers(1, 4))
def test_mutated_queries(text: str, seed: int, changes: int) -> None:
    rng = random.Random(seed)
    for _ in range(changes):
        at = rng.randrange(len(text) + 1)
        to = min(len(text), at + rng.choice([0, 1, 1, 3, 8]))
        put = rng.choice(["", rng.choice(SOUP), rng.choice(VALID)[:20], text[at:to] * 2, chr(rng.randrange(0x110000))])
        text = text[:at] + put + text[to:]
    settle(text)


@given(st.text("ab01.|()[]{}+*?, '\"", max_size=30))
def test_random_letters(text: str) -> None:
    settle("re:" + text)
