"""Run core sessions with the same plans as one, on several threads: each is a lane, with some of the partitions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from acep.events.pushed_rows import Ints, Types, Valid, Words
from acep.native import _native

__all__ = ["FEW", "Lanes"]

FEW = 4096
"""The least rows of a batch for which threads are begun: to begin one takes as long as some hundred events."""

NUMBERS = ("start", "end", "error", "bundle")  # of matches, one each
COLUMNS = (*NUMBERS, "keys", "ids", "vars", "values", "valid", "at")  # of matches, end to end
LISTED = ("states", "sequences", "utility")  # of partial matches, one each besides those of matches
COUNTS = ("first", "last", "bundle", "error", "count")  # of rows of counts, one each where there are any

State = bytes
Rows = dict[str, Any]


@dataclass
class Lanes:
    """The lanes of a stream in place of its session: it has the methods of one without a budget. ``few``: with fewer
    rows a batch is not shared.

    Each lane is given the rows of its partitions and all times, so what is found is that of one session. Matches come
    lane by lane; counts come in the order of one session.
    """

    cores: Sequence[_native.Session]
    threads: int
    few: int = FEW

    def __post_init__(self) -> None:
        for number, core in enumerate(self.cores):
            core.set_lane(number, len(self.cores))

    def push(self, ts: Ints, types: Types, valid: Valid, ids: Any, columns: list[Words], *, last: bool = False) -> None:
        """Push a batch to all lanes."""
        threads = self.threads if len(ts) >= self.few else 1
        _native.push_lanes(self.cores, threads, ts, types, valid, ids, columns, last)

    def advance(self, clock: int) -> None:
        """Advance the time of all lanes."""
        for core in self.cores:
            core.advance(clock)

    def finish(self) -> None:
        """End the stream in all lanes."""
        _native.finish_lanes(self.cores, self.threads)

    def take(self, plan: int) -> Rows:
        """Return the matches of a plan since the last call, those of each lane one after the other."""
        return _join_matches([core.take(plan) for core in self.cores])

    def take_in_order(self, plan: int, ranks: npt.NDArray[np.uint16]) -> Rows:
        """Return the same in output order; the matches bind events. ``ranks``: of each variable, by its name."""
        return _native.take_in_order(self.cores, self.threads, plan, ranks)

    def take_counts(self, plan: int, last: bool) -> Rows:
        """Return the rows of counts of a plan since the last call."""
        return _join_counts([core.take_counts(plan, last) for core in self.cores])

    def take_tally(self, plan: int) -> Rows:
        """Return what was counted of a plan since the last call."""
        parts = [core.take_tally(plan) for core in self.cores]
        return _join_counts(parts) | {"total": sum(int(part["total"]) for part in parts)}

    def count_totals(self, plan: int) -> list[tuple[int, int]]:
        """Return pairs of an error and a number of matches; a pair for each lane that has some."""
        return [pair for core in self.cores for pair in core.count_totals(plan)]

    def tally(self, plan: int, kind: int) -> None:
        """Only count the matches of a plan from now on."""
        for core in self.cores:
            core.tally(plan, kind)

    def choose_search_ways(self, index: int, future: int) -> None:
        """Set when lanes use an index over partial matches and the known future."""
        for core in self.cores:
            core.choose_search_ways(index, future)

    def work(self, plan: int) -> tuple[int, int, int]:
        """Return the work done for a plan: nodes, touches and matches."""
        nodes, touches, matches = self._sums(lambda core: core.work(plan))
        return nodes, touches, matches

    def windowed(self, plan: int) -> tuple[int, int]:
        """Return how many events came for a plan behind match windows, and how many reached its engine."""
        came, reached = self._sums(lambda core: core.windowed(plan))
        return came, reached

    def partial_matches(self, plan: int, clock: int) -> int:
        """Return the number of a plan's partial matches whose window is not over."""
        return sum(core.partial_matches(plan, clock) for core in self.cores)

    def list_partial_matches(self, plan: int, limit: int, apart: bool, states: list[int], clock: int) -> Rows:
        """Return partial matches of a plan, as many as ``limit`` of each lane, lane by lane."""
        parts = [core.list_partial_matches(plan, limit, apart, states, clock) for core in self.cores]
        totals = [int(part["total"]) for part in parts]
        total = -1 if min(totals) < 0 else sum(totals)
        return _end_to_end(parts, (*COLUMNS, *LISTED)) | {"total": total}

    @property
    def bytes(self) -> int:
        """Return the bytes that the lanes hold."""
        return sum(core.bytes for core in self.cores)

    def used_texts(self, codes: int) -> npt.NDArray[np.uint8]:
        """Return for each code whether a lane refers to its text."""
        flags: npt.NDArray[np.uint8] = np.maximum.reduce([core.used_texts(codes) for core in self.cores])
        return flags

    def used_ids(self) -> Ints:
        """Return the ids that lanes may still write, rising."""
        return np.unique(np.concatenate([core.used_ids() for core in self.cores]))

    def kept(self) -> list[int]:
        """Return the numbers that sessions keep of their partition tables, lane by lane."""
        return [number for core in self.cores for number in core.kept()]

    def set_kept(self, numbers: Sequence[int]) -> None:
        """Set these numbers after loading."""
        numbers_per_lane, surplus = divmod(len(numbers), len(self.cores))
        if surplus:
            raise ValueError("kept: as many numbers for each lane")
        for lane, core in enumerate(self.cores):
            core.set_kept([*numbers[lane * numbers_per_lane : (lane + 1) * numbers_per_lane]])

    def dump(self) -> list[State]:
        """Return the state of each lane."""
        return [core.dump() for core in self.cores]

    def load(self, states: Sequence[State], clock: int) -> None:
        """Load the state of each lane."""
        for core, state in zip(self.cores, states, strict=True):
            core.load(state, clock)

    def _sums(self, numbers_of: Callable[[_native.Session], Sequence[int]]) -> list[int]:
        return [sum(numbers) for numbers in zip(*map(numbers_of, self.cores), strict=True)]


def _join_matches(parts: Sequence[Rows]) -> Rows:
    """Return the matches of all lanes as one; match points without events are in the order of their events."""
    parts = [part for part in parts if len(part["start"])] or [*parts[:1]]
    if len(parts) == 1:
        return parts[0]
    matches = _end_to_end(parts, COLUMNS)
    shapes = [part["shape"] for part in parts]
    alike = all(shape is not None and np.array_equal(shape, shapes[0]) for shape in shapes)
    matches["shape"] = shapes[0] if alike else None
    matches["ordered"] = False
    if len(matches["at"]):
        order = np.argsort(matches["at"], kind="stable")
        matches |= {name: _rows(matches[name], order) for name in (*NUMBERS, "keys")}
    return matches


def _end_to_end(parts: Sequence[Rows], columns: Sequence[str]) -> Rows:
    """Return matches of all lanes one after the other."""
    rows: Rows = {name: np.concatenate([part[name] for part in parts]) for name in columns}
    bases = np.cumsum([0, *(part["offsets"][-1] for part in parts)])
    offsets = [part["offsets"][1:] + base for part, base in zip(parts, bases[:-1], strict=True)]
    return rows | {"offsets": np.concatenate([np.zeros(1, np.int64), *offsets])}


def _join_counts(parts: Sequence[Rows]) -> Rows:
    """Return the rows of all lanes as those of one session: in the order of the events that began them."""
    begins = np.cumsum([0, *(len(part["first"]) for part in parts)])
    counts: Rows = {name: np.concatenate([part[name] for part in parts]) for name in (*COUNTS, "keys", "at")}
    order = np.argsort(counts["at"], kind="stable")
    new_rows = np.empty(len(order), np.int64)
    new_rows[order] = np.arange(len(order))
    counts |= {name: _rows(counts[name], order) for name in (*COUNTS, "keys")}
    counts["large"] = [
        (int(new_rows[begin + row]), number)
        for begin, part in zip(begins[:-1].tolist(), parts, strict=True)
        for row, number in part.get("large", ())
    ]
    return counts


def _rows(column: Ints, order: npt.NDArray[np.intp]) -> Ints:
    """Return a column with its rows in an order; it has some values for each row, or none."""
    return column.reshape(len(order), -1)[order].reshape(-1) if len(column) else column
