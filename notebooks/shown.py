"""Pictures in a notebook. They are SVG, which a notebook shows, and which a plain run of its ``.py`` leaves alone."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

__all__ = ["Picture", "curve"]


class Picture(str):
    """An SVG document; as the last line of a cell it is shown."""

    __slots__ = ()

    def _repr_svg_(self) -> str:
        return str(self)


def curve(title: str, series: Mapping[str, Sequence[tuple[float, float]]], x: str) -> Picture:
    """Draw one chart with a line for each of ``series``, by the code that draws the pictures of the experiments."""
    sys.path.append(str(Path(__file__).resolve().parents[1]))
    from experiments.charts import Panel, chart

    sys.path.pop()
    return Picture(chart([Panel(title, series, x, log=True)], columns=1))
