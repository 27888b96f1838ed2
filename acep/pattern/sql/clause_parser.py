"""Parse a MATCH_RECOGNIZE clause: the text inside its parentheses to a tree."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeVar

from acep.errors import QueryError
from acep.pattern.expressions import Span, error_at
from acep.pattern.sql.clause_tree import (
    Clause,
    Definition,
    MatchSpan,
    Measure,
    OrderKey,
    RowPattern,
    RowsMode,
    Skip,
    SkipMode,
    SqlExpression,
    Subset,
)
from acep.pattern.sql.expression_parser import parse_expression
from acep.pattern.sql.pattern_parser import parse_pattern
from acep.pattern.sql.scanner import SqlToken, exact_number, scan
from acep.pattern.times import UNITS

__all__ = ["MOST_TEXT", "parse_clause"]

MOST_TEXT = 200_000
"""The most characters of a clause."""

# The words that begin the parts of a clause, each with the word or sign that must follow.
_PARTS: dict[str, tuple[str, ...]] = {
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
    "SUBSET": (),
    "DEFINE": (),
}
_ORDER = "PARTITION BY, ORDER BY, MEASURES, ONE ROW or ALL ROWS PER MATCH, AFTER MATCH, PATTERN, WITHIN, SUBSET, DEFINE"
_UNITS = {"MILLISECOND": "ms", "SECOND": "s", "MINUTE": "min", "HOUR": "h", "DAY": "d", "MICROSECOND": "us"}

T = TypeVar("T")


def parse_clause(text: str) -> Clause:
    """Parse a clause, with or without MATCH_RECOGNIZE and the parentheses around it.

    Raises :class:`QueryError` with the place of what does not fit.

    >>> clause = parse_clause("ORDER BY ts MEASURES A.x AS x PATTERN (A B+) DEFINE B AS x > PREV(x)")
    >>> clause.measures[0].name, clause.skip.mode.value, clause.rows.value
    ('x', 'PAST LAST ROW', 'ONE ROW PER MATCH')
    """
    if not isinstance(text, str):
        raise QueryError(f"a clause is a text, not {type(text).__name__}", code="option_invalid")
    if len(text) > MOST_TEXT:
        raise QueryError(f"a clause has at most {MOST_TEXT} characters", code="query_size")
    try:
        return _ClauseParser(text, scan(text)).parse()
    except QueryError as error:
        error.located(text)
        raise


@dataclass
class _ClauseParser:
    text: str
    tokens: list[SqlToken]
    place: int = 0

    # Tokens -----------------------------------------------------------------------------------------

    @property
    def token(self) -> SqlToken:
        return self.tokens[self.place]

    def word(self, *words: str) -> bool:
        """Pass over words that follow each other, if all of them stand here."""
        following = self.tokens[self.place : self.place + len(words)]
        if len(following) == len(words) and all(t.is_word(w) for t, w in zip(following, words, strict=True)):
            self.place += len(words)
            return True
        return False

    def sign(self, sign: str) -> bool:
        if self.token.is_sign(sign):
            self.place += 1
            return True
        return False

    def need(self, *words: str, hint: str | None = None) -> None:
        for word in words:
            if not (self.word(word) or self.sign(word)):
                raise self.unexpected(f"{' '.join(words)} is needed here", hint)

    def name(self, what: str) -> SqlToken:
        token = self.token
        if token.kind not in ("word", "name"):
            raise self.unexpected(f"{what} is needed here")
        self.place += 1
        return token

    def unexpected(self, message: str, hint: str | None = None) -> QueryError:
        token = self.token
        shown = token.value if len(token.value) <= 40 else token.value[:40] + "..."
        what = "the clause ends" if token.kind == "end" else f"not `{shown}`"
        return error_at(f"{message}: {what}" if token.kind == "end" else f"{message}, {what}", token.span, hint,
                        code="query_syntax")  # fmt: skip

    # The clause -------------------------------------------------------------------------------------

    def parse(self) -> Clause:
        named = self.word("MATCH_RECOGNIZE")
        opening = self.place if self.sign("(") else None
        if named and opening is None:
            raise self.unexpected("`(` is needed here")
        partition = self.parse_list(self.expression) if self.word("PARTITION", "BY") else ()
        order = self.parse_list(self.order_key) if self.word("ORDER", "BY") else ()
        measures = self.parse_list(self.measure) if self.word("MEASURES") else ()
        rows = self.rows()
        skip = self.skip()
        pattern = self.pattern()
        window = self.window()
        subsets = self.parse_list(self.subset) if self.word("SUBSET") else ()
        definitions = self.parse_list(self.definition) if self.word("DEFINE") else ()
        if opening is not None:
            self.need(")")
        if self.token.kind != "end":
            raise self.unexpected("the clause should end here", f"its parts stand in this order: {_ORDER}")
        return Clause(self.text, partition, order, measures, rows, skip, pattern, window, subsets, definitions)

    def parse_list(self, parse_item: Callable[[], T]) -> tuple[T, ...]:
        items = [parse_item()]
        while self.sign(","):
            items.append(parse_item())
        return tuple(items)

    def rows(self) -> RowsMode:
        if self.word("ONE"):
            self.need("ROW", "PER", "MATCH")
            if self.token.is_word("SHOW", "OMIT", "WITH"):
                raise error_at(f"{self.token.value.upper()} is for ALL ROWS PER MATCH", self.token.span, None,
                               code="query_syntax")  # fmt: skip
            return RowsMode.ONE_ROW
        if not self.word("ALL"):
            return RowsMode.ONE_ROW
        self.need("ROWS", "PER", "MATCH")
        if self.word("WITH"):
            self.need("UNMATCHED", "ROWS")
            return RowsMode.UNMATCHED
        if self.word("OMIT"):
            self.need("EMPTY", "MATCHES")
            return RowsMode.OMIT
        if self.word("SHOW"):
            self.need("EMPTY", "MATCHES")
        return RowsMode.SHOW

    def skip(self) -> Skip:
        if not self.word("AFTER"):
            return Skip(SkipMode.PAST_LAST)
        self.need("MATCH", "SKIP")
        if self.word("PAST", "LAST", "ROW"):
            return Skip(SkipMode.PAST_LAST)
        if not self.word("TO"):
            raise self.unexpected(
                "PAST LAST ROW, TO NEXT ROW, TO FIRST, TO LAST or TO a variable is needed behind SKIP"
            )
        if self.word("NEXT", "ROW"):
            return Skip(SkipMode.TO_NEXT)
        mode = SkipMode.TO_LAST
        following = self.tokens[self.place + 1] if self.token.kind != "end" else self.token
        is_prefix = self.token.is_word("FIRST", "LAST") and following.kind in ("word", "name")
        # A variable may be called first or last; then the next part of the clause follows it.
        if is_prefix and not self.begins_part(self.place + 1):
            mode = SkipMode.TO_FIRST if self.token.is_word("FIRST") else SkipMode.TO_LAST
            self.place += 1
        token = self.name("a variable")
        return Skip(mode, token.value, token.span)

    def pattern(self) -> RowPattern:
        if self.token.is_word("INITIAL", "SEEK"):
            raise error_at(
                f"{self.token.value.upper()} is for row patterns in windows", self.token.span, "leave it out",
                code="query_syntax",
            )  # fmt: skip
        self.need("PATTERN", hint=f"the parts of a clause stand in this order: {_ORDER}")
        if not self.token.is_sign("("):
            raise self.unexpected("`(` is needed behind PATTERN")
        if self.tokens[self.place + 1].is_sign(")"):
            hint = "the empty pattern is written PATTERN (())"
            raise error_at("the pattern is empty", self.token.span, hint, code="query_syntax")
        pattern, self.place = parse_pattern(self.tokens, self.place)
        return pattern

    def window(self) -> MatchSpan | None:
        start = self.token.start
        if not self.word("WITHIN"):
            return None
        is_interval = self.word("INTERVAL")
        token = self.token
        if token.kind not in ("string", "number"):
            raise self.unexpected("a constant is needed behind WITHIN", "as in WITHIN INTERVAL '10' MINUTE")
        self.place += 1
        amount, unit = _interval(token, is_interval)
        if is_interval and unit is None:
            unit = self.name("a unit of time").value
        factor = Fraction(1)
        if unit is not None:
            factor = _unit_ns(unit, Span(token.start, self.tokens[self.place - 1].end))
        return MatchSpan(amount * factor, is_interval, Span(start, self.tokens[self.place - 1].end))

    def subset(self) -> Subset:
        token = self.name("the name of a union variable")
        self.need("=", "(")
        members = self.parse_list(lambda: self.name("a variable").value)
        self.need(")")
        return Subset(token.value, members, Span(token.start, self.tokens[self.place - 1].end))

    def definition(self) -> Definition:
        token = self.name("a variable")
        self.need("AS")
        return Definition(token.value, self.expression(), token.span)

    def measure(self) -> Measure:
        expression = self.expression(named=True)
        tree = expression.tree
        inner = tree.this if type(tree).__name__ == "Column" else tree
        if type(inner).__name__ == "Star":
            raise error_at("`*` is only for count", expression.span, code="query_syntax")
        self.need("AS", hint="each measure has a name, as in LAST(A.price) AS price")
        token = self.name("a name")
        return Measure(expression, token.value, token.span)

    def order_key(self) -> OrderKey:
        expression = self.expression(ordered=True)
        is_descending = self.word("DESC")
        if not is_descending:
            self.word("ASC")
        nulls_first = None
        if self.word("NULLS"):
            nulls_first = self.word("FIRST")
            if not nulls_first and not self.word("LAST"):
                raise self.unexpected("FIRST or LAST is needed behind NULLS")
        return OrderKey(expression, is_descending, nulls_first)

    # Expressions --------------------------------------------------------------------------------------

    def expression(self, *, named: bool = False, ordered: bool = False) -> SqlExpression:
        """Parse the expression here: up to a comma, an AS, a part of the clause or a parenthesis of another."""
        first = self.place
        depth = cases = 0
        while self.token.kind != "end":
            token = self.token
            if depth == 0 and cases == 0 and self.place > first and self.ends_expression(named, ordered):
                break
            if depth == 0 and token.is_sign(",", ")"):
                break
            depth += token.is_sign("(", "[") - token.is_sign(")", "]")
            is_part = self.place > first and self.tokens[self.place - 1].is_sign(".")
            cases += (token.is_word("CASE") - (cases > 0 and token.is_word("END"))) if not is_part else 0
            self.place += 1
        if self.place == first:
            raise self.unexpected("an expression is needed here")
        return parse_expression(self.text, Span(self.tokens[first].start, self.tokens[self.place - 1].end))

    def ends_expression(self, named: bool, ordered: bool) -> bool:
        token, before = self.token, self.tokens[self.place - 1]
        is_star = before.is_sign("*") and (self.place < 2 or not _ends_operand(self.tokens[self.place - 2]))
        if not is_star and before.is_sign(".", "+", "-", "*", "/", "=", "<", ">", "<=", ">=", "<>", "!=", "||"):
            return False
        if named and token.is_word("AS"):
            return True
        if ordered and token.is_word("ASC", "DESC", "NULLS"):
            return True
        return self.begins_part(self.place)

    def begins_part(self, place: int) -> bool:
        """Return whether a part of the clause begins here."""
        token = self.tokens[place]
        if token.kind != "word" or (following := _PARTS.get(token.value.upper())) is None:
            return False
        after = self.tokens[place + 1]
        return not following or after.is_word(*following) or after.is_sign(*following)


def _ends_operand(token: SqlToken) -> bool:
    """Return whether an operand may end with a token, so that a star behind it multiplies."""
    is_operand = token.kind == "word" and not token.is_word("MEASURES")
    return is_operand or token.kind in ("name", "string", "number") or token.is_sign(")", "]")


def _interval(token: SqlToken, is_interval: bool) -> tuple[Fraction, str | None]:
    """Return the number of a constant, and the unit where the text of an interval has it, as in '10 minutes'."""
    text = token.value[1:-1].strip() if token.kind == "string" else token.value
    if token.kind == "string" and not is_interval:
        raise error_at("a number or an INTERVAL is needed behind WITHIN", token.span, code="query_syntax")
    number, _, unit = text.partition(" ")
    try:
        amount = exact_number(number)
    except ValueError:
        raise error_at(
            f"`{text[:40]}` is not a number of a unit", token.span, "as in INTERVAL '10' MINUTE", code="query_syntax"
        ) from None
    if amount < 0:
        raise error_at("WITHIN takes no negative length", token.span, code="query_invalid")
    return amount, unit.strip() or None


def _unit_ns(unit: str, span: Span) -> Fraction:
    known_unit = _UNITS.get(unit.upper().removesuffix("S"), unit.lower())
    if known_unit not in UNITS:
        names = ", ".join(sorted(_UNITS))
        raise error_at(f"`{unit[:40]}` is not a unit of fixed length", span, f"one of {names}", code="query_syntax")
    return Fraction(UNITS[known_unit])
