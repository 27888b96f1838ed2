"""Show the progress of long work on the terminal: a bar, or the time so far where the amount of work is unknown.

Nothing is written unless stderr is a terminal, in the first two seconds, or with ``--no-progress``.
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from acep.cli.terminal import has_blocks, size_of
from acep.errors import printable

__all__ = ["ProgressBar", "progress", "progress_line"]

DELAY = 2.0  # seconds
EVERY = 0.25
BAR = 30  # characters
EIGHTHS = "▏▎▍▌▋▊▉█"
CLEAR = "\r\x1b[K"


def progress_line(what: str, seconds: float, done: int, total: int | None, width: int, *, blocks: bool = True) -> str:
    """Return the line after some seconds, shorter than ``width``, with a bar and the time left if those are known.

    >>> progress_line("matching 400 events", 3.2, 100, 400, 80)
    'matching 400 events  ███████▌                         25 %  3 s, 10 s left'
    >>> progress_line("matching 400 events", 3.2, 100, 400, 80, blocks=False)
    'matching 400 events  ########                         25 %  3 s, 10 s left'
    >>> progress_line("reading events.csv", 3.2, 0, None, 80), progress_line("matching 400 events", 3.2, 400, 400, 20)
    ('reading events.csv  3 s', 'matching 400 events')
    """
    from acep.streaming.progress import length_text  # which work of less than two seconds does not load

    line = f"{what}  "
    if total and done:
        share = min(1.0, done / total)
        n_blocks, part = divmod(round(share * BAR * 8), 8)
        bar = EIGHTHS[-1] * n_blocks + EIGHTHS[part - 1 : part] if blocks else "#" * round(share * BAR)
        time_left = length_text(round(seconds / share - seconds))
        line += f"{bar:{BAR}}  {share:4.0%}".replace("%", " %") + f"  {length_text(int(seconds))}, {time_left} left"
    else:
        line += length_text(int(seconds))
    return line[: width - 1].rstrip()


class ProgressBar:
    """A line on a terminal about one piece of work, written over by :meth:`draw` once two seconds have passed."""

    def __init__(self, what: str, total: int | None, out: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._what, self._total, self._out, self._clock = printable(what), total, out, clock
        self._began, self._n_done, self._is_shown = clock(), 0, False
        self._blocks = has_blocks(out)

    def advance(self, amount: int) -> None:
        """Count work that has been done."""
        self._n_done += amount

    def draw(self) -> None:
        """Write the line, unless the work began less than two seconds ago."""
        seconds = self._clock() - self._began
        if seconds < DELAY:
            return
        self._is_shown = True
        columns, _ = size_of(self._out)
        line = progress_line(self._what, seconds, self._n_done, self._total, columns, blocks=self._blocks)
        self._out.write(f"{CLEAR}{line}")
        self._out.flush()

    def clear(self) -> None:
        """Remove the line, so that what follows begins in the first column."""
        if self._is_shown:
            self._out.write(CLEAR)
            self._out.flush()


@contextmanager
def progress(args: argparse.Namespace, what: str, total: int | None = None) -> Iterator[Callable[[int], None]]:
    """Show the progress of the work inside, and yield a function that counts what is done of ``total``."""
    if args.no_progress or not sys.stderr.isatty():
        yield lambda _: None
        return
    bar, ended = ProgressBar(what, total, sys.stderr), threading.Event()

    def draw() -> None:
        while not ended.wait(EVERY):
            bar.draw()

    drawing = threading.Thread(target=draw, daemon=True)
    drawing.start()
    try:
        yield bar.advance
    finally:
        ended.set()
        drawing.join()
        bar.clear()
