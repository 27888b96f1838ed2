"""Events that no query can use may be left out: on random queries and streams, and where it must not be done."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import acep
from acep.events.tables import schema_of
from acep.overload.needed_events import Use, uses_of
from acep.pattern.expressions import Attribute, Binary, Literal
from acep.pattern.printing import canonical
from acep.pattern.tree import Choice, EventSet, Negation, Output, Query, Repeat, Strategy, Within
from acep.pattern.walk import nodes, variables
from acep.plan.compile import compile_query
from tests.case_counts import CaseCounts
from tests.complaints import difference, fail_if_wrong
from tests.random_cases import Case, random_case


def usable(row: dict[str, Any], uses: Sequence[Use]) -> bool:
    """Whether there is some use for an event."""

    def holds(use: Use) -> bool:
        values = [[row[leaf.name] for leaf in one.leaves] for one in use.conditions]  # type: ignore[union-attr,index]
        return all(one.run(of) is True for one, of in zip(use.conditions, values, strict=True))

    return any((not use.types or row["type"] in use.types) and holds(use) for use in uses)


def left(table: pa.Table, query: Query, **names: Any) -> pa.Table | None:
    """The events that some use is for; ``None`` where all bear on the answer."""
    uses = uses_of([compile_query(query, schema_of(table.schema, **names))], ids="id" in names)
    if uses is None:
        return None
    rows = [{n: None if v != v else v for n, v in row.items()} for row in table.to_pylist()]  # NaN is null
    return table.filter(pa.array([usable(row, uses) for row in rows], pa.bool_()))


def forms(query: Query) -> set[str]:
    """Name the features of a query that could make a difference."""
    parts = list(nodes(query.pattern))
    found = {type(part).__name__ for part in parts if isinstance(part, Negation | Choice | EventSet | Repeat)}
    found |= {"any type" for part in parts if getattr(part, "types", 1) == ()}
    found |= {"optional" for part in parts if isinstance(part, Repeat) and part.low == 0}
    found |= {query.output.value, query.strategy.value} | ({"errors"} if query.errors else set())
    found |= {"HAVING"} if query.having is not None else set()
    return found | ({"no window"} if query.within is None else set())


def skipping(query: Query, seed: int) -> Query:
    """The query with a strategy and a window under which events may be left out, and more conditions on one event."""
    rng = Random(seed)
    more = [
        Binary(rng.choice(("<=", ">=", "!=")), Attribute(var, None, rng.choice("xy")), Literal(rng.randint(1, 2)))
        for var in variables(query.pattern)
        if rng.random() < 0.6
    ]
    within = None if query.within is None else Within(query.within.amount, "ticks")
    strategy = rng.choice((Strategy.SKIP_TILL_NEXT_MATCH, Strategy.SKIP_TILL_ANY_MATCH))
    return replace(query, strategy=strategy, within=within, where=(*query.where, *more))


def complaint_without_needless_events(case: Case, seen: Counter[str]) -> str:
    """Leave out the events of a case that no query can use, and say how the answer differs."""
    query, names = skipping(case.query(), case.seed), {**case.stream, "id": "id"}
    table = case.table()
    needed = left(table, query, **names)
    if needed is None:
        return "all events bear on the answer"
    wanted, matches = (list(acep.match(events, query, **names)) for events in (table, needed))
    seen["matches"] += len(wanted)
    if needed.num_rows < table.num_rows and wanted:
        seen["events left out"] += table.num_rows - needed.num_rows
        seen.update(forms(query))
    differing = difference(matches, wanted, ("without needless events", "with all events"))
    return differing and f"as {canonical(query)}\n{needed.column('id').to_pylist()} are needed\n{differing}"


def test_without_events_that_no_query_can_use_the_answer_is_the_same(cases: CaseCounts) -> None:
    seen, tried = Counter[str](), cases(400)
    for seed in range(tried):
        case = random_case(seed)
        if not case.query().sources:
            fail_if_wrong(case, lambda smaller: complaint_without_needless_events(smaller, seen))
    cases.expect(seen, "matches", "events left out", least=tried + 1)
    cases.expect(seen, "Negation", "Choice", "EventSet", "Repeat", "any type", "optional")
    cases.expect(seen, "errors", "HAVING", "no window", *(output.value for output in Output))
    cases.expect(seen, "skip_till_next_match", "skip_till_any_match")


def stream(text: str, x: Sequence[int]) -> pa.Table:
    """Events a tick apart, a letter each."""
    size = len(text)
    columns = {"ts": range(size), "type": list(text), "k": [1] * size, "x": x, "id": range(size)}
    return pa.table({name: pa.array(values) for name, values in columns.items()})


COUNTED = {
    "a window of events": "PATTERN SEQ(A a, B b) WHERE a.x > 5 WITHIN 3 EVENTS",
    "partition contiguity": "PATTERN SEQ(A a, B b) WHERE partition_contiguity { [k] AND a.x > 5 } WITHIN 9",
    "strict contiguity": "PATTERN SEQ(A a, B b) WHERE strict_contiguity { a.x > 5 } WITHIN 9",
    "a query over the matches of others": (
        "FROM (PATTERN SEQ(A a, B b) WHERE a.x > 5 WITHIN 9) AS M PATTERN SEQ(M m) WITHIN 9"
    ),
}


@pytest.mark.parametrize("text", COUNTED.values(), ids=COUNTED)
def test_where_events_are_counted_all_of_them_are_needed(text: str) -> None:
    table, query = stream("AAABAB", [9, 0, 0, 0, 9, 0]), acep.parse(text)
    assert left(table, query, id="id") is None
    if not query.sources:  # leaving them out would invent a match
        rest = table.filter(pa.array([x > 5 or name == "B" for x, name in zip(*xs(table), strict=True)]))
        assert len(acep.match(rest, query, id="id")) > len(acep.match(table, query, id="id"))


def xs(table: pa.Table) -> tuple[list[int], list[str]]:
    return table.column("x").to_pylist(), table.column("type").to_pylist()


PLAIN = "PATTERN SEQ(A a, B b) WHERE skip_till_next_match { [k] AND a.x > 5 } WITHIN 9"


def test_events_without_ids_are_numbered_so_that_all_are_needed() -> None:
    plan = compile_query(acep.parse(PLAIN), schema_of(stream("A", [1]).schema))
    assert uses_of([plan], ids=False) is None
    assert uses_of([plan], ids=True) is not None


@pytest.mark.parametrize(
    ("budget", "all_needed"),
    [
        (acep.Budget(work=2), True),
        (acep.Budget(memory="100 MB"), True),
        (acep.Budget(work=2, cpu=0.5), True),
        (acep.Budget(cpu=0.5), False),
        (acep.Budget(latency=0.5), False),
    ],
)
def test_a_budget_that_goes_by_the_events_needs_all_of_them(budget: acep.Budget, all_needed: bool) -> None:
    plan = compile_query(acep.parse(PLAIN), schema_of(stream("A", [1]).schema, id="id"))
    assert (uses_of([plan], ids=True, budget=budget) is None) == all_needed


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        # A condition on one event of a repetition, on the one before it or on the whole is asked of no single event.
        ("PATTERN SEQ(A+ a[], B b) WHERE a[1].x > 5 WITHIN 9", "AAABAB"),
        ("PATTERN SEQ(A+ a[], B b) WHERE a[i].x > a[i-1].x WITHIN 9", "AAABAB"),
        ("PATTERN SEQ(A+ a[], B b) WHERE sum(a[].x) > 5 WITHIN 9", "AAABAB"),
        ("PATTERN SEQ(A+ a[], B b) WHERE a[i].x > 5 WITHIN 9", "ABAB"),
        # Another variable may be missing, and then nothing is asked.
        ("PATTERN SEQ(A a, B b) WHERE (a.x > 5 OR b.x > 5) WITHIN 9", "AAABAB"),
        # Conditions that follow from equalities are asked.
        ("PATTERN SEQ(A a, B b) WHERE a.x = b.x AND b.x = 9 WITHIN 9", "AA"),
        # A negation has conditions of its own, and those with other variables may be true.
        ("PATTERN SEQ(A a, ~C c, B b) WHERE a.x > 5 AND c.x < a.x WITHIN 9", "ABAB"),
        ("PATTERN SEQ(B a, ~A c, B b) WHERE c.x < 5 WITHIN 9", "AABB"),
        # One variable has a use for what another has none for.
        ("PATTERN SEQ(A a, A b) WHERE a.x > 5 AND b.x < 5 WITHIN 9", "AAAA"),
        ("PATTERN SEQ(ANY a, B b) WHERE a.x > 5 WITHIN 9", "ABAB"),
        ("PATTERN SEQ(ANY a, B b) WITHIN 9", "AAABAB"),
    ],
)
def test_which_events_there_is_some_use_for(text: str, kept: str) -> None:
    table = stream("AAABAB", [9, 0, 0, 0, 9, 0])
    rest = left(table, acep.parse(text, errors=1), id="id")
    assert rest is not None
    assert "".join(rest.column("type").to_pylist()) == kept
