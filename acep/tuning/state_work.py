"""Count transition evaluations by the variable that a partial match has bound last."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import replace
from typing import Any

from acep.events.batch import Batch
from acep.pattern.tree import Output
from acep.plan.compile import Plan
from acep.reference.engine import MatchNode, ReferenceEngine
from acep.reference.runtime import ReferenceRuntime

__all__ = ["MAX_TOUCHES", "touches_by_variable"]

MAX_TOUCHES = 200_000  # touches of the reference runtime
LOOKS = 5  # looks at partial matches for each of them: most are of events that no arc takes

BEGINS = ""  # stands for the start, where no event is bound


class EnoughTouches(Exception):  # noqa: N818 - no error
    """The engine has made as many touches, or looks at partial matches, as it may."""


class CountingEngine(ReferenceEngine):
    """An engine that counts touches by the variable bound last, up to a ``limit``."""

    def __init__(self, plan: Plan, limit: int) -> None:
        super().__init__(plan)
        self.by_variable: Counter[str] = Counter()
        self.limit, self.looks = limit, 0

    def _try(self, node: MatchNode | None, feed: Any) -> bool:
        touches_before = feed.counts.touches
        self.looks += 1
        if touches_before >= self.limit or self.looks > LOOKS * self.limit:
            raise EnoughTouches
        waits = super()._try(node, feed)
        variable = BEGINS if node is None else self.states[node.state].var
        self.by_variable[variable] += feed.counts.touches - touches_before
        return waits


class CountingRuntime(ReferenceRuntime):
    """A runtime that makes partial matches, and no matches of them."""

    def _complete(self, *_: Any) -> None:
        """Make no matches: there may be any number."""


def touches_by_variable(plan: Plan, batch: Batch, limit: int = MAX_TOUCHES) -> tuple[dict[str, int], int]:
    """Return the touches of partial matches by the variable bound last ("": those that begin one), most first, and the
    number of events that this was counted on: as many as take ``limit`` touches of the reference runtime, or five times
    as many looks at partial matches.

    >>> import acep
    >>> from acep.events.tables import batch_of, schema_of, to_table
    >>> from acep.plan.compile import compile_query
    >>> table = to_table({"ts": [1, 2, 3, 4], "type": list("abbb")})
    >>> schema = schema_of(table.schema)
    >>> plan = compile_query(acep.parse("PATTERN SEQ(a x, b y, c z) WITHIN 9"), schema)
    >>> touches_by_variable(plan, batch_of(table, schema, ()))
    ({'x': 3, '': 1}, 4)
    """
    plan = replace(plan, query=replace(plan.query, output=Output.ALL, skip=None))  # choosing evaluates no transitions
    runtime = CountingRuntime(plan)
    runtime.engine = engine = CountingEngine(plan, limit)
    with suppress(EnoughTouches):
        runtime.push(batch.events)
    return dict((+engine.by_variable).most_common()), runtime.counts.events
