"""From a query and the columns of a stream to a plan: all that an engine needs, as plain data."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from acep.automaton.arcs import Arcs, compose
from acep.automaton.registers import Program, assemble
from acep.automaton.thompson import Thompson, build
from acep.errors import AcepError, QueryError
from acep.pattern.closure import close_equalities, partition_attributes
from acep.pattern.evaluation import Compiled, compile_expression, leaves_of
from acep.pattern.expressions import Attribute, Binary, Expr, Length
from acep.pattern.printing import canonical
from acep.pattern.tree import Query, Strategy
from acep.pattern.walk import variables
from acep.plan.kinds import column, resolve
from acep.plan.schema import Kind, Schema

__all__ = ["Plan", "Window", "compile_query"]


@dataclass(frozen=True)
class Window:
    """The longest a match may be: ``last - first <= span``, in ticks or (``counted``) in positions."""

    span: int | None
    counted: bool


@dataclass(frozen=True)
class Plan:
    """A query compiled for a stream.

    ``keys``: partition attributes (columns). ``columns``: attribute columns that are read, besides the time
    and type columns. ``row``: the columns of the tuples that the engine evaluates predicates on; the
    first ``kept`` of them stay with a bound event (for negations, HAVING and RETURN). ``predicates`` are checked
    on arcs; ``negated[n]`` with the events that may break negation n. ``sources`` are the plans whose matches
    are this plan's stream.
    """

    query: Query
    schema: Schema
    keys: tuple[str, ...]
    columns: tuple[str, ...]
    row: tuple[str, ...]
    variables: tuple[str, ...]
    kleene: frozenset[str]
    window: Window
    automaton: Thompson
    arcs: Arcs
    program: Program
    predicates: tuple[Compiled, ...]
    negated: tuple[tuple[Compiled, ...], ...]
    having: Compiled | None
    returns: tuple[tuple[str, Compiled], ...]
    return_kinds: tuple[Kind, ...]
    sources: tuple[tuple[Plan, str], ...]

    @property
    def strict(self) -> bool:
        """Whether positions are those of the whole stream."""
        return self.query.strategy is Strategy.STRICT_CONTIGUITY or (
            self.query.strategy is Strategy.PARTITION_CONTIGUITY and not self.keys
        )

    @cached_property
    def fingerprint(self) -> str:
        """The same for two plans that understand each other's state."""
        import hashlib  # loads OpenSSL, for snapshots alone

        schema = self.schema
        text = "\n".join(
            (
                canonical(self.query),
                repr(schema.tick_ns),
                repr([(n, schema.kind(n)) for n in (*self.row, *self.keys)]),
                schema.ts,
                str(schema.type),
            )
        )
        return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:32]


def compile_query(query: Query, schema: Schema) -> Plan:
    """Compile a query for a stream.

    Raises :class:`QueryError` where the query names columns that are not there, compares what cannot be
    compared, or needs to know how long a tick is.
    """
    try:
        return _compile(query, schema)
    except AcepError as error:
        raise error.located(query.text) from None


def _compile(query: Query, schema: Schema) -> Plan:
    base = schema
    sources = tuple((compile_query(s.query, base), s.type) for s in query.sources)
    if sources:
        schema = _derived(sources, base)
    automaton = build(query)
    _check_types(query, schema, automaton)
    if not query.letters:
        _check_repetitions(automaton)
    keys = tuple(column(k, Attribute("", None, k), schema)[0] for k in partition_attributes(query))
    negative = {n.var for n in automaton.negations}
    positive: list[Expr] = []
    against: list[Expr] = []
    for conjunct in close_equalities(query):
        resolved, _ = resolve(conjunct, schema, condition=True)
        if _implied_by_partition(resolved, keys):
            continue
        mentioned = {leaf.var for leaf in leaves_of(resolved)}
        (against if mentioned & negative else positive).append(resolved)
    arcs = compose(automaton)
    program = assemble(automaton, arcs, tuple(positive))
    having = (
        compile_expression(resolve(query.having, schema, condition=True)[0], schema.tick_ns) if query.having else None
    )
    named = [(name, *resolve(expr, schema)) for name, expr in query.returns]
    returns = tuple((name, compile_expression(expr, schema.tick_ns)) for name, expr, _ in named)
    predicates = tuple(compile_expression(p, schema.tick_ns) for p in positive)
    negated = tuple(
        tuple(compile_expression(p, schema.tick_ns) for p in against if n.var in {leaf.var for leaf in leaves_of(p)})
        for n in automaton.negations
    )
    everything = [
        *predicates,
        *(c for n in negated for c in n),
        *([having] if having else []),
        *(c for _, c in returns),
    ]
    leaves = [leaf for c in everything for leaf in c.leaves if not isinstance(leaf, Length)]
    row = tuple(sorted({leaf.name for leaf in leaves if leaf.name is not None}))
    own = {schema.ts, schema.type}
    columns = tuple(sorted({*row, *keys} - own)) if not sources else ()
    if sources:
        columns = tuple(sorted({c for p, _ in sources for c in p.columns}))
    kleene = frozenset(letter.var for letter in automaton.letters if letter.kleene is not None)
    return Plan(
        query=query,
        schema=schema,
        keys=keys,
        columns=columns,
        row=row,
        variables=tuple(v for v in variables(query.pattern) if v not in negative),
        kleene=kleene,
        window=_window(query, schema),
        automaton=automaton,
        arcs=arcs,
        program=program,
        predicates=predicates,
        negated=negated,
        having=having,
        returns=returns,
        return_kinds=tuple(_column_kind(kind) for _, _, kind in named),
        sources=sources,
    )


def _check_repetitions(automaton: Thompson) -> None:
    """A variable that several alternatives declare is repeated in all of them or in none."""
    if repeated := {x.var for x in automaton.letters if x.kleene is not None}:
        mixed = sorted(repeated & {x.var for x in automaton.letters if x.kleene is None})
        if mixed:
            raise QueryError(
                f"`{mixed[0]}` is repeated in one alternative and single in another",
                hint="give it the same repetition in each, or two names",
            )


def _check_types(query: Query, schema: Schema, automaton: Thompson) -> None:
    if schema.type is not None:
        return
    typed = next((letter.types[0] for letter in automaton.letters if letter.types), None)
    if typed is not None:
        word = re.search(rf"(?<!\w){re.escape(typed)}(?!\w)", query.text)
        at = word.start() if word else 0
        raise QueryError(
            f"the stream has no type column, but the pattern asks for type `{typed}`",
            start=at,
            end=at + len(typed),
            hint="name the column with type=, or use ANY",
        )


def _implied_by_partition(expr: Expr, keys: tuple[str, ...]) -> bool:
    match expr:
        case Binary(op="=", left=Attribute(index=i, name=x), right=Attribute(index=j, name=y)):
            return x == y and x in keys and "i-1" not in (i, j)
    return False


def _window(query: Query, schema: Schema) -> Window:
    within = query.within
    if within is None:
        return Window(None, False)
    if within.unit == "events":
        return Window(int(within.amount) - 1, True)
    if within.unit == "ticks":
        if schema.instants:
            raise _at_within(
                query,
                "the window needs a unit of time, as `ts` is a timestamp",
                "write WITHIN 1 hour, or WITHIN 100 EVENTS",
            )
        return Window(int(within.amount // 1), False)
    if schema.tick_ns is None:
        raise _at_within(
            query,
            "a window in time needs to know how long a tick of the integer `ts` is",
            'name the unit: unit="s" (ns, us, ms, s, min, h, d)',
        )
    return Window(int(within.amount / schema.tick_ns // 1), False)


def _at_within(query: Query, message: str, hint: str) -> QueryError:
    at = query.text.upper().rfind("WITHIN")
    if at < 0:
        return QueryError(message, hint=hint)
    return QueryError(message, start=at, end=len(query.text.rstrip()), hint=hint)


def _column_kind(kind: str) -> Kind:
    if kind == "null":
        return Kind.STRING
    if kind == "duration":
        return Kind.FLOAT
    return Kind(kind)


def _derived(sources: tuple[tuple[Plan, str], ...], base: Schema) -> Schema:
    """The columns of a stream of matches: key, RETURN values, start, end, error, and its own ts and type."""
    time = Kind.TIMESTAMP if base.instants else Kind.INT
    kinds: dict[str, Kind] = {}
    for plan, _ in sources:
        offered = {k: plan.schema.kind(k) or Kind.STRING for k in plan.keys}
        offered |= dict(zip((n for n, _ in plan.returns), plan.return_kinds, strict=True))
        fractional = plan.automaton.costs.scale != 1
        offered |= {"start": time, "end": time, "error": Kind.FLOAT if fractional else Kind.INT}
        for name, kind in offered.items():
            if kinds.setdefault(name, kind) is not kind:
                raise QueryError(
                    f"the inner queries give `{name}` as a {kinds[name].value} and as a {kind.value}",
                    hint="rename it in RETURN",
                )
    kinds |= {"ts": time, "type": Kind.STRING}
    return Schema(
        tuple(kinds.items()), "ts", "type", None, None, Fraction(base.tick_ns) if base.tick_ns else None, base.instants
    )
