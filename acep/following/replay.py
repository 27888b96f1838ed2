"""Replay recorded events in this process as a stream, at the pace of their clock if asked (``acep.replay``)."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from acep.bucket_state.folders import LocalFolder
from acep.errors import DataError
from acep.events.columns import ticks_of
from acep.following.follow import folder_path
from acep.following.followed_queries import FollowedQueries, reading_options
from acep.following.follower import Follower
from acep.following.inbox import Inbox
from acep.following.outbox import Outbox
from acep.following.replay_summary import ReplaySummary
from acep.following.replayed_events import (
    ORDER,
    ROW,
    RecordedEvents,
    check_page,
    check_tell,
    has_content,
    note_content,
    record_events,
    with_order,
    write_chunk,
)
from acep.matches.flat import Layout
from acep.native.compiled import warn_if_missing
from acep.runtime.options import StreamKeywords, StreamOptions, lists_options
from acep.streaming.progress import Progress, length_text

if TYPE_CHECKING:
    from acep.serving.live_page import LivePage

__all__ = ["Replayed", "replay"]

NS = 1_000_000_000
BEHIND = 1.0
"""The seconds that a paced replay may be late before its summary says so."""

Wait = Callable[[float], float]
Integers = npt.NDArray[np.int64]


@dataclass(eq=False, kw_only=True)
class Replayed(ReplaySummary):
    """The result of a replay: its metrics (:class:`~acep.following.replay_summary.ReplaySummary`) and its matches.

    ``rows`` has the matches as an Arrow table with the columns of :func:`acep.follow`. ``behind``: the most seconds by
    which a paced replay was late (0: it kept its pace, or has none).
    """

    rows: pa.Table = field(repr=False)
    behind: float = 0.0

    def table(self, limit: int | None = None) -> pa.Table:
        """Return all matches, or the first ``limit``, by match point, as an Arrow table."""
        return self.rows if limit is None else self.rows.slice(0, limit)

    def __str__(self) -> str:
        if self.behind < BEHIND:
            return super().__str__()
        return f"{super().__str__()}\nthe replay was up to {length_text(self.behind)} behind its pace"


@lists_options(StreamKeywords)
def replay(
    query: Any,
    events: Any,
    *,
    chunk: int | None = None,
    speed: float | None = None,
    watermark: Any = None,
    latest: Any = None,
    checkpoint: str | os.PathLike[str] | None = None,
    versions: str | os.PathLike[str] | None = None,
    tell: Callable[[Progress], None] | None = None,
    wait: Wait | None = None,
    page: LivePage | None = None,
    **options: Unpack[StreamKeywords],
) -> Replayed:
    """Replay events as a stream in this process, and find the matches of a query. The matches are those of
    :func:`acep.match`.

    ``events``: a file (CSV, Parquet, JSON Lines) or a table, as :func:`acep.match` takes. They are taken in the order
    of time, with ``watermark`` (such as "10 minutes") in the order of the rows; events that arrive too late are counted
    as late then, where an earlier micro-batch says so: within one micro-batch none is late. An event beyond the
    ``latest`` time (see :func:`acep.spark.match`) is also counted and not used. Row numbers break ties and are the ids
    if no ``id`` is named.

    Without ``speed`` the replay is as fast as it can be, in micro-batches of ``chunk`` events (by default a twentieth
    of all, at least 2,000). With ``speed`` it takes as long as the clock of the events says, divided by ``speed``: an
    event is taken once its time has come. A micro-batch then has the events of one second of the replay, unless
    ``chunk`` says how many. ``Budget(cpu=)`` and ``Budget(latency=)`` then mean what they say of a live stream, and the
    result tells how far the replay was ``behind``.

    ``checkpoint`` is a folder from which the replay can be taken up again after a crash, with the same arguments; no
    match is found twice. ``versions`` is a folder with newer versions of the query (see :func:`acep.follow`). ``tell``
    is called with the progress of each micro-batch. ``wait`` is called with the seconds until the next micro-batch and
    returns how many of the seconds that it took do not count, because the replay was paused; by default it sleeps. A
    ``page`` (:class:`acep.LivePage`) shows the stream live, with buttons that pause, step and stop it; one that is
    stopped so raises :class:`KeyboardInterrupt`.

    Raises :class:`QueryError`, :class:`DataError`, :class:`EngineError`, or :class:`SnapshotError` if the checkpoint is
    of other events, another query or another engine.

    >>> table = pa.table({"ts": [1, 2, 4], "type": ["a", "x", "b"]})
    >>> import acep
    >>> done = acep.replay(acep.regex("ab", within=5), table)
    >>> done.matches, done.table()["end"].to_pylist()
    (1, [4])
    """
    newer = None if versions is None else folder_path("versions", versions)
    stream_options = _paced_options(StreamOptions.from_keywords("replay", options), speed)
    check_tell(tell)
    check_page(page)
    recorded = record_events(
        query, events, stream_options, chunk=chunk, watermark=watermark, latest=latest, versions=versions
    )
    warn_if_missing(stream_options.engine)
    chunks = Chunks.from_events(recorded, by_time=speed if chunk is None else None, sort=watermark is None)
    due = None if speed is None else _times_due(recorded, chunks, speed)
    if page is not None:
        page.begin(recorded.query, can_pause=True, history=stream_options.history)
        wait = wait or page.wait
    pace = None if due is None and wait is None else ReplayPace(due, wait or _sleep)
    about = recorded.about | {"route": "in one process", "speed": speed}
    root = Path(tempfile.mkdtemp(prefix="acep-replay-") if checkpoint is None else os.fspath(checkpoint)).resolve()
    try:
        if not has_content(root, about):
            note_content(root, about)
        (root / "events").mkdir(exist_ok=True)
        queries = FollowedQueries(
            query=recorded.query,
            options=_options_of_files(stream_options),
            reading=reading_options(recorded.query, _options_of_files(stream_options), {}, reads_all=True),
            watermark=(1 if watermark is None and not recorded.schema.instants else watermark) or "1 millisecond",
            latest=latest,
            output="matches",
            late=False,
            flat=False,
            dynamic=versions is not None,
        )
        durable = checkpoint is not None
        inbox = Inbox(root / "events", queries.reading, 1, end_marker=False)
        outbox = Outbox(root / "results", "parquet", durable=durable)
        state = LocalFolder(root / "state", durable=durable)
        follower = Follower(inbox, queries.job_over, state, outbox, newer, page=page)
        replayed = _run(follower, queries, chunks, Layout.of_plans([recorded.plan]), pace, tell)
        if page is not None:
            page.end(str(replayed).splitlines()[0])
        return replayed
    finally:
        if checkpoint is None:
            shutil.rmtree(root, ignore_errors=True)


@dataclass(frozen=True)
class Chunks:
    """The events of a replay in the order in which they are taken, and the rows at which micro-batches begin and end:
    ``edges``, of the shape ``(micro-batches + 1,)``. ``ticks`` has for each row the newest time so far."""

    table: pa.Table
    ticks: Integers
    edges: Integers

    @classmethod
    def from_events(cls, recorded: RecordedEvents, *, by_time: float | None, sort: bool) -> Chunks:
        """Cut recorded events into micro-batches, by time if a speed is given (``by_time``), else by their number."""
        schema = recorded.schema
        table = with_order(recorded.table, schema, sort=sort)
        times, _ = ticks_of(schema.ts, table.column(schema.ts), schema.tick_ns or 1)
        ticks = np.maximum.accumulate(times) if len(times) else times
        if by_time is None or not len(ticks):
            edges = np.arange(0, len(ticks), recorded.chunk)
        else:
            seconds = np.floor(_seconds_since_first(ticks, _tick_ns(recorded)) / by_time)
            edges = np.flatnonzero(np.diff(seconds, prepend=-1))
        return cls(table, ticks, np.append(edges, len(ticks)))

    def __len__(self) -> int:
        return len(self.edges) - 1

    def rows(self, number: int) -> pa.Table:
        """Return the events of a micro-batch."""
        begin, end = self.edges[number : number + 2].tolist()
        return self.table.slice(begin, end - begin)


def _tick_ns(recorded: RecordedEvents) -> float:
    """Return the length of a tick in nanoseconds. Raise :class:`DataError` if it is not known."""
    if recorded.schema.tick_ns is None:
        raise DataError(
            f"speed= goes by the clock of the events, and the length of a tick of `{recorded.schema.ts}` is not known",
            hint='give unit=, such as unit="ms", or timestamps',
            code="option_invalid",
        )
    return float(recorded.schema.tick_ns)


def _seconds_since_first(ticks: Integers, tick_ns: float) -> npt.NDArray[np.float64]:
    return np.asarray((ticks - ticks[0]) * (tick_ns / NS), np.float64)


def _times_due(recorded: RecordedEvents, chunks: Chunks, speed: float) -> npt.NDArray[np.float64]:
    """Return for each micro-batch the seconds from the beginning of a replay until all of its events are there."""
    if not len(chunks):
        return np.zeros(0)
    seconds = _seconds_since_first(chunks.ticks, _tick_ns(recorded)) / speed
    return seconds[chunks.edges[1:] - 1]


def _paced_options(options: StreamOptions, speed: float | None) -> StreamOptions:
    """Return the options with the speed in the budget, too. Raise :class:`DataError` for a speed that is none, or
    another one in the budget."""
    if speed is None:
        return options
    if isinstance(speed, bool) or not isinstance(speed, int | float) or not 0 < speed < float("inf"):
        raise DataError(
            f"speed={speed!r} is no factor", hint="10 is ten times as fast as the clock", code="option_invalid"
        )
    budget = options.budget
    if budget is None or budget.cpu is None:
        return options
    if budget.speed not in (1, speed):
        raise DataError(
            f"speed={speed:g} paces the replay, and the budget has speed={budget.speed:g}",
            hint="give one of them",
            code="option_invalid",
        )
    return replace(options, budget=replace(budget, speed=float(speed)))


def _options_of_files(options: StreamOptions) -> StreamOptions:
    """Return the options by which the files of a replay are read, which have columns for the order and the ids."""
    return replace(options, seq=ORDER, id=options.id or ROW)


def _sleep(seconds: float) -> float:
    time.sleep(seconds)
    return 0.0


class ReplayPace:
    """The pace of a replay: ``due`` has for each micro-batch the seconds from the beginning until it is taken; with
    ``None`` it is taken at once. ``wait`` is that of :func:`replay`."""

    def __init__(self, due: npt.NDArray[np.float64] | None, wait: Wait) -> None:
        self._due, self._wait = due, wait
        self._began: float | None = None

    def await_batch(self, number: int, first: int) -> float:
        """Wait until a micro-batch is due, and return how many seconds it is late. ``first`` is the first one of this
        run, of which the time is that of its beginning."""
        if self._due is None:
            self._wait(0.0)
            return 0.0
        if self._began is None:
            self._began = time.monotonic() - (float(self._due[first - 1]) if first else 0.0)
        due = self._began + float(self._due[number])
        self._began += self._wait(max(0.0, due - time.monotonic()))
        return max(0.0, time.monotonic() - self._began - float(self._due[number]))


def _run(
    follower: Follower,
    queries: FollowedQueries,
    chunks: Chunks,
    layout: Layout,
    pace: ReplayPace | None,
    tell: Callable[[Progress], None] | None,
) -> Replayed:
    """Take all micro-batches that were not done yet, and sum up."""
    began, progresses, behind = time.monotonic(), list[Progress](), 0.0
    folder = follower.inbox.folder
    first = follower.journal.next
    for path in folder.glob("*.parquet"):
        if int(path.stem) < first:
            path.unlink()
    for number in range(first, len(chunks)):
        if pace is not None:
            behind = max(behind, pace.await_batch(number, first))
        path = write_chunk(chunks.rows(number), folder, number)
        progress = follower.step(end=number == len(chunks) - 1)
        path.unlink()
        if progress is not None:
            progresses.append(progress)
            if tell is not None:
                tell(progress)
    seconds = time.monotonic() - began
    parts = [pq.read_table(path) for path in sorted(follower.outbox.folder.glob("[0-9]*.parquet"))]
    rows = pa.concat_tables(parts) if parts else _result_schema(queries, chunks).empty_table()
    report = replace(follower.sum_up(len(progresses), seconds).report, matches=len(rows), seconds=seconds)
    return Replayed(
        events=report.events,
        late=report.late,
        matches=len(rows),
        bundles=_count_bundles(rows),
        seconds=seconds,
        report=report,
        allowance=progresses[-1].allowance if progresses else 0,
        layout=layout,
        rows=rows,
        behind=behind,
        **ReplaySummary.maxima(progresses),
    )


def _result_schema(queries: FollowedQueries, chunks: Chunks) -> pa.Schema:
    job, _ = queries.job_over(chunks.table.schema)
    assert job.result is not None
    return job.result


def _count_bundles(rows: pa.Table) -> int:
    """Return the number of bundles of some matches: different keys and ends of bundles."""
    columns = {"bundle": rows.column("bundle")}
    if "key" in rows.column_names:
        parts = rows.column("key").combine_chunks().flatten()
        columns |= {str(number): part for number, part in enumerate(parts)}
    return int(pa.table(columns).group_by(list(columns)).aggregate([]).num_rows)
