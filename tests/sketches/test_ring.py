"""The ring of bundles: the last ones have a slot each, and plain data bring it back."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acep.errors import SnapshotError
from acep.sketches.ring import Ring

BUNDLES = st.lists(st.integers(0, 9), max_size=40)


@given(size=st.integers(1, 6), bundles=BUNDLES, more=BUNDLES)
def test_the_last_bundles_have_slots(size: int, bundles: list[int], more: list[int]) -> None:
    ring, held = Ring(size), []
    for bundle in bundles:
        new = bundle not in held
        slot, lost = ring.take(bundle)
        assert lost == (new and len(held) == size)
        held = [*held, bundle][-size:] if new else held
        assert ring.bundles[slot] == bundle
    assert sorted(held) == sorted(b for b in ring.bundles.tolist() if b >= 0)
    assert all(ring.bundles[ring.slot(b)] == b if b in held else ring.slot(b) == -1 for b in range(10))
    again = Ring.from_data(json.loads(json.dumps(ring.to_data())))
    assert [again.take(b) for b in more] == [ring.take(b) for b in more]


@pytest.mark.parametrize(
    "data",
    [
        None,
        {},
        {"bundles": [], "next": 0},
        {"bundles": [1, 1], "next": 0},
        {"bundles": [1, -2], "next": 0},
        {"bundles": [1, -1], "next": 0},
        {"bundles": [-1, 1], "next": 1},
        {"bundles": [1, 2], "next": 2},
        {"bundles": [1, 2], "next": -1},
        {"bundles": [True, 2], "next": 0},
        {"bundles": [1.0, 2], "next": 0},
        {"bundles": [2**63, 2], "next": 0},
        {"bundles": "12", "next": 0},
    ],
)
def test_what_no_ring_can_be_is_told(data: Any) -> None:
    with pytest.raises(SnapshotError):
        Ring.from_data(data)


def test_bundles_have_numbers() -> None:
    with pytest.raises(ValueError, match="at least one"):
        Ring(0)
    with pytest.raises(ValueError, match="non-negative"):
        Ring(2).take(-1)
