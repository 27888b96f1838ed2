"""Show drawings that acep makes as SVG itself: the automaton of a query, and the graph of a history."""

from __future__ import annotations

import base64
import os
from dataclasses import dataclass
from typing import Any

from acep.errors import DataError
from acep.learning.history.drawing import MAX_VECTORS, history_svg
from acep.pattern.query_arguments import query_of
from acep.plots.images import FORMS, as_image, figure_of, image_form, write_image
from acep.plots.vectors import read_graph

__all__ = ["SvgPicture", "automaton", "history_graph", "save"]


@dataclass(frozen=True, repr=False)
class SvgPicture:
    """A drawing as the text of an SVG document, ``svg``. As the last line of a cell a notebook shows it."""

    svg: str

    def __repr__(self) -> str:
        return f"SvgPicture({len(self.svg):,} characters)"

    def _repr_html_(self) -> str:
        # As an image, so that the styles of the drawing do not reach the page around it.
        data = base64.b64encode(self.svg.encode("utf-8", "replace")).decode()
        return f'<img alt="drawing" src="data:image/svg+xml;base64,{data}">'

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the drawing to a file ``.svg``. Raises :class:`DataError` if that is not possible."""
        image_form(path, ("svg",), "this drawing")
        write_image(path, self.svg.encode("utf-8", "replace"))


def automaton(query: Any) -> SvgPicture:
    """Return a drawing of the automaton of a query: the one of ``acep explain --svg``. It needs no matplotlib.

    Raises :class:`QueryError` if the query cannot be read or has a set that is too large to be unrolled.

    >>> automaton("PATTERN SEQ(A a, B b) WITHIN 5").svg.startswith("<svg")
    True
    """
    from acep.explain.automaton_svg import query_svg

    return SvgPicture(query_svg(query_of(query)))


def history_graph(history: Any, most: int = MAX_VECTORS) -> SvgPicture:
    """Return a drawing of the graph of a history: its ``most`` visited match vectors, the bundles that were reached
    from them, and the lines between. It is the one of ``acep history --svg``, and needs no matplotlib.

    ``history``: what :func:`acep.learn` returned, its file, or an :class:`acep.learning.history.graph.History`. Raises
    :class:`SnapshotError` or :class:`DataError` if it is none.

    >>> import acep
    >>> learned = acep.learn({"ts": list(range(60)), "type": list("abcab" * 12)}, acep.regex("ab", within=3))
    >>> history_graph(learned).svg.startswith("<svg")
    True
    """
    if isinstance(most, bool) or not isinstance(most, int) or not 1 <= most <= 1_000:
        raise DataError(f"most={most!r} is not a number of match vectors from 1 to 1,000", code="option_invalid")
    return SvgPicture(history_svg(read_graph(history), most))


def save(plot: Any, path: str | os.PathLike[str]) -> None:
    """Write a plot to a file ``.svg`` or ``.png``: Axes or a Figure of matplotlib, or a drawing (as ``.svg`` only).

    The texts of an SVG stay texts, and the same plot gives the same file. No backend and no display is needed. Raises
    :class:`DataError` for anything else, and if the file cannot be written.

    >>> import acep, pathlib, tempfile
    >>> found = acep.match({"ts": [1, 2], "type": ["a", "b"]}, acep.regex("ab", within=5))
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "matches.svg"
    >>> save(acep.plots.timeline(found), file)
    >>> "1 match" in file.read_text()
    True
    """
    if isinstance(plot, SvgPicture):
        plot.save(path)
        return
    form = image_form(path, FORMS, "a plot")
    write_image(path, as_image(figure_of(plot), form))
