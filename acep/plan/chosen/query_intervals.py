"""Make of a query an automaton whose conditions read the row, or where events follow one another rows before it.

Those of the longest and of the shortest matches may also read the first row of the match. As they are functions of
these rows, the matches that OUTPUT chooses are found by passes over rows (docs/internals/row_patterns.md, "SASE+
queries").
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from acep.automaton.registers import Check, Register, Step, ValueSource
from acep.pattern import expressions as ex
from acep.pattern.tree import Output, Strategy
from acep.pattern.walk import children, with_children
from acep.plan.chosen.interval_automaton import OF_FIRST, Copies, IntervalsPlan, IntervalStep, RowCondition, RowFilter
from acep.plan.compile import Plan

__all__ = ["intervals_of", "reason_against_intervals"]

MOST_STATES = 64
"""The most states of a pattern whose sets are single words in the native core."""

VARYING = -2
"""The distance of a value that stands at several distances, or is computed from several events."""

PLACES = ("last", "back", "nth")
"""The kinds of registers that keep the event itself."""

Distances = dict[Register, int]
"""How many rows before the last bound one the event of a register stands; an unbound register is left out. Of a
counter, the number of events."""


class _NotIntervalsError(Exception):
    """There is no such automaton, for the reason that the error names."""


def reason_against_intervals(plan: Plan) -> str | None:
    """Return why the matches that OUTPUT chooses are not found by passes over rows, or ``None`` if they are.

    >>> import acep
    >>> from acep.plan.assume import assumed_plan
    >>> rise = "PATTERN SEQ(a x, b+ y[]) WHERE partition_contiguity(x, y[]) { y[i].v > y[i-1].v } OUTPUT NON OVERLAP"
    >>> reason_against_intervals(assumed_plan(acep.parse(rise)))
    >>> reason_against_intervals(assumed_plan(acep.parse(rise.replace("y[i-1].v", "x.v"))))
    'the condition `y[i].v > x.v` compares events that are not at a fixed distance'
    """
    try:
        _intervals_of(plan)
    except _NotIntervalsError as reason:
        return str(reason)
    return None


def intervals_of(plan: Plan) -> IntervalsPlan | None:
    """Return the automaton of a plan; ``None`` if there is none."""
    try:
        return _intervals_of(plan)
    except _NotIntervalsError:
        return None


def _intervals_of(plan: Plan) -> IntervalsPlan:
    _check(plan)
    automaton = _DistanceAutomaton(plan)
    automaton.follow()
    copies = Copies(automaton.steps_by_state(), automaton.blocking(), automaton.breaking())
    if not copies.make(MOST_STATES):
        raise _NotIntervalsError(f"it has more than {MOST_STATES} states")
    ends = [
        (
            copies.numbers[number, frozenset()],
            RowFilter((), automaton.conditions(checks, distances, automaton.of_first[number], after=0)),
        )
        for number, distances in sorted(automaton.distances.items())
        if any(accept.cost == 0 for accept in plan.arcs.states[number].accepts)
        for checks in [plan.program.ending[number]]
    ]
    output = plan.query.output
    order = "all" if copies.skips else "time" if output is Output.NON_OVERLAP else ""
    return IntervalsPlan(tuple(copies.arcs), tuple(ends), tuple(copies.skips), output, plan.query.skip, order)


def _check(plan: Plan) -> None:
    query, automaton = plan.query, plan.automaton
    refusals = {
        "all of its matches are given": not query.output.is_sequential,
        "its automaton is written by hand, or may change": query.graph is not None or plan.dynamic or bool(plan.parts),
        "its events are matches": bool(plan.sources),
        "events may be missing": bool(automaton.costs.budget),
        "a negation stands after the last event": any(
            accept.crossings for state in plan.arcs.states for accept in state.accepts if accept.cost == 0
        ),
        "events of other partitions break its matches": query.strategy is Strategy.STRICT_CONTIGUITY
        and bool(plan.keys),
        "HAVING looks at whole matches": plan.having is not None,
    }
    for reason, is_given in refusals.items():
        if is_given:
            raise _NotIntervalsError(reason)


@dataclass
class _DistanceAutomaton:
    """The steps of a plan that cost nothing, and for each state that they reach where its registers stand."""

    plan: Plan
    steps: list[Step] = field(init=False)
    distances: dict[int, Distances] = field(init=False)
    of_first: dict[int, frozenset[Register]] = field(init=False)  # by state: those whose event is the first one

    def __post_init__(self) -> None:
        states = self.plan.arcs.states
        all_steps = [step for steps in self.plan.program.steps for step in steps]
        self.steps = [step for step in all_steps if step.arc.weight == 0 and states[step.arc.target].cost_to_end == 0]
        self.distances, self.of_first = {0: {}}, {0: frozenset()}

    def follow(self) -> None:
        """Find the distances of all states."""
        pending = [0]
        while pending:
            source = pending.pop()
            for step in self.steps:
                if step.arc.source != source:
                    continue
                target = step.arc.target
                distances, of_first = self._distances_after(step), self._of_first_after(step)
                distances_so_far = self.distances.get(target)
                if distances_so_far is not None:
                    distances = _unite_distances(distances_so_far, distances)
                    of_first &= self.of_first[target]
                if distances != distances_so_far or of_first != self.of_first[target]:
                    self.distances[target], self.of_first[target] = distances, of_first
                    pending.append(target)

    def _of_first_after(self, step: Step) -> frozenset[Register]:
        """Return the registers whose event is the first one of the match after a step."""
        arc, before = step.arc, self.of_first[step.arc.source]

        def is_first(register: Register) -> bool:
            if not arc.source:
                is_nth = register.kind == "nth" and register.number == 1
                return register.var == arc.var and (register.kind == "last" or is_nth)
            if register.var != arc.var or register.kind == "nth":
                return register in before and register.var not in step.forgets
            return register.kind == "back" and register.newer in before

        layout = self.plan.program.layouts[arc.target]
        return frozenset(register for register in layout if register.kind in PLACES and is_first(register))

    def _distances_after(self, step: Step) -> Distances:
        """Return the distances after a step."""
        before = _without_variables(self.distances[step.arc.source], step.forgets)
        after: Distances = {}
        for register in self.plan.program.layouts[step.arc.target]:
            distance = (
                _distance_after_own(register, before)
                if register.var == step.arc.var
                else _distance_after_other(register, before)
            )
            if distance is not None:
                after[register] = distance
        return after

    def steps_by_state(self) -> dict[int, list[IntervalStep]]:
        """Return the steps of each state that is reached, with the negations that they pass."""
        steps: dict[int, list[IntervalStep]] = {}
        for step in self.steps:
            arc = step.arc
            if arc.source not in self.distances:
                continue
            passed = frozenset(crossing.negation for crossing in arc.crossings)
            if passed and not arc.source:
                raise _NotIntervalsError("a negation stands before the first event")
            interval_step = IntervalStep(arc.source, arc.target, arc.var, self.test(step), passed)
            steps.setdefault(arc.source, []).append(interval_step)
        return steps

    def blocking(self) -> dict[int, tuple[RowFilter, ...]] | None:
        """Return for each state the rows that it must bind; ``None``: it leaves none out."""
        strategy = self.plan.query.strategy
        if strategy.contiguous:
            return None
        is_next = strategy is Strategy.SKIP_TILL_NEXT_MATCH
        return {
            number: tuple(self.test(step) for step in self.plan.program.steps[number] if is_next and step.arc.blocking)
            for number in self.distances
        }

    def breaking(self) -> list[RowFilter]:
        """Return the rows that break each negation. Under contiguity there are none between bound rows."""
        tests, first_variable = [], self._first_variable()
        for negation, predicates in zip(self.plan.automaton.negations, self.plan.negated, strict=True):
            conditions = []
            for predicate in predicates:
                slots: dict[ex.Leaf, tuple[str, str, int]] = {}
                for leaf in predicate.leaves:
                    if isinstance(leaf, ex.Attribute) and leaf.var == negation.var:
                        slots[leaf] = _slot(leaf.name, 0)
                    elif isinstance(leaf, ex.Attribute) and leaf.index in (None, 1) and leaf.var == first_variable:
                        slots[leaf] = _slot(leaf.name, OF_FIRST)
                if len(slots) < len(predicate.leaves):
                    if self.plan.query.strategy.contiguous:
                        continue
                    raise _NotIntervalsError(f"the negation `{negation.var}` compares events")
                conditions.append(
                    RowCondition(_rename_leaves(predicate.expr, slots), tuple(dict.fromkeys(slots.values())))
                )
            tests.append(RowFilter(negation.types, tuple(conditions)))
        return tests

    def _first_variable(self) -> str | None:
        """Return the variable that binds the first event of each match, and no other event; ``None``: there is none,
        or conditions may not read the first event."""
        first_variables = {step.arc.var for step in self.steps if not step.arc.source}
        later_variables = {step.arc.var for step in self.steps if step.arc.source}
        is_allowed = self.plan.query.output is not Output.NON_OVERLAP
        is_single = len(first_variables) == 1 and not first_variables & later_variables
        return first_variables.pop() if is_allowed and is_single else None

    def test(self, step: Step) -> RowFilter:
        """Return the rows that a step may bind."""
        before, of_first = self.distances[step.arc.source], self.of_first[step.arc.source]
        leaving = self.conditions(step.leaving, before, of_first, after=1)
        binding = self.conditions(step.binding, _without_variables(before, step.forgets), of_first, after=1)
        return RowFilter(step.arc.types, (*leaving, *binding))

    def conditions(
        self, checks: tuple[Check, ...], distances: Distances, of_first: frozenset[Register], *, after: int
    ) -> tuple[RowCondition, ...]:
        """Return checks as conditions of the row that stands ``after`` rows after the one that was bound last. One that
        reads an event that is not bound is dropped."""
        conditions = []
        for check in checks:
            expr = self.plan.predicates[check.predicate].expr
            if check.only is not None:
                counter, number = check.only
                count = distances.get(counter, 0)
                if count == VARYING:
                    raise _NotIntervalsError("a condition of an event by its number stands in a repetition")
                if count != number - 1:
                    continue
            read = {register for source in check.sources for register in source.registers} | set(check.loops)
            if not read <= distances.keys():
                continue
            places = {source: self._place(source, distances, of_first, after) for source in check.sources}
            conditions.append(self._condition(check, expr, places))
        return tuple(conditions)

    def _refusal(self, check: Check) -> str:
        """Return the reason that a check is against passes over rows."""
        from acep.pattern.printing import expression_text  # only what is refused is shown

        text = expression_text(self.plan.predicates[check.predicate].written)
        return f"the condition `{text}` compares events that are not at a fixed distance"

    def _place(
        self, source: ValueSource, distances: Distances, of_first: frozenset[Register], after: int
    ) -> tuple[str, int] | None:
        """Return the column of a value, and how many rows before the row it stands; ``None`` if it is at no fixed
        distance, and not in the first row."""
        place = _place_of(source, distances, after)
        if place is not None and (not place[1] or self.plan.query.strategy.contiguous):
            return place
        is_first = source.kind == "register" and of_first.issuperset(source.registers)
        if is_first and self.plan.query.output is not Output.NON_OVERLAP:
            return source.registers[0].name or "", OF_FIRST
        return None

    def _condition(
        self, check: Check, expr: ex.Expr, places: Mapping[ValueSource, tuple[str, int] | None]
    ) -> RowCondition:
        slots: dict[ex.Leaf, tuple[str, str, int]] = {}
        for leaf, source in zip(self.plan.predicates[check.predicate].leaves, check.sources, strict=True):
            place = places[source]
            if place is None or check.loops:
                raise _NotIntervalsError(self._refusal(check))
            name, distance = place
            slots[leaf] = _slot(name, distance)
        return RowCondition(_rename_leaves(expr, slots), tuple(dict.fromkeys(slots.values())))


def _slot(name: str, distance: int) -> tuple[str, str, int]:
    """Return the name of a value in a condition, its column and its distance."""
    if distance == OF_FIRST:
        return f"{name} of the first", name, distance
    return f"{name} {distance} before" if distance else name, name, distance


def _is_counter(register: Register) -> bool:
    return register.kind == "count"


def _without_variables(distances: Distances, variables: tuple[str, ...]) -> Distances:
    return {register: distance for register, distance in distances.items() if register.var not in variables}


def _unite_distances(one_way: Distances, other_way: Distances) -> Distances:
    """Return the distances of a state that is reached in two ways."""
    return {
        register: one_way[register] if one_way.get(register) == other_way.get(register) else VARYING
        for register in {**one_way, **other_way}
    }


def _distance_after_other(register: Register, before: Distances) -> int | None:
    """Return the distance of a register after an event of another variable."""
    distance = before.get(register)
    if distance is None or distance == VARYING or _is_counter(register):
        return distance
    return distance + 1


def _distance_after_own(register: Register, before: Distances) -> int | None:
    """Return the distance of a register after an event of its variable; ``None`` if it is unbound."""
    match register.kind:
        case "last":
            return 0
        case "back":
            return _distance_after_other(register.newer, before)
        case "count":
            count = before.get(register, 0)
            return VARYING if count == VARYING else count + 1
        case "nth":
            if register in before:
                return _distance_after_other(register, before)
            count = 0 if register.number == 1 else before.get(Register("count", register.var), 0)
            return VARYING if count == VARYING else 0 if count == register.number - 1 else None
    return VARYING


def _place_of(source: ValueSource, distances: Distances, after: int) -> tuple[str, int] | None:
    """Return the column that a value is read from, and how many rows before the row it stands; ``None`` if it is not at
    a fixed distance."""
    if source.kind == "event":
        return source.name, 0
    if source.kind != "register":
        return None
    (register,) = source.registers
    distance = distances[register]
    if distance == VARYING or register.kind not in PLACES:
        return None
    return register.name, distance + after


def _rename_leaves(expr: ex.Expr, slots: Mapping[ex.Leaf, tuple[str, str, int]]) -> ex.Expr:
    """Return an expression whose references are attributes with the names of their slots."""
    if isinstance(expr, ex.Attribute | ex.Length | ex.Aggregate):
        return ex.Attribute("", None, slots[expr][0])
    return with_children(expr, [_rename_leaves(part, slots) for part in children(expr)])
