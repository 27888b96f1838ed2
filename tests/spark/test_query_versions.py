"""Queries that are replaced while a stream runs on Spark: what is found is what each version accepts in its time."""

from __future__ import annotations

import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import mmh3
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import StreamingQueryException

import acep
from acep.errors import DataError, QueryError, SnapshotError
from acep.pattern.printing import canonical
from acep.spark import error_in, for_each_batch, match
from acep.spark.replay import replay
from acep.storage.snapshot import seal, unseal
from acep.streaming import buckets, live_buckets
from acep.streaming.buckets import Bucket
from acep.streaming.query_versions import NewVersion
from tests.case_counts import CaseCounts
from tests.spark.by_hand import the_job
from tests.spark.by_hand_files import FileStream
from tests.spark.version_steps import DELAY, ROLES, SCHEMA, net_matches, row_of, try_versions
from tests.thinned import thinned

pytestmark = pytest.mark.long

ROUTES = ("own", "files")
PARTS = 4
ABC, ABD = (f"PATTERN SEQ(A a, B b, {last} c) WHERE [k] WITHIN 9" for last in "CD")
Row = dict[str, Any]


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("part", range(PARTS))
def test_each_version_holds_in_its_time_in_all_buckets(
    part: int, route: str, tmp_path: Path, cases: CaseCounts
) -> None:
    seen = try_versions(route, range(part * 10_000, part * 10_000 + cases(40)), tmp_path)
    cases.expect(seen, "a replaced query has matches", "a version reaches back")


REACHING = "PATTERN SEQ(A a, {} b) WHERE [k] WITHIN 9"


@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize(("removed", "many"), [(False, 1), (True, 0)])
def test_a_version_reaches_back_in_the_micro_batch_that_brings_it(
    removed: bool, many: int, kept: bool, tmp_path: Path
) -> None:
    """A match that comes with the version and goes with a row of the same micro-batch is not given."""
    schema = SCHEMA.append(pa.field("op", pa.int8()))
    first = [{"ts": 1001, "type": "A", "k": 1, "id": 1, "op": 1}, {"ts": 1003, "type": "B", "k": 1, "id": 2, "op": 1}]
    then = [first[1] | {"op": -1}] if removed else [{"ts": 1005, "type": "X", "k": 2, "id": 3, "op": 1}]
    batches = [
        pa.Table.from_pylist([row | {"came": came + 10 * part} for came, row in enumerate(rows)], schema)
        for part, rows in enumerate((first, then))
    ]
    options = ROLES | {"op": "op", "speculation": "inf"}
    files = FileStream(the_job(batches[0], REACHING.format("C"), dynamic=True, buckets=2, **options), tmp_path, DELAY)
    assert files.push(batches[0]) == []
    if not kept:
        live_buckets.forget_live()
    found = files.push(batches[1], [row_of(2, REACHING.format("B"), 1002)])
    assert [(row["op"], dict(row["bindings"])) for row in found] == [(1, {"a": [1], "b": [2]})] * many
    assert net_matches(found + files.end()) == net_matches(found)


def test_a_version_does_not_reach_back_behind_what_is_final(tmp_path: Path) -> None:
    job = the_job(tables()[1], ABC, dynamic=True, buckets=2, speculation="inf", **ROLES)
    files = FileStream(job, tmp_path, DELAY)
    files.push(tables()[1])  # up to 1004
    with pytest.raises(QueryError, match="version 2 of the query: it would hold for events that are final"):
        files.push(tables()[2], [row_of(2, ABD, 999)])
    files.push(tables()[2], [row_of(2, ABD, 1000)])


def tables() -> list[pa.Table]:
    """Micro-batches with two partitions."""
    parts = (
        [(1001, "A", 1), (1001, "A", 2), (1002, "B", 1)],
        [(1003, "C", 1), (1004, "D", 1), (1004, "B", 2)],
        [(1006, "D", 2), (1006, "C", 2), (1006, "D", 1)],
    )
    count = iter(range(100))
    rows = [[{"ts": t, "type": letter, "k": k, "x": 0, "id": next(count)} for t, letter, k in part] for part in parts]
    return [pa.Table.from_pylist([row | {"came": row["id"]} for row in some], SCHEMA) for some in rows]


@pytest.mark.parametrize("way", thinned(["files", "own", "each"], 2, pytest.mark.whole))
def test_versions_reach_all_buckets_of_a_stream(way: str, spark: Any, tmp_path: Path) -> None:
    """The stream is stopped and begun again before the version comes, which each key then takes up."""
    source, newer = tmp_path / "in", tmp_path / "versions"
    source.mkdir()
    newer.mkdir()
    frame = spark.readStream.schema("ts long, type string, k long, x long, id long, came long")
    frame = frame.option("maxFilesPerTrigger", 1).parquet(str(source))
    found = list[Row]()
    options: dict[str, Any] = {"watermark": 1, "buckets": 2, **ROLES}
    each = for_each_batch(
        ABC, lambda rows, batch: found.extend(by_name(rows)), state=tmp_path / "state", dynamic=True, **options
    )

    def run() -> None:
        if way == "each":
            writer = frame.writeStream.foreachBatch(each)
        else:
            state = {"state": "spark" if way == "own" else tmp_path / "state"}
            result = match(frame, ABC, versions=newer, **options, **state)
            writer = result.writeStream.foreachBatch(lambda rows, batch: found.extend(by_name(rows)))
        running = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()
        running.awaitTermination()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number, table in enumerate(tables()):
            pq.write_table(table, source / f"{number}.parquet")
            if number == 1:
                (newer / "0002-with-d.sase").write_text(ABD)
                if way == "each":
                    each.replace(ABD)
            run()
        pq.write_table(ended(), source / "9.parquet")
        run()
    assert sorted(str(sorted(row["bindings"].items())) for row in found) == sorted(
        str(sorted({"a": [a], "b": [b], "c": [c]}.items())) for a, b, c in ((0, 2, 4), (0, 2, 8), (1, 5, 6))
    )


def by_name(rows: Any) -> list[Row]:
    return [row.asDict(recursive=True) for row in rows.collect()]


def ended() -> pa.Table:
    return pa.Table.from_pylist([{"ts": 2**63 - 1}], SCHEMA)


def test_a_stream_of_versions_may_have_any_source(spark: Any, tmp_path: Path) -> None:
    for folder in ("in", "versions"):
        (tmp_path / folder).mkdir()
    first, second, third = tables()
    for number, table in enumerate((first, second, third, ended())):
        pq.write_table(table, tmp_path / "in" / f"{number}.parquet")
    pq.write_table(
        pa.table({"number": [2], "name": ["q"], "text": [f"-- since: 1003\n{ABD}"]}), tmp_path / "versions/1.parquet"
    )
    frame = spark.readStream.schema("ts long, type string, k long, x long, id long, came long").parquet(
        str(tmp_path / "in")
    )
    newer = spark.readStream.schema("number long, name string, text string").parquet(str(tmp_path / "versions"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = match(frame, {"q": ABC, "r": ABC}, watermark=1, versions=newer, **ROLES)
        result.writeStream.format("memory").queryName("any_source").trigger(
            availableNow=True
        ).start().awaitTermination()
    found = Counter(row["query"] for row in spark.table("any_source").collect())
    assert found == {"q": 3, "r": 2}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("PATTERN SEQ(A a, B b", "version 2 of the query: the query ends too early"),
        (ABD.replace("9", "8"), "version 2 of the query: the query has another value of `WITHIN`"),
        (ABD.replace("[k]", "[k] AND c.y > 1"), "version 2 of the query: unknown column `y`"),
        (f"-- since: 1000\n{ABD}", "version 2 of the query: it would hold for events that have come"),
    ],
)
def test_a_version_that_does_not_fit_stops_the_stream_with_one_line(text: str, told: str, tmp_path: Path) -> None:
    job = the_job(tables()[0], ABC, dynamic=True, buckets=2, **ROLES)
    files = FileStream(job, tmp_path, 1)
    files.push(tables()[0])
    with pytest.raises(QueryError, match=told):
        files.push(tables()[1], [row_of(2, text)])
    assert len(files.push(tables()[1], [row_of(2, ABD)])) >= 0  # with the version corrected, the stream goes on


def test_what_is_refused(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    batch = spark.createDataFrame([(1, "A", 1, 0, 0)], "ts long, type string, k long, id long, came long")
    frame = spark.readStream.schema(batch.schema).parquet(str(tmp_path / "in"))
    for bad, told in ((3, "takes a folder"), (batch, "takes a folder"), (frame, "no column `number`")):
        with pytest.raises(DataError, match=told):
            match(frame, ABC, watermark=1, versions=bad, **ROLES)
    with pytest.raises(QueryError, match="is of a stream"):
        match(batch, ABC, versions=str(tmp_path), **ROLES)
    with pytest.raises(QueryError, match="keep to no budget"):
        match(frame, ABC, watermark=1, versions=str(tmp_path), budget=acep.Budget(work=10), **ROLES)
    with pytest.raises(QueryError, match="a letter expression cannot change"):
        match(frame, acep.regex("ab", within=9), watermark=1, versions=str(tmp_path), **ROLES)
    each = for_each_batch(ABC, print, state=tmp_path / "state", watermark=1)
    with pytest.raises(QueryError, match="do not change"):
        each.replace(ABD)


@pytest.mark.parametrize("kept", [True, False])
def test_a_match_point_is_whole_under_a_version_whose_matches_wait(kept: bool, tmp_path: Path) -> None:
    first, second = (f"PATTERN SEQ(A a, {end}) WHERE [k] WITHIN 9" for end in ("C c", "B b, ~(X x)"))
    parts = [[(1001, "A"), (1003, "A")], [(1005, "B")], [(1012, "Y")], [(1013, "Y")], [(1030, "Y")]]
    batches = [
        pa.Table.from_pylist(
            [{"ts": ts, "type": letter, "k": 1, "x": 0, "id": ts, "came": ts} for ts, letter in part], SCHEMA
        )
        for part in parts
    ]
    job = the_job(batches[0], first, dynamic=True, buckets=1, output="points", **ROLES)
    files = FileStream(job, tmp_path, 0)
    found = []
    for number, batch in enumerate(batches):
        if not kept:
            live_buckets.forget_live()
        found += files.push(batch, [row_of(2, second)] if number == 1 else [])
    found += files.end()
    assert [row["point"] for row in found] == [1005]


def test_a_state_with_versions_is_of_a_stream_with_versions(tmp_path: Path) -> None:
    job, plain = (the_job(tables()[0], ABC, dynamic=dynamic, buckets=2, **ROLES) for dynamic in (True, False))
    assert job.fingerprint != plain.fingerprint
    files = FileStream(job, tmp_path, 0)
    files.push(tables()[0])
    files.push(tables()[1], [row_of(2, ABD)])
    assert {one["version"] for one in files.told.values()} == {2}
    assert sum(one["went_on"] for one in files.told.values()) == 2  # those with an A; the B is held


def test_a_version_that_cannot_be_used_stops_for_each_batch_and_is_not_recorded(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    frame = spark.readStream.schema("ts long, type string, k long, x long, id long, came long").parquet(
        str(tmp_path / "in")
    )
    each = for_each_batch(
        ABC, lambda rows, batch: rows.collect(), state=tmp_path / "state", watermark=1, dynamic=True, **ROLES
    )
    where = str(tmp_path / "checkpoint")

    def run() -> None:
        writer = frame.writeStream.foreachBatch(each).option("checkpointLocation", where)
        writer.trigger(availableNow=True).start().awaitTermination()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pq.write_table(tables()[0], tmp_path / "in" / "0.parquet")
        each.replace(ABD.replace("[k]", "[k] AND c.y > 1"))  # the columns are not known yet
        with pytest.raises(StreamingQueryException) as bad:
            run()
        mine = error_in(bad.value)
        assert mine is not None
        assert "unknown column `y`" in mine.message
        run()
        with pytest.raises(QueryError, match="unknown column `y`"):
            each.replace(ABD.replace("[k]", "[k] AND c.y > 1"))
        with pytest.raises(QueryError, match="it would hold for events that have come"):
            each.replace(f"-- since: 1000\n{ABD}")
        with pytest.raises(QueryError, match="is a text or a query"):
            each.replace(acep.Automaton([acep.arc("begin", "end", "e.x > 1")], final="end"))  # type: ignore[arg-type]


def test_a_version_is_recorded_before_its_micro_batch_and_repeated_after_a_failure(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    frame = spark.readStream.schema("ts long, type string, k long, x long, id long, came long")
    frame = frame.parquet(str(tmp_path / "in"))
    found, fails = list[Row](), [True]

    def sink(rows: Any, batch: int) -> None:
        found.extend(by_name(rows))
        if batch == 1 and fails.pop():
            found.clear()
            raise RuntimeError("no disk")

    def run(replacing: str = "") -> None:
        each = for_each_batch(ABC, sink, state=tmp_path / "state", watermark=1, buckets=2, dynamic=True, **ROLES)
        if replacing:
            each.replace(replacing)
        writer = frame.writeStream.foreachBatch(each).option("checkpointLocation", str(tmp_path / "checkpoint"))
        writer.trigger(availableNow=True).start().awaitTermination()

    first, second, third = tables()
    pq.write_table(first, tmp_path / "in" / "0.parquet")
    run()
    pq.write_table(second, tmp_path / "in" / "1.parquet")
    with pytest.raises(StreamingQueryException, match="no disk"):
        run(ABD)
    fails.append(False)
    run()
    for number, table in enumerate((third, ended())):
        pq.write_table(table, tmp_path / "in" / f"{number + 2}.parquet")
        run()
    assert sorted(row["bindings"]["c"][0] for row in found) == [4, 6, 8]


def test_a_replay_takes_the_versions_of_their_times(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "versions").mkdir()
    (tmp_path / "versions" / "2.sase").write_text(f"-- since: 1004\n{ABD}")
    table = pa.concat_tables(tables())
    found = replay(acep.parse(ABC), table, id="id", chunk=4, versions=tmp_path / "versions", session=spark)
    matcher = acep.Matcher(ABC, id="id", dynamic=True)
    given = [*matcher.push(table.slice(0, 4))]
    matcher.replace(ABD)
    given += [*matcher.push(table.slice(4)), *matcher.finish()]
    ours = sorted(str(sorted(dict(row["bindings"]).items())) for row in found.table().to_pylist())
    assert ours == sorted(str(sorted((v, [*ids]) for v, ids in m.bindings.items())) for m in given)
    assert found.matches == len(given) == 4


@pytest.mark.parametrize("route", thinned(ROUTES, 2, pytest.mark.whole))
def test_a_file_that_was_wrong_is_corrected_and_the_stream_goes_on(route: str, spark: Any, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "versions").mkdir()
    frame = spark.readStream.schema("ts long, type string, k long, x long, id long, came long")
    frame = frame.parquet(str(tmp_path / "in"))
    found = list[Row]()
    state = {"state": "spark" if route == "own" else tmp_path / "state"}

    def run() -> None:
        result = match(frame, ABC, versions=tmp_path / "versions", watermark=1, buckets=2, **ROLES, **state)
        writer = result.writeStream.foreachBatch(lambda rows, batch: found.extend(by_name(rows)))
        writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
        writer.trigger(availableNow=True).start().awaitTermination()

    first, second, third = tables()
    for number, table in enumerate((first, second)):
        pq.write_table(table, tmp_path / "in" / f"{number}.parquet")
        if number == 0:
            run()
    (tmp_path / "versions" / "2.sase").write_text(ABD.replace("9", "8"))
    with pytest.raises(StreamingQueryException) as bad:
        run()
    mine = error_in(bad.value)
    assert mine is not None
    assert "another value of `WITHIN`" in mine.message
    (tmp_path / "versions" / "2.sase").write_text(ABD)
    run()
    for number, table in enumerate((third, ended())):
        pq.write_table(table, tmp_path / "in" / f"{number + 2}.parquet")
        run()
    assert sorted(row["bindings"]["c"][0] for row in found) == [4, 6, 8]


GOOD = [2, [ABD, 3, []]]
BAD_VERSIONS: tuple[Any, ...] = (
    None,
    3,
    [],
    [1, [GOOD]],
    [1, 2, [3]],
    [None, [GOOD], [3]],
    ["one", [GOOD], [3]],
    [1, [GOOD], ["3"]],
    [1, [GOOD], [3.5]],
    [1, [GOOD], []],
    [1, [GOOD], 3],
    [1, [[2], [2]], [3, 3]],
    [1, [[2, ["no query", 3, []]]], [3]],
    [1, [[2, [ABD, "3", []]]], [3]],
    [1, [[2, [ABD, 2**63, []]]], [3]],
    [1, [[2, [ABD, 3, 5]]], [3]],
    [1, [[2, [ABD, 3, [["z", "1"]]]]], [3]],
    [1, [[2, [ABD, 3, [["a", "one"]]]]], [3]],
    [1, [[2, [ABD.replace("9", "8"), 3, []]]], [3]],
    [1, [[2, [ABD, 9, []], [ABC, 3, []]]], [3]],
    [1, {"arcs": []}, [3]],
)


@pytest.mark.parametrize("versions", BAD_VERSIONS, ids=range(len(BAD_VERSIONS)))
def test_a_state_whose_versions_are_spoilt_is_refused(versions: Any) -> None:
    job = the_job(tables()[0], ABC, dynamic=True, buckets=1, **ROLES)
    bucket = Bucket(job, job.pass_of(0))
    bucket.replace([NewVersion(1, "", ABD)], 1003, None)
    data = bucket.dumps()
    assert Bucket.loads(job, job.pass_of(0), data).dumps() == data
    sizes = buckets.HEAD.unpack_from(data)[3:]
    parts, at = list[bytes](), buckets.HEAD.size
    for size in sizes:
        parts.append(data[at : at + size])
        at += size
    assert unseal(parts[0], job.fingerprint)["versions"] == [1, [[2, [canonical(acep.parse(ABD)), 1003, []]]], [1003]]
    parts[0] = seal(unseal(parts[0], job.fingerprint) | {"versions": versions}, job.fingerprint)
    lengths = buckets.HEAD.pack(b"", 0, b"", *map(len, parts))[buckets.SUMMED :]
    summed = lengths + b"".join(parts)
    head = buckets.HEAD.pack(buckets.MAGIC, buckets.FORMAT, mmh3.hash_bytes(summed), 0, 0, 0)[: buckets.SUMMED]
    with pytest.raises(SnapshotError):
        Bucket.loads(job, job.pass_of(0), head + summed)
