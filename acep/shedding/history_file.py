"""Read the learned state of a policy from a history file, with the query that it belongs to, and write it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from acep.errors import DataError, QueryError, SnapshotError
from acep.learning.policy import Policy
from acep.storage.devices import bytes_of_file
from acep.storage.plain_data import from_bytes, to_bytes
from acep.storage.sections import read_sections

__all__ = ["SECTION", "LearnedState", "learned_by", "read_history", "read_learned"]

SECTION = "policy"
"""The name of the file section."""


@dataclass(frozen=True)
class LearnedState:
    """The ``state`` of the policy ``policy``, learned from the query whose plan has the ``fingerprint``."""

    fingerprint: str
    policy: str
    state: Mapping[str, Any]

    def to_bytes(self) -> bytes:
        """Return the contents of the file section. Raises :class:`TypeError` for a state that is not plain data."""
        return to_bytes({"fingerprint": self.fingerprint, "policy": self.policy, "state": dict(self.state)})

    @classmethod
    def from_sections(cls, sections: Mapping[str, bytes]) -> LearnedState:
        """Read the file section. Raises :class:`SnapshotError` where it is missing or damaged."""
        if SECTION not in sections:
            raise SnapshotError(
                "the history has no state of a policy, to look at it is all it is good for",
                hint="use a file that `acep learn` or acep.learn wrote",
            )
        try:
            section = from_bytes(sections[SECTION])
            fingerprint, policy, state = section["fingerprint"], section["policy"], section["state"]
        except (ValueError, TypeError, KeyError):
            raise SnapshotError(
                "the history is damaged: the state of its policy cannot be read", code="state_damaged"
            ) from None
        if not (isinstance(fingerprint, str) and isinstance(policy, str) and isinstance(state, dict)):
            raise SnapshotError("the history is damaged: the state of its policy makes no sense", code="state_damaged")
        return cls(fingerprint, policy, state)

    def serve(self, policy: Policy) -> Mapping[str, Any]:
        """Return the state. Raises :class:`SnapshotError` for a policy of another kind than the one that learned it."""
        if learned_by(policy) != self.policy:
            raise SnapshotError(
                f"the history was learned by the policy `{self.policy}`, which `{policy.name}` does not understand",
                hint=f'match with policy="{self.policy}", or learn with policy="{policy.name}"',
            )
        return self.state


def learned_by(policy: Policy) -> str:
    """Return the name of the policy whose states this one takes: its own, unless ``learned_by`` names another."""
    return str(getattr(policy, "learned_by", policy.name))


def read_history(source: Any) -> bytes:
    """Return the bytes of a history, given as bytes or as the name of its file.

    Raises :class:`DataError` for a file that cannot be read, :class:`QueryError` for anything else.
    """
    if isinstance(source, bytes | bytearray | memoryview):
        return bytes(source)
    if not isinstance(source, str | os.PathLike):
        raise QueryError(f"a history is a file or its bytes, not {type(source).__name__}", code="option_invalid")
    try:
        return bytes_of_file(source)
    except DataError:
        raise
    except (OSError, ValueError) as bad:
        raise DataError(
            f"`{source}` cannot be read: {getattr(bad, 'strerror', None) or bad}", code="file_read"
        ) from None


def read_learned(sources: Any) -> dict[str, LearnedState]:
    """Read one or several histories, and return their learned states by the fingerprint of the query.

    Raises :class:`SnapshotError`, :class:`DataError` or :class:`QueryError` if one is no history or repeats a query.
    """
    several = isinstance(sources, Sequence) and not isinstance(sources, str | bytes | bytearray | memoryview)
    states: dict[str, LearnedState] = {}
    for source in sources if several else [sources]:
        learned = LearnedState.from_sections(read_sections(read_history(source)))
        if learned.fingerprint in states:
            raise QueryError(
                "two of the histories are of one query",
                hint="acep.learn goes on from one with history=",
                code="option_invalid",
            )
        states[learned.fingerprint] = learned
    return states
