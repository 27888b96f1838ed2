"""Help texts: their examples run, and an option or a command that is misspelt is answered by the right one."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from uuid import UUID

import pytest

from acep.bucket_state.state_files import StateFiles
from acep.cli import main
from acep.cli.help_examples import EXAMPLES

ROWS = "1,a,ann\n2,b,ann\n3,a,bob\n4,b,ann\n5,b,bob\n"
LINES = [(name, line) for name, lines in EXAMPLES.items() for line in lines]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with the query and the events of the examples."""
    monkeypatch.chdir(tmp_path)
    for name in ("logs", "inbox"):
        Path(name).mkdir()
    Path("query.acep").write_text("PATTERN SEQ(a x, b y) WHERE skip_till_any_match(x, y) { [user] } WITHIN 9\n")
    Path("rules").mkdir()
    Path("rules/pair.rule").write_text('---\nname = "pair"\n---\nPATTERN SEQ(a x, b y) WHERE [user] WITHIN 9\n')
    Path("sigma").mkdir()
    Path("sigma/root.yml").write_text(
        "title: Root\nlogsource: {product: linux}\ndetection: {s: {user: root}, condition: s}\n"
    )
    Path("statement.sql").write_text(
        "SELECT n FROM ticks MATCH_RECOGNIZE (ORDER BY ts MEASURES count(*) AS n PATTERN (a b) DEFINE b AS type = 'b')"
    )
    Path("events.csv").write_text(f"ts,type,user\n{ROWS}")
    Path("inbox/1.csv").write_text(f"ts,type,user\n{ROWS}")
    Path("logs/1.csv").write_text(f"time,type,user\n{ROWS}")
    write_checkpoint(Path("checkpoint"))


def write_checkpoint(folder: Path) -> None:
    """Write a checkpoint of two micro-batches, with state of one bucket."""
    query, run = str(UUID(int=1)), str(UUID(int=2))
    for name in ("offsets", "commits"):
        (folder / name).mkdir(parents=True)
        for number in (0, 1):
            (folder / name / str(number)).touch()
    (folder / "metadata").write_text(json.dumps({"id": query}))
    for number in (0, 1):
        files = StateFiles(str(folder.absolute() / "acep"), query=query, call="c0", run=run, buckets=1, keep=9)
        files.begin_batch(number)
        files.write(number, 0, number, "0" * 32, b"state")


def shown(capsys: pytest.CaptureFixture[str], *args: str) -> str:
    """Return the output of a command line that ends at once."""
    with pytest.raises(SystemExit):
        main([*args])
    return "".join(capsys.readouterr())


@pytest.mark.parametrize(("name", "line"), LINES, ids=[line for _, line in LINES])
def test_an_example_runs(name: str, line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert line in shown(capsys, name, "--help")
    words = shlex.split(line.partition(" > ")[0])
    if name == "replay":  # which starts Spark: here only its options are read
        assert "unrecognized arguments: --zzz [option_invalid]\n" in shown(capsys, *words[1:], "--zzz")
        return
    if name == "history":
        assert main(shlex.split(EXAMPLES["learn"][0])[1:]) == 0
    given = ["--unit", "s"] if "min'" in line else []
    assert main([*words[1:], *given]) == 0


@pytest.mark.parametrize(
    ("args", "near"),
    [
        (["mtch"], "match"),
        (["match", "re:ab", "events.csv", "--countt"], "--count"),
        (["match", "re:ab", "events.csv", "--skip-bad-line"], "--skip-bad-lines"),
        (["follow", "re:ab", "inbox", "--state", "s", "--output", "o", "--wach"], "--watch"),
    ],
)
def test_what_was_meant(args: list[str], near: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert f"\nhint: did you mean `{near}`" in shown(capsys, *args)


def test_an_option_of_another_command_is_no_misspelling(capsys: pytest.CaptureFixture[str]) -> None:
    assert "hint" not in shown(capsys, "learn", "query.acep", "events.csv", "--output", "h.acep", "--work=2")
