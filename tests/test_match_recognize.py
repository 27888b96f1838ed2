"""The own queries on the page about MATCH_RECOGNIZE, compared with SQL rules (tests/match_recognize.py) on random rows.

Where a query is not exact, the page says so, and a case here shows the difference.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Any

import pytest

import acep
from tests.case_counts import CaseCounts
from tests.match_recognize import (
    Define,
    Part,
    Seen,
    alt,
    begin,
    end,
    exclude,
    permute,
    recognize,
    rep,
    row,
    seq,
    shown,
)
from tests.test_other_languages import HOWTO

PAGE = HOWTO / "from_match_recognize.md"
LONGEST = "OUTPUT LONGEST NON OVERLAP"
NEXT = ("next",)
SHORTEST = "OUTPUT SHORTEST NON OVERLAP"
TO = "OUTPUT LONGEST AFTER MATCH SKIP TO"
TO_NEXT = f"{TO} NEXT EVENT"


def kind(*kinds: str) -> Callable[[Seen], bool]:
    return lambda seen: seen["kind"] in kinds


def less(one: Any, other: Any) -> bool | None:
    """A comparison with null is unknown."""
    return None if one is None or other is None else one < other


def not_more(one: Any, other: Any) -> bool | None:
    return None if one is None or other is None else one <= other


def falls(seen: Seen) -> bool | None:
    return less(seen["price"], seen.prev("price"))


def rises(seen: Seen) -> bool | None:
    return less(seen.prev("price"), seen["price"])


def not_up(seen: Seen) -> bool | None:
    return not_more(seen["price"], seen.prev("price"))


def not_down(seen: Seen) -> bool | None:
    return not_more(seen.prev("price"), seen["price"])


def same_ref(seen: Seen) -> bool | None:
    first = seen.first("a", "ref")
    return None if first is None or seen["ref"] is None else bool(first == seen["ref"])


def not_below_the_first(seen: Seen) -> bool | None:
    return not_more(seen.first("b", "price"), seen["price"])


def soon_cheaper(seen: Seen) -> bool:
    soon = seen["ts"] - seen.first("a", "ts") < 5
    return soon and bool(less(seen["price"], seen.first("a", "price")))


def plus(var: str, *, greedy: bool = True) -> Part:
    return rep(row(var), 1, greedy=greedy)


def star(var: str, *, greedy: bool = True) -> Part:
    return rep(row(var), 0, greedy=greedy)


@cache
def streams() -> tuple[tuple[dict[str, Any], ...], ...]:
    """Short streams of one key each, with unique times, and nulls among the values."""
    rng, found = Random(16), []
    for key in range(60):
        ts, rows = 0, list[dict[str, Any]]()
        for _ in range(rng.randrange(4, 13)):
            ts += rng.choice((1, 1, 1, 2, 4))
            price, ref = (None if rng.random() < 0.12 else rng.randrange(1, 6) for _ in range(2))
            rows.append({"symbol": key, "ts": ts, "price": price, "ref": ref, "kind": rng.choice("LXPVF")})
        for place, one in enumerate(rows):
            one["before"] = rows[place - 1]["price"] if place else None
            one["behind"] = rows[place + 1]["price"] if place + 1 < len(rows) else None
            one["before2"] = rows[place - 2]["price"] if place > 1 else None
        found.append(tuple(rows))
    return tuple(found)


def table() -> dict[str, list[Any]]:
    return {name: [one[name] for rows in streams() for one in rows] for name in streams()[0][0]}


@dataclass(frozen=True)
class Case:
    """A row of the page by its beginning, words of it that the query has too, SQL's pattern, and the query."""

    row: str
    words: tuple[str, ...]
    pattern: Part
    define: Define
    query: str
    skip: tuple[str, ...] = ("past",)
    left_out: str = ""  # variables that one side does not have

    def sql(self) -> set[Any]:
        found, before = set(), 0
        for rows in streams():
            for bound in recognize(rows, self.pattern, self.define, self.skip):
                found.add(self._told({v: tuple(before + at for at in places) for v, places in shown(bound).items()}))
            before += len(rows)
        return found

    def acep(self, engine: str = "auto") -> set[Any]:
        matches: Any = acep.match(table(), self.query, type=None, engine=engine)
        return {self._told(match.bindings) for match in matches}

    def _told(self, bindings: dict[str, Any]) -> Any:
        return tuple(sorted((v, tuple(places)) for v, places in bindings.items() if v not in self.left_out.split()))


def under(pattern: str, conditions: str = "") -> str:
    more = f" AND {conditions}" if conditions else ""
    return f"PATTERN {pattern} WHERE partition_contiguity {{ [symbol]{more} }} "


def vee(first: str = "d", then: str = "u", equal: str = "") -> str:
    return under(
        f"SEQ(ANY s, ANY+ {first}[], ANY+ {then}[])",
        f"{first}[1].price <{equal} s.price AND {first}[i].price <{equal} {first}[i-1].price "
        f"AND {then}[1].price >{equal} {first}[{first}.LEN].price AND {then}[i].price >{equal} {then}[i-1].price",
    )


V = seq(row("s"), plus("d"), plus("u"))
Z = seq(row("s"), plus("z"), plus("a"))  # names against the alphabet
STRICT: Define = {"d": falls, "u": rises}
LEVEL: Define = {"z": not_up, "a": not_down, "d": not_up, "u": not_down}
AB = seq(row("a"), row("b"))
PEAK: Define = {"a": rises, "b": falls}
ROW_BEFORE_PEAK = under("SEQ(ANY z, ANY a, ANY b)", "a.price > z.price AND b.price < a.price")
ABOVE_TWO_BEFORE: tuple[Part, Define] = (
    seq(row("a"), rep(row("b"), 2)),
    {"b": lambda seen: less(seen.prev("price", 2), seen["price"])},
)
GAP = seq(row("l"), rep(row("x"), 0, 8), row("p"))
KINDS: Define = {"l": kind("L"), "p": kind("P")}
GAP_QUERY = under("SEQ(ANY l, ANY{0,8} x[], ANY p)", "l.kind = 'L' AND p.kind = 'P'")
DEARER: Define = {"b": lambda seen: less(seen.first("a", "price"), seen["price"])}
LAZY_B = seq(row("a"), star("more", greedy=False), row("b"))
DEARER_QUERY = under("SEQ(ANY a, ANY* more[], ANY b)", "b.price > a.price")
CHOICE = seq(row("s"), alt(row("a"), seq(row("b"), row("c"))))
CHOICE_KINDS: Define = {"s": kind("F", "L"), "a": kind("P", "X"), "b": kind("P", "X"), "c": kind("V", "L")}
CHOICE_QUERY = under(
    "SEQ(ANY s, (ANY a | ANY b, ANY c))",
    "s.kind IN ('F', 'L') AND a.kind IN ('P', 'X') AND b.kind IN ('P', 'X') AND c.kind IN ('V', 'L')",
)
SET_KINDS: Define = {"a": kind("L", "X"), "b": kind("P", "X"), "c": kind("V", "F", "L")}
SET_QUERY = under(
    "{ANY a, ANY b, ANY c}", "a.kind IN ('L', 'X') AND b.kind IN ('P', 'X') AND c.kind IN ('V', 'F', 'L')"
)
MEAN: Define = {"a": lambda seen: less(seen.avg("a", "price"), 3)}
MEAN_QUERY = under("SEQ(ANY+ a[], ANY b)", "a[1].price < 3 AND MEAN < 3") + LONGEST
OWN = (
    "(sum(a[..i-1].price) + coalesce(a[i].price, 0))",
    "(count(a[..i-1].price) + CASE WHEN a[i].price IS NULL THEN 0 ELSE 1 END)",
)
ENDS = "b[1].price >= a.price AND b[i].price >= b[i-1].price"
AFTER = "`AFTER MATCH SKIP "

EXACT = [
    Case(
        "`PATTERN (A B+ C)`",
        ("partition_contiguity",),
        seq(row("a"), plus("b"), row("c")),
        {"a": kind("L", "X"), "b": kind("P"), "c": kind("F", "V")},
        under("SEQ(ANY a, ANY+ b[], ANY c)", "a.kind IN ('L', 'X') AND b.kind = 'P' AND c.kind IN ('F', 'V')")
        + LONGEST,
    ),
    Case(
        "`DEFINE B AS B.price < PREV",
        ("b[1].price < a.price AND b[i].price < b[i-1].price",),
        seq(row("a"), plus("b")),
        {"b": falls},
        under("SEQ(ANY a, ANY+ b[])", "b[1].price < a.price AND b[i].price < b[i-1].price") + LONGEST,
    ),
    Case(
        "`PREV(A.price)` at",
        (),
        AB,
        {"a": rises, "b": falls},
        under("SEQ(ANY a, ANY b)", "a.price > a.before AND b.price < b.before") + LONGEST,
    ),
    Case(
        "`PREV(A.price)` at",
        (),
        seq(row("a"), plus("b")),
        {"b": lambda seen: less(seen["price"], seen.next("price"))},
        under("SEQ(ANY a, ANY+ b[])", "b[i].price < b[i].behind") + LONGEST,
    ),
    Case(
        "`PREV(A.price)` at",
        (),
        AB,
        PEAK,
        ROW_BEFORE_PEAK,
        skip=NEXT,
        left_out="z",
    ),
    Case(
        "`PREV(A.price)` at",
        (),
        *ABOVE_TWO_BEFORE,
        under("SEQ(ANY a, ANY{2,} b[])", "b.price > b.before2") + LONGEST,
    ),
    Case(
        "`PREV(A.price)` at",
        (),
        seq(row("a"), star("b"), row("c")),
        {"a": kind("L"), "b": rises, "c": falls},
        under("SEQ(ANY a, ANY* b[], ANY c)", "a.kind = 'L' AND b.price > b.before AND c.price < c.before") + LONGEST,
    ),
    Case(
        "`DEFINE B AS B.price < A",
        ("b.price < a.price",),
        AB,
        {"b": lambda seen: less(seen["price"], seen.first("a", "price"))},
        under("SEQ(ANY a, ANY b)", "b.price < a.price") + LONGEST,
    ),
    Case("`DEFINE B AS B.volume", (), AB, {"b": same_ref}, under("SEQ(ANY a, ANY b)", "b.ref = a.ref") + LONGEST),
    Case(
        "`DEFINE B AS B.volume",
        (),
        seq(row("a"), plus("b")),
        {"b": same_ref},
        under("SEQ(ANY a, ANY+ b[])", "b.ref = a.ref") + LONGEST,
    ),
    Case(
        "`FIRST(B",
        ("b[i].price >= b[1].price", "b[1].price IS NOT NULL", "b[b.LEN].price"),
        seq(row("a"), plus("b"), row("c")),
        {"b": not_below_the_first, "c": lambda seen: not less(seen.last("b", "price"), 4)},
        under(
            "SEQ(ANY a, ANY+ b[], ANY c)",
            "b[i].price >= b[1].price AND b[1].price IS NOT NULL AND coalesce(b[b.LEN].price, 4) >= 4",
        )
        + LONGEST,
    ),
    Case("`AVG(B", (), seq(plus("a"), row("b")), MEAN, MEAN_QUERY.replace("MEAN", " / ".join(OWN))),
    Case(AFTER + "PAST", (LONGEST,), V, STRICT, vee() + LONGEST),
    Case(
        AFTER + "PAST",
        (LONGEST,),
        GAP,
        {**KINDS, "x": kind("F", "V")},
        GAP_QUERY.replace("AND p", "AND x.kind IN ('F', 'V') AND p") + LONGEST,
    ),
    Case(AFTER + "TO NEXT", (TO_NEXT,), V, STRICT, vee() + TO_NEXT, NEXT),
    Case(AFTER + "TO NEXT", (TO_NEXT,), GAP, KINDS, GAP_QUERY + TO_NEXT, NEXT),
    Case(AFTER + "TO FIRST", (f"{TO} FIRST",), V, STRICT, f"{vee()}{TO} FIRST u", ("first", "u")),
    Case(AFTER + "TO FIRST", ("TO LAST",), V, STRICT, f"{vee()}{TO} LAST u", ("last", "u")),
    Case(
        "`A{2,5}`",
        ("ANY{2,5} a[]",),
        seq(
            rep(row("a"), 2, 5),
            rep(row("b"), 0, 1),
            rep(row("f"), 0),
            rep(seq(row("c"), row("d")), 1),
        ),
        {"a": kind("L", "X", "P"), "b": kind("V"), "f": kind("F"), "c": kind("L"), "d": kind("X", "V", "F")},
        under(
            "SEQ(ANY{2,5} a[], ANY? b, ANY* f[], (ANY c, ANY d)+)",
            "a.kind IN ('L', 'X', 'P') AND b.kind = 'V' AND f.kind = 'F' AND c.kind = 'L' "
            "AND d.kind IN ('X', 'V', 'F')",
        )
        + LONGEST,
    ),
    Case(
        "`A+?`",
        ("SEQ(ANY a, ANY* more[], ANY b)",),
        seq(plus("a", greedy=False), row("b")),
        {"b": lambda seen: less(3, seen["price"])},
        under("SEQ(ANY a, ANY* more[], ANY b)", "b.price > 3 AND coalesce(more[i].price, 0) <= 3") + LONGEST,
        left_out="a more",
    ),
    Case("`A+?`", (SHORTEST,), LAZY_B, DEARER, DEARER_QUERY + SHORTEST),
    Case(
        "`A \\| B`",
        (),
        CHOICE,
        {**CHOICE_KINDS, "b": kind("F")},
        CHOICE_QUERY.replace("b.kind IN ('P', 'X')", "b.kind = 'F'") + LONGEST,
    ),
    Case(
        "`PERMUTE",
        ("{ANY a, ANY b, ANY c}", "partition_contiguity"),
        permute(row("a"), row("b"), row("c")),
        SET_KINDS,
        SET_QUERY + LONGEST,
    ),
    Case(
        "`PERMUTE",
        (),
        permute(plus("a"), row("b")),
        {"a": kind("L", "X", "F"), "b": kind("P")},
        under("(ANY+ a[], ANY b | ANY b, ANY+ a[])", "a.kind IN ('L', 'X', 'F') AND b.kind = 'P'") + LONGEST,
    ),
    Case(
        "`WITHIN INTERVAL",
        (),
        seq(row("a"), star("b"), row("c")),
        {"c": soon_cheaper},
        f"PATTERN SEQ(ANY a, ANY c) WHERE [symbol] AND c.price < a.price WITHIN 4 {LONGEST}",
        left_out="b",
    ),
    Case(
        "`^`, `$`",
        ("SEQ(~ANY n, ANY a",),
        seq(begin, row("a"), star("b")),
        {"b": not_down},
        under("SEQ(~ANY n, ANY a, ANY* b[])", ENDS) + "WITHIN 1000 " + LONGEST,
    ),
    Case(
        "`^`, `$`",
        ("~ANY n)",),
        seq(row("a"), plus("b"), end),
        {"b": not_down},
        under("SEQ(ANY a, ANY+ b[], ~ANY n)", ENDS) + "WITHIN 1000 " + LONGEST,
    ),
    Case(
        "`{- A -}`",
        (),
        seq(row("b"), exclude(plus("a")), row("c")),
        {"b": kind("L"), "a": kind("X", "V"), "c": kind("P", "F")},
        under("SEQ(ANY b, ANY+ a[], ANY c)", "b.kind = 'L' AND a.kind IN ('X', 'V') AND c.kind IN ('P', 'F')")
        + LONGEST,
        left_out="a",
    ),
]

# Differences of which the page warns.
DIFFERS = [
    Case(AFTER + "PAST", (), Z, LEVEL, vee("z", "a", "=") + LONGEST),
    Case("`A+?`", (), LAZY_B, DEARER, DEARER_QUERY + "OUTPUT NON OVERLAP"),
    Case("`A \\| B`", (), CHOICE, CHOICE_KINDS, CHOICE_QUERY + LONGEST),
    Case("`PERMUTE", (), permute(row("c"), row("b"), row("a")), SET_KINDS, SET_QUERY + LONGEST),
    Case(
        "`PERMUTE",
        (),
        permute(plus("a"), row("b")),
        {"a": kind("L", "X", "F"), "b": kind("P")},
        under("{ANY+ a[], ANY b}", "a.kind IN ('L', 'X', 'F') AND b.kind = 'P'") + LONGEST,
    ),
    Case(
        "`PREV(A.price)` at",
        (),
        AB,
        PEAK,
        ROW_BEFORE_PEAK + LONGEST,
        left_out="z",
    ),
    Case(
        "`PREV(A.price)` at",
        (),
        *ABOVE_TWO_BEFORE,
        under("SEQ(ANY a, ANY{2,} b[])", "b[i].price > b[i-2].price") + LONGEST,
    ),
    Case(
        "`FIRST(B",
        (),
        seq(row("a"), plus("b"), row("c")),
        {"b": not_below_the_first},
        under("SEQ(ANY a, ANY+ b[], ANY c)", "b[i].price >= b[1].price") + LONGEST,
    ),
    Case(
        "`AVG(B",
        (),
        seq(plus("a"), row("b")),
        MEAN,
        MEAN_QUERY.replace("MEAN", "(sum(a[..i-1].price) + a[i].price) / (count(a[..i-1]) + 1)"),
    ),
    Case(
        "`WITHIN INTERVAL",
        (),
        seq(row("a"), star("b"), row("c")),
        {"c": soon_cheaper},
        f"PATTERN SEQ(ANY a, ANY c) WHERE [symbol] AND c.price < a.price WITHIN 5 {LONGEST}",
        left_out="b",
    ),
]


def names_of(cases: list[Case]) -> list[str]:
    return [f"{re.sub('[^A-Za-z+?{}^ ]', '', case.row).strip()}-{place}" for place, case in enumerate(cases)]


def random_pattern(rng: Random, depth: int = 2) -> tuple[str, Part]:
    """A regular expression over letters, and the same as a row pattern, whose variables are named by their letters."""
    made = rng.randrange(3 if depth else 1)
    if made == 0:
        letters = rng.choice(("a", "b", "c", "ab", "bc", "abc"))
        least, most, mark = rng.choice(((0, 1, "?"), (0, 99, "*"), (1, 99, "+"), (1, 1, ""), (2, 3, "{2,3}")))
        greedy = not mark or rng.random() < 0.5
        return f"[{letters}]{mark}{'' if greedy else '?'}", rep(row(letters), least, most, greedy=greedy)
    parts = [random_pattern(rng, depth - 1) for _ in range(3)]
    if made == 1:
        return "".join(text for text, _ in parts), seq(*(part for _, part in parts))
    return f"(?:{'|'.join(text for text, _ in parts)})", alt(*(part for _, part in parts))


def test_the_preference_is_that_of_regular_expressions(cases: CaseCounts) -> None:
    """Alternatives, greedy and reluctant repetitions and anchors, on letters, are those of Python's `re`."""
    rng, define = Random(5), {name: kind(*name) for name in ("a", "b", "c", "ab", "bc", "abc")}
    found = 0
    for _ in range(cases(400)):
        (text, part), word = random_pattern(rng), "".join(rng.choice("abc") for _ in range(8))
        if rng.random() < 0.3:
            text, part = rng.choice(((f"\\A(?:{text})", seq(begin, part)), (f"(?:{text})\\Z", seq(part, end))))
        rows = [{"kind": letter} for letter in word]
        for at in range(len(word)):
            theirs = re.compile(text).match(word, at)
            ours = next(part(Seen(rows, at, (), define)), None)
            assert (ours and ours.at) == (theirs and theirs.end()), f"{text} on {word} from {at}"
            found += ours is not None
    cases.expect({"matches": found}, "matches", least=301)


def test_random_patterns_of_both_kinds_have_matches() -> None:
    """Regular expressions alone, as the row patterns that they are compared with must find the same."""
    rng = Random(5)
    matches = [re.match(random_pattern(rng)[0], "".join(rng.choice("abc") for _ in range(8))) for _ in range(400)]
    assert 100 < sum(match is not None for match in matches) < 400


@pytest.mark.parametrize("case", EXACT, ids=names_of(EXACT))
def test_the_query_gives_the_matches_of_sql(case: Case) -> None:
    ours = case.acep()
    assert ours == case.acep("reference")
    assert ours == case.sql()
    assert len(ours) > 5


@pytest.mark.parametrize("case", DIFFERS, ids=names_of(DIFFERS))
def test_a_difference_that_the_page_names(case: Case) -> None:
    assert case.acep() != case.sql()


def test_the_page_shows_the_queries() -> None:
    rows = PAGE.read_text(encoding="utf-8").splitlines()
    for case in EXACT + DIFFERS:
        (line,) = [line for line in rows if line.startswith(f"| {case.row}")]
        assert [words for words in case.words if words not in line or words not in case.query] == []
    text = PAGE.read_text(encoding="utf-8")
    assert all(part in text for part in OWN)


def test_a_null_in_a_partition_attribute_is_a_group_of_sql_once_it_is_filled() -> None:
    rows = [row for rows in streams() for row in rows][:300]
    rows = [one | {"ts": place, "symbol": None if place % 3 else one["symbol"] % 2} for place, one in enumerate(rows)]
    groups = [[one for one in rows if one["symbol"] == key] for key in (0, 1, None)]
    sql = {tuple(rows_of[at]["ts"] for _, at in bound) for rows_of in groups for bound in recognize(rows_of, V, STRICT)}
    given = {name: [one[name] for one in rows] for name in rows[0]}
    filled = given | {"symbol": [-1 if one is None else one for one in given["symbol"]]}
    ours, left = (
        {tuple(sorted(sum(m.bindings.values(), ()))) for m in acep.match(one, vee() + LONGEST, type=None)}
        for one in (filled, given)
    )
    assert ours == sql
    assert left < sql


def test_a_partition_by_an_expression_is_one_by_a_column() -> None:
    rows = [one | {"ts": place} for place, one in enumerate(one for rows in streams() for one in rows)]
    for one in rows:
        one["upper"] = one["kind"].upper() if one["symbol"] % 2 else "X"
    groups = [[one for one in rows if one["upper"] == key] for key in "LXPVF"]
    sql = {tuple(part[at]["ts"] for _, at in bound) for part in groups for bound in recognize(part, V, STRICT)}
    given = {name: [one[name] for one in rows] for name in rows[0]}
    query = vee().replace("[symbol]", "[upper]") + LONGEST
    assert {tuple(sorted(sum(m.bindings.values(), ()))) for m in acep.match(given, query, type=None)} == sql
    computed = given | {"mixed": [text.lower() for text in given["upper"]]}
    query = query.replace("[upper]", "[upper(mixed)]")
    assert {tuple(sorted(sum(m.bindings.values(), ()))) for m in acep.match(computed, query, type=None)} == sql
    with pytest.raises(acep.QueryError, match="the brackets take columns"):
        acep.parse(query.replace("[upper(mixed)]", "[upper || kind]"))
