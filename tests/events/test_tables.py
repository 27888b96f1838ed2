"""Tables in: every type of column, order, times, and what is said of columns that do not fit."""

from __future__ import annotations

import datetime as dt
import subprocess
import sys
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from acep.errors import DataError
from acep.events.tables import events_of, schema_of, ticks_to_input, to_table
from acep.plan.schema import Kind, Schema

MIDNIGHT = dt.datetime(2024, 1, 1)
DAY = 19723
COLUMN_TYPES: list[tuple[str, pa.Array, Kind, list[Any]]] = [
    *((str(t), pa.array([1, None, 3], t), Kind.INT, [1, None, 3]) for t in (pa.int8(), pa.uint16(), pa.uint64())),
    ("bool", pa.array([True, None, False]), Kind.BOOL, [True, None, False]),
    ("float32", pa.array([0.5, float("nan"), None], pa.float32()), Kind.FLOAT, [0.5, None, None]),
    ("float16", pa.array([np.float16(0.5), None, None], pa.float16()), Kind.FLOAT, [0.5, None, None]),
    ("decimal", pa.array([Decimal("1.25"), None, Decimal(-2)]), Kind.INT, [125, None, -200]),
    ("null", pa.nulls(3), Kind.NULL, [None, None, None]),
    *(
        (str(t), pa.array(["u", None, "v"], t), Kind.STRING, ["u", None, "v"])
        for t in (pa.string(), pa.large_string(), pa.string_view())
    ),
    ("dictionary", pa.array(["u", None, "v"]).dictionary_encode(), Kind.STRING, ["u", None, "v"]),
    ("dictionary of int", pa.array([7, None, 9]).dictionary_encode(), Kind.INT, [7, None, 9]),
    (
        "small dictionary",
        pa.DictionaryArray.from_arrays(pa.array([1, None, 0], pa.uint8()), pa.array(["v", "u"])),
        Kind.STRING,
        ["u", None, "v"],
    ),
    ("run ends", pa.RunEndEncodedArray.from_arrays([2, 3], ["u", "v"]), Kind.STRING, ["u", "u", "v"]),
    ("date32", pa.array([MIDNIGHT.date(), None, None], pa.date32()), Kind.TIMESTAMP, [DAY * 86400, None, None]),
    ("duration", pa.array([5, None, 7], pa.duration("s")), Kind.INT, [5, None, 7]),
    ("timestamp", pa.array([MIDNIGHT, None, None], pa.timestamp("s")), Kind.TIMESTAMP, [DAY * 86400, None, None]),
    (
        "zoned",
        pa.array([MIDNIGHT.replace(tzinfo=dt.timezone(dt.timedelta(hours=1))), None, None], pa.timestamp("s", "UTC")),
        Kind.TIMESTAMP,
        [DAY * 86400 - 3600, None, None],
    ),
]


@pytest.mark.parametrize(("array", "kind", "values"), [c[1:] for c in COLUMN_TYPES], ids=[c[0] for c in COLUMN_TYPES])
def test_every_type_of_column(array: pa.Array, kind: Kind, values: list[Any]) -> None:
    for column in (array, array.slice(1), pa.chunked_array([array.slice(0, 1), array.slice(1)])):
        table = pa.table({"ts": pa.array([1, 2, 3])[: len(column)], "x": column})
        schema = schema_of(table.schema)
        assert schema.kind("x") is kind
        got = events_of(table, schema, ("x",)).columns["x"]
        expected = values[-len(column) :]
        assert got == expected
        assert [type(v) for v in got] == [type(v) for v in expected]


@pytest.mark.parametrize("held", [pa.string(), pa.large_string(), pa.string_view()], ids=str)
def test_many_texts_are_as_good_as_few(held: pa.DataType) -> None:
    values = [None if i % 7 == 0 else f"v{i % 13}" for i in range(20_000)]
    table = pa.table({"ts": range(20_000), "x": pa.chunked_array([values[:15_000], values[15_000:]], held)})
    assert events_of(table, schema_of(table.schema), ("x",)).columns["x"] == values


def test_nested_columns_are_not_offered() -> None:
    table = to_table({"ts": [1], "x": [[1, 2]], "y": [{"a": 1}], "z": [b"raw"], "t": [dt.time(1)]})
    assert schema_of(table.schema).kinds == (("ts", Kind.INT), ("y.a", Kind.INT))
    with pytest.raises(DataError, match="cannot be used as an attribute"):
        events_of(table, schema_of(table.schema), ("x",))


def test_extension_types_count_as_what_they_store() -> None:
    class Price(pa.ExtensionType):
        def __init__(self) -> None:
            super().__init__(pa.int64(), "acep.test.price")

        def __arrow_ext_serialize__(self) -> bytes:
            return b""

        @classmethod
        def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, serialized: bytes) -> Price:
            return cls()

    column = pa.ExtensionArray.from_storage(Price(), pa.array([5, 6]))
    table = pa.table({"ts": [1, 2], "x": column})
    assert events_of(table, schema_of(table.schema), ("x",)).columns == {"x": [5, 6]}


def test_only_the_columns_asked_for_are_looked_at() -> None:
    table = pa.table({"ts": [1], "x": pa.array([2**63], pa.uint64()), "y": [4]})
    schema = schema_of(table.schema)
    assert events_of(table, schema, ("y",)).columns == {"y": [4]}
    with pytest.raises(DataError, match="column `x` has an integer beyond 64 bits"):
        events_of(table, schema, ("x",))


# Order and ids -----------------------------------------------------------------------------------


def test_events_come_in_the_order_of_time_then_arrival() -> None:
    table = to_table({"ts": [2, 1, 2, 1], "type": ["a", "b", "c", "d"]})
    events = events_of(table, schema_of(table.schema), (), base=10)
    assert events.types == ["b", "d", "a", "c"]
    assert events.ids == [11, 13, 10, 12]
    assert events.order is None


def test_seq_breaks_ties() -> None:
    table = to_table({"ts": [1, 1, 1, 0], "type": ["a", "b", "c", "d"], "n": [3, 2, 2, 9]})
    events = events_of(table, schema_of(table.schema, seq="n"), ())
    assert events.types == ["d", "b", "c", "a"]
    assert events.order == [9, 2, 2, 3]


@pytest.mark.parametrize("ids", [["x", "y"], [7, -8]])
def test_an_id_column(ids: list[Any]) -> None:
    table = to_table({"ts": [2, 1], "type": ["a", "b"], "n": ids})
    assert events_of(table, schema_of(table.schema, id="n"), ()).ids == ids[::-1]


def test_no_rows_are_no_events() -> None:
    for table in (pa.table({"ts": pa.nulls(0), "type": pa.nulls(0)}), pa.table({"ts": pa.array([], pa.int64())})):
        events = events_of(table, schema_of(table.schema), ())
        assert (len(events), events.types, events.ids) == (0, [], [])


# Times -------------------------------------------------------------------------------------------


def test_ticks_are_the_finest_unit_of_the_time_columns() -> None:
    coarse, fine = pa.timestamp("s"), pa.timestamp("ms")
    table = pa.table({"ts": pa.array([1, 2], coarse), "other": pa.array([1500, 2500], fine)})
    schema = schema_of(table.schema)
    assert schema.tick_ns == Fraction(1_000_000)
    assert schema.instants
    events = events_of(table, schema, ("other",))
    assert (events.ts, events.columns["other"]) == ([1000, 2000], [1500, 2500])


@pytest.mark.parametrize(
    ("column", "given"),
    [
        (pa.array([5], pa.int32()), [5]),
        (pa.array([5], pa.uint64()), [5]),
        (pa.array([5], pa.timestamp("s")), [dt.datetime(1970, 1, 1, 0, 0, 5)]),
        (pa.array([5], pa.timestamp("us")), [dt.datetime(1970, 1, 1, 0, 0, 0, 5)]),
        (pa.array([5], pa.timestamp("ns")), [np.datetime64(5, "ns")]),
        (pa.array([5], pa.timestamp("ns", "UTC")), [np.datetime64(5, "ns")]),
        (pa.array([5000], pa.timestamp("ns")), [dt.datetime(1970, 1, 1, 0, 0, 0, 5)]),
        (pa.array([5000], pa.timestamp("ns", "UTC")), [dt.datetime(1970, 1, 1, 0, 0, 0, 5, dt.UTC)]),
        (pa.array([5], pa.timestamp("ms", "UTC")), [dt.datetime(1970, 1, 1, 0, 0, 0, 5000, dt.UTC)]),
        (pa.array([0], pa.timestamp("s", "+02:00")), [dt.datetime(1970, 1, 1, tzinfo=dt.UTC)]),
        (pa.array([-1], pa.date32()), [dt.date(1969, 12, 31)]),
        (pa.array([86_400_000], pa.date64()), [dt.date(1970, 1, 2)]),
        (pa.array([10**12], pa.timestamp("s")), [np.datetime64(10**12, "s")]),
    ],
    ids=lambda value: str(getattr(value, "type", "")),
)
def test_times_come_back_as_they_were(column: pa.Array, given: list[Any]) -> None:
    finer = pa.array([0], pa.timestamp("ms"))
    for extra in ({}, {"other": finer} if pa.types.is_temporal(column.type) else {}):
        table = pa.table({"ts": column} | extra)
        schema = schema_of(table.schema)
        back = ticks_to_input(events_of(table, schema, ()).ts, schema)
        assert back == given
        assert isinstance(back[0], type(given[0]))
        assert ticks_to_input([None], schema) == [None]


def test_times_with_a_zone_are_given_in_utc() -> None:
    table = pa.table({"ts": pa.array([0], pa.timestamp("s", "Europe/Berlin"))})
    schema = schema_of(table.schema)
    back = ticks_to_input(events_of(table, schema, ()).ts, schema)[0]
    assert back.isoformat() == "1970-01-01T00:00:00+00:00"


def test_a_schema_that_forgot_the_types_gives_timestamps() -> None:
    plain = Schema((), tick_ns=Fraction(10**6), instants=True)
    assert ticks_to_input([1], plain) == [dt.datetime(1970, 1, 1, 0, 0, 0, 1000)]


@pytest.mark.parametrize(("unit", "ns"), [(None, None), ("ns", 1), ("min", 60 * 10**9), ("d", 86400 * 10**9)])
def test_the_unit_of_an_integer_ts(unit: str | None, ns: int | None) -> None:
    schema = schema_of(pa.schema({"ts": pa.int64()}), unit=unit)
    assert (schema.tick_ns, schema.instants) == (ns, False)


def test_a_timestamp_between_the_ticks_of_an_integer_ts() -> None:
    table = pa.table({"ts": [1], "when": pa.array([1500], pa.timestamp("ms"))})
    schema = schema_of(table.schema, unit="s")
    assert events_of(table, schema, ()).ts == [1]
    with pytest.raises(DataError, match="column `when` has times that fall between the ticks"):
        events_of(table, schema, ("when",))
    whole = table.set_column(1, "when", pa.array([3000], pa.timestamp("ms")))
    assert events_of(whole, schema, ("when",)).columns == {"when": [3]}


def test_times_that_overflow() -> None:
    table = pa.table({"ts": pa.array([0], pa.timestamp("ns")), "born": pa.array([dt.date(1492, 1, 1)])})
    schema = schema_of(table.schema)
    assert events_of(table, schema, ()).ts == [0]
    with pytest.raises(DataError, match="column `born` has a time that does not fit"):
        events_of(table, schema, ("born",))


# Complaints --------------------------------------------------------------------------------------

INTS = pa.schema({"ts": pa.int64(), "type": pa.string(), "price": pa.float64()})


@pytest.mark.parametrize(
    ("schema", "roles", "message", "hint"),
    [
        (INTS, {"ts": "tss"}, "there is no column `tss`", "did you mean `ts`"),
        (INTS, {"type": "kind"}, "there is no column `kind`", "known: "),
        (INTS, {"seq": "n"}, "there is no column `n`", "known: "),
        (pa.schema({"time": pa.int64()}), {}, "there is no column `ts`", "name the column with ts="),
        (pa.schema({}), {}, "there is no column `ts`", "no columns"),
        (pa.schema([("ts", pa.int64()), ("ts", pa.int64())]), {}, "two columns are called `ts`", "rename"),
        (pa.schema({"ts": pa.float64()}), {}, "must hold integers, timestamps or dates, not double", "cast it"),
        (pa.schema({"ts": pa.string()}), {}, "must hold integers, timestamps or dates, not string", "parse it"),
        (pa.schema({"ts": pa.bool_()}), {}, "not bool", None),
        (pa.schema({"ts": pa.duration("s")}), {}, "not duration", None),
        (pa.schema({"ts": pa.int64(), "type": pa.int8()}), {}, "type column `type` must hold texts, not int8", "cast"),
        (INTS, {"id": "price"}, "id column `price` must hold integers or texts, not double", None),
        (INTS, {"seq": "type"}, "seq column `type` must hold integers or timestamps, not string", None),
        (INTS, {"unit": "week"}, "unit='week' is not a unit of time", "one of ns, us"),
        (pa.schema({"ts": pa.timestamp("s")}), {"unit": "s"}, "unit='s' is for an integer ts", "leave unit out"),
    ],
)
def test_columns_that_do_not_fit(schema: pa.Schema, roles: dict[str, Any], message: str, hint: str | None) -> None:
    with pytest.raises(DataError, match=message) as raised:
        schema_of(schema, **roles)
    assert hint is None or hint in (raised.value.hint or "")


def test_a_missing_type_column_is_a_stream_without_types() -> None:
    schema = schema_of(pa.schema({"ts": pa.int64()}))
    assert schema.type is None
    assert events_of(pa.table({"ts": [1, 2]}), schema, ()).types == [None, None]


@pytest.mark.parametrize("role", ["ts", "seq", "id"])
def test_a_null_names_its_row(role: str) -> None:
    table = pa.table({"ts": [1, 2, 3], "n": [1, 2, 3]}).set_column(
        0 if role == "ts" else 1, "ts" if role == "ts" else "n", pa.array([5, 6, None])
    )
    roles = {} if role == "ts" else {role: "n"}
    with pytest.raises(DataError, match=r"is null in row 12 \(rows count from 0\)"):
        events_of(table, schema_of(table.schema, **roles), (), base=10)


@pytest.mark.parametrize(
    ("ids", "twice"),
    [(["a", "b", "a"], "'a'"), ([7, 8, 8], "8"), ([9, -5, 9], "9"), ([2**63 - 1, -(2**63), -(2**63)], str(-(2**63)))],
)
def test_an_id_that_comes_twice(ids: list[Any], twice: str) -> None:
    table = pa.table({"ts": [1, 2, 3], "n": ids})
    with pytest.raises(DataError, match=f"the id {twice} of column `n` came before"):
        events_of(table, schema_of(table.schema, id="n"), ())


@pytest.mark.parametrize("ids", [["b", "a"], [5, 6], [6, 5], [2**63 - 1, -(2**63)], [3], []])
def test_ids_that_differ(ids: list[Any]) -> None:
    held = pa.string() if ids[:1] == ["b"] else pa.int64()
    table = pa.table({"ts": pa.array([1] * len(ids), pa.int64()), "n": pa.array(ids, held)})
    assert events_of(table, schema_of(table.schema, id="n"), ()).ids == ids


def test_no_events_have_no_null_among_their_ids() -> None:
    table = pa.table({"ts": pa.array([], pa.int64()), "n": pa.nulls(0)})
    assert events_of(table, schema_of(table.schema, id="n"), ()).ids == []


def test_batches_must_keep_their_types() -> None:
    schema = schema_of(pa.schema({"ts": pa.int64(), "x": pa.float64(), "n": pa.int64()}))
    ints = pa.table({"ts": [1], "x": [1], "n": [1]})
    assert events_of(ints, schema, ("x",)).columns == {"x": [1.0]}
    nothing = pa.table({"ts": [1], "x": pa.nulls(1), "n": pa.nulls(1)})
    assert events_of(nothing, schema, ("n",)).columns == {"n": [None]}
    with pytest.raises(DataError, match="`n` holds float values, where int values were seen"):
        events_of(pa.table({"ts": [1], "x": [1.0], "n": [0.5]}), schema, ("n",))
    with pytest.raises(DataError, match="there is no column `n`"):
        events_of(pa.table({"ts": [1], "x": [1.0]}), schema, ("n",))


def test_neither_pandas_nor_polars_is_imported() -> None:
    code = (
        "import sys, acep.events.tables as t, acep.matches.matches, acep.events.files.reading, pyarrow.csv\n"
        # Not from a CSV file: Arrow's threads of input may abort a process that ends at once.
        "table = t.to_table({'ts': [2, 1], 'type': ['a', 'b'], 'x': [1.5, None], 'y': ['u', '']})\n"
        "events = t.events_of(table, t.schema_of(table.schema), ('x', 'y'))\n"
        "assert events.columns == {'x': [None, 1.5], 'y': ['', 'u']}, events\n"
        "t.to_table({'ts': [1, None], 'type': ['a', 'b'], 'x': [1.5, 2]}), t.to_table([{'ts': 1, 'ok': True}])\n"
        "assert not {'pandas', 'polars', 'pyspark'} & set(sys.modules), 'imported'"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("role", "value", "message"),
    [
        ("ts", None, "ts= takes the name of a column, not NoneType"),
        ("type", 5, "type= takes the name of a column, not int"),
        ("seq", ["x"], "seq= takes the name of a column, not list"),
        ("id", 1.5, "id= takes the name of a column, not float"),
        ("unit", {}, "unit= takes a unit of time, not dict"),
    ],
)
def test_columns_are_named_by_texts(role: str, value: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        schema_of(pa.schema({"ts": pa.int64()}), **{role: value})


@pytest.mark.parametrize("held", [pa.timestamp("s"), pa.timestamp("s", "UTC"), pa.date32(), pa.date64()], ids=str)
def test_times_beyond_all_years_come_back(held: pa.DataType) -> None:
    far = pa.array([2**30 if held == pa.date32() else 2**55], pa.int32() if held == pa.date32() else pa.int64())
    table = pa.table({"ts": far.cast(held)})
    schema = schema_of(table.schema)
    assert isinstance(ticks_to_input(events_of(table, schema, ()).ts, schema)[0], np.datetime64)


def test_a_zone_that_is_none_counts_as_utc() -> None:
    for zone in ("+xx", "Mars/Olympus"):
        schema = schema_of(pa.schema({"ts": pa.timestamp("s", zone)}))
        assert ticks_to_input([0], schema) == [dt.datetime(1970, 1, 1, tzinfo=dt.UTC)]
