"""Match patterns in Spark DataFrames, batch and streaming. PySpark is imported only when a function needs it."""

from __future__ import annotations

import importlib
from types import ModuleType

from acep.spark.clauses.row_patterns import match_recognize
from acep.spark.clauses.sql_statements import sql
from acep.spark.clauses.table_functions import register_clause
from acep.spark.failures import error_in
from acep.spark.foreach.foreach_batch import for_each_batch
from acep.spark.listening import listener
from acep.spark.live_page import serve
from acep.spark.match_events import events
from acep.spark.matching import match
from acep.spark.punctuations import punctuation
from acep.spark.session import get_session

__all__ = [
    "error_in", "events", "for_each_batch", "get_session", "listener", "match", "match_recognize", "punctuation",
    "register_clause", "serve", "sql",
]  # fmt: skip


def __getattr__(name: str) -> ModuleType:
    if name in ("metrics", "replay"):  # modules with functions for users, which no other function needs
        return importlib.import_module(f"acep.spark.{name}")
    raise AttributeError(f"module 'acep.spark' has no attribute {name!r}")
