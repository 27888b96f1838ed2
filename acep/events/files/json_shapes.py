"""Infer the types of JSON attributes from the kinds of their values over all lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

import pyarrow as pa

from acep.errors import DataError
from acep.events.files.casts import as_cast
from acep.events.files.long_numbers import is_long, refuse

__all__ = ["JsonShape", "KindError", "Raw"]

WORDS = {"bool": "a truth value", "number": "a number", "text": "text", "list": "a list", "object": "an object"}
EXACT = 2**53
LARGEST = 2**63


class KindError(ValueError):
    """An error for a value of another kind than earlier ones; the message does not name the value's line."""


class Raw(float):
    """A number with a fraction or an exponent that keeps its text."""

    text: str

    def __new__(cls, text: str) -> Self:
        """Create the number from its text."""
        self = super().__new__(cls, text)
        self.text = text
        return self


@dataclass
class JsonShape:
    """The values of an attribute so far.

    It has their ``kind`` and the place of the first one (``since``); whether a number had a ``fraction``; whether
    numbers and texts are ``mixed``; whether the attribute is ``unread`` because it is not used; the place of an integer
    beyond 64 bits (``big``) and of one that no float equals (``inexact``); the place and text of the first number with
    more digits than a double distinguishes (``long``); and the ``fields`` of an object.
    """

    kind: str | None = None
    since: tuple[str, int] = ("", 0)
    fraction: bool = False
    mixed: bool = False
    unread: bool = False
    big: str = ""
    inexact: str = ""
    long: tuple[str, str] | None = None
    fields: dict[str, JsonShape] = field(default_factory=dict)

    def see(self, name: str, value: object, line: int, file: str, *, mixing: bool = False) -> None:
        """Record a value of a line. With ``mixing`` numbers and texts may be mixed, as all of them become texts.

        Raises :class:`KindError` if it is of another kind than earlier values."""
        kind = kind_of(value)
        if kind is None:
            return
        if self.kind is None:
            self.kind, self.since = kind, (file, line)
        elif mixing and {kind, self.kind} == {"number", "text"}:
            self.mixed = True
        elif kind != self.kind:
            before = f"line {self.since[1]}" if self.since[0] == file else f"`{self.since[0]}`, line {self.since[1]}"
            raise KindError(f"`{name}` is {WORDS[kind]}, but {WORDS[self.kind]} in {before}")
        if isinstance(value, bool):
            return
        if isinstance(value, float):
            self.fraction = True
            if self.long is None and isinstance(value, Raw) and is_long(value.text):
                self.long = f"`{file}`, line {line}", value.text
        elif isinstance(value, int):
            self.see_integer(value, f"`{file}`, line {line}")
        elif isinstance(value, Mapping):
            for inner, one in value.items():
                self.fields.setdefault(inner, JsonShape()).see(f"{name}.{inner}", one, line, file)

    def see_integer(self, value: int, where: str) -> None:
        """Record an integer if it is too large for 64 bits or for a float."""
        if not -LARGEST <= value < LARGEST:
            self.big = self.big or where
        if abs(value) > EXACT:
            try:
                exact = int(float(value)) == value
            except OverflowError:
                exact = False
            if not exact:
                self.inexact = self.inexact or where

    def type(self) -> pa.DataType:
        """Return the Arrow type of all values; lists are never read, so their items have the null type."""
        if self.mixed:
            return pa.string()
        if self.kind == "number":
            return pa.float64() if self.fraction or self.big else pa.int64()
        if self.kind == "object":
            return pa.struct([pa.field(name, shape.type()) for name, shape in self.fields.items()])
        if self.kind == "list":
            return pa.list_(pa.null())
        return {None: pa.null(), "bool": pa.bool_(), "text": pa.string()}[self.kind]

    def check(self, name: str, columns: Sequence[str] | None, *, inner: bool = False) -> None:
        """Raise :class:`DataError` if numbers do not fit their type.

        ``columns`` are those that are used (``None``: all). ``inner`` marks a field of another attribute.
        """
        for field_name, shape in self.fields.items():
            shape.check(f"{name}.{field_name}", columns, inner=True)
        used = columns is None or any(one == name or name.startswith(one + ".") for one in columns)
        if self.long is not None and used and self.type() == pa.float64():
            raise refuse(self.long[0], name, self.long[1], castable=not inner)
        hint = f"write it as a text, or cast the column: {as_cast(name, 'string')}"
        if self.big and not (self.fraction or self.mixed):
            raise DataError(f"{self.big}: `{name}` is an integer beyond 64 bits", hint=hint, code="data_value")
        if self.inexact and self.type() == pa.float64():
            raise DataError(
                f"{self.inexact}: `{name}` is an integer that no float is equal to, and other lines have fractions",
                hint=hint,
                code="data_value",
            )

    def copy(self) -> JsonShape:
        """Return an independent copy."""
        inner = {name: shape.copy() for name, shape in self.fields.items()}
        return replace(self, fields=inner)


def kind_of(value: object) -> str | None:
    """Return the kind of a JSON value: a key of :data:`WORDS`, or ``None`` for null."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "text"
    return "list" if isinstance(value, list) else "object"
