"""Where a stream keeps its state, whether its checkpoint can be taken up, and that any part of a result may be read."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import acep
from acep.errors import SnapshotError
from acep.spark import error_in
from acep.spark.listening import PACKING
from acep.spark.metrics import progress_of
from acep.spark.state_choice import CHECKPOINT, SETTING, SPARK
from acep.spark.workers.spark_state_worker import SPAN
from tests.spark.by_hand import as_rows, same
from tests.spark.streams import Folder, as_dicts, events_table, quiet_match

QUERY = acep.parse("PATTERN SEQ(a p, b+ q[], c r) WHERE skip_till_next_match(p, q, r) { [k] } WITHIN 30 seconds")
OPTIONS = {"watermark": "5 seconds"}


def started(result: Any, folder: Folder, name: str, each: Callable[[Any, int], None] | None = None) -> Any:
    """Run a query over what is there, into foreachBatch or a sink that drops rows; the query that has ended."""
    writer = result.writeStream.format("noop") if each is None else result.writeStream.foreachBatch(each)
    writer = writer.option("checkpointLocation", str(folder.path / name)).trigger(availableNow=True)
    running = writer.start()
    running.awaitTermination()
    return running


def expected_rows(table: Any) -> list[dict[str, Any]]:
    return as_rows(acep.match(table, QUERY, seq="__order", id="__row"))


def test_state_is_in_the_checkpoint_unless_told_otherwise(spark: Any) -> None:
    folder = Folder(spark, events_table(60), 60)
    running = started(quiet_match(folder.frame(), QUERY, **OPTIONS), folder, "checkpoint")
    assert [path.name for path in (folder.path / "checkpoint" / "acep").iterdir()] == [running.id]
    progress = progress_of(running.lastProgress)
    assert progress is not None
    assert progress.route == "state in files of the checkpoint (its folder `acep`): all workers are on this machine"
    assert not running.lastProgress["stateOperators"]


@pytest.mark.long
@pytest.mark.parametrize(
    ("state", "words", "by_setting"),
    [
        (SPARK, "Spark's own store", True),
        pytest.param(CHECKPOINT, "files of the checkpoint", False, marks=pytest.mark.long),
        pytest.param(SPARK, "Spark's own store", False, marks=pytest.mark.long),
        pytest.param(CHECKPOINT, "files of the checkpoint", True, marks=pytest.mark.long),
    ],
)
def test_the_store_is_named_by_an_argument_or_a_setting(spark: Any, state: str, words: str, by_setting: bool) -> None:
    folder = Folder(spark, events_table(60), 60)
    if by_setting:
        spark.conf.set(SETTING, state)
    try:
        result = quiet_match(folder.frame(), QUERY, **OPTIONS, **({} if by_setting else {"state": state}))
    finally:
        spark.conf.unset(SETTING)
    progress = progress_of(started(result, folder, "checkpoint").lastProgress)
    assert progress is not None
    assert words in progress.route
    assert ("setting" in progress.route) == by_setting


@pytest.mark.long
def test_a_folder_of_the_setting_has_the_state(spark: Any, tmp_path: Path) -> None:
    folder = Folder(spark, events_table(60), 60)
    spark.conf.set(SETTING, str(tmp_path))
    try:
        result = quiet_match(folder.frame(), QUERY, **OPTIONS)
    finally:
        spark.conf.unset(SETTING)
    running = started(result, folder, "checkpoint")
    assert [path.name for path in tmp_path.iterdir()] == [running.id]


@pytest.mark.long
def test_a_stream_with_two_watermarks_keeps_its_state_in_spark(spark: Any) -> None:
    folder = Folder(spark, events_table(60), 60)
    one, other = (folder.frame().withWatermark("ts", f"{seconds} seconds") for seconds in (1, 2))
    both = one.where("__row % 2 = 0").union(other.where("__row % 2 = 1"))
    progress = progress_of(started(quiet_match(both, QUERY), folder, "two").lastProgress)
    assert progress is not None
    assert "several watermarks" in progress.route
    progress = progress_of(started(quiet_match(one, QUERY), folder, "one").lastProgress)
    assert progress is not None
    assert "all workers are on this machine" in progress.route


def read_first(result: Any, _: int) -> list[Any]:
    return list(result.take(1))


def read_limit(result: Any, _: int) -> list[Any]:
    return list(result.limit(2).collect())


def show(result: Any, _: int) -> None:
    result.show(1)


def count(result: Any, _: int) -> None:
    result.count()


def is_empty(result: Any, _: int) -> None:
    result.isEmpty()


@pytest.mark.long
@pytest.mark.parametrize(
    ("read_part", "change"),
    [
        (read_limit, lambda result: result.coalesce(1)),
        *(
            pytest.param(read_part, change, marks=pytest.mark.long)
            for read_part, change in (
                (read_first, lambda result: result),
                (show, lambda result: result.limit(7)),
                (count, lambda result: result.where("error = 0")),
                (is_empty, lambda result: result.orderBy("start")),
            )
        ),
    ],
)
def test_any_part_of_a_micro_batch_may_be_read(spark: Any, read_part: Any, change: Any) -> None:
    """In odd micro-batches only a part of the result is read, and in even ones a part and then all of it."""
    table = events_table(300, disorder=4)
    folder = Folder(spark, table, 150)
    rows: dict[int, list[dict[str, Any]]] = {}

    def sink(result: Any, batch: int) -> None:
        read_part(change(result), batch)
        if batch % 2 == 0:
            rows[batch] = as_dicts(result)

    whole: dict[int, list[dict[str, Any]]] = {}
    matches = quiet_match(folder.frame(), QUERY, **OPTIONS)
    started(matches, folder, "parts", sink)
    started(matches, folder, "whole", lambda result, batch: whole.__setitem__(batch, as_dicts(result)))
    assert sum(map(len, whole.values())) == len(expected_rows(table)) > 5
    assert sorted(rows) == [batch for batch in sorted(whole) if batch % 2 == 0]
    for batch, part in rows.items():
        assert same(part, whole[batch])


@pytest.mark.long
def test_a_micro_batch_is_read_again_after_its_sink_failed(spark: Any) -> None:
    table = events_table(300, seed=2, disorder=4)
    folder = Folder(spark, table, 100)
    rows: dict[int, list[dict[str, Any]]] = {}
    failures: set[int] = set()

    def sink(result: Any, batch: int) -> None:
        result.show(1)
        if batch in (1, 3) and batch not in failures:
            failures.add(batch)
            raise RuntimeError("the sink fails")
        rows[batch] = as_dicts(result)

    matches = quiet_match(folder.frame(), QUERY, **OPTIONS).repartition(3)
    for _ in range(2):
        with pytest.raises(Exception, match="the sink fails"):
            started(matches, folder, "failing", sink)
    started(matches, folder, "failing", sink)
    assert failures == {1, 3}
    assert same([row for part in rows.values() for row in part], expected_rows(table))


@pytest.mark.long
@pytest.mark.parametrize("united", [lambda one: one.union(one), lambda one: one.union(one).coalesce(1)])
def test_results_may_be_united(spark: Any, united: Any) -> None:
    table = events_table(200, seed=3)
    folder = Folder(spark, table, 50)
    rows, _ = folder.run(united(quiet_match(folder.frame(), QUERY, **OPTIONS)))
    assert same(rows, expected_rows(table) * 2)


@pytest.mark.long
@pytest.mark.parametrize(("first", "second"), [("spark", None), pytest.param(None, "spark", marks=pytest.mark.long)])
def test_a_checkpoint_of_the_other_store_is_refused(spark: Any, first: str | None, second: str | None) -> None:
    folder = Folder(spark, events_table(100), 50)
    late_file = folder.path / "events" / "000001.parquet"
    shutil.move(late_file, folder.path / "later.parquet")
    started(quiet_match(folder.frame(), QUERY, **OPTIONS, state=first), folder, "checkpoint")
    shutil.move(folder.path / "later.parquet", late_file)
    with pytest.raises(Exception, match="STREAM_FAILED") as failure:
        started(quiet_match(folder.frame(), QUERY, **OPTIONS, state=second), folder, "checkpoint")
    error = error_in(failure.value)
    assert isinstance(error, SnapshotError)
    assert "state=" in str(error.hint)
    assert "elsewhere" in str(error) or "Spark's own store" in str(error)


@pytest.mark.long
@pytest.mark.parametrize(
    ("state", "partitions"), [(None, 2), (SPARK, 1), pytest.param(None, 1, marks=pytest.mark.long)]
)
def test_rows_without_a_key_are_counted(spark: Any, state: str | None, partitions: int) -> None:
    table = events_table(140, seed=4)
    folder = Folder(spark, table, 70)
    before = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", partitions)
    try:
        running = started(quiet_match(folder.frame(), QUERY, **OPTIONS, state=state), folder, "checkpoint")
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", before)
    counts = [progress.null_keys_now for p in running.recentProgress if (progress := progress_of(p)) is not None]
    assert sum(counts) == table["k"].null_count > 10


@pytest.mark.long
def test_plans_show_the_steps_of_acep_by_name(spark: Any, capsys: Any) -> None:
    folder = Folder(spark, events_table(20), 20)
    frame = spark.read.schema(folder.columns).parquet(str(folder.path / "events"))
    names = {
        "acep_match": quiet_match(frame, QUERY),
        "acep_match_with_state_in_files": quiet_match(folder.frame(), QUERY, **OPTIONS),
        "acep_match_with_state_in_spark": quiet_match(folder.frame(), QUERY, **OPTIONS, state=SPARK),
    }
    for name, matches in names.items():
        matches.explain()
        plan = capsys.readouterr().out
        assert f" {name}(" in plan
        # Times are observed where rows are packed, and do not travel: a task that Spark repeats sends the same rows.
        assert f"{SPAN}#" not in plan.partition(f"CollectMetrics {PACKING}")[0]
    assert f"CollectMetrics {PACKING}" in plan
