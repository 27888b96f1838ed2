"""Spread tests over the processes of pytest-xdist: those of a group in one, the others in pieces of a file.

The scheduler of ``--dist loadgroup`` hands each test without a group to a process by itself, and after each test it
looks through all that ran before. For N tests these are N² steps. Here a process is handed a piece of a file at once,
and a piece that ran is forgotten.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import pytest
from xdist.scheduler import LoadGroupScheduling

if TYPE_CHECKING:
    from xdist.remote import Producer
    from xdist.workermanage import WorkerController

__all__ = ["PiecesOfFiles", "longest_first", "pieces_of_files"]

SIZE = 20
"""How many tests of a file a process is handed at once. At the end of a run the others wait for one such piece."""


def group_of(item: pytest.Item) -> str:
    """Return the groups of a test; an empty text if it has none."""
    return "_".join(mark.args[0] for mark in item.iter_markers("xdist_group"))


def longest_first(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """Return the tests in the order in which they begin: groups first, as one process has to run all of each, and the
    greatest of them before the others; then files of few tests, since a test of a large file takes little time."""
    groups = [group_of(item) for item in items]
    group_sizes, file_sizes = Counter(groups), Counter(item.path for item in items)

    def key(item_and_group: tuple[pytest.Item, str]) -> tuple[bool, int, str]:
        item, group = item_and_group
        return (False, -group_sizes[group], group) if group else (True, file_sizes[item.path], str(item.path))

    return [item for item, _ in sorted(zip(items, groups, strict=True), key=key)]


def pieces_of_files(tests: Iterable[str], size: int = SIZE) -> dict[str, str]:
    """Return the piece to which each test belongs: its group if it has one, else so many tests of its file.

    >>> pieces_of_files(["a.py::x", "a.py::y", "b.py::x[@]", "a.py::z", "b.py::y@spark"], 2)
    {'a.py::x': 'a.py 0', 'a.py::y': 'a.py 0', 'b.py::x[@]': 'b.py 0', 'a.py::z': 'a.py 1', 'b.py::y@spark': '@spark'}
    """
    pieces, counts = dict[str, str](), Counter[str]()
    for test in tests:
        at = test.rfind("@")
        if at > test.rfind("]"):  # where pytest-xdist adds the name of a group
            pieces[test] = test[at:]
        else:
            file = test.partition("::")[0]
            pieces[test] = f"{file} {counts[file] // size}"
            counts[file] += 1
    return pieces


class PiecesOfFiles(LoadGroupScheduling):
    """The scheduler of ``--dist loadgroup``, but that it hands out pieces of files in the order of the tests."""

    def __init__(self, config: pytest.Config, log: Producer) -> None:
        super().__init__(config, log)
        config.option.loadscopereorder = False  # or the largest files would come first
        self._pieces: dict[str, str] = {}

    def add_node_collection(self, node: WorkerController, collection: Sequence[str]) -> None:
        super().add_node_collection(node, collection)
        self._pieces = self._pieces or pieces_of_files(collection)

    def _split_scope(self, nodeid: str) -> str:
        return self._pieces[nodeid]

    def mark_test_complete(self, node: WorkerController, item_index: int, duration: float = 0) -> None:  # noqa: ARG002
        """Note that a test ran, and forget its piece if all of it did."""
        test = self.registered_collections[node][item_index]
        pieces, piece = self.assigned_work[node], self._pieces[test]
        pieces[piece][test] = True
        if all(pieces[piece].values()):
            del pieces[piece]
        self._reschedule(node)
