"""Describe a streaming job as data: queries, columns, the spread of rows over buckets, and the form of the result."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import pyarrow as pa

from acep.arrivals.arrivals import span_ticks
from acep.budget.budget import LEAST_MEMORY, Budget, tolerant
from acep.budget.policies import POLICIES, policy_of
from acep.changing.changeable_queries import as_dynamic, compile_versions
from acep.errors import DataError, QueryError, naming_query, suggest
from acep.events.tables import InputSchema
from acep.pattern.query_arguments import read_queries
from acep.pattern.tree import Query, Strategy
from acep.plan.compile import Plan, compile_query
from acep.plan.schema import Kind, kinds_text
from acep.plan.versions import QueryVersion
from acep.reference.single_events import matches_one_event
from acep.revision.revised_stream import RevisedStream
from acep.runtime.options import StreamOptions
from acep.runtime.stream import check_plans
from acep.shedding.history_file import read_history, read_learned
from acep.shedding.limits import Limits, want_a_bound
from acep.storage.sizes import size_in_bytes
from acep.streaming.clause_description import JobClause
from acep.streaming.latest_time import Latest, latest_of
from acep.streaming.pace import BatchPace
from acep.streaming.query_versions import with_columns
from acep.streaming.times import tick_ms_of

__all__ = [
    "BUCKETS",
    "EXACT",
    "OUTPUTS",
    "Job",
    "Pass",
    "all_columns",
    "columns_read",
    "make_job",
    "passes_of",
    "share_budget",
]

EXACT = "exact"  # column, under a budget: whether nothing had been shed up to this row

BUCKETS = 8

OUTPUTS = ("matches", "points", "bundles", "count")

# Outputs that exist only within one process, and what to ask for instead.
ELSEWHERE = {
    "compressed": 'a graph of matches is of one process: ask for "matches", or for "count" where there are too many',
    "exists": 'ask for "count", or for "points" and whether there is one',
    "batches": 'ask for "matches": these come batch by batch already',
}


@dataclass(frozen=True)
class Pass:
    """Queries that share one copy of the rows: their numbers, the columns by whose values the rows are spread, and
    the buckets over which they are spread (number ``first`` and the ``size - 1`` after it)."""

    queries: tuple[int, ...]
    keys: tuple[str, ...]
    first: int
    size: int


@dataclass(frozen=True)
class Job:
    """A streaming job: ``queries`` and their ``names``, and the ``columns`` that go to the workers. ``output`` is the
    kind of the result, ``result`` the Arrow schema of its rows. ``engine`` is not part of the fingerprint, because the
    state of a bucket records its engine. ``tick_ms`` is the length of a tick of ``ts`` on the clock of the watermark,
    as (numerator, denominator) in milliseconds. ``end`` is the first tick that marks the stream's end, not an event.
    ``budget`` is ``None`` if it bounds nothing; ``policy`` (a name), ``seed``, ``histories`` belong to it. ``op`` names
    the column that takes events back, and ``ahead`` says how many ticks before they are final events are matched
    (``None``: at once). ``late``: whether late events are rows of the result, which then has the columns kind and
    event. ``dynamic``: whether queries may be replaced by newer versions; all columns go to the workers then.
    ``duplicates``: what becomes of events that come twice (``None``: they are not looked for); it may change when a
    stream is restarted. ``clause``: a MATCH_RECOGNIZE clause that runs in place of queries. ``has_rules``: rules run in
    place of queries; they come with micro-batches, and are part of the state."""

    names: tuple[str, ...]
    queries: tuple[Query, ...]
    schema: InputSchema
    columns: tuple[str, ...]
    passes: tuple[Pass, ...]
    output: str
    result: pa.Schema
    tick_ms: tuple[int, int]
    end: int
    several: bool
    engine: str = "auto"
    budget: Budget | None = None
    policy: str = "history"
    seed: int = 0
    histories: tuple[bytes, ...] = ()
    fingerprint: str = ""
    latest: Latest | None = None
    op: str | None = None
    ahead: int | None = 0
    late: bool = False
    dynamic: bool = False
    duplicates: str | None = None
    clause: JobClause | None = None
    has_rules: bool = False

    @property
    def plans(self) -> tuple[Plan, ...]:
        """The plans of the queries, as they are at first; none of a clause, or of rules. A worker process compiles
        them once."""
        if self.clause is not None or self.has_rules:
            return ()
        return _plans(self.queries, self.schema, self.attributes if self.dynamic else None, self.names)

    @property
    def attributes(self) -> tuple[str, ...]:
        """The columns that a query may use: all but ``op``, as an event that counts has no sign."""
        return tuple(name for name in self.columns if name != self.op)

    @property
    def revised(self) -> bool:
        """Whether events are taken back, or matched before they are final; the result has the columns op and id."""
        return self.op is not None or self.ahead != 0

    def earliest_since(self, final: int | None) -> int | None:
        """Return the earliest tick from which on a version of a query may hold that comes now (``None``: for no event
        that has come), if events before the tick ``final`` are final (``None``: none are)."""
        if self.ahead == 0:
            return None
        return -(2**63) if final is None else final

    def matches_at_once(self, delay_ms: int) -> bool:
        """Return whether each event is matched at once, if the watermark has this delay."""
        return self.ahead is None or (self.ahead > 0 and self.ahead * self.tick_ms[0] >= delay_ms * self.tick_ms[1])

    @property
    def finer(self) -> bool:
        """Whether a bucket may keep events apart by what equalities tie: not where their ids are places in a
        partition."""
        return self.schema.id is not None or self.output == "count"

    @property
    def limits(self) -> Limits | None:
        """The limits of the queries in each bucket, except those of time; ``None`` without a budget."""
        if self.budget is None:
            return None
        return _limits(self.budget, self.policy, self.seed, self.histories)

    @property
    def buckets(self) -> int:
        """The number of buckets of all passes."""
        return sum(part.size for part in self.passes)

    @property
    def timed(self) -> bool:
        """Whether a budget sets a bound of time, for which buckets need the time at which a micro-batch began."""
        return self.budget is not None and (self.budget.latency is not None or self.budget.cpu is not None)

    @property
    def measured(self) -> bool:
        """Whether a budget bounds time or memory, so that a micro-batch that is begun again may shed other events or
        partial matches than at first: that depends on measurements, and on what is still in memory."""
        return self.timed or (self.budget is not None and self.budget.memory is not None)

    @property
    def clocked(self) -> bool:
        """Whether buckets need the time at which a micro-batch began, for a budget or for ``latest``."""
        return self.timed or (self.latest is not None and self.latest.ahead is not None)

    def greatest_tick(self, now: int | None) -> int | None:
        """Return the greatest time of an event, in ticks, in a micro-batch that began at ``now``, in milliseconds;
        ``None`` without a bound. With one it is before the time that ends a stream."""
        return None if self.latest is None else min(self.latest.greatest_tick(now, self.tick_ms), self.end - 1)

    def pass_of(self, bucket: int) -> Pass:
        """Return the pass that a bucket belongs to."""
        return next(part for part in self.passes if part.first <= bucket < part.first + part.size)

    def with_fingerprint(self) -> Self:
        """Return the job with its fingerprint, which the state of its buckets must match."""
        plans = self.plans
        roles = (self.schema.ts, self.schema.type, self.schema.seq, self.schema.id, self.schema.tick_ns)
        # Bounds of time may change when a stream is restarted; what decides which partial matches are kept may not.
        bounds = () if self.budget is None else (self.budget.work, self.budget.memory, self.policy, self.seed)
        parts = (
            repr(self.names),
            repr([plan.fingerprint for plan in plans]),
            repr(roles),
            kinds_text((name, self.schema.kind(name)) for name in self.columns),
            repr([(part.queries, part.keys, part.first, part.size) for part in self.passes]),
            repr(self.output),
            *map(repr, bounds),
        )
        if self.revised:
            parts += (repr((self.op, self.ahead)),)
        if self.dynamic:
            parts += ("dynamic",)
        if self.clause is not None:
            parts += (self.clause.text,)
        if self.has_rules:
            parts += ("rules",)
        text = f"({', '.join(parts)})"
        return replace(self, fingerprint=hashlib.sha256(text.encode()).hexdigest())


def _check_buckets(buckets: Any) -> None:
    """Raise :class:`DataError` for a number of buckets that is none."""
    if buckets is not None and (isinstance(buckets, bool) or not isinstance(buckets, int) or buckets < 1):
        raise DataError(f"buckets={buckets!r} is not a positive number", code="option_invalid")


def _bound_of(options: StreamOptions, *, dynamic: bool) -> Budget | None:
    """Return the budget of the options if it bounds something. Raise :class:`QueryError` for a budget or a policy that
    buckets cannot have."""
    budget, policy = options.budget, options.policy
    if not isinstance(policy, str):
        raise QueryError(
            "a policy goes by its name where there are buckets",
            hint=f"one of {', '.join(POLICIES)}",
            code="option_invalid",
        )
    policy_of(policy)
    if budget is None or not budget.limited:
        want_a_bound(policy, options.history)
        return None
    if budget.recover:
        raise QueryError(
            "recover= is not for streams in buckets", hint="leave recover out of the Budget", code="option_invalid"
        )
    if dynamic:
        raise QueryError(
            "queries that change keep to no budget of work, time or memory",
            hint="leave versions= out",
            code="option_invalid",
        )
    return budget


def _histories_of(history: Any) -> tuple[bytes, ...]:
    """Return the contents of one history or several; none for ``None``."""
    is_list = isinstance(history, Sequence) and not isinstance(history, str | bytes)
    return () if history is None else tuple(map(read_history, history if is_list else [history]))


def _check_late(schema: InputSchema, output: str) -> None:
    """Raise :class:`QueryError` if late events cannot be rows of the result."""
    if schema.id is None or output != "matches":
        raise QueryError(
            "late events are rows beside matches, by their ids",
            hint='output="matches", and name id=',
            code="option_invalid",
        )


def _check_revised(options: StreamOptions, schema: InputSchema, output: str, budget: Budget | None) -> None:
    """Raise :class:`QueryError` or :class:`DataError` for options that exclude ``speculation`` and ``op``."""
    if schema.id is None:
        raise QueryError(
            "matches that may be taken back are known by the ids of their events",
            hint="name id=",
            code="option_invalid",
        )
    if options.op is not None and schema.seq is None:
        raise QueryError(
            "op= needs the order in which rows came", hint="seq= names a column that counts them", code="option_invalid"
        )
    if output == "bundles":
        raise QueryError(
            "matches that may be taken back have no bundles: a match that comes late may join or split them",
            hint='ask for "points" or "count", which come as differences',
            code="option_invalid",
        )
    if budget is not None and (budget.cpu, budget.latency, budget.memory) != (None, None, None):
        # Bounds of time depend on measurements, and memory on whether a bucket stayed in its worker. A try whose rows
        # were given could then differ from the one whose state is kept, and what was given could not be taken back.
        raise QueryError(
            "matches that may be taken back keep to a budget of work, and not of time or memory, where there are"
            " buckets",
            hint="ask for work=, or leave speculation= and op= out",
            code="option_invalid",
        )
    if options.op is not None and schema.kind(options.op) is not Kind.INT:
        raise DataError(
            f"there is no column `{options.op}` of integers",
            hint="op= names the column with +1 and -1",
            code="data_column",
        )


def share_budget(budget: Budget, buckets: int) -> Budget:
    """Return the budget of each bucket: memory is divided, as all buckets may run at the same time."""
    if budget.memory is None:
        return budget
    share = size_in_bytes(budget.memory) // buckets
    if share < LEAST_MEMORY:
        raise QueryError(
            f"memory={budget.memory!r} is too little for {buckets} buckets",
            hint=f"at least {buckets} MB, or fewer buckets",
            code="option_invalid",
        )
    return replace(budget, memory=share)


def _limits(budget: Budget, policy: str, seed: int, histories: Sequence[bytes]) -> Limits:
    # acep.streaming.pace enforces bounds of time from batch to batch.
    return Limits(policy_of(policy), replace(budget, cpu=None, speed=1.0, latency=None), seed, read_learned(histories))


_PLANS: dict[tuple[tuple[Query, ...], InputSchema, tuple[str, ...] | None], tuple[Plan, ...]] = {}


def _plans(
    queries: tuple[Query, ...], schema: InputSchema, columns: tuple[str, ...] | None, names: Sequence[str]
) -> tuple[Plan, ...]:
    """Return the plans of queries. Those that may change read ``columns``; of others these are ``None``. ``names`` are
    for errors."""
    plans = _PLANS.get((queries, schema, columns))
    if plans is None:
        if len(_PLANS) > 32:
            _PLANS.clear()
        compiled_plans = []
        for name, query in zip(names, queries, strict=True):
            with naming_query(name):
                if columns is None:
                    compiled_plans.append(compile_query(query, schema))
                else:
                    compiled_plans.append(
                        with_columns(compile_versions((QueryVersion(query, None),), schema), columns, schema)
                    )
        plans = tuple(compiled_plans)
        _PLANS[queries, schema, columns] = plans
    return plans


def columns_read(plans: Sequence[Plan], schema: InputSchema) -> set[str]:
    """Return the columns that the plans need, including those of time, type, seq and id."""
    roles = {name for name in (schema.ts, schema.type, schema.seq, schema.id) if name is not None}
    return roles.union(*(plan.columns for plan in plans))


def all_columns(schema: InputSchema) -> tuple[str, ...]:
    """Return the columns with values that a query can use."""
    return tuple(sorted(name for name, kind in schema.kinds if kind is not None))


def _keys_of(plan: Plan, *, single: bool) -> set[str]:
    """Return the columns by whose values the rows of a plan may be spread; none if they must be in one bucket.

    Without partition attributes, or under strict contiguity, any two events may affect each other. A composed query
    numbers the matches of its inner queries over the whole stream. ``single``: each match stands for itself, as it has
    no bundle, so that what equalities tie may be in several buckets. A null there has no bucket.
    """
    if plan.query.strategy is Strategy.STRICT_CONTIGUITY or plan.sources:
        return set()
    finer = plan.finer if single and not matches_one_event(plan) else None
    return set((finer or plan).keys)


def passes_of(plans: Sequence[Plan], buckets: int, *, single: bool = False) -> tuple[Pass, ...]:
    """Group queries into passes: each query joins the first pass with which it shares a partition attribute.

    A pass is spread by the attributes that all of its queries share. Queries that need the whole stream share one pass
    of one bucket. Each pass gets its own copy of the rows, in one shuffle. ``single``: each match stands for itself, so
    that attributes tied by equalities spread the rows, too.
    """
    groups: list[tuple[list[int], set[str]]] = []
    for number, plan in enumerate(plans):
        keys = _keys_of(plan, single=single)
        for members, shared in groups:
            if keys & shared or (not keys and not shared):
                members.append(number)
                shared.intersection_update(keys)
                break
        else:
            groups.append(([number], keys))
    passes = []
    first = 0
    for members, shared in groups:
        size = buckets if shared else 1
        passes.append(Pass(tuple(members), tuple(sorted(shared)), first, size))
        first += size
    return tuple(passes)


def _check_output(output: Any) -> None:
    if not isinstance(output, str) or output not in OUTPUTS:
        if isinstance(output, str) and output in ELSEWHERE:
            raise QueryError(
                f"there is no output={output!r} where there are buckets", hint=ELSEWHERE[output], code="option_invalid"
            )
        raise QueryError(f"unknown output {output!r}", hint=suggest(str(output), OUTPUTS), code="option_invalid")


def make_job(
    query: Any,
    schema: InputSchema,
    options: StreamOptions,
    *,
    end: int,
    ties: Collection[str],
    output: str = "matches",
    buckets: int | None = None,
    spread: bool = True,
    latest: Any = None,
    late: bool = False,
    dynamic: bool = False,
) -> Job:
    """Create the job of queries over events of a schema, with an empty ``result``, which the caller fills in.

    ``end`` is the first tick that marks the end of the stream. ``ties`` names the columns that order events of equal
    ``ts`` and ``seq``. Without ``spread`` all queries share one bucket. ``dynamic``: the queries may be replaced by
    newer versions. The other options are those of :func:`acep.spark.match`.

    Raises :class:`QueryError` or :class:`DataError`, and :class:`EngineError` where ``engine`` cannot run a query.
    """
    _check_output(output)
    _check_buckets(buckets)
    bound = _bound_of(options, dynamic=dynamic)
    asked = read_queries(query)
    queries = tuple(tolerant(asked_query, options.budget) for asked_query in asked.queries)
    if dynamic:
        queries = tuple(map(as_dynamic, queries))
    columns = tuple(name for name in all_columns(schema) if name != options.op) if dynamic else None
    plans = _plans(queries, schema, columns, asked.names)
    histories = _histories_of(options.history)
    ahead = span_ticks("speculation", options.speculation, schema)
    revised = options.op is not None or ahead != 0
    single_pass = (Pass(tuple(range(len(plans))), (), 0, 1),)
    is_single = revised or output == "count"
    passes = passes_of(plans, buckets or BUCKETS, single=is_single) if spread else single_pass
    bound = None if bound is None else share_budget(bound, sum(part.size for part in passes))
    if late:
        _check_late(schema, output)
    if revised:
        _check_revised(options, schema, output, bound)
    columns_sent = columns_read(plans, schema) | set(ties) | ({options.op} if options.op else set())
    job = Job(
        names=asked.names,
        queries=queries,
        schema=schema,
        columns=tuple(sorted(columns_sent)),
        dynamic=dynamic,
        passes=passes,
        output=output,
        result=pa.schema([]),
        tick_ms=tick_ms_of(schema),
        end=end,
        several=asked.is_several,
        engine=options.engine,
        budget=bound,
        policy=options.policy,
        seed=options.seed,
        histories=histories,
        latest=latest_of(latest, schema),
        op=options.op,
        ahead=ahead,
        late=late,
        duplicates=None if options.id is None else options.duplicates,
    )
    _check_engine(job, plans)
    return job.with_fingerprint()


def _check_engine(job: Job, plans: tuple[Plan, ...]) -> None:
    """Raise :class:`QueryError` or :class:`EngineError` for plans that the engine of a job cannot run."""
    BatchPace.from_budget(job.budget, 1, job.schema.tick_ns)  # raises for a bound of time that cannot be enforced
    if job.revised:
        RevisedStream(plans, job.engine, job.limits)  # raises for a query whose matches cannot be revised
    if job.engine == "native" or job.limits is not None or job.dynamic:
        check_plans(plans, job.engine, job.output, job.limits, names=job.names)
