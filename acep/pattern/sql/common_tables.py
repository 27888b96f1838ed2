"""Find the common tables (WITH) that can be seen at a place of a statement of SQL."""

from __future__ import annotations

from acep.pattern.sql.scanner import SqlToken, closing_place, scan

__all__ = ["common_tables"]


def common_tables(text: str, name: str) -> str:
    """Return the WITH clause of the common tables that can be seen where a name in quotes stands first, or nothing.

    >>> common_tables('WITH a AS (SELECT 1), b AS (SELECT * FROM "here"), c AS (SELECT 2) SELECT 3', "here")
    'WITH a AS (SELECT 1)'
    """
    tokens = scan(text)
    target = next((i for i, token in enumerate(tokens) if token.kind == "name" and token.value == name), None)
    if target is None:
        return ""
    definitions: dict[str, str] = {}
    is_recursive = False
    place, end = 0, len(tokens) - 1
    while place < end:
        if tokens[place].is_word("WITH") and _definition(tokens, _first_name(tokens, place)) is not None:
            is_recursive |= tokens[place + 1].is_word("RECURSIVE")
            place = _first_name(tokens, place)
            while (bounds := _definition(tokens, place)) is not None:
                opening, closing = bounds
                if opening < target < closing:
                    place, end = opening + 1, closing
                    break
                definitions.pop(tokens[place].value.casefold(), None)
                definitions[tokens[place].value.casefold()] = text[tokens[place].start : tokens[closing].end]
                place = closing + 1
                if not tokens[place].is_sign(","):
                    break
                place += 1
        elif tokens[place].is_sign("("):
            closing = closing_place(tokens, place)
            if place < target < closing:
                place, end = place + 1, closing
            else:
                place = closing + 1
        else:
            place += 1
    if not definitions:
        return ""
    return ("WITH RECURSIVE " if is_recursive else "WITH ") + ", ".join(definitions.values())


def _first_name(tokens: list[SqlToken], place: int) -> int:
    return place + 2 if tokens[place + 1].is_word("RECURSIVE") else place + 1


def _definition(tokens: list[SqlToken], place: int) -> tuple[int, int] | None:
    """Return the parentheses around the query of the common table whose name stands at a place, if one does."""
    if tokens[place].kind not in ("word", "name"):
        return None
    place += 1
    if tokens[place].is_sign("("):  # names of its columns
        place = closing_place(tokens, place) + 1
    if not tokens[place].is_word("AS"):
        return None
    place += 1
    while tokens[place].is_word("NOT", "MATERIALIZED"):
        place += 1
    return (place, closing_place(tokens, place)) if tokens[place].is_sign("(") else None
