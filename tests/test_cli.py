"""The command line: what it prints, what it says of bad input, and with which exit status."""

from __future__ import annotations

import ast
import json
import os
import re
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import acep
from acep.cli import main
from acep.cli.spelling import OPTIONS, as_typed
from acep.native.compiled import why_not
from tests.source_trees import ParsedFile, read_once, whole_source

CSV = """\
ts,type,symbol,price
1,Stock,AAPL,10
2,Stock,MSFT,7
3,Stock,AAPL,11
4,Stock,MSFT,6
9,News,AAPL,
9,Stock,AAPL,4
"""
QUERY = """\
PATTERN SEQ(Stock+ a[], Stock b)
WHERE skip_till_next_match(a[], b) { [symbol] AND a[1].price = 10 AND a[i].price > a[i-1].price
                                     AND b.price < 80% * a[a.LEN].price }
WITHIN 100
"""
LINE = (
    '{"key": {"symbol": "AAPL"}, "start": 1, "end": 9, "error": 0, "bindings": {"a": [0, 2], "b": [5]}, "bundle": 9}\n'
)
LETTERS = "ts,type\n1,a\n2,x\n4,d\n5,b\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a query and events, in which the test runs."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "events.csv").write_text(CSV)
    (tmp_path / "letters.csv").write_text(LETTERS)
    (tmp_path / "query.acep").write_text(QUERY)
    return tmp_path


def run(*args: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """The command line in a process of its own."""
    command = [sys.executable, "-W", "error", "-m", "acep.cli", *args]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, **options)


# What is printed ---------------------------------------------------------------------------------


@pytest.mark.parametrize("query", ["query.acep", QUERY])
def test_a_match_is_a_line(query: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["match", query, "events.csv"]) == 0
    assert capsys.readouterr() == (LINE, "")


@pytest.mark.parametrize("what", ["--points", "--bundles", "--work=5", "--latency=1", "--count", "--output=none.csv"])
def test_a_header_without_rows_is_a_stream_without_events(what: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("header.csv").write_text("ts,type,x,k\n")
    query = "PATTERN SEQ(a p, b q) WHERE skip_till_any_match { [k] AND q.x > p.x } WITHIN 5 seconds RETURN q.x AS x"
    assert main(["match", query, "header.csv", what]) == 0
    assert capsys.readouterr().out == ("0\n" if what == "--count" else "")
    assert main(["match", query.replace("x >", "y >"), "header.csv", what]) == 2
    assert "unknown column `y`" in capsys.readouterr().err


def test_memory_is_bound_by_a_size(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["match", QUERY, "events.csv", "--memory", "8M"]) == 0
    out, err = capsys.readouterr()
    assert out == LINE
    assert "MB held; exact: nothing was shed" in err
    assert main(["match", QUERY, "events.csv", "--memory", "8 pages"]) == 2
    assert "no size" in capsys.readouterr().err


def test_a_process_of_its_own() -> None:
    done = run("match", "query.acep", "events.csv")
    assert (done.returncode, done.stdout, done.stderr) == (0, LINE, "")


@pytest.mark.parametrize("suffix", ["parquet", "jsonl"])
def test_every_kind_of_file(suffix: str, capsys: pytest.CaptureFixture[str]) -> None:
    from acep import read_events

    table = read_events("events.csv")
    if suffix == "parquet":
        pq.write_table(table, "e.parquet")
    else:
        Path("e.jsonl").write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
    assert main(["match", "query.acep", f"e.{suffix}"]) == 0
    assert capsys.readouterr().out == LINE


@pytest.mark.skipif(why_not() is not None, reason="only the native core runs in several threads")
@pytest.mark.parametrize("what", ["", "--points", "--bundles", "--count", "--exists"])
def test_threads_write_the_same(what: str, capsys: pytest.CaptureFixture[str]) -> None:
    size = 70_000
    columns = {"ts": range(size), "type": ["A", "B", "A", "C"] * (size // 4), "k": [n * 31 % 97 for n in range(size)]}
    pq.write_table(pa.table(columns), "many.parquet")
    keyed = "PATTERN SEQ(A a, B b) WHERE skip_till_any_match(a, b) { [k] AND b.ts > a.ts } WITHIN 400"
    options = [what] if what else []
    assert main(["match", keyed, "many.parquet", *options]) == 0
    out, err = capsys.readouterr()
    assert out.count("\n") >= 97 or what in ("--count", "--exists")
    assert err == ""
    for threads in ("1", "3", "all"):
        assert main(["match", keyed, "many.parquet", "--threads", threads, *options]) == 0
        assert capsys.readouterr().out == out


def test_why_there_is_one_thread_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["match", "PATTERN SEQ(Stock a, News b) WITHIN 3 events", "events.csv", "--threads", "4"]) == 0
    out, err = capsys.readouterr()
    assert out.count("\n") > 0
    assert err.startswith("acep: matched by 1 thread, and not more: ")
    assert main(["match", QUERY, "events.csv", "--threads", "0"]) == 2
    assert "threads=0 is no number of threads" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["match", QUERY, "events.csv", "--threads", "many"])
    assert "'many' is not a number" in capsys.readouterr().err


def test_nothing_found_is_no_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["match", "re:abb", "letters.csv", "--within", "1"]) == 0
    assert capsys.readouterr() == ("", "")
    Path("none.csv").write_text("ts,type,symbol,price\n")
    assert main(["match", "query.acep", "none.csv"]) == 0
    assert main(["match", "query.acep", "none.csv", "--count"]) == 0
    assert capsys.readouterr() == ("0\n", "")


@pytest.mark.parametrize(
    ("options", "printed"),
    [
        (["--count"], "2\n"),
        (["--exists"], "true\n"),
        (["--bundles", "--no-counts"], '{"key": {}, "start": 4, "end": 5, "best": 0}\n'),
        (
            ["--bundles"],
            '{"key": {}, "start": 4, "end": 5, "matches": 2, "best": 0}\n',
        ),
        (["--points"], '{"key": {}, "point": 4, "best": 0}\n{"key": {}, "point": 5, "best": 0}\n'),
        (["--bundles", "--limit", "0"], ""),
    ],
)
def test_other_kinds_of_output(options: list[str], printed: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["match", "re:ad|db", "letters.csv", "--within", "5", *options]) == 0
    assert capsys.readouterr().out == printed


@pytest.mark.skipif(why_not() is not None, reason="a budget needs the native core")
@pytest.mark.parametrize("tied", [True, False], ids=["tied", "free"])
def test_what_is_printed_agrees_with_what_is_told_of_it(tied: bool, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [f"{ts},{'abc'[ts * 7919 % 101 % 3]},{ts * 31 % 97}" for ts in range(600)]
    Path("many.csv").write_text("\n".join(["ts,type,x", *rows]) + "\n")
    text = "PATTERN SEQ(a p, b q, c s) WHERE skip_till_any_match(p, q, s) {0} WITHIN 20"
    args = ["match", text.replace("{0}", "{ q.x > p.x AND s.x > q.x }" if tied else ""), "many.csv"]

    def told(*options: str) -> tuple[list[str], str]:
        assert main([*args, *options]) == 0
        out, err = capsys.readouterr()
        return out.splitlines(), err

    for bound, exact in (("1000", True), ("0.05", False)):
        for option in ("--count", "--points", "--bundles", "--no-limit"):
            options = [] if option == "--no-limit" else [option]
            lines, err = told(*options, "--work", bound)
            assert ("exact: nothing was shed" in err) == exact
            assert ("\nnot exact: " in err) != exact
            number = int(lines[0]) if option == "--count" else len(lines)  # a plain number, whatever is missing
            least = "" if exact else "at least "
            name = {"--points": f"{least}{number:,} match point", "--bundles": f"{number:,} match bundle"}.get(option)
            assert f"600 events, {name or f'{least}{number:,} match'}" in err, (err, option)
            if option == "--bundles":
                matches = sum(json.loads(line)["matches"] for line in lines)
                assert f", {least}{matches:,} matches" in err
    assert told("--count")[1] == ""


def test_limit(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["match", "re:a(b|c)db", "letters.csv", "--within", "5", "--errors", "3"]
    assert main(arguments) == 0
    whole = capsys.readouterr().out.splitlines()
    assert len(whole) > 2
    assert main([*arguments, "--limit", "2"]) == 0
    assert capsys.readouterr().out.splitlines() == whole[:2]


@pytest.mark.parametrize(
    ("options", "bindings"),
    [
        (["--errors", "1", "--weights", "b=0.5,c=inf"], {"a": [0], "d": [2], "b": [3]}),
        (["--errors", "1/2", "--weights", "b=0.5"], {"a": [0], "d": [2], "b": [3]}),
        (["--errors", "2", "--strategy", "strict_contiguity"], {"a": [0], "d": [2], "b": [3]}),
    ],
)
def test_options_of_letter_expressions(
    options: list[str], bindings: dict[str, list[int]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["match", "re:a(b|c)db", "letters.csv", "--within", "5", *options]) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert bindings in [match["bindings"] for match in found]


def test_surplus_events_have_a_weight_where_it_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    Path("gap.csv").write_text("ts,type\n1,a\n2,x\n3,b\n")
    arguments = ["match", "re:ab", "gap.csv", "--within", "none", "--strategy", "strict_contiguity", "--errors", "1/2"]

    def found(*options: str) -> list[Any]:
        assert main([*arguments, *options]) == 0
        return [json.loads(line)["bindings"] for line in capsys.readouterr().out.splitlines()]

    assert found() == found("--surplus", "1") == found("--surplus", "inf") == []
    assert found("--surplus", "0.5") == [{"a": [0], "b": [2]}]


def test_parameters(capsys: pytest.CaptureFixture[str]) -> None:
    Path("e.csv").write_text("ts,type,x,s\n1,A,1,it's\n2,A,2,B\n3,B,3,C\n")
    text = "PATTERN SEQ(A a, B b) WHERE a.x >= :least AND a.s IN :names WITHIN :w"

    def found(*options: str) -> list[Any]:
        assert main(["match", text, "e.csv", *options]) == 0
        return [json.loads(line)["bindings"]["a"] for line in capsys.readouterr().out.splitlines()]

    assert found("--set", "least=1", "--set", "names=('it''s', B)", "--set", "w=5") == [[0], [1]]
    assert found("--set", "least=2", "--set", "names=('it''s', B)", "--set", "w=5") == [[1]]
    assert found("--set", "least=1", "--set", "names=it's", "--set", "w=5") == [[0]]
    for options, message in (
        (["--set", "least=1"], "`:names` has no value [query_name] (line 1, column 54)"),
        (["--set", "least=1", "--set", "leest=1"], "`:names` has no value"),
        (["--set", "least=1", "--set", "least=2"], "--set gives `least` twice"),
        (["--set", "least"], "--set least: no value"),
    ):
        assert main(["match", text, "e.csv", *options]) == 2
        assert message in capsys.readouterr().err
    assert main(["match", "PATTERN A a WHERE a.x > :least", "e.csv"]) == 2
    assert "hint: give it one: --set least=3" in capsys.readouterr().err
    assert main(["match", "re:ab", "e.csv", "--within", "5", "--set", "x=1"]) == 2
    assert "--set is not for letter expressions" in capsys.readouterr().err


def test_by_and_a_window_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    Path("e.csv").write_text(
        "when,kind,user,id\n2024-01-01T10:00:00,a,u,e1\n2024-01-01T10:00:01,b,v,e2\n2024-01-01T10:30:00.5,b,u,e3\n"
    )
    columns = ["--ts", "when", "--type", "kind", "--id", "id"]
    assert main(["match", "re:ab", "e.csv", "--within", "1 hour", "--by", "user", *columns]) == 0
    assert capsys.readouterr().out == (
        '{"key": {"user": "u"}, "start": "2024-01-01T10:00:00", "end": "2024-01-01T10:30:00.500000", "error": 0, '
        '"bindings": {"a": ["e1"], "b": ["e3"]}, "bundle": "2024-01-01T10:30:00.500000"}\n'
    )
    assert main(["match", "re:ab", "e.csv", "--within", "none", *columns, "--count"]) == 0
    assert capsys.readouterr().out == "2\n"


def test_the_unit_of_an_integer_time(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["match", "re:ad", "letters.csv", "--within", "2 min", "--count", "--unit"]
    assert main([*arguments, "min"]) == 0
    assert main([*arguments, "s"]) == 0
    assert capsys.readouterr().out == "0\n1\n"


def test_a_query_in_a_file_may_be_a_letter_expression(capsys: pytest.CaptureFixture[str]) -> None:
    Path("q.txt").write_text("re:ad\n")
    assert main(["match", "q.txt", "letters.csv", "--within", "5", "--count"]) == 0
    assert capsys.readouterr().out == "1\n"


def test_output_files(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("m.jsonl", "m.parquet", "m.csv"):
        assert main(["match", "query.acep", "events.csv", "--output", name]) == 0
    assert main(["match", "query.acep", "events.csv", "--bundles", "--output", "b.parquet"]) == 0
    assert main(["match", "query.acep", "events.csv", "--points", "--output", "p.csv"]) == 0
    assert capsys.readouterr() == ("", "")
    assert Path("m.jsonl").read_text() == LINE
    assert pq.read_table("m.parquet").column("start").to_pylist() == [1]
    assert Path("m.csv").read_text().startswith("key.symbol,start,end,")
    assert pq.read_table("b.parquet").to_pylist() == [
        {"key": {"symbol": "AAPL"}, "start": 9, "end": 9, "matches": 1, "best": 0}
    ]
    assert Path("p.csv").read_text() == "key.symbol,point,best\nAAPL,9,0\n"


# Bad input ---------------------------------------------------------------------------------------

BAD_QUERY = "PATTERN SEQ(Stock a, Stock b WITHIN 5"
MISTAKES: list[tuple[list[str], str]] = [
    (["match", BAD_QUERY, "events.csv"], "line 1, column"),
    (["match", QUERY.replace("price", "pirce"), "events.csv"], "unknown column `pirce` [query_name] (line 2, column"),
    (["match", QUERY.replace("[symbol]", "[simbol]"), "events.csv"], "did you mean `symbol`?"),
    (["match", QUERY.replace("= 10", "= 'ten'"), "events.csv"], "an int cannot be compared with a string"),
    (["match", "query.acep", "nulls.csv"], "`nulls.csv`, line 3: `ts` is null"),
    (["match", "query.acep", "cut.parquet"], "`cut.parquet` is not a whole Parquet file"),
    (["match", "query.acep", "ragged.csv"], "line 3 has 1 cell, the header 2"),
    (["match", "query.acep", "broken.jsonl"], "line 2, column"),
    (["match", "query.acep", "event.csv"], "did you mean `events.csv`"),
    (["match", "query.acep", "events.xml"], "not named like a file of events"),
    (["match", "query.acep", "float.csv"], "`float.csv`, line 2: `ts` is '1.5', which is not written as an integer"),
    (["match", "query.acep", "words.csv"], "`words.csv`, line 2: `ts` is not a time"),
    (["match", "query.acep", "events.csv", "--ts", "time"], "there is no column `time`"),
    (["match", "query.acep", "events.csv", "--id", "idd"], "there is no column `idd`"),
    (["match", "query.acep", "events.csv", "--id", "symbol"], "the id 'AAPL' of column `symbol` came before"),
    (["match", "query.acep", "events.csv", "--unit", "week"], "--unit week is not a unit of time"),
    (["match", "query.acep", "events.csv", "--engine", "fast"], "there is no engine 'fast'"),
    (["match", "query.acep", "events.csv", "--output", "x.xls"], "no format of output is named like `x.xls`"),
    (["match", "query.acep", "events.csv", "--output", "no/x.csv"], "`no/x.csv` cannot be written"),
    (["match", "query.acep", "events.csv", "--count", "--limit", "3"], "--count prints one number"),
    (["match", "query.acep", "events.csv", "--exists", "--output", "x.csv"], "--exists prints true or false"),
    (["match", "query.acep", "events.csv", "--no-counts"], "--no-counts is about the matches of bundles"),
    (["match", "query.acep", "events.csv", "--errors", "few"], "--errors few is not a number of errors"),
    (["match", "query.acep", "events.csv", "--errors", "-1"], "--errors -1 is not a number of errors"),
    (["match", "query.acep", "events.csv", "--weights", "a"], "--weights a: `a` is no weight"),
    (["match", "query.acep", "events.csv", "--weights", "z=2"], "unknown variable `z`"),
    (["match", "query.acep", "events.csv", "--surplus", "0"], "--surplus 0 is no weight"),
    (["match", "query.acep", "events.csv", "--errors", "1", "--surplus", "1"], "--surplus is for contiguity"),
    (
        ["match", "re:ab", "letters.csv", "--within", "5", "--strategy", "strict_contiguity", "--surplus", "1"],
        "--surplus says what an event costs of the error budget, and there is none",
    ),
    (["match", "query.acep", "events.csv", "--within", "5"], "--within is for letter expressions"),
    (["match", "missing.acep", "events.csv"], "there is no file `missing.acep`"),
    (["match", "cut.parquet", "events.csv"], "is a file of events, not a query"),
    (["match", "re:a(b", "letters.csv", "--within", "5"], "line 1, column"),
    (["match", "re:ab", "letters.csv"], "needs --within"),
    (["match", "re:ab", "letters.csv", "--within", "1 hour"], "name the unit: --unit s"),
    (["match", "re:ab", "letters.csv", "--within", "soon"], "soon"),
    (["match", "re:ab", "letters.csv", "--within", "5", "--strategy", "any"], "unknown strategy `any`"),
    (["match", "re:ab", "letters.csv", "--within", "5", "--by", "user"], "unknown column `user`"),
    (["match", "a(b|c)d", "letters.csv", "--within", "5"], "'re:a(b|c)d'"),
    (["match", "a(b|c)d", "letters.csv"], "'re:a(b|c)d'"),
    (["explain", BAD_QUERY], "line 1, column"),
    (["explain", "query.acep", "--events", "letters.csv"], "unknown column"),
    (["explain", "query.acep", "--svg", "no/x.svg"], "`no/x.svg` cannot be written"),
]


@pytest.fixture
def damaged(folder: Path) -> None:
    whole = folder / "whole.parquet"
    pq.write_table(pa.table({"ts": [1], "type": ["a"]}), whole)
    (folder / "cut.parquet").write_bytes(whole.read_bytes()[:-8] + b"\xff\xfe")
    (folder / "nulls.csv").write_text(CSV.replace("\n2,", "\n,"))
    (folder / "ragged.csv").write_text("ts,type\n1,a\n2\n")
    (folder / "broken.jsonl").write_text('{"ts": 1}\n{"ts": 2\n')
    (folder / "float.csv").write_text(CSV.replace("\n1,", "\n1.5,"))
    (folder / "words.csv").write_text(CSV.replace("\n1,", "\none,"))
    (folder / "events.xml").write_text("<events/>")


@pytest.mark.usefixtures("damaged")
@pytest.mark.parametrize(("args", "said"), MISTAKES, ids=lambda value: value if isinstance(value, str) else "")
def test_mistakes_are_explained(args: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(args) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("acep: ")
    assert said in err
    assert "Traceback" not in err
    assert len(err.splitlines()) <= 4


@pytest.mark.skipif(why_not() is not None, reason="a budget needs the native core")
@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            ["--recover"],
            "a share of an allowance, and there is none [option_invalid]\nhint: set --work, --cpu or --latency",
        ),
        (["--recover", "0.2", "--memory", "8M"], "acep: --recover keeps windows of the stream"),
        (["--memory", "5 Q"], "acep: --memory '5 Q' is no size"),
        (["--memory", "12"], "acep: --memory 12 is less than a query needs"),
        (
            ["--policy", "newest"],
            "acep: --policy serves a run under a budget [option_invalid]\nhint: set a bound on what may be spent, such",
        ),
        (["--work", "5", "--exists"], "keeps to no budget"),
        (["--work", "nan"], "--work"),
        (["--engine", "fast"], "there is no engine 'fast'"),
    ],
)
def test_messages_name_options_as_they_are_typed(
    options: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["match", "re:ad", "letters.csv", "--within", "5", *options]) == 2
    err = capsys.readouterr().err
    assert said in err
    assert not re.search(r"(?<![\w.-])[a-z]+=", err), err


@read_once("acep")
def messages(module: ParsedFile) -> list[str]:
    """The texts in the errors that a module raises."""
    calls = [node for node in module.nodes if isinstance(node, ast.Call)]
    raised = [call for call in calls if isinstance(call.func, ast.Name) and call.func.id.endswith("Error")]
    return [
        part.value
        for call in raised
        for part in ast.walk(call)
        if isinstance(part, ast.Constant) and isinstance(part.value, str)
    ]


@pytest.mark.long
@whole_source
def test_no_message_of_the_product_mixes_spellings() -> None:
    """Every text in an error or a hint, in the words of the command line: no argument of Python's is left in it."""
    texts = [text for path in (Path(__file__).resolve().parents[1] / "acep").rglob("*.py") for text in messages(path)]
    named = [text for text in texts if re.search(rf"(?<![\w.])({OPTIONS}|counts|output)=", text)]
    assert len(named) > 30
    left = [text for text in map(as_typed, named) if re.search(rf"(?<![\w.`-])({OPTIONS})=", text)]
    assert not left


def test_a_caret_points_at_the_place(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["match", QUERY.replace("b.price", "b.pirce"), "events.csv"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    message, source, caret, hint = err.splitlines()
    assert message == "acep: unknown column `pirce` [query_name] (line 3, column 42)"
    assert source[caret.index("^") : caret.rindex("^") + 1] == "b.pirce"
    assert hint == "hint: did you mean `price`?"


@pytest.mark.parametrize(
    "args",
    [
        [],
        ["match"],
        ["match", "re:a"],
        ["fly"],
        ["match", "re:a", "e.csv", "--fast", "1"],
        ["match", "re:a", "e.csv", "--out", "x"],
    ],
)
def test_unknown_arguments(args: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(args)
    assert exit_.value.code == 2
    assert "usage: acep" in capsys.readouterr().err


def test_help_and_version(capsys: pytest.CaptureFixture[str]) -> None:
    for args in (["--help"], ["match", "--help"], ["--version"]):
        with pytest.raises(SystemExit) as exit_:
            main(args)
        assert exit_.value.code == 0
    out = capsys.readouterr().out
    assert f"acep {acep.__version__}" in out
    assert "--points" in out


# How it ends -------------------------------------------------------------------------------------


@pytest.mark.long
def test_a_reader_that_has_had_enough() -> None:
    Path("many.csv").write_text("ts,type\n" + "".join(f"{i},a\n" for i in range(20_000)))
    command = f"{sys.executable} -m acep.cli match re:a many.csv --within 5 | head -n 1"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("\n") == 1


def worked(pid: int) -> float:
    """The seconds of processor time that a process has taken."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.long
@pytest.mark.parametrize("engine", ["reference", *([] if why_not() else ["native"])])
def test_an_interrupt(engine: str) -> None:
    # 2**299 runs that wait for their end, and ten thousand million touches.
    size, query = {
        "reference": (300, ["re:a*b", "--within", "none"]),
        "native": (200_000, ["PATTERN SEQ(a x, a y) WHERE x.ts > y.ts WITHIN 1000000"]),
    }[engine]
    Path("long.csv").write_text("ts,type\n" + "".join(f"{i},a\n" for i in range(size)))
    text, *window = query
    command = [sys.executable, "-m", "acep.cli", "match", text, "long.csv", *window, "--engine", engine]
    # What runs in the background of a shell is deaf to interrupts, and so is all that it starts.
    hears = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes, preexec_fn=hears) as process:  # noqa: PLW1509
        try:
            # Interrupted while Python itself is starting it could not answer: wait until it has worked for a while.
            patience = time.monotonic() + 120
            while worked(process.pid) < 2 and time.monotonic() < patience:
                time.sleep(0.1)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
        finally:
            process.kill()
    assert (process.returncode, out, err) == (130, "", "acep: interrupted\n")


# explain -----------------------------------------------------------------------------------------


def test_explain(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "query.acep"]) == 0
    out = capsys.readouterr().out
    headings = [line[2:] for line in out.splitlines() if line.startswith("# ")]
    assert headings[:2] == ["tokens", "tree"]
    assert headings[-1] == "costly"
    assert {"Thompson automaton", "arcs", "program", "plan"} <= set(headings)
    assert "nothing that stands out" in out
    assert main(["explain", "query.acep", "--events", "events.csv", "--svg", "a.svg"]) == 0
    out = capsys.readouterr().out
    assert "partitions: symbol" in out
    assert "window: 100 ticks of ts" in out
    assert "columns read: ts, type, price, symbol" in out
    assert "b.price < 0.8 * a[a.LEN].price" in out
    assert Path("a.svg").read_text().startswith("<svg")


def test_explain_letters(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["explain", "re:a(b|c)*d", "--within", "5 s", "--errors", "1", "--events", "letters.csv"]
    assert main([*arguments, "--unit", "ms"]) == 0
    out = capsys.readouterr().out
    assert "a  (  b  |  c  )  *  d" in out
    assert "window: 5000 ticks of ts (5 s)" in out
    assert "* `(b|c)*` under skip till any match" in out
    assert main(["explain", "re:ab", "--within", "5 events", "--events", "letters.csv"]) == 0
    assert "window: 5 events" in capsys.readouterr().out
    assert main(["explain", "re:ab", "--within", "none", "--events", "letters.csv"]) == 0
    assert "window: none" in capsys.readouterr().out


def test_explain_shows_sources(capsys: pytest.CaptureFixture[str]) -> None:
    query = "FROM (PATTERN SEQ(a x, b y) WITHIN 5) AS T PATTERN SEQ(T x, T y) WITHIN 50"
    assert main(["explain", query]) == 0
    out = capsys.readouterr().out
    assert "# source T" in out
    assert "  # Thompson automaton" in out


# replay ------------------------------------------------------------------------------------------


@pytest.mark.long
def test_replay(capsys: pytest.CaptureFixture[str]) -> None:
    check_replay(capsys)
    assert main(["replay", "query.acep", "events.csv", "--count", "--speed", "20", "--unit", "s"]) == 0
    assert capsys.readouterr().out == "1\n"
    assert main(["replay", "query.acep", "events.csv", "--speed", "20"]) == 2
    assert "the length of a tick of `ts` is not known" in capsys.readouterr().err
    assert main(["replay", "query.acep", "events.csv", "--count", "--limit", "3"]) == 2
    assert "--count prints a number" in capsys.readouterr().err


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_replay_on_spark(capsys: pytest.CaptureFixture[str]) -> None:
    check_replay(capsys, "--spark")


def check_replay(capsys: pytest.CaptureFixture[str], *options: str) -> None:
    assert main(["replay", "query.acep", "events.csv", "--chunk", "3", *options]) == 0
    out, err = capsys.readouterr()
    assert out == LINE
    assert "6 events in " in err
    assert "1 match" in err
    assert main(["replay", "query.acep", "events.csv", "--output", "m.jsonl", "--limit", "0", "--watch", *options]) == 0
    assert Path("m.jsonl").read_text() == ""
    told = capsys.readouterr().err.splitlines()
    assert told[0].startswith("micro-batch 0: 6 events")
    assert any(line.startswith("6 events in ") for line in told)
    for command, more in (("replay", options), ("match", ())):
        assert main([command, "query.acep", "events.csv", "--flat", "--output", f"{command}.csv", *more]) == 0
    assert Path("replay.csv").read_text() == Path("match.csv").read_text() != ""


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["replay", BAD_QUERY, "events.csv"], "line 1, column"),
        (["replay", QUERY.replace("price", "pirce"), "events.csv"], "unknown column `pirce`"),
        (["replay", "query.acep", "event.csv"], "there is no file `event.csv`"),
        (["replay", "query.acep", "events.csv", "--output", "x.xls"], "no format of output"),
        (["replay", "query.acep", "events.csv", "--chunk", "0"], "not a positive number"),
        (["replay", "query.acep", "events.csv", "--flat", "--versions", "."], "which a new version may change"),
    ],
)
def test_mistakes_in_a_replay_are_explained(args: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    for more in ([], ["--spark"]):  # which does not start then
        assert main([*args, *more]) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert said in err


def test_the_script_is_installed() -> None:
    script = Path(sys.executable).with_name("acep")
    if not script.exists():
        pytest.skip("acep is not installed into this interpreter")
    done = subprocess.run([script, "--version"], capture_output=True, text=True, check=True, env={**os.environ})
    assert done.stdout == f"acep {acep.__version__}\n"


# why ---------------------------------------------------------------------------------------------


def test_why(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["why", "query.acep", "events.csv", "--key", "MSFT"]) == 0
    assert capsys.readouterr().out == (
        "symbol=MSFT: 2 events, no match\n"
        "furthest: nothing is bound: a (type Stock) is needed first\n"
        "  event 1 is no a: a[1].price = 10 does not hold (a[1].price = 7)\n"
        "  event 3 is no a: a[1].price = 10 does not hold (a[1].price = 6)\n"
        "then no event could begin a match\n"
        "  event 1: ts=2, type=Stock, symbol=MSFT, price=7\n"
        "  event 3: ts=4, type=Stock, symbol=MSFT, price=6\n"
    )
    assert main(["why", "query.acep", "events.csv", "--key", "symbol=AAPL"]) == 0
    assert capsys.readouterr().out.startswith("symbol=AAPL: 4 events, 1 match\n  match: a=0,2 b=5\n")
    assert main(["why", "re:abd", "letters.csv", "--within", "50"]) == 0
    assert "furthest: a=0 b=3; d is needed next\n" in capsys.readouterr().out
    query = "PATTERN SEQ(a x, ~ANY y, b z) WITHIN 9 HAVING z.ts > 9"
    assert main(["why", query, "letters.csv"]) == 0
    assert "  event 1 breaks ~y: no such event may come there\n" in capsys.readouterr().out
    assert main(["why", "PATTERN SEQ(a x, b z) WITHIN 9 HAVING z.ts > 9", "letters.csv"]) == 0
    assert "  event 3 is refused by HAVING: z.ts > 9 does not hold (z.ts = 5)\n" in capsys.readouterr().out


def test_why_of_rows(capsys: pytest.CaptureFixture[str]) -> None:
    query = "PATTERN SEQ(a x, b y, d z) WITHIN 10"
    assert main(["why", query, "letters.csv", "--rows", "3, 0"]) == 0
    assert capsys.readouterr().out == (
        "the stream: 4 events, no match of rows 0, 3\n"
        "furthest: x=0 y=3; z (type d) is needed next\n"
        "then no other row was named\n"
        "  event 0: ts=1, type=a\n"
        "  event 3: ts=5, type=b\n"
    )
    assert main(["why", "query.acep", "events.csv", "--rows", "1,0"]) == 0
    assert "the rows have several: symbol=AAPL (event 0), symbol=MSFT (event 1)" in capsys.readouterr().out
    for rows, said in (("99", "there is no event 99"), (",", "--rows names no event")):
        assert main(["why", query, "letters.csv", "--rows", rows]) == 2
        assert said in capsys.readouterr().err
    assert main(["why", query, "letters.csv", "--rows", "1", "--many"]) == 2
    assert "--many counts all matches" in capsys.readouterr().err


def test_why_takes_the_nearest_key_if_none_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["why", "query.acep", "events.csv"]) == 0
    assert capsys.readouterr().out.startswith("symbol=MSFT, the nearest of 2 keys: 2 events, no match\n")


def test_why_of_an_automaton(capsys: pytest.CaptureFixture[str]) -> None:
    first = "[[arc]]\nfrom = 'one'\nto = 'two'\nfence = \"e.type = 'a'\"\ntransfer = { at = 'e.ts' }\n"
    second = "[[arc]]\nfrom = 'two'\nto = 'end'\nfence = \"e.type = 'd' AND e.ts > r.at\"\n"
    Path("steps.toml").write_text(f"final = 'end'\nregisters = {{ at = 0 }}\n{first}{second}", encoding="utf-8")
    Path("steps.csv").write_text("ts,type\n3,a\n4,b\n", encoding="utf-8")
    assert main(["why", "steps.toml", "steps.csv"]) == 0
    assert capsys.readouterr().out == (
        "the stream: 2 events, no match\n"
        "furthest: events=0; state two (at = 3); an arc to end is needed next\n"
        "  event 1 takes no arc two -> end: e.type = 'd' does not hold (e.type = b)\n"
        "then event 1 took no arc\n"
        "  event 0: ts=3, type=a\n"
        "  event 1: ts=4, type=b\n"
    )


def test_why_shortens_a_long_list(capsys: pytest.CaptureFixture[str]) -> None:
    Path("many.csv").write_text("ts,type,x\n0,a,0\n" + "".join(f"{i},b,{i}\n" for i in range(1, 40)))
    assert main(["why", "PATTERN SEQ(a p, b q) WHERE q.x > 100 WITHIN 99", "many.csv"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 25
    assert lines[12] == "  ... and 29 more"
    assert lines[14:16] == ["  event 0: ts=0, type=a, x=0", "  event 1: ts=1, type=b, x=1"]


KEYS = "ts,type,i,f,b,day\n1,a,7,0.5,true,2024-01-02\n2,b,7,0.5,true,2024-01-02\n"


@pytest.mark.parametrize(
    ("by", "key", "named"),
    [
        ("i", "7", "i=7"),
        ("f", "0.5", "f=0.5"),
        ("b", "TRUE", "b=True"),
        ("day", "2024-01-02", "day=2024-01-02"),
        ("i,f", "f=0.5, i=7", "i=7, f=0.5"),
    ],
)
def test_keys_of_every_kind(by: str, key: str, named: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("keys.csv").write_text(KEYS)
    assert main(["why", "re:ab", "keys.csv", "--within", "5 s", "--unit", "s", "--by", by, "--key", key]) == 0
    assert capsys.readouterr().out.startswith(f"{named}: 2 events, 1 match\n  match: a=0 b=1\n")


@pytest.mark.parametrize(
    ("by", "key", "said"),
    [
        ("i", "8", "there is no event with i=8"),
        ("i", "seven", "--key: 'seven' is no int"),
        ("b", "maybe", "--key: 'maybe' is no bool"),
        ("i,f", "7", "does not name i and f"),
        (None, "7", "the query has no partition attribute"),
    ],
)
def test_keys_that_are_none(by: str | None, key: str | None, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("keys.csv").write_text(KEYS)
    options = [*(["--by", by] if by else []), *(["--key", key] if key else [])]
    assert main(["why", "re:ab", "keys.csv", "--within", "5", *options]) == 2
    assert said in capsys.readouterr().err


def test_another_attribute_in_a_key_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    Path("users.csv").write_text("ts,type,user\n1,a,ann\n2,b,ann\n")
    assert main(["why", "re:ab", "users.csv", "--within", "5", "--by", "user", "--key", "usr=ann"]) == 2
    assert "the partition attribute is `user`: --key user=..." in capsys.readouterr().err


def test_the_help_names_all_policies() -> None:
    from acep.budget.policies import POLICIES
    from acep.cli import POLICY_HELP

    assert [name for name in POLICIES if not re.search(rf"(?<![-\w]){name}(?![-\w])", POLICY_HELP)] == []
