"""Warn of budget bounds that have no effect, because they are far above the need or the resources of the machine."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from acep.display import TIMED

if TYPE_CHECKING:
    from acep.budget import Budget
    from acep.matching.batch_stream import Passing

__all__ = ["loose_bounds"]

FAR = 10
"""The ratio of a bound to the use beyond which the bound is called loose."""


def loose_bounds(budget: Budget, passing: Passing) -> Iterator[str]:
    """Yield a line for each bound that was so far above the use that it had no effect."""
    if budget.memory is not None and (available := machine_memory()) is not None and int(budget.memory) > available:
        yield f"--memory is more than the {available / 2**30:.1f} GB of this machine, and can never bind"
    if not passing.report.exact:
        return
    span, spent = passing.span, max(passing.spent, 1e-3)
    if budget.cpu is not None and span is not None:
        allowed = budget.cpu * span / budget.speed
        if allowed > FAR * spent:
            fast = f"; --speed {span / spent:.3g} replays them as fast as they were matched"
            yield (
                f"--cpu {budget.cpu:g} never bound: by their clock the events take {span / budget.speed:,.0f} s, and "
                f"matching took {passing.spent:.2f} s{fast if spent >= TIMED else ''}"
            )
    if budget.latency is not None and budget.latency > FAR * max(passing.longest, 1e-3):
        yield f"--latency {budget.latency:g} never bound: the longest batch took {passing.longest:.3f} s"


def machine_memory() -> int | None:
    """Return the bytes of memory of this machine, or ``None`` if unknown."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return None
