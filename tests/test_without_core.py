"""An install without the native core: the reference engine gives the same, and that it runs is said once, and why."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import acep
from acep.native import compiled
from acep.spark import match

REASON = "the native core is not installed"
BLOCKED = """
import sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name == "acep.native._native":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocker())
"""


def script(code: str, *, status: int = 0, errors: bool = False) -> tuple[list[str], list[str]]:
    """What a fresh interpreter writes to stdout and stderr, where the native core cannot be imported."""
    options = ("-W", "error") if errors else ()
    done = subprocess.run(
        [sys.executable, *options, "-c", BLOCKED + code],
        capture_output=True,
        text=True,
        check=False,
        env={name: value for name, value in os.environ.items() if name != "PYTHONWARNINGS"},
    )
    assert done.returncode == status, done.stderr
    return done.stdout.splitlines(), done.stderr.splitlines()


MATCH = """
import warnings
import acep

rows, query = {"ts": [1, 2, 3], "type": ["a", "x", "b"]}, acep.regex("ab", within=5)
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    for output in ("matches", "count", "points", "bundles"):
        found = acep.match(rows, query, output=output)
        print(found if output == "count" else len(found))
    matcher = acep.Matcher(query)
    print(len(matcher.push(rows)) + len(matcher.finish()))
    matcher.restore(matcher.snapshot())
for one in told:
    print(one.category.__name__, one.filename, one.message)
"""


@pytest.mark.long
def test_it_is_said_once_of_the_line_that_called() -> None:
    out, err = script(MATCH)
    assert out[:5] == ["1"] * 5
    (said,) = out[5:]
    assert said.startswith(f"UserWarning <string> {compiled.REFERENCE}: {REASON}")
    assert err == []


@pytest.mark.long
def test_who_asks_for_the_reference_engine_is_not_told() -> None:
    code = "import acep\nprint(acep.match({'ts': [1], 'type': ['a']}, acep.regex('a', within=1), engine='reference', "
    assert script(code + "output='count'))", errors=True) == (["1"], [])


@pytest.mark.long
def test_who_asks_for_the_native_engine_gets_an_error() -> None:
    code = """
import acep
try:
    acep.match({"ts": [1], "type": ["a"]}, acep.regex("a", within=1), engine="native")
except acep.EngineError as error:
    print(error.render())
"""
    out, err = script(code, errors=True)
    assert REASON in out[0]
    assert 'engine="reference" runs every query' in "\n".join(out)
    assert err == []


@pytest.fixture
def events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a small file of events in the folder in which the test runs."""
    monkeypatch.chdir(tmp_path)
    Path("events.csv").write_text("ts,type\n1,a\n2,b\n")
    return "events.csv"


def command(*args: str) -> str:
    return f"import acep.cli\nsys.exit(acep.cli.main({list(args)!r}))"


@pytest.mark.long
def test_the_command_line_says_it_in_a_line(events: str) -> None:
    out, err = script(command("match", "re:ab", events, "--within", "5", "--count"))
    assert out == ["1"]
    assert len(err) == 1
    assert err[0].startswith(f"acep: warning: {compiled.REFERENCE}: {REASON}")
    quiet = command("match", "re:ab", events, "--within", "5", "--count", "--engine", "reference")
    assert script(quiet) == (["1"], [])


def test_the_command_line_refuses_the_native_engine(events: str) -> None:
    out, err = script(command("match", "re:ab", events, "--within", "5", "--engine", "native"), status=2)
    assert out == []
    assert err[0].startswith(f"acep: {REASON}")


def test_explain_says_that_the_reference_runs_and_why(events: str) -> None:
    out, err = script(command("explain", "re:ab", "--within", "5", "--events", events))
    (engine,) = (line for line in out if "engine:" in line)
    assert engine.startswith(f"  engine: reference, which runs every query: {REASON}")
    assert not any("match windows" in line for line in out)
    assert err == []


@pytest.mark.spark
def test_on_spark_too(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "_REASON", REASON)
    monkeypatch.setattr(compiled, "_WARNED_REASONS", set())
    frame = spark.createDataFrame(pa.table({"ts": [1], "type": ["a"], "k": [1]}))
    with pytest.warns(UserWarning, match=f"{compiled.REFERENCE}: {REASON}") as told:
        match(frame, acep.regex("ab", within=5, by="k"), seq="k")
    assert len(told) == 1
    assert told[0].filename == __file__
    match(frame, acep.regex("ab", within=5, by="k"), seq="k")  # a second warning would be an error
