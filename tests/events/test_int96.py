"""INT96 times in Parquet, as Spark writes them by default: exact over the whole calendar, or refused."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import acep
from acep.errors import DataError
from acep.events.files.reading import read_events
from tests.events.test_streams import make_tiny

EARLY, LATE = dt.datetime(2024, 1, 1), dt.datetime(9999, 12, 31)
FINE = np.datetime64("2024-01-01T00:00:00.000000001", "ns")


def write(path: Path, **columns: Any) -> Path:
    table = pa.table(columns)
    pq.write_table(table, path, use_deprecated_int96_timestamps=True)
    assert any(column.physical_type == "INT96" for column in map(pq.ParquetFile(path).schema.column, range(1)))
    return path


def instants(*times: Any, unit: str = "us") -> pa.Array:
    return pa.array(times, pa.timestamp(unit))


def test_a_time_beyond_2262_does_not_wrap_around(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", ts=instants(EARLY, LATE), type=["a", "b"])
    assert [m.bindings for m in acep.match(path, "PATTERN SEQ(a, b)")] == [{"a": (0,), "b": (1,)}]
    assert not acep.match(path, "PATTERN SEQ(b, a)")
    assert read_events(path).column("ts").to_pylist() == [EARLY, LATE]


@pytest.mark.parametrize("tiny", [False, True])
@pytest.mark.parametrize("time", [dt.datetime(1, 1, 1), dt.datetime(1582, 10, 4), dt.datetime(1677, 9, 21), LATE])
def test_times_of_all_years_in_columns_and_fields(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, time: dt.datetime, tiny: bool
) -> None:
    if tiny:
        make_tiny(monkeypatch)
    at = pa.array([None, {"at": time}], pa.struct({"at": pa.timestamp("us")}))
    path = write(tmp_path / "x.parquet", ts=instants(EARLY, LATE), type=["a", "b"], due=instants(time, None), dev=at)
    table = read_events(path)
    assert table.column("due").to_pylist() == [time, None]
    assert table.column("dev").to_pylist() == [None, {"at": time}]


def test_nanoseconds_stay(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", ts=instants(FINE, np.datetime64(LATE.replace(2261), "ns"), unit="ns"))
    column = read_events(path).column("ts")
    assert column.type == pa.timestamp("ns")
    assert column.cast(pa.int64())[0].as_py() % 1000 == 1


def test_nanoseconds_beside_a_time_that_no_nanoseconds_reach_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", ts=instants(FINE, unit="ns"), due=instants(LATE))
    with pytest.raises(DataError, match=r"`due` is 9999-12-31.* in row 0 .*nanoseconds"):
        read_events(path)
    assert read_events(path, ["ts"]).column("ts").type == pa.timestamp("ns")


def test_files_of_several_units_are_one_stream(tmp_path: Path) -> None:
    """Rotated files: one has nanoseconds, one INT96, one milliseconds."""
    fine = write(tmp_path / "0.parquet", ts=instants(FINE, unit="ns"), type=["a"])
    plain = write(tmp_path / "1.parquet", ts=instants(EARLY.replace(day=2)), type=["b"])
    pq.write_table(pa.table({"ts": instants(EARLY.replace(day=3), unit="ms"), "type": ["c"]}), tmp_path / "2.parquet")
    (match,) = acep.match([fine, plain, tmp_path / "2.parquet"], "PATTERN SEQ(a, b, c)")
    assert str(match.start) == str(FINE)
    (match,) = acep.match([plain, tmp_path / "2.parquet"], "PATTERN SEQ(b, c)")
    assert match.end == EARLY.replace(day=3)


def test_files_whose_times_have_no_common_unit_are_refused_with_the_row(tmp_path: Path) -> None:
    fine = write(tmp_path / "0.parquet", ts=instants(FINE, unit="ns"), type=["a"])
    late = write(tmp_path / "1.parquet", ts=instants(EARLY, LATE), type=["b", "c"])
    with pytest.raises(DataError, match=r"1\.parquet`, row 1 .*`ts` is 9999-12-31"):
        acep.match([fine, late], "PATTERN SEQ(a, c)")


def test_followed_files_have_them_too(tmp_path: Path) -> None:
    """The second file has the row that ends a stream on Spark."""
    inbox, state, out = tmp_path / "inbox", tmp_path / "state", tmp_path / "out"
    inbox.mkdir()
    write(inbox / "1.parquet", ts=instants(EARLY, EARLY.replace(year=2500)), type=["a", "b"])
    how = {"state": state, "into": out, "once": True}
    assert acep.follow(inbox, "PATTERN SEQ(a, b) WITHIN 1000 days", **how).report.matches == 0
    write(inbox / "2.parquet", ts=instants(EARLY.replace(year=2501), EARLY.replace(year=2502)), type=["a", "b"])
    acep.follow(inbox, "PATTERN SEQ(a, b) WITHIN 1000 days", **how, end=True)
    (line,) = "".join(part.read_text() for part in sorted(out.glob("*.jsonl"))).splitlines()
    assert json.loads(line)["start"] == "2501-01-01T00:00:00"
