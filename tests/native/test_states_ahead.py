"""States in which something lies ahead of the stream are refused, or it still ends with its window.

What began in the far future never leaves its window: partial matches outlive their cells, whose numbers are used
again, so that walks go in circles; lists that are freed by age grow for good. Such a core takes all memory, so each
engine runs in a process of its own, with bounds on memory and time.
"""

from __future__ import annotations

import resource
import struct
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from random import Random

import numpy as np
import pytest

import acep
from acep.events.batch import Batch
from acep.native.session import NativeSession
from acep.plan.choice import base_engine
from acep.plan.compile import Plan
from acep.storage.snapshot import seal, unseal
from tests.case_counts import CaseCounts
from tests.native import harness
from tests.native.harness import ANY, NEXT, pieces, plan_of, session_of, whole
from tests.native.spoilt import REFUSED
from tests.native.test_memory import COUNTED, STEADY

_native = pytest.importorskip("acep.native._native")

BEGIN, EVENTS, AFTERWARDS = 1_000_000, 2_000, 4_000
"""The time of the first event, the number of events before the state is written, and that of the events after it."""
KEYS = 7
FAR = (2**40, 2**62)
MEMORY, SECONDS = 2 << 30, 120  # of address space and of the processor, for the process of an engine
MORE = 3  # so many times the bytes of the right state are too many
NODES = (
    *(text for engine, text in STEADY if engine == "nodes" and "WITHIN" in text),
    f"""PATTERN SEQ((A+ a[], ~B b, C c)+, ~D d, A e) WHERE {ANY}(a[], c, e) {{ b.x > a[i].x AND d.x < c.x }}
        WITHIN 9 HAVING count(a[]) > 1""",
    f"PATTERN SEQ(A+ a[], B b) WHERE {NEXT} {{ [k] AND b.x > a[i].x }} WITHIN 30",
    "PATTERN SEQ(A a, B b, C? c) WHERE [k] WITHIN 30 EVENTS",
)
RISING = tuple(f"PATTERN SEQ(A a, B b, C c) WHERE b.x > a.x AND c.x > {last} WITHIN 40" for last in ("b.x", "0"))
MERGED = tuple(text for engine, text in STEADY if engine == "merged" and "WITHIN" in text)
WINDOWED = f"PATTERN SEQ(A a, B b, D d) WHERE {ANY} {{ [k] }} WITHIN 20"
TEXTS = {
    "nodes": NODES,
    "dominance": RISING,
    "merged": MERGED,
    "count": (COUNTED, f"{COUNTED} EVENTS"),
    "points": (COUNTED, f"{COUNTED} EVENTS"),
    "bundles": (COUNTED, f"{COUNTED} EVENTS"),
    "windows+nodes": (WINDOWED, f"{WINDOWED} EVENTS"),
    "windows+merged": (WINDOWED, f"{WINDOWED} EVENTS"),
}


def events(plan: Plan, size: int, seed: int, begin: int) -> Batch:
    columns = {"k": KEYS, "x": 6, "y": float, "s": ("x", "xy")}
    return whole(plan, harness.stream(size, seed, "ABCD", ts=range(begin, begin + size), **columns))


def ahead(state: bytes, most: int) -> Iterator[bytes]:
    """The state with a word that may be a recent time or position put into the far future; each of at most so many."""
    recent = {
        *range(BEGIN + EVENTS - 100, BEGIN + EVENTS),
        *range(EVENTS - 30, EVENTS + 1),
        *range(EVENTS // KEYS - 40, EVENTS // KEYS + 40),
    }
    places = [at for at in range(len(state) - 7) if struct.unpack_from("<q", state, at)[0] in recent]
    for at in Random(1).sample(places, min(most, len(places))):
        yield state[:at] + struct.pack("<q", FAR[at % len(FAR)]) + state[at + 8 :]


def go_on(session: NativeSession, state: bytes, later_events: Sequence[Batch]) -> int:
    """Load a state, push events after it, and return the bytes that are reserved then."""
    session._session.load(state)
    for piece in later_events:
        session.push(piece)
        if base_engine(session._engine_tables[0][0]) in ("count", "points", "bundles"):
            session.take_counts(0)
    return session._session.bytes


def run(engine: str, states: int) -> None:
    """Let an engine go on with so many states of each query, and write how many it refused and how many it took."""
    refused = taken = 0
    for text in TEXTS[engine]:
        plan = plan_of(text)
        session = session_of(plan, engine)
        session.push(events(plan, EVENTS, 1, BEGIN))
        right = session._session.dump()
        later_events = pieces(events(plan, AFTERWARDS, 2, BEGIN + EVENTS), 500)
        most = MORE * go_on(session_of(plan, engine), right, later_events)
        for state in ahead(right, states):
            try:
                reserved = go_on(session_of(plan, engine), state, later_events)
            except REFUSED:
                refused += 1
            else:
                taken += 1
                place = next(i for i, (a, b) in enumerate(zip(right, state, strict=True)) if a != b)
                assert reserved <= most, f"{text}: byte {place} of the state: {reserved} bytes, at most {most}"
    sys.stdout.write(f"{refused} {taken}")


def bound() -> None:
    if not _native.sanitizers:  # these reserve address space without end
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))


@pytest.mark.long
@pytest.mark.parametrize("engine", TEXTS)
def test_what_lies_ahead_is_refused_or_ends_with_its_window(engine: str, cases: CaseCounts) -> None:
    code = f"from tests.native.test_states_ahead import run; run({engine!r}, {cases(100)})"
    command = [sys.executable, "-c", code]
    process = subprocess.run(command, capture_output=True, text=True, check=False, preexec_fn=bound)
    assert process.returncode == 0, process.stderr
    refused, taken = map(int, process.stdout.split())
    cases.expect(Counter(refused=refused, taken=taken), "refused", "taken")


def test_a_snapshot_with_times_ahead_of_its_clock_is_refused() -> None:
    table = harness.stream(60, ts=range(BEGIN, BEGIN + 60), x=6)
    query = acep.parse(f"PATTERN SEQ(A a, B b, C c) WHERE {ANY} {{ c.x > a.x }} WITHIN 9")
    first = acep.Matcher(query, engine="native")
    first.push(table)
    assert first._tables.stream is not None
    of_matcher, of_stream = first._tables.fingerprint, first._tables.stream.fingerprint
    outer = unseal(first.snapshot(), of_matcher)
    inner = unseal(outer["stream"], of_stream)
    core = inner["native"]["core"]
    places = [at for at in range(len(core) - 7) if struct.unpack_from("<q", core, at)[0] == BEGIN + 59]
    assert places
    for at in places:
        inner["native"]["core"] = core[:at] + struct.pack("<q", BEGIN + 60) + core[at + 8 :]
        with pytest.raises(acep.SnapshotError):
            acep.Matcher(query, engine="native").restore(seal(outer | {"stream": seal(inner, of_stream)}, of_matcher))


def test_events_before_a_loaded_state_are_refused() -> None:
    plan = plan_of("PATTERN SEQ(A a, B b, C c) WITHIN 9")
    session, other = (session_of(plan, "nodes") for _ in range(2))
    session.push(events(plan, 60, 1, BEGIN))
    other._session.load(session._session.dump())
    with pytest.raises(ValueError, match="older than the state"):
        other.push(events(plan, 5, 1, BEGIN - 5))
    (matches,) = other.push(events(plan, 5, 1, BEGIN + 60))
    assert np.all(matches.end >= BEGIN + 60)
