"""Random typed tables, packed into one: values at the edges, queries over them, and the answer by exact arithmetic."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

import acep

__all__ = ["QUERIES", "Row", "expected", "packed"]

Row = dict[str, Any]
ROWS = 8  # of a table
START = dt.datetime(2024, 3, 31, tzinfo=dt.UTC)
NEAR = [Decimal("90071992547409930.01"), Decimal("90071992547409930.02")]

# Of each column its type and the values that it is drawn from; each may be null too.
EDGES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "i8": (pa.int8(), [-128, 127, 0, 1]),
    "i16": (pa.int16(), [-(2**15), 2**15 - 1, 0, 1]),
    "i32": (pa.int32(), [-(2**31), 2**31 - 1, 0, 1]),
    "i64": (pa.int64(), [2**53, 2**53 + 1, 2**63 - 1, -(2**63), 90071992547409930, 0, 1]),
    "f32": (pa.float32(), [0.0, -0.0, float("nan"), 1.5, float(np.float32(0.1)), float("inf")]),
    "f64": (pa.float64(), [0.0, -0.0, float("nan"), 0.1, 1.5, 2.0**53, 2.0**63, 1e308, 90071992547409930.0]),
    "d19": (pa.decimal128(19, 2), [*NEAR, -NEAR[0], Decimal("0.00"), Decimal("1.50"), Decimal("92233720368547758.07")]),
    "d38": (pa.decimal128(38, 0), [Decimal(n) for n in (2**53, 2**53 + 1, 2**63 - 1, 1 - 2**63, 0, 1)]),
    "d18": (pa.decimal128(18, 18), [Decimal(f"{sign}0.{n:018}") for sign in ("", "-") for n in (1, 2, 10**18 - 1)]),
    "d9": (pa.decimal128(9, 3), [Decimal("1.500"), Decimal("1.510"), Decimal("-0.001"), Decimal("999999.999")]),
    "flag": (pa.bool_(), [True, False]),
    "text": (pa.string(), ["", "a", "A", "a ", "\u00e9", "e\u0301", "\U0001f600", "90071992547409930.01"]),
    "day": (pa.date32(), [dt.date(2024, 3, 31), dt.date(2024, 10, 27), dt.date(1969, 12, 31)]),
    # Daylight saving begins and ends in Europe; by local time two of these are one hour.
    "zoned": (
        pa.timestamp("us", "UTC"),
        [dt.datetime(2024, 10, 27, h, 30, tzinfo=dt.UTC) for h in (0, 1)]
        + [dt.datetime(2024, 3, 31, 1, 0, 0, us, tzinfo=dt.UTC) for us in (0, 1)]
        + [dt.datetime(1960, 1, 1, 0, 0, 0, 1, tzinfo=dt.UTC)],
    ),
    "naive": (pa.timestamp("us"), [dt.datetime(2024, 3, 31, 2, 30), dt.datetime(2024, 10, 27, 2, 30, 0, 999_999)]),
    "gap": (pa.duration("us"), [dt.timedelta(0, 0, us) for us in (0, 1, -1)] + [dt.timedelta(1)]),
    "dev": (
        pa.struct([("id", pa.int64()), ("at", pa.struct([("city", pa.string())]))]),
        [{"id": i, "at": a} for i in (2**53, 2**53 + 1, None) for a in ({"city": "x"}, {"city": ""}, None)],
    ),
}


def packed(tables: int, seed: int) -> pa.Table:
    """So many tables in one, each with its number in the column ``t``, and too far apart in time to have a match in
    common."""
    rng = random.Random(seed)
    size = tables * ROWS
    seconds = [1000 * (i // ROWS) + i % ROWS // 2 for i in range(size)]  # there are ties
    columns: dict[str, Any] = {
        "ts": pa.array([START + dt.timedelta(seconds=s) for s in seconds], pa.timestamp("us", "UTC")),
        "type": pa.array(rng.choices("ab", k=size)),
        "t": pa.array([i // ROWS for i in range(size)]),
    }
    for name, (held, edges) in EDGES.items():
        values: list[Any] = []
        for _ in range(tables):  # a table has few of the values, so that they meet
            some = rng.sample(edges, min(3, len(edges)))
            values += rng.choices([*some, None], k=ROWS)
        columns[name] = pa.array(values, held)
    return pa.table(columns)


def _field(row: Row, name: str) -> Any:
    value: Any = row
    for part in name.split("."):
        value = None if value is None else value[part]
    return value


def _null(*values: Any) -> bool:
    return any(value is None or value != value for value in values)


Test = Callable[[Any, Any], bool]
KEYS = [name for name in EDGES if name != "dev"] + ["dev.id", "dev.at.city"]
# Predicates over a column of the first event and one of the second; where either is null they do not hold.
TESTS: dict[str, tuple[str, str, Test]] = {
    "x.i64 < y.f64": ("i64", "f64", lambda x, y: x < y),
    "x.i64 = y.f64": ("i64", "f64", lambda x, y: x == y),
    "x.i64 >= y.d19": ("i64", "d19", lambda x, y: x >= y),
    "x.d19 = y.d19": ("d19", "d19", lambda x, y: x == y),
    "x.d19 < y.d19": ("d19", "d19", lambda x, y: x < y),
    "x.d19 <= y.f64": ("d19", "f64", lambda x, y: x <= y),
    "x.d38 = y.i64": ("d38", "i64", lambda x, y: x == y),
    "x.d18 < y.d18": ("d18", "d18", lambda x, y: x < y),
    "x.d9 + 0.01 = y.d9": ("d9", "d9", lambda x, y: x + Decimal("0.01") == y),
    "x.d9 * 2 > y.i8": ("d9", "i8", lambda x, y: x * 2 > y),
    "x.i32 + y.i32 > 0": ("i32", "i32", lambda x, y: x + y > 0),
    "x.f32 < y.f64": ("f32", "f64", lambda x, y: x < y),
    "x.text < y.text": ("text", "text", lambda x, y: x.encode() < y.encode()),
    "x.text = 'a'": ("text", "t", lambda x, _: x == "a"),
    "x.d19 IN (90071992547409930.01, 1.5)": ("d19", "t", lambda x, _: x in (NEAR[0], Decimal("1.5"))),
    "x.i64 IN (9007199254740993, 1)": ("i64", "t", lambda x, _: x in (2**53 + 1, 1)),
    "x.zoned < y.zoned": ("zoned", "zoned", lambda x, y: x < y),
    "x.naive != y.naive": ("naive", "naive", lambda x, y: x != y),
    "x.day <= y.day": ("day", "day", lambda x, y: x <= y),
    "x.gap < y.gap": ("gap", "gap", lambda x, y: x < y),
    "x.dev.id < y.dev.id": ("dev.id", "dev.id", lambda x, y: x < y),
    "x.dev.at.city = y.dev.at.city": ("dev.at.city", "dev.at.city", lambda x, y: x == y),
}
RETURNED = {name: name for name in ("i8", "i64", "f64", "d19", "d38", "flag", "text")}
RETURNED |= {"z": "zoned", "city": "dev.at.city"}


def _query(where: str, returns: str = "") -> acep.Query:
    return acep.parse(f"PATTERN SEQ(a x, b y) WHERE skip_till_any_match(x, y) {{ {where} }} WITHIN 100 s {returns}")


QUERIES = {f"[{key}]": _query(f"[{key}]") for key in KEYS}
QUERIES |= {where: _query(f"[t] AND {where}") for where in TESTS}
QUERIES["return"] = _query("[t]", "RETURN " + ", ".join(f"x.{name} AS {given}" for given, name in RETURNED.items()))


def expected(table: pa.Table) -> dict[str, list[tuple[int, int, tuple[Any, ...]]]]:
    """Of each query its matches: the numbers of the rows that are bound, and the values returned."""
    rows = table.to_pylist()
    found: dict[str, list[tuple[int, int, tuple[Any, ...]]]] = {name: [] for name in QUERIES}
    for start in range(0, len(rows), ROWS):
        numbers = range(start, start + ROWS)
        pairs = [(i, j) for i in numbers for j in numbers if i < j and (rows[i]["type"], rows[j]["type"]) == ("a", "b")]
        for i, j in pairs:
            x, y = rows[i], rows[j]
            for key in KEYS:
                mine, other = _field(x, key), _field(y, key)
                if not _null(mine, other) and mine == other:
                    found[f"[{key}]"].append((i, j, ()))
            for where, (mine, other, test) in TESTS.items():
                values = _field(x, mine), _field(y, other)
                if not _null(*values) and test(*values):
                    found[where].append((i, j, ()))
            found["return"].append((i, j, tuple(plain(_field(x, name)) for name in RETURNED.values())))
    return found


def plain(value: Any) -> Any:
    """A value as it is compared: NaN is null, -0.0 is 0.0, and a zone is UTC by any name."""
    if _null(value):
        return None
    if isinstance(value, float):
        return value + 0.0
    return value.astimezone(dt.UTC) if isinstance(value, dt.datetime) and value.tzinfo is not None else value
