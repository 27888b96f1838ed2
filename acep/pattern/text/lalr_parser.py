"""Parse text to a tree by the tables of an LALR(1) grammar.

The grammars are ``*.lark`` files. Their tables are stored beside them as JSON, because deriving them takes longer than
matching a small file. ``python -m tests.grammars`` derives them again with Lark, and a test compares them. The parser
gives the same tokens, trees and errors as Lark; it tries only the tokens that are possible at a place.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from functools import cache
from pkgutil import get_data
from typing import Any, Self

__all__ = ["END", "Parser", "ReadingError", "Token", "Tree", "parser"]

END = "$END"
"""The kind of the token that marks the end of a text."""


class Token(str):
    """A word of a text with its kind and its place.

    >>> Token("NAME", "price", 2).end_pos
    7
    """

    __slots__ = ("end_pos", "start_pos", "type")

    type: str
    start_pos: int
    end_pos: int

    def __new__(cls, type: str, value: str, start_pos: int = 0) -> Self:
        """Create a token that begins at ``start_pos``."""
        token = super().__new__(cls, value)
        token.type = type
        token.start_pos = start_pos
        token.end_pos = start_pos + len(value)
        return token


class Tree:
    """The result of a grammar rule for a piece of text: the rule's name, the parts that are kept, and the place.

    ``span`` is ``None`` if the piece is empty. ``outer`` includes brackets around the tree.
    """

    __slots__ = ("children", "data", "outer", "span")

    def __init__(self, data: str, children: list[Tree | Token]) -> None:
        self.data = data
        self.children = children
        self.span: tuple[int, int] | None = None
        self.outer: tuple[int, int] | None = None

    def __repr__(self) -> str:
        return f"Tree({self.data!r}, {self.children!r})"


class ReadingError(Exception):
    """A syntax error at ``position``, where only the kinds of tokens ``accepted`` are possible.

    ``token`` is the token at that place, or ``None`` if there is no valid token or the text has ended.
    """

    def __init__(self, position: int, token: Token | None, accepted: frozenset[str]) -> None:
        super().__init__(position, token, accepted)
        self.position = position
        self.token = token
        self.accepted = accepted


@cache
def parser(name: str) -> Parser:
    """Return the parser of a grammar of this folder."""
    data = get_data("acep.pattern.text", f"{name}.json")  # importing importlib.resources takes longer
    assert data is not None
    return Parser(json.loads(data))


class Parser:
    """A parser that is driven by tables.

    ``tables["terminals"]`` are pairs of a kind of token and its regular expression, in the order in which they are
    tried; ``"ignored"`` are the kinds that are skipped. ``"rules"`` has for each rule its symbol, its number of parts,
    the name of its tree, the parts that become children (pairs of an index and whether to take the part's children
    instead; ``null``: all) and whether a single child replaces the tree. ``"states"`` maps symbols for each state: to
    the next state or, complemented (``~``), to the rule that ends before the symbol. The first state is the start.
    """

    def __init__(self, tables: dict[str, Any]) -> None:
        self._regexes: dict[str, str] = dict(tables["terminals"])
        self._patterns: dict[str, re.Pattern[str]] = {}
        self._ignored = frozenset(tables["ignored"])
        self._rules: list[tuple[str, int, str, list[tuple[int, bool]] | None, bool]] = tables["rules"]
        self._states: list[dict[str, int]] = tables["states"]
        self._kinds: dict[int, list[str]] = {}

    def parse(self, text: str) -> Tree:
        """Parse a whole text to a tree. Raises :class:`ReadingError` at a syntax error."""
        states, values = [0], list[Tree | Token]()
        for _ in self._read(text, states, values):
            pass
        try:
            self._feed(Token(END, ""), states, values)
        except ReadingError as error:
            raise ReadingError(len(text.rstrip()), None, error.accepted) from None
        tree = values[0]
        assert isinstance(tree, Tree)
        return tree

    def tokens(self, text: str) -> list[Token]:
        """Return the tokens of a text that may be incomplete. Raises :class:`ReadingError` at a syntax error."""
        return list(self._read(text, [0], []))

    def _read(self, text: str, states: list[int], values: list[Tree | Token]) -> Iterator[Token]:
        """Yield the tokens, each after the stacks have processed it."""
        position = 0
        while position < len(text):
            kinds = self._kinds.get(states[-1]) or self._kinds_in(states[-1])
            token = self._match(text, position, kinds)
            if token is None:
                token = self._match(text, position, self._regexes)  # a token that is not possible here
                raise ReadingError(position, token, self._accepted_kinds(states))
            position = token.end_pos
            if token.type not in self._ignored:
                self._feed(token, states, values)
                yield token

    def _kinds_in(self, state: int) -> list[str]:
        possible_kinds = self._states[state].keys() | self._ignored
        kinds = self._kinds[state] = [kind for kind in self._regexes if kind in possible_kinds]
        return kinds

    def _match(self, text: str, position: int, kinds: Sequence[str] | dict[str, str]) -> Token | None:
        for kind in kinds:
            pattern = self._patterns.get(kind)
            if pattern is None:
                # Compile on first use: compiling all patterns takes longer than parsing.
                pattern = self._patterns[kind] = re.compile(self._regexes[kind])
            token_match = pattern.match(text, position)
            if token_match:
                return Token(kind, token_match[0], position)
        return None

    def _feed(self, token: Token, states: list[int], values: list[Tree | Token]) -> None:
        """Process a token, after the rules that end before it."""
        while True:
            step = self._states[states[-1]].get(token.type)
            if step is None:
                raise ReadingError(token.start_pos, token, self._accepted_kinds(states))
            if step >= 0:
                states.append(step)
                values.append(token)
                return
            symbol, size, name, kept_parts, single = self._rules[~step]
            first = len(values) - size
            node = _build_node(values[first:], name, kept_parts, single)
            del values[first:], states[first + 1 :]
            values.append(node)
            states.append(self._states[states[-1]][symbol])

    def _accepted_kinds(self, states: list[int]) -> frozenset[str]:
        """Return the kinds of tokens that may come next."""
        return frozenset(kind for kind in self._states[states[-1]] if kind.isupper() and self._may_take(states, kind))

    def _may_take(self, states: list[int], kind: str) -> bool:
        states = states.copy()
        while True:
            step = self._states[states[-1]].get(kind)
            if step is None or step >= 0:
                return step is not None
            symbol, size, *_ = self._rules[~step]
            del states[len(states) - size :]
            states.append(self._states[states[-1]][symbol])


def _build_node(
    parts: list[Tree | Token], name: str, kept_parts: Sequence[tuple[int, bool]] | None, single: bool
) -> Tree | Token:
    """Return the tree that a rule makes of its parts."""
    children = parts if kept_parts is None else list[Tree | Token]()
    for index, spread in kept_parts or ():
        part = parts[index]
        if not spread:
            children.append(part)
        else:
            assert isinstance(part, Tree)
            # A rule for a list has itself as its first part.
            children = children + part.children if children else part.children
    node = children[0] if single and len(children) == 1 else Tree(name, children)
    if isinstance(node, Tree):
        spans = [part_span for part in parts if (part_span := _span_of(part))]
        if spans:
            node.outer = spans[0][0], spans[-1][1]
            node.span = node.span or node.outer
    return node


def _span_of(part: Tree | Token) -> tuple[int, int] | None:
    return part.outer if isinstance(part, Tree) else (part.start_pos, part.end_pos)
