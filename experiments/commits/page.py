"""Say how two commits compare: tables by output and by workload, where the time goes, and a picture."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import geometric_mean

from experiments.charts import Panel, chart
from experiments.commits.compare import HEAVY_RATE, Compared
from experiments.results import shorten, table

__all__ = ["SLOWER", "draw_picture", "failures", "summarise", "write_body", "write_words"]

SLOWER = 1.05
"""A workload counts as slower where it takes more than so many times the time of the other commit."""


def write_words(commit: str, repeats: int) -> str:
    """Return what stands at the head of the page."""
    return f"""Written by `python -m experiments.commits --commit {commit}`;
[how to read it](../internals/benchmarks.md#against-another-commit). Exact runs of this code and of acep as it was in
commit {commit}, by turns on one core, the best of at least {repeats} runs by processor time, loading not counted.
*times* is the time of the other commit divided by that of this code, for each output. *heavy*: the other commit does at
most {HEAVY_RATE:,} events a second. Both must find the same, in the same order."""


def failures(rows: Sequence[Compared]) -> list[str]:
    """Return a line for each run that has no figure, or in which the commits found different things."""
    lines = [f"{row.workload}, {row.output}: {row.error}" for row in rows if row.error]
    return lines + [f"{row.workload}, {row.output}: the commits found different things" for row in rows if not row.same]


def summarise(rows: Sequence[Compared]) -> list[Sequence[str]]:
    """Return a line of the summary for each output, and for the heavy runs of it: how many, the geometric mean of the
    times, the least with its workload, and how many take more than ``SLOWER`` times the time."""
    lines: list[Sequence[str]] = []
    for output in dict.fromkeys(row.output for row in rows):
        measured = [row for row in rows if row.output == output and not row.error]
        for title, group in ((output, measured), (f"{output}, heavy", [row for row in measured if row.is_heavy])):
            if group:
                worst = min(group, key=lambda row: row.ratio)
                n_slower = sum(row.ratio * SLOWER < 1 for row in group)
                mean = geometric_mean([row.ratio for row in group])
                lines.append(
                    (title, str(len(group)), f"{mean:.2f}", f"{worst.ratio:.2f}", worst.workload, str(n_slower))
                )
    return lines


def write_body(rows: Sequence[Compared]) -> str:
    """Return the tables of the page."""
    head = ("", "workloads", "times, geometric mean", "least", "of", f"slower by more than {SLOWER - 1:.0%}")
    parts = ["## Summary", table(head, summarise(rows)), *_by_workload(rows), *_by_event(rows)]
    if complaints := failures(rows):
        parts += ["## Without an answer", "\n".join(f"* {line}" for line in complaints)]
    return "\n\n".join(parts)


def _by_workload(rows: Sequence[Compared]) -> list[str]:
    outputs = list(dict.fromkeys(row.output for row in rows))
    by_place = {(row.workload, row.output): row for row in rows}
    lines = []
    for workload in dict.fromkeys(row.workload for row in rows):
        cells = [by_place.get((workload, output)) for output in outputs]
        lines.append((workload, *(_times(row) for row in cells), f"{max(row.spread for row in cells if row):.0%}"))
    words = """For each output how many times less time, and in brackets the milliseconds before. *spread*: how much
longer the slowest run of the other commit took than its best one, at most."""
    return ["## Times", words, table(("", *outputs, "spread"), lines)]


def _times(row: Compared | None) -> str:
    if row is None or row.error:
        return "" if row is None else "none"
    note = "" if row.same else ", differs"
    return f"{'heavy, ' if row.is_heavy else ''}{row.ratio:.2f} ({shorten(1000 * row.other_cpu)}{note})"


def _by_event(rows: Sequence[Compared]) -> list[str]:
    output = rows[0].output
    head = ("", "events", "us", "us now", "evaluations", "now", "made", "now", output)
    lines = [
        (
            row.workload,
            f"{row.events:,}",
            *(shorten(1e6 * seconds / row.events) for seconds in (row.other_cpu, row.cpu)),
            *(
                shorten(number / row.events)
                for number in (row.other_work, row.work, row.other_partial_matches, row.partial_matches, row.size)
            ),
        )
        for row in rows
        if row.output == output and not row.error
    ]
    words = f"""For each event, where {output} are asked for: microseconds, transition evaluations, partial matches
made, and {output}; of the other commit, and *now*."""
    return ["## Where the time goes", words, table(head, lines)]


def draw_picture(rows: Sequence[Compared]) -> str:
    """Draw the times by what an event cost before, and in order."""
    measured = [row for row in rows if not row.error]
    outputs = list(dict.fromkeys(row.output for row in measured))
    by_cost = {
        output: [(1e6 * row.other_cpu / row.events, row.ratio) for row in measured if row.output == output]
        for output in outputs
    }
    in_order = {
        output: [(rank + 1.0, ratio) for rank, ratio in enumerate(sorted(ratio for _, ratio in by_cost[output]))]
        for output in outputs
    }
    panels = [
        Panel("times less time, by cost", by_cost, "us an event before", log=bool(measured), high=None),
        Panel("times less time, in order", in_order, "workloads, from the least", high=None),
    ]
    return chart(panels, columns=2)
