"""Random queries whose events nothing ties together but the partition, and ways to run them on the native core."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random
from typing import Any

import pyarrow as pa

import acep
from acep.events.tables import batch_of, schema_of
from acep.matches.records import Found, output_order
from acep.native import _native
from acep.native.session import NativeSession
from acep.pattern.tree import Query
from acep.plan.compile import Plan, compile_query
from acep.reference.runtime import ReferenceRuntime
from tests.random_cases import (
    STRATEGIES,
    TYPES,
    Case,
    Part,
    Patterns,
    chance,
    letters,
    pick,
    random_errors,
    random_stream,
    random_window,
)

__all__ = [
    "compressed",
    "core_of",
    "enumerated",
    "merged_case",
    "planned",
    "reference",
    "rows_of",
    "run",
    "session_of",
    "streamed",
]


class _Positive(Patterns):
    """Patterns without negations."""

    def negation(self, grouped: bool) -> Part:
        return self.component("component", grouped)


def merged_case(seed: int, most: int = 24) -> Case | None:
    """The case of a seed, if it is one for the merged engine; its stream has up to ``most`` events."""
    rng = Random(seed)
    case = letters(rng, seed) if chance(rng, 0.35) else _sase(rng, seed, most)
    if case.options.get("output"):
        return None
    stream = {name: value for name, value in case.stream.items() if name == "id"}
    case = replace(case, events=sorted(case.events, key=lambda row: row["ts"]), stream=stream)
    contiguous = any(word in f"{case.text} {case.options.get('strategy')}" for word in ("strict", "partition_"))
    return None if contiguous and case.options.get("errors") else case


def _sase(rng: Random, seed: int, most: int) -> Case:
    patterns = _Positive(rng, pick(rng, {1: 1, 2: 2.5, 3: 4, 4: 2.5, 5: 1}))
    pattern = patterns.pattern()
    conjuncts = [
        f"{var.name}.x {rng.choice(('>', '<=', '!='))} {rng.randint(0, 3)}" for var in patterns.vars if chance(rng, 0.2)
    ]
    strategy = rng.choice(STRATEGIES)
    if chance(rng, 0.55 if strategy == "partition_contiguity" else 0.4):
        conjuncts.insert(0, rng.choice(("[k]", "[k]", "[k, s]")))
    text = f"PATTERN {pattern.text}\nWHERE {strategy}"
    if conjuncts:
        text += " { " + " AND ".join(conjuncts) + " }"
    if within := random_window(rng, False):
        text += f"\nWITHIN {within}"
    options = random_errors(rng, [var.name for var in patterns.vars], [])
    branching = "{" in pattern.text and (")+" in pattern.text or ")*" in pattern.text)
    heavy = branching or "any_match" in text or bool(options.get("errors"))
    size = rng.randint(4, most // 2 if heavy else most)
    stream = {"id": "id"} if chance(rng, 0.3) else {}
    return Case(seed, False, text, options, random_stream(rng, pattern, size, TYPES + "X"), stream)


def planned(query: Query, table: pa.Table, **stream: Any) -> Plan:
    return compile_query(query, schema_of(table.schema, **stream))


def session_of(plan: Plan, engine: str) -> NativeSession:
    """A session with one engine.

    Raises ``ValueError`` where the plan is not for it.
    """
    return NativeSession([plan], [engine])


def run(plan: Plan, table: pa.Table, engine: str, size: int = 7) -> list[Found]:
    """The matches that a native engine finds in a table that comes in batches of ``size``, in output order."""
    session = session_of(plan, engine)
    found: list[Found] = []
    for start in range(0, table.num_rows, size):
        session.push(batch_of(table.slice(start, size), plan.schema, plan.columns, base=start))
        found += session.take(0)
    return sorted(found, key=output_order)


def reference(plan: Plan, table: pa.Table) -> Sequence[Found]:
    core = ReferenceRuntime(plan)
    batch = batch_of(table, plan.schema, plan.columns)
    return sorted([*core.push(batch.events), *core.finish()], key=output_order)


# Straight on the core ----------------------------------------------------------------------------

Row = tuple[Any, ...]


def core_of(session: NativeSession) -> _native.Session:
    """The core's own part of a session."""
    return session._session


def streamed(
    query: Query | str, engine: str, *, types: str = "ABCDX", keys: int = 7, **options: Any
) -> tuple[Callable[[str], None], _native.Session]:
    """A function that pushes events of one-letter types, one a tick, and the session that they go to.

    Event i has ``k``, its key, drawn from so many ``keys``.
    """
    schema = pa.schema([("ts", pa.int64()), ("type", pa.string()), ("k", pa.int64()), ("x", pa.int64())])
    parsed = acep.parse(query, **options) if isinstance(query, str) else query
    plan = compile_query(parsed, schema_of(schema))
    session = session_of(plan, engine)
    rng, seen = Random(1), 0

    def push(word: str) -> None:
        nonlocal seen
        assert set(word) <= set(types)
        n = len(word)
        columns = [range(seen, seen + n), list(word), [rng.randrange(keys) for _ in word], [0] * n]
        table = pa.table([pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema=schema)
        session.push(batch_of(table, plan.schema, plan.columns, base=seen))
        seen += n

    return push, core_of(session)


def compressed(query: str, word: str) -> _native.Compressed:
    """The compressed matches of a stream of one-letter types."""
    push, core = streamed(query, "compressed")
    push(word)
    return core.take_compressed(0, True)


def rows_of(given: dict[str, Any]) -> list[Row]:
    """Matches as rows: start, end, error, bundle, key, ids, variables."""
    n, at = len(given["start"]), given["offsets"].tolist()
    keys = given["keys"].reshape(n, -1).tolist() if n else []
    columns = [given[name].tolist() for name in ("start", "end", "error", "bundle")]
    ids, variables = given["ids"].tolist(), given["vars"].tolist()
    return [
        (*row, tuple(keys[i]), tuple(ids[at[i] : at[i + 1]]), tuple(variables[at[i] : at[i + 1]]))
        for i, row in enumerate(zip(*columns, strict=True))
    ]


def enumerated(matches: _native.Compressed, size: int) -> list[Row]:
    """All of them, in blocks of ``size``."""
    cursor, found = matches.cursor(), []
    while block := rows_of(cursor.next(size)):
        assert len(block) <= size
        found += block
    return found
