"""Keep buckets as they were after the last micro-batch, so that a worker that has one need not read its state."""

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
    """Give the name of a bucket whose state has the name ``state``. A bucket keeps the budget and the bounds of its
    job, so a job with others must not find it."""
    return f"{state} {job.fingerprint} {job.engine} {job.budget} {job.latest}"


def take_live(name: str) -> Bucket | None:
    """Take out the bucket whose state has this name, if it is there. A retry then begins with the state itself."""
    return _LIVE.pop(name, None)


def keep_live(name: str, bucket: Bucket) -> None:
    """Keep a bucket under a name that no other state has; the oldest ones go."""
    _LIVE[name] = bucket
    while len(_LIVE) > MOST:
        _LIVE.popitem(last=False)


def forget_live() -> None:
    """Keep none."""
    _LIVE.clear()
