"""Cases by hand: which rows a pattern binds to which variables, over rows that are letters.

A variable holds on the small letter of its name unless a case defines it; ``Z`` is never defined, so that it holds on
every row. ``-`` is a row whose letter is null. What is expected is the first row of each match, from 1, and its labels.
"""

from __future__ import annotations

from collections.abc import Mapping

from tests.row_patterns import expressions as x
from tests.row_patterns import tree
from tests.row_patterns.expressions import Expression, Value
from tests.row_patterns.short_forms import (
    EMPTY,
    HandCase,
    alt,
    compare,
    eq,
    last,
    measure,
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
from tests.row_patterns.tree import Skip

__all__ = ["PATTERN_CASES", "Matches", "letters"]

Matches = list[tuple[int, str]]
TRUE = x.Literal(True)
PAST_LAST, NEXT = Skip(), Skip(tree.TO_NEXT)


def is_one_of(*choices: str) -> Expression:
    """Return the condition that the letter of a row is one of these."""
    return x.In(x.Column(None, "s"), tuple(map(text, choices)))


A_OR_B = {"A": is_one_of("a", "b"), "B": is_one_of("a", "b")}


def letters(
    name: str,
    pattern: tree.Pattern | str,
    rows: str,
    expected: Matches | str,
    conditions: Mapping[str, Expression] | None = None,
    skip: Skip = PAST_LAST,
    width: int | None = None,
) -> HandCase:
    """Return a case over letters; all rows are shown, with the match's number and the row's label."""
    root = tree.Variable(pattern) if isinstance(pattern, str) else pattern
    names = [variable for variable in tree.variables_of(root) if variable != "Z"]
    letter_conditions = {variable: eq("s", text(variable.lower())) for variable in names}
    definitions = {**letter_conditions, **(conditions or {})}
    clause = tree.Clause(
        pattern=root,
        definitions=tuple(tree.Definition(*definition) for definition in definitions.items()),
        measures=measure(n=x.MatchNumber(), c=x.Classifier()),
        order=(tree.OrderKey("i"),),
        rows=tree.SHOW_EMPTY,
        skip=skip,
        within=None if width is None else tree.Within(width),
    )
    values = [(i + 1, None if letter == "-" else letter) for i, letter in enumerate(rows)]
    output: list[tuple[Value, ...]] = []
    if isinstance(expected, str):
        return HandCase(name, clause, table("i s", *values), expected)
    for i, (start, labels) in enumerate(expected):
        for row, label in enumerate(labels or [None], start - 1):
            output.append((values[row][0], i + 1, label, values[row][1]))
    return HandCase(name, clause, table("i s", *values), tuple(output))


PATTERN_CASES = [
    letters("concatenation", seq("A", "B"), "aabab", [(2, "AB"), (4, "AB")]),
    letters("greedy plus", plus("A"), "aaba", [(1, "AA"), (4, "A")]),
    letters("reluctant plus", plus("A", True), "aaa", [(1, "A"), (2, "A"), (3, "A")]),
    letters("star is empty where nothing holds", star("A"), "aab", [(1, "AA"), (3, "")]),
    letters("reluctant star", star("A", True), "aa", [(1, ""), (2, "")]),
    letters("greedy question mark", seq(opt("Z"), "B"), "bb", [(1, "ZB")]),
    letters("reluctant question mark", seq(opt("Z", True), "B"), "bb", [(1, "B"), (2, "B")]),
    letters("exactly n", times("A", 2, 2), "aaaaa", [(1, "AA"), (3, "AA")]),
    letters("n or more", times("A", 2, None), "abaaa", [(3, "AAA")]),
    letters("at most m", times("A", 0, 2), "aaab", [(1, "AA"), (3, "A"), (4, "")]),
    letters("n to m", times("A", 2, 3), "aaaaa", [(1, "AAA"), (4, "AA")]),
    letters("reluctant n to m", times("A", 2, 3, True), "aaaaa", [(1, "AA"), (3, "AA")]),
    letters("reluctant n to m takes more if it must", seq(times("A", 1, 3, True), "B"), "aaab", [(1, "AAAB")]),
    letters("greedy gives rows back", seq(star("Z"), "B"), "abab", [(1, "ZZZB")]),
    letters("reluctant stops early", seq(star("Z", True), "B"), "abab", [(1, "ZB"), (3, "ZB")]),
    letters("first alternative that matches", alt("A", seq("A", "B")), "ab", [(1, "A")]),
    letters("longer alternative first", alt(seq("A", "B"), "A"), "aab", [(1, "A"), (2, "AB")]),
    letters("alternative is tried anew", seq(alt("A", seq("A", "B")), "C"), "abc", [(1, "ABC")]),
    letters("an empty alternative", seq("A", alt("B", EMPTY)), "abaa", [(1, "AB"), (3, "A"), (4, "A")]),
    letters("an empty alternative first", seq("A", alt(EMPTY, "B"), "C"), "abcac", [(1, "ABC"), (4, "AC")]),
    letters("iterations before length, greedy", times(alt("A", "B"), 1, 2), "ab", [(1, "AA")], A_OR_B),
    letters("iterations before length, reluctant", times(alt("A", "B"), 1, 2, True), "a", [(1, "A")], A_OR_B),
    letters("leftmost start comes first", seq("Z", "B"), "zabb", [(2, "ZB")]),
    letters("nested plus without an end", seq(plus(plus("A")), "B"), "aaaaaa", []),
    letters("a variable twice is one variable", seq("A", "B", "A"), "aba", [(1, "ABA")]),
    letters("a loop of nothing beside a variable", alt(plus(EMPTY), "A"), "aa", [(1, ""), (2, "")]),
    letters("a loop that prefers nothing", star(opt("A", True)), "aa", [(1, ""), (2, "")]),
    letters("a loop that prefers nothing, and more", seq(star(opt("A", True)), "B"), "aabb", [(1, "AAB"), (4, "B")]),
    letters("a loop that prefers a row", star(opt("A")), "aab", [(1, "AA"), (3, "")]),
    letters("a loop of a loop", star(star("A")), "aaba", [(1, "AA"), (3, ""), (4, "A")]),
    letters("nothing or a row, twice or more", times(alt(EMPTY, "A"), 2, None), "a", [(1, "")]),
    letters("nothing fills the lower bound", times(opt("A"), 2, 3), "aaab", [(1, "AAA"), (4, "")]),
    letters("nothing fills what is missing", times(opt("A"), 3, None), "aab", [(1, "AA"), (3, "")]),
    letters("an empty iteration ends the loop", star(seq(opt("A", True), opt("B"))), "ba", [(1, "B"), (2, "")]),
    letters("an empty iteration hides what is left", star(alt(opt("A", True), "B")), "b", [(1, "")]),
    letters(
        "an iteration that fills the lower bound with nothing ends the loop",
        seq(times(alt("A", EMPTY, "B"), 1, 2), "C"),
        "bxc",
        [(1, "BAC")],
        {"A": eq("s", text("x")), "C": is_one_of("x", "c")},
    ),
    letters("twice or more, then another", seq(times(opt("A"), 2, None), "B"), "bab", [(1, "B"), (2, "AB")]),
    letters("anchor at the start", seq("^", "A"), "aa", [(1, "A")]),
    letters("anchor at the end", seq(plus("A"), "$"), "aabaa", [(4, "AA")]),
    letters("both anchors", seq("^", star("A"), "$"), "aaa", [(1, "AAA")]),
    letters("both anchors fail", seq("^", star("A"), "$"), "aab", []),
    letters("an anchor inside fails", seq("A", "^", "A"), "aa", []),
    letters("an anchor is an alternative", alt("^", "B"), "abb", [(1, ""), (2, "B"), (3, "B")]),
    letters("the end is after the last row", alt("$", "B"), "ab", [(2, "B")]),
    letters("an anchor in a loop", seq(star("^"), "A", "B"), "abab", [(1, "AB"), (3, "AB")]),
    letters("permute", permute("A", "B", "C"), "cabbca", [(1, "CAB"), (4, "BCA")]),
    letters("permute prefers the order of its arguments", permute("B", "A"), "ab", [(1, "BA")], A_OR_B),
    letters("permute as in a dictionary", permute("A", "B", "C"), "xcx", [(1, "ACB")], {"A": TRUE, "B": TRUE}),
    letters("permute prefers an order to longer loops", permute(plus("A"), "B", "C"), "axcb", [(1, "ABC")],
            {"A": is_one_of("a", "x"), "B": is_one_of("x", "b")}),
    letters("permute of alternatives", permute(alt("A", "B"), "C"), "cabc", [(1, "CA"), (3, "BC")]),
    letters("permute of patterns", permute(plus("A"), seq("B", "C")), "bcaabc", [(1, "BCAA")]),
    letters("permute of what may be nothing", permute(opt("A"), "B"), "bab", [(1, "B"), (2, "AB")]),
    letters("undefined variables hold on null", seq("A", plus("Z")), "a--", [(1, "AZZ")]),
    letters("unknown is not true", plus("A"), "a-c", [(1, "A"), (3, "A")], {"A": compare("s", "<>", text("b"))}),
    letters("not unknown is unknown", plus("A"), "a-b", [(1, "A")], {"A": x.Not(eq("s", text("b")))}),
    letters("skip past the last row", times("A", 2, 2), "aaa", [(1, "AA")]),
    letters("skip to the next row", plus("A"), "aab", [(1, "AA"), (2, "A")], skip=NEXT),
    letters("skip to the first", seq("A", plus("B")), "abbb", [(1, "ABBB")], skip=Skip(tree.TO_FIRST, "B")),
    letters("skip to the last", times("A", 2, 2), "aaa", [(1, "AA"), (2, "AA")], skip=Skip(tree.TO_LAST, "A")),
    letters("skip to the first row of the match", times("A", 2, 2), "aaaa", "first row", skip=Skip(tree.TO_FIRST, "A")),
    letters("skip to the only row", plus("A"), "ba", "first row", skip=Skip(tree.TO_LAST, "A")),
    letters("skip to a variable without rows", seq("A", opt("B")), "aba", "unbound", skip=Skip(tree.TO_LAST, "B")),
    letters("no skip, no error", seq("A", "B"), "aaa", [], skip=Skip(tree.TO_LAST, "A")),
    letters("after an empty match the next row", star("A"), "bb", [(1, ""), (2, "")], skip=Skip(tree.TO_LAST, "A")),
    letters("within is at most its width", plus("A"), "aaaaa", [(1, "AAA"), (4, "AA")], width=2),
    letters("within bounds what is skipped", seq(star("Z"), "B"), "aaab", [(3, "ZB")], width=1),
    letters("within nothing", plus("A"), "aa", [(1, "A"), (2, "A")], width=0),
    letters("the number of the match in a condition", "A", "aaa", [(1, "A"), (2, "A")],
            {"A": compare(x.MatchNumber(), "<=", 2)}),
    letters("a condition chooses the alternative", seq(alt("A", "B"), "C"), "ac", [(1, "BC")],
            {"B": eq("s", text("a")), "C": eq(prev(x.Classifier()), text("B"))}),
    letters("a row is not less than itself", plus("A"), "abc", [], {"A": compare("A.s", "<", last("A.s"))}),
]  # fmt: skip
