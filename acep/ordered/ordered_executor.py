"""Run a query over a whole table in the order of its chosen matches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from acep.events.batch import Batch
from acep.matches.records import Counts, Found
from acep.ordered.interval_matches import matches_of_intervals
from acep.ordered.ordered_choice import FindIntervals
from acep.plan.compile import Plan

if TYPE_CHECKING:
    from acep.matches.partials.partial_columns import PartialColumns

__all__ = ["OrderedExecutor"]


@dataclass
class OrderedExecutor:
    """The executor of a plan over a table that comes as one batch. ``find`` returns its matches, or ``None`` where it
    cannot; then ``run_otherwise`` returns them."""

    plan: Plan
    find: FindIntervals
    run_otherwise: Callable[[Batch], tuple[Sequence[Found], Counts]]
    totals: Counts = field(default_factory=Counts)

    def push(self, batch: Batch) -> Sequence[Found]:
        """Return the matches of the table."""
        chosen = self.find(batch, may_continue=False)
        if chosen is None:
            matches, self.totals = self.run_otherwise(batch)
            return matches
        all_matches = matches_of_intervals(self.plan, batch, chosen)
        self.totals = Counts(events=len(batch), nodes=len(all_matches), touches=chosen.work, matches=len(all_matches))
        return all_matches

    def finish(self) -> Sequence[Found]:
        """Return nothing: all matches were given."""
        return []

    def advance(self, clock: int) -> Sequence[Found]:  # noqa: ARG002
        """Return nothing, as :meth:`finish` does."""
        return []

    def take_counted(self) -> None:
        """Return nothing: matches are made."""
        return

    def earliest_open_end(self) -> int | None:
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

    def revise(self, removed: Batch | None, batch: Batch, n_rematched: int) -> Sequence[Found]:
        """Raise: a whole table is not revised."""
        raise AssertionError(removed, batch, n_rematched)

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
