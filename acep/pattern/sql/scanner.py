"""Split the text of SQL into words, names, texts, numbers and signs, each with its place."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from math import isinf

from acep.pattern.expressions import Span, error_at

__all__ = ["SqlToken", "closing_place", "exact_number", "scan"]

_TOKEN = re.compile(
    r"""(?P<blank>\s+|--[^\n]*|/\*.*?\*/)
      | (?P<string>'(?:[^']|'')*')
      | (?P<name>"(?:[^"]|"")+"|`(?:[^`]|``)+`)
      | (?P<number>\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)
      | (?P<word>[^\W\d]\w*)
      | (?P<sign><>|!=|<=|>=|\|\||::|.)""",
    re.VERBOSE | re.DOTALL,
)


_SURROGATE = re.compile("[\ud800-\udfff]")
_NUMBER = re.compile(r"[+-]?(\d{1,400}(\.\d{0,400})?|\.\d{1,400})([eE][+-]?0*\d{1,3})?")


@dataclass(frozen=True)
class SqlToken:
    """A part of the text. ``kind``: ``word``, ``name`` (in quotes), ``string``, ``number``, ``sign`` or ``end``.

    ``value`` is the text itself, of a name what stands between its quotes."""

    kind: str
    value: str
    start: int
    end: int

    @property
    def span(self) -> Span:
        """Return its place."""
        return Span(self.start, self.end)

    def is_word(self, *words: str) -> bool:
        """Return whether it is one of some keywords, in capitals or not."""
        return self.kind == "word" and self.value.upper() in words

    def is_sign(self, *signs: str) -> bool:
        """Return whether it is one of some signs."""
        return self.kind == "sign" and self.value in signs


def exact_number(text: str) -> Fraction:
    """Return the number that a text is. Raises :class:`ValueError` for another text, and for one that no double holds,
    which would take long to expand.

    >>> exact_number("-1.5e1")
    Fraction(-15, 1)
    """
    if not _NUMBER.fullmatch(text) or isinf(float(text)):
        raise ValueError(text)
    return Fraction(text)


def scan(text: str) -> list[SqlToken]:
    """Return the tokens of a text, and one of kind ``end`` behind them; comments are left out.

    Raises :class:`QueryError` for a text, a name in quotes or a comment that does not end, and for half a character.

    >>> [(token.kind, token.value) for token in scan('"a b" >= 1 -- why')]
    [('name', 'a b'), ('sign', '>='), ('number', '1'), ('end', '')]
    """
    if half := _SURROGATE.search(text):
        message, hint = f"`\\u{ord(half[0]):04x}` is no character", "is the text in another encoding?"
        raise error_at(message, Span(*half.span()), hint, code="query_syntax")
    tokens: list[SqlToken] = []
    position = 0
    while position < len(text):
        part = _TOKEN.match(text, position)
        assert part is not None  # a sign is any character
        kind, value = str(part.lastgroup), part.group()
        if value in ("'", '"', "`") or (value == "/" and text.startswith("/*", position)):
            names, ends = {"'": "text", "/": "comment"}, {"/": "*/"}
            hint = f"is `{ends.get(value, value)}` missing?"
            raise error_at(
                f"this {names.get(value, 'name')} does not end", Span(position, position + 1), hint, code="query_syntax"
            )
        if kind == "name":
            value = value[1:-1].replace(value[0] * 2, value[0])
        if kind != "blank":
            tokens.append(SqlToken(kind, value, position, part.end()))
        position = part.end()
    return [*tokens, SqlToken("end", "", len(text), len(text))]


def closing_place(tokens: list[SqlToken], opening: int) -> int:
    """Return the place of the parenthesis that ends the one at ``opening``.

    Raises :class:`QueryError` if there is none."""
    depth = 0
    for index in range(opening, len(tokens)):
        depth += tokens[index].is_sign("(") - tokens[index].is_sign(")")
        if depth == 0:
            return index
    raise error_at("this parenthesis does not end", tokens[opening].span, "is `)` missing?", code="query_syntax")
