"""The end of a followed stream: by an option, or by the row of `acep.spark.punctuation` where another permits it."""

from __future__ import annotations

import datetime as dt
import gzip
import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import acep
from acep.errors import DataError, DataWarning, SnapshotError
from tests.runner.streams import Stream, fast_disk
from tests.runner.test_follow_files import die

WAITS = acep.parse("PATTERN SEQ(a x, b y, ~c z) WITHIN 5")
END = dt.datetime(9999, 12, 31)
EPOCH = dt.datetime(2024, 1, 1)


@pytest.fixture(autouse=True)
def _fast_disk() -> Iterator[None]:
    with fast_disk():
        yield


def time_at(held: pa.DataType, second: int) -> Any:
    """Return a time of a type: some seconds (days of a date) after its first one, or the last one for -1."""
    if pa.types.is_integer(held):
        return 2 ** (held.bit_width - (not pa.types.is_unsigned_integer(held))) - 1 if second < 0 else second
    moment = END if second < 0 else EPOCH + dt.timedelta(**{"days" if pa.types.is_date(held) else "seconds": second})
    if pa.types.is_date(held):
        return moment.date()
    return moment.replace(tzinfo=dt.UTC) if held.tz else moment


def rows(held: pa.DataType, *events: tuple[int, str | None]) -> pa.Table:
    times = pa.array([time_at(held, second) for second, _ in events], held)
    return pa.table({"ts": times, "type": pa.array([kind for _, kind in events], pa.string())})


TYPES = [pa.timestamp("us"), pa.timestamp("ms"), pa.timestamp("us", "UTC"), pa.timestamp("s", "Europe/Berlin")]
TYPES += [pa.date32(), pa.date64(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint32()]


def query_for(held: pa.DataType) -> acep.Query:
    unit = "days" if pa.types.is_date(held) else "" if pa.types.is_integer(held) else "seconds"
    return acep.parse(f"PATTERN SEQ(a x, b y) WITHIN 5 {unit}")


@pytest.mark.parametrize("held", TYPES, ids=str)
@pytest.mark.parametrize("latest", [False, True], ids=["", "latest"])
def test_an_event_of_the_last_time_ends_nothing(held: pa.DataType, latest: bool, tmp_path: Path) -> None:
    bound: dict[str, Any] = {}
    if latest:
        bound = {"latest": 100 if pa.types.is_integer(held) else "2030-01-01"}
    stream = Stream(tmp_path, query_for(held), end_marker=True, **bound)
    stream.put("1.parquet", rows(held, (1, "a"), (-1, "b")))
    stream.put("2.parquet", rows(held, (2, "b"), (-1, "c")))
    stream.put("3.parquet", rows(held, (4, "a"), (5, "b"), (6, "c")))
    done = stream.follow(max_files=1)
    assert (done.ended, done.report.matches, done.report.ahead, done.report.late) == (False, 3, 2, 0)
    assert "2 events were too far ahead" in str(done)
    assert stream.follow(end=True).ended


@pytest.mark.parametrize("held", TYPES, ids=str)
def test_a_row_of_the_last_time_without_values_ends_the_stream(held: pa.DataType, tmp_path: Path) -> None:
    stream = Stream(tmp_path, query_for(held), end_marker=True)
    stream.put("1.parquet", rows(held, (1, "a"), (2, "b")))
    stream.put("2.parquet", rows(held, (-1, None)))
    done = stream.follow()
    assert (done.ended, done.report.events, done.report.matches, done.report.ahead) == (True, 2, 1, 0)
    assert "the stream has ended" in str(done)
    assert stream.follow().ended
    stream.put("3.parquet", rows(held, (4, "a")))
    with pytest.raises(SnapshotError, match=r"has ended, and `3\.parquet` is new"):
        stream.follow()


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_it_ends_in_text_formats_too(form: str, tmp_path: Path) -> None:
    """As Spark writes the row: with a fraction, without fields that are null."""
    texts = {
        "csv": (
            "ts,type,k\n2024-01-01T00:00:01Z,a,1\n2024-01-01T00:00:02Z,b,1\n",
            "ts,type,k\n9999-12-31T00:00:00.000Z,,\n",
        ),
        "jsonl": (
            '{"ts":"2024-01-01T00:00:01Z","type":"a","k":1}\n{"ts":"2024-01-01T00:00:02Z","type":"b","k":1}\n',
            '{"ts":"9999-12-31T00:00:00.000Z"}\n',
        ),
    }
    stream = Stream(tmp_path, acep.parse("PATTERN SEQ(a x, b y, ~c z) WHERE [k] WITHIN 5 seconds"), end_marker=True)
    for number, text in enumerate(texts[form]):
        stream.put(f"{number}.{form}", text)
    done = stream.follow()
    assert (done.ended, done.report.matches) == (True, 1)


@pytest.mark.parametrize(
    "line",
    [
        {"type": "c"},
        {"k": 1},
        {"k": 1, "type": None},
        {"unread": 1},
        {"unread": {"deep": {"er": "x"}}},
        {"ts": "9999-12-31T00:00:00.001Z"},
        {"ts": "9999-12-31T23:59:59Z", "type": "c"},
    ],
    ids=str,
)
def test_a_row_with_any_value_or_a_later_time_ends_nothing(line: dict[str, Any], tmp_path: Path) -> None:
    stream = Stream(tmp_path, acep.parse("PATTERN SEQ(a x, b y) WHERE [k] WITHIN 5 seconds"), end_marker=True)
    for second, kind in ((1, "a"), (2, "b"), (3, "x")):
        text = json.dumps({"ts": f"2024-01-01T00:00:0{second}Z", "type": kind, "k": 1}) + "\n"
        stream.put(f"{second}.jsonl", text + json.dumps({"ts": "9999-12-31T00:00:00Z"} | line) + "\n")
    done = stream.follow(max_files=1)
    assert (done.ended, done.report.matches, done.report.ahead) == (False, 1, 3)


def test_the_row_may_have_a_number_and_an_id_which_a_source_fills_in(tmp_path: Path) -> None:
    stream = Stream(tmp_path, WAITS, seq="n", id="name", end_marker=True)
    columns = {"ts": [1, 2, 2**63 - 1], "type": ["a", "b", None], "n": [1, 2, 3], "name": ["u", "v", "w"]}
    stream.put("1.parquet", pa.table(columns))
    done = stream.follow()
    assert (done.ended, done.report.matches) == (True, 1)


def test_the_marker_needs_a_column_of_types(tmp_path: Path) -> None:
    """Without one nothing tells it from an event."""
    stream = Stream(tmp_path, acep.parse("PATTERN SEQ(ANY a, ANY b) WITHIN 5"), type=None)
    stream.put("1.csv", f"ts\n1\n2\n{2**63 - 1}\n")
    with pytest.raises(DataError, match="end_marker=True needs a column of types"):
        stream.follow(end_marker=True)
    done = stream.follow()
    assert (done.ended, done.report.ahead) == (False, 1)
    assert stream.follow(end=True).report.matches == 1


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_without_types_no_row_ends_the_stream_as_an_event_may_have_nulls_only(form: str, tmp_path: Path) -> None:
    stream = Stream(tmp_path, acep.parse("PATTERN SEQ(ANY a, ANY b) WHERE a.x < b.x WITHIN 5"), type=None)
    table = pa.table({"ts": [1, 2, 2**63 - 1], "x": [1.5, 2.5, None]})
    lines = {"csv": f"ts,x\n1,1.5\n2,2.5\n{2**63 - 1},\n"}
    lines["jsonl"] = "".join(json.dumps(row) + "\n" for row in table.to_pylist())
    stream.put(f"1.{form}", lines.get(form, table))
    done = stream.follow()
    assert (done.ended, done.report.events, done.report.ahead) == (False, 2, 1)
    stream.put("2.csv", "ts,x\n3,3.5\n")
    assert stream.follow(end=True).report.matches == 3


def test_the_time_may_be_a_field(tmp_path: Path) -> None:
    stream = Stream(tmp_path, WAITS, ts="at.ts", end_marker=True)
    table = pa.table(
        {"at": [{"ts": 1, "x": 1}, {"ts": 2, "x": None}, {"ts": 2**63 - 1, "x": 1}], "type": ["a", "b", None]}
    )
    stream.put("1.parquet", table)
    assert not stream.follow().ended
    stream.put("2.parquet", pa.table({"at": [{"ts": 2**63 - 1, "x": None}], "type": pa.array([None], pa.string())}))
    done = stream.follow()
    assert (done.ended, done.report.matches, done.report.ahead) == (True, 1, 1)


def test_a_stream_of_nanoseconds_ends_with_a_row_of_microseconds(tmp_path: Path) -> None:
    """Nanoseconds do not reach the last time, so that it comes in another type."""
    stream = Stream(tmp_path, acep.parse("PATTERN SEQ(a x, b y, ~c z) WITHIN 5 seconds"), end_marker=True)
    stream.put("1.parquet", rows(pa.timestamp("ns"), (1, "a"), (2, "b")))
    stream.follow()
    stream.put("2.parquet", rows(pa.timestamp("us"), (-1, None)))
    done = stream.follow()
    assert (done.ended, done.report.matches) == (True, 1)


def test_a_follower_that_is_killed_ends_with_the_same_row(tmp_path: Path) -> None:
    stream = Stream(tmp_path, WAITS, end_marker=True)
    stream.put("1.parquet", rows(pa.int64(), (1, "a"), (2, "b")))
    stream.put("2.parquet", rows(pa.int64(), (-1, None)))
    die(stream)
    done = stream.follow()
    assert (done.ended, done.report.matches, len(stream.lines())) == (True, 1, 1)


def test_files_that_come_with_the_end_are_taken_and_later_ones_are_refused(tmp_path: Path) -> None:
    stream = Stream(tmp_path, WAITS, end_marker=True)
    stream.put("1.parquet", rows(pa.int64(), (-1, None)))
    stream.put("2.parquet", rows(pa.int64(), (1, "a"), (2, "b")))
    stream.put("3.parquet", rows(pa.int64(), (3, "c")))
    with pytest.raises(SnapshotError, match=r"has ended, and `3\.parquet` is new"):
        stream.follow(max_files=2)
    assert len(stream.lines()) == 1


def test_without_once_and_end_the_call_returns_when_the_stream_has_ended(tmp_path: Path) -> None:
    stream = Stream(tmp_path, WAITS, end_marker=True)
    stream.put("1.parquet", rows(pa.int64(), (1, "a"), (2, "b"), (-1, None)))
    assert stream.follow(once=False).report.matches == 1


FORMS = {
    "csv": "ts,type\n1,a\n2,b\n9223372036854775807,\n",
    "tsv": "ts\ttype\n1\ta\n2\tb\n9223372036854775807\t\n",
    "jsonl": '{"ts":1,"type":"a"}\n{"ts":2,"type":"b"}\n{"ts":9223372036854775807}\n',
    "json": '{"ts":1,"type":"a"}\n{"ts":2,"type":"b"}\n{"ts":9223372036854775807,"type":null}\n',
    "parquet": rows(pa.int64(), (1, "a"), (2, "b"), (-1, None)),
}
FAR_FORMS = {
    "csv": "ts,type\n2024-01-01 00:00:01,a\n2024-01-01 00:00:02,b\n9999-12-31 00:00:00,\n",
    "jsonl": "".join(
        json.dumps(row) + "\n"
        for row in (
            {"ts": "2024-01-01T00:00:01Z", "type": "a"},
            {"ts": "2024-01-01T00:00:02Z", "type": "b"},
            {"ts": "9999-12-31T00:00:00Z"},
        )
    ),
    "parquet": rows(pa.timestamp("us"), (1, "a"), (2, "b"), (-1, None)),
}


@pytest.mark.parametrize("latest", [False, True], ids=["", "latest"])
@pytest.mark.parametrize("packed", ["", ".gz"])
@pytest.mark.parametrize(
    ("form", "file", "unit"),
    [
        *((form, file, "") for form, file in FORMS.items()),
        *((form, file, "seconds") for form, file in FAR_FORMS.items()),
    ],
)
def test_no_row_ends_the_stream_unless_an_option_permits_it(
    form: str, file: pa.Table | str, unit: str, packed: str, latest: bool, tmp_path: Path
) -> None:
    if packed and form == "parquet":
        pytest.skip("Parquet compresses inside")
    bound = {"latest": "2030-01-01" if unit else 100} if latest else {}
    zone = "Z" if form == "jsonl" else ""
    query = acep.parse(f"PATTERN SEQ(a x, b y, ~c z) WITHIN 5 {unit}")
    stream = Stream(tmp_path / "data", query, **bound)
    permitted = Stream(tmp_path / "marked", query, end_marker=True, **bound)
    for each in (stream, permitted):
        path = each.put(f"1.{form}", file)
        if packed:
            (path.parent / f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
            path.unlink()
    with pytest.warns(DataWarning, match=r"`.*1\..*row .*ends the stream with end_marker=True only|line 4.*end_marker"):
        done = stream.follow()
    assert (done.ended, done.report.matches, done.report.ahead) == (False, 0, 1)
    stream.put("2.csv", f"ts,type\n{f'2024-01-01T00:00:09{zone}' if unit else 9},a\n")
    done = stream.follow()
    assert (done.ended, done.report.matches, done.report.late) == (False, 1, 0)
    done = permitted.follow()
    assert (done.ended, done.report.matches, done.report.ahead) == (True, 1, 0)


@pytest.mark.parametrize("names", [{"id": "n"}, {"seq": "n"}, {"id": "n", "seq": "n"}])
def test_a_row_that_ends_nothing_is_left_out_where_ids_are_needed(names: dict[str, str], tmp_path: Path) -> None:
    stream = Stream(tmp_path, acep.parse("PATTERN SEQ(a x, b y, ~c z) WITHIN 5"), **names)
    stream.put("1.csv", f"ts,type,n\n1,a,1\n2,b,2\n{2**63 - 1},,\n")
    with pytest.warns(DataWarning, match="line 4.*end_marker=True only, and is left out, as its `n` is null"):
        done = stream.follow()
    assert (done.ended, done.report.matches, done.report.ahead) == (False, 0, 0)
    stream.put("2.csv", "ts,type,n\n9,a,3\n")
    done = stream.follow()
    assert (done.ended, done.report.matches) == (False, 1)


@pytest.mark.parametrize("before", [False, True])
def test_a_micro_batch_that_is_repeated_is_read_as_it_was_planned(before: bool, tmp_path: Path) -> None:
    stream = Stream(tmp_path, WAITS)
    stream.put("1.parquet", rows(pa.int64(), (1, "a"), (2, "b"), (-1, None)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        die(stream, end_marker=before)
        done = stream.follow(end_marker=not before)
    assert (done.ended, done.report.matches, done.report.ahead) == (before, int(before), int(not before))
