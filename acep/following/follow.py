"""Match the files of a growing folder, and continue after a crash (``acep.follow``)."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from traceback import clear_frames
from typing import TYPE_CHECKING, Any, Unpack

import pyarrow as pa

from acep.errors import DataError, EngineError, QueryError
from acep.events.files.options import MAX_COLUMNS, MAX_EXPANSION, MAX_LINE, MAX_SKIPPED, Options
from acep.following.follow_places import MAX_BYTES, BadFileOptions, check_numbers, source_of, state_place
from acep.following.follow_result import Followed
from acep.following.followed_queries import FollowedQueries, after_cast, reading_options
from acep.following.follower import Follower
from acep.following.outbox import Outbox
from acep.following.rule_watch import RuleWatch
from acep.matches.flat import check_flat
from acep.native.compiled import warn_if_missing
from acep.pattern.query_arguments import is_clause
from acep.runtime.options import RevisedKeywords, StreamOptions, lists_options
from acep.streaming.job import Job
from acep.streaming.progress import Progress

if TYPE_CHECKING:
    from acep.serving.live_page import LivePage

__all__ = ["MAX_BYTES", "MAX_FILES", "POLL", "folder_path", "follow"]

POLL = 1.0
MAX_FILES = 100


@lists_options(RevisedKeywords)
def follow(
    folder: str | os.PathLike[str],
    query: Any = None,
    *,
    rules: str | os.PathLike[str] | None = None,
    strict: bool = False,
    state: str | os.PathLike[str],
    into: str | os.PathLike[str],
    into_format: str = "jsonl",
    quote_formulas: bool = False,
    cast: Mapping[str, str] | None = None,
    format: str | None = None,
    skip_bad_lines: bool = False,
    max_skipped: float = MAX_SKIPPED,
    delimiter: str | None = None,
    quote: str | None = '"',
    decimal: str = ".",
    nulls: Sequence[str] = (),
    multiline_cells: bool = False,
    max_line: int | str = MAX_LINE,
    max_expansion: float = MAX_EXPANSION,
    max_columns: int = MAX_COLUMNS,
    output: str = "matches",
    watermark: Any = 0,
    latest: Any = None,
    late: bool = False,
    flat: bool = False,
    versions: str | os.PathLike[str] | None = None,
    max_files: int = MAX_FILES,
    growing: bool = False,
    max_bytes: int | str = MAX_BYTES,
    bad_files: str = "stop",
    bad_folder: str | os.PathLike[str] | None = None,
    poll: float = POLL,
    once: bool = False,
    end: bool = False,
    end_marker: bool = False,
    tell: Callable[[Progress], None] | None = None,
    page: LivePage | None = None,
    **options: Unpack[RevisedKeywords],
) -> Followed:
    r"""Match the events of files that arrive in a folder, until interrupted; continue where an earlier call stopped.

    With ``end_marker`` a row as :func:`acep.spark.punctuation` writes it ends the stream, and then the call returns
    (docs/howto/follow.md#a-row-that-ends-the-stream). Without it no row ends the stream: one of the last time, whoever
    wrote it, is counted as ahead, or left out where it lacks an ``id`` or ``seq`` that the stream has.

    New files (CSV, Parquet, JSON Lines, as :func:`acep.read_events` reads them) are taken in the order of their times
    of modification and names, up to ``max_files`` in a micro-batch; the folder is listed every ``poll`` seconds. Files
    must be complete when they appear: names that begin with ``.`` or ``_`` or end in ``.tmp`` are ignored. With
    ``once`` the call returns when all files are done. With ``end`` it also ends the stream: it decides the matches that
    wait for the end, and no more files are taken afterwards.

    With ``growing`` the files of the folder grow, as logs do, and ``folder`` may be the path of one such file; a path
    of a file says so by itself. Whole lines of CSV or JSON Lines are taken from where they were taken last, up to
    ``max_bytes`` in a micro-batch, also after a file was rotated (renamed, with a new file of its name) or truncated
    (docs/howto/follow.md#files-that-grow). With ``bad_files="aside"`` a file that cannot be read is moved to
    ``bad_folder`` (by default ``<folder>.bad``) with a text that says why, and the stream goes on without it
    (docs/howto/follow.md#files-that-cannot-be-read).

    ``query`` is one query, a list, or a dict of names and queries; or a MATCH_RECOGNIZE clause of SQL, whose time
    column is the first key of ORDER BY (docs/reference/sql.md#streams). In its place ``rules`` may name a folder of
    rules, as for :func:`acep.rules`. It is looked at again before each micro-batch, and the results are alerts
    (docs/howto/rules.md#follow); with ``strict`` a file that is no rule stops the stream. ``watermark`` is how far an
    event may be behind the newest one: "10 minutes", a timedelta, or ticks of an integer ``ts``; later events are
    counted, not used. So is an event beyond the ``latest`` time (see :func:`acep.spark.match`). ``output`` is
    ``"matches"``, ``"points"``, ``"bundles"`` or ``"count"`` (rows that have to be added up). With ``speculation``
    events are matched that long before they are final, and ``op`` names a column that takes events back; points and
    counts are differences then.
    With ``late`` the results have rows of late events, too (see :func:`acep.spark.match`). The other options are those
    of :func:`acep.match` and :func:`acep.read_events`; without ``id`` events are numbered from 0 in the order in which
    they are taken.

    An event whose id came before, and is not final, is refused, or with ``duplicates="drop"`` left out.

    With ``quote_formulas`` an apostrophe stands in CSV before each text that a spreadsheet may take for a formula.
    With ``flat`` the results have plain columns only, as with :meth:`acep.Matches.to_arrow`, which a CSV file can hold:
    one for each key attribute, each value of RETURN and each variable.

    ``versions`` is a folder with newer versions of the queries: files whose names begin with their numbers, such as
    ``0002-lower.sase``, or ``0002.toml`` for an automaton, and go on with the name of the query if there are several.
    They are taken in the order of their numbers, before the next micro-batch, and hold from the first millisecond after
    the latest event so far, or from a later time in their first line: ``-- since: 2026-01-31 10:00``; with
    ``speculation``, also from an earlier one that is not final. The rules for changes, and for partial matches that go
    on, are those of :meth:`acep.Matcher.replace`. A version that cannot take the place of the one before stops the
    stream, with nothing of it taken in; so does another file. All columns of the files are read then.

    ``state`` is a folder on a disk, for this query and these files only. The results are written to the folder
    ``into``: a file for each micro-batch that has some, named by its number, in ``into_format`` (``"jsonl"``,
    ``"parquet"`` or ``"csv"``). After a kill the next call continues, and the results are the same. ``tell`` is called
    after each micro-batch, and a ``page`` (:class:`acep.LivePage`) shows the stream live.

    The first files determine the types of the columns; a later value that these types cannot represent is an error.
    Raises :class:`QueryError`, :class:`DataError` or :class:`EngineError`; :class:`SnapshotError` if the state is of
    another query, damaged, or taken over by a newer call.

    >>> import acep, json, tempfile, pathlib
    >>> there = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (there / "1.csv").write_text("ts,type\n1,a\n2,x\n")
    >>> query = acep.regex("ab", within=5)
    >>> folders = {"state": there / "_state", "into": there / "_found"}
    >>> acep.follow(there, query, **folders, once=True).report.matches
    0
    >>> _ = (there / "2.csv").write_text("ts,type\n4,b\n")
    >>> acep.follow(there, query, **folders, end=True).report.matches
    1
    >>> [file.read_text() for file in sorted((there / "_found").iterdir())]
    ['{"key": {}, "start": 1, "end": 4, "error": 0, "bindings": {"a": [0], "b": [2]}, "bundle": 4}\n']
    """
    check_numbers(max_files, poll)
    bad = BadFileOptions(bad_files, bad_folder)
    source = source_of(folder, format, state=state, into=into, is_growing=growing, max_bytes=max_bytes, bad=bad)
    outputs = {"output": output, "flat": flat, "late": late, "versions": versions}
    how: dict[str, Any] = {"rules": rules, "strict": strict, "end_marker": end_marker, "outputs": outputs}
    stream_options = _checked_options(query, StreamOptions.from_keywords("follow", options, RevisedKeywords), **how)
    files: dict[str, Any] = {"cast": cast, "format": format, "skip_bad_lines": skip_bad_lines, "max_line": max_line}
    files |= {"max_skipped": max_skipped, "delimiter": delimiter, "quote": quote, "decimal": decimal, "nulls": nulls}
    files |= {"multiline_cells": multiline_cells, "max_expansion": max_expansion, "max_columns": max_columns}
    reading = _reading_of(query, stream_options, files, rules=rules, versions=versions)
    newer, watch = _changes_of(versions, rules, strict=strict)
    times = {"options": after_cast(stream_options, cast), "watermark": watermark, "latest": latest}
    queries = FollowedQueries(query=query, reading=reading, **times, **_outputs_of_queries(outputs))
    outbox = Outbox(Path(into).resolve(), into_format, quote_formulas=quote_formulas)
    job_of = _jobs_into(outbox, queries, has_rules=watch is not None)
    inbox = source.inbox_of(reading, max_files, end_marker=end_marker)
    _begin_page(page, query if rules is None else f"the rules in {rules}", stream_options)
    follower = Follower(inbox, job_of, state_place(state), outbox, newer, watch, source, page)
    return _end_page(page, _step_until_done(follower, tell, poll=poll, once=once, end=end), query)


def _changes_of(versions: Any, rules: Any, *, strict: bool) -> tuple[Path | None, RuleWatch | None]:
    """Return the folder of newer versions of the queries, and what looks at the folder of rules.

    Raises :class:`DataError` for a path that is none."""
    newer = None if versions is None else folder_path("versions", versions)
    return newer, None if rules is None else RuleWatch(folder_path("rules", rules), strict=strict)


def _begin_page(page: LivePage | None, query: Any, options: StreamOptions) -> None:
    if page is not None:
        from acep.serving.live_page import check_live_page  # few streams are watched

        check_live_page(page)
        page.begin(query, history=options.history)


def _end_page(page: LivePage | None, followed: Followed, query: Any) -> Followed:
    """Show that the call returns, and return what was done, of a clause or of queries."""
    followed = followed.of_clause() if is_clause(query) else followed
    if page is not None:
        page.end(str(followed).splitlines()[0], goes_on=not followed.ended)
    return followed


def _checked_options(
    query: Any, options: StreamOptions, *, rules: Any, strict: bool, end_marker: bool, outputs: dict[str, Any]
) -> StreamOptions:
    """Return the options of a stream of queries, of a clause or of rules. Raises :class:`QueryError` or
    :class:`DataError` for those that it does not have, or that do not go together."""
    check_flat(outputs["flat"], dynamic=outputs["versions"] is not None)
    if rules is not None:
        from acep.following.followed_rules import check_rule_outputs  # few streams have rules

        check_rule_outputs(options, query=query, **outputs)
    elif strict:
        raise QueryError("strict= is about rules", hint="give it with rules=", code="option_invalid")
    if is_clause(query):
        from acep.following.clause_follower import check_clause_outputs, clause_options

        check_clause_outputs(**outputs, end_marker=end_marker)
        options = clause_options(query, options)
    _check_end_marker(options, end_marker=end_marker)
    warn_if_missing(options.engine)
    return options


def _outputs_of_queries(outputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of results in the form in which queries take them."""
    names_and_values = {name: outputs[name] for name in ("output", "late", "flat")}
    return names_and_values | {"dynamic": outputs["versions"] is not None}


def _reading_of(query: Any, options: StreamOptions, files: dict[str, Any], *, rules: Any, versions: Any) -> Options:
    """Return how files are read: with all columns where a later rule or version may need any."""
    if rules is not None:
        from acep.following.followed_rules import reading_all

        return reading_all(options, files)
    return reading_options(query, options, files, reads_all=versions is not None)


def _jobs_into(outbox: Outbox, queries: FollowedQueries, *, has_rules: bool) -> Callable[[pa.Schema], tuple[Job, int]]:
    """Return the function that makes the job over columns, and gives the outbox the layout of its results."""
    if has_rules:
        from acep.following.followed_rules import FollowedRules

        outbox.has_alerts = True
        return FollowedRules(options=queries.options, watermark=queries.watermark, latest=queries.latest).job_over

    def job_of(schema: pa.Schema) -> tuple[Job, int]:
        job, delay_ms = queries.job_over(schema)
        outbox.flat = queries.layout_of(job)
        outbox.has_clause_rows = job.clause is not None
        return job, delay_ms

    return job_of


def _step_until_done(
    follower: Follower, tell: Callable[[Progress], None] | None, *, poll: float, once: bool, end: bool
) -> Followed:
    """Process micro-batches, and return what was done: when no file is left with ``once`` or ``end``, or when a row has
    ended the stream. Else the folder is listed every ``poll`` seconds."""
    began, batches = time.monotonic(), 0
    while True:
        try:
            progress = follower.step(end=end)
        except (MemoryError, EngineError) as error:
            if isinstance(error, EngineError) and error.code != "engine_memory":
                raise
            clear_frames(error.__traceback__)  # so that there is some again
            raise EngineError(
                "memory is too small for a micro-batch of this stream",
                hint="smaller ones take less: max_files=, and max_bytes= of files that grow; or a Budget of memory",
                code="engine_memory",
            ) from None
        if progress is not None:
            batches += 1
            if tell is not None:
                tell(progress)
        elif once or end or follower.ended:
            if not batches:
                follower.look_at_rules()
            return follower.sum_up(batches, time.monotonic() - began)
        else:
            time.sleep(poll)


def folder_path(role: str, path: Any) -> Path:
    """Return the path of a folder that is there. Raises :class:`DataError`."""
    if not isinstance(path, str | os.PathLike) or not Path(os.fspath(path)).is_dir():
        raise DataError(f"{role}= takes the path of a folder, and there is none at {path!r}", code="option_invalid")
    return Path(os.fspath(path))


def _check_end_marker(options: StreamOptions, *, end_marker: bool) -> None:
    if end_marker and options.type is None:
        raise DataError(
            "end_marker=True needs a column of types: without it nothing tells an event from the marker",
            hint="end=True ends the stream",
            code="option_invalid",
        )
