"""Every Arrow type in every role: ``python -m tests.types.arrow_types`` writes the table of
``docs/reference/types.md``.

A role is *exact* where the result is that of Python's own values, else it is refused by an error that names the column.
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import acep
from acep.errors import AcepError

__all__ = ["ROLES", "SAMPLES", "outcome", "table_lines"]

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "types.md"
BEGIN, END = "<!-- the table: python -m tests.types.arrow_types -->", "<!-- end of the table -->"

TIMES = (dt.datetime(2024, 3, 31, 0, 59, 59), dt.datetime(2024, 3, 31, 1, 0, 0))
ZONED = tuple(time.replace(tzinfo=dt.UTC) for time in TIMES)
TEXTS = ("e\u0301", "é")
DAYS = (dt.date(2024, 2, 29), dt.date(2024, 3, 1))
DECIMALS = (Decimal("1.05"), Decimal("1.10"))
NEAR = (Decimal("90071992547409930.01"), Decimal("90071992547409930.02"))
WIDE = (Decimal("1234567890.000000001"), Decimal("1234567890.000000002"))


def _ints(held: pa.DataType) -> tuple[int, int]:
    bits = held.bit_width - (not pa.types.is_unsigned_integer(held))
    most = min(2**bits, 2**63) - 1
    return most - 1, most


def _as(held: pa.DataType) -> Callable[[list[Any]], pa.Array]:
    if held == pa.float16():  # older releases of Arrow make these of NumPy's numbers only
        return lambda values: pa.array(np.array(values, np.float16))
    return lambda values: pa.array(values, held)


def _encoded(held: pa.DataType) -> Callable[[list[Any]], pa.Array]:
    return lambda values: pa.array(values, held).dictionary_encode()


def _runs(held: pa.DataType) -> Callable[[list[Any]], pa.Array]:
    return lambda values: pa.RunEndEncodedArray.from_arrays([*range(1, len(values) + 1)], pa.array(values, held))


def _union(mode: str) -> Callable[[list[Any]], pa.Array]:
    def made(values: list[Any]) -> pa.Array:
        kinds = pa.array([0] * len(values), pa.int8())
        held = [pa.array(values, pa.int64()), pa.array(["a"] * len(values))]
        if mode == "sparse":
            return pa.UnionArray.from_sparse(kinds, held)
        return pa.UnionArray.from_dense(kinds, pa.array([*range(len(values))], pa.int32()), held)

    return made


def _extended(held: Any, stored: pa.DataType) -> Callable[[list[Any]], pa.Array]:
    return lambda values: pa.ExtensionArray.from_storage(held, pa.array(values, stored))


def _samples() -> dict[str, tuple[Callable[[list[Any]], pa.Array], tuple[Any, Any]]]:
    """For each type by its name: what makes an array, and two values, the lesser first."""
    found: dict[str, tuple[Callable[[list[Any]], pa.Array], tuple[Any, Any]]] = {
        "bool": (_as(pa.bool_()), (False, True))
    }
    for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"):
        held = getattr(pa, name)()
        found[name] = (_as(held), _ints(held))
    for bits, values in ((16, (0.5, 1.5)), (32, (0.1, 0.5)), (64, (1.1, 1.1000000000000003))):
        # 0.1 is the nearest number of 32 bits.
        found[f"float{bits}"] = (
            _as(getattr(pa, f"float{bits}")()),
            tuple(map(float, np.array(values, f"f{bits // 8}"))),
        )
    found["decimal32(9, 2)"] = (_as(pa.decimal32(9, 2)), DECIMALS)
    found["decimal64(18, 2)"] = (_as(pa.decimal64(18, 2)), DECIMALS)
    found["decimal128(19, 2)"] = (_as(pa.decimal128(19, 2)), NEAR)
    found["decimal128(38, 18)"] = (_as(pa.decimal128(38, 18)), WIDE)
    found["decimal128(38, 20)"] = (_as(pa.decimal128(38, 20)), WIDE)
    found["decimal256(76, 38)"] = (_as(pa.decimal256(76, 38)), WIDE)
    found["decimal256(60, 2)"] = (_as(pa.decimal256(60, 2)), NEAR)
    for name in ("string", "large_string", "string_view"):
        found[name] = (_as(getattr(pa, name)()), TEXTS)
    found["dictionary of string"] = (_encoded(pa.string()), TEXTS)
    found["dictionary of int64"] = (_encoded(pa.int64()), (2**53, 2**53 + 1))
    found["run-end encoded int64"] = (_runs(pa.int64()), (2**53, 2**53 + 1))
    found["run-end encoded string"] = (_runs(pa.string()), TEXTS)
    for name, held in (("binary", pa.binary()), ("large_binary", pa.large_binary()), ("binary_view", pa.binary_view())):
        found[name] = (_as(held), (b"a", b"b"))
    found["fixed_size_binary(1)"] = (_as(pa.binary(1)), (b"a", b"b"))
    found["date32"] = (_as(pa.date32()), DAYS)
    found["date64"] = (_as(pa.date64()), DAYS)
    for unit in ("s", "ms"):
        found[f"time32[{unit}]"] = (_as(pa.time32(unit)), (dt.time(1), dt.time(2)))
    for unit in ("us", "ns"):
        found[f"time64[{unit}]"] = (_as(pa.time64(unit)), (dt.time(1), dt.time(2)))
    for unit in ("s", "ms", "us", "ns"):
        found[f"timestamp[{unit}]"] = (_as(pa.timestamp(unit)), TIMES)
        found[f"timestamp[{unit}, zone]"] = (_as(pa.timestamp(unit, "Europe/Berlin")), ZONED)
    for unit in ("s", "ms", "us", "ns"):
        found[f"duration[{unit}]"] = (_as(pa.duration(unit)), (dt.timedelta(seconds=5), dt.timedelta(days=7)))
    interval = (pa.MonthDayNano([1, 0, 0]), pa.MonthDayNano([2, 0, 0]))
    found["month_day_nano_interval"] = (_as(pa.month_day_nano_interval()), interval)
    found["list"] = (_as(pa.list_(pa.int64())), ([1], [2]))
    found["large_list"] = (_as(pa.large_list(pa.int64())), ([1], [2]))
    found["fixed_size_list"] = (_as(pa.list_(pa.int64(), 1)), ([1], [2]))
    found["list_view"] = (_as(pa.list_view(pa.int64())), ([1], [2]))
    found["struct (its fields are columns)"] = (_as(pa.struct({"id": pa.int64()})), ({"id": 1}, {"id": 2}))
    found["map"] = (_as(pa.map_(pa.string(), pa.int64())), ([("a", 1)], [("a", 2)]))
    found["sparse union"] = (_union("sparse"), (1, 2))
    found["dense union"] = (_union("dense"), (1, 2))
    found["null"] = (_as(pa.null()), (None, None))
    ids = (uuid.UUID(int=1).bytes, uuid.UUID(int=2).bytes)
    found["uuid"] = (_extended(pa.uuid(), pa.binary(16)), ids)
    found["bool8"] = (_extended(pa.bool8(), pa.int8()), (0, 1))
    found["json"] = (_extended(pa.json_(pa.string()), pa.string()), ('{"a": 1}', '{"a": 2}'))
    return found


SAMPLES = _samples()

# Roles -------------------------------------------------------------------------------------------


def _table(name: str, order: tuple[int, ...] = (0, 0, 1)) -> pa.Table:
    """Events a, b, b with the lesser value twice and the greater one."""
    make, values = SAMPLES[name]
    size = len(order)
    return pa.table({"ts": range(size), "type": ["a", *"b" * (size - 1)], "x": make([values[i] for i in order])})


def _plain(name: str, value: Any) -> Any:
    """A value of the table as acep gives it back."""
    return bool(value) if name == "bool8" else value


def _found(name: str, where: str, returns: str = "", **columns: Any) -> list[Any]:
    text = f"PATTERN SEQ(a p, b q) WHERE {where}" + (f" RETURN {returns} AS r" if returns else "")
    return [
        (m.bindings["p"][0], m.bindings["q"][0], *m.key.values(), *m.values.values())
        for m in acep.match(_table(name), acep.parse(text), **columns)
    ]


def _ts(name: str) -> bool:
    table = _table(name).drop_columns(["ts"]).rename_columns({"x": "ts"})
    low, high = SAMPLES[name][1]
    found = acep.match(table, acep.parse("PATTERN SEQ(a p, b q)"))
    return [(m.start, m.end) for m in found] == [(low, low), (low, high)]


def _type(name: str) -> bool:
    low, high = (value if isinstance(value, str) else "?" for value in SAMPLES[name][1])
    query = acep.parse(f"PATTERN SEQ(`{low}` p, `{high}` q)")
    return [m.bindings["q"] for m in acep.match(_table(name), query, type="x")] == _without_null(name, [(2,), (2,)])


def _seq(name: str) -> bool:
    table = _table(name, (1, 0)).set_column(0, "ts", pa.array([1, 1]))
    return len(acep.match(table, acep.parse("PATTERN SEQ(b p, a q)"), seq="x")) == 1


def _id(name: str) -> bool:
    found = acep.match(_table(name, (0, 1)), acep.parse("PATTERN SEQ(a p, b q)"), id="x")
    return [(*m.bindings["p"], *m.bindings["q"]) for m in found] == [SAMPLES[name][1]]


def _key(name: str) -> bool:
    return _found(name, "[x]") == _without_null(name, [(0, 1, _plain(name, SAMPLES[name][1][0]))])


def _compared(name: str) -> bool:
    equal = _found(name, "(p.x = q.x) = TRUE") == _without_null(name, [(0, 1)])
    return equal and _found(name, "p.x < q.x") == _without_null(name, [(0, 2)])


def _arithmetic(name: str) -> bool:
    low, high = SAMPLES[name][1]
    if isinstance(low, dt.date):
        return _found(name, "q.x - p.x > 0 s", unit="s") == [(0, 2)]
    (_, _, got) = _found(name, "q.ts = 2", "q.x - p.x")[0]
    return bool(got == (None if low is None else high - low))


def _aggregate(name: str) -> bool:
    _, high = SAMPLES[name][1]
    (_, _, got) = _found(name, "q.ts = 2", "max(q[].x)")[0]
    return bool(got == _plain(name, high))


def _in(name: str) -> bool:
    return _found(name, "p.x IN (q.x, q.x)") == _without_null(name, [(0, 1)])


def _returned(name: str) -> bool:
    (_, _, got) = _found(name, "q.ts = 2", "q.x")[0]
    wanted = _plain(name, SAMPLES[name][1][1])
    return bool(got == wanted) and type(got) is type(wanted)


def _without_null(name: str, found: list[Any]) -> list[Any]:
    return [] if SAMPLES[name][1][0] is None else found


ROLES: dict[str, Callable[[str], bool]] = {
    "`ts`": _ts,
    "`type`": _type,
    "`seq`": _seq,
    "`id`": _id,
    "`[x]`": _key,
    "compared": _compared,
    "`+ - *`": _arithmetic,
    "`max`": _aggregate,
    "`IN`": _in,
    "`RETURN`": _returned,
}


def outcome(name: str, role: str) -> str:
    """``exact``, ``refused``, or what went wrong."""
    try:
        return "exact" if ROLES[role](name) else "wrong"
    except AcepError as error:
        said = str(error)
        if role in ("`ts`", "`type`", "`seq`", "`id`"):
            named = f"`{'ts' if role == '`ts`' else 'x'}`" in said
        else:
            named = "`x`" in said or "q.x" in said or "p.x" in said
        return "refused" if named and (error.hint or role in ("`+ - *`", "`max`")) else f"badly refused: {error}"


def table_lines() -> list[str]:
    """The table of the page."""
    lines = [f"| type | {' | '.join(ROLES)} |", f"|---|{'---|' * len(ROLES)}"]
    for name in SAMPLES:
        cells = [{"exact": "yes", "refused": "no"}[outcome(name, role)] for role in ROLES]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


if __name__ == "__main__":
    page = PAGE.read_text(encoding="utf-8")
    before, after = page.partition(BEGIN)[0], page.partition(END)[2]
    PAGE.write_text(f"{before}{BEGIN}\n" + "\n".join(table_lines()) + f"\n{END}{after}", encoding="utf-8")
