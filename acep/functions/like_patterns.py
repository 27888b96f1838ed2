"""Match texts as SQL's LIKE does, in time that grows with the text and the pattern, never exponentially."""

from __future__ import annotations

import re
from collections.abc import Callable

__all__ = ["compile_like"]

Piece = tuple[str | None, ...]
"""Characters of a pattern between two ``%``; ``None`` stands for any one."""


def compile_like(pattern: str) -> Callable[[str], bool]:
    r"""Return a function that tells whether a text matches: ``%`` is any characters, ``_`` one, and a backslash takes
    the next one literally.

    >>> compile_like("%atin%")("creatinine"), compile_like(r"50\%")("50%"), compile_like("a_")("abc")
    (True, True, False)
    """
    pieces = _pieces_of(pattern)
    if (plain_match := _plain_match(pieces)) is not None:
        return plain_match
    first, *later_pieces = pieces
    begins, n_first = _test_at(first), len(first)
    if not later_pieces:
        return lambda text: len(text) == n_first and begins(text, 0)
    *inner, last = later_pieces
    ends, n_last = _test_at(last), len(last)
    finders = tuple((_finder_of(piece), len(piece)) for piece in inner if piece)
    least_length = n_first + n_last

    def matches(text: str) -> bool:
        end = len(text) - n_last
        if len(text) < least_length or not begins(text, 0) or not ends(text, end):
            return False
        at = n_first
        # The earliest place of each piece leaves most room for those behind it.
        for find, size in finders:
            at = find(text, at, end)
            if at < 0:
                return False
            at += size
        return True

    return matches


def _plain_match(pieces: list[Piece]) -> Callable[[str], bool] | None:
    """Return the function of the usual patterns, ``x``, ``x%``, ``%x`` and ``%x%``; ``None`` for others."""
    if any(None in piece for piece in pieces):
        return None
    match [_literal_of(piece) for piece in pieces]:
        case [whole]:
            return lambda text: text == whole
        case ["", inner, ""]:
            return lambda text: inner in text
        case [beginning, ""]:
            return lambda text: text.startswith(beginning)
        case ["", ending]:
            return lambda text: text.endswith(ending)
    return None


def _pieces_of(pattern: str) -> list[Piece]:
    pieces: list[list[str | None]] = [[]]
    characters = iter(pattern)
    for character in characters:
        if character == "\\":
            pieces[-1].append(next(characters, character))
        elif character == "%":
            pieces.append([])
        else:
            pieces[-1].append(None if character == "_" else character)
    return [tuple(piece) for piece in pieces]


def _literal_of(piece: Piece) -> str:
    return "".join(map(str, piece))


def _test_at(piece: Piece) -> Callable[[str, int], bool]:
    """Return a function that tells whether a text has the piece at a place."""
    if None not in piece:
        literal = _literal_of(piece)
        return lambda text, at: text.startswith(literal, at)
    match = _regex_of(piece).match
    return lambda text, at: match(text, at) is not None


def _finder_of(piece: Piece) -> Callable[[str, int, int], int]:
    """Return a function that gives the first place of the piece in a part of a text, or -1."""
    if None not in piece:
        literal = _literal_of(piece)
        return lambda text, begin, end: text.find(literal, begin, end)
    search = _regex_of(piece).search

    def find(text: str, begin: int, end: int) -> int:
        piece_match = search(text, begin, end)
        return -1 if piece_match is None else piece_match.start()

    return find


def _regex_of(piece: Piece) -> re.Pattern[str]:
    """Return the regular expression of a piece, whose matches all have its length."""
    return re.compile("".join("." if part is None else re.escape(part) for part in piece), re.DOTALL)
