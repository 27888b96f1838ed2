"""Define the axes and figures of new plots: as the last line of a cell, a notebook shows them as a picture."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from acep.plots.images import as_image, figure_of

__all__ = ["ShownAxes", "ShownFigure"]


class ShownFigure(Figure):
    """A figure that no backend knows of, and that shows itself."""

    def _repr_png_(self) -> bytes:
        return as_image(self, "png")


class ShownAxes(Axes):
    """Axes that show the figure that they are in."""

    def _repr_png_(self) -> bytes:
        return as_image(figure_of(self), "png")
