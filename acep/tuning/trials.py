"""Try error budgets and policies on a sample."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import pyarrow as pa

from acep.budget import Budget
from acep.budget.policies import POLICIES
from acep.errors import AcepError
from acep.learning.policies.baselines import RULES
from acep.pattern.tree import Query
from acep.plan.compile import Plan, compile_query
from acep.plan.lint.rules import lint_plan
from acep.training.learn import learn
from acep.training.match_points import Partitions
from acep.tuning.curve import interval
from acep.tuning.replay import Meter, SampleRun, draws_text, measure_fit, replay
from acep.tuning.sample import first_events

__all__ = ["CHOOSING", "ENOUGH", "ErrorStep", "PolicyTrial", "error_steps", "policy_trials"]

ENOUGH = 10
"""The windows with a match (:func:`acep.tuning.replay.draws_in`) below which nothing is said of recall."""

CHOOSING = 0.25
"""The seconds of processor time of a replay whose output is chosen among the matches."""

LEARNING = 10  # touches that learning may take, in parts of those of an exact replay
FORESEEN = "trained-on-test"  # the policy that has seen the test
UNTRAINED = "history, not trained"


@dataclass(frozen=True)
class ErrorStep:
    """An error budget with the exact ``replay`` of the sample; ``single``: one event alone is a match then."""

    errors: int | float
    replay: SampleRun
    single: bool


@dataclass(frozen=True)
class PolicyTrial:
    """A policy's recall of match points and bundles on the second half of a sample, under a budget of ``work``;
    ``trained``: it began with what :func:`acep.learn` learned of the first half. ``low`` and ``high``: the 90 %
    interval of the recall that is asked for (:func:`acep.tuning.curve.interval`)."""

    name: str
    trained: bool
    work: float
    recall: float
    bundle_recall: float
    low: float
    high: float


def error_steps(
    table: pa.Table,
    plan: Plan,
    columns: Mapping[str, Any],
    partitions: Partitions,
    meter: Meter,
    engine: str,
    max_touches: int,
    exact: SampleRun,
) -> Iterator[ErrorStep]:
    """Yield the error budgets 0, 1, 2 and that of the query, each with its replay; no more after one under which a
    single event matches, or that would take more than ``max_touches``. ``exact``: the replay with the query's own."""
    query_errors = plan.query.errors
    for errors in sorted({Fraction(0), Fraction(1), Fraction(2), query_errors}):
        query = replace(plan.query, errors=errors)
        single = any(finding.rule == "single_events_match" for finding in lint_plan(compile_query(query, plan.schema)))
        run = exact
        if errors != query_errors:
            fit = measure_fit(table, query, columns, meter, min(max_touches, meter.left), engine, CHOOSING)
            if fit.events < table.num_rows:
                meter.cut.append(
                    f"errors={float(errors):g} and more: not measured, as a replay takes too many touches or matches"
                )
                return
            run = replay(table, query, columns, partitions, meter, engine=engine)
        yield ErrorStep(int(errors) if errors.denominator == 1 else float(errors), run, single)
        if single and errors >= query_errors:
            return


def policy_trials(
    table: pa.Table,
    query: Query,
    columns: Mapping[str, Any],
    meter: Meter,
    share: float,
    kind: str,
    seed: int,
    engine: str,
) -> tuple[tuple[PolicyTrial, ...], str]:
    """Try each built-in policy on the second half of a table, under a ``share`` of the work that it needs there.

    Policies that learn first learn from the first half. ``kind``: the recall that decides. Returns the trials, best
    first, and why there are none."""
    first, second = first_events(table, 0.5)
    partitions = Partitions()
    exact = replay(second, query, columns, partitions, meter, engine=engine)
    training = replay(first, query, columns, partitions, meter, engine=engine)
    if min(exact.draws_of(kind), training.draws_of(kind)) < ENOUGH:
        few = f"{training.draws_of(kind)} and {draws_text(exact.draws_of(kind), kind)}"
        return (), f"the halves of the sample have {few}: too few to compare policies"
    work = float(f"{share * exact.work:.3g}")
    trials = []
    for name in [*POLICIES, UNTRAINED]:
        policy = "history" if name == UNTRAINED else name
        trains = name == policy and name not in RULES
        cost = 1.2 * work * exact.events + trains * LEARNING * training.touches
        if name == FORESEEN or not meter.affords(cost, f"policy {name}"):
            continue
        try:
            history = learn(first, query, policy=policy, seed=seed, **columns) if trains else None
        except AcepError as error:
            return (), error.message
        meter.spent += trains * LEARNING * training.touches
        budget = Budget(work=work)
        run = replay(
            second, query, columns, partitions, meter,
            engine=engine, budget=budget, policy=policy, seed=seed, history=history,
        )  # fmt: skip
        recall = run.recall(exact)
        trials.append(
            PolicyTrial(policy, trains, work, *recall, *interval(recall[kind == "bundles"], exact.draws_of(kind)))
        )
    trials.sort(key=lambda trial: trial.recall if kind == "points" else trial.bundle_recall, reverse=True)
    return tuple(trials), ""
