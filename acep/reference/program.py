"""Compile a plan's program to Python functions: the checks and register updates of each transition.

The registers of a partial match are a tuple in the order of its state's layout. ``UNBOUND`` stands for a value that
no event has set yet; a predicate that reads it is ignored (docs/reference/semantics.md, "Missing variables").
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any, Final

from acep.automaton.arcs import Arc
from acep.automaton.registers import Assign, Check, Ignore, Register, Step, ValueSource
from acep.pattern.evaluation import INT_LIMIT
from acep.plan.compile import Plan

__all__ = ["UNBOUND", "Holds", "Move", "Registers", "Row", "Unbound", "ending_events", "ignoring_of", "moves_of"]


class Unbound:
    """The type of :data:`UNBOUND`."""

    def __repr__(self) -> str:
        return "UNBOUND"


UNBOUND: Final = Unbound()
Registers = tuple[Any, ...]
Row = tuple[Any, ...]
Frames = tuple[Any, ...]
Get = Callable[[Registers, Row, Frames], Any]
Holds = Callable[[Registers, Row], bool]
EMPTY: Final[Row] = ()


@dataclass(frozen=True)
class Move:
    """A transition ready to run. ``leaving`` and ``binding`` are (predicate number, function) pairs."""

    arc: Arc
    leaving: tuple[tuple[int, Holds], ...]
    binding: tuple[tuple[int, Holds], ...]
    update: Callable[[Registers, Row], Registers]

    def first_failure(self, registers: Registers, row: Row) -> int | None:
        """Return the number of the first predicate that forbids this move, or ``None`` if it can be made."""
        for number, holds in self.leaving:
            if not holds(registers, EMPTY):
                return number
        for number, holds in self.binding:
            if not holds(registers, row):
                return number
        return None

    def failures(self, registers: Registers, row: Row) -> list[int]:
        """Return the numbers of all predicates that forbid this move, in rising order."""
        leaving = [number for number, holds in self.leaving if not holds(registers, EMPTY)]
        return sorted([*leaving, *(number for number, holds in self.binding if not holds(registers, row))])


def ignoring_of(plan: Plan) -> tuple[tuple[tuple[Ignore, tuple[Holds, ...]], ...], ...]:
    """Return the ignorable arcs of each state with their conditions; empty if the automaton has none."""
    if not any(plan.program.ignoring):
        return ()
    layouts = [{r: i for i, r in enumerate(layout)} for layout in plan.program.layouts]
    return tuple(
        tuple((arc, tuple(_check(plan, check, layout) for check in arc.checks)) for arc in arcs)
        for arcs, layout in zip(plan.program.ignoring, layouts, strict=True)
    )


def ending_events(plan: Plan) -> tuple[tuple[tuple[tuple[str, ...], tuple[Holds, ...]], ...], ...]:
    """Return the events that end the partial matches in each state, as they break a negation for good: their types, and
    the conditions that must hold."""
    layouts = [{r: i for i, r in enumerate(layout)} for layout in plan.program.layouts]
    ended = plan.program.ended or ((),) * len(layouts)
    return tuple(
        tuple(
            (plan.automaton.negations[end.negation].types, tuple(_check(plan, check, layout) for check in end.checks))
            for end in endings
        )
        for endings, layout in zip(ended, layouts, strict=True)
    )


def moves_of(plan: Plan) -> tuple[tuple[tuple[Move, ...], ...], tuple[tuple[Holds, ...], ...]]:
    """Return the moves of each state, and the checks made when a partial match ends there."""
    layouts = [{r: i for i, r in enumerate(layout)} for layout in plan.program.layouts]
    moves = tuple(tuple(_move(plan, step, layouts) for step in steps) for steps in plan.program.steps)
    ending = tuple(tuple(_check(plan, c, layouts[s]) for c in checks) for s, checks in enumerate(plan.program.ending))
    return moves, ending


def _move(plan: Plan, step: Step, layouts: list[dict[Register, int]]) -> Move:
    layout = layouts[step.arc.source]
    kept_layout = {r: i for r, i in layout.items() if r.var not in step.forgets}
    return Move(
        step.arc,
        tuple((c.predicate, _check(plan, c, layout)) for c in step.leaving),
        tuple((c.predicate, _check(plan, c, kept_layout)) for c in step.binding),
        _update(plan, step, kept_layout),
    )


def _get(plan: Plan, source: ValueSource, layout: dict[Register, int], loops: tuple[Register, ...]) -> Get:
    if source.kind == "event":
        i = plan.row.index(source.name)
        return lambda regs, row, frames: row[i]
    if source.kind == "one":
        if not source.name:
            return lambda regs, row, frames: 1
        i = plan.row.index(source.name)
        return lambda regs, row, frames: int(row[i] is not None)
    if source.kind == "frame":
        which, k = loops.index(source.registers[0]), source.index
        return lambda regs, row, frames: frames[which][k]
    if any(r not in layout for r in source.registers):
        return lambda regs, row, frames: UNBOUND
    i = layout[source.registers[0]]
    if source.kind == "average":
        j = layout[source.registers[1]]
        unit = 10 ** (plan.schema.scale(source.registers[0].name) or 0)

        def average(regs: Registers, _row: Row, _frames: Frames) -> Any:
            if regs[i] is UNBOUND:
                return UNBOUND
            return regs[i] / (regs[j] * unit) if regs[j] else None

        return average
    if source.registers[0].kind == "sum":
        # Sums are exact; one that does not fit in 64 bits reads as null.
        def total(regs: Registers, _row: Row, _frames: Frames) -> Any:
            value = regs[i]
            return None if isinstance(value, int) and not -INT_LIMIT <= value < INT_LIMIT else value

        return total
    return lambda regs, row, frames: regs[i]


def _check(plan: Plan, check: Check, layout: dict[Register, int]) -> Holds:
    run = plan.conditions[check.predicate].run
    gets = tuple(_get(plan, s, layout, check.loops) for s in check.sources)
    counter = layout.get(check.only[0], -1) if check.only else -1
    turn = check.only[1] - 1 if check.only else -1
    loops = tuple(layout.get(r, -1) for r in check.loops)

    def holds_once(regs: Registers, row: Row, frames: Frames) -> bool:
        values = []
        for get in gets:
            value = get(regs, row, frames)
            if value is UNBOUND:
                return True
            values.append(value)
        return run(values) is True

    def holds(regs: Registers, row: Row) -> bool:
        if turn >= 0:
            count = regs[counter] if counter >= 0 else UNBOUND
            if (0 if count is UNBOUND else count) != turn:
                return True
        if not loops:
            return holds_once(regs, row, ())
        lists: list[Any] = [regs[i] if i >= 0 else UNBOUND for i in loops]
        if any(frames is UNBOUND for frames in lists):
            return True
        return all(holds_once(regs, row, frames) for frames in product(*lists))

    return holds


def _update(plan: Plan, step: Step, old: dict[Register, int]) -> Callable[[Registers, Row], Registers]:
    parts = tuple(_write(plan, register, step, old) for register in plan.program.layouts[step.arc.target])
    return lambda regs, row: tuple([part(regs, row) for part in parts])


def _write(plan: Plan, register: Register, step: Step, old: dict[Register, int]) -> Callable[[Registers, Row], Any]:
    i = old.get(register, -1)
    for assign in step.assigns:
        if assign.register == register:
            return _assignment(plan, assign, old)

    def read_old(regs: Registers) -> Any:
        return regs[i] if i >= 0 else UNBOUND

    if register.var != step.arc.var:
        return lambda regs, row: read_old(regs)
    if register.kind == "frames":
        definition = next(frame for frame in step.frames if frame.register == register)
        gets = tuple(_get(plan, source, old, ()) for source in definition.sources)

        def append(regs: Registers, row: Row) -> Any:
            frame = tuple(get(regs, row, ()) for get in gets)
            old_frames = read_old(regs)
            if any(v is UNBOUND for v in frame):
                return old_frames
            return (frame,) if old_frames is UNBOUND else (*old_frames, frame)

        return append
    if register.kind == "count":
        return lambda regs, row: 1 if (n := read_old(regs)) is UNBOUND else n + 1
    if register.kind == "back":
        newer = old.get(register.newer, -1)
        return lambda regs, row: regs[newer] if newer >= 0 else UNBOUND
    k = plan.row.index(register.name)
    if register.kind == "last":
        return lambda regs, row: row[k]
    if register.kind == "nth":
        n = register.number - 1
        counter = old.get(Register("count", register.var), -1) if n else -1

        def nth(regs: Registers, row: Row) -> Any:
            old_value = read_old(regs)
            if old_value is not UNBOUND:
                return old_value
            count = regs[counter] if counter >= 0 else UNBOUND
            return row[k] if n == 0 or (0 if count is UNBOUND else count) == n else UNBOUND

        return nth
    fold = FOLDS[register.kind]

    def fold_value(regs: Registers, row: Row) -> Any:
        old_value, value = read_old(regs), row[k]
        if old_value is UNBOUND or old_value is None:
            return fold(None, value)
        return old_value if value is None else fold(old_value, value)

    return fold_value


def _assignment(plan: Plan, assign: Assign, old: dict[Register, int]) -> Callable[[Registers, Row], Any]:
    """Return the function that computes the new value of a register of a hand-written automaton."""
    run = plan.transfers[assign.transfer].run
    gets = tuple(_get(plan, source, old, ()) for source in assign.sources)
    return lambda regs, row: run([get(regs, row, ()) for get in gets])


FOLDS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "sum": lambda total, value: value if total is None else total + value,
    "min": lambda lowest, value: value if lowest is None else min(lowest, value),
    "max": lambda highest, value: value if highest is None else max(highest, value),
    "nonnull": lambda count, value: (count or 0) + (value is not None),
}
