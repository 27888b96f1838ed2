"""Make the interactive page of a result: choose what it shows, and write it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from html import escape
from typing import Any

from acep.errors import AcepError, DataError, QueryError, check_installed
from acep.events.frames import to_table
from acep.explain.near_misses import NearMisses, near_misses
from acep.matches.bound_events import rows_of_events
from acep.matches.flat import layout_of
from acep.matches.matches import Matches
from acep.pages.document import document
from acep.pages.page_data import MOST_MATCHES, PageData, PageSource, page_data
from acep.pages.shown_columns import choose_matches
from acep.pattern.query_arguments import query_of
from acep.pattern.tree import Query
from acep.plan.schema import Schema
from acep.plots.images import image_form, write_image

__all__ = ["MOST_MISSES", "ResultPage", "check_page", "make_page", "result_page", "table_misses"]

MOST_MISSES = 50
HEIGHT = 860  # pixels of the page in a notebook


@dataclass(frozen=True, repr=False)
class ResultPage:
    """An interactive page of a result: ``html`` is the document, ``data`` what it shows. As the last line of a cell a
    notebook shows it."""

    data: PageData
    html: str

    def __repr__(self) -> str:
        return f"ResultPage({self.data.title})"

    def _repr_html_(self) -> str:
        # In a frame of its own, so that neither its styles and scripts reach the notebook nor those of the notebook it.
        style = f"width:100%;height:{HEIGHT}px;border:1px solid #d0d7de"
        return f'<iframe title="matches" sandbox="allow-scripts" style="{style}" srcdoc="{escape(self.html)}"></iframe>'

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a file ``.html``. Raises :class:`DataError` if that is not possible."""
        image_form(path, ("html",), "a page")
        write_image(path, self.html.encode("utf-8", "replace"))


def check_page(path: str | os.PathLike[str] | None = None) -> None:
    """Raise :class:`EngineError` if bokeh is not installed, :class:`DataError` for a file that is no ``.html``."""
    if path is not None:
        image_form(path, ("html",), "a page")
    check_installed("bokeh", "a page", "page")


def result_page(
    matches: Matches, path: str | os.PathLike[str] | None, *, query: Any = None, events: Any = None, misses: int = 10
) -> ResultPage:
    """Return the page of matches, see :meth:`acep.matches.matches.Matches.page`."""
    check_page(path)
    if isinstance(misses, bool) or not isinstance(misses, int) or not 0 <= misses <= MOST_MISSES:
        raise DataError(f"misses={misses!r} is not a number from 0 to {MOST_MISSES}", code="option_invalid")
    parsed_query = matches.query if query is None else query_of(query)
    if parsed_query is None:
        raise QueryError("these matches do not hold their query", hint="found.page(query=query)", code="option_invalid")
    chosen, step = choose_matches(matches, MOST_MATCHES)
    rows, reason = _rows(matches, events)
    near, no_misses = None, "none were looked for"
    if rows is not None and misses:
        near, no_misses = table_misses(to_table(rows), parsed_query, misses, matches.schema)
    page = make_page(
        PageSource(chosen, matches.report, len(matches), step, parsed_query, rows, reason, near, no_misses)
    )
    if path is not None:
        page.save(path)
    return page


def make_page(source: PageSource) -> ResultPage:
    """Return the page of a source."""
    data = page_data(source)
    return ResultPage(data, document(data, source.query))


def table_misses(table: Any, query: Query, limit: int, schema: Schema) -> tuple[NearMisses | None, str]:
    """Return the near misses among the events of a table, or why there are none."""
    try:
        return near_misses(table, query, limit, schema), ""
    except AcepError as error:
        return None, error.message


def _rows(matches: Matches, events: Any) -> tuple[Any, str]:
    """Return the rows of the events, or why there are none. Events that were given must be those of the matches."""
    if events is None and (layout_of(matches).composed or matches.rows is None):
        return None, (
            "the events of the matches are matches of the queries in FROM"
            if layout_of(matches).composed
            else "the events were not kept (page(events=...) takes them)"
        )
    try:
        return rows_of_events(matches, events), ""
    except AcepError as error:
        if events is not None:
            raise
        return None, error.message
