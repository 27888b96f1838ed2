"""Counts against what the reference enumerates: in all, by end, by match point, by bundle; exact at any size."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from math import comb
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import acep
from acep.events.tables import batch_of
from acep.matches.counted import Row
from acep.matches.records import Found
from acep.plan.compile import Plan
from tests.native.merged_cases import merged_case, planned, reference, session_of
from tests.native.spoilt import spoilt
from tests.random_cases import Case, shrink

pytest.importorskip("acep.native._native")

CHUNKS = 20


def counted(plan: Plan, table: pa.Table, asked: str, size: int = 7) -> tuple[list[Row], int]:
    """The rows that a counting engine gives for a table that comes in batches, and its total."""
    session = session_of(plan, asked)
    rows: list[Row] = []
    for start in range(0, table.num_rows, size):
        session.push(batch_of(table.slice(start, size), plan.schema, plan.columns, base=start))
        rows += session.take_counts(0).rows()
    rows += session.take_counts(0, last=True).rows()
    return rows, session.total(0)


def counted_with_stops(plan: Plan, table: pa.Table, asked: str, size: int) -> tuple[list[Row], int]:
    """The same with a new session for each batch, which goes on from the state of the one before."""
    session = session_of(plan, asked)
    rows: list[Row] = []
    for start in range(0, table.num_rows, size):
        session.push(batch_of(table.slice(start, size), plan.schema, plan.columns, base=start))
        rows += session.take_counts(0).rows()
        state = session.dump()
        session = session_of(plan, asked)
        session.load(state)
    rows += session.take_counts(0, last=True).rows()
    return rows, session.total(0)


def by_end(rows: Iterable[Row]) -> Counter[Any]:
    """How many matches end at a time, by key, bundle and error."""
    found: Counter[Any] = Counter()
    for row in rows:
        found[row.key, row.last, row.bundle, row.error] += row.matches
    return found


def summed(rows: Iterable[Row], at: Callable[[Row], Any]) -> dict[Any, tuple[int, int, Any, int]]:
    """By key and bundle or point: the first and last point, the least error, how many matches."""
    found: dict[Any, tuple[int, int, Any, int]] = {}
    for row in rows:
        first, last, error, many = found.get(at(row), (row.first, row.last, row.error, 0))
        found[at(row)] = min(first, row.first), max(last, row.last), min(error, row.error), many + row.matches
    return found


def complaint(plan: Plan, table: pa.Table, matches: Sequence[Found]) -> str:
    """What the counts say that the matches do not."""
    ends = [Row(m.key, m.end, m.end, m.bundle, m.error, 1) for m in matches]
    if counted(plan, table, "count")[1] != len(matches):
        return "count"
    if by_end(counted(plan, table, "ends")[0]) != by_end(ends):
        return "ends"
    points = summed(counted(plan, table, "points")[0], lambda row: (row.key, row.last, row.bundle))
    if {k: v[:3] for k, v in points.items()} != {
        k: v[:3] for k, v in summed(ends, lambda row: (row.key, row.last, row.bundle)).items()
    }:
        return "points"
    bundles = summed(counted(plan, table, "bundles")[0], lambda row: (row.key, row.bundle))
    return "" if bundles == summed(ends, lambda row: (row.key, row.bundle)) else "bundles"


def differs(case: Case) -> bool:
    table = case.table()
    plan = planned(case.query(), table, **case.stream)
    try:
        session_of(plan, "count")
    except ValueError:  # not a plan for it
        return False
    return complaint(plan, table, reference(plan, table)) != ""


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_counts_are_those_of_the_reference(chunk: int, cases: Callable[[int], int]) -> None:
    for seed in range(chunk, cases(1500), CHUNKS):
        case = merged_case(seed)
        if case is not None and differs(case):
            pytest.fail("the counts and the reference differ:\n" + shrink(case, differs).paste())


@pytest.mark.parametrize("asked", ["count", "points", "bundles", "ends"])
def test_a_state_that_was_dumped_goes_on(asked: str, cases: Callable[[int], int]) -> None:
    for seed in range(cases(120)):
        case = merged_case(seed)
        if case is None:
            continue
        table = case.table()
        plan = planned(case.query(), table, **case.stream)
        try:
            plain = counted(plan, table, asked, 5)
        except ValueError:
            continue
        assert counted_with_stops(plan, table, asked, 5) == plain, case.paste()


def test_large_numbers_are_in_the_state() -> None:
    table = stream("a" * 200)
    plan = planned(acep.parse("PATTERN SEQ(a+ x[]) WHERE skip_till_any_match WITHIN 150"), table)
    assert counted_with_stops(plan, table, "count", 9) == counted(plan, table, "count", 9)


@pytest.mark.parametrize("asked", ["count", "points", "bundles", "ends"])
def test_spoilt_states_are_refused_or_run(asked: str, cases: Callable[[int], int]) -> None:
    refused = ran = 0
    table = stream("aabcabbc" * 20)
    text = "PATTERN SEQ(a+ x[], b y, c? z) WHERE skip_till_any_match WITHIN 90"
    plan = planned(acep.parse(text, errors=1), table)
    batch = batch_of(table, plan.schema, plan.columns)
    whole = session_of(plan, asked)
    whole.push(batch)
    state = whole._session.dump()
    for seed in range(cases(300)):
        rng = Random(seed)
        other = session_of(plan, asked)
        try:
            other._session.load(spoilt(state, rng))
            ran += 1
            other.push(batch)
            other.take_counts(0, last=True)
            other.total(0)
        except (ValueError, RuntimeError):
            refused += 1
    assert refused
    assert ran


def stream(types: str, times: Sequence[int] | None = None) -> pa.Table:
    return pa.table({"ts": list(times or range(len(types))), "type": list(types)})


def total(text: str, table: pa.Table, **options: Any) -> int:
    plan = planned(acep.parse(text, **options), table)
    return counted(plan, table, "count", 64)[1]


@pytest.mark.parametrize("many", [10, 61, 62, 63, 64, 65, 127, 128, 129, 200, 300])
def test_counts_of_any_size_are_exact(many: int) -> None:
    table = stream("a" * many)
    text = "PATTERN SEQ(a+ x[]) WHERE skip_till_any_match"
    assert total(text, table) == 2**many - 1
    assert total(f"{text} WITHIN {many - 1}", table) == 2**many - 1


@pytest.mark.parametrize("window", [1, 5, 62, 70, 130])
@pytest.mark.parametrize("counted_window", [False, True])
def test_large_counts_in_a_sliding_window(window: int, counted_window: bool) -> None:
    # Of n events with one a tick: the subsets that span at most `window`, by their first event.
    many = 400
    within = f"{window + 1} EVENTS" if counted_window else str(window)
    expected = sum(2 ** min(window, many - 1 - first) for first in range(many))
    found = total(f"PATTERN SEQ(a+ x[]) WHERE skip_till_any_match WITHIN {within}", stream("a" * many))
    assert found == expected


def test_a_burst_that_needs_large_numbers_is_got_over() -> None:
    # After the burst numbers are small again, and of 64 bits.
    types, times = "a" * 100 + "ab" * 3000, [0] * 100 + list(range(1000, 7000))
    table = stream(types, times)
    plan = planned(acep.parse("PATTERN SEQ(a+ x[], b y) WHERE skip_till_any_match WITHIN 20"), table)
    session = session_of(plan, "ends")
    session.push(batch_of(table, plan.schema, plan.columns))
    rows = list(session.take_counts(0).rows())
    assert rows[-1].matches == 2**10 - 1
    assert session.take_counts(0, last=True).matches.dtype == np.int64


def test_errors_are_counted_apart() -> None:
    table = stream("a" * 100 + "b" * 100 + "c" * 100)
    plan = planned(acep.parse("PATTERN SEQ(a x, b y, c z) WHERE skip_till_any_match", errors=1), table)
    session = session_of(plan, "count")
    session.push(batch_of(table, plan.schema, plan.columns))
    totals = dict(session._session.count_totals(0))
    assert totals == {0: 100**3, 1: 3 * 100**2}


def test_sequences_of_one_type_are_binomial() -> None:
    table = stream("a" * 300)
    assert total("PATTERN SEQ(a x, a y, a z, a w) WHERE skip_till_any_match", table) == comb(300, 4)


@pytest.mark.parametrize("asked", ["count", "points", "bundles"])
def test_memory_stays(asked: str) -> None:
    rng = np.random.default_rng(5)

    def batch(start: int) -> pa.Table:
        size = 20_000
        types = np.array(list("abcdx"))[rng.integers(0, 5, size)]
        return pa.table({"ts": np.arange(start, start + size), "type": types, "k": rng.integers(0, 50, size)})

    text = "PATTERN SEQ(a x, b+ y[], c z) WHERE skip_till_any_match { [k] } WITHIN 300"
    plan = planned(acep.parse(text), batch(0))
    session = session_of(plan, asked)
    held = []
    for number in range(12):
        session.push(batch_of(batch(number * 20_000), plan.schema, plan.columns))
        session.take_counts(0)
        held.append(session._session.bytes)
    assert max(held[6:]) <= 1.1 * max(held[:6])


def test_what_is_not_for_it_is_refused() -> None:
    table = pa.table({"ts": [1], "type": ["a"], "x": [1]})
    tied = planned(acep.parse("PATTERN SEQ(a p, b q) WHERE p.x < q.x WITHIN 5"), table)
    with pytest.raises(ValueError, match="tie the events"):
        session_of(tied, "count")
    gaps = planned(acep.parse("PATTERN SEQ(a p, b q) WHERE partition_contiguity WITHIN 5", errors=1), table)
    with pytest.raises(ValueError, match="tie the events"):
        session_of(gaps, "points")
    plain = planned(acep.parse("PATTERN SEQ(a p, b q) WITHIN 5"), table)
    with pytest.raises(ValueError, match="no counting engine"):
        session_of(plain, "merged").take_counts(0)
