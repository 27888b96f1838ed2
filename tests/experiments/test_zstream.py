"""The paper's two phases and its two algorithms find what the reference finds, however the windows are pruned."""

from __future__ import annotations

from collections import Counter
from itertools import product
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import acep
from acep.events.tables import batch_of, schema_of
from acep.plan.compile import Plan, compile_query
from experiments.two_phase import ALGORITHMS, two_phase
from experiments.zstream import pattern_of
from tests.case_counts import CaseCounts
from tests.complaints import case_text, difference, fail_if_wrong_on_rows

PATTERNS = (
    "SEQ(A a, B b, C c) WITHIN 6",
    "{A a, B b, C c} WHERE [k] WITHIN 9",
    "SEQ({A a, B b}, {C c, D d}) WHERE [k] WITHIN 12",
    "SEQ({A a, B+ b[]}, C+ c[]) WHERE prev(b.x) < b.x AND prev(c.x) > c.x WITHIN 7",
    "SEQ({A a, B b}, {C+ c[], A d}, {A e, B f}) WHERE [k] WITHIN 25",
    "SEQ(A a, ANY b, C c) WHERE a.x < b.x AND b.x <= c.x AND c.x > 1 WITHIN 5",
    "{ANY a, ANY b} WHERE a.x = b.x AND a.x > 1 WITHIN 4",
    "SEQ(A+ a[], B b) WHERE a.x != b.x WITHIN 6",
    "SEQ(A a, B b) WITHIN 0",
)
SCHEMA = pa.schema({"ts": pa.int64(), "type": pa.string(), "k": pa.int64(), "x": pa.int64()})


def stream(seed: int, rows: int) -> pa.Table:
    rng = Random(seed)
    ts = sorted(rng.randrange(rows) for _ in range(rows))
    return pa.table(
        {
            "ts": ts,
            "type": [rng.choice("AABBCCDX") for _ in ts],
            "k": [rng.choice((1, 1, 2, None)) for _ in ts],
            "x": [rng.choice((0, 1, 2, 3, None)) for _ in ts],
        },
        SCHEMA,
    )


def planned(text: str, table: pa.Table) -> Plan:
    return compile_query(acep.parse(f"PATTERN {text}"), schema_of(table.schema))


def told(bound: dict[str, Any]) -> list[Any]:
    return sorted((name, tuple(rows)) for name, rows in bound.items())


@pytest.mark.parametrize("text", PATTERNS)
def test_both_algorithms_find_what_the_reference_finds(text: str, cases: CaseCounts) -> None:
    seen = Counter[str]()

    def complaint_of(rows: list[Any]) -> str:
        table = pa.Table.from_pylist(rows, SCHEMA)
        plan = planned(text, table)
        pattern, events = pattern_of(plan), batch_of(table, plan.schema, plan.columns).events
        expected = sorted(told(m.bindings) for m in acep.match(table, plan.query, engine="reference"))
        seen["matches"] += len(expected)
        for name, algorithm in ALGORITHMS.items():
            for f, p, c in product((False, True), repeat=3):
                run = two_phase(pattern, events, algorithm, f=f, p=p, c=c)
                if complaint := difference(sorted(map(told, run.matches)), expected, (name, "reference")):
                    return f"{complaint}\nwith f={f}, p={p}, c={c}"
        return ""

    for seed in range(cases(8)):
        text_of = case_text("two_phases", f"PATTERN {text}", SCHEMA)
        fail_if_wrong_on_rows(stream(seed, 30).to_pylist(), f"# seed {seed}", complaint_of, text_of)
    cases.expect(seen, "matches")


def test_pruning_saves_calls_and_touches() -> None:
    table = stream(1, 200)
    plan = planned("SEQ({A a, B b}, {C c, D d}) WHERE [k] AND a.x > 2 WITHIN 12", table)
    pattern, events = pattern_of(plan), batch_of(table, plan.schema, plan.columns).events
    for algorithm in ALGORITHMS.values():
        runs = [
            two_phase(pattern, events, algorithm, f=f, p=p, c=c)
            for f, p, c in ((False, False, False), (True, False, False), (True, True, False), (True, True, True))
        ]
        assert len({tuple(map(str, sorted(map(told, run.matches)))) for run in runs}) == 1
        given = [run.n_events for run in runs]
        assert given == sorted(given, reverse=True)
        assert runs[-1].calls < runs[0].calls / 4
        assert runs[-1].touches < runs[0].touches


def test_counters_outlive_a_reset() -> None:
    # When the first `a` leaves, the counter of `b` is reset; the first `b` must not be taken from it again.
    for last in (5, 6):
        table = pa.table({"ts": [0, 2, 4, last], "type": list("ABAB")})
        plan = planned("SEQ(A a, B b) WITHIN 3", table)
        pattern, events = pattern_of(plan), batch_of(table, plan.schema, plan.columns).events
        for algorithm in ALGORITHMS.values():
            assert sorted(map(told, two_phase(pattern, events, algorithm).matches)) == [
                [("a", (0,)), ("b", (1,))],
                [("a", (2,)), ("b", (3,))],
            ]


@pytest.mark.parametrize(
    "text",
    [
        "SEQ(A a, ~C c, B b) WITHIN 9",
        "SEQ(A a, B b)",
        "SEQ(A a, B b) WITHIN 9 EVENTS",
        "SEQ(A a, (B b | C c)) WITHIN 9",
        "SEQ(A+ a[], B b) WHERE a[1].x > b.x WITHIN 9",
        "SEQ(A+ a[], B b) WHERE avg(a[].x) > b.x WITHIN 9",
    ],
)
def test_other_patterns_are_refused(text: str) -> None:
    table = stream(1, 5)
    with pytest.raises(ValueError, match=r"window|set|predicates|neg"):
        pattern_of(planned(text, table))
