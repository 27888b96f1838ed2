"""Define a match as a user sees it."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from fractions import Fraction
from typing import Any

from acep.display import fields_text
from acep.events.records import Id
from acep.matches.records import Found
from acep.matches.rendering import match_line, match_page

__all__ = ["Match", "error_number"]


@dataclass(frozen=True, repr=False)
class Match:
    """One match. ``str(match)`` is one line, and a notebook shows a table; of long ones both show a part.

    ``key``: the partition attributes. ``start``, ``end``: the time of the first and last bound event, as in the
    input: an integer, a date, or a datetime (in UTC if the input has a zone; a ``numpy.datetime64`` where it has a
    fraction of a microsecond or lies beyond the years of a datetime). ``error``: the total weight of the missing
    events, an integer where it is whole. ``bindings``: the event ids of each variable. ``bundle``: the first match
    point of its bundle. ``values``: the values of RETURN, by name. ``op``: 1, or -1 if a match that was given is taken
    back. ``id``: a hash of 128 bits of key and bindings, as 32 hexadecimal digits; it is the same in every process.
    """

    key: dict[str, Any]
    start: Any
    end: Any
    error: int | float
    bindings: dict[str, tuple[Id, ...]]
    bundle: Any
    values: dict[str, Any] = field(default_factory=dict)
    op: int = field(default=1, repr=False)
    _record: Found | None = field(default=None, repr=False, compare=False)
    _zoned: frozenset[str] = field(default=frozenset(), repr=False, compare=False)

    @property
    def id(self) -> str:
        """Return a hash of 128 bits of key and bindings (for a hand-written automaton also of its values), as 32
        hexadecimal digits."""
        from acep.matches.match_ids import id_of, id_of_found

        record = self._record
        return id_of(tuple(self.key.values()), [*self.bindings.items()]) if record is None else id_of_found(record)

    def __repr__(self) -> str:
        names = [match_field.name for match_field in fields(self) if match_field.repr]
        return fields_text(self, [*names, "op"] if self.op < 0 else names)

    def __str__(self) -> str:
        return match_line(self)

    def _repr_html_(self) -> str:
        return match_page(self)


def error_number(error: int | Fraction) -> int | float:
    """Return an error as an integer where it is whole, else as a float.

    >>> error_number(Fraction(4, 2)), error_number(Fraction(1, 2))
    (2, 0.5)
    """
    return int(error) if error == int(error) else float(error)
