"""Warn of queries that cost many matches or partial matches, or much memory, wherever they run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from math import prod

from acep.pattern.printing import expression_text, letters_text, output_text, pattern_text
from acep.pattern.tree import Component, EventSet, Node, Output, Repeat, Strategy, Within
from acep.pattern.walk import components, nodes
from acep.plan.chosen.query_order import order_of_query
from acep.plan.lint.changes import with_bound, with_infinite_weights
from acep.plan.lint.finding import ANOTHER, EACH_ANOTHER, ChangedQuery, QueryView, Remark

__all__ = [
    "any_match_repetition",
    "bare_name_in_set",
    "begins_anywhere",
    "chosen_from_all",
    "decided_late",
    "each_value_kept",
    "large_set",
    "last_repetition",
    "many_states",
    "no_window",
    "repetitions_share_events",
    "single_events_match",
]

MANY_STATES = 1000
MANY_PLACES = 64
MANY_TIMES = 16


def any_match_repetition(view: QueryView) -> Iterator[Remark]:
    """Warn of long repetitions under skip till any match, which give exponentially many matches."""
    if view.query.strategy is not Strategy.SKIP_TILL_ANY_MATCH:
        return
    next_match = replace(view.query, strategy=Strategy.SKIP_TILL_NEXT_MATCH)
    for node in _long_repetitions(view):
        bound = with_bound(view.query, node)
        yield Remark(
            f"`{_node_text(view, node)}` under skip till any match: each choice of the events that it can bind is a "
            "match of its own, up to 2^n matches for n events in a window",
            f"use skip till next match, or give the repetition a small upper bound such as {bound.name}: "
            f"{EACH_ANOTHER}",
            view.place(components(node)[0].var),
            (ChangedQuery("skip till next match", next_match), bound),
        )


def last_repetition(view: QueryView) -> Iterator[Remark]:
    """Warn of a long repetition at the end under skip till next match: each of its events ends a match."""
    if view.query.strategy is not Strategy.SKIP_TILL_NEXT_MATCH:
        return
    ends = {s.var for s in view.plan.arcs.states if any(accept.cost == 0 for accept in s.accepts)}
    for node in _long_repetitions(view):
        var = components(node)[-1].var
        if var in ends:
            bound, changes = with_bound(view.query, node), list[ChangedQuery]()
            if view.query.output is Output.ALL:
                changes.append(ChangedQuery("NON OVERLAP", replace(view.query, output=Output.NON_OVERLAP)))
            yield Remark(
                f"`{_node_text(view, node)}` ends the pattern: each event that it binds ends another match, for each "
                "beginning, up to n^2/2 matches for n events in a window",
                f"give the repetition an upper bound such as {bound.name}, let an event follow that must be there, or "
                f"choose with OUTPUT NON OVERLAP: {EACH_ANOTHER}",
                view.place(components(node)[0].var),
                (bound, *changes),
            )


def chosen_from_all(view: QueryView) -> Iterator[Remark]:
    """Warn of a choice of matches apart from each other, of long repetitions, for which all matches are made."""
    repetitions = _long_repetitions(view)
    if not (view.query.output.is_sequential and repetitions):
        return
    order = order_of_query(view.plan)
    if not order.is_ordered:
        shortest = replace(view.query, output=Output.SHORTEST_NON_OVERLAP, skip=None)
        may_be_shortest = order_of_query(replace(view.plan, query=shortest)).is_ordered
        instead = f"take the shortest match from each start by OUTPUT {output_text(shortest)}, "
        yield Remark(
            f"OUTPUT {output_text(view.query)} chooses among all matches, which are made "
            f"first, up to n^2/2 of a series of n events: {order.why}",
            f"{instead if may_be_shortest else ''}bound the series by WITHIN, or ask MATCH_RECOGNIZE, which finds the "
            f"preferred match alone: {EACH_ANOTHER}",
            view.place(components(repetitions[0])[0].var),
            (ChangedQuery("SHORTEST NON OVERLAP", shortest),) if may_be_shortest else (),
        )


def repetitions_share_events(view: QueryView) -> Iterator[Remark]:
    """Warn of two long repetitions that can bind the same events, and of repetitions with ambiguous iterations."""
    for first, second in combinations(_long_repetitions(view), 2):
        nested = second in list(nodes(first))
        if not nested and _share_types(first, second):
            yield Remark(
                f"`{_node_text(view, first)}` and `{_node_text(view, second)}` can bind the same events: n of them "
                "can be divided between the two in n ways",
                f"tell their events apart by type or by a condition, or make them one repetition: {EACH_ANOTHER}",
                view.place(components(second)[0].var),
            )
    ambiguous: dict[str, None] = {}
    for state_arcs in view.plan.arcs.arcs:
        for one_arc, two_arc in combinations([arc for arc in state_arcs if arc.weight == 0], 2):
            if one_arc.var == two_arc.var and one_arc.resets != two_arc.resets:
                ambiguous.setdefault(one_arc.var)
    for var in ambiguous:
        yield Remark(
            f"an event bound to `{var}` may go on with the iteration or begin a new one: n events can be cut into "
            "iterations in up to 2^n ways",
            f"leave out one of the two repetitions, or end each iteration with an event that must be there: "
            f"{EACH_ANOTHER}",
            view.place(var),
        )


def no_window(view: QueryView) -> Iterator[Remark]:
    """Warn of a missing window, without which partial matches never expire."""
    query, plan = view.query, view.plan
    waits = any(state_arcs for state_arcs in plan.arcs.arcs[1:])
    # Under contiguity a run ends unless the next event extends it, so only unbounded repetitions are long.
    brief = query.strategy.contiguous and not any(
        isinstance(n, Repeat) and n.high is None for n in nodes(query.pattern)
    )
    if query.within is None and waits and not brief:
        follows = query.output.is_sequential and order_of_query(plan).is_tied
        yield Remark(
            "there is no window: a partial match is kept for as long as the stream runs"
            + (", and each event that may begin one is followed to its end, up to n^2/2 steps for n events" * follows),
            f"say how long a match may last, as in WITHIN 1 hour or WITHIN 100 EVENTS: {ANOTHER}",
            changes=(ChangedQuery("WITHIN 100 EVENTS", replace(query, within=Within(Fraction(100), "events"))),),
        )


def large_set(view: QueryView) -> Iterator[Remark]:
    """Warn of a set with very many combinations of items."""
    for node in nodes(view.query.pattern):
        if not isinstance(node, EventSet):
            continue
        places = prod(_distinct_counts(item) + 1 for item in node.items)
        if places > MANY_PLACES:
            yield Remark(
                f"the set `{_node_text(view, node)}` needs {places:,} places: one for each combination of what has "
                "come",
                f"use fewer items or smaller repetitions, or split the set into a sequence of sets: {EACH_ANOTHER}",
                view.place(components(node)[0].var),
            )


def many_states(view: QueryView) -> Iterator[Remark]:
    """Warn of repetitions and sets that expand to a large automaton."""
    arcs = view.plan.arcs
    if len(arcs.states) > MANY_STATES:
        yield Remark(
            f"the pattern becomes {len(arcs.states):,} states and {sum(map(len, arcs.arcs)):,} arcs, "
            "tried event by event",
            f"bounded repetitions and sets are written out: make their bounds smaller, but {ANOTHER}",
        )


def single_events_match(view: QueryView) -> Iterator[Remark]:
    """Warn of an error budget that lets a single event match."""
    arcs, costs = view.plan.arcs, view.plan.automaton.costs
    min_errors: dict[str, int] = {}  # by variable, the error of a match of this one event
    for arc in arcs.arcs[0]:
        for accept in arcs.states[arc.target].accepts:
            missing = arc.weight + accept.cost
            min_errors[arc.var] = min(missing, min_errors.get(arc.var, missing))
    if not min_errors or not 0 < min(min_errors.values()) <= costs.budget:
        return
    var = min(min_errors, key=lambda v: min_errors[v])
    errors = costs.unscale(costs.budget)
    fewer = max(view.query.errors - 1, Fraction(0))
    yield Remark(
        f"with {errors} error{'' if errors == 1 else 's'} a single event matches: "
        f"`{var}` alone misses only {costs.unscale(min_errors[var])}",
        f"allow fewer errors, or give more weight to the letters that must be there: {EACH_ANOTHER}",
        view.place(var),
        (ChangedQuery(f"errors={float(fewer):g}", replace(view.query, errors=fewer)),),
    )


def begins_anywhere(view: QueryView) -> Iterator[Remark]:
    """Warn of errors that let a match begin at a later letter, so that more events begin a run."""
    arcs = view.plan.arcs.arcs[0]
    first = dict.fromkeys(arc.var for arc in arcs if arc.weight == 0)
    later = [var for var in dict.fromkeys(arc.var for arc in arcs) if var not in first]
    if later:
        names = ", ".join(f"`{var}`" for var in later)
        yield Remark(
            f"with errors a match may begin at {names}: each such event begins a partial match",
            "give the first letters an infinite weight, so that they must be there, as in weights={"
            + ", ".join(f"'{var}': math.inf" for var in first)
            + f"}}: {ANOTHER}",
            view.place(later[0]),
            (ChangedQuery("these weights", with_infinite_weights(view.query, first)),),
        )


def decided_late(view: QueryView) -> Iterator[Remark]:
    """Warn of conditions on a whole repetition, which are decided only when it has been left."""
    program = view.plan.program
    steps = [step for state_steps in program.steps for step in state_steps]
    late = {check.predicate for step in steps for check in step.leaving}
    late |= {check.predicate for checks in program.ending for check in checks}
    for number in sorted(late - {check.predicate for step in steps for check in step.binding}):
        expr = view.plan.predicates[number].expr
        yield Remark(
            f"`{expression_text(expr)}` is decided only when the repetition has been left: until then no event rules "
            "a partial match out",
            "where the condition can only get worse, say it of each event, as in a[i].x < 5, or by bounds such as "
            f"{{1,3}}: unless it means the same, {ANOTHER}",
            expr.span,
        )


def each_value_kept(view: QueryView) -> Iterator[Remark]:
    """Warn of conditions that compare each event of a repetition with a later variable."""
    kept_variables: dict[int, dict[str, None]] = {}
    for layout in view.plan.program.layouts:
        for register in layout:
            if register.kind == "frames":
                kept_variables.setdefault(register.number, {}).setdefault(register.var)
    for number, names in sorted(kept_variables.items()):
        expr = view.plan.predicates[number].expr
        listed = " and ".join(f"`{var}`" for var in names)
        yield Remark(
            f"`{expression_text(expr)}` speaks of each event of {listed}: their values are all kept, and looked at one "
            "by one",
            "compare with one value, as max(a[].x), min(a[].x), a[1].x or a[a.LEN].x: unless it means the same, "
            f"{ANOTHER}",
            expr.span,
        )


def bare_name_in_set(view: QueryView) -> Iterator[Remark]:
    """Warn of a bare name in a set that counts as a variable of any type because conditions use it."""
    for node in nodes(view.query.pattern):
        for item in node.items if isinstance(node, EventSet) else ():
            component = item.item if isinstance(item, Repeat) else item
            if not isinstance(component, Component) or component.types:
                continue
            declared = view.places.get(component.var)
            if declared is not None and declared.bare:
                yield Remark(
                    f"`{component.var}` in a set is a variable, as conditions speak of it: it binds events of any type",
                    f"ANY {component.var} says the same; if it is a type, name the variable too, as in "
                    f"{component.var} x: {ANOTHER}",
                    declared.span,
                )


# ---- Helpers for parts of patterns.


def _node_text(view: QueryView, node: Node) -> str:
    return letters_text(node) if view.query.letters else pattern_text(node)


def _long_repetitions(view: QueryView) -> list[Repeat]:
    return [
        node
        for node in nodes(view.query.pattern)
        if isinstance(node, Repeat) and (node.high is None or node.high > MANY_TIMES)
    ]


def _share_types(first: Node, second: Node) -> bool:
    """Return whether some event could be bound in both nodes."""
    types = [[c.types for c in components(node) if isinstance(c, Component)] for node in (first, second)]
    return any(not a or not b or set(a) & set(b) for a in types[0] for b in types[1])


def _distinct_counts(item: Component | Repeat) -> int:
    """Return the largest number of events of an item that its places distinguish."""
    if isinstance(item, Component):
        return 1
    return max(item.low, 1) if item.high is None else item.high
