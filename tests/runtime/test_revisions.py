"""Events that come late or are taken back, on random queries and streams: the equation of docs/internals/disorder.md.

The sum of all output with match points up to the output punctuation is that part of the exact result over the sorted,
corrected stream; after ``finish``, all of it. Four thousand cases by default; ``ACEP_CASES`` multiplies that.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import acep
from acep.errors import QueryError
from acep.pattern.tree import Output, Query
from tests.random_cases import COLUMNS, Case
from tests.test_random import drawn

CHUNKS = 40
ENGINES = ("auto", "reference")
SPECULATIONS = (0, 1, 3, "inf", "inf")
SCHEMA = pa.schema([*COLUMNS.items(), ("number", pa.int64()), ("op", pa.int8())])

Row = dict[str, Any]
Net = dict[tuple[Any, ...], int]


@dataclass
class Arriving:
    """Rows in the order in which they come, in pushes, and the stream that they leave (a model of the rules)."""

    lateness: int | str
    pushes: list[list[Row]] = field(default_factory=list)
    live: dict[int, tuple[int, Row]] = field(default_factory=dict)  # the events that count, with their places
    refused: int = 0  # rows that were too late
    final: int | None = None
    greatest: int | None = None
    came: int = 0

    def push(self, rows: list[Row]) -> None:
        """Take in a push by the rules: all of its rows are judged by what was final before."""
        self.pushes.append(rows)
        for row in rows:
            self.came += 1
            if self.final is not None and row["ts"] < self.final:
                self.refused += 1
            else:
                self.greatest = row["ts"] if self.greatest is None else max(self.greatest, row["ts"])
                if row["op"] > 0:
                    self.live[row["number"]] = (self.came, row)
                else:
                    del self.live[row["number"]]
        if isinstance(self.lateness, int) and self.greatest is not None:
            self.advance(self.greatest - self.lateness)

    def advance(self, final: int) -> None:
        """Record that nothing changes any more before a time."""
        self.final = final if self.final is None else max(final, self.final)

    def table(self) -> pa.Table:
        """The events that count, in the order in which they came."""
        return table([row for _, row in sorted(self.live.values(), key=lambda one: one[0])])


def table(rows: list[Row]) -> pa.Table:
    return pa.Table.from_pylist(rows, SCHEMA)


def net(matches: Iterable[Any]) -> Net:
    """How often each match was given and not taken back."""
    found: Counter[tuple[Any, ...]] = Counter()
    for m in matches:
        key = tuple(sorted(m.key.items())), m.start, m.end, str(m.error), str(sorted(m.bindings.items())), str(m.values)
        found[key] += m.op
    return {key: many for key, many in found.items() if many}


def until(found: Net, time: Any) -> Net:
    return {key: many for key, many in found.items() if key[2] <= time}


def arriving(case: Case, rng: Random, *, ops: bool) -> Arriving:
    """The events of a case with disorder, and with ``ops`` also retractions and corrections."""
    lateness = rng.choice((0, 2, 5, 20, "inf"))
    by = rng.choice((0, 1, 3, 8))
    rows = [row | {"number": n, "op": 1} for n, row in enumerate(case.events)]
    rows.sort(key=lambda row: row["ts"] + rng.randrange(by + 1) * (rng.random() < 0.5))
    stream = Arriving(lateness)
    waiting: list[Row] = []
    while rows:
        some: list[Row] = []
        for _ in range(rng.randrange(1, 8)):
            if not rows:
                break
            some.append(rows.pop(0))
            if ops and rng.random() < 0.3:
                waiting.append(some[-1])
            if waiting and rng.random() < 0.5:
                gone = waiting.pop(rng.randrange(len(waiting)))
                if stream.final is None or gone["ts"] >= stream.final:  # else both the event and this were too late
                    some.append(gone | {"op": -1})
                    if rng.random() < 0.5:
                        moved = max(gone["ts"] + rng.randrange(-2, 3), stream.final or gone["ts"] - 2)
                        some.append(gone | {"ts": moved, "x": rng.randrange(4)})
        stream.push(some)
    return stream


def checked(case: Case, query: Query, engine: str, rng: Random) -> str:
    """Push what comes and compare what was given with the exact result; return what is wrong, or nothing."""
    ops = rng.random() < 0.6
    stream = arriving(case, rng, ops=ops)
    options = {name: column for name, column in case.stream.items() if name != "id"} | {"engine": engine}
    options |= {"id": "number"} if ops or rng.random() < 0.5 else {}
    numbered = "id" in options
    asked = (
        options | {"lateness": stream.lateness, "speculation": rng.choice(SPECULATIONS)} | ({"op": "op"} if ops else {})
    )
    matcher, given, promises = acep.Matcher(query, **asked), list[Any](), list[tuple[Any, int]]()
    saved = rng.random() < 0.2
    for rows in stream.pushes:
        given += (
            matcher.push(table(rows))
            if rng.random() < 0.9
            else (m for some in matcher.blocks(table(rows)) for m in some)
        )
        if matcher.final is not None:
            promises.append((matcher.final, len(given)))
        if saved and rng.random() < 0.3:
            state, matcher = matcher.snapshot(), acep.Matcher(query, **asked)
            matcher.restore(state)
    given += matcher.finish()
    events = stream.table()
    if not numbered:  # ids are the places of arrival
        places = sorted(place - 1 for place, _ in stream.live.values())
        events = events.set_column(events.column_names.index("number"), "number", pa.array(places, pa.int64()))
    want = net(acep.match(events, query, **options | {"id": "number"}))
    if net(given) != want:
        return f"given {net(given)}, not {want}"
    if matcher.report.late != stream.refused or matcher.report.matches != sum(want.values()):
        return f"{matcher.report.late} late, {matcher.report.matches} matches"
    for time, many in promises:
        if until(net(given[:many]), time) != until(want, time):
            return f"up to {time} was given {until(net(given[:many]), time)}, not {until(want, time)}"
    return ""


def refused(query: Query) -> bool:
    return bool(query.sources) or query.output is Output.NON_OVERLAP


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_what_is_given_less_what_is_taken_back_is_the_exact_result(chunk: int, cases: Callable[[int], int]) -> None:
    each = cases(100)
    for seed in range(chunk * each, (chunk + 1) * each):
        case = drawn(seed)
        query = case.query()
        for engine in ENGINES:
            rng = Random(seed)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", acep.DataWarning)
                if refused(query):
                    with pytest.raises(QueryError, match="cannot be revised"):
                        acep.Matcher(query, lateness=3, speculation="inf").push(case.table())
                    continue
                wrong = checked(case, query, engine, rng)
            assert not wrong, f"{wrong}\nseed {seed}, engine {engine}\n{case.paste()}"
