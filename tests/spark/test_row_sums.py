"""The sum of rows is the same in any order, whatever the layout in memory, and another one if any value is another."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from acep.spark.workers.row_sums import sum_of_rows

VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "truth": (pa.bool_(), [True, False, True, None, True, None]),
    "tiny": (pa.int8(), [1, -1, 0, None, 7, 1]),
    "short": (pa.int16(), [1, -1, 0, None, 7, 1]),
    "int": (pa.int32(), [1, -1, 0, None, 7, 1]),
    "long": (pa.int64(), [1, -(2**63), 0, None, 7, 1]),
    "float": (pa.float32(), [1.5, float("nan"), 0.0, None, -0.0, 1.5]),
    "double": (pa.float64(), [1.5, float("inf"), 0.0, None, -0.0, 1.5]),
    "text": (pa.string(), ["a", "", "\u00e9", None, "aa", "ab"]),
    "bytes": (pa.binary(), [b"a", b"", b"\0", None, b"\0\0", b"a"]),
    "date": (pa.date32(), [dt.date(2024, 1, d) for d in range(1, 6)] + [None]),
    "time": (pa.timestamp("us", "UTC"), [dt.datetime(2024, 1, d) for d in range(1, 6)] + [None]),
    "decimal": (pa.decimal128(38, 2), [Decimal("1.50"), Decimal(-1), Decimal(0), None, Decimal(2**70), Decimal("1.5")]),
    "gap": (pa.month_day_nano_interval(), [(1, 0, 0), (0, 1, 0), (0, 0, 1), None, (0, 0, 0), (1, 0, 1)]),
    "list": (pa.list_(pa.int64()), [[1], [], [1, 2], None, [2, 1], [0]]),
    "nothing": (pa.null(), [None] * 6),
}
TABLE = pa.table({name: pa.array(values, kind) for name, (kind, values) in VALUES.items()})


def test_order_and_layout_do_not_matter() -> None:
    wanted = sum_of_rows(TABLE)
    rng = np.random.default_rng(1)
    for _ in range(20):
        order = rng.permutation(len(TABLE))
        assert sum_of_rows(TABLE.take(pa.array(order))) == wanted
    assert sum_of_rows(pa.concat_tables([TABLE.slice(0, 2), TABLE.slice(2)])) == wanted
    assert sum_of_rows(pa.concat_tables([TABLE] * 3).slice(6, 6)) == wanted


@pytest.mark.parametrize("name", [name for name in VALUES if name != "nothing"])
def test_each_value_counts_and_belongs_to_its_row(name: str) -> None:
    kind, values = VALUES[name]
    place = TABLE.column_names.index(name)
    seen = {sum_of_rows(TABLE)}
    for row, other in ((0, 1), (0, 3), (0, 5), (2, 3), (1, 4)):
        if repr(values[row]) == repr(values[other]):
            continue
        changed = list(values)
        changed[row], changed[other] = values[other], values[row]
        seen.add(sum_of_rows(TABLE.set_column(place, name, pa.array(changed, kind))))
        changed[other] = values[other]
        seen.add(sum_of_rows(TABLE.set_column(place, name, pa.array(changed, kind))))
    assert len(seen) >= 8


def test_what_lies_under_a_null_does_not_matter() -> None:
    numbers = np.array([1, 2, 3])
    mask = np.array([False, True, False])
    other = np.array([1, 99, 3])
    assert sum_of_rows(pa.table({"x": pa.array(numbers, mask=mask)})) == sum_of_rows(
        pa.table({"x": pa.array(other, mask=mask)})
    )


def test_rows_add_up() -> None:
    parts = [sum_of_rows(TABLE.slice(row, 1)) for row in range(len(TABLE))]
    assert sum(parts) % 2**64 == sum_of_rows(TABLE)
    assert len(set(parts)) == len(parts)
    assert sum_of_rows(TABLE.slice(0, 0)) == 0
    assert sum_of_rows(TABLE.select(["text"]).slice(3, 1)) != 0
