"""Pause a replay, go on, and step by keys, while its live view is on the terminal."""

from __future__ import annotations

import os
import select
import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self, TextIO

__all__ = ["HELP", "KeyPause"]

HELP = "space: pause or go on, n: next micro-batch, q: stop"
LOOK = 0.05  # seconds between two looks at the clock while no key is pressed


class KeyPause:
    """Reads keys of a terminal without waiting for the end of a line, as a context manager. ``show`` is called with
    a text for the live view whenever it changes. Where ``keys`` is no terminal, there is no pause."""

    def __init__(self, show: Callable[[str], None], keys: TextIO | None = None) -> None:
        self._show, self._keys = show, keys or sys.stdin
        self._settings: list[Any] | None = None
        self._is_paused = False

    def __enter__(self) -> Self:
        if self._keys is not None and self._keys.isatty():
            import termios
            import tty

            descriptor = self._keys.fileno()
            self._settings = termios.tcgetattr(descriptor)
            tty.setcbreak(descriptor, termios.TCSADRAIN)
            self._show(HELP)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._settings is not None:
            import termios

            termios.tcsetattr(self._keys.fileno(), termios.TCSADRAIN, self._settings)
            self._settings = None

    def wait(self, seconds: float) -> float:
        """Wait for so many seconds and while the replay is paused. Return how many seconds it was paused: fewer, or
        less than none, if a key has called for the micro-batch before its time.

        Raises :class:`KeyboardInterrupt` for the key that stops.
        """
        if self._settings is None:
            time.sleep(seconds)
            return 0.0
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
            if key == "q":
                raise KeyboardInterrupt
            if key == "n":  # this micro-batch at once, and no further one
                self._pause(paused=True)
                return paused - (until - time.monotonic())
            if key == " ":
                self._pause(paused=not self._is_paused)
            if not key and not self._is_paused and time.monotonic() >= until:
                return paused

    def _pause(self, *, paused: bool) -> None:
        self._is_paused = paused
        self._show(f"paused; {HELP}" if paused else HELP)

    def _read_key(self, seconds: float) -> str:
        """Return the key that is pressed within so many seconds, "" if there is none."""
        descriptor = self._keys.fileno()
        if not select.select([descriptor], [], [], max(seconds, 0.0))[0]:
            return ""
        pressed = os.read(descriptor, 1)
        return pressed.decode("latin-1") if pressed else "q"  # the terminal was closed
