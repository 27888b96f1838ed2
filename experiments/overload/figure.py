"""A figure of the best-effort experiments, measured by its command and written as CSV, JSON, SVG and a page."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from experiments.charts import Panel, chart
from experiments.machine import describe_machine
from experiments.overload.trial import ESTIMATE
from experiments.overload.workload import Overload
from experiments.overload.workloads import choose_workloads
from experiments.results import RESULTS, table, write

__all__ = [
    "MEMORY",
    "Figure",
    "FigurePoint",
    "Spec",
    "describe_estimate",
    "make_figure",
    "mean_by_x",
    "run_command",
    "write_figure",
]


MEMORY = 6 << 30
"""Bytes that a run may have; an engine that needs more is left out."""


@dataclass(frozen=True)
class Figure:
    """``rows`` are dataclasses of one kind; ``body`` the tables of the page, ``picture`` an SVG document."""

    name: str
    title: str
    words: str
    rows: Sequence[Any]
    body: str
    picture: str


def describe_estimate(estimate: float) -> str:
    """Say how much of the allowance went into estimating the recall, and what that means for a user."""
    if estimate > 0:
        return f"Of the allowance {estimate:.3%} goes into estimating the recall, as for a user (`Budget(estimate=)`)."
    return (
        f"Measured without an estimate of the recall. `Budget()` spends {ESTIMATE:.3%} of the allowance on one, so\n"
        "that a user finds somewhat less than this page says, until it is measured anew."
    )


def write_figure(folder: Path, figure: Figure, origin: Mapping[str, Any] | None = None) -> Path:
    """Write ``NAME.csv``, ``raw/NAME.json``, ``NAME.svg`` and ``NAME.md``; return the path of the page.

    ``origin``: what :func:`experiments.ages.read_origin` returns for the page, if rows of it stay.
    """
    rows = [asdict(row) for row in figure.rows]
    body = f"![{figure.title}]({figure.name}.svg)\n\n{figure.body}"
    words = f"{figure.words.rstrip()}\n\n{describe_estimate(ESTIMATE)}"
    machine = describe_machine() | dict(origin or {})
    page = write(folder, figure.name, title=figure.title, words=words, machine=machine, body=body, rows=rows)
    (folder / f"{figure.name}.svg").write_text(figure.picture, encoding="utf-8")
    return page


@dataclass(frozen=True)
class FigurePoint:
    """One point of a figure: ``series`` at ``x``; the rest is the result of
    :func:`experiments.overload.trial.try_policy`."""

    workload: str
    seed: int
    series: str
    x: float
    share: float
    work: float
    wall: float
    learning: float
    points: float
    bundles: float
    matches: float
    cpu: float
    exact_touches: int
    exact_cpu: float
    all_points: int
    all_bundles: int
    all_matches: int


@dataclass(frozen=True)
class Spec:
    """A figure of points that one function measures, a workload and seed at a time. ``workloads``: patterns of names.
    ``x``: what it is, ``log``: how it is drawn, ``x_format``: how a value of it is written, ``shown``: which columns
    are drawn and printed."""

    name: str
    title: str
    words: str
    workloads: tuple[str, ...]
    measure: Callable[[Overload, int], Iterable[FigurePoint]]
    x: str
    log: bool = False
    x_format: str = "{:g}"
    shown: tuple[str, ...] = ("points", "bundles")
    body: Callable[[Sequence[FigurePoint]], str] | None = None


def make_figure(spec: Spec, rows: Sequence[FigurePoint]) -> Figure:
    """Return means over workloads and seeds as a picture and as tables, and the same of each workload as tables."""
    xs, panels, parts = sorted({row.x for row in rows}), [], []
    for measure in spec.shown:
        series = {name: mean_by_x(rows, name, measure) for name in dict.fromkeys(row.series for row in rows)}
        high = 1.0 if measure in ("points", "bundles", "matches") else None
        panels.append(Panel(_title_of(measure), series, spec.x, log=spec.log, high=high))
    if spec.body:
        parts.append(spec.body(rows))
    workloads = list(dict.fromkeys(row.workload for row in rows))
    head = ("", *(spec.x_format.format(x) for x in xs))
    for title, names in (("mean over workloads", workloads), *((name, [name]) for name in workloads)):
        group_rows = [row for row in rows if row.workload in names]
        for measure in spec.shown:
            lines = []
            for name in dict.fromkeys(row.series for row in group_rows):
                means = dict(mean_by_x(group_rows, name, measure))
                lines.append((name, *(f"{means[x]:.3f}" if x in means else "" for x in xs)))
            parts.append(f"## {_title_of(measure).capitalize()}: {title}\n\nBy {spec.x}.\n\n{table(head, lines)}")
    return Figure(spec.name, spec.title, spec.words, rows, "\n\n".join(parts), chart(panels, columns=2))


def mean_by_x(rows: Sequence[FigurePoint], series: str, measure: str) -> list[tuple[float, float]]:
    """Return (x, mean of a column) of a series, by rising x."""
    series_rows = [row for row in rows if row.series == series]
    return [
        (x, fmean(getattr(row, measure) for row in series_rows if row.x == x))
        for x in sorted({row.x for row in series_rows})
    ]


def _title_of(measure: str) -> str:
    return f"recall of {measure}" if measure in ("points", "bundles", "matches") else measure


def run_command(spec: Spec, arguments: Sequence[str] | None = None, *, streams: Sequence[Overload] = ()) -> int:
    """Run the command of a figure: measure, print, and write to ``docs/results/``; with names of workloads only where
    ``--output`` says. ``streams``: the streams that it runs on, if they are not those of the workloads."""
    parser = argparse.ArgumentParser(prog=f"python -m experiments.overload.{spec.name}", description=spec.title)
    parser.add_argument("names", nargs="*", metavar="NAME", help="workloads, * and ? as in file names")
    parser.add_argument("--seeds", type=int, default=1, help="the whole stream, and so many less one samples of it (1)")
    parser.add_argument("--output", type=Path, help="folder for the results")
    options = parser.parse_args(arguments)
    try:
        workloads = streams or [
            workload
            for workload in choose_workloads(options.names or spec.workloads)
            if options.names or not workload.control
        ]
    except ValueError as error:
        parser.error(str(error))
    folder = options.output or (None if options.names else RESULTS)
    rows: list[FigurePoint] = []
    for workload in workloads:
        for seed in range(options.seeds):
            for row in spec.measure(workload, seed):
                rows.append(row)
                values = " ".join(f"{measure} {getattr(row, measure):.3f}" for measure in spec.shown)
                print(
                    f"{row.workload:22s}{row.seed} {row.series:24s}{spec.x_format.format(row.x):>8s}  {values}",
                    flush=True,
                )
        if folder:  # again after each workload: what was measured outlives a run that is stopped
            write_figure(folder, make_figure(spec, rows))
    return 0
