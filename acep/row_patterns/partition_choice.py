"""Choose the partitions that a budget pays for, where a clause runs over a stream.

Without some of its rows a partition has other matches, so a budget gives up whole partitions, and for good: the result
has no row that the exact one has not. Partitions are chosen by *cells*, into which a hash spreads their keys.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import mmh3
import numpy as np
import numpy.typing as npt

from acep.budget.budget import Budget
from acep.errors import DataWarning, QueryError, warn_caller
from acep.events.tables import InputSchema, attribute_tick
from acep.learning.estimation.recall import Tally
from acep.matches.records import Counts
from acep.plan.ordered.ordered_plan import OrderedPlan
from acep.row_patterns.clause_pace import ClausePace
from acep.row_patterns.key_hashes import KeyHashes
from acep.row_patterns.partition_states import PartitionStates

__all__ = ["CELLS", "POLICIES", "ClauseBudget", "PartitionChoice", "no_partitions_error"]

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
POLICIES = ("history", "random")
CELLS = 256
CREDIT = 64
"""Rows whose touches may be taken before the first one."""
AHEAD = 1024
"""Rows whose touches a push of fewer rows may take ahead. Larger pushes are fitted into their allowance one by one."""
FADE = 0.95
"""The weight of old figures of cells after :data:`AHEAD` rows."""
LATELY = 4
"""The rows after each of which :data:`FADE` weighs the touches of late, which tell whether open matches grow."""
PRIOR = 0.02
"""The share of all touches that is added to each cell, with the mean value, so that a few matches count for little."""
PLANNED = 0.9
"""The share of the allowance that the cells which stay open may take as a rule; the rest pays what was taken ahead."""
FORGET = 0.98
"""The weight of an old comparison of touches after a push."""
SPARE = 0.7
"""The share of the allowance below which a cell is opened again, for partitions that come for the first time."""
ROW_BYTES = 24
"""The bytes of a row that is kept, besides its columns: codes and places."""
PARTITION_BYTES = 400
"""The bytes of a partition: its key, and its place in the tables of keys and figures."""
NUMBERS = ("recent_rows", "balance", "clock", "changed_at", "shed", "spent", "kept_bytes")
PAIRS = ("compared", "lately")
"""The numbers, and the pairs of numbers, of a state."""


@dataclass(frozen=True)
class ClauseBudget:
    """The settings of a user: the bounds, ``"history"`` or ``"random"``, and the seed of the hash."""

    budget: Budget
    policy: str = "history"
    seed: int = 0

    def make_choice(self, plan: OrderedPlan, schema: InputSchema) -> PartitionChoice:
        """Return the choice of the partitions of a plan over rows of a schema. Raises :class:`QueryError` for a clause
        without PARTITION BY."""
        if not plan.partition:
            raise no_partitions_error()
        tick_ns = attribute_tick(plan.schema) if schema.instants else schema.tick_ns
        return PartitionChoice(self, len(plan.states.states), tick_ns)


def no_partitions_error() -> QueryError:
    """Return the error for a budget of a clause without PARTITION BY."""
    return QueryError("a budget gives up partitions, and this clause has none", hint="add PARTITION BY",
                      code="option_invalid")  # fmt: skip


class PartitionChoice:
    """The cells whose partitions are searched. ``states``: those of the pattern, so many touches a searched row takes;
    ``tick_ns``: the length of a tick of the clock, if it is known.

    By cell: ``is_open``; ``is_whole``, no partition of it was ever given up; ``rows`` and ``matches`` of all partitions
    since the beginning; ``touches`` and ``values`` (matches), both of recent rows, which :data:`FADE` weighs.
    ``shed``: rows that were given up; ``spent``: touches so far; ``kept_bytes``: the most that was kept."""

    def __init__(self, settings: ClauseBudget, states: int, tick_ns: Any) -> None:
        self.settings, self.states = settings, states
        self.budget = settings.budget
        self.pace = ClausePace.from_budget(settings.budget, tick_ns)
        self.is_open, self.is_whole = np.ones(CELLS, bool), np.ones(CELLS, bool)
        self.rows, self.matches = np.zeros(CELLS), np.zeros(CELLS)
        self.touches, self.values, self.recent_rows = np.zeros(CELLS), np.zeros(CELLS), 0.0
        self.balance = CREDIT * (self.budget.work or 0.0)
        self.clock = 0
        self.lost_keys = KeyHashes()
        self.changed_at = 0.0  # rows seen when a cell was closed or opened
        self.shed = self.spent = self.kept_bytes = 0
        self.is_warned = False
        self.lately = [0.0, 0.0]  # touches and rows of late
        self.compared = [0.0, 0.0]  # touches that were expected, and those that came
        self._planned = 0.0  # of this push
        self.searching = 0.0  # seconds of this push that were spent in searching
        self._push = 0, 0  # the rows of this push, and the touches before it

    @property
    def sample_cells(self) -> int:
        """Return how many of the first cells are given up last, to estimate the recall from."""
        return int(np.ceil(CELLS * self.budget.estimate))

    def choose(self, partitions: PartitionStates, codes: Ints, clock: int | None) -> Flags:
        """Take in the rows of a push by the codes of their partitions; return by code the partitions that are given up
        now."""
        is_lost = self._place(partitions, codes)
        n_rows = len(codes)
        self._compare()
        self._push, self.searching = (n_rows, self.spent), 0.0
        np.add.at(self.rows, partitions.cells[codes], 1)
        self._fade(n_rows)
        room, rate = self._allow(n_rows, clock)
        if (
            not is_lost.any()
            and self.is_open.all()
            and self.excess * self.states * (int(partitions.sizes.sum()) + n_rows) <= room
        ):
            return is_lost  # all there is may be searched
        counts = np.bincount(codes, minlength=len(partitions.cells))
        counts[is_lost] = 0
        loads = self.excess * self._count_loads(partitions, counts, clock)
        if loads.sum() > room + (rate * AHEAD if self.pace is None else 0.0):
            if n_rows >= AHEAD or self.budget.latency is not None:
                self._close(self._cells_within(loads, room))
            elif n_rows:
                self._close_by_rate(loads, PLANNED * rate)
        elif n_rows:
            self._open(rate)
        self._planned = float(loads[self.is_open].sum()) / self.excess
        return is_lost | self._lose(partitions)

    def _compare(self) -> None:
        """Compare the touches of the push before with those that were expected."""
        if self._planned:
            self.compared = [FORGET * total + part for total, part in zip(
                self.compared, (self._planned, self.spent - self._push[1]), strict=True)]  # fmt: skip
            self._planned = 0.0

    @property
    def excess(self) -> float:
        """Return how many touches come for one that was expected: walks that end are searched again."""
        expected, actual = self.compared
        return max(1.0, actual / expected) if expected else 1.0

    def _place(self, partitions: PartitionStates, codes: Ints) -> Flags:
        """Give new partitions their cells; return by code those that were given up before, or whose cell is closed."""
        is_lost = np.zeros(len(partitions.cells), bool)
        is_new = np.zeros(len(partitions.cells), bool)
        is_new[codes] = partitions.cells[codes] < 0
        new = np.flatnonzero(is_new)
        if not len(new):
            return is_lost
        seed = self.settings.seed % 2**32
        texts = (repr(partitions.keys[code]) for code in new.tolist())
        hashes = np.fromiter((mmh3.hash64(text, seed)[0] for text in texts), np.int64, len(new))
        cells = hashes % CELLS
        partitions.hashes[new], partitions.cells[new] = hashes, cells
        was_lost, is_open = self.lost_keys.contain(hashes), self.is_open[cells]
        is_lost[new] = was_lost | ~is_open
        self.is_whole[cells[~is_open]] = False
        self.lost_keys.add(hashes[~was_lost & ~is_open])
        return is_lost

    def _fade(self, n_rows: int) -> None:
        weight = FADE ** (n_rows / AHEAD)
        self.touches *= weight
        self.values *= weight
        self.recent_rows = self.recent_rows * weight + n_rows
        weight = FADE ** (n_rows / LATELY)
        self.lately = [self.lately[0] * weight, self.lately[1] * weight + n_rows]

    def _allow(self, n_rows: int, clock: int | None) -> tuple[float, float]:
        """Return the touches that a push may take, and those a row as long as nothing changes."""
        self.clock = self.clock if clock is None else clock
        room, rate = np.inf, np.inf
        if self.budget.work is not None:
            self.balance += self.budget.work * n_rows
            room, rate = self.balance, self.budget.work
        if self.pace is not None and n_rows:
            limit = self.pace.allow(n_rows, self.clock)
            room, rate = min(room, limit), min(rate, limit / n_rows)
        return room, rate

    def _count_loads(self, partitions: PartitionStates, counts: Ints, clock: int | None) -> Floats:
        """Return the touches that a push takes by cell."""
        is_searched = partitions.find_searched(np.flatnonzero(counts), clock)
        walks = (partitions.waits >= 0) & (clock is not None and partitions.deadlines >= clock)
        rows = (counts + np.where(walks, 0, partitions.sizes)) * is_searched
        used = np.flatnonzero(rows)
        used = used[self.is_open[partitions.cells[used]]]
        return self.states * np.bincount(partitions.cells[used], rows[used], CELLS).astype(np.float64)

    def _rank_cells(self) -> Ints:
        """Return the cells, those to be kept first: the sample, then by matches a touch under ``"history"``."""
        if self.settings.policy == "random" or not self.values.any():
            return np.arange(CELLS)
        prior = PRIOR * self.touches.sum()
        value = (self.values + prior * self.values.sum() / self.touches.sum()) / (self.touches + prior)
        value[: self.sample_cells] = np.inf
        return np.argsort(-value, kind="stable")

    def _cells_within(self, loads: Floats, room: float) -> Flags:
        """Return the open cells that stay open if their loads are to fit into ``room``."""
        if self.pace is not None and not self.pace.search.has_contrast:  # what half of it saves is measured first
            room = max(room, float(loads.sum()) / 2)
        stays = self.is_open.copy()
        for cell in self._rank_cells().tolist():
            if stays[cell] and loads[cell] > 0:
                stays[cell] = loads[cell] <= room
                room -= loads[cell] if stays[cell] else 0.0
        return stays

    def _close_by_rate(self, loads: Floats, rate: float) -> None:
        """Close cells so that a row takes no more touches than ``rate``, by those of late. ``loads``: this push."""
        touches = (self.touches + loads) * self.is_open
        touches_of_late = self.lately[0] + float(loads.sum())
        shares = touches * (touches_of_late / max(self.lately[1] * float(touches.sum()), 1.0))
        stays = self._cells_within(shares, rate)
        self.lately[0] *= float(shares[stays].sum()) / max(float(shares.sum()), 1e-9)
        self._close(stays)

    def _close(self, stays: Flags) -> None:
        if not stays.all():
            self.changed_at = float(self.rows.sum())
        self.is_open = stays

    def _open(self, rate: float) -> None:
        """Open a cell again where there is room for it."""
        seen = float(self.rows.sum())
        if self.is_open.all() or seen - self.changed_at < AHEAD:
            return
        share = float(self.touches.sum()) / self.recent_rows
        if share * (1 + 1 / max(int(self.is_open.sum()), 1)) <= SPARE * rate:
            closed = [cell for cell in self._rank_cells().tolist() if not self.is_open[cell]]
            self.is_open[closed[0]] = True
            self.changed_at = seen

    def _lose(self, partitions: PartitionStates) -> Flags:
        """Return by code the partitions of closed cells, whose keys are given up."""
        is_lost: Flags = (partitions.cells >= 0) & ~self.is_open[partitions.cells]
        self.is_whole[partitions.cells[is_lost]] = False
        self.lost_keys.add(partitions.hashes[is_lost])
        return is_lost

    def fit_memory(self, partitions: PartitionStates, row_bytes: float, rows: int) -> Flags:
        """Return by code the partitions to be given up so that the rows kept, of ``row_bytes`` each, fit into the bound
        on memory."""
        row_bytes += ROW_BYTES
        fixed = len(partitions) * PARTITION_BYTES + self.lost_keys.size
        size = int(rows * row_bytes + fixed)
        if self.budget.memory is None or size <= int(self.budget.memory):
            self.kept_bytes = max(self.kept_bytes, size)
            return np.zeros(len(partitions.cells), bool)
        used = np.flatnonzero(partitions.cells >= 0)
        sizes = row_bytes * partitions.sizes[used] + PARTITION_BYTES
        loads = np.bincount(partitions.cells[used], sizes, CELLS).astype(np.float64)
        self._close(self._cells_within(loads, PLANNED * int(self.budget.memory) - self.lost_keys.size))
        is_lost = self._lose(partitions)
        remaining_bytes = int(loads.sum() - sizes[is_lost[used]].sum()) + self.lost_keys.size
        self.kept_bytes = max(self.kept_bytes, remaining_bytes)
        return is_lost

    def record(self, cells: Ints, rows: Ints, matches: Ints) -> None:
        """Take in how many rows of some partitions were searched, by their cells, and the matches that came of it."""
        touches = self.states * rows
        np.add.at(self.touches, cells, touches)
        np.add.at(self.values, cells, matches)
        np.add.at(self.matches, cells, matches)
        total = int(touches.sum())
        self.spent += total
        self.balance -= total
        self.lately[0] += total

    def end_push(self, seconds: float) -> None:
        """Record the end of a push, which took so many seconds. Warn once of a bound on time that cannot be kept."""
        assert self.pace is not None
        n_rows, spent = self._push
        self.pace.record(n_rows, self.spent - spent, seconds, self.searching)
        self._compare()
        self._push, self.searching = (0, self.spent), 0.0
        if self.pace.remark and not self.is_warned:
            self.is_warned = True
            warn_caller(f"{self.pace.remark}, so nothing more is given up for it", DataWarning)

    def add_to(self, counts: Counts) -> Counts:
        """Return the counts of a stream with what was given up, and with what the recall is estimated from."""
        counts = counts.replace(touches=self.spent, shed=self.shed, skipped=self.shed)
        if self.budget.memory is not None:
            counts = counts.replace(memory=self.kept_bytes)
        tally = self._make_tally()
        counts.tallies = (tally, None)
        counts.unknown = "" if tally is not None else self._unknown()
        return counts

    def _find_sample(self) -> Flags:
        """Return the cells that the recall is estimated from: those before the first one that was not kept whole."""
        end = CELLS if self.settings.policy == "random" else self.sample_cells
        first_lost = int(np.argmin(self.is_whole)) if not self.is_whole.all() else CELLS
        is_sample: Flags = np.less(np.arange(CELLS), min(end, first_lost))
        return is_sample

    def _make_tally(self) -> Tally | None:
        """Return the sums of an estimate: as if matches came by row as in the sample, and as if they came by key. The
        two differ where some keys have many rows; the interval then has both."""
        is_sample = self._find_sample()
        matches = self.matches[is_sample]
        n_found, total = float(self.matches.sum()), float(matches.sum())
        if not total or not self.budget.estimate:
            return None
        factors = float(self.rows.sum()) / float(self.rows[is_sample].sum()), CELLS / len(matches)
        recalls = [min(n_found / (factor * total), 1.0) for factor in factors]
        x = 2 * n_found / sum(recalls)
        squares, factor = float((matches**2).sum()), max(factors)
        return Tally(
            units=float(np.count_nonzero(matches)),
            x=x,
            y=n_found,
            half=x * abs(recalls[0] - recalls[1]) / 2,
            xx=factor**2 * (1 - 1 / factor) * squares,
            whole=factor**2 * squares,
        )

    def _unknown(self) -> str:
        if not self.budget.estimate:
            return "no estimate was asked for"
        if not self.is_whole[: self.sample_cells].all():
            return "partitions of the sample were given up too"
        return "no partition of the sample had a match"

    def dump(self) -> dict[str, Any]:
        """Return the state as JSON-like data."""
        figures = {name: getattr(self, name).tolist() for name in ("rows", "matches", "touches", "values")}
        flags = {name: np.flatnonzero(~getattr(self, name)).tolist() for name in ("is_open", "is_whole")}
        self._compare()
        numbers = {name: getattr(self, name) for name in NUMBERS} | {name: getattr(self, name) for name in PAIRS}
        return (
            figures
            | flags
            | numbers
            | {"lost_keys": self.lost_keys.dump()}
            | {"pace": None if self.pace is None else self.pace.dump()}
        )

    def load(self, data: Mapping[str, Any]) -> None:
        """Read the state of :meth:`dump`. Raises :class:`ValueError`, :class:`KeyError` or :class:`TypeError` for other
        data."""
        for name in ("rows", "matches", "touches", "values"):
            figures = np.array(data[name], np.float64)
            if figures.shape != (CELLS,) or not np.isfinite(figures).all() or (figures < 0).any():
                raise ValueError(name)
            setattr(self, name, figures)
        for name in ("is_open", "is_whole"):
            flags = np.ones(CELLS, bool)
            flags[np.array([cell for cell in data[name] if 0 <= cell < CELLS], np.int64)] = False
            setattr(self, name, flags)
        for name in PAIRS:
            first, second = map(float, data[name])
            if not (np.isfinite([first, second]).all() and first >= 0 and second >= 0):
                raise ValueError(name)
            setattr(self, name, [first, second])
        for name in NUMBERS:
            number = type(getattr(self, name))(data[name])
            if not np.isfinite(number):
                raise ValueError(name)
            setattr(self, name, number)
        self.lost_keys = KeyHashes.load(data["lost_keys"])
        if self.pace is not None:
            self.pace.load(data["pace"])
