"""Memory: flat on long streams, and under a budget enough for keys that come later (tests/native/test_budgets.py)."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pytest

import acep
from tests.native import harness
from tests.native.harness import ANY, NEXT, plan_of, session_of, whole
from tests.test_imports import ROOT

pytest.importorskip("acep.native._native")

MERGED = (
    f"SEQ(A a, B b, C c) WHERE {ANY}(a, b, c) WITHIN 12",
    f"SEQ(A a, B b, C c) WHERE {ANY}(a, b, c) {{ [k] }} WITHIN 60",
    f"SEQ(A a, B b, C c) WHERE {ANY}(a, b, c) WITHIN 12 EVENTS",
    f"SEQ(A a, B b, C c) WHERE {ANY}(a, b, c) {{ [k] }} WITHIN 12 EVENTS",
    f"SEQ(A a, B+ b[], C c) WHERE {NEXT}(a, b[], c) WITHIN 12",
    f"SEQ(A a, B b, C c) WHERE {NEXT}(a, b, c)",
    f"SEQ(A a, B b, C c) WHERE {NEXT}(a, b, c) {{ [k] }}",
    "SEQ(A a, B+ b[], C c) WHERE partition_contiguity(a, b[], c) { [k] }",
    "SEQ(A a, B+ b[], C c) WHERE strict_contiguity(a, b[], c)",
)
NODES = (
    f"SEQ(A a, ~B b, C c) WHERE {NEXT}(a, c) {{ [k] AND b.x > a.x }} WITHIN 20",
    f"SEQ(~B b, A a, C c) WHERE {ANY}(a, c) {{ [k] }} WITHIN 20",
    f"SEQ(A a, C c, ~B b) WHERE {ANY}(a, c) {{ [k] AND b.x = c.x }} WITHIN 20",
    f"SEQ(A a, ~B b, C c) WHERE {NEXT}(a, c) {{ [k] AND b.x > a.x }}",
    f"SEQ(A a, C c, ~B b) WHERE {ANY}(a, c) WITHIN 20 EVENTS",
    f"SEQ(A a, B b, C c) WHERE {ANY}(a, b, c) {{ [k] }} WITHIN 20 HAVING a.x < c.x RETURN a.x + c.x AS n",
    f"SEQ(A a, B b, C c) WHERE {ANY}(a, b, c) {{ [k] }} WITHIN 20 OUTPUT NON OVERLAP",
    f"SEQ({{A a, B b}}, C c) WHERE {ANY}(a, b, c) {{ [k] }} WITHIN 20 OUTPUT EARLIEST MAXIMAL",
)
STEADY = [(engine, f"PATTERN {text}") for engine, texts in (("nodes", NODES), ("merged", MERGED)) for text in texts]
"""Engines and queries that need no more memory for a longer stream."""
COUNTED = f"PATTERN SEQ(A a, B+ b[], C c) WHERE {ANY} {{ [k] }} WITHIN 100"


@pytest.mark.parametrize(("engine", "text"), [*STEADY, *((name, COUNTED) for name in ("count", "points", "bundles"))])
def test_memory_is_flat(engine: str, text: str) -> None:
    plan = plan_of(text)
    session, held, counted = session_of(plan, engine), [], text == COUNTED
    for part in range(60):
        times = range(part * 1_000, part * 1_000 + 1_000)
        session.push(whole(plan, harness.stream(1_000, part, "ABC", k=7, x=6, ts=times)))
        if counted:
            session.take_counts(0)
        held.append(session._session.bytes)
    assert counted or session.counts(0).matches > 1_000
    assert max(held[30:]) <= 1.1 * max(held[:30])  # what leaks would be twice as much


def test_keys_that_come_once_leave_nothing() -> None:
    plan = plan_of(f"PATTERN SEQ(A a, B b) WHERE {ANY}(a, b) {{ [k] }} WITHIN 50")
    session, held = session_of(plan, "merged"), []
    for part in range(200):
        times = range(part * 1_000, part * 1_000 + 1_000)
        session.push(whole(plan, harness.letters("AB" * 500, ts=times, k=times)))
        held.append(session._session.bytes)
    assert max(held[50:]) <= 2 * max(held[:50])  # buffers double; what leaks would be four times as much


def test_memory_has_no_bound_behind_match_windows() -> None:
    plan = plan_of(f"PATTERN SEQ(A a, B b) WHERE {ANY}(a, b) {{ b.x > a.x }} WITHIN 5")
    with pytest.raises(ValueError, match="not the node engine"):
        session_of(plan, "windows+nodes")._session.bound_memory(0, 1 << 20)


PAGE = (ROOT / "docs/internals/native.md").read_text(encoding="utf-8")
SILENT = dict(re.findall(r"^\| ((?:ALL|NON|EARLIEST|LONGEST)[^|]*?) \| (\d+) \|$", PAGE, re.MULTILINE))
"""The bytes that a silent key takes at most, as the page says, by OUTPUT."""


def bytes_of_silent_key(window: str, output: str, engine: str) -> list[float]:
    """Return the bytes for each key of a stream whose keys have one match each, after some numbers of keys."""
    plan = plan_of(f"PATTERN SEQ(A a, B b) WHERE {ANY}(a, b) {{ [k] }} {window} OUTPUT {output}")
    session, sizes = session_of(plan, engine), []
    for part in range(24):
        times = range(part * 2_000, part * 2_000 + 2_000)
        session.push(whole(plan, harness.letters("AB" * 1_000, ts=times, k=[ts // 2 for ts in times])))
        sizes.append(session._session.bytes / (1_000 * (part + 1)))
    return sizes[15:]  # 16,000 keys and more: buffers double in between


@pytest.mark.parametrize("name", SILENT)
def test_a_silent_key_takes_what_the_page_says(name: str) -> None:
    output, engine = name.partition(",")[0], "merged" if "merged" in name else "nodes"
    for window in ("WITHIN 5 EVENTS", ""):
        assert 0.6 * int(SILENT[name]) < max(bytes_of_silent_key(window, output, engine)) <= int(SILENT[name])
    assert max(bytes_of_silent_key("WITHIN 5", output, engine)) < 50


def test_the_page_has_each_output() -> None:
    assert {name.partition(",")[0] for name in SILENT} == {
        "ALL",
        "NON OVERLAP",
        "EARLIEST MAXIMAL",
        "LONGEST NON OVERLAP",
    }


EVENTS = 40_000
SHORT_LIVED = f"PATTERN SEQ(A a, B b) WHERE {ANY}(a, b) {{ [k] AND b.x > a.x }}"


def short_lived() -> pa.Table:
    """A stream of which each key has ten events."""
    return harness.stream(EVENTS, types="AB", k=np.arange(EVENTS) // 10, x=float)


@pytest.mark.long
@pytest.mark.parametrize("window", ["WITHIN 40 EVENTS", ""])
def test_keys_that_come_no_more_make_way_for_others(window: str) -> None:
    """Without a window in time nothing says that a key is done with."""
    stream, query = short_lived(), acep.parse(f"{SHORT_LIVED} {window}")
    exact = acep.match(stream, query, output="count")
    runs = []
    for size in (10_000, 700):
        matcher = acep.Matcher(query, budget=acep.Budget(memory="1 MB"), policy="newest")
        found = [match for at in range(0, EVENTS, size) for match in matcher.push(stream.slice(at, size))]
        runs.append([(match.key, match.end) for match in found])
    assert runs[0] == runs[1]
    late = sum(end >= EVENTS * 3 // 4 for _, end in runs[0])
    assert exact / 8 < late < exact / 4
    assert 0 < matcher.report.memory <= 2**20
    assert matcher.report.shed > 0


def test_the_recall_is_estimated_too_where_keys_make_way_for_others() -> None:
    budget, stream = acep.Budget(memory="1 MB", work=0.3, estimate=0.3), short_lived()
    matcher, units = acep.Matcher(acep.parse(SHORT_LIVED), budget=budget, policy="newest"), []
    for at in range(0, EVENTS, 10_000):
        matcher.push(stream.slice(at, 10_000))
        seen = matcher._tables.stream.counts_of(0).points if matcher._tables.stream else None
        units.append(seen.units if seen else 0.0)
    assert units[-1] > 1.5 * units[1] > 0, units
