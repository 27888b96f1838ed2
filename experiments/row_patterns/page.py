"""Make the tables and the picture of the page from what was measured."""

from __future__ import annotations

from collections.abc import Sequence

from experiments.charts import Panel, chart
from experiments.results import shorten, table
from experiments.row_patterns.measure import Measured
from experiments.row_patterns.peers import FLINK, PANDAS
from experiments.row_patterns.pushes import Pushed
from experiments.row_patterns.shapes import FALL_AND_RISE

__all__ = ["WORDS", "draw_picture", "tell_growth", "write_body"]

WORDS = """Written by `make bench-rows`; [how it is measured](../internals/benchmarks.md). Generated rows in Arrow
tables, one thread for each system. All times are processor time, the best of {} runs by turns. *growth*: the time for
twice the rows divided by that for the rows, of the two largest sizes.

![MATCH_RECOGNIZE by shape](row_patterns.svg)"""
SHAPES = f"""`acep.match_recognize` on the shapes of DuckDB's published benchmark of the clause. The last columns have
the time of a row in another system divided by that in acep. DuckDB and Spark run window functions for the same
question, polars an expression, where there is a natural one; each gives as many rows out. Loading is not counted.
Spark's time is that of its Java process and of this one. `{PANDAS}`, a package over pandas, runs the
clause itself, in a process of its own. Where all rows would take it too long, it gets the first ones, and the column
says how many."""
BESIDE_FLINK = """Flink's clause has no PREV and no greedy last variable, so its V-shape has one more variable. Both run
this clause, over the same rows and with as many rows out. Flink's time is that of the whole Java process from the first
row on, so that the start of the process and of the job do not count. It runs on shorter prefixes before, so that its
compiler is warm; a run that takes it long is not repeated."""
STREAMS = """`acep.Matcher` with the rows in pushes, as Arrow tables. Keys take turns. Each stream gives as many rows as
`acep.match_recognize` over all rows at once."""
BESIDE_SHAPES = ("DuckDB", "polars", "Spark", PANDAS)


def tell_growth(rows: Sequence[Measured] | Sequence[Pushed]) -> str:
    """Return how the time grew from the second size to the third, which is twice that."""
    return f"{rows[2].cpu / rows[1].cpu:.2f}" if rows[1].cpu else ""


def _shapes(rows: Sequence[Measured]) -> str:
    lines, failures = [], []
    columns = [name for name in BESIDE_SHAPES if any(row.system == name for row in rows)]
    for name in dict.fromkeys(row.shape for row in rows):
        acep_rows = [row for row in rows if row.shape == name and row.system == "acep"]
        last = acep_rows[-1]
        rate = shorten(last.rows / last.cpu / 1e6) if last.cpu else ""
        peers = {row.system: row for row in rows if row.shape == name}
        cells = [_ratio(peers[column], last) if column in peers else "" for column in columns]
        line = (
            name,
            f"{last.rows:,}",
            f"{last.size:,}",
            shorten(1000 * last.cpu),
            rate,
            tell_growth(acep_rows),
            *cells,
        )
        lines.append(line)
        failures += [f"* {name}, {row.system}: {row.error[:200]}" for row in peers.values() if row.error]
    head = ("shape", "rows", "rows out", "processor, ms", "million rows a second", "growth", *columns)
    parts = [SHAPES, table(head, lines)]
    if failures:
        parts.append("No ratio, with what the system said:\n\n" + "\n".join(failures))
    return "\n\n".join(parts)


def _ratio(peer: Measured, acep_row: Measured) -> str:
    if peer.error or not acep_row.cpu:
        return ""
    ratio = shorten(peer.cpu / peer.rows / (acep_row.cpu / acep_row.rows))
    return ratio if peer.rows == acep_row.rows else f"{ratio} ({peer.rows:,} rows)"


def _flink(rows: Sequence[Measured]) -> str:
    last = next(row for row in reversed(rows) if row.system == "acep")
    lines = []
    for row in (last, *(row for row in rows if row.system == FLINK)):
        if row.error:
            lines.append((row.system, "", "", "", "", row.error[:200]))
            continue
        rate = shorten(row.rows / row.cpu) if row.cpu else ""
        times = f"{_ratio(row, last)}" if row is not last else ""
        lines.append((row.system, f"{row.rows:,}", f"{row.size:,}", shorten(1000 * row.cpu), rate, times))
    head = ("", "rows", "rows out", "processor, ms", "rows a second", "time, acep is 1")
    clause = f"```sql\n{FALL_AND_RISE}\n```"
    return f"{BESIDE_FLINK}\n\n{clause}\n\n{table(head, lines)}"


def _streams(rows: Sequence[Pushed]) -> str:
    lines = []
    for group in _streams_of(rows):
        last = group[-1]
        rate = shorten(last.rows / last.cpu) if last.cpu else ""
        line = (last.clause, f"{last.push:,}", f"{last.keys:,}", f"{last.rows:,}", f"{last.size:,}", rate)
        lines.append((*line, tell_growth(group)))
    head = ("clause", "rows in a push", "keys", "rows", "rows out", "rows a second", "growth")
    return f"{STREAMS}\n\n{table(head, lines)}"


def _streams_of(rows: Sequence[Pushed]) -> list[list[Pushed]]:
    groups: dict[tuple[str, int, int], list[Pushed]] = {}
    for row in rows:
        groups.setdefault((row.clause, row.push, row.keys), []).append(row)
    return list(groups.values())


def write_body(shapes: Sequence[Measured], flink: Sequence[Measured], streams: Sequence[Pushed]) -> str:
    """Return the tables of the page; those without rows are left out."""
    parts = []
    if shapes:
        parts.append(f"## Shapes\n\n{_shapes(shapes)}")
    if flink:
        parts.append(f"## V-shape beside Flink SQL\n\n{_flink(flink)}")
    if streams:
        parts.append(f"## Streams\n\n{_streams(streams)}")
    return "\n\n".join(parts)


def draw_picture(shapes: Sequence[Measured], streams: Sequence[Pushed]) -> str:
    """Return the growth of the shapes, and the rate of streams by the rows of a push, as line charts."""
    growth: dict[str, list[tuple[float, float]]] = {}
    for row in shapes:
        if row.system == "acep" and row.cpu:
            growth.setdefault(row.shape, []).append((row.rows, row.cpu / row.rows))
    scaled = {name: [(x / points[0][0], y / points[0][1]) for x, y in points] for name, points in growth.items()}
    rates: dict[str, list[tuple[float, float]]] = {}
    for group in _streams_of(streams):
        last = group[-1]
        if last.cpu:
            rates.setdefault(f"{last.clause}, {last.keys:,} keys", []).append((last.push, last.rows / last.cpu / 1e6))
    panels = [
        Panel("time for a row (1: the fewest rows)", scaled, "rows, times the fewest", log=True, high=2.0),
        Panel("million rows a second, streams", rates, "rows in a push", log=True, high=None),
    ]
    return chart([panel for panel in panels if panel.series])
