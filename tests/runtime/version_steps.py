"""A stream whose query is replaced, revised and restored on the way, as a list of steps: drawn, run, compared, printed.

Steps are rows, ``Change``, ``PUSH`` and ``RESTORE``. Any of them may be left out, so that failing ones can be shrunk.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any

import pyarrow as pa

import acep
from acep.changing.changeable_queries import EVER
from acep.errors import QueryError
from acep.pattern.tree import Query
from tests.complaints import difference, fail_if_wrong_on_rows, table_of_rows
from tests.random_automata import random_rows
from tests.random_cases import events_of
from tests.random_versions import Chain, Oracle, Versions, random_chain, told_of
from tests.runtime.test_revisions import net

__all__ = ["IN_ORDER", "LATE", "REVISED", "Change", "Kind", "Setting", "draw", "matches_by_text", "try_versions"]

Row = dict[str, Any]
Lateness = tuple[int | str | None, int | str]

PUSH, RESTORE = "push", "restore"
IN_ORDER: tuple[Lateness, ...] = ((None, 0),)
LATE: tuple[Lateness, ...] = ((3, 0), (3, 1))
REVISED: tuple[Lateness, ...] = ((20, "inf"), ("inf", "inf"))
"""Values of ``lateness`` and ``speculation``."""


@dataclass(frozen=True)
class Kind:
    """What a test draws: values of lateness, OUTPUT and errors, how often events are taken back, whether it revises."""

    lateness: tuple[Lateness, ...]
    outputs: tuple[str, ...] = ("",)
    errors: tuple[int, ...] = (0,)
    retractions: float = 0
    revises: bool = False


@dataclass(frozen=True)
class Change:
    """A new version: from the next time on (``back`` is None), or from so many ticks before that."""

    chain: Chain
    back: int | None = None


Step = Row | Change | str


@dataclass(frozen=True)
class Setting:
    """The first version of a query, what all of its versions share, and the options of the matcher."""

    first: Chain
    within: int | None
    output: str
    errors: int
    options: dict[str, Any]

    def query(self, chain: Chain) -> Query | str:
        """Return a version."""
        return chain.query(self.within, self.output, self.errors)

    def title(self, seed: int) -> str:
        """Say what the steps do not."""
        return f"seed {seed}, errors {self.errors}, {self.options}\nfirst: {self.first.text(self.within, self.output)}"

    def text_of(self, steps: list[Step]) -> str:
        """Print steps: rows as a table, with the other steps among them."""
        rows = [step for step in steps if isinstance(step, dict)]
        head, *cells = table_of_rows(rows).split("\n")
        lines = iter(cells)
        return "\n".join([head, *(next(lines) if isinstance(step, dict) else self._line(step) for step in steps)])

    def _line(self, step: Change | str) -> str:
        if isinstance(step, str):
            return step
        how = "replace" if step.back is None else f"revise {step.back} before"
        return f"{how}: {step.chain.text(self.within, self.output)}"


@dataclass
class Run:
    """A matcher that takes steps, the versions and rows that it has got, and what it gave. ``seen`` counts kinds."""

    setting: Setting
    seen: Counter[str]
    versions: Versions = field(init=False)
    rows: list[Row] = field(default_factory=list)
    pending: list[Row] = field(default_factory=list)
    changes: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.versions = [(EVER, self.setting.first)]
        self.matcher = self.new_matcher()

    def new_matcher(self) -> acep.Matcher[Any]:
        """Return a matcher that has seen nothing."""
        return acep.Matcher(self.setting.query(self.setting.first), **self.setting.options)

    def take(self, step: Step) -> None:
        """Do a step."""
        if isinstance(step, dict):
            self.pending.append(step)
            return
        self.push()
        if isinstance(step, Change):
            self.change(step)
        elif step == RESTORE:
            state, self.matcher = self.matcher.snapshot(), self.new_matcher()
            self.matcher.restore(state)

    def push(self) -> None:
        """Push the rows that wait."""
        if self.pending:
            events = events_of(self.pending)
            if "op" in self.setting.options:
                events = events.append_column("op", pa.array([row.get("op", 1) for row in self.pending], pa.int8()))
            self.rows += self.pending
            self.pending = []
            self.changes += self.matcher.push(events)

    def change(self, change: Change) -> None:
        """Replace or revise the query, unless that needs columns that were not read so far."""
        newest = max((row["ts"] for row in self.rows), default=None)
        if change.back is not None and newest is None:
            return
        since = EVER if newest is None else newest + 1 - (change.back or 0)
        query = self.setting.query(change.chain)
        try:
            if change.back is None:
                self.seen["partial matches go on"] += self.matcher.replace(query)
            else:
                self.changes += self.matcher.revise(query, since)
        except QueryError as refused:
            if "was not read" not in str(refused):
                raise
            return
        lasts = [(begin, chain) for begin, chain in self.versions if begin < since]
        if change.back is None:  # a version that never held stays one
            lasts = [(begin, chain) for begin, chain in self.versions if begin <= since]
        self.seen["holds for events that came before"] += bool(change.back)
        self.versions = [*lasts, (since, change.chain)]

    def finish(self) -> Counter[str]:
        """End the stream; return its matches."""
        self.push()
        self.changes += self.matcher.finish()
        return matches_by_text(net(self.changes))

    def rows_that_count(self) -> list[Row]:
        """Return the rows that were not taken back, in stream order."""
        gone = {row["id"] for row in self.rows if row.get("op") == -1}
        return sorted((row for row in self.rows if row["id"] not in gone), key=lambda row: (row["ts"], row["seq"]))


def matches_by_text(numbers: dict[tuple[Any, ...], int]) -> Counter[str]:
    """Return how often there are matches, by their bindings, each to one event, and their errors."""
    return Counter({told_of(dict(ast.literal_eval(key[4])), int(key[3])): number for key, number in numbers.items()})


def complaint_of(setting: Setting, seen: Counter[str], steps: Sequence[Step]) -> str:
    """Run steps and say how the matches differ from those that the versions accept, each in its own time."""
    run = Run(setting, seen)
    for step in steps:
        run.take(step)
    matches = run.finish()
    if run.matcher.report.late:
        seen["events are too late"] += 1
        return ""
    oracle = Oracle(run.versions, run.rows_that_count(), setting.within, setting.errors)
    wanted = Counter(match.told() for match in oracle.chosen(setting.output))
    seen["compared"] += 1
    seen["has matches"] += bool(wanted)
    seen["matches are taken back"] += any(change.op < 0 for change in run.changes)
    seen.update(oracle.seen)
    return difference(matches, wanted, ("matcher", "versions"))


def draw(rng: Random, kind: Kind, engine: str) -> tuple[Setting, list[Step]]:
    """Draw a setting and steps of a kind."""
    has_edges = rng.random() < 0.8
    within = rng.choice((2, 4, 8)) if has_edges or rng.random() < 0.5 else None
    rows, first = random_rows(rng, 24), random_chain(rng, edges=has_edges)
    lateness, speculation = rng.choice(kind.lateness)
    options: dict[str, Any] = {"id": "id", "seq": "seq", "engine": engine, "dynamic": True}
    if lateness is not None:
        options |= {"lateness": lateness, "speculation": speculation}
        rows.sort(key=lambda row: row["ts"] + rng.randrange(3 if lateness == 3 else 9))
        if rng.random() < kind.retractions:
            options["op"] = "op"
            rows = with_retractions(rng, rows)
    setting = Setting(first, within, rng.choice(kind.outputs), rng.choice(kind.errors), options)
    revises = kind.revises and speculation == "inf"
    chain, steps, at = first, list[Step](), 0
    while at < len(rows):
        if rng.random() < 0.5:
            steps.append(Change(chain := random_chain(rng, chain, edges=has_edges)))
        push = rows[at : at + rng.randrange(1, 6)]
        steps += [*push, PUSH]
        at += len(push)
        if revises and rng.random() < 0.4:
            steps.append(Change(chain := random_chain(rng, chain, edges=has_edges), rng.randrange(10)))
        if rng.random() < 0.2:
            steps.append(RESTORE)
    return setting, steps


def with_retractions(rng: Random, rows: list[Row]) -> list[Row]:
    """Return the rows with more among them that are taken back later."""
    coming = list(rows)
    for number, row in enumerate(rng.sample(rows, min(4, len(rows)))):
        extra = row | {"id": f"gone{number}", "type": rng.choice("ABC")}
        place = rng.randrange(len(coming) + 1)
        coming.insert(place, extra)
        coming.insert(rng.randrange(place + 1, len(coming) + 1), extra | {"op": -1})
    return coming


def try_versions(kind: Kind, engine: str, tries: int) -> Counter[str]:
    """Compare so many streams of a kind with what their versions accept; return what occurred."""
    seen = Counter[str]()
    for seed in range(tries):
        setting, steps = draw(Random(f"{kind} {seed}"), kind, engine)
        fail_if_wrong_on_rows(steps, setting.title(seed), partial(complaint_of, setting, seen), setting.text_of)
    return seen
