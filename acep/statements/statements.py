"""Run statements of SQL with MATCH_RECOGNIZE over tables: acep runs the clauses, DuckDB what stands around them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

from acep.errors import QueryError, check_installed, suggest
from acep.events.files.reading import read_events
from acep.events.frames import to_table, unread_error
from acep.pattern.expressions import error_at
from acep.pattern.sql.common_tables import common_tables_with_places
from acep.pattern.sql.scanner import scan
from acep.pattern.sql.statement import ClauseInput, Statement, check_query, split_statement, with_rows_in_parentheses
from acep.pattern.sql.text_places import TextPlaces
from acep.plan.ordered.ordered_plan import OrderedPlan
from acep.row_patterns.explanation import explain_plan
from acep.row_patterns.match_rows import convert_like, match_table, plan_clause, select_columns
from acep.row_patterns.result_table import NO_COLUMNS
from acep.statements.duckdb_errors import is_of_duckdb, refusal_of
from acep.statements.duckdb_tables import check_result, from_duckdb, stand_ins, to_duckdb
from acep.statements.partition_filters import partition_filters

__all__ = ["explain_statement", "planned_clauses", "sql"]


def sql(statement: str, /, **tables: Any) -> Any:
    """Run a statement of SQL with MATCH_RECOGNIZE clauses over tables, which are named by keywords.

    Each table is anything that :func:`acep.match` takes, or the path of a file. The result is of the kind of the first
    table: pandas, polars, a dict of columns, else a ``pyarrow.Table``. acep runs the clauses. DuckDB runs the rest of
    the statement (``pip install acep[sql]``); it is not needed where only columns of one clause are selected.

    Raises :class:`QueryError` for what is wrong or not supported, with its place.

    >>> ticks = {"day": [1, 2, 3, 4], "price": [10, 8, 7, 9]}
    >>> sql('''SELECT * FROM ticks MATCH_RECOGNIZE (
    ...     ORDER BY day MEASURES FIRST(day) AS start, LAST(day) AS stop
    ...     PATTERN (STRT DOWN+ UP+) DEFINE DOWN AS price < PREV(price), UP AS price > PREV(price)
    ... )''', ticks=ticks)
    {'start': [1], 'stop': [4]}
    """
    split = split_statement(statement)
    try:
        check_query(statement)
        result = _run(split, tables)
    except QueryError as error:
        error.located(statement)
        raise
    first = next(iter(tables.values()), None)
    return convert_like(first, result)


def explain_statement(statement: str, /, **tables: Any) -> str:
    """Return what becomes of each clause of a statement (:func:`acep.explain_clause`).

    >>> print(explain_statement("SELECT * FROM t MATCH_RECOGNIZE (PATTERN (A))", t={"x": [1]}).splitlines()[0])
    MATCH_RECOGNIZE over t
    """
    split = split_statement(statement)
    lines: list[str] = []
    try:
        check_query(statement)
        for clause, plan, source in planned_clauses(split, tables):
            name = clause.name or " ".join(clause.source.split())
            lines += [f"MATCH_RECOGNIZE over {name}", explain_plan(plan, source.schema)]
            if filters := filters_of(split, clause, plan, source.schema):
                lines.append(f"rows: those of partitions with {' AND '.join(filters)}")
    except QueryError as error:
        error.located(statement)
        raise
    return "\n".join(lines)


def planned_clauses(split: Statement, tables: Mapping[str, Any]) -> Iterator[tuple[ClauseInput, OrderedPlan, pa.Table]]:
    """Yield each clause of a statement with its plan and the table that it reads; the results of clauses before have
    their columns, and no rows."""
    database = _Database(tables)
    for clause in split.clauses:
        source = _source(split, clause, database)
        plan = _clause_plan(clause, source)
        yield clause, plan, source
        database.add(clause.result, match_table(plan, source.slice(0, 0)))


@dataclass
class _Database:
    """Tables by name; a connection of DuckDB is opened when one is needed."""

    tables: Mapping[str, Any]
    converted: dict[str, pa.Table] = field(default_factory=dict)
    connection: Any = None
    refused_columns: dict[str, str] = field(default_factory=dict)  # why DuckDB does not hold columns, by name
    columns_of_duckdb: set[str] = field(default_factory=set)  # folded names of columns that it holds

    def name_of(self, name: str) -> str | None:
        alike = [table for table in self.tables if table.casefold() == name.casefold()]
        return name if name in self.tables else alike[0] if alike else None

    def table(self, name: str) -> pa.Table:
        if name not in self.converted:
            source = self.tables[name]
            is_path = isinstance(source, str | Path)
            self.converted[name] = read_events(source) if is_path else to_table(source)
        return self.converted[name]

    def add(self, name: str, table: pa.Table) -> None:
        self.converted[name] = table
        if self.connection is not None:
            self._register(name, table)

    def filter_rows(self, table: pa.Table, filters: Sequence[str]) -> pa.Table:
        """Return the rows of a table for which conditions hold, in their order."""
        if not filters:
            return table
        connection = self._open()
        connection.register("acep rows", to_duckdb(table))
        condition = f"coalesce({' AND '.join(filters)}, false)"
        filtered = connection.sql(f'SELECT {condition} AS passes FROM "acep rows"').to_arrow_table()  # noqa: S608 - ours
        connection.unregister("acep rows")
        return table.filter(filtered["passes"])

    def _register(self, name: str, table: pa.Table) -> None:
        registered = to_duckdb(table)
        reasons = stand_ins(registered.schema)
        self.refused_columns |= reasons
        self.columns_of_duckdb |= {name.casefold() for name in registered.column_names if name not in reasons}
        self.connection.register(name, registered)

    def _open(self) -> Any:
        """Return the connection, which has all tables."""
        if self.connection is None:
            self.connection = _connect()
            for name in self.tables:
                self.table(name)
            for name, table in self.converted.items():
                self._register(name, table)
        return self.connection

    def query(self, text: str, places: TextPlaces) -> pa.Table:
        """Run a statement without clauses with DuckDB. ``places``: where it stands in the text of the user."""
        connection = self._open()
        self._check_names(text)
        executed_text = with_rows_in_parentheses(text)
        try:
            return connection.sql(executed_text).to_arrow_table()
        except Exception as error:
            if not is_of_duckdb(error):
                raise
            refusal = refusal_of(error, text, executed_text, [*self.tables])
        if refusal.start is not None:
            span = places.span(refusal.start, refusal.end or refusal.start + 1)
            refusal.start, refusal.end = (None, None) if span is None else (span.start, span.end)
        raise refusal

    def _check_names(self, text: str) -> None:
        """Raise :class:`DataError` for a column that a statement names and DuckDB holds of no table."""
        if not self.refused_columns:
            return
        words = {token.value.casefold() for token in scan(text) if token.kind in ("word", "name")}
        for name, reason in self.refused_columns.items():
            if name.casefold() in words - self.columns_of_duckdb:
                raise unread_error(name, reason)


def _connect() -> Any:
    check_installed("duckdb", "the SQL around MATCH_RECOGNIZE", "sql")
    import duckdb

    connection = duckdb.connect(config={"enable_external_access": "false"})
    connection.execute("SET errors_as_json = true")  # they have their places there
    connection.execute("SET TimeZone = 'UTC'")  # else the zone of the machine, which would change rows
    return connection


def _run(split: Statement, tables: Mapping[str, Any]) -> pa.Table:
    database = _Database(tables)
    for clause in split.clauses:
        source = _source(split, clause, database)
        plan = _clause_plan(clause, source)
        filters = filters_of(split, clause, plan, source.schema)
        database.add(clause.result, match_table(plan, database.filter_rows(source, filters)))
    if split.columns is not None and database.converted[split.clauses[0].result].column_names != [NO_COLUMNS]:
        return select_columns(database.converted[split.clauses[0].result], split.columns)
    try:
        result = database.query(split.text, split.places)
    except QueryError as error:
        _name_results(error, split)
        raise
    check_result(result)
    result = from_duckdb(result)
    repeated = [name for name, count in Counter(result.column_names).items() if count > 1]
    if repeated:
        raise QueryError(f"two columns of the result are called `{repeated[0]}`",
                         hint=f"name the columns: SELECT m.{repeated[0]}, ..., or give one AS another name",
                         code="query_name")  # fmt: skip
    if NO_COLUMNS in result.column_names:
        raise error_at("the result of this clause has no columns", split.clauses[0].place,
                       "add MEASURES, as in MEASURES count(*) AS n", code="query_invalid")  # fmt: skip
    return result


def filters_of(split: Statement, clause: ClauseInput, plan: OrderedPlan, schema: pa.Schema) -> list[str]:
    """Return the conditions around a clause that select whole partitions, as SQL of DuckDB over its input."""
    kinds: dict[str, Literal["text", "number"]] = {}
    for name in plan.partition:
        value_type = schema.field(name).type if name in schema.names else pa.null()
        if pa.types.is_string(value_type) or pa.types.is_large_string(value_type):
            kinds[name] = "text"
        elif pa.types.is_integer(value_type) or pa.types.is_floating(value_type):
            kinds[name] = "number"
    return partition_filters(split.text, clause.result, kinds, "duckdb") if kinds else []


def _clause_plan(clause: ClauseInput, source: pa.Table) -> OrderedPlan:
    try:
        return plan_clause(source.schema, clause.clause, clause.input_name)
    except QueryError as error:
        error.text = None  # that of the clause: the place is given in the statement
        if error.start is not None and error.end is not None:
            error.start, error.end = error.start + clause.start, error.end + clause.start
        raise


def _source(split: Statement, clause: ClauseInput, database: _Database) -> pa.Table:
    """Return the table that a clause reads."""
    common, places = common_tables_with_places(split.text, clause.result, split.places)
    if clause.name is not None and not common:
        name = database.name_of(clause.name)
        if name is not None:
            return database.table(name)
        if "." not in clause.name:
            hint = suggest(clause.name, [*database.tables]) or "name tables by keywords: acep.sql(text, ticks=frame)"
            raise error_at(f"unknown table `{clause.name}`", clause.place, hint, code="query_name")
    selected = " SELECT * FROM "
    places = places + TextPlaces.unknown(len(selected)) + clause.source_places
    try:
        return from_duckdb(database.query(common + selected + clause.source, places))
    except QueryError as error:
        _name_results(error, split)
        raise


def _name_results(error: QueryError, split: Statement) -> None:
    """Put what the user knows in place of the names that stand for the results of clauses."""
    for clause in reversed(split.clauses):
        name = f"{clause.name} MATCH_RECOGNIZE (...)" if clause.name is not None else "MATCH_RECOGNIZE (...)"
        error.message = re.sub(f'"*{re.escape(clause.result)}"*', f"`{name}`".replace("\\", r"\\"), error.message)
        error.args = (error.message,)
