"""Unite the columns of several files to those of one stream, and check that they fit together."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

import pyarrow as pa

from acep.errors import DataError, suggest
from acep.events.files.casts import as_cast, elements_error, finest_time
from acep.events.files.csv.csv_files import CsvFile
from acep.events.files.json.json_lines import JsonFile, columns_of
from acep.events.files.json.json_shapes import JsonShape
from acep.events.files.json.used_names import part_within
from acep.events.files.odd_values import no_integer
from acep.events.files.options import Options
from acep.events.files.parquet.parquet_files import ParquetFile
from acep.events.nested import path_to, roots_with
from acep.pattern.list_parts import CONTAINS, list_of, list_part

__all__ = ["casts_to_come", "check_integers", "check_stream", "types_of_stream"]

File = CsvFile | JsonFile | ParquetFile
TypeOf = Callable[[str, pa.DataType, str], pa.DataType]


def check_stream(files: Sequence[File], shapes: Mapping[str, JsonShape], options: Options) -> None:
    """Raise :class:`DataError` for a name that means two things, and for a cast of a column that no file has."""
    names = dict.fromkeys(name for file in files if not isinstance(file, JsonFile) for name in file.names)
    fields = {field: None for root, shape in shapes.items() for field in shape.names(root)}
    read = {root: shape.type(root, options.casts) for root, shape in shapes.items() if not shape.unread}
    schema = pa.schema(list(read.items()))
    for name in read if options.columns is None else options.columns:
        if len(roots := roots_with(schema, name)) > 1:
            raise DataError(
                f"`{name}` is an attribute of some lines and a field of `{min(roots, key=len)}` in others",
                hint="write all of them alike",
                code="data_column",
            )
    for name in options.columns or ():
        if path_to(schema, name) is None and (why := _no_part(name, shapes)) is not None:
            raise DataError(why, hint=f"`{name}` is used; write all lines alike", code="data_type")
        if path_to(schema, name) is None and name not in names and (cast := _cast_around(name, fields, options)):
            raise DataError(
                f"cast: `{cast}` is made one {options.casts[cast].text}, and `{name}`, a part of it, is used",
                hint=f"leave the cast of `{cast}` out",
                code="option_invalid",
            )
    # An attribute of JSON that is used may come later; its cast says of which type it will be.
    later_names = (options.columns or ()) if any(isinstance(file, JsonFile) for file in files) else ()
    for name in options.casts if options.casts_are_there and (names or fields) else ():
        if name in later_names:
            continue
        outer = name.partition(".")[0].partition("[")[0]
        if "[]" in name and outer in names:
            raise elements_error(name)
        if name not in names and name not in fields and outer not in names and outer not in fields:
            part = next((part for part in later_names if list_of(part) == name), None)
            hint = suggest(name, [*names, *fields])
            if part is not None:
                text = "bool" if part.startswith(f"{CONTAINS}(") else "string"
                hint = f"the query uses `{part}`, which can be cast: {as_cast(part, text)}"
            raise DataError(f"cast: there is no column `{name}`", hint=hint, code="data_column")
        if options.columns is None and "[]" not in name and name not in names and name not in shapes:
            raise DataError(
                f"cast: `{name}` is a field, and all columns are read as they are",
                hint=f'name the columns that are used: columns=["{options.ts}", "{name}"]',
                code="option_invalid",
            )


def check_integers(shapes: Mapping[str, JsonShape], options: Options) -> None:
    """Raise :class:`DataError` for times, an order or ids of JSON that have decimals, with the first of them."""
    for name in (options.ts, options.seq, options.id):
        if name is None or name in options.casts:
            continue
        parts = [shape.part(name[len(root) :]) for root, shape in shapes.items() if name.startswith(root)]
        for part in parts:
            if part is not None and part.fraction is not None and not part.mixed:
                raise no_integer(name, *part.fraction, is_id=name == options.id)


def _cast_around(name: str, fields: Collection[str], options: Options) -> str | None:
    """Return the attribute of JSON that is cast and of which a name asks for a part, ``None`` if there is none;
    ``fields`` are the attributes that there are."""
    casts = (cast for cast in options.casts if cast.removesuffix("[]") in fields)
    return next((cast for cast in casts if part_within([name], cast) is not None), None)


def _no_part(name: str, shapes: Mapping[str, JsonShape]) -> str | None:
    """Describe the attribute of JSON that has values, but not the field or the element that a name asks for."""
    part = list_part(name)
    path = name if part is None else f"{part.name}[1]"
    for root, shape in shapes.items():
        if (
            not shape.unread
            and path.startswith(root)
            and (why := shape.without_part(root, path[len(root) :])) is not None
        ):
            return why
    return None


def types_of_stream(
    files: Sequence[File], shapes: dict[str, JsonShape], options: Options, type_of: TypeOf
) -> dict[str, pa.DataType]:
    """Return the types of all columns, which must be the same in all files. ``type_of`` returns the type of a column
    from its name, its type in a file and the form of the file."""
    types: dict[str, pa.DataType] = {}
    where: dict[str, str] = {}
    columns = [(file, _columns(file, shapes, options, type_of)) for file in files]
    for file, columns_of_file in columns:
        for name, column_type in columns_of_file.items():
            before = types.get(name)
            if before is None or pa.types.is_null(before):
                types[name], where[name] = column_type, file.source.name
            elif (finest := finest_time(_plain(before), _plain(column_type))) is not None:
                types[name] = finest
            elif not pa.types.is_null(column_type) and _plain(column_type) != _plain(before):
                raise DataError(
                    f"column `{name}` is {column_type} in `{file.source.name}`, {before} in `{where[name]}`",
                    hint=f"cast it: {as_cast(name, 'string')}, or another type",
                    code="data_type",
                )
    _check_missing(types, where, columns)
    for name, cast in options.casts.items():  # an attribute that has not come yet
        is_used = options.columns is not None and name in options.columns
        if name not in types and is_used and any(isinstance(file, JsonFile) for file in files):
            types[name] = cast.type
    return types


def casts_to_come(files: Sequence[File], shapes: dict[str, JsonShape], options: Options) -> list[str]:
    """Return the columns that are used and cast, and that no file has."""
    names = {name for file in files for name in _columns(file, shapes, options, lambda _, column_type, __: column_type)}
    return [name for name in options.casts if options.columns and name in options.columns and name not in names]


def _columns(file: File, shapes: dict[str, JsonShape], options: Options, type_of: TypeOf) -> dict[str, pa.DataType]:
    """Return the columns of one file."""
    form = file.source.form
    if isinstance(file, CsvFile):
        columns = {name: type_of(name, pa.null(), form) for name in file.wanted}
        if options.type in columns and options.type not in options.casts:
            columns[options.type] = pa.string()
        return columns
    read = columns_of(shapes, options) if isinstance(file, JsonFile) else {f.name: f.type for f in file.schema}
    return {name: type_of(name, column_type, form) for name, column_type in read.items()}


def _check_missing(
    types: Mapping[str, pa.DataType], where: Mapping[str, str], columns: Sequence[tuple[File, dict[str, pa.DataType]]]
) -> None:
    """Raise :class:`DataError` if a file of rows has not all columns; files without text have none."""
    for name in types:
        for file, columns_of_file in columns:
            if name in columns_of_file or isinstance(file, JsonFile) or not file.names:
                continue
            field = next((column for column in columns_of_file if column.startswith(f"{name}.")), None)
            raise DataError(
                f"`{file.source.name}` has no column `{name}`, which `{where[name]}` has",
                hint=f"it has `{field}` as a column: write all files alike, or match each kind by itself"
                if field
                else None,
                code="data_column",
            )


def _plain(column_type: pa.DataType) -> pa.DataType:
    return column_type.value_type if pa.types.is_dictionary(column_type) else column_type
