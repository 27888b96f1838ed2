"""Compute columns by the user's own functions, before matching."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from acep.errors import DataError
from acep.events.batch import Batch, Column, column_of_values
from acep.pattern import expressions as ex
from acep.pattern.expressions import Value
from acep.plan.computed import Computed
from acep.plan.schema import Kind, Schema

__all__ = ["add_computed", "computed_values"]

_TYPES = {
    Kind.BOOL: pa.bool_(),
    Kind.INT: pa.int64(),
    Kind.FLOAT: pa.float64(),
    Kind.STRING: pa.string(),
    Kind.NULL: pa.null(),
}
_FITS: dict[Kind, Callable[[pa.DataType], bool]] = {
    Kind.BOOL: pa.types.is_boolean,
    Kind.INT: pa.types.is_integer,
    Kind.FLOAT: pa.types.is_floating,
    Kind.STRING: lambda data_type: pa.types.is_string(data_type) or pa.types.is_large_string(data_type),
}


def computed_values(column: Computed, values_of: Callable[[str], Sequence[Value]], size: int) -> list[Value]:
    """Return the values of a computed column for ``size`` rows; ``values_of`` gives those of the columns it reads.

    Raises :class:`DataError`, in one line that names the function, if its code fails, or returns values of another
    length or type.
    """
    if not size:
        return []
    name = column.function.name
    args = [
        pa.array(_argument(arg.expr, arg.leaves, arg.run, values_of, size), _TYPES[kind])
        for arg, kind in zip(column.args, column.kinds, strict=True)
    ]
    try:
        result = column.function.code(*args)
    except Exception as error:
        reason = str(error).splitlines()[0][:200] if str(error) else ""
        raise DataError(f"the function `{name}` failed: {type(error).__name__}: {reason}") from error
    return _check_result(name, column, result, size)


def add_computed(batch: Batch, columns: Iterable[Computed], schema: Schema) -> Batch:
    """Return a batch with computed columns added, before anything takes its events in."""
    all_columns = dict(batch.columns)
    for computed in columns:
        if computed.name not in all_columns:
            values = computed_values(computed, lambda name: _column(batch, name, schema).to_list(), len(batch))
            all_columns[computed.name] = column_of_values(values, computed.kind)
    return replace(batch, columns=all_columns) if len(all_columns) > len(batch.columns) else batch


def _column(batch: Batch, name: str, schema: Schema) -> Column:
    if name in batch.columns:
        return batch.columns[name]
    if name == schema.ts:
        return Column(Kind.INT, batch.ts)
    assert batch.types is not None
    return batch.types


def _argument(
    expr: ex.Expr,
    leaves: Sequence[ex.Leaf],
    run: Callable[[Sequence[Any]], Any],
    values_of: Callable[[str], Sequence[Value]],
    size: int,
) -> Sequence[Value]:
    leaf_values = [values_of(leaf.name) for leaf in leaves if isinstance(leaf, ex.Attribute)]
    if isinstance(expr, ex.Attribute):
        return leaf_values[0]
    return [run(row) for row in zip(*leaf_values, strict=True)] if leaf_values else [run(())] * size


def _check_result(name: str, column: Computed, result: Any, size: int) -> list[Value]:
    try:
        array = result if isinstance(result, pa.Array | pa.ChunkedArray) else pa.array(result, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError):
        raise DataError(
            f"the function `{name}` returned a {type(result).__name__}", hint="an Arrow or NumPy array, or a list"
        ) from None
    if len(array) != size:
        raise DataError(f"the function `{name}` returned {len(array)} values for {size} rows", hint="one for each row")
    if not (_FITS[column.kind](array.type) or pa.types.is_null(array.type)):
        hint = f'say returns="{_type_name(array.type)}"' if _type_name(array.type) else None
        raise DataError(f"the function `{name}` returned {array.type}, not {column.function.returns}", hint=hint)
    try:
        values: list[Value] = array.cast(_TYPES[column.kind]).to_pylist()
    except pa.ArrowInvalid as error:
        raise DataError(f"the function `{name}` returned a value that does not fit: {error}") from None
    return [None if value != value else value for value in values]  # NaN is null


def _type_name(data_type: pa.DataType) -> str | None:
    names = {Kind.BOOL: "boolean", Kind.INT: "integer", Kind.FLOAT: "float", Kind.STRING: "text"}
    return next((names[kind] for kind, fits in _FITS.items() if fits(data_type)), None)
