"""A run under a budget that comes in batches, and is restored from a snapshot again and again, goes on as the whole
stream at once would have."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import acep

pytest.importorskip("acep.native._native")

EVENTS, PART = 6_000, 1_000


@pytest.mark.parametrize(
    ("keys", "strategy", "more", "within", "work"),
    [
        (200, "skip_till_any_match", 10, "", 0.2),
        (3, "skip_till_next_match", 37, "", 20),
        (20, "skip_till_any_match", 0, "WITHIN 60 EVENTS", 3),
        (1, "strict_contiguity", 0, "WITHIN 60", 0.2),
    ],
    ids=[
        "many partitions of which few wait",
        "nodes alike, some of which become one",
        "lists that expire by position",
        "so little that the price rises for long",
    ],
)
def test_restarts_make_no_difference(keys: int, strategy: str, more: int, within: str, work: float) -> None:
    where = f"WHERE {strategy}(a, b, c) {{ [k] AND b.y > a.y + {more} }}"
    query = acep.parse(f"PATTERN SEQ(a a, b b, c c) {where} {within}", errors=2 * (strategy == "strict_contiguity"))
    draw = np.random.default_rng(3)
    types = np.array(list("abc"))[draw.choice(3, EVENTS, p=[0.6, 0.35, 0.05])].tolist()
    numbers = {"ts": range(EVENTS), "k": draw.integers(0, keys, EVENTS), "y": draw.integers(0, 50, EVENTS)}
    events = pa.table(numbers | {"type": types})
    how: dict[str, Any] = {"budget": acep.Budget(work=work, estimate=0), "policy": "random", "seed": 3}
    whole = acep.match(events, query, **how)
    matcher = acep.Matcher(query, **how)
    found = []
    for at in range(0, EVENTS, PART):
        found += matcher.push(events.slice(at, PART))
        data = matcher.snapshot()
        matcher = acep.Matcher(query, **how)
        matcher.restore(data)
        assert matcher.snapshot() == data
    found += matcher.finish()
    assert not whole.report.exact
    assert found == list(whole)
    assert (matcher.report.work, matcher.report.shed) == (whole.report.work, whole.report.shed)
