"""Every native engine that can run a case, alone and behind match windows, against the reference runtime.

A case is run by all its engines in one session. How many ran on each is counted, so that none is left out unseen.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

import pyarrow as pa
import pytest

import acep
from acep.pattern.tree import Output
from acep.plan.choice import choose
from acep.plan.compile import Plan
from tests import corpus
from tests.case_counts import CaseCounts
from tests.complaints import fail_if_wrong
from tests.native.harness import compare, engines_of, planned, whole
from tests.native.merged_cases import merged_case
from tests.random_cases import Case, random_case
from tests.test_corpus import query_of, stream_rows

pytest.importorskip("acep.native._native")

CHUNKS = 20
SEEDS = 12_000
LEAST = {
    "nodes": 10_000,
    "dominance": 4_500,
    "search": 1_000,
    "merged": 2_000,
    "windows+nodes": 750,
    "windows+merged": 400,
}
"""How many cases each engine must have run, of so many seeds."""

MERGED = ("merged", "count", "ends", "points", "bundles", "compressed")
"""The engines for plans whose events only the partition ties together."""


def in_order(seed: int) -> Case | None:
    """The case of a seed with its stream as it would arrive, if it is a query of one stream."""
    case = merged_case(seed) if seed % 7 == 0 else random_case(seed)
    if case is None or case.query().sources:
        return None
    stream = {name: value for name, value in case.stream.items() if name == "id"}
    gone = dict.fromkeys("kxyfs"[seed % 11 :: 5] if seed % 11 < 5 else "")
    return replace(case, events=sorted((row | gone for row in case.events), key=lambda row: row["ts"]), stream=stream)


def table_of(case: Case) -> pa.Table:
    """Its stream; a column of nothing but nulls has no type."""
    table = case.table()
    gone = [name for name in "kxyfs" if table[name].null_count == len(table)]
    return pa.table({name: pa.nulls(len(table)) if name in gone else table[name] for name in table.column_names})


def engines_for(plan: Plan) -> list[str]:
    """All native engines that can run a plan."""
    return engines_of(plan, *(MERGED if choose(plan).base == "merged" else ()))


def compare_engines(case: Case) -> list[str]:
    """Check that all engines that can run a case find what the reference runtime does; return them and its output."""
    plan = planned(case.query(), table := table_of(case), **case.stream)
    engines = engines_for(plan)
    compare(plan, whole(plan, table), engines, Random(case.seed))
    return [*engines, plan.query.output.name]


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_every_engine_finds_what_the_reference_does(chunk: int, cases: CaseCounts) -> None:
    ran: Counter[str] = Counter()

    def check(case: Case) -> None:
        ran.update(compare_engines(case))

    seeds = range(chunk, cases(SEEDS), CHUNKS)
    for case in filter(None, map(in_order, seeds)):
        fail_if_wrong(case, check)
    for kind, least in (LEAST | {output.name: 100 for output in Output}).items():
        cases.expect(ran, kind, least=least * len(seeds) / SEEDS)


CORPUS = [case for case in corpus.load_all() if case.raises is None and not query_of(case).sources]


@pytest.mark.parametrize("case", CORPUS, ids=[case.id for case in CORPUS])
def test_cases_of_the_corpus(case: corpus.Case) -> None:
    table = case.table().take(pa.array(stream_rows(case), pa.int64()))
    plan = planned(query_of(case), table, **{k: v for k, v in case.stream_options.items() if k != "seq"})
    compare(plan, whole(plan, table), engines_for(plan), Random(1))


@pytest.mark.parametrize(
    ("output", "lengths"),
    [("LONGEST NON OVERLAP", [300]), ("NON OVERLAP", [1] * 300), ("EARLIEST MAXIMAL", list(range(300, 0, -1)))],
)
def test_one_long_series(output: str, lengths: list[int]) -> None:
    """It has 45,150 matches, of which one starts with each event and is chosen or not."""
    query = f"PATTERN a+ c[] WHERE partition_contiguity(c[]) {{ [k] AND c[i].ts - c[i-1].ts <= 2 }} OUTPUT {output}"
    events = {"ts": list(range(300)), "type": ["a"] * 300, "k": [1] * 300}
    found = acep.match(events, query, engine="native")
    assert [len(m.bindings["c"]) for m in sorted(found, key=lambda m: m.start)] == lengths
