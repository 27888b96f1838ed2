"""Describe a query for policies: plain data on its states, registers and window."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from acep.learning.trajectories.match_vectors import Grid

__all__ = ["PolicyContext", "RegisterFeature"]


@dataclass(frozen=True)
class RegisterFeature:
    """A register that partial matches of a state hold in slot ``slot``: of variable ``var`` and column ``column``
    (``""``: none), a number (``"int"``, ``"float"``) or a text."""

    slot: int
    var: str
    column: str
    kind: Literal["int", "float", "text"]


@dataclass(frozen=True)
class PolicyContext:
    """The features of a plan that a policy sees.

    ``names``: of the states, by number; in state 0, the start, no partial match waits. ``errors``: the number of error
    levels, each of ``step`` scaled errors of the engine. ``span``: the window, in ticks or (``counted``) in events of a
    partition; ``None``: no window. ``registers``: by state. ``key_texts``: which parts of the partition key are texts.
    ``classes``: the number of event classes. ``takes``: by state, the event class and target state of each transition.
    ``loses_only``: skipping an event can only lose matches, never create others. ``fingerprint`` is the same for two
    plans that can share a history.

    >>> PolicyContext(("", "a"), 1, 1, 9, False, ((), ()), (), (((0, 1),), ()), 1, True, "").keyed
    False
    """

    names: tuple[str, ...]
    errors: int
    step: int
    span: int | None
    counted: bool
    registers: tuple[tuple[RegisterFeature, ...], ...]
    key_texts: tuple[bool, ...]
    takes: tuple[tuple[tuple[int, int], ...], ...]
    classes: int
    loses_only: bool
    fingerprint: str

    @property
    def states(self) -> int:
        """Return the number of states, including the start."""
        return len(self.names)

    @property
    def keyed(self) -> bool:
        """Return whether there are partitions."""
        return bool(self.key_texts)

    @property
    def text_keys(self) -> int:
        """Return a bit for each of the first 32 parts of the partition key that is a text."""
        return sum(1 << k for k, is_text in enumerate(self.key_texts[:32]) if is_text)

    def grid(self, *, windows: int = 8, waits: int = 4, features: int = 1) -> Grid:
        """Return the grid of match vectors of the plan, with only one bin of each time if there is no window."""
        if self.span is None:
            windows = waits = 1
        return Grid(self.states, self.errors, self.span, windows, waits, features, self.step)
