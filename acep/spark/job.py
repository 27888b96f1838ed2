"""What a run on Spark is, as data for the workers: queries, columns, passes over the data, the form of the result."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from acep.budget import Budget, tolerant
from acep.engine.api import ENGINES, OUTPUTS
from acep.engine.stream import Stream
from acep.engine.tables import InputSchema, schema_of
from acep.errors import DataError, EngineError, QueryError, suggest
from acep.pattern.asked import asked_for
from acep.pattern.tree import Query, Strategy
from acep.plan.compile import Plan, compile_query
from acep.plan.schema import Kind
from acep.spark.times import first_end_tick, tick_ms_of
from acep.spark.types import arrow_schema, result_type

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

__all__ = ["BUCKETS", "Job", "Pass", "columns_read", "job_of", "passes_of", "plans_of"]

BUCKETS = 8


@dataclass(frozen=True)
class Pass:
    """Queries that share one copy of the rows: their numbers, the columns by whose values the rows are spread, and
    the numbers of the buckets that they are spread over (``first`` and the ``size - 1`` after it)."""

    queries: tuple[int, ...]
    keys: tuple[str, ...]
    first: int
    size: int


@dataclass(frozen=True)
class Job:
    """``names`` and ``queries`` go together; ``columns`` are those that travel to the workers; ``result`` is the Arrow
    schema of the rows given, of which ``output`` says the kind; ``engine`` is what runs the queries, no part
    of the fingerprint, as the state of a bucket says what it was made by; ``tick_ms`` is the length of a tick of ``ts``
    on the clock of the watermark, as (numerator, denominator) in milliseconds; ``end`` the first tick that is no event
    but the end of the stream."""

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
    fingerprint: str = ""

    @property
    def buckets(self) -> int:
        """How many buckets there are in all."""
        return sum(part.size for part in self.passes)

    def pass_of(self, bucket: int) -> Pass:
        """The pass that a bucket belongs to."""
        return next(part for part in self.passes if part.first <= bucket < part.first + part.size)

    def sealed(self) -> Job:
        """The job with the fingerprint that its state must have been made with."""
        plans = plans_of(self.queries, self.schema)
        text = repr(
            (
                self.names,
                [plan.fingerprint for plan in plans],
                (self.schema.ts, self.schema.type, self.schema.seq, self.schema.id, self.schema.tick_ns),
                [(name, self.schema.kind(name)) for name in self.columns],
                [(part.queries, part.keys, part.first, part.size) for part in self.passes],
                self.output,
            )
        )
        fields = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return Job(**fields | {"fingerprint": hashlib.sha256(text.encode()).hexdigest()})


_PLANS: dict[tuple[tuple[Query, ...], InputSchema], tuple[Plan, ...]] = {}


def plans_of(queries: tuple[Query, ...], schema: InputSchema) -> tuple[Plan, ...]:
    """The plans of queries; a worker process compiles them once."""
    plans = _PLANS.get((queries, schema))
    if plans is None:
        if len(_PLANS) > 32:
            _PLANS.clear()
        plans = _PLANS[queries, schema] = tuple(compile_query(query, schema) for query in queries)
    return plans


def columns_read(plans: Sequence[Plan], schema: InputSchema) -> set[str]:
    """The columns that the plans need, those of time, type, seq and id among them."""
    roles = {name for name in (schema.ts, schema.type, schema.seq, schema.id) if name is not None}
    return roles.union(*(plan.columns for plan in plans))


def _needs_all(plan: Plan) -> bool:
    """Whether a plan must see the whole stream in one place.

    Without partition attributes, or under strict contiguity, every event bears on every other. A composed query
    numbers the matches of the inner ones over the whole stream.
    """
    strict = plan.query.strategy is Strategy.STRICT_CONTIGUITY
    return strict or not plan.keys or bool(plan.sources)


def passes_of(plans: Sequence[Plan], buckets: int) -> tuple[Pass, ...]:
    """How queries share the data: each joins the first pass with which it has a partition attribute in common.

    A pass is spread by the attributes that all of its queries have; those that need the whole stream share one pass of
    one bucket. Each pass gets its own copy of the rows, in one shuffle.
    """
    groups: list[tuple[list[int], set[str]]] = []
    for number, plan in enumerate(plans):
        keys = set() if _needs_all(plan) else set(plan.keys)
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


def job_of(
    columns: StructType,
    query: Any,
    *,
    budget: Budget | None = None,
    output: str = "matches",
    engine: str = "auto",
    buckets: int | None = None,
    **names: Any,
) -> tuple[Job, StructType]:
    """The job of queries over a DataFrame with these columns, and the columns of its result.

    ``names`` are ``ts``, ``type``, ``seq``, ``id`` and ``unit``, as of :func:`acep.spark.match`.
    Raises :class:`QueryError` or :class:`DataError`, and :class:`EngineError` where ``engine`` cannot run a query.
    """
    if engine not in ENGINES:
        raise EngineError(f"there is no engine {engine!r}", hint=f"one of {', '.join(ENGINES)}")
    if output not in OUTPUTS:
        raise QueryError(f"unknown output {output!r}", hint=suggest(output, OUTPUTS))
    if buckets is not None and (isinstance(buckets, bool) or not isinstance(buckets, int) or buckets < 1):
        raise DataError(f"buckets={buckets!r} is not a positive number")
    asked = asked_for(query)
    queries = tuple(tolerant(one, budget) for one in asked.queries)
    schema = schema_of(arrow_schema(columns), **names)
    plans = plans_of(queries, schema)
    if engine == "native":
        Stream(plans, engine, output)  # says what it cannot run
    text_ids = schema.id is not None and schema.kind(schema.id) is Kind.STRING
    result = result_type(plans, columns, schema.ts, text_ids, output, asked.several)
    job = Job(
        names=asked.names,
        queries=queries,
        schema=schema,
        columns=tuple(sorted(columns_read(plans, schema) | (set() if schema.seq else set(columns.names)))),
        passes=passes_of(plans, buckets or BUCKETS),
        output=output,
        result=arrow_schema(result),
        tick_ms=tick_ms_of(schema),
        end=first_end_tick(columns[schema.ts].dataType, schema),
        several=asked.several,
        engine=engine,
    )
    return job.sealed(), result
