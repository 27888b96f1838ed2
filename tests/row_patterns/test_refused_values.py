"""What a clause cannot compute with is refused with its place."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest

import acep

VALUES = pa.table({
    "i": [1, 2],
    "list": [[1], None],
    "map": pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int64())),
    "struct": [{"a": 1}, None],
    "bytes": [b"x", None],
    "time": pa.array([dt.time(1), None]),
})  # fmt: skip
WHOLE = "OVER (ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)"


@pytest.mark.parametrize("name", VALUES.column_names[1:])
def test_an_aggregate_of_a_column_that_is_not_computed_with_is_refused_with_its_place(name: str) -> None:
    measures = [f"count({name})", f"count(A.{name})", f"count(DISTINCT {name})", f"max_by(i, {name})",
                f"array_agg(i ORDER BY {name})", f"string_agg(i, ',' ORDER BY {name})"]  # fmt: skip
    clauses = [f"ORDER BY i MEASURES {measure} AS n PATTERN (A+)" for measure in measures]
    conditions = [f"count({name}) > 0", f"count({name}) {WHOLE} > 0", f"min_by(i, {name}) > 0"]
    clauses += [f"ORDER BY i MEASURES i AS n PATTERN (A+) DEFINE A AS {condition}" for condition in conditions]
    for clause in clauses:
        for run in (lambda text: acep.match_recognize(VALUES, text), lambda text: acep.Matcher(text).push(VALUES)):
            with pytest.raises(acep.QueryError, match=f"column `{name}` is .*line 1, column"):
                run(clause)


def test_columns_that_are_not_computed_with_are_given_as_they_are() -> None:
    clause = "ORDER BY i MEASURES first(list) AS f, array_agg(struct) AS s, last(time) AS t PATTERN (A+)"
    result = acep.match_recognize(VALUES, clause).to_pydict()
    assert result == {"f": [[1]], "s": [[{"a": 1}, None]], "t": [None]}


@pytest.mark.parametrize("rest", ["MEASURES count(DISTINCT *) AS n PATTERN (A+)",
                                  "MEASURES count(*) AS n PATTERN (A+) DEFINE A AS count(DISTINCT *) > 0"])  # fmt: skip
def test_different_rows_are_not_counted(rest: str) -> None:
    with pytest.raises(acep.QueryError, match=r"count of all columns has no meaning.*line 1, column"):
        acep.match_recognize({"i": [1, 1]}, f"ORDER BY i {rest}")


@pytest.mark.parametrize("rest", ["MEASURES '\ud800' AS z PATTERN (A)", "PATTERN (A) DEFINE A AS '\ud800' = 'a'",
                                  'MEASURES i AS "\udfff" PATTERN (A)', "PATTERN (\ud800)"])  # fmt: skip
def test_half_a_character_is_refused_with_its_place(rest: str) -> None:
    clause = f"ORDER BY i {rest}"
    place = next(index for index, character in enumerate(clause, 1) if "\ud800" <= character <= "\udfff")
    for run in (
        lambda: acep.match_recognize({"i": [1]}, clause),
        lambda: acep.Matcher(clause),
        lambda: acep.sql(f"SELECT * FROM t MATCH_RECOGNIZE ({clause})", t={"i": [1]}),  # noqa: S608
    ):
        with pytest.raises(acep.QueryError, match="is no character") as refused:
            run()
        assert f"line 1, column {place}" in str(refused.value) or "MATCH_RECOGNIZE" in str(refused.value)
