"""Tell where the time of tests goes: a table by step, by file and by test, of durations that several runs wrote.

With ``ACEP_DURATIONS`` the seconds of every test are added to that file as it ends, a line a test, so that several runs
of pytest make one table: ``python -m tests.durations FILE``. With ``ACEP_RESUME`` tests that passed by that file are
left out, so that a run which was stopped goes on. They count only under the same settings (:func:`settings_of_run`),
and a test that was skipped runs again.
"""

from __future__ import annotations

import argparse
import json
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from acep.native.compiled import why_not
from examples.data import whole_folder

__all__ = ["Duration", "DurationsWriter", "lines_by_file", "passed_tests", "read_durations", "settings_of_run"]

RECORDING = {"ACEP_DURATIONS", "ACEP_STEP", "ACEP_RESUME"}  # where results go, not what runs
SETTINGS = "settings"
BEGIN, END = "<!-- durations -->", "<!-- end of durations -->"
ROWS = 30
"""How many files a table has a line for."""


@dataclass(frozen=True)
class Duration:
    """The seconds of a test with its setup and teardown, in a step of CI, and its outcome: ``passed``, ``skipped`` or
    ``failed``."""

    step: str
    test: str
    seconds: float
    outcome: str = "passed"

    @property
    def file(self) -> str:
        return self.test.partition("::")[0]


class DurationsWriter:
    """A plugin of pytest that adds a line to a file for each test of a ``step`` that ends."""

    def __init__(self, path: Path, step: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path, self._step = path, step
        self._reports: defaultdict[str, list[pytest.TestReport]] = defaultdict(list)
        self._settings = settings_of_run()
        self._did_pass = bool(passed_tests(path, step, self._settings))
        self._settings_before = last_settings(path, step)
        if self._settings_before != self._settings:
            self._write(SETTINGS, 0, json.dumps(self._settings, sort_keys=True))

    def _write(self, outcome: str, seconds: float, name: str) -> None:
        with self._path.open("a", encoding="utf-8") as file:
            file.write(f"{self._step}\t{outcome}\t{seconds:.3f}\t{name}\n")

    @pytest.hookimpl(trylast=True)
    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Say why a run does not go on where another was."""
        before, now = self._settings_before, self._settings
        if os.environ.get("ACEP_RESUME") and before is not None and before != now:
            changes = ", ".join(
                f"{name} is {now.get(name, 'not set')} and was {before.get(name, 'not set')}"
                for name in sorted({*before, *now})
                if before.get(name) != now.get(name)
            )
            session.config.get_terminal_writer().line(f"{self._step} runs again, as settings differ: {changes}")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Write the duration of a test at its teardown."""
        self._reports[report.nodeid].append(report)
        if report.when == "teardown":
            reports = self._reports.pop(report.nodeid)
            outcomes = {"passed" if hasattr(each, "wasxfail") else each.outcome for each in reports}
            outcome = next((worst for worst in ("failed", "skipped") if worst in outcomes), "passed")
            self._write(outcome, sum(each.duration for each in reports), report.nodeid)

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Let a run pass that has no test left to run."""
        if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and self._did_pass and os.environ.get("ACEP_RESUME"):
            session.exitstatus = pytest.ExitCode.OK


def settings_of_run() -> dict[str, str]:
    """Return what changes which cases tests try at one commit: the variables of this repository, the streams and the
    core that are there, whether Hypothesis draws the same cases in each run, and which Java runs Spark."""
    names = {name for name in os.environ if name.startswith("ACEP_")} - RECORDING | {"CI", "JAVA_HOME"}
    settings = {name: os.environ[name] for name in sorted(names) if os.environ.get(name)}
    sizes = [file.stat().st_size for file in sorted(whole_folder().glob("*.parquet"))]
    settings["streams"] = f"{whole_folder().resolve()} ({sum(sizes)} bytes)" if sizes else "those in the repository"
    settings["core"] = "reference" if why_not() else "native"
    return settings


def _lines(path: Path) -> Iterator[tuple[str, str, str, str]]:
    """Yield step, outcome, seconds and name of each line of a file. None if there is no file."""
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        step, outcome, seconds, name = line.split("\t", 3)
        yield step, outcome, seconds, name


def read_durations(path: Path) -> list[Duration]:
    """Read the durations of a file: the last line of each test in each step. None if there is no file."""
    lines = (line for line in _lines(path) if line[1] != SETTINGS)
    durations = {(step, test): Duration(step, test, float(seconds), outcome) for step, outcome, seconds, test in lines}
    return [*durations.values()]


def passed_tests(path: Path, step: str, settings: Mapping[str, str]) -> set[str]:
    """Return the tests of a step that passed by a file when they last ran under these settings."""
    outcomes, are_same = dict[str, str](), False
    for _, outcome, _, name in (line for line in _lines(path) if line[0] == step):
        if outcome == SETTINGS:
            are_same = json.loads(name) == settings
        elif are_same:
            outcomes[name] = outcome
    return {test for test, outcome in outcomes.items() if outcome == "passed"}


def last_settings(path: Path, step: str) -> dict[str, str] | None:
    """Return the settings of the last run of a step, if there was one."""
    texts = [name for of, outcome, _, name in _lines(path) if (of, outcome) == (step, SETTINGS)]
    return json.loads(texts[-1]) if texts else None


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
