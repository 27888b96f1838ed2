"""Punctuations of a key or a type: the equation of docs/internals/disorder.md holds, and they free memory.

The sum of all output with match points up to the output punctuation is that part of the exact result over the sorted,
corrected stream; after ``finish``, all of it. Thirteen hundred cases by default; ``ACEP_CASES`` multiplies that.
"""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import acep
from acep.pattern.tree import Query
from tests.case_counts import CaseCounts
from tests.complaints import difference, fail_if_wrong, fail_if_wrong_on_rows
from tests.random_automata import few_matches, random_automaton, random_rows
from tests.random_cases import TYPES, Case
from tests.runtime.test_revisions import Arriving, Row, by_id, net, table, until
from tests.test_random import drawn

CHUNKS = 10
ENGINES = ("auto", "reference")
SPECULATIONS = (0, 0, 4, "inf", "inf", "inf")

PATTERNS = (
    "SEQ(A a, B b)", "SEQ(A a, ~C c, B b)", "SEQ(~C c, A a, B b)", "SEQ(A a, B b, ~C c)", "SEQ(~C c, A a, B b, ~D d)",
    "SEQ(A+ a[], B b)", "SEQ({A a, B b}, C c)", "SEQ(A a, ANY b)", "SEQ((A a, B b)+, C c)", "SEQ((A|B) a, B? b, C c)",
)  # fmt: skip
STRATEGIES = ("strict_contiguity", "partition_contiguity", *["skip_till_next_match", "skip_till_any_match"] * 3)
TIES = ("", "[k]", "[k]", "[k]", "[k] AND [s]")
WINDOWS = ("4", "9", "9", "9", "3 EVENTS", "6 EVENTS")
OUTPUTS = ("", "", "", "", " OUTPUT NON OVERLAP", " OUTPUT EARLIEST MAXIMAL")


@dataclass
class Promised(Arriving):
    """A stream with punctuations that have a condition (a model of the rules): the values of columns, the types
    (``None``: any), and the time before which all is final. ``steps``: pushes and punctuations, as they come."""

    said: list[tuple[Row, list[str] | None, int]] = field(default_factory=list)
    steps: list[tuple[Any, ...]] = field(default_factory=list)

    def late(self, row: Row) -> bool:
        """Whether a row would be late if it came with the next push."""
        if self.final is not None and row["ts"] < self.final:
            return True
        return any(row["ts"] < before and fits(row, key, types) for key, types, before in self.said)

    def push(self, rows: list[Row]) -> None:
        self.steps.append(("push", rows))
        late = {id(row) for row in rows if self.late(row)}
        self.refused += len(late)
        for row in rows:
            self.came += 1
            if id(row) not in late:
                self.greatest = row["ts"] if self.greatest is None else max(self.greatest, row["ts"])
                if row["op"] > 0:
                    self.live[row["number"]] = (self.came, row)
                else:
                    del self.live[row["number"]]
        if isinstance(self.lateness, int) and self.greatest is not None:
            self.advance(self.greatest - self.lateness)

    def say(self, key: Row, types: list[str] | None, before: int) -> None:
        """Give a punctuation."""
        self.steps.append(("say", key, types, before - 1))
        if key or types is not None:
            self.said.append((key, types, before))
        else:
            self.advance(before)


def fits(row: Row, key: Row, types: list[str] | None) -> bool:
    return all(row[name] == value for name, value in key.items()) and (types is None or row["type"] in types)


def promised(events: list[Row], keys: tuple[str, ...], rng: Random, *, ops: bool, typed: bool = True) -> Promised:
    """Events with disorder, with retractions and corrections, and with punctuations between the pushes: most of them
    hold for the events to come."""
    stream = Promised(rng.choice((3, 12, "inf", "inf", "inf")))
    by = rng.choice((0, 2, 5, 15))
    rows = [row | {"number": n, "op": 1} for n, row in enumerate(events)]
    rows.sort(key=lambda row: row["ts"] + rng.randrange(by + 1) * (rng.random() < 0.5))
    waiting: list[Row] = []
    while rows:
        some: list[Row] = []
        for _ in range(rng.randrange(1, 6)):
            if not rows:
                break
            some.append(rows.pop(0))
            if ops and rng.random() < 0.3 and not stream.late(some[-1]):
                waiting.append(some[-1])
            if waiting and rng.random() < 0.4:
                gone = waiting.pop(rng.randrange(len(waiting)))
                some.append(gone | {"op": -1})
                if not stream.late(gone) and rng.random() < 0.5:
                    moved = {"ts": gone["ts"] + rng.randrange(-2, 3), "x": rng.randrange(4)}
                    some.append(gone | moved | ({"k": rng.randrange(3)} if rng.random() < 0.3 else {}))
        stream.push(some)
        for _ in range(rng.randrange(3)):
            key: Row = {}
            if keys and rng.random() < 0.7:
                named, row = rng.sample(keys, rng.randrange(1, len(keys) + 1)), rng.choice(events)
                key = {name: row[name] for name in named if row[name] is not None and row[name] == row[name]}
            types = None
            if typed and (not key or rng.random() < 0.3):
                some = rng.sample(TYPES, rng.randrange(1, 4))
                types = rng.choice(([*TYPES, "X"], [*TYPES], ["A", "B"], ["A", "B", "C"], some))
            if rng.random() < 0.1:
                key, types = {}, None
            yet = [row["ts"] for row in rows if fits(row, key, types)]
            before = min(yet, default=stream.greatest or 0) + (0 if yet else rng.choice((0, 5, 30, 10**9)))
            if rng.random() < 0.1:
                before += rng.randrange(6)
            if key or types is not None or not isinstance(stream.lateness, int):
                stream.say(key, types, before)
    return stream


def checked(
    query: Query, stream: Promised, columns: dict[str, Any], engine: str, rng: Random, *, ops: bool
) -> tuple[str, Counter[str]]:
    """Push what comes and compare what was given with the exact result; return what is wrong, or nothing, and what
    happened how often."""
    numbered = {"id": "number"} if ops or rng.random() < 0.5 else {}
    asked = columns | numbered | ({"op": "op"} if ops else {})
    speculation = rng.choice(SPECULATIONS)
    asked |= {"lateness": stream.lateness, "speculation": speculation, "engine": engine}
    matcher, given, promises = acep.Matcher(query, **asked), list[Any](), list[tuple[Any, int]]()
    seen: Counter[str] = Counter()
    saved = rng.random() < 0.4
    for what, *rest in stream.steps:
        if what == "push":
            rows = table(rest[0])
            blocks = rng.random() < 0.1
            given += [m for some in matcher.blocks(rows) for m in some] if blocks else matcher.push(rows)
        else:
            key, types, ts = rest
            before = matcher.held or 0
            found = matcher.advance(ts, key or None, types) if key or types is not None else matcher.advance(ts)
            given += found
            if key or types is not None:
                freed = (matcher.held or 0) < before
                seen["early"] += speculation == 0 and len(found) > 0
                seen["freed by key" if types is None else "freed by type"] += speculation != 0 and freed
        if matcher.final is not None:
            promises.append((matcher.final, len(given)))
        if saved and rng.random() < 0.4:
            state, matcher = matcher.snapshot(), acep.Matcher(query, **asked)
            matcher.restore(state)
    given += matcher.finish()
    seen["late"] += stream.refused > 0
    if wrong := by_id(given):
        return wrong, seen
    events = stream.table()
    if not numbered:  # ids are the places of arrival
        places = sorted(place - 1 for place, _ in stream.live.values())
        events = events.set_column(events.column_names.index("number"), "number", pa.array(places, pa.int64()))
    want = net(acep.match(events, query, **columns, id="number", engine="reference"))
    seen["matches"] += len(want)
    if net(given) != want:
        return difference(net(given), want, ("given", "exact")), seen
    many = matcher.report.late, matcher.report.matches, matcher.report.events
    if many != (stream.refused, sum(want.values()), len(stream.live)):
        return f"late, matches, events: {many}, with {stream.refused} late of {stream.came}", seen
    for time, number in promises:
        if complaint := difference(until(net(given[:number]), time), until(want, time), ("given", "exact")):
            return f"up to {time}:\n{complaint}", seen
    return "", seen


def random_query(rng: Random) -> str:
    pattern = rng.choice(PATTERNS)
    names = [name for name in ("a[]" if "a[]" in pattern else "a", "b", "c", "d") if f" {name}" in pattern]
    bound = [name for name in names if f"~{name[0].upper()} {name}" not in pattern]
    ties, strategy = rng.choice(TIES), rng.choice(STRATEGIES)
    more = "a.x <= b.x" if rng.random() < 0.3 and "a[]" not in pattern and " b" in pattern else ""
    where = " AND ".join(one for one in (ties, more) if one)
    where = f"{strategy}({', '.join(bound)})" + (f" {{ {where} }}" if where else "")
    return f"PATTERN {pattern} WHERE {where} WITHIN {rng.choice(WINDOWS)}{rng.choice(OUTPUTS)}"


def random_events(rng: Random) -> list[Row]:
    many, span = rng.randrange(8, 40), rng.choice((20, 60))
    types = rng.choice(("ABCD", "AB", "ABCDE"))
    return [
        {
            "ts": rng.randrange(span), "type": rng.choice(types), "k": rng.choices((0, 1, 2, None), (33, 33, 33, 3))[0],
            "x": rng.randrange(4), "y": None, "f": None, "s": rng.choice("uv"), "seq": n, "id": f"e{n}",
        }
        for n in range(many)
    ]  # fmt: skip


def forget_often(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("acep.revision.revised_plan.SELDOM", 32 if seed % 4 == 0 else 1)  # 1: with every call


def complaint_of(query: Query, case: Case, engine: str, seen: Counter[str]) -> str:
    """Let the events of a case come in an order of its seed, with punctuations, and say what is wrong."""
    rng = Random(f"{case.seed} arrival")
    ops = rng.random() < 0.5
    stream = promised(case.events, query.ties, rng, ops=ops)
    columns = {name: column for name, column in case.stream.items() if name != "id"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", acep.DataWarning)
        wrong, kinds = checked(query, stream, columns, engine, rng, ops=ops)
    seen.update(kinds)
    return wrong and "\n".join([f"{engine}: {wrong}", *map(str, stream.steps)])


@pytest.mark.parametrize("engine", ENGINES)
def test_the_equation_holds_with_punctuations_of_keys_and_types(
    engine: str, cases: CaseCounts, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen, tried = Counter[str](), cases(350)
    for seed in range(tried):
        forget_often(seed, monkeypatch)
        rng = Random(seed)
        options, columns = {"errors": rng.choice((0, 0, 0, 1))}, rng.choice(({}, {"seq": "seq"}))
        case = Case(seed, False, random_query(rng), options, random_events(rng), columns)
        fail_if_wrong(case, lambda smaller: complaint_of(smaller.query(), smaller, engine, seen))
    for kind, share in (("freed by key", 0.1), ("freed by type", 0.05), ("early", 0.01), ("late", 0.1), ("matches", 1)):
        cases.expect(seen, kind, least=share * tried)


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_the_same_holds_for_random_queries(chunk: int, cases: CaseCounts, monkeypatch: pytest.MonkeyPatch) -> None:
    each = cases(25)
    for seed in range(chunk * each, (chunk + 1) * each):
        forget_often(seed, monkeypatch)
        case = drawn(seed)
        for engine in ENGINES if not case.query().sources else ():
            fail_if_wrong(case, lambda smaller, by=engine: complaint_of(smaller.query(), smaller, by, Counter()))


@pytest.mark.parametrize("engine", ENGINES)
def test_the_same_holds_for_hand_written_automata(
    engine: str, cases: CaseCounts, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen, tried = Counter[str](), cases(70)
    for seed in range(tried):
        rng = Random(seed)
        forget_often(seed, monkeypatch)
        automaton = random_automaton(rng)

        def complain(rows: list[Row], automaton: acep.Automaton = automaton, seed: int = seed) -> str:
            return complaint_of(automaton.query, Case(seed, False, "", {}, rows), engine, seen)

        rows = few_matches(automaton, random_rows(rng, 25))
        fail_if_wrong_on_rows(rows, f"seed {seed}\n{automaton.query.text}", complain)
    cases.expect(seen, "freed by key", least=0.05 * tried)
