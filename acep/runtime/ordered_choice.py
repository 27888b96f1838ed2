"""Choose how the ordered engine finds the matches of a query over a whole table, if it can."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from acep.events.batch import Batch
from acep.matches.found_columns import FoundColumns
from acep.native import compiled
from acep.plan.compile import Plan
from acep.plan.ordered.adjacent_states import adjacent_states
from acep.plan.ordered.query_runs import runs_of

__all__ = ["ordered_search"]


def ordered_search(plan: Plan) -> Callable[[Batch], tuple[FoundColumns, int] | None] | None:
    """Return the function that finds the matches of a plan in a batch, and how many rows it met; ``None`` if there is
    none."""
    runs = runs_of(plan)
    if runs is not None:
        from acep.runtime.ordered_runs import find_runs

        return partial(find_runs, runs, plan)
    if compiled.native() is None:
        return None
    states = adjacent_states(plan)
    if states is None:
        return None
    from acep.runtime.adjacent_rows import find_adjacent_matches

    return partial(find_adjacent_matches, states, plan)
