"""Hand-written automata on Spark give what one process gives, in a batch and in a stream with disorder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import acep
from acep.spark.chunks import ORDER, ROW
from tests.random_automata import random_automaton, random_rows
from tests.random_cases import COLUMNS
from tests.spark.by_hand import as_rows, numbered, rows_that_differ
from tests.spark.streams import Folder, as_dicts, quiet_match
from tests.spark.test_streaming import of_query

pytestmark = pytest.mark.long

KEYS = 40


def events(seed: int) -> pa.Table:
    """Short random streams, each under keys of its own."""
    rows: list[dict[str, Any]] = []
    for key in range(KEYS):
        rows += [row | {"k": key} for row in random_rows(Random(1000 * seed + key), 12)]
    rows = sorted(rows, key=lambda row: row["ts"])
    kinds = {name: kind for name, kind in COLUMNS.items() if name not in ("seq", "id")}
    return pa.table({name: pa.array([row[name] for row in rows], kind) for name, kind in kinds.items()})


def automata(seed: int, many: int) -> dict[str, acep.Automaton]:
    """Automata with the partition attribute ``k``."""
    rng, found = Random(seed), dict[str, acep.Automaton]()
    while len(found) < many:
        one = random_automaton(rng)
        if one.keys and one.window is not None:
            found[f"q{len(found)}"] = one
    return found


def test_automata_in_a_batch_and_in_a_stream(spark: Any, tmp_path: Path, cases: Callable[[int], int]) -> None:
    for seed in range(cases(2)):
        asked, table = automata(seed, 5), numbered(events(seed))
        exact = acep.match(table, asked, seq=ORDER, id=ROW)
        batch = as_dicts(quiet_match(spark.createDataFrame(table), asked))
        stream = Folder(spark, table, 60)
        found, _ = stream.run(
            quiet_match(stream.frame(), asked, unit="s", watermark="1 minute", state=tmp_path / f"{seed}")
        )
        for name in asked:
            rows = [{**row, "key": row["key"] or {}} for row in of_query(batch, name)]
            assert rows_that_differ(rows, of_query([row | {"query": name} for row in as_rows(exact[name])], name)) == ""
            assert rows_that_differ(of_query(found, name), of_query(batch, name)) == ""
        assert sum(map(len, exact.values()))
