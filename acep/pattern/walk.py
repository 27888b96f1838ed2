"""Traverse patterns and expressions, and list their parts and variables in the order of the text."""

from __future__ import annotations

from collections.abc import Iterator

from acep.pattern.evaluation import leaves_of
from acep.pattern.expressions import Expr
from acep.pattern.tree import Choice, Component, EventSet, Negation, Node, Repeat, Sequence

__all__ = [
    "components",
    "group_variables",
    "kleene_variables",
    "mentioned",
    "most_bound",
    "negated_variables",
    "nodes",
    "parts",
    "positions",
    "variables",
]


def parts(node: Node) -> tuple[Node, ...]:
    """Return the direct parts of a node, in order."""
    match node:
        case Repeat(item=item):
            return (item,)
        case Sequence(items=items) | Choice(items=items):
            return items
        case EventSet(items=members):
            return members
        case _:
            return ()


def nodes(node: Node) -> Iterator[Node]:
    """Yield the node and all nodes below it, in the order of the text."""
    stack = [node]
    while stack:
        item = stack.pop()
        yield item
        stack.extend(reversed(parts(item)))


def components(node: Node) -> tuple[Component | Negation, ...]:
    """Return the components and negations below a node, in the order of the text."""
    return tuple(n for n in nodes(node) if isinstance(n, (Component, Negation)))


def variables(node: Node) -> tuple[str, ...]:
    """Return the variables below a node, including negated ones, each once, in the order of the text."""
    return tuple(dict.fromkeys(c.var for c in components(node)))


def negated_variables(node: Node) -> frozenset[str]:
    """Return the variables of negations."""
    return frozenset(c.var for c in components(node) if isinstance(c, Negation))


def kleene_variables(node: Node) -> frozenset[str]:
    """Return the variables of components whose own repetition may bind them more than once."""
    return frozenset(var for var, most in most_bound(node).items() if most is None or most > 1)


def most_bound(node: Node) -> dict[str, int | None]:
    """Return the most events that each variable binds in one iteration of the groups around it; ``None``: no limit."""
    found: dict[str, int | None] = {}
    for n in nodes(node):
        if isinstance(n, Component):
            found.setdefault(n.var, 1)
        elif isinstance(n, Repeat) and isinstance(n.item, Component):
            known = found.get(n.item.var, 1)
            found[n.item.var] = None if known is None or n.high is None else max(known, n.high)
    return found


def group_variables(node: Node) -> frozenset[str]:
    """Return the variables, including negated ones, inside a group that may occur more than once."""
    found: set[str] = set()
    for n in nodes(node):
        if isinstance(n, Repeat) and not isinstance(n.item, Component) and (n.high is None or n.high > 1):
            found.update(variables(n.item))
    return frozenset(found)


def mentioned(expr: Expr) -> tuple[str, ...]:
    """Return the variables in an expression, each once, in the order of the text."""
    return tuple(dict.fromkeys(leaf.var for leaf in leaves_of(expr)))


def positions(node: Node) -> int:
    """Count the components of the pattern with its repetitions written out.

    >>> from acep.pattern.tree import Component
    >>> positions(Repeat(Component("a", ("A",)), 2, 5))
    5
    """
    match node:
        case Component() | Negation():
            return 1
        case Repeat(item=item, low=low, high=high):
            return positions(item) * max(1, low if high is None else high)
        case _:
            return sum(positions(part) for part in parts(node))
