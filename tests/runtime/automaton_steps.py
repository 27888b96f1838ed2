"""An automaton that changes while the stream runs, as a list of steps: drawn, run, compared with what it accepts.

A step is a row, or ``{"do": what, "draw": seed}``, which draws by its own seed from the arcs that are there. So any
step may be left out, and failing ones can be shrunk.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from random import Random
from typing import Any

import pytest

import acep
from acep.errors import QueryError
from acep.pattern.tree import GraphArc
from acep.runtime.stream import Stream
from tests.complaints import difference, fail_if_wrong_on_rows
from tests.random_automata import accepted, random_automaton, random_rows
from tests.random_cases import events_of
from tests.runtime.test_revisions import net

__all__ = ["count_core_calls", "draw_steps", "try_changes"]

Row = dict[str, Any]

LATENESS = ((None, 0), (3, 0), (3, 1), (20, "inf"), ("inf", "inf"))
MATCHES = 2_000
"""A stream ends after so many matches, which may double with each event."""


def draw_steps(rng: Random, rows: list[Row], kinds: Sequence[str], longest: int = 5) -> list[Row]:
    """Put pushes of at most so many rows, changes of some kinds and restarts between rows."""
    steps, at = list[Row](), 0
    while at < len(rows):
        push = rows[at : at + rng.randrange(1, longest + 1)]
        at += len(push)
        between = [rng.choice(kinds) for _ in range(rng.choice((0, 0, 1, 1, 2, 3)))]  # several between two pushes
        between += ["restore"] * (rng.random() < 0.2)
        steps += [*push, *({"do": what, "draw": rng.randrange(10**6)} for what in ("push", *between))]
    return steps


@dataclass
class Run:
    """A matcher that takes steps, the arcs and rows that it has got, and what it gave. ``seen`` counts kinds."""

    automaton: acep.Automaton
    options: dict[str, Any]
    seen: Counter[str]
    rows: list[Row] = field(default_factory=list)
    pending: list[Row] = field(default_factory=list)
    matches: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.arcs = list(self.automaton.arcs)
        self.matcher = acep.Matcher(self.automaton, **self.options)

    @property
    def next_time(self) -> int:
        """The first time after all events."""
        return max(row["ts"] for row in self.rows) + 1

    def take(self, step: Row) -> None:
        """Do a step."""
        if len(self.matches) > MATCHES:
            return
        if "do" not in step:
            self.pending.append(step)
            return
        self.push()
        if step["do"] != "push" and self.rows:
            getattr(self, step["do"])(Random(step["draw"]))

    def push(self) -> None:
        """Push the rows that wait."""
        if self.pending:
            self.rows += self.pending
            self.matches += self.matcher.push(events_of(self.pending))
            self.pending = []

    def restore(self, _: Random) -> None:
        """Go on with another matcher."""
        state, self.matcher = self.matcher.snapshot(), acep.Matcher(self.automaton, **self.options)
        self.matcher.restore(state)

    def change(self, rng: Random, since: int | None = None) -> None:
        """Add and remove arcs from now on, or from a later time on."""
        add, remove = changes_of(rng, self.automaton, self.arcs)
        begin = self.next_time if since is None and rng.random() < 0.5 else since
        if self.is_refused("cycle", "was not read", change=partial(self.matcher.change, add, remove, since=begin)):
            return
        begin = self.next_time if begin is None else begin
        for arc in remove:
            place = place_of(arc, self.arcs, begin)
            self.arcs[place] = replace(self.arcs[place], until=literal(begin))
        self.arcs += [replace(arc, since=literal(begin)) for arc in add]
        self.seen["changed" if since is None else "declared ahead"] += 1

    def declare(self, rng: Random) -> None:
        """Add and remove arcs from a later time on."""
        self.change(rng, self.next_time + rng.randrange(1, 5))

    def replace(self, rng: Random) -> None:
        """Go on with some of the arcs."""
        arcs = [arc for arc in self.arcs if arc.until is None and rng.random() < 0.8]
        refusals = ("no arc", "needs arcs", "final in one")
        if not self.is_refused(*refusals, change=lambda: self.matcher.replace(automaton_of(arcs, self.automaton))):
            self.arcs = replaced(self.arcs, arcs, self.next_time)
            self.seen["replaced"] += 1

    def revise(self, rng: Random) -> None:
        """Have other arcs, also for events that came before."""
        add, remove = changes_of(rng, self.automaton, self.arcs)
        since = self.next_time - rng.randrange(10)
        arcs = [arc for arc in self.arcs if arc.until is None and arc not in remove] + add

        def give_changes() -> None:
            self.matches += self.matcher.revise(automaton_of(arcs, self.automaton), since)

        if not self.is_refused("cycle", "was not read", "no arc", change=give_changes):
            self.seen["holds for events that came before"] += since < self.next_time
            self.arcs = replaced(self.arcs, arcs, since)

    def is_refused(self, *reasons: str, change: Any) -> bool:
        """Make a change; it may be refused for some reasons."""
        try:
            change()
        except QueryError as refused:
            if not any(reason in str(refused) for reason in reasons):
                raise
            return True
        return False

    def finish(self) -> list[tuple[Any, ...]]:
        """End the stream; return its matches as key, bindings and values."""
        if len(self.matches) <= MATCHES:
            self.push()
        self.matches += self.matcher.finish()
        counts = net(self.matches)
        return sorted((key[0], key[4], key[5]) for key, count in counts.items() for _ in range(count))


def complaint_of(automaton: acep.Automaton, options: Row, seen: Counter[str], steps: Sequence[Row]) -> str:
    """Run steps and say how the matches differ from those that the automaton accepts, each arc in its own time."""
    run = Run(automaton, options, seen)
    for step in steps:
        run.take(step)
    matches = run.finish()
    lasting, ties = automaton_of(run.arcs, automaton), automaton.query.ties
    rows = sorted(run.rows, key=lambda row: row["seq"])
    if run.matcher.report.late:
        seen["events are too late"] += 1
        return ""
    wanted = [
        (tuple(sorted(zip(ties, key, strict=True))), names(rows, bound), values(lasting, end, registers))
        for key, bound, end, registers in accepted(lasting, rows)
    ]
    seen["compared"] += 1
    seen["has matches"] += bool(wanted)
    differing = difference(matches, sorted(wanted), ("matcher", "automaton"))
    return differing and f"with its changes: {lasting.query.text}\n{differing}"


def try_changes(kinds: Sequence[str], engine: str, seeds: range, *, revised: bool = False) -> Counter[str]:
    """Compare automata that change in some ways with what they accept, one a seed; return what occurred.

    With ``revised`` matches may be taken back.
    """
    seen = Counter[str]()
    for seed in seeds:
        rng = Random(f"{kinds} {seed}")
        automaton, rows = random_automaton(rng), random_rows(rng, 20)
        lateness, speculation = rng.choice(LATENESS[3:] if revised else LATENESS)
        options = {"id": "id", "seq": "seq", "engine": engine, "dynamic": True}
        if lateness is not None:
            options |= {"lateness": lateness, "speculation": speculation}
            rows.sort(key=lambda row: row["ts"] + rng.randrange(3 if lateness == 3 else 9))
        title = f"seed {seed}, {options}\n{automaton.query.text}"
        fail_if_wrong_on_rows(draw_steps(rng, rows, kinds), title, partial(complaint_of, automaton, options, seen))
    return seen


def literal(time: int) -> Any:
    """Return a time as arcs have it."""
    return acep.arc("x", "y", since=time).since


def changes_of(rng: Random, automaton: acep.Automaton, arcs: list[GraphArc]) -> tuple[list[GraphArc], list[GraphArc]]:
    """Draw arcs to add and arcs to remove; those to add are of another automaton with the same registers."""
    remove = [arc for arc in arcs if arc.until is None and rng.random() < 0.3]
    add = []
    for _ in range(20):
        source = random_automaton(rng)
        lasting = [arc for arc in source.arcs if arc.since is None and arc.until is None]
        if dict(source.registers).keys() <= dict(automaton.registers).keys() and lasting:
            add = rng.sample(lasting, 1)
            break
    return add, remove[:1]


def place_of(removed: GraphArc, arcs: list[GraphArc], since: int) -> int:
    """Return the place of the arc that is removed: one that is valid at that time, else one that begins later."""
    plain = [replace(arc, since=None, until=None) for arc in arcs]
    same = [place for place, arc in enumerate(plain) if arc == replace(removed, since=None, until=None)]
    lasting = [place for place in same if arcs[place].until is None or arcs[place].until.value > since]
    return min(lasting, key=lambda place: (begins_after(arcs[place], since), place))


def replaced(arcs: list[GraphArc], new_arcs: list[GraphArc], since: int) -> list[GraphArc]:
    """Return the arcs of an automaton that has new arcs from a time on."""
    before = [cut_short(arc, since) for arc in arcs if arc.since is None or arc.since.value < since]
    return before + [arc if begins_after(arc, since) else replace(arc, since=literal(since)) for arc in new_arcs]


def automaton_of(arcs: list[GraphArc], like: acep.Automaton) -> acep.Automaton:
    """Return an automaton with these arcs, and all else as in another."""
    about = {name: getattr(like, name) for name in ("final", "registers", "keys", "window")}
    return acep.Automaton(arcs, start=like.query.graph.start, **about)


def cut_short(arc: GraphArc, end: int) -> GraphArc:
    """Return an arc that ends at a time at the latest."""
    return replace(arc, until=literal(end)) if arc.until is None or arc.until.value > end else arc


def begins_after(arc: GraphArc, time: int) -> bool:
    """Say whether an arc begins later."""
    return arc.since is not None and arc.since.value > time


def names(rows: list[Row], bound: tuple[tuple[int, str], ...]) -> str:
    """Return bindings as the matches have them."""
    ids: dict[str, tuple[str, ...]] = {}
    for place, var in bound:
        ids[var] = (*ids.get(var, ()), rows[place]["id"])
    return str(sorted(ids.items()))


def values(automaton: acep.Automaton, state: str, registers: tuple[Any, ...]) -> str:
    """Return the values of a match as it has them."""
    return str({"state": state} | dict(zip(automaton.registers, registers, strict=True)))


def count_core_calls(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count how often plans are compiled, arcs added and times set for the engines of streams."""
    calls = Counter({"change": 0, "extend": 0, "renew": 0})

    def count(name: str) -> None:
        call = getattr(Stream, name)

        def counted(*arguments: Any) -> Any:
            calls[name] += 1
            return call(*arguments)

        monkeypatch.setattr(Stream, name, counted)

    for name in calls:
        count(name)
    return calls
