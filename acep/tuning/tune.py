"""Recommend an error budget, a resource budget, a policy and cheaper forms of a query: :func:`tune`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral, Real
from typing import Any

import pyarrow as pa

from acep.budget import Budget
from acep.budget.policies import policy_of
from acep.errors import AcepError, QueryError
from acep.events.frames import to_table
from acep.events.given import given_table
from acep.events.tables import batch_of, schema_of
from acep.native.compiled import chosen
from acep.pattern.asked import asked_for, query_of
from acep.pattern.tree import Query
from acep.plan.choice import UNITS, with_allowance
from acep.plan.compile import Plan, compile_query
from acep.plan.lint.rules import lint_plan
from acep.shedding.limits import checked_seed
from acep.training.match_points import Partitions
from acep.tuning.cheaper import changes
from acep.tuning.curve import CurvePoint, curve_of, knee_of, least_of
from acep.tuning.replay import Meter, SampleRun, replay, replayed
from acep.tuning.result import CpuShare, Tuning, count_text
from acep.tuning.sample import Sample, draw
from acep.tuning.state_work import touches_by_variable
from acep.tuning.trials import ENOUGH, error_steps, policy_trials

__all__ = ["EFFORT", "tune"]

EFFORT = 40_000_000
"""The touches that all replays together may take on the native core: some seconds."""

SLOW = 20  # how many times dearer a touch of the reference runtime is counted
ONE = 40  # the exact replay of the sample may take one part in so many


def tune(
    events: Any,
    query: Query | str,
    *,
    sample: float | None = None,
    target_recall: float = 0.9,
    of: str = "points",
    cpu: Sequence[float] = (),
    effort: int = EFFORT,
    policy: Any = "history",
    seed: int = 0,
    engine: str = "auto",
    ts: str = "ts",
    type: str | None = "type",
    seq: str | None = None,
    id: str | None = None,
    unit: str | None = None,
) -> Tuning:
    """Replay a sample of a stream under several budgets and policies, and recommend which to use.

    ``sample``: the events of the sample, or their share if below 1 (default 50,000). Whole partitions are drawn where
    the query has partition attributes, else the first events are taken. ``target_recall``: the share ``of`` match
    ``"points"`` or ``"bundles"`` that a budget is to find. ``cpu``: shares of a core to translate into ``work=``.
    ``effort``: the touches that all replays together may take; a sample that needs more than a fortieth is cut.
    ``policy`` is that of the curve; the other arguments are those of :func:`acep.match`. Each replay is what
    ``acep.match(tuning.sample.table, query, budget=..., policy=..., seed=...)`` does.

    Raises :class:`QueryError`, :class:`DataError` or :class:`EngineError`, as :func:`acep.match` does.

    >>> import acep
    >>> ts = range(3000)
    >>> events = {"ts": [*ts], "type": list("abc" * 1000), "k": [i // 60 for i in ts], "x": [i * i % 101 for i in ts]}
    >>> found = tune(events, "PATTERN SEQ(a p, b q, c r) WHERE [k] AND q.x > p.x AND r.x > q.x WITHIN 40", sample=1000)
    >>> found.sample.how, found.least.recall >= 0.9
    ('16 of 50 partitions, whole, by the hash of k', True)
    """
    asked = query_of(query)
    _check(target_recall, of, cpu, effort, seed)
    policy_of(policy)
    columns: dict[str, Any] = {"ts": ts, "type": type, "seq": seq, "id": id, "unit": unit}
    table = _table(events, asked, columns)
    plan = compile_query(asked, schema_of(table.schema, **columns))
    native = not plan.sources and chosen(plan.finer or plan, engine).engine != "reference"
    meter = Meter(int(effort) if native else int(effort) // SLOW)
    return _tuned(table, plan, columns, meter, native, sample, target_recall, of, cpu, policy, seed, engine)


def _tuned(
    table: pa.Table, plan: Plan, columns: dict[str, Any], meter: Meter, native: bool, size: float | None,
    target: float, of: str, cpu: Sequence[float], policy: Any, seed: int, engine: str,
) -> Tuning:  # fmt: skip
    drawn, query, partitions, unsaid = draw(table, plan, size), plan.query, Partitions(), list[str]()
    most = max(meter.limit // ONE, 1)
    fits = replayed(drawn.table, query, columns, meter, most, engine)
    if fits < drawn.events:
        meter.cut.append(
            f"the sample: all {drawn.events:,} events take too many touches or matches to replay them often"
        )
        drawn = drawn.cut(fits)
    exact = replay(drawn.table, query, columns, partitions, meter, engine=engine)
    found = Tuning(drawn, exact, target, of)
    if query.graph is None:
        steps = error_steps(drawn.table, plan, columns, partitions, meter, engine, max(meter.limit // 10, 1))
        found = replace(found, errors=tuple(steps))
    found = _with_budget(found, plan, columns, partitions, meter, native, cpu, policy, seed, engine, unsaid)
    cheaper = tuple(changes(drawn.table, plan, columns, exact, meter, engine))
    findings = tuple(f"{one.message}\n  {one.hint}" for one in lint_plan(plan))
    found = replace(found, changes=cheaper, findings=findings)
    if not plan.sources and query.graph is None:
        batch = batch_of(drawn.table, plan.schema, tuple(dict.fromkeys([*plan.columns, *plan.keys])))
        by_variable, looked_at = touches_by_variable(plan, batch)
        found = replace(found, by_variable=by_variable, looked_at=looked_at)
    return replace(found, unsaid=tuple(unsaid), cut=tuple(meter.cut))


def _with_budget(
    found: Tuning, plan: Plan, columns: dict[str, Any], partitions: Partitions, meter: Meter, native: bool,
    cpu: Sequence[float], policy: Any, seed: int, engine: str, unsaid: list[str],
) -> Tuning:  # fmt: skip
    """Add the curve, what it recommends, and the trials of policies; or say why there are none."""
    exact, table, query = found.exact, found.sample.table, plan.query
    if not native:
        unsaid.append("a resource budget: only the native core keeps to one, and it does not run this query alone")
        return found
    if exact.bundles < ENOUGH:
        unsaid.append(
            f"a resource budget and a policy: the sample has {count_text(exact.bundles, 'match bundle')}, "
            f"and less than {ENOUGH} is too small to say anything of recall; take a larger sample"
        )
        return found

    def run(work: float) -> SampleRun:
        budget = Budget(work=work)
        return replay(table, query, columns, partitions, meter, engine=engine, budget=budget, policy=policy, seed=seed)

    curve = curve_of(exact, run, meter, found.target, found.of)
    found = replace(found, curve=curve, knee=knee_of(curve, found.of), least=least_of(curve, found.target, found.of))
    found = replace(found, cpu=_cpu_shares(found.sample, exact, curve, cpu, unsaid))
    if UNITS in with_allowance(chosen(plan.finer or plan, engine)):
        unsaid.append("a policy: no predicate ties events together, so that none takes part (stretches are skipped)")
        return found
    if found.least is None:
        unsaid.append("a policy: no budget reaches the target, so there is none to compare policies at")
        return found
    share = found.least.budget / exact.work
    trials, why = policy_trials(table, query, columns, meter, share, found.of, seed, engine)
    if why:
        unsaid.append(f"a policy: {why}")
    return replace(found, policies=trials)


def _cpu_shares(
    sample: Sample, exact: SampleRun, curve: Sequence[CurvePoint], cpu: Sequence[float], unsaid: list[str]
) -> tuple[CpuShare, ...]:
    if not cpu:
        return ()
    if sample.seconds is None:
        unsaid.append("cpu: the length of a tick is unknown; name the unit of an integer time")
        return ()
    rate = exact.touches / max(exact.seconds, 1e-9)
    shares = []
    for share in cpu:
        work = share * sample.seconds * rate
        within = [point for point in curve if point.budget <= work]
        shares.append(CpuShare(share, work, max(within, key=lambda one: one.budget, default=None)))
    return tuple(shares)


def _table(events: Any, query: Query, columns: dict[str, Any]) -> pa.Table:
    """Return the events with all their columns: those that the query does not read may tie its events together."""
    if isinstance(events, str | list | tuple) and events:
        try:
            from acep.events.files.reading import read_events

            return read_events(events, ts=columns["ts"], type=columns["type"])
        except (AcepError, TypeError):
            return given_table(events, asked_for(query), **columns)[0]
    return to_table(events)


def _check(target: object, of: object, cpu: object, effort: object, seed: object) -> None:
    if isinstance(target, bool) or not isinstance(target, Real) or not 0 < float(target) <= 1:
        raise QueryError(
            f"target_recall={target!r} is no share", hint="a number up to 1, such as 0.9", code="option_invalid"
        )
    if of not in ("points", "bundles"):
        raise QueryError(f"of={of!r} is not what recall is of", hint='"points" or "bundles"', code="option_invalid")
    if (
        isinstance(cpu, str)
        or not isinstance(cpu, Sequence)
        or any(isinstance(one, bool) or not isinstance(one, Real) or not 0 < float(one) < 1e9 for one in cpu)
    ):
        raise QueryError(f"cpu={cpu!r} has no shares of a core", hint="such as cpu=[0.1, 0.5]", code="option_invalid")
    if isinstance(effort, bool) or not isinstance(effort, Integral) or effort < 1:
        raise QueryError(f"effort={effort!r} is no number of touches", hint=f"such as {EFFORT}", code="option_invalid")
    checked_seed(seed)
