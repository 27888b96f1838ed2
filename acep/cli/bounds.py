"""Say of a bound that it cannot bind: a share of a core against a clock that runs far behind, or more than there is."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from acep.budget import Budget
    from acep.runtime.passing import Passing

__all__ = ["loose_bounds"]

FAR = 10
"""A bound is called loose where this many times of what was used would have kept to it."""


def loose_bounds(budget: Budget, passing: Passing) -> Iterator[str]:
    """A line for each bound that was so far from what the run took that it never bound."""
    if budget.memory is not None and (there := machine_memory()) is not None and int(budget.memory) > there:
        yield f"--memory is more than the {there / 2**30:.1f} GB of this machine, and can never bind"
    if not passing.report.exact:
        return
    span, spent = passing.span, max(passing.spent, 1e-3)
    if budget.cpu is not None and span is not None:
        allowed = budget.cpu * span / budget.speed
        if allowed > FAR * spent:
            speed = span / spent
            yield (
                f"--cpu {budget.cpu:g} never bound: by their clock the events take {span / budget.speed:,.0f} s, and "
                f"matching took {spent:.2f} s; --speed {speed:.3g} replays them as fast as they were matched"
            )
    if budget.latency is not None and budget.latency > FAR * max(passing.longest, 1e-3):
        yield f"--latency {budget.latency:g} never bound: the longest batch took {passing.longest:.3f} s"


def machine_memory() -> int | None:
    """The bytes of memory of this machine, where it tells."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return None
