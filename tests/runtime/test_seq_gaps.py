"""A Matcher whose events have numbers without holes: nothing is given across a gap, and nothing else is held."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import acep
from acep.errors import AcepError, DataError, QueryError, SnapshotError
from acep.pattern.tree import Query
from tests.case_counts import CaseCounts
from tests.complaints import fail_if_wrong
from tests.random_cases import COLUMNS, Case
from tests.test_random import drawn

CHUNKS = 10
ENGINES = ("auto", "reference")
SCHEMA = pa.schema([*COLUMNS.items(), ("n", pa.int64())])
LETTERS = acep.regex("ab", within=10)

Row = dict[str, Any]


@dataclass
class Numbered:
    """The rules, as sets of numbers: which rows are late, which are given, and what time is final."""

    first: int
    lateness: int | None  # None: no time passes by itself
    final: int | None = None
    late: list[int] = field(default_factory=list)
    came: dict[int, Row] = field(default_factory=dict)
    given: set[int] = field(default_factory=set)
    next: int = 0

    def __post_init__(self) -> None:
        self.next = self.first

    def push(self, rows: list[Row]) -> list[Row]:
        """Take in a push; return the rows that are given."""
        fresh = [row for row in rows if self.final is None or row["ts"] >= self.final]
        self.late += [row["n"] for row in rows if row not in fresh]
        self.came |= {row["n"]: row for row in rows}
        times = [row["ts"] for n, row in self.came.items() if n not in self.late]
        certain = self.final
        if self.lateness is not None and times:
            certain = max(times) - self.lateness if certain is None else max(certain, max(times) - self.lateness)
        return self.passed(certain)

    def passed(self, certain: int | None) -> list[Row]:
        """Return the rows that are given once a time is certain."""
        over = [n for n, row in self.came.items() if certain is not None and row["ts"] < certain]
        self.next = max([self.next, *(n + 1 for n in over)])
        while self.next in self.came:
            self.next += 1
        ends = [row["ts"] for n, row in self.came.items() if n < self.next]
        self.final = max([*([] if certain is None else [certain]), *ends], default=None)
        due = sorted(n for n in self.came if n < self.next and n not in self.given and n not in self.late)
        self.given |= {*due}
        return [self.came[n] for n in due]

    @property
    def held(self) -> int:
        return len(self.came) - len(self.given) - len(self.late)


def table(rows: list[Row]) -> pa.Table:
    return pa.Table.from_pylist(rows, SCHEMA)


def told(found: Iterable[Any]) -> list[tuple[Any, ...]]:
    return sorted((str(m.key), m.start, m.end, str(m.error), str(m.bindings), str(m.values)) for m in found)


def pushes(case: Case, rng: Random, first: int) -> list[list[Row]]:
    """The events of a case in a random order, cut into pushes. ``n`` counts them in the order of time."""
    events = sorted(case.events, key=lambda row: row["ts"])
    rows = [row | {"n": first + i, "id": f"e{i}"} for i, row in enumerate(events)]
    by = rng.choice((0, 2, 6, len(rows)))
    rows.sort(key=lambda row: row["n"] + rng.randrange(by + 1) * (rng.random() < 0.5))
    parts = []
    while rows:
        size = rng.randrange(1, 8)
        parts.append(rows[:size])
        rows = rows[size:]
    return parts


def checked(case: Case, query: Query, engine: str, rng: Random) -> str:
    """Push what comes, and compare each step with an in-order Matcher of what is due; return what is wrong."""
    first, lateness = rng.choice((0, 0, 1, 7)), rng.choice((None, None, "inf", 0, 2, 8))
    plain: dict[str, Any] = {"seq": "n", "id": "id", "engine": engine}
    plain |= {name: value for name, value in case.stream.items() if name not in plain}
    asked = plain | {"seq_gaps": True if first == 0 and rng.random() < 0.5 else first}
    asked |= {} if lateness is None else {"lateness": lateness}
    model = Numbered(first, lateness if isinstance(lateness, int) else None)
    matcher, exact = acep.Matcher(query, **asked), acep.Matcher(query, **plain)
    lost = rng.random() if rng.random() < 0.5 else 0.0
    for part in pushes(case, rng, first):
        rows = [row for row in part if rng.random() >= lost / 3]
        if not rows:
            continue
        found = [m for some in matcher.blocks(table(rows)) for m in some] if rng.random() < 0.2 else None
        found = list(matcher.push(table(rows))) if found is None else found
        due = model.push(rows)
        if rng.random() < 0.1:
            clock = max(row["ts"] for row in rows) - rng.randrange(5)
            found += matcher.advance(clock)
            due += model.passed(clock + 1 if model.final is None else max(clock + 1, model.final))
        want = [m for row in due for m in exact.push(table([row]))]
        if model.final is not None and exact._tables.stream is not None:
            want += exact._tables.give_matches(exact._tables.stream.advance(model.final - 1))
        if told(found) != told(want):
            return f"given {told(found)}, not {told(want)}"
        if (matcher.held, matcher.report.late) != (model.held, len(model.late)):
            return f"{matcher.held} held, not {model.held}; {matcher.report.late} late, not {len(model.late)}"
        if matcher.gap != (model.next if model.held else None):
            return f"the gap is {matcher.gap}, not {model.next}"
        if rng.random() < 0.2:
            state, matcher = matcher.snapshot(), acep.Matcher(query, **asked)
            matcher.restore(state)
    rest = sorted(set(model.came) - model.given - {*model.late})
    want = [m for n in rest for m in exact.push(table([model.came[n]]))] + list(exact.finish())
    if told(found := matcher.finish()) != told(want):
        return f"given at the end {told(found)}, not {told(want)}"
    return ""


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_each_push_gives_the_matches_of_what_came_without_gaps(chunk: int, engine: str, cases: CaseCounts) -> None:
    each = cases(40)
    for seed in range(chunk * each, (chunk + 1) * each):
        case = drawn(seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", acep.DataWarning)
            fail_if_wrong(case, lambda smaller: checked(smaller, smaller.query(), engine, Random(smaller.seed)))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("lateness", [None, 100])
def test_whatever_the_arrival_the_matches_are_those_of_the_sorted_stream(
    engine: str, lateness: int | None, cases: CaseCounts
) -> None:
    query = acep.parse("PATTERN SEQ(a p, ~b n, a q) WHERE skip_till_next_match(p, q) { [k] } WITHIN 6")
    options: dict[str, Any] = {} if lateness is None else {"lateness": lateness}
    for seed in range(cases(20)):
        rng = Random(seed)
        times = sorted(rng.randrange(40) for _ in range(60))
        rows = [{"ts": ts, "type": rng.choice("ab"), "k": rng.randrange(2), "id": i} for i, ts in enumerate(times)]
        want = told(acep.match(rows, query, id="id", engine=engine))
        rng.shuffle(rows)
        matcher, found = acep.Matcher(query, seq="id", id="id", seq_gaps=0, engine=engine, **options), []
        for at in range(0, 60, 7):
            found += matcher.push(rows[at : at + 7])
            came = {row["id"] for row in rows[: at + 7]}
            run = next(n for n in range(61) if n not in came)
            assert matcher.held == (len(came) - run)
            assert all(n < run for m in found for ids in m.bindings.values() for n in ids)
        assert matcher.held == 0
        assert told([*found, *matcher.finish()]) == want


def rows_of(*rows: tuple[Any, ...]) -> list[Row]:
    return [dict(zip(("n", "ts", "type"), row, strict=True)) for row in rows]


def bound(found: Iterable[Any]) -> list[Any]:
    return [m.bindings for m in found]


@pytest.mark.parametrize("engine", ENGINES)
def test_events_of_one_time_are_given_at_once_and_more_may_come(engine: str) -> None:
    matcher = acep.Matcher(LETTERS, seq="n", id="n", seq_gaps=True, engine=engine)
    assert bound(matcher.push(rows_of((1, 5, "b"), (0, 5, "a")))) == [{"a": (0,), "b": (1,)}]
    assert (matcher.gap, matcher.held, matcher.final) == (None, 0, 4)
    assert bound(matcher.push(rows_of((3, 5, "b")))) == []
    assert (matcher.gap, matcher.held) == (2, 1)
    found = bound(matcher.push(rows_of((2, 5, "a"))))
    assert found == [{"a": (0,), "b": (3,)}, {"a": (2,), "b": (3,)}]
    assert matcher.report.late == 0


@pytest.mark.parametrize("engine", ENGINES)
def test_an_absence_is_certain_without_a_gap_and_open_across_one(engine: str) -> None:
    query = acep.parse("PATTERN SEQ(a p, ~b q) WITHIN 5")
    matcher = acep.Matcher(query, seq="n", id="n", seq_gaps=True, engine=engine)
    matcher.push(rows_of((0, 1, "a")))
    assert bound(matcher.push(rows_of((2, 50, "x")))) == []
    assert bound(matcher.push(rows_of((1, 6, "x")))) == [{"p": (0,)}]


def test_a_number_is_given_up_once_time_has_passed_by_it() -> None:
    matcher = acep.Matcher(LETTERS, seq="n", id="n", seq_gaps=1, lateness=10)
    assert bound(matcher.push(rows_of((1, 5, "a"), (3, 8, "b")))) == []
    assert (matcher.gap, matcher.held) == (2, 1)
    assert bound(matcher.push(rows_of((5, 18, "x")))) == []  # 18 - 10: at 8 an event is not final
    assert bound(matcher.push(rows_of((6, 19, "x")))) == [{"a": (1,), "b": (3,)}]
    assert (matcher.gap, matcher.held) == (4, 2)  # the count goes on behind 3
    matcher.push(rows_of((2, 6, "a"), (4, 9, "a")))
    assert matcher.late["n"].to_pylist() == [2]
    assert (matcher.gap, matcher.held, matcher.report.late) == (None, 0, 1)


def test_the_number_of_a_late_event_is_no_gap() -> None:
    matcher = acep.Matcher(LETTERS, seq="n", id="n", seq_gaps=True, lateness=10)
    matcher.push(rows_of((0, 5, "a"), (2, 30, "a"), (3, 31, "b")))
    assert (matcher.gap, matcher.held) == (1, 2)
    found = matcher.push(rows_of((1, 7, "b")))
    assert (matcher.late["n"].to_pylist(), matcher.gap) == ([1], None)
    assert bound(found) == [{"a": (2,), "b": (3,)}]


def test_punctuation_gives_up_numbers_and_the_end_gives_all() -> None:
    matcher = acep.Matcher(LETTERS, seq="n", id="n", seq_gaps=True)
    assert bound(matcher.push(rows_of((1, 5, "a"), (2, 6, "b"), (5, 7, "b")))) == []
    assert bound(matcher.advance(4)) == []
    assert bound(matcher.advance(5)) == [{"a": (1,), "b": (2,)}]  # 2 follows 1 without a gap
    assert (matcher.gap, matcher.held) == (3, 1)
    assert bound(matcher.finish()) == [{"a": (1,), "b": (5,)}]
    assert matcher.gap is None


REFUSED = [
    (rows_of((1, 5, "b"), (1, 5, "b")), "number 1 of column `n` comes twice"),
    (rows_of((0, 5, "b")), "number 0 of column `n` comes twice"),
    (rows_of((4, 9, "b")), "number 4 of column `n` comes twice"),
    (rows_of((-1, 5, "b")), "has the number -1, and the first is 0"),
    (rows_of((2, 9, "b"), (1, 10, "b")), "number 2 of column `n` is not in the order of time"),
    (rows_of((1, 4, "b")), "number 1 of column `n` is not in the order of time"),
    (rows_of((3, 10, "b")), "number 4 of column `n` is not in the order of time"),
    (rows_of((5, 8, "b")), "number 5 of column `n` is not in the order of time"),
    (rows_of((None, 8, "b"), (1, 8, "b")), "`n` is null"),
    (rows_of((1.5, 8, "b")), "must hold integers or timestamps"),
]


@pytest.mark.parametrize(("rows", "message"), REFUSED)
def test_numbers_that_make_no_sense_are_refused_and_nothing_is_taken_in(rows: list[Row], message: str) -> None:
    matcher = acep.Matcher(LETTERS, seq="n", seq_gaps=True)
    matcher.push(rows_of((0, 5, "a"), (4, 9, "b")))
    with pytest.raises(DataError, match=message):
        matcher.push(rows)
    assert (matcher.gap, matcher.held) == (1, 1)
    found = matcher.push(rows_of((1, 6, "x"), (2, 6, "b"), (3, 9, "x")))
    assert bound(found) == [{"a": (0,), "b": (3,)}, {"a": (0,), "b": (1,)}]  # by arrival


def test_a_number_that_was_given_up_may_not_come_at_a_later_time() -> None:
    matcher = acep.Matcher(LETTERS, seq="n", id="n", seq_gaps=True)
    matcher.push(rows_of((0, 5, "a"), (2, 9, "b")))
    matcher.advance(9)
    with pytest.raises(DataError, match="number 1 of column `n` is not in the order of time"):
        matcher.push(rows_of((1, 10, "b")))
    with pytest.raises(DataError, match="number 2 of column `n` comes twice"):
        matcher.push(rows_of((2, 9, "b")))
    matcher.push(rows_of((1, 9, "b")))
    assert matcher.report.late == 1


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"seq": None}, QueryError, "a column counts all events"),
        ({"seq_gaps": None}, QueryError, "no number of a first event"),
        ({"seq_gaps": -1}, QueryError, "no number of a first event"),
        ({"seq_gaps": "0"}, QueryError, "no number of a first event"),
        ({"seq_gaps": 1.0}, QueryError, "no number of a first event"),
        ({"op": "op"}, QueryError, "could take them back"),
        ({"op": "op", "id": "n", "lateness": 3}, QueryError, "could take them back"),
        ({"speculation": "inf"}, QueryError, "nothing early across a gap"),
        ({"speculation": 1, "lateness": 3}, QueryError, "nothing early across a gap"),
        ({"seq": "ts_of"}, DataError, r"column `ts_of` is timestamp\[us\], and seq_gaps= is for numbers"),
        ({"seq": "in.n"}, DataError, "a field of another"),
    ],
)
def test_wrong_options(options: dict[str, Any], kind: type[AcepError], message: str) -> None:
    events = pa.table(
        {"ts": [1], "type": ["a"], "n": [0], "in": [{"n": 0}], "op": [1], "ts_of": pa.array([0], pa.timestamp("us"))}
    )
    with pytest.raises(kind, match=message):
        acep.Matcher(LETTERS, **{"seq": "n", "seq_gaps": True} | options).push(events)


def test_a_whole_table_has_no_gaps_to_wait_for() -> None:
    with pytest.raises(TypeError, match="seq_gaps"):
        acep.match({"ts": [1], "type": ["a"], "n": [0]}, LETTERS, seq="n", seq_gaps=True)


def test_a_snapshot_of_other_numbers_is_refused() -> None:
    matcher = acep.Matcher(LETTERS, seq="n", lateness="inf", seq_gaps=True)
    matcher.push(rows_of((1, 5, "b")))
    data = matcher.snapshot()
    for other in ({"lateness": "inf"}, {"lateness": "inf", "seq_gaps": 1}, {"lateness": 5, "seq_gaps": True}):
        with pytest.raises(SnapshotError):
            acep.Matcher(LETTERS, seq="n", **other).restore(data)
    same = acep.Matcher(LETTERS, seq="n", seq_gaps=0)
    same.restore(data)
    assert (same.gap, same.held) == (0, 1)
    assert len(same.push(rows_of((0, 4, "a")))) == 1


@pytest.mark.parametrize("engine", ENGINES)
def test_automata_change_by_time_whatever_is_held(engine: str) -> None:
    up, down = acep.arc("begin", "end", "e.x > 1"), acep.arc("begin", "end", "e.x < 1")
    automaton = acep.Automaton([up], final="end")
    matcher = acep.Matcher(automaton, type=None, seq="n", id="n", seq_gaps=True, dynamic=True, engine=engine)
    assert bound(matcher.push({"n": [0, 3], "ts": [1, 4], "x": [5, 0]})) == [{"events": (0,)}]
    matcher.change(add=[down], remove=[up])  # from 5 on
    found = matcher.push({"n": [1, 2, 4, 5], "ts": [2, 3, 5, 6], "x": [5, 0, 5, 0]})
    assert [m.start for m in found] == [2, 6]
