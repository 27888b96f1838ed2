"""Random queries that choose among their matches and are found in their order, with random events for them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from random import Random
from typing import Any, NamedTuple

import acep
from acep.errors import QueryError
from acep.plan.assume import assumed_plan
from acep.plan.chosen.query_order import order_of_query
from tests.runtime.random_intervals import random_interval_events, random_interval_query
from tests.runtime.random_runs import random_events, random_query

__all__ = ["OrderedDraw", "ordered_draws"]


class OrderedDraw(NamedTuple):
    """A query, columns of events, and names of columns as options of :func:`acep.match`; ``rng`` draws what else is
    needed."""

    rng: Random
    text: str
    query: acep.Query
    events: dict[str, list[Any]]
    options: dict[str, str]


def ordered_draws(kind: str, seeds: Iterable[int | str], most: int, few: int | None = None) -> Iterator[OrderedDraw]:
    """Draw from seeds; those whose query is refused or not ordered are left out. ``kind``: ``"runs"`` or
    ``"intervals"``. There are at most ``most`` events, and ``few`` where any may be skipped (``None``: ``most``)."""
    for seed in seeds:
        rng = Random(seed)
        text = random_query(rng) if kind == "runs" else random_interval_query(rng)
        try:
            query = acep.parse(text)
        except QueryError:
            continue
        if not order_of_query(assumed_plan(query)).is_ordered:
            continue
        size = most if few is None or "any" not in text else few
        events, options = random_events(rng, size) if kind == "runs" else random_interval_events(rng, size)
        yield OrderedDraw(rng, text, query, events, options)
