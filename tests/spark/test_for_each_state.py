"""Where for_each_batch keeps its state: in the checkpoint of its stream, unless a folder is named."""

from __future__ import annotations

import shutil
from typing import Any

import pytest
from pyspark.sql import SparkSession

import acep
from acep.cli import main
from acep.errors import AcepError, DataError, EngineError, SnapshotError
from acep.spark import error_in, for_each_batch
from acep.spark.query_start import PROPERTY
from acep.spark.state_choice import SETTING
from tests.spark.by_hand import as_rows, same
from tests.spark.streams import Folder, as_dicts, events_table

QUERY = acep.parse("PATTERN SEQ(a p, b q) WHERE skip_till_next_match(p, q) { [k] } WITHIN 30 seconds")
OPTIONS = {"seq": "__order", "id": "__row", "watermark": "5 seconds"}


def run(folder: Folder, sink: Any = lambda matches, batch: None, **options: Any) -> Any:
    """Run the query over what is there; the query that has ended."""
    writer = folder.frame().writeStream.foreachBatch(for_each_batch(QUERY, sink, **OPTIONS, **options))
    writer = writer.option("checkpointLocation", str(folder.path / "checkpoint")).trigger(availableNow=True)
    running = writer.start()
    running.awaitTermination()
    return running


@pytest.mark.long
@pytest.mark.parametrize("on_driver", [True, pytest.param(False, marks=pytest.mark.long)])
def test_it_is_in_the_checkpoint_and_goes_on_there(spark: Any, capsys: Any, on_driver: bool) -> None:
    table = events_table(200, seed=13)
    folder = Folder(spark, table, 100, end=False)
    rows: list[dict[str, Any]] = []

    def sink(matches: Any, _: int) -> None:
        rows.extend(matches.to_pylist(maps_as_pydicts="strict") if on_driver else as_dicts(matches))

    run(folder, sink, on_driver=on_driver)
    folder.end()
    running = run(folder, sink, on_driver=on_driver)
    assert [path.name for path in (folder.path / "checkpoint" / "acep").iterdir()] == [running.id]
    assert same(rows, as_rows(acep.match(table, QUERY, seq="__order", id="__row")))
    assert main(["state", str(folder.path / "checkpoint")]) == 0
    assert running.id in capsys.readouterr().out
    assert spark.sparkContext.getLocalProperty(PROPERTY) is None  # that of the stream's own thread


@pytest.mark.long
def test_a_setting_names_the_folder_or_the_checkpoint(spark: Any, tmp_path: Any) -> None:
    folder = Folder(spark, events_table(60), 60)
    spark.conf.set(SETTING, str(tmp_path))
    try:
        running = run(folder, on_driver=True)
        assert [path.name for path in tmp_path.iterdir()] == [running.id]
        spark.conf.set(SETTING, "spark")
        with pytest.raises(DataError, match="keeps its state in files of a folder"):
            for_each_batch(QUERY, print, **OPTIONS)
    finally:
        spark.conf.unset(SETTING)


@pytest.mark.long
def test_a_stream_does_not_begin_anew_where_its_state_is_in_another_folder(spark: Any, tmp_path: Any) -> None:
    folder = Folder(spark, events_table(120), 60)
    late_file = folder.path / "events" / "000001.parquet"
    shutil.move(late_file, folder.path / "later.parquet")
    run(folder, state=tmp_path, on_driver=True)
    shutil.move(folder.path / "later.parquet", late_file)
    with pytest.raises(Exception, match="STREAM_FAILED") as failure:
        run(folder, on_driver=True)
    assert isinstance(error_in(failure.value), SnapshotError)


@pytest.mark.parametrize("state", [None, "checkpoint"])
def test_where_the_checkpoint_cannot_be_known_it_is_refused(monkeypatch: pytest.MonkeyPatch, state: str | None) -> None:
    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: None)
    with pytest.raises(EngineError, match="without a session no checkpoint is known") as refused:
        for_each_batch(QUERY, print, state=state, **OPTIONS)
    assert isinstance(refused.value, AcepError)
    assert "state= names the folder" in str(refused.value.hint)


def test_on_a_cluster_it_is_refused_unless_all_workers_reach_the_checkpoint(
    spark: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    conf = {"spark.master": "spark://there:7077"}
    monkeypatch.setattr(type(spark.conf), "get", lambda _, name, default=None: conf.get(name, default))
    with pytest.raises(EngineError, match="on spark://there:7077 no checkpoint is known"):
        for_each_batch(QUERY, print, **OPTIONS)
    for_each_batch(QUERY, print, **OPTIONS, state="checkpoint")  # the user says that they do
    for_each_batch(QUERY, print, **OPTIONS, on_driver=True)
    conf["spark.sql.streaming.checkpointLocation"] = str(tmp_path)
    for_each_batch(QUERY, print, **OPTIONS)
