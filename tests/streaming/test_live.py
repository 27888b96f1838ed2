"""Buckets that stay in memory: only the last state of each is there, and only under its own name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from acep.streaming import live_buckets
from acep.streaming.live_buckets import keep_live, take_live


@pytest.fixture(autouse=True)
def _nothing_held() -> Iterator[None]:
    live_buckets.forget_live()
    yield
    live_buckets.forget_live()


def bucket() -> Any:
    """Something in place of a bucket."""
    return object()


def test_a_bucket_is_there_once_under_its_state() -> None:
    held = bucket()
    keep_live("place", "state", held)
    assert take_live("elsewhere", "state") is None
    assert take_live("place", "state") is held
    assert take_live("place", "state") is None


def test_an_older_state_of_a_bucket_is_dropped() -> None:
    """Processes take turns with a bucket, so this one sees some of its states."""
    for batch in range(0, 100, 3):
        last = bucket()
        keep_live("place", f"after {batch}", last)
        assert len(live_buckets._LIVE) == 1
    assert take_live("place", f"after {batch}") is last
    keep_live("place", "after 102", bucket())
    assert take_live("place", "after 103") is None
    assert not live_buckets._LIVE


def test_the_oldest_buckets_are_dropped() -> None:
    for number in range(live_buckets.MAX_BUCKETS + 2):
        keep_live(f"place {number}", "state", bucket())
        keep_live("place 0", "state", bucket())
    assert len(live_buckets._LIVE) == live_buckets.MAX_BUCKETS
    assert take_live("place 0", "state") is not None
    assert take_live("place 2", "state") is None
