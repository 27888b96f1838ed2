"""Divide the state of a job among another number of buckets, so that each key goes on where its rows will come.

A key is in bucket ``hash % N``. Rows that are held back go to the bucket of their key. The state of a stream cannot be
divided by key, so it goes as a whole to each bucket that has some of its keys (:mod:`acep.runtime.stream_parts`).
Where these are several, partial matches of keys that are elsewhere get no more events there, and end with their window.
Only time could still make matches of them, so then no match may wait for time to pass.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from math import gcd, lcm
from typing import Any

import numpy as np
import pyarrow as pa

from acep.errors import QueryError, SnapshotError
from acep.matches.records import Counts
from acep.runtime.key_hashes import hash_keys
from acep.runtime.stream import Stream
from acep.runtime.stream_parts import WORK, PartState, StreamParts, pack_parts
from acep.streaming.buckets import Bucket
from acep.streaming.job import Job, Pass
from acep.streaming.revised_rows import RevisedRows
from acep.streaming.totals import MAX_COUNT, Totals

__all__ = [
    "bucket_like",
    "check_agreement",
    "divide_state",
    "events_to_replay",
    "has_pending",
    "replace_parts",
    "with_buckets",
]

MOST_PARTS = 64
"""The most streams that a bucket may have side by side."""
SUMMED = ("events", "late", "ahead", "duplicates", "allowance")


def with_buckets(job: Job, buckets: int) -> Job:
    """Return the same job with another number of buckets.

    Raises :class:`QueryError` if its state cannot be divided, or there is nothing to divide.
    """
    if buckets < 1:
        raise QueryError(f"{buckets} is no number of buckets", hint="at least 1", code="option_invalid")
    why = _why_undivided(job)
    if why is not None:
        raise QueryError(
            f"the state cannot be divided among {buckets} buckets: {why}",
            hint=f"begin a new checkpoint with buckets={buckets}, which reads {events_to_replay(job)}",
            code="option_invalid",
        )
    passes, first = [], 0
    for part in job.passes:
        size = buckets if part.keys else 1
        passes.append(Pass(part.queries, part.keys, first, size))
        first += size
    return replace_parts(job, passes=tuple(passes))


def replace_parts(job: Job, **parts: Any) -> Job:
    """Return a job with other parts, and with the fingerprint that it has then."""
    return type(job)(**{field.name: getattr(job, field.name) for field in fields(job)} | parts).with_fingerprint()


def _why_undivided(job: Job) -> str | None:
    """Return why the state of a job cannot be divided by key, or ``None``."""
    if job.clause is not None:
        return "a clause keeps the rows of a bucket as one"
    if job.budget is not None:
        return "what a budget has learned and spent is that of a bucket"
    if job.revised:
        return "matches that may be taken back are kept with all events of a bucket"
    if job.output in ("points", "bundles"):
        return f"{'match points' if job.output == 'points' else job.output} are kept as groups that are yet to end"
    if not any(part.keys for part in job.passes):
        return "no query has a partition attribute, so one bucket gets all events"
    return None


@dataclass(frozen=True)
class _OldBucket:
    """A bucket as it was: its number in its pass, and the streams for its keys, which have the remainders of ``parts``
    for the divisor ``modulus``. ``counts`` are those of each part by plan."""

    number: int
    bucket: Bucket
    modulus: int
    parts: Sequence[PartState]
    counts: Sequence[tuple[tuple[int, ...], ...]]


def divide_state(old: Job, new: Job, states: Mapping[int, bytes]) -> dict[int, bytes]:
    """Return the states of the buckets of ``new``, which is ``old`` with another number of buckets, from those of all
    buckets.

    Raises :class:`SnapshotError` if a state is damaged, if the buckets do not fit together, or if matches wait for time
    to pass in a bucket whose keys would be in several.
    """
    new_states = dict[int, bytes]()
    for old_pass, new_pass in zip(old.passes, new.passes, strict=True):
        buckets = [Bucket.loads(old, old_pass, states[old_pass.first + number]) for number in range(old_pass.size)]
        check_agreement(buckets)
        if not old_pass.keys:
            bucket = bucket_like(buckets[0], new, new_pass, buckets[0].stream.snapshot())
            bucket.hold_back.loads(buckets[0].hold_back.dumps())
            bucket.totals = buckets[0].totals
            new_states[new_pass.first] = bucket.dumps()
            continue
        old_buckets = [_open_bucket(number, bucket, old_pass) for number, bucket in enumerate(buckets)]
        _check_sizes(old, old_buckets, old_pass, new_pass)
        new_states |= _divide_pass(old_buckets, new, new_pass)
    for number, data in new_states.items():
        Bucket.loads(new, new.pass_of(number), data)
    return new_states


def events_to_replay(job: Job) -> str:
    """Name the events that a new checkpoint has to read so that no match is missed. Those within the delay of the
    watermark are not matched yet, and matches with them begin up to a window earlier."""
    windows = [plan.window for plan in job.plans]
    has_sources = any(query.sources for query in job.queries)
    if job.clause is not None or has_sources or any(w.span is None or w.counted for w in windows):
        return "all events"
    longest = "the longest window" if len(windows) > 1 else "a window"
    return f"the events from {longest} and the delay of the watermark before the newest time on"


def check_agreement(buckets: Sequence[Bucket]) -> None:
    """Raise :class:`SnapshotError` if buckets of one pass have not come equally far, or the stream has ended."""
    if buckets[0].ended:
        raise SnapshotError(
            "the stream has ended: its buckets are given no more events", hint="begin a new one", code="state_other"
        )
    for left, right in pairwise(buckets):
        versions = [None if bucket.queries is None else bucket.queries.dump() for bucket in (left, right)]
        if (left.hold_back.released, left.ended) != (right.hold_back.released, right.ended) or (
            versions[0] != versions[1]
        ):
            raise SnapshotError(
                "the buckets have not come equally far, so their states cannot be united",
                hint="let the query do one more micro-batch, and stop it",
                code="state_other",
            )


def _open_bucket(number: int, bucket: Bucket, part: Pass) -> _OldBucket:
    """Return a bucket with its streams. Raises :class:`SnapshotError` if the rows that it holds belong elsewhere."""
    stream = bucket.stream
    assert not isinstance(stream, RevisedRows)
    waiting = bucket.hold_back.rows
    if waiting is not None and not (_hashes(waiting[0], part) % part.size == number).all():
        raise SnapshotError(
            "the hashes of keys are not those by which the rows were spread",
            hint="this may be the state of other keys, or of another Spark: begin a new checkpoint",
            code="state_other",
        )
    if isinstance(stream, StreamParts):
        modulus, parts, streams = stream.modulus, stream.states(), stream.streams
    else:
        nothing = tuple((0,) * len(WORK) for _ in bucket.plans)
        modulus, parts, streams = part.size, [PartState(number, stream.snapshot(), nothing)], [stream]
    counts = [tuple(_work(each.counts_of(plan)) for plan in range(len(bucket.plans))) for each in streams]
    return _OldBucket(number, bucket, modulus, parts, counts)


def _work(counts: Counts) -> tuple[int, ...]:
    return tuple(getattr(counts, name) for name in WORK)


def _hashes(rows: pa.Table, part: Pass) -> Any:
    return hash_keys([rows.column(key) for key in part.keys])


def _check_sizes(job: Job, old_buckets: Sequence[_OldBucket], old_pass: Pass, new_pass: Pass) -> None:
    """Raise :class:`SnapshotError` if a bucket would have too many streams, or two would have pending matches."""
    modulus, size = old_buckets[0].modulus, new_pass.size
    if lcm(modulus, size) // size > MOST_PARTS:
        raise SnapshotError(
            f"each of {size} buckets would have {lcm(modulus, size) // size} streams side by side, of which"
            f" {MOST_PARTS} are the most",
            hint=f"take a divisor or a multiple of {old_pass.size}",
            code="option_invalid",
        )
    if size // gcd(modulus, size) == 1:
        return
    for old_bucket in old_buckets:
        for part in old_bucket.parts:
            if has_pending(old_bucket.bucket, part):
                fewer = [n for n in range(1, modulus + 1) if modulus % n == 0 and n != old_pass.size]
                raise SnapshotError(
                    f"matches in bucket {old_pass.first + old_bucket.number} wait for time to pass, and its keys would"
                    f" be in {size // gcd(modulus, size)} buckets, which would all give them",
                    hint=f"a divisor of {modulus} can be had at any time"
                    f" ({', '.join(map(str, fewer)) or 'there is no other'}); or go back to a micro-batch in which none"
                    f" waits; or begin a new checkpoint, which reads {events_to_replay(job)}",
                    code="state_other",
                )


def has_pending(bucket: Bucket, part: PartState) -> bool:
    """Return whether a stream would give matches if it ended now: they are complete, and wait for time to pass."""
    job = bucket.job
    plans = tuple(bucket.stream.plans)
    first = None if bucket.queries is None else bucket.plans
    stream = Stream.restore(plans, part.state, job.engine, job.output, job.limits, first=first, finer=job.finer)
    matches_by_plan = stream.finish()
    return any(map(len, matches_by_plan)) or any(stream.take_counted(plan) for plan in range(len(plans)))


def _divide_pass(old_buckets: Sequence[_OldBucket], new: Job, new_pass: Pass) -> dict[int, bytes]:
    """Return the states of the new buckets of a pass."""
    modulus, size = old_buckets[0].modulus, new_pass.size
    plans = tuple(old_buckets[0].bucket.stream.plans)
    counted = set[int]()  # numbers of the old buckets whose totals a new bucket has
    counted_parts = set[int]()  # the same for the work of their parts
    rows_by_bucket = _spread_rows(old_buckets, new_pass)
    states = {}
    for number in range(size):
        parts, totals = list[PartState](), list[Totals]()
        for old_bucket in old_buckets:
            for part, counts in zip(old_bucket.parts, old_bucket.counts, strict=True):
                if (part.residue - number) % gcd(modulus, size):
                    continue
                elsewhere = counts if part.residue in counted_parts else part.elsewhere
                counted_parts.add(part.residue)
                parts.append(PartState(_common_residue(part.residue, modulus, number, size), part.state, elsewhere))
                if old_bucket.number not in counted:
                    counted.add(old_bucket.number)
                    totals.append(old_bucket.bucket.totals)
        is_single = len(parts) == 1 and not any(map(any, parts[0].elsewhere))
        engine = parts[0].state if is_single else pack_parts(plans, lcm(modulus, size), parts)
        bucket = bucket_like(old_buckets[0].bucket, new, new_pass, engine)
        bucket.hold_back.greatest = greatest_of([old_bucket.bucket for old_bucket in old_buckets])
        if number in rows_by_bucket:
            bucket.hold_back.add(rows_by_bucket[number])
        bucket.totals = _sum_totals(totals, len(new.names))
        states[new_pass.first + number] = bucket.dumps()
    return states


def _common_residue(residue: int, modulus: int, number: int, size: int) -> int:
    """Return the remainder for the least common multiple of two divisors of what has these remainders for them.

    >>> _common_residue(3, 8, 1, 6)
    19
    """
    return next(value for value in range(residue, lcm(modulus, size), modulus) if value % size == number)


def _spread_rows(old_buckets: Sequence[_OldBucket], new_pass: Pass) -> dict[int, pa.Table]:
    """Return the rows that are held back by their new buckets."""
    tables = [waiting[0] for old_bucket in old_buckets if (waiting := old_bucket.bucket.hold_back.rows) is not None]
    if not tables:
        return {}
    rows = pa.concat_tables(tables)
    numbers = _hashes(rows, new_pass) % new_pass.size
    return {int(number): rows.filter(pa.array(numbers == number)) for number in np.unique(numbers)}


def greatest_of(buckets: Sequence[Bucket]) -> int | None:
    """Return the greatest time that a bucket has seen, in ticks."""
    return max((b.hold_back.greatest for b in buckets if b.hold_back.greatest is not None), default=None)


def bucket_like(old: Bucket, new: Job, part: Pass, engine: bytes | None) -> Bucket:
    """Return a bucket of another job that has come as far as an old one, without the rows held back. ``engine`` is the
    state of its stream, ``None`` for one that begins."""
    bucket = Bucket(new, part, engine=engine, versions=None if old.queries is None else old.queries.dump())
    bucket.hold_back.released, bucket.hold_back.greatest = old.hold_back.released, old.hold_back.greatest
    return bucket


def _sum_totals(parts: Sequence[Totals], queries: int) -> Totals:
    """Return the totals of several buckets together. The work follows from the streams."""
    totals = Totals(queries=[Counts() for _ in range(queries)])
    for part in parts:
        for name in SUMMED:
            setattr(totals, name, getattr(totals, name) + getattr(part, name))
        totals.memory = max(totals.memory, part.memory)
        totals.see_idle(part.newest_idle)
        for counts, more in zip(totals.queries, part.queries, strict=True):
            counts.matches = min(counts.matches + more.matches, MAX_COUNT)
    return totals
