"""Read numbers with a comma before their decimals."""

from __future__ import annotations

import re
from collections.abc import Collection

import pyarrow as pa

__all__ = ["as_written", "with_points"]

NUMBER = r"[ \t\n\f\r]*[+-]?[0-9.,]*[0-9][0-9.,]*([eE][+-]?[0-9]+)?[ \t\n\f\r]*"
EXCHANGE = str.maketrans(".,", ",.")


def with_points(table: pa.Table, names: Collection[str]) -> pa.Table:
    """Return the table with a point for each comma, and a comma for each point, in the texts of some columns that look
    like numbers. So ``1.234`` is no number.

    >>> with_points(pa.table({"x": ["1,5", "1.234", "a,b", None]}), ["x"]).column("x").to_pylist()
    ['1.5', '1,234', 'a,b', None]
    """
    import pyarrow.compute as pc

    for name in names:
        texts = table.column(name)
        points = pc.replace_substring(pc.replace_substring(texts, ".", "\0"), ",", ".")
        swapped = pc.if_else(
            pc.match_substring_regex(texts, rf"^{NUMBER}$"), pc.replace_substring(points, "\0", ","), texts
        )
        table = table.set_column(table.column_names.index(name), name, swapped)
    return table


def as_written(text: str) -> str:
    """Return a text of :func:`with_points` as the file has it.

    >>> as_written("1.5"), as_written("1,234"), as_written("a,b")
    ('1,5', '1.234', 'a,b')
    """
    return text.translate(EXCHANGE) if re.fullmatch(NUMBER, text) else text
