"""Replay a sample exactly, after cutting it to what can be replayed often."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, log10
from typing import Any

import pyarrow as pa

from acep.plan.compile import Plan
from acep.training.match_points import Partitions
from acep.tuning.replay import Meter, SampleRun, draws_text, measure_fit, replay
from acep.tuning.sample import Sample, draw
from acep.tuning.trials import CHOOSING, ENOUGH

__all__ = ["ExactSample", "exact_sample", "why_too_few"]

SHARES = (40, 8)
"""The exact replay may take one part in so many of all touches; more where fewer leave too few windows with a match."""

ATTEMPTS = 3  # samples of fewer whole partitions that are tried, before the first events are taken
WINDOW_FACTOR = 2  # how many times as many windows as are just enough are aimed at


@dataclass(frozen=True)
class ExactSample:
    """A sample with its exact replay. ``drawn``: the sample before it was cut."""

    sample: Sample
    replay: SampleRun
    drawn: Sample

    @property
    def is_cut(self) -> bool:
        """Return whether the sample was cut for want of work."""
        return self.sample.events < self.drawn.events


def exact_sample(
    table: pa.Table, plan: Plan, columns: Mapping[str, Any], size: float | None, meter: Meter, engine: str, kind: str,
    partitions: Partitions,
) -> ExactSample:  # fmt: skip
    """Draw a sample of a table, cut it to what can be replayed often, and replay it exactly."""
    drawn = draw(table, plan, size)
    for part in SHARES:
        sample = _cut(table, plan, columns, drawn, meter, max(meter.limit // part, 1), engine)
        run = replay(sample.table, plan.query, columns, partitions, meter, engine=engine)
        exact = ExactSample(sample, run, drawn)
        if not exact.is_cut or run.draws_of(kind) >= ENOUGH:
            break
    if exact.is_cut:
        meter.cut.append(
            f"the sample: all {drawn.events:,} events take too many touches or matches to replay them often"
        )
    return exact


def _cut(
    table: pa.Table, plan: Plan, columns: Mapping[str, Any], drawn: Sample, meter: Meter, touches: int, engine: str
) -> Sample:
    """Return the sample, or as much of it as can be replayed within so many ``touches``: fewer whole partitions, or
    else the first events."""
    fits = measure_fit(drawn.table, plan.query, columns, meter, touches, engine, CHOOSING).events
    first = drawn.cut(fits) if fits < drawn.events else drawn
    size = fits
    for _ in range(ATTEMPTS):
        if fits == drawn.events or not size:
            break
        smaller = draw(table, plan, size)
        if not smaller.partitions:
            break
        size = measure_fit(smaller.table, plan.query, columns, meter, touches, engine, CHOOSING).events
        if size == smaller.events:
            return smaller
    return first


def why_too_few(exact: ExactSample, kind: str, effort: int) -> str:
    """Return why nothing is said of the recall of match points or bundles (``kind``), and what would help: more than
    the ``effort`` of now, a larger sample, or a longer stream."""
    sample, n_draws = exact.sample, exact.replay.draws_of(kind)
    what = f"a resource budget and a policy: the sample has {draws_text(n_draws, kind)}, "
    what += f"and less than {ENOUGH} is too small to say anything of recall"
    if exact.is_cut:
        needed_effort = effort * WINDOW_FACTOR * ENOUGH / max(n_draws, 1)
        return f"{what}; it was cut for want of work: give more, as effort={_rounded_up(needed_effort)}"
    if sample.events < sample.whole:
        size = min(sample.whole, sample.events * WINDOW_FACTOR * ENOUGH // max(n_draws, 1))
        return f"{what}; take a larger sample, as sample={_rounded_up(size)}"
    return f"{what}; it is the whole stream: give a longer one"


def _rounded_up(number: float) -> int:
    """Return a number rounded up to one digit.

    >>> _rounded_up(43_000), _rounded_up(9.5)
    (50000, 10)
    """
    unit = 10 ** int(log10(max(number, 1)))
    return int(ceil(number / unit) * unit)
