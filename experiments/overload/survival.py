"""Estimate which exact matches would still be found if partial matches were dropped at random.

A partial match is the beginning of a match's binding. Each is dropped when it is made, or kept with probability q; a
match survives if all its beginnings do, the empty one and the match itself excepted. Matches share their beginnings, so
that the draw is a hash of the beginning and of the seed: the same for all matches that it begins. A partial match
of d events is then there with probability q to the power d, and so is what it costs: from the touches by d, measured by
the reference engine on some events, follows the q that leaves a given share of the work.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from acep.automaton.arcs import Accept
from acep.automaton.registers import Step
from acep.events.tables import events_of
from acep.matches.found_columns import FoundColumns
from acep.matches.records import Counts
from acep.plan.compile import Plan
from acep.reference.engine import Event, MatchNode, ReferenceEngine, Trail
from acep.reference.program import Move, Row
from acep.reference.runtime import ReferenceRuntime

__all__ = ["count_wanted", "find_surviving", "keep_share", "mix_bits", "touches_by_length"]

Words = npt.NDArray[np.uint64]
Bools = npt.NDArray[np.bool_]


def mix_bits(words: Words) -> Words:
    """Turn each word into one that looks random (the finaliser of splitmix64).

    >>> mix_bits(np.array([0, 1], np.uint64)).tolist()
    [16294208416658607535, 10451216379200822465]
    """
    with np.errstate(over="ignore"):
        words = words + np.uint64(0x9E3779B97F4A7C15)
        words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return words ^ (words >> np.uint64(31))


def find_surviving(match_columns: FoundColumns, keep: float, seeds: int) -> Bools:
    """Return (seeds, n): whether each match survives if a partial match is kept with probability ``keep``.

    The ids of the matches are integers.
    """
    lengths = np.diff(match_columns.offsets)
    alive = np.ones((seeds, len(lengths)), np.bool_)
    steps = mix_bits(match_columns.ids.astype(np.uint64) * np.uint64(len(match_columns.variables)) + match_columns.vars)
    begun = np.zeros(len(lengths), np.uint64)
    limit = np.uint64(min(int(keep * 2.0**64), 2**64 - 1))
    salts = mix_bits(np.arange(seeds, dtype=np.uint64))
    for length in range(1, int(lengths.max(initial=0))):
        longer = np.flatnonzero(lengths > length)
        begun[longer] = mix_bits(begun[longer] ^ steps[match_columns.offsets[longer] + length - 1])
        for seed, salt in enumerate(salts):
            alive[seed, longer] &= mix_bits(begun[longer] ^ salt) <= limit
    return alive


def keep_share(touches: npt.NDArray[np.int64], share: float) -> float:
    """Return the probability q at which ``share`` of the touches is left: those of partial matches of d events are
    ``touches[d]``, and q to the power d of them are left.

    >>> round(keep_share(np.array([0, 0, 100]), 0.25), 3)
    0.5
    """
    powers = np.arange(len(touches))
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        if (touches * middle**powers).sum() > share * touches.sum():
            high = middle
        else:
            low = middle
    return low


def touches_by_length(plan: Plan, events: pa.Table, max_touches: int) -> npt.NDArray[np.int64]:
    """Return the touches of an exact run by the number of events that a partial match has bound, on as many of the
    events as make about ``max_touches`` touches. A touch is an arc tried with an event that meets the conditions of
    the arc on that event alone."""
    core = ReferenceRuntime(plan)
    engine = core.engine = _Counting(plan)
    for part in _parts(events, 1_000):
        core.push(events_of(part, plan.schema, plan.columns))
        if sum(engine.touches) >= max_touches:
            break
    return np.array(engine.touches, np.int64)


def count_wanted(plan: Plan, events: pa.Table) -> int:
    """Count the events that some arc may bind, by its conditions on the event alone: those that pass an engine's
    filter."""
    core = ReferenceRuntime(plan)
    engine = core.engine = _Filtering(plan)
    for part in _parts(events, 10_000):
        core.push(events_of(part, plan.schema, plan.columns))
    return engine.passed


def _parts(events: pa.Table, rows: int) -> Iterator[pa.Table]:
    for first in range(0, events.num_rows, rows):
        yield events.slice(first, rows)


class _Trying(ReferenceEngine):
    """The reference engine, which can tell the arcs that may bind an event by what they ask of it alone."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan)
        self._alone = [[_own_checks(step) for step in steps] for steps in plan.program.steps]

    def count_tried(self, row: Row, kind: str | None) -> list[int]:
        """Count the arcs that are tried with an event, by state."""
        pairs = (zip(moves, alone, strict=True) for moves, alone in zip(self.moves, self._alone, strict=True))
        return [sum(self._passes(pair, row, kind) for pair in arc_pairs) for arc_pairs in pairs]

    def _passes(self, pair: tuple[Move, tuple[int, ...]], row: Row, kind: str | None) -> bool:
        """Return whether an event meets the conditions of an arc on it alone: its type, and the checks at
        some places."""
        move, alone = pair
        if move.arc.types and kind not in move.arc.types:
            return False
        return all(move.binding[i][1]((), row) for i in alone)


class _Filtering(_Trying):
    """Makes no match, and counts the events that pass."""

    passed = 0

    def feed(
        self,
        nodes: list[MatchNode],  # noqa: ARG002
        event: Event,
        kind: str | None,
        counts: Counts,  # noqa: ARG002
    ) -> tuple[list[MatchNode], list[tuple[MatchNode, Accept]]]:
        """Keep nothing alive."""
        self.passed += any(self.count_tried(event.row, kind))
        return [], []


class _Counting(_Trying):
    """Passes over what no arc can bind, and counts touches by length."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan)
        self.touches = [0]

    def feed(
        self, nodes: list[MatchNode], event: Event, kind: str | None, counts: Counts
    ) -> tuple[list[MatchNode], list[tuple[MatchNode, Accept]]]:
        """Feed an event, as the engine does."""
        arcs = self.count_tried(event.row, kind)
        if not any(arcs):
            return nodes, []
        self.touches[0] += arcs[0]
        for node in nodes:
            if tried := arcs[node.state]:
                length = _length(node.trail)
                self.touches += [0] * (length + 1 - len(self.touches))
                self.touches[length] += tried
        return super().feed(nodes, event, kind, counts)


def _own_checks(step: Step) -> tuple[int, ...]:
    """Return the places of the checks of an arc that look at the event alone."""
    return tuple(
        i
        for i, check in enumerate(step.binding)
        if not check.loops and check.only is None and all(s.kind == "event" for s in check.sources)
    )


def _length(trail: Trail | None) -> int:
    length = 0
    while trail is not None:
        length, trail = length + 1, trail.previous
    return length
