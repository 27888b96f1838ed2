"""Cases by hand: each quantifier, greedy and reluctant, over one table; loops of what may match nothing."""

from __future__ import annotations

from tests.row_patterns import tree
from tests.row_patterns.hand_patterns import Matches, letters
from tests.row_patterns.short_forms import EMPTY, HandCase, alt, compare, opt, plus, prev, seq, star, times

__all__ = ["QUANTIFIER_CASES"]

FALLS = compare("s", "<", prev("s"))
STAYS_OR_FALLS = {"B": compare("s", "<=", prev("s"))}
NONE: Matches = []
THREE: Matches = [(2, "BBB")]
TWO: Matches = [(2, "BB")]
ONES: Matches = [(2, "B"), (3, "B"), (4, "B")]
NOTHING: Matches = [(1, ""), (2, ""), (3, ""), (4, "")]

# Over four rows, of which all but the first hold: the bounds, and what is matched by a greedy and a reluctant one.
BOUNDS: list[tuple[int, int | None, Matches, Matches]] = [
    (0, None, [(1, ""), *THREE], NOTHING),
    (1, None, THREE, ONES),
    (2, None, THREE, TWO),
    (5, None, NONE, NONE),
    (0, 1, [(1, ""), *ONES], NOTHING),
    (0, 2, [(1, ""), (2, "BB"), (4, "B")], NOTHING),
    (0, 5, [(1, ""), *THREE], NOTHING),
    (1, 1, ONES, ONES),
    (1, 5, THREE, ONES),
    (2, 2, TWO, TWO),
    (5, 5, NONE, NONE),
    (5, 7, NONE, NONE),
]


def falling(name: str, pattern: tree.Pattern, expected: Matches) -> HandCase:
    """Return a case over four rows of which the second and the third fall, and the last one stays."""
    return letters(name, pattern, "dcbb", expected, {"B": FALLS})


QUANTIFIER_CASES = [
    *(
        letters(f"{low} to {high}, reluctant {is_reluctant}", times("B", low, high, is_reluctant), "dcbb", expected,
                STAYS_OR_FALLS)
        for low, high, greedy, reluctant in BOUNDS
        for is_reluctant, expected in ((False, greedy), (True, reluctant))
    ),
    falling("a variable or a loop of nothing", alt("B", star(EMPTY)), [(1, ""), (2, "B"), (3, "B"), (4, "")]),
    falling("a loop of nothing or a variable", alt(star(EMPTY), "B"), NOTHING),
    falling("at least five times nothing", alt(times(EMPTY, 5, None), "B"), NOTHING),
    falling("a loop of nothing in a loop", star(seq("B", star(EMPTY))), [(1, ""), (2, "BB"), (4, "")]),
    falling("a loop of nothing in a reluctant loop", star(seq("B", star(EMPTY)), True), NOTHING),
    falling("any number of starts", alt(star("^"), "B"), NOTHING),
    falling("at least one start", alt(plus("^"), "B"), [(1, ""), (2, "B"), (3, "B")]),
    falling("any number of ends", alt(star("$"), "B"), NOTHING),
    falling("at least one end", alt(plus("$"), "B"), [(2, "B"), (3, "B")]),
    falling("ends after rows", seq("B", "Z", plus("$")), [(3, "BZ")]),
    letters("a start that holds is tried again", plus(opt("A"), True), "aa", [(1, "A"), (2, "A")]),
    letters("reluctant loop of a reluctant row", star(opt("A", True), True), "a", [(1, "")]),
    letters("loop of a reluctant loop", star(star("A", True)), "aa", [(1, ""), (2, "")]),
    letters("nothing before a row", star(seq(EMPTY, opt("A"))), "aa", [(1, "AA")]),
    letters("rows or nothing", star(alt("A", EMPTY)), "aa", [(1, "AA")]),
    letters("twice or three times nothing or a row", times(alt(EMPTY, "A"), 2, 3), "a", [(1, "")]),
    letters("nothing or one of two rows, then another", seq(star(alt(EMPTY, "A", "B")), "C"), "abc", [(1, "ABC")]),
    letters("twice or three times two optional rows", times(seq(opt("A"), opt("B")), 2, 3), "ababab", [(1, "ABABAB")]),
    letters("two optional rows, a gap", times(seq(opt("A"), opt("B")), 2, 3), "abca", [(1, "AB"), (3, ""), (4, "A")]),
    letters("any rows twice or more, then a row", seq(times(opt("Z"), 2, None), "Y"), "xyxy", [(1, "ZZZY")]),
]  # fmt: skip
