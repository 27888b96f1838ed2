"""``--serve`` of ``acep follow`` and ``acep replay``, in processes of their own."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from acep.cli import main
from acep.serving import live_page
from acep.serving.live_page import LivePage
from acep.streaming.progress import Progress
from tests.serving.test_live_page import command, in_time, state_of

CSV = "ts,type,user\n" + "".join(f"{number},{'ab'[number % 2]},u{number % 6 // 2}\n" for number in range(600))
QUERY = "PATTERN SEQ(a p, b q) WHERE [user] WITHIN 5"


@contextmanager
def running(folder: Path, *args: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A command that serves a page, and the address that it has written to stderr."""
    process = subprocess.Popen(
        [sys.executable, "-u", "-m", "acep", *args, "--serve"], cwd=folder, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    try:
        assert process.stderr is not None
        lines = []
        for line in process.stderr:
            lines.append(line)
            if match := re.fullmatch(r"acep: live page at (http://127\.0\.0\.1:\d+/\?token=[\w-]{32,})\n", line):
                yield process, match[1]
                break
        else:
            raise AssertionError("".join(lines))
    finally:
        process.kill()
        process.communicate()


def fetch(url: str, **parameters: Any) -> dict[str, Any]:
    query = "".join(f"&{name}={value}" for name, value in parameters.items())
    with urlopen(url.replace("/?", "/state?") + query, timeout=10) as answer:  # noqa: S310
        state: dict[str, Any] = json.load(answer)
    return state


def await_state(url: str, holds: Callable[[dict[str, Any]], bool], seconds: float = 40.0) -> dict[str, Any]:
    """The first state for which something holds."""
    until = time.monotonic() + seconds
    while True:
        state = fetch(url)
        if holds(state):
            return state
        assert time.monotonic() < until, state
        time.sleep(0.05)


@pytest.mark.long
def test_follow_serves_files_as_they_come(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    options = ["--state", "s", "--output", "o", "--poll", "0.1"]
    with running(tmp_path, "follow", QUERY, "in", *options) as (process, url):
        assert fetch(url)["status"]["name"] == "waiting"
        assert fetch(url)["query"] == QUERY
        (tmp_path / "in/1.csv").write_text(CSV)
        state = await_state(url, lambda state: state["status"]["name"] == "running")
        assert dict(state["facts"])["events"].startswith("600")
        assert state["matches"]["total"] == len((tmp_path / "o/000000000.jsonl").read_text().splitlines()) > 100
        assert [name for name, _ in state["partials"]["queries"][0][1]] == ["1 (p)", "2 (q)"]
        (tmp_path / "in/2.csv").write_text("ts,type,user\n700,a,<b>\n701,b,<b>\n")
        state = await_state(url, lambda state: dict(state["facts"])["micro-batch"] == "1")
        (tmp_path / "in/3.csv").write_text("ts,type,user\nx,a,u\n")
        state = await_state(url, lambda state: state["status"]["name"] == "failed")
        assert "3.csv" in state["status"]["note"]
        assert process.wait(20) == 2
    with pytest.raises(URLError):
        fetch(url)


@pytest.mark.long
def test_a_signal_ends_the_stream_and_the_page(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    with running(tmp_path, "follow", QUERY, "in", "--state", "s", "--output", "o") as (process, url):
        fetch(url)
        process.send_signal(signal.SIGTERM)
        assert await_state(url, lambda state: state["status"]["name"] == "stopped")
        assert process.wait(20) == -signal.SIGTERM


@pytest.mark.long
def test_a_replay_is_paused_stepped_and_stopped_from_the_page(tmp_path: Path) -> None:
    (tmp_path / "events.csv").write_text(CSV)
    options = ["--unit", "s", "--speed", "20", "--count", "--watch"]
    with running(tmp_path, "replay", QUERY, "events.csv", *options) as (process, url):

        def press(name: str) -> None:
            with urlopen(url.replace("/?", f"/command?do={name}&"), data=b"", timeout=10) as answer:  # noqa: S310
                assert answer.status == 200

        assert await_state(url, lambda state: state["points"] != [])["status"]["can_pause"] is True
        press("pause")
        before = await_state(url, lambda state: state["status"]["name"] == "paused")
        press("step")
        batch = int(dict(before["facts"])["micro-batch"])
        await_state(url, lambda state: int(dict(state["facts"])["micro-batch"]) == batch + 1)
        press("stop")
        assert await_state(url, lambda state: state["status"]["name"] == "stopped")
        assert process.wait(20) == 130


@pytest.mark.parametrize("more", [[], ["--watch"], ["--no-progress"]])
def test_a_replay_ends_as_without_a_page(
    more: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("events.csv").write_text(CSV)
    assert main(["replay", QUERY, "events.csv", "--count", *more]) == 0
    expected = capsys.readouterr().out
    states: list[dict[str, Any]] = []
    tell = LivePage.tell

    def tell_and_fetch(page: LivePage, progress: Progress) -> None:
        tell(page, progress)
        states.append(state_of(page))

    monkeypatch.setattr(LivePage, "tell", tell_and_fetch)
    monkeypatch.setattr(live_page, "PARTING", 0.05)
    assert main(["replay", QUERY, "events.csv", "--count", *more, "--serve", "127.0.0.1:0"]) == 0
    assert capsys.readouterr().out == expected
    assert states[-1]["matches"]["total"] == int(expected)


@pytest.mark.parametrize(
    ("address", "complaint"),
    [("x", "--serve x: there is no port"), ("99999", "is no port"), ("nowhere.invalid:0", "the page cannot be served")],
)
def test_a_wrong_address_is_explained(
    address: str, complaint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("events.csv").write_text(CSV)
    assert main(["replay", QUERY, "events.csv", "--serve", address]) == 2
    assert complaint in capsys.readouterr().err


def test_a_port_in_use_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("events.csv").write_text(CSV)
    with LivePage() as page:
        port = page.url.split(":")[2].split("/")[0]
        assert main(["replay", QUERY, "events.csv", "--serve", port]) == 2
    message, hint = capsys.readouterr().err.splitlines()
    assert message.startswith(f"acep: the page cannot be served on 127.0.0.1:{port}: ")
    assert hint.startswith("hint: ")


def test_rules_are_served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").mkdir()
    (tmp_path / "rules").mkdir()
    Path("in/1.csv").write_text(CSV)
    Path("rules/one.rule").write_text(f'---\nname = "one"\n---\n{QUERY}\n')
    states: list[dict[str, Any]] = []
    tell = LivePage.tell
    monkeypatch.setattr(LivePage, "tell", lambda page, progress: (tell(page, progress), states.append(state_of(page))))
    monkeypatch.setattr(live_page, "PARTING", 0.05)
    args = ["follow", "--rules", "rules", "in", "--state", "s", "--output", "o", "--end", "--serve"]
    assert main(args) == 0
    assert states[-1]["query"] == "the rules in rules"
    assert "one" in states[-1]["matches"]["rows"][0][1]


@pytest.mark.long
def test_nothing_of_a_server_is_loaded_unless_it_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "events.csv").write_text(CSV)
    code = (
        "import sys\nfrom acep.cli import main\n"
        f"main(['replay', {QUERY!r}, 'events.csv', '--count', '--no-progress'])\n"
        "print(*[name for name in sys.modules if name.startswith(('http', 'acep.serving'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[1:] in ([""], ["acep.serving acep.serving.pausing"])


def test_commands_reach_a_page_that_nobody_pauses_for() -> None:
    with LivePage() as page:
        command(page, "stop")
        assert in_time(lambda: page.take_key(0) == "q")
