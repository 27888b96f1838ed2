"""Take the chosen matches of a partition from the engine that makes all matches, where the order of ids decides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from acep.events.batch import Batch
from acep.matches.records import Found
from acep.plan.compile import Plan
from acep.runtime.interval_matches import ChosenIntervals
from acep.runtime.partition_rows import RowsByPartition

__all__ = ["chosen_of_matches"]


def chosen_of_matches(plan: Plan, batch: Batch, rows: RowsByPartition, matches: Sequence[Found]) -> ChosenIntervals:
    """Return matches of events with ids, which are some ``rows`` of a partition, as intervals of these rows."""
    ids: Any = batch.at(rows.rows).ids
    place_of = {event: place for place, event in enumerate(ids if isinstance(ids, list) else ids.tolist())}
    number_of = {name: number for number, name in enumerate(plan.variables)}
    trails = [[(place_of[event], number_of[name]) for event, name in match.trail] for match in matches]
    trails.sort()
    steps = [step for trail in trails for step in trail]
    return ChosenIntervals(
        rows,
        np.cumsum([0, *map(len, trails)]).astype(np.int64),
        np.array([place for place, _ in steps], np.int64),
        np.array([number for _, number in steps], np.uint16),
        None,
        len(rows),
    )
