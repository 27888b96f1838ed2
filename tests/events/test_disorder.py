"""Rows held back come out in stream order, once each, however they arrive."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable
from fractions import Fraction

import pyarrow as pa
import pytest

from acep.arrivals.hold_back import HoldBack
from acep.errors import DataError, SnapshotError


def random_rows(rng: random.Random, size: int) -> pa.Table:
    return pa.table(
        {
            "x": pa.array([rng.choice([None, 1, 2, 2**60 + 1]) for _ in range(size)], pa.int64()),
            "ts": pa.array([rng.randrange(20) for _ in range(size)], pa.int64()),
            "f": pa.array([rng.choice([None, float("nan"), -1.5, 2.0]) for _ in range(size)], pa.float64()),
            "s": pa.array([rng.choice([None, "", "b", "ä"]) for _ in range(size)], pa.string()),
            "b": pa.array([rng.choice([None, True, False]) for _ in range(size)], pa.bool_()),
            "day": pa.array([rng.choice([None, dt.date(2024, 1, 2)]) for _ in range(size)], pa.date32()),
        }
    )


def test_order_does_not_depend_on_arrival(cases: Callable[[int], int]) -> None:
    for seed in range(cases(50)):
        rng = random.Random(seed)
        rows = random_rows(rng, 40)
        whole = HoldBack("ts", ["s"])
        whole.add(rows)
        expected = whole.drain()
        order = rng.sample(range(40), 40)
        held = HoldBack("ts", ["s"])
        given = []
        late_free = sorted(order, key=lambda row: rows["ts"][row].as_py() + rng.random() * 4)
        highest = 0
        for start in range(0, 40, 7):
            part = rows.take(late_free[start : start + 7])
            assert held.add(part) == 0
            highest = max(highest, *part["ts"].to_pylist())
            if rng.random() < 0.5:
                other = HoldBack("ts", ["s"])
                other.loads(held.dumps())
                other.released = held.released
                held = other
            if (out := held.release(highest - 3)) is not None:
                given.append(out)
        given.append(held.drain())
        assert len(held) == 0
        assert repr(pa.concat_tables(given).to_pylist()) == repr(expected.to_pylist())


def test_nulls_and_ties_have_a_place() -> None:
    held = HoldBack("ts")
    held.add(pa.table({"ts": [1, 1, 1, 1], "b": [None, 2.0, float("nan"), 1.0], "a": [1, 1, 1, 1]}))
    assert repr(held.drain()["b"].to_pylist()) == "[1.0, 2.0, nan, None]"


def test_late_rows_are_counted_and_left_out() -> None:
    held = HoldBack("ts")
    assert held.release(5) is None
    assert held.add(pa.table({"ts": [5, 6, 4]})) == 1
    assert (held.late, len(held)) == (1, 2)
    assert held.release(3) is None
    assert held.released == 5
    assert held.add(pa.table({"ts": [5, 6, 7]}), 7) == 2
    assert (held.late, len(held), held.greatest) == (3, 3, 7)
    assert held.release(6).to_pydict() == {"ts": [5]}


def test_times_are_compared_in_ticks() -> None:
    times = [dt.datetime(1970, 1, 1, 0, 0, s) for s in (3, 1, 2)]
    held = HoldBack("ts", tick_ns=Fraction(1_000_000))
    held.add(pa.table({"ts": pa.array(times, pa.timestamp("us"))}))
    assert held.release(2001).num_rows == 2
    assert held.release(3000) is None


def test_a_null_time_is_refused_with_the_whole_batch() -> None:
    held = HoldBack("ts")
    with pytest.raises(DataError, match="`ts` is null"):
        held.add(pa.table({"ts": [1, None]}))
    assert len(held) == 0


def test_no_rows() -> None:
    held = HoldBack("ts")
    assert held.add(pa.table({"ts": pa.array([], pa.int64())})) == 0
    assert held.dumps() == b""
    held.loads(b"")
    assert held.drain() is None


def test_bytes_that_are_no_rows() -> None:
    with pytest.raises(SnapshotError):
        HoldBack("ts").loads(b"nonsense")
