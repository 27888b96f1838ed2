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

__all__ = ["SCALARS", "called_scalar", "scalar_names", "scalar_synonyms"]

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


def called_scalar(name: str) -> ScalarFunction | None:
    """Return the entry of the function that a query calls by a name, which may be a synonym.

    >>> called_scalar("substr").name, called_scalar("sql reverse"), called_scalar("zzz")
    ('substring', None, None)
    """
    entry = SCALARS.get(scalar_synonyms().get(name, name))
    return entry if entry is not None and entry.is_in_queries else None
