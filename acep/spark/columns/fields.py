"""Find columns of a DataFrame and fields of its structs by name (``dev.id``), and refuse types that cannot be used."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from acep.errors import DataError, suggest
from acep.events.columns import refusal
from acep.events.tables import InputSchema, schema_of
from acep.spark.columns.letter_case import ignores_case, respell
from acep.spark.columns.list_columns import list_type, part_of_list
from acep.spark.columns.types import BINARY_COLLATION, arrow_type

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType, StructField, StructType

__all__ = [
    "all_columns",
    "field_column",
    "input_schema",
    "key_column",
    "path_of",
    "quote_name",
    "why_refused",
    "with_fields",
]

CHAR_KEY = "__CHAR_VARCHAR_TYPE_STRING"  # metadata key with which Spark marks a string column as CHAR(n)
TWICE = "is the name of two fields; rename one of them"
READER_CAST = re.compile(r'cast it, where files are read by cast=\{".*": "(int|string)"\}')
SPARK_TYPES = {"int": "bigint", "string": "string"}  # the types of casts where files are read, as Spark calls them


def quote_name(name: str) -> str:
    """Quote a column's name for Spark, so that it may have any characters."""
    return "`" + name.replace("`", "``") + "`"


def why_refused(column_type: DataType) -> str | None:
    """Return why a column of this type cannot be used, and after ``; `` what to do; ``None`` if it can be used.

    >>> from pyspark.sql.types import YearMonthIntervalType
    >>> why_refused(YearMonthIntervalType())
    'is interval year to month, and months have no fixed length; make it an integer'
    """
    kind, text = column_type.typeName(), column_type.simpleString()
    if kind == "string":
        if getattr(column_type, "collation", BINARY_COLLATION) == BINARY_COLLATION:
            return None
        hint = f"collate it: collate(column, '{BINARY_COLLATION}')"
        return f"is {text}, which Spark compares otherwise than its bytes; {hint}"
    if kind in ("yearmonthinterval", "interval"):
        hint = "make it a day-time interval" if kind == "interval" else "make it an integer"
        return f"is {text}, and months have no fixed length; {hint}"
    if kind == "variant":
        hint = "take one, as variant_get(column, '$.id', 'bigint') does"
        return f"is {text}, and a predicate needs single values; {hint}"
    arrow = arrow_type(column_type)
    if arrow is None:
        return f"is {text}, which acep does not know; make it columns of plain types"
    why = refusal(arrow)
    return None if why is None else why.replace(str(arrow), text, 1)


def input_schema(columns: StructType, **names: Any) -> InputSchema:
    """Create the input schema of a plan from the columns of :func:`all_columns`; ``names`` are those of
    :func:`acep.events.tables.schema_of`.

    Raises :class:`DataError` for a column that is missing, or of a type that its role does not allow.
    """
    types = {field.name: field.dataType for field in columns.fields}
    unusable = {name: why for name, column_type in types.items() if (why := why_refused(column_type)) is not None}
    unusable |= {field.name: TWICE for field in columns.fields if field.metadata.get(TWICE)}
    for role, name in ({"ts": "ts"} | names).items():
        why = unusable.get(name) if role != "unit" and isinstance(name, str) else None
        kind = types[name].typeName() if isinstance(name, str) and name in types else ""
        if kind == "void" and role in ("ts", "seq", "id"):
            why = "is void, and so null in every event; cast it to the type that it should have"
        if kind == "daytimeinterval" and role == "id":
            why = f"is {types[name].simpleString()}, and must hold integers or texts; cast it to text"
        if why is not None:
            reason, _, hint = why.partition("; ")
            raise DataError(f"the {role} column `{name}` {reason}", hint=hint, code="data_type")
    arrow = {
        name: list_type(column_type) or (pa.binary() if name in unusable else arrow_type(column_type))
        for name, column_type in types.items()
    }
    try:
        schema = schema_of(pa.schema([(name, arrow[name]) for name in columns.names]), **names)
    except DataError as error:
        named_columns = [n for n in names.values() if isinstance(n, str) and n in types and f"`{n}`" in error.message]
        if not named_columns:
            raise
        prefix = error.message.removesuffix(str(arrow[named_columns[0]]))
        message = error.message if prefix == error.message else prefix + types[named_columns[0]].simpleString()
        raise DataError(message, hint=_spark_hint(error.hint, named_columns[0]), code=error.code) from None
    return replace(schema, unusable=tuple(unusable.items()))


def _spark_hint(hint: str | None, name: str) -> str | None:
    """Return a hint about the type of a column as a user of Spark writes it: a column is cast in its DataFrame.

    >>> _spark_hint('cast it, where files are read by cast={"n": "int"}', "n")
    'cast it: df["n"].cast("bigint")'
    """
    if hint is None:
        return None
    column = f'df["{name}"]'
    if hint.startswith("parse it: "):
        return f"parse it: to_timestamp({column})"
    if hint.startswith("cast it to timestamps, where files are read "):
        return f'cast it to timestamps: {column}.cast("timestamp"), or to integers: {column}.cast("bigint")'
    cast = READER_CAST.fullmatch(hint)
    if cast is not None:
        return f'cast it: {column}.cast("{SPARK_TYPES[cast[1]]}")'
    return hint.replace("int64", "bigint")


def _inner_fields(columns: StructType) -> dict[str, tuple[tuple[str, ...], StructField]]:
    """Return the path and the field of each struct field by its full name, level by level. A column of the same name
    takes precedence."""
    from pyspark.sql import types as st

    names = set(columns.names)
    inner_fields: dict[str, tuple[tuple[str, ...], StructField]] = {}
    level: list[tuple[tuple[str, ...], StructField]] = [((field.name,), field) for field in columns.fields]
    while level:
        level = [
            ((*path, inner.name), inner)
            for path, field in level
            if isinstance(field.dataType, st.StructType)
            for inner in field.dataType.fields
        ]
        for path, field in level:
            name = ".".join(path)
            if name in inner_fields:
                inner_fields[name] = inner_fields[name][0], st.StructField(name, st.NullType(), True, {TWICE: True})
            elif name not in names:
                inner_fields[name] = path, field
    return inner_fields


def path_of(columns: StructType, name: str, role: str | None = None) -> tuple[tuple[str, ...], StructField]:
    """Return the path to a column or to a struct field, and its field. Raises :class:`DataError` if there is none.

    ``role``: the argument that names the column. The error tells of it where the name is its default.
    """
    inner = _inner_fields(columns)
    if name in columns.names:
        return (name,), columns[name]
    if name not in inner:
        suggestion = suggest(name, [*columns.names, *inner]) or "the events have no columns"
        hint = suggestion if name != role else f"name the column with {role}=; {suggestion}"
        raise DataError(f"there is no column `{name}`", hint=hint, code="data_column")
    return inner[name]


def all_columns(columns: StructType) -> StructType:
    """Return the columns of a DataFrame and after them all struct fields, under the names that a query uses for them;
    CHAR and VARCHAR become strings."""
    from pyspark.sql import types as st

    fields = list(columns.fields)
    fields += [st.StructField(n, f.dataType, True, f.metadata) for n, (_, f) in _inner_fields(columns).items()]
    texts = ("char", "varchar")
    return st.StructType(
        [
            st.StructField(f.name, st.StringType(), True, f.metadata) if f.dataType.typeName() in texts else f
            for f in fields
        ]
    )


def _check_case(columns: StructType, path: tuple[str, ...]) -> None:
    """Raise :class:`DataError` if a name on the path differs from another one beside it only in case."""
    from pyspark.sql.types import StructType

    level: DataType = columns
    for depth, name in enumerate(path):
        assert isinstance(level, StructType)
        similar_names = sorted({column_name for column_name in level.names if column_name.lower() == name.lower()})
        if len(similar_names) > 1:
            paths = [".".join((*path[:depth], column_name)) for column_name in similar_names]
            raise DataError(
                f"the columns {' and '.join(map(quote_name, paths))} differ only in case, so Spark takes them for one",
                hint='rename one of them, or set "spark.sql.caseSensitive" to "true"',
                code="data_column",
            )
        level = level[name].dataType


def with_fields(frame: DataFrame, names: Iterable[str]) -> DataFrame:
    """Add the wanted struct fields and parts of lists to the DataFrame as columns, and strip trailing blanks from CHAR
    columns, which SQL ignores. Where Spark has no regard to case, columns get the names that are wanted.

    Raises :class:`DataError` for a name that Spark cannot tell from another one."""
    added: dict[str, Column] = {}
    any_case, names = ignores_case(frame.sparkSession), [*names]
    frame = respell(frame, names) if any_case else frame
    for name in names:
        if name not in frame.columns and (part := part_of_list(frame.schema, name)) is not None:
            added[name] = part
            continue
        path, field = path_of(frame.schema, name)
        if any_case:
            _check_case(frame.schema, path)
        if _is_char(field) or len(path) > 1:
            added[name] = field_column(frame.schema, name)
    return frame.withColumns(added) if added else frame


def field_column(columns: StructType, name: str, role: str | None = None) -> Column:
    """Return a column or a struct field of a DataFrame with these columns; CHAR without the trailing blanks, which SQL
    ignores. Raises :class:`DataError` if there is none, as :func:`path_of` does."""
    from pyspark.sql import functions as sf

    path, field = path_of(columns, name, role)
    column = sf.col(".".join(map(quote_name, path)))
    return sf.rtrim(column) if _is_char(field) else column


def _is_char(field: StructField) -> bool:
    return field.dataType.typeName() == "char" or str(field.metadata.get(CHAR_KEY, "")).startswith("char(")


def key_column(rows: DataFrame, name: str) -> Column:
    """Return a column to compare by: NaN is null, as in a condition, and -0.0 is 0.0."""
    from pyspark.sql import functions as sf

    if rows.schema[name].dataType.typeName() not in ("float", "double"):
        return sf.col(quote_name(name))
    return sf.nanvl(sf.col(quote_name(name)) + sf.lit(0.0), sf.lit(None).cast("double"))
