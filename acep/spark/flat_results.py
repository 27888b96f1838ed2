"""Give the result of a job with plain columns only, which CSV files and tables of databases can hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from acep.matches.flat import KEY, LAST, VALUES, FlatColumn, Layout, flat_columns, flat_table
from acep.spark.fields import quoted
from acep.streaming.job import Job

if TYPE_CHECKING:
    from pyspark.sql import Column

__all__ = ["flattened"]


def flattened(found: Any, job: Job) -> Any:
    """Return the result of a job, a DataFrame or an Arrow table, in the columns of
    :func:`acep.matches.flat.flat_columns`. Raises :class:`QueryError` if two of them would have one name."""
    layout = Layout.of(job.plans)
    if isinstance(found, pa.Table):
        return flat_table(found, layout)
    fields = {part: found.schema[part].dataType.names for part in (KEY, VALUES) if part in found.columns}
    return found.select([_column(one) for one in flat_columns(found.columns, fields, layout)])


def _column(one: FlatColumn) -> Column:
    from pyspark.sql import functions as sf

    if not one.part:
        return sf.col(quoted(one.of))
    if one.part in (KEY, VALUES):
        return sf.col(one.part).getField(one.of).alias(one.name)
    ids = sf.col("bindings").getItem(one.of)  # null where the variable binds nothing
    return (sf.element_at(ids, -1) if one.part == LAST else sf.get(ids, sf.lit(0))).alias(one.name)
