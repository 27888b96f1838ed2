"""Hold the results of several queries as a dict or a list that shows itself."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any

from acep.display import ROWS, clip_text, page, preformat, several_text

__all__ = ["NamedResults", "ResultList"]


class NamedResults(dict[str, Any]):
    """The results of several queries by the names of these: a dict. As text and in a notebook it shows each result.

    >>> NamedResults(up=3, down=5)
    2 queries
      up: 3
      down: 5
    """

    def __repr__(self) -> str:
        return _text(len(self), self.items())

    def _repr_html_(self) -> str:
        return _page(len(self), self.items())


class ResultList(list[Any]):
    """The results of several queries in their order: a list. As text and in a notebook it shows each result.

    >>> ResultList([3])
    1 query
      0: 3
    """

    def __repr__(self) -> str:
        return _text(len(self), enumerate(self))

    def _repr_html_(self) -> str:
        return _page(len(self), enumerate(self))


def _title(number: int) -> str:
    return f"{number:,} {'query' if number == 1 else 'queries'}"


def _text(number: int, results: Iterable[tuple[Any, Any]]) -> str:
    """Return the first results with their names, indented."""
    rows = [(clip_text(str(name)), repr(result)) for name, result in islice(results, ROWS)]
    return several_text(_title(number), rows, number)


def _page(number: int, results: Iterable[tuple[Any, Any]]) -> str:
    """Return the first results as HTML, each below its name."""
    parts = []
    for name, result in islice(results, ROWS):
        html = getattr(result, "_repr_html_", None)
        parts.append(page(str(name), preformat(repr(result)) if html is None else html()))
    return page(_title(number), *parts, note=f"... and {number - ROWS:,} more" if number > ROWS else "")
