"""Wait between the micro-batches of a replay, which may be paused, stepped and stopped meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable

__all__ = ["PAUSE", "STEP", "STOP", "Pause"]

PAUSE, STEP, STOP = " ", "n", "q"
"""The keys: pause or go on, next micro-batch, stop."""
LOOK = 0.05  # seconds between two looks at the clock while no key is pressed


class Pause:
    """The pause of a replay. ``read_key`` returns the key that is pressed within so many seconds, "" if there is none;
    ``show`` is called with whether the replay is paused, whenever a key says so."""

    def __init__(self, read_key: Callable[[float], str], show: Callable[[bool], None]) -> None:
        self._read_key, self._show = read_key, show
        self._is_paused = False

    def wait(self, seconds: float) -> float:
        """Wait for so many seconds and while the replay is paused. Return how many seconds it was paused: fewer, or
        less than none, if a key has called for the micro-batch before its time.

        Raises :class:`KeyboardInterrupt` for the key that stops.

        >>> keys = [STEP, ""]
        >>> Pause(lambda seconds: keys.pop(0), lambda is_paused: print(is_paused)).wait(60) < -59
        True
        True
        """
        until, paused = time.monotonic() + seconds, 0.0
        while True:
            now = time.monotonic()
            if not self._is_paused and now >= until:
                key = self._read_key(0.0)
            else:
                key = self._read_key(LOOK if self._is_paused else min(LOOK, until - now))
            if self._is_paused:
                spent = time.monotonic() - now
                until, paused = until + spent, paused + spent
            if key == STOP:
                raise KeyboardInterrupt
            if key == STEP:  # this micro-batch at once, and no further one
                self._pause(is_paused=True)
                return paused - (until - time.monotonic())
            if key == PAUSE:
                self._pause(is_paused=not self._is_paused)
            if not key and not self._is_paused and time.monotonic() >= until:
                return paused

    def _pause(self, *, is_paused: bool) -> None:
        self._is_paused = is_paused
        self._show(is_paused)
