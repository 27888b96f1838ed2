"""Matching a small file loads little beyond NumPy and Arrow: the modules it loads, and the calls it makes."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from acep.native.compiled import why_not

QUERY = "PATTERN SEQ(A a, B b) WITHIN 10"
LETTERS = ["re:AB", "small.csv", "--within", "10"]
FILES = ("small.csv", "small.jsonl", "small.parquet")
ENGINES = ("reference",) if why_not() else ("auto", "reference")
MODULES = 300
"""How many modules a small match may load beyond NumPy and Arrow."""

CALLS = 120_000
"""How many Python functions a small match may call, loading included: some 85,000 are called."""

# What one small match does without, though something of acep uses it somewhere.
UNUSED = {
    *("pandas", "polars", "pyspark", "sqlglot"),
    *("lark", "hashlib", "difflib", "importlib.metadata", "importlib.resources", "multiprocessing", "unittest"),
    *("pyarrow.acero", "pyarrow.compute", "pyarrow.dataset"),
    *(
        "acep.pattern.text.mistakes",
        "acep.explain.automaton_text",
        "acep.explain.automaton_svg",
        "acep.explain.why",
        "acep.plan.lint.rules",
    ),
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with the same small stream in files of each format, in which the test runs."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    rows = [(1, "A"), (2, "B"), (3, "A"), (5, "C"), (6, "B")]
    Path("small.csv").write_text("ts,type\n" + "".join(f"{ts},{kind}\n" for ts, kind in rows))
    Path("small.jsonl").write_text("".join(f'{{"ts": {ts}, "type": "{kind}"}}\n' for ts, kind in rows))
    pq.write_table(pa.table({"ts": [ts for ts, _ in rows], "type": [kind for _, kind in rows]}), "small.parquet")


@cache
def modules_of_libraries() -> set[str]:
    """The modules that NumPy and Arrow load."""
    (loaded,) = output("import numpy, pyarrow, sys\nprint(*sys.modules)")
    return {*loaded.split()}


def output(code: str) -> list[str]:
    """The lines that a fresh interpreter prints."""
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


def test_the_command_line_loads_nothing_yet() -> None:
    (loaded,) = output("import sys, acep.cli\nprint(*sys.modules)")
    assert not {"numpy", "pyarrow", "acep.pattern"} & set(loaded.split())


SMALL_MATCHES = {**{file: [QUERY, file] for file in FILES}, "letters": LETTERS}
LOADING = [
    # The reference runtime reads files by the same code: one of them is enough.
    pytest.param(
        args, engine, id=f"{name}-{engine}", marks=[pytest.mark.long] if name in FILES and engine != ENGINES[0] else []
    )
    for name, args in SMALL_MATCHES.items()
    for engine in ENGINES
]


@pytest.mark.parametrize(("args", "engine"), LOADING)
def test_what_a_small_match_loads(args: list[str], engine: str) -> None:
    code = f"import os, sys\nfrom acep.cli import main\nmain({['match', *args, '--engine', engine]!r})\n"
    *matches, threads, loaded = output(code + "print(os.environ['OPENBLAS_NUM_THREADS'])\nprint(*sys.modules)")
    assert len(matches) == 3
    assert threads == "1"
    assert UNUSED & set(loaded.split()) <= modules_of_libraries()


def test_threads_that_were_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "2")
    code = f"import os\nfrom acep.cli import main\nmain({['match', *LETTERS, '--count']!r})\n"
    assert output(code + "print(os.environ['OPENBLAS_NUM_THREADS'])") == ["3", "2"]


@pytest.mark.parametrize("args", [*([QUERY, file] for file in FILES), LETTERS], ids=[*FILES, "letters"])
def test_the_work_of_a_small_match(args: list[str]) -> None:
    code = f"""
import sys, numpy, pyarrow
calls, before = 0, set(sys.modules)
def called(frame, event, arg):
    global calls
    calls += event == "call"
sys.setprofile(called)
from acep.cli import main
main({["match", *args, "--count"]!r})
sys.setprofile(None)
print(len(set(sys.modules) - before), calls)
"""
    matches, counts = output(code)
    modules, calls = map(int, counts.split())
    assert matches == "3"
    assert 0 < modules <= MODULES
    assert 0 < calls <= CALLS
