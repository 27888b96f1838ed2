"""Rows in stream order: the native class does what the one in Python does, and refuses what is not there."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest

from acep.arrivals.ordered_rows import BUCKETS, HASH, NUMBER, ORDER, TIME, OrderedRows
from tests.case_counts import CaseCounts

native = pytest.importorskip("acep.native._native")

Step = Callable[[Any], Any]


def added(rng: np.random.Generator, words: int, flags: int, *, tied: bool) -> tuple[list[Any], list[Any]]:
    """Some sorted rows, by their columns."""
    size = int(rng.integers(0, 12))
    columns = [rng.integers(0, 30, size) for _ in range(words)]
    columns[HASH] = rng.integers(0, 4, size) << 48
    order = np.lexsort((columns[ORDER] if tied else np.zeros(size), columns[TIME]))
    valid = [None if rng.random() < 0.5 else rng.integers(0, 2, size).astype(np.uint8) for _ in range(flags)]
    return [column[order] for column in columns], valid


def step(rng: np.random.Generator, rows: Any, words: int, flags: int, *, tied: bool) -> Step:
    """One call at random, which fits the rows."""
    size, kind = len(rows), int(rng.integers(0, 7))
    if kind < 3:
        some = added(rng, words, flags, tied=tied)
        return lambda rows: rows.insert(*some)
    if kind == 3:
        stay = rng.integers(0, 2, size).astype(np.uint8)
        return lambda rows: rows.keep(stay)
    if kind == 4:
        many = int(rng.integers(0, size // 3 + 1))
        return lambda rows: rows.drop(many)
    if kind == 5:
        begin, end = sorted(rng.integers(0, size + 1, 2).tolist())
        buckets = None if rng.random() < 0.5 else np.resize(rng.integers(0, 2, 4), BUCKETS).astype(np.uint8)
        return lambda rows: rows.chosen(begin, end, buckets)
    places = rng.integers(0, size, 5) if size else np.zeros(0, np.int64)
    return lambda rows: rows.at(places)


def listed(found: Any) -> Any:
    """The result of a call, without arrays."""
    if isinstance(found, list | tuple):
        return [listed(one) for one in found]
    return found.tolist() if isinstance(found, np.ndarray) else found


@pytest.mark.parametrize("tied", [False, True])
def test_both_classes_do_the_same(tied: bool, cases: CaseCounts) -> None:
    for seed in range(cases(60)):
        rng = np.random.default_rng(seed)
        words, flags = 3 + tied + int(rng.integers(0, 3)), 0
        one, other = OrderedRows(words, tied), native.OrderedRows(words, tied)
        for _ in range(40):
            if flags < 2 and rng.random() < 0.1:
                flags += 1
                one.add_flags()
                other.add_flags()
            call = step(rng, one, words, flags, tied=tied)
            assert listed(call(one)) == listed(call(other))
            assert len(one) == len(other)
            assert [one.column(n).tolist() for n in range(words)] == [other.column(n).tolist() for n in range(words)]
            assert [one.flags(n).tolist() for n in range(flags)] == [other.flags(n).tolist() for n in range(flags)]
            time = int(rng.integers(-1, 32))
            assert one.lower(time) == other.lower(time)


def test_late_rows_come_after_equal_ones() -> None:
    rng, rows = Random(0), native.OrderedRows(3, False)
    given = sorted((rng.randrange(5), number) for number in range(50))
    parts = given[::2], given[1::2]
    for part in parts:
        rows.insert([np.array(column) for column in zip(*((ts, n, 0) for ts, n in part), strict=True)], [])
    expected = [row for ts in range(5) for part in parts for row in part if row[0] == ts]
    assert [*zip(rows.column(TIME).tolist(), rows.column(NUMBER).tolist(), strict=True)] == expected


def test_what_is_not_there_is_refused() -> None:
    one, flag = np.zeros(1, np.int64), np.zeros(1, np.uint8)
    with pytest.raises(ValueError, match="columns"):
        native.OrderedRows(2, False)
    with pytest.raises(ValueError, match="columns"):
        native.OrderedRows(3, True)
    rows = native.OrderedRows(3, False)
    rows.insert([one, one, one], [])
    calls: list[Step] = [
        lambda rows: rows.insert([one, one], []),
        lambda rows: rows.insert([one, one, one[:0]], []),
        lambda rows: rows.insert([one, one, one], [flag]),
        lambda rows: rows.insert([], []),
        lambda rows: rows.at(np.array([1])),
        lambda rows: rows.at(np.array([-1])),
        lambda rows: rows.column(3),
        lambda rows: rows.flags(0),
        lambda rows: rows.drop(2),
        lambda rows: rows.keep(np.zeros(2, np.uint8)),
        lambda rows: rows.chosen(1, 0, None),
        lambda rows: rows.chosen(0, 2, None),
        lambda rows: rows.chosen(0, 1, np.zeros(4, np.uint8)),
    ]
    for call in calls:
        with pytest.raises((ValueError, IndexError)):
            call(rows)
    rows.add_flags()
    for wrong in ([np.zeros(2, np.uint8)], [], [flag, flag]):
        with pytest.raises(ValueError, match=r"flags|rows"):
            rows.insert([one, one, one], wrong)
    assert [rows.column(n).tolist() for n in range(3)] == [[0], [0], [0]]
