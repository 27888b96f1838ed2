"""Choose how the ordered engine finds the matches that a query chooses, if it can."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Protocol

from acep.events.batch import Batch
from acep.native import compiled
from acep.plan.chosen.query_intervals import intervals_of
from acep.plan.chosen.query_runs import runs_of
from acep.plan.compile import Plan
from acep.row_patterns.row_values import Evaluator

if TYPE_CHECKING:
    from acep.ordered.interval_matches import ChosenIntervals
    from acep.ordered.next_events import OpenMatches
    from acep.ordered.partition_rows import RowsByPartition

__all__ = ["FindIntervals", "open_matches", "ordered_search"]


class FindIntervals(Protocol):
    """A function that finds matches in a batch."""

    def __call__(
        self, batch: Batch, *, may_continue: bool, rows: RowsByPartition | None = None
    ) -> ChosenIntervals | None:
        """Return the matches; ``None`` if the order of ids decides between them, and is not that of the stream.
        ``may_continue``: events may come after those of the batch. ``rows``: those to look at; ``None``: all."""


def ordered_search(plan: Plan) -> FindIntervals | None:
    """Return the function that finds the matches of a plan in a batch; ``None`` if there is none."""
    runs = runs_of(plan)
    if runs is not None:
        from acep.ordered.chosen_runs import find_runs

        return partial(find_runs, runs, plan, evaluator=Evaluator(plan.schema.tick_ns))
    if compiled.native() is None:
        return None
    states = intervals_of(plan)
    if states is None:
        return None
    from acep.ordered.interval_rows import find_intervals

    return partial(find_intervals, states, plan, evaluator=Evaluator(plan.schema.tick_ns))


def open_matches(plan: Plan) -> OpenMatches | None:
    """Return what follows the open matches of a plan over a stream; ``None`` where :func:`ordered_search` does, and
    where conditions read the first row."""
    runs = runs_of(plan)
    if runs is not None:
        from acep.ordered.open_runs import OpenRuns

        return OpenRuns(runs, plan)
    states = None if compiled.native() is None else intervals_of(plan)
    if states is None or states.is_tied:
        return None
    from acep.ordered.open_intervals import OpenIntervals

    return OpenIntervals(states, plan)
