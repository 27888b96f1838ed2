"""Durations come back as durations, in each form of a result, and are never bare ticks."""

from __future__ import annotations

import csv
import datetime as dt
import io
import json
import math
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import acep
from acep.events.durations import convert_to_unit, duration_of, duration_words, iso_duration
from acep.explain.stages import explain
from acep.explain.why import why
from acep.native.compiled import why_not
from acep.output.writing import FEW, group_writer, write_matches

ENGINES = ["native", "reference"] if why_not() is None else ["reference"]
SECOND = dt.timedelta(seconds=1)
BEGIN = dt.datetime(2024, 3, 31)
UNITS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
TIMES: dict[str, tuple[pa.DataType, pa.DataType]] = {
    **{unit: (pa.timestamp(unit), pa.duration(unit)) for unit in UNITS},
    "zone": (pa.timestamp("ms", "Europe/Berlin"), pa.duration("ms")),
    "day": (pa.date32(), pa.duration("s")),
    "date64": (pa.date64(), pa.duration("ms")),
}


def stream(held: pa.DataType = pa.timestamp("us"), gap: dt.timedelta = dt.timedelta(days=1, hours=6)) -> pa.Table:  # noqa: B008
    """An A and two B, each so long after the one before."""
    times = [BEGIN + n * gap for n in range(3)]
    return pa.table(
        {
            "ts": pa.array([time.date() for time in times] if pa.types.is_date(held) else times, held),
            "type": ["A", "B", "B"],
            "d": pa.array([SECOND, 2 * SECOND, 4 * SECOND], pa.duration("s")),
            "n": [1, 2, 4],
        }
    )


def matched(returns: str, table: pa.Table | None = None, where: str = "", **options: Any) -> acep.Matches:
    text = f"PATTERN SEQ(A a, B+ b[]) WHERE skip_till_next_match(a, b[]) {{ {where or 'a.n > 0'} }} RETURN {returns}"
    found: acep.Matches = acep.match(stream() if table is None else table, text, **options)
    return found


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", TIMES)
def test_a_difference_of_times_is_a_duration_in_each_form(name: str, engine: str) -> None:
    held, wanted = TIMES[name]
    gap = dt.timedelta(days=1 if "da" in name else 1.25)
    found = matched("b.ts - a.ts AS gap", stream(held, gap), engine=engine)
    gaps = [gap, 2 * gap]
    assert [one.values["gap"] for one in found] == gaps
    assert all(type(one.values["gap"]) is dt.timedelta for one in found)
    for table in (found.to_arrow(flat=True), found.to_arrow(explode=True)):
        assert table.schema.field("gap").type == wanted
    assert found.to_arrow(flat=True)["gap"].to_pylist() == gaps
    assert found.to_arrow()["values"].to_pylist() == [{"gap": gap} for gap in gaps]
    assert [one["gap"] for one in found.to_pandas()["values"]] == gaps
    flat = found.to_pandas(flat=True)["gap"]
    assert (flat.dtype.kind, flat.tolist()) == ("m", gaps)
    polars = pytest.importorskip("polars")
    assert found.to_polars(flat=True)["gap"].dtype == polars.Duration
    assert found.to_polars(flat=True)["gap"].to_list() == gaps
    assert f"gap={duration_words(gap)}" in str(found)
    assert duration_words(gap) in found._repr_html_()
    assert found[:1].to_arrow(flat=True).schema == found[:0].to_arrow(flat=True).schema


@pytest.mark.parametrize("many", [2, 2 * FEW])
def test_a_duration_is_written_in_each_format(many: int, tmp_path: Path) -> None:
    """Many matches are written by columns, few one by one."""
    times = [BEGIN + dt.timedelta(seconds=90.5) * (n % 2) + dt.timedelta(days=n // 2) for n in range(2 * many)]
    events = pa.table({"ts": pa.array(times, pa.timestamp("us")), "type": ["A", "B"] * many})
    found = acep.match(events, "PATTERN SEQ(A a, B b) WITHIN 1 h RETURN b.ts - a.ts AS gap, (a.ts - b.ts) / 4 AS part")
    assert len(found) == many
    lines, cells = io.StringIO(), io.StringIO()
    write_matches(found, lines, "jsonl")
    write_matches(found, cells, "csv")
    records = [json.loads(line)["values"] for line in lines.getvalue().splitlines()]
    assert records == [{"gap": "PT1M30.5S", "part": "-PT22.625S"}] * many
    rows = list(csv.DictReader(io.StringIO(cells.getvalue())))
    assert [(row["values.gap"], row["values.part"]) for row in rows] == [("PT1M30.5S", "-PT22.625S")] * many
    write_matches(found, tmp_path / "found.parquet")
    values = pq.read_table(tmp_path / "found.parquet")["values"].to_pylist()
    assert values == [{"gap": 90.5 * SECOND, "part": -22.625 * SECOND}] * many


VALUES: list[tuple[str, Any, str | None]] = [
    ("b.d", 2 * SECOND, "s"),
    ("sum(b[].d)", 2 * SECOND, "us"),
    ("min(b[].d)", 2 * SECOND, "s"),
    ("first(b[].d)", 2 * SECOND, "s"),
    ("avg(b[].d)", 2 * SECOND, "us"),
    ("stddev_pop(b[].d)", 0 * SECOND, "us"),
    ("-a.d", -SECOND, "us"),
    ("abs(-a.d)", SECOND, "us"),
    ("b.d - a.d", SECOND, "us"),
    ("b.d * 1.5", 3 * SECOND, "us"),
    ("a.n * b.d / 4", SECOND / 2, "us"),
    ("b.d % 1.5 s", SECOND / 2, "us"),
    ("5 s", 5 * SECOND, "us"),
    ("least(b.d, 90 min)", 2 * SECOND, "us"),
    ("coalesce(0, b.ts - a.ts)", 0 * SECOND, "us"),
    ("coalesce(NULL, b.d)", 2 * SECOND, "us"),
    ("CASE WHEN a.n > 1 THEN 0 ELSE b.ts - a.ts END", dt.timedelta(days=1, hours=6), "us"),
    ("b.ts - a.ts + 0", dt.timedelta(days=1, hours=6), "us"),
    ("b.ts - b.d - a.ts", dt.timedelta(days=1, hours=6) - 2 * SECOND, "us"),
    ("(b.ts - a.ts) / 3", dt.timedelta(hours=10), "us"),
    ("b.d / a.d", 2.0, None),
    ("(b.ts - a.ts) / 1 h", 30.0, None),
    ("sign(-a.d)", -1, None),
    ("count(b[].d)", 1, None),
    ("count(DISTINCT b[].d)", 1, None),
    ("a.d > 0", True, None),
]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("value", "wanted", "unit"), VALUES, ids=[value for value, _, _ in VALUES])
def test_what_is_made_of_durations_is_a_duration(value: str, wanted: Any, unit: str | None, engine: str) -> None:
    found = matched(f"{value} AS v", engine=engine)
    got = found[0].values["v"]
    assert (type(got), got) == (type(wanted), wanted)
    column = found.to_arrow(flat=True)["v"]
    assert unit is None or column.type == pa.duration(unit)
    assert column[0].as_py() == wanted


@pytest.mark.parametrize(
    "value",
    [
        "a.d * b.d",
        "floor(a.d)",
        "round(a.d)",
        "sqrt(a.d)",
        "CAST(a.d AS integer)",
        "CAST(a.d AS text)",
        "a.d % 2",
        "a.d + a.n",
        "a.d + 1",
        "hour(a.d)",
        "length(a.d)",
        "own(a.d)",
    ],
)
def test_what_has_no_unit_is_refused(value: str) -> None:
    double = acep.function(returns="float", version="1", name="own")(lambda x: x)
    query = acep.parse(f"PATTERN SEQ(A a, B b) RETURN {value} AS v", functions=[double])
    with pytest.raises(acep.QueryError, match="duration"):
        acep.match(stream(), query)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("unit", ["s", None])
def test_differences_of_an_integer_ts_come_back_as_durations_where_its_unit_is_known(
    unit: str | None, engine: str
) -> None:
    table = stream().set_column(0, "ts", pa.array([2**60, 2**60 + 5, 2**60 + 7]))
    returns = "b.ts - a.ts AS gap, b.d AS d, max(b[].d) AS m, (b.ts - a.ts) * 3 AS thrice"
    returns += ", b.ts - a.ts + 1 AS other, a.n AS n"
    returns += ", b.ts + 5 s AS later, b.ts - a.ts + 1 h AS longer, b.d / (b.ts - a.ts) AS share" if unit else ""
    found = matched(returns, table, unit=unit, engine=engine)
    tick = SECOND if unit else 1
    wanted = {"gap": 5 * tick, "d": 2 * SECOND, "m": 2 * SECOND, "thrice": 15 * tick, "other": 6, "n": 1}
    wanted |= {"later": 2**60 + 10, "longer": 3605 * SECOND, "share": 0.4} if unit else {}
    assert found[0].values == wanted
    assert {name: type(value) for name, value in found[0].values.items()} == {
        name: type(value) for name, value in wanted.items()
    }
    assert found.to_arrow(flat=True).select([*wanted]).slice(0, 1).to_pylist() == [wanted]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("unit", UNITS)
def test_a_difference_of_integers_of_a_unit_is_a_duration_in_each_form(unit: str, engine: str, tmp_path: Path) -> None:
    table = stream().set_column(0, "ts", pa.array([7, 97, 187]))
    found = matched("b.ts - a.ts AS gap", table, unit=unit, engine=engine)
    gaps = [duration_of(ticks, Fraction(UNITS[unit]), pa.duration(unit)) for ticks in (90, 180)]
    assert [one.values["gap"] for one in found] == gaps
    for flat in (found.to_arrow(flat=True), found.to_arrow(explode=True)):
        assert flat.schema.field("gap").type == pa.duration(unit)
    flat_gaps, words = found.to_pandas(flat=True)["gap"], [*map(duration_words, gaps)]
    assert (flat_gaps.dtype.kind, [*map(duration_words, flat_gaps)]) == ("m", words)
    assert [duration_words(one["gap"]) for one in found.to_pandas()["values"]] == words
    assert f"gap={duration_words(gaps[0])}" in str(found)
    assert duration_words(gaps[0]) in found._repr_html_()
    assert found[:1].to_arrow(flat=True).schema == found[:0].to_arrow(flat=True).schema
    lines, cells = io.StringIO(), io.StringIO()
    write_matches(found, lines, "jsonl")
    write_matches(found, cells, "csv")
    assert [json.loads(line)["values"]["gap"] for line in lines.getvalue().splitlines()] == [*map(iso_duration, gaps)]
    assert [row["values.gap"] for row in csv.DictReader(io.StringIO(cells.getvalue()))] == [*map(iso_duration, gaps)]
    write_matches(found, tmp_path / "found.parquet")
    assert pq.read_table(tmp_path / "found.parquet")["values"].combine_chunks().field("gap").type == pa.duration(unit)


@pytest.mark.parametrize("engine", ENGINES)
def test_conditions_on_integers_of_a_unit_count_ticks(engine: str) -> None:
    """Also where a result is compared in a query over matches: there it has the type that it comes back with."""
    table = stream().set_column(0, "ts", pa.array([7, 97, 187]))
    pair = "PATTERN SEQ(A a, B b) WHERE b.ts - a.ts > 100"
    assert [one.start for one in acep.match(table, pair, unit="s", engine=engine)] == [7]
    assert len(acep.match(table, f"{pair} AND b.ts - a.ts < 3 min", unit="s", engine=engine)) == 0
    inner = "FROM (PATTERN SEQ(A a, B b) RETURN b.ts - a.ts AS gap) AS T PATTERN T t WHERE t.gap > "
    found = acep.match(table, f"{inner} 100 s RETURN t.gap AS gap", unit="s", engine=engine)
    assert [one.values for one in found] == [{"gap": dt.timedelta(minutes=3)}]
    with pytest.raises(acep.QueryError, match="a number beside a duration"):
        acep.match(table, f"{inner} 100", unit="s", engine=engine)
    assert [one.values for one in pushed(f"{inner} 0 s RETURN t.gap AS gap", table, unit="s", engine=engine)] == [
        {"gap": dt.timedelta(seconds=90)},
        {"gap": dt.timedelta(minutes=3)},
    ]


def test_columns_of_times_beside_an_integer_ts() -> None:
    """Their differences are durations, in the finest unit of all columns."""
    table = stream().rename_columns({"ts": "at"}).append_column("ts", pa.array([1, 2, 3]))
    table = table.append_column("other", pa.array([0, 0, 0], pa.timestamp("ns")))
    found = matched("b.at - a.at AS gap, b.d AS d", table)
    assert found[0].values == {"gap": dt.timedelta(hours=30), "d": 2 * SECOND}
    assert found.to_arrow(flat=True).schema.field("gap").type == pa.duration("ns")


@pytest.mark.parametrize("engine", ENGINES)
def test_a_duration_that_no_timedelta_holds_is_one_of_numpy(engine: str) -> None:
    ts = pa.array([0, 1_000_001, 2_000_001], pa.timestamp("ns"))
    found = matched("b.ts - a.ts AS gap, (b.ts - a.ts) / 2 AS half", stream().set_column(0, "ts", ts), engine=engine)
    assert found[0].values == {"gap": np.timedelta64(1_000_001, "ns"), "half": dt.timedelta(microseconds=500)}
    first = found.to_arrow(flat=True).select(["gap", "half"])[:1]
    assert [column[0].cast(pa.int64()).as_py() for column in first.columns] == [1_000_001, 500_000]
    assert found.to_pandas()["values"][0]["gap"].value == 1_000_001
    assert str(found[0]).endswith("gap=1.000001 ms  half=500 us")
    out = io.StringIO()
    write_matches(found[:1], out, "jsonl")
    assert json.loads(out.getvalue())["values"] == {"gap": "PT0.001000001S", "half": "PT0.0005S"}


@pytest.mark.parametrize("engine", ENGINES)
def test_a_duration_beyond_64_bits_is_null_and_fractions_are_rounded(engine: str) -> None:
    returns = "(b.ts - a.ts) * 1e300 AS far, (b.ts - a.ts) * 1e306 * 1e300 AS infinite, (b.ts - a.ts) / 7 AS part"
    found = matched(returns, stream(pa.timestamp("s")), engine=engine)
    part = dt.timedelta(microseconds=round(Fraction(108_000 * 10**6, 7)))
    assert found[0].values == {"far": None, "infinite": None, "part": part}
    assert found.to_arrow(flat=True).select(["far", "infinite", "part"])[:1].to_pylist() == [found[0].values]


def test_scalars_and_columns_are_rounded_alike() -> None:
    ticks = [0.0, -0.0, 0.5, 1.5, -2.5, 1e-9, 2.0**53 + 2, 9.2e18, -9.3e18, math.inf, -math.inf, 4.6e15 + 0.5]
    whole = [0, 1, -1, 2**53 + 1, 2**62, 2**63 - 1, -(2**63), -(2**63) + 1]
    for numbers in (np.array(ticks), np.array(whole)):
        for tick in (1, 1_000, 10**6, 10**9, 60 * 10**9):
            for unit in (u for u in UNITS if tick % UNITS[u] == 0):
                values, beyond = convert_to_unit(numbers, Fraction(tick), pa.duration(unit))
                for number, value, out in zip(numbers.tolist(), values.tolist(), beyond.tolist(), strict=True):
                    one = duration_of(number, Fraction(tick), pa.duration(unit))
                    assert (one is None) is out
                    assert out or np.timedelta64(one).astype(f"m8[{unit}]") == np.timedelta64(value, unit)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_duration_as_a_key(engine: str, tmp_path: Path) -> None:
    table = pa.table({"ts": range(4), "type": [*"AABB"], "d": pa.array([1, 90, 90, 1], pa.duration("s"))})
    found = acep.match(table, "PATTERN SEQ(A a, B b) WHERE [d]", engine=engine)
    assert [one.key for one in found] == [{"d": 90 * SECOND}, {"d": SECOND}]
    assert [one.key["d"] for one in found.bundles()] == [90 * SECOND, SECOND]
    assert [one.key["d"] for one in found.points()] == [90 * SECOND, SECOND]
    assert found.to_arrow()["key"].to_pylist() == [{"d": 90 * SECOND}, {"d": SECOND}]
    for form, wanted in (("jsonl", '{"key": {"d": "PT1M30S"}'), ("csv", "key.d,point,best\nPT1M30S,")):
        out = io.StringIO()
        with group_writer(out, form, heads=("point", "best"), schema=found.schema, keys=found.keys) as write:
            write(found.points())
        assert out.getvalue().startswith(wanted)
    with group_writer(tmp_path / "f.pq", heads=("point", "best"), schema=found.schema, keys=found.keys) as write:
        write(found.points())
    assert pq.read_table(tmp_path / "f.pq")["key"].to_pylist() == [{"d": 90 * SECOND}, {"d": SECOND}]
    assert found.to_arrow(flat=True).schema.field("d").type == pa.duration("s")
    assert [one["d"] for one in found.to_pandas()["key"]] == [90 * SECOND, SECOND]
    assert len(found.events(found[0])) == 2
    assert str(found[0]).startswith("d=1 min 30 s  ")
    for output in ("points", "bundles"):
        counted = acep.match(table, "PATTERN SEQ(A a, B b) WHERE [d]", engine=engine, output=output)
        assert [one.key["d"] for one in counted] == [90 * SECOND, SECOND]


def pushed(query: str, table: pa.Table, **options: Any) -> Iterator[Any]:
    """The matches of a stream that is stopped and taken up again after each event."""
    matcher = acep.Matcher(query, **options)
    for row in range(table.num_rows):
        yield from matcher.push(table.slice(row, 1))
        again = acep.Matcher(query, **options)
        again.restore(matcher.snapshot())
        matcher = again
    yield from matcher.finish()


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("options", [{}, {"lateness": "1 d"}, {"lateness": "1 d", "speculation": "1 d"}], ids=str)
def test_a_stream_that_is_taken_up_again_gives_the_same_durations(options: dict[str, Any], engine: str) -> None:
    text = "PATTERN SEQ(A a, B b, ~A c) WHERE [k] WITHIN 3 d RETURN b.ts - a.ts AS gap, a.d / 4 AS part"
    table = stream().append_column("k", pa.array([SECOND] * 3, pa.duration("s")))
    found = [one for one in pushed(text, table, engine=engine, **options) if one.op > 0]
    gap = dt.timedelta(hours=30)
    assert [one.values for one in found] == [{"gap": n * gap, "part": SECOND / 4} for n in (1, 2)]
    assert all(one.key == {"k": SECOND} for one in found)


def test_batches_of_matches_have_durations() -> None:
    text = "PATTERN SEQ(A a, B b) RETURN b.ts - a.ts AS gap"
    table = pa.Table.from_batches(acep.match(stream(), text, output="batches"))
    assert table.schema.field("values").type.field("gap").type == pa.duration("us")
    assert table["values"].to_pylist() == [{"gap": dt.timedelta(hours=30 * n)} for n in (1, 2)]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("held", [pa.timestamp("s"), pa.timestamp("us"), pa.timestamp("ns", "UTC")], ids=str)
def test_a_time_between_two_ticks_is_given_in_microseconds(held: pa.DataType, engine: str) -> None:
    returns = "b.ts + 500 ms AS later, a.ts + (b.ts - a.ts) / 2 AS middle"
    returns += ", b.ts - TIMESTAMP '2024-03-31 00:00:00.5' AS gap"
    table = stream(held, dt.timedelta(seconds=3))
    found = matched(f"{returns}, least(b.ts + 500 ms, NULL) AS least", table, engine=engine)
    begin = BEGIN.replace(tzinfo=dt.UTC) if held.tz else BEGIN
    wanted = {"later": begin + 3.5 * SECOND, "middle": begin + 1.5 * SECOND, "gap": 2.5 * SECOND}
    assert found[0].values == wanted | {"least": begin + 3.5 * SECOND}
    assert found.to_arrow(flat=True).select([*found[0].values])[:1].to_pylist() == [found[0].values]
    assert found.to_arrow(flat=True).schema.field("middle").type == pa.timestamp("us", held.tz)
    assert found.to_pandas()["values"][0] == found[0].values
    with pytest.raises(acep.QueryError, match="of an inner query is a time that may lie between two ticks"):
        acep.match(table, f"FROM (PATTERN SEQ(A a, B b) RETURN {returns}) AS T PATTERN T t")


def test_times_of_nanoseconds_inside_of_keys_and_values_are_times_in_pandas() -> None:
    table = stream(pa.timestamp("ns")).append_column("k", pa.array([BEGIN] * 3, pa.timestamp("ns")))
    frame = matched("b.ts AS at, b.ts - a.ts AS gap", table, where="[k]").to_pandas()
    assert frame["values"][0] == {"at": BEGIN + dt.timedelta(hours=30), "gap": dt.timedelta(hours=30)}
    assert frame["key"][0] == {"k": BEGIN}


# Queries of queries -------------------------------------------------------------------------------

INNER = "PATTERN SEQ(A a, B b) RETURN b.ts - a.ts AS gap, (b.ts - a.ts) / 2 AS half, a.d AS d, a.n AS n"


@pytest.mark.parametrize("engine", ENGINES)
def test_durations_of_inner_queries(engine: str) -> None:
    text = f"FROM ({INNER}) AS T PATTERN SEQ(T t, T u) WHERE u.gap - t.gap >= 30 h AND t.half < 16 h AND [d] "
    found = acep.match(stream(), text + "RETURN u.gap AS g, u.half AS h, u.d AS d, sum(t.gap) AS s", engine=engine)
    gap = dt.timedelta(hours=30)
    assert [one.values for one in found] == [{"g": 2 * gap, "h": gap, "d": SECOND, "s": gap}]
    assert found[0].key == {"d": SECOND}
    types = {name: found.to_arrow(flat=True).schema.field(name).type for name in ("g", "h", "value_d", "s")}
    assert types == dict.fromkeys(("g", "h", "s"), pa.duration("us")) | {"value_d": pa.duration("s")}
    with pytest.raises(acep.QueryError, match="a number beside a duration"):
        acep.match(stream(), f"FROM ({INNER}) AS T PATTERN SEQ(T t, T u) WHERE u.gap > t.n")
    with pytest.raises(acep.QueryError, match="give `gap` as a duration and as a int"):
        acep.match(stream(), f"FROM ({INNER}) AS T, (PATTERN A a RETURN a.n AS gap) AS U PATTERN SEQ(T t, U u)")


@pytest.mark.parametrize("engine", ENGINES)
def test_values_of_inner_queries_keep_their_types(engine: str) -> None:
    """Also where another column of the events has their name."""
    day, zoned = dt.date(2020, 1, 1), BEGIN.replace(tzinfo=dt.UTC)
    table = stream().append_column("at", pa.array([day] * 3))
    table = table.append_column("z", pa.array([zoned] * 3, pa.timestamp("us", "UTC")))
    inner = "PATTERN SEQ(A a, B b) RETURN b.ts AS at, a.at AS day, a.z AS ts2, a.ts AS z"
    outer = f"FROM ({inner}) AS T PATTERN SEQ(T t, T u) WHERE [day] RETURN t.at AS at, t.day AS d, t.ts2 AS y, t.z AS z"
    found = acep.match(table, outer, engine=engine)
    wanted = {"at": BEGIN + dt.timedelta(hours=30), "d": day, "y": zoned, "z": BEGIN}
    assert [(one.key, one.values) for one in found] == [({"day": day}, wanted)]
    assert found.to_arrow()["values"].to_pylist() == [wanted]
    assert found.to_arrow()["key"].to_pylist() == [{"day": day}]
    for output in ("points", "bundles"):
        assert [one.key for one in acep.match(table, outer, engine=engine, output=output)] == [{"day": day}]


# Text --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("length", "iso", "words"),
    [
        (dt.timedelta(0), "PT0S", "0 s"),
        (dt.timedelta(days=30), "P30D", "30 d"),
        (dt.timedelta(days=1, microseconds=1), "P1DT0.000001S", "1 d 0.000001 s"),
        (-dt.timedelta(minutes=61), "-PT1H1M", "-1 h 1 min"),
        (dt.timedelta(milliseconds=250), "PT0.25S", "250 ms"),
        (-dt.timedelta(microseconds=1500), "-PT0.0015S", "-1.5 ms"),
        (np.timedelta64(7, "ns"), "PT0.000000007S", "7 ns"),
        (np.timedelta64(2**63 - 1, "s"), "P106751991167300DT15H30M7S", "106751991167300 d 15 h 30 min 7 s"),
    ],
    ids=str,
)
def test_a_duration_as_text(length: Any, iso: str, words: str) -> None:
    assert (iso_duration(length), duration_words(length)) == (iso, words)
    pandas = pytest.importorskip("pandas")
    if np.timedelta64(length) < np.timedelta64(10**9, "s"):
        assert pandas.Timedelta(iso) == pandas.Timedelta(length)
        assert iso_duration(pandas.Timedelta(length)) == iso


def test_the_text_of_a_duration_can_be_written_into_a_query() -> None:
    found = matched("b.ts - a.ts AS gap, b.d * 1.25 AS d")
    text = str(found[0]).split("  ")
    gap, length = (part.partition("=")[2] for part in text if part.startswith(("gap", "d=")))
    assert len(matched("1 AS x", where=f"b.ts - a.ts = {gap} AND b.d * 1.25 = {length}")) == 1


# Automata and explanations --------------------------------------------------------------------------


def summed(register: Any = dt.timedelta, transfer: str = "coalesce(r.lasted, 0 s) + (e.ts - r.last)") -> acep.Automaton:
    arcs = [
        acep.arc("begin", "on", "e.type = 'A'", {"last": "e.ts"}),
        acep.arc("on", "on", "e.type = 'B'", {"last": "e.ts", "lasted": transfer}),
        acep.arc("on", "end", "e.type = 'B' AND r.lasted > 90 min", {"d": "e.d"}),
    ]
    return acep.Automaton(arcs, final="end", registers={"last": dt.datetime, "lasted": register, "d": dt.timedelta})


@pytest.mark.parametrize("engine", ENGINES)
def test_a_register_holds_durations(engine: str) -> None:
    table = stream()
    found = acep.match(table, summed(), engine=engine)
    wanted = {"state": "end", "last": BEGIN + dt.timedelta(hours=30), "lasted": dt.timedelta(hours=30), "d": 4 * SECOND}
    assert [one.values for one in found] == [wanted]
    types = found.to_arrow(flat=True).schema
    assert (types.field("lasted").type, types.field("value_d" if "value_d" in types.names else "d").type) == (
        pa.duration("us"),
        pa.duration("us"),
    )
    again = acep.Automaton.from_toml(
        """
        final = "end"
        registers = { lasted = "duration" }
        [[arc]]
        from = "begin"
        to = "end"
        transfer = { lasted = "e.d * 2" }
        """
    )
    assert acep.match(table, again, engine=engine)[0].values["lasted"] == 2 * SECOND
    assert [one.values for one in pushed(summed(), table, engine=engine)] == [wanted]


def test_a_register_refuses_what_is_none_of_its_durations() -> None:
    with pytest.raises(acep.QueryError, match="its new value may be a fraction of a tick"):
        acep.match(stream(), summed(transfer="(e.ts - r.last) / 2"))
    with pytest.raises(acep.QueryError, match="its new value is a duration") as refused:
        acep.match(stream(), summed(int, "e.ts - r.last"))
    assert refused.value.hint == "declare it by timedelta"
    with pytest.raises(acep.QueryError, match="holds a duration, and its new value is an int"):
        acep.match(stream(), summed(transfer="e.n"))
    with pytest.raises(acep.QueryError, match="a duration cannot be an initial value"):
        summed(SECOND)


def test_why_and_explain_show_durations() -> None:
    query = acep.parse("PATTERN SEQ(A a, B b) WHERE b.d > a.d + 1 h AND avg(b.d) > 0")
    told = str(why(stream(), query))
    assert "b.d > a.d + 1 h does not hold (b.d = 4 s, a.d = 1 s)" in told or "(b.d = 2 s, a.d = 1 s)" in told
    far = why(stream(), summed(transfer="e.d"))
    assert (far.registers["lasted"], far.registers["last"]) == ("4 s", (BEGIN + dt.timedelta(hours=60)).isoformat())
    assert "state on (last = 2024-04-02T12:00:00, lasted = 4 s)" in str(far)
    assert "duration lasted" in explain(summed().query)
