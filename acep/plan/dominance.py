"""Find the partial matches that are not needed for match points, bundles without counts, or existence.

A partial match may be dropped if another one of the same partition and state *dominates* it: the other one has no
greater error, no earlier start, and registers with which every later predicate passes if it passes for the dropped one
(proof in docs/internals/dominance.md). This module derives for each state which registers must be equal, which must
only be greater or less, and which do not matter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from acep.automaton.registers import Check, Program, Register, Step
from acep.pattern.expressions import Expr
from acep.pattern.printing import output_text
from acep.pattern.tree import Output, Strategy
from acep.pattern.walk import leaves_of
from acep.plan.compile import Plan
from acep.plan.monotone import EQUAL, Demand, Scene, demands_on, unite_demands
from acep.plan.schema import Kind

__all__ = ["Demands", "demands", "demands_of", "lines", "reason_against"]

Demands = tuple[dict[Register, Demand], ...]
"""By state: the demand on each register. Registers without an entry do not matter."""

NUMBERS = (Kind.INT, Kind.FLOAT, Kind.TIMESTAMP)


def reason_against(plan: Plan) -> str | None:
    """Return why state, error, start and registers do not determine the future of a run; ``None`` if they do."""
    if plan.sources:
        return "it runs on the matches of other queries"
    if plan.query.graph is not None:
        return "it is written by hand"
    if plan.dynamic:
        return "it may change while the stream runs"
    if plan.automaton.negations:
        return "negations look at the events of each run"
    if plan.having is not None:
        return "HAVING looks at the events of each match"
    if plan.query.output is not Output.ALL:
        return f"matches are chosen ({output_text(plan.query, keywords=str.lower)}) among all there are"
    return None


def demands(plan: Plan) -> Demands:
    """Return the demands by state, for a plan without a :func:`reason_against`.

    >>> import acep
    >>> from acep.plan.assume import assumed_plan
    >>> rising = acep.parse("PATTERN SEQ(A a, B b, C c) WHERE b.x > a.x AND c.x > b.x AND c.y = a.y WITHIN 9")
    >>> for here in demands(assumed_plan(rising))[1:3]:
    ...     print({str(register): demand.sign for register, demand in here.items()})
    {'a[last].x': -1, 'a[last].y': 0}
    {'a[last].y': 0, 'b[last].x': -1}
    """
    return demands_of(plan, plan.program, [p.expr for p in plan.predicates], plan.schema.engine_kind)


def demands_of(plan: Plan, program: Program, predicates: Sequence[Expr], kind: Callable[[str], Kind]) -> Demands:
    """Return the demands for a program over other columns, whose kinds ``kind`` returns."""
    state_demands: list[dict[Register, Demand]] = [{} for _ in program.layouts]

    def add(state: int, new_demands: Iterable[tuple[Register, Demand]]) -> bool:
        changed = False
        for register, demand in new_demands:
            if register in program.layouts[state]:
                before = state_demands[state].get(register)
                state_demands[state][register] = unite_demands(before, demand)
                changed = changed or state_demands[state][register] != before
        return changed

    read = _Reading(plan, predicates, kind)
    for state, checks in enumerate(program.ending):
        for check in checks:
            add(state, read.demands(check, program.layouts[state], exact=False))
    for state, steps in enumerate(program.steps):
        for step in steps:
            # Under this strategy a run loses if it must take an event that the other run ignores.
            exact = step.arc.blocking and plan.query.strategy is Strategy.SKIP_TILL_NEXT_MATCH
            kept_registers = tuple(r for r in program.layouts[state] if r.var not in step.forgets)
            for checks, layout in ((step.leaving, program.layouts[state]), (step.binding, kept_registers)):
                for check in checks:
                    add(state, read.demands(check, layout, exact=exact))
    changed = True
    while changed:
        changed = False
        for state in reversed(range(len(state_demands))):
            for step in program.steps[state]:
                changed = add(state, _demands_before(plan, step, state_demands[step.arc.target])) or changed
    return tuple(
        {r: steps[r] for r in layout if r in steps}
        for steps, layout in zip(state_demands, program.layouts, strict=True)
    )


@dataclass(frozen=True)
class _Reading:
    """A reader of a plan's checks, which derives the demands on the registers they read."""

    plan: Plan
    predicates: Sequence[Expr]
    kind: Callable[[str], Kind]

    def demands(self, check: Check, layout: Sequence[Register], *, exact: bool) -> Iterator[tuple[Register, Demand]]:
        """Yield the demands of a check. ``exact``: it must pass for both partial matches or for neither."""
        counter = {check.only[0]} if check.only else set()
        if not (check.reads() - counter).issubset(layout):
            return  # never bound in this state: the predicate is dropped
        if exact or check.loops:
            yield from ((r, EQUAL) for r in check.reads())
            return
        yield from ((r, EQUAL) for r in counter)
        expr = self.predicates[check.predicate]
        sources = dict(zip(leaves_of(expr), check.sources, strict=True))
        fixed = frozenset(leaf for leaf, source in sources.items() if source.kind in ("event", "one"))
        numbers = {leaf: _number(s.registers[0], self.kind) for leaf, s in sources.items() if s.kind == "register"}
        number_kinds = {leaf: kind for leaf, kind in numbers.items() if kind is not None}
        window = self.plan.window
        timed = window.span is not None and not window.counted
        time = self.plan.schema.ts if timed else None
        scene = Scene(self.kind, self.plan.schema.tick_ns, number_kinds, fixed, time, window.span or 0)
        for leaf, demand in demands_on(expr, scene):
            yield from ((r, demand) for r in sources[leaf].registers)


def _number(register: Register, kind: Callable[[str], Kind]) -> Kind | None:
    """Return the kind of the single number in a register, or ``None``. Sums may be no number, or two words wide."""
    if register.kind in ("count", "nonnull"):
        return Kind.INT
    if register.kind not in ("last", "back", "nth", "min", "max"):
        return None
    column_kind = kind(register.name)
    return column_kind if column_kind in NUMBERS else None


def _demands_before(plan: Plan, step: Step, after: Mapping[Register, Demand]) -> list[tuple[Register, Demand]]:
    """Return the demands before an arc that imply the demands ``after`` it."""
    var = step.arc.var
    is_bound_before = plan.arcs.states[step.arc.source].var == var  # surely bound before
    demands_before: list[tuple[Register, Demand]] = []
    for register, demand in after.items():
        if register.var != var or (register.kind == "nth" and register.number == 1 and is_bound_before):
            demands_before.append((register, demand))  # copied
        elif register.kind == "last":
            continue  # set from the event, which is the same for both
        elif register.kind == "back":
            demands_before.append((register.newer, demand))
        else:
            demands_before.append((register, EQUAL))
        if register.kind == "nth" and register.number > 1 and register.var == var:
            demands_before.append((Register("count", var), EQUAL))
        if register.kind == "frames" and register.var == var:
            frame = next(f for f in step.frames if f.register == register)
            demands_before += [(r, EQUAL) for s in frame.sources for r in s.registers]
    return [(register, demand) for register, demand in demands_before if register.var not in step.forgets]


def lines(plan: Plan) -> list[str]:
    """Describe dominance for ``acep explain``: one line for each state that has outgoing arcs, except the start."""
    texts: list[str] = []
    for state, state_demands, layout in zip(plan.arcs.states, demands(plan), plan.program.layouts, strict=True):
        if not state.number or not plan.arcs.arcs[state.number]:
            continue
        words = [_words(register, demand) for register, demand in state_demands.items()]
        if len(words) < len(layout):
            words.append("whatever its other registers are" if words else "whatever its registers are")
        texts.append(f"  state {state.number}: {', '.join(words) or 'any registers'}")
    return texts


def _words(register: Register, demand: Demand) -> str:
    return f"{('equal', 'no less', 'no greater')[demand.sign]} {register}"
