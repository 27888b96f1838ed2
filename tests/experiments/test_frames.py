"""Sequences as joins of DuckDB and polars give what acep gives."""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow as pa
import pytest

import acep
from experiments import frames


def expected(case: frames.Case, events: pa.Table) -> int:
    """The number of rows by brute force."""
    rows = list(zip(*(events.column(name).to_pylist() for name in ("ts", "type", "k", "x")), strict=True))
    if case.types == "AB":
        later = [(ts, k) for ts, kind, k, _ in rows if kind == "B"]
        found = 0
        for ts, kind, k, _ in rows:
            after = min((t for t, key in later if key == k and t > ts), default=None)
            found += kind == "A" and after is not None and after - ts <= 2_000
        return found
    matches = [
        (k, c)
        for a, kind, k, x in rows
        if kind == "A"
        for b, other, key, y in rows
        if (other, key) == ("B", k) and a < b <= a + 20_000 and y > x
        for c, last, its, z in rows
        if (last, its) == ("C", k) and b < c <= a + 20_000 and z > y + 0.5
    ]
    return len(matches) if case.output == "matches" else len(set(matches))


@pytest.mark.parametrize("case", frames.CASES, ids=lambda case: case.name)
def test_a_query_gives_what_its_join_means(case: frames.Case) -> None:
    events = case.events(0.001)
    events = events.set_column(2, "k", pa.array([key % 3 for key in events.column("k").to_pylist()]))
    assert len(acep.match(events, case.query, output=case.output)) == expected(case, events) > 0


@pytest.mark.parametrize("case", frames.CASES, ids=lambda case: case.name)
def test_all_systems_give_as_many_rows(case: frames.Case) -> None:
    duckdb, polars = pytest.importorskip("duckdb"), pytest.importorskip("polars")
    rows = frames.measure_case(case, duckdb, polars, scale=0.01, repeats=1)
    assert [row.system for row in rows] == ["acep", "DuckDB", "polars"]
    assert f"{rows[0].size:,} rows." in frames.write_body(rows)


def test_what_is_not_installed_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(SystemExit):
        frames.main(["--output", str(tmp_path)])
    assert "`make bench-frames` installs it" in capsys.readouterr().err
