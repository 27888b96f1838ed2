"""Print the history graph as text, and draw its most visited vectors as an SVG like Figure 3 of the 2016 paper.

Green boxes are match vectors, one row per state: (state, remaining window, error, time since last event) and the count
of visits. Times are shares of the window, since a history knows no unit of time. Red circles below are match bundles
in the order of time. Lines show where partial matches went from each vector; wider lines stand for more of them. The
SVG is written as plain text; names from the query are escaped.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

import numpy as np

from acep.display import clip_text, page, picture, preformat
from acep.learning.history.sums import SUMS
from acep.learning.trajectories.match_vectors import Grid, Ints

if TYPE_CHECKING:
    from acep.learning.history.graph import History

__all__ = ["history_listing", "history_page", "history_svg", "remaining_text"]

MAX_VECTORS = 24
_FEW, _LINES, _WIDEST = 12, 60, 160  # vectors that are drawn on a page, and the size of its text
_LETTER, _LINE, _MARGIN, _GAP, _DROP, _RADIUS = 7.5, 16.0, 24.0, 18.0, 74.0, 17.0
_STYLE = """
.paper{fill:#ffffff}
text{font:12px ui-monospace,Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:#1f2328;text-anchor:middle}
.note{fill:#59636e;text-anchor:start}
.vector{fill:#dafbe1;stroke:#1a7f37;stroke-width:1.3}
.bundle{fill:#ffcecb;stroke:#cf222e;stroke-width:1.3}
.edge{fill:none;stroke:#59636e}
.direct{fill:none;stroke:#cf222e}
@media (prefers-color-scheme: dark){
.paper{fill:#0d1117}
text{fill:#e6edf3}
.note{fill:#9198a1}
.vector{fill:#12261e;stroke:#3fb950}
.bundle{fill:#2d1216;stroke:#f85149}
.edge{stroke:#9198a1}
.direct{stroke:#f85149}
}
"""


def history_listing(history: History, limit: int = MAX_VECTORS) -> str:
    """Return the ``limit`` visited vectors, the overlap by state and the last ``limit`` bundles, as lines of text."""
    grid, vectors = history.grid, _most_visited(history, limit)
    window = "no window" if grid.span is None else f"a window of {grid.span:,} (ticks of time, or events)"
    visited, epochs = len(history.visited()), history.epochs
    visits_seen = float(history.sums()[:, SUMS.index("seen")].sum())
    lines = [
        f"states: {grid.states}; error levels: {grid.errors}; {window}; match vectors: {grid.vectors:,}",
        f"visits in the log: {_amount(visits_seen)}, of {visited:,} vectors; groups of events (epochs): {epochs:,}",
        f"trajectories still open: {len(history.open.made):,}; cut before their end: {history.cut:,}",
        f"{history.kind}: {history.targets.count:,}, of which the maps hold the last {len(_slots(history))}",
        "remaining and since: shares of the window that are left, and that have passed since the last event",
        "",
    ]
    heads = ("state", "remaining", "error", "since", "visits", "reached", "unknown", "touches", "later", "advanced")
    rows: list[tuple[str, ...]] = [heads]
    sums = history.sums(vectors)
    for vector, row in zip(vectors.tolist(), sums, strict=True):
        sums_by_name = dict(zip(SUMS, row.tolist(), strict=True))
        visits = sums_by_name["visits"]
        costs = [_amount(sums_by_name[name] / visits) for name in ("rest", "descendants")]
        shares = [_share(sums_by_name[name] / visits) for name in ("reached", "unknown", "advanced")]
        rows.append((*_place(history, vector), _amount(visits), *shares[:2], *costs, shares[2]))
    lines += _table(rows)
    if len(vectors) < visited:
        lines.append(f"and {visited - len(vectors):,} more")
    lines += _overlaps(history)
    rows = [(history.kind.removesuffix("s"), "first point", "from")]
    row_of, leads_to, weights = history.direct.triples()
    slots = _slots(history)
    for slot in slots[-limit:] if limit else []:
        in_slot = leads_to == slot
        leads = [(weight, vector) for vector, weight in zip(row_of[in_slot], weights[in_slot], strict=True)]
        leads.sort(key=lambda pair: (-pair[0], pair[1]))
        names = ["(" + ", ".join(_place(history, int(v))) + f") {_amount(float(w))}" for w, v in leads[:3]]
        remainder = [f"and {len(leads) - 3} more"] if len(leads) > 3 else []
        rows.append((str(history.bundles[slot]), str(history.points[slot]), "; ".join(names + remainder)))
    if len(rows) > 1:
        lines += ["", *_table(rows)]
    if limit < len(slots):
        lines.append(f"and {len(slots) - limit:,} before them")
    return "\n".join(line.rstrip() for line in lines) + "\n"


def history_page(history: History) -> str:
    """Return a history as HTML for a notebook: its most visited vectors, listed and drawn."""
    lines = history_listing(history).splitlines()
    text = "\n".join(clip_text(line, _WIDEST) for line in lines[:_LINES])
    note = f"and {len(lines) - _LINES:,} more lines" if len(lines) > _LINES else ""
    drawing = picture(
        history_svg(history, _FEW), "The graph is too large to be drawn here; acep history --svg draws it."
    )
    return page(repr(history), preformat(text, _LINES * _WIDEST), drawing, note=note)


def history_svg(history: History, limit: int = MAX_VECTORS) -> str:
    """Return an SVG document of the ``limit`` visited vectors, their edges, and the last bundles that they lead to.

    Edges between vectors are drawn if the history has them.
    """
    vectors = _most_visited(history, limit)
    rows: dict[int, list[int]] = defaultdict(list)
    states = history.grid.parts(vectors).state.tolist()
    for vector, state in sorted(zip(vectors.tolist(), states, strict=True), key=lambda pair: _order(history, pair[0])):
        rows[state].append(vector)
    visits = dict(zip(vectors.tolist(), history.sums(vectors)[:, SUMS.index("visits")], strict=True))
    labels = {v: ("(" + ", ".join(_place(history, v)) + ")", f"count {_amount(visits[v])}") for v in visits}
    wide = {v: max(map(_width, label)) + 14 for v, label in labels.items()}
    leads = history.direct.triples()
    is_drawn = np.isin(leads[0], vectors)
    slots = [slot for slot in _slots(history) if slot in set(leads[1][is_drawn].tolist())][-limit:]
    bundle = {slot: str(history.bundles[slot]) for slot in slots}
    lengths = [sum(wide[v] + _GAP for v in row) for row in rows.values()]
    lengths.append(sum(max(2 * _RADIUS, _width(bundle[s])) + _GAP for s in slots))
    width = max([*lengths, 300.0]) + 2 * _MARGIN
    centre: dict[tuple[str, int], tuple[float, float]] = {}
    y = _MARGIN + 56  # below the title, with room for the lines between vectors of the first row
    for state in sorted(rows):
        x = (width - sum(wide[v] + _GAP for v in rows[state])) / 2
        for vector in rows[state]:
            centre["v", vector] = (x + (wide[vector] + _GAP) / 2, y)
            x += wide[vector] + _GAP
        y += _DROP
    x = (width - lengths[-1]) / 2
    for slot in slots:
        slot_width = max(2 * _RADIUS, _width(bundle[slot])) + _GAP
        centre["b", slot] = (x + slot_width / 2, y)
        x += slot_width
    height = y + _RADIUS + _MARGIN + _LINE
    heads = f'width="{_n(width)}" height="{_n(height)}" viewBox="0 0 {_n(width)} {_n(height)}"'
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" {heads} role="img">', "<title>history of match vectors</title>"]
    parts += [f"<style>{_STYLE}</style>", f'<rect class="paper" width="{_n(width)}" height="{_n(height)}"/>']
    title = f"{len(vectors)} of {len(history.visited())} match vectors: (state, remaining, error, since)"
    parts.append(f'<text class="note" x="{_n(_MARGIN)}" y="{_n(_MARGIN)}">{title}</text>')
    parts += _lines(history, centre)
    for vector, (x, y) in ((v, centre["v", v]) for v in labels):
        box = f'x="{_n(x - wide[vector] / 2)}" y="{_n(y - 20)}" width="{_n(wide[vector])}" height="40" rx="5"'
        parts.append(f'<rect class="vector" {box}/>')
        parts += [_text(x, y - 4 + _LINE * line_index, line) for line_index, line in enumerate(labels[vector])]
    for slot in slots:
        x, y = centre["b", slot]
        parts += [
            f'<circle class="bundle" cx="{_n(x)}" cy="{_n(y)}" r="{_n(_RADIUS)}"/>',
            _text(x, y + 4, bundle[slot]),
        ]
    note = f"{history.kind} in the order of time, the last {len(slots)} of {history.targets.count}"
    parts.append(f'<text class="note" x="{_n(_MARGIN)}" y="{_n(height - _MARGIN / 2)}">{note}</text>')
    return "\n".join([*parts, "</svg>", ""])


def _lines(history: History, centre: dict[tuple[str, int], tuple[float, float]]) -> Iterator[str]:
    """Yield the edges between the drawn vertices; heavier edges are wider."""
    kinds = [(history.direct.triples(), "direct", "b")]
    if history.edges is not None:
        kinds.insert(0, (history.edges.triples(), "edge", "v"))
    for (sources, targets, weights), style, ending in kinds:
        heaviest = float(weights.max(initial=0.0)) or 1.0
        for source, target, weight in zip(sources.tolist(), targets.tolist(), weights.tolist(), strict=True):
            if ("v", source) not in centre or (ending, target) not in centre:
                continue
            (x, y), (to, below) = centre["v", source], centre[ending, target]
            if (x, y) == (to, below):
                path = f"M{_n(x - 8)} {_n(y - 20)}c-8 -22 24 -22 16 0"
            elif y == below:
                path = f"M{_n(x)} {_n(y - 20)}Q{_n((x + to) / 2)} {_n(y - 20 - 26)} {_n(to)} {_n(y - 20)}"
            else:
                down = 1 if below > y else -1
                foot = below - down * (20 if ending == "v" else _RADIUS)
                path = f"M{_n(x)} {_n(y + 20 * down)}C{_n(x)} {_n(y + 42 * down)} {_n(to)} {_n(foot - 22 * down)}"
                path += f" {_n(to)} {_n(foot)}"
            stroke = 0.6 + 2.4 * (weight / heaviest) ** 0.5
            yield f'<path class="{style}" stroke-width="{stroke:.2f}" d="{path}"/>'


def _most_visited(history: History, limit: int) -> Ints:
    vectors = history.visited()
    visits = history.sums(vectors)[:, SUMS.index("visits")]
    most_visited: Ints = vectors[np.lexsort((vectors, -visits))[:limit]]
    return most_visited


def _slots(history: History) -> list[int]:
    """Return the slots that hold bundles, ordered by first match point."""
    slots = np.flatnonzero(history.bundles >= 0)
    return [int(s) for s in slots[np.lexsort((history.bundles[slots], history.points[slots]))]]


def _order(history: History, vector: int) -> tuple[int, ...]:
    """Return a sort key: by state, then the longest remaining window first."""
    state, error, remaining, since, feature = (int(part) for part in history.grid.parts(vector))
    return state, -remaining, since, error, feature


def _place(history: History, vector: int) -> tuple[str, str, str, str]:
    """Return state (with the feature), remaining window, error level and since, in the order of Definition 4."""
    state, error, remaining, since, feature = (int(part) for part in history.grid.parts(vector))
    name = f"{state} {history.names[state]}" if state < len(history.names) and history.names[state] else str(state)
    if history.grid.features > 1:
        name += f" f{feature}"
    return _plain(name), remaining_text(history.grid, remaining), str(error), _since_text(history.grid, since)


def remaining_text(grid: Grid, remaining: int) -> str:
    """Return the shares of the window that a bin of the remaining window stands for.

    >>> remaining_text(Grid(states=3, errors=2, span=100), 7)
    '87-100%'
    """
    if grid.span is None:
        return "-"
    return f"{100 * remaining // grid.windows}-{100 * (remaining + 1) // grid.windows}%"


def _since_text(grid: Grid, since: int) -> str:
    """Return the shares of the window that a bin of the time since the last event stands for."""
    if grid.span is None:
        return "-"
    bounds = [f"{100 / 4**n:.2g}%" for n in range(grid.waits - 1, 0, -1)]
    if since == 0:
        return f"<{bounds[0]}" if bounds else "any"
    return f">={bounds[-1]}" if since == len(bounds) else f"{bounds[since - 1].removesuffix('%')}-{bounds[since]}"


def _overlaps(history: History) -> list[str]:
    rows: list[tuple[str, ...]] = [("state", "overlap")]
    for state, share in enumerate(history.overlap()):
        if not np.isnan(share):
            name = history.names[state] if state < len(history.names) else ""
            rows.append((_plain(f"{state} {name}".strip()), _share(float(share))))
    return ["", *_table(rows)] if len(rows) > 1 else []


def _table(rows: list[tuple[str, ...]]) -> list[str]:
    """Return table lines, the head first; the first column and text columns are left-aligned, numbers right-aligned."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    words = [not re.fullmatch(r"[-\d.,%e+<>=]*", row) for row in (rows[1] if len(rows) > 1 else rows[0])]
    return [
        "  ".join(
            cell.ljust(width) if word or column_index == 0 else cell.rjust(width)
            for column_index, (cell, width, word) in enumerate(zip(row, widths, words, strict=True))
        )
        for row in rows
    ]


def _amount(value: float) -> str:
    return f"{value:,.0f}" if value == round(value) or value >= 1000 else f"{value:.2f}"


def _share(value: float) -> str:
    return f"{100 * value:.1f}%"


def _plain(name: str) -> str:
    """Return a name for one line: unprintable characters replaced, at most 28 characters."""
    printable = "".join(c if c.isprintable() else "\ufffd" for c in name)
    return printable if len(printable) <= 28 else printable[:27] + "…"


def _text(x: float, y: float, line: str) -> str:
    return f'<text x="{_n(x)}" y="{_n(y)}">{escape(line)}</text>'


def _n(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _width(line: str) -> float:
    return _LETTER * sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line)
