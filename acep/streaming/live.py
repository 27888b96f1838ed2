"""Cache the buckets of the last micro-batch in a worker process, so that it need not read their state from a file."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from acep.streaming.buckets import Bucket
    from acep.streaming.job import Job

__all__ = ["forget_live", "keep_live", "live_name", "take_live"]

MOST = 64
_LIVE: OrderedDict[str, Bucket] = OrderedDict()


def live_name(job: Job, state: str) -> str:
    """Return the cache key of a bucket whose state has the name ``state``. A bucket keeps the budget and the time bound
    of its job, so a job with other ones must not find it."""
    return f"{state} {job.fingerprint} {job.engine} {job.budget} {job.latest}"


def take_live(name: str) -> Bucket | None:
    """Remove and return the bucket with this cache key, if there is one. A retry then reads the state itself."""
    return _LIVE.pop(name, None)


def keep_live(name: str, bucket: Bucket) -> None:
    """Cache a bucket under a key that no other state has; the oldest buckets are dropped."""
    _LIVE[name] = bucket
    while len(_LIVE) > MOST:
        _LIVE.popitem(last=False)


def forget_live() -> None:
    """Drop all cached buckets."""
    _LIVE.clear()
