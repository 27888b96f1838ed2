"""Let a test fail that passed but took longer than a test may that is not marked long.

A test takes the time of its setup, its call and its teardown together. A fixture that several tests share is counted
apart from them, and named. On a machine that is busy with other things a test takes no longer: only that time counts in
which its processes had a core, or in which a core was idle although they waited.
"""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Callable, Generator
from pathlib import Path
from typing import NamedTuple

import pytest

__all__ = ["Clocks", "DurationLimit", "read_clocks"]

TICKS = os.sysconf("SC_CLK_TCK")
STAGES = ("setup", "call", "teardown")


class Clocks(NamedTuple):
    """Readings, in seconds, of the wall clock, of the processor time of a test's processes, and of the time in which
    cores of the machine were idle, all cores added up."""

    wall: float
    processor: float
    idle: float

    def seconds_since(self, start: Clocks) -> float:
        """Return how long something took, without the time in which it waited for cores that were busy with others.

        >>> start = Clocks(0, 0, 0)
        >>> Clocks(60, 5, 0).seconds_since(start)  # on a busy machine
        5
        >>> Clocks(60, 5, 80).seconds_since(start)  # it waited for something, though a core was idle
        60
        """
        return min(self.wall - start.wall, self.processor - start.processor + self.idle - start.idle)


def read_clocks(*, uses_spark: bool = False) -> Clocks:
    """Read the clocks now. Of processes that were begun, those count that ended; of Spark's, those that run, too."""
    with open("/proc/stat", encoding="ascii") as file:  # noqa: PTH123 - it is read several times a test
        idle = int(file.readline().split()[4]) / TICKS
    return Clocks(time.perf_counter(), seconds_of_tree() if uses_spark else sum(os.times()[:4]), idle)


def seconds_of_tree() -> float:
    """Return the processor time of this process, of all that it began and that run, and of those of them that ended."""
    ticks, pending = 0, [str(os.getpid())]
    while pending:
        folder = Path("/proc") / pending.pop()
        try:
            ticks += sum(map(int, (folder / "stat").read_text().rpartition(")")[2].split()[11:15]))
            for children in folder.glob("task/*/children"):
                pending += children.read_text().split()
        except OSError:  # it has ended, and is counted with its parent
            continue
    return ticks / TICKS


class DurationLimit:
    """A plugin of pytest that limits the ``seconds`` of each test that is marked neither long nor whole."""

    def __init__(self, seconds: float, read: Callable[..., Clocks] = read_clocks) -> None:
        self._limit, self._read_clocks = seconds, read
        self._item: pytest.Item | None = None
        self._is_settled = False
        self._of_test: dict[str, float] = {}
        self._of_fixture: defaultdict[pytest.FixtureDef[object], dict[str, float]] = defaultdict(dict)
        self._late: set[pytest.FixtureDef[object]] = set()
        self._are_settled: set[pytest.FixtureDef[object]] = set()
        self._shared = 0.0

    def _read(self) -> Clocks:
        item = self._item
        return self._read_clocks(uses_spark=item is not None and item.get_closest_marker("spark") is not None)

    def _take(self, stage: str) -> Generator[None, object, object]:
        start, shared = self._read(), self._shared
        try:
            return (yield)
        finally:
            self._of_test[stage] = self._read().seconds_since(start) - (self._shared - shared)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None, object, object]:
        self._item, self._is_settled, self._of_test = item, False, {}
        return (yield from self._take("setup"))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self) -> Generator[None, object, object]:
        return (yield from self._take("call"))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self) -> Generator[None, object, object]:
        return (yield from self._take("teardown"))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[object]) -> Generator[None, object, object]:
        """Count a fixture apart that several tests share."""
        if fixturedef.scope == "function":
            return (yield)
        self._of_fixture[fixturedef] = {}
        start, shared = self._read(), self._shared

        def end_teardown() -> None:
            self._add(fixturedef, "teardown", *begun.pop())

        begun: list[tuple[Clocks, float]] = []
        fixturedef.addfinalizer(end_teardown)  # the first to be added is the last to run
        try:
            return (yield)
        finally:
            self._add(fixturedef, "setup", start, shared)
            fixturedef.addfinalizer(lambda: begun.append((self._read(), self._shared)))

    def _add(self, fixture: pytest.FixtureDef[object], stage: str, start: Clocks, shared: float) -> None:
        """Note what a shared fixture took, without what others took inside it."""
        seconds = self._read().seconds_since(start) - (self._shared - shared)
        self._shared += seconds
        self._of_fixture[fixture][stage] = seconds
        # Whichever test is the first on Spark starts the session of all.
        if fixture.argname != "spark" and sum(self._of_fixture[fixture].values()) > self._limit:
            self._late.add(fixture)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if any(item.get_closest_marker(name) for name in ("long", "whole")):
            self._are_settled |= self._late
            return report
        if not report.passed:
            self._is_settled = True
        elif not self._is_settled and (complaint := self._complaint(item)):
            report.outcome, report.longrepr, self._is_settled = "failed", complaint, True
        return report

    def _complaint(self, item: pytest.Item) -> str:
        if late := self._late - self._are_settled:
            fixture = late.pop()
            self._are_settled.add(fixture)
            what, durations = f"the fixture `{fixture.argname}` of its {fixture.scope}", self._of_fixture[fixture]
        elif sum(self._of_test.values()) > self._limit:
            what, durations = "it", self._of_test
        else:
            return ""
        stages = ", ".join(f"{stage} {durations[stage]:.1f} s" for stage in STAGES if stage in durations)
        mark = "move it into a test and mark that" if isinstance(item, pytest.DoctestItem) else "mark the test"
        return (
            f"{item.nodeid}: {what} took {sum(durations.values()):.1f} s ({stages}), and a test of `make test` may "
            f"take {self._limit:g} s. Make it faster, or {mark} `long`: then `make test-long` and `.ci/run` run it. "
            "With `whole` only `make test-all` does."
        )
