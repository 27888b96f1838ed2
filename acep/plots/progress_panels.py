"""Draw what a stream under a budget did over time: its work, the time of micro-batches, and the share that it kept."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from acep.errors import DataError
from acep.plots.canvas import COLOURS, GREY, axes_of, legend, set_title
from acep.plots.images import check_matplotlib, figure_of
from acep.streaming.progress import Progress

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["controller"]

MOST_BATCHES = 2_000
PANELS = 3


def controller(progress: Sequence[Progress], *, ax: Sequence[Axes] | None = None) -> Figure:
    """Draw what a stream did from micro-batch to micro-batch, in three axes, and return the figure.

    ``progress``: the :class:`acep.spark.metrics.Progress` of each micro-batch in order, as ``tell=`` of
    :func:`acep.follow` and of a replay, ``progress=`` of :func:`acep.spark.for_each_batch`, or a listener gets them.

    The axes have the work of each micro-batch and what the budget allowed for it; its seconds, and how these were
    spent; and the share of partial matches kept (1 - shed / made; at least 0, as skipped events count as shed).
    Work and shares are differences, so they are left out for a micro-batch whose predecessor is not given. ``ax``:
    three axes to draw in (default: those of a new figure). At most 2,000 micro-batches are drawn, the last ones, and
    the title says so.

    Raises :class:`DataError` for anything else.

    >>> seen = [Progress(n, 0, 0, 0, 0, 0, "", 0, 100, 0.5, made=50 * (n + 1), shed=10 * n, work=200 * (n + 1),
    ...                  allowance=250 * (n + 1)) for n in range(3)]
    >>> figure = controller(seen)
    >>> figure.axes[0].get_lines()[0].get_ydata().tolist(), figure.axes[2].get_lines()[0].get_ydata().tolist()
    ([200.0, 200.0, 200.0], [1.0, 0.8, 0.8])
    """
    records = _check_progress(progress)
    panels = _panels(ax)
    from matplotlib.ticker import MaxNLocator

    batches = np.array([record.batch for record in records], np.int64)
    work, allowance, n_made, shed = (_steps(records, batches, name) for name in ("work", "allowance", "made", "shed"))
    share_kept = np.clip(1 - np.divide(shed, n_made, out=np.full(len(n_made), np.nan), where=n_made > 0), 0.0, 1.0)
    last = slice(-MOST_BATCHES, None)
    x = batches[last]
    dots: dict[str, Any] = {"marker": "."} if len(x) <= 60 else {}
    lines = [(panels[0].plot(x, work[last], color=COLOURS[0], **dots)[0], "work")]
    if any(record.allowance for record in records):
        lines.append((panels[0].plot(x, allowance[last], color=COLOURS[1], linestyle="--", **dots)[0], "allowed"))
    legend(panels[0], lines)
    spent = [("matching", COLOURS[2]), ("transfer", COLOURS[5]), ("spark", COLOURS[4])]
    parts = np.array([[getattr(record.spent, name) for record in records[last]] for name, _ in spent])
    seconds = np.array([record.seconds for record in records[last]])
    areas = panels[1].stackplot(x, parts, colors=[colour for _, colour in spent], alpha=0.6)
    total = panels[1].plot(x, seconds, color=GREY, linewidth=1, **dots)[0]
    legend(panels[1], [(total, "in all"), *zip(areas, ("matching", "transfer", "Spark, files"), strict=True)])
    panels[2].plot(x, share_kept[last], color=COLOURS[6], **dots)
    panels[2].set_ylim(-0.04, 1.04)
    for panel, name in zip(panels, ("touches", "seconds", "share kept"), strict=True):
        panel.set_ylabel(name, fontsize=9)
        panel.tick_params(labelsize=8)
        panel.grid(visible=True, color="#d0d7de", linewidth=0.5)
    for panel in panels[:2]:
        panel.set_ylim(bottom=0)
    panels[2].set_xlabel("micro-batch", fontsize=9)
    panels[2].xaxis.set_major_locator(MaxNLocator(integer=True))
    number = f"{len(records):,} micro-batch" + ("" if len(records) == 1 else "es")
    set_title(panels[0], number, [f"the last {len(x):,} drawn"] if len(x) < len(records) else [])
    return figure_of(panels[0])


def _check_progress(progress: Any) -> list[Progress]:
    if isinstance(progress, str | bytes) or not isinstance(progress, Sequence):
        raise DataError(f"the progress of a stream is a list, not {type(progress).__name__}", code="option_invalid")
    records = list(progress)
    for record in records:
        if not isinstance(record, Progress):
            raise DataError(
                f"the progress of a stream is a list of Progress, and {type(record).__name__} is none",
                code="option_invalid",
            )
    if not records:
        raise DataError("there is no progress to draw", hint="collect it with tell=seen.append", code="option_invalid")
    if any(following.batch <= previous.batch for previous, following in itertools.pairwise(records)):
        raise DataError(
            "the numbers of the micro-batches do not rise", hint="draw the streams one by one", code="option_invalid"
        )
    return records


def _steps(records: Sequence[Progress], batches: Any, name: str) -> Any:
    """Return what each micro-batch added to a total, NaN where the one before it is not known."""
    totals = np.array([getattr(record, name) for record in records], np.float64)
    steps = np.diff(totals, prepend=0.0)
    steps[np.diff(batches, prepend=-1) != 1] = np.nan
    return steps


def _panels(ax: Any) -> list[Axes]:
    if ax is None:
        check_matplotlib()
        from acep.plots.shown_axes import ShownFigure

        subplots: Any = ShownFigure(figsize=(8.0, 6.0), layout="constrained").subplots(PANELS, 1, sharex=True)
        return list(subplots)
    try:
        panels = [axes_of(axes) for axes in ax if axes is not None]
    except TypeError:
        panels = []
    if len(panels) != PANELS:
        raise DataError(f"ax= takes {PANELS} axes here", hint="leave it out for a new figure", code="option_invalid")
    return panels
