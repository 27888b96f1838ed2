"""Events that come twice on Spark and under ``acep follow``: refused or left out, in buckets called in this process."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random
from tempfile import mkdtemp
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.errors import PythonException

import acep
from acep.errors import DataError
from acep.spark import error_in, for_each_batch
from acep.spark.chunks import ORDER, ROW
from acep.spark.metrics import Progress
from acep.streaming import live_buckets
from tests.case_counts import CaseCounts
from tests.complaints import difference
from tests.spark.by_hand import as_rows, batch, rows_that_differ, stream, the_job
from tests.spark.by_hand_files import FileStream
from tests.spark.streams import Folder, as_dicts, events_table, quiet_match
from tests.thinned import thinned

QUERY = "PATTERN SEQ(a x, b y) WHERE [k] AND y.v > x.v WITHIN 9"
PLAIN = pa.schema(
    {"id": pa.int64(), "ts": pa.int64(), "seq": pa.int64(), "type": pa.string(), "k": pa.int64(), "v": pa.int64()}
)
ROLES: dict[str, Any] = {"id": "id", "seq": "seq"}
Row = dict[str, Any]


def row(id: int, ts: int, type: str = "a", k: int = 1, **more: Any) -> Row:
    return {"id": id, "ts": ts, "seq": id, "type": type, "k": k, "v": ts, **more}


FOUR = [row(1, 1), row(2, 2, "b"), row(3, 3), row(4, 4, "b")]


def table(rows: list[Row], schema: pa.Schema = PLAIN) -> pa.Table:
    return pa.Table.from_pylist(rows, schema)


def wanted(rows: list[Row]) -> list[Row]:
    return as_rows(acep.match(table(rows), QUERY, **ROLES))


def net(rows: list[Row]) -> Counter[str]:
    """How often each match was given and not taken back."""
    found = Counter[str]()
    for one in rows:
        told = {name: value for name, value in one.items() if name not in ("op", "id", "bundle")}
        told["bindings"] = sorted(one["bindings"].items())
        found[repr(sorted(told.items()))] += one.get("op", 1)
    return Counter({name: many for name, many in found.items() if many})


def run(
    route: str, job: Any, pushes: list[list[Row]], folder: Path, delay: int = 0, rng: Random | None = None
) -> tuple[list[Row], dict[str, int]]:
    live_buckets.forget_live()
    tables = [table(rows) for rows in pushes]
    if route == "own":
        rows, _, totals = stream(job, tables, delay, rng=rng)
        return rows, totals
    return FileStream(job, folder, delay, rng=rng).stream(tables)


@pytest.fixture(params=["own", "files"])
def route(request: pytest.FixtureRequest) -> str:
    return str(request.param)


SPECULATIONS: tuple[Any, ...] = (None, 0, 2, "inf")


def options_of(speculation: Any, duplicates: str = "drop", **more: Any) -> dict[str, Any]:
    return ROLES | ({} if speculation is None else {"speculation": speculation}) | {"duplicates": duplicates} | more


@pytest.mark.parametrize("speculation", SPECULATIONS)
@pytest.mark.parametrize("pushes", [[FOUR + FOUR], [FOUR, FOUR], [FOUR[:3], FOUR[1:], [*FOUR, row(5, 5)]]])
def test_a_row_that_comes_again_is_left_out(
    route: str, pushes: list[list[Row]], speculation: Any, tmp_path: Path
) -> None:
    each = {one["id"]: one for rows in pushes for one in rows}
    job = the_job(table([]), QUERY, **options_of(speculation))
    found, totals = run(route, job, pushes, tmp_path, delay=9)
    assert net(found) == net(wanted([*each.values()]))
    came = sum(map(len, pushes))
    assert (totals["duplicates"], totals["events"], totals["late"]) == (came - len(each), len(each), 0)


@pytest.mark.parametrize("speculation", SPECULATIONS)
@pytest.mark.parametrize("pushes", [[FOUR + FOUR[1:2]], [FOUR[:2], FOUR[:1]]])
def test_it_is_refused_where_nothing_is_said(
    route: str, pushes: list[list[Row]], speculation: Any, tmp_path: Path
) -> None:
    job = the_job(table([]), QUERY, **options_of(speculation, "refuse"))
    with pytest.raises(DataError, match=r"the id \d of column `id` came before") as failed:
        run(route, job, pushes, tmp_path, delay=9)
    assert 'duplicates="drop"' in str(failed.value)


@pytest.mark.parametrize("speculation", SPECULATIONS)
def test_a_row_that_is_late_is_no_duplicate(route: str, speculation: Any, tmp_path: Path) -> None:
    job = the_job(table([]), QUERY, **options_of(speculation, "refuse"))
    pushes = [[row(1, 1), row(2, 2, "b")], [row(3, 20)], [row(1, 1)], [row(1, 21), row(3, 19)]]
    with pytest.raises(DataError, match="the id 3"):
        run(route, job, pushes, tmp_path, delay=2)
    _, totals = run(route, job, [*pushes[:3], [row(1, 21)]], tmp_path / "again", delay=2)
    assert (totals["late"], totals["duplicates"], totals["events"]) == (1, 0, 4)


def test_rows_with_other_partition_attributes_are_other_events(route: str, tmp_path: Path) -> None:
    job = the_job(table([]), QUERY, **options_of(None, buckets=1))
    rows = [row(n, n, "ab"[n % 2], k=k) for n in range(6) for k in (1, 2)]
    found, totals = run(route, job, [rows[::2], rows], tmp_path, delay=9)
    assert totals["duplicates"] == 6
    parts = [row for k in (1, 2) for row in wanted([one for one in rows if one["k"] == k])]
    assert rows_that_differ(found, parts) == ""


def test_the_row_that_stands_first_is_the_event(route: str, tmp_path: Path) -> None:
    job = the_job(table([]), QUERY, **options_of(None))
    rows = [row(1, 5, v=0), row(2, 6, "b"), row(1, 3, v=9)]
    found, _ = run(route, job, [rows], tmp_path, delay=9)
    assert rows_that_differ(found, wanted(rows[1:])) == ""
    found, _ = run(route, job, [rows[:2], rows[2:]], tmp_path / "again", delay=9)
    assert rows_that_differ(found, wanted(rows[:2])) == ""


# A batch --------------------------------------------------------------------------------------------


def test_a_batch_knows_the_rows_of_one_time() -> None:
    again = [row(2, 2, "b"), row(4, 4, "b")]
    with pytest.raises(DataError, match=r"the id 2 of column `id` came before"):
        batch(the_job(table([]), QUERY, **ROLES), table(FOUR + again))
    job = the_job(table([]), QUERY, **options_of(None))
    assert rows_that_differ(batch(job, table(FOUR + again * 30)), wanted(FOUR)) == ""
    assert len(batch(job, table([*FOUR, row(2, 3, "b")]))) == len(wanted([*FOUR, row(9, 3, "b")]))


@pytest.mark.parametrize("seed", range(8))
def test_the_cuts_of_a_batch_do_not_matter(seed: int) -> None:
    rng = Random(seed)
    rows = [row(n, rng.randrange(5), rng.choice("ab"), k=rng.randrange(2)) for n in range(60)]
    every = rows + rng.choices(rows, k=50)
    rng.shuffle(every)
    job = the_job(table([]), QUERY, **options_of(None))
    assert rows_that_differ(batch(job, table(every)), wanted(rows)) == ""


# Rows that take events back -------------------------------------------------------------------------

CHANGES = pa.schema([*PLAIN, pa.field("op", pa.int8())])


def change(id: int, ts: int, type: str, seq: int, op: int = 1) -> Row:
    return row(id, ts, type) | {"seq": seq, "op": op}


@pytest.mark.parametrize("speculation", SPECULATIONS[1:])
def test_rows_with_op_that_come_again(route: str, speculation: Any, tmp_path: Path) -> None:
    steps = [
        [change(1, 1, "a", 1), change(2, 2, "b", 2)],
        [change(2, 2, "b", 3, op=-1), change(3, 3, "b", 4)],
        [change(2, 2, "b", 5), change(4, 4, "a", 6)],
    ]
    left = [row(1, 1) | {"seq": 1}, row(3, 3, "b") | {"seq": 4}, row(2, 2, "b") | {"seq": 5}]
    exact = wanted([*left, row(4, 4, "a") | {"seq": 6}])
    job = the_job(table([], CHANGES), QUERY, **options_of(speculation, op="op"))

    def found(pushes: list[list[Row]], folder: str) -> tuple[Counter[str], int]:
        live_buckets.forget_live()
        tables = [table(rows, CHANGES) for rows in pushes]
        if route == "own":
            rows, _, totals = stream(job, tables, 9)
        else:
            rows, totals = FileStream(job, tmp_path / folder, 9).stream(tables)
        return net(rows), totals["duplicates"]

    each = net(exact)
    assert found(steps, "once") == (each, 0)
    assert found([rows + rows for rows in steps], "at once") == (each, 6)
    events = [[one for one in rows if one["op"] > 0] for rows in steps]
    assert found([steps[0], events[0], steps[1], events[1], steps[2], events[2]], "later") == (each, 5)
    strict = the_job(table([], CHANGES), QUERY, **options_of(speculation, "refuse", op="op"))
    job = strict
    with pytest.raises(DataError, match="two events have the same `id` and `seq`") as failed:
        found([steps[0] * 2], "refused")
    assert 'duplicates="drop"' in str(failed.value)
    with pytest.raises(DataError, match="the event with id 1 comes twice"):
        found([steps[0], steps[0]], "refused later")


# Spark itself ---------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("route", thinned(["files", "batch", "store", "each"], 2, pytest.mark.whole))
def test_spark_leaves_out_what_comes_twice(spark: Any, route: str) -> None:
    """A file of a source comes twice, on each route."""
    letters = acep.regex("ab", within="20 seconds", by="k")
    options: dict[str, Any] = {"watermark": "3 minutes", "buckets": 4}
    once = events_table(60)
    every = pa.concat_tables([once, once.slice(20, 20)]).combine_chunks()
    exact = as_rows(acep.match(once, letters, seq=ORDER, id=ROW))
    stream, told = Folder(spark, every, 20, end=route != "batch"), list[Progress]()
    if route == "batch":
        rows = spark.read.schema(stream.columns).parquet(str(stream.path / "events"))
        found = as_dicts(quiet_match(rows, letters, duplicates="drop"))
        with pytest.raises(PythonException) as failed:
            as_dicts(quiet_match(rows, letters))
        assert f"of column `{ROW}` came before" in str(error_in(failed.value))
    elif route == "each":
        found = []
        step = for_each_batch(
            *(letters, lambda frame, batch: found.extend(as_dicts(frame))),
            **{"seq": ORDER, "id": ROW, "duplicates": "drop"} | options,
            state=stream.path / "state",
            progress=told.append,
        )
        writer = stream.frame().writeStream.foreachBatch(step).trigger(availableNow=True)
        writer.option("checkpointLocation", str(stream.path / "each")).start().awaitTermination()
    else:
        own = {"state": "spark" if route == "store" else stream.path / "state"}
        found, told = stream.run(quiet_match(stream.frame(), letters, **options, **own, duplicates="drop"))
    assert rows_that_differ(found, exact) == ""
    if told:
        again = once.slice(20, 20).filter(once.slice(20, 20).column("k").is_valid())
        if route in ("each", "files"):  # other rows do not travel
            again = again.filter(pc.is_in(again.column("type"), value_set=pa.array(["a", "b"])))
        assert told[-1].events + told[-1].report.duplicates == sum(k is not None for k in every.column("k").to_pylist())
        assert told[-1].report.duplicates == len(again)
        assert f"{len(again)} came twice" in told[-1].line


# Drawn streams --------------------------------------------------------------------------------------


@pytest.mark.parametrize("part", range(2))
def test_a_stream_that_repeats_itself(part: int, tmp_path: Path, cases: CaseCounts) -> None:
    seen = Counter[str]()
    for seed in range(part * 1000, part * 1000 + cases(60)):
        complaint = complaint_of(seed, Path(mkdtemp(dir=tmp_path)), seen)
        assert not complaint, f"seed {seed}: {complaint}"
    cases.expect(seen, "repeated", "matches")


def complaint_of(seed: int, folder: Path, seen: Counter[str]) -> str:
    """Say how matches of a stream that repeats rows within its delay differ from those of the stream without them."""
    rng = Random(seed)
    rows = [row(n, n // 3, rng.choice("ab"), k=rng.randrange(3), v=rng.randrange(9)) for n in range(rng.randrange(40))]
    sent = [(one["ts"] + rng.randrange(4), 0, n, one) for n, one in enumerate(rows)]
    sent += [(at + rng.randrange(4), 1, n, one) for at, _, n, one in sent if rng.random() < 0.3]
    came = [one for *_, one in sorted(sent, key=lambda s: s[:3])]
    size = rng.randrange(1, 9)
    pushes = [came[start : start + size] for start in range(0, len(came), size)]
    ways = {"speculation": rng.choice(SPECULATIONS), "buckets": rng.choice((1, 2))}
    job = the_job(table([]), QUERY, **options_of(ways["speculation"], buckets=ways["buckets"]))
    found, totals = run(rng.choice(("own", "files")), job, pushes, folder, 8, rng)
    exact = net(wanted(rows))
    seen["repeated"] += len(came) - len(rows)
    seen["matches"] += exact.total()
    complaint = difference(net(found), exact, ("found", "exact"))
    counts = {"duplicates": len(came) - len(rows), "events": len(rows), "late": 0}
    return complaint + difference({name: totals.get(name, 0) for name in counts}, counts, ("told", "drawn"))
