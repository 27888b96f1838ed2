"""A follower that is killed at any moment: the next one goes on, and the results are those of one that was not."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

COMMON = """
import json, os, random, sys
from pathlib import Path

import pandas, pyarrow.compute, pyarrow.csv, pyarrow.parquet  # what a child imports counts as calls, too

import acep
from acep.matches import arrow
from acep.output import lines
from acep.native import session as native_session
from acep.events.files import stream
from acep.following import follow
from acep.streaming import step
from tests.runner.killed_child import is_killed
from tests.runner.streams import Stream, lines_of, results, the_same

os.fsync = os.fstat  # a kill loses nothing that was written, and this is a call that touches a file, too
ROOT, SEED, FORM, DAILY = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4] == "daily"
QUERY = acep.parse("PATTERN SEQ(a x, b y, ~c z) WHERE [k] WITHIN 6", errors=1)

rng = random.Random(SEED)
stream = Stream(ROOT, QUERY, max_files=rng.randint(1, 3), into_format=FORM, end=not DAILY, tell=None)
lines = [f"{ts},{rng.choice('abcx')},{rng.randrange(3)}" for ts in range(60)]
parts = ["\\n".join(["ts,type,k", *lines[first : first + 5], ""]) for first in range(0, 60, 5)]
kills = 0

def follow_until_done(work):
    global kills
    while is_killed(rng.randrange(1, 300 + 20 * kills), work):
        kills += 1

if DAILY:  # a file of one name comes each day, and is removed; sometimes the follower looks in between
    for part in parts:
        stream.put("day.csv", part)
        follow_until_done(stream.follow)
        (stream.events / "day.csv").unlink()
        if rng.random() < 0.5:
            kills += is_killed(rng.randrange(1, 150), stream.follow)
    follow_until_done(lambda: stream.follow(end=True))
else:
    for number, part in enumerate(parts):
        stream.put(f"{number:02}.csv", part)
    follow_until_done(stream.follow)
# A process that has used Arrow has threads, and is not forked any more.
for number, part in enumerate(parts):
    (ROOT / f"{number:02}.csv").write_text(part)
exact = lines_of(acep.match(acep.read_events(str(ROOT / "*.csv")), QUERY))
done = stream.follow()
assert exact and the_same(stream.lines(), exact)
assert done.report.events == 60 and done.report.matches == len(exact), done
print(kills)
"""


@pytest.mark.parametrize("files", ["at once", "daily"])
def test_results_are_exact_whenever_a_follower_is_killed(
    files: str, tmp_path: Path, cases: Callable[[int], int]
) -> None:
    """500 kills each with ACEP_CASES=10."""
    kills = 0
    for seed in range(cases(2)):
        form = ("jsonl", "parquet")[seed % 2]
        command = [sys.executable, "-W", "ignore", "-c", COMMON, str(tmp_path / str(seed)), str(seed), form, files]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        kills += int(done.stdout)
    assert kills > 3
