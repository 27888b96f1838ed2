"""Measure how many seeded faults a gate of tests finds.

A fault of faults.toml is put into a clean checkout, the tests of the gate run until one fails, and the fault is taken
out again. README.md has an example, and says how to add a fault.
"""

from __future__ import annotations

import argparse
import csv
import os
import re
import shlex
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path

__all__ = [
    "NO",
    "NOT_FIRST",
    "YES",
    "Fault",
    "GateRun",
    "Outcome",
    "Trial",
    "faulty_text",
    "read_faults",
    "read_outcomes",
    "table_text",
]

FAULTS = Path(__file__).with_name("faults.toml")
YES, NO, NOT_FIRST = "yes", "no", "not by first tests"
"""Whether a fault was found; :data:`NOT_FIRST`: the rest of the gate was not run."""
PASSED, FAILED, INTERRUPTED, NO_TESTS = 0, 1, 2, 5  # exit statuses of pytest
REPORTED = re.compile(r"^(?:FAILED|ERROR) (\S.*?)(?: - .*)?$", re.MULTILINE)
"""A line of pytest's summary. A line of a log, which may begin so, has more blanks behind the first word."""


@dataclass(frozen=True)
class Fault:
    """A plausible mistake in a file of the product: ``new`` in place of ``old``, which occurs once, or whose
    ``occurrence`` is counted from 1. ``why``: what a user would see. ``first``: the test files most likely to find it,
    which are run before the others. ``native``: the file is of the native core, which is built again."""

    name: str
    why: str
    file: str
    old: str
    new: str
    first: tuple[str, ...]
    native: bool = False
    occurrence: int | None = None


@dataclass(frozen=True)
class GateRun:
    """A run of pytest that is part of the gate: its ``environment`` and its ``options``, among which may be paths."""

    environment: dict[str, str]
    options: tuple[str, ...]

    @classmethod
    def from_text(cls, text: str) -> GateRun:
        """Read a run such as ``ACEP_CASES=0.05|-m "not long"``. Raises :class:`ValueError` for other texts."""
        before, bar, behind = text.partition("|")
        pairs = [part.partition("=") for part in shlex.split(before)]
        if not bar or any(not equals for _, equals, _ in pairs):
            raise ValueError(f"a run is NAME=VALUE ...|OPTION ..., not {text!r}")
        return cls({name: value for name, _, value in pairs}, tuple(shlex.split(behind)))

    def narrowed(self, files: Sequence[str], checkout: Path) -> tuple[str, ...] | None:
        """Return the options to run only some test files, as far as this run has them; ``None`` if it has none."""
        paths = [option for option in self.options if option[0] != "-" and (checkout / option).exists()]
        ignored = [option.partition("=")[2] for option in self.options if option.startswith("--ignore=")]
        chosen = [file for file in files if (checkout / file).exists() and not _is_below(file, ignored)]
        chosen = [file for file in chosen if not paths or _is_below(file, paths)]
        return (*(option for option in self.options if option not in paths), *chosen) if chosen else None


@dataclass(frozen=True)
class Outcome:
    """What became of a fault: whether it was ``found``, in which ``run`` of the gate and by which ``test``, and how
    many ``seconds`` the tests ran. It is a row of the CSV file."""

    name: str
    file: str
    native: str
    found: str
    run: str
    test: str
    seconds: str


@dataclass
class Trial:
    """A trial of a gate, which consists of ``runs``, in a ``checkout`` that has an environment of its own."""

    checkout: Path
    runs: Sequence[GateRun]
    first_only: bool = False
    workers: int = 0
    timeout: float = 3600.0
    core: str | None = field(default="?", init=False)  # the fault in the native core that is built; None: it has none

    def check(self) -> None:
        """Raise :class:`SystemExit` if the checkout has changes that are not committed, or no environment."""
        if not (self.checkout / ".venv/bin/python").exists():
            raise SystemExit(f"{self.checkout} has no .venv with a python: `make venv` there")
        if changes := self._git("status", "--porcelain"):
            raise SystemExit(f"{self.checkout} has changes that are not committed:\n{changes}")

    def try_tests(self, faults: Sequence[Fault]) -> None:
        """Raise :class:`SystemExit` if one of the first tests fails without any fault."""
        self.build(None)
        files = [*dict.fromkeys(file for fault in faults for file in fault.first)]
        for run in self.runs:
            options = run.narrowed(files, self.checkout)
            if options is not None and (test := self._failing_test(run, options)):
                raise SystemExit(f"without a fault this fails: {test}")

    def outcome_of(self, fault: Fault) -> Outcome:
        """Run the first tests with a fault, and all others if they pass."""
        whole = [] if self.first_only else [(run, run.options) for run in self.runs]
        steps = [(run, run.narrowed(fault.first, self.checkout)) for run in self.runs]
        with self.seeded(fault):
            self.build(fault.name if fault.native else None)
            began = time.monotonic()
            for run, options in [*steps, *whole]:
                if options is not None and (test := self._failing_test(run, options)):
                    number = self.runs.index(run) + 1
                    return _outcome(fault, YES, time.monotonic() - began, f"{number} of {len(self.runs)}", test)
            return _outcome(fault, NOT_FIRST if self.first_only else NO, time.monotonic() - began)

    @contextmanager
    def seeded(self, fault: Fault) -> Iterator[None]:
        """Put a fault into the checkout, and take it out in any case."""
        path = self.checkout / fault.file
        text, stat = path.read_text(encoding="utf-8"), path.stat()
        faulty = faulty_text(fault, text)
        try:
            path.write_text(faulty, encoding="utf-8")
            yield
        finally:
            path.write_text(text, encoding="utf-8")
            if not fault.native:  # so that no byte code of the fault is taken for that of the file; objects are rebuilt
                os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
        if changes := self._git("status", "--porcelain"):
            raise SystemExit(f"the tests of `{fault.name}` left changes:\n{changes}")

    def build(self, fault: str | None) -> None:
        """Build the native core, unless the one that is there has this fault (``None``: no fault) already.

        The core is built before it is used, not when a fault is taken out: the build with the next fault does both.
        """
        if self.core == fault:
            return
        self.core = "?"
        done = subprocess.run(["make", "native"], cwd=self.checkout, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(
                f"the native core does not build with `{fault}`:\n{done.stdout[-2000:]}{done.stderr[-4000:]}"
            )
        self.core = fault

    def _git(self, *arguments: str) -> str:
        done = subprocess.run(["git", *arguments], cwd=self.checkout, capture_output=True, text=True, check=True)
        return done.stdout

    def _failing_test(self, run: GateRun, options: Sequence[str]) -> str:
        """Run pytest until a test fails; return the name of that test, "" if none does."""
        spread = ["-n", str(self.workers), "--dist", "loadgroup"] if self.workers else []
        command = [".venv/bin/python", "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *spread, *options]
        environment = os.environ | {"CI": "true"} | run.environment  # with CI the same cases are drawn in each run
        process = subprocess.Popen(
            command,
            cwd=self.checkout,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            output, _ = process.communicate(timeout=self.timeout)
        except subprocess.TimeoutExpired:
            return f"no end after {self.timeout:.0f} s"
        finally:
            _end(process)
        if process.returncode in (PASSED, NO_TESTS):
            return ""
        if process.returncode > INTERRUPTED and not REPORTED.search(output):
            raise SystemExit(f"pytest could not run:\n{output[-4000:]}")
        reported = REPORTED.search(output)
        return reported[1] if reported else f"exit status {process.returncode}"


def _end(process: subprocess.Popen[str]) -> None:
    """End a process with all that it started, where it has not ended."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def _is_below(file: str, paths: Sequence[str]) -> bool:
    return any(Path(file).is_relative_to(path) for path in paths)


def _outcome(fault: Fault, answer: str, seconds: float, run: str = "", test: str = "") -> Outcome:
    return Outcome(fault.name, fault.file, "yes" if fault.native else "no", answer, run, test, f"{seconds:.0f}")


def read_faults(path: Path = FAULTS) -> list[Fault]:
    """Read the faults of a file. Raises :class:`TypeError` for one that has other fields."""
    entries = tomllib.loads(path.read_text(encoding="utf-8"))["fault"]
    return [Fault(**entry | {"first": tuple(entry["first"])}) for entry in entries]


def faulty_text(fault: Fault, text: str) -> str:
    """Return the text of a file with a fault. Raises :class:`ValueError` if what it replaces is not there, or not only
    once although no occurrence is given."""
    number, count = fault.occurrence or 1, text.count(fault.old)
    if count < number or (fault.occurrence is None and count > 1):
        raise ValueError(f"`{fault.name}` does not apply: {fault.file} has its text {count} times")
    parts = text.split(fault.old)
    return fault.old.join(parts[:number]) + fault.new + fault.old.join(parts[number:])


# Tables -----------------------------------------------------------------------------------------


def read_outcomes(path: Path) -> dict[str, Outcome]:
    """Read the last outcome of each fault from a CSV file; none if there is no file."""
    if not path.exists():
        return {}
    with path.open(encoding="utf-8", newline="") as stream:
        return {row["name"]: Outcome(**row) for row in csv.DictReader(stream)}


def _append(path: Path, outcome: Outcome) -> None:
    fresh = not path.exists()
    with path.open("a", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, [one_field.name for one_field in fields(Outcome)])
        if fresh:
            writer.writeheader()
        writer.writerow(asdict(outcome))


def table_text(tables: dict[str, dict[str, Outcome]]) -> str:
    """Return a Markdown table of the outcomes of some trials, by their titles, with what each fault does to a user."""
    effects = {fault.name: fault.why for fault in read_faults()}
    names = dict.fromkeys(name for outcomes in tables.values() for name in outcomes)
    lines = [f"| fault | what a user would see | {' | '.join(tables)} |", f"|---|---|{'---|' * len(tables)}"]
    for name in names:
        cells = [_cell(outcomes.get(name)) for outcomes in tables.values()]
        lines.append(f"| {name} | {effects.get(name, '-')} | {' | '.join(cells)} |")
    sums = [sum(outcome.found == YES for outcome in outcomes.values()) for outcomes in tables.values()]
    cells = [f"**{number} of {len(outcomes)}**" for number, outcomes in zip(sums, tables.values(), strict=True)]
    return "\n".join([*lines, f"| **found** | | {' | '.join(cells)} |", ""])


def _cell(outcome: Outcome | None) -> str:
    if outcome is None:
        return "-"
    return f"`{outcome.test.partition('[')[0]}`" if outcome.found == YES else f"**{outcome.found}**"


# Command line -----------------------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a trial, or print the table of some."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.seed", description=__doc__)
    parser.add_argument("--checkout", type=Path, metavar="DIR", help="a clean clone with a .venv of its own")
    parser.add_argument("--run", action="append", default=[], help="a run of the gate: 'NAME=VALUE ...|OPTION ...'")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="only these faults, tried or not")
    parser.add_argument(
        "--output", type=Path, metavar="TABLE.csv", help="the outcomes; faults that it has are left out"
    )
    parser.add_argument("--first-only", action="store_true", help="run only the tests most likely to find each fault")
    parser.add_argument("--check", action="store_true", help="run the first tests without a fault before")
    parser.add_argument("--workers", type=int, default=0, help="how many processes test at once")
    parser.add_argument("--timeout", type=float, default=3600.0, help="seconds after which tests count as failed")
    parser.add_argument("--table", nargs="+", type=Path, metavar="TABLE.csv", help="print a table of outcomes instead")
    options = parser.parse_args(arguments)
    if options.table:
        sys.stdout.write(table_text({path.stem: read_outcomes(path) for path in options.table}))
        return
    if options.checkout is None or options.output is None or not options.run:
        parser.error("a trial needs --checkout, --output and --run")
    faults, outcomes = read_faults(), read_outcomes(options.output)
    if unknown := set(options.only) - {fault.name for fault in faults}:
        parser.error(f"no fault is called {' or '.join(sorted(unknown))}")
    faults = [f for f in faults if (f.name in options.only if options.only else f.name not in outcomes)]
    runs = [GateRun.from_text(text) for text in options.run]
    trial = Trial(options.checkout.resolve(), runs, options.first_only, options.workers, options.timeout)
    trial.check()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        if options.check:
            trial.try_tests(faults)
        for fault in sorted(faults, key=lambda one_fault: one_fault.native):  # those that need a build come last
            outcome = trial.outcome_of(fault)
            _append(options.output, outcome)
            sys.stdout.write(f"{outcome.name}: {outcome.found} {outcome.test} ({outcome.seconds} s)\n")
            sys.stdout.flush()
    finally:
        trial.build(None)


if __name__ == "__main__":
    main()
