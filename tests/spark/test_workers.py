"""What the workers do, without Spark: a batch and a stream give what one process gives."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import acep
from acep.errors import DataError, SnapshotError
from acep.spark.workers.spark_state_worker import SPAN, pack
from acep.streaming.buckets import Bucket
from acep.streaming.job import passes_of
from tests.complaints import fail_if_wrong
from tests.corpus import Case
from tests.each_case import by_file
from tests.random_cases import Case as RandomCase
from tests.random_cases import random_case
from tests.spark.by_hand import as_rows, batch, numbered, rows_of, rows_that_differ, spread, stream, the_job
from tests.spark.cases import GOOD, complaint_of_stream, of_corpus, of_random, split


@by_file(GOOD)
def test_a_batch_is_one_process(case: Case) -> None:
    one = of_corpus(case)
    assert rows_that_differ(batch(one.job, one.table), one.exact) == ""


@by_file(GOOD[::4])
def test_a_stream_is_one_process(case: Case) -> None:
    check_stream(case)


@pytest.mark.long
@by_file([case for number, case in enumerate(GOOD) if number % 4 != 0])
def test_streams_of_the_other_cases_are_one_process(case: Case) -> None:
    check_stream(case)


def check_stream(case: Case) -> None:
    one = of_corpus(case)
    found, _, totals = stream(one.job, one.batches, rng=one.rng)
    assert totals["late"] == 0
    assert rows_that_differ(found, one.exact) == ""


def test_random_streams_in_disorder_are_one_process(cases: Callable[[int], int]) -> None:
    def complaint_of(case: RandomCase) -> str:
        streamed = of_random(case, case.seed)
        rows, _, totals = stream(streamed.job, streamed.batches, delay=streamed.delay, rng=streamed.rng)
        return complaint_of_stream(streamed, rows, totals)

    for seed in range(cases(150)):
        fail_if_wrong(random_case(seed), complaint_of)


def test_rows_that_are_packed_again_are_the_same(cases: Callable[[int], int]) -> None:
    """Spark compares the checksums of what a task sends when it has to repeat it, and gives the query up."""
    for seed in range(cases(40)):
        streamed = of_random(random_case(seed), seed)
        for table in streamed.batches:
            batches = spread(streamed.job, table).to_batches(max_chunksize=5)
            first, again = (
                [part.drop_columns(SPAN) for part in pack(streamed.job, batches, announces=True)] for _ in range(2)
            )
            assert first == again


# Outputs ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("output", ["points", "bundles"])
def test_groups_are_those_of_one_process(output: str, cases: Callable[[int], int]) -> None:
    def complaint_of(case: RandomCase) -> str:
        streamed = of_random(case, case.seed, output)
        if complaint := complaint_of_stream(streamed, batch(streamed.job, streamed.table), {}):
            return f"as a batch: {complaint}"
        rows, _, _ = stream(streamed.job, streamed.batches, delay=streamed.delay, rng=streamed.rng)
        return complaint_of_stream(streamed, rows, {})

    for seed in range(cases(100)):
        fail_if_wrong(random_case(seed), complaint_of)


def test_counts_add_up() -> None:
    table = numbered(pa.table({"ts": range(40), "type": list("abcd") * 10, "k": [0, 1] * 20}))
    queries = {"x": acep.regex("ac", within=4, by="k"), "none": acep.regex("dd", within=1, by="k")}
    job = the_job(table, queries, output="count")
    exact = len(acep.match(table, queries["x"]))
    assert exact
    assert sum(row["count"] for row in batch(job, table)) == exact
    found, _, _ = stream(job, rows_of(table, range(40), [10, 10]), delay=1)
    assert {row["query"] for row in found} == {"x"}
    assert sum(row["count"] for row in found) == exact


def test_groups_are_given_when_they_are_whole() -> None:
    table = numbered(pa.table({"ts": [0, 1, 3, 20, 21, 60], "type": list("abbabz")}))
    query = acep.regex("ab", within=5)
    for output, early in (("points", [{"point": 1, "best": 0}, {"point": 3, "best": 0}]), ("bundles", [])):
        job = the_job(table, query, output=output)
        first, states, _ = stream(job, rows_of(table, range(6), [3, 3]), delay=1, end=False)
        assert [row for row in first if row.get("point", 99) <= 3] == early[: len(first)]
        rest, _, _ = stream(job, [], end=True, states=states)
        exact = acep.match(table, query, output=output)
        assert len(first) + len(rest) == len(exact)


# Time -------------------------------------------------------------------------------------------


def test_late_events_are_counted_whatever_bucket_they_fall_into() -> None:
    rows = [(t, f"k{t % 5}", "ab"[t // 5 % 2]) for t in range(100)]
    table = numbered(pa.table(dict(zip(("ts", "k", "type"), map(list, zip(*rows, strict=True)), strict=True))))
    query = acep.regex("ab", within=10, by="k")
    job = the_job(table, query)
    # The last ten rows come in time; ten of the first rows come again, too late, and change nothing.
    again = table.slice(0, 10)
    found, states, totals = stream(job, [table.slice(0, 90), table.slice(90), again], delay=3)
    assert totals["late"] == 10
    assert totals["events"] == 100
    assert rows_that_differ(found, as_rows(acep.match(table, query))) == ""
    # After the end all is late.
    _, _, totals = stream(job, [table.slice(95)], states=states)
    assert totals["late"] == 15


def test_an_event_before_the_watermark_is_late_and_one_at_it_is_not() -> None:
    query = acep.regex("ab", within=10)
    table = numbered(pa.table({"ts": [5, 9, 9], "type": list("aab")}))
    job = the_job(table, query)
    at = pa.table({"ts": [5, 6], "type": list("bb"), "__order": [7, 8], "__row": [7, 8]})
    found, _, totals = stream(job, [table, table.slice(0, 0), at], delay=3, rng=None)
    assert totals["late"] == 1
    assert {tuple(row["bindings"]["b"]) for row in found} == {(8,), (2,)}


def test_a_missing_time_is_an_error() -> None:
    table = numbered(pa.table({"ts": [1, 2], "type": ["a", "b"]}))
    job = the_job(table, acep.regex("ab", within=5))
    broken = table.set_column(0, "ts", pa.array([1, None], pa.int64()))
    with pytest.raises(DataError, match="`ts` is null"):
        stream(job, [broken])
    with pytest.raises(DataError, match="`ts` is null"):
        batch(job, broken)


def test_ties_do_not_depend_on_arrival() -> None:
    table = pa.table({"ts": [1, 1, 1, 1, 2], "type": list("baabb"), "x": [1, 2, 3, None, 5]})
    query = acep.parse("PATTERN SEQ(a p, b q) WHERE skip_till_any_match(p, q) WITHIN 5 RETURN p.x AS p, q.x AS q")
    answers = set()
    for seed in range(20):
        rng = random.Random(seed)
        order = rng.sample(range(5), 5)
        job = the_job(table, query, seq=None, id=None)
        mixed = table.take(pa.array(order))
        found = batch(job, mixed)
        again, _, _ = stream(job, rows_of(mixed, range(5), split(5, rng)), delay=3, rng=rng)
        assert rows_that_differ(found, again) == ""
        answers.add(repr(sorted(map(repr, found))))
    assert len(answers) == 1


def test_ids_are_positions_in_the_partition() -> None:
    table = pa.table({"ts": [1, 2, 3, 4, 5, 6], "type": list("axbaxb"), "k": list("uuvvvu")})
    query = acep.regex("ab", within=9, by="k")
    job = the_job(table, query, seq=None, id=None)
    assert [row["bindings"] for row in batch(job, table)] == [{"a": [0], "b": [2]}]
    found, _, _ = stream(job, rows_of(table, range(6), [2, 2]), delay=1)
    assert [row["bindings"] for row in found] == [{"a": [0], "b": [2]}]


# State ------------------------------------------------------------------------------------------


def half_way(query: Any) -> tuple[Any, pa.Table, bytes]:
    table = numbered(pa.table({"ts": range(30), "type": list("abc") * 10, "k": [0, 1, 2] * 10}))
    job = the_job(table, query, buckets=1)
    bucket = Bucket(job, job.pass_of(0))
    bucket.add(table.slice(0, 20).select(job.columns))
    bucket.advance(13)
    return job, table, bucket.dumps()


def test_a_state_goes_on_where_it_stood() -> None:
    job, table, data = half_way(acep.regex("abc", within=20))
    for _ in range(2):
        bucket = Bucket.loads(job, job.pass_of(0), data)
        assert len(bucket.hold_back) == 7
        assert (bucket.hold_back.released, bucket.hold_back.greatest) == (13, 19)
        assert (bucket.totals.events, bucket.totals.late) == (20, 0)
        bucket.add(table.slice(12, 2).select(job.columns))
        assert bucket.totals.late == 1
        assert bucket.dumps() != data


def test_another_query_is_told_and_nothing_is_lost() -> None:
    job, table, data = half_way(acep.regex("abc", within=20, by="k"))
    others = [
        the_job(table, acep.regex("abc", within=21, by="k"), buckets=1),
        the_job(table, acep.regex("abc", within=20, by="k"), buckets=2),
        the_job(table, acep.regex("abc", within=20, by="k"), buckets=1, output="points"),
        the_job(table, acep.regex("abc", within=20, by="k", errors=1), buckets=1),
        the_job(table, {"x": acep.regex("abc", within=20, by="k")}, buckets=1),
        the_job(table, acep.regex("abc", within=20, by="k"), buckets=1, id=None),
        the_job(
            table.append_column("new", table.column("k")), acep.regex("abc", within=20, by="k"), buckets=1, seq=None
        ),
    ]
    for other in others:
        with pytest.raises(SnapshotError, match="the checkpoint was made by another query") as told:
            Bucket.loads(other, other.pass_of(0), data)
        assert len(told.value.message.splitlines()) == 1
    assert Bucket.loads(job, job.pass_of(0), data).dumps() == data


def test_damage_is_told() -> None:
    job, _, data = half_way(acep.regex("abc", within=20, by="k"))
    rng = random.Random(1)
    for _ in range(200):
        bad = bytearray(data)
        bad[rng.randrange(len(bad))] ^= 1 << rng.randrange(8)
        with pytest.raises(SnapshotError):
            Bucket.loads(job, job.pass_of(0), bytes(bad))
    for size in (0, 3, 24, len(data) // 2, len(data) - 1):
        with pytest.raises(SnapshotError):
            Bucket.loads(job, job.pass_of(0), data[:size])


@pytest.mark.long
def test_idle_keys_are_forgotten() -> None:
    query = acep.regex("ab", within=10, by="k")

    def state_of(size: int) -> int:
        """Bytes of state after so many keys, of which none is seen twice."""
        table = pa.table({"ts": range(size), "type": ["a"] * size, "k": [f"key {i}" for i in range(size)]})
        table = numbered(table)
        job = the_job(table, query, buckets=1)
        batches = rows_of(table, range(size), [500] * (size // 500))
        _, states, _ = stream(job, batches, delay=1, end=False)
        return sum(len(state.get[0]) for state in states.values())

    sizes = {size: state_of(size) for size in (500, 4_000, 16_000)}
    assert sizes[16_000] < sizes[4_000] * 1.5, sizes
    assert sizes[4_000] < sizes[500] * 4, sizes


# Passes -----------------------------------------------------------------------------------------


def test_queries_share_a_pass_where_they_share_an_attribute() -> None:
    table = pa.table({"ts": [1], "type": ["a"], "k": [1], "l": [1], "m": [1]})

    def by(*names: str, **options: Any) -> Any:
        return acep.regex("ab", within=5, by=list(names) or None, **options)

    queries = [by("k", "l"), by("l"), by("m"), by(), by("k", strategy="strict_contiguity"), by("l", "m")]
    job = the_job(numbered(table), queries, buckets=4)
    told = [(part.queries, part.keys, part.first, part.size) for part in job.passes]
    assert told == [((0, 1, 5), ("l",), 0, 4), ((2,), ("m",), 4, 4), ((3, 4), (), 8, 1)]
    assert [job.pass_of(b).keys for b in (0, 3, 4, 8)] == [("l",), ("l",), ("m",), ()]
    assert passes_of([], 4) == ()


def test_several_queries_at_once_give_what_each_gives() -> None:
    rng = random.Random(3)
    size = 120
    columns = {
        "ts": sorted(rng.randrange(200) for _ in range(size)),
        "type": rng.choices("abc", k=size),
        "k": rng.choices(["u", "v", None], k=size),
        "l": rng.choices([1.5, 2.5, float("nan")], k=size),
    }
    table = numbered(pa.table(columns))
    queries = {
        "k": acep.regex("ab", within=10, by="k"),
        "kl": acep.regex("a(b|c)c", within=20, by=["k", "l"], errors=1),
        "l": acep.parse("PATTERN SEQ(a x, b y) WHERE skip_till_next_match(x, y) { [l] } WITHIN 9 RETURN y.ts AS t"),
        "all": acep.regex("abc", within=3, strategy="strict_contiguity"),
    }
    job = the_job(table, queries)
    found, _, _ = stream(job, rows_of(table, range(size), [30, 30, 30]), delay=1, rng=rng)
    for rows in (batch(job, table), found):
        for name, query in queries.items():
            exact = as_rows(acep.match(table, query))
            ours = [{n: v for n, v in row.items() if n != "query"} for row in rows if row["query"] == name]
            assert exact
            assert len(ours) == len(exact), name
            for row in ours:
                row["key"] = {n: v for n, v in row["key"].items() if v is not None}
                row["values"] = {n: v for n, v in (row["values"] or {}).items() if v is not None}
            ours = [{n: v for n, v in row.items() if v or n not in ("key", "values")} for row in ours]
            assert rows_that_differ(ours, exact) == "", name
