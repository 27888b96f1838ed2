"""acep.match_recognize gives what the enumeration gives: on random clauses, and on the cases by hand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import acep
from acep.errors import DataError, QueryError
from acep.row_patterns import row_search
from tests.case_counts import CaseCounts
from tests.row_patterns import tree
from tests.row_patterns.enumerate import Answer, RowPatternError, output_names, recognize
from tests.row_patterns.evaluate import Row
from tests.row_patterns.expressions import Value, kind_of
from tests.row_patterns.random_cases import Case, random_case
from tests.row_patterns.short_forms import HandCase
from tests.row_patterns.test_enumerate import HAND_CASES
from tests.row_patterns.text_of import text_of

N_CASES, N_PARTS = 20_000, 20
TYPES = {
    "integer": pa.int64(),
    "float": pa.float64(),
    "text": pa.string(),
    "boolean": pa.bool_(),
    "time": pa.timestamp("us", "UTC"),
}
MICROSECONDS = {None: 1, "SECOND": 1_000_000, "MINUTE": 60_000_000}
ERRORS = {"first row": "the row is the first of the match", "unbound": "a match has no row of that variable"}
OutputRow = tuple[Value, ...]


def table_of(columns: Sequence[str], rows: Sequence[Row], kinds: Mapping[str, str], unit: str | None) -> pa.Table:
    """Return rows as a table; times are so many seconds or minutes after 1970."""
    arrays = {}
    for name in columns:
        values: list[Any] = [row[name] for row in rows]
        if kinds[name] == "time":
            values = [None if value is None else value * MICROSECONDS[unit] for value in values]
        arrays[name] = pa.array(values, TYPES[kinds[name]])
    return pa.table(arrays)


def rows_of(result: pa.Table, unit: str | None) -> list[OutputRow]:
    """Return the rows of a result, its times as so many seconds or minutes."""
    columns: list[list[Value]] = []
    for column in result.columns:
        if pa.types.is_timestamp(column.type):
            microseconds = column.cast(pa.timestamp("us", "UTC")).cast(pa.int64()).to_pylist()
            columns.append([None if value is None else value // MICROSECONDS[unit] for value in microseconds])
        else:
            columns.append(column.to_pylist())
    return list(zip(*columns, strict=True))


def by_partition(rows: Iterable[OutputRow], n_keys: int) -> dict[OutputRow, list[OutputRow]]:
    """Return the rows of each partition: the order of partitions is not the standard's, that of their rows is."""
    partitions: dict[OutputRow, list[OutputRow]] = {}
    for key, rows_of_key in groupby(rows, lambda row: row[:n_keys]):
        assert key not in partitions, f"the rows of partition {key} stand apart"
        partitions[key] = list(rows_of_key)
    return partitions


def difference(
    clause: tree.Clause,
    text: str,
    table: pa.Table,
    kinds: Mapping[str, str],
    unit: str | None,
    answer: Answer | str,
) -> str | None:
    """Say how acep's answer differs from that of the enumeration, None if it does not."""
    try:
        result = acep.match_recognize(table, text)
    except DataError as error:
        if isinstance(answer, str) and any(ERRORS[kind] in str(error) for kind in answer.split(" or ")):
            return None
        return f"acep raises {error}, not {answer if isinstance(answer, str) else answer.rows}"
    except QueryError as error:
        return f"acep refuses the clause: {error}"
    if isinstance(answer, str):
        return f"acep gives {result.to_pylist()}, not the error {answer}"
    names = output_names(clause, tuple(table.column_names))
    if tuple(result.column_names) != names:
        return f"acep has the columns {result.column_names}, not {names}"
    measured = {measure.name: kind_of(measure.expression, dict(kinds)) for measure in clause.measures}
    types = [TYPES[(kinds | measured)[name]] for name in names]  # type: ignore[operator]
    if result.schema.types != types:
        return f"acep has the types {result.schema.types}, not {types}"
    n_keys = len(clause.partition)
    output, expected = by_partition(rows_of(result, unit), n_keys), by_partition(answer.rows, n_keys)
    wrong = {key: rows for key, rows in output.items() if rows != expected.get(key)}
    missing = {key: rows for key, rows in expected.items() if rows != output.get(key)}
    return f"acep gives {wrong}, not {missing}" if wrong or missing else None


@pytest.mark.parametrize("part", range(N_PARTS))
def test_random_clauses(part: int, cases: CaseCounts, monkeypatch: pytest.MonkeyPatch) -> None:
    if part % 2:
        monkeypatch.setattr(row_search, "BATCH_ROWS", 3)
    for seed in range(part, cases(N_CASES), N_PARTS):
        check(random_case(seed))


@pytest.mark.parametrize("part", range(4))
def test_random_clauses_by_the_reference_engine(part: int, cases: CaseCounts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_search, "USE_NATIVE", False)
    for seed in range(part, cases(N_CASES // 5), 4):
        check(random_case(seed))


@pytest.mark.long
@pytest.mark.parametrize("part", range(4))
def test_random_clauses_over_long_tables(part: int, cases: CaseCounts) -> None:
    for seed in range(part, cases(400), 4):
        check(random_case(seed, is_long=True))


def check(case: Case) -> None:
    """Assert that acep answers a case as the enumeration does; the text of a failure can be pasted."""
    table = table_of(case.columns, case.rows, case.kinds, case.unit)
    try:
        text = difference(case.clause, case.text, table, case.kinds, case.unit, case.answer)
    except Exception as error:
        raise AssertionError(case.paste()) from error
    assert text is None, f"{text}\n{case.paste()}"


@pytest.mark.parametrize("case", HAND_CASES, ids=str)
def test_cases_by_hand(case: HandCase) -> None:
    columns, rows = case.table
    has_text = {name for row in rows for name, value in row.items() if isinstance(value, str)}
    kinds = {name: "text" if name in has_text or (name == "s" and not rows) else "integer" for name in columns}
    answer: Answer | str
    try:
        answer = recognize(case.clause, rows, columns)
    except RowPatternError as error:
        answer = error.kind
    for rng in (None, Random(case.name)):
        text = text_of(case.clause, rng)
        assert difference(case.clause, text, table_of(columns, rows, kinds, None), kinds, None, answer) is None, text
