"""Infer a stream schema that fits a query: the columns that it mentions, and their kinds.

With this a query can be compiled, explained and linted before there are events. Misspelled names go undetected then.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeAlias

from acep.errors import QueryError
from acep.functions.aggregates import AGGREGATES
from acep.functions.lookup import get_scalar
from acep.pattern import expressions as ex
from acep.pattern.evaluation import CASE
from acep.pattern.list_parts import list_part, source_name
from acep.pattern.scalars.casts import cast_type
from acep.pattern.tree import Query, StateGraph
from acep.pattern.walk import attributes
from acep.plan.compile import Plan, compile_query
from acep.plan.schema import Kind, Schema

__all__ = ["assumed_plan", "assumed_schema"]

Path: TypeAlias = tuple[int, ...]
Slot: TypeAlias = tuple[Path | None, str]  # a column of the stream (None) or of the matches that a query looks at
Term: TypeAlias = Slot | Kind | None

TS: Slot = (None, "ts")
_LITERALS: dict[type, Kind] = {bool: Kind.BOOL, str: Kind.STRING, int: Kind.FLOAT, float: Kind.FLOAT}


def assumed_plan(query: Query) -> Plan:
    """Compile a query for the stream schema that it implies.

    Raise :class:`QueryError` if no schema fits, as for a column compared with both a text and a number.
    """
    try:
        return compile_query(query, assumed_schema(query))
    except QueryError as error:
        try:
            return compile_query(query, assumed_schema(query, Kind.INT))
        except QueryError:
            raise error from None


def assumed_schema(query: Query, number: Kind = Kind.FLOAT) -> Schema:
    """Return a schema with the columns that a query mentions; columns of unknown or numeric kind are ``number``.

    >>> from acep.pattern.text.sase import parse
    >>> schema = assumed_schema(parse("PATTERN SEQ(A a, B b) WHERE [k] AND a.x > b.x AND b.name LIKE 'x%' WITHIN 5"))
    >>> [(name, kind.value) for name, kind in schema.kinds]
    [('k', 'float'), ('name', 'string'), ('x', 'float')]
    """
    slots = _Slots()
    _Reader(slots, query, ()).read()
    kinds: dict[str, Kind] = {}
    for scope, name in list(slots.parent):
        if scope is None and name not in ("ts", "type"):
            part = list_part(name)
            if part is None and source_name(name) != name:  # a key that is a function of a text
                kinds.setdefault(source_name(name), Kind.STRING)
                continue
            kinds[name] = Kind.BOOL if part is not None else slots.kind((scope, name)) or number
    instants = slots.kind(TS) in (Kind.TIMESTAMP, Kind.STRING)
    return Schema(tuple(sorted(kinds.items())), tick_ns=Fraction(1), instants=instants)


@dataclass
class _Slots:
    """A union-find of columns that must have the same kind, with the kinds seen for each class."""

    parent: dict[Slot, Slot] = field(default_factory=dict)
    kinds: dict[Slot, set[Kind]] = field(default_factory=dict)

    def root(self, slot: Slot) -> Slot:
        self.parent.setdefault(slot, slot)
        while self.parent[slot] != slot:
            slot = self.parent[slot]
        return slot

    def unify(self, first_term: Term, second_term: Term) -> None:
        """Record that both terms have the same kind."""
        if isinstance(first_term, Kind):
            first_term, second_term = second_term, first_term
        if first_term is None or second_term is None or isinstance(first_term, Kind):
            return
        first = self.root(first_term)
        if isinstance(second_term, Kind):
            self.kinds.setdefault(first, set()).add(second_term)
            return
        second = self.root(second_term)
        if first != second:
            self.parent[second] = first
            self.kinds.setdefault(first, set()).update(self.kinds.pop(second, set()))

    def kind(self, slot: Slot) -> Kind | None:
        """Return the kind of a column, or ``None`` if unknown or float. Timestamp takes precedence over text."""
        kinds = self.kinds.get(self.root(slot), set())
        order = (Kind.TIMESTAMP, Kind.STRING, Kind.BOOL, Kind.FLOAT, Kind.INT)
        likeliest = next((kind for kind in order if kind in kinds), None)
        return None if likeliest is Kind.FLOAT else likeliest


@dataclass
class _Reader:
    """A walk over one query. ``path`` holds the index of the source in each enclosing FROM clause."""

    slots: _Slots
    query: Query
    path: Path

    def read(self) -> None:
        query = self.query
        inner = [_Reader(self.slots, s.query, (*self.path, i)) for i, s in enumerate(query.sources)]
        for reader in inner:
            reader.read()
        for expr in (*query.where, *([query.having] if query.having else [])):
            self.condition(expr)
        for _, expr in query.returns:
            self.term(expr)
        if query.graph is not None:
            self.graph(query.graph)
        mentioned = {name for expr in (*query.where, *query.results) for name in attributes(expr)}
        for name in (*query.ties, *mentioned):
            column = self.column(name)
            for reader in inner:
                self.slots.unify(column, reader.match_attribute(name))

    def graph(self, graph: StateGraph) -> None:
        """Read the arcs of a hand-written automaton."""
        time = ex.Attribute("e", None, "ts")
        for arc in graph.arcs:
            if arc.fence is not None:
                self.condition(arc.fence)
            for name, value in arc.transfer:
                self.unify_terms(ex.Attribute("r", None, name), value)
            for moment in (arc.since, arc.until):
                if moment is not None:
                    self.unify_terms(time, moment)

    def match_attribute(self, name: str) -> Term:
        """Return the term for an attribute of the matches of this query."""
        returned = dict(self.query.returns)
        if name in returned:
            return self.term(returned[name])
        if name in self.query.ties:
            return self.column(name)
        match_attributes: dict[str, Term] = {"start": TS, "end": TS, "error": Kind.FLOAT}
        return match_attributes.get(name)

    def column(self, name: str) -> Slot:
        """Return the slot of an attribute."""
        slot: Slot = TS if name == "ts" else (self.path if self.query.sources else None, name)
        if name == "type":
            self.slots.unify(slot, Kind.STRING)
        return self.slots.root(slot)

    def condition(self, expr: ex.Expr) -> None:
        self.slots.unify(self.term(expr), Kind.BOOL)

    def number(self, expr: ex.Expr) -> Term:
        self.slots.unify(self.term(expr), Kind.FLOAT)
        return Kind.FLOAT

    def unify_terms(self, *exprs: ex.Expr) -> Term:
        """Record that compared expressions have the same kind, and return the term of the first."""
        terms = [self.term(e) for e in exprs]
        for term in terms[1:]:
            self.slots.unify(terms[0], term)
        return terms[0]

    def term(self, expr: ex.Expr) -> Term:
        """Return the term of an expression: a column, a kind, or ``None`` where nothing is known."""
        match expr:
            case ex.Literal(value=None):
                return None
            case ex.Literal(value=value):
                return _LITERALS[type(value)]
            case ex.Duration() | ex.Length():
                return Kind.FLOAT
            case ex.Timestamp():
                return Kind.TIMESTAMP
            case ex.Attribute(var="r", name=name) if self.query.graph is not None:
                kind = next(r.kind for r in self.query.graph.registers if r.name == name)
                return Kind.FLOAT if kind == "duration" else Kind(kind)
            case ex.Attribute(name=name):
                return self.column(name)
            case ex.Aggregate():
                return self.aggregate(expr)
            case ex.Unary(op="not", operand=operand):
                self.condition(operand)
                return Kind.BOOL
            case ex.Unary(operand=operand):
                return self.number(operand)
            case ex.Binary(op="and" | "or", left=left, right=right):
                self.condition(left)
                self.condition(right)
                return Kind.BOOL
            case ex.Binary(op="+" | "-" | "*" | "/" | "%" as op, left=left, right=right):
                return self.arithmetic(op, left, right)
            case ex.Binary(left=left, right=right):
                self.unify_terms(left, right)
            case ex.In(operand=operand, values=values):
                self.unify_terms(operand, *values)
            case ex.Between(operand=operand, low=low, high=high):
                self.unify_terms(operand, low, high)
            case ex.Like(operand=operand):
                self.slots.unify(self.term(operand), Kind.STRING)
            case ex.IsNull(operand=operand):
                self.term(operand)
            case ex.Call():
                return self.call(expr)
        return Kind.BOOL

    def aggregate(self, expr: ex.Aggregate) -> Term:
        if expr.name is None:
            return Kind.FLOAT
        column = self.column(expr.name)
        entry = AGGREGATES[expr.function]
        if entry.takes == "number":
            self.slots.unify(column, Kind.FLOAT)
        return column if entry.gives == "argument" else Kind.FLOAT

    def arithmetic(self, op: str, left: ex.Expr, right: ex.Expr) -> Term:
        """Return the term of an operation. Time plus or minus a duration is a time; other differences are unknown."""
        if op in "+-" and isinstance(right, ex.Duration):
            return self.term(left)
        if op == "+" and isinstance(left, ex.Duration):
            return self.term(right)
        if op == "-":
            self.unify_terms(left, right)
            return None
        self.number(left)
        self.number(right)
        return Kind.FLOAT

    def call(self, expr: ex.Call) -> Term:
        if expr.name == CASE:
            for condition in expr.args[:-1:2]:
                self.condition(condition)
            return self.unify_terms(*expr.args[1::2], expr.args[-1])
        target = cast_type(expr.name) if expr.user_function is None else expr.user_function.returns
        if target is not None:
            for arg in expr.args:
                self.term(arg)
            return {"text": Kind.STRING, "boolean": Kind.BOOL}.get(target, Kind.FLOAT)
        return self.scalar(expr)

    def scalar(self, expr: ex.Call) -> Term:
        """Return the term of a call of a scalar function."""
        entry = get_scalar(expr.name)
        if entry.is_choice:
            return self.unify_terms(*expr.args)
        for i, arg in enumerate(expr.args):
            slot, takes = self.term(arg), entry.kind_at(i)
            # Time parts of an integer ts are allowed as well.
            if takes != "value" and not (takes == "time" and slot == self.slots.root(TS)):
                self.slots.unify(slot, _ARGUMENTS.get(takes, Kind.FLOAT))
        return {"text": Kind.STRING, "condition": Kind.BOOL}.get(entry.gives, Kind.FLOAT)


_ARGUMENTS = {"text": Kind.STRING, "integer": Kind.INT, "time": Kind.TIMESTAMP, "condition": Kind.BOOL}
