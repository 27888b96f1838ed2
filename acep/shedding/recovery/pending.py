"""Keep the state of bundle recovery for one partition: the matches that wait, and how far others were given out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from acep.matches.found_columns import FoundColumns, concatenate
from acep.matches.found_state import found_of, plain_of

__all__ = ["ALWAYS", "NEVER", "PendingPartition", "select_matches"]

Ints = npt.NDArray[np.int64]

NEVER, ALWAYS = -(2**63) - 1, 2**63  # before and after all times
STATE = ("name", "until", "first", "last", "open", "is_complete")


@dataclass
class PendingPartition:
    """A partition with matches not yet given out, or one that had some not long ago.

    ``waiting``: matches not given out. ``points``: their match points, ascending. ``until``: all matches that end
    up to there were given out (``None``: none were). ``first``, ``last``: match points of the last bundle given
    out. ``open``: all of that bundle up to ``until`` was given out, and it may go on. ``is_complete``: up to ``until``
    nothing is missing. ``name``: the key as text. ``check_time``: when the partition is to be checked.
    """

    name: str
    waiting: list[FoundColumns] = field(default_factory=list)
    points: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    until: int | None = None
    first: int = 0
    last: int | None = None
    open: bool = False
    is_complete: bool = True
    check_time: int = ALWAYS

    def chain(self, last: int, span: int, now: int) -> int:
        """Return the last waiting point up to ``now`` that is linked to ``last`` by gaps of at most ``span``."""
        for point in self.points.tolist():
            if point > now or point - last > span:
                break
            last = max(last, point)
        return last

    def add(self, matches: FoundColumns) -> None:
        """Add matches."""
        self.waiting.append(matches)
        self.points = np.union1d(self.points, matches.end)

    def take(self, last: int) -> list[FoundColumns]:
        """Remove and return the waiting matches up to a match point."""
        out = [select_matches(part, part.end <= last) for part in self.waiting]
        remaining = [select_matches(part, part.end > last) for part in self.waiting]
        self.waiting = [part for part in remaining if len(part)]
        self.points = self.points[self.points > last]
        return [part for part in out if len(part)]

    def known_before(self, begin: int, start: int) -> bool:
        """Return whether no match is missed by searching from ``start`` instead of ``begin``. It is so if
        ``start`` is no later, or if it directly follows ``until`` and nothing is missing before."""
        return start <= begin or (self.is_complete and self.until is not None and start == self.until + 1)

    def dump(self) -> list[Any]:
        """Return the state as plain data with arrays."""
        waiting = plain_of(concatenate(self.waiting)) if self.waiting else None
        return [*(getattr(self, name) for name in STATE), waiting]

    @classmethod
    def from_data(cls, data: Any, variables: tuple[str, ...]) -> PendingPartition:
        """Restore :meth:`dump`. Raises :class:`ValueError`, :class:`KeyError` or :class:`TypeError` for other data."""
        name, until, first, last, is_open, is_complete, waiting = data
        times = [None if time is None else int(time) for time in (until, last)]
        if not isinstance(name, str) or (is_open is True and None in times):
            raise ValueError("bundle")
        pending = cls(
            name,
            [],
            until=times[0],
            first=int(first),
            last=times[1],
            open=is_open is True,
            is_complete=is_complete is True,
        )
        if waiting is not None:
            pending.add(found_of(waiting, variables))
        return pending


def select_matches(matches: FoundColumns, selected: npt.NDArray[np.bool_]) -> FoundColumns:
    """Return the matches selected by ``selected``."""
    return matches if selected.all() else matches.take(np.flatnonzero(selected))
