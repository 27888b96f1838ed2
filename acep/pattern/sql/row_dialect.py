"""Define the dialect of sqlglot for row patterns: its general one, with RUNNING and FINAL before a call.

The calls of row patterns stay as they are written. This module is loaded when the first expression is parsed.
"""

from __future__ import annotations

from typing import Any, ClassVar

from sqlglot import exp, parser, tokens
from sqlglot.dialects.dialect import Dialect
from sqlglot.tokens import TokenType  # type: ignore[attr-defined]

from acep.functions.scalars import SCALARS
from acep.pattern.sql.clause_tree import FINAL, RUNNING

__all__ = ["RowPatternDialect"]

_AS_WRITTEN = (
    "FIRST", "LAST", "PREV", "NEXT", "LAG", "LEAD", "CLASSIFIER", "MATCH_NUMBER",
    # Functions of times, whose units sqlglot would read in the places of one dialect.
    "DATE_TRUNC", "TIMESTAMP_TRUNC", "TRUNC", "TRUNCATE", "DATE_ADD", "DATEADD", "TIMESTAMPADD", "TIMESTAMP_ADD",
    "DATE_SUB", "DATE_DIFF", "DATEDIFF", "TIMESTAMPDIFF", "TIMESTAMP_DIFF", "ADD_MONTHS", "LAST_DAY", "DATE", "QUARTER",
    "WEEK", "WEEK_OF_YEAR", "WEEKOFYEAR", "DAY_OF_YEAR", "DAYOFYEAR", "DAY_OF_WEEK", "DAYOFWEEK", "ISODOW",
    "DAYOFWEEK_ISO", "DAY_OF_MONTH", "DAYOFMONTH", "TO_CHAR", "TO_DATE", "TO_TIMESTAMP", "DATE_FORMAT",
    "DATE_PART", "NOW",
    *(name for entry in SCALARS.values() for name in entry.sql_names),
)  # fmt: skip


class RowPatternParser(parser.Parser):
    """The general parser, which takes RUNNING and FINAL where a call follows them."""

    FUNCTIONS: ClassVar[dict[str, Any]] = {
        name: make for name, make in parser.Parser.FUNCTIONS.items() if name not in _AS_WRITTEN
    }
    FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
        name: make for name, make in parser.Parser.FUNCTION_PARSERS.items() if name not in _AS_WRITTEN
    }

    def _parse_statement(self) -> Any:
        """Parse an expression: no word of it begins a command."""
        return self._parse_expression()

    def _parse_unary(self) -> Any:
        word = self._curr.text.upper() if self._curr is not None else ""
        following = self._tokens[self._index + 1 : self._index + 3]
        is_prefix = word in ("RUNNING", "FINAL") and len(following) == 2
        if not is_prefix or following[1].token_type is not TokenType.L_PAREN:
            return super()._parse_unary()
        if following[0].token_type is TokenType.L_PAREN:
            return super()._parse_unary()
        self._advance()
        call = self._parse_function()
        if call is None:
            self.raise_error("a call is needed behind RUNNING and FINAL")
        return exp.Anonymous(this=RUNNING if word == "RUNNING" else FINAL, expressions=[call])


class RowPatternDialect(Dialect):
    """The dialect, which sqlglot keeps by the name of its class."""

    NULL_ORDERING = "nulls_are_last"
    Parser = RowPatternParser

    class Tokenizer(tokens.Tokenizer):
        """The general tokenizer, for which names stand in backticks too."""

        IDENTIFIERS: ClassVar[list[Any]] = ['"', "`"]
        COMMANDS: ClassVar[set[Any]] = set()  # SHOW and the like are names here
