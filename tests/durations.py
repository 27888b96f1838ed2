"""Tell where the time of tests goes: a table by file, and a failure for a test that takes long without being marked so.

With ``ACEP_DURATIONS`` the seconds of every test are added to that file as it ends, a line a test, so that several runs
of pytest make one table: ``python -m tests.durations FILE``. With ``ACEP_RESUME`` tests that passed by that file are
left out, so that a run which was stopped goes on. ``ACEP_SLOWEST`` is how many seconds a test may take that is not
marked ``long`` (20 if it is not set; 0 for as many as it likes, as under sanitizers).
"""

from __future__ import annotations

import argparse
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

__all__ = ["Duration", "DurationsWriter", "limit_duration", "lines_by_file", "passed_tests", "read_durations"]

LIMIT = float(os.environ.get("ACEP_SLOWEST") or 20)
BEGIN, END = "<!-- durations -->", "<!-- end of durations -->"
ROWS = 30
"""How many files a table has a line for."""


@dataclass(frozen=True)
class Duration:
    """The seconds of a test with its setup and teardown, in a step of CI, and whether it ``passed``. A test that is
    skipped passed, too."""

    step: str
    test: str
    seconds: float
    passed: bool = True

    @property
    def file(self) -> str:
        return self.test.partition("::")[0]


def limit_duration(item: pytest.Item, report: pytest.TestReport) -> None:
    """Let a test fail that passed but took longer than a test may that is not marked long.

    The setup counts too, but not for tests on Spark: the first of them starts the session of all.
    """
    may_take_long = any(item.get_closest_marker(name) for name in ("long", "whole")) or (
        report.when == "setup" and item.get_closest_marker("spark")
    )
    if LIMIT and report.passed and report.when != "teardown" and report.duration > LIMIT and not may_take_long:
        report.outcome = "failed"
        report.longrepr = (
            f"{item.nodeid}: {report.when} took {report.duration:.1f} s, and a test that is not marked long may take "
            f"{LIMIT:g} s. Make it faster, or mark it long: then `make test-all` runs it, and `make test` does not."
        )


class DurationsWriter:
    """A plugin of pytest that adds a line to a file for each test of a ``step`` that ends."""

    def __init__(self, path: Path, step: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path, self._step = path, step
        self._reports: defaultdict[str, list[pytest.TestReport]] = defaultdict(list)
        self._did_pass = bool(passed_tests(path, step))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Write the duration of a test at its teardown."""
        self._reports[report.nodeid].append(report)
        if report.when == "teardown":
            reports = self._reports.pop(report.nodeid)
            seconds, passed = sum(each.duration for each in reports), not any(each.failed for each in reports)
            with self._path.open("a", encoding="utf-8") as file:
                file.write(f"{self._step}\t{'passed' if passed else 'failed'}\t{seconds:.3f}\t{report.nodeid}\n")

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Let a run pass that has no test left to run."""
        if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and self._did_pass and os.environ.get("ACEP_RESUME"):
            session.exitstatus = pytest.ExitCode.OK


def read_durations(path: Path) -> list[Duration]:
    """Read the durations of a file: the last line of each test in each step. None if there is no file."""
    durations = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        step, outcome, seconds, test = line.split("\t", 3)
        durations[step, test] = Duration(step, test, float(seconds), outcome == "passed")
    return [*durations.values()]


def passed_tests(path: Path, step: str) -> set[str]:
    """Return the tests of a step that passed by a file."""
    return {duration.test for duration in read_durations(path) if duration.step == step and duration.passed}


def lines_by_file(durations: Iterable[Duration], rows: int = ROWS) -> Iterator[str]:
    r"""Yield the lines of a table of the steps, of the files that took longest, and of the tests that did.

    >>> print(*lines_by_file([Duration("test", "a.py::x", 3), Duration("test", "a.py::y", 1)], 1), sep="\n")
    seconds  tests  step
        4.0      2  test
    seconds  tests  file
        4.0      2  a.py (test)
    seconds  test
        3.0  a.py::x (test)
    """
    every = list(durations)
    by_step, by_file = defaultdict[str, list[Duration]](list), defaultdict[str, list[Duration]](list)
    for duration in every:
        by_step[duration.step].append(duration)
        by_file[duration.file].append(duration)

    def line(name: str, of_name: list[Duration]) -> str:
        return f"{sum(duration.seconds for duration in of_name):7.1f} {len(of_name):6}  {name}"

    yield "seconds  tests  step"
    yield from (line(name, of_step) for name, of_step in by_step.items())
    yield "seconds  tests  file"
    for name, of_file in sorted(by_file.items(), key=lambda item: -sum(d.seconds for d in item[1]))[:rows]:
        yield line(f"{name} ({', '.join(dict.fromkeys(duration.step for duration in of_file))})", of_file)
    yield "seconds  test"
    for duration in sorted(every, key=lambda duration: -duration.seconds)[:rows]:
        yield f"{duration.seconds:7.1f}  {duration.test} ({duration.step})"


def write_into_page(lines: Iterable[str], page: Path) -> None:
    """Put the lines between the marks of a page, in place of those that are there."""
    before, _, after = page.read_text(encoding="utf-8").partition(f"{BEGIN}\n")
    _, end, after = after.partition(END)
    if not end:
        raise SystemExit(f"{page} has no lines {BEGIN} and {END}")
    table = "\n".join(("```text", *(line.rstrip() for line in lines), "```"))
    page.write_text(f"{before}{BEGIN}\n{table}\n{END}{after}", encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a table of durations, or write it into a page."""
    parser = argparse.ArgumentParser(prog="python -m tests.durations", description=__doc__.partition("\n")[0])
    parser.add_argument("file", type=Path, help="what pytest wrote with ACEP_DURATIONS")
    parser.add_argument("--rows", type=int, default=ROWS, help=f"how many files and tests are listed ({ROWS})")
    parser.add_argument("--page", type=Path, help="the page to write the table into, in place of printing it")
    options = parser.parse_args(arguments)
    lines = lines_by_file(read_durations(options.file), options.rows)
    if options.page:
        write_into_page(lines, options.page)
    else:
        print(*lines, sep="\n")  # noqa: T201 - a command


if __name__ == "__main__":
    main()
