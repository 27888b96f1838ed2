"""What a file of history holds for a policy: the state that another run left, and of which query."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from acep.errors import DataError, QueryError, SnapshotError
from acep.learning.container import read_sections
from acep.learning.policy import Policy
from acep.storage.plain_data import from_bytes, to_bytes

__all__ = ["SECTION", "Learned", "learned_by", "read_history", "read_learned"]

SECTION = "policy"
"""The section of the file."""


@dataclass(frozen=True)
class Learned:
    """The ``state`` of the policy ``policy``, of the query whose plan has the ``fingerprint``."""

    fingerprint: str
    policy: str
    state: Mapping[str, Any]

    def to_bytes(self) -> bytes:
        """As a section of a file. Raises :class:`TypeError` for a state that is no plain data."""
        return to_bytes({"fingerprint": self.fingerprint, "policy": self.policy, "state": dict(self.state)})

    @classmethod
    def from_sections(cls, sections: Mapping[str, bytes]) -> Learned:
        """Raises :class:`SnapshotError` for a file without this section, or with a damaged one."""
        if SECTION not in sections:
            raise SnapshotError(
                "the history has no state of a policy, to look at it is all it is good for",
                hint="use a file that `acep learn` or acep.learn wrote",
            )
        try:
            told = from_bytes(sections[SECTION])
            fingerprint, policy, state = told["fingerprint"], told["policy"], told["state"]
        except (ValueError, TypeError, KeyError):
            raise SnapshotError("the history is damaged: the state of its policy cannot be read") from None
        if not (isinstance(fingerprint, str) and isinstance(policy, str) and isinstance(state, dict)):
            raise SnapshotError("the history is damaged: the state of its policy makes no sense")
        return cls(fingerprint, policy, state)

    def serve(self, policy: Policy) -> Mapping[str, Any]:
        """The state, for a policy of the kind that learned it. Raises :class:`SnapshotError` for another one."""
        if learned_by(policy) != self.policy:
            raise SnapshotError(
                f"the history was learned by the policy `{self.policy}`, which `{policy.name}` does not understand",
                hint=f'match with policy="{self.policy}", or learn with policy="{policy.name}"',
            )
        return self.state


def learned_by(policy: Policy) -> str:
    """The name of the policy whose states this one takes: its own, unless it says otherwise."""
    return str(getattr(policy, "learned_by", policy.name))


def read_history(given: Any) -> bytes:
    """The bytes of a history, which is given as bytes or by the name of its file.

    Raises :class:`DataError` for a file that cannot be read, :class:`QueryError` for something else.
    """
    if isinstance(given, bytes | bytearray | memoryview):
        return bytes(given)
    if not isinstance(given, str | os.PathLike):
        raise QueryError(f"a history is a file or its bytes, not {type(given).__name__}")
    try:
        return Path(given).read_bytes()
    except (OSError, ValueError) as bad:
        raise DataError(f"`{given}` cannot be read: {getattr(bad, 'strerror', None) or bad}") from None


def read_learned(given: Any) -> dict[str, Learned]:
    """What one history holds, or several of them, by the fingerprint of their queries.

    Raises :class:`SnapshotError`, :class:`DataError` or :class:`QueryError` for what is no history.
    """
    several = isinstance(given, Sequence) and not isinstance(given, str | bytes | bytearray | memoryview)
    found: dict[str, Learned] = {}
    for one in given if several else [given]:
        learned = Learned.from_sections(read_sections(read_history(one)))
        if learned.fingerprint in found:
            raise QueryError("two of the histories are of one query", hint="acep.learn goes on from one with history=")
        found[learned.fingerprint] = learned
    return found
