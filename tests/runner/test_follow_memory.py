"""A follower on a small device: memory, files and state stay flat over many micro-batches."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

FOLLOW = """
import os, resource, sys
from pathlib import Path

os.fsync = os.fstat  # the disk need not be waited for
import acep
from tests.runner.streams import put

root, last, megabytes = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
resource.setrlimit(resource.RLIMIT_DATA, (megabytes << 20, megabytes << 20))
query = acep.parse("PATTERN SEQ(a x, b y, ~c z) WHERE [k] WITHIN 50")
events = root / "in"

def rows(number):
    lines = [f"{20 * number + i},{'abcd'[(number + i) % 4]},{(7 * number + i) % 90}" for i in range(20)]
    put(events, f"{number}.csv", "\\n".join(["ts,type,k", *lines, ""]))

def resident():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmRSS"))

def tell(done):
    (events / f"{done.batch}.csv").unlink()
    if done.batch + 1 in (last // 2, last):
        files = sum(1 for _ in (root / "state").rglob("*"))
        print(done.batch + 1, files, done.state, resident())
    if done.batch + 1 < last:
        rows(done.batch + 1)

rows(0)
done = acep.follow(events, query, state=root / "state", into=root / "out", once=True, tell=tell)
assert done.report.events == 20 * last
assert "pyspark" not in sys.modules
"""


@pytest.mark.long
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits of Linux")
def test_memory_files_and_state_are_flat(tmp_path: Path, cases: Callable[[int], int]) -> None:
    """2,000 micro-batches with ACEP_CASES=8."""
    last = cases(250)
    command = [sys.executable, "-c", FOLLOW, str(tmp_path), str(last), "384"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    half, whole = ([int(part) for part in line.split()] for line in done.stdout.splitlines())
    assert whole[0] == last
    assert whole[1] <= half[1] + 200  # plans are removed after every 100 micro-batches
    assert whole[2] <= half[2] + 1024
    assert whole[3] <= half[3] + 6 * 1024  # KB
