"""Run ``acep history``: print what a file of history knows of match vectors, and draw its graph."""

from __future__ import annotations

import argparse

from acep.cli.inputs import write_text
from acep.cli.terminal import show


def run(args: argparse.Namespace) -> None:
    """Print the listing, and draw the graph if that is asked for."""
    from acep.learning.history.drawing import MAX_VECTORS, history_listing, history_svg
    from acep.learning.history.graph import History
    from acep.shedding.history_file import read_history

    history = History.from_bytes(read_history(args.file))
    limit = MAX_VECTORS if args.limit is None else args.limit
    text = history_listing(history, limit)
    if args.svg is not None:
        write_text(args.svg, history_svg(history, limit))
    show(text.removesuffix("\n"))
