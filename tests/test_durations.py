"""Durations are written, read and shown, and a test that takes long without saying so fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.durations import main, read_durations, settings_of_run

ROOT = Path(__file__).resolve().parents[1]
TESTS = '''
import time
import pytest

def work():
    """Take 0.3 s of processor time, however busy the machine is."""
    end = time.process_time() + 0.3
    while time.process_time() < end:
        pass

def test_quick():
    pass

def test_slow():
    work()

@pytest.mark.long
@pytest.mark.xdist_group("slow")
def test_slow_and_says_so():
    work()

@pytest.fixture
def slow_to_make():
    work()

def test_of_what_is_slow_to_make(slow_to_make):
    pass
'''


def run_tests(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, limit: str, processes: int = 0, source: str = TESTS
) -> pytest.RunResult:
    """Run a few tests in processes of their own, under this repository's hooks and a limit of seconds."""
    monkeypatch.setenv("ACEP_SLOWEST", limit)
    monkeypatch.setenv("ACEP_DURATIONS", str(pytester.path / "durations.tsv"))
    monkeypatch.setenv("ACEP_STEP", "some")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    pytester.makepyfile(test_of_them=source)
    return pytester.runpytest_subprocess("-p", "tests.conftest", "-n", str(processes), "--dist", "loadgroup", "-q")


@pytest.mark.long
def test_a_test_that_takes_long_fails_unless_it_is_marked(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = run_tests(pytester, monkeypatch, "0.2")
    # What is too slow to make fails as an error of the setup.
    result.assert_outcomes(passed=2, failed=1, errors=1)
    result.stdout.fnmatch_lines(["*test_slow: it took 0.? s (setup 0.0 s, call 0.? s), and a test of `make test`*"])


@pytest.mark.long
def test_a_run_that_was_stopped_goes_on_with_what_did_not_pass(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACEP_RESUME", "1")
    run_tests(pytester, monkeypatch, "0.2", 2).assert_outcomes(passed=2, failed=1, errors=1)
    # The tests that failed fail again, and no other runs.
    run_tests(pytester, monkeypatch, "0.2").assert_outcomes(failed=1, errors=1)
    outcomes = {duration.test: duration.outcome for duration in read_durations(pytester.path / "durations.tsv")}
    assert sorted(outcomes.values()) == ["failed", "failed", "passed", "passed"]


@pytest.mark.long
def test_a_run_with_no_test_left_passes(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACEP_RESUME", "1")
    run_tests(pytester, monkeypatch, "0").assert_outcomes(passed=4)
    result = run_tests(pytester, monkeypatch, "0")
    result.assert_outcomes()
    assert result.ret == 0
    result.stdout.no_fnmatch_line("*runs again*")


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "processes"),
    [
        ("ACEP_CASES", 2),
        *(pytest.param(name, 0, marks=pytest.mark.whole) for name in ("ACEP_CASES", "ACEP_DATA", "ACEP_SLOWEST")),
        ("CI", 0),
    ],
)
def test_under_other_settings_a_step_runs_again_and_says_why(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, name: str, processes: int
) -> None:
    values = {"ACEP_CASES": ("0.05", "1"), "ACEP_DATA": ("here", "there"), "CI": ("", "true")}
    before, now = values.get(name, ("0", "30"))
    for folder in values["ACEP_DATA"]:
        pytester.mkdir(folder)
    monkeypatch.setenv("ACEP_RESUME", "1")
    monkeypatch.setenv(name, before)
    run_tests(pytester, monkeypatch, before if name == "ACEP_SLOWEST" else "0").assert_outcomes(passed=4)
    monkeypatch.setenv(name, now)
    result = run_tests(pytester, monkeypatch, now if name == "ACEP_SLOWEST" else "0", processes)
    result.assert_outcomes(passed=4)
    was = before or "not set"
    result.stdout.fnmatch_lines([f"some runs again, as settings differ: {name} is {now} and was {was}"])
    # The tests that passed under the first settings need not run under them again.
    monkeypatch.setenv(name, before)
    run_tests(pytester, monkeypatch, before if name == "ACEP_SLOWEST" else "0").assert_outcomes()


@pytest.mark.long
def test_what_was_skipped_runs_again(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    source = "import pathlib, pytest\n"
    source += "def test_of_file():\n  if not pathlib.Path('rows').exists(): pytest.skip()\n"
    source += "@pytest.mark.xfail\ndef test_wrong():\n  assert False\n"
    monkeypatch.setenv("ACEP_RESUME", "1")
    run_tests(pytester, monkeypatch, "0", source=source).assert_outcomes(skipped=1, xfailed=1)
    (pytester.path / "rows").touch()
    run_tests(pytester, monkeypatch, "0", source=source).assert_outcomes(passed=1)


def test_streams_that_came_are_other_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACEP_DATA", str(tmp_path))
    before = settings_of_run()
    (tmp_path / "ticks.parquet").write_bytes(b"1234")
    assert before["streams"] == "those in the repository"
    assert settings_of_run()["streams"] == f"{tmp_path.resolve()} (4 bytes)"


@pytest.mark.long
def test_without_a_limit_a_test_may_take_long_and_durations_are_written(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_tests(pytester, monkeypatch, "0", 2).assert_outcomes(passed=4)
    durations = read_durations(pytester.path / "durations.tsv")
    assert [(duration.step, duration.outcome) for duration in durations] == [("some", "passed")] * 4
    seconds = {duration.test: duration.seconds for duration in durations}
    assert seconds["test_of_them.py::test_of_what_is_slow_to_make"] > 0.2 > seconds["test_of_them.py::test_quick"]


def test_a_table_is_printed_or_written_into_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, page = tmp_path / "durations.tsv", tmp_path / "page.md"
    lines = ("test\tpassed\t3\ta.py::x", "long\tfailed\t1\ta.py::y[a\tb]", "long\tpassed\t7\tb.py::z")
    file.write_text("".join(f"{line}\n" for line in lines))
    main([str(file)])
    printed = capsys.readouterr().out
    assert printed.splitlines()[:6] == [
        "seconds  tests  step",
        "    3.0      1  test",
        "    8.0      2  long",
        "seconds  tests  file",
        "    7.0      1  b.py (long)",
        "    4.0      2  a.py (test, long)",
    ]
    page.write_text("before\n<!-- durations -->\nold\n<!-- end of durations -->\nafter\n")
    main([str(file), "--page", str(page)])
    assert page.read_text() == (
        f"before\n<!-- durations -->\n```text\n{printed}```\n<!-- end of durations -->\nafter\n"
    )
    page.write_text("before\n")
    with pytest.raises(SystemExit, match="has no lines"):
        main([str(file), "--page", str(page)])
