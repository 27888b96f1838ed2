"""Make the streaming job of a MATCH_RECOGNIZE clause."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from acep.arrivals.arrivals import span_ticks
from acep.errors import DataError, QueryError
from acep.events.tables import InputSchema
from acep.plan.ordered.open_matches import add_open_matches
from acep.plan.schema import Kind
from acep.row_patterns.partition_choice import ClauseBudget
from acep.row_patterns.revised_clause import OP
from acep.runtime.options import StreamOptions
from acep.streaming.clause_description import JobClause
from acep.streaming.job import BUCKETS, Job, Pass, share_budget
from acep.streaming.latest_time import latest_of
from acep.streaming.times import tick_ms_of
from acep.tables.clause_options import check_clause_options, clause_budget

__all__ = ["clause_job"]


def clause_job(
    clause: JobClause,
    schema: InputSchema,
    options: StreamOptions,
    *,
    keys: Sequence[str],
    buckets: int | None,
    end: int,
    latest: Any,
    result: pa.Schema,
) -> Job:
    """Return the job of a clause over rows of a schema. ``keys``: the columns by which rows are spread over
    ``buckets``; ``end``: the first tick that marks the end of the stream; ``result``: the columns of the result but
    ``op``.

    Raises :class:`QueryError` or :class:`DataError` for options that a clause does not have."""
    check_clause_options(options)
    budget = _bucket_budget(options)
    add_open_matches(clause.plan)  # it refuses a pattern of too many states
    if buckets is not None and (isinstance(buckets, bool) or not isinstance(buckets, int) or buckets < 1):
        raise DataError(f"buckets={buckets!r} is not a positive number", code="option_invalid")
    if options.op is not None and (schema.id is None or schema.seq is None):
        missing = "id=" if schema.id is None else "seq="
        raise QueryError("op= takes back rows by their ids, in the order in which they came", hint=f"name {missing}",
                         code="option_invalid")  # fmt: skip
    if options.op is not None and schema.kind(options.op) is not Kind.INT:
        raise DataError(f"there is no column `{options.op}` of integers", hint="op= names the column with +1 and -1",
                        code="data_column")  # fmt: skip
    ahead = span_ticks("speculation", options.speculation, schema)
    if ahead != 0:
        if OP in result.names:
            raise QueryError(f"`{OP}` tells rows that come from those taken back", hint="give the measure another name",
                             code="query_name")  # fmt: skip
        result = result.append(pa.field(OP, pa.int64()))
    roles = (schema.ts, schema.seq, schema.id, options.op)
    columns = dict.fromkeys((*clause.columns, *(name for name in roles if name is not None)))
    n_buckets = (buckets or BUCKETS) if keys or clause.has_computed_buckets else 1
    if budget is not None:
        budget.make_choice(clause.plan, schema)  # it refuses a clause without partitions
    return Job(
        names=("",),
        queries=(),
        schema=schema,
        columns=tuple(columns),
        passes=(Pass((), tuple(keys), 0, n_buckets),),
        output="matches",
        result=result,
        tick_ms=tick_ms_of(schema),
        end=end,
        several=False,
        latest=latest_of(latest, schema),
        op=options.op,
        ahead=ahead,
        duplicates=None if options.id is None else options.duplicates,
        clause=clause,
        budget=None if budget is None else share_budget(budget.budget, n_buckets),
        policy=options.policy if budget is None else budget.policy,
        seed=0 if budget is None else budget.seed,
    ).with_fingerprint()


def _bucket_budget(options: StreamOptions) -> ClauseBudget | None:
    """Return the budget of a clause over buckets. Raises :class:`QueryError` for one that they cannot keep to."""
    budget = clause_budget(options)
    if budget is not None and (budget.budget.cpu, budget.budget.latency) != (None, None):
        raise QueryError("a clause over buckets keeps to a budget of work or memory, and not of time",
                         hint="acep.Matcher takes latency= and cpu=", code="option_invalid")  # fmt: skip
    return budget
