"""Replace the queries of a job while it runs: numbered versions, which hold from one time on in all buckets."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias

from acep.changing.changeable_queries import (
    compile_versions,
    replace_query,
    revise_query,
    text_of,
    versions_data,
    versions_of,
    with_errors,
)
from acep.errors import AcepError, DataError, QueryError, suggest
from acep.pattern import expressions as ex
from acep.pattern.automata import Automaton
from acep.pattern.query_arguments import query_of
from acep.pattern.times import read_timestamp
from acep.pattern.tree import Query
from acep.plan.compile import Plan
from acep.plan.compile_graph import tick_of
from acep.plan.schema import Schema
from acep.plan.versions import QueryVersion

__all__ = [
    "NewVersion",
    "RunningQueries",
    "Times",
    "sort_versions",
    "text_of_version",
    "version_in_file",
    "versions_in_folder",
    "versions_in_rows",
    "with_columns",
]

Times: TypeAlias = tuple[int | None, int | None, int | None]
"""The arguments of :meth:`RunningQueries.take` after the versions: ``since``, ``certain`` and ``back``."""

_SINCE = re.compile(r"\s*(?:--|#)\s*since(?::|\s(?=[\d+-]))\s*([^\n]*?)\s*(?:\n|$)", re.IGNORECASE)
_FILE = re.compile(r"(\d{1,18})(?:[-_.](.*))?\.(?:acep|sase|sql|txt|query|q|toml)", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True, order=True)
class NewVersion:
    """A version of a query: its ``number``, greater than those of earlier versions of any query, the ``name`` of the
    query ("" if the job has one), and its ``text``, in SASE+ or, of an automaton, in TOML. A comment in the first line
    of the text may say since when it holds: ``-- since: 2026-01-31 10:00``, in TOML ``# since: 900``."""

    number: int
    name: str
    text: str

    @property
    def since(self) -> ex.Expr | None:
        r"""The time from which on the version holds, if its text says so. Raises :class:`QueryError` for another text.

        >>> NewVersion(1, "", "-- since: 9\nPATTERN A a").since
        Literal(value=9, span=None, exact=None)
        """
        comment = _SINCE.match(self.text)
        if comment is None:
            return None
        if re.fullmatch(r"[+-]?\d{1,18}", comment[1]):
            return ex.Literal(int(comment[1]))
        return ex.Timestamp(read_timestamp(comment[1]))

    def data(self) -> list[Any]:
        """Return the version as JSON-like data."""
        return list(astuple(self))

    @classmethod
    def from_data(cls, data: Any) -> NewVersion:
        """Read the data of :meth:`data`. Raises :class:`TypeError` or :class:`ValueError` for other data."""
        number, name, text = data
        if type(number) is not int or not isinstance(name, str) or not isinstance(text, str):
            raise ValueError("version")
        return cls(number, name, text)


def text_of_version(query: object) -> str:
    """Return the text of a query that is to be a version of another one; an automaton is given by its TOML.

    Raises :class:`QueryError` for anything else.
    """
    if isinstance(query, Path):
        try:
            return query.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise QueryError(f"`{query}` cannot be read: {error}", code="file_read") from None
    if isinstance(query, str):
        return query
    if isinstance(query, Query) and query.graph is None:
        return text_of(query)
    raise QueryError(
        f"a version of a query is a text or a query, not {type(query).__name__}",
        hint="of an automaton give the text of its TOML file",
        code="option_invalid",
    )


def version_in_file(name: str, text: str, names: Sequence[str]) -> NewVersion:
    """Return the version in a file of this name. ``names`` are those of the queries of the job.

    Raises :class:`DataError` for a name that does not begin with a number, or has another ending.

    >>> version_in_file("0012-lower.sase", "PATTERN A a", [""])
    NewVersion(number=12, name='', text='PATTERN A a')
    >>> version_in_file("13-up.sase", "PATTERN A a", ["up", "down"]).name
    'up'
    """
    parts = _FILE.fullmatch(name)
    if parts is None:
        raise DataError(
            f"`{name}` is no name of a version of a query",
            hint="its number comes first, as in 0002-lower.sase, or 0002-lower.toml for an automaton",
            code="query_change",
        )
    return NewVersion(int(parts[1]), "" if tuple(names) == ("",) else parts[2] or "", text)


def is_ignored(name: str) -> bool:
    """Return whether a file is hidden, or not whole yet."""
    return name.startswith((".", "_")) or name.endswith(".tmp")


def versions_in_rows(rows: Iterable[str], names: Sequence[str]) -> list[NewVersion]:
    """Return the versions in JSON objects with ``text``, and with ``file`` (its name), or ``number`` and ``name``.

    Raises :class:`DataError` for a row without a number or a text, or the name of a file without a number.

    >>> versions_in_rows(['{"number": 2, "text": "PATTERN A a"}', '{"file": ".hidden", "text": ""}'], [""])
    [NewVersion(number=2, name='', text='PATTERN A a')]
    """
    versions = []
    for row in map(json.loads, rows):
        file = row.get("file")
        if file is not None:
            versions += [] if is_ignored(file) else [version_in_file(file, row["text"], names)]
        elif row.get("number") is None or row.get("text") is None:
            raise DataError("a row of versions has no `number` or no `text`", hint="fill both in", code="query_change")
        else:
            versions.append(NewVersion(row["number"], row.get("name") or "", row["text"]))
    return versions


def versions_in_folder(folder: Path, names: Sequence[str], after: int) -> list[NewVersion]:
    """Return the versions in the files of a folder whose numbers are greater than ``after``, in the order of these.

    Raises :class:`DataError` if a file cannot be read, has no number, or two have one number.
    """
    versions = list[NewVersion]()
    try:
        for file in sorted(folder.iterdir()):
            if is_ignored(file.name):
                continue
            if not file.is_file():  # a pipe would have to be waited for
                raise DataError(
                    f"`{file}` is no file, and so no version of a query", hint="take it away", code="file_read"
                )
            version = version_in_file(file.name, file.read_text("utf-8"), names)
            versions += [version] if version.number > after else []
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"the versions in `{folder}` cannot be read: {error}", code="file_read") from None
    return sort_versions(versions)


def sort_versions(versions: Iterable[NewVersion]) -> list[NewVersion]:
    """Return versions in the order of their numbers, each once. Raises :class:`DataError` for two of one number."""
    ordered = sorted(set(versions))
    for version, next_version in pairwise(ordered):
        if version.number == next_version.number:
            raise DataError(
                f"two versions of a query have the number {version.number}",
                hint="number them as they come",
                code="query_change",
            )
    return ordered


class RunningQueries:
    """The queries of a job with all their versions so far. ``newest`` is the number of the last one. Plans read
    ``columns``, too.

    >>> from acep.pattern.text.sase import parse
    >>> running = RunningQueries((parse("PATTERN SEQ(A a, B b) WITHIN 9"),), ("",), Schema(()))
    >>> running.take([NewVersion(1, "", "PATTERN SEQ(A a, C c) WITHIN 9")], since=5, certain=None)
    {0: None}
    >>> [version.since for version in running.versions[0]], running.newest
    ([None, 5], 1)
    """

    def __init__(
        self, queries: Sequence[Query], names: Sequence[str], schema: Schema, columns: Sequence[str] = ()
    ) -> None:
        self._first, self._names, self._schema, self._columns = tuple(queries), tuple(names), schema, columns
        self.versions: list[tuple[QueryVersion, ...]] = [(QueryVersion(query, None),) for query in self._first]
        self.newest = 0
        self.over: int | None = None

    def take(
        self,
        new_versions: Iterable[NewVersion],
        since: int | None,
        certain: int | None,
        earliest_since: int | None = None,
    ) -> dict[int, int | None]:
        """Take in newer versions, valid from the tick ``since`` on (``None``: from the beginning), or from another time
        that they give: a later one, or an earlier one that is not before ``earliest_since`` (``None``: none). Return
        the places of the queries that changed, each with the earliest tick of a version that reaches back. No event
        before the tick ``certain`` is matched any more.

        Raises :class:`QueryError` or :class:`DataError`, with nothing taken in.
        """
        versions, newest, changed = list(self.versions), self.newest, dict[int, int | None]()
        for new in sort_versions(version for version in new_versions if version.number > self.newest):
            newest = new.number
            if new.name not in self._names:
                hint = suggest(new.name, self._names)
                raise DataError(
                    f"there is no query `{new.name}`, and version {new.number} is one of it",
                    hint=hint,
                    code="query_change",
                )
            index = self._names.index(new.name)
            try:
                query = _parse_version(new.text, versions[index][-1].query)
                begin = _first_tick(new, since, versions[index][-1], self._schema, earliest_since)
                if begin is not None and since is not None and begin < since:
                    versions[index] = revise_query(versions[index], query, begin, self._schema, certain)
                    earliest = changed.get(index)
                    changed[index] = begin if earliest is None else min(begin, earliest)
                else:
                    versions[index] = replace_query(versions[index], query, begin, self._schema, certain)
                    changed.setdefault(index, None)
                self._check_columns(compile_versions(versions[index], self._schema, certain))
            except AcepError as error:
                raise QueryError(
                    f"version {new.number} of the query: {error.message}", hint=error.hint, code=error.code
                ) from None
        self.versions, self.newest, self.over = versions, newest, certain
        return changed

    def _check_columns(self, plan: Plan) -> None:
        """Raise :class:`QueryError` if a plan reads a part of a list that the first queries do not read: of lists only
        such parts are kept."""
        plans = (compile_versions((QueryVersion(query, None),), self._schema) for query in self._first)
        names = {name for first in plans for name in first.columns} | {
            *self._columns,
            self._schema.ts,
            self._schema.type,
        }
        if self._columns and (new := sorted({*plan.columns} - names)):
            raise QueryError(
                f"it reads `{new[0]}`, a part of a list that the first version does not read",
                hint="begin a new state with a first version that reads it, as in RETURN",
                code="query_change",
            )

    def plan(self, index: int) -> Plan:
        """Return the plan of a query as it is now."""
        plan = compile_versions(self.versions[index], self._schema, self.over)
        return with_columns(plan, self._columns, self._schema)

    def dump(self) -> Any:
        """Return the versions as JSON-like data."""
        return [
            self.newest,
            [versions_data(versions) for versions in self.versions],
            [versions_of_query[-1].since for versions_of_query in self.versions],
        ]

    def load(self, data: Any) -> None:
        """Restore the data of :meth:`dump`. Raises :class:`QueryError`, :class:`KeyError`, :class:`TypeError` or
        :class:`ValueError` for other data."""
        newest, versions, begins = data
        if not all(since is None or type(since) is int for since in begins):
            raise ValueError("since")
        for index, (query, stored, since) in enumerate(zip(self._first, versions, begins, strict=True)):
            *before, last = versions_of(query, stored)
            self.versions[index] = (*before, replace(last, since=since))
        self.newest = int(newest)


def _first_tick(
    new: NewVersion, since: int | None, last: QueryVersion, schema: Schema, earliest_since: int | None
) -> int | None:
    """Return the tick from which on a version holds. Raises :class:`QueryError` if that is too early."""
    moment = new.since
    begin = since if moment is None else tick_of(moment, schema)
    if earliest_since is not None and begin is not None and since is not None and begin < since:
        if begin < earliest_since:
            raise QueryError(
                "it would hold for events that are final", hint="give a later time, or a longer delay of the watermark"
            )
        return begin
    earliest = max((tick for tick in (since, last.since) if tick is not None), default=None)
    if earliest is not None and (begin is None or begin < earliest):
        if moment is not None:
            raise QueryError(
                "it would hold for events that have come, or before the version before it",
                hint="give a later time, or leave out `since:` for the next time that is possible",
                code="query_change",
            )
        begin = earliest
    return begin


def _parse_version(text: str, old: Query) -> Query:
    """Return the query of a text in place of an old one, which has the errors and weights of the budget."""
    if old.graph is not None:
        return Automaton.from_toml(text).query
    return with_errors(query_of(text.strip()), old)


def with_columns(plan: Plan, columns: Iterable[str], schema: Schema) -> Plan:
    """Return a plan that reads these columns, too, as far as a query can use them: a later version may."""
    added = {column for column in columns if schema.kind(column) is not None} - {schema.ts, schema.type}
    return replace(plan, columns=tuple(sorted({*plan.columns, *added})))
