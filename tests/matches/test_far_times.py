"""Times that Python's dates do not reach are shown and written as all others are, or refused by name."""

from __future__ import annotations

import io
import json
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import acep
from acep.cli import main
from acep.errors import DataError
from acep.events.times import value_of
from acep.matches.arrow import groups_table
from acep.output.writing import write_table

QUERY = "PATTERN SEQ(a p, b q) WHERE p.x < q.x WITHIN 9 RETURN p.x AS px, q.x AS qx"
YEAR_0, YEAR_14645 = -62_167_219_200, 400_000_000_000  # in seconds
COLUMNS = {
    "date": (pa.array([YEAR_0 // 86_400, 0], pa.date32()), "0000-01-01", "1970-01-01"),
    "date64": (pa.array([YEAR_0 * 1000, 0], pa.date64()), "0000-01-01", "1970-01-01"),
    "s": (pa.array([YEAR_0, 0], pa.timestamp("s")), "0000-01-01T00:00:00", "1970-01-01T00:00:00"),
    "zone": (pa.array([YEAR_0, 0], pa.timestamp("s", "UTC")), "0000-01-01T00:00:00Z", "1970-01-01T00:00:00Z"),
    "ms": (
        pa.array([YEAR_0 * 1000 + 250, 0], pa.timestamp("ms", "UTC")),
        "0000-01-01T00:00:00.250000Z",
        "1970-01-01T00:00:00Z",
    ),
    "late": (pa.array([0, YEAR_14645], pa.timestamp("s")), "1970-01-01T00:00:00", "14645-06-30T15:06:40"),
}


def rows(column: pa.Array) -> pa.Table:
    return pa.table({"ts": [1, 2], "type": ["a", "b"], "x": column})


@pytest.mark.parametrize("name", COLUMNS)
def test_they_are_shown_as_others_are(name: str) -> None:
    column, *texts = COLUMNS[name]
    matches = acep.match(rows(column), QUERY)
    assert len(matches) == 1
    shown = [text.replace("T", " ") for text in texts]
    assert f"px={shown[0]}  qx={shown[1]}" in str(matches)
    assert f"px={shown[0]}  qx={shown[1]}" in str(matches[0])
    assert all(f"<td>{text}</td>" in matches._repr_html_() for text in shown)
    assert all(text in matches[0]._repr_html_() for text in shown)
    why = str(acep.why(rows(column), QUERY.replace("<", ">").partition(" RETURN")[0]))
    for number, text in enumerate(shown):
        assert f"x={text}" in next(line for line in why.splitlines() if line.startswith(f"  event {number}: "))
    for flat in (False, True):
        sink = io.StringIO()
        write_table(matches.to_arrow(flat=flat), sink, "jsonl")
        written = json.loads(sink.getvalue())
        assert [*(written if flat else written["values"]).values()][-2:] == texts


@pytest.mark.parametrize("name", COLUMNS)
def test_the_command_prints_them_in_one_way(
    name: str, tmp_path: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    column, *texts = COLUMNS[name]
    pq.write_table(rows(column), "x.parquet")
    assert main(["match", QUERY, "x.parquet"]) == 0
    assert [*json.loads(capsys.readouterr().out)["values"].values()] == texts
    assert main(["match", QUERY, "x.parquet", "--output", "x.csv"]) == 0
    assert all(text in (tmp_path / "x.csv").read_text() for text in texts)
    assert main(["why", QUERY.replace("<", ">").partition(" RETURN")[0], "x.parquet"]) == 0
    assert texts[0].replace("T", " ") in capsys.readouterr().out


@pytest.mark.parametrize("name", COLUMNS)
def test_a_frame_refuses_those_that_it_cannot_hold_by_name(name: str) -> None:
    column, *texts = COLUMNS[name]
    matches = acep.match(rows(column), QUERY)
    far = texts[name == "late"].replace("T", " ").rstrip("Z")
    with pytest.raises(DataError, match="and Python has dates of the years 1 to 9999 only") as wrong:
        matches.to_pandas()
    assert wrong.value.message.startswith(f"`values.{'qx' if name == 'late' else 'px'}` has the time {far}")
    if name.startswith("date"):
        with pytest.raises(DataError, match="`px` has the time 0000-01-01, "):
            matches.to_pandas(flat=True)
    else:
        assert len(matches.to_pandas(flat=True)) == 1


@pytest.mark.parametrize("name", COLUMNS)
def test_they_are_keys_and_bounds(name: str) -> None:
    far = COLUMNS[name][0][1 if name == "late" else 0]
    column = pa.array([far.value] * 2, pa.int32() if name == "date" else pa.int64()).cast(COLUMNS[name][0].type)
    table = pa.table({"ts": [1, 2], "type": ["a", "b"], "k": column})
    matches = acep.match(table, "PATTERN SEQ(a p, b q) WHERE [k] WITHIN 9")
    assert matches[0].key["k"] == value_of(far)
    assert isinstance(matches[0].key["k"], np.datetime64)
    groups = groups_table(matches.bundles(), matches.schema, ("k",), ("start", "end"))
    assert groups.column("key").combine_chunks().field("k")[0] == far
    nested = pa.table({"ts": [1, 1], "type": ["a", "a"], "o": pa.StructArray.from_arrays([column], ["k"])})
    assert "rows_twice" in acep.lint(nested, "PATTERN SEQ(a p, a q) WITHIN 9").codes


@pytest.mark.parametrize("zone", ["UTC", None])
def test_keys_and_times_of_events_are_shown_with_their_zone(zone: str | None) -> None:
    far = pa.array([YEAR_14645, YEAR_14645 + 1], pa.timestamp("s", zone))
    table = pa.table({"ts": far, "type": ["a", "b"], "k": pa.array([YEAR_0] * 2, pa.timestamp("s", zone))})
    query, mark = "PATTERN SEQ(a p, b q) WHERE [k] WITHIN 9 s", "Z" if zone else ""
    key, start, end = (
        f"{text}{mark}" for text in ("0000-01-01 00:00:00", "14645-06-30 15:06:40", "14645-06-30 15:06:41")
    )
    (match,) = acep.match(table, query)
    assert str(match) == f"k={key}  {start}..{end}  p=0 q=1"
    (point,), (bundle,) = (acep.match(table, query, output=output) for output in ("points", "bundles"))
    assert str(point) == f"k={key}  match point {end}  best=0"
    assert str(bundle) == f"k={key}  match points {end}..{end}  1 match  best=0"
    for shown in (match, point, bundle):
        assert key in shown._repr_html_()
        assert end in shown._repr_html_()
        assert "_zoned" not in repr(shown)
