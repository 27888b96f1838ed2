"""The ordered engine over batches of a file gives what it gives over the whole table, however the file is cut."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import acep
from acep.errors import QueryError
from acep.events.frames import to_table
from acep.matching.batch_stream import Passing
from acep.ordered import ordered_parts
from acep.pattern.tree import Query
from tests.case_counts import CaseCounts
from tests.runtime.random_intervals import random_interval_events, random_interval_query
from tests.runtime.random_runs import random_events, random_query


def pass_in_parts(query: Query, table: pa.Table, rng: Random, output: str, options: dict[str, Any]) -> list[Any]:
    """Return the rows of the result of a query over batches of a table, which are cut at random."""
    passing = Passing(query, table.schema, table.num_rows, output=output, counts=True, **options)
    parts, begin = [], 0
    while begin < table.num_rows:
        size = rng.randint(1, 5)
        parts += list(passing.push(table.slice(begin, size)))
        begin += size
    parts += list(passing.finish())
    return [sum(parts)] if output == "count" else [row for part in parts for row in part.to_arrow().to_pylist()]


@pytest.mark.filterwarnings("ignore::acep.DataWarning")
@pytest.mark.parametrize("kind", ["runs", "intervals"])
def test_a_file_gives_the_matches_of_its_table(kind: str, cases: CaseCounts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ordered_parts, "FEW", 1)
    seen: Counter[str] = Counter()
    for seed in range(cases(600)):
        rng = Random(seed)
        text = random_query(rng) if kind == "runs" else random_interval_query(rng)
        try:
            query = acep.parse(text)
        except QueryError:
            continue
        events, options = random_events(rng, 14) if kind == "runs" else random_interval_events(rng, 14)
        if "any" in text or "seq" in options or sorted(events["ts"]) != events["ts"]:
            continue
        table = to_table(events)
        expected = acep.match(table, query, **options)  # type: ignore[call-overload]
        found = pass_in_parts(query, table, rng, "matches", options)
        assert found == expected.to_arrow().to_pylist(), (seed, text, events, options)
        assert pass_in_parts(query, table, rng, "count", options) == [len(expected)]
        seen["matches"] += len(found) > 0
        seen["several"] += len(found) > 1
    cases.expect(seen, "matches", "several", least=50)


def test_little_is_left_over(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []

    def search(executor: ordered_parts.OrderedPartsExecutor, *, may_continue: bool) -> None:
        before(executor, may_continue=may_continue)
        sizes.append(executor.left_over)

    before = ordered_parts.OrderedPartsExecutor._search
    monkeypatch.setattr(ordered_parts.OrderedPartsExecutor, "_search", search)
    monkeypatch.setattr(ordered_parts, "FEW", 100)
    gap = "PATTERN ANY+ e[] WHERE partition_contiguity(e[]) { e[i].ts - e[i-1].ts < 5 } OUTPUT LONGEST NON OVERLAP"
    query = acep.parse(gap)
    ts = np.cumsum(np.random.default_rng(1).choice([1, 2, 6], 5_000))
    passing = Passing(query, pa.table({"ts": ts}).schema, len(ts), output="matches", counts=True, type=None)
    found = [part for begin in range(0, len(ts), 50) for part in passing.push(pa.table({"ts": ts[begin : begin + 50]}))]
    found += list(passing.finish())
    assert sum(map(len, found)) == np.count_nonzero(np.diff(ts) >= 5) + 1
    assert max(sizes) < 50
