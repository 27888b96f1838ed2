"""Events that come twice, and options that need others, on the command line and in Python: left out, or refused with
file and line."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import acep
from acep.cli import main
from acep.tuning.many import why_many

COMMANDS = [["match"], ["why"], ["why", "--many"], ["tune"], ["learn", "--output", "h.acep"]]
LEFT_OUT = "acep: 2 rows were left out, as events with their ids had come before\n"
QUERY = acep.regex("ab", within=5)
FUNCTIONS: list[Callable[..., Any]] = [acep.why, acep.tune, acep.learn, why_many, acep.lint]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which the test runs: rows that come twice, and others that are not in order."""
    monkeypatch.chdir(tmp_path)
    Path("d.csv").write_text("ts,type,n\n1,a,1\n2,b,2\n2,b,2\n3,b,3\n1,a,1\n")
    Path("first.csv").write_text("ts,type,n\n9,a,7\n")
    Path("s.csv").write_text("ts,type,n\n5,a,1\n1,b,2\n3,b,3\n2,a,2\n")
    return tmp_path


@pytest.mark.parametrize("command", [*COMMANDS, ["lint"]], ids=" ".join)
def test_each_command_leaves_duplicates_out(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    name, *more = command
    assert main([name, "re:ab", "d.csv", "--within", "5", "--id", "n", "--duplicates", "drop", *more]) == 0
    assert LEFT_OUT in capsys.readouterr().err
    assert main([name, "re:ab", "d.csv", "--within", "5", "--duplicates", "drop", *more]) == 2
    assert "--duplicates drop knows events by their ids" in capsys.readouterr().err


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_each_command_names_the_file_and_the_line(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    name, *more = command
    assert main([name, "re:ab", "first.csv", "s.csv", "--within", "5", "--id", "n", *more]) == 2
    assert "acep: `s.csv`, line 5: the id 2 of column `n` came before" in capsys.readouterr().err


@pytest.mark.parametrize("files", [["s.csv"], ["first.csv", "s.csv"]], ids=len)
def test_a_replay_names_the_file_and_the_line(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Before Spark begins."""
    pytest.importorskip("pyspark")
    assert main(["replay", "re:ab", *files, "--within", "5", "--id", "n"]) == 2
    assert "`s.csv`, line 5: the id 2 of column `n` came before" in capsys.readouterr().err.replace(
        f"{Path.cwd()}/", ""
    )


@pytest.mark.parametrize("function", FUNCTIONS)
def test_each_function_drops_or_refuses(function: Callable[..., Any]) -> None:
    rows = {"ts": [5, 1, 3, 2], "type": list("abba"), "n": [1, 2, 3, 2]}
    function(rows, QUERY, id="n", duplicates="drop")
    function("s.csv", QUERY, id="n", duplicates="drop")
    with pytest.raises(acep.QueryError, match="says nothing of events that come twice"):
        function(rows, QUERY, id="n", duplicates="keep")
    if function is acep.lint:
        assert "id_twice" in acep.lint(rows, QUERY, id="n").codes
        assert "id_twice" not in acep.lint(rows, QUERY, id="n", duplicates="drop").codes
        return
    with pytest.raises(acep.DataError, match=r"row 3 \(rows count from 0\): the id 2 of column `n` came before"):
        function(rows, QUERY, id="n")
    with pytest.raises(acep.DataError, match=r"`s\.csv`, line 5: the id 2 of column `n` came before"):
        function("s.csv", QUERY, id="n")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--speed 2", "only --cpu goes by it"),
        ("--work 5 --speed 2", "only --cpu goes by it"),
        ("--max-skipped 1", "give --skip-bad-lines too"),
        ("--seed 3", "--seed serves a run under a budget"),
        ("--weights a=2", "allow some: --errors K"),
        ("--work 3 --recover 2", "hint: --recover, or a share less than 1, such as --recover 0.25"),
    ],
)
def test_options_need_others(options: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["match", "re:ab", "d.csv", "--within", "5", *options.split()]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_a_name_that_is_not_utf8(suffix: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = pa.table({"ts": [1, 2], "type": ["a", "b"]})
    texts = {"csv": "ts,type\n1,a\n2,b\n", "jsonl": '{"ts": 1, "type": "a"}\n{"ts": 2, "type": "b"}\n'}
    (folder / "in").mkdir()
    plain, name = folder / "plain", folder / "in" / os.fsdecode(b"\xff." + suffix.encode())
    if suffix == "parquet":
        pq.write_table(table, plain)
    else:
        plain.write_text(texts[suffix])
    try:
        plain.rename(name)
    except OSError:
        pytest.skip("this file system has names in UTF-8 only")
    for events in (str(name), "in"):
        assert main(["match", "re:ab", events, "--within", "5", "--count"]) == 0
        assert capsys.readouterr().out == "1\n"
    follow = ["follow", "re:ab", "in", "--within", "5", "--state", "state", "--output", "out", "--end"]
    assert main(follow) == 0
    assert "in all 2 events, 1 match" in capsys.readouterr().err


def test_a_bound_on_memory_names_what_keeps_none(capsys: pytest.CaptureFixture[str]) -> None:
    query = "PATTERN SEQ(a p, b q) WITHIN 30 RETURN q.n AS z"
    assert main(["match", query, "d.csv", "--memory", "16MB"]) == 2
    assert "is not kept by queries with negations, HAVING, RETURN or a choice" in capsys.readouterr().err
