"""Cache the buckets of the last micro-batch in a worker process, so that it need not read their state from a file."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from acep.streaming.buckets import Bucket
    from acep.streaming.job import Job

__all__ = ["forget_live", "keep_live", "live_key_of", "take_live"]

MAX_BUCKETS = 64
_LIVE: OrderedDict[str, tuple[str, Bucket]] = OrderedDict()


def live_key_of(job: Job, bucket: str) -> str:
    """Return the key in the cache of the bucket with this name. A bucket keeps the budget, the time bound and the
    columns of its job, so a job with other ones must not find it."""
    return f"{bucket} {job.fingerprint} {job.engine} {job.budget} {job.latest} {job.late} {job.duplicates}"


def take_live(live_key: str, state: str) -> Bucket | None:
    """Remove the bucket with this key, and return it if its state has the name ``state``. A retry then reads the state
    itself."""
    live_state, bucket = _LIVE.pop(live_key, ("", None))
    return bucket if live_state == state else None


def keep_live(live_key: str, state: str, bucket: Bucket) -> None:
    """Cache a bucket whose state has a name that no other state has.

    An older state of the same bucket is dropped: if several processes take turns with a bucket, each of them would hold
    many. Beyond :data:`MAX_BUCKETS` buckets the oldest ones are dropped, too.
    """
    _LIVE.pop(live_key, None)
    _LIVE[live_key] = state, bucket
    while len(_LIVE) > MAX_BUCKETS:
        _LIVE.popitem(last=False)


def forget_live() -> None:
    """Drop all cached buckets."""
    _LIVE.clear()
