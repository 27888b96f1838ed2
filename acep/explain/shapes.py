"""Write boxes and arrows as SVG text, at the places that :mod:`acep.explain.layers` has computed."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from acep.display import marked_breaks
from acep.explain.layers import Box, Drawing, Link

__all__ = ["LINE", "Arrow", "Shape", "number", "picture", "safe", "text", "text_width"]

LINE = 16.0
"""The height of a line of text, in SVG units."""

_LETTER = 0.62 * 13


@dataclass(frozen=True)
class Shape:
    """A box: its lines of text, whether it is round, and whether the pattern may end there."""

    lines: tuple[str, ...]
    round: bool
    ends: bool

    @property
    def size(self) -> Box:
        """Return the width and height of the shape."""
        width = max(text_width(line) for line in self.lines) + 16
        height = len(self.lines) * LINE + 10
        return Box(max(width - 8, 30), 30) if self.round else Box(max(width, height), height)


@dataclass(frozen=True)
class Arrow:
    """A link: its ends, the lines of its label, and its class (line, empty or missing)."""

    source: int
    target: int
    lines: tuple[str, ...]
    kind: str

    @property
    def link(self) -> Link:
        """Return the ends and the size of the label, for the layout."""
        width = max((text_width(line) for line in self.lines), default=0.0)
        return Link(self.source, self.target, Box(width, len(self.lines) * LINE))


def picture(shapes: Sequence[Shape], arrows: Sequence[Arrow], drawing: Drawing, *, marked: bool = False) -> list[str]:
    """Return the SVG elements of a drawing, with an arrow from outside into the first shape. ``marked``: each shape is
    a group with its number as ``data-state``, and each arrow one with those of its ends as ``data-arc``."""
    out = []
    for i, arrow in enumerate(arrows):
        out += [f'<g data-arc="{arrow.source}-{arrow.target}">'] if marked else []
        loop = arrow.source == arrow.target
        route = drawing.routes[i]
        out.append(_loop(*route[0], arrow.kind) if loop else _route(route, arrow.kind, i in drawing.backward))
        x, y = drawing.labels[i]
        for n, line in enumerate(reversed(arrow.lines)):
            style = "missing-text" if line.startswith("+") or (arrow.kind == "missing" and not loop) else ""
            out.append(text(x, y - 5 - n * LINE, line, style, middle=True))
        out += ["</g>"] if marked else []
    x, y = drawing.centres[0]
    start = x - shapes[0].size.width / 2
    out.append(_route(((start - 22, start - 20, y), (start, start, y)), "line", False))
    for i, (shape, (x, y)) in enumerate(zip(shapes, drawing.centres, strict=True)):
        box = _box(shape, x, y)
        out += [f'<g data-state="{i}">', *box, "</g>"] if marked else box
    return out


def _box(shape: Shape, x: float, y: float) -> list[str]:
    size = shape.size
    out = []
    for inset, style in ((0.0, "box"), (3.5, "inner"))[: 2 if shape.ends else 1]:
        width, height = size.width - 2 * inset, size.height - 2 * inset
        radius = height / 2 if shape.round else max(8 - inset, 2)
        corner = f'x="{number(x - width / 2)}" y="{number(y - height / 2)}"'
        extent = f'width="{number(width)}" height="{number(height)}" rx="{number(radius)}"'
        out.append(f'<rect class="{style}" {corner} {extent}/>')
    top = y - (len(shape.lines) - 1) * LINE / 2 + 4.5
    out += [
        text(x, top + n * LINE, line, "missing-text" if line.startswith("ends +") else "", middle=True)
        for n, line in enumerate(shape.lines)
    ]
    return out


def _route(route: Sequence[tuple[float, float, float]], kind: str, backward: bool) -> str:
    """Draw a curve that is level along each stretch, with its arrow head at the end of the last one."""
    (start, x, y), *stretches = route
    toward = -1 if backward else 1
    *_, (first, last, level) = stretches
    # The line stops inside the head; if the last stretch is shorter than that, the bend stops there.
    stop = last - 6 * toward
    stretches[-1] = (first, stop, level) if (stop - first) * toward > 0 else (stop, stop, level)
    path = [f"M{number(start)} {number(y)}H{number(x)}"]
    for start, end, level in stretches:
        bend = (x + start) / 2
        path.append(f"C{number(bend)} {number(y)} {number(bend)} {number(level)} {number(start)} {number(level)}")
        path.append(f"H{number(end)}")
        x, y = end, level
    head = f"M{number(last)} {number(y)}l{-8 * toward} -4v8z"
    return f'<path class="{kind}" d="{"".join(path)}"/><path class="{_head(kind)}" d="{head}"/>'


def _loop(left: float, right: float, y: float, kind: str) -> str:
    up = number(y - 26)
    bend = f"C{number(left - 8)} {up} {number(right + 8)} {up} {number(right)} {number(y - 6)}"
    head = f"M{number(right)} {number(y)}l-4 -8h8z"
    line = f'<path class="{kind}" d="M{number(left)} {number(y)}{bend}"/>'
    return f'{line}<path class="{_head(kind)}" d="{head}"/>'


def _head(kind: str) -> str:
    return "head" if kind == "line" else f"{kind}-head"


def text(x: float, y: float, line: str, style: str = "", *, middle: bool = False) -> str:
    """Return a line of text with its baseline at ``y``, that begins at ``x`` or is centred there."""
    named = f' class="{style}"' if style else ""
    anchor = ' text-anchor="middle"' if middle else ""
    words = safe(marked_breaks(line, quoted=False))
    return f'<text x="{number(x)}" y="{number(y)}"{named}{anchor} xml:space="preserve">{words}</text>'


def safe(words: str) -> str:
    """Escape a text, and replace the characters that XML does not allow."""
    return escape(re.sub(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "\ufffd", words))


def number(value: float) -> str:
    """Return the text of a coordinate."""
    return f"{value:.1f}".removesuffix(".0")


def text_width(line: str) -> float:
    """Estimate the width of a line of text."""
    return _LETTER * sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line)
