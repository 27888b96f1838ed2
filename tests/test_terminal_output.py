"""No name and no value of the input reaches a terminal or a log as something that it acts upon, and no cell of CSV is a
formula if that is asked for; a command that is asked to stop leaves no copies of the events."""

from __future__ import annotations

import ast
import csv
import io
import json
import logging
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import acep
from acep import logs
from acep.cli import main
from acep.cli.progress import ProgressBar
from acep.errors import DataError, printable
from acep.linting.lint import lint
from acep.output.formulas import quoted_formula
from acep.output.writing import write_matches
from tests.complaints import difference
from tests.runner.streams import fast_disk
from tests.test_imports import ROOT

pytestmark = pytest.mark.filterwarnings("default::acep.errors.DataWarning")

ACTED_UPON = "\x1b[2J\x9b31m\u202egnp\u2066\u2028\x07\x7f\r"
KEY = f"u{ACTED_UPON}"
FILE = f"events{ACTED_UPON.replace('/', '')}.jsonl"
QUERY = "PATTERN SEQ(a x, b y) WHERE [k] AND y.s != x.s WITHIN 9 RETURN y.s AS s"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which the commands run, with a file of events of a name that a terminal acts upon."""
    monkeypatch.chdir(tmp_path)
    rows = [{"ts": 2 * n, "type": "ab"[n % 2], "k": KEY, "s": f"{ACTED_UPON}\n{n // 2}"} for n in range(60)]
    rows += [
        {"ts": 200, "type": "a", "k": f"{KEY}2", "s": ACTED_UPON},
        {"ts": 201, "type": "b", "k": f"{KEY}2", "s": ACTED_UPON},
    ]
    (tmp_path / FILE).write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


def shown_by(capsys: pytest.CaptureFixture[str], *args: str, status: int = 0) -> str:
    """Run a command, and return what it writes to stdout and stderr, if a terminal acts upon none of it."""
    assert main([*args, "--no-progress"]) == status
    out, err = capsys.readouterr()
    assert [line for line in (out + err).replace("\t", "").split("\n") if not line.isprintable()] == []
    return out + err


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["why", QUERY, FILE, "--key", f"{KEY}2"], "y.s = \\x1b[2J"),
        (["why", QUERY, FILE, "--key", KEY], "matches"),
        (["why", QUERY, FILE], "the nearest of"),
        (["why", QUERY, FILE, "--key", KEY, "--many"], "event 0: ts=0, type=a, k=u\\x1b[2J"),
        (["lint", QUERY.replace("a x", "a x, c z"), FILE], "no event is of type"),
        (["lint", QUERY, FILE, "--id", "s"], "come more than once, such as"),
        (["tune", QUERY, FILE, "--sample", "60"], "sample: "),
        (["explain", f"PATTERN SEQ(a x, b y) WHERE x.s = '{ACTED_UPON}' WITHIN 9", "--events", FILE], "\\x1b[2J"),
        (["match", QUERY, FILE], '"k": "u\\u001b[2J\\u009b31m\\u202egnp\\u2066\\u2028\\u0007\\u007f\\r"'),
        (["match", QUERY, FILE, "--bundles"], "\\u009b31m"),
        (["match", QUERY, FILE, "--log-level", "debug", "--count"], "engine runs the query"),
        (["match", QUERY.replace("b y", "c y"), FILE], "no event is of type `c`"),
    ],
    ids=lambda value: " ".join(value[:1]) if isinstance(value, list) else "",
)
def test_no_command_writes_what_a_terminal_acts_upon(
    args: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said in shown_by(capsys, *args)


@pytest.mark.parametrize(
    "args",
    [
        ["why", QUERY, FILE, "--key", f"{KEY}3"],
        ["match", QUERY, f"{FILE}.csv"],
        ["match", QUERY, FILE, "--ts", ACTED_UPON],
        ["match", ACTED_UPON, FILE],
    ],
    ids=" ".join,
)
def test_no_error_writes_what_a_terminal_acts_upon(args: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert "acep: " in shown_by(capsys, *args, status=2)


def test_a_wrong_option_is_printable(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["match", QUERY, FILE, f"--{ACTED_UPON}"])
    assert all(line.isprintable() for line in capsys.readouterr().err.splitlines())


def test_a_follower_names_files_in_printable_letters(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "in").mkdir()
    name = f"1{ACTED_UPON}\nacep: 2.csv"
    (folder / "in" / f"{name}.csv").write_text("ts,type\n1,a\noh,oh,oh\n2,b\n")
    (folder / "in" / f"{name}.log").write_text("no events")
    os.mkfifo(folder / "in" / f"{name}.pipe.csv")
    args = [
        "follow",
        "re:ab",
        "in",
        "--within",
        "5",
        "--state",
        "state",
        "--output",
        "out",
        "--end",
        "--skip-bad-lines",
        "--max-skipped",
        "34%",
    ]
    with fast_disk():
        shown = shown_by(capsys, *args, "--log-level", "debug")
    assert f"micro-batch 0 takes the file `{printable(name)}.csv`" in shown
    assert "1 bad line was skipped" in shown
    assert shown.count("acep: warning: ") == 2


def test_the_library_logs_printable_values(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "acep")
    logs.debug("acep.test", "the file `%s` has %d rows", f"x{ACTED_UPON}\nacep: 2", 3)
    assert caplog.messages == [f"the file `{printable(f'x{ACTED_UPON}')}\\nacep: 2` has 3 rows"]


def test_answers_are_printable_in_python_too(folder: Path) -> None:
    events = acep.read_events(folder / FILE)
    from acep.explain.why import why
    from acep.tuning.many import why_many

    for shown in (why(events, QUERY, key={"k": f"{KEY}2"}), why_many(events, QUERY), lint(events, QUERY, id="s")):
        assert all(line.isprintable() for line in str(shown).split("\n"))


def test_the_progress_of_a_file_is_printable() -> None:
    out, now = io.StringIO(), iter([0.0, 3.0])
    ProgressBar(f"reading {FILE}", None, out, lambda: next(now)).draw()
    assert out.getvalue().removeprefix("\r\x1b[K").isprintable()


def test_lines_of_json_say_the_same_with_escapes(folder: Path) -> None:
    """Few matches are written from records, many by columns."""
    few = acep.match(acep.read_events(folder / FILE), QUERY)
    table = pa.table({"ts": range(4000), "type": ["a", "b"] * 2000, "k": [KEY] * 4000, "s": [ACTED_UPON, "x"] * 2000})
    for matches in (few, acep.match(table, QUERY)):
        text = io.StringIO()
        write_matches(matches, text, "jsonl")
        assert all(line.isprintable() for line in text.getvalue().split("\n"))
        lines = [json.loads(line) for line in text.getvalue().splitlines()]
        assert [(line["key"], line["values"]) for line in lines] == [(match.key, match.values) for match in matches]


def test_commands_write_texts_through_one_place() -> None:
    """What people read is written by `show` and `say`, which escape it."""
    others = {"terminal.py", "completion.py", "watch.py", "__init__.py"}  # a script; a line over the last one
    direct = set()
    for path in sorted((ROOT / "acep" / "cli").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and ast.unparse(node) in ("sys.stdout.write", "sys.stderr.write"):
                direct.add(path.name)
    assert direct == others


# Formulas ----------------------------------------------------------------------------------------

FORMULAS = [
    "=1+1",
    "+cmd|'/C calc'!A0",
    "-2+3",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
    "\n=1",
    "\uff1d1+1",
    '=HYPERLINK("http://x","y")',
]
PLAIN = ["a=b", "-1.5", "+7", "-.5e3", "", "'=1", " =1", "e@x.org", "1-2"]


@pytest.mark.parametrize("text", FORMULAS, ids=repr)
def test_a_formula_has_an_apostrophe(text: str) -> None:
    assert quoted_formula(text) == f"'{text}"


@pytest.mark.parametrize("value", [*PLAIN, -3, -0.5, None, True], ids=repr)
def test_what_is_no_formula_stays(value: Any) -> None:
    assert quoted_formula(value) == value


def events_of(texts: list[str]) -> pa.Table:
    rows = [(kind, text) for text in texts for kind in "ab"]
    columns = {"ts": range(len(rows)), "type": [kind for kind, _ in rows], "=k": [text for _, text in rows]}
    return pa.table(columns | {"n": [-1] * len(rows)})


BY_TEXT = acep.parse("PATTERN SEQ(a x, b y) WHERE [`=k`] AND y.n = x.n WITHIN 1 RETURN y.`=k` AS s, y.n AS n")


@pytest.mark.parametrize("many", [1, 200], ids=["few", "many"])
@pytest.mark.parametrize("quote_formulas", [False, True])
def test_cells_of_csv_are_no_formulas(many: int, quote_formulas: bool) -> None:
    texts = [*FORMULAS, *PLAIN] * many
    text = io.StringIO()
    write_matches(acep.match(events_of(texts), BY_TEXT), text, "csv", quote_formulas=quote_formulas)
    assert "\r\n" not in text.getvalue()
    heads, *rows = csv.reader(io.StringIO(text.getvalue(), newline=""))
    expected = [quoted_formula(one) if quote_formulas else one for one in texts if one]
    keys, values, numbers = (heads.index(name) for name in ("key.=k", "values.s", "values.n"))
    assert difference([row[keys] for row in rows if row[keys]], expected) == ""
    assert difference([row[values] for row in rows if row[values]], expected) == ""
    assert {row[numbers] for row in rows} == {"-1"}


@pytest.mark.parametrize("kind", [[], ["--flat"], ["--bundles"], ["--points", "--flat"]], ids=" ".join)
def test_each_kind_of_output_can_be_without_formulas(kind: list[str], folder: Path) -> None:
    lines = "".join(f"{n},{'ab'[n % 2]},=u\n" for n in range(4))
    (folder / "in.csv").write_text(f"ts,type,=k\n{lines}")
    query = "PATTERN SEQ(a x, b y) WHERE [`=k`] WITHIN 1"
    assert main(["match", query, "in.csv", "--output", "out.csv", "--quote-formulas", *kind]) == 0
    heads, *rows = csv.reader((folder / "out.csv").read_text().splitlines())
    assert heads[0] == ("'=k" if "--flat" in kind else "key.=k")
    assert {row[0] for row in rows} == {"'=u"}


def test_a_follower_writes_no_formulas(folder: Path) -> None:
    (folder / "in").mkdir()
    (folder / "in" / "1.csv").write_text("ts,type,k\n1,a,=u\n2,b,=u\n")
    places = ["--state", "state", "--output", "out", "--output-format", "csv"]
    with fast_disk():
        assert main(["follow", "re:ab", "in", "--within", "5", "--by", "k", "--end", "--quote-formulas", *places]) == 0
    assert next((folder / "out").iterdir()).read_text().splitlines()[1].startswith("'=u,")


@pytest.mark.parametrize(
    "args", [[], ["--output", "out.jsonl"], ["--output", "out.parquet"], ["--count"]], ids=" ".join
)
def test_formulas_are_of_csv_alone(args: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["match", QUERY, FILE, "--quote-formulas", *args]) == 2
    assert "--quote-formulas is for CSV" in capsys.readouterr().err
    with pytest.raises(DataError, match="quote_formulas=True is for CSV"):
        acep.follow(".", QUERY, state="_s", into="_o", quote_formulas=True, once=True)


# Signals -----------------------------------------------------------------------------------------


def busy(pid: int) -> bool:
    """Whether a process does something for a while; one that waits for input does not."""
    used = []
    for _ in range(3):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        used.append((fields[0] == "S", fields[11:13]))
        time.sleep(0.1)
    return not (used[0][0] and used == used[:1] * 3)


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT], ids=lambda number: number.name)
def test_a_command_that_is_asked_to_stop_leaves_no_copy_of_the_events(number: signal.Signals, folder: Path) -> None:
    temporary = folder / "temporary"
    temporary.mkdir()
    command = [sys.executable, "-m", "acep", "match", "re:ab", "-", "--within", "5", "--format", "csv"]
    handled = {"preexec_fn": lambda: signal.signal(number, signal.SIG_DFL)}
    environment = os.environ | {"TMPDIR": str(temporary)}
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stderr": subprocess.PIPE, "stdout": subprocess.PIPE}
    run = subprocess.Popen(command, env=environment, cwd=folder, **pipes, **handled)
    assert run.stdin is not None
    try:
        run.stdin.write(b"ts,type\n" + b"1,a\n" * 300_000)
        run.stdin.flush()
        until = time.monotonic() + 120
        while not any(path.is_file() and path.stat().st_size for path in temporary.rglob("*")) or busy(run.pid):
            assert run.poll() is None
            assert time.monotonic() < until
        run.send_signal(number)
        run.wait(120)
        assert run.stderr is not None
        error = run.stderr.read().decode()
    finally:
        run.kill()
        run.communicate()
    assert list(temporary.iterdir()) == []
    said, status = ("acep: interrupted\n", 130) if number is signal.SIGINT else ("acep: stopped\n", -number)
    assert (error, run.returncode) == (said, status)
