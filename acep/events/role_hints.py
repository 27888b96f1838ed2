"""Say what to do about a column that cannot be the time, the type, the order or the id of events."""

from __future__ import annotations

from collections.abc import Collection

import pyarrow as pa

from acep.errors import DataError
from acep.events.columns import kind_of, plain_type
from acep.events.nested import is_list
from acep.plan.schema import Kind

__all__ = ["id_type_error", "role_hint"]


def role_hint(role: str, name: str, value_type: pa.DataType, wanted: Collection[Kind]) -> str:
    """Return the hint for a column of a type that its role, an argument such as ``ts``, does not allow.

    Of lists and structs a part of a kind that is ``wanted`` is named.

    >>> role_hint("type", "event.type", pa.list_(pa.string()), [Kind.STRING])
    'name a part of it: type="event.type[1]"'
    >>> role_hint("seq", "n", pa.float64(), [Kind.INT])
    'cast it, where files are read by cast={"n": "int"}'
    """
    other_column = f"name another column with {role}="
    plain_value_type = plain_type(value_type)
    if pa.types.is_struct(plain_value_type) or is_list(plain_value_type):
        part = _part_of_kind(name, plain_value_type, wanted)
        return other_column if part is None else f'name a part of it: {role}="{part}"'
    if role == "ts" and kind_of(value_type) is Kind.STRING:
        return f'parse it: pd.to_datetime(df["{name}"]) in pandas, df["{name}"].str.to_datetime() in polars'
    is_number = pa.types.is_floating(plain_value_type) or pa.types.is_decimal(plain_value_type)
    if role == "ts" and is_number:
        return f'cast it to timestamps, where files are read by cast={{"{name}": "timestamp(s)"}}, or to integers'
    if role in ("ts", "seq") and not (
        is_number or kind_of(value_type) is not None or pa.types.is_time(plain_value_type)
    ):
        return other_column
    return f'cast it, where files are read by cast={{"{name}": "{"int" if role in ("ts", "seq") else "string"}"}}'


def id_type_error(name: str, value_type: pa.DataType) -> DataError:
    """Return the error for a column of a type that cannot be ids."""
    return DataError(
        f"the id column `{name}` must hold integers or texts, not {value_type}",
        hint=role_hint("id", name, value_type, (Kind.INT, Kind.STRING)),
        code="data_type",
    )


def _part_of_kind(name: str, value_type: pa.DataType, wanted: Collection[Kind]) -> str | None:
    """Return the name of the first part of a list or struct that is of a kind that is wanted."""
    plain_value_type = plain_type(value_type)
    if is_list(plain_value_type):
        return _part_of_kind(f"{name}[1]", plain_value_type.value_type, wanted)
    if pa.types.is_struct(plain_value_type):
        parts = (_part_of_kind(f"{name}.{field.name}", field.type, wanted) for field in plain_value_type)
        return next((part for part in parts if part is not None), None)
    return name if kind_of(value_type) in wanted else None
