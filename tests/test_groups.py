"""Tests are spread over processes so that each runs once, and those of a group in one process."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from xdist.remote import Producer

from tests.groups import SIZE, PiecesOfFiles, longest_first

TESTS = [f"{file}.py::test[{number}]" for file in "abc" for number in range(2 * SIZE + 1)]
TESTS += ["d.py::test@spark", "a.py::test@spark", "b.py::test@spark", "b.py::test@other"]


class FakeNode:
    """A process that is told which tests to run."""

    def __init__(self, name: str) -> None:
        self.gateway = SimpleNamespace(id=name)
        self.pending: list[int] = []
        self.ran: list[int] = []
        self.shutting_down = False

    def send_runtest_some(self, numbers: Sequence[int]) -> None:
        self.pending += numbers

    def shutdown(self) -> None:
        self.shutting_down = True


@pytest.fixture
def scheduler(request: pytest.FixtureRequest) -> Any:
    option = SimpleNamespace(loadscopereorder=True, tx=["popen", "popen"], maxprocesses=None, numprocesses=2)
    config = SimpleNamespace(option=option, getvalue=vars(option).get, hook=request.config.hook)
    return PiecesOfFiles(config, Producer("scheduler", enabled=False))  # type: ignore[arg-type]


def begin(scheduler: Any) -> tuple[FakeNode, FakeNode]:
    nodes = FakeNode("one"), FakeNode("two")
    for node in nodes:
        scheduler.add_node(node)
    for node in nodes:
        scheduler.add_node_collection(node, TESTS)
    scheduler.schedule()
    return nodes


def run_next(scheduler: Any, node: FakeNode) -> None:
    number = node.pending.pop(0)
    node.ran.append(number)
    scheduler.mark_test_complete(node, number)


def test_each_test_runs_once_and_a_group_in_one_process(scheduler: Any) -> None:
    nodes = begin(scheduler)
    while any(node.pending for node in nodes):
        for node in nodes:
            if node.pending:
                run_next(scheduler, node)
    assert sorted(number for node in nodes for number in node.ran) == [*range(len(TESTS))]
    spark = {number for number, test in enumerate(TESTS) if test.endswith("@spark")}
    assert [spark & {*node.ran} for node in nodes if spark & {*node.ran}] == [spark]
    assert all(len(node.ran) > SIZE for node in nodes)
    assert all(node.shutting_down for node in nodes)
    assert not scheduler.has_pending


def test_what_a_process_that_ended_had_left_runs_in_another(scheduler: Any) -> None:
    first, second = begin(scheduler)
    for _ in range(SIZE + 3):
        run_next(scheduler, first)
    crashed = scheduler.remove_node(first)
    assert crashed == TESTS[first.pending[0]]
    while second.pending:
        run_next(scheduler, second)
    assert sorted(first.ran + second.ran) == [*range(len(TESTS))]


def test_groups_begin_and_then_files_of_few_tests(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nmarkers = xdist_group")
    one = "import pytest\ndef test_a(): pass\n@pytest.mark.xdist_group('one')\ndef test_b(): pass\n"
    two = "import pytest\n@pytest.mark.xdist_group('two')\n@pytest.mark.parametrize('x', range(2))\ndef test_c(x): pass"
    pytester.makepyfile(test_1="def test_d(): pass\ndef test_e(): pass\ndef test_f(): pass", test_2=one, test_3=two)
    items, _ = pytester.inline_genitems()
    assert [item.name for item in longest_first(items)] == [
        *("test_c[0]", "test_c[1]", "test_b"),
        *("test_a", "test_d", "test_e", "test_f"),
    ]
