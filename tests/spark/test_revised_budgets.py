"""Streams in buckets whose matches may be taken back, under a budget of work, on both routes and on random queries.

The matches given, less those taken back, are part of the exact result over the sorted, corrected stream.
"""

from __future__ import annotations

import warnings
from collections import Counter
from functools import partial
from pathlib import Path
from random import Random
from tempfile import mkdtemp
from typing import Any

import pyarrow as pa
import pytest

import acep
from acep.errors import EngineError, QueryError
from acep.spark import match
from tests.case_counts import CaseCounts
from tests.complaints import difference, fail_if_wrong
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
    text_of_pushes,
    write,
)
from tests.test_random import drawn

pytestmark = pytest.mark.long

REFUSED = (EngineError, QueryError)  # by queries that keep to no budget, also in order


def options_of(rng: Random, *, ops: bool, work: float) -> dict[str, Any]:
    options: dict[str, Any] = {"op": "op"} if ops else {}
    options |= ROLES | {"speculation": rng.choice((0, 1, 3, "inf", "inf")), "buckets": rng.choice((1, 2))}
    return options | {"budget": acep.Budget(work=work)}


def draw_stream(case: Case) -> tuple[Arriving, Random]:
    """Draw how the events of a case come; the generator goes on after that."""
    rng = Random(case.seed)
    return arriving(case.events, rng, ops=rng.random() < 0.6), rng


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
def test_no_match_stays_that_is_none(route: str, tmp_path: Path, cases: CaseCounts) -> None:
    seen = Counter[str]()
    for seed in range(cases(150)):
        fail_if_wrong(drawn(seed), partial(complaint_of_a_part, route, tmp_path, seen))
    cases.expect(seen, "work is shed", "matches are lost", "matches are taken back", least=3)


def complaint_of_a_part(route: str, folder: Path, seen: Counter[str], case: Case) -> str:
    """Say which matches that stay are none, taken back more often than given, or not counted."""
    arrived, rng = draw_stream(case)
    query, work = case.query(), rng.choice((0.3, 1.0, 2.0, 4.0))
    if query.sources or arrived.lateness == "inf" or not arrived.pushes:
        return ""
    tables = numbered(arrived.pushes)
    options = options_of(rng, ops=any(row["op"] < 0 for rows in arrived.pushes for row in rows), work=work)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            job = the_job(tables[0], query, **options)
        except REFUSED:
            seen["refused"] += 1
            return ""
        rows, totals = run(route, job, tables, int(arrived.lateness), rng, Path(mkdtemp(dir=folder)))
        exact, net = exact_of(arrived, query), found_of(rows)
    seen["work is shed"] += not all(row["exact"] for row in rows)
    seen["matches are lost"] += net != exact
    seen["matches are taken back"] += any(row.get("op", 1) < 0 for row in rows)
    complaint = "\n".join(f"no match: {match}" for match in net - exact)
    complaint += "\n".join(f"taken back too often: {match}" for match, count in net.items() if count < 0)
    complaint += difference(totals["matches"], net.total(), ("total", "rows"))
    return complaint and f"{options}, in micro-batches:\n{text_of_pushes(arrived)}\n\n{complaint}"


@pytest.mark.parametrize("route", ROUTES)
def test_with_a_budget_that_suffices_all_is_as_without_one(route: str, tmp_path: Path, cases: CaseCounts) -> None:
    seen = Counter[str]()
    for seed in range(1_000, 1_000 + cases(60)):
        fail_if_wrong(drawn(seed), partial(complaint_of_a_sufficient_budget, route, tmp_path, seen))
    cases.expect(seen, "matches are taken back")


def complaint_of_a_sufficient_budget(route: str, folder: Path, seen: Counter[str], case: Case) -> str:
    """Say how rows under a budget that suffices differ from those without one."""
    arrived, rng = draw_stream(case)
    query = case.query()
    if query.sources or arrived.lateness == "inf" or not arrived.pushes:
        return ""
    tables, delay = numbered(arrived.pushes), int(arrived.lateness)
    options = options_of(rng, ops=True, work=1e6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            bound = the_job(tables[0], query, **options)
        except REFUSED:
            return ""
        free = the_job(tables[0], query, **options | {"budget": None})
        rows, totals = run(route, bound, tables, delay, Random(case.seed), Path(mkdtemp(dir=folder)))
        free_rows, _ = run(route, free, tables, delay, Random(case.seed), Path(mkdtemp(dir=folder)))
    late = [row for row in late_of(arrived) if all(row[key] is not None for key in bound.passes[0].keys)]
    seen["matches are taken back"] += any(row.get("op", 1) < 0 for row in rows)
    complaint = "" if all(row.pop("exact") for row in rows) else "a row is not exact"
    complaint += difference(sorted(map(repr, rows)), sorted(map(repr, free_rows)), ("under a budget", "without one"))
    complaint += difference(totals["late"], len(late), ("late", "exact"))
    return complaint and f"{options}, in micro-batches:\n{text_of_pushes(arrived)}\n\n{complaint}"


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
