"""Serve the live page of a stream while a command runs (``--serve``)."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from acep.cli.metrics import read_address
from acep.cli.terminal import say

if TYPE_CHECKING:
    from acep.serving.live_page import LivePage

__all__ = ["serve_page"]


@contextmanager
def serve_page(args: argparse.Namespace) -> Iterator[LivePage | None]:
    """Yield the live page if ``--serve`` asks for it, and write its address to stderr."""
    if args.serve is None:
        yield None
        return
    from acep.serving.live_page import LivePage

    host, port = read_address(args.serve, "--serve")
    with LivePage(port, host) as page:
        say(f"acep: live page at {page.url}")
        yield page
