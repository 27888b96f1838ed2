"""Describe one step that all plans of a stream take: events come, time passes, the stream ends or is revised.

The plans on the native core share a session, which takes each step once and returns the matches of all of them. So a
step holds these, and :func:`acep.runtime.executors.matches_of` gives each plan its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from acep.events.batch import Batch
from acep.matches.records import Found

__all__ = ["EventReader", "EventsCame", "EventsRevised", "StreamEnded", "StreamStep", "TimePassed"]


class EventReader(Protocol):
    """A runtime that reads events itself. Each method returns the matches that it makes certain."""

    def push(self, batch: Batch) -> Sequence[Found]:
        """Process more events."""

    def advance(self, clock: int) -> Sequence[Found]:
        """Advance the time: no event with ``ts <= clock`` will come any more."""

    def finish(self) -> Sequence[Found]:
        """End the stream."""

    def revise(self, removed: Batch | None, batch: Batch, n_rematched: int) -> Sequence[Found]:
        """Forget the partitions of the events ``removed`` and of the first ``n_rematched`` of a batch, and push the
        batch, whose events may be older than others were."""


class StreamStep(Protocol):
    """A step, with what the session of the native plans made of it."""

    @property
    def native(self) -> Sequence[Sequence[Found]]:
        """The matches of each plan of the session."""

    def read_by(self, reader: EventReader) -> Sequence[Found]:
        """Return the matches of a runtime that reads events itself."""


@dataclass(frozen=True)
class EventsCame:
    """Events came, as a batch."""

    native: Sequence[Sequence[Found]]
    batch: Batch

    def read_by(self, reader: EventReader) -> Sequence[Found]:
        """Push the batch."""
        return reader.push(self.batch)


@dataclass(frozen=True)
class TimePassed:
    """Time passed: no event with ``ts <= clock`` will come any more."""

    native: Sequence[Sequence[Found]]
    clock: int

    def read_by(self, reader: EventReader) -> Sequence[Found]:
        """Advance the time of the runtime."""
        return reader.advance(self.clock)


@dataclass(frozen=True)
class StreamEnded:
    """The stream ended."""

    native: Sequence[Sequence[Found]]

    def read_by(self, reader: EventReader) -> Sequence[Found]:
        """End its stream."""
        return reader.finish()


@dataclass(frozen=True)
class EventsRevised:
    """Events came that may be older than others were, as :meth:`EventReader.revise` describes them."""

    native: Sequence[Sequence[Found]]
    removed: Batch | None
    batch: Batch
    n_rematched: int

    def read_by(self, reader: EventReader) -> Sequence[Found]:
        """Revise its stream."""
        return reader.revise(self.removed, self.batch, self.n_rematched)
