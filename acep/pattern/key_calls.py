"""Name the keys that are functions of an attribute: ``lower(user)``, ``regexp_extract(path, '/user/([0-9]+)', 1)``.

Such a name stands where that of a column does, as those of parts of lists do: it is computed from one attribute of each
event before matching.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from acep.functions.scalar_function import ScalarFunction

__all__ = ["KeyCall", "key_call"]

_LITERAL = r"'(?:[^']|'')*'|-?\d{1,18}|TRUE|FALSE"
_CALL = re.compile(
    rf"""([a-z_0-9]+)\( ( "(?:[^"]|"")*" | [^\W\d][\w.\[\]]* ) ((?:,[ ](?:{_LITERAL}))*) \)""", re.DOTALL | re.VERBOSE
)
_ARGUMENT = re.compile(rf", ({_LITERAL})", re.DOTALL)


@dataclass(frozen=True)
class KeyCall:
    """A call of a scalar ``function`` of the attribute ``name`` and of constants. ``gives`` is the kind of the result:
    ``"text"``, ``"integer"`` or ``"condition"``."""

    function: str
    name: str
    constants: tuple[bool | int | str, ...]
    gives: str

    def values_of(self, texts: Sequence[str]) -> list[bool | int | str | None]:
        """Return the value for each of some texts.

        >>> key_call("substring(user, 1, 2)").values_of(["ann", "b"])
        ['an', 'b']
        """
        from acep.functions.lookup import find_scalar

        entry = find_scalar(self.function)
        assert entry is not None
        if entry.of_texts is not None:
            return list(entry.of_texts(texts, *self.constants))
        return [_value(entry, text, self.constants) for text in texts]


def _value(entry: ScalarFunction, text: str, constants: tuple[bool | int | str, ...]) -> bool | int | str | None:
    assert entry.of_values is not None
    try:
        value: bool | int | str | None = entry.of_values(text, *constants)
    except (ArithmeticError, ValueError):
        return None
    return value


@lru_cache(maxsize=10_000)
def key_call(name: str) -> KeyCall | None:
    """Return the call that the name of an attribute is, ``None`` for other names.

    >>> key_call("lower(dev.user)")
    KeyCall(function='lower', name='dev.user', constants=(), gives='text')
    >>> key_call("contains(tags, 'x')"), key_call("abs(x)"), key_call("user")
    (None, None, None)
    """
    match = _CALL.fullmatch(name) if name.endswith(")") else None
    if match is None:
        return None
    from acep.functions.lookup import find_scalar  # most queries call no function

    function, attribute, arguments = match.groups()
    entry = find_scalar(function)
    if entry is None or not entry.is_in_queries or entry.takes[0] != "text" or entry.of_values is None:
        return None
    if entry.gives not in ("text", "integer", "condition"):
        return None
    inner = attribute[1:-1].replace('""', '"') if attribute.startswith('"') else attribute
    return KeyCall(function, inner, tuple(_constant(text) for text in _ARGUMENT.findall(arguments)), entry.gives)


def _constant(text: str) -> bool | int | str:
    if text.startswith("'"):
        return text[1:-1].replace("''", "'")
    return text == "TRUE" if text in ("TRUE", "FALSE") else int(text)
