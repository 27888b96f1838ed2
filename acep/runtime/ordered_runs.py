"""Run a query over a whole table in the order of its chosen matches, where these are runs of one variable."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from acep.events.batch import Batch
from acep.matches.records import Counts, Found
from acep.plan.compile import Plan
from acep.plan.ordered.query_runs import RunsPlan
from acep.runtime.chosen_runs import first_ending_runs, longest_runs, matches_of_runs
from acep.runtime.run_rows import RunRows, rows_of_runs

if TYPE_CHECKING:
    from acep.matches.partial_columns import PartialColumns

__all__ = ["OrderedExecutor"]


@dataclass
class OrderedExecutor:
    """The executor of a plan over a table that comes as one batch. ``run_otherwise`` returns the matches of the batch
    where the order of the ids could decide between matches and is not that of the stream."""

    plan: Plan
    runs: RunsPlan
    run_otherwise: Callable[[Batch], tuple[Sequence[Found], Counts]]
    totals: Counts = field(default_factory=Counts)

    def push(self, batch: Batch) -> Sequence[Found]:
        """Return the matches of the table."""
        rows = rows_of_runs(self.runs, self.plan, batch)
        if not _is_ordered(self.runs.needs_order, batch, rows):
            matches, self.totals = self.run_otherwise(batch)
            return matches
        firsts, lasts = longest_runs(rows) if self.runs.is_longest else first_ending_runs(rows)
        matches = matches_of_runs(self.plan, batch, rows, firsts, lasts)
        self.totals = Counts(events=len(batch), nodes=len(matches), touches=len(rows), matches=len(matches))
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
        """Return the work: the events that fit the variable, each looked at once."""
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


def _is_ordered(needed: str, batch: Batch, rows: RunRows) -> bool:
    """Return whether ids rise in the order of the stream, as far as that could decide between matches."""
    if not needed or batch.ids is None or isinstance(batch.ids, range) or len(rows) < 2:
        return True
    together = rows.begins[1:] == rows.begins[:-1]
    if needed == "time":
        ts = batch.ts[rows.rows]
        together &= ts[1:] == ts[:-1]
    ids: npt.NDArray[Any] = np.array(batch.ids, dtype=object if isinstance(batch.ids, list) else np.int64)[rows.rows]
    return bool((~together | (ids[1:] > ids[:-1])).all())
