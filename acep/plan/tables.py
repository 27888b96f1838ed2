"""From plans to flat tables: what the native engines read (docs/native.md).

Several plans of one stream share columns, block programs, event classes and partition tables.
A plan that the native core cannot run raises :class:`NotNativeError`, which says why.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from acep.automaton.arcs import Arc
from acep.automaton.registers import Check, Frame, Register, Source, Step, assemble
from acep.pattern.evaluation import Leaf, leaves_of
from acep.pattern.expressions import Aggregate, Attribute, Expr, Length
from acep.pattern.tree import Output, Strategy
from acep.plan.bytecode import BlockProgram, CannotLower, lower_expression
from acep.plan.compile import Plan
from acep.plan.derive import Derived, derive
from acep.plan.schema import Kind

__all__ = ["EventClass", "NotNativeError", "PlanTables", "SharedTables", "lower"]

STRATEGIES = (
    Strategy.SKIP_TILL_ANY_MATCH,
    Strategy.SKIP_TILL_NEXT_MATCH,
    Strategy.PARTITION_CONTIGUITY,
    Strategy.STRICT_CONTIGUITY,
)
MOST_BUDGET = 2**30
MOST_OF_FRAME = 6

EVENT, ONE, SLOT, TOTAL, AVERAGE, MEAN, FRAME = range(7)
COPY, LAST, NTH, COUNT, SUM, ADD, LEAST, GREATEST, NONNULL, FRAMES = range(10)

Triple = tuple[int, int, int]
_Placed = tuple[int, int, tuple[Triple, ...], list[int]]


class NotNativeError(Exception):
    """The native core has no way to run this plan; the message is the reason."""


@dataclass(frozen=True)
class EventClass:
    """What an arc asks of a single event: one of ``types`` (none: any), and ``checks``: (program, sources)."""

    types: tuple[str, ...]
    checks: tuple[tuple[int, tuple[Triple, ...]], ...]


@dataclass
class SharedTables:
    """What the plans of one stream share.

    ``columns``: for each column its name and what derives it, if anything does. ``keys``: for each partition
    table its columns, and whether positions must be counted in it.
    """

    columns: dict[str, Derived | None] = field(default_factory=dict)
    programs: dict[BlockProgram, int] = field(default_factory=dict)
    classes: dict[EventClass, int] = field(default_factory=dict)
    keys: dict[tuple[int, ...], bool] = field(default_factory=dict)

    def column(self, name: str, derived: dict[str, Derived]) -> int:
        """The number of a column, a new one if need be."""
        self.columns.setdefault(name, derived.get(name))
        return list(self.columns).index(name)


@dataclass(frozen=True)
class PlanTables:
    """One plan as named arrays of 64-bit integers; ``mergeable``: no predicate ties its events together."""

    arrays: dict[str, tuple[int, ...]]
    mergeable: bool
    unambiguous: bool


def lower(plan: Plan, shared: SharedTables, code_of_text: Callable[[str], int]) -> PlanTables:
    """The tables of a plan; what they share with those of other plans is added to ``shared``.

    ``code_of_text`` gives the code of a text that occurs in a predicate.

    Raises :class:`NotNativeError`.
    """
    return _Lowering(plan, shared, code_of_text).tables()


class _Lists:
    """Lists of integers as one array with offsets."""

    def __init__(self) -> None:
        self.items: list[int] = []
        self.at = [0]

    def add(self, values: Sequence[int]) -> int:
        self.items.extend(values)
        self.at.append(len(self.items))
        return len(self.at) - 2


class _Lowering:
    def __init__(self, plan: Plan, shared: SharedTables, code_of_text: Callable[[str], int]) -> None:
        self.plan = plan
        self.shared = shared
        self.code_of_text = code_of_text
        _check(plan)
        texts, self.derived = derive([p.expr for p in plan.predicates], plan.schema, plan.schema.tick_ns)
        self.expressions = texts
        self.program = assemble(plan.automaton, plan.arcs, texts) if self.derived else plan.program
        self.layouts = [self._layout(layout) for layout in self.program.layouts]
        self.lists: dict[str, _Lists] = {}
        self.plain: dict[str, list[int]] = {}
        self.checks: dict[tuple[object, ...], int] = {}
        self.frames = 0
        self.predicates = [self._predicate(e) for e in texts]

    # Registers and values ---------------------------------------------------------------------------

    def _kind(self, name: str) -> Kind:
        if name in self.derived:
            return self.derived[name].kind
        schema = self.plan.schema
        kind = schema.kind(name)
        if kind is None:
            kind = Kind.STRING if name == schema.type else Kind.INT
        if kind is Kind.NULL:
            raise NotNativeError(f"column `{name}` holds nothing but nulls")
        return kind

    def _leaf_kind(self, leaf: Leaf) -> Kind:
        match leaf:
            case Attribute(name=name):
                return self._kind(name)
            case Length() | Aggregate(function="count"):
                return Kind.INT
            case Aggregate(function="avg"):
                return Kind.FLOAT
            case Aggregate(name=name):
                assert name is not None
                return self._kind(name)

    def _layout(self, registers: tuple[Register, ...]) -> dict[Register, int]:
        slots, size = {}, 0
        for r in registers:
            slots[r] = size
            size += 2 if self._is_total(r) else 1
        return slots

    def _is_total(self, r: Register) -> bool:
        return r.kind == "sum" and self._kind(r.name) is not Kind.FLOAT

    def _size(self, state: int) -> int:
        return sum(2 if self._is_total(r) else 1 for r in self.program.layouts[state])

    def _column(self, name: str) -> int:
        return self.shared.column(name, self.derived)

    def _predicate(self, expr: Expr) -> int:
        leaves = leaves_of(expr)
        kinds = [self._leaf_kind(leaf) for leaf in leaves]
        try:
            program = lower_expression(expr, leaves, kinds, self.plan.schema.tick_ns, self.code_of_text)
        except CannotLower as reason:
            raise NotNativeError(str(reason)) from None
        return self.shared.programs.setdefault(program, len(self.shared.programs))

    def _source(self, source: Source, layout: dict[Register, int], loops: tuple[Register, ...]) -> Triple | None:
        """``None``: it is not bound in any run that gets here, so that the predicate is dropped."""
        if source.kind == "event":
            return EVENT, self._column(source.name), 0
        if source.kind == "one":
            return ONE, self._column(source.name) if source.name else -1, 0
        if source.kind == "frame":
            return FRAME, loops.index(source.registers[0]), source.index
        if any(r not in layout for r in source.registers):
            return None
        first = source.registers[0]
        if source.kind == "average":
            return AVERAGE if self._is_total(first) else MEAN, layout[first], layout[source.registers[1]]
        return TOTAL if self._is_total(first) else SLOT, layout[first], 0

    def _check(self, check: Check, layout: dict[Register, int]) -> _Placed | None:
        """(only, turn, sources, loops), or ``None`` where it always holds."""
        only, turn = -1, 0
        if check.only is not None:
            only, turn = layout.get(check.only[0], -1), check.only[1] - 1
            if only < 0 and turn != 0:
                return None
        if any(r not in layout for r in check.loops):
            return None
        sources = []
        for source in check.sources:
            triple = self._source(source, layout, check.loops)
            if triple is None:
                return None
            sources.append(triple)
        return only, turn if only >= 0 else 0, tuple(sources), [layout[r] for r in check.loops]

    def _numbered(self, check: Check, layout: dict[Register, int]) -> list[int]:
        """The number of a check on registers; nothing where it always holds."""
        found = self._check(check, layout)
        if found is None:
            return []
        only, turn, sources, loops = found
        program = self.predicates[check.predicate]
        key = (program, only, turn, sources, tuple(loops))
        if key not in self.checks:
            self.checks[key] = len(self.checks)
            self._put("check_program", program)
            self._put("check_only", only)
            self._put("check_turn", turn)
            self._add("check_sources", [x for s in sources for x in s])
            self._add("check_loops", loops)
        return [self.checks[key]]

    # Arrays -----------------------------------------------------------------------------------------

    def _put(self, name: str, value: int) -> None:
        self.plain.setdefault(name, []).append(value)

    def _add(self, name: str, values: Sequence[int]) -> int:
        return self.lists.setdefault(name, _Lists()).add(values)

    def tables(self) -> PlanTables:
        plan, shared = self.plan, self.shared
        costs, window = plan.automaton.costs, plan.window
        for state, here in zip(plan.arcs.states, self.program.steps, strict=True):
            self._put("state_rest", costs.budget + 1 if state.rest is None else min(state.rest, costs.budget + 1))
            self._put("state_slots", self._size(state.number))
            layout = self.layouts[state.number]
            self._add("state_ending", [n for c in self.program.ending[state.number] for n in self._numbered(c, layout)])
            for accept in state.accepts:
                self._put("accept_cost", min(accept.cost, costs.budget + 1))
                self._add("accept_crossings", [])
            self._add("accept", [0] * len(state.accepts))
            for step in here:
                self._arc(step)
            self._add("arc", [0] * len(here))
        positions = plan.query.output is not Output.ALL or plan.query.strategy.contiguous or window.counted
        key = tuple(self._column(k) for k in plan.keys)
        shared.keys[key] = shared.keys.get(key, False) or positions
        unambiguous = _unambiguous(plan)
        arrays = {name: tuple(values) for name, values in self.plain.items()}
        for name, lists in self.lists.items():
            arrays[f"{name}_at"] = tuple(lists.at)
            if name not in ("accept", "arc"):
                arrays[name] = tuple(lists.items)
        for name in ("check_program", "check_only", "check_turn", "crossing_negation", "accept_cost", *ARC):
            arrays.setdefault(name, ())
        for name in (*LISTS, *ARC_LISTS):
            arrays.setdefault(name, ())
            arrays.setdefault(f"{name}_at", (0,))
        arrays["span"] = (-1 if window.span is None else window.span,)
        arrays["meta"] = (
            STRATEGIES.index(plan.query.strategy),
            costs.budget,
            costs.scale,
            int(window.counted),
            int(plan.strict),
            int(unambiguous),
            int(positions),
            list(shared.keys).index(key),
            0,  # the numbers of classes and columns of the stream, known when all plans are lowered
            0,
            len(plan.variables),
            self.frames,
        )
        mergeable = not any(arrays["state_slots"]) and not arrays["check_program"]
        return PlanTables(arrays, mergeable, unambiguous)

    def _arc(self, step: Step) -> None:
        arc = step.arc
        old = {r: i for r, i in self.layouts[arc.source].items() if r.var not in step.forgets}
        own: list[tuple[int, tuple[Triple, ...]]] = []
        binding: list[int] = []
        for check in step.binding:
            found = self._check(check, old)
            if found is None:
                continue
            only, _, sources, loops = found
            if only < 0 and not loops and all(s[0] in (EVENT, ONE) for s in sources):
                own.append((self.predicates[check.predicate], sources))
            else:
                binding += self._numbered(check, old)
        event_class = EventClass(arc.types, tuple(dict.fromkeys(own)))
        self._put("arc_target", arc.target)
        self._put("arc_var", self.plan.variables.index(arc.var))
        self._put("arc_class", self.shared.classes.setdefault(event_class, len(self.shared.classes)))
        self._put("arc_blocking", int(arc.blocking))
        self._add("arc_gaps", [x for gap in arc.gaps for x in gap])
        before = self.layouts[arc.source]
        self._add("arc_leaving", [n for c in step.leaving for n in self._numbered(c, before)])
        self._add("arc_binding", binding)
        frames = {f.register: f for f in step.frames}
        puts = [self._write(r, slot, arc, old, frames) for r, slot in self.layouts[arc.target].items()]
        self._add("arc_puts", [x for put in puts for p in put for x in p])
        self._add("arc_crossings", [])
        self._add("arc_resets", arc.resets)

    def _write(
        self, r: Register, slot: int, arc: Arc, old: dict[Register, int], frames: dict[Register, Frame]
    ) -> list[tuple[int, ...]]:
        """How a register of the target gets its value: (write, slot, from, column, counter, extra) for each slot."""
        before = old.get(r, -1)
        if r.var != arc.var:
            copies = [(COPY, slot, before, -1, -1, 0)]
            if self._is_total(r):
                copies.append((COPY, slot + 1, before + 1 if before >= 0 else -1, -1, -1, 0))
            return copies
        if r.kind == "frames":
            sources = [self._source(s, old, ()) for s in frames[r].sources]
            bound = [s for s in sources if s is not None]
            if len(bound) < len(sources):
                return [(COPY, slot, before, -1, -1, 0)]
            if len(bound) > MOST_OF_FRAME:
                raise NotNativeError(f"a predicate has more than {MOST_OF_FRAME} references to each event of `{r.var}`")
            self._add("frame_sources", [x for s in bound for x in s])
            self.frames += 1
            return [(FRAMES, slot, before, -1, -1, self.frames - 1)]
        if r.kind == "count":
            return [(COUNT, slot, before, -1, -1, 0)]
        column = self._column(r.name)
        kind = self._kind(r.name)
        match r.kind:
            case "last":
                return [(LAST, slot, -1, column, -1, 0)]
            case "nth":
                counter = old.get(Register("count", r.var), -1) if r.number > 1 else -1
                return [(NTH, slot, before, column, counter, r.number)]
            case "nonnull":
                return [(NONNULL, slot, before, column, -1, 0)]
            case "sum":
                return [(SUM if self._is_total(r) else ADD, slot, before, column, -1, 0)]
        order = {Kind.FLOAT: 1, Kind.STRING: 2}.get(kind, 0)
        return [(LEAST if r.kind == "min" else GREATEST, slot, before, column, -1, order)]


LISTS = ("check_sources", "check_loops", "crossing_entered", "accept_crossings", "frame_sources")
ARC = ("arc_target", "arc_var", "arc_class", "arc_blocking")
ARC_LISTS = ("arc_gaps", "arc_leaving", "arc_binding", "arc_puts", "arc_crossings", "arc_resets")


def _check(plan: Plan) -> None:
    if plan.sources:
        raise NotNativeError("it runs on the matches of other queries")
    if plan.automaton.negations:
        raise NotNativeError("it has negations")
    if plan.having is not None or plan.returns:
        raise NotNativeError("it has HAVING or RETURN")
    if plan.query.output is not Output.ALL:
        raise NotNativeError(f"its output is {plan.query.output.value.replace('_', ' ')}")
    if plan.automaton.costs.budget >= MOST_BUDGET or plan.automaton.costs.scale >= MOST_BUDGET:
        raise NotNativeError("its weights have no small common denominator")
    if len(plan.variables) >= 2**16 - 1 or sum(map(len, plan.arcs.arcs)) >= 2**16 - 1:
        raise NotNativeError("it has 65,535 arcs or more")


def _unambiguous(plan: Plan) -> bool:
    """Whether a binding determines its run: no two arcs of a state may bind one event to one variable."""
    for here in plan.arcs.arcs:
        seen: dict[str, set[str]] = {}
        for arc in here:
            if arc.var in seen and (not arc.types or not seen[arc.var] or seen[arc.var].intersection(arc.types)):
                return False
            seen.setdefault(arc.var, set()).update(arc.types)
            if not arc.types:
                seen[arc.var] = set()
    return True
