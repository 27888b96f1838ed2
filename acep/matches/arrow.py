"""Convert matches, match bundles and match points to Arrow tables."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from acep.events.batch import Column
from acep.events.columns import UNIT_NS
from acep.events.decimals import decimal_type, scale_of
from acep.events.durations import convert_to_unit
from acep.events.tables import attribute_tick, decimals_of, time_types
from acep.events.times import time_type
from acep.matches.answer_columns import values_of
from acep.matches.found_columns import FoundColumns, longest_text, ops_of
from acep.matches.match import error_number
from acep.matches.match_ids import id_of_found, ids_of
from acep.matches.records import Found
from acep.pattern.expressions import Value
from acep.plan.schema import Kind, Schema

if TYPE_CHECKING:
    from acep.matches.answers import Bundle, Point
    from acep.matches.matches import Matches

__all__ = [
    "column_array",
    "groups_table",
    "id_type",
    "matches_table",
    "partials_table",
    "record_batch",
    "split_matches",
    "without_maps",
]

PART = 1 << 22
CACHED = 1 << 15  # matches
INT32 = 2**31 - 1

TYPES = {
    Kind.BOOL: pa.bool_(),
    Kind.INT: pa.int64(),
    Kind.FLOAT: pa.float64(),
    Kind.STRING: pa.string(),
    Kind.NULL: pa.string(),
}


def matches_table(matches: Matches, *, fractional: bool | None = None) -> pa.Table:
    """Return a table with one row per match; see :meth:`acep.matches.matches.Matches.to_arrow`. ``fractional``: with
    errors as float64, by default if one of them is not an integer.

    >>> record = Found(("A",), 1, 9, Fraction(1, 2), (("a", (0, 3)),), 9)
    >>> from acep.matches.match_form import MatchForm
    >>> from acep.matches.matches import Matches
    >>> table = matches_table(Matches([record], MatchForm(Schema((("k", Kind.STRING),)), keys=("k",))))
    >>> print(table.schema)
    key: struct<k: string>
      child 0, k: string
    start: int64
    end: int64
    error: double
    bindings: map<string, list<item: int64>>
      child 0, entries: struct<key: string not null, value: list<item: int64>> not null
          child 0, key: string not null
          child 1, value: list<item: int64>
              child 0, item: int64
    bundle: int64
    """
    records = matches.found
    max_ids = PART
    if isinstance(records, FoundColumns):
        whole_errors = records.scale == 1 or not (records.error % records.scale).any()
        if records.shape is not None:
            max_ids = CACHED * max(len(records.shape), 1)
    else:
        whole_errors = all(record.error == int(record.error) for record in records)
    fractional = not whole_errors if fractional is None else fractional
    tables = [
        pa.Table.from_batches([record_batch(part, matches, fractional)]) for part in split_matches(records, max_ids)
    ]
    return tables[0] if len(tables) == 1 else pa.concat_tables(tables, promote_options="default")


def split_matches(records: Sequence[Found], max_ids: int) -> Iterator[Sequence[Found]]:
    """Yield the matches in parts of at most ``max_ids`` ids, but at least one match and one part. Parts are so small
    that Arrow's int32 offsets also hold their texts, as JSON too."""
    if isinstance(records, FoundColumns):
        ends, longest = records.offsets[1:], longest_text(records)
    else:
        sizes = [sum(len(ids) for _, ids in record.bindings) for record in records]
        ends, longest = np.cumsum(sizes, dtype=np.int64), 1
    limit = max(min(max_ids, INT32 // (32 * longest)), 1)
    begin, bound = 0, 0
    while begin < len(records):
        stop = min(int(np.searchsorted(ends, bound + limit, "right")), begin + limit)
        stop = max(stop, begin + 1)
        yield records[begin:stop]
        begin, bound = stop, int(ends[stop - 1])
    if not len(records):
        yield records


def record_batch(records: Sequence[Found], matches: Matches, fractional: bool) -> pa.RecordBatch:
    """Return some matches of a query as a record batch; ``fractional``: with errors as float64."""
    schema, times = matches.schema, ("start", "end", "bundle")
    keys: Sequence[list[Value] | Column]
    values: Sequence[list[Value] | Column]
    if isinstance(records, FoundColumns):
        keys, values = records.keys, records.values
        ticks = {name: pa.array(getattr(records, name)) for name in times}
        errors: Any = records.error
        if fractional or records.scale != 1:
            errors = records.error / records.scale if fractional else records.error // records.scale
        bindings = _bindings_of_columns(records, id_type(matches))
    else:
        keys = [[record.key[i] for record in records] for i in range(len(matches.keys))]
        values = [[record.values[i] for record in records] for i in range(len(matches.returns))]
        ticks = {name: pa.array([getattr(record, name) for record in records], pa.int64()) for name in times}
        errors = [error_number(record.error) for record in records]
        bindings = _bindings_column(records, id_type(matches))
    kinds = [schema.kind(key) or (Kind.STRING if key == schema.type else None) for key in matches.keys]
    tick, ts_type = attribute_tick(schema), time_types(schema)[schema.ts]
    ts_tick = tick if schema.instants else None
    fields = [
        _values_column(v, kind, _type_of_key(key, schema), tick)
        for v, kind, key in zip(keys, kinds, matches.keys, strict=True)
    ]
    columns: dict[str, pa.Array] = {
        "key": _struct(fields, matches.keys, len(records)),
        **{name: _as_times(ticks[name], ts_type, ts_tick) for name in ("start", "end")},
        "error": pa.array(errors, pa.float64() if fractional else pa.int64()),
        "bindings": bindings,
        "bundle": _as_times(ticks["bundle"], ts_type, ts_tick),
    }
    if matches.returns:
        return_kinds = matches.form.return_kinds or (None,) * len(matches.returns)
        scales = matches.form.return_scales or (None,) * len(matches.returns)
        fields = [
            _values_column(v, kind, matches.form.time_type(i) if scale is None else matches.form.decimal_type(i), tick)
            for i, (v, kind, scale) in enumerate(zip(values, return_kinds, scales, strict=True))
        ]
        columns["values"] = pa.StructArray.from_arrays(fields, names=list(matches.returns))
    if matches.ops:
        if isinstance(records, FoundColumns):
            ops: Any = ops_of(records)
            ids = ids_of(records)
        else:
            ops = [record.op for record in records]
            ids = [id_of_found(record) for record in records]
        if matches.revised:
            columns["bundle"] = pa.nulls(len(records), columns["bundle"].type)
        columns |= {"op": pa.array(ops, pa.int64()), "id": pa.array(ids, pa.string())}
    return pa.RecordBatch.from_pydict(columns)


def partials_table(
    like: Matches,
    texts: dict[str, list[str]],
    until: Sequence[int | None],
    numbers: dict[str, list[int | None]],
) -> pa.Table:
    """Return a table with one row per partial match: ``like`` has the keys, times, errors and bound events of each. See
    :meth:`acep.matches.partials.partial_matches.PartialMatches.to_arrow`. ``until`` are ticks."""
    schema, table = like.schema, matches_table(like)
    tick = attribute_tick(schema) if schema.instants else None
    ends = _as_times(pa.array(until, pa.int64()), time_types(schema)[schema.ts], tick)
    columns: dict[str, Any] = {name: pa.array(values, pa.string()) for name, values in texts.items()}
    columns |= {name: table.column(name) for name in ("key", "start", "end")}
    columns |= {"until": ends, "error": table.column("error"), "bindings": table.column("bindings")}
    return pa.table(columns | {name: pa.array(values, pa.int64()) for name, values in numbers.items()})


def without_maps(table: pa.Table) -> pa.Table:
    """Return the table with its column ``bindings`` as a list of structs, for readers without maps.

    >>> record = Found((), 1, 9, 0, (("a", (0, 3)),), 9)
    >>> from acep.matches.match_form import MatchForm
    >>> from acep.matches.matches import Matches
    >>> without_maps(matches_table(Matches([record], MatchForm(Schema(()))))).column("bindings").to_pylist()
    [[{'key': 'a', 'value': [0, 3]}]]
    """
    index = table.column_names.index("bindings")
    map_type = table.schema.field(index).type
    entries = pa.struct([("key", map_type.key_type), ("value", map_type.item_type)])
    return table.set_column(index, "bindings", table.column(index).cast(pa.list_(entries)))


def groups_table(
    groups: Sequence[Bundle] | Sequence[Point], schema: Schema, keys: tuple[str, ...], heads: Sequence[str]
) -> pa.Table:
    """Return a table with one row per bundle or match point: its key as a struct, and the fields ``heads``.

    >>> from acep.matches.answers import Point
    >>> groups_table([Point({}, 5, 0)], Schema(()), (), ("point", "best")).to_pylist()
    [{'key': {}, 'point': 5, 'best': 0}]
    """
    ts_type = time_types(schema)[schema.ts]
    columns: dict[str, pa.Array] = {"key": _named_keys(values_of(groups, "key"), keys, schema)}
    for head in heads:
        values = values_of(groups, head)
        if head == "best":
            columns[head] = _error_column(values)
        else:
            columns[head] = _array(values, pa.int64() if head == "matches" else ts_type)
    return pa.table(columns)


def _array(values: list[Any], data_type: pa.DataType | None) -> pa.Array:
    """Return Python values as an array; times and durations that those of Python cannot hold may be NumPy's."""
    if data_type is not None and pa.types.is_duration(data_type):
        return pa.array(
            [None if v is None else np.timedelta64(v).astype(f"m8[{data_type.unit}]") for v in values], data_type
        )
    if data_type is None or not any(isinstance(v, np.datetime64) for v in values):
        return pa.array(values, data_type)
    if pa.types.is_date(data_type):
        return pa.array(np.array(values, "datetime64[D]"), pa.date32()).cast(data_type)
    naive = [v.replace(tzinfo=None) if isinstance(v, dt.datetime) else v for v in values]
    return pa.array(np.array(naive, f"datetime64[{data_type.unit}]")).cast(pa.int64()).cast(data_type)


def _named_keys(named: list[dict[str, Any]], keys: tuple[str, ...], schema: Schema) -> pa.Array:
    fields = []
    for key in keys:
        kind = schema.kind(key)
        data_type = _type_of_key(key, schema) or (TYPES.get(kind) if kind else None)
        fields.append(_array([key_values[key] for key_values in named], data_type))
    return _struct(fields, keys, len(named))


def _struct(fields: list[pa.Array], names: tuple[str, ...], size: int) -> pa.Array:
    if not names:
        return pa.Array.from_buffers(pa.struct([]), size, [None])
    return pa.StructArray.from_arrays(fields, names=list(names))


def _type_of_key(key: str, schema: Schema) -> pa.DataType | None:
    """Return the input's type of a partition attribute that holds decimals, times or durations, ``None`` for other
    kinds."""
    scale = schema.scale(key)
    if scale is not None:
        return decimals_of(schema).get(key, decimal_type(scale))
    if schema.kind(key) is Kind.TIMESTAMP:
        return time_types(schema).get(key, time_type(attribute_tick(schema)))
    return time_types(schema).get(key) if schema.counts_ticks(key) else None


def _values_column(
    values: list[Value] | Column, kind: Kind | None, value_type: pa.DataType | None, tick: Fraction | None
) -> pa.Array:
    """Return values as an array. ``value_type`` is the type of decimals, times and durations, which the engine holds as
    numbers."""
    array_type = pa.int64() if kind is Kind.TIMESTAMP else TYPES.get(kind) if kind else None
    if isinstance(values, Column):
        array = column_array(values)
        # An integer in a column of doubles is rounded, as elsewhere.
        array = array if array_type is None else array.cast(array_type, safe=kind is not Kind.FLOAT)
    elif kind is Kind.FLOAT:
        array = pa.array([None if value is None else float(value) for value in values], array_type)
    else:
        array = pa.array(values, array_type)
    if value_type is None:
        return array
    if pa.types.is_duration(value_type) or (pa.types.is_floating(array.type) and not pa.types.is_decimal(value_type)):
        return _nearest(array, value_type, tick)
    return _as_decimals(array, value_type) if pa.types.is_decimal(value_type) else _as_times(array, value_type, tick)


def column_array(column: Column) -> pa.Array:
    """Return a column as an Arrow array, with timestamps as integers.

    >>> column_array(Column(Kind.STRING, np.array([1, 0]), np.array([1, 0], np.uint8), ["a", "b"])).to_pylist()
    ['b', None]
    """
    null = None if column.valid is None else column.valid == 0
    if column.kind is Kind.BOOL:
        return pa.array(column.values.astype(bool), mask=null)
    array = pa.array(column.values, mask=null)
    return pa.array(column.texts or [], pa.string()).take(array) if column.kind is Kind.STRING else array


def _as_decimals(units: pa.Array, data_type: pa.DataType) -> pa.Array:
    """Return units of 10**-scale as decimals. The 128 bits of each are two words; the upper one repeats the sign."""
    numbers = units.fill_null(0).to_numpy()
    words = np.stack([numbers, numbers >> 63], axis=1)
    valid = (
        None if not units.null_count else pa.py_buffer(np.packbits(units.is_valid().to_numpy(False), bitorder="little"))
    )
    wide = pa.Array.from_buffers(decimal_type(scale_of(data_type) or 0), len(units), [valid, pa.py_buffer(words)])
    return wide.cast(data_type)


def _nearest(ticks: pa.Array, value_type: pa.DataType, tick: Fraction | None) -> pa.Array:
    """Return ticks, or fractions of them, as durations or times, rounded; those beyond 64 bits are null."""
    null = ticks.is_null().to_numpy(zero_copy_only=False)
    numbers, is_beyond = convert_to_unit(
        ticks.fill_null(0).to_numpy(zero_copy_only=False), tick or Fraction(1), value_type
    )
    return pa.array(numbers, pa.int64(), mask=null | is_beyond).cast(value_type)


def _as_times(ticks: pa.Array, data_type: pa.DataType, tick: Fraction | None) -> pa.Array:
    """Return ticks as times or integers of ``data_type``."""
    if pa.types.is_integer(data_type) or tick is None:
        return ticks.cast(data_type) if pa.types.is_integer(data_type) else ticks
    unit = (
        UNIT_NS["d"]
        if pa.types.is_date32(data_type)
        else UNIT_NS["ms" if pa.types.is_date64(data_type) else data_type.unit]
    )
    factor = tick / Fraction(unit)
    if factor != 1:
        import pyarrow.compute as pc  # here, since its import is slow

        scaled = pc.multiply_checked(ticks.fill_null(0), factor.numerator).to_numpy() // factor.denominator
        ticks = pa.array(scaled, mask=ticks.is_null().to_numpy(zero_copy_only=False))
    return ticks.cast(pa.int32()).cast(data_type) if pa.types.is_date32(data_type) else ticks.cast(data_type)


def _error_column(errors: list[int | float]) -> pa.Array:
    fractional = any(isinstance(e, float) for e in errors)
    return pa.array(errors, pa.float64() if fractional else pa.int64())


def _bindings_of_columns(matches: FoundColumns, kind: pa.DataType) -> pa.Array:
    matches = matches.by_variable()
    items = pa.array(matches.ids if len(matches.ids) else [], kind)
    if matches.shape is not None:
        rows = len(matches)
        if rows <= CACHED:
            outer, names, inner = _uniform_cached(matches.variables, matches.shape, CACHED)
        else:
            outer, names, inner = _uniform(matches.variables, matches.shape, rows)
        n_lists = len(set(matches.shape)) * rows
        lists = pa.ListArray.from_arrays(inner[: n_lists + 1], items)
        return pa.MapArray.from_arrays(outer[: rows + 1], names[:n_lists], lists)
    codes = matches.vars
    begins = np.zeros(len(codes) + 1, bool)
    begins[matches.offsets] = True
    # Runs of events of one match and variable: their first rows, and the number of runs before each event.
    begins[1:-1] |= codes[1:] != codes[:-1]
    runs = np.flatnonzero(begins[:-1])
    n_runs_before = np.concatenate([[0], np.cumsum(begins[:-1])])
    names = pa.array(matches.variables, pa.string()).take(pa.array(codes[runs]))
    lists = pa.ListArray.from_arrays(_int32(np.append(runs, len(codes))), items)
    return pa.MapArray.from_arrays(_int32(n_runs_before[matches.offsets]), names, lists)


def _uniform(variables: tuple[str, ...], shape: tuple[int, ...], rows: int) -> tuple[pa.Array, pa.Array, pa.Array]:
    """Return the parts of the bindings that ``rows`` matches share if all bind the variables of ``shape`` in this
    order: the offsets of their maps, the names of the variables, and the offsets of their lists of ids."""
    distinct, counts = np.unique(shape, return_counts=True)
    outer = _int32(np.arange(rows + 1) * len(distinct))
    names = pa.array(variables, pa.string()).take(pa.array(np.tile(distinct, rows)))
    begins = np.arange(rows)[:, None] * len(shape) + (np.cumsum(counts) - counts)
    return outer, names, _int32(np.append(begins.reshape(-1), rows * len(shape)))


_uniform_cached = lru_cache(maxsize=16)(_uniform)


def _bindings_column(records: Sequence[Found], kind: pa.DataType) -> pa.Array:
    names: list[str] = []
    ids: list[Any] = []
    outer, inner = [0], [0]
    for record in records:
        for var, bound in record.bindings:
            names.append(var)
            ids.extend(bound)
            inner.append(len(ids))
        outer.append(len(names))
    items = pa.ListArray.from_arrays(_int32(inner), pa.array(ids, kind))
    return pa.MapArray.from_arrays(_int32(outer), pa.array(names, pa.string()), items)


def id_type(matches: Matches) -> pa.DataType:
    """Return the type of the ids of bound events; of a composed query they are numbers of matches."""
    schema = matches.schema
    if matches.layout is not None and matches.layout.composed:
        return pa.int64()
    return pa.string() if schema.id is not None and schema.kind(schema.id) is Kind.STRING else pa.int64()


def _int32(offsets: Any) -> pa.Array:
    return pa.array(offsets, pa.int64()).cast(pa.int32())
