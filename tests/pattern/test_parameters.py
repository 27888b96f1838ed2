"""Parameters of a query: values, never text."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import acep
from acep.errors import QueryError
from acep.events.tables import schema_of
from acep.pattern.expressions import Duration, Literal, Timestamp
from acep.pattern.printing import canonical
from acep.pattern.text.parameters import parameter_of_text
from acep.pattern.times import ns_of
from acep.plan.compile import compile_query
from tests.pattern.test_sase import bare

VALUES = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.decimals(allow_nan=False, allow_infinity=False, places=20, min_value=-(10**9), max_value=10**9)
    | st.text(st.characters(exclude_categories=["Cs"]))
    | st.datetimes(datetime(1800, 1, 1), datetime(2200, 1, 1))
    | st.timedeltas(timedelta(0), timedelta(days=10**4))
)


class Color(StrEnum):
    """A text with a name."""

    RED = "red"


def as_written(value: Any) -> str:
    """The value as a user would write it into the text."""
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).upper()
        case str():
            return "'" + value.replace("'", "''") + "'"
        case datetime():
            return f"TIMESTAMP '{value.isoformat(' ')}'"
        case timedelta():
            return f"{value // timedelta(microseconds=1)} us"
        case int() | float():
            return repr(value)
    return format(value, "f")


@given(st.lists(VALUES, min_size=1, max_size=5))
def test_a_parameter_is_the_value_as_it_would_be_written(values: list[Any]) -> None:
    frame = "PATTERN SEQ(A a, B b) WHERE coalesce(a.x, {}) IS NULL AND coalesce(b.x, a.x) IS NULL"
    for value in values:
        found = acep.parse(frame.format(":v"), parameters={"v": value})
        wanted = acep.parse(frame.format(as_written(value)))
        assert [bare(e) for e in found.where] == [bare(e) for e in wanted.where]
        assert canonical(found) == canonical(wanted) == canonical(acep.parse(canonical(found)))


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=1, max_size=5))
def test_no_text_becomes_a_part_of_the_query(texts: list[str]) -> None:
    query = acep.parse("PATTERN SEQ(A a, B b) WHERE a.x IN :v AND b.x IN (:v, :one)", parameters={"v": texts, "one": 1})
    first, second = query.where
    assert [one.value for one in first.values] == texts  # type: ignore[union-attr]
    assert [one.value for one in second.values] == [*texts, 1]  # type: ignore[union-attr]
    assert canonical(acep.parse(canonical(query))) == canonical(query)


@pytest.mark.parametrize(
    "values", [np.array([1, 2]), pd.Series([1, 2], index=[7, 5]), pd.Index([1, 2]), pl.Series([1, 2]), pa.array([1, 2])]
)
def test_a_column_is_a_list(values: Any) -> None:
    query = acep.parse("PATTERN A a WHERE a.x IN :v", parameters={"v": values})
    assert canonical(query) == canonical(acep.parse("PATTERN A a WHERE a.x IN (1, 2)"))


@pytest.mark.parametrize(
    ("value", "constant"),
    [
        (np.int64(3), Literal(3)),
        (np.float64(0.5), Literal(0.5)),
        (np.str_("x"), Literal("x")),
        (Color.RED, Literal("red")),
        (Fraction(3), Literal(3)),
        (Fraction(1, 4), Literal(0.25)),
        (Decimal("1e2"), Literal(100.0)),
        (Decimal("0.12345678901234567890"), Literal(0.12345678901234568, exact=Fraction("0.1234567890123456789"))),
        (date(2024, 1, 31), Timestamp(ns_of(datetime(2024, 1, 31)))),
        (datetime(2024, 1, 31, 1, tzinfo=UTC), Timestamp(ns_of(datetime(2024, 1, 31, 1)))),
        (pd.Timestamp("2024-01-31 00:00:00.000000007"), Timestamp(ns_of(datetime(2024, 1, 31)) + 7)),
        (pd.Timedelta(1007, "ns"), Duration(Fraction(1007))),
    ],
)
def test_values_of_other_types(value: Any, constant: Any) -> None:
    query = acep.parse("PATTERN A a WHERE coalesce(a.x, :v) IS NULL", parameters={"v": value})
    assert bare(query.where[0].operand.args[1]) == constant  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (object(), "`:v` cannot be a value of type object"),
        ([1, object()], "`:v` cannot be a value of type object"),
        (b"x", "`:v` cannot be a value of type bytes"),
        (np.arange(3), "a list belongs behind IN"),
        ([[1]], "`:v` cannot be a value of type list"),
        ([], "`:v` is an empty list"),
        (2**63, "`:v` does not fit into 64 bits"),
        (float("nan"), "`:v` is nan, not a finite number"),
        (Decimal("Infinity"), "`:v` is Infinity, not a finite number"),
        (Decimal("1e401"), "`:v` has too many digits"),
        (Decimal("1e399"), "`:v` is too large a number"),
        (Fraction(1, 3), "`:v` is 1/3, which no decimal number equals"),
        ("\ud800", "`:v`: the text has half a character in it"),
        (None, "a comparison with NULL is never true"),
        ([1, 2], "a list belongs behind IN"),
        ("x", "`+` cannot take a text"),
    ],
)
def test_a_value_that_does_not_fit_is_one_line_with_its_place(value: Any, message: str) -> None:
    text = (
        "PATTERN SEQ(A a, B b) WHERE b.x > a.x + :v"
        if isinstance(value, str) and value == "x"
        else "PATTERN SEQ(A a, B b) WHERE b.x > :v"
    )
    with pytest.raises(QueryError) as caught:
        acep.parse(text, parameters={"v": value})
    assert caught.value.message == message
    assert "\n" not in caught.value.message
    assert caught.value.line == 1
    assert (caught.value.end or 0) >= text.index(":v")


@pytest.mark.parametrize(
    ("parameters", "message", "hint"),
    [
        ({}, "`:least` has no value", 'give it one: parameters={"least": 3}'),
        ({"leest": 3}, "`:least` has no value", "did you mean `leest`?"),
        ({"least": 3, "most": 4}, "the query has no parameter `:most`", "known: `least`"),
        ({3: 4}, "parameters: 3 is no name", 'parameters={"threshold": 3}'),
        ([3], "parameters=[3] is not a mapping", 'parameters={"threshold": 3}'),
    ],
)
def test_missing_and_needless_values(parameters: Any, message: str, hint: str) -> None:
    with pytest.raises(QueryError) as caught:
        acep.parse("PATTERN SEQ(A a, B b) WHERE b.x > :least", parameters=parameters)
    assert (caught.value.message, caught.value.hint) == (message, hint)
    with pytest.raises(QueryError, match="the query has no parameter `:x`"):
        acep.parse("PATTERN A a", parameters={"x": 1})


@pytest.mark.parametrize(
    ("text", "value", "written"),
    [
        ("WITHIN :w", timedelta(minutes=90), "WITHIN 1 h 30 min"),
        ("WITHIN :w", "1 hour 30 minutes", "WITHIN 1 h 30 min"),
        ("WITHIN :w", "5 EVENTS", "WITHIN 5 EVENTS"),
        ("WITHIN :w", 500, "WITHIN 500"),
        ("WITHIN :w", 0.1, "WITHIN 0.1"),
        ("WITHIN :w", Decimal("0.1"), "WITHIN 0.1"),
        ("WITHIN :w EVENTS", 5, "WITHIN 5 EVENTS"),
    ],
)
def test_windows(text: str, value: Any, written: str) -> None:
    assert (
        acep.parse(f"PATTERN A a {text}", parameters={"w": value}).within == acep.parse(f"PATTERN A a {written}").within
    )


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("WITHIN :w", -5),
        ("WITHIN :w", timedelta(minutes=-1)),
        ("WITHIN :w", True),
        ("WITHIN :w", None),
        ("WITHIN :w", "soon"),
        ("WITHIN :w", [5]),
        ("WITHIN :w", date(2024, 1, 1)),
        ("WITHIN :w EVENTS", 1.5),
        ("WITHIN :w EVENTS", "5"),
        ("WITHIN :w EVENTS", timedelta(minutes=1)),
    ],
)
def test_windows_that_make_no_sense(text: str, value: Any) -> None:
    with pytest.raises(QueryError) as caught:
        acep.parse(f"PATTERN A a {text}", parameters={"w": value})
    assert caught.value.line == 1


@pytest.mark.long
@pytest.mark.parametrize("engine", ["reference", "auto"])
def test_a_long_list(engine: str) -> None:
    import pyarrow as pa

    values = [Decimal(value) / 4 for value in range(4_000)]
    price = pa.array([values[-1], values[-1] + 1, None], pa.decimal128(9, 2))
    events = pa.table({"ts": [1, 2, 3], "type": ["A"] * 3, "price": price, "x": [3_998, 3_999, None]})
    for text, wanted in (("a.price IN :some", [0]), ("a.price NOT IN :some", [1]), ("a.x IN :whole", [0])):
        used = {name: given for name, given in (("some", values), ("whole", [*range(3_999)])) if f":{name}" in text}
        found = acep.match(events, acep.parse(f"PATTERN A a WHERE {text}", parameters=used), engine=engine)
        assert [match.bindings["a"] for match in found] == [(n,) for n in wanted]


def test_parameters_belong_to_the_fingerprint() -> None:
    import pyarrow as pa

    schema = schema_of(pa.schema({"ts": pa.int64(), "type": pa.string(), "x": pa.int64()}))

    def fingerprint(text: str, **parameters: Any) -> str:
        return compile_query(acep.parse(text, parameters=parameters), schema).fingerprint

    text = "FROM (PATTERN A a WHERE a.x > :least RETURN a.x) AS M PATTERN M m WHERE m.a_x != :not"
    assert fingerprint(text, least=3, **{"not": 5}) != fingerprint(text, least=4, **{"not": 5})
    assert fingerprint(text, least=3, **{"not": 5}) == fingerprint(text.replace(":least", "3").replace(":not", "5"))


def test_matches_of_a_query_with_parameters() -> None:
    events = {"ts": [1, 2, 3], "type": ["A", "A", "A"], "s": ["it's", "x' OR 'x' = 'x", "y"]}
    for name in events["s"]:
        query = acep.parse("PATTERN A a WHERE a.s = :name RETURN a.s", parameters={"name": name})
        assert [match.values["a_s"] for match in acep.match(events, query)] == [name]
    with pytest.raises(QueryError, match="`:name` has no value"):
        acep.match(events, "PATTERN A a WHERE a.s = :name")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", Literal(3)),
        ("-3", Literal(-3)),
        ("1.50", Literal(1.5)),
        ("true", Literal(True)),
        ("NULL", Literal(None)),
        ("'it''s'", Literal("it's")),
        ('"3"', Literal("3")),
        ("5 min", Duration(Fraction(300 * 10**9))),
        ("timestamp '1970-01-01 00:00:01'", Timestamp(10**9)),
        ("(1, 'a, b', c)", [Literal(1), Literal("a, b"), "c"]),
        ("()", []),
        ("1e3x", "1e3x"),
        ("5 mins ago", "5 mins ago"),
        ("it's", "it's"),
    ],
)
def test_values_of_the_command_line(text: str, value: Any) -> None:
    assert parameter_of_text(text) == value


@given(st.text(max_size=30))
def test_no_value_of_the_command_line_crashes(text: str) -> None:
    try:
        value = parameter_of_text(text)
        acep.parse("PATTERN A a WHERE a.x IN (1, :v)", parameters={"v": value})
    except QueryError:
        pass
