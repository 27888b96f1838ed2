"""Register a MATCH_RECOGNIZE clause as a table function of a Spark session, which Spark's own SQL can call."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from acep.errors import DataError, EngineError, QueryError, suggest
from acep.spark.clauses.row_pattern_worker import SentClause, match_whole
from acep.spark.clauses.row_patterns import plan_for_spark
from acep.spark.interpreter import check_workers
from acep.spark.session import get_session, needs_pyspark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

__all__ = ["register_clause"]

_NAME = re.compile(r"[^\W\d]\w*")


def register_clause(name: str, clause: str, columns: Any, spark: SparkSession | None = None) -> None:
    """Register a clause under a name, so that ``SELECT * FROM name(TABLE(ticks) PARTITION BY symbol)`` runs it.

    ``columns`` are those of the tables that it will be called with: a DataFrame, a ``StructType`` or a text such as
    ``"symbol string, day int"``. A table may have more, and in any order. The clause runs over each partition of the
    call as over a table of its own: PARTITION BY of the call should name keys of the clause's own PARTITION BY, or an
    expression over them, such as ``pmod(hash(symbol), 64)``. WITH SINGLE PARTITION brings all rows together. A task
    holds a partition of the call in memory.

    Raises :class:`EngineError` below PySpark 4.1, and :class:`QueryError` or :class:`DataError` as
    :func:`acep.spark.match_recognize`. Spark refuses a stream as the table.
    """
    needs_pyspark()
    from pyspark.sql import functions as sf

    if not hasattr(sf, "arrow_udtf"):
        raise EngineError(
            "table functions over Arrow batches need PySpark 4.1 or later",
            hint="acep.spark.sql and acep.spark.match_recognize need none",
            code="engine_missing",
        )
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise QueryError(f"{name!r} is not a name of a function: letters, digits, _", code="option_invalid")
    session = spark or get_session()
    planned = plan_for_spark(_struct(columns), clause)
    planned.check_columns()
    check_workers(session, "auto")
    types = tuple(planned.travelling.types)
    function: Any = sf.arrow_udtf(_function_class(name, planned.sent, types), returnType=planned.result)
    session.udtf.register(name, function)


def _struct(columns: Any) -> StructType:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    if isinstance(columns, DataFrame):
        return columns.schema
    if isinstance(columns, StructType):
        return columns
    if not isinstance(columns, str):
        what = f"not {type(columns).__name__}"
        raise QueryError(f"columns= takes a DataFrame, a StructType or a text, {what}", code="option_invalid")
    try:
        parsed = StructType.fromDDL(columns)
    except Exception:  # noqa: BLE001 - Spark's own differ from version to version
        parsed = None
    if not isinstance(parsed, StructType):
        raise QueryError(
            f"columns={columns!r} is no list of columns", hint='"symbol string, day int"', code="option_invalid"
        )
    return parsed


def _function_class(name: str, clause: SentClause, types: tuple[pa.DataType, ...]) -> type:
    """Return the class whose objects each get the rows of one partition of a call."""

    class RowPatternFunction:
        def __init__(self) -> None:
            # Without PARTITION BY of the call, PySpark makes the object in this function; nothing else tells it.
            self.is_unpartitioned = sys._getframe(1).f_code.co_name == "read_udtf"
            self.batches: list[pa.RecordBatch] = []

        def eval(self, rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
            if self.is_unpartitioned and rows.num_rows:
                check_single_task(name)
            self.batches.append(call_columns(name, clause, types, rows))
            yield from ()

        def terminate(self) -> Iterator[pa.RecordBatch]:
            if self.batches:
                for batch in match_whole(clause, pa.Table.from_batches(self.batches)):
                    yield batch.rename_columns([column for column, _ in clause.result])

    return RowPatternFunction


def check_single_task(name: str) -> None:
    """Raise :class:`DataError` in a task that is not the only one of a call without partitions."""
    from pyspark import TaskContext

    context = TaskContext.get()
    if context is not None and context.partitionId() > 0:
        raise DataError(
            f"{name}: the rows of the table come in several parts",
            hint=f"{name}(TABLE(t) PARTITION BY key), or WITH SINGLE PARTITION",
            code="data_invalid",
        )


def call_columns(name: str, clause: SentClause, types: tuple[pa.DataType, ...], rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return the columns that a clause reads, of the table of a call.

    Raises :class:`DataError` for a column that is missing or has another type."""
    indices = {column.casefold(): index for index, column in enumerate(rows.schema.names)}
    arrays = []
    for column, wanted_type in zip(clause.columns, types, strict=True):
        index = indices.get(column.casefold())
        if index is None:
            hint = suggest(column, rows.schema.names)
            raise DataError(f"{name}: the table has no column `{column}`", hint=hint, code="data_column")
        array = rows.column(index)
        if not _is_alike(array.type, wanted_type):
            hint = "cast it, or register the clause for its type"
            raise DataError(
                f"{name}: column `{column}` is {array.type}, not {wanted_type}", hint=hint, code="data_type"
            )
        arrays.append(array)
    return pa.RecordBatch.from_arrays(arrays, names=[f"c{i}" for i in range(len(arrays))])


def _is_alike(column_type: pa.DataType, wanted_type: pa.DataType) -> bool:
    """Return whether a type is the same but for its zone and the nullability of its parts."""
    if pa.types.is_timestamp(column_type) and pa.types.is_timestamp(wanted_type):
        return (column_type.tz is None) == (wanted_type.tz is None)
    if pa.types.is_nested(wanted_type):
        return bool(column_type.id == wanted_type.id)
    return bool(
        column_type == wanted_type or (pa.types.is_large_string(column_type) and pa.types.is_string(wanted_type))
    )
