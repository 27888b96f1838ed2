"""Hand-written automata on random streams: what both engines find is what the definition accepts."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import acep
from acep.errors import QueryError
from acep.native.compiled import why_not
from tests.random_automata import Row, accepted, random_automaton
from tests.random_cases import COLUMNS

ENGINES = ["native", "reference"] if why_not() is None else ["reference"]
PARTS = 20


def random_rows(rng: Random, most: int = 14) -> list[Row]:
    """Events in the order of time, with ties and nulls."""
    times = sorted(rng.randrange(12) for _ in range(rng.randrange(1, most)))
    return [
        {
            "ts": ts, "type": rng.choice("ABC"), "k": rng.choice((0, 0, 1, None)), "x": rng.choice((0, 1, 2, 3, None)),
            "y": rng.choice((1, None)), "f": rng.choice((0.5, 2.0, None)), "s": rng.choice(("ab", "b", None)),
            "seq": number, "id": f"e{number}",
        }
        for number, ts in enumerate(times)
    ]  # fmt: skip


def table(rows: list[Row]) -> pa.Table:
    return pa.table({name: pa.array([row[name] for row in rows], kind) for name, kind in COLUMNS.items()})


def told(matches: Any) -> list[tuple[Any, ...]]:
    """Matches in the form of the definition."""
    found = []
    for m in matches:
        bound = tuple(sorted((one, var) for var, ids in m.bindings.items() for one in ids))
        state, *registers = m.values.values()
        found.append((tuple(m.key.values()), bound, state, tuple(registers)))
    return sorted(found, key=str)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("part", range(PARTS))
def test_what_is_found_is_what_the_definition_accepts(part: int, engine: str, cases: Callable[[int], int]) -> None:
    some = 0
    for seed in range(part * 10_000, part * 10_000 + cases(100)):
        rng = Random(seed)
        automaton, rows = random_automaton(rng), random_rows(rng)
        wanted = accepted(automaton, rows)
        got = acep.match(table(rows), automaton, engine=engine)
        assert told(got) == wanted, f"seed {seed}: {automaton.query.text}"
        assert acep.match(table(rows), automaton, engine=engine, output="count") == len(wanted)
        assert len({m.id for m in got}) == len(wanted)
        some += bool(wanted)
    assert some
