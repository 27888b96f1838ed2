"""The types of columns of a :class:`acep.Matcher`: those of the first batch, or those of ``cast=``."""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import acep
from acep import DataError, Matcher

LATER = "PATTERN SEQ(a x, b y) WHERE y.v = y.v WITHIN 9"


def cast_of_hint(wrong: pytest.ExceptionInfo[DataError]) -> dict[str, str]:
    cast = re.search(r'cast=\{"(\w+)": "(.*?)"\}', str(wrong.value.hint))
    assert cast is not None, wrong.value.hint
    return {cast[1]: cast[2]}


@pytest.mark.parametrize("first", [{"v": None}, {}])
@pytest.mark.parametrize(
    ("value", "cast"),
    [
        (7, "int"),
        (7.5, "float"),
        ("7", "string"),
        (True, "bool"),
        (dt.datetime(2024, 1, 31), "timestamp"),
        (dt.datetime(2024, 1, 31, tzinfo=dt.UTC), "timestamptz"),
        (Decimal("1.50"), "decimal(9,2)"),
        ({"n": [1]}, "string"),
    ],
)
def test_a_column_that_is_null_or_missing_at_first_has_the_type_of_its_cast(
    first: dict[str, Any], value: Any, cast: str
) -> None:
    matcher = Matcher(LATER, cast={"v": cast})
    assert len(matcher.push([{"ts": 1, "type": "a", **first}])) == 0
    state = matcher.snapshot()
    assert len(matcher.push([{"ts": 2, "type": "b", "v": value}])) == 1
    again = Matcher(LATER, cast={"v": cast})
    again.restore(state)
    assert len(again.push([{"ts": 2, "type": "b", "v": value}, {"ts": 3, "type": "b"}])) == 1


@pytest.mark.parametrize(("before", "now"), [({"v": "float"}, {"v": "int"}), ({"v": "float"}, {}), ({}, {"v": "int"})])
@pytest.mark.parametrize("dynamic", [False, True])
def test_a_snapshot_of_other_casts_is_refused(before: dict[str, str], now: dict[str, str], dynamic: bool) -> None:
    matcher = Matcher(LATER, cast=before, dynamic=dynamic)
    matcher.push([{"ts": 1, "type": "a", "v": 1.5}])
    restored = Matcher(LATER, cast=now, dynamic=dynamic)
    with pytest.raises(acep.SnapshotError, match=re.escape(f"with cast={before}, and here it has cast={now}")):
        restored.restore(matcher.snapshot())
    same = Matcher(LATER, cast=before, dynamic=dynamic)
    same.restore(matcher.snapshot())
    again = Matcher(LATER, cast=before, dynamic=dynamic)
    again.restore(same.snapshot())
    assert len(again.push([{"ts": 2, "type": "b", "v": 2.5}])) == 1


@pytest.mark.parametrize(
    "value", [7, 7.5, "7", True, dt.datetime(2024, 1, 31), dt.datetime(2024, 1, 31, tzinfo=dt.UTC)]
)
def test_the_cast_that_the_refusal_names_works(value: Any) -> None:
    batches = [[{"ts": 1, "type": "a", "v": None}], [{"ts": 2, "type": "b", "v": value}]]
    matcher = Matcher(LATER)
    matcher.push(batches[0])
    with pytest.raises(DataError, match="where only nulls were seen before") as wrong:
        matcher.push(batches[1])
    matcher = Matcher(LATER, cast=cast_of_hint(wrong))
    assert [len(matcher.push(batch)) for batch in batches] == [0, 1]


@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Berlin"])
@pytest.mark.parametrize(("first", "later"), [("s", "ms"), ("s", "us"), ("ms", "ns")])
def test_times_finer_than_those_of_the_first_batch(zone: str | None, first: str, later: str) -> None:
    batches = [
        pa.table({"ts": pa.array([1], pa.timestamp(first, zone)), "type": ["a"]}),
        pa.table({"ts": pa.array([10**10 + 1], pa.timestamp(later, zone)), "type": ["b"]}),
    ]
    query = "PATTERN SEQ(a x, b y) WITHIN 400 d"
    matcher = Matcher(query)
    matcher.push(batches[0])
    with pytest.raises(DataError, match="column `ts` has times that fall between the ticks of the stream") as wrong:
        matcher.push(batches[1])
    matcher = Matcher(query, cast=cast_of_hint(wrong))
    assert [len(matcher.push(batch)) for batch in batches] == [0, 1]


def test_a_value_that_a_cast_cannot_hold_is_refused_with_its_row() -> None:
    matcher = Matcher(LATER, cast={"v": "int"})
    with pytest.raises(DataError, match=r"`v` is 'many' in row 1 \(rows count from 0\), which is no int"):
        matcher.push({"ts": [1, 2], "type": ["a", "b"], "v": ["5", "many"]})
    assert len(matcher.push({"ts": [1, 2], "type": ["a", "b"], "v": ["5", "6"]})) == 1
    matcher = Matcher(LATER, cast={"v": "timestamp"})
    with pytest.raises(DataError, match="which is no timestamp") as wrong:
        matcher.push({"ts": [1], "type": ["a"], "v": pa.array([1], pa.timestamp("ns"))})
    assert cast_of_hint(wrong) == {"v": "timestamp(ns)"}
    matcher = Matcher(LATER, cast={"v": "timestamp(s)"})
    with pytest.raises(DataError, match=r"which is no timestamp\(s\)") as wrong:
        matcher.push({"ts": [1], "type": ["a"], "v": [3.000000001]})
    assert "write integers that count them" in str(wrong.value.hint)
    for naive in ("2024-01-31T10:00", dt.datetime(2024, 1, 31), dt.date(2024, 1, 31)):
        with pytest.raises(DataError, match="which is no timestamptz"):
            Matcher(LATER, cast={"v": "timestamptz"}).push({"ts": [1], "type": ["a"], "v": [naive]})
    with pytest.raises(DataError, match="say what it counts"):
        Matcher(LATER, cast={"v": "timestamp"}).push({"ts": [1], "type": ["a"], "v": [1]})


def test_a_cast_is_checked_when_it_is_given() -> None:
    with pytest.raises(DataError, match="`v` cannot be cast to 'number'"):
        Matcher(LATER, cast={"v": "number"})
    with pytest.raises(DataError, match=r"the time column `ts` must hold .* cast to string") as wrong:
        Matcher(LATER, cast={"ts": "string"})
    assert cast_of_hint(wrong) == {"ts": "timestamp"}
    with pytest.raises(DataError, match="cast= takes a dict"):
        Matcher(LATER, cast=["v"])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"acep\.read_events"):
        acep.match({"ts": [1]}, LATER, cast={"v": "int"})  # type: ignore[call-overload]
