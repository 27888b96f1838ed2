"""Look up the columns of a table by name, and what is inside them by names such as ``dev.id``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from acep.errors import DataError, suggest
from acep.events.nested import path_to, place_of
from acep.pattern.list_parts import source_name

__all__ = [
    "ambiguous_names",
    "check_names",
    "column_at",
    "fields_of",
    "named_column",
    "null_error",
    "repeat_error",
    "roots_of",
]


def check_names(*, unit: object = None, **roles: object) -> None:
    """Raise :class:`DataError` for the name of a column that is no text, or such a ``unit`` of time. ``roles`` are the
    names by argument; only ``ts`` must be given."""
    for role, name in (*roles.items(), ("unit", unit)):
        if not isinstance(name, str) and (name is not None or role == "ts"):
            expected = "a unit of time" if role == "unit" else "the name of a column"
            raise DataError(f"{role}= takes {expected}, not {name.__class__.__name__}", code="option_invalid")


def null_error(name: str, row: int, where: str = "") -> DataError:
    """Return the error for a null in the time, seq or id column: its row among all that came, or ``where`` it is."""
    return DataError(
        f"{where}: `{name}` is null" if where else f"column `{name}` is null in row {row} (rows count from 0)",
        hint="fill it in, or drop the row",
        code="data_null",
    )


def repeat_error(name: str, value: object, row: int, where: str = "") -> DataError:
    """Return the error for an event that comes again: its id, and its row among all that came, or ``where`` it is."""
    return DataError(
        f"{where or f'row {row} (rows count from 0)'}: the id {value!r} of column `{name}` came before",
        hint='duplicates="drop" leaves out events that come again; without id= each row is an event',
        code="data_order",
    )


def fields_of(schema: pa.Schema) -> dict[str, pa.DataType]:
    """Return the types of all columns and struct fields by name; a column goes before a field of the same name.

    >>> [*fields_of(pa.schema({"ts": pa.int64(), "dev": pa.struct({"id": pa.string()})}))]
    ['ts', 'dev', 'dev.id']
    """
    types = {field.name: field.type for field in schema}
    for name, data_type in _inner(schema):
        types.setdefault(name, data_type)
    return types


def ambiguous_names(schema: pa.Schema) -> set[str]:
    """Return the ambiguous names: those of two struct fields, unless a column has the name."""
    top, seen_names, ambiguous = set(schema.names), set[str](), set[str]()
    for name, _ in _inner(schema):
        if name in seen_names and name not in top:
            ambiguous.add(name)
        seen_names.add(name)
    return ambiguous


def _inner(schema: pa.Schema) -> Iterator[tuple[str, pa.DataType]]:
    """Yield the fields of structs, level by level."""
    level = [(field.name, field.type) for field in schema if pa.types.is_struct(field.type)]
    while level:
        below = [(f"{name}.{field.name}", field.type) for name, struct_type in level for field in struct_type]
        yield from below
        level = [(name, data_type) for name, data_type in below if pa.types.is_struct(data_type)]


def column_at(table: pa.Table, name: str) -> pa.ChunkedArray | None:
    """Return a column, a field of a struct or a part of a list (null where something around it is null), or ``None`` if
    there is none of this name.

    >>> table = pa.table({"dev": [{"id": 1, "tags": ["x"]}, None]})
    >>> column_at(table, "dev.id").to_pylist(), column_at(table, "contains(dev.tags, 'x')").to_pylist()
    ([1, None], [True, None])
    """
    schema = table.schema
    path = path_to(schema, name)
    return None if path is None else path.values(table.column(place_of(schema, path.root)))


def named_column(table: pa.Table, name: object) -> pa.ChunkedArray:
    """Return a column or struct field. Raises :class:`DataError` if there is none of this name.

    >>> named_column(pa.table({"dev": [{"id": 1}]}), "dev.id").to_pylist()
    [1]
    """
    if not isinstance(name, str):
        raise DataError(f"the name of a column is a text, not {type(name).__name__}", code="option_invalid")
    column = column_at(table, name)
    if column is None:
        raise DataError(
            f"there is no column `{name}`", hint=suggest(name, [*fields_of(table.schema)]), code="data_column"
        )
    return column


def roots_of(wanted: Iterable[str], names: Iterable[str]) -> list[str] | None:
    """Return the columns among ``names`` that hold all of ``wanted``, or ``None`` if one is in none of them.

    >>> roots_of(["ts", "dev.id", "dev.no"], ["ts", "dev", "x"]), roots_of(["y"], ["x"])
    (['ts', 'dev'], None)
    """
    columns, roots = set(names), dict[str, None]()
    for name in wanted:
        inner = source_name(name) if name not in columns else name
        prefixes = [inner, *(inner[:end] for end in range(len(inner) - 1, 0, -1) if inner[end] in ".[")]
        root = next((head for head in prefixes if head in columns), None)
        if root is None:
            return None
        roots[root] = None
    return [*roots]
