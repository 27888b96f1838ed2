"""Compile a query for the columns of a stream to a plan: everything an engine needs, as plain data."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from itertools import chain
from typing import Any

from acep.automaton.arcs import Arcs, compose
from acep.automaton.ending_negations import with_ending_negations
from acep.automaton.graph import thompson_of
from acep.automaton.registers import Program, assemble
from acep.automaton.thompson import Thompson, build
from acep.automaton.versions import VersionPart
from acep.errors import AcepError, QueryError
from acep.pattern import expressions as ex
from acep.pattern.automata import STATE
from acep.pattern.closure import as_equality, close_equalities, refer_to_first_event, tied_attributes
from acep.pattern.evaluation import Compiled, compile_expression
from acep.pattern.negation_equalities import always_bound, repeated_equalities
from acep.pattern.scalars.casts import cast_type
from acep.pattern.state_text import state_text
from acep.pattern.tree import GraphRegister, Output, Query, StateGraph, Strategy
from acep.pattern.walk import attributes, children, leaves_of, levels, steps_back, variables
from acep.plan.compile_graph import KnownParts, compile_graph
from acep.plan.computed import Computed, without_own_calls
from acep.plan.decimals import DECIMAL, Typed
from acep.plan.kinds import column, is_difference_of_ticks, is_whole_ticks, resolve
from acep.plan.schema import Kind, Schema, TimeOf, kinds_text

__all__ = ["Plan", "Window", "assemble_with_endings", "compile_query"]


@dataclass(frozen=True)
class Window:
    """The limit on the length of a match: ``last - first <= span``, in ticks or (``counted``) in positions."""

    span: int | None
    counted: bool

    def covers(self, positions: int, ticks: int) -> bool:
        """Return whether two events of a match may be so many positions and ticks apart."""
        return self.span is None or (positions if self.counted else ticks) <= self.span


@dataclass(frozen=True)
class Plan:
    """A query compiled for a stream.

    ``keys``: partition attributes (columns). ``columns``: attribute columns that are read, besides the time and type
    columns. ``row``: the columns of the tuples on which the engine evaluates expressions. ``return_scales`` are the
    scales of decimals among the values of RETURN. ``return_times`` are the source columns of these decimals and of
    times. ``predicates`` are checked on arcs, ``negated[n]`` on the events that may violate negation n. ``sources``
    are the plans whose matches form the stream of this plan, with the event type of each. ``transfers`` are the new
    values of registers of a hand-written automaton. ``dynamic``: it may change while the stream runs; ``parts`` are
    the versions of a query that may, and ``current`` the states of the last one. ``computed`` are the columns that the
    user's own functions give. ``tied`` are the columns that equalities tie for all variables. ``finer`` is a plan with
    these as further keys, which finds the same matches; ``None`` where others would be found. It has the fingerprint
    of the plan that it ``stands_for``.
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
    return_scales: tuple[int | None, ...]
    return_times: tuple[TimeOf | None, ...]
    sources: tuple[tuple[Plan, str], ...]
    transfers: tuple[Compiled, ...] = ()
    computed: tuple[Computed, ...] = ()
    dynamic: bool = False
    parts: tuple[VersionPart, ...] = ()
    current: tuple[int, ...] = ()
    tied: tuple[str, ...] = ()
    finer: Plan | None = None
    stands_for: Plan | None = None

    @property
    def strict(self) -> bool:
        """Return whether positions count the events of the whole stream."""
        return self.query.strategy is Strategy.STRICT_CONTIGUITY or (
            self.query.strategy is Strategy.PARTITION_CONTIGUITY and not self.keys
        )

    @property
    def return_names(self) -> tuple[str, ...]:
        """Return the names of the values of a match: those of RETURN, or the final state and the registers of a
        hand-written automaton."""
        if (graph := self.query.graph) is not None:
            return (STATE, *(register.name for register in graph.registers))
        return tuple(name for name, _ in self.returns)

    @property
    def chooses(self) -> bool:
        """Return whether this plan or a source outputs a selection of its matches."""
        return self.query.output is not Output.ALL or any(source.chooses for source, _ in self.sources)

    @cached_property
    def is_unambiguous(self) -> bool:
        """Return whether a binding determines its run: no two arcs of a state can bind one event to one variable."""
        if self.query.graph is not None or self.dynamic:
            return False  # runs with one binding differ in their registers, or come along arcs of several versions
        for leaving in self.arcs.arcs:
            seen: dict[str, set[str]] = {}
            for arc in leaving:
                if arc.var in seen and (not arc.types or not seen[arc.var] or seen[arc.var].intersection(arc.types)):
                    return False
                seen.setdefault(arc.var, set()).update(arc.types)
                if not arc.types:
                    seen[arc.var] = set()
        return True

    @property
    def ends_by_values(self) -> bool:
        """Return whether partial matches keep values to tell which events break a negation for good."""
        return any(ending.reads() for endings in self.program.ended for ending in endings)

    @cached_property
    def conditions(self) -> tuple[Compiled, ...]:
        """Return the predicates on arcs, and then those of each negation: by the numbers that checks have."""
        return (*self.predicates, *(condition for conditions in self.negated for condition in conditions))

    @cached_property
    def engines(self) -> dict[str, tuple[str, str]]:
        """Return the engines chosen so far and why, by output (:func:`acep.plan.choice.choose` fills this in)."""
        return {}

    @cached_property
    def lowerings(self) -> list[Any]:
        """Return the tables of the plan as the first of a stream, once it has been lowered
        (:meth:`acep.plan.lower.stream_tables.StreamTables.add` fills this in)."""
        return []

    @cached_property
    def fingerprint(self) -> str:
        """Return a hash that is equal for plans that can read each other's snapshots."""
        import hashlib  # imported here: it loads OpenSSL, which only snapshots need

        if self.stands_for is not None:
            return self.stands_for.fingerprint
        schema = self.schema
        text = "\n".join(
            (
                state_text(self.query),
                repr(schema.tick_ns),
                kinds_text((n, schema.kind(n)) for n in (*self.row, *self.keys)),
                schema.ts,
                str(schema.type),
                *(f"{n} {schema.scale(n)}" for n in sorted({*self.row, *self.keys}) if schema.scale(n) is not None),
                # Values that partial matches of earlier versions of acep did not hold.
                *(["values of negations"] if self.window.span is None and self.ends_by_values else []),
            )
        )
        return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:32]


def compile_query(query: Query, schema: Schema, known_parts: KnownParts | None = None) -> Plan:
    """Compile a query for a stream. ``known_parts`` are the parts of a hand-written automaton that were compiled for it
    before.

    Raise :class:`QueryError` if the query names missing columns, compares values of incompatible kinds, or needs
    the length of a tick where it is unknown.
    """
    try:
        if query.graph is not None:
            return _compile_graph(query, query.graph, schema, known_parts)
        plan = _compile(query, schema)
        return replace(plan, finer=_finer_plan(plan)) if may_be_finer(plan) else plan
    except AcepError as error:
        raise error.located(query.text) from None


def may_be_finer(plan: Plan) -> bool:
    """Return whether a plan finds the same matches if what its equalities tie parts the stream further.

    Events of other values must change nothing: they break contiguity, and count in a window of n events. And the
    matches of all values must be known one by one: NON OVERLAP chooses among them.
    """
    query = plan.query
    skips = not query.strategy.contiguous and not plan.window.counted
    waits = query.output is Output.EARLIEST_MAXIMAL or any(negation.trailing for negation in plan.automaton.negations)
    is_known = not query.output.is_sequential and (not waits or plan.window.span is not None)
    return bool(plan.tied) and skips and is_known and not plan.sources


def _finer_plan(plan: Plan) -> Plan:
    """Return the plan with what is tied as further keys, without the conditions that these imply."""
    keys, bound = (*plan.keys, *plan.tied), always_bound(plan.query)
    negative = {negation.var for negation in plan.automaton.negations}

    def drop_implied(conditions: Iterable[Compiled]) -> tuple[Compiled, ...]:
        return tuple(c for c in conditions if not _is_implied(c.expr, plan.keys, keys, bound, negative))

    positive, negated = drop_implied(plan.predicates), tuple(map(drop_implied, plan.negated))
    conditions = [p.expr for p in positive], [[p.expr for p in group] for group in negated]
    program = assemble_with_endings(plan.automaton, plan.arcs, *conditions, endless=plan.window.span is None)
    having = [plan.having] if plan.having else []
    row = _attributes_of([*positive, *chain(*negated), *(c for _, c in plan.returns), *having])
    columns = _columns_of(row, plan.computed, keys, plan.schema)
    return replace(
        plan,
        keys=keys,
        columns=columns,
        row=row,
        program=program,
        predicates=positive,
        negated=negated,
        tied=(),
        stands_for=plan,
    )


def _attributes_of(expressions: Iterable[Compiled]) -> tuple[str, ...]:
    return tuple(sorted({name for expression in expressions for name in attributes(expression.expr)}))


def _columns_of(
    row: Iterable[str], computed: Iterable[Computed], keys: Iterable[str], schema: Schema
) -> tuple[str, ...]:
    """Return the columns that are read for the attributes of a row, those that the user's own functions take in place
    of those that they give, and for keys."""
    sources = {column.name: column.sources for column in computed}
    read = {source for name in row for source in sources.get(name, (name,))}
    return tuple(sorted({*read, *keys} - {schema.ts, schema.type}))


def _compile(query: Query, schema: Schema) -> Plan:
    sources = tuple((compile_query(s.query, schema), s.type) for s in query.sources)
    if sources:
        schema = _schema_of_matches(sources, schema)
    automaton = build(query)
    _check_types(query, schema, automaton)
    if not query.letters:
        _check_repetitions(automaton)
    keys = tuple(column(k, ex.Attribute("", None, k), schema)[0] for k in query.ties)
    tied = tuple(column(k, ex.Attribute("", None, k), schema)[0] for k in tied_attributes(query))
    tied = tuple(name for name in dict.fromkeys(tied) if name not in keys)
    negative = {n.var for n in automaton.negations}
    resolver = _Resolver(schema)
    positive, against = _compile_where(query, resolver, keys, negative)
    arcs = compose(automaton)
    having: Compiled | None = None
    if query.having is not None:
        having = compile_expression(resolver.resolve(query.having, condition=True).expr, schema.tick_ns, query.having)
    typed_returns = [(name, resolver.resolve(expr)) for name, expr in query.returns]
    returns = tuple((name, compile_expression(value.expr, schema.tick_ns)) for name, value in typed_returns)
    negated = tuple(tuple(p for p in against if n.var in {leaf.var for leaf in p.leaves}) for n in automaton.negations)
    window = _window(query, schema)
    conditions = [p.expr for p in positive], [[p.expr for p in group] for group in negated]
    program = assemble_with_endings(automaton, arcs, *conditions, endless=window.span is None)
    everything = [*positive, *against, *(c for _, c in returns), *([having] if having else [])]
    row = _attributes_of(everything)
    columns = tuple(sorted({c for p, _ in sources for c in p.columns}))
    computed = tuple(resolver.computed.values())
    if not sources:
        columns = _columns_of(row, computed, keys, schema)
    if computed:
        schema = replace(schema, kinds=(*schema.kinds, *((each.name, each.kind) for each in computed)))
    return Plan(
        query=query,
        schema=schema,
        keys=keys,
        columns=columns,
        row=row,
        variables=tuple(v for v in variables(query.pattern) if v not in negative),
        kleene=automaton.kleene,
        window=window,
        automaton=automaton,
        arcs=arcs,
        program=program,
        predicates=tuple(positive),
        negated=negated,
        having=having,
        returns=returns,
        return_kinds=tuple(_column_kind(value, schema) for _, value in typed_returns),
        return_scales=tuple(value.scale if value.kind == DECIMAL else None for _, value in typed_returns),
        return_times=tuple(_time_of(value, schema) for _, value in typed_returns),
        sources=sources,
        computed=computed,
        tied=tied,
    )


@dataclass(frozen=True)
class _Resolver:
    """The types of expressions over a schema. ``computed`` are the columns that the user's own functions give, by name,
    of all expressions so far."""

    schema: Schema
    computed: dict[str, Computed] = field(default_factory=dict)

    def resolve(self, expr: ex.Expr, *, condition: bool = False) -> Typed:
        """Return an expression with its type, with columns in place of what the user's own functions compute."""
        typed = resolve(expr, self.schema, condition=condition)
        return replace(typed, expr=without_own_calls(typed.expr, self.schema, self.schema.tick_ns, self.computed))


def _compile_where(
    query: Query, resolver: _Resolver, keys: tuple[str, ...], negative: Container[str]
) -> tuple[list[Compiled], list[Compiled]]:
    """Return the conditions of WHERE that the keys do not imply: those that events of a match fulfil, and those of
    events that break a negation, whose variables are ``negative``."""
    schema = resolver.schema
    positive: list[Compiled] = []
    against: list[Compiled] = []
    closed = close_equalities(query)
    bound, repeated = always_bound(query), repeated_equalities(query, closed)
    for index, (written, conjunct) in enumerate(zip(closed, refer_to_first_event(query, closed), strict=True)):
        if index in repeated:
            continue
        resolved = resolver.resolve(conjunct, condition=True).expr
        if _is_implied(resolved, keys, keys, bound, negative):
            continue
        original = written if schema.scales or written is not conjunct or _is_rewritten(conjunct) else None
        compiled = compile_expression(resolved, schema.tick_ns, original)
        is_against = any(leaf.var in negative for leaf in compiled.leaves)
        (against if is_against else positive).append(compiled)
    return positive, against


def assemble_with_endings(
    automaton: Thompson,
    arcs: Arcs,
    predicates: Sequence[ex.Expr],
    negated: Sequence[Sequence[ex.Expr]],
    *,
    endless: bool,
) -> Program:
    """Return the program of a query: predicates on arcs, registers, and the negations that end partial matches."""
    program = assemble(automaton, arcs, tuple(predicates))
    return with_ending_negations(program, automaton, arcs, predicates, negated, endless=endless)


def _is_rewritten(expr: ex.Expr) -> bool:
    return any(
        isinstance(part, ex.Call) and (part.user_function or cast_type(part.name)) for part, _ in levels(expr, children)
    )


def _compile_graph(query: Query, graph: StateGraph, schema: Schema, known_parts: KnownParts | None) -> Plan:
    """Compile a hand-written automaton."""
    keys = tuple(column(k, ex.Attribute("", None, k), schema)[0] for k in query.ties)
    compiled = compile_graph(graph, schema, known_parts)
    window = _window(query, schema)
    return Plan(
        query=query,
        schema=compiled.schema,
        keys=keys,
        columns=tuple(sorted({*compiled.row, *keys} - {schema.ts, schema.type})),
        row=compiled.row,
        variables=graph.variables,
        kleene=frozenset(graph.variables),
        window=window if window.span is None or window.counted else _open_window(query, schema),
        automaton=thompson_of(graph),
        arcs=compiled.arcs,
        program=compiled.program,
        predicates=compiled.predicates,
        negated=(),
        having=None,
        returns=(),
        return_kinds=(Kind.STRING, *compiled.kinds),
        return_scales=(None,) * (len(compiled.kinds) + 1),
        return_times=(None, *(_of_register(register) for register in graph.registers)),
        sources=(),
        transfers=compiled.transfers,
        dynamic=graph.dynamic,
    )


def _of_register(register: GraphRegister) -> TimeOf | None:
    return TimeOf((), plain=False, duration=True) if register.kind == "duration" else None


def _check_repetitions(automaton: Thompson) -> None:
    """Raise ``QueryError`` if a variable is repeated in one alternative and single in another."""
    if mixed := sorted(automaton.kleene & {letter.var for letter in automaton.letters if letter.kleene is None}):
        message = f"`{mixed[0]}` is repeated in one alternative and single in another"
        raise QueryError(message, hint="give it the same repetition in each, or two names")


def _check_types(query: Query, schema: Schema, automaton: Thompson) -> None:
    if schema.type is not None:
        return
    typed = next((letter.types[0] for letter in automaton.letters if letter.types), None)
    if typed is not None:
        word = re.search(rf"(?<!\w){re.escape(typed)}(?!\w)", query.text)
        start = word.start() if word else 0
        message = f"the stream has no type column, but the pattern asks for type `{typed}`"
        raise ex.error_at(
            message, ex.Span(start, start + len(typed)), "name the column with type=, or use ANY", code="query_type"
        )


def _implied_by_partition(expr: ex.Expr, keys: tuple[str, ...]) -> bool:
    match as_equality(expr):
        case ex.Binary(left=ex.Attribute(name=x), right=ex.Attribute(name=y)):
            return x == y and x in keys
    return False


def _is_implied(
    expr: ex.Expr, keys: tuple[str, ...], finer: tuple[str, ...], bound: Container[str], negative: Container[str]
) -> bool:
    """Return whether a condition holds in each partition of the keys ``finer``, which begin with those of a plan."""
    if not any(leaf.var in negative for leaf in leaves_of(expr)):
        return _implied_by_partition(expr, finer)
    # A negation cannot be broken while an event in its equality is missing, so that the equality is kept.
    decided = _has_its_event(expr, bound, negative)
    return _implied_by_partition(expr, finer if decided else keys) and not _looks_back(expr)


def _has_its_event(expr: ex.Expr, bound: Container[str], negative: Container[str]) -> bool:
    """Return whether each match binds the event that an equality of a negation refers to."""
    leaves = [leaf for leaf in leaves_of(expr) if leaf.var not in negative]
    return len(leaves) == 1 and all(
        isinstance(leaf, ex.Attribute) and leaf.var in bound and leaf.index in (None, "i", 1, "last") for leaf in leaves
    )


def _looks_back(expr: ex.Expr) -> bool:
    return any(isinstance(leaf, ex.Attribute) and steps_back(leaf.index) for leaf in leaves_of(expr))


def _window(query: Query, schema: Schema) -> Window:
    within = query.within
    if within is None:
        return Window(None, False)
    if within.unit == "events":
        return Window(int(within.amount) - 1, True)
    if within.unit == "ticks":
        if schema.instants:
            message = "the window needs a unit of time, as `ts` is a timestamp"
            raise _at_within(query, message, "write WITHIN 1 hour, or WITHIN 100 EVENTS")
        return Window(int(within.amount // 1), False)
    if schema.tick_ns is None:
        message = "a window in time needs to know how long a tick of the integer `ts` is"
        raise _at_within(query, message, 'name the unit: unit="s" (ns, us, ms, s, min, h, d)')
    return Window(int(within.amount / schema.tick_ns // 1), False)


def _open_window(query: Query, schema: Schema) -> Window:
    """Return the window of a hand-written automaton, whose end does not belong to it."""
    assert query.within is not None
    ticks = query.within.amount / (schema.tick_ns or 1) if query.within.unit == "ns" else query.within.amount
    return Window(-int(-ticks // 1) - 1, False)


def _at_within(query: Query, message: str, hint: str) -> QueryError:
    start = query.text.upper().rfind("WITHIN")
    return ex.error_at(
        message, None if start < 0 else ex.Span(start, len(query.text.rstrip())), hint, code="query_type"
    )


def _column_kind(typed: Typed, schema: Schema) -> Kind:
    """Return the kind of a value of RETURN. A duration is in ticks, and so is a time between two of them."""
    if typed.kind in ("duration", "timestamp") and not is_whole_ticks(typed.expr, schema):
        return Kind.FLOAT
    if typed.kind == "duration":
        return Kind.INT
    other_kinds = {"null": Kind.STRING, DECIMAL: Kind.INT}
    return other_kinds[typed.kind] if typed.kind in other_kinds else Kind(typed.kind)


def _schema_of_matches(sources: tuple[tuple[Plan, str], ...], base: Schema) -> Schema:
    """Return the schema of a stream of matches: keys, RETURN values, start, end, error, ts and type."""
    time = Kind.TIMESTAMP if base.instants else Kind.INT
    moment = (TimeOf((base.ts,), plain=True), base) if base.instants else None
    kinds: dict[str, tuple[Kind, int | None, bool]] = {}
    origins: list[tuple[str, TimeOf, Schema]] = []
    for plan, _ in sources:
        offered = {k: _of_key(k, plan.schema) for k in plan.keys}
        described = zip(plan.return_kinds, plan.return_scales, plan.return_times, strict=True)
        offered |= {
            name: (kind, scale, origin is not None and origin.duration, origin)
            for (name, _), (kind, scale, origin) in zip(plan.returns, described, strict=True)
        }
        fractional = plan.automaton.costs.scale != 1
        offered |= {"error": (Kind.FLOAT if fractional else Kind.INT, None, False, None)}
        origins += [(name, origin, plan.schema) for name, (_, _, _, origin) in offered.items() if origin is not None]
        for name, origin, _ in origins:
            if not (origin.is_whole or origin.duration):
                raise QueryError(
                    f"`{name}` of an inner query is a time that may lie between two ticks",
                    hint="cast the time columns to a finer unit, or return a duration",
                    code="query_type",
                )
        offered |= dict.fromkeys(("start", "end"), (time, None, False, None))
        for name, (kind, scale, length, _) in offered.items():
            if kinds.setdefault(name, (kind, scale, length)) != (kind, scale, length):
                before, now = _kind_text(*kinds[name]), _kind_text(kind, scale, length)
                raise QueryError(
                    f"the inner queries give `{name}` as a {before} and as a {now}",
                    hint="rename it in RETURN",
                    code="query_type",
                )
    kinds |= {"ts": (time, None, False), "type": (Kind.STRING, None, False)}
    origins += [(name, *moment) for name in ("start", "end", "ts")] if moment is not None else []
    derived = Schema(
        kinds=tuple((name, kind) for name, (kind, _, _) in kinds.items()),
        tick_ns=Fraction(base.tick_ns) if base.tick_ns else None,
        instants=base.instants,
        scales=tuple((name, scale) for name, (_, scale, _) in kinds.items() if scale is not None),
        durations=tuple(name for name, (_, _, length) in kinds.items() if length),
    )
    return base.of_matches(derived, origins)


def _of_key(key: str, schema: Schema) -> tuple[Kind, int | None, bool, TimeOf | None]:
    """Return the kind and the scale of a partition attribute, whether it holds durations, and the column that it is if
    that is one of times, durations or decimals."""
    kind, scale, length = schema.kind(key) or Kind.STRING, schema.scale(key), bool(schema.counts_ticks(key))
    plain = kind is Kind.TIMESTAMP or scale is not None or length
    return kind, scale, length, TimeOf((key,), plain=True, duration=length) if plain else None


def _time_of(typed: Typed, schema: Schema) -> TimeOf | None:
    if typed.kind == DECIMAL and isinstance(expr := typed.expr, ex.Attribute | ex.Aggregate) and expr.name is not None:
        is_sum = isinstance(expr, ex.Aggregate) and expr.function == "sum"
        return None if is_sum else TimeOf((expr.name,), plain=True)
    plain = isinstance(typed.expr, ex.Attribute | ex.Aggregate)
    if typed.kind in ("int", "float") and is_difference_of_ticks(typed.expr, schema):
        return TimeOf((), plain=False, duration=True, is_whole=typed.kind == "int")
    if typed.kind == "duration":
        is_whole = is_whole_ticks(typed.expr, schema)
        is_sum = isinstance(typed.expr, ex.Aggregate) and typed.expr.function not in ("min", "max", "first", "last")
        return TimeOf(
            tuple(attributes(typed.expr)), plain and is_whole and not is_sum, duration=True, is_whole=is_whole
        )
    if typed.kind != "timestamp":
        return None
    times = [name for name in attributes(typed.expr) if column(name, typed.expr, schema)[1] == "timestamp"]
    return TimeOf(tuple(times), plain, is_whole=is_whole_ticks(typed.expr, schema))


def _kind_text(kind: Kind, scale: int | None, length: bool) -> str:
    return "duration" if length else kind.value if scale is None else f"decimal of scale {scale}"
