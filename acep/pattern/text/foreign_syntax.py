"""Recognize constructs of other languages (Flink CEP, Esper, EQL, MATCH_RECOGNIZE), and say what to write instead."""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["Foreign", "foreign_at"]

_LONGEST = 200  # characters that are searched on each side of the place

_POSSESSIVE = (
    "leave it out: each way to repeat gives a match; OUTPUT LONGEST NON OVERLAP takes the first, and the longest that "
    "begins there"
)
_RELUCTANT = (
    "leave it out: each way to repeat gives a match. OUTPUT SHORTEST NON OVERLAP takes the first, and the shortest "
    "that begins there"
)
_PAST = (
    "write OUTPUT LONGEST NON OVERLAP at the end: the match from the first event on that ends last, then the next "
    "after it; without it all matches are given"
)
_SKIP = (
    "write OUTPUT LONGEST AFTER MATCH SKIP TO NEXT EVENT at the end, or TO FIRST b, or TO LAST b; LONGEST or SHORTEST "
    "says which one of the matches with one first event is given"
)
_SEQUENCE = (
    "write SEQ(A a, ~B b, C c), where B may not come between; what may be skipped, a strategy says: "
    "WHERE skip_till_next_match(...), or partition_contiguity(...)"
)
_CALLS = (
    "begin|next|where|or|followedBy|followedByAny|notNext|notFollowedBy|oneOrMore|timesOrMore|times|optional|greedy"
    "|consecutive|allowCombinations|until|within|subtype"
)
_EQL_SEQUENCE = (
    "write PATTERN SEQ(A a, ~(A | B) n, B b) WHERE [user] WITHIN 5 min, where the first B takes the newest A, as in EQL"
)
_ANY_CASE = "write lower(a.name) LIKE 'cmd%', where % is the `*` of EQL, or lower(a.name) IN ('cmd.exe', 'sh')"
_OPTIONS = "leave it out: a query gives all matches, and limit= or --limit stops after some"


@dataclass(frozen=True)
class Foreign:
    """A construct that is not in the language, a hint what to write instead, and its ``start`` and ``end``."""

    name: str
    hint: str
    start: int
    end: int


# Regular expression, name ("": the matched text), and what to write instead. The first entry that matches is used.
_TABLE: tuple[tuple[str, str, str], ...] = (
    (r"after\s+match\s+skip\s+to(\s+(last|first|next))?(\s+\w+)?", "AFTER MATCH SKIP TO", _SKIP),
    (
        r"after\s+match(\s+skip(\s+past(\s+last)?(\s+row)?)?)?",
        "AFTER MATCH SKIP",
        _PAST,
    ),
    (r"(one|all)\s+rows?\s+per\s+match", "ROWS PER MATCH", "leave it out: each match is one row, with all its events"),
    (r"measures\b", "MEASURES", "write RETURN at the end: RETURN a.price AS price"),
    (r"define\b", "DEFINE", "write conditions in WHERE: PATTERN SEQ(A a, B b) WHERE b.price > a.price"),
    (r"subset\b", "SUBSET", "write the condition for each of the variables"),
    (r"(partition|group)\s+by\b", "", "write WHERE [attribute]: all events of a match share its value"),
    (r"order\s+by\b", "", "leave it out: events are in the order of `ts`, and of ties in that of `seq`"),
    (r"(final|running)\s+(?=[^\W\d])", "", "leave it out: RETURN and HAVING see the whole match"),
    (r"match_recognize\b", "MATCH_RECOGNIZE", "write PATTERN SEQ(A a, B b) WHERE ... WITHIN ..."),
    (r"select\b|insert\s+into\b|create\b", "", "a query begins with PATTERN, and RETURN says what it gives"),
    (
        r"(not\s+)?(rlike|regexp|regex|matches|similar\s+to)\b(?=\s*['\"])",
        "",
        "write regexp_like(a.path, '^/admin'), and NOT before it",
    ),
    (r"limit\s+\d+", "LIMIT", _OPTIONS),
    (r"\|\s*(head|tail)\b(\s+\d+)?", "", _OPTIONS),
    (r"sequence(\s+by\s+\??[\w.]+|\s+with\s+maxspan\b|(?=\s*\[))", "", _EQL_SEQUENCE),
    (r"sample\s+by\s+\??[\w.]+", "", "write a set: {A a, B b} WHERE [user] is each pair of them, in any order"),
    (r"(with\s+)?maxspan\s*=\s*\w+", "", "write WITHIN 5 min at the end"),
    (r"with\s+runs\s*=\s*\d+", "", "write A{3} a[], and WHERE skip_till_next_match(a[])"),
    (r"until\s*\[", "UNTIL", "write what ends it in the negation before each step: SEQ(A a, ~(A | B | Stop) n, B b)"),
    (r"\[\s*\w+\s+where\b", "an item in brackets", "write a type and a name, A a, and conditions in WHERE: a.x = 1"),
    (
        r"\A\s*(?!(pattern|from|select)\b)\w+\s+where\b",
        "",
        "write PATTERN process a WHERE a.name = 'cmd.exe'; of any type, PATTERN ANY a",
    ),
    (r"regex\s*~", "", "write regexp_like(a.name, '(?i)^(cmd.*)$')"),
    (r"(like|in|startswith|endswith|stringcontains|indexof|between)\s*~(?=\s*['\"(])", "", _ANY_CASE),
    (r":(?=\s*['\"(])", "`:`", _ANY_CASE),
    (r"every\b(\s*\(|\s+\w+\s*(?=[\w=]))", "EVERY", "leave it out: each event may begin a match"),
    (r"(where\s+)?timer\s*:\s*\w+", "", "write WITHIN 5 sec at the end"),
    (r"(within\s+)?interval\b(\s*'[^']*')?(\s*\w+)?", "INTERVAL", "write the number and its unit: WITHIN 5 min"),
    (r"within\s+(?=\()", "WITHIN (...)", "write the number and its unit: WITHIN 5 min"),
    (r"while\s*\(", "WHILE", "write the condition in WHERE, for each event: a[i].price > 10"),
    (
        r"until\b(\s*\()?",
        "UNTIL",
        "write what ends it as a negation before each event of the loop: SEQ(A a, (~(B | Stop) n, B b)+, C c)",
    ),
    (r"greedy\b", "", "write that none may follow the loop: SEQ(A a, (~B n, B b)+, ~(B | C) m, C c)"),
    (r"reluctant\b", "", _RELUCTANT),
    (r"(?<=[+*?}])\s*\?", "a reluctant repetition", _RELUCTANT),
    (r"(?<=[+*?}])\s*\+", "a possessive repetition", _POSSESSIVE),
    (r"(not)?\s*followed\s*by(\s*any)?\b(\s+\w+\s+(?=\w))?", "FOLLOWED BY", _SEQUENCE),
    (r"(not\s*)?next\b(\s*\(|\s+\w+\s+(?=\w))", "NEXT", _SEQUENCE),
    (
        rf"\.\s*(<\w+>\s*)?({_CALLS})\s*\(",
        "a chain of calls",
        "write the pattern as text: PATTERN SEQ(A a, B+ b[], C c) WHERE ... WITHIN 10 min",
    ),
    (r"permute\s*\(", "PERMUTE", "write a set: {A a, B b, C c}"),
    (r"\{\s*-|-\s*\}", "an exclusion {- -}", "leave out the marks: RETURN says what is given of a match"),
    (r"->", "`->`", "write SEQ(A a, B b)"),
    (r"\^", "an anchor", "say that nothing comes before: SEQ(~ANY n, A a), with a WITHIN longer than the stream"),
    (r"\$", "an anchor", "say that nothing comes after: SEQ(A a, ~ANY n), with a WITHIN longer than the stream"),
)
# A construct that begins with a word must not follow another letter.
_WORD = re.compile(r"(\((?!\?))?[a-z]")
_LOOKS = [
    (re.compile(rf"(?<![\w'\"`])(?:{look})" if _WORD.match(look) else look, re.IGNORECASE), name, hint)
    for look, name, hint in _TABLE
]


def foreign_at(text: str, position: int) -> Foreign | None:
    """Find a construct at the place where parsing stopped: it contains the place, or ends or begins there.

    >>> foreign_at("WITHIN 5 AFTER MATCH SKIP TO NEXT ROW", 9).name
    'AFTER MATCH SKIP TO'
    """
    start = max(0, position - _LONGEST)
    around = text[start : position + _LONGEST]
    offset = position - start
    for look, name, hint in _LOOKS:
        for construct in look.finditer(around):
            between = around[min(construct.end(), offset) : max(construct.start(), offset)]
            if construct.start() <= offset < construct.end() or (construct.end() <= offset and not between.strip()):
                words = " ".join(construct[0].split())
                return Foreign(name or f"`{words}`", hint, start + construct.start(), start + construct.end())
            if construct.start() > offset:
                break
    return None
