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
from acep.events.durations import in_unit
from acep.events.tables import attribute_tick, decimals_of, time_types
from acep.events.times import time_type
from acep.matches.answer_columns import values_of
from acep.matches.found_columns import FoundColumns, longest_text, ops_of
from acep.matches.match import whole
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
    "parts",
    "record_batch",
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

    >>> one = Found(("A",), 1, 9, Fraction(1, 2), (("a", (0, 3)),), 9)
    >>> from acep.matches.matches import Matches
    >>> table = matches_table(Matches([one], schema=Schema((("k", Kind.STRING),)), keys=("k",)))
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
    found = matches.found
    most = PART
    if isinstance(found, FoundColumns):
        whole_errors = found.scale == 1 or not (found.error % found.scale).any()
        if found.shape is not None:
            most = CACHED * max(len(found.shape), 1)
    else:
        whole_errors = all(one.error == int(one.error) for one in found)
    fractional = not whole_errors if fractional is None else fractional
    tables = [pa.Table.from_batches([record_batch(part, matches, fractional)]) for part in parts(found, most)]
    return tables[0] if len(tables) == 1 else pa.concat_tables(tables, promote_options="default")


def parts(found: Sequence[Found], most: int) -> Iterator[Sequence[Found]]:
    """Yield the matches in parts of at most ``most`` ids, but at least one match and one part. Parts are so small that
    Arrow's int32 offsets also hold their texts, as JSON too."""
    if isinstance(found, FoundColumns):
        ends, longest = found.offsets[1:], longest_text(found)
    else:
        ends, longest = np.cumsum([sum(len(ids) for _, ids in one.bindings) for one in found], dtype=np.int64), 1
    limit = max(min(most, INT32 // (32 * longest)), 1)
    begin, bound = 0, 0
    while begin < len(found):
        stop = min(int(np.searchsorted(ends, bound + limit, "right")), begin + limit)
        stop = max(stop, begin + 1)
        yield found[begin:stop]
        begin, bound = stop, int(ends[stop - 1])
    if not len(found):
        yield found


def record_batch(found: Sequence[Found], matches: Matches, fractional: bool) -> pa.RecordBatch:
    """Return some matches of a query as a record batch; ``fractional``: with errors as float64."""
    schema, times = matches.schema, ("start", "end", "bundle")
    keys: Sequence[list[Value] | Column]
    values: Sequence[list[Value] | Column]
    if isinstance(found, FoundColumns):
        keys, values = found.keys, found.values
        ticks = {name: pa.array(getattr(found, name)) for name in times}
        errors: Any = found.error
        if fractional or found.scale != 1:
            errors = found.error / found.scale if fractional else found.error // found.scale
        bindings = _bindings_of_columns(found, id_type(matches))
    else:
        keys = [[one.key[i] for one in found] for i in range(len(matches.keys))]
        values = [[one.values[i] for one in found] for i in range(len(matches.returns))]
        ticks = {name: pa.array([getattr(one, name) for one in found], pa.int64()) for name in times}
        errors = [whole(one.error) for one in found]
        bindings = _bindings_column(found, id_type(matches))
    kinds = [schema.kind(key) or (Kind.STRING if key == schema.type else None) for key in matches.keys]
    tick, held = attribute_tick(schema), time_types(schema)[schema.ts]
    own = tick if schema.instants else None
    fields = [
        _values_column(v, kind, _type_of_key(key, schema), tick)
        for v, kind, key in zip(keys, kinds, matches.keys, strict=True)
    ]
    columns: dict[str, pa.Array] = {
        "key": _struct(fields, matches.keys, len(found)),
        **{name: _as_times(ticks[name], held, own) for name in ("start", "end")},
        "error": pa.array(errors, pa.float64() if fractional else pa.int64()),
        "bindings": bindings,
        "bundle": _as_times(ticks["bundle"], held, own),
    }
    if matches.returns:
        given = matches.return_kinds or (None,) * len(matches.returns)
        scales = matches.return_scales or (None,) * len(matches.returns)
        fields = [
            _values_column(v, kind, matches.time_type(i) if scale is None else matches.decimal_type(i), tick)
            for i, (v, kind, scale) in enumerate(zip(values, given, scales, strict=True))
        ]
        columns["values"] = pa.StructArray.from_arrays(fields, names=list(matches.returns))
    if matches.ops:
        if isinstance(found, FoundColumns):
            ops: Any = ops_of(found)
            ids = ids_of(found)
        else:
            ops = [one.op for one in found]
            ids = [id_of_found(one) for one in found]
        if matches.revised:
            columns["bundle"] = pa.nulls(len(found), columns["bundle"].type)
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

    >>> one = Found((), 1, 9, 0, (("a", (0, 3)),), 9)
    >>> from acep.matches.matches import Matches
    >>> without_maps(matches_table(Matches([one], schema=Schema(())))).column("bindings").to_pylist()
    [[{'key': 'a', 'value': [0, 3]}]]
    """
    at = table.column_names.index("bindings")
    held = table.schema.field(at).type
    entries = pa.struct([("key", held.key_type), ("value", held.item_type)])
    return table.set_column(at, "bindings", table.column(at).cast(pa.list_(entries)))


def groups_table(
    groups: Sequence[Bundle] | Sequence[Point], schema: Schema, keys: tuple[str, ...], heads: Sequence[str]
) -> pa.Table:
    """Return a table with one row per bundle or match point: its key as a struct, and the fields ``heads``.

    >>> from acep.matches.answers import Point
    >>> groups_table([Point({}, 5, 0)], Schema(()), (), ("point", "best")).to_pylist()
    [{'key': {}, 'point': 5, 'best': 0}]
    """
    held = time_types(schema)[schema.ts]
    columns: dict[str, pa.Array] = {"key": _named_keys(values_of(groups, "key"), keys, schema)}
    for head in heads:
        values = values_of(groups, head)
        if head == "best":
            columns[head] = _error_column(values)
        else:
            columns[head] = _array(values, pa.int64() if head == "matches" else held)
    return pa.table(columns)


def _array(values: list[Any], held: pa.DataType | None) -> pa.Array:
    """Return Python values as an array; times and durations that those of Python cannot hold may be NumPy's."""
    if held is not None and pa.types.is_duration(held):
        return pa.array([None if v is None else np.timedelta64(v).astype(f"m8[{held.unit}]") for v in values], held)
    if held is None or not any(isinstance(v, np.datetime64) for v in values):
        return pa.array(values, held)
    if pa.types.is_date(held):
        return pa.array(np.array(values, "datetime64[D]"), pa.date32()).cast(held)
    naive = [v.replace(tzinfo=None) if isinstance(v, dt.datetime) else v for v in values]
    return pa.array(np.array(naive, f"datetime64[{held.unit}]")).cast(pa.int64()).cast(held)


def _named_keys(named: list[dict[str, Any]], keys: tuple[str, ...], schema: Schema) -> pa.Array:
    fields = []
    for key in keys:
        kind = schema.kind(key)
        held = _type_of_key(key, schema) or (TYPES.get(kind) if kind else None)
        fields.append(_array([one[key] for one in named], held))
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
    values: list[Value] | Column, kind: Kind | None, given: pa.DataType | None, tick: Fraction | None
) -> pa.Array:
    """Return values as an array. ``given`` is the type of decimals, times and durations, which the engine holds as
    numbers."""
    held = pa.int64() if kind is Kind.TIMESTAMP else TYPES.get(kind) if kind else None
    if isinstance(values, Column):
        array = column_array(values)
        # An integer in a column of doubles is rounded, as elsewhere.
        array = array if held is None else array.cast(held, safe=kind is not Kind.FLOAT)
    elif kind is Kind.FLOAT:
        array = pa.array([None if value is None else float(value) for value in values], held)
    else:
        array = pa.array(values, held)
    if given is None:
        return array
    if pa.types.is_duration(given) or (pa.types.is_floating(array.type) and not pa.types.is_decimal(given)):
        return _nearest(array, given, tick)
    return _as_decimals(array, given) if pa.types.is_decimal(given) else _as_times(array, given, tick)


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


def _as_decimals(units: pa.Array, held: pa.DataType) -> pa.Array:
    """Return units of 10**-scale as decimals. The 128 bits of each are two words; the upper one repeats the sign."""
    numbers = units.fill_null(0).to_numpy()
    words = np.stack([numbers, numbers >> 63], axis=1)
    valid = (
        None if not units.null_count else pa.py_buffer(np.packbits(units.is_valid().to_numpy(False), bitorder="little"))
    )
    wide = pa.Array.from_buffers(decimal_type(scale_of(held) or 0), len(units), [valid, pa.py_buffer(words)])
    return wide.cast(held)


def _nearest(ticks: pa.Array, value_type: pa.DataType, tick: Fraction | None) -> pa.Array:
    """Return ticks, or fractions of them, as durations or times, rounded; those beyond 64 bits are null."""
    null = ticks.is_null().to_numpy(zero_copy_only=False)
    numbers, beyond = in_unit(ticks.fill_null(0).to_numpy(zero_copy_only=False), tick or Fraction(1), value_type)
    return pa.array(numbers, pa.int64(), mask=null | beyond).cast(value_type)


def _as_times(ticks: pa.Array, held: pa.DataType, tick: Fraction | None) -> pa.Array:
    """Return ticks as times or integers of type ``held``."""
    if pa.types.is_integer(held) or tick is None:
        return ticks.cast(held) if pa.types.is_integer(held) else ticks
    unit = UNIT_NS["d"] if pa.types.is_date32(held) else UNIT_NS["ms" if pa.types.is_date64(held) else held.unit]
    factor = tick / Fraction(unit)
    if factor != 1:
        import pyarrow.compute as pc  # here, since its import is slow

        scaled = pc.multiply_checked(ticks.fill_null(0), factor.numerator).to_numpy() // factor.denominator
        ticks = pa.array(scaled, mask=ticks.is_null().to_numpy(zero_copy_only=False))
    return ticks.cast(pa.int32()).cast(held) if pa.types.is_date32(held) else ticks.cast(held)


def _error_column(errors: list[int | float]) -> pa.Array:
    fractional = any(isinstance(e, float) for e in errors)
    return pa.array(errors, pa.float64() if fractional else pa.int64())


def _bindings_of_columns(found: FoundColumns, kind: pa.DataType) -> pa.Array:
    found = found.by_variable()
    items = pa.array(found.ids if len(found.ids) else [], kind)
    if found.shape is not None:
        rows = len(found)
        if rows <= CACHED:
            outer, names, inner = _uniform_cached(found.variables, found.shape, CACHED)
        else:
            outer, names, inner = _uniform(found.variables, found.shape, rows)
        held = len(set(found.shape)) * rows
        lists = pa.ListArray.from_arrays(inner[: held + 1], items)
        return pa.MapArray.from_arrays(outer[: rows + 1], names[:held], lists)
    codes = found.vars
    begins = np.zeros(len(codes) + 1, bool)
    begins[found.offsets] = True
    # Runs of events of one match and variable: their first rows, and the number of runs before each event.
    begins[1:-1] |= codes[1:] != codes[:-1]
    runs = np.flatnonzero(begins[:-1])
    before = np.concatenate([[0], np.cumsum(begins[:-1])])
    names = pa.array(found.variables, pa.string()).take(pa.array(codes[runs]))
    lists = pa.ListArray.from_arrays(_int32(np.append(runs, len(codes))), items)
    return pa.MapArray.from_arrays(_int32(before[found.offsets]), names, lists)


def _uniform(variables: tuple[str, ...], shape: tuple[int, ...], rows: int) -> tuple[pa.Array, pa.Array, pa.Array]:
    """Return the parts of the bindings that ``rows`` matches share if all bind the variables of ``shape`` in this
    order: the offsets of their maps, the names of the variables, and the offsets of their lists of ids."""
    distinct, counts = np.unique(shape, return_counts=True)
    outer = _int32(np.arange(rows + 1) * len(distinct))
    names = pa.array(variables, pa.string()).take(pa.array(np.tile(distinct, rows)))
    begins = np.arange(rows)[:, None] * len(shape) + (np.cumsum(counts) - counts)
    return outer, names, _int32(np.append(begins.reshape(-1), rows * len(shape)))


_uniform_cached = lru_cache(maxsize=16)(_uniform)


def _bindings_column(found: Sequence[Found], kind: pa.DataType) -> pa.Array:
    names: list[str] = []
    ids: list[Any] = []
    outer, inner = [0], [0]
    for one in found:
        for var, bound in one.bindings:
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
