"""A master and workers as processes: drivers, executors and a worker are killed, and what is written is exact."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from acep.spark.state_choice import CHECKPOINTS
from tests.case_counts import CaseCounts
from tests.complaints import difference
from tests.spark.cluster_streams import prepare_stream
from tests.spark.cluster_traces import count_batches, log_settings, read_steps, rows_by_batch
from tests.spark.schedules import net
from tests.spark.standalone_cluster import ROOT, SETTINGS, Cluster, environment_of, kill_group, run_cluster
from tests.spark.test_killed_schedules import prepare

pytestmark = [pytest.mark.long, pytest.mark.spark]

SCHEDULES = 60
KILLS = 40
"""How many processes are killed, besides one of each kind."""
ROUNDS = 60
"""How often files of one stream arrive. Each time but the first an executor or a worker is killed."""
ROUTES = ("unnamed", "folder", "each")
TWINS = {
    "spark.speculation": "true",
    "spark.speculation.interval": "20ms",
    "spark.speculation.minTaskRuntime": "1ms",
    "spark.speculation.multiplier": "1.01",
    "spark.speculation.quantile": "0.1",
}
"""Let Spark run a task twice, on two executors, as soon as another one of its stage is done."""
SECONDS = 600.0
"""A driver that begins no micro-batch in this time is stuck."""


def kill_executor(executors: Sequence[int]) -> bool:
    """Kill the first executor if there is one; return whether there was."""
    with suppress(ProcessLookupError):
        for process in executors[:1]:
            os.kill(process, signal.SIGKILL)
    return bool(executors)


def test_a_long_stream_is_exact_when_executors_and_a_worker_are_killed(
    tmp_path: Path, cases: Callable[[int], int]
) -> None:
    rng, n_rounds = random.Random(), cases(ROUNDS)
    with run_cluster(tmp_path) as cluster:
        routes = (*ROUTES, "private")
        stream = prepare_stream(tmp_path / "stream", cluster.url, routes, 2 * n_rounds, rng, TWINS)
        stream.put_files(2)
        with stream.driving(cluster.home) as driver:
            stream.wait_until(driver, lambda: all(stream.count_batches("commits")))
            for i in range(1, n_rounds):
                n_begun = sum(stream.count_batches("offsets"))
                stream.put_files(2)
                stream.wait_until(driver, lambda n_begun=n_begun: sum(stream.count_batches("offsets")) > n_begun)
                time.sleep(rng.uniform(0, 1))
                if i == 1:
                    cluster.kill_worker()
                    cluster.add_worker()
                else:
                    stream.wait_until(driver, lambda: kill_executor(cluster.executors()))  # the oldest one
            assert driver.wait(timeout=SECONDS) == 0, stream.errors()
    assert stream.errors().count("Lost executor") >= n_rounds - 1
    assert [complaint for route in ROUTES if (complaint := stream.complaint(route))] == []
    refused = stream.places()["private"]
    assert "SnapshotError" in refused
    assert "has not the state of all 4 buckets" in refused
    assert "on a cluster a folder that all workers reach" in refused
    assert stream.taken_over(), "no bucket went from an executor that was killed to another one"


class Schedules:
    """Random schedules that drivers on a cluster take, one driver after the other."""

    def __init__(self, folder: Path, cluster: Cluster) -> None:
        self.folder, self.cluster = folder / "schedules", cluster
        self.log, self.errors = folder / "log", folder / "errors"
        shared = {"spark.master": cluster.url, CHECKPOINTS: str(folder / "checkpoints")}
        self.settings = SETTINGS | shared | log_settings(self.log)

    @contextmanager
    def driving(self) -> Iterator[subprocess.Popen[bytes]]:
        """Run a driver that goes on where the one before was killed."""
        command = [sys.executable, "-m", "tests.spark.killed_schedules", str(self.folder), json.dumps(self.settings)]
        environment = environment_of(self.cluster.home)
        with self.errors.open("a") as file:
            driver = subprocess.Popen(
                command, stdout=file, stderr=file, start_new_session=True, env=environment, cwd=ROOT
            )
        try:
            yield driver
        finally:
            kill_group(driver)

    def waits_for_batch(self, driver: subprocess.Popen[bytes]) -> bool:
        """Wait until a micro-batch more has begun; return whether the driver still runs."""
        began, n_begun = time.monotonic(), self.count_begun()
        while driver.poll() is None and self.count_begun() == n_begun:
            assert time.monotonic() - began < SECONDS, f"no micro-batch: {self.errors.read_text()[-3000:]}"
            time.sleep(0.1)
        return driver.poll() is None

    def count_begun(self) -> int:
        """Return how many micro-batches have been begun in all schedules."""
        return sum(count_batches(folder / "checkpoint", "offsets") for folder in self.folder.iterdir())

    def take(self, actions: list[str], rng: random.Random) -> Counter[str]:
        """Take all schedules, and meanwhile do one action after the other; return what was killed."""
        kills = Counter[str]()
        while True:
            with self.driving() as driver:
                while actions and actions[-1] != "driver" and self.waits_for_batch(driver):
                    time.sleep(rng.uniform(0, 1))
                    kills[action := actions.pop()] += 1
                    if action == "worker":
                        self.cluster.kill_worker()
                        self.cluster.add_worker()
                    elif not kill_executor(rng.sample(executors := self.cluster.executors(), len(executors))):
                        actions.append(action)
                        kills[action] -= 1
                if actions and self.waits_for_batch(driver):
                    time.sleep(rng.uniform(0, 1))
                    kills[actions.pop()] += 1
                    continue
                assert driver.wait(timeout=SECONDS) == 0, self.errors.read_text()[-3000:]
                return kills


@pytest.mark.whole
def test_each_run_gives_what_is_certain_whatever_is_killed_on_a_cluster(
    tmp_path: Path, cases: CaseCounts, record_property: Callable[[str, object], None]
) -> None:
    rng = random.Random()
    first, more = ["driver", "executor", "worker"], rng.choices(["driver", "executor"], k=cases(KILLS))
    prepared = {seed: prepare(tmp_path / "schedules" / f"{seed:03}", seed) for seed in range(cases(SCHEDULES))}
    with run_cluster(tmp_path) as cluster:
        schedules = Schedules(tmp_path, cluster)
        kills = schedules.take(more + rng.sample(first, 3), rng)
    record_property("killed", dict(kills))
    for seed, (truth, runs) in prepared.items():
        folder = schedules.folder / f"{seed:03}"
        for number, rows in enumerate(runs):
            truth.push(rows)
            written = json.loads((folder / "rows" / f"{number}.json").read_text())
            complaint = difference(net(written), net(truth.matches()), ("written", "certain"))
            assert not complaint, f"seed {seed}, {(folder / 'options.json').read_text()}, run {number}:\n{complaint}"
        batches = rows_by_batch(folder / "matches")
        complaint = difference(net([row for rows in batches.values() for row in rows]), net(truth.matches()))
        assert not complaint, f"seed {seed}, { ({batch: net(rows) for batch, rows in batches.items()}) }:\n{complaint}"
    assert set(kills) == set(first), f"the schedules were over after {kills}"
    # Of a few executors that are killed at random none may be the one that stepped a bucket.
    cases.expect({"buckets taken over": len(read_steps(schedules.log).taken_over())}, "buckets taken over")


def test_the_script_stops_what_it_started(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.spark.standalone_cluster", str(tmp_path)]
    script = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert script.stdout is not None
    assert script.stdout.readline().startswith("spark://127.0.0.1:")
    assert len(daemons_in(tmp_path)) == 3
    script.communicate("")
    assert script.returncode == 0
    assert daemons_in(tmp_path) == []


def daemons_in(folder: Path) -> list[str]:
    """The command lines of masters and workers whose programs are in a folder."""
    lines = []
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            line = (path / "cmdline").read_bytes().decode(errors="replace")
            if str(folder) in line and "org.apache.spark.deploy" in line:
                lines.append(line)
    return lines
