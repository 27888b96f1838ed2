"""Durations are written, read and shown, and a test that takes long without saying so fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.durations import main, read_durations

ROOT = Path(__file__).resolve().parents[1]
TESTS = """
import time
import pytest

def test_quick():
    pass

def test_slow():
    time.sleep(0.3)

@pytest.mark.long
@pytest.mark.xdist_group("slow")
def test_slow_and_says_so():
    time.sleep(0.3)

@pytest.fixture
def slow_to_make():
    time.sleep(0.3)

def test_of_what_is_slow_to_make(slow_to_make):
    pass
"""


def run_tests(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, limit: str, processes: int = 0
) -> pytest.RunResult:
    """Run a few tests in processes of their own, under this repository's hooks and a limit of seconds."""
    monkeypatch.setenv("ACEP_SLOWEST", limit)
    monkeypatch.setenv("ACEP_DURATIONS", str(pytester.path / "durations.tsv"))
    monkeypatch.setenv("ACEP_STEP", "some")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    pytester.makepyfile(test_of_them=TESTS)
    return pytester.runpytest_subprocess("-p", "tests.conftest", "-n", str(processes), "--dist", "loadgroup", "-q")


def test_a_test_that_takes_long_fails_unless_it_is_marked(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = run_tests(pytester, monkeypatch, "0.2")
    # What is too slow to make fails as an error of the setup.
    result.assert_outcomes(passed=2, failed=1, errors=1)
    result.stdout.fnmatch_lines(["*test_slow: call took 0.3 s, and a test that is not marked long may take 0.2 s*"])


def test_a_run_that_was_stopped_goes_on_with_what_did_not_pass(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACEP_RESUME", "1")
    run_tests(pytester, monkeypatch, "0.2", 2).assert_outcomes(passed=2, failed=1, errors=1)
    run_tests(pytester, monkeypatch, "0").assert_outcomes(passed=2)
    durations = read_durations(pytester.path / "durations.tsv")
    assert [duration.passed for duration in durations[:4]] == [True] * 4
    assert run_tests(pytester, monkeypatch, "0").ret == 0  # though there is no test


def test_without_a_limit_a_test_may_take_long_and_durations_are_written(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_tests(pytester, monkeypatch, "0", 2).assert_outcomes(passed=4)
    durations = read_durations(pytester.path / "durations.tsv")
    assert [(duration.step, duration.passed) for duration in durations] == [("some", True)] * 4
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
