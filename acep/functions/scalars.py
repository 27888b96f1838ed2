"""Collect the scalar functions of queries and of SQL, each in one entry (:class:`ScalarFunction`).

A function that can be written with others has a ``formula``, and needs nothing else: every engine runs it. One that
cannot has ``of_values``, and every engine runs it over single attributes; ``operations`` say what the native core has
for it. A test holds that docs/reference/language.md and docs/reference/sql.md describe each function.
"""

from __future__ import annotations

from acep.functions.addresses import ADDRESSES
from acep.functions.choices import CHOICES
from acep.functions.numbers import NUMBERS
from acep.functions.scalar_function import ScalarFunction
from acep.functions.texts import TEXTS
from acep.functions.times import TIMES

__all__ = ["SCALARS", "is_time_part", "scalar_names", "scalar_synonyms"]

SCALARS: dict[str, ScalarFunction] = {
    function.name: function for function in (*NUMBERS, *CHOICES, *TEXTS, *ADDRESSES, *TIMES)
}
"""The scalar functions by name."""


def scalar_names() -> list[str]:
    """Return the names that a query may call.

    >>> scalar_names()[:3]
    ['abs', 'sqrt', 'floor']
    """
    return [name for name, entry in SCALARS.items() if entry.is_in_queries]


def scalar_synonyms() -> dict[str, str]:
    """Return the other names in queries, each with the name that it stands for.

    >>> scalar_synonyms()["substr"]
    'substring'
    """
    return {synonym: entry.name for entry in SCALARS.values() for synonym in entry.synonyms}


def is_time_part(name: str) -> bool:
    """Return whether a function gives a part of a time, in UTC.

    >>> is_time_part("hour"), is_time_part("abs")
    (True, False)
    """
    entry = SCALARS.get(name)
    return entry is not None and entry.takes[0] == "time"
