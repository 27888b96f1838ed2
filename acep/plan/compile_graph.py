"""Compile a hand-written automaton for the columns of a stream: its conditions, and the new values of its registers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from acep.automaton.arcs import Arcs
from acep.automaton.graph import OF_REGISTER, arcs_of, named_apart, program_of, steps_of
from acep.automaton.registers import Program
from acep.errors import QueryError
from acep.pattern import expressions as ex
from acep.pattern.evaluation import Compiled, compile_expression
from acep.pattern.spelling import expression_text
from acep.pattern.tree import GraphRegister, StateGraph
from acep.pattern.walk import attributes
from acep.plan.decimals import DECIMAL, Typed, article, as_float
from acep.plan.kinds import is_whole_ticks, resolve
from acep.plan.schema import Kind, Schema

__all__ = ["CompiledGraph", "KnownParts", "compile_graph", "tick_of"]


DURATION = "duration"  # the kind of a register, and of a value
_Part: TypeAlias = tuple[int, str | None]
MOST_KNOWN = 1_000  # expressions that are kept compiled beyond twice those in use


@dataclass
class KnownParts:
    """The parts of a graph that were compiled before, by the identity of the expression and the register that it sets
    (``None``: a condition). Each is held with its expression, so that the identity stays its own."""

    parts: dict[_Part, tuple[ex.Expr, str, Compiled]] = field(default_factory=dict)

    def keep(self, used: dict[_Part, tuple[ex.Expr, str, Compiled]]) -> None:
        """Forget the parts that are not ``used`` any more, once there are many."""
        if len(self.parts) > 2 * len(used) + MOST_KNOWN:
            self.parts = used


@dataclass(frozen=True)
class CompiledGraph:
    """The parts of a plan that come from a graph. ``schema`` is that of the stream with the registers as columns,
    ``kinds`` those of the registers, and ``row`` has the columns that conditions and transfers read."""

    schema: Schema
    kinds: tuple[Kind, ...]
    row: tuple[str, ...]
    arcs: Arcs
    program: Program
    predicates: tuple[Compiled, ...]
    transfers: tuple[Compiled, ...]


def compile_graph(graph: StateGraph, schema: Schema, known_parts: KnownParts | None = None) -> CompiledGraph:
    """Compile a graph. ``known_parts`` has parts that were compiled for the same registers and columns, and takes up
    new ones. Raises :class:`QueryError` for a missing column, or a value of the wrong kind."""
    kinds = {r.name: _kind(r, schema) for r in graph.registers}
    for name in kinds:
        if schema.kind(OF_REGISTER + name) is not None:
            raise QueryError(f"the stream has a column `{OF_REGISTER}{name}`", hint="rename it")
    schema = replace(
        schema,
        kinds=(*schema.kinds, *((OF_REGISTER + name, kind) for name, kind in kinds.items())),
        durations=(*schema.durations, *(OF_REGISTER + r.name for r in graph.registers if r.kind == DURATION)),
    )
    known_parts = known_parts or KnownParts()
    used: dict[_Part, tuple[ex.Expr, str, Compiled]] = {}
    # By their text, as constants of several kinds are equal in Python.
    predicates: dict[str, tuple[int, Compiled]] = {}
    transfers: dict[str, tuple[int, Compiled]] = {}

    def part(expr: ex.Expr, register: str | None) -> tuple[str, Compiled]:
        key = id(expr), register
        if key not in used:
            if key not in known_parts.parts:
                with _name_in_errors(expr):
                    typed = resolve(named_apart(expr), schema, condition=register is None)
                    resolved = typed.expr if register is None else _convert(typed, kinds[register], register, schema)
                compiled = compile_expression(resolved, schema.tick_ns, expr)
                known_parts.parts[key] = expr, repr(resolved), compiled
            used[key] = known_parts.parts[key]
        return used[key][1:]

    def condition(expr: ex.Expr) -> tuple[int, tuple[ex.Leaf, ...]]:
        text, compiled = part(expr, None)
        number, compiled = predicates.setdefault(text, (len(predicates), compiled))
        return number, compiled.leaves

    def value(name: str, expr: ex.Expr) -> tuple[int, tuple[ex.Leaf, ...]]:
        text, compiled = part(expr, name)
        number, compiled = transfers.setdefault(text, (len(transfers), compiled))
        return number, compiled.leaves

    def tick(moment: ex.Expr) -> int:
        return tick_of(moment, schema)

    steps = steps_of(graph, tick)
    arcs = arcs_of(graph, steps)
    program = program_of(graph, arcs, steps, condition, value)
    known_parts.keep(used)
    expressions = [expression for parts in (predicates, transfers) for _, expression in parts.values()]
    read = {leaf.name for expression in expressions for leaf in expression.leaves if isinstance(leaf, ex.Attribute)}
    return CompiledGraph(
        schema=schema,
        kinds=tuple(kinds.values()),
        row=tuple(sorted(name for name in read if not name.startswith(OF_REGISTER))),
        arcs=arcs,
        program=program,
        predicates=tuple(expression for _, expression in predicates.values()),
        transfers=tuple(expression for _, expression in transfers.values()),
    )


@contextmanager
def _name_in_errors(expr: ex.Expr) -> Iterator[None]:
    """Name the expression in the message of an error."""
    try:
        yield
    except QueryError as error:
        raise QueryError(f"`{expression_text(expr)}`: {error.message}", hint=error.hint, code=error.code) from None


def tick_of(moment: ex.Expr, schema: Schema) -> int:
    """Return the first tick that is not before a time of an arc. Raises :class:`QueryError` for a time of another form
    than those of the stream."""
    if isinstance(moment, ex.Literal) and isinstance(moment.value, int):
        if schema.instants:
            raise QueryError(
                "the times of this stream are timestamps", hint="give since= and until= as such", code="query_type"
            )
        return moment.value
    assert isinstance(moment, ex.Timestamp)
    if schema.tick_ns is None or not schema.instants:
        raise QueryError(
            "the times of this stream are integers", hint="give since= and until= as such", code="query_type"
        )
    return int(-(-moment.ns // schema.tick_ns))


def _kind(register: GraphRegister, schema: Schema) -> Kind:
    if register.kind == DURATION or (register.kind == "timestamp" and not schema.instants):
        return Kind.INT  # in ticks, as the times of this stream are
    return Kind(register.kind)


def _convert(value: Typed, kind: Kind, name: str, schema: Schema) -> ex.Expr:
    """Return the new value of a register, as a float if the register holds one and the value is another number."""
    holds_duration = bool(schema.counts_ticks(OF_REGISTER + name))
    if value.kind == "null" or (value.kind == kind.value and not holds_duration):
        return value.expr
    unknown = any(schema.counts_ticks(column) is None for column in attributes(value.expr))
    if holds_duration and (unknown or (value.kind == DURATION and is_whole_ticks(value.expr, schema))):
        return value.expr
    if kind is Kind.FLOAT and value.kind == DECIMAL:
        return as_float(value)
    if kind is Kind.FLOAT and value.kind == "int":
        if isinstance(value.expr, ex.Literal) and isinstance(value.expr.value, int):
            return ex.Literal(float(value.expr.value))
        return ex.Binary("*", value.expr, ex.Literal(1.0))
    register_kind = DURATION if holds_duration else kind.value
    what = "may be a fraction of a tick" if register_kind == value.kind else f"is {value.named}"
    hint = "declare it by timedelta" if value.kind == DURATION != register_kind else None
    raise ex.error_at(
        f"register `{name}` holds {article(register_kind)} {register_kind}, and its new value {what}",
        value.expr,
        hint,
        code="query_type",
    )
