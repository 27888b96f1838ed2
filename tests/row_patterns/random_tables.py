"""Small random tables of few values, so that conditions hold often; sums of their floats are exact."""

from __future__ import annotations

from random import Random

from tests.row_patterns.evaluate import Row
from tests.row_patterns.expressions import COLUMN_KINDS

__all__ = ["random_table"]

TEXTS = (("a", "a", "b", "b", "c"), ("a", "a", "b", "b", "c"), ("a", "a", "", "'", "\u00e9"))


def random_table(rng: Random, n_rows: int) -> tuple[tuple[str, ...], tuple[Row, ...]]:
    """Return the names of a table's columns, and so many rows."""
    columns = tuple(rng.sample(list(COLUMN_KINDS), len(COLUMN_KINDS))) if rng.random() < 0.3 else tuple(COLUMN_KINDS)
    ts = rng.choice((0, 0, -3))
    step = rng.choice(((0, 1, 1, 2), (0, 0, 1), (1, 2, 3), (1,)))
    keys = rng.choice((("p", "q"), ("p", "p", None), ("p", "q", None)))
    nulls = (None,) if rng.random() < 0.7 else ()
    texts = rng.choice(TEXTS)
    rows = []
    for _ in range(n_rows):
        ts += rng.choice(step)
        values = {
            "k": rng.choice(keys),
            "ts": ts,
            "x": rng.choice((0, 1, 1, 2, 2, 3, *nulls)),
            "y": rng.choice((0.0, 0.5, 0.5, 1.0, 1.5, *nulls)),
            "s": rng.choice((*texts, *nulls)),
        }
        rows.append({name: values[name] for name in columns})
    if rng.random() < 0.3:
        rng.shuffle(rows)
    return columns, tuple(rows)
