"""Traverse patterns and expressions, and list their parts and variables in the order of the text."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from collections.abc import Sequence as Several
from dataclasses import replace
from typing import TypeVar

from acep.pattern import expressions as ex
from acep.pattern.tree import Choice, Component, EventSet, Negation, Node, Repeat, Sequence, StateGraph

__all__ = [
    "attributes",
    "binds",
    "children",
    "components",
    "group_variables",
    "indexes",
    "kleene_variables",
    "leaves_of",
    "levels",
    "max_bound_counts",
    "means_each",
    "min_bound_counts",
    "negated_variables",
    "nodes",
    "parts",
    "positions",
    "repeated_variables",
    "steps_back",
    "variables",
    "variables_in",
    "with_children",
    "without_places",
]

Part = TypeVar("Part")


def levels(root: Part, direct: Callable[[Part], tuple[Part, ...]]) -> Iterator[tuple[Part, int]]:
    """Yield a pattern or an expression and all parts below it, in the order of the text, each with its depth from 1.

    ``direct`` returns the direct parts: it is :func:`parts` for patterns, :func:`children` for expressions.
    """
    stack = [(root, 1)]
    while stack:
        item, depth = stack.pop()
        yield item, depth
        stack.extend((part, depth + 1) for part in reversed(direct(item)))


# ---- patterns


def parts(node: Node) -> tuple[Node, ...]:
    """Return the direct parts of a node, in order."""
    match node:
        case Repeat(item=item):
            return (item,)
        case Sequence(items=items) | Choice(items=items) | EventSet(items=items):
            return items
        case _:
            return ()


def nodes(node: Node) -> Iterator[Node]:
    """Iterate over the node and all nodes below it, in the order of the text."""
    return (item for item, _ in levels(node, parts))


def binds(node: Node) -> bool:
    """Return whether a pattern, or a part of one, has a component that is not negated."""
    return any(isinstance(n, Component) for n in nodes(node))


def components(node: Node) -> tuple[Component | Negation, ...]:
    """Return the components and negations below a node, in the order of the text."""
    return tuple(n for n in nodes(node) if isinstance(n, (Component, Negation)))


def variables(node: Node) -> tuple[str, ...]:
    """Return the variables below a node, including negated ones, each once, in the order of the text."""
    if isinstance(node, StateGraph):
        return node.variables
    return tuple(dict.fromkeys(c.var for c in components(node)))


def negated_variables(node: Node) -> frozenset[str]:
    """Return the variables of negations."""
    return frozenset(c.var for c in components(node) if isinstance(c, Negation))


def kleene_variables(node: Node) -> frozenset[str]:
    """Return the variables of components whose own repetition may bind them more than once."""
    return frozenset(var for var, max_events in max_bound_counts(node).items() if max_events is None or max_events > 1)


def max_bound_counts(node: Node) -> dict[str, int | None]:
    """Return the most events that each variable binds in one iteration of the groups around it; ``None``: no limit."""
    bounds: dict[str, int | None] = {}
    for n in nodes(node):
        if isinstance(n, Component):
            bounds.setdefault(n.var, 1)
        elif isinstance(n, Repeat) and isinstance(n.item, Component):
            bound = bounds.get(n.item.var, 1)
            bounds[n.item.var] = None if bound is None or n.high is None else max(bound, n.high)
    return bounds


def min_bound_counts(node: Node) -> dict[str, int]:
    """Return the least number of events that each variable binds if nothing is missing, without negated variables.

    >>> from acep.pattern.text.sase import parse
    >>> min_bound_counts(parse("PATTERN SEQ(A{2,} a[], (B b, C? c){2}, (D d | E e), ~F f) WITHIN 9").pattern)
    {'a': 2, 'b': 2, 'c': 0, 'd': 0, 'e': 0}
    """
    match node:
        case Component(var=var):
            return {var: 1}
        case Repeat(item=item, low=low):
            return {var: low * number for var, number in min_bound_counts(item).items()}
        case Choice(items=items):
            alternatives = [min_bound_counts(item) for item in items]
            return {
                var: min(alternative.get(var, 0) for alternative in alternatives)
                for alternative in alternatives
                for var in alternative
            }
    sums: dict[str, int] = {}
    for part in parts(node):
        for var, number in min_bound_counts(part).items():
            sums[var] = sums.get(var, 0) + number
    return sums


def group_variables(node: Node) -> frozenset[str]:
    """Return the variables, including negated ones, inside a group that may occur more than once."""
    grouped: set[str] = set()
    for n in nodes(node):
        if isinstance(n, Repeat) and not isinstance(n.item, Component) and (n.high is None or n.high > 1):
            grouped.update(variables(n.item))
    return frozenset(grouped)


def repeated_variables(node: Node) -> frozenset[str]:
    """Return the variables that may bind more than one event in a match.

    >>> from acep.pattern.tree import Component
    >>> a, b = Component("a", ("A",)), Component("b", ("B",))
    >>> sorted(repeated_variables(Sequence((a, Choice((b, b)), a))))
    ['a']
    """
    return frozenset(name for name, count in _counts_up_to_two(node).items() if count > 1)


def _counts_up_to_two(node: Node) -> dict[str, int]:
    """Return for each variable the most events that it binds in a match: 1, or 2 for more."""
    if isinstance(node, StateGraph):
        return dict.fromkeys(node.variables, 2)
    if isinstance(node, Component):
        return {node.var: 1}
    counts: dict[str, int] = {}
    for part in parts(node):
        for name, count in _counts_up_to_two(part).items():
            before = counts.get(name, 0)
            counts[name] = max(before, count) if isinstance(node, Choice) else min(before + count, 2)
    return dict.fromkeys(counts, 2) if isinstance(node, Repeat) and node.high != 1 else counts


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


# ---- expressions


def children(expr: ex.Expr) -> tuple[ex.Expr, ...]:
    """Return the direct parts of an expression, in the order written."""
    match expr:
        case ex.Unary(operand=x) | ex.IsNull(operand=x) | ex.Like(operand=x):
            return (x,)
        case ex.Binary(left=left, right=right):
            return (left, right)
        case ex.Call(args=args):
            return args
        case ex.In(operand=x, values=values):
            return (x, *values)
        case ex.Between(operand=x, low=low, high=high):
            return (x, low, high)
        case _:
            return ()


def with_children(expr: ex.Expr, parts: Several[ex.Expr]) -> ex.Expr:
    """Return an expression with other direct parts, as many as :func:`children` returns."""
    match expr:
        case ex.Unary() | ex.IsNull() | ex.Like():
            return replace(expr, operand=parts[0])
        case ex.Binary():
            return replace(expr, left=parts[0], right=parts[1])
        case ex.Call():
            return replace(expr, args=tuple(parts))
        case ex.In():
            return replace(expr, operand=parts[0], values=tuple(parts[1:]))
        case ex.Between():
            return replace(expr, operand=parts[0], low=parts[1], high=parts[2])
    return expr


def leaves_of(expr: ex.Expr) -> tuple[ex.Leaf, ...]:
    """Return the references to events in an expression, each once, in the order written."""
    items = (item for item, _ in levels(expr, children))
    return tuple(dict.fromkeys(item for item in items if isinstance(item, ex.Attribute | ex.Length | ex.Aggregate)))


def variables_in(expr: ex.Expr) -> tuple[str, ...]:
    """Return the variables in an expression, each once, in the order of the text."""
    return tuple(dict.fromkeys(leaf.var for leaf in leaves_of(expr)))


def attributes(expr: ex.Expr) -> tuple[str, ...]:
    """Return the attributes in an expression, each once, in the order of the text."""
    names = (leaf.name for leaf in leaves_of(expr) if not isinstance(leaf, ex.Length))
    return tuple(dict.fromkeys(name for name in names if name is not None))


def steps_back(index: ex.Index) -> int:
    """Return n for the index of ``a[i-n]``, else 0.

    >>> steps_back("i-2"), steps_back("i"), steps_back(2), steps_back("last")
    (2, 0, 0, 0)
    """
    return int(index[2:]) if isinstance(index, str) and index.startswith("i-") else 0


def means_each(leaf: ex.Leaf) -> bool:
    """Return whether a reference means each event of a repetition in turn, or those before it, not the repetition as a
    whole or an event by its number.

    >>> means_each(ex.Attribute("a", "i-1", "x")), means_each(ex.Attribute("a", "last", "x"))
    (True, False)
    """
    if isinstance(leaf, ex.Attribute):
        return leaf.index in (None, "i") or steps_back(leaf.index) > 0
    return isinstance(leaf, ex.Aggregate) and leaf.scope == "before"


def indexes(leaves: Several[ex.Leaf], kleene: Collection[str]) -> tuple[dict[str, int], dict[str, int]]:
    """Return two dicts about the events of a complete binding that a condition refers to, by variable.

    The first has the Kleene variables of which it means each event, with the index (from 0) of the first such event.
    The second has the variables of which it means events by number, with the greatest number.

    >>> each, numbered = ex.Attribute("a", "i-1", "x"), ex.Attribute("b", 3, "x")
    >>> indexes([each, numbered], {"a", "b"})
    ({'a': 1}, {'b': 3})
    """
    first: dict[str, int] = {}
    greatest: dict[str, int] = {}
    for leaf in leaves:
        if leaf.var in kleene and means_each(leaf):
            earlier = steps_back(leaf.index) if isinstance(leaf, ex.Attribute) else 1
            first[leaf.var] = max(first.get(leaf.var, 0), earlier)
        elif isinstance(leaf, ex.Attribute) and isinstance(leaf.index, int):
            greatest[leaf.var] = max(greatest.get(leaf.var, 0), leaf.index)
    return {var: max(low, greatest.get(var, 0)) for var, low in first.items()}, greatest


def without_places(expr: ex.Expr) -> ex.Expr:
    """Return an expression without its places in the text."""
    return replace(with_children(expr, [without_places(part) for part in children(expr)]), span=None)
