"""Run a query over a whole table in the order of its chosen matches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from acep.events.batch import Batch
from acep.matches.found_columns import FoundColumns
from acep.matches.records import Counts, Found
from acep.plan.compile import Plan
from acep.plan.ordered.query_runs import RunsPlan
from acep.runtime.chosen_runs import first_ending_runs, longest_runs
from acep.runtime.interval_matches import matches_of_intervals
from acep.runtime.partition_rows import ids_rise
from acep.runtime.run_rows import rows_of_runs

if TYPE_CHECKING:
    from acep.matches.partial_columns import PartialColumns

__all__ = ["OrderedExecutor", "find_runs"]


def find_runs(runs: RunsPlan, plan: Plan, batch: Batch) -> tuple[FoundColumns, int] | None:
    """Return the matches that are runs of one variable, and how many events fit it; ``None`` if the order of ids
    decides between matches, and is not that of the stream."""
    rows = rows_of_runs(runs, plan, batch)
    if runs.needs_order and not ids_rise(batch, rows.events, of_one_time=runs.needs_order == "time"):
        return None
    firsts, lasts = longest_runs(rows) if runs.is_longest else first_ending_runs(rows)
    return matches_of_intervals(plan, batch, rows.events, firsts, lasts), len(rows)


@dataclass
class OrderedExecutor:
    """The executor of a plan over a table that comes as one batch. ``find`` returns its matches and the work, or
    ``None`` where it cannot; then ``run_otherwise`` returns them."""

    find: Callable[[Batch], tuple[FoundColumns, int] | None]
    run_otherwise: Callable[[Batch], tuple[Sequence[Found], Counts]]
    totals: Counts = field(default_factory=Counts)

    def push(self, batch: Batch) -> Sequence[Found]:
        """Return the matches of the table."""
        answer = self.find(batch)
        if answer is None:
            matches, self.totals = self.run_otherwise(batch)
            return matches
        matches, work = answer
        self.totals = Counts(events=len(batch), nodes=len(matches), touches=work, matches=len(matches))
        return matches

    def finish(self) -> Sequence[Found]:
        """Return nothing: all matches were given."""
        return []

    def advance(self, clock: int) -> Sequence[Found]:  # noqa: ARG002
        """Return nothing, as :meth:`finish` does."""
        return []

    def counted(self) -> None:
        """Return nothing: matches are made."""
        return

    def low(self) -> int | None:
        """Return nothing: there are no later matches."""
        return None

    def all_counts(self) -> list[Counts]:
        """Return the work, in events that were looked at."""
        return [self.totals]

    def live(self) -> int:
        """Return 0: no partial match lives."""
        return 0

    def live_in(self, states: Sequence[int]) -> int:  # noqa: ARG002
        """Return 0, as :meth:`live` does."""
        return 0

    def partial_matches(self, limit: int, states: Sequence[int], *, apart: bool) -> PartialColumns:
        """Raise: a whole table is not asked for partial matches."""
        raise AssertionError(limit, states, apart)

    def revise(self, removed: Batch | None, batch: Batch, again: int) -> Sequence[Found]:
        """Raise: a whole table is not revised."""
        raise AssertionError(removed, batch, again)

    def change(self, plan: Plan) -> None:
        """Raise: queries over a whole table do not change."""
        raise AssertionError(plan)

    def check(self, plan: Plan) -> None:
        """Raise, as :meth:`change` does."""
        raise AssertionError(plan)

    def dump(self) -> Any:
        """Raise: there is no snapshot of a whole table."""
        raise AssertionError

    def load(self, data: Any) -> None:
        """Raise, as :meth:`dump` does."""
        raise AssertionError(data)
