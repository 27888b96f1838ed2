"""Put the plots of a query's matches together: one page of HTML that needs nothing else, or one picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from acep.matches.matches import Match
from acep.plots.around_match import Series
from acep.plots.canvas import AS_WRITTEN, axes_of, label_text
from acep.plots.images import as_image, figure_of
from acep.plots.over_series import draw_series
from acep.plots.time_line import timeline

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["CONTEXT", "MOST_BYTES", "MOST_SERIES", "Drawn", "as_file"]

MOST_BYTES = 1_000_000
"""The most bytes of a page."""
MOST_SERIES = 4
"""The most matches that are drawn over a series."""
CONTEXT = 0.5  # how much is shown before and after a match, as a share of its length
LONGEST = 4_000  # characters of a fact
KEYS = 40
NOTES = 4_000  # bytes kept free for the names of plots that are left out

STYLE = """
body{font:14px system-ui,sans-serif;color:#1f2328;background:#fff;max-width:64em;margin:2em auto;padding:0 1em}
th{text-align:left;vertical-align:top;padding:.2em 1em .2em 0;font-weight:600}
td{white-space:pre-wrap;overflow-wrap:anywhere}
figure{margin:1em 0}svg{max-width:100%;height:auto}
"""
# Nothing is loaded from anywhere, whatever is in the page.
POLICY = "default-src 'none'; style-src 'unsafe-inline'"


@dataclass(frozen=True)
class Drawn:
    """The content of a page: ``facts`` (names and texts), some ``matches`` of ``total``, and matches over the column
    ``value`` with the events around each; ``ts`` names the time. ``heading`` is for a picture, which has no facts."""

    heading: str
    facts: Sequence[tuple[str, str]]
    matches: Sequence[Match]
    total: int
    ts: str
    value: str = ""
    series: Sequence[tuple[Match, Series]] = ()


def as_file(drawing: Drawn, form: str) -> bytes:
    """Return the bytes of a file: ``"html"``, ``"svg"`` or ``"png"``.

    A page of HTML has at most 1,000,000 bytes: a plot for which there is no room is left out, and the page says so.
    """
    return _page(drawing) if form == "html" else as_image(_picture(drawing), form)


def _picture(drawing: Drawn) -> Figure:
    """Return all plots in one figure, one below the other."""
    from matplotlib.figure import Figure

    series = drawing.series[:MOST_SERIES]
    first = figure_of(timeline(drawing.matches, of=drawing.total, ts=drawing.ts, most_keys=KEYS)).get_size_inches()[1]
    heights = [float(first), *(2.6 for _ in series)]
    figure = Figure(figsize=(8.5, sum(heights) + 0.4), layout="constrained")
    panels: Any = figure.subplots(len(heights), 1, height_ratios=heights, squeeze=False)
    timeline(drawing.matches, of=drawing.total, ts=drawing.ts, most_keys=KEYS, ax=panels[0, 0])
    for panel, (match, around) in zip(panels[1:, 0], series, strict=True):
        draw_series(around, match, drawing.value, drawing.ts, CONTEXT, panel)
    figure.suptitle(label_text(drawing.heading, 110), x=0.01, ha="left", fontsize=9, **AS_WRITTEN)
    return figure


def _page(drawing: Drawn) -> bytes:
    rows = "".join(
        f"<tr><th>{escape(name)}</th><td>{escape(_shorten(text))}</td></tr>\n" for name, text in drawing.facts
    )
    plots = [("Matches over time", timeline(drawing.matches, of=drawing.total, ts=drawing.ts, most_keys=KEYS))]
    for match, around in drawing.series[:MOST_SERIES]:
        axes = draw_series(around, match, drawing.value, drawing.ts, CONTEXT, axes_of(None, height=2.8))
        plots.append((f"A match over {label_text(drawing.value)}", axes))
    parts = [
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
        f"<title>{escape(label_text(drawing.heading, 110))}</title><style>{STYLE}</style></head>",
        f"<body><h1>acep match</h1>\n<table>\n{rows}</table>",
    ]
    size = len("\n".join(parts).encode("utf-8", "replace"))
    for number, (heading, axes) in enumerate(plots):
        part = f'<h2>{escape(heading)}</h2>\n<figure id="plot-{number}">{_inline(figure_of(axes))}</figure>'
        part_size = len(part.encode("utf-8", "replace"))
        if size + part_size > MOST_BYTES - NOTES:
            parts.append(f"<p>{escape(heading)}: left out, as a page has at most {MOST_BYTES:,} bytes.</p>")
            continue
        parts.append(part)
        size += part_size
    return "\n".join([*parts, "</body></html>\n"]).encode("utf-8", "replace")


def _inline(figure: Figure) -> str:
    """Return a figure as an ``svg`` element for a page, without what stands before it in a file."""
    text = as_image(figure, "svg").decode()
    return text[text.index("<svg") :].strip()


def _shorten(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
