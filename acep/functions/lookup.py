"""Look up scalar functions by name. Their entries are loaded with the first call: most queries call none."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from acep.functions.scalar_function import ScalarFunction

__all__ = ["find_scalar", "get_scalar", "is_choice", "is_time_part"]


def find_scalar(name: str) -> ScalarFunction | None:
    """Return the entry of a scalar function, ``None`` for another name.

    >>> find_scalar("abs").takes, find_scalar("case")
    (('length',), None)
    """
    from acep.functions.scalars import SCALARS

    return SCALARS.get(name)


def get_scalar(name: str) -> ScalarFunction:
    """Return the entry of a scalar function. Raises :class:`KeyError` for another name.

    >>> get_scalar("round").counts
    (1, 2)
    """
    from acep.functions.scalars import SCALARS

    return SCALARS[name]


def is_time_part(name: str) -> bool:
    """Return whether a function gives a part of a time, in UTC.

    >>> is_time_part("hour"), is_time_part("abs"), is_time_part("case")
    (True, False, False)
    """
    entry = find_scalar(name)
    return entry is not None and entry.takes[0] == "time"


def is_choice(name: str) -> bool:
    """Return whether a function gives one of its arguments, which may be of any kind.

    >>> is_choice("least"), is_choice("abs"), is_choice("case")
    (True, False, False)
    """
    entry = find_scalar(name)
    return entry is not None and entry.is_choice
