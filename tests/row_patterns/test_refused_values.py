"""Values that a clause cannot compute with are refused, with their place."""

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


def test_permute_of_many_patterns_is_refused_by_its_name() -> None:
    names = ", ".join("ABCDEFGHIJ")
    with pytest.raises(acep.QueryError, match="PERMUTE of 10 patterns has 3,628,800 orders"):
        acep.match_recognize({"i": [1]}, f"MEASURES count(*) AS n PATTERN (PERMUTE({names}))")
    with pytest.raises(acep.QueryError, match="its quantifiers are too large"):
        acep.match_recognize({"i": [1]}, "MEASURES count(*) AS n PATTERN (A{200000} B{2})")


@pytest.mark.parametrize("word", ["FINAL", "RUNNING", "final"])
def test_a_prefix_before_a_column_is_refused_in_the_order_of_the_text(word: str) -> None:
    with pytest.raises(acep.QueryError, match=f"{word.upper()} stands before FIRST, LAST or an aggregate.*column 21"):
        acep.match_recognize({"i": [1]}, f"ORDER BY i MEASURES {word} i AS n PATTERN (A)")


@pytest.mark.parametrize(("interval", "counts"), [
    ("'00:00:01' HOUR TO SECOND", [2, 1]), ("'0:01' HOUR TO MINUTE", [2, 1]), ("'1:01.5' MINUTE TO SECOND", [3]),
    ("'0 00:00' DAY TO MINUTE", [1, 1, 1]),
])  # fmt: skip
def test_a_window_of_several_units(interval: str, counts: list[int]) -> None:
    times = [dt.datetime(2026, 1, 1) + dt.timedelta(seconds=s) for s in (0, 1, 61.5)]
    clause = f"ORDER BY t MEASURES count(*) AS n PATTERN (A+) WITHIN INTERVAL {interval}"
    assert acep.match_recognize({"t": times}, clause) == {"n": counts}


@pytest.mark.parametrize(("interval", "message"), [
    ("'1:2:3' HOUR TO MINUTE", "is not an interval from HOUR to MINUTE"),
    ("'1:60' HOUR TO MINUTE", "is not an interval from HOUR to MINUTE"),
    ("'1:30' MINUTE TO HOUR", "MINUTE TO HOUR are not units of an interval"),
    ("'1-2' YEAR TO MONTH", "YEAR TO MONTH are not units of an interval"),
    ("'-1:30' HOUR TO MINUTE", "no negative length"),
    ("'1:30' HOUR TO", "HOUR TO  are not units of an interval"),
])  # fmt: skip
def test_a_window_of_units_that_do_not_fit_is_refused(interval: str, message: str) -> None:
    clause = f"ORDER BY t PATTERN (A+) WITHIN INTERVAL {interval}"
    with pytest.raises(acep.QueryError, match=f"{message}.*line 1, column"):
        acep.match_recognize({"t": [dt.datetime(2026, 1, 1)]}, clause)
