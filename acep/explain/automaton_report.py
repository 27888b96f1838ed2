"""Report on the furthest partial match of a hand-written automaton: its state and arcs, and the event that ended it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from acep.automaton.arcs import Arc
from acep.automaton.graph import OF_REGISTER
from acep.explain.condition_text import input_value
from acep.explain.failure_report import Failure, FailureReport
from acep.explain.recorder import MissRecorder
from acep.pattern import expressions as ex
from acep.pattern.evaluation import Compiled
from acep.pattern.graph_check import REGISTER
from acep.pattern.printing import expression_text
from acep.plan.compile import Plan
from acep.plan.schema import Kind
from acep.reference.engine import Event, MatchNode

__all__ = ["automaton_report", "registers_of"]


def automaton_report(recorder: MissRecorder, best: MatchNode | None) -> FailureReport:
    """Explain how a partial match ended, or (``None``) why no event began one."""
    failed: list[Failure] = []
    state = _state_text(recorder.plan, best)
    for event, kind in recorder.events:
        if best is not None and event.position <= best.trail.event.position:
            continue
        if best is None:
            failed += _attempts(recorder, None, event)
            continue
        if recorder.tracing.has_expired(best, event.position, event.ts):
            return state, failed, _end_text(failed, f"the window closed (event {event.id} is too late)")
        waits, taken = recorder.next_of(best, event, kind)
        failures = list(_attempts(recorder, best, event))
        if taken:
            onward = " or ".join(dict.fromkeys(_name(recorder.plan, node.state) for node in taken))
            return state, failures, f"event {event.id} took the arc to {onward}, which is no nearer to an end"
        if not waits:
            return state, failures, f"event {event.id} took no arc"
        failed += failures  # an ignorable arc let the event pass
    if best is None:
        return state, failed, "no event took an arc from there" if recorder.events else recorder.end_text
    return state, failed, _end_text(failed, recorder.end_text)


def registers_of(plan: Plan, best: MatchNode | None) -> dict[str, Any]:
    """Return the registers that a partial match holds, as they are in the input; at the start (``None``) all."""
    graph = plan.query.graph
    assert graph is not None
    if best is None:
        return {register.name: register.initial for register in graph.registers}
    registers = zip(plan.program.layouts[best.state], best.registers, strict=True)
    return {register.name: _value(plan, register.name, value) for register, value in registers}


def _value(plan: Plan, register: str, value: Any) -> Any:
    """Return the value of a register as it is in the input; a time looks like those of the stream."""
    name = OF_REGISTER + register
    return input_value(plan, plan.schema.ts if plan.schema.kind(name) is Kind.TIMESTAMP else name, value)


def _end_text(failed: list[Failure], ended: str) -> str:
    return ended if failed else f"no event came before {ended}"


def _state_text(plan: Plan, best: MatchNode | None) -> str:
    """Return the state of a partial match, the registers that it holds, and the states to which its arcs lead."""
    number = 0 if best is None else best.state
    registers_text = ", ".join(f"{name} = {_value_text(value)}" for name, value in registers_of(plan, best).items())
    targets = " or ".join(dict.fromkeys(_name(plan, arc.target) for arc in plan.arcs.arcs[number]))
    prefix = "nothing is bound: " if best is None else ""
    where = f"{prefix}state {_name(plan, number)}{f' ({registers_text})' if registers_text else ''}"
    return f"{where}; an arc to {targets} is needed next" if targets else f"{where}, from which no arc takes an event"


def _attempts(recorder: MissRecorder, node: MatchNode | None, event: Event) -> Iterator[Failure]:
    """Yield for each arc why an event did not take it."""
    plan = recorder.plan
    state, registers = (0, ()) if node is None else (node.state, node.registers)
    for move in recorder.tracing.moves[state]:
        name = f"{_name(plan, state)} -> {_name(plan, move.arc.target)}"
        if not move.arc.valid(event.ts):
            yield Failure(event.id, name, _times(plan, move.arc), takes=True)
        elif (number := move.first_failure(registers, event.row)) is not None:
            yield Failure(event.id, name, _failed_fence_text(plan, plan.predicates[number], node, event), takes=True)
        elif plan.arcs.states[move.arc.target].cost_to_end is None:
            yield Failure(event.id, name, "no final state can be reached from there", takes=True)


def _times(plan: Plan, arc: Arc) -> str:
    """Return the times at which an arc is valid, in words."""
    parts = []
    for word, tick in (("from", arc.since), ("before", arc.until)):
        if tick is not None:
            parts.append(f"{word} {input_value(plan, plan.schema.ts, tick)}")
    return f"it is valid {' and '.join(parts)}"


def _failed_fence_text(plan: Plan, fence: Compiled, node: MatchNode | None, event: Event) -> str:
    registers = {} if node is None else registers_of(plan, node)
    value_texts = []
    for leaf in fence.leaves:
        assert isinstance(leaf, ex.Attribute)
        name = leaf.name.removeprefix(OF_REGISTER)
        if leaf.var == REGISTER:
            value = registers.get(name)
        else:
            value = input_value(plan, leaf.name, event.row[plan.row.index(leaf.name)])
        value_texts.append(f"{expression_text(ex.Attribute(leaf.var, None, name))} = {_value_text(value)}")
    values = f" ({', '.join(value_texts)})" if value_texts else ""
    return f"{expression_text(fence.written)} does not hold{values}"


def _value_text(value: Any) -> str:
    return "null" if value is None else str(value)


def _name(plan: Plan, state: int) -> str:
    graph = plan.query.graph
    assert graph is not None
    return plan.arcs.states[state].var or graph.start
