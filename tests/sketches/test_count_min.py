"""Count-min: both paths say the same, no count is too small, errors are as rare as docs/explanation/sketches.md
derives."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from math import ceil

import mmh3
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acep.errors import SnapshotError
from acep.sketches.count_min import MAX_TOTAL, CountMin
from acep.sketches.hashing import cells, cells_of
from acep.sketches.sketch_size import size_for_error
from acep.storage.arrays import pack
from tests.binomial import not_more

KEYS = st.integers(-(2**63), 2**63 - 1)
FEW = st.integers(0, 12)
STREAM = st.lists(st.tuples(FEW, st.integers(0, 20)), max_size=40)


def ints(values) -> np.ndarray:
    return np.array(list(values), dtype=np.int64)


@given(
    keys=st.lists(KEYS, max_size=8),
    width=st.integers(1, 2**32),
    depth=st.integers(1, 9),
    seed=st.integers(0, 2**32 - 1),
)
def test_arrays_are_hashed_as_mmh3_does(keys: list[int], width: int, depth: int, seed: int) -> None:
    found = cells(ints(keys), width, depth, seed)
    assert found.T.tolist() == [cells_of(key, width, depth, seed) for key in keys]
    assert not found.size or (found.min() >= 0 and found.max() < width)


def test_the_first_rows_are_the_pieces_of_one_hash() -> None:
    low, high = mmh3.hash64((77).to_bytes(8, "little"), 5, x64arch=True, signed=False)
    assert cells_of(77, 2**32, 4, 5) == [low % 2**32, low >> 32, high % 2**32, high >> 32]


@given(stream=st.lists(STREAM, max_size=4), conservative=st.booleans(), width=st.integers(1, 8))
def test_both_paths_say_the_same(stream: list[list[tuple[int, int]]], conservative: bool, width: int) -> None:
    one, many = (CountMin(width, 3, seed=9, conservative=conservative) for _ in range(2))
    for key, amount in (pair for batch in stream for pair in batch):
        one.add(key, amount)
        many.add_all(ints([key]), ints([amount]))
    assert one.to_bytes() == many.to_bytes()
    assert many.counts(ints(range(13))).tolist() == [one.count(key) for key in range(13)]


@given(stream=st.lists(STREAM, max_size=4), conservative=st.booleans(), width=st.integers(1, 8))
def test_no_count_is_too_small(stream: list[list[tuple[int, int]]], conservative: bool, width: int) -> None:
    sketch, plain, truth = CountMin(width, 3, conservative=conservative), CountMin(width, 3), Counter[int]()
    for batch in stream:
        for each in (sketch, plain):
            each.add_all(ints(key for key, _ in batch), ints(amount for _, amount in batch))
        for key, amount in batch:
            truth[key] += amount
    found = sketch.counts(ints(range(13)))
    assert np.all(found >= [truth[key] for key in range(13)])
    assert np.all(found <= plain.counts(ints(range(13))))
    assert sketch.total == plain.total == truth.total()


@given(first=STREAM, second=STREAM, conservative=st.booleans(), width=st.integers(1, 8))
def test_a_merge_counts_both(
    first: list[tuple[int, int]], second: list[tuple[int, int]], conservative: bool, width: int
) -> None:
    parts, both, truth = [], CountMin(width, 3), Counter[int]()
    for stream in (first, second):
        part = CountMin(width, 3, conservative=conservative)
        part.add_all(ints(k for k, _ in stream), ints(a for _, a in stream))
        both.add_all(ints(k for k, _ in stream), ints(a for _, a in stream))
        parts.append(part)
        for key, amount in stream:
            truth[key] += amount
    parts[0].merge(parts[1])
    found = parts[0].counts(ints(range(13)))
    assert np.all(found >= [truth[key] for key in range(13)])
    assert np.all(found <= both.counts(ints(range(13))))
    assert conservative or parts[0].to_bytes() == both.to_bytes()
    assert CountMin.from_bytes(parts[0].to_bytes()).to_bytes() == parts[0].to_bytes()


@pytest.mark.parametrize("conservative", [False, True])
def test_large_errors_are_rare(conservative: bool, cases: Callable[[int], int]) -> None:
    """Zipf's frequencies; of one key, over seeds: the error is above epsilon * total with probability delta at most."""
    epsilon, delta, tries = 0.1, 0.2, cases(600)
    keys = ints(range(500))
    amounts = (1000 / (keys + 1)).astype(np.int64)
    asked = 300
    above = 0
    for seed in range(tries):
        sketch = CountMin.sized(epsilon, delta, seed=seed, conservative=conservative)
        for part in np.array_split(np.arange(len(keys)), 5):
            sketch.add_all(keys[part], amounts[part])
        above += sketch.count(asked) - int(amounts[asked]) > epsilon * sketch.total
    assert not_more(above, tries, delta)


def test_the_error_of_one_row_is_that_of_a_random_hash(cases: Callable[[int], int]) -> None:
    """In a row a key's error is (total - its own) / width on the mean: not less and not more, or the hash is bad."""
    width, tries = 37, cases(2000)
    keys = ints(range(0, 4000, 10))
    errors = []
    for seed in range(tries):
        sketch = CountMin(width, 1, seed=seed)
        sketch.add_all(keys)
        errors.append(sketch.count(50) - 1)
    expected, deviation = 399 / width, (399 / width * (1 - 1 / width) / tries) ** 0.5
    assert abs(np.mean(errors) - expected) < 5 * deviation


def test_conservative_update_makes_errors_smaller() -> None:
    rng = np.random.default_rng(4)
    keys = rng.zipf(1.3, 5000) % 1000
    plain, conservative = CountMin(100, 4), CountMin(100, 4, conservative=True)
    for part in np.array_split(keys, 200):
        plain.add_all(part)
        conservative.add_all(part)
    asked = np.unique(keys)
    truth = np.bincount(keys)[asked]
    assert (conservative.counts(asked) - truth).sum() < 0.75 * (plain.counts(asked) - truth).sum()


@given(epsilon=st.floats(1e-4, 0.99), delta=st.floats(1e-9, 0.99), load=st.integers(0, 5000))
def test_sizes_keep_their_promise_and_are_not_wasteful(epsilon: float, delta: float, load: int) -> None:
    width, depth = size_for_error(epsilon, delta, load)

    def false_bit(width: int) -> float:
        return float((1 - (1 - 1 / width) ** load) ** depth)

    assert np.e / width <= epsilon
    assert np.exp(-depth) <= delta
    assert false_bit(width) <= delta * (1 + 1e-9)
    assert width <= ceil(np.e / epsilon) or width == 1 or false_bit(width - 1) > delta * (1 - 1e-6)
    assert depth == 1 or np.exp(-(depth - 1)) > delta


def test_keys_of_any_kind() -> None:
    sketch = CountMin(1000, 4)
    for key in ("a", b"\xff\x00", "1", 1):
        sketch.add(key, 5)
    assert [sketch.count(key) for key in ("a", b"\xff\x00", "1", 1, 2)] == [5, 5, 5, 5, 0]


def test_what_cannot_be_counted_is_refused() -> None:
    sketch = CountMin(10, 2)
    sketch.add(1, 2)
    before = sketch.to_bytes()
    for amounts in ([-1], [1, -1], [MAX_TOTAL], [2**62 - 1, 2**62 - 1, 5], [1]):
        with pytest.raises(ValueError, match=r"amount|2\*\*62"):
            sketch.add_all(ints(range(len(amounts) if amounts != [1] else 2)), ints(amounts))
    for amount in (-1, MAX_TOTAL):
        with pytest.raises(ValueError, match=r"amount|2\*\*62"):
            sketch.add(1, amount)
    for other in (CountMin(11, 2), CountMin(10, 3), CountMin(10, 2, seed=1), CountMin(10, 2, conservative=True)):
        with pytest.raises(ValueError, match="merged"):
            sketch.merge(other)
    full = CountMin(10, 2)
    full.add(3, MAX_TOTAL - 1)
    with pytest.raises(ValueError, match=r"2\*\*62"):
        sketch.merge(full)
    assert sketch.to_bytes() == before
    for sizes in ((0, 1), (1, 0), (2**32 + 1, 1), (1, 65)):
        with pytest.raises(ValueError, match="a sketch of"):
            CountMin(*sizes)
    for wanted in ((0.0, 0.1), (0.1, 0.0), (1.0, 0.1), (0.1, 1.0), (float("nan"), 0.1)):
        with pytest.raises(ValueError, match="between"):
            CountMin.sized(*wanted)


def test_any_flipped_bit_is_told(cases: Callable[[int], int]) -> None:
    sketch = CountMin(20, 3)
    sketch.add_all(ints(range(30)))
    data = sketch.to_bytes()
    rng = random.Random(3)
    for at in {*range(64 * 8), *(rng.randrange(8 * len(data)) for _ in range(cases(1000)))}:
        spoilt = bytearray(data)
        spoilt[at // 8] ^= 1 << at % 8
        with pytest.raises(SnapshotError):
            CountMin.from_bytes(bytes(spoilt))


def test_content_that_no_sketch_can_have_is_told() -> None:
    numbers = {"width": 2, "depth": 1, "seed": 0, "conservative": 0, "total": 3}
    table = ints([1, 2]).reshape(1, 2)
    assert CountMin.from_bytes(pack("count-min", numbers, {"table": table})).total == 3
    bad: list[tuple[dict[str, int], np.ndarray]] = [
        ({"total": 4}, table),
        ({"total": 2, "conservative": 1}, table),
        ({"total": -1}, table),
        ({"width": 3}, table),
        ({"seed": 2**32}, table),
        ({"depth": 0}, table),
        ({"conservative": 2}, table),
        ({}, table.astype(float)),
        ({}, table - 2),
        ({}, ints([2**62, 2**62]).reshape(1, 2)),
    ]
    for changed, array in bad:
        with pytest.raises(SnapshotError):
            CountMin.from_bytes(pack("count-min", numbers | changed, {"table": array}))
