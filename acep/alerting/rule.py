"""Read a rule: a header in TOML between two lines ``---``, and below it a query (docs/howto/rules.md)."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from acep.errors import AcepError, DataError, QueryError, printable, suggest
from acep.pattern.printing import canonical
from acep.pattern.query_arguments import is_clause
from acep.pattern.spelling import name_text
from acep.pattern.text.sase import parse
from acep.pattern.tree import Query

__all__ = ["SEVERITIES", "AlertRule", "RuleProblem", "locate_in_file", "read_rule"]

SEVERITIES = ("info", "low", "medium", "high", "critical")
KEYS = ("name", "severity", "tags", "description", "fields", "errors", "weights")
MARK = "---"
LONGEST_NAME = 256
EXAMPLE = 'a rule begins with ---, then name = "...", then ---, and then the query: PATTERN SEQ(a x, b y) WITHIN 5 min'
_TOML_PLACE = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")


@dataclass(frozen=True)
class AlertRule:
    """A query with what an alert says of it. The ``query`` returns its own values and then the ``fields``. ``text`` is
    the whole text of ``file``, which is a path; the text of the query begins at the character ``begin`` of it, and
    has ``length`` characters. ``severity`` is one of :data:`SEVERITIES`, or ``None``."""

    name: str
    severity: str | None
    tags: tuple[str, ...]
    description: str
    fields: tuple[str, ...]
    query: Query
    file: str
    text: str
    begin: int
    length: int


@dataclass(frozen=True)
class RuleProblem:
    """A reason why a file is no rule, or why a rule cannot run. ``rule`` is its name, where that is known. The message
    of the ``error`` names both, and the error has the place in the file, where there is one."""

    file: str
    rule: str | None
    error: AcepError

    def __str__(self) -> str:
        return self.error.render()

    @property
    def summary(self) -> str:
        """The problem in one line, with its place in the file and the hint."""
        place = "" if self.line is None else f" (line {self.line}, column {self.error.column})"
        hint = "" if self.error.hint is None else f"; hint: {self.error.hint}"
        return f"{self.error.message} [{self.error.code}]{place}{hint}"

    @property
    def line(self) -> int | None:
        """The line of the file in which the mistake is, from 1, or ``None``."""
        return self.error.line

    @classmethod
    def from_error(cls, error: AcepError, file: str, rule: str | None = None) -> RuleProblem:
        """Return the problem of an error, whose message then begins with the rule and the file."""
        subject = f"`{file}`" if rule is None else f"rule `{rule}` in `{file}`"
        error.message = f"{subject}: {error.message}"
        error.args = (error.message,)
        return cls(file, rule, error)


def read_rule(text: str, file: str) -> AlertRule | RuleProblem:
    r"""Return the rule in the text of a file, or the problem with it.

    >>> rule = read_rule('---\nname = "paid"\nfields = ["b.n"]\n---\nPATTERN SEQ(a, b) WITHIN 5', "paid.rule")
    >>> rule.name, rule.fields, names_returned(rule.query)
    ('paid', ('b.n',), ('b.n',))
    >>> print(read_rule('---\nname = "paid"\nfield = []\n---\nPATTERN SEQ(a, b) WITHIN 5', "paid.rule"))
    rule `paid` in `paid.rule`: unknown key `field` [option_invalid] (line 3, column 1)
      field = []
      ^^^^^
    hint: did you mean `fields`?
    """
    name = None
    try:
        header, begin = _split(text)
        values = _toml_values(header, text)
        name = _name_of(values, text)
        _check_keys(values, text)
        return _rule_of(name, values, text, begin, file)
    except AcepError as error:
        return RuleProblem.from_error(error, file, name)


def locate_in_file(error: AcepError, rule: AlertRule) -> AcepError:
    """Return an error of a rule's query with its place in the file of the rule, where it has one."""
    if error.text is None or error.start is None or error.text != rule.query.text:
        error.text = error.start = error.end = None
    elif error.start < rule.length:
        error.start, error.end = error.start + rule.begin, (error.end or error.start + 1) + rule.begin
        error.text = rule.text
    else:  # it is in a field, which the header has
        _place_at_key(error, "fields", rule.text)
    return error


# The header -----------------------------------------------------------------------------------------


def _split(text: str) -> tuple[str, int]:
    """Return the header, and where the query begins."""
    lines = text.split("\n")
    marks = [number for number, line in enumerate(lines) if line.rstrip() == MARK][:2]
    if marks[:1] != [0]:
        raise QueryError("there is no header", text=text, start=0, hint=EXAMPLE, code="query_syntax")
    if len(marks) == 1:
        hint = f"write a line {MARK} between the header and the query"
        raise QueryError("the header does not end", text=text, start=0, end=3, hint=hint, code="query_syntax")
    begin = sum(len(line) + 1 for line in lines[: marks[1] + 1])
    return "\n".join(lines[1 : marks[1]]), min(begin, len(text))


def _toml_values(header: str, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(header)
    except tomllib.TOMLDecodeError as error:
        message = str(error)
        place = _TOML_PLACE.search(message)
        start = len(MARK) + 1 + len(header)
        if place is not None and place[1] is not None:
            lines = header.split("\n")
            before = sum(len(line) + 1 for line in lines[: int(place[1]) - 1])
            start = len(text.split("\n", 1)[0]) + 1 + before + int(place[2]) - 1
        reason = printable(message[: None if place is None else place.start()])
        raise QueryError(
            f"the header is no TOML: {reason[:1].lower()}{reason[1:]}",
            text=text,
            start=min(start, len(text)),
            hint='a line of it is such as severity = "high"',
            code="query_syntax",
        ) from None
    except RecursionError:
        raise QueryError("the header has too many brackets inside each other", code="query_size") from None


def _name_of(values: Mapping[str, Any], text: str) -> str:
    name = values.get("name")
    if name is None:
        raise QueryError("the rule has no name", text=text, start=0, hint='name = "..."', code="option_invalid")
    if not isinstance(name, str) or not name.strip() or not name.isprintable() or len(name) > LONGEST_NAME:
        raise _key_error("name", f"is no text in one line of 1 to {LONGEST_NAME} characters", text)
    return name


def _check_keys(values: Mapping[str, Any], text: str) -> None:
    for key in values:
        if key not in KEYS:
            error = QueryError(f"unknown key `{key}`", hint=suggest(key, KEYS), code="option_invalid")
            raise _place_at_key(error, key, text)
    severity = values.get("severity")
    if severity is not None and severity not in SEVERITIES:
        raise _key_error("severity", f"is not one of {', '.join(SEVERITIES)}", text)
    if not isinstance(values.get("description", ""), str):
        raise _key_error("description", "is no text", text)
    for key in ("tags", "fields"):
        texts = values.get(key, [])
        if not isinstance(texts, list) or not all(isinstance(part, str) and part.strip() for part in texts):
            raise _key_error(key, "is no list of texts", text)
        if len({*texts}) < len(texts):
            raise _key_error(key, "has a text twice", text)
    errors, weights = values.get("errors", 0), values.get("weights", {})
    if isinstance(errors, bool) or not isinstance(errors, int | float):
        raise _key_error("errors", "is no number", text)
    numbers = weights.values() if isinstance(weights, dict) else [None]
    if any(isinstance(number, bool) or not isinstance(number, int | float) for number in numbers):
        raise _key_error("weights", "is no table of numbers, such as {a = 2, b = inf}", text)
    if weights and not errors:
        raise _key_error("weights", "says what errors cost, and the rule allows none", text)


def _key_error(key: str, complaint: str, text: str) -> AcepError:
    return _place_at_key(QueryError(f"`{key}` {complaint}", code="option_invalid"), key, text)


def _place_at_key(error: AcepError, key: str, text: str) -> AcepError:
    """Return an error with the place of a key of the header."""
    line = re.search(rf"^[ \t]*(\[?[\"']?{re.escape(key)}\b)", text, re.MULTILINE)
    error.text, error.start, error.end = (text, 0, None) if line is None else (text, line.start(1), line.end(1))
    return error


# The query ------------------------------------------------------------------------------------------


def _rule_of(name: str, values: Mapping[str, Any], text: str, begin: int, file: str) -> AlertRule:
    query_text, fields = text[begin:].rstrip(), tuple(values.get("fields", ()))
    if not query_text.strip():
        hint = f"write it below the second line {MARK}"
        raise QueryError("there is no query", text=text, start=len(text.rstrip()), hint=hint, code="query_syntax")
    budget = {"errors": values.get("errors", 0), "weights": values.get("weights", {})}
    try:
        query = _query_with_fields(query_text, fields, budget)
    except QueryError as error:
        if error.message.endswith("has no value"):
            error.hint = "write the value into the rule: it takes no parameters"
        if error.start is not None and error.text == query_text:
            error.text, error.start, error.end = text, error.start + begin, error.end and error.end + begin
        elif error.text is None or error.start is None:
            places = ("weights" if error.message.startswith("weights") else "", "fields" if fields else "errors")
            _place_at_key(error, next(key for key in places if key), text)
        raise
    return AlertRule(
        name=name,
        severity=values.get("severity"),
        tags=tuple(values.get("tags", ())),
        description=values.get("description", ""),
        fields=fields,
        query=query,
        file=file,
        text=text,
        begin=begin,
        length=len(query_text),
    )


def _query_with_fields(text: str, fields: tuple[str, ...], budget: Mapping[str, Any]) -> Query:
    """Return the query of a text, which returns the fields after its own values, by their texts as names."""
    if text.startswith("re:") or is_clause(text):
        raise QueryError(
            "the query of a rule begins with PATTERN or FROM", text=text, start=0, hint=EXAMPLE, code="query_syntax"
        )
    query = parse(text, **budget)
    if not fields:
        return query
    if query.returns and (twice := {*names_returned(query)} & {*fields}):
        raise QueryError(f"RETURN and the fields both have `{min(twice)}`", hint="leave one out", code="query_name")
    # Clauses come in any order, so a query without RETURN takes one at its end, and places in its text stay right.
    if not query.returns:
        return _with_returns(text, fields, budget)
    # The places of the fields are beyond the text of the query, as they are of a query without RETURN.
    bare_text = canonical(replace(query, returns=())).ljust(len(text))
    return replace(query, returns=(*query.returns, *_with_returns(bare_text, fields, budget).returns))


def names_returned(query: Query) -> tuple[str, ...]:
    """Return the names of the values that a query returns."""
    return tuple(name for name, _ in query.returns)


def _with_returns(text: str, fields: tuple[str, ...], budget: Mapping[str, Any]) -> Query:
    """Return the query of a text without RETURN, with the fields as its values. Raises :class:`QueryError`, without a
    place, for the first field that is no value."""
    try:
        query = parse(_returning(text, fields), **budget)
        if names_returned(query) == fields:
            return query
    except QueryError:
        pass
    for field in fields:  # one of them is wrong
        hint = "a field is an attribute of a variable, such as a.user, a[1].user or count(a[]); see RETURN"
        try:
            query = parse(_returning(text, (field,)), **budget)
        except QueryError as error:
            raise QueryError(f"field `{field}`: {error.message}", hint=error.hint or hint, code=error.code) from None
        if names_returned(query) != (field,):
            raise QueryError(f"field `{field}` is no value", hint=hint, code="query_syntax")
    raise DataError("the fields are values one by one, and not together", code="option_invalid")


def _returning(text: str, fields: tuple[str, ...]) -> str:
    return f"{text}\nRETURN " + ",\n".join(f"{field} AS {name_text(field)}" for field in fields)
