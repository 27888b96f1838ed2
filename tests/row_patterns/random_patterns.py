"""Random patterns over a few variables."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from tests.row_patterns import tree

__all__ = ["Patterns"]

SHORT_QUANTIFIERS = ((0, None), (1, None), (0, 1))
QUANTIFIERS = (
    *SHORT_QUANTIFIERS,
    *SHORT_QUANTIFIERS,
    (1, 1),
    (2, 2),
    (0, 2),
    (1, 2),
    (2, 3),
    (0, 3),
    (2, None),
    (3, None),
)
LONG_QUANTIFIERS = ((0, 70), (1, 90), (3, 65))


@dataclass
class Patterns:
    """Draws patterns over variables."""

    rng: Random
    names: tuple[str, ...]
    may_exclude: bool

    def draw_all(self) -> tree.Pattern:
        """Draw a pattern that has a variable."""
        if len(self.names) > 2 and self.rng.random() < 0.15:
            return self.draw_gaps()
        while True:
            n_items = self.rng.choice((1, 2, 2, 3))
            items = [self.draw(2) for _ in range(n_items)]
            items = [tree.Anchor(True)] * (self.rng.random() < 0.05) + items
            items += [tree.Anchor(False)] * (self.rng.random() < 0.05)
            pattern = items[0] if len(items) == 1 else tree.Concatenation(tuple(items))
            if tree.variables_of(pattern):
                return pattern

    def draw_gaps(self) -> tree.Pattern:
        """Draw variables one after the other, with any rows of the last one between them."""
        *steps, between = self.names
        gap = tree.Quantified(tree.Variable(between), 0, None, self.rng.random() < 0.3)
        items: list[tree.Pattern] = [tree.Variable(steps[0])]
        for name in steps[1:]:
            items += [gap, tree.Variable(name)]
        return tree.Concatenation(tuple(items))

    def draw(self, depth: int) -> tree.Pattern:
        """Draw a pattern of at most so many levels."""
        draw = self.rng.random()
        if depth == 0 or draw < 0.3:
            return self.leaf()
        if draw < 0.62:
            is_long = self.rng.random() < 0.03
            low, high = self.rng.choice(LONG_QUANTIFIERS if is_long else QUANTIFIERS)
            item = tree.Variable(self.rng.choice(self.names)) if is_long else self.draw(depth - 1)
            return tree.Quantified(item, low, high, self.rng.random() < 0.3)
        if draw < 0.72 and self.may_exclude:
            self.may_exclude = False  # not one in another
            item = self.draw(depth - 1)
            self.may_exclude = True
            return tree.Exclusion(item)
        items = tuple(self.draw(depth - 1) for _ in range(self.rng.choice((2, 2, 3))))
        if draw < 0.78:
            return tree.Permute(items)
        return tree.Alternation(items) if draw < 0.9 else tree.Concatenation(items)

    def leaf(self) -> tree.Pattern:
        """Draw a variable, or now and then the empty pattern or an anchor."""
        draw = self.rng.random()
        if draw < 0.05:
            return tree.Empty()
        if draw < 0.07:
            return tree.Anchor(self.rng.random() < 0.5)
        return tree.Variable(self.rng.choice(self.names))
