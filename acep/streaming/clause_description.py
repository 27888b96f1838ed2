"""Describe a MATCH_RECOGNIZE clause that runs in a streaming job, as data that goes to the workers."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa

from acep.pattern.expressions import Span
from acep.plan.ordered.ordered_plan import OrderedPlan
from acep.row_patterns.match_rows import select_columns

__all__ = ["JobClause", "without_trees"]


@dataclass(frozen=True)
class JobClause:
    """A clause. ``text``: its text with what else decides its state; ``plan``: without trees of sqlglot, which workers
    may lack; ``columns``: those of the input. ``selected``: what a SELECT takes of the result (``None``: all);
    ``casts``: the types to cast the result to (``None``: as it is); ``names``: those that it has in the job.
    ``has_computed_buckets``: rows are spread by the keys of partitions, which are expressions."""

    text: str
    plan: OrderedPlan
    columns: tuple[str, ...]
    selected: tuple[tuple[str, str, Span], ...] | None
    casts: tuple[pa.DataType | None, ...]
    names: tuple[str, ...]
    has_computed_buckets: bool = False

    def select(self, rows: pa.Table) -> pa.Table:
        """Return rows of the clause as those of the result of the job."""
        rows = rows if self.selected is None else select_columns(rows, self.selected)
        arrays = [
            column if cast is None or column.type == cast else column.cast(cast)
            for column, cast in zip(rows.columns, self.casts, strict=True)
        ]
        return pa.table(arrays, names=[*self.names])


def without_trees(plan: OrderedPlan) -> OrderedPlan:
    """Return a plan without the trees of expressions, which it does not run."""
    return replace(plan, clause=replace(plan.clause, partition=(), order=(), measures=(), definitions=()))
