"""Matches as record batches: those of the table, in its order, whatever engine makes them and in steps of any size."""

from __future__ import annotations

from collections import Counter
from itertools import islice

import pyarrow as pa
import pytest

import acep
from acep.matches import batches as made
from acep.native import session as native_session
from acep.native.compiled import native
from acep.runtime import stream
from tests.case_counts import CaseCounts
from tests.complaints import difference, fail_if_wrong
from tests.native.merged_cases import merged_case
from tests.random_cases import Case, random_case

core = pytest.mark.skipif(native() is None, reason="the native core is not installed")


def compare(case: Case, engine: str, seen: Counter[str]) -> None:
    """Compare the batches of an engine with the matches of the reference runtime; count these."""

    def complaint_of(case: Case) -> str:
        table, query = case.table(), case.query()
        try:
            wanted = acep.match(table, query, engine="reference", **case.stream).to_arrow()
        except acep.AcepError:
            return ""
        batches = acep.match(table, query, engine=engine, output="batches", **case.stream)
        rows = pa.Table.from_batches(list(batches), batches.schema).to_pylist()
        seen["matches"] += len(rows)
        return difference(rows, wanted.to_pylist(), (engine, "reference")) or difference(
            batches.report.matches, len(rows), ("report", "batches")
        )

    fail_if_wrong(case, complaint_of)


@core
@pytest.mark.parametrize("rows", [1, 7, 1 << 14])
def test_the_matches_of_the_reference_in_steps(rows: int, cases: CaseCounts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(made, "ROWS", rows)
    monkeypatch.setattr(native_session, "PART", 5)
    seen = Counter[str]()
    for seed in range(cases(400)):
        case = merged_case(seed, 14)
        if case is not None and case.text.count("+") <= 1:
            compare(case, "native", seen)
    cases.expect(seen, "matches")


@pytest.mark.parametrize("engine", ["auto", "reference"])
def test_other_queries(engine: str, cases: CaseCounts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(made, "ROWS", 3)
    monkeypatch.setattr(stream, "EVENTS", 4)
    seen = Counter[str]()
    for seed in range(cases(200)):
        compare(random_case(seed), engine, seen)
    cases.expect(seen, "matches")


@pytest.mark.long
@core
def test_more_matches_than_could_ever_be_made() -> None:
    events = {"ts": range(201), "type": ["A"] * 200 + ["B"]}
    batches = acep.match(events, acep.parse("PATTERN SEQ(A+ a[], B b) WITHIN 500"), output="batches")
    first, second = islice(batches, 2)
    assert 0 < first.num_rows <= made.ROWS
    rows = [dict(row["bindings"]) for row in (*first.to_pylist(), *second.to_pylist())]
    trails = [[*row["a"], *row["b"]] for row in rows]
    assert trails[0] == [*range(201)]
    assert trails == sorted(trails)
    assert len({tuple(trail) for trail in trails}) == len(trails)


@core
def test_an_arrow_stream() -> None:
    events = {"ts": range(6), "type": [*"aabbab"], "k": [*"xyxyxy"]}
    query = acep.regex("ab", within=5, by="k")
    read = pa.RecordBatchReader.from_stream(acep.match(events, query, output="batches")).read_all()
    assert read.to_pylist() == acep.match(events, query).to_arrow().to_pylist()
    assert read.schema == acep.match(events, query).to_arrow().schema


def test_nothing() -> None:
    batches = acep.match({"ts": [1], "type": ["a"]}, acep.regex("ab", within=5), output="batches")
    assert not list(batches)
    assert "bindings" in batches.schema.names
    assert not list(acep.match([], acep.regex("ab", within=5), output="batches"))
