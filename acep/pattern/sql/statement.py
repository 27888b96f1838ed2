"""Take the MATCH_RECOGNIZE clauses out of a statement of SQL: what each reads, and the statement without them."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Any

from acep.errors import QueryError
from acep.pattern.expressions import Span, error_at
from acep.pattern.sql.scanner import SqlToken, closing_place, scan
from acep.pattern.sql.text_places import TextPlaces

__all__ = ["ClauseInput", "Statement", "check_query", "split_statement", "with_rows_in_parentheses"]

MOST_TEXT = 1_000_000
_BEFORE_TABLE = ("FROM", "JOIN", "USING")
_SET_WORDS = (*_BEFORE_TABLE, "ON", "WHERE", "SELECT", "AS", "LATERAL", "INNER", "CROSS", "LEFT", "RIGHT", "FULL")
_CHANGES = ("INSERT", "UPDATE", "DELETE", "MERGE", "CREATE", "COPY")
_QUERIES = ("SELECT", "WITH", "FROM", "VALUES", "TABLE", "PIVOT", "UNPIVOT", "DESCRIBE", "SUMMARIZE", "EXPLAIN")
"""The words with which queries begin, in the SQL of DuckDB."""


@dataclass(frozen=True)
class ClauseInput:
    """A clause of a statement. ``result``: the name that stands for its result; ``source``: the text of its input, a
    name (``name``) or another table expression, at ``place`` of the statement; ``clause``: its own text, which begins
    at ``start``; ``input_name``: what its input is called in the clause, an alias or a name; ``source_places``: where
    ``source`` stands in the statement."""

    result: str
    source: str
    name: str | None
    place: Span
    clause: str
    start: int
    input_name: str = ""
    source_places: TextPlaces = field(default_factory=lambda: TextPlaces.unknown(0), repr=False, compare=False)


@dataclass(frozen=True)
class Statement:
    """A statement. ``text`` has names in place of the ``clauses``; ``columns``: what it selects of the only clause
    where nothing else stands around it, as (column or ``*``, name, place), else ``None``; ``places``: where ``text``
    stands in the statement as it was."""

    text: str
    clauses: tuple[ClauseInput, ...]
    columns: tuple[tuple[str, str, Span], ...] | None
    places: TextPlaces = field(default_factory=lambda: TextPlaces.unknown(0), repr=False, compare=False)


def split_statement(text: str, quote: str = '"') -> Statement:
    """Split a statement. ``quote``: the sign in which its SQL puts names that are not plain.

    Raises :class:`QueryError` if there is no clause, or none whose input can be told.

    >>> statement = split_statement("SELECT * FROM t MATCH_RECOGNIZE (PATTERN (a)) AS m WHERE n > 1")
    >>> statement.text, statement.clauses[0].source, statement.columns
    ('SELECT * FROM "acep match 1" AS m WHERE n > 1', 't', None)
    """
    if not isinstance(text, str):
        raise QueryError(
            f"a statement is a text, not {type(text).__name__}",
            hint='as in acep.sql("SELECT * FROM t MATCH_RECOGNIZE (...)", t=rows)',
            code="option_invalid",
        )
    if len(text) > MOST_TEXT:
        raise QueryError(
            f"a statement has at most {MOST_TEXT} characters", hint="prepare tables before", code="query_size"
        )
    try:
        return _split(text, quote)
    except QueryError as error:
        error.located(text)
        raise


def _split(text: str, quote: str) -> Statement:
    clauses: list[ClauseInput] = []
    places = TextPlaces.of_text(len(text))
    _check_single(scan(text))
    try:
        while (index := _next_clause(tokens := scan(text))) is not None:
            clause = _clause_at(text, tokens, index, places, [clause.result for clause in clauses])
            clauses.append(clause)
            start, end = tokens[_input_tokens(tokens, index)[0]].start, tokens[closing_place(tokens, index + 1)].end
            inserted = f"{quote}{clause.result}{quote}"
            text = text[:start] + inserted + text[end:]
            places.replace(start, end, len(inserted))
    except QueryError as error:
        _move_error(error, places)
        raise
    if not clauses:
        hint = "as in SELECT * FROM ticks MATCH_RECOGNIZE (ORDER BY ts PATTERN (A B+))"
        raise error_at("there is no MATCH_RECOGNIZE in this statement", Span(0, len(text)), hint, code="query_syntax")
    return Statement(text, tuple(clauses), _plain_columns(tokens, clauses), places)


def _clause_at(text: str, tokens: list[SqlToken], index: int, places: TextPlaces, results: list[str]) -> ClauseInput:
    """Return the clause at a token. ``results``: the names that stand for those before.

    Raises :class:`QueryError` if it follows another one directly."""
    closing = closing_place(tokens, index + 1)
    first, last = _input_tokens(tokens, index)
    path = [t.value for t in tokens[first : last + 1] if not t.is_sign(".")]
    if len(path) == 1 and path[0] in results:
        raise error_at("MATCH_RECOGNIZE cannot follow another one directly", tokens[index].span,
                       "put the first one in a subquery: FROM (SELECT * FROM ticks MATCH_RECOGNIZE (...)) "
                       "MATCH_RECOGNIZE (...)", code="query_syntax")  # fmt: skip
    is_name = all(t.kind in ("word", "name") or t.is_sign(".") for t in tokens[first : last + 1])
    source_start, source_end = tokens[first].start, tokens[last].end
    start = tokens[index + 1].start
    place, own_place = places.span(source_start, source_end), places.span(start, start + 1)
    assert place is not None  # the user wrote all of it
    assert own_place is not None
    return ClauseInput(
        f"acep match {len(results) + 1}",
        text[source_start:source_end],
        ".".join(path) if is_name else None,
        place,
        text[start : tokens[closing].end],
        own_place.start,
        _name_of_input(tokens, last, index),
        places.part(source_start, source_end),
    )


def _move_error(error: QueryError, places: TextPlaces) -> None:
    """Give an error its place in the text of the user."""
    if error.start is not None:
        span = places.span(error.start, error.end or error.start + 1)
        error.start, error.end = (span.start, span.end) if span is not None else (None, None)


def _check_single(tokens: list[SqlToken]) -> None:
    """Raise :class:`QueryError` if a statement follows another one."""
    first_end = next((index for index, token in enumerate(tokens) if token.is_sign(";")), len(tokens))
    for token in tokens[first_end:]:
        if not token.is_sign(";") and token.kind != "end":
            raise error_at("one statement is needed, and here another one begins", Span(token.start, token.end),
                           "run them one by one")  # fmt: skip


def _next_clause(tokens: list[SqlToken]) -> int | None:
    for index, token in enumerate(tokens[:-1]):
        if token.is_word("MATCH_RECOGNIZE") and tokens[index + 1].is_sign("("):
            return index
    return None


def _opening(tokens: list[SqlToken], closing: int) -> int:
    depth = 0
    for index in range(closing, -1, -1):
        depth += tokens[index].is_sign(")") - tokens[index].is_sign("(")
        if depth == 0:
            return index
    raise error_at(
        "this parenthesis has no beginning",
        tokens[closing].span,
        "is one `)` too many, or a `(` missing before it?",
        code="query_syntax",
    )


def _input_tokens(tokens: list[SqlToken], index: int) -> tuple[int, int]:
    """Return the first and the last token of the input of the clause at ``index``, without an alias."""
    last = index - 1
    if last < 0:
        raise error_at(
            "MATCH_RECOGNIZE needs a table before it",
            tokens[index].span,
            "as in FROM ticks MATCH_RECOGNIZE (...)",
            code="query_syntax",
        )
    if _is_name(tokens[last]) and last and (tokens[last - 1].is_word("AS") or _ends_table(tokens[last - 1])):
        last -= 2 if tokens[last - 1].is_word("AS") else 1
    token = tokens[last]
    if token.is_sign(")"):
        first = _opening(tokens, last)
        if (alias := first - 1) > 0 and _is_name(tokens[alias]):
            # The columns of an alias: `(VALUES (1)) AS v (x)`.
            before = alias - 2 if tokens[alias - 1].is_word("AS") else alias - 1
            if before >= 0 and tokens[before].is_sign(")"):
                opening = _opening(tokens, before)
                is_function = opening > 0 and _is_name(tokens[opening - 1])
                return (_path_start(tokens, opening - 1) if is_function else opening), last
        if first and _is_name(tokens[first - 1]):
            first = _path_start(tokens, first - 1)  # a table function
        return first, last
    if not _is_name(token):
        raise error_at(
            "MATCH_RECOGNIZE needs a table before it",
            tokens[index].span,
            "as in FROM ticks MATCH_RECOGNIZE (...)",
            code="query_syntax",
        )
    return _path_start(tokens, last), last


def _name_of_input(tokens: list[SqlToken], last: int, index: int) -> str:
    """Return what an input that ends at ``last`` is called in the clause at ``index``; an empty text if nothing."""
    before = tokens[index - 1]
    if _is_name(before):  # an alias, or the last part of a name
        return before.value
    opening = _opening(tokens, last) if tokens[last].is_sign(")") else 0
    return tokens[opening - 1].value if opening and _is_name(tokens[opening - 1]) else ""


def _is_name(token: SqlToken) -> bool:
    return token.kind == "name" or (token.kind == "word" and not token.is_word(*_SET_WORDS))


def _ends_table(token: SqlToken) -> bool:
    return _is_name(token) or token.is_sign(")")


def _path_start(tokens: list[SqlToken], last: int) -> int:
    first = last
    while first >= 2 and tokens[first - 1].is_sign(".") and _is_name(tokens[first - 2]):
        first -= 2
    return first


def _plain_columns(tokens: list[SqlToken], clauses: list[ClauseInput]) -> tuple[tuple[str, str, Span], ...] | None:
    """Return the columns that a statement selects of its only clause, if nothing else stands in it."""
    words: list[Any] = tokens[:-1]
    if words and words[-1].is_sign(";"):
        words = words[:-1]
    if len(clauses) != 1 or not words or not words[0].is_word("SELECT"):
        return None
    places = [i for i, token in enumerate(words) if token.is_word("FROM")]
    if len(places) != 1 or len(words) <= places[0] + 1:
        return None
    source, alias = words[places[0] + 1], words[places[0] + 2 :]
    if source.kind != "name" or source.value != clauses[0].result:
        return None
    if alias and alias[0].is_word("AS"):
        alias = alias[1:]
    if len(alias) > 1 or (alias and not _is_name(alias[0])):
        return None
    name = alias[0].value if alias else None
    columns: list[tuple[str, str, Span]] = []
    for parts in _split_at_commas(words[1 : places[0]]):
        is_prefixed = len(parts) > 2 and parts[1].is_sign(".") and name is not None
        item = parts[2:] if is_prefixed and parts[0].value.casefold() == str(name).casefold() else parts
        if len(item) == 1 and item[0].is_sign("*"):
            columns.append(("*", "*", item[0].span))
        elif len(item) == 1 and _is_name(item[0]):
            columns.append((item[0].value, item[0].value, item[0].span))
        elif len(item) == 3 and _is_name(item[0]) and item[1].is_word("AS") and _is_name(item[2]):
            columns.append((item[0].value, item[2].value, item[0].span))
        else:
            return None
    return tuple(columns)


def _split_at_commas(tokens: list[Any]) -> list[list[Any]]:
    items: list[list[Any]] = [[]]
    for token in tokens:
        if token.is_sign(","):
            items.append([])
        else:
            items[-1].append(token)
    return items


def check_query(text: str) -> None:
    """Raise :class:`QueryError` for a statement that is no query, such as INSERT, also behind common tables (WITH).

    >>> check_query("WITH a AS (SELECT 1) SELECT * FROM a")
    """
    tokens = scan(text)
    main = tokens[0]
    if main.is_word("WITH"):
        depth = 0
        for token, following in itertools.pairwise(tokens):
            depth += token.is_sign("(") - token.is_sign(")")
            if depth == 0 and token.is_sign(")") and following.is_word(*_CHANGES):
                main = following
                break
    if not main.is_word(*_QUERIES) and not main.is_sign("("):
        raise error_at(f"`{main.value}` is no query", main.span,
                       "begin with SELECT or WITH; the result may then be stored", code="query_invalid")  # fmt: skip


def with_rows_in_parentheses(text: str) -> str:
    """Return a statement whose VALUES have parentheses around each row, which DuckDB needs and others do not.

    >>> with_rows_in_parentheses("SELECT * FROM (VALUES 1, f(2, 3)) t(x), (VALUES (4)) u(y)")
    'SELECT * FROM (VALUES (1), (f(2, 3))) t(x), (VALUES (4)) u(y)'
    """
    tokens = scan(text)
    pieces: list[str] = []
    begin = 0
    for index, token in enumerate(tokens[:-1]):
        following = tokens[index + 1]
        if not token.is_word("VALUES") or following.kind not in ("number", "string"):
            continue
        depth, start = 0, following.start
        for part in tokens[index + 1 :]:
            is_end = depth == 0 and (part.is_sign(",", ")", ";") or part.kind == "end")
            depth += part.is_sign("(") - part.is_sign(")")
            if not is_end:
                continue
            value = text[start : part.start]
            pieces += [text[begin:start], "(", value.rstrip(), ")", value[len(value.rstrip()) :]]
            begin = start = part.start
            if not part.is_sign(","):
                break
            start = part.end + len(text[part.end :]) - len(text[part.end :].lstrip())
    return "".join([*pieces, text[begin:]])
