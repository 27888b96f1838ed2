"""Rewrite predicates: a part that depends on a single text attribute becomes a derived column.

``lower(a.name) = 'x'`` and ``a.name LIKE 'x%'`` depend on one attribute alone. The native engine works on codes of
texts, not on texts. So such a part is computed once for each distinct text of a batch, and replaced in the predicate
by a new attribute of the same event.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from acep.automaton.graph import OF_REGISTER
from acep.functions.lookup import find_scalar
from acep.pattern import expressions as ex
from acep.pattern.evaluation import Compiled, compile_expression
from acep.pattern.scalars.casts import CASTS
from acep.pattern.spelling import expression_text
from acep.pattern.walk import children, leaves_of, with_children
from acep.plan.kinds import resolve
from acep.plan.schema import Kind, Schema

__all__ = ["Derived", "derive"]


@dataclass(frozen=True)
class Derived:
    """A column ``name`` of ``kind``, computed from column ``source`` by ``compiled`` (a function of one value)."""

    name: str
    source: str
    kind: Kind
    compiled: Compiled

    def values_of(self, values: Sequence[ex.Value]) -> list[ex.Value]:
        """Return the value of the column for each of some values of its source."""
        results = _values_of_texts(self.compiled.expr, values)
        return [self.compiled.run([value]) for value in values] if results is None else results


def _values_of_texts(expr: ex.Expr, values: Sequence[ex.Value]) -> list[ex.Value] | None:
    """Return the values of an expression over one attribute, computed for all texts at once; ``None`` if it is another
    one than LIKE or functions of one text."""
    match expr:
        case ex.Attribute():
            return list(values)
        case ex.Like(operand=operand, pattern=pattern, negated=negated):
            from acep.functions.like_patterns import compile_like  # few queries have LIKE

            texts = _values_of_texts(operand, values)
            if texts is None:
                return None
            matches = compile_like(pattern)
            return [matches(text) is not negated if isinstance(text, str) else None for text in texts]
        case ex.Call(name=name, args=(operand, *parameters)) if (entry := find_scalar(name)) is not None:
            constants = [part.value for part in parameters if isinstance(part, ex.Literal)]
            operands = _values_of_texts(operand, values) if len(constants) == len(parameters) else None
            if operands is not None and entry.of_texts is not None:
                results = iter(entry.of_texts([text for text in operands if isinstance(text, str)], *constants))
                return [next(results) if isinstance(text, str) else None for text in operands]
            change = entry.of_values
            if operands is not None and (change is str.lower or change is str.upper):
                return [change(text) if isinstance(text, str) else None for text in operands]
    return None


def derive(
    expressions: Sequence[ex.Expr], schema: Schema, tick_ns: Fraction | None
) -> tuple[tuple[ex.Expr, ...], dict[str, Derived]]:
    """Replace parts that depend on one text by derived columns; return the expressions and the columns by name.

    >>> like = ex.Like(ex.Attribute("a", 2, "name"), "x%")
    >>> (rewritten,), columns = derive([like], Schema((("name", Kind.STRING),)), None)
    >>> print(expression_text(rewritten))
    a[2]."(event.name LIKE 'x%')"
    >>> [(d.name, d.source, d.kind.value, d.compiled.run(["xy"])) for d in columns.values()]
    [("(event.name LIKE 'x%')", 'name', 'bool', True)]
    """
    derived: dict[str, Derived] = {}
    rewritten = tuple(_rewrite(e, schema, tick_ns, derived) for e in expressions)
    return rewritten, derived


def _rewrite(expr: ex.Expr, schema: Schema, tick_ns: Fraction | None, derived: dict[str, Derived]) -> ex.Expr:
    if not _needs_python(expr):
        return expr
    leaves = [replace(leaf, span=None) for leaf in leaves_of(expr)]
    leaf = leaves[0] if leaves else None
    of_event = isinstance(leaf, ex.Attribute) and not leaf.name.startswith(OF_REGISTER)
    if isinstance(leaf, ex.Attribute) and of_event and leaves == [leaf] * len(leaves) and not _is_logic(expr):
        kind = resolve(expr, schema).kind
        if kind in ("bool", "int", "float", "string"):
            alone = _as_event_expression(expr)
            name = f"({expression_text(alone)})"
            while schema.kind(name) is not None:
                name = f"({name})"
            derived[name] = Derived(name, leaf.name, Kind(kind), compile_expression(alone, tick_ns))
            return replace(leaf, name=name)
    return with_children(expr, [_rewrite(c, schema, tick_ns, derived) for c in children(expr)])


def _is_logic(expr: ex.Expr) -> bool:
    return (isinstance(expr, ex.Binary) and expr.op in ("and", "or")) or (
        isinstance(expr, ex.Unary) and expr.op == "not"
    )


def _needs_python(expr: ex.Expr) -> bool:
    """Return whether a part of the expression is an operation for which the native core has none."""
    is_needed = isinstance(expr, ex.Like) or (isinstance(expr, ex.Call) and _runs_in_python(expr.name))
    return is_needed or any(map(_needs_python, children(expr)))


def _runs_in_python(name: str) -> bool:
    entry = find_scalar(name)
    return name in CASTS or (entry is not None and entry.is_in_queries and not entry.operations)


def _as_event_expression(expr: ex.Expr) -> ex.Expr:
    if isinstance(expr, ex.Attribute):
        return ex.Attribute("event", None, expr.name)
    return with_children(expr, [_as_event_expression(c) for c in children(expr)])
