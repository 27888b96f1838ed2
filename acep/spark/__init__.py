"""Match patterns in Spark DataFrames, batch and streaming. PySpark is imported only when a function needs it."""

from __future__ import annotations

from acep.spark.failures import error_in
from acep.spark.for_each import for_each_batch
from acep.spark.matching import match, punctuation
from acep.spark.metrics import listener
from acep.spark.row_patterns import match_recognize
from acep.spark.session import get_session
from acep.spark.sql_statements import sql
from acep.spark.table_functions import register_clause

__all__ = [
    "error_in", "for_each_batch", "get_session", "listener", "match", "match_recognize", "punctuation",
    "register_clause", "sql",
]  # fmt: skip
