"""Bundles of match points that an engine gives by finer keys: the same by each way, with work that the points bound."""

import random

import numpy as np
import pyarrow as pa
import pytest

import acep
from acep.events.batch import column_of_values
from acep.matches import bundle_chain
from acep.matches.bundle_chain import BundleChain
from acep.plan import compile as plan_compile
from acep.plan.schema import Kind
from tests.case_counts import CASES

VALUES = {
    Kind.INT: [-(2**63), 2**63 - 1, 5, 6],
    Kind.FLOAT: [0.0, -0.0, 1e300, -2.5],
    Kind.STRING: ["x", "y", "zz"],
}
TIED = "PATTERN SEQ(A a, B b, C c) WHERE a.k = b.k AND b.k = c.k WITHIN 50"


def bundles_one_by_one(width, span, calls):
    """Return the bundles of match points of each call, by the definition."""
    newest, bundles = {}, []
    for keys, points in calls:
        bundles.append([])
        for row, point in enumerate(points):
            key = tuple(column[row] for column in keys[:width])
            begin, last = newest.get(key, (point, point))
            begin = begin if span is None or point - last <= span else point
            newest[key] = begin, point
            bundles[-1].append(begin)
    return bundles


@pytest.mark.parametrize("seed", range(CASES(60)))
def test_points_in_order_have_the_bundles_of_the_definition(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(20):
        width, span = rng.randrange(3), rng.choice([None, 0, 3, 10, 50])
        kinds = [rng.choice([*VALUES]) for _ in range(width)]
        chain, point, calls, bundles = BundleChain(width, span), rng.choice([0, -(2**63), 2**63 - 9_000]), [], []
        for _ in range(rng.randrange(1, 6)):
            points = []
            for _ in range(rng.randrange(1, 40)):
                point += rng.choice([0, 0, 1, 2, 5, 30])
                points.append(point)
            keys = [[rng.choice(VALUES[kind]) for _ in points] for kind in kinds]
            calls.append((keys, points))
            columns = [column_of_values(values, kind) for values, kind in zip(keys, kinds, strict=True)]
            ends = np.array(points, np.int64)
            bundles.append(chain.bundles(columns, ends, ends).tolist())
        assert bundles == bundles_one_by_one(width, span, calls)


def events(n: int) -> pa.Table:
    rng = random.Random(n)
    return pa.table(
        {
            "ts": range(n),
            "type": [rng.choice("ABC") for _ in range(n)],
            "k": [rng.randrange(4) for _ in range(n)],
            "g": [rng.randrange(4) for _ in range(n)],
        }
    )


@pytest.mark.parametrize("query", [TIED, TIED.replace("WHERE", "WHERE [g] AND")], ids=["tied", "keyed"])
def test_bundles_of_points_in_order_are_not_sorted_and_not_chained_one_by_one(query: str, monkeypatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("points in order are sorted as if they were not")

    monkeypatch.setattr(BundleChain, "_bundles", refuse)
    listed, rows = bundle_chain.values_at, []
    monkeypatch.setattr(bundle_chain, "values_at", lambda key, at: rows.append(len(at)) or listed(key, at))
    matches = acep.match(events(3_000), query)
    assert len(matches) > 400
    assert sum(rows) <= 4  # one for each key, not for each match


def test_a_count_chains_no_bundles(monkeypatch) -> None:
    calls = []
    for name in ("bundles", "_bundles"):
        monkeypatch.setattr(BundleChain, name, lambda *_, name=name: calls.append(name))
    assert acep.match(events(500), TIED, output="count") > 0
    assert calls == []


def test_a_query_with_ties_is_compiled_once(monkeypatch) -> None:
    compiled, calls = plan_compile.build, []
    monkeypatch.setattr(plan_compile, "build", lambda query: calls.append(query) or compiled(query))
    acep.match(events(100), TIED)
    assert len(calls) == 1
