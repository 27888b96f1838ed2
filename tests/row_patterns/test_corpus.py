"""Every case of ``tests/row_patterns/corpus/`` on every engine, with rows in the order of the table and in another."""

from __future__ import annotations

import math
import random
from collections import Counter
from functools import cache
from typing import Any

import pyarrow as pa
import pytest

import acep
from acep.errors import AcepError, DataError, QueryError
from acep.native import compiled
from acep.pattern.sql.clause_parser import parse_clause
from acep.row_patterns import row_search
from tests.each_case import by_file
from tests.row_patterns.corpus.cases import FOLDER, Case, cell_text, load_all, matches_text, short_clause

ENGINES = ("native", "reference", "without core")
"""``reference`` searches in Python; ``without core`` does everything in Python."""

CASES = load_all()
GOOD = [case for case in CASES if case.error is None]
BAD = [case for case in CASES if case.error is not None]
CLAUSES = [case for case in GOOD if not case.is_statement]
SHORT = [case for case in GOOD if case.matches is not None]


@pytest.fixture(params=[*ENGINES[:2], pytest.param(ENGINES[2], marks=pytest.mark.long)])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Let one of ``ENGINES`` run the clauses."""
    if request.param == "native" and compiled.native() is None:
        pytest.skip("there is no native core")
    monkeypatch.setattr(row_search, "USE_NATIVE", request.param == "native")
    if request.param == "without core":
        monkeypatch.setattr(compiled, "native", lambda: None)
    return str(request.param)


def result_of(case: Case, tables: dict[str, pa.Table] | None = None) -> pa.Table:
    """Return what acep gives for a case, an Arrow table."""
    tables = dict(case.tables) if tables is None else tables
    if case.is_statement:
        pytest.importorskip("duckdb")
        return acep.sql(case.text, **tables)
    (table,) = tables.values()
    return acep.match_recognize(table, case.text)


def lines_of(table: pa.Table) -> list[tuple[str, ...]]:
    """Return a table as the lines of a case: names of columns, then rows."""
    columns = [[cell_text(value) for value in column.to_pylist()] for column in table.columns]
    return [tuple(name if " " not in name else f'"{name}"' for name in table.column_names), *zip(*columns, strict=True)]


def compare(case: Case, table: pa.Table) -> None:
    """Fail unless a table is what a case expects."""
    if case.matches is not None:
        assert matches_text(table.to_pylist()) == case.matches
        return
    assert case.expected is not None
    expected, lines = [*case.expected], lines_of(table)
    assert lines[0] == expected[0]
    keys = 0 if case.is_statement else partition_count(case.text)
    rows, expected_rows = (sorted(side[1:], key=lambda line: line[:keys]) for side in (lines, expected))
    assert len(rows) == len(expected_rows), rows
    for row, expected_row in zip(rows, expected_rows, strict=True):
        assert len(row) == len(expected_row)
        assert all(map(is_same_cell, row, expected_row)), f"{row} is not {expected_row}; all rows: {rows}"


@cache
def partition_count(clause: str) -> int:
    """Return how many columns part the rows of a clause."""
    return len(parse_clause(clause).partition)


def is_same_cell(cell: str, expected_cell: str) -> bool:
    """Return whether two cells are the same; floats may differ in their last digits."""
    if cell == expected_cell:
        return True
    if not ("." in cell and "." in expected_cell):
        return False
    try:
        return math.isclose(float(cell), float(expected_cell), rel_tol=1e-12)
    except ValueError:
        return False


@pytest.mark.usefixtures("engine")
@by_file(GOOD)
def test_result(case: Case) -> None:
    compare(case, result_of(case))


def is_ordered_by_keys(case: Case) -> bool:
    """Return whether the keys decide the order of all rows, so that the order of the table cannot matter."""
    try:
        clause = parse_clause(case.text)
    except QueryError:
        return False  # test_result says so
    names = [column_name(key) for key in (*clause.partition, *(key.expression for key in clause.order))]
    if not clause.order or None in names:
        return False
    columns = {name.casefold(): name for name in case.table.column_names}
    keys = case.table.select([columns[str(name).casefold()] for name in names]).to_pylist()
    return len({tuple(key.values()) for key in keys}) == len(keys)


def column_name(source: Any) -> str | None:
    """Return the column that an expression is, or ``None``."""
    tree = source.tree
    return str(tree.name) if type(tree).__name__ == "Column" and not tree.table else None


@pytest.mark.usefixtures("engine")
@pytest.mark.long
@pytest.mark.parametrize("engine", ["native"], indirect=True)
@by_file(CLAUSES)
def test_result_of_shuffled_rows(case: Case) -> None:
    """The order of the table does not matter where the keys decide."""
    if not is_ordered_by_keys(case):
        return
    places = [*range(case.table.num_rows)]
    for order in (places[::-1], random.Random(case.id).sample(places, len(places))):
        compare(case, result_of(case, {"t": case.table.take(pa.array(order, pa.int64()))}))


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("engine", ["native", pytest.param("reference", marks=pytest.mark.long)], indirect=True)
@by_file(SHORT)
def test_one_row_per_match(case: Case) -> None:
    """The matches are the same where each gives one row, which has its size, its start and its last variable."""
    assert case.pattern is not None
    measures = "MATCH_NUMBER() AS number, COUNT(*) AS size, FIRST(i) AS start, CLASSIFIER() AS variable"
    table = acep.match_recognize(case.table, short_clause(case.pattern, measures))
    matches = [match.split(":") for part in str(case.matches).split("|") for match in part.split()]
    sizes = [0 if variables == "-" else len(variables) for _, variables in matches]
    assert table.column("size").to_pylist() == sizes
    assert table.column("start").to_pylist() == [
        int(first) if size else None for (first, _), size in zip(matches, sizes, strict=True)
    ]
    assert table.column("variable").to_pylist() == [
        variables[-1] if size else None for (_, variables), size in zip(matches, sizes, strict=True)
    ]


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("engine", ["native"], indirect=True)
@by_file(BAD)
def test_refusal(case: Case) -> None:
    expected = case.error
    assert expected is not None
    with pytest.raises(AcepError) as caught:
        result_of(case)
    error = caught.value
    assert isinstance(error, DataError if expected.is_data else QueryError)
    assert expected.message.casefold() in error.message.casefold()
    assert error.code == expected.code
    if expected.at is not None:
        assert error.start is not None
        assert case.text[error.start : error.end] == expected.at


def test_the_corpus_is_large_and_names_are_unique() -> None:
    assert len(CASES) >= 400
    assert [name for name, count in Counter(case.id for case in CASES).items() if count > 1] == []
    assert sum(map(is_ordered_by_keys, CLAUSES)) > len(CLAUSES) / 2


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.toml")), ids=lambda path: path.stem)
def test_a_file_says_what_it_is_about(path: Any) -> None:
    assert path.read_text(encoding="utf-8").startswith("# ")
