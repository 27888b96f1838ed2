"""Lower the plans of a stream one after the other, so that each is lowered once: to choose its engine and to run it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from acep.plan.compile import Plan
from acep.plan.lower.tables import PlanTables, SharedTables, TableLowering

__all__ = ["StreamTables"]


@dataclass(frozen=True)
class StreamTables:
    """The tables of some plans of a stream: ``plans``, those of each; ``shared``, what they share; ``texts``, those of
    their predicates, by code. ``last`` has lowered the last plan. Nobody changes them: another plan makes new ones.

    >>> import acep
    >>> from acep.plan.assume import assumed_plan
    >>> plan = assumed_plan(acep.parse("PATTERN SEQ(A a, B b) WHERE a.x = 'red' AND b.x < a.x WITHIN 9"))
    >>> tables = StreamTables().add(plan)
    >>> len(tables.plans), [*tables.shared.columns], tables.texts, tables is StreamTables().add(plan)
    (1, ['x'], ('red',), True)
    """

    plans: tuple[PlanTables, ...] = ()
    shared: SharedTables = field(default_factory=SharedTables)
    texts: tuple[str, ...] = ()
    last: TableLowering | None = field(default=None, repr=False, compare=False)

    def add(self, plan: Plan) -> StreamTables:
        """Return the tables of these plans and of one more. A plan keeps those that it has as the first of a stream.

        Raises :class:`~acep.plan.lower.tables.NotNativeError` if the native core cannot run the plan.
        """
        if not self.plans and plan.lowerings:
            tables: StreamTables = plan.lowerings[0]
            return tables
        shared, codes = self.shared.copy(), {text: code for code, text in enumerate(self.texts)}
        lowering = TableLowering(plan, shared, lambda text: codes.setdefault(text, len(codes)))
        tables = StreamTables((*self.plans, lowering.tables()), shared, tuple(codes), lowering)
        if not self.plans:
            plan.lowerings.append(tables)
        return tables

    def with_demands(self) -> StreamTables:
        """Return the same with the demand on each slot of the last plan (``demands``: a relation and a bound)."""
        assert self.last is not None
        *before, tables = self.plans
        return replace(self, plans=(*before, replace(tables, arrays=tables.arrays | self.last.demands())))
