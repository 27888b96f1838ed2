"""Spark's column types as Arrow types."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

__all__ = ["arrow_schema", "arrow_type"]

PLAIN = {
    "boolean": pa.bool_(),
    "byte": pa.int8(),
    "short": pa.int16(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "char": pa.string(),
    "varchar": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "void": pa.null(),
}


def arrow_type(held: DataType) -> pa.DataType | None:
    """The Arrow type of a Spark type, ``None`` where acep has no use for it (intervals, variants, user types).

    >>> from pyspark.sql.types import ArrayType, LongType
    >>> arrow_type(ArrayType(LongType()))
    ListType(list<item: int64>)
    """
    from pyspark.sql import types as st

    if isinstance(held, st.DecimalType):
        return pa.decimal128(held.precision, held.scale)
    if isinstance(held, st.ArrayType):
        item = arrow_type(held.elementType)
        return None if item is None else pa.list_(item)
    if isinstance(held, st.MapType):
        key, value = arrow_type(held.keyType), arrow_type(held.valueType)
        return None if key is None or value is None else pa.map_(key, value)
    if isinstance(held, st.StructType):
        parts = [(field.name, arrow_type(field.dataType)) for field in held.fields]
        return None if any(part is None for _, part in parts) else pa.struct(parts)
    return PLAIN.get(held.typeName())


def arrow_schema(columns: StructType) -> pa.Schema:
    """The columns as Arrow sees them; what it cannot hold becomes binary, which no query can use."""
    return pa.schema([(field.name, arrow_type(field.dataType) or pa.binary()) for field in columns.fields])
