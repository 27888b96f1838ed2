"""Work in proportion to the stream, where more was done once: what is counted at n, 2n and 4n events grows at most 2.4
times a step, and what is found is right."""

from __future__ import annotations

from itertools import pairwise
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest

import acep
from acep.events.tables import to_table
from acep.matches.records import Counts
from acep.matching.batch_stream import Passing
from acep.runtime.executors import NativeExecutors
from acep.runtime.options import StreamOptions
from acep.tables.table_stream import TableStream

pytest.importorskip("acep.native._native")

STEP = 2.4
FIRST = {"native": 750, "reference": 100}


def quotes(size: int) -> pa.Table:
    """Quotes and trades of ten symbols, one a tick, twice as many quotes."""
    draw = np.random.default_rng(7)
    return pa.table(
        {
            "ts": np.arange(size),
            "type": draw.choice(["quote", "quote", "trade"], size),
            "sym": [f"S{n}" for n in draw.integers(0, 10, size)],
            "price": draw.integers(0, 20, size),
        }
    )


def failures(size: int, users: int, together: int = 1) -> pa.Table:
    """Failed logins from one address, of so many users in turn; some at one time."""
    numbers = np.arange(size)
    columns: dict[str, Any] = {"ts": numbers // together, "type": ["fail"] * size, "ip": ["9.9.9.9"] * size}
    return pa.table(columns | {"user": [f"user {number % users}" for number in numbers]})


def work(query: str, events: pa.Table, engine: str) -> tuple[int, int, int]:
    """Return the transition evaluations and partial matches made where all matches are made, and the bytes that the
    engines hold in the end."""
    tables = TableStream(acep.parse(query), StreamOptions(engine=engine))  # type: ignore[arg-type]
    with mock.patch.object(NativeExecutors, "_ordered_executor", return_value=None):
        tables.push(to_table(events))
    assert tables.stream is not None
    counts, session = tables.stream.counts, tables.stream._session
    return counts.touches, counts.nodes, 0 if session is None else session.bytes


NEGATED = {
    "any": "PATTERN SEQ(quote q, ~quote n, trade t)",
    "by key": "PATTERN SEQ(quote q, ~quote n, trade t) WHERE [sym]",
    "by equalities": "PATTERN SEQ(quote q, ~quote n, trade t) WHERE n.sym = q.sym AND t.sym = q.sym",
    "by equalities of the end": "PATTERN SEQ(quote q, ~quote n, trade t) WHERE t.sym = n.sym AND NOT t.sym != q.sym",
    "by equalities, apart": "PATTERN SEQ(quote q, ~quote n, trade t) WHERE n.sym = q.sym AND t.sym = q.sym"
    " OUTPUT NON OVERLAP",
    "next": "PATTERN SEQ(quote q, ~quote n, trade t) WHERE skip_till_next_match(q, t) { [sym] }",
    "within a million": "PATTERN SEQ(quote q, ~quote n, trade t) WHERE [sym] WITHIN 1000000",
    "an event alone": "PATTERN SEQ(quote q, ~quote n, trade t) WHERE n.price > 4 AND t.price >= q.price",
    "of one symbol": "PATTERN SEQ(quote q, ~quote n, trade t) WHERE NOT n.sym != q.sym",
    "tied to what follows": "PATTERN SEQ(quote q, ~quote n, trade t) "
    "WHERE skip_till_any_match(q, t) { n.sym = q.sym AND t.sym = q.sym AND t.price != q.price }",
    "of no higher price": "PATTERN SEQ(quote q, ~quote n, trade t) WHERE n.price <= q.price",
    "in a loop": "PATTERN SEQ(quote q, (~quote n, trade t)+) WHERE [sym]",
}


@pytest.mark.parametrize("engine", FIRST)
@pytest.mark.parametrize("name", NEGATED)
def test_partial_matches_that_a_negation_has_ended_are_not_kept(name: str, engine: str) -> None:
    sizes = [FIRST[engine] * factor for factor in (1, 2, 4)]
    for before, after in pairwise([work(NEGATED[name], quotes(size), engine) for size in sizes]):
        assert all(last <= STEP * first for first, last in zip(before, after, strict=True))


SPRAY = (
    "PATTERN fail+ f[] WHERE partition_contiguity(f[]) { [ip] } WITHIN 100000 "
    "HAVING count(DISTINCT f[].user) >= 3 OUTPUT NON OVERLAP"
)
SPRAYS = {
    "as in the recipe": SPRAY,
    "of any pair": SPRAY.replace("partition_contiguity", "skip_till_any_match"),
    "in steps": SPRAY.replace("partition_contiguity", "skip_till_next_match"),
    "of many": SPRAY.replace(">= 3", ">= 8"),
    "strictly": SPRAY.replace("partition_contiguity", "strict_contiguity"),
    "in events": SPRAY.replace("100000", "100000 EVENTS"),
    "without a window": SPRAY.replace("WITHIN 100000", ""),
}


@pytest.mark.parametrize("engine", FIRST)
@pytest.mark.parametrize(
    ("name", "users", "together"),
    [(name, *case) for name in SPRAYS for case in [(1_000, 1), (20, 1), (1_000, 8)]]
    + [(name, 1_000, 10_000) for name in SPRAYS if name != "of any pair"],  # any three at one time may stand first
)
def test_a_match_that_does_not_overlap_ends_those_that_would(name: str, users: int, together: int, engine: str) -> None:
    length = 8 if name == "of many" else 3
    sizes = [120, 240, 480] if engine == "native" else [24, 48, 96]
    for size in sizes:
        matches = acep.match(failures(size, users, together), SPRAYS[name], engine=engine)
        assert [len(match.bindings["f"]) for match in matches] == [length] * (size // length)
    for before, after in pairwise(work(SPRAYS[name], failures(size, users, together), engine) for size in sizes):
        assert all(last <= STEP * first for first, last in zip(before, after, strict=True))


def test_a_spray_of_too_few_users_takes_the_square_of_a_window() -> None:
    """As docs/howto/recipes.md says: with a window the work grows as the stream."""
    bounded = [work(SPRAY.replace("100000", "50"), failures(size, 2), "native")[0] for size in (400, 800)]
    whole = [work(SPRAY, failures(size, 2), "native")[0] for size in (400, 800)]
    assert bounded[1] <= STEP * bounded[0] < whole[0]
    assert 3.5 * whole[0] <= whole[1] <= 4.5 * whole[0]


@pytest.mark.parametrize("output", ["", "OUTPUT NON OVERLAP", "OUTPUT LONGEST NON OVERLAP", "OUTPUT EARLIEST MAXIMAL"])
def test_whether_there_is_a_match_is_known_at_the_first_one(output: str) -> None:
    query = SPRAY.replace("OUTPUT NON OVERLAP", output)

    def counts(size: int) -> Counts:
        events = failures(size, 1_000)
        passing = Passing(acep.parse(query), events.schema, size, output="exists", counts=True)
        assert any(passing.push(events))
        assert passing.tables.stream is not None
        return passing.tables.stream.counts

    assert counts(4_000).touches == counts(1_000).touches <= 4_000
    assert acep.match(failures(4_000, 1_000), query, output="exists") is True
    assert acep.match(failures(400, 2), query, output="exists") is False


def test_having_that_fails_for_a_series_is_not_asked_of_its_parts() -> None:
    """Two users never make three, however often they fail: no run is written out but the longest at each event."""
    counted = [work(SPRAY, failures(size, 2), "native") for size in (200, 400, 800)]
    assert [nodes for _, nodes, _ in counted] == [size * (size + 1) // 2 for size in (200, 400, 800)]
    assert len(acep.match(failures(1_500, 2), SPRAY)) == 0
