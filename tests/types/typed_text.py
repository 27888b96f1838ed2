"""Fails with a typed table that is shrunk: the rows, queries and terms of RETURN that are needed, with their types."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pyarrow as pa

from tests.complaints import fail_if_wrong_on_rows, table_of_rows
from tests.types.typed_queries import Case
from tests.types.typed_tables import TypedTable

__all__ = ["fail_if_typed_wrong"]

Part = tuple[str, int, int]
"""A row, a query, or a term of RETURN of a query: its kind and two numbers."""


def fail_if_typed_wrong(
    table: TypedTable,
    cases: Sequence[Case],
    title: str,
    complaint_of: Callable[[pa.Table, list[Case]], str],
) -> None:
    """Fail with what is needed of a table and of queries over it if a function says what is wrong with them.

    What a query must find in fewer rows are its matches all of whose rows are left.
    """
    parts: list[Part] = [("query", number, 0) for number in range(len(cases))]
    parts += [("term", number, term) for number, case in enumerate(cases) for term in range(len(case.returns))]
    parts += [("row", row, 0) for row in range(table.arrow.num_rows)]

    def text_of(some_parts: list[Part]) -> str:
        rows, some_cases = _some_of(table, cases, some_parts)
        texts = [case.text for case in some_cases]
        names = [
            name
            for name in rows.column_names
            if name in ("ts", "type") or any(f".{name}" in t or f"[{name}]" in t for t in texts)
        ]
        types = ", ".join(f"{name}: {rows.schema.field(name).type}" for name in names)
        return "\n".join([*texts, types, table_of_rows(rows.select(names).to_pylist())])

    fail_if_wrong_on_rows(parts, title, lambda some_parts: complaint_of(*_some_of(table, cases, some_parts)), text_of)


def _some_of(table: TypedTable, cases: Sequence[Case], parts: list[Part]) -> tuple[pa.Table, list[Case]]:
    """Return the rows and the queries of some parts; the queries expect what they find in these rows."""
    rows = [row for kind, row, _ in parts if kind == "row"]
    arrow = table.arrow
    if len(rows) < arrow.num_rows:  # slices, as not each type of Arrow can be taken by row
        arrow = pa.concat_tables([arrow.slice(row, 1) for row in rows]) if rows else arrow.slice(0, 0)
    place_of = {row: place for place, row in enumerate(rows)}
    some_cases = []
    for number, case in enumerate(cases):
        if ("query", number, 0) not in parts:
            continue
        terms = [term for kind, query, term in parts if kind == "term" and query == number]
        returned = ", ".join(f"{case.returns[term].text} AS v{term}" for term in terms)
        some_cases.append(
            replace(
                case,
                text=case.text.partition(" RETURN ")[0] + (f" RETURN {returned}" if terms else ""),
                returns=tuple(case.returns[term] for term in terms),
                expected=[
                    (tuple(place_of[row] for row in x), place_of[y], tuple(values[term] for term in terms))
                    for x, y, values in case.expected
                    if place_of.keys() >= {*x, y}
                ],
            )
        )
    return arrow, some_cases
