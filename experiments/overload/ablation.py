"""Measure each part of the history policy: ``python -m experiments.overload.ablation [NAME ...] [--output DIR]``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from acep.budget.policies import POLICIES
from acep.learning.policies.history_policy import HistoryPolicy, ScoringConfiguration
from acep.learning.policy import Policy
from acep.learning.policy_context import PolicyContext
from acep.learning.shedding_table import SheddingTable
from experiments.machine import limit_memory
from experiments.overload.figure import MEMORY, FigurePoint, Spec, run_command
from experiments.overload.generalise import freeze
from experiments.overload.paired import compare_with_best
from experiments.overload.trial import make_warm, measure_exact, stream, try_policy
from experiments.overload.workload import Overload
from experiments.results import table

__all__ = ["SPEC", "VARIANTS", "main"]

SHARES = (0.25, 0.1, 0.05)
SHARE = 0.1
ALL_PARTS, UNWATCHED = "all parts", "nothing watched or learned in the test"
USUAL = ScoringConfiguration()


@dataclass
class Binned(HistoryPolicy):
    """The policy with match vectors of other bins of the window (``windows``) and of the time since (``waits``)."""

    windows: int = 1
    waits: int = 1

    def begin(self, context: PolicyContext, seed: int) -> SheddingTable:
        """Begin without any knowledge."""
        super().begin(context, seed)
        self.grid = context.grid(windows=self.windows, waits=self.waits)
        return self._shedding_table()


VARIANTS: dict[str, Callable[[], Policy]] = {
    ALL_PARTS: HistoryPolicy,
    "ways not tried": partial(HistoryPolicy, tries=False),
    "no registers": partial(HistoryPolicy, terms=False),
    "no bins of time": Binned,
    "half the bins": partial(Binned, windows=4, waits=3),
    "twice the bins": partial(Binned, windows=16, waits=6),
    "with ages": partial(HistoryPolicy, ages=True),
    "no costs": partial(HistoryPolicy, costs=False),
    "no decay": partial(HistoryPolicy, tries=False, configuration=replace(USUAL, decay=0.0)),
    "half the decay": partial(HistoryPolicy, tries=False, configuration=replace(USUAL, decay=4.0)),
    "twice the decay": partial(HistoryPolicy, tries=False, configuration=replace(USUAL, decay=16.0)),
    "half the temper": partial(HistoryPolicy, tries=False, configuration=replace(USUAL, temper=0.25)),
    "worth believed in full": partial(HistoryPolicy, tries=False, configuration=replace(USUAL, temper=1.0)),
    "no noise": partial(HistoryPolicy, tries=False, configuration=replace(USUAL, noise=0)),
    "texts and keys not told apart": partial(HistoryPolicy, tries=False, configuration=replace(USUAL, hashed=False)),
    "no forgetting": partial(HistoryPolicy, forget=1.0),
    "temporal differences": partial(HistoryPolicy, differences=True),
    "for bundles": partial(HistoryPolicy, target="bundles"),
    "one of several experts": POLICIES["experts"],
}
WORDS = f"""Written by `python -m experiments.overload.ablation`. The policy *history* without one of its parts, each
variant with what it learned itself from an exact run over the first half of the stream; recall on the second half. Last
stands what it has learned, kept as it is: nothing is explored.
The difference at {SHARE:.0%} of the work is that of the variant to all parts, with intervals of a paired bootstrap
over workloads and seeds."""


def measure_variants(workload: Overload, seed: int) -> Iterable[FigurePoint]:
    """Measure every variant on one workload."""
    halves = stream(workload, seed)
    truth = measure_exact(halves, "points", repeats=1)
    makers = {name: make_warm(halves, truth.engine, make, seed) for name, make in VARIANTS.items()}
    makers[UNWATCHED] = freeze(makers[ALL_PARTS])
    for name, maker in makers.items():
        for share in SHARES:
            yield FigurePoint(
                workload.name, seed, name, share, **try_policy(halves, truth, maker, share, seed=seed, repeats=1)
            )


def differences(rows: Sequence[FigurePoint]) -> str:
    """Return the gain from each part, with its interval."""
    lines = []
    for name in dict.fromkeys(row.series for row in rows if row.series != ALL_PARTS):
        cells = []
        for measure in ("points", "bundles"):
            recalls: dict[str, dict[str, list[float]]] = {name: {}, ALL_PARTS: {}}
            for row in rows:
                if row.series in recalls and row.share == SHARE:
                    recalls[row.series].setdefault(row.workload, []).append(float(getattr(row, measure)))
            part_gain = compare_with_best(recalls, name)
            low, high = part_gain.interval95
            cells += [f"{part_gain.mean - part_gain.other:+.3f}", f"{low:+.3f} to {high:+.3f}"]
        lines.append((name, *cells))
    head = ("", "points", "95 %", "bundles", "95 %")
    return f"## Difference to all parts at {SHARE:.0%} of the work\n\n{table(head, lines)}"


SPEC = Spec(
    "ablation",
    "What each part of the history policy adds",
    WORDS,
    ("*",),
    measure_variants,
    "share of the exact touches",
    log=True,
    x_format="{:.0%}",
    body=differences,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command."""
    return run_command(SPEC, arguments)


if __name__ == "__main__":
    limit_memory(MEMORY)
    sys.exit(main())
