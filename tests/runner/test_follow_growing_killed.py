"""A file that grows, rotates and is truncated while its follower is killed: every line is taken once."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.thinned import thinned_product

COMMON = """
import json, os, random, shutil, sys
from pathlib import Path

import pandas, pyarrow.compute, pyarrow.csv, pyarrow.json, pyarrow.parquet  # imports of a child count as calls, too

import acep
from acep.matches import arrow
from acep.output import lines
from acep.native import session as native_session
from acep.events.files import stream
from acep.events.files.csv import quote_bits
from acep.following import follow
from acep.streaming import live_buckets, step
from tests.runner.killed_child import is_killed
from tests.runner.streams import lines_of, results, the_same

os.fsync = os.fstat  # a kill loses nothing that was written, and this is a call that touches a file, too
ROOT, SEED, FORM, LOSES = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4] == "loses"
QUERY = acep.parse("PATTERN SEQ(a x, b y, ~c z) WHERE [k] WITHIN 6", errors=1)
rng = random.Random(SEED)
(ROOT / "logs").mkdir(parents=True)
LOG = ROOT / "logs" / f"app.{FORM}"
HEADER = "ts,type,k,text\\n" if FORM == "csv" else ""
MAX_BYTES = rng.choice([1024, 64 << 20])
kills, written, lost, clock = 0, [], [], 0
partial = ""

def follow_log(end=False):
    live_buckets.forget_live()
    source = LOG if SEED % 3 else LOG.parent
    return acep.follow(source, QUERY, state=ROOT / "state", into=ROOT / "found", growing=True, once=True, end=end,
                       max_bytes=MAX_BYTES)

def look():
    global kills
    kills += is_killed(rng.randrange(1, 500), follow_log)

def look_until_done():
    global kills
    while is_killed(rng.randrange(1, 400 + 20 * kills), follow_log):
        kills += 1

def line():
    global clock
    clock += 1
    kind, key = rng.choice("abcx"), rng.randrange(3)
    text = rng.choice(["plain", "in, it", 'a "mark"', "two\\nlines"]) * rng.choice([1, 1, 30])
    if FORM == "csv":
        quoted = text.replace('"', '""')
        return f'{clock},{kind},{key},"{quoted}"\\n'
    return json.dumps({"ts": clock, "type": kind, "k": key, "text": text}) + "\\n"

def write(text):
    with LOG.open("a") as log:
        log.write(text)

def grow():
    # A writer may leave a line half written, and end it later.
    global partial
    if not LOG.exists() or not LOG.stat().st_size:
        write(HEADER)
    lines = [line() for _ in range(rng.randrange(1, 7))]
    text = partial + "".join(lines)
    written.extend(lines)
    cut = rng.randrange(len(lines[-1])) if rng.random() < 0.5 else 0
    partial = text[len(text) - cut :] if cut else ""
    write(text[: len(text) - cut])

def end_line():
    global partial
    if partial:
        write(partial)
    partial = ""

def shift():
    for number in range(20, 0, -1):
        old = Path(f"{LOG}.{number}")
        if old.exists():
            old.rename(f"{LOG}.{number + 1}")

def rotate():
    end_line()
    if LOG.exists():
        shift()
        LOG.rename(f"{LOG}.1")
        if rng.random() < 0.7:
            LOG.write_text(HEADER)

def copy_and_truncate():
    end_line()
    if LOG.exists():
        shift()
        shutil.copy(LOG, f"{LOG}.1")
        if rng.random() < 0.3:
            look()
        os.truncate(LOG, 0)
        if rng.random() < 0.7:
            write(HEADER)

def truncate():
    # Lines that were not taken are lost. If only the header of a file was taken, this cannot be noticed.
    grow()
    end_line()
    look_until_done()
    for _ in range(rng.randrange(1, 4)):
        lost.append(line())
        write(lost[-1])
    os.truncate(LOG, 0)
    write(HEADER)
    later = line()  # as long as what was there before, or shorter
    written.append(later)
    write(later)

grow()
look()
grow()
look_until_done()
for _ in range(25):
    steps = [grow, grow, grow, look, look, look_until_done, rotate, copy_and_truncate]
    rng.choice(steps)()
    if LOSES and rng.random() < 0.2:
        truncate()
if LOSES:
    truncate()
end_line()
grow()
look_until_done()  # a line that is not at its end waits
while is_killed(rng.randrange(1, 800 + 20 * kills), lambda: follow_log(end=True) if not partial else follow_log()):
    kills += 1
end_line()
look_until_done()
# A process that has used Arrow has threads, and is not forked any more.
plans = [json.loads(plan.read_text()) for plan in (ROOT / "state" / "plans").iterdir() if plan.name.isdigit()]
gaps = [gap for plan in plans for gap in plan["gaps"]]
every = ROOT / f"all.{FORM}"
every.write_text(HEADER + "".join(written))
exact = lines_of(acep.match(acep.read_events(str(every)), QUERY))
done = follow_log(end=True)
assert done.ended and done.report.events == len(written), (done.report.events, len(written), gaps)
assert exact and the_same(results(ROOT / "found"), exact)
assert bool(gaps) == bool(lost), (gaps, lost)
assert not list((ROOT / "state" / "stretches").iterdir())
print(kills)
"""


@pytest.mark.parametrize(("form", "how"), thinned_product(["csv", "jsonl"], ["keeps", "loses"], every=3))
def test_each_line_is_taken_once_whenever_a_follower_is_killed(
    form: str, how: str, tmp_path: Path, cases: Callable[[int], int]
) -> None:
    """A schedule keeps all lines, under some name; or it truncates the file with lines that were not taken, which is
    announced. 20 schedules of each with ACEP_CASES=1."""
    kills = 0
    for seed in range(cases(20)):
        command = [sys.executable, "-W", "ignore", "-c", COMMON, str(tmp_path / str(seed)), str(seed), form, how]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
        assert done.returncode == 0, f"seed {seed}: {done.stdout}{done.stderr}"
        kills += int(done.stdout)
    assert kills > 2
