"""Show a stream live (``--watch``): on a terminal a few lines that are written over, elsewhere a line now and then."""

from __future__ import annotations

import itertools
import os
import shutil
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TextIO

from acep.cli.terminal import has_blocks, printable_lines, size_of
from acep.display import TIMED, rate_text
from acep.streaming.progress import length_text

if TYPE_CHECKING:
    from acep.streaming.progress import Progress

__all__ = ["LiveView", "line_view", "spark_line", "view"]

EVERY = 0.2  # seconds between two frames on a terminal
LINES_EVERY = 1.0  # seconds between two lines elsewhere
CURVE_LENGTH = 60  # micro-batches that a curve may show
VALUE = 36  # least width of the column of values that have a curve
LABEL = 9
BLOCKS = "▁▂▃▄▅▆▇█"
PLAIN = "_.-=+*#@"


def view(records: Sequence[Progress], width: int, marks: str = BLOCKS) -> list[str]:
    r"""Return the lines of a frame after the last of some micro-batches, each shorter than ``width``.

    >>> from acep.streaming.progress import Progress
    >>> one = Progress(0, 1000, 0, 5, 0, 2_000_000, "", 0, 1000, 0.5, live=7)
    >>> print(*view([one], 60), sep="\n")
    micro-batch 0: 1,000 events in all, 0 held
    rate     2,000 events/s                      █
    lag      -
    live     7 partial matches                   █
    matches  5 (+5)                              █
    late     0
    shed     0, no budget
    state    2.00 MB
    time     0 % Spark, 0 % transfer, 0 % matching
    """
    now, previous = records[-1], records[-2] if len(records) > 1 else None
    timed = [_rows_and_seconds(records[: number + 1]) for number in range(len(records))]
    matches = [record.matches for record in records]
    new_matches: list[float | None] = [matches[0] if records[0].batch == 0 else None]
    new_matches += [later - earlier for earlier, later in itertools.pairwise(matches)]
    head = f"micro-batch {now.batch}: {now.events:,} events in all, {now.held:,} held"
    head += f", watermark {now.watermark}" if now.watermark else ""
    head += f", version {now.version}" if now.version else ""
    late = f"{now.late:,}" + (f" (+{now.late_now:,})" if now.late_now else "")
    late += f", {now.ahead:,} too far ahead" if now.ahead else ""
    n_shed = now.shed - previous.shed if previous is not None else 0
    shed = f"{now.shed:,}" + (f" (+{n_shed:,})" if n_shed else "")
    shed += f", {now.work / now.allowance:.0%} of the allowance" if now.allowance else ", no budget"
    shares = [record.work / record.allowance if record.allowance else None for record in records]
    rate = rate_text(*timed[-1])
    rows: list[tuple[str, str, Sequence[float | None]]] = [
        ("rate", f"{rate} events/s" if rate else "-", [n / s if s >= TIMED else None for n, s in timed]),
        ("lag", "-" if now.lag is None else length_text(now.lag), [record.lag for record in records]),
        ("live", f"{now.live:,} partial matches", [record.live for record in records]),
        ("matches", f"{now.matches:,}" + (f" (+{new_matches[-1]:,})" if new_matches[-1] else ""), new_matches),
        ("late", late, []),
        ("shed", shed, shares),
        ("state", f"{now.state / 1e6:,.2f} MB", []),
        ("time", str(now.spent), []),
    ]
    wide = max(VALUE, *(len(value) + 2 for _, value, values in rows if values))
    curve_width = max(0, width - 1 - LABEL - wide)
    curves = [spark_line(values, curve_width, marks) for _, _, values in rows]
    lines = [f"{name:{LABEL}}{value:{wide}}{curve}" for (name, value, _), curve in zip(rows, curves, strict=True)]
    return [line.rstrip()[: max(0, width - 1)] for line in (head, *lines)]


def _rows_and_seconds(records: Sequence[Progress]) -> tuple[int, float]:
    """Return the rows and the seconds of the last micro-batch, together with as many before it as it takes to know a
    speed."""
    rows, seconds = 0, 0.0
    for progress in reversed(records):
        rows, seconds = rows + progress.rows, seconds + progress.seconds
        if seconds >= TIMED:
            break
    return rows, seconds


def spark_line(values: Sequence[float | None], width: int, marks: str = BLOCKS) -> str:
    """Return the last ``width`` values as a curve of one line, from 0 to the greatest; an unknown value is a gap.

    >>> spark_line([0, 1, None, 7], 10), spark_line([3, 3], 1), spark_line([None], 10)
    ('▁▂ █', '█', '')
    """
    last_values = list(values[-width:]) if width > 0 else []
    known_values = [value for value in last_values if value is not None]
    if not known_values:
        return ""
    greatest = max(known_values)
    steps = len(marks) - 1
    curve = [
        " " if v is None else marks[round(steps * max(v, 0) / greatest) if greatest > 0 else 0] for v in last_values
    ]
    return "".join(curve)


class LiveView:
    """A view of a stream on ``out``: :meth:`tell` takes the progress of each micro-batch, :meth:`finish` ends it.

    A terminal gets at most five frames a second, each over the one before; anything else at most one line a second. The
    last micro-batch is always shown."""

    def __init__(self, out: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._out, self._clock = out, clock
        self._records: deque[Progress] = deque(maxlen=CURVE_LENGTH)
        self._terminal = out.isatty() and os.environ.get("TERM") != "dumb"
        self._marks = BLOCKS if has_blocks(out) else PLAIN
        self._last = float("-inf")
        self._lines = 0
        self._is_due = False
        self._note = ""

    def show_note(self, note: str) -> None:
        """Show a text below the frame on a terminal from now on."""
        self._note = note
        if self._terminal and self._records:
            self._show()

    def tell(self, progress: Progress) -> None:
        """Take in a micro-batch, and show it unless something was shown just before."""
        self._records.append(progress)
        self._is_due = True
        if self._clock() - self._last >= (EVERY if self._terminal else LINES_EVERY):
            self._show()

    def finish(self) -> None:
        """Show the last micro-batch if it was not shown."""
        if self._is_due:
            self._show()

    def _show(self) -> None:
        self._is_due, self._last = False, self._clock()
        if not self._terminal:
            now = self._records[-1]
            self._out.write(f"micro-batch {now.batch}: {now.line}\n")
            self._out.flush()
            return
        columns, rows = size_of(self._out)
        lines = view(list(self._records), columns, self._marks)
        lines = [*lines, *([self._note[: max(0, columns - 1)]] if self._note else [])][: max(1, rows - 1)]
        cursor_up = f"\x1b[{self._lines}A\r" if self._lines else ""
        # Each line is cleared to its end, and what is left of a longer frame below.
        self._out.write(cursor_up + "".join(f"{line}\x1b[K\n" for line in lines) + "\x1b[J")
        self._out.flush()
        self._lines = len(lines)


def line_view() -> tuple[Callable[[Progress], None], Callable[[], None]]:
    """Return a function that prints one line per micro-batch, over the last one on a terminal, and one that ends it."""
    terminal = sys.stderr.isatty()
    open_line = False

    def tell(progress: Progress) -> None:
        nonlocal open_line
        line = printable_lines(f"micro-batch {progress.batch}: {progress.line}")
        if terminal:
            line = f"\r\x1b[K{line[: shutil.get_terminal_size().columns - 1]}"  # only a single line can be overwritten
        sys.stderr.write(line if terminal else f"{line}\n")
        sys.stderr.flush()
        open_line = terminal

    def finish() -> None:
        if open_line:
            sys.stderr.write("\n")

    return tell, finish
