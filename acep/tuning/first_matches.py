"""Make only the first matches of a query, of which there may be any number."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from acep.matches.records import Found
from acep.pattern.tree import Query
from acep.runtime.match_blocks import blocks_of
from acep.runtime.options import StreamOptions
from acep.tables.table_stream import TableStream

__all__ = ["first_matches"]


def first_matches(table: pa.Table, query: Query, columns: Mapping[str, Any], limit: int) -> Iterator[Sequence[Found]]:
    """Yield blocks of the first matches of a table, at most ``limit`` in all, with row numbers as ids.

    >>> import acep
    >>> table = pa.table({"ts": range(200), "type": ["a"] + ["b"] * 199})
    >>> columns = {"ts": "ts", "type": "type", "seq": None, "id": None, "unit": None}
    >>> sum(map(len, first_matches(table, acep.parse("PATTERN SEQ(a p, b+ q[])"), columns, 1000)))  # of 2^199
    1000
    """
    stream = TableStream(query, StreamOptions(**{**columns, "id": None}))
    stream.prepare(table.schema)
    remaining = limit
    for matches, _ in blocks_of(stream.plans[0], "auto", stream.batch(table)):
        if len(matches):
            yield matches[:remaining]
            remaining -= len(matches)
        if remaining <= 0:
            return
