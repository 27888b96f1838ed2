"""What a policy is told of the query that it serves: plain data about states, registers and the window."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from acep.learning.trajectories.match_vectors import Grid

__all__ = ["Register", "Setting"]


@dataclass(frozen=True)
class Register:
    """A register that nodes of a state hold, in slot ``slot``: of variable ``var`` and column ``column`` (``""``:
    none), as a number (``"int"``, ``"float"``) or a text."""

    slot: int
    var: str
    column: str
    kind: Literal["int", "float", "text"]


@dataclass(frozen=True)
class Setting:
    """A plan as a policy sees it.

    ``names``: of the states, by number; state 0 is the start, where no node waits. ``errors``: error levels, of
    ``step`` of the engine's scaled errors each. ``span``: the window, in ticks or (``counted``) in events of a
    partition; ``None``: none. ``registers``: by state. ``key_texts``: which parts of the partition key are texts.
    ``takes``: by state, the event classes that an arc from it takes, with the states it leads to. ``loses_only``: an
    event that is not let in can only lose matches, never make other ones. ``fingerprint`` is the same for two
    plans that understand each other's history.

    >>> Setting(("", "a"), 1, 1, 9, False, ((), ()), (), (((0, 1),), ()), 1, True, "").keyed
    False
    """

    names: tuple[str, ...]
    errors: int
    step: int
    span: int | None
    counted: bool
    registers: tuple[tuple[Register, ...], ...]
    key_texts: tuple[bool, ...]
    takes: tuple[tuple[tuple[int, int], ...], ...]
    classes: int
    loses_only: bool
    fingerprint: str

    @property
    def states(self) -> int:
        """How many states there are, the start among them."""
        return len(self.names)

    @property
    def keyed(self) -> bool:
        """Whether there are partitions."""
        return bool(self.key_texts)

    def grid(self, *, windows: int = 8, waits: int = 4, features: int = 1) -> Grid:
        """The match vectors of its nodes."""
        return Grid.of(
            self.states, self.errors, self.span, windows=windows, waits=waits, features=features, step=self.step
        )
