"""Put functions of the user's own into a grammar's tree, where the text calls them by name."""

from __future__ import annotations

from collections.abc import Sequence

from acep.errors import QueryError, slip
from acep.pattern import expressions as ex
from acep.pattern.text.lalr_parser import Tree
from acep.pattern.text.syntax import Branch, fail, quoted, tokens
from acep.pattern.user_functions import Function
from acep.pattern.walk import children, leaves_of, levels

__all__ = ["Functions", "OwnCall", "check_own", "fill_functions"]

Functions = Sequence[Function]


class OwnCall(Tree):
    """A call in a tree, with the ``function`` that it calls."""

    __slots__ = ("function",)

    def __init__(self, branch: Branch, function: Function) -> None:
        super().__init__(branch.data, branch.children)
        self.span, self.outer = branch.span, branch.outer
        self.function = function


def fill_functions(tree: Branch, functions: object, known: Sequence[str]) -> None:
    """Give each call of one of the user's own functions in a tree the function. ``known``: names of the language.

    Raises :class:`QueryError` unless ``functions`` is a list of functions with names of their own.
    """
    hint = "a list of functions made by @acep.function(...)"
    if isinstance(functions, str) or not isinstance(functions, Sequence):
        raise QueryError(f"functions={functions!r} is no list of functions", hint=hint)
    by_name: dict[str, Function] = {}
    for one in functions:
        if not isinstance(one, Function):
            raise QueryError(f"functions: {one!r} is no function of queries", hint=hint)
        if one.name.lower() in known:
            raise QueryError(f"functions: `{one.name}` is a function of the language", hint="give it another name")
        if by_name.setdefault(one.name, one) is not one:
            raise QueryError(f"functions: two are called `{one.name}`", hint="give one of them another name")
    stack = [tree] if by_name else []
    while stack:
        parent = stack.pop()
        for place, branch in enumerate(parent.children):
            if isinstance(branch, Tree):
                stack.append(branch)
                if branch.data != "call":
                    continue
                name = tokens(branch)[0]
                if (own := by_name.get(str(name))) is not None:
                    parent.children[place] = OwnCall(branch, own)
                elif name.lower() not in known and (near := slip(name[:60], [*by_name])):
                    raise fail(f"unknown function {quoted(name)}", name, near, code="query_name")


def check_own(call: ex.Call) -> None:
    """Raise :class:`QueryError` (without the text) unless a call of the user's own function is of one event."""
    for part in (inner for arg in call.args for inner, _ in levels(arg, children)):
        if isinstance(part, ex.Call) and part.own is not None:
            raise ex.error_at(f"`{part.name}` is called inside `{call.name}`", part, "write one function for both")
    of = {(leaf.var, leaf.index) if isinstance(leaf, ex.Attribute) else None for leaf in leaves_of(call)}
    if len(of) != 1 or None in of:
        hint = "it is computed by column before matching; compare its values of two events"
        raise ex.error_at(f"`{call.name}` takes attributes of one event", call, hint)
