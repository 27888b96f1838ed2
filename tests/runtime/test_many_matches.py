"""One event ends 2^27 matches: a limit, blocks and counts take no memory for them, and where it is too small one line
says so."""

from __future__ import annotations

import subprocess
import sys

import pytest

from acep.native.compiled import native
from tests.thinned import thinned

pytestmark = [
    pytest.mark.skipif(native() is None, reason="of the native core"),
    pytest.mark.skipif(sys.platform != "linux", reason="memory can be limited on Linux"),
]

BEGIN = """
import resource, sys
import acep
from acep.errors import AcepError

def stream(types):
    numbers = range(len(types))
    return {"ts": [*numbers], "type": [*types], "x": [1] * len(types), "y": [*numbers]}

def query(pattern, test="b.x > 0", window="WITHIN 100"):
    return acep.parse(f"PATTERN SEQ({pattern}) WHERE skip_till_any_match(a[]) {{ {test} }} {window}"
                      if "b" not in pattern else
                      f"PATTERN SEQ({pattern}) WHERE skip_till_any_match(a[], b) {{ {test} }} {window}")

import pyarrow.compute  # before memory is short
acep.match(stream("AAB"), query("A+ a[], B b"))
[*acep.Matcher(query("A+ a[], B b")).blocks(stream("AAB"))]
ONE, SIX = "A" * 27 + "B", "A" * 27 + "BCDEF"
with open("/proc/self/statm") as pages:
    taken = int(pages.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (taken + MEMORY, taken + MEMORY))

def peak():  # the most megabytes that this process had at a time; getrusage would begin with those of its parent
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) >> 10 for line in status if line.startswith("VmHWM"))
"""

# By the engine that runs them.
MANY = {
    "merged": ("A+ a[], B b", "b.x > 0", "", "ONE"),
    "windows+merged": ("A+ a[], {B b, C c, D d, E e, F f}", "b.x > 0", "", "SIX"),
    "equal": ("A+ a[], B b", "a[i].x >= a[i-1].x", "", "ONE"),
    "rising": ("A+ a[], B b", "a[i].y > a[i-1].y", "", "ONE"),
    "negation": ("A+ a[], ~C c, B b", "b.x > 0", "", "ONE"),
    "having": ("A+ a[], B b", "b.x > 0", "HAVING count(a) > 3", "ONE"),
}


def run(script: str, memory: int) -> str:
    """Run a script in a process that may take so many megabytes more than acep itself does, and return its output."""
    begin = BEGIN.replace("MEMORY", str(memory << 20))
    done = subprocess.run([sys.executable, "-c", begin + script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.strip()


def asked(name: str) -> str:
    pattern, test, having, events = MANY[name]
    return f'events, asked = stream({events}), query({pattern!r}, {test!r}, "WITHIN 100 " + {having!r})\n'


@pytest.mark.long
@pytest.mark.parametrize("name", thinned([*MANY], 3))
def test_a_limit_and_blocks_are_bounded(name: str) -> None:
    script = asked(name)
    script += """
before = peak()
some = acep.match(events, asked, limit=5)
assert len(some) == 5 and some.report.limited and not some.exact
assert {str(m) for m in some} == {str(m) for m in acep.match(events, asked, limit=5)}
print(peak() - before)
blocks = acep.Matcher(asked).blocks(events)
given = [len(next(blocks)) for _ in range(3)]
batches = acep.match(events, asked, output="batches")
rows = sum(next(batches).num_rows for _ in range(20))
print(min(given), rows > 100_000)
"""
    grown, blocks, *_ = run(script, 400).split("\n")
    assert int(grown) < 30
    assert int(blocks.split()[0]) > 1_000
    assert blocks.endswith("True")


@pytest.mark.long
def test_a_count_makes_no_match() -> None:
    # 2^24 - 1 matches, each of which would take 100 bytes at least.
    script = 'for output in ("count", "points", "bundles"):\n'
    script += (
        '    found = acep.match(stream("A" * 24 + "B"), query("A+ a[], B b", "a[i].y > a[i-1].y"), output=output)\n'
    )
    script += '    print(found if output == "count" else [one.best for one in found])\n'
    script += 'print(acep.match(stream("A" * 24 + "B"), query("A+ a[], B b", "a[i].y > a[i-1].y"), output="bundles")'
    script += "[0].matches)\n"
    assert run(script, 150).split("\n") == [str(2**24 - 1), "[0]", "[0]", str(2**24 - 1)]


@pytest.mark.long
def test_what_is_learned_ahead_makes_no_match() -> None:
    script = 'asked = query("A+ a[], B b", "a[i].y > a[i-1].y", "WITHIN 23")\n'
    script += 'print(len(acep.learn(stream(("A" * 22 + "B") * 2), asked)))'
    assert int(run(script, 300)) > 0


RISING = """
import numpy as np
rng = np.random.default_rng(5)
events = {"ts": np.arange(EVENTS), "type": rng.choice(list("ABCD"), EVENTS), "x": rng.random(EVENTS)}
asked = acep.parse("""
RISING += "'PATTERN SEQ(A a, B b, C c, D d) WHERE skip_till_any_match(a, b, c, d) '\n"
RISING += "'{ b.x > a.x AND c.x > b.x AND d.x > 0.01 } WITHIN 400')\n"


@pytest.mark.long
def test_blocks_under_a_budget_of_work_are_bounded() -> None:
    """2.7 million matches, 500 MB of them where all are there at a time; and batches make no difference, where nothing
    is known of the events behind them."""
    script = RISING.replace("EVENTS", "8000")
    script += """
from acep.native import session
session.STRATEGIES = 0, session.NEVER
budget = acep.Budget(work=8.3)
before = peak()
matcher = acep.Matcher(asked, budget=budget)
sizes = [len(some) for some in matcher.blocks(events)]
print(peak() - before)
again = acep.Matcher(asked, budget=budget)
parts = [{name: column[at : at + 500] for name, column in events.items()} for at in range(0, 8000, 500)]
print(sum(sizes), sum(len(again.push(part)) for part in parts), max(sizes), again.report.work == matcher.report.work)
"""
    grown, counts = run(script, 2000).split("\n")
    given, pushed, most, same = counts.split()
    assert int(grown) < 120
    assert int(given) == int(pushed) > 1_000_000
    assert int(most) <= 1 << 14
    assert same == "True"


@pytest.mark.long
def test_learning_ahead_takes_no_memory_for_matches() -> None:
    script = RISING.replace("EVENTS", "2500").replace("WITHIN 400", "WITHIN 600")
    script += "print(len(acep.learn(events, asked)))\n"
    assert int(run(script, 150)) > 0


@pytest.mark.long
@pytest.mark.parametrize(
    "call",
    [
        "acep.match(events, asked)",
        "matcher.push(events)",
        "[*matcher.blocks(events)]",
        "acep.match(events, asked, limit=9)",
    ],
)
def test_memory_that_is_too_small_is_one_line(call: str) -> None:
    # What a trailing negation may still break waits, whatever is asked for.
    script = 'events, asked = stream(ONE + "BX"), query("A+ a[], B b, ~C c")\nmatcher = acep.Matcher(asked)\n'
    script += f"try:\n    {call}\nexcept AcepError as error:\n"
    script += "    room = [bytes(1000) for _ in range(150_000)]\n"  # where it is caught, there is memory again
    script += "    print(type(error).__name__, error, len(room))\ndel room\n"
    script += "if matcher._tables.stream is not None:\n    for again in (matcher.finish, matcher.snapshot):\n"
    script += "        try:\n            again()\n        except AcepError as error:\n            print(error)\n"
    told = run(script, 400).split("\n")
    assert told[0].startswith("EngineError ")
    assert "memory is too small" in told[0]
    assert "limit" in "".join(told[:2])
    if "matcher" in call:
        assert sum("memory was too small" in line for line in told) == 2
