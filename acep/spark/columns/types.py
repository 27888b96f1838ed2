"""Convert column types between Spark and Arrow, and determine the column types of a result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from acep.errors import DataError, QueryError
from acep.events.columns import kind_of
from acep.events.decimals import DIGITS
from acep.events.tables import decimal_like, decimals_of, time_of, time_types
from acep.plan.compile import Plan
from acep.plan.schema import Kind
from acep.streaming.job import EXACT, Job

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

__all__ = [
    "BINARY_COLLATION",
    "BINDINGS",
    "COMPOSED",
    "NUMBERED",
    "arrow_schema",
    "arrow_type",
    "result_type",
    "spark_schema",
]

BINARY_COLLATION = "UTF8_BINARY"

BINDINGS = "bindings"
"""The column of a result with the ids that variables bind."""
NUMBERED, COMPOSED = "acep.numbered", "acep.composed"
"""The metadata of :data:`BINDINGS`: its ids are numbers in a partition, or matches of inner queries."""

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
    "daytimeinterval": pa.duration("us"),
    "time": pa.time64("ns"),
    "void": pa.null(),
}
SIMPLE = (
    "BooleanType", "ByteType", "ShortType", "IntegerType", "LongType", "FloatType", "DoubleType", "StringType",
    "BinaryType", "DateType", "TimestampNTZType", "NullType",
)  # fmt: skip


def arrow_type(column_type: DataType) -> pa.DataType | None:
    """Return the Arrow type of a Spark type; ``None`` for types that acep cannot use (intervals, variants, user types).

    >>> from pyspark.sql.types import ArrayType, LongType
    >>> arrow_type(ArrayType(LongType()))
    ListType(list<item: int64>)
    """
    from pyspark.sql import types as st

    if isinstance(column_type, st.UserDefinedType):
        return None
    if isinstance(column_type, st.DecimalType):
        return pa.decimal128(column_type.precision, column_type.scale)
    if isinstance(column_type, st.ArrayType):
        item = arrow_type(column_type.elementType)
        return None if item is None else pa.list_(item)
    if isinstance(column_type, st.MapType):
        key, value = arrow_type(column_type.keyType), arrow_type(column_type.valueType)
        return None if key is None or value is None else pa.map_(key, value)
    if isinstance(column_type, st.StructType):
        parts = [(field.name, arrow_type(field.dataType)) for field in column_type.fields]
        return None if any(part is None for _, part in parts) else pa.struct(parts)
    return PLAIN.get(column_type.typeName())


def arrow_schema(columns: StructType) -> pa.Schema:
    """Return the Arrow schema of columns; types that Arrow lacks become binary, which no query can use."""
    return pa.schema([(field.name, arrow_type(field.dataType) or pa.binary()) for field in columns.fields])


def spark_schema(columns: pa.Schema) -> StructType:
    """Return Spark's types for the columns of a table from :func:`acep.spark.chunks.for_spark`.

    Timestamps without a zone stay without one, unlike in ``createDataFrame`` alone. Raises :class:`DataError` for a
    type that Spark does not have.
    """
    from pyspark.sql import types as st

    fields = []
    for field in columns:
        column_type = _spark_type(field.type)
        if column_type is None:
            raise DataError(
                f"column `{field.name}` is {field.type}, which Spark has not", hint="drop the column", code="data_type"
            )
        fields.append(st.StructField(field.name, column_type))
    return st.StructType(fields)


def _spark_type(value_type: pa.DataType) -> DataType | None:
    from pyspark.sql import types as st

    if pa.types.is_timestamp(value_type):
        return st.TimestampType() if value_type.tz else st.TimestampNTZType()
    if pa.types.is_decimal(value_type):
        return st.DecimalType(value_type.precision, value_type.scale)
    if pa.types.is_duration(value_type):
        return st.DayTimeIntervalType()
    if pa.types.is_list(value_type) or pa.types.is_large_list(value_type):
        item = _spark_type(value_type.value_type)
        return None if item is None else st.ArrayType(item)
    if pa.types.is_struct(value_type):
        kinds = [(part.name, _spark_type(part.type)) for part in value_type]
        parts = [st.StructField(name, kind) for name, kind in kinds if kind is not None]
        return st.StructType(parts) if len(parts) == len(kinds) else None
    name = next((name for name, plain in PLAIN.items() if plain == value_type), None)
    return next(
        (kind for kind in (getattr(st, class_name)() for class_name in SIMPLE) if kind.typeName() == name), None
    )


# Results ----------------------------------------------------------------------------------------


def result_type(job: Job, plans: Sequence[Plan], columns: StructType) -> StructType:
    """Return the columns of the result; under a budget :data:`EXACT` is the last one.

    Raises :class:`QueryError` if two queries give one name to values of different types.
    """
    from pyspark.sql import types as st

    time = columns[job.schema.ts].dataType
    # If `ts` is a date, other times may still have a time of day.
    moment = st.TimestampNTZType() if isinstance(time, st.DateType) else time
    keys: dict[str, DataType] = {}
    for plan in plans:
        for key in plan.keys:
            own_type = _key_type(key, plan, columns)
            keys[key] = own_type or _type_of_kind(plan.schema.kind(key), plan.schema.scale(key), moment)
    values = _value_types(plans, moment)
    error = st.DoubleType() if any(plan.automaton.costs.scale != 1 for plan in plans) else st.LongType()
    fields: list[tuple[str, DataType]] = [("query", st.StringType())] if job.several else []
    if keys and job.output != "count":
        fields.append(("key", _struct(list(keys.items()))))
    fields += _output_fields(job, time, error, values)
    result = _struct([*fields, (EXACT, st.BooleanType())] if job.budget is not None else fields)
    if BINDINGS in result.names:
        is_true = {NUMBERED: job.schema.id is None, COMPOSED: any(plan.sources for plan in plans)}
        result[BINDINGS].metadata = {name: True for name, is_so in is_true.items() if is_so}
    return result


def _type_of_kind(kind: Kind | None, scale: int | None, moment: DataType) -> DataType:
    """Return the type of values of a kind; ``moment``: that of times."""
    from pyspark.sql import types as st

    if scale is not None:
        return st.DecimalType(DIGITS, scale)
    plain = {Kind.BOOL: st.BooleanType(), Kind.INT: st.LongType(), Kind.FLOAT: st.DoubleType()}
    return moment if kind is Kind.TIMESTAMP else plain.get(kind or Kind.STRING, st.StringType())


def _value_types(plans: Sequence[Plan], moment: DataType) -> dict[str, DataType]:
    """Return the type of each value of RETURN. Raises :class:`QueryError` if two queries differ in one."""
    values: dict[str, DataType] = {}
    for plan in plans:
        returned = zip(plan.return_names, plan.return_kinds, plan.return_scales, plan.return_times, strict=True)
        for name, kind, scale, returned_time in returned:
            value_type, other_type = _type_of_kind(kind, scale, moment), values.get(name)
            timed = kind is Kind.TIMESTAMP or (
                returned_time is not None and (returned_time.duration or not returned_time.is_whole)
            )
            if scale is not None:
                value_type = _spark_type(decimal_like(returned_time, scale, plan.schema)) or value_type
            elif timed and (instant := time_of(returned_time, plan.schema)) is not None:
                value_type = _spark_type(instant) or value_type
            if other_type is not None and other_type != value_type:
                raise QueryError(
                    f"two queries give `{name}`, as a {other_type.simpleString()} and as a {value_type.simpleString()}",
                    hint="rename it in one RETURN",
                    code="query_type",
                )
            values[name] = value_type
    return values


def _output_fields(
    job: Job, time: DataType, error: DataType, values: dict[str, DataType]
) -> list[tuple[str, DataType]]:
    """Return the columns behind the key, by what is given for the matches of a job."""
    from pyspark.sql import types as st

    output = job.output
    if output == "count":
        return [("count", st.LongType())]
    if output == "points":
        change = [("change", st.LongType())] if job.revised else []
        return [("point", time), ("best", error), *change]
    if output == "bundles":
        return [("start", time), ("end", time), ("matches", st.LongType()), ("best", error)]
    text_ids = job.schema.id is not None and job.schema.kind(job.schema.id) is Kind.STRING
    ids = st.StringType() if text_ids else st.LongType()
    fields: list[tuple[str, DataType]] = [("start", time), ("end", time), ("error", error)]
    fields += [(BINDINGS, st.MapType(st.StringType(), st.ArrayType(ids))), ("bundle", time)]
    if values:
        fields.append(("values", _struct(list(values.items()))))
    if job.revised:
        fields += [("op", st.LongType()), ("id", st.StringType())]
    if job.late:
        fields += [("kind", st.StringType()), ("event", ids)]
    return fields


def _struct(fields: list[tuple[str, Any]]) -> StructType:
    from pyspark.sql import types as st

    return st.StructType([st.StructField(name, field_type) for name, field_type in fields])


def _key_type(key: str, plan: Plan, columns: StructType) -> DataType | None:
    """Return the type of a partition attribute: that of its column. One of matches as events may have the name of
    another column; ``None``: its type is that of its kind."""
    schema = plan.schema
    if plan.sources and (own_type := (time_types(schema) | decimals_of(schema)).get(key)) is not None:
        return _spark_type(own_type)
    column_type = columns[key].dataType if key in columns.names else None
    has_same_kind = column_type is not None and kind_of(arrow_type(column_type) or pa.binary()) is schema.kind(key)
    return column_type if has_same_kind or not plan.sources else None
