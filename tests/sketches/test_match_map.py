"""The match-map sketch: its arrays give what its definition gives cell by cell, and errors are as
docs/explanation/sketches.md derives."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acep.errors import SnapshotError
from acep.sketches.dense import DenseMemory
from acep.sketches.hashing import cells_of
from acep.sketches.match_map import MatchMap
from acep.storage.arrays import pack
from tests.binomial import not_less, not_more

COLUMNS, RING, VECTORS = 2, 67, range(-2, 9)
VECTOR = st.sampled_from(VECTORS)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.dictionaries(VECTOR, st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=5)),
        st.tuples(st.just("bits"), st.lists(st.tuples(VECTOR, st.integers(0, RING - 1)), max_size=6)),
        st.tuples(st.just("recycle"), st.integers(0, RING - 1)),
        st.tuples(st.just("scale"), st.sampled_from([0.5, 1.0])),
    ),
    max_size=8,
)


def ints(values) -> np.ndarray:
    return np.array(list(values), dtype=np.int64)


class Defined:
    """The sketch by its definition: sums and the set of slots of each cell (row, number), one vector at a time."""

    def __init__(self, *, width: int, depth: int, seed: int = 0, conservative: bool = True) -> None:
        self.size, self.conservative = (width, depth, seed), conservative
        self.sums = defaultdict(lambda: [0.0] * COLUMNS)
        self.slots = defaultdict(set)

    def cells(self, vector: int) -> list[tuple[int, int]]:
        return list(enumerate(cells_of(vector, *self.size)))

    def look(self, vector: int) -> list[float]:
        return [min(sums) for sums in zip(*(self.sums[cell] for cell in self.cells(vector)), strict=True)]

    def map(self, vector: int) -> list[bool]:
        found = set.intersection(*(self.slots[cell] for cell in self.cells(vector)))
        return [slot in found for slot in range(RING)]

    def add(self, amounts: dict[int, Sequence[float]]) -> None:
        least = {v: [s + a for s, a in zip(self.look(v), added, strict=True)] for v, added in amounts.items()}
        for vector, added in amounts.items():
            for cell in self.cells(vector):
                held, least_here = self.sums[cell], least[vector]
                raised = map(max, held, least_here) if self.conservative else map(sum, zip(held, added, strict=True))
                self.sums[cell] = list(raised)

    def merge(self, other: Defined, slots: Sequence[int]) -> None:
        for cell, added in other.sums.items():
            self.sums[cell] = [s + a for s, a in zip(self.sums[cell], added, strict=True)]
        for cell, held in other.slots.items():
            self.slots[cell] |= {slots[slot] for slot in held} - {-1}


def run(steps: list[tuple[str, object]], memory: MatchMap, plain: Defined) -> None:
    for name, given_ in steps:
        if name == "add":
            memory.add(ints(given_), np.array(list(given_.values()), float).reshape(-1, COLUMNS))
            plain.add(given_)
        elif name == "bits":
            memory.set_bits(ints(v for v, _ in given_), ints(slot for _, slot in given_))
            for vector, slot in given_:
                for cell in plain.cells(vector):
                    plain.slots[cell].add(slot)
        elif name == "recycle":
            memory.recycle(given_)
            for held in plain.slots.values():
                held.discard(given_)
        else:
            memory.scale(given_)
            plain.sums.update({cell: [given_ * one for one in sums] for cell, sums in plain.sums.items()})


@given(first=STEPS, second=STEPS, conservative=st.booleans(), width=st.integers(1, 6), shift=st.integers(0, RING))
def test_arrays_give_what_the_definition_gives(
    first: list[tuple[str, object]], second: list[tuple[str, object]], conservative: bool, width: int, shift: int
) -> None:
    settings = {"width": width, "depth": 3, "seed": 2, "conservative": conservative}
    memory, other = (MatchMap(COLUMNS, RING, **settings) for _ in range(2))
    plain, plain_other = (Defined(**settings) for _ in range(2))
    run(first, memory, plain)
    run(second, other, plain_other)
    for step in range(2):
        assert memory.look(ints(VECTORS)).tolist() == [plain.look(v) for v in VECTORS]
        assert memory.maps(ints(VECTORS)).tolist() == [plain.map(v) for v in VECTORS]
        if not step:
            slots = np.roll(np.arange(RING), shift)
            slots[5] = -1
            memory.merge(other, slots)
            plain.merge(plain_other, slots.tolist())


@given(first=STEPS, second=STEPS, width=st.integers(1, 6))
def test_a_merge_is_the_sketch_of_both(
    first: list[tuple[str, object]], second: list[tuple[str, object]], width: int
) -> None:
    """Without forgetting and conservative update to the last bit; maps in any case."""
    first, second = ([step for step in steps if step[0] in ("add", "bits")] for steps in (first, second))
    for conservative in (False, True):
        one, other, both = (MatchMap(COLUMNS, RING, width=width, depth=2, conservative=conservative) for _ in range(3))
        plain = Defined(width=width, depth=2)
        for steps, memory in ((first, one), (second, other), (first + second, both)):
            run(steps, memory, plain)
        one.merge(other)
        assert np.array_equal(one.maps(ints(VECTORS)), both.maps(ints(VECTORS)))
        assert conservative or one.to_bytes() == both.to_bytes()


@pytest.mark.parametrize("load", [5, 40, 150])
def test_false_bits_are_as_frequent_as_derived(load: int, cases: Callable[[int], int]) -> None:
    """Over seeds, of one vector that did not reach the bundle: (1 - (1 - 1/w)^load)^depth, neither more nor less."""
    width, depth, tries = 60, 2, cases(1500)
    reached = ints(range(0, 16 * load, 16))
    false = 0
    for seed in range(tries):
        memory = MatchMap(0, 8, width=width, depth=depth, seed=seed)
        memory.set_bits(reached, np.full(load, 3))
        memory.set_bits(np.arange(500), np.full(500, 4))  # another bundle's load does not matter
        false += bool(memory.maps(ints([7]))[0, 3])
        assert memory.maps(reached)[:, 3].all()
        assert not memory.maps(reached)[:, [0, 1, 2, 5, 6, 7]].any()
    derived = (1 - (1 - 1 / width) ** load) ** depth
    assert not_more(false, tries, derived)
    assert not_less(false, tries, derived)


def test_a_recycled_slot_begins_anew(cases: Callable[[int], int]) -> None:
    """However many bundles went through a slot, its false bits are those of the last one."""
    width, tries = 50, cases(800)
    false = 0
    for seed in range(tries):
        memory = MatchMap(0, 1, width=width, depth=2, seed=seed)
        for bundle in range(20):
            memory.recycle(0)
            memory.set_bits(np.arange(30) + 1000 * bundle, np.zeros(30, np.int64))
        false += bool(memory.maps(ints([999_999]))[0, 0])
    derived = (1 - (1 - 1 / width) ** 30) ** 2
    assert not_more(false, tries, derived)
    assert not_less(false, tries, derived)


@pytest.mark.parametrize("conservative", [False, True])
def test_large_errors_of_sums_are_rare(conservative: bool, cases: Callable[[int], int]) -> None:
    epsilon, delta, tries = 0.1, 0.2, cases(500)
    width, depth = 28, 2
    vectors = np.arange(400)
    amounts = np.stack([1.5 + vectors % 7, 1000 / (1 + vectors)], axis=1)
    above = np.zeros(2, dtype=np.int64)
    for seed in range(tries):
        memory = MatchMap(2, 1, width=width, depth=depth, seed=seed, conservative=conservative)
        memory.add(vectors, amounts)
        memory.scale(0.5)
        memory.add(vectors, amounts / 2)
        errors = memory.look(ints([390]))[0] - amounts[390]
        assert np.all(errors > -1e-9)
        above += errors > epsilon * amounts.sum(axis=0)
    assert all(not_more(hits, tries, delta) for hits in above.tolist())


def test_a_size_in_bytes_is_kept() -> None:
    for depth in (1, 2, 3):
        memory = MatchMap.within(3, 130, nbytes=10_000, depth=depth)
        assert 10_000 - 8 * depth * 6 < memory.nbytes <= 10_000
    with pytest.raises(ValueError, match="a sketch of"):
        MatchMap.within(3, 64, nbytes=50)


def test_sketches_that_do_not_fit_are_not_merged() -> None:
    memory = MatchMap(1, 4, width=5, depth=2)
    others = [
        MatchMap(1, 4, width=5, depth=2, seed=1),
        MatchMap(1, 4, width=6, depth=2),
        MatchMap(1, 4, width=5, depth=3),
        MatchMap(1, 4, width=5, depth=2, conservative=False),
        MatchMap(1, 5, width=5, depth=2),
        MatchMap(2, 4, width=5, depth=2),
        DenseMemory(1, 4),
    ]
    for other in others:
        with pytest.raises(ValueError, match="merged with"):
            memory.merge(other)
    for columns, ring in ((-1, 1), (1, -1), (2**17, 1), (1, 2**17)):
        with pytest.raises(ValueError, match="columns"):
            MatchMap(columns, ring, width=5, depth=2)


def test_content_that_no_sketch_can_have_is_told() -> None:
    numbers = {"columns": 1, "ring": 3, "width": 2, "depth": 2, "seed": 0, "conservative": 1}
    arrays = {"sums": np.ones((2, 1, 2)), "words": np.ones((2, 2, 1), np.uint64)}
    assert MatchMap.from_bytes(pack("match-map", numbers, arrays)).ring == 3
    for changed in (
        {"width": 2**32},
        {"width": 0},
        {"depth": 2**40},
        {"depth": 1},
        {"columns": 2},
        {"ring": 65},
        {"seed": -1},
        {"conservative": 2},
        {"sums": np.full((2, 1, 2), np.inf)},
        {"sums": -np.ones((2, 1, 2))},
        {"words": np.full((2, 2, 1), 8, np.uint64)},
        {"words": np.ones((2, 2, 1))},
    ):
        told = numbers | {k: v for k, v in changed.items() if k in numbers}
        with pytest.raises(SnapshotError):
            MatchMap.from_bytes(pack("match-map", told, arrays | {k: v for k, v in changed.items() if k in arrays}))
    with pytest.raises(SnapshotError, match="kind 'match-map'"):
        DenseMemory.from_bytes(pack("match-map", numbers, arrays))
