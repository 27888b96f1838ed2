"""Stop a command that the system asks to stop, so that its temporary files are removed."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

__all__ = ["Stopped", "stops_when_asked"]

ASKING = ("SIGTERM", "SIGHUP")  # sent by `kill` and `systemctl stop`, and when a terminal is closed


class Stopped(BaseException):
    """Raised where a command is when it is asked to stop, by the signal ``number``."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number

    def end_process(self) -> int:
        """End the process by the signal, as whoever sent it expects; return the exit status that shells show."""
        signal.signal(self.number, signal.SIG_DFL)
        signal.raise_signal(self.number)
        return 128 + self.number


@contextmanager
def stops_when_asked() -> Iterator[None]:
    """Raise :class:`Stopped` inside for a signal that would end the process at once and leave its temporary files.

    A second signal ends it at once. Signals that are ignored or handled already are left alone, as is everything where
    this is not the main thread.
    """
    changed = []

    def stop(number: int, _: Any) -> NoReturn:
        signal.signal(number, signal.SIG_DFL)
        raise Stopped(number)

    try:
        for name in ASKING:
            number = getattr(signal, name, None)  # not every system has each
            if number is not None and signal.getsignal(number) is signal.SIG_DFL:
                signal.signal(number, stop)
                changed.append(number)
    except ValueError:  # not the main thread
        pass
    try:
        yield
    finally:
        for number in changed:
            signal.signal(number, signal.SIG_DFL)
