"""Name the parts of lists as attributes: ``tags[1]``, ``contains(tags, 'x')`` and ``text(tags)``.

Such a name stands where that of a column does: a list that stands in a column gives a column for each part that is
asked for.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["CONTAINS", "ListPart", "contains_name", "list_of", "list_part", "source_name", "text_name"]

CONTAINS = "contains"
_LITERAL = r"'(?:[^']|'')*'|-?\d+(?:\.\d+)?(?:e[+-]?\d+)?|TRUE|FALSE"
_CONTAINS = re.compile(rf"contains\((.+?), ({_LITERAL})\)", re.DOTALL)
_TEXT = re.compile(r"text\((.+)\)", re.DOTALL)


@dataclass(frozen=True)
class ListPart:
    """A question about the list ``name``: whether it contains a ``value`` (a text, a number as it is written, or a
    truth value), or with ``None`` its text."""

    name: str
    value: str | bool | None
    is_number: bool = False

    @property
    def constant(self) -> str:
        """Return the value as it is written in a query."""
        if isinstance(self.value, bool):
            return str(self.value).upper()
        return str(self.value) if self.is_number else "'" + str(self.value).replace("'", "''") + "'"


def contains_name(name: str, value: str) -> str:
    """Return the name of the attribute that says whether a list contains a value, which is written as a constant.

    >>> contains_name("tags", "'x'")
    "contains(tags, 'x')"
    """
    return f"{CONTAINS}({name}, {value})"


def text_name(name: str) -> str:
    """Return the name of the attribute that is the text of a list."""
    return f"text({name})"


def list_part(name: str) -> ListPart | None:
    """Return what the name of an attribute asks of a list, ``None`` for other names.

    >>> list_part("contains(dev.tags, 'it''s')")
    ListPart(name='dev.tags', value="it's", is_number=False)
    >>> list_part("text(tags)"), list_part("tags[1]")
    (ListPart(name='tags', value=None, is_number=False), None)
    """
    if (match := _CONTAINS.fullmatch(name)) is not None:
        text = match[2]
        if text.startswith("'"):
            return ListPart(match[1], text[1:-1].replace("''", "'"))
        return ListPart(match[1], text == "TRUE") if text in ("TRUE", "FALSE") else ListPart(match[1], text, True)
    if (match := _TEXT.fullmatch(name)) is not None:
        return ListPart(match[1], None)
    return None


def list_of(name: str) -> str | None:
    """Return the list of which an attribute is a part, ``None`` if it is none of a list.

    >>> list_of("contains(dev.tags, 'x')"), list_of("answers[1].id"), list_of("tags")
    ('dev.tags', 'answers', None)
    """
    if (part := list_part(name)) is not None:
        return part.name
    return name[: name.rindex("[")] if "[" in name else None


def source_name(name: str) -> str:
    """Return the attribute from which a part of a list, or a key that is a function, is computed; other names as they
    are.

    >>> source_name("lower(tags[1])"), source_name("contains(dev.tags, 'x')"), source_name("user")
    ('tags[1]', 'dev.tags', 'user')
    """
    if (part := list_part(name)) is not None:
        return part.name
    if not name.endswith(")"):
        return name
    from acep.pattern.key_calls import key_call  # few queries have such keys

    call = key_call(name)
    return name if call is None else call.name
