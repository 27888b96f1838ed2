"""Show a query as HTML for a notebook: its text, and the drawing of its automaton if that is small."""

from __future__ import annotations

from dataclasses import replace

from acep.display import clip_text, clipped_lines, marked_breaks, page, picture, preformat
from acep.errors import AcepError
from acep.explain.automaton_svg import query_svg
from acep.pattern.automata import Automaton
from acep.pattern.printing import canonical
from acep.pattern.tree import Query
from acep.pattern.walk import positions

__all__ = ["query_page"]

MAX_DRAWN = 24  # letters, or arcs of a hand-written automaton, that are drawn
LARGE = "The automaton is too large to be drawn here; acep explain --svg draws it."


def query_page(source: Query | Automaton) -> str:
    """Return a query or a hand-written automaton as HTML.

    >>> from acep.pattern.text.letters import regex
    >>> query_page(regex("ab", within=5)).count("data:image/svg+xml")
    1
    """
    query = source.query if isinstance(source, Automaton) else source
    title, text = "Automaton" if query.graph is not None else "Query", canonical(query)
    return page(
        title,
        preformat(query.text if query.text.strip() else text),
        _drawing(query),
        note=clip_text(marked_breaks(text), 300),
    )


def _drawing(query: Query) -> str:
    size = len(query.graph.arcs) if query.graph is not None else positions(query.pattern)
    if size > MAX_DRAWN:
        return page("", note=LARGE)
    try:
        return picture(query_svg(replace(query, text=clipped_lines(marked_breaks(query.text), 300))), LARGE)
    except AcepError:  # a set with too many items
        return page("", note=LARGE)
