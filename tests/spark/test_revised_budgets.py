"""Streams in buckets whose matches may be taken back, under a budget of work, on both routes and on random queries.

The matches given, less those taken back, are part of the exact result over the sorted, corrected stream.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import acep
from acep.errors import EngineError, QueryError
from acep.spark import match
from tests.random_cases import Case
from tests.runtime.test_revisions import Arriving, arriving
from tests.spark.by_hand import as_rows, the_job
from tests.spark.streams import as_dicts
from tests.spark.test_revised import (
    DELAY,
    DENSE,
    LETTERS,
    ROLES,
    ROUTES,
    SCHEMA,
    dense,
    late_of,
    numbered,
    rows_of,
    run,
    write,
)
from tests.test_random import drawn

pytestmark = pytest.mark.long

REFUSED = (EngineError, QueryError)  # by queries that keep to no budget, also in order


def options_of(rng: Random, *, ops: bool, work: float) -> dict[str, Any]:
    options: dict[str, Any] = {"op": "op"} if ops else {}
    options |= ROLES | {"speculation": rng.choice((0, 1, 3, "inf", "inf")), "buckets": rng.choice((1, 2))}
    return options | {"budget": acep.Budget(work=work)}


def drawn_stream(seed: int) -> tuple[Case, Arriving, Random]:
    case, rng = drawn(seed), Random(seed)
    return case, arriving(case.events, rng, ops=rng.random() < 0.6), rng


def found_of(rows: list[dict[str, Any]]) -> Counter[str]:
    """How often each match was given and not taken back. Its error is left out: where its cheapest run was shed, the
    match may have a greater one, as in order."""
    found: Counter[str] = Counter()
    for row in rows:
        told = {name: row.get(name) for name in ("key", "start", "end", "values")}
        found[str((*told.values(), sorted(row["bindings"].items())))] += row.get("op", 1)
    return Counter({told: many for told, many in found.items() if many})


def exact_of(arrived: Arriving, query: Any) -> Counter[str]:
    """How often each match is in the exact result."""
    rows = [row | {"came": place} for place, row in arrived.live.values()]
    return found_of(as_rows(acep.match(pa.Table.from_pylist(rows, SCHEMA), query, **ROLES)))


@pytest.mark.parametrize("route", ROUTES)
def test_no_match_stays_that_is_none(route: str, tmp_path: Path, cases: Callable[[int], int]) -> None:
    seen: Counter[str] = Counter()
    for seed in range(max(120, cases(150))):
        case, arrived, rng = drawn_stream(seed)
        query, work = case.query(), rng.choice((0.3, 1.0, 2.0, 4.0))
        if query.sources or arrived.lateness == "inf" or not arrived.pushes:
            continue
        tables = numbered(arrived.pushes)
        ops = any(row["op"] < 0 for rows in arrived.pushes for row in rows)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                job = the_job(tables[0], query, **options_of(rng, ops=ops, work=work))
            except REFUSED:
                seen["refused"] += 1
                continue
            rows, totals = run(route, job, tables, int(arrived.lateness), rng, tmp_path / str(seed))
            want, given = exact_of(arrived, query), found_of(rows)
        assert not given - want, f"seed {seed}, {given - want}\n{case.paste()}"
        assert not [told for told, many in given.items() if many < 0], f"seed {seed}"
        assert totals["matches"] == given.total()
        shed = not all(row["exact"] for row in rows)
        seen["run"] += 1
        seen["shed"] += shed
        seen["lost"] += given != want
        seen["back"] += any(row.get("op", 1) < 0 for row in rows)
    assert min(seen["shed"], seen["lost"], seen["back"]) > 2, seen


@pytest.mark.parametrize("route", ROUTES)
def test_with_a_budget_that_suffices_all_is_as_without_one(
    route: str, tmp_path: Path, cases: Callable[[int], int]
) -> None:
    back = 0
    for seed in range(1_000, 1_000 + max(30, cases(60))):
        case, arrived, rng = drawn_stream(seed)
        query = case.query()
        if query.sources or arrived.lateness == "inf" or not arrived.pushes:
            continue
        tables = numbered(arrived.pushes)
        options = options_of(rng, ops=True, work=1e6)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                bound = the_job(tables[0], query, **options)
            except REFUSED:
                continue
            free = the_job(tables[0], query, **options | {"budget": None})
            delay = int(arrived.lateness)
            one, counted = run(route, bound, tables, delay, Random(seed), tmp_path / f"{seed}")
            other, _ = run(route, free, tables, delay, Random(seed), tmp_path / f"{seed}-free")
        assert all(row.pop("exact") for row in one)
        assert sorted(map(repr, one)) == sorted(map(repr, other)), f"seed {seed}\n{case.paste()}"
        assert counted["late"] == len(
            [row for row in late_of(arrived) if all(row[key] is not None for key in bound.passes[0].keys)]
        )
        back += any(row.get("op", 1) < 0 for row in one)
    assert back


def test_spark_gives_a_part_of_the_result_and_says_so(spark: Any, tmp_path: Path) -> None:
    query, arrived = acep.parse(DENSE["any"]), dense(Random(3), 2_400)
    write(arrived.pushes, tmp_path / "events")
    schema = spark.read.parquet(str(tmp_path / "events")).schema
    stream = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "events"))
    options: dict[str, Any] = ROLES | {"op": "op", "watermark": DELAY, "speculation": "inf", "buckets": 2}
    for route in ("store", "files"):
        own = {"state": tmp_path / "state"} if route == "files" else {}
        found = match(stream, query, **options, **own, budget=acep.Budget(work=1))
        writer = found.writeStream.format("parquet").option("path", str(tmp_path / route))
        running = writer.option("checkpointLocation", str(tmp_path / f"{route}-checkpoint")).trigger(availableNow=True)
        running.start().awaitTermination()
        rows = as_dicts(spark.read.schema(found.schema).parquet(str(tmp_path / route)))
        given, want = found_of(rows), exact_of(arrived, query)
        assert given < want, route
        assert min(given.values()) > 0
        assert any(row["op"] < 0 for row in rows)
        assert not all(row["exact"] for row in rows)


@pytest.mark.parametrize("bound", [{"latency": 1.0}, {"memory": "1 GB"}, {"work": 9, "memory": "1 GB"}])
def test_bounds_of_time_and_memory_are_refused(bound: dict[str, Any]) -> None:
    with pytest.raises(QueryError, match="keep to a budget of work, and not of time or memory") as refused:
        the_job(rows_of((1, "a", 0, 1, 1, 0)), LETTERS, **ROLES, op="op", budget=acep.Budget(**bound))
    assert "work=" in (refused.value.hint or "")
