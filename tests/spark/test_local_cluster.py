"""A cluster of executors that are processes of their own: both routes of a stream, of which an executor is killed."""

from __future__ import annotations

import os
import random
import signal
import subprocess
from collections.abc import Iterator

import pytest

from acep.spark.state_choice import CHECKPOINTS, SETTING
from tests.spark.cluster_streams import ClusterStream, prepare_stream
from tests.spark.standalone_cluster import executors_of, make_home

pytestmark = [pytest.mark.long, pytest.mark.spark]

MASTER = "local-cluster[2,1,512]"
ROUTES = ("unnamed", "folder")
IN_SPARK = (
    f"state in Spark's own store: on {MASTER} no folder is known that all workers reach: state= or {SETTING} names one"
)

Driven = tuple[ClusterStream, subprocess.Popen[bytes]]


@pytest.fixture(scope="module")
def driven(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driven]:
    """A stream whose driver has begun, and has its executors."""
    folder = tmp_path_factory.mktemp("cluster")
    stream = prepare_stream(folder / "stream", MASTER, ROUTES, 4, random.Random(7))
    stream.put_files(2)
    with stream.driving(make_home(folder)) as driver:
        stream.wait_until(driver, lambda: len(executors_of(driver.pid)) == 2)
        yield stream, driver


def test_both_routes_are_exact_when_an_executor_is_killed(driven: Driven) -> None:
    stream, driver = driven
    stream.wait_until(driver, lambda: all(stream.count_batches("commits")))
    executors = executors_of(driver.pid)
    assert len(executors) == 2
    n_begun = sum(stream.count_batches("offsets"))
    stream.put_files(2)
    stream.wait_until(driver, lambda: sum(stream.count_batches("offsets")) > n_begun)
    os.kill(executors[0], signal.SIGKILL)
    assert driver.wait(timeout=300) == 0, stream.errors()
    assert "Lost executor" in stream.errors()
    assert [complaint for route in ROUTES if (complaint := stream.complaint(route))] == []
    assert stream.taken_over(), "no bucket went from the executor that was killed to another one"


def test_a_stream_says_where_its_state_is_on_a_cluster(driven: Driven) -> None:
    stream, driver = driven
    assert driver.wait(timeout=300) == 0, stream.errors()
    folder = stream.folder
    assert stream.places() == {
        "nothing": IN_SPARK,
        "hdfs": IN_SPARK,
        "unnamed": IN_SPARK,
        "folder": f"state in files of {folder}/folder/state: state= says so",
        CHECKPOINTS: "state in files of the checkpoint (its folder `acep`): "
        f"checkpoints are in {folder}/checkpoints, which Python reaches",
        SETTING: f"state in files of {folder}/state: the setting {SETTING} says so",
    }
