"""Find out which attributes and fields of JSON objects are used, from the names of columns."""

from __future__ import annotations

import re
from collections.abc import Iterable

from acep.pattern.list_parts import list_part, source_name

__all__ = ["Used", "part_within"]

INDEX = re.compile(r"\[\d+\]")


class Used:
    """The part of a value that is used: everything, or some of its fields.

    >>> used = Used(["ts", "dev.id", "dev.tags[1].name", "contains(roles, 'x')"])
    >>> dev = used.used_part("dev")
    >>> dev.used_part("id").everything, dev.used_part("name"), dev.used_part("tags").used_part("name").everything
    (True, None, True)
    >>> used.used_part("roles").everything
    True
    """

    def __init__(self, names: Iterable[str] | None) -> None:
        """Use some names, or everything (``None``)."""
        self.everything = names is None
        paths: dict[str, list[str]] = {}
        for name in names or ():
            for label in {name, source_name(name)}:
                for place in (*(i for i, sign in enumerate(label) if sign in ".[" and i), len(label)):
                    path = label[place:]
                    while (index := INDEX.match(path)) is not None:
                        path = path[index.end() :]
                    paths.setdefault(label[:place], []).append(path.removeprefix("."))
        self._below = {label: Used(None if "" in inner else inner) for label, inner in paths.items()}

    def used_part(self, label: str) -> Used | None:
        """Return what is used of an attribute or a field; ``None``: nothing. A list stands for its elements."""
        return self if self.everything else self._below.get(label)


def part_within(names: Iterable[str], path: str) -> str | None:
    """Return the first of some names that asks for a part of what a path leads to, and not for the whole; in a path all
    elements of a list are ``[]``.

    >>> part_within(["ts", "dev", "dev.id"], "dev"), part_within(["contains(dev.tags, 'x')"], "dev.tags")
    ('dev.id', "contains(dev.tags, 'x')")
    >>> part_within(["tags[1].id"], "tags[]"), part_within(["tags[1]"], "tags[]")
    ('tags[1].id', None)
    """
    for name in names:
        part = list_part(name)
        used_path = INDEX.sub("[]", name) if part is None else f"{INDEX.sub('[]', part.name)}[]"
        if used_path.startswith((f"{path}.", f"{path}[")):
            return name
    return None
