"""Find the common tables (WITH) that can be seen at a place of a statement of SQL."""

from __future__ import annotations

from acep.pattern.expressions import Span
from acep.pattern.sql.scanner import SqlToken, closing_place, scan
from acep.pattern.sql.text_places import TextPlaces

__all__ = ["common_tables", "common_tables_with_places"]


def common_tables(text: str, name: str) -> str:
    """Return the WITH clause of the common tables that can be seen where a name in quotes stands first, or nothing.

    >>> common_tables('WITH a AS (SELECT 1), b AS (SELECT * FROM "here"), c AS (SELECT 2) SELECT 3', "here")
    'WITH a AS (SELECT 1)'
    """
    return common_tables_with_places(text, name, TextPlaces.of_text(len(text)))[0]


def common_tables_with_places(text: str, name: str, places: TextPlaces) -> tuple[str, TextPlaces]:
    """Return the WITH clause of :func:`common_tables`, and where it stands in the text of the user; ``places`` are
    those of ``text``."""
    tokens = scan(text)
    target = next((i for i, token in enumerate(tokens) if token.kind == "name" and token.value == name), None)
    if target is None:
        return "", TextPlaces.unknown(0)
    definitions: dict[str, Span] = {}
    is_recursive = False
    index, end = 0, len(tokens) - 1
    while index < end:
        if tokens[index].is_word("WITH") and _definition(tokens, _first_name(tokens, index)) is not None:
            is_recursive |= tokens[index + 1].is_word("RECURSIVE")
            index = _first_name(tokens, index)
            while (bounds := _definition(tokens, index)) is not None:
                opening, closing = bounds
                if opening < target < closing:
                    index, end = opening + 1, closing
                    break
                definitions.pop(tokens[index].value.casefold(), None)
                definitions[tokens[index].value.casefold()] = Span(tokens[index].start, tokens[closing].end)
                index = closing + 1
                if not tokens[index].is_sign(","):
                    break
                index += 1
        elif tokens[index].is_sign("("):
            closing = closing_place(tokens, index)
            if index < target < closing:
                index, end = index + 1, closing
            else:
                index = closing + 1
        else:
            index += 1
    separator = "WITH RECURSIVE " if is_recursive else "WITH "
    common, common_places = "", TextPlaces.unknown(0)
    for span in definitions.values():
        common += separator + text[span.start : span.end]
        common_places = common_places + TextPlaces.unknown(len(separator)) + places.part(span.start, span.end)
        separator = ", "
    return common, common_places


def _first_name(tokens: list[SqlToken], index: int) -> int:
    return index + 2 if tokens[index + 1].is_word("RECURSIVE") else index + 1


def _definition(tokens: list[SqlToken], index: int) -> tuple[int, int] | None:
    """Return the parentheses around the query of the common table whose name stands at a place, if one does."""
    if tokens[index].kind not in ("word", "name"):
        return None
    index += 1
    if tokens[index].is_sign("("):  # names of its columns
        index = closing_place(tokens, index) + 1
    if not tokens[index].is_word("AS"):
        return None
    index += 1
    while tokens[index].is_word("NOT", "MATERIALIZED"):
        index += 1
    return (index, closing_place(tokens, index)) if tokens[index].is_sign("(") else None
