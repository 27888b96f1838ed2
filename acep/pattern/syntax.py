"""Text to a tree of the grammar, within limits; what does not fit becomes a :class:`QueryError`.

The grammars are LALR(1), so that reading takes time linear in the text, whatever the text is. Trees that
nest too deeply are refused here, before anything recursive looks at them.
"""

from __future__ import annotations

import re
from typing import TypeAlias

from acep.errors import QueryError
from acep.pattern.expressions import Span
from acep.pattern.reading import ReadingError, Token, Tree, parser

__all__ = ["LONGEST", "Branch", "Leaf", "branches", "fail", "name", "quoted", "read", "span", "tokens", "unquote"]

LONGEST = 100_000
"""The longest query, in characters."""

_DEEPEST = 150
_SURROGATE = re.compile("[\ud800-\udfff]")

Branch: TypeAlias = Tree
Leaf: TypeAlias = Branch | Token


def read(name: str, text: str) -> Branch:
    """The tree of ``text`` by the grammar ``name``. Raises :class:`QueryError` at the place of a mistake."""
    if len(text) > LONGEST:
        hint = "are the query and the events swapped?"
        raise QueryError(f"the query is longer than {LONGEST} characters", hint=hint)
    if half := _SURROGATE.search(text):
        message = f"`\\u{ord(half[0]):04x}` is no character"
        raise QueryError(message, start=half.start(), end=half.end(), hint="is the query in another encoding?")
    try:
        tree = parser(name).parse(text)
    except ReadingError as found:
        # What is to be said of mistakes is loaded where there is one.
        from acep.pattern.mistakes import explain

        raise explain(text, found.at, found.token, found.accepted) from None
    _check_depth(tree)
    return tree


def _check_depth(tree: Branch) -> None:
    stack = [(tree, 1)]
    while stack:
        branch, depth = stack.pop()
        if depth > _DEEPEST:
            raise fail("this is nested too deeply", branch)
        stack.extend((child, depth + 1) for child in branch.children if isinstance(child, Tree))


def span(leaf: Leaf) -> Span:
    """Where a part of the tree stands."""
    if isinstance(leaf, Token):
        return Span(leaf.start_pos, leaf.end_pos)
    return Span(*(leaf.span or (0, 0)))


def fail(message: str, at: Leaf | Span | None = None, hint: str | None = None) -> QueryError:
    """A :class:`QueryError` at a place; the text is filled in by the front end."""
    where = at if isinstance(at, Span) or at is None else span(at)
    if where is None:
        return QueryError(message, hint=hint)
    return QueryError(message, start=where.start, end=where.end, hint=hint)


def branches(branch: Branch, *names: str) -> list[Branch]:
    """The subtrees directly below, of the given names if any are given."""
    return [c for c in branch.children if isinstance(c, Tree) and (not names or c.data in names)]


def tokens(branch: Branch) -> list[Token]:
    """The tokens directly below."""
    return [c for c in branch.children if isinstance(c, Token)]


def unquote(token: Token) -> str:
    """The name or text of a token, without its quotes; a doubled quote stands for one.

    >>> unquote(Token("STRING", "'it''s'"))
    "it's"
    """
    if token[:1] in ("'", '"', "`"):
        return token[1:-1].replace(token[0] * 2, token[0])
    return str(token)


def quoted(name: str) -> str:
    """A name as it is shown in a message: shortened, in backquotes."""
    return f"`{name if len(name) <= 40 else name[:37] + '...'}`"


def name(branch: Branch) -> str:
    """The text of a subtree that holds one name, type or label; :class:`QueryError` if it is empty."""
    found = unquote(tokens(branch)[0])
    if not found:
        raise fail("an empty name", branch, "write something between the quotes")
    return found
