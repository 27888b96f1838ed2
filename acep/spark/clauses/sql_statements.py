"""Run statements of SQL with MATCH_RECOGNIZE in a Spark session: acep runs the clauses, Spark what is around them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, Unpack

from acep.errors import QueryError
from acep.pattern.expressions import Span, error_at
from acep.pattern.sql.common_tables import common_tables
from acep.pattern.sql.scanner import scan
from acep.pattern.sql.statement import ClauseInput, Statement, split_statement
from acep.runtime.options import ClauseKeywords
from acep.spark.clauses.row_patterns import plan_for_spark, run_clause
from acep.spark.session import get_session, needs_pyspark, outside_pipelines
from acep.statements.partition_filters import partition_filters

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["sql"]


@outside_pipelines()
def sql(statement: str, spark: SparkSession | None = None, **options: Unpack[ClauseKeywords]) -> DataFrame:
    """Run a statement of Spark SQL with MATCH_RECOGNIZE clauses in a session; return its result, which Spark computes
    when it is needed.

    A clause may follow a table or view of the session, a subquery, a common table (WITH) or a table function, and there
    may be several. acep runs the clauses (:func:`acep.spark.match_recognize`), Spark all that stands around them.
    ``spark``: the session, else the active one, else a new local one. Names in a clause may be quoted by ``"`` and by
    backticks; around it Spark decides. No temporary view is left.

    One clause may read a streaming view. The ``options`` are those of :func:`acep.spark.match_recognize` for streams,
    and hold for that clause.

    Raises :class:`QueryError` for what is wrong or not supported, before any job runs.
    """
    needs_pyspark()
    split = split_statement(statement, quote="`")
    try:
        _refuse_views(statement)
        return _run_all(split, spark or get_session(), options)
    except QueryError as error:
        error.located(statement)
        raise


def _run_all(split: Statement, session: SparkSession, options: ClauseKeywords) -> DataFrame:
    frames: dict[str, Any] = {}
    has_stream = False
    for number, clause in enumerate(split.clauses):
        around = common_tables(split.text, clause.result)
        source = _run(session, f"{around} SELECT * FROM {clause.source}", frames)  # noqa: S608 - it is the user's own
        if source.isStreaming and has_stream:  # both would have one state, and time of the first one's rows has passed
            raise error_at("a statement has one clause over a stream, and this is another one", clause.place,
                           "use acep.spark.match_recognize over the result of the first one, with a state= of its own",
                           code="query_invalid")  # fmt: skip
        has_stream |= source.isStreaming
        frames[f"match_{number + 1}"] = _result_of(split, clause, source, options if source.isStreaming else {})
    return _run(session, split.text, frames)


def _result_of(split: Statement, clause: ClauseInput, source: DataFrame, options: ClauseKeywords) -> DataFrame:
    try:
        planned = plan_for_spark(source.schema, clause.clause, clause.input_name, is_stream=source.isStreaming)
    except QueryError as error:
        error.text = None  # that of the clause: the place is given in the statement
        if error.start is not None and error.end is not None:
            error.start, error.end = error.start + clause.start, error.end + clause.start
        raise
    if not source.isStreaming:  # the rows of other partitions tell a stream the time
        for condition in _filters_of(split, clause, planned.sent.plan.partition, source):
            source = source.filter(condition)
    return run_clause(source, planned, options)


def _filters_of(split: Statement, clause: ClauseInput, partition: Sequence[str], source: DataFrame) -> list[str]:
    """Return the conditions around a clause that select whole partitions, as Spark's SQL over its input."""
    from pyspark.sql import types as st

    kinds: dict[str, Literal["text", "number"]] = {}
    for field in source.schema.fields:
        if field.name in partition and isinstance(field.dataType, st.StringType):
            kinds[field.name] = "text"
        elif field.name in partition and isinstance(field.dataType, st.IntegralType | st.FractionalType):
            kinds[field.name] = "number"
    return partition_filters(split.text, clause.result, kinds, "spark") if kinds else []


def _run(session: SparkSession, text: str, frames: dict[str, Any]) -> DataFrame:
    """Run a statement. PySpark puts DataFrames in place of names in braces, and drops the views that it needs."""
    template = text.replace("{", "{{").replace("}", "}}")
    for number, name in enumerate(frames):
        template = template.replace(f"`acep match {number + 1}`", f"{{{name}}}")
    try:
        frame = session.sql(template, **frames) if frames else session.sql(text)
        _ = frame.schema  # Spark Connect looks at a statement only then
    except Exception as failure:
        from pyspark.errors import AnalysisException

        if not isinstance(failure, AnalysisException):
            raise
        raise _refusal(failure) from None
    return frame


def _refusal(failure: Exception) -> QueryError:
    """Return the error for a statement that Spark refuses, in one line."""
    lines = [line.strip() for line in str(failure).strip().splitlines()]
    message = lines[0].partition(" SQLSTATE:")[0]
    return QueryError(f"Spark refuses what stands around MATCH_RECOGNIZE: {message}", code="query_invalid")


def _refuse_views(statement: str) -> None:
    """Raise :class:`QueryError` for a statement that makes a view, as Spark keeps only the text of one."""
    tokens = scan(statement)
    words = [token.value.upper() for token in tokens[:6] if token.kind == "word"]
    if words[:1] == ["CREATE"] and "VIEW" in words[:5]:
        raise error_at(
            "a view cannot have MATCH_RECOGNIZE, as Spark keeps only its text",
            Span(tokens[0].start, tokens[0].end),
            'acep.spark.sql("SELECT ...").createOrReplaceTempView("name")',
            code="query_invalid",
        )
