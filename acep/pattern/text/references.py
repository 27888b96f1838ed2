"""Convert the grammar's tree to references: attributes of events, and aggregates over events."""

from __future__ import annotations

from dataclasses import dataclass

from acep.functions.aggregates import AGGREGATES
from acep.pattern import expressions as ex
from acep.pattern.text.syntax import Branch, branches, fail, name, quote, span, tokens

__all__ = ["aggregate", "path", "previous", "scalar"]


MOST_BACK = 100
"""The greatest n of ``a[i-n]``; a partial match remembers so many values."""


@dataclass(frozen=True)
class Reference:
    """A reference such as ``a``, ``a[]``, ``a[..i-1]`` or ``a[1].x``, of an attribute or inside an aggregate."""

    var: str
    index: ex.Index
    scope: str | None  # "before", "all", or None for an index or nothing
    name: str | None
    span: ex.Span


def _reference(branch: Branch) -> Reference:
    var = name(branches(branch, "name")[0])
    index: ex.Index = None
    scope: str | None = None
    for part in branches(branch, "index"):
        index, scope = _index(part, var)
    attribute = None
    for part in branches(branch, "attribute"):
        attribute = path(branches(part)[0])
    return Reference(var, index, scope, attribute, span(branch))


def path(branch: Branch) -> str:
    """Return the name of an attribute, of a field such as ``dev.id``, or of an element of a list: ``tags[1]``."""
    return ".".join(map(_step, branches(branch)))


def _step(branch: Branch) -> str:
    label, *elements = branches(branch)
    return name(label) + "".join(f"[{_number(element)}]" for element in elements)


def _number(element: Branch) -> int:
    """Return the number of an element of a list."""
    (number,) = tokens(element)
    if number.isdecimal() and int(number[:10]) >= 10**9:
        raise fail("the number of an element of a list is less than 1,000,000,000", element)
    if not number.isdecimal() or int(number[:10]) < 1:
        raise fail("the first element of a list is number 1", element, "a whole number, as in a.tags[1]")
    return int(number)


def _index(branch: Branch, var: str) -> tuple[ex.Index, str | None]:
    """Return the index in brackets, and the scope of an aggregate."""
    ranged = bool(tokens(branch))
    places = branches(branch)
    if not places:
        if ranged:
            raise fail("`a[..]` needs an end", branch, f"write {var}[..i-1] or {var}[]", code="query_syntax")
        return None, "all"
    words = [str(t) for t in tokens(places[0])]
    types = [t.type for t in tokens(places[0])]
    match words:
        case ["i"] if not ranged:
            return "i", None
        case ["i", "-", "1"] if ranged:
            return None, "before"
        case ["i", "-", number] if number.isdecimal() and not ranged and 1 <= int(number[:9]) <= MOST_BACK:
            return f"i-{int(number)}", None
        case [owner, length] if length.upper() == "LEN" and types == ["NAME", "NAME"]:
            if owner != var:
                raise fail(
                    f"{quote(f'{var}[{owner}.LEN]')}: the index speaks of another variable",
                    places[0],
                    f"write {var}[{var}.LEN]",
                )
            return (None, "all") if ranged else ("last", None)
        case [number] if types == ["NUMBER"] and number.isdecimal() and not ranged and len(number) < 19:
            if int(number) < 1:
                raise fail("the first event is number 1", places[0], f"write {var}[1]")
            return int(number), None
        case ["-", "1"]:
            hint = f"write {var}[{var}.LEN] for the last event, {var}[i-1] for the one before {var}[i]"
        case ["i", _, _]:
            hint = f"write {var}[i] or {var}[i-n], at most {MOST_BACK} events back; a range is ..i-1"
        case [word] if word.upper() == "LEN":
            hint = f"write {var}[{var}.LEN]"
        case _:
            hint = f"an index is a number, i, i-1 or {var}.LEN; a range is ..i-1"
    raise fail("this is not an index", places[0], hint, code="query_syntax")


def scalar(branch: Branch) -> ex.Expr:
    """Return the expression of a reference that is used as a value."""
    ref = _reference(branch)
    if ref.scope is not None:
        reference = f"{ref.var}[]" if ref.scope == "all" else f"{ref.var}[..i-1]"
        hint = f"use it in an aggregate, such as avg({reference}.{ref.name or 'x'})"
        raise fail(f"{quote(reference)} stands for many events", branch, hint)
    if ref.name is None:
        hint = f"write an attribute of it, {ref.var}.x; or, if it is one, its variable before it, a.{ref.var}"
        if ref.index is not None:
            hint = "write an attribute behind it, as in a[1].x"
        raise fail(f"{quote(ref.var)} is not a value", branch, hint, code="query_type")
    if ref.index is None and ref.name == "LEN" and _plain(branch):
        return ex.Length(ref.var, ref.span)
    return ex.Attribute(ref.var, ref.index, ref.name, ref.span)


def _plain(branch: Branch) -> bool:
    """Return whether the attribute is written without quotes: ``a."LEN"`` is an attribute."""
    (step, *_) = branches(branches(branches(branch, "attribute")[0])[0])
    return tokens(branches(step)[0])[0].type == "NAME"


def previous(branch: Branch, args: list[Branch]) -> ex.Expr:
    """Return ``a[i-1].x`` for ``prev(a.x)`` (the 2012 paper, section 3), and ``a[i-n].x`` for ``prev(a.x, n)``."""
    ref = _reference(args[0]) if args and args[0].data == "reference" else None
    if ref is None or ref.name is None or ref.scope is not None or ref.index not in (None, "i") or len(args) > 2:
        raise fail(
            "`prev` takes one attribute", branch, "prev(a.x), the same as a[i-1].x, or prev(a.x, 2)", code="query_type"
        )
    if len(args) == 1:
        return ex.Attribute(ref.var, "i-1", ref.name, span(branch))
    steps = str(tokens(args[1])[0]) if args[1].data == "number" else ""
    if not steps.isdecimal() or not 1 <= int(steps[:9]) <= MOST_BACK:
        raise fail(
            "`prev` goes back by a number of events",
            args[1],
            f"1 to {MOST_BACK}, as in prev(a.x, 2)",
            code="query_type",
        )
    return ex.Attribute(ref.var, f"i-{int(steps)}", ref.name, span(branch))


def aggregate(branch: Branch, function: str, args: list[Branch]) -> ex.Expr:
    """Return an aggregate: ``avg(a[].x)`` and ``avg(a.x)`` use all events, ``avg(a[..i-1].x)`` the earlier ones."""
    if len(args) != 1 or args[0].data != "reference":
        usage = "count(DISTINCT a[].x)" if function == ex.COUNT_DISTINCT else f"{function}(a[].x)"
        hint = usage if AGGREGATES[function].where == "matches" else f"{usage} or {function}(a[..i-1].x)"
        raise fail(f"`{function}` goes over the events of one variable", branch, hint)
    ref = _reference(args[0])
    if ref.index is not None:
        hint = f"write {ref.var}[..i-1] for the events before it, {ref.var}[] for all"
        raise fail(f"`{function}` goes over many events, not one", args[0], hint)
    if ref.name is None and function != "count":
        hint = f"count(DISTINCT {ref.var}[].x)" if function == ex.COUNT_DISTINCT else f"{function}({ref.var}[].x)"
        raise fail(f"`{function}` needs an attribute", args[0], hint, code="query_type")
    scope: ex.Scope = "before" if ref.scope == "before" else "all"
    composition = AGGREGATES[function].expression or function
    place = span(branch)
    return ex.compose(composition, lambda name: ex.Aggregate(name, ref.var, scope, ref.name, place), place)
