"""Serve the figures of a stream on a port while a command runs (``--metrics``)."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from acep.cli.terminal import say
from acep.errors import DataError

if TYPE_CHECKING:
    from acep.streaming.progress import Progress

__all__ = ["read_address", "serve_metrics"]

Tell = Callable[["Progress"], None]


def read_address(text: str, option: str = "--metrics") -> tuple[str, int]:
    """Return the host and the port of ``[HOST:]PORT``. Raise :class:`DataError` for another text.

    >>> read_address("9000"), read_address("0.0.0.0:9000"), read_address("[::1]:9000")
    (('127.0.0.1', 9000), ('0.0.0.0', 9000), ('::1', 9000))
    """
    host, _, port = text.rpartition(":")
    if not port.isascii() or not port.isdecimal():
        raise DataError(
            f"{option} {text}: there is no port", hint="a port, such as 9000, or HOST:PORT", code="option_invalid"
        )
    return host.removeprefix("[").removesuffix("]") or "127.0.0.1", int(port)


@contextmanager
def serve_metrics(args: argparse.Namespace, tell: Tell | None) -> Iterator[Tell | None]:
    """Yield a function for the progress of each micro-batch, which serves its figures if ``--metrics`` asks for it, and
    calls ``tell`` too."""
    if args.metrics is None:
        yield tell
        return
    from acep.serving.metrics import Metrics

    host, port = read_address(args.metrics)
    with Metrics(port, host) as metrics:
        say(f"acep: metrics at {metrics.url}")

        def tell_both(progress: Progress) -> None:
            metrics.tell(progress)
            if tell is not None:
                tell(progress)

        yield tell_both
