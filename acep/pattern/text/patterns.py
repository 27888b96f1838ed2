"""Convert the grammar's tree to the pattern: components, groups, choices, sets, negations, repetitions."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from acep.pattern.expressions import Span
from acep.pattern.spelling import is_reserved
from acep.pattern.text.quantifiers import bounds, quantifier_of, repeat, with_quantifier
from acep.pattern.text.syntax import Branch, branches, fail, name, quote, span, tokens
from acep.pattern.tree import Choice, Component, EventSet, Negation, Node, Repeat, Sequence
from acep.pattern.walk import binds

__all__ = ["Places", "flatten", "pattern"]


@dataclass
class Places:
    """The variables of a query while its pattern is built.

    ``mentioned`` are the variables of the query's expressions. ``declared`` collects the place of each declaration, by
    variable, in the order of the text.
    """

    mentioned: Collection[str] = ()
    declared: dict[str, list[Span]] = field(default_factory=dict)

    def declare(self, var: str, where: Span) -> str:
        """Record a declaration, and return the variable."""
        self.declared.setdefault(var, []).append(where)
        return var


def pattern(branch: Branch, places: Places) -> Node:
    """Return the pattern after PATTERN. Raises :class:`QueryError` (without the text)."""
    options = branches(branch)
    for option in options:
        items = branches(option)
        if len(items) > 1 and any(item.data != "set" for item in items):
            raise fail("several components need SEQ", option, "write PATTERN SEQ(A a, B b)", code="query_syntax")
    node = _alternatives(branch, places)
    if not binds(node):
        raise fail("the pattern binds no event", branch, "add a component that is not negated")
    return node


# ---- plain constructors, shared with the letter expressions


def flatten(kind: type[Sequence | Choice], items: list[Node]) -> Node:
    """Return items as one sequence or choice without others of its kind in it, or the item itself if there is one."""
    nodes: list[Node] = []
    for item in items:
        nodes.extend(item.items if isinstance(item, kind) else (item,))
    return nodes[0] if len(nodes) == 1 else kind(tuple(nodes))


# ---- SASE+


def _alternatives(branch: Branch, places: Places) -> Node:
    alternatives: list[Node] = []
    options = branches(branch)
    for option in options:
        node = _sequence(option, places)
        if len(options) > 1 and not binds(node):
            raise fail("an alternative needs a component that is not negated", option)
        alternatives.append(node)
    return flatten(Choice, alternatives)


def _sequence(branch: Branch, places: Places) -> Node:
    return flatten(Sequence, [_item(b, places) for b in branches(branch)])


def _item(branch: Branch, places: Places) -> Node:
    match branch.data:
        case "component":
            (kind,) = branches(branch, "type")
            return _declare_component(branch, _types(kind), kind, places)
        case "group":
            return _group(branch, places)
        case "set":
            return _set(branch, places)
        case "negation":
            return _negation(branch, places)
        case _:
            return _repetition(branch, _sequence(branches(branch)[0], places), places)


def _repetition(branch: Branch, node: Node, places: Places) -> Node:
    """Return a group, nested sequence or set with the quantifier behind it."""
    quantifier = quantifier_of(branch)
    if isinstance(node, Negation) and quantifier is not None:
        raise fail("a negation cannot be repeated", branch, "`~B b` already speaks of each event of type B")
    if not binds(node) and (quantifier is not None or branch.data == "group"):
        raise fail("a group needs a component that is not negated", branch)
    return with_quantifier(node, quantifier, places.mentioned)


def _types(branch: Branch) -> tuple[str, ...]:
    """Return the types of a ``type``: one, or none for ANY."""
    return () if tokens(branch)[0].type == "ANY" else (name(branch),)


def _declare_component(branch: Branch, types: tuple[str, ...], kind: Branch, places: Places) -> Node:
    """Return a component from its types and the variable and quantifiers behind them."""
    quantifier = quantifier_of(branch)
    variables = branches(branch, "variable")
    if not variables:
        return with_quantifier(Component(places.declare(name(kind), span(kind)), types), quantifier)
    variable = variables[0]
    variable_name = branches(variable, "name")[0]
    var = name(variable_name)
    if is_reserved(var) and tokens(variable_name)[0].type == "NAME":
        hint = f"choose another name, or write `{var}` in backquotes"
        raise fail(f"{quote(var)} is a word of the language", variable_name, hint, code="query_name")
    component = Component(places.declare(var, span(variable_name)), types)
    second = quantifier_of(variable)
    if quantifier is None or second is None:
        if quantifier is second and branches(variable, "brackets"):
            hint = f"write + after the type, or {quote(var)} without []"
            raise fail(f"{quote(var + '[]')} is not repeated", branch, hint, code="query_syntax")
        return with_quantifier(component, quantifier or second)
    if tokens(quantifier) != ["+"] or second.data == "sign":
        raise fail("two repetitions of one component", second, "keep one of them")
    low, high = bounds(second)
    # `T+ t[]{3}` means three or more: the plus requires at least one event and allows more.
    return repeat(component, max(1, low), None if second.data == "exactly" else high, ())


def _group(branch: Branch, places: Places) -> Node:
    inner = branches(branch, "alternatives")[0]
    if branches(branch, "variable"):
        return _declare_component(branch, tuple(dict.fromkeys(_union(inner))), inner, places)
    return _repetition(branch, _alternatives(inner, places), places)


def _union(branch: Branch) -> tuple[str, ...]:
    """Return the types of ``(A|B)`` before a variable; none if one of them is ANY."""
    union: list[str] = []
    for option in branches(branch):
        items = branches(option)
        parts = branches(items[0])
        if len(items) == 1 and items[0].data == "component" and len(parts) == 1:
            types = _types(parts[0])
        elif len(items) == 1 and items[0].data == "group" and len(parts) == 1:
            types = _union(parts[0])
        else:
            raise fail("only types can stand in parentheses before a variable", option, "(A|B) x", code="query_syntax")
        if not types:
            return ()
        union.extend(types)
    return tuple(union)


def _set(branch: Branch, places: Places) -> Node:
    members: list[Component | Repeat] = []
    for item in branches(branches(branch, "sequence")[0]):
        node = _member(item, places)
        if isinstance(node, Negation):
            raise fail("a negation cannot stand in a set", item)
        if not isinstance(node, Component) and not (isinstance(node, Repeat) and isinstance(node.item, Component)):
            raise fail("a set holds components only", item, "{A a, B+ b[]}")
        members.append(node)
    event_set: Node = members[0] if len(members) == 1 else EventSet(tuple(members))
    return _repetition(branch, event_set, places)


def _member(branch: Branch, places: Places) -> Node:
    """Return an item of a set; a bare name in the predicates is a variable of any type (2012 paper, section 3)."""
    if branch.data == "component" and not branches(branch, "variable"):
        (kind,) = branches(branch, "type")
        if tokens(kind)[0].type == "NAME" and name(kind) in places.mentioned:
            return _declare_component(branch, (), kind, places)
    return _item(branch, places)


def _negation(branch: Branch, places: Places) -> Node:
    (inner,) = branches(branch)
    node = _item(inner, places)
    match node:
        case Component(var, types):
            return Negation(var, types)
        case Negation():
            raise fail("a negation of a negation", branch, "leave both out")
        case Repeat(item=Component()):
            raise fail("a negation cannot be repeated", branch, "`~B b` already speaks of each event of type B")
        case Choice():
            raise fail("only one component can be negated", branch, "for several types write ~(A|B) x")
        case _:
            raise fail("only one component can be negated", branch, "~B b")
