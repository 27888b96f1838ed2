"""Tell where parts of a clause, expressions in them, and names of measures begin and end."""

from __future__ import annotations

from collections.abc import Sequence

from acep.pattern.sql.scanner import SqlToken

__all__ = ["PART_WORDS", "begins_part", "ends_expression", "is_alias"]

# The words that begin the parts of a clause, each with the word or sign that must follow.
PART_WORDS: dict[str, tuple[str, ...]] = {
    "PARTITION": ("BY",),
    "ORDER": ("BY",),
    "MEASURES": (),
    "ONE": ("ROW",),
    "ALL": ("ROWS",),
    "AFTER": ("MATCH",),
    "PATTERN": ("(",),
    "INITIAL": ("PATTERN",),
    "SEEK": ("PATTERN",),
    "WITHIN": (),
    "ERRORS": (),
    "SUBSET": (),
    "DEFINE": (),
    "DEFINES": (),
}
# Words behind which an operand still has to come, so that no name of a measure can stand there.
_OPEN_WORDS = (
    "AND", "OR", "NOT", "LIKE", "ILIKE", "IN", "IS", "BETWEEN", "THEN", "ELSE", "WHEN", "CASE", "DISTINCT", "FROM",
    "ESCAPE", "INTERVAL", "DATE", "TIMESTAMP", "RUNNING", "FINAL", "AS", "TO", "DIV", "ZONE", "MEASURES",
)  # fmt: skip
# Words that end an operand, and are no names of measures without AS.
_LAST_WORDS = ("NULL", "TRUE", "FALSE", "END", "UNKNOWN", "ASC", "DESC")


def begins_part(tokens: Sequence[SqlToken], index: int) -> bool:
    """Return whether a part of the clause begins at a token."""
    token = tokens[index]
    if token.kind != "word" or (following := PART_WORDS.get(token.value.upper())) is None:
        return False
    after = tokens[index + 1]
    if token.is_word("WITHIN") and after.is_word("GROUP"):
        return False
    if token.is_word("ERRORS"):
        return after.kind == "number"
    return not following or after.is_word(*following) or after.is_sign(*following)


def ends_expression(tokens: Sequence[SqlToken], index: int, named: bool, ordered: bool) -> bool:
    """Return whether an expression ends before a place, outside of parentheses: that of a measure (``named``) before
    its name, that of a key (``ordered``) before its direction, and each before the next part."""
    token, before = tokens[index], tokens[index - 1]
    is_star = before.is_sign("*") and (index < 2 or not _ends_operand(tokens[index - 2]))
    if not is_star and before.is_sign(".", "+", "-", "*", "/", "=", "<", ">", "<=", ">=", "<>", "!=", "||"):
        return False
    if named and (token.is_word("AS") or is_alias(tokens, index)):
        return True
    if ordered and token.is_word("ASC", "DESC", "NULLS"):
        return True
    return begins_part(tokens, index)


def is_alias(tokens: Sequence[SqlToken], index: int) -> bool:
    """Return whether a token is the name of a measure that stands behind its expression without AS.

    >>> from acep.pattern.sql.scanner import scan
    >>> is_alias(scan("sum(x) total"), 4), is_alias(scan("x IS NULL"), 2)
    (True, False)
    """
    token, after = tokens[index], tokens[min(index + 1, len(tokens) - 1)]
    if token.kind not in ("word", "name") or token.is_word(*_LAST_WORDS) or index == 0:
        return False
    before = tokens[index - 1]
    is_operand = before.kind in ("word", "name", "number", "string") or before.is_sign(")", "]")
    if before.is_word(*_OPEN_WORDS) or not is_operand:
        return False
    if before.kind in ("string", "number") and tokens[index - 2].is_word("INTERVAL"):
        return False
    return after.kind == "end" or after.is_sign(",", ")") or begins_part(tokens, index + 1)


def _ends_operand(token: SqlToken) -> bool:
    """Return whether an operand may end with a token, so that a star behind it multiplies."""
    is_operand = token.kind == "word" and not token.is_word("MEASURES")
    return is_operand or token.kind in ("name", "string", "number") or token.is_sign(")", "]")
