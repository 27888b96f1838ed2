"""Spark's default of 200 shuffle partitions is warned of where it takes longer than matching, and only there."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import pytest

from acep.spark import match
from acep.spark.shuffle_partitions import MANY, SETTING, SMALL
from tests.spark.streams import Folder, events_table

QUERY = "PATTERN SEQ(a p, b q) WHERE [k] WITHIN 30 seconds"
OPTIONS = {"seq": "__order", "id": "__row"}


@pytest.fixture
def many_partitions(spark: Any) -> Iterator[None]:
    before = spark.conf.get(SETTING)
    spark.conf.set(SETTING, 200)
    yield
    spark.conf.set(SETTING, before)


@pytest.fixture
def folder(spark: Any) -> Folder:
    return Folder(spark, events_table(20), 20)


def texts_of(frame: Any, query: str = QUERY, **options: Any) -> list[str]:
    """What `match` warns of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        match(frame, query, **OPTIONS, **options)
    assert all(warning.filename == __file__ for warning in caught)
    return [str(warning.message) for warning in caught]


@pytest.mark.long
@pytest.mark.usefixtures("many_partitions")
def test_state_in_many_partitions_is_warned_of_in_one_line(folder: Folder) -> None:
    (text,) = texts_of(folder.frame(), watermark=0, state="spark")
    assert text.startswith("each micro-batch writes 200 partitions of state for 8 buckets: ")
    assert f'spark.conf.set("{SETTING}", 8)' in text
    assert "\n" not in text
    assert texts_of(folder.frame(), watermark=0, state="spark", buckets=200) == []
    assert texts_of(folder.frame(), watermark=0) == []  # files have as many tasks as buckets


@pytest.mark.long
@pytest.mark.usefixtures("many_partitions")
def test_a_small_batch_over_many_partitions_is_warned_of(spark: Any, folder: Folder) -> None:
    files = spark.read.schema(folder.columns).parquet(str(folder.path / "events"))
    (text,) = texts_of(files)
    assert text.startswith("a small batch is spread over 200 partitions")
    assert f'spark.conf.set("{SETTING}", 8), or buckets=8' in text
    assert texts_of(files, buckets=200) == []  # the user says so
    (other_text,) = texts_of(files, QUERY.replace("WHERE [k] ", ""))
    assert "one bucket" in other_text
    great = files.crossJoin(spark.range(SMALL))
    assert texts_of(great) == []


def test_few_partitions_are_not_warned_of(spark: Any, folder: Folder) -> None:
    assert int(spark.conf.get(SETTING)) <= MANY
    assert texts_of(folder.frame(), watermark=0, state="spark") == []
    assert texts_of(spark.read.schema(folder.columns).parquet(str(folder.path / "events"))) == []
