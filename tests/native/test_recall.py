"""The recall that is estimated under a budget: it says what is true, as often as it promises, of runs whose exact
answer is known; and neither batches nor restarts make a difference to it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from random import Random
from typing import Any

import numpy as np
import pytest

import acep
from acep.budget.policies import policy_of
from acep.events.batch import Batch
from acep.events.tables import batch_of, schema_of, to_table
from acep.learning.estimation.recall import Estimate, SampledUnits, distinct
from acep.pattern.tree import Output
from acep.plan.compile import Plan, compile_query
from acep.plan.lower.tables import NotNativeError
from acep.shedding.controller import SheddingController
from acep.shedding.policy_context import no_recall
from acep.shedding.shadow_sampler import ShadowSampler
from tests.binomial import not_less
from tests.native.merged_cases import planned
from tests.native.test_every_engine import in_order
from tests.native.test_shedding import engines_of, whole

pytest.importorskip("acep.native._native")

from acep.native.session import NativeSession

Point = tuple[Any, int]

EVENTS = 32_000
PATTERN = """PATTERN SEQ(A p, B q, A r, B s, C t) WHERE skip_till_any_match(p, q, r, s, t) {
    [k] AND q.x > p.x AND r.x < q.x AND s.x > r.x AND t.x BETWEEN p.x + s.x - 40 AND p.x + s.x - 20 } WITHIN """
POLICIES = ("random", "newest", "history")
SHARES = (0.75, 0.5, 0.25)  # of the exact work
ESTIMATES = (1 / 4, 1 / 32)  # of that, to watch with
SEEDS = 12
MOST_LOSSES = 128  # of a unit, one an event (shedding.hpp)


@dataclass(frozen=True)
class Known:
    """A stream and its exact answer: the match points, each with its bundle, and its cost in touches an event."""

    plan: Plan
    batch: Batch
    engine: str

    @cached_property
    def exact(self) -> tuple[dict[Point, int], float]:
        session, points = run(self, {})
        return bundles(points, self.plan), session.counts(0).touches / len(self.batch)

    def recall(self, found: set[Point]) -> tuple[float, float]:
        """Of match points, and of bundles."""
        every, _ = self.exact
        assert found <= set(every)
        reached = {(key, every[key, ts]) for key, ts in found}
        return len(found) / len(every), len(reached) / len({(key, bundle) for (key, _), bundle in every.items()})


def bundles(points: Iterable[Point], plan: Plan) -> dict[Point, int]:
    """The first match point of the bundle of each, where the window is one of time."""
    found: dict[Point, int] = {}
    last: dict[Any, Point] = {}
    for key, ts in sorted(points, key=lambda one: one[1]):
        before = last.get(key)
        goes_on = before is not None and (plan.window.span is None or ts - before[1] <= plan.window.span)
        found[key, ts] = found[before] if goes_on and before is not None else ts
        last[key] = key, ts
    return found


def run(known: Known, efforts: dict[int, SheddingController], size: int = 1 << 30) -> tuple[NativeSession, set[Point]]:
    session = NativeSession([known.plan], [known.engine], efforts)
    points: set[Point] = set()
    for part in [*known.batch.parts(size), None]:
        if part is None:
            session.finish()
        else:
            session.push(part)
        points |= taken(session, known.engine)
    return session, points


def taken(session: NativeSession, engine: str) -> set[Point]:
    if engine.endswith("dominance"):
        counted = session.take_points(0)
        keys, ends = counted.keys, counted.first
    else:
        found = session.take(0)
        keys, ends = found.keys, found.end
    texts = list(zip(*(key.to_list() for key in keys), strict=True)) if keys else [()] * len(ends)
    return set(zip(texts, ends.tolist(), strict=True))


def stream(seed: int, events: int = EVENTS) -> dict[str, list[Any]]:
    """Steady, in bursts, or with a few keys that have most of the events, by ``seed``."""
    rng = np.random.default_rng(seed)
    steps, keys = rng.integers(0, 3, events), rng.integers(0, 24, events)
    if seed % 3 == 1:
        steps *= 1 + 3 * (np.arange(events) // 500 % 2)
    if seed % 3 == 2:
        keys = np.minimum(rng.geometric(0.1, events), 40)
    columns = {"ts": np.cumsum(steps), "k": keys, "x": rng.integers(0, 100, events)}
    types = rng.choice(list("ABC"), events, p=[0.45, 0.45, 0.1])
    return {name: column.tolist() for name, column in columns.items()} | {"type": types.tolist()}


def known(seed: int, engine: str, window: str = "240", events: int = EVENTS) -> Known:
    table = to_table(stream(seed, events))
    schema = schema_of(table.schema, ts="ts", type="type", seq=None, id=None, unit=None)
    plan = compile_query(acep.parse(PATTERN + window), schema)
    return Known(plan, batch_of(table, schema, plan.columns, base=0), engine)


def estimates(session: NativeSession) -> tuple[Estimate | None, Estimate | None]:
    counts = session.counts(0)
    assert counts.points is not None
    assert counts.bundles is not None
    return counts.points.estimate(), counts.bundles.estimate()


def test_the_interval_has_the_truth_as_often_as_it_says(cases: Callable[[int], int]) -> None:
    hits, tries, widths = np.zeros(2, np.int64), np.zeros(2, np.int64), np.zeros(2)
    missed: dict[tuple[int, float], list[float]] = {(which, share): [] for which in range(2) for share in SHARES}
    lossy = number = 0
    for seed in range(max(cases(SEEDS), 6)):
        for engine in ("nodes", "dominance"):
            case = known(seed, engine)
            for policy, share in product(POLICIES, SHARES):
                number += 1
                part = ESTIMATES[number // 3 % len(ESTIMATES)]
                effort = SheddingController(policy_of(policy)(), number, share * case.exact[1], estimate=part)
                session, found = run(case, {0: effort})
                truth = case.recall(found)
                lossy += truth[0] < 0.95
                for which, (true, one) in enumerate(zip(truth, estimates(session), strict=True)):
                    if one is not None:
                        tries[which] += 1
                        hits[which] += one.low <= true <= one.high
                        widths[which] += one.high - one.low
                        missed[which, share].append(one.recall - true)
    assert number >= 100
    assert lossy > 0.9 * number
    assert (tries > 0.85 * number).all()
    assert (hits >= 0.8 * tries).all(), hits / tries
    assert (widths < 0.7 * tries).all(), widths / tries
    assert all(not_less(int(hits[which]), int(tries[which]), 0.9) for which in range(2)), hits / tries
    # The likeliest value is not biased, whatever the budget: by no more than chance moves the mean of so many runs.
    for which, all_missed in missed.items():
        chance = np.std(all_missed, ddof=1) / np.sqrt(len(all_missed))
        assert abs(np.mean(all_missed)) < 0.02 + 2.5 * chance, (which, np.mean(all_missed), chance)


@pytest.mark.parametrize("window", ["240", "10 EVENTS"])
@pytest.mark.parametrize("engine", ["nodes", "dominance"])
def test_where_all_units_are_spared_all_is_known(engine: str, window: str) -> None:
    case = known(6, engine, window, events=12_000)
    every, rate = case.exact
    # Where the allowance suffices for twice the work, what is spared finds what there is, and so does what is kept.
    for enough in (10.0, 1.7):
        effort = Census(policy_of("newest")(), 3, enough * rate, estimate=0.5)
        session, found = run(case, {0: effort})
        rows = session._session.shadow_points(0).reshape(-1, 7)
        seen, kept = distinct(np.concatenate([effort.rows, rows]))
        lost = rows[:, 4] == -1  # where even the reserve did not suffice
        assert not lost.any() if enough == 10.0 else lost.mean() < 0.75
        number = {p: session._session.keys(0)[p] for p in set(seen[:, 0].tolist())}
        there = {((number[p],), ts) for p, ts in seen[:, [0, 3]].tolist()}
        assert there <= set(every)
        if enough == 10.0:
            assert found == set(every)
            assert kept.all()
            assert len(there) > 0.8 * len(every)
            continue
        assert {((number[p],), ts) for p, ts in seen[kept][:, [0, 3]].tolist()} == found & there
        true, estimated = case.recall(found), estimates(session)
        assert 0.05 < true[0] < 0.9
        for one, other in zip(true, estimated, strict=True) if window == "240" else []:
            assert other is not None
            assert abs(one - other.recall) < 0.1
        counts = session.counts(0)
        assert counts.points is not None
        # Seven of eight windows count, where nothing is lost of them.
        assert 0.5 < counts.points.x / len(every) < 0.95


def test_keys_that_do_not_live_for_a_unit_of_positions_are_known_too() -> None:
    rng = np.random.default_rng(8)
    first = np.arange(16_000) // 600 * 30  # thirty keys at a time, of about twenty events
    columns = stream(8, 16_000) | {"ts": [*range(16_000)], "k": (first + rng.integers(0, 30, 16_000)).tolist()}
    text = "PATTERN SEQ(A p, B q, C t) WHERE skip_till_any_match(p, q, t) { [k] AND q.x > p.x AND t.x > p.x }"
    query = acep.parse(f"{text} WITHIN 30 EVENTS")
    exact = acep.match(columns, query)
    hits, widths = 0, 0.0
    for seed in range(10):
        given = acep.match(columns, query, budget=acep.Budget(work=0.7, estimate=0.9), policy="random", seed=seed)
        true = len({(m.key["k"], m.end) for m in given}) / len({(m.key["k"], m.end) for m in exact})
        assert given.report.interval != (0, 1)
        widths += given.report.interval[1] - given.report.interval[0]
        hits += given.report.interval[0] < true < given.report.interval[1]
    assert widths < 7
    assert hits >= 7  # less than one time in fifty, if the interval is one of 90 %


def test_a_unit_of_positions_goes_on_until_it_is_known_to_have_ended() -> None:
    """In the first one all is known; of bundles at a key's end it is not known whether they will be found."""
    seen = SampledUnits(9, counted=True)
    share, never = 1 << 32, np.iinfo(np.int64).min
    rows = [[key, -5, 3, 3, kind, never, share] for key in range(40) for kind in ([0, 1] if key < 10 else [0])]
    points, bundles = seen.then(np.array(rows), 0).tallies(0)
    assert (points.x, points.y) == (40, 10)
    assert (bundles.x, bundles.y, bundles.half) == (40, 25, 15)
    ends = [[key, -5, 75, 900, -2, never, share] for key in range(40)]
    points, bundles = seen.then(np.array(rows + ends), 0).tallies(0)
    assert (points.x, points.y) == (40, 10)
    assert bundles.half == 0
    assert bundles.y / bundles.x < 0.3


@pytest.mark.parametrize(("engine", "window", "events"), [("nodes", "1200", 12_000), ("dominance", "3000", 24_000)])
def test_a_unit_that_is_hopeless_is_given_up(engine: str, window: str, events: int) -> None:
    """Where the allowance is far too short for it, it would take what is left for all else as long as it lasts."""
    case = known(6, engine, window, events=events)
    effort = Census(policy_of("newest")(), 3, case.exact[1] / 50, estimate=0.5)
    session, found = run(case, {0: effort})
    rows = np.concatenate([effort.rows, session._session.shadow_points(0).reshape(-1, 7)])
    _, losses = np.unique(rows[rows[:, 4] < 0][:, :2], axis=0, return_counts=True)
    assert losses.max() == MOST_LOSSES
    assert found


class Census(SheddingController):
    """All units are spared from the beginning, and what the core tells of them is kept."""

    def start(self, core: Any, number: int, context: Any) -> None:
        self.shadow_sampler, self.rows = ShadowSampler(1.0), np.zeros((0, 7), np.int64)
        super().start(core, number, context)

    def learn(self, core: Any, events: int) -> None:
        self.rows = np.concatenate([self.rows, core.shadow_points(self.number).reshape(-1, 7)])
        super().learn(core, events)
        self.shadow_sampler = ShadowSampler(1.0)
        self._apply(core, self.shedding_table)


def test_batches_and_restarts_make_no_difference(cases: Callable[[int], int]) -> None:
    told = 0
    for seed in range(cases(300)):
        case = in_order(seed)
        if case is None or case.query().output is not Output.ALL:
            continue
        plan, random = planned(case.query(), case.table(), **case.stream), Random(seed)
        batch = whole(case, plan)
        maker, rate = policy_of(random.choice(POLICIES)), random.choice((1.0, 3.0, 1e6))
        for engine in engines_of(plan):

            def effort() -> SheddingController:
                found = SheddingController(maker(), 5, rate, estimate=0.5, length=7)  # noqa: B023
                found.shadow_sampler = ShadowSampler(0.5)
                return found

            here = Known(plan, batch, engine)
            try:
                session, _ = run(here, {0: effort()})
            except NotNativeError:
                continue
            other = NativeSession([plan], [engine], {0: effort()})
            for part in batch.parts(random.choice((1, 4))):
                other.push(part)
                if random.random() < 0.3:
                    data = other.dump()
                    other = NativeSession([plan], [engine], {0: effort()})
                    other.load(data)
            other.finish()
            counts, others = session.counts(0), other.counts(0)
            assert (counts.points, counts.bundles) == (others.points, others.bundles), (seed, engine)
            if counts.points is not None and counts.points.x > 0:
                told += 1
                assert rate < 1e6 or counts.points.y == counts.points.x, (seed, engine)
                assert counts.bundles is not None
                assert rate < 1e6 or counts.bundles.half == 0 == counts.bundles.x - counts.bundles.y, (seed, engine)
    assert told >= cases(300) / 20


def test_a_seed_is_another_sample() -> None:
    case = known(1, "nodes")
    rate = case.exact[1] / 2

    def told(seed: int) -> Any:
        session, found = run(case, {0: SheddingController(policy_of("random")(), seed, rate, estimate=1 / 4)})
        return estimates(session), found

    assert told(1) == told(1)
    assert len({str(told(seed)[0]) for seed in range(5)}) == 5
    assert told(1)[1] != told(2)[1]


def test_what_is_spared_costs_what_it_may_before_an_epoch_has_ended() -> None:
    case, hits, widths = known(1, "nodes"), 0, 0.0
    for seed in range(10):
        effort = SheddingController(policy_of("random")(), seed, case.exact[1] / 2, estimate=1 / 8, length=10 * EVENTS)
        session, found = run(case, {0: effort})
        assert effort.events == 0
        counts = session._session.shedding_counts(0)
        assert counts["spent"] / 16 < counts["watching"] < counts["spent"] / 4
        one, _ = estimates(session)
        assert one is not None
        hits += one.low <= case.recall(found)[0] <= one.high
        widths += one.high - one.low
    assert hits >= 7
    assert widths < 7


@pytest.mark.parametrize(
    ("query", "output", "why"),
    [
        (PATTERN + "240", "ALL", ""),
        (PATTERN + "240 HAVING p.x > 3", "ALL", "HAVING"),
        (PATTERN + "240", "NON OVERLAP", "chosen"),
        (PATTERN.replace("B q,", "B q, ~D n,") + "240", "ALL", "negation"),
    ],
)
def test_what_is_not_each_complete_run_is_not_estimated(query: str, output: str, why: str) -> None:
    text = query if output == "ALL" else f"{query} OUTPUT {output}"
    table = to_table(stream(3, 3_000))
    plan = compile_query(acep.parse(text), schema_of(table.schema, ts="ts", type="type", seq=None, id=None, unit=None))
    assert (no_recall(plan) == "") == (why == "")
    assert why in no_recall(plan)


def test_the_report_has_the_estimate() -> None:
    case = known(4, "nodes")
    sufficient = acep.match(
        stream(4), acep.parse(PATTERN + "240"), budget=acep.Budget(work=1e6), policy="random"
    ).report
    assert sufficient.exact
    assert (sufficient.recall, sufficient.bundle_recall, sufficient.unknown) == (1, 1, "")
    budget = acep.Budget(work=sufficient.work / EVENTS / 2)
    found = acep.match(stream(4), acep.parse(PATTERN + "240"), budget=budget, policy="random")
    report = found.report
    assert report.unknown == ""
    for true, own, (low, high) in zip(
        case.recall({((match.key["k"],), match.end) for match in found}),
        (report.recall, report.bundle_recall),
        (report.interval, report.bundle_interval),
        strict=True,
    ):
        assert 0 < high - low < 1
        assert (own is None) == (high - low > 0.2)
        assert own is None or low <= own <= high
        assert low <= true <= high
    assert " of the match points" in str(report)
    none = acep.match(stream(4), acep.parse(PATTERN + "240"), budget=replace(budget, estimate=0), policy="random")
    assert none.report.recall is None
    assert "too little was watched" in str(none.report)
    assert none.report.interval == (0, 1)
