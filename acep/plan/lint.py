"""What will cost a query dearly whatever the stream is, in words, with what to do about it.

Each rule is a plain function; they are asked in the order of ``RULES``. None of them is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from acep.automaton.arcs import Arcs, compose
from acep.automaton.thompson import Thompson, build
from acep.pattern.closure import partition_attributes
from acep.pattern.printing import letters_text, pattern_text
from acep.pattern.tree import Query, Repeat, Strategy
from acep.pattern.walk import nodes

__all__ = ["RULES", "Finding", "lint"]

MANY_STATES = 1000
MANY_TIMES = 16


@dataclass(frozen=True)
class Finding:
    """Something costly: what it is, and what to do about it."""

    rule: str
    message: str
    hint: str

    def __str__(self) -> str:
        return f"{self.message}\n  hint: {self.hint}"


@dataclass(frozen=True)
class _Looked:
    """A query with what it becomes."""

    query: Query
    automaton: Thompson
    arcs: Arcs


def lint(query: Query) -> list[Finding]:
    """The costly constructs of a query, those of its sources first.

    >>> from acep.pattern.letters import regex
    >>> [finding.rule for finding in lint(regex("ab*", within=None))]
    ['any_match_repetition', 'no_window', 'no_partition']
    >>> lint(regex("ab", within=5, by="user"))
    []
    """
    found = [finding for source in query.sources for finding in lint(source.query)]
    automaton = build(query)
    looked = _Looked(query, automaton, compose(automaton))
    return found + [finding for rule in RULES for finding in rule(looked)]


def any_match_repetition(looked: _Looked) -> Iterator[Finding]:
    """Skip till any match with a repetition that can bind many events: exponentially many matches."""
    if looked.query.strategy is not Strategy.SKIP_TILL_ANY_MATCH:
        return
    shown = letters_text if looked.query.letters else pattern_text
    for node in nodes(looked.query.pattern):
        if isinstance(node, Repeat) and (node.high is None or node.high > MANY_TIMES):
            yield Finding(
                "any_match_repetition",
                f"`{shown(node)}` under skip till any match: each choice of the events that it can bind is a "
                "match of its own, up to 2^n matches for n events in a window",
                "use skip till next match, or give the repetition a small upper bound such as {1,5}",
            )


def no_window(looked: _Looked) -> Iterator[Finding]:
    """Without a window nothing expires."""
    if looked.query.within is None:
        yield Finding(
            "no_window",
            "there is no window: a partial match is kept for as long as the stream runs",
            "say how long a match may last: WITHIN 1 hour, or WITHIN 100 EVENTS",
        )


def no_partition(looked: _Looked) -> Iterator[Finding]:
    """Skip till any match over the whole stream: every event meets every partial match."""
    query = looked.query
    if query.strategy is Strategy.SKIP_TILL_ANY_MATCH and len(looked.automaton.letters) > 1:
        counted = query.within is not None and query.within.unit == "events"
        if not counted and not partition_attributes(query):
            yield Finding(
                "no_partition",
                "no attribute ties the events of a match together: every event meets the partial matches of all others",
                "if a match is about one thing, say so: [user], or a window in EVENTS",
            )


def single_events_match(looked: _Looked) -> Iterator[Finding]:
    """An error budget that leaves one event of the pattern."""
    costs = looked.automaton.costs
    least: dict[str, int] = {}  # by the first event's variable, what is missing if nothing else is bound
    for arc in looked.arcs.arcs[0]:
        for accept in looked.arcs.states[arc.target].accepts:
            missing = arc.weight + accept.cost
            least[arc.var] = min(missing, least.get(arc.var, missing))
    if not least or not 0 < min(least.values()) <= costs.budget:
        return
    var = min(least, key=lambda v: least[v])
    errors = costs.unscaled(costs.budget)
    yield Finding(
        "single_events_match",
        f"with {errors} error{'' if errors == 1 else 's'} a single event matches: "
        f"`{var}` alone misses only {costs.unscaled(least[var])}",
        "allow fewer errors, or give more weight to the letters that must be there",
    )


def many_states(looked: _Looked) -> Iterator[Finding]:
    """Repetitions and sets that are written out to a large automaton."""
    states = len(looked.arcs.states)
    if states > MANY_STATES:
        yield Finding(
            "many_states",
            f"the pattern becomes {states:,} states and {sum(map(len, looked.arcs.arcs)):,} arcs, tried event by event",
            "bounded repetitions and sets are written out: make their bounds smaller",
        )


RULES: tuple[Callable[[_Looked], Iterator[Finding]], ...] = (
    any_match_repetition,
    no_window,
    no_partition,
    single_events_match,
    many_states,
)
