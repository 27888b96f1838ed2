"""``acep.follow`` with a MATCH_RECOGNIZE clause: the rows of one process, from call to call, late and revised too."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import acep
from acep.cli import main
from acep.errors import AcepError, DataError, QueryError, SnapshotError
from acep.row_patterns import partition_choice
from tests.spark.streams import shuffled

CLAUSE = """PARTITION BY k ORDER BY at
    MEASURES MATCH_NUMBER() AS n, FIRST(x) AS high, LAST(DOWN.x) AS low, count(*) AS size
    PATTERN (STRT DOWN+ UP+) DEFINE DOWN AS x < PREV(x), UP AS x > PREV(x)"""


def rows_of(size: int, disorder: float) -> pa.Table:
    rng = random.Random(size)
    ticks = shuffled(range(0, 2 * size, 2), disorder, rng)
    keys, xs = rng.choices([*"ab"], k=size), rng.choices(range(9), k=size)
    return pa.table({"at": ticks, "k": keys, "x": pa.array(xs, pa.int64()), "id": pa.array(range(size), pa.int64())})


def write_files(folder: Path, table: pa.Table, size: int) -> list[Path]:
    """Write rows as files, CSV and Parquet in turn, which are not there yet; return where they will be."""
    paths = []
    for number, begin in enumerate(range(0, table.num_rows, size)):
        is_csv = number % 2
        path = folder / f"{number:03}.{'csv' if is_csv else 'parquet'}.tmp"
        write: Any = pyarrow.csv.write_csv if is_csv else pyarrow.parquet.write_table
        write(table.slice(begin, size), path)
        paths.append(path)
    return paths


def results_in(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for path in sorted(folder.iterdir()) for line in path.read_text().splitlines()]


def texts(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(map(repr, rows))


def follow_all(tmp_path: Path, table: pa.Table, clause: str = CLAUSE, **options: Any) -> list[dict[str, Any]]:
    """Follow files with one call for each, and return all results."""
    (inbox := tmp_path / "in").mkdir()
    paths = write_files(inbox, table, 40)
    places = {"state": tmp_path / "state", "into": tmp_path / "out"}
    for path in paths:
        path.rename(path.with_suffix(""))
        acep.follow(inbox, clause, **places, once=True, end=path == paths[-1], **options)
    return results_in(tmp_path / "out")


@pytest.mark.parametrize("disorder", [0, 50])
def test_files_give_the_rows_of_one_table(tmp_path: Path, disorder: float) -> None:
    table = rows_of(200, disorder)
    rows = follow_all(tmp_path, table, watermark=200 if disorder else 0)
    expected = acep.match_recognize(table, CLAUSE)
    assert expected.num_rows > 10
    assert texts(rows) == texts(expected.to_pylist())


def test_rows_come_and_are_taken_back(tmp_path: Path) -> None:
    table = rows_of(200, 50)
    rows = follow_all(tmp_path, table, watermark=200, speculation="inf", id="id")
    counts: Counter[str] = Counter()
    for row in rows:
        counts[repr({name: value for name, value in row.items() if name != "op"})] += row["op"]
    assert any(row["op"] < 0 for row in rows)
    assert sorted(counts.elements()) == texts(acep.match_recognize(table, CLAUSE).to_pylist())


@pytest.mark.parametrize("work", [100, 4])
def test_a_budget_of_work_is_kept_from_call_to_call(
    tmp_path: Path, work: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partition_choice, "AHEAD", 10)  # a file has few rows
    monkeypatch.setattr(partition_choice, "CREDIT", 1)
    table = rows_of(200, 0)
    table = table.set_column(1, "k", pa.array([f"k{n % 7}" for n in range(200)]))
    progress: list[acep.Progress] = []
    rows = follow_all(tmp_path, table, budget=acep.Budget(work=work, estimate=0.2), tell=progress.append)
    expected = acep.match_recognize(table, CLAUSE).to_pylist()
    last = progress[-1]
    assert not Counter(texts(rows)) - Counter(texts(expected))
    assert last.report.matches == len(rows)
    assert (last.shed > 0) == (work == 4) == (len(rows) < len(expected))
    assert last.report.exact == (work == 100)
    assert last.allowance == work * 200
    assert last.work <= max(work, 20) * 200


def test_the_command_takes_a_budget(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (inbox := tmp_path / "in").mkdir()
    (path,) = write_files(inbox, rows_of(40, 0), 40)
    path.rename(path.with_suffix(""))
    (query := tmp_path / "dips.sql").write_text(CLAUSE)
    words = ["follow", str(query), str(inbox), "--state", str(tmp_path / "state"), "--output", str(tmp_path / "out")]
    assert main([*words, "--end", "--work", "50"]) == 0
    assert "exact: nothing was shed" in capsys.readouterr().err
    assert main([*words, "--end", "--cpu", "0.5"]) == 2
    assert "a clause over buckets keeps to a budget of work or memory" in capsys.readouterr().err


def test_a_select_takes_columns(tmp_path: Path) -> None:
    statement = f"SELECT low AS bottom, k FROM files MATCH_RECOGNIZE ({CLAUSE})"  # noqa: S608
    rows = follow_all(tmp_path, rows_of(80, 0), statement)
    assert rows
    assert [*rows[0]] == ["bottom", "k"]


def test_the_summary_counts_rows_of_the_result(tmp_path: Path) -> None:
    (inbox := tmp_path / "in").mkdir()
    (path,) = write_files(inbox, rows_of(40, 0), 40)
    path.rename(path.with_suffix(""))
    done = acep.follow(inbox, CLAUSE, state=tmp_path / "state", into=tmp_path / "out", end=True)
    rows = len(results_in(tmp_path / "out"))
    assert str(done).splitlines()[-1] == f"in all 40 events, {rows} rows of the result"
    assert "node" not in str(done)


def test_a_state_is_of_one_clause(tmp_path: Path) -> None:
    (inbox := tmp_path / "in").mkdir()
    for path in write_files(inbox, rows_of(40, 0), 40):
        path.rename(path.with_suffix(""))
    places = {"state": tmp_path / "state", "into": tmp_path / "out"}
    acep.follow(inbox, CLAUSE, **places, once=True)
    with pytest.raises(SnapshotError, match="another query"):
        acep.follow(inbox, CLAUSE.replace("DOWN+", "DOWN*"), **places, once=True)


@pytest.mark.parametrize(
    ("clause", "options", "message"),
    [
        (CLAUSE, {"output": "points"}, "output= is not for MATCH_RECOGNIZE"),
        (CLAUSE, {"late": True}, "late= is not for MATCH_RECOGNIZE"),
        (CLAUSE, {"budget": acep.Budget(latency=5)}, "keeps to a budget of work or memory"),
        (CLAUSE.replace("PARTITION BY k", ""), {"budget": acep.Budget(work=5)}, "a budget gives up partitions"),
        (CLAUSE, {"budget": acep.Budget(work=5), "speculation": 3}, "gives rows that are final"),
        (CLAUSE, {"budget": acep.Budget(work=5), "policy": "newest"}, "policy='newest' is not for MATCH_RECOGNIZE"),
        (CLAUSE, {"ts": "x"}, "the clause has the times in `at`"),
        (CLAUSE.replace("ORDER BY at", ""), {}, "has no ORDER BY"),
        (CLAUSE.replace("x < PREV(x)", "y < PREV(x)"), {}, "unknown column `y`"),
        (CLAUSE.replace("ORDER BY at", "ORDER BY at DESC"), {}, "the first key of ORDER BY"),
    ],
)
def test_what_a_folder_refuses(tmp_path: Path, clause: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(AcepError, match=message) as caught:
        follow_all(tmp_path, rows_of(40, 0), clause, **options)
    assert isinstance(caught.value, QueryError)


def test_a_budget_without_partitions_is_refused_before_files_come(tmp_path: Path) -> None:
    (inbox := tmp_path / "in").mkdir()
    options = {"state": tmp_path / "state", "into": tmp_path / "out", "budget": acep.Budget(work=5), "once": True}
    with pytest.raises(QueryError, match="a budget gives up partitions"):
        acep.follow(inbox, CLAUSE.replace("PARTITION BY k", ""), **options)


@pytest.mark.parametrize(
    "query",
    [
        "ORDER BY ts MEASURES LAST(x) AS x PATTERN (A B) DEFINE B AS x > A.x",
        "PATTERN SEQ(a A, a B) WHERE B.x > A.x WITHIN 10 RETURN B.x AS x",
    ],
)
def test_a_value_that_is_refused_leaves_no_plan(tmp_path: Path, query: str) -> None:
    (inbox := tmp_path / "in").mkdir()
    places = {"state": tmp_path / "state", "into": tmp_path / "out"}

    def follow(name: str, ts: list[int], xs: list[int], **options: Any) -> None:
        table = pa.table({"ts": ts, "type": ["a"] * len(ts), "x": pa.array(xs, pa.uint64())})
        pyarrow.parquet.write_table(table, inbox / name)
        acep.follow(inbox, query, **places, **options)

    follow("0.parquet", [1, 2], [5, 6], once=True)
    for _ in range(2):
        with pytest.raises(DataError, match=r"1\.parquet: column `x` has an integer beyond 64 bits"):
            follow("1.parquet", [3, 4], [7, 2**64 - 1], once=True)
    (inbox / "1.parquet").unlink()
    follow("2.parquet", [50, 60], [8, 9], end=True)
    assert [row.get("x") or row["values"]["x"] for row in results_in(tmp_path / "out")] == [6, 9]
