"""What every memory of a history must do, compared with dictionaries; and that damaged bytes are told as such."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acep.errors import SnapshotError
from acep.sketches.dense import DenseMemory
from acep.sketches.match_map import MatchMap
from acep.sketches.memories import read_memory
from acep.sketches.neighbour_map import NeighbourMap
from acep.sketches.protocol import VectorMemory
from acep.storage.arrays import pack
from acep.storage.frame import HEADER, digest

COLUMNS, RING = 2, 70
MAKERS: dict[str, Callable[[], VectorMemory]] = {
    "dense": lambda: DenseMemory(COLUMNS, RING),
    "neighbours": lambda: NeighbourMap(COLUMNS, RING, nbytes=160, step=3, size=4),
    "sketch": lambda: MatchMap(COLUMNS, RING, width=9, depth=3, conservative=False),
}
each_memory = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)

VECTORS = st.one_of(st.integers(0, 20), st.sampled_from([-(2**63), -1, 2**63 - 1]))
# Amounts are whole, so that sums are exact in any order.
ADDS = st.lists(st.tuples(VECTORS, st.integers(0, 9), st.integers(0, 9)), max_size=12)
BITS = st.lists(st.tuples(VECTORS, st.integers(0, RING - 1)), max_size=12)
SLOTS = st.integers(0, RING - 1)
STEPS = st.lists(
    st.one_of(st.tuples(st.just("add"), ADDS), st.tuples(st.just("bits"), BITS), st.tuples(st.just("recycle"), SLOTS)),
    max_size=8,
)


class Told:
    """The truth: what was given, by vector."""

    def __init__(self) -> None:
        self.sums: dict[int, list[int]] = defaultdict(lambda: [0, 0])
        self.bits: set[tuple[int, int]] = set()

    def map(self, vector: int) -> list[bool]:
        return [(vector, slot) in self.bits for slot in range(RING)]


def run(steps: list[tuple[str, object]], memory: VectorMemory, told: Told) -> None:
    for name, given_ in steps:
        if name == "add":
            memory.add(ints(v for v, _, _ in given_), np.array([a for _, *a in given_], float).reshape(-1, COLUMNS))
            for vector, *amounts in given_:
                told.sums[vector] = [s + a for s, a in zip(told.sums[vector], amounts, strict=True)]
        elif name == "bits":
            memory.set_bits(ints(v for v, _ in given_), ints(slot for _, slot in given_))
            told.bits |= set(given_)
        else:
            memory.recycle(given_)
            told.bits = {(v, slot) for v, slot in told.bits if slot != given_}


def ints(values) -> np.ndarray:
    return np.array(list(values), dtype=np.int64)


def asked(told: Told) -> np.ndarray:
    return ints({*told.sums, *(v for v, _ in told.bits), 5, -7})


@each_memory
@given(steps=STEPS)
def test_never_too_little(make: Callable[[], VectorMemory], steps: list[tuple[str, object]]) -> None:
    memory, told = make(), Told()
    run(steps, memory, told)
    vectors = asked(told)
    sums, bits = memory.look(vectors), memory.maps(vectors)
    truth = np.array([told.sums[v] for v in vectors.tolist()])
    maps = np.array([told.map(v) for v in vectors.tolist()])
    assert np.all(sums >= truth)
    assert np.all(bits >= maps)
    if isinstance(memory, DenseMemory):
        assert np.array_equal(sums, truth)
        assert np.array_equal(bits, maps)


@each_memory
@given(steps=STEPS)
def test_words_are_the_maps_packed(make: Callable[[], VectorMemory], steps: list[tuple[str, object]]) -> None:
    memory, told = make(), Told()
    run(steps, memory, told)
    vectors = asked(told)
    words = memory.words(vectors)
    as_bits = [[bool(int(word[s // 64]) >> s % 64 & 1) for s in range(RING)] for word in words]
    assert np.array_equal(memory.maps(vectors), as_bits)


@each_memory
@given(steps=STEPS, more=STEPS)
def test_bytes_bring_it_back(
    make: Callable[[], VectorMemory], steps: list[tuple[str, object]], more: list[tuple[str, object]]
) -> None:
    memory, told = make(), Told()
    run(steps, memory, told)
    again = read_memory(memory.to_bytes())
    assert type(again) is type(memory)
    assert again.to_bytes() == memory.to_bytes()
    run(more, again, Told())
    run(more, memory, told)
    assert again.to_bytes() == memory.to_bytes()


@each_memory
@given(first=STEPS, second=STEPS, shift=st.integers(0, RING))
def test_a_merge_holds_both(
    make: Callable[[], VectorMemory], first: list[tuple[str, object]], second: list[tuple[str, object]], shift: int
) -> None:
    one, other, told, added = make(), make(), Told(), Told()
    run(first, one, told)
    run(second, other, added)
    slots = np.roll(np.arange(RING), shift)
    slots[3] = -1
    one.merge(other, slots)
    for vector, sums in added.sums.items():
        told.sums[vector] = [s + a for s, a in zip(told.sums[vector], sums, strict=True)]
    told.bits |= {(v, int(slots[s])) for v, s in added.bits if slots[s] >= 0}
    vectors = asked(told)
    sums, maps = one.look(vectors), one.maps(vectors)
    truth = np.array([told.sums[v] for v in vectors.tolist()])
    assert np.all(sums >= truth)
    assert np.all(maps >= np.array([told.map(v) for v in vectors.tolist()]))
    if isinstance(one, DenseMemory):
        assert np.array_equal(sums, truth)
        assert np.array_equal(maps, np.array([told.map(v) for v in vectors.tolist()]))


@each_memory
def test_a_memory_merges_with_itself(make: Callable[[], VectorMemory]) -> None:
    memory = make()
    memory.add(ints([1, 2]), np.array([[1.0, 2.0], [3.0, 4.0]]))
    memory.set_bits(ints([1]), ints([69]))
    before = memory.look(ints([1, 2]))
    memory.merge(memory)
    assert np.array_equal(memory.look(ints([1, 2])), 2 * before)


@each_memory
def test_scaling_forgets(make: Callable[[], VectorMemory]) -> None:
    memory = make()
    memory.add(ints([1]), np.array([[8.0, 2.0]]))
    memory.scale(0.25)
    assert memory.look(ints([1])).tolist() == [[2.0, 0.5]]
    for factor in (-0.1, 1.5, float("nan")):
        with pytest.raises(ValueError, match="factor"):
            memory.scale(factor)


@each_memory
def test_what_does_not_fit_is_refused_and_changes_nothing(make: Callable[[], VectorMemory]) -> None:
    memory = make()
    memory.add(ints([1]), np.ones((1, COLUMNS)))
    before = memory.to_bytes()
    for amounts in (np.ones(1), np.ones((2, COLUMNS)), np.ones((1, COLUMNS + 1)), -np.ones((1, COLUMNS))):
        with pytest.raises(ValueError, match="amount"):
            memory.add(ints([1]), amounts)
    for bad in (np.nan, np.inf):
        with pytest.raises(ValueError, match="not finite"):
            memory.add(ints([1]), np.array([[1.0, bad]]))
    for slot in (-1, RING):
        with pytest.raises(ValueError, match="slot"):
            memory.set_bits(ints([1]), ints([slot]))
        with pytest.raises(ValueError, match="slot"):
            memory.recycle(slot)
    for slots in (ints([0] * RING), ints(range(1, RING + 1)), ints(range(RING - 1)), ints([-2] * RING)):
        with pytest.raises(ValueError, match="slots"):
            memory.merge(make(), slots)
    with pytest.raises(ValueError, match="merged with"):
        memory.merge(DenseMemory(COLUMNS + 1, RING))
    assert memory.to_bytes() == before


def filled(make: Callable[[], VectorMemory]) -> bytes:
    memory = make()
    memory.add(ints(range(9)), np.ones((9, COLUMNS)))
    memory.set_bits(ints(range(9)), ints(range(61, 70)))
    return memory.to_bytes()


@each_memory
def test_any_flipped_bit_is_told(make: Callable[[], VectorMemory], cases: Callable[[int], int]) -> None:
    data = filled(make)
    rng = random.Random(3)
    for at in {*range(8 * (HEADER.size + 20)), *(rng.randrange(8 * len(data)) for _ in range(cases(2000)))}:
        spoilt = bytearray(data)
        spoilt[at // 8] ^= 1 << at % 8
        with pytest.raises(SnapshotError):
            read_memory(bytes(spoilt))


@each_memory
def test_cut_and_foreign_bytes_are_told(make: Callable[[], VectorMemory]) -> None:
    data = filled(make)
    for size in {*range(HEADER.size + 60), *range(HEADER.size, len(data), 97)}:
        with pytest.raises(SnapshotError):
            read_memory(data[:size])
    for other in (data + b"\0", b"", b"\0" * 200, b"ACEPSTAT" + data[8:]):
        with pytest.raises(SnapshotError):
            read_memory(other)
    with pytest.raises(SnapshotError, match="format version 2"):
        read_memory(data[:8] + b"\2" + data[9:])
    with pytest.raises(SnapshotError, match="not str"):
        read_memory("text")  # type: ignore[arg-type]
    with pytest.raises(SnapshotError, match="kind 'other'"):
        read_memory(pack("other", {}, {}))


def dense(**changed: object) -> bytes:
    """Bytes of a dense memory, some of it replaced: the checksum fits."""
    numbers = {"columns": 1, "ring": 3}
    arrays = {"vectors": ints([1, 4]), "sums": np.ones((2, 1)), "words": np.ones((2, 1), np.uint64)}
    numbers |= {name: n for name, n in changed.items() if name in numbers}
    return pack("dense", numbers, arrays | {name: a for name, a in changed.items() if name in arrays})


def test_bytes_that_no_array_needs_are_told() -> None:
    data = dense()
    size, rest = data[HEADER.size - 4 : HEADER.size], data[HEADER.size :] + bytes(8)
    with pytest.raises(SnapshotError, match="cannot be read"):
        read_memory(data[:12] + digest(size + rest) + size + rest)


def test_content_that_no_memory_can_have_is_told() -> None:
    assert read_memory(dense()).look(ints([4])).tolist() == [[1.0]]
    for changed in (
        {"vectors": ints([4, 1])},
        {"vectors": ints([1, 1])},
        {"vectors": np.ones(2)},
        {"vectors": ints([[1, 4]])},
        {"vectors": ints([1])},
        {"sums": np.array([[1.0], [np.nan]])},
        {"sums": -np.ones((2, 1))},
        {"sums": np.ones((2, 2))},
        {"words": np.full((2, 1), 8, np.uint64)},
        {"ring": 65},
        {"ring": 0},
        {"ring": 2**40},
        {"columns": -1},
    ):
        with pytest.raises(SnapshotError):
            read_memory(dense(**changed))


@given(st.binary(max_size=80))
def test_headers_of_any_text_are_told(head: bytes) -> None:
    size = len(head).to_bytes(4, "little")
    data = b"ACEPSKCH" + b"\1\0\0\0" + digest(size + head) + size + head
    with pytest.raises(SnapshotError):
        read_memory(data)


@pytest.mark.parametrize(
    "head",
    [
        b'{"kind":"dense","numbers":[],"arrays":[]}',
        b'{"kind":"dense","numbers":{"ring":true},"arrays":[]}',
        b'{"kind":"dense","numbers":{},"arrays":[["vectors","<i8",[1099511627775,1099511627775]]]}',
        b'{"kind":"dense","numbers":{},"arrays":[["vectors","|O",[0]]]}',
        b'{"kind":"dense","numbers":{},"arrays":[["vectors","<i8",[-1]]]}',
        b'{"kind":"dense","numbers":{},"arrays":[["vectors",["<i8"],[0]]]}',
        b"[" * 100_000,
    ],
    ids=["numbers", "truth", "huge", "object", "negative", "type", "deep"],
)
def test_hostile_headers_are_told(head: bytes) -> None:
    test_headers_of_any_text_are_told.hypothesis.inner_test(head)
