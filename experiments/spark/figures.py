"""Figures of all runs: medians, ratios to a yardstick with bootstrap intervals, and the CSV that holds them."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from statistics import median
from typing import Any, get_type_hints

import numpy as np
import numpy.typing as npt

from experiments.spark.routes import ROUTES
from experiments.spark.running import Run

__all__ = ["Cell", "cells", "interval", "read_cells", "write_cells"]

DRAWS = 2_000
SHARE = 0.95
SPLIT = {
    "add_batch_ms": ("addBatch",),
    "planning_ms": ("queryPlanning",),
    "log_ms": ("walCommit", "commitOffsets", "commitBatch"),
    "source_ms": ("latestOffset", "getBatch"),
}
"""The parts of a micro-batch's time, by the keys of ``durationMs`` that they add up."""
Figures = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Cell:
    """A route at so many ``rows`` a micro-batch, over ``runs`` repetitions with ``batches`` micro-batches each that
    count. Times are medians in milliseconds. ``ratio``: events a second in parts of those of the route that this one
    is compared with; ``more_ms``: how much longer a micro-batch takes than there. Both with the bounds of a 95 %
    interval. ``events`` and ``matches`` of one run, ``state_bytes`` at its end (-1: there is none)."""

    route: str
    rows: int
    runs: int
    batches: int
    events_per_second: float
    trigger_ms: float
    add_batch_ms: float
    planning_ms: float
    log_ms: float
    source_ms: float
    ratio: float
    ratio_low: float
    ratio_high: float
    more_ms: float
    more_low: float
    more_high: float
    events: int
    matches: int
    state_bytes: int


def cells(runs: Iterable[Run]) -> list[Cell]:
    """Return the figures of each route at each size, in the order of the routes; a run counts if its yardstick ran in
    the same repetition."""
    runs_by_cell: dict[tuple[str, int], dict[int, Run]] = {}
    for run in runs:
        runs_by_cell.setdefault((run.route, run.rows), {})[run.repetition] = run
    order = list(ROUTES)
    out = []
    for (name, rows), route_runs in sorted(
        runs_by_cell.items(), key=lambda item: (item[0][1], order.index(item[0][0]))
    ):
        base = runs_by_cell.get((ROUTES[name].against, rows), {})
        both = sorted(route_runs.keys() & base.keys())
        if both:
            out.append(
                _cell(rows, [route_runs[repetition] for repetition in both], [base[repetition] for repetition in both])
            )
    return out


def _cell(rows: int, route_runs: Sequence[Run], base: Sequence[Run]) -> Cell:
    durations = [batch for run in route_runs for batch in run.durations]
    trigger = median(value for run in route_runs for value in run.trigger_times)
    pairs = [
        (np.array(run.trigger_times), np.array(base_run.trigger_times))
        for run, base_run in zip(route_runs, base, strict=True)
    ]
    ratio, difference = (1.0, 1.0, 1.0), (0.0, 0.0, 0.0)
    if route_runs[0].route != base[0].route:
        ratio = interval(pairs, lambda route_times, base_times: base_times / route_times)
        difference = interval(pairs, lambda route_times, base_times: route_times - base_times)
    parts = {
        name: median(sum(batch.get(key, 0.0) for key in keys) for batch in durations) for name, keys in SPLIT.items()
    }
    states = [run.state for run in route_runs if run.state is not None]
    return Cell(
        route=route_runs[0].route,
        rows=rows,
        runs=len(route_runs),
        batches=len(route_runs[0].durations),
        events_per_second=round(rows / trigger * 1000),
        trigger_ms=round(trigger, 1),
        **{name: round(value, 1) for name, value in parts.items()},
        **dict(zip(("ratio", "ratio_low", "ratio_high"), (round(value, 3) for value in ratio), strict=True)),
        **dict(zip(("more_ms", "more_low", "more_high"), (round(value, 1) for value in difference), strict=True)),
        events=route_runs[0].events,
        matches=route_runs[0].matches,
        state_bytes=round(median(states)) if states else -1,
    )


def interval(
    pairs: Sequence[tuple[Figures, Figures]], compare: Callable[[Figures, Figures], Figures], seed: int = 0
) -> tuple[float, float, float]:
    """Return the median over repetitions of ``compare`` of two medians of one repetition, and the bounds of its 95 %
    bootstrap interval. ``pairs``: the times of the micro-batches of the two, by repetition.

    Repetitions are drawn with replacement, the same for both, and of each its micro-batches.

    >>> times = [(np.array([2.0, 2.0, 2.0]), np.array([1.0, 1.0, 1.0]))] * 3
    >>> interval(times, lambda route_times, base_times: base_times / route_times)
    (0.5, 0.5, 0.5)
    """
    random = np.random.default_rng(seed)
    by_repetition = [float(compare(np.median(route_times), np.median(base_times))) for route_times, base_times in pairs]
    picks = random.integers(0, len(pairs), (DRAWS, len(pairs)))
    drawn = np.empty(picks.shape)
    for number, (route_times, base_times) in enumerate(pairs):
        for column in range(len(pairs)):
            draws = np.flatnonzero(picks[:, column] == number)
            halves = (
                np.median(times[random.integers(0, len(times), (len(draws), len(times)))], axis=1)
                for times in (route_times, base_times)
            )
            drawn[draws, column] = compare(*halves)
    low, high = np.quantile(np.median(drawn, axis=1), [(1 - SHARE) / 2, (1 + SHARE) / 2])
    return median(by_repetition), float(low), float(high)


def write_cells(path: Path, figures: Sequence[Cell]) -> None:
    """Write one line a cell."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Cell)], lineterminator="\n")
        writer.writeheader()
        writer.writerows(asdict(cell) for cell in figures)


def read_cells(path: Path) -> list[Cell]:
    """Read the cells of a file that :func:`write_cells` wrote."""
    kinds: dict[str, Any] = get_type_hints(Cell)
    with path.open(encoding="utf-8") as file:
        return [Cell(**{name: kinds[name](value) for name, value in row.items()}) for row in csv.DictReader(file)]
