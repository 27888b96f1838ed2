"""The command line over files of every kind: several, packed, piped, unsorted, too large, cast, and with bad lines."""

from __future__ import annotations

import gzip
import io
import json
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import acep
from acep.cli import main
from acep.events.files import survey, text_bytes
from acep.following.replayed_events import record_events, with_order
from acep.native.compiled import why_not
from acep.runtime.options import StreamOptions
from acep.spark import chunks

LETTERS = "ts,type\n1,a\n2,x\n4,d\n5,b\n"
core = pytest.mark.skipif(why_not() is not None, reason="the native core is not installed")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with events, in which the test runs."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "letters.csv").write_text(LETTERS)
    return tmp_path


def said(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[str, str]:
    """What a command line that succeeds prints, and says on stderr."""
    assert main(["match", *args]) == 0
    return capsys.readouterr()


def test_python_runs_the_package() -> None:
    command = [sys.executable, "-m", "acep", "match", "re:ad", "letters.csv", "--within", "5", "--count"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "1\n", "")


def test_several_files_are_one_stream(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    Path("day").mkdir()
    Path("day/2.ndjson").write_text('{"ts": 6, "type": "a"}\n{"ts": 7, "type": "d"}\n')
    Path("day/1.csv.gz").write_bytes(gzip.compress(LETTERS.encode()))
    ids = [json.loads(line)["bindings"] for line in said(capsys, "re:ad", "day", "--within", "5")[0].splitlines()]
    assert ids == [{"a": [0], "d": [2]}, {"a": [4], "d": [5]}]
    assert said(capsys, "re:ad", "letters.csv", "day/2*", "--within", "5", "--count") == ("2\n", "")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(LETTERS.encode())))
    assert said(capsys, "re:ad", "-", "--format", "csv", "--within", "5", "--count") == ("1\n", "")


@pytest.mark.parametrize("kind", ["--points", "--bundles", "--count", "--exists", "--limit=1", "--output=o.parquet"])
def test_an_unsorted_file_too_large_for_memory(
    kind: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [f"{ts},{'ab'[ts % 2]}\n" for ts in range(200)]
    Path("u.csv").write_text("ts,type\n" + "".join(rows[100:] + rows[:100]))
    small, err = said(capsys, "re:ab", "u.csv", "--within", "3", kind)
    assert err == ""
    table = pq.read_table("o.parquet") if "parquet" in kind else None
    monkeypatch.setattr(survey, "SMALL", 1)
    large, err = said(capsys, "re:ab", "u.csv", "--within", "3", kind)
    assert large == small
    assert err == "acep: row 100 is older than one before it: the events are sorted on disk\n"
    if table is not None:
        assert pq.read_table("o.parquet").equals(table)


def test_outputs_that_are_no_plain_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys, "re:ad", "letters.csv", "--within", "5", "--output", "/dev/null") == ("", "")
    assert said(capsys, "re:ad", "letters.csv", "--within", "5", "--output", "o.json") == ("", "")
    assert json.loads(Path("o.json").read_text())["bindings"] == {"a": [0], "d": [2]}


def test_zip_codes_are_two_keys(capsys: pytest.CaptureFixture[str]) -> None:
    Path("z.csv").write_text("ts,type,zip\n1,a,01234\n2,b,1234\n")
    ask = ("re:ab", "z.csv", "--within", "5", "--by", "zip", "--count")
    assert said(capsys, *ask) == ("0\n", "")
    assert said(capsys, *ask, "--cast", "zip=int") == ("1\n", "")


@pytest.mark.parametrize("command", ["match", "lint", "why"])
def test_a_cast_of_times_to_texts_is_refused_as_such(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("x.csv").write_text("ts,type\n1,a\n2,b\n")
    assert main([command, "PATTERN SEQ(a x, b y) WITHIN 5", "x.csv", "--cast", "ts=string"]) != 0
    message = capsys.readouterr().err
    assert "must hold integers, timestamps or dates, and it is cast to string" in message
    assert "--cast ts=timestamp" in message
    assert "pandas" not in message


def test_casts_and_streams_without_types(capsys: pytest.CaptureFixture[str]) -> None:
    Path("e.csv").write_text("ts,type\n0.5,7\n2.25,8\n")
    query = "PATTERN SEQ(ANY a, ANY b) WITHIN 2 seconds RETURN b.type AS t"
    out, err = said(capsys, query, "e.csv", "--cast", "ts=timestamp", "--unit", "s", "--cast", "type=string")
    assert (json.loads(out)["start"], json.loads(out)["values"], err) == ("1970-01-01T00:00:00.500000", {"t": "8"}, "")
    Path("n.jsonl").write_text('{"ts": 1, "type": 7}\n{"ts": 2, "type": 8}\n')
    plain = "PATTERN SEQ(ANY a, ANY b) WITHIN 2"
    assert said(capsys, plain, "n.jsonl", "--type", "none", "--count") == ("1\n", "")
    assert main(["match", plain, "n.jsonl"]) == 2
    assert "--cast type=string" in capsys.readouterr().err
    for wrong in ("ts", "ts=", "=int", "ts=week"):
        assert main(["match", plain, "n.jsonl", "--cast", wrong]) == 2
        assert capsys.readouterr().err.startswith("acep: ")


def test_bad_lines_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    Path("b.csv").write_text(LETTERS + "6\n7,a,b\n")
    assert main(["match", "re:ad", "b.csv", "--within", "5"]) == 2
    assert "line 6 has 1 cell" in capsys.readouterr().err
    ask = ("re:ad", "b.csv", "--within", "5", "--count", "--skip-bad-lines")
    assert main(["match", *ask]) == 2
    assert capsys.readouterr().err == (
        "acep: 2 of 6 lines cannot be read, and a share of 0.01 may be skipped; the first: `b.csv`, line 6 has 1 cell,"
        " the header 2 [data_value]\nhint: mend them, or say how many there may be: --max-skipped 0.34\n"
    )
    out, err = said(capsys, *ask, "--max-skipped", "34%")
    assert (out, err) == ("1\n", "2 bad lines were skipped; the first: `b.csv`, line 6 has 1 cell, the header 2\n")


@core
def test_bounds_that_never_bind_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    Path("m.csv").write_text("ts,type\n2024-01-01T00:00:00,a\n2024-03-01T00:00:00,b\n")
    ask = ("re:ab", "m.csv", "--within", "none", "--count")
    assert "--cpu 0.5 never bound: by their clock the events take 5,184,000 s" in said(capsys, *ask, "--cpu", "0.5")[1]
    assert "never bound" not in said(capsys, *ask, "--cpu", "0.5", "--speed", "1e9")[1]
    assert "replays them as fast" not in said(capsys, *ask, "--cpu", "0.5")[1]  # in a time too short to know it
    assert "--latency 1000 never bound" in said(capsys, *ask, "--latency", "1000")[1]
    assert "can never bind" in said(capsys, *ask, "--memory", "9000T")[1]


def test_python_takes_paths() -> None:
    query = acep.regex("ad", within=5)
    assert acep.match("letters.csv", query).count() == 1
    assert acep.match([Path("letters.csv")], query, output="count") == 1
    assert acep.read_events("letters.csv").num_rows == 4
    with pytest.raises(acep.DataError, match="there is no file"):
        acep.match("other.csv", query)


@core
def test_a_history_is_learned_of_files() -> None:
    Path("many.csv").write_text("ts,type\n" + "".join(f"{i},{'abxx'[i % 4]}\n" for i in range(400)))
    query = acep.regex("ab", within=5)
    assert acep.learn("many.csv", query) == acep.learn(acep.read_events("many.csv"), query)


@pytest.mark.parametrize("name", ["empty.csv", "empty.jsonl", "header.csv", "header.tsv"])
@pytest.mark.parametrize("command", ["match", "lint", "why", "tune", "explain", "learn"])
def test_a_file_without_events_is_no_mistake(capsys: pytest.CaptureFixture[str], name: str, command: str) -> None:
    Path(name).write_text("" if name.startswith("empty") else "ts\ttype\n" if name.endswith("tsv") else "ts,type\n")
    query = "PATTERN SEQ(a x, b y) WITHIN 5"
    more = {"explain": ["--events", name], "learn": [name, "--output", "history"]}.get(command, [name])
    assert main([command, query, *more]) == 0
    assert "error" not in capsys.readouterr().err


@pytest.mark.parametrize("name", ["empty.csv", "header.csv"])
@pytest.mark.parametrize("within", ["5", "5 s", "5 EVENTS"])
def test_a_file_without_events_is_replayed(name: str, within: str) -> None:
    Path(name).write_text("" if name == "empty.csv" else "ts,type,x\n")
    query = acep.parse(f"PATTERN SEQ(a x, b y) WHERE x.v < y.w.z WITHIN {within}") if name == "empty.csv" else None
    query = query or acep.parse(f"PATTERN SEQ(a x, b y) WHERE x.x = y.x WITHIN {within}")
    done = acep.replay(query, name)
    assert (done.events, done.matches, done.table().num_rows) == (0, 0, 0)
    # Without Spark: the table that is replayed there has types that Spark has.
    recorded = record_events(query, name, StreamOptions(), chunk=None, watermark=None, latest=None, versions=None)
    assert with_order(chunks.for_spark(recorded.table), recorded.schema, sort=True).num_rows == 0


@pytest.mark.filterwarnings("always::acep.errors.DataWarning")
@pytest.mark.parametrize("command", [["why", "--many"], ["tune"]])
def test_what_is_wrong_with_a_column_that_is_not_used_stops_nothing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    """These look at all columns, if they can."""
    Path("mixed.jsonl").write_text('{"ts":1,"type":"a","u":1}\n{"ts":2,"type":"b","u":"x"}\n')
    assert main([*command, "PATTERN SEQ(a x, b y) WITHIN 5", "mixed.jsonl"]) == 0
    err = capsys.readouterr().err
    assert "warning: only the columns that the query names are read: `mixed.jsonl`, line 2: `u` is text" in err
    monkeypatch.setattr(text_bytes, "SMALL", 1 << 20)
    with Path("wide.jsonl").open("w") as file:
        file.writelines(json.dumps({"ts": i, "type": "ab"[i % 2], f"k{i}": i}) + "\n" for i in range(2_000))
    assert main([*command, "PATTERN SEQ(a x, b y) WITHIN 5", "wide.jsonl", "--max-expansion", "10"]) == 0
    assert "more than 1 MB when it is read" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["match", "lint", "why", "tune", "explain"])
def test_every_command_asks_of_lists(capsys: pytest.CaptureFixture[str], command: str) -> None:
    rows = [{"ts": i, "type": "ab"[i], "event": {"n": 1, "tags": ["x", "y"][: i + 1]}} for i in range(2)]
    Path("list.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    query = (
        "PATTERN SEQ(a x, b y) WHERE contains(y.event.tags, 'y') AND x.event.tags[1] = 'x' AND x.event.n = 1 WITHIN 5 "
        "RETURN CAST(y.event.tags AS text) AS tags"
    )
    assert main([command, query, *(["--events"] if command == "explain" else []), "list.jsonl"]) == 0
    assert "error" not in capsys.readouterr().out.replace("error budget", "").replace('"error"', "").replace(
        "errors", ""
    )
