"""The page and the picture of the figures on Spark; both are made from the cells of the CSV alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from experiments.charts import Panel, chart
from experiments.results import shorten, table, write_page
from experiments.spark.figures import Cell, read_cells, write_cells
from experiments.spark.routes import QUERIES, ROUTES

__all__ = ["NAME", "draw_picture", "write_body", "write_results"]

NAME, TITLE = "spark", "On Spark"
WORDS = f"""Written by `make bench-spark`; [how to read it](../internals/benchmarks.md#on-spark). All routes ran in
one session of
Spark with two cores (`local[2]`), in random order in each repetition. A ratio compares the medians of one repetition;
the figure is the median over repetitions, with a 95 % bootstrap interval. The yardstick of streams is
*{ROUTES["yardstick"].about}*, that of a DataFrame *{ROUTES["batch-yardstick"].about}*.
Routes without acep run with Spark's own bound of the bytes of a batch for Python, acep without it, as in its own
sessions; the yardsticks named *unbounded* are without it too.
Events a second and milliseconds are those of this machine. All routes of acep found as many matches as `acep.match` in
one process.

The events: one a millisecond, 10,000 keys, five types. The queries:

* `seq`: `{QUERIES["seq"]}`
* `rise`: `{QUERIES["rise"]}`"""
SPLIT = ("trigger_ms", "add_batch_ms", "planning_ms", "log_ms", "source_ms")


def write_results(folder: Path, figures: Sequence[Cell], machine: dict[str, Any], notes: Sequence[str] = ()) -> Path:
    """Write ``spark.csv``, and from it ``spark.svg`` and ``spark.md``; the path of the page. ``notes``: why routes were
    left out."""
    folder.mkdir(parents=True, exist_ok=True)
    write_cells(folder / f"{NAME}.csv", figures)
    cells = read_cells(folder / f"{NAME}.csv")
    (folder / f"{NAME}.svg").write_text(draw_picture(cells), encoding="utf-8")
    words = "\n\n".join([WORDS, *(f"Not measured: {note}." for note in notes)])
    return write_page(folder, NAME, title=TITLE, words=words, machine=machine, body=write_body(cells))


def write_body(cells: Sequence[Cell]) -> str:
    """Return the picture of streams and the tables of the page."""
    streams, static = ([cell for cell in cells if ROUTES[cell.route].static is kind] for kind in (False, True))
    parts = []
    if streams:
        parts += [
            f"![{TITLE}]({NAME}.svg)",
            f"## Streams: ratio to the yardstick\n\nBy rows a micro-batch.\n\n{_by_rows(streams, _ratio)}",
            "## Streams: events a second\n\nBy rows a micro-batch.\n\n"
            + _by_rows(streams, lambda cell: shorten(cell.events_per_second)),
            _fixed_cost_table(streams),
            _split(streams),
        ]
    if matched := [cell for cell in cells if ROUTES[cell.route].query]:
        parts.append(_state(matched))
    if static:
        head = ("", "", "rows", "ratio", "events/s", "seconds", "runs")
        lines = [
            (
                cell.route,
                ROUTES[cell.route].about,
                f"{cell.rows:,}",
                _ratio(cell),
                shorten(cell.events_per_second),
                f"{cell.trigger_ms / 1000:.2f}",
                str(cell.runs),
            )
            for cell in static
        ]
        parts.append(f"## Batch DataFrames\n\n{table(head, lines)}")
    return "\n\n".join(parts)


def draw_picture(cells: Sequence[Cell]) -> str:
    """Draw the streams: events a second and the ratio to the yardstick, by rows a micro-batch, as an SVG document."""
    streams = [cell for cell in cells if not ROUTES[cell.route].static]
    names = list(dict.fromkeys(cell.route for cell in streams))

    def lines(value_of: Callable[[Cell], float], excluded: str = "") -> dict[str, list[tuple[float, float]]]:
        return {
            name: [(cell.rows, value_of(cell)) for cell in streams if cell.route == name]
            for name in names
            if name != excluded
        }

    x = "rows a micro-batch"
    acep_series = {name: line for name, line in lines(lambda cell: cell.ratio).items() if ROUTES[name].query}
    speed = lines(lambda cell: cell.events_per_second / 1e6)
    panels = [
        Panel("million events a second", speed, x, log=True, high=None),
        Panel("acep: ratio to the yardstick", acep_series, x, log=True, high=1.2),
    ]
    return chart([panel for panel in panels if panel.series], columns=2)


def _ratio(cell: Cell) -> str:
    if cell.route == ROUTES[cell.route].against:
        return "1"
    if cell.runs == 1:  # an interval would tell of the micro-batches of one run only
        return f"{cell.ratio:.2f} (one run)"
    return f"{cell.ratio:.2f} ({cell.ratio_low:.2f} to {cell.ratio_high:.2f})"


def _by_rows(cells: Sequence[Cell], format_cell: Callable[[Cell], str]) -> str:
    sizes = sorted({cell.rows for cell in cells})
    text_by_cell = {(cell.route, cell.rows): format_cell(cell) for cell in cells}
    names = [name for name in ROUTES if any(cell.route == name for cell in cells)]
    lines = [(name, ROUTES[name].about, *(text_by_cell.get((name, rows), "") for rows in sizes)) for name in names]
    return table(("", "", *(f"{rows:,}" for rows in sizes)), lines)


def _fixed_cost_table(streams: Sequence[Cell]) -> str:
    min_rows = min(cell.rows for cell in streams)
    lines = [
        (
            cell.route,
            f"{cell.trigger_ms:.0f} ms",
            f"{cell.more_ms:+.0f} ms",
            f"{cell.more_low:+.0f} to {cell.more_high:+.0f} ms",
        )
        for cell in streams
        if cell.rows == min_rows and cell.route != ROUTES[cell.route].against
    ]
    caption = (
        f"How much longer a micro-batch of {min_rows:,} rows takes than that of the yardstick, the difference of "
        "medians."
    )
    head = ("", "micro-batch", "more than the yardstick", "interval")
    return f"## The fixed cost of a micro-batch\n\n{caption}\n\n{table(head, lines)}"


def _split(streams: Sequence[Cell]) -> str:
    about = """Medians in milliseconds. *addBatch*: running the plan, ours and Spark's. *logs*: writing what the
micro-batch reads, and that it is done. *source*: finding the next file."""
    head = ("", "rows", "whole", "addBatch", "planning", "logs", "source", "micro-batches")
    lines = [
        (
            cell.route,
            f"{cell.rows:,}",
            *(f"{getattr(cell, name):.0f}" for name in SPLIT),
            f"{cell.runs * cell.batches:,}",
        )
        for cell in streams
    ]
    return f"## Where the time of a micro-batch goes\n\n{about}\n\n{table(head, lines)}"


def _state(matched: Sequence[Cell]) -> str:
    head = ("", "rows", "events", "matches", "state")
    lines = [
        (
            cell.route,
            f"{cell.rows:,}",
            f"{cell.events:,}",
            f"{cell.matches:,}",
            shorten(cell.state_bytes / 1e6, " MB") if cell.state_bytes >= 0 else "",
        )
        for cell in matched
    ]
    return (
        f"## State and matches\n\nOf one run; the state after its last micro-batch with events.\n\n{table(head, lines)}"
    )
