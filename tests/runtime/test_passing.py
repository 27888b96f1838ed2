"""A query over batches, with results given as soon as they are certain: as of one table, and in the same order."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import acep
from acep.matching import batch_stream as made
from acep.matching.batch_stream import Passing
from acep.native.compiled import native
from tests.case_counts import CaseCounts
from tests.complaints import difference, fail_if_wrong
from tests.random_cases import Case, random_case

ENGINES = ("reference",) if native() is None else ("native", "reference")
OUTPUTS = ("matches", "points", "bundles", "count", "exists")


def passed(case: Case, table: pa.Table, cuts: list[int], output: str, counts: bool, engine: str) -> Any:
    """What is given in all, piece by piece in the order of time."""
    names = {name: case.stream.get(name, usual) for name, usual in NAMES.items()}
    run = Passing(case.query(), table.schema, table.num_rows, output=output, counts=counts, engine=engine, **names)
    parts = [one for a, b in pairwise([0, *cuts, table.num_rows]) if b > a for one in run.push(table.slice(a, b - a))]
    parts += run.finish()
    if output == "exists":
        return any(parts)
    return sum(parts) if output == "count" else [one for part in parts for one in part]


NAMES = {"ts": "ts", "type": "type", "seq": None, "id": None, "unit": None}


def parts_of(case: Case) -> tuple[pa.Table, list[int]]:
    """The stream in the order of time, and the rows before which it is cut."""
    table = case.table()
    keys = [("ts", "ascending")] + ([("seq", "ascending")] if case.stream.get("seq") else [])
    table = table.append_column("at", pa.array(range(table.num_rows))).sort_by([*keys, ("at", "ascending")])
    rng = Random(case.seed)
    cuts = sorted(rng.sample(range(table.num_rows + 1), min(rng.randint(0, 6), table.num_rows)))
    return table.drop_columns(["at"]), cuts


def complaint_of(case: Case, engine: str, seen: Counter[str]) -> str:
    """Compare all outputs of batches with those of one table."""
    table, cuts = parts_of(case)
    try:
        matches = list(acep.match(table, case.query(), engine=engine, **case.stream))
    except acep.AcepError:
        seen["refused"] += 1
        return ""
    seen["has matches"] += bool(matches)
    for output in OUTPUTS:
        for counts in (True, False) if output == "bundles" else (True,):
            answer = acep.match(table, case.query(), engine=engine, output=output, counts=counts, **case.stream)
            wanted = list(answer) if output == "matches" else answer
            if differing := difference(passed(case, table, cuts, output, counts, engine), wanted, ("batches", "table")):
                return f"output={output!r}, counts={counts}, cut before rows {cuts}\n{differing}"
    return ""


@pytest.mark.parametrize("engine", ENGINES)
def test_batches_give_what_the_whole_gives(engine: str, cases: CaseCounts) -> None:
    seen = Counter[str]()
    for seed in range(cases(60)):
        fail_if_wrong(random_case(seed), lambda case: complaint_of(case, engine, seen))
    cases.expect(seen, "has matches")


def test_a_stream_that_has_a_match_goes_on_and_has_one() -> None:
    query = acep.parse("PATTERN SEQ(A a, B b) WHERE b.x > a.x")
    table = pa.table({"ts": range(4), "type": list("ABAB"), "x": range(4)})
    run = Passing(query, table.schema, 4, output="exists", counts=True, **NAMES)
    parts = [one for at in range(4) for one in run.push(table.slice(at, 1))]
    assert [*parts, *run.finish()] == [False, True, True, True, True]


def test_matches_are_given_before_the_stream_ends() -> None:
    query = acep.regex("ab", within=5)
    table = pa.table({"ts": range(1000), "type": ["a", "b"] * 500})
    run = Passing(query, table.schema, 1000, output="matches", counts=True, **NAMES)
    first = [match for part in run.push(table.slice(0, 500)) for match in part]
    assert first[-1].end == 497  # at 499 another match may end
    rest = [match for part in (*run.push(table.slice(500)), *run.finish()) for match in part]
    assert first + rest == list(acep.match(table, query))


def test_more_matches_of_one_time_than_are_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(made, "SORT_LIMIT", 500)
    query = acep.regex("ab", within=5)
    table = pa.table({"ts": [7] * 200, "type": ["a", "b"] * 100})
    run = Passing(query, table.schema, 200, output="matches", counts=True, **NAMES)
    parts = [part for at in range(0, 200, 20) for part in run.push(table.slice(at, 20))] + [*run.finish()]
    assert sum(len(part) > 0 for part in parts) > 1
    found = [match for part in parts for match in part]
    assert sorted(found, key=str) == sorted(acep.match(table, query), key=str)
