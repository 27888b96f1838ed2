"""Replace calls of the user's own functions by columns, which are computed before matching."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from acep.pattern import expressions as ex
from acep.pattern.evaluation import Compiled, compile_expression
from acep.pattern.spelling import expression_text
from acep.pattern.user_functions import Function
from acep.pattern.walk import attributes, children, leaves_of, with_children
from acep.plan.kinds import RESULT_KINDS, resolve
from acep.plan.schema import Kind, Schema

__all__ = ["Computed", "without_own_calls"]


@dataclass(frozen=True)
class Computed:
    """A column ``name`` of ``kind`` that ``function`` computes from ``args``, expressions of one event of ``kinds``."""

    name: str
    kind: Kind
    function: Function
    args: tuple[Compiled, ...]
    kinds: tuple[Kind, ...]

    @property
    def sources(self) -> tuple[str, ...]:
        """Return the columns that it is computed from."""
        return tuple(dict.fromkeys(name for arg in self.args for name in attributes(arg.expr)))


def without_own_calls(
    expr: ex.Expr, schema: Schema, tick_ns: Fraction | None, computed: dict[str, Computed]
) -> ex.Expr:
    """Return a resolved expression with attributes in place of calls of the user's own functions; add the columns that
    they name to ``computed``."""
    if isinstance(expr, ex.Call) and expr.user_function is not None:
        (leaf, *_) = leaves_of(expr)
        assert isinstance(leaf, ex.Attribute)
        alone = tuple(_as_event_expression(arg) for arg in expr.args)
        name = f"({expression_text(ex.Call(expr.name, alone, user_function=expr.user_function))})"
        kinds = tuple(Kind(resolve(arg, schema).kind) for arg in alone)
        args = tuple(compile_expression(arg, tick_ns) for arg in alone)
        computed.setdefault(
            name, Computed(name, Kind(RESULT_KINDS[expr.user_function.returns]), expr.user_function, args, kinds)
        )
        return ex.Attribute(leaf.var, leaf.index, name, expr.span)
    return with_children(expr, [without_own_calls(part, schema, tick_ns, computed) for part in children(expr)])


def _as_event_expression(expr: ex.Expr) -> ex.Expr:
    if isinstance(expr, ex.Attribute):
        return ex.Attribute("event", None, expr.name)
    return with_children(expr, [_as_event_expression(part) for part in children(expr)])
