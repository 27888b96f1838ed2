"""Give the result of a job with plain columns only, which CSV files and tables of databases can hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from acep.matches.flat import KEY, LAST, VALUES, FlatColumn, Layout, flat_columns, flat_table
from acep.spark.columns.fields import quote_name
from acep.streaming.job import Job

if TYPE_CHECKING:
    from pyspark.sql import Column

__all__ = ["flatten_result"]


def flatten_result(result: Any, job: Job) -> Any:
    """Return the result of a job, a DataFrame or an Arrow table, in the columns of
    :func:`acep.matches.flat.flat_columns`. Raises :class:`QueryError` if two of them would have one name."""
    layout = Layout.of_plans(job.plans)
    if isinstance(result, pa.Table):
        return flat_table(result, layout)
    fields = {part: result.schema[part].dataType.names for part in (KEY, VALUES) if part in result.columns}
    return result.select([_column(column) for column in flat_columns(result.columns, fields, layout)])


def _column(flat_column: FlatColumn) -> Column:
    from pyspark.sql import functions as sf

    if not flat_column.part:
        return sf.col(quote_name(flat_column.field))
    if flat_column.part in (KEY, VALUES):
        return sf.col(flat_column.part).getField(flat_column.field).alias(flat_column.name)
    ids = sf.col("bindings").getItem(flat_column.field)  # null where the variable binds nothing
    return (sf.element_at(ids, -1) if flat_column.part == LAST else sf.get(ids, sf.lit(0))).alias(flat_column.name)
