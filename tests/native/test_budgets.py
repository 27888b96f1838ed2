"""Random cases under budgets of touches, of memory, of touches for sampling units, with an estimated recall and with
recovered bundles. The cases of a kind run once; each property is a test whose message shows a case that lacks it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from random import Random
from typing import Any, NamedTuple

import pytest

from acep.budget import Budget
from acep.budget.policies import POLICIES
from acep.errors import QueryError
from acep.events.batch import Batch
from acep.matches.records import Found
from acep.matches.report import Report
from acep.native.session import NativeSession, SessionBounds
from acep.pattern.tree import Output
from acep.plan.choice import base_engine, choose, with_allowance
from acep.plan.compile import Plan
from acep.plan.lower.tables_completion import completes
from acep.plan.prefilter import necessary
from acep.shedding.limits import Limits
from acep.shedding.partition_sampler import PartitionSampler
from acep.shedding.recovery import recovery, rematch
from acep.shedding.shadow_sampler import ShadowSampler
from tests.binomial import not_less
from tests.case_counts import CaseCounts
from tests.complaints import fail_if_wrong
from tests.native.harness import Run, controlled, engines_of, planned, session_of, shown, whole
from tests.native.test_every_engine import in_order
from tests.random_cases import Case

pytest.importorskip("acep.native._native")
pytestmark = pytest.mark.xdist_group("budgets")  # one process has the results of all

OUTPUTS = ("merged", "count", "points", "bundles")
EPOCH = 5  # events: the first one
SUFFICIENT = 1e9  # touches an event
Begin = Callable[[], NativeSession]
Kept = Callable[[NativeSession, int], bool]


def found_by(run: Run) -> tuple[Counter[Any], dict[Any, Any]]:
    """How often a run found each match, point or bundle, and with which least error."""
    found, errors, kind = Counter[Any](), dict[Any, Any](), run.kind
    if kind == "count":
        return Counter(all=run.found[-1]), {}
    for one in run.found:
        what = one.key, one.trail if isinstance(one, Found) else one.bundle if kind == "bundles" else one.first
        found[what] += 1 if isinstance(one, Found) else one.matches
        errors[what] = min(errors.get(what, one.error), one.error)
    return found, errors


def comparable(run: Run) -> Any:
    """Return the part that is the same in batches: under a budget a bundle may fall apart."""
    return found_by(run)[0].total() if run.kind in ("count", "bundles") else shown(run.found)


class Trial:
    """Events that run exactly, under a sufficient budget, and twice under another: at once, and in batches with
    restarts. ``checks``: which properties hold. ``notes``: what happened besides."""

    def __init__(self, batch: Batch, rng: Random, exact: Begin, sufficient: Begin, limited: Begin, kept: Kept) -> None:
        self.exact, self.sufficient = (Run(begin).all([batch]) for begin in (exact, sufficient))
        self.run, self.cut = Run(limited), Run(limited)
        self.run.push(batch, last=True)
        events, within = 0, kept(self.run.session, len(batch))
        for part in batch.parts(rng.choice((1, 3, 7, 50))):
            self.cut.push(part, last=True)
            events += len(part)
            within = within and kept(self.cut.session, events)
            if rng.random() < 0.2:
                self.cut.restart()
        same = comparable(self.run) == comparable(self.cut)
        self.run.finish()
        self.cut.finish()
        (found, errors), (exact_found, exact_errors) = found_by(self.run), found_by(self.exact)
        once = self.run.kind == "dominance"  # which gives a row for each event that ends a match
        invented = Counter([*found]) - Counter([*exact_found]) if once else found - exact_found
        self.checks = {
            "no match is invented": not invented
            or (self.run.kind == "bundles" and found.total() <= exact_found.total()),
            "no error is too small": all(errors[one] >= exact_errors.get(one, 0) for one in errors),
            "the budget is kept": within and kept(self.run.session, events) and kept(self.cut.session, events),
            "batches and restarts make no difference": same and comparable(self.run) == comparable(self.cut),
            "a sufficient budget changes nothing": found_by(self.sufficient) == (exact_found, exact_errors),
        }
        self.notes = {"some lose matches": found != exact_found}


def touches(rate: float) -> Kept:
    """Whether a session has spent no more than ``rate`` touches for each event."""
    return lambda session, events: session.counts(0).touches <= rate * events


def of_touches(plan: Plan, batch: Batch, rng: Random, engine: str) -> Trial:
    policy, rate = rng.choice(list(POLICIES)), rng.choice((0.3, 1.0, 2.0, 5.0, 25.0, 60.0))

    def begin(rate: float | None) -> Begin:
        return lambda: controlled(plan, engine, policy, rate, length=EPOCH)

    return Trial(batch, rng, begin(None), begin(SUFFICIENT), begin(rate), touches(rate))


def of_memory(plan: Plan, batch: Batch, rng: Random, engine: str) -> Trial | None:
    policy, rate = rng.choice(list(POLICIES)), rng.choice((None, None, 3.0))
    more, least = rng.choice((0, 2_000, 4_000, 8_000)), 0
    if completes(plan):  # more waits than partial matches
        return None

    def begin(more: int | None, rate: float | None) -> NativeSession:
        nonlocal least
        session = controlled(plan, engine, policy, rate, length=EPOCH)
        if more is not None:
            least = session._session.least_memory(0)
            session._session.bound_memory(0, 2 * least + more)
        return session

    def kept(session: NativeSession, events: int) -> bool:  # noqa: ARG001
        peak, most = session.shed_counts(0)["peak"], 2 * least + more
        return session._session.bytes <= most and 0 < peak <= most

    return Trial(batch, rng, lambda: begin(None, None), lambda: begin(1 << 26, None), lambda: begin(more, rate), kept)


def of_units(plan: Plan, batch: Batch, rng: Random, engine: str) -> Trial:
    rate, seed = rng.choice((0.1, 0.3, 0.6, 1.0, 2.0, 5.0)), rng.randrange(100)
    sampled = engine.replace(base_engine(engine), f"units+{base_engine(engine)}")

    def begin(rate: float) -> Begin:
        return lambda: session_of(plan, sampled, bounds=SessionBounds({0: PartitionSampler(seed, rate)}))

    trial = Trial(batch, rng, lambda: session_of(plan, engine), begin(SUFFICIENT), begin(rate), touches(rate))
    exact, sufficient, report = (Report.of(run.session.counts(0)) for run in (trial.exact, trial.sufficient, trial.run))
    trial.checks |= {
        "a report is exact only if all is found": not report.exact or found_by(trial.run) == found_by(trial.exact),
        "a sufficient budget costs nothing": sufficient.exact and sufficient.work == exact.work,
    }
    return trial


def with_estimate(plan: Plan, batch: Batch, rng: Random, engine: str) -> Trial:
    policy, rate = rng.choice(("random", "newest", "history")), rng.choice((1.0, 3.0, 1e6))

    def begin(rate: float | None, share: float) -> Begin:
        return lambda: controlled(
            plan, engine, policy, rate, seed=5, estimate=share, length=7, shadow_sampler=ShadowSampler(share or 0.5)
        )

    trial = Trial(batch, rng, begin(None, 0.0), begin(SUFFICIENT, 0.5), begin(rate, 0.5), touches(rate))
    (points, bundles), cut = (
        (counts.points, counts.bundles) for counts in (run.session.counts(0) for run in (trial.run, trial.cut))
    )
    some = points is not None and bundles is not None and points.x > 0
    trial.checks |= {
        "the estimate is the same in batches": (points, bundles) == cut,
        "an estimate says if all is found": not some
        or rate < 1e6
        or (points.y == points.x and bundles.half == 0 == bundles.x - bundles.y),
    }
    trial.notes["some are estimated"] = some
    return trial


def by_bundle(run: Run) -> dict[Any, Counter[str]]:
    """The matches of each bundle."""
    found: dict[Any, Counter[str]] = defaultdict(Counter)
    for one in run.found:
        found[one.key, one.bundle][repr(one)] += 1
    return found


def with_recovery(plan: Plan, batch: Batch, rng: Random, engine: str) -> Trial | None:
    policy = rng.choice([name for name in POLICIES if name != "trained-on-test"])
    rate, more = rng.choice((0.3, 1.0, 2.0, 5.0)), rng.choice((0.5, 3.0, 10.0))
    try:
        Limits(POLICIES["newest"], Budget(work=1, recover=True)).recovery(plan)
    except QueryError:
        return None

    def begin(rate: float | None, more: float | None) -> Begin:
        recovery = None if more is None else (0.5, more)
        return lambda: controlled(plan, engine, policy, rate, recovery=recovery, length=EPOCH)

    trial = Trial(batch, rng, begin(None, None), begin(SUFFICIENT, SUFFICIENT), begin(rate, more), touches(rate + more))
    plain, run = (Run(begin(rate, most)).all([batch]) for most in (None, SUFFICIENT))
    exact = by_bundle(trial.exact)
    trial.checks |= {
        "a sufficient allowance recovers all bundles": run.session.counts(0).unrecovered == 0,
        "recovered bundles are whole": all(exact[one] == matches for one, matches in by_bundle(run).items()),
        "recovery finds no match less": found_by(plain)[0] <= found_by(run)[0],
    }
    trial.notes |= {
        "some find more": found_by(plain)[0] < found_by(run)[0],
        "some are given up": bool(trial.run.session.counts(0).unrecovered),
    }
    return trial


def need_not_choose(plan: Plan) -> Iterator[str]:
    """The engines for a plan that need not choose among partial matches."""
    for output in ("matches", *OUTPUTS[1:]):
        choice = choose(plan, output)
        if choice.base not in ("reference", "search") and with_allowance(choice) != choice.engine:
            yield choice.base
            if necessary(plan) is not None:
                yield f"windows+{choice.base}"


def shedding_engines(plan: Plan) -> list[str]:
    return [engine for engine in engines_of(plan) if base_engine(engine) != "search"]


def not_windowed(plan: Plan) -> list[str]:
    return [engine for engine in shedding_engines(plan) if "+" not in engine]


CHECKS = (
    "no match is invented",
    "no error is too small",
    "the budget is kept",
    "batches and restarts make no difference",
    "a sufficient budget changes nothing",
)


class Kind(NamedTuple):
    """How to try a kind of budget, on which engines and how many seeds; what occurs at least so often among these, and
    which properties hold besides those of all kinds."""

    trial: Callable[[Plan, Batch, Random, str], Trial | None]
    engines: Callable[[Plan], Iterable[str]]
    seeds: int
    least: dict[str, int]
    checks: tuple[str, ...] = ()


KINDS = {
    "touches": Kind(
        of_touches,
        shedding_engines,
        2_000,
        {"nodes": 500, "dominance": 150, "windows+nodes": 30, "some lose matches": 200},
    ),
    "memory": Kind(of_memory, not_windowed, 2_000, {"nodes": 50, "dominance": 50, "some lose matches": 20}),
    "sampling units": Kind(
        of_units,
        need_not_choose,
        700,
        dict.fromkeys(OUTPUTS, 200) | {"windows+merged": 40, "windows+count": 40, "some lose matches": 40},
        ("a report is exact only if all is found", "a sufficient budget costs nothing"),
    ),
    "an estimate": Kind(
        with_estimate,
        shedding_engines,
        300,
        {"some are estimated": 15},
        ("the estimate is the same in batches", "an estimate says if all is found"),
    ),
    "recovery": Kind(
        with_recovery,
        lambda plan: [engine for engine in engines_of(plan) if base_engine(engine) == "nodes"],
        2_400,
        {"nodes": 100, "windows+nodes": 10, "some find more": 25, "some are given up": 10},
        ("a sufficient allowance recovers all bundles", "recovered bundles are whole", "recovery finds no match less"),
    ),
}


@cache
def prepared(seed: int) -> tuple[Case, Plan, Batch] | None:
    """The case of a seed that keeps all matches, with its plan and events."""
    case = in_order(seed)
    if case is None or (query := case.query()).output is not Output.ALL:
        return None
    plan = planned(query, table := case.table(), **case.stream)
    return case, plan, whole(plan, table)


@cache
def run_trials(kind: str, seeds: int) -> tuple[dict[str, list[tuple[Case, str, int]]], Counter[str]]:
    """The cases that lack each property, each with its engine and seed, and how often each engine ran and all else
    occurred, each property that was checked as well."""
    failing, seen, how = defaultdict[str, list[tuple[Case, str, int]]](list), Counter[str](), KINDS[kind]
    with small_parts():
        for seed in range(seeds):
            if (drawn := prepared(7 * seed if how.trial is of_units else seed)) is None:
                continue
            case, plan, batch = drawn
            for engine in how.engines(plan):
                trial = how.trial(plan, batch, Random(seed), engine)
                if trial is not None:
                    for check, holds in trial.checks.items():
                        failing[check] += [] if holds else [(case, engine, seed)]
                    seen.update([engine, *trial.checks, *(note for note, holds in trial.notes.items() if holds)])
    return failing, seen


@contextmanager
def small_parts() -> Iterator[None]:
    """Recover bundles in parts so small that short streams have several."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recovery, "CUT", 4)
        patch.setattr(rematch, "PART", 3)
        yield


def complaint_of_trial(kind: str, check: str, engine: str, seed: int, case: Case) -> str:
    """Say that a case lacks a property."""
    plan = planned(case.query(), table := case.table(), **case.stream)
    with small_parts():
        trial = KINDS[kind].trial(plan, whole(plan, table), Random(seed), engine)
    return "" if trial is None or trial.checks[check] else f"{engine}, seed {seed}: not so: {check}"


@pytest.mark.parametrize(
    ("kind", "check"), [(kind, check) for kind in KINDS for check in (*CHECKS, *KINDS[kind].checks)]
)
def test_under_a_budget(kind: str, check: str, cases: CaseCounts) -> None:
    failing, seen = run_trials(kind, cases(KINDS[kind].seeds))
    cases.expect(seen, check)
    for case, engine, seed in failing[check][:1]:
        fail_if_wrong(case, partial(complaint_of_trial, kind, check, engine, seed))
    assert not failing[check], [(engine, seed) for _, engine, seed in failing[check]]


@pytest.mark.parametrize("kind", KINDS)
def test_enough_cases_of_each_kind_occur(kind: str, cases: Callable[[int], int]) -> None:
    seeds, how = cases(KINDS[kind].seeds), KINDS[kind]
    _, seen = run_trials(kind, seeds)
    rare = [name for name, least in how.least.items() if not not_less(min(seen[name], seeds), seeds, least / how.seeds)]
    assert not rare, seen
