"""Jobs that acep starts by itself say so in Spark's UI; those of others keep their descriptions."""

from __future__ import annotations

from typing import Any

import pytest

import acep
from acep.spark import for_each_batch, match
from acep.spark.interpreter import _ANSWERS
from acep.spark.job_descriptions import DESCRIPTION, describe_jobs
from acep.spark.replay import replay
from tests.spark.streams import Folder, events_table

QUERY = acep.parse("PATTERN SEQ(a p, b q) WHERE skip_till_next_match(p, q) { [k] } WITHIN 30 seconds")


def descriptions(spark: Any) -> dict[int, str]:
    """What Spark's UI says of each job, by its number; the UI itself is off in tests."""
    jobs = spark.sparkContext._jsc.sc().statusStore().jobsList(None)
    shown = (jobs.apply(i) for i in range(jobs.size()))
    return {job.jobId(): job.description().get() if job.description().isDefined() else "" for job in shown}


def new_descriptions(spark: Any, before: dict[int, str]) -> list[str]:
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    return [text for number, text in sorted(descriptions(spark).items()) if number not in before]


@pytest.mark.long
def test_the_question_to_a_worker_is_described_and_nothing_else(spark: Any) -> None:
    before = descriptions(spark)
    _ANSWERS.pop(spark, None)
    spark.sparkContext.setLocalProperty(DESCRIPTION, "my own")
    try:
        frame = spark.createDataFrame([(1, "a", 1), (2, "b", 1)], "ts long, type string, k long")
        match(frame, "PATTERN SEQ(a p, b q) WHERE [k] WITHIN 5", seq="ts", id="ts").collect()
        assert spark.sparkContext.getLocalProperty(DESCRIPTION) == "my own"
    finally:
        spark.sparkContext.setLocalProperty(DESCRIPTION, None)
    asked, *others = new_descriptions(spark, before)
    assert asked == "my own\nacep: ask a worker for its Python and its acep"
    assert set(others) == {"my own"}


@pytest.mark.long
def test_jobs_of_for_each_batch_are_described_behind_their_micro_batch(spark: Any) -> None:
    folder = Folder(spark, events_table(60), 60)
    before = descriptions(spark)
    frame = spark.range(1)
    options = {"seq": "__order", "id": "__row", "watermark": "5 seconds"}
    step = for_each_batch(QUERY, lambda table, batch: frame.collect(), on_driver=True, **options)
    writer = folder.frame().writeStream.foreachBatch(step).queryName("night").trigger(availableNow=True)
    writer.option("checkpointLocation", str(folder.path / "checkpoint")).start().awaitTermination()
    texts = new_descriptions(spark, before)
    own = [text for text in texts if text.endswith("\nacep: collect the events")]
    assert own
    assert all(text.startswith("night\nid = ") for text in texts)
    assert any("acep:" not in text for text in texts)  # of the sink


@pytest.mark.long
def test_a_replay_has_a_name(spark: Any, tmp_path: Any) -> None:
    before = descriptions(spark)
    replay(QUERY, events_table(60).select(["ts", "type", "k"]), checkpoint=tmp_path, session=spark, progress=False)
    texts = new_descriptions(spark, before)
    assert any(text.startswith(f"acep replay in {tmp_path}\n") for text in texts)
    assert "acep: count the matches of a replay" in texts


def test_a_description_is_restored_after_a_failure(spark: Any) -> None:
    described = []

    def fail() -> None:
        with describe_jobs(spark, "work"):
            described.append(spark.sparkContext.getLocalProperty(DESCRIPTION))
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert described == ["acep: work"]
    assert spark.sparkContext.getLocalProperty(DESCRIPTION) is None
