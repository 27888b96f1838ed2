"""The merged engine against the reference, and what it must do besides: free memory, stop and go on, refuse."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from acep.engine.found import Found
from tests.native.merged_cases import merged_case, planned, reference, run
from tests.random_cases import Case, shrink

pytest.importorskip("acep.engine._native")

CHUNKS = 20


def told(found: list[Found]) -> list[tuple[object, ...]]:
    return [(f.key, f.start, f.end, f.error, f.bindings, f.bundle, f.trail) for f in found]


def differs(case: Case) -> bool:
    table = case.table()
    plan = planned(case.query(), table, **case.stream)
    try:
        found = run(plan, table, "merged")
    except ValueError:  # not a plan for it
        return False
    return told(found) != told(list(reference(plan, table)))


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_the_reference_finds_the_same(chunk: int, cases: Callable[[int], int]) -> None:
    tried = 0
    for seed in range(chunk, cases(1500), CHUNKS):
        case = merged_case(seed)
        if case is None:
            continue
        tried += 1
        if differs(case):
            pytest.fail("the merged engine and the reference differ:\n" + shrink(case, differs).paste())
    assert tried
