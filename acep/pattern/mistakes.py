"""What to say of text that does not fit the grammar: what stands there, what could, and the likely slip."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection

from lark import Token

from acep.errors import QueryError
from acep.pattern.times import UNITS

__all__ = ["explain"]

CLAUSES = ("WHERE", "WITHIN", "HAVING", "RETURN", "OUTPUT")
STRATEGIES = ("strict_contiguity", "partition_contiguity", "skip_till_next_match", "skip_till_any_match")

# What a reader is told for a terminal of the grammars; several may say the same.
_WORDS = {
    "NAME": "a name",
    "BACKTICK": "a name",
    "NUMBER": "a number",
    "PERCENT": "a number",
    "STRING": "a text in quotes",
    "TRUE": "an expression",
    "FALSE": "an expression",
    "_TIMESTAMP": "an expression",
    "NULL": "`NULL`",
    "_BANG": "`NOT`",
    "_TILDE": "`~`",
    "UNIT": "a unit such as `min`",
    "EVENTS": "`EVENTS`",
    "STRATEGY": "a strategy such as `skip_till_next_match`",
    "COMPARE": "an operator",
    "ADD": "an operator",
    "MULTIPLY": "an operator",
    "_IN": "an operator",
    "_BETWEEN": "an operator",
    "_LIKE": "an operator",
    "_IS": "an operator",
    "QUANT": "`+`, `*` or `?`",
    "_PIPE": "`|`",
    "LPAR": "`(`",
    "RPAR": "`)`",
    "LSQB": "`[`",
    "RSQB": "`]`",
    "LBRACE": "`{`",
    "RBRACE": "`}`",
    "COMMA": "`,`",
    "DOT": "`.`",
    "RANGE": "`..`",
    "SEMICOLON": "",
    "NON_OVERLAP": "",
    "EARLIEST_MAXIMAL": "",
    "ALL": "",
    "LETTER": "a letter",
    "TYPE": "a letter",
    "ANY_LETTER": "`.`",
    "$END": "the end of the query",
}
_OPENS_EXPRESSION = {"TRUE", "FALSE"}
_EXPRESSION = _OPENS_EXPRESSION | {
    "NAME", "BACKTICK", "NUMBER", "PERCENT", "STRING", "NULL", "_TIMESTAMP", "_NOT", "_BANG", "ADD", "LPAR", "LSQB",
}  # fmt: skip
_OPENS_ITEM = {"_TILDE"}
_ITEM = _OPENS_ITEM | {"NAME", "BACKTICK", "STRING", "ANY", "_SEQ", "LPAR", "LBRACE", "_NOT", "_BANG"}
_CLAUSE = {f"_{word}" for word in CLAUSES}
_COMPARISONS = {"=>": ">=", "=<": "<=", "===": "=", "=!": "!="}
_SMART = {
    "\N{LEFT SINGLE QUOTATION MARK}": "'",
    "\N{RIGHT SINGLE QUOTATION MARK}": "'",
    "\N{ACUTE ACCENT}": "'",
    "\N{LEFT DOUBLE QUOTATION MARK}": '"',
    "\N{RIGHT DOUBLE QUOTATION MARK}": '"',
    "\N{MINUS SIGN}": "-",
    "\N{EN DASH}": "-",
    "\N{LESS-THAN OR EQUAL TO}": "<=",
    "\N{GREATER-THAN OR EQUAL TO}": ">=",
    "\N{NOT EQUAL TO}": "!=",
}


def explain(text: str, at: int, token: Token | None, accepted: Collection[str]) -> QueryError:
    """The error for the text that stands at ``at``, where only the terminals ``accepted`` could stand.

    ``token`` is ``None`` at the end of the text and where no token could be read.
    """
    if token is None and at < len(text) and not text[at:].isspace():
        found = _unreadable(text, at)
        if found is not None:
            return found
        c = text[at]
        what, end = f"unexpected `{c}`" if c.isprintable() else f"unexpected character U+{ord(c):04X}", at + 1
    elif token is None:
        what, end = ("the query is empty" if not text.strip() else "the query ends too early"), at + 1
    else:
        shown = str(token) if len(token) <= 40 else f"{token[:37]}..."
        what, end = f"unexpected `{shown}`", token.end_pos or at + 1
    slip = _slip(text, at, token, accepted)
    if isinstance(slip, QueryError):
        return slip
    return QueryError(what, text=text, start=at, end=end, hint=slip or _expectation(accepted))


def _unreadable(text: str, at: int) -> QueryError | None:
    """An opening that is never closed, or a character that is no part of the language."""
    c = text[at]
    if c in "'\"`":
        what = "name" if c == "`" else "text"
        return QueryError(f"this {what} is not closed", text=text, start=at, end=at + 1, hint=f"write the closing {c}")
    if text.startswith("/*", at):
        return QueryError("this comment is not closed", text=text, start=at, end=at + 2, hint="write the closing */")
    if c in _SMART:
        return QueryError(f"unexpected `{c}`", text=text, start=at, end=at + 1, hint=f"write {_SMART[c]}")
    return None


def _slip(text: str, at: int, token: Token | None, accepted: Collection[str]) -> str | QueryError | None:
    """A hint for the usual slips, or an error at an earlier place that is the real one."""
    before = text[:at].rstrip()
    two = (before[-1:] if before.endswith(("=", "<", ">", "!")) else "") + text[at : at + 1]
    if two in _COMPARISONS:
        return f"write {_COMPARISONS[two]}"
    if text.startswith("|", at) and ("TRUE" in accepted or "_OR" in accepted):
        return "write OR for alternatives and abs(x) for an absolute value"
    if text.startswith("&", at) and "_AND" in accepted:
        return "write AND"
    if text.startswith("|", at) and re.search(r"\bseq\s*\([^()]*$", before, re.IGNORECASE):
        return "put the alternatives in parentheses: (A a | B b)"
    strategy = _misspelled_strategy(text, at)
    if strategy is not None:
        return strategy
    if token is None and at < len(text.rstrip()):
        return "write a name that is no single letter in quotes: 'A_1'" if "LETTER" in accepted else None
    if token is None:
        return _unclosed(before) if "$END" not in accepted else None
    if token.type == "QUANT" and "LETTER" in accepted and before.endswith(("+", "*", "?", "}")):
        return "two repetitions in a row: put the first in parentheses"
    word = str(token).lower()
    if token.type == "COMPARE" and "_AND" in accepted:
        return "comparisons do not chain: a < b AND b < c"
    if "UNIT" in accepted and token.type == "NAME":
        guess = _did_you_mean(word, [*UNITS, *CLAUSES, "EVENTS" if "EVENTS" in accepted else "AND", "OR"])
        if guess or "_AND" not in accepted:
            return guess or _expectation(accepted)
    if token.type == "NAME" and "COMMA" in accepted and "RPAR" in accepted and re.search(r"\w\s*(\[\s*\])?$", before):
        return "is a comma missing before it?"
    if _CLAUSE & set(accepted) and token.type == "NAME":
        guess = _did_you_mean(word, [*CLAUSES, "AND", "OR", "BETWEEN", "LIKE", "EARLIEST MAXIMAL", "NON OVERLAP"])
        if guess or "_AND" not in accepted:
            return guess
    if "_AND" in accepted and token.type in _EXPRESSION:
        return "is AND missing before it?"
    if "_PATTERN" in accepted:
        return _did_you_mean(word, ["PATTERN", "FROM"]) or "a query begins with PATTERN, or FROM ... PATTERN"
    if f"_{word.upper()}" in _CLAUSE and "RBRACE" in accepted:
        return "is a `}` missing before it?"
    if f"_{word.upper()}" in _CLAUSE and "RPAR" in accepted:
        return "is a `)` missing before it?"
    return None


def _did_you_mean(word: str, known: Collection[str]) -> str | None:
    by_lower = {k.lower(): k for k in known}
    close = difflib.get_close_matches(word[:60], list(by_lower), n=1, cutoff=0.7)
    return f"did you mean {by_lower[close[0]]}?" if close else None


def _misspelled_strategy(text: str, at: int) -> QueryError | None:
    """An error at the word after WHERE, if what follows it can only be a misspelled strategy."""
    for found in re.finditer(r"\bwhere\s+([^\W\d]\w*)", text[:at], re.IGNORECASE):
        word = found.group(1)
        if word.lower() in STRATEGIES:
            continue
        close = difflib.get_close_matches(word.lower()[:60], STRATEGIES, n=1, cutoff=0.7)
        if close:
            start, end = found.span(1)
            hint = f"did you mean {close[0]}?"
            return QueryError(f"unknown strategy `{word[:40]}`", text=text, start=start, end=end, hint=hint)
    return None


def _unclosed(before: str) -> str | None:
    """The bracket that is still open at the end of the text."""
    bare = re.sub(r"/\*[\s\S]*?\*/|--[^\n]*|//[^\n]*|'[^']*'|\"[^\"]*\"|`[^`]*`", "", before)
    closing = {"(": ")", "[": "]", "{": "}"}
    stack: list[str] = []
    for c in bare:
        if c in closing:
            stack.append(c)
        elif stack and closing[stack[-1]] == c:
            stack.pop()
    if stack:
        return f"a `{stack[-1]}` is not closed: write `{closing[stack[-1]]}`"
    return None


def _expectation(accepted: Collection[str]) -> str | None:
    """What could stand there, in words."""
    left = set(accepted)
    words: list[str] = []
    if left >= _OPENS_EXPRESSION:
        words.append("an expression")
        left -= _EXPRESSION
    elif left >= _OPENS_ITEM:
        words.append("a component such as `Type name`")
        left -= _ITEM
    if left >= _CLAUSE:
        words.append("a clause (WHERE, WITHIN, HAVING, RETURN, OUTPUT)")
        left -= _CLAUSE
    if "COMPARE" in left:
        left.discard("_NOT")
    for name in sorted(left, key=lambda n: (list(_WORDS).index(n) if n in _WORDS else -1, n)):
        word = _WORDS.get(name, f"`{name.strip('_').replace('_', ' ')}`")
        if word and word not in words:
            words.append(word)
    if not words or len(words) > 9:
        return None
    return "expected " + (" or ".join(words) if len(words) < 3 else ", ".join(words[:-1]) + " or " + words[-1])
