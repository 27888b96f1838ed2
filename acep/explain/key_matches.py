"""Find the events of a partition and its matches, before it is asked why there are no further ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from acep.events.batch import Batch
from acep.events.records import Id
from acep.matches.records import Found
from acep.pattern.expressions import Value
from acep.pattern.tree import Output
from acep.plan.compile import Plan
from acep.runtime.bounded_run import BoundedRun

__all__ = ["MOST_MATCHES", "MOST_TOUCHES", "KeyMatches", "events_of_key", "ids_of", "matches_of_key"]

MOST_TOUCHES = 4_000_000
"""The transition evaluations after which no further events are matched: about a second on the native core."""

SLOWER = 40  # how many times as long one takes on the reference runtime

MOST_MATCHES = 200_000
"""The matches after which no further events are matched."""

EXAMPLES = 3


@dataclass
class KeyMatches:
    """The matches of a partition: their ``number``, the first ones as ``examples``, and the ``ids`` of the events that
    they bind; where the output chooses, all of them as ``chosen``. ``rows``: only those are counted that bind all of
    these events. ``n_events``: so many of the first events were matched."""

    rows: frozenset[Id]
    number: int = 0
    examples: list[Found] = field(default_factory=list)
    ids: set[Id] = field(default_factory=set)
    chosen: list[Found] = field(default_factory=list)
    n_events: int = 0
    is_exact: bool = False

    def take(self, matches: Sequence[Found], *, chooses: bool) -> None:
        """Add matches of the partition, in output order."""
        for match in matches:
            ids = ids_of(match)
            self.ids |= ids
            if self.rows and self.rows == ids and not self.is_exact:  # matches with more events are no answer then
                self.is_exact, self.number, self.examples = True, 0, []
            if self.rows == ids if self.is_exact else self.rows <= ids:
                self.number += 1
                if len(self.examples) < EXAMPLES:
                    self.examples.append(match)
            if chooses:
                self.chosen.append(match)


def events_of_key(plan: Plan, batch: Batch, key: tuple[Value, ...]) -> tuple[Batch, int]:
    """Return the events on which the matches of a partition depend, and how many are of the partition itself: others
    matter under strict contiguity only."""
    if not plan.keys:
        return batch, len(batch)
    columns = [batch.events.values(name, plan.schema) for name in plan.keys]
    rows = np.flatnonzero([values == key for values in zip(*columns, strict=True)])
    return batch if plan.strict else batch.take(rows), len(rows)


def matches_of_key(plan: Plan, batch: Batch, key: tuple[Value, ...], rows: Sequence[Id] = ()) -> KeyMatches:
    """Match events exactly, and return the matches of one partition, of all events that there was time for.

    >>> from acep.events.tables import batch_of, schema_of, to_table
    >>> from acep.pattern.text.sase import parse
    >>> from acep.plan.compile import compile_query
    >>> table = to_table({"ts": [1, 2, 3], "type": ["A", "B", "B"]})
    >>> schema = schema_of(table.schema)
    >>> plan = compile_query(parse("PATTERN SEQ(A a, B b) WITHIN 9"), schema)
    >>> matches = matches_of_key(plan, batch_of(table, schema, ()), (), [2])
    >>> matches.number, matches.ids, matches.n_events
    (1, {0, 1, 2}, 3)
    """
    key_matches, chooses = KeyMatches(frozenset(rows)), plan.query.output is not Output.ALL
    run = BoundedRun(plan, MOST_TOUCHES, MOST_MATCHES)
    if not run.is_native:
        run.touches //= SLOWER
    for matches in run.parts(batch):
        key_matches.take([match for match in matches if match.key == key], chooses=chooses)
    key_matches.n_events = run.n_events
    return key_matches


def ids_of(match: Found) -> set[Id]:
    """Return the ids of the events that a match binds."""
    return {identity for identity, _ in match.trail}
