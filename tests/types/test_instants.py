"""Times with a zone are instants, printed in UTC with Z; without one they are as they stand; no mixture of both."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import acep
from acep.cli import main
from acep.errors import DataError, QueryError
from acep.explain.why import why

QUERY = "PATTERN SEQ(a x, b y) WHERE [w] WITHIN 1 hour RETURN x.w AS w, y.ts + 1 min AS later"
WHOLE = [("2024-05-01T10:00:00+02:00", "a"), ("2024-05-01T08:00:05Z", "b")]
Printed = Callable[[], Any]


def files(folder: Path, rows: list[tuple[str, str]], w: str = "2024-03-31T02:30:00+01:00") -> list[Path]:
    lines = [json.dumps({"ts": ts, "type": kind, "w": w}) for ts, kind in rows]
    (folder / "x.jsonl").write_text("\n".join(lines) + "\n")
    (folder / "x.csv").write_text("ts,type,w\n" + "".join(f"{ts},{kind},{w}\n" for ts, kind in rows))
    return [folder / "x.jsonl", folder / "x.csv"]


@pytest.mark.parametrize("fraction", ["", ".5"])
def test_a_mixture_is_refused_with_its_row(fraction: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [(f"2024-05-01T10:00:00{fraction}", "a"), (f"2024-05-01T10:00:05{fraction}+02:00", "b")]
    for path in files(tmp_path, rows):
        assert main(["match", "PATTERN SEQ(a x, b y) WITHIN 1 hour", str(path)]) == 2
        said = capsys.readouterr().err
        assert "with a zone or all without" in said
        assert "10:00:05" in said
        assert "1" in said or "line 2" in said


def test_leap_seconds_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for path in files(tmp_path, [("2016-12-31T23:59:59Z", "a"), ("2016-12-31T23:59:60Z", "b")]):
        assert main(["match", "PATTERN SEQ(a x, b y) WITHIN 1 hour", str(path)]) == 2
        assert "23:59:60" in capsys.readouterr().err
    with pytest.raises(acep.QueryError, match="not a timestamp"):
        acep.parse("PATTERN SEQ(a x) WHERE x.ts > TIMESTAMP '2016-12-31 23:59:60' WITHIN 9")


@pytest.mark.parametrize("to", ["stdout", "o.jsonl", "o.csv"])
def test_zoned_times_are_printed_in_utc(to: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = pa.table(
        {
            "ts": pa.array([dt.datetime.fromisoformat(ts) for ts, _ in WHOLE], pa.timestamp("ms", "America/New_York")),
            "type": ["a", "b"],
            "w": pa.array([dt.datetime(2024, 3, 31, 1, 30, tzinfo=dt.UTC)] * 2, pa.timestamp("ns", "Europe/Berlin")),
        }
    )
    pq.write_table(table, tmp_path / "x.parquet")
    for path in [*files(tmp_path, WHOLE), tmp_path / "x.parquet"]:
        output = [] if to == "stdout" else ["--output", str(tmp_path / to)]
        assert main(["match", QUERY, str(path), *output]) == 0
        text = capsys.readouterr().out if to == "stdout" else (tmp_path / to).read_text()
        for shown in ("2024-05-01T08:00:00Z", "2024-05-01T08:00:05Z", "2024-03-31T01:30:00Z", "2024-05-01T08:01:05Z"):
            assert shown in text, (path, shown, text)
        assert "+0" not in text
        assert main(["why", f"{QUERY}", str(path), "--key", "2024-03-31T01:30:00Z"]) == 0
        assert "w=2024-03-31 01:30:00Z" in capsys.readouterr().out


def test_a_finer_time_than_any_datetime_keeps_its_zone(tmp_path: Path) -> None:
    times = pa.array([1, 1], pa.timestamp("ns", "UTC"))
    rows = pa.table({"ts": times, "type": ["a", "b"], "w": times})
    found = acep.match(rows, acep.parse(QUERY.replace("[w]", "[w]")))
    assert (found[0].start, found[0].key) == (np.datetime64(1, "ns"), {"w": np.datetime64(1, "ns")})
    from acep.output.writing import write_matches

    for name in ("o.jsonl", "o.csv"):
        write_matches(found, tmp_path / name)
        text = (tmp_path / name).read_text()
        assert text.count("1970-01-01T00:00:00.000000001Z") == 5
        assert "1970-01-01T00:01:00.000000001Z" in text


def test_naive_nanoseconds_come_back_as_microseconds_do() -> None:
    for unit in ("us", "ns"):
        times = pa.array([dt.datetime(2024, 1, 1, 0, 0, 0, 7)] * 2, pa.timestamp(unit))
        (one,) = acep.match(pa.table({"ts": times, "type": ["a", "b"], "w": times}), acep.parse(QUERY))
        assert (
            one.start == one.end == one.bundle == one.key["w"] == one.values["w"] == dt.datetime(2024, 1, 1, 0, 0, 0, 7)
        )
        assert type(one.start) is type(one.key["w"]) is dt.datetime


@pytest.mark.parametrize("ts", [[1, 2], [dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 1, 0, 1)]], ids=["int", "time"])
def test_a_date_in_return_is_a_date(ts: list[Any]) -> None:
    day = dt.date(2024, 2, 29)
    rows = pa.table({"ts": ts, "type": ["a", "b"], "day": [day, day]})
    query = acep.parse(
        "PATTERN SEQ(a x, b y) WHERE [day] WITHIN 1 hour RETURN x.day AS d, max(y[].day) AS m, x.day + 90 min AS h"
    )
    found = acep.match(rows, query, unit="s" if isinstance(ts[0], int) else None)
    assert found[0].values == {"d": day, "m": day, "h": dt.datetime(2024, 2, 29, 1, 30)}
    assert found.to_arrow().column("values").to_pylist() == [found[0].values]


def test_a_failure_is_told_in_times() -> None:
    times = [dt.datetime(2024, 1, 1, tzinfo=dt.UTC), dt.datetime(2024, 1, 2, tzinfo=dt.UTC)]
    rows = pa.table({"ts": times, "type": ["a", "b"]})
    told = str(why(rows, acep.parse("PATTERN SEQ(a x, b y) WHERE y.ts > x.ts + 2 days WITHIN 9 days")))
    assert "(y.ts = 2024-01-02T00:00:00Z, x.ts = 2024-01-01T00:00:00Z)" in told


NAIVE, ZONED, DAY = dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 1, tzinfo=dt.UTC), dt.date(2024, 1, 1)


@pytest.mark.parametrize("times", [[NAIVE, ZONED], [ZONED, None, NAIVE], [DAY, NAIVE]], ids=str)
def test_python_times_of_two_sorts_are_refused(times: list[Any]) -> None:
    columns = {"ts": [*range(len(times))], "w": times}
    frames: list[Any] = [columns, [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]]
    pandas = pytest.importorskip("pandas")
    frames.append(pandas.DataFrame({"ts": columns["ts"], "w": pandas.Series(times, dtype=object)}))
    for events in frames:
        with pytest.raises(QueryError, match="column `w` mixes"):
            acep.match(events, acep.parse("PATTERN SEQ(ANY x, ANY y) WHERE x.w < y.w WITHIN 1"))


@pytest.mark.parametrize("name", ["ts", "w"])
def test_batches_do_not_change_between_zone_and_none(name: str) -> None:
    def batch(second: int, zone: str | None) -> pa.Table:
        time = dt.datetime(2024, 1, 1, 0, 0, second)
        columns = {"ts": pa.array([time], pa.timestamp("us")), "w": pa.array([time], pa.timestamp("us"))}
        columns[name] = (
            pa.array([second], pa.timestamp("s", zone)) if name == "w" else columns[name].cast(pa.timestamp("us", zone))
        )
        return pa.table({"type": ["a"], **columns})

    for first, second in ((None, "UTC"), ("UTC", None)):
        matcher = acep.Matcher(acep.parse("PATTERN SEQ(a x, a y) WHERE x.w < y.w WITHIN 1 hour"))
        matcher.push(batch(1, first))
        with pytest.raises(DataError, match=rf"column `{name}` is timestamp.* a zone were seen before"):
            matcher.push(batch(2, second))
        if first is not None:
            matcher.push(batch(2, "Europe/Berlin"))  # another zone is no other time


SECONDS = {"ts": [dt.datetime(2026, 1, 1, 10), dt.datetime(2026, 1, 1, 10, 5)], "type": ["a", "b"], "n": [1, 2]}
SECONDS["d"] = [dt.timedelta(seconds=60), dt.timedelta(seconds=900)]  # type: ignore[assignment]


@pytest.mark.parametrize(
    "condition",
    [
        "y.ts - x.ts < 30",
        "30 > y.ts - x.ts",
        "y.ts - x.ts < 1.5",
        "y.ts - x.ts < y.n",
        "y.ts - x.ts < y.n + 5",
        "y.n < 5 min",
        "y.d < 300",
        "max(y.d) < 300",
        "y.d > x.d + 7",
        "y.ts - x.ts + 10 < 20 min",
        "y.ts - x.ts BETWEEN 0 AND 9",
        "y.ts - x.ts IN (5 min, 3)",
        "least(y.ts - x.ts, 5) > 1 s",
        "y.n / (y.ts - x.ts) > 1",
        "CASE WHEN y.n > 1 THEN y.ts - x.ts ELSE 7 END > 1 s",
    ],
)
def test_a_number_beside_a_duration_is_refused(condition: str) -> None:
    """It would count ticks, whose length depends on what times there are."""
    with pytest.raises(acep.QueryError, match="a number beside a duration has no unit of time") as refused:
        acep.match(SECONDS, f"PATTERN SEQ(a x, b y) WHERE {condition}")
    assert "30 min" in str(refused.value.hint)


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("y.ts - x.ts > 0", True),
        ("y.ts - x.ts <= 300 s", True),
        ("(y.ts - x.ts) / 1 s <= 299", False),
        ("y.ts - x.ts < y.d", True),
        ("y.ts - x.ts < 2 * x.d", False),
        ("y.ts - x.ts < y.n * 3 min", True),
        ("y.d >= 900 s AND x.d > 0", True),
        ("count(y.d) < 5", True),
        ("y.d / (y.ts - x.ts) = 3", True),
    ],
)
def test_durations_with_their_units_are_compared(condition: str, holds: bool) -> None:
    for engine in ("native", "reference"):
        found = acep.match(SECONDS, f"PATTERN SEQ(a x, b y) WHERE {condition}", engine=engine)
        assert len(found) == holds, engine


def test_of_an_integer_ts_the_user_knows_the_ticks() -> None:
    assert acep.match({"ts": [1, 9], "type": ["a", "b"]}, "PATTERN SEQ(a x, b y) WHERE y.ts - x.ts < 9").count() == 1


HALF_A_YEAR = 13_132_800_000_000_001


@pytest.mark.parametrize(
    ("value", "nanoseconds"),
    [
        ("y.ts - x.ts", HALF_A_YEAR),
        ("(y.ts - x.ts) * 2 - 1 s", 2 * HALF_A_YEAR - 10**9),
        ("abs(x.ts - y.ts)", HALF_A_YEAR),
        ("CASE WHEN y.ts > x.ts THEN y.ts - x.ts ELSE NULL END", HALF_A_YEAR),
        ("(y.ts - x.ts) / 2", round(Fraction(HALF_A_YEAR, 2))),
        ("(y.ts - x.ts) * 1.5", round(HALF_A_YEAR * 1.5)),
        ("least(y.ts - x.ts, (y.ts - x.ts) / 2)", round(Fraction(HALF_A_YEAR, 2))),
    ],
)
@pytest.mark.parametrize("engine", ["auto", "reference"])
def test_a_duration_of_any_size_is_exact(value: str, nanoseconds: int, engine: str) -> None:
    """Half a year of nanoseconds is beyond the integers that a double holds."""
    ts = pa.array([0, HALF_A_YEAR], pa.timestamp("ns"))
    found = acep.match({"ts": ts, "type": ["a", "b"]}, f"PATTERN SEQ(a x, b y) RETURN {value} AS v", engine=engine)
    assert found.to_arrow().schema.field("values").type.field("v").type == pa.duration("ns")
    assert found.to_arrow(flat=True)["v"].cast(pa.int64()).to_pylist() == [nanoseconds]
    assert np.timedelta64(found[0].values["v"]) == np.timedelta64(nanoseconds, "ns")
