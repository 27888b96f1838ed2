"""Read what a folder says of its events: which of them a log source has, and which column a field is (sigma.toml)."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from acep.errors import QueryError, printable
from acep.pattern import expressions as ex
from acep.pattern.printing import canonical
from acep.pattern.text.sase import parse
from acep.pattern.tree import Component, Query
from acep.pattern.walk import children, with_children
from acep.sigma_rules.refusals import excerpt, refusal

__all__ = ["PARTS", "SETTINGS_FILE", "LogSource", "SigmaSettings", "read_settings"]

SETTINGS_FILE = "sigma.toml"
PARTS = ("product", "category", "service")
EVENT = "e"
EXAMPLE = '[[logsource]], product = "windows", where = "e.type = \'Windows\'"'


@dataclass(frozen=True)
class LogSource:
    """A log source, and how its events are known: the ``conditions`` of each event whose log source has these
    ``parts`` (product, category and service, where they are said)."""

    parts: Mapping[str, str]
    conditions: tuple[ex.Expr, ...]


@dataclass(frozen=True)
class SigmaSettings:
    """The columns of ``fields``, by their names in Sigma, and the log sources."""

    fields: Mapping[str, str]
    log_sources: tuple[LogSource, ...]

    def source_conditions(self, parts: Mapping[str, str], variable: str) -> list[ex.Expr]:
        """Return the conditions on an event of a variable that it is of a log source with these parts.

        All entries hold whose parts the log source has. A part that no such entry says is the value of a column.
        """
        conditions = [_rename(condition, variable) for entry in self._entries(parts) for condition in entry.conditions]
        for part, column in self.source_columns(parts).items():
            conditions.append(ex.Binary("=", ex.Attribute(variable, None, column), ex.Literal(parts[part])))
        return [*dict.fromkeys(conditions)]

    def source_columns(self, parts: Mapping[str, str]) -> dict[str, str]:
        """Return the columns of the parts of a log source that no entry says."""
        parts_of_entries = {part for entry in self._entries(parts) for part in entry.parts}
        return {part: self.fields.get(part, part) for part in PARTS if part in parts and part not in parts_of_entries}

    def _entries(self, parts: Mapping[str, str]) -> list[LogSource]:
        return [entry for entry in self.log_sources if entry.parts.items() <= parts.items()]


def read_settings(text: str | None) -> SigmaSettings:
    r"""Return the settings in the text of a file ``sigma.toml``, or those of a folder without one.

    Raises :class:`QueryError` for a mistake in it.

    >>> settings = read_settings('[[logsource]]\nproduct = "aws"\nwhere = "e.type = \'Cloud\'"')
    >>> from acep.pattern.spelling import expression_text
    >>> [expression_text(part) for part in settings.source_conditions({"product": "aws", "service": "s3"}, "a")]
    ["a.type = 'Cloud'", "a.service = 's3'"]
    """
    if text is None:
        return SigmaSettings({}, ())
    try:
        values = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise _settings_error(f"no TOML: {printable(str(error))[:200]}") from None
    for key in values:
        if key not in ("fields", "logsource"):
            raise _settings_error(f"unknown key `{excerpt(key)}`; it may have [fields] and [[logsource]]")
    fields, entries = values.get("fields", {}), values.get("logsource", [])
    if not isinstance(fields, dict) or not all(isinstance(column, str) and column for column in fields.values()):
        raise _settings_error('[fields] has columns by fields, such as User = "user"')
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise _settings_error(f"logsource is no list of tables: {EXAMPLE}")
    return SigmaSettings(fields, tuple(_log_source(entry) for entry in entries))


def _log_source(entry: Mapping[str, Any]) -> LogSource:
    for key, value in entry.items():
        if key not in (*PARTS, "where") or not isinstance(value, str) or not value.strip():
            raise _settings_error(f"`{excerpt(key)}` of [[logsource]] is not a text for {', '.join(PARTS)} or where")
    parts = {part: entry[part] for part in PARTS if part in entry}
    if not parts:
        raise _settings_error(f"a [[logsource]] has none of {', '.join(PARTS)}")
    if "where" not in entry:
        return LogSource(parts, ())
    try:
        query = parse(f"PATTERN ANY {EVENT}\nWHERE {entry['where']}")
    except QueryError as error:
        raise _settings_error(f"`where` of [[logsource]]: {error.message}") from None
    if canonical(query) != canonical(Query("", Component(EVENT, ()), where=query.where)):
        raise _settings_error("`where` of [[logsource]] is more than conditions on one event `e`")
    return LogSource(parts, query.where)


def _settings_error(message: str) -> QueryError:
    return refusal(f"`{SETTINGS_FILE}`: {message}", f"an entry is {EXAMPLE}")


def _rename(condition: ex.Expr, variable: str) -> ex.Expr:
    """Return a condition on the event ``e`` as one on a variable."""
    if isinstance(condition, ex.Attribute):
        return ex.Attribute(variable, None, condition.name)
    return with_children(condition, [_rename(part, variable) for part in children(condition)])
