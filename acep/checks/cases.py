"""Generate small streams and queries for testing a policy: with and without partitions, windows and errors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

import pyarrow as pa

from acep.events.batch import Batch
from acep.events.tables import batch_of, schema_of
from acep.native.compiled import choose_engine
from acep.pattern.text.letters import regex
from acep.pattern.text.sase import parse
from acep.pattern.tree import Query
from acep.plan.compile import Plan, compile_query
from acep.runtime.executors import bounded_engine

__all__ = ["Case", "cases"]

EVENTS = 400
SELECT = "PATTERN SEQ(A a, B b, C c) WHERE {} {{ {} }} WITHIN {}"


@dataclass(frozen=True)
class Case:
    """A plan for the native core and its events, with a ``name`` for readers."""

    name: str
    plan: Plan
    engine: str
    batch: Batch


def queries() -> dict[str, Query]:
    """Return the queries by a description of their features."""
    any_match, next_match = "skip_till_any_match", "skip_till_next_match"
    return {
        "skip till any match, partitions, registers": parse(
            SELECT.format(any_match, "[k] AND b.x > a.x AND c.y < b.y", 60)
        ),
        "skip till any match, texts": parse(SELECT.format(any_match, "b.s = a.s AND c.s != a.s", 30)),
        "skip till any match, errors": regex("a(b|c)da", within=20, errors=1, by="k"),
        "skip till any match, no partitions, weights": regex("abcd", within=9, errors=2, weights={"a": 2}),
        "skip till any match, a window of events": parse(SELECT.format(any_match, "[k] AND b.x >= a.x", "9 EVENTS")),
        "skip till any match, no window": parse(
            "PATTERN SEQ(A a, B b, C c) WHERE { [k] AND a.x = 9 AND b.x = a.x AND c.x = 1 }"
        ),
        "skip till any match, a negation": parse("PATTERN SEQ(A a, ~(B b), C c) WHERE { [k] AND c.x > a.x } WITHIN 30"),
        "skip till next match, a repetition": parse(
            f"PATTERN SEQ(A+ a[], B b) WHERE {next_match} "
            "{ [k] AND a[i].x > a[i-1].x AND b.x < a[a.LEN].x } WITHIN 40"
        ),
        "strict contiguity, errors": regex("ab+c", within=12, errors=1, strategy="strict_contiguity"),
        "partition contiguity": parse(SELECT.format("partition_contiguity", "[k] AND b.x > a.x", "6 EVENTS")),
    }


def table(seed: int, events: int = EVENTS) -> pa.Table:
    """Generate events with some equal times, numbers, texts and nulls."""
    rng = Random(seed)  # noqa: S311 - not to keep secrets
    ts, rows = 0, []
    for _ in range(events):
        ts += rng.choice((0, 1, 1, 2))
        x = rng.randrange(10) if rng.random() < 0.95 else None
        kind = rng.choice("ABCD")
        rows.append({"ts": ts, "type": kind, "k": rng.randrange(4), "x": x, "y": rng.random(), "s": rng.choice("uvw")})
    return pa.Table.from_pylist(rows)


def cases(seed: int) -> Iterator[Case]:
    """Yield the cases, the same for the same seed."""
    for number, (name, query) in enumerate(queries().items()):
        events = table(100 * seed + number)
        if query.letters:
            types: Any = pa.array([kind.lower() for kind in events.column("type").to_pylist()])
            events = events.set_column(events.column_names.index("type"), "type", types)
        schema = schema_of(events.schema)
        plan = compile_query(query, schema)
        yield Case(name, plan, bounded_engine(choose_engine(plan, "native")), batch_of(events, schema, plan.columns))
