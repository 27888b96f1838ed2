"""A history as bytes: it goes on where it was, is merged and warm-started; whatever is no history is a clear error."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest

from acep.errors import SnapshotError
from acep.learning.history.graph import History
from acep.learning.history.sums import SUMS
from acep.learning.trajectories.match_vectors import Grid
from acep.sketches.protocol import VectorMemory
from acep.storage.arrays import pack, unpack
from acep.storage.frame import HEADER
from acep.storage.sections import read_sections, write_sections
from tests.learning.streams import dice

GRID = Grid(4, 3, 20, features=2)


def empty(memory: VectorMemory | None = None, **options: Any) -> History:
    return History(GRID, names=("", "a", "<b>", "c"), fingerprint="q", memory=memory, forget=0.9, **options)


def test_a_history_that_was_saved_goes_on_where_it_was() -> None:
    for seed in range(5):
        logs = dice(seed, epochs=6)
        one, saved = empty(), empty()
        for log in logs:
            one.update(log)
            saved.update(log)
            data = saved.to_bytes()
            saved = History.from_bytes(data, "q")
            assert saved.to_bytes() == data
        assert one.to_bytes() == saved.to_bytes()
        assert (one.names, one.kind, one.epochs) == (saved.names, saved.kind, saved.epochs)
        assert one.epochs == len(logs)


def test_a_history_without_edges() -> None:
    history = empty(edges=False)
    for log in dice(0):
        history.update(log)
    read = History.from_bytes(history.to_bytes())
    assert read.edges is None
    assert len(read.direct.keys)


def test_other_sections_of_the_file_stay_apart() -> None:
    history = empty()
    data = write_sections({"policy": b"\x00x", **history.to_sections()})
    assert read_sections(data)["policy"] == b"\x00x"
    assert History.from_bytes(data).to_bytes() == history.to_bytes()


def test_a_history_of_another_query() -> None:
    with pytest.raises(SnapshotError, match="another query"):
        History.from_bytes(empty().to_bytes(), "r")


@pytest.mark.parametrize("targets", ["bundles", "points"])
def test_merged_histories_know_what_both_knew(targets: Any) -> None:
    one, two = History(GRID, targets=targets, ring=1000), History(GRID, targets=targets, ring=1000)
    for history, seed in ((one, 1), (two, 2)):
        for log in dice(seed):
            history.update(log)
    sums, alike, bundles = one.sums() + two.sums(), one.alike + two.alike, one.targets.count + two.targets.count
    assert one.edges is not None
    assert two.edges is not None
    matrix = dict(zip(one.edges.keys.tolist(), one.edges.weights, strict=True))
    for key, weight in zip(two.edges.keys.tolist(), two.edges.weights, strict=True):
        matrix[key] = matrix.get(key, 0) + weight
    every = np.arange(GRID.vectors)
    shedding_table = [np.argsort(h.bundles)[np.count_nonzero(h.bundles < 0) :] for h in (one, two)]
    maps = [h.maps(every)[:, order] for h, order in zip((one, two), shedding_table, strict=True)]
    points = [h.points[order] for h, order in zip((one, two), shedding_table, strict=True)]
    direct = one.direct.weights.sum() + two.direct.weights.sum()
    one.merge(two)
    np.testing.assert_allclose(one.sums(), sums)
    np.testing.assert_allclose(one.alike, alike)
    assert one.targets.count <= bundles
    assert dict(zip(one.edges.keys.tolist(), one.edges.weights, strict=True)) == pytest.approx(matrix)
    assert one.direct.weights.sum() == pytest.approx(direct)
    held = np.argsort(one.bundles)[np.count_nonzero(one.bundles < 0) :]
    assert np.array_equal(one.maps(every)[:, held], np.concatenate(maps, axis=1))
    assert one.points[held].tolist() == np.concatenate(points).tolist()


def test_a_merged_ring_holds_the_newest_of_both() -> None:
    one, two = (History(GRID, targets="points", ring=8) for _ in range(2))
    for history, seed in ((one, 1), (two, 2)):
        for log in dice(seed):
            history.update(log)
    kept = np.sort(one.bundles)[-4:].tolist()
    count = one.targets.count
    maps = [h.maps(h.visited())[:, np.argsort(h.bundles)[-4:]] for h in (one, two)]
    visited = one.visited(), two.visited()
    one.merge(two)
    assert np.sort(one.bundles).tolist() == [*kept, *range(count, count + 4)]
    order = np.argsort(one.bundles)
    assert np.array_equal(one.maps(visited[0])[:, order[:4]], maps[0])
    assert np.array_equal(one.maps(visited[1])[:, order[4:]], maps[1])
    again = History.from_bytes(one.to_bytes())
    assert again.bundles.tolist() == one.bundles.tolist()


def test_a_history_merged_with_itself() -> None:
    history = History(GRID, ring=1000)
    for log in dice(0):
        history.update(log)
    sums, held = history.sums(), int(np.count_nonzero(history.bundles >= 0))
    history.merge(history)
    np.testing.assert_allclose(history.sums(), 2 * sums)
    assert np.count_nonzero(history.bundles >= 0) == 2 * held


def test_histories_that_cannot_be_merged() -> None:
    for other in (
        History(GRID, fingerprint="r"),
        History(Grid(4, 3, 21, features=2)),
        History(GRID, targets="points"),
        History(GRID, ring=32),
        History(GRID, edges=False),
    ):
        with pytest.raises(ValueError, match=r"merged with|are merged"):
            History(GRID).merge(other)


def test_another_stream_begins_with_what_was_learned() -> None:
    warm, cold = History(GRID), History(GRID)
    for log in dice(0, epochs=3)[:2]:
        warm.update(log)
    known, count = warm.sums(), warm.targets.count
    assert len(warm.open.made)
    warm.begin()
    for log in dice(5):
        warm.update(log)
        cold.update(log)
    np.testing.assert_allclose(warm.sums(), known + cold.sums())
    assert warm.targets.count == count + cold.targets.count


def test_bytes_that_were_changed(cases: Callable[[int], int]) -> None:
    history = empty()
    for log in dice(0, ticks=30):
        history.update(log)
    data, rng = history.to_bytes(), Random(0)
    for _ in range(cases(300)):
        spoilt = bytearray(data)
        spoilt[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        with pytest.raises(SnapshotError):
            History.from_bytes(bytes(spoilt))
        with pytest.raises(SnapshotError):
            History.from_bytes(data[: rng.randrange(len(data))])


@pytest.mark.parametrize("data", [b"", b"ACEPHIST", b"x" * 100, None, "ACEPHIST"])
def test_bytes_that_are_no_history(data: Any) -> None:
    with pytest.raises(SnapshotError):
        History.from_bytes(data)


def test_a_newer_version_is_said_to_be_one() -> None:
    data = bytearray(empty().to_bytes())
    data[8] += 1
    with pytest.raises(SnapshotError, match="format version 2, this acep reads version 1"):
        read_sections(bytes(data))
    assert HEADER.size == 32


@pytest.mark.parametrize("name", ["history", "history.arrays", "history.memory"])
def test_sections_that_are_missing_or_not_of_a_history(name: str) -> None:
    sections = empty().to_sections()
    for spoilt in (b"", b"{}", b"[1]", b"null", b"\xff", sections["history.memory"], sections["history.arrays"]):
        if spoilt != sections[name]:
            with pytest.raises(SnapshotError):
                History.from_sections({**sections, name: spoilt})
    del sections[name]
    with pytest.raises(SnapshotError):
        History.from_sections(sections)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("grid", {"states": 4}),
        ("grid", {"states": 2**20, "errors": 2**20, "span": 4}),
        ("grid", None),
        ("targets", "matches"),
        ("forget", 2),
        ("forget", "x"),
        ("names", [1]),
        ("names", None),
        ("fingerprint", 1),
        ("ring", {"bundles": [0] * 64, "next": 0}),
        ("ring", {"bundles": [99, *[-1] * 63], "next": 1}),
        ("ring", {"bundles": [-1], "next": 0}),
        ("cut", -1),
        ("epochs", True),
        ("most_open", None),
        ("edges", "yes"),
        ("grid", {"states": 4.0, "errors": 3, "span": 20}),
    ],
)
def test_a_head_with_a_fitting_checksum_that_makes_no_sense(key: str, value: Any) -> None:
    sections = empty().to_sections()
    about = json.loads(sections["history"])
    assert key in about
    with pytest.raises(SnapshotError):
        History.from_sections({**sections, "history": json.dumps({**about, key: value}).encode()})


def test_arrays_with_a_fitting_checksum_that_make_no_sense() -> None:
    history = empty()
    for log in dice(0, epochs=2)[:1]:
        history.update(log)
    sections = history.to_sections()
    arrays = unpack(sections["history.arrays"], "history").arrays
    wrong: list[tuple[str, Any]] = [(name, None) for name in arrays]
    wrong += [(name, arrays[name][:-1]) for name in arrays if len(arrays[name])]
    wrong += [(name, arrays[name].astype(np.float64) * np.nan) for name in arrays if len(arrays[name])]
    wrong += [("made.state", arrays["made.state"] + 100), ("alike.state", arrays["alike.state"] + 100)]
    wrong += [("edges.keys", arrays["edges.keys"] * -1), ("direct.weights", arrays["direct.weights"] - 100)]
    for name, spoilt in wrong:
        rest = {n: a for n, a in arrays.items() if n != name}
        if spoilt is not None:
            rest[name] = spoilt
        data = pack("history", {}, rest)
        with pytest.raises(SnapshotError):
            History.from_sections({**sections, "history.arrays": data})
    assert len(SUMS) == history.memory.columns
