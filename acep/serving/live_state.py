"""Gather what the live page of a stream shows as plain data of bounded size, while the stream goes on."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from acep.display import clip_text, clipped_lines
from acep.serving.bucket_figures import QueryFigures, ended_figures
from acep.serving.course import MOST_POINTS, Course
from acep.serving.progress_facts import facts_of, recall_of, shed_lines
from acep.serving.shown_rows import MOST_ROWS, ShownRows
from acep.streaming.progress import Progress

__all__ = ["LOOKING", "LiveState"]

LOOKING = 5.0
"""Seconds after an answer in which someone is taken to look at the page."""
LONGEST_QUERY = 20_000  # characters
LONGEST_NOTE = 400
NO_ROWS = "the matches are in the results of the stream, and are not shown here"
NO_STATES = "partial matches are counted together here, not by state"


class LiveState:
    """The present and the recent past of a stream. The thread of the stream writes, those of the server read;
    neither waits for the other longer than it takes to copy the last points and rows."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._lock = clock, threading.Lock()
        self._began, self._number = clock(), 1
        self._looked, self._sent = float("-inf"), 0  # when an answer was last asked for, and its number
        self._course, self._rows = Course(), ShownRows()
        self._query, self._status, self._note = "", "waiting", ""
        self._can_pause, self._rows_note = False, NO_ROWS
        self._progress: Progress | None = None
        self._before: Progress | None = None
        self._batch_at: float | None = None
        self._figures: tuple[QueryFigures, ...] = (QueryFigures("", note=NO_STATES),)
        self._drawing: tuple[int, bytes, str] = (0, b"", "a history is kept where a budget is")

    # Calls of the stream ----------------------------------------------------------------------------

    def begin(self, query: str, *, can_pause: bool, rows_note: str, partials_note: str) -> None:
        """Name the query. ``can_pause``: keys pause the stream. ``rows_note`` and ``partials_note``: why matches, and
        partial matches by state, are not shown ("": they are)."""
        with self._change():
            self._query = clipped_lines(query, LONGEST_QUERY)
            self._can_pause, self._rows_note = can_pause, rows_note
            self._status, self._note = "waiting", ""
            self._figures = (QueryFigures("", note=partials_note),) if partials_note else ()

    def add_progress(self, progress: Progress) -> None:
        """Take in a micro-batch."""
        with self._change():
            now = self._clock()
            self._course.add(progress, now - self._began, self._number)
            self._before, self._progress, self._batch_at = self._progress, progress, now
            if self._status == "waiting":
                self._status = "running"

    def add_rows(self, tables: Sequence[pa.Table]) -> None:
        """Take in rows of the result that came together."""
        if tables:
            with self._change():
                self._rows.add(tables, self._number)

    def set_figures(self, figures: tuple[QueryFigures, ...]) -> None:
        """Set what is known of each query."""
        with self._change():
            self._figures = figures

    def end_figures(self) -> None:
        """Forget the partial matches by state: the stream has ended."""
        with self._change():
            self._figures = ended_figures(self._figures)

    def set_drawing(self, svg: bytes, note: str) -> None:
        """Set the drawing of a history (empty: there is none), and a note on it."""
        with self._change():
            self._drawing = self._number, svg, clip_text(note, LONGEST_NOTE)

    def set_status(self, status: str, note: str = "") -> None:
        """Set how the stream is: waiting, running, paused, ended, stopped or failed, with a note."""
        with self._change():
            self._status, self._note = status, clip_text(note, LONGEST_NOTE)
            if status in ("ended", "stopped", "failed"):
                self._can_pause = False
                self._course.close()

    # Questions of the page --------------------------------------------------------------------------

    @property
    def status(self) -> str:
        """Return how the stream is."""
        return self._status

    @property
    def is_watched(self) -> bool:
        """Return whether someone looks at the page."""
        return self._clock() - self._looked < LOOKING

    @property
    def is_sent(self) -> bool:
        """Return whether the newest state was asked for."""
        return self._sent >= self._number

    @property
    def drawing(self) -> bytes:
        """Return the drawing of the history as SVG; empty: there is none."""
        return self._drawing[1]

    def answer(self, since: int) -> dict[str, Any]:
        """Return all that the page shows, as JSON-like data; of points and rows those that came after the state
        ``since``."""
        with self._lock:
            self._looked, self._sent = self._clock(), max(self._sent, self._number)
            points = [point for point in self._course.points if point.number > since]
            rows = [row for row in self._rows.rows if row[0] > since]
            columns, total, number = self._rows.columns, self._rows.total, self._number
            progress, before, figures = self._progress, self._before, self._figures
            age = None if self._batch_at is None else round(self._looked - self._batch_at, 1)
            drawing, status, note = self._drawing, self._status, self._note
            query, can_pause, rows_note = self._query, self._can_pause, self._rows_note
        reports = {} if progress is None else progress.reports or {"": progress.report}
        n_queries = len(reports)
        n_live = 0 if progress is None else progress.live
        if figures and all(of_query.states for of_query in figures):
            n_live = sum(count for of_query in figures for _, count in of_query.states)
        return {
            "now": number,
            "query": query,
            "status": {"name": status, "note": note, "age": age, "can_pause": can_pause},
            "facts": [] if progress is None else facts_of(progress, before),
            "points": [point.to_list() for point in points],
            "most_points": MOST_POINTS,
            "partials": {
                "total": n_live,
                "queries": [[of_query.name, of_query.states, of_query.note] for of_query in figures],
            },
            "matches": {
                "columns": columns,
                "rows": rows,
                "most_rows": MOST_ROWS,
                "total": total,
                "note": rows_note,
            },
            "shed": {
                "lines": [] if progress is None else shed_lines(progress, before),
                "queries": [[of_query.name, of_query.shedding] for of_query in figures if of_query.shedding],
            },
            "recall": recall_of(reports),
            "queries": n_queries,
            "history": {"number": drawing[0] if drawing[1] else 0, "note": drawing[2]},
        }

    @contextmanager
    def _change(self) -> Iterator[None]:
        """Change the state under its lock, with a greater number."""
        with self._lock:
            self._number += 1
            yield
