"""Lower plans to flat tables, the input of the native engines (docs/internals/native.md).

Several plans of one stream share columns, block programs, event classes and partition tables.
A plan that the native core cannot run raises :class:`NotNativeError` with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Literal

from acep.automaton.arcs import Arc, State
from acep.automaton.graph import OF_REGISTER, rebind
from acep.automaton.registers import Assign, Check, Frame, Ignore, Register, Step, ValueSource, assemble
from acep.automaton.versions import join_versions, programs_of
from acep.pattern import expressions as ex
from acep.pattern.evaluation import Compiled
from acep.pattern.tree import Strategy
from acep.plan.compile import Plan, assemble_with_endings
from acep.plan.derive import derive
from acep.plan.dominance import demands_of
from acep.plan.lower.tables_completion import Negations, completes, needs_firsts, write_output
from acep.plan.lower.tables_writer import EVENT, PRESENCE, EventClass, NotNativeError, SharedTables, Triple, Writer
from acep.plan.monotone import Demand
from acep.plan.rising import having_rises
from acep.plan.schema import Kind

__all__ = ["EventClass", "NotNativeError", "PlanTables", "SharedTables", "TableLowering"]

STRATEGIES = (
    Strategy.SKIP_TILL_ANY_MATCH,
    Strategy.SKIP_TILL_NEXT_MATCH,
    Strategy.PARTITION_CONTIGUITY,
    Strategy.STRICT_CONTIGUITY,
)
MOST_BUDGET = 2**30
LIMIT = 2**63
MOST_OF_FRAME = 6
MOST_KNOWN = 1_000  # programs that are known beyond twice those in use

SLOT, TOTAL, AVERAGE, MEAN, FRAME = range(PRESENCE + 1, PRESENCE + 6)
EQUAL, GREATER, LESS = range(1, 4)
COPY, LAST, NTH, COUNT, SUM, ADD, MINIMUM, MAXIMUM, NONNULL, FRAMES, POSITION, ASSIGN = range(12)

RegisterKind = Literal["int", "float", "text"]
_Placed = tuple[int, int, tuple[Triple, ...], list[int]]


@dataclass(frozen=True)
class PlanTables:
    """One plan as named arrays of 64-bit integers.

    ``mergeable``: no predicate ties its events together, and each complete run is a match. ``return_kinds``: the
    kinds of the words of RETURN. ``registers``: by state, (slot, variable, column, kind) of each register with a single
    value. ``takes``: by state, (event class, target state) of each arc.
    """

    arrays: dict[str, tuple[int, ...]]
    mergeable: bool
    return_kinds: tuple[Kind, ...]
    registers: tuple[tuple[tuple[int, str, str, RegisterKind], ...], ...]
    takes: tuple[tuple[tuple[int, int], ...], ...]


class TableLowering:
    """The lowering of a plan, which adds the parts shared with other plans to ``shared``. ``code_of_text`` returns the
    code of a text that occurs in a predicate.

    Raises :class:`NotNativeError`, also in :meth:`tables`, if the native core cannot run the plan.
    """

    def __init__(self, plan: Plan, shared: SharedTables, code_of_text: Callable[[str], int]) -> None:
        _check(plan)
        self.plan = plan
        self.shared = shared
        results = [*([plan.having] if plan.having else []), *(c for _, c in plan.returns)]
        parts = [plan.predicates, *plan.negated, results, plan.transfers]
        originals = [c.expr for p in parts for c in p]
        rewritten, derived = derive(
            [e for e in originals if id(e) not in shared.programs_by_id], plan.schema, plan.schema.tick_ns
        )
        coming = iter(rewritten)
        everything = [e if id(e) in shared.programs_by_id else next(coming) for e in originals]
        ends = list(accumulate(map(len, parts), initial=0))
        predicates, *negated, self.results, transfers = (tuple(everything[i:j]) for i, j in pairwise(ends))
        self.writer = Writer(plan, shared, derived, code_of_text)
        self.program = plan.program
        if derived and plan.query.graph:
            self.program = rebind(plan.program, predicates, transfers)
        elif derived and plan.parts:
            version_programs = [
                assemble(p.automaton, p.arcs, tuple(predicates[n] for n in p.predicates)) for p in plan.parts
            ]
            arcs, self.program, _ = join_versions(plan.parts, programs_of(plan.parts, version_programs), negated)
            if arcs != plan.arcs:
                raise NotNativeError("its versions differ in what they derive from texts")
        elif derived:
            endless = plan.window.span is None
            self.program = assemble_with_endings(plan.automaton, plan.arcs, predicates, negated, endless=endless)
        self.layouts = [self._layout(layout) for layout in self.program.layouts]
        self.checks: dict[tuple[object, ...], int] = {}
        self.frames = 0
        self.expressions = predicates
        self.predicates = self._programs(plan.predicates, predicates)
        self.negated = [expr for conditions in negated for expr in conditions]
        self.transfers = self._programs(plan.transfers, transfers)
        if len(shared.programs_by_id) > 2 * len(originals) + MOST_KNOWN:
            used = {id(e) for e in originals}
            shared.programs_by_id = {key: program for key, program in shared.programs_by_id.items() if key in used}
        self.assigned = self.arcs = 0
        self.negations = Negations(self.writer, negated, self.results)
        self.firsts = needs_firsts(plan)
        self.takes: list[list[tuple[int, int]]] = [[] for _ in plan.arcs.states]

    def _programs(self, parts: Sequence[Compiled], expressions: Sequence[ex.Expr]) -> list[int]:
        """Return the programs of expressions, of which those that read no derived column are cached from then on."""
        numbers = []
        for part, expr in zip(parts, expressions, strict=True):
            cached = self.shared.programs_by_id.get(id(part.expr))
            number = self.writer.program(expr)[0] if cached is None else cached[1]
            if self.plan.dynamic and expr is part.expr:
                self.shared.programs_by_id[id(expr)] = expr, number
            numbers.append(number)
        return numbers

    def _program(self, number: int) -> int:
        """Return the program of a predicate, or of a condition of a negation."""
        index = number - len(self.predicates)
        return self.predicates[number] if index < 0 else self.writer.program(self.negated[index])[0]

    def _layout(self, registers: tuple[Register, ...]) -> dict[Register, int]:
        return dict(zip(registers, accumulate(map(self._width, registers), initial=0), strict=False))

    def _width(self, r: Register) -> int:
        """Return the number of slots of a register."""
        return 2 if self._is_total(r) else 1

    def _is_total(self, r: Register) -> bool:
        return r.kind == "sum" and self.writer.kind(r.name) is not Kind.FLOAT

    def _size(self, state: int) -> int:
        """Return the number of slots of a state: those of its registers, and one for the first position if needed."""
        return sum(map(self._width, self.program.layouts[state])) + int(self.firsts and state > 0)

    def _source(self, source: ValueSource, layout: dict[Register, int], loops: tuple[Register, ...]) -> Triple | None:
        """Return a source as a triple, or ``None`` if it is never bound in this state: the predicate is dropped."""
        if source.kind == "event":
            return EVENT, self.writer.column(source.name), 0
        if source.kind == "one":
            return PRESENCE, self.writer.column(source.name) if source.name else -1, 0
        if source.kind == "frame":
            return FRAME, loops.index(source.registers[0]), source.index
        if any(r not in layout for r in source.registers):
            return None
        first = source.registers[0]
        if source.kind == "average":
            number = layout[source.registers[1]]
            if not self._is_total(first):
                return MEAN, layout[first], number
            return AVERAGE, layout[first], number + ((self.plan.schema.scale(first.name) or 0) << 20)
        return TOTAL if self._is_total(first) else SLOT, layout[first], 0

    def _check(self, check: Check, layout: dict[Register, int]) -> _Placed | None:
        """Return (only, turn, sources, loops) of a check, or ``None`` if it always holds."""
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

    def _number_check(self, check: Check, layout: dict[Register, int]) -> list[int]:
        """Return a list with the number of a check on registers; an empty list if it always holds."""
        check_parts = self._check(check, layout)
        if check_parts is None:
            return []
        only, turn, sources, loops = check_parts
        program = self._program(check.predicate)
        key = (program, only, turn, sources, tuple(loops))
        if key not in self.checks:
            self.checks[key] = len(self.checks)
            self.writer.put("check_program", program)
            self.writer.put("check_only", only)
            self.writer.put("check_turn", turn)
            self.writer.add("check_sources", [x for s in sources for x in s])
            self.writer.add("check_loops", loops)
        return [self.checks[key]]

    def tables(self) -> PlanTables:
        """Return the tables of the plan; to be called once."""
        plan, shared = self.plan, self.shared
        for state, steps in zip(plan.arcs.states, self.program.steps, strict=True):
            self._state(state, steps)
        having, returns = (self.results[0], self.results[1:]) if plan.having else (None, self.results)
        return_kinds = write_output(self.writer, self.negations, having, returns)
        if plan.query.graph is not None:
            return_kinds = tuple(Kind.INT if kind is Kind.NULL else kind for kind in plan.return_kinds)
        positions = plan.query.strategy.contiguous or plan.window.counted
        key = tuple(self.writer.column(k) for k in plan.keys)
        shared.keys[key] = shared.keys.get(key, False) or positions
        arrays = self.writer.arrays()
        del arrays["accept"], arrays["arc"], arrays["ignore"], arrays["end"]  # only their offsets by state are needed
        arrays["span"] = (-1 if plan.window.span is None else plan.window.span,)
        arrays["meta"] = self._meta(key, positions=positions)
        arrays["firsts"] = (int(self.firsts),)
        arrays["rises"] = (int(having_rises(plan)),)
        mergeable = not any(arrays["state_slots"]) and not arrays["check_program"] and not completes(plan)
        mergeable = mergeable and not plan.dynamic and (plan.query.graph is None or _is_plain(plan))
        registers = tuple(
            tuple(
                self._describe(r, slot)
                for r, slot in state_layout.items()
                if r.kind != "frames" and self._width(r) == 1
            )
            for state_layout in self.layouts
        )
        return PlanTables(arrays, mergeable, return_kinds, registers, tuple(map(tuple, self.takes)))

    def _state(self, state: State, steps: Sequence[Step]) -> None:
        """Write a state: how it ends a match, its arcs, and the events that it ignores or that end it."""
        beyond = self.plan.automaton.costs.budget + 1
        layout = self.layouts[state.number]
        self.writer.put("state_rest", beyond if state.cost_to_end is None else min(state.cost_to_end, beyond))
        self.writer.put("state_slots", self._size(state.number))
        ending = self.program.ending[state.number]
        self.writer.add("state_ending", [n for c in ending for n in self._number_check(c, layout)])
        for accept in state.accepts:
            self.writer.put("accept_cost", min(accept.cost, beyond))
            self.writer.add("accept_crossings", self.negations.number_crossings(accept.crossings))
        self.writer.add("accept", [0] * len(state.accepts))
        for step in steps:
            self._arc(step)
        self.writer.add("arc", [0] * len(steps))
        ignoring = self.program.ignoring[state.number] if self.program.ignoring else ()
        for ignored in ignoring:
            event_checks, bound = self._split(ignored.checks, layout)
            self.writer.put("ignore_class", self.writer.event_class((), event_checks))
            self.writer.add("ignore_binding", bound)
            self._lifetime("ignore", ignored)
        self.writer.add("ignore", [0] * len(ignoring))
        ended = self.program.ended[state.number] if self.program.ended else ()
        for end in ended:
            on_event, bound = self._split(end.checks, layout)
            types = self.plan.automaton.negations[end.negation].types
            self.writer.put("end_class", self.writer.event_class(types, on_event))
            self.writer.add("end_checks", bound)
        self.writer.add("end", [0] * len(ended))

    def _meta(self, key: tuple[int, ...], *, positions: bool) -> tuple[int, ...]:
        """Return the single numbers of a plan, in the order in which the core reads them. ``key``: the columns of the
        partition attributes; ``positions``: events are counted."""
        plan, costs = self.plan, self.plan.automaton.costs
        return (
            STRATEGIES.index(plan.query.strategy),
            costs.budget,
            -1 if costs.surplus is None else costs.surplus,
            int(plan.window.counted),
            int(plan.strict),
            int(plan.is_unambiguous),
            int(positions),
            list(self.shared.keys).index(key),
            0,  # placeholders for the numbers of event classes and columns, known when all plans are lowered
            0,
            len(plan.variables),
            self.frames,
            self.assigned,
            0 if plan.query.graph is None else len(plan.return_kinds),
            int(plan.dynamic),
        )

    def _describe(self, r: Register, slot: int) -> tuple[int, str, str, RegisterKind]:
        kind = Kind.INT if r.kind in ("count", "nonnull") else self.writer.kind(_column(r))
        return slot, r.var, r.name, "float" if kind is Kind.FLOAT else "text" if kind is Kind.STRING else "int"

    def demands(self) -> dict[str, tuple[int, ...]]:
        """Return the demands on the registers of a dominating partial match, by slot."""
        all_words: list[int] = []
        offsets = [0]
        for state, state_demands in enumerate(demands_of(self.plan, self.program, self.expressions, self.writer.kind)):
            words = [0, 0] * self._size(state)
            for register, demand in state_demands.items():
                first = self.layouts[state][register]
                for slot in range(first, first + self._width(register)):
                    words[2 * slot : 2 * slot + 2] = self._relation(register, demand), demand.bound
            all_words += words
            offsets.append(len(all_words))
        return {"demands": tuple(all_words), "demands_at": tuple(offsets)}

    def _relation(self, register: Register, demand: Demand) -> int:
        """Return the value of ``Relation`` in nodes_dominance.hpp."""
        if not demand.sign:
            return EQUAL
        floats = register.kind not in ("count", "nonnull") and self.writer.kind(register.name) is Kind.FLOAT
        return (GREATER if demand.sign > 0 else LESS) + (2 if floats else 0)

    def _arc(self, step: Step) -> None:
        arc = step.arc
        old = {r: i for r, i in self.layouts[arc.source].items() if r.var not in step.forgets}
        on_event, binding = self._split(step.binding, old)
        self.writer.put("arc_number", self.arcs if arc.number < 0 else arc.number)
        self.arcs += 1
        self.writer.put("arc_target", arc.target)
        self.writer.put("arc_var", self.plan.variables.index(arc.var))
        taken = self.writer.event_class(arc.types, on_event)
        self.takes[arc.source].append((taken, arc.target))
        self.writer.put("arc_class", taken)
        self.writer.put("arc_blocking", int(arc.blocking))
        self._lifetime("arc", arc)
        self.writer.add("arc_gaps", [x for gap in arc.gaps for x in gap])
        before = self.layouts[arc.source]
        self.writer.add("arc_leaving", [n for c in step.leaving for n in self._number_check(c, before)])
        self.writer.add("arc_binding", binding)
        frames = {f.register: f for f in step.frames}
        assigns = {a.register: a for a in step.assigns}
        puts = [
            self._assign(assigns[r], slot, old) if r in assigns else self._write(r, slot, arc, old, frames)
            for r, slot in self.layouts[arc.target].items()
        ]
        if self.firsts:
            old_slot = self._size(arc.source) - 1 if arc.source else -1
            puts.append([(POSITION, self._size(arc.target) - 1, old_slot, -1, -1, 0)])
        self.writer.add("arc_puts", [x for put in puts for p in put for x in p])
        crossings = self.negations.number_crossings(arc.crossings)
        self.writer.put("arc_history", self.negations.history(crossings, arc.resets))
        self.writer.add("arc_crossings", crossings)
        self.writer.add("arc_resets", arc.resets)

    def _lifetime(self, name: str, arc: Arc | Ignore) -> None:
        """Write the first and the last tick at which an arc is valid."""
        first = -LIMIT if arc.since is None else arc.since
        last = LIMIT - 1 if arc.until is None else arc.until - 1
        if first >= LIMIT or last < -LIMIT:
            first, last = LIMIT - 1, -LIMIT  # at no tick
        self.writer.put(f"{name}_first", max(first, -LIMIT))
        self.writer.put(f"{name}_last", min(last, LIMIT - 1))

    def _assign(self, assign: Assign, slot: int, old: dict[Register, int]) -> list[tuple[int, ...]]:
        """Return the write of a register of a hand-written automaton."""
        sources = [self._source(source, old, ()) for source in assign.sources]
        self.writer.put("assign_program", self.transfers[assign.transfer])
        self.writer.add("assign_sources", [x for s in sources if s is not None for x in s])
        self.assigned += 1
        return [(ASSIGN, slot, -1, -1, -1, self.assigned - 1)]

    def _split(
        self, checks: tuple[Check, ...], layout: dict[Register, int]
    ) -> tuple[list[tuple[int, tuple[Triple, ...]]], list[int]]:
        """Return the checks of an event alone, and the numbers of those of registers."""
        on_event: list[tuple[int, tuple[Triple, ...]]] = []
        binding: list[int] = []
        for check in checks:
            check_parts = self._check(check, layout)
            if check_parts is None:
                continue
            only, _, sources, loops = check_parts
            if only < 0 and not loops and all(s[0] in (EVENT, PRESENCE) for s in sources):
                on_event.append((self._program(check.predicate), sources))
            else:
                binding += self._number_check(check, layout)
        return on_event, binding

    def _write(
        self, r: Register, slot: int, arc: Arc, old: dict[Register, int], frames: dict[Register, Frame]
    ) -> list[tuple[int, ...]]:
        """Return the writes of a target register: (write, slot, from, column, counter, extra) for each slot."""
        before = old.get(r, -1)
        if r.var != arc.var or r.kind == "field":
            copies: list[tuple[int, ...]] = [(COPY, slot, before, -1, -1, 0)]
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
            self.writer.add("frame_sources", [x for s in bound for x in s])
            self.frames += 1
            return [(FRAMES, slot, before, -1, -1, self.frames - 1)]
        if r.kind == "count":
            return [(COUNT, slot, before, -1, -1, 0)]
        if r.kind == "back":
            return [(COPY, slot, old.get(r.newer, -1), -1, -1, 0)]
        column = self.writer.column(r.name)
        kind = self.writer.kind(r.name)
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
        return [(MINIMUM if r.kind == "min" else MAXIMUM, slot, before, column, -1, order)]


def _check(plan: Plan) -> None:
    if plan.sources:
        raise NotNativeError("it runs on the matches of other queries")
    costs = plan.automaton.costs
    if max(costs.budget, costs.scale, costs.surplus or 0) >= MOST_BUDGET:
        raise NotNativeError("its weights have no small common denominator")
    arcs = sum(len(state_arcs) for part in plan.parts or (plan,) for state_arcs in part.arcs.arcs)
    if len(plan.variables) >= 2**16 - 1 or arcs >= 2**16 - 1:
        raise NotNativeError("it has 65,535 arcs or more")


def _column(r: Register) -> str:
    """Return the name under which the schema of the plan has the values of a register."""
    return OF_REGISTER + r.name if r.kind == "field" else r.name


def _is_plain(plan: Plan) -> bool:
    """Return whether all matches end in one state, and no arc is ignorable or valid only for a time."""
    lasting = all(arc.since is None and arc.until is None for state_arcs in plan.arcs.arcs for arc in state_arcs)
    ends = sum(bool(state.accepts) for state in plan.arcs.states)
    return lasting and not any(plan.program.ignoring) and ends == 1
