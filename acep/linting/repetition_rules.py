"""Find conditions on the event before one of a repetition that say nothing of its first event."""

from __future__ import annotations

from collections.abc import Iterator

from acep.linting.report import Hit
from acep.linting.view import LintView
from acep.pattern import expressions as ex
from acep.pattern.printing import expression_text
from acep.pattern.tree import Component
from acep.pattern.walk import kleene_variables, leaves_of, steps_back, variables_in
from acep.plan.lint.finding import ANOTHER

__all__ = ["first_free"]


def first_free(view: LintView) -> Iterator[Hit]:
    """Find conditions on the event before, as ``PREV`` asks for it, where nothing ties the first event of the
    repetition to an event before it."""
    query = view.plan.query
    order = [part.var for part in view.parts if isinstance(part, Component)]
    kleene, seen = kleene_variables(query.pattern), set[str]()
    for expr in query.where:
        for leaf in leaves_of(expr):
            steps = _steps_back(leaf)
            if not steps or leaf.var in seen or isinstance(leaf, ex.Length) or leaf.name is None:
                continue
            as_in_sql = leaf.span is not None and query.text[leaf.span.start :][:4].lower() == "prev"
            index = order.index(leaf.var)
            if _ties_first(query.where, leaf.var, leaf.name) or (index == 0 and not as_in_sql):
                continue
            seen.add(leaf.var)
            free = f"the first `{leaf.var}` is free" if steps == 1 else f"the first {steps} `{leaf.var}` are free"
            message = f"`{expression_text(expr)}` is asked from event {steps + 1} of `{leaf.var}` on: {free}"
            if index == 0:
                hint = (
                    f"an event before the match is none of the query: make its `{leaf.name}` a column, as "
                    f"docs/howto/from_match_recognize.md shows: {ANOTHER}"
                )
            else:
                earlier = order[index - 1]
                earlier_event = f"{earlier}[{earlier}.LEN]" if earlier in kleene else earlier
                example = f"{_first(expr, leaf)} {earlier_event}.{leaf.name}"
                hint = f"say what holds for the first one too, as in {example}: {ANOTHER}"
            yield Hit("warning" if as_in_sql else "note", message, hint, expr.span)


def _steps_back(leaf: ex.Leaf) -> int:
    """Return how many events of the repetition stand before the first one that a reference is about."""
    if isinstance(leaf, ex.Attribute):
        return steps_back(leaf.index)
    return int(isinstance(leaf, ex.Aggregate) and leaf.scope == "before")


def _ties_first(where: tuple[ex.Expr, ...], var: str, name: str) -> bool:
    """Return whether a condition compares an attribute of the first event of a repetition with something else than
    a constant."""
    for expr in where:
        leaves = [leaf for leaf in leaves_of(expr) if leaf.var == var]
        if any(_steps_back(leaf) for leaf in leaves):
            continue
        indexes = [leaf.index for leaf in leaves if isinstance(leaf, ex.Attribute) and leaf.name == name]
        if 1 in indexes or (len(variables_in(expr)) > 1 and (None in indexes or "i" in indexes)):
            return True
    return False


def _first(expr: ex.Expr, leaf: ex.Leaf) -> str:
    """Return the left side of a condition on the first event, and its comparison."""
    name = "" if isinstance(leaf, ex.Length) else leaf.name
    sign = expr.op if isinstance(expr, ex.Binary) and expr.op in ("<", "<=", ">", ">=", "=", "!=") else "="
    if isinstance(expr, ex.Binary) and leaf in leaves_of(expr.left):
        sign = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}.get(sign, sign)
    return f"{leaf.var}[1].{name} {sign}"
