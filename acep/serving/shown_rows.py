"""Turn the last rows of a result into short texts, whatever columns they have."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

import pyarrow as pa

from acep.errors import printable
from acep.events.times import value_of, value_text

__all__ = ["MOST_ROWS", "ShownRows", "cell_text"]

MOST_ROWS = 50
MOST_COLUMNS = 24
LONGEST = 120  # characters of a cell
MOST_ITEMS = 12  # parts of a cell


def cell_text(value: Any) -> str:
    r"""Return a value of a result in one short line: what is nested as ``name=value``, and controls as escapes.

    >>> cell_text({"user": 7, "host": "x\n"}), cell_text([("a", [1, 2]), ("b", [3])])
    ('user=7 host=x\\n', 'a=1,2 b=3')
    >>> cell_text(list(range(1000))), cell_text(None)
    ('0,1,2,3,4,5,6,7,8,9,10,11,… 1,000', '')
    """
    text = _text_of(value)
    return printable(text[: LONGEST - 1]) + "…" if len(text) > LONGEST else printable(text)


def _text_of(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, dict):
        return _first_items((f"{name}={_text_of(part)}" for name, part in value.items()), len(value), " ")
    if isinstance(value, list | tuple):
        if value and all(isinstance(part, tuple) and len(part) == 2 for part in value[:MOST_ITEMS]):  # a map
            return _first_items((f"{name}={_text_of(part)}" for name, part in value), len(value), " ")
        return _first_items(map(_text_of, value), len(value), ",")
    return value[: LONGEST + 1] if isinstance(value, str) else value_text(value)


def _first_items(texts: Iterable[str], count: int, between: str) -> str:
    shown_texts = list(islice(texts, MOST_ITEMS))
    return between.join([*shown_texts, *([f"… {count:,}"] if count > MOST_ITEMS else [])])


class ShownRows:
    """The last rows of a result as texts, with the names of their ``columns``, and how many rows there were in all
    (``total``). Each row begins with its number."""

    def __init__(self) -> None:
        self.columns: tuple[str, ...] = ()
        self.rows: deque[tuple[int, tuple[str, ...]]] = deque(maxlen=MOST_ROWS)
        self.total = 0

    def add(self, tables: Sequence[pa.Table], number: int) -> None:
        """Add the rows of tables that came together, as ``number``, which is not less than before.

        >>> shown = ShownRows()
        >>> shown.add([pa.table({"start": [1], "bindings": [{"a": 5}]})], 1)
        >>> shown.columns, list(shown.rows), shown.total
        (('start', 'bindings'), [(1, ('1', 'a=5'))], 1)
        """
        for table in tables:
            columns = tuple(table.column_names[:MOST_COLUMNS])
            if columns != self.columns:
                self.columns = columns
                self.rows.clear()
            self.total += table.num_rows
            last = table.select(list(range(len(columns)))).slice(max(0, table.num_rows - MOST_ROWS))
            for row in range(last.num_rows):
                cells = tuple(cell_text(value_of(column[row])) for column in last.columns)
                self.rows.append((number, cells))
