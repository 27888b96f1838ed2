"""Make axes without global state, and write texts on them as they are."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from acep.errors import DataError
from acep.plots.images import check_matplotlib

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "AS_WRITTEN",
    "COLOURS",
    "GREY",
    "axes_of",
    "colours_of",
    "label_text",
    "legend",
    "set_title",
]

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7a5195", "#3b3b3b")
"""Colours that people with colour blindness can tell apart (Okabe and Ito), in the order of use."""

GREY = "#57606a"

AS_WRITTEN: dict[str, Any] = {"parse_math": False, "usetex": False}
"""How matplotlib takes a text that comes from a user: ``$`` begins no formula."""

LONGEST = 40  # characters of a label
MOST_ENTRIES = 8  # of a legend
_BREAK = re.compile(r"[\r\n]+")


def axes_of(ax: object, height: float = 3.6, width: float = 8.0) -> Axes:
    """Return the axes that a user gave, or those of a new figure of a size in inches, which no backend knows of.

    Raises :class:`DataError` for anything else, :class:`EngineError` without matplotlib.

    >>> axes_of(None).get_figure().get_size_inches().tolist()
    [8.0, 3.6]
    """
    check_matplotlib()
    from matplotlib.axes import Axes

    from acep.plots.shown_axes import ShownAxes, ShownFigure

    if ax is None:
        return ShownFigure(figsize=(width, height), layout="constrained").add_subplot(axes_class=ShownAxes)
    if not isinstance(ax, Axes):
        raise DataError(
            f"ax= takes Axes of matplotlib, not {type(ax).__name__}",
            hint="leave it out for a new figure",
            code="option_invalid",
        )
    return ax


def label_text(value: object, longest: int = LONGEST) -> str:
    r"""Return a value as a text of one line, without characters that cannot be shown, and at most so long; a character
    of East Asia is as wide as two. A blank stands for a line break and the blanks around it.

    >>> label_text("a\n  b\ud800"), label_text("x" * 50, 5), label_text("東京東京", 5)
    ('a b\ufffd', 'xxxx…', '東京…')
    """
    text = str(value)
    if len(lines := _BREAK.split(text[: 100 * longest])) > 1:
        text = " ".join(filter(None, map(str.strip, lines)))
    characters = ["\ufffd" if not c.isprintable() else c for c in text[: longest + 1]]
    widths = [2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in characters]
    if sum(widths) <= longest:
        return "".join(characters)
    while characters and sum(widths) > longest - 1:
        characters.pop()
        widths.pop()
    return "".join([*characters, "…"])


def set_title(ax: Axes, title: str, notes: Sequence[str] = ()) -> None:
    """Write a title, and below it notes in smaller letters on what is left out of the plot."""
    words = "; ".join(notes)
    ax.set_title("\n".join(filter(None, (label_text(title, 80), words))), loc="left", fontsize=10, **AS_WRITTEN)


def legend(ax: Axes, entries: Sequence[tuple[Any, object]], title: str = "") -> None:
    """Explain artists to the right of the axes: pairs of an artist and its name, at most eight."""
    if not entries:
        return
    shown_entries = entries[:MOST_ENTRIES]
    names = [label_text(name, 24) for _, name in shown_entries]
    if len(entries) > len(shown_entries):
        title = f"{title} ({len(shown_entries)} of {len(entries)})".strip()
    # matplotlib leaves names out that begin with an underscore.
    names = [f" {name}" if name.startswith("_") else name or " " for name in names]
    placement: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0), "borderaxespad": 0.0}
    box = ax.legend([artist for artist, _ in shown_entries], names, fontsize=8, frameon=False, **placement)
    box.set_title(title)
    box.get_title().set_fontsize(8)
    for text in [*box.get_texts(), box.get_title()]:
        text.set_parse_math(False)
        text.set_usetex(False)


def colours_of(values: Sequence[float]) -> list[str]:
    """Return a colour for each of some levels in rising order: from dark blue over green to yellow, or blue alone.

    >>> colours_of([0]), colours_of([0, 1, 2])
    (['#0072b2'], ['#440154', '#238a8d', '#dfe318'])
    """
    check_matplotlib()
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    if len(values) < 2:
        return [COLOURS[0]] * len(values)
    scale = colormaps["viridis"]
    return [to_hex(scale(0.95 * number / (len(values) - 1))) for number in range(len(values))]
