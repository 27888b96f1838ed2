"""`acep.spark.punctuation(df, until=)`: a nightly run gives all matches of its day, and the stream goes on."""

from __future__ import annotations

import datetime as dt
import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import acep
from acep.errors import DataError
from acep.spark import for_each_batch, match, punctuation
from acep.spark.metrics import Progress, progress_of
from acep.streaming.punctuation_rows import PUNCTUATION
from tests.runner.streams import fast_disk
from tests.spark.streams import as_dicts, quiet_match

pytestmark = pytest.mark.long

DAY = dt.datetime(2026, 5, 1, tzinfo=dt.UTC)
STRICT = acep.parse("PATTERN SEQ(a x, b+ y[], c z) WHERE strict_contiguity(x, y[], z) WITHIN 30 hours")
KEYED = acep.parse("PATTERN SEQ(a x, c z) WHERE skip_till_next_match(x, z) { [k] } WITHIN 30 hours")
ALONE, BOTH = {"strict": STRICT}, {"strict": STRICT, "keyed": KEYED}
COLUMNS = "ts timestamp, type string, k string, n long"

Row = tuple[dt.datetime, str, str, int]


def day_of(number: int) -> list[Row]:
    """The events of a day. The last one has its last microsecond, and matches go on with the first one of the next."""
    start = DAY + dt.timedelta(days=number)
    times = [start + dt.timedelta(hours=hour) for hour in (1, 2, 3, 4, 5)]
    times.append(start + dt.timedelta(days=1, microseconds=-1))
    return [
        (at, kind, key, 10 * number + n)
        for n, (at, kind, key) in enumerate(zip(times, KINDS[number], "ppppqp", strict=True))
    ]


KINDS = ("abcaab", "cabcab")
LATE = (DAY + dt.timedelta(hours=2, minutes=30), "b", "p", 99)


def exact(rows: list[Row], queries: dict[str, Any]) -> list[str]:
    names, texts = ("ts", "type", "k", "n"), []
    table = pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in rows])
    for query in queries.values():
        bindings = [found.bindings for found in acep.match(table, query, id="n", seq="n")]
        texts += [str({name: list(ids) for name, ids in one.items()}) for one in bindings]
    return sorted(texts)


class Nightly:
    """A stream of a folder that is run after each day, on a route."""

    def __init__(self, spark: Any, folder: Path, route: str, queries: dict[str, Any], **options: Any) -> None:
        self.spark, self.folder, self.route, self.queries = spark, folder, route, queries
        self.options: dict[str, Any] = {"id": "n", "seq": "n", "watermark": "10 minutes", "buckets": 2} | options
        self.columns = COLUMNS
        self.given: list[str] = []
        self.told: list[Progress] = []

    def arrive(self, frame: Any) -> None:
        frame.coalesce(1).write.mode("append").parquet(str(self.folder / "in"))

    def run(self) -> list[str]:
        """The matches so far, after a run over what is there."""
        stream = self.spark.readStream.schema(self.columns).parquet(str(self.folder / "in"))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            writer = self._writer(stream)
        running = writer.option("checkpointLocation", str(self.folder / "points")).trigger(availableNow=True).start()
        running.awaitTermination()
        if self.route in ("store", "files"):
            self.told += [one for p in running.recentProgress if (one := progress_of(p)) is not None]
        return sorted(self.given)

    def _writer(self, stream: Any) -> Any:
        options = dict[str, Any](self.options)
        options["state"] = "spark" if self.route == "store" else str(self.folder / "state")
        if self.route in ("store", "files"):
            return match(stream, self.queries, **options).writeStream.foreachBatch(self._take)
        step = for_each_batch(
            self.queries,
            self._take,
            progress=self.told.append,
            on_driver=self.route == "driver",
            **options,
        )
        return stream.writeStream.foreachBatch(step)

    def _take(self, found: Any, _: int) -> None:
        rows = found.to_pylist(maps_as_pydicts="strict") if isinstance(found, pa.Table) else as_dicts(found)
        self.given += [str(row["bindings"]) for row in rows]


LATEST = {"latest": DAY + dt.timedelta(days=3)}
WAYS = [
    ("store", BOTH, {}), ("store", ALONE, LATEST), ("files", BOTH, LATEST), ("files", ALONE, {}), ("each", BOTH, {}),
    ("each", ALONE, {}), ("each", ALONE, LATEST), ("each", BOTH, LATEST), ("driver", ALONE, {}),
    ("driver", BOTH, LATEST),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore:.*one bucket, one core")
@pytest.mark.parametrize(
    ("route", "queries", "options"),
    [pytest.param(*way, marks=[pytest.mark.whole] if n % 3 else []) for n, way in enumerate(WAYS)],
)
def test_a_nightly_run_gives_its_day_and_the_next_one_goes_on(
    spark: Any, route: str, queries: dict[str, Any], options: dict[str, Any], tmp_path: Path
) -> None:
    nightly = Nightly(spark, tmp_path, route, queries, **options)
    first, second = (spark.createDataFrame(day_of(number), COLUMNS) for number in (0, 1))
    ends = [DAY + dt.timedelta(days=days, microseconds=-1) for days in (1, 2)]
    nightly.arrive(first)
    nightly.arrive(punctuation(first, until=ends[0], watermark="10 minutes"))
    assert nightly.run() == exact(day_of(0), queries) != []
    nightly.arrive(second.unionAll(spark.createDataFrame([LATE], COLUMNS)))
    # Of a day later than `latest=` allows, with a delay: it is the user who says so.
    until = ends[1] + dt.timedelta(days=9) if options else ends[1]
    nightly.arrive(punctuation(first, until=until, watermark="10 minutes"))
    assert nightly.run() == exact([*day_of(0), *day_of(1)], queries)
    last, passes = nightly.told[-1], len(queries)
    assert (last.late, last.ahead, last.events) == (passes, 0, 12 * passes)


@pytest.mark.parametrize("route", ["each", "driver"])
def test_a_day_is_as_long_for_the_driver_as_for_its_workers(spark: Any, route: str, tmp_path: Path) -> None:
    """The row does not travel: the driver has its time, and counts dates in the ticks of the job."""
    columns = "ts date, type string, k string, n long"
    rows = [(dt.date(2026, 5, 1), "a", "p", 0), (dt.date(2026, 5, 2), "c", "p", 1)]
    ahead = [(dt.date(2026, 7, 1), "a", "p", 2), (dt.date(2026, 7, 2), "c", "p", 3)]
    nightly = Nightly(spark, tmp_path, route, {"keyed": KEYED}, watermark="1 day", latest="2026-06-01")
    nightly.columns = columns
    frame = spark.createDataFrame(rows + ahead, columns)
    nightly.arrive(frame)
    assert nightly.run() == []
    nightly.arrive(punctuation(frame, until="2026-05-02", watermark="1 day"))
    assert nightly.run() == ["{'x': [0], 'z': [1]}"]
    assert (nightly.told[-1].ahead, nightly.told[-1].late) == (2, 0)


def test_the_row_has_the_least_time_that_decides(spark: Any) -> None:
    def row_of(columns: str, **options: Any) -> Any:
        (row,) = punctuation(spark.createDataFrame([], columns), **options).collect()
        return row

    noon = dt.datetime(2026, 5, 1, 12, tzinfo=dt.UTC)
    row = row_of(COLUMNS, until="2026-05-01 12:00:00.000999", watermark="10 minutes")
    assert row.ts.astimezone(dt.UTC) == noon + dt.timedelta(minutes=10, milliseconds=1)
    assert (row.type, row.k, row.n) == (PUNCTUATION, None, None)
    assert row_of(COLUMNS, until=dt.date(2026, 5, 1), watermark=dt.timedelta(0)).ts.astimezone(dt.UTC) == (
        noon - dt.timedelta(hours=12) + dt.timedelta(milliseconds=1)
    )
    plain = row_of("at timestamp_ntz, kind string", ts="at", type="kind", until=noon, watermark="1 hour")
    assert plain == (dt.datetime(2026, 5, 1, 13, 0, 0, 1000), PUNCTUATION)
    assert row_of("ts date, type string", until="2026-05-01", watermark="1 day").ts == dt.date(2026, 5, 3)
    assert row_of("ts long, type string", until=70, watermark=5).ts == 76
    assert row_of("ts int, type string", until=70, watermark="1 minute", unit="s").ts == 131
    assert row_of("ts long", until=70, watermark=5, type=None) == (76,)
    names = {"ts": "dev.at", "type": "dev.kind"}
    inner = row_of("dev struct<at: long, kind: string, v: int>, n int", until=7, watermark=0, **names)
    assert inner == ((8, PUNCTUATION, None), None)


def test_a_text_without_a_zone_is_in_utc_in_a_session_of_another_zone(spark: Any) -> None:
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    try:
        frame = spark.createDataFrame([], COLUMNS)
        moved = [
            punctuation(frame, until=until, watermark="0 seconds").selectExpr("unix_micros(ts)").first()[0]
            for until in ("2026-05-01 12:00:00", "2026-05-01 14:00:00+02:00", "2026-05-01 12:00:00+02:00")
        ]
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)
    noon = int((DAY + dt.timedelta(hours=12)).timestamp()) * 1_000_000 + 1_000
    assert moved == [noon, noon, noon - 2 * 3_600_000_000]


def test_the_watermark_of_the_frame_is_used(spark: Any) -> None:
    stream = spark.readStream.format("rate").load().selectExpr("timestamp AS ts", "'a' AS type", "value")
    (row,) = punctuation(stream.withWatermark("ts", "2 hours"), until="2026-05-01").collect()
    assert row.ts.astimezone(dt.UTC) == DAY + dt.timedelta(hours=2, milliseconds=1)
    with pytest.raises(DataError, match="`ts` has a watermark already"):
        punctuation(stream.withWatermark("ts", "2 hours"), until="2026-05-01", watermark="2 hours")


MISTAKES: list[tuple[str, dict[str, Any], str]] = [
    (COLUMNS, {"until": "2026-05-01"}, "until= needs the delay of the watermark"),
    (COLUMNS, {"watermark": "1 hour"}, "watermark= is for a row that moves time up to until="),
    (COLUMNS, {"until": 7, "watermark": "1 hour"}, "until=7 is a number, and `ts` is a timestamp"),
    (COLUMNS, {"until": "1 hour", "watermark": "1 hour"}, "until='1 hour' is no time"),
    (COLUMNS, {"until": "2026-05-99", "watermark": "1 hour"}, "until='2026-05-99' is no time"),
    (COLUMNS, {"until": "1969-05-01", "watermark": "1 hour"}, "until='1969-05-01' is before 1970"),
    (COLUMNS, {"until": "9999-12-30", "watermark": "5 days"}, "so late that the row would end the stream"),
    (COLUMNS, {"until": "2026-05-01", "watermark": 3}, "watermark=3 needs a unit of time"),
    ("ts long, type string", {"until": "2026-05-01", "watermark": 3}, "the ticks of `ts` have no unit"),
    ("ts tinyint, type string", {"until": 120, "watermark": 9}, "so late that the row would end the stream"),
    ("ts long", {"until": 7, "watermark": 3}, "there is no column `type`"),
    ("ts long, type int", {"until": 7, "watermark": 3}, "the type column `type` is int, and a row that moves time has"),
]


@pytest.mark.parametrize(("columns", "options", "complaint"), MISTAKES)
def test_mistakes_are_refused(spark: Any, columns: str, options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(DataError) as caught:
        punctuation(spark.createDataFrame([], columns), **options)
    assert complaint in caught.value.message
    assert "\n" not in caught.value.message


def test_without_types_the_row_is_an_event_where_there_are_no_keys(spark: Any) -> None:
    """As a heartbeat of whichever kind is. With keys it is none."""
    frame = spark.createDataFrame([(1, "p", 0), (9, "p", 1)], "ts long, k string, n long")
    beat = punctuation(frame, until=5, watermark=0, type=None)
    rows = frame.unionAll(beat.withColumn("n", beat.ts))
    pair = "PATTERN SEQ(ANY x, ANY y) WHERE "
    for text, bound in (("[k]", [[0, 1]]), ("strict_contiguity(x, y)", [[0, 6], [6, 1]])):
        found = quiet_match(rows, f"{pair}{text} WITHIN 20", type=None, id="n", seq="n").collect()
        assert sorted([*row.bindings["x"], *row.bindings["y"]] for row in found) == bound


@pytest.mark.parametrize("form", ["parquet", "json", "csv"])
def test_it_moves_the_time_of_a_folder_that_is_followed(spark: Any, form: str, tmp_path: Path) -> None:
    days = [
        [(1, "a", "p", 0), (2, "b", "p", 1), (3, "c", "p", 2)],
        [(2, "a", "q", 3), (8, "a", "p", 4), (9, "c", "p", 5)],
    ]
    text = "PATTERN SEQ(a x, b? y, c z) WHERE strict_contiguity(x, y, z) WITHIN 20"
    given, ends = [], (5, 12)
    for rows, until in zip(days, ends, strict=True):
        events = spark.createDataFrame(rows, "ts long, type string, k string, n long")
        for frame in (events, punctuation(events, until=until, watermark=3)):
            frame.coalesce(1).write.mode("append").format(form).option("header", True).save(str(tmp_path / "in"))
        options: dict[str, Any] = {"state": tmp_path / "state", "into": tmp_path / "found"}
        options |= {"format": "jsonl"} if form == "json" else {}
        with fast_disk():
            done = acep.follow(tmp_path / "in", text, once=True, watermark=3, id="n", seq="n", latest=10, **options)
        assert not done.ended
        given.append((done.report.events, done.report.matches, done.report.late, done.report.ahead))
    assert given == [(3, 1, 0, 0), (5, 2, 1, 0)]
