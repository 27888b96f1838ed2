"""A replay finds what one process finds, tells how far it is, and can be taken up again."""

from __future__ import annotations

import gc
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import acep
from acep.errors import DataError, QueryError, SnapshotError
from acep.spark.replay import _keep_matches, replay
from acep.streaming.progress import Progress
from tests.spark.by_hand import as_rows, rows_that_differ
from tests.spark.streams import as_dicts, events_table

pytestmark = pytest.mark.long

QUERY = acep.regex("a(b|c)d", within="20 seconds", by="k", errors=1)


def test_a_replay_finds_what_one_process_finds(spark: Any, capsys: pytest.CaptureFixture[str]) -> None:
    table = events_table(300).drop_columns(["__order", "__row"])
    exact = acep.match(table, QUERY)
    heard: list[Progress] = []
    done = replay(QUERY, table, chunk=100, progress=True, tell=heard.append, session=spark)
    assert [one.batch for one in heard] == list(range(done.batches))
    assert (heard[-1].events, heard[-1].matches) == (done.events, done.matches)
    assert rows_that_differ(as_dicts(done.frame()), as_rows(exact)) == ""
    assert (done.events, done.late, done.matches) == (sum(k is not None for k in table["k"].to_pylist()), 0, len(exact))
    assert done.bundles == len(exact.bundles())
    assert done.batches == 4
    first, _, most, spent = str(done).splitlines()
    assert most.startswith("at most 0.0")
    assert f" {done.live:,} live partial matches and a lag of " in most
    assert done.live > 0 < done.state
    assert done.lag >= 0.001
    assert spent == f"time of micro-batches: {done.spent}"
    assert 0 < done.spent.matching < done.seconds
    assert first.startswith(f"{done.events} events in 4 micro-batches, ")
    told = capsys.readouterr().err.splitlines()
    assert told[0].startswith("batch 1 of 4: ")
    assert f"{len(exact)} matches" in told[-2]
    ends = done.table(5)["end"].to_pylist()
    assert ends == sorted(m.end for m in exact)[:5]
    folder = done.folder
    assert [part.name for part in folder.parent.iterdir()] == ["matches"]


def test_the_matches_of_a_replay_are_removed_with_their_session(tmp_path: Path) -> None:
    class Session:
        """An object that can be referred to weakly."""

    for name in ("matches", "state"):
        (tmp_path / "replay" / name).mkdir(parents=True)
    (tmp_path / "replay" / "events.json").touch()
    session = Session()
    _keep_matches(tmp_path / "replay", session)
    assert [part.name for part in (tmp_path / "replay").iterdir()] == ["matches"]
    del session
    gc.collect()
    assert [*tmp_path.iterdir()] == []


def test_a_replay_in_the_order_of_the_file(spark: Any, tmp_path: Path) -> None:
    rng = random.Random(5)
    ticks = sorted(rng.randrange(200) for _ in range(200))
    mixed = sorted(range(200), key=lambda row: ticks[row] + rng.uniform(0, 8))
    table = pa.table({"t": [ticks[row] for row in mixed], "type": rng.choices("abcd", k=200)})
    late = pa.table({"t": [1, 2], "type": ["a", "b"]})
    path = tmp_path / "events.parquet"
    pq.write_table(pa.concat_tables([table, late]), path)
    query = acep.regex("ab", within=3)
    done = replay(query, path, ts="t", chunk=60, watermark=8, session=spark)
    assert (done.events, done.late) == (200, 2)
    assert rows_that_differ(as_dicts(done.frame()), as_rows(acep.match(table, query, ts="t"))) == ""


def test_a_replay_is_taken_up_and_nothing_else_is(spark: Any, tmp_path: Path) -> None:
    table = events_table(90).drop_columns(["__order", "__row"])
    path, folder = tmp_path / "events.parquet", tmp_path / "checkpoint"
    pq.write_table(table, path)
    first = replay(QUERY, path, checkpoint=folder, session=spark)
    again = replay(QUERY, path, checkpoint=folder, session=spark)
    assert (again.batches, again.matches, again.events) == (0, first.matches, first.events)
    assert replace(again.report, seconds=0) == replace(first.report, seconds=0)
    other = acep.regex("a(b|c)d", within="21 seconds", by="k", errors=1)
    with pytest.raises(SnapshotError, match="made with another query") as told:
        replay(other, path, checkpoint=folder, session=spark)
    assert told.value.hint is not None
    with pytest.raises(SnapshotError, match="made with another chunk"):
        replay(QUERY, path, checkpoint=folder, chunk=7, session=spark)
    pq.write_table(table.slice(1), path)
    with pytest.raises(SnapshotError, match="made with another events"):
        replay(QUERY, path, checkpoint=folder, session=spark)


def test_mistakes_are_told_before_anything_runs(spark: Any) -> None:
    table = pa.table({"ts": np.arange(3), "type": ["a", "b", "c"]})
    query = acep.regex("ab", within=3)
    with pytest.raises(DataError, match="tell= is called after each micro-batch"):
        replay(query, table, tell=5, session=spark)  # type: ignore[arg-type]
    with pytest.raises(DataError, match="chunk=0"):
        replay(query, table, chunk=0, session=spark)
    with pytest.raises(QueryError, match="a query is "):
        replay(5, table, session=spark)  # type: ignore[arg-type]
    with pytest.raises(DataError, match="is null in row 1"):
        replay(query, pa.table({"ts": [1, None], "type": ["a", "b"]}), session=spark)
    fine = pa.table({"ts": pa.array([1, 2], pa.timestamp("ns")), "type": ["a", "b"]})
    with pytest.raises(DataError, match="holds values that Spark's"):
        replay(acep.regex("ab", within="1 hour"), fine, session=spark)


def test_a_replay_reaches_fields_of_structs(spark: Any) -> None:
    devices = [{"id": n % 2, "at": n, "what": "ab"[n % 3 == 2]} for n in range(12)]
    table = pa.table({"dev": devices, "odd.name": pa.array(["x", "y"] * 6)})
    query = acep.parse("PATTERN SEQ(a p, b q) WHERE skip_till_any_match(p, q) { [dev.id, odd.name] } WITHIN 9")
    names = {"ts": "dev.at", "type": "dev.what"}
    exact = acep.match(table, query, **names)
    assert len(exact) > 3
    frame = replay(query, table, **names, chunk=5, session=spark).frame()
    gc.collect()  # the files of the frame stay when the result is gone
    assert rows_that_differ(as_dicts(frame), as_rows(exact)) == ""


def test_no_events_are_no_matches(spark: Any) -> None:
    table = pa.table({"ts": pa.array([], pa.int64()), "type": pa.array([], pa.string())})
    done = replay(acep.regex("ab", within=3), table, session=spark)
    assert (done.events, done.matches, done.bundles) == (0, 0, 0)
    assert done.table().num_rows == 0
