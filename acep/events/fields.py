"""Look up the columns of a table by name, and the fields of struct columns by names such as ``dev.id``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from acep.errors import DataError, suggest

__all__ = [
    "again_error",
    "check_names",
    "column_at",
    "fields_of",
    "named_column",
    "non_struct_above",
    "null_error",
    "roots_of",
    "twice",
]


def check_names(*, unit: object = None, **roles: object) -> None:
    """Raise :class:`DataError` for the name of a column that is no text, or such a ``unit`` of time. ``roles`` are the
    names by argument; only ``ts`` must be given."""
    for role, name in (*roles.items(), ("unit", unit)):
        if not isinstance(name, str) and (name is not None or role == "ts"):
            what = "a unit of time" if role == "unit" else "the name of a column"
            raise DataError(f"{role}= takes {what}, not {name.__class__.__name__}", code="option_invalid")


def null_error(name: str, row: int) -> DataError:
    """Return the error for a null in the time, seq or id column."""
    return DataError(
        f"column `{name}` is null in row {row} (rows count from 0)",
        hint="fill it in, or drop the row",
        code="data_null",
    )


def again_error(name: str, value: object, row: int, where: str = "") -> DataError:
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
    found = {field.name: field.type for field in schema}
    for name, held in _inner(schema):
        found.setdefault(name, held)
    return found


def non_struct_above(schema: pa.Schema, name: str) -> str | None:
    """Return the column or field that should be a struct with the field ``name`` and has values of another type;
    ``None`` if there is no such column, or only nulls.

    >>> schema = pa.schema({"dev": pa.int64(), "at": pa.struct({"x": pa.string()})})
    >>> [non_struct_above(schema, name) for name in ("dev.id", "at.x.y", "at.z", "u.v")]
    ['dev', 'at.x', None, None]
    """
    types, parts = fields_of(schema), name.split(".")
    heads = (".".join(parts[:cut]) for cut in range(len(parts) - 1, 0, -1))
    head = next((head for head in heads if head in types), None)
    if head is None or pa.types.is_struct(types[head]) or pa.types.is_null(types[head]):
        return None
    return head


def twice(schema: pa.Schema) -> set[str]:
    """Return the ambiguous names: those of two struct fields, unless a column has the name."""
    top, seen, found = set(schema.names), set[str](), set[str]()
    for name, _ in _inner(schema):
        if name in seen and name not in top:
            found.add(name)
        seen.add(name)
    return found


def _inner(schema: pa.Schema) -> Iterator[tuple[str, pa.DataType]]:
    """Yield the fields of structs, level by level."""
    level = [(field.name, field.type) for field in schema if pa.types.is_struct(field.type)]
    while level:
        below = [(f"{name}.{field.name}", field.type) for name, held in level for field in held]
        yield from below
        level = [(name, held) for name, held in below if pa.types.is_struct(held)]


def column_at(table: pa.Table, name: str) -> pa.ChunkedArray | None:
    """Return a column or struct field (null where the struct is null), or ``None`` if there is none of this name.

    >>> table = pa.table({"dev": [{"id": 1}, None]})
    >>> column_at(table, "dev.id").to_pylist()
    [1, None]
    """
    names = table.column_names
    if name in names:
        return table.column(name)
    parts = name.split(".")
    for cut in range(1, len(parts)):
        head = ".".join(parts[:cut])
        if head in names and pa.types.is_struct(table.schema.field(head).type):
            column = table.column(head)
            fields = column.type.names
            # flatten() gives each field the nulls of its struct.
            inner = column.flatten() if column.num_chunks else [pa.chunked_array([], f.type) for f in column.type]
            found = column_at(pa.Table.from_arrays(inner, fields), ".".join(parts[cut:]))
            if found is not None:
                return found
    return None


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
    there, found = set(names), dict[str, None]()
    for name in wanted:
        parts = name.split(".")
        heads = (".".join(parts[:cut]) for cut in range(len(parts), 0, -1))
        root = next((head for head in heads if head in there), None)
        if root is None:
            return None
        found[root] = None
    return [*found]
