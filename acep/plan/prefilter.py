"""Derive what a window must have to hold a match (Cadonna, Gamper and Böhlen: match windows, 2012, Theorem 2).

These conditions come from the pattern tree: the variables that need events, how many, in which order, and the cost of
a missing one. The native core (``windows.hpp``) passes the events of a window to an engine only if they meet them.
"""

from __future__ import annotations

from collections.abc import Sequence as Several
from dataclasses import dataclass, replace
from fractions import Fraction
from math import gcd

from acep.automaton.thompson import Costs
from acep.pattern.tree import Choice, Component, EventSet, Negation, Node, Output, Repeat, Sequence, StateGraph
from acep.plan.compile import Plan

__all__ = ["Necessary", "Need", "PrefilterGain", "lines", "necessary", "prefilter_gain", "reason_against"]

MOST_NEEDS = 64
MOST_COUNT = 16
MOST_LEVELS = 8
"""Limits on the conditions. Larger ones are cut, which makes them weaker but never wrong."""

LARGE_SET = 5
"""Least size of a set for which match windows pay off with engines that merge or count runs
(docs/internals/native.md)."""


@dataclass(frozen=True)
class Need:
    """A condition: at least ``count`` events that one of ``variables`` may bind. Each missing event costs ``weight``
    (scaled; ``None``: none may be missing)."""

    variables: tuple[str, ...]
    count: int
    weight: int | None


@dataclass(frozen=True)
class Necessary:
    """The conditions of a plan. ``stages``: needs in sequence, in any order within a stage. ``budget`` bounds the
    total cost of missing events, scaled like the weights. ``min_events``: the least number of events of a match."""

    stages: tuple[tuple[Need, ...], ...]
    budget: int
    min_events: int

    def arrays(self, variables: Several[str]) -> dict[str, tuple[int, ...]]:
        """Return the conditions as arrays for the native core; ``variables`` are those of the plan, by number.

        Errors are counted in at most ``MOST_LEVELS`` steps, with weights rounded down.
        """
        needs = [(stage, need) for stage, stage_needs in enumerate(self.stages) for need in stage_needs]
        unit = gcd(*(n.weight for _, n in needs if n.weight is not None)) or 1
        unit *= max(1, -(-(self.budget // unit + 1) // MOST_LEVELS))
        offsets = [0]
        for _, need in needs:
            offsets.append(offsets[-1] + len(need.variables))
        return {
            "need_stage": tuple(stage for stage, _ in needs),
            "need_count": tuple(n.count for _, n in needs),
            "need_weight": tuple(
                -1 if n.weight is None or n.weight > self.budget else n.weight // unit for _, n in needs
            ),
            "need_vars": tuple(variables.index(v) for _, n in needs for v in n.variables),
            "need_vars_at": tuple(offsets),
            "need_meta": (self.budget // unit, min(self.min_events, MOST_NEEDS)),
        }


@dataclass(frozen=True)
class PrefilterGain:
    """A decision whether match windows pay off for a plan, with the reason."""

    is_useful: bool
    why: str


def reason_against(plan: Plan) -> str | None:
    """Return why no event of a plan's stream may be filtered out; ``None`` if events may be."""
    query = plan.query
    if plan.window.span is None:
        return "there is no window"
    if query.strategy.contiguous:
        return "under contiguity the events in between matter"
    if plan.automaton.negations:
        return "events that break a negation matter"
    if query.output is not Output.ALL:
        return "which matches are given is decided as events pass"
    if plan.sources:
        return "it runs on the matches of other queries"
    if plan.dynamic:
        return "it may change while the stream runs"
    return None


def necessary(plan: Plan) -> Necessary | None:
    """Return the conditions for a window to hold a match of the plan (Theorem 2, with the transitive order).

    Return ``None`` if events may not be filtered out, or if there is no condition.

    >>> import acep
    >>> from acep.plan.assume import assumed_plan
    >>> plan = assumed_plan(acep.parse("PATTERN SEQ({C c, P+ p[]}, B b) WITHIN 15"))
    >>> for stage in necessary(plan).stages:
    ...     print([(*need.variables, need.count) for need in stage])
    [('c', 1), ('p', 1)]
    [('b', 1)]
    """
    if reason_against(plan) is not None:
        return None
    costs = plan.automaton.costs
    stages = _stages(plan.query.pattern, costs)
    min_events = _min_event_count([need for stage in stages for need in stage], costs.budget)
    capped: list[tuple[Need, ...]] = []
    room = MOST_NEEDS
    for stage in stages:
        stage_needs = tuple(replace(need, count=min(need.count, MOST_COUNT)) for need in stage[:room])
        room -= len(stage_needs)
        if stage_needs:
            capped.append(stage_needs)
    return Necessary(tuple(capped), costs.budget, min_events) if min_events else None


def prefilter_gain(plan: Plan, engine: str = "nodes") -> PrefilterGain:
    """Decide whether match windows should filter the events of an engine. The rule uses the plan alone, since the
    frequency of events is unknown beforehand.

    The node engine visits every live run, so each filtered event saves much; where events are not rare, the core soon
    stops filtering. Events cannot be rare if all variables bind the same types. The other engines do about as much work
    for an event as the windows do. Large sets are an exception, as a run may be at each subset of the set.

    >>> import acep
    >>> from acep.plan.assume import assumed_plan
    >>> plan = assumed_plan(acep.parse("PATTERN SEQ(A a, B b) WITHIN 9"))
    >>> prefilter_gain(plan).is_useful, prefilter_gain(plan, "merged").is_useful
    (True, False)
    >>> prefilter_gain(assumed_plan(acep.parse("PATTERN SEQ(A a, A b) WITHIN 9"))).why
    'all its variables may bind events of the same types'
    """
    against = reason_against(plan)
    if against is not None:
        return PrefilterGain(False, against)
    conditions = necessary(plan)
    if conditions is None or conditions.min_events < 2:
        return PrefilterGain(False, "a single event may be a match")
    if engine in ("nodes", "dominance"):
        if len({frozenset(letter.types) for letter in plan.automaton.letters}) == 1:
            return PrefilterGain(False, "all its variables may bind events of the same types")
        return PrefilterGain(True, "an event kept back spares a look at each live run")
    if engine == "search":
        return PrefilterGain(False, "an event costs this engine little")
    largest = max(map(len, conditions.stages))
    if largest < LARGE_SET:
        return PrefilterGain(False, f"an event costs this engine little where no set has {LARGE_SET} variables")
    return PrefilterGain(True, f"a set of {largest} variables has 2^{largest} places at which runs may stand")


def lines(plan: Plan) -> list[str]:
    r"""Describe the conditions in words, for ``acep explain``.

    >>> import acep
    >>> from acep.plan.assume import assumed_plan
    >>> query = acep.parse("PATTERN SEQ({C c, P{2,} p[]}, B b) WITHIN 15", errors=1)
    >>> print(*lines(assumed_plan(query)), sep="\n")
    a window can hold a match only with 3 events or more, and
      1. c, p 2 times, in any order
      2. b
    of which events that cost 1 or less in all may be missing
    """
    conditions = necessary(plan)
    if conditions is None:
        return [reason_against(plan) or "a window needs no event in particular"]
    texts = [f"a window can hold a match only with {_events(conditions.min_events)} or more, and"]
    for number, stage in enumerate(conditions.stages, 1):
        needs = ", ".join(_need(need) for need in stage)
        texts.append(f"  {number}. {needs}{', in any order' if len(stage) > 1 else ''}")
    if conditions.budget:
        cost = Fraction(conditions.budget, plan.automaton.costs.scale)
        texts.append(f"of which events that cost {cost} or less in all may be missing")
    return texts


def _events(count: int) -> str:
    return "1 event" if count == 1 else f"{count} events"


def _need(need: Need) -> str:
    name = " or ".join(need.variables)
    return name if need.count == 1 else f"{name} {need.count} times"


def _min_event_count(needs: Several[Need], budget: int) -> int:
    """Return the least number of events in a match: the budget is spent on the lightest missing events first."""
    total = sum(need.count for need in needs)
    for weight, count in sorted((n.weight, n.count) for n in needs if n.weight is not None):
        n_missing = min(count, budget // weight)
        total -= n_missing
        budget -= n_missing * weight
        if n_missing < count:
            break
    return total


def _stages(node: Node, costs: Costs) -> list[list[Need]]:
    """Return the needs, in order, that every path through a part of the pattern meets or pays for."""
    match node:
        case StateGraph():
            return []
        case Component(var=var):
            return [[Need((var,), 1, costs.weight(var))]]
        case Negation() | Repeat(low=0):
            return []
        case Repeat(item=Component(var=var), low=low):
            return [[Need((var,), low, costs.weight(var))]]
        case Repeat(item=item, low=low):
            # Present iterations count first. A missing iteration costs at least as much as all its parts.
            stages = _stages(item, costs)
            return [stage for _ in range(min(low, MOST_NEEDS)) for stage in stages]
        case Sequence(items=items):
            return [stage for item in items for stage in _stages(item, costs)]
        case EventSet(items=items):
            merged: dict[str, Need] = {}
            for item in items:
                for [need] in _stages(item, costs):
                    earlier_need = merged.get(need.variables[0])
                    merged[need.variables[0]] = (
                        replace(need, count=need.count + earlier_need.count) if earlier_need else need
                    )
            return [list(merged.values())] if merged else []
        case Choice(items=items):
            alternatives = [[need for stage in _stages(item, costs) for need in stage] for item in items]
            if not all(alternatives):
                return []
            names = dict.fromkeys(v for alternative in alternatives for need in alternative for v in need.variables)
            weights = [need.weight for alternative in alternatives for need in alternative if need.weight is not None]
            count = min(sum(need.count for need in alternative) for alternative in alternatives)
            return [[Need(tuple(names), count, min(weights, default=None))]]
