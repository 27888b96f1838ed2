"""Draw what a history knows: by state and remaining window the chance of completion, and how often it was seen."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from acep.errors import DataError
from acep.learning.history.drawing import remaining_text
from acep.learning.history.graph import History
from acep.learning.history.sums import SUMS
from acep.plots.canvas import AS_WRITTEN, axes_of, label_text, set_title
from acep.shedding.history_file import read_history

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["history", "read_graph"]

MOST_STATES = 40


def history(history: Any, *, ax: Axes | None = None) -> Axes:
    """Draw what a history knows of partial matches, and return the axes: a row for each state, a column for each bin of
    the window that remains.

    The colour of a cell is the share of its visits from which a target (a match bundle or match point) was reached, of
    those whose outcome is known; the number in it counts the visits (an estimate, where the log is a sample). Errors,
    times since the last event and features are summed up. A cell without visits is white; one whose outcomes are all
    unknown has its number alone.

    ``history``: what :func:`acep.learn` returned, its file, or an :class:`acep.learning.history.graph.History`. ``ax``:
    the axes to draw in (default: those of a new figure). Of more than 40 states those visited most are drawn, and the
    title says so. :func:`acep.plots.history_graph` draws the graph itself.

    Raises :class:`SnapshotError` or :class:`DataError` if it is no history.

    >>> import acep
    >>> learned = acep.learn({"ts": list(range(60)), "type": list("abcab" * 12)}, acep.regex("ab", within=3))
    >>> ax = history(learned)
    >>> ax.get_xlabel(), [label.get_text() for label in ax.get_yticklabels()]
    ('share of the window that remains', ['1 a'])
    """
    graph = read_graph(history)
    visits, reached, unknown = _by_cell(graph)
    states = np.flatnonzero(visits.any(axis=1))
    n_states = len(states)
    if n_states > MOST_STATES:
        states = np.sort(states[np.argsort(-visits[states].sum(axis=1), kind="stable")[:MOST_STATES]])
    axes = axes_of(ax, height=1.6 + 0.35 * max(len(states), 1))
    bins = graph.grid.windows
    # The bin of most of the window is on the left, so that time goes to the right.
    axes.set_xticks(range(bins), [remaining_text(graph.grid, bins - 1 - column) for column in range(bins)], fontsize=8)
    axes.set_xlabel("share of the window that remains", fontsize=9)
    notes = [f"{len(states)} of {n_states} states"] if n_states > len(states) else []
    if not n_states:
        axes.set_yticks([])
        set_title(axes, "the history has no visits", notes)
        return axes
    visits, reached, unknown = (counts[states][:, ::-1] for counts in (visits, reached, unknown))
    decided = visits - unknown
    chance = np.divide(reached, decided, out=np.full(visits.shape, np.nan), where=decided > 0)
    _draw(axes, np.clip(chance, 0.0, 1.0), visits)
    axes.set_yticks(range(len(states)), [_state_text(graph, int(state)) for state in states], fontsize=8, **AS_WRITTEN)
    target = "bundle" if graph.kind == "bundles" else "point"
    set_title(axes, f"chance to reach a match {target} (colour), and visits (number)", notes)
    return axes


def read_graph(source: Any) -> History:
    """Return the history that a user gave: itself, its bytes, or its file."""
    if isinstance(source, History):
        return source
    if not isinstance(source, bytes | str | os.PathLike):
        raise DataError(
            f"a history is what acep.learn returns, or its file, not {type(source).__name__}", code="option_invalid"
        )
    return History.from_bytes(source if isinstance(source, bytes) else read_history(source))


def _by_cell(graph: History) -> tuple[Any, Any, Any]:
    """Return the visits, those that reached a target, and those of unknown outcome, float64[states, windows] each."""
    vectors = graph.visited()
    parts, sums = graph.grid.parts(vectors), graph.sums(vectors)
    cells = []
    for name in ("visits", "reached", "unknown"):
        cell = np.zeros((graph.grid.states, graph.grid.windows))
        np.add.at(cell, (parts.state, parts.remaining), sums[:, SUMS.index(name)])
        cells.append(cell)
    return cells[0], cells[1], cells[2]


def _draw(axes: Axes, chance: Any, visits: Any) -> None:
    greatest = float(np.nanmax(chance, initial=0.0)) or 1.0
    image = axes.imshow(chance, cmap="Blues", vmin=0.0, vmax=greatest, aspect="auto")
    for (row, column), number in np.ndenumerate(visits):
        if number > 0:
            dark = chance[row, column] > 0.6 * greatest
            colour = "white" if dark else "#1f2328"
            axes.text(column, row, _amount(number), ha="center", va="center", fontsize=7, color=colour)
    figure: Any = axes.figure
    bar = figure.colorbar(image, ax=axes, pad=0.02, format=lambda share, _: f"{share:.3g}")
    bar.ax.tick_params(labelsize=8)
    bar.set_label("reached / visits with a known outcome", fontsize=8)


def _amount(number: float) -> str:
    """Return a number of visits in few characters.

    >>> _amount(12.0), _amount(4321.0), _amount(5.6e7)
    ('12', '4.3k', '56M')
    """
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if number >= size:
            return f"{number / size:.{1 if number < 10 * size else 0}f}{unit}"
    return f"{number:.3g}"


def _state_text(graph: History, state: int) -> str:
    name = graph.names[state] if state < len(graph.names) else ""
    return label_text(f"{state} {name}".strip(), 28)
