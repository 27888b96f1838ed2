"""Take parts of lists in Spark: an element, whether a list contains a value, and its text as JSON."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import pyarrow as pa

from acep.errors import DataError
from acep.events.nested import ColumnPath, Element, Field, has_list, path_to
from acep.pattern.list_parts import ListPart
from acep.spark.columns.types import BINARY_COLLATION, arrow_type

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.types import DataType, StructType

__all__ = ["list_type", "part_of_list"]

EXACT_JSON = ("string", "char", "varchar", "boolean", "byte", "short", "integer", "long")
"""The types of elements that Spark writes as JSON as acep does."""


def list_type(column_type: DataType) -> pa.DataType | None:
    """Return the Arrow type of an array of which parts may be taken, ``None`` for other types."""
    return arrow_type(column_type) if column_type.typeName() == "array" and _is_plain(column_type) else None


def _is_plain(column_type: DataType) -> bool:
    """Return whether all texts inside a type are compared by their bytes, and Arrow has the type."""
    from pyspark.sql import types as st

    if isinstance(column_type, st.ArrayType):
        return _is_plain(column_type.elementType)
    if isinstance(column_type, st.StructType):
        return all(_is_plain(field.dataType) for field in column_type.fields)
    return (
        getattr(column_type, "collation", BINARY_COLLATION) == BINARY_COLLATION and arrow_type(column_type) is not None
    )


def part_of_list(columns: StructType, name: str) -> Column | None:
    """Return the part of a list that a name means (``tags[1]``, ``contains(dev.tags, 'x')``) as a column, ``None`` for
    other names.

    Raises :class:`DataError` for the text of a list that Spark would write otherwise.
    """
    from pyspark.sql import functions as sf
    from pyspark.sql import types as st

    way = _way_through_list(columns, name)
    if way is None:
        return None
    column, column_type = sf.col("`" + way.root.replace("`", "``") + "`"), columns[way.root].dataType
    for step in way.steps:
        if isinstance(step, Field):
            assert isinstance(column_type, st.StructType)
            field = column_type.fields[step.place]
            column, column_type = column.getField(field.name), field.dataType
            continue
        assert isinstance(column_type, st.ArrayType)
        if isinstance(step, Element):
            column, column_type = sf.get(column, sf.lit(step.number - 1)), column_type.elementType
        else:
            assert isinstance(step, ListPart)  # keys that are functions are refused before
            column, column_type = _translate_part(column, column_type, step), st.StringType()
    return column


def _way_through_list(columns: StructType, name: str) -> ColumnPath | None:
    """Return the way to a part of a list, through the columns that have lists."""
    arrow = [(field.name, arrow_type(field.dataType)) for field in columns.fields if _is_plain(field.dataType)]
    schema = pa.schema(
        [(root, column_type) for root, column_type in arrow if column_type is not None and has_list(column_type)]
    )
    way = path_to(schema, name)
    return way if way is not None and way.through_list else None


def _translate_part(column: Column, column_type: DataType, part: ListPart) -> Column:
    """Return what is asked of a whole list."""
    from pyspark.sql import functions as sf
    from pyspark.sql import types as st

    assert isinstance(column_type, st.ArrayType)
    kind = column_type.elementType.typeName()
    if part.value is None:
        item = column_type.elementType
        while isinstance(item, st.ArrayType):
            item = item.elementType
        if item.typeName() not in EXACT_JSON:
            raise DataError(
                f"`{part.name}` is {column_type.simpleString()}, whose text Spark writes otherwise than acep",
                hint="make a column of it, as to_json does",
                code="data_type",
            )
        return sf.to_json(column)
    if not part.is_number:
        return sf.array_contains(column, sf.lit(part.value))
    exact = Fraction(str(part.value))
    if kind in ("float", "double"):
        numbers = sf.transform(column.cast("array<double>"), lambda item: sf.nanvl(item, sf.lit(None).cast("double")))
        return sf.array_contains(numbers, sf.lit(float(exact)))
    if exact.denominator == 1 and -(2**63) <= exact < 2**63:
        return sf.array_contains(column.cast("array<bigint>"), sf.lit(int(exact)).cast("bigint"))
    return sf.when(sf.forall(column, lambda item: item.isNotNull()), sf.lit(False))
