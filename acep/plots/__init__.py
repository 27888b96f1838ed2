"""Draw matches, series, automata, histories and the course of a stream. ``import acep`` does not import it.

matplotlib (``pip install 'acep[plot]'``) is imported when a plot is drawn. Plots are made without its global state, so
no backend and no display is needed: a function returns its axes, and :func:`acep.plots.save` writes them.
"""

from __future__ import annotations

from acep.plots.curves import recall_curve
from acep.plots.drawings import SvgPicture, automaton, history_graph, save
from acep.plots.over_series import match_over_series
from acep.plots.progress_panels import controller
from acep.plots.time_line import timeline
from acep.plots.vectors import history

__all__ = [
    "SvgPicture",
    "automaton",
    "controller",
    "history",
    "history_graph",
    "match_over_series",
    "recall_curve",
    "save",
    "timeline",
]
