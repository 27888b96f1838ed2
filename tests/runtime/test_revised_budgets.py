"""Events that come late or are taken back under a budget, on random queries, streams and budgets.

After each push the output less what was taken back is part of the exact result over the sorted, corrected events so
far, by the reference engine. With a budget that suffices it is all of it.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import acep
from acep.errors import EngineError, QueryError, SnapshotError
from acep.runtime.room import Room
from tests.random_cases import COLUMNS, Case
from tests.runtime.test_revisions import SPECULATIONS, UNUSED, Arriving, Net, arriving, by_id, net, table
from tests.test_random import drawn

BOUNDED = (
    "SEQ(A p, B q) WHERE skip_till_any_match(p, q) { [k] AND q.x >= p.x } WITHIN 6",
    "SEQ(A p, B q) WHERE skip_till_any_match(p, q) { [k] } WITHIN 12",
    "SEQ(A p, B+ q[], C r) WHERE skip_till_next_match(p, q[], r) { [k] } WITHIN 9",
    "SEQ(A p, B q) WHERE skip_till_next_match(p, q) { q.x > p.x }",
    "SEQ(A p, B q) WHERE partition_contiguity(p, q) { [k] AND q.x >= p.x } WITHIN 5 EVENTS",
    "SEQ(A p, B q, C r) WHERE strict_contiguity(p, q, r) { q.x >= p.x } WITHIN 5",
)
REFUSED = (EngineError, QueryError)  # by queries that keep to no budget, also in order


def exact(case: Case, stream: Arriving, options: dict[str, Any]) -> Net:
    """The exact result over the events that count so far."""
    events = stream.table()
    if not len(events):
        return {}
    if "id" not in options:  # ids are the places of arrival
        places = sorted(place - 1 for place, _ in stream.live.values())
        events = events.set_column(events.column_names.index("number"), "number", pa.array(places, pa.int64()))
    return net(acep.match(events, case.query(), **case.stream | {"id": "number", "engine": "reference"}))


def beyond(given: Net, want: Net) -> Net:
    """The matches that were given and are none. A match whose cheapest run was shed may have a greater error, as in
    order."""
    known: Counter[Any] = Counter()
    for (key, start, end, _, *rest), many in want.items():
        known[key, start, end, *rest] += many
    found: Counter[Any] = Counter()
    for (key, start, end, _, *rest), many in given.items():
        found[key, start, end, *rest] += many
    return {key: many for key, many in found.items() if many > known[key]}


class Run:
    """A matcher under a budget, and a model of the stream that it has seen."""

    def __init__(self, case: Case, rng: Random, budget: acep.Budget | None, **more: Any) -> None:
        self.case, self.ops = case, rng.random() < 0.6
        self.whole = arriving(case.events, rng, ops=self.ops, by=rng.choice((1, 3, 8, 20)))
        self.options = {name: column for name, column in case.stream.items() if name != "id"}
        self.options |= {"id": "number"} if self.ops or rng.random() < 0.5 else {}
        self.asked = self.options | {"lateness": self.whole.lateness, "speculation": rng.choice(SPECULATIONS[1:])}
        self.asked |= ({"op": "op"} if self.ops else {}) | {"budget": budget} | more
        self.matcher = acep.Matcher(case.query(), **self.asked)
        self.stream, self.given = Arriving(self.whole.lateness), list[Any]()

    def pushes(self) -> Any:
        """Push all, and yield after each push."""
        for rows in self.whole.pushes:
            self.stream.push(rows)
            self.given += self.matcher.push(table(rows))
            yield

    def restored(self) -> None:
        """Go on with another matcher, from a snapshot."""
        state, self.matcher = self.matcher.snapshot(), acep.Matcher(self.case.query(), **self.asked)
        self.matcher.restore(state)


def tight(rng: Random) -> acep.Budget:
    return acep.Budget(work=rng.choice((0.3, 1, 2, 4)), latency=rng.choice((None, None, None, 0.01)))


@pytest.fixture(autouse=True)
def _quiet() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", acep.DataWarning)
        yield


def told(matches: Any) -> list[tuple[Any, ...]]:
    return [(m.op, str(m.key), m.start, m.end, str(m.error), str(m.bindings), str(m.values)) for m in matches]


def test_no_match_is_given_that_is_none(cases: Callable[[int], int], monkeypatch: pytest.MonkeyPatch) -> None:
    each, seen = max(60, cases(80)), Counter[str]()
    for seed in range(each):
        case, rng = drawn(seed), Random(seed)
        monkeypatch.setattr("acep.runtime.revised_plan.SELDOM", 1 + 31 * (seed % 3))
        budget = tight(rng)
        run = Run(case, rng, budget)
        try:
            for _ in run.pushes():
                if rng.random() < 0.2:
                    run.restored()
                if rng.random() < 0.15:
                    wrong = beyond(net(run.given), exact(case, run.stream, run.options))
                    assert not wrong, f"{wrong}\nseed {seed}\n{case.paste()}"
                report = run.matcher.report
                assert report.work <= (budget.work or 0) * run.stream.came + 1e-6, f"seed {seed}"
                assert report.exact == (report.shed == 0 and report.late == 0)
            run.given += run.matcher.finish()
        except REFUSED:
            seen["refused"] += 1
            continue
        want, found, report = exact(case, run.stream, run.options), net(run.given), run.matcher.report
        assert not beyond(found, want), f"{beyond(found, want)}\nseed {seed}\n{case.paste()}"
        assert not (wrong_id := by_id(run.given)), f"{wrong_id}\nseed {seed}\n{case.paste()}"
        assert report.matches == sum(found.values())
        assert report.shed or found == want, f"{found}, not {want}\nseed {seed}\n{case.paste()}"
        seen["shed"] += report.shed > 0
        seen["lost"] += found != want
        seen["back"] += report.retracted > 0
        seen["run"] += 1
    assert seen["run"] >= each // 4
    assert seen["shed"] >= seen["run"] // 4
    assert min(seen["lost"], seen["back"]) > 0


AMPLE = {"work": 1e6}, {"latency": 1e3}, {"memory": "1 GB"}, {"work": 1e6, "memory": "1 GB"}


@pytest.mark.parametrize("budget", AMPLE)
def test_with_a_budget_that_suffices_all_is_as_without_one(budget: Any, cases: Callable[[int], int]) -> None:
    seen = Counter[str]()
    for seed in range(max(20, cases(25))):
        case = drawn(seed)
        free, bound = Run(case, Random(seed), None), Run(case, Random(seed), acep.Budget(**budget))
        try:
            for _ in bound.pushes():
                pass
        except REFUSED:
            seen["refused"] += 1
            continue
        for _ in free.pushes():
            if len(free.stream.pushes) % 3 == 0:
                seen["same"] += 1
        assert sorted(told(free.given)) == sorted(told(bound.given)), f"seed {seed}\n{case.paste()}"
        assert sorted(told(free.matcher.finish())) == sorted(told(bound.matcher.finish()))
        one, other = free.matcher.report, bound.matcher.report
        assert other.exact == (other.late == 0)
        assert (one.matches, one.retracted, one.events) == (other.matches, other.retracted, other.events)
        seen["back"] += other.retracted > 0
    assert seen["back"] > 0
    assert seen["same"] > 2


def test_the_same_pushes_have_the_same_answer_also_across_snapshots(cases: Callable[[int], int]) -> None:
    seen = Counter[str]()
    for seed in range(max(20, cases(30))):
        case = drawn(seed)
        budget = acep.Budget(work=Random(seed).choice((0.3, 1, 2)))
        runs = [Run(case, Random(seed), budget) for _ in range(3)]
        outputs: list[list[Any]] = [[], [], []]
        try:
            for number, run in enumerate(runs):
                for _ in run.pushes():
                    outputs[number].append(told(run.given))
                    if number == 2 and Random(f"{seed} {len(run.given)}").random() < 0.4:
                        run.restored()
                run.given += run.matcher.finish()
                outputs[number].append((told(run.given), run.matcher.report.shed, run.matcher.report.work))
        except REFUSED:
            continue
        assert outputs[0] == outputs[1] == outputs[2], f"seed {seed}\n{case.paste()}"
        seen["shed"] += runs[0].matcher.report.shed > 0
        seen["back"] += runs[0].matcher.report.retracted > 0
    assert min(seen["shed"], seen["back"]) > 0


def test_with_little_memory_no_match_is_given_that_is_none(
    cases: Callable[[int], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The room for events and matches is made so small that it is full after a few."""
    monkeypatch.setattr("acep.events.growing.FIRST", 4)
    monkeypatch.setattr("acep.runtime.room.SLICE", 3)
    seen = Counter[str]()
    for seed in range(max(60, cases(60))):
        rng, text = Random(seed), BOUNDED[seed % len(BOUNDED)]
        drawn_rows = [{"type": rng.choice("ABBC"), "k": rng.randrange(2), "x": rng.randrange(4)} for _ in range(70)]
        rows = [dict.fromkeys(COLUMNS) | row | {"ts": n // 2, "seq": n % 3} for n, row in enumerate(drawn_rows)]
        case = Case(seed, False, f"PATTERN {text}", {}, rows, rng.choice(({}, {"seq": "seq"})))
        most = rng.choice((1_500, 2_500, 5_000))
        monkeypatch.setattr("acep.runtime.revised_plan.Room", lambda _, waiting, most=most: Room(most, waiting))
        run = Run(case, rng, acep.Budget(memory="1 MB"), policy="newest-per-state")
        for _ in run.pushes():
            if rng.random() < 0.1:
                run.restored()
            if rng.random() < 0.05:
                wrong = beyond(net(run.given), exact(case, run.stream, run.options))
                assert not wrong, f"{wrong}\nseed {seed}\n{case.paste()}"
            (part,) = run.matcher._tables.revised._parts
            assert part.room.peak <= most, f"seed {seed}"
            assert run.matcher.held == len(part.log) + len(part.room.waiting) + len(run.matcher._tables.arrivals)
            seen["waits"] += len(part.room.waiting) > 0
            seen["blind"] += part.room.blind is not None
        early = net(run.given)
        run.given += run.matcher.finish()
        want, found, report = exact(case, run.stream, run.options), net(run.given), run.matcher.report
        assert not beyond(found, want), f"{beyond(found, want)}\nseed {seed}\n{case.paste()}"
        assert not (wrong_id := by_id(run.given)), f"{wrong_id}\nseed {seed}\n{case.paste()}"
        assert report.matches == sum(found.values())
        assert report.shed or found == want, f"{found}, not {want}\nseed {seed}\n{case.paste()}"
        seen["back"] += report.retracted > 0
        seen["later"] += found == want != early  # what was held came later
        seen["shed"] += report.shed > 0
    assert min(seen[one] for one in ("waits", "blind", "later", "back", "shed")) > 0, seen


OPTIONS: dict[str, Any] = {"lateness": 1000, "speculation": "inf"}
PAIRS = acep.parse("PATTERN SEQ(a p, b q) WHERE skip_till_any_match(p, q) { q.x > p.x } WITHIN 15")
FEW = acep.parse("PATTERN SEQ(a p, b q, c r) WHERE skip_till_any_match(p, q, r) { q.x > p.x AND r.x > q.x } WITHIN 60")


def some(size: int, late: float = 0.05, by: int = 60) -> list[dict[str, Any]]:
    """Events with their places in time, some of which come late."""
    rng = Random(7)
    rows = [{"ts": n, "n": n, "type": rng.choice("abc"), "x": rng.random()} for n in range(size)]
    return sorted(rows, key=lambda row: row["ts"] + rng.randrange(by) * (rng.random() < late))


def pushed(matcher: Any, rows: list[dict[str, Any]], size: int = 50) -> list[Any]:
    return [m for at in range(0, len(rows), size) for m in matcher.push(rows[at : at + size])]


def test_under_a_tight_budget_nearly_as_much_is_found_as_in_order() -> None:
    """Late events whose revision costs more than they bring are shed."""
    rows, budget = some(4000), acep.Budget(work=6)
    want = net(acep.match(rows, FEW, id="n"))
    in_order = len(acep.match(rows, FEW, id="n", budget=budget))
    matcher = acep.Matcher(FEW, id="n", budget=budget, lateness=100, speculation="inf")
    found = net([*pushed(matcher, rows), *matcher.finish()])
    assert not beyond(found, want)
    assert 0 < in_order < len(want)
    assert len(found) > 0.7 * in_order
    assert matcher.report.work <= 6 * 4000
    assert matcher.report.recall is None
    assert matcher.report.interval == (0, 1)
    assert "not estimated where matches may be taken back" in str(matcher.report)


def test_what_does_not_fit_into_the_memory_is_held_and_comes_later() -> None:
    rows = some(3000)
    matcher = acep.Matcher(PAIRS, id="n", budget=acep.Budget(memory="1 MB"), lateness="inf", speculation="inf")
    early = pushed(matcher, rows)
    held, report = matcher.held, matcher.report
    assert report.memory <= 2**20
    assert held == 3000  # those that were matched are kept, and the others wait
    later = [*matcher.advance(2000)]
    assert matcher.held < held
    rest = [*matcher.finish()]
    assert net(early + later + rest) == net(acep.match(rows, PAIRS, id="n"))
    assert min(map(len, (early, later))) > 0
    assert matcher.report.exact


def test_where_late_events_alone_do_not_fit_what_is_not_final_is_given_up() -> None:
    rng = Random(3)
    late = [{"ts": rng.randrange(4000), "n": n, "type": rng.choice("abc"), "x": rng.random()} for n in range(6000)]
    late[0]["ts"] = 4000  # all others come before it
    matcher = acep.Matcher(PAIRS, id="n", budget=acep.Budget(memory="1 MB"), lateness="inf", speculation="inf")
    given = pushed(matcher, late, 600)
    given += matcher.finish()
    report = matcher.report
    assert report.memory <= 2**20
    assert report.shed > 0
    assert report.retracted > 0
    assert not by_id(given)
    assert not beyond(net(given), net(acep.match(late, PAIRS, id="n")))


@pytest.mark.parametrize(
    "text",
    [
        "SEQ(a p, b q, c r) WHERE skip_till_any_match(p, q, r) { [k] AND q.x > p.x AND r.x > q.x + 0.8 } WITHIN 900",
        "SEQ(a p, b+ q[], c r) WHERE skip_till_next_match(p, q[], r) { [k] AND r.x > avg(q[].x) + 0.3 } WITHIN 700",
        "SEQ(a p, b q, c r) WHERE skip_till_any_match(p, q, r) { q.x > p.x + 0.5 AND r.x > q.x } WITHIN 120 EVENTS",
        "SEQ(a p, b q, c r) WHERE skip_till_next_match(p, q, r) { [k] AND q.x > p.x AND r.x > q.x + 0.4 }",
    ],
)
def test_partial_matches_that_fill_the_memory_are_revised_too(text: str) -> None:
    rng, query = Random(text), acep.parse(f"PATTERN {text}")
    rows = [
        {"ts": n, "n": n, "type": rng.choice("abc"), "k": rng.randrange(40), "x": rng.random()} for n in range(2400)
    ]
    rows.sort(key=lambda row: row["ts"] + rng.randrange(200) * (rng.random() < 0.03))
    budget = acep.Budget(memory="1 MB", work=rng.choice((None, 20)))
    matcher = acep.Matcher(query, id="n", lateness=300, speculation="inf", budget=budget)
    given = list[Any]()
    for at in range(0, len(rows), 60):
        given += matcher.push(rows[at : at + 60])
        session = matcher._tables.revised._parts[0].stream._session
        assert session.bytes <= 2**19
        assert matcher.report.memory <= 2**20
    given += matcher.finish()
    assert not by_id(given)
    assert not beyond(net(given), net(acep.match(rows, query, id="n")))
    assert len(given) > 0


def test_several_queries_share_a_budget() -> None:
    rows = some(1000)
    queries = {"pairs": PAIRS, "few": FEW}
    for budget in (acep.Budget(work=2), acep.Budget(memory="2 MB"), acep.Budget(cpu=0.5), acep.Budget(latency=0.01)):
        matcher = acep.Matcher(queries, id="n", unit="ms", budget=budget, lateness=100, speculation="inf")
        given: dict[str, list[Any]] = {name: [] for name in queries}
        for at in range(0, 1000, 100):
            for name, found in matcher.push(rows[at : at + 100]).items():
                given[name] += found
        for name, found in matcher.finish().items():
            given[name] += found
            want = net(acep.match(rows, queries[name], id="n", unit="ms"))
            assert not beyond(net(given[name]), want)
            assert found.report.shed or net(given[name]) == want
        assert matcher.report.memory <= 2 * 2**20
        assert matcher.report.exact == (matcher.report.shed == 0)


@pytest.mark.parametrize(
    ("query", "options", "error", "message"),
    [
        (PAIRS, {"budget": acep.Budget(work=3, recover=True)}, QueryError, "recover= gives matches later"),
        (PAIRS, {"budget": acep.Budget(work=3), "engine": "reference"}, EngineError, "only the native core keeps"),
        ("PATTERN SEQ(a p, b q) WITHIN 5 OUTPUT NON OVERLAP", {}, QueryError, "chosen among others"),
        ("PATTERN SEQ(a p, ~b q) WITHIN 5", {"budget": acep.Budget(memory="1 MB")}, QueryError, "a bound on memory"),
        (PAIRS, {"budget": acep.Budget(cpu=0.5)}, QueryError, "cpu= is a share"),
    ],
)
def test_budgets_that_are_not_kept_are_refused(query: Any, options: Any, error: Any, message: str) -> None:
    matcher = acep.Matcher(query, **OPTIONS | {"budget": acep.Budget(work=3)} | options)
    with pytest.raises(error, match=message):
        matcher.push({"ts": [1], "type": ["a"], "x": [1.0]})


@given(seed=st.integers(0, 2**20))
def test_a_state_that_was_spoilt_or_is_of_another_budget_is_refused(seed: int) -> None:
    rng, rows = Random(seed), some(40)
    budgets = [None, acep.Budget(work=1), acep.Budget(memory="1 MB"), acep.Budget(latency=1.0)]
    one, other = rng.sample(budgets, 2)
    matcher, asked = acep.Matcher(PAIRS, **OPTIONS, budget=one), {**OPTIONS, "budget": other}
    pushed(matcher, rows[: rng.randrange(1, 40)])
    state = bytearray(matcher.snapshot())
    with pytest.raises(SnapshotError):
        acep.Matcher(PAIRS, **asked).restore(bytes(state))
    state[rng.choice([n for n in range(len(state)) if n not in UNUSED])] ^= 1 << rng.randrange(8)
    with pytest.raises(SnapshotError):
        acep.Matcher(PAIRS, **OPTIONS, budget=one).restore(bytes(state))
