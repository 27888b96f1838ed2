"""Turn figures of matplotlib into SVG or PNG, and write them to files."""

from __future__ import annotations

import io
import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from acep.errors import DataError, check_installed

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["FORMS", "as_image", "check_matplotlib", "figure_of", "image_form", "write_image"]

FORMS = ("svg", "png")
DPI = 110


def check_matplotlib() -> None:
    """Raise :class:`EngineError` if matplotlib is not installed."""
    check_installed("matplotlib", "a plot", "plot")


def figure_of(plot: object) -> Figure:
    """Return the figure of a plot, which is Axes or a Figure. Raises :class:`DataError` for anything else."""
    check_matplotlib()
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

    figure: Any = plot.figure if isinstance(plot, Axes) else plot
    while isinstance(figure, SubFigure):
        figure = figure.figure
    if not isinstance(figure, Figure):
        raise DataError(f"a plot is Axes or a Figure of matplotlib, not {type(plot).__name__}", code="option_invalid")
    return figure


def as_image(figure: Figure, form: str) -> bytes:
    """Return a figure as the bytes of a file: ``"svg"``, with its texts as texts, or ``"png"``.

    The same figure gives the same SVG each time.
    """
    from matplotlib import rc_context

    out = io.BytesIO()
    settings: Any = {"svg.fonttype": "none", "svg.hashsalt": "acep"}
    about = {"Date": None, "Creator": None} if form == "svg" else {"Software": None}
    with rc_context(settings), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")  # a name may be in letters that the font lacks
        warnings.filterwarnings("ignore", message="constrained_layout not applied")  # or too long for small axes
        figure.savefig(out, format=form, dpi=DPI, bbox_inches="tight", metadata=about)
    return out.getvalue()


def image_form(path: object, forms: Sequence[str], what: str) -> str:
    """Return the form that the name of a file has as its suffix. Raises :class:`DataError` for another suffix.

    >>> image_form("plot.SVG", FORMS, "a plot")
    'svg'
    """
    if not isinstance(path, str | os.PathLike) or not isinstance(os.fspath(path), str):
        raise DataError(f"{what} is written to a path, not {type(path).__name__}", code="option_invalid")
    form = Path(path).suffix.lower().removeprefix(".")
    if form not in forms:
        hint = f"give the file a name that ends in {' or '.join(f'.{suffix}' for suffix in forms)}"
        raise DataError(
            f"`{os.fspath(path)}` does not say how {what} is to be written", hint=hint, code="option_invalid"
        )
    return form


def write_image(path: str | os.PathLike[str], data: bytes) -> None:
    """Write the bytes of a plot to a file. Raises :class:`DataError` if that is not possible."""
    try:
        Path(path).write_bytes(data)
    except (OSError, ValueError) as bad:
        why = getattr(bad, "strerror", None) or bad
        raise DataError(f"`{os.fspath(path)}` cannot be written: {why}", code="file_write") from None
