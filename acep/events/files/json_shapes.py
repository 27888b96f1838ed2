"""The types of JSON attributes: kinds of values that were seen and in which line, joined over all lines."""

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
    """A value that is of another kind than those before; the message says so without the line."""


class Raw(float):
    """A number with a fraction or an exponent, with its text."""

    text: str

    def __new__(cls, text: str) -> Self:
        """The number that a text says."""
        self = super().__new__(cls, text)
        self.text = text
        return self


@dataclass
class JsonShape:
    """What was seen of an attribute.

    Its ``kind`` and where that was first so; whether a number had a ``fraction``; whether numbers and texts are
    ``mixed``; whether it is ``unread``, as nothing uses it; where a number beyond 64 bits was (``big``), and one that
    no float is equal to (``inexact``); the first that has more digits than a double tells apart (``long``, and where
    it is); of an object its fields.
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
        """Take in a value of some line; ``mixing``: numbers and texts may be mixed, as all of them become texts.

        Raises :class:`KindError` where it is of another kind than those before."""
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
        """Note an integer that is too large for some type."""
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
        """The Arrow type of all that was seen; lists are never read, and so have a type of nothing."""
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
        """Raises :class:`DataError` where numbers do not fit their type.

        ``columns``: those that are used, ``None`` for all; ``inner``: it is a field of another.
        """
        for field_name, shape in self.fields.items():
            shape.check(f"{name}.{field_name}", columns, inner=True)
        used = columns is None or any(one == name or name.startswith(one + ".") for one in columns)
        if self.long is not None and used and self.type() == pa.float64():
            raise refuse(self.long[0], name, self.long[1], castable=not inner)
        hint = f"write it as a text, or cast the column: {as_cast(name, 'string')}"
        if self.big and not (self.fraction or self.mixed):
            raise DataError(f"{self.big}: `{name}` is an integer beyond 64 bits", hint=hint)
        if self.inexact and self.type() == pa.float64():
            raise DataError(
                f"{self.inexact}: `{name}` is an integer that no float is equal to, and other lines have fractions",
                hint=hint,
            )

    def copy(self) -> JsonShape:
        """One that is changed on its own."""
        inner = {name: shape.copy() for name, shape in self.fields.items()}
        return replace(self, fields=inner)


def kind_of(value: object) -> str | None:
    """The kind of a value of JSON: a key of :data:`WORDS`, ``None`` for null."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "text"
    return "list" if isinstance(value, list) else "object"
