"""Recommend an error budget, a resource budget, a policy and cheaper forms of a query: :func:`tune`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any

import pyarrow as pa

from acep.budget import Budget
from acep.budget.policies import policy_of
from acep.errors import AcepError, QueryError
from acep.events.duplicates import check_duplicates, settle_duplicates
from acep.events.empty_schema import with_usable_types
from acep.events.frames import to_table
from acep.events.input_tables import input_table
from acep.events.tables import batch_of, schema_of
from acep.native.compiled import choose_engine
from acep.pattern.query_arguments import query_of, read_queries
from acep.pattern.tree import Query
from acep.plan.choice import UNITS, with_allowance
from acep.plan.compile import Plan, compile_query
from acep.plan.lint.distribution import no_partition
from acep.plan.lint.rules import Finding, lint_plan
from acep.runtime.options import check_engine
from acep.shedding.limits import checked_seed
from acep.training.match_points import Partitions
from acep.tuning.cheaper import changes
from acep.tuning.curve import CurvePoint, curve_of, knee_of, least_of
from acep.tuning.exact import exact_sample, why_too_few
from acep.tuning.replay import Meter, SampleRun, replay
from acep.tuning.result import CpuShare, Tuning
from acep.tuning.sample import Sample
from acep.tuning.saving import SAVING_SHARE, saving_of
from acep.tuning.state_work import MAX_TOUCHES, touches_by_variable
from acep.tuning.trials import ENOUGH, error_steps, policy_trials
from acep.tuning.windows import cheapest_window, window_costs, window_trials

__all__ = ["EFFORT", "tune"]

EFFORT = 40_000_000
"""The touches that all replays together may take on the native core: some seconds."""

SLOW = 20  # how many times dearer a touch of the reference runtime is counted


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
    duplicates: str = "refuse",
) -> Tuning:
    """Replay a sample of a stream under several budgets and policies, and recommend which to use.

    ``sample``: the events of the sample, or their share if below 1 (default 50,000). Whole partitions are drawn where
    the query has partition attributes, else the first events are taken. ``target_recall``: the share ``of`` match
    ``"points"`` or ``"bundles"`` that a budget, or a shorter window, is to find. ``cpu``: shares of a core to translate
    into ``work=``. ``effort``: the touches that all replays together may take; a sample that needs more than a fortieth
    is cut, or than an eighth where fewer have too few match points to say anything.
    ``policy`` is that of the curve; the other arguments are those of :func:`acep.match`, ``duplicates`` among them.
    Each replay is what ``acep.match(tuning.sample.table, query, budget=..., policy=..., seed=...)`` does.

    Raises :class:`QueryError`, :class:`DataError` or :class:`EngineError`, as :func:`acep.match` does.

    >>> import acep
    >>> ts = range(3000)
    >>> events = {"ts": [*ts], "type": list("abc" * 1000), "k": [i // 60 for i in ts], "x": [i * i % 101 for i in ts]}
    >>> found = tune(events, "PATTERN SEQ(a p, b q, c r) WHERE [k] AND q.x > p.x AND r.x > q.x WITHIN 40", sample=1000)
    >>> found.sample.how, found.least.recall >= 0.9
    ('16 of 50 partitions, whole, by the hash of k', True)
    """
    parsed = query_of(query)
    _check(target_recall, of, cpu, effort, seed)
    policy_of(policy)
    check_engine(engine)
    columns: dict[str, Any] = {"ts": ts, "type": type, "seq": seq, "id": id, "unit": unit}
    check_duplicates(duplicates, id)
    table = settle_duplicates(_table(events, parsed, columns, duplicates), id, duplicates)
    table = with_usable_types(table, [parsed], columns)
    plan = compile_query(parsed, schema_of(table.schema, **columns))
    native = not plan.sources and choose_engine(plan.finer or plan, engine).engine != "reference"
    meter = Meter(int(effort) if native else int(effort) // SLOW)
    asked = _AskedTuning(sample, target_recall, of, cpu, int(effort), policy, seed)
    return _tune_table(table, _Replays(plan, columns, engine, native, meter, Partitions()), asked)


@dataclass(frozen=True)
class _AskedTuning:
    """The wishes of a user for a tuning, as :func:`tune` takes it: the ``size`` of the sample, the ``target`` recall of
    match points or bundles (``kind``), shares of a core, the ``effort``, and the policy of the curve with its seed."""

    size: float | None
    target: float
    kind: str
    cpu: Sequence[float]
    effort: int
    policy: Any
    seed: int


@dataclass(frozen=True)
class _Replays:
    """The values that all replays of a tuning share: the query's plan over ``columns``, the engine, whether it is the
    ``native`` core, the ``meter`` of the work of all, and the numbers of the partitions of match points."""

    plan: Plan
    columns: dict[str, Any]
    engine: str
    native: bool
    meter: Meter
    partitions: Partitions


def _tune_table(table: pa.Table, replays: _Replays, asked: _AskedTuning) -> Tuning:
    plan, columns, engine, meter = replays.plan, replays.columns, replays.engine, replays.meter
    kind, unsaid = asked.kind, list[str]()
    exact = exact_sample(table, plan, columns, asked.size, meter, engine, kind, replays.partitions)
    tuning = Tuning(exact.sample, exact.replay, asked.target, kind)
    if not replays.native:
        unsaid.append("a resource budget: only the native core keeps to one, and it does not run this query alone")
    elif exact.replay.draws_of(kind) < ENOUGH:
        unsaid.append(why_too_few(exact, kind, asked.effort))
    if exact.replay.draws_of(kind) >= ENOUGH:
        tuning = _with_recall(tuning, replays, asked, unsaid)
    elif exact.is_cut:
        costs = tuple(window_costs(exact.drawn.table, plan, columns, meter, engine))
        tuning = replace(tuning, window_costs=costs)
    table = tuning.sample.table
    if plan.query.graph is None:
        max_touches = max(min(meter.limit // 10, meter.left // 4), 1)
        steps = error_steps(table, plan, columns, replays.partitions, meter, engine, max_touches, exact.replay)
        tuning = replace(tuning, errors=tuple(steps))
    tuning = _with_policies(tuning, replays, asked.seed, unsaid)
    cheaper = tuple(changes(table, plan, columns, exact.replay, meter, engine))
    findings = tuple(map(_finding_text, lint_plan(plan)))
    tuning = replace(tuning, changes=cheaper, findings=findings)
    if not plan.sources and plan.query.graph is None:
        batch = batch_of(table, plan.schema, tuple(dict.fromkeys([*plan.columns, *plan.keys])))
        max_touches = min(MAX_TOUCHES, asked.effort * MAX_TOUCHES // EFFORT)
        by_variable, looked_at = touches_by_variable(plan, batch, max_touches)
        tuning = replace(tuning, by_variable=by_variable, looked_at=looked_at)
    return replace(tuning, unsaid=tuple(unsaid), cut=tuple(meter.cut))


def _finding_text(finding: Finding) -> str:
    """Return a finding with its hint, unless the hint is to run this command."""
    return finding.message if finding.rule == no_partition.__name__ else f"{finding.message}\n  {finding.hint}"


def _with_recall(tuning: Tuning, replays: _Replays, asked: _AskedTuning, unsaid: list[str]) -> Tuning:
    """Add what shorter windows and budgets find, and what that recommends."""
    exact, table, kind = tuning.exact, tuning.sample.table, tuning.of
    plan, columns, engine, meter = replays.plan, replays.columns, replays.engine, replays.meter
    windows = tuple(window_trials(table, plan, columns, exact, meter, kind, engine, replays.partitions))
    tuning = replace(tuning, windows=windows, window=cheapest_window(windows, tuning.target, kind))
    if not replays.native:
        return tuning

    def run(work: float | None) -> SampleRun:
        options = {"engine": engine, "policy": asked.policy, "seed": asked.seed}
        budget = None if work is None else Budget(work=work)
        return replay(table, plan.query, columns, replays.partitions, meter, budget=budget, **options)

    curve = curve_of(exact, run, meter, tuning.target, kind)
    lowest = least_of(curve, tuning.target, kind)
    saving = None if lowest is None or lowest.work > SAVING_SHARE * exact.work else saving_of(exact, lowest, run, meter)
    tuning = replace(tuning, curve=curve, knee=knee_of(curve, kind), least=lowest, saving=saving)
    return replace(tuning, cpu=_cpu_shares(tuning.sample, exact, curve, asked.cpu, unsaid))


def _with_policies(tuning: Tuning, replays: _Replays, seed: int, unsaid: list[str]) -> Tuning:
    """Add the trials of policies under the least budget that reaches the target, or say why there are none."""
    if not tuning.curve:
        return tuning
    plan, columns, engine = replays.plan, replays.columns, replays.engine
    lowest, exact = tuning.least, tuning.exact
    if UNITS in with_allowance(choose_engine(plan.finer or plan, engine)):
        unsaid.append("a policy: no predicate ties events together, so that none takes part (stretches are skipped)")
        return tuning
    if lowest is None or lowest.work > SAVING_SHARE * exact.work:
        saves = "reaches the target" if lowest is None else "that reaches the target saves work"
        unsaid.append(f"a policy: no budget {saves}, so there is none to compare policies at")
        return tuning
    share = lowest.budget / exact.work
    trials, why = policy_trials(tuning.sample.table, plan.query, columns, replays.meter, share, tuning.of, seed, engine)
    if why:
        unsaid.append(f"a policy: {why}")
    return replace(tuning, policies=trials)


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
        affordable = [point for point in curve if point.budget <= work]
        shares.append(CpuShare(share, work, max(affordable, key=lambda point: point.budget, default=None)))
    return tuple(shares)


def _table(events: Any, query: Query, columns: dict[str, Any], duplicates: str) -> pa.Table:
    """Return the events with all their columns: those that the query does not read may tie its events together."""
    if isinstance(events, str | list | tuple) and events:
        try:
            from acep.events.files.options import options_of
            from acep.events.files.stream import open_events

            with open_events(events, options_of(ts=columns["ts"], type=columns["type"])) as stream:
                table = stream.read_all()
                return (
                    settle_duplicates(table, columns["id"], place_of=stream.place_of)
                    if duplicates == "refuse"
                    else table
                )
        except (AcepError, TypeError):
            return input_table(events, read_queries(query), **columns, duplicates=duplicates)[0]
    return to_table(events)


def _check(target: object, of: object, cpu: object, effort: object, seed: object) -> None:
    if isinstance(target, bool) or not isinstance(target, Real) or not 0 < float(target) <= 1:
        raise QueryError(
            f"target_recall={target!r} is no share", hint="a number up to 1, such as 0.9", code="option_invalid"
        )
    if not isinstance(of, str) or of not in ("points", "bundles"):
        raise QueryError(f"of={of!r} is not what recall is of", hint='"points" or "bundles"', code="option_invalid")
    if (
        isinstance(cpu, str)
        or not isinstance(cpu, Sequence)
        or any(isinstance(share, bool) or not isinstance(share, Real) or not 0 < float(share) < 1e9 for share in cpu)
    ):
        raise QueryError(f"cpu={cpu!r} has no shares of a core", hint="such as cpu=[0.1, 0.5]", code="option_invalid")
    if isinstance(effort, bool) or not isinstance(effort, Integral) or effort < 1:
        raise QueryError(f"effort={effort!r} is no number of touches", hint=f"such as {EFFORT}", code="option_invalid")
    checked_seed(seed)
