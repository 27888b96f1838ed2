"""Find columns without regard to case, as Spark does unless ``spark.sql.caseSensitive`` is true.

A name that a column has exactly means that column. Any other means the only column that differs from it in case alone.
The columns that queries read are renamed as the queries write them, so that all that follows compares exact names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from acep.errors import DataError, QueryError
from acep.events.nested import INDEX
from acep.pattern.key_calls import key_call
from acep.pattern.list_parts import list_part
from acep.pattern.query_arguments import columns_read, read_queries
from acep.pattern.tree import Query
from acep.pattern.walk import components

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructType

__all__ = ["as_queries_write", "ignores_case", "resolve_name", "resolve_roles", "respell", "same_but_case"]

ROLES = ("ts", "type", "seq", "id", "op")
"""The options that name columns."""
SETTING = "spark.sql.caseSensitive"


class NamePart(NamedTuple):
    """A part of the path to a column or a field: its ``name``, and where a text names it."""

    name: str
    start: int

    def spelling_in(self, text: str) -> str:
        """Return the name as a text writes it."""
        return text[self.start : self.start + len(self.name)]


Path = tuple[NamePart, ...]


def ignores_case(spark: SparkSession) -> bool:
    """Return whether names that differ in case alone are one for a session."""
    return str(spark.conf.get(SETTING, None) or "false").lower() != "true"


def same_but_case(name: str, other: str) -> bool:
    """Return whether names are the same letter by letter, but for their case.

    >>> same_but_case("userId", "USERID"), same_but_case("user", "users")
    (True, False)
    """
    return len(name) == len(other) and all(
        letter == twin or letter.lower() == twin.lower() for letter, twin in zip(name, other, strict=True)
    )


def resolve_name(columns: StructType, name: str) -> str:
    """Return a name as the columns have it; one that no column has stays as it is.

    Raises :class:`DataError` if it may be one of several columns.

    >>> from pyspark.sql.types import IntegerType, StructType
    >>> resolve_name(StructType().add("user", "string").add("dev", StructType().add("ID", IntegerType())), "DEV.id")
    'dev.ID'
    """
    for part in _path_to(columns, name):
        name = f"{name[: part.start]}{part.name}{name[part.start + len(part.name) :]}"
    return name


def resolve_roles(columns: StructType, options: Mapping[str, Any], *, typed: bool) -> dict[str, Any]:
    """Return the options that name columns, as the columns are called. ``typed``: whether some query asks for types;
    otherwise a column of types has to be called ``type``, unless an option names it."""
    names = {role: options.get(role, role if role in ("ts", "type") else None) for role in ROLES}
    if names["type"] == "type" and not typed:
        del names["type"]
    return {role: resolve_name(columns, name) for role, name in names.items() if isinstance(name, str)}


def as_queries_write(columns: StructType, query: Any, options: Mapping[str, Any]) -> tuple[StructType, dict[str, Any]]:
    """Return the columns of a DataFrame as queries write them, and the options that name columns, as these are called.

    Raises :class:`QueryError` for queries that are wrong, or that write one column in two ways, and :class:`DataError`
    if a name may be one of several columns.
    """
    over_events = [inner for asked in read_queries(query).queries for inner in _queries_over_events(asked)]
    names = [name for inner in over_events for name in columns_read(inner)]
    for name in names:
        if name not in columns.names and (call := key_call(name)) is not None:
            raise QueryError(
                f"the key `{name}` is computed from each event, which acep does not do on Spark",
                hint=f'make it a column: df.withColumn("{call.function}", ...), and write [{call.function}]',
                code="engine_unable",
            )
    written = _written_names(columns, names)
    columns = _respelled_struct(columns, (), written)
    return columns, resolve_roles(columns, options, typed=any(map(_asks_for_types, over_events)))


def respell(frame: DataFrame, names: Iterable[str]) -> DataFrame:
    """Return a DataFrame whose columns and fields have the names that are ``names``, where these differ in case."""
    from pyspark.sql import functions as sf

    columns, names = frame.schema, [*names]
    if all(name in columns.names for name in names):
        return frame
    written = _written_names(columns, names)
    renamed = {}
    for field, new in zip(columns.fields, _respelled_struct(columns, (), written).fields, strict=True):
        if new != field:
            column = sf.col("`" + field.name.replace("`", "``") + "`")
            renamed[new.name] = column if new.dataType == field.dataType else column.cast(new.dataType)
    return frame.withColumns(renamed) if renamed else frame


def _queries_over_events(query: Query) -> Iterator[Query]:
    """Yield the queries that read events, and not the matches of other queries."""
    if not query.sources:
        yield query
    for source in query.sources:
        yield from _queries_over_events(source.query)


def _asks_for_types(query: Query) -> bool:
    return any(part.types for part in components(query.pattern))


def _path_to(columns: StructType, name: str) -> Path:
    """Return the path to the column or field that a name means; an empty one if there is none."""
    if name in columns.names:
        return (NamePart(name, 0),)
    part = list_part(name)
    start = 0 if part is None else name.index("(") + 1
    end = len(name) if part is None else start + len(part.name)
    paths = [*_paths_from(columns, name[:end], start)]
    exact = [path for path in paths if all(step.spelling_in(name) == step.name for step in path)]
    paths = exact or [path for path in paths if len(path) == 1] or paths
    if len(exact) == 0 and len(paths) > 1:
        alike = " and ".join(sorted(f"`{'.'.join(step.name for step in path)}`" for path in paths))
        raise DataError(
            f"`{name}` may be {alike}, which differ only in case",
            hint=f'rename one of them, or set "{SETTING}" to "true"',
            code="data_column",
        )
    return paths[0] if paths else ()


def _paths_from(columns: StructType, text: str, start: int) -> Iterator[Path]:
    """Yield the paths that a text may mean from a position on, without regard to case."""
    from pyspark.sql import types as st

    for field in columns.fields:
        part, end = NamePart(field.name, start), start + len(field.name)
        if not same_but_case(part.spelling_in(text), field.name):
            continue
        kind = field.dataType
        while isinstance(kind, st.ArrayType) and (index := INDEX.match(text, end)) is not None:
            kind, end = kind.elementType, index.end()
        if end == len(text):
            yield (part,)
        elif isinstance(kind, st.StructType) and text.startswith(".", end):
            yield from ((part, *below) for below in _paths_from(kind, text, end + 1))


def _written_names(columns: StructType, names: Iterable[str]) -> dict[tuple[str, ...], str]:
    """Return the columns and fields that names mean, by their paths, and how they are written there.

    Raises :class:`QueryError` if one is written in two ways.
    """
    written: dict[tuple[str, ...], str] = {}
    for name in dict.fromkeys(names):
        path = _path_to(columns, name)
        for depth, part in enumerate(path):
            spelling = part.spelling_in(name)
            before = written.setdefault(tuple(step.name for step in path[: depth + 1]), spelling)
            if before != spelling:
                raise QueryError(
                    f"the queries write one column as `{before}` and as `{spelling}`",
                    hint=f"write it alike, or set {SETTING} if there are two columns",
                    code="query_name",
                )
    return written


def _respelled_struct(columns: StructType, path: tuple[str, ...], written: Mapping[tuple[str, ...], str]) -> StructType:
    from pyspark.sql.types import StructField, StructType

    return StructType(
        [
            StructField(
                written.get((*path, field.name), field.name),
                _respelled_type(field.dataType, (*path, field.name), written),
                field.nullable,
                field.metadata,
            )
            for field in columns.fields
        ]
    )


def _respelled_type(column_type: DataType, path: tuple[str, ...], written: Mapping[tuple[str, ...], str]) -> DataType:
    from pyspark.sql import types as st

    if isinstance(column_type, st.StructType):
        return _respelled_struct(column_type, path, written)
    if isinstance(column_type, st.ArrayType):
        return st.ArrayType(_respelled_type(column_type.elementType, path, written), column_type.containsNull)
    return column_type
