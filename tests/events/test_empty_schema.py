"""Batches without rows: their columns may have no types, or wrong ones, which tell nothing of the events to come."""

from __future__ import annotations

from datetime import datetime
from itertools import product
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import acep
from acep.errors import AcepError, DataError, QueryError
from acep.tuning.many import why_many
from tests.thinned import thinned

WHERE = {
    "types": "",
    "texts": "{ p.s != q.s }",
    "numbers": "{ q.i > p.i AND q.v > p.v }",
    "times": "{ q.t > p.t }",
    "key of texts": "{ [s] }",
    "key of integers": "{ [j] }",
    "key of times": "{ [u] }",
}
QUERIES = {name: f"PATTERN SEQ(a p, b q) WHERE skip_till_any_match {at} WITHIN 5 seconds" for name, at in WHERE.items()}
QUERIES["values"] = f"{QUERIES['numbers']} RETURN sum(q.v) AS x, p.s AS y, p.t AS z"
TIMES = [datetime(2024, 1, 1, 0, 0, i) for i in range(12)]
EVENTS = {
    "ts": TIMES,
    "type": list("abc" * 4),
    "v": [i / 2 for i in range(12)],
    "i": [*range(12)],
    "j": [i // 3 for i in range(12)],
    "s": list("xxyy" * 3),
    "t": TIMES,
    "u": [time for time in TIMES[:3] for _ in range(4)],
}
NOTHING: dict[str, Any] = {
    "no columns": pd.DataFrame(),
    "nulls": pa.table({name: pa.array([], pa.null()) for name in EVENTS}),
    "lists": {name: [] for name in EVENTS},
    "names": pd.DataFrame(columns=list(EVENTS)),
    "pandas' own": pd.DataFrame({name: [] for name in EVENTS}),
    "floats": pd.DataFrame({name: pd.Series([], dtype="float64") for name in EVENTS}),
    "categories": pd.DataFrame({name: [] if name == "ts" else pd.Categorical([]) for name in EVENTS}),
    "types": pa.table(EVENTS).slice(0, 0),
}


BUDGETS = {"": None, "work": acep.Budget(work=1e6), "latency": acep.Budget(latency=60)}
KINDS = [*product(QUERIES, NOTHING, ("timestamps", "integers"), BUDGETS)]


@pytest.mark.parametrize("kind", thinned(KINDS, 7), ids=["-".join(kind) for kind in KINDS])
def test_a_batch_without_rows_finds_nothing_and_tells_nothing(kind: tuple[str, ...]) -> None:
    """Each 7th kind has each query with each clock and budget, and nearly each with each way to have no rows."""
    query_name, nothing_name, clock, budget_name = kind
    query, nothing, budget = QUERIES[query_name], NOTHING[nothing_name], BUDGETS[budget_name]
    if clock == "integers" and nothing is NOTHING["types"]:
        nothing = pa.table(EVENTS | {"ts": [*range(12)]}).slice(0, 0)
    unit: Any = {"unit": "s"} if clock == "integers" else {}
    events = pa.table(EVENTS if clock == "timestamps" else EVENTS | {"ts": [*range(12)]})
    exact = acep.match(events, acep.parse(query), **unit)
    assert len(exact) > 0

    def fresh() -> acep.Matcher:
        return acep.Matcher(acep.parse(query), budget=budget, **unit)

    matcher = fresh()
    assert len(matcher.push(nothing)) == 0
    state, matcher = matcher.snapshot(), fresh()
    matcher.restore(state)
    found = [*matcher.push(events.slice(0, 5)), *matcher.push(nothing), *matcher.push(events.slice(5))]
    assert [*found, *matcher.finish()] == list(exact)
    assert len(fresh().finish()) == 0
    assert len(acep.match(nothing, acep.parse(query), budget=budget, **unit)) == 0


@pytest.mark.parametrize("nothing", [*NOTHING.values(), [], {}], ids=[*NOTHING, "no rows", "no dict"])
@pytest.mark.parametrize("query", ["numbers", "key of texts", "times"])
def test_each_question_about_no_events_has_an_answer(query: str, nothing: Any) -> None:
    parsed = acep.parse(QUERIES[query])
    assert acep.match(nothing, parsed, output="count") == 0
    findings = acep.lint(nothing, parsed)
    assert findings[0].message == "there are no events, so that little can be said"
    assert {finding.severity for finding in findings} == {"warning"}
    assert acep.why(nothing, parsed).events == 0
    assert why_many(nothing, parsed).matches == 0
    assert acep.tune(nothing, parsed).sample.table.num_rows == 0


@pytest.mark.parametrize("output", ["matches", "points", "bundles", "count", "exists", "compressed", "batches"])
def test_no_rows_are_no_matches_whatever_is_asked(output: Any) -> None:
    found: Any = acep.match(NOTHING["nulls"], acep.parse(QUERIES["numbers"]), output=output)
    assert (found if output in ("count", "exists") else len(list(found))) == 0


@pytest.mark.parametrize("engine", ["reference", "auto"])
def test_a_mistake_is_told_all_the_same(engine: Any) -> None:
    wrong: list[tuple[Any, str, type[AcepError], str]] = [
        (NOTHING["nulls"], "PATTERN SEQ(a p, b q) WHERE { q.nix > 1 } WITHIN 5", QueryError, "nix"),
        (pa.table({"time": pa.array([], pa.null())}), "PATTERN SEQ(a p) WITHIN 5", DataError, "`ts`"),
        (pa.table({"ts": pa.array([], pa.string())}), "PATTERN SEQ(a p) WITHIN 5", DataError, "integers, timestamps"),
        (NOTHING["types"], "PATTERN SEQ(a p, b q) WHERE { q.s > 1 } WITHIN 5 seconds", QueryError, "q.s"),
    ]
    for events, query, kind, text in wrong:
        with pytest.raises(kind, match=text):
            acep.match(events, acep.parse(query), engine=engine)
        with pytest.raises(kind, match=text):
            acep.Matcher(acep.parse(query), engine=engine).push(events)
