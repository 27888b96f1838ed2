"""Run a MATCH_RECOGNIZE clause over a streaming DataFrame (``acep.spark.match_recognize``)."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from acep.errors import QueryError
from acep.row_patterns.revised_clause import OP
from acep.row_patterns.stream_time import check_time_option
from acep.runtime.options import StreamOptions
from acep.spark.columns.fields import all_columns, input_schema, quote_name
from acep.spark.columns.letter_case import ignores_case, resolve_roles
from acep.spark.columns.times import first_end_tick
from acep.spark.columns.types import arrow_schema
from acep.spark.interpreter import check_workers
from acep.spark.job import SentJob
from acep.spark.state_choice import choose_state
from acep.spark.stream_run import run_stream, run_stream_in_files
from acep.streaming.clause_description import JobClause
from acep.streaming.clause_job import clause_job

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from acep.spark.clauses.row_patterns import SparkClause

__all__ = ["run_on_stream"]


def run_on_stream(
    frame: DataFrame,
    planned: SparkClause,
    options: StreamOptions,
    *,
    watermark: Any = None,
    state: str | os.PathLike[str] | None = None,
    buckets: int | None = None,
    latest: Any = None,
) -> DataFrame:
    """Return the result of a clause that is planned for the columns of a stream.

    Raises :class:`QueryError`, :class:`DataError` or :class:`EngineError`."""
    from pyspark.sql import functions as sf
    from pyspark.sql.types import LongType, StructField, StructType

    check_workers(frame.sparkSession, "auto")
    if ignores_case(frame.sparkSession):
        roles = resolve_roles(frame.schema, vars(options), typed=False)
        options = replace(options, **roles)
    sent = planned.sent
    plan, ts = sent.plan, sent.plan.order[0].column
    check_time_option(options.ts, ts)
    columns = all_columns(frame.schema)
    schema = input_schema(columns, ts=ts, type=None, seq=options.seq, id=options.id, unit=options.unit)
    names = tuple(f"c{i}" for i in range(len(planned.result.fields)))
    fields = [StructField(name, field.dataType) for name, field in zip(names, planned.result.fields, strict=True)]
    casts = tuple(cast for _, cast in sent.result)
    keys = [name for name in dict.fromkeys(plan.partition) if name in columns.names]
    is_computed = bool(plan.partition) and not keys
    clause = JobClause(plan.clause.text, plan, sent.columns, None, casts, names, is_computed)
    job = clause_job(
        clause, schema, options, keys=keys, buckets=buckets, end=first_end_tick(columns[ts].dataType, schema),
        latest=latest, result=arrow_schema(StructType(fields)),
    )  # fmt: skip
    output_names = list(zip(names, planned.result.names, strict=True))
    if job.ahead != 0:
        if OP in planned.result.names:
            raise QueryError(f"`{OP}` tells rows that come from those taken back", hint="give the measure another name",
                             code="query_name")  # fmt: skip
        fields.append(StructField(OP, LongType()))
        output_names.append((OP, OP))
    sent_job = SentJob(**vars(job))
    choice = choose_state(frame, state, watermark)
    if choice.in_spark:
        rows = run_stream(frame, sent_job, StructType(fields), watermark, choice)
    else:
        rows = run_stream_in_files(frame, sent_job, StructType(fields), watermark, choice)
    return rows.select(*(sf.col(quote_name(name)).alias(shown_name) for name, shown_name in output_names))
