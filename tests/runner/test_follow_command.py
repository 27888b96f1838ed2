"""`acep follow`: what it writes, what it says on stderr, and how it ends."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import acep.cli
from tests.runner.streams import fast_disk, put


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder in which the command runs, with a folder of events."""
    monkeypatch.chdir(tmp_path)
    put(tmp_path / "in", "1.csv", "ts,type,k\n1,a,u\n2,b,u\n9,a,v\n")
    with fast_disk():
        yield tmp_path


def follow(*args: str, query: str = "re:ab") -> int:
    """Run the command over the folder `in`."""
    given = ["--within", "5"] if query == "re:ab" else []
    return acep.cli.main(["follow", query, "in", "--state", "state", "--output", "out", *given, *args])


def test_lines_of_json_and_a_line_for_each_micro_batch(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    assert follow("--once") == 0
    put(folder / "in", "2.csv", "ts,type,k\n10,b,v\n")
    assert follow("--end") == 0
    files = sorted((folder / "out").iterdir())
    assert [file.name for file in files] == ["000000000.jsonl", "000000001.jsonl"]
    assert [json.loads(file.read_text())["bindings"] for file in files] == [{"a": [0], "b": [1]}, {"a": [2], "b": [3]}]
    out, err = capsys.readouterr()
    lines = err.splitlines()
    assert out == ""
    assert lines[0].startswith("micro-batch 0: 3 events")
    assert "1 held" in lines[0]
    assert "1 match," in lines[0]
    assert "lag 0 s" in lines[0]
    assert "1 micro-batch in" in lines[1]
    assert lines[1].endswith("the stream goes on")
    assert lines[2] == "in all 3 events, 1 match"
    assert lines[4].startswith("micro-batch 1: 4 events")
    assert lines[5].endswith("the stream has ended")
    assert lines[6:] == ["in all 4 events, 2 matches", lines[7]]
    assert "nothing was shed" in lines[7]


@pytest.mark.parametrize(("kind", "heads"), [("points", ["point", "best"]), ("count", ["count"])])
def test_other_outputs_and_formats(kind: str, heads: list[str], folder: Path) -> None:
    assert follow("--end", f"--{kind}", "--output-format", "parquet", "--by", "k") == 0
    (file,) = (folder / "out").iterdir()
    table = pq.read_table(file)
    assert table.column_names == (["key", *heads] if kind == "points" else heads)
    assert table.num_rows == 1


def test_a_table_of_values(folder: Path) -> None:
    assert follow("--end", "--output-format", "csv", "--type", "type", "--by", "k") == 0
    (file,) = (folder / "out").iterdir()
    assert file.read_text() == 'key.k,start,end,error,bindings,bundle\nu,1,2,0,"{""a"": [0], ""b"": [1]}",2\n'


def test_late_events_and_bad_lines_are_said(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    put(folder / "in", "2.csv", "ts,type,k\n3,b,u\noh\n8,b,u\n")
    assert follow("--end", "--skip-bad-lines", "--watermark", "2", "--max-files", "1") == 2
    assert "1 of 3 lines cannot be read" in capsys.readouterr().err
    assert follow("--end", "--skip-bad-lines", "--max-skipped", "34%", "--watermark", "2", "--max-files", "1") == 0
    err = capsys.readouterr().err
    assert "1 event came too late" in err
    assert "1 bad line was skipped" in err


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--output-format", "xml"], "there is no format 'xml' of results"),
        (["--max-files", "0"], "--max-files 0 is not a positive number"),
        (["--poll", "0"], "--poll 0.0 is not a positive number"),
        (["--watermark", "10 minutes"], "--watermark '10 minutes' needs to know how long a tick"),
        (["--watermark", "soon", "--unit", "s"], "--watermark soon is no span of time"),
        (["--ts", "when"], "there is no column `when`"),
        (["--cast", "x"], "--cast x is no cast"),
        (["--recover", "--work", "3"], "is not for streams in buckets"),
    ],
)
def test_a_mistake_is_one_line(args: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert follow("--once", *args) == 2
    err = capsys.readouterr().err
    assert err.startswith("acep: ")
    assert said in err
    assert all(line.startswith(("acep: ", "hint: ")) for line in err.splitlines())


def test_another_query_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert follow("--once") == 0
    assert follow("--once", query="PATTERN SEQ(a x, b y) WITHIN 3") == 2
    assert "was made with another query" in capsys.readouterr().err


@pytest.mark.long
def test_it_follows_until_it_is_interrupted(folder: Path) -> None:
    command = [sys.executable, "-m", "acep", "follow", "re:ab", "in", "--within", "5", "--state", "state"]
    # A background process of a shell ignores interrupts, and so do all that it starts.
    hears = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    command += ["--output", "out", "--poll", "0.02"]
    run = subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True, preexec_fn=hears)  # noqa: PLW1509
    try:
        for name, rows, many in (("", "", 1), ("2.csv", "ts,type,k\n10,b,u\n20,x,u\n", 2)):
            if name:
                put(folder / "in", name, rows)
            until = time.monotonic() + 60
            while len(list((folder / "out").glob("0*.jsonl"))) < many:
                assert run.poll() is None
                assert time.monotonic() < until
                time.sleep(0.02)
        run.send_signal(signal.SIGINT)
        _, err = run.communicate(timeout=60)
    finally:
        run.kill()
        run.communicate()
    assert run.returncode == 130
    assert err.splitlines()[-1] == "acep: interrupted"
    assert "Traceback" not in err
