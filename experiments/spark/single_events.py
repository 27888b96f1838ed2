"""Which single events matter: ``python -m experiments.spark.single_events [NAME ...] [--output DIR]``.

A history is learned from the first half of each real stream. If it orders events, the first ones are kept in the second
half, and the recall of match points is measured there, without Spark.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import acep
from acep.native.compiled import choose_engine
from acep.runtime.executors import bounded_engine
from acep.training.events import learn_event_utility, select_bindable
from experiments.machine import describe_machine
from experiments.overload.workload import Overload
from experiments.overload.workloads import OVERLOADS
from experiments.overload.workloads import choose_workloads as workloads_of
from experiments.results import RESULTS, table, write_page
from experiments.spark.units import WORKLOADS, Keyed

__all__ = ["Single", "main", "measure_shares"]

SHARES = (0.125, 0.25, 0.5, 0.75)


@dataclass(frozen=True)
class Single:
    """One trial: a ``share`` of the events that the query can bind was wanted, ``kept`` was the share of those that
    were kept, and ``recall`` that of match points. ``ordered``: the history had an order that was used."""

    workload: str
    stream: str
    share: float
    ordered: bool
    kept: float
    recall: float


def measure_shares(workload: Overload) -> list[Single]:
    """Learn from the first half of a stream, and keep shares of the second half."""
    plan, stream = workload.plan, Keyed.from_workload(workload)
    half = len(stream.events) // 2
    utility = learn_event_utility(plan, bounded_engine(choose_engine(plan, "native")), stream.events.slice(0, half))
    if utility is None:
        return [Single(workload.name, workload.file, share, False, 0.0, 0.0) for share in SHARES]
    later, types = select_bindable(plan, stream.events.slice(half)), plan.schema.type
    assert types is not None
    cells, all_points = utility.cells(later, later[types]), stream.points(acep.match(later, workload.query))
    events, results = np.bincount(cells, minlength=len(utility.order)) + 1e-6, []
    for share in SHARES:
        first = utility.keep(share, events)
        is_kept = np.isin(cells, utility.order[: first or 0])
        points = stream.points(acep.match(later.filter(pa.array(is_kept)), workload.query)) if first else set()
        recall = len(points & all_points) / max(len(all_points), 1)
        results.append(Single(workload.name, workload.file, share, first is not None, float(is_kept.mean()), recall))
    return results


WORDS = """Written by `python -m experiments.spark.single_events`; [what this
is](../explanation/spark_overload.md#single-events-by-a-history).
A history is learned from the first half of each stream. Then a share is kept of the events of the second half that
the query can bind: the events that the history puts first. A cell has the share that was kept and the recall of match
points. `-`: the history has no order that promises more than equal chances. There whole units are shed, which find
about as large a share of the match points as is carried."""


def write_body(results: Sequence[Single]) -> str:
    """The table of the page."""
    names = list(dict.fromkeys((result.workload, result.stream) for result in results))
    lines = []
    for name, stream in names:
        workload_results = [result for result in results if result.workload == name]
        lines.append(
            (
                name,
                stream,
                *(f"{result.kept:.2f}: {result.recall:.3f}" if result.ordered else "-" for result in workload_results),
            )
        )
    return table(("", "stream", *(f"{share:g}" for share in SHARES)), lines)


def main(arguments: Sequence[str] | None = None, workloads: Mapping[str, Overload] = OVERLOADS) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m experiments.spark.single_events", description=(__doc__ or "")[:26])
    parser.add_argument("names", nargs="*", help="of workloads, or patterns of names (those of results/units.md)")
    parser.add_argument("--output", type=Path, default=RESULTS, help="folder for the page and its rows")
    options = parser.parse_args(arguments)
    names = options.names or WORKLOADS
    chosen_workloads = (
        [workload for name in names for workload in workloads_of([name])]
        if workloads is OVERLOADS
        else [*workloads.values()]
    )
    results = []
    for workload in chosen_workloads:
        results += measure_shares(workload)
        print(workload.name, *(f"{result.kept:.3f} {result.recall:.3f}" for result in results[-len(SHARES) :]))
    options.output.mkdir(parents=True, exist_ok=True)
    with (options.output / "single_events.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Single)], lineterminator="\n")
        writer.writeheader()
        writer.writerows({k: round(v, 4) if isinstance(v, float) else v for k, v in asdict(o).items()} for o in results)
    contents: dict[str, Any] = {"words": WORDS, "machine": describe_machine(), "body": write_body(results)}
    print(write_page(options.output, "single_events", title="Single events by a history", **contents))
    return 0


if __name__ == "__main__":
    sys.exit(main())
