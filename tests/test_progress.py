"""Progress on a terminal: a bar after two seconds, on every command that may take long, and never into a pipe."""

from __future__ import annotations

import io
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from acep.cli import main, progress
from acep.cli.progress import CLEAR, ProgressBar, progress_line

WHAT = "matching 400 events"
COMMANDS: dict[str, tuple[str, ...]] = {
    "match": ("match", "re:ab", "events.csv", "--within", "5"),
    "explain": ("explain", "re:ab", "--events", "events.csv", "--within", "5"),
    "lint": ("lint", "re:ab", "events.csv", "--within", "5"),
    "why": ("why", "re:ab", "events.csv", "--within", "5"),
    "why --many": ("why", "re:ab", "events.csv", "--within", "5", "--many"),
    "tune": ("tune", "re:ab", "events.csv", "--within", "5"),
    "learn": ("learn", "re:ab", "events.csv", "--within", "5", "--output", "learned.acep"),
}


class Terminal(io.StringIO):
    """A terminal that remembers what was written."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "events.csv").write_text("ts,type\n" + "".join(f"{ts},{'abx'[ts % 3]}\n" for ts in range(60)))
    monkeypatch.chdir(tmp_path)


def test_a_bar_appears_after_two_seconds() -> None:
    now, out = [0.0], Terminal()
    bar = ProgressBar(WHAT, 400, out, lambda: now[0])
    for seconds, done in ((1.9, 100), (2.0, 0), (8.0, 100)):
        now[0] = seconds
        bar.advance(done)
        bar.draw()
    bar.clear()
    first, second, last = out.getvalue().split(CLEAR)[1:]
    assert (first, last) == (progress_line(WHAT, 2.0, 100, 400, 80), "")
    assert second == f"{WHAT}  {'█' * 15}{' ' * 15}   50 %  8 s, 8 s left"


def test_nothing_appears_of_short_work() -> None:
    now, out = [0.0], Terminal()
    bar = ProgressBar("reading events.csv", None, out, lambda: now[0])
    now[0] = 1.9
    bar.draw()
    bar.clear()
    assert out.getvalue() == ""


@pytest.mark.parametrize("width", [5, 20, 60, 200])
def test_a_line_is_shorter_than_the_terminal(width: int) -> None:
    for done in (0, 1, 399, 400):
        for blocks in (True, False):
            line = progress_line(WHAT, 100_000, done, 400, width, blocks=blocks)
            assert len(line) < width
            assert blocks or line.isascii()


@pytest.mark.parametrize("args", COMMANDS.values(), ids=COMMANDS)
def test_each_command_shows_all_of_its_work(args: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """Each piece of work is drawn at its end, however short it was."""

    def drawn(*more: str, out: io.StringIO) -> str:
        monkeypatch.setattr(sys, "stderr", out)
        assert main([*args, *more]) == 0, out.getvalue()
        return out.getvalue()

    clear = ProgressBar.clear
    monkeypatch.setattr(progress, "DELAY", 0.0)
    monkeypatch.setattr(ProgressBar, "clear", lambda bar: (bar.draw(), clear(bar)))
    lines = drawn(out=Terminal()).split(CLEAR)
    assert lines[1] == "reading events.csv  0 s"
    assert len([line for line in lines if line]) >= (1 if args[0] == "explain" else 2)
    assert lines[-1] == ""
    if args[0] == "match":
        assert f"matching 60 events  {'█' * 30}  100 %" in lines[3]
    assert drawn("--no-progress", out=Terminal()) == ""
    assert drawn(out=io.StringIO()) == ""


@pytest.mark.long
def test_on_a_terminal_of_the_system() -> None:
    """Matching takes three seconds here: the bar is drawn, its line is cleared, and stdout is a pipe."""
    code = f"""if True:
        import sys, time
        from acep.matching.batch_stream import Passing
        from acep.cli import main
        push = Passing.push
        Passing.push = lambda self, table: (time.sleep(2.6), push(self, table))[1]
        sys.exit(main({list(COMMANDS["match"])!r}))"""
    ours, theirs = pty.openpty()
    try:
        done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=theirs, check=False)
        text = os.read(ours, 65536).decode()
    finally:
        os.close(theirs)
        os.close(ours)
    assert done.returncode == 0, text
    assert b"\x1b" not in done.stdout
    assert text.startswith(f"{CLEAR}matching 60 events  2 s")
    assert text.endswith(CLEAR)
