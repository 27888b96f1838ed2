"""The state of buckets in files under processes that are killed, stopped or run at the same time.

A child process is killed before its first call that touches a file, its second, and so on, so each state of the disk
that a kill can leave is seen.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

COMMON = """
import os, random, signal, sys
from uuid import UUID
from acep.errors import AcepError
from acep.bucket_state import run_orders
from acep.bucket_state.state_files import StateFiles

os.fsync = os.fstat  # a kill loses nothing that was written, and this is a call that touches a file, too
FOLDER, CALL, BUCKETS, KEEP = sys.argv[1], "ab", 2, 2
QUERY = str(UUID(int=1))
CALLED = f"{FOLDER}/{QUERY}/{CALL}"

def task(run):
    return StateFiles(FOLDER, query=QUERY, call=CALL, run=str(UUID(int=run)), buckets=BUCKETS, keep=KEEP)

def state(batch, bucket):
    return f"{batch} {bucket} ".encode() * 3000

def rows(batch):
    return batch * 7, f"{batch:032x}"

def one(batch, bucket, run):
    versions = task(run)
    found = versions.begin_batch(batch)
    assert set(found) == (set(range(BUCKETS)) if batch else set()), found
    for each in found.values():
        assert versions.read(each) == state(batch - 1, each.bucket)
    versions.write(batch, bucket, *rows(batch), state(batch, bucket))
    versions.clean(batch)

def micro_batch(batch, run):
    for bucket in range(BUCKETS):
        one(batch, bucket, run)

def child(number, end, work, *given):
    # Fork a child that does the work, and sends itself a signal before a call that touches a file, counted from 1.
    pid = os.fork()
    if pid == 0:
        left = number
        def count(frame, event, arg):
            nonlocal left
            if event == "c_call" and (arg.__module__ == "posix" or type(arg.__self__).__module__ == "_io"):
                left -= 1
                if left == 0:
                    sys.setprofile(None)
                    os.kill(os.getpid(), end)
        sys.setprofile(count)
        try:
            work(*given)
        except AcepError:
            os._exit(3)
        except BaseException as error:
            sys.setprofile(None)
            print("child", number, repr(error), flush=True)
            os._exit(1)
        os._exit(0)
    return pid

def ended(pid):
    _, status = os.waitpid(pid, 0)
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return None
    assert os.WEXITSTATUS(status) in (0, 3), status
    return os.WEXITSTATUS(status)

def all_whole():
    # Every file that has the name of a version is a whole one.
    for batch in filter(str.isdigit, os.listdir(CALLED)):
        for each in task(1)._list_state_files(int(batch)):
            assert task(1).read(each) == state(int(batch), each.bucket)

def told():
    # How many micro-batches have a folder, and how many files there are that are no versions.
    found = [each for folder, _, names in os.walk(CALLED) if not folder.endswith("runs") for each in names]
    return len(os.listdir(CALLED)) - 1, len([each for each in found if each[0] not in "01"])
"""

KILLED = """
number, batch, run, left = 0, 0, 1, 0
while True:
    number += 1
    end = ended(child(number, signal.SIGKILL, micro_batch, batch, run))
    if os.path.isdir(CALLED):
        all_whole()
        left = max(left, told()[1])
    if end is not None:
        break
    if number % 2:
        run += 1  # the driver was killed; otherwise a worker
    assert ended(child(0, signal.SIGKILL, micro_batch, batch, run)) == 0
    batch += 1
assert end == 0 and left > 0
for later in range(batch, batch + KEEP + 4):
    micro_batch(later, run)
print(number, *told())
"""

LATE = """
number, batch, run, refused = 0, 0, 1, 0
micro_batch(batch, run)
while True:
    number += 1
    pid = child(number, signal.SIGSTOP, one, batch + 1, number % BUCKETS, run)
    _, status = os.waitpid(pid, os.WUNTRACED)
    if not os.WIFSTOPPED(status):
        break
    run += 1
    far = batch + (1 if number % 4 else KEEP + 3)
    for batch in range(batch + 1, far + 1):
        assert ended(child(0, signal.SIGKILL, micro_batch, batch, run)) == 0
    os.kill(pid, signal.SIGCONT)
    refused += ended(pid) == 3
    all_whole()
    batch += 1
    assert ended(child(0, signal.SIGKILL, micro_batch, batch, run)) == 0
for later in range(batch + 1, batch + KEEP + 5):
    micro_batch(later, run)
print(number, refused, *told())
"""

TOGETHER = """
for number in range(int(sys.argv[2])):
    FOLDER = f"{sys.argv[1]}/{number}"
    CALLED = f"{FOLDER}/{QUERY}/{CALL}"
    # Runs that begin at once: one of them goes on, and only one.
    tried = [child(0, 0, one, 0, 0, run) for run in (1, 2, 3)]
    assert {ended(pid) for pid in tried} <= {0, 3}
    again = [ended(child(0, 0, one, 0, 1, run)) for run in (1, 2, 3)]
    assert sorted(again) == [0, 3, 3], again
    run = again.index(0) + 1
    micro_batch(0, run)
    run_orders._begun.clear()
    # Retries and speculative tasks at once, of this run and of the next; one cleans while others write.
    for batch in range(1, 6):
        if batch == 3:
            run = 4
        assert {ended(pid) for pid in [child(0, 0, micro_batch, batch, run) for _ in range(3)]} == {0}
        all_whole()
    assert told() == (KEEP + 2, 0), told()
print("done")
"""

FLAT = """
opened = 0
def count(event, arguments):
    global opened
    opened += event in ("open", "os.listdir", "os.scandir", "os.mkdir", "os.link", "os.remove", "os.rmdir")
sys.addaudithook(count)
def peak():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
seen, last = [], int(sys.argv[2]) // BUCKETS
for batch in range(last):
    before = opened
    micro_batch(batch, 1)
    if batch in (20, last - 1):
        seen.append((opened - before, told()[0], peak()))
print(*seen[0], *seen[1])
"""


def printed(script: str, folder: Path, *given: int) -> list[str]:
    """Run a script that works in a folder which is not there yet, and return its output."""
    command = [sys.executable, "-c", COMMON + script, str(folder / "state"), *map(str, given)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=3600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.split()


@pytest.mark.long
def test_a_kill_leaves_whole_versions_and_nothing_behind(tmp_path: Path) -> None:
    kills, kept, others = map(int, printed(KILLED, tmp_path))
    assert kills > 50
    assert (kept, others) == (4, 0)


@pytest.mark.long
def test_a_task_that_comes_late_changes_nothing(tmp_path: Path) -> None:
    stops, refused, kept, others = map(int, printed(LATE, tmp_path))
    assert stops > 25
    assert 0 < refused < stops
    assert (kept, others) == (4, 0)


def test_tasks_and_runs_at_once(tmp_path: Path, cases: Callable[[int], int]) -> None:
    assert printed(TOGETHER, tmp_path, cases(5)) == ["done"]


def test_many_versions_cost_what_few_do(tmp_path: Path, cases: Callable[[int], int]) -> None:
    """200,000 versions with ACEP_CASES=100."""
    calls, kept, memory, calls_later, kept_later, memory_later = map(int, printed(FLAT, tmp_path, cases(2000)))
    assert calls_later == calls
    assert kept_later == kept == 4
    assert memory_later < memory + 2048  # KB
