"""Run a plan as a finer one, whose partitions are parts of its own, and give the matches of its own partitions.

Equalities that tie all variables let an engine look at the events of one value alone
(:attr:`acep.plan.compile.Plan.finer`). What is given stays what it is without them: the key, the bundles, and matches
of one event whose value is null.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from acep.events.batch import Batch, Column, column_of_values
from acep.matches.bundle_chain import BundleChain
from acep.matches.counted import Counted
from acep.matches.found_columns import FoundColumns, concatenate
from acep.matches.found_state import found_of, plain_of
from acep.matches.records import Counts, Found
from acep.plan.choice import decides_at_once
from acep.plan.compile import Plan
from acep.reference.single_events import SingleEvents, matches_one_event
from acep.reference.state import dump_runtime, load_runtime
from acep.runtime.steps import EventsCame, StreamEnded, StreamStep, TimePassed
from acep.storage.plain_data import from_json, to_plain

if TYPE_CHECKING:
    from acep.matches.partials.partial_columns import PartialColumns

__all__ = ["FinerExecutor", "join_matches", "null_rows", "plain_record", "record_of"]

RECORD = 8
"""The first fields of a match, which plain data hold."""


class InnerExecutor(Protocol):
    """The executor of the finer plan, on the native core."""

    def matches(self, step: StreamStep) -> Sequence[Found]: ...
    def take_counted(self) -> Counted | int | None: ...
    @property
    def counts_only(self) -> bool: ...
    @property
    def counts_points(self) -> bool: ...
    def earliest_open_end(self) -> int | None: ...
    def all_counts(self) -> list[Counts]: ...
    def live(self) -> int: ...
    def live_in(self, states: Sequence[int]) -> int: ...
    def partial_matches(self, limit: int, states: Sequence[int], *, apart: bool) -> PartialColumns: ...
    def dump(self) -> Any: ...
    def load(self, data: Any) -> None: ...


@dataclass
class FinerExecutor:
    """``plan`` on the native core, where ``inner`` runs its finer plan."""

    plan: Plan
    inner: InnerExecutor
    clock: int | None = None
    chain: BundleChain = field(init=False)
    singles: SingleEvents | None = field(init=False)
    waiting: list[Sequence[Found]] = field(default_factory=list)  # those before them may still come
    alone: list[Found] = field(default_factory=list)  # of one event, to be counted

    def __post_init__(self) -> None:
        self.chain = BundleChain(len(self.plan.keys), self.plan.window.span)
        self.waits = not decides_at_once(self.plan)
        self.singles = SingleEvents(self.plan) if matches_one_event(self.plan) else None

    @property
    def flows(self) -> bool:
        """Return whether matches of a part of a batch are those that end in this part, and come from the finer plan
        alone."""
        return not self.waits and self.singles is None

    def matches(self, step: StreamStep) -> Sequence[Found]:
        """Return the matches that a step makes certain; a stream that is revised runs no finer plan."""
        match step:
            case EventsCame(batch=batch):
                self.clock = int(batch.ts[-1]) if len(batch) else self.clock
            case TimePassed(clock=clock):
                self.clock = clock + 1 if self.clock is None or clock >= self.clock else self.clock
            case StreamEnded():
                self.clock, self.waits = None, False
            case _:
                raise AssertionError(step)
        matches = self.inner.matches(step)
        if self.singles is None:
            return self.release_matches(matches)
        singles = self._matches_of_one_event(self.singles, step)
        if self.inner.counts_only:
            self.alone += singles
            return []
        return self.release_matches([*matches, *singles] if singles else matches)

    def _matches_of_one_event(self, singles: SingleEvents, step: StreamStep) -> list[Found]:
        """Return the matches of one event whose value is null that a step makes certain."""
        match step:
            case EventsCame(batch=batch):
                rows = null_rows(self.plan, batch)
                return singles.push(_rows(batch, rows).events) if len(rows) else []
            case TimePassed(clock=clock):
                return singles.advance(clock)
        return singles.finish()

    def release_matches(self, matches: Sequence[Found]) -> Sequence[Found]:
        """Return matches of the finer plan as those of the plan, once none can end before them."""
        if not self.waits:
            if self.waiting:
                matches = join_matches([*self.waiting, matches])
                self.waiting = []
            return self.chain.matches(matches) if len(matches) else []
        low = self.earliest_open_end()
        matches = join_matches([*self.waiting, matches])
        if not len(matches) or low is None:
            self.waiting = [matches] if len(matches) else []
            return []
        certain: Sequence[Found]
        waiting: Sequence[Found]
        if isinstance(matches, FoundColumns):
            early = matches.end < low
            certain, waiting = matches.take(np.flatnonzero(early)), matches.take(np.flatnonzero(~early))
        else:
            certain = [match for match in matches if match.end < low]
            waiting = [match for match in matches if match.end >= low]
        self.waiting = [waiting] if len(waiting) else []  # noqa: PLC1802
        return self.chain.matches(certain)

    def take_counted(self) -> Counted | int | None:
        """Return what was counted since the last call; ``None`` where matches are made."""
        counted, singles = self.inner.take_counted(), self.alone
        self.alone = []
        if counted is None:
            return None
        if isinstance(counted, int):
            return counted + len(singles)
        if singles:
            counted = _add_singles(counted, singles, len(self.plan.keys), points=self.inner.counts_points)
        return self.chain.chain_counts(counted)

    def earliest_open_end(self) -> int | None:
        """Return a time before which no more matches will end."""
        if not self.waits:
            return self.inner.earliest_open_end()
        span = self.plan.window.span
        return None if self.clock is None or span is None else self.clock - span

    def all_counts(self) -> list[Counts]:
        """Return the work of the plan."""
        (counts,) = self.inner.all_counts()
        recall = counts.tallies
        # The bundles whose recall the engine tells are those of its partitions.
        counts.tallies = lambda: ((recall if isinstance(recall, tuple) else recall())[0], None)
        if self.singles is not None:
            single_counts = self.singles.counts
            sums = {
                name: getattr(counts, name) + getattr(single_counts, name) for name in ("nodes", "touches", "matches")
            }
            counts = counts.replace(**sums)
        counts.matches -= sum(map(len, self.waiting))
        return [counts]

    def live(self) -> int:
        """Return how many partial matches have a window that is not over."""
        return self.inner.live()

    def live_in(self, states: Sequence[int]) -> int:
        """Return how many of the partial matches are in some states of the plan."""
        return self.inner.live_in(states)

    def partial_matches(self, limit: int, states: Sequence[int], *, apart: bool) -> PartialColumns:
        """Return partial matches, with the keys of the plan."""
        return self.inner.partial_matches(limit, states, apart=apart).with_keys(len(self.plan.keys))

    def change(self, plan: Plan) -> None:
        """Raise: a plan that changes has no finer one."""
        raise AssertionError(plan)

    def check(self, plan: Plan) -> None:
        """Raise, as :meth:`change` does."""
        raise AssertionError(plan)

    def dump(self) -> Any:
        """Return the state besides that of the session."""
        return {
            "core": self.inner.dump(),
            "clock": self.clock,
            "bundles": self.chain.dump(),
            "waiting": [
                to_plain(plain_of(part)) if isinstance(part, FoundColumns) else [plain_record(match) for match in part]
                for part in self.waiting
            ],
            "singles": None if self.singles is None else dump_runtime(self.singles),
        }

    def load(self, data: Any) -> None:
        """Restore the state. Raises :class:`ValueError`, :class:`LookupError` or :class:`TypeError` for other data."""
        self.inner.load(data["core"])
        self.clock = None if data["clock"] is None else int(data["clock"])
        self.chain.load(data["bundles"])
        for part in data["waiting"]:
            if isinstance(part, dict):
                self.waiting.append(found_of(from_json(part), self.plan.variables))
            else:
                self.waiting.append([self._match_of_record(record) for record in part])
        if (self.singles is None) != (data["singles"] is None):
            raise ValueError("singles")
        if self.singles is not None:
            load_runtime(self.singles, data["singles"])

    def _match_of_record(self, record: Any) -> Found:
        """Restore a match that waits. One of an event with a null has the key of the plan, as the finer plan has no
        partition for it; the others come from the finer plan, and have the key of the finer plan."""
        finer = self.plan.finer
        assert finer is not None
        return record_of(self.plan if len(record[0]) == len(self.plan.keys) else finer, record)


def null_rows(plan: Plan, batch: Batch) -> Any:
    """Return the rows of a batch in which a column is null that equalities tie, as int64[n]."""
    null = np.zeros(len(batch), bool)
    for name in plan.tied:
        column = batch.columns.get(name, batch.types if name == plan.schema.type else None)
        if column is not None and column.valid is not None:
            null |= column.valid == 0
    return np.flatnonzero(null)


def join_matches(parts: Sequence[Sequence[Found]]) -> Sequence[Found]:
    """Return the matches of one plan from several steps, one after the other."""
    filled = [part for part in parts if len(part)]
    columns = [part for part in filled if isinstance(part, FoundColumns)]
    if len(columns) == len(filled):
        return concatenate(columns) if columns else []
    return [match for part in filled for match in part]


def _rows(batch: Batch, rows: Any) -> Batch:
    """Return some rows of a batch."""
    ids: Any = batch.ids
    if ids is not None:
        ids = [ids[row] for row in rows] if isinstance(ids, list) else np.asarray(ids)[rows]
    return Batch(
        ts=batch.ts[rows],
        types=None if batch.types is None else batch.types.take(rows),
        ids=ids,
        columns={name: column.take(rows) for name, column in batch.columns.items()},
        order=None if batch.order is None else batch.order[rows],
    )


def _add_singles(counted: Counted, singles: Sequence[Found], width: int, *, points: bool) -> Counted:
    """Return rows of counts with a row for each match of one event. They have the first ``width`` keys only.
    ``points``: rows have no number of matches."""
    keys: list[Column] = []
    for i, column in enumerate(counted.keys[:width]):
        values = [*column.to_list(), *(match.key[i] for match in singles)]
        keys.append(column_of_values(values, column.kind))
    end = np.array([match.end for match in singles], np.int64)
    error = np.array([int(match.error * counted.scale) for match in singles], np.int64)
    return Counted(
        keys=tuple(keys),
        first=np.concatenate([counted.first, end]),
        last=np.concatenate([counted.last, end]),
        bundle=np.concatenate([counted.bundle, end]),
        error=np.concatenate([counted.error, error]),
        scale=counted.scale,
        matches=counted.matches if points else np.concatenate([counted.matches, np.ones(len(singles), np.int64)]),
    )


def plain_record(match: Found) -> list[Any]:
    """Return a match as JSON-like data."""
    key, start, end, error, *more = astuple(match)[:RECORD]
    return [key, start, end, str(error), *more]


def record_of(plan: Plan, data: Any) -> Found:
    """Restore a match of a plan from the data of :func:`plain_record`. Raises :class:`ValueError` for other data."""
    key, start, end, error, bindings, bundle, values, trail = data
    cost = Fraction(error)
    if len(key) != len(plan.keys) or len(values) != len(plan.returns):
        raise ValueError("match")
    unscaled = int(cost) if cost.denominator == 1 else cost
    bound = tuple((str(variable), tuple(ids)) for variable, ids in bindings)
    chain = tuple((event, str(variable)) for event, variable in trail)
    return Found(tuple(key), int(start), int(end), unscaled, bound, int(bundle), tuple(values), chain)
