"""Line charts as SVG, side by side in one picture: plain text, readable on light and dark paper."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

__all__ = ["Panel", "chart"]

Points = Sequence[tuple[float, float]]

WIDTH, HEIGHT = 300.0, 210.0
LEFT, TOP, GAP, LINE = 46.0, 34.0, 44.0, 16.0
COLOURS = (
    *("#0969da", "#cf222e", "#1a7f37", "#9a6700", "#8250df", "#57606a", "#bf3989", "#1b7c83", "#bc4c00", "#4d2d00"),
    *("#54aeff", "#ff8182", "#6fdd8b", "#d4a72c", "#c297ff", "#afb8c1"),
)
STYLE = """
.paper{fill:#ffffff}
text{font:12px system-ui,sans-serif;fill:#1f2328}
.frame{fill:none;stroke:#59636e}
.grid{stroke:#d1d9e0}
@media (prefers-color-scheme: dark){
.paper{fill:#e6edf3}
}
"""


@dataclass(frozen=True)
class Panel:
    """One chart: ``series`` by name, each a list of (x, y); a name has one colour in all panels. ``low`` and ``high``
    bound the y axis (``high`` of ``None``: the greatest y)."""

    title: str
    series: Mapping[str, Points]
    x: str = ""
    log: bool = False
    low: float = 0.0
    high: float | None = 1.0


def chart(panels: Sequence[Panel], columns: int = 3) -> str:
    """Draw all panels, ``columns`` in a row, with the meaning of the colours below, as an SVG document.

    >>> picture = chart([Panel("recall", {"a": [(0.1, 0.5), (1.0, 1.0)]}, "work", log=True)])
    >>> picture.count("<polyline"), picture.startswith("<svg")
    (1, True)
    """
    names = list(dict.fromkeys(name for panel in panels for name in panel.series))
    rows = -(-len(panels) // columns)
    width = min(columns, len(panels)) * (WIDTH + LEFT + 14) + 10
    below = rows * (HEIGHT + TOP + GAP)
    keys, x, y = [], LEFT, below + 6
    for name in names:
        room = 34 + 7.2 * len(name)
        if x + room > width and x > LEFT:
            x, y = LEFT, y + LINE
        keys.append(f'<path d="M{x:.0f} {y:.0f}h18" stroke="{_colour(names, name)}" stroke-width="3"/>')
        keys.append(f'<text x="{x + 22:.0f}" y="{y + 4:.0f}">{escape(name)}</text>')
        x += room
    height = y + LINE
    drawn = []
    for number, panel in enumerate(panels):
        column, row = number % columns, number // columns
        translation = f"translate({column * (WIDTH + LEFT + 14) + LEFT:.0f} {row * (HEIGHT + TOP + GAP) + TOP:.0f})"
        drawn.append(f'<g transform="{translation}">\n' + "\n".join(_panel(panel, names)) + "\n</g>")
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}"'
    head += f' viewBox="0 0 {width:.0f} {height:.0f}"><style>{STYLE}</style>'
    paper = f'<rect class="paper" width="{width:.0f}" height="{height:.0f}"/>'
    return "\n".join([head, paper, *drawn, *keys, "</svg>"]) + "\n"


def _panel(panel: Panel, names: Sequence[str]) -> list[str]:
    xs = [x for points in panel.series.values() for x, _ in points]
    ys = [y for points in panel.series.values() for _, y in points]
    high = panel.high if panel.high is not None else max([*ys, panel.low + 1e-9])
    x_of = _scale(min(xs, default=0.0), max(xs, default=1.0), WIDTH, log=panel.log)

    def y_of(y: float) -> float:
        return HEIGHT * (1 - (min(max(y, panel.low), high) - panel.low) / ((high - panel.low) or 1))

    out = [f'<text x="0" y="-12" font-weight="bold">{escape(panel.title)}</text>']
    for step in range(6):
        y = panel.low + (high - panel.low) * step / 5
        out.append(f'<path class="grid" d="M0 {y_of(y):.1f}h{WIDTH:.0f}"/>')
        out.append(f'<text x="-6" y="{y_of(y) + 4:.1f}" text-anchor="end">{y:.3g}</text>')
    for x in _ticks(xs):
        out.append(f'<path class="grid" d="M{x_of(x):.1f} 0v{HEIGHT:.0f}"/>')
        out.append(f'<text x="{x_of(x):.1f}" y="{HEIGHT + 15:.0f}" text-anchor="middle">{x:.3g}</text>')
    out.append(f'<rect class="frame" width="{WIDTH:.0f}" height="{HEIGHT:.0f}"/>')
    out.append(f'<text x="{WIDTH / 2:.0f}" y="{HEIGHT + 31:.0f}" text-anchor="middle">{escape(panel.x)}</text>')
    for name, points in panel.series.items():
        pixels = [(x_of(x), y_of(y)) for x, y in sorted(points)]
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in pixels)
        colour = _colour(names, name)
        out.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="1.8"/>')
        out += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.6" fill="{colour}"/>' for x, y in pixels]
    return out


def _scale(x_min: float, x_max: float, size: float, *, log: bool) -> Callable[[float], float]:
    def transform(x: float) -> float:
        return math.log(x) if log else x

    low, high = (
        (transform(x_min), transform(x_max)) if x_max > x_min else (transform(x_min) - 0.5, transform(x_min) + 0.5)
    )
    return lambda x: size * (transform(x) - low) / (high - low)


def _ticks(xs: Sequence[float]) -> list[float]:
    distinct = sorted(set(xs))
    if len(distinct) <= 8:
        return distinct
    return [distinct[0] + (distinct[-1] - distinct[0]) * i / 5 for i in range(6)]


def _colour(names: Sequence[str], name: str) -> str:
    return COLOURS[list(names).index(name) % len(COLOURS)]
