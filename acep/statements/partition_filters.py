"""Find conditions around a MATCH_RECOGNIZE clause that hold or fail for whole partitions.

`SELECT ... FROM t MATCH_RECOGNIZE (PARTITION BY k ...) WHERE k = 5` needs the rows of `k = 5` alone, as partitions know
nothing of each other. So such a condition can be tested before the clause runs; it is tested again around it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

__all__ = ["partition_filters"]

_PARTS = (
    "And", "Or", "Not", "Paren", "EQ", "NEQ", "GT", "GTE", "LT", "LTE", "In", "Between", "Is", "Null", "Boolean",
    "Literal", "Neg", "Column", "Identifier", "Tuple",
)  # fmt: skip
"""The nodes of sqlglot that a condition may consist of: their value depends on nothing but the columns."""


def partition_filters(
    statement: str, result: str, partition: Mapping[str, Literal["text", "number"]], dialect: str
) -> list[str]:
    """Return the conditions of WHERE around a clause that read its partition attributes alone, as SQL over these.

    ``statement`` has the name ``result`` in place of the clause; ``partition`` has the kinds of attributes. Constants
    of another kind would be cast, which may fail for values that no match has: then a condition stays where it is. So
    it does where anything else stands in FROM beside the clause, or where the statement cannot be read.

    >>> text = 'SELECT k, n FROM "acep match 1" AS m WHERE m.k IN (5, 7) AND n > 1 AND (k < 6 OR k IS NULL)'
    >>> partition_filters(text, "acep match 1", {"K": "number"}, "duckdb")
    ['"k" IN (5, 7)', '("k" < 6 OR "k" IS NULL)']
    >>> partition_filters('SELECT * FROM "acep match 1", other WHERE k = 5', "acep match 1", {"k": "number"}, "duckdb")
    []
    """
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    try:
        tree = sqlglot.parse_one(statement, dialect=dialect)
    except (SqlglotError, RecursionError):
        return []
    tables = [table for table in tree.find_all(exp.Table) if table.name == result]
    select = tables[0].find_ancestor(exp.Select) if len(tables) == 1 else None
    if select is None or select.args.get("joins") or select.args.get("laterals") or tables[0].args.get("joins"):
        return []
    source, where = select.args.get("from_") or select.args.get("from"), select.args.get("where")
    if source is None or source.this is not tables[0] or where is None:
        return []
    kinds = {name.casefold(): kind for name, kind in partition.items()}
    qualifiers = {"", tables[0].alias_or_name.casefold()}
    filters = []
    for condition in _conjuncts(where.this):
        columns = [*condition.find_all(exp.Column)]
        if not columns or any(type(node).__name__ not in _PARTS for node in condition.walk()):
            continue
        kinds_read = {kinds.get(column.name.casefold(), "") for column in columns}
        kinds_read |= {"text" if literal.is_string else "number" for literal in condition.find_all(exp.Literal)}
        if len(kinds_read) == 1 and "" not in kinds_read and all(c.table.casefold() in qualifiers for c in columns):
            bare = condition.transform(
                lambda node: (
                    exp.column(exp.to_identifier(node.name, quoted=True)) if isinstance(node, exp.Column) else node
                )
            )
            filters.append(bare.sql(dialect=dialect))
    return filters


def _conjuncts(condition: Any) -> Iterator[Any]:
    """Yield the parts of a condition that are joined by AND, from left to right."""
    pending = [condition]
    while pending:
        part = pending.pop()
        if type(part).__name__ == "And":
            pending += [part.expression, part.this]
        else:
            yield part
