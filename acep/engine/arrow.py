"""Matches, bundles and match points as Arrow tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from acep.engine.columns import UNIT_NS
from acep.engine.found import Found
from acep.engine.matches import Bundle, Matches, Point, whole
from acep.engine.tables import attribute_tick, time_types
from acep.engine.times import time_type
from acep.plan.schema import Kind, Schema

__all__ = ["groups_table", "matches_table", "without_maps"]

TYPES = {
    Kind.BOOL: pa.bool_(),
    Kind.INT: pa.int64(),
    Kind.FLOAT: pa.float64(),
    Kind.STRING: pa.string(),
    Kind.NULL: pa.string(),
}


def matches_table(matches: Matches) -> pa.Table:
    """A row a match; see :meth:`acep.engine.matches.Matches.to_arrow`.

    >>> one = Found(("A",), 1, 9, Fraction(1, 2), (("a", (0, 3)),), 9)
    >>> table = matches_table(Matches.from_found([one], schema=Schema((("k", Kind.STRING),)), keys=("k",)))
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
    found, schema = matches.found, matches.schema
    columns: dict[str, pa.Array] = {
        "key": _key_column([one.key for one in found], matches.keys, schema),
        "start": _time_column([one.start for one in found], schema, schema.ts),
        "end": _time_column([one.end for one in found], schema, schema.ts),
        "error": _error_column([whole(one.error) for one in found]),
        "bindings": _bindings_column(found, schema),
        "bundle": _time_column([one.bundle for one in found], schema, schema.ts),
    }
    if matches.returns:
        kinds = matches.return_kinds or (None,) * len(matches.returns)
        fields = [
            _values_column([one.values[i] for one in found], kind, schema, schema.ts) for i, kind in enumerate(kinds)
        ]
        columns["values"] = pa.StructArray.from_arrays(fields, names=list(matches.returns))
    return pa.table(columns)


def without_maps(table: pa.Table) -> pa.Table:
    """The table with its column ``bindings`` as a list of structs, for readers that have no maps.

    >>> one = Found((), 1, 9, 0, (("a", (0, 3)),), 9)
    >>> without_maps(matches_table(Matches.from_found([one], schema=Schema(())))).column("bindings").to_pylist()
    [[{'key': 'a', 'value': [0, 3]}]]
    """
    at = table.column_names.index("bindings")
    held = table.schema.field(at).type
    entries = pa.struct([("key", held.key_type), ("value", held.item_type)])
    return table.set_column(at, "bindings", table.column(at).cast(pa.list_(entries)))


def groups_table(
    groups: Sequence[Bundle] | Sequence[Point], schema: Schema, keys: tuple[str, ...], heads: Sequence[str]
) -> pa.Table:
    """A row a bundle or match point: its key as a struct, and the fields ``heads`` of its record.

    >>> groups_table([Point({}, 5, 0)], Schema(()), (), ("point", "best")).to_pylist()
    [{'key': {}, 'point': 5, 'best': 0}]
    """
    held = time_types(schema)[schema.ts]
    columns: dict[str, pa.Array] = {"key": _named_keys([g.key for g in groups], keys, schema)}
    for head in heads:
        values = [getattr(g, head) for g in groups]
        if head == "best":
            columns[head] = _error_column(values)
        else:
            columns[head] = pa.array(values, pa.int64() if head == "matches" else held)
    return pa.table(columns)


def _named_keys(named: list[dict[str, Any]], keys: tuple[str, ...], schema: Schema) -> pa.Array:
    times = time_types(schema)
    fields = []
    for key in keys:
        kind = schema.kind(key)
        held = times.get(key) if kind is Kind.TIMESTAMP else TYPES.get(kind) if kind else None
        fields.append(pa.array([one[key] for one in named], held))
    return _struct(fields, keys, len(named))


def _key_column(rows: list[tuple[Any, ...]], keys: tuple[str, ...], schema: Schema) -> pa.Array:
    fields = [_values_column([row[i] for row in rows], schema.kind(k), schema, k) for i, k in enumerate(keys)]
    return _struct(fields, keys, len(rows))


def _struct(fields: list[pa.Array], names: tuple[str, ...], size: int) -> pa.Array:
    if not names:
        return pa.array([{}] * size, pa.struct([]))
    return pa.StructArray.from_arrays(fields, names=list(names))


def _values_column(values: list[Any], kind: Kind | None, schema: Schema, column: str) -> pa.Array:
    if kind is Kind.TIMESTAMP:
        return _time_column(values, schema, column)
    return pa.array(values, TYPES.get(kind) if kind else None)


def _time_column(ticks: list[int | None], schema: Schema, column: str) -> pa.Array:
    """Ticks as the type that the time column has in the input, or a timestamp where that is unknown."""
    tick = attribute_tick(schema) if column != schema.ts or schema.instants else None
    held = time_types(schema).get(column, time_type(tick))
    if pa.types.is_integer(held) or tick is None:
        return pa.array(ticks, held if pa.types.is_integer(held) else pa.int64())
    unit = UNIT_NS["d"] if pa.types.is_date32(held) else UNIT_NS["ms" if pa.types.is_date64(held) else held.unit]
    factor = tick / Fraction(unit)
    numbers = [None if t is None else t * factor.numerator // factor.denominator for t in ticks]
    if pa.types.is_date32(held):
        return pa.array(numbers, pa.int32()).cast(held)
    return pa.array(numbers, pa.int64()).cast(held)


def _error_column(errors: list[int | float]) -> pa.Array:
    fractional = any(isinstance(e, float) for e in errors)
    return pa.array(errors, pa.float64() if fractional else pa.int64())


def _bindings_column(found: Sequence[Found], schema: Schema) -> pa.Array:
    names: list[str] = []
    ids: list[Any] = []
    outer, inner = [0], [0]
    for one in found:
        for var, bound in one.bindings:
            names.append(var)
            ids.extend(bound)
            inner.append(len(ids))
        outer.append(len(names))
    text = schema.id is not None and schema.kind(schema.id) is Kind.STRING
    items = pa.ListArray.from_arrays(_offsets(inner), pa.array(ids, pa.string() if text else pa.int64()))
    return pa.MapArray.from_arrays(_offsets(outer), pa.array(names, pa.string()), items)


def _offsets(offsets: Iterable[int]) -> pa.Array:
    return pa.array(np.fromiter(offsets, np.int32))
