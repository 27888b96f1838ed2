"""Match the rows of a bucket in several streams, each with the keys of one earlier bucket, after their number changed.

The native core numbers keys and texts by itself, so two of its states cannot be united. They can stay side by side: a
key goes on in the stream that has seen its events. The remainder of the hash of a key says which this is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from acep.errors import SnapshotError
from acep.events.batch import Batch
from acep.matches.records import Counts, Found
from acep.plan.compile import Plan
from acep.runtime.key_hashes import hash_keys
from acep.runtime.stream import Stream, fingerprint_of, merge_matches
from acep.shedding.limits import Limits
from acep.storage.snapshot import seal, unseal

__all__ = ["WORK", "PartState", "StreamParts", "is_state_of_parts", "pack_parts", "unpack_parts"]

MAGIC = b"ACEPPART"

WORK = ("nodes", "touches", "deciding")
"""The counts of a stream that go on with the state of another one."""


@dataclass(frozen=True)
class PartState:
    """The state of a stream for the keys whose hash has the remainder ``residue``. ``elsewhere``: for each plan the
    counts (:data:`WORK`) that another bucket has, as it went on with the same state."""

    residue: int
    state: bytes
    elsewhere: tuple[tuple[int, ...], ...]


def is_state_of_parts(data: bytes) -> bool:
    """Return whether the state of the stream of a bucket is one of several parts."""
    return data.startswith(MAGIC)


def pack_parts(plans: Sequence[Plan], modulus: int, parts: Sequence[PartState]) -> bytes:
    """Return the state of several streams as bytes."""
    rows = [[part.residue, part.state, [list(counts) for counts in part.elsewhere]] for part in parts]
    return MAGIC + seal({"modulus": modulus, "parts": rows}, fingerprint_of(plans))


def unpack_parts(plans: Sequence[Plan], data: bytes) -> tuple[int, list[PartState]]:
    """Return the modulus and the parts of :func:`pack_parts`. Raises :class:`SnapshotError` if the bytes are none."""
    payload = unseal(data[len(MAGIC) :], fingerprint_of(plans))
    try:
        modulus = int(payload["modulus"])
        parts = [
            PartState(int(residue), bytes(state), tuple(tuple(map(int, counts)) for counts in elsewhere))
            for residue, state, elsewhere in payload["parts"]
        ]
        if any(len(part.elsewhere) != len(plans) or not 0 <= part.residue < modulus for part in parts) or not parts:
            raise ValueError("parts")
    except (KeyError, TypeError, ValueError):
        raise SnapshotError("the state of a bucket does not hold parts of a stream", code="state_damaged") from None
    return modulus, parts


class StreamParts:
    """The streams of a bucket, in place of one :class:`acep.runtime.stream.Stream`. ``keys`` are the columns by whose
    hash the rows are spread, ``data`` is the state (:func:`pack_parts`), and the other arguments are those of
    :meth:`acep.runtime.stream.Stream.restore`.

    Raises :class:`SnapshotError` if the bytes are damaged or belong to other plans.
    """

    def __init__(
        self,
        plans: Sequence[Plan],
        keys: Sequence[str],
        data: bytes,
        engine: str = "auto",
        output: str = "matches",
        limits: Limits | None = None,
        first: Sequence[Plan] | None = None,
        *,
        finer: bool = True,
    ) -> None:
        self.plans, self.keys = tuple(plans), tuple(keys)
        self.modulus, parts = unpack_parts(plans, data)
        self.residues = [part.residue for part in parts]
        self.streams = [Stream.restore(plans, part.state, engine, output, limits, first, finer=finer) for part in parts]
        self.elsewhere = [part.elsewhere for part in parts]

    def push_rows(self, rows: pa.Table, batch: Batch) -> list[Sequence[Found]]:
        """Push events to the streams that have their keys, and return the matches. ``rows`` are those of the batch.

        Raises :class:`SnapshotError` for a key that no stream here can have.
        """
        if len(self.streams) == 1:
            return self.streams[0].push(batch)
        residues = hash_keys([rows.column(key) for key in self.keys]) % self.modulus
        if not np.isin(residues, self.residues).all():
            raise SnapshotError(
                "a row has a key that belongs to another bucket: its hash is not that of the state",
                hint="go back to the number of buckets before, or begin a new checkpoint",
                code="state_other",
            )
        results = []
        for residue, stream in zip(self.residues, self.streams, strict=True):
            indices = np.flatnonzero(residues == residue)
            if len(indices):
                results.append(stream.push(batch.take(indices)))
        return self._merge(results)

    def advance(self, clock: int) -> list[Sequence[Found]]:
        """Advance the time of all streams, and return what this decides."""
        return self._merge([stream.advance(clock) for stream in self.streams])

    def finish(self) -> list[Sequence[Found]]:
        """End all streams, and return the remaining matches."""
        return self._merge([stream.finish() for stream in self.streams])

    def _merge(self, results: Sequence[list[Sequence[Found]]]) -> list[Sequence[Found]]:
        return [merge_matches(parts) for parts in zip(*results, strict=True)]

    def change(self, number: int, plan: Plan) -> None:
        """Go on with another plan in place of plan ``number``: a query that was replaced."""
        for stream in self.streams:
            stream.change(number, plan)
        self.plans = self.streams[0].plans

    def take_counted(self, plan: int) -> int | None:
        """Return the number of matches that were only counted since the last call; ``None`` where they are made."""
        counts = [stream.take_counted(plan) for stream in self.streams]
        return None if None in counts else sum(count for count in counts if isinstance(count, int))

    def counts_of(self, plan: int) -> Counts:
        """Return the work of plan number ``plan``, without what another bucket counts."""
        parts = [stream.counts_of(plan) for stream in self.streams]
        sums: dict[str, Any] = {
            name: sum(getattr(part, name) for part in parts) - sum(counts[plan][i] for counts in self.elsewhere)
            for i, name in enumerate(WORK)
        }
        return parts[0].replace(**sums)

    @property
    def live(self) -> int:
        """Return how many partial matches of all plans have a window that is not over."""
        return sum(stream.live for stream in self.streams)

    def live_of(self, number: int) -> int:
        """Return how many partial matches of a plan that may change are in states of its last version."""
        return sum(stream.live_of(number) for stream in self.streams)

    def states(self) -> list[PartState]:
        """Return the states of the parts."""
        return [
            PartState(residue, stream.snapshot(), counts)
            for residue, stream, counts in zip(self.residues, self.streams, self.elsewhere, strict=True)
        ]

    def snapshot(self) -> bytes:
        """Return the state as bytes."""
        return pack_parts(self.plans, self.modulus, self.states())
