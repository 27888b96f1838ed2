"""What each part of the history policy adds: ``python -m experiments.overload.ablation [NAME ...] [--output DIR]``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial

from acep.learning.policy import Policy
from acep.learning.remembering import Remembering, Way
from experiments.machine import limit_memory
from experiments.overload.figure import MEMORY, Found, Spec, command
from experiments.overload.paired import gain
from experiments.overload.trial import exact, stream, tried, warmed
from experiments.overload.workload import Overload
from experiments.results import table

__all__ = ["SPEC", "VARIANTS", "main"]

SHARES = (0.25, 0.1, 0.05)
HELD = 0.1
WHOLE = "all parts"
USUAL = Way()
VARIANTS: dict[str, Callable[[], Policy]] = {
    WHOLE: Remembering,
    "ways not tried": partial(Remembering, tries=False),
    "no registers": partial(Remembering, terms=False),
    "with ages": partial(Remembering, ages=True),
    "no costs": partial(Remembering, costs=False),
    "no decay": partial(Remembering, tries=False, way=replace(USUAL, decay=0.0)),
    "half the decay": partial(Remembering, tries=False, way=replace(USUAL, decay=4.0)),
    "twice the decay": partial(Remembering, tries=False, way=replace(USUAL, decay=16.0)),
    "half the temper": partial(Remembering, tries=False, way=replace(USUAL, temper=0.25)),
    "worth believed in full": partial(Remembering, tries=False, way=replace(USUAL, temper=1.0)),
    "no noise": partial(Remembering, tries=False, way=replace(USUAL, noise=0)),
    "texts and keys not told apart": partial(Remembering, tries=False, way=replace(USUAL, hashed=False)),
    "no forgetting": partial(Remembering, forget=1.0),
    "temporal differences": partial(Remembering, differences=True),
    "for bundles": partial(Remembering, target="bundles"),
}
WORDS = f"""Written by `python -m experiments.overload.ablation`. The policy *history* without one of its parts, each
variant with what it learned itself from an exact run over the first half of the stream; recall on the second half.
The difference at {HELD:.0%} of the work is that of the variant to all parts, with intervals of a paired bootstrap
over workloads and seeds."""


def measured(workload: Overload, seed: int) -> Iterable[Found]:
    """Every variant on one workload."""
    held = stream(workload, seed)
    truth = exact(held, "points", repeats=1)
    for name, make in VARIANTS.items():
        maker = warmed(held, truth.engine, make, seed)
        for share in SHARES:
            yield Found(workload.name, seed, name, share, **tried(held, truth, maker, share, seed=seed, repeats=1))


def differences(rows: Sequence[Found]) -> str:
    """What each part adds, with its interval."""
    lines = []
    for name in VARIANTS:
        if name == WHOLE:
            continue
        cells = []
        for what in ("points", "bundles"):
            found: dict[str, dict[str, list[float]]] = {name: {}, WHOLE: {}}
            for row in rows:
                if row.series in found and row.share == HELD:
                    found[row.series].setdefault(row.workload, []).append(float(getattr(row, what)))
            told = gain(found, name)
            low, high = told.interval95
            cells += [f"{told.mean - told.other:+.3f}", f"{low:+.3f} to {high:+.3f}"]
        lines.append((name, *cells))
    head = ("", "points", "95 %", "bundles", "95 %")
    return f"## Difference to all parts at {HELD:.0%} of the work\n\n{table(head, lines)}"


SPEC = Spec(
    "ablation",
    "What each part of the history policy adds",
    WORDS,
    ("*",),
    measured,
    "share of the exact touches",
    log=True,
    told="{:.0%}",
    body=differences,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command."""
    return command(SPEC, arguments)


if __name__ == "__main__":
    limit_memory(MEMORY)
    sys.exit(main())
