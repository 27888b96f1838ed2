"""Parse text to a tree of the grammar within size limits, and raise a :class:`QueryError` for text that does not fit.

The grammars are LALR(1), so parsing always takes time linear in the length of the text. Trees that nest too deeply are
rejected here, before any recursive function processes them.
"""

from __future__ import annotations

import re
from typing import TypeAlias

from acep.errors import Code, QueryError
from acep.pattern.expressions import Span, error_at
from acep.pattern.text.lalr_parser import ReadingError, Token, Tree, parser

__all__ = [
    "LONGEST",
    "Branch",
    "Leaf",
    "amounts",
    "branches",
    "fail",
    "name",
    "quote",
    "read",
    "span",
    "tokens",
    "unquote",
]

LONGEST = 100_000
"""The longest query, in characters."""

_DEEPEST = 150
_SURROGATE = re.compile("[\ud800-\udfff]")

Branch: TypeAlias = Tree
Leaf: TypeAlias = Branch | Token


def read(name: str, text: str) -> Branch:
    """Parse ``text`` by the grammar ``name`` to a tree. Raises :class:`QueryError` at the place of a mistake."""
    if len(text) > LONGEST:
        hint = "are the query and the events swapped?"
        raise QueryError(f"the query is longer than {LONGEST} characters", hint=hint, code="query_size")
    if half := _SURROGATE.search(text):
        message = f"`\\u{ord(half[0]):04x}` is no character"
        raise QueryError(
            message, start=half.start(), end=half.end(), hint="is the query in another encoding?", code="query_syntax"
        )
    try:
        tree = parser(name).parse(text)
    except ReadingError as error:
        # The module that explains mistakes is imported only if there is one.
        from acep.pattern.text.mistakes import explain

        raise explain(text, error.position, error.token, error.accepted) from None
    _check_depth(tree)
    return tree


def _check_depth(tree: Branch) -> None:
    stack = [(tree, 1)]
    while stack:
        branch, depth = stack.pop()
        if depth > _DEEPEST:
            raise fail("this is nested too deeply", branch, code="query_size")
        stack.extend((child, depth + 1) for child in branch.children if isinstance(child, Tree))


def span(leaf: Leaf) -> Span:
    """Return the place of a part of the tree."""
    if isinstance(leaf, Token):
        return Span(leaf.start_pos, leaf.end_pos)
    return Span(*(leaf.span or (0, 0)))


def fail(
    message: str, part: Leaf | Span | None = None, hint: str | None = None, code: Code = "query_invalid"
) -> QueryError:
    """Return a :class:`QueryError` at a place; the front end adds the text."""
    return error_at(message, part if isinstance(part, Span) or part is None else span(part), hint, code)


def branches(branch: Branch, *names: str) -> list[Branch]:
    """Return the direct subtrees, only those with the given names if any are given."""
    return [c for c in branch.children if isinstance(c, Tree) and (not names or c.data in names)]


def tokens(branch: Branch) -> list[Token]:
    """Return the direct tokens of a tree."""
    return [c for c in branch.children if isinstance(c, Token)]


def amounts(branch: Branch) -> list[tuple[str, str]]:
    """Return the direct tokens of a tree in pairs of a number and its unit."""
    words = tokens(branch)
    return [(str(number), str(unit)) for number, unit in zip(words[::2], words[1::2], strict=True)]


def unquote(token: Token) -> str:
    """Return the name or text of a token without its quotes; a doubled quote means one quote.

    >>> unquote(Token("STRING", "'it''s'"))
    "it's"
    """
    if token[:1] in ("'", '"', "`"):
        return token[1:-1].replace(token[0] * 2, token[0])
    return str(token)


def quote(name: str) -> str:
    """Return a name for a message: shortened, in backquotes."""
    return f"`{name if len(name) <= 40 else name[:37] + '...'}`"


def name(branch: Branch) -> str:
    """Return the text of a subtree with one name, type or label. Raises :class:`QueryError` if it is empty."""
    unquoted = unquote(tokens(branch)[0])
    if not unquoted:
        raise fail("an empty name", branch, "write something between the quotes", code="query_syntax")
    return unquoted
