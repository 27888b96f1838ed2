"""Budgets of time: the cost model finds what things cost, and the controller holds to the time that there is."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

import acep
from acep.budget import pace as module
from acep.budget.cost import EVENT, MATCH, TOUCH, CostModel
from acep.budget.pace import Pace, pace_of
from acep.errors import QueryError
from acep.learning.policies.baselines import RULES
from tests.case_counts import CASES
from tests.thinned import thinned

SECOND = 1000  # ticks


@pytest.mark.parametrize("seed", range(CASES(20)))
def test_the_model_finds_all_costs_in_noise_and_follows_a_change(seed: int) -> None:
    random = Random(seed)
    model = CostModel()
    for event, touch, match in ((3e-7, 4e-9, 1e-7), (2e-6, 5e-8, 1e-6)):
        for _ in range(200):
            events = random.randrange(100, 5000)
            touches, matches = events * random.uniform(0, 300), int(events * random.uniform(0, 10))
            took = event * events + touch * touches + match * matches
            model.learn(events, touches, took * random.uniform(0.8, 1.25), matches=matches)
        assert model.touch == pytest.approx(touch, rel=0.4)
        assert model.match == pytest.approx(match, rel=0.4)
        whole = 1000 * event + 150_000 * touch + 5000 * match
        found = 1000 * model.event + 150_000 * model.touch + 5000 * model.match
        assert found == pytest.approx(whole, rel=0.15)
        assert CostModel.restore(model.state()) == model


@pytest.mark.parametrize("rate", [0.0, 10.0])
def test_the_model_is_sensible_where_all_measurements_are_alike(rate: float) -> None:
    model = CostModel()
    for _ in range(100):
        model.learn(1000, 1000 * rate, 1e-3)
    assert model.event >= 0
    assert model.touch > 0
    assert 1000 * (model.event + rate * model.touch) == pytest.approx(1e-3, rel=0.1)


@pytest.mark.parametrize(
    "state", [[], [1.0] * 11, [1.0, 0.0, *[1.0] * 10], [1.0, 1.0, 0.0, *[1.0] * 9], [float("nan")] * 12, ["x"] * 12]
)
def test_a_damaged_model_is_refused(state: Any) -> None:
    with pytest.raises(ValueError, match=r"cost model|could not convert"):
        CostModel.restore(state)


class Machine:
    """Events and touches that take a known time, on a clock of its own. ``outside``: what an event takes outside the
    native core."""

    def __init__(
        self,
        monkeypatch: pytest.MonkeyPatch,
        event: float,
        touch: float,
        seed: int,
        match: float = 0.0,
        outside: float = 1e-7,
    ) -> None:
        self.now, self.event, self.touch, self.match, self.outside = 0.0, event, touch, match, outside
        self.random = Random(seed)
        monkeypatch.setattr(module.time, "thread_time", lambda: self.now)
        monkeypatch.setattr(module.time, "perf_counter", lambda: self.now)

    def batch(
        self, pace: Pace, events: int, ticks: tuple[int, int], wanted: float, learns: float = 0.0, ends: int = 0
    ) -> float:
        """The seconds that a batch takes whose events would have ``wanted`` touches each, and end so many matches,
        if they could."""
        began = self.now
        pace.begin(events, ticks[0])
        at, self.matches = 0, 0
        while at < events:
            many = min(pace.stretch, events - at)
            at += many
            last = ticks[0] + (ticks[1] - ticks[0]) * at // events
            rate, most = pace.rate(many, last, learns=learns > 0)
            touches, matches = min(wanted, rate) * many, int(min(ends * many, most + many))
            took = self.event * many + self.touch * touches + self.match * matches
            self.now += took * self.random.uniform(0.9, 1.1) + learns
            pace.record_stretch(many, touches, learns, matches=matches)
            self.matches += matches
        self.now += self.outside * events + self.match / 4 * self.matches
        pace.end(self.now - began, self.now - began)
        return self.now - began


@pytest.mark.parametrize("seed", range(CASES(10)))
@pytest.mark.parametrize("speed", [1.0, 20.0])
def test_an_overloaded_query_keeps_its_share_of_a_core(
    monkeypatch: pytest.MonkeyPatch, seed: int, speed: float
) -> None:
    random = Random(seed)
    machine = Machine(monkeypatch, random.uniform(1e-7, 1e-6), random.uniform(1e-9, 1e-7), seed)
    cpu = 0.2
    pace = pace_of(acep.Budget(cpu=cpu, speed=speed), 10**6)
    assert pace is not None
    events, clock, took, late = random.choice((500, 5000, 20_000)), 0, 0.0, 0.0
    ticks = max(1, int(events * 2.2e-6 * SECOND / cpu * speed * random.uniform(2, 10)))
    for number in range(200):
        learns = 0.02 * cpu * ticks / SECOND / speed if number % 10 == 0 else 0.0
        took += machine.batch(pace, events, (clock, clock + ticks), wanted=1e5, learns=learns)
        clock += ticks
        income = cpu * clock / SECOND / speed
        late = max(late, took - income)
    assert late <= 2 * cpu * module.FIRST + 4 * cpu * ticks / SECOND / speed
    assert took == pytest.approx(income, rel=0.1, abs=1.25 * cpu * module.FIRST)


def test_what_is_spent_outside_the_native_core_is_part_of_the_share_of_a_core(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where Python makes matches for half of the time."""
    cpu, events, ticks, batches = 0.2, 5000, 100, 200
    income = cpu * ticks / SECOND
    machine = Machine(monkeypatch, 1e-7, 1e-8, 0, outside=0.5 * income / events)
    pace = pace_of(acep.Budget(cpu=cpu), 10**6)
    assert pace is not None
    spans = [(number * ticks, (number + 1) * ticks) for number in range(batches)]
    seconds = sum(machine.batch(pace, events, span, wanted=1e5) for span in spans)
    assert seconds == pytest.approx(batches * income, rel=0.1)


def test_what_a_quiet_hour_left_over_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch, 1e-7, 1e-8, 0)
    pace = pace_of(acep.Budget(cpu=0.1), 10**6)
    assert pace is not None
    machine.batch(pace, 100, (0, 3600 * SECOND), wanted=0.0)
    assert pace.balance <= 0.1 * module.CARRIED
    burst = sum(machine.batch(pace, 5000, (3600 * SECOND, 3600 * SECOND), wanted=1e6) for _ in range(50))
    assert 0.5 * 0.1 * module.CARRIED < burst < 1.5 * 0.1 * module.CARRIED


@pytest.mark.parametrize("seed", range(CASES(10)))
def test_a_batch_takes_no_longer_than_its_latency(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    random = Random(seed)
    machine = Machine(monkeypatch, random.uniform(1e-7, 1e-6), random.uniform(1e-9, 1e-7), seed)
    pace = pace_of(acep.Budget(latency=0.05), None)
    assert pace is not None
    took = []
    for _ in range(60):
        events = random.randrange(100, 20_000)
        took.append(machine.batch(pace, events, (0, 0), wanted=1e5, learns=random.choice((0.0, 0.001))))
    assert max(took[10:]) <= 0.05 * 1.1
    assert sum(took[10:]) / len(took[10:]) >= 0.05 * 0.75


@pytest.mark.parametrize("seed", range(CASES(20)))
def test_the_first_batches_keep_to_their_latency_before_anything_is_known_of_costs(
    monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    random = Random(seed)
    match = random.uniform(2e-8, 6e-7)
    machine = Machine(monkeypatch, random.uniform(1e-7, 1e-6), random.uniform(1e-9, TOUCH), seed, match)
    pace = pace_of(acep.Budget(latency=0.02), None)
    assert pace is not None
    events = random.choice((200, 1000, 5000))
    took, made = [], []
    for _ in range(30):
        took.append(machine.batch(pace, events, (0, 0), wanted=random.choice((1, 1e5)), ends=100_000))
        made.append(machine.matches)
    assert max(took) <= 0.02 * 1.5
    assert sum(took) / len(took) <= 0.02
    assert sum(made[10:]) * match >= 0.25 * 20 * 0.02  # what there is is used


@pytest.mark.parametrize("seed", range(CASES(10)))
def test_an_ample_latency_keeps_nothing_back_from_the_first_batch_on(
    monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    random = Random(seed)
    event, touch, match = random.uniform(1e-7, 1e-6), random.uniform(1e-9, 2e-8), random.uniform(2e-8, 4e-7)
    machine = Machine(monkeypatch, event, touch, seed, match)
    events, wanted, ends = random.choice((200, 2000, 20_000)), random.uniform(1, 100), random.choice((0, 1, 5))
    pace = pace_of(acep.Budget(latency=10 * events * (EVENT + TOUCH * wanted + MATCH * ends)), None)
    assert pace is not None
    for _ in range(10):
        machine.batch(pace, events, (0, 0), wanted=wanted, ends=ends)
        assert min(pace.rates) >= wanted
        assert machine.matches == events * ends


def test_what_comes_before_the_first_batch_is_not_a_cost_of_events(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch, 1e-7, 1e-8, 0)
    pace = Pace(latency=0.02)
    pace.begin(1000, 0)
    pace.rate(1000, 0, learns=False)
    machine.now += 1e-4
    pace.record_stretch(1000, 1000, 0.0)
    machine.now += 1e-4
    pace.end(5.0, 5.0)
    pace.begin(1000, 0)
    assert pace.rate(1000, 0, learns=False)[0] > 10


def test_pace_goes_on_from_its_state(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch, 1e-7, 1e-8, 0)
    pace, other = Pace(cpu=0.1, latency=0.1, tick=1e-3), Pace(cpu=0.1, latency=0.1, tick=1e-3)
    machine.batch(pace, 5000, (0, SECOND), wanted=1e5, learns=0.001)
    other.load(pace.dump())
    assert other.dump() == pace.dump()
    for name, wrong in (("balance", float("nan")), ("around", [1.0]), ("most", [1.0]), ("made", -1.0), ("work", [])):
        with pytest.raises(ValueError, match=r"cost model|pace|unpack"):
            other.load({**pace.dump(), name: wrong})


def stream(n: int, ts: int) -> dict[str, list[Any]]:
    random = Random(ts)
    return {
        "ts": [ts + i // 10 for i in range(n)],
        "type": [random.choice("abc") for _ in range(n)],
        "v": [random.random() for _ in range(n)],
    }


QUERY = """PATTERN SEQ(a x, b y, c z) WHERE skip_till_any_match
    { y.v > x.v AND z.v > 1.9 * y.v } WITHIN 8 ms"""


def test_a_share_of_a_core_needs_a_clock() -> None:
    with pytest.raises(QueryError, match="clock of the events"):
        acep.match(stream(10, 0), acep.regex("ab", within=5), budget=acep.Budget(cpu=0.5))


@pytest.mark.long
@pytest.mark.parametrize("policy", thinned(["history", *RULES], 3))
@pytest.mark.parametrize("bounds", [{"cpu": 0.05}, {"latency": 0.01}, {"cpu": 0.05, "latency": 0.01, "work": 20}])
def test_budgets_of_time_find_nothing_wrong_and_go_on_after_a_restart(policy: str, bounds: dict[str, float]) -> None:
    pytest.importorskip("acep.native._native")
    query = acep.parse(QUERY)
    exact, budget = acep.Matcher(query, unit="ms"), acep.Budget(**bounds)
    bound = acep.Matcher(query, unit="ms", budget=budget, policy=policy)
    every, found = set(), set()
    for number in range(6):
        batch = stream(500, 50 * number)
        every |= {(m.start, m.end, str(m.bindings)) for m in exact.push(batch)}
        found |= {(m.start, m.end, str(m.bindings)) for m in bound.push(batch)}
        state = bound.snapshot()
        bound = acep.Matcher(query, unit="ms", budget=budget, policy=policy)
        bound.restore(state)
    assert found <= every
    if "work" in bounds:
        assert bound.report.work <= bounds["work"] * 6 * 500


MANY = {
    "merged": "PATTERN SEQ(a p, a q, a r) WHERE skip_till_any_match WITHIN 30 ms",
    "variables": "PATTERN SEQ(a p, a+ q[], b r) WHERE skip_till_any_match WITHIN 9 ms",
    "nodes": "PATTERN SEQ(a p, b q, c r) WHERE skip_till_any_match { q.v > p.v } WITHIN 30 ms",
    "one node for many": "PATTERN SEQ(a p, b+ q[], c r) WHERE skip_till_any_match { r.v > 0.2 } WITHIN 9 ms",
    "having": "PATTERN SEQ(a p, b q, c r) WHERE skip_till_any_match WITHIN 30 ms HAVING count(q) > 0",
    "partitions": "PATTERN SEQ(a p, b q, c r) WHERE skip_till_any_match { [k] } WITHIN 30 ms",
}


@pytest.mark.parametrize("query", MANY.values(), ids=MANY)
def test_of_very_many_matches_each_point_has_some(monkeypatch: pytest.MonkeyPatch, query: str) -> None:
    pytest.importorskip("acep.native._native")
    most, events = 20, 120
    for name in ("_shedding_limits", "_exact_limits"):
        monkeypatch.setattr(module.Pace, name, lambda *_: (1e6, most))
    letters = "a" if "b" not in query else "ab" if "c" not in query else "abc"
    random = Random(1)
    batches = [
        {
            "ts": list(range(at, at + events)),
            "type": random.choices(letters, k=events),
            "v": [random.random() for _ in range(events)],
            "k": random.choices("xy", k=events),
        }
        for at in (0, events)
    ]
    parsed, budget = acep.parse(query), acep.Budget(latency=1)
    exact, bound = acep.Matcher(parsed, unit="ms"), acep.Matcher(parsed, unit="ms", budget=budget)
    for batch in batches:
        every = {(m.end, str(m.bindings)) for m in exact.push(batch)}
        some = [(m.end, str(m.bindings)) for m in bound.push(batch)]
        assert set(some) < every
        assert len(some) == len(set(some)) <= 3 * most + events  # in three stretches
        assert {end for end, _ in some} == {end for end, _ in every}
        state = bound.snapshot()
        assert bound.report.withheld > 0
        bound = acep.Matcher(parsed, unit="ms", budget=budget)
        bound.restore(state)
        assert bound.report.withheld > 0
        assert not bound.report.exact


def test_a_push_without_known_costs_makes_no_more_matches_than_may_be_paid(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("acep.native._native")
    query = acep.parse("PATTERN SEQ(a p, a q, a r) WHERE skip_till_any_match WITHIN 300 ms")
    matcher = acep.Matcher(query, unit="ms", budget=acep.Budget(latency=0.02))
    monkeypatch.setattr(module.Pace, "record_stretch", lambda *_, **__: None)
    found = matcher.push({"ts": list(range(256)), "type": ["a"] * 256})
    assert 254 <= len(found) <= 0.02 / MATCH + 254  # of 2,763,520
    assert len({match.end for match in found}) == 254
