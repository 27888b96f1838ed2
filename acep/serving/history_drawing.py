"""Draw the graph of the history that a stream began with, for its live page."""

from __future__ import annotations

from typing import Any

from acep.errors import AcepError
from acep.plots.drawings import history_graph

__all__ = ["draw_history"]

MOST_VECTORS = 16
LARGEST = 400_000  # bytes


def draw_history(history: Any) -> tuple[bytes, str]:
    """Return the graph of a history as SVG, and a note on it; nothing, and why, if there is no graph."""
    try:
        svg = history_graph(history, MOST_VECTORS).svg.encode("utf-8", "replace")
    except AcepError as error:
        return b"", f"the history is not drawn: {error.message}"
    if len(svg) > LARGEST:
        return b"", "the graph of the history is too large to be drawn here; acep history --svg draws it"
    return svg, "the history that the stream began with"
