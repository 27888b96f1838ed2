"""Draw the automaton of a query as SVG: the Thompson automaton, and the arcs that are executed.

The result is SVG text with colours for light and dark backgrounds. All names from the query are escaped.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from acep.automaton.arcs import Accept, Arc, Arcs, State, compose
from acep.automaton.thompson import Costs, Edge, Gap, Thompson, build
from acep.display import marked_breaks
from acep.errors import QueryError
from acep.explain.automaton_text import types_text
from acep.explain.layers import place
from acep.explain.shapes import LINE, Arrow, Shape, number, picture, safe, text, text_width
from acep.pattern.printing import arc_text
from acep.pattern.tree import Query, StateGraph

__all__ = ["arcs_svg", "automaton_svg", "query_svg"]

Picture = tuple[list[Shape], list[Arrow]]

_MARGIN = 24.0
_EDGE = 6.0
_LONGEST = 28
_LONGEST_ARC = 60
_WIDEST = 110
_STYLE = """
.paper{fill:#ffffff}
text{font:13px ui-monospace,Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:#1f2328}
.title{font-weight:bold}
.note{fill:#59636e}
.box{fill:#f6f8fa;stroke:#59636e;stroke-width:1.3}
.inner{fill:none;stroke:#59636e;stroke-width:1}
.line{fill:none;stroke:#1f2328;stroke-width:1.3}
.head{fill:#1f2328}
.empty{fill:none;stroke:#818b98;stroke-width:1}
.empty-head{fill:#818b98}
.missing{fill:none;stroke:#bc4c00;stroke-width:1.2;stroke-dasharray:5 3}
.missing-head,.missing-text{fill:#bc4c00}
@media (prefers-color-scheme: dark){
.paper{fill:#0d1117}
text{fill:#e6edf3}
.note{fill:#9198a1}
.box{fill:#161b22;stroke:#9198a1}
.inner{stroke:#9198a1}
.line{stroke:#e6edf3}
.head{fill:#e6edf3}
.empty{stroke:#7d8590}
.empty-head{fill:#7d8590}
.missing{stroke:#f0883e}
.missing-head,.missing-text{fill:#f0883e}
}
"""
_LEGEND = "dashed: letters are missing, at the cost after the +; double border: the pattern may end there"


def query_svg(query: Query) -> str:
    """Return the automaton of a query as an SVG document.

    Raises :class:`QueryError` if a set has too many items to be unrolled.

    >>> from acep.pattern.text.letters import regex
    >>> picture = query_svg(regex("a(b|'<')", within=5))
    >>> picture.startswith("<svg"), "&lt;" in picture
    (True, True)
    """
    if query.graph is not None:
        heading = "States, and arcs with their fence, their transfer and the variable that they bind"
        title = f"automaton from {query.graph.start} to {', '.join(query.graph.final)}"
        return _document(title, ((heading, _graph(query.graph)),), "double border: the automaton accepts there")
    automaton = build(query)
    return automaton_svg(automaton, compose(automaton), title=query.text)


def automaton_svg(automaton: Thompson, arcs: Arcs, *, title: str = "") -> str:
    """Return a Thompson automaton and its arcs as an SVG document, below the title."""
    pictures = (
        ("Thompson automaton: places, and edges that bind one letter or none", _thompson(automaton)),
        ("Arcs: a state for each letter bound last; each arc binds the letter it leads to", _arcs(arcs, automaton)),
    )
    return _document(title, pictures, _LEGEND)


def arcs_svg(query: Query) -> str:
    """Return the states and arcs of a query alone, for a light background. Each state is a group of elements with its
    number as ``data-state``, each arc one with the numbers of its ends, such as ``0-1``, as ``data-arc``.

    Raises :class:`QueryError` if a set has too many items to be unrolled.

    >>> from acep.pattern.text.letters import regex
    >>> drawing = arcs_svg(regex("ab", within=5))
    >>> drawing.count("data-state="), drawing.count("data-arc=")
    (3, 2)
    """
    if query.graph is not None:
        shapes, arrows = _graph(query.graph)
    else:
        automaton = build(query)
        shapes, arrows = _arcs(compose(automaton), automaton)
    drawing = place([shape.size for shape in shapes], [arrow.link for arrow in arrows])
    if drawing is None:
        raise QueryError(f"too large to be drawn: {len(shapes)} states, {len(arrows)} arcs")
    width, height = drawing.width + 2 * _EDGE + 22, drawing.height + 2 * _EDGE
    size = f'width="{number(width)}" height="{number(height)}" viewBox="0 0 {number(width)} {number(height)}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img"><title>automaton</title>'
    group = f'<g transform="translate({number(_EDGE + 22)} {number(_EDGE)})">'
    style = _STYLE.partition("@media")[0]
    elements = picture(shapes, arrows, drawing, marked=True)
    return "\n".join([head, f"<style>{style}</style>", group, *elements, "</g></svg>", ""])


def _document(title: str, pictures: Sequence[tuple[str, Picture]], legend: str) -> str:
    """Return an SVG document of pictures with headings, below the title and above the legend."""
    parts: list[str] = []
    width, y = 0.0, _MARGIN
    for line in _wrap(title):
        y += LINE
        parts.append(text(_MARGIN, y, line))
        width = max(width, text_width(line))
    for heading, (shapes, arrows) in pictures:
        y += 2 * LINE
        parts.append(text(_MARGIN, y, heading, "title"))
        width = max(width, text_width(heading) * 1.05)
        y += LINE
        drawing = place([s.size for s in shapes], [a.link for a in arrows])
        if drawing is None:
            y += LINE
            note = f"too large to be drawn: {len(shapes)} nodes, {len(arrows)} arrows"
            parts.append(text(_MARGIN, y, note, "note"))
            continue
        # The arrow into the start needs room on the left.
        parts.append(f'<g transform="translate({number(_MARGIN + 22)} {number(y)})">')
        parts += picture(shapes, arrows, drawing)
        parts.append("</g>")
        y += drawing.height
        width = max(width, drawing.width + 22)
    y += 2 * LINE
    parts.append(text(_MARGIN, y, legend, "note"))
    width = max(width, text_width(legend)) + 2 * _MARGIN
    y += _MARGIN
    size = f'width="{number(width)}" height="{number(y)}" viewBox="0 0 {number(width)} {number(y)}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">'
    paper = f'<rect class="paper" width="{number(width)}" height="{number(y)}"/>'
    name = f"<title>{safe(marked_breaks(title) or 'automaton')}</title>"
    return "\n".join([head, name, f"<style>{_STYLE}</style>", paper, *parts, "</svg>", ""])


# ---- shapes and arrows


def _thompson(automaton: Thompson) -> Picture:
    """Return the places and edges as shapes and arrows, the start first."""
    order = [automaton.start, *(i for i in range(len(automaton.places)) if i != automaton.start)]
    index_of_place = {place: i for i, place in enumerate(order)}
    shapes = [Shape((str(place),), True, place == automaton.final) for place in order]
    arrows = [_edge(edge, automaton, index_of_place) for edge in automaton.edges]
    return shapes, arrows


def _graph(graph: StateGraph) -> Picture:
    """Return the states and arcs of a hand-written automaton as shapes and arrows; loops of a state are one arrow."""
    names = graph.states
    shapes = [Shape((_shorten(name),), True, name in graph.final) for name in names]
    lines: dict[tuple[int, int], list[str]] = {}
    for arc in graph.arcs:
        text = arc_text(arc).partition(": ")[2]
        lines.setdefault((names.index(arc.source), names.index(arc.target)), []).append(_shorten_arc(text))
    return shapes, [Arrow(source, target, tuple(texts), "line") for (source, target), texts in lines.items()]


def _shorten_arc(text: str) -> str:
    return text if len(text) <= _LONGEST_ARC else text[: _LONGEST_ARC - 1] + "…"


def _edge(edge: Edge, automaton: Thompson, index_of_place: dict[int, int]) -> Arrow:
    source, target = index_of_place[edge.source], index_of_place[edge.target]
    match edge.kind:
        case "letter":
            letter = automaton.letters[edge.number]
            return Arrow(source, target, (_label(letter.var, letter.types),), "line")
        case "missing":
            return Arrow(source, target, (_missing(edge.gaps, automaton.costs),), "missing")
        case "negation":
            negation = automaton.negations[edge.number]
            return Arrow(source, target, (f"no {_label(negation.var, negation.types)}",), "line")
        case "again":
            return Arrow(source, target, (f"again g{edge.number}",), "empty")
        case _:
            return Arrow(source, target, (), "empty")


def _arcs(arcs: Arcs, automaton: Thompson) -> Picture:
    shapes = [_state(state, automaton) for state in arcs.states]
    arrows = []
    for state_arcs in arcs.arcs:
        drawn = [_arc(arc, automaton) for arc in state_arcs]
        arrows += [arrow for arrow in drawn if arrow.source != arrow.target]
        loops = [arrow for arrow in drawn if arrow.source == arrow.target]
        if loops:
            # All loops of a state are drawn as one, with a line of text for each.
            plain = any(loop.kind == "line" for loop in loops)
            lines = tuple(", ".join(loop.lines) for loop in loops if loop.lines)
            arrows.append(Arrow(loops[0].source, loops[0].target, lines, "line" if plain else "missing"))
    return shapes, arrows


def _state(state: State, automaton: Thompson) -> Shape:
    if not state.number:
        return Shape(("start",), False, False)
    lines = [f"{state.number}  {_label(state.var, automaton.letters[state.number - 1].types)}"]
    lines += [_ending(accept, automaton) for accept in state.accepts if accept.cost or accept.crossings]
    return Shape(tuple(lines), False, bool(state.accepts))


def _ending(accept: Accept, automaton: Thompson) -> str:
    words = [f"ends +{automaton.costs.unscale(accept.cost)}" if accept.cost else "ends"]
    words += [f"no {_shorten(automaton.negations[c.negation].var)}" for c in accept.crossings]
    return ", ".join(words)


def _arc(arc: Arc, automaton: Thompson) -> Arrow:
    missing = arc.gaps != ((0, 0),)
    lines = [_missing(arc.gaps, automaton.costs)] if missing else []
    lines += [f"no {_shorten(automaton.negations[c.negation].var)}" for c in arc.crossings]
    lines += [f"again g{g}" for g in arc.resets]
    return Arrow(arc.source, arc.target, tuple(lines), "missing" if missing else "line")


def _missing(gaps: tuple[Gap, ...], costs: Costs) -> str:
    """Return the cost of missing letters; under contiguity the range, as more of them make up for events in between."""
    upper = f" to {costs.unscale(gaps[-1][0])}" if len(gaps) > 1 else ""
    return f"+{costs.unscale(gaps[0][0])}{upper}"


def _label(var: str, types: tuple[str, ...]) -> str:
    return _shorten(var) if types == (var,) else f"{_shorten(var)}: {_shorten(types_text(types))}"


def _shorten(name: str) -> str:
    return name if len(name) <= _LONGEST else name[: _LONGEST - 1] + "…"


def _wrap(words: str) -> list[str]:
    """Return the lines of a text, with long ones broken."""
    lines = (line.expandtabs(4).rstrip() for line in marked_breaks(words.strip()).splitlines())
    return [part for line in lines for part in ([line] if len(line) <= _WIDEST else textwrap.wrap(line, _WIDEST))]
