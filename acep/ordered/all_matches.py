"""Take the chosen matches of a partition from the engine that makes all matches, where the order of ids decides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from acep.events.batch import Batch
from acep.matches.records import Counts, Found
from acep.ordered.interval_matches import ChosenIntervals
from acep.ordered.kept_events import KeptEvents
from acep.ordered.ordered_choice import FindIntervals
from acep.ordered.partition_rows import RowsByPartition
from acep.plan.compile import Plan

__all__ = ["choose_matches"]


def choose_matches(
    plan: Plan,
    events: KeptEvents,
    find: FindIntervals,
    searched: Callable[[Batch, RowsByPartition], RowsByPartition],
    run_otherwise: Callable[[Batch], tuple[Sequence[Found], Counts]],
) -> list[tuple[ChosenIntervals, bool]]:
    """Return the chosen matches of events, in parts, each with whether ids rise where it matters. ``find`` finds them;
    in partitions where it cannot, ``run_otherwise`` does, in rows that ``searched`` takes."""
    rows = RowsByPartition.of_codes(events.codes, events.positions)
    everything = find(events.batch, may_continue=False, rows=rows)
    if everything is not None:
        return [(everything, True)]
    parts = []
    for partition in rows.partitions():
        chosen = find(events.batch, may_continue=False, rows=partition)
        if chosen is None:
            matches, counts = run_otherwise(events.batch.take(partition.rows))
            searched_rows = searched(events.batch, partition)
            parts.append((_chosen_of_matches(plan, events.batch, searched_rows, matches, counts.touches), False))
        else:
            parts.append((chosen, True))
    return parts


def _chosen_of_matches(
    plan: Plan, batch: Batch, rows: RowsByPartition, matches: Sequence[Found], work: int
) -> ChosenIntervals:
    """Return matches of events with ids, which are some ``rows`` of a partition, as intervals of these rows."""
    ids: Any = batch.take(rows.rows).ids
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
        work,
    )
