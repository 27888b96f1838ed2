"""The ordered engine gives over a stream, in any cuts and over snapshots, what it gives over the whole table."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest

import acep
from acep.errors import QueryError
from acep.events.frames import to_table
from acep.plan.assume import assumed_plan
from acep.plan.ordered.query_order import order_of_query
from tests.case_counts import CaseCounts
from tests.runtime.random_intervals import random_interval_events, random_interval_query
from tests.runtime.random_runs import random_events, random_query

Row = dict[str, Any]


def in_order(events: dict[str, list[Any]], options: dict[str, str]) -> dict[str, list[Any]]:
    """Return events in the order of the stream."""
    keys = [events["ts"], events[options["seq"]] if "seq" in options else [0] * len(events["ts"])]
    order = sorted(range(len(events["ts"])), key=lambda row: (keys[0][row], keys[1][row]))
    return {name: [values[row] for row in order] for name, values in events.items()}


def pushed(
    query: Any, events: dict[str, list[Any]], size: int, *, restores: bool = False, **options: Any
) -> list[list[Row]]:
    """Return the matches that each push of so many events gives, and then those of the end."""
    matcher, table = acep.Matcher(query, **options), to_table(events)
    steps = []
    for begin in range(0, table.num_rows, size):
        steps.append(matcher.push(table.slice(begin, size)))
        if restores:
            state, matcher = matcher.snapshot(), acep.Matcher(query, **options)
            matcher.restore(state)
    steps.append(matcher.finish())
    return [step.to_arrow().to_pylist() for step in steps]


def rows_of(steps: list[list[Row]]) -> list[str]:
    return sorted(str(row) for step in steps for row in step)


@pytest.mark.filterwarnings("ignore::acep.DataWarning")
@pytest.mark.parametrize("kind", ["runs", "intervals"])
def test_a_stream_gives_the_matches_of_its_table(kind: str, cases: CaseCounts) -> None:
    seen: Counter[str] = Counter()
    for seed in range(cases(200)):
        rng = Random(seed)
        text = random_query(rng) if kind == "runs" else random_interval_query(rng)
        try:
            query = acep.parse(text)
        except QueryError:
            continue
        if not order_of_query(assumed_plan(query)).is_ordered:
            continue
        most = 9 if "any" in text else 16
        drawn, options = random_events(rng, most) if kind == "runs" else random_interval_events(rng, most)
        events = in_order(drawn, options)
        expected = acep.match(events, query, engine="reference", **options)
        where = (seed, text, events, options)
        assert acep.match(events, query, **options).to_arrow().to_pylist() == expected.to_arrow().to_pylist(), where
        rows = rows_of([expected.to_arrow().to_pylist()])
        before = pushed(query, events, 1, engine="reference", **options)
        for size, restores in ((1, False), (1, True), (3, True), (7, False), (99, True)):
            steps = pushed(query, events, size, restores=restores, **options)
            assert rows_of(steps) == rows, (size, restores, where)
            if size == 1 and "id" not in options:
                for step in range(len(steps)):
                    soon, late = Counter(rows_of(steps[: step + 1])), Counter(rows_of(before[: step + 1]))
                    assert soon >= late, (step, restores, where)
                    seen["sooner"] += soon > late
        seen["matches"] += len(rows) > 0
        seen["several"] += len(rows) > 1
        seen["before the end"] += bool(rows_of(steps[:-1]))
    cases.expect(seen, "matches", "several", "before the end", "sooner", least=20)
