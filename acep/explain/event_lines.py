"""Show events of a table as lines: id, time, type, key, and the attributes that a query reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from acep.events.fields import column_at
from acep.events.records import Id
from acep.events.times import value_of, value_text
from acep.events.user_rows import places_of
from acep.plan.compile import Plan
from acep.plan.schema import Schema

__all__ = ["event_lines"]

WIDEST = 40  # characters of a value


def event_lines(table: pa.Table, schema: Schema, plan: Plan, ids: Iterable[Id]) -> Iterator[str]:
    """Yield a line for each event of these ids that is in the table, in the order given.

    >>> from acep.events.tables import schema_of, to_table
    >>> from acep.pattern.text.sase import parse
    >>> from acep.plan.compile import compile_query
    >>> table = to_table({"ts": [1, 2], "type": ["A", "B"], "k": ["u", None], "x": [5, 4], "unused": [0, 0]})
    >>> schema = schema_of(table.schema)
    >>> plan = compile_query(parse("PATTERN SEQ(A a, B b) WHERE [k] AND b.x > a.x WITHIN 9"), schema)
    >>> for line in event_lines(table, schema, plan, [1, 0]):
    ...     print(line)
    event 1: ts=2, type=B, k=null, x=4
    event 0: ts=1, type=A, k=u, x=5
    """
    roles = [schema.ts, *([schema.type] if schema.type is not None else [])]
    columns = {name: column_at(table, name) for name in dict.fromkeys([*roles, *plan.keys, *plan.columns])}
    distinct = [*dict.fromkeys(ids)]
    for identity, row in zip(distinct, places_of(table, distinct, schema.id).tolist(), strict=True):
        values = {name: _short(column[row]) for name, column in columns.items() if column is not None}
        yield f"event {identity}: {', '.join(f'{name}={text}' for name, text in values.items())}"


def _short(scalar: pa.Scalar) -> str:
    value = value_of(scalar)
    text = "null" if value is None else value_text(value)
    if isinstance(value, np.datetime64) and getattr(scalar.type, "tz", None) is not None:
        text += "Z"
    return text if len(text) <= WIDEST else f"{text[: WIDEST - 3]}..."
