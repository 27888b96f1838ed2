"""Drivers and workers that are killed again and again, without warning: the exact result is written, each row once."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import acep
from tests.case_counts import CASES
from tests.runtime.test_revisions import Arriving
from tests.spark.by_hand import as_rows, same
from tests.spark.streams import as_dicts
from tests.spark.test_revised import ROLES, SCHEMA, dense, net, write

pytestmark = pytest.mark.long

KILLS = {"files": 2, "store": 1}
"""How often a driver is killed on each route; ``ACEP_CASES`` multiplies it, and below 1 only the first route is tried:
each kill takes a driver that starts anew."""
ROUTES = [*KILLS][: None if CASES.share >= 1 else 1]
WORKERS = 10
"""How many workers are killed on each route, times ``ACEP_CASES``."""
PAUSE = 0.5
"""Seconds between two of these, at most."""
CHUNK = 190
QUERY = (
    "PATTERN SEQ(a+ p[], b q, ~d r) WHERE skip_till_next_match(p[], q) { [k] AND p[i].x > p[i-1].x } "
    "WITHIN 40 RETURN count(p[]) AS n"
)
DRIVER = """
import sys
import acep
import acep.spark.replay
from acep.spark import get_session
from acep.spark.replay import replay

events, checkpoint, query, chunk, route = sys.argv[1:]
in_files = acep.spark.replay.match
if route == "store":
    acep.spark.replay.match = lambda *args, state, **options: in_files(*args, state="spark", **options)
get_session(**{"spark.master": "local[2, 1000]", "spark.sql.shuffle.partitions": "2", "spark.driver.memory": "512m"})
done = replay(acep.parse(query, errors=1), events, id="id", chunk=int(chunk), checkpoint=checkpoint, buckets=4)
print(done.events, done.late, done.matches)
"""


def events_file(path: Path, chunks: int) -> pa.Table:
    rng = random.Random(11)
    size = chunks * CHUNK
    table = pa.table(
        {
            "ts": sorted(rng.randrange(size) for _ in range(size)),
            "type": rng.choices("aabcd", k=size),
            "k": rng.choices([f"k{i}" for i in range(40)], k=size),
            "x": rng.choices(range(100), k=size),
            "id": [f"e{i}" for i in range(size)],
        }
    )
    pq.write_table(table, path)
    return table


def done_batches(checkpoint: Path) -> int:
    """How many micro-batches have been committed."""
    commits = checkpoint / "checkpoint" / "commits"
    return sum(p.name.isdigit() for p in commits.iterdir()) if commits.exists() else 0


def begun_batches(checkpoint: Path) -> int:
    offsets = checkpoint / "checkpoint" / "offsets"
    return sum(p.name.isdigit() for p in offsets.iterdir()) if offsets.exists() else 0


@pytest.mark.parametrize("route", ROUTES)
def test_killed_drivers_lose_nothing_and_repeat_nothing(
    spark: Any, tmp_path: Path, record_property: Any, cases: Callable[[int], int], route: str
) -> None:
    kills = cases(KILLS[route])
    chunks = 2 * kills + 3
    table = events_file(tmp_path / "events.parquet", chunks)
    checkpoint = tmp_path / "replay"
    rng = random.Random()
    interrupted = 0
    story = []
    for trajectory in range(kills + 3):
        with driving(replaying(tmp_path, checkpoint, route), tmp_path / f"stderr-{trajectory}") as driver:
            if len(story) < kills and killed(driver, checkpoint, rng):
                begun, done = begun_batches(checkpoint), done_batches(checkpoint)
                story.append((begun, done))
                interrupted += begun > done
                continue
            said, _ = driver.communicate(timeout=300)
        assert driver.returncode == 0, (tmp_path / f"stderr-{trajectory}").read_text()[-3000:]
        break
    assert len(story) == kills, f"the stream was over too soon: {story}"
    assert all(done <= chunks for _, done in story)
    assert (checkpoint / "state").exists() == (route == "files")
    check_written(spark, table, checkpoint, said, f"killed at (begun, committed) {story}")
    record_property("killed at (begun, committed)", str(story))
    record_property("within a micro-batch", interrupted)


REVISING = """
import sys
import acep, acep.spark

events, folder, query, versions = sys.argv[1:]
spark = acep.spark.get_session(
    **{"spark.master": "local[2]", "spark.sql.shuffle.partitions": "2", "spark.driver.memory": "512m"}
)
stream = spark.readStream.schema(spark.read.parquet(events).schema).option("maxFilesPerTrigger", 1).parquet(events)
found = acep.spark.match(
    stream, query, id="number", seq="came", op="op", speculation="inf", watermark=4, buckets=4,
    state=folder + "/state", versions=versions,
)
writer = found.writeStream.format("parquet").option("path", folder + "/matches").trigger(availableNow=True)
writer.option("checkpointLocation", folder + "/checkpoint").start().awaitTermination()
"""


EARLIER, LATER = (
    f"PATTERN SEQ(A a, B b, {last.upper()} {last}) WHERE skip_till_next_match(a, b, {last}) {{ [k] }} WITHIN 12"
    for last in "cd"
)
MIDDLE = 1_025  # the time from which on the later query holds


@pytest.mark.whole
def test_matches_are_taken_back_once_whatever_is_killed(
    spark: Any, tmp_path: Path, cases: Callable[[int], int]
) -> None:
    """Five kills with ACEP_CASES=1: the sum of the rows that were written is the exact result. The query is replaced in
    the middle of the stream."""
    rng = random.Random()
    arrived = dense(random.Random(5), 4_000)
    write(arrived.pushes, tmp_path / "events")
    (tmp_path / "versions").mkdir()
    (tmp_path / "versions" / "2.sase").write_text(f"-- since: {MIDDLE}\n{LATER}")
    folders = [str(tmp_path / name) for name in ("events", "run")]
    command = [sys.executable, "-c", REVISING, *folders, EARLIER, str(tmp_path / "versions")]
    kills, done, n_kills = 0, 0, cases(5)
    for trajectory in range(n_kills + 1):
        errors = tmp_path / f"stderr-{trajectory}"
        with driving(command, errors) as driver:
            if kills < n_kills and killed(driver, tmp_path / "run", rng):
                kills += 1
                continue
            driver.communicate(timeout=300)
        assert driver.returncode == 0, errors.read_text()[-3000:]
        done += 1
        break
    assert (kills, done) == (n_kills, 1), "the stream was over too soon"
    rows = as_dicts(spark.read.parquet(str(tmp_path / "run" / "matches")))
    assert net(rows) == replaced(as_it_came(arrived, tmp_path / "run" / "checkpoint" / "offsets"))
    assert any(row["op"] < 0 for row in rows)


def as_it_came(arrived: Arriving, offsets: Path) -> Arriving:
    """The events in the micro-batches that Spark made, by which late ones are judged. A driver that is killed when
    its source has recorded a file, but the stream has not, takes two files in its next micro-batch."""
    read, came = 0, Arriving(arrived.lateness)
    for batch in sorted(int(file.name) for file in offsets.iterdir() if file.name.isdigit()):
        sources = [json.loads(line) for line in (offsets / str(batch)).read_text().splitlines()[2:] if line != "-"]
        end = 1 + max(source["logOffset"] for source in sources)  # the other source has one file
        came.push([row for push in arrived.pushes[read:end] for row in push])
        read = end
    assert read > len(arrived.pushes)
    return came


def replaced(arrived: Arriving) -> Counter[str]:
    """The matches that one process finds in the sorted, corrected stream, with the query replaced in the middle."""
    rows = sorted(
        (row | {"came": place} for place, row in arrived.live.values()), key=lambda row: (row["ts"], row["came"])
    )
    matcher = acep.Matcher(EARLIER, dynamic=True, **ROLES)
    given = [*matcher.push(pa.Table.from_pylist([row for row in rows if row["ts"] < MIDDLE], SCHEMA))]
    matcher.replace(LATER)
    given += matcher.push(pa.Table.from_pylist([row for row in rows if row["ts"] >= MIDDLE], SCHEMA))
    given += matcher.finish()
    assert {name for m in given for name in m.bindings} == {"a", "b", "c", "d"}
    return net(as_rows(given))


@pytest.mark.whole
@pytest.mark.parametrize("route", ROUTES)
def test_killed_workers_lose_nothing_and_repeat_nothing(
    spark: Any, tmp_path: Path, cases: Callable[[int], int], route: str
) -> None:
    kills = cases(WORKERS)
    table = events_file(tmp_path / "events.parquet", 12 + 2 * kills)
    checkpoint, rng, killed = tmp_path / "replay", random.Random(), set[int]()
    with driving(replaying(tmp_path, checkpoint, route), tmp_path / "stderr") as driver:
        wait_for(checkpoint, 1, driver)
        # A worker that waits for work is not missed by anyone: go on until one was killed at work.
        while (len(killed) < kills or not at_work(tmp_path / "stderr")) and driver.poll() is None:
            time.sleep(rng.uniform(0, PAUSE))
            workers = [one for one in workers_of(driver.pid) if one not in killed]
            if workers:
                one = rng.choice(workers)
                killed.add(one)
                with suppress(ProcessLookupError):
                    os.kill(one, signal.SIGKILL)
        said, _ = driver.communicate(timeout=600)
    story = (tmp_path / "stderr").read_text()
    assert driver.returncode == 0, story[-3000:]
    assert len(killed) >= kills, f"the stream was over after {len(killed)} kills"
    assert at_work(tmp_path / "stderr"), "no worker was killed at work"
    check_written(spark, table, checkpoint, said, f"{len(killed)} workers killed")


def at_work(stderr: Path) -> bool:
    """Whether Spark has told of a task that failed."""
    return "Exception in task" in stderr.read_text()


def workers_of(session: int) -> list[int]:
    """The Python workers of a driver, which leads a session of processes. They are children of a daemon."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if b"pyspark.daemon" in (path / "cmdline").read_bytes():
                parent, _, own = (path / "stat").read_text().rpartition(")")[2].split()[1:4]
                if int(own) == session:
                    parents[int(path.name)] = int(parent)
    return [pid for pid, parent in parents.items() if parent in parents]


def killed(driver: subprocess.Popen[str], checkpoint: Path, rng: random.Random) -> bool:
    """Kill a driver after one or two micro-batches more, unless it is done; return whether it was killed."""
    wait_for(checkpoint, done_batches(checkpoint) + rng.randint(1, 2), driver)
    time.sleep(rng.uniform(0, 1.5))
    if driver.poll() is not None:
        return False
    os.killpg(driver.pid, signal.SIGKILL)
    driver.wait()
    return True


def replaying(folder: Path, checkpoint: Path, route: str) -> list[str]:
    """The command of a driver that replays a file of events."""
    return [sys.executable, "-c", DRIVER, str(folder / "events.parquet"), str(checkpoint), QUERY, str(CHUNK), route]


@contextmanager
def driving(command: list[str], errors: Path) -> Iterator[subprocess.Popen[str]]:
    """A driver in a session of its own, so that its JVM can be killed with it and nothing else is."""
    with errors.open("w") as file:
        driver = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=file, text=True, start_new_session=True, env=dict(os.environ)
        )
        try:
            yield driver
        finally:
            if driver.poll() is None:
                os.killpg(driver.pid, signal.SIGKILL)
                driver.wait()
            assert driver.stdout is not None
            driver.stdout.close()


def check_written(spark: Any, table: pa.Table, checkpoint: Path, said: str, story: str) -> None:
    """Compare what was written with the result of one process."""
    exact = as_rows(acep.match(table, acep.parse(QUERY, errors=1), id="id"))
    rows = as_dicts(spark.read.parquet(str(checkpoint / "matches")))
    written = Counter(repr(sorted(row["bindings"].items())) + repr(row["key"]) for row in rows)
    assert max(written.values()) == 1, f"written twice; {story}"
    assert same(rows, exact), story
    assert said.split() == [str(table.num_rows), "0", str(len(exact))]
    assert len(exact) > 100


def wait_for(checkpoint: Path, batches: int, driver: subprocess.Popen[str]) -> None:
    began = time.monotonic()
    while done_batches(checkpoint) < batches and driver.poll() is None:
        assert time.monotonic() - began < 300, "no micro-batch for five minutes"
        time.sleep(0.02)
