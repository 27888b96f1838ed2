"""Each entry of AGGREGATES is whole: the pages name it, engines have what it asks for, and one of its own runs."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

import acep
from acep.functions.aggregates import AGGREGATES, COUNT_DISTINCT, AggregateFunction, Composition
from acep.plan.lower.tables_completion import OPERATIONS
from tests.test_imports import ROOT

each_entry = pytest.mark.parametrize("entry", AGGREGATES.values(), ids=list(AGGREGATES))


def names_of(composition: Composition | None) -> Iterator[str]:
    if isinstance(composition, str):
        yield composition
    elif composition is not None:
        yield from (name for side in composition[1:] for name in names_of(side))


@each_entry
def test_the_pages_name_it(entry: AggregateFunction) -> None:
    pages = {"language": entry.where is not None, "sql": bool(entry.nodes or entry.sql_names)}
    assert any(pages.values())
    written = {COUNT_DISTINCT: r"count\(DISTINCT", "variance_pop": "variance"}.get(entry.name, entry.name)
    for page in (page for page, has_it in pages.items() if has_it):
        text = (ROOT / f"docs/reference/{page}.md").read_text(encoding="utf-8")
        assert re.search(rf"(?<![a-z_]){written}(?![a-z_])", text), f"{page}.md does not name {entry.name}"


@each_entry
def test_it_says_how_it_is_computed(entry: AggregateFunction) -> None:
    assert set(names_of(entry.expression)) | set(names_of(entry.clause_expression)) <= {*AGGREGATES} - {entry.name}
    if entry.where is not None and entry.expression is None:
        assert entry.of_values is not None
        assert bool(entry.registers) == (entry.where == "running")
    if entry.completion is not None:
        assert "integer" in entry.completion
        assert {operation for operation, _ in entry.completion.values()} <= {*OPERATIONS}
    if entry.nodes and entry.gives not in ("list", "condition") and entry.as_number is None:
        assert entry.of_rows is not None


def test_no_name_means_two_aggregates() -> None:
    names = [name for entry in AGGREGATES.values() for name in (entry.name, *entry.synonyms, *entry.nodes)]
    assert len(names) == len(set(names))


ROWS = {
    "ts": [1, 2, 3, 4, 5, 6],
    "type": ["a", "b", "b", "b", "b", "c"],
    "x": [None, 5, 2, None, 9, None],
    "y": [1.5, 2.0, -1.0, 4.0, 0.5, 2.0],
}
QUERY = "PATTERN SEQ(a a, b+ b[], c c) WHERE strict_contiguity(a, b[], c) {} "


@pytest.mark.parametrize("engine", ["native", "reference"])
def test_one_that_others_write_runs_on_every_engine(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = AggregateFunction("extent", "number", "argument", "running", expression=("-", "max", "min"))
    monkeypatch.setitem(AGGREGATES, "extent", entry)
    returns = "RETURN extent(b[].x) AS x, extent(b[].y) AS y, extent(c.x) AS nothing"
    (match,) = acep.match(ROWS, f"{QUERY} HAVING extent(b[].x) = 7 {returns}", engine=engine)
    assert match.values == {"x": 7, "y": 5.0, "nothing": None}
    earlier = QUERY.replace("{}", "{ extent(b[..i-1].y) < 4 }")
    assert acep.match(ROWS, earlier, engine=engine).count() == 0  # at the last b it is 5
    assert acep.match(ROWS, earlier.replace("< 4", "< 6"), engine=engine).count() == 1


def test_one_with_values_of_its_own_runs_on_the_reference_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = AggregateFunction(
        "longest", "number", "float", "matches", of_values=lambda values, scale: max(map(abs, values), default=None)
    )
    monkeypatch.setitem(AGGREGATES, "longest", entry)
    (match,) = acep.match(ROWS, f"{QUERY} HAVING longest(b[].y) > 3 RETURN longest(b[].x) AS x")
    assert match.values == {"x": 9.0}
    with pytest.raises(acep.EngineError, match="longest"):
        acep.match(ROWS, f"{QUERY} RETURN longest(b[].x) AS x", engine="native")
    with pytest.raises(acep.QueryError, match="looks at complete matches"):
        acep.parse(QUERY.replace("{}", "{ longest(b[..i-1].y) < 4 }"))
