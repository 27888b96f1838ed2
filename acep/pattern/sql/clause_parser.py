"""Parse a MATCH_RECOGNIZE clause: the text inside its parentheses to a tree."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from acep.errors import QueryError
from acep.pattern.expressions import Span, error_at
from acep.pattern.sql.clause_ends import PART_WORDS, begins_part, ends_expression, is_alias
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
from acep.pattern.sql.scanner import SqlToken, scan
from acep.pattern.sql.window_parser import parse_window

__all__ = ["MOST_TEXT", "parse_clause"]

MOST_TEXT = 200_000
"""The most characters of a clause."""

MOST_ERRORS = 20
"""The most rows of a pattern that may be missing."""
_SAME_PART = {"ALL": "ONE", "DEFINES": "DEFINE", "SEEK": "PATTERN", "INITIAL": "PATTERN"}
_ORDER = (
    "PARTITION BY, ORDER BY, MEASURES, ONE ROW or ALL ROWS PER MATCH, AFTER MATCH, PATTERN, WITHIN, ERRORS, SUBSET,"
    " DEFINE"
)
T = TypeVar("T")


def parse_clause(text: str) -> Clause:
    """Parse a clause, with or without MATCH_RECOGNIZE and the parentheses around it.

    Raises :class:`QueryError` with the place of what does not fit.

    >>> clause = parse_clause("ORDER BY ts MEASURES A.x AS x PATTERN (A B+) DEFINE B AS x > PREV(x)")
    >>> clause.measures[0].name, clause.skip.mode.value, clause.rows.value
    ('x', 'PAST LAST ROW', 'ONE ROW PER MATCH')
    """
    if not isinstance(text, str):
        raise QueryError(
            f"a clause is a text, not {type(text).__name__}",
            hint='as in acep.match_recognize(rows, "ORDER BY ts MEASURES ... PATTERN (A B+) DEFINE ...")',
            code="option_invalid",
        )
    if len(text) > MOST_TEXT:
        raise QueryError(
            f"a clause has at most {MOST_TEXT} characters",
            hint="split it, or prepare columns before",
            code="query_size",
        )
    try:
        return _ClauseParser(text, scan(text)).parse()
    except QueryError as error:
        error.located(text)
        raise


@dataclass
class _ClauseParser:
    text: str
    tokens: list[SqlToken]
    index: int = 0

    # Tokens -----------------------------------------------------------------------------------------

    @property
    def token(self) -> SqlToken:
        return self.tokens[self.index]

    def word(self, *words: str) -> bool:
        """Pass over words that follow each other, if all of them stand here."""
        following = self.tokens[self.index : self.index + len(words)]
        if len(following) == len(words) and all(t.is_word(w) for t, w in zip(following, words, strict=True)):
            self.index += len(words)
            return True
        return False

    def sign(self, sign: str) -> bool:
        if self.token.is_sign(sign):
            self.index += 1
            return True
        return False

    def need(self, *words: str, hint: str | None = None) -> None:
        for word in words:
            if not (self.word(word) or self.sign(word)):
                raise self.fail(f"{' '.join(words)} is needed here", hint)

    def name(self, what: str) -> SqlToken:
        token = self.token
        if token.kind not in ("word", "name"):
            raise self.fail(f"{what} is needed here")
        self.index += 1
        return token

    def fail(self, message: str, hint: str | None = None) -> QueryError:
        token = self.token
        token_text = token.value if len(token.value) <= 40 else token.value[:40] + "..."
        what = "the clause ends" if token.kind == "end" else f"not `{token_text}`"
        return error_at(
            f"{message}: {what}" if token.kind == "end" else f"{message}, {what}",
            token.span,
            hint or f"the parts of a clause are {_ORDER}",
            code="query_syntax",
        )

    # The clause -------------------------------------------------------------------------------------

    def parse(self) -> Clause:
        named = self.word("MATCH_RECOGNIZE")
        opening = self.index if self.sign("(") else None
        if named and opening is None:
            raise self.fail("`(` is needed here", "as in MATCH_RECOGNIZE (ORDER BY ts PATTERN (A B+))")
        parts = self.parts()
        if "PATTERN" not in parts:
            raise self.fail("PATTERN is needed here")
        if opening is not None:
            self.need(")")
        if self.token.kind != "end":
            raise self.fail("the clause should end here", f"its parts are {_ORDER}")
        return Clause(
            self.text,
            parts.get("PARTITION", ()),
            parts.get("ORDER", ()),
            parts.get("MEASURES", ()),
            parts.get("ONE", RowsMode.ONE_ROW),
            parts.get("AFTER", Skip(SkipMode.PAST_LAST)),
            parts["PATTERN"],
            parts.get("WITHIN"),
            parts.get("SUBSET", ()),
            parts.get("DEFINE", ()),
            parts.get("ERRORS", 0),
        )

    def parts(self) -> dict[str, Any]:
        """Parse the parts, in any order, each at most once."""
        readers: dict[str, Callable[[], Any]] = {
            "PARTITION": lambda: self.list_behind(("PARTITION", "BY"), self.expression),
            "ORDER": lambda: self.list_behind(("ORDER", "BY"), self.order_key),
            "MEASURES": lambda: self.list_behind(("MEASURES",), self.measure),
            "ONE": self.rows,
            "AFTER": self.skip,
            "PATTERN": self.pattern,
            "WITHIN": self.window,
            "ERRORS": self.errors,
            "SUBSET": lambda: self.list_behind(("SUBSET",), self.subset),
            "DEFINE": lambda: self.list_behind((self.token.value.upper(),), self.definition),
        }
        parts: dict[str, Any] = {}
        while self.token.kind == "word" and self.token.value.upper() in PART_WORDS:
            word = self.token.value.upper()
            part = _SAME_PART.get(word, word)
            if part in parts:
                raise error_at(
                    f"{word} stands twice in the clause", self.token.span, "write one of them", code="query_syntax"
                )
            parts[part] = readers[part]()
        return parts

    def list_behind(self, words: tuple[str, ...], parse_item: Callable[[], T]) -> tuple[T, ...]:
        self.need(*words)
        return self.parse_list(parse_item)

    def parse_list(self, parse_item: Callable[[], T]) -> tuple[T, ...]:
        items = [parse_item()]
        while self.sign(","):
            items.append(parse_item())
        return tuple(items)

    def rows(self) -> RowsMode:
        if self.word("ONE"):
            self.need("ROW", "PER", "MATCH")
            if self.token.is_word("SHOW", "OMIT", "WITH"):
                raise error_at(f"{self.token.value.upper()} is for ALL ROWS PER MATCH", self.token.span, "leave it out",
                               code="query_syntax")  # fmt: skip
            return RowsMode.ONE_ROW
        self.need("ALL", "ROWS", "PER", "MATCH")
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
        self.need("AFTER", "MATCH", "SKIP")
        if self.word("PAST", "LAST", "ROW"):
            return Skip(SkipMode.PAST_LAST)
        if not self.word("TO"):
            raise self.fail(
                "PAST LAST ROW, TO NEXT ROW, TO FIRST, TO LAST or TO a variable is needed behind SKIP",
                "as in AFTER MATCH SKIP PAST LAST ROW",
            )
        if self.word("NEXT", "ROW"):
            return Skip(SkipMode.TO_NEXT)
        mode = SkipMode.TO_VARIABLE
        following = self.tokens[self.index + 1] if self.token.kind != "end" else self.token
        is_prefix = self.token.is_word("FIRST", "LAST") and following.kind in ("word", "name")
        # A variable may be called first or last; then the next part of the clause follows it.
        if is_prefix and not begins_part(self.tokens, self.index + 1):
            mode = SkipMode.TO_FIRST if self.token.is_word("FIRST") else SkipMode.TO_LAST
            self.index += 1
        token = self.name("a variable")
        return Skip(mode, token.value, token.span)

    def pattern(self) -> RowPattern:
        if self.token.is_word("INITIAL", "SEEK"):
            raise error_at(
                f"{self.token.value.upper()} is for row patterns in windows", self.token.span, "leave it out",
                code="query_syntax",
            )  # fmt: skip
        self.need("PATTERN")
        if not self.token.is_sign("("):
            raise self.fail("`(` is needed behind PATTERN", "as in PATTERN (A B+)")
        if self.tokens[self.index + 1].is_sign(")"):
            hint = "the empty pattern is written PATTERN (())"
            raise error_at("the pattern is empty", self.token.span, hint, code="query_syntax")
        pattern, self.index = parse_pattern(self.tokens, self.index)
        return pattern

    def window(self) -> MatchSpan:
        window, self.index = parse_window(self.tokens, self.index)
        return window

    def errors(self) -> int:
        self.need("ERRORS")
        token = self.token
        if token.kind != "number" or not token.value.isdigit() or int(token.value) > MOST_ERRORS:
            raise error_at(
                f"ERRORS takes a number from 0 to {MOST_ERRORS}",
                token.span,
                "as in PATTERN (A B C) ERRORS 1",
                code="query_syntax",
            )
        self.index += 1
        return int(token.value)

    def subset(self) -> Subset:
        token = self.name("the name of a union variable")
        self.need("=", "(")
        members = self.parse_list(lambda: self.name("a variable").value)
        self.need(")")
        return Subset(token.value, members, Span(token.start, self.tokens[self.index - 1].end))

    def definition(self) -> Definition:
        token = self.name("a variable")
        hint = f"write DEFINE {token.value} AS ..." if token.value.upper() != "AUTO" else "write DEFINE A AS A, B AS B"
        self.need("AS", hint=hint)
        return Definition(token.value, self.expression(), token.span)

    def measure(self) -> Measure:
        expression = self.expression(named=True)
        tree = expression.tree
        inner = tree.this if type(tree).__name__ == "Column" else tree
        if type(inner).__name__ == "Star":
            raise error_at("`*` is only for count", expression.span, "name a column", code="query_syntax")
        if not self.word("AS") and not is_alias(self.tokens, self.index):
            raise self.fail("AS is needed here", "each measure has a name, as in LAST(A.price) AS price")
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
                raise self.fail("FIRST or LAST is needed behind NULLS", "as in ORDER BY ts NULLS LAST")
        return OrderKey(expression, is_descending, nulls_first)

    # Expressions --------------------------------------------------------------------------------------

    def expression(self, *, named: bool = False, ordered: bool = False) -> SqlExpression:
        """Parse the expression here: up to a comma, an AS, a part of the clause or a parenthesis of another."""
        first = self.index
        depth = cases = 0
        while self.token.kind != "end":
            token = self.token
            if (
                depth == 0
                and cases == 0
                and self.index > first
                and ends_expression(self.tokens, self.index, named, ordered)
            ):
                break
            if depth == 0 and token.is_sign(",", ")"):
                break
            depth += token.is_sign("(", "[") - token.is_sign(")", "]")
            is_part = self.index > first and self.tokens[self.index - 1].is_sign(".")
            cases += (token.is_word("CASE") - (cases > 0 and token.is_word("END"))) if not is_part else 0
            self.index += 1
        if self.index == first:
            raise self.fail("an expression is needed here", "as in LAST(A.price) - FIRST(A.price)")
        return parse_expression(self.text, Span(self.tokens[first].start, self.tokens[self.index - 1].end))
