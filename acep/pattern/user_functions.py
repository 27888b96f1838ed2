"""Describe functions of the user's own: a name, a version, the type of the result, and code that takes columns."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, Final

from acep.errors import QueryError

__all__ = ["RESULTS", "Function", "function"]

RESULTS: Final = ("integer", "float", "text", "boolean")
"""The types of results."""

_NAME = re.compile(r"[^\W\d]\w*")
_VERSION = re.compile(r"\w[\w.+-]*")
_HINT = '@acep.function(version="1", returns="float")'


@dataclass(frozen=True)
class Function:
    """A function of values of single events. ``code`` takes an Arrow array for each argument, and returns one of the
    same length. States are compared by name, version and type; plans in one process also by the code."""

    name: str
    version: str
    returns: str
    code: Callable[..., Any] = field(repr=False)

    def __call__(self, *args: Any) -> Any:
        """Call the code itself."""
        return self.code(*args)


def function(
    *unexpected: object, version: str = "", returns: str = "", name: str | None = None
) -> Callable[[Callable[..., Any]], Function]:
    """Make a function that queries may call, out of one that takes columns.

    ``version`` (a text of letters, digits and ``. + - _``) changes when the code does: a state is restored only with
    the same version. ``returns`` is "integer", "float", "text" or "boolean". ``name`` is the name in queries, by
    default that of the code. The code takes a :class:`pyarrow.Array` for each argument, with nulls, and returns an
    Arrow or NumPy array or a list of the same length. Each value depends on those of its own row alone. NaN is null.

    Raises :class:`~acep.errors.QueryError` for a name, a version or a type that is none, or without parentheses.

    >>> import pyarrow.compute as pc
    >>> @function(version="1", returns="float")
    ... def half(x):
    ...     return pc.divide(x, 2.0)
    >>> half
    Function(name='half', version='1', returns='float')
    """
    if unexpected:
        raise QueryError("acep.function takes version= and returns=, in parentheses", hint=_HINT)
    if not isinstance(version, str) or not _VERSION.fullmatch(version):
        raise QueryError(f"version={version!r} is no version of a function", hint=_HINT)
    if returns not in RESULTS:
        raise QueryError(f"returns={returns!r} is no type of a result", hint=f"one of {', '.join(RESULTS)}")

    def make_function(code: Callable[..., Any]) -> Function:
        function_name = getattr(code, "__name__", "") if name is None else name
        if (
            not callable(code)
            or not isinstance(code, Hashable)
            or not isinstance(function_name, str)
            or not _NAME.fullmatch(function_name)
        ):
            raise QueryError(f"{function_name!r} is no name of a function", hint='give it one: name="score"')
        return Function(function_name, version, returns, code)

    return make_function
