"""Parse the pattern of a MATCH_RECOGNIZE clause: from tokens to a tree, without recursion that a text could exhaust."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from acep.errors import QueryError
from acep.pattern.expressions import error_at
from acep.pattern.sql.clause_tree import (
    Alternation,
    Anchor,
    Concatenation,
    Empty,
    Exclusion,
    Permutation,
    Quantified,
    RowPattern,
    RowVariable,
)
from acep.pattern.sql.scanner import SqlToken

__all__ = ["MOST_DEPTH", "parse_pattern"]

MOST_DEPTH = 200
"""How deep groups may be nested."""

MOST_TIMES = 1_000_000_000


@dataclass
class _Group:
    """A group that has not ended yet. ``kind``: ``(``, ``{-`` or ``permute``; ``opening`` is its first token."""

    kind: str
    opening: SqlToken
    items: list[list[list[RowPattern]]] = field(default_factory=lambda: [[[]]])  # alternatives of each item of PERMUTE

    def add(self, pattern: RowPattern) -> None:
        """Add a pattern behind those that it follows."""
        self.items[-1][-1].append(pattern)

    def separate(self, token: SqlToken) -> bool:
        """Begin the next alternative, or the next item of PERMUTE, if the token separates them."""
        if token.is_sign("|"):
            self.items[-1].append([])
        elif token.is_sign(",") and self.kind == "permute":
            self.items.append([[]])
        else:
            return False
        return True

    def close(self) -> RowPattern:
        """Return the pattern of the group, which ends."""
        patterns = tuple(self.alternation(alternatives) for alternatives in self.items)
        if self.kind == "permute":
            return Permutation(patterns) if len(patterns) > 1 else patterns[0]
        return Exclusion(patterns[0], self.opening.span) if self.kind == "{-" else patterns[0]

    def alternation(self, alternatives: list[list[RowPattern]]) -> RowPattern:
        """Return the pattern of alternatives, none of which is missing."""
        if any(not alternative for alternative in alternatives):
            what = {"{-": "the pattern of the exclusion", "permute": "a pattern of PERMUTE"}.get(self.kind, "a pattern")
            if len(alternatives) > 1:
                what = "an alternative"
            raise error_at(f"{what} is missing", self.opening.span, "an empty one is written ()", code="query_syntax")
        return (
            _concatenation(alternatives[0])
            if len(alternatives) == 1
            else Alternation(tuple(map(_concatenation, alternatives)))
        )


def parse_pattern(tokens: Sequence[SqlToken], start: int) -> tuple[RowPattern, int]:
    """Parse the pattern whose opening parenthesis is ``tokens[start]``; return it and the place behind its end.

    Raises :class:`QueryError` with the place of the first token that does not fit.

    >>> from acep.pattern.sql.scanner import scan
    >>> parse_pattern(scan("(A+? | ^)"), 0)[0].items[1]
    Anchor(is_start=True)
    """
    groups = [_Group("(", tokens[start])]
    index = start + 1
    while groups:
        token = tokens[index]
        group = groups[-1]
        if token.kind == "end":
            raise _misplaced_token(token, group)
        index += 1
        if len(groups) > MOST_DEPTH:
            raise error_at(
                f"groups are nested deeper than {MOST_DEPTH}",
                token.span,
                "leave out parentheses that change nothing",
                code="query_size",
            )
        if token.is_sign("(") and tokens[index].is_sign(")"):
            index = _quantify(Empty(), tokens, index + 1, group)
        elif token.is_sign("("):
            groups.append(_Group("(", token))
        elif token.is_sign("{") and tokens[index].is_sign("-"):
            groups.append(_Group("{-", token))
            index += 1
        elif token.is_word("PERMUTE") and tokens[index].is_sign("("):
            groups.append(_Group("permute", token))
            index += 1
        elif token.kind in ("word", "name"):
            name = token.value if token.kind == "name" else token.value.upper()
            index = _quantify(RowVariable(name, token.span), tokens, index, group)
        elif token.is_sign("^", "$"):
            index = _quantify(Anchor(token.value == "^"), tokens, index, group)
        elif group.separate(token):
            continue
        elif token.kind != "end" and _closes(token, tokens[index], group):
            groups.pop()
            index += token.is_sign("-")
            closed = group.close()
            if not groups:
                return closed, index
            index = _quantify(closed, tokens, index, groups[-1])
        else:
            raise _misplaced_token(token, group)
    raise AssertionError  # the loop ends by closing the first group


def _closes(token: SqlToken, following: SqlToken, group: _Group) -> bool:
    if group.kind == "{-":
        return token.is_sign("-") and following.is_sign("}")
    return token.is_sign(")")


def _misplaced_token(token: SqlToken, group: _Group) -> QueryError:
    if token.kind == "end":
        names = {"(": "`(`", "{-": "`{-`", "permute": "PERMUTE"}
        return error_at(
            f"the pattern does not end: {names[group.kind]} is open",
            group.opening.span,
            f"is `{'-}' if group.kind == '{-' else ')'}` missing?",
            code="query_syntax",
        )
    hints = {
        "*": "a quantifier follows a variable or a group",
        "+": "a quantifier follows a variable or a group",
        "?": "a quantifier follows a variable or a group",
        "{": "a quantifier follows a variable or a group",
        ",": "variables are separated by spaces, as in (A B+)",
        "||": "an empty alternative is written ()",
        ".": "a variable of a pattern is a plain name",
    }
    token_text = token.value if len(token.value) <= 40 else token.value[:40] + "..."
    return error_at(
        f"`{token_text}` cannot stand here in a pattern",
        token.span,
        hints.get(token.value, "a pattern has variables, quantifiers and groups, as in (A (B | C)+ D{2,3})"),
        code="query_syntax",
    )


def _concatenation(items: list[RowPattern]) -> RowPattern:
    if not items:
        return Empty()
    return items[0] if len(items) == 1 else Concatenation(tuple(items))


def _quantify(item: RowPattern, tokens: Sequence[SqlToken], index: int, group: _Group) -> int:
    """Add an item with the quantifier behind it, if there is one, to the group; return the place behind both."""
    token = tokens[index]
    low: int
    high: int | None
    if token.is_sign("*", "+", "?"):
        low, high = {"*": (0, None), "+": (1, None), "?": (0, 1)}[token.value]
        index += 1
    elif token.is_sign("{") and not tokens[index + 1].is_sign("-"):
        low, high, index = _bounds(tokens, index)
    else:
        group.add(item)
        return index
    is_reluctant = tokens[index].is_sign("?")
    group.add(Quantified(item, low, high, is_reluctant))
    index += is_reluctant
    second = tokens[index]
    if second.is_sign("*", "+", "?") or (second.is_sign("{") and not tokens[index + 1].is_sign("-")):
        hint = "put the pattern before it in parentheses"
        raise error_at("a second quantifier follows the first", second.span, hint, code="query_syntax")
    return index


def _bounds(tokens: Sequence[SqlToken], index: int) -> tuple[int, int | None, int]:
    """Return the bounds of ``{n}``, ``{n,}``, ``{,m}`` or ``{n,m}``, and the place behind them."""
    opening = tokens[index]
    index += 1
    bounds: list[int | None] = [None]
    while not tokens[index].is_sign("}"):
        token = tokens[index]
        if token.kind == "number" and token.value.isdecimal() and bounds[-1] is None:
            if int(token.value) > MOST_TIMES:
                raise error_at(
                    f"a quantifier is at most {MOST_TIMES}",
                    token.span,
                    "leave out the bound, as in A{2,}",
                    code="query_size",
                )
            bounds[-1] = int(token.value)
        elif token.is_sign(",") and len(bounds) == 1:
            bounds.append(None)
        else:
            hint = "quantifiers are {n}, {n,}, {,m} and {n,m}"
            raise error_at(f"`{token.value[:40]}` cannot stand in a quantifier", token.span, hint, code="query_syntax")
        index += 1
    low, high = bounds[0], bounds[-1]
    if len(bounds) == 1 and low is None:
        raise error_at("a quantifier needs a number", opening.span, "as in {2,3}", code="query_syntax")
    if high is not None and high < (low or 0):
        raise error_at(
            f"at least {low} and at most {high} is never so",
            opening.span,
            f"as in {{{high},{low}}}",
            code="query_invalid",
        )
    if high == 0:
        raise error_at(
            "a quantifier allows at least one iteration", opening.span, "the empty pattern is ()", code="query_invalid"
        )
    return low or 0, high, index + 1
