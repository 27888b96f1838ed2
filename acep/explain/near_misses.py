"""List near misses: of each of a few keys how far it came without becoming a match, and the condition that failed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from acep.events.empty_schema import with_usable_types
from acep.events.tables import batch_of, key_to_input, schema_of
from acep.explain.closest_partial import Furthest, check_sources, furthest, nearest_keys
from acep.explain.event_lines import event_lines
from acep.explain.recorder import MissRecorder, Wanted
from acep.pattern.tree import Query
from acep.plan.compile import compile_query

__all__ = ["NearMisses", "near_misses"]

MOST_LOOKS = 30_000
"""The looks at partial matches, one of each for an event, after which no further events are taken."""


@dataclass(frozen=True)
class NearMisses:
    """The near misses of the ``reports``, one for a key, the nearest first. ``events``: the number of events, of which
    the first ``looked_at`` were looked at; ``keys``: of how many keys an event came near a match."""

    reports: tuple[Furthest, ...]
    events: int
    looked_at: int
    keys: int


def near_misses(table: pa.Table, query: Query, most: int, most_looks: int = MOST_LOOKS, **columns: Any) -> NearMisses:
    """Return the near misses of the ``most`` keys that came nearest, those without a match first. ``columns`` are the
    arguments of :func:`acep.events.tables.schema_of`.

    Raises :class:`QueryError` for a query over the matches of others.

    >>> from acep.events.tables import to_table
    >>> from acep.pattern.text.sase import parse
    >>> table = to_table({"ts": [1, 2, 3, 4], "type": list("ABAB"), "k": list("uuvv"), "x": [5, 4, 5, 9]})
    >>> misses = near_misses(table, parse("PATTERN SEQ(A a, B b) WHERE [k] AND b.x > a.x WITHIN 9"), 1)
    >>> misses.reports[0].key, misses.reports[0].failed[0].reason
    ({'k': 'u'}, 'b.x > a.x does not hold (b.x = 4, a.x = 5)')
    """
    table = with_usable_types(table, [query], columns)
    schema = schema_of(table.schema, **columns)
    plan = compile_query(query, schema)
    check_sources(plan)
    batch = batch_of(table, schema, tuple(dict.fromkeys([*plan.columns, *plan.keys])))
    recorder = MissRecorder(plan, Wanted(None), most_looks)
    keys, _ = nearest_keys(recorder, batch)
    if recorder.n_seen < len(batch):
        batch = next(iter(batch.parts(max(1, recorder.n_seen))))
    reports = [
        replace(furthest(plan, batch, key), key=key_to_input(key, plan.keys, plan.schema)) for key in keys[:most]
    ]
    shown = [tuple(event_lines(table, schema, plan, dict.fromkeys(report.ids))) for report in reports]
    reports = [replace(report, shown=lines) for report, lines in zip(reports, shown, strict=True) if report.state]
    return NearMisses(tuple(reports), len(table), recorder.n_seen, len(keys))
