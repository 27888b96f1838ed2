"""Explain syntax errors: the text that was found, the text that is accepted there, and the likely mistake."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass

from acep.errors import QueryError
from acep.pattern.text.foreign_syntax import foreign_at
from acep.pattern.text.lalr_parser import Token
from acep.pattern.times import UNITS, unit_ns

__all__ = ["explain"]

CLAUSES = ("WHERE", "WITHIN", "HAVING", "RETURN", "OUTPUT")
STRATEGIES = ("strict_contiguity", "partition_contiguity", "skip_till_next_match", "skip_till_any_match")

# The words for each terminal of the grammars; several terminals may share one.
_WORDS = {
    "NAME": "a name",
    "BACKTICK": "a name",
    "NUMBER": "a number",
    "PERCENT": "a number",
    "PARAMETER": "a parameter",
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
    "_IN": "`IN`",
    "QUANT": "`+`",
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
    "DISTINCT": "",
    "LONGEST_AFTER_SKIP": "`LONGEST AFTER MATCH SKIP`",
    "SHORTEST_AFTER_SKIP": "`SHORTEST AFTER MATCH SKIP`",
    "PAST_LAST": "`PAST LAST EVENT`",
    "TO_NEXT": "`TO NEXT EVENT`",
    "TO_FIRST": "`TO FIRST`",
    "TO_LAST": "`TO LAST`",
    "TO": "`TO`",
    "LETTER": "a letter",
    "TYPE": "a letter",
    "ANY_LETTER": "`.`",
    "$END": "the end of the query",
}
_OPENS_EXPRESSION = {"TRUE", "FALSE"}
_EXPRESSION = _OPENS_EXPRESSION | {
    "NAME", "BACKTICK", "NUMBER", "PERCENT", "PARAMETER", "STRING", "NULL", "_TIMESTAMP", "_NOT", "_BANG", "ADD",
    "LPAR", "LSQB", "_CASE",
}  # fmt: skip
_OPENS_ITEM = {"_TILDE"}
_ITEM = _OPENS_ITEM | {"NAME", "BACKTICK", "STRING", "ANY", "_SEQ", "LPAR", "LBRACE", "_NOT", "_BANG"}
_CLAUSE = {f"_{word}" for word in CLAUSES}
_JOINING = ("AND", "OR", "BETWEEN", "LIKE", "AS")
_OUTPUTS = {
    "ALL", "NON_OVERLAP", "EARLIEST_MAXIMAL", "LONGEST_NON_OVERLAP", "SHORTEST_NON_OVERLAP", "LONGEST_AFTER_SKIP",
    "SHORTEST_AFTER_SKIP",
}  # fmt: skip
_OUTPUT_WORDS = ("ALL", "EARLIEST MAXIMAL", "NON OVERLAP", "LONGEST NON OVERLAP", "SHORTEST NON OVERLAP")
_OPERATORS = {"COMPARE", "ADD", "MULTIPLY", "_IN", "_NOT", "_BETWEEN", "_LIKE", "_IS"}
_COMPARISONS = {"===": "=", "!==": "!=", "=>": ">=", "=<": "<=", "=!": "!=", "><": "!="}
_SMART = {
    "\N{LEFT SINGLE QUOTATION MARK}": "'",
    "\N{RIGHT SINGLE QUOTATION MARK}": "'",
    "\N{ACUTE ACCENT}": "'",
    "\N{LEFT DOUBLE QUOTATION MARK}": '"',
    "\N{RIGHT DOUBLE QUOTATION MARK}": '"',
    "\N{MINUS SIGN}": "-",
    "\N{EN DASH}": "-",
    "\N{MULTIPLICATION SIGN}": "*",
}


_ONE_STRATEGY = "one strategy holds for the whole pattern: ~ANY n between two steps says that nothing comes between"
_IN_VALUE = ("LPAR", "ADD", "MULTIPLY")


@dataclass(frozen=True)
class Spot:
    """The place where parsing stopped: before ``token``, at a character that begins no token, or at the text's end.

    Only the terminals ``accepted`` are possible there.
    """

    text: str
    position: int
    token: Token | None
    accepted: frozenset[str]

    @property
    def before(self) -> str:
        """Return the text before it, without trailing space."""
        return self.text[: self.position].rstrip()

    @property
    def ended(self) -> bool:
        """Return whether the text is at its end."""
        return self.token is None and not self.text[self.position :].strip()

    @property
    def kind(self) -> str:
        """Return the terminal at this place, or ``""``."""
        return "" if self.token is None else self.token.type

    @property
    def word(self) -> str:
        """Return the token at this place in lower case, or ``""``."""
        return "" if self.token is None else str(self.token).lower()

    def error(self, message: str, hint: str | None, length: int = 1) -> QueryError:
        """Return an error at this place."""
        end = self.position + length if self.token is None else self.token.end_pos
        return QueryError(message, text=self.text, start=self.position, end=end, hint=hint, code="query_syntax")


def explain(text: str, position: int, token: Token | None, accepted: Collection[str]) -> QueryError:
    """Return the error for the text at ``position``, where only the terminals ``accepted`` are possible.

    ``token`` is ``None`` at the end of the text, and if no token could be read.
    """
    spot = Spot(text, position, token, frozenset(accepted))
    for slip in SLIPS:
        finding = slip(spot)
        if isinstance(finding, QueryError):
            return finding
        if finding is not None:
            return spot.error(_what(spot), finding)
    return spot.error(_what(spot), _expectation(spot.accepted))


def _what(spot: Spot) -> str:
    if spot.ended:
        return "the query ends too early" if spot.text.strip() else "the query is empty"
    if spot.token is not None:
        return f"unexpected `{spot.token if len(spot.token) <= 40 else spot.token[:37] + '...'}`"
    c = spot.text[spot.position]
    return f"unexpected `{c}`" if c.isprintable() else f"unexpected character U+{ord(c):04X}"


# ---- the usual mistakes: each function returns a hint, a more specific error, or None


def _not_closed(spot: Spot) -> QueryError | None:
    """Find a quote or comment that is never closed."""
    if spot.token is not None or spot.ended:
        return None
    c = spot.text[spot.position]
    if c in "'\"`":
        return spot.error(f"this {'name' if c == '`' else 'text'} is not closed", f"write the closing {c}")
    if spot.text.startswith("/*", spot.position):
        return spot.error("this comment is not closed", "write the closing */", 2)
    return None


def _foreign_construct(spot: Spot) -> QueryError | None:
    """Find a construct of another language."""
    if spot.ended or "LETTER" in spot.accepted:
        return None
    construct = foreign_at(spot.text, spot.position)
    if construct is None:
        return None
    message = f"{construct.name} is not in the language"
    return QueryError(
        message, text=spot.text, start=construct.start, end=construct.end, hint=construct.hint, code="query_syntax"
    )


def _typography(spot: Spot) -> str | None:
    """Find a typographic character that a word processor inserted."""
    c = spot.text[spot.position : spot.position + 1]
    return f"write {_SMART[c]}" if c in _SMART else None


def _operator(spot: Spot) -> str | None:
    """Find an operator of other languages, or a chained comparison."""
    text, position = spot.text, spot.position
    for wrong, right in _COMPARISONS.items():
        if any(text.startswith(wrong, position - k) for k in range(len(wrong)) if k <= position):
            return f"write {right}"
    if text.startswith("|", position) and spot.accepted & {"TRUE", "_OR"}:
        return "write OR for alternatives and abs(x) for an absolute value"
    if text.startswith("&", position) and "_AND" in spot.accepted:
        return "write AND"
    if spot.kind == "COMPARE" and "_AND" in spot.accepted:
        return "comparisons do not chain: a < b AND b < c"
    return None


def _alternatives(spot: Spot) -> str | None:
    """Find alternatives without parentheses, as in ``SEQ(A a | B b)``, which is ambiguous."""
    has_choice = spot.kind == "_PIPE" and re.search(r"\bseq\s*\([^()]*$", spot.before, re.IGNORECASE)
    return "put the alternatives in parentheses: (A a | B b)" if has_choice else None


def _strategy(spot: Spot) -> QueryError | None:
    """Find a misspelled strategy, which is parsed as a function at first."""
    for word_match in re.finditer(r"\bwhere\s+([^\W\d]\w*)", spot.text[: spot.position], re.IGNORECASE):
        word = word_match.group(1)
        close = difflib.get_close_matches(word.lower()[:60], STRATEGIES, n=1, cutoff=0.7)
        if close and word.lower() not in STRATEGIES:
            start, end = word_match.span(1)
            hint = f"did you mean {close[0]}?"
            return QueryError(
                f"unknown strategy `{word[:40]}`", text=spot.text, start=start, end=end, hint=hint, code="query_name"
            )
    return None


def _one_strategy(spot: Spot) -> QueryError | str | None:
    """Find a second strategy in one WHERE, or one behind a condition, which is parsed as a function at first."""
    if "_AND" not in spot.accepted:
        return None
    strategy_names = "|".join(STRATEGIES)
    first_strategy = re.search(rf"\bwhere\s+({strategy_names})\b", spot.before, re.IGNORECASE)
    hint = (
        _ONE_STRATEGY if first_strategy else "a strategy stands directly after WHERE, and holds for the whole pattern"
    )
    if spot.word in STRATEGIES:
        return hint
    strategy_call = re.search(rf"\b({strategy_names})\s*\([^()]*\)$", spot.before, re.IGNORECASE)
    if spot.kind != "LBRACE" or strategy_call is None:
        return None
    start, end = strategy_call.span(1)
    message = f"unexpected strategy `{strategy_call[1]}`"
    return QueryError(message, text=spot.text, start=start, end=end, hint=hint, code="query_syntax")


_OTHER_KEY = "the brackets take columns and functions of texts: compute another value as a column before"


def _tie(spot: Spot) -> str | None:
    """Find an expression in the brackets of a partition attribute."""
    if "RSQB" not in spot.accepted or not (spot.kind in _IN_VALUE or spot.text.startswith("||", spot.position)):
        return None
    inside = re.search(r"(\bwhere|\band|&&|\{)\s*\[[^\[\]]*$", spot.before, re.IGNORECASE)
    return _OTHER_KEY if inside else None


def _letter(spot: Spot) -> str | None:
    """Find constructs of other regular expressions that letter expressions do not have."""
    if "LETTER" not in spot.accepted or spot.ended:
        return None
    if spot.kind in ("QUANT", "LBRACE") and spot.before.endswith(("+", "*", "?", "}")):
        return "two repetitions in a row: put the first in parentheses"
    if spot.token is not None:
        return None
    c = spot.text[spot.position]
    if c in "^$":
        place, pattern = ("before", "SEQ(~ANY n, A a)") if c == "^" else ("after", "SEQ(A a, ~ANY n)")
        return (
            f"leave it out: an expression is looked for anywhere in the stream. That nothing comes {place} it needs "
            f"SASE+ text with a window: PATTERN {pattern} WITHIN ..."
        )
    if c in "~!":
        return "negation needs SASE+ text: PATTERN SEQ(A a, ~B b, C c)"
    return "write a name that is no single letter in quotes: 'A_1'"


def _still_open(spot: Spot) -> str | None:
    """Find a bracket that is still open at the end of the text."""
    if not spot.ended or "$END" in spot.accepted:
        return None
    bare = re.sub(r"/\*[\s\S]*?\*/|--[^\n]*|//[^\n]*|'[^']*'|\"[^\"]*\"|`[^`]*`", "", spot.before)
    closing = {"(": ")", "[": "]", "{": "}"}
    stack: list[str] = []
    for c in bare:
        if c in closing:
            stack.append(c)
        elif stack and closing[stack[-1]] == c:
            stack.pop()
    return f"a `{stack[-1]}` is not closed: write `{closing[stack[-1]]}`" if stack else None


def _unit(spot: Spot) -> str | QueryError | None:
    """Find a misspelled unit, or one without a fixed length."""
    if "UNIT" not in spot.accepted or spot.kind != "NAME":
        return None
    words = [*UNITS, *CLAUSES, *(["EVENTS"] if "EVENTS" in spot.accepted else ["AND", "OR"])]
    unclear = spot.word in ("m", "month", "months", "year", "years")
    hint = None if unclear else _did_you_mean(spot.word, words)
    if unclear or (hint is None and "EVENTS" in spot.accepted):
        try:
            unit_ns(spot.word)
        except QueryError as error:
            wrong = spot.error(error.message, error.hint)
            wrong.code = error.code
            return wrong
    return hint


def _comma(spot: Spot) -> str | None:
    if spot.kind == "NAME" and {"COMMA", "RPAR"} <= spot.accepted and re.search(r"\w\s*(\[\s*\])?$", spot.before):
        return "is a comma missing before it?"
    return None


def _keyword(spot: Spot) -> str | None:
    """Find a misspelled keyword."""
    if spot.kind != "NAME":
        return None
    if "_PATTERN" in spot.accepted:
        return _did_you_mean(spot.word, ["PATTERN", "FROM"])
    if spot.accepted & _OUTPUTS:
        words = [*(CLAUSES if spot.accepted & _CLAUSE else ()), *_OUTPUT_WORDS]
        return _did_you_mean(spot.word, [*words, *(w for w in _JOINING if f"_{w}" in spot.accepted)])
    return None


def _conjunction(spot: Spot) -> str | None:
    return "is AND missing before it?" if "_AND" in spot.accepted and spot.kind in _EXPRESSION else None


def _beginning(spot: Spot) -> str | None:
    begins = "_PATTERN" in spot.accepted and not spot.ended
    return "a query begins with PATTERN, or FROM ... PATTERN" if begins else None


def _clause(spot: Spot) -> str | None:
    """Find a clause that begins while a bracket is still open."""
    if spot.kind in _CLAUSE:
        for name, bracket in (("RBRACE", "}"), ("RPAR", ")")):
            if name in spot.accepted:
                return f"is a `{bracket}` missing before it?"
    return None


SLIPS: tuple[Callable[[Spot], str | QueryError | None], ...] = (
    _not_closed,
    _foreign_construct,
    _typography,
    _operator,
    _alternatives,
    _one_strategy,
    _strategy,
    _tie,
    _letter,
    _still_open,
    _unit,
    _comma,
    _keyword,
    _conjunction,
    _beginning,
    _clause,
)
"""The rules in the order in which they are tried; the first result is used."""


def _did_you_mean(word: str, words: Collection[str]) -> str | None:
    by_lower = {k.lower(): k for k in words}
    close = difflib.get_close_matches(word[:60], list(by_lower), n=1, cutoff=0.66)
    longer = [k for k in by_lower if " " in k and k.split()[0] == word]
    candidates = [*longer, *close]
    return f"did you mean {by_lower[candidates[0]]}?" if candidates else None


# ---- what is possible there


def _expectation(accepted: Collection[str]) -> str | None:
    """Return the accepted terminals in words, or ``None`` if there are too many."""
    unnamed = set(accepted)
    words: list[str] = []

    def group(opens: Collection[str], word: str, names: Collection[str]) -> None:
        if unnamed.issuperset(opens):
            words.append(word)
            unnamed.difference_update(names)

    group(_OPENS_EXPRESSION, "an expression", _EXPRESSION)
    group(_OPENS_ITEM, "a component such as `Type name`", _ITEM)
    group(_CLAUSE, "a clause (WHERE, WITHIN, HAVING, RETURN, OUTPUT)", _CLAUSE | _OUTPUTS)
    group({"ADD"}, "an operator", _OPERATORS)
    group({"QUANT", "LBRACE"}, "a repetition such as `+`", ("QUANT", "LBRACE", "LSQB"))
    for name in sorted(unnamed, key=lambda n: (list(_WORDS).index(n) if n in _WORDS else -1, n)):
        word = _WORDS.get(name, f"`{name.strip('_').replace('_', ' ')}`")
        if word and word not in words:
            words.append(word)
    if not words or len(words) > 9:
        return None
    return "expected " + (" or ".join(words) if len(words) < 3 else ", ".join(words[:-1]) + " or " + words[-1])
