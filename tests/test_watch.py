"""``--watch``: the frames of a live view, how often they are drawn, and what a terminal shows in the end."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from acep.cli import main
from acep.cli.watch import CURVE_LENGTH, EVERY, LINES_EVERY, LiveView, spark_line, view
from acep.streaming.progress import Progress
from acep.streaming.time_spent import Spent

ROOT = Path(__file__).resolve().parents[1]


def progress(batch: int, **numbers: Any) -> Progress:
    """A micro-batch of 100 rows a second, with totals that rise with its number."""
    given: dict[str, Any] = {
        "batch": batch,
        "events": 100 * (batch + 1),
        "late": 0,
        "matches": 7 * (batch + 1),
        "held": 3,
        "state": 1_500_000,
        "watermark": "",
        "reference": 0,
        "rows": 100,
        "seconds": 1.0,
    }
    return Progress(**given | numbers)


def rows_of(lines: Sequence[str]) -> dict[str, str]:
    return {line[:9].strip(): line[9:] for line in lines[1:]}


def test_a_frame_has_the_numbers_of_the_last_micro_batch_and_curves() -> None:
    seen = [
        progress(0, rows=100, live=10, lag=1.0, shed=0, work=50, allowance=100),
        progress(1, rows=200, live=40, lag=None, shed=6, work=300, allowance=400, matches=8),
        progress(
            2,
            rows=400,
            live=80,
            lag=90.0,
            shed=10,
            work=360,
            allowance=400,
            late=5,
            late_now=2,
            ahead=1,
            watermark="2026-01-01T00:00:00.000Z",
            version=2,
            spent=Spent(1, 0, 3, 1),
        ),
    ]
    lines = view(seen, 100)
    assert lines[0] == "micro-batch 2: 300 events in all, 3 held, watermark 2026-01-01T00:00:00.000Z, version 2"
    rows = {name: re.split(r"  +", text.strip()) for name, text in rows_of(lines).items()}
    assert rows == {
        "rate": ["400 events/s", "▃▅█"],
        "lag": ["0:01:30", "▁ █"],
        "live": ["80 partial matches", "▂▅█"],
        "matches": ["21 (+13)", "▅▂█"],
        "late": ["5 (+2), 1 too far ahead"],
        "shed": ["10 (+4), 90% of the allowance", "▅▇█"],
        "state": ["1.50 MB"],
        "time": ["25 % Spark, 0 % transfer, 75 % matching"],
    }


def test_the_rate_is_that_of_micro_batches_which_together_take_long_enough() -> None:
    short = [progress(number, seconds=0.04, rows=10 * (number + 1)) for number in range(4)]
    assert rows_of(view(short[:2], 100))["rate"] == "-"
    assert rows_of(view(short, 100))["rate"].split() == ["750", "events/s", "▆█"]  # (40 + 30 + 20) / 0.12 s


def test_a_stream_that_goes_on_does_not_know_what_was_found_before() -> None:
    rows = rows_of(view([progress(5), progress(6)], 100))
    assert rows["matches"].split() == ["49", "(+7)", "█"]
    assert rows_of(view([progress(5)], 100))["matches"].split() == ["42"]


def test_curves_stand_in_one_column_beside_long_values() -> None:
    seen = [progress(n, shed=10**12 * (n + 1), work=50, allowance=100, lag=1.0) for n in (1, 2)]
    ends = [len(line) for line in view(seen, 100) if line[-1] in "▁▂▃▄▅▆▇█"]
    assert len(ends) == 5
    assert len({*ends}) == 1


@pytest.mark.parametrize("width", [1, 10, 40, 60, 200])
def test_lines_fit_the_terminal(width: int) -> None:
    seen = [progress(n, live=10**15, watermark="x" * 300) for n in range(500)]
    lines = view(seen, width)
    assert len(lines) == 9
    assert max(map(len, lines)) <= width - 1 if width > 1 else lines == [""] * 9


def test_curves_of_values_that_are_odd() -> None:
    assert spark_line([0, 0], 5) == "▁▁"
    assert spark_line([], 5) == spark_line([1], 0) == ""
    assert spark_line([1, 2, 4], 5, "_.-=+*#@") == "-+@"


class Terminal(io.StringIO):
    """A terminal, as far as the live view uses one: its ``screen`` is what it shows in the end."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        raise io.UnsupportedOperation

    @property
    def screen(self) -> list[str]:
        return shown(self.getvalue())


def shown(text: str) -> list[str]:
    """The lines of a terminal after a text with the control sequences that the live view writes, and no others."""
    lines, row, column = [""], 0, 0
    for piece in re.findall(r"\x1b\[\d*[A-Z]|\r|\n|[^\x1b\r\n]+", text):
        if piece.startswith("\x1b"):
            number, kind = int(piece[2:-1] or 1), piece[-1]
            if kind == "A":
                row = max(0, row - number)
            elif kind == "K":
                lines[row] = lines[row][:column]
            else:
                assert kind == "J", piece
                del lines[row + 1 :]
                lines[row] = lines[row][:column]
        elif piece == "\r":
            column = 0
        elif piece == "\n":
            row, column = row + 1, 0
            lines += [""] * (row + 1 - len(lines))
        else:
            lines[row] = lines[row][:column].ljust(column) + piece + lines[row][column + len(piece) :]
            column += len(piece)
    return lines


def test_a_terminal_gets_frames_over_each_other_at_a_bounded_rate() -> None:
    terminal, now = Terminal(), [0.0]
    live = LiveView(terminal, lambda: now[0])
    for number in range(1_000):
        live.tell(progress(number, live=1_000 - number))
        now[0] += 0.01
    live.finish()
    frames = terminal.getvalue().count("micro-batch ")
    assert 10 / EVERY / 2 < frames <= 10 / EVERY + 2
    seen = [progress(number, live=1_000 - number) for number in range(1_000)][-CURVE_LENGTH:]
    assert terminal.screen == [*view(seen, 80), ""]


def test_the_last_micro_batch_is_shown_once() -> None:
    terminal = Terminal()
    live = LiveView(terminal, lambda: 0.0)
    live.finish()
    assert terminal.getvalue() == ""
    for number in range(3):
        live.tell(progress(number))
    live.finish()
    live.finish()
    assert re.findall(r"micro-batch (\d)", terminal.getvalue()) == ["0", "2"]


def test_without_a_terminal_there_are_plain_lines_at_a_bounded_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    out, now = io.StringIO(), [0.0]
    live = LiveView(out, lambda: now[0])
    for number in range(100):
        live.tell(progress(number))
        now[0] += 0.05
    live.finish()
    lines = out.getvalue().splitlines()
    assert 5 / LINES_EVERY - 1 <= len(lines) <= 5 / LINES_EVERY + 2
    assert lines[-1] == f"micro-batch 99: {progress(99).line}"
    assert "\x1b" not in out.getvalue()
    dumb = Terminal()
    monkeypatch.setenv("TERM", "dumb")
    LiveView(dumb).tell(progress(0))
    assert "\x1b" not in dumb.getvalue()


def test_a_terminal_without_utf_8_gets_other_letters() -> None:
    terminal = Terminal()
    terminal.encoding = "latin-1"  # type: ignore[misc]
    LiveView(terminal).tell(progress(0))
    assert terminal.getvalue().isascii()
    assert "@" in terminal.getvalue()


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").mkdir()
    for number in range(6):
        rows = "".join(f"{20 * number + n},{'ab'[n % 2]}\n" for n in range(20))
        (tmp_path / "in" / f"{number}.csv").write_text(f"ts,type\n{rows}")
    return tmp_path


FOLLOW = ["follow", "re:ab", "in", "--within", "1", "--state", "s", "--output", "o", "--end", "--max-files", "1"]


@pytest.mark.usefixtures("files")
def test_a_follower_is_watched_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*FOLLOW, "--watch"]) == 0
    told = capsys.readouterr().err.splitlines()
    lines = [line for line in told if line.startswith("micro-batch ")]
    assert lines[0].startswith("micro-batch 0: ")
    assert re.match(r"micro-batch \d: 120 events\b", lines[-1])
    assert not any("Spark" in line for line in told)
    assert "in all 120 events, 60 matches" in "\n".join(told)


@pytest.mark.long
def test_a_follower_is_watched_on_a_terminal(files: Path) -> None:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 70, 0, 0))
    env = {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm", "PYTHONIOENCODING": "utf-8"}
    command = [sys.executable, "-m", "acep", *FOLLOW, "--watch"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=theirs, cwd=files, env=env)
    os.close(theirs)
    told = b""
    while True:
        try:
            more = os.read(ours, 65_536)
        except OSError:  # the other end is closed
            break
        if not more:
            break
        told += more
    os.close(ours)
    assert process.wait(60) == 0
    assert process.stdout is not None
    assert process.stdout.read() == b""
    process.stdout.close()
    screen = shown(told.decode().replace("\r\n", "\n"))
    frame = [number for number, line in enumerate(screen) if line.startswith("micro-batch ")]
    assert len(frame) == 1, f"one frame is left: {screen}"
    assert re.match(r"micro-batch [56]: 120 events in all", screen[frame[0]])
    assert rows_of(screen[frame[0] : frame[0] + 9])["matches"].split()[0] == "60"
    assert max(map(len, screen[:9])) <= 69
    assert "in all 120 events, 60 matches" in "\n".join(screen), "the summary follows"
