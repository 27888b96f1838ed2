"""Measure a change in the pattern of success: ``python -m experiments.overload.drift [--output DIR]``.

In the generated stream, the tag of an ``A`` shows whether it will find its ``C``. In the middle of the test the tags
change their meaning.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import pyarrow as pa

from acep.budget.policies import POLICIES
from experiments.machine import limit_memory
from experiments.overload.figure import MEMORY, FigurePoint, Spec, run_command
from experiments.overload.generalise import freeze
from experiments.overload.trial import Stream, Timed, make_warm, measure_exact, run, stream, try_policy
from experiments.overload.workload import Overload

__all__ = ["SPEC", "Drifting", "main"]

ROWS = 800_000
KEYS = 40
TAGS = 64
BLOCKS = 16
SHARE = 0.1
# A difference, since an index over partial matches finds equal tags, and would leave little work to choose in.
QUERY = """PATTERN SEQ(A a, B b, C c)
WHERE skip_till_any_match(a, b, c) { [key] AND b.value > a.value AND c.tag - a.tag = 0 AND c.value > b.value }
WITHIN 2000"""
WORDS = f"""Written by `python -m experiments.overload.drift`. A generated stream of {ROWS:,} events and {KEYS} keys:
an *A* bears one of {TAGS} tags and is of use only if a *C* of its tag comes. In the first half, from which policies
learn exactly, and in the first half of the test nearly every *C* has one of the first {TAGS // 2} tags, then one of
the others. Recall in {BLOCKS} parts of the test, at {SHARE:.0%} of the exact touches."""


@dataclass(frozen=True)
class Drifting(Overload):
    """The generated stream; ``rows`` of it."""

    rows: int = ROWS

    def events(self) -> pa.Table:
        """Return the events, the same in every run."""
        return drifting_stream(self.rows)


@cache
def drifting_stream(rows: int = ROWS, seed: int = 16) -> pa.Table:
    """Return the stream: ``ts`` (0, 1, ...), ``type`` (``A``, ``B``, ``C``), ``key``, ``tag`` and ``value`` (0 .. 999).
    After three quarters nearly all ``C`` have other tags than before."""
    random = np.random.default_rng(seed)
    kind = random.integers(0, 3, rows)
    tag = random.integers(0, TAGS, rows)
    late = np.arange(rows) >= rows * 3 // 4
    usual = random.integers(0, TAGS // 2, rows) + np.where(late, TAGS // 2, 0)
    tag = np.where((kind == 2) & (random.random(rows) < 0.97), usual, tag)
    names = pa.array(["A", "B", "C"])
    return pa.table(
        {
            "ts": pa.array(np.arange(rows)),
            "type": pa.DictionaryArray.from_arrays(pa.array(kind.astype(np.int8)), names),
            "key": pa.array(random.integers(0, KEYS, rows)),
            "tag": pa.array(tag),
            "value": pa.array(random.integers(0, 1000, rows)),
        }
    )


def measure_blocks(workload: Overload, seed: int) -> Iterable[FigurePoint]:
    """Measure all policies in every part of the test."""
    halves: Stream = stream(workload, seed)
    truth = measure_exact(halves, "points", repeats=1)
    before = make_warm(halves, truth.engine, POLICIES["history"], seed)
    makers = {
        "history": before,
        "history, frozen": freeze(before),
        "history, learned nothing before": POLICIES["history"],
        "experts": make_warm(halves, truth.engine, POLICIES["experts"], seed),
        "hybrid": make_warm(halves, truth.engine, POLICIES["hybrid"], seed),
        "newest-per-state": POLICIES["newest-per-state"],
        "random": POLICIES["random"],
    }
    first, last = int(halves.test[0].ts[0]), int(halves.test[-1].ts[-1]) + 1
    edges = np.linspace(first, last, BLOCKS + 1).astype(np.int64)
    for name, maker in makers.items():
        outcome = try_policy(halves, truth, maker, SHARE, seed=seed, repeats=1)
        policy_run = run(halves, truth.engine, Timed(maker(), seed, truth.rate(SHARE, halves.events)))
        for block in range(BLOCKS):
            start, end = int(edges[block]), int(edges[block + 1])
            points, bundles, _ = truth.restrict(start, end).recall(policy_run.restrict(start, end))
            block_outcome = outcome | {"points": points, "bundles": bundles}
            yield FigurePoint(workload.name, seed, name, (block + 1) / BLOCKS, **block_outcome)


SPEC = Spec(
    "drift",
    "When the pattern of success changes",
    WORDS,
    (),
    measure_blocks,
    "part of the test that has passed",
    x_format="{:.0%}",
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command."""
    return run_command(SPEC, arguments, streams=[Drifting("drift", "tags that matter change", "none", QUERY)])


if __name__ == "__main__":
    limit_memory(MEMORY)
    sys.exit(main())
