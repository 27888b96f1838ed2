"""``--log-level``: what each level shows, and that the library is quiet by itself."""

from __future__ import annotations

import logging
import subprocess
import sys
from pathlib import Path

import pytest

import acep
from acep.cli import main

pytestmark = pytest.mark.filterwarnings("default::acep.errors.DataWarning")

EVENTS = "ts,type\n" + "".join(f"{ts},{'ab'[ts % 2]}\n" for ts in range(200))
FOLLOW = ("follow", "re:ab", "in", "--within", "5", "--state", "state", "--output", "out", "--once", "--no-progress")
ABSENT = ("match", "re:az", "events.csv", "--within", "5", "--count", "--engine", "auto")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "events.csv").write_text(EVENTS)
    (tmp_path / "in").mkdir()


def said(capsys: pytest.CaptureFixture[str], *args: str, level: str | None = None) -> list[str]:
    more = [] if level is None else ["--log-level", level]
    assert main([*args, *more]) == 0
    return capsys.readouterr().err.splitlines()


def test_debug_shows_the_engine(capsys: pytest.CaptureFixture[str]) -> None:
    lines = said(capsys, *ABSENT, level="debug")
    assert any(line.startswith("acep: debug: the ") and " engine runs the query: " in line for line in lines)
    assert any(line.startswith("acep: warning: no event is of type `z`") for line in lines)


def test_debug_shows_what_a_batch_sheds(capsys: pytest.CaptureFixture[str]) -> None:
    query = "PATTERN SEQ(a x, b y, a z, b w) WHERE z.ts > x.ts + y.ts / 2 AND w.ts > y.ts + 3 WITHIN 90"
    lines = said(capsys, "match", query, "events.csv", "--work", "1", level="debug")
    assert any(" partial matches and events were shed in a batch of 200 events" in line for line in lines)


def test_info_shows_that_a_stream_goes_on(capsys: pytest.CaptureFixture[str]) -> None:
    Path("in/1.csv").write_text(EVENTS)
    assert not any("acep: " in line for line in said(capsys, *FOLLOW, level="info"))
    Path("in/2.csv").write_text("ts,type\n300,a\n")
    lines = said(capsys, *FOLLOW, level="info")
    assert [line for line in lines if "acep: " in line] == [
        f"acep: info: the state in `{Path('state').resolve()}` was taken up before micro-batch 1"
    ]
    Path("in/3.csv").write_text("ts,type\n400,a\n")
    assert "acep: debug: micro-batch 2 takes the file `3.csv`" in said(capsys, *FOLLOW, level="debug")


@pytest.mark.parametrize("level", [None, "warning"])
def test_warnings_are_shown_by_default(level: str | None, capsys: pytest.CaptureFixture[str]) -> None:
    (line,) = said(capsys, *ABSENT, level=level)
    assert line.startswith("acep: warning: no event is of type `z`")


def test_error_shows_nothing_but_errors(capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys, *ABSENT, level="error") == []
    assert main(["match", "re:(", "events.csv", "--within", "5", "--log-level", "error"]) == 2
    assert capsys.readouterr().err.startswith("acep: ")


def test_logging_is_as_before_afterwards(capsys: pytest.CaptureFixture[str]) -> None:
    log = logging.getLogger("acep")
    before = (log.level, log.propagate, list(log.handlers))
    said(capsys, *ABSENT, level="debug")
    assert (log.level, log.propagate, list(log.handlers)) == before


def test_the_library_logs_states_and_versions(caplog: pytest.LogCaptureFixture) -> None:
    query = "PATTERN SEQ(A a, B b) WITHIN 5"
    stream = acep.Matcher(query, dynamic=True)
    with caplog.at_level(logging.INFO, logger="acep"):
        stream.push({"ts": [1, 2], "type": ["A", "A"]})
        stream.replace("PATTERN SEQ(A a, B b) WHERE b.ts > a.ts WITHIN 5")
        acep.Matcher(query, dynamic=True).restore(stream.snapshot())
    assert [record.getMessage() for record in caplog.records] == [
        "a new version of the query was taken in: 0 partial matches go on",
        "the state of a stream was restored: 2 events had come",
    ]


def test_the_library_prints_nothing_by_itself() -> None:
    code = """if True:
        import acep
        stream = acep.Matcher("PATTERN SEQ(A a, B b) WITHIN 5")
        stream.push({"ts": [1, 2], "type": ["A", "B"]})
        acep.Matcher("PATTERN SEQ(A a, B b) WITHIN 5").restore(stream.snapshot())"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")
