"""Random schedules of runs on real Spark, whose driver is killed again and again: each run gives what is certain."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.complaints import difference
from tests.spark.killed_schedules import ROUTES
from tests.spark.schedules import Run, Truth, net, random_schedule, runs_of
from tests.spark.test_schedules import QUERIES

pytestmark = pytest.mark.long

PARTS = (range(5), *(range(first, first + 9) for first in range(5, 50, 9)))
"""The seeds of 50 schedules, of which the first ones have all routes. A part takes some minutes."""

SECONDS = 25.0
"""A driver lives so long at most before it is killed; it takes some ten seconds to begin."""


def prepare(folder: Path, seed: int) -> tuple[Truth, Run]:
    """Write a schedule down, and return its truth and the rows of each run."""
    rng = random.Random(seed)
    asked, delay = QUERIES[seed % len(QUERIES)], rng.choice([0, 1, 10])
    runs = [pa.concat_tables(micro_batches) for micro_batches in runs_of(random_schedule(rng, delay)) if micro_batches]
    options = {
        "query": seed % len(QUERIES),
        "delay": delay,
        "buckets": rng.choice([1, 3, 8]),
        "route": ROUTES[seed % len(ROUTES)],
    }
    for name in ("pending", "events", "rows"):
        (folder / name).mkdir(parents=True)
    (folder / "options.json").write_text(json.dumps(options))
    for number, rows in enumerate(runs):
        pq.write_table(rows, folder / "pending" / f"{number:03}.parquet")
    return Truth(asked.query, delay, asked.waits), runs


def take_schedules(folder: Path, kills: int, rng: random.Random, errors: Path) -> int:
    """Take the schedules in a folder, with a driver that is killed so many times; how often it was killed."""
    command = [sys.executable, "-m", "tests.spark.killed_schedules", str(folder)]
    for killed in range(kills + 1):
        with errors.open("a") as file:
            driver = subprocess.Popen(command, stdout=file, stderr=file, start_new_session=True, env=dict(os.environ))
            try:
                driver.wait(timeout=None if killed == kills else rng.uniform(10, SECONDS))
            except subprocess.TimeoutExpired:
                continue
            finally:
                if driver.poll() is None:
                    os.killpg(driver.pid, signal.SIGKILL)
                    driver.wait()
        assert driver.returncode == 0, errors.read_text()[-3000:]
        return killed
    raise AssertionError("the last driver is not killed")


@pytest.mark.parametrize("seeds", [PARTS[0], *(pytest.param(part, marks=pytest.mark.whole) for part in PARTS[1:])])
def test_each_run_gives_what_is_certain_whatever_is_killed(
    tmp_path: Path, seeds: range, record_property: Callable[[str, object], None]
) -> None:
    prepared = {seed: prepare(tmp_path / "schedules" / f"{seed:03}", seed) for seed in seeds}
    began = time.monotonic()
    killed = take_schedules(tmp_path / "schedules", len(seeds), random.Random(), tmp_path / "errors")
    record_property("killed", killed)
    record_property("seconds", time.monotonic() - began)
    for seed, (truth, runs) in prepared.items():
        folder = tmp_path / "schedules" / f"{seed:03}"
        for number, rows in enumerate(runs):
            truth.push(rows)
            written = json.loads((folder / "rows" / f"{number}.json").read_text())
            complaint = difference(net(written), net(truth.matches()), ("written", "certain"))
            assert not complaint, f"seed {seed}, {(folder / 'options.json').read_text()}, run {number}:\n{complaint}"
