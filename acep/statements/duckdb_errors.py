"""Make errors of acep from those of DuckDB: with their place in the text, and without names that only acep knows."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from acep.errors import QueryError, suggest
from acep.pattern.expressions import Span
from acep.pattern.sql.scanner import scan

__all__ = ["is_of_duckdb", "refusal_of"]

_HINT = "what stands around the clause is in the SQL of DuckDB"
_TABLE = re.compile(r'Table with name "?(?P<name>.+?)"? does not exist')
_NAMES = (
    _TABLE,
    re.compile(r'Referenced (?:column|table) "(?P<name>.+?)" not found'),
    re.compile(r'does not have a column named "(?P<name>.+?)"'),
    re.compile(r'Ambiguous reference to column name "(?P<name>.+?)"'),
    re.compile(r'Function with name "?(?P<name>.+?)"? does not exist'),
    re.compile(r'[Cc]olumn "(?P<name>.+?)" (?:in|must)'),
)
_DETAILS = re.compile(r"\s*(?:\n\s*Candidate \w+:|\nDid you mean|\n\nLINE \d+:)", re.DOTALL)


def is_of_duckdb(error: BaseException) -> bool:
    """Return whether DuckDB raised an error."""
    return type(error).__module__.partition(".")[0] in ("duckdb", "_duckdb")


def refusal_of(error: BaseException, text: str, executed_text: str, tables: Sequence[str]) -> QueryError:
    """Return the error for a text that DuckDB refuses, with its place in the text if that is known.

    ``executed_text`` is the text that was run, in which the places of DuckDB are; ``tables`` are the known tables.
    """
    kind, message, position = _parts(str(error))
    details = _DETAILS.search(message)
    sentence = " ".join((message[: details.start()] if details else message).split())
    name = next((hit["name"] for pattern in _NAMES if (hit := pattern.search(sentence))), None)
    span = _span_of(text, position) if position is not None and text == executed_text else None
    if span is None and name is not None:
        span = _span_of_name(text, name, is_table=_TABLE.search(sentence) is not None)
    start, end = (None, None) if span is None else (span.start, span.end)
    if name is not None and _TABLE.search(sentence):
        hint = suggest(name, tables) or "name tables by keywords: acep.sql(text, ticks=frame)"
        return QueryError(f"unknown table `{name}`", start=start, end=end, hint=hint, code="query_name")
    candidates = re.findall(r'"([^"\n]+)"', message[details.start() :]) if details and kind != "Parser" else []
    nearest_name = suggest(name, candidates) if name is not None and candidates else None
    return QueryError(f"DuckDB refuses what stands around MATCH_RECOGNIZE: {kind} Error: {sentence}", start=start,
                      end=end, hint=nearest_name or _HINT, code="query_invalid")  # fmt: skip


def _parts(text: str) -> tuple[str, str, int | None]:
    """Return the kind, the message and the place in bytes of an error, which is told as JSON or as text."""
    brace = text.find("{")
    if brace >= 0 and text.endswith("}"):
        try:
            parts: dict[str, Any] = json.loads(text[brace:])
            position = parts.get("position")
            return str(parts["exception_type"]), str(parts["exception_message"]), int(position) if position else None
        except (ValueError, KeyError, TypeError):
            pass
    kind, colon, message = text.partition(" Error: ")
    return (kind, message, None) if colon else ("Other", text, None)


def _span_of(text: str, position: int) -> Span:
    """Return the place of the token at a number of bytes."""
    start = len(text.encode()[:position].decode(errors="ignore"))
    token = next((token for token in scan(text) if token.end > start), None)
    return Span(start, token.end if token is not None else start + 1)


def _span_of_name(text: str, name: str, *, is_table: bool) -> Span | None:
    """Return the place where a name stands, if it stands at one place only, or is of a table or without a table."""
    tokens = scan(text)
    places = [
        index
        for index, token in enumerate(tokens)
        if token.kind in ("word", "name") and token.value.casefold() == name.casefold()
    ]
    if is_table:
        places = [
            i for i in places if i and (tokens[i - 1].is_word("FROM", "JOIN", "TABLE") or tokens[i - 1].is_sign(","))
        ]
    is_sure = len(places) == 1 or not any(index and tokens[index - 1].is_sign(".") for index in places)
    return tokens[places[0]].span if places and is_sure else None
