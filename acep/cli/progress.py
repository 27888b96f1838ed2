"""Show the progress of long work on the terminal, and nothing if stderr is not a terminal."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["progress"]

AFTER = 1.0
EVERY = 0.5


@contextmanager
def progress(what: str) -> Iterator[None]:
    """Show the work and its duration on stderr, if that is a terminal, after the first second."""
    if not sys.stderr.isatty():
        yield
        return
    done = threading.Event()
    began = time.monotonic()

    def tell() -> None:
        shown = False
        while not done.wait(EVERY if shown else AFTER):
            shown = True
            sys.stderr.write(f"\r\x1b[K{what}: {time.monotonic() - began:.0f} s")
            sys.stderr.flush()
        if shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

    teller = threading.Thread(target=tell, daemon=True)
    teller.start()
    try:
        yield
    finally:
        done.set()
        teller.join()
