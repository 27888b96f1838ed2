"""Small streams of every workload: as many matches as are counted without an engine, and no more work than before.

What each engine did is in ``tests/golden/work.json``. Where less work is meant to be the measure from now on, or a
workload is new, write it again and read the difference:

    ACEP_GOLDEN=write python -m pytest -n 0 tests/experiments/test_work.py
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from experiments.backtrack import backtrack
from experiments.native import ENGINES as NATIVE
from experiments.native import can_run
from experiments.workload import Workload, run
from experiments.workloads import WORKLOADS

pytestmark = pytest.mark.long

# Every engine whose work is held to what it was; one more needs a run with ACEP_GOLDEN=write.
ENGINES = ("reference", *NATIVE)
GOLDEN = Path(__file__).parents[1] / "golden" / "work.json"
WRITE = os.environ.get("ACEP_GOLDEN") == "write"
MORE = 1.02

SMALL = [one for one in WORKLOADS.values() if one.small]


def golden() -> dict[str, dict[str, dict[str, int | None]]]:
    held: dict[str, dict[str, dict[str, int | None]]] = json.loads(GOLDEN.read_text()) if GOLDEN.is_file() else {}
    return held


def small(workload: Workload, data: Callable[[str], Path]) -> pa.Table:
    if workload.file:
        data(workload.file)
    return workload.events().slice(0, workload.small)


def all_run_on(workload: Workload, table: pa.Table, engine: str) -> bool:
    return engine == "reference" or all(can_run(text, table, engine) for text in workload.queries)


KNOWN = [(one, engine) for one in SMALL for engine in ENGINES if WRITE or one.name in golden().get(engine, {})]


@pytest.mark.parametrize("workload", SMALL, ids=lambda one: one.name)
def test_each_engine_that_can_run_it_is_known(workload: Workload, data: Callable[[str], Path]) -> None:
    table = small(workload, data)
    can = {engine for engine in ENGINES if all_run_on(workload, table, engine)}
    assert can == {engine for one, engine in KNOWN if one is workload and (not WRITE or engine in can)}


def in_thirds(pairs: list[tuple[Workload, str]]) -> list[Any]:
    """Return all pairs, of which two thirds are left to the last tier: of each workload other engines."""
    places = {workload.name: place for place, workload in enumerate(SMALL)}
    return [
        pytest.param(*pair, marks=[pytest.mark.whole] if (places[pair[0].name] + ENGINES.index(pair[1])) % 3 else [])
        for pair in pairs
    ]


@pytest.mark.parametrize(
    ("workload", "engine"), in_thirds(KNOWN), ids=lambda one: one if isinstance(one, str) else one.name
)
def test_matches_and_work(workload: Workload, engine: str, data: Callable[[str], Path]) -> None:
    table = small(workload, data)
    if WRITE and not all_run_on(workload, table, engine):
        return
    done = run(workload, table, engine)
    if workload.counted is not None:
        assert done.matches == workload.count_expected(table)
    elif workload.stock is not None:
        assert done.matches == len(backtrack(table, workload.stock).matches)
    did = {"matches": done.matches, "touches": done.touches, "nodes": done.nodes}
    if WRITE:
        held = golden()
        held.setdefault(engine, {})[workload.name] = did
        names = [name for name in WORKLOADS if any(name in of for of in held.values())]
        ordered = {of: {name: held[of][name] for name in names if name in held[of]} for of in sorted(held)}
        GOLDEN.write_text(json.dumps(ordered, indent=1) + "\n")
        return
    before = golden().get(engine, {}).get(workload.name)
    assert before is not None, f"nothing is known of {workload.name} on {engine}: write {GOLDEN.name}"
    assert did["matches"] == before["matches"]
    for name in ("touches", "nodes"):
        now, then = did[name], before[name]
        assert (now is None) == (then is None), f"{name}: {now}, and {then} before"
        assert now is None or then is None or now <= MORE * then, f"{name}: {now:,}, and {then:,} before"


def test_no_golden_of_what_is_gone() -> None:
    """Where a stream is missing its workloads are too, so only an engine can be gone here, or a generated stream."""
    kept = {name for of in golden().values() for name in of}
    assert set(golden()) == set(ENGINES)
    assert {name for name in kept if name.split("-")[0] not in ("pseq", "pset", "ponco", "pnyse")} <= set(WORKLOADS)
