"""Infer the types of JSON attributes from the kinds of their values over all lines."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Self

import pyarrow as pa

from acep.errors import DataError
from acep.events.files.casts import Cast, as_cast
from acep.events.files.exponents import is_beyond
from acep.events.files.json.used_names import Used
from acep.events.files.long_numbers import is_long, refuse, refuse_beyond

__all__ = ["EXACT", "AttributeLimit", "JsonShape", "KindError", "LinePlace", "Raw"]

WORDS = {"bool": "a truth value", "number": "a number", "text": "text", "list": "a list", "object": "an object"}
MOST_UNREAD = 1_000  # names of fields that are not used are remembered for hints
EXACT = 2**53
LARGEST = 2**63


class KindError(ValueError):
    """An error for a value of another kind than earlier ones; the message does not name the value's line.
    ``is_of_element``: the value is an element of a list."""

    def __init__(self, message: str, *, is_of_element: bool) -> None:
        super().__init__(message)
        self.is_of_element = is_of_element


class Raw(float):
    """A number with a fraction or an exponent that keeps its text."""

    text: str

    def __new__(cls, text: str) -> Self:
        """Create the number from its text."""
        self = super().__new__(cls, text)
        self.text = text
        return self


class LinePlace(NamedTuple):
    """A line of a file."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"`{self.file}`, line {self.line}"


NOWHERE = LinePlace("", 0)


class AttributeLimit:
    """The casts of a stream, and how many attributes and fields may be read: ``n_read`` are so far.

    >>> limit = AttributeLimit({}, 1)
    >>> limit.take(LinePlace("a.jsonl", 1)), limit.n_read
    (None, 1)
    """

    def __init__(self, casts: Mapping[str, Cast], n_allowed: int) -> None:
        self.casts, self.n_allowed, self.n_read = casts, n_allowed, 0

    def take(self, place: LinePlace) -> None:
        """Count one more. Raises :class:`DataError` if there are too many."""
        if self.n_read >= self.n_allowed:
            raise DataError(
                f"{place}: there are more than {self.n_allowed:,} attributes",
                hint="name those that are used: columns=; or max_columns= allows more",
                code="data_column",
            )
        self.n_read += 1


@dataclass
class JsonShape:
    """The values of an attribute so far.

    It has their ``kind`` and the place of the first one (``since``); the place and text of the first number with a
    ``fraction``, or an exponent; whether
    values of several kinds are ``mixed``, as all of them become texts; whether the attribute is ``unread`` because it
    is not used; the place of an integer beyond 64 bits (``big``) and of one that no float equals (``inexact``); the
    place and text of the first number with more digits than a double distinguishes (``long``), and of one that no
    double is near (``beyond``); the ``fields`` of an object, and the ``items`` of a list.
    """

    kind: str | None = None
    since: LinePlace = NOWHERE
    fraction: tuple[str, str] | None = None
    mixed: bool = False
    unread: bool = False
    big: str = ""
    inexact: str = ""
    long: tuple[str, str] | None = None
    beyond: tuple[str, str] | None = None
    fields: dict[str, JsonShape] = field(default_factory=dict)
    items: JsonShape | None = None

    def check_kinds(self, name: str, value: object, place: LinePlace, used: Used, casts: Mapping[str, Cast]) -> None:
        """Raise :class:`KindError` if a value is of another kind than earlier ones. Casts to texts take every kind,
        others texts and numbers."""
        kind, cast = kind_of(value), casts.get(name)
        if kind is None or self.kind is None or (cast is not None and pa.types.is_string(cast.type)):
            return
        if kind != self.kind and not (cast is not None and {kind, self.kind} == {"number", "text"}):
            earlier_place = f"line {self.since.line}" if self.since.file == place.file else str(self.since)
            is_element = name.endswith("[]")
            subject = f"an element of `{name[:-2]}`" if is_element else f"`{name}`"
            raise KindError(
                f"{subject} is {WORDS[kind]}, but {WORDS[self.kind]} in {earlier_place}", is_of_element=is_element
            )
        if isinstance(value, Mapping):
            for label, inner in value.items():
                below, shape = used.used_part(label), self.fields.get(label)
                if below is not None and shape is not None:
                    shape.check_kinds(f"{name}.{label}", inner, place, below, casts)
        elif isinstance(value, list) and self.items is not None:
            for element in value:
                self.items.check_kinds(f"{name}[]", element, place, used, casts)

    def see(self, name: str, value: object, place: LinePlace, used: Used, limit: AttributeLimit) -> None:
        """Record a value of a line.

        Raises :class:`KindError` if it is of another kind than earlier values, or than others in the same list, and
        :class:`DataError` if there are too many fields."""
        kind, cast = kind_of(value), limit.casts.get(name)
        if kind is None:
            return
        as_text = cast is not None and pa.types.is_string(cast.type)
        if self.kind is None:
            self.kind, self.since = kind, place
        elif kind != self.kind:
            self.check_kinds(name, value, place, used, limit.casts)
            self.mixed = True
        if as_text and kind in ("list", "object"):
            self.mixed = True
        elif isinstance(value, float):
            self.fraction = self.fraction or (str(place), getattr(value, "text", json.dumps(value)))
            if isinstance(value, Raw):
                self.long = self.long or ((str(place), value.text) if is_long(value.text) else None)
                self.beyond = self.beyond or ((str(place), value.text) if is_beyond(value.text) else None)
        elif isinstance(value, int) and not isinstance(value, bool):
            self.see_integer(value, str(place))
        elif isinstance(value, Mapping):
            for label, inner in value.items():
                below = used.used_part(label)
                if below is not None:
                    shape = self.fields.get(label)
                    if shape is None or shape.unread:
                        limit.take(place)
                        shape = self.fields[label] = JsonShape()
                    shape.see(f"{name}.{label}", inner, place, below, limit)
                elif len(self.fields) < MOST_UNREAD:
                    self.fields.setdefault(label, JsonShape(unread=True))
        elif isinstance(value, list):
            self.items = self.items or JsonShape()
            for element in value:
                self.items.see(f"{name}[]", element, place, used, limit)

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

    def type(self, name: str, casts: Mapping[str, Cast]) -> pa.DataType:
        """Return the Arrow type in which all values are read, before they are cast."""
        cast = casts.get(name)
        if self.mixed:
            return cast.type if cast is not None and pa.types.is_decimal(cast.type) else pa.string()
        if self.kind == "number":
            read_type = pa.float64() if self.fraction or self.big else pa.int64()
            if cast is not None and pa.types.is_decimal(cast.type):
                return cast.type
            return pa.string() if cast is not None and self._needs_digits(cast) else read_type
        if self.kind == "text":
            return cast.type if cast is not None and pa.types.is_decimal(cast.type) else pa.string()
        if self.kind == "object":
            return pa.struct(
                [
                    pa.field(label, shape.type(f"{name}.{label}", casts))
                    for label, shape in self.fields.items()
                    if not shape.unread
                ]
            )
        if self.kind == "list":
            return pa.list_(pa.null() if self.items is None else self.items.type(f"{name}[]", casts))
        return pa.null() if self.kind is None else pa.bool_()

    def _needs_digits(self, cast: Cast) -> bool:
        """Return whether numbers that would be read as doubles are read as texts, as the cast takes their digits: those
        that become texts, and with an integer that no double equals those that become doubles, as it is refused."""
        if not (self.fraction or self.big):
            return False
        return pa.types.is_string(cast.type) or (pa.types.is_floating(cast.type) and bool(self.inexact))

    def needs_lines(self, name: str, casts: Mapping[str, Cast]) -> bool:
        """Return whether values have to be read line by line: the text of one is needed, which Arrow's reader does not
        provide, or a list has nulls only, of which it makes a list that is too short."""
        cast = casts.get(name)
        if cast is not None and self.mixed:
            return not pa.types.is_decimal(cast.type)
        if cast is not None and self.kind == "number":
            return self._needs_digits(cast)
        inner = [(f"{name}.{label}", shape) for label, shape in self.fields.items()]
        inner += [] if self.items is None else [(f"{name}[]", self.items)]
        is_of_nulls = self.items is not None and self.items.kind is None
        return is_of_nulls or any(shape.needs_lines(label, casts) for label, shape in inner)

    def check(
        self, name: str, casts: Mapping[str, Cast], *, castable: bool, fields_castable: bool, orders: Collection[str]
    ) -> None:
        """Raise :class:`DataError` if numbers do not fit their type, unless they are cast. ``castable`` says whether
        the attribute can be cast, for hints, and ``fields_castable`` whether its fields can; ``orders`` are those that
        cannot be texts, as they say when events were, or in which order."""
        if self.beyond is not None and name in casts and pa.types.is_floating(casts[name].type):
            raise refuse_beyond(self.beyond[0], name, self.beyond[1])
        if name in casts:
            return
        for label, shape in self.fields.items():
            shape.check(
                f"{name}.{label}", casts, castable=fields_castable, fields_castable=fields_castable, orders=orders
            )
        if self.items is not None:
            self.items.check(f"{name}[]", casts, castable=False, fields_castable=False, orders=orders)
        if self.kind != "number" or self.mixed:
            return
        read_type = self.type(name, casts)
        if self.long is not None and read_type == pa.float64():
            raise refuse(self.long[0], name, self.long[1], castable=castable)
        if self.beyond is not None:
            raise refuse_beyond(self.beyond[0], name, self.beyond[1])
        hint = "write it as a text" + (f", or cast the column: {as_cast(name, 'string')}" if castable else "")
        if name in orders:
            hint = "write an integer of 64 bits, or an ISO 8601 time"
        if self.big and not self.fraction:
            raise DataError(f"{self.big}: `{name}` is an integer beyond 64 bits", hint=hint, code="data_value")
        if self.inexact and read_type == pa.float64():
            raise DataError(
                f"{self.inexact}: `{name}` is an integer that no float is equal to, and other lines have fractions",
                hint=hint,
                code="data_value",
            )

    def without_part(self, name: str, path: str) -> str | None:
        """Describe the attribute at which the way to ``path``, a field or an element, ends because it is no object or
        no list; ``None``: it does not end so."""
        wanted = {".": "object", "[": "list"}.get(path[:1])
        if wanted is None or self.kind is None or self.mixed:
            return None
        if self.kind != wanted:
            return f"{self.since}: `{name}` is {WORDS[self.kind]}, not {WORDS[wanted]}"
        if self.items is not None:
            return self.items.without_part(f"{name}[]", path[path.index("]") + 1 :])
        for label, shape in self.fields.items():
            end = len(label) + 1
            if path[1:end] == label and (reason := shape.without_part(f"{name}.{label}", path[end:])) is not None:
                return reason
        return None

    def part(self, path: str) -> JsonShape | None:
        """Return the shape at the end of a path of fields and elements, such as ``.dev.tags[1]``; ``None``: there is
        none."""
        if not path:
            return self
        if path.startswith("["):
            return None if self.items is None else self.items.part(path[path.find("]") + 1 :])
        ends = ((shape, len(label) + 1) for label, shape in self.fields.items() if path[1:].startswith(label))
        return next((part for shape, end in ends if (part := shape.part(path[end:])) is not None), None)

    def names(self, name: str) -> Iterator[str]:
        """Yield the name, and those of all fields that were seen."""
        yield name
        for label, shape in self.fields.items():
            yield from shape.names(f"{name}.{label}")


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
