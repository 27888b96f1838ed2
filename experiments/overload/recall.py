"""Recall against work and time: ``python -m experiments.overload.recall [NAME ...] [--policies P ...] [--seeds N]``.

Each policy runs on the test half of each workload, with an allowance of so many hundredths of the exact touches.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from acep.budget.policies import POLICIES
from acep.learning.policies.baselines import RULES, Rule
from acep.learning.policy import Policy
from experiments.ages import read_origin
from experiments.charts import Panel, chart
from experiments.machine import limit_memory
from experiments.overload.figure import MEMORY, Figure, write_figure
from experiments.overload.paired import area, compare_with_best
from experiments.overload.trial import REPEATS, make_warm, measure_exact, stream, try_policy
from experiments.overload.workload import Overload
from experiments.overload.workloads import OVERLOADS, choose_workloads
from experiments.results import RESULTS, raw_path, table

__all__ = ["SHARES", "Row", "main", "measure_recall", "write_body"]

Curve = dict[float, float]
"""Recall by share of the work."""
SHARES = (1.0, 0.5, 0.25, 0.1, 0.05, 0.02)
SEER = "trained-on-test"
UNCOMPARED = (SEER, "experts")
"""What they find is printed, but ``history`` is not compared with them: the one has seen the future, and ``history`` is
one of the experts of the other."""
NOTHING = 1e-9
"""A share of the work with which next to no node is looked at: what is left is to read the events."""
SHARE = 0.1
"""The share of the work at which policies are compared."""
WORDS = """Written by `python -m experiments.overload.recall`; [the policies](../explanation/best_effort.md). Each
policy runs on
the second half of each stream, with what it learned from an exact run over the first half; rules never learn, and
*trained-on-test* has learned from an exact run over the second half, and *experts* has *history* among its experts, so
that neither is one to compare it with. The allowance is a share of the touches that the cheapest exact engine makes on
the test half for the same question: *points* (and bundles) by the engine behind dominance where that makes fewer,
*matches* by the one that makes them.
*work*: touches that were made, deciding included, in shares of the exact run's. *wall*: processor time, learning and
deciding included, in shares of the exact run's in the same process; the best of several runs. *reading*: the same with
no allowance, when no node is made and events are merely read. *area*: the mean recall
from 2 to 50 % of the work, with work drawn logarithmically. Seed 0 is the whole stream; each other seed leaves out a
fifth of the partitions. Intervals: a paired bootstrap over workloads and seeds of the difference to the best other
policy of each draw."""


@dataclass(frozen=True)
class Row:
    """The results of a policy with a share of the work. ``question``: points, which includes bundles, or matches."""

    workload: str
    seed: int
    question: str
    engine: str
    policy: str
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
    reading: float = 0.0


def measure_recall(
    workload: Overload,
    policies: Mapping[str, Callable[[], Policy]],
    seed: int = 0,
    shares: Sequence[float] = SHARES,
    repeats: int = REPEATS,
) -> Iterable[Row]:
    """Yield all rows of a workload and seed."""
    halves = stream(workload, seed)
    truths = {question: measure_exact(halves, question) for question in ("points", "matches")}
    engines = {truth.engine: question for question, truth in truths.items()}
    nothing = partial(Rule, "newest-per-state")
    reading = {
        name: try_policy(halves, truth, nothing, NOTHING, repeats=repeats)["wall"] for name, truth in truths.items()
    }
    for name, maker in policies.items():
        makers = {engine: make_warm(halves, engine, maker, seed) for engine in engines}
        for question, truth in truths.items():
            for share in shares:
                outcome = try_policy(
                    halves, truth, makers[truth.engine], share, seed=seed, repeats=1 if share == 1 else repeats
                )
                yield Row(workload.name, seed, question, truth.engine, name, **outcome, reading=reading[question])


MEASURES = {"points": "points", "bundles": "points", "matches": "matches"}
"""What is found, and the question that asks for it."""


def figures(
    rows: Sequence[Row], measure: str, summarize: Callable[[Curve], float]
) -> dict[str, dict[str, list[float]]]:
    """Return one number a seed, by policy and workload, made of its recalls by share."""
    curves: dict[str, dict[str, dict[int, Curve]]] = {}
    for row in rows:
        if row.question == MEASURES[measure]:
            recalls = curves.setdefault(row.policy, {}).setdefault(row.workload, {}).setdefault(row.seed, {})
            recalls[row.share] = float(getattr(row, measure))
    return {
        p: {w: [summarize(curve) for curve in seeds.values()] for w, seeds in workloads.items()}
        for p, workloads in curves.items()
    }


def write_body(rows: Sequence[Row]) -> str:
    """Return the tables of the page, of the workloads on which all policies have run."""
    names = {policy: {row.workload for row in rows if row.policy == policy} for policy in {row.policy for row in rows}}
    rows = [row for row in rows if all(row.workload in workloads for workloads in names.values())]
    parts = [_means(rows), _gains(rows)]
    parts += [_by_workload(rows, measure) for measure in MEASURES]
    return "\n\n".join(part for part in parts if part)


def _means(rows: Sequence[Row]) -> str:
    shares = sorted({row.share for row in rows}, reverse=True)
    out = []
    for measure, question in (*MEASURES.items(), ("wall", "points"), ("work", "points")):
        lines = []
        for policy in dict.fromkeys(row.policy for row in rows):
            policy_rows = [row for row in rows if row.policy == policy and row.question == question]
            cells = [_mean(getattr(row, measure) for row in policy_rows if row.share == share) for share in shares]
            lines.append((policy, *(f"{cell:.3f}" for cell in cells)))
        named = f"Recall of {measure}" if measure in MEASURES else f"Share of the exact {measure}"
        out.append(f"## {named}: mean over workloads\n\n" + table(("", *(f"{share:.0%}" for share in shares)), lines))
    return "\n\n".join(out)


def _gains(rows: Sequence[Row]) -> str:
    policies = {row.policy for row in rows} - set(UNCOMPARED)
    if "history" not in policies or len(policies) < 2:
        return ""
    curve = sorted({row.share for row in rows if 0.02 <= row.share <= 0.5})
    measures: dict[str, Callable[[Curve], float]] = {}
    if SHARE in curve:
        measures[f"at {SHARE:.0%}"] = lambda recalls: recalls[SHARE]
    if len(curve) > 1:
        measures["area"] = lambda recalls: area([(share, recalls[share]) for share in curve])
    lines = []
    rows = [row for row in rows if row.policy not in UNCOMPARED]
    for measure in ("points", "bundles"):
        for name, summarize in measures.items():
            comparison = compare_with_best(figures(rows, measure, summarize), "history")
            cells = (
                f"{comparison.mean:.3f}",
                comparison.best,
                f"{comparison.other:.3f}",
                f"{comparison.mean - comparison.other:+.3f}",
            )
            between = [f"{low:+.3f} to {high:+.3f}" for low, high in (comparison.interval90, comparison.interval95)]
            lines.append((f"{measure}, {name}", *cells, *between, f"{comparison.worst:+.3f}", comparison.where))
    head = ("", "history", "best other", "has", "difference", "90 %", "95 %", "worst workload", "which")
    words = "*worst workload*: the difference to whichever other policy is best there."
    return f"## History against the best of the others\n\n{words}\n\n{table(head, lines)}" if lines else ""


def _by_workload(rows: Sequence[Row], measure: str) -> str:
    recalls = figures(rows, measure, lambda curve: curve.get(SHARE, math.nan))
    policies = list(recalls)
    exacts = {row.workload: row for row in rows if row.question == MEASURES[measure] and row.seed == 0}
    shown = "history" if "history" in policies else policies[-1]
    walls = {
        row.workload: row.wall
        for row in rows
        if row.question == MEASURES[measure] and row.share == SHARE and row.policy == shown and row.seed == 0
    }
    lines = []
    for name, row in exacts.items():
        means = {policy: _mean(recalls[policy][name]) for policy in policies}
        rival_means = [mean for policy, mean in means.items() if policy not in ("history", *UNCOMPARED)]
        cells = [row.engine, f"{getattr(row, f'all_{measure}'):,}", *(f"{mean:.3f}" for mean in means.values())]
        cells.append(f"{means['history'] - max(rival_means):+.3f}" if "history" in means and rival_means else "")
        lines.append((name, *cells, f"{walls[name]:.1%}" if name in walls else "", f"{row.reading:.1%}"))
    head = ("", "engine", measure, *policies, "history to best other", f"wall, {shown}", "reading")
    return f"## {measure.capitalize()} at {SHARE:.0%} of the work\n\n{table(head, lines)}"


def draw_picture(rows: Sequence[Row]) -> str:
    """Draw the mean recall against work, and against time."""
    panels = []
    for measure, question in MEASURES.items():
        for x_column in ("share", "wall"):
            series: dict[str, list[tuple[float, float]]] = {}
            for policy in dict.fromkeys(row.policy for row in rows):
                policy_rows = [row for row in rows if row.policy == policy and row.question == question]
                series[policy] = [
                    (
                        _mean(getattr(row, x_column) for row in policy_rows if row.share == share),
                        _mean(getattr(row, measure) for row in policy_rows if row.share == share),
                    )
                    for share in sorted({row.share for row in policy_rows})
                ]
            words = "share of the exact touches" if x_column == "share" else "share of the exact run's time"
            panels.append(Panel(f"{measure}: mean recall", series, words, log=True))
    return chart([*panels[::2], *panels[1::2]], columns=3)


def _mean(values: Iterable[float]) -> float:
    numbers = list(values)
    return sum(numbers) / len(numbers) if numbers else math.nan


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and write where asked; all workloads but the controls go to ``docs/results/``."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.overload.recall", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="workloads, * and ? as in file names")
    parser.add_argument("--policies", nargs="+", choices=list(POLICIES), default=[*POLICIES][1:] + [*POLICIES][:1])
    parser.add_argument("--seeds", type=int, default=1, help="the whole stream, and so many less one samples of it (1)")
    parser.add_argument("--shares", nargs="+", type=float, default=list(SHARES), help="shares of the exact touches")
    parser.add_argument("--repeats", type=int, default=REPEATS, help=f"runs of which the fastest counts ({REPEATS})")
    parser.add_argument(
        "--output", type=Path, help="folder for the results; what it has of other workloads and policies stays"
    )
    options = parser.parse_args(arguments)
    try:
        workloads = [workload for workload in choose_workloads(options.names) if options.names or not workload.control]
    except ValueError as error:
        parser.error(str(error))
    policies = {name: POLICIES[name] for name in options.policies}
    folder = options.output or (None if options.names else RESULTS)
    rows = _read_stored(folder, {(workload.name, policy) for workload in workloads for policy in policies})
    origin = read_origin(folder / "recall.md") if folder and rows else {}
    for workload in workloads:
        for seed in range(options.seeds):
            for row in measure_recall(workload, policies, seed, options.shares, options.repeats):
                rows.append(row)
                if row.share == SHARE:
                    print(_line(row), flush=True)
        if folder:  # again after each workload: what was measured outlives a run that is stopped
            order, ranks = list(OVERLOADS), [*RULES, *POLICIES]
            rows.sort(key=lambda row: (order.index(row.workload), row.seed, ranks.index(row.policy)))
            figure = Figure(
                "recall", "Recall of the best-effort policies", WORDS, rows, write_body(rows), draw_picture(rows)
            )
            write_figure(folder, figure, origin)
    print(_means(rows), _gains(rows), sep="\n\n")
    return 0


def _read_stored(folder: Path | None, measured: set[tuple[str, str]]) -> list[Row]:
    """Return the rows that the folder has of other workloads and policies."""
    path = raw_path(folder, "recall") if folder else None
    if path is None or not path.is_file():
        return []
    stored_rows = [Row(**row) for row in json.loads(path.read_text(encoding="utf-8"))["results"]]
    return [row for row in stored_rows if (row.workload, row.policy) not in measured]


def _line(row: Row) -> str:
    recalls = " ".join(f"{getattr(row, measure):.3f}" for measure in MEASURES)
    spent = f"work {row.work:.3f} wall {row.wall:.3f}"
    return f"{row.workload:22s}{row.seed} {row.question:8s}{row.policy:18s}{recalls}  {spent}"


if __name__ == "__main__":
    limit_memory(MEMORY)
    sys.exit(main())
