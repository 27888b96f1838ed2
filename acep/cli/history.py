"""``acep history``: what a file of history knows of match vectors, and its graph."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from acep.errors import DataError


def run(args: argparse.Namespace) -> None:
    """Print the listing, and draw the graph if that is asked for."""
    from acep.learning.history.drawing import MOST, history_listing, history_svg
    from acep.learning.history.graph import History
    from acep.shedding.history_file import read_history

    history = History.from_bytes(read_history(args.file))
    most = MOST if args.limit is None else args.limit
    text = history_listing(history, most)
    if args.svg is not None:
        try:
            Path(args.svg).write_text(history_svg(history, most), encoding="utf-8")
        except OSError as bad:
            raise DataError(f"`{args.svg}` cannot be written: {bad.strerror or bad}") from None
    sys.stdout.write(text)
