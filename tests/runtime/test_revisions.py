"""Events that come late or are taken back, on random queries and streams: the equation of docs/internals/disorder.md.

The sum of all output with match points up to the output punctuation is that part of the exact result over the sorted,
corrected stream; after ``finish``, all of it. Ten thousand cases on both engines by default, a fifth of them with
hand-written automata; ``ACEP_CASES`` multiplies that.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import acep
from acep.errors import DataError, QueryError, SnapshotError
from acep.pattern.tree import Query
from acep.revision.revised_plan import SELDOM
from tests.case_counts import CaseCounts
from tests.complaints import difference, fail_if_wrong, fail_if_wrong_on_rows
from tests.random_automata import few_matches, random_automaton, random_rows
from tests.random_cases import COLUMNS, Case
from tests.test_random import drawn

pytestmark = pytest.mark.usefixtures("shared_plans")
CHUNKS = 40
ARRIVALS = 2  # of the events of a case, each in an order of its own and with retractions of its own
FAR = 1_000_001  # between the seeds of the arrivals of a case
ENGINES = ("auto", "reference")
SPECULATIONS = (0, 1, 3, "inf", "inf")
ONE_AND_TWO = ["bd371470734756636469088bbb553408", "bb45b4b68a67c0a5b03c7acae3a7b620"]
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


def by_id(given: Iterable[Any]) -> str:
    """Keep the matches as a table by id: 1 inserts a row, -1 deletes it. Return what does not fit, or nothing."""
    there: dict[str, tuple[Any, ...]] = {}
    for m in given:
        told = m.start, m.end, str(m.error), str(m.values)
        if m.op > 0 and m.id in there:
            return f"{m} is given twice"
        if m.op < 0 and there.get(m.id) != told:
            return f"{m} is taken back, and was not there"
        there.pop(m.id, None)
        if m.op > 0:
            there[m.id] = told
    return ""


def until(found: Net, time: Any) -> Net:
    return {key: many for key, many in found.items() if key[2] <= time}


def arriving(
    events: list[Row], rng: Random, *, ops: bool, lateness: int | None = None, by: int | None = None, most: int = 7
) -> Arriving:
    """Events with disorder of ``by`` ticks, and with ``ops`` also retractions and corrections, in pushes of at most so
    many events."""
    late = rng.choice((0, 2, 5, 20, "inf"))
    drawn_by = rng.choice((0, 1, 3, 8))
    by = drawn_by if by is None else by
    rows = [row | {"number": n, "op": 1} for n, row in enumerate(events)]
    rows.sort(key=lambda row: row["ts"] + rng.randrange(by + 1) * (rng.random() < 0.5))
    stream = Arriving(late if lateness is None else lateness)
    waiting: list[Row] = []
    while rows:
        some: list[Row] = []
        for _ in range(rng.randrange(1, most + 1)):
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


def checked(case: Case, query: Query, seed: int) -> str:
    """Push what comes on each engine and compare what was given with the exact result, by one engine or the other.
    Return what is wrong, or nothing."""
    rng = Random(seed)
    ops = rng.random() < 0.6
    stream = arriving(case.events, rng, ops=ops)
    options = {name: column for name, column in case.stream.items() if name != "id"}
    options |= {"id": "number"} if ops or rng.random() < 0.5 else {}
    events = stream.table()
    if "id" not in options:  # ids are the places of arrival
        places = sorted(place - 1 for place, _ in stream.live.values())
        events = events.set_column(events.column_names.index("number"), "number", pa.array(places, pa.int64()))
    want = net(acep.match(events, query, **options | {"id": "number", "engine": ENGINES[seed % 2]}))
    asked = options | {"lateness": stream.lateness, "speculation": rng.choice(SPECULATIONS)}
    asked |= {"op": "op"} if ops else {}
    for engine in ENGINES:
        if wrong := differs(stream, query, asked | {"engine": engine}, want, Random(seed)):
            return f"{engine}: {wrong}"
    return ""


def differs(stream: Arriving, query: Query, asked: dict[str, Any], want: Net, rng: Random) -> str:
    """Push a stream on one engine, sometimes with snapshots; return how the output differs, or nothing."""
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
    if rng.random() < 0.3 and (wrong := by_id(given)):
        return wrong
    if net(given) != want:
        return difference(net(given), want, ("given", "exact"))
    if matcher.report.late != stream.refused or matcher.report.matches != sum(want.values()):
        return f"{matcher.report.late} late, {matcher.report.matches} matches"
    for time, many in promises:
        if until(net(given[:many]), time) != until(want, time):
            return f"up to {time}:\n{difference(until(net(given[:many]), time), until(want, time), ('given', 'exact'))}"
    return ""


def refused(query: Query) -> bool:
    return bool(query.sources)


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_what_is_given_less_what_is_taken_back_is_the_exact_result(
    chunk: int, cases: CaseCounts, monkeypatch: pytest.MonkeyPatch
) -> None:
    each = cases(100)
    for seed in range(chunk * each, (chunk + 1) * each):
        case = drawn(seed)
        monkeypatch.setattr("acep.revision.revised_plan.SELDOM", 1 + 31 * (seed % 3))  # 1: forget with every push
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", acep.DataWarning)
            if refused(query := case.query()):
                for engine in ENGINES:
                    with pytest.raises(QueryError, match="cannot be revised"):
                        acep.Matcher(query, lateness=3, speculation="inf", engine=engine).push(case.table())
                continue
            for arrival in range(seed, seed + ARRIVALS * FAR, FAR):
                fail_if_wrong(case, lambda smaller, arrival=arrival: checked(smaller, smaller.query(), arrival))


@pytest.mark.parametrize("chunk", range(CHUNKS // 4))
def test_the_same_holds_for_hand_written_automata(chunk: int, cases: CaseCounts) -> None:
    each = cases(100)
    for seed in range(chunk * each, (chunk + 1) * each):
        rng = Random(seed)
        automaton = random_automaton(rng)
        query, rows = automaton.query, few_matches(automaton, random_rows(rng, 25))
        columns = rng.choice(({}, {"seq": "seq"}))
        for arrival in range(seed, seed + ARRIVALS * FAR, FAR):
            complain = partial(automaton_complaint, query, columns, arrival)
            fail_if_wrong_on_rows(rows, f"seed {seed}, arrival {arrival}, {columns}\n{query.text}", complain)


def automaton_complaint(query: Query, columns: dict[str, str], arrival: int, rows: list[Row]) -> str:
    """Say what is wrong with an automaton on some rows."""
    return checked(Case(arrival, False, "", {}, rows, columns), query, arrival)


UNUSED = (10, 11)  # bytes of the head of a snapshot that mean nothing
LETTERS = acep.regex("ab", within=10)


def rows_of(*rows: tuple[Any, ...]) -> list[Row]:
    return [dict(zip(("ts", "type", "id", "op"), row, strict=True)) for row in rows]


def told(matches: Any) -> list[tuple[Any, ...]]:
    return [(m.op, m.bindings) for m in matches]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_match_is_taken_back_and_comes_again_with_the_same_id(engine: str) -> None:
    matcher = acep.Matcher(LETTERS, id="id", op="op", lateness=50, speculation="inf", engine=engine)
    (one,) = matcher.push(rows_of((1, "a", 7, 1), (5, "b", 8, 1)))
    (gone,) = matcher.push(rows_of((5, "b", 8, -1)))
    (again,) = matcher.push(rows_of((6, "b", 8, 1)))
    assert [(m.op, m.end) for m in (one, gone, again)] == [(1, 5), (-1, 5), (1, 6)]
    assert one.id == gone.id == again.id
    assert len(one.id) == 32
    report = matcher.report
    assert (report.events, report.matches, report.retracted, report.exact) == (2, 1, 1, True)
    assert "1 match, 1 taken back" in str(report)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("speculation", [1, "inf"])
def test_a_retraction_alone_takes_a_match_back(engine: str, speculation: Any) -> None:
    options = {"id": "id", "op": "op", "lateness": 5, "speculation": speculation, "engine": engine}
    matcher = acep.Matcher(acep.regex("ab", within=9), **options)
    events = {"ts": [1, 2, 7], "type": ["a", "b", "x"], "id": [1, 2, 3], "op": [1, 1, 1]}
    assert [(match.op, match.end) for match in matcher.push(events)] == [(1, 2)]
    retraction = {"ts": [2], "type": ["b"], "id": [2], "op": [-1]}
    assert [(match.op, match.end) for match in matcher.push(retraction)] == [(-1, 2)]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_match_of_the_whole_window_is_taken_back_at_the_last_moment(engine: str) -> None:
    matcher = acep.Matcher(acep.regex("ab", within=5), id="id", op="op", lateness=5, speculation="inf", engine=engine)
    events = {"ts": [2, 7], "type": ["a", "b"], "id": [1, 2], "op": [1, 1]}
    assert [(match.op, match.start, match.end) for match in matcher.push(events)] == [(1, 2, 7)]
    for number in range(SELDOM):  # after them an event at 7 may still be taken back, and none before; each is revised
        matcher.push({"ts": [12 - number % 2], "type": ["x"], "id": [3 + number], "op": [1]})
    retraction = {"ts": [7], "type": ["b"], "id": [2], "op": [-1]}
    assert [(match.op, match.start, match.end) for match in matcher.push(retraction)] == [(-1, 2, 7)]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_match_is_taken_back_before_it_comes_again_at_an_earlier_time(engine: str) -> None:
    matcher = acep.Matcher(LETTERS, id="id", op="op", lateness=50, speculation="inf", engine=engine)
    matcher.push(rows_of((1, "a", 7, 1), (5, "b", 8, 1), (6, "b", 9, 1)))
    change = matcher.push(rows_of((6, "b", 9, -1), (3, "b", 9, 1)))
    assert [(m.op, m.end) for m in change] == [(-1, 6), (1, 3)]


def test_a_match_that_is_taken_back_is_shown_as_such() -> None:
    matcher = acep.Matcher(LETTERS, id="id", op="op", lateness=50, speculation="inf")
    given = matcher.push(rows_of((1, "a", 7, 1), (5, "b", 8, 1)))
    gone = matcher.push(rows_of((5, "b", 8, -1)))
    assert "taken back: 1..5" in repr(gone).replace("taken back:  ", "taken back: ")
    assert "taken back: 1..5" not in repr(given)
    assert "<th>op</th>" in gone._repr_html_()
    assert "<td>-1</td>" in gone._repr_html_()
    assert "<td>-1</td>" not in given._repr_html_()


@pytest.mark.parametrize("engine", ENGINES)
def test_values_and_errors_of_an_unchanged_binding_are_corrected(engine: str) -> None:
    query = acep.parse("PATTERN SEQ(a p, x m, b q) WITHIN 10 RETURN p.v + q.v AS sum", errors=1)
    options: dict[str, Any] = {"id": "id", "op": "op", "lateness": 50, "speculation": "inf", "engine": engine}
    matcher = acep.Matcher(query, **options)
    found = [
        *matcher.push(
            [{"ts": t, "type": k, "id": i, "v": v, "op": 1} for t, k, i, v in ((1, "a", 1, 1), (5, "b", 2, 2))]
        )
    ]
    assert [(m.op, m.error, m.values) for m in found] == [(1, 1, {"sum": 3})]
    change = matcher.push(
        [{"ts": 5, "type": "b", "id": 2, "v": 2, "op": -1}, {"ts": 5, "type": "b", "id": 2, "v": 9, "op": 1}]
    )
    assert [(m.op, m.values, m.id == found[0].id) for m in change] == [(-1, {"sum": 3}, True), (1, {"sum": 10}, True)]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_matcher_that_is_restored_again_and_again_forgets(engine: str) -> None:
    options: dict[str, Any] = {"lateness": 5, "speculation": "inf", "engine": engine}
    state, held = acep.Matcher(LETTERS, **options).snapshot(), []
    for n in range(60):
        matcher = acep.Matcher(LETTERS, **options)
        matcher.restore(state)
        matcher.push({"ts": [*range(20 * n, 20 * n + 20)], "type": ["a", "b"] * 10})
        state = matcher.snapshot()
        held.append(matcher.held)
    assert max(one or 0 for one in held) <= 5 + 2 * 10 + 20


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("window", ["5", "5 EVENTS"])
def test_a_match_that_waits_for_the_choice_keeps_its_events_in_a_snapshot(engine: str, window: str) -> None:
    """Matches that overlap in a chain are chosen once it ends, which may be long after their events are final."""
    query = acep.parse(f"PATTERN SEQ(a p, b q) WHERE skip_till_any_match(p, q) WITHIN {window} OUTPUT NON OVERLAP")
    rows = [{"ts": ts, "type": "ab"[ts % 2]} for ts in range(30)]
    options: dict[str, Any] = {"lateness": 2, "speculation": "inf", "engine": engine}
    matcher = acep.Matcher(query, **options)
    given = [m for ts in range(30) for m in matcher.push(rows[ts : ts + 1])]
    state = matcher.snapshot()
    matcher = acep.Matcher(query, **options)
    matcher.restore(state)
    given += matcher.finish()
    assert net(given) == net(acep.match(rows, query, engine=engine))


@pytest.mark.parametrize("engine", ENGINES)
def test_matches_overlap_also_where_an_event_was_taken_back_and_came_again(engine: str) -> None:
    query = acep.parse("PATTERN SEQ(b q, a p) WITHIN 10 OUTPUT NON OVERLAP", errors=1)
    options: dict[str, Any] = {"id": "id", "op": "op", "lateness": 50, "speculation": "inf", "engine": engine}
    matcher = acep.Matcher(query, **options)
    given = [*matcher.push(rows_of((7, "b", 5, 1)))]
    given += matcher.push(rows_of((7, "b", 5, -1), (7, "b", 5, 1), (9, "a", 6, 1)))
    given += matcher.finish()
    assert [(m.error, m.bindings) for m in given if m.op > 0] == [(0, {"q": (5,), "p": (6,)})]


@pytest.mark.parametrize("engine", ENGINES)
def test_output_as_a_table_can_be_kept_as_a_table_by_id(engine: str) -> None:
    """Each +1 inserts a row and each -1 deletes one: the table is the exact result at the end."""
    rng, kept = Random(3), dict[str, Row]()
    rows = [{"ts": t, "type": rng.choice("ab"), "name": f"e{t}"} for t in range(300)]
    rows.sort(key=lambda row: row["ts"] + rng.randrange(20))
    query = acep.parse("PATTERN SEQ(a p, b q) WHERE skip_till_next_match(p, q) WITHIN 10")
    matcher = acep.Matcher(query, id="name", lateness=25, speculation="inf", engine=engine)
    for at in range(0, 300, 10):
        for row in matcher.push(rows[at : at + 10]).to_arrow().to_pylist():
            if row["op"] > 0:
                assert row["id"] not in kept
                kept[row["id"]] = row
            else:
                assert kept.pop(row["id"])["bindings"] == row["bindings"]
            assert row["bundle"] is None
    matcher.finish()
    exact = acep.match(rows, query, id="name", engine=engine)
    assert {one: dict(row["bindings"]) for one, row in kept.items()} == {
        m.id: {name: [*ids] for name, ids in m.bindings.items()} for m in exact
    }
    assert matcher.report.retracted > 0


def test_ids_are_the_same_in_every_process_and_engine() -> None:
    query = acep.parse("PATTERN SEQ(a p, b+ q[]) WHERE skip_till_next_match(p, q[]) { [k] } WITHIN 9")
    rows = {"ts": [1, 2, 3], "type": ["a", "b", "b"], "k": ["x", "x", "x"]}
    for engine in ENGINES:
        assert [m.id for m in acep.match(rows, query, engine=engine)] == ONE_AND_TWO


@pytest.mark.parametrize("speculation", [0, 4, "inf"])
def test_events_are_matched_as_long_before_they_are_final_as_was_asked(speculation: Any) -> None:
    matcher = acep.Matcher(LETTERS, lateness=10, speculation=speculation)
    steps = [
        told(matcher.push({"ts": [ts], "type": [kind]})) for ts, kind in ((1, "a"), (5, "b"), (12, "x"), (16, "x"))
    ]
    assert [len(step) for step in steps] == {0: [0, 0, 0, 1], 4: [0, 0, 1, 0], "inf": [0, 1, 0, 0]}[speculation]


def test_without_speculation_nothing_is_taken_back() -> None:
    rng = Random(5)
    rows = [{"ts": t, "type": rng.choice("ab")} for t in range(400)]
    rows.sort(key=lambda row: row["ts"] + rng.randrange(20))
    matcher = acep.Matcher(LETTERS, lateness=25)
    assert all(m.op == 1 for at in range(0, 400, 7) for m in matcher.push(rows[at : at + 7]))


@pytest.mark.parametrize("window", ["20", "20 EVENTS"])
def test_memory_is_bounded_by_the_lateness_and_the_window(window: str) -> None:
    query = acep.parse(f"PATTERN SEQ(a p, ~b n, a q) WHERE skip_till_next_match(p, q) {{ [k] }} WITHIN {window}")
    rng, most = Random(7), 0
    matcher = acep.Matcher(query, lateness=30, speculation="inf")
    for at in range(0, 30_000, 50):
        times = [max(0, at + i - rng.randrange(20)) for i in range(50)]
        matcher.push({"ts": times, "type": [rng.choice("ab") for _ in times], "k": [rng.randrange(3) for _ in times]})
        assert matcher.held is not None
        most = max(most, matcher.held)
    assert most < 32 * 50 + 500  # forgotten every 32 pushes


def test_several_queries_are_revised_each_by_itself() -> None:
    matcher = acep.Matcher({"one": LETTERS, "two": acep.regex("ba", within=10)}, lateness=50, speculation="inf")
    assert {name: told(found) for name, found in matcher.push({"ts": [1, 5], "type": ["a", "b"]}).items()} == {
        "one": [(1, {"a": (0,), "b": (1,)})],
        "two": [],
    }
    found = matcher.push({"ts": [7, 0], "type": ["a", "b"]})
    assert {name: told(one) for name, one in found.items()} == {
        "one": [],
        "two": [(1, {"b": (3,), "a": (0,)}), (1, {"b": (1,), "a": (2,)}), (1, {"b": (3,), "a": (2,)})],
    }
    assert matcher.report.matches == 4


def test_matches_that_may_be_taken_back_have_no_bundles() -> None:
    found = acep.Matcher(LETTERS, lateness=5, speculation="inf").push({"ts": [1, 2], "type": ["a", "b"]})
    assert found[0].bundle is None
    assert found.count() == 1
    with pytest.raises(QueryError, match="no bundles: a match that comes late may join or split them"):
        found.bundles()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"speculation": 3}, "give lateness="),
        ({"lateness": 5, "speculation": "soon"}, "is not a window"),
    ],
)
def test_speculation_that_makes_no_sense_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(QueryError, match=message):
        acep.Matcher(LETTERS, **options).push({"ts": [1], "type": ["a"]})


@given(seed=st.integers(0, 2**20))
def test_a_damaged_snapshot_of_a_revised_stream_is_refused(seed: int) -> None:
    rng = Random(seed)
    matcher = acep.Matcher(LETTERS, id="id", lateness=9, speculation="inf")
    matcher.push([{"ts": t, "type": rng.choice("ab"), "id": t} for t in range(rng.randrange(30))])
    state = bytearray(matcher.snapshot())
    at = rng.choice([n for n in range(len(state)) if n not in UNUSED])
    state[at] ^= 1 << rng.randrange(8)
    other = acep.Matcher(LETTERS, id="id", lateness=9, speculation="inf")
    with pytest.raises(SnapshotError):
        other.restore(bytes(state))
    with pytest.raises(SnapshotError):
        acep.Matcher(LETTERS, id="id", lateness=9).restore(matcher.snapshot())


BAD = pa.table({"ts": [6, 3], "type": ["a", "b"], "x": pa.array([2**63, 1], pa.uint64()), "id": [70, 71], "op": [1, 1]})


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("speculation", [0, 2, "inf"])
@pytest.mark.parametrize("ops", [False, True])
def test_a_push_that_is_refused_leaves_no_trace(engine: str, speculation: Any, ops: bool) -> None:
    query = acep.parse("PATTERN SEQ(a p, b q) WHERE skip_till_next_match(p, q) { q.x >= p.x } WITHIN 9")
    options: dict[str, Any] = {"id": "id", "lateness": 4, "speculation": speculation, "engine": engine}
    options |= {"op": "op"} if ops else {}
    good = [BAD.set_column(2, "x", pa.array(x, pa.uint64())) for x in ([3, 2], [5, 4])]
    good[1] = good[1].set_column(3, "id", pa.array([80, 81])).set_column(0, "ts", pa.array([8, 7]))
    one, other = (acep.Matcher(query, **options) for _ in range(2))
    for matcher in (one, other):
        assert matcher.push(good[0]) is not None
        if matcher is other:
            for refused_table in (BAD, good[1].set_column(3, "id", pa.array([9, 9]))):
                with pytest.raises(acep.errors.DataError):
                    matcher.push(refused_table)
                with pytest.raises(acep.errors.DataError):
                    list(matcher.blocks(refused_table))
    assert told(one.push(good[1])) == told(other.push(good[1]))
    assert told(one.finish()) == told(other.finish())
    assert one.report.events == other.report.events == 4


def test_the_id_of_a_final_event_may_come_again() -> None:
    rows = {"ts": [1, 2], "type": ["a", "b"], "id": [5, 6]}
    for lateness in (None, 0):
        options = {} if lateness is None else {"lateness": lateness}
        matcher = acep.Matcher(LETTERS, id="id", **options)
        found = [*matcher.push(rows), *matcher.push({"ts": [3], "type": ["c"], "id": [7]})]
        found += [*matcher.push(rows | {"ts": [4, 5]}), *matcher.finish()]
        assert [m.bindings for m in found] == [{"a": (5,), "b": (6,)}] * 3
    matcher = acep.Matcher(LETTERS, id="id", lateness=9)
    assert len(matcher.push(rows)) == 0
    with pytest.raises(DataError, match="the id 5 of column `id` came before"):
        matcher.push(rows | {"ts": [3, 4]})
