"""Convert Arrow tables: columns to a schema, rows to events in stream order, and ticks back to times."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from acep.errors import DataError, suggest
from acep.events.batch import Batch, Column
from acep.events.columns import TICKS_NS, column_of, kind_of, plain_type, refusal, tick_of, ticks_of
from acep.events.decimals import DIGITS, decimal_of, decimal_type, scale_of
from acep.events.durations import duration_type
from acep.events.fields import ambiguous_names, check_names, column_at, fields_of, null_error, repeat_error
from acep.events.frames import to_table, unread_columns, unread_error
from acep.events.nested import has_list, path_to
from acep.events.records import Events, Id
from acep.events.role_hints import id_type_error, role_hint
from acep.events.side_by_side import results_of
from acep.events.times import from_ticks, time_type
from acep.plan.schema import Kind, Schema, TimeOf

__all__ = [
    "InputSchema",
    "attribute_tick",
    "batch_of",
    "decimal_like",
    "decimals_of",
    "events_of",
    "key_to_input",
    "keys_to_input",
    "schema_of",
    "ticks_to_input",
    "time_of",
    "time_types",
    "to_table",
]

ROLE_KINDS = {"type": (Kind.STRING,), "seq": (Kind.INT, Kind.TIMESTAMP), "id": (Kind.INT, Kind.STRING)}
"""The kinds of values that a column with a role may have."""
LARGE = 1 << 16
"""The least rows of a table whose columns threads convert."""


@dataclass(frozen=True)
class InputSchema(Schema):
    """The schema of a table, with the Arrow types of its time columns (``ts`` always among them) and of its
    decimals, so that values can be converted back to them. ``ordered`` are the columns of categories in an order,
    ``nested`` those that have lists inside. ``finest`` is the length of a tick of matches as events, where ``ts`` is an
    integer of unknown unit."""

    times: tuple[tuple[str, pa.DataType], ...] = ()
    decimals: tuple[tuple[str, pa.DataType], ...] = ()
    ordered: tuple[str, ...] = ()
    finest: Fraction | None = None
    nested: tuple[tuple[str, pa.DataType], ...] = ()

    def kind(self, name: str) -> Kind | None:
        """Return the kind of a column or of a part of a list, or ``None`` if there is none that can be used."""
        kind = super().kind(name)
        return kind if kind is not None or not self.nested else self._kind_of_part(name)

    def _kind_of_part(self, name: str) -> Kind | None:
        path = path_to(pa.schema(list(self.nested)), name)
        if path is None or not path.through_list or tick_of(path.type) is not None or scale_of(path.type) is not None:
            return None
        return kind_of(path.type)

    def ordered_categories(self, name: str) -> str | None:
        """Return the column of categories in an order of their own that a name means; ``None`` if it means another."""
        return name if name in self.ordered else None

    def counts_ticks(self, name: str) -> bool | None:
        """Return whether a column holds durations, which are integers in ticks."""
        data_type = dict(self.times).get(name)
        return name in self.durations or (data_type is not None and pa.types.is_duration(data_type))

    def of_matches(self, derived: Schema, origins: Sequence[tuple[str, TimeOf, Schema]]) -> InputSchema:
        """Return the schema of matches of this stream as events, with the types of its times, durations and decimals;
        of values of two types, that of computed ones."""
        times: dict[str, pa.DataType] = {}
        decimals: dict[str, pa.DataType] = {}
        for name, origin, source in origins:
            scale = derived.scale(name)
            value_type = time_of(origin, source) if scale is None else decimal_like(origin, scale, source)
            types = times if scale is None else decimals
            if value_type is not None and types.setdefault(name, value_type) != value_type:
                computed = TimeOf(
                    (), plain=False, duration=origin.duration, is_whole=derived.kind(name) is not Kind.FLOAT
                )
                zoned = any(getattr(time, "tz", None) is not None for time in (value_type, types[name]))
                general: Any = time_of(computed, self) if scale is None else decimal_type(scale)
                types[name] = pa.timestamp(general.unit, "UTC") if zoned else general
        common = {field.name: getattr(derived, field.name) for field in fields(Schema)}
        return InputSchema(
            **common, times=tuple(times.items()), decimals=tuple(decimals.items()), finest=attribute_tick(self)
        )


# Columns to a schema ----------------------------------------------------------------------------


def schema_of(
    table_schema: pa.Schema,
    *,
    ts: str = "ts",
    type: str | None = "type",
    seq: str | None = None,
    id: str | None = None,
    unit: str | None = None,
) -> InputSchema:
    """Return what a plan must know of a table's columns.

    ``ts`` is a column of integers, timestamps or dates; ``unit`` the length of a tick of an integer ``ts``
    (``"ns"``, ``"us"``, ``"ms"``, ``"s"``, ``"min"``, ``"h"`` or ``"d"``). If ``ts`` is a timestamp, a tick is the
    finest unit among the time columns. A missing column ``"type"`` means a stream without types.

    Raises :class:`DataError` for a column that is missing, named twice, or of a type that its role does not allow.

    >>> schema_of(pa.schema({"ts": pa.int64(), "x": pa.float32()}), unit="s").tick_ns
    Fraction(1000000000, 1)
    """
    check_names(ts=ts, type=type, seq=seq, id=id, unit=unit)
    if doubled := [name for name, count in Counter(table_schema.names).items() if count > 1]:
        raise DataError(f"two columns are called `{doubled[0]}`", hint="rename one of them", code="data_column")
    value_types = _types_by_name(table_schema, (ts, type, seq, id))
    unread = unread_columns(table_schema)
    if type == "type" and type not in value_types:
        type = None
    for role, name in (("ts", ts), ("type", type), ("seq", seq), ("id", id)):
        if name is not None and name not in value_types:
            raise _missing_role_error(role, name, [*value_types], unread)
    kinds = tuple((name, kind) for name, value_type in value_types.items() if (kind := kind_of(value_type)) is not None)
    times = tuple(
        (name, plain_type(value_type)) for name, value_type in value_types.items() if name == ts or tick_of(value_type)
    )
    decimals = [
        (name, plain_type(value_type)) for name, value_type in value_types.items() if scale_of(value_type) is not None
    ]
    unusable = [
        (name, reason) for name, value_type in value_types.items() if (reason := refusal(value_type)) is not None
    ]
    unusable += [(name, "is the name of two fields; rename one of them") for name in ambiguous_names(table_schema)]
    unusable += unread.items()
    instants = _check_ts(ts, value_types[ts])
    for role, name in (("type", type), ("seq", seq), ("id", id)):
        if name is not None:
            _check_role(role, name, value_types[name])
    tick = _tick_length(ts, value_types, unit)
    scales = tuple((name, scale) for name, value_type in decimals if (scale := scale_of(value_type)) is not None)
    ordered = tuple(
        name for name, value_type in value_types.items() if pa.types.is_dictionary(value_type) and value_type.ordered
    )
    nested = tuple((field.name, field.type) for field in table_schema if has_list(field.type))
    named: Any = {"ts": ts, "type": type, "seq": seq, "id": id, "tick_ns": tick, "instants": instants, "nested": nested}
    named |= {"unusable": tuple(unusable), "times": times, "decimals": tuple(decimals), "ordered": ordered}
    return InputSchema(kinds, **named, scales=scales)


def _types_by_name(table_schema: pa.Schema, roles: Iterable[str | None]) -> dict[str, pa.DataType]:
    """Return the types of columns, of fields of structs, and of parts of lists that have a role, by their names; no
    name that two fields share."""
    ambiguous = ambiguous_names(table_schema)
    types = {name: value_type for name, value_type in fields_of(table_schema).items() if name not in ambiguous}
    for name in roles:
        if name is not None and name not in types and name not in ambiguous and "[" in name:
            path = path_to(table_schema, name)
            if path is not None:
                types[name] = path.type
    return types


def _missing_role_error(role: str, name: str, names: Sequence[str], unread: Mapping[str, str]) -> DataError:
    """Return the error for a column with a role that is missing, or was not read."""
    if name in unread:
        return unread_error(name, unread[name])
    suggestion = suggest(name, names) or "the events have no columns"
    hint = suggestion if name != role else f"name the column with {role}=; {suggestion}"
    return DataError(f"there is no column `{name}`", hint=hint, code="data_column")


def _check_role(role: str, name: str, data_type: pa.DataType) -> None:
    """Raise :class:`DataError` for a type that the role of a column does not allow; nulls are allowed."""
    if pa.types.is_null(data_type):
        return
    allowed_kinds = ROLE_KINDS[role]
    counted = role == "id" and tick_of(data_type) is not None
    if kind_of(data_type) not in allowed_kinds or scale_of(data_type) is not None or counted:
        words = {Kind.STRING: "texts", Kind.INT: "integers", Kind.TIMESTAMP: "timestamps"}
        allowed = " or ".join(words[kind] for kind in allowed_kinds)
        raise DataError(
            f"the {role} column `{name}` must hold {allowed}, not {data_type}",
            hint=role_hint(role, name, data_type, allowed_kinds),
            code="data_type",
        )


def _tick_length(ts: str, value_types: Mapping[str, pa.DataType], unit: str | None) -> Fraction | None:
    """Return the nanoseconds of a tick: of a timestamp ``ts`` the finest unit among the time columns, of an integer one
    the ``unit``; ``None`` if it is unknown. Raise :class:`DataError` for a unit that is none, or for a timestamp."""
    if _check_ts(ts, value_types[ts]):
        if unit is not None:
            raise DataError(
                f"unit={unit!r} is for an integer ts, but `{ts}` is {value_types[ts]}",
                hint="leave unit out",
                code="option_invalid",
            )
        return Fraction(_finest(value_types.values()) or 1)
    if unit is not None and unit not in TICKS_NS:
        raise DataError(
            f"unit={unit!r} is not a unit of time", hint=f"one of {', '.join(TICKS_NS)}", code="option_invalid"
        )
    return None if unit is None else Fraction(TICKS_NS[unit])


def _check_ts(name: str, data_type: pa.DataType) -> bool:
    """Return whether ``ts`` is a timestamp; raise :class:`DataError` if it is neither that nor an integer."""
    kind = kind_of(data_type)
    if kind is Kind.TIMESTAMP:
        return True
    unwrapped_type = plain_type(data_type)
    if (kind is Kind.INT and pa.types.is_integer(unwrapped_type)) or pa.types.is_null(data_type):
        return False
    hint = role_hint("ts", name, data_type, (Kind.TIMESTAMP, Kind.INT))
    raise DataError(
        f"the time column `{name}` must hold integers, timestamps or dates, not {data_type}",
        hint=hint,
        code="data_type",
    )


def _finest(data_types: Iterable[pa.DataType]) -> int | None:
    units = [unit for data_type in data_types if (unit := tick_of(data_type)) is not None]
    return min(units, default=None)


def time_types(schema: Schema) -> dict[str, pa.DataType]:
    """Return the Arrow types of the time columns of a stream, ``ts`` always among them."""
    default = time_type(schema.tick_ns) if schema.instants else pa.int64()
    return {schema.ts: default} | dict(schema.times if isinstance(schema, InputSchema) else ())


def attribute_tick(schema: Schema) -> Fraction | None:
    """Return the length of a tick of the time columns other than ``ts``: that of ``ts``, or the finest unit among
    them if ``ts`` is an integer of unknown unit."""
    if schema.tick_ns is None and isinstance(schema, InputSchema):
        finest = schema.finest or _finest(time for _, time in schema.times)
        return None if finest is None else Fraction(finest)
    return schema.tick_ns


def time_of(origin: TimeOf | None, schema: Schema) -> pa.DataType | None:
    """Return the Arrow type of a time or duration among the values of RETURN: that of its column, or for a computed one
    that of the stream's tick, for a time in UTC if one of its columns has a zone. A time that may lie between two ticks
    is in microseconds, as doubles are no finer. ``None``: ticks of an integer time."""
    types = time_types(schema)
    tick = attribute_tick(schema)
    ts_type = types[schema.ts] if schema.instants else None
    if origin is not None and origin.duration:
        duration = types.get(origin.columns[0]) if origin.plain else None
        return duration or (None if tick is None else duration_type(tick, is_whole=origin.is_whole))
    if origin is None or tick is None:
        return ts_type
    column_types = [types.get(name, ts_type) for name in origin.columns]
    if origin.plain and column_types[0] is not None:
        return column_types[0]
    zoned = any(getattr(column_type, "tz", None) is not None for column_type in column_types)
    return pa.timestamp(time_type(tick).unit if origin.is_whole else "us", "UTC" if zoned else None)


def decimals_of(schema: Schema) -> dict[str, pa.DataType]:
    """Return the Arrow types of the decimal columns of a stream."""
    return dict(schema.decimals if isinstance(schema, InputSchema) else ())


def decimal_like(origin: TimeOf | None, scale: int, schema: Schema) -> pa.DataType:
    """Return the Arrow type of a decimal among the values of RETURN: that of its column, if it is a plain value of
    a column of more than 19 digits, else one of 19 digits."""
    if origin is not None and origin.plain:
        data_type = decimals_of(schema).get(origin.columns[0])
        if data_type is not None and data_type.precision > DIGITS:
            return data_type
    return decimal_type(scale)


def key_to_input(key: tuple[Any, ...], names: tuple[str, ...], schema: Schema) -> dict[str, Any]:
    """Return the values of partition attributes by name, as :func:`keys_to_input` does.

    >>> schema = schema_of(pa.schema({"ts": pa.int64(), "day": pa.date32()}))
    >>> key_to_input((86400,), ("day",), schema)
    {'day': datetime.date(1970, 1, 2)}
    """
    return {name: value for name, (value,) in keys_to_input([[value] for value in key], names, schema).items()}


def keys_to_input(columns: Sequence[list[Any]], names: tuple[str, ...], schema: Schema) -> dict[str, list[Any]]:
    """Return columns of partition attributes by name, times, durations and decimals as they were in the input.

    >>> schema = schema_of(pa.schema({"ts": pa.int64(), "price": pa.decimal128(9, 2)}))
    >>> keys_to_input([[110, 200]], ("price",), schema)
    {'price': [Decimal('1.10'), Decimal('2.00')]}
    """
    named = dict(zip(names, columns, strict=True))
    for name, values in named.items():
        value_type = time_types(schema).get(name) if schema.kind(name) is Kind.TIMESTAMP else None
        if schema.counts_ticks(name):
            value_type = time_of(TimeOf((name,), plain=True, duration=True), schema)
        scale = schema.scale(name)
        if value_type is not None:
            named[name] = from_ticks(values, attribute_tick(schema), value_type)
        elif scale is not None:
            decimal_type_of_input = decimals_of(schema).get(name)
            named[name] = [decimal_of(value, scale, decimal_type_of_input) for value in values]
    return named


def ticks_to_input(values: Iterable[int | None], schema: Schema) -> list[Any]:
    """Return ticks of ``ts`` as in the input: integers, or dates and times (:func:`acep.events.times.from_ticks`).

    >>> ticks_to_input([5], schema_of(pa.schema({"ts": pa.int64()})))
    [5]
    >>> ticks_to_input([86400], schema_of(pa.schema({"ts": pa.date32()})))
    [datetime.date(1970, 1, 2)]
    """
    return from_ticks(values, schema.tick_ns if schema.instants else None, time_types(schema)[schema.ts])


# Rows to events ---------------------------------------------------------------------------------


def events_of(table: pa.Table, schema: Schema, columns: tuple[str, ...], *, base: int = 0) -> Events:
    """Return the rows of a table as events in Python values: :func:`batch_of` for code that reads single events.

    >>> table = pa.table({"ts": [2, 1, 2], "type": ["b", "a", "c"], "x": [1.5, float("nan"), None]})
    >>> events = events_of(table, schema_of(table.schema), ("x",))
    >>> events.ts, events.types, events.ids, events.columns
    ([1, 2, 2], ['a', 'b', 'c'], [1, 0, 2], {'x': [None, 1.5, None]})
    """
    return batch_of(table, schema, columns, base=base).events


def batch_of(
    table: pa.Table,
    schema: Schema,
    columns: tuple[str, ...],
    *,
    base: int = 0,
    unique: bool = True,
    threads: int = 1,
) -> Batch:
    """Return the rows of a table as events in the order of (``ts``, ``seq``, row); only ``columns`` are converted.

    Ids are ``base`` plus the row's position, or the values of the id column. ``base`` is the number of rows that came
    before; errors count from there. ``unique``: no id may come twice. ``threads`` convert the columns of a large table.

    Raises :class:`DataError` for a null in the time, seq or id column, for an id that comes twice, for a column
    that is missing or not of the kind that ``schema`` says, and for values that do not fit.

    >>> table = pa.table({"ts": [2, 1, 2], "x": [1, 5, None]})
    >>> batch = batch_of(table, schema_of(table.schema), ("x",))
    >>> batch.ts, batch.columns["x"].values, batch.columns["x"].valid
    (array([1, 2, 2]), array([5, 1, 0]), array([1, 1, 0], dtype=uint8))
    """
    columns_by_name = _columns_to_convert(table, schema, columns)
    size = table.num_rows
    tick = attribute_tick(schema) or _finest(column.type for column in columns_by_name.values()) or 1
    _check_ts(schema.ts, columns_by_name[schema.ts].type)
    ts = _no_nulls(schema.ts, columns_by_name[schema.ts], tick, base)
    seq = _no_nulls(schema.seq, columns_by_name[schema.seq], tick, base) if schema.seq is not None else None
    order: Any = None
    if seq is not None:
        order = np.lexsort((seq, ts))
    elif size and np.any(ts[1:] < ts[:-1]):
        order = np.argsort(ts, kind="stable")

    def attribute(name: str) -> Column:
        kind = schema.kind(name)
        if kind is None:
            raise DataError(
                f"column `{name}` is {columns_by_name[name].type}, which cannot be used as an attribute",
                code="data_type",
            )
        column = column_of(name, columns_by_name[name], kind, tick, schema.scale(name), base)
        return column if order is None else column.take(order)

    def types_of_rows() -> Column | None:
        if schema.type is None:
            return None
        column = column_of(schema.type, columns_by_name[schema.type], Kind.STRING, tick)
        return column if order is None else column.take(order)

    def ids_of_rows() -> Any:
        if schema.id is None:
            return range(base, base + size)
        return _ids(schema.id, columns_by_name[schema.id], base, unique=unique)

    tasks: list[Callable[[], Any]] = [types_of_rows, ids_of_rows, *(partial(attribute, name) for name in columns)]
    types, ids, *attributes = results_of(tasks, threads if size >= LARGE else 1)
    if order is not None:
        ids = np.arange(base, base + size) if isinstance(ids, range) else ids
        ids = [ids[i] for i in order] if isinstance(ids, list) else ids[order]
    return Batch(
        ts=ts if order is None else ts[order],
        types=types,
        ids=ids,
        columns=dict(zip(columns, attributes, strict=True)),
        order=None if seq is None else seq[order],
    )


def _columns_to_convert(table: pa.Table, schema: Schema, names: Iterable[str]) -> dict[str, pa.ChunkedArray]:
    """Return the columns with a role and those of other ``names``. Raise :class:`DataError` for one that is missing, or
    holds times with a zone where earlier ones had none."""
    columns: dict[str, pa.ChunkedArray] = {}
    places = {name: place for place, name in enumerate(table.schema.names)}
    for name in dict.fromkeys((schema.ts, schema.type, schema.seq, schema.id, *names)):
        if name is None:
            continue
        place = places.get(name)
        columns[name] = table.column(place) if place is not None else column_at(table, name)
        if columns[name] is None:
            if (reason := unread_columns(table.schema).get(name)) is not None:
                raise unread_error(name, reason)
            raise DataError(
                f"there is no column `{name}`", hint=suggest(name, [*fields_of(table.schema)]), code="data_column"
            )
        _same_zone(name, columns[name].type, schema)
    return columns


def _same_zone(name: str, data_type: pa.DataType, schema: Schema) -> None:
    """Refuse times with a zone where earlier ones had none, and the other way round."""
    data_type = plain_type(data_type)
    if not pa.types.is_timestamp(data_type):
        return
    expected_type = time_types(schema).get(name)
    if expected_type is None or not pa.types.is_timestamp(expected_type):
        return
    if (data_type.tz is None) is not (expected_type.tz is None):
        expectation = f"times with{'out' if expected_type.tz is None else ''} a zone were seen before"
        raise DataError(
            f"column `{name}` is {data_type}, where {expectation}",
            hint="give every batch the same types",
            code="data_type",
        )


def _no_nulls(name: str, column: pa.ChunkedArray, tick: Fraction | int, base: int) -> Any:
    numbers, null = ticks_of(name, column, tick)
    if null is not None and null.any():
        raise null_error(name, int(np.argmax(null)) + base)
    return numbers


def _ids(name: str, id_column: pa.ChunkedArray, base: int, *, unique: bool) -> Any:
    """Return the ids of all rows: int64, or a list of texts."""
    kind = kind_of(id_column.type)
    is_other = (
        kind not in (Kind.INT, Kind.STRING)
        or scale_of(id_column.type) is not None
        or tick_of(id_column.type) is not None
    )
    if is_other and not pa.types.is_null(id_column.type):
        raise id_type_error(name, id_column.type)
    column = column_of(name, id_column, kind or Kind.INT, 1)
    if column.valid is not None:
        raise null_error(name, int(np.argmin(column.valid)) + base)
    values: Any = column.to_list() if kind is Kind.STRING else column.values
    if unique and not (len(set(values)) == len(values) if kind is Kind.STRING else _distinct(values)):
        seen_ids: set[Id] = set()
        row, value = next((row, v) for row, v in enumerate(values) if v in seen_ids or seen_ids.add(v))  # type: ignore[func-returns-value]
        raise repeat_error(name, value if isinstance(value, str) else int(value), base + row)
    return values


def _distinct(numbers: npt.NDArray[np.int64]) -> bool:
    # Ids mostly rise already; numpy's `unique` hashes, which takes many times as long as sorting.
    rising = np.all(numbers[1:] > numbers[:-1])
    if not rising:
        numbers = np.sort(numbers)
    return bool(rising or np.all(numbers[1:] != numbers[:-1]))
