"""Read new versions of queries as rows of a stream, beside the events."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from acep.errors import DataError
from acep.spark.columns.letter_case import ignores_case, respell
from acep.spark.workers.spark_state_worker import VERSION

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["query_rows"]

COLUMNS = ("number", "name", "text")


def query_rows(spark: SparkSession, versions: Any) -> DataFrame:
    """Return a streaming DataFrame of new versions of queries with the one column :data:`VERSION`, from a folder of
    files, or from a streaming DataFrame with the columns ``number``, ``text`` and, if there are several queries,
    ``name``.

    Raises :class:`DataError` for anything else.
    """
    from pyspark.sql import DataFrame
    from pyspark.sql import functions as sf

    if isinstance(versions, str | os.PathLike):
        files = spark.readStream.format("text").option("wholetext", "true").load(os.fspath(versions))
        parts = [sf.col("_metadata.file_name").alias("file"), sf.col("value").alias("text")]
        return files.select(sf.to_json(sf.struct(*parts)).alias(VERSION))
    frame: Any = versions
    if not isinstance(frame, DataFrame) or not frame.isStreaming:
        raise DataError(
            f"versions= takes a folder of files or a streaming DataFrame, not {type(versions).__name__}",
            hint="a streaming DataFrame has the columns number and text",
            code="option_invalid",
        )
    if ignores_case(spark):
        frame = respell(frame, COLUMNS)
    if missing := [name for name in ("number", "text") if name not in frame.columns]:
        raise DataError(
            f"versions= has no column `{missing[0]}`", hint="it has the columns number and text", code="option_invalid"
        )
    names = [name for name in COLUMNS if name in frame.columns]
    rows: DataFrame = frame.select(sf.to_json(sf.struct(*names)).alias(VERSION))
    return rows
