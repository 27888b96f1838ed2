"""The backtrack algorithm finds what the reference engine finds, and the counters count it."""

from __future__ import annotations

import doctest
import importlib
import itertools

import pytest

import acep
from experiments import counting, streams
from experiments.backtrack import backtrack
from experiments.stock import StockQuery
from tests.thinned import thinned

ALL = [
    StockQuery(iterator, strategy, window, third, non_overlap)
    for iterator, strategy, window, third, non_overlap in itertools.product(
        ("p1", "p2", "p3"), ("s2", "s3"), (7, 60), (False, True), (False, True)
    )
]


@pytest.mark.parametrize(
    "query", thinned(ALL, 5), ids=lambda q: f"{q.name}-{q.window}{'-apart' if q.non_overlap else ''}"
)
def test_backtrack_is_the_reference(query: StockQuery) -> None:
    table = streams.ticker(0.55, 3).slice(1_000, 9_000)
    matches = acep.match(table, acep.parse(query.text()), engine="reference")
    found = backtrack(table, query)
    assert sorted(found.matches) == sorted(
        tuple(sorted(int(i) for ids in match.bindings.values() for i in ids)) for match in matches
    )
    assert found.touches >= table.num_rows


def test_the_template_has_matches() -> None:
    """A comparison of nothing with nothing would pass."""
    table = streams.ticker(0.55, 3).slice(1_000, 9_000)
    for query in ALL:
        if query.window == 60 and query.strategy == "s3":
            assert len(backtrack(table, query).matches) > 1, query


def test_only_what_can_be_counted_is_counted() -> None:
    with pytest.raises(ValueError, match="two components"):
        counting.count_stock_runs(streams.ticker(), StockQuery(third=True))


@pytest.mark.parametrize(
    "name",
    ["backtrack", "counting", "machine", "peers.__main__", "profile", "results", "stock", "streams", "workloads"],
)
def test_doctests(name: str) -> None:
    result = doctest.testmod(importlib.import_module(f"experiments.{name}"), optionflags=doctest.ELLIPSIS)
    assert result.failed == 0
