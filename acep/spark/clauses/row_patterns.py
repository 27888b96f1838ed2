"""Run a MATCH_RECOGNIZE clause over a DataFrame (``acep.spark.match_recognize``)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack

import pyarrow as pa

from acep.errors import DataError, QueryError
from acep.pattern.sql.clause_parser import parse_clause
from acep.plan.ordered.ordered_plan import OrderedPlan, make_plan
from acep.plan.ordered.row_references import Navigation, RowAggregate, RowReference
from acep.row_patterns.match_rows import match_table, no_columns_error
from acep.row_patterns.stream_time import time_column
from acep.runtime.options import ClauseKeywords, StreamOptions
from acep.spark.clauses.row_pattern_worker import SentClause, add_keys, match_sorted
from acep.spark.columns.fields import all_columns, input_schema, key_column, quote_name, with_fields
from acep.spark.columns.types import arrow_type, spark_schema
from acep.spark.interpreter import check_workers
from acep.spark.matching import frame_of
from acep.spark.micro_batches import warn_of_micro_batch
from acep.spark.session import needs_pyspark, outside_pipelines
from acep.streaming.clause_description import without_trees

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType, StructType

__all__ = ["SparkClause", "match_recognize", "plan_for_spark", "run_clause"]

PLACES = ("watermark", "state", "buckets", "latest")
"""The options of a stream that are not those of a ``Matcher``."""
_TIME = " "  # a column of times that no DataFrame has: durations are exact, whatever columns there are


@outside_pipelines()
def match_recognize(df: Any, clause: str, **options: Unpack[ClauseKeywords]) -> DataFrame:
    """Find row patterns in a DataFrame: the clause MATCH_RECOGNIZE of SQL without the SQL around it.

    ``df``: a Spark DataFrame, or a table that :func:`acep.match` takes (a session is then started). ``clause`` is what
    stands between the parentheses of MATCH_RECOGNIZE, as for :func:`acep.match_recognize`, and the rows of the result
    are the same. Partitions are matched on all cores; without PARTITION BY one core matches all rows. Rows that ORDER
    BY does not tell apart come in no certain order, as Spark has none. See docs/howto/sql_on_spark.md.

    On a stream the first key of ORDER BY is the time of the events, ascending. A row of the result comes once no row
    that may still come can change it. The options are of a stream: ``watermark``, ``state``, ``buckets``, ``latest``,
    ``seq``, ``id``, ``unit``, ``op``, ``speculation`` and ``duplicates`` are those of :func:`acep.spark.match`;
    ``budget`` (of ``work`` or ``memory``), ``policy`` and ``seed`` those of docs/reference/sql.md#budgets. With a
    ``speculation`` the result has the column ``op``, with -1 for a row that is taken back.

    Raises :class:`QueryError`, :class:`DataError` or :class:`EngineError` before any job runs. Problems of the values
    show when Spark runs, see :func:`acep.spark.error_in`.
    """
    needs_pyspark()
    frame = frame_of(df)
    planned = plan_for_spark(frame.schema, clause, is_stream=frame.isStreaming)
    planned.check_columns()
    if not frame.isStreaming:
        warn_of_micro_batch(frame, "acep.spark.match_recognize")
    return run_clause(frame, planned, options)


@dataclass(frozen=True)
class SparkClause:
    """A clause that is planned for the columns of a DataFrame. ``travelling``: the Arrow types of the columns that go
    to the workers; ``result``: the columns of the result."""

    sent: SentClause
    travelling: pa.Schema
    result: StructType

    def check_columns(self) -> None:
        """Raise :class:`QueryError` if the result has no columns."""
        if not self.sent.plan.output_names:
            raise no_columns_error()


def plan_for_spark(columns: StructType, clause: str, input_name: str = "", *, is_stream: bool = False) -> SparkClause:
    """Plan a clause for the columns of a DataFrame, and what it is called (``input_name``) in the clause.

    Raises :class:`QueryError` for a clause that is wrong, and :class:`DataError` for columns that do not travel.
    """
    from pyspark.sql import types as st

    if _TIME in columns.names:
        raise DataError("a column has a blank as its name", hint="rename it", code="data_column")
    timed = st.StructType([*columns.fields, st.StructField(_TIME, st.TimestampNTZType())])
    schema = input_schema(all_columns(timed), ts=_TIME, type=None)
    dates = frozenset(field.name for field in columns.fields if isinstance(field.dataType, st.DateType))
    plan = make_plan(parse_clause(clause), tuple(columns.names), schema, dates, input_name)
    _check_keys(plan)
    if is_stream:
        time_column(plan)
    types = {field.name: field.dataType for field in all_columns(columns).fields}
    names = (*dict.fromkeys((*plan.columns_read, *(n for n in plan.output_names if n in plan.names))),)
    if not names:  # rows are counted
        names = tuple(name for name, column_type in types.items() if arrow_type(column_type) is not None)[:1]
    travelling = pa.schema([(name, _arrow_type(name, types[name])) for name in names])
    sample = match_table(plan, travelling.empty_table()).schema
    fields, casts = [], []
    for name, arrow in zip(sample.names, sample.types, strict=True):
        column_type = _type_of_column(plan, name, types)
        computed_type = None if column_type is not None else _in_microseconds(arrow)
        casts.append((name, computed_type))
        if column_type is not None:
            fields.append(st.StructField(name, column_type))
        else:
            fields += spark_schema(pa.schema([(name, computed_type)])).fields
    computed = [name for name in dict.fromkeys(plan.partition) if name not in types]
    sent_names = [*names, *computed]
    keys = tuple(sent_names.index(name) for name in dict.fromkeys(plan.partition))
    sent = SentClause(without_trees(plan), names, keys, tuple(casts))
    return SparkClause(sent, travelling, st.StructType(fields))


def _check_keys(plan: OrderedPlan) -> None:
    """Raise :class:`QueryError` for a key of PARTITION BY that has no values to compare."""
    for name, source in zip(plan.partition, plan.clause.partition, strict=True):
        if plan.schema.kind(name) is None and name not in dict(plan.computed):
            why = dict(plan.schema.unusable).get(name, "cannot be compared")
            raise QueryError(
                f"column `{name}` {why.partition('; ')[0]}", text=plan.clause.text, start=source.span.start,
                end=source.span.end, hint=why.partition("; ")[2] or None, code="query_type",
            )  # fmt: skip


def _arrow_type(name: str, spark: DataType) -> pa.DataType:
    arrow = arrow_type(spark)
    if arrow is None:
        raise DataError(
            f"column `{name}` is {spark.simpleString()}, which does not travel to Python",
            hint="drop it, or cast it",
            code="data_type",
        )
    return arrow


def _type_of_column(plan: OrderedPlan, name: str, types: dict[str, DataType]) -> DataType | None:
    """Return the type of a column of the result whose values are those of a column of the DataFrame."""
    from pyspark.sql.types import ArrayType

    measure = next((measure for measure in plan.measures if measure.name == name), None)
    if measure is None:
        return types.get(name)
    if measure.reference is None:
        return None
    reference: RowReference = plan.references[measure.reference]
    if isinstance(reference, Navigation) and reference.column in plan.names:
        return types[reference.column]
    if isinstance(reference, RowAggregate) and reference.function == "array_agg" and reference.column in plan.names:
        return ArrayType(types[str(reference.column)])
    return None


def _in_microseconds(arrow: pa.DataType) -> pa.DataType:
    """Return the type of a computed column on Spark, where times and durations are microseconds."""
    if pa.types.is_timestamp(arrow):
        return pa.timestamp("us", arrow.tz)
    return pa.duration("us") if pa.types.is_duration(arrow) else arrow


def run_clause(frame: DataFrame, planned: SparkClause, options: ClauseKeywords | None = None) -> DataFrame:
    """Return the result of a clause that is planned for the columns of a DataFrame. The ``options`` are of a stream.

    Raises :class:`QueryError` for options that there are not, and :class:`EngineError` for workers without acep."""
    from pyspark.sql import functions as sf
    from pyspark.sql.types import StructField, StructType

    chosen: dict[str, Any] = {**(options or {})}
    if unknown := [name for name in chosen if name not in ClauseKeywords.__annotations__]:
        raise TypeError(f"match_recognize() got an unexpected keyword argument {unknown[0]!r}")
    stream_arguments = {name: chosen.pop(name) for name in PLACES if name in chosen}
    if frame.isStreaming:
        from acep.spark.clauses.clause_streams import run_on_stream

        return run_on_stream(frame, planned, StreamOptions(**chosen, lateness="inf"), **stream_arguments)
    if unused := [*stream_arguments, *chosen]:
        raise QueryError(f"{unused[0]}= is of a stream, and this is no stream", hint="leave it out",
                         code="option_invalid")  # fmt: skip
    check_workers(frame.sparkSession, "auto")
    sent = planned.sent
    rows = with_fields(frame, sent.columns)
    rows = rows.select(*(sf.col(quote_name(name)).alias(f"c{i}") for i, name in enumerate(sent.columns)))
    if max(sent.keys, default=-1) >= len(sent.columns):
        rows = rows.mapInArrow(partial(add_keys, sent), _with_keys(rows.schema, planned))
    keys = [key_column(rows, f"c{index}") for index in sent.keys]
    rows = rows.repartition(*keys) if keys else rows.repartition(1)
    # The engine sorts by ORDER BY, in a tenth of the time that Spark needs for more keys.
    rows = rows.sortWithinPartitions(*(key.asc_nulls_last() for key in keys)) if keys else rows
    fields = [StructField(f"c{i}", field.dataType) for i, field in enumerate(planned.result.fields)]
    result = rows.mapInArrow(partial(match_sorted, sent), StructType(fields))
    return result.select(*(sf.col(f"c{i}").alias(name) for i, name in enumerate(planned.result.names)))


def _with_keys(columns: StructType, planned: SparkClause) -> StructType:
    """Return the columns that travel, and those of the expressions of PARTITION BY behind them."""
    from pyspark.sql.types import StructType

    sample = pa.RecordBatch.from_pylist([], schema=planned.travelling)
    (keyed,) = add_keys(planned.sent, [sample])
    added = [*keyed.schema][len(planned.sent.columns) :]
    return StructType([*columns.fields, *spark_schema(pa.schema(added)).fields])
