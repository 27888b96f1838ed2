"""Many queries in one call find what each finds alone, although they share the classification of events."""

from __future__ import annotations

from random import Random
from typing import Any

import pyarrow as pa
import pytest

import acep
from tests.case_counts import CASES

PATTERNS = ("SEQ(T0 a, T1 b)", "SEQ(T0 a, T1+ b[], T2 c)", "SEQ(T0 a, T1 b, T2 c)", "SEQ(T0 a, ~(T2 n), T1 b)", "T0 a")
CONDITIONS = ("a.x > {n}", "a.x + a.y > {n}", "a.s = 's{n}'", "a.s LIKE 's{n}%'", "a.x < {n} OR a.s IS NULL",
              "a.y IS NOT NULL", "a.x = a.y", "a.x * 2 < a.y + {n}")  # fmt: skip


def random_events(rng: Random, n_types: int) -> pa.Table:
    """Some hundred events, in which any value may be null."""
    n = rng.choice((5, 255, 256, 257, 700))

    def some_null(values: list[Any]) -> list[Any]:
        return [None if rng.random() < 0.1 else value for value in values]

    return pa.table({
        "ts": sorted(rng.randrange(4 * n) for _ in range(n)),
        "type": [f"T{rng.randrange(n_types)}" for _ in range(n)],
        "k": [rng.randrange(3) for _ in range(n)],
        "x": pa.array(some_null([rng.randrange(9) for _ in range(n)]), pa.int64()),
        "y": pa.array(some_null([rng.randrange(9) for _ in range(n)]), pa.float64()),
        "s": pa.array(some_null([f"s{rng.randrange(9)}" for _ in range(n)]), pa.string()),
    })  # fmt: skip


def random_query(rng: Random, n_types: int) -> str:
    """A query whose conditions are on single events, mostly with values to be given."""
    pattern = rng.choice(PATTERNS)
    for name in ("T0", "T1", "T2"):
        types = sorted({f"T{rng.randrange(n_types + 1)}" for _ in range(rng.choice((1, 1, 2)))})
        pattern = pattern.replace(name, types[0].lower() if len(types) == 1 else f"({' | '.join(types).lower()})")
    pattern = pattern.replace("t", "T")
    conditions = ["[k]", *(rng.choice(CONDITIONS).format(n=rng.randrange(9)) for _ in range(rng.randrange(3)))]
    returned = rng.choice(("", " RETURN a.x AS x, a.s AS s", " HAVING a.x IS NOT NULL"))
    where = " AND ".join(f"({text})" if " OR " in text else text for text in conditions)
    return f"PATTERN {pattern} WHERE {where} WITHIN {rng.randrange(4, 30)}{returned}"


@pytest.mark.parametrize("seed", range(CASES(200)))
def test_many_queries_find_what_each_finds_alone(seed: int) -> None:
    rng = Random(seed)
    n_types = rng.choice((2, 12, 40))
    events = random_events(rng, n_types)
    queries = {f"q{number}": random_query(rng, n_types) for number in range(rng.choice((3, 15, 40)))}
    together = acep.match(events, queries)
    for name, query in queries.items():
        alone = acep.match(events, query, engine="reference")
        assert together[name].to_arrow().equals(alone.to_arrow()), query
