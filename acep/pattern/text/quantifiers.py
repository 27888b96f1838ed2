"""Read quantifiers, such as ``+`` or ``{2,5}``, and build repetitions of them."""

from __future__ import annotations

from collections.abc import Collection

from acep.pattern.text.syntax import Branch, branches, fail, tokens
from acep.pattern.tree import Component, Node, Repeat

__all__ = ["HIGHEST", "bounds", "quantifier_of", "repeat", "with_quantifier"]

HIGHEST = 10_000
"""The greatest bound of a repetition."""


def quantifier_of(branch: Branch) -> Branch | None:
    """Return the quantifier behind a component, group or set; ``None`` if there is none."""
    quantifiers = branches(branch, "sign", "exactly", "at_least", "from_to", "at_most")
    return quantifiers[0] if quantifiers else None


def with_quantifier(node: Node, quantifier: Branch | None, mentioned: Collection[str] = ()) -> Node:
    """Return a node, repeated as its quantifier says. ``mentioned`` are the variables of expressions."""
    return node if quantifier is None else repeat(node, *bounds(quantifier), mentioned)


def repeat(item: Node, low: int, high: int | None, mentioned: Collection[str]) -> Node:
    """Return a repetition, simplified if this does not change its meaning.

    A repetition of a repetition of one component becomes a single one if every count between its bounds is possible and
    no expression refers to the variable (in a group the reference would mean the current iteration).
    """
    if (low, high) == (1, 1):
        return item
    if isinstance(item, Repeat) and isinstance(item.item, Component) and item.item.var not in mentioned:
        inner = item
        unbounded = inner.high is None and inner.low <= 1
        exact = inner.low == inner.high and low == high
        optional = (inner.low, inner.high) == (0, 1) and (high is None or (low, high) == (0, 1))
        if (unbounded and (high is None or low >= 1)) or exact or optional:
            product = None if inner.high is None or high is None else inner.high * high
            return Repeat(inner.item, inner.low * low, product)
    return Repeat(item, low, high)


def bounds(branch: Branch) -> tuple[int, int | None]:
    """Return the bounds of a quantifier. Raises :class:`QueryError` (without the text)."""
    words = [str(t) for t in tokens(branch)]
    numbers = [_count(branch, w) for w in words if w not in ("+", "*", "?")]
    match branch.data:
        case "sign":
            return {"+": (1, None), "*": (0, None), "?": (0, 1)}[words[0]]
        case "exactly":
            low, high = numbers[0], numbers[0]
        case "at_least":
            if len(words) == 2 and words[1] != "+":
                raise fail(
                    "this is not a repetition",
                    branch,
                    f"write {{{words[0]},}} for {words[0]} or more",
                    code="query_syntax",
                )
            return numbers[0], None
        case "at_most":
            low, high = 0, numbers[0]
        case _:
            low, high = numbers
    if high < 1:
        raise fail("a repetition of none", branch, "leave the component out, or write `?` for an optional one")
    if low > high:
        raise fail("the least number of repetitions is above the greatest", branch, f"write {{{high},{low}}}")
    return low, high


def _count(branch: Branch, word: str) -> int:
    if not word.isdecimal():
        raise fail("a number of repetitions is a whole number", branch)
    if len(word) > 6 or int(word) > HIGHEST:
        raise fail("too many repetitions", branch, f"at most {HIGHEST}; write {{m,}} for no limit", code="query_size")
    return int(word)
