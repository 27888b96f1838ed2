"""Walks of open matches in the native core go on as long as the match waits, and refuse arrays that do not fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from acep.events.batch import Column
from acep.native import _native
from acep.plan.ordered.open_matches import add_open_matches
from acep.plan.schema import Kind
from acep.row_patterns.match_rows import plan_clause
from acep.row_patterns.native_search import lower_plan, make_search
from acep.row_patterns.row_values import Evaluator

COLUMNS = pa.schema([("ts", pa.int64()), ("x", pa.int64())])


def walks_of(condition: str) -> Any:
    """The walks of a pattern `A+`, of which A has a condition."""
    clause = f"ORDER BY ts MEASURES count(*) AS n PATTERN (A+) DEFINE A AS {condition}"
    plan = add_open_matches(plan_clause(COLUMNS, clause))
    evaluator = Evaluator(None)
    nothing = {name: Column(Kind.INT, np.zeros(0, np.int64)) for name in COLUMNS.names}
    tables = lower_plan(plan, nothing, evaluator)
    assert tables is not None
    return _native.BoundWalks(make_search(tables))


def begin(walks: Any, xs: list[int], **changes: Any) -> list[int]:
    """Begin with the match of all rows but the open one, which is the last; return whether it waits."""
    given: dict[str, Any] = {
        "columns": [(np.array(xs), None)],
        "partitions": np.array([0, len(xs)]),
        "texts": _native.Texts(),
        "codes": np.array([7]),
        "firsts": np.array([0]),
        "behind": 0,
        "numbers": np.array([1]),
        "label_offsets": np.array([0, len(xs)]),
        "labels": np.array([0] * (len(xs) - 1) + [1], np.uint16),
    }
    waits: list[int] = walks.begin(**given | changes).tolist()
    return waits


def walk(walks: Any, xs: list[int], **changes: Any) -> list[int]:
    """Walk on over rows, of which the last one is the open row; return whether the match still waits."""
    is_open = np.array([0] * (len(xs) - 1) + [1], np.uint8)
    given: dict[str, Any] = {
        "columns": [(np.array(xs), None)],
        "local": [1 - is_open, is_open],
        "partitions": np.array([0, len(xs)]),
        "texts": _native.Texts(),
        "codes": np.array([7]),
        "fresh": np.array([0]),
        "memory": 1 << 20,
    }
    waits: list[int] = walks.walk(**given | changes).tolist()
    return waits


def test_a_walk_goes_on_with_what_was_bound() -> None:
    walks = walks_of("sum(A.x) < 10")
    assert begin(walks, [3, 3, 0]) == [1]
    assert walk(walks, [1, 0]) == [1]
    assert walk(walks, [1, 1, 0]) == [1]
    assert walk(walks, [1, 0]) == [0]  # the sum is 10
    assert len(walks) == 0
    assert walk(walks, [0, 0]) == [0]


def test_a_sum_beyond_64_bits_is_left_to_a_search() -> None:
    walks = walks_of("sum(A.x) <> 1")
    assert begin(walks, [2**62, 0]) == [1]
    assert walk(walks, [2**62, 0]) == [0]


def test_a_match_that_is_begun_anew_replaces_the_other() -> None:
    walks = walks_of("sum(A.x) < 10")
    assert begin(walks, [9, 0]) == [1]
    assert begin(walks, [1, 0]) == [1]
    assert walk(walks, [5, 0]) == [1]
    assert begin(walks, [1, 0], firsts=np.array([-1])) == [0]
    assert len(walks) == 0
    begin(walks, [1, 0])
    walks.clear()
    assert len(walks) == 0


@pytest.mark.parametrize(
    "changes",
    [
        {"columns": []},
        {"columns": [(np.array([1, 2, 3]), None)]},
        {"columns": [(np.array([1, 2]), np.zeros(3, np.uint8))]},
        {"partitions": np.array([], np.int64)},
        {"partitions": np.array([0, 0])},
        {"partitions": np.array([1, 2])},
        {"codes": np.array([], np.int64)},
        {"firsts": np.array([0, 0])},
        {"behind": -1},
        {"label_offsets": np.array([0, 9])},
        {"label_offsets": np.array([2, 0])},
        {"labels": np.array([0, 9], np.uint16)},
        {"texts": None},
    ],
    ids=str,
)
def test_arrays_that_do_not_fit_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises((ValueError, TypeError, RuntimeError)):
        begin(walks_of("sum(A.x) < 10"), [1, 0], **changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"firsts": np.array([1])},
        {"firsts": np.array([2**62])},
        {"label_offsets": np.array([0, 0])},
        {"labels": np.array([1, 0], np.uint16)},
    ],
    ids=str,
)
def test_labels_of_no_open_match_are_not_walked(changes: dict[str, Any]) -> None:
    walks = walks_of("sum(A.x) < 10")
    assert begin(walks, [1, 0], **changes) == [0]
    assert walk(walks, [1, 0]) == [0]


@pytest.mark.parametrize(
    "changes",
    [
        {"local": []},
        {"local": [np.ones(1, np.uint8)] * 2},
        {"fresh": np.array([2])},
        {"fresh": np.array([-1])},
        {"fresh": np.array([0, 0])},
        {"memory": -1},
        {"columns": []},
    ],
    ids=str,
)
def test_walks_over_rows_that_do_not_fit_are_refused(changes: dict[str, Any]) -> None:
    walks = walks_of("sum(A.x) < 10")
    begin(walks, [1, 0])
    with pytest.raises(ValueError, match=r"."):
        walk(walks, [1, 0], **changes)
