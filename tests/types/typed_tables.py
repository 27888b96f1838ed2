"""Random tables of typed columns with values at the edges, and what they hold in Python's exact arithmetic.

A value is ``None``, an ``int``, a ``Fraction`` (decimals), a ``float`` (never NaN), a ``str``, a ``bool``, or for times
an ``int`` of nanoseconds since 1970 in UTC.
"""

from __future__ import annotations

import datetime as dt
import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pyarrow as pa

__all__ = ["TypedColumn", "TypedTable", "random_table"]

EDGES = [0, 1, -1, 2, 7, 2**31, 2**53 - 1, 2**53, 2**53 + 1, -(2**53) - 1, 2**62, 2**63 - 1, -(2**63), -(2**63) + 1]
FLOATS = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.1,
    1.1,
    1.5,
    -2.5,
    2.0**53,
    2.0**53 + 2,
    2.0**63,
    -(2.0**63),
    1e-300,
    5e-324,
    1e300,
    math.inf,
    -math.inf,
    math.nan,
    90071992547409930.02,
    1.7976931348623157e308,
]
TEXTS = ["", "a", "A", "b", "é", "e\u0301", "ß", "ss", "\U0001f600", "\uffff", "a\u200d", " a", "a ", "0", "01", "1"]
# Numbers near which the columns of a table all have some: there integers, decimals and doubles are told apart.
NEAR = [
    Fraction(text)
    for text in (
        "1.1",
        "0.1",
        "-1.105",
        "9007199254740993",
        "90071992547409930.01",
        "-92233720368547758.07",
        "123456789.987654321",
        "0.3",
        "4503599627370497.5",
        "922337203685477580.7",
        "-7",
    )
]
# Around the changes of clocks in Berlin and New York, and other moments; in seconds of UTC.
MOMENTS = [0, 1, -1, 1711846799, 1711846800, 1729987200, 1729990800, 1710054000, 1730613600, 951782400, 4102444800]
ZONES = [None, "UTC", "Europe/Berlin", "America/New_York", "+05:30"]
UNITS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
LIMIT = 2**63


@dataclass(frozen=True)
class TypedColumn:
    """A column and the exact values that it stands for; ``kind``: int, decimal, float, text, bool, time or none.

    ``scale``: in which decimals are held. ``refused``: its type or one of its values is not held.
    """

    name: str
    array: pa.Array
    kind: str
    values: list[Any]
    scale: int = 0
    refused: bool = False
    shown: int | None = None  # the places of a type of more digits than are held


@dataclass(frozen=True)
class TypedTable:
    """n events in the order of ``ts``, of types ``a`` and ``b``; ``columns`` are the others, by name."""

    arrow: pa.Table
    types: list[str]
    columns: dict[str, TypedColumn]
    timed: bool  # ts is a timestamp

    def of_kind(self, *kinds: str) -> list[TypedColumn]:
        """The columns of these kinds that may be used."""
        return [column for column in self.columns.values() if column.kind in kinds and not column.refused]


def random_table(rng: random.Random, most: int = 7) -> TypedTable:
    """A table of two to ``most`` rows.

    >>> one = random_table(random.Random(1))
    >>> one.arrow.num_rows == len(one.types) == len(one.columns["c0"].values)
    True
    """
    size = rng.randint(2, most)
    types = [rng.choice("ab") for _ in range(size)]
    timed = rng.random() < 0.5
    ts: Any = pa.array(range(size), pa.int64())
    if timed:
        ts = pa.array([MOMENTS[3] * 10**6 + i for i in range(size)], pa.timestamp("us", rng.choice(ZONES)))
    near = rng.sample(NEAR, 2)
    columns = [_column(f"c{i}", size, rng, near) for i in range(rng.randint(3, 6))]
    columns.append(
        TypedColumn(
            f"c{len(columns)}",
            pa.array(ints := _pick(rng, _units(near, 0, rng) + EDGES[:9], size), pa.int64()),
            "int",
            ints,
        )
    )
    # Two columns of one type meet more often than chance would have it.
    columns.append(_again(rng.choice(columns), f"c{len(columns)}", rng))
    arrow = pa.table({"ts": ts, "type": types} | {column.name: column.array for column in columns})
    return TypedTable(arrow, types, {column.name: column for column in columns}, timed)


def _again(column: TypedColumn, name: str, rng: random.Random) -> TypedColumn:
    order = [rng.randrange(len(column.values)) for _ in column.values]
    taken = pa.concat_arrays([column.array.slice(i, 1) for i in order])
    values = [column.values[i] for i in order]
    refused = _is_refused(column.kind, values, column.scale)
    return TypedColumn(name, taken, column.kind, values, column.scale, refused, column.shown)


def _is_refused(kind: str, values: list[Any], scale: int = 0) -> bool:
    """Whether a column of numbers does not fit into 64 bits, or is of a kind that cannot be used."""
    if kind not in ("int", "decimal"):
        return kind == "none"
    units = [v * 10**scale for v in values if v is not None]
    return any(not -LIMIT <= u < LIMIT or Fraction(u).denominator > 1 for u in units)


def _held(digits: int, scale: int) -> int:
    """The places that a decimal type keeps."""
    if digits <= 19:
        return min(scale, 18)
    before = digits - scale
    return min(scale, 18 - before) if before < 9 else min(scale, 9)


def _column(name: str, size: int, rng: random.Random, near: list[Fraction]) -> TypedColumn:
    if rng.random() < 0.6:
        return rng.choice([_ints, _decimals, _decimals, _decimals, _floats])(name, size, rng, near)
    return rng.choice([_texts, _bools, _times, _times, _others])(name, size, rng)


def _units(near: list[Fraction], scale: int, rng: random.Random) -> list[int]:
    """Numbers of units of 10**-scale about some numbers."""
    return [math.floor(number * 10**scale) + rng.choice([0, 0, 0, 1, -1]) for number in near for _ in range(4)]


def _pick(rng: random.Random, pool: list[Any], size: int) -> list[Any]:
    # Few distinct values, so that some are equal.
    few = [rng.choice(pool) for _ in range(rng.randint(1, 4))]
    return [None if rng.random() < 0.12 else rng.choice(few) for _ in range(size)]


def _wrapped(array: pa.Array, rng: random.Random) -> pa.Array:
    chance = rng.random()
    if chance < 0.1:
        return array.dictionary_encode()
    if chance < 0.15:
        return pa.concat_arrays([array, array]).slice(len(array))
    return array


def _ints(name: str, size: int, rng: random.Random, near: list[Fraction]) -> TypedColumn:
    bits, signed = rng.choice([8, 16, 32, 64, 64, 64]), rng.random() < 0.7
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    pool = [v for v in (*EDGES, low, high, high - 1, *_units(near, 0, rng), *_units(near, 0, rng)) if low <= v <= high]
    values = _pick(rng, pool, size)
    array = pa.array(values, getattr(pa, f"{'' if signed else 'u'}int{bits}")())
    return TypedColumn(name, _wrapped(array, rng), "int", values, refused=_is_refused("int", values))


def _decimals(name: str, size: int, rng: random.Random, near: list[Fraction]) -> TypedColumn:
    bits = rng.choice([32, 64, 128, 128, 128, 256])
    digits = rng.choice([rng.randint(1, 9), 18, 19, 38, 60])
    digits = min(digits, {32: 9, 64: 18, 128: 38, 256: 60}[bits])
    scale = rng.choice([0, 1, 2, 2, 3, 6, 9, 18, 20, 30])
    scale = min(scale, digits)
    most = 10**digits - 1
    kept = _held(digits, scale)
    finer = 10 ** (scale - kept)
    about = [u * finer + (rng.random() < 0.02) for u in _units(near, kept, rng)]
    if rng.random() < 0.9:  # else some do not fit into 64 bits
        about = [u for u in about if -LIMIT <= u // finer < LIMIT]
    edges = [*(u * finer for u in EDGES), most, -most, 10**scale, 110, 105] if rng.random() < 0.3 else []
    units = _pick(rng, [u for u in (*about, *edges) if abs(u) <= most] or [0, 1], size)
    held = getattr(pa, f"decimal{bits}")(digits, scale)
    exact = [None if u is None else Decimal((int(u < 0), tuple(map(int, str(abs(u)))), -scale)) for u in units]
    values = [None if u is None else Fraction(u, 10**scale) for u in units]
    refused, shown = _is_refused("decimal", values, kept), scale if digits > 19 else None
    return TypedColumn(name, pa.array(exact, held), "decimal", values, kept, refused, shown)


def _floats(name: str, size: int, rng: random.Random, near: list[Fraction]) -> TypedColumn:
    held = rng.choice([pa.float64(), pa.float64(), pa.float64(), pa.float32(), pa.float16()])
    about = [
        math.nextafter(float(number), rng.choice([0, math.inf, float(number)])) for number in near for _ in range(4)
    ]
    array = pa.array(_pick(rng, FLOATS + about * 3, size), pa.float64())
    if held != pa.float64():
        array = array.cast(pa.float32(), safe=False)
        array = array.cast(held, safe=False) if held == pa.float16() else array
    given = [None if v is None else float(v) for v in array.to_pylist()]
    return TypedColumn(name, array, "float", [None if v is None or math.isnan(v) else v for v in given])


def _texts(name: str, size: int, rng: random.Random) -> TypedColumn:
    values = _pick(rng, TEXTS, size)
    array = pa.array(values, rng.choice([pa.string(), pa.large_string(), pa.string_view()]))
    if not pa.types.is_string_view(array.type):
        array = _wrapped(array, rng)
    return TypedColumn(name, array, "text", values)


def _bools(name: str, size: int, rng: random.Random) -> TypedColumn:
    values = _pick(rng, [True, False], size)
    return TypedColumn(name, pa.array(values, pa.bool_()), "bool", values)


def _times(name: str, size: int, rng: random.Random) -> TypedColumn:
    if rng.random() < 0.25:
        days = _pick(rng, [0, -1, 1, 11016, 19813, 47482], size)
        held = rng.choice([pa.date32(), pa.date64()])
        dates = [None if d is None else dt.date(1970, 1, 1) + dt.timedelta(d) for d in days]
        return TypedColumn(
            name, pa.array(dates, held), "time", [None if d is None else d * 86400 * 10**9 for d in days]
        )
    unit = rng.choice([*UNITS])
    finest = UNITS[unit]
    pool = [m * 10**9 // finest + rng.choice([0, 0, 1, -1]) for m in MOMENTS]
    ticks = _pick(rng, pool, size)
    array = pa.array(ticks, pa.int64()).cast(pa.timestamp(unit, rng.choice(ZONES)))
    return TypedColumn(name, array, "time", [None if t is None else t * finest for t in ticks])


OTHERS: list[Callable[[int], pa.Array]] = [
    lambda n: pa.array([[1]] * n),
    lambda n: pa.array([b"x"] * n),
    lambda n: pa.array([dt.time(1)] * n),
    lambda n: pa.array([{"a": 1}] * n),
    lambda n: pa.array([[("k", 1)]] * n, pa.map_(pa.string(), pa.int64())),
]


def _others(name: str, size: int, rng: random.Random) -> TypedColumn:
    return TypedColumn(name, rng.choice(OTHERS)(size), "none", [None] * size, refused=True)
