"""Keep where the characters of a rewritten text stand in the text that the user wrote."""

from __future__ import annotations

from dataclasses import dataclass

from acep.pattern.expressions import Span

__all__ = ["TextPlaces"]


@dataclass
class TextPlaces:
    """The place of each character of a text, and of its end, in the text of the user; ``None`` if it has none.

    >>> places = TextPlaces.of_text(20)
    >>> places.replace(5, 15, 3)  # ten characters become three, which stand for all of them
    >>> places.span(4, 6), places.span(8, 10)
    (Span(start=4, end=15), Span(start=15, end=17))
    """

    starts: list[int | None]
    ends: list[int | None]

    @classmethod
    def of_text(cls, size: int) -> TextPlaces:
        """Return the places of a text of the user himself."""
        return cls([*range(size)], [*range(1, size + 1)])

    @classmethod
    def unknown(cls, size: int) -> TextPlaces:
        """Return the places of a text that the user did not write."""
        return cls([None] * size, [None] * size)

    def __add__(self, other: TextPlaces) -> TextPlaces:
        """Return the places of two texts, one behind the other."""
        return TextPlaces(self.starts + other.starts, self.ends + other.ends)

    def part(self, start: int, end: int) -> TextPlaces:
        """Return the places of a part of the text."""
        return TextPlaces(self.starts[start:end], self.ends[start:end])

    def replace(self, start: int, end: int, size: int) -> None:
        """Put ``size`` characters in place of a part of the text: each of them stands for that part."""
        first, last = self.starts[start], self.ends[end - 1]
        self.starts[start:end] = [first] * size
        self.ends[start:end] = [last] * size

    def span(self, start: int, end: int) -> Span | None:
        """Return where a part of the text stands in that of the user; behind its end is the end."""
        if not self.starts:
            return None
        if start >= len(self.starts):
            last = self.ends[-1]
            return None if last is None else Span(last, last + 1)
        first, last = self.starts[start], self.ends[min(max(end, start + 1), len(self.ends)) - 1]
        return None if first is None or last is None else Span(first, max(last, first + 1))
