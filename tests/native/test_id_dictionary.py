"""Ids that are texts: found again however they came, and few pieces of them."""

from __future__ import annotations

import random

import numpy as np

from acep.native.id_dictionary import IdDictionary


def test_names_of_many_small_batches_are_few_pieces() -> None:
    rng = random.Random(1)
    names, at, alive = IdDictionary(), 0, 0
    for step in range(3_000):
        size = rng.choice((0, 1, 1, 2, 9))
        names.add(at, [f"n{i}" for i in range(at, at + size)], latest=step)
        at += size
        if step % 500 == 499:
            alive = at - 400
            numbers = np.array(sorted(rng.sample(range(alive, at), 200)))
            names.keep(numbers, None)
            assert len(names) == names.n_kept == 200
            assert not names.crowded
            again = IdDictionary()
            again.load(names.dump())
            assert again.bytes == names.bytes > 200 * len("n1000")
            names = again
            wanted = np.array(rng.choices(numbers.tolist(), k=50))
            assert names.texts_of(wanted).tolist() == [f"n{i}" for i in wanted]
        assert len(names.pieces) <= np.log2(at + 2) + 1


def test_names_of_late_events_are_kept_besides_those_in_use() -> None:
    names = IdDictionary()
    for at, size in ((0, 400), (400, 150), (550, 60)):  # each less than half of the one before, so none is merged
        names.add(at, [f"n{i}" for i in range(at, at + size)], latest=at)
    names.keep(np.array([3, 399]), since=400)
    assert len(names) == 2 + 150 + 60
    assert names.texts_of(np.array([3, 399, 400, 609])).tolist() == ["n3", "n399", "n400", "n609"]
