"""The recall that is estimated under a budget is right as often as it promises, in runs whose exact answer is known.
That batches and restarts make no difference to it is a test in tests/native/test_budgets.py."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import acep
from acep.budget.policies import POLICIES
from acep.events.batch import Batch
from acep.events.tables import to_table
from acep.learning.estimation.recall import Estimate, SampledUnits, distinct
from acep.native.session import NativeSession, SessionBounds
from acep.plan.choice import BY_POINTS, base_engine
from acep.plan.compile import Plan
from acep.shedding.controller import SheddingController
from acep.shedding.policy_context import no_recall
from acep.shedding.shadow_sampler import ShadowSampler
from tests.binomial import not_less
from tests.case_counts import CaseCounts
from tests.native.harness import ANY, controlled, plan_of, push_all, session_of, whole

pytest.importorskip("acep.native._native")

Point = tuple[Any, int]

EVENTS = 32_000
PATTERN = f"""PATTERN SEQ(A p, B q, A r, B s, C t) WHERE {ANY}(p, q, r, s, t) {{
    [k] AND q.x > p.x AND r.x < q.x AND s.x > r.x AND t.x BETWEEN p.x + s.x - 40 AND p.x + s.x - 20 }} WITHIN """
SHARES = (0.75, 0.5, 0.25)  # of the exact work
ESTIMATES = (1 / 4, 1 / 32)  # of that, for the estimate
SEEDS = 12
MOST_LOSSES = 128  # of a unit, one an event (shadow_sample.hpp)


@dataclass(frozen=True)
class Known:
    """A stream and its exact answer: the match points, each with its bundle, and its cost in touches an event."""

    plan: Plan
    batch: Batch
    engine: str

    @cached_property
    def exact(self) -> tuple[dict[Point, int], float]:
        session = session_of(self.plan, self.engine)
        session.ignore_future()  # as the runs under a budget
        return run(session, self.batch), session.counts(0).touches / len(self.batch)

    @property
    def rate(self) -> float:
        return self.exact[1]

    def controlled(self, policy: str, rate: float, **options: Any) -> tuple[NativeSession, dict[Point, int]]:
        """A run under an allowance, and what it found."""
        session = controlled(self.plan, self.engine, policy, rate, **options)
        return session, run(session, self.batch)

    def recall(self, found: Iterable[Point]) -> tuple[float, float]:
        """Of match points, and of bundles."""
        every, found = self.exact[0], set(found)
        assert found <= set(every)
        bundles = [{(point[0], every[point]) for point in points} for points in (found, every)]
        return len(found) / len(every), len(bundles[0]) / len(bundles[1])


def run(session: NativeSession, batch: Batch) -> dict[Point, int]:
    """The match points of a stream, each with the first point of its bundle."""
    (matches,) = push_all(session, [batch])
    if base_engine(session._engine_tables[0][0]) in BY_POINTS:
        return {(row.key, row.last): row.bundle for row in session.take_points(0).rows()}
    keys = zip(*(column.to_list() for column in matches.keys), strict=True)
    return dict(zip(zip(keys, matches.end.tolist(), strict=True), matches.bundle.tolist(), strict=True))


def stream(seed: int, events: int = EVENTS) -> pa.Table:
    """Steady, in bursts, or with a few keys that have most of the events, by ``seed``."""
    rng = np.random.default_rng(seed)
    steps, keys = rng.integers(0, 3, events), rng.integers(0, 24, events)
    if seed % 3 == 1:
        steps *= 1 + 3 * (np.arange(events) // 500 % 2)
    if seed % 3 == 2:
        keys = np.minimum(rng.geometric(0.1, events), 40)
    columns = {"ts": np.cumsum(steps), "k": keys, "x": rng.integers(0, 100, events)}
    return to_table(columns | {"type": rng.choice(list("ABC"), events, p=[0.45, 0.45, 0.1])})


def known(seed: int, engine: str, window: str = "240", events: int = EVENTS) -> Known:
    plan = plan_of(PATTERN + window, table := stream(seed, events))
    return Known(plan, whole(plan, table), engine)


def estimates(session: NativeSession) -> tuple[Estimate | None, Estimate | None]:
    counts = session.counts(0)
    assert counts.points is not None
    assert counts.bundles is not None
    return counts.points.estimate(), counts.bundles.estimate()


def test_the_interval_has_the_truth_as_often_as_it_says(cases: CaseCounts) -> None:
    hits, tries, widths = np.zeros(2, np.int64), np.zeros(2, np.int64), np.zeros(2)
    missed: dict[tuple[int, float], list[float]] = {(which, share): [] for which in range(2) for share in SHARES}
    seen, number = Counter[str](), 0
    for seed, engine in product(range(cases(SEEDS)), ("nodes", "dominance")):
        case = known(seed, engine)
        for policy, share in product(("random", "newest", "history"), SHARES):
            number += 1
            part = ESTIMATES[number // 3 % len(ESTIMATES)]
            session, found = case.controlled(policy, share * case.rate, seed=number, estimate=part)
            truth = case.recall(found)
            seen["points are lost"] += truth[0] < 0.95
            for which, (true, one) in enumerate(zip(truth, estimates(session), strict=True)):
                if one is not None:
                    tries[which] += 1
                    hits[which] += one.low <= true <= one.high
                    widths[which] += one.high - one.low
                    missed[which, share].append(one.recall - true)
    seen |= {f"estimates of {what}": int(n) for what, n in zip(("points", "bundles"), tries, strict=True)}
    seen |= {f"{what} in their interval": int(n) for what, n in zip(("points", "bundles"), hits, strict=True)}
    cases.expect(seen, "points are lost", least=0.9 * number)
    cases.expect(seen, "estimates of points", "estimates of bundles", least=0.85 * number)
    cases.expect(seen, "points in their interval", least=0.8 * tries[0])
    cases.expect(seen, "bundles in their interval", least=0.8 * tries[1])
    assert (widths < 0.7 * tries).all(), widths / tries
    assert all(not_less(int(hits[which]), int(tries[which]), 0.9) for which in range(2)), hits / tries
    # The likeliest value is not biased, whatever the budget: by no more than chance moves the mean of so many runs.
    for which, all_missed in missed.items():
        chance = np.std(all_missed, ddof=1) / np.sqrt(len(all_missed))
        assert abs(np.mean(all_missed)) < 0.02 + 2.5 * chance, (which, np.mean(all_missed), chance)


class Census(SheddingController):
    """All sampling units are shadow-sampled from the beginning, and the rows that the core gives of them are kept."""

    def start(self, core: Any, number: int, context: Any) -> None:
        self.core, self.kept = core, list[Any]()
        self.shadow_sampler = ShadowSampler(1.0)
        super().start(core, number, context)

    def learn(self, core: Any, events: int) -> None:
        self.kept.append(core.shadow_points(self.number).reshape(-1, 7))
        super().learn(core, events)
        self.shadow_sampler = ShadowSampler(1.0)
        self._apply(core, self.shedding_table)

    @property
    def rows(self) -> Any:
        return np.concatenate([*self.kept, self.core.shadow_points(self.number).reshape(-1, 7)])


def census(case: Known, rate: float) -> tuple[NativeSession, dict[Point, int], Any]:
    """A run with a census, what it found, and the rows of the census."""
    controller = Census(POLICIES["newest"](), 3, rate, estimate=0.5)
    session = session_of(case.plan, case.engine, bounds=SessionBounds({0: controller}))
    session.ignore_future()
    return session, run(session, case.batch), controller.rows


@pytest.mark.parametrize("window", ["240", "10 EVENTS"])
@pytest.mark.parametrize("engine", ["nodes", "dominance"])
def test_where_all_units_are_shadow_sampled_all_is_known(engine: str, window: str) -> None:
    case = known(6, engine, window, events=12_000)
    every, rate = case.exact
    # Where the allowance suffices for twice the work, the shadow sample has all that there is, and so has what is kept.
    for enough in (10.0, 1.7):
        session, found, rows = census(case, enough * rate)
        seen, kept = distinct(rows)
        lost = session._session.shadow_points(0).reshape(-1, 7)[:, 4] == -1  # where even the reserve did not suffice
        assert not lost.any() if enough == 10.0 else lost.mean() < 0.75
        keys = session._session.keys(0)
        there = {((keys[p],), ts) for p, ts in seen[:, [0, 3]].tolist()}
        assert there <= set(every)
        if enough == 10.0:
            assert found == every
            assert kept.all()
            assert len(there) > 0.8 * len(every)
            continue
        assert {((keys[p],), ts) for p, ts in seen[kept][:, [0, 3]].tolist()} == set(found) & there
        true, estimated = case.recall(found), estimates(session)
        assert 0.05 < true[0] < 0.9
        for one, other in zip(true, estimated, strict=True) if window == "240" else []:
            assert other is not None
            assert abs(one - other.recall) < 0.1
        counts = session.counts(0)
        assert counts.points is not None
        # Seven of eight windows count, where nothing is lost of them.
        assert 0.5 < counts.points.x / len(every) < 0.95


@pytest.mark.long
def test_keys_with_fewer_events_than_a_unit_of_positions_are_known_too() -> None:
    rng = np.random.default_rng(8)
    first = np.arange(16_000) // 600 * 30  # thirty keys at a time, of about twenty events
    columns = (
        stream(8, 16_000).set_column(0, "ts", [range(16_000)]).set_column(1, "k", [first + rng.integers(0, 30, 16_000)])
    )
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
    points, bundles = seen.add_rows(np.array(rows), 0).tallies(0)
    assert (points.x, points.y) == (40, 10)
    assert (bundles.x, bundles.y, bundles.half) == (40, 25, 15)
    ends = [[key, -5, 75, 900, -2, never, share] for key in range(40)]
    points, bundles = seen.add_rows(np.array(rows + ends), 0).tallies(0)
    assert (points.x, points.y) == (40, 10)
    assert bundles.half == 0
    assert bundles.y / bundles.x < 0.3


@pytest.mark.parametrize(("engine", "window", "events"), [("nodes", "1200", 12_000), ("dominance", "3000", 24_000)])
def test_a_hopeless_unit_is_given_up(engine: str, window: str, events: int) -> None:
    """Where the allowance is far too small for it, it would take what is left for all else as long as it lasts."""
    case = known(6, engine, window, events=events)
    _, found, rows = census(case, case.rate / 50)
    _, losses = np.unique(rows[rows[:, 4] < 0][:, :2], axis=0, return_counts=True)
    assert losses.max() == MOST_LOSSES
    assert found


def test_another_seed_is_another_sample() -> None:
    case = known(1, "nodes")

    def result(seed: int) -> tuple[str, dict[Point, int]]:
        session, found = case.controlled("random", case.rate / 2, seed=seed, estimate=1 / 4)
        return str(estimates(session)), found

    first, again, *others = (result(seed) for seed in (1, 1, 0, 2, 3, 4))
    assert first == again
    assert len({first[0], *(one for one, _ in others)}) == 5
    assert first[1] != others[1][1]


def test_the_estimate_keeps_to_its_share_before_an_epoch_has_ended() -> None:
    case, hits, widths = known(1, "nodes"), 0, 0.0
    for seed in range(10):
        session, found = case.controlled("random", case.rate / 2, seed=seed, estimate=1 / 8, length=10 * EVENTS)
        assert session.budget.efforts[0].events == 0
        counts = session.shed_counts(0)
        assert counts["spent"] / 16 < counts["watching"] < counts["spent"] / 4
        one, _ = estimates(session)
        assert one is not None
        hits += one.low <= case.recall(found)[0] <= one.high
        widths += one.high - one.low
    assert hits >= 7
    assert widths < 7


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (PATTERN + "240", ""),
        (PATTERN + "240 HAVING p.x > 3", "HAVING"),
        (PATTERN + "240 OUTPUT NON OVERLAP", "chosen"),
        (PATTERN.replace("B q,", "B q, ~D n,") + "240", "negation"),
    ],
)
def test_the_recall_is_estimated_only_where_each_complete_run_is_a_match(text: str, why: str) -> None:
    reason = no_recall(plan_of(text))
    assert (reason == "") == (why == "")
    assert why in reason


def test_the_report_has_the_estimate() -> None:
    case, query = known(4, "nodes"), acep.parse(PATTERN + "240")

    def match(**budget: Any) -> Any:
        return acep.match(stream(4), query, budget=acep.Budget(**budget), policy="random")

    sufficient = match(work=1e6).report
    assert sufficient.exact
    assert (sufficient.recall, sufficient.bundle_recall, sufficient.unknown) == (1, 1, "")
    work = sufficient.work / EVENTS / 2
    report = (found := match(work=work)).report
    assert report.unknown == ""
    for true, own, (low, high) in zip(
        case.recall(((match.key["k"],), match.end) for match in found),
        (report.recall, report.bundle_recall),
        (report.interval, report.bundle_interval),
        strict=True,
    ):
        assert 0 < high - low < 1
        assert (own is None) == (high - low > 0.2)
        assert own is None or low <= own <= high
        assert low <= true <= high
    assert " of the match points" in str(report)
    none = match(work=work, estimate=0).report
    assert none.recall is None
    assert "too little was watched" in str(none)
    assert none.interval == (0, 1)
