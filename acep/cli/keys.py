"""Pause a replay, go on, and step by keys, while its live view is on the terminal."""

from __future__ import annotations

import os
import select
import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TextIO

from acep.serving.pausing import STOP, Pause

if TYPE_CHECKING:
    from acep.serving.live_page import LivePage

__all__ = ["HELP", "KeyPause"]

HELP = "space: pause or go on, n: next micro-batch, q: stop"


class KeyPause:
    """Reads keys of a terminal without waiting for the end of a line, as a context manager. ``show`` is called with
    a text for the live view whenever it changes. Where ``keys`` is no terminal, there is no pause, unless a live
    ``page`` has the same keys."""

    def __init__(
        self, show: Callable[[str], None], keys: TextIO | None = None, *, page: LivePage | None = None
    ) -> None:
        self._show, self._keys, self._page = show, keys or sys.stdin, page
        self._settings: list[Any] | None = None
        self._pause = Pause(self._read_key, self._show_pause)

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
        if self._settings is None and self._page is None:
            time.sleep(seconds)
            return 0.0
        return self._pause.wait(seconds)

    def _show_pause(self, is_paused: bool) -> None:
        if self._settings is not None:
            self._show(f"paused; {HELP}" if is_paused else HELP)
        else:
            self._show("paused on the live page" if is_paused else "")
        if self._page is not None:
            self._page.set_paused(is_paused)

    def _read_key(self, seconds: float) -> str:
        """Return the key that is pressed within so many seconds, "" if there is none."""
        if self._settings is None:
            return "" if self._page is None else self._page.take_key(seconds)
        if self._page is not None and (key := self._page.take_key(0.0)):
            return key
        descriptor = self._keys.fileno()
        if not select.select([descriptor], [], [], max(seconds, 0.0))[0]:
            return ""
        pressed = os.read(descriptor, 1)
        return pressed.decode("latin-1") if pressed else STOP  # the terminal was closed
