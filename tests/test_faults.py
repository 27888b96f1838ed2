"""The seeded faults apply to the sources, and a trial with them does what it says (tests/faults)."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.faults.seed import (
    FAULTS,
    NO,
    NOT_FIRST,
    REPORTED,
    YES,
    Fault,
    GateRun,
    Trial,
    faulty_text,
    main,
    read_faults,
    read_outcomes,
    table_text,
)
from tests.test_imports import ROOT

PLAIN = "PYTEST_DISABLE_PLUGIN_AUTOLOAD=1|"  # a run of pytest that starts faster
PRODUCT = ("acep/", "learning/", "sketches/")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A repository with a module and two tests, and this Python as its environment."""
    folder = tmp_path / "checkout"
    (folder / ".venv/bin").mkdir(parents=True)
    python = folder / ".venv/bin/python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n', encoding="utf-8")
    python.chmod(0o755)
    texts = {
        "module.py": "def larger(x, y):\n    return x > y\n\n\ndef smaller(x, y):\n    return x < y\n",
        "test_larger.py": "from module import larger\n\n\ndef test_equal():\n    assert not larger(1, 1)\n",
        "test_smaller.py": "from module import smaller\n\n\ndef test_one():\n    assert smaller(1, 2)\n",
        "pytest.ini": "[pytest]\npythonpath = .\n",
        ".gitignore": ".venv\n__pycache__\n",
        "Makefile": "native:\n",
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    settings = ["-c", "user.name=trial", "-c", "user.email=trial@localhost"]
    for command in ("init -q", "add .", "commit -q -m trial"):
        subprocess.run(["git", *settings, *command.split()], cwd=folder, check=True)
    return folder


def fault(new: str = "x >= y", **more: object) -> Fault:
    fields = {
        "name": "equal",
        "why": "-",
        "file": "module.py",
        "old": "x > y",
        "new": new,
        "first": ("test_larger.py",),
    }
    return Fault(**fields | more)  # type: ignore[arg-type]


def test_each_fault_applies():
    faults = read_faults()
    assert len({one_fault.name for one_fault in faults}) == len(faults)
    for one_fault in faults:
        assert one_fault.file.startswith(PRODUCT), one_fault.name
        assert one_fault.native == one_fault.file.startswith("acep/native/src/"), one_fault.name
        text = (ROOT / one_fault.file).read_text(encoding="utf-8")
        faulty = faulty_text(one_fault, text)
        assert faulty != text, one_fault.name
        if one_fault.file.endswith(".py"):
            ast.parse(faulty, one_fault.file)


def test_each_fault_says_who_would_see_it_and_what_may_find_it():
    for one_fault in read_faults():
        assert one_fault.why.endswith("."), one_fault.name
        assert one_fault.first, one_fault.name
        assert [file for file in one_fault.first if not (ROOT / file).is_file()] == [], one_fault.name


def test_a_text_that_is_not_there_or_there_twice_does_not_apply():
    with pytest.raises(ValueError, match=r"module.py has its text 0 times"):
        faulty_text(fault(), "x < y")
    with pytest.raises(ValueError, match=r"module.py has its text 2 times"):
        faulty_text(fault(), "x > y, x > y")
    assert faulty_text(fault(occurrence=2), "x > y, x > y, x > y") == "x > y, x >= y, x > y"


def test_a_run_is_an_environment_and_options(checkout: Path):
    run = GateRun.from_text('CASES=0.5 LEVEL=2|-m "not long" --ignore=test_larger.py')
    assert run == GateRun({"CASES": "0.5", "LEVEL": "2"}, ("-m", "not long", "--ignore=test_larger.py"))
    assert run.narrowed(["test_larger.py", "test_gone.py"], checkout) is None
    assert run.narrowed(["test_larger.py", "test_smaller.py"], checkout) == (*run.options, "test_smaller.py")
    paths = GateRun.from_text("|-m long test_larger.py")
    assert paths.narrowed(["test_larger.py", "test_smaller.py"], checkout) == ("-m", "long", "test_larger.py")
    for text in ("-m long", "CASES|-m long"):
        with pytest.raises(ValueError, match="a run is"):
            GateRun.from_text(text)


def test_the_test_that_fails_is_that_of_the_summary():
    output = "ERROR    py4j:client.py:6 no answer\n==== summary ====\nFAILED test.py::test[a] - assert 1\n"
    assert [line[1] for line in REPORTED.finditer(output)] == ["test.py::test[a]"]


def test_a_trial_finds_a_fault_and_takes_it_out(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr("tests.faults.seed.read_faults", lambda: [fault()])
    before, table = (checkout / "module.py").stat().st_mtime_ns, tmp_path / "after.csv"
    main(["--checkout", str(checkout), "--output", str(table), "--first-only", "--run", PLAIN])
    assert read_outcomes(table)["equal"].test == "test_larger.py::test_equal"
    assert (checkout / "module.py").stat().st_mtime_ns == before
    main(["--checkout", str(checkout), "--output", str(table), "--run", "|"])  # nothing is left to try
    main(["--table", str(table), str(tmp_path / "none.csv")])
    assert "\n| **found** | | **1 of 1** | **0 of 0** |\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("first_only", "failing", "answer", "times"),
    [(True, None, NOT_FIRST, 2), (False, None, NO, 4), (False, 4, YES, 4), (False, 2, YES, 2)],
)
def test_the_rest_of_the_gate_runs_if_the_first_tests_pass(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, first_only: bool, failing: int | None, answer: str, times: int
):
    runs, started = [GateRun({}, ("-m", "not long")), GateRun({}, ("-m", "long"))], list[Sequence[str]]()

    def failing_test(_trial: Trial, _run: GateRun, options: Sequence[str]) -> str:
        started.append(options)
        return "test.py::test" if len(started) == failing else ""

    monkeypatch.setattr(Trial, "_failing_test", failing_test)
    outcome = Trial(checkout, runs, first_only).outcome_of(fault())
    first = [(*run.options, "test_larger.py") for run in runs]
    assert (outcome.found, started) == (answer, [*first, *(run.options for run in runs)][:times])
    assert outcome.run == ("2 of 2" if failing else "")


def test_a_fault_is_taken_out_if_the_trial_is_interrupted(checkout: Path):
    trial = Trial(checkout, [GateRun({}, ())])
    trial.check()
    module = checkout / "module.py"

    def interrupt(one_fault: Fault) -> None:
        with trial.seeded(one_fault):
            assert ">=" in module.read_text(encoding="utf-8")
            raise KeyboardInterrupt

    for one_fault in (fault(), fault(native=True)):
        with pytest.raises(KeyboardInterrupt):
            interrupt(one_fault)
        assert ">=" not in module.read_text(encoding="utf-8")


def test_a_checkout_with_changes_is_refused(checkout: Path):
    (checkout / "module.py").write_text("", encoding="utf-8")
    with pytest.raises(SystemExit, match=r"M module\.py"):
        Trial(checkout, []).check()


def test_the_page_has_the_outcome_of_each_fault():
    trials = {title: read_outcomes(FAULTS.with_name(f"{title}.csv")) for title in ("before", "now")}
    assert table_text(trials) in (ROOT / "docs/internals/faults.md").read_text(encoding="utf-8")
    names = {one_fault.name for one_fault in read_faults()}
    assert {*trials["now"]} == names
    assert {*trials["before"]} <= names  # the gate before knows nothing of code that was written since
    assert [outcome.name for outcome in trials["now"].values() if outcome.found != YES] == []


def test_the_readme_names_each_field():
    readme = FAULTS.with_name("README.md").read_text(encoding="utf-8")
    assert [name for name in Fault.__dataclass_fields__ if f"`{name}`" not in readme] == []


def is_marked_whole(node: ast.AST) -> bool:
    """Whether an expression has ``pytest.mark.whole``."""
    return any(isinstance(part, ast.Attribute) and part.attr == "whole" for part in ast.walk(node))


def test_the_gate_still_has_the_test_that_found_a_fault() -> None:
    """No test that is named in the last trial is left to the last tier as a whole."""
    left_out = set[str]()
    for test in {outcome.test for outcome in read_outcomes(ROOT / "tests/faults/now.csv").values() if outcome.test}:
        file, name = test.partition("[")[0].split("::")
        tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
        (function,) = (node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == name)
        for_all = [node.value for node in tree.body if isinstance(node, ast.Assign) and "pytestmark" in ast.dump(node)]
        markers = [mark for mark in function.decorator_list if "parametrize" not in ast.dump(mark)]
        if any(map(is_marked_whole, [*for_all, *markers])):
            left_out.add(test)
    assert left_out == set()
