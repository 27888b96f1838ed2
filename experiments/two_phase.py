"""Algorithm 1 of the match windows paper (2012, section 5), each kind of pruning on or off, and algorithms to call.

This is the paper's own measure: what filtering (f), partitioning (p) and necessary conditions (c) gain over
a plain match window. It is written to be read, and slow; what acep runs is ``acep/native/src/prefilter/windows.cpp``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from acep.events.records import Events
from experiments.zstream import Bindings, Joined, SetPattern, join_tree

__all__ = ["ALGORITHMS", "Algorithm", "TwoPhase", "automaton", "two_phase"]

Algorithm = Callable[[SetPattern, Events, Sequence[int]], Joined]


@dataclass(frozen=True)
class TwoPhase:
    """The matches of a stream; ``calls`` of the algorithm, the events that they were given, and their touches."""

    matches: list[Bindings]
    calls: int
    n_events: int
    touches: int


@dataclass
class _Window:
    """A match window with its summary statistics (Definition 5): for each variable how many events there are that come
    after events for all variables of the set before. An event that entered before a set's counters were
    reset is not counted any more, nor is its leaving."""

    pattern: SetPattern
    rows: deque[tuple[int, int, tuple[int, ...]]] = field(default_factory=deque)  # row, variables, eras of their stages
    counts: list[int] = field(default_factory=list)
    eras: list[int] = field(default_factory=list)  # of each stage, how often it was reset

    def __post_init__(self) -> None:
        self.counts = [0] * len(self.pattern.variables)
        self.eras = [0] * (self.pattern.variables[-1].stage + 1)

    def enter(self, row: int, fits: int) -> None:
        """Take in an event; ``fits``: its bit vector, a bit for each variable."""
        variables = self.pattern.variables
        counted = 0
        full = [
            all(self.counts[j] for j, w in enumerate(variables) if w.stage == stage) for stage in range(len(self.eras))
        ]
        for i, v in enumerate(variables):
            if fits >> i & 1 and (v.stage == 0 or full[v.stage - 1]):
                counted |= 1 << i
                self.counts[i] += 1
        self.rows.append((row, counted | fits << len(variables), tuple(self.eras)))

    def leave(self) -> None:
        """Drop the first event."""
        _, bits, eras = self.rows.popleft()
        variables = self.pattern.variables
        for i, v in enumerate(variables):
            if bits >> i & 1 and eras[v.stage] == self.eras[v.stage]:
                self.counts[i] -= 1
                if self.counts[i] == 0:
                    self._reset(v.stage + 1)

    def _reset(self, stage: int) -> None:
        for j, w in enumerate(self.pattern.variables):
            if w.stage >= stage:
                self.counts[j] = 0
        for later in range(stage, len(self.eras)):
            self.eras[later] += 1

    def may_hold_match(self) -> bool:
        """Return whether the window may hold a match that begins with its first event (Theorem 2)."""
        variables = self.pattern.variables
        begins = self.rows[0][1] >> len(variables)
        return (
            len(self.rows) >= len(variables)
            and any(begins >> i & 1 for i, v in enumerate(variables) if v.stage == 0)
            and all(self.counts)
        )


def two_phase(
    pattern: SetPattern, events: Events, algorithm: Algorithm, *, f: bool = True, p: bool = True, c: bool = True
) -> TwoPhase:
    """Find all matches of a stream, with filtering, partitioning and necessary conditions where asked.

    Without a partition attribute ``p`` does nothing.
    """
    windows: dict[Any, _Window] = {}
    matches: list[Bindings] = []
    calls = n_events = touches = 0

    def drop_first(window: _Window) -> None:
        nonlocal calls, n_events, touches
        if not c or window.may_hold_match():
            rows = [row for row, _, _ in window.rows]
            joined = algorithm(pattern, events, rows)
            matches.extend(joined.matches)
            calls, n_events, touches = calls + 1, n_events + len(rows), touches + joined.touches
        window.leave()

    for row, ts in enumerate(events.ts):
        fits = 0
        if f or c:
            for i, v in enumerate(pattern.variables):
                fits |= pattern.fits(events, row, v) << i
            if f and not fits:
                continue
        key = pattern.key_of(events, row) if p else ()
        if key is None:
            continue
        window = windows.get(key)
        if window is None:
            window = windows[key] = _Window(pattern)
        while window.rows and ts - events.ts[window.rows[0][0]] > pattern.span:
            drop_first(window)
        window.enter(row, fits)
    for window in windows.values():
        while window.rows:
            drop_first(window)
    return TwoPhase(matches, calls, n_events, touches)


def automaton(pattern: SetPattern, events: Events, window: Sequence[int]) -> Joined:
    """Run the automaton of a sequence of sets (Cadonna, Gamper and Böhlen, EDBT 2011): an instance a partial match.

    The window's first event starts it; each event is given to every instance, which goes on with it and waits besides.
    """
    variables = pattern.variables
    last = {v.name for v in variables}
    key = pattern.key_of(events, window[0])
    instances: list[Bindings] = [{}]
    matches: list[Bindings] = []
    touches = 0
    for row in window:
        extended: list[Bindings] = []
        for bound in instances:
            open_stages = _open_stages(pattern, bound)
            for v in variables:
                if v.stage not in open_stages or (v.name in bound and not v.plus):
                    continue
                touches += 1
                if not pattern.fits(events, row, v) or (pattern.key and pattern.key_of(events, row) != key):
                    continue
                rows = bound.get(v.name, ())
                if rows and not pattern.follows(events, rows[-1], row, v):
                    continue
                grown = {**bound, v.name: (*rows, row)}
                new = {**grown, v.name: (row,)}
                if all(
                    pattern.holds(check, events, new)
                    for names, check in pattern.ties
                    if v.name in names and names <= grown.keys()
                ):
                    extended.append(grown)
        if row == window[0]:
            instances = []  # what does not begin with it is another window's
        instances += extended
        matches += [bound for bound in extended if bound.keys() == last]
    return Joined(matches if key is not None or not pattern.key else [], touches)


def _open_stages(pattern: SetPattern, bound: Bindings) -> set[int]:
    """Return the stages of which a partial match may bind another event: the one it is in, and the next if that is
    whole."""
    reached = max((v.stage for v in pattern.variables if v.name in bound), default=0)
    is_complete = all(v.name in bound for v in pattern.variables if v.stage == reached)
    return {reached, reached + 1} if is_complete else {reached}


ALGORITHMS: dict[str, Algorithm] = {
    "automaton": automaton,
    "left-deep": join_tree,
    "right-deep": lambda pattern, events, window: join_tree(pattern, events, window, "right"),
}
"""What a window can be given to, by name."""
