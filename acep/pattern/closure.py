"""Derive the equalities that follow from others, and the attributes that have one value in all events of a match.

If a query requires ``a.id = b.id`` and ``b.id = c.id`` and b may be missing, ``a.id = c.id`` must still hold
(docs/reference/semantics.md, "Predicates"; the closure of the 2012 paper, section 4.4). The references and constants
that top-level equalities connect are therefore put into classes, and all pairs of a class must be equal.

Only ``[attr]`` declares a partition. The attributes that equalities tie say no more than where an engine need not look.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TypeAlias, TypeGuard

from acep.errors import QueryError
from acep.pattern import expressions as ex
from acep.pattern.tree import Query
from acep.pattern.walk import group_variables, kleene_variables, negated_variables, variables

__all__ = [
    "MOST_PAIRS",
    "Equal",
    "as_equality",
    "close_equalities",
    "equality_classes",
    "refer_to_first_event",
    "tied_attributes",
]

MOST_PAIRS = 20_000
"""The greatest number of derived equalities: a class of n members gives n * (n - 1) / 2."""

Member: TypeAlias = ex.Attribute | ex.Literal | ex.Timestamp | ex.Duration


@dataclass(frozen=True)
class Equal:
    """A class of references and constants that must all be equal, in the order of the text."""

    members: tuple[Member, ...]


def equality_classes(
    query: Query, *, constants: bool = True, among: Collection[str] | None = None
) -> tuple[Equal, ...]:
    """Return the classes that the top-level equalities of a query form, with or without equalities to ``constants``.
    If ``among`` is given, use only the equalities that refer to no other variables.

    ``a[i].x`` is the same member as ``a.x``. So are ``a[1].x`` and ``a[a.LEN].x`` if a binds one event.
    """
    kleene = kleene_variables(query.pattern)
    parent: dict[object, object] = {}
    first: dict[object, Member] = {}

    def root(key: object) -> object:
        while parent[key] != key:
            parent[key] = parent[parent[key]]
            key = parent[key]
        return key

    for conjunct in query.where:
        sides = _sides(conjunct, kleene)
        if sides is None or not (constants or all(isinstance(side, ex.Attribute) for side in sides)):
            continue
        if among is not None and not _names(sides) <= set(among):
            continue
        keys = [_key(side) for side in sides]
        if keys[0] == keys[1]:
            continue  # `a.x = a.x` connects nothing
        for key, side in zip(keys, sides, strict=True):
            parent.setdefault(key, key)
            first.setdefault(key, side)
        parent[root(keys[1])] = root(keys[0])
    groups: dict[object, list[Member]] = {}
    for key, member in first.items():
        groups.setdefault(root(key), []).append(member)
    return tuple(Equal(tuple(members)) for members in groups.values())


def _sides(conjunct: ex.Expr, kleene: Collection[str]) -> tuple[Member, Member] | None:
    """Return the two sides of an equality of references and constants in normal form, or ``None``."""
    equality = as_equality(conjunct)
    if equality is None:
        return None
    left, right = _member(equality.left, kleene), _member(equality.right, kleene)
    if left is None or right is None or not (isinstance(left, ex.Attribute) or isinstance(right, ex.Attribute)):
        return None
    return left, right


def as_equality(conjunct: ex.Expr) -> ex.Binary | None:
    """Return a condition as ``x = y`` if that is what it says, or ``None``. The other spellings are true, false and
    unknown of the same values: ``NOT x != y``, ``x IN (y)``, ``NOT x NOT IN (y)``, and two NOT before any of these.

    >>> from acep.pattern.text.sase import parse
    >>> query = parse("PATTERN SEQ(A a, B b) WHERE NOT a.x != b.x AND a.y != b.y")
    >>> [as_equality(conjunct) is not None for conjunct in query.where]
    [True, False]
    """
    match conjunct:
        case ex.Binary(op="="):
            return conjunct
        case ex.In(operand=left, values=(right,), negated=False):
            return ex.Binary("=", left, right, conjunct.span)
        case ex.Unary(op="not", operand=ex.Binary(op="!=", left=left, right=right)):
            return ex.Binary("=", left, right, conjunct.span)
        case ex.Unary(op="not", operand=ex.In(operand=left, values=(right,), negated=True)):
            return ex.Binary("=", left, right, conjunct.span)
        case ex.Unary(op="not", operand=ex.Unary(op="not", operand=inner)):
            return as_equality(inner)
    return None


def _member(expr: ex.Expr, kleene: Collection[str]) -> Member | None:
    if isinstance(expr, ex.Attribute):
        if expr.index not in (None, "i", 1, "last"):
            return None
        plain = expr.index == "i" or expr.var not in kleene
        return ex.Attribute(expr.var, None if plain else expr.index, expr.name)
    if isinstance(expr, (ex.Literal, ex.Timestamp, ex.Duration)) and expr != ex.Literal(None, expr.span):
        return replace(expr, span=None)
    return None


def _key(member: Member) -> object:
    if isinstance(member, ex.Literal):  # TRUE is not 1
        return ("literal", isinstance(member.value, bool), member.value)
    return member


def close_equalities(query: Query) -> tuple[ex.Expr, ...]:
    """Return the conjuncts of WHERE and the equalities that follow from them, which have no span.

    ``a[i].x = a[1].x`` is derived too for a class that has ``a.x`` of a Kleene variable outside repeated groups, no
    constant, and not only references to one event of ``a``. A negated variable connects no others: its equalities
    yield only further equalities of its own.
    Raises :class:`QueryError` if more than :data:`MOST_PAIRS` would follow.

    >>> from acep.pattern.text.sase import parse
    >>> from acep.pattern.printing import expression_text
    >>> query = parse("PATTERN SEQ(A a, B b, C c) WHERE a.id = b.id AND b.id = c.id")
    >>> [expression_text(e) for e in close_equalities(query)]
    ['a.id = b.id', 'b.id = c.id', 'a.id = c.id']
    """
    kleene = kleene_variables(query.pattern)
    groups = group_variables(query.pattern)
    negated = negated_variables(query.pattern)
    present = {frozenset(map(_key, sides)) for c in query.where if (sides := _sides(c, kleene))}
    implied: list[ex.Expr] = []
    positive = frozenset(variables(query.pattern)) - negated
    classes = [(group, "") for group in equality_classes(query, among=positive)]
    classes += [(group, v) for v in sorted(negated) for group in equality_classes(query, among=positive | {v})]
    for group, of_negated in classes:
        n = len(group.members)
        if len(implied) + n * (n - 1) // 2 > MOST_PAIRS:
            hint = "compare fewer variables; [attribute] ties all, and makes each value a stream of its own"
            raise QueryError("too many equalities follow from each other", hint=hint, code="query_size")
        pairs = list(combinations(group.members, 2))
        if not of_negated and all(isinstance(m, ex.Attribute) for m in group.members):
            members_of_each_event = [m for m in group.members if _is_each(m, kleene - groups) and _ties(group, m.var)]
            pairs += [(m, replace(m, index=1)) for m in members_of_each_event]
        for pair in pairs:
            left, right = pair
            names = _names(pair)
            if not names or (of_negated and of_negated not in names):
                continue
            key = frozenset((_key(left), _key(right)))
            if key in present:
                continue
            present.add(key)
            if isinstance(left, ex.Attribute) and isinstance(right, ex.Attribute) and left.var == right.var:
                left = replace(left, index="i") if right.index == 1 and left.index is None else left
            implied.append(
                ex.Binary("=", left, right) if isinstance(left, ex.Attribute) else ex.Binary("=", right, left)
            )
    return (*query.where, *implied)


def _names(members: Iterable[Member]) -> set[str]:
    return {m.var for m in members if isinstance(m, ex.Attribute)}


def _is_each(member: Member, kleene: Collection[str]) -> TypeGuard[ex.Attribute]:
    """Return whether a reference means each event of a repetition."""
    return isinstance(member, ex.Attribute) and member.index is None and member.var in kleene


def _ties(group: Equal, var: str) -> bool:
    """Return whether a class has more than references to one event of ``var``, so that it ties its events together."""
    return any(not isinstance(m, ex.Attribute) or m.var != var or m.index is not None for m in group.members)


def refer_to_first_event(query: Query, closed: Iterable[ex.Expr]) -> tuple[ex.Expr, ...]:
    """Return closed conjuncts with ``a[1].x`` for ``a.x`` in equalities with other variables, if x is tied for all and
    all ``a[i].x`` are equal to ``a[1].x``. So a partial match need not keep the values of all events of a repetition.

    >>> from acep.pattern.text.sase import parse
    >>> from acep.pattern.printing import expression_text
    >>> query = parse("PATTERN SEQ(A+ a[], B b) WHERE NOT a.x != b.x")
    >>> [expression_text(e) for e in refer_to_first_event(query, close_equalities(query))]
    ['a[1].x = b.x', 'a[i].x = a[1].x']
    """
    kleene, closed = kleene_variables(query.pattern), tuple(closed)
    if not kleene:
        return closed
    tied = tied_attributes(query)
    pairs = [sides for conjunct in closed if (sides := _sides(conjunct, kleene)) is not None]
    equal = {
        (side.var, side.name)
        for pair in pairs
        for side, opposite in (pair, pair[::-1])
        if _is_each(side, kleene) and opposite == replace(side, index=1) and side.name in tied
    }

    def at_first(side: ex.Attribute) -> ex.Attribute:
        is_each_event = side.index in (None, "i") and (side.var, side.name) in equal
        return replace(side, index=1) if is_each_event else side

    def rewrite(conjunct: ex.Expr) -> ex.Expr:
        match as_equality(conjunct):
            case ex.Binary(left=ex.Attribute() as left, right=ex.Attribute() as right) if left.var != right.var:
                sides = at_first(left), at_first(right)
                return conjunct if sides == (left, right) else ex.Binary("=", *sides, conjunct.span)
        return conjunct

    return tuple(map(rewrite, closed))


def tied_attributes(query: Query) -> tuple[str, ...]:
    """Return the attributes that equalities between references tie together for every variable, in the order of their
    first mention: each has one value, not null, in all events of a match that has two or more. An event with another
    value, or none, breaks no negation. Those of ``[attr]`` are left out.

    A pattern with a repeated group has none, because an equality inside the group holds within one iteration. A
    comparison with a constant ties nothing: it selects events.

    >>> from acep.pattern.text.sase import parse
    >>> tied_attributes(parse("PATTERN SEQ(A a, B b) WHERE [k] AND a.id = b.id AND a.x = b.y"))
    ('id',)
    >>> tied_attributes(parse("PATTERN SEQ(A+ a[], B b) WHERE a[i].id = a[i-1].id AND NOT b.id != a[1].id"))
    ('id',)
    """
    negated = negated_variables(query.pattern)
    positive = frozenset(variables(query.pattern)) - negated
    kleene = kleene_variables(query.pattern)
    several = len(positive) > 1 or bool(positive & kleene)
    if group_variables(query.pattern) or not (several or negated):
        return ()
    chained = _chained_attributes(query, kleene)
    classes = _references(query, positive, chained)
    of_negated = {v: _references(query, positive | {v}, chained) for v in negated}
    attributes: dict[str, None] = {}
    all_classes = equality_classes(query, constants=False) if negated else classes
    names = [m.name for group in all_classes for m in group.members if _is_reference(m)]
    names += [name for _, name in chained]
    for name in dict.fromkeys(names):
        tied = not several or any(_holds_all(c, positive, name, chained) for c in classes)
        with_negated = all(any(_holds_all(c, {*positive, v}, name, chained) for c in of_negated[v]) for v in negated)
        if tied and with_negated and name not in query.ties:
            attributes.setdefault(name)
    return tuple(attributes)


def _is_reference(member: Member) -> TypeGuard[ex.Attribute]:
    return isinstance(member, ex.Attribute)


def _chained_attributes(query: Query, kleene: Collection[str]) -> frozenset[tuple[str, str]]:
    """Return the repetitions and attributes for which ``a[i].x = a[i-1].x`` makes the attribute one value."""
    chained = set()
    for conjunct in query.where:
        match as_equality(conjunct):
            case ex.Binary(
                left=ex.Attribute(var=var, index=first, name=name),
                right=ex.Attribute(var=other, index=second, name=other_name),
            ) if var == other and name == other_name and var in kleene:
                if {first, second} in ({"i", "i-1"}, {None, "i-1"}):
                    chained.add((var, name))
    return frozenset(chained)


def _references(query: Query, among: Collection[str], chained: frozenset[tuple[str, str]]) -> tuple[Equal, ...]:
    """Return the classes of references, and one for each repetition that is chained and in none of them."""
    classes = equality_classes(query, constants=False, among=among)
    alone = [Equal((ex.Attribute(var, 1, name),)) for var, name in sorted(chained) if var in among]
    return (*classes, *alone)


def _holds_all(group: Equal, variables: Collection[str], name: str, chained: frozenset[tuple[str, str]]) -> bool:
    """Return whether a class ties attribute ``name`` of all these variables together."""
    members = [m for m in group.members if isinstance(m, ex.Attribute) and m.name == name]
    plain = {m.var for m in members if m.index is None}
    by_chain = {m.var for m in members if m.index == 1 and (m.var, name) in chained}
    if not plain | by_chain >= set(variables):
        return False
    return bool(by_chain) or _ties(group, next(iter(variables)))
