"""The ids of events that are not final, against a dict of all of them; also where texts have the same hash."""

from __future__ import annotations

from copy import copy
from random import Random
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest

import acep
from acep.errors import DataError
from acep.events import seen_ids
from acep.events.seen_ids import SeenIds
from tests.case_counts import CaseCounts

HASHES: list[Any] = [hash, lambda text: hash(text) % 3, lambda text: 0]


@pytest.fixture(params=HASHES, ids=["as they are", "of few values", "all equal"])
def _hashes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("acep.events.seen_ids.hash", request.param, raising=False)
    monkeypatch.setattr("acep.events.seen_ids.SPARE", 4)


@pytest.mark.usefixtures("_hashes")
@pytest.mark.parametrize("kind", ["int64", "string", "large_string", "dictionary"])
def test_it_knows_what_a_dict_of_all_ids_knows(kind: str, cases: CaseCounts) -> None:
    for seed in range(cases(60)):
        rng, known, final = Random(seed), dict[Any, int](), -1
        seen = SeenIds("id")
        for _ in range(rng.randrange(1, 12)):
            size = rng.randrange(12)
            ticks = np.array([final + rng.randrange(1, 9) for _ in range(size)], np.int64)
            ids = [rng.randrange(-9, 9) for _ in range(size)]
            given: list[Any] = ids if kind == "int64" else [f"id {one}" for one in ids]
            used = np.array([rng.random() < 0.9 for _ in range(size)], bool)
            wanted = []
            for one, tick, use in zip(given, ticks.tolist(), used.tolist(), strict=True):
                wanted.append(use and known.get(one, -2) >= final)
                if use and not wanted[-1]:
                    known[one] = tick
            column = pa.chunked_array([given], pa.int64() if kind == "int64" else pa.string())
            column = column.dictionary_encode() if kind == "dictionary" else column.cast(getattr(pa, kind)())
            before, told = copy(seen), seen.dump()
            assert seen.see(column, ticks, used).tolist() == wanted
            assert before.dump() == told, "a copy has changed"
            if rng.random() < 0.4:
                final += rng.randrange(4)
                seen.forget(final)
            if rng.random() < 0.2:
                other = SeenIds("id")
                other.load(seen.dump())
                other.forget(final)
                seen = other
        live = sum(tick >= final for tick in known.values())
        assert len(seen) <= 2 * live + 4 + 12 * 8


def test_it_forgets_what_is_final() -> None:
    seen = SeenIds("id")
    for start in range(0, 10**6, 10_000):
        ids = np.arange(start, start + 10_000)
        assert not seen.see(pa.chunked_array([ids]), ids).any()
        seen.forget(start)
    assert len(seen) < 50_000


@pytest.mark.parametrize("held", [pa.float64(), pa.timestamp("s"), pa.bool_(), pa.decimal128(9, 2), pa.date32()])
def test_ids_are_integers_or_texts(held: pa.DataType) -> None:
    with pytest.raises(DataError, match="the id column `n` must hold integers or texts"):
        SeenIds("n").see(pa.chunked_array([], held), np.zeros(0, np.int64))


def test_a_null_is_named_by_its_row() -> None:
    with pytest.raises(DataError, match="column `n` is null in row 101 "):
        SeenIds("n").see(pa.chunked_array([[1, None]]), np.zeros(2, np.int64), base=100)


@pytest.mark.parametrize("data", [b"nothing", b"\xff" * 40])
def test_other_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="ids"):
        SeenIds("n").load(data)


# Ids that are forgotten by key --------------------------------------------------------------------

BY_KEY = acep.parse("PATTERN SEQ(a p, b q) WHERE skip_till_next_match(p, q) { [k] } WITHIN 5")
ENDLESS = {"lateness": "inf", "speculation": "inf", "id": "id"}


def push_round(matcher: acep.Matcher, number: int, kind: type, *, by_type: bool = False) -> None:
    """Push two events of one of ten keys, and say that no more of it come up to them."""
    ts, key = 10 * number, f"k{number % 10}"
    ids = [kind(2 * number), kind(2 * number + 1)]
    matcher.push({"ts": [ts, ts + 1], "type": ["a", "b"], "k": [key] * 2, "id": ids})
    matcher.advance(ts + 5, key={"k": key}, type=["a", "b"] if by_type else None)


# Half of the ways have each pair of values.
@pytest.mark.parametrize(
    ("by_type", "duplicates", "kind"),
    [
        (False, "refuse", int),
        pytest.param(False, "refuse", str, marks=pytest.mark.long),
        pytest.param(False, "drop", int, marks=pytest.mark.long),
        (False, "drop", str),
        pytest.param(True, "refuse", int, marks=pytest.mark.long),
        (True, "refuse", str),
        (True, "drop", int),
        pytest.param(True, "drop", str, marks=pytest.mark.long),
    ],
)
def test_ids_of_events_that_are_final_by_their_key_are_forgotten(by_type: bool, duplicates: str, kind: type) -> None:
    with mock.patch.object(seen_ids, "SPARE", 64):
        matcher = acep.Matcher(BY_KEY, duplicates=duplicates, **ENDLESS)
        sizes = []
        for number in range(300):
            push_round(matcher, number, kind, by_type=by_type)
            sizes.append(len(matcher._tables.arrivals._seen))
        assert max(sizes[150:]) <= max(sizes[:150]) <= 300
    first = {"ts": [0], "type": ["a"], "k": ["k0"], "id": [kind(0)]}
    matcher.push(first)
    assert (matcher.report.late, matcher.report.duplicates) == (1, 0)
    new = {"ts": [5000], "type": ["a"], "k": ["k0"], "id": [kind(0)]}  # the event of this id is final: it is another
    matcher.push(new)
    if duplicates == "drop":
        matcher.push(new)
        assert matcher.report.duplicates == 1
    else:
        with pytest.raises(DataError, match="came before"):
            matcher.push(new)


@pytest.mark.parametrize("kind", [int, str])
def test_a_state_knows_which_ids_are_final_by_their_key(kind: type) -> None:
    matcher = acep.Matcher(BY_KEY, duplicates="drop", **ENDLESS)
    matcher.push({"ts": [1, 1], "type": ["a", "a"], "k": ["x", "y"], "id": [kind(1), kind(2)]})
    restored = acep.Matcher(BY_KEY, duplicates="drop", **ENDLESS)
    restored.restore(matcher.snapshot())
    for one in (matcher, restored):
        one.advance(3, key={"k": "x"})
        one.push({"ts": [5, 5], "type": ["b", "b"], "k": ["x", "y"], "id": [kind(1), kind(2)]})
        assert one.report.duplicates == 1  # that of y, which is not final


def test_a_finite_lateness_forgets_by_time_alone() -> None:
    matcher = acep.Matcher(BY_KEY, lateness=100, id="id", duplicates="drop")
    matcher.push({"ts": [1], "type": ["a"], "k": ["x"], "id": [1]})
    matcher.advance(3, key={"k": "x"})
    matcher.push({"ts": [5], "type": ["b"], "k": ["x"], "id": [1]})
    assert matcher.report.duplicates == 1
