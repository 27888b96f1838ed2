"""Streams on Spark whose matches may be taken back: the equation of docs/internals/disorder.md on both routes.

The sum of all output is the exact result over the sorted, corrected stream, whatever the micro-batches and tries.
"""

from __future__ import annotations

import os
import warnings
from collections import Counter
from functools import partial
from itertools import pairwise
from pathlib import Path
from random import Random
from tempfile import mkdtemp
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import StreamingQueryException

import acep
from acep.errors import DataError, QueryError
from acep.spark import error_in, for_each_batch, match
from acep.streaming import live_buckets
from tests.case_counts import CaseCounts
from tests.complaints import difference, fail_if_wrong, table_of_rows
from tests.random_cases import COLUMNS, Case
from tests.runtime.test_revisions import Arriving, arriving
from tests.spark.by_hand import as_rows, stream, the_job
from tests.spark.by_hand_files import FileStream
from tests.spark.streams import as_dicts
from tests.test_random import drawn
from tests.thinned import thinned

pytestmark = pytest.mark.long

SCHEMA = pa.schema([*COLUMNS.items(), ("number", pa.int64()), ("op", pa.int8()), ("came", pa.int64())])
ROLES = {"seq": "came", "id": "number"}
ROUTES = ("own", "files")
PARTS = 4
WITHOUT = ("op", "id", "bundle", "kind")
LETTERS = acep.regex("ab", within=10, by="k")

Row = dict[str, Any]


def numbered(pushes: list[list[Row]], corrections_as_one: bool = False) -> list[pa.Table]:
    """Micro-batches whose rows are counted in the order in which they came. With ``corrections_as_one`` an event that
    follows its retraction has the number of that, and stands before it in the table."""
    tables, came = [], 0
    for rows in pushes:
        counted = [row | {"came": came + n} for n, row in enumerate(rows)]
        for n, (back, row) in enumerate(pairwise([*counted])):
            if corrections_as_one and (back["op"], row["op"], back["number"]) == (-1, 1, row["number"]):
                counted[n : n + 2] = [row | {"came": back["came"]}, back]
        tables.append(pa.Table.from_pylist(counted, SCHEMA))
        came += len(rows)
    return tables


def net(rows: list[Row]) -> Counter[str]:
    """How often each match was given and not taken back."""
    found: Counter[str] = Counter()
    for row in rows:
        told = {name: value for name, value in row.items() if name not in WITHOUT and value is not None}
        told["bindings"] = sorted(row["bindings"].items())
        told["error"] = float(row["error"])
        found[str(sorted(told.items()))] += row.get("op", 1)
    return Counter({told: many for told, many in found.items() if many})


def exact(arrived: Arriving, query: Any) -> Counter[str]:
    rows = [row | {"came": place} for place, row in arrived.live.values()]
    return net(as_rows(acep.match(pa.Table.from_pylist(rows, SCHEMA), query, **ROLES)))


def run(route: str, job: Any, tables: list[pa.Table], delay: int, rng: Random, folder: Path) -> tuple[list[Row], Any]:
    live_buckets.forget_live()
    if route == "own":
        rows, _, totals = stream(job, tables, delay, rng=rng)
        return rows, totals
    return FileStream(job, folder, delay, rng=rng).stream(tables)


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("part", range(PARTS))
def test_what_is_given_less_what_is_taken_back_is_exact(
    part: int, route: str, tmp_path: Path, cases: CaseCounts
) -> None:
    seen = Counter[str]()
    for seed in range(part * 10_000, part * 10_000 + cases(100)):
        fail_if_wrong(drawn(seed), partial(complaint_of_matches, route, tmp_path, seen))
    cases.expect(seen, "matches")


def complaint_of_matches(route: str, folder: Path, seen: Counter[str], case: Case) -> str:
    """Say how what is given, less what is taken back, differs from the exact result, or late rows from those told."""
    rng, query = Random(case.seed), case.query()
    ops = rng.random() < 0.6
    arrived = arriving(case.events, rng, ops=ops)
    if query.sources or arrived.lateness == "inf":
        return ""
    options: dict[str, Any] = {"op": "op"} if ops else {}
    options |= ROLES | {"speculation": rng.choice((0, 1, 3, "inf", "inf")), "buckets": rng.choice((1, 2))}
    options |= {"late": rng.random() < 0.5}
    tables = numbered(arrived.pushes, corrections_as_one=case.seed % 2 == 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        job = the_job(tables[0] if tables else SCHEMA.empty_table(), query, **options)
        rows, totals = run(route, job, tables, int(arrived.lateness), rng, Path(mkdtemp(dir=folder)))
        wanted = exact(arrived, query)
    refused = [row for row in rows if row.get("kind") == "late"]
    rows = [row for row in rows if row.get("kind") != "late"]
    complaint = difference(net(rows), wanted, (route, "exact"))
    if tables and not complaint:
        late = [row for row in late_of(arrived) if all(row[key] is not None for key in job.passes[0].keys)]
        counts = {"late": len(late), "matches": wanted.total()}
        complaint = difference({name: totals[name] for name in counts}, counts, (route, "exact"))
        late_rows = sorted((row["event"], row["start"], row["end"]) for row in refused)
        wanted_rows = sorted((row["number"], row["ts"], row["ts"]) for row in late if options["late"])
        complaint += difference(late_rows, wanted_rows, ("late rows", "exact"))
        if options["speculation"] == 0 and any(row.get("op", 1) != 1 for row in rows):
            complaint += "a match is taken back"
        seen["matches"] += bool(wanted)
    return complaint and f"{options}, in micro-batches:\n{text_of_pushes(arrived)}\n\n{complaint}"


def text_of_pushes(arrived: Arriving) -> str:
    """Print the rows in the order in which they come, each with the number of its micro-batch."""
    return table_of_rows({"batch": n} | row for n, rows in enumerate(arrived.pushes) for row in rows)


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("output", ["points", "count"])
def test_differences_add_up_to_the_exact_result(output: str, route: str, tmp_path: Path, cases: CaseCounts) -> None:
    seen = Counter[str]()
    for seed in range(cases(60)):
        fail_if_wrong(drawn(seed), partial(complaint_of_differences, output, route, tmp_path, seen))
    cases.expect(seen, "matches", "matches are taken back")


def complaint_of_differences(output: str, route: str, folder: Path, seen: Counter[str], case: Case) -> str:
    """Say how the sum of counts, or of changes of points, differs from the exact result."""
    rng, query = Random(case.seed), case.query()
    ops, delay = rng.random() < 0.6, rng.choice((5, 20))
    arrived = arriving(case.events, rng, ops=ops, lateness=delay, by=8)
    if query.sources or not arrived.pushes or any(row["ts"] < 0 for rows in arrived.pushes for row in rows):
        return ""  # a watermark of 0 is none, so that events before it are never late
    options: dict[str, Any] = ROLES | {"speculation": "inf", "buckets": rng.choice((1, 2)), "output": output}
    options |= {"op": "op"} if ops else {}
    tables = numbered(arrived.pushes, corrections_as_one=case.seed % 2 == 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        job = the_job(tables[0], query, **options)
        rows, totals = run(route, job, tables, delay, rng, Path(mkdtemp(dir=folder)))
        live_rows = [row | {"came": place} for place, row in arrived.live.values()]
        matches = acep.match(pa.Table.from_pylist(live_rows, SCHEMA), query, **ROLES)
    changes = [row["count" if output == "count" else "change"] for row in rows]
    if output == "count":
        complaint = difference(sum(changes), len(matches), (route, "exact"))
    else:
        points = Counter[Any]()
        for row in rows:
            points[str(row.get("key", {})), row["point"], float(row["best"])] += row["change"]
        wanted = Counter((str(m.key), m.end, float(m.error)) for m in matches)
        complaint = difference(Counter({place: n for place, n in points.items() if n}), wanted, (route, "exact"))
    complaint += difference(totals["matches"], len(matches), ("total", "exact"))
    complaint += "" if all(changes) else "a row changes nothing"
    seen["matches"] += len(matches) > 0
    seen["matches are taken back"] += any(change < 0 for change in changes)
    return complaint and f"{options}, in micro-batches:\n{text_of_pushes(arrived)}\n\n{complaint}"


def late_of(arrived: Arriving) -> list[Row]:
    """The rows that came too late."""
    again, late = Arriving(arrived.lateness), []
    for rows in arrived.pushes:
        late += [row for row in rows if again.final is not None and row["ts"] < again.final]
        again.push(rows)
    return late


def rows_of(*rows: tuple[Any, ...]) -> pa.Table:
    names = ("ts", "type", "k", "number", "op", "came")
    return pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in rows], SCHEMA)


@pytest.mark.parametrize("route", ROUTES)
def test_a_match_is_taken_back_and_given_again(route: str, tmp_path: Path) -> None:
    tables = [
        rows_of((1, "a", 0, 1, 1, 0), (5, "b", 0, 2, 1, 1)),
        rows_of((5, "b", 0, 2, -1, 2), (6, "b", 0, 2, 1, 3)),
    ]
    job = the_job(tables[0], LETTERS, **ROLES, op="op", speculation="inf")
    rows, _ = run(route, job, tables, 50, Random(1), tmp_path / "state")
    assert [(row["op"], row["end"]) for row in rows] == [(1, 5), (-1, 5), (1, 6)]
    assert len({row["id"] for row in rows}) == 1
    assert all(len(row["id"]) == 32 and row["bundle"] is None for row in rows)


@pytest.mark.parametrize("stays", [True, False])
def test_state_is_bounded_by_the_delay_and_the_window(stays: bool, tmp_path: Path) -> None:
    """Also where the bucket is read from its file in each micro-batch."""
    tables = [rows_of(*((20 * n + i, "ab"[i % 2], 0, 20 * n + i, 1, 20 * n + i) for i in range(20))) for n in range(60)]
    job = the_job(tables[0], LETTERS, **ROLES, speculation="inf", buckets=1)
    files, held = FileStream(job, tmp_path, 5), []
    for table in tables:
        if not stays:
            live_buckets.forget_live()
        files.push(table)
        held.append(files.told[0]["held"])
    assert max(held) <= 5 + 2 * 10 + 2 * 20
    assert files.told[0]["state"] < 5_000


def test_a_speculation_of_the_delay_gives_at_once(tmp_path: Path) -> None:
    tables = [rows_of((1, "a", 0, 1, 1, 0), (5, "b", 0, 2, 1, 1)), rows_of((30, "x", 0, 3, 1, 2))]
    given = []
    for ahead in (9, 10, 11, "inf"):
        job = the_job(tables[0], LETTERS, **ROLES, speculation=ahead)
        files = FileStream(job, tmp_path / str(ahead), 10)
        given.append([len(files.push(table)) for table in tables])
    assert given == [[0, 1], [1, 0], [1, 0], [1, 0]]


KEYS, DELAY = 50, 4
DENSE = {
    "any": "PATTERN SEQ(A a, ~B n, C c) WHERE skip_till_any_match(a, c) { [k] AND c.x >= a.x } WITHIN 12",
    "next": "PATTERN SEQ(A+ a[], B b) WHERE skip_till_next_match(a[], b) { [k] AND a[i].x > a[i-1].x } WITHIN 12",
    "last": "PATTERN SEQ(A a, B b, ~C n) WHERE skip_till_next_match(a, b) { [k] } WITHIN 8 RETURN a.x + b.x AS sum",
    "contiguous": "PATTERN SEQ(A a, B b) WHERE partition_contiguity(a, b) { [k] } WITHIN 4",
}


def dense(rng: Random, size: int) -> Arriving:
    """A stream of many keys, with disorder, retractions and corrections, in a few large micro-batches."""
    events = [
        {"ts": 1_000 + n // 80, "type": rng.choice("ABCD"), "k": rng.randrange(KEYS), "x": rng.randrange(9)}
        for n in range(size)
    ]
    return arriving(events, rng, ops=True, lateness=DELAY, by=8, most=size // 2)


def write(pushes: list[list[Row]], folder: Path) -> None:
    """Write a file for each micro-batch, and a last one that ends the stream."""
    folder.mkdir(parents=True)
    last = pa.Table.from_pylist([{"ts": 2**63 - 1}], SCHEMA)
    for number, table in enumerate([*numbered(pushes), last]):
        file = folder / f"{number:06}.parquet"
        pq.write_table(table, file)
        os.utime(file, (1_000_000 + number, 1_000_000 + number))


@pytest.mark.parametrize("name", thinned([*DENSE], 4, pytest.mark.whole))
def test_each_route_of_spark_gives_the_exact_result(spark: Any, name: str, tmp_path: Path) -> None:
    """Fifty keys, each a case, of a stream on both routes of match and into a table by for_each_batch."""
    rng, query, options = Random(name), acep.parse(DENSE[name]), ROLES | {"op": "op", "watermark": DELAY}
    arrived = dense(rng, 2_400)
    write(arrived.pushes, tmp_path / "events")
    schema = spark.read.parquet(str(tmp_path / "events")).schema
    stream = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "events"))
    want = exact(arrived, query)
    assert len({told.split("'k': ")[1].split("}")[0] for told in want}) > KEYS / 5
    options |= {"speculation": "inf", "buckets": 4, "late": True}
    late = sorted(row["number"] for row in late_of(arrived))
    for route in ("store", "files"):
        own = {"state": tmp_path / "state" if route == "files" else "spark"}
        found = match(stream, query, **options, **own)
        writer = found.writeStream.format("parquet").option("path", str(tmp_path / route))
        running = writer.option("checkpointLocation", str(tmp_path / f"{route}-checkpoint")).trigger(availableNow=True)
        running.start().awaitTermination()
        rows = as_dicts(spark.read.schema(found.schema).parquet(str(tmp_path / route)))
        assert sorted(row["event"] for row in rows if row["kind"] == "late") == late
        assert {row["key"]["k"] for row in rows if row["kind"] == "late"} == {row["k"] for row in late_of(arrived)}
        rows = [row for row in rows if row["kind"] == "match"]
        assert net(rows) == want, route
        assert any(row["op"] < 0 for row in rows)
    table: dict[str, Row] = {}

    def upsert(found: Any, batch: int) -> None:  # noqa: ARG001
        for row in (row for row in as_dicts(found) if row["kind"] == "match"):
            table.pop(row["id"], None)
            if row["op"] > 0:
                table[row["id"]] = row

    step = for_each_batch(query, upsert, **options, state=tmp_path / "each")
    writer = stream.writeStream.foreachBatch(step).option("checkpointLocation", str(tmp_path / "each-checkpoint"))
    writer.trigger(availableNow=True).start().awaitTermination()
    assert net(list(table.values())) == want


def test_what_cannot_be_taken_back_on_spark_is_refused(spark: Any, tmp_path: Path) -> None:
    write([[{"ts": 1, "type": "a", "k": 0, "number": 1, "op": 1}, {"ts": 1, "number": 1, "op": -1}]], tmp_path / "in")
    batch = spark.read.parquet(str(tmp_path / "in"))
    with pytest.raises(QueryError, match="of a stream"):
        match(batch, LETTERS, **ROLES, op="op")
    stream = spark.readStream.schema(batch.schema).parquet(str(tmp_path / "in"))
    found = match(stream, LETTERS, **ROLES, op="op", watermark=5, state=tmp_path / "state")
    writer = found.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "checkpoint"))
    with pytest.raises(StreamingQueryException) as failed:
        writer.trigger(availableNow=True).start().awaitTermination()
    assert "column `k` is null in a row that takes an event back" in str(error_in(failed.value))


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ([(5, "b", 0, 3, 1, 2), (6, "b", 0, 3, 1, 2)], "two events have the same `number` and `came`"),
        ([(5, "b", 0, 3, 0, 2)], r"must hold the integers \+1 and -1"),
        ([(5, "b", 0, 1, 1, 2)], "the event with id 1 comes twice"),
        ([(5, "b", 0, 1, -1, 2)], "has another time than its event"),
    ],
)
def test_rows_of_which_it_is_not_certain_what_they_take_back_are_refused(
    rows: list[Any], told: str, tmp_path: Path
) -> None:
    first = rows_of((1, "a", 0, 1, 1, 0))
    files = FileStream(the_job(first, LETTERS, **ROLES, op="op", speculation=3, buckets=1), tmp_path, 50)
    files.push(first)
    with pytest.raises(DataError, match=told):
        files.push(rows_of(*rows))


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"id": None, "speculation": 1}, "known by the ids of their events"),
        ({"seq": None, "op": "op"}, "op= needs the order in which rows came"),
        ({"speculation": 1, "output": "bundles"}, "have no bundles: a match that comes late may join or split them"),
        ({"id": None, "late": True}, "late events are rows beside matches"),
        ({"late": True, "output": "count"}, "late events are rows beside matches"),
        ({"op": "type"}, "there is no column `type` of integers"),
        ({"op": "no"}, "there is no column `no` of integers"),
        ({"speculation": "soon"}, "is not a window"),
        ({"speculation": "1 s"}, "needs to know how long a tick"),
    ],
)
def test_options_that_exclude_each_other_are_refused(options: dict[str, Any], told: str) -> None:
    with pytest.raises((DataError, QueryError), match=told):
        the_job(rows_of((1, "a", 0, 1, 1, 0)), LETTERS, **ROLES | options)
