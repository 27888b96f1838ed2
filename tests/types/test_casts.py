"""CAST of extreme and ordinary values of each type, on both engines, against the oracle's own."""

from __future__ import annotations

import random
from datetime import datetime
from typing import Any

import pyarrow as pa
import pytest

import acep
from acep.errors import QueryError
from acep.pattern.spelling import expression_text
from acep.plan.assume import assumed_plan
from tests.native.columns import FLOATS, INTS, TEXTS
from tests.oracle_values import cast

ENGINES = ("reference", "auto")
WRITTEN = ["7", "-7", "+7", " 7\t", "7.0", ".5", "5.", "-2.5e3", "1E2", "1e", "e1", "0x7", "1_000", "-", "", "1e999"]
WRITTEN += ["9223372036854775807", "9223372036854775808", "-9223372036854775808", "TRUE", " false ", "yes", "t", "nan"]
WRITTEN += ["٣", "inf", "Infinity", "1 2", "--1", *TEXTS]
COLUMNS: dict[str, list[Any]] = {"i": INTS, "f": FLOATS, "b": [True, False], "s": WRITTEN}
REFUSED = {("f", "boolean")}


def wanted(target: str, value: Any) -> Any:
    """The rules of semantics.md."""
    if value is None or value != value:
        return None
    if isinstance(value, float) and abs(value) == float("inf") and target != "float":
        return None
    found = cast(target, value)
    if target == "text" and isinstance(value, float) and value == 0:
        return "0.0"
    if target == "integer" and found is not None and not -(2**63) <= found < 2**63:
        return None
    return None if isinstance(value, str) and target == "float" and found == float("inf") else found


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("target", ["integer", "float", "text", "boolean"])
@pytest.mark.parametrize("name", COLUMNS)
def test_values_of_each_type(name: str, target: str, engine: str) -> None:
    values = [*COLUMNS[name], None]
    random.Random(3).shuffle(values)
    events = pa.table({"ts": range(len(values)), "type": ["A"] * len(values), "x": pa.array(values)})
    query = f"PATTERN A a RETURN CAST(a.x AS {target}) AS z"
    if (name, target) in REFUSED:
        with pytest.raises(QueryError, match="a float cannot be cast to boolean"):
            acep.match(events, query, engine=engine)
        return
    found = [match.values["z"] for match in acep.match(events, query, engine=engine)]
    assert found == [wanted(target, value) for value in values]
    kind = {"integer": int, "float": float, "text": str, "boolean": bool}[target]
    assert {type(value) for value in found if value is not None} == {kind}
    assert None in found


@pytest.mark.parametrize("engine", ENGINES)
def test_a_sum_of_what_a_cast_gives(engine: str) -> None:
    events = {"ts": [1, 2, 3], "type": ["A", "A", "B"], "s": ["2", "x", "3.5"]}
    query = "PATTERN SEQ(A a, B b) WHERE coalesce(CAST(a.s AS integer), 1) + CAST(b.s AS float) = 5.5"
    assert [match.bindings["a"] for match in acep.match(events, query, engine=engine)] == [(0,)]


@pytest.mark.parametrize("engine", ENGINES)
def test_times_as_texts(engine: str) -> None:
    times = [datetime(2024, 1, 31, 10), datetime(2024, 1, 31, 10, 0, 0, 500_000), datetime(1969, 12, 31, 23, 59, 59, 1)]
    events = pa.table({"ts": sorted(times), "type": ["A"] * 3})
    found = acep.match(events, "PATTERN A a RETURN CAST(a.ts AS text)", engine=engine)
    written = ["1969-12-31 23:59:59.000001", "2024-01-31 10:00:00", "2024-01-31 10:00:00.5"]
    assert [match.values["cast_a_ts"] for match in found] == written


def test_explain_shows_the_cast() -> None:
    plan = assumed_plan(acep.parse("PATTERN SEQ(A a, B b) WHERE CAST(a.x AS integer) = b.y WITHIN 5"))
    assert [expression_text(predicate.written) for predicate in plan.predicates] == ["CAST(a.x AS integer) = b.y"]
