"""List near misses: of each of a few keys how far it came without becoming a match, and the condition that failed."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa

from acep.events.tables import batch_of, key_to_input
from acep.explain.closest_partial import Furthest, check_sources, furthest, nearest_keys
from acep.explain.event_lines import event_lines
from acep.explain.recorder import MissRecorder, Wanted
from acep.pattern.tree import Query
from acep.plan.compile import compile_query
from acep.plan.schema import Schema

__all__ = ["MOST_EVENTS", "NearMisses", "near_misses"]

MOST_LOOKS = 20_000
"""The looks at partial matches, one of each for an event, after which no further events are taken."""
MOST_EVENTS = 20_000
"""The most events that are looked at."""


@dataclass(frozen=True)
class NearMisses:
    """The near misses of the ``reports``, one for a key, the nearest first. ``events``: the number of events, of which
    the first ``looked_at`` were looked at; ``keys``: of how many keys an event came near a match."""

    reports: tuple[Furthest, ...]
    events: int
    looked_at: int
    keys: int


def near_misses(table: pa.Table, query: Query, limit: int, schema: Schema) -> NearMisses:
    """Return the near misses of the ``limit`` keys that came nearest, those without a match first, among the first
    20,000 events at most.

    Raises :class:`QueryError` for a query over the matches of others.

    >>> from acep.events.tables import schema_of, to_table
    >>> from acep.pattern.text.sase import parse
    >>> table = to_table({"ts": [1, 2, 3, 4], "type": list("ABAB"), "k": list("uuvv"), "x": [5, 4, 5, 9]})
    >>> query = parse("PATTERN SEQ(A a, B b) WHERE [k] AND b.x > a.x WITHIN 9")
    >>> misses = near_misses(table, query, 1, schema_of(table.schema))
    >>> misses.reports[0].key, misses.reports[0].failed[0].reason
    ({'k': 'u'}, 'b.x > a.x does not hold (b.x = 4, a.x = 5)')
    """
    if not table.num_rows:
        return NearMisses((), 0, 0, 0)
    plan = compile_query(query, schema)
    check_sources(plan)
    batch = batch_of(table, schema, tuple(dict.fromkeys([*plan.columns, *plan.keys])))
    batch = next(iter(batch.parts(MOST_EVENTS)))
    recorder = MissRecorder(plan, Wanted(None), MOST_LOOKS)
    keys, _ = nearest_keys(recorder, batch)
    n_seen = recorder.n_looked_at(len(batch))
    if n_seen < len(batch):
        batch = next(iter(batch.parts(max(1, n_seen))))
    furthest_of_keys = [(key, furthest(plan, batch, key)) for key in keys[:limit]]
    reports = [
        replace(
            report,
            key=key_to_input(key, plan.keys, plan.schema),
            shown=tuple(event_lines(table, schema, plan, dict.fromkeys(report.ids))),
        )
        for key, report in furthest_of_keys
        if report.state
    ]
    return NearMisses(tuple(reports), len(table), n_seen, len(keys))
