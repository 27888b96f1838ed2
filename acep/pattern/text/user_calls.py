"""Put functions of the user's own into a grammar's tree, where the text calls them by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from acep.errors import QueryError, slip
from acep.pattern import expressions as ex
from acep.pattern.text.lalr_parser import Tree
from acep.pattern.text.syntax import Branch, fail, quote, tokens
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


def fill_functions(tree: Branch, functions: object, names_of_language: Callable[[], Sequence[str]]) -> None:
    """Give each call of one of the user's own functions in a tree the function. ``names_of_language``
    gives the functions of the language.

    Raises :class:`QueryError` unless ``functions`` is a list of functions with names of their own.
    """
    hint = "a list of functions made by @acep.function(...)"
    if isinstance(functions, str) or not isinstance(functions, Sequence):
        raise QueryError(f"functions={functions!r} is no list of functions", hint=hint)
    by_name: dict[str, Function] = {}
    language_names = names_of_language() if functions else ()
    for function in functions:
        if not isinstance(function, Function):
            raise QueryError(f"functions: {function!r} is no function of queries", hint=hint)
        if function.name.lower() in language_names:
            raise QueryError(f"functions: `{function.name}` is a function of the language", hint="give it another name")
        if by_name.setdefault(function.name, function) is not function:
            raise QueryError(f"functions: two are called `{function.name}`", hint="give one of them another name")
    stack = [tree] if by_name else []
    while stack:
        parent = stack.pop()
        for index, branch in enumerate(parent.children):
            if isinstance(branch, Tree):
                stack.append(branch)
                if branch.data != "call":
                    continue
                name = tokens(branch)[0]
                if (user_function := by_name.get(str(name))) is not None:
                    parent.children[index] = OwnCall(branch, user_function)
                elif name.lower() not in language_names and (near := slip(name[:60], [*by_name])):
                    raise fail(f"unknown function {quote(name)}", name, near, code="query_name")


def check_own(call: ex.Call) -> None:
    """Raise :class:`QueryError` (without the text) unless a call of the user's own function is of one event."""
    for part in (inner for arg in call.args for inner, _ in levels(arg, children)):
        if isinstance(part, ex.Call) and part.user_function is not None:
            raise ex.error_at(f"`{part.name}` is called inside `{call.name}`", part, "write one function for both")
    events = {(leaf.var, leaf.index) if isinstance(leaf, ex.Attribute) else None for leaf in leaves_of(call)}
    if len(events) != 1 or None in events:
        hint = "it is computed by column before matching; compare its values of two events"
        raise ex.error_at(f"`{call.name}` takes attributes of one event", call, hint)
